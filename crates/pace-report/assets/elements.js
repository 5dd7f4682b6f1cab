// Elements of a page and numbers as text. No text becomes markup.

const SVG = "http://www.w3.org/2000/svg";

const isContent = (child) => child !== null && child !== undefined && child !== false;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in node) node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(isContent));
  return node;
}

/** An HTML element. Attributes that begin with `on` are event listeners. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replaces the content of an element. */
export function show(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter(isContent));
}

/** Whether people have asked for less motion. */
export function isStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export function percent(share) {
  return `${Math.round(share * 100)}\u00a0%`;
}

/** A number with few digits, and a true minus. */
export function number(value, digits = 2) {
  return value.toFixed(digits).replace(/^-/, "−");
}

/** A number with its sign. */
export function signed(value) {
  return `${value > 0 ? "+" : ""}${number(value, Number.isInteger(value) ? 0 : 2)}`;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Index of the largest share; null unless it is 1.5 times as large as by chance. */
export function favourite(shares) {
  const largest = Math.max(...shares);
  return largest > 1.5 / shares.length ? shares.indexOf(largest) : null;
}

/** The peer in whose place the page's reader may be, in words: "you", "the player" or "the peer". `does` chooses the form of a verb. */
export function personOf(name) {
  const isYou = name === "you";
  const your = isYou ? "your" : `${name}’s`;
  return { you: name, You: capital(name), your, Your: capital(your), does: isYou ? (second) => second : (_, third) => third };
}
