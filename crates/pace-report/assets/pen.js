// A pen draws named shapes into an SVG. A shape that was in the last drawing is changed in place, so that it can move smoothly; a shape that
// is not drawn again is removed.

import { svg } from "./elements.js";

export function penFor(root) {
  const known = new Map();
  let touched = new Set();
  let parent = root;
  let before = null;

  // The element with this name, moved after the last drawn one.
  function element(key, tag) {
    let found = known.get(key);
    if (!found || found.localName !== tag || found.parentNode !== parent) {
      if (found) found.remove();
      found = svg(tag);
      known.set(key, found);
    }
    const place = before ? before.nextSibling : parent.firstChild;
    if (found !== place) parent.insertBefore(found, place);
    before = found;
    touched.add(key);
    return found;
  }

  function set(found, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
      if (found.getAttribute(name) !== String(value)) found.setAttribute(name, value);
    }
  }

  return {
    // Sets the size of the drawing in its own units.
    view(width, height) {
      set(root, { viewBox: `0 0 ${width} ${height}` });
    },
    // Draws a shape, or a text.
    shape(key, tag, attributes, text) {
      const found = element(key, tag);
      set(found, attributes);
      if (text !== undefined && found.textContent !== text) found.textContent = text;
    },
    // Draws a group of shapes that move together: { at: [x, y], turn: degrees, scale, class }.
    group(key, { at, turn, scale, class: name }, draw) {
      const found = element(key, "g");
      set(found, { class: name ? `pen-group ${name}` : "pen-group" });
      found.style.transform = `translate(${at[0]}px,${at[1]}px) rotate(${turn || 0}deg) scale(${scale || 1})`;
      const outer = [parent, before];
      [parent, before] = [found, null];
      draw();
      [parent, before] = outer;
    },
    // Ends a drawing, and removes the shapes that are not in it.
    done() {
      for (const [key, found] of known) {
        if (!touched.has(key)) {
          found.remove();
          known.delete(key);
        }
      }
      touched = new Set();
      before = null;
    },
  };
}
