// A finished encounter, step by step: the board, the agent's beliefs, a timeline, and controls.

import { BeliefPanel, isPlane, meanTrait } from "./beliefs.js";
import { boardOf } from "./board.js";
import { el, prefersNoMotion, show, signed, svg } from "./elements.js";

// Symbols as paths, because fonts lack some of them.
const ICONS = {
  back: "M11 3L5 9L11 15Z",
  next: "M7 3L13 9L7 15Z",
  first: "M4 3H6V15H4ZM14 3L7 9L14 15Z",
  last: "M12 3H14V15H12ZM4 3L11 9L4 15Z",
  play: "M5 2.5L15 9L5 15.5Z",
  pause: "M5 3H8V15H5ZM10 3H13V15H10Z",
};
const SPEEDS = [["0.5", "½ ×"], ["1", "1 ×"], ["2", "2 ×"], ["4", "4 ×"]];
const ENDING_WORDS = { finished: "over", succeeded: "succeeded", "timed-out": "out of time" };

const icon = (name) => svg("svg", { viewBox: "0 0 18 18", width: 18, height: 18, "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

export class Stepper {
  /**
   * Builds the page of an encounter in `stage`. In addition to text_game.js, a frame has `actions` and `task_reward` of the last move,
   * `taken`, the agent's next action, and the beliefs as `mind`. `about` also has the `seatNames`, `seenLabel` (of the box that hides
   * unseen parts of the state), `isGood(outcome)` and `keys`, the element whose key presses count, until `signal` is aborted.
   */
  constructor(stage, game, about, frames, signal) {
    Object.assign(this, { stage, game, about, frames, now: 0, timer: null });
    this.firsts = [];
    frames.forEach((frame, index) => { this.firsts[frame.episode] ??= index; });
    this.board = boardOf(game, about);
    this.beliefs = new BeliefPanel(game, about);
    this.build();
    const keys = about.keys ?? stage;
    keys.addEventListener("keydown", (event) => this.onKey(event), { signal });
    signal?.addEventListener("abort", () => this.stop());
    this.draw(0);
  }

  build() {
    const { stage, game, about, frames } = this;
    const button = (name, label, act) => el("button", { type: "button", "aria-label": name, title: name, onclick: act }, icon(label));
    this.when = el("p", { class: "stage-when", "aria-live": "polite" });
    this.status = el("p", { class: "status-text" });
    this.lastStep = el("p", { class: "stage-step" });
    this.range = el("input", { type: "range", min: 0, max: frames.length - 1, step: 1, value: 0, "aria-label": "Step of the encounter", oninput: () => this.go(Number(this.range.value)) });
    this.play = button("play", "play", () => this.toggle());
    this.speed = el("select", { "aria-label": "Speed" }, SPEEDS.map(([value, text]) => el("option", { value, selected: value === "1" }, text)));
    this.isSeenOnly = el("input", { type: "checkbox", onchange: () => this.draw(0) });
    const chip = (first, episode) => {
      const end = frames[(this.firsts[episode + 1] ?? frames.length) - 1];
      const isGood = about.isGood(end);
      const title = `${game.Episode} ${episode + 1}: ${ENDING_WORDS[end.ending] ?? "not finished"}, return ${signed(end.task_return)}`;
      const node = el("button", { type: "button", class: isGood ? "good" : "poor", title, "aria-label": title, onclick: () => this.go(first) }, this.firsts.length > 20 ? "" : String(episode + 1));
      node.style.setProperty("flex-grow", (this.firsts[episode + 1] ?? frames.length) - first);
      return node;
    };
    this.chips = this.firsts.map(chip);
    this.curve = this.timeline();
    show(stage, this.when, this.status, this.lastStep,
      el("div", { class: "stage-view" }, el("div", { class: "stage-board" }, this.board.node), this.beliefs.node),
      this.curve?.node, el("div", { class: "stage-strip" }, this.chips), this.range,
      el("div", { class: "stage-controls" },
        button(`previous ${game.episode}`, "first", () => this.jump(-1)),
        button("step back", "back", () => this.go(this.now - 1)),
        this.play,
        button("step forward", "next", () => this.go(this.now + 1, 180)),
        button(`next ${game.episode}`, "last", () => this.jump(1)),
        this.speed,
        el("label", { class: "stage-seen" }, this.isSeenOnly, ` ${about.seenLabel}`),
        el("span", { class: "stage-keys" }, `← → step, Page ↑↓ ${game.episode}, space plays`)));
    stage.tabIndex = 0;
  }

  go(index, ms = 0) {
    this.now = Math.max(0, Math.min(this.frames.length - 1, index));
    this.draw(prefersNoMotion() ? 0 : ms);
  }

  jump(by) {
    const { episode } = this.frames[this.now];
    // The first jump back leads to the start of the current episode.
    const to = by < 0 && this.now > this.firsts[episode] ? episode : episode + by;
    this.go(this.firsts[Math.max(to, 0)] ?? this.frames.length - 1);
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.now === this.frames.length - 1) this.go(0);
    this.setPlay("pause");
    this.tick();
  }

  tick() {
    const wait = this.game.replayDelay(this.frames[this.now]) / Number(this.speed.value);
    this.timer = setTimeout(() => {
      this.go(this.now + 1, Math.min(wait, 300));
      if (this.now === this.frames.length - 1) this.stop();
      else this.tick();
    }, wait);
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.setPlay("play");
  }

  setPlay(name) {
    show(this.play, icon(name));
    this.play.setAttribute("aria-label", name);
  }

  draw(ms) {
    const { game, about, frames, now } = this;
    const frame = frames[now];
    const first = this.firsts[frame.episode];
    const view = ({ scene, everything }) => (this.isSeenOnly.checked ? scene : everything);
    this.board.show(view(frame), frame.scene, frames.slice(first, now).map(view), now === first ? 0 : ms);
    const steps = frame.ending ? "over" : frame.n_moves === 0 ? "start" : `step ${frame.n_moves}`;
    this.when.textContent = `${game.Episode} ${frame.episode + 1} of ${about.n_episodes}, ${steps}`;
    this.status.textContent = game.tell(frame, frames[now - 1], about) ?? "";
    this.lastStep.textContent = this.stepWords(frame, now === first);
    this.beliefs.at(frames, now);
    this.range.value = now;
    this.range.setAttribute("aria-valuetext", this.when.textContent);
    this.chips.forEach((chip, episode) => chip.classList.toggle("now", episode === frame.episode));
    this.curve?.show(now);
    this.stage.dataset.step = now;
  }

  /** The actions and the reward of the last step. */
  stepWords(frame, isFirst) {
    const { about, game } = this;
    const context = frame.context === undefined ? "" : ` · context: ${frame.context} ${frame.context === 1 ? "entry" : "entries"}`;
    if (isFirst) return `A new ${game.episode} begins${context}`;
    const acted = (frame.actions ?? []).map((action, seat) => action !== null && `${about.seatNames[seat]}: ${about.action_names[action]}`).filter(Boolean);
    const parts = [frame.keypoint_visited && about.keypoint, frame.ending && ENDING_WORDS[frame.ending], `reward so far ${signed(frame.task_return)}`];
    return `${acted.join(", ")} → reward ${signed(frame.task_reward)}${parts.filter(Boolean).map((part) => ` · ${part}`).join("")}${context}`;
  }

  /** The probability of the true kind of each peer over the encounter, or of the most likely kind where the true one is not known. */
  timeline() {
    const { about, game, frames } = this;
    if (about.peers.length === 0 || !frames.some((frame) => frame.mind?.slots.length > 0)) return null;
    const [width, height] = [1000, 70];
    const x = (index) => ((index / Math.max(1, frames.length - 1)) * width).toFixed(1);
    const y = (share) => (height - 3 - share * (height - 6)).toFixed(1);
    const curves = about.peers.map((peer, slot) => {
      const isPoint = isPlane(game, peer) && peer.traits?.length === 2;
      const gap = (shares, axis) => meanTrait(peer, shares, axis) - peer.traits[axis];
      const isKnown = Number.isInteger(peer.truth);
      const certainty = isPoint ? (shares) => 1 - Math.min(1, Math.hypot(gap(shares, 0), gap(shares, 1))) : isKnown ? (shares) => shares[peer.truth] : (shares) => Math.max(...shares);
      const name = isPoint ? `closeness of the mean belief to the true ${peer.role} (1 − distance)` : `probability of the ${isKnown ? "true" : "most likely"} kind of ${peer.role}`;
      const points = frames.map(({ mind }, index) => mind?.slots[slot] && `${x(index)} ${y(certainty(mind.slots[slot]))}`).filter(Boolean);
      return { name, line: svg("path", { class: `stage-line line-${slot}`, d: `M${points.join("L")}` }) };
    });
    const edges = this.firsts.slice(1).map((first) => svg("path", { class: "stage-edge", d: `M${x(first - 0.5)} 0V${height}` }));
    const cursor = svg("path", { class: "stage-cursor", d: `M0 0V${height}` });
    const onclick = (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      this.go(Math.round(((event.clientX - box.left) / box.width) * (frames.length - 1)));
    };
    const node = el("div", { class: "stage-timeline" },
      el("p", { class: "stage-legend" }, "Over the encounter: ", curves.map(({ name }, slot) => el("span", { class: `key-${slot}` }, name))),
      svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "stage-curve", "aria-hidden": "true", onclick }, edges, curves.map(({ line }) => line), cursor));
    return { node, show: (now) => cursor.setAttribute("d", `M${x(now)} 0V${height}`) };
  }

  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || (event.target instanceof Element && event.target.closest("select, input:not([type=range])"))) return;
    const isButton = event.target instanceof Element && event.target.closest("button, a");
    const acts = {
      ArrowRight: () => this.go(this.now + 1, 180),
      ArrowLeft: () => this.go(this.now - 1, 180),
      PageDown: () => this.jump(1),
      PageUp: () => this.jump(-1),
      Home: () => this.go(0),
      End: () => this.go(this.frames.length - 1),
    };
    [acts.l, acts.h] = [acts.ArrowRight, acts.ArrowLeft];
    if (!isButton) acts[" "] = () => this.toggle();
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}
