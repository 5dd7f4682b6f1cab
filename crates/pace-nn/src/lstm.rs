//! A long short-term memory over windows of equal length: `i, f, o = σ(…)`, `g = tanh(…)`, `c′ = f·c + i·g`, `h′ = o·tanh(c′)`.
//!
//! Every window starts from zero states, and its result is the hidden state after its last step. The same input may be in
//! several windows, one after the other: inputs are transformed once each (`WindowInputs::indices`). Only the product with the
//! hidden state is computed step by step, and the first step has none.

use crate::initialise;
use crate::kernels::{add_rows, sigmoid, tanh, vectorised};
use crate::layout::{Layout, TensorId};
use crate::linear::{Activation, InputPart, Linear, WriteMode};
use crate::product::{multiply, multiply_transposed};
use crate::rows::{self, ensure_len};

/// A long short-term memory. The weights are `n_in × 4·width` and `width × 4·width`: the columns of i, then of f, g and o.
#[derive(Clone, Debug)]
pub struct Lstm {
    input: Linear,
    width: usize,
    hidden_weights: TensorId,
    hidden_biases: TensorId,
}

/// The windows of a pass.
#[derive(Clone, Copy, Debug)]
pub struct WindowInputs<'a> {
    /// The parts of the distinct inputs.
    pub parts: &'a [InputPart<'a>],
    /// Number of distinct inputs.
    pub n_inputs: usize,
    /// The index of the distinct input of every step: the first steps of all windows, then the second ones, and so on.
    pub indices: &'a [u32],
    /// Number of windows.
    pub n_windows: usize,
}

/// Results of the forward pass over some windows, kept for the backward pass. Buffers are as long as the largest pass so far.
#[derive(Clone, Debug, Default)]
pub struct LstmBuffers {
    /// Hidden state after the last step of every window.
    pub out: Vec<f32>,
    /// Gradient of `out`, written by the caller before the backward pass, which overwrites it.
    pub d_out: Vec<f32>,
    /// Product of the distinct inputs with their weights, or its gradient.
    distinct: Vec<f32>,
    /// i, f, g and o after their activation; in the backward pass the gradient before the activation.
    gates: Vec<f32>,
    /// c before the first step, which is zero, and after every step.
    cells: Vec<f32>,
    /// The hidden state after every step.
    hidden: Vec<f32>,
    /// Gradient of c that a later step passes to a step.
    d_cells: Vec<f32>,
}

impl Lstm {
    /// Reserves weights and biases for inputs of parts with these widths.
    pub fn new(layout: &mut Layout, name: &str, input_widths: &[usize], width: usize) -> Lstm {
        let input = format!("{name}.input");
        Lstm {
            input: Linear::new(layout, &input, input_widths, 4 * width, Activation::Identity),
            width,
            hidden_weights: layout.reserve_matrix(&format!("{name}.hidden.weight"), &[width], 4 * width),
            hidden_biases: layout.reserve(&format!("{name}.hidden.bias"), &[4 * width]),
        }
    }

    /// Initialises weights and biases with uniform numbers within 1/√width, like PyTorch.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        let bound = 1.0 / (self.width as f64).sqrt();
        for id in [self.input.weights(), self.hidden_weights, self.input.biases(), self.hidden_biases] {
            initialise::uniform_within(&mut parameters[id.range()], bound, uniform);
        }
    }

    /// Returns the width of the hidden state.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes the last hidden state of every window to `buffers.out`.
    pub fn forward(&self, parameters: &[f32], inputs: &WindowInputs<'_>, buffers: &mut LstmBuffers) {
        let WindowInputs { parts, n_inputs, indices, n_windows } = *inputs;
        let (n_rows, width, n) = (indices.len(), self.width, n_windows * self.width);
        assert!(n_rows > 0 && n_rows.is_multiple_of(n_windows), "{n_rows} rows of {n_windows} windows");
        let distinct = ensure_len(&mut buffers.distinct, n_inputs * 4 * width);
        self.input.forward(parameters, parts, n_inputs, distinct);
        let gates = ensure_len(&mut buffers.gates, n_rows * 4 * width);
        rows::gather_rows(distinct, indices, 4 * width, gates);
        let hidden_weights = &parameters[self.hidden_weights.range()];
        let biases = &parameters[self.hidden_biases.range()];
        let cells = ensure_len(&mut buffers.cells, n + n_rows * width);
        cells[..n].fill(0.0);
        let hidden = ensure_len(&mut buffers.hidden, n_rows * width);
        for (step, gates) in gates.chunks_exact_mut(4 * n).enumerate() {
            let (earlier, hidden) = hidden.split_at_mut(step * n);
            if step > 0 {
                let before = &earlier[(step - 1) * n..];
                multiply(before, hidden_weights, gates, n_windows, width, 4 * width, WriteMode::Accumulate);
            }
            cells.copy_within(step * n..(step + 1) * n, (step + 1) * n);
            step_forward(gates, biases, &mut cells[(step + 1) * n..][..n], &mut hidden[..n]);
        }
        ensure_len(&mut buffers.out, n).copy_from_slice(&hidden[(n_rows - n_windows) * width..]);
        ensure_len(&mut buffers.d_out, n);
    }

    /// Backward pass from `buffers.d_out` through the windows of the last forward pass. Adds to `gradients`.
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: &WindowInputs<'_>,
        buffers: &mut LstmBuffers,
    ) {
        let WindowInputs { parts, n_inputs, indices, n_windows } = *inputs;
        let (n_rows, width, n) = (indices.len(), self.width, n_windows * self.width);
        let hidden_weights = &transposed[self.hidden_weights.range()];
        let gates = &mut buffers.gates[..n_rows * 4 * width];
        let cells = &buffers.cells[..n + n_rows * width];
        let d_hidden = &mut buffers.d_out[..n];
        let d_cells = ensure_len(&mut buffers.d_cells, n);
        d_cells.fill(0.0);
        for (step, gates) in gates.chunks_exact_mut(4 * n).enumerate().rev() {
            let (before, after) = cells[step * n..][..2 * n].split_at(n);
            step_backward(gates, after, before, d_hidden, d_cells, width);
            if step > 0 {
                multiply(gates, hidden_weights, d_hidden, n_windows, 4 * width, width, WriteMode::Overwrite);
            }
        }
        // The hidden state after each step but the last is the input of the next one.
        let (later, n_products) = (&gates[4 * n..], n_rows - n_windows);
        let hidden = &buffers.hidden[..n_products * width];
        let d_weights = &mut gradients[self.hidden_weights.range()];
        multiply_transposed(hidden, later, d_weights, n_products, width, 4 * width, WriteMode::Accumulate);
        add_rows(gates, &mut gradients[self.hidden_biases.range()]);
        let distinct = &mut buffers.distinct[..n_inputs * 4 * width];
        distinct.fill(0.0);
        rows::scatter_add_rows(gates, indices, 4 * width, distinct);
        self.input.backward(transposed, gradients, parts, &[], distinct, &mut []);
    }
}

vectorised! {
    /// Computes the gates and the states of one step. `gates` holds the products before and i, f, g and o after the call;
    /// `cells` holds c before and after the step.
    fn step_forward(gates: &mut [f32], biases: &[f32], cells: &mut [f32], hidden: &mut [f32]) {
        let width = biases.len() / 4;
        // Slices of a length that the compiler knows, so that the loops have no bounds checks.
        let [b_i, b_f, b_g, b_o] = [0, 1, 2, 3].map(|gate| &biases[gate * width..][..width]);
        let states = cells.chunks_exact_mut(width).zip(hidden.chunks_exact_mut(width));
        for (gates, (cells, hidden)) in gates.chunks_exact_mut(4 * width).zip(states) {
            let (i, rest) = gates.split_at_mut(width);
            let (f, rest) = rest.split_at_mut(width);
            let (g, o) = rest.split_at_mut(width);
            let (cells, hidden, o) = (&mut cells[..width], &mut hidden[..width], &mut o[..width]);
            for unit in 0..width {
                i[unit] = sigmoid(i[unit] + b_i[unit]);
                f[unit] = sigmoid(f[unit] + b_f[unit]);
                g[unit] = tanh(g[unit] + b_g[unit]);
                o[unit] = sigmoid(o[unit] + b_o[unit]);
                cells[unit] = f[unit] * cells[unit] + i[unit] * g[unit];
                hidden[unit] = o[unit] * tanh(cells[unit]);
            }
        }
    }
}

vectorised! {
    /// Backward pass through one step. `gates` holds i, f, g and o before and the gradient before their activation after the
    /// call. `d_cells` holds the gradient of c from the next step before the call, and that for the step before after it.
    /// `before` is c before the step.
    fn step_backward(
        gates: &mut [f32],
        cells: &[f32],
        before: &[f32],
        d_hidden: &[f32],
        d_cells: &mut [f32],
        width: usize,
    ) {
        let states = cells.chunks_exact(width).zip(before.chunks_exact(width));
        let states = states.zip(d_hidden.chunks_exact(width).zip(d_cells.chunks_exact_mut(width)));
        for (gates, ((cells, before), (d_hidden, d_cells))) in gates.chunks_exact_mut(4 * width).zip(states) {
            let (i, rest) = gates.split_at_mut(width);
            let (f, rest) = rest.split_at_mut(width);
            let (g, o) = rest.split_at_mut(width);
            let o = &mut o[..width];
            let (cells, before) = (&cells[..width], &before[..width]);
            let (d_hidden, d_cells) = (&d_hidden[..width], &mut d_cells[..width]);
            for unit in 0..width {
                let (input, forget, new, output) = (i[unit], f[unit], g[unit], o[unit]);
                let squashed = tanh(cells[unit]);
                let d_cell = d_cells[unit] + d_hidden[unit] * output * (1.0 - squashed * squashed);
                d_cells[unit] = d_cell * forget;
                i[unit] = d_cell * new * (input * (1.0 - input));
                f[unit] = d_cell * before[unit] * (forget * (1.0 - forget));
                g[unit] = d_cell * input * (1.0 - new * new);
                o[unit] = d_hidden[unit] * squashed * (output * (1.0 - output));
            }
        }
    }
}
