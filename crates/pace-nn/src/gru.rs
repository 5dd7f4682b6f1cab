//! A gated recurrent unit over a block of sequences: `r, z = σ(…)`, `n = tanh(xW + b + r(hU + c))`, `h′ = (1 − z)n + zh`.
//!
//! A block is packed like PyTorch's packed sequences, longest sequence first: the rows of step 0, then those of step 1, and
//! so on. `batch_sizes` holds the number of sequences that have a row at each step. The sequences of a step are the first
//! ones of the step before it, so products cover existing rows only and no padding has to be masked.
//!
//! One product transforms the inputs of all steps before the first step. Only the product with the hidden state is computed
//! step by step. The backward pass runs in reverse and computes the gradient of each weight matrix in one product. Repeated
//! inputs can be transformed once (`GruInputs::indices`).

use crate::initialise;
use crate::kernels::{add_rows, sigmoid, tanh, vectorised};
use crate::layout::{Layout, TensorId};
use crate::linear::WriteMode;
use crate::product::{multiply, multiply_transposed};
use crate::rows::{self, ensure_len};

/// A gated recurrent unit. The weights are `n_in × 3·width` and `width × 3·width`: the columns of r, then of z, then of n.
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
    /// One input for every row of the block, or the distinct inputs if there are `indices`.
    pub rows: &'a [f32],
    /// Index of the distinct input of each row of the block.
    pub indices: Option<&'a [u32]>,
}

impl<'a> From<&'a [f32]> for GruInputs<'a> {
    fn from(rows: &'a [f32]) -> GruInputs<'a> {
        GruInputs { rows, indices: None }
    }
}

/// Results of the forward pass over one block, kept for the backward pass. Buffers are as long as the largest block so far;
/// a smaller block uses the start of each buffer.
#[derive(Clone, Debug, Default)]
pub struct GruBuffers {
    /// Hidden state after every step.
    pub out: Vec<f32>,
    /// Gradient of `out`, written by the caller before the backward pass.
    pub d_out: Vec<f32>,
    /// r, z and n after their activation; in the backward pass the gradient before the activation.
    gates: Vec<f32>,
    /// Hidden state before every step, after the mask.
    before: Vec<f32>,
    /// `hU + c` of the formula, the factor of r.
    candidates: Vec<f32>,
    /// Product of the hidden state with its weights: of one step in the forward pass, its gradient for all steps in the
    /// backward pass.
    recurrent: Vec<f32>,
    /// Gradient of the hidden state that later steps pass to a step.
    carried: Vec<f32>,
    /// Product of the distinct inputs with their weights, or its gradient.
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

    /// Initialises the weights with orthogonal matrices and the biases with zero.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        for (weights, n_in) in [(self.input_weights, self.n_in), (self.hidden_weights, self.width)] {
            let weights = &mut parameters[weights.range()];
            initialise::orthogonal(weights, n_in, 3 * self.width, 1.0, uniform);
        }
        for biases in [self.input_biases, self.hidden_biases] {
            parameters[biases.range()].fill(0.0);
        }
    }

    /// Returns the width of the hidden state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes the hidden state after every step of a block to `buffers.out`.
    ///
    /// `initial` holds one hidden state per sequence. `state_mask` holds one factor per row, which multiplies the hidden
    /// state before the row's step: 1 keeps the state, 0 resets it.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: GruInputs<'_>,
        batch_sizes: &[usize],
        initial: &[f32],
        state_mask: &[f32],
        buffers: &mut GruBuffers,
    ) {
        let (n_rows, width) = (n_rows(batch_sizes), self.width);
        let n_sequences = batch_sizes.first().copied().unwrap_or(0);
        assert_eq!(
            (initial.len(), state_mask.len()),
            (n_sequences * width, n_rows),
            "a block of {batch_sizes:?} rows"
        );
        let hidden_weights = &parameters[self.hidden_weights.range()];
        let gates = ensure_len(&mut buffers.gates, n_rows * 3 * width);
        let weights = &parameters[self.input_weights.range()];
        let n_inputs = inputs.rows.len() / self.n_in;
        match inputs.indices {
            None => multiply(inputs.rows, weights, gates, n_rows, self.n_in, 3 * width, WriteMode::Overwrite),
            Some(indices) => {
                let distinct = ensure_len(&mut buffers.distinct, n_inputs * 3 * width);
                multiply(
                    inputs.rows,
                    weights,
                    distinct,
                    n_inputs,
                    self.n_in,
                    3 * width,
                    WriteMode::Overwrite,
                );
                rows::gather_rows(distinct, indices, 3 * width, gates);
            }
        }
        let candidates = ensure_len(&mut buffers.candidates, n_rows * width);
        let before = ensure_len(&mut buffers.before, n_rows * width);
        let out = ensure_len(&mut buffers.out, n_rows * width);
        // The backward pass uses a row for every row of the block, the forward pass only those of one step.
        let recurrent =
            &mut ensure_len(&mut buffers.recurrent, n_rows * 3 * width)[..n_sequences * 3 * width];
        let mut first = 0;
        for (step, n) in batch_sizes.iter().copied().enumerate() {
            let here = first * width..(first + n) * width;
            let (earlier, out) = out.split_at_mut(here.start);
            let (out, before) = (&mut out[..n * width], &mut before[here.clone()]);
            let previous = match step {
                0 => initial,
                _ => &earlier[(first - batch_sizes[step - 1]) * width..][..n * width],
            };
            scale_rows(before, previous, &state_mask[first..first + n], width);
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
        ensure_len(&mut buffers.d_out, n_rows * width);
    }

    /// Advances many sequences by one step, like a block of one step, and updates `hidden`.
    pub fn step(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        state_mask: &[f32],
        hidden: &mut [f32],
        buffers: &mut GruBuffers,
    ) {
        self.forward(parameters, inputs.into(), &[state_mask.len()], hidden, state_mask, buffers);
        hidden.copy_from_slice(&buffers.out[..hidden.len()]);
    }

    /// Backward pass from `buffers.d_out` through the block of the last forward pass, up to but excluding `initial`. Adds to
    /// `gradients`, and writes the gradient of the inputs if `d_inputs` is given.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: GruInputs<'_>,
        batch_sizes: &[usize],
        state_mask: &[f32],
        buffers: &mut GruBuffers,
        d_inputs: Option<(&mut [f32], WriteMode)>,
    ) {
        let (n_rows, width) = (n_rows(batch_sizes), self.width);
        let n_sequences = batch_sizes.first().copied().unwrap_or(0);
        let hidden_weights = &transposed[self.hidden_weights.range()];
        let gates = &mut buffers.gates[..n_rows * 3 * width];
        let d_recurrent = &mut buffers.recurrent[..n_rows * 3 * width];
        let before = &buffers.before[..n_rows * width];
        let carried = ensure_len(&mut buffers.carried, n_sequences * width);
        carried.fill(0.0);
        let mut end = n_rows;
        for (step, n) in batch_sizes.iter().copied().enumerate().rev() {
            let first = end - n;
            let here = first * width..end * width;
            let gates_here = 3 * here.start..3 * here.end;
            let carried = &mut carried[..n * width];
            let d_recurrent = &mut d_recurrent[gates_here.clone()];
            gates_backward(
                &buffers.d_out[here.clone()],
                &before[here.clone()],
                &buffers.candidates[here],
                carried,
                &mut gates[gates_here],
                d_recurrent,
                width,
            );
            if step > 0 {
                multiply(d_recurrent, hidden_weights, carried, n, 3 * width, width, WriteMode::Accumulate);
                scale_rows_in_place(carried, &state_mask[first..end], width);
            }
            end = first;
        }
        add_rows(gates, &mut gradients[self.input_biases.range()]);
        add_rows(d_recurrent, &mut gradients[self.hidden_biases.range()]);
        let n_inputs = inputs.rows.len() / self.n_in;
        let d_sums: &[f32] = match inputs.indices {
            None => gates,
            Some(indices) => {
                let distinct = ensure_len(&mut buffers.distinct, n_inputs * 3 * width);
                distinct.fill(0.0);
                rows::scatter_add_rows(gates, indices, 3 * width, distinct);
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
        if let Some((d_inputs, mode)) = d_inputs {
            let weights = &transposed[self.input_weights.range()];
            multiply(d_sums, weights, d_inputs, n_inputs, 3 * width, self.n_in, mode);
        }
    }
}

/// Returns the number of rows of a block.
fn n_rows(batch_sizes: &[usize]) -> usize {
    assert!(batch_sizes.is_sorted_by(|one, next| one >= next), "longest sequence first: {batch_sizes:?}");
    batch_sizes.iter().sum()
}

vectorised! {
    /// Writes every row multiplied by its factor to `out`.
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
    /// Computes the gates and the hidden state of one step. `gates` holds the product of the inputs before and r, z and n
    /// after the call.
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
        // Slices of a length that the compiler knows, so that the loops have no bounds checks.
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
    /// Backward pass through the gates of one step. `gates` holds r, z and n before and the gradient before their activation
    /// after the call. `carried` holds the gradient of the hidden state from later steps before the call, and after it the
    /// part for the step before that does not pass through a product.
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
