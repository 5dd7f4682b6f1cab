//! The conditional policy: actor and critic on [observation ⊕ latent], and the pass that trains them.
//!
//! In training the latent is drawn, episode by episode, from what the encoder makes of the true tuple. What stands in for
//! it when the peers are unknown is in `online`.

use std::sync::Arc;

use pace_games::{ConfigError, GameSpec, PeerObservationMode, PoolListing, Seed};
use pace_nn::{Activation, Layout, Linear};

use super::embedding::Embedding;
use super::keys::{Advantages, GradientClipping, GscuConfig, HiddenActivation};
use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{ActorCritic, ActorCriticBuffers, ensure_len};
use crate::network::{Network, NetworkDims, NetworkSpec};
use crate::policy::Policy;
use crate::ppo::policy_and_value;

/// Decisions that go through actor and critic together.
const CHUNK_ROWS: usize = 256;

/// Actor, critic, and behind them the embedding, which PPO leaves alone, with their weights.
#[derive(Clone, Debug)]
pub(crate) struct GscuNet {
    pub(super) actor_critic: ActorCritic,
    pub(super) embedding: Embedding,
    pub(super) keys: GscuConfig,
    pub(super) spec: Arc<NetworkSpec>,
    pub(super) weights: Arc<Vec<f32>>,
    /// What the encoder makes of every training tuple; empty where nobody is told who the peers are.
    pub(super) tuples: Arc<Vec<f32>>,
    /// What may be fallen back on; nothing where the greedy policy is followed in any case.
    pub(super) conservative: Option<Policy>,
}

impl GscuNet {
    /// Where the embedding's weights begin: behind those that PPO trains.
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
        // A bench has no tuples.
        let embedding = Embedding::new(sizes, pool.tuples.len().max(1), &keys);
        for tensor in embedding.layout().tensors() {
            layout.reserve(&tensor.name, &tensor.shape);
        }
        GscuNet {
            actor_critic,
            embedding,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                group_ends,
                clips_groups_separately: keys.gradient_clipping == GradientClipping::Separate,
                adaptation_sight: PeerObservationMode::Recorded,
                // A policy without memory needs no more than single episodes, and many lanes are faster than long ones.
                training_episodes: 1,
                ..NetworkSpec::new(game, layout, keys.latent_size)
            }),
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

    fn policy_head(&self) -> &Linear {
        self.actor_critic.policy_head()
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

    fn accumulate(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut ConditionalBuffers,
        shard: &mut UpdateShard,
    ) {
        rows.selected.clear();
        for segment in job.segment_indices {
            let decisions = job.segments[*segment as usize].decisions.clone();
            rows.selected.extend(decisions.filter(|decision| job.is_in_minibatch(*decision)));
        }
        let selected = std::mem::take(&mut rows.selected);
        for chunk in selected.chunks(CHUNK_ROWS) {
            self.accumulate_chunk(transposed, job, chunk, rows, shard);
        }
        rows.selected = selected;
    }
}

impl GscuNet {
    fn accumulate_chunk(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        chunk: &[usize],
        rows: &mut ConditionalBuffers,
        shard: &mut UpdateShard,
    ) {
        let Some(weights) = &job.weights.policy else { return };
        let (batch, size) = (job.batch, self.spec.sizes.observation);
        let latent_size = self.embedding.latent_size();
        rows.observations.clear();
        rows.latents.clear();
        for decision in chunk {
            rows.observations.extend_from_slice(&batch.observations[decision * size..][..size]);
            rows.latents.extend_from_slice(&batch.saved_states[decision * latent_size..][..latent_size]);
        }
        let n_rows = chunk.len();
        let (observations, latents) = (&rows.observations[..], &rows.latents[..]);
        self.actor_critic.forward(&self.weights, observations, latents, n_rows, &mut rows.decisions);
        let mut policy_rows = rows.decisions.policy_rows(n_rows, &mut rows.probabilities);
        policy_and_value(job, weights, chunk, &mut policy_rows, &mut shard.sums);
        // Nobody asks for the gradient of a latent that was drawn, but the layers write it.
        let d_latents = ensure_len(&mut rows.d_latents, latents.len());
        d_latents.fill(0.0);
        self.actor_critic.backward(
            transposed,
            &mut shard.gradients,
            observations,
            latents,
            n_rows,
            &mut rows.decisions,
            d_latents,
        );
        shard.sums.n += n_rows as f64;
    }
}

/// The inputs and activations of one chunk.
#[derive(Debug, Default)]
pub(crate) struct ConditionalBuffers {
    selected: Vec<usize>,
    observations: Vec<f32>,
    latents: Vec<f32>,
    d_latents: Vec<f32>,
    probabilities: Vec<f32>,
    decisions: ActorCriticBuffers,
}
