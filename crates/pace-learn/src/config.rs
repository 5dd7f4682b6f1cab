//! The keys of training and their checks. Their values are in `training.toml`, by preset: the general defaults beside this
//! file, and what a game sets in its own folder (see `preset.rs`).

use pace_games::ConfigError;
use serde::{Deserialize, Serialize};

pub use crate::methods::{
    Advantages, Bandit, BeliefLoss, EmbeddingEgo, GradientClipping, GscuConfig, HiddenActivation,
};

/// How a number changes over training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Not at all.
    Constant,
    /// In a straight line to zero at the last step.
    Linear,
    /// By the square of that: half of the way through a quarter is left.
    Quadratic,
}

impl Decay {
    /// What is left of `value` when `progress` (0 to 1) of the budget is spent.
    ///
    /// ```
    /// # use pace_learn::config::Decay;
    /// let half_way = [Decay::Constant, Decay::Linear, Decay::Quadratic].map(|decay| decay.apply(8.0, 0.5));
    /// assert_eq!(half_way, [8.0, 4.0, 2.0]);
    /// // Whoever goes on past the budget is left with nothing.
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

/// What a mini-batch is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MinibatchUnit {
    /// Whole encounters in random order: each context entry is encoded once per pass.
    Encounters,
    /// Whole encounters, as many with one training tuple as with any other.
    Balanced,
    /// Single steps in random order, as in the authors' code: every mini-batch encodes every encounter.
    Steps,
    /// Chunks of consecutive steps, each begun from the hidden state it had in the rollout; for recurrent methods.
    Chunks,
}

impl MinibatchUnit {
    /// The name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            MinibatchUnit::Encounters => "encounters",
            MinibatchUnit::Balanced => "balanced",
            MinibatchUnit::Steps => "steps",
            MinibatchUnit::Chunks => "chunks",
        }
    }
}

/// How far something reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// Across the ends of episodes, up to the end of the encounter.
    Encounter,
    /// Up to the end of the episode.
    Episode,
}

/// What becomes of the last decision of an episode that ran out of time, where returns end with the episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutAdvantage {
    /// It is credited like any other.
    Kept,
    /// Its advantage is 0: what would have come is unknown, not nothing.
    Zero,
}

/// How PACE pools the entries of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderKind {
    /// A mean over episodes of the mean over each episode's entries.
    #[default]
    MeanPool,
    /// The same for half of the features; of the others the highest value that any entry had. What was seen once is not
    /// thinned out by what comes after.
    MeanMaxPool,
    /// Attention among an episode's entries, then among episodes.
    Transformer,
}

/// Whose action is stored in the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContextAction {
    /// The ego's own.
    Ego,
    /// The first peer's.
    Peer,
}

/// The latent when nothing was seen yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyContext {
    /// Zero.
    Zero,
    /// What g makes of a zero vector.
    Encoded,
}

/// What the current episode counts for in the outer mean while it has no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmptyEpisode {
    /// Nothing.
    LeftOut,
    /// One more episode whose mean is zero.
    CountsAsZero,
}

/// What the identifier learns of the peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentifierTarget {
    /// Which of the training peers they are.
    #[default]
    Classes,
    /// How they behave, in the numbers the game has for that: a guess between training peers is not a mistake.
    Traits,
}

/// What the exploration reward pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplorationMode {
    /// The identifier's confidence now.
    Instant,
    /// Its highest confidence since the encounter began, peer by peer.
    RunningMax,
}

/// All keys of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Ego decisions to train for.
    pub total_steps: u64,
    /// Whole encounters with each training tuple in a batch.
    pub encounters_per_tuple: usize,
    /// The numbers of the training tuples that are met; all if empty. Classes stay those of the whole pool.
    #[serde(default)]
    pub train_tuples: Vec<usize>,
    /// Passes over a batch.
    pub epochs: usize,
    /// Gradient steps per pass.
    pub minibatches: usize,
    /// What a mini-batch is made of.
    pub minibatch_unit: MinibatchUnit,
    /// Into how many mini-batches an encounter is divided, where they are made of encounters: each then has so many times
    /// as many encounters, and every entry of their contexts is encoded as often. 1 keeps encounters whole.
    #[serde(default = "one")]
    pub minibatches_per_encounter: usize,
    /// Step size of Adam.
    pub learning_rate: f64,
    /// How it changes.
    pub learning_rate_decay: Decay,
    /// Keeps Adam's division finite.
    pub adam_epsilon: f64,
    /// The gradient's norm is clipped to this.
    pub gradient_clip: f64,
    /// γ, step by step as far as returns reach.
    pub discount: f64,
    /// λ of the advantage estimate.
    pub gae_lambda: f64,
    /// How far returns reach.
    #[serde(default = "whole_encounter")]
    pub return_span: Span,
    /// What becomes of a last decision that ran out of time.
    #[serde(default = "kept")]
    pub timeout_advantage: TimeoutAdvantage,
    /// How far PPO lets the probability ratio move.
    pub clip: f64,
    /// How far it lets the value move.
    #[serde(default = "default_value_clip")]
    pub value_clip: f64,
    /// Weight of the value loss.
    pub value_weight: f64,
    /// Weight of the entropy bonus.
    pub entropy_weight: f64,
    /// How it changes.
    pub entropy_decay: Decay,
    /// What the identifier learns.
    #[serde(default)]
    pub identifier_target: IdentifierTarget,
    /// Weight of what a method learns about its peers beside the policy: the identifier's loss, or a prediction's.
    pub auxiliary_weight: f64,
    /// c: weight of the exploration reward at the start.
    pub exploration_weight: f64,
    /// M: steps after which the exploration reward has faded.
    pub exploration_decay_steps: u64,
    /// What it pays for.
    pub exploration_mode: ExplorationMode,
    /// M_w: steps in which encoder and identifier alone are trained.
    pub warm_up_steps: u64,
    /// Whose action is stored in the context.
    pub context_action: ContextAction,
    /// Whether the ego looks at every encounter from its own side, in games that have several ([`pace_games::Symmetries`]).
    #[serde(default)]
    pub canonical_frame: bool,
    /// The latent of an empty context.
    pub empty_context: EmptyContext,
    /// What the current episode counts for while it is empty.
    pub empty_episode: EmptyEpisode,
    /// How far the hidden state of a recurrent method reaches.
    #[serde(default = "whole_encounter")]
    pub hidden_state_span: Span,
    /// Steps of a chunk, through which a recurrent method's gradient flows.
    #[serde(default = "default_chunk_steps")]
    pub bptt_steps: usize,
    /// Whether a recurrent method is shown the terminal observation, as one more step without loss.
    #[serde(default)]
    pub rnn_sees_terminal: bool,
    /// What the logits of the agent's actions are divided by when it adapts; in training it draws as the network says.
    #[serde(default = "default_temperature")]
    pub temperature: f64,
    /// How PACE pools the entries of a context.
    #[serde(default)]
    pub encoder: EncoderKind,
    /// What a transformer drops where gradients are taken.
    #[serde(default = "half")]
    pub encoder_dropout: f64,
    /// Whether it drops as much in the encounters it plays for training: then the values that returns are built on come from
    /// the network that is trained. An agent that adapts drops nothing.
    #[serde(default)]
    pub encoder_dropout_in_rollout: bool,
    /// Width of f, g and the latent.
    pub encoder_width: usize,
    /// Width of the hidden layers of actor and critic, and of the hidden state.
    pub hidden_width: usize,
    /// Shards a batch is cut into. InputPart of the result, unlike the number of threads.
    pub shards: usize,
    /// Updates between checkpoints.
    pub checkpoint_every: usize,
    /// The keys of GSCU; other methods have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gscu: Option<GscuConfig>,
}

// What keys were before they could be chosen, for runs written down then.

fn one() -> usize {
    1
}

fn default_value_clip() -> f64 {
    0.2
}

fn whole_encounter() -> Span {
    Span::Encounter
}

fn kept() -> TimeoutAdvantage {
    TimeoutAdvantage::Kept
}

fn default_chunk_steps() -> usize {
    20
}

fn half() -> f64 {
    0.5
}

fn default_temperature() -> f64 {
    1.0
}

impl TrainConfig {
    /// Sets keys that have no effect next to the others to one value: runs that differ in these alone are the same run.
    pub fn normalise_unused_keys(&mut self) {
        if self.return_span == Span::Encounter {
            // Credit goes on over the end of an episode, however it ended.
            self.timeout_advantage = TimeoutAdvantage::Kept;
        }
        if self.encoder != EncoderKind::Transformer {
            // Nothing is dropped.
            (self.encoder_dropout, self.encoder_dropout_in_rollout) = (half(), false);
        }
    }

    /// The indices of the training tuples that are used, out of `n_tuples`.
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

    /// Refuses values that cannot be meant. What depends on the pool is in [`TrainConfig::training_tuples`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.gscu.iter().try_for_each(GscuConfig::check)?;
        let count = |key: &str, value: u64, most: u64| {
            let is_good = (1..=most).contains(&value);
            let expected = format!("a number from 1 to {most}");
            if is_good { Ok(()) } else { Err(ConfigError::bad_value(key, &value, &expected)) }
        };
        count("total_steps", self.total_steps, 1_000_000_000_000)?;
        count("encounters_per_tuple", self.encounters_per_tuple as u64, 100_000)?;
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
