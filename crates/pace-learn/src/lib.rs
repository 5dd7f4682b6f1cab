//! Training and adaptation: an ego learns in encounters with a pool of peers to adapt to peers that it has not met.
//!
//! The modules are in the order of the flow: keys, networks, rollout, advantages, updates, agent, adaptation. No public signature
//! has a type of the engine.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod config;
pub mod preset;

mod network;

mod batch;
mod context;
mod nets;
mod policy_runner;
mod rollout;

mod gae;
mod learner;
mod methods;
mod minibatches;
mod ppo;

pub mod train;
pub mod update_benchmark;

mod agent;
mod policy;
mod run_keys;
mod session;

mod adapt;

pub use adapt::{
    AdaptConfig, Alarm, ClearKeeps, DETECTORS, Detector, DetectorEntry, EncounterOutcome,
    IdentificationScore, Switch, Verdict, adapt,
};
pub use agent::{Agent, AgentEncounter};
pub use config::TrainConfig;
pub use methods::{METHODS, Method, Need, find_method};
pub use policy::Policy;
pub use preset::{chosen_on, resolve};
pub use run_keys::{RunConfig, RunRequest};
pub use train::{IterationReport, MODEL_FILE, TrainError, Trainer};
pub use update_benchmark::{BatchShape, UpdateBenchmark};

/// The vector instructions that the engine uses on this processor. Results are byte-identical for equal instructions.
pub fn simd_name() -> &'static str {
    pace_nn::SimdPath::detect().name()
}
