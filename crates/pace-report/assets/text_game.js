// The words, controls and drawings that pages need of a game. Everything here can be replaced by an export of the same name in the game's
// page.js. Without that file a game is shown as text, with a button for each action.
//
// `about` is an encounter: { game, title, nouns, metric, constants, action_names, is_simultaneous, n_episodes, slot, role, roles, part, person }.
// A `frame` is a moment: { episode, n_moves, scene, everything, is_asked, ending, task_return }; `scene` is the view of the reader's seat.

import { capital, number, percent } from "./elements.js";

/** The game of an encounter as text. */
export function textGame({ game, title = game, nouns = { episode: "episode", episodes: "episodes" } }) {
  const endings = { finished: `The ${nouns.episode} is over.`, succeeded: `The ${nouns.episode} is over: success.`, "timed-out": "Time is up." };
  return {
    title,
    ...nouns,
    Episode: capital(nouns.episode),
    Episodes: capital(nouns.episodes),

    // Words of the first page: a sentence about the game, its rules by paragraph, roles as seats, a note about beliefs shown in play, lengths
    // shorter than an encounter, and the one that is offered first.
    pitch: "This game has no drawing here. Its state is shown as text.",
    rules: [],
    seats: {},
    mindNote: null,
    shorter: [],
    usual: null,

    // Controls: whether they form a pad of directions, the action of a step without a key, the steps per second, the buttons.
    isPad: false,
    stay: undefined,
    beat: "0",
    choices: (_, about) => about.action_names.map((label, action) => ({ action, label, keys: action < 9 ? [String(action + 1)] : [] })),

    // Drawings, made with a pen (pen.js) into an SVG. `draw(pen, scene)` draws { view, seen, past, constants, seat, slot, person } and returns
    // its description: `view` is drawn, what `seen` lacks is marked with the class `unseen`, `past` are earlier views of the episode.
    draw: null,
    thumbnail: (pen) => {
      pen.view(320, 170);
      pen.shape("name", "text", { class: "board-title", x: 160, y: 92 }, title);
    },
    /** Draws the part that the player is given, next to `partWords`. */
    drawPart: null,
    partWords: () => null,

    // Words about a moment and the time it is shown, in milliseconds.
    progress: () => "",
    tell: (frame) => endings[frame.ending] ?? (frame.is_asked ? "Choose an action." : ""),
    delay: (frame) => (frame.ending ? 1500 : 300),
    replayDelay: (frame) => (frame.ending ? 1200 : 350),

    // Results. `outcome` is an episode: { task_return, score, ending, n_moves }.
    isGood: (outcome) => outcome.ending === "succeeded",
    verdicts: () => ["succeeded", "ended"],
    valueWords: "Score of the agent",
    rewardWords: "",
    episodeValue: (outcome) => outcome.score,
    oracleValue: (summary) => summary.oracle,
    tally: () => 1,
    tallyWords: (outcomes) => `After ${outcomes.length} ${nouns.episodes}: ${outcomes.map((outcome) => number(outcome.task_return)).join(", ")}.`,
    facts: (summary) => [
      ["Score of the agent", summary.mean_score === null ? "–" : number(summary.mean_score), `per ${nouns.episode}`],
      summary.oracle !== null && ["Oracle", number(summary.oracle), `per ${nouns.episode}`],
    ].filter(Boolean),

    // Beliefs. A kind of peer is { name, data, traits }; `peer` is { role, kinds }. `belief(pen, peer, shares)` draws them and returns a
    // description, or null if it cannot; `plane` names the two traits that tell all peers apart. `isContinuous`: no kind is likely by itself.
    // `isPartBinding`: the rules hold players to their part.
    belief: null,
    plane: null,
    isContinuous: false,
    isPartBinding: false,
    actionNames: null,
    isAgentNext: (_, about) => about.is_simultaneous,
    kindWords: (kind) => kind.name,
    kindColour: () => null,
    guessWords(peer, shares) {
      const best = shares.indexOf(Math.max(...shares));
      return `Most likely: ${this.kindWords(peer.kinds[best])} (${percent(shares[best])}).`;
    },

    // Records of replays that were written before views: the view and what the agent sees of it, made from a picture.
    fromPicture: (picture) => ({ constants: null, view: picture, seen: picture }),
  };
}
