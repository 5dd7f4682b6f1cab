//! GSCU's own keys and their general defaults. What it shares with other methods is in `config`; `docs/methods/gscu.md` has the
//! tables.

use pace_games::ConfigError;
use serde::{Deserialize, Serialize};

use crate::config::{Decay, MinibatchUnit, TrainConfig};

/// The keys of the three stages: embedding, conditional policy, play online.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GscuConfig {
    /// Ego decisions of the first stage; the rest of `total_steps` is the second's.
    pub embedding_steps: u64,
    /// Who sits in the ego's seat while the peers are watched.
    pub embedding_ego: EmbeddingEgo,
    /// Whole encounters with each training tuple whose samples are learned from together.
    pub embedding_encounters_per_tuple: usize,
    /// Passes over these samples.
    pub embedding_epochs: usize,
    /// Samples per gradient step.
    pub embedding_batch: usize,
    /// Step size of Adam.
    pub embedding_rate: f64,
    /// β: the most weight that the divergence from the standard normal distribution has.
    pub embedding_kl_weight: f64,
    /// How often that weight rises from 0 to β over the first stage.
    pub embedding_kl_cycles: usize,
    /// Width of the hidden layers of encoder and decoder.
    pub embedding_width: usize,
    /// Numbers in the latent.
    pub latent_size: usize,
    /// What follows the hidden layers of actor and critic.
    pub activation: HiddenActivation,
    /// What the conditional policy learns from.
    pub advantages: Advantages,
    /// Whether the gradients of actor and critic are clipped as one.
    pub gradient_clipping: GradientClipping,
    /// Decisions of the peers after which the belief is updated, at the end of the episode; 0 for every episode.
    pub belief_window: usize,
    /// The peers that the belief is about, by slot; all if empty.
    pub belief_slots: Vec<usize>,
    /// K: gradient steps of an update.
    pub belief_steps: usize,
    /// Their size.
    pub belief_rate: f64,
    /// How the cross-entropies of a window are brought together.
    pub belief_loss: BeliefLoss,
    /// The least deviation of a prior.
    pub belief_std_floor: f64,
    /// The greatest mean of a prior, in either direction; 0 for any.
    pub belief_mean_limit: f64,
    /// Who chooses between the greedy and the conservative policy.
    pub bandit: Bandit,
    /// γ of EXP3: the share of its choices that is left to chance.
    pub exp3_gamma: f64,
    /// The return of an episode that EXP3 counts as 0.
    pub exp3_low: f64,
    /// The return that it counts as 1.
    pub exp3_high: f64,
    /// The conservative policy: a scripted ego of the game that answers alike at any time, or `run`.
    pub conservative: String,
    /// The run folder of the agent that is the conservative policy, where that is `run`.
    pub conservative_run: String,
}

/// Who sits in the ego's seat while the peers are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddingEgo {
    /// An ego that takes every action with the same probability.
    Random,
    /// The conservative policy.
    Conservative,
}

/// What follows a hidden layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HiddenActivation {
    /// Negatives are cut off.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

/// What the conditional policy learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advantages {
    /// Advantages as they are.
    Raw,
    /// Advantages of mean 0 and deviation 1 over the batch.
    Normalised,
}

/// How gradients are clipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GradientClipping {
    /// By the norm of all of them.
    Joint,
    /// Actor and critic each by its own, as if each had an optimiser of its own.
    Separate,
}

/// How the cross-entropies of a window are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefLoss {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

/// Who chooses the policy of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bandit {
    /// EXP3, by the returns it has seen.
    Exp3,
    /// Nobody: it is always the greedy one (M9, as the released tester has it).
    Greedy,
    /// Nobody: it is always the conservative one. For comparison.
    Conservative,
}

/// What [`GscuConfig::conservative`] is where an agent of another run is the conservative policy.
const RUN: &str = "run";

impl GscuConfig {
    /// The general defaults; a game sets what is different there in section `gscu` of its `training.toml`.
    fn general() -> GscuConfig {
        GscuConfig {
            embedding_steps: 1_000_000,
            embedding_ego: EmbeddingEgo::Random,
            embedding_encounters_per_tuple: 10,
            embedding_epochs: 20,
            embedding_batch: 1024,
            embedding_rate: 1e-3,
            embedding_kl_weight: 0.01,
            embedding_kl_cycles: 2,
            embedding_width: 128,
            latent_size: 2,
            activation: HiddenActivation::Relu,
            advantages: Advantages::Raw,
            gradient_clipping: GradientClipping::Separate,
            belief_window: 10,
            belief_slots: Vec::new(),
            belief_steps: 50,
            belief_rate: 0.005,
            belief_loss: BeliefLoss::Sum,
            belief_std_floor: 0.5,
            belief_mean_limit: 0.0,
            bandit: Bandit::Exp3,
            exp3_gamma: 0.3,
            exp3_low: -2.0,
            exp3_high: 2.0,
            conservative: "random".to_owned(),
            conservative_run: String::new(),
        }
    }

    /// The folder of the run whose agent is the conservative policy, where it is one.
    pub(crate) fn conservative_run(&self) -> Option<&str> {
        (self.conservative == RUN).then_some(&self.conservative_run)
    }

    /// Refuses values that cannot be meant.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let count = |key: &str, value: u64, least: u64, most: u64| {
            let is_good = (least..=most).contains(&value);
            let expected = format!("a number from {least} to {most}");
            if is_good { Ok(()) } else { Err(ConfigError::bad_value(key, &value, &expected)) }
        };
        let encounters = self.embedding_encounters_per_tuple as u64;
        count("gscu.embedding_steps", self.embedding_steps, 1, 1_000_000_000_000)?;
        count("gscu.embedding_encounters_per_tuple", encounters, 1, 100_000)?;
        count("gscu.embedding_epochs", self.embedding_epochs as u64, 1, 1000)?;
        count("gscu.embedding_batch", self.embedding_batch as u64, 1, 10_000_000)?;
        count("gscu.embedding_kl_cycles", self.embedding_kl_cycles as u64, 1, 1000)?;
        count("gscu.embedding_width", self.embedding_width as u64, 1, 4096)?;
        count("gscu.latent_size", self.latent_size as u64, 1, 256)?;
        count("gscu.belief_window", self.belief_window as u64, 0, 1_000_000)?;
        count("gscu.belief_steps", self.belief_steps as u64, 0, 100_000)?;
        let within = |key: &str, value: f64, low: f64, high: f64| {
            let is_good = (low..=high).contains(&value);
            let expected = format!("a number from {low} to {high}");
            if is_good { Ok(()) } else { Err(ConfigError::bad_value(key, &value, &expected)) }
        };
        within("gscu.embedding_rate", self.embedding_rate, 0.0, 10.0)?;
        within("gscu.embedding_kl_weight", self.embedding_kl_weight, 0.0, 1e3)?;
        within("gscu.belief_rate", self.belief_rate, 0.0, 10.0)?;
        within("gscu.belief_std_floor", self.belief_std_floor, 0.0, 1e3)?;
        within("gscu.belief_mean_limit", self.belief_mean_limit, 0.0, 1e3)?;
        within("gscu.exp3_gamma", self.exp3_gamma, 0.0, 1.0)?;
        within("gscu.exp3_low", self.exp3_low, -1e9, 1e9)?;
        within("gscu.exp3_high", self.exp3_high, -1e9, 1e9)?;
        if self.exp3_high <= self.exp3_low {
            let expected = format!("more than `gscu.exp3_low`, which is {}", self.exp3_low);
            return Err(ConfigError::bad_value("gscu.exp3_high", &self.exp3_high, &expected));
        }
        Ok(())
    }
}

/// Sets the keys that every game's column GSCU shares. `total_steps` includes the first stage.
pub(super) fn adjust(config: &mut TrainConfig) {
    // A method without identifier and context; its batches are small, and made of single episodes.
    config.exploration_weight = 0.0;
    config.auxiliary_weight = 0.0;
    config.warm_up_steps = 0;
    config.minibatch_unit = MinibatchUnit::Steps;
    config.minibatches_per_encounter = 1;
    config.learning_rate_decay = Decay::Constant;
    config.entropy_decay = Decay::Constant;
    config.entropy_weight = 0.01;
    config.gradient_clip = 0.5;
    config.checkpoint_every = 20;
    config.gscu = Some(GscuConfig::general());
}
