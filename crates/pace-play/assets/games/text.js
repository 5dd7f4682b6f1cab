// A game without a drawing: its state as text, and a button for every action.

import { el, number, svg } from "../elements.js";

const ENDINGS = { finished: "The episode is over.", succeeded: "The episode is over: success.", "timed-out": "Time is up." };

/** What the pages need of a game of which they know the id alone. */
export function textGame(id) {
  return {
    name: id,
    episode: "Episode",
    Episodes: "Episodes",
    pitch: "This game has no drawing here. Its state is shown as text.",
    rules: [],
    rewardWords: "",
    choices: (_, welcome) => welcome.action_names.map((label, action) => ({ action, label, keys: action < 9 ? [String(action + 1)] : [] })),
    tell: (frame) => ENDINGS[frame.ending] ?? (frame.is_asked ? "Choose an action." : ""),
    delay: (frame) => (frame.ending ? 1500 : 300),
    tally: () => 1,
    tallyWords: (outcomes) => `After ${outcomes.length} episodes: ${outcomes.map((outcome) => number(outcome.task_return)).join(", ")}.`,
    valueWords: "Score of the agent",
    verdicts: () => ["succeeded", "ended"],
    episodeValue: (episode) => episode.score,
    oracleValue: (summary) => summary.oracle,
    isGood: (episode) => episode.ending === "succeeded",
    facts: (summary) => [
      ["Score of the agent", summary.mean_score === null ? "–" : number(summary.mean_score), "per episode"],
      ["Oracle", number(summary.oracle), "per episode"],
    ],
    createDrawing() {
      const node = el("pre", { class: "as-text", tabindex: "0", role: "group", "aria-label": "The state of the game" });
      return { node, update: (scene) => { node.textContent = scene.text ?? JSON.stringify(scene, null, 1); } };
    },
    picture: () => svg("svg", { viewBox: "0 0 320 170" }, svg("text", { x: 160, y: 92, "text-anchor": "middle", "font-size": 22, fill: "var(--quiet)" }, id)),
  };
}
