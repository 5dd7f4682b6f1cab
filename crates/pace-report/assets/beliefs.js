// The agent's beliefs at one step: the kind of each peer, its action probabilities, its expected return, and its latent on a map.

import { drawing } from "./board.js";
import { capital, el, number, percent, show, svg } from "./elements.js";
import { penFor } from "./pen.js";

// Maximum number of kinds in a list; of more kinds, the most likely are listed.
const MAX_BARS = 10;

/** A bar chart with names. Returns its node, and `show(rows)`, where a row is { name, share, mark, note }. */
function bars(label) {
  const list = el("ol", { class: "belief-bars", "aria-label": label });
  const row = () => el("li", {}, el("span", { class: "belief-name" }), el("span", { class: "belief-track", "aria-hidden": "true" }, el("span", { class: "belief-fill" })), el("span", { class: "belief-share" }));
  return {
    node: list,
    show(rows) {
      while (list.children.length > rows.length) list.lastChild.remove();
      while (list.children.length < rows.length) list.append(row());
      rows.forEach(({ name, share, mark = "", note }, place) => {
        const [title, track, number] = list.children[place].children;
        list.children[place].className = mark;
        title.textContent = note ? `${name} · ${note}` : name;
        track.firstChild.style.setProperty("width", `${(100 * share).toFixed(1)}%`);
        number.textContent = percent(share);
      });
    },
  };
}

/** Whether two traits identify every peer, so that kinds can be shown as points of a plane. */
export function isPlane(game, peer) {
  return Boolean(game.plane) && peer.kinds.length > MAX_BARS && peer.kinds.every((kind) => kind.traits.length === 2);
}

/** The mean of a trait over the kinds of a peer. */
export function meanTrait(peer, shares, axis) {
  return peer.kinds.reduce((sum, kind, place) => sum + kind.traits[axis] * shares[place], 0);
}

/** The belief about one peer, { role, kinds, truth, traits }: `truth` is the index of its kind, null if it is of no listed kind, undefined if unknown. */
function peerBelief(game, peer, title, part) {
  const node = el("div", { class: "belief-peer" }, part(title));
  if (isPlane(game, peer)) return { node, show: plane(game, peer, node) };
  if (peer.truth === null) node.append(el("p", { class: "belief-note" }, "No training peer is of this kind; the nearest kinds are shown."));
  const figure = svg("svg", { role: "img" });
  const pen = penFor(figure);
  const list = bars(title);
  const outlined = Number.isInteger(peer.truth) && el("p", { class: "belief-note" }, "The true kind is outlined.");
  node.append(figure, ...[outlined].filter(Boolean), list.node);
  return {
    node,
    show(shares) {
      const isDrawn = Boolean(game.belief?.(pen, peer, shares));
      figure.toggleAttribute("hidden", !isDrawn);
      list.node.hidden = isDrawn;
      if (outlined) outlined.hidden = !isDrawn;
      if (isDrawn) {
        const best = shares.indexOf(Math.max(...shares));
        figure.setAttribute("aria-label", `Most likely: ${peer.kinds[best].name}, ${percent(shares[best])}.`);
        return pen.done();
      }
      const rows = peer.kinds.map(({ name }, place) => {
        const isTrue = place === peer.truth;
        return { name, share: shares[place], mark: isTrue ? "belief-true" : "", note: isTrue ? "true" : "" };
      });
      if (rows.length > MAX_BARS) rows.sort((one, other) => other.share - one.share).splice(MAX_BARS);
      list.show(rows);
    },
  };
}

/** The kinds as dots in the plane of two traits, larger if more likely; the cross is the true peer. */
function plane(game, peer, node) {
  const [left, top, side] = [46, 10, 200];
  const figure = svg("svg", { role: "img", class: "belief-plane" });
  const words = el("p", { class: "belief-note" });
  node.append(figure, words);
  const pen = penFor(figure);
  const at = ([x, y]) => [left + x * side, top + (1 - y) * side];
  return (shares) => {
    pen.view(left + side + 14, top + side + 34);
    pen.shape("frame", "rect", { class: "belief-frame", x: left, y: top, width: side, height: side });
    for (const tick of [0, 0.5, 1]) {
      const [x, y] = at([tick, tick]);
      pen.shape(`x${tick}`, "text", { class: "belief-tick", x, y: top + side + 14, "text-anchor": "middle" }, String(tick));
      pen.shape(`y${tick}`, "text", { class: "belief-tick", x: left - 6, y: y + 4, "text-anchor": "end" }, String(tick));
    }
    pen.shape("x", "text", { class: "belief-tick", x: left + side / 2, y: top + side + 29, "text-anchor": "middle" }, game.plane.x);
    pen.shape("y", "text", { class: "belief-tick", transform: `translate(10 ${top + side / 2}) rotate(-90)`, "text-anchor": "middle" }, game.plane.y);
    peer.kinds.forEach((kind, place) => {
      const [cx, cy] = at(kind.traits);
      pen.shape(`kind-${place}`, "circle", { class: "belief-seed", cx, cy, r: 1.5 });
      pen.shape(`dot-${place}`, "circle", { class: "belief-dot", cx, cy, r: Math.min(14, Math.sqrt(shares[place]) * 26).toFixed(1) });
    });
    const mean = [0, 1].map((axis) => meanTrait(peer, shares, axis));
    const [cx, cy] = at(mean).map((place) => place.toFixed(1));
    pen.shape("mean", "circle", { class: "belief-mean", cx, cy, r: 5 });
    const isKnown = peer.traits?.length === 2;
    if (isKnown) {
      const [x, y] = at(peer.traits);
      pen.shape("truth", "path", { class: "belief-cross", d: `M${x - 6} ${y}h12M${x} ${y - 6}v12` });
    }
    pen.done();
    const text = ([x, y]) => `${number(x)}, ${number(y)}`;
    figure.setAttribute("aria-label", `Mean belief: ${text(mean)} (${game.plane.x}, ${game.plane.y}).`);
    words.textContent = `Dots are the training peers, larger if more likely; the ring is their mean, ${text(mean)}.${isKnown ? ` The cross is the true peer: ${text(peer.traits)}.` : ""}`;
  };
}

export class BeliefPanel {
  /**
   * `about`: an encounter with the `peers` that the agent has beliefs about, the `level` of the panel's heading (default: 2), and
   * optionally `map()`, a promise of the map of its latents.
   */
  constructor(game, about) {
    this.game = game;
    this.about = about;
    this.frames = [];
    const { peers, slot, level = 2 } = about;
    const part = (text) => el(`h${level + 1}`, { class: "belief-part" }, text);
    // The player's slot comes first.
    const order = [...peers.keys()].sort((one, other) => (other === slot) - (one === slot));
    this.first = order[0];
    this.lead = el("p", { class: "lead" }, "This agent does not model its peers.");
    const title = (role, isOwn) => `belief about ${isOwn ? about.person.you + (peers.length > 1 ? ` (${role})` : "") : role}`;
    this.peers = order.map((index) => ({ index, ...peerBelief(game, peers[index], capital(title(peers[index].role, index === slot)), part) }));
    this.whichAction = el("p", { class: "belief-note" });
    this.actions = bars("Action probabilities");
    this.value = el("div", {});
    this.mapNode = el("div", {});
    this.valueSection = el("section", { hidden: true }, part("Expected return"), this.value,
      el("p", { class: "belief-note" }, `Estimate of the agent’s discounted reward from this step to the end of the encounter. ${game.rewardWords}`));
    this.mapSection = el("section", { hidden: true }, part("Latent space"), this.mapNode);
    this.node = el("div", { class: "beliefs", role: "group", "aria-label": "The agent’s beliefs" },
      el(`h${level}`, { class: "belief-title" }, "What the agent believes"),
      el("section", {}, this.lead, this.peers.map((peer) => peer.node)),
      el("section", {}, part("Action probabilities"), this.whichAction, this.actions.node),
      this.valueSection, this.mapSection);
    about.map?.().then((map) => {
      this.map = map;
      this.drawMap();
    });
  }

  add(frame) {
    this.at([...this.frames, frame], this.frames.length);
  }

  /** Shows the frame with this index; the frames before it are the past. */
  at(frames, index) {
    this.frames = frames.slice(0, index + 1);
    const now = frames[index];
    if (!now.mind) return;
    const { slots, probabilities } = now.mind;
    const { game, about } = this;
    for (const peer of this.peers) {
      peer.node.hidden = !slots[peer.index];
      if (slots[peer.index]) peer.show(slots[peer.index]);
    }
    const own = slots[this.first];
    if (own) this.lead.textContent = game.guessWords(about.peers[this.first], own, about);
    // With simultaneous moves, a frame contains the agent's next decision. In turns, it contains the last one until the agent is to act.
    const isNext = game.isAgentNext(now.scene, about);
    this.whichAction.textContent = !probabilities ? "No decision: the episode is over." : isNext ? "Its next action." : "Its last action.";
    this.actions.show((probabilities ?? []).map((share, action) => {
      const isTaken = action === now.taken;
      return { name: game.actionNames?.[action] ?? about.action_names[action], share, mark: isTaken ? "belief-taken" : "", note: isTaken ? "taken" : "" };
    }));
    this.drawValue();
    this.drawMap();
  }

  drawValue() {
    const values = this.frames.map((frame) => frame.mind?.value).filter((value) => value !== null && value !== undefined).slice(-160);
    this.valueSection.hidden = values.length === 0;
    if (values.length === 0) return;
    const [low, high] = [Math.min(...values, 0), Math.max(...values, 0)];
    const y = (value) => 54 - ((value - low) / Math.max(high - low, 1e-6)) * 48;
    const x = (index) => 4 + (index / Math.max(values.length - 1, 1)) * 272;
    const last = values.at(-1);
    const points = values.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    show(this.value, svg("svg", { viewBox: "0 0 330 60", role: "img", "aria-label": `Expected return: ${number(last)}.` },
      svg("path", { class: "belief-zero", d: `M4 ${y(0)}H276` }),
      svg("polyline", { class: "belief-line", points }),
      svg("circle", { class: "belief-now", cx: x(values.length - 1), cy: y(last), r: 3.5 }),
      svg("text", { class: "belief-value", x: 284, y: y(last) + 4 }, number(last))));
  }

  drawMap() {
    const trail = this.frames.map((frame) => frame.mind?.place).filter(Boolean);
    this.mapSection.hidden = !this.map || trail.length === 0;
    if (this.mapSection.hidden) return;
    const { landmarks, kinds, slots } = this.map;
    const all = [...landmarks.map((landmark) => landmark.place), ...trail];
    const [[left, width], [bottom, height]] = [0, 1].map((axis) => {
      const values = all.map((place) => place[axis]);
      const low = Math.min(...values);
      return [low, Math.max(Math.max(...values) - low, 1e-6)];
    });
    const at = ([x, y]) => [10 + ((x - left) / width) * 280, 210 - ((y - bottom) / height) * 200];
    const { slot, person } = this.about;
    const names = slots[slot]?.kinds.map((kind) => kind.name) ?? [...new Set(kinds.map((tuple) => tuple[slot]))];
    const hue = (name) => `hsl(${Math.round((names.indexOf(name) / names.length) * 330)} 55% 48%)`;
    const colour = (name) => this.game.kindColour(slots[slot]?.kinds.find((kind) => kind.name === name)) ?? hue(name);
    const label = "The agent’s latent space: training peers as dots, this encounter as a line.";
    show(this.mapNode, drawing((pen) => {
      pen.view(300, 220);
      pen.shape("frame", "rect", { class: "belief-frame", x: 0.5, y: 0.5, width: 299, height: 219, rx: 8 });
      landmarks.forEach(({ place, progress, tuple }, index) => {
        const [cx, cy] = at(place);
        const fill = colour(kinds[tuple][slot]);
        pen.shape(`landmark-${index}`, "circle", { cx, cy, r: 2 + 2 * progress, fill, opacity: 0.25 + 0.45 * progress });
      });
      const points = trail.map((place) => at(place).map((part) => part.toFixed(1)));
      pen.shape("trail", "polyline", { class: "belief-trail", points: points.join(" ") });
      pen.shape("now", "circle", { class: "belief-here", cx: points.at(-1)[0], cy: points.at(-1)[1], r: 6 });
      return label;
    }), el("p", { class: "belief-note" }, `Dots: training peers, larger later in the encounter. Line: ${person.you}.`));
  }
}
