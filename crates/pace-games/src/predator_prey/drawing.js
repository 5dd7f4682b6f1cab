// Predator-Prey-W as a page draws it: north is up, what the ego does not see is dim.
// A picture is what `view::picture` in view.rs gives: { agents: [{ name, at, size, seen, caught? }], obstacles, towers, radius };
// the ego is the first agent, those with `caught` are prey, and no radius means that the ego sees everything.

const SCALE = 200;
const EXTENT = 1.3;
const SIZE = 2 * EXTENT * SCALE;

const px = (length) => length * SCALE;
// There are no walls: an agent that has left the map is drawn at the edge of the picture.
const within = (coordinate) => Math.max(-EXTENT + 0.03, Math.min(EXTENT - 0.03, coordinate));
const place = ([x, y]) => [(within(x) + EXTENT) * SCALE, (EXTENT - within(y)) * SCALE];

export function draw(pen, picture, past) {
  const { agents, obstacles, towers, radius } = picture;
  const ego = place(agents[0].at);
  const [west, north] = place([-1, 1]);
  pen.view(SIZE, SIZE);
  pen.shape("ground", "rect", { class: "prey-ground", x: 0, y: 0, width: SIZE, height: SIZE });
  pen.shape("field", "rect", { class: "prey-field", x: west, y: north, width: px(2), height: px(2), rx: 6 });
  for (const line of [-0.5, 0, 0.5]) {
    const [x, y] = place([line, line]);
    pen.shape(`x${line}`, "path", { class: "prey-grid", d: `M${x} ${north}v${px(2)}` });
    pen.shape(`y${line}`, "path", { class: "prey-grid", d: `M${west} ${y}h${px(2)}` });
  }
  // The veil has a hole where the ego sees.
  if (radius) {
    const r = px(radius);
    const hole = `M${ego[0] - r} ${ego[1]}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    pen.shape("veil", "path", { class: "prey-veil", "fill-rule": "evenodd", d: `M0 0H${SIZE}V${SIZE}H0Z${hole}` });
    pen.shape("sight", "circle", { class: "prey-sight", cx: ego[0], cy: ego[1], r });
  } else {
    pen.shape("sight", "rect", { class: "prey-sight", x: 1.5, y: 1.5, width: SIZE - 3, height: SIZE - 3 });
  }
  obstacles.forEach((obstacle, index) => {
    const [x, y] = place(obstacle.at);
    const dim = obstacle.seen ? "" : " prey-unseen unseen";
    pen.shape(`rock-${index}`, "circle", { class: `prey-rock${dim}`, cx: x, cy: y, r: px(obstacle.size) });
  });
  towers.at.forEach((at, index) => tower(pen, index, at, towers.size, radius ? "" : " prey-lit"));
  agents.forEach((agent, index) => {
    const points = past.map((picture) => place(picture.agents[index].at)).concat([place(agent.at)]);
    const path = points.slice(-14).map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
    const hidden = agent.seen ? "" : " unseen";
    pen.shape(`trail-${index}`, "path", { class: `prey-trail ${kind(agents, index)}${hidden}`, d: `M${path}` });
  });
  // The cost of every prey: its distance to the nearest predator.
  agents.filter(isPrey).forEach((prey) => {
    const hunters = agents.filter((agent) => !isPrey(agent));
    const far = (agent) => Math.hypot(agent.at[0] - prey.at[0], agent.at[1] - prey.at[1]);
    const near = hunters.reduce((one, other) => (far(other) < far(one) ? other : one));
    const [from, to] = [place(prey.at), place(near.at)];
    const hidden = prey.seen && near.seen ? "" : " unseen";
    pen.shape(`way-${prey.name}`, "path", { class: `prey-way${hidden}`, d: `M${from[0]} ${from[1]}L${to[0]} ${to[1]}` });
  });
  // The ego last, so that it is on top.
  for (let index = agents.length - 1; index >= 0; index -= 1) {
    body(pen, agents[index], kind(agents, index));
  }
}

const isPrey = (agent) => agent.caught !== undefined;

function kind(agents, index) {
  if (index === 0) return "prey-ego";
  return isPrey(agents[index]) ? "prey-prey" : "prey-predator";
}

function body(pen, agent, kind) {
  const key = `agent-${agent.name}`;
  const dim = agent.seen ? "" : " prey-unseen unseen";
  pen.group(key, { at: place(agent.at), class: `${kind}${dim}` }, () => {
    const r = px(agent.size);
    pen.shape(key + "-body", "circle", { class: "prey-body", cx: 0, cy: 0, r });
    pen.shape(key + "-name", "text", { class: "prey-name", x: 0, y: r * 0.38, "font-size": r * 1.1 }, agent.name);
    if (agent.caught) {
      pen.shape(key + "-caught", "circle", { class: "prey-caught", cx: 0, cy: 0, r: r + 5 });
    }
  });
}

function tower(pen, index, at, size, lit) {
  const r = px(size);
  pen.group(`tower-${index}`, { at: place(at), class: `prey-tower${lit}` }, () => {
    const key = `tower-${index}-`;
    pen.shape(key + "ring", "circle", { class: "prey-tower-ring", cx: 0, cy: 0, r: r + 3 });
    pen.shape(key + "walls", "path", { class: "prey-tower-walls", d: "M-6 8L-4 -3H4L6 8Z" });
    pen.shape(key + "top", "path", { class: "prey-tower-walls", d: "M-7 -3V-9H-4V-6H-1.5V-9H1.5V-6H4V-9H7V-3Z" });
  });
}
