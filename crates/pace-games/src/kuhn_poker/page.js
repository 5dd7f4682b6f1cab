// Kuhn Poker on pages: two cards and the chips on a felt, with the viewer below. A view has `stage`, `ego` and `peer` with `card` and
// `chips`, `is_showdown`, `is_over` and `ego_won`; a card that is not seen is null. What pages use of this file is in text_game.js.

import { meanTrait } from "../beliefs.js";
import { number, percent } from "../elements.js";

export const pitch = "Three cards, one bet. It learns how often you bluff, and how easily you call.";
export const shorter = [10, 20, 50];
// About three minutes. Most of what PACE gains by adaptation it has gained after 30 hands (README: 0.015 per hand in the first ten,
// 0.044 in the third, 0.055 in the last of a hundred); a whole encounter of 100 hands is long for a person.
export const usual = 50;
// Its kinds are points in a square, each of them unlikely by itself.
export const isContinuous = true;
export const plane = { x: "bluffs with J (ξ)", y: "calls with Q (η)" };
export const beliefNote = "Showing the beliefs during play reveals the agent’s card.";
export const actionNames = ["check or fold", "bet or call"];
export const rules = [
  "The deck is a jack, a queen and a king. Both of you put in one chip and get one card; the third stays hidden. The higher card wins.",
  "The agent always acts first: it checks, or bets one more chip. If it checks, you may check too (cards are shown, one chip changes hands) or bet. After a bet, the other player folds and loses one chip, or calls: then cards are shown for two chips.",
  "A jack can only win by bluffing. How often you bluff with it, and how often you call with a queen, is what the agent wants to find out. Cards that are folded are never shown.",
];
export const partWords = () => "the agent acts first";

/** The keys of poker programs: C checks or calls, F folds, B bets. The page shows the first key of each choice. */
export function choices(view) {
  return view.stage === "peer-faces-bet"
    ? [{ action: 0, label: "Fold", keys: ["f"] }, { action: 1, label: "Call", keys: ["c"] }]
    : [{ action: 0, label: "Check", keys: ["c"] }, { action: 1, label: "Bet", keys: ["b"] }];
}

// By stage: the last actions of ego and peer, and whose turn it is.
const STAGES = {
  "ego-speaks": { said: ["to act", ""], turn: 0 },
  "ego-faces-bet": { said: ["checked, to act", "bets"], turn: 0 },
  "peer-faces-check": { said: ["checks", "to act"], turn: 1 },
  "peer-faces-bet": { said: ["bets", "to act"], turn: 1 },
  "check-check": { said: ["checks", "checks"], told: () => "Both check." },
  "check-bet-fold": { said: ["folds", "bets"], told: () => "The agent folds." },
  "check-bet-call": { said: ["calls", "bets"], told: () => "The agent calls." },
  "bet-fold": { said: ["bets", "folds"], told: ({ You, does }) => `${You} ${does("fold", "folds")}.` },
  "bet-call": { said: ["bets", "calls"], told: ({ You, does }) => `${You} ${does("call", "calls")}.` },
};

export const isAgentNext = (view) => STAGES[view.stage].turn === 0;

export function tell({ scene: { stage, is_over, ego_won } }, _, { person }) {
  const { You, Your, does } = person;
  if (!is_over) {
    return {
      "ego-speaks": "The agent acts first.",
      "peer-faces-check": `The agent checks. ${Your} turn.`,
      "peer-faces-bet": `The agent bets. ${Your} turn.`,
      "ego-faces-bet": `${You} ${does("bet", "bets")}. The agent decides.`,
    }[stage];
  }
  const n = Math.abs(ego_won);
  return `${STAGES[stage].told(person)} ${You} ${ego_won < 0 ? does("win", "wins") : does("lose", "loses")} ${n} chip${n === 1 ? "" : "s"}.`;
}

export function delay(frame) {
  if (frame.ending) return 1500;
  return frame.scene.stage === "ego-speaks" ? 420 : 650;
}

export const replayDelay = (frame) => (frame.ending ? 1100 : 600);

const total = (outcomes) => outcomes.reduce((sum, outcome) => sum - outcome.task_return, 0);

export const tally = (outcome) => Math.abs(outcome.task_return) / 2;

export function tallyWords(outcomes, { person: { you, does } }) {
  const won = total(outcomes);
  return `After ${outcomes.length} hands ${you} ${does("are", "is")} ${won >= 0 ? "ahead by" : "behind by"} ${Math.abs(won)} chips.`;
}

export const valueWords = "Chips won from the agent";
export const verdicts = () => ["won", "lost"];
export const rewardWords = "Unit: chips.";
export const episodeValue = (outcome) => -outcome.task_return;
export const oracleValue = (summary) => -summary.oracle;
export const isGood = (outcome) => outcome.task_return < 0;

export function facts(summary, { person }) {
  const won = total(summary.episodes);
  const mean = won / Math.max(summary.episodes.length, 1);
  return [
    [`${person.You} won`, number(won, 0), "chips"],
    ["Per hand", number(mean, 3), "chips"],
    ["Agent, per hand", number(-mean, 3), "chips"],
    ["Oracle, per hand", number(summary.oracle, 3), "chips"],
  ];
}

// Drawing

export function draw(pen, { view, seen, seat, person }) {
  const players = [view.ego, view.peer];
  const { said, turn } = STAGES[view.stage];
  const winner = view.is_over ? Number(view.ego_won < 0) : null;
  pen.view(480, 400);
  felt(pen);
  // The third card, which stays hidden.
  pen.group("deck", { at: [88, 200], class: "kuhn-deck" }, () => {
    for (const index of [2, 1]) pen.shape(`deck-${index}`, "rect", { class: "kuhn-back", x: 3 * index - 26, y: 3 * index - 36, width: 44, height: 62, rx: 6 });
  });
  const homes = players.map((_, player) => (player === seat ? 280 : 120));
  const names = ["agent", person.you.replace(/^the /, "")];
  players.forEach(({ card: rank }, player) => {
    const y = homes[player];
    const isUnseen = rank !== null && [seen.ego, seen.peer][player].card === null;
    card(pen, `card-${player}`, rank, [240, y], `${isUnseen ? "kuhn-veiled unseen" : ""}${winner === 1 - player ? " kuhn-lost" : ""}`);
    const isTurn = turn === player ? " kuhn-turn" : "";
    pen.shape(`name-${player}`, "text", { class: `kuhn-name${isTurn}`, x: 332, y: y - 8 }, names[player]);
    pen.shape(`said-${player}`, "text", { class: `kuhn-said${isTurn}`, x: 332, y: y + 16 }, said[player]);
    if (winner === player) pen.shape(`won-${player}`, "text", { class: "kuhn-won", x: 332, y: y + 40 }, `wins ${Math.abs(view.ego_won)}`);
  });
  // Each chip has a name of its own, so that it slides when a hand is won.
  const stacks = homes.map((home) => (home === 280 ? [148, 236] : [148, 172]));
  players.forEach(({ chips }, player) => {
    for (let chip = 0; chip < chips; chip += 1) {
      const isTaken = winner === 1 - player;
      const lift = isTaken ? players[winner].chips + chip : chip;
      const [x, y] = stacks[isTaken ? winner : player];
      chipAt(pen, `chip-${player}-${chip}`, player, [x + (lift % 2) * 2, y - lift * 8]);
    }
  });
  return `The agent’s card: ${view.ego.card ?? "hidden"}. ${person.Your} card: ${view.peer.card ?? "hidden"}.`;
}

function felt(pen) {
  pen.shape("rail", "rect", { class: "kuhn-rail", x: 10, y: 20, width: 460, height: 360, rx: 180 });
  pen.shape("felt", "rect", { class: "kuhn-felt", x: 24, y: 34, width: 432, height: 332, rx: 166 });
  pen.shape("line", "rect", { class: "kuhn-line", x: 52, y: 62, width: 376, height: 276, rx: 138 });
}

function card(pen, key, rank, at, look = "", turn = 0) {
  pen.group(key, { at, turn, class: `kuhn-${rank === null ? "hidden" : "open"} ${look}` }, () => {
    pen.shape(`${key}-paper`, "rect", { class: "kuhn-card", x: -37, y: -54, width: 74, height: 108, rx: 9 });
    if (rank === null) {
      pen.shape(`${key}-frame`, "rect", { class: "kuhn-frame", x: -30, y: -47, width: 60, height: 94, rx: 5 });
      pen.shape(`${key}-sign`, "path", { class: "kuhn-sign", d: "M-20 16c7-22 16-22 20-8s10 13 19-14" });
      return;
    }
    const ink = rank === "Q" ? "kuhn-red" : "kuhn-black";
    pen.shape(`${key}-rank`, "text", { class: `kuhn-rank ${ink}`, x: 0, y: 20 }, rank);
    pen.shape(`${key}-corner`, "text", { class: `kuhn-corner ${ink}`, x: -26, y: -34 }, rank);
    pen.shape(`${key}-foot`, "text", { class: `kuhn-corner ${ink}`, x: 26, y: 46 }, rank);
  });
}

function chipAt(pen, key, player, at) {
  pen.group(key, { at }, () => {
    pen.shape(`${key}-side`, "ellipse", { class: "kuhn-chip-side", cx: 0, cy: 5, rx: 19, ry: 10 });
    pen.shape(`${key}-face`, "ellipse", { class: `kuhn-chip kuhn-chip-${player}`, cx: 0, cy: 0, rx: 19, ry: 10 });
    pen.shape(`${key}-ring`, "ellipse", { class: "kuhn-chip-ring", cx: 0, cy: 0, rx: 11, ry: 5.5 });
  });
}

export function thumbnail(pen) {
  pen.view(480, 255);
  pen.group("table", { at: [0, -72] }, () => felt(pen));
  card(pen, "own", "Q", [180, 122], "", -8);
  card(pen, "other", null, [290, 122], "", 7);
  [0, 1, 2].forEach((chip) => chipAt(pen, `chip-${chip}`, chip % 2, [390, 150 - chip * 8]));
}

// Beliefs

export const kindWords = ({ name, data }) =>
  data ? `a player who bluffs with ${percent(data.bluffs_with_jack)} of jacks and calls with ${percent(data.calls_with_queen)} of queens` : name;

export function guessWords(peer, shares, { person }) {
  const [bluffs, calls] = [0, 1].map((axis) => percent(meanTrait(peer, shares, axis)));
  return `It expects ${person.you} to bluff with ${bluffs} of jacks and to call with ${calls} of queens.`;
}

export const kindColour = (kind) => kind && `hsl(${Math.round(210 - kind.traits[0] * 190)} ${Math.round(35 + kind.traits[1] * 45)}% 46%)`;

/** Records before views: { stage, cards: [ego, peer], seen: [ego, peer] }. */
export function fromPicture({ stage, cards, seen }) {
  const won = { "check-check": 1, "check-bet-call": 2, "bet-call": 2 }[stage] ?? 1;
  const isShowdown = ["check-check", "check-bet-call", "bet-call"].includes(stage);
  const isEgoWinner = isShowdown ? "JQK".indexOf(cards[0]) > "JQK".indexOf(cards[1]) : stage === "bet-fold";
  const chips = { "ego-faces-bet": [1, 2], "check-bet-fold": [1, 2], "peer-faces-bet": [2, 1], "bet-fold": [2, 1], "check-bet-call": [2, 2], "bet-call": [2, 2] }[stage] ?? [1, 1];
  const view = (cards) => ({
    stage,
    ego: { card: cards[0], chips: chips[0] },
    peer: { card: cards[1], chips: chips[1] },
    is_showdown: isShowdown,
    is_over: STAGES[stage].turn === undefined,
    ego_won: isEgoWinner ? won : -won,
  });
  return { constants: null, view: view(cards), seen: view(cards.map((card, player) => (seen[player] ? card : null))) };
}
