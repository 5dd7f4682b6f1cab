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

/** Tells it to people who listen to the page. */
export function announce(text) {
  const live = document.getElementById("live");
  if (live.textContent !== text) live.textContent = text;
}

/** Whether people have asked for less motion. */
export function isStill() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

export function percent(value) {
  return `${Math.round(value * 100)} %`;
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

/** Asks the server; an answer that is a refusal is thrown with its words. */
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
    throw Object.assign(new Error(answer?.message ?? `The server said ${response.status}.`), { code: answer?.code });
  }
  return answer;
}

/** The server's words as a sentence: it speaks in half ones, as logs do. */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?…]$/.test(text) ? "" : "."}`;
}

/** A page with one message on it. */
export function notice(main, title, words, ...more) {
  show(main, el("section", { class: "card narrow" }, el("h1", {}, title), el("p", {}, sentence(words)), more));
  announce(title);
}

/** What the top of the page says beside the name. */
export function note(text) {
  document.getElementById("bar-note").textContent = text;
}

/** The likeliest of these, if it is likelier than by chance; otherwise null. */
export function favourite(shares) {
  const most = Math.max(...shares);
  return most > 1.5 / shares.length ? shares.indexOf(most) : null;
}
