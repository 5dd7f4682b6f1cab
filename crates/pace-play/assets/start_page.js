// The first page: the choice of game, agent, seat and length.

import { drawing } from "./board.js";
import { ask } from "./connection.js";
import { el, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { notice, setHeading } from "./notices.js";
import { SessionPage } from "./session_page.js";

// Keys of the tab's storage: the token of the running session, and the request of the last session.
const TOKEN = "pace-session";
const REQUEST = "pace-choice";

/** `catalog`: the games, and the agents as `offers`. */
export function openStartPage(main, catalog) {
  const token = sessionStorage.getItem(TOKEN);
  if (token) play(main, catalog, token);
  else choose(main, catalog);
}

/** The request of the last session in this tab, if its agent still exists; otherwise null. */
function lastRequest({ offers }) {
  const request = JSON.parse(sessionStorage.getItem(REQUEST) ?? "null");
  return request && offers.some((agent) => agent.id === request.offer) ? request : null;
}

function choose(main, catalog) {
  setHeading("");
  document.title = "PACE · play";
  const { games, offers: agents } = catalog;
  const last = lastRequest(catalog);
  // Default: the agent of the last session, then a trained agent.
  let chosen = agents.find((agent) => agent.id === last?.offer) ?? agents.find((agent) => agent.is_trained) ?? agents[0];
  const form = el("form", {
    class: "card stack",
    onsubmit: (event) => {
      event.preventDefault();
      const { offer, slot = 0, n_episodes, mind } = Object.fromEntries(new FormData(form));
      begin(main, catalog, { offer, slot: Number(slot), n_episodes: Number(n_episodes), mind });
    },
  });
  const draw = () => show(form, fields(catalog, chosen, last, (id) => {
    chosen = agents.find((agent) => agent.id === id);
    draw();
    form.elements.offer.focus();
  }));
  const cards = games.map((entry) => {
    const { thumbnail, pitch } = gameOf({ ...entry, game: entry.id });
    const onchange = () => { chosen = agents.find((agent) => agent.game === entry.id); draw(); };
    return el("label", { class: "card game" },
      el("input", { type: "radio", name: "game", value: entry.id, checked: entry.id === chosen.game, "aria-label": entry.title, onchange }),
      el("div", { class: "picture" }, drawing(thumbnail)),
      el("div", { class: "words" }, el("h2", {}, entry.title), el("p", {}, pitch)));
  });
  draw();
  show(main,
    el("h1", {}, "Meet an agent that adapts to you"),
    el("p", { class: "quiet" }, "You take the place of one of its peers. The agent has never played with you and adapts to you within a few episodes."),
    el("fieldset", { class: "games", "aria-label": "Game" }, cards),
    form);
}

/** The fields of the form for an agent. The last request is selected again if it was for the same game. */
function fields({ games, offers: agents }, chosen, request, onAgent) {
  const last = agents.find((agent) => agent.id === request?.offer)?.game === chosen.game ? request : null;
  const entry = games.find(({ id }) => id === chosen.game);
  const { seats, rules, beliefNote, shorter, usual, episode, episodes } = gameOf({ ...entry, game: entry.id });
  const { n_episodes: whole, roles } = chosen;
  const lengths = [...new Set([...shorter, whole])].filter((n) => n <= whole);
  // An agent needs several episodes to adapt, so a single one is never the default.
  const length = [last?.n_episodes, usual, whole].find((n) => lengths.includes(n));
  const select = (name, label, options, selected, more) => el("label", { class: "field" }, el("span", {}, label),
    el("select", { name, "aria-label": label, ...more }, options.map(([value, text]) => el("option", { value, selected: value === selected }, text))));
  return [
    el("div", { class: "choices" },
      select("offer", "Agent", agents.filter((agent) => agent.game === chosen.game).map((agent) => [agent.id, agent.label]), chosen.id, { onchange: (event) => onAgent(event.target.value) }),
      roles.length > 1 && select("slot", "Your seat", roles.map((role, slot) => [String(slot), seats[role] ?? role]), String(last?.slot ?? 0)),
      select("n_episodes", "Length", lengths.map((n) => [String(n), `${n} ${n === 1 ? episode : episodes}`]), String(length)),
      select("mind", "The agent’s beliefs", [["after", "show them afterwards"], ["live", "show them while I play"]], last?.mind),
      el("button", { class: "main", type: "submit" }, "Start")),
    beliefNote && el("p", { class: "small quiet" }, beliefNote),
    rules.length > 0 && el("div", {}, el("h2", {}, "Rules"), el("div", { class: "rules small" }, rules.map((text) => el("p", {}, text)))),
  ];
}

async function begin(main, catalog, request) {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.setItem(REQUEST, JSON.stringify(request));
  try {
    const { token } = await ask("/api/sessions", request);
    sessionStorage.setItem(TOKEN, token);
    play(main, catalog, token);
  } catch (error) {
    const back = el("button", { class: "main", onclick: () => choose(main, catalog) }, "Back");
    notice(main, error.code === "full" ? "No free place" : "The session could not start", error.message, back);
  }
}

function play(main, catalog, token) {
  const leave = () => {
    sessionStorage.removeItem(TOKEN);
    choose(main, catalog);
  };
  const request = lastRequest(catalog);
  const again = request && (() => begin(main, catalog, request));
  new SessionPage(main, { type: "hello", token }, { onLeave: leave, onGone: leave, onAgain: again });
}
