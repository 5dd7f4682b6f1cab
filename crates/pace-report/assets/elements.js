// Elements of a page, and numbers as text. Text is never parsed as markup.

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

/** Whether the reader has asked for less motion. */
export const prefersNoMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const percent = (share) => `${Math.round(share * 100)}\u00a0%`;

/** A number with this many decimal places, and a minus sign instead of a hyphen. */
export const number = (value, digits = 2) => value.toFixed(digits).replace(/^-/, "−");

/** A number with its sign. */
export const signed = (value) => `${value > 0 ? "+" : ""}${number(value, Number.isInteger(value) ? 0 : 2)}`;

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Forms of the name of the person in a peer's seat: "you", "the player" or "the peer". `does` chooses the form of a verb. */
export function personOf(name) {
  const isYou = name === "you";
  const your = isYou ? "your" : `${name}’s`;
  return { you: name, You: capital(name), your, Your: capital(your), does: isYou ? (second) => second : (_, third) => third };
}
