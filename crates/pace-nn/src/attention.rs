//! Self-attention with several heads over a chunk of sequences of different lengths.
//!
//! Sequences lie one after the other, without padding: no row looks beyond its own sequence, which is what a padding mask
//! is for. An input may be in many sequences, and its query, key and value are computed once. What follows it in a network
//! is in `transformer`.

use crate::dropout::{Dropout, DropoutKey};
use crate::initialise;
use crate::kernels::{LANES, add, exponential, highest_of, sum_of, sum_of_products, vectorised};
use crate::linear::{Activation, Linear, Part, Store};
use crate::parameters::Parameters;
use crate::product::{ProductKind, ProductShape, Strided, multiply_strided};
use crate::rows::fit;

/// Sequences of inputs, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Sequences<'a> {
    /// The input that each row is.
    pub sources: &'a [u32],
    /// The rows of each sequence.
    pub lengths: &'a [usize],
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
    projected_inputs: Vec<f32>,
    d_projected_inputs: Vec<f32>,
    /// The same of every row.
    projected: Vec<f32>,
    d_projected: Vec<f32>,
    /// For every sequence and every head, how much each row looks at each other one: rows of [`stride`] numbers.
    weights: Vec<f32>,
    /// The same after dropout.
    dropped: Vec<f32>,
    d_weights: Vec<f32>,
    /// What the heads saw.
    seen: Vec<f32>,
    d_seen: Vec<f32>,
}

/// One head of one sequence.
struct Head {
    /// Rows of the sequence.
    n: usize,
    /// Place of the weights.
    weights: std::ops::Range<usize>,
    /// Place of the first row's query among the projected rows; key and value are one and two widths further.
    query: usize,
    /// Place of the first row's part among what the heads saw.
    seen: usize,
}

impl Attention {
    /// Reserves the weights; `dropout` is that of the attention weights.
    pub fn new(
        parameters: &mut Parameters,
        name: &str,
        width: usize,
        n_heads: usize,
        dropout: Dropout,
    ) -> Attention {
        assert_eq!(width % n_heads, 0, "{width} numbers are shared among {n_heads} heads");
        let mut layer = |kind: &str, n_out: usize| {
            Linear::new(parameters, &format!("{name}.{kind}"), &[width], n_out, Activation::Identity)
        };
        let (projection, output) = (layer("projection", 3 * width), layer("output", width));
        Attention { n_heads, width, projection, output, dropout }
    }

    /// First weights as PyTorch's `nn.MultiheadAttention` has them: uniform, biases zero.
    pub fn initialise(&self, parameters: &mut Parameters, uniform: &mut dyn FnMut() -> f64) {
        let width = self.width as f64;
        let layers = [(&self.projection, (6.0 / (4.0 * width)).sqrt()), (&self.output, 1.0 / width.sqrt())];
        for (layer, bound) in layers {
            let values = &mut parameters.values;
            initialise::uniform_within(&mut values[layer.weights().range()], bound, uniform);
            values[layer.biases().range()].fill(0.0);
        }
    }

    /// The matrix products of one pass forward and back on so many inputs, in sequences of these lengths.
    pub fn products(&self, n_inputs: usize, lengths: &[usize]) -> Vec<ProductShape> {
        let (n_rows, head_width) = (lengths.iter().sum(), self.width / self.n_heads);
        let mut products = self.projection.products(n_inputs, &[Some(true)]);
        products.extend(self.output.products(n_rows, &[Some(true)]));
        for n in lengths.iter().copied() {
            use ProductKind::{Forward, WeightGradient};
            for _ in 0..self.n_heads {
                // The weights and their gradient; what is seen, and the gradients of queries, values and keys.
                products.extend([ProductShape { kind: Forward, m: n, k: head_width, n }; 2]);
                products.extend([ProductShape { kind: Forward, m: n, k: n, n: head_width }; 2]);
                products.extend([ProductShape { kind: WeightGradient, m: n, k: n, n: head_width }; 2]);
            }
        }
        products
    }

    /// Computes one row of `output` per row of the sequences. Without a key nothing is dropped.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        rows: &mut AttentionRows,
        output: &mut [f32],
    ) {
        let (n_rows, lengths, width) = (sequences.n_rows(), sequences.lengths, self.width);
        let n_inputs = inputs.len() / width;
        let projected_inputs = fit(&mut rows.projected_inputs, n_inputs * 3 * width);
        self.projection.forward(parameters, &[Part::Dense(inputs)], n_inputs, projected_inputs);
        let projected = fit(&mut rows.projected, n_rows * 3 * width);
        sequences.gather(projected_inputs, 3 * width, projected);
        let weights = fit(&mut rows.weights, self.n_weights(lengths));
        let head_width = width / self.n_heads;
        let scale = 1.0 / (head_width as f32).sqrt();
        for Head { n, weights: place, query, .. } in self.heads(lengths) {
            let queries = Strided::rows(&projected[query..], 3 * width);
            let keys = Strided::rows(&projected[query + width..], 3 * width).transposed();
            let weights = &mut weights[place];
            multiply_strided([n, head_width, n], queries, keys, (weights, stride(n)), Store::Overwrite);
            turn_to_weights(weights, n, scale);
        }
        let weights = match key {
            Some(key) => {
                let dropped = fit(&mut rows.dropped, weights.len());
                dropped.copy_from_slice(weights);
                self.dropout.apply(key, dropped);
                &*dropped
            }
            None => weights,
        };
        let seen = fit(&mut rows.seen, n_rows * width);
        for Head { n, weights: place, query, seen: seen_at } in self.heads(lengths) {
            let values = Strided::rows(&projected[query + 2 * width..], 3 * width);
            let weights = Strided::rows(&weights[place], stride(n));
            let seen = (&mut seen[seen_at..], width);
            multiply_strided([n, n, head_width], weights, values, seen, Store::Overwrite);
        }
        self.output.forward(parameters, &[Part::Dense(seen)], n_rows, output);
    }

    /// Prepares the way back, as [`Linear::transpose`] does.
    pub fn transpose(&self, parameters: &[f32], transposed: &mut [f32]) {
        self.projection.transpose(parameters, transposed);
        self.output.transpose(parameters, transposed);
    }

    /// Takes the gradient of the output back through the chunk that was last computed, with its key: adds to `gradients`
    /// and writes the gradient of the inputs.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        rows: &mut AttentionRows,
        d_output: &mut [f32],
        d_inputs: (&mut [f32], Store),
    ) {
        let (n_rows, lengths, width) = (sequences.n_rows(), sequences.lengths, self.width);
        let head_width = width / self.n_heads;
        let seen = &rows.seen[..n_rows * width];
        let d_seen = fit(&mut rows.d_seen, n_rows * width);
        let mut d_parts = [Some((&mut *d_seen, Store::Overwrite))];
        self.output.backward(transposed, gradients, &[Part::Dense(seen)], &[], d_output, &mut d_parts);

        let projected = &rows.projected[..n_rows * 3 * width];
        let d_projected = fit(&mut rows.d_projected, n_rows * 3 * width);
        let weights = &rows.weights[..self.n_weights(lengths)];
        let used = if key.is_some() { &rows.dropped[..weights.len()] } else { weights };
        let d_weights = fit(&mut rows.d_weights, weights.len());
        for Head { n, weights: place, query, seen } in self.heads(lengths) {
            let d_seen = Strided::rows(&d_seen[seen..], width);
            let values = Strided::rows(&projected[query + 2 * width..], 3 * width).transposed();
            let d_weights = (&mut d_weights[place.clone()], stride(n));
            multiply_strided([n, head_width, n], d_seen, values, d_weights, Store::Overwrite);
            let used = Strided::rows(&used[place], stride(n)).transposed();
            let d_values = (&mut d_projected[query + 2 * width..], 3 * width);
            multiply_strided([n, n, head_width], used, d_seen, d_values, Store::Overwrite);
        }
        if let Some(key) = key {
            self.dropout.apply(key, d_weights);
        }
        let scale = 1.0 / (head_width as f32).sqrt();
        for Head { n, weights: place, query, .. } in self.heads(lengths) {
            let d_weights = &mut d_weights[place.clone()];
            turn_back_from_weights(d_weights, &weights[place], n, scale);
            let d_scores = Strided::rows(d_weights, stride(n));
            for (of, other, d_scores) in
                [(query, query + width, d_scores), (query + width, query, d_scores.transposed())]
            {
                let other = Strided::rows(&projected[other..], 3 * width);
                let d_of = (&mut d_projected[of..], 3 * width);
                multiply_strided([n, n, head_width], d_scores, other, d_of, Store::Overwrite);
            }
        }
        let d_projected_inputs = fit(&mut rows.d_projected_inputs, 3 * inputs.len());
        d_projected_inputs.fill(0.0);
        sequences.scatter(d_projected, 3 * width, d_projected_inputs);
        let (parts, mut d_parts) = ([Part::Dense(inputs)], [Some(d_inputs)]);
        self.projection.backward(transposed, gradients, &parts, &[], d_projected_inputs, &mut d_parts);
    }

    /// Numbers in the weights of all heads and sequences.
    fn n_weights(&self, lengths: &[usize]) -> usize {
        self.n_heads * lengths.iter().map(|n| n * stride(*n)).sum::<usize>()
    }

    /// Every head of every sequence that has rows.
    fn heads(&self, lengths: &[usize]) -> impl Iterator<Item = Head> {
        let (width, n_heads) = (self.width, self.n_heads);
        let sequences = lengths.iter().copied().scan((0, 0), move |(row, weight), n| {
            let begins = (n, *row, *weight);
            *row += n;
            *weight += n_heads * n * stride(n);
            Some(begins)
        });
        sequences.filter(|(n, ..)| *n > 0).flat_map(move |(n, row, weight)| {
            (0..n_heads).map(move |head| {
                let size = n * stride(n);
                let (start, column) = (weight + head * size, head * (width / n_heads));
                Head {
                    n,
                    weights: start..start + size,
                    query: row * 3 * width + column,
                    seen: row * width + column,
                }
            })
        })
    }
}

/// Numbers from one row of the weights of `n` rows to the next: whole vectors, of which what is behind the first `n` stands
/// for nothing.
fn stride(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

vectorised! {
    /// Softmax of the first `n` scaled scores of each row, in place.
    fn turn_to_weights(scores: &mut [f32], n: usize, scale: f32) {
        for row in scores.chunks_exact_mut(stride(n)) {
            row[n..].fill(f32::NEG_INFINITY);
            let highest = highest_of(row);
            for value in row.iter_mut() {
                *value = exponential((*value - highest) * scale);
            }
            row[n..].fill(0.0);
            let factor = 1.0 / sum_of(row);
            for value in row.iter_mut() {
                *value *= factor;
            }
        }
    }
}

vectorised! {
    /// The way back through [`turn_to_weights`], in place.
    fn turn_back_from_weights(d_weights: &mut [f32], weights: &[f32], n: usize, scale: f32) {
        let stride = stride(n);
        for (d_row, row) in d_weights.chunks_exact_mut(stride).zip(weights.chunks_exact(stride)) {
            d_row[n..].fill(0.0);
            let along = sum_of_products(d_row, row);
            for (d_value, weight) in d_row.iter_mut().zip(row) {
                *d_value = scale * weight * (*d_value - along);
            }
        }
    }
}
