//! Runs: what they keep on disk, how they are trained, stopped, resumed and evaluated.
//!
//! Before `run_config` the crate knows bytes, text, numbers and names; `training` and `adaptation` bring the learner in. It
//! prints nothing. Its two
//! promises: whatever was durable stays readable whenever the process, the disk or the power fails, and a run that was
//! stopped and resumed leaves the same `metrics.jsonl`, byte for byte, as one that was not.
//!
//! The life of a run, with a stop in the middle:
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
//! // Rows first, then the checkpoint: a checkpoint promises that every row up to its step is there.
//! metrics.sync()?;
//! curves.sync()?;
//! store.save(200, &[("model.safetensors", b"weights"), ("state.json", b"{}")])?;
//! run.record_wall_clock()?;
//! metrics.append(300, &[("losses/policy_loss", 0.4)])?;
//! run.end(RunStatus::Stopped)?;
//! drop(run); // The lock goes with it.
//!
//! let mut run = RunFolder::open(&folder)?;
//! let store = run.checkpoints(CheckpointLimits::default())?;
//! let checkpoint = store.load_newest_valid()?.expect("one was saved");
//! assert_eq!((checkpoint.step, checkpoint.file("model.safetensors")?), (200, &b"weights"[..]));
//! run.mark_resumed()?;
//! store.discard_after(checkpoint.step)?;
//! let (mut metrics, mut curves) = (run.metrics()?, run.tensorboard()?);
//! assert_eq!(metrics.truncate_after(checkpoint.step)?, 1); // The row of step 300 will be made again.
//! curves.truncate_after(checkpoint.step)?;
//! # Ok::<(), pace_lab::LabError>(())
//! ```
//!
//! | file | main type | what it is |
//! |---|---|---|
//! | `error.rs` | `LabError` | everything that can go wrong with a run's files |
//! | `durable.rs` | `write_atomically` | the few ways in which bytes reach the disk |
//! | `manifest.rs` | `Manifest` | what a run was, when, and how it ended |
//! | `run_folder.rs` | `RunFolder`, `RunView` | the layout of a run, and the lock of its one writer |
//! | `checkpoint.rs` | `CheckpointStore` | states of the run, whole or not there |
//! | `step_log.rs` | `StepLog` | an append-only file of rows, cut at a step on resume |
//! | `metrics.rs` | `MetricsLog` | rows of numbers as JSON lines |
//! | `tensorboard.rs` | `TensorBoardLog` | the same rows as TensorBoard events |
//! | `signals.rs` | `StopFlag` | Ctrl-C and SIGTERM as a flag |
//! | `crash.rs` | `write_crash_bundle` | what a failed run leaves to look at |
//! | `dashboard.rs` | `Dashboard` | the learning curves of a run while it trains: as text |
//! | `progress.rs` | `ProgressLine`, `LabProgress` | how far, how fast, how long: as text |
//! | `run_config.rs` | `id_of_run` | `config.toml` in a run's folder, and the id of a run that has one |
//! | `fallback_agent.rs` | `FallbackAgent` | the agent of another run that a run falls back on, and the copy it keeps |
//! | `training.rs` | `TrainingRun` | one run, from its first iteration or its newest checkpoint |
//! | `trained_agent.rs` | `TrainedAgent` | what a run has trained so far |
//! | `scripted_evaluation.rs` | `ScriptedEvaluation` | many encounters of a scripted ego |
//! | `episode_rows.rs` | – | outcomes of encounters as rows of a report |
//! | `embedding.rs` | `embed` | latents in two dimensions |
//! | `peer_beliefs.rs` | `PeerBeliefs` | what an agent takes its peers for, in words |
//! | `replay.rs` | `ReplayOptions` | one encounter, written down moment by moment |
//! | `records.rs` | `RunRecords` | what runs have left behind, read back for a report |
//! | `adaptation.rs` | `AdaptOptions`, `Adaptation` | a trained agent meets a pool, beside the scripted egos |
//! | `folder_names.rs` | – | folders that records name, after a run was moved |
//! | `experiment.rs` | `Experiment` | the runs and evaluations behind a table or figure of the paper |
//! | `join.rs` | `join_with_experiments` | runs joined with experiments, as the values of a report |
//! | `plan.rs` | `Plan` | what several experiments ask for together, and how far a lab is with it |
//! | `speeds.rs` | `Speeds` | how fast runs and evaluations go |
//! | `reproduce.rs` | `PlanRunner` | carries a plan out, in processes side by side |
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod error;

mod durable;
pub mod manifest;
pub mod run_folder;

pub mod checkpoint;
pub mod metrics;
mod step_log;
pub mod tensorboard;

pub mod crash;
pub mod dashboard;
pub mod progress;
pub mod signals;

mod fallback_agent;
pub mod run_config;
pub mod trained_agent;
pub mod training;

pub mod adaptation;
mod embedding;
mod episode_rows;
pub mod folder_names;
pub mod peer_beliefs;
pub mod records;
pub mod replay;
pub mod scripted_evaluation;

pub mod experiment;
pub mod join;
pub mod plan;
pub mod reproduce;
pub mod speeds;

pub use adaptation::{AdaptOptions, Adaptation, adapt_agent, adapt_run, train_record};
pub use checkpoint::{
    Checkpoint, CheckpointLimits, CheckpointReader, CheckpointStore, DamagedCheckpoint, SavedCheckpoint,
};
pub use crash::write_crash_bundle;
pub use dashboard::Dashboard;
pub use durable::{create_folder, prepare_folder, write_atomically};
pub use error::{Damage, LabError};
pub use experiment::{
    EXPERIMENTS, Experiment, ExperimentEvaluation, ExperimentOverrides, ExperimentRun, NumberScale, PaperCell,
};
pub use join::join_with_experiments;
pub use manifest::{Manifest, RunSpec, RunStatus, cpu_model};
pub use metrics::{MetricsLog, MetricsRecord, read_metrics};
pub use pace_learn::{RunConfig, RunRequest};
pub use peer_beliefs::{Guess, PeerBelief, PeerBeliefs};
pub use plan::{EvaluationState, Plan, PlannedRun, RunState, runs_folder};
pub use progress::{LabProgress, ProgressLine, SpeedMeter};
pub use records::{RunRecords, find_runs, write_record};
pub use replay::{ReplayOptions, write_replay};
pub use reproduce::{PlanEvent, PlanOutcome, PlanRunner, STOP_WITH_INPUT};
pub use run_config::{hash_of_run, id_of_run};
pub use run_folder::{RunFolder, RunView};
pub use scripted_evaluation::ScriptedEvaluation;
pub use signals::{StopFlag, StopSignal};
pub use speeds::{Speed, Speeds};
pub use tensorboard::TensorBoardLog;
pub use trained_agent::{TrainedAgent, refuse_lost_checkpoints};
pub use training::{BuildInfo, TrainingRun};
