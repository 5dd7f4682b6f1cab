// A study, stage by stage: consent, tutorial, encounters, questions, code. The server knows where a participant is.

import { drawing } from "./board.js";
import { ask } from "./connection.js";
import { el, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { note, notice, sentence } from "./notices.js";
import { openSession } from "./session_page.js";
import { summaryCard } from "./summary.js";

export async function openStudy(main) {
  const query = new URLSearchParams(location.search);
  const id = (...names) => names.map((name) => query.get(name)).find(Boolean) ?? "";
  const participant = id("participant", "PROLIFIC_PID");
  if (!participant) {
    return notice(main, "This link is incomplete",
      "It has no participant id. Please use the link that you were given; a complete link ends in /study?participant=ID, with your own id in the place of ID.");
  }
  try {
    const state = await ask("/api/study/join", { participant, study: id("study", "STUDY_ID"), session: id("session", "SESSION_ID"), key: id("key") });
    new StudyPages(main, state.token).show(state);
  } catch (error) {
    notice(main, "You cannot take part right now", error.message, el("button", { class: "main", onclick: () => location.reload() }, "Try again"));
  }
}

class StudyPages {
  constructor(main, token) {
    this.main = main;
    this.token = token;
  }

  async next(stage, more = {}) {
    try {
      this.show(await ask("/api/study/next", { token: this.token, stage, ...more }));
    } catch (error) {
      const words = this.main.querySelector("[role=alert]");
      if (words) words.textContent = sentence(error.message);
      else notice(this.main, "This step could not be saved", error.message, el("button", { class: "main", onclick: () => location.reload() }, "Continue"));
    }
  }

  show(state) {
    this.state = state;
    document.title = state.title;
    note(state.title);
    this.game = gameOf({ ...state, title: state.game_title });
    this[state.stage]();
    this.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  page(...children) {
    show(this.main, el("section", { class: "card narrow stack" }, children, el("p", { role: "alert", class: "bad" })));
  }

  paragraphs(text) {
    return text.split(/\n\s*\n/).filter((part) => part.trim()).map((part) => el("p", {}, part.trim()));
  }

  consent() {
    this.page(el("h1", {}, this.state.title), el("div", {}, this.paragraphs(this.state.consent)),
      el("div", { class: "row" },
        el("button", { onclick: () => this.next("consent", { consents: true }) }, "I agree and want to take part"),
        el("button", { onclick: () => this.next("consent", { consents: false }) }, "I do not want to take part")));
  }

  declined() {
    this.page(el("h1", {}, "Thank you"), el("p", {}, "You have chosen not to take part. Nothing more is recorded, and you can close this page."));
  }

  tutorial() {
    const { game } = this;
    this.page(el("h1", {}, `The rules of ${game.title}`), el("div", { class: "picture" }, drawing(game.thumbnail)),
      el("div", {}, game.rules.map((text) => el("p", {}, text)), this.paragraphs(this.state.tutorial)),
      el("div", { class: "row" }, el("button", { class: "main", onclick: () => this.next("tutorial") }, "I understand. Begin")));
  }

  play() {
    const { number, n_encounters: n, steps_per_second: beat } = this.state;
    openSession(this.main, { type: "hello", token: this.token }, {
      note: `${this.state.title} · round ${number + 1} of ${n}`,
      beat: this.game.isPad ? beat ?? 0 : undefined,
      onOver: (over, about) => this.between(number, n, over, about),
      onGone: () => location.reload(),
    });
  }

  between(number, n, over, about) {
    const isLast = number + 1 === n;
    // Where the study shows participants the agent's beliefs.
    const replay = over.link && el("p", {}, el("a", { href: `/replay#${encodeURIComponent(over.link)}`, target: "_blank" }, "See the agent’s beliefs in a new tab"));
    this.page(el("h1", {}, `Round ${number + 1} of ${n} is done`), over.summary && summaryCard(about, over.summary, this.game), replay,
      el("p", {}, isLast ? "That was the last round." : "In the next round you may meet another agent. Take a break if you like."),
      el("div", { class: "row" }, el("button", { class: "main", onclick: () => this.next("play", { number }) }, isLast ? "Continue" : "Next round")));
  }

  questions() {
    const fields = this.state.questions.map((question) => el("fieldset", { class: "question" }, el("legend", {}, question.text, question.is_optional && el("span", { class: "quiet small" }, " (optional)")), field(question)));
    const form = el("form", {
      onsubmit: (event) => {
        event.preventDefault();
        this.next("questions", { answers: read(this.state.questions, new FormData(form)) });
      },
    }, fields, el("button", { class: "main", type: "submit" }, "Send"));
    this.page(el("h1", {}, "A few questions"), form);
  }

  finished() {
    this.page(el("h1", {}, "Thank you for taking part"), el("p", {}, "This is your completion code:"),
      el("p", {}, el("span", { class: "code", id: "code" }, this.state.code)), el("p", { class: "quiet" }, "You can close this page now."));
  }
}

function field(question) {
  const radio = (value, text) => el("label", {}, el("input", { type: "radio", name: question.id, value, required: !question.is_optional }), text);
  if (question.kind === "scale") {
    const points = Array.from({ length: question.points }, (_, index) => String(index + 1));
    return el("div", { class: "scale" }, el("span", {}, question.low), points.map((point) => radio(point, point)), el("span", {}, question.high));
  }
  if (question.kind === "choice") return el("div", { class: "pick" }, question.choices.map((choice) => radio(choice, choice)));
  return el("textarea", { name: question.id, maxlength: 4000, required: !question.is_optional, "aria-label": question.text });
}

function read(questions, form) {
  const answers = {};
  for (const question of questions) {
    const value = form.get(question.id);
    if (value === null || value === "") continue;
    answers[question.id] = question.kind === "scale" ? Number(value) : value;
  }
  return answers;
}
