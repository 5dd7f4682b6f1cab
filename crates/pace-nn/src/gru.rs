//! A gated recurrent unit over a block of sequences: `r, z = σ(…)`, `n = tanh(xW + b + r(hU + c))`, `h′ = (1 − z)n + zh`.
//!
//! A block is packed step by step, longest sequence first: the rows of step 0, then those of step 1, and so on, where `batch_sizes`
//! says how many sequences are still going at each step. Every step is thus a prefix of the one before it, products are
//! over real rows only, and nothing has to be masked out afterwards.
//!
//! The inputs of all steps go through one product before the first step; only the product with the hidden state waits for
//! the step before it. The way back does the reverse, and takes the gradient of both weight matrices in one product each.
//! Inputs that recur go through theirs once.

use crate::initialise;
use crate::kernels::{add_rows, sigmoid, tanh, vectorised};
use crate::layout::{Layout, TensorId};
use crate::linear::WriteMode;
use crate::product::{multiply, multiply_transposed};
use crate::rows::{self, ensure_len};

/// Where the weights lie: `n_in × 3·width` and `width × 3·width`, the columns of r, z and n one after the other.
#[derive(Clone, Debug)]
pub struct Gru {
    n_in: usize,
    width: usize,
    input_weights: TensorId,
    hidden_weights: TensorId,
    input_biases: TensorId,
    hidden_biases: TensorId,
}

/// The inputs of a block.
#[derive(Clone, Copy, Debug)]
pub struct GruInputs<'a> {
    /// One for every row of the block, or those that differ.
    pub rows: &'a [f32],
    /// In the latter case, which of them each row of the block has.
    pub places: Option<&'a [u32]>,
}

impl<'a> From<&'a [f32]> for GruInputs<'a> {
    fn from(rows: &'a [f32]) -> GruInputs<'a> {
        GruInputs { rows, places: None }
    }
}

/// The rows of one block, kept for the way back. Buffers are as long as the largest block so far; a smaller one lies at
/// their beginning.
#[derive(Clone, Debug, Default)]
pub struct GruBuffers {
    /// The hidden state after every step.
    pub out: Vec<f32>,
    /// The place for its gradient.
    pub d_out: Vec<f32>,
    /// r, z and n after their activation; on the way back the gradient before it.
    gates: Vec<f32>,
    /// The hidden state before every step, after the mask.
    before: Vec<f32>,
    /// What r is multiplied by.
    candidates: Vec<f32>,
    /// The product of a step's hidden states; on the way back the gradient of every step's.
    recurrent: Vec<f32>,
    /// The gradient of the hidden state that a step hands to the one before it.
    carried: Vec<f32>,
    /// What distinct inputs add to the gates, or the gradient of that.
    distinct: Vec<f32>,
}

impl Gru {
    /// Reserves weights and biases.
    pub fn new(layout: &mut Layout, name: &str, n_in: usize, width: usize) -> Gru {
        let named = |kind: &str| format!("{name}.{kind}");
        Gru {
            n_in,
            width,
            input_weights: layout.reserve_matrix(&named("input.weight"), &[n_in], 3 * width),
            hidden_weights: layout.reserve_matrix(&named("hidden.weight"), &[width], 3 * width),
            input_biases: layout.reserve(&named("input.bias"), &[3 * width]),
            hidden_biases: layout.reserve(&named("hidden.bias"), &[3 * width]),
        }
    }

    /// Orthogonal weights, zero biases.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        for (weights, n_in) in [(self.input_weights, self.n_in), (self.hidden_weights, self.width)] {
            let weights = &mut parameters[weights.range()];
            initialise::orthogonal(weights, n_in, 3 * self.width, 1.0, uniform);
        }
        for biases in [self.input_biases, self.hidden_biases] {
            parameters[biases.range()].fill(0.0);
        }
    }

    /// Width of the input.
    pub fn n_in(&self) -> usize {
        self.n_in
    }

    /// Width of the hidden state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes the hidden state after every step of a block to `rows.out`.
    ///
    /// `initial` holds one hidden state per sequence. Each row's number in `keep` multiplies the hidden state before that
    /// row's step: 1 keeps it, 0 begins anew.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: GruInputs<'_>,
        batch_sizes: &[usize],
        initial: &[f32],
        keep: &[f32],
        rows: &mut GruBuffers,
    ) {
        let (n_rows, width) = (n_rows(batch_sizes), self.width);
        let n_sequences = batch_sizes.first().copied().unwrap_or(0);
        assert_eq!(
            (initial.len(), keep.len()),
            (n_sequences * width, n_rows),
            "a block of {batch_sizes:?} rows"
        );
        let hidden_weights = &parameters[self.hidden_weights.range()];
        let gates = ensure_len(&mut rows.gates, n_rows * 3 * width);
        let weights = &parameters[self.input_weights.range()];
        let n_inputs = inputs.rows.len() / self.n_in;
        match inputs.places {
            None => multiply(inputs.rows, weights, gates, n_rows, self.n_in, 3 * width, WriteMode::Overwrite),
            Some(places) => {
                let distinct = ensure_len(&mut rows.distinct, n_inputs * 3 * width);
                multiply(
                    inputs.rows,
                    weights,
                    distinct,
                    n_inputs,
                    self.n_in,
                    3 * width,
                    WriteMode::Overwrite,
                );
                rows::gather_rows(distinct, places, 3 * width, gates);
            }
        }
        let candidates = ensure_len(&mut rows.candidates, n_rows * width);
        let before = ensure_len(&mut rows.before, n_rows * width);
        let out = ensure_len(&mut rows.out, n_rows * width);
        // As long as the way back needs it, so that a step forward never makes it longer.
        let recurrent = &mut ensure_len(&mut rows.recurrent, n_rows * 3 * width)[..n_sequences * 3 * width];
        let mut first = 0;
        for (step, n) in batch_sizes.iter().copied().enumerate() {
            let here = first * width..(first + n) * width;
            let (earlier, out) = out.split_at_mut(here.start);
            let (out, before) = (&mut out[..n * width], &mut before[here.clone()]);
            let previous = match step {
                0 => initial,
                _ => &earlier[(first - batch_sizes[step - 1]) * width..][..n * width],
            };
            scale_rows(before, previous, &keep[first..first + n], width);
            let recurrent = &mut recurrent[..n * 3 * width];
            multiply(before, hidden_weights, recurrent, n, width, 3 * width, WriteMode::Overwrite);
            gates_forward(
                &mut gates[3 * here.start..3 * here.end],
                recurrent,
                &parameters[self.input_biases.range()],
                &parameters[self.hidden_biases.range()],
                before,
                &mut candidates[here],
                out,
            );
            first += n;
        }
        ensure_len(&mut rows.d_out, n_rows * width);
    }

    /// One step of many sequences: `hidden` becomes the state after it, as in a block of one step.
    pub fn step(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        keep: &[f32],
        hidden: &mut [f32],
        rows: &mut GruBuffers,
    ) {
        self.forward(parameters, inputs.into(), &[keep.len()], hidden, keep, rows);
        hidden.copy_from_slice(&rows.out[..hidden.len()]);
    }

    /// Takes `rows.d_out` back through every step of the block that was last computed, but not into `initial`: adds to
    /// `gradients`, and writes the gradient of the inputs if there is a place for it.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: GruInputs<'_>,
        batch_sizes: &[usize],
        keep: &[f32],
        rows: &mut GruBuffers,
        d_inputs: Option<(&mut [f32], WriteMode)>,
    ) {
        let (n_rows, width) = (n_rows(batch_sizes), self.width);
        let n_sequences = batch_sizes.first().copied().unwrap_or(0);
        let hidden_weights = &transposed[self.hidden_weights.range()];
        let gates = &mut rows.gates[..n_rows * 3 * width];
        let d_recurrent = &mut rows.recurrent[..n_rows * 3 * width];
        let before = &rows.before[..n_rows * width];
        let carried = ensure_len(&mut rows.carried, n_sequences * width);
        carried.fill(0.0);
        let mut end = n_rows;
        for (step, n) in batch_sizes.iter().copied().enumerate().rev() {
            let first = end - n;
            let here = first * width..end * width;
            let gates_here = 3 * here.start..3 * here.end;
            let carried = &mut carried[..n * width];
            let d_recurrent = &mut d_recurrent[gates_here.clone()];
            gates_backward(
                &rows.d_out[here.clone()],
                &before[here.clone()],
                &rows.candidates[here],
                carried,
                &mut gates[gates_here],
                d_recurrent,
                width,
            );
            if step > 0 {
                multiply(d_recurrent, hidden_weights, carried, n, 3 * width, width, WriteMode::Accumulate);
                scale_rows_in_place(carried, &keep[first..end], width);
            }
            end = first;
        }
        add_rows(gates, &mut gradients[self.input_biases.range()]);
        add_rows(d_recurrent, &mut gradients[self.hidden_biases.range()]);
        let n_inputs = inputs.rows.len() / self.n_in;
        let d_sums: &[f32] = match inputs.places {
            None => gates,
            Some(places) => {
                let distinct = ensure_len(&mut rows.distinct, n_inputs * 3 * width);
                rows::scatter_add_rows(gates, places, 3 * width, distinct);
                distinct
            }
        };
        for (rows, d_sums, weights, n_rows, n_in) in [
            (inputs.rows, d_sums, self.input_weights, n_inputs, self.n_in),
            (before, d_recurrent, self.hidden_weights, n_rows, width),
        ] {
            let d_weights = &mut gradients[weights.range()];
            multiply_transposed(rows, d_sums, d_weights, n_rows, n_in, 3 * width, WriteMode::Accumulate);
        }
        if let Some((d_inputs, store)) = d_inputs {
            let weights = &transposed[self.input_weights.range()];
            multiply(d_sums, weights, d_inputs, n_inputs, 3 * width, self.n_in, store);
        }
    }
}

/// All rows of a block.
fn n_rows(batch_sizes: &[usize]) -> usize {
    assert!(batch_sizes.is_sorted_by(|one, next| one >= next), "longest sequence first: {batch_sizes:?}");
    batch_sizes.iter().sum()
}

vectorised! {
    /// Multiplies every row by its factor.
    fn scale_rows(out: &mut [f32], rows: &[f32], factors: &[f32], width: usize) {
        for ((out, row), factor) in out.chunks_exact_mut(width).zip(rows.chunks_exact(width)).zip(factors) {
            for (out, value) in out.iter_mut().zip(row) {
                *out = factor * value;
            }
        }
    }
}

vectorised! {
    /// Multiplies every row by its factor.
    fn scale_rows_in_place(rows: &mut [f32], factors: &[f32], width: usize) {
        for (row, factor) in rows.chunks_exact_mut(width).zip(factors) {
            for value in row {
                *value *= factor;
            }
        }
    }
}

vectorised! {
    /// The gates of one step. `gates` comes in holding the product of the inputs and goes out holding r, z and n.
    fn gates_forward(
        gates: &mut [f32],
        recurrent: &[f32],
        input_bias: &[f32],
        hidden_bias: &[f32],
        before: &[f32],
        candidates: &mut [f32],
        out: &mut [f32],
    ) {
        let width = input_bias.len() / 3;
        // Slices of one length that the compiler sees, so that no index is checked inside a loop.
        let (input_rz, input_n) = (&input_bias[..2 * width], &input_bias[2 * width..][..width]);
        let (hidden_rz, hidden_n) = (&hidden_bias[..2 * width], &hidden_bias[2 * width..][..width]);
        let states = before.chunks_exact(width).zip(out.chunks_exact_mut(width));
        let rows = gates.chunks_exact_mut(3 * width).zip(recurrent.chunks_exact(3 * width));
        for ((gates, recurrent), (candidates, (before, out))) in
            rows.zip(candidates.chunks_exact_mut(width).zip(states))
        {
            let (rz, n) = gates.split_at_mut(2 * width);
            let (recurrent_rz, recurrent_n) = recurrent.split_at(2 * width);
            for unit in 0..2 * width {
                let bias = input_rz[unit] + hidden_rz[unit];
                rz[unit] = sigmoid(rz[unit] + recurrent_rz[unit] + bias);
            }
            let (r, z) = (&rz[..width], &rz[width..][..width]);
            let (n, recurrent_n) = (&mut n[..width], &recurrent_n[..width]);
            let (candidates, before, out) = (&mut candidates[..width], &before[..width], &mut out[..width]);
            for unit in 0..width {
                let candidate = recurrent_n[unit] + hidden_n[unit];
                let new = tanh(n[unit] + input_n[unit] + r[unit] * candidate);
                n[unit] = new;
                candidates[unit] = candidate;
                out[unit] = new + z[unit] * (before[unit] - new);
            }
        }
    }
}

vectorised! {
    /// The way back through the gates of one step. `gates` comes in holding r, z and n and goes out holding the gradient
    /// before their activation; `carried` comes in holding what later steps want of the hidden state, and goes out holding
    /// the part of the gradient that did not go through a product.
    fn gates_backward(
        d_out: &[f32],
        before: &[f32],
        candidates: &[f32],
        carried: &mut [f32],
        gates: &mut [f32],
        d_recurrent: &mut [f32],
        width: usize,
    ) {
        let states = d_out.chunks_exact(width).zip(before.chunks_exact(width));
        let states = states.zip(candidates.chunks_exact(width).zip(carried.chunks_exact_mut(width)));
        let rows = gates.chunks_exact_mut(3 * width).zip(d_recurrent.chunks_exact_mut(3 * width));
        for ((gates, d_recurrent), ((d_out, before), (candidates, carried))) in rows.zip(states) {
            let (r, rest) = gates.split_at_mut(width);
            let (z, n) = rest.split_at_mut(width);
            let n = &mut n[..width];
            let (recurrent_r, rest) = d_recurrent.split_at_mut(width);
            let (recurrent_z, recurrent_n) = rest.split_at_mut(width);
            let recurrent_n = &mut recurrent_n[..width];
            let (d_out, before) = (&d_out[..width], &before[..width]);
            let (candidates, carried) = (&candidates[..width], &mut carried[..width]);
            for unit in 0..width {
                let (reset, update, new) = (r[unit], z[unit], n[unit]);
                let d_hidden = d_out[unit] + carried[unit];
                let d_new = d_hidden * (1.0 - update) * (1.0 - new * new);
                let d_update = d_hidden * (before[unit] - new) * (update * (1.0 - update));
                let d_reset = d_new * candidates[unit] * (reset * (1.0 - reset));
                carried[unit] = d_hidden * update;
                r[unit] = d_reset;
                z[unit] = d_update;
                n[unit] = d_new;
                recurrent_r[unit] = d_reset;
                recurrent_z[unit] = d_update;
                recurrent_n[unit] = d_new * reset;
            }
        }
    }
}
