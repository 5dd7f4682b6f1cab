//! Training runs: run folders, checkpoints, resuming, evaluation and experiment plans.
//!
//! The modules before `run_config` handle bytes, text, numbers and names only; `training` and `adaptation` use the learner.
//! The crate prints nothing. It gives two guarantees. Data that was durable stays readable whenever the process, the disk or
//! the power fails. A run that was stopped and resumed leaves the same `metrics.jsonl`, byte for byte, as an uninterrupted one.
//!
//! A run that is stopped and resumed:
//!
//! ```
//! use pace_lab::{CheckpointLimits, RunFolder, RunSpec, RunStatus, cpu_model};
//!
//! # let scratch = tempfile::tempdir().expect("a scratch folder");
//! # let folder = scratch.path().join("kuhn-1");
//! let spec = RunSpec {
//!     pace_version: "0.1.0".into(), commit: None, rustc: "1.95.0".into(), cpu_model: cpu_model(), simd: "avx2".into(),
//!     seed: 1, argv: vec!["pace".into(), "train".into()], game: "kuhn-poker".into(), game_revision: 1,
//!     method: "pace".into(), preset: "paper".into(), scale: 1.0,
//! };
//! let mut run = RunFolder::create(&folder, "seed = 1\n", spec)?;
//! let (mut metrics, mut curves) = (run.metrics()?, run.tensorboard()?);
//! let store = run.checkpoints(CheckpointLimits::default())?;
//! for step in [100, 200] {
//!     metrics.append(step, &[("losses/policy_loss", 0.5)])?;
//!     curves.append(step, &[("losses/policy_loss", 0.5)])?;
//! }
//! // Rows first, then the checkpoint: a checkpoint guarantees that every row up to its step is on disk.
//! metrics.sync()?;
//! curves.sync()?;
//! store.save(200, &[("model.safetensors", b"weights"), ("state.json", b"{}")])?;
//! run.record_wall_clock()?;
//! metrics.append(300, &[("losses/policy_loss", 0.4)])?;
//! run.end(RunStatus::Stopped)?;
//! drop(run); // Releases the lock.
//!
//! let mut run = RunFolder::open(&folder)?;
//! let store = run.checkpoints(CheckpointLimits::default())?;
//! let checkpoint = store.load_newest_valid()?.expect("one was saved");
//! assert_eq!((checkpoint.step, checkpoint.file("model.safetensors")?), (200, &b"weights"[..]));
//! run.mark_resumed()?;
//! store.discard_after(checkpoint.step)?;
//! let (mut metrics, mut curves) = (run.metrics()?, run.tensorboard()?);
//! assert_eq!(metrics.truncate_after(checkpoint.step)?, 1); // The resumed run writes the row of step 300 again.
//! curves.truncate_after(checkpoint.step)?;
//! # Ok::<(), pace_lab::LabError>(())
//! ```
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod error;

mod durable;
mod manifest;
mod run_folder;

mod checkpoint;
mod metrics;
mod step_log;
mod tensorboard;

mod crash;
mod dashboard;
pub mod progress;
mod signals;

mod fallback_agent;
mod run_config;
mod trained_agent;
mod training;

mod adaptation;
mod embedding;
mod episode_rows;
pub mod folder_names;
mod peer_beliefs;
mod records;
mod replay;
mod scripted_evaluation;

pub mod experiment;
mod join;
mod keep;
mod plan;
mod reproduce;
mod speeds;

pub use adaptation::{AdaptOptions, Adaptation, adapt_run, evaluate_peer_again};
pub use checkpoint::{
    Checkpoint, CheckpointLimits, CheckpointReader, CheckpointStore, DamagedCheckpoint, SavedCheckpoint,
};
pub use crash::write_crash_bundle;
pub use dashboard::Dashboard;
pub use durable::{create_folder, prepare_folder, write_atomically};
pub use error::{Damage, LabError};
pub use experiment::{
    EXPERIMENTS, Experiment, ExperimentEvaluation, ExperimentOverrides, ExperimentRun, PaperCell,
};
pub use join::join_with_experiments;
pub use keep::{KeepOptions, KeepOutcome, Keeper, KeptRun};
pub use manifest::{Manifest, RunSpec, RunStatus, cpu_model};
pub use metrics::{MetricsLog, MetricsRecord, read_metrics};
pub use pace_learn::{RunConfig, RunRequest};
pub use peer_beliefs::{Guess, PeerBelief, PeerBeliefs};
pub use plan::{EvaluationState, Plan, PlannedRun, RunState};
pub use progress::{LabProgress, ProgressLine, SpeedMeter};
pub use records::RunRecords;
pub use replay::{ReplayOptions, write_replay};
pub use reproduce::{PlanEvent, PlanOutcome, PlanRunner, STOP_ON_STDIN_EOF};
pub use run_config::{hash_of_run, id_of_run};
pub use run_folder::{RunFolder, RunView};
pub use scripted_evaluation::ScriptedEvaluation;
pub use signals::{StopFlag, StopSignal};
pub use speeds::{Speed, Speeds};
pub use tensorboard::TensorBoardLog;
pub use trained_agent::{TrainedAgent, refuse_to_resume};
pub use training::{BuildInfo, TrainingRun};
