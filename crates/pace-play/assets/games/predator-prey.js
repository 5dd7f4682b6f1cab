// Predator-Prey-W: agents that glide over a plane. A scene has `agents` (null when out of sight) with position, velocity and
// `is_caught`, `obstacles`, `sees_everything` and `n_steps`; the setting has sizes, towers and paths.

import { el, favourite, number, percent, svg } from "../elements.js";

export const name = "Predator-Prey-W";
export const episode = "Episode";
export const Episodes = "Episodes";
export const pitch = "Hunt together with it, or be its prey. Agents see only what is near, except from a watchtower.";
export const shorter = [1, 3];
export const isPad = true;
export const stay = 0;
export const beat = "5";
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

export const progress = (frame, welcome) => ` · step ${frame.n_moves} of ${welcome.setting.horizon_steps}`;

export function tell(frame, before, welcome) {
  const caught = frame.scene.agents.filter((agent) => agent?.is_caught).length;
  if (frame.ending === "succeeded") return `Every prey was caught, after ${frame.n_moves} steps.`;
  if (frame.ending) return "Time is up.";
  const outside = welcome.is_spectator ? null : wayBack(frame.scene.agents[welcome.slot + 1]?.position);
  if (outside) return outside;
  if (frame.scene.sees_everything) return "At a watchtower: everything is in sight.";
  const others = frame.scene.agents.map((agent, index) => (agent && index !== welcome.slot + 1 ? nameOf(index, welcome.setting) : null)).filter(Boolean);
  if (others.length > 0) return `In sight: ${others.join(", ")}.`;
  return caught > 0 ? "" : "No agent in sight.";
}

/** The way back for a player who has left the map; otherwise null. */
function wayBack(position) {
  const axis = position && Math.abs(position[0]) > Math.abs(position[1]) ? 0 : 1;
  const far = position && Math.abs(position[axis]) - EXTENT;
  if (!position || far <= 0) return null;
  const back = [["west", "east"], ["south", "north"]][axis][position[axis] > 0 ? 0 : 1];
  return `Outside the map by ${number(far, 1)}. Push ${back} to come back.`;
}

function nameOf(index, setting) {
  if (index === 0) return "the agent";
  if (index < setting.n_predators) return `predator ${index}`;
  return `prey ${"ABC"[index - setting.n_predators]}`;
}

export const delay = (frame) => (frame.ending ? 1500 : 120);
export const replayDelay = (frame) => (frame.ending ? 1200 : 180);
const share = (value) => Math.max(0, Math.min(1, 1 + value / 8));
export const tally = (outcome) => share(outcome.task_return);
export const tallyWords = (outcomes) => `After ${outcomes.length} episodes: ${outcomes.map((outcome) => number(outcome.task_return, 1)).join(", ")}.`;
export const episodeValue = (episode) => episode.task_return;
export const oracleValue = (summary) => summary.oracle;
export const valueWords = "Reward of the agent: 0 is best for it, and worst for the prey";
export const rewardWords = "Every step costs 0.1 times the distance from each prey to its nearest predator.";
/** Predators want every prey caught, prey do not. */
const isPrey = (about) => about.role.startsWith("prey");
export const isGood = (episode, about) => (episode.ending === "succeeded") !== isPrey(about);
export const verdicts = (about) => (isPrey(about) ? ["not every prey caught", "every prey caught"] : ["every prey caught", "not every prey caught"]);

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

const EXTENT = 1.32;
// There are no walls: an agent that has left the map is drawn at the edge of the picture.
const within = (coordinate) => Math.max(0.1 - EXTENT, Math.min(EXTENT - 0.1, coordinate));

export function createDrawing(setting, { slot, isReplay, isSpectator }) {
  const own = slot + 1;
  const id = `sight-${Math.random().toString(36).slice(2, 9)}`;
  const hole = svg("circle", { r: setting.sight_radius, fill: "#000" });
  const veil = svg("rect", { x: -EXTENT, y: -EXTENT, width: 2 * EXTENT, height: 2 * EXTENT, fill: "var(--fog)", opacity: 0.5, mask: `url(#${id})` });
  const rim = svg("circle", { r: setting.sight_radius, fill: "none", stroke: "var(--you)", "stroke-width": 0.006, "stroke-dasharray": "0.02 0.016" });
  const towers = setting.towers.map(([x, y]) => svg("g", { transform: `translate(${x} ${-y})` },
    svg("circle", { r: setting.tower_size + 0.075, fill: "none", stroke: "var(--counter-edge)", "stroke-width": 0.004, "stroke-dasharray": "0.012 0.012" }),
    svg("rect", { x: -0.045, y: -0.045, width: 0.09, height: 0.09, rx: 0.014, fill: "var(--counter)", stroke: "var(--counter-edge)", "stroke-width": 0.008 }),
    svg("circle", { r: 0.02, fill: "var(--card)" })));
  const points = [...new Map(setting.paths.flat().map((point) => [point.join(), point])).values()];
  const dots = points.map(([x, y]) => svg("circle", { cx: x, cy: -y, r: 0.008, fill: "var(--quiet)", opacity: 0.6 }));
  const ground = svg("rect", { x: -1, y: -1, width: 2, height: 2, rx: 0.03, fill: "var(--floor)" });
  const [rocks, trails, people] = [svg("g", {}), svg("g", {}), svg("g", {})];
  const node = svg("svg", { viewBox: `${-EXTENT} ${-EXTENT} ${2 * EXTENT} ${2 * EXTENT}`, role: "img", "aria-label": "The plane", class: "plane" },
    svg("defs", {}, svg("mask", { id }, svg("rect", { x: -EXTENT, y: -EXTENT, width: 2 * EXTENT, height: 2 * EXTENT, fill: "#fff" }), hole)),
    svg("rect", { x: -EXTENT, y: -EXTENT, width: 2 * EXTENT, height: 2 * EXTENT, rx: 0.05, fill: "var(--paper)" }), ground, dots, towers, rocks, trails, veil, people, rim);

  const body = (index) => {
    const { role, size } = setting.agents[index];
    const isOwn = index === own;
    const colour = index === 0 ? "var(--agent)" : isOwn ? "var(--you)" : role === "predator" ? "#8a6fb0" : "#4b9a6a";
    const letter = index === 0 ? "" : isOwn ? (isSpectator ? "player" : "you") : role === "predator" ? String(index) : "ABC"[index - setting.n_predators];
    const shape = role === "predator" ? svg("circle", { r: size, fill: colour }) : svg("path", { d: prey(size), fill: colour });
    const eyes = index === 0 ? [svg("circle", { cx: -0.022, cy: -0.012, r: 0.011, fill: "#fff" }), svg("circle", { cx: 0.022, cy: -0.012, r: 0.011, fill: "#fff" })] : [];
    return svg("g", {}, shape, eyes, svg("text", { y: isOwn ? -size - 0.025 : 0.022, "text-anchor": "middle", "font-size": isOwn ? 0.07 : 0.062, "font-weight": 650, fill: isOwn ? "var(--you)" : "#fff" }, letter));
  };
  const figures = setting.agents.map((_, index) => ({ node: body(index), from: null, to: null, past: [] }));
  people.append(...figures.map((figure) => figure.node).reverse());
  let clock = 0;
  let [begin, length, seesAll] = [0, 0, false];

  const draw = (part) => {
    figures.forEach((figure, index) => {
      const { from, to } = figure;
      figure.node.setAttribute("visibility", to ? "visible" : "hidden");
      if (!to) return;
      const at = from ? [0, 1].map((axis) => from[axis] + (to[axis] - from[axis]) * part) : to;
      figure.node.setAttribute("transform", `translate(${within(at[0])} ${-within(at[1])})`);
      if (index === own) for (const circle of [hole, rim]) { circle.setAttribute("cx", at[0]); circle.setAttribute("cy", -at[1]); }
    });
  };
  const step = (now) => {
    const part = length > 0 ? Math.min(1, (now - begin) / length) : 1;
    draw(part);
    if (part < 1) clock = requestAnimationFrame(step);
  };
  return {
    node,
    stop: () => cancelAnimationFrame(clock),
    update(scene, { ms = 0 } = {}) {
      cancelAnimationFrame(clock);
      scene.agents.forEach((agent, index) => {
        const figure = figures[index];
        figure.from = ms > 0 && agent ? figure.to : null;
        figure.to = agent?.position ?? null;
        if (ms === 0) figure.past = [];
        if (agent) figure.past.push(agent.position);
        figure.past = figure.past.slice(-12);
        figure.node.setAttribute("opacity", agent?.is_caught ? 0.5 : 1);
      });
      rocks.replaceChildren(...scene.obstacles.filter(Boolean).map(([x, y]) => svg("circle", { cx: x, cy: -y, r: setting.obstacle_size, fill: "var(--counter)", stroke: "var(--counter-edge)", "stroke-width": 0.008 })));
      seesAll = scene.sees_everything;
      veil.setAttribute("visibility", seesAll ? "hidden" : "visible");
      rim.setAttribute("visibility", seesAll ? "hidden" : "visible");
      const trail = (figure, index) => figure.past.length > 1 && (isReplay || index === own) && svg("polyline", { points: figure.past.map(([x, y]) => `${within(x)},${-within(y)}`).join(" "), fill: "none", stroke: index === own ? "var(--you)" : "var(--quiet)", "stroke-width": 0.008, opacity: 0.45 });
      trails.replaceChildren(...figures.map(trail).filter(Boolean));
      [begin, length] = [performance.now(), ms];
      if (ms > 0) clock = requestAnimationFrame(step);
      else draw(1);
      const seen = scene.agents.map((agent, index) => agent && index !== own && `${nameOf(index, setting)} ${way(scene.agents[own]?.position, agent.position)}`).filter(Boolean);
      node.setAttribute("aria-label", `The plane. In sight: ${seen.length > 0 ? seen.join("; ") : "no agent"}.`);
    },
  };
}

function way(from, to) {
  if (!from) return "";
  const [x, y] = [to[0] - from[0], to[1] - from[1]];
  const parts = [Math.abs(y) > 0.05 && `${Math.abs(y).toFixed(1)} ${y > 0 ? "north" : "south"}`, Math.abs(x) > 0.05 && `${Math.abs(x).toFixed(1)} ${x > 0 ? "east" : "west"}`];
  return parts.filter(Boolean).join(", ") || "here";
}

function prey(size) {
  const s = size * 1.15;
  return `M0 ${-s}L${s} 0L0 ${s}L${-s} 0z`;
}

export function picture() {
  const tower = (x, y) => svg("rect", { x, y, width: 14, height: 14, rx: 3, fill: "var(--counter)", stroke: "var(--counter-edge)" });
  return svg("svg", { viewBox: "0 0 320 170" }, tower(40, 14), tower(266, 14), tower(40, 142), tower(266, 142),
    svg("circle", { cx: 160, cy: 88, r: 26, fill: "var(--counter)", stroke: "var(--counter-edge)" }),
    svg("circle", { cx: 98, cy: 96, r: 44, fill: "none", stroke: "var(--you)", "stroke-dasharray": "4 4" }), svg("circle", { cx: 98, cy: 96, r: 13, fill: "var(--you)" }),
    svg("circle", { cx: 222, cy: 60, r: 13, fill: "var(--agent)" }), svg("path", { d: "M126 66l9 9-9 9-9-9z", fill: "#4b9a6a" }), svg("path", { d: "M252 104l9 9-9 9-9-9z", fill: "#4b9a6a" }),
    svg("path", { d: "M236 66q14 12 16 34", fill: "none", stroke: "var(--agent)", "stroke-width": 2, "stroke-dasharray": "3 4" }));
}

/** A suggestion for the player; the rules do not enforce it. */
export function partView(part) {
  if (!part) return null;
  const words = part.spec.predator ? `Suggestion: stay with prey ${"ABC"[part.spec.predator.prefers]}` : `Suggestion: walk ${part.kind.replace(/^prey on path \d+ \((.*)\)$/, "to and fro along the $1")}`;
  return el("span", { class: "order" }, words);
}

// Mind

/** The paths as sides of a small square, the preferences as bars. */
export function opinionView(slot, shares) {
  const isPrey = slot.kinds.some((kind) => kind.name.startsWith("prey on path"));
  if (!isPrey) {
    return svg("svg", { viewBox: `0 0 300 ${slot.kinds.length * 26 + 4}`, role: "img", "aria-label": slot.kinds.map((kind, index) => `${kind.name}: ${percent(shares[index])}`).join("; ") },
      slot.kinds.map((kind, index) => [
        svg("text", { x: 0, y: index * 26 + 18, "font-size": 13, fill: "var(--ink)" }, kind.name.replace("predator ", "")),
        svg("rect", { x: 110, y: index * 26 + 7, width: 140, height: 12, rx: 5, fill: "var(--line)" }),
        svg("rect", { x: 110, y: index * 26 + 7, width: 140 * shares[index], height: 12, rx: 5, fill: "var(--agent)" }),
        svg("text", { x: 298, y: index * 26 + 18, "font-size": 13, fill: "var(--quiet)", "text-anchor": "end" }, percent(shares[index]))]));
  }
  const ring = [[0.8, 0], [0.8, 0.8], [0, 0.8], [-0.8, 0.8], [-0.8, 0], [-0.8, -0.8], [0, -0.8], [0.8, -0.8]];
  const path = (index) => Number(/path (\d)/.exec(slot.kinds[index].name)[1]);
  const line = (index) => {
    const points = [0, 1, 2].map((step) => ring[(path(index) + step) % 8]);
    // Paths overlap; each lies a little further in.
    const inset = path(index) % 2 === 1 ? 1 : 0.86;
    const at = points.map(([x, y]) => `${150 + x * 92 * inset},${66 - y * 62 * inset}`).join(" ");
    return svg("polyline", { points: at, fill: "none", stroke: "var(--agent)", "stroke-width": 2 + 7 * shares[index], opacity: 0.1 + 0.9 * shares[index], "stroke-linecap": "round", "stroke-linejoin": "round" }, svg("title", {}, `${slot.kinds[index].name}: ${percent(shares[index])}`));
  };
  const best = shares.indexOf(Math.max(...shares));
  return svg("svg", { viewBox: "0 0 300 132", role: "img", "aria-label": `Most likely: ${slot.kinds[best].name}, ${percent(shares[best])}.` },
    svg("rect", { x: 58, y: 4, width: 184, height: 124, rx: 8, fill: "var(--paper)", stroke: "var(--line)" }), slot.kinds.map((_, index) => line(index)),
    svg("text", { x: 150, y: 70, "text-anchor": "middle", "font-size": 13, fill: "var(--ink)" }, percent(shares[best])));
}

export function guessWords(slot, shares) {
  const best = favourite(shares);
  if (best === null) return "No clear belief yet.";
  return `Most likely: ${kindWords(slot.kinds[best].name)} (${percent(shares[best])}).`;
}

export const kindWords = (text) => `a ${text.replace(/^prey on path \d+ \((.*)\)$/, "prey that walks along the $1")}`;
