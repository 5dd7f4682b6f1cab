// PO-Overcooked: the kitchen as one cook sees it. A scene has `cooks` (null when out of sight), `things`, the `rooms` in sight and
// `n_steps`; the setting has the `tiles`.

import { el, favourite, percent, svg } from "../elements.js";

export const name = "Overcooked";
export const episode = "Episode";
export const Episodes = "Episodes";
export const pitch = "It cooks, you serve. One dish of nine is ordered, and you cannot say which.";
export const shorter = [1, 3];
export const isPad = true;
// The rules refuse another dish than the ordered one, so a belief about the player can be right or wrong.
export const isPartBinding = true;
export const stay = 0;
export const beat = "0";
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

export const progress = (frame, welcome) => ` · step ${frame.n_moves} of ${welcome.setting.horizon_steps}`;

export function tell(frame, before, welcome) {
  if (frame.ending === "succeeded") return "Served!";
  if (frame.ending) return "Time is up: nothing was served.";
  const { scene } = frame;
  const you = scene.cooks[1];
  const plate = scene.things.find((thing) => thing.kind === "Plate");
  const dish = scene.things.filter((thing) => thing.is_plated).map((thing) => thing.kind.toLowerCase());
  if (you?.held) return `In hand: ${held(scene, you)}.`;
  if (plate && dish.length === 2 && plate.x === welcome.setting.divider) {
    const wanted = welcome.part ? [welcome.part.spec.recipe.left, welcome.part.spec.recipe.right].map((food) => food.toLowerCase()) : [];
    return wanted.every((food) => dish.includes(food)) ? "The ordered dish is ready: take it to the bell." : `A dish is ready, ${dish.join(" with ")}, but another was ordered.`;
  }
  return "Both cooks move at once.";
}

function held(scene, cook) {
  const thing = scene.things.find((thing) => thing.id === cook.held);
  if (!thing || thing.kind === "Plate") {
    const dish = scene.things.filter((other) => other.is_plated).map((other) => other.kind.toLowerCase());
    return dish.length > 0 ? `the plate with ${dish.join(" and ")}` : "the empty plate";
  }
  return `${thing.is_chopped ? "chopped " : "fresh "}${thing.kind.toLowerCase()}`;
}

export const delay = (frame) => (frame.ending ? 1600 : 260);
export const replayDelay = (frame) => (frame.ending ? 1200 : 320);
export const isGood = (episode) => episode.ending === "succeeded";
export const tally = (outcome) => (isGood(outcome) ? 1 : 0.25);
export const tallyWords = (outcomes) => `${outcomes.filter((outcome) => outcome.ending === "succeeded").length} of ${outcomes.length} episodes ended with a served dish.`;
export const episodeValue = (episode) => episode.score;
export const oracleValue = (summary) => summary.oracle;
export const valueWords = "Dishes served";
export const verdicts = () => ["served", "not served"];
export const rewardWords = "A delivered dish is worth 10, the steps towards it 0.5 to 1 each, and every step costs 0.2.";

export function facts(summary) {
  const n = summary.episodes.length;
  const served = summary.episodes.filter((episode) => episode.score > 0.5);
  const quickest = served.length > 0 ? Math.min(...served.map((episode) => episode.n_moves)) : null;
  return [
    ["Dishes served", `${served.length} of ${n}`],
    ["Success rate", percent(served.length / Math.max(n, 1))],
    ["Oracle success", percent(summary.oracle)],
    ["Fastest dish", quickest === null ? "–" : String(quickest), quickest === null ? "" : "steps"],
  ];
}

// Drawing

const FOODS = {
  Lettuce: (n) => [circle(0, 1, 11, "#6fae4e"), circle(-4, -2, 6.5, "#8cc866"), circle(5, 0, 6, "#7dbb58"), path("M-7 4q7 5 14 0", "#4d8536")],
  Tomato: () => [circle(0, 1, 10.5, "#d6493a"), circle(-3.5, -2.5, 3, "#ec8475"), path("M-5 -8q5 4 10 0M0 -9v-4", "#4d8536")],
  Potato: () => [svg("ellipse", { rx: 12, ry: 8.5, cy: 1, fill: "#b98d57", transform: "rotate(-14)" }), circle(-4, -1, 1.2, "#8a6436"), circle(3, 3, 1.2, "#8a6436"), circle(5, -2, 1.2, "#8a6436")],
  Broccoli: () => [svg("rect", { x: -3, y: 1, width: 6, height: 10, rx: 2.5, fill: "#9cc17b" }), circle(-6, -1, 6, "#4f8a3f"), circle(6, -1, 6, "#4f8a3f"), circle(0, -5, 7.5, "#5f9d4c")],
  Onion: () => [svg("path", { d: "M0 -12c2 5 11 6 11 13a11 9.5 0 0 1-22 0c0-7 9-8 11-13z", fill: "#a5588f" }), path("M0 -8c-3 6-3 12 0 18M0 -8c3 6 3 12 0 18", "#cf9cc0")],
  Carrot: () => [svg("path", { d: "M-7 -4q7-5 14 0q-2 11-7 17q-5-6-7-17z", fill: "#e58a33" }), path("M-4 1h5M-2 5h5", "#b8641a"), path("M0 -5v-6M-3 -5l-4-5M3 -5l4-5", "#4d8536")],
};

function circle(cx, cy, r, fill) {
  return svg("circle", { cx, cy, r, fill });
}

function path(d, stroke) {
  return svg("path", { d, fill: "none", stroke, "stroke-width": 1.8, "stroke-linecap": "round" });
}

const CHOPPED = { Lettuce: "#7dbb58", Tomato: "#d6493a", Potato: "#c9a06a", Broccoli: "#5f9d4c", Onion: "#b978a6", Carrot: "#e58a33" };

/** A food, whole or chopped. */
function food(kind, isChopped) {
  if (!isChopped) return svg("g", {}, FOODS[kind]());
  const piece = (x, y, turn) => svg("rect", { x: x - 4, y: y - 4, width: 8, height: 8, rx: 2, fill: CHOPPED[kind], stroke: "rgba(0,0,0,.28)", "stroke-width": 0.8, transform: `rotate(${turn} ${x} ${y})` });
  return svg("g", {}, piece(-5, 2, 12), piece(5, 3, -18), piece(0, -5, 30));
}

function plate(dish) {
  const spots = [[-5, -2], [5, 1], [0, 5], [-2, -7], [6, -6], [-7, 5]];
  return svg("g", {}, svg("circle", { r: 15, fill: "#fdfcf9", stroke: "#b9b2a4", "stroke-width": 1.5 }), svg("circle", { r: 10, fill: "none", stroke: "#dcd6ca" }),
    dish.map((kind, index) => svg("g", { transform: `translate(${spots[index][0]} ${spots[index][1]}) scale(.72)` }, food(kind, true))));
}

const TURN = { right: 0, down: 90, left: 180, up: 270 };

function cook(isYou, facing) {
  const colour = isYou ? "var(--you)" : "var(--agent)";
  return svg("g", {},
    svg("g", { transform: `rotate(${TURN[facing]})` }, svg("path", { d: "M14 -7L23 0L14 7z", fill: colour })),
    svg("circle", { r: 16, fill: colour, stroke: "rgba(0,0,0,.22)" }),
    svg("circle", { r: 12, cy: 1, fill: "#f3d5b5" }),
    svg("path", { d: "M-10 -5a6 6 0 0 1 4-10a7 7 0 0 1 12 0a6 6 0 0 1 4 10z", fill: "#fffdfa", stroke: "rgba(0,0,0,.25)" }),
    svg("circle", { cx: -4, cy: 2, r: 1.5, fill: "#333" }), svg("circle", { cx: 4, cy: 2, r: 1.5, fill: "#333" }));
}

const CELL = 46;

export function createDrawing(setting, { slot }) {
  const { tiles, last_upper_row: last } = setting;
  const [columns, rows] = [tiles[0].length, tiles.length];
  const centre = (x, y) => `translate(${(x + 0.5) * CELL} ${(y + 0.5) * CELL})`;
  const tile = (sign, x, y) => {
    const isFloor = sign === ".";
    const base = svg("rect", { x: x * CELL + 0.75, y: y * CELL + 0.75, width: CELL - 1.5, height: CELL - 1.5, rx: isFloor ? 3 : 6,
      fill: isFloor ? "var(--floor)" : "var(--counter)", stroke: isFloor ? "none" : "var(--counter-edge)" });
    const more = svg("g", { transform: centre(x, y) });
    if (sign === "C") more.append(svg("rect", { x: -15, y: -11, width: 30, height: 22, rx: 4, fill: "#e8cfa2", stroke: "#a5824a" }), svg("path", { d: "M-8 -6h12M-8 0h12", stroke: "#c3a06a", "stroke-width": 1.5 }), svg("path", { d: "M9 -13l3 3l-3 14l-2-1z", fill: "#9aa3ab" }));
    if (sign === "D") more.append(svg("circle", { r: 17, fill: "var(--you-soft)", stroke: "var(--you)", "stroke-width": 2 }), svg("path", { d: "M-9 5a9 9 0 0 1 18 0zM-11 7h22M0 -4v-3", fill: "var(--you)", stroke: "var(--you)", "stroke-width": 2, "stroke-linecap": "round" }));
    return svg("g", {}, base, more);
  };
  const ground = tiles.flatMap((line, y) => [...line].map((sign, x) => tile(sign, x, y)));
  const line = svg("line", { x1: 0, x2: columns * CELL, y1: (last + 1) * CELL, y2: (last + 1) * CELL, stroke: "var(--quiet)", "stroke-width": 2, "stroke-dasharray": "3 6" });
  const [things, people, hands, fog] = [svg("g", {}), svg("g", {}), svg("g", {}), svg("g", {})];
  // The cell in front of the player.
  const reach = svg("rect", { width: CELL - 6, height: CELL - 6, rx: 7, fill: "none", stroke: "var(--you)", "stroke-width": 2.2, "stroke-dasharray": "5 4", opacity: 0.85 });
  const node = svg("svg", { viewBox: `-4 -4 ${columns * CELL + 8} ${rows * CELL + 8}`, role: "img", "aria-label": "The kitchen", class: "kitchen" }, ground, line, reach, things, people, hands, fog);
  const figures = new Map();
  const place = (key, x, y, ms, build, layer) => {
    let figure = figures.get(key);
    if (!figure) {
      figure = { node: svg("g", {}) };
      figures.set(key, figure);
      ms = 0;
    }
    figure.node.style.setProperty("transition", ms > 0 ? `transform ${Math.min(ms, 180)}ms ease-out` : "none");
    figure.node.style.setProperty("transform", `translate(${(x + 0.5) * CELL}px, ${(y + 0.5) * CELL}px)`);
    figure.node.replaceChildren(build);
    if (figure.node.parentNode !== layer) layer.append(figure.node);
    figure.isSeen = true;
  };
  return {
    node,
    update(scene, { ms = 0 } = {}) {
      figures.forEach((figure) => { figure.isSeen = false; });
      const dish = scene.things.filter((thing) => thing.is_plated).map((thing) => thing.kind);
      for (const thing of scene.things) {
        if (thing.is_plated) continue;
        const build = thing.kind === "Plate" ? plate(dish) : food(thing.kind, thing.is_chopped);
        const isHeld = thing.holder !== null;
        place(thing.id, thing.x, thing.y, ms, svg("g", { transform: isHeld ? "translate(11 12) scale(.8)" : "scale(1.12)" }, build), isHeld ? hands : things);
      }
      scene.cooks.forEach((who, seat) => {
        if (who) place(`cook-${seat}`, who.x, who.y, ms, cook(seat === slot + 1, who.facing), people);
      });
      const you = scene.cooks[slot + 1];
      const [dx, dy] = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] }[you?.facing] ?? [0, 0];
      reach.setAttribute("visibility", you ? "visible" : "hidden");
      if (you) for (const [name, value] of [["x", you.x + dx], ["y", you.y + dy]]) reach.setAttribute(name, value * CELL + 3);
      for (const [key, figure] of figures) if (!figure.isSeen) { figure.node.remove(); figures.delete(key); }
      const hidden = [["upper", 0, last + 1], ["lower", last + 1, rows - last - 1]].filter(([room]) => !scene.rooms.includes(room));
      fog.replaceChildren(...hidden.flatMap(([room, top, height]) => [
        svg("rect", { x: -4, y: top * CELL, width: columns * CELL + 8, height: height * CELL, fill: "var(--fog)", opacity: 0.82 }),
        svg("text", { x: (columns * CELL) / 2, y: (top + height / 2) * CELL, "text-anchor": "middle", fill: "#fff", "font-size": 15 }, `the ${room} room is out of sight`)]));
      node.setAttribute("aria-label", describe(scene, slot));
    },
  };
}

function describe(scene, slot) {
  const you = scene.cooks[slot + 1];
  const other = scene.cooks[0];
  const at = (who) => `column ${who.x + 1}, row ${who.y + 1}, facing ${who.facing}`;
  return `The kitchen. The serving cook: ${you ? at(you) : "unknown"}${you?.held ? `, holding ${held(scene, you)}` : ""}. The agent: ${other ? at(other) : "out of sight"}.`;
}

export function picture() {
  const spots = [["Tomato", 58, 58], ["Carrot", 118, 40], ["Broccoli", 262, 54], ["Potato", 60, 122], ["Onion", 262, 122]];
  return svg("svg", { viewBox: "0 0 320 170" }, svg("rect", { x: 150, width: 20, height: 170, fill: "var(--counter)" }),
    spots.map(([kind, x, y]) => svg("g", { transform: `translate(${x} ${y}) scale(1.5)` }, food(kind, false))),
    svg("g", { transform: "translate(160 86) scale(1.6)" }, plate(["Tomato", "Carrot"])),
    svg("g", { transform: "translate(112 100) scale(1.5)" }, cook(false, "right")), svg("g", { transform: "translate(212 92) scale(1.5)" }, cook(true, "left")));
}

/** The dish that the player must serve. */
export function partView(part) {
  if (!part) return null;
  const { left, right } = part.spec.recipe;
  const icon = (kind) => svg("svg", { viewBox: "-15 -15 30 30", "aria-hidden": "true" }, food(kind, false));
  return el("span", { class: "order" }, icon(left), icon(right), `Ordered: ${left.toLowerCase()} with ${right.toLowerCase()}`);
}

// Mind

const LEFT = ["Tomato", "Lettuce", "Potato"];
const RIGHT = ["Onion", "Carrot", "Broccoli"];

/** The nine dishes as a square of shades. */
export function opinionView(slot, shares) {
  const share = (left, right) => slot.kinds.reduce((sum, kind, index) => sum + (kind.name === `${left} and ${right}` ? shares[index] : 0), 0);
  const icon = (kind, x, y) => svg("g", { transform: `translate(${x} ${y})` }, food(kind, false), svg("title", {}, kind));
  const best = slot.kinds[shares.indexOf(Math.max(...shares))].name;
  return svg("svg", { viewBox: "0 0 300 232", role: "img", "aria-label": `Most likely: ${best}, ${percent(Math.max(...shares))}.` },
    LEFT.map((left, column) => icon(left, 98 + column * 80, 20)), RIGHT.map((right, row) => icon(right, 24, 72 + row * 64)),
    LEFT.flatMap((left, column) => RIGHT.flatMap((right, row) => {
      const value = share(left, right);
      const [x, y] = [58 + column * 80, 42 + row * 64];
      return [svg("rect", { x: x + 2, y: y + 2, width: 76, height: 58, rx: 8, fill: "var(--paper)", stroke: "var(--line)" }),
        svg("rect", { x: x + 2, y: y + 2, width: 76, height: 58, rx: 8, fill: "var(--agent)", opacity: Math.min(1, value * 1.15) }, svg("title", {}, `${left} and ${right}`)),
        svg("text", { x: x + 40, y: y + 36, "text-anchor": "middle", "font-size": 14, fill: value > 0.55 ? "var(--card)" : "var(--ink)" }, percent(value))];
    })));
}

export function guessWords(slot, shares) {
  const best = favourite(shares);
  if (best === null) return "No clear belief yet.";
  return `Most likely order: ${kindWords(slot.kinds[best].name)} (${percent(shares[best])}).`;
}

export const kindWords = (text) => text.replace(/^(\w+) and (\w+)$/, (_, left, right) => `${left.toLowerCase()} with ${right.toLowerCase()}`);

export function kindColour(kind) {
  if (!kind) return null;
  const [left, right] = kind.name.split(" and ");
  return `hsl(${LEFT.indexOf(left) * 118 + 8} ${48 + RIGHT.indexOf(right) * 10}% ${34 + RIGHT.indexOf(right) * 13}%)`;
}
