//! A `Trainer` is all there is to a run between two iterations, whatever its method; an iteration itself is in `ppo`.
//!
//! Files, signals and progress are the caller's business; this module gives and takes bytes.

use std::collections::BTreeMap;

use pace_games::config::plain_reason;
use pace_games::old_names::{read_with_old_names, with_current_names};
use pace_games::{AnyGame, ConfigError, Split};
use pace_nn::ParameterError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::config::TrainConfig;
use crate::methods::{Method, MethodInputs};
use crate::policy::Policy;
use crate::preset::keys_of_game;

/// What can go wrong while training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// A key or a game that cannot be.
    #[error(transparent)]
    Game(#[from] ConfigError),
    /// Saved weights that do not fit.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Saved state that cannot be read or belongs to another run.
    #[error("saved state: {reason}")]
    State {
        /// Why.
        reason: String,
    },
    /// A number stopped being finite.
    #[error(
        "{what} is {value} in iteration {iteration} after {steps} steps: training diverged; try a smaller learning rate"
    )]
    NotFinite {
        /// Which number.
        what: &'static str,
        /// Its value.
        value: f64,
        /// The iteration.
        iteration: u64,
        /// Steps done before it.
        steps: u64,
    },
}

/// One row of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationReport {
    /// Iterations done, this one included.
    pub iteration: u64,
    /// Ego decisions done.
    pub steps: u64,
    /// Named numbers; the names are those of the run's metrics.
    pub metrics: BTreeMap<&'static str, f64>,
}

/// A file of a checkpoint: its name and its bytes.
pub type NamedBytes = (&'static str, Vec<u8>);

/// The weights, in a checkpoint.
pub const MODEL_FILE: &str = "model.safetensors";
const STATE_FILE: &str = "state.json";

/// What a checkpoint holds beside the numbers.
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

/// 2: the keys of the game are in it.
const FORMAT_VERSION: u32 = 2;

/// A way to train, its type known to nobody but itself: what is between the weights and a [`Trainer`].
pub(crate) trait Training: Send {
    /// Weights in the network.
    fn n_parameters(&self) -> usize;
    /// Sets the number of threads; the result does not depend on it.
    fn set_threads(&mut self, n_threads: usize);
    /// Plays what an iteration would learn from, and forgets it; returns the ego decisions.
    fn roll_out(&mut self, at: &IterationContext<'_>) -> Result<usize, TrainError>;
    /// One iteration; `rolled_out` is called when everything is played and nothing learned.
    fn iterate(
        &mut self,
        at: &IterationContext<'_>,
        rolled_out: &mut dyn FnMut(),
    ) -> Result<IterationResult, TrainError>;
    /// Files, the weights first, and the steps of every optimiser's groups.
    fn save(&self) -> (Vec<NamedBytes>, Vec<u64>);
    /// Takes back what `save` gave, or stays as it is.
    fn restore(
        &mut self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, TrainError>,
        adam_steps: Vec<u64>,
    ) -> Result<(), TrainError>;
    /// The network as it is now.
    fn agent(&self) -> Agent;
}

/// Where a run stands: all that an iteration depends on, beside the weights.
#[derive(Clone, Copy)]
pub(crate) struct IterationContext<'a> {
    pub(crate) game: &'a dyn AnyGame,
    pub(crate) config: &'a TrainConfig,
    pub(crate) seed: u64,
    /// Iterations done.
    pub(crate) iteration: u64,
    /// Ego decisions done.
    pub(crate) steps: u64,
}

impl IterationContext<'_> {
    pub(crate) fn check_finite(&self, what: &'static str, value: f64) -> Result<(), TrainError> {
        if value.is_finite() {
            return Ok(());
        }
        Err(TrainError::NotFinite { what, value, iteration: self.iteration, steps: self.steps })
    }

    /// An agent whose output cannot be sampled is a run that diverged.
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

/// What one iteration did.
pub(crate) struct IterationResult {
    /// Ego decisions.
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
    training: Box<dyn Training>,
}

impl Trainer {
    /// A run that has not begun.
    pub fn new(
        method: &Method,
        game: Box<dyn AnyGame>,
        config: TrainConfig,
        seed: u64,
        n_threads: usize,
    ) -> Result<Trainer, TrainError> {
        Trainer::with_needed(method, game, config, None, seed, n_threads)
    }

    /// The same with the policy of the run that the method needs under these keys ([`Method::need`]).
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

    /// Whether the budget is spent: another batch of the usual size would exceed it.
    pub fn is_finished(&self) -> bool {
        self.iteration > 0 && self.steps + self.steps / self.iteration > self.config.total_steps
    }

    /// Ego decisions done.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Iterations done.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The keys of the run.
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The game that is played.
    pub fn game(&self) -> &dyn AnyGame {
        &*self.game
    }

    /// Weights in the network.
    pub fn n_parameters(&self) -> usize {
        self.training.n_parameters()
    }

    /// Sets the number of threads; the result does not depend on it.
    pub fn set_threads(&mut self, n_threads: usize) {
        self.training.set_threads(n_threads);
    }

    /// One iteration: a batch of whole encounters and the updates on it.
    pub fn iterate(&mut self) -> Result<IterationReport, TrainError> {
        self.iterate_with(|| {})
    }

    /// One iteration; `rolled_out` is called between its two halves, for a caller with a clock.
    pub fn iterate_with(&mut self, mut rolled_out: impl FnMut()) -> Result<IterationReport, TrainError> {
        let (at, training) = self.split();
        let IterationResult { n_steps, metrics } = training.iterate(&at, &mut rolled_out)?;
        self.iteration += 1;
        self.steps += n_steps;
        Ok(IterationReport { iteration: self.iteration, steps: self.steps, metrics })
    }

    /// Plays the encounters of the next iteration and forgets them, for a caller with a clock; returns the ego decisions.
    pub fn roll_out(&mut self) -> Result<usize, TrainError> {
        let (at, training) = self.split();
        training.roll_out(&at)
    }

    fn split(&mut self) -> (IterationContext<'_>, &mut dyn Training) {
        let Trainer { game, config, seed, iteration, steps, .. } = self;
        let at =
            IterationContext { game: &**game, config, seed: *seed, iteration: *iteration, steps: *steps };
        (at, &mut *self.training)
    }

    /// Everything a resumed run needs, as files. Randomness needs none: it is keyed by iteration.
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

    /// Goes on from what [`Trainer::save`] gave. The game, its pool, the keys and the seed must be the same.
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
        // The version first: another format may lack or rename anything else.
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
        // A longer budget is a fair wish for a resumed run; everything else would make it another run.
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

    /// The network as it is now, ready to meet peers.
    pub fn agent(&self) -> Agent {
        self.training.agent().with_temperature(self.config.temperature)
    }
}
