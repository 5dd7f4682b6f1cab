// Messages to the person, and the text at the top of the page.

import { capital, el, show } from "./elements.js";

/** Announces a text to screen readers. */
export function announce(text) {
  const live = document.getElementById("live");
  if (live.textContent !== text) live.textContent = text;
}

/** A message of the server as a sentence: capitalised, with a full stop. */
export function sentence(text) {
  return `${capital(text)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

/** Shows a page with one message. */
export function notice(main, title, words, ...more) {
  show(main, el("section", { class: "card narrow" }, el("h1", {}, title), el("p", {}, sentence(words)), more));
  announce(title);
}

/** A button that loads the page again. */
export const reloadButton = (text) => el("button", { class: "main", onclick: () => location.reload() }, text);

/** Sets the text at the top of the page, next to the name. */
export function setHeading(text) {
  document.getElementById("bar-note").textContent = text;
}

/** A button that copies a text, and the place where it confirms this. Without access to the clipboard, the place shows the text. */
export function copyButton(label, text, attributes) {
  const status = el("span", { class: "copied", role: "status" });
  const onclick = async () => {
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = "copied";
    } catch {
      status.textContent = text;
    }
  };
  return [el("button", { type: "button", ...attributes, onclick }, label), status];
}
