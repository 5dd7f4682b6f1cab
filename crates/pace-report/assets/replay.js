// The replays of a report. The page has an element of class `replay` per encounter, which contains the record as JSON.

import { personOf } from "./elements.js";
import { Stepper } from "./stepper.js";
import { textGame } from "./text_game.js";

/** `pages`: the exports of page.js by game. */
export function replays(pages) {
  document.querySelectorAll(".replay").forEach((node) => {
    const record = JSON.parse(node.querySelector("script[type='application/json']").textContent);
    const { words, peers, game: id } = record;
    const game = { ...textGame({ game: id, title: words.game ?? id, nouns: { episode: words.episode, episodes: words.episodes } }), ...pages[id] };
    const frames = record.episodes.flatMap((episode, number) => framesOf(episode, number, record, game));
    const isSuccess = record.metric === "success";
    new Stepper(node.querySelector(".replay-stage"), game, {
      ...record,
      peers: peers.some((peer) => peer.kinds.length > 0) ? peers : [],
      constants: record.constants ?? frames[0].constants,
      n_episodes: record.episodes.length,
      seat: 0,
      slot: null,
      role: "",
      part: null,
      person: personOf("the peer"),
      seatNames: ["agent", ...peers.map((peer) => peer.role)],
      keypoint: words.keypoint,
      is_simultaneous: true,
      level: 4,
      seenLabel: "as the agent sees it",
      isGood: (outcome) => (isSuccess ? outcome.ending === "succeeded" : outcome.task_return > 0),
    }, frames);
  });
}

/** The frames of an episode. */
function framesOf(episode, number, record, game) {
  let task_return = 0;
  return episode.moments.map((moment, n_moves) => {
    task_return += moment.task_reward ?? 0;
    const isOver = moment.action === undefined;
    const before = episode.moments[n_moves - 1];
    return {
      ...viewsOf(moment, record, game),
      episode: number,
      n_moves,
      ending: isOver ? episode.ending : null,
      is_asked: false,
      task_return: isOver ? episode.task_return : task_return,
      task_reward: moment.task_reward,
      keypoint_visited: moment.keypoint_visited,
      actions: before && [before.action, ...(moment.peer_actions ?? [])],
      taken: moment.action,
      context: moment.context,
      mind: { slots: moment.beliefs ?? [], probabilities: moment.probabilities ?? null, value: moment.value },
    };
  });
}

/** The full state and the agent's view. Old records without constants contain pictures, which the game turns into views. */
function viewsOf({ picture, seen }, record, game) {
  if (record.constants !== undefined) return { everything: picture, scene: seen ?? picture };
  const old = typeof picture === "string" ? { view: { text: picture }, seen: { text: picture } } : game.fromPicture(picture);
  return { constants: old.constants, everything: old.view, scene: old.seen };
}
