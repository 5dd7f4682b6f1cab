//! Algorithm 1: rollout, credit, updates, again and again. A `Trainer` is all there is to a run between two iterations.
//!
//! Files, signals and progress are the caller's business; this module gives and takes bytes.

use std::collections::BTreeMap;

use pace_games::{AnyGame, GameError, Seed, Split};
use pace_nn::ParameterError;
use pace_nn::loss::PolicyLoss;
use pace_nn::threads::for_each_shard;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::gae::estimate_advantages;
use crate::learner::Learner;
use crate::methods::{LossWeights, PaceNet, UpdateSums};
use crate::minibatches::Minibatches;
use crate::rollout::RolloutShard;

/// What can go wrong while training.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TrainError {
    /// A key or a game that cannot be.
    #[error(transparent)]
    Game(#[from] GameError),
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
const FIRST_MOMENT_FILE: &str = "adam_first.safetensors";
const SECOND_MOMENT_FILE: &str = "adam_second.safetensors";
const STATE_FILE: &str = "state.json";

/// What a checkpoint holds beside the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedState {
    format_version: u32,
    game: String,
    game_revision: u32,
    game_keys: Value,
    pool_hash: String,
    seed: u64,
    iteration: u64,
    steps: u64,
    adam_steps: Vec<u64>,
    config: TrainConfig,
}

/// 2: the keys of the game are in it.
const FORMAT_VERSION: u32 = 2;

/// A run between two iterations.
pub struct Trainer {
    game: Box<dyn AnyGame>,
    config: TrainConfig,
    seed: u64,
    learner: Learner,
    iteration: u64,
    steps: u64,
    classes: Vec<Vec<usize>>,
    pool_hash: String,
    rollout: Vec<RolloutShard>,
}

impl Trainer {
    /// A run that has not begun.
    pub fn new(
        game: Box<dyn AnyGame>,
        config: TrainConfig,
        seed: u64,
        n_threads: usize,
    ) -> Result<Trainer, TrainError> {
        config.check()?;
        let pool = game.pool(Split::Train);
        let net = PaceNet::new(game.spec(), &pool.n_classes, &config);
        let tuples_met = config.tuples_met(pool.tuples.len())?;
        Ok(Trainer {
            rollout: RolloutShard::split(&*game, &net, &config, &tuples_met),
            learner: Learner::new(net, &config, Seed::new(seed), n_threads),
            classes: pool.tuples.into_iter().map(|tuple| tuple.classes).collect(),
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
        self.learner.parameters.len()
    }

    /// Sets the number of threads; the result does not depend on it.
    pub fn set_threads(&mut self, n_threads: usize) {
        self.learner.set_threads(n_threads);
    }

    /// One iteration: a batch of whole encounters and the updates on it.
    pub fn iterate(&mut self) -> Result<IterationReport, TrainError> {
        let batch = self.roll_out();
        self.learn(batch)
    }

    /// The second half of an iteration: credit and updates on the batch that [`Trainer::roll_out`] gave.
    pub fn learn(&mut self, mut batch: Batch) -> Result<IterationReport, TrainError> {
        let progress = self.steps as f64 / self.config.total_steps as f64;
        let fade = 1.0 - self.steps as f64 / self.config.exploration_decay_steps.max(1) as f64;
        let exploration_weight = self.config.exploration_weight * fade.max(0.0);
        estimate_advantages(
            &mut batch,
            exploration_weight as f32,
            self.config.discount as f32,
            self.config.gae_lambda as f32,
        );
        self.check_finite("the mean value", mean(&batch.values))?;
        self.check_finite("the mean advantage", mean(&batch.advantages))?;
        let is_warm_up = self.steps < self.config.warm_up_steps;
        let (sums, gradient_norm) = self.update(&batch, progress, is_warm_up);
        let per_decision = |sum: f64| sum / sums.n;
        self.check_finite("the gradient's norm", gradient_norm)?;
        self.check_finite("the policy loss", per_decision(sums.policy_loss))?;
        self.check_finite("the value loss", per_decision(sums.value_loss))?;
        self.check_finite("the identification loss", per_decision(sums.auxiliary_loss))?;
        self.check_finite("the sum of the weights", mean(&self.learner.parameters))?;
        self.iteration += 1;
        self.steps += batch.n_decisions() as u64;
        let rate = self.config.learning_rate_decay.apply(self.config.learning_rate, progress);
        let entropy_weight = self.config.entropy_decay.apply(self.config.entropy_weight, progress);
        let mut metrics = batch_metrics(&batch);
        metrics.extend([
            ("charts/learning_rate", rate),
            ("charts/encounters", batch.n_encounters() as f64),
            ("explore/coef", exploration_weight),
            ("losses/entropy_coef", entropy_weight),
            ("losses/policy_loss", per_decision(sums.policy_loss)),
            ("losses/value_loss", per_decision(sums.value_loss)),
            ("losses/entropy", per_decision(sums.entropy)),
            ("losses/approx_kl", per_decision(sums.divergence)),
            ("losses/clipfrac", per_decision(sums.clipped)),
            ("losses/gradient_norm", gradient_norm),
            ("peer/aux_loss", per_decision(sums.auxiliary_loss)),
            ("peer/top1", per_decision(sums.identified)),
            ("peer/posterior", per_decision(sums.posterior)),
        ]);
        Ok(IterationReport { iteration: self.iteration, steps: self.steps, metrics })
    }

    /// The first half of an iteration: plays the encounters of one batch.
    pub fn roll_out(&mut self) -> Batch {
        let seed = Seed::new(self.seed).child("rollout", &[self.iteration]);
        let n_episodes = self.game.spec().episodes_per_encounter;
        let Learner { net, parameters, .. } = &self.learner;
        let (config, classes) = (&self.config, &self.classes);
        for_each_shard(self.learner.n_threads(), &mut self.rollout, |_, shard| {
            shard.play(net, parameters, config, n_episodes, classes, seed);
        });
        let mut batch = Batch::default();
        for shard in &mut self.rollout {
            batch.append(&mut shard.batch);
        }
        batch
    }

    /// Changes the weights by hand.
    #[cfg(test)]
    pub(crate) fn change_parameters(&mut self, change: &dyn Fn(&PaceNet, &mut [f32])) {
        change(&self.learner.net, &mut self.learner.parameters);
    }

    /// All epochs and mini-batches; the sums of the last epoch and the mean gradient norm of all.
    fn update(&mut self, batch: &Batch, progress: f64, is_warm_up: bool) -> (UpdateSums, f64) {
        let config = self.config.clone();
        let rate = config.learning_rate_decay.apply(config.learning_rate, progress) as f32;
        let policy = PolicyLoss {
            clip: config.clip as f32,
            entropy_weight: config.entropy_decay.apply(config.entropy_weight, progress) as f32,
        };
        let mut rng = Seed::new(self.seed).child("update", &[self.iteration]).stream("order");
        let mut sums = UpdateSums::default();
        let mut total_norm = 0.0;
        let mut minibatches = Minibatches::new(&config, batch);
        for _ in 0..config.epochs {
            sums = UpdateSums::default();
            minibatches.draw(batch, &mut rng);
            for index in 0..minibatches.len() {
                let rows = minibatches.get(batch, index);
                let weights = LossWeights {
                    per_row: 1.0 / rows.n_rows as f32,
                    auxiliary: config.auxiliary_weight as f32,
                    value: config.value_weight as f32,
                    value_clip: config.value_clip as f32,
                    policy: (!is_warm_up).then_some(policy),
                };
                let classes = &self.classes;
                sums.add(&self.learner.gradient(batch, rows.encounters, rows.selection, classes, weights));
                // Encoder and identifier are the first group; the warm-up trains them alone.
                let n_groups = if is_warm_up { 1 } else { 2 };
                total_norm += f64::from(self.learner.step(n_groups, rate, config.gradient_clip as f32));
            }
        }
        (sums, total_norm / (config.epochs * minibatches.len()) as f64)
    }

    fn check_finite(&self, what: &'static str, value: f64) -> Result<(), TrainError> {
        if value.is_finite() {
            return Ok(());
        }
        Err(TrainError::NotFinite { what, value, iteration: self.iteration, steps: self.steps })
    }

    /// Everything a resumed run needs, as files. Randomness needs none: it is keyed by iteration.
    pub fn save(&self) -> Vec<NamedBytes> {
        let Learner { net, parameters, adam, .. } = &self.learner;
        let layout = net.layout();
        let state = SavedState {
            format_version: FORMAT_VERSION,
            game: self.game.spec().id.to_owned(),
            game_revision: self.game.spec().revision,
            game_keys: self.game.config(),
            pool_hash: self.pool_hash.clone(),
            seed: self.seed,
            iteration: self.iteration,
            steps: self.steps,
            adam_steps: adam.n_steps.clone(),
            config: self.config.clone(),
        };
        let state = serde_json::to_vec_pretty(&state).expect("the state is plain data");
        vec![
            (MODEL_FILE, layout.to_bytes(parameters)),
            (FIRST_MOMENT_FILE, layout.to_bytes(&adam.first)),
            (SECOND_MOMENT_FILE, layout.to_bytes(&adam.second)),
            (STATE_FILE, state),
        ]
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
        let unreadable = |error: serde_json::Error| TrainError::State { reason: error.to_string() };
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
        if same != self.config || state.game_keys != self.game.config() {
            return Err(TrainError::State {
                reason: "its keys differ from the run's config.toml".to_owned(),
            });
        }
        let layout = self.learner.net.layout();
        let parameters = layout.from_bytes(&read(MODEL_FILE)?)?;
        let first = layout.from_bytes(&read(FIRST_MOMENT_FILE)?)?;
        let second = layout.from_bytes(&read(SECOND_MOMENT_FILE)?)?;
        let adam = &mut self.learner.adam;
        if state.adam_steps.len() != adam.n_steps.len() {
            return mismatch("the number of weight groups", &state.adam_steps.len(), &adam.n_steps.len());
        }
        self.learner.parameters = parameters;
        (adam.first, adam.second, adam.n_steps) = (first, second, state.adam_steps);
        (self.iteration, self.steps) = (state.iteration, state.steps);
        Ok(())
    }

    /// The network as it is now, ready to meet peers.
    pub fn agent(&self) -> crate::agent::Agent {
        crate::agent::Agent::new(
            self.learner.net.clone(),
            self.learner.parameters.clone(),
            self.config.clone(),
        )
    }
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64
}

/// What the batch says about play.
fn batch_metrics(batch: &Batch) -> BTreeMap<&'static str, f64> {
    let n_episodes = batch.episode_lengths.len() as f64;
    let share = |flags: &[bool]| flags.iter().filter(|flag| **flag).count() as f64 / n_episodes;
    // The last tenth of the decisions of every encounter against the first: is there adaptation?
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for encounter in 0..batch.n_encounters() {
        let range = batch.decisions(encounter);
        let tenth = (range.len() / 10).max(1);
        first.extend_from_slice(&batch.task_rewards[range.start..range.start + tenth]);
        last.extend_from_slice(&batch.task_rewards[range.end - tenth..range.end]);
    }
    let steps_per_episode = batch.n_decisions() as f64 / n_episodes;
    let variance = |values: &dyn Fn(usize) -> f64| {
        let n = batch.n_decisions();
        let mean = (0..n).map(values).sum::<f64>() / n as f64;
        (0..n).map(|index| (values(index) - mean).powi(2)).sum::<f64>() / n as f64
    };
    let target_variance = variance(&|index| f64::from(batch.targets[index]));
    let error_variance = variance(&|index| f64::from(batch.targets[index]) - f64::from(batch.values[index]));
    BTreeMap::from([
        ("charts/episodic_return", mean(&batch.task_rewards) * steps_per_episode),
        ("charts/episodic_length", steps_per_episode),
        ("charts/success", share(&batch.successes)),
        ("charts/keypoint", share(&batch.keypoints_visited)),
        ("adapt/first_tenth", mean(&first) * steps_per_episode),
        ("adapt/last_tenth", mean(&last) * steps_per_episode),
        ("explore/reward", mean(&batch.exploration_rewards)),
        ("losses/explained_variance", 1.0 - error_variance / target_variance.max(1e-12)),
    ])
}
