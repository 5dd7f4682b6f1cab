// The pages of a study, one per stage: consent, tutorial, encounters, questions, code. The server knows the stage of a participant.

import { drawing } from "./board.js";
import { ask } from "./connection.js";
import { el, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { notice, reloadButton, sentence, setHeading } from "./notices.js";
import { SessionPage } from "./session_page.js";
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
    notice(main, "You cannot take part right now", error.message, reloadButton("Try again"));
  }
}

/** The pages; the method with the name of a stage shows its page. */
class StudyPages {
  constructor(main, token) {
    this.main = main;
    this.token = token;
  }

  /** Completes a stage. */
  async next(stage, more = {}) {
    try {
      this.show(await ask("/api/study/next", { token: this.token, stage, ...more }));
    } catch (error) {
      const alert = this.main.querySelector("[role=alert]");
      if (alert) alert.textContent = sentence(error.message);
      else notice(this.main, "This step could not be saved", error.message, reloadButton("Continue"));
    }
  }

  show(state) {
    this.state = state;
    document.title = state.title;
    setHeading(state.title);
    this.game = gameOf({ ...state, title: state.game_title });
    this[state.stage]();
    this.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  page(title, ...children) {
    show(this.main, el("section", { class: "card narrow stack" }, el("h1", {}, title), children, el("p", { role: "alert", class: "bad" })));
  }

  paragraphs(text) {
    return text.split(/\n\s*\n/).filter((part) => part.trim()).map((part) => el("p", {}, part.trim()));
  }

  consent() {
    const answer = (consents, text) => el("button", { onclick: () => this.next("consent", { consents }) }, text);
    this.page(this.state.title, el("div", {}, this.paragraphs(this.state.consent)),
      el("div", { class: "row" }, answer(true, "I agree and want to take part"), answer(false, "I do not want to take part")));
  }

  declined() {
    this.page("Thank you", el("p", {}, "You have chosen not to take part. Nothing more is recorded, and you can close this page."));
  }

  tutorial() {
    const { game } = this;
    this.page(`The rules of ${game.title}`, el("div", { class: "picture" }, drawing(game.thumbnail)),
      el("div", {}, game.rules.map((text) => el("p", {}, text)), this.paragraphs(this.state.tutorial)),
      el("div", { class: "row" }, el("button", { class: "main", onclick: () => this.next("tutorial") }, "I understand. Begin")));
  }

  play() {
    const { title, number, n_encounters: n, steps_per_second: speed } = this.state;
    new SessionPage(this.main, { type: "hello", token: this.token }, {
      heading: `${title} · round ${number + 1} of ${n}`,
      speed: this.game.isPad ? speed ?? 0 : undefined,
      onOver: (over, about) => this.afterRound(number, n, over, about),
      onGone: () => location.reload(),
    });
  }

  afterRound(number, n, over, about) {
    const isLast = number + 1 === n;
    // Only a study that shows the beliefs sends a summary and a link.
    const replay = over.link && el("p", {}, el("a", { href: `/replay#${encodeURIComponent(over.link)}`, target: "_blank" }, "See the agent’s beliefs in a new tab"));
    this.page(`Round ${number + 1} of ${n} is done`, over.summary && summaryCard(about, over.summary, this.game), replay,
      el("p", {}, isLast ? "That was the last round." : "In the next round you may meet another agent. Take a break if you like."),
      el("div", { class: "row" }, el("button", { class: "main", onclick: () => this.next("play", { number }) }, isLast ? "Continue" : "Next round")));
  }

  questions() {
    const { questions } = this.state;
    const fields = questions.map((question) => el("fieldset", { class: "question" }, el("legend", {}, question.text, question.is_optional && el("span", { class: "quiet small" }, " (optional)")), field(question)));
    const onsubmit = (event) => {
      event.preventDefault();
      this.next("questions", { answers: answersOf(questions, new FormData(event.target)) });
    };
    this.page("A few questions", el("form", { onsubmit }, fields, el("button", { class: "main", type: "submit" }, "Send")));
  }

  finished() {
    this.page("Thank you for taking part", el("p", {}, "This is your completion code:"),
      el("p", {}, el("span", { class: "code", id: "code" }, this.state.code)), el("p", { class: "quiet" }, "You can close this page now."));
  }
}

function field({ id, text, kind, is_optional, points, low, high, choices }) {
  const required = !is_optional;
  const radio = (value, label) => el("label", {}, el("input", { type: "radio", name: id, value, required }), label);
  if (kind === "scale") {
    const numbers = Array.from({ length: points }, (_, index) => String(index + 1));
    return el("div", { class: "scale" }, el("span", {}, low), numbers.map((value) => radio(value, value)), el("span", {}, high));
  }
  if (kind === "choice") return el("div", { class: "pick" }, choices.map((choice) => radio(choice, choice)));
  return el("textarea", { name: id, maxlength: 4000, required, "aria-label": text });
}

/** The answers by question, without the unanswered questions. */
function answersOf(questions, form) {
  const given = questions.filter(({ id }) => form.get(id));
  return Object.fromEntries(given.map(({ id, kind }) => [id, kind === "scale" ? Number(form.get(id)) : form.get(id)]));
}
