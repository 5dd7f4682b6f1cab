//! The paper's pooling: a mean over episodes of the mean over each episode's entries (methods.md 2.1, 5.1).

use pace_games::{Action, GameError, GameSpec, NO_ACTION, Stream};
use pace_nn::product::ProductShape;
use pace_nn::{DropoutKey, FadingTrace, Parameters, PrefixMeans};

use super::encoder::{ContextChunk, Encoder};
use super::{CHUNK_ROWS, ContextEncoder, EncoderRows, blank_first, fit};
use crate::config::{EmptyContext, EmptyEpisode, TrainConfig};
use crate::context::RunningContext;

/// f, means, g.
#[derive(Clone, Debug)]
pub(crate) struct MeansEncoder {
    layers: ContextEncoder,
    empty_context: EmptyContext,
    empty_episode: EmptyEpisode,
    /// How fast the memory beside the means fades, if there is one.
    trace_decay: Option<f32>,
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct MeansActRows {
    entries: EncoderRows,
    no_actions: Vec<Action>,
    pooled: Vec<f32>,
    traces: Vec<f32>,
    is_empty: Vec<bool>,
    latents: EncoderRows,
}

/// The rows of a pass that learns.
#[derive(Debug, Default)]
pub(crate) struct MeansLearnRows {
    entries: EncoderRows,
    means: Option<PrefixMeans>,
    pooled: Pooled,
    trace: Option<FadingTrace>,
    traces: Pooled,
    latents: EncoderRows,
}

/// One kind of pooled vectors before all decisions, and before the selected ones where these are fewer.
#[derive(Debug, Default)]
struct Pooled {
    all: Vec<f32>,
    d_all: Vec<f32>,
    selected: Vec<f32>,
    d_selected: Vec<f32>,
}

impl Pooled {
    /// The vectors of the selected decisions, once `all` is written.
    fn select(&mut self, chunk: &ContextChunk, width: usize) {
        if !chunk.is_whole() {
            let selected = fit(&mut self.selected, chunk.selected.len() * width);
            for (row, decision) in selected.chunks_exact_mut(width).zip(&chunk.selected) {
                row.copy_from_slice(&self.all[decision * width..][..width]);
            }
        }
    }

    /// These vectors, and the place for their gradients.
    fn selected(&mut self, chunk: &ContextChunk, width: usize) -> (&[f32], &mut [f32]) {
        let n = chunk.selected.len() * width;
        let selected = if chunk.is_whole() { &self.all } else { &self.selected };
        (&selected[..n], fit(&mut self.d_selected, n))
    }

    /// The gradients of all vectors, once those of the selected ones are written.
    fn d_all(&mut self, chunk: &ContextChunk, width: usize) -> &[f32] {
        let d_selected = &self.d_selected[..chunk.selected.len() * width];
        if chunk.is_whole() {
            return d_selected;
        }
        let d_all = fit(&mut self.d_all, chunk.n_decisions * width);
        d_all.fill(0.0);
        for (row, decision) in d_selected.chunks_exact(width).zip(&chunk.selected) {
            d_all[decision * width..][..width].copy_from_slice(row);
        }
        d_all
    }
}

impl Encoder for MeansEncoder {
    type Context = RunningContext;
    type ActRows = MeansActRows;
    type LearnRows = MeansLearnRows;

    const CHUNK_ROWS: usize = CHUNK_ROWS;

    fn new(parameters: &mut Parameters, spec: &GameSpec, config: &TrainConfig) -> MeansEncoder {
        let (observation_size, n_actions) = (spec.observation_size, spec.n_actions());
        let width = config.encoder_width;
        let trace_decay = (config.trace_decay > 0.0).then_some(config.trace_decay as f32);
        MeansEncoder {
            layers: ContextEncoder::new(
                parameters,
                observation_size,
                n_actions,
                width,
                1 + usize::from(trace_decay.is_some()),
            ),
            empty_context: config.empty_context,
            empty_episode: config.empty_episode,
            trace_decay,
        }
    }

    fn check(_config: &TrainConfig) -> Result<(), GameError> {
        Ok(())
    }

    fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        self.layers.initialise(parameters, rng);
    }

    fn transpose(&self, parameters: &[f32], transposed: &mut [f32]) {
        self.layers.layers().for_each(|layer| layer.transpose(parameters, transposed));
    }

    fn width(&self) -> usize {
        self.layers.width()
    }

    fn context(&self, window: Option<usize>) -> RunningContext {
        let trace = self.trace_decay.map(|decay| FadingTrace::new(self.width(), decay));
        RunningContext::new(self.width(), self.empty_episode, window, trace)
    }

    fn forget(&self, context: &mut RunningContext) {
        context.clear();
    }

    fn forget_but_last(&self, context: &mut RunningContext) {
        context.keep_last_episode();
    }

    fn encode(
        &self,
        parameters: &[f32],
        contexts: &[RunningContext],
        lanes: &[usize],
        rows: &mut MeansActRows,
    ) {
        let (n_rows, width) = (lanes.len(), self.width());
        let pooled = fit(&mut rows.pooled, n_rows * width);
        rows.is_empty.clear();
        rows.traces.clear();
        for (pooled, lane) in pooled.chunks_exact_mut(width).zip(lanes) {
            contexts[*lane].pool_into(pooled);
            rows.is_empty.push(contexts[*lane].is_empty());
            contexts[*lane].trace().iter().for_each(|trace| rows.traces.extend_from_slice(trace));
        }
        let pooled = [&*pooled, &rows.traces];
        self.layers.g().forward(parameters, &pooled[..self.n_pooled()], n_rows, &mut rows.latents);
        blank_first(self.empty_context, &rows.is_empty, width, &mut rows.latents.out);
    }

    fn latents(rows: &MeansActRows) -> &[f32] {
        &rows.latents.out
    }

    fn add_entries(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [RunningContext],
        lanes: &[usize],
        rows: &mut MeansActRows,
    ) {
        self.layers.encode_entries(parameters, observations, actions, &mut rows.entries);
        for (features, lane) in rows.entries.out.chunks_exact(self.width()).zip(lanes) {
            contexts[*lane].add_entry(features);
        }
    }

    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [RunningContext],
        lanes: &[usize],
        rows: &mut MeansActRows,
    ) {
        rows.no_actions.resize(lanes.len(), NO_ACTION);
        self.layers.encode_entries(parameters, terminal_observations, &rows.no_actions, &mut rows.entries);
        for (features, lane) in rows.entries.out.chunks_exact(self.width()).zip(lanes) {
            contexts[*lane].end_episode(features);
        }
    }

    fn forward(
        &self,
        parameters: &[f32],
        chunk: &ContextChunk,
        _key: Option<DropoutKey>,
        rows: &mut MeansLearnRows,
    ) {
        let (width, n_decisions) = (self.width(), chunk.n_decisions);
        self.layers.encode_entries(parameters, &chunk.observations, &chunk.actions, &mut rows.entries);
        let (features, terminals) = rows.entries.out.split_at(n_decisions * width);
        let empty_episode = match self.empty_episode {
            EmptyEpisode::LeftOut => pace_nn::EmptyEpisode::LeftOut,
            EmptyEpisode::CountsAsZero => pace_nn::EmptyEpisode::CountsAsZero,
        };
        let means = rows.means.get_or_insert_with(|| PrefixMeans::new(width, empty_episode));
        let all_pooled = fit(&mut rows.pooled.all, n_decisions * width);
        for span in &chunk.spans {
            means.forward(
                &features[span.decisions.start * width..span.decisions.end * width],
                &terminals[span.episodes.start * width..span.episodes.end * width],
                &chunk.lengths[span.episodes.clone()],
                &mut all_pooled[span.decisions.start * width..span.decisions.end * width],
            );
        }
        rows.pooled.select(chunk, width);
        if let Some(decay) = self.trace_decay {
            let trace = rows.trace.get_or_insert_with(|| FadingTrace::new(width, decay));
            // The episodes of all encounters lie one after the other, and no trace outlives its episode.
            let traces = fit(&mut rows.traces.all, n_decisions * width);
            trace.forward(features, &chunk.lengths, traces);
            rows.traces.select(chunk, width);
        }
        let (pooled, _) = self.selected([&mut rows.pooled, &mut rows.traces], chunk);
        self.layers.g().forward(parameters, &pooled, chunk.selected.len(), &mut rows.latents);
        blank_first(self.empty_context, &chunk.is_first, width, &mut rows.latents.out);
    }

    fn latents_and_gradients(rows: &mut MeansLearnRows) -> (&[f32], &mut [f32]) {
        (&rows.latents.out, &mut rows.latents.d_out)
    }

    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        chunk: &ContextChunk,
        _key: Option<DropoutKey>,
        rows: &mut MeansLearnRows,
    ) {
        let (width, n_decisions) = (self.width(), chunk.n_decisions);
        blank_first(self.empty_context, &chunk.is_first, width, &mut rows.latents.d_out);
        let (pooled, mut d_pooled) = self.selected([&mut rows.pooled, &mut rows.traces], chunk);
        self.layers.g().backward(transposed, gradients, &pooled, &mut rows.latents, &mut d_pooled);
        let d_all_pooled = rows.pooled.d_all(chunk, width);
        let (d_features, d_terminals) = rows.entries.d_out.split_at_mut(n_decisions * width);
        let means = rows.means.as_mut().expect("made on the way forward");
        for span in &chunk.spans {
            means.backward(
                &d_all_pooled[span.decisions.start * width..span.decisions.end * width],
                &chunk.lengths[span.episodes.clone()],
                &mut d_features[span.decisions.start * width..span.decisions.end * width],
                &mut d_terminals[span.episodes.start * width..span.episodes.end * width],
            );
        }
        if let Some(trace) = &mut rows.trace {
            trace.backward(rows.traces.d_all(chunk, width), &chunk.lengths, d_features);
        }
        let (observations, actions) = (&chunk.observations, &chunk.actions);
        self.layers.entries_backward(transposed, gradients, observations, actions, &mut rows.entries);
    }

    fn products(&self, chunk: &ContextChunk) -> Vec<ProductShape> {
        let mut products = self.layers.products(chunk.actions.len());
        products.extend(self.layers.g().products(chunk.selected.len()));
        products
    }
}

impl MeansEncoder {
    /// How many vectors g is given: the means, and the trace if there is one.
    fn n_pooled(&self) -> usize {
        1 + usize::from(self.trace_decay.is_some())
    }

    /// Those of the selected decisions, and the places for their gradients.
    fn selected<'a>(
        &self,
        pooled: [&'a mut Pooled; 2],
        chunk: &ContextChunk,
    ) -> (Vec<&'a [f32]>, Vec<&'a mut [f32]>) {
        pooled.into_iter().take(self.n_pooled()).map(|kind| kind.selected(chunk, self.width())).unzip()
    }
}
