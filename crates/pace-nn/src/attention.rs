//! Multi-head self-attention over a chunk of sequences of different lengths.
//!
//! Sequences lie one after the other, without padding. A row attends to the rows of its own sequence only, so no padding
//! mask is needed. Sequences with a common prefix share work; the histories of an encounter's decisions are an example.
//! Queries, keys and values are computed once per input; attention inside the prefix is computed once per [`PrefixGroup`]
//! (`prefix_attention`). The layer around the attention is in `transformer`.

use std::ops::Range;

use crate::dropout::{Dropout, DropoutKey};
use crate::initialise;
use crate::layout::Layout;
use crate::linear::{Activation, InputPart, Linear, WriteMode};
use crate::prefix_attention::{AttendedRows, HeadColumns, PrefixGroupHead, stride};
use crate::rows::{ensure_len, gather_rows, scatter_add_rows};

/// A chunk of sequences, one after the other. Each row of a sequence is an input, given by its index.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// Index of the input of each row.
    pub sources: &'a [u32],
    /// Number of rows of each sequence.
    pub lengths: &'a [usize],
    /// Groups of sequences with a common prefix, in the order of the sequences.
    pub prefix_groups: &'a [PrefixGroup],
    /// Input indices of the prefixes of all groups, one group after the other.
    pub prefix: &'a [u32],
}

/// Consecutive sequences with a common prefix.
///
/// A sequence consists of the first inputs of the group's prefix and at most one further input, its suffix. It has at least
/// as many inputs of the prefix as the sequence before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixGroup {
    /// Number of sequences.
    pub n_sequences: usize,
    /// Number of inputs of the prefix.
    pub prefix_len: usize,
}

impl Sequences<'_> {
    /// Number of rows of all sequences.
    pub(crate) fn n_rows(&self) -> usize {
        self.sources.len()
    }

    /// Copies its input to every row of the sequences.
    pub(crate) fn gather(&self, inputs: &[f32], width: usize, rows: &mut [f32]) {
        gather_rows(inputs, self.sources, width, rows);
    }

    /// Adds the gradient of every row to the gradient of its input.
    pub(crate) fn scatter_add(&self, d_rows: &[f32], width: usize, d_inputs: &mut [f32]) {
        scatter_add_rows(d_rows, self.sources, width, d_inputs);
    }
}

/// A self-attention layer: a projection to queries, keys and values, the heads, and an output projection.
#[derive(Clone, Debug)]
pub struct Attention {
    n_heads: usize,
    width: usize,
    projection: Linear,
    output: Linear,
    dropout: Dropout,
}

/// Intermediate results of the forward pass over one chunk, kept for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct AttentionBuffers {
    /// Query, key and value of every input, each `width` long.
    projected: Vec<f32>,
    d_projected: Vec<f32>,
    plan: AttentionPlan,
    /// Score of every pair in the plan.
    scores: Vec<f32>,
    /// Dropout factor of every pair's attention weight; zero drops the pair.
    dropout_mask: Vec<f32>,
    /// Maximum score for every head and row.
    maxima: Vec<f32>,
    /// Softmax denominator for every head and row, relative to the maximum score.
    sums: Vec<f32>,
    head_outputs: Vec<f32>,
    d_head_outputs: Vec<f32>,
    group_head: PrefixGroupHead,
}

/// Positions of all pairs in the buffer of scores. A pair is a row and a row it attends to.
#[derive(Clone, Debug, Default)]
struct AttentionPlan {
    groups: Vec<PrefixGroupPlan>,
    sequences: Vec<SequencePlan>,
    /// Length of the buffer of scores, for all heads.
    n_pairs: usize,
}

#[derive(Clone, Debug)]
struct PrefixGroupPlan {
    /// The group's part of [`Sequences::prefix`].
    prefix: Range<usize>,
    /// The group's sequences in the plan.
    sequences: Range<usize>,
    /// Start of the pairs within the prefix: for every head a square matrix with rows of [`stride`].
    first_pair: usize,
}

#[derive(Clone, Debug)]
struct SequencePlan {
    first_row: usize,
    /// Number of inputs of the prefix that the sequence has.
    prefix_len: usize,
    /// Input of the row after them, if there is one.
    suffix: Option<u32>,
    /// Start of the pairs of the suffix row: `2 · prefix_len + 1` for every head.
    first_pair: usize,
}

impl AttentionPlan {
    fn rebuild(&mut self, n_heads: usize, sequences: Sequences<'_>) {
        let Sequences { sources, lengths, prefix_groups, prefix } = sequences;
        let n_sequences: usize = prefix_groups.iter().map(|group| group.n_sequences).sum();
        assert_eq!(lengths.len(), n_sequences, "every sequence belongs to a prefix group");
        self.groups.clear();
        self.sequences.clear();
        self.n_pairs = 0;
        let (mut first_row, mut prefix_start) = (0, 0);
        for group in prefix_groups {
            let first = self.sequences.len();
            let prefix_range = prefix_start..prefix_start + group.prefix_len;
            let prefix = &prefix[prefix_range.clone()];
            let first_pair = self.n_pairs;
            self.n_pairs += n_heads * group.prefix_len * stride(group.prefix_len);
            let mut previous_prefix_len = 0;
            for length in &lengths[first..first + group.n_sequences] {
                let rows = &sources[first_row..first_row + length];
                let is_prefix = *length <= group.prefix_len && rows.last() == prefix[..*length].last();
                let (prefix_len, suffix) =
                    if is_prefix { (*length, None) } else { (length - 1, rows.last().copied()) };
                debug_assert_eq!(
                    rows[..prefix_len],
                    prefix[..prefix_len],
                    "a sequence starts with its group's prefix"
                );
                assert!(previous_prefix_len <= prefix_len, "prefix lengths within a group do not decrease");
                let first_pair = self.n_pairs;
                self.sequences.push(SequencePlan { first_row, prefix_len, suffix, first_pair });
                if suffix.is_some() {
                    self.n_pairs += n_heads * (2 * prefix_len + 1);
                }
                first_row += length;
                previous_prefix_len = prefix_len;
            }
            let sequences = first..self.sequences.len();
            prefix_start = prefix_range.end;
            self.groups.push(PrefixGroupPlan { prefix: prefix_range, sequences, first_pair });
        }
    }

    /// Every group with the index of every head.
    fn groups_by_head(&self, n_heads: usize) -> impl Iterator<Item = (&PrefixGroupPlan, usize)> {
        self.groups.iter().flat_map(move |group| (0..n_heads).map(move |head| (group, head)))
    }
}

impl PrefixGroupPlan {
    /// Pairs within the prefix for one head.
    fn pairs(&self, head: usize) -> Range<usize> {
        let n = self.prefix.len() * stride(self.prefix.len());
        self.first_pair + head * n..self.first_pair + (head + 1) * n
    }
}

impl SequencePlan {
    /// Pairs of the suffix row for one head.
    fn pairs(&self, head: usize) -> Range<usize> {
        let n = 2 * self.prefix_len + 1;
        self.first_pair + head * n..self.first_pair + (head + 1) * n
    }
}

impl Attention {
    /// Reserves the weights; `dropout` applies to the attention weights.
    pub fn new(layout: &mut Layout, name: &str, width: usize, n_heads: usize, dropout: Dropout) -> Attention {
        assert_eq!(width % n_heads, 0, "a width of {width} is divided among {n_heads} heads");
        let mut layer = |kind: &str, n_out: usize| {
            Linear::new(layout, &format!("{name}.{kind}"), &[width], n_out, Activation::Identity)
        };
        let (projection, output) = (layer("projection", 3 * width), layer("output", width));
        Attention { n_heads, width, projection, output, dropout }
    }

    /// Initialises the weights like PyTorch's `nn.MultiheadAttention`: uniform weights, zero biases.
    pub(crate) fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        let width = self.width as f64;
        let layers = [(&self.projection, (6.0 / (4.0 * width)).sqrt()), (&self.output, 1.0 / width.sqrt())];
        for (layer, bound) in layers {
            initialise::uniform_within(&mut parameters[layer.weights().range()], bound, uniform);
            parameters[layer.biases().range()].fill(0.0);
        }
    }

    /// Computes one row of `output` per row of the sequences.
    ///
    /// `key` selects the attention weights to drop; `None` drops nothing. A pair within the prefix is dropped in all
    /// sequences of its group or in none.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        buffers: &mut AttentionBuffers,
        output: &mut [f32],
    ) {
        let (n_rows, width) = (sequences.n_rows(), self.width);
        let n_inputs = inputs.len() / width;
        let AttentionBuffers { plan, group_head, .. } = buffers;
        let projected = ensure_len(&mut buffers.projected, n_inputs * 3 * width);
        self.projection.forward(parameters, &[InputPart::Dense(inputs)], n_inputs, projected);
        plan.rebuild(self.n_heads, sequences);
        let scores = ensure_len(&mut buffers.scores, plan.n_pairs);
        let mask = ensure_len(&mut buffers.dropout_mask, plan.n_pairs);
        mask.fill(1.0);
        if let Some(key) = key {
            self.dropout.apply(key, mask);
        }
        let head_outputs = ensure_len(&mut buffers.head_outputs, n_rows * width);
        let maxima = ensure_len(&mut buffers.maxima, n_rows * self.n_heads);
        let sums = ensure_len(&mut buffers.sums, n_rows * self.n_heads);
        for (group, head) in plan.groups_by_head(self.n_heads) {
            let pairs = group.pairs(head);
            group_head.load(projected, &sequences.prefix[group.prefix.clone()], self.head_columns(head));
            group_head.score(&mut scores[pairs.clone()]);
            group_head.start_forward();
            for sequence in &plan.sequences[group.sequences.clone()] {
                group_head.extend_prefix(sequence.prefix_len, &scores[pairs.clone()], &mask[pairs.clone()]);
                let first = head * n_rows + sequence.first_row;
                let (maxima, sums) = (&mut maxima[first..], &mut sums[first..]);
                let outputs = &mut head_outputs[sequence.first_row * width..];
                if let Some(input) = sequence.suffix {
                    let pairs = sequence.pairs(head);
                    let pairs = (&mut scores[pairs.clone()], &mask[pairs]);
                    group_head.write_outputs_with_suffix(projected, input, pairs, maxima, sums, outputs);
                } else {
                    group_head.write_outputs(maxima, sums, outputs);
                }
            }
        }
        self.output.forward(parameters, &[InputPart::Dense(head_outputs)], n_rows, output);
    }

    /// Backward pass through the chunk of the last forward pass: adds to `gradients` and writes the gradient of the inputs.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        buffers: &mut AttentionBuffers,
        d_output: &mut [f32],
        d_inputs: (&mut [f32], WriteMode),
    ) {
        let (n_rows, width) = (sequences.n_rows(), self.width);
        let outputs = &buffers.head_outputs[..n_rows * width];
        let d_outputs = ensure_len(&mut buffers.d_head_outputs, n_rows * width);
        let mut d_parts = [Some((&mut *d_outputs, WriteMode::Overwrite))];
        self.output.backward(
            transposed,
            gradients,
            &[InputPart::Dense(outputs)],
            &[],
            d_output,
            &mut d_parts,
        );

        let projected = &buffers.projected[..3 * inputs.len()];
        let d_projected = ensure_len(&mut buffers.d_projected, 3 * inputs.len());
        d_projected.fill(0.0);
        let AttentionBuffers { plan, group_head, scores, dropout_mask, maxima, sums, .. } = buffers;
        for (group, head) in plan.groups_by_head(self.n_heads) {
            let pairs = group.pairs(head);
            let prefix = &sequences.prefix[group.prefix.clone()];
            let (prefix_scores, prefix_mask) = (&scores[pairs.clone()], &dropout_mask[pairs]);
            group_head.load(projected, prefix, self.head_columns(head));
            group_head.start_backward();
            for sequence in plan.sequences[group.sequences.clone()].iter().rev() {
                group_head.shorten_prefix(sequence.prefix_len, prefix_scores, prefix_mask);
                let first = head * n_rows + sequence.first_row;
                let rows = AttendedRows {
                    maxima: &maxima[first..],
                    sums: &sums[first..],
                    outputs: &outputs[sequence.first_row * width..],
                    d_outputs: &d_outputs[sequence.first_row * width..],
                };
                group_head.add_output_gradients(&rows);
                if let Some(input) = sequence.suffix {
                    let pairs = sequence.pairs(head);
                    let pairs = (&scores[pairs.clone()], &dropout_mask[pairs]);
                    group_head.add_suffix_gradients(projected, d_projected, input, pairs, &rows);
                }
            }
            group_head.finish_backward(d_projected, prefix, prefix_scores, prefix_mask);
        }
        let (parts, mut d_parts) = ([InputPart::Dense(inputs)], [Some(d_inputs)]);
        self.projection.backward(transposed, gradients, &parts, &[], d_projected, &mut d_parts);
    }

    fn head_columns(&self, head: usize) -> HeadColumns {
        let head_width = self.width / self.n_heads;
        HeadColumns { row_width: self.width, first: head * head_width, head_width }
    }
}
