//! Self-attention with several heads over a chunk of sequences of different lengths.
//!
//! Sequences lie one after the other, without padding: no row looks beyond its own sequence, which is what a padding mask
//! is for. Many sequences begin alike, as the histories of an encounter's decisions do. What they share is computed once: the
//! query, key and value of every input, and along every [`PrefixGroup`] what its prefix make of each other (see `prefix_group`). What
//! follows attention in a network is in `transformer`.

use std::ops::Range;

use crate::dropout::{Dropout, DropoutKey};
use crate::initialise;
use crate::kernels::add;
use crate::layout::Layout;
use crate::linear::{Activation, InputPart, Linear, WriteMode};
use crate::prefix_attention::{AttendedRows, HeadPlace, PrefixGroupHead, stride};
use crate::rows::ensure_len;

/// Sequences of inputs, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// The input that each row is.
    pub sources: &'a [u32],
    /// The rows of each sequence.
    pub lengths: &'a [usize],
    /// How they begin.
    pub prefix_groups: &'a [PrefixGroup],
    /// The inputs of all prefix_groups, one prefix_group after the other.
    pub prefix: &'a [u32],
}

/// How some sequences in a row begin: each is a beginning of the prefix_group, not shorter than the one before, and may have one
/// row of its own behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixGroup {
    /// How many sequences.
    pub n_sequences: usize,
    /// How many prefix.
    pub n_links: usize,
}

impl Sequences<'_> {
    /// Rows of all sequences.
    pub fn n_rows(&self) -> usize {
        self.sources.len()
    }

    /// Writes one row per row of the sequences: that of its input.
    pub fn gather(&self, inputs: &[f32], width: usize, rows: &mut [f32]) {
        for (row, source) in rows.chunks_exact_mut(width).zip(self.sources) {
            row.copy_from_slice(&inputs[*source as usize * width..][..width]);
        }
    }

    /// The way back: adds every row to that of its input.
    pub fn scatter(&self, d_rows: &[f32], width: usize, d_inputs: &mut [f32]) {
        for (d_row, source) in d_rows.chunks_exact(width).zip(self.sources) {
            add(&mut d_inputs[*source as usize * width..][..width], d_row);
        }
    }
}

/// Where the weights lie: one layer for queries, keys and values, one after the heads.
#[derive(Clone, Debug)]
pub struct Attention {
    n_heads: usize,
    width: usize,
    projection: Linear,
    output: Linear,
    dropout: Dropout,
}

/// The rows of one chunk, kept for the way back.
#[derive(Clone, Debug, Default)]
pub struct AttentionBuffers {
    /// Queries, keys and values of every input, each `width` long.
    projected: Vec<f32>,
    d_projected: Vec<f32>,
    plan: AttentionPlan,
    /// The score of every pair in the plan.
    scores: Vec<f32>,
    /// What its weight is multiplied by: zero where it is dropped.
    kept: Vec<f32>,
    /// For every head and row, its highest score and the sum of the exponentials of all less that.
    maxima: Vec<f32>,
    sums: Vec<f32>,
    /// What the heads saw.
    seen: Vec<f32>,
    d_seen: Vec<f32>,
    head: PrefixGroupHead,
}

/// Where the pairs lie that look at each other, and for what sequences.
#[derive(Clone, Debug, Default)]
struct AttentionPlan {
    prefix_groups: Vec<PrefixGroupPlan>,
    sequences: Vec<SequencePlan>,
    /// Places for pairs, of all heads.
    n_pairs: usize,
}

#[derive(Clone, Debug)]
struct PrefixGroupPlan {
    prefix: Range<usize>,
    sequences: Range<usize>,
    /// The first pair of its prefix: for every head a square with rows of [`stride`].
    first_pair: usize,
}

#[derive(Clone, Debug)]
struct SequencePlan {
    first_row: usize,
    /// How many prefix it begins with.
    prefix_len: usize,
    /// The input of the row behind them, if there is one.
    own: Option<u32>,
    /// The first pair of that row: for every head `2 · prefix_len + 1` of them.
    first_pair: usize,
}

impl AttentionPlan {
    fn make(&mut self, n_heads: usize, sequences: Sequences<'_>) {
        let Sequences { sources, lengths, prefix_groups, prefix } = sequences;
        let n_sequences: usize = prefix_groups.iter().map(|prefix_group| prefix_group.n_sequences).sum();
        assert_eq!(lengths.len(), n_sequences, "every sequence is of a prefix_group");
        self.prefix_groups.clear();
        self.sequences.clear();
        self.n_pairs = 0;
        let (mut first_row, mut first_link) = (0, 0);
        for PrefixGroup { n_sequences, n_links } in prefix_groups.iter().copied() {
            let (first, place) = (self.sequences.len(), first_link..first_link + n_links);
            let prefix = &prefix[place.clone()];
            let first_pair = self.n_pairs;
            self.n_pairs += n_heads * n_links * stride(n_links);
            let mut last_reach = 0;
            for length in &lengths[first..first + n_sequences] {
                let rows = &sources[first_row..first_row + length];
                let is_on_chain = *length <= n_links && rows.last() == prefix[..*length].last();
                let (prefix_len, own) =
                    if is_on_chain { (*length, None) } else { (length - 1, rows.last().copied()) };
                debug_assert_eq!(
                    rows[..prefix_len],
                    prefix[..prefix_len],
                    "a sequence begins with its prefix_group"
                );
                assert!(last_reach <= prefix_len, "a prefix_group's sequences do not become shorter");
                let first_pair = self.n_pairs;
                self.sequences.push(SequencePlan { first_row, prefix_len, own, first_pair });
                if own.is_some() {
                    self.n_pairs += n_heads * (2 * prefix_len + 1);
                }
                first_row += length;
                last_reach = prefix_len;
            }
            let sequences = first..self.sequences.len();
            first_link = place.end;
            self.prefix_groups.push(PrefixGroupPlan { prefix: place, sequences, first_pair });
        }
    }

    /// Every prefix_group with every head.
    fn prefix_groups_by_head(&self, n_heads: usize) -> impl Iterator<Item = (&PrefixGroupPlan, usize)> {
        self.prefix_groups
            .iter()
            .flat_map(move |prefix_group| (0..n_heads).map(move |head| (prefix_group, head)))
    }
}

impl PrefixGroupPlan {
    /// The pairs of its prefix, as one head has them.
    fn pairs(&self, head: usize) -> Range<usize> {
        let n = self.prefix.len() * stride(self.prefix.len());
        self.first_pair + head * n..self.first_pair + (head + 1) * n
    }
}

impl SequencePlan {
    /// The pairs of its own row, as one head has them.
    fn pairs(&self, head: usize) -> Range<usize> {
        let n = 2 * self.prefix_len + 1;
        self.first_pair + head * n..self.first_pair + (head + 1) * n
    }
}

impl Attention {
    /// Reserves the weights; `dropout` is that of the attention weights.
    pub fn new(layout: &mut Layout, name: &str, width: usize, n_heads: usize, dropout: Dropout) -> Attention {
        assert_eq!(width % n_heads, 0, "{width} numbers are shared among {n_heads} heads");
        let mut layer = |kind: &str, n_out: usize| {
            Linear::new(layout, &format!("{name}.{kind}"), &[width], n_out, Activation::Identity)
        };
        let (projection, output) = (layer("projection", 3 * width), layer("output", width));
        Attention { n_heads, width, projection, output, dropout }
    }

    /// First weights as PyTorch's `nn.MultiheadAttention` has them: uniform, biases zero.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        let width = self.width as f64;
        let layers = [(&self.projection, (6.0 / (4.0 * width)).sqrt()), (&self.output, 1.0 / width.sqrt())];
        for (layer, bound) in layers {
            initialise::uniform_within(&mut parameters[layer.weights().range()], bound, uniform);
            parameters[layer.biases().range()].fill(0.0);
        }
    }

    /// Computes one row of `output` per row of the sequences. Without a key nothing is dropped; with one, a pair of prefix is
    /// dropped in all sequences of its prefix_group or in none.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        rows: &mut AttentionBuffers,
        output: &mut [f32],
    ) {
        let (n_rows, width) = (sequences.n_rows(), self.width);
        let n_inputs = inputs.len() / width;
        let AttentionBuffers { plan, head: along, .. } = rows;
        let projected = ensure_len(&mut rows.projected, n_inputs * 3 * width);
        self.projection.forward(parameters, &[InputPart::Dense(inputs)], n_inputs, projected);
        plan.make(self.n_heads, sequences);
        let (scores, kept) =
            (ensure_len(&mut rows.scores, plan.n_pairs), ensure_len(&mut rows.kept, plan.n_pairs));
        kept.fill(1.0);
        if let Some(key) = key {
            self.dropout.apply(key, kept);
        }
        let seen = ensure_len(&mut rows.seen, n_rows * width);
        let maxima = ensure_len(&mut rows.maxima, n_rows * self.n_heads);
        let sums = ensure_len(&mut rows.sums, n_rows * self.n_heads);
        for (prefix_group, head) in plan.prefix_groups_by_head(self.n_heads) {
            let pairs = prefix_group.pairs(head);
            along.load(projected, &sequences.prefix[prefix_group.prefix.clone()], self.place(head));
            along.score(&mut scores[pairs.clone()]);
            along.begin();
            for sequence in &plan.sequences[prefix_group.sequences.clone()] {
                along.extend_prefix(sequence.prefix_len, &scores[pairs.clone()], &kept[pairs.clone()]);
                let first = head * n_rows + sequence.first_row;
                let (maxima, sums) = (&mut maxima[first..], &mut sums[first..]);
                let seen = &mut seen[sequence.first_row * width..];
                if let Some(input) = sequence.own {
                    let pairs = sequence.pairs(head);
                    let pairs = (&mut scores[pairs.clone()], &kept[pairs]);
                    along.write_outputs_with_suffix(projected, input, pairs, maxima, sums, seen);
                } else {
                    along.write_outputs(maxima, sums, seen);
                }
            }
        }
        self.output.forward(parameters, &[InputPart::Dense(seen)], n_rows, output);
    }

    /// Takes the gradient of the output back through the chunk that was last computed: adds to `gradients` and writes the
    /// gradient of the inputs.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        rows: &mut AttentionBuffers,
        d_output: &mut [f32],
        d_inputs: (&mut [f32], WriteMode),
    ) {
        let (n_rows, width) = (sequences.n_rows(), self.width);
        let seen = &rows.seen[..n_rows * width];
        let d_seen = ensure_len(&mut rows.d_seen, n_rows * width);
        let mut d_parts = [Some((&mut *d_seen, WriteMode::Overwrite))];
        self.output.backward(transposed, gradients, &[InputPart::Dense(seen)], &[], d_output, &mut d_parts);

        let projected = &rows.projected[..3 * inputs.len()];
        let d_projected = ensure_len(&mut rows.d_projected, 3 * inputs.len());
        d_projected.fill(0.0);
        let AttentionBuffers { plan, head: along, scores, kept, maxima, sums, .. } = rows;
        for (prefix_group, head) in plan.prefix_groups_by_head(self.n_heads) {
            let pairs = prefix_group.pairs(head);
            let prefix = &sequences.prefix[prefix_group.prefix.clone()];
            let (link_scores, link_kept) = (&scores[pairs.clone()], &kept[pairs]);
            along.load(projected, prefix, self.place(head));
            along.begin_backward();
            for sequence in plan.sequences[prefix_group.sequences.clone()].iter().rev() {
                along.shorten_prefix(sequence.prefix_len, link_scores, link_kept);
                let first = head * n_rows + sequence.first_row;
                let rows = AttendedRows {
                    maxima: &maxima[first..],
                    sums: &sums[first..],
                    seen: &seen[sequence.first_row * width..],
                    d_seen: &d_seen[sequence.first_row * width..],
                };
                along.gather(&rows);
                if let Some(input) = sequence.own {
                    let pairs = sequence.pairs(head);
                    let pairs = (&scores[pairs.clone()], &kept[pairs]);
                    along.add_suffix_gradients(projected, d_projected, input, pairs, &rows);
                }
            }
            along.finish_backward(d_projected, prefix, link_scores, link_kept);
        }
        let (parts, mut d_parts) = ([InputPart::Dense(inputs)], [Some(d_inputs)]);
        self.projection.backward(transposed, gradients, &parts, &[], d_projected, &mut d_parts);
    }

    fn place(&self, head: usize) -> HeadPlace {
        let head_width = self.width / self.n_heads;
        HeadPlace { width: self.width, column: head * head_width, head_width }
    }
}
