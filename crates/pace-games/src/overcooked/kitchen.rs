//! The kitchen: the grid, the objects on it, the transitions and the rewards.
//!
//! The dishes and the goal graphs are in `recipes`, observations in `view`, and the peers in `peers`.

use serde::{Deserialize, Serialize};

use super::recipes::{Facts, GoalProgress, Ingredient, Ingredients, Recipe};
use crate::game::Action;
use crate::seed::Stream;

/// Columns of the grid.
pub(crate) const WIDTH: u8 = 7;
/// Rows of the grid.
pub(crate) const HEIGHT: u8 = 13;
/// The last row of the upper room. Cooks in the upper room do not see the lower room, and vice versa.
pub(crate) const LAST_UPPER_ROW: u8 = 8;
/// The column of counters between the two cooks.
pub(crate) const DIVIDER: u8 = 3;
/// The cell on which food is chopped.
pub const CUTTING_BOARD: Cell = Cell { x: 0, y: 3 };
/// The cell on which a dish is delivered; only the peer reaches it.
pub const DELIVERY_TILE: Cell = Cell { x: 6, y: 3 };

/// The action that does nothing.
pub(crate) const STAY: Action = 0;
/// The first of the four moves; they follow in the order of [`Facing`].
pub(crate) const LEFT: Action = 1;
/// The action that uses the cell in front.
pub(crate) const INTERACT: Action = 5;

/// A cell, x from left to right, y from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Column.
    pub x: u8,
    /// Row.
    pub y: u8,
}

impl Cell {
    /// The cell in column `x` and row `y`.
    pub const fn new(x: u8, y: u8) -> Cell {
        Cell { x, y }
    }

    /// Whether the cell is part of the grid.
    pub(crate) fn is_in_grid(self) -> bool {
        self.x < WIDTH && self.y < HEIGHT
    }

    /// Whether a cook can stand on the cell. All other cells are counters, the cutting board or the delivery tile.
    #[inline]
    pub(crate) fn is_floor(self) -> bool {
        const FLOOR_COLUMNS: u8 = 0b011_0110;
        FLOOR_COLUMNS >> self.x & 1 == 1 && self.y.wrapping_sub(1) < HEIGHT - 2
    }

    /// Whether the cell is in the upper room.
    #[inline]
    pub fn is_upper(self) -> bool {
        self.y <= LAST_UPPER_ROW
    }

    /// The next cell in a direction, for floor cells: they all have four neighbours.
    #[inline]
    pub(crate) fn neighbour(self, facing: Facing) -> Cell {
        match facing {
            Facing::Left => Cell::new(self.x - 1, self.y),
            Facing::Right => Cell::new(self.x + 1, self.y),
            Facing::Down => Cell::new(self.x, self.y + 1),
            Facing::Up => Cell::new(self.x, self.y - 1),
        }
    }

    /// The Manhattan distance between two cells.
    #[inline]
    pub(crate) fn distance(self, other: Cell) -> u8 {
        self.x.abs_diff(other.x) + self.y.abs_diff(other.y)
    }
}

/// The direction of a cook. The discriminants are the actions of the moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Facing {
    Left = 1,
    Right = 2,
    Down = 3,
    Up = 4,
}

impl Facing {
    /// All directions, in the order of the moves.
    pub const ALL: [Facing; 4] = [Facing::Left, Facing::Right, Facing::Down, Facing::Up];

    /// The direction of a move; `None` for any other action.
    #[inline]
    pub fn of_action(action: Action) -> Option<Facing> {
        Facing::ALL.get(usize::from(action.wrapping_sub(LEFT))).copied()
    }

    /// The move in this direction.
    #[inline]
    pub(crate) fn action(self) -> Action {
        self as Action
    }
}

/// The twelve objects. Foods of one kind are named by the room in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Object {
    CuttingBoard,
    DeliveryTile,
    Plate,
    Lettuce,
    Tomato,
    Potato,
    UpperBroccoli,
    LowerBroccoli,
    UpperOnion,
    LowerOnion,
    UpperCarrot,
    LowerCarrot,
}

/// The number of objects.
pub const N_OBJECTS: usize = 12;

impl Object {
    /// All objects, in the order of the observation.
    pub const ALL: [Object; N_OBJECTS] = [
        Object::CuttingBoard,
        Object::DeliveryTile,
        Object::Plate,
        Object::Lettuce,
        Object::Tomato,
        Object::Potato,
        Object::UpperBroccoli,
        Object::LowerBroccoli,
        Object::UpperOnion,
        Object::LowerOnion,
        Object::UpperCarrot,
        Object::LowerCarrot,
    ];

    /// The nine pieces of food, which are the last objects.
    pub(crate) const FOODS: [Object; 9] =
        *Object::ALL.last_chunk().expect("there are more objects than foods");

    /// The kind of food; `None` for an object that is not food.
    #[inline]
    pub(crate) fn ingredient(self) -> Option<Ingredient> {
        match self {
            Object::CuttingBoard | Object::DeliveryTile | Object::Plate => None,
            Object::Lettuce => Some(Ingredient::Lettuce),
            Object::Tomato => Some(Ingredient::Tomato),
            Object::Potato => Some(Ingredient::Potato),
            Object::UpperBroccoli | Object::LowerBroccoli => Some(Ingredient::Broccoli),
            Object::UpperOnion | Object::LowerOnion => Some(Ingredient::Onion),
            Object::UpperCarrot | Object::LowerCarrot => Some(Ingredient::Carrot),
        }
    }

    /// The pieces of one kind, the upper one first.
    pub(crate) fn pieces(ingredient: Ingredient) -> &'static [Object] {
        match ingredient {
            Ingredient::Lettuce => &[Object::Lettuce],
            Ingredient::Tomato => &[Object::Tomato],
            Ingredient::Potato => &[Object::Potato],
            Ingredient::Broccoli => &[Object::UpperBroccoli, Object::LowerBroccoli],
            Ingredient::Onion => &[Object::UpperOnion, Object::LowerOnion],
            Ingredient::Carrot => &[Object::UpperCarrot, Object::LowerCarrot],
        }
    }

    /// Whether the object cannot be moved.
    pub(crate) fn is_fixed(self) -> bool {
        matches!(self, Object::CuttingBoard | Object::DeliveryTile)
    }
}

/// One of the two cooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cook {
    /// The cell on which it stands.
    pub cell: Cell,
    /// The direction that it faces.
    pub facing: Facing,
    /// The object that it holds.
    pub held: Option<Object>,
}

impl Cook {
    /// A cook at the start of an episode: with empty hands, facing left.
    pub(crate) fn at_start(cell: Cell) -> Cook {
        Cook { cell, facing: Facing::Left, held: None }
    }
}

/// The objects that a cook has held in this episode, by condition: the first time is rewarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handled {
    /// Two bits per object: held fresh, held chopped.
    foods: u32,
    /// One bit per set of ingredients on the held plate.
    plates: u64,
}

/// The state of an episode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kitchen {
    /// Steps taken in this episode.
    pub n_steps: u16,
    /// The ego and the peer.
    pub cooks: [Cook; 2],
    /// The cell of each object, by [`Object`]. A held object, and a held plate's content, have the cell of the cook.
    pub cells: [Cell; N_OBJECTS],
    /// Whether each object is chopped, by [`Object`].
    pub chopped: [bool; N_OBJECTS],
    /// The foods on the plate, in the order in which they were added.
    pub dish: [Option<Object>; 6],
    /// The achieved nodes of the goal graphs.
    pub progress: GoalProgress,
    /// The objects that each cook has held.
    pub handled: [Handled; 2],
}

/// The reward when a cook holds an object for the first time, or for the first time in a new condition.
const FIRST_HANDLING: f64 = 0.5;

impl Kitchen {
    /// Samples the start of an episode. Every object is placed uniformly on the free cells among its possible cells.
    pub(crate) fn initial(rng: &mut Stream) -> Kitchen {
        let at = Cell::new;
        let mut cells = [CUTTING_BOARD; N_OBJECTS];
        cells[Object::DeliveryTile as usize] = DELIVERY_TILE;
        let plate = at(DIVIDER, 2 + rng.below(3) as u8);
        cells[Object::Plate as usize] = plate;

        // The plate may be on one of these five cells, or on (3,4).
        let mut upper = [at(0, 1), at(0, 2), at(3, 1), at(3, 2), at(3, 3)];
        let mut n_free = upper.len();
        if let Some(taken) = upper.iter().position(|cell| *cell == plate) {
            upper.swap(taken, n_free - 1);
            n_free -= 1;
        }
        for object in [Object::Lettuce, Object::Tomato, Object::Potato, Object::UpperBroccoli] {
            let pick = rng.below(n_free as u32) as usize;
            cells[object as usize] = upper[pick];
            n_free -= 1;
            upper.swap(pick, n_free);
        }

        let onion_x = 1 + rng.below(2) as u8;
        cells[Object::UpperOnion as usize] = at(onion_x, 0);
        cells[Object::UpperCarrot as usize] = at(3 - onion_x, 0);

        let mut lower = [at(6, 9), at(6, 10), at(6, 11)];
        rng.shuffle(&mut lower);
        cells[Object::LowerOnion as usize] = lower[0];
        cells[Object::LowerCarrot as usize] = lower[1];
        cells[Object::LowerBroccoli as usize] = lower[2];

        let ego = at(1 + rng.below(2) as u8, 1 + rng.below(8) as u8);
        let peer = at(4 + rng.below(2) as u8, 10 + rng.below(2) as u8);
        Kitchen {
            n_steps: 0,
            cooks: [Cook::at_start(ego), Cook::at_start(peer)],
            cells,
            chopped: [false; N_OBJECTS],
            dish: [None; 6],
            progress: GoalProgress::default(),
            handled: [Handled::default(); 2],
        }
    }

    /// A given kitchen at the start of an episode. Held objects are moved to their cooks, and the foods of `dish` to the plate.
    /// Everything achieved here is not rewarded later.
    pub fn arranged(
        cooks: [Cook; 2],
        cells: [Cell; N_OBJECTS],
        chopped: [bool; N_OBJECTS],
        dish: &[Object],
    ) -> Kitchen {
        assert!(dish.len() <= 6, "a plate takes one piece of each of the six kinds, found {dish:?}");
        let mut kitchen = Kitchen {
            n_steps: 0,
            cooks,
            cells,
            chopped,
            dish: std::array::from_fn(|index| dish.get(index).copied()),
            progress: GoalProgress::default(),
            handled: [Handled::default(); 2],
        };
        let plate = kitchen.cell(Object::Plate);
        kitchen.put(Object::Plate, plate);
        for cook in cooks {
            if let Some(held) = cook.held {
                kitchen.put(held, cook.cell);
            }
        }
        kitchen.progress.update(kitchen.facts());
        kitchen.reward_first_handlings();
        kitchen
    }

    /// The cell of `object`.
    #[inline]
    pub fn cell(&self, object: Object) -> Cell {
        self.cells[object as usize]
    }

    /// The foods on the plate, in the order in which they were added.
    #[inline]
    pub(crate) fn dish(&self) -> impl Iterator<Item = Object> + '_ {
        self.dish.iter().map_while(|food| *food)
    }

    /// The kinds of food on the plate.
    #[inline]
    pub(crate) fn plated(&self) -> Ingredients {
        let mut plated = Ingredients::NONE;
        for food in self.dish() {
            plated.insert(food.ingredient().expect("only food is plated"));
        }
        plated
    }

    /// The object that can be taken from a cell: the plate if it is there, else the food.
    #[inline]
    pub(crate) fn top_at(&self, cell: Cell) -> Option<Object> {
        Object::ALL[Object::Plate as usize..].iter().copied().find(|object| self.cell(*object) == cell)
    }

    /// Whether the plate is on the delivery tile with one of the nine dishes.
    #[inline]
    pub(crate) fn is_delivered(&self) -> bool {
        self.progress.is_delivered()
    }

    /// Executes the actions of both cooks, the ego's first. Returns the shared reward, without the cost of the step.
    #[inline]
    pub(crate) fn step(&mut self, actions: [Action; 2]) -> f64 {
        self.n_steps += 1;
        for (cook, action) in self.cooks.iter_mut().zip(actions) {
            if let Some(facing) = Facing::of_action(action) {
                cook.facing = facing;
            }
        }
        let mut is_changed = false;
        for (cook, action) in actions.into_iter().enumerate() {
            if action == INTERACT {
                is_changed |= self.interact(cook);
            } else if action != STAY {
                self.walk(cook);
            }
        }
        // Rewards follow only from a change of an object, which most steps do not bring.
        if is_changed { self.reward_first_handlings() + self.progress.update(self.facts()) } else { 0.0 }
    }

    /// Moves a cook forward, with the object it holds. In front of a counter it stays on its cell.
    #[inline]
    fn walk(&mut self, cook: usize) {
        let Cook { cell, facing, held } = self.cooks[cook];
        let target = cell.neighbour(facing);
        if target.is_floor() {
            self.cooks[cook].cell = target;
            if let Some(held) = held {
                self.put(held, target);
            }
        }
    }

    /// Uses the cell in front of a cook. Returns whether an object changed. The other cook is never in front: the divider is
    /// between them.
    fn interact(&mut self, cook: usize) -> bool {
        let Cook { cell, facing, held } = self.cooks[cook];
        let front = cell.neighbour(facing);
        match (held, self.top_at(front)) {
            (None, None) => false,
            (Some(held), None) => {
                let is_accepted = !front.is_floor() && (front != CUTTING_BOARD || held != Object::Plate);
                if is_accepted {
                    self.cooks[cook].held = None;
                    self.put(held, front);
                }
                is_accepted
            }
            (None, Some(top)) => {
                if front == CUTTING_BOARD && top != Object::Plate && !self.chopped[top as usize] {
                    self.chopped[top as usize] = true;
                } else {
                    self.cooks[cook].held = Some(top);
                    self.put(top, cell);
                }
                true
            }
            (Some(Object::Plate), Some(food)) => self.add_to_plate(food),
            (Some(food), Some(Object::Plate)) => {
                let is_added = self.add_to_plate(food);
                if is_added {
                    self.cooks[cook].held = None;
                }
                is_added
            }
            (Some(_), Some(_)) => false,
        }
    }

    /// Puts a food on the plate, if it is chopped and its kind is not on the plate yet. Returns whether it was added.
    fn add_to_plate(&mut self, food: Object) -> bool {
        let ingredient = food.ingredient().expect("the plate itself is not added to the plate");
        let is_mixable = self.chopped[food as usize] && !self.plated().contains(ingredient);
        if is_mixable {
            let place = self.dish.iter_mut().find(|place| place.is_none());
            *place.expect("six kinds, six places") = Some(food);
            self.cells[food as usize] = self.cell(Object::Plate);
        }
        is_mixable
    }

    /// Puts an object on a cell, a plate with its content.
    #[inline]
    fn put(&mut self, object: Object, cell: Cell) {
        self.cells[object as usize] = cell;
        if object == Object::Plate {
            for index in 0..self.dish.len() {
                let Some(food) = self.dish[index] else { break };
                self.cells[food as usize] = cell;
            }
        }
    }

    /// Records the objects that the cooks hold, and returns the reward for those held for the first time.
    fn reward_first_handlings(&mut self) -> f64 {
        let plate_bit = 1u64 << self.plated().number();
        let mut reward = 0.0;
        for (cook, handled) in self.cooks.iter().zip(&mut self.handled) {
            let is_new = match cook.held {
                None => false,
                Some(Object::Plate) => {
                    let is_new = handled.plates & plate_bit == 0;
                    handled.plates |= plate_bit;
                    is_new
                }
                Some(food) => {
                    let bit = 1u32 << (2 * food as u32 + u32::from(self.chopped[food as usize]));
                    let is_new = handled.foods & bit == 0;
                    handled.foods |= bit;
                    is_new
                }
            };
            if is_new {
                reward += FIRST_HANDLING;
            }
        }
        reward
    }

    /// The conditions of the goal graphs.
    fn facts(&self) -> Facts {
        let mut chopped = Ingredients::NONE;
        for food in Object::FOODS {
            if self.chopped[food as usize] {
                chopped.insert(food.ingredient().expect("a food"));
            }
        }
        let plate = self.cell(Object::Plate);
        Facts { chopped, plated: self.plated(), plate_delivered: plate == DELIVERY_TILE }
    }

    /// Whether the plate contains exactly the ingredients of `recipe`.
    pub(crate) fn is_dish(&self, recipe: Recipe) -> bool {
        self.plated() == recipe.ingredients()
    }

    /// The reason for which no play can lead to this state; `None` for a possible state.
    pub(crate) fn contradiction(&self, horizon_steps: usize) -> Option<String> {
        if usize::from(self.n_steps) > horizon_steps {
            return Some(format!("{} steps were taken, the horizon is {horizon_steps}", self.n_steps));
        }
        if self.cooks[0].held.is_some() && self.cooks[0].held == self.cooks[1].held {
            return Some(format!("both cooks hold the {:?}", self.cooks[0].held));
        }
        for (name, cook, columns) in [("ego", self.cooks[0], [1, 2]), ("peer", self.cooks[1], [4, 5])] {
            if !cook.cell.is_in_grid() || !cook.cell.is_floor() || !columns.contains(&cook.cell.x) {
                return Some(format!("the {name} stands at {:?}, which is no floor of its side", cook.cell));
            }
            if cook.held.is_some_and(Object::is_fixed) {
                return Some(format!("the {name} holds the {:?}, which cannot be moved", cook.held));
            }
            if let Some(held) = cook.held
                && self.cell(held) != cook.cell
            {
                return Some(format!(
                    "the {name} at {:?} holds the {held:?} at {:?}",
                    cook.cell,
                    self.cell(held)
                ));
            }
        }
        self.contradiction_in_dish().or_else(|| self.contradiction_in_cells()).or_else(|| {
            let facts = self.facts();
            (!self.progress.fits(facts))
                .then(|| format!("the goal graphs {:?} do not fit {facts:?}", self.progress.nodes()))
        })
    }

    fn contradiction_in_dish(&self) -> Option<String> {
        if self.dish.iter().skip_while(|food| food.is_some()).any(Option::is_some) {
            return Some(format!("the dish {:?} has a gap", self.dish));
        }
        let mut kinds = Ingredients::NONE;
        for food in self.dish() {
            let Some(ingredient) = food.ingredient() else {
                return Some(format!("the plate contains the {food:?}, which is no food"));
            };
            if !self.chopped[food as usize] {
                return Some(format!("the plate contains the {food:?}, which is not chopped"));
            }
            if kinds.contains(ingredient) {
                return Some(format!("the plate contains {ingredient:?} twice"));
            }
            if self.cooks.iter().any(|cook| cook.held == Some(food)) {
                return Some(format!("the {food:?} is in the plate and in a hand"));
            }
            if self.cell(food) != self.cell(Object::Plate) {
                return Some(format!(
                    "the {food:?} is in the plate, but at {:?} and not at {:?}",
                    self.cell(food),
                    self.cell(Object::Plate)
                ));
            }
            kinds.insert(ingredient);
        }
        None
    }

    fn contradiction_in_cells(&self) -> Option<String> {
        if self.cell(Object::CuttingBoard) != CUTTING_BOARD
            || self.cell(Object::DeliveryTile) != DELIVERY_TILE
        {
            return Some("the cutting board or the delivery tile is not in its place".to_owned());
        }
        for object in Object::ALL {
            let cell = self.cell(object);
            if self.chopped[object as usize] && object.ingredient().is_none() {
                return Some(format!("the {object:?} is chopped"));
            }
            if !cell.is_in_grid() {
                return Some(format!("the {object:?} is at {cell:?}, outside the grid"));
            }
            if object.is_fixed() || !self.lies(object) {
                continue;
            }
            if cell.is_floor() {
                return Some(format!("the {object:?} lies on the floor at {cell:?}"));
            }
            if object == Object::Plate && cell == CUTTING_BOARD {
                return Some("the plate lies on the cutting board, which takes only food".to_owned());
            }
            let neighbour = Object::ALL.into_iter().find(|other| {
                *other > object && !other.is_fixed() && self.lies(*other) && self.cell(*other) == cell
            });
            if let Some(other) = neighbour {
                return Some(format!("the {object:?} and the {other:?} both lie at {cell:?}"));
            }
        }
        None
    }

    /// Whether an object is neither held nor on the plate.
    fn lies(&self, object: Object) -> bool {
        self.cooks.iter().all(|cook| cook.held != Some(object)) && self.dish().all(|food| food != object)
    }
}
