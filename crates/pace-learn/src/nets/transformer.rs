//! Attention instead of means: a Transformer layer over an episode's entries, another over the episodes (`docs/methods/pace.md`).
//!
//! Every entry of an episode attends to every other, so that the current episode is encoded again at each of its decisions.
//! Finished episodes do not change: a lane keeps one vector of each.

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

/// The source of a vector of zeros in a sequence.
const ZERO_ROW: u32 = u32::MAX;

/// The entry layer, both levels of attention, and g.
#[derive(Clone, Debug)]
pub(crate) struct TransformerEncoder {
    entry: Linear,
    steps: AttentionLevel,
    episodes: AttentionLevel,
    g: Mlp,
    empty_context: EmptyContext,
    empty_episode: EmptyEpisode,
    drops_in_rollout: bool,
    drops_in_evaluation: bool,
}

/// A position embedding, a Transformer layer and a mean: a map from each sequence to one vector.
#[derive(Clone, Debug)]
struct AttentionLevel {
    positions: PositionEmbedding,
    layer: TransformerLayer,
}

/// The sequences and activations of a level.
#[derive(Debug, Default)]
struct AttentionLevelBuffers {
    /// The source of every row: an index of a vector. The rows of the sequences follow each other.
    sources: Vec<u32>,
    lengths: Vec<usize>,
    /// The groups of sequences with a common prefix.
    prefix_groups: Vec<PrefixGroup>,
    prefix: Vec<u32>,
    /// The vectors with their position embeddings, followed by one vector for each row of zeros. A vector has the same position
    /// in all its sequences.
    inputs: Vec<f32>,
    d_inputs: Vec<f32>,
    positions: Vec<u32>,
    layer: TransformerBuffers,
    means: Vec<f32>,
}

/// The context of a lane.
#[derive(Clone, Debug)]
pub(crate) struct TransformerContext {
    window: Option<usize>,
    /// One vector of each finished episode.
    finished: Vec<f32>,
    /// The entries of the current one, before attention.
    entries: Vec<f32>,
    width: usize,
    /// The dropout; `None` disables it.
    dropout: Option<DropoutKey>,
    /// Whether the context is encoded in passes of its own.
    is_alone: bool,
}

impl TransformerContext {
    /// The dropout of a pass whose first context is this one.
    fn key(&self) -> Option<DropoutKey> {
        let [n_episodes, n_entries] = [&self.finished, &self.entries].map(|rows| rows.len() / self.width);
        self.dropout.map(|key| key.of(n_episodes as u64).of(n_entries as u64))
    }

    fn is_empty(&self) -> bool {
        self.finished.is_empty() && self.entries.is_empty()
    }
}

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
            // An episode has one terminal entry beside its decisions.
            steps: AttentionLevel::new(layout, "encoder.steps", spec.horizon_steps + 1, layer),
            episodes: AttentionLevel::new(layout, "encoder.episodes", spec.episodes_per_encounter, layer),
            g: latent_head(layout, width),
            empty_context: config.empty_context,
            empty_episode: config.empty_episode,
            drops_in_rollout: config.encoder_dropout_in_rollout,
            drops_in_evaluation: config.encoder_dropout_in_evaluation,
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
        let (width, dropout) = (self.width(), None);
        TransformerContext { window, finished, entries, width, dropout, is_alone: false }
    }

    fn clear(&self, context: &mut TransformerContext) {
        context.finished.clear();
        context.entries.clear();
    }

    fn keep_last_episode(&self, context: &mut TransformerContext) {
        let n_removed = context.finished.len().saturating_sub(context.width);
        context.finished.drain(..n_removed);
    }

    fn enable_rollout_dropout(&self, context: &mut TransformerContext, key: DropoutKey) {
        context.dropout = self.drops_in_rollout.then_some(key);
        context.is_alone = false;
    }

    fn enable_evaluation_dropout(&self, context: &mut TransformerContext, key: DropoutKey) {
        context.dropout = self.drops_in_evaluation.then_some(key);
        context.is_alone = self.drops_in_evaluation;
    }

    fn encode(
        &self,
        weights: &[f32],
        contexts: &[TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
        out: &mut Vec<f32>,
    ) {
        out.clear();
        for lanes in passes(contexts, lanes) {
            self.encode_together(weights, contexts, lanes, rows, out);
        }
    }

    fn add_entries(
        &self,
        weights: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
    ) {
        let width = self.width();
        let entries = ensure_len(&mut rows.entries, lanes.len() * width);
        let parts = entry_parts(observations, actions);
        self.entry.forward(weights, &parts, lanes.len(), entries);
        for (entry, lane) in entries.chunks_exact(width).zip(lanes) {
            contexts[*lane].entries.extend_from_slice(entry);
        }
    }

    fn end_episodes(
        &self,
        weights: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
    ) {
        let mut no_actions = std::mem::take(&mut rows.no_actions);
        no_actions.resize(lanes.len(), NO_ACTION);
        self.add_entries(weights, terminal_observations, &no_actions, contexts, lanes, rows);
        rows.no_actions = no_actions;
        for lanes in passes(contexts, lanes) {
            self.finish_together(weights, contexts, lanes, rows);
        }
    }

    fn forward(
        &self,
        weights: &[f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut TransformerTrainingBuffers,
    ) {
        let (width, n_entries) = (self.width(), chunk.actions.len());
        self.gather(chunk, rows);
        let entries = ensure_len(&mut rows.entries, n_entries * width);
        let parts = entry_parts(&chunk.observations, &chunk.actions);
        self.entry.forward(weights, &parts, n_entries, entries);
        self.steps.forward(weights, entries, key.map(|key| key.of(0)), &mut rows.steps);
        let (steps, episodes) = (&rows.steps, &mut rows.episodes);
        let vectors = &steps.means[..steps.lengths.len() * width];
        self.episodes.forward(weights, vectors, key.map(|key| key.of(1)), episodes);
        let n_selected = chunk.selected.len();
        let parts = [InputPart::Dense(&episodes.means[..n_selected * width])];
        self.g.forward(weights, &parts, n_selected, &mut rows.latents);
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

/// The lanes of each pass: all of them, or one by one.
fn passes<'a>(
    contexts: &[TransformerContext],
    lanes: &'a [usize],
) -> impl Iterator<Item = &'a [usize]> + use<'a> {
    let is_alone = lanes.first().is_some_and(|lane| contexts[*lane].is_alone);
    lanes.chunks(if is_alone { 1 } else { lanes.len().max(1) })
}

impl TransformerEncoder {
    /// Appends the latents of some lanes' contexts, in one pass.
    fn encode_together(
        &self,
        weights: &[f32],
        contexts: &[TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
        out: &mut Vec<f32>,
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
        self.steps.forward(weights, vectors, keys[0], steps);
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
        self.episodes.forward(weights, vectors, keys[1], episodes);
        let parts = [InputPart::Dense(&episodes.means[..n_rows * width])];
        self.g.forward(weights, &parts, n_rows, latents);
        zero_empty_contexts(self.empty_context, is_empty, width, &mut latents.out);
        out.extend_from_slice(&latents.out[..n_rows * width]);
    }

    /// Replaces the entries of some lanes' episodes by one vector each, in one pass.
    fn finish_together(
        &self,
        weights: &[f32],
        contexts: &mut [TransformerContext],
        lanes: &[usize],
        rows: &mut TransformerInferenceBuffers,
    ) {
        let width = self.width();
        let TransformerInferenceBuffers { vectors, steps, .. } = rows;
        let key = lanes.first().and_then(|lane| contexts[*lane].key());
        vectors.clear();
        steps.clear();
        for lane in lanes {
            let entries = &contexts[*lane].entries;
            steps.push_alone(vectors.len() / width, entries.len() / width, None);
            vectors.extend_from_slice(entries);
        }
        self.steps.forward(weights, vectors, key, steps);
        for (vector, lane) in steps.means.chunks_exact(width).zip(lanes) {
            let TransformerContext { window, finished, entries, .. } = &mut contexts[*lane];
            entries.clear();
            finished.extend_from_slice(vector);
            // The next episode counts, too.
            let max_len = window.map_or(usize::MAX, |window| (window.max(1) - 1) * width);
            finished.drain(..finished.len().saturating_sub(max_len));
        }
    }

    /// Builds the sequences of a chunk. The lower level has every episode that has a next one, and for every selected decision
    /// the part of its episode before it. The upper level has for every selected decision the episodes up to it.
    fn gather(&self, chunk: &ContextChunk, rows: &mut TransformerTrainingBuffers) {
        let TransformerTrainingBuffers { steps, episodes, .. } = rows;
        steps.clear();
        episodes.clear();
        let mut selected = chunk.selected.iter().copied().peekable();
        for span in &chunk.spans {
            episodes.start_group();
            let mut start = span.decisions.start;
            for episode in span.episodes.clone() {
                steps.start_group();
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
                    steps.extend_prefix(decision, 1);
                }
                if episode + 1 < span.episodes.end {
                    let terminal = (chunk.n_decisions + episode) as u32;
                    let finished = steps.push(Some(terminal));
                    episodes.extend_prefix(finished as usize, 1);
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

    /// Writes the mean of every sequence to `rows.means`; the mean of an empty sequence is zero.
    fn forward(
        &self,
        weights: &[f32],
        vectors: &[f32],
        key: Option<DropoutKey>,
        rows: &mut AttentionLevelBuffers,
    ) {
        let width = self.layer.width();
        rows.find_positions(vectors.len() / width, self.positions.n_positions());
        let inputs = ensure_len(&mut rows.inputs, rows.positions.len() * width);
        let (of_vectors, zeros) = inputs.split_at_mut(vectors.len());
        of_vectors.copy_from_slice(vectors);
        zeros.fill(0.0);
        self.positions.forward(weights, &rows.positions, inputs);
        let AttentionLevelBuffers { sources, lengths, prefix_groups, prefix, .. } = rows;
        let sequences = Sequences { sources, lengths, prefix_groups, prefix };
        self.layer.forward(weights, inputs, sequences, key, &mut rows.layer);
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

    /// Adds the gradient of the weights, and that of the vectors to `d_vectors`, from the gradient of the means.
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
        let n = rows.positions.len() * width;
        let d_inputs = ensure_len(&mut rows.d_inputs, n);
        let AttentionLevelBuffers { sources, lengths, prefix_groups, prefix, .. } = rows;
        let sequences = Sequences { sources, lengths, prefix_groups, prefix };
        let inputs = &rows.inputs[..n];
        self.layer.backward(transposed, gradients, inputs, sequences, key, &mut rows.layer, d_inputs);
        self.positions.backward(gradients, &rows.positions, d_inputs);
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

    /// Starts a group of sequences with a common prefix, which is empty at first.
    fn start_group(&mut self) {
        self.prefix_groups.push(PrefixGroup { n_sequences: 0, prefix_len: 0 });
    }

    /// Appends consecutive vectors to the prefix of the current group.
    fn extend_prefix(&mut self, first: usize, n: usize) {
        self.prefix.extend((first..first + n).map(|row| row as u32));
        self.prefix_groups.last_mut().expect("a group was started").prefix_len += n;
    }

    /// Adds a sequence to the current group: the prefix so far, followed by `own`. Returns the index of the sequence.
    fn push(&mut self, own: Option<u32>) -> u32 {
        let group = self.prefix_groups.last_mut().expect("a group was started");
        group.n_sequences += 1;
        let prefix = &self.prefix[self.prefix.len() - group.prefix_len..];
        self.sources.extend_from_slice(prefix);
        self.sources.extend(own);
        self.lengths.push(prefix.len() + usize::from(own.is_some()));
        self.lengths.len() as u32 - 1
    }

    /// Adds a group with one sequence of consecutive vectors, followed by `own`.
    fn push_alone(&mut self, first: usize, n: usize, own: Option<u32>) {
        self.start_group();
        self.extend_prefix(first, n);
        self.push(own);
    }

    /// Finds the position of every vector in its sequences. Positions after the last one are replaced by the last one. Rows of
    /// zeros become inputs after the vectors.
    fn find_positions(&mut self, n_vectors: usize, n_positions: usize) {
        self.positions.clear();
        self.positions.resize(n_vectors, 0);
        let mut rows = self.sources.iter_mut();
        for length in &self.lengths {
            for (position, source) in rows.by_ref().take(*length).enumerate() {
                let position = position.min(n_positions - 1) as u32;
                if *source == ZERO_ROW {
                    *source = self.positions.len() as u32;
                    self.positions.push(position);
                } else {
                    self.positions[*source as usize] = position;
                }
            }
        }
    }
}
