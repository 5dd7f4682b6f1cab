// The board: the drawing of a game, or its state as text.

import { el, svg } from "./elements.js";
import { penFor } from "./pen.js";

/** The board of an encounter: its node, and `show(view, seen, past, ms)`, which moves figures to their new positions in `ms` milliseconds. */
export function boardOf(game, about) {
  const asText = el("pre", { class: "board-text", tabindex: "0", role: "group", "aria-label": "The state of the game" });
  if (!game.draw) return { node: asText, show: (view) => { asText.textContent = view.text ?? JSON.stringify(view, null, 1); } };
  const node = svg("svg", { class: "board", role: "img" });
  const pen = penFor(node);
  return {
    node,
    show(view, seen, past, ms) {
      node.style.setProperty("--glide", `${ms}ms`);
      node.setAttribute("aria-label", game.draw(pen, { ...about, view, seen, past }));
      pen.done();
      const { width, height } = node.viewBox.baseVal;
      node.style.setProperty("--aspect", width / height);
      node.classList.toggle("tall", height > 1.25 * width);
    },
  };
}

/** A static drawing. `draw` returns its description; without one the drawing is decorative. */
export function drawing(draw) {
  const node = svg("svg", {});
  const label = draw(penFor(node));
  for (const [name, value] of Object.entries(label ? { role: "img", "aria-label": label } : { "aria-hidden": true })) node.setAttribute(name, value);
  return node;
}
