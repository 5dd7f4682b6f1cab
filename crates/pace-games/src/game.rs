//! The contract of a game: who may act, what happens then, what a seat sees.
//!
//! How peers choose is in `peer`; playing several episodes with the same peers is in `encounter`;
//! the check that a game keeps this contract is in `contract`.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::{ConfigError, PresetConfig};
use crate::ego::Reference;
use crate::peer::{Peer, PeerTuple, SpecOf};
use crate::pool::PeerPool;
use crate::seed::Stream;
use crate::symmetry::Symmetries;

/// An index into [`GameSpec::action_names`].
pub type Action = u8;

/// Stands in a list of actions where a seat was not asked.
pub const NO_ACTION: Action = Action::MAX;

/// The most seats a game may have, the ego's included.
pub const MAX_SEATS: usize = 8;

/// The actions of all seats in one move; [`NO_ACTION`] where a seat was not asked.
pub type JointAction = [Action; MAX_SEATS];

/// The joint action in which no seat acts: all that an encounter without people needs from outside.
pub const NO_ACTIONS: JointAction = [NO_ACTION; MAX_SEATS];

/// A place at the table. The ego sits at 0; the peers follow in the order of their tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(pub usize);

impl Seat {
    /// The ego's seat.
    pub const EGO: Seat = Seat(0);

    /// The seat of the peer in slot `slot` of a tuple.
    pub fn of_peer(slot: usize) -> Seat {
        Seat(slot + 1)
    }
}

/// A set of seats: those that must choose now, or those that are played from outside an encounter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatSet(u8);

impl SeatSet {
    /// The empty set: of the seats that must choose, when the episode is over.
    pub const NONE: SeatSet = SeatSet(0);

    /// One seat alone.
    pub fn only(seat: Seat) -> SeatSet {
        SeatSet(1 << seat.0)
    }

    /// The first `n_seats` seats together.
    pub fn first(n_seats: usize) -> SeatSet {
        assert!(n_seats <= MAX_SEATS, "{n_seats} seats, at most {MAX_SEATS}");
        SeatSet(((1u16 << n_seats) - 1) as u8)
    }

    /// Whether `seat` is one of them.
    #[inline]
    pub fn contains(self, seat: Seat) -> bool {
        self.0 >> seat.0 & 1 == 1
    }

    /// These and `seat`.
    pub fn with(self, seat: Seat) -> SeatSet {
        SeatSet(self.0 | 1 << seat.0)
    }

    /// Those that are also among `others`.
    #[inline]
    pub fn intersection(self, others: SeatSet) -> SeatSet {
        SeatSet(self.0 & others.0)
    }

    /// These without `seat`.
    #[inline]
    pub fn without(self, seat: Seat) -> SeatSet {
        SeatSet(self.0 & !(1 << seat.0))
    }

    /// The seats, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Seat> {
        (0..MAX_SEATS).map(Seat).filter(move |seat| self.contains(*seat))
    }

    /// Whether there is no seat in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The viewpoint from which a state is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewpoint {
    /// Only what this seat sees.
    Seat(Seat),
    /// The whole state.
    Omniscient,
}

/// How a person played a peer's seat, looked back at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BehaviourSummary {
    /// What was done how often, as pairs of a question and its answer.
    pub lines: Vec<(String, String)>,
    /// By the measure of [`crate::PeerSpec::behaviour_vector`], where enough was seen to tell.
    pub traits: Vec<f32>,
    /// What an ego would earn per episode that knew this from the start, where the game has a closed form for it.
    pub best_response_return: Option<f64>,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// By the rules, in a game without a goal to reach or miss.
    Finished,
    /// With the goal reached.
    Succeeded,
    /// At the horizon, with the goal not reached.
    TimedOut,
}

/// Where a step leaves us. One encounter spans many episodes; the two ends are never one flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boundary {
    /// The episode goes on.
    WithinEpisode,
    /// The episode is over; the encounter goes on with the same peers.
    EpisodeEnd,
    /// The last episode of the encounter is over.
    EncounterEnd,
}

/// The outcome of one move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveOutcome {
    /// The ego's task reward.
    pub task_reward: f64,
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
    /// Whether this move took the ego to an informative place ([`GameSpec::keypoint`]).
    pub keypoint_visited: bool,
}

/// A point at which the ego may have to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionPoint {
    /// The steps of this episode that led there.
    pub earlier: Vec<EarlierStep>,
    /// What the ego sees there.
    pub observation: Vec<f32>,
}

/// A step on the way to a decision point.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierStep {
    /// What the ego saw.
    pub observation: Vec<f32>,
    /// What it did.
    pub ego_action: Action,
    /// What the peers did.
    pub peer_actions: Vec<Action>,
}

/// The number by which an episode is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The sum of task rewards.
    Return,
    /// 1 if the episode [`Ending::Succeeded`], else 0.
    Success,
}

/// The facts of a game under one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GameSpec {
    /// The id on the command line and in records.
    pub id: &'static str,
    /// The name for people.
    pub title: &'static str,
    /// Rises when an observation or a reward changes; it is written into checkpoints and records.
    pub revision: u32,
    /// Length of every seat's observation.
    pub observation_size: usize,
    /// Names of the actions, by index.
    pub action_names: &'static [&'static str],
    /// The role of each peer, by slot.
    pub peer_roles: Vec<&'static str>,
    /// N_eps: episodes played with the same peers.
    pub episodes_per_encounter: usize,
    /// The most decisions an ego can take in one episode.
    pub horizon_steps: usize,
    /// How an episode is judged.
    pub metric: Metric,
    /// What [`MoveOutcome::keypoint_visited`] means here, in words.
    pub keypoint: &'static str,
    /// What things are called in tables and on pages.
    pub nouns: DisplayNames,
}

/// What a game's things are called by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DisplayNames {
    /// One episode: hand, round, episode.
    pub episode: &'static str,
    /// Several of them.
    pub episodes: &'static str,
    /// The number an episode is judged by.
    pub score: &'static str,
    /// The informative place.
    pub keypoint: &'static str,
}

impl GameSpec {
    /// How many actions there are.
    pub fn n_actions(&self) -> usize {
        self.action_names.len()
    }

    /// m: how many peers there are.
    pub fn n_peers(&self) -> usize {
        self.peer_roles.len()
    }

    /// The ego and the peers.
    pub fn n_seats(&self) -> usize {
        1 + self.n_peers()
    }
}

/// The files with which pages show a game: sessions with people, their replays, and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// A module of JavaScript with the drawing, the words and the controls of the game; `page.js` in the game's folder. All of
    /// its exports are optional: they replace those of `text_game.js` in pace-report, which documents them.
    pub script: &'static str,
    /// The style sheet of the drawing; `page.css` in the game's folder.
    pub style: &'static str,
}

/// The rules of a game. Immutable; a point in play is a [`Game::State`].
///
/// Rules cannot fail and touch nothing outside their arguments. Turn-based and simultaneous games share
/// [`Game::acting_seats`]: all seats it names choose from the same state, then [`Game::apply`] carries the move out.
pub trait Game: Clone + Debug + Send + Sync + Sized + 'static {
    /// The id on the command line and in records.
    const ID: &'static str;
    /// Rules, layout of the observation and rewards, for people.
    const README: &'static str;
    /// The text of the game's `training.toml`: keys of training by preset, on top of the general defaults. Empty for a game that
    /// is trained with these alone.
    const TRAINING: &'static str = "";
    /// The files with which pages show it. Without them it is shown as text, with a button for each action.
    const PAGE: Option<Page> = None;
    /// The symbols of [`Game::render`] explained, line by line; empty where that text needs no explanation.
    const LEGEND: &'static [&'static str] = &[];

    /// What a person may choose about the game.
    type Config: PresetConfig;
    /// A point in play. Plain data: it can be set by hand, compared, written and read.
    type State: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync;
    /// The peers that come with the game.
    type Peer: Peer<Self>;

    /// The game under `config`, or the reason why there is no such game.
    fn new(config: Self::Config) -> Result<Self, ConfigError>;

    /// The configuration the game was made from.
    fn config(&self) -> &Self::Config;

    /// The facts that follow from the configuration.
    fn spec(&self) -> &GameSpec;

    /// The start of an episode.
    fn initial_state(&self, rng: &mut Stream) -> Self::State;

    /// Who must choose now; empty exactly when the episode is over. The ego is asked at least once per episode.
    fn acting_seats(&self, state: &Self::State) -> SeatSet;

    /// Carries out one move. `actions` holds an action below [`GameSpec::n_actions`] for every mover.
    fn apply(&self, state: &mut Self::State, actions: &JointAction) -> MoveOutcome;

    /// Writes what `seat` sees into `observation`, which has [`GameSpec::observation_size`] places; every place is written.
    fn observe(&self, state: &Self::State, seat: Seat, observation: &mut [f32]);

    /// What `seat` would see if nothing were hidden, in the same layout; for oracles only.
    fn observe_everything(&self, state: &Self::State, seat: Seat, observation: &mut [f32]) {
        self.observe(state, seat, observation);
    }

    /// Refuses a state that cannot be, with the reason.
    fn check_state(&self, state: &Self::State) -> Result<(), ConfigError>;

    /// The state as text for people.
    fn render(&self, state: &Self::State) -> String;

    /// The constants of the game that a page needs to draw it, as plain data.
    fn constants(&self) -> Value {
        Value::Null
    }

    /// The state from a viewpoint, as plain data; what the viewpoint does not see is absent. Default: [`Game::render`] as text
    /// from every viewpoint, for games that hide nothing.
    fn view(&self, state: &Self::State, _from: Viewpoint) -> Value {
        json!({ "text": self.render(state) })
    }

    /// How the peer in `seat` was played, from the states in which moves were made and all actions of each move.
    fn behaviour_summary(&self, _seat: Seat, _moves: &[(Self::State, JointAction)]) -> BehaviourSummary {
        BehaviourSummary::default()
    }

    /// Whom we train with and whom we are tested with.
    fn pool(&self) -> PeerPool<SpecOf<Self>>;

    /// The sides from which the game and its training pool are the same; nothing if there is one only.
    fn sides(&self) -> Option<Symmetries> {
        None
    }

    /// A tuple drawn from the whole family of peers.
    fn draw_tuple(&self, rng: &mut Stream) -> PeerTuple<SpecOf<Self>>;

    /// The reference agents, by name: scripted egos to compare learned ones with.
    fn references(&self) -> Vec<(&'static str, Reference<Self>)>;

    /// Every point at which the ego may have to decide in an episode, where that is a short list and the game has a closed
    /// form for the value of the answers; empty otherwise.
    fn decision_points(&self) -> Vec<DecisionPoint> {
        Vec::new()
    }

    /// The exact expected task return of one episode against these peers, for an ego that answers each of
    /// [`Game::decision_points`] with these probabilities (one after the other, `n_actions` for each point).
    fn expected_return(&self, _peers: &[SpecOf<Self>], _answers: &[f32]) -> f64 {
        panic!("{} has no closed form", Self::ID)
    }
}
