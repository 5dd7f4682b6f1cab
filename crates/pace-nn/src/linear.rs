//! A fully connected layer on an input of several parts: `y = activation(x₁W₁ + x₂W₂ + … + b)`.
//!
//! The parts of a concatenated input are not copied into one buffer. A one-hot part is given as a class and selects a row of
//! the weights. The input `[observation ⊕ one-hot action]` thus costs one product, and one row added together with the bias.

use crate::kernels;
use crate::layout::{Layout, TensorId};
use crate::product::{multiply, multiply_transposed};

/// Whether a result replaces the numbers of its buffer or is added to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// The result replaces them.
    Overwrite,
    /// The result is added to them.
    Accumulate,
}

/// Activation function of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// No activation function.
    Identity,
    /// Rectified linear unit.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
}

/// One part of a layer's input.
#[derive(Clone, Copy, Debug)]
pub enum InputPart<'a> {
    /// Rows of numbers, one after the other.
    Dense(&'a [f32]),
    /// One class per row; a number above the last class means no class.
    OneHot(&'a [u8]),
}

/// A fully connected layer. Its weights are stored input by input: `n_in × n_out`.
#[derive(Clone, Debug)]
pub struct Linear {
    widths: Vec<usize>,
    n_out: usize,
    weights: TensorId,
    biases: TensorId,
    activation: Activation,
}

impl Linear {
    /// Reserves weights and biases for an input of parts with these widths.
    pub fn new(
        layout: &mut Layout,
        name: &str,
        widths: &[usize],
        n_out: usize,
        activation: Activation,
    ) -> Linear {
        Linear {
            widths: widths.to_vec(),
            n_out,
            weights: layout.reserve_matrix(&format!("{name}.weight"), widths, n_out),
            biases: layout.reserve(&format!("{name}.bias"), &[n_out]),
            activation,
        }
    }

    /// Returns the width of the output.
    pub fn n_out(&self) -> usize {
        self.n_out
    }

    /// Returns the width of the whole input.
    pub fn n_in(&self) -> usize {
        self.widths.iter().sum()
    }

    /// Returns the tensor of the weights.
    pub fn weights(&self) -> TensorId {
        self.weights
    }

    /// Returns the tensor of the biases.
    pub fn biases(&self) -> TensorId {
        self.biases
    }

    /// Returns the range of one part's rows in the weight matrix.
    fn part_range(&self, part: usize) -> std::ops::Range<usize> {
        let first: usize = self.widths[..part].iter().sum();
        first * self.n_out..(first + self.widths[part]) * self.n_out
    }

    /// Computes `n_rows` outputs.
    pub fn forward(&self, parameters: &[f32], parts: &[InputPart<'_>], n_rows: usize, output: &mut [f32]) {
        assert_eq!(parts.len(), self.widths.len(), "parts of the input");
        let weights = &parameters[self.weights.range()];
        let bias = &parameters[self.biases.range()];
        let mut mode = WriteMode::Overwrite;
        let mut one_hot = None;
        for (index, part) in parts.iter().enumerate() {
            let part_weights = &weights[self.part_range(index)];
            match part {
                InputPart::Dense(rows) => {
                    multiply(rows, part_weights, output, n_rows, self.widths[index], self.n_out, mode);
                    mode = WriteMode::Accumulate;
                }
                InputPart::OneHot(classes) => one_hot = Some((part_weights, *classes)),
            }
        }
        if mode == WriteMode::Overwrite {
            output.fill(0.0);
        }
        let is_relu = self.activation == Activation::Relu;
        match one_hot {
            Some((table, classes)) => {
                kernels::add_bias_and_class(output, bias, table, classes, is_relu);
            }
            None if is_relu => kernels::add_bias_relu(output, bias),
            None => kernels::add_bias(output, bias),
        }
        if self.activation == Activation::Tanh {
            kernels::tanh_inplace(output);
        }
    }

    /// Backward pass with the weights that [`Layout::transpose`] wrote. Adds to `gradients`, and writes the gradient of every
    /// dense part for which `d_parts` has a buffer. `d_output` holds the gradient before the activation after the call.
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        parts: &[InputPart<'_>],
        output: &[f32],
        d_output: &mut [f32],
        d_parts: &mut [Option<(&mut [f32], WriteMode)>],
    ) {
        let n_rows = d_output.len() / self.n_out;
        let d_bias = &mut gradients[self.biases.range()];
        match self.activation {
            Activation::Identity => kernels::add_rows(d_output, d_bias),
            Activation::Relu => kernels::relu_backward(d_output, output, d_bias),
            Activation::Tanh => kernels::tanh_backward(d_output, output, d_bias),
        }
        let transposed = &transposed[self.weights.range()];
        let d_weights = &mut gradients[self.weights.range()];
        for (index, part) in parts.iter().enumerate() {
            let width = self.widths[index];
            let range = self.part_range(index);
            match part {
                InputPart::Dense(rows) => {
                    multiply_transposed(
                        rows,
                        d_output,
                        &mut d_weights[range.clone()],
                        n_rows,
                        width,
                        self.n_out,
                        WriteMode::Accumulate,
                    );
                    if let Some(Some((d_rows, mode))) = d_parts.get_mut(index) {
                        multiply(d_output, &transposed[range], d_rows, n_rows, self.n_out, width, *mode);
                    }
                }
                InputPart::OneHot(classes) => {
                    kernels::add_rows_by_class(d_output, classes, self.n_out, &mut d_weights[range]);
                }
            }
        }
    }
}
