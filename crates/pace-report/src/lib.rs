//! Records of training and evaluation, and their presentation: statistics, tables, figures and pages.
//!
//! A record is plain data with a version. Everything else is a function from records to text. No function opens a file or reads
//! a clock, and none depends on a game, so the same record gives the same bytes on every machine.
//!
//! ```
//! use pace_report::stats::{Estimate, normalised};
//!
//! // Two peers, three encounters with each.
//! let score = Estimate::of_groups(&[vec![0.04, 0.06, 0.05], vec![0.03, 0.05, 0.04]]);
//! assert!((score.mean - 0.045).abs() < 1e-12);
//! assert!((normalised(score.mean, 0.02, 0.07).unwrap() - 0.5).abs() < 1e-12);
//! ```
//!
//! The modules are in the order of the data flow: records, statistics, presentation.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod embedding;
pub mod experiment_result;
mod latents;
pub mod outcomes;
mod record;
mod replay;
pub mod stats;
pub mod tsne;

mod aggregate;
mod details;

mod csv;
mod number;
pub mod table;

mod markup;
pub mod svg;

pub mod figures;
pub mod report;

pub mod claims;
pub mod markdown;
pub mod marl_eval;
pub mod page;

pub use embedding::{EmbeddedPoint, EmbeddingRecord, SilhouetteRecord};
pub use latents::{LatentRow, LatentsRecord};
pub use outcomes::{AdaptHead, DetectorHead, EncounterGroups, EpisodeRow, PeerHead};
pub use record::{
    AdaptRecord, AlarmVerdict, BlockRecord, DecisionsRecord, DetectionRecord, DisplayNamesRecord,
    EpisodeAlarmsRecord, EpisodeEnding, FORMAT_VERSION, FormatVersion, IdentificationRecord, PartRecord,
    PeerRecord, RecordError, ReferenceRecord, RegretRecord, RunRecord, ScoreMetric, SwitchRecord,
    TrainRecord, VisitsRecord,
};
pub use replay::{ReplayEpisode, ReplayKind, ReplayPeer, ReplayRecord, ReplayStep};
pub use stats::{Estimate, Interval};
