//! The conditional policy: actor and critic on [observation ⊕ latent], and the pass that trains them. `window` has a network with
//! a memory instead.
//!
//! In training the latent is sampled from the distribution that the encoder has for the true tuple. In play the belief in `online`
//! replaces it.

use std::sync::Arc;

use pace_games::{ConfigError, GameSpec, PeerObservationMode, PoolListing, Seed};
use pace_nn::{Activation, Layout};

use super::embedding::Embedding;
use super::keys::{
    Advantages, BeliefRows, GradientClipping, GscuConfig, HiddenActivation, PolicyNetwork, ValueHead,
};
use super::window::{WindowActorCritic, WindowBuffers};
use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::learner::ShardUpdate;
use crate::nets::{ActorCritic, ActorCriticBuffers, ensure_len, latent_parts};
use crate::network::{Network, NetworkDims, NetworkSpec};
use crate::policy::Policy;

/// Number of decisions in a chunk.
const CHUNK_ROWS: usize = 256;

/// Actor and critic, and the embedding, whose weights come after theirs and are not trained by PPO.
#[derive(Clone, Debug)]
pub(crate) struct GscuNet {
    pub(super) policy: ConditionalPolicy,
    pub(super) embedding: Embedding,
    pub(super) keys: GscuConfig,
    /// Distributions of a belief.
    pub(super) n_belief_rows: usize,
    pub(super) spec: Arc<NetworkSpec>,
    pub(super) weights: Arc<Vec<f32>>,
    /// The distributions of all training tuples; empty outside training.
    pub(super) tuples: Arc<Vec<f32>>,
    /// The policy that the bandit can fall back on; `None` if the keys always choose the greedy policy.
    pub(super) conservative: Option<Policy>,
}

/// Actor and critic of either kind.
#[derive(Clone, Debug)]
pub(super) enum ConditionalPolicy {
    FeedForward(ActorCritic),
    Window(Box<WindowActorCritic>),
}

impl GscuNet {
    /// The index of the first weight of the embedding.
    pub(super) fn embedding_start(&self) -> usize {
        self.spec.group_ends[1]
    }
}

impl Network for GscuNet {
    type Buffers = ConditionalBuffers;

    fn new(game: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> GscuNet {
        let keys = super::keys_of(config).clone();
        let sizes = NetworkDims::of(game);
        let mut layout = Layout::default();
        let (width, latent_size) = (config.hidden_width, keys.latent_size);
        let has_current_advantages = keys.advantages == Advantages::Current;
        let policy = match keys.network {
            PolicyNetwork::FeedForward => {
                let activation = match keys.activation {
                    HiddenActivation::Relu => Activation::Relu,
                    HiddenActivation::Tanh => Activation::Tanh,
                };
                let inputs = [sizes.observation, latent_size];
                let mut network = ActorCritic::new(&mut layout, inputs, width, sizes.n_actions, activation);
                network.has_current_advantages = has_current_advantages;
                ConditionalPolicy::FeedForward(network)
            }
            PolicyNetwork::Lstm => ConditionalPolicy::Window(Box::new(WindowActorCritic::new(
                &mut layout,
                sizes,
                width,
                latent_size,
                keys.window,
                has_current_advantages,
            ))),
        };
        let critic = layout.tensors().iter().find(|tensor| tensor.name.starts_with("critic."));
        let group_ends = vec![critic.expect("there is a critic").id.range().start, layout.len()];
        // A benchmark has no tuples.
        let embedding = Embedding::new(sizes, pool.tuples.len().max(1), &keys);
        for tensor in embedding.layout().tensors() {
            layout.reserve(&tensor.name, &tensor.shape);
        }
        GscuNet {
            embedding,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                group_ends,
                policy_head: match &policy {
                    ConditionalPolicy::FeedForward(network) => network.policy_head(),
                    ConditionalPolicy::Window(network) => network.policy_head(),
                },
                clips_groups_separately: keys.gradient_clipping == GradientClipping::Separate,
                adaptation_sight: PeerObservationMode::Recorded,
                // A policy that forgets episodes can be trained on single ones, and many short lanes are faster than few long ones.
                training_episodes: 1,
                ..NetworkSpec::new(game, layout, keys.latent_size)
            }),
            policy,
            n_belief_rows: match (keys.belief_rows, keys.belief_window) {
                (BeliefRows::Shared, _) => 1,
                (BeliefRows::PerStep, 0) => {
                    let n_slots = keys.belief_slots.len();
                    game.horizon_steps * if n_slots == 0 { sizes.n_peers } else { n_slots }
                }
                (BeliefRows::PerStep, window) => window,
            },
            keys,
            tuples: Arc::new(Vec::new()),
            conservative: None,
        }
    }

    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), ConfigError> {
        super::check(config, pool)
    }

    fn initialise(&mut self, seed: Seed) {
        let start = self.embedding_start();
        let weights = Arc::make_mut(&mut self.weights);
        let rng = &mut seed.stream("actor-critic");
        match &self.policy {
            ConditionalPolicy::FeedForward(network) => {
                network.initialise(weights, rng);
                if self.keys.value_head == ValueHead::Orthogonal {
                    network.initialise_value_head(weights, rng);
                }
            }
            ConditionalPolicy::Window(network) => network.initialise(weights, rng),
        }
        weights[start..].copy_from_slice(&self.embedding.initialise(seed));
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut Vec<f32> {
        Arc::make_mut(&mut self.weights)
    }

    fn adjust_advantages(&self, batch: &mut Batch) {
        // With current advantages, these are the ones of the first gradient step.
        if self.keys.advantages != Advantages::Normalised {
            for (advantage, (target, value)) in
                batch.advantages.iter_mut().zip(batch.targets.iter().zip(&batch.values))
            {
                *advantage = target - value;
            }
        }
    }

    fn accumulate(&self, update: &mut ShardUpdate<'_>, buffers: &mut ConditionalBuffers) {
        let (job, size) = (update.job, self.spec.sizes.observation);
        let actor_critic = match &self.policy {
            ConditionalPolicy::FeedForward(network) => network,
            ConditionalPolicy::Window(network) => {
                return network.learn(update, self.embedding.latent_size(), &mut buffers.window);
            }
        };
        let ConditionalBuffers { decisions, observations, latents, d_latents, feed_forward, .. } = buffers;
        decisions.clear();
        for segment in job.segment_indices {
            let of_segment = job.segments[*segment as usize].decisions.clone();
            decisions.extend(of_segment.filter(|decision| job.is_in_minibatch(*decision)));
        }
        let latent_size = self.embedding.latent_size();
        for chunk in decisions.chunks(CHUNK_ROWS) {
            observations.clear();
            latents.clear();
            for decision in chunk {
                observations.extend_from_slice(&job.batch.observations[decision * size..][..size]);
                let latent = &job.batch.saved_states[decision * latent_size..][..latent_size];
                latents.extend_from_slice(latent);
            }
            // The gradient of a sampled latent is computed, but not used.
            let d_latents = ensure_len(d_latents, latents.len());
            d_latents.fill(0.0);
            let parts = latent_parts(observations, latents);
            actor_critic.learn(update, chunk, &parts, d_latents, feed_forward);
        }
    }
}

/// The inputs and activations of one chunk.
#[derive(Debug, Default)]
pub(crate) struct ConditionalBuffers {
    /// The decisions of the job as places in the batch.
    decisions: Vec<usize>,
    observations: Vec<f32>,
    latents: Vec<f32>,
    d_latents: Vec<f32>,
    feed_forward: ActorCriticBuffers,
    window: WindowBuffers,
}
