//! Attention in place of the means: a Transformer layer over an episode's entries, another over the episodes (`docs/methods/pace.md`).
//!
//! Every entry of an episode sees every other, so that the current episode is encoded anew at each of its decisions. Only
//! finished episodes stay as they are: a lane keeps one vector of each.

use pace_games::{Action, ConfigError, GameSpec, NO_ACTION, Stream};
use pace_nn::{
    Activation, DropoutKey, InputPart, Layout, Linear, Mlp, MlpBuffers, PositionEmbedding, PrefixGroup,
    Sequences, TransformerBuffers, TransformerConfig, TransformerLayer, WriteMode, kernels,
};

use super::encoder::{ContextChunk, Encoder, entry_parts, latent_head};
use super::{ensure_len, orthogonal, zero_empty_contexts};
use crate::config::{EmptyContext, EmptyEpisode, TrainConfig};

/// Heads of the attention.
const N_HEADS: usize = 4;

/// Stands for a vector of zeros among the sources of a sequence.
const ZERO_ROW: u32 = u32::MAX;

/// Where the weights lie.
#[derive(Clone, Debug)]
pub(crate) struct TransformerEncoder {
    entry: Linear,
    steps: AttentionLevel,
    episodes: AttentionLevel,
    g: Mlp,
    empty_context: EmptyContext,
    empty_episode: EmptyEpisode,
    drops_in_play: bool,
}

/// PositionEmbedding, a layer and a mean: from sequences to one vector each.
#[derive(Clone, Debug)]
struct AttentionLevel {
    positions: PositionEmbedding,
    layer: TransformerLayer,
}

/// The rows of a level, kept for the way back.
#[derive(Debug, Default)]
struct AttentionLevelBuffers {
    /// The sequences, one after the other: where each row comes from.
    sources: Vec<u32>,
    lengths: Vec<usize>,
    /// What they begin with.
    prefix_groups: Vec<PrefixGroup>,
    prefix: Vec<u32>,
    /// The vectors with their positions, and behind them one for each row that stands for nothing. A vector has the same
    /// place in all sequences that it is in.
    inputs: Vec<f32>,
    d_inputs: Vec<f32>,
    places: Vec<u32>,
    layer: TransformerBuffers,
    means: Vec<f32>,
}

/// What a lane keeps.
#[derive(Clone, Debug)]
pub(crate) struct TransformerContext {
    window: Option<usize>,
    /// One vector of each finished episode.
    finished: Vec<f32>,
    /// The entries of the current one, before attention.
    entries: Vec<f32>,
    width: usize,
    /// What is dropped, in training alone.
    dropout: Option<DropoutKey>,
}

impl TransformerContext {
    /// What a pass drops that this context is the first of.
    fn key(&self) -> Option<DropoutKey> {
        let [n_episodes, n_entries] = [&self.finished, &self.entries].map(|rows| rows.len() / self.width);
        self.dropout.map(|key| key.of(n_episodes as u64).of(n_entries as u64))
    }

    fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.entries.is_empty()
    }
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct TransformerInferenceBuffers {
    entries: Vec<f32>,
    no_actions: Vec<Action>,
    /// The entries of all lanes that have some, and then the vectors of all episodes.
    vectors: Vec<f32>,
    steps: AttentionLevelBuffers,
    episodes: AttentionLevelBuffers,
    is_empty: Vec<bool>,
    latents: MlpBuffers,
}

/// The rows of a pass that learns.
#[derive(Debug, Default)]
pub(crate) struct TransformerTrainingBuffers {
    entries: Vec<f32>,
    d_entries: Vec<f32>,
    steps: AttentionLevelBuffers,
    d_step_means: Vec<f32>,
    episodes: AttentionLevelBuffers,
    d_pooled: Vec<f32>,
    latents: MlpBuffers,
}

impl Encoder for TransformerEncoder {
    type Context = TransformerContext;
    type InferenceBuffers = TransformerInferenceBuffers;
    type TrainingBuffers = TransformerTrainingBuffers;

    /// One encounter at a time: its sequences have many times as many rows as it has decisions.
    const CHUNK_ROWS: usize = 1;

    fn new(layout: &mut Layout, spec: &GameSpec, config: &TrainConfig) -> TransformerEncoder {
        let width = config.encoder_width;
        let input = [spec.observation_size, spec.n_actions()];
        let layer = TransformerConfig {
            width,
            n_heads: N_HEADS,
            hidden_width: width,
            dropout: config.encoder_dropout as f32,
        };
        TransformerEncoder {
            entry: Linear::new(layout, "encoder.entry", &input, width, Activation::Relu),
            // The terminal entry comes on top of the decisions.
            steps: AttentionLevel::new(layout, "encoder.steps", spec.horizon_steps + 1, layer),
            episodes: AttentionLevel::new(layout, "encoder.episodes", spec.episodes_per_encounter, layer),
            g: latent_head(layout, width),
            empty_context: config.empty_context,
            empty_episode: config.empty_episode,
            drops_in_play: config.encoder_dropout_in_rollout,
        }
    }

    fn check(config: &TrainConfig) -> Result<(), ConfigError> {
        if config.encoder_width.is_multiple_of(N_HEADS) {
            return Ok(());
        }
        let expected = format!("a multiple of {N_HEADS}, the heads of the transformer");
        Err(ConfigError::bad_value("encoder_width", &config.encoder_width, &expected))
    }

    fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        orthogonal(weights, &self.entry, std::f64::consts::SQRT_2, rng);
        for level in [&self.steps, &self.episodes] {
            level.positions.initialise(weights, &mut || rng.unit());
            level.layer.initialise(weights, &mut || rng.unit());
        }
        for layer in self.g.layers() {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, rng);
        }
    }

    fn width(&self) -> usize {
        self.entry.n_out()
    }

    fn context(&self, window: Option<usize>) -> TransformerContext {
        let (finished, entries) = (Vec::new(), Vec::new());
        TransformerContext { window, finished, entries, width: self.width(), dropout: None }
    }

    fn clear(&self, context: &mut TransformerContext) {
        context.finished.clear();
        context.entries.clear();
        context.dropout = None;
    }

    fn keep_last_episode(&self, context: &mut TransformerContext) {
        let n_forgotten = context.finished.len().saturating_sub(context.width);
        context.finished.drain(..n_forgotten);
    }

    fn enable_rollout_dropout(&self, context: &mut TransformerContext, key: DropoutKey) {
        context.dropout = self.drops_in_play.then_some(key);
    }

    fn encode(
        &self,
        parameters: &[f32],
        contexts: &[TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
    ) {
        let (n_rows, width) = (lanes.len(), self.width());
        let TransformerInferenceBuffers { vectors, steps, episodes, is_empty, latents, .. } = rows;
        let key = lanes.first().and_then(|lane| contexts[*lane].key());
        let keys = [0, 1].map(|index| key.map(|key| key.of(index)));
        vectors.clear();
        steps.clear();
        for lane in lanes {
            let entries = &contexts[*lane].entries;
            if !entries.is_empty() {
                steps.push_alone(vectors.len() / width, entries.len() / width, None);
                vectors.extend_from_slice(entries);
            }
        }
        self.steps.forward(parameters, vectors, keys[0], steps);
        // The vectors of current episodes come first, then those of finished ones.
        vectors.clear();
        vectors.extend_from_slice(&steps.means[..steps.lengths.len() * width]);
        episodes.clear();
        is_empty.clear();
        let mut current = 0u32;
        for lane in lanes {
            let context = &contexts[*lane];
            let first = vectors.len() / width;
            vectors.extend_from_slice(&context.finished);
            let last = if context.entries.is_empty() {
                (self.empty_episode == EmptyEpisode::CountsAsZero).then_some(ZERO_ROW)
            } else {
                current += 1;
                Some(current - 1)
            };
            episodes.push_alone(first, context.finished.len() / width, last);
            is_empty.push(context.is_empty());
        }
        self.episodes.forward(parameters, vectors, keys[1], episodes);
        let parts = [InputPart::Dense(&episodes.means[..n_rows * width])];
        self.g.forward(parameters, &parts, n_rows, latents);
        zero_empty_contexts(self.empty_context, is_empty, width, &mut latents.out);
    }

    fn latents(rows: &TransformerInferenceBuffers) -> &[f32] {
        &rows.latents.out
    }

    fn add_entries(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
    ) {
        let width = self.width();
        let entries = ensure_len(&mut rows.entries, lanes.len() * width);
        let parts = entry_parts(observations, actions);
        self.entry.forward(parameters, &parts, lanes.len(), entries);
        for (entry, lane) in entries.chunks_exact(width).zip(lanes) {
            contexts[*lane].entries.extend_from_slice(entry);
        }
    }

    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
    ) {
        let width = self.width();
        let mut no_actions = std::mem::take(&mut rows.no_actions);
        no_actions.resize(lanes.len(), NO_ACTION);
        self.add_entries(parameters, terminal_observations, &no_actions, contexts, lanes, rows);
        rows.no_actions = no_actions;
        let TransformerInferenceBuffers { vectors, steps, .. } = rows;
        let key = lanes.first().and_then(|lane| contexts[*lane].key());
        vectors.clear();
        steps.clear();
        for lane in lanes {
            let entries = &contexts[*lane].entries;
            steps.push_alone(vectors.len() / width, entries.len() / width, None);
            vectors.extend_from_slice(entries);
        }
        self.steps.forward(parameters, vectors, key, steps);
        for (vector, lane) in steps.means.chunks_exact(width).zip(lanes) {
            let TransformerContext { window, finished, entries, .. } = &mut contexts[*lane];
            entries.clear();
            finished.extend_from_slice(vector);
            // The episode that begins now needs a place in the window too.
            let most = window.map_or(usize::MAX, |window| (window.max(1) - 1) * width);
            finished.drain(..finished.len().saturating_sub(most));
        }
    }

    fn forward(
        &self,
        parameters: &[f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut TransformerTrainingBuffers,
    ) {
        let (width, n_entries) = (self.width(), chunk.actions.len());
        self.gather(chunk, rows);
        let entries = ensure_len(&mut rows.entries, n_entries * width);
        let parts = entry_parts(&chunk.observations, &chunk.actions);
        self.entry.forward(parameters, &parts, n_entries, entries);
        self.steps.forward(parameters, entries, key.map(|key| key.of(0)), &mut rows.steps);
        let (steps, episodes) = (&rows.steps, &mut rows.episodes);
        let vectors = &steps.means[..steps.lengths.len() * width];
        self.episodes.forward(parameters, vectors, key.map(|key| key.of(1)), episodes);
        let n_selected = chunk.selected.len();
        let parts = [InputPart::Dense(&episodes.means[..n_selected * width])];
        self.g.forward(parameters, &parts, n_selected, &mut rows.latents);
        zero_empty_contexts(self.empty_context, &chunk.is_first, width, &mut rows.latents.out);
    }

    fn latents_and_gradients(rows: &mut TransformerTrainingBuffers) -> (&[f32], &mut [f32]) {
        (&rows.latents.out, &mut rows.latents.d_out)
    }

    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut TransformerTrainingBuffers,
    ) {
        let (width, n_entries, n_selected) = (self.width(), chunk.actions.len(), chunk.selected.len());
        zero_empty_contexts(self.empty_context, &chunk.is_first, width, &mut rows.latents.d_out);
        let d_pooled = ensure_len(&mut rows.d_pooled, n_selected * width);
        let parts = [InputPart::Dense(&rows.episodes.means[..n_selected * width])];
        let mut d_parts = [Some((&mut *d_pooled, WriteMode::Overwrite))];
        self.g.backward(transposed, gradients, &parts, n_selected, &mut rows.latents, &mut d_parts);
        let d_step_means = ensure_len(&mut rows.d_step_means, rows.steps.lengths.len() * width);
        d_step_means.fill(0.0);
        let keys = [0, 1].map(|index| key.map(|key| key.of(index)));
        self.episodes.backward(transposed, gradients, d_pooled, keys[1], &mut rows.episodes, d_step_means);
        let d_entries = ensure_len(&mut rows.d_entries, n_entries * width);
        d_entries.fill(0.0);
        self.steps.backward(transposed, gradients, d_step_means, keys[0], &mut rows.steps, d_entries);
        let parts = entry_parts(&chunk.observations, &chunk.actions);
        let entries = &rows.entries[..n_entries * width];
        self.entry.backward(transposed, gradients, &parts, entries, d_entries, &mut [None, None]);
    }
}

impl TransformerEncoder {
    /// The sequences of a chunk: every episode that has a next one, the part of its episode before every selected decision,
    /// and for each of these decisions the episodes it looks back on.
    fn gather(&self, chunk: &ContextChunk, rows: &mut TransformerTrainingBuffers) {
        let TransformerTrainingBuffers { steps, episodes, .. } = rows;
        steps.clear();
        episodes.clear();
        let mut selected = chunk.selected.iter().copied().peekable();
        for span in &chunk.spans {
            episodes.begin_chain();
            let mut start = span.decisions.start;
            for episode in span.episodes.clone() {
                steps.begin_chain();
                let end = start + chunk.lengths[episode] as usize;
                for decision in start..end {
                    if selected.next_if_eq(&decision).is_some() {
                        let current = if decision > start {
                            Some(steps.push(None))
                        } else {
                            (self.empty_episode == EmptyEpisode::CountsAsZero).then_some(ZERO_ROW)
                        };
                        episodes.push(current);
                    }
                    steps.link(decision, 1);
                }
                if episode + 1 < span.episodes.end {
                    let terminal = (chunk.n_decisions + episode) as u32;
                    let finished = steps.push(Some(terminal));
                    episodes.link(finished as usize, 1);
                }
                start = end;
            }
        }
    }
}

impl AttentionLevel {
    fn new(layout: &mut Layout, name: &str, n_positions: usize, config: TransformerConfig) -> AttentionLevel {
        AttentionLevel {
            positions: PositionEmbedding::new(
                layout,
                &format!("{name}.positions"),
                n_positions,
                config.width,
            ),
            layer: TransformerLayer::new(layout, name, config),
        }
    }

    /// Leaves the mean of every sequence of `vectors` in `rows.means`; that of an empty one is zero.
    fn forward(
        &self,
        parameters: &[f32],
        vectors: &[f32],
        key: Option<DropoutKey>,
        rows: &mut AttentionLevelBuffers,
    ) {
        let width = self.layer.width();
        rows.find_places(vectors.len() / width, self.positions.n_positions());
        let inputs = ensure_len(&mut rows.inputs, rows.places.len() * width);
        let (of_vectors, of_nothing) = inputs.split_at_mut(vectors.len());
        of_vectors.copy_from_slice(vectors);
        of_nothing.fill(0.0);
        self.positions.forward(parameters, &rows.places, inputs);
        let AttentionLevelBuffers { sources, lengths, prefix_groups, prefix, .. } = rows;
        let sequences = Sequences { sources, lengths, prefix_groups, prefix };
        self.layer.forward(parameters, inputs, sequences, key, &mut rows.layer);
        let means = ensure_len(&mut rows.means, rows.lengths.len() * width);
        means.fill(0.0);
        let mut first = 0;
        for (mean, length) in means.chunks_exact_mut(width).zip(&rows.lengths) {
            let last = first + length;
            if *length > 0 {
                kernels::add_rows(&rows.layer.out[first * width..last * width], mean);
                mean.iter_mut().for_each(|value| *value /= *length as f32);
            }
            first = last;
        }
    }

    /// Takes the gradient of the means back into `gradients`, and adds that of the vectors to `d_vectors`.
    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        d_means: &[f32],
        key: Option<DropoutKey>,
        rows: &mut AttentionLevelBuffers,
        d_vectors: &mut [f32],
    ) {
        let width = self.layer.width();
        let mut first = 0;
        for (d_mean, length) in d_means.chunks_exact(width).zip(&rows.lengths) {
            let last = first + length;
            for d_row in rows.layer.d_out[first * width..last * width].chunks_exact_mut(width) {
                kernels::scale_into(d_row, d_mean, 1.0 / *length as f32);
            }
            first = last;
        }
        let n = rows.places.len() * width;
        let d_inputs = ensure_len(&mut rows.d_inputs, n);
        let AttentionLevelBuffers { sources, lengths, prefix_groups, prefix, .. } = rows;
        let sequences = Sequences { sources, lengths, prefix_groups, prefix };
        let inputs = &rows.inputs[..n];
        self.layer.backward(transposed, gradients, inputs, sequences, key, &mut rows.layer, d_inputs);
        self.positions.backward(gradients, &rows.places, d_inputs);
        kernels::add(d_vectors, &d_inputs[..d_vectors.len()]);
    }
}

impl AttentionLevelBuffers {
    fn clear(&mut self) {
        self.sources.clear();
        self.lengths.clear();
        self.prefix_groups.clear();
        self.prefix.clear();
    }

    /// The sequences that follow begin with the vectors linked from here on.
    fn begin_chain(&mut self) {
        self.prefix_groups.push(PrefixGroup { n_sequences: 0, n_links: 0 });
    }

    /// Adds consecutive vectors to the chain.
    fn link(&mut self, first: usize, n: usize) {
        self.prefix.extend((first..first + n).map(|row| row as u32));
        self.prefix_groups.last_mut().expect("a chain was begun").n_links += n;
    }

    /// Adds the sequence of all that is on the chain by now, and a vector of its own behind; returns its number.
    fn push(&mut self, own: Option<u32>) -> u32 {
        let chain = self.prefix_groups.last_mut().expect("a chain was begun");
        chain.n_sequences += 1;
        let prefix = &self.prefix[self.prefix.len() - chain.n_links..];
        self.sources.extend_from_slice(prefix);
        self.sources.extend(own);
        self.lengths.push(prefix.len() + usize::from(own.is_some()));
        self.lengths.len() as u32 - 1
    }

    /// Adds the only sequence of a chain of consecutive vectors.
    fn push_alone(&mut self, first: usize, n: usize, own: Option<u32>) {
        self.begin_chain();
        self.link(first, n);
        self.push(own);
    }

    /// The place of every vector in its sequences; what comes behind the last position has that one. Rows that stand for
    /// nothing become inputs behind the vectors.
    fn find_places(&mut self, n_vectors: usize, n_positions: usize) {
        self.places.clear();
        self.places.resize(n_vectors, 0);
        let mut rows = self.sources.iter_mut();
        for length in &self.lengths {
            for (place, source) in rows.by_ref().take(*length).enumerate() {
                let place = place.min(n_positions - 1) as u32;
                if *source == ZERO_ROW {
                    *source = self.places.len() as u32;
                    self.places.push(place);
                } else {
                    self.places[*source as usize] = place;
                }
            }
        }
    }
}
