// The page of a session: shows frames one after the other, and sends the player's actions. With simultaneous moves it can run at a fixed speed.

import { BeliefPanel } from "./beliefs.js";
import { boardOf, drawing } from "./board.js";
import { Connection } from "./connection.js";
import { el, prefersNoMotion, show } from "./elements.js";
import { encounterOf } from "./encounter.js";
import { gameOf } from "./games/index.js";
import { announce, copyButton, notice, reloadButton, sentence, setHeading } from "./notices.js";
import { summaryPage } from "./summary.js";

const SPEEDS = [["0", "one step per key press"], ["1", "1 step a second"], ["2", "2 steps a second"], ["3", "3 steps a second"], ["5", "5 steps a second"], ["8", "8 steps a second"]];
// Time in which figures move to their new positions.
const MAX_GLIDE_MS = 180;
// Pages for the reasons of a farewell.
const FAREWELLS = {
  "taken-over": ["Opened in another window", "This encounter was opened in another tab or window and continues there."],
  idle: ["Disconnected after inactivity", "There was no action for a while. Your place is kept: reload to continue."],
  refused: ["Disconnected by the server", "Too many messages were refused. Reload to continue."],
};

/** The role that is assigned to the player, as words and a drawing. */
export function assignedRole(game, { part }) {
  const words = game.partWords(part);
  return words && el("span", { class: "assigned-role" }, part && game.drawPart && drawing((pen) => game.drawPart(pen, part)), words);
}

export class SessionPage {
  /**
   * `first`: the first message of the connection. `options`: `onLeave`, `onAgain` (another session), `onGone` (the session does not exist),
   * `onOver` (instead of the summary), `speed` (steps per second, instead of the player's choice), `heading`.
   */
  constructor(main, first, options) {
    this.main = main;
    this.options = options;
    this.isSpectator = first.type === "watch";
    // Frames that are not shown yet.
    this.queue = [];
    // Steps per second; 0: a step per key press.
    this.speed = 0;
    this.isReady = true;
    this.onKeyEvent = (event) => this.onKey(event);
    show(main, el("p", { class: "quiet" }, "Connecting …"));
    this.connection = new Connection(first, {
      welcome: (message) => this.onWelcome(message),
      frames: (message) => this.onFrames(message),
      refused: (message) => this.onRefused(message),
      over: (message) => this.onOver(message),
      presence: (message) => this.onPresence(message),
      farewell: (message) => this.onFarewell(message),
    });
    document.addEventListener("keydown", this.onKeyEvent);
    document.addEventListener("keyup", this.onKeyEvent);
  }

  stop() {
    this.connection.close();
    clearTimeout(this.timer);
    clearInterval(this.stepTimer);
    document.removeEventListener("keydown", this.onKeyEvent);
    document.removeEventListener("keyup", this.onKeyEvent);
  }

  onWelcome(welcome) {
    const isFirst = !this.about;
    this.about = encounterOf(welcome);
    this.seq = welcome.seq;
    this.isWaiting = false;
    this.game = gameOf(welcome);
    if (isFirst) this.build();
    // After a lost connection, frames that were not shown yet are skipped.
    this.queue = [];
    clearTimeout(this.timer);
    this.timer = null;
    // If the first frame ends an episode, showing it adds the outcome again.
    this.outcomes = welcome.outcomes.slice(0, welcome.frames[0].episode);
    this.enqueue(welcome.frames);
    this.onPresence(welcome);
  }

  /** Tells a spectator whether the player is away. */
  onPresence(message) {
    this.presence.textContent = message.is_player_here === false && !this.over ? "The player is not connected. This page continues when they are back." : "";
  }

  build() {
    const { about, game, options } = this;
    document.title = `PACE · ${game.title}`;
    setHeading(options.heading ?? (this.isSpectator ? `spectator · ${game.title}` : ""));
    this.board = boardOf(game, about);
    this.position = el("span", { class: "position" });
    this.outcomeBars = el("div", { class: "outcome-bars", role: "img" });
    this.status = el("p", { class: "status-text" });
    this.presence = el("p", { class: "small quiet presence", role: "status" });
    this.controls = el("div", {});
    this.scene = el("div", { class: "scene" }, this.board.node);
    this.beliefs = about.mind === "live" ? new BeliefPanel(game, about) : null;
    const card = el("section", { class: "card", "aria-label": "Game" },
      el("div", { class: "head" },
        el("h1", {}, `${about.person.You} and ${about.label}`), this.isSpectator && el("span", {}, game.seats[about.role] ?? about.role),
        this.position, assignedRole(game, about)),
      el("div", { class: game.isPad && !this.isSpectator ? "with-pad" : "" }, this.scene, this.status, this.controls), this.presence, this.outcomeBars, this.toolbar());
    show(this.main, el("div", { class: `play${this.beliefs ? "" : " alone"}` }, card, this.beliefs && el("div", { class: "card" }, this.beliefs.node)));
    this.main.focus({ preventScroll: true });
  }

  toolbar() {
    const { about, game, options } = this;
    const leave = () => { this.stop(); options.onLeave(); };
    const items = [
      // A fixed speed needs an action for steps without a key press.
      about.is_simultaneous && game.stay !== undefined && !this.isSpectator && this.speedControl(),
      about.watch && copyButton("Copy a link for spectators", `${location.origin}/watch/${about.watch}`, { id: "watch-link", "data-link": `${location.origin}/watch/${about.watch}` }),
      options.onLeave && el("button", { type: "button", onclick: leave }, "Leave"),
    ].filter(Boolean);
    return items.length > 0 && el("div", { class: "toolbar" }, items);
  }

  /** The selection of the speed; null if the speed is given. */
  speedControl() {
    const key = `pace-speed-${this.about.game}`;
    const speed = this.options.speed ?? sessionStorage.getItem(key) ?? this.game.speed;
    this.setSpeed(Number(speed));
    const onchange = ({ target }) => {
      sessionStorage.setItem(key, target.value);
      this.setSpeed(Number(target.value));
      target.blur();
    };
    return this.options.speed === undefined && el("label", { class: "row" }, "Speed ",
      el("select", { "aria-label": "Speed", onchange }, SPEEDS.map(([value, text]) => el("option", { value, selected: value === speed }, text))));
  }

  setSpeed(speed) {
    this.speed = speed;
    clearInterval(this.stepTimer);
    this.isReady = speed === 0;
    this.setCover(null);
    if (speed === 0) return;
    this.stepTimer = setInterval(() => this.onStepTimer(), 1000 / speed);
    if (this.frame) this.askReady();
  }

  // Frames

  enqueue(frames) {
    this.queue.push(...frames);
    if (!this.timer) this.next();
  }

  next() {
    this.timer = null;
    const frame = this.queue.shift();
    if (!frame) return;
    this.showFrame(frame);
    if (this.queue.length === 0) return this.onQueueEmpty();
    // A spectator catches up with a fast player.
    const wait = this.queue.length > 6 ? 60 : this.game.delay(frame, this.queue[0]);
    this.timer = setTimeout(() => this.next(), wait);
  }

  showFrame(frame) {
    const { about, game, frame: before } = this;
    const isNewEpisode = before?.episode !== frame.episode;
    this.frame = frame;
    if (isNewEpisode) this.past = [];
    const glide = this.speed > 0 ? Math.min(1000 / this.speed, MAX_GLIDE_MS) : MAX_GLIDE_MS;
    this.board.show(frame.scene, frame.scene, this.past, isNewEpisode || prefersNoMotion() ? 0 : glide);
    this.past.push(frame.scene);
    if (frame.ending && this.outcomes.length === frame.episode) this.outcomes.push(frame);
    this.position.textContent = `${game.Episode} ${frame.episode + 1} of ${about.n_episodes}${game.progress(frame, about)}`;
    this.drawOutcomes();
    this.status.textContent = game.tell(frame, before, about);
    // At a fixed speed a screen reader could not keep up; only the ends of episodes are announced.
    if (this.speed === 0 || frame.ending) announce(this.status.textContent);
    if (frame.mind) this.beliefs?.add(frame);
    if (isNewEpisode && before && this.speed > 0) {
      this.isReady = false;
      this.askReady();
    }
    this.drawControls();
  }

  /** A bar per finished episode. */
  drawOutcomes() {
    const { about, game, outcomes } = this;
    show(this.outcomeBars, outcomes.slice(-100).map((outcome) => {
      const bar = el("i", {});
      bar.style.setProperty("height", `${Math.max(8, game.tally(outcome, about) * 100)}%`);
      bar.style.setProperty("background", `var(--${game.isGood(outcome, about) ? "good" : "bad"})`);
      return bar;
    }));
    this.outcomeBars.setAttribute("aria-label", game.tallyWords(outcomes, about));
  }

  onQueueEmpty() {
    if (this.over) return this.finish();
    if (this.speed > 0 && !this.isReady && this.frame.is_asked) this.askReady();
    this.drawControls();
    if (this.pending !== undefined && this.speed === 0) this.act(this.takePending());
  }

  // Actions

  /** Whether the server expects an action now. */
  isOpen() {
    return !this.isSpectator && this.isReady && !this.isWaiting && !this.over && this.queue.length === 0 && Boolean(this.frame?.is_asked);
  }

  act(action) {
    if (this.isOpen()) {
      this.isWaiting = true;
      this.connection.send({ type: "act", seq: this.seq, action, at_ms: Date.now() });
      this.drawControls();
    } else if (!this.isSpectator && this.game.isPad) {
      // With a pad, a key press ahead of the frame counts for the next step. In turns, a decision needs its frame first.
      this.pending = action;
    }
  }

  takePending() {
    const action = this.pending;
    this.pending = undefined;
    return action;
  }

  onStepTimer() {
    if (this.isOpen()) this.act(this.takePending() ?? this.held ?? this.game.stay);
  }

  /** At a fixed speed, waits for the player before an episode. */
  askReady() {
    if (this.isSpectator || this.over) return;
    const begin = () => {
      this.isReady = true;
      this.setCover(null);
      this.drawControls();
    };
    this.setCover(begin, el("strong", {}, `${this.game.Episode} ${this.frame.episode + 1} of ${this.about.n_episodes}`),
      el("button", { class: "main", type: "button", onclick: begin }, "Ready"), el("span", { class: "small quiet" }, "or press Enter"));
  }

  /** Covers the board until `begin` is called by button or key; null removes the cover. */
  setCover(begin, ...children) {
    this.begin = begin;
    this.scene.querySelector(".cover")?.remove();
    if (begin) this.scene.append(el("div", { class: "cover" }, children));
  }

  onKey(event) {
    const isIn = (selector) => event.target instanceof Element && event.target.closest(selector);
    if (isIn("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey || !this.frame) return;
    const isPress = event.key === "Enter" || event.key === " ";
    // Space and Enter press the button that has the focus.
    if (isPress && isIn("button, a")) return;
    const isDown = event.type === "keydown";
    if (isPress && isDown && (this.begin || this.queue.length > 0)) {
      event.preventDefault();
      return this.begin ? this.begin() : this.skipDelay();
    }
    const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const choice = this.game.choices(this.frame.scene, this.about).find((choice) => choice.keys.includes(pressed));
    if (!choice || this.isSpectator) return;
    event.preventDefault();
    if (isDown) this.press(choice.action);
    else this.release(choice.action);
  }

  press(action) {
    if (this.speed === 0) return this.act(action);
    this.pending = action;
    this.held = action;
  }

  release(action) {
    if (this.held === action) this.held = undefined;
  }

  skipDelay() {
    clearTimeout(this.timer);
    this.next();
  }

  drawControls() {
    if (this.isSpectator || !this.frame) return;
    const { isPad } = this.game;
    const choices = this.game.choices(this.frame.scene, this.about);
    const key = JSON.stringify(choices.map(({ action, label }) => [action, label]));
    if (key !== this.controlsKey) {
      this.controlsKey = key;
      const focused = this.controls.contains(document.activeElement) ? document.activeElement.dataset.action : null;
      show(this.controls, el("div", { class: isPad ? "pad" : "controls" }, choices.map((choice) => this.actionButton(choice))));
      if (focused !== null) this.controls.querySelector(`[data-action="${focused}"]`)?.focus();
    }
    // The look of a pad never changes. Buttons are not really disabled, which would lose the focus.
    if (!isPad) for (const node of this.controls.querySelectorAll("button")) node.setAttribute("aria-disabled", String(!this.isOpen()));
  }

  actionButton({ action, label, name, keys, place }) {
    const { isPad } = this.game;
    const release = () => this.release(action);
    let isPointer = false;
    return el("button", {
      type: "button",
      class: isPad && place,
      "aria-label": name,
      "aria-keyshortcuts": keys.map((key) => (key === " " ? "Space" : key)).join(" "),
      "data-action": action,
      onpointerdown: () => { isPointer = true; this.press(action); },
      onpointerup: release,
      onpointercancel: release,
      onpointerleave: release,
      // A click by keyboard or by assistive technology comes without a pointer.
      onclick: () => {
        if (!isPointer) { this.press(action); release(); }
        isPointer = false;
      },
    }, label, !isPad && keys.length > 0 && el("kbd", { "aria-hidden": "true" }, keys[0].toUpperCase()));
  }

  // Other messages of the server

  onFrames(message) {
    this.seq = message.seq;
    this.isWaiting = false;
    this.enqueue(message.frames);
  }

  onRefused({ code, due, message }) {
    if (code === "no-such-session") {
      this.stop();
      if (this.options.onGone && !this.about) return this.options.onGone();
      return notice(this.main, "This session has ended", message, el("a", { class: "button", href: "/" }, "New session"));
    }
    if (!this.about) return this.onNotAdmitted(code, message);
    this.isWaiting = false;
    this.pending = undefined;
    this.seq = due ?? this.seq;
    this.status.textContent = sentence(message);
    announce(message);
    this.drawControls();
  }

  /** The server refuses the connection. If it is full, the connection tries again until a place is free. */
  onNotAdmitted(code, message) {
    if (code === "full") return notice(this.main, "No free place", message, el("p", { class: "quiet" }, "The page continues when a place is free."));
    this.stop();
    notice(this.main, "You cannot join this session", message, reloadButton("Try again"));
  }

  onOver(message) {
    this.over = message;
    if (this.queue.length === 0 && !this.timer) this.finish();
  }

  finish() {
    if (this.isFinished) return;
    this.isFinished = true;
    clearInterval(this.stepTimer);
    this.setCover(null);
    this.timer = setTimeout(() => {
      this.stop();
      if (this.options.onOver) return this.options.onOver(this.over, this.about);
      show(this.main, summaryPage(this.about, this.over, this.game, this.options));
      this.main.focus({ preventScroll: false });
      announce("The encounter is over.");
    }, this.frame.ending ? this.game.delay(this.frame, null) : 0);
  }

  onFarewell({ reason }) {
    const words = FAREWELLS[reason];
    if (!words) return;
    this.stop();
    notice(this.main, ...words, reloadButton("Continue here"));
  }
}
