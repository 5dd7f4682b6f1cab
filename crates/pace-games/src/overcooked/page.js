// PO-Overcooked on pages: the kitchen from above. A view has `cooks` (null when out of sight), `things`, the `rooms` in sight and
// `n_steps`; the constants have the `tiles`. What pages use of this file is in text_game.js.

import { percent } from "../elements.js";

export const pitch = "It cooks, you serve. One dish of nine is ordered, and you cannot say which.";
export const shorter = [1, 3];
export const isPad = true;
// The rules refuse another dish than the ordered one, so a belief about the player can be right or wrong.
export const isPartBinding = true;
export const stay = 0;
export const rules = [
  "Two cooks share a kitchen, kept apart by a counter in the middle. The agent is on the left with the cutting board and all it needs; you are on the right with the delivery tile. You both move at once, for 40 steps.",
  "One dish is ordered: one of lettuce, tomato or potato, with one of onion, carrot or broccoli, both chopped on the plate. Only you know which. Serve that dish and no other: take the plate from the middle counter and put it onto the delivery tile, the bell on your right.",
  "Neither cook sees across the line between upper and lower room. The agent may come down to see which ingredient you carry from the lower counter to the middle; when it has cooked something, it watches whether you take it.",
  "Move with the arrows (a move against a counter only turns you) and use what is in front of you with Space: take, put, serve.",
];
export const seats = { cook: "the serving cook" };
export const actionNames = ["stay", "left", "right", "down", "up", "use"];

export function choices() {
  return [
    { action: 4, label: "↑", name: "up", keys: ["ArrowUp", "w"], place: "up" },
    { action: 1, label: "←", name: "left", keys: ["ArrowLeft", "a"], place: "left" },
    { action: 5, label: "use", keys: [" ", "e", "Enter"], place: "middle" },
    { action: 2, label: "→", name: "right", keys: ["ArrowRight", "d"], place: "right" },
    { action: 3, label: "↓", name: "down", keys: ["ArrowDown", "s"], place: "down" },
    { action: 0, label: "wait", keys: [".", "x"], place: "extra" },
  ];
}

const dishOf = (view) => view.things.filter((thing) => thing.is_plated).map((thing) => thing.kind.toLowerCase());

export function tell({ scene, ending }, _, { constants, part, seat }) {
  if (ending === "succeeded") return "Served!";
  if (ending) return "Time is up: nothing was served.";
  const own = scene.cooks[seat];
  if (own?.held) return `In hand: ${held(scene, own)}.`;
  const plate = scene.things.find((thing) => thing.kind === "Plate");
  const dish = dishOf(scene);
  if (plate && dish.length === 2 && plate.x === constants.divider) {
    const isOrdered = !part || [part.data.left, part.data.right].every((food) => dish.includes(food.toLowerCase()));
    return isOrdered ? "The ordered dish is ready: take it to the bell." : `A dish is ready, ${dish.join(" with ")}, but another was ordered.`;
  }
  return "Both cooks move at once.";
}

function held(view, cook) {
  const thing = view.things.find((thing) => thing.id === cook.held);
  if (thing && thing.kind !== "Plate") return `${thing.is_chopped ? "chopped" : "fresh"} ${thing.kind.toLowerCase()}`;
  const dish = dishOf(view);
  return dish.length > 0 ? `the plate with ${dish.join(" and ")}` : "the empty plate";
}

export const delay = (frame) => (frame.ending ? 1600 : 260);
export const replayDelay = (frame) => (frame.ending ? 1200 : 320);
export const tally = (outcome) => (outcome.ending === "succeeded" ? 1 : 0.25);
export const tallyWords = (outcomes) => `${outcomes.filter((outcome) => outcome.ending === "succeeded").length} of ${outcomes.length} episodes ended with a served dish.`;
export const valueWords = "Dishes served";
export const isGood = (outcome) => outcome.ending === "succeeded";
export const verdicts = () => ["served", "not served"];
export const rewardWords = "A delivered dish is worth 10, the steps towards it 0.5 to 1 each, and every step costs 0.2.";

export function facts(summary) {
  const n = summary.episodes.length;
  const served = summary.episodes.filter((episode) => episode.score > 0.5).map((episode) => episode.n_moves);
  return [
    ["Dishes served", `${served.length} of ${n}`],
    ["Success rate", percent(served.length / Math.max(n, 1))],
    ["Oracle success", percent(summary.oracle)],
    ["Fastest dish", served.length > 0 ? String(Math.min(...served)) : "–", served.length > 0 && "steps"],
  ];
}

// Drawing

const CELL = 40;
const TURN = { left: 180, right: 0, down: 90, up: 270 };
const STEP = { left: [-1, 0], right: [1, 0], down: [0, 1], up: [0, -1] };
const middle = (x, y) => [(x + 0.5) * CELL, (y + 0.5) * CELL];

export function draw(pen, { view, seen, constants: { tiles, last_upper_row: last }, seat, slot }) {
  const [columns, rows] = [tiles[0].length, tiles.length];
  const [width, height] = [columns * CELL, rows * CELL];
  pen.view(width, height);
  pen.shape("floor", "rect", { class: "cook-floor", x: 0, y: 0, width, height, rx: 8 });
  tiles.forEach((line, y) => [...line].forEach((sign, x) => tile(pen, sign, x, y)));
  const own = view.cooks[seat];
  // The cell in front of a player.
  if (slot !== null && own) {
    const [dx, dy] = STEP[own.facing];
    pen.shape("reach", "rect", { class: "cook-reach", x: (own.x + dx) * CELL + 3, y: (own.y + dy) * CELL + 3, width: CELL - 6, height: CELL - 6, rx: 7 });
  }
  const dim = (isSeen) => (isSeen ? "" : "cook-unseen unseen");
  view.cooks.forEach((cook, index) => cook && chef(pen, cook, index === 0 ? "ego" : "peer", dim(seen.cooks[index])));
  const plate = view.things.find((thing) => thing.kind === "Plate");
  const plated = view.things.filter((thing) => thing.is_plated);
  // The plate first: food lies on it.
  for (const thing of [plate, ...view.things.filter((thing) => thing !== plate)].filter(Boolean)) {
    // What is held, or on a plate that is held, is drawn at the hand that holds it.
    const holder = view.cooks[thing.is_plated ? plate?.holder : thing.holder];
    const [dx, dy] = holder ? STEP[holder.facing] : [0, 0];
    const [x, y] = middle(thing.x, thing.y);
    const shift = thing.is_plated ? plated.indexOf(thing) * 9 - (plated.length - 1) * 4.5 : 0;
    const look = { at: [x + dx * 15 + shift, y + dy * 15], scale: thing.is_plated ? 0.62 : 1, class: dim(seen.things.some(({ id }) => id === thing.id)) };
    pen.group(thing.id, look, () => (thing === plate ? dishPlate(pen) : food(pen, thing.id, thing.kind, thing.is_chopped)));
  }
  // A room that is not seen is under a veil; where nothing of it is drawn, the veil is thick.
  for (const [room, top, size] of [["upper", 0, last + 1], ["lower", last + 1, rows - last - 1]]) {
    if (seen.rooms.includes(room)) continue;
    const isDrawn = view.rooms.includes(room);
    pen.shape(`veil-${room}`, "rect", { class: `cook-veil${isDrawn ? "" : " cook-fog"}`, x: 0, y: top * CELL, width, height: size * CELL });
    if (!isDrawn) pen.shape(`veil-${room}-words`, "text", { class: "cook-fog-words", x: width / 2, y: (top + size / 2) * CELL }, `the ${room} room is out of sight`);
  }
  pen.shape("sight", "path", { class: "cook-sight", d: `M0 ${(last + 1) * CELL}H${width}` });
  const words = (cook) => (cook ? `column ${cook.x + 1}, row ${cook.y + 1}, facing ${cook.facing}${cook.held ? `, holding ${held(view, cook)}` : ""}` : "out of sight");
  return `The kitchen. The serving cook: ${words(view.cooks[1])}. The agent: ${words(view.cooks[0])}.`;
}

function tile(pen, sign, x, y) {
  const key = `${x}-${y}`;
  if (sign === ".") {
    if ((x + y) % 2 === 0) pen.shape(`tile-${key}`, "rect", { class: "cook-tile", x: x * CELL, y: y * CELL, width: CELL, height: CELL });
    return;
  }
  pen.shape(`counter-${key}`, "rect", { class: "cook-counter", x: x * CELL + 1.5, y: y * CELL + 1.5, width: CELL - 3, height: CELL - 3, rx: 5 });
  if (sign === "#") return;
  pen.group(`fixed-${key}`, { at: middle(x, y) }, () => {
    if (sign === "C") {
      pen.shape("board-wood", "rect", { class: "cook-board", x: -15, y: -12, width: 30, height: 24, rx: 4 });
      pen.shape("board-knife", "path", { class: "cook-knife", d: "M-11 8L4 8Q10 8 11 5L11 4L-11 4Z" });
    } else {
      pen.shape("delivery-tile", "rect", { class: "cook-delivery", x: -16, y: -16, width: 32, height: 32, rx: 5 });
      pen.shape("delivery-mark", "path", { class: "cook-bell", d: "M-10 6Q-10 -7 0 -7Q10 -7 10 6ZM-12 8H12V11H-12ZM-2 -10H2V-7H-2Z" });
    }
  });
}

function chef(pen, { x, y, facing }, key, look) {
  pen.group(key, { at: middle(x, y), class: `cook-${key} ${look}` }, () => {
    pen.group(`${key}-turned`, { at: [0, 0], turn: TURN[facing] }, () => {
      pen.shape(`${key}-hands`, "path", { class: "cook-hands", d: "M6 -11Q16 -11 17 -6M6 11Q16 11 17 6" });
      pen.shape(`${key}-body`, "ellipse", { class: "cook-body", cx: 0, cy: 0, rx: 11, ry: 15 });
      pen.shape(`${key}-nose`, "path", { class: "cook-nose", d: "M9 -3L15 0L9 3Z" });
    });
    pen.shape(`${key}-hat`, "path", { class: "cook-hat", d: "M-7 3Q-12 1 -9 -4Q-9 -10 -3 -8Q0 -12 4 -8Q10 -9 9 -4Q12 1 7 3Z" });
    pen.shape(`${key}-band`, "path", { class: "cook-band", d: "M-7 3H7V7H-7Z" });
  });
}

function dishPlate(pen) {
  pen.shape("plate-rim", "circle", { class: "cook-plate", cx: 0, cy: 0, r: 14 });
  pen.shape("plate-well", "circle", { class: "cook-well", cx: 0, cy: 0, r: 9.5 });
}

const DRAWN = {
  lettuce: [
    ["path", "cook-lettuce", "M-11 2Q-13 -5 -7 -7Q-4 -12 1 -9Q8 -11 9 -5Q14 0 10 5Q8 11 1 9Q-6 12 -9 7Q-12 6 -11 2Z"],
    ["path", "cook-rib", "M-6 5Q0 0 6 -5M-2 6Q1 2 2 -5M-7 -1Q-1 0 7 1"],
  ],
  tomato: [
    ["path", "cook-tomato", "M0 -8Q11 -10 11 1Q11 10 0 10Q-11 10 -11 1Q-11 -10 0 -8Z"],
    ["path", "cook-leaf", "M0 -8L-6 -10L-3 -6L-5 -3L0 -5L5 -3L3 -6L6 -10Z"],
  ],
  potato: [
    ["path", "cook-potato", "M-11 1Q-12 -8 -3 -8Q3 -10 9 -5Q14 1 9 7Q3 11 -4 8Q-10 8 -11 1Z"],
    ["path", "cook-eyes", "M-5 -2h2M1 -4h2M3 3h2M-4 4h2"],
  ],
  onion: [
    ["path", "cook-onion", "M0 -12Q2 -6 8 -3Q13 2 8 8Q4 11 0 10Q-4 11 -8 8Q-13 2 -8 -3Q-2 -6 0 -12Z"],
    ["path", "cook-skin", "M0 -9Q-5 0 -1 9M0 -9Q5 0 1 9M0 -9V9"],
  ],
  carrot: [
    ["path", "cook-leaf", "M5 -6Q4 -12 9 -12Q8 -8 12 -9Q13 -4 7 -4Z"],
    ["path", "cook-carrot", "M8 -4Q9 1 3 4L-9 11Q-12 12 -11 9L-4 -3Q-1 -9 4 -8Q7 -7 8 -4Z"],
  ],
  broccoli: [
    ["path", "cook-stem", "M-3 2H4L3 11H-2Z"],
    ["path", "cook-broccoli", "M-10 2Q-14 -4 -8 -6Q-7 -12 0 -10Q7 -13 8 -6Q14 -4 10 2Q6 5 0 3Q-6 6 -10 2Z"],
  ],
};

// Chopped food is four pieces of itself.
const PIECES = [[-5.5, -5], [5.5, -4.5], [-5, 5.5], [5.5, 5]];

function food(pen, key, kind, isChopped) {
  const whole = (key) => DRAWN[kind.toLowerCase()].forEach(([tag, look, d], index) => pen.shape(`${key}-${index}`, tag, { class: look, d }));
  if (!isChopped) return whole(key);
  PIECES.forEach((at, piece) => pen.group(`${key}-piece-${piece}`, { at, scale: 0.5, turn: piece * 70 }, () => whole(`${key}-piece-${piece}`)));
}

function icon(pen, kind, at, scale = 1) {
  pen.group(`icon-${kind}`, { at, scale }, () => food(pen, `icon-${kind}`, kind, false));
}

export function thumbnail(pen) {
  pen.view(320, 170);
  pen.shape("counter", "rect", { class: "cook-counter", x: 150, y: -4, width: 20, height: 178 });
  [["Tomato", 58, 58], ["Carrot", 118, 40], ["Broccoli", 262, 54], ["Potato", 60, 122], ["Onion", 262, 122]].forEach(([kind, x, y]) => icon(pen, kind, [x, y], 1.5));
  pen.group("plate", { at: [160, 86], scale: 1.6 }, () => dishPlate(pen));
  pen.group("cooks", { at: [0, 0], scale: 1.3 }, () => {
    chef(pen, { x: 1.7, y: 1.5, facing: "right" }, "ego", "");
    chef(pen, { x: 3.5, y: 1.3, facing: "left" }, "peer", "");
  });
}

/** The dish that the player must serve. */
export const partWords = (part) => part && `Ordered: ${kindWords(part)}`;

export function drawPart(pen, { data: { left, right } }) {
  pen.view(60, 30);
  icon(pen, left, [15, 15]);
  icon(pen, right, [45, 15]);
}

// Beliefs

const LEFT = ["Tomato", "Lettuce", "Potato"];
const RIGHT = ["Onion", "Carrot", "Broccoli"];

/** The nine dishes as a square of shades. */
export function belief(pen, peer, shares) {
  if (!peer.kinds.every((kind) => kind.data)) return false;
  pen.view(300, 232);
  LEFT.forEach((kind, column) => icon(pen, kind, [98 + column * 80, 20]));
  RIGHT.forEach((kind, row) => icon(pen, kind, [24, 72 + row * 64]));
  peer.kinds.forEach(({ data: { left, right } }, index) => {
    const [x, y] = [60 + LEFT.indexOf(left) * 80, 44 + RIGHT.indexOf(right) * 64];
    const cell = { x, y, width: 76, height: 58, rx: 8 };
    pen.shape(`paper-${index}`, "rect", { class: "belief-frame", ...cell });
    pen.shape(`share-${index}`, "rect", { class: "belief-cell", ...cell, opacity: Math.min(1, shares[index] * 1.15).toFixed(3) });
    if (index === peer.truth) pen.shape("truth", "rect", { class: "belief-is-true", ...cell });
    pen.shape(`words-${index}`, "text", { class: `cook-share${shares[index] > 0.55 ? " cook-likely" : ""}`, x: x + 38, y: y + 34 }, percent(shares[index]));
  });
  return true;
}

export const kindWords = ({ name, data }) => (data ? `${data.left} with ${data.right}`.toLowerCase() : name);

export const kindColour = (kind) =>
  kind && `hsl(${LEFT.indexOf(kind.data.left) * 118 + 8} ${48 + RIGHT.indexOf(kind.data.right) * 10}% ${34 + RIGHT.indexOf(kind.data.right) * 13}%)`;

/** Records before views: { size, divider, last_upper_row, seen_rows, board, delivery, plate, cooks: [{ at, facing, holds }], foods: { id: [x, y, condition] } }. */
export function fromPicture({ size: [columns, rows], divider, last_upper_row, seen_rows, board, delivery, plate, cooks, foods }) {
  const sign = (x, y) => {
    const is = ([cx, cy]) => cx === x && cy === y;
    if (is(board)) return "C";
    if (is(delivery)) return "D";
    return x === 0 || y === 0 || x === columns - 1 || y === rows - 1 || x === divider ? "#" : ".";
  };
  const tiles = Array.from({ length: rows }, (_, y) => Array.from({ length: columns }, (_, x) => sign(x, y)).join(""));
  const holder = (id) => [0, 1].find((cook) => cooks[cook].holds === id) ?? null;
  const kind = (id) => id.replace(/^(upper|lower)-/, "").replace(/^./, (letter) => letter.toUpperCase());
  const things = [["plate", [...plate, "fresh"]], ...Object.entries(foods)].map(([id, [x, y, condition]]) =>
    ({ id, kind: kind(id), x, y, is_chopped: condition !== "fresh", is_plated: condition === "plated", holder: holder(id) }));
  const sees = (y) => y >= seen_rows[0] && y <= seen_rows[1];
  const view = (sees) => ({
    cooks: cooks.map(({ at: [x, y], facing, holds }) => (sees(y) ? { x, y, facing, held: holds } : null)),
    things: things.filter((thing) => sees(thing.y)),
    rooms: [["upper", 0], ["lower", rows - 1]].filter(([, row]) => sees(row)).map(([room]) => room),
  });
  return { constants: { tiles, last_upper_row, divider }, view: view(() => true), seen: view(sees) };
}
