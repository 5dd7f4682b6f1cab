//! The training keys and their checks. `training.toml` has their values by preset: the general defaults next to this file, and
//! those of a game in its folder (see `preset.rs`).

use pace_games::ConfigError;
use serde::{Deserialize, Serialize};

pub use crate::methods::{
    ActionLabels, Advantages, Bandit, BeliefDivergence, BeliefLoss, BeliefRows, BeliefUpdates,
    ConservativeMemory, EmbeddingEgo, GradientClipping, GscuConfig, HiddenActivation, LatentSampling,
    PolicyNetwork, ValueHead,
};

/// The schedule of a value over training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// No change.
    Constant,
    /// Linearly to zero at the last step.
    Linear,
    /// As the square of the linear schedule: a quarter is left after half of the steps.
    Quadratic,
}

impl Decay {
    /// Returns `value` after a share `progress` (0 to 1) of the step budget.
    ///
    /// ```
    /// # use pace_learn::config::Decay;
    /// let half_way = [Decay::Constant, Decay::Linear, Decay::Quadratic].map(|decay| decay.apply(8.0, 0.5));
    /// assert_eq!(half_way, [8.0, 4.0, 2.0]);
    /// // The value is 0 beyond the budget.
    /// assert_eq!(Decay::Quadratic.apply(8.0, 1.1), 0.0);
    /// ```
    pub fn apply(self, value: f64, progress: f64) -> f64 {
        match self {
            Decay::Constant => value,
            Decay::Linear => value * (1.0 - progress).max(0.0),
            Decay::Quadratic => value * (1.0 - progress).max(0.0).powi(2),
        }
    }
}

/// The unit that mini-batches are composed of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinibatchUnit {
    /// Whole encounters in random order: each context entry is encoded once per epoch.
    Encounters,
    /// Whole encounters, equally many with every training tuple.
    Balanced,
    /// Single steps in random order, as in the authors' code: every mini-batch encodes the contexts of all encounters.
    Steps,
    /// Chunks of consecutive steps, for recurrent methods. Each starts from the hidden state it had in the rollout.
    Chunks,
}

impl MinibatchUnit {
    /// The value of the key.
    pub fn name(self) -> &'static str {
        match self {
            MinibatchUnit::Encounters => "encounters",
            MinibatchUnit::Balanced => "balanced",
            MinibatchUnit::Steps => "steps",
            MinibatchUnit::Chunks => "chunks",
        }
    }
}

/// The range of returns or of a hidden state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// To the end of the encounter, across the ends of episodes.
    Encounter,
    /// To the end of the episode.
    Episode,
}

/// The advantage of the last decision of an episode that timed out, if returns end with the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutAdvantage {
    /// Computed like any other.
    Kept,
    /// Zero, because the return after the timeout is unknown.
    Zero,
}

/// The context encoder of PACE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderKind {
    /// The mean over episodes of the mean over each episode's entries.
    #[default]
    MeanPool,
    /// These means for half of the features, and the maximum over all entries for the other half. A maximum does not fade as the
    /// context grows.
    MeanMaxPool,
    /// Attention among an episode's entries, then among episodes.
    Transformer,
}

/// The player whose actions are stored in the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextAction {
    /// The ego.
    Ego,
    /// The first peer.
    Peer,
}

/// The latent of an empty context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyContext {
    /// Zero.
    Zero,
    /// The output of g for a zero vector.
    Encoded,
}

/// The treatment of the current episode in the mean over episodes while it has no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyEpisode {
    /// It is not counted.
    LeftOut,
    /// It is counted as an episode whose mean is zero.
    CountsAsZero,
}

/// The training target of the identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentifierTarget {
    /// The class of each peer: its index among the training peers.
    #[default]
    Classes,
    /// The behaviour vector of each peer ([`pace_games::PeerSpec::behaviour_vector`]), which also describes peers between the
    /// training peers.
    Traits,
}

/// The quantity that the exploration reward pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplorationMode {
    /// The identifier's current confidence.
    Instant,
    /// Its maximum confidence since the start of the encounter, per peer.
    RunningMax,
}

/// All training keys of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Ego decisions to train for.
    pub total_steps: u64,
    /// Whole encounters per training tuple in a batch; with `rollout_steps`, lanes per training tuple.
    pub encounters_per_tuple: usize,
    /// Steps of every lane in a batch. Encounters follow each other in a lane, and one that is not over continues in the next batch
    /// (D4). 0 means whole encounters.
    #[serde(default)]
    pub rollout_steps: usize,
    /// Indices of the training tuples to train with; empty for all. Classes are those of the whole pool in any case.
    #[serde(default)]
    pub train_tuples: Vec<usize>,
    /// Epochs: passes over a batch.
    pub epochs: usize,
    /// Mini-batches per epoch, with one gradient step each.
    pub minibatches: usize,
    /// The unit that mini-batches are composed of.
    pub minibatch_unit: MinibatchUnit,
    /// Number of mini-batches that each encounter is divided over, if mini-batches are composed of encounters; 1 for whole
    /// encounters. With N, a mini-batch has N times as many encounters, and context entries are encoded N times per epoch.
    #[serde(default = "default_minibatches_per_encounter")]
    pub minibatches_per_encounter: usize,
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// The schedule of the learning rate.
    pub learning_rate_decay: Decay,
    /// ε of Adam.
    pub adam_epsilon: f64,
    /// Maximum norm of the gradient.
    pub gradient_clip: f64,
    /// γ, per step.
    pub discount: f64,
    /// λ of the advantage estimate.
    pub gae_lambda: f64,
    /// The range of returns.
    #[serde(default = "default_span")]
    pub return_span: Span,
    /// The advantage of the last decision of an episode that timed out.
    #[serde(default = "default_timeout_advantage")]
    pub timeout_advantage: TimeoutAdvantage,
    /// Clip range of PPO's probability ratio.
    pub clip: f64,
    /// Clip range of the value.
    #[serde(default = "default_value_clip")]
    pub value_clip: f64,
    /// Weight of the value loss.
    pub value_weight: f64,
    /// Weight of the entropy bonus.
    pub entropy_weight: f64,
    /// The schedule of this weight.
    pub entropy_decay: Decay,
    /// The training target of the identifier.
    #[serde(default)]
    pub identifier_target: IdentifierTarget,
    /// Weight of the auxiliary loss about the peers: of the identifier, or of a prediction.
    pub auxiliary_weight: f64,
    /// c: initial weight of the exploration reward.
    pub exploration_weight: f64,
    /// M: steps after which the weight of the exploration reward is 0.
    pub exploration_decay_steps: u64,
    /// The quantity that the exploration reward pays for.
    pub exploration_mode: ExplorationMode,
    /// M_w: warm-up steps, in which only encoder and identifier are trained.
    pub warm_up_steps: u64,
    /// The player whose actions are stored in the context.
    pub context_action: ContextAction,
    /// Whether every encounter is transformed to a canonical frame of the ego, in games with symmetries
    /// ([`pace_games::Symmetries`]).
    #[serde(default)]
    pub canonical_frame: bool,
    /// The latent of an empty context.
    pub empty_context: EmptyContext,
    /// The treatment of the current episode while it has no entry.
    pub empty_episode: EmptyEpisode,
    /// The range of the hidden state of a recurrent method.
    #[serde(default = "default_span")]
    pub hidden_state_span: Span,
    /// Steps per chunk of truncated backpropagation through time, for recurrent methods.
    #[serde(default = "default_bptt_steps")]
    pub bptt_steps: usize,
    /// Whether a recurrent method sees the terminal observation, as one more step without loss.
    #[serde(default)]
    pub rnn_sees_terminal: bool,
    /// Softmax temperature of the policy in adaptation. In training it is 1.
    #[serde(default = "default_temperature")]
    pub temperature: f64,
    /// The context encoder of PACE.
    #[serde(default)]
    pub encoder: EncoderKind,
    /// Dropout rate of the transformer encoder in training passes.
    #[serde(default = "default_encoder_dropout")]
    pub encoder_dropout: f64,
    /// Whether the transformer encoder has the same dropout in rollouts, so that returns use values of the network that is
    /// trained.
    #[serde(default)]
    pub encoder_dropout_in_rollout: bool,
    /// Whether it also has dropout in adaptation and play (M17). The mask follows from the seed of the encounter.
    #[serde(default)]
    pub encoder_dropout_in_evaluation: bool,
    /// Width of f, g and the latent.
    pub encoder_width: usize,
    /// Width of the hidden layers of actor and critic, and of the hidden state.
    pub hidden_width: usize,
    /// Number of shards of a batch. The result depends on it, unlike on the number of threads.
    pub shards: usize,
    /// Updates between checkpoints.
    pub checkpoint_every: usize,
    /// The keys of GSCU; `None` for other methods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gscu: Option<GscuConfig>,
}

/// The maximum of `rollout_steps`.
const MAX_ROLLOUT_STEPS: usize = 100_000;

// Values of keys for runs that were recorded before the key existed.

fn default_minibatches_per_encounter() -> usize {
    1
}

fn default_value_clip() -> f64 {
    0.2
}

fn default_span() -> Span {
    Span::Encounter
}

fn default_timeout_advantage() -> TimeoutAdvantage {
    TimeoutAdvantage::Kept
}

fn default_bptt_steps() -> usize {
    20
}

fn default_encoder_dropout() -> f64 {
    0.5
}

fn default_temperature() -> f64 {
    1.0
}

impl TrainConfig {
    /// Sets every key without effect to a fixed value: runs that differ only in such keys are the same run.
    pub fn normalise_unused_keys(&mut self) {
        if self.return_span == Span::Encounter {
            // Returns continue across the end of an episode, also after a timeout.
            self.timeout_advantage = TimeoutAdvantage::Kept;
        }
        if self.encoder != EncoderKind::Transformer {
            // Other encoders have no dropout.
            self.encoder_dropout = default_encoder_dropout();
            (self.encoder_dropout_in_rollout, self.encoder_dropout_in_evaluation) = (false, false);
        }
        if let Some(gscu) = &mut self.gscu {
            gscu.normalise_unused_keys();
        }
    }

    /// Returns the indices of the training tuples to train with, out of `n_tuples`.
    pub fn training_tuples(&self, n_tuples: usize) -> Result<Vec<usize>, ConfigError> {
        if self.train_tuples.is_empty() {
            return Ok((0..n_tuples).collect());
        }
        for (index, tuple) in self.train_tuples.iter().enumerate() {
            if *tuple >= n_tuples || self.train_tuples[..index].contains(tuple) {
                let expected = format!("different numbers from 0 to {}, or [] for all", n_tuples - 1);
                return Err(ConfigError::bad_value("train_tuples", tuple, &expected));
            }
        }
        Ok(self.train_tuples.clone())
    }

    /// Rejects values out of range. [`TrainConfig::training_tuples`] checks the keys that depend on the pool.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.gscu.iter().try_for_each(GscuConfig::check)?;
        let count = |key: &str, value: u64, max: u64| {
            let is_good = (1..=max).contains(&value);
            let expected = format!("a number from 1 to {max}");
            if is_good { Ok(()) } else { Err(ConfigError::bad_value(key, &value, &expected)) }
        };
        count("total_steps", self.total_steps, 1_000_000_000_000)?;
        count("encounters_per_tuple", self.encounters_per_tuple as u64, 100_000)?;
        if self.rollout_steps > MAX_ROLLOUT_STEPS {
            let expected = format!("a number from 0 to {MAX_ROLLOUT_STEPS}, where 0 means whole encounters");
            return Err(ConfigError::bad_value("rollout_steps", &self.rollout_steps, &expected));
        }
        count("epochs", self.epochs as u64, 1000)?;
        count("minibatches", self.minibatches as u64, 100_000)?;
        count("minibatches_per_encounter", self.minibatches_per_encounter as u64, 100_000)?;
        count("encoder_width", self.encoder_width as u64, 4096)?;
        count("hidden_width", self.hidden_width as u64, 4096)?;
        count("bptt_steps", self.bptt_steps as u64, 100_000)?;
        count("shards", self.shards as u64, 256)?;
        count("checkpoint_every", self.checkpoint_every as u64, 1_000_000)?;
        let within = |key: &str, value: f64, low: f64, high: f64| {
            let is_good = (low..=high).contains(&value);
            let expected = format!("a number from {low} to {high}");
            if is_good { Ok(()) } else { Err(ConfigError::bad_value(key, &value, &expected)) }
        };
        within("learning_rate", self.learning_rate, 0.0, 10.0)?;
        within("adam_epsilon", self.adam_epsilon, 1e-12, 1.0)?;
        within("gradient_clip", self.gradient_clip, 1e-6, 1e9)?;
        within("discount", self.discount, 0.0, 1.0)?;
        within("gae_lambda", self.gae_lambda, 0.0, 1.0)?;
        within("temperature", self.temperature, 1e-3, 1e3)?;
        within("encoder_dropout", self.encoder_dropout, 0.0, 0.99)?;
        within("clip", self.clip, 1e-3, 10.0)?;
        within("value_clip", self.value_clip, 1e-3, 1e9)?;
        within("value_weight", self.value_weight, 0.0, 1e3)?;
        within("entropy_weight", self.entropy_weight, 0.0, 1e3)?;
        within("auxiliary_weight", self.auxiliary_weight, 0.0, 1e3)?;
        within("exploration_weight", self.exploration_weight, 0.0, 1e3)
    }
}
