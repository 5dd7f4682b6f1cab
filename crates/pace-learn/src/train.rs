//! A `Trainer`: the state of a run between two iterations, for any method. An iteration itself is in `ppo`.
//!
//! The caller handles files, signals and progress; this module reads and writes bytes.

use std::collections::BTreeMap;

use pace_games::config::plain_reason;
use pace_games::old_names::{read_with_old_names, with_current_names};
use pace_games::{AnyGame, ConfigError, Split};
use pace_nn::{Layout, ParameterError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::config::TrainConfig;
use crate::methods::{Method, MethodInputs};
use crate::policy::Policy;
use crate::preset::keys_of_game;

/// An error of training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// An invalid key or game.
    #[error(transparent)]
    Game(#[from] ConfigError),
    /// Saved weights of another network, or damaged ones.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Saved state that cannot be read or belongs to another run.
    #[error("saved state: {reason}")]
    State {
        /// The reason.
        reason: String,
    },
    /// A number that is not finite.
    #[error(
        "{what} is {value} in iteration {iteration} after {steps} steps: training diverged; try a smaller learning rate"
    )]
    NotFinite {
        /// The name of the number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The iteration.
        iteration: u64,
        /// Steps before it.
        steps: u64,
    },
}

/// One row of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationReport {
    /// Number of finished iterations, including this one.
    pub iteration: u64,
    /// Number of ego decisions so far.
    pub steps: u64,
    /// The metrics by name.
    pub metrics: BTreeMap<&'static str, f64>,
}

/// A file of a checkpoint: its name and its bytes.
pub type NamedBytes = (&'static str, Vec<u8>);

/// The weights, in a checkpoint.
pub const MODEL_FILE: &str = "model.safetensors";
const STATE_FILE: &str = "state.json";

/// The contents of a checkpoint beside weights and moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedState {
    format_version: u32,
    game: String,
    game_revision: u32,
    game_keys: Map<String, Value>,
    pool_hash: String,
    seed: u64,
    iteration: u64,
    steps: u64,
    adam_steps: Vec<u64>,
    #[serde(deserialize_with = "read_with_old_names")]
    config: TrainConfig,
}

/// Version 2 added the keys of the game.
const FORMAT_VERSION: u32 = 2;

/// A type-erased training algorithm with its weights: everything of a [`Trainer`] that depends on the method.
pub(crate) trait TrainingAlgorithm: Send {
    /// Number of weights in the network.
    fn n_parameters(&self) -> usize;
    /// Sets the number of threads; the result does not depend on it.
    fn set_threads(&mut self, n_threads: usize);
    /// Plays the encounters of an iteration and discards them; returns the number of ego decisions.
    fn roll_out(&mut self, at: &IterationContext<'_>) -> Result<usize, TrainError>;
    /// Runs one iteration; calls `rolled_out` between rollout and updates.
    fn iterate(
        &mut self,
        at: &IterationContext<'_>,
        rolled_out: &mut dyn FnMut(),
    ) -> Result<IterationResult, TrainError>;
    /// The files of a checkpoint, the weights first, and the number of steps of every weight group.
    fn save(&self) -> (Vec<NamedBytes>, Vec<u64>);
    /// Restores the state that `save` returned. An error leaves the state unchanged.
    fn restore(
        &mut self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, TrainError>,
        adam_steps: Vec<u64>,
    ) -> Result<(), TrainError>;
    /// The agent with the current weights.
    fn agent(&self) -> Agent;
}

/// The files of weights and of Adam's two moments, in this order.
const WEIGHT_FILES: [&str; 3] = [MODEL_FILE, "adam_first.safetensors", "adam_second.safetensors"];

/// The files of weights, first moments and second moments.
pub(crate) fn weight_files(layout: &Layout, buffers: [&[f32]; 3]) -> Vec<NamedBytes> {
    WEIGHT_FILES.into_iter().zip(buffers).map(|(name, buffer)| (name, layout.to_bytes(buffer))).collect()
}

/// Reads weights, first moments and second moments. Checks that there is a number of steps for each of `n_groups` weight groups.
pub(crate) fn read_weights(
    layout: &Layout,
    read: &dyn Fn(&str) -> Result<Vec<u8>, TrainError>,
    adam_steps: &[u64],
    n_groups: usize,
) -> Result<[Vec<f32>; 3], TrainError> {
    let [model, first, second] = WEIGHT_FILES;
    let buffer = |name: &str| Ok::<_, TrainError>(layout.from_bytes(&read(name)?)?);
    let buffers = [buffer(model)?, buffer(first)?, buffer(second)?];
    if adam_steps.len() != n_groups {
        let found = adam_steps.len();
        let reason = format!("the number of weight groups is {found}, this run has {n_groups}");
        return Err(TrainError::State { reason });
    }
    Ok(buffers)
}

/// The inputs of an iteration beside the weights.
#[derive(Clone, Copy)]
pub(crate) struct IterationContext<'a> {
    pub(crate) game: &'a dyn AnyGame,
    pub(crate) config: &'a TrainConfig,
    pub(crate) seed: u64,
    /// Number of finished iterations.
    pub(crate) iteration: u64,
    /// Number of ego decisions so far.
    pub(crate) steps: u64,
}

impl IterationContext<'_> {
    pub(crate) fn check_finite(&self, what: &'static str, value: f64) -> Result<(), TrainError> {
        if value.is_finite() {
            return Ok(());
        }
        Err(TrainError::NotFinite { what, value, iteration: self.iteration, steps: self.steps })
    }

    /// Reports an agent whose output is not a distribution as a run that diverged.
    pub(crate) fn check_output(&self, failure: Option<&ConfigError>) -> Result<(), TrainError> {
        match failure {
            None => Ok(()),
            Some(ConfigError::NotADistribution { .. }) => {
                self.check_finite("the probability of an action", f64::NAN)
            }
            Some(other) => Err(other.clone().into()),
        }
    }
}

/// The steps and metrics of one iteration.
pub(crate) struct IterationResult {
    /// Number of ego decisions.
    pub(crate) n_steps: u64,
    pub(crate) metrics: BTreeMap<&'static str, f64>,
}

/// A run between two iterations.
pub struct Trainer {
    game: Box<dyn AnyGame>,
    config: TrainConfig,
    seed: u64,
    iteration: u64,
    steps: u64,
    pool_hash: String,
    training: Box<dyn TrainingAlgorithm>,
}

impl Trainer {
    /// A run before its first iteration.
    pub fn new(
        method: &Method,
        game: Box<dyn AnyGame>,
        config: TrainConfig,
        seed: u64,
        n_threads: usize,
    ) -> Result<Trainer, TrainError> {
        Trainer::with_needed(method, game, config, None, seed, n_threads)
    }

    /// Like [`Trainer::new`], but with the policy of the run that the method needs under these keys ([`Method::need`]).
    pub fn with_needed(
        method: &Method,
        game: Box<dyn AnyGame>,
        config: TrainConfig,
        needed: Option<&Policy>,
        seed: u64,
        n_threads: usize,
    ) -> Result<Trainer, TrainError> {
        config.check()?;
        let pool = game.pool(Split::Train);
        let inputs = MethodInputs { game: &*game, pool: &pool, config: &config, needed };
        Ok(Trainer {
            training: method.begin(&inputs, seed, n_threads)?,
            pool_hash: pool.content_hash,
            iteration: 0,
            steps: 0,
            seed,
            config,
            game,
        })
    }

    /// Whether the budget is used up: another batch of the mean size would exceed it.
    pub fn is_finished(&self) -> bool {
        self.iteration > 0 && self.steps + self.steps / self.iteration > self.config.total_steps
    }

    /// Number of ego decisions so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of finished iterations.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The keys of the run.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The game of the run.
    pub fn game(&self) -> &dyn AnyGame {
        &*self.game
    }

    /// Number of weights in the network.
    pub fn n_parameters(&self) -> usize {
        self.training.n_parameters()
    }

    /// Sets the number of threads; the result does not depend on it.
    pub fn set_threads(&mut self, n_threads: usize) {
        self.training.set_threads(n_threads);
    }

    /// Runs one iteration: a batch of encounters, and the updates on it.
    pub fn iterate(&mut self) -> Result<IterationReport, TrainError> {
        self.iterate_with(|| {})
    }

    /// Like [`Trainer::iterate`], but calls `rolled_out` between rollout and updates, so that the caller can time both.
    pub fn iterate_with(&mut self, mut rolled_out: impl FnMut()) -> Result<IterationReport, TrainError> {
        let (at, training) = self.split();
        let IterationResult { n_steps, metrics } = training.iterate(&at, &mut rolled_out)?;
        self.iteration += 1;
        self.steps += n_steps;
        Ok(IterationReport { iteration: self.iteration, steps: self.steps, metrics })
    }

    /// Plays the encounters of the next iteration and discards them, so that the caller can time it; returns the number of ego
    /// decisions.
    pub fn roll_out(&mut self) -> Result<usize, TrainError> {
        let (at, training) = self.split();
        training.roll_out(&at)
    }

    fn split(&mut self) -> (IterationContext<'_>, &mut dyn TrainingAlgorithm) {
        let Trainer { game, config, seed, iteration, steps, .. } = self;
        let at =
            IterationContext { game: &**game, config, seed: *seed, iteration: *iteration, steps: *steps };
        (at, &mut *self.training)
    }

    /// The files of a checkpoint. Random streams are not part of it, because they are derived from the seed and the iteration.
    pub fn save(&self) -> Vec<NamedBytes> {
        let (mut files, adam_steps) = self.training.save();
        let state = SavedState {
            format_version: FORMAT_VERSION,
            game: self.game.spec().id.to_owned(),
            game_revision: self.game.spec().revision,
            game_keys: keys_of_game(&*self.game),
            pool_hash: self.pool_hash.clone(),
            seed: self.seed,
            iteration: self.iteration,
            steps: self.steps,
            adam_steps,
            config: self.config.clone(),
        };
        files.push((STATE_FILE, serde_json::to_vec_pretty(&state).expect("the state is plain data")));
        files
    }

    /// Restores the state that [`Trainer::save`] returned. The game, its pool, the keys and the seed must be equal.
    pub fn restore(&mut self, file: impl Fn(&str) -> Option<Vec<u8>>) -> Result<(), TrainError> {
        let read = |name: &str| {
            file(name).ok_or_else(|| TrainError::State { reason: format!("the file {name} is missing") })
        };
        let mismatch = |what: &str, found: &dyn std::fmt::Display, expected: &dyn std::fmt::Display| {
            Err(TrainError::State { reason: format!("{what} is {found}, this run has {expected}") })
        };
        let spec = self.game.spec();
        let unreadable =
            |error: serde_json::Error| TrainError::State { reason: plain_reason(&error.to_string()) };
        let state: Value = serde_json::from_slice(&read(STATE_FILE)?).map_err(unreadable)?;
        // The version is checked first, because another format may lack or rename any other field.
        let version = &state["format_version"];
        if *version != FORMAT_VERSION {
            return mismatch("the format version", version, &FORMAT_VERSION);
        }
        let state: SavedState = serde_json::from_value(state).map_err(unreadable)?;
        if state.game != spec.id || state.game_revision != spec.revision {
            let found = format!("{} revision {}", state.game, state.game_revision);
            return mismatch("the game", &found, &format!("{} revision {}", spec.id, spec.revision));
        }
        if state.pool_hash != self.pool_hash {
            return mismatch("the peer pool", &state.pool_hash, &self.pool_hash);
        }
        if state.seed != self.seed {
            return mismatch("the seed", &state.seed, &self.seed);
        }
        // A resumed run may have another budget and other checkpoints; any other change would make it another run.
        let mut same = state.config.clone();
        same.total_steps = self.config.total_steps;
        same.checkpoint_every = self.config.checkpoint_every;
        let game_keys = keys_of_game(&*self.game);
        if same != self.config || with_current_names(&state.game_keys, Some(&game_keys))? != game_keys {
            return Err(TrainError::State {
                reason: "its keys differ from the run's config.toml".to_owned(),
            });
        }
        self.training.restore(&read, state.adam_steps)?;
        (self.iteration, self.steps) = (state.iteration, state.steps);
        Ok(())
    }

    /// The agent with the current weights.
    pub fn agent(&self) -> Agent {
        self.training.agent().with_temperature(self.config.temperature)
    }
}
