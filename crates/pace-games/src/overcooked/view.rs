//! Observations of a cook, their decoding, and the kitchen as text.
//!
//! A cook sees its own room, upper or lower, on both sides of the divider, and nothing of the other room.

use super::kitchen::{
    CUTTING_BOARD, Cell, Cook, DELIVERY_TILE, Facing, HEIGHT, Kitchen, LAST_UPPER_ROW, N_OBJECTS, Object,
    WIDTH,
};
use super::recipes::Ingredient;
use crate::game::Seat;

/// Length of the observation.
pub const OBSERVATION_SIZE: usize = 105;

const OTHER: usize = 3;
const OBJECTS: usize = 6;
const OWN_FACING: usize = 42;
const OTHER_FACING: usize = 47;
const FOODS: usize = 52;
const WALLS: usize = 70;
const HELD: usize = 74;
const HELD_CHOPPED: usize = 81;
const FRONT: usize = 87;
const FRONT_CHOPPED: usize = 99;

const HELD_PLATE: usize = HELD + 3;
const FRONT_COUNTER: usize = FRONT;
const FRONT_BOARD: usize = FRONT + 1;
const FRONT_DELIVERY: usize = FRONT + 2;
const FRONT_PLATE: usize = FRONT + 6;

/// The visible part of the kitchen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The room of the observer.
    OwnRoom,
    /// Both rooms, for oracles.
    Everywhere,
}

/// The indices of an ingredient in the four parts of an observation that list ingredients.
struct Places {
    held: usize,
    held_chopped: usize,
    front: usize,
    front_chopped: usize,
}

const fn places(ingredient: Ingredient) -> Places {
    let (held, chopped, front) = match ingredient {
        Ingredient::Tomato => (0, 0, 3),
        Ingredient::Lettuce => (1, 1, 4),
        Ingredient::Onion => (2, 2, 5),
        Ingredient::Carrot => (4, 3, 9),
        Ingredient::Potato => (5, 4, 10),
        Ingredient::Broccoli => (6, 5, 11),
    };
    Places {
        held: HELD + held,
        held_chopped: HELD_CHOPPED + chopped,
        front: FRONT + front,
        front_chopped: FRONT_CHOPPED + chopped,
    }
}

/// Offsets in x from −6 to 6, divided by the grid's width; in single precision like the authors' code.
const X_SHARES: [f32; 2 * WIDTH as usize - 1] = shares(WIDTH as f32);
/// Offsets in y from −12 to 12, divided by the grid's height.
const Y_SHARES: [f32; 2 * HEIGHT as usize - 1] = shares(HEIGHT as f32);

const fn shares<const N: usize>(size: f32) -> [f32; N] {
    let mut shares = [0.0; N];
    let mut index = 0;
    while index < N {
        shares[index] = (index as i32 - (N / 2) as i32) as f32 / size;
        index += 1;
    }
    shares
}

#[inline]
fn offset(from: Cell, to: Cell) -> (f32, f32) {
    let x = usize::from(WIDTH - 1 + to.x - from.x);
    let y = usize::from(HEIGHT - 1 + to.y - from.y);
    (X_SHARES[x], Y_SHARES[y])
}

/// Writes the observation of the cook in `seat`.
#[inline]
pub(crate) fn observe(kitchen: &Kitchen, seat: Seat, sight: Sight, observation: &mut [f32]) {
    let observation: &mut [f32; OBSERVATION_SIZE] =
        observation.try_into().expect("the observation has its length");
    observation.fill(0.0);
    let own = &kitchen.cooks[seat.0];
    let other = &kitchen.cooks[1 - seat.0];
    let sees = |cell: Cell| sight == Sight::Everywhere || cell.is_upper() == own.cell.is_upper();

    (observation[0], observation[1]) = offset(Cell::new(0, 0), own.cell);
    observation[2] = 1.0;
    observation[OWN_FACING + own.facing as usize - 1] = 1.0;
    observation[OWN_FACING + 4] = 1.0;
    if sees(other.cell) {
        (observation[OTHER], observation[OTHER + 1]) = offset(own.cell, other.cell);
        observation[OTHER + 2] = 1.0;
        observation[OTHER_FACING + other.facing as usize - 1] = 1.0;
        observation[OTHER_FACING + 4] = 1.0;
    }
    for (index, cell) in kitchen.cells.into_iter().enumerate() {
        if sees(cell) {
            let place = OBJECTS + 3 * index;
            (observation[place], observation[place + 1]) = offset(own.cell, cell);
            observation[place + 2] = 1.0;
            if let Some(food) = index.checked_sub(Object::Lettuce as usize) {
                observation[FOODS + 2 * food] = f32::from(u8::from(kitchen.chopped[index]));
                observation[FOODS + 2 * food + 1] = 1.0;
            }
        }
    }
    for (place, facing) in [Facing::Right, Facing::Down, Facing::Left, Facing::Up].into_iter().enumerate() {
        observation[WALLS + place] = f32::from(u8::from(!own.cell.neighbour(facing).is_floor()));
    }
    observe_hands_and_front(kitchen, own, observation);
}

/// Writes the objects that a cook holds and that are in front of it. They are never hidden.
#[inline]
fn observe_hands_and_front(kitchen: &Kitchen, own: &Cook, observation: &mut [f32; OBSERVATION_SIZE]) {
    let front = own.cell.neighbour(own.facing);
    if front == CUTTING_BOARD {
        observation[FRONT_BOARD] = 1.0;
    } else if front == DELIVERY_TILE {
        observation[FRONT_DELIVERY] = 1.0;
    } else if !front.is_floor() {
        observation[FRONT_COUNTER] = 1.0;
    }
    if own.held == Some(Object::Plate) {
        observation[HELD_PLATE] = 1.0;
    }
    if kitchen.cell(Object::Plate) == front {
        observation[FRONT_PLATE] = 1.0;
    }
    for food in Object::FOODS {
        let cell = kitchen.cell(food);
        // Only held food, and food on a held plate, has the cook's own cell.
        let (is_held, is_front) = (cell == own.cell, cell == front);
        if is_held || is_front {
            let places = places(food.ingredient().expect("a food"));
            let (place, chopped_place) = if is_held {
                (places.held, places.held_chopped)
            } else {
                (places.front, places.front_chopped)
            };
            observation[place] = 1.0;
            if kitchen.chopped[food as usize] {
                observation[chopped_place] = 1.0;
            }
        }
    }
}

/// A decoded observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The observer.
    pub(crate) own: Cook,
    /// Cell and direction of the other cook; `None` if it is out of sight. An object that it holds has the same cell.
    pub(crate) other: Option<(Cell, Facing)>,
    /// The cells of the objects; `None` for objects out of sight.
    pub(crate) cells: [Option<Cell>; N_OBJECTS],
    /// Whether each object is in sight and chopped.
    pub(crate) chopped: [bool; N_OBJECTS],
}

impl Seen {
    pub(crate) fn cell(&self, object: Object) -> Option<Cell> {
        self.cells[object as usize]
    }
}

/// Decodes an observation.
pub(crate) fn read(observation: &[f32]) -> Seen {
    let cell = |from: Cell, place: usize| {
        let x = f32::from(from.x) + observation[place] * f32::from(WIDTH);
        let y = f32::from(from.y) + observation[place + 1] * f32::from(HEIGHT);
        Cell::new(x.round() as u8, y.round() as u8)
    };
    let facing = |place: usize| {
        let index = observation[place..place + 4].iter().position(|value| *value == 1.0);
        Facing::ALL[index.expect("a cook in sight has a direction")]
    };
    let own_cell = cell(Cell::new(0, 0), 0);
    let other = (observation[OTHER + 2] == 1.0).then(|| (cell(own_cell, OTHER), facing(OTHER_FACING)));
    let cells = std::array::from_fn(|index| {
        let place = OBJECTS + 3 * index;
        (observation[place + 2] == 1.0).then(|| cell(own_cell, place))
    });
    let chopped = std::array::from_fn(|index| {
        index.checked_sub(Object::Lettuce as usize).is_some_and(|food| observation[FOODS + 2 * food] == 1.0)
    });
    let held = if observation[HELD_PLATE] == 1.0 {
        Some(Object::Plate)
    } else {
        Object::FOODS.into_iter().find(|food| cells[*food as usize] == Some(own_cell))
    };
    Seen { own: Cook { cell: own_cell, facing: facing(OWN_FACING), held }, other, cells, chopped }
}

/// The symbols of [`render`].
pub(crate) const LEGEND: [&str; 4] = [
    "< > ^ v  the ego, facing that way; { } n u  the peer, facing left, right, up, down",
    "L T P B O C  lettuce, tomato, potato, broccoli, onion, carrot; a small letter is chopped food",
    "@ plate, / cutting board, * delivery tile, # counter, . floor",
    "~ line of sight: neither cook sees across it, both may walk across it",
];

/// The kitchen as text: the grid, then a line with the held objects and the dish.
pub(crate) fn render(kitchen: &Kitchen) -> String {
    let mut text = String::new();
    for y in 0..HEIGHT {
        if y == LAST_UPPER_ROW + 1 {
            text.push_str("~~~~~~~~~~~~~ line of sight\n");
        }
        for x in 0..WIDTH {
            text.push(symbol(kitchen, Cell::new(x, y)));
            text.push(if x + 1 == WIDTH { '\n' } else { ' ' });
        }
    }
    let held = |cook: &Cook| match cook.held {
        None => "nothing".to_owned(),
        Some(object) => name(kitchen, object),
    };
    let dish: Vec<String> = kitchen.dish().map(|food| name(kitchen, food)).collect();
    let dish = if dish.is_empty() { "nothing".to_owned() } else { dish.join(", ") };
    let [ego, peer] = &kitchen.cooks;
    let step = kitchen.n_steps;
    text + &format!("step {step}; ego holds {}, peer holds {}; in the plate: {dish}", held(ego), held(peer))
}

/// The symbol of a cell; see [`LEGEND`].
fn symbol(kitchen: &Kitchen, cell: Cell) -> char {
    for (cook, arrows) in kitchen.cooks.iter().zip([['<', '>', 'v', '^'], ['{', '}', 'u', 'n']]) {
        if cook.cell == cell {
            return arrows[cook.facing as usize - 1];
        }
    }
    match kitchen.top_at(cell) {
        Some(Object::Plate) => '@',
        Some(food) => letter(kitchen, food),
        None if cell == CUTTING_BOARD => '/',
        None if cell == DELIVERY_TILE => '*',
        None if cell.is_floor() => '.',
        None => '#',
    }
}

fn letter(kitchen: &Kitchen, food: Object) -> char {
    let letter = match food.ingredient().expect("a food") {
        Ingredient::Lettuce => 'L',
        Ingredient::Tomato => 'T',
        Ingredient::Potato => 'P',
        Ingredient::Broccoli => 'B',
        Ingredient::Onion => 'O',
        Ingredient::Carrot => 'C',
    };
    if kitchen.chopped[food as usize] { letter.to_ascii_lowercase() } else { letter }
}

fn name(kitchen: &Kitchen, object: Object) -> String {
    match object.ingredient() {
        None => "the plate".to_owned(),
        Some(ingredient) => {
            let condition = if kitchen.chopped[object as usize] { "chopped" } else { "fresh" };
            format!("{condition} {}", format!("{ingredient:?}").to_lowercase())
        }
    }
}
