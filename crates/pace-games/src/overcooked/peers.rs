//! The rule-based peer: which errand it takes on, how it walks there, and the pools of such peers.
//!
//! What its actions do to the world is in `kitchen`. The paper calls an errand an *event*, and so do the keys.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kitchen::{Cell, Cook, DELIVERY_TILE, DIVIDER, Facing, INTERACT, Kitchen, Object, STAY};
use super::page;
use super::recipes::{Ingredient, Recipe};
use super::{AcrossEpisodes, Overcooked, OvercookedConfig, PoolKind, RandomAction};
use crate::game::{Action, Seat};
use crate::peer::{Peer, PeerSpec, PeerTuple};
use crate::pool::PeerPool;
use crate::seed::{Seed, Stream};

/// A cook that wants one dish and serves nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CookSpec {
    /// The dish it accepts.
    pub recipe: Recipe,
    /// P_nav: how often it goes sideways first when two ways lead to its goal.
    pub p_nav: f64,
    /// P_act: how often it does something random instead of what it planned.
    pub p_act: f64,
    /// How much it likes each kind of errand, by [`EventKind`], when several are open.
    pub weights: [f64; 6],
    /// What it has of a person; the paper's peers have nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<HumanLikeNoise>,
}

/// What people do and scripts do not: they pause, and change their ways.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HumanLikeNoise {
    /// How often it begins a pause.
    pub p_pause: f64,
    /// The most steps of a pause; each length is as likely as any other.
    pub longest_pause: u32,
    /// How often it takes on a new P_nav with a new errand, any being as likely as any other.
    pub p_change: f64,
}

impl CookSpec {
    fn drawn(recipe: Recipe, rng: &mut Stream) -> CookSpec {
        let (p_nav, p_act) = (rng.unit(), rng.between(0.0, 0.1));
        let mut weights = [0.0; 6];
        weights.fill_with(|| rng.between(1.0, 2.0));
        let total: f64 = weights.iter().sum();
        CookSpec { recipe, p_nav, p_act, weights: weights.map(|weight| weight / total), human: None }
    }

    /// A cook that errs, pauses and changes its ways, as people do more than the paper's peers.
    fn drawn_human_like(recipe: Recipe, rng: &mut Stream) -> CookSpec {
        let spec = CookSpec::drawn(recipe, rng);
        let p_act = rng.between(0.1, 0.3);
        let human = HumanLikeNoise { p_pause: rng.between(0.02, 0.08), longest_pause: 3, p_change: 0.5 };
        CookSpec { p_act, human: Some(human), ..spec }
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

    /// Its recipe, ingredient by ingredient.
    fn behaviour_vector(&self) -> Vec<f32> {
        let wanted = self.recipe.ingredients();
        Ingredient::LEFT
            .into_iter()
            .chain(Ingredient::RIGHT)
            .map(|food| f32::from(u8::from(wanted.contains(food))))
            .collect()
    }
}

/// The kinds of errand, in the order of [`CookSpec::weights`].
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

/// A kind of errand with the cell where it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What is to be done.
    pub event: EventKind,
    /// Where.
    pub target: Cell,
}

/// What a peer would do next: at most two ways, with the probability of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextAction {
    ways: [(Action, f64); 2],
    n_ways: usize,
    /// Whether the errand counts as done with this step, even if chance replaces the action.
    pub is_finished: bool,
}

impl NextAction {
    fn sure(action: Action) -> NextAction {
        NextAction { ways: [(action, 1.0), (STAY, 0.0)], n_ways: 1, is_finished: false }
    }

    /// The actions that may be planned, with their probabilities.
    pub fn ways(&self) -> &[(Action, f64)] {
        &self.ways[..self.n_ways]
    }
}

/// A peer in play: its spec and the errand it is on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CookPeer {
    spec: CookSpec,
    errand: Option<Event>,
    /// P_nav as it is now.
    p_nav: f64,
    /// Steps of a pause still to come.
    n_pauses: u32,
}

impl CookPeer {
    /// A peer in the middle of an errand, or free.
    pub fn on_errand(spec: CookSpec, errand: Option<Event>) -> CookPeer {
        CookPeer { spec, errand, p_nav: spec.p_nav, n_pauses: 0 }
    }

    /// The errand it will go on with, as far as it knows.
    pub fn errand(&self) -> Option<Event> {
        self.errand
    }

    /// Whether the errand it is on can still be done: there is something of the kind to take, or room to put.
    /// Nothing else is asked again, so a dish that was right when the peer set out for it is served even if the ego
    /// has ruined it since.
    #[inline]
    pub fn errand_stands(&self, kitchen: &Kitchen) -> bool {
        let Some(Event { event, target }) = self.errand else { return false };
        let any_at = |foods: &[Object]| foods.iter().any(|food| kitchen.cell(*food) == target);
        match event {
            EventKind::PutLeft | EventKind::PutRight | EventKind::PutPlate => {
                kitchen.top_at(target).is_none()
            }
            EventKind::TakeLeft => any_at(Object::pieces(self.spec.recipe.left)),
            EventKind::TakeRight => any_at(Object::pieces(self.spec.recipe.right)),
            EventKind::TakePlate => kitchen.cell(Object::Plate) == target,
        }
    }

    /// The errands a free peer may choose from, by [`EventKind`].
    #[inline]
    pub fn open_errands(&self, kitchen: &Kitchen, seat: Seat) -> [Option<Event>; 6] {
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
                for (event, ingredient) in [(EventKind::PutLeft, left), (EventKind::PutRight, right)] {
                    if food.ingredient() == Some(ingredient) {
                        open[event as usize] = nearest_free_divider(kitchen, own.cell);
                    }
                }
            }
        }
        let mut errands = [None; 6];
        for ((errand, target), event) in errands.iter_mut().zip(open).zip(EventKind::ALL) {
            *errand = target.map(|target| Event { event, target });
        }
        errands
    }

    /// How the peer, standing as `own`, goes about `errand`; without one it goes to the delivery tile and waits.
    #[inline]
    pub fn plan(&self, own: &Cook, errand: Option<Event>) -> NextAction {
        let Some(Event { target, .. }) = errand else {
            let is_there = own.cell.distance(DELIVERY_TILE) <= 1;
            return if is_there { NextAction::sure(STAY) } else { self.walk(own, DELIVERY_TILE) };
        };
        if own.cell.distance(target) > 1 {
            return self.walk(own, target);
        }
        if own.cell.neighbour(own.facing) == target {
            return NextAction { is_finished: true, ..NextAction::sure(INTERACT) };
        }
        let side = Facing::ALL.into_iter().find(|facing| own.cell.neighbour(*facing) == target);
        NextAction::sure(side.map_or(STAY, Facing::action))
    }

    /// One step nearer, sideways or up and down, where there is floor.
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
                    ways: [(sideways, p_nav), (upright, 1.0 - p_nav)],
                    n_ways: 2,
                    is_finished: false,
                }
            }
            (Some(action), None) | (None, Some(action)) => NextAction::sure(action),
            (None, None) => NextAction::sure(STAY),
        }
    }

    /// How likely each action is, and each errand by [`EventKind`] with none last; exact, and without consequence.
    ///
    /// # Panics
    /// If the peer has human ways: nobody needs their probabilities.
    pub fn probabilities(&self, game: &Overcooked, kitchen: &Kitchen, seat: Seat) -> ([f64; 6], [f64; 7]) {
        assert!(self.spec.human.is_none(), "human ways have no closed form here");
        let (mut actions, mut events) = ([0.0; 6], [0.0; 7]);
        let mut follow = |errand: Option<Event>, chance: f64| {
            events[errand.map_or(6, |errand| errand.event as usize)] += chance;
            let p_act = if errand.is_some() { self.spec.p_act } else { 0.0 };
            for (action, share) in self.plan(&kitchen.cooks[seat.0], errand).ways() {
                actions[usize::from(*action)] += chance * share * (1.0 - p_act);
            }
            let n_random = n_random_actions(game);
            for probability in &mut actions[..n_random as usize] {
                *probability += chance * p_act / f64::from(n_random);
            }
        };
        if self.errand_stands(kitchen) {
            follow(self.errand, 1.0);
            return (actions, events);
        }
        let open = self.open_errands(kitchen, seat);
        let weights = open_weights(&open, &self.spec.weights);
        let total: f64 = weights.iter().sum();
        if total == 0.0 {
            follow(None, 1.0);
        } else {
            for (errand, weight) in open.into_iter().zip(weights).filter(|(errand, _)| errand.is_some()) {
                follow(errand, weight / total);
            }
        }
        (actions, events)
    }
}

/// The nearest piece on the peer's side that is neither plated nor on the divider, the first of equals.
#[inline]
fn nearest_piece(kitchen: &Kitchen, from: Cell, ingredient: Ingredient) -> Option<Cell> {
    let free =
        |food: &Object| kitchen.cell(*food).x > DIVIDER && kitchen.dish().all(|plated| plated != *food);
    let cells = Object::pieces(ingredient).iter().filter(|food| free(food)).map(|food| kitchen.cell(*food));
    cells.min_by_key(|cell| from.distance(*cell))
}

/// The nearest cell of the divider with nothing on it, the upper one of equals.
#[inline]
fn nearest_free_divider(kitchen: &Kitchen, from: Cell) -> Option<Cell> {
    // Nearest rows first, so that the search mostly ends at once.
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

/// A random action is one of the first so many; interacting is the last.
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
        CookPeer::on_errand(*spec, None)
    }

    fn spec(&self) -> &CookSpec {
        &self.spec
    }

    fn begin_episode(&mut self, game: &Overcooked) {
        self.n_pauses = 0;
        if game.config.peer_event_across_episodes == AcrossEpisodes::Cleared {
            self.errand = None;
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
        if !self.errand_stands(kitchen) {
            let open = self.open_errands(kitchen, seat);
            let mut choices = open.iter().flatten();
            // In play there is hardly ever more than one to choose from.
            self.errand = match (choices.next(), choices.next()) {
                (only, None) => only.copied(),
                _ => open[rng.weighted(&open_weights(&open, &self.spec.weights))],
            };
            if let Some(human) = self.spec.human
                && self.errand.is_some()
                && rng.chance(human.p_change)
            {
                self.p_nav = rng.unit();
            }
        }
        let plan = self.plan(&kitchen.cooks[seat.0], self.errand);
        let planned = match plan.ways() {
            [(action, _)] => *action,
            ways => ways[usize::from(!rng.chance(ways[0].1))].0,
        };
        // A peer that waits or walks to wait never errs.
        let is_random = self.errand.is_some() && rng.chance(self.spec.p_act);
        if plan.is_finished {
            self.errand = None;
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

/// The pools of a configuration: 18 peers to train with, 9 to be tested with.
pub(crate) fn pool(config: &OvercookedConfig) -> PeerPool<CookSpec> {
    let mut train: Vec<CookSpec> = OFFICIAL.iter().map(official_spec).collect();
    let test = train.split_off(N_TRAIN);
    if config.pool_recipes != Recipe::ALL.len() {
        train = few_recipes(&train, config.pool_recipes);
    }
    match config.pool {
        PoolKind::Official => tuples(&train, &test),
        PoolKind::HumanLike => {
            let seed = Seed::new(0).child("overcooked-human-like", &[]);
            let draw = |index: usize| {
                let mut rng = seed.child("peer", &[index as u64]).stream("draw");
                CookSpec::drawn_human_like(test[index % N_TEST].recipe, &mut rng)
            };
            tuples(&train, &(0..N_HUMAN_LIKE).map(draw).collect::<Vec<_>>())
        }
        PoolKind::Uniform => {
            let mut rng = Seed::new(0).stream("overcooked-uniform-pool");
            let drawn: Vec<CookSpec> = (0..N_TRAIN + N_TEST).map(|_| drawn_spec(&mut rng)).collect();
            let (train, test) = drawn.split_at(N_TRAIN);
            tuples(train, test)
        }
    }
}

/// Any peer of the family.
pub(crate) fn drawn_spec(rng: &mut Stream) -> CookSpec {
    CookSpec::drawn(Recipe::ALL[rng.below(9) as usize], rng)
}

/// As many training peers as ever, but with the first `n_recipes` dishes only; everything else about them is new.
fn few_recipes(train: &[CookSpec], n_recipes: usize) -> Vec<CookSpec> {
    let seed = Seed::new(0).child("overcooked-few-recipes", &[n_recipes as u64]);
    let draw = |index: usize| {
        CookSpec::drawn(
            train[index % n_recipes].recipe,
            &mut seed.child("peer", &[index as u64]).stream("draw"),
        )
    };
    (0..N_TRAIN).map(draw).collect()
}

fn tuples(train: &[CookSpec], test: &[CookSpec]) -> PeerPool<CookSpec> {
    let tuples = |specs: &[CookSpec]| {
        let specs = specs.iter().enumerate();
        specs.map(|(index, spec)| PeerTuple { specs: vec![*spec], classes: vec![index] }).collect()
    };
    PeerPool::new(tuples(train), tuples(test)).expect("real parameters are never drawn twice")
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
