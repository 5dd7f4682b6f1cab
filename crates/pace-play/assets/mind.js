// The panel of the agent's beliefs: probabilities of each peer's kind, action probabilities, expected return, and its latent on a map.

import { ask, bars, el, number, percent, personOf, show, svg } from "./elements.js";
import { gameOf } from "./games/index.js";

const maps = new Map();

/** The map of an agent's latent space; null if it has none. */
function mapOf(offer) {
  if (!maps.has(offer)) {
    const isMap = (map) => (map.landmarks.length > 0 ? map : null);
    maps.set(offer, ask(`/api/offers/${encodeURIComponent(offer)}/map`).then(isMap, () => null));
  }
  return maps.get(offer);
}

export class MindPanel {
  /** `about` has offer, game, slot, action_names, mind_slots, is_simultaneous and, for spectators, is_spectator. */
  constructor(about) {
    this.about = about;
    this.game = gameOf(about.game);
    this.person = personOf(about.is_spectator);
    this.frames = [];
    this.guess = el("p", { class: "lead" });
    this.opinions = el("div", { class: "stack" });
    this.actions = el("div", {});
    this.decision = el("p", { class: "small quiet" });
    this.value = el("div", {});
    this.place = el("div", {});
    this.node = el("aside", { class: "card mind", "aria-label": "The agent’s beliefs" },
      el("h2", {}, "What the agent believes"),
      el("section", {}, this.guess, this.opinions),
      el("section", {}, el("h3", {}, "Action probabilities"), this.decision, this.actions),
      this.valueSection = el("section", { hidden: true }, el("h3", {}, "Expected return"), this.value,
        el("p", { class: "small quiet" }, `Estimate of the agent’s discounted reward from this step to the end of the encounter. ${this.game.rewardWords}`)),
      this.placeSection = el("section", { hidden: true }, el("h3", {}, "Latent space"), this.place));
    mapOf(about.offer).then((map) => {
      this.map = map;
      if (this.frames.length > 0) this.drawPlace();
    });
  }

  add(frame) {
    this.frames.push(frame);
    this.draw();
  }

  /** Shows this moment, with everything before it as the past. */
  at(frames, index) {
    this.frames = frames.slice(0, index + 1);
    this.draw();
  }

  draw() {
    const now = this.frames.at(-1);
    const mind = now?.mind;
    if (!mind) return;
    this.drawOpinions(mind);
    // Where all choose at once, a frame comes with the agent's next decision. In turns it keeps the last one until the agent is to act.
    const isNext = this.game.isAgentNext?.(now.scene) ?? this.about.is_simultaneous;
    this.decision.textContent = !mind.probabilities ? "No decision: the episode is over." : isNext ? "Its next action." : "Its last action.";
    show(this.actions, mind.probabilities && bars(mind.probabilities.map((share, action) => [this.game.actionNames?.[action] ?? this.about.action_names[action], share])));
    this.drawValue();
    this.drawPlace();
  }

  drawOpinions(mind) {
    const slots = this.about.mind_slots;
    if (slots.length === 0) {
      this.guess.textContent = "This agent does not model its peers.";
      return;
    }
    const own = slots[this.about.slot];
    const shares = mind.slots[this.about.slot];
    const best = shares.indexOf(Math.max(...shares));
    this.guess.textContent = this.game.guessWords?.(own, shares, this.about) ?? `Most likely: ${own.kinds[best].name} (${percent(shares[best])}).`;
    const order = [this.about.slot, ...slots.keys()].filter((slot, index, all) => all.indexOf(slot) === index);
    show(this.opinions, order.map((slot) => el("div", {},
      slots.length > 1 && el("h3", {}, slot === this.about.slot ? `${this.person.you} (${slots[slot].role})` : slots[slot].role),
      this.game.opinionView?.(slots[slot], mind.slots[slot]) ?? likeliest(slots[slot], mind.slots[slot]))));
  }

  drawValue() {
    const values = this.frames.map((frame) => frame.mind?.value).filter((value) => value !== null && value !== undefined);
    this.valueSection.hidden = values.length === 0;
    if (values.length === 0) return;
    const shown = values.slice(-160);
    const [low, high] = [Math.min(...shown, 0), Math.max(...shown, 0)];
    const span = Math.max(high - low, 1e-6);
    const y = (value) => 54 - ((value - low) / span) * 48;
    const x = (index) => 4 + (index / Math.max(shown.length - 1, 1)) * 272;
    const line = shown.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    show(this.value, svg("svg", { viewBox: "0 0 330 60", role: "img", "aria-label": `Expected return: ${number(values.at(-1))}.` },
      svg("line", { x1: 4, x2: 276, y1: y(0), y2: y(0), stroke: "var(--line)" }),
      svg("polyline", { points: line, fill: "none", stroke: "var(--agent)", "stroke-width": 2, "stroke-linejoin": "round" }),
      svg("circle", { cx: x(shown.length - 1), cy: y(shown.at(-1)), r: 3.5, fill: "var(--agent)" }),
      svg("text", { x: 284, y: y(shown.at(-1)) + 4, fill: "var(--ink)", "font-size": 13 }, number(values.at(-1)))));
  }

  drawPlace() {
    const trail = this.frames.map((frame) => frame.mind?.place).filter(Boolean);
    this.placeSection.hidden = !this.map || trail.length === 0;
    if (this.placeSection.hidden) return;
    const { landmarks, kinds, slots } = this.map;
    const all = [...landmarks.map((landmark) => landmark.place), ...trail];
    const range = (axis) => {
      const values = all.map((place) => place[axis]);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      return [low, Math.max(high - low, 1e-6)];
    };
    const [[left, width], [bottom, height]] = [range(0), range(1)];
    const at = ([x, y]) => [10 + ((x - left) / width) * 280, 210 - ((y - bottom) / height) * 200];
    const slot = this.about.slot;
    const names = slots[slot]?.kinds.map((kind) => kind.name) ?? [...new Set(kinds.map((tuple) => tuple[slot]))];
    const colour = (name) => this.game.kindColour?.(slots[slot]?.kinds.find((kind) => kind.name === name)) ?? hue(names.indexOf(name), names.length);
    const dots = landmarks.map((landmark) => {
      const [cx, cy] = at(landmark.place);
      const name = kinds[landmark.tuple][slot];
      return svg("circle", { cx, cy, r: 2 + 2 * landmark.progress, fill: colour(name), opacity: 0.25 + 0.45 * landmark.progress }, svg("title", {}, name));
    });
    const points = trail.map(at);
    const [cx, cy] = points.at(-1);
    show(this.place, svg("svg", { viewBox: "0 0 300 220", role: "img", "aria-label": "The agent’s latent space: training peers as dots, this encounter as a line." },
      svg("rect", { x: 0.5, y: 0.5, width: 299, height: 219, rx: 8, fill: "var(--paper)", stroke: "var(--line)" }), dots,
      svg("polyline", { points: points.map((point) => point.map((value) => value.toFixed(1)).join(",")).join(" "), fill: "none", stroke: "var(--ink)", "stroke-width": 1.4, opacity: 0.65 }),
      svg("circle", { cx, cy, r: 6, fill: "var(--you)", stroke: "var(--card)", "stroke-width": 2 })),
      el("p", { class: "small quiet" }, `Dots: training peers, larger later in the encounter. Line: ${this.person.you}.`));
  }
}

function hue(index, n) {
  return `hsl(${Math.round((index / Math.max(n, 1)) * 330)} 55% 48%)`;
}

/** The few kinds that are most likely. */
export function likeliest(slot, shares, most = 5) {
  const ranked = slot.kinds.map((kind, index) => [kind.name, shares[index]]).sort((one, other) => other[1] - one[1]);
  return bars(ranked.slice(0, most));
}
