// The page after an encounter: scores, a chart of the episodes, the agent's belief about the player, and the link to the replay.

import { el, number, percent, svg } from "./elements.js";
import { copyButton } from "./notices.js";

/** `options`: `onAgain` and `onLeave`; each one that is given gets a button. */
export function summaryPage(about, over, game, options) {
  const { summary, link } = over;
  const replay = link && `/replay#${encodeURIComponent(link)}`;
  const button = (text, onclick, look) => onclick && el("button", { type: "button", class: look, onclick }, text);
  return el("div", { class: "stack narrow" },
    el("h1", {}, "The encounter is over"),
    summary && summaryCard(about, summary, game),
    el("div", { class: "row" },
      button("Play again", options.onAgain, "main"),
      replay && el("a", { class: "button", href: replay, id: "replay-link" }, "Watch the replay"),
      replay && copyButton("Copy its link", location.origin + replay),
      button(about.is_spectator ? "Leave" : "Other game or agent", options.onLeave)));
}

export function summaryCard(about, summary, game) {
  const { You, you } = about.person;
  const facts = game.facts(summary, about);
  return el("section", { class: "card stack" },
    el("dl", { class: "facts" }, facts.map(([name, value, unit]) => el("div", {}, el("dt", {}, name), el("dd", {}, value, unit && el("small", {}, ` ${unit}`))))),
    el("div", {}, el("h2", {}, `${game.Episodes}, one by one`), episodes(summary, about, game)),
    el("div", {}, el("h2", {}, `How it identified ${you}`), el("p", {}, verdict(summary, about, game))),
    summary.portrait.lines.length > 0 && el("div", {}, el("h2", {}, `How ${you} played`),
      el("dl", { class: "behaviour", "aria-label": `${You}, in numbers` }, summary.portrait.lines.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))))));
}

/** The agent's last belief about the player. It is called right or wrong only in a game that enforces the assigned role. */
function verdict(summary, about, game) {
  const { you } = about.person;
  const found = summary.recognition;
  if (!found) return `In the end it had no clear belief about ${you}, or it does not model its peers.`;
  const episode = `${game.episode} ${found.since_episode + 1}`;
  const when = found.since_moves === 0 ? `since the start of ${episode}` : `since move ${found.since_moves} of ${episode}`;
  const kind = game.kindWords({ name: found.kind, data: found.data });
  if (game.isContinuous) return `Its most likely guess in the end: ${kind}, ${when}.`;
  const probability = `final probability ${percent(found.probability)}`;
  if (game.isPartBinding && found.is_right === true) return `It identified ${you}: ${kind}, ${when}, ${probability}.`;
  if (game.isPartBinding && found.is_right === false) return `It did not identify ${you}. Its belief in the end: ${kind}, ${when}, ${probability}.`;
  return `Its belief in the end: ${kind}, ${when}, ${probability}.`;
}

/** The ticks of an axis from `low` to `high`; their distance is 1, 2 or 5 times a power of ten. */
function ticks(low, high) {
  const rough = Math.max(high - low, 1e-6) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: Math.max(last - first, 1) + 1 }, (_, index) => (first + index) * step);
}

/**
 * A chart with a bar per episode, and lines for the mean and the oracle. Only the bars are scaled with the page; the text stays readable on
 * a phone.
 */
function episodes(summary, about, game) {
  const values = summary.episodes.map((episode) => game.episodeValue(episode, about));
  if (values.length === 0) return el("p", { class: "quiet" }, `No ${game.episode} was finished.`);
  const oracle = game.oracleValue(summary, about);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const all = [0, ...values, ...(oracle === null ? [] : [oracle])];
  const marks = ticks(Math.min(...all), Math.max(...all));
  const [low, high] = [marks[0], marks.at(-1)];
  const y = (value) => (100 * (high - value)) / (high - low);
  const width = 100 / values.length;
  const isGood = summary.episodes.map((episode) => game.isGood(episode, about));
  const bar = (value, index) => svg("rect", {
    x: (index + 0.12) * width, width: 0.76 * width, y: Math.min(y(value), y(0)), height: Math.max(Math.abs(y(value) - y(0)), 1),
    fill: isGood[index] ? "var(--good)" : "var(--bad)",
  }, svg("title", {}, `${game.Episode} ${index + 1}: ${number(value)}`));
  const look = (colour, dash) => ({ stroke: colour, "stroke-width": 2, "stroke-dasharray": dash, "vector-effect": "non-scaling-stroke" });
  const looks = { mean: look("var(--ink)"), oracle: look("var(--you)", "6 4"), tick: { ...look("var(--line)"), "stroke-width": 1 } };
  const line = (value, name) => svg("line", { x1: 0, x2: 100, y1: y(value), y2: y(value), ...looks[name] });
  const place = (node, side, share) => {
    node.style.setProperty(side, `${share}%`);
    return node;
  };
  // At most ten numbers below the bars.
  const every = [1, 2, 5, 10, 20, 50, 100].find((step) => values.length / step <= 10) ?? values.length;
  const numbered = values.map((_, index) => index + 1).filter((n) => n === 1 || n % every === 0);
  const digits = marks.every(Number.isInteger) ? 0 : 1;
  const key = (mark, words) => el("span", { class: "key" }, svg("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" }, mark), words);
  const dash = (name) => svg("line", { x1: 0, x2: 26, y1: 4, y2: 4, ...looks[name] });
  const patch = (colour) => svg("rect", { x: 9, width: 8, height: 8, fill: `var(--${colour})` });
  return [
    el("p", { class: "small quiet axis" }, game.valueWords),
    el("div", { class: "chart", role: "img", "aria-label": `${game.valueWords}, by ${game.episode}: ${values.map((value) => number(value, digits)).join(", ")}.` },
      el("div", { class: "chart-y" }, marks.map((mark) => place(el("span", {}, number(mark, digits)), "top", y(mark)))),
      svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, marks.map((mark) => line(mark, "tick")), values.map(bar), line(mean, "mean"), oracle !== null && line(oracle, "oracle")),
      el("div", { class: "chart-x" }, numbered.map((n) => place(el("span", {}, String(n)), "left", (n - 0.5) * width)))),
    el("p", { class: "small quiet axis below" }, game.Episode),
    el("p", { class: "keys small" }, key(dash("mean"), `mean ${number(mean)}`), oracle !== null && key(dash("oracle"), `oracle ${number(oracle)}`),
      isGood.includes(true) && key(patch("good"), game.verdicts(about)[0]), isGood.includes(false) && key(patch("bad"), game.verdicts(about)[1])),
  ];
}
