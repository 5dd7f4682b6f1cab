//! The kitchen: the grid, the objects on it, what two cooks do to them, and what that earns.
//!
//! The dishes and the goal graphs are in `recipes`; what a cook *sees* is in `view`; how the peer chooses is in `peers`.

use serde::{Deserialize, Serialize};

use super::recipes::{Facts, GoalProgress, Ingredient, Ingredients, Recipe};
use crate::game::Action;
use crate::seed::Stream;

/// Columns of the grid.
pub const WIDTH: u8 = 7;
/// Rows of the grid.
pub const HEIGHT: u8 = 13;
/// The last row of the upper room; a cook below it cannot see above it, and the other way round.
pub const LAST_UPPER_ROW: u8 = 8;
/// The column of counters between the two cooks.
pub const DIVIDER: u8 = 3;
/// Where food is chopped.
pub const CUTTING_BOARD: Cell = Cell { x: 0, y: 3 };
/// Where a dish must lie in the end; only the peer reaches it.
pub const DELIVERY_TILE: Cell = Cell { x: 6, y: 3 };

/// Do nothing.
pub const STAY: Action = 0;
/// The first of the four moves; they follow in the order of [`Facing`].
pub const LEFT: Action = 1;
/// Use whatever is in front.
pub const INTERACT: Action = 5;

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

    /// Whether it is part of the grid.
    pub fn is_in_grid(self) -> bool {
        self.x < WIDTH && self.y < HEIGHT
    }

    /// Whether a cook can stand there. All other cells are counters, the cutting board or the delivery tile.
    #[inline]
    pub fn is_floor(self) -> bool {
        const FLOOR_COLUMNS: u8 = 0b011_0110;
        FLOOR_COLUMNS >> self.x & 1 == 1 && self.y.wrapping_sub(1) < HEIGHT - 2
    }

    /// Whether it is in the upper room.
    #[inline]
    pub fn is_upper(self) -> bool {
        self.y <= LAST_UPPER_ROW
    }

    /// The next cell in a direction. Only asked of floor cells, which all have four neighbours.
    #[inline]
    pub fn neighbour(self, facing: Facing) -> Cell {
        match facing {
            Facing::Left => Cell::new(self.x - 1, self.y),
            Facing::Right => Cell::new(self.x + 1, self.y),
            Facing::Down => Cell::new(self.x, self.y + 1),
            Facing::Up => Cell::new(self.x, self.y - 1),
        }
    }

    /// Steps between two cells if nothing stood in between.
    #[inline]
    pub fn distance(self, other: Cell) -> u8 {
        self.x.abs_diff(other.x) + self.y.abs_diff(other.y)
    }
}

/// Where a cook looks. The numbers are those of the moves.
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

    /// The direction of a move; none for an action that is no move.
    #[inline]
    pub fn of_action(action: Action) -> Option<Facing> {
        Facing::ALL.get(usize::from(action.wrapping_sub(LEFT))).copied()
    }

    /// The move in this direction.
    #[inline]
    pub fn action(self) -> Action {
        self as Action
    }
}

/// The twelve objects. Foods that lie on both sides are told apart by the room they start in.
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

/// How many objects there are.
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

    /// The nine pieces of food, which are the last of all objects.
    pub const FOODS: [Object; 9] = *Object::ALL.last_chunk().expect("there are more objects than foods");

    /// What kind of food it is, if it is food.
    #[inline]
    pub fn ingredient(self) -> Option<Ingredient> {
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
    pub fn pieces(ingredient: Ingredient) -> &'static [Object] {
        match ingredient {
            Ingredient::Lettuce => &[Object::Lettuce],
            Ingredient::Tomato => &[Object::Tomato],
            Ingredient::Potato => &[Object::Potato],
            Ingredient::Broccoli => &[Object::UpperBroccoli, Object::LowerBroccoli],
            Ingredient::Onion => &[Object::UpperOnion, Object::LowerOnion],
            Ingredient::Carrot => &[Object::UpperCarrot, Object::LowerCarrot],
        }
    }

    /// Whether it stays where it is for ever.
    pub fn is_memoryless(self) -> bool {
        matches!(self, Object::CuttingBoard | Object::DeliveryTile)
    }
}

/// One of the two cooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cook {
    /// Where it stands.
    pub cell: Cell,
    /// Where it looks.
    pub facing: Facing,
    /// What it holds.
    pub held: Option<Object>,
}

impl Cook {
    /// A cook as an episode starts: empty hands, looking left.
    pub fn arriving(cell: Cell) -> Cook {
        Cook { cell, facing: Facing::Left, held: None }
    }
}

/// What a cook has held in this episode: the first time with an object in some condition is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handled {
    /// Two bits per object: held fresh, held chopped.
    foods: u32,
    /// One bit per set of ingredients in the plate when it was held.
    plates: u64,
}

/// The point in play: an episode's whole state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kitchen {
    /// Steps taken in this episode.
    pub n_steps: u16,
    /// The ego and the peer.
    pub cooks: [Cook; 2],
    /// Where each object is, by [`Object`]. A held object is where its holder is, and so is what a plate contains.
    pub cells: [Cell; N_OBJECTS],
    /// Which foods are chopped, by [`Object`].
    pub chopped: [bool; N_OBJECTS],
    /// What the plate contains, in the order in which it was added, from the front.
    pub dish: [Option<Object>; 6],
    /// How far the goal graphs have come.
    pub progress: GoalProgress,
    /// What the cooks have held.
    pub handled: [Handled; 2],
}

/// Paid when a cook holds something, or something in a new condition, for the first time.
const FIRST_HANDLING: f64 = 0.5;

impl Kitchen {
    /// A random start of an episode. Every object is put uniformly onto the cells it may have that are still free.
    pub fn initial(rng: &mut Stream) -> Kitchen {
        let at = Cell::new;
        let mut cells = [CUTTING_BOARD; N_OBJECTS];
        cells[Object::DeliveryTile as usize] = DELIVERY_TILE;
        let plate = at(DIVIDER, 2 + rng.below(3) as u8);
        cells[Object::Plate as usize] = plate;

        // The plate may have taken one of the five cells; (3,4), the last of its own three, is none of them.
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
            cooks: [Cook::arriving(ego), Cook::arriving(peer)],
            cells,
            chopped: [false; N_OBJECTS],
            dish: [None; 6],
            progress: GoalProgress::default(),
            handled: [Handled::default(); 2],
        }
    }

    /// A kitchen set by hand at the start of an episode. Held objects and the content of the plate are moved to where
    /// they belong. Nothing is paid later for what is arranged here.
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
        kitchen.pay_first_handlings();
        kitchen
    }

    /// Where `object` is.
    #[inline]
    pub fn cell(&self, object: Object) -> Cell {
        self.cells[object as usize]
    }

    /// The pieces of food in the plate, in the order in which they were added.
    #[inline]
    pub fn dish(&self) -> impl Iterator<Item = Object> + '_ {
        self.dish.iter().map_while(|food| *food)
    }

    /// The kinds of food in the plate.
    #[inline]
    pub(crate) fn plated(&self) -> Ingredients {
        let mut plated = Ingredients::NONE;
        for food in self.dish() {
            plated.insert(food.ingredient().expect("only food is plated"));
        }
        plated
    }

    /// What can be taken from a cell: the plate if it is there, else the food.
    #[inline]
    pub fn top_at(&self, cell: Cell) -> Option<Object> {
        Object::ALL[Object::Plate as usize..].iter().copied().find(|object| self.cell(*object) == cell)
    }

    /// Whether the plate lies on the delivery tile with one of the nine dishes in it.
    #[inline]
    pub fn is_delivered(&self) -> bool {
        self.progress.is_delivered()
    }

    /// Both cooks act, the ego first; returns the reward they share, before the cost of a step.
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
        // Everything that is paid starts with an object changing hands or condition, so most steps end here.
        if is_changed { self.pay_first_handlings() + self.progress.update(self.facts()) } else { 0.0 }
    }

    /// Moves a cook the way it looks, with what it holds; in front of a counter it has only turned.
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

    /// A cook uses what is in front of it. The rooms are apart, so the other cook is never in front.
    /// Returns whether anything happened.
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

    /// Adds a chopped food of a kind that is not in the plate yet; any other stays where it is.
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

    /// Puts an object into a cell, a plate with its content.
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

    /// Marks what the cooks hold now and returns what is paid for holding it for the first time.
    fn pay_first_handlings(&mut self) -> f64 {
        let plate_bit = 1u64 << self.plated().number();
        let mut paid = 0.0;
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
                paid += FIRST_HANDLING;
            }
        }
        paid
    }

    /// What the goal graphs ask about.
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

    /// Whether the dish in the plate is exactly `recipe`.
    pub fn is_dish(&self, recipe: Recipe) -> bool {
        self.plated() == recipe.ingredients()
    }

    /// The reason why no play can be in this state, if there is one.
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
            if cook.held.is_some_and(Object::is_memoryless) {
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
            if object.is_memoryless() || !self.lies(object) {
                continue;
            }
            if cell.is_floor() {
                return Some(format!("the {object:?} lies on the floor at {cell:?}"));
            }
            if object == Object::Plate && cell == CUTTING_BOARD {
                return Some("the plate lies on the cutting board, which takes only food".to_owned());
            }
            let neighbour = Object::ALL.into_iter().find(|other| {
                *other > object && !other.is_memoryless() && self.lies(*other) && self.cell(*other) == cell
            });
            if let Some(other) = neighbour {
                return Some(format!("the {object:?} and the {other:?} both lie at {cell:?}"));
            }
        }
        None
    }

    /// Whether an object is neither in a hand nor in the plate.
    fn lies(&self, object: Object) -> bool {
        self.cooks.iter().all(|cook| cook.held != Some(object)) && self.dish().all(|food| food != object)
    }
}
