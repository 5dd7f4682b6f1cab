// Messages to the person at the page, and the frame around it.

import { capital, el, show } from "./elements.js";

/** Announces a text to screen readers. */
export function announce(text) {
  const live = document.getElementById("live");
  if (live.textContent !== text) live.textContent = text;
}

/** A message of the server as a sentence: its messages begin in lower case and have no full stop. */
export function sentence(text) {
  return `${capital(text)}${/[.!?…]$/.test(text) ? "" : "."}`;
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

/** Copies a text, and says so in `done`; where that is not allowed, shows the text. */
export async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    done.textContent = "copied";
  } catch {
    done.textContent = text;
  }
}
