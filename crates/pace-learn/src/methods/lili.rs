//! LILI differs from `pace.rs` in: a context of the previous episode alone, and in place of the identifier a prediction of what
//! actions lead to (`docs/methods/lili.md`).
//!
//! The latent is the same at every decision of an episode, so that g runs once per episode, not once per decision.

use std::ops::Range;
use std::sync::Arc;

use pace_games::{Action, ConfigError, GameSpec, NO_ACTION, PoolListing, Seed};
use pace_nn::{Activation, InputPart, Layout, Linear, MlpBuffers, WriteMode, kernels};

use super::{Method, baseline, check_baseline};
use crate::config::{ContextAction, EmptyContext, MinibatchUnit, TrainConfig};
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{
    ActorCritic, ActorCriticBuffers, CHUNK_ROWS, ContextEncoder, TransitionBuffers, TransitionPredictor,
    ensure_len, entry_parts, zero_empty_contexts,
};
use crate::network::{Actor, Contexts, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs, copy_to};
use crate::ppo::policy_and_value;

/// The method.
pub(crate) const LILI: Method =
    Method::of::<LiliNet>("lili", "latent of the previous episode, which predicts the next one", |config| {
        baseline(config);
        config.context_action = ContextAction::Ego;
    });

/// Encoder, predictor, actor and critic, with their weights.
#[derive(Clone, Debug)]
pub(crate) struct LiliNet {
    encoder: ContextEncoder,
    predictor: TransitionPredictor,
    actor_critic: ActorCritic,
    empty_context: EmptyContext,
    spec: Arc<NetworkSpec>,
    weights: Arc<Vec<f32>>,
}

/// The entries of the previous episode, pooled, and those of the current one so far.
#[derive(Clone, Debug)]
pub(crate) struct PreviousEpisode {
    /// Zero before the first episode has ended.
    mean: Vec<f32>,
    is_there: bool,
    sum: Vec<f32>,
    n_entries: usize,
}

impl Actor for LiliNet {
    type State = Contexts<PreviousEpisode, LiliInferenceBuffers>;

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, n_lanes: usize, _window: Option<usize>) -> Self::State {
        let zeros = vec![0.0; self.width()];
        let context = PreviousEpisode { mean: zeros.clone(), is_there: false, sum: zeros, n_entries: 0 };
        Contexts::new(context, n_lanes)
    }

    fn clear_context(&self, state: &mut Self::State, lane: usize) {
        let context = &mut state.lanes[lane];
        context.mean.fill(0.0);
        context.sum.fill(0.0);
        (context.is_there, context.n_entries) = (false, 0);
    }

    fn keep_last_episode(&self, _state: &mut Self::State, _lane: usize) {
        // There never is anything else.
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut Self::State,
        out: &mut PolicyOutputs,
    ) {
        let (n_rows, width, rows) = (lanes.len(), self.width(), &mut state.buffers);
        rows.pooled.clear();
        rows.is_first.clear();
        for lane in lanes {
            rows.pooled.extend_from_slice(&state.lanes[*lane].mean);
            rows.is_first.push(!state.lanes[*lane].is_there);
        }
        self.encoder.g.forward(&self.weights, &[InputPart::Dense(&rows.pooled)], n_rows, &mut rows.latents);
        zero_empty_contexts(self.empty_context, &rows.is_first, width, &mut rows.latents.out);
        copy_to(&mut out.latents, &rows.latents.out[..n_rows * width]);
        self.actor_critic.forward(&self.weights, observations, &out.latents, n_rows, &mut rows.decisions);
        rows.decisions.write_to(n_rows, out);
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut Self::State) {
        let entries = &mut state.buffers.entries;
        let parts = entry_parts(decisions.observations, decisions.ego_actions);
        self.encoder.f.forward(&self.weights, &parts, lanes.len(), entries);
        for (features, lane) in entries.out.chunks_exact(self.width()).zip(lanes) {
            kernels::add(&mut state.lanes[*lane].sum, features);
            state.lanes[*lane].n_entries += 1;
        }
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut Self::State) {
        let LiliInferenceBuffers { entries, no_actions, .. } = &mut state.buffers;
        no_actions.resize(lanes.len(), NO_ACTION);
        let parts = entry_parts(terminal_observations, no_actions);
        self.encoder.f.forward(&self.weights, &parts, lanes.len(), entries);
        for (features, lane) in entries.out.chunks_exact(self.width()).zip(lanes) {
            let PreviousEpisode { mean, is_there, sum, n_entries } = &mut state.lanes[*lane];
            kernels::add(sum, features);
            kernels::scale_into(mean, sum, 1.0 / (*n_entries + 1) as f32);
            sum.fill(0.0);
            (*is_there, *n_entries) = (true, 0);
        }
    }
}

impl Network for LiliNet {
    type Buffers = LiliTrainingBuffers;

    fn new(game: &GameSpec, _pool: &PoolListing, config: &TrainConfig) -> LiliNet {
        let mut layout = Layout::default();
        let NetworkDims { observation, n_actions, .. } = NetworkDims::of(game);
        let (width, hidden_width) = (config.encoder_width, config.hidden_width);
        let (inputs, relu) = ([observation, width], Activation::Relu);
        LiliNet {
            encoder: ContextEncoder::new(&mut layout, observation, n_actions, width),
            predictor: TransitionPredictor::new(&mut layout, observation, n_actions, width, hidden_width),
            actor_critic: ActorCritic::new(&mut layout, inputs, hidden_width, n_actions, relu),
            empty_context: config.empty_context,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                metrics: &["peer/reward_loss", "peer/observation_loss"],
                ..NetworkSpec::new(game, layout, width)
            }),
        }
    }

    fn check(config: &TrainConfig, _pool: &PoolListing) -> Result<(), ConfigError> {
        check_baseline(config, &[MinibatchUnit::Encounters, MinibatchUnit::Balanced, MinibatchUnit::Steps])?;
        if config.context_action != ContextAction::Ego {
            return Err(ConfigError::bad_value("context_action", &"peer", "\"ego\" for this method"));
        }
        Ok(())
    }

    fn initialise(&mut self, seed: Seed) {
        let weights = Arc::make_mut(&mut self.weights);
        self.encoder.initialise(weights, &mut seed.stream("encoder"));
        self.predictor.initialise(weights, &mut seed.stream("predictor"));
        self.actor_critic.initialise(weights, &mut seed.stream("actor-critic"));
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

    fn accumulate(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut LiliTrainingBuffers,
        shard: &mut UpdateShard,
    ) {
        for chunk in job.chunks(CHUNK_ROWS) {
            rows.gather(chunk, job, self.spec.sizes.observation);
            self.accumulate_chunk(transposed, job, rows, shard);
        }
    }
}

impl LiliNet {
    fn width(&self) -> usize {
        self.encoder.width()
    }

    fn accumulate_chunk(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut LiliTrainingBuffers,
        shard: &mut UpdateShard,
    ) {
        let (width, parameters) = (self.width(), &self.weights[..]);
        let UpdateShard { gradients, sums } = shard;
        let (n_episodes, n_selected) = (rows.sources.len(), rows.batch_rows.len());

        // Forward: f on the entries of all previous episodes, their means, g once per episode, and its latent to every
        // decision of the episode.
        let (entries, n_entries) =
            (entry_parts(&rows.entries, &rows.entry_actions), rows.entry_actions.len());
        self.encoder.f.forward(parameters, &entries, n_entries, &mut rows.features);
        let pooled = ensure_len(&mut rows.pooled, n_episodes * width);
        pooled.fill(0.0);
        for (pooled, source) in pooled.chunks_exact_mut(width).zip(&rows.sources) {
            let Some(source) = source else { continue };
            kernels::add_rows(&rows.features.out[source.start * width..source.end * width], pooled);
            pooled.iter_mut().for_each(|value| *value /= source.len() as f32);
        }
        self.encoder.g.forward(parameters, &[InputPart::Dense(pooled)], n_episodes, &mut rows.episodes);
        zero_empty_contexts(self.empty_context, &rows.is_first, width, &mut rows.episodes.out);
        let latents = ensure_len(&mut rows.latents, n_selected * width);
        for (latent, episode) in latents.chunks_exact_mut(width).zip(&rows.selected_episodes) {
            latent.copy_from_slice(&rows.episodes.out[episode * width..][..width]);
        }
        let latents = &*latents;
        let d_latents = ensure_len(&mut rows.d_latents, n_selected * width);

        // What the decisions led to.
        let (observations, actions) = (&rows.observations[..], &rows.actions[..]);
        let weight = job.weights.per_row * job.weights.auxiliary;
        if job.weights.auxiliary > 0.0 {
            let predicted = &mut rows.predicted;
            let losses =
                self.predictor.forward(parameters, observations, actions, latents, weight, predicted);
            sums.own[0] += losses.rewards;
            sums.own[1] += losses.observations;
            self.predictor.backward(
                transposed,
                gradients,
                observations,
                actions,
                latents,
                predicted,
                d_latents,
            );
        } else {
            d_latents.fill(0.0);
        }

        if let Some(policy) = &job.weights.policy {
            self.actor_critic.forward(parameters, observations, latents, n_selected, &mut rows.decisions);
            let mut policy_rows = rows.decisions.policy_rows(n_selected, &mut rows.probabilities);
            policy_and_value(job, policy, &rows.batch_rows, &mut policy_rows, sums);
            let decisions = &mut rows.decisions;
            self.actor_critic.backward(
                transposed,
                gradients,
                observations,
                latents,
                n_selected,
                decisions,
                d_latents,
            );
        }
        sums.n += n_selected as f64;

        // Back: every decision of an episode adds to the gradient of its latent.
        let d_episodes = &mut rows.episodes.d_out[..n_episodes * width];
        d_episodes.fill(0.0);
        for (d_latent, episode) in d_latents.chunks_exact(width).zip(&rows.selected_episodes) {
            kernels::add(&mut d_episodes[episode * width..][..width], d_latent);
        }
        zero_empty_contexts(self.empty_context, &rows.is_first, width, d_episodes);
        let d_pooled = ensure_len(&mut rows.d_pooled, n_episodes * width);
        let mut d_parts = [Some((&mut *d_pooled, WriteMode::Overwrite))];
        let parts = [InputPart::Dense(&*pooled)];
        self.encoder.g.backward(transposed, gradients, &parts, n_episodes, &mut rows.episodes, &mut d_parts);
        for (d_pooled, source) in d_pooled.chunks_exact(width).zip(&rows.sources) {
            let Some(source) = source else { continue };
            let d_features = &mut rows.features.d_out[source.start * width..source.end * width];
            for d_feature in d_features.chunks_exact_mut(width) {
                kernels::scale_into(d_feature, d_pooled, 1.0 / source.len() as f32);
            }
        }
        self.encoder.f.backward(transposed, gradients, &entries, n_entries, &mut rows.features, &mut []);
    }
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct LiliInferenceBuffers {
    entries: MlpBuffers,
    no_actions: Vec<Action>,
    pooled: Vec<f32>,
    is_first: Vec<bool>,
    latents: MlpBuffers,
    decisions: ActorCriticBuffers,
}

/// The inputs and activations of one chunk.
#[derive(Debug, Default)]
pub(crate) struct LiliTrainingBuffers {
    /// The entries of all episodes that have a next one, and where those of each episode's previous one lie.
    entries: Vec<f32>,
    entry_actions: Vec<Action>,
    sources: Vec<Option<Range<usize>>>,
    /// Which episodes have no previous one.
    is_first: Vec<bool>,
    features: MlpBuffers,
    pooled: Vec<f32>,
    d_pooled: Vec<f32>,
    /// g of every episode.
    episodes: MlpBuffers,
    /// The selected decisions, as rows of the batch and by their episode in the chunk.
    batch_rows: Vec<usize>,
    selected_episodes: Vec<usize>,
    observations: Vec<f32>,
    actions: Vec<Action>,
    latents: Vec<f32>,
    d_latents: Vec<f32>,
    predicted: TransitionBuffers,
    decisions: ActorCriticBuffers,
    probabilities: Vec<f32>,
}

impl LiliTrainingBuffers {
    fn gather(&mut self, chunk: &[u32], job: &UpdateJob<'_>, size: usize) {
        let batch = job.batch;
        self.entries.clear();
        self.entry_actions.clear();
        self.sources.clear();
        self.is_first.clear();
        self.batch_rows.clear();
        self.selected_episodes.clear();
        self.observations.clear();
        self.actions.clear();
        self.predicted.rewards.clear();
        self.predicted.observations.clear();
        for encounter in chunk {
            let episodes = batch.episodes(*encounter as usize);
            let mut first = batch.decisions(*encounter as usize).start;
            let mut source = None;
            for episode in episodes.clone() {
                let decisions = first..first + batch.episode_lengths[episode] as usize;
                first = decisions.end;
                let terminal = &batch.terminal_observations[episode * size..][..size];
                for decision in decisions.clone().filter(|decision| job.is_in_minibatch(*decision)) {
                    self.batch_rows.push(decision);
                    self.selected_episodes.push(self.sources.len());
                    self.actions.push(batch.actions[decision]);
                    self.observations.extend_from_slice(&batch.observations[decision * size..][..size]);
                    let is_last = decision + 1 == decisions.end;
                    let next = &batch.observations[(decision + 1) * size..];
                    let next = if is_last { terminal } else { &next[..size] };
                    self.predicted.observations.extend_from_slice(next);
                    self.predicted.rewards.push(batch.task_rewards[decision]);
                }
                self.is_first.push(source.is_none());
                self.sources.push(source.take());
                if episode + 1 < episodes.end {
                    let start = self.entry_actions.len();
                    let seen = decisions.start * size..decisions.end * size;
                    self.entries.extend_from_slice(&batch.observations[seen]);
                    self.entries.extend_from_slice(terminal);
                    self.entry_actions.extend_from_slice(&batch.actions[decisions]);
                    self.entry_actions.push(NO_ACTION);
                    source = Some(start..self.entry_actions.len());
                }
            }
        }
    }
}
