//! Self-attention with several heads over a chunk of sequences of different lengths.
//!
//! Sequences lie one after the other, without padding: no row looks beyond its own sequence, which is what a padding mask
//! is for. Many sequences begin alike, as the histories of an encounter's decisions do. What they share is computed once: the
//! query, key and value of every input, and along every [`Chain`] what its links make of each other (see `chain`). What
//! follows attention in a network is in `transformer`.

use std::ops::Range;

use crate::chain::{ChainHead, HeadPlace, SeenRows, stride};
use crate::dropout::{Dropout, DropoutKey};
use crate::initialise;
use crate::kernels::add;
use crate::layout::Layout;
use crate::linear::{Activation, Linear, Part, Store};
use crate::rows::fit;

/// Sequences of inputs, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// The input that each row is.
    pub sources: &'a [u32],
    /// The rows of each sequence.
    pub lengths: &'a [usize],
    /// How they begin.
    pub chains: &'a [Chain],
    /// The inputs of all chains, one chain after the other.
    pub links: &'a [u32],
}

/// How some sequences in a row begin: each is a beginning of the chain, not shorter than the one before, and may have one
/// row of its own behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// How many sequences.
    pub n_sequences: usize,
    /// How many links.
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
pub struct AttentionRows {
    /// Queries, keys and values of every input, each `width` long.
    projected: Vec<f32>,
    d_projected: Vec<f32>,
    plan: Plan,
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
    head: ChainHead,
}

/// Where the pairs lie that look at each other, and for what sequences.
#[derive(Clone, Debug, Default)]
struct Plan {
    chains: Vec<ChainPlan>,
    sequences: Vec<SequencePlan>,
    /// Places for pairs, of all heads.
    n_pairs: usize,
}

#[derive(Clone, Debug)]
struct ChainPlan {
    links: Range<usize>,
    sequences: Range<usize>,
    /// The first pair of its links: for every head a square with rows of [`stride`].
    first_pair: usize,
}

#[derive(Clone, Debug)]
struct SequencePlan {
    first_row: usize,
    /// How many links it begins with.
    reach: usize,
    /// The input of the row behind them, if there is one.
    own: Option<u32>,
    /// The first pair of that row: for every head `2 · reach + 1` of them.
    first_pair: usize,
}

impl Plan {
    fn make(&mut self, n_heads: usize, sequences: Sequences<'_>) {
        let Sequences { sources, lengths, chains, links } = sequences;
        let n_sequences: usize = chains.iter().map(|chain| chain.n_sequences).sum();
        assert_eq!(lengths.len(), n_sequences, "every sequence is of a chain");
        self.chains.clear();
        self.sequences.clear();
        self.n_pairs = 0;
        let (mut first_row, mut first_link) = (0, 0);
        for Chain { n_sequences, n_links } in chains.iter().copied() {
            let (first, place) = (self.sequences.len(), first_link..first_link + n_links);
            let links = &links[place.clone()];
            let first_pair = self.n_pairs;
            self.n_pairs += n_heads * n_links * stride(n_links);
            let mut last_reach = 0;
            for length in &lengths[first..first + n_sequences] {
                let rows = &sources[first_row..first_row + length];
                let is_on_chain = *length <= n_links && rows.last() == links[..*length].last();
                let (reach, own) =
                    if is_on_chain { (*length, None) } else { (length - 1, rows.last().copied()) };
                debug_assert_eq!(rows[..reach], links[..reach], "a sequence begins with its chain");
                assert!(last_reach <= reach, "a chain's sequences do not become shorter");
                let first_pair = self.n_pairs;
                self.sequences.push(SequencePlan { first_row, reach, own, first_pair });
                if own.is_some() {
                    self.n_pairs += n_heads * (2 * reach + 1);
                }
                first_row += length;
                last_reach = reach;
            }
            let sequences = first..self.sequences.len();
            first_link = place.end;
            self.chains.push(ChainPlan { links: place, sequences, first_pair });
        }
    }

    /// Every chain with every head.
    fn chains_by_head(&self, n_heads: usize) -> impl Iterator<Item = (&ChainPlan, usize)> {
        self.chains.iter().flat_map(move |chain| (0..n_heads).map(move |head| (chain, head)))
    }
}

impl ChainPlan {
    /// The pairs of its links, as one head has them.
    fn pairs(&self, head: usize) -> Range<usize> {
        let n = self.links.len() * stride(self.links.len());
        self.first_pair + head * n..self.first_pair + (head + 1) * n
    }
}

impl SequencePlan {
    /// The pairs of its own row, as one head has them.
    fn pairs(&self, head: usize) -> Range<usize> {
        let n = 2 * self.reach + 1;
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

    /// Computes one row of `output` per row of the sequences. Without a key nothing is dropped; with one, a pair of links is
    /// dropped in all sequences of its chain or in none.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        rows: &mut AttentionRows,
        output: &mut [f32],
    ) {
        let (n_rows, width) = (sequences.n_rows(), self.width);
        let n_inputs = inputs.len() / width;
        let AttentionRows { plan, head: along, .. } = rows;
        let projected = fit(&mut rows.projected, n_inputs * 3 * width);
        self.projection.forward(parameters, &[Part::Dense(inputs)], n_inputs, projected);
        plan.make(self.n_heads, sequences);
        let (scores, kept) = (fit(&mut rows.scores, plan.n_pairs), fit(&mut rows.kept, plan.n_pairs));
        kept.fill(1.0);
        if let Some(key) = key {
            self.dropout.apply(key, kept);
        }
        let seen = fit(&mut rows.seen, n_rows * width);
        let maxima = fit(&mut rows.maxima, n_rows * self.n_heads);
        let sums = fit(&mut rows.sums, n_rows * self.n_heads);
        for (chain, head) in plan.chains_by_head(self.n_heads) {
            let pairs = chain.pairs(head);
            along.load(projected, &sequences.links[chain.links.clone()], self.place(head));
            along.score(&mut scores[pairs.clone()]);
            along.begin();
            for sequence in &plan.sequences[chain.sequences.clone()] {
                along.grow(sequence.reach, &scores[pairs.clone()], &kept[pairs.clone()]);
                let first = head * n_rows + sequence.first_row;
                let (maxima, sums) = (&mut maxima[first..], &mut sums[first..]);
                let seen = &mut seen[sequence.first_row * width..];
                if let Some(input) = sequence.own {
                    let pairs = sequence.pairs(head);
                    let pairs = (&mut scores[pairs.clone()], &kept[pairs]);
                    along.see_with_own(projected, input, pairs, maxima, sums, seen);
                } else {
                    along.see(maxima, sums, seen);
                }
            }
        }
        self.output.forward(parameters, &[Part::Dense(seen)], n_rows, output);
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
        rows: &mut AttentionRows,
        d_output: &mut [f32],
        d_inputs: (&mut [f32], Store),
    ) {
        let (n_rows, width) = (sequences.n_rows(), self.width);
        let seen = &rows.seen[..n_rows * width];
        let d_seen = fit(&mut rows.d_seen, n_rows * width);
        let mut d_parts = [Some((&mut *d_seen, Store::Overwrite))];
        self.output.backward(transposed, gradients, &[Part::Dense(seen)], &[], d_output, &mut d_parts);

        let projected = &rows.projected[..3 * inputs.len()];
        let d_projected = fit(&mut rows.d_projected, 3 * inputs.len());
        d_projected.fill(0.0);
        let AttentionRows { plan, head: along, scores, kept, maxima, sums, .. } = rows;
        for (chain, head) in plan.chains_by_head(self.n_heads) {
            let pairs = chain.pairs(head);
            let links = &sequences.links[chain.links.clone()];
            let (link_scores, link_kept) = (&scores[pairs.clone()], &kept[pairs]);
            along.load(projected, links, self.place(head));
            along.begin_back();
            for sequence in plan.sequences[chain.sequences.clone()].iter().rev() {
                along.shrink(sequence.reach, link_scores, link_kept);
                let first = head * n_rows + sequence.first_row;
                let rows = SeenRows {
                    maxima: &maxima[first..],
                    sums: &sums[first..],
                    seen: &seen[sequence.first_row * width..],
                    d_seen: &d_seen[sequence.first_row * width..],
                };
                along.gather(&rows);
                if let Some(input) = sequence.own {
                    let pairs = sequence.pairs(head);
                    let pairs = (&scores[pairs.clone()], &kept[pairs]);
                    along.gather_own(projected, d_projected, input, pairs, &rows);
                }
            }
            along.finish_back(d_projected, links, link_scores, link_kept);
        }
        let (parts, mut d_parts) = ([Part::Dense(inputs)], [Some(d_inputs)]);
        self.projection.backward(transposed, gradients, &parts, &[], d_projected, &mut d_parts);
    }

    fn place(&self, head: usize) -> HeadPlace {
        let head_width = self.width / self.n_heads;
        HeadPlace { width: self.width, column: head * head_width, head_width }
    }
}
