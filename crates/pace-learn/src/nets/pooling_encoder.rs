//! The paper's pooling: a mean over episodes of the mean over each episode's entries (`docs/methods/pace.md`). Optionally, half of
//! the features are pooled by their maximum instead.

use pace_games::{Action, ConfigError, GameSpec, NO_ACTION, Stream};
use pace_nn::rows::{gather_rows, scatter_add_rows};
use pace_nn::{DropoutKey, EmptyEpisodeMode, InputPart, Layout, MlpBuffers, PrefixPool, WriteMode};

use super::encoder::{ContextChunk, Encoder, Entries, entry_parts};
use super::{CHUNK_ROWS, ContextEncoder, ensure_len, zero_empty_contexts};
use crate::config::{EmptyContext, EmptyEpisode, EncoderKind, TrainConfig};
use crate::context::RunningContext;
use crate::network::copy_to;

/// f, pooling, g.
#[derive(Clone, Debug)]
pub(crate) struct PoolEncoder {
    layers: ContextEncoder,
    /// The number of features, the first ones, that are averaged; the others are pooled by their maximum.
    n_means: usize,
    empty_context: EmptyContext,
    empty_episode: EmptyEpisode,
}

#[derive(Debug, Default)]
pub(crate) struct PoolInferenceBuffers {
    entries: MlpBuffers,
    no_actions: Vec<Action>,
    pooled: Vec<f32>,
    is_empty: Vec<bool>,
    latents: MlpBuffers,
}

#[derive(Debug, Default)]
pub(crate) struct PoolTrainingBuffers {
    entries: MlpBuffers,
    /// The features of every entry, if f runs over the distinct entries only.
    features: Vec<f32>,
    d_features: Vec<f32>,
    pool: Option<PrefixPool>,
    all_pooled: Vec<f32>,
    d_all_pooled: Vec<f32>,
    pooled: Vec<f32>,
    d_pooled: Vec<f32>,
    latents: MlpBuffers,
}

impl Encoder for PoolEncoder {
    type Context = RunningContext;
    type InferenceBuffers = PoolInferenceBuffers;
    type TrainingBuffers = PoolTrainingBuffers;

    const CHUNK_ROWS: usize = CHUNK_ROWS;

    fn new(layout: &mut Layout, spec: &GameSpec, config: &TrainConfig) -> PoolEncoder {
        let (observation_size, n_actions) = (spec.observation_size, spec.n_actions());
        PoolEncoder {
            layers: ContextEncoder::new(layout, observation_size, n_actions, config.encoder_width),
            n_means: match config.encoder {
                EncoderKind::MeanMaxPool => config.encoder_width / 2,
                EncoderKind::MeanPool | EncoderKind::Transformer => config.encoder_width,
            },
            empty_context: config.empty_context,
            empty_episode: config.empty_episode,
        }
    }

    fn check(_config: &TrainConfig) -> Result<(), ConfigError> {
        Ok(())
    }

    fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        self.layers.initialise(weights, rng);
    }

    fn width(&self) -> usize {
        self.layers.width()
    }

    fn context(&self, window: Option<usize>) -> RunningContext {
        RunningContext::new(self.width(), self.n_means, self.empty_episode, window)
    }

    fn clear(&self, context: &mut RunningContext) {
        context.clear();
    }

    fn keep_last_episode(&self, context: &mut RunningContext) {
        context.keep_last_episode();
    }

    fn encode(
        &self,
        weights: &[f32],
        contexts: &[RunningContext],
        lanes: &[usize],
        buffers: &mut PoolInferenceBuffers,
        latents: &mut Vec<f32>,
    ) {
        let (n_rows, width) = (lanes.len(), self.width());
        let pooled = ensure_len(&mut buffers.pooled, n_rows * width);
        buffers.is_empty.clear();
        for (pooled, lane) in pooled.chunks_exact_mut(width).zip(lanes) {
            contexts[*lane].pool_into(pooled);
            buffers.is_empty.push(contexts[*lane].is_empty());
        }
        self.layers.g.forward(weights, &[InputPart::Dense(pooled)], n_rows, &mut buffers.latents);
        zero_empty_contexts(self.empty_context, &buffers.is_empty, width, &mut buffers.latents.out);
        copy_to(latents, &buffers.latents.out[..n_rows * width]);
    }

    fn add_entries(
        &self,
        weights: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [RunningContext],
        lanes: &[usize],
        buffers: &mut PoolInferenceBuffers,
    ) {
        let parts = entry_parts(observations, actions);
        self.layers.f.forward(weights, &parts, lanes.len(), &mut buffers.entries);
        for (features, lane) in buffers.entries.out.chunks_exact(self.width()).zip(lanes) {
            contexts[*lane].add_entry(features);
        }
    }

    fn end_episodes(
        &self,
        weights: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [RunningContext],
        lanes: &[usize],
        buffers: &mut PoolInferenceBuffers,
    ) {
        buffers.no_actions.resize(lanes.len(), NO_ACTION);
        let parts = entry_parts(terminal_observations, &buffers.no_actions);
        self.layers.f.forward(weights, &parts, lanes.len(), &mut buffers.entries);
        for (features, lane) in buffers.entries.out.chunks_exact(self.width()).zip(lanes) {
            contexts[*lane].end_episode(features);
        }
    }

    fn forward(
        &self,
        weights: &[f32],
        chunk: &ContextChunk,
        _key: Option<DropoutKey>,
        buffers: &mut PoolTrainingBuffers,
    ) {
        let (width, n_decisions) = (self.width(), chunk.n_decisions);
        let Entries { observations, actions, indices } = chunk.entries();
        let parts = entry_parts(observations, actions);
        self.layers.f.forward(weights, &parts, actions.len(), &mut buffers.entries);
        let features: &[f32] = match indices {
            None => &buffers.entries.out,
            Some(indices) => {
                let features = ensure_len(&mut buffers.features, indices.len() * width);
                gather_rows(&buffers.entries.out, indices, width, features);
                features
            }
        };
        let (features, terminals) = features.split_at(n_decisions * width);
        let empty_episode = match self.empty_episode {
            EmptyEpisode::LeftOut => EmptyEpisodeMode::LeftOut,
            EmptyEpisode::CountsAsZero => EmptyEpisodeMode::CountsAsZero,
        };
        let pool = buffers.pool.get_or_insert_with(|| PrefixPool::new(width, self.n_means, empty_episode));
        let all_pooled = ensure_len(&mut buffers.all_pooled, n_decisions * width);
        for span in &chunk.spans {
            let decisions = span.decisions.start * width..span.decisions.end * width;
            pool.forward(
                &features[decisions.clone()],
                &terminals[span.episodes.start * width..span.episodes.end * width],
                &chunk.lengths[span.episodes.clone()],
                &mut all_pooled[decisions],
            );
        }
        let n_selected = chunk.selected.len();
        let pooled: &[f32] = if chunk.is_whole() {
            all_pooled
        } else {
            let pooled = ensure_len(&mut buffers.pooled, n_selected * width);
            for (pooled, decision) in pooled.chunks_exact_mut(width).zip(&chunk.selected) {
                pooled.copy_from_slice(&all_pooled[decision * width..][..width]);
            }
            pooled
        };
        self.layers.g.forward(weights, &[InputPart::Dense(pooled)], n_selected, &mut buffers.latents);
        zero_empty_contexts(self.empty_context, &chunk.is_first, width, &mut buffers.latents.out);
    }

    fn latents_and_gradients(buffers: &mut PoolTrainingBuffers) -> (&[f32], &mut [f32]) {
        (&buffers.latents.out, &mut buffers.latents.d_out)
    }

    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        chunk: &ContextChunk,
        _key: Option<DropoutKey>,
        buffers: &mut PoolTrainingBuffers,
    ) {
        let (width, n_decisions, n_selected) = (self.width(), chunk.n_decisions, chunk.selected.len());
        zero_empty_contexts(self.empty_context, &chunk.is_first, width, &mut buffers.latents.d_out);
        let pooled = if chunk.is_whole() { &buffers.all_pooled } else { &buffers.pooled };
        let d_pooled = ensure_len(&mut buffers.d_pooled, n_selected * width);
        let parts = [InputPart::Dense(&pooled[..n_selected * width])];
        let mut d_parts = [Some((&mut *d_pooled, WriteMode::Overwrite))];
        self.layers.g.backward(transposed, gradients, &parts, n_selected, &mut buffers.latents, &mut d_parts);
        let d_all_pooled: &[f32] = if chunk.is_whole() {
            d_pooled
        } else {
            let d_all_pooled = ensure_len(&mut buffers.d_all_pooled, n_decisions * width);
            d_all_pooled.fill(0.0);
            for (d_pooled, decision) in d_pooled.chunks_exact(width).zip(&chunk.selected) {
                d_all_pooled[decision * width..][..width].copy_from_slice(d_pooled);
            }
            d_all_pooled
        };
        let Entries { observations, actions, indices } = chunk.entries();
        let (features, d_features): (&[f32], &mut [f32]) = match indices {
            None => (&buffers.entries.out, &mut buffers.entries.d_out),
            Some(indices) => (&buffers.features, ensure_len(&mut buffers.d_features, indices.len() * width)),
        };
        let (d_features, d_terminals) = d_features.split_at_mut(n_decisions * width);
        let (features, terminals) = features.split_at(n_decisions * width);
        let pool = buffers.pool.as_mut().expect("made by the forward pass");
        for span in &chunk.spans {
            let decisions = span.decisions.start * width..span.decisions.end * width;
            let episodes = span.episodes.start * width..span.episodes.end * width;
            pool.backward(
                &features[decisions.clone()],
                &terminals[episodes.clone()],
                &chunk.lengths[span.episodes.clone()],
                &d_all_pooled[decisions.clone()],
                &mut d_features[decisions],
                &mut d_terminals[episodes],
            );
        }
        if let Some(indices) = indices {
            let d_entries = &mut buffers.entries.d_out[..actions.len() * width];
            d_entries.fill(0.0);
            scatter_add_rows(&buffers.d_features, indices, width, d_entries);
        }
        let parts = entry_parts(observations, actions);
        let n_entries = actions.len();
        self.layers.f.backward(transposed, gradients, &parts, n_entries, &mut buffers.entries, &mut []);
    }
}
