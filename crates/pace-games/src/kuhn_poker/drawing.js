// Kuhn poker as a page draws it: the ego below, the peer above, the chips between them.
// A picture is what `view::picture` in view.rs gives: { stage, cards: [ego, peer], seen: [ego, peer] }.

const RANKS = ["J", "Q", "K"];

// By stage: the last actions of ego and peer, and the chips each has put in.
const STAGES = {
  "ego-speaks": { said: ["to act", ""], chips: [1, 1], turn: 0 },
  "ego-faces-bet": { said: ["checked, to act", "bets"], chips: [1, 2], turn: 0 },
  "peer-faces-check": { said: ["checks", "to act"], chips: [1, 1], turn: 1 },
  "peer-faces-bet": { said: ["bets", "to act"], chips: [2, 1], turn: 1 },
  "check-check": { said: ["checks", "checks"], chips: [1, 1], showdown: true },
  "check-bet-fold": { said: ["folds", "bets"], chips: [1, 2], winner: 1 },
  "check-bet-call": { said: ["calls", "bets"], chips: [2, 2], showdown: true },
  "bet-fold": { said: ["bets", "folds"], chips: [2, 1], winner: 0 },
  "bet-call": { said: ["bets", "calls"], chips: [2, 2], showdown: true },
};

export function draw(pen, picture) {
  const { cards, seen, stage } = picture;
  const state = STAGES[stage];
  const won = (one) => RANKS.indexOf(cards[one]) > RANKS.indexOf(cards[1 - one]);
  const winner = state.showdown ? (won(0) ? 0 : 1) : state.winner;
  pen.view(480, 400);
  pen.shape("rail", "rect", { class: "kuhn-rail", x: 10, y: 20, width: 460, height: 360, rx: 180 });
  pen.shape("felt", "rect", { class: "kuhn-felt", x: 24, y: 34, width: 432, height: 332, rx: 166 });
  pen.shape("line", "rect", { class: "kuhn-line", x: 52, y: 62, width: 376, height: 276, rx: 138 });
  // The third card, which stays hidden.
  pen.group("deck", { at: [88, 200], class: "kuhn-unseen" }, () => {
    pen.shape("deck-2", "rect", { class: "kuhn-back", x: -20, y: -30, width: 44, height: 62, rx: 6 });
    pen.shape("deck-1", "rect", { class: "kuhn-back", x: -23, y: -33, width: 44, height: 62, rx: 6 });
  });
  for (const player of [0, 1]) {
    const y = player === 0 ? 280 : 120;
    card(pen, player, cards[player], seen[player], [240, y], winner);
    const name = player === 0 ? "ego" : "peer";
    const turn = state.turn === player ? " kuhn-turn" : "";
    pen.shape(`name-${player}`, "text", { class: `kuhn-name${turn}`, x: 332, y: y - 8 }, name);
    pen.shape(`said-${player}`, "text", { class: `kuhn-said${turn}`, x: 332, y: y + 16 }, state.said[player]);
    if (winner === player) {
      const gain = state.chips[1 - player];
      pen.shape(`won-${player}`, "text", { class: "kuhn-won", x: 332, y: y + 40 }, `wins ${gain}`);
    }
  }
  chips(pen, state.chips, winner);
}

function card(pen, player, rank, seen, at, winner) {
  const lost = winner !== undefined && winner !== player ? " kuhn-lost" : "";
  pen.group(`card-${player}`, { at, class: seen ? "kuhn-open" + lost : "kuhn-unseen" }, () => {
    const key = `card-${player}-`;
    pen.shape(key + "paper", "rect", { class: "kuhn-card", x: -37, y: -54, width: 74, height: 108, rx: 9 });
    const ink = (rank === "Q" ? "kuhn-red" : "kuhn-black") + (seen ? "" : " unseen");
    pen.shape(key + "rank", "text", { class: `kuhn-rank ${ink}`, x: 0, y: 20 }, rank);
    pen.shape(key + "corner", "text", { class: `kuhn-corner ${ink}`, x: -26, y: -34 }, rank);
    pen.shape(key + "foot", "text", { class: `kuhn-corner ${ink}`, x: 26, y: 46 }, rank);
    if (!seen) {
      pen.shape(key + "veil", "rect", { class: "kuhn-veil", x: -37, y: -54, width: 74, height: 108, rx: 9 });
      pen.shape(key + "hidden", "text", { class: "kuhn-hidden", x: 0, y: 44 }, "hidden");
    }
  });
}

// Each chip has a name of its own, so that it slides when a hand is won.
function chips(pen, [ego, peer], winner) {
  const stacks = [
    { n: ego, home: [148, 236] },
    { n: peer, home: [148, 172] },
  ];
  stacks.forEach(({ n, home }, player) => {
    for (let chip = 0; chip < n; chip += 1) {
      const to = winner === undefined ? home : stacks[winner].home;
      const lift = winner === undefined || winner === player ? chip : stacks[winner].n + chip;
      pen.group(`chip-${player}-${chip}`, { at: [to[0] + (lift % 2) * 2, to[1] - lift * 8] }, () => {
        pen.shape(`chip-${player}-${chip}-side`, "ellipse", { class: "kuhn-chip-side", cx: 0, cy: 5, rx: 19, ry: 10 });
        pen.shape(`chip-${player}-${chip}-face`, "ellipse", { class: `kuhn-chip kuhn-chip-${player}`, cx: 0, cy: 0, rx: 19, ry: 10 });
        pen.shape(`chip-${player}-${chip}-ring`, "ellipse", { class: "kuhn-chip-ring", cx: 0, cy: 0, rx: 11, ry: 5.5 });
      });
    }
  });
}

// Two numbers define a peer.
export const plane = { x: "bluffs with J (ξ)", y: "calls with Q (η)" };
