//! The conditional policy: actor and critic on [observation ⊕ latent], and the pass that trains them.
//!
//! In training the latent is drawn, episode by episode, from what the encoder makes of the true tuple. What stands in for
//! it when the peers are unknown is in `online`.

use std::sync::Arc;

use pace_games::{GameError, GameSpec, PeerSight, PoolListing, Seed};
use pace_nn::{Activation, Layout, Linear};

use super::embedding::Embedding;
use super::keys::{Advantages, GradientClipping, GscuConfig, HiddenActivation};
use super::online::{GscuContext, OnlineRows};
use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{ActorCritic, ActorCriticRows, fit};
use crate::network::{Acted, Decisions, Network, Sizes};
use crate::policy::Policy;
use crate::ppo::policy_and_value;

/// Decisions that go through actor and critic together.
const CHUNK_ROWS: usize = 256;

/// All weights of GSCU: actor, critic, and behind them the embedding, which PPO leaves alone.
#[derive(Clone, Debug)]
pub(crate) struct GscuNet {
    pub(super) actor_critic: ActorCritic,
    pub(super) embedding: Embedding,
    pub(super) keys: GscuConfig,
    sizes: Sizes,
    layout: Layout,
    /// Where actor and critic end.
    ends: [usize; 2],
    /// What the encoder makes of every training tuple; empty where nobody is told who the peers are.
    pub(super) tuples: Arc<Vec<f32>>,
    /// What may be fallen back on; nothing where the greedy policy is followed in any case.
    pub(super) conservative: Option<Policy>,
}

impl GscuNet {
    /// Where the embedding's weights begin.
    pub(super) fn embedding_start(&self) -> usize {
        self.ends[1]
    }
}

impl Network for GscuNet {
    type Context = GscuContext;
    type ActRows = OnlineRows;
    type LearnRows = ConditionalRows;

    const METRICS: &'static [&'static str] = &[];

    fn new(spec: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> GscuNet {
        let keys = super::keys_of(config).clone();
        let sizes = Sizes::of(spec);
        let activation = match keys.activation {
            HiddenActivation::Relu => Activation::Relu,
            HiddenActivation::Tanh => Activation::Tanh,
        };
        let mut layout = Layout::default();
        let actor_critic = ActorCritic::new(
            &mut layout,
            [sizes.observation, keys.latent_size],
            config.hidden_width,
            sizes.n_actions,
            activation,
        );
        let critic = layout.tensors().iter().find(|tensor| tensor.name.starts_with("critic."));
        let ends = [critic.expect("there is a critic").id.range().start, layout.len()];
        // A bench has no tuples.
        let embedding = Embedding::new(sizes, pool.tuples.len().max(1), &keys);
        for tensor in embedding.layout().tensors() {
            layout.reserve(&tensor.name, &tensor.shape);
        }
        let tuples = Arc::new(Vec::new());
        GscuNet { actor_critic, embedding, keys, sizes, layout, ends, tuples, conservative: None }
    }

    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), GameError> {
        super::check(config, pool)
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn policy_head(&self) -> &Linear {
        self.actor_critic.policy_head()
    }

    fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.len()];
        self.actor_critic.initialise(&mut weights, &mut seed.stream("actor-critic"));
        weights[self.embedding_start()..].copy_from_slice(&self.embedding.initialise(seed));
        weights
    }

    fn group_ends(&self) -> Vec<usize> {
        self.ends.to_vec()
    }

    fn clips_groups_apart(&self) -> bool {
        self.keys.gradient_clipping == GradientClipping::Apart
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn adapting_sight(&self) -> PeerSight {
        PeerSight::Recorded
    }

    /// A policy without memory needs no more than single episodes, and many lanes are faster than long ones.
    fn training_episodes(&self, _spec: &GameSpec) -> usize {
        1
    }

    fn context(&self, _window: Option<usize>) -> GscuContext {
        GscuContext::new(self)
    }

    fn begin(&self, context: &mut GscuContext, seed: Seed) {
        context.begin(self, seed);
    }

    fn forget(&self, context: &mut GscuContext) {
        context.forget(self);
    }

    fn tell(&self, context: &mut GscuContext, tuple: usize, _seed: Seed) {
        context.tell(self, tuple);
    }

    fn act(
        &self,
        parameters: &[f32],
        observations: &[f32],
        contexts: &[GscuContext],
        lanes: &[usize],
        rows: &mut OnlineRows,
    ) {
        super::online::act(self, parameters, observations, contexts, lanes, rows);
    }

    fn acted<'a>(&self, rows: &'a OnlineRows) -> Acted<'a> {
        Acted {
            logits: &rows.logits,
            values: rows.decisions.values(),
            posteriors: &[],
            latents: &rows.latents,
            latent_size: self.embedding.latent_size(),
        }
    }

    fn take_in(
        &self,
        _parameters: &[f32],
        decisions: &Decisions<'_>,
        contexts: &mut [GscuContext],
        lanes: &[usize],
        rows: &mut OnlineRows,
    ) {
        super::online::take_in(self, decisions, contexts, lanes, rows);
    }

    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [GscuContext],
        lanes: &[usize],
        rows: &mut OnlineRows,
    ) {
        super::online::end_episodes(self, parameters, terminal_observations, contexts, lanes, rows);
    }

    fn keep(&self, context: &GscuContext, kept: &mut Vec<f32>) {
        kept.extend_from_slice(context.latent());
    }

    fn credit(&self, batch: &mut Batch) {
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
        parameters: &[f32],
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut ConditionalRows,
        shard: &mut UpdateShard,
    ) {
        rows.selected.clear();
        for piece in job.due {
            let decisions = job.pieces[*piece as usize].decisions.clone();
            let is_due =
                |decision: &usize| job.selection.is_none_or(|(parts, part)| parts[*decision] == part);
            rows.selected.extend(decisions.filter(is_due));
        }
        let selected = std::mem::take(&mut rows.selected);
        for chunk in selected.chunks(CHUNK_ROWS) {
            self.accumulate_chunk([parameters, transposed], job, chunk, rows, shard);
        }
        rows.selected = selected;
    }
}

impl GscuNet {
    fn accumulate_chunk(
        &self,
        [parameters, transposed]: [&[f32]; 2],
        job: &UpdateJob<'_>,
        chunk: &[usize],
        rows: &mut ConditionalRows,
        shard: &mut UpdateShard,
    ) {
        let Some(weights) = &job.weights.policy else { return };
        let (batch, size) = (job.batch, self.sizes.observation);
        let (latent_size, n_actions) = (self.embedding.latent_size(), self.sizes.n_actions);
        rows.observations.clear();
        rows.latents.clear();
        for decision in chunk {
            rows.observations.extend_from_slice(&batch.observations[decision * size..][..size]);
            rows.latents.extend_from_slice(&batch.kept[decision * latent_size..][..latent_size]);
        }
        let n_rows = chunk.len();
        let (observations, latents) = (&rows.observations[..], &rows.latents[..]);
        self.actor_critic.forward(parameters, observations, latents, n_rows, &mut rows.decisions);
        let probabilities = fit(&mut rows.probabilities, n_rows * n_actions);
        let mut policy_rows = rows.decisions.policy_rows(n_rows, n_actions, probabilities);
        policy_and_value(job, weights, chunk, &mut policy_rows, &mut shard.sums);
        // Nobody asks for the gradient of a latent that was drawn, but the layers write it.
        let d_latents = fit(&mut rows.d_latents, latents.len());
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
pub(crate) struct ConditionalRows {
    selected: Vec<usize>,
    observations: Vec<f32>,
    latents: Vec<f32>,
    d_latents: Vec<f32>,
    probabilities: Vec<f32>,
    decisions: ActorCriticRows,
}
