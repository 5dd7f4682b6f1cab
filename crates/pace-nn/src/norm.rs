//! Layer normalisation: scales every row to mean 0 and variance 1, then applies a gain and a bias per column.

use crate::kernels::{add_rows, sum_of, sum_of_products, vectorised};
use crate::layout::{Layout, TensorId};

/// Term added to the variance, so that a row of equal numbers has a finite scale.
const EPSILON: f32 = 1e-5;

/// A layer normalisation with its gains and biases.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    width: usize,
    gains: TensorId,
    biases: TensorId,
}

impl LayerNorm {
    /// Reserves gains and biases.
    pub fn new(layout: &mut Layout, name: &str, width: usize) -> LayerNorm {
        LayerNorm {
            width,
            gains: layout.reserve_factors(&format!("{name}.gain"), &[width]),
            biases: layout.reserve(&format!("{name}.bias"), &[width]),
        }
    }

    /// Initialises the gains with one and the biases with zero.
    pub(crate) fn initialise(&self, parameters: &mut [f32]) {
        parameters[self.gains.range()].fill(1.0);
        parameters[self.biases.range()].fill(0.0);
    }

    /// Computes the outputs. `rows` holds the inputs before and the normalised rows after the call. The backward pass needs
    /// these and the scales of the rows.
    pub fn forward(&self, parameters: &[f32], rows: &mut [f32], scales: &mut [f32], output: &mut [f32]) {
        let n = scales.len() * self.width;
        assert_eq!((rows.len(), output.len()), (n, n), "{} rows of {}", scales.len(), self.width);
        let (gains, biases) = (&parameters[self.gains.range()], &parameters[self.biases.range()]);
        normalise(rows, scales, gains, biases, output);
    }

    /// Backward pass; adds to `gradients`. `d_rows` holds the gradient of the output before and that of the input after the
    /// call.
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        normalised: &[f32],
        scales: &[f32],
        d_rows: &mut [f32],
    ) {
        let n = scales.len() * self.width;
        assert_eq!((normalised.len(), d_rows.len()), (n, n), "{} rows of {}", scales.len(), self.width);
        let gains = &transposed[self.gains.range()];
        add_products_of_rows(normalised, d_rows, &mut gradients[self.gains.range()]);
        add_rows(d_rows, &mut gradients[self.biases.range()]);
        normalise_backward(normalised, scales, gains, d_rows);
    }
}

vectorised! {
    fn normalise(rows: &mut [f32], scales: &mut [f32], gains: &[f32], biases: &[f32], output: &mut [f32]) {
        let width = gains.len();
        let share = 1.0 / width as f32;
        let rows = rows.chunks_exact_mut(width).zip(output.chunks_exact_mut(width));
        for ((row, output), scale) in rows.zip(scales) {
            let mean = sum_of(row) * share;
            for value in row.iter_mut() {
                *value -= mean;
            }
            *scale = 1.0 / (sum_of_products(row, row) * share + EPSILON).sqrt();
            for (((value, output), gain), bias) in row.iter_mut().zip(output).zip(gains).zip(biases) {
                *value *= *scale;
                *output = *value * gain + bias;
            }
        }
    }
}

vectorised! {
    /// Computes `scale · (d − mean(d) − x · mean(d · x))` with the normalised row x and d = gradient times gain.
    fn normalise_backward(normalised: &[f32], scales: &[f32], gains: &[f32], d_rows: &mut [f32]) {
        let width = gains.len();
        let share = 1.0 / width as f32;
        let rows = d_rows.chunks_exact_mut(width).zip(normalised.chunks_exact(width));
        for ((d_row, normalised), scale) in rows.zip(scales) {
            for (d_value, gain) in d_row.iter_mut().zip(gains) {
                *d_value *= gain;
            }
            let mean = sum_of(d_row) * share;
            let mean_product = sum_of_products(d_row, normalised) * share;
            for (d_value, normalised) in d_row.iter_mut().zip(normalised) {
                *d_value = scale * (*d_value - mean - normalised * mean_product);
            }
        }
    }
}

vectorised! {
    /// Adds the column sums of the element-wise product of two buffers of rows to `sums`.
    fn add_products_of_rows(rows: &[f32], others: &[f32], sums: &mut [f32]) {
        let width = sums.len();
        for (row, other) in rows.chunks_exact(width).zip(others.chunks_exact(width)) {
            for ((sum, value), other) in sums.iter_mut().zip(row).zip(other) {
                *sum += value * other;
            }
        }
    }
}
