//! The reference agents of PO-Overcooked: two cook a fixed dish, and a Bayes ego infers the dish of its peer.
//!
//! The plans for cooking a dish are in `planner`; this module chooses the dish and the time to look into the lower room.

use super::Overcooked;
use super::kitchen::{
    CUTTING_BOARD, Cell, Cook, DELIVERY_TILE, DIVIDER, Facing, INTERACT, LAST_UPPER_ROW, Object, STAY,
};
use super::peers::{CookPeer, CookSpec, Event, EventKind};
use super::planner::{CookingPlanner, ItemMemory, RemainingPlan, WalkDistances, act_towards};
use super::recipes::{Ingredient, Recipe};
use super::view::{self, Seen};
use crate::ego::{Ego, KindBelief, RandomEgo, Reference, one_hot};
use crate::game::{Action, Game};

pub(crate) fn references() -> Vec<(&'static str, Reference<Overcooked>)> {
    const FIXED: Recipe = Recipe { left: Ingredient::Tomato, right: Ingredient::Onion };
    vec![
        ("oracle", Reference::Privileged(|_, specs: &[CookSpec]| Box::new(OneDish::new(specs[0].recipe)))),
        ("bayes", Reference::Uninformed(|game| Box::new(BayesEgo::new(game)))),
        ("static", Reference::Uninformed(|_| Box::new(OneDish::new(FIXED)))),
        ("random", RandomEgo::reference()),
    ]
}

/// An ego that cooks one dish in every episode.
#[derive(Clone, Debug)]
struct OneDish {
    recipe: Recipe,
    walks: WalkDistances,
    items: Option<ItemMemory>,
}

impl OneDish {
    fn new(recipe: Recipe) -> OneDish {
        OneDish { recipe, walks: WalkDistances::new(), items: None }
    }
}

impl Ego for OneDish {
    fn begin_encounter(&mut self) {
        self.items = None;
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let items = ItemMemory::updated(self.items.as_ref(), &view::read(observation));
        let plan = CookingPlanner::new(&self.walks, &items, self.recipe, None)
            .and_then(|mut cooking| cooking.best_plan());
        let next = plan.and_then(|plan| plan.next);
        one_hot(next.map_or(STAY, |counter| act_towards(&self.walks, &items, counter)), probabilities);
    }

    fn record_action(&mut self, observation: &[f32], _action: Action) {
        self.items = Some(ItemMemory::updated(self.items.as_ref(), &view::read(observation)));
    }

    fn end_episode(&mut self, _terminal_observation: &[f32]) {
        self.items = None;
    }
}

/// An ego that infers which of the nine dishes the peer wants, and cooks it.
///
/// It keeps a posterior over the dishes, from its observations alone. The right ingredient shows in the lower room, where the
/// peer moves it. The left one shows in whether the peer fetches a finished dish. At every step it compares two kinds of plan:
/// *cook this dish now*, and *cook up to some point, look into the lower room, then cook the observed dish*. The value of a plan
/// is the probability that this episode succeeds, plus the expected successes of the remaining episodes.
#[derive(Clone, Debug)]
struct BayesEgo {
    walks: WalkDistances,
    horizon_steps: usize,
    n_episodes: usize,
    memory: BayesMemory,
}

/// The memory of the Bayes ego.
#[derive(Clone, Debug)]
struct BayesMemory {
    /// The probability of each dish of [`Recipe::ALL`].
    posterior: [f64; 9],
    episodes_left: usize,
    n_steps: usize,
    items: Option<ItemMemory>,
    /// The peer one step ago, if it was in look_result.
    peer: Option<Cook>,
    /// Whether the peer's ingredient was observed in this episode, or the ego has stopped looking for it.
    is_right_search_over: bool,
}

/// The probability that a peer moves an ingredient that it does not want. It takes a random action in one step of 20, and few of
/// these pick up an object.
const STRAY_PICK: f64 = 0.003;
/// The assumed probability of a move of a waiting peer without a dish to fetch. No such move was observed.
const STRAY_MOVE: f64 = 1e-4;
/// The mean of P_act over all peers.
const MEAN_P_ACT: f64 = 0.05;
/// The success rate of an episode in which the dish is known.
const SUCCESS_KNOWN: f64 = 0.985;
/// The success rate of an episode in which the ego looks for the right ingredient.
const SUCCESS_AFTER_LOOK: f64 = 0.9;
/// The step by which most peers have picked up their ingredient.
const PICKED_BY: usize = 4;
/// The step by which most peers have put their ingredient on the divider.
const PUT_DOWN_BY: usize = 6;
const N_LOWER_ROWS: usize = 3;
/// The possible results of a look: each right ingredient on each row of the lower divider.
const N_LOOK_RESULTS: usize = 3 * N_LOWER_ROWS;
/// The cost of a step: a small value that only decides between plans of equal value.
const STEP_COST: f64 = 1e-4;
/// The step at which the ego stops looking for the right ingredient.
const LOOK_UNTIL: usize = 9;

/// The probability that a waiting peer has served a dish: by rows between the dish and the delivery tile, then by steps since the
/// dish was finished, from the first possible step, 4 + 2 × rows. Estimated from 40 000 servings per row by sampled peers, under
/// the preset `paper`.
const SERVED: [&[f64]; 6] = [
    &[0.847, 0.907, 0.935, 0.976, 0.985, 0.994, 0.997, 0.998, 0.999],
    &[0.265, 0.554, 0.846, 0.914, 0.954, 0.972, 0.980, 0.984, 0.987, 0.991, 0.993, 0.995],
    &[0.147, 0.364, 0.780, 0.879, 0.937, 0.963, 0.974, 0.980, 0.982, 0.984],
    &[0.095, 0.261, 0.714, 0.832, 0.912, 0.950, 0.967, 0.975, 0.979],
    &[0.070, 0.198, 0.662, 0.798, 0.893, 0.940, 0.961, 0.973],
    &[0.051, 0.155, 0.613, 0.762, 0.872, 0.925, 0.953],
];

/// The probability that a dish on `row` of the divider is served within `n_steps` steps.
pub(crate) fn served_within(row: u8, n_steps: usize) -> f64 {
    let rows = usize::from(row.abs_diff(DELIVERY_TILE.y)).min(5);
    let Some(index) = n_steps.checked_sub(4 + 2 * rows) else { return 0.0 };
    SERVED[rows][index.min(SERVED[rows].len() - 1)]
}

/// A plan of the ego and its value.
#[derive(Clone, Copy, Debug)]
struct ValuedPlan {
    value: f64,
    /// The next counter to use; `None` to walk down to the lower room.
    next: Option<Cell>,
}

impl BayesEgo {
    fn new(game: &Overcooked) -> BayesEgo {
        let n_episodes = game.spec().episodes_per_encounter;
        BayesEgo {
            walks: WalkDistances::new(),
            horizon_steps: game.spec().horizon_steps,
            n_episodes,
            memory: BayesMemory::new(n_episodes),
        }
    }

    fn decide(&self, memory: &BayesMemory) -> Action {
        let items = memory.items.as_ref().expect("the ego decides after it has seen");
        let is_finished = items.dish().count() >= 2 && items.held != Some(Object::Plate);
        if is_finished {
            return self.after_cooking(memory, items);
        }
        let mut best: Option<ValuedPlan> = None;
        let mut consider = |option: Option<ValuedPlan>| {
            if let Some(option) = option
                && best.is_none_or(|best| option.value > best.value)
            {
                best = Some(option);
            }
        };
        for (index, recipe) in Recipe::ALL.into_iter().enumerate() {
            if memory.posterior[index] > 0.002 {
                consider(self.cook_now(memory, items, recipe));
            }
        }
        if !memory.is_right_search_over && !memory.knows_right() && !processes_right(items) {
            consider(self.look_and_cook(memory, items));
        }
        match best {
            Some(ValuedPlan { next: Some(counter), .. }) => act_towards(&self.walks, items, counter),
            Some(ValuedPlan { next: None, .. }) => self.go_down(items),
            None => STAY,
        }
    }

    fn go_down(&self, items: &ItemMemory) -> Action {
        let (lookout, _) = self.walks.lookout(items.pose);
        self.walks.first_move(items.pose, lookout)
    }

    /// The action after a dish was put on the divider: wait for the peer's reaction, or walk down if this dish is unlikely.
    fn after_cooking(&self, memory: &BayesMemory, items: &ItemMemory) -> Action {
        let dish_weight: f64 = memory.dish_index().map_or(0.0, |index| memory.posterior[index]);
        if memory.is_right_search_over || memory.knows_right() || dish_weight > 0.05 {
            STAY
        } else {
            self.go_down(items)
        }
    }

    /// The plan that cooks `recipe` without a look into the lower room.
    fn cook_now(&self, memory: &BayesMemory, items: &ItemMemory, recipe: Recipe) -> Option<ValuedPlan> {
        let plan = CookingPlanner::new(&self.walks, items, recipe, None)?.best_plan()?;
        let finished = memory.n_steps + usize::from(plan.n_actions);
        // The step at which the ego has seen the peer's reaction and walked down to the lower room.
        let looked = finished + 2 + usize::from(9u8.saturating_sub(plan.row));
        let knows_right = memory.knows_right() || looked <= self.horizon_steps;
        let index = recipe_index(recipe);
        let wanted = memory.posterior[index];
        let mut value = wanted * self.served(finished, plan.row);
        if finished <= self.last_finish_step() {
            let mut rejected = memory.posterior;
            rejected[index] = 0.0;
            value += wanted * SUCCESS_KNOWN * memory.episodes_left as f64
                + future_value(&rejected, memory.episodes_left, knows_right);
        } else {
            value += future_value(&memory.posterior, memory.episodes_left, knows_right);
        }
        Some(ValuedPlan { value: value - STEP_COST * finished as f64, next: plan.next })
    }

    fn served(&self, finished: usize, row: u8) -> f64 {
        self.horizon_steps.checked_sub(finished).map_or(0.0, |n_steps| served_within(row, n_steps))
    }

    /// The last step for finishing a dish so that the peer's reaction is seen before the episode is over.
    fn last_finish_step(&self) -> usize {
        self.horizon_steps.saturating_sub(2)
    }

    /// The best plan that cooks a left ingredient up to some point, looks into the lower room, and then cooks the observed dish.
    fn look_and_cook(&self, memory: &BayesMemory, items: &ItemMemory) -> Option<ValuedPlan> {
        let mut lefts = self.plans_by_look_result(memory, items);
        let mut best: Option<ValuedPlan> = None;
        let mut consider = |value: f64, next: Option<Cell>| {
            if best.is_none_or(|best| value > best.value) {
                best = Some(ValuedPlan { value, next });
            }
        };
        // A look at once: the left ingredient can still be chosen after it.
        let (lookout, walk) = self.walks.lookout(items.pose);
        let known = memory.right_known_by(usize::from(walk));
        let mut value = -STEP_COST * known as f64;
        for look_result in 0..N_LOOK_RESULTS {
            let worth = |(left_index, cookings): &mut (usize, Vec<CookingPlanner<'_>>)| {
                let state = cookings[look_result].start();
                let plan = cookings[look_result].best_plan_from(lookout, state, known - memory.n_steps);
                self.value_after_look(memory, known, *left_index, look_result, plan)
            };
            value += lefts.iter_mut().map(worth).fold(0.0, f64::max);
        }
        consider(value, None);
        // A look after some steps with one left ingredient.
        for (left_index, cookings) in &mut lefts {
            for (pose, state, n_actions, first) in cookings[0].without_right().reachable() {
                let (lookout, walk) = self.walks.lookout(pose);
                let known = memory.right_known_by(usize::from(n_actions) + usize::from(walk));
                let mut value = -STEP_COST * known as f64;
                for (look_result, cooking) in cookings.iter_mut().enumerate() {
                    let plan = cooking.best_plan_from(lookout, state, known - memory.n_steps);
                    value += self.value_after_look(memory, known, *left_index, look_result, plan);
                }
                consider(value, first);
            }
        }
        best
    }

    /// For each left ingredient that fits the plate: its index, and the plans for every result of a look.
    fn plans_by_look_result(
        &self,
        memory: &BayesMemory,
        items: &ItemMemory,
    ) -> Vec<(usize, Vec<CookingPlanner<'_>>)> {
        let ready_in = PUT_DOWN_BY.saturating_sub(memory.n_steps) as u8;
        let plans = |left: Ingredient| -> Option<Vec<CookingPlanner<'_>>> {
            let plan = |look_result: usize| {
                let right = Ingredient::RIGHT[look_result / N_LOWER_ROWS];
                let row = LAST_UPPER_ROW + 1 + (look_result % N_LOWER_ROWS) as u8;
                let lower = (Cell::new(DIVIDER, row), ready_in);
                CookingPlanner::new(&self.walks, items, Recipe { left, right }, Some(lower))
            };
            (0..N_LOOK_RESULTS).map(plan).collect()
        };
        let lefts = Ingredient::LEFT.into_iter().enumerate();
        lefts.filter_map(|(left_index, left)| Some((left_index, plans(left)?))).collect()
    }

    /// The value of cooking after the look had the result `look_result` at step `known`, times the probability of that result.
    fn value_after_look(
        &self,
        memory: &BayesMemory,
        known: usize,
        left_index: usize,
        look_result: usize,
        plan: Option<RemainingPlan>,
    ) -> f64 {
        let right = Ingredient::RIGHT[look_result / N_LOWER_ROWS];
        let mut weights = memory.left_weights(right).map(|weight| weight / N_LOWER_ROWS as f64);
        let Some(plan) = plan else { return future_value_known_right(&weights, memory.episodes_left) };
        let finished = known + usize::from(plan.n_actions);
        let wanted = weights[left_index];
        let mut value = wanted * self.served(finished, plan.row) - STEP_COST * f64::from(plan.n_actions);
        if finished <= self.last_finish_step() {
            value += wanted * SUCCESS_KNOWN * memory.episodes_left as f64;
            weights[left_index] = 0.0;
        }
        value + future_value_known_right(&weights, memory.episodes_left)
    }
}

/// Whether the ego already processes a right ingredient.
fn processes_right(items: &ItemMemory) -> bool {
    let is_right = |food: Object| Ingredient::RIGHT.contains(&food.ingredient().expect("a food"));
    items.held.is_some_and(|held| held != Object::Plate && is_right(held))
        || items.dish().any(is_right)
        || Object::FOODS.into_iter().any(|food| is_right(food) && items.cell(food) == Some(CUTTING_BOARD))
}

fn recipe_index(recipe: Recipe) -> usize {
    Recipe::ALL.iter().position(|known| *known == recipe).expect("one of the nine")
}

/// Expected successes in `n_episodes` episodes from a posterior: the left ingredients are tried in the order of their
/// probability, one per episode. If the right ingredient is not known, the first episode starts with a look.
fn future_value(posterior: &[f64; 9], n_episodes: usize, knows_right: bool) -> f64 {
    let mut value = 0.0;
    for right in 0..3 {
        let weights = [posterior[right], posterior[3 + right], posterior[6 + right]];
        value += future_value_known_right(&weights, n_episodes);
        if !knows_right && n_episodes > 0 {
            let first = weights.into_iter().fold(0.0, f64::max);
            value -= first * (SUCCESS_KNOWN - SUCCESS_AFTER_LOOK);
        }
    }
    value
}

fn future_value_known_right(weights: &[f64; 3], n_episodes: usize) -> f64 {
    let mut sorted = *weights;
    sorted.sort_by(|one, other| other.total_cmp(one));
    let mut value = 0.0;
    let mut tested = 0.0;
    for episode in 0..n_episodes {
        tested += sorted.get(episode).copied().unwrap_or(0.0);
        value += SUCCESS_KNOWN * tested;
    }
    value
}

impl BayesMemory {
    fn new(n_episodes: usize) -> BayesMemory {
        BayesMemory {
            posterior: [1.0 / 9.0; 9],
            episodes_left: n_episodes.saturating_sub(1),
            n_steps: 0,
            items: None,
            peer: None,
            is_right_search_over: false,
        }
    }

    fn next_episode(&mut self) {
        *self = BayesMemory {
            posterior: self.posterior,
            episodes_left: self.episodes_left.saturating_sub(1),
            ..BayesMemory::new(0)
        };
    }

    /// The weights of the left ingredients with `right`, in the order of [`Ingredient::LEFT`].
    fn left_weights(&self, right: Ingredient) -> [f64; 3] {
        Ingredient::LEFT.map(|left| self.posterior[recipe_index(Recipe { left, right })])
    }

    /// The step at which an ego that reaches the lower room in `n_steps` steps knows the right ingredient.
    fn right_known_by(&self, n_steps: usize) -> usize {
        (self.n_steps + n_steps.max(1)).max(PICKED_BY)
    }

    fn knows_right(&self) -> bool {
        Ingredient::RIGHT.iter().any(|right| self.left_weights(*right).iter().sum::<f64>() > 0.95)
    }

    /// The index of the dish on the plate; `None` if it is not one of the nine.
    fn dish_index(&self) -> Option<usize> {
        let items = self.items.as_ref()?;
        let kinds: Vec<Ingredient> = items.dish().filter_map(Object::ingredient).collect();
        Recipe::ALL.iter().position(|recipe| {
            kinds.len() == 2 && kinds.contains(&recipe.left) && kinds.contains(&recipe.right)
        })
    }

    /// Updates the memory with an observation.
    fn update(&mut self, seen: &Seen) {
        self.update_right_ingredient(seen);
        self.update_from_reaction(seen);
        self.items = Some(ItemMemory::updated(self.items.as_ref(), seen));
        self.peer = seen.other.map(|(cell, facing)| {
            let held = Object::FOODS.into_iter().find(|food| seen.cell(*food) == Some(cell));
            Cook { cell, facing, held }
        });
    }

    /// Updates the posterior with the right ingredient that the peer has taken from the lower counter.
    fn update_right_ingredient(&mut self, seen: &Seen) {
        if self.is_right_search_over || seen.own.cell.is_upper() {
            return;
        }
        for right in Ingredient::RIGHT {
            let lower = Object::pieces(right)[1];
            if seen.cell(lower).is_some_and(|cell| cell.x < DELIVERY_TILE.x) {
                self.is_right_search_over = true;
                self.reweight(|recipe| if recipe.right == right { 1.0 } else { STRAY_PICK });
            }
        }
        self.is_right_search_over |= self.n_steps >= LOOK_UNTIL;
    }

    /// Updates the posterior with the peer's reaction to a finished dish: it fetches its own dish, and waits otherwise.
    fn update_from_reaction(&mut self, seen: &Seen) {
        let Some(dish) = self.dish_index() else { return };
        let (Some(before), Some((cell, facing))) = (self.peer, seen.other) else { return };
        let items = self.items.as_ref().expect("there is a dish");
        let (Some(plate), Some(plate_now)) = (items.cell(Object::Plate), seen.cell(Object::Plate)) else {
            return;
        };
        if plate_now.x > DIVIDER {
            self.reweight(|recipe| if recipe == Recipe::ALL[dish] { 1.0 } else { STRAY_MOVE });
            return;
        }
        if plate.x != DIVIDER || before.held.is_some() {
            return;
        }
        let sideways_or_not =
            CookSpec { recipe: Recipe::ALL[dish], p_nav: 0.5, p_act: 0.0, weights: [1.0; 6], human: None };
        let peer = CookPeer::with_event(sideways_or_not, None);
        let likelihood = |event: Option<Event>| -> f64 {
            let next = peer.next_action(&before, event);
            next.options()
                .iter()
                .filter(|(action, _)| leads_to(&before, *action, cell, facing))
                .map(|(_, p)| p)
                .sum()
        };
        let n_errors = (0..=INTERACT).filter(|action| leads_to(&before, *action, cell, facing)).count();
        let errs = MEAN_P_ACT * n_errors as f64 / 6.0;
        let fetches =
            errs + (1.0 - MEAN_P_ACT) * likelihood(Some(Event { kind: EventKind::TakePlate, target: plate }));
        let waits = likelihood(None).max(STRAY_MOVE);
        self.reweight(|recipe| if recipe == Recipe::ALL[dish] { fetches.max(STRAY_MOVE) } else { waits });
    }

    /// Updates the posterior after a delivery: the dish on the plate is the peer's.
    fn update_from_delivery(&mut self) {
        if let Some(dish) = self.dish_index() {
            self.reweight(|recipe| if recipe == Recipe::ALL[dish] { 1.0 } else { 0.0 });
        }
    }

    fn reweight(&mut self, likelihood: impl Fn(Recipe) -> f64) {
        for (weight, recipe) in self.posterior.iter_mut().zip(Recipe::ALL) {
            *weight *= likelihood(recipe);
        }
        let total: f64 = self.posterior.iter().sum();
        // No dish explains the observations: the posterior is reset.
        self.posterior =
            if total > 1e-30 { self.posterior.map(|weight| weight / total) } else { [1.0 / 9.0; 9] };
    }
}

/// Whether `action` takes a cook from `before` to this pose.
fn leads_to(before: &Cook, action: Action, cell: Cell, facing: Facing) -> bool {
    match Facing::of_action(action) {
        None => before.cell == cell && before.facing == facing,
        Some(turned) => {
            let target = before.cell.neighbour(turned);
            facing == turned && cell == if target.is_floor() { target } else { before.cell }
        }
    }
}

impl Ego for BayesEgo {
    fn begin_encounter(&mut self) {
        self.memory = BayesMemory::new(self.n_episodes);
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let mut memory = self.memory.clone();
        memory.update(&view::read(observation));
        one_hot(self.decide(&memory), probabilities);
    }

    fn record_action(&mut self, observation: &[f32], _action: Action) {
        self.memory.update(&view::read(observation));
        self.memory.n_steps += 1;
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        let seen = view::read(terminal_observation);
        self.memory.update(&seen);
        let is_delivered = seen.cell(Object::Plate) == Some(DELIVERY_TILE);
        if is_delivered || self.memory.n_steps < self.horizon_steps {
            self.memory.update_from_delivery();
        }
        self.memory.next_episode();
    }

    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        let belief = |(recipe, weight): (Recipe, &f64)| {
            let spec = CookSpec { recipe, p_nav: 0.5, p_act: 0.0, weights: [1.0; 6], human: None };
            KindBelief::of(&spec, *weight)
        };
        vec![Recipe::ALL.into_iter().zip(&self.memory.posterior).map(belief).collect()]
    }
}
