// PO-Overcooked as a page draws it: the kitchen from above, the ego's side on the left; the room that the ego does not see is dim.
// A picture is what `view::picture` in view.rs gives: { size, divider, last_upper_row, seen_rows, board, delivery, plate,
// cooks: [{ at, facing, holds }], foods: { name: [x, y, "fresh" | "chopped" | "plated"] } }; the ego is the first cook.

const CELL = 40;
const TURN = { left: 180, right: 0, down: 90, up: 270 };
const STEP = { left: [-1, 0], right: [1, 0], down: [0, 1], up: [0, -1] };
const middle = ([x, y]) => [(x + 0.5) * CELL, (y + 0.5) * CELL];

export function draw(pen, picture) {
  const [columns, rows] = picture.size;
  pen.view(columns * CELL, rows * CELL);
  const isFloor = (x, y) => x !== 0 && y !== 0 && x !== columns - 1 && y !== rows - 1 && x !== picture.divider;
  const sees = (y) => y >= picture.seen_rows[0] && y <= picture.seen_rows[1];
  pen.shape("floor", "rect", { class: "cook-floor", x: 0, y: 0, width: columns * CELL, height: rows * CELL, rx: 8 });
  for (let y = 0; y < rows; y += 1) {
    for (let x = 0; x < columns; x += 1) {
      const at = { x: x * CELL, y: y * CELL, width: CELL, height: CELL };
      if (!isFloor(x, y)) {
        const inside = { x: at.x + 1.5, y: at.y + 1.5, width: CELL - 3, height: CELL - 3, rx: 5 };
        pen.shape(`counter-${x}-${y}`, "rect", { class: "cook-counter", ...inside });
      } else if ((x + y) % 2 === 0) {
        pen.shape(`tile-${x}-${y}`, "rect", { class: "cook-tile", ...at });
      }
    }
  }
  board(pen, picture.board);
  delivery(pen, picture.delivery);
  // What is held, or in a plate that is held, is drawn at the hand that holds it.
  const offset = (at) => {
    const cook = picture.cooks.find((cook) => cook.holds && cook.at[0] === at[0] && cook.at[1] === at[1]);
    const [dx, dy] = cook ? STEP[cook.facing] : [0, 0];
    return [middle(at)[0] + dx * 15, middle(at)[1] + dy * 15];
  };
  picture.cooks.forEach((cook, index) => chef(pen, cook, index, sees(cook.at[1])));
  pen.group("plate", { at: offset(picture.plate), class: sees(picture.plate[1]) ? "" : "cook-unseen unseen" }, () => {
    pen.shape("plate-rim", "circle", { class: "cook-plate", cx: 0, cy: 0, r: 14 });
    pen.shape("plate-well", "circle", { class: "cook-well", cx: 0, cy: 0, r: 9.5 });
  });
  const plated = Object.keys(picture.foods).filter((name) => picture.foods[name][2] === "plated");
  for (const [name, [x, y, condition]] of Object.entries(picture.foods)) {
    const at = offset([x, y]);
    if (condition === "plated") at[0] += plated.indexOf(name) * 9 - (plated.length - 1) * 4.5;
    const size = condition === "plated" ? 0.62 : 1;
    pen.group(`food-${name}`, { at, scale: size, class: sees(y) ? "" : "cook-unseen unseen" }, () => {
      food(pen, name, condition !== "fresh");
    });
  }
  // The other room: under a veil, behind the line of sight.
  const [first, last] = sees(0) ? [picture.last_upper_row + 1, rows - 1] : [0, picture.last_upper_row];
  const veil = { x: 0, y: first * CELL, width: columns * CELL, height: (last - first + 1) * CELL };
  pen.shape("veil", "rect", { class: "cook-veil", ...veil });
  const y = (picture.last_upper_row + 1) * CELL;
  pen.shape("sight", "path", { class: "cook-sight", d: `M0 ${y}H${columns * CELL}` });
}

function board(pen, cell) {
  pen.group("board", { at: middle(cell) }, () => {
    pen.shape("board-wood", "rect", { class: "cook-board", x: -15, y: -12, width: 30, height: 24, rx: 4 });
    pen.shape("board-knife", "path", { class: "cook-knife", d: "M-11 8L4 8Q10 8 11 5L11 4L-11 4Z" });
  });
}

function delivery(pen, cell) {
  pen.group("delivery", { at: middle(cell) }, () => {
    pen.shape("delivery-tile", "rect", { class: "cook-delivery", x: -16, y: -16, width: 32, height: 32, rx: 5 });
    pen.shape("delivery-mark", "path", { class: "cook-bell", d: "M-10 6Q-10 -7 0 -7Q10 -7 10 6ZM-12 8H12V11H-12ZM-2 -10H2V-7H-2Z" });
  });
}

function chef(pen, cook, index, isSeen) {
  const key = index === 0 ? "ego" : "peer";
  pen.group(key, { at: middle(cook.at), class: `cook-${key}${isSeen ? "" : " cook-unseen unseen"}` }, () => {
    pen.group(key + "-turned", { at: [0, 0], turn: TURN[cook.facing] }, () => {
      pen.shape(key + "-hands", "path", { class: "cook-hands", d: "M6 -11Q16 -11 17 -6M6 11Q16 11 17 6" });
      pen.shape(key + "-body", "ellipse", { class: "cook-body", cx: 0, cy: 0, rx: 11, ry: 15 });
      pen.shape(key + "-nose", "path", { class: "cook-nose", d: "M9 -3L15 0L9 3Z" });
    });
    pen.shape(key + "-hat", "path", { class: "cook-hat", d: "M-7 3Q-12 1 -9 -4Q-9 -10 -3 -8Q0 -12 4 -8Q10 -9 9 -4Q12 1 7 3Z" });
    pen.shape(key + "-band", "path", { class: "cook-band", d: "M-7 3H7V7H-7Z" });
  });
}

const DRAWN = {
  lettuce: [
    ["path", "cook-lettuce", "M-11 2Q-13 -5 -7 -7Q-4 -12 1 -9Q8 -11 9 -5Q14 0 10 5Q8 11 1 9Q-6 12 -9 7Q-12 6 -11 2Z"],
    ["path", "cook-rib", "M-6 5Q0 0 6 -5M-2 6Q1 2 2 -5M-7 -1Q-1 0 7 1"],
  ],
  tomato: [
    ["path", "cook-tomato", "M0 -8Q11 -10 11 1Q11 10 0 10Q-11 10 -11 1Q-11 -10 0 -8Z"],
    ["path", "cook-leaf", "M0 -8L-6 -10L-3 -6L-5 -3L0 -5L5 -3L3 -6L6 -10Z"],
  ],
  potato: [
    ["path", "cook-potato", "M-11 1Q-12 -8 -3 -8Q3 -10 9 -5Q14 1 9 7Q3 11 -4 8Q-10 8 -11 1Z"],
    ["path", "cook-eyes", "M-5 -2h2M1 -4h2M3 3h2M-4 4h2"],
  ],
  onion: [
    ["path", "cook-onion", "M0 -12Q2 -6 8 -3Q13 2 8 8Q4 11 0 10Q-4 11 -8 8Q-13 2 -8 -3Q-2 -6 0 -12Z"],
    ["path", "cook-skin", "M0 -9Q-5 0 -1 9M0 -9Q5 0 1 9M0 -9V9"],
  ],
  carrot: [
    ["path", "cook-leaf", "M5 -6Q4 -12 9 -12Q8 -8 12 -9Q13 -4 7 -4Z"],
    ["path", "cook-carrot", "M8 -4Q9 1 3 4L-9 11Q-12 12 -11 9L-4 -3Q-1 -9 4 -8Q7 -7 8 -4Z"],
  ],
  broccoli: [
    ["path", "cook-stem", "M-3 2H4L3 11H-2Z"],
    ["path", "cook-broccoli", "M-10 2Q-14 -4 -8 -6Q-7 -12 0 -10Q7 -13 8 -6Q14 -4 10 2Q6 5 0 3Q-6 6 -10 2Z"],
  ],
};

// Chopped food is four pieces of itself.
const PIECES = [[-5.5, -5], [5.5, -4.5], [-5, 5.5], [5.5, 5]];

function food(pen, name, isChopped) {
  const shapes = DRAWN[name.replace(/^(upper|lower)-/, "")];
  const whole = (key) => shapes.forEach(([tag, kind, d], index) => pen.shape(`${key}-${index}`, tag, { class: kind, d }));
  if (!isChopped) {
    whole(`food-${name}`);
    return;
  }
  PIECES.forEach((at, piece) => {
    const key = `food-${name}-piece-${piece}`;
    pen.group(key, { at, scale: 0.5, turn: piece * 70 }, () => whole(key));
  });
}
