// Building blocks of the page: elements without any text becoming markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in node) node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Puts new content in the place of old. */
export function show(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

/** Announces a text to screen readers. */
export function announce(text) {
  const live = document.getElementById("live");
  if (live.textContent !== text) live.textContent = text;
}

/** Whether people have asked for less motion. */
export function isStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export function percent(value) {
  return `${Math.round(value * 100)}\u00a0%`;
}

/** A number with few digits, and a true minus. */
export function number(value, digits = 2) {
  return value.toFixed(digits).replace(/^-/, "−");
}

/** Rows of names, bars and percentages. */
export function bars(rows) {
  return el("ul", { class: "bars" }, rows.map(([name, share]) => {
    const inner = el("span", { class: "fill" });
    inner.style.setProperty("width", `${(share * 100).toFixed(1)}%`);
    return el("li", {},
      el("span", { class: "name", title: name }, name),
      el("span", { class: "track", "aria-hidden": "true" }, inner),
      el("span", { class: "number" }, percent(share)));
  }));
}

/** Sends a request to the server; a refusal is thrown as an error with its code and message. */
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ v: 1, ...body }),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw Object.assign(new Error("The server does not answer. Is it still running?"), { code: "gone" });
  }
  const answer = await response.json().catch(() => null);
  if (!response.ok || answer === null) {
    throw Object.assign(new Error(answer?.message ?? `The server answered with status ${response.status}.`), { code: answer?.code });
  }
  return answer;
}

/** A message of the server as a sentence: its messages begin in lower case and have no full stop. */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

/** A page with one message on it. */
export function notice(main, title, words, ...more) {
  show(main, el("section", { class: "card narrow" }, el("h1", {}, title), el("p", {}, sentence(words)), more));
  announce(title);
}

/** Sets the text at the top of the page, next to the name. */
export function note(text) {
  document.getElementById("bar-note").textContent = text;
}

/** Index of the largest share; null unless it is 1.5 times as large as by chance. */
export function favourite(shares) {
  const most = Math.max(...shares);
  return most > 1.5 / shares.length ? shares.indexOf(most) : null;
}

/** The person who plays, in words: addressed as "you", or for a spectator "the player". `does` chooses the form of a verb. */
export function personOf(isSpectator) {
  return isSpectator
    ? { You: "The player", you: "the player", your: "the player’s", Your: "The player’s", does: (_, third) => third }
    : { You: "You", you: "you", your: "your", Your: "Your", does: (second) => second };
}
