// The first page: choose a game, an agent, a seat and a length, then play.

import { drawing } from "./board.js";
import { ask } from "./connection.js";
import { el, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { note, notice } from "./notices.js";
import { openSession } from "./session_page.js";

const KEPT = "pace-session";
const CHOSEN = "pace-choice";

export function openLobby(main, offers) {
  const kept = sessionStorage.getItem(KEPT);
  if (kept) return play(main, offers, kept);
  choose(main, offers);
}

/** The request of the last session in this tab, as far as its agent is still offered; otherwise null. */
function lastChoice(offers) {
  const choice = JSON.parse(sessionStorage.getItem(CHOSEN) ?? "null");
  return choice && offers.offers.some((offer) => offer.id === choice.offer) ? choice : null;
}

function choose(main, offers) {
  note("");
  document.title = "PACE · play";
  const last = lastChoice(offers);
  // The last choice first, then a trained agent, whose run was named on the command line.
  let chosen = offers.offers.find((offer) => offer.id === last?.offer) ?? offers.offers.find((offer) => offer.is_trained) ?? offers.offers[0];
  const form = el("form", { class: "card stack" });
  const draw = () => show(form, details(offers, chosen, last, (id) => {
    chosen = offers.offers.find((offer) => offer.id === id);
    draw();
    form.elements.offer.focus();
  }));
  const cards = offers.games.map((entry) => {
    const { thumbnail, pitch } = gameOf({ ...entry, game: entry.id });
    return el("label", { class: "card game" },
      el("input", { type: "radio", name: "game", value: entry.id, checked: entry.id === chosen.game, "aria-label": entry.title,
        onchange: () => { chosen = offers.offers.find((offer) => offer.game === entry.id); draw(); } }),
      el("div", { class: "picture" }, drawing(thumbnail)),
      el("div", { class: "words" }, el("h2", {}, entry.title), el("p", {}, pitch)));
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    begin(main, offers, {
      offer: fields.get("offer"),
      slot: Number(fields.get("slot") ?? 0),
      n_episodes: Number(fields.get("n_episodes")),
      mind: fields.get("mind"),
    });
  });
  draw();
  show(main,
    el("h1", {}, "Meet an agent that adapts to you"),
    el("p", { class: "quiet" }, "You take the place of one of its peers. The agent has never played with you and adapts to you within a few episodes."),
    el("fieldset", { class: "games", "aria-label": "Game" }, cards),
    form);
}

/** The form for an agent. The last choice is selected again if it was of the same game. */
function details(offers, chosen, before, onAgent) {
  const last = offers.offers.find((offer) => offer.id === before?.offer)?.game === chosen.game ? before : null;
  const entry = offers.games.find(({ id }) => id === chosen.game);
  const { seats, rules, mindNote, shorter, usual, episode, episodes } = gameOf({ ...entry, game: entry.id });
  const list = offers.offers.filter((offer) => offer.game === chosen.game);
  const { n_episodes: whole, roles } = chosen;
  const lengths = [...new Set([...shorter, whole])].filter((n) => n <= whole);
  // In one episode no agent can adapt, so the whole encounter is the default, or a part of it in which adaptation can be seen.
  const length = [last?.n_episodes, usual, whole].find((n) => lengths.includes(n));
  const select = (name, label, options, selected, more) => el("label", { class: "field" }, el("span", {}, label),
    el("select", { name, "aria-label": label, ...more }, options.map(([value, text]) => el("option", { value, selected: value === selected }, text))));
  return [
    el("div", { class: "choices" },
      select("offer", "Agent", list.map((offer) => [offer.id, offer.label]), chosen.id, { onchange: (event) => onAgent(event.target.value) }),
      roles.length > 1 && select("slot", "Your seat", roles.map((role, slot) => [String(slot), seats[role] ?? role]), String(last?.slot ?? 0)),
      select("n_episodes", "Length", lengths.map((n) => [String(n), `${n} ${n === 1 ? episode : episodes}`]), String(length)),
      select("mind", "The agent’s beliefs", [["after", "show them afterwards"], ["live", "show them while I play"]], last?.mind),
      el("button", { class: "main", type: "submit" }, "Start")),
    mindNote && el("p", { class: "small quiet" }, mindNote),
    rules.length > 0 && el("div", {}, el("h2", {}, "Rules"), el("div", { class: "rules small" }, rules.map((text) => el("p", {}, text)))),
  ];
}

async function begin(main, offers, choice) {
  sessionStorage.removeItem(KEPT);
  sessionStorage.setItem(CHOSEN, JSON.stringify(choice));
  try {
    const { token } = await ask("/api/sessions", choice);
    sessionStorage.setItem(KEPT, token);
    play(main, offers, token);
  } catch (error) {
    const back = el("button", { class: "main", onclick: () => choose(main, offers) }, "Back");
    notice(main, error.code === "full" ? "No free place" : "The session could not start", error.message, back);
  }
}

function play(main, offers, token) {
  const leave = () => {
    sessionStorage.removeItem(KEPT);
    choose(main, offers);
  };
  const choice = lastChoice(offers);
  const again = choice && (() => begin(main, offers, choice));
  openSession(main, { type: "hello", token }, { onLeave: leave, onGone: leave, onAgain: again });
}
