// The beliefs of an agent: bars for its action probabilities, bars or a plane for the probabilities of a peer's kind.

// Of more kinds than this, only the most likely are listed.
const MOST_BARS = 10;

export function make(tag, attributes, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) found.setAttribute(name, value);
  found.append(...children);
  return found;
}

// Bars with names: rows of { name, share, mark, note }. Returns a node and a way to show other rows.
export function bars(label) {
  const list = make("ol", { class: "mind-bars", "aria-label": label });
  return {
    node: list,
    show(rows) {
      while (list.children.length > rows.length) list.lastChild.remove();
      while (list.children.length < rows.length) {
        const row = make("li", {}, make("span", { class: "mind-name" }), make("span", { class: "mind-track" }, make("span", { class: "mind-fill" })), make("span", { class: "mind-share" }));
        list.append(row);
      }
      rows.forEach(({ name, share, mark, note }, place) => {
        const row = list.children[place];
        row.className = mark || "";
        row.children[0].textContent = note ? `${name} · ${note}` : name;
        row.children[1].firstChild.style.width = `${100 * share}%`;
        row.children[2].textContent = percent(share);
      });
    },
  };
}

export function percent(share) {
  return `${Math.round(100 * share)}\u00a0%`;
}

// The agent's belief about one peer. `peer` is { role, kinds: [{ name, traits }], truth, traits }; `plane` names two traits.
export function belief(peer, plane, penFor) {
  const flat = peer.kinds.every((kind) => kind.traits.length === 2);
  const onPlane = peer.kinds.length > MOST_BARS && flat && plane;
  const title = make("h4", {}, `belief about ${peer.role}`);
  const node = make("div", { class: "mind-peer" }, title);
  if (peer.truth === null && !onPlane) {
    node.append(make("p", { class: "mind-note" }, "No training peer is of this kind; the nearest kinds are shown."));
  }
  const show = onPlane ? planeOf(peer, plane, penFor, node) : barsOf(peer, node);
  return { node, show };
}

function barsOf(peer, node) {
  const list = bars(`belief about ${peer.role}`);
  node.append(list.node);
  return (shares) => {
    const rows = peer.kinds.map((kind, place) => {
      const isTrue = place === peer.truth;
      return { name: kind.name, share: shares[place], mark: isTrue ? "mind-true" : "", note: isTrue ? "true" : "" };
    });
    if (rows.length > MOST_BARS) {
      rows.sort((one, other) => other.share - one.share);
      rows.length = MOST_BARS;
    }
    list.show(rows);
  };
}

// Two traits across and up; the more likely a kind, the larger its dot. The cross is the true peer.
function planeOf(peer, plane, penFor, node) {
  const [left, top, side] = [46, 10, 200];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "mind-plane");
  svg.setAttribute("role", "img");
  node.append(svg);
  const told = make("p", { class: "mind-note" });
  node.append(told);
  const pen = penFor(svg);
  const at = ([x, y]) => [left + x * side, top + (1 - y) * side];
  return (shares) => {
    pen.view(left + side + 14, top + side + 34);
    pen.shape("frame", "rect", { class: "mind-frame", x: left, y: top, width: side, height: side });
    for (const tick of [0, 0.5, 1]) {
      const [x, y] = at([tick, tick]);
      pen.shape(`x${tick}`, "text", { class: "mind-tick", x, y: top + side + 14, "text-anchor": "middle" }, String(tick));
      pen.shape(`y${tick}`, "text", { class: "mind-tick", x: left - 6, y: y + 4, "text-anchor": "end" }, String(tick));
    }
    pen.shape("x", "text", { class: "mind-tick", x: left + side / 2, y: top + side + 29, "text-anchor": "middle" }, plane.x);
    pen.shape("y", "text", { class: "mind-tick", transform: `translate(10 ${top + side / 2}) rotate(-90)`, "text-anchor": "middle" }, plane.y);
    peer.kinds.forEach((kind, place) => {
      const [cx, cy] = at(kind.traits);
      pen.shape(`seed-${place}`, "circle", { class: "mind-seed", cx, cy, r: 1.5 });
      pen.shape(`dot-${place}`, "circle", { class: "mind-dot", cx, cy, r: (Math.sqrt(shares[place]) * 26).toFixed(1) });
    });
    const mean = [0, 1].map((axis) => peer.kinds.reduce((sum, kind, place) => sum + kind.traits[axis] * shares[place], 0));
    const [mx, my] = at(mean);
    pen.shape("mean", "circle", { class: "mind-mean", cx: mx.toFixed(1), cy: my.toFixed(1), r: 5 });
    if (peer.traits.length === 2) {
      const [x, y] = at(peer.traits);
      pen.shape("truth", "path", { class: "mind-cross", d: `M${x - 6} ${y}h12M${x} ${y - 6}v12` });
    }
    pen.done();
    const words = mean.map((value) => value.toFixed(2));
    svg.setAttribute("aria-label", `belief about ${peer.role}: mean ${words.join(", ")} (${plane.x}, ${plane.y})`);
    const truth = peer.traits.length === 2 ? ` The cross is the true peer: ${peer.traits.map((value) => value.toFixed(2)).join(", ")}.` : "";
    told.textContent = `Dots are the training peers, larger if more likely; the ring is their mean, ${words.join(", ")}.${truth}`;
  };
}
