//! The keys of GSCU and their general defaults. The keys that it shares with other methods are in `config`; `docs/methods/gscu.md`
//! has the tables.

use pace_games::ConfigError;
use serde::{Deserialize, Serialize};

use super::super::baseline;
use crate::config::{Decay, MinibatchUnit, TrainConfig};

/// The keys of the embedding, the conditional policy, and the belief and bandit in play.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GscuConfig {
    /// Ego decisions of the first stage; the second stage gets the rest of `total_steps`.
    pub embedding_steps: u64,
    /// The ego that plays in the first stage.
    pub embedding_ego: EmbeddingEgo,
    /// Encounters with each training tuple in an iteration of the first stage.
    pub embedding_encounters_per_tuple: usize,
    /// Epochs over the samples of an iteration.
    pub embedding_epochs: usize,
    /// Samples per gradient step.
    pub embedding_batch: usize,
    /// Step size of Adam.
    pub embedding_rate: f64,
    /// β: maximum weight of the KL divergence from the standard normal distribution.
    pub embedding_kl_weight: f64,
    /// Number of times that the weight rises from 0 to β in the first stage.
    pub embedding_kl_cycles: usize,
    /// Width of the hidden layers of encoder and decoder.
    pub embedding_width: usize,
    /// The actions that the decoder learns to predict.
    #[serde(default)]
    pub action_labels: ActionLabels,
    /// Size of the latent.
    pub latent_size: usize,
    /// The decisions between two samples of the latent in the second stage.
    #[serde(default)]
    pub latent_sampling: LatentSampling,
    /// The networks of actor and critic.
    #[serde(default)]
    pub network: PolicyNetwork,
    /// Observations in the input of an actor and critic with an LSTM: the current one and those before it in the episode.
    #[serde(default = "default_window")]
    pub window: usize,
    /// Activation of the hidden layers of actor and critic; with an LSTM they have ReLU.
    pub activation: HiddenActivation,
    /// The initial weights of the critic's last layer; with an LSTM all layers have PyTorch's.
    #[serde(default)]
    pub value_head: ValueHead,
    /// The advantages that the conditional policy learns from.
    pub advantages: Advantages,
    /// Whether the gradients of actor and critic are clipped together.
    pub gradient_clipping: GradientClipping,
    /// Number of peer decisions after which the belief is updated at the end of the episode. 0 updates after every episode.
    pub belief_window: usize,
    /// The time of an update whose window is full.
    #[serde(default)]
    pub belief_updates: BeliefUpdates,
    /// The distributions that make up a belief.
    #[serde(default)]
    pub belief_rows: BeliefRows,
    /// The slots of the peers that the belief is about. `[]` means all.
    pub belief_slots: Vec<usize>,
    /// K: gradient steps of an update.
    pub belief_steps: usize,
    /// Step size of an update.
    pub belief_rate: f64,
    /// Aggregation of the cross-entropies of a window.
    pub belief_loss: BeliefLoss,
    /// Aggregation of the KL divergence from the prior over distributions and dimensions.
    #[serde(default)]
    pub belief_divergence: BeliefDivergence,
    /// Minimum standard deviation of a prior.
    pub belief_std_floor: f64,
    /// Maximum absolute value of a prior's mean. 0 means no limit.
    pub belief_mean_limit: f64,
    /// The choice between the greedy and the conservative policy.
    pub bandit: Bandit,
    /// γ of EXP3: the share of its choices that is uniformly random.
    pub exp3_gamma: f64,
    /// The episode return that EXP3 scales to 0.
    pub exp3_low: f64,
    /// The episode return that EXP3 scales to 1.
    pub exp3_high: f64,
    /// The conservative policy: the name of a scripted ego without memory, or `run`.
    pub conservative: String,
    /// The folder of the run whose agent is the conservative policy, if `conservative` is `run`.
    pub conservative_run: String,
    /// The range of the conservative policy's memory, in both stages and in play.
    #[serde(default)]
    pub conservative_memory: ConservativeMemory,
}

fn default_window() -> usize {
    8
}

/// The ego that plays in the first stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddingEgo {
    /// An ego that chooses all actions with equal probability.
    Random,
    /// The conservative policy.
    Conservative,
}

/// The actions that the decoder learns to predict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionLabels {
    /// The actions that the peers took.
    #[default]
    Taken,
    /// Action 0 in every sample (M18), so that the latent holds nothing about the peers.
    Zero,
}

/// The decisions between two samples of the latent in the second stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatentSampling {
    /// One sample for each episode.
    #[default]
    PerEpisode,
    /// One sample for each decision.
    PerStep,
}

/// The networks of actor and critic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyNetwork {
    /// Two hidden layers on the observation and the latent.
    #[default]
    FeedForward,
    /// An LSTM over the last observations and own actions, then layers that also get the latent (M8).
    Lstm,
}

/// The initial weights of the critic's last layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueHead {
    /// Uniform within 1/√(inputs), as for every method.
    #[default]
    Uniform,
    /// Orthogonal with gain √2, and zero biases.
    Orthogonal,
}

/// Activation of a hidden layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HiddenActivation {
    /// max(x, 0).
    Relu,
    /// The hyperbolic tangent.
    Tanh,
}

/// The advantages that the conditional policy learns from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advantages {
    /// Unchanged advantages.
    Raw,
    /// Advantages with mean 0 and standard deviation 1 over the batch.
    Normalised,
    /// The return minus the value of the critic that is being trained.
    Current,
}

/// The norm that gradients are clipped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GradientClipping {
    /// The norm of all gradients.
    Joint,
    /// A separate norm for actor and critic, as if each had its own optimiser.
    Separate,
}

/// Aggregation of the cross-entropies of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefLoss {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

/// Aggregation of a belief's KL divergence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefDivergence {
    /// The sum.
    #[default]
    Sum,
    /// The mean over distributions and dimensions.
    Mean,
}

/// The distributions that make up a belief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefRows {
    /// One distribution for all samples of a window.
    #[default]
    Shared,
    /// One distribution for each sample of a window; the latent is the average of their means.
    PerStep,
}

/// The time of an update whose window is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefUpdates {
    /// At the end of the episode.
    #[default]
    AfterEpisode,
    /// At once, also within an episode.
    AtOnce,
}

/// The range of the conservative policy's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConservativeMemory {
    /// The encounter, with the episodes that the other policy plays.
    #[default]
    Encounter,
    /// The episode.
    Episode,
}

/// The choice of an episode's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bandit {
    /// EXP3, from the returns of earlier episodes.
    Exp3,
    /// Always the greedy policy (M9, as in the authors' evaluation code).
    Greedy,
    /// Always the conservative policy, for comparison.
    Conservative,
}

/// The value of [`GscuConfig::conservative`] for the agent of another run.
const RUN: &str = "run";

impl GscuConfig {
    /// The general defaults. A game overrides them in section `gscu` of its `training.toml`.
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
            action_labels: ActionLabels::Taken,
            latent_size: 2,
            latent_sampling: LatentSampling::PerEpisode,
            network: PolicyNetwork::FeedForward,
            window: default_window(),
            activation: HiddenActivation::Relu,
            value_head: ValueHead::Uniform,
            advantages: Advantages::Raw,
            gradient_clipping: GradientClipping::Separate,
            belief_window: 10,
            belief_updates: BeliefUpdates::AfterEpisode,
            belief_rows: BeliefRows::Shared,
            belief_slots: Vec::new(),
            belief_steps: 50,
            belief_rate: 0.005,
            belief_loss: BeliefLoss::Sum,
            belief_divergence: BeliefDivergence::Sum,
            belief_std_floor: 0.5,
            belief_mean_limit: 0.0,
            bandit: Bandit::Exp3,
            exp3_gamma: 0.3,
            exp3_low: -2.0,
            exp3_high: 2.0,
            conservative: "random".to_owned(),
            conservative_run: String::new(),
            conservative_memory: ConservativeMemory::Encounter,
        }
    }

    /// The folder of the run whose agent is the conservative policy, if the keys ask for one.
    pub(crate) fn conservative_run(&self) -> Option<&str> {
        (self.conservative == RUN).then_some(&self.conservative_run)
    }

    /// Sets every key without effect to its default.
    pub(crate) fn normalise_unused_keys(&mut self) {
        match self.network {
            PolicyNetwork::FeedForward => self.window = default_window(),
            PolicyNetwork::Lstm => {
                (self.activation, self.value_head) = (HiddenActivation::Relu, ValueHead::Uniform);
            }
        }
    }

    /// Refuses values outside their ranges.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let count = |key: &str, value: u64, min: u64, max: u64| {
            let is_good = (min..=max).contains(&value);
            let expected = format!("a number from {min} to {max}");
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
        count("gscu.window", self.window as u64, 1, 1000)?;
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
        if self.belief_updates == BeliefUpdates::AtOnce && self.belief_window == 0 {
            let expected = "1 or more with `gscu.belief_updates` \"at-once\"";
            return Err(ConfigError::bad_value("gscu.belief_window", &0, expected));
        }
        if self.exp3_high <= self.exp3_low {
            let expected = format!("more than `gscu.exp3_low`, which is {}", self.exp3_low);
            return Err(ConfigError::bad_value("gscu.exp3_high", &self.exp3_high, &expected));
        }
        Ok(())
    }
}

/// Sets the keys that GSCU has in every game. `total_steps` includes the first stage.
pub(super) fn adjust(config: &mut TrainConfig) {
    // The method has neither identifier nor context; its batches are small and consist of single episodes.
    baseline(config);
    config.auxiliary_weight = 0.0;
    config.minibatch_unit = MinibatchUnit::Steps;
    config.minibatches_per_encounter = 1;
    config.learning_rate_decay = Decay::Constant;
    config.entropy_decay = Decay::Constant;
    config.entropy_weight = 0.01;
    config.gradient_clip = 0.5;
    config.checkpoint_every = 20;
    config.gscu = Some(GscuConfig::general());
}
