// A session: shows frames one after the other, takes the player's actions, keeps the beat where all choose at once.

import { Beliefs } from "./beliefs.js";
import { boardOf, drawing } from "./board.js";
import { Connection } from "./connection.js";
import { el, isStill, show } from "./elements.js";
import { encounterOf } from "./encounter.js";
import { gameOf } from "./games/index.js";
import { announce, copy, note, notice, sentence } from "./notices.js";
import { summaryView } from "./summary.js";

const BEATS = [["0", "one step per key press"], ["1", "1 step a second"], ["2", "2 steps a second"], ["3", "3 steps a second"], ["5", "5 steps a second"], ["8", "8 steps a second"]];

export function openSession(main, introduction, options) {
  return new SessionPage(main, introduction, options);
}

/** The part that the player is given. */
export function partView(game, { part }) {
  const words = game.partWords(part);
  return words && el("span", { class: "order" }, part && game.drawPart && drawing((pen) => game.drawPart(pen, part)), words);
}

class SessionPage {
  /** `options`: `onLeave`, `onAgain`, `onGone` (the encounter is not there), `onOver` (instead of the summary), `beat`, `note`. */
  constructor(main, introduction, options) {
    this.main = main;
    this.options = options;
    this.isSpectator = introduction.type === "watch";
    this.queue = [];
    this.rate = 0;
    this.isReady = true;
    this.keys = (event) => this.onKey(event);
    show(main, el("p", { class: "quiet" }, "Connecting …"));
    this.connection = new Connection(introduction, {
      welcome: (message) => this.onWelcome(message),
      frames: (message) => this.onFrames(message),
      refused: (message) => this.onRefused(message),
      over: (message) => this.onOver(message),
      presence: (message) => this.onPresence(message),
      farewell: (message) => this.onFarewell(message),
    });
    document.addEventListener("keydown", this.keys);
    document.addEventListener("keyup", this.keys);
  }

  leave() {
    this.stop();
    this.options.onLeave?.();
  }

  stop() {
    this.connection.close();
    clearTimeout(this.timer);
    clearInterval(this.beatTimer);
    document.removeEventListener("keydown", this.keys);
    document.removeEventListener("keyup", this.keys);
  }

  onWelcome(welcome) {
    const isFirst = !this.about;
    this.about = encounterOf(welcome);
    this.seq = welcome.seq;
    this.isWaiting = false;
    this.outcomes = welcome.outcomes.slice();
    this.game = gameOf(welcome);
    if (isFirst) this.build();
    // After a lost connection only now counts.
    this.queue = [];
    clearTimeout(this.timer);
    this.timer = null;
    // The last frame may end an episode that the outcomes have already; it must not be counted twice.
    this.outcomes.length = Math.min(this.outcomes.length, welcome.frames[0].episode);
    this.enqueue(welcome.frames);
    this.onPresence(welcome);
  }

  /** Tells a spectator that the player is away, until they are back. */
  onPresence(message) {
    this.presence.textContent = message.is_player_here === false && !this.over ? "The player is not connected. This page continues when they are back." : "";
  }

  build() {
    const { about, game } = this;
    const seat = game.seats[about.role] ?? about.role;
    document.title = `PACE · ${game.title}`;
    note(this.options.note ?? (this.isSpectator ? `spectator · ${game.title}` : ""));
    this.board = boardOf(game, about);
    this.where = el("span", { class: "where" });
    this.tally = el("div", { class: "tally", role: "img" });
    this.words = el("p", { class: "say" });
    this.presence = el("p", { class: "small quiet presence", role: "status" });
    this.controls = el("div", {});
    this.scene = el("div", { class: "scene" }, this.board.node);
    this.mind = about.mind === "live" ? new Beliefs(game, about) : null;
    const card = el("section", { class: "card", "aria-label": "Game" },
      el("div", { class: "head" },
        el("h1", {}, `${about.person.You} and ${about.label}`), this.isSpectator && el("span", {}, seat),
        this.where, partView(game, about)),
      el("div", { class: game.isPad && !this.isSpectator ? "with-pad" : "" }, this.scene, this.words, this.controls), this.presence, this.tally, this.toolbar());
    show(this.main, el("div", { class: `play${this.mind ? "" : " alone"}` }, card, this.mind && el("div", { class: "card" }, this.mind.node)));
    this.main.focus({ preventScroll: true });
  }

  toolbar() {
    const { about } = this;
    const items = [];
    // A beat needs an action for a step in which no key is held.
    if (about.is_simultaneous && this.game.stay !== undefined && !this.isSpectator) {
      if (this.options.beat !== undefined) this.setBeat(this.options.beat);
      else {
        const kept = sessionStorage.getItem(`pace-beat-${about.game}`) ?? this.game.beat;
        this.setBeat(Number(kept));
        items.push(el("label", { class: "row" }, "Speed ", el("select", {
          "aria-label": "Speed",
          onchange: (event) => {
            sessionStorage.setItem(`pace-beat-${about.game}`, event.target.value);
            this.setBeat(Number(event.target.value));
            event.target.blur();
          },
        }, BEATS.map(([value, text]) => el("option", { value, selected: value === kept }, text)))));
      }
    }
    if (about.watch) {
      const done = el("span", { class: "copied", role: "status" });
      const address = `${location.origin}/watch/${about.watch}`;
      items.push(el("button", { type: "button", id: "watch-link", "data-link": address, onclick: () => copy(address, done) }, "Copy a link for spectators"), done);
    }
    if (this.options.onLeave) {
      items.push(el("button", { type: "button", onclick: () => this.leave() }, "Leave"));
    }
    return items.length > 0 ? el("div", { class: "toolbar" }, items) : null;
  }

  setBeat(rate) {
    this.rate = rate;
    clearInterval(this.beatTimer);
    this.isReady = rate === 0;
    if (rate > 0) {
      this.beatTimer = setInterval(() => this.onBeat(), 1000 / rate);
      if (this.frame) this.askReady();
    } else this.cover(null);
  }

  // Frames

  enqueue(frames) {
    this.queue.push(...frames);
    if (!this.timer) this.next();
  }

  next() {
    this.timer = null;
    const frame = this.queue.shift();
    if (frame) {
      this.showFrame(frame);
      // A spectator of a fast player catches up.
      const wait = this.queue.length > 6 ? 60 : this.game.delay(frame, this.queue[0]);
      if (this.queue.length > 0) this.timer = setTimeout(() => this.next(), wait);
      else this.settled();
    }
  }

  showFrame(frame) {
    const before = this.frame;
    this.frame = frame;
    const isNewEpisode = !before || before.episode !== frame.episode;
    const period = this.rate > 0 ? 1000 / this.rate : 180;
    if (isNewEpisode) this.past = [];
    this.board.show(frame.scene, frame.scene, this.past, isNewEpisode || isStill() ? 0 : Math.min(period, 180));
    this.past.push(frame.scene);
    if (frame.ending && this.outcomes.length === frame.episode) {
      this.outcomes.push({ task_return: frame.task_return, ending: frame.ending });
    }
    this.where.textContent = `${this.game.Episode} ${frame.episode + 1} of ${this.about.n_episodes}${this.game.progress(frame, this.about)}`;
    this.drawTally();
    const text = this.game.tell(frame, before, this.about);
    this.speak(text);
    if (frame.mind) this.mind?.add(frame);
    if (isNewEpisode && before && this.rate > 0) {
      this.isReady = false;
      this.askReady();
    }
    this.drawControls();
  }

  speak(text) {
    if (text === null) return;
    this.words.textContent = text;
    // On a beat a screen reader would never stop; only the ends of episodes are announced.
    if (!(this.rate > 0) || this.frame.ending) announce(text);
  }

  drawTally() {
    const bar = (outcome) => {
      const node = el("i", {});
      node.style.setProperty("height", `${Math.max(8, this.game.tally(outcome, this.about) * 100)}%`);
      node.style.setProperty("background", `var(--${this.game.isGood(outcome, this.about) ? "good" : "bad"})`);
      return node;
    };
    show(this.tally, this.outcomes.slice(-100).map(bar));
    this.tally.setAttribute("aria-label", this.game.tallyWords(this.outcomes, this.about));
  }

  settled() {
    if (this.over) return this.finish();
    if (this.rate > 0 && !this.isReady && this.frame.is_asked) this.askReady();
    this.drawControls();
    if (this.pending !== undefined && this.isOpen() && !(this.rate > 0)) {
      const action = this.pending;
      this.pending = undefined;
      this.act(action);
    }
  }

  // Acting

  /** Whether an action would be taken now. */
  isOpen() {
    return !this.isSpectator && this.isReady && !this.isWaiting && !this.over && this.queue.length === 0 && Boolean(this.frame?.is_asked);
  }

  act(action) {
    if (!this.isOpen()) {
      // A key press ahead of the frame is kept on a pad; a decision of a turn is taken only after its frame was shown.
      if (!this.isSpectator && this.game.isPad) this.pending = action;
      return;
    }
    this.isWaiting = true;
    this.connection.act(this.seq, action);
    this.drawControls();
  }

  onBeat() {
    if (!this.isOpen()) return;
    const action = this.pending ?? this.held ?? this.game.stay;
    this.pending = undefined;
    this.act(action);
  }

  askReady() {
    if (this.isSpectator || this.over) return;
    const begin = () => {
      this.isReady = true;
      this.cover(null);
      this.drawControls();
    };
    this.begin = begin;
    const button = el("button", { class: "main", type: "button", onclick: begin }, "Ready");
    this.cover(el("strong", {}, `${this.game.Episode} ${this.frame.episode + 1} of ${this.about.n_episodes}`), button, el("span", { class: "small quiet" }, "or press Enter"));
  }

  cover(...children) {
    this.scene?.querySelector(".cover")?.remove();
    if (children[0]) this.scene.append(el("div", { class: "cover" }, children));
    else this.begin = null;
  }

  onKey(event) {
    const isField = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (isField || event.ctrlKey || event.metaKey || event.altKey || !this.frame) return;
    const isButton = event.target instanceof Element && event.target.closest("button, a");
    const isPress = event.key === "Enter" || event.key === " ";
    if (this.begin && isPress && !isButton && event.type === "keydown") {
      event.preventDefault();
      return this.begin();
    }
    // Space and Enter press the button that has the focus.
    if (isButton && isPress) return;
    if (event.type === "keydown" && isPress && this.queue.length > 0) {
      event.preventDefault();
      return this.hurry();
    }
    const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const choice = this.game.choices(this.frame.scene, this.about).find((choice) => choice.keys.includes(pressed));
    if (!choice || this.isSpectator) return;
    event.preventDefault();
    if (event.type === "keydown") this.press(choice.action);
    else this.release(choice.action);
  }

  press(action) {
    if (this.rate > 0) {
      this.pending = action;
      this.held = action;
      return;
    }
    this.act(action);
  }

  release(action) {
    if (this.held === action) this.held = undefined;
  }

  hurry() {
    clearTimeout(this.timer);
    this.next();
  }

  drawControls() {
    if (this.isSpectator || !this.frame) return show(this.controls);
    const choices = this.game.choices(this.frame.scene, this.about);
    const { isPad } = this.game;
    const key = JSON.stringify(choices.map((choice) => [choice.action, choice.label]));
    const isOpen = this.isOpen();
    if (key !== this.controlsKey) {
      this.controlsKey = key;
      const button = (choice) => {
        let isPointer = false;
        return el("button", {
          type: "button",
          class: isPad && choice.place,
          "aria-label": choice.name,
          "aria-keyshortcuts": choice.keys.map((key) => (key === " " ? "Space" : key)).join(" "),
          "data-action": choice.action,
          onpointerdown: () => { isPointer = true; this.press(choice.action); },
          onpointerup: () => this.release(choice.action),
          onpointercancel: () => this.release(choice.action),
          onpointerleave: () => this.release(choice.action),
          // A press by keyboard or by an assistive program comes without a pointer.
          onclick: () => {
            if (!isPointer) { this.press(choice.action); this.release(choice.action); }
            isPointer = false;
          },
        }, choice.label, !isPad && choice.keys.length > 0 && el("kbd", { "aria-hidden": "true" }, choice.keys[0].toUpperCase()));
      };
      const focused = this.controls.contains(document.activeElement) ? document.activeElement.dataset.action : null;
      show(this.controls, el("div", { class: isPad ? "pad" : "controls" }, choices.map(button)));
      if (focused !== null) this.controls.querySelector(`[data-action="${focused}"]`)?.focus();
    }
    // A pad never changes its look: it is pressed without looking. Nothing is really disabled, for that would lose the focus.
    if (!isPad) for (const node of this.controls.querySelectorAll("button")) node.setAttribute("aria-disabled", String(!isOpen));
  }

  // The server

  onFrames(message) {
    this.seq = message.seq;
    this.isWaiting = false;
    this.enqueue(message.frames);
  }

  onRefused(message) {
    if (message.code === "no-such-session") {
      this.stop();
      if (this.options.onGone && !this.about) return this.options.onGone(message);
      return notice(this.main, "This session has ended", message.message, el("a", { class: "button", href: "/" }, "New session"));
    }
    if (!this.about) return this.onTurnedAway(message);
    this.isWaiting = false;
    this.pending = undefined;
    if (message.due !== null && message.due !== undefined) this.seq = message.due;
    this.words.textContent = sentence(message.message);
    announce(message.message);
    this.drawControls();
  }

  /** The server has no place for this client. When it is full, the connection is tried again until a place is free. */
  onTurnedAway(message) {
    if (message.code === "full") {
      return notice(this.main, "No free place", message.message, el("p", { class: "quiet" }, "The page continues when a place is free."));
    }
    this.stop();
    notice(this.main, "You cannot join this session", message.message, el("button", { class: "main", onclick: () => location.reload() }, "Try again"));
  }

  onOver(message) {
    this.over = message;
    if (this.queue.length === 0 && !this.timer) this.finish();
  }

  finish() {
    if (this.isFinished) return;
    this.isFinished = true;
    clearInterval(this.beatTimer);
    this.cover(null);
    this.timer = setTimeout(() => {
      this.stop();
      if (this.options.onOver) return this.options.onOver(this.over, this.about);
      show(this.main, summaryView(this.about, this.over, this.game, this.options));
      this.main.focus({ preventScroll: false });
      announce("The encounter is over.");
    }, this.frame?.ending ? this.game.delay(this.frame, null) : 0);
  }

  onFarewell(message) {
    const words = {
      "taken-over": ["Opened in another window", "This encounter was opened in another tab or window and continues there."],
      idle: ["Disconnected after inactivity", "There was no action for a while. Your place is kept: reload to continue."],
      refused: ["Disconnected by the server", "Too many messages were refused. Reload to continue."],
    }[message.reason];
    if (!words) return;
    this.stop();
    notice(this.main, words[0], words[1], el("button", { class: "main", onclick: () => location.reload() }, "Continue here"));
  }
}
