//! Fastest plans of the ego for cooking a dish: shortest walks, and the best order of picking, chopping and plating.
//!
//! The egos that use them are in `references`. Costs are counted in actions of the ego; turns and interacts are one each.

use std::collections::VecDeque;

use super::kitchen::{
    CUTTING_BOARD, Cell, DELIVERY_TILE, DIVIDER, Facing, INTERACT, N_OBJECTS, Object, STAY,
};
use super::recipes::{Ingredient, Recipe};
use super::view::Seen;
use crate::game::Action;

/// The cell and direction of the ego.
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

    /// The only pose in which the ego can use a counter. There is only one, because the ego's side is two cells wide.
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

/// The minimum number of moves between any two poses.
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

    /// The first move of a shortest walk; [`STAY`] if both poses are equal.
    pub(crate) fn first_move(&self, from: Pose, to: Pose) -> Action {
        if from == to {
            return STAY;
        }
        let nearer = |facing: &Facing| self.moves(from.after(*facing), to) < self.moves(from, to);
        Facing::ALL.into_iter().find(nearer).expect("some move leads there").action()
    }

    /// The nearest pose in the lower room, and the number of moves to it.
    pub(crate) fn lookout(&self, from: Pose) -> (Pose, u8) {
        if !from.cell.is_upper() {
            return (from, 0);
        }
        let lookouts = [1, 2].map(|x| Pose { cell: Cell::new(x, 9), facing: Facing::Down });
        let nearest = lookouts.into_iter().min_by_key(|pose| self.moves(from, *pose)).expect("there are two");
        (nearest, self.moves(from, nearest))
    }
}

/// The last known positions of all objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemMemory {
    pub(crate) pose: Pose,
    pub(crate) held: Option<Object>,
    pub(crate) cells: [Option<Cell>; N_OBJECTS],
    pub(crate) chopped: [bool; N_OBJECTS],
    /// Steps until the peer puts down a food that it carries. The cell of such a food is the expected one.
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

    /// A copy of `remembered`, updated with an observation.
    pub(crate) fn updated(remembered: Option<&ItemMemory>, seen: &Seen) -> ItemMemory {
        let mut items = remembered.cloned().unwrap_or_else(|| ItemMemory::new(seen));
        items.update(seen);
        items
    }

    fn update(&mut self, seen: &Seen) {
        self.pose = Pose { cell: seen.own.cell, facing: seen.own.facing };
        self.held = seen.own.held;
        self.ready_in = [0; N_OBJECTS];
        for (index, cell) in seen.cells.into_iter().enumerate() {
            // An object that was in this room and is not in sight has been moved to the other room.
            let remembered = self.cells[index];
            let has_left =
                remembered.is_some_and(|cell| cell.is_upper() == self.pose.cell.is_upper()) && cell.is_none();
            if cell.is_some() || has_left {
                self.cells[index] = cell;
                self.chopped[index] = seen.chopped[index];
            }
        }
        // The peer puts food on the divider in its row: at most one move and one interact. A food on a plate that it carries is
        // not put down there.
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

    /// The foods on the plate.
    pub(crate) fn dish(&self) -> impl Iterator<Item = Object> + '_ {
        let plate = self.cell(Object::Plate);
        Object::FOODS.into_iter().filter(move |food| plate.is_some() && self.cell(*food) == plate)
    }

    fn on_board(&self) -> Option<Object> {
        Object::FOODS.into_iter().find(|food| self.cell(*food) == Some(CUTTING_BOARD))
    }
}

/// The processing stage of an ingredient. One interact leads from one stage to the next.
type Stage = u8;
const AWAY: Stage = 0;
const HELD_FRESH: Stage = 1;
const BOARD_FRESH: Stage = 2;
const BOARD_CHOPPED: Stage = 3;
const HELD_CHOPPED: Stage = 4;
const PLATED: Stage = 5;

/// The place of the plate: its first place, the ego's hands, or a row of the divider on which it was put down.
type PlatePlace = u8;
const PLATE_AT_FIRST: PlatePlace = 0;
const PLATE_HELD: PlatePlace = 1;
const PLATE_MOVED: PlatePlace = 2;
/// Rows of the divider to which a plan may move the plate; the peer waits in row 3.
const PLATE_ROWS: [u8; 5] = [1, 2, 3, 4, 5];

/// The state of an unwanted food in the ego's hands or on the cutting board.
type Clutter = u8;
const NO_CLUTTER: Clutter = 0;
const CLUTTER_HELD: Clutter = 1;
const CLUTTER_CHOPPED: Clutter = 2;
const CLUTTER_FRESH: Clutter = 3;

/// A state of a plan. Every step raises a stage, moves the plate or removes clutter, so plans have no cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlanState {
    stages: [Stage; 2],
    plate: PlatePlace,
    clutter: Clutter,
}

/// A piece of an ingredient that can be fetched.
#[derive(Clone, Copy, Debug)]
struct Source {
    cell: Cell,
    is_chopped: bool,
    ready_in: u8,
}

/// The summary of the best plan from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemainingPlan {
    /// Actions until the dish is complete on the divider.
    pub(crate) n_actions: u16,
    /// The row of the divider with the complete dish.
    pub(crate) row: u8,
    /// The next counter to use; `None` if the dish is complete.
    pub(crate) next: Option<Cell>,
}

/// The plans for one dish from one state of the kitchen.
#[derive(Clone, Debug)]
pub(crate) struct CookingPlanner<'a> {
    walks: &'a WalkDistances,
    sources: [[Option<Source>; 2]; 2],
    plate: Cell,
    occupied: [Option<Cell>; N_OBJECTS],
    start: PlanState,
    pose: Pose,
    /// The cost-to-go of a state with the ego at a counter, 0 if not computed yet; see [`CookingPlanner::index`].
    costs: Vec<u16>,
}

/// The number of counters that the ego can use, for the index of known costs.
const N_COUNTERS: usize = 26;

fn counter_index(counter: Cell) -> usize {
    match counter {
        Cell { x: 0, y } => usize::from(y) - 1,
        Cell { y: 0, x } => 21 + usize::from(x),
        Cell { x: DIVIDER, y } => 10 + usize::from(y),
        Cell { x, .. } => 23 + usize::from(x),
    }
}

/// Expected steps in which a peer that waits at the delivery tile serves a dish, by rows between the dish and the tile.
/// Estimated from 40 000 servings per row by sampled peers.
const EXPECTED_SERVING: [u16; 6] = [4, 7, 10, 12, 14, 16];

fn expected_serving(row: u8) -> u16 {
    EXPECTED_SERVING[usize::from(row.abs_diff(DELIVERY_TILE.y)).min(5)]
}

/// The cost without any plan. Costs are stored with the row of the finished dish in the low four bits.
const NO_PLAN: u16 = u16::MAX;

impl<'a> CookingPlanner<'a> {
    /// Plans for `recipe`. `lower_right` is an assumed cell of the lower piece of the right ingredient, with the steps until it is
    /// there. `None` if the plate is out of reach or has another ingredient on it.
    pub(crate) fn new(
        walks: &'a WalkDistances,
        items: &ItemMemory,
        recipe: Recipe,
        lower_right: Option<(Cell, u8)>,
    ) -> Option<CookingPlanner<'a>> {
        let wanted = [recipe.left, recipe.right];
        if items.dish().any(|food| !wanted.contains(&food.ingredient().expect("a food"))) {
            return None;
        }
        let plate = items.cell(Object::Plate)?;
        let plate_place = if items.held == Some(Object::Plate) {
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
            let (piece, stage) = furthest_stage(items, ingredient);
            stages[index] = stage;
            used.extend(piece);
            if stage == AWAY {
                sources[index] = fetchable(items, ingredient, lower_right.filter(|_| index == 1));
            }
        }
        let is_used = |food: Object| used.contains(&food);
        let clutter = match (items.held, items.on_board()) {
            (Some(held), _) if held != Object::Plate && !is_used(held) => CLUTTER_HELD,
            (_, Some(food)) if !is_used(food) => {
                if items.chopped[food as usize] {
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
            occupied: items.cells,
            start: PlanState { stages, plate: plate_place, clutter },
            pose: items.pose,
            costs: vec![0; N_COUNTERS * 36 * (2 + PLATE_ROWS.len()) * 4],
        })
    }

    /// Plans that fetch no right ingredient, for the time in which it is unknown.
    pub(crate) fn without_right(&self) -> CookingPlanner<'a> {
        let mut alone = self.clone();
        alone.sources[1] = [None; 2];
        alone
    }

    /// The first state of the plans.
    pub(crate) fn start(&self) -> PlanState {
        self.start
    }

    /// The fastest plan from the ego's pose.
    pub(crate) fn best_plan(&mut self) -> Option<RemainingPlan> {
        self.best_plan_from(self.pose, self.start, 0)
    }

    /// The fastest plan from any pose and state, reached `elapsed` steps from now.
    pub(crate) fn best_plan_from(
        &mut self,
        pose: Pose,
        state: PlanState,
        elapsed: usize,
    ) -> Option<RemainingPlan> {
        if let Some(row) = self.finished_row(state) {
            return Some(RemainingPlan { n_actions: 0, row, next: None });
        }
        let mut best = NO_PLAN;
        let mut next = None;
        let mut steps = Steps::default();
        self.steps(state, &mut steps);
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

    /// All states of plans, each with its pose, the minimum number of actions to reach it, and the first counter used on the
    /// way. The first entry is the start.
    pub(crate) fn reachable(&self) -> Vec<(Pose, PlanState, u16, Option<Cell>)> {
        let mut reached = vec![(self.pose, self.start, 0, None)];
        let mut at = 0;
        while at < reached.len() {
            let (pose, state, n_actions, first) = reached[at];
            let mut steps = Steps::default();
            self.steps(state, &mut steps);
            for step in steps.iter() {
                let next_pose = Pose::using(step.counter);
                let cost = n_actions + u16::from(self.walks.moves(pose, next_pose)) + 1;
                let entry = (next_pose, step.state, cost, first.or(Some(step.counter)));
                match reached.iter_mut().find(|(pose, state, ..)| *pose == next_pose && *state == step.state)
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

    /// The cost of a step and of the best plan after it.
    fn cost_of(&mut self, pose: Pose, step: &Step, ready_in: u8) -> u16 {
        let to_go = self.cost_to_go(step.counter, step.state);
        if to_go == NO_PLAN {
            return NO_PLAN;
        }
        let walk = self.walks.moves(pose, Pose::using(step.counter)).max(ready_in);
        to_go + (u16::from(walk) + 1) * 16
    }

    fn cost_to_go(&mut self, counter: Cell, state: PlanState) -> u16 {
        if let Some(row) = self.finished_row(state) {
            return expected_serving(row) * 16 + u16::from(row);
        }
        let index = Self::index(counter, state);
        if self.costs[index] != 0 {
            return self.costs[index];
        }
        let mut steps = Steps::default();
        self.steps(state, &mut steps);
        let pose = Pose::using(counter);
        let mut best = NO_PLAN;
        for step in steps.iter() {
            best = best.min(self.cost_of(pose, step, 0));
        }
        self.costs[index] = best;
        best
    }

    fn index(counter: Cell, state: PlanState) -> usize {
        let stages = usize::from(state.stages[0] * 6 + state.stages[1]);
        let plate = usize::from(state.plate);
        ((counter_index(counter) * 36 + stages) * (2 + PLATE_ROWS.len()) + plate) * 4
            + usize::from(state.clutter)
    }

    /// The cell of the plate; `None` if the ego holds it.
    fn plate_cell(&self, state: PlanState) -> Option<Cell> {
        match state.plate {
            PLATE_AT_FIRST => Some(self.plate),
            PLATE_HELD => None,
            moved => Some(Cell::new(DIVIDER, PLATE_ROWS[usize::from(moved - PLATE_MOVED)])),
        }
    }

    fn finished_row(&self, state: PlanState) -> Option<u8> {
        let plate = self.plate_cell(state)?;
        (state.stages == [PLATED; 2] && plate.x == DIVIDER).then_some(plate.y)
    }

    /// Adds all useful steps from `state`.
    fn steps(&self, state: PlanState, steps: &mut Steps) {
        let plate_cell = self.plate_cell(state);
        let is_holding = |stage: &Stage| *stage == HELD_FRESH || *stage == HELD_CHOPPED;
        let on_board = |stage: &Stage| *stage == BOARD_FRESH || *stage == BOARD_CHOPPED;
        let is_board_free = state.clutter < CLUTTER_CHOPPED && !state.stages.iter().any(on_board);
        let is_empty_handed = state.clutter != CLUTTER_HELD
            && state.plate != PLATE_HELD
            && !state.stages.iter().any(is_holding);

        for (index, stage) in state.stages.into_iter().enumerate() {
            let raised = |stage: Stage| {
                let mut next = state;
                next.stages[index] = stage;
                next
            };
            match stage {
                AWAY => {
                    for source in self.sources[index].into_iter().flatten() {
                        if is_empty_handed {
                            let stage = if source.is_chopped { HELD_CHOPPED } else { HELD_FRESH };
                            steps.push(source.cell, raised(stage), source.ready_in);
                        } else if state.plate == PLATE_HELD && source.is_chopped {
                            steps.push(source.cell, raised(PLATED), source.ready_in);
                        }
                    }
                }
                HELD_FRESH if is_board_free => steps.push(CUTTING_BOARD, raised(BOARD_FRESH), 0),
                BOARD_FRESH if is_empty_handed => steps.push(CUTTING_BOARD, raised(BOARD_CHOPPED), 0),
                BOARD_CHOPPED if is_empty_handed => steps.push(CUTTING_BOARD, raised(HELD_CHOPPED), 0),
                BOARD_CHOPPED if state.plate == PLATE_HELD => steps.push(CUTTING_BOARD, raised(PLATED), 0),
                HELD_CHOPPED => {
                    if let Some(plate) = plate_cell {
                        steps.push(plate, raised(PLATED), 0);
                    }
                }
                _ => {}
            }
        }
        if is_empty_handed && state.plate == PLATE_AT_FIRST {
            steps.push(self.plate, PlanState { plate: PLATE_HELD, ..state }, 0);
        }
        if state.plate == PLATE_HELD {
            for (index, row) in PLATE_ROWS.into_iter().enumerate() {
                let cell = Cell::new(DIVIDER, row);
                if self.is_free(cell, state) {
                    steps.push(cell, PlanState { plate: PLATE_MOVED + index as u8, ..state }, 0);
                }
            }
        }
        self.clutter_steps(state, is_empty_handed, steps);
    }

    fn clutter_steps(&self, state: PlanState, is_empty_handed: bool, steps: &mut Steps) {
        match state.clutter {
            CLUTTER_FRESH | CLUTTER_CHOPPED if is_empty_handed => {
                steps.push(CUTTING_BOARD, PlanState { clutter: state.clutter - 1, ..state }, 0);
            }
            CLUTTER_HELD => {
                // Counters near the cutting board; one of them is always free.
                for y in [2, 4, 5, 6, 7, 8] {
                    let cell = Cell::new(0, y);
                    if self.is_free(cell, state) {
                        steps.push(cell, PlanState { clutter: NO_CLUTTER, ..state }, 0);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether a counter is free at this state of the plan.
    fn is_free(&self, cell: Cell, state: PlanState) -> bool {
        let is_emptied = state.stages.iter().zip(&self.sources).any(|(stage, sources)| {
            // With two pieces it is unknown which one was taken, so neither counter counts as free.
            *stage != AWAY && sources[1].is_none() && sources[0].is_some_and(|source| source.cell == cell)
        });
        is_emptied
            || (cell == self.plate && state.plate != PLATE_AT_FIRST)
            || !self.occupied.contains(&Some(cell))
    }
}

/// One use of a counter, and the state after it.
#[derive(Clone, Copy, Debug)]
struct Step {
    counter: Cell,
    state: PlanState,
    ready_in: u8,
}

/// The useful steps from a state, without allocation.
#[derive(Default)]
struct Steps {
    steps: [Option<Step>; 16],
    n_steps: usize,
}

impl Steps {
    fn push(&mut self, counter: Cell, state: PlanState, ready_in: u8) {
        self.steps[self.n_steps] = Some(Step { counter, state, ready_in });
        self.n_steps += 1;
    }

    fn iter(&self) -> impl Iterator<Item = &Step> {
        self.steps[..self.n_steps].iter().flatten()
    }
}

/// The piece of an ingredient with the highest stage. The piece is `None` if all are still to be fetched.
fn furthest_stage(items: &ItemMemory, ingredient: Ingredient) -> (Option<Object>, Stage) {
    let stage = |food: Object| {
        let is_chopped = items.chopped[food as usize];
        if items.dish().any(|plated| plated == food) {
            PLATED
        } else if items.held == Some(food) {
            if is_chopped { HELD_CHOPPED } else { HELD_FRESH }
        } else if items.cell(food) == Some(CUTTING_BOARD) {
            if is_chopped { BOARD_CHOPPED } else { BOARD_FRESH }
        } else {
            AWAY
        }
    };
    let pieces = Object::pieces(ingredient).iter().map(|food| (*food, stage(*food)));
    let (piece, stage) = pieces.max_by_key(|(_, stage)| *stage).expect("every ingredient has a piece");
    ((stage != AWAY).then_some(piece), stage)
}

/// The pieces of an ingredient within reach of the ego; `lower` is an assumed position of the lower piece.
fn fetchable(items: &ItemMemory, ingredient: Ingredient, lower: Option<(Cell, u8)>) -> [Option<Source>; 2] {
    let mut sources = [None; 2];
    for (source, food) in sources.iter_mut().zip(Object::pieces(ingredient)) {
        let is_chopped = items.chopped[*food as usize];
        *source = items.cell(*food).filter(|cell| is_within_reach(*cell)).map(|cell| Source {
            cell,
            is_chopped,
            ready_in: items.ready_in[*food as usize],
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

/// The next action for using a counter. The ego waits there for food that the peer has not put down yet.
pub(crate) fn act_towards(walks: &WalkDistances, items: &ItemMemory, counter: Cell) -> Action {
    let pose = Pose::using(counter);
    if items.pose != pose {
        return walks.first_move(items.pose, pose);
    }
    let is_ready = Object::FOODS
        .into_iter()
        .all(|food| items.cell(food) != Some(counter) || items.ready_in[food as usize] == 0);
    if is_ready { INTERACT } else { STAY }
}
