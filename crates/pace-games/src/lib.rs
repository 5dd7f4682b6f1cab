//! Games for agents that adapt online to unknown peers.
//!
//! An *ego* plays several episodes with a tuple of unknown *peers*: an *encounter*. This crate holds the [`Game`] trait, three
//! games with their rule-based peers and peer pools, and reference agents to compare learned agents with. It uses no file,
//! clock or thread, and every random number comes from a named stream.
//!
//! ```
//! use pace_games::{ScriptedEncounter, Preset, Seed, Split, find_game};
//!
//! let game = find_game("kuhn-poker")?.open(Preset::Paper, &serde_json::Map::new())?;
//! let encounter =
//!     ScriptedEncounter { reference: "bayes", split: Split::Test, tuple: 0, n_episodes: 100, seed: Seed::new(1) };
//! let outcomes = game.play(&encounter)?;
//! let won: f64 = outcomes.iter().map(|outcome| outcome.task_return).sum();
//! assert_eq!(outcomes.len(), 100);
//! assert!(won.abs() <= 200.0);
//! # Ok::<(), pace_games::ConfigError>(())
//! ```
//!
//! The modules are in the order of the flow: game, peers and pools, encounters, egos and reference agents.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod config;
pub mod game;
pub mod old_names;
pub mod peer;
pub mod pool;
pub mod seed;
pub mod symmetry;

pub mod arena;
pub mod encounter;

pub mod ego;
pub mod session;

pub mod contract;
pub mod entry;

pub mod kuhn_poker;
pub mod overcooked;
pub mod predator_prey;

pub use arena::{AnyArena, Arena, PeerObservationMode, StepBatch, StepBuffers};
pub use config::{ConfigError, Preset, PresetConfig, configure};
pub use contract::{ContractViolation, check_contract};
pub use ego::{
    Ego, EpisodeOutcome, Inference, KindBelief, RandomEgo, Reference, StepFeedback, check_distribution,
    one_hot, play_encounter, sample_action,
};
pub use encounter::{EgoStep, Encounter, EncounterMove, PeerStepBuffers};
pub use entry::{AnyEncounter, AnyGame, GameEntry, PoolListing, ScriptedEncounter, TupleListing};
pub use game::{
    Action, BehaviourSummary, Boundary, DecisionPoint, DisplayNames, EarlierStep, Ending, Game, GameSpec,
    JointAction, MAX_SEATS, Metric, MoveOutcome, NO_ACTION, NO_ACTIONS, Page, Seat, SeatSet, Viewpoint,
};
pub use peer::{Peer, PeerSpec, PeerTuple, SpecOf};
pub use pool::{PeerPool, Split};
pub use seed::{Seed, Stream};
pub use session::{AgentSession, Decision, Moment, Progress, StepRecord};
pub use symmetry::{Symmetries, SymmetryTransform};

/// The games, in the order of every table. This is the only list of games: commands, checks and pages loop over it.
pub const GAMES: &[GameEntry] = &[
    GameEntry::of::<kuhn_poker::KuhnPoker>(),
    GameEntry::of::<overcooked::Overcooked>(),
    GameEntry::of::<predator_prey::PredatorPrey>(),
];

/// The game with this id.
pub fn find_game(id: &str) -> Result<&'static GameEntry, ConfigError> {
    GAMES
        .iter()
        .find(|entry| entry.id == id)
        .ok_or_else(|| ConfigError::unknown("game", id, GAMES.iter().map(|entry| entry.id)))
}
