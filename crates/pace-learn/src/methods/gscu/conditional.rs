//! The conditional policy: actor and critic on [observation ⊕ latent], and the pass that trains them.
//!
//! In training the latent is sampled, episode by episode, from the distribution that the encoder has for the true tuple. In play
//! the belief in `online` replaces it.

use std::sync::Arc;

use pace_games::{ConfigError, GameSpec, PeerObservationMode, PoolListing, Seed};
use pace_nn::{Activation, Layout};

use super::embedding::Embedding;
use super::keys::{Advantages, GradientClipping, GscuConfig, HiddenActivation};
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
    pub(super) actor_critic: ActorCritic,
    pub(super) embedding: Embedding,
    pub(super) keys: GscuConfig,
    pub(super) spec: Arc<NetworkSpec>,
    pub(super) weights: Arc<Vec<f32>>,
    /// The distributions of all training tuples; empty outside training.
    pub(super) tuples: Arc<Vec<f32>>,
    /// The policy that the bandit can fall back on; `None` if the keys always choose the greedy policy.
    pub(super) conservative: Option<Policy>,
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
        let activation = match keys.activation {
            HiddenActivation::Relu => Activation::Relu,
            HiddenActivation::Tanh => Activation::Tanh,
        };
        let mut layout = Layout::default();
        let (inputs, width) = ([sizes.observation, keys.latent_size], config.hidden_width);
        let actor_critic = ActorCritic::new(&mut layout, inputs, width, sizes.n_actions, activation);
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
                policy_head: actor_critic.policy_head(),
                clips_groups_separately: keys.gradient_clipping == GradientClipping::Separate,
                adaptation_sight: PeerObservationMode::Recorded,
                // A policy without memory can be trained on single episodes, and many short lanes are faster than few long ones.
                training_episodes: 1,
                ..NetworkSpec::new(game, layout, keys.latent_size)
            }),
            actor_critic,
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
        self.actor_critic.initialise(weights, &mut seed.stream("actor-critic"));
        weights[start..].copy_from_slice(&self.embedding.initialise(seed));
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut Vec<f32> {
        Arc::make_mut(&mut self.weights)
    }

    fn adjust_advantages(&self, batch: &mut Batch) {
        if self.keys.advantages == Advantages::Raw {
            for (advantage, (target, value)) in
                batch.advantages.iter_mut().zip(batch.targets.iter().zip(&batch.values))
            {
                *advantage = target - value;
            }
        }
    }

    fn accumulate(&self, update: &mut ShardUpdate<'_>, buffers: &mut ConditionalBuffers) {
        let (job, size) = (update.job, self.spec.sizes.observation);
        let ConditionalBuffers { decisions, observations, latents, d_latents, actor_critic } = buffers;
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
            self.actor_critic.learn(
                update,
                chunk,
                &latent_parts(observations, latents),
                d_latents,
                actor_critic,
            );
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
    actor_critic: ActorCriticBuffers,
}
