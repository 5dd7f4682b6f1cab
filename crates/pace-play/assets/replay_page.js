// The replay of a session: the whole encounter, step by step, and the summary below.

import { ask } from "./connection.js";
import { el, personOf, show } from "./elements.js";
import { encounterOf } from "./encounter.js";
import { gameOf } from "./games/index.js";
import { note, notice } from "./notices.js";
import { partView } from "./session_page.js";
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
  const about = { ...encounterOf(replay), keys: document, eyes: "only what you saw", isGood: (outcome) => game.isGood(outcome, about) };
  document.title = `PACE · replay of ${game.title}`;
  note(`replay · ${game.title} with ${replay.label}`);
  const stage = el("div", { class: "stage", role: "group", "aria-label": "Replay" });
  show(main,
    el("div", { class: "head" }, el("h1", {}, `Replay: you and ${replay.label}`), partView(game, about)), stage,
    el("div", { class: "stack narrow" }, el("h1", {}, "Summary"), summaryCard(about, replay.summary, game)));
  new Stepper(stage, game, about, framesOf(replay.frames, game, about), signal);
  main.focus({ preventScroll: true });
}

/** The frames of a replay with the reward of each step and the action that the beliefs of the moment are about. */
function framesOf(frames, game, about) {
  const acted = (frame) => frame?.actions?.[0] ?? null;
  return frames.map((frame, index) => {
    const hasActed = (other) => other.episode === frame.episode && acted(other) !== null;
    const isNext = game.isAgentNext(frame.scene, about);
    const taken = acted(isNext ? frames.slice(index + 1).find(hasActed) : frames.slice(0, index + 1).findLast(hasActed));
    const before = frames[index - 1];
    return { ...frame, taken, task_reward: frame.task_return - (before?.episode === frame.episode ? before.task_return : 0) };
  });
}
