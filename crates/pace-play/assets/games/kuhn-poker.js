// Kuhn Poker: two cards and the chips on a felt. A scene has `stage`, `ego` and `peer` with `card` and `chips`, `is_showdown`,
// `is_over` and `ego_won`; a card that is not seen is null.

import { el, number, percent, personOf, svg } from "../elements.js";

export const name = "Kuhn Poker";
export const episode = "Hand";
export const Episodes = "Hands";
export const pitch = "Three cards, one bet. It learns how often you bluff, and how easily you call.";
export const shorter = [10, 20, 50];
// About three minutes. Most of what PACE gains by adaptation it has gained after 30 hands (README: 0.015 per hand in the first ten,
// 0.044 in the third, 0.055 in the last of a hundred); a whole encounter of 100 hands is long for a person.
export const usual = 50;
// Its kinds are points in a square, each of them unlikely by itself.
export const isContinuous = true;
export const mindNote = "Showing the beliefs during play reveals the agent’s card.";
export const actionNames = ["check or fold", "bet or call"];
export const rules = [
  "The deck is a jack, a queen and a king. Both of you put in one chip and get one card; the third stays hidden. The higher card wins.",
  "The agent always acts first: it checks, or bets one more chip. If it checks, you may check too (cards are shown, one chip changes hands) or bet. After a bet, the other player folds and loses one chip, or calls: then cards are shown for two chips.",
  "A jack can only win by bluffing. How often you bluff with it, and how often you call with a queen, is what the agent wants to find out. Cards that are folded are never shown.",
];

/** The keys of poker programs: C checks or calls, F folds, B bets. The page shows the first key of each choice. */
export function choices(scene) {
  return scene.stage === "peer-faces-bet"
    ? [{ action: 0, label: "Fold", keys: ["f"] }, { action: 1, label: "Call", keys: ["c"] }]
    : [{ action: 0, label: "Check", keys: ["c"] }, { action: 1, label: "Bet", keys: ["b"] }];
}

export const isAgentNext = (scene) => scene.stage.startsWith("ego-");

export function tell(frame, before, about) {
  const { scene } = frame;
  const { You, Your, does } = personOf(about.is_spectator);
  if (!scene.is_over) {
    return {
      "ego-speaks": "The agent acts first.",
      "peer-faces-check": `The agent checks. ${Your} turn.`,
      "peer-faces-bet": `The agent bets. ${Your} turn.`,
      "ego-faces-bet": `${You} ${does("bet", "bets")}. The agent decides.`,
    }[scene.stage] ?? "";
  }
  const won = -scene.ego_won;
  const chips = `${Math.abs(won)} chip${Math.abs(won) === 1 ? "" : "s"}`;
  const how = { "check-bet-fold": "The agent folds. ", "bet-fold": `${You} ${does("fold", "folds")}. `, "check-bet-call": "The agent calls. ", "bet-call": `${You} ${does("call", "calls")}. `, "check-check": "Both check. " }[scene.stage];
  return `${how}${You} ${won > 0 ? does("win", "wins") : does("lose", "loses")} ${chips}.`;
}

export function delay(frame) {
  if (frame.ending) return 1500;
  return frame.scene.stage === "ego-speaks" ? 420 : 650;
}

export const replayDelay = (frame) => (frame.ending ? 1100 : 600);

export const tally = (outcome) => Math.abs(outcome.task_return) / 2;

const total = (outcomes) => outcomes.reduce((sum, outcome) => sum - outcome.task_return, 0);

export function tallyWords(outcomes, about) {
  const won = total(outcomes);
  const { you, does } = personOf(about.is_spectator);
  return `After ${outcomes.length} hands ${you} ${does("are", "is")} ${won >= 0 ? "ahead by" : "behind by"} ${Math.abs(won)} chips.`;
}

export const valueWords = "Chips won from the agent";
export const verdicts = () => ["won", "lost"];
export const rewardWords = "Unit: chips.";
export const episodeValue = (episode) => -episode.task_return;
export const oracleValue = (summary) => -summary.oracle;
export const isGood = (episode) => episode.task_return < 0;

export function facts(summary, about) {
  const n = summary.episodes.length;
  const won = total(summary.episodes);
  return [
    [`${personOf(about.is_spectator).You} won`, number(won, 0), "chips"],
    ["Per hand", number(won / Math.max(n, 1), 3), "chips"],
    ["Agent, per hand", number(-won / Math.max(n, 1), 3), "chips"],
    ["Oracle, per hand", number(summary.oracle, 3), "chips"],
  ];
}

// Drawing

const WIDTH = 84;
const HEIGHT = 118;

function card(rank, x, y) {
  const node = svg("g", { transform: `translate(${x - WIDTH / 2} ${y - HEIGHT / 2})` },
    svg("rect", { width: WIDTH, height: HEIGHT, rx: 9, fill: rank ? "#fdfbf6" : "#41576e", stroke: "rgba(0,0,0,.28)" }));
  if (!rank) {
    node.append(svg("rect", { x: 7, y: 7, width: WIDTH - 14, height: HEIGHT - 14, rx: 5, fill: "none", stroke: "#8fa6bb", "stroke-width": 1.5 }),
      svg("path", { d: "M20 74c8-26 19-26 24-9s12 15 22-17", fill: "none", stroke: "#e7b98b", "stroke-width": 4, "stroke-linecap": "round" }));
    return node;
  }
  const colour = { J: "#2b5d86", Q: "#9a3d5c", K: "#8a5a12" }[rank];
  const text = (x, y, size, content) => svg("text", { x, y, "font-size": size, "font-weight": 650, "text-anchor": "middle", fill: colour }, content);
  node.append(text(16, 26, 21, rank), text(WIDTH / 2, 80, 52, { J: "♞", Q: "♛", K: "♚" }[rank]), text(WIDTH - 16, HEIGHT - 10, 21, rank));
  return node;
}

function chips(n, x, y) {
  return Array.from({ length: n }, (_, index) => svg("g", { transform: `translate(${x} ${y - index * 9})` },
    svg("ellipse", { rx: 22, ry: 10, cy: 5, fill: "#7d3328" }),
    svg("ellipse", { rx: 22, ry: 10, fill: "#c4573f", stroke: "#f6e7d8", "stroke-width": 2, "stroke-dasharray": "7 6" })));
}

export function createDrawing(_, { isSpectator }) {
  const { you, Your } = personOf(isSpectator);
  const layer = svg("g", {});
  const node = svg("svg", { viewBox: "0 0 640 400", role: "img", "aria-label": "The cards", class: "kuhn" },
    svg("ellipse", { cx: 320, cy: 206, rx: 308, ry: 186, fill: "var(--felt-dark)" }),
    svg("ellipse", { cx: 320, cy: 200, rx: 300, ry: 178, fill: "var(--felt)" }),
    svg("ellipse", { cx: 320, cy: 200, rx: 270, ry: 150, fill: "none", stroke: "rgba(255,255,255,.16)", "stroke-width": 2 }), layer);
  const label = (x, y, text, isStrong) => svg("text", { x, y, "text-anchor": "middle", "font-size": 20, fill: isStrong ? "#fff" : "rgba(255,255,255,.78)", "font-weight": isStrong ? 650 : 500 }, text);
  const words = (scene, seat) => {
    const ego = { "peer-faces-check": "checks", "peer-faces-bet": "bets", "ego-faces-bet": "checked", "check-check": "checked", "check-bet-fold": "folds", "check-bet-call": "calls", "bet-fold": "bet", "bet-call": "bet" };
    const peer = { "ego-faces-bet": "bet", "check-check": "check", "check-bet-fold": "bet", "check-bet-call": "bet", "bet-fold": "fold", "bet-call": "call" };
    return (seat === "ego" ? ego : peer)[scene.stage] ?? "";
  };
  return {
    node,
    update(scene) {
      const isOver = scene.is_over;
      const glow = (y) => svg("ellipse", { cx: 320, cy: y, rx: 74, ry: 74, fill: "rgba(255,236,190,.22)" });
      layer.replaceChildren(...[
        isOver && glow(scene.ego_won > 0 ? 112 : 288),
        card(scene.ego.card, 320, 112), card(scene.peer.card, 320, 288),
        label(200, 102, "agent", scene.stage.startsWith("ego-")), label(200, 128, words(scene, "ego")),
        label(200, 282, you, scene.stage.startsWith("peer-")), label(200, 308, words(scene, "peer")),
        chips(scene.ego.chips, 432, 160), chips(scene.peer.chips, 432, 252),
        isOver && svg("text", { x: 500, y: 212, "text-anchor": "middle", "font-size": 26, "font-weight": 680, fill: scene.ego_won > 0 ? "#ffd0c4" : "#d8f5df" }, `${scene.ego_won > 0 ? "−" : "+"}${Math.abs(scene.ego_won)}`),
      ].flat().filter(Boolean));
      node.setAttribute("aria-label", `${Your} card: ${scene.peer.card ?? "hidden"}. The agent’s card: ${scene.ego.card ?? "hidden"}.`);
    },
  };
}

export function picture() {
  return svg("svg", { viewBox: "0 0 320 170" }, svg("ellipse", { cx: 160, cy: 92, rx: 142, ry: 66, fill: "var(--felt)" }),
    svg("g", { transform: "translate(160 86) scale(.86) rotate(-8)" }, card("Q", -58, 0)), svg("g", { transform: "translate(160 86) scale(.86) rotate(7)" }, card(null, 52, 0)),
    svg("g", { transform: "translate(160 120) scale(.8)" }, chips(3, 0, 10)));
}

// Mind

/** Every kind of peer as a dot in the square of its two habits, as large as it is likely. */
export function opinionView(slot, shares) {
  const at = ([bluffs, calls]) => [46 + bluffs * 222, 226 - calls * 200];
  // As large as how much likelier it is than by chance alone.
  const size = (share) => Math.min(12, 3.4 * Math.sqrt(share * shares.length));
  const mean = [0, 1].map((axis) => slot.kinds.reduce((sum, kind, index) => sum + kind.traits[axis] * shares[index], 0));
  const [x, y] = at(mean);
  const axis = (x, y, text, turn) => svg("text", { x, y, "font-size": 12, fill: "var(--quiet)", "text-anchor": "middle", transform: turn && `rotate(-90 ${x} ${y})` }, text);
  return svg("svg", { viewBox: "0 0 300 262", role: "img", "aria-label": `Mean belief: bluffs with ${percent(mean[0])} of jacks, calls with ${percent(mean[1])} of queens.` },
    svg("rect", { x: 46, y: 26, width: 222, height: 200, fill: "var(--paper)", stroke: "var(--line)" }),
    [0.25, 0.5, 0.75].map((part) => [svg("line", { x1: 46 + part * 222, x2: 46 + part * 222, y1: 26, y2: 226, stroke: "var(--line)" }), svg("line", { x1: 46, x2: 268, y1: 26 + part * 200, y2: 26 + part * 200, stroke: "var(--line)" })]),
    slot.kinds.map((kind, index) => {
      const [cx, cy] = at(kind.traits);
      return svg("circle", { cx, cy, r: size(shares[index]), fill: "var(--agent)", opacity: Math.min(0.85, 0.3 + 0.06 * shares[index] * shares.length) });
    }),
    svg("path", { d: `M${x - 7} ${y}h14M${x} ${y - 7}v14`, stroke: "var(--ink)", "stroke-width": 2 }),
    axis(157, 250, "bluffs with a jack →"), axis(28, 126, "calls with a queen →", true),
    axis(46, 240, "0"), axis(264, 240, "1"));
}

export function guessWords(slot, shares, about) {
  const mean = [0, 1].map((axis) => slot.kinds.reduce((sum, kind, index) => sum + kind.traits[axis] * shares[index], 0));
  return `It expects ${personOf(about.is_spectator).you} to bluff with ${percent(mean[0])} of jacks and to call with ${percent(mean[1])} of queens.`;
}

export const kindColour = (kind) => kind && `hsl(${Math.round(210 - kind.traits[0] * 190)} ${Math.round(35 + kind.traits[1] * 45)}% 46%)`;

export function kindWords(text) {
  const found = /bluffs J ([\d.]+), calls with Q ([\d.]+)/.exec(text);
  return found ? `a player who bluffs with ${percent(Number(found[1]))} of jacks and calls with ${percent(Number(found[2]))} of queens` : text;
}

export const partView = () => el("span", { class: "where small" }, "the agent acts first");
