//! The rule-based peer: its choice of events, its walks, and the pools of such peers.
//!
//! An event is a task of the peer, for example to take an ingredient from a cell; the word is the paper's.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kitchen::{Cell, Cook, DELIVERY_TILE, DIVIDER, Facing, INTERACT, Kitchen, Object, STAY};
use super::page;
use super::recipes::{Ingredient, Recipe};
use super::{AcrossEpisodes, Overcooked, OvercookedConfig, PoolKind, RandomAction};
use crate::game::{Action, Seat};
use crate::peer::{Peer, PeerSpec};
use crate::pool::PeerPool;
use crate::seed::{Seed, Stream};

/// The behaviour of a cook that serves one dish.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CookSpec {
    /// The dish that it serves.
    pub recipe: Recipe,
    /// P_nav: the probability of a horizontal step, when a horizontal and a vertical step both lead to its goal.
    pub p_nav: f64,
    /// P_act: the probability of a random action instead of the planned one.
    pub p_act: f64,
    /// The weight of each kind of event, by [`EventKind`], when several are possible.
    pub weights: [f64; 6],
    /// Human-like behaviour; `None` for the paper's peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<HumanLikeNoise>,
}

/// Pauses and route changes of a human-like cook.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HumanLikeNoise {
    /// The probability of starting a pause in a step.
    pub p_pause: f64,
    /// Maximum steps of a pause; the length is uniform from 1.
    pub longest_pause: u32,
    /// The probability of a new P_nav with a new event; it is uniform in [0, 1).
    pub p_change: f64,
}

impl CookSpec {
    /// Samples a peer of the paper's family with this recipe.
    fn sampled(recipe: Recipe, rng: &mut Stream) -> CookSpec {
        let (p_nav, p_act) = (rng.unit(), rng.between(0.0, 0.1));
        let mut weights = [0.0; 6];
        weights.fill_with(|| rng.between(1.0, 2.0));
        let total: f64 = weights.iter().sum();
        CookSpec { recipe, p_nav, p_act, weights: weights.map(|weight| weight / total), human: None }
    }

    /// Samples a cook with human-like errors, pauses and route changes.
    fn sampled_human_like(recipe: Recipe, rng: &mut Stream) -> CookSpec {
        let spec = CookSpec::sampled(recipe, rng);
        let p_act = rng.between(0.1, 0.3);
        let human = HumanLikeNoise { p_pause: rng.between(0.02, 0.08), longest_pause: 3, p_change: 0.5 };
        CookSpec { p_act, human: Some(human), ..spec }
    }

    /// The distance to another cook in the plane of P_nav and ten times P_act, in which the paper's cooks fill a square.
    pub(crate) fn distance(&self, other: &CookSpec) -> f64 {
        (self.p_nav - other.p_nav).hypot(10.0 * (self.p_act - other.p_act))
    }
}

impl PeerSpec for CookSpec {
    fn describe(&self) -> String {
        let pauses = self.human.map(|human| format!(", pauses {:.3}", human.p_pause));
        let pauses = pauses.unwrap_or_default();
        format!("{}, sideways {:.3}, random {:.3}{pauses}", self.kind(), self.p_nav, self.p_act)
    }

    fn kind(&self) -> String {
        let Recipe { left, right } = self.recipe;
        format!("{left:?} and {right:?}")
    }

    fn kind_data(&self) -> Value {
        json!(self.recipe)
    }

    fn factors(&self) -> Vec<(&'static str, String)> {
        let Recipe { left, right } = self.recipe;
        vec![("left ingredient", format!("{left:?}")), ("right ingredient", format!("{right:?}"))]
    }

    /// The recipe: 1 for each of its ingredients, 0 for the others.
    fn behaviour_vector(&self) -> Vec<f32> {
        let wanted = self.recipe.ingredients();
        Ingredient::LEFT
            .into_iter()
            .chain(Ingredient::RIGHT)
            .map(|food| f32::from(u8::from(wanted.contains(food))))
            .collect()
    }
}

/// A kind of event, in the order of [`CookSpec::weights`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum EventKind {
    PutLeft,
    PutRight,
    PutPlate,
    TakeLeft,
    TakeRight,
    TakePlate,
}

impl EventKind {
    /// All kinds, in the order of the weights.
    pub const ALL: [EventKind; 6] = [
        EventKind::PutLeft,
        EventKind::PutRight,
        EventKind::PutPlate,
        EventKind::TakeLeft,
        EventKind::TakeRight,
        EventKind::TakePlate,
    ];
}

/// An event: its kind and the cell that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The kind.
    #[serde(rename = "event")]
    pub kind: EventKind,
    /// The cell from which an object is taken, or on which it is put.
    pub target: Cell,
}

/// The distribution of a peer's next planned action: one or two actions with their probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextAction {
    options: [(Action, f64); 2],
    n_options: usize,
    /// Whether this step completes the event, even if a random action replaces the planned one.
    pub completes_event: bool,
}

impl NextAction {
    fn certain(action: Action) -> NextAction {
        NextAction { options: [(action, 1.0), (STAY, 0.0)], n_options: 1, completes_event: false }
    }

    /// The possible actions with their probabilities.
    pub fn options(&self) -> &[(Action, f64)] {
        &self.options[..self.n_options]
    }
}

/// A peer in an encounter: its behaviour and its current event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CookPeer {
    spec: CookSpec,
    #[serde(rename = "errand")]
    event: Option<Event>,
    /// The current P_nav.
    p_nav: f64,
    /// Remaining steps of a pause.
    n_pauses: u32,
}

impl CookPeer {
    /// A peer with this event, or without one.
    pub fn with_event(spec: CookSpec, event: Option<Event>) -> CookPeer {
        CookPeer { spec, event, p_nav: spec.p_nav, n_pauses: 0 }
    }

    /// The current event.
    pub fn event(&self) -> Option<Event> {
        self.event
    }

    /// Whether the current event is still possible: the object is there, or the cell is free. No other condition is checked
    /// again, so a peer that has started to fetch its dish serves it even if the ego adds a wrong ingredient.
    #[inline]
    pub fn is_event_possible(&self, kitchen: &Kitchen) -> bool {
        let Some(Event { kind, target }) = self.event else { return false };
        let any_at = |foods: &[Object]| foods.iter().any(|food| kitchen.cell(*food) == target);
        match kind {
            EventKind::PutLeft | EventKind::PutRight | EventKind::PutPlate => {
                kitchen.top_at(target).is_none()
            }
            EventKind::TakeLeft => any_at(Object::pieces(self.spec.recipe.left)),
            EventKind::TakeRight => any_at(Object::pieces(self.spec.recipe.right)),
            EventKind::TakePlate => kitchen.cell(Object::Plate) == target,
        }
    }

    /// The events from which a peer without one chooses, by [`EventKind`].
    #[inline]
    pub fn possible_events(&self, kitchen: &Kitchen, seat: Seat) -> [Option<Event>; 6] {
        let own = &kitchen.cooks[seat.0];
        let Recipe { left, right } = self.spec.recipe;
        let mut open = [None; 6];
        match own.held {
            None => {
                open[EventKind::TakeLeft as usize] = nearest_piece(kitchen, own.cell, left);
                open[EventKind::TakeRight as usize] = nearest_piece(kitchen, own.cell, right);
                let plate = kitchen.cell(Object::Plate);
                let plated = kitchen.plated();
                let is_wanted = plated.len() >= 2 && plated.is_within(self.spec.recipe.ingredients());
                open[EventKind::TakePlate as usize] = (is_wanted && plate.x >= DIVIDER).then_some(plate);
            }
            Some(Object::Plate) => {
                let is_served = kitchen.dish[0].is_some() && kitchen.top_at(DELIVERY_TILE).is_none();
                open[EventKind::PutPlate as usize] = is_served.then_some(DELIVERY_TILE);
            }
            Some(food) => {
                for (kind, ingredient) in [(EventKind::PutLeft, left), (EventKind::PutRight, right)] {
                    if food.ingredient() == Some(ingredient) {
                        open[kind as usize] = nearest_free_divider(kitchen, own.cell);
                    }
                }
            }
        }
        let mut events = [None; 6];
        for ((event, target), kind) in events.iter_mut().zip(open).zip(EventKind::ALL) {
            *event = target.map(|target| Event { kind, target });
        }
        events
    }

    /// The next action towards `event` of a cook in the state `own`. Without an event it walks to the delivery tile and waits.
    #[inline]
    pub fn next_action(&self, own: &Cook, event: Option<Event>) -> NextAction {
        let Some(Event { target, .. }) = event else {
            let is_there = own.cell.distance(DELIVERY_TILE) <= 1;
            return if is_there { NextAction::certain(STAY) } else { self.walk(own, DELIVERY_TILE) };
        };
        if own.cell.distance(target) > 1 {
            return self.walk(own, target);
        }
        if own.cell.neighbour(own.facing) == target {
            return NextAction { completes_event: true, ..NextAction::certain(INTERACT) };
        }
        let side = Facing::ALL.into_iter().find(|facing| own.cell.neighbour(*facing) == target);
        NextAction::certain(side.map_or(STAY, Facing::action))
    }

    /// A step towards `target`, horizontal or vertical, on floor cells.
    #[inline]
    fn walk(&self, own: &Cook, target: Cell) -> NextAction {
        let towards = |near: u8, far: u8, back: Facing, forth: Facing| {
            let facing = match near.cmp(&far) {
                std::cmp::Ordering::Less => forth,
                std::cmp::Ordering::Equal => return None,
                std::cmp::Ordering::Greater => back,
            };
            own.cell.neighbour(facing).is_floor().then(|| facing.action())
        };
        let sideways = towards(own.cell.x, target.x, Facing::Left, Facing::Right);
        let upright = towards(own.cell.y, target.y, Facing::Up, Facing::Down);
        match (sideways, upright) {
            (Some(sideways), Some(upright)) => {
                let p_nav = self.p_nav;
                NextAction {
                    options: [(sideways, p_nav), (upright, 1.0 - p_nav)],
                    n_options: 2,
                    completes_event: false,
                }
            }
            (Some(action), None) | (None, Some(action)) => NextAction::certain(action),
            (None, None) => NextAction::certain(STAY),
        }
    }

    /// The exact probabilities of the actions, and of the events by [`EventKind`] with no event last.
    ///
    /// # Panics
    /// If the peer is human-like.
    pub fn probabilities(&self, game: &Overcooked, kitchen: &Kitchen, seat: Seat) -> ([f64; 6], [f64; 7]) {
        assert!(self.spec.human.is_none(), "human-like peers have no closed form");
        let (mut actions, mut events) = ([0.0; 6], [0.0; 7]);
        let mut follow = |event: Option<Event>, p_event: f64| {
            events[event.map_or(6, |event| event.kind as usize)] += p_event;
            let p_act = if event.is_some() { self.spec.p_act } else { 0.0 };
            for (action, share) in self.next_action(&kitchen.cooks[seat.0], event).options() {
                actions[usize::from(*action)] += p_event * share * (1.0 - p_act);
            }
            let n_random = n_random_actions(game);
            for probability in &mut actions[..n_random as usize] {
                *probability += p_event * p_act / f64::from(n_random);
            }
        };
        if self.is_event_possible(kitchen) {
            follow(self.event, 1.0);
            return (actions, events);
        }
        let open = self.possible_events(kitchen, seat);
        let weights = open_weights(&open, &self.spec.weights);
        let total: f64 = weights.iter().sum();
        if total == 0.0 {
            follow(None, 1.0);
        } else {
            for (event, weight) in open.into_iter().zip(weights).filter(|(event, _)| event.is_some()) {
                follow(event, weight / total);
            }
        }
        (actions, events)
    }
}

/// The nearest piece on the peer's side that is neither plated nor on the divider; the first of several.
#[inline]
fn nearest_piece(kitchen: &Kitchen, from: Cell, ingredient: Ingredient) -> Option<Cell> {
    let free =
        |food: &Object| kitchen.cell(*food).x > DIVIDER && kitchen.dish().all(|plated| plated != *food);
    let cells = Object::pieces(ingredient).iter().filter(|food| free(food)).map(|food| kitchen.cell(*food));
    cells.min_by_key(|cell| from.distance(*cell))
}

/// The nearest free cell of the divider; the upper one of two.
#[inline]
fn nearest_free_divider(kitchen: &Kitchen, from: Cell) -> Option<Cell> {
    // Nearest rows first: the search mostly ends at the first cell.
    for distance in 0..11 {
        for y in [from.y.wrapping_sub(distance), from.y + distance] {
            let cell = Cell::new(DIVIDER, y);
            if (1..=11).contains(&y) && kitchen.top_at(cell).is_none() {
                return Some(cell);
            }
        }
    }
    None
}

fn open_weights(open: &[Option<Event>; 6], weights: &[f64; 6]) -> [f64; 6] {
    std::array::from_fn(|index| if open[index].is_some() { weights[index] } else { 0.0 })
}

/// The number of actions from which a random one is sampled; interact is the last of the six.
#[inline]
fn n_random_actions(game: &Overcooked) -> u32 {
    match game.config.peer_random_action {
        RandomAction::Any => 6,
        RandomAction::Moves => 5,
    }
}

impl Peer<Overcooked> for CookPeer {
    type Spec = CookSpec;

    fn new(_game: &Overcooked, spec: &CookSpec) -> CookPeer {
        CookPeer::with_event(*spec, None)
    }

    fn spec(&self) -> &CookSpec {
        &self.spec
    }

    fn begin_episode(&mut self, game: &Overcooked) {
        self.n_pauses = 0;
        if game.config.peer_event_across_episodes == AcrossEpisodes::Cleared {
            self.event = None;
        }
    }

    #[inline]
    fn act(&mut self, game: &Overcooked, kitchen: &Kitchen, seat: Seat, rng: &mut Stream) -> Action {
        if let Some(human) = self.spec.human {
            if self.n_pauses == 0 && rng.chance(human.p_pause) {
                self.n_pauses = 1 + rng.below(human.longest_pause);
            }
            if self.n_pauses > 0 {
                self.n_pauses -= 1;
                return STAY;
            }
        }
        if !self.is_event_possible(kitchen) {
            let open = self.possible_events(kitchen, seat);
            let mut choices = open.iter().flatten();
            // More than one choice is rare.
            self.event = match (choices.next(), choices.next()) {
                (only, None) => only.copied(),
                _ => open[rng.weighted(&open_weights(&open, &self.spec.weights))],
            };
            if let Some(human) = self.spec.human
                && self.event.is_some()
                && rng.chance(human.p_change)
            {
                self.p_nav = rng.unit();
            }
        }
        let next = self.next_action(&kitchen.cooks[seat.0], self.event);
        let planned = match next.options() {
            [(action, _)] => *action,
            options => options[usize::from(!rng.chance(options[0].1))].0,
        };
        // Without an event the peer takes no random actions.
        let is_random = self.event.is_some() && rng.chance(self.spec.p_act);
        if next.completes_event {
            self.event = None;
        }
        if is_random { rng.below(n_random_actions(game)) as Action } else { planned }
    }

    fn forbidden_reason(
        &self,
        _game: &Overcooked,
        kitchen: &Kitchen,
        seat: Seat,
        action: Action,
    ) -> Option<String> {
        page::forbidden_reason(kitchen, seat, self.spec.recipe, action)
    }
}

const N_TRAIN: usize = 18;
const N_TEST: usize = 9;
const N_HUMAN_LIKE: usize = 18;
const N_VALIDATION: usize = 18;
/// The minimum distance of a validation peer from every training and test peer; see [`CookSpec::distance`].
pub(crate) const MIN_DISTANCE: f64 = 0.05;
/// The numbers of dishes that a training pool can have.
pub(crate) const POOL_RECIPES: [usize; 4] = [9, 6, 4, 2];

/// The pools of a configuration: 18 training peers, 18 validation peers and 9 test peers (18 if they are human-like).
pub(crate) fn pool(config: &OvercookedConfig) -> PeerPool<CookSpec> {
    let official = OFFICIAL.map(|row| official_spec(&row));
    let (official_train, official_test) = official.split_at(N_TRAIN);
    let few = |n_recipes| few_recipes(official_train, n_recipes);
    let train = few(config.pool_recipes);
    // The validation peers are the same for every number of dishes.
    let every_train: Vec<CookSpec> = POOL_RECIPES.into_iter().flat_map(few).collect();
    match config.pool {
        PoolKind::Official => pool_of(&train, &every_train, official_test, CookSpec::sampled),
        PoolKind::HumanLike => {
            let seed = Seed::new(0).child("overcooked-human-like", &[]);
            let sample = |index: usize| {
                let mut rng = seed.child("peer", &[index as u64]).stream("draw");
                CookSpec::sampled_human_like(official_test[index % N_TEST].recipe, &mut rng)
            };
            let test: Vec<CookSpec> = (0..N_HUMAN_LIKE).map(sample).collect();
            pool_of(&train, &every_train, &test, CookSpec::sampled_human_like)
        }
        PoolKind::Uniform => {
            let mut rng = Seed::new(0).stream("overcooked-uniform-pool");
            let sampled: Vec<CookSpec> = (0..N_TRAIN + N_TEST).map(|_| sampled_spec(&mut rng)).collect();
            let (train, test) = sampled.split_at(N_TRAIN);
            pool_of(train, train, test, CookSpec::sampled)
        }
    }
}

/// Samples a peer of the paper's family.
pub(crate) fn sampled_spec(rng: &mut Stream) -> CookSpec {
    CookSpec::sampled(Recipe::ALL[rng.below(9) as usize], rng)
}

/// Training peers with the first `n_recipes` dishes only. Unless that is every dish, their other parameters are sampled again.
fn few_recipes(train: &[CookSpec], n_recipes: usize) -> Vec<CookSpec> {
    if n_recipes == Recipe::ALL.len() {
        return train.to_vec();
    }
    let seed = Seed::new(0).child("overcooked-few-recipes", &[n_recipes as u64]);
    let sample = |index: usize| {
        let mut rng = seed.child("peer", &[index as u64]).stream("draw");
        CookSpec::sampled(train[index % n_recipes].recipe, &mut rng)
    };
    (0..N_TRAIN).map(sample).collect()
}

/// The pool with these training and test peers. Its validation peers have every dish twice and sampled parameters; samples that
/// are close to a test peer or to a peer in `every_train` are rejected.
fn pool_of(
    train: &[CookSpec],
    every_train: &[CookSpec],
    test: &[CookSpec],
    sample: fn(Recipe, &mut Stream) -> CookSpec,
) -> PeerPool<CookSpec> {
    let mut rng = Seed::new(0).stream("overcooked-validation");
    let mut sample_apart = |index: usize| {
        loop {
            let peer = sample(Recipe::ALL[index % Recipe::ALL.len()], &mut rng);
            if every_train.iter().chain(test).all(|other| peer.distance(other) >= MIN_DISTANCE) {
                return peer;
            }
        }
    };
    let validation: Vec<CookSpec> = (0..N_VALIDATION).map(&mut sample_apart).collect();
    PeerPool::of_single_peers(train, &validation, test).expect("sampled parameters are never equal")
}

type OfficialRow = (Ingredient, Ingredient, f64, f64, [f64; 6]);

fn official_spec(&(left, right, p_nav, p_act, weights): &OfficialRow) -> CookSpec {
    CookSpec { recipe: Recipe { left, right }, p_nav, p_act, weights, human: None }
}

/// The authors' 27 peers, training peers first: dish, P_nav, P_act and weights.
#[rustfmt::skip]
const OFFICIAL: [OfficialRow; N_TRAIN + N_TEST] = {
    use Ingredient::{Broccoli, Carrot, Lettuce, Onion, Potato, Tomato};
    [
        (Potato, Broccoli, 0.23608897695197606, 0.03965807272960262, [0.1434187905769293, 0.17254204472002344, 0.20000758292063098, 0.19078725370940933, 0.13570620495194508, 0.1575381231210619]),
        (Lettuce, Broccoli, 0.44345289377955666, 0.022957721372982555, [0.1526203493587799, 0.19037207050031163, 0.1449407526779317, 0.14230431168385335, 0.1928751811668904, 0.17688733461223308]),
        (Potato, Onion, 0.7159705159683643, 0.0802757503937365, [0.11615934077518762, 0.16137213468995104, 0.19824246220289357, 0.19442930244993203, 0.19447782105106912, 0.1353189388309667]),
        (Potato, Carrot, 0.059243201301563464, 0.06705280400689455, [0.1918013859629504, 0.20126326824194207, 0.169975979494709, 0.14418234489190818, 0.15526841149624931, 0.13750860991224093]),
        (Lettuce, Carrot, 0.7833144726948862, 0.041253884150302615, [0.12481563043852244, 0.19600652659838702, 0.20042452672635175, 0.15671727409476754, 0.17453606392258836, 0.1474999782193828]),
        (Lettuce, Onion, 0.07336417174259957, 0.046923852643814316, [0.12680843492813595, 0.2201874656105653, 0.12950595383969232, 0.1763932819115142, 0.1253567000526825, 0.22174816365740962]),
        (Tomato, Carrot, 0.9104483817931015, 0.029893011220971613, [0.1719775054097492, 0.16997190945680526, 0.17518492278620207, 0.21237214840424196, 0.13687295403001246, 0.13362055991298888]),
        (Tomato, Onion, 0.5334484906051753, 0.09499381385326397, [0.17011317083889846, 0.1755297904283927, 0.20115223162140958, 0.11910246401387421, 0.1298831285924854, 0.20421921450493957]),
        (Tomato, Broccoli, 0.029801358182393267, 0.08831254758194232, [0.16305996345800305, 0.15323819137754, 0.20024271228747373, 0.1457882750169505, 0.162809837280198, 0.1748610205798347]),
        (Potato, Broccoli, 0.361261020211621, 0.05710085611850925, [0.1776534532547654, 0.12216953934528293, 0.18333373608668982, 0.17872869106116224, 0.14685956562979136, 0.19125501462230815]),
        (Lettuce, Broccoli, 0.35653172355805496, 0.07527883531756042, [0.2262334608476419, 0.12165435292739757, 0.1801492924946922, 0.12912469129386173, 0.21488291498551337, 0.12795528745089318]),
        (Potato, Onion, 0.3553103624164283, 0.09418369487534226, [0.15094090209510724, 0.19285121927091503, 0.19380019580778338, 0.14235980520680785, 0.19392535773744224, 0.12612251988194423]),
        (Potato, Carrot, 0.5786339307357229, 0.000900799696104293, [0.17966541663072383, 0.15460311257481932, 0.18550519091008674, 0.15426164907299744, 0.13340545928208253, 0.19255917152929017]),
        (Lettuce, Carrot, 0.551324941197953, 0.007008149603262914, [0.17101682845125848, 0.20240894160257888, 0.13843667491312778, 0.17006869570457664, 0.14289732586433898, 0.17517153346411912]),
        (Lettuce, Onion, 0.20856831165421408, 0.0049304244753157755, [0.19455715733224963, 0.15016187280509408, 0.17885941327565955, 0.1418468979269414, 0.19339770159384054, 0.14117695706621491]),
        (Tomato, Carrot, 0.2887178327056099, 0.02317584645213333, [0.22989033670533476, 0.14935098745770595, 0.14412894223966669, 0.12753080652292798, 0.1834370261146124, 0.16566190095975233]),
        (Tomato, Onion, 0.36784324063842955, 0.08129949703859737, [0.1397856963190997, 0.18613290869966415, 0.1748131991917988, 0.15465015440350627, 0.18987003971415728, 0.15474800167177377]),
        (Tomato, Broccoli, 0.4283824051652493, 0.036190444275675485, [0.12215982718868032, 0.2051842020281495, 0.20298316879535988, 0.18874228338222437, 0.1711990611555617, 0.10973145745002433]),
        (Potato, Broccoli, 0.6543237716895042, 0.01297696089146605, [0.1768844116235145, 0.18596604868304106, 0.17419029406806155, 0.14676631737180165, 0.1574486124508211, 0.15874431580276024]),
        (Lettuce, Broccoli, 0.9387116997045198, 0.03711339009554683, [0.11452090203304857, 0.1898784443066642, 0.1416414010169216, 0.13135409858859948, 0.21614157052037009, 0.20646358353439595]),
        (Potato, Onion, 0.7593487949563279, 0.06511205589027862, [0.11933132805466531, 0.2081905456352047, 0.20230213573207073, 0.16703236045902695, 0.17581781804173546, 0.12732581207729682]),
        (Potato, Carrot, 0.14603274598822868, 0.050878873877933786, [0.1396739020390118, 0.22019257861767297, 0.1679961334726717, 0.13009349058596117, 0.20270509825516114, 0.13933879702952126]),
        (Lettuce, Carrot, 0.07425843335817761, 0.009541924858656193, [0.14062049720687098, 0.16412467110596596, 0.13252624218076603, 0.138328558017246, 0.23364198187957838, 0.19075804960957252]),
        (Lettuce, Onion, 0.8396452138186095, 0.06232921128220616, [0.1445263220005855, 0.1885540718562823, 0.16615524147584504, 0.18951427507960494, 0.12716469195066318, 0.184085397637019]),
        (Tomato, Carrot, 0.4268108400282419, 0.07285573975501831, [0.19055369284381932, 0.15163390329719206, 0.20887467839739046, 0.13057491016119754, 0.10936330256896702, 0.20899951273143363]),
        (Tomato, Onion, 0.2945115453451176, 0.016695159378879134, [0.12343223272555164, 0.17500587422536137, 0.21795423730018404, 0.16492680602398346, 0.19395341873027402, 0.12472743099464546]),
        (Tomato, Broccoli, 0.3545772293681615, 0.00785199637344416, [0.18954211267778356, 0.11336721947143719, 0.16338749999076538, 0.21955791824673082, 0.14935417904422796, 0.16479107056905506]),
    ]
};
