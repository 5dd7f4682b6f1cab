// After an encounter: what came of it, when the agent knew whom it had before it, and the way to the replay.

import { el, number, percent, svg } from "./elements.js";
import { gameOf } from "./games/index.js";
import { copy } from "./table.js";

export function summaryView(welcome, over, options) {
  const game = gameOf(welcome.game);
  const { summary, link } = over;
  const replay = link && `/replay#${encodeURIComponent(link)}`;
  const done = el("span", { class: "copied", role: "status" });
  const who = options.isSpectator ? "The person" : "You";
  return el("div", { class: "stack narrow" },
    el("h1", {}, options.title ?? "The encounter is over"),
    summary && summaryCard(welcome, summary, game, who),
    el("div", { class: "row" },
      replay && el("a", { class: "button", href: replay, id: "replay-link" }, "Watch the replay"),
      replay && el("button", { type: "button", onclick: () => copy(location.origin + replay, done) }, "Copy its link"), done,
      options.onLeave && el("button", { class: "main", type: "button", onclick: options.onLeave }, options.isSpectator ? "Leave" : "Play again")));
}

export function summaryCard(welcome, summary, game, who = "You") {
  const facts = game.facts(summary, welcome);
  return el("section", { class: "card stack" },
    el("dl", { class: "facts" }, facts.map(([name, value, unit]) => el("div", {}, el("dt", {}, name), el("dd", {}, value, unit && el("small", {}, ` ${unit}`))))),
    el("div", {}, el("h2", {}, `${game.Episodes}, one by one`), episodes(summary, welcome, game)),
    el("div", {}, el("h2", {}, "What it made of you"), el("p", {}, recognised(summary, welcome, game))),
    summary.portrait.lines.length > 0 && el("div", {}, el("h2", {}, `How ${who === "You" ? "you" : "they"} played`),
      el("dl", { class: "portrait" }, summary.portrait.lines.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))))));
}

function recognised(summary, welcome, game) {
  const found = summary.recognition;
  if (!found) return "This agent has no opinion about its peers that could be shown.";
  const when = found.since_moves === 0
    ? `since ${game.episode.toLowerCase()} ${found.since_episode + 1} began`
    : `since move ${found.since_moves} of ${game.episode.toLowerCase()} ${found.since_episode + 1}`;
  const sure = percent(found.probability);
  const kind = game.kindWords?.(found.kind) ?? found.kind;
  if (found.is_right === true) return `It recognised you: ${kind}, ${when}, with ${sure} in the end.`;
  if (found.is_right === false) return `It did not recognise you. In the end it took you for ${kind}, ${when}, with ${sure}.`;
  if (game.isContinuous) return `In the end its likeliest guess was ${kind}, ${when}.`;
  return `In the end it took you for ${kind}, ${when}, with ${sure}.`;
}

/** A bar per episode, with lines for the mean and for what an oracle would reach; what they are is said below, where it can be read on a phone. */
function episodes(summary, welcome, game) {
  const values = summary.episodes.map((episode) => game.episodeValue(episode, welcome));
  const oracle = game.oracleValue(summary, welcome);
  const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
  const [low, high] = [Math.min(0, oracle, ...values), Math.max(0, oracle, ...values)];
  const span = Math.max(high - low, 1e-6);
  const y = (value) => 12 + ((high - value) / span) * 120;
  const width = Math.min(60, 664 / Math.max(values.length, 1));
  const bar = (value, index) => svg("rect", {
    x: 8 + index * width + width * 0.12, width: Math.max(width * 0.76, 1), y: Math.min(y(value), y(0)), height: Math.max(Math.abs(y(value) - y(0)), 1.5),
    rx: Math.min(3, width / 4), fill: game.isGood(value) ? "var(--good)" : "var(--bad)", opacity: 0.85,
  }, svg("title", {}, `${game.episode} ${index + 1}: ${number(value)}`));
  const look = (colour, dash) => ({ stroke: colour, "stroke-width": 2, "stroke-dasharray": dash });
  const looks = { mean: look("var(--ink)"), oracle: look("var(--you)", "6 4") };
  const line = (value, name) => svg("line", { x1: 8, x2: 672, y1: y(value), y2: y(value), ...looks[name] });
  const key = (name, words) => el("span", { class: "key" }, svg("svg", { viewBox: "0 0 26 4", "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: 2, y2: 2, ...looks[name] })), words);
  return [
    svg("svg", { viewBox: "0 0 680 144", role: "img", "aria-label": `${values.length} ${game.Episodes.toLowerCase()}, one bar each.` },
      svg("line", { x1: 8, x2: 672, y1: y(0), y2: y(0), stroke: "var(--line)" }), values.map(bar), line(mean, "mean"), line(oracle, "oracle")),
    el("p", { class: "keys small" }, key("mean", `mean ${number(mean)}`), key("oracle", `with an oracle ${number(oracle)}`)),
  ];
}
