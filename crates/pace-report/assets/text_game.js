// The words, controls and drawings that pages need of a game. An export of the same name in the game's page.js replaces the default of
// this file. A game without a page.js is shown as text, with a button for each action.
//
// `about` is an encounter: { game, title, nouns, metric, constants, action_names, is_simultaneous, n_episodes, slot, role, roles, part, person }.
// A `frame` is a state: { episode, n_moves, scene, everything, is_asked, ending, task_return }; `scene` is the view of the reader's seat.

import { capital, number, percent } from "./elements.js";

/** The index of the most likely kind. Null unless its probability is 1.5 times the uniform one. */
function clearlyMostLikely(shares) {
  const largest = Math.max(...shares);
  return largest > 1.5 / shares.length ? shares.indexOf(largest) : null;
}

/** The game of an encounter as text. */
export function textGame({ game, title = game, nouns = { episode: "episode", episodes: "episodes" } }) {
  const endings = { finished: `The ${nouns.episode} is over.`, succeeded: `The ${nouns.episode} is over: success.`, "timed-out": "Time is up." };
  return {
    title,
    ...nouns,
    Episode: capital(nouns.episode),
    Episodes: capital(nouns.episodes),

    // Start page: a sentence about the game, its rules by paragraph, names of seats by role, a note about showing beliefs during play, numbers
    // of episodes below a whole encounter, and the default number.
    pitch: "This game has no drawing here. Its state is shown as text.",
    rules: [],
    seats: {},
    beliefNote: null,
    shorter: [],
    usual: null,

    // Controls: whether they form a pad of directions, the action of a step without a key press, the default of steps per second, the buttons.
    isPad: false,
    stay: undefined,
    speed: "0",
    choices: (_, about) => about.action_names.map((label, action) => ({ action, label, keys: action < 9 ? [String(action + 1)] : [] })),

    // Drawings, made with a pen (pen.js) into an SVG. `draw(pen, scene)` draws { view, seen, past, constants, seat, slot, person } and returns
    // its description: `view` is drawn, what `seen` lacks is marked with the class `unseen`, `past` are earlier views of the episode.
    draw: null,
    thumbnail: (pen) => {
      pen.view(320, 170);
      pen.shape("name", "text", { class: "board-title", x: 160, y: 92 }, title);
    },
    // The role assigned to the player, as a drawing and as words.
    drawPart: null,
    partWords: () => null,

    // Words about a frame, and the time it is shown, in milliseconds.
    progress: (frame, about) => (about.constants?.horizon_steps ? ` · step ${frame.n_moves} of ${about.constants.horizon_steps}` : ""),
    tell: (frame) => endings[frame.ending] ?? (frame.is_asked ? "Choose an action." : ""),
    delay: (frame) => (frame.ending ? 1500 : 300),
    replayDelay: (frame) => (frame.ending ? 1200 : 350),

    // Results. `outcome` is an episode: { task_return, score, ending, n_moves }.
    isGood: (outcome) => outcome.ending === "succeeded" || outcome.task_return > 0,
    verdicts: () => ["good for the agent", "not good for the agent"],
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

    // Beliefs. A kind of peer is { name, data, traits }; `peer` is { role, kinds }; `shares` are the probabilities of the kinds.
    // `belief(pen, peer, shares)` draws them and returns whether it could. `plane` names the two traits of a game in which they identify every
    // peer. `isContinuous`: kinds are points of a continuum, each of them unlikely. `isPartBinding`: the rules enforce the assigned role.
    belief: null,
    plane: null,
    isContinuous: false,
    isPartBinding: false,
    actionNames: null,
    isAgentNext: (_, about) => about.is_simultaneous,
    kindWords: (kind) => kind.name,
    kindColour: () => null,
    guessWords(peer, shares) {
      const best = clearlyMostLikely(shares);
      return best === null ? "No clear belief yet." : `Most likely: ${this.kindWords(peer.kinds[best])} (${percent(shares[best])}).`;
    },

    // Old replay records contain pictures. Returns the state and the agent's view.
    fromPicture: (picture) => ({ constants: null, view: picture, seen: picture }),
  };
}
