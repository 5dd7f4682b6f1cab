// A replay: an encounter step by step, with a scrubber, seen from the player's seat or with everything in sight.

import { announce, ask, el, isStill, note, notice, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { MindPanel } from "./mind.js";
import { summaryCard } from "./summary.js";

/** Shows the replay of a link until `signal` is aborted. */
export async function openReplay(main, link, signal) {
  show(main, el("p", { class: "quiet" }, "Loading the replay …"));
  let replay;
  try {
    replay = await ask("/api/replay", { link });
  } catch (error) {
    if (!signal.aborted) notice(main, "This replay cannot be shown", error.message, el("a", { class: "button", href: "/" }, "To the games"));
    return;
  }
  if (!signal.aborted) new Replay(main, replay, signal);
}

class Replay {
  constructor(main, replay, signal) {
    this.replay = replay;
    this.game = gameOf(replay.game);
    this.index = 0;
    this.showsAll = true;
    document.title = `PACE · replay of ${this.game.name}`;
    note(`replay · ${this.game.name} with ${replay.label}`);
    const last = replay.frames.length - 1;
    this.drawing = this.game.createDrawing(replay.setting, { slot: replay.slot, isReplay: true });
    this.where = el("span", { class: "where" });
    this.words = el("p", { class: "say" });
    this.range = el("input", { type: "range", min: 0, max: last, value: 0, "aria-label": "Moment", oninput: () => this.go(Number(this.range.value)) });
    this.playButton = el("button", { type: "button", class: "main", onclick: () => this.toggle() }, "Play");
    this.eyes = el("button", { type: "button", "aria-pressed": "false", onclick: () => { this.showsAll = !this.showsAll; this.draw(0); } }, "Only what you saw");
    const jump = (step) => el("button", { type: "button", "aria-label": `${this.game.episode} ${step > 0 ? "forward" : "back"}`, onclick: () => this.jump(step) }, step > 0 ? "›" : "‹");
    this.mind = new MindPanel(replay);
    show(main, el("div", { class: "play" },
      el("section", { class: "card", "aria-label": "Replay" },
        el("div", { class: "head" }, el("h1", {}, `Replay: you and ${replay.label}`), this.where, this.game.partView?.(replay.part, replay)),
        el("div", { class: "scene" }, this.drawing.node), this.words,
        el("div", { class: "scrub" }, this.range,
          el("div", { class: "row" }, jump(-1), this.playButton, jump(1), this.eyes,
            el("label", { class: "row small" }, "Speed ", this.speed = el("select", { "aria-label": "Speed" },
              [["0.5", "½ ×"], ["1", "1 ×"], ["2", "2 ×"], ["4", "4 ×"]].map(([value, text]) => el("option", { value, selected: value === "1" }, text)))))),
      ),
      this.mind.node),
      el("div", { class: "stack narrow" }, el("h1", {}, "Summary"), summaryCard(replay, replay.summary, this.game)));
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    signal.addEventListener("abort", () => this.stop());
    this.draw(0);
    main.focus({ preventScroll: true });
  }

  stop() {
    clearTimeout(this.timer);
    this.drawing.stop?.();
  }

  draw(ms) {
    const frame = this.replay.frames[this.index];
    const before = this.replay.frames[this.index - 1];
    this.range.value = this.index;
    this.drawing.update(this.showsAll ? frame.everything : frame.scene, { ms: isStill() ? 0 : ms, frame });
    this.where.textContent = `${this.game.episode} ${frame.episode + 1} of ${this.replay.n_episodes}${this.game.progress?.(frame, this.replay) ?? ""}`;
    this.range.setAttribute("aria-valuetext", this.where.textContent);
    this.words.textContent = this.game.tell(frame, before, this.replay) ?? "";
    this.eyes.setAttribute("aria-pressed", String(!this.showsAll));
    this.mind.at(this.replay.frames, this.index);
  }

  go(index, ms = 0) {
    this.index = Math.max(0, Math.min(this.replay.frames.length - 1, index));
    this.draw(ms);
  }

  jump(step) {
    const { frames } = this.replay;
    const first = (episode) => frames.findIndex((frame) => frame.episode === episode);
    const { episode } = frames[this.index];
    const target = step > 0 ? first(episode + 1) : this.index > first(episode) ? first(episode) : first(episode - 1);
    if (target >= 0) this.go(target);
  }

  toggle() {
    this.isPlaying = !this.isPlaying;
    if (this.isPlaying && this.index === this.replay.frames.length - 1) this.go(0);
    this.playButton.textContent = this.isPlaying ? "Pause" : "Play";
    if (this.isPlaying) this.step();
    else clearTimeout(this.timer);
  }

  step() {
    if (this.index === this.replay.frames.length - 1) {
      this.toggle();
      return announce("The replay is over.");
    }
    const frame = this.replay.frames[this.index];
    const wait = (this.game.replayDelay?.(frame) ?? 350) / Number(this.speed.value);
    this.timer = setTimeout(() => {
      const isSame = this.replay.frames[this.index + 1].episode === frame.episode;
      this.go(this.index + 1, isSame ? Math.min(wait, 300) : 0);
      if (this.isPlaying) this.step();
    }, wait);
  }

  onKey(event) {
    const isField = event.target instanceof Element && event.target.closest("input, select, textarea, button, a");
    if (isField || event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowRight: 1, ArrowLeft: -1, l: 1, h: -1 };
    if (event.key in moves) this.go(this.index + moves[event.key]);
    else if (event.key === " ") this.toggle();
    else return;
    event.preventDefault();
  }
}
