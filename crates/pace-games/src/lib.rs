//! Games for agents that adapt online to peers they have never met.
//!
//! An *ego* meets a tuple of unknown *peers* and plays several episodes with them, an *encounter*. This crate holds the
//! contract of a game, three games with their rule-based peers, the pools of peers, and scripted egos to compare
//! learned agents with. It touches no file, clock or thread, and every random number comes from a named stream.
//!
//! ```
//! use pace_games::{Meeting, Preset, Seed, Split, find_game};
//!
//! let game = find_game("kuhn-poker")?.open(Preset::Paper, &serde_json::Map::new())?;
//! let meeting =
//!     Meeting { reference: "bayes", split: Split::Test, tuple: 0, n_episodes: 100, seed: Seed::new(1) };
//! let outcomes = game.play(&meeting)?;
//! let won: f64 = outcomes.iter().map(|outcome| outcome.task_return).sum();
//! assert_eq!(outcomes.len(), 100);
//! assert!(won.abs() <= 200.0);
//! # Ok::<(), pace_games::GameError>(())
//! ```
//!
//! The modules stand in the order of the flow: what a game is, who the peers are, how they meet, the reference agents.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod config;
pub mod game;
pub mod peer;
pub mod pool;
pub mod seed;
pub mod side;

pub mod arena;
pub mod encounter;

pub mod ego;
pub mod session;

pub mod contract;
pub mod entry;

pub mod kuhn_poker;
pub mod overcooked;
pub mod predator_prey;

pub use arena::{Arena, Lanes, PeerSight, StepBlock};
pub use config::{Configure, GameError, Preset, configure};
pub use contract::{ContractBreach, check_contract};
pub use ego::{
    Ego, EpisodeOutcome, Inference, Opinion, RandomEgo, Reference, StepFeedback, begin_reference, certain,
    check_distribution, play_encounter, sample_action,
};
pub use encounter::{EgoStep, Encounter, EncounterMove, PeerStepBuffers};
pub use entry::{AnyEncounter, AnyGame, GameEntry, Meeting, PoolListing, TupleListing};
pub use game::{
    Action, Boundary, DecisionPoint, EarlierStep, Ending, Game, GameSpec, JointAction, MAX_SEATS, Metric,
    MoveOutcome, NO_ACTION, NO_ACTIONS, Nouns, Page, Portrait, Seat, SeatSet, Viewpoint,
};
pub use peer::{Peer, PeerSpec, PeerTuple, SpecOf};
pub use pool::{PeerPool, Split};
pub use seed::{Seed, Stream};
pub use session::{AgentSession, Decision, Moment, Progress, StepRecord};
pub use side::{Sides, Turn};

/// Every game there is, in the order of every table. The only list of games: commands, checks and pages loop over it.
pub const GAMES: &[GameEntry] = &[
    GameEntry::of::<kuhn_poker::KuhnPoker>(),
    GameEntry::of::<overcooked::Overcooked>(),
    GameEntry::of::<predator_prey::PredatorPrey>(),
];

/// The game with this id.
pub fn find_game(id: &str) -> Result<&'static GameEntry, GameError> {
    GAMES
        .iter()
        .find(|entry| entry.id == id)
        .ok_or_else(|| GameError::unknown("game", id, GAMES.iter().map(|entry| entry.id)))
}
