//! The quickest way for the ego to cook a dish: shortest walks, and the best order of picking, chopping and plating.
//!
//! The egos that use it are in `references`. Time is counted in the ego's own actions: a turn is one, and so is an interact.

use std::collections::VecDeque;

use super::kitchen::{
    CUTTING_BOARD, Cell, DELIVERY_TILE, DIVIDER, Facing, INTERACT, N_OBJECTS, Object, STAY,
};
use super::recipes::{Ingredient, Recipe};
use super::view::Seen;
use crate::game::Action;

/// Where the ego stands and looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pose {
    pub(crate) cell: Cell,
    pub(crate) facing: Facing,
}

/// Two columns, eleven rows, four directions.
const N_POSES: usize = 2 * 11 * 4;

impl Pose {
    fn index(self) -> usize {
        let floor = usize::from(self.cell.x - 1) + 2 * usize::from(self.cell.y - 1);
        4 * floor + self.facing as usize - 1
    }

    fn of_index(index: usize) -> Pose {
        let floor = (index / 4) as u8;
        Pose { cell: Cell::new(1 + floor % 2, 1 + floor / 2), facing: Facing::ALL[index % 4] }
    }

    /// The only pose in which the ego can use a counter. The ego's side is two cells wide, so there is never a second.
    fn using(counter: Cell) -> Pose {
        let facing = match counter {
            Cell { x: 0, .. } => Facing::Left,
            Cell { y: 0, .. } => Facing::Up,
            Cell { x: DIVIDER, .. } => Facing::Right,
            _ => Facing::Down,
        };
        let cell = match facing {
            Facing::Left => Cell::new(1, counter.y),
            Facing::Right => Cell::new(DIVIDER - 1, counter.y),
            Facing::Up => Cell::new(counter.x, 1),
            Facing::Down => Cell::new(counter.x, 11),
        };
        Pose { cell, facing }
    }

    fn after(self, move_to: Facing) -> Pose {
        let target = self.cell.neighbour(move_to);
        Pose { cell: if target.is_floor() { target } else { self.cell }, facing: move_to }
    }
}

/// Whether the ego can reach a counter from its side.
fn is_within_reach(counter: Cell) -> bool {
    let beside = (counter.x == 0 || counter.x == DIVIDER) && (1..=11).contains(&counter.y);
    let ends = (counter.x == 1 || counter.x == 2) && (counter.y == 0 || counter.y == 12);
    beside || ends
}

/// The fewest moves between any two poses.
#[derive(Clone, Debug)]
pub(crate) struct WalkDistances(Vec<[u8; N_POSES]>);

impl WalkDistances {
    pub(crate) fn new() -> WalkDistances {
        let from = |start: usize| {
            let mut moves = [u8::MAX; N_POSES];
            moves[start] = 0;
            let mut queue = VecDeque::from([start]);
            while let Some(at) = queue.pop_front() {
                for facing in Facing::ALL {
                    let next = Pose::of_index(at).after(facing).index();
                    if moves[next] == u8::MAX {
                        moves[next] = moves[at] + 1;
                        queue.push_back(next);
                    }
                }
            }
            moves
        };
        WalkDistances((0..N_POSES).map(from).collect())
    }

    pub(crate) fn moves(&self, from: Pose, to: Pose) -> u8 {
        self.0[from.index()][to.index()]
    }

    /// The first move of a shortest walk; stays where it is when it is there.
    pub(crate) fn first_move(&self, from: Pose, to: Pose) -> Action {
        if from == to {
            return STAY;
        }
        let nearer = |facing: &Facing| self.moves(from.after(*facing), to) < self.moves(from, to);
        Facing::ALL.into_iter().find(nearer).expect("some move leads there").action()
    }

    /// The nearest pose from which the lower room is seen: its first row, reached by walking down.
    pub(crate) fn lookout(&self, from: Pose) -> (Pose, u8) {
        if !from.cell.is_upper() {
            return (from, 0);
        }
        let lookouts = [1, 2].map(|x| Pose { cell: Cell::new(x, 9), facing: Facing::Down });
        let nearest = lookouts.into_iter().min_by_key(|pose| self.moves(from, *pose)).expect("there are two");
        (nearest, self.moves(from, nearest))
    }
}

/// Where the ego takes everything to be: where it sees it now, else where it saw it last.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemMemory {
    pub(crate) pose: Pose,
    pub(crate) held: Option<Object>,
    pub(crate) cells: [Option<Cell>; N_OBJECTS],
    pub(crate) chopped: [bool; N_OBJECTS],
    /// Steps until a food that the peer carries is put down; its cell is then where that will be.
    pub(crate) ready_in: [u8; N_OBJECTS],
}

impl ItemMemory {
    fn new(seen: &Seen) -> ItemMemory {
        ItemMemory {
            pose: Pose { cell: seen.own.cell, facing: seen.own.facing },
            held: None,
            cells: [None; N_OBJECTS],
            chopped: [false; N_OBJECTS],
            ready_in: [0; N_OBJECTS],
        }
    }

    /// The pantry as it was remembered, if it was, and as it is seen now.
    pub(crate) fn updated(remembered: Option<&ItemMemory>, seen: &Seen) -> ItemMemory {
        let mut pantry = remembered.cloned().unwrap_or_else(|| ItemMemory::new(seen));
        pantry.update(seen);
        pantry
    }

    fn update(&mut self, seen: &Seen) {
        self.pose = Pose { cell: seen.own.cell, facing: seen.own.facing };
        self.held = seen.own.held;
        self.ready_in = [0; N_OBJECTS];
        for (index, cell) in seen.cells.into_iter().enumerate() {
            // What should be in this room and is not in sight has been carried away.
            let remembered = self.cells[index];
            let is_elsewhere =
                remembered.is_some_and(|cell| cell.is_upper() == self.pose.cell.is_upper()) && cell.is_none();
            if cell.is_some() || is_elsewhere {
                self.cells[index] = cell;
                self.chopped[index] = seen.chopped[index];
            }
        }
        // The peer puts food onto the divider in the row where it stands, with one step to take and one interact.
        // What it carries in the plate is not put down there.
        if let Some((peer, _)) = seen.other.filter(|(peer, _)| self.cell(Object::Plate) != Some(*peer)) {
            for food in Object::FOODS {
                if self.cells[food as usize] == Some(peer) {
                    self.cells[food as usize] = Some(Cell::new(DIVIDER, peer.y));
                    self.ready_in[food as usize] = peer.x - DIVIDER;
                }
            }
        }
    }

    pub(crate) fn cell(&self, object: Object) -> Option<Cell> {
        self.cells[object as usize]
    }

    /// The foods in the plate.
    pub(crate) fn dish(&self) -> impl Iterator<Item = Object> + '_ {
        let plate = self.cell(Object::Plate);
        Object::FOODS.into_iter().filter(move |food| plate.is_some() && self.cell(*food) == plate)
    }

    fn on_board(&self) -> Option<Object> {
        Object::FOODS.into_iter().find(|food| self.cell(*food) == Some(CUTTING_BOARD))
    }
}

/// How far an ingredient has come; each stage follows from the one before by one interact.
type Stage = u8;
const AWAY: Stage = 0;
const HELD_FRESH: Stage = 1;
const BOARD_FRESH: Stage = 2;
const BOARD_CHOPPED: Stage = 3;
const HELD_CHOPPED: Stage = 4;
const PLATED: Stage = 5;

/// Where the plate is: where it lay at first, in the hand, or put down once on a row of the divider.
type PlatePlace = u8;
const PLATE_AT_FIRST: PlatePlace = 0;
const PLATE_HELD: PlatePlace = 1;
const PLATE_MOVED: PlatePlace = 2;
/// Rows of the divider that a plate is worth carrying to; the peer waits beside row 3.
const PLATE_ROWS: [u8; 5] = [1, 2, 3, 4, 5];

/// Something that is not wanted and in the way: nothing, in the hand, or on the board.
type Clutter = u8;
const NO_CLUTTER: Clutter = 0;
const CLUTTER_HELD: Clutter = 1;
const CLUTTER_CHOPPED: Clutter = 2;
const CLUTTER_FRESH: Clutter = 3;

/// A point of a plan. Every step of a plan raises a stage or moves the plate on, so plans have no cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    stages: [Stage; 2],
    plate: PlatePlace,
    clutter: Clutter,
}

/// One piece of the ingredient that can be fetched.
#[derive(Clone, Copy, Debug)]
struct Source {
    cell: Cell,
    is_chopped: bool,
    ready_in: u8,
}

/// What remains of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemainingPlan {
    /// Actions until the dish is complete on the divider.
    pub(crate) n_actions: u16,
    /// The row of the divider where it then lies.
    pub(crate) row: u8,
    /// The counter to be used next; none if there is nothing left to do.
    pub(crate) next: Option<Cell>,
}

/// The plans for one dish from one arrangement of the kitchen.
#[derive(Clone, Debug)]
pub(crate) struct CookingPlanner<'a> {
    walks: &'a WalkDistances,
    sources: [[Option<Source>; 2]; 2],
    plate: Cell,
    occupied: [Option<Cell>; N_OBJECTS],
    start: Point,
    pose: Pose,
    /// Cost to go from a point with the ego at a counter, 0 where it is not known yet; see [`CookingPlanner::index`].
    known: Vec<u16>,
}

/// Counters the ego can use, numbered for the table of known costs.
const N_COUNTERS: usize = 26;

fn counter_number(counter: Cell) -> usize {
    match counter {
        Cell { x: 0, y } => usize::from(y) - 1,
        Cell { y: 0, x } => 21 + usize::from(x),
        Cell { x: DIVIDER, y } => 10 + usize::from(y),
        Cell { x, .. } => 23 + usize::from(x),
    }
}

/// The steps a peer that waits at the delivery tile is expected to need for a dish, by rows away from the tile.
/// From 40 000 servings per row by peers drawn from the family.
const EXPECTED_SERVING: [u16; 6] = [4, 7, 10, 12, 14, 16];

fn expected_serving(row: u8) -> u16 {
    EXPECTED_SERVING[usize::from(row.abs_diff(DELIVERY_TILE.y)).min(5)]
}

/// Costs are kept with the row of the finished dish in the low four bits.
const HOPELESS: u16 = u16::MAX;

impl<'a> CookingPlanner<'a> {
    /// Plans for `recipe`. With `lower_right`, the lower piece of the right ingredient is taken to lie there.
    /// None if the plate is out of reach or has something else in it already.
    pub(crate) fn new(
        walks: &'a WalkDistances,
        pantry: &ItemMemory,
        recipe: Recipe,
        lower_right: Option<(Cell, u8)>,
    ) -> Option<CookingPlanner<'a>> {
        let wanted = [recipe.left, recipe.right];
        if pantry.dish().any(|food| !wanted.contains(&food.ingredient().expect("a food"))) {
            return None;
        }
        let plate = pantry.cell(Object::Plate)?;
        let plate_place = if pantry.held == Some(Object::Plate) {
            PLATE_HELD
        } else if is_within_reach(plate) {
            PLATE_AT_FIRST
        } else {
            return None;
        };
        let mut used = Vec::new();
        let mut stages = [AWAY; 2];
        let mut sources = [[None; 2]; 2];
        for (index, ingredient) in wanted.into_iter().enumerate() {
            let (piece, stage) = furthest(pantry, ingredient);
            stages[index] = stage;
            used.extend(piece);
            if stage == AWAY {
                sources[index] = fetchable(pantry, ingredient, lower_right.filter(|_| index == 1));
            }
        }
        let is_used = |food: Object| used.contains(&food);
        let clutter = match (pantry.held, pantry.on_board()) {
            (Some(held), _) if held != Object::Plate && !is_used(held) => CLUTTER_HELD,
            (_, Some(food)) if !is_used(food) => {
                if pantry.chopped[food as usize] {
                    CLUTTER_CHOPPED
                } else {
                    CLUTTER_FRESH
                }
            }
            _ => NO_CLUTTER,
        };
        Some(CookingPlanner {
            walks,
            sources,
            plate,
            occupied: pantry.cells,
            start: Point { stages, plate: plate_place, clutter },
            pose: pantry.pose,
            known: vec![0; N_COUNTERS * 36 * (2 + PLATE_ROWS.len()) * 4],
        })
    }

    /// Plans for the left ingredient alone, as long as nobody knows which right one to add.
    pub(crate) fn without_right(&self) -> CookingPlanner<'a> {
        let mut alone = self.clone();
        alone.sources[1] = [None; 2];
        alone
    }

    /// Where the plan begins.
    pub(crate) fn start(&self) -> Point {
        self.start
    }

    /// The quickest plan from where the ego is.
    pub(crate) fn outlook(&mut self) -> Option<RemainingPlan> {
        self.outlook_from(self.pose, self.start, 0)
    }

    /// The quickest plan from any pose and point, reached `elapsed` steps from now.
    pub(crate) fn outlook_from(&mut self, pose: Pose, point: Point, elapsed: usize) -> Option<RemainingPlan> {
        if let Some(row) = self.finished_row(point) {
            return Some(RemainingPlan { n_actions: 0, row, next: None });
        }
        let mut best = HOPELESS;
        let mut next = None;
        let mut steps = Steps::default();
        self.steps(point, &mut steps);
        for step in steps.iter() {
            let cost = self.cost_of(pose, step, step.ready_in.saturating_sub(elapsed.min(99) as u8));
            if cost < best {
                best = cost;
                next = Some(step.counter);
            }
        }
        let row = (best & 15) as u8;
        next.map(|_| RemainingPlan { n_actions: (best >> 4) - expected_serving(row), row, next })
    }

    /// All points a plan can pass through, with the pose there and the actions it takes to come there at best; the
    /// start is the first.
    pub(crate) fn reachable(&self) -> Vec<(Pose, Point, u16, Option<Cell>)> {
        let mut reached = vec![(self.pose, self.start, 0, None)];
        let mut at = 0;
        while at < reached.len() {
            let (pose, point, n_actions, first) = reached[at];
            let mut steps = Steps::default();
            self.steps(point, &mut steps);
            for step in steps.iter() {
                let next_pose = Pose::using(step.counter);
                let cost = n_actions + u16::from(self.walks.moves(pose, next_pose)) + 1;
                let entry = (next_pose, step.point, cost, first.or(Some(step.counter)));
                match reached.iter_mut().find(|(pose, point, ..)| *pose == next_pose && *point == step.point)
                {
                    Some(known) if known.2 <= cost => {}
                    Some(known) => *known = entry,
                    None => reached.push(entry),
                }
            }
            at += 1;
        }
        reached
    }

    /// Cost of a step and of all that follows it.
    fn cost_of(&mut self, pose: Pose, step: &Step, ready_in: u8) -> u16 {
        let to_go = self.cost_to_go(step.counter, step.point);
        if to_go == HOPELESS {
            return HOPELESS;
        }
        let walk = self.walks.moves(pose, Pose::using(step.counter)).max(ready_in);
        to_go + (u16::from(walk) + 1) * 16
    }

    fn cost_to_go(&mut self, counter: Cell, point: Point) -> u16 {
        if let Some(row) = self.finished_row(point) {
            return expected_serving(row) * 16 + u16::from(row);
        }
        let index = Self::index(counter, point);
        if self.known[index] != 0 {
            return self.known[index];
        }
        let mut steps = Steps::default();
        self.steps(point, &mut steps);
        let pose = Pose::using(counter);
        let mut best = HOPELESS;
        for step in steps.iter() {
            best = best.min(self.cost_of(pose, step, 0));
        }
        self.known[index] = best;
        best
    }

    fn index(counter: Cell, point: Point) -> usize {
        let stages = usize::from(point.stages[0] * 6 + point.stages[1]);
        let plate = usize::from(point.plate);
        ((counter_number(counter) * 36 + stages) * (2 + PLATE_ROWS.len()) + plate) * 4
            + usize::from(point.clutter)
    }

    /// Where the plate lies, unless it is in the hand.
    fn plate_cell(&self, point: Point) -> Option<Cell> {
        match point.plate {
            PLATE_AT_FIRST => Some(self.plate),
            PLATE_HELD => None,
            moved => Some(Cell::new(DIVIDER, PLATE_ROWS[usize::from(moved - PLATE_MOVED)])),
        }
    }

    fn finished_row(&self, point: Point) -> Option<u8> {
        let plate = self.plate_cell(point)?;
        (point.stages == [PLATED; 2] && plate.x == DIVIDER).then_some(plate.y)
    }

    /// Everything that brings the dish nearer from `point`.
    fn steps(&self, point: Point, steps: &mut Steps) {
        let plate_cell = self.plate_cell(point);
        let is_holding = |stage: &Stage| *stage == HELD_FRESH || *stage == HELD_CHOPPED;
        let on_board = |stage: &Stage| *stage == BOARD_FRESH || *stage == BOARD_CHOPPED;
        let is_board_free = point.clutter < CLUTTER_CHOPPED && !point.stages.iter().any(on_board);
        let is_empty_handed = point.clutter != CLUTTER_HELD
            && point.plate != PLATE_HELD
            && !point.stages.iter().any(is_holding);

        for (index, stage) in point.stages.into_iter().enumerate() {
            let raised = |stage: Stage| {
                let mut next = point;
                next.stages[index] = stage;
                next
            };
            match stage {
                AWAY => {
                    for source in self.sources[index].into_iter().flatten() {
                        if is_empty_handed {
                            let stage = if source.is_chopped { HELD_CHOPPED } else { HELD_FRESH };
                            steps.push(source.cell, raised(stage), source.ready_in);
                        } else if point.plate == PLATE_HELD && source.is_chopped {
                            steps.push(source.cell, raised(PLATED), source.ready_in);
                        }
                    }
                }
                HELD_FRESH if is_board_free => steps.push(CUTTING_BOARD, raised(BOARD_FRESH), 0),
                BOARD_FRESH if is_empty_handed => steps.push(CUTTING_BOARD, raised(BOARD_CHOPPED), 0),
                BOARD_CHOPPED if is_empty_handed => steps.push(CUTTING_BOARD, raised(HELD_CHOPPED), 0),
                BOARD_CHOPPED if point.plate == PLATE_HELD => steps.push(CUTTING_BOARD, raised(PLATED), 0),
                HELD_CHOPPED => {
                    if let Some(plate) = plate_cell {
                        steps.push(plate, raised(PLATED), 0);
                    }
                }
                _ => {}
            }
        }
        if is_empty_handed && point.plate == PLATE_AT_FIRST {
            steps.push(self.plate, Point { plate: PLATE_HELD, ..point }, 0);
        }
        if point.plate == PLATE_HELD {
            for (index, row) in PLATE_ROWS.into_iter().enumerate() {
                let cell = Cell::new(DIVIDER, row);
                if self.is_free(cell, point) {
                    steps.push(cell, Point { plate: PLATE_MOVED + index as u8, ..point }, 0);
                }
            }
        }
        self.clutter_steps(point, is_empty_handed, steps);
    }

    fn clutter_steps(&self, point: Point, is_empty_handed: bool, steps: &mut Steps) {
        match point.clutter {
            CLUTTER_FRESH | CLUTTER_CHOPPED if is_empty_handed => {
                steps.push(CUTTING_BOARD, Point { clutter: point.clutter - 1, ..point }, 0);
            }
            CLUTTER_HELD => {
                // Beside the board is as good a place as any, and below it there is always room.
                for y in [2, 4, 5, 6, 7, 8] {
                    let cell = Cell::new(0, y);
                    if self.is_free(cell, point) {
                        steps.push(cell, Point { clutter: NO_CLUTTER, ..point }, 0);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether nothing lies on a counter by then.
    fn is_free(&self, cell: Cell, point: Point) -> bool {
        let is_emptied = point.stages.iter().zip(&self.sources).any(|(stage, sources)| {
            // With two pieces to fetch nobody knows which was taken; the counter of neither is counted on.
            *stage != AWAY && sources[1].is_none() && sources[0].is_some_and(|source| source.cell == cell)
        });
        is_emptied
            || (cell == self.plate && point.plate != PLATE_AT_FIRST)
            || !self.occupied.contains(&Some(cell))
    }
}

/// One use of a counter, and where it leads.
#[derive(Clone, Copy, Debug)]
struct Step {
    counter: Cell,
    point: Point,
    ready_in: u8,
}

/// The few steps that are open at a point.
#[derive(Default)]
struct Steps {
    steps: [Option<Step>; 16],
    n_steps: usize,
}

impl Steps {
    fn push(&mut self, counter: Cell, point: Point, ready_in: u8) {
        self.steps[self.n_steps] = Some(Step { counter, point, ready_in });
        self.n_steps += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &Step> {
        self.steps[..self.n_steps].iter().flatten()
    }
}

/// The piece of an ingredient that is nearest to the plate, and its stage.
fn furthest(pantry: &ItemMemory, ingredient: Ingredient) -> (Option<Object>, Stage) {
    let stage = |food: Object| {
        let is_chopped = pantry.chopped[food as usize];
        if pantry.dish().any(|plated| plated == food) {
            PLATED
        } else if pantry.held == Some(food) {
            if is_chopped { HELD_CHOPPED } else { HELD_FRESH }
        } else if pantry.cell(food) == Some(CUTTING_BOARD) {
            if is_chopped { BOARD_CHOPPED } else { BOARD_FRESH }
        } else {
            AWAY
        }
    };
    let pieces = Object::pieces(ingredient).iter().map(|food| (*food, stage(*food)));
    let (piece, stage) = pieces.max_by_key(|(_, stage)| *stage).expect("every ingredient has a piece");
    ((stage != AWAY).then_some(piece), stage)
}

/// The pieces of an ingredient that the ego can fetch.
fn fetchable(pantry: &ItemMemory, ingredient: Ingredient, lower: Option<(Cell, u8)>) -> [Option<Source>; 2] {
    let mut sources = [None; 2];
    for (source, food) in sources.iter_mut().zip(Object::pieces(ingredient)) {
        let is_chopped = pantry.chopped[*food as usize];
        *source = pantry.cell(*food).filter(|cell| is_within_reach(*cell)).map(|cell| Source {
            cell,
            is_chopped,
            ready_in: pantry.ready_in[*food as usize],
        });
    }
    if let Some((cell, ready_in)) = lower {
        sources[1] = Some(Source { cell, is_chopped: false, ready_in });
    }
    if sources[0].is_none() {
        sources.swap(0, 1);
    }
    sources
}

/// The action that works towards using a counter. An ego that is there too early waits.
pub(crate) fn act_towards(walks: &WalkDistances, pantry: &ItemMemory, counter: Cell) -> Action {
    let pose = Pose::using(counter);
    if pantry.pose != pose {
        return walks.first_move(pantry.pose, pose);
    }
    let is_ready = Object::FOODS
        .into_iter()
        .all(|food| pantry.cell(food) != Some(counter) || pantry.ready_in[food as usize] == 0);
    if is_ready { INTERACT } else { STAY }
}
