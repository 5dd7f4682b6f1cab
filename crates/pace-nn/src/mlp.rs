//! A multilayer perceptron: a sequence of fully connected layers.

use crate::layout::Layout;
use crate::linear::{Activation, InputPart, Linear, WriteMode};
use crate::rows::ensure_len;

/// A multilayer perceptron. The input of the first layer may have several parts.
#[derive(Clone, Debug)]
pub struct Mlp {
    layers: Vec<Linear>,
}

/// Outputs of all layers for one chunk of rows, and their gradients.
#[derive(Clone, Debug, Default)]
pub struct MlpBuffers {
    /// Output of the last layer.
    pub out: Vec<f32>,
    /// Gradient of `out`, written by the caller before the backward pass.
    pub d_out: Vec<f32>,
    hidden: Vec<Vec<f32>>,
    d_hidden: Vec<Vec<f32>>,
}

impl Mlp {
    /// Reserves the layers `name.0`, `name.1` and so on, one for each of `widths`. `output` is the activation function of the
    /// last layer, `hidden` that of the others.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        input_widths: &[usize],
        widths: &[usize],
        hidden: Activation,
        output: Activation,
    ) -> Mlp {
        let layer = |(index, width): (usize, &usize)| {
            let inputs = if index == 0 { input_widths } else { &widths[index - 1..index] };
            let activation = if index + 1 == widths.len() { output } else { hidden };
            Linear::new(layout, &format!("{name}.{index}"), inputs, *width, activation)
        };
        Mlp { layers: widths.iter().enumerate().map(layer).collect() }
    }

    /// Returns all layers in order.
    pub fn layers(&self) -> &[Linear] {
        &self.layers
    }

    /// Returns the last layer and the layers before it.
    pub fn output_and_hidden(&self) -> (&Linear, &[Linear]) {
        self.layers.split_last().expect("at least one layer")
    }

    /// Returns the width of the output.
    pub fn n_out(&self) -> usize {
        self.output_and_hidden().0.n_out()
    }

    /// Writes `n_rows` outputs to the start of `buffers.out`, and extends `buffers.d_out` for their gradients.
    pub fn forward(
        &self,
        parameters: &[f32],
        parts: &[InputPart<'_>],
        n_rows: usize,
        buffers: &mut MlpBuffers,
    ) {
        let (last, hidden_layers) = self.output_and_hidden();
        let MlpBuffers { out, d_out, hidden, .. } = buffers;
        hidden.resize_with(hidden_layers.len(), Vec::new);
        for (index, layer) in hidden_layers.iter().enumerate() {
            let (before, output) = hidden.split_at_mut(index);
            let output = ensure_len(&mut output[0], n_rows * layer.n_out());
            forward_after(layer, parameters, before.last(), parts, n_rows, output);
        }
        let n_out = n_rows * last.n_out();
        forward_after(last, parameters, hidden.last(), parts, n_rows, ensure_len(out, n_out));
        ensure_len(d_out, n_out);
    }

    /// Backward pass from `buffers.d_out` through the rows of the last forward pass. Adds to `gradients`, and writes the
    /// gradient of every dense part for which `d_parts` has a buffer.
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        parts: &[InputPart<'_>],
        n_rows: usize,
        buffers: &mut MlpBuffers,
        d_parts: &mut [Option<(&mut [f32], WriteMode)>],
    ) {
        let MlpBuffers { out, d_out, hidden, d_hidden } = buffers;
        d_hidden.resize_with(hidden.len(), Vec::new);
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let n = n_rows * layer.n_out();
            let (d_before, d_from_here) = d_hidden.split_at_mut(index);
            let (output, d_output) = match d_from_here.first_mut() {
                Some(d_output) => (&hidden[index][..n], &mut d_output[..n]),
                None => (&out[..n], &mut d_out[..n]),
            };
            let Some(d_input) = d_before.last_mut() else {
                layer.backward(transposed, gradients, parts, output, d_output, d_parts);
                continue;
            };
            let n_in = n_rows * layer.n_in();
            let input = [InputPart::Dense(&hidden[index - 1][..n_in])];
            let mut d_input = [Some((ensure_len(d_input, n_in), WriteMode::Overwrite))];
            layer.backward(transposed, gradients, &input, output, d_output, &mut d_input);
        }
    }
}

impl From<Linear> for Mlp {
    fn from(layer: Linear) -> Mlp {
        Mlp { layers: vec![layer] }
    }
}

/// Computes one layer from the output of the layer before it, or from `parts` if it is the first.
fn forward_after(
    layer: &Linear,
    parameters: &[f32],
    before: Option<&Vec<f32>>,
    parts: &[InputPart<'_>],
    n_rows: usize,
    output: &mut [f32],
) {
    match before {
        None => layer.forward(parameters, parts, n_rows, output),
        Some(rows) => {
            layer.forward(parameters, &[InputPart::Dense(&rows[..n_rows * layer.n_in()])], n_rows, output);
        }
    }
}
