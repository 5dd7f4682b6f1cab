// Predator-Prey-W on pages: agents that glide over a plane, north up. A view has `agents` (null when out of sight) with position, velocity
// and `is_caught`, `obstacles`, `sees_everything` and `n_steps`; the constants have sizes, towers and paths. What pages use of this file is
// in text_game.js.

import { number, percent } from "../elements.js";

export const pitch = "Hunt together with it, or be its prey. Agents see only what is near, except from a watchtower.";
export const shorter = [1, 3];
export const isPad = true;
export const stay = 0;
export const speed = "5";
export const rules = [
  "Predators and prey glide over a plane; a push changes your speed, and friction takes a quarter of it in every step. Every step costs the predators the distance from each prey to the predator that is nearest to it, so each predator should have a prey of its own.",
  "All agents see only what is within a small circle, unless they touch one of the four watchtowers in the corners: from there everything is in sight. What you see at a tower is gone when you leave it.",
  "As a predator you choose whom to chase, and the agent should find out and chase another. As a prey you choose a path to walk; the others of your kind walk to and fro on fixed paths around the edge. An episode lasts 40 steps, or until every prey was caught once.",
  "Push with the arrows; hold a key to keep pushing.",
];
export const seats = { "predator 1": "predator, on the agent’s side", "predator 2": "second predator", "prey A": "prey A", "prey B": "prey B", "prey C": "prey C" };
export const actionNames = ["stay", "east", "west", "north", "south"];

export function choices() {
  return [
    { action: 3, label: "↑", name: "north", keys: ["ArrowUp", "w"], place: "up" },
    { action: 2, label: "←", name: "west", keys: ["ArrowLeft", "a"], place: "left" },
    { action: 0, label: "glide", keys: [" ", "x"], place: "middle" },
    { action: 1, label: "→", name: "east", keys: ["ArrowRight", "d"], place: "right" },
    { action: 4, label: "↓", name: "south", keys: ["ArrowDown", "s"], place: "down" },
  ];
}

export function tell({ scene, ending, n_moves }, _, { constants, seat, person }) {
  if (ending === "succeeded") return `Every prey was caught, after ${n_moves} steps.`;
  if (ending) return "Time is up.";
  const outside = person.you === "you" && wayBack(scene.agents[seat].position);
  if (outside) return outside;
  if (scene.sees_everything) return "At a watchtower: everything is in sight.";
  const others = scene.agents.map((agent, index) => agent && index !== seat && nameOf(index, constants)).filter(Boolean);
  if (others.length > 0) return `In sight: ${others.join(", ")}.`;
  return scene.agents.some((agent) => agent?.is_caught) ? "" : "No agent in sight.";
}

/** A hint how to return for a player who has left the map; otherwise null. */
function wayBack(position) {
  const axis = Math.abs(position[0]) > Math.abs(position[1]) ? 0 : 1;
  const far = Math.abs(position[axis]) - EXTENT;
  if (far <= 0) return null;
  const back = [["west", "east"], ["south", "north"]][axis][position[axis] > 0 ? 0 : 1];
  return `Outside the map by ${number(far, 1)}. Push ${back} to come back.`;
}

const letter = (index, { n_predators }) => (index === 0 ? "E" : index < n_predators ? String(index) : "ABC"[index - n_predators]);
const isPrey = (index, { n_predators }) => index >= n_predators;
const nameOf = (index, constants) => (index === 0 ? "the agent" : `${isPrey(index, constants) ? "prey" : "predator"} ${letter(index, constants)}`);

export const delay = (frame) => (frame.ending ? 1500 : 120);
export const replayDelay = (frame) => (frame.ending ? 1200 : 180);
export const tally = (outcome) => Math.max(0, Math.min(1, 1 + outcome.task_return / 8));
export const tallyWords = (outcomes) => `After ${outcomes.length} episodes: ${outcomes.map((outcome) => number(outcome.task_return, 1)).join(", ")}.`;
export const episodeValue = (outcome) => outcome.task_return;
export const valueWords = "Reward of the agent: 0 is best for it, and worst for the prey";
export const rewardWords = "Every step costs 0.1 times the distance from each prey to its nearest predator.";
/** Predators want every prey caught, prey do not. */
export const isGood = (outcome, about) => (outcome.ending === "succeeded") !== about.role.startsWith("prey");
export const verdicts = (about) => (about.role.startsWith("prey") ? ["not every prey caught", "every prey caught"] : ["every prey caught", "not every prey caught"]);

export function facts(summary) {
  const returns = summary.episodes.map((episode) => episode.task_return);
  const mean = returns.reduce((sum, value) => sum + value, 0) / Math.max(returns.length, 1);
  return [
    ["Reward of the agent", number(mean), "per episode"],
    ["Its best episode", number(Math.max(...returns))],
    ["All prey caught", `${summary.episodes.filter((episode) => episode.ending === "succeeded").length} of ${returns.length}`],
    ["Oracle reward", number(summary.oracle), "per episode"],
  ];
}

// Drawing

const SCALE = 200;
const EXTENT = 1.32;
const SIZE = 2 * EXTENT * SCALE;
const px = (length) => length * SCALE;
// There are no walls: an agent that has left the map is drawn at the edge of the picture.
const within = (coordinate) => Math.max(0.1 - EXTENT, Math.min(EXTENT - 0.1, coordinate));
const at = ([x, y]) => [px(x + EXTENT), px(EXTENT - y)];
const place = (point) => at(point.map(within));

export function draw(pen, { view, seen, past, constants, seat, slot, person }) {
  const { agents, obstacles } = view;
  const look = (index) => (index === 0 ? "prey-ego" : index === seat ? "prey-person" : isPrey(index, constants) ? "prey-prey" : "prey-predator");
  const dim = (isSeen) => (isSeen ? "" : "prey-unseen unseen");
  pen.view(SIZE, SIZE);
  pen.shape("ground", "rect", { class: "prey-ground", x: 0, y: 0, width: SIZE, height: SIZE, rx: 10 });
  const [west, north] = at([-1, 1]);
  pen.shape("field", "rect", { class: "prey-field", x: west, y: north, width: px(2), height: px(2), rx: 6 });
  for (const line of [-0.5, 0, 0.5]) {
    const [x, y] = at([line, line]);
    pen.shape(`x${line}`, "path", { class: "prey-grid", d: `M${x} ${north}v${px(2)}` });
    pen.shape(`y${line}`, "path", { class: "prey-grid", d: `M${west} ${y}h${px(2)}` });
  }
  // The points between which prey walk.
  new Set((constants.paths ?? []).flat().map(String)).forEach((point) => {
    const [cx, cy] = at(point.split(",").map(Number));
    pen.shape(`point-${point}`, "circle", { class: "prey-point", cx, cy, r: 2 });
  });
  obstacles.forEach((obstacle, index) => {
    if (!obstacle) return;
    const [cx, cy] = at(obstacle);
    pen.shape(`rock-${index}`, "circle", { class: `prey-rock ${dim(seen.obstacles[index])}`, cx, cy, r: px(constants.obstacle_size) });
  });
  constants.towers.forEach((point, index) => tower(pen, index, at(point), constants.tower_size, seen.sees_everything ? "prey-lit" : ""));
  agents.forEach((agent, index) => {
    // Players see their own trail alone: where others went while out of sight is not known.
    if (!agent || (slot !== null && !view.sees_everything && index !== seat)) return;
    const points = [...past, view].slice(-14).map((view) => view.agents[index]?.position).filter(Boolean);
    const line = points.map((point) => place(point).map((part) => part.toFixed(1)).join(" ")).join("L");
    pen.shape(`trail-${index}`, "path", { class: `prey-trail ${look(index)} ${dim(seen.agents[index])}`, d: `M${line}` });
  });
  // The cost of every prey that is shown: its distance to the nearest predator.
  const shown = agents.map((agent, index) => agent && { ...agent, index }).filter(Boolean);
  const hunters = shown.filter(({ index }) => !isPrey(index, constants));
  const prey = view.sees_everything ? shown.filter(({ index }) => isPrey(index, constants)) : [];
  for (const { index, position } of prey) {
    const far = (hunter) => Math.hypot(hunter.position[0] - position[0], hunter.position[1] - position[1]);
    const near = hunters.reduce((one, other) => (far(other) < far(one) ? other : one));
    const isSeen = seen.agents[index] && seen.agents[near.index];
    pen.shape(`way-${index}`, "path", { class: `prey-way ${isSeen ? "" : "unseen"}`, d: `M${place(position)}L${place(near.position)}` });
  }
  // The veil has a hole where the viewer sees.
  const own = agents[seat];
  if (!seen.sees_everything && own) {
    const r = px(constants.sight_radius);
    pen.group("sight", { at: at(own.position) }, () => {
      pen.shape("veil", "path", { class: "prey-veil", "fill-rule": "evenodd", d: `M${-9 * SIZE} ${-9 * SIZE}h${18 * SIZE}v${18 * SIZE}h${-18 * SIZE}ZM${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z` });
      pen.shape("rim", "circle", { class: "prey-sight", cx: 0, cy: 0, r });
    });
  } else {
    pen.shape("rim-all", "rect", { class: "prey-sight", x: 1.5, y: 1.5, width: SIZE - 3, height: SIZE - 3, rx: 10 });
  }
  // The viewer last, on top.
  for (const { index, position, is_caught } of shown.sort((one, other) => (one.index === seat) - (other.index === seat) || other.index - one.index)) {
    const isPlayer = slot !== null && index === seat;
    body(pen, index, { at: place(position), class: `${look(index)} ${dim(seen.agents[index])}` }, {
      r: px(constants.agents[index].size),
      isCaught: is_caught,
      inside: isPlayer ? "" : letter(index, constants),
      above: isPlayer ? person.you.replace(/^the /, "") : "",
    });
  }
  const words = shown.filter(({ index }) => index !== seat && seen.agents[index]).map(({ index, position }) => `${nameOf(index, constants)} ${way(own?.position, position)}`);
  return `The plane. In sight: ${words.join("; ") || "no agent"}.`;
}

function body(pen, index, group, { r, isCaught, inside, above }) {
  const key = `agent-${index}`;
  pen.group(key, group, () => {
    pen.shape(`${key}-body`, "circle", { class: "prey-body", cx: 0, cy: 0, r });
    if (inside) pen.shape(`${key}-name`, "text", { class: "prey-name", x: 0, y: r * 0.38, "font-size": r * 1.1 }, inside);
    if (above) pen.shape(`${key}-above`, "text", { class: "prey-above", x: 0, y: group.at[1] > 40 ? -r - (isCaught ? 9 : 5) : r + 19 }, above);
    if (isCaught) pen.shape(`${key}-caught`, "circle", { class: "prey-caught", cx: 0, cy: 0, r: r + 5 });
  });
}

function tower(pen, index, point, size, look) {
  pen.group(`tower-${index}`, { at: point, class: `prey-tower ${look}` }, () => {
    pen.shape(`tower-${index}-ring`, "circle", { class: "prey-tower-ring", cx: 0, cy: 0, r: px(size) + 3 });
    pen.shape(`tower-${index}-walls`, "path", { class: "prey-tower-walls", d: "M-6 8L-4 -3H4L6 8Z" });
    pen.shape(`tower-${index}-top`, "path", { class: "prey-tower-walls", d: "M-7 -3V-9H-4V-6H-1.5V-9H1.5V-6H4V-9H7V-3Z" });
  });
}

function way(from, to) {
  if (!from) return "";
  const [x, y] = [to[0] - from[0], to[1] - from[1]];
  const parts = [Math.abs(y) > 0.05 && `${Math.abs(y).toFixed(1)} ${y > 0 ? "north" : "south"}`, Math.abs(x) > 0.05 && `${Math.abs(x).toFixed(1)} ${x > 0 ? "east" : "west"}`];
  return parts.filter(Boolean).join(", ") || "here";
}

export function thumbnail(pen) {
  pen.view(320, 170);
  pen.shape("field", "rect", { class: "prey-field", x: 20, y: -10, width: 280, height: 190 });
  [[46, 22], [274, 22], [46, 150], [274, 150]].forEach((point, index) => tower(pen, index, point, 0.07, ""));
  pen.shape("rock", "circle", { class: "prey-rock", cx: 160, cy: 88, r: 24 });
  pen.shape("rim", "circle", { class: "prey-sight", cx: 98, cy: 96, r: 44 });
  pen.shape("trail", "path", { class: "prey-trail prey-ego", d: "M236 66q14 12 16 34" });
  [["prey-person", [98, 96], 13], ["prey-ego", [222, 60], 13], ["prey-prey", [126, 70], 8], ["prey-prey", [252, 112], 8]].forEach(([look, at, r], index) =>
    body(pen, index, { at, class: look }, { r, inside: index === 1 ? "E" : "" }));
}

/** A suggestion for the player; the rules do not enforce it. */
export function partWords(part) {
  if (!part) return null;
  const { prefers, place } = part.data;
  return `Suggestion: ${place ? `walk to and fro along the ${place}` : `stay with prey ${"ABC"[prefers]}`}`;
}

// Beliefs

/** The paths of a prey around a small square, with widths in proportion to their probabilities; for a predator, a list of prey. */
export function belief(pen, peer, shares) {
  if (!peer.kinds.every((kind) => Number.isInteger(kind.data?.path))) return false;
  const ring = [[0.8, 0], [0.8, 0.8], [0, 0.8], [-0.8, 0.8], [-0.8, 0], [-0.8, -0.8], [0, -0.8], [0.8, -0.8]];
  pen.view(300, 132);
  pen.shape("frame", "rect", { class: "belief-frame", x: 58, y: 4, width: 184, height: 124, rx: 8 });
  peer.kinds.forEach(({ data: { path } }, index) => {
    // Paths overlap; each lies a little further in.
    const inset = path % 2 === 1 ? 1 : 0.86;
    const points = [0, 1, 2].map((step) => ring[(path + step) % 8]).map(([x, y]) => `${150 + x * 92 * inset},${66 - y * 62 * inset}`).join(" ");
    pen.shape(`path-${index}`, "polyline", { class: "prey-likely", points, "stroke-width": 2 + 7 * shares[index], opacity: (0.1 + 0.9 * shares[index]).toFixed(3) });
    if (index === peer.truth) pen.shape("truth", "polyline", { class: "belief-is-true", points });
  });
  pen.shape("share", "text", { class: "prey-share", x: 150, y: 70 }, percent(Math.max(...shares)));
  return true;
}

export const kindWords = ({ name, data }) => (data?.place ? `a prey that walks along the ${data.place}` : `a ${name}`);

/** Records before views: { agents: [{ name, at, size, seen, caught? }], obstacles: [{ at, size, seen }], towers: { at, size }, radius }. */
export function fromPicture({ agents, obstacles, towers, radius }) {
  const constants = {
    agents: agents.map(({ size }) => ({ size })),
    n_predators: agents.filter((agent) => agent.caught === undefined).length,
    towers: towers.at,
    tower_size: towers.size,
    obstacle_size: obstacles[0]?.size,
    sight_radius: radius,
  };
  const view = (isShown, sees_everything) => ({
    agents: agents.map((agent) => (isShown(agent) ? { position: agent.at, is_caught: agent.caught ?? null } : null)),
    obstacles: obstacles.map((obstacle) => (isShown(obstacle) ? obstacle.at : null)),
    sees_everything,
  });
  return { constants, view: view(() => true, true), seen: view((one) => one.seen, radius === null) };
}
