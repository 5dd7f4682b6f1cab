// At the table: shows frames one after the other, takes the person's actions, keeps the beat where all choose at once.

import { Connection } from "./connection.js";
import { announce, el, isStill, note, notice, sentence, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { MindPanel } from "./mind.js";
import { summaryView } from "./summary.js";

const BEATS = [["0", "step on my key"], ["1", "1 step a second"], ["2", "2 steps a second"], ["3", "3 steps a second"], ["5", "5 steps a second"], ["8", "8 steps a second"]];

export function openTable(main, introduction, options) {
  return new Table(main, introduction, options);
}

class Table {
  /** `options`: `onLeave`, `onGone` (the encounter is not there), `onOver` (instead of the summary), `beat`, `note`. */
  constructor(main, introduction, options) {
    this.main = main;
    this.options = options;
    this.isSpectator = introduction.type === "watch";
    this.queue = [];
    this.rate = 0;
    this.isReady = true;
    this.keys = (event) => this.onKey(event);
    show(main, el("p", { class: "quiet" }, "Sitting down …"));
    this.connection = new Connection(introduction, {
      welcome: (message) => this.onWelcome(message),
      frames: (message) => this.onFrames(message),
      refused: (message) => this.onRefused(message),
      over: (message) => this.onOver(message),
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
    this.drawing?.stop?.();
    document.removeEventListener("keydown", this.keys);
    document.removeEventListener("keyup", this.keys);
  }

  onWelcome(welcome) {
    const isFirst = !this.welcome;
    this.welcome = welcome;
    this.seq = welcome.seq;
    this.isWaiting = false;
    this.outcomes = welcome.outcomes.slice();
    this.game = gameOf(welcome.game);
    if (isFirst) this.build();
    // After a lost connection only now counts.
    this.queue = [];
    clearTimeout(this.timer);
    this.timer = null;
    // The last frame may end an episode that the outcomes have already; it must not be counted twice.
    this.outcomes.length = Math.min(this.outcomes.length, welcome.frames[0].episode);
    this.enqueue(welcome.frames);
  }

  build() {
    const { welcome, game } = this;
    const seat = game.seats?.[welcome.role] ?? welcome.role;
    document.title = `PACE · ${game.name}`;
    note(this.options.note ?? (this.isSpectator ? `watching a game of ${game.name}` : ""));
    this.drawing = game.createDrawing(welcome.setting, { slot: welcome.slot, isSpectator: this.isSpectator });
    this.where = el("span", { class: "where" });
    this.tally = el("div", { class: "tally", role: "img" });
    this.words = el("p", { class: "say" });
    this.controls = el("div", {});
    this.scene = el("div", { class: "scene" }, this.drawing.node);
    this.mind = welcome.mind === "live" ? new MindPanel(welcome) : null;
    const card = el("section", { class: "card", "aria-label": "Game" },
      el("div", { class: "head" },
        el("h1", {}, this.isSpectator ? `${seat} and ${welcome.label}` : `You and ${welcome.label}`),
        this.where, game.partView?.(welcome.part, welcome)),
      el("div", { class: game.isPad && !this.isSpectator ? "with-pad" : "" }, this.scene, this.words, this.controls), this.tally, this.toolbar());
    show(this.main, el("div", { class: `play${this.mind ? "" : " alone"}` }, card, this.mind?.node));
    this.main.focus({ preventScroll: true });
  }

  toolbar() {
    const { welcome } = this;
    const items = [];
    if (welcome.is_simultaneous && !this.isSpectator) {
      if (this.options.beat !== undefined) this.setBeat(this.options.beat);
      else {
        const kept = sessionStorage.getItem(`pace-beat-${welcome.game}`) ?? this.game.beat ?? "0";
        this.setBeat(Number(kept));
        items.push(el("label", { class: "row" }, "Pace ", el("select", {
          "aria-label": "Pace",
          onchange: (event) => {
            sessionStorage.setItem(`pace-beat-${welcome.game}`, event.target.value);
            this.setBeat(Number(event.target.value));
            event.target.blur();
          },
        }, BEATS.map(([value, text]) => el("option", { value, selected: value === kept }, text)))));
      }
    }
    if (welcome.watch) {
      const done = el("span", { class: "copied", role: "status" });
      const address = `${location.origin}/watch/${welcome.watch}`;
      items.push(el("button", { type: "button", id: "watch-link", "data-link": address, onclick: () => copy(address, done) }, "Copy a link for spectators"), done);
    }
    if (this.options.onLeave) {
      items.push(el("button", { type: "button", onclick: () => this.leave() }, this.isSpectator ? "Leave" : "Leave the table"));
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
      // Who is far behind, a spectator of a hasty player, catches up.
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
    this.drawing.update(frame.scene, { ms: isNewEpisode || isStill() ? 0 : period, frame });
    if (frame.ending && this.outcomes.length === frame.episode) {
      this.outcomes.push({ task_return: frame.task_return, ending: frame.ending, n_steps: frame.n_moves });
    }
    this.where.textContent = `${this.game.episode} ${frame.episode + 1} of ${this.welcome.n_episodes}${this.game.progress?.(frame, this.welcome) ?? ""}`;
    this.drawTally();
    const text = this.game.tell(frame, before, this.welcome);
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
    // A beat would talk without end to those who listen; they hear episodes end.
    if (!(this.rate > 0) || this.frame.ending) announce(text);
  }

  drawTally() {
    const bar = (outcome) => {
      const { height, is_good } = this.game.tally(outcome, this.welcome);
      const node = el("i", {});
      node.style.setProperty("height", `${Math.max(8, height * 100)}%`);
      node.style.setProperty("background", `var(--${is_good ? "good" : "bad"})`);
      return node;
    };
    show(this.tally, this.outcomes.slice(-100).map(bar));
    this.tally.setAttribute("aria-label", this.game.tallyWords(this.outcomes, this.welcome));
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
      // A step ahead is kept where steps are many; a decision is only taken by who has seen what it is about.
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
    this.cover(el("strong", {}, `${this.game.episode} ${this.frame.episode + 1} of ${this.welcome.n_episodes}`), button, el("span", { class: "small quiet" }, "or press Enter"));
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
    const choice = this.game.choices(this.frame.scene, this.welcome).find((choice) => choice.keys.includes(event.key));
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
    const choices = this.game.choices(this.frame.scene, this.welcome);
    const isPad = Boolean(this.game.isPad);
    const key = JSON.stringify(choices.map((choice) => [choice.action, choice.label]));
    const isOpen = this.isOpen();
    if (key !== this.controlsKey) {
      this.controlsKey = key;
      const button = (choice) => {
        let isPointer = false;
        return el("button", {
          type: "button",
          class: isPad ? choice.place : choice.is_main ? "main" : "",
          "aria-label": choice.name ?? choice.label,
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
        }, choice.label, choice.hint && el("kbd", {}, choice.hint));
      };
      const focused = this.controls.contains(document.activeElement) ? document.activeElement.dataset.action : null;
      show(this.controls, el("div", { class: isPad ? "pad" : "controls" }, choices.map(button)));
      if (focused !== null) this.controls.querySelector(`[data-action="${focused}"]`)?.focus();
    }
    // A pad stays as it is: it is pressed without looking. Nothing is really disabled, for that would lose the focus.
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
      if (this.options.onGone && !this.welcome) return this.options.onGone(message);
      return notice(this.main, "This table is not here any more", message.message, el("a", { class: "button", href: "/" }, "Begin anew"));
    }
    if (!this.welcome) return this.onTurnedAway(message);
    this.isWaiting = false;
    this.pending = undefined;
    if (message.due !== null && message.due !== undefined) this.seq = message.due;
    this.words.textContent = sentence(message.message);
    announce(message.message);
    this.drawControls();
  }

  /** There was no seat for us. Where one may become free, the connection is opened again by itself. */
  onTurnedAway(message) {
    if (message.code === "full") {
      return notice(this.main, "Every table is taken", message.message, el("p", { class: "quiet" }, "This page goes on by itself as soon as there is room."));
    }
    this.stop();
    notice(this.main, "You cannot sit down here", message.message, el("button", { class: "main", onclick: () => location.reload() }, "Try again"));
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
      if (this.options.onOver) return this.options.onOver(this.over, this.welcome);
      show(this.main, summaryView(this.welcome, this.over, { onLeave: this.options.onLeave, isSpectator: this.isSpectator }));
      this.main.focus({ preventScroll: false });
      announce("The encounter is over.");
    }, this.frame?.ending ? this.game.delay(this.frame, null) : 0);
  }

  onFarewell(message) {
    const words = {
      "taken-over": ["You have gone on elsewhere", "This encounter was opened in another tab or window. It goes on there."],
      idle: ["Nobody was here", "The table was left alone for a while. Your place is kept: reload to go on."],
      refused: ["The server hung up", "Too many messages were refused. Reload to go on."],
    }[message.reason];
    if (!words) return;
    this.stop();
    notice(this.main, words[0], words[1], el("button", { class: "main", onclick: () => location.reload() }, "Go on here"));
  }
}

export async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    done.textContent = "copied";
  } catch {
    done.textContent = text;
  }
}
