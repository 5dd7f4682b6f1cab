//! LILI: a latent of the previous episode alone, learned by predicting what actions lead to in the next (`docs/methods/lili.md`).
//!
//! The latent is the same at every decision of an episode, so that g runs once per episode, not once per decision.

use std::ops::Range;

use pace_games::{Action, GameError, GameSpec, NO_ACTION, PoolListing, Seed};
use pace_nn::{Activation, Layout, Linear, MlpBuffers, Part, Store, kernels};

use super::{Method, baseline, check_baseline};
use crate::config::{ContextAction, EmptyContext, Minibatch, TrainConfig};
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{
    ActorCritic, ActorCriticRows, CHUNK_ROWS, ContextEncoder, TransitionPredictor, TransitionRows,
    blank_first, entry_parts, fit,
};
use crate::network::{Acted, Decisions, Network, Sizes};
use crate::ppo::policy_and_value;

/// The method.
pub(crate) const LILI: Method =
    Method::of::<LiliNet>("lili", "latent of the previous episode, which predicts the next one", |config| {
        baseline(config);
        config.context_action = ContextAction::Ego;
    });

/// The layout of the weights and the shape of what goes in and out.
#[derive(Clone, Debug)]
pub(crate) struct LiliNet {
    encoder: ContextEncoder,
    predictor: TransitionPredictor,
    actor_critic: ActorCritic,
    sizes: Sizes,
    empty_context: EmptyContext,
    layout: Layout,
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

impl Network for LiliNet {
    type Context = PreviousEpisode;
    type ActRows = LiliActRows;
    type LearnRows = LiliLearnRows;

    const METRICS: &'static [&'static str] = &["peer/reward_loss", "peer/observation_loss"];

    fn new(spec: &GameSpec, _pool: &PoolListing, config: &TrainConfig) -> LiliNet {
        let mut layout = Layout::default();
        let sizes = Sizes::of(spec);
        let Sizes { observation, n_actions, .. } = sizes;
        let (width, hidden_width) = (config.encoder_width, config.hidden_width);
        LiliNet {
            encoder: ContextEncoder::new(&mut layout, observation, n_actions, width),
            predictor: TransitionPredictor::new(&mut layout, observation, n_actions, width, hidden_width),
            actor_critic: ActorCritic::new(
                &mut layout,
                [observation, width],
                hidden_width,
                n_actions,
                Activation::Relu,
            ),
            sizes,
            empty_context: config.empty_context,
            layout,
        }
    }

    fn check(config: &TrainConfig, _pool: &PoolListing) -> Result<(), GameError> {
        check_baseline(config, &[Minibatch::Encounters, Minibatch::Balanced, Minibatch::Steps])?;
        if config.context_action != ContextAction::Ego {
            return Err(GameError::bad_value("context_action", &"peer", "\"ego\" for this method"));
        }
        Ok(())
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn policy_head(&self) -> &Linear {
        self.actor_critic.policy_head()
    }

    fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.len()];
        self.encoder.initialise(&mut weights, &mut seed.stream("encoder"));
        self.predictor.initialise(&mut weights, &mut seed.stream("predictor"));
        self.actor_critic.initialise(&mut weights, &mut seed.stream("actor-critic"));
        weights
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn context(&self, _window: Option<usize>) -> PreviousEpisode {
        let zeros = vec![0.0; self.width()];
        PreviousEpisode { mean: zeros.clone(), is_there: false, sum: zeros, n_entries: 0 }
    }

    fn forget(&self, context: &mut PreviousEpisode) {
        context.mean.fill(0.0);
        context.sum.fill(0.0);
        (context.is_there, context.n_entries) = (false, 0);
    }

    fn forget_but_last(&self, _context: &mut PreviousEpisode) {
        // There never is anything else.
    }

    fn act(
        &self,
        parameters: &[f32],
        observations: &[f32],
        contexts: &[PreviousEpisode],
        lanes: &[usize],
        rows: &mut LiliActRows,
    ) {
        let (n_rows, width) = (lanes.len(), self.width());
        rows.pooled.clear();
        lanes.iter().for_each(|lane| rows.pooled.extend_from_slice(&contexts[*lane].mean));
        self.encoder.g.forward(parameters, &[Part::Dense(&rows.pooled)], n_rows, &mut rows.latents);
        rows.is_first.clear();
        rows.is_first.extend(lanes.iter().map(|lane| !contexts[*lane].is_there));
        blank_first(self.empty_context, &rows.is_first, width, &mut rows.latents.out);
        let latents = &rows.latents.out[..n_rows * width];
        self.actor_critic.forward(parameters, observations, latents, n_rows, &mut rows.decisions);
    }

    fn acted<'a>(&self, rows: &'a LiliActRows) -> Acted<'a> {
        Acted {
            logits: rows.decisions.logits(),
            values: rows.decisions.values(),
            posteriors: &[],
            latents: &rows.latents.out,
            latent_size: self.width(),
        }
    }

    fn take_in(
        &self,
        parameters: &[f32],
        decisions: &Decisions<'_>,
        contexts: &mut [PreviousEpisode],
        lanes: &[usize],
        rows: &mut LiliActRows,
    ) {
        let Decisions { observations, ego_actions, .. } = decisions;
        let parts = entry_parts(observations, ego_actions);
        self.encoder.f.forward(parameters, &parts, lanes.len(), &mut rows.entries);
        for (features, lane) in rows.entries.out.chunks_exact(self.width()).zip(lanes) {
            kernels::add(&mut contexts[*lane].sum, features);
            contexts[*lane].n_entries += 1;
        }
    }

    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [PreviousEpisode],
        lanes: &[usize],
        rows: &mut LiliActRows,
    ) {
        rows.no_actions.resize(lanes.len(), NO_ACTION);
        let parts = entry_parts(terminal_observations, &rows.no_actions);
        self.encoder.f.forward(parameters, &parts, lanes.len(), &mut rows.entries);
        for (features, lane) in rows.entries.out.chunks_exact(self.width()).zip(lanes) {
            let PreviousEpisode { mean, is_there, sum, n_entries } = &mut contexts[*lane];
            kernels::add(sum, features);
            kernels::scale_into(mean, sum, 1.0 / (*n_entries + 1) as f32);
            sum.fill(0.0);
            (*is_there, *n_entries) = (true, 0);
        }
    }

    fn accumulate(
        &self,
        parameters: &[f32],
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut LiliLearnRows,
        shard: &mut UpdateShard,
    ) {
        for chunk in job.chunks(CHUNK_ROWS) {
            rows.gather(chunk, job, self.sizes.observation);
            self.accumulate_chunk([parameters, transposed], job, rows, shard);
        }
    }
}

impl LiliNet {
    fn width(&self) -> usize {
        self.encoder.width()
    }

    fn accumulate_chunk(
        &self,
        [parameters, transposed]: [&[f32]; 2],
        job: &UpdateJob<'_>,
        rows: &mut LiliLearnRows,
        shard: &mut UpdateShard,
    ) {
        let width = self.width();
        let UpdateShard { gradients, sums } = shard;
        let (n_episodes, n_selected) = (rows.sources.len(), rows.batch_rows.len());

        // Forward: f on the entries of all previous episodes, their means, g once per episode, and its latent to every
        // decision of the episode.
        let (entries, n_entries) =
            (entry_parts(&rows.entries, &rows.entry_actions), rows.entry_actions.len());
        self.encoder.f.forward(parameters, &entries, n_entries, &mut rows.features);
        let pooled = fit(&mut rows.pooled, n_episodes * width);
        pooled.fill(0.0);
        for (pooled, source) in pooled.chunks_exact_mut(width).zip(&rows.sources) {
            let Some(source) = source else { continue };
            kernels::add_rows(&rows.features.out[source.start * width..source.end * width], pooled);
            pooled.iter_mut().for_each(|value| *value /= source.len() as f32);
        }
        self.encoder.g.forward(parameters, &[Part::Dense(pooled)], n_episodes, &mut rows.episodes);
        blank_first(self.empty_context, &rows.is_first, width, &mut rows.episodes.out);
        let latents = fit(&mut rows.latents, n_selected * width);
        for (latent, episode) in latents.chunks_exact_mut(width).zip(&rows.selected_episodes) {
            latent.copy_from_slice(&rows.episodes.out[episode * width..][..width]);
        }
        let latents = &*latents;
        let d_latents = fit(&mut rows.d_latents, n_selected * width);

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
            let n_actions = self.sizes.n_actions;
            let probabilities = fit(&mut rows.probabilities, n_selected * n_actions);
            let mut policy_rows = rows.decisions.policy_rows(n_selected, n_actions, probabilities);
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
        blank_first(self.empty_context, &rows.is_first, width, d_episodes);
        let d_pooled = fit(&mut rows.d_pooled, n_episodes * width);
        let mut d_parts = [Some((&mut *d_pooled, Store::Overwrite))];
        let parts = [Part::Dense(&*pooled)];
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
pub(crate) struct LiliActRows {
    entries: MlpBuffers,
    no_actions: Vec<Action>,
    pooled: Vec<f32>,
    is_first: Vec<bool>,
    latents: MlpBuffers,
    decisions: ActorCriticRows,
}

/// The inputs and activations of one chunk.
#[derive(Debug, Default)]
pub(crate) struct LiliLearnRows {
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
    predicted: TransitionRows,
    decisions: ActorCriticRows,
    probabilities: Vec<f32>,
}

impl LiliLearnRows {
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
                for decision in decisions.clone().filter(|decision| job.is_due(*decision)) {
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
