// The replay of a session: the encounter step by step, and the summary.

import { ask } from "./connection.js";
import { el, show } from "./elements.js";
import { encounterOf } from "./encounter.js";
import { gameOf } from "./games/index.js";
import { notice, setHeading } from "./notices.js";
import { assignedRole } from "./session_page.js";
import { Stepper } from "./stepper.js";
import { summaryCard } from "./summary.js";

/** Shows the replay of a link until `signal` is aborted. */
export async function openReplay(main, link, signal) {
  show(main, el("p", { class: "quiet" }, "Loading the replay …"));
  let replay;
  try {
    replay = await ask("/api/replay", { link });
  } catch (error) {
    if (!signal.aborted) notice(main, "This replay cannot be shown", error.message, el("a", { class: "button", href: "/" }, "To the games"));
    return;
  }
  if (signal.aborted) return;
  const game = gameOf(replay);
  const about = { ...encounterOf(replay), keys: document, seenLabel: "only what you saw", isGood: (outcome) => game.isGood(outcome, about) };
  document.title = `PACE · replay of ${game.title}`;
  setHeading(`replay · ${game.title} with ${replay.label}`);
  const stage = el("div", { class: "stage", role: "group", "aria-label": "Replay" });
  show(main,
    el("div", { class: "head" }, el("h1", {}, `Replay: you and ${replay.label}`), assignedRole(game, about)), stage,
    el("div", { class: "stack narrow" }, el("h1", {}, "Summary"), summaryCard(about, replay.summary, game)));
  new Stepper(stage, game, about, framesOf(replay.frames, game, about), signal);
  main.focus({ preventScroll: true });
}

/** The frames, with the reward of each step and the action to which the shown action probabilities belong. */
function framesOf(frames, game, about) {
  const agentAction = (frame) => frame?.actions?.[0] ?? null;
  return frames.map((frame, index) => {
    const hasAction = (other) => other.episode === frame.episode && agentAction(other) !== null;
    const isNext = game.isAgentNext(frame.scene, about);
    const taken = agentAction(isNext ? frames.slice(index + 1).find(hasAction) : frames.slice(0, index + 1).findLast(hasAction));
    const before = frames[index - 1];
    return { ...frame, taken, task_reward: frame.task_return - (before?.episode === frame.episode ? before.task_return : 0) };
  });
}
