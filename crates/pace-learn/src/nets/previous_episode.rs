//! The encoder of LILI: f, a mean over the entries of the previous episode, and g (`docs/methods/lili.md`).
//!
//! The latent is the same at every decision of an episode, so that g runs once per episode instead of once per decision.

use std::ops::Range;

use pace_games::{Action, GameSpec, NO_ACTION, Stream};
use pace_nn::{InputPart, Layout, MlpBuffers, WriteMode, kernels};

use super::encoder::entry_parts;
use super::{ContextEncoder, ensure_len, zero_empty_contexts};
use crate::config::{EmptyContext, TrainConfig};
use crate::learner::{ShardUpdate, UpdateJob};
use crate::network::copy_to;

/// f and g.
#[derive(Clone, Debug)]
pub(crate) struct PreviousEpisodeEncoder {
    layers: ContextEncoder,
    empty_context: EmptyContext,
}

/// The mean over the entries of the previous episode, and the sum over those of the current one so far.
#[derive(Clone, Debug)]
pub(crate) struct PreviousEpisode {
    /// Zero before the first episode has ended.
    mean: Vec<f32>,
    is_there: bool,
    sum: Vec<f32>,
    n_entries: usize,
}

impl PreviousEpisode {
    pub(crate) fn clear(&mut self) {
        self.mean.fill(0.0);
        self.sum.fill(0.0);
        (self.is_there, self.n_entries) = (false, 0);
    }
}

#[derive(Debug, Default)]
pub(crate) struct PreviousEpisodeInferenceBuffers {
    entries: MlpBuffers,
    no_actions: Vec<Action>,
    pooled: Vec<f32>,
    is_first: Vec<bool>,
    latents: MlpBuffers,
}

/// The episodes of a chunk with the entries of the episode before each, and the activations of a pass over them.
#[derive(Debug, Default)]
pub(crate) struct PreviousEpisodeTrainingBuffers {
    /// The entries of all episodes that have a next one.
    observations: Vec<f32>,
    actions: Vec<Action>,
    /// The entries of each episode's previous one; `None` for the first of an encounter.
    sources: Vec<Option<Range<usize>>>,
    is_first: Vec<bool>,
    /// The episode in the chunk of every selected decision.
    selected_episodes: Vec<usize>,
    features: MlpBuffers,
    pooled: Vec<f32>,
    d_pooled: Vec<f32>,
    /// g of every episode.
    episodes: MlpBuffers,
    latents: Vec<f32>,
    d_latents: Vec<f32>,
}

impl PreviousEpisodeTrainingBuffers {
    /// Copies the entries of these encounters from the batch; observations have `size` numbers.
    pub(crate) fn gather(&mut self, job: &UpdateJob<'_>, encounters: &[u32], size: usize) {
        let batch = job.batch;
        self.observations.clear();
        self.actions.clear();
        self.sources.clear();
        self.is_first.clear();
        self.selected_episodes.clear();
        for encounter in encounters {
            let end = batch.episodes(*encounter as usize).end;
            let mut source = None;
            for (episode, decisions) in batch.episode_decisions(*encounter as usize) {
                let n_selected = decisions.clone().filter(|decision| job.is_in_minibatch(*decision)).count();
                self.selected_episodes.extend(std::iter::repeat_n(self.sources.len(), n_selected));
                self.is_first.push(source.is_none());
                self.sources.push(source.take());
                if episode + 1 < end {
                    let start = self.actions.len();
                    let terminal = &batch.terminal_observations[episode * size..][..size];
                    let observations = &batch.observations[decisions.start * size..decisions.end * size];
                    self.observations.extend_from_slice(observations);
                    self.observations.extend_from_slice(terminal);
                    self.actions.extend_from_slice(&batch.actions[decisions]);
                    self.actions.push(NO_ACTION);
                    source = Some(start..self.actions.len());
                }
            }
        }
    }

    /// The latents of the selected decisions, and the place for their gradients.
    pub(crate) fn latents_and_gradients(&mut self) -> (&[f32], &mut [f32]) {
        (&self.latents, &mut self.d_latents)
    }
}

impl PreviousEpisodeEncoder {
    pub(crate) fn new(layout: &mut Layout, spec: &GameSpec, config: &TrainConfig) -> PreviousEpisodeEncoder {
        let (observation_size, n_actions) = (spec.observation_size, spec.n_actions());
        PreviousEpisodeEncoder {
            layers: ContextEncoder::new(layout, observation_size, n_actions, config.encoder_width),
            empty_context: config.empty_context,
        }
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        self.layers.initialise(weights, rng);
    }

    /// Width of the latent.
    pub(crate) fn width(&self) -> usize {
        self.layers.width()
    }

    /// An empty context.
    pub(crate) fn context(&self) -> PreviousEpisode {
        let zeros = vec![0.0; self.width()];
        PreviousEpisode { mean: zeros.clone(), is_there: false, sum: zeros, n_entries: 0 }
    }

    /// Writes the latents of some lanes' contexts.
    pub(crate) fn encode(
        &self,
        weights: &[f32],
        contexts: &[PreviousEpisode],
        lanes: &[usize],
        buffers: &mut PreviousEpisodeInferenceBuffers,
        latents: &mut Vec<f32>,
    ) {
        let (n_rows, width) = (lanes.len(), self.width());
        buffers.pooled.clear();
        buffers.is_first.clear();
        for lane in lanes {
            buffers.pooled.extend_from_slice(&contexts[*lane].mean);
            buffers.is_first.push(!contexts[*lane].is_there);
        }
        self.layers.g.forward(weights, &[InputPart::Dense(&buffers.pooled)], n_rows, &mut buffers.latents);
        zero_empty_contexts(self.empty_context, &buffers.is_first, width, &mut buffers.latents.out);
        copy_to(latents, &buffers.latents.out[..n_rows * width]);
    }

    /// Adds one entry to each of some lanes' contexts.
    pub(crate) fn add_entries(
        &self,
        weights: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [PreviousEpisode],
        lanes: &[usize],
        buffers: &mut PreviousEpisodeInferenceBuffers,
    ) {
        let parts = entry_parts(observations, actions);
        self.layers.f.forward(weights, &parts, lanes.len(), &mut buffers.entries);
        for (features, lane) in buffers.entries.out.chunks_exact(self.width()).zip(lanes) {
            kernels::add(&mut contexts[*lane].sum, features);
            contexts[*lane].n_entries += 1;
        }
    }

    /// Adds the terminal entries of the current episodes, which become the previous ones.
    pub(crate) fn end_episodes(
        &self,
        weights: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [PreviousEpisode],
        lanes: &[usize],
        buffers: &mut PreviousEpisodeInferenceBuffers,
    ) {
        buffers.no_actions.resize(lanes.len(), NO_ACTION);
        let parts = entry_parts(terminal_observations, &buffers.no_actions);
        self.layers.f.forward(weights, &parts, lanes.len(), &mut buffers.entries);
        for (features, lane) in buffers.entries.out.chunks_exact(self.width()).zip(lanes) {
            let PreviousEpisode { mean, is_there, sum, n_entries } = &mut contexts[*lane];
            kernels::add(sum, features);
            kernels::scale_into(mean, sum, 1.0 / (*n_entries + 1) as f32);
            sum.fill(0.0);
            (*is_there, *n_entries) = (true, 0);
        }
    }

    /// Computes the latent of every selected decision.
    pub(crate) fn forward(&self, weights: &[f32], buffers: &mut PreviousEpisodeTrainingBuffers) {
        let (width, n_episodes) = (self.width(), buffers.sources.len());
        let entries = entry_parts(&buffers.observations, &buffers.actions);
        self.layers.f.forward(weights, &entries, buffers.actions.len(), &mut buffers.features);
        let pooled = ensure_len(&mut buffers.pooled, n_episodes * width);
        pooled.fill(0.0);
        for (pooled, source) in pooled.chunks_exact_mut(width).zip(&buffers.sources) {
            let Some(source) = source else { continue };
            kernels::add_rows(&buffers.features.out[source.start * width..source.end * width], pooled);
            pooled.iter_mut().for_each(|value| *value /= source.len() as f32);
        }
        self.layers.g.forward(weights, &[InputPart::Dense(pooled)], n_episodes, &mut buffers.episodes);
        zero_empty_contexts(self.empty_context, &buffers.is_first, width, &mut buffers.episodes.out);
        buffers.latents.clear();
        for episode in &buffers.selected_episodes {
            buffers.latents.extend_from_slice(&buffers.episodes.out[episode * width..][..width]);
        }
        buffers.d_latents.resize(buffers.latents.len(), 0.0);
    }

    /// Adds the gradient of the weights, from the gradients of the latents.
    pub(crate) fn backward(
        &self,
        update: &mut ShardUpdate<'_>,
        buffers: &mut PreviousEpisodeTrainingBuffers,
    ) {
        let (width, n_episodes) = (self.width(), buffers.sources.len());
        // Every decision of an episode adds to the gradient of the episode's latent.
        let d_episodes = &mut buffers.episodes.d_out[..n_episodes * width];
        d_episodes.fill(0.0);
        for (d_latent, episode) in buffers.d_latents.chunks_exact(width).zip(&buffers.selected_episodes) {
            kernels::add(&mut d_episodes[episode * width..][..width], d_latent);
        }
        zero_empty_contexts(self.empty_context, &buffers.is_first, width, d_episodes);
        let d_pooled = ensure_len(&mut buffers.d_pooled, n_episodes * width);
        let mut d_parts = [Some((&mut *d_pooled, WriteMode::Overwrite))];
        let parts = [InputPart::Dense(&buffers.pooled[..n_episodes * width])];
        let (transposed, gradients) = (update.transposed, &mut *update.gradients);
        let episodes = &mut buffers.episodes;
        self.layers.g.backward(transposed, gradients, &parts, n_episodes, episodes, &mut d_parts);
        for (d_pooled, source) in d_pooled.chunks_exact(width).zip(&buffers.sources) {
            let Some(source) = source else { continue };
            let d_features = &mut buffers.features.d_out[source.start * width..source.end * width];
            for d_feature in d_features.chunks_exact_mut(width) {
                kernels::scale_into(d_feature, d_pooled, 1.0 / source.len() as f32);
            }
        }
        let entries = entry_parts(&buffers.observations, &buffers.actions);
        let (n_entries, features) = (buffers.actions.len(), &mut buffers.features);
        self.layers.f.backward(transposed, gradients, &entries, n_entries, features, &mut []);
    }
}
