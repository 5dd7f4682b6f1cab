//! The [`Game`] trait: acting seats, transitions and observations.
//!
//! The behaviour of peers is in `peer`, several episodes with the same peers are in `encounter`, and the conformance checks of
//! this trait are in `contract`.

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

/// Marks a seat that did not act in a list of actions.
pub const NO_ACTION: Action = Action::MAX;

/// The maximum number of seats of a game, including the ego's.
pub const MAX_SEATS: usize = 8;

/// The actions of all seats in one move; [`NO_ACTION`] for a seat that does not act.
pub type JointAction = [Action; MAX_SEATS];

/// The joint action in which no seat acts.
pub const NO_ACTIONS: JointAction = [NO_ACTION; MAX_SEATS];

/// The index of a player. The ego has seat 0; the peers follow in the order of their tuple.
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

/// A set of seats, for example the acting seats of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatSet(u8);

impl SeatSet {
    /// The empty set; the acting seats when the episode is over.
    pub const NONE: SeatSet = SeatSet(0);

    /// The set with one seat.
    pub fn only(seat: Seat) -> SeatSet {
        SeatSet(1 << seat.0)
    }

    /// The set of the first `n_seats` seats.
    pub fn first(n_seats: usize) -> SeatSet {
        assert!(n_seats <= MAX_SEATS, "{n_seats} seats, at most {MAX_SEATS}");
        SeatSet(((1u16 << n_seats) - 1) as u8)
    }

    /// Whether `seat` is in the set.
    #[inline]
    pub fn contains(self, seat: Seat) -> bool {
        self.0 >> seat.0 & 1 == 1
    }

    /// The set with `seat` added.
    pub fn with(self, seat: Seat) -> SeatSet {
        SeatSet(self.0 | 1 << seat.0)
    }

    /// The seats that are in both sets.
    #[inline]
    pub(crate) fn intersection(self, others: SeatSet) -> SeatSet {
        SeatSet(self.0 & others.0)
    }

    /// The set with `seat` removed.
    #[inline]
    pub fn without(self, seat: Seat) -> SeatSet {
        SeatSet(self.0 & !(1 << seat.0))
    }

    /// The seats, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Seat> {
        (0..MAX_SEATS).map(Seat).filter(move |seat| self.contains(*seat))
    }

    /// Whether the set has no seat.
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

/// A summary of the behaviour of a person in a peer's seat.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BehaviourSummary {
    /// Pairs of a label and a value, for example how often something was done.
    pub lines: Vec<(String, String)>,
    /// An estimate of [`crate::PeerSpec::behaviour_vector`]; empty for games without one.
    pub traits: Vec<f32>,
    /// The return per episode of an ego that knows this behaviour from the start, where the game has a closed form.
    pub best_response_return: Option<f64>,
}

/// The reason for which an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The rules ended it, in a game without a goal.
    Finished,
    /// The goal was reached.
    Succeeded,
    /// The horizon was reached before the goal.
    TimedOut,
}

/// The position of a step in its encounter. One encounter spans many episodes; the two ends are never one flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Boundary {
    /// The episode continues.
    WithinEpisode,
    /// The episode is over; the encounter continues with the same peers.
    EpisodeEnd,
    /// The last episode of the encounter is over.
    EncounterEnd,
}

/// The outcome of one move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoveOutcome {
    /// The ego's task reward.
    pub task_reward: f64,
    /// The ending of the episode; `None` while it continues.
    pub ending: Option<Ending>,
    /// Whether the keypoint was visited in this move; see [`GameSpec::keypoint`].
    pub keypoint_visited: bool,
}

/// A possible decision of the ego in an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionPoint {
    /// The preceding steps of the episode.
    pub earlier: Vec<EarlierStep>,
    /// The ego's observation.
    pub observation: Vec<f32>,
}

/// A step before a decision point.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierStep {
    /// The ego's observation.
    pub observation: Vec<f32>,
    /// The ego's action.
    pub ego_action: Action,
    /// The peers' actions.
    pub peer_actions: Vec<Action>,
}

/// The score of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The sum of task rewards.
    Return,
    /// 1 if the episode [`Ending::Succeeded`], else 0.
    Success,
}

/// The properties of a game under one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GameSpec {
    /// The id on the command line and in records.
    pub id: &'static str,
    /// The name on pages.
    pub title: &'static str,
    /// The version of observations and rewards; written into checkpoints and records.
    pub revision: u32,
    /// Length of every seat's observation.
    pub observation_size: usize,
    /// Names of the actions, by index.
    pub action_names: &'static [&'static str],
    /// The role of each peer, by slot.
    pub peer_roles: Vec<&'static str>,
    /// N_eps: episodes played with the same peers.
    pub episodes_per_encounter: usize,
    /// Maximum number of decisions of the ego in one episode.
    pub horizon_steps: usize,
    /// The score of an episode.
    pub metric: Metric,
    /// The informative place or event that [`MoveOutcome::keypoint_visited`] reports, as text.
    pub keypoint: &'static str,
    /// The names of episodes, scores and keypoints in tables and on pages.
    pub nouns: DisplayNames,
}

/// The words with which tables and pages speak of a game.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DisplayNames {
    /// One episode: hand, round, episode.
    pub episode: &'static str,
    /// Several episodes.
    pub episodes: &'static str,
    /// The score of an episode.
    pub score: &'static str,
    /// The keypoint.
    pub keypoint: &'static str,
}

impl GameSpec {
    /// The number of actions.
    pub fn n_actions(&self) -> usize {
        self.action_names.len()
    }

    /// m: the number of peers.
    pub fn n_peers(&self) -> usize {
        self.peer_roles.len()
    }

    /// The number of players: the ego and the peers.
    pub fn n_seats(&self) -> usize {
        1 + self.n_peers()
    }
}

/// The files with which pages show a game: sessions with people, their replays, and reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// A JavaScript module with the drawing, the texts and the controls of the game; `page.js` in the game's folder. All of its
    /// exports are optional: they replace those of `text_game.js` in pace-report, which documents them.
    pub script: &'static str,
    /// The style sheet of the drawing; `page.css` in the game's folder.
    pub style: &'static str,
}

/// The rules of a game. A game is immutable; an episode in progress is a [`Game::State`].
///
/// Rules cannot fail and use nothing but their arguments. Turn-based and simultaneous games share [`Game::acting_seats`]: all
/// acting seats choose in the same state, then [`Game::apply`] executes the move.
pub trait Game: Clone + Debug + Send + Sync + Sized + 'static {
    /// The id on the command line and in records.
    const ID: &'static str;
    /// Rules, layout of the observation and rewards, for people.
    const README: &'static str;
    /// The text of the game's `training.toml`: keys of training by preset, on top of the general defaults. Empty for a game that
    /// is trained with these alone.
    const TRAINING: &'static str = "";
    /// The files with which pages show the game. Without them pages show the text of [`Game::render`], with a button for each
    /// action.
    const PAGE: Option<Page> = None;
    /// Explanations of the symbols of [`Game::render`], line by line; empty where that text needs no explanation.
    const LEGEND: &'static [&'static str] = &[];

    /// The keys of the game.
    type Config: PresetConfig;
    /// The state of an episode. Plain data: it can be constructed, compared, written and read.
    type State: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync;
    /// The rule-based peers of the game.
    type Peer: Peer<Self>;

    /// The game under `config`; an error if a value is not allowed.
    fn new(config: Self::Config) -> Result<Self, ConfigError>;

    /// The configuration the game was made from.
    fn config(&self) -> &Self::Config;

    /// The properties that follow from the configuration.
    fn spec(&self) -> &GameSpec;

    /// Samples the first state of an episode.
    fn initial_state(&self, rng: &mut Stream) -> Self::State;

    /// The seats that must act now; empty exactly when the episode is over. The ego acts at least once per episode.
    fn acting_seats(&self, state: &Self::State) -> SeatSet;

    /// Executes one move. `actions` holds an action below [`GameSpec::n_actions`] for every acting seat.
    fn apply(&self, state: &mut Self::State, actions: &JointAction) -> MoveOutcome;

    /// Writes the observation of `seat`: all [`GameSpec::observation_size`] entries.
    fn observe(&self, state: &Self::State, seat: Seat, observation: &mut [f32]);

    /// Writes the observation that `seat` would have if nothing were hidden, in the same layout; for oracles only.
    fn observe_everything(&self, state: &Self::State, seat: Seat, observation: &mut [f32]) {
        self.observe(state, seat, observation);
    }

    /// Returns an error with the reason if no play can lead to `state`.
    fn check_state(&self, state: &Self::State) -> Result<(), ConfigError>;

    /// The state as text for people.
    fn render(&self, state: &Self::State) -> String;

    /// The constants of the game that a page needs to draw it, as plain data.
    fn constants(&self) -> Value {
        Value::Null
    }

    /// The state from a viewpoint, as plain data; hidden parts are absent. Default: the text of [`Game::render`] from every
    /// viewpoint, for games that hide nothing.
    fn view(&self, state: &Self::State, _from: Viewpoint) -> Value {
        json!({ "text": self.render(state) })
    }

    /// A summary of the behaviour in `seat`, from the state before each move and its actions.
    fn behaviour_summary(&self, _seat: Seat, _moves: &[(Self::State, JointAction)]) -> BehaviourSummary {
        BehaviourSummary::default()
    }

    /// The training and test peers.
    fn pool(&self) -> PeerPool<SpecOf<Self>>;

    /// The symmetries of the game and its training pool; `None` for a game without symmetries.
    fn symmetries(&self) -> Option<Symmetries> {
        None
    }

    /// Samples a tuple from the whole parameter space of peers.
    fn sample_tuple(&self, rng: &mut Stream) -> PeerTuple<SpecOf<Self>>;

    /// The reference agents, by name: scripted egos to compare learned ones with.
    fn references(&self) -> Vec<(&'static str, Reference<Self>)>;

    /// All possible decisions of the ego in an episode, for games with a closed form of the expected return; empty otherwise.
    fn decision_points(&self) -> Vec<DecisionPoint> {
        Vec::new()
    }

    /// The exact expected task return of one episode with these peers. `answers` holds the ego's action probabilities at
    /// [`Game::decision_points`], one point after the other.
    fn expected_return(&self, _peers: &[SpecOf<Self>], _answers: &[f32]) -> f64 {
        panic!("{} has no closed form", Self::ID)
    }
}
