//! Scripted egos of PO-Overcooked: two that cook one dish, and one that finds out which dish is wanted.
//!
//! How to cook a dish quickly is in `planner`; here is which dish to cook, and when to go and look.

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

/// Cooks one dish as quickly as can be, again and again.
#[derive(Clone, Debug)]
struct OneDish {
    recipe: Recipe,
    walks: WalkDistances,
    pantry: Option<ItemMemory>,
}

impl OneDish {
    fn new(recipe: Recipe) -> OneDish {
        OneDish { recipe, walks: WalkDistances::new(), pantry: None }
    }
}

impl Ego for OneDish {
    fn begin_encounter(&mut self) {
        self.pantry = None;
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let pantry = ItemMemory::updated(self.pantry.as_ref(), &view::read(observation));
        let outlook = CookingPlanner::new(&self.walks, &pantry, self.recipe, None)
            .and_then(|mut cooking| cooking.outlook());
        let next = outlook.and_then(|outlook| outlook.next);
        one_hot(next.map_or(STAY, |counter| act_towards(&self.walks, &pantry, counter)), probabilities);
    }

    fn record_action(&mut self, observation: &[f32], _action: Action) {
        self.pantry = Some(ItemMemory::updated(self.pantry.as_ref(), &view::read(observation)));
    }

    fn end_episode(&mut self, _terminal_observation: &[f32]) {
        self.pantry = None;
    }
}

/// Finds out which of the nine dishes the peer wants, and cooks it.
///
/// It keeps a posterior over the dishes, from what it sees alone: the right ingredient shows downstairs, where the peer
/// moves it; the left one in whether the peer sets out for a finished dish. At every step it weighs two kinds of plan,
/// *cook this dish now* and *go down and look at that point of the cooking, then cook what you saw*, by the chance that
/// this episode succeeds and by what the posterior will be worth in the episodes that are left.
#[derive(Clone, Debug)]
struct BayesEgo {
    walks: WalkDistances,
    horizon_steps: usize,
    n_episodes: usize,
    mind: BayesMemory,
}

/// What the ego remembers.
#[derive(Clone, Debug)]
struct BayesMemory {
    /// How likely each dish of [`Recipe::ALL`] is.
    posterior: [f64; 9],
    episodes_left: usize,
    n_steps: usize,
    pantry: Option<ItemMemory>,
    /// Where the peer stood and looked one step ago, if it was in sight.
    peer: Option<Cook>,
    /// Whether the peer's ingredient was seen in this episode, or the search for it was given up.
    is_right_settled: bool,
}

/// How likely a peer is to move an ingredient that it does not want: it errs in one step of 20, and of its errors
/// few pick something up.
const STRAY_PICK: f64 = 0.003;
/// How likely a waiting peer is to move without a dish to fetch; it never does, as far as we know.
const STRAY_MOVE: f64 = 1e-4;
/// The mean of P_act in the family.
const MEAN_P_ACT: f64 = 0.05;
/// How often an episode succeeds in which the dish is known, and in which the right ingredient must be looked for.
const SUCCESS_KNOWN: f64 = 0.985;
const SUCCESS_AFTER_LOOK: f64 = 0.9;
/// The step by which most peers have picked up their ingredient, and by which they have put it onto the divider.
const PICKED_BY: usize = 4;
const PUT_DOWN_BY: usize = 6;
/// What a look may show: each right ingredient on each row of the lower divider.
const N_LOWER_ROWS: usize = 3;
const N_SIGHTS: usize = 3 * N_LOWER_ROWS;
/// What a step is worth: so little that it only decides between plans that are equally good otherwise.
const HASTE: f64 = 1e-4;
/// A look that has shown nothing by then is given up.
const LOOK_UNTIL: usize = 9;

/// How likely a waiting peer is to have served a dish: by rows between the dish and the delivery tile, then by steps
/// since the dish was finished, from the first step at which it is possible, 4 + 2 × rows. From 40 000 servings per row
/// by peers drawn from the family, under the paper's preset.
const SERVED: [&[f64]; 6] = [
    &[0.847, 0.907, 0.935, 0.976, 0.985, 0.994, 0.997, 0.998, 0.999],
    &[0.265, 0.554, 0.846, 0.914, 0.954, 0.972, 0.980, 0.984, 0.987, 0.991, 0.993, 0.995],
    &[0.147, 0.364, 0.780, 0.879, 0.937, 0.963, 0.974, 0.980, 0.982, 0.984],
    &[0.095, 0.261, 0.714, 0.832, 0.912, 0.950, 0.967, 0.975, 0.979],
    &[0.070, 0.198, 0.662, 0.798, 0.893, 0.940, 0.961, 0.973],
    &[0.051, 0.155, 0.613, 0.762, 0.872, 0.925, 0.953],
];

pub(crate) fn served_within(row: u8, n_steps: usize) -> f64 {
    let rows = usize::from(row.abs_diff(DELIVERY_TILE.y)).min(5);
    let Some(index) = n_steps.checked_sub(4 + 2 * rows) else { return 0.0 };
    SERVED[rows][index.min(SERVED[rows].len() - 1)]
}

/// What the ego may set out to do, and what it expects of it.
#[derive(Clone, Copy, Debug)]
struct Prospect {
    value: f64,
    /// The counter to use next; without one the ego goes down to look.
    next: Option<Cell>,
}

impl BayesEgo {
    fn new(game: &Overcooked) -> BayesEgo {
        let n_episodes = game.spec().episodes_per_encounter;
        BayesEgo {
            walks: WalkDistances::new(),
            horizon_steps: game.spec().horizon_steps,
            n_episodes,
            mind: BayesMemory::new(n_episodes),
        }
    }

    fn decide(&self, mind: &BayesMemory) -> Action {
        let pantry = mind.pantry.as_ref().expect("the ego decides after it has seen");
        let is_finished = pantry.dish().count() >= 2 && pantry.held != Some(Object::Plate);
        if is_finished {
            return self.after_cooking(mind, pantry);
        }
        let mut best: Option<Prospect> = None;
        let mut consider = |option: Option<Prospect>| {
            if let Some(option) = option
                && best.is_none_or(|best| option.value > best.value)
            {
                best = Some(option);
            }
        };
        for (index, recipe) in Recipe::ALL.into_iter().enumerate() {
            if mind.posterior[index] > 0.002 {
                consider(self.cook_now(mind, pantry, recipe));
            }
        }
        if !mind.is_right_settled && !mind.knows_right() && !handles_right(pantry) {
            consider(self.look_and_cook(mind, pantry));
        }
        match best {
            Some(Prospect { next: Some(counter), .. }) => act_towards(&self.walks, pantry, counter),
            Some(Prospect { next: None, .. }) => self.go_down(pantry),
            None => STAY,
        }
    }

    fn go_down(&self, pantry: &ItemMemory) -> Action {
        let (lookout, _) = self.walks.lookout(pantry.pose);
        self.walks.first_move(pantry.pose, lookout)
    }

    /// With the dish on the divider there is time to watch the peer's answer, and to go down if it is no.
    fn after_cooking(&self, mind: &BayesMemory, pantry: &ItemMemory) -> Action {
        let dish_weight: f64 = mind.dish_index().map_or(0.0, |index| mind.posterior[index]);
        if mind.is_right_settled || mind.knows_right() || dish_weight > 0.05 {
            STAY
        } else {
            self.go_down(pantry)
        }
    }

    /// Cook `recipe` without looking any further.
    fn cook_now(&self, mind: &BayesMemory, pantry: &ItemMemory, recipe: Recipe) -> Option<Prospect> {
        let outlook = CookingPlanner::new(&self.walks, pantry, recipe, None)?.outlook()?;
        let finished = mind.n_steps + usize::from(outlook.n_actions);
        // The walk down to the lower room, after the peer's answer was seen.
        let looked = finished + 2 + usize::from(9u8.saturating_sub(outlook.row));
        let knows_right = mind.knows_right() || looked <= self.horizon_steps;
        let index = recipe_index(recipe);
        let wanted = mind.posterior[index];
        let mut value = wanted * self.served(finished, outlook.row);
        if finished <= self.last_test() {
            let mut rejected = mind.posterior;
            rejected[index] = 0.0;
            value += wanted * SUCCESS_KNOWN * mind.episodes_left as f64
                + future(&rejected, mind.episodes_left, knows_right);
        } else {
            value += future(&mind.posterior, mind.episodes_left, knows_right);
        }
        Some(Prospect { value: value - HASTE * finished as f64, next: outlook.next })
    }

    fn served(&self, finished: usize, row: u8) -> f64 {
        self.horizon_steps.checked_sub(finished).map_or(0.0, |n_steps| served_within(row, n_steps))
    }

    /// The last step at which a dish may be finished for the peer's answer to be seen before the episode is over.
    fn last_test(&self) -> usize {
        self.horizon_steps.saturating_sub(2)
    }

    /// Go on with a left ingredient up to the best moment for a look, go down, and then cook with what was seen.
    fn look_and_cook(&self, mind: &BayesMemory, pantry: &ItemMemory) -> Option<Prospect> {
        let mut lefts = self.plans_by_sight(mind, pantry);
        let mut best: Option<Prospect> = None;
        let mut consider = |value: f64, next: Option<Cell>| {
            if best.is_none_or(|best| value > best.value) {
                best = Some(Prospect { value, next });
            }
        };
        // Down at once: the left ingredient can still be chosen by what was seen.
        let (lookout, walk) = self.walks.lookout(pantry.pose);
        let known = mind.right_known_by(usize::from(walk));
        let mut value = -HASTE * known as f64;
        for sight in 0..N_SIGHTS {
            let worth = |(left_index, cookings): &mut (usize, Vec<CookingPlanner<'_>>)| {
                let point = cookings[sight].start();
                let outlook = cookings[sight].outlook_from(lookout, point, known - mind.n_steps);
                self.after_look(mind, known, *left_index, sight, outlook)
            };
            value += lefts.iter_mut().map(worth).fold(0.0, f64::max);
        }
        consider(value, None);
        // Down after some work on one left ingredient.
        for (left_index, cookings) in &mut lefts {
            for (pose, point, n_actions, first) in cookings[0].without_right().reachable() {
                let (lookout, walk) = self.walks.lookout(pose);
                let known = mind.right_known_by(usize::from(n_actions) + usize::from(walk));
                let mut value = -HASTE * known as f64;
                for (sight, cooking) in cookings.iter_mut().enumerate() {
                    let outlook = cooking.outlook_from(lookout, point, known - mind.n_steps);
                    value += self.after_look(mind, known, *left_index, sight, outlook);
                }
                consider(value, first);
            }
        }
        best
    }

    /// For each left ingredient that still fits the plate, the plans for everything a look may show.
    fn plans_by_sight(
        &self,
        mind: &BayesMemory,
        pantry: &ItemMemory,
    ) -> Vec<(usize, Vec<CookingPlanner<'_>>)> {
        let ready_in = PUT_DOWN_BY.saturating_sub(mind.n_steps) as u8;
        let plans = |left: Ingredient| -> Option<Vec<CookingPlanner<'_>>> {
            let plan = |sight: usize| {
                let right = Ingredient::RIGHT[sight / N_LOWER_ROWS];
                let row = LAST_UPPER_ROW + 1 + (sight % N_LOWER_ROWS) as u8;
                let lower = (Cell::new(DIVIDER, row), ready_in);
                CookingPlanner::new(&self.walks, pantry, Recipe { left, right }, Some(lower))
            };
            (0..N_SIGHTS).map(plan).collect()
        };
        let lefts = Ingredient::LEFT.into_iter().enumerate();
        lefts.filter_map(|(left_index, left)| Some((left_index, plans(left)?))).collect()
    }

    /// What it is worth, weighed by how likely it is, to have seen `sight` at step `known` and to cook on from there.
    fn after_look(
        &self,
        mind: &BayesMemory,
        known: usize,
        left_index: usize,
        sight: usize,
        outlook: Option<RemainingPlan>,
    ) -> f64 {
        let right = Ingredient::RIGHT[sight / N_LOWER_ROWS];
        let mut masses = mind.left_masses(right).map(|mass| mass / N_LOWER_ROWS as f64);
        let Some(outlook) = outlook else { return future_of_known(&masses, mind.episodes_left) };
        let finished = known + usize::from(outlook.n_actions);
        let wanted = masses[left_index];
        let mut value = wanted * self.served(finished, outlook.row) - HASTE * f64::from(outlook.n_actions);
        if finished <= self.last_test() {
            value += wanted * SUCCESS_KNOWN * mind.episodes_left as f64;
            masses[left_index] = 0.0;
        }
        value + future_of_known(&masses, mind.episodes_left)
    }
}

/// Whether the ego has a right ingredient in work, so that it is too late to wonder which.
fn handles_right(pantry: &ItemMemory) -> bool {
    let is_right = |food: Object| Ingredient::RIGHT.contains(&food.ingredient().expect("a food"));
    pantry.held.is_some_and(|held| held != Object::Plate && is_right(held))
        || pantry.dish().any(is_right)
        || Object::FOODS.into_iter().any(|food| is_right(food) && pantry.cell(food) == Some(CUTTING_BOARD))
}

fn recipe_index(recipe: Recipe) -> usize {
    Recipe::ALL.iter().position(|known| *known == recipe).expect("one of the nine")
}

/// What `n_episodes` episodes are worth from a posterior: the likeliest left ingredient first, then the next, each
/// tested in one episode. If the right one is not known, the first of these episodes has to begin with a look.
fn future(posterior: &[f64; 9], n_episodes: usize, knows_right: bool) -> f64 {
    let mut value = 0.0;
    for right in 0..3 {
        let masses = [posterior[right], posterior[3 + right], posterior[6 + right]];
        value += future_of_known(&masses, n_episodes);
        if !knows_right && n_episodes > 0 {
            let first = masses.into_iter().fold(0.0, f64::max);
            value -= first * (SUCCESS_KNOWN - SUCCESS_AFTER_LOOK);
        }
    }
    value
}

fn future_of_known(masses: &[f64; 3], n_episodes: usize) -> f64 {
    let mut sorted = *masses;
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
            pantry: None,
            peer: None,
            is_right_settled: false,
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
    fn left_masses(&self, right: Ingredient) -> [f64; 3] {
        Ingredient::LEFT.map(|left| self.posterior[recipe_index(Recipe { left, right })])
    }

    /// The step at which an ego that is downstairs in `n_steps` steps will know the right ingredient.
    fn right_known_by(&self, n_steps: usize) -> usize {
        (self.n_steps + n_steps.max(1)).max(PICKED_BY)
    }

    fn knows_right(&self) -> bool {
        Ingredient::RIGHT.iter().any(|right| self.left_masses(*right).iter().sum::<f64>() > 0.95)
    }

    /// Which of the nine dishes is in the plate, if one is.
    fn dish_index(&self) -> Option<usize> {
        let pantry = self.pantry.as_ref()?;
        let kinds: Vec<Ingredient> = pantry.dish().filter_map(Object::ingredient).collect();
        Recipe::ALL.iter().position(|recipe| {
            kinds.len() == 2 && kinds.contains(&recipe.left) && kinds.contains(&recipe.right)
        })
    }

    /// Learns from what is seen now, given everything that was remembered.
    fn see(&mut self, seen: &Seen) {
        self.learn_right(seen);
        self.learn_answer(seen);
        self.pantry = Some(ItemMemory::updated(self.pantry.as_ref(), seen));
        self.peer = seen.other.map(|(cell, facing)| {
            let held = Object::FOODS.into_iter().find(|food| seen.cell(*food) == Some(cell));
            Cook { cell, facing, held }
        });
    }

    /// The ingredient that has left the right-hand counter downstairs is the peer's.
    fn learn_right(&mut self, seen: &Seen) {
        if self.is_right_settled || seen.own.cell.is_upper() {
            return;
        }
        for right in Ingredient::RIGHT {
            let lower = Object::pieces(right)[1];
            if seen.cell(lower).is_some_and(|cell| cell.x < DELIVERY_TILE.x) {
                self.is_right_settled = true;
                self.weigh(|recipe| if recipe.right == right { 1.0 } else { STRAY_PICK });
            }
        }
        self.is_right_settled |= self.n_steps >= LOOK_UNTIL;
    }

    /// A peer that wants the dish sets out for it; one that does not goes on to wait.
    fn learn_answer(&mut self, seen: &Seen) {
        let Some(dish) = self.dish_index() else { return };
        let (Some(before), Some((cell, facing))) = (self.peer, seen.other) else { return };
        let pantry = self.pantry.as_ref().expect("there is a dish");
        let (Some(plate), Some(plate_now)) = (pantry.cell(Object::Plate), seen.cell(Object::Plate)) else {
            return;
        };
        if plate_now.x > DIVIDER {
            self.weigh(|recipe| if recipe == Recipe::ALL[dish] { 1.0 } else { STRAY_MOVE });
            return;
        }
        if plate.x != DIVIDER || before.held.is_some() {
            return;
        }
        let sideways_or_not =
            CookSpec { recipe: Recipe::ALL[dish], p_nav: 0.5, p_act: 0.0, weights: [1.0; 6], human: None };
        let peer = CookPeer::on_errand(sideways_or_not, None);
        let likelihood = |errand: Option<Event>| -> f64 {
            let ways = peer.plan(&before, errand);
            ways.ways()
                .iter()
                .filter(|(action, _)| led_to(&before, *action, cell, facing))
                .map(|(_, p)| p)
                .sum()
        };
        let n_errors = (0..=INTERACT).filter(|action| led_to(&before, *action, cell, facing)).count();
        let errs = MEAN_P_ACT * n_errors as f64 / 6.0;
        let fetches = errs
            + (1.0 - MEAN_P_ACT) * likelihood(Some(Event { event: EventKind::TakePlate, target: plate }));
        let waits = likelihood(None).max(STRAY_MOVE);
        self.weigh(|recipe| if recipe == Recipe::ALL[dish] { fetches.max(STRAY_MOVE) } else { waits });
    }

    /// The dish was delivered: it was the right one.
    fn learn_success(&mut self) {
        if let Some(dish) = self.dish_index() {
            self.weigh(|recipe| if recipe == Recipe::ALL[dish] { 1.0 } else { 0.0 });
        }
    }

    fn weigh(&mut self, likelihood: impl Fn(Recipe) -> f64) {
        for (weight, recipe) in self.posterior.iter_mut().zip(Recipe::ALL) {
            *weight *= likelihood(recipe);
        }
        let total: f64 = self.posterior.iter().sum();
        // Nothing fits any more: the ego has misread something, and starts from nothing.
        self.posterior =
            if total > 1e-30 { self.posterior.map(|weight| weight / total) } else { [1.0 / 9.0; 9] };
    }
}

/// Whether `action` takes a cook from `before` to this pose.
fn led_to(before: &Cook, action: Action, cell: Cell, facing: Facing) -> bool {
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
        self.mind = BayesMemory::new(self.n_episodes);
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let mut mind = self.mind.clone();
        mind.see(&view::read(observation));
        one_hot(self.decide(&mind), probabilities);
    }

    fn record_action(&mut self, observation: &[f32], _action: Action) {
        self.mind.see(&view::read(observation));
        self.mind.n_steps += 1;
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        let seen = view::read(terminal_observation);
        self.mind.see(&seen);
        let is_delivered = seen.cell(Object::Plate) == Some(DELIVERY_TILE);
        if is_delivered || self.mind.n_steps < self.horizon_steps {
            self.mind.learn_success();
        }
        self.mind.next_episode();
    }

    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        let opinion = |(recipe, weight): (Recipe, &f64)| {
            let spec = CookSpec { recipe, p_nav: 0.5, p_act: 0.0, weights: [1.0; 6], human: None };
            KindBelief::of(&spec, *weight)
        };
        vec![Recipe::ALL.into_iter().zip(&self.mind.posterior).map(opinion).collect()]
    }
}
