// Choosing a game, an agent, a seat and a length; then to the table.

import { ask, el, note, notice, show } from "./elements.js";
import { gameOf } from "./games/index.js";
import { openTable } from "./table.js";

const KEPT = "pace-session";

export function openLobby(main, offers) {
  const kept = sessionStorage.getItem(KEPT);
  if (kept) return sit(main, offers, kept);
  choose(main, offers);
}

function choose(main, offers) {
  note("");
  document.title = "PACE · play";
  let game = offers.games[0].id;
  // A trained agent's game first: that is what whoever named a run wants to see.
  const trained = offers.offers.find((offer) => offer.is_trained);
  if (trained) game = trained.game;
  const form = el("form", { class: "card stack" });
  const draw = () => show(form, details(offers, game));
  const cards = offers.games.map((entry) => {
    const { picture, pitch } = gameOf(entry.id);
    return el("label", { class: "card game" },
      el("input", { type: "radio", name: "game", value: entry.id, checked: entry.id === game, "aria-label": entry.title,
        onchange: () => { game = entry.id; draw(); } }),
      el("div", { class: "picture", "aria-hidden": "true" }, picture()),
      el("div", { class: "words" }, el("h2", {}, entry.title), el("p", {}, pitch)));
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin(main, offers, new FormData(form));
  });
  draw();
  show(main,
    el("h1", {}, "Meet an agent that adapts to you"),
    el("p", { class: "quiet" }, "You take a seat that its training peers had. It has never met you, and has a few episodes to find out how you play."),
    el("fieldset", { class: "games", "aria-label": "Game" }, cards),
    form);
}

function details(offers, game) {
  const list = offers.offers.filter((offer) => offer.game === game);
  const { seats, rules, mindNote, shorter } = gameOf(game);
  const most = list[0].n_episodes;
  const lengths = [...new Set([...(shorter ?? []), most])].filter((n) => n <= most);
  const nouns = offers.games.find((entry) => entry.id === game).nouns;
  const select = (name, label, options, chosen) => el("select", { name, "aria-label": label },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  const roles = list[0].roles;
  return [
    el("div", { class: "choices" },
      el("label", { class: "field" }, el("span", {}, "Agent"), select("offer", "Agent", list.map((offer) => [offer.id, offer.label]), list[0].id)),
      roles.length > 1 && el("label", { class: "field" }, el("span", {}, "Your seat"),
        select("slot", "Your seat", roles.map((role, slot) => [String(slot), seats?.[role] ?? role]))),
      el("label", { class: "field" }, el("span", {}, "Length"),
        select("n_episodes", "Length", lengths.map((n) => [String(n), `${n} ${n === 1 ? nouns.episode : nouns.episodes}`]), String(lengths[0]))),
      el("label", { class: "field" }, el("span", {}, "The agent’s mind"),
        select("mind", "The agent’s mind", [["after", "show it afterwards"], ["live", "show it while I play"]])),
      el("button", { class: "main", type: "submit" }, "Sit down")),
    mindNote && el("p", { class: "small quiet" }, mindNote),
    el("div", {}, el("h2", {}, "How it is played"), el("div", { class: "rules small" }, rules.map((text) => el("p", {}, text)))),
  ];
}

async function begin(main, offers, form) {
  const booking = {
    offer: form.get("offer"),
    slot: Number(form.get("slot") ?? 0),
    n_episodes: Number(form.get("n_episodes")),
    mind: form.get("mind"),
  };
  try {
    const { token } = await ask("/api/sessions", booking);
    sessionStorage.setItem(KEPT, token);
    sit(main, offers, token);
  } catch (error) {
    const again = el("button", { class: "main", onclick: () => choose(main, offers) }, "Back");
    notice(main, error.code === "full" ? "Every table is taken" : "That did not work", error.message, again);
  }
}

function sit(main, offers, token) {
  const leave = () => {
    sessionStorage.removeItem(KEPT);
    choose(main, offers);
  };
  openTable(main, { type: "hello", token }, { onLeave: leave, onGone: leave });
}
