// A recorded encounter, step by step. The page has one element of class `replay` per encounter, with the record as JSON in it.

import { penFor } from "./pen.js";
import { bars, belief, make } from "./mind.js";

// Paths instead of characters: no font has all of these symbols.
const ICONS = {
  back: "M11 3L5 9L11 15Z",
  next: "M7 3L13 9L7 15Z",
  first: "M4 3H6V15H4ZM14 3L7 9L14 15Z",
  last: "M12 3H14V15H12ZM4 3L11 9L4 15Z",
  play: "M5 2.5L15 9L5 15.5Z",
  pause: "M5 3H8V15H5ZM10 3H13V15H10Z",
};

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [key, value] of Object.entries({ viewBox: "0 0 18 18", width: 18, height: 18, "aria-hidden": "true" })) svg.setAttribute(key, value);
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

const SPEEDS = [["slow", 900], ["normal", 420], ["fast", 130]];

// `drawings` has, by game, what its drawing module exports.
export function replays(drawings) {
  document.querySelectorAll(".replay").forEach((place) => {
    const record = JSON.parse(place.querySelector("script[type='application/json']").textContent);
    replay(place.querySelector(".replay-stage"), record, drawings[record.game]);
  });
}

function replay(stage, record, drawing) {
  const moments = [];
  record.episodes.forEach((episode, number) => {
    let sum = 0;
    episode.moments.forEach((moment, step) => {
      sum += moment.task_reward || 0;
      moments.push({ ...moment, episode: number, step, sum });
    });
  });
  const firsts = record.episodes.map((_, number) => moments.findIndex((moment) => moment.episode === number));
  const { episode: episodeWord } = record.words;
  const EpisodeWord = episodeWord[0].toUpperCase() + episodeWord.slice(1);

  // The drawing.
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "replay-drawing");
  svg.setAttribute("role", "img");
  const text = make("pre", { class: "replay-text" });
  const pen = penFor(svg);

  // The beliefs.
  const heading = make("h3", { class: "replay-when", "aria-live": "polite" });
  const happened = make("p", { class: "replay-happened" });
  const actions = bars("action probabilities");
  const actionsTitle = make("h4", {}, "action probabilities");
  const facts = make("dl", { class: "replay-facts" });
  const fact = (name) => {
    const value = make("dd");
    facts.append(make("div", {}, make("dt", {}, name), value));
    return value;
  };
  const [expects, context, soFar] = [fact("value"), fact("context"), fact("reward so far")];
  const minds = record.peers.filter((peer) => peer.kinds.length > 0).map((peer) => belief(peer, drawing && drawing.plane, penFor));
  const deed = make("div", { class: "replay-deed" }, facts, actionsTitle, actions.node);
  const mind = make("div", { class: "replay-mind" }, deed, ...minds.map((one) => one.node));

  // The controls.
  const button = (name, label, act) => {
    const found = make("button", { type: "button", "aria-label": name, title: name }, icon(label));
    found.addEventListener("click", act);
    return found;
  };
  const scrubber = make("input", { type: "range", min: 0, max: moments.length - 1, step: 1, value: 0, "aria-label": "moment of the encounter" });
  const play = button("play", "play", () => toggle());
  const speed = make("select", { "aria-label": "speed" }, ...SPEEDS.map(([name]) => make("option", { value: name }, name)));
  speed.value = "normal";
  const eyes = make("input", { type: "checkbox" });
  eyes.addEventListener("change", () => svg.classList.toggle("only-seen", eyes.checked));
  const controls = make(
    "div",
    { class: "replay-controls" },
    button(`previous ${episodeWord}`, "first", () => jump(-1)),
    button("step back", "back", () => go(now - 1)),
    play,
    button("step forward", "next", () => go(now + 1)),
    button(`next ${episodeWord}`, "last", () => jump(1)),
    speed,
    make("label", { class: "replay-eyes" }, eyes, " as the agent sees it"),
    make("span", { class: "replay-keys" }, `← → step, Page ↑↓ ${episodeWord}, space plays`),
  );
  const strip = make("div", { class: "replay-strip" });
  const chips = record.episodes.map((episode, number) => {
    const good = record.metric === "success" ? episode.ending === "succeeded" : episode.task_return > 0;
    const label = `${EpisodeWord} ${number + 1}: ${ENDINGS[episode.ending]}, return ${signed(episode.task_return)}`;
    const chip = make("button", { type: "button", class: good ? "good" : "poor", title: label, "aria-label": label }, record.episodes.length > 20 ? "" : String(number + 1));
    chip.style.flexGrow = episode.moments.length;
    chip.addEventListener("click", () => go(firsts[number]));
    strip.append(chip);
    return chip;
  });
  const curve = timeline(record, drawing, moments, firsts, (place) => go(place));

  const board = make("div", { class: "replay-board" }, drawing ? svg : text);
  const left = make("div", {}, board);
  stage.replaceChildren(heading, happened, make("div", { class: "replay-view" }, left, mind), ...(curve ? [curve.node] : []), strip, scrubber, controls);
  stage.tabIndex = 0;
  stage.classList.add("ready");

  let now = 0;
  let timer = null;

  function go(place) {
    now = Math.max(0, Math.min(moments.length - 1, place));
    show();
  }

  function jump(by) {
    const current = moments[now].episode;
    // The first jump back leads to the start of the current episode.
    const to = by < 0 && now > firsts[current] ? current : current + by;
    go(to < 0 ? 0 : to >= firsts.length ? moments.length - 1 : firsts[to]);
  }

  function toggle() {
    if (timer) {
      stop();
      return;
    }
    if (now === moments.length - 1) go(0);
    play.replaceChildren(icon("pause"));
    play.setAttribute("aria-label", "pause");
    tick();
  }

  function tick() {
    const delay = SPEEDS.find(([name]) => name === speed.value)[1];
    timer = setTimeout(() => {
      go(now + 1);
      if (now === moments.length - 1) stop();
      else tick();
    }, delay);
  }

  function stop() {
    clearTimeout(timer);
    timer = null;
    play.replaceChildren(icon("play"));
    play.setAttribute("aria-label", "play");
  }

  function show() {
    const moment = moments[now];
    const isOver = moment.action === undefined;
    const past = moments.slice(firsts[moment.episode], now).map((one) => one.picture);
    if (typeof moment.picture === "string" || !drawing) {
      text.textContent = typeof moment.picture === "string" ? moment.picture : JSON.stringify(moment.picture, null, 1);
      if (text.parentNode !== board) board.replaceChildren(text);
    } else {
      drawing.draw(pen, moment.picture, past);
      pen.done();
    }
    const when = `${EpisodeWord} ${moment.episode + 1} of ${record.episodes.length}, ${isOver ? "over" : moment.step === 0 ? "start" : `step ${moment.step}`}`;
    heading.textContent = when;
    svg.setAttribute("aria-label", `The game: ${when}`);
    happened.textContent = told(record, moments[now - 1], moment, isOver);
    context.textContent = moment.context === 1 ? "1 entry" : `${moment.context} entries`;
    expects.textContent = moment.value === undefined ? "–" : signed(moment.value);
    soFar.textContent = signed(moment.sum);
    actionsTitle.hidden = isOver;
    actions.node.hidden = isOver;
    actions.show((moment.probabilities || []).map((share, action) => {
      const taken = action === moment.action;
      return { name: record.action_names[action], share, mark: taken ? "mind-taken" : "", note: taken ? "taken" : "" };
    }));
    minds.forEach((one, place) => {
      const shares = (moment.beliefs || [])[place];
      one.node.hidden = !shares;
      if (shares) one.show(shares);
    });
    scrubber.value = now;
    scrubber.setAttribute("aria-valuetext", when);
    chips.forEach((chip, number) => chip.classList.toggle("now", number === moment.episode));
    if (curve) curve.show(now);
    stage.dataset.moment = now;
  }

  scrubber.addEventListener("input", () => go(Number(scrubber.value)));
  stage.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target === speed || event.target === eyes) return;
    const acts = {
      ArrowRight: () => go(now + 1),
      ArrowLeft: () => go(now - 1),
      PageDown: () => jump(1),
      PageUp: () => jump(-1),
      Home: () => go(0),
      End: () => go(moments.length - 1),
    };
    if (event.target.localName !== "button") acts[" "] = toggle;
    if (acts[event.key]) {
      event.preventDefault();
      acts[event.key]();
    }
  });
  show();
  // Under a wide drawing there is room for the action probabilities.
  const [, , width, height] = (svg.getAttribute("viewBox") || "0 0 1 2").split(" ").map(Number);
  if (minds.length > 0 && width > 0.8 * height) left.append(deed);
}

const ENDINGS = { finished: "over", succeeded: "succeeded", "timed-out": "out of time" };

function signed(value) {
  const text = value.toFixed(Number.isInteger(value) ? 0 : 2).replace("-", "\u2212");
  return value > 0 ? `+${text}` : text;
}

// The actions and the reward of the step before.
function told(record, before, moment, isOver) {
  if (moment.task_reward === undefined) return `A new ${record.words.episode} begins.`;
  const parts = [`ego: ${record.action_names[before.action]}`];
  (moment.peer_actions || []).forEach((action, slot) => {
    if (action !== null) parts.push(`${record.peers[slot].role}: ${record.action_names[action]}`);
  });
  const paid = `reward ${signed(moment.task_reward)}`;
  const seen = moment.keypoint_visited ? ` · ${record.words.keypoint}` : "";
  const end = isOver ? ` · ${ENDINGS[record.episodes[moment.episode].ending]}` : "";
  return `${parts.join(", ")} → ${paid}${seen}${end}`;
}

// Distance from the mean of the belief to the true peer.
function distance(peer, shares) {
  const gap = (axis) => peer.kinds.reduce((sum, kind, place) => sum + kind.traits[axis] * shares[place], -peer.traits[axis]);
  return Math.min(1, Math.hypot(gap(0), gap(1)));
}

// Probability of the true kind over the whole encounter, or of the most likely kind where the true one is not among them.
function timeline(record, drawing, moments, firsts, go) {
  const minded = record.peers.filter((peer) => peer.kinds.length > 0);
  if (minded.length === 0 || !moments.some((moment) => moment.beliefs)) return null;
  const [width, height] = [1000, 70];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "replay-curve");
  svg.setAttribute("aria-hidden", "true");
  const add = (tag, attributes) => {
    const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
    svg.append(found);
    return found;
  };
  const x = (place) => (place / Math.max(1, moments.length - 1)) * width;
  const y = (share) => height - 3 - share * (height - 6);
  firsts.slice(1).forEach((first) => add("path", { class: "replay-edge", d: `M${x(first - 0.5)} 0V${height}` }));
  const names = [];
  minded.forEach((peer, slot) => {
    const isPlane = drawing && drawing.plane && peer.traits.length === 2;
    const sure = (shares) => {
      if (isPlane) return 1 - distance(peer, shares);
      return peer.truth === null ? Math.max(...shares) : shares[peer.truth];
    };
    const points = moments.map((moment, place) => (moment.beliefs ? `${x(place).toFixed(1)} ${y(sure(moment.beliefs[slot])).toFixed(1)}` : null));
    add("path", { class: `replay-line line-${slot}`, d: `M${points.filter(Boolean).join("L")}` });
    if (isPlane) names.push(`closeness of the mean belief to the true ${peer.role} (1 − distance)`);
    else names.push(peer.truth === null ? `probability of the most likely kind of ${peer.role}` : `probability of the true kind of ${peer.role}`);
  });
  const cursor = add("path", { class: "replay-cursor", d: `M0 0V${height}` });
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    go(Math.round(((event.clientX - box.left) / box.width) * (moments.length - 1)));
  });
  const legend = make("p", { class: "replay-legend" }, "Over the encounter: ");
  names.forEach((name, slot) => legend.append(make("span", { class: `key-${slot}` }, name)));
  return {
    node: make("div", { class: "replay-timeline" }, legend, svg),
    show: (now) => cursor.setAttribute("d", `M${x(now)} 0V${height}`),
  };
}
