//! Adam over a flat buffer, after the gradient's norm was clipped.

use crate::kernels;
use crate::threads::{SLICE, for_each_shard};

/// The numbers of Adam that a person chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// Decay of the two moments.
    pub decay: [f32; 2],
    /// Keeps the division finite.
    pub epsilon: f32,
}

/// The two moments of every weight, and how many steps were taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    /// Running mean of the gradient.
    pub first: Vec<f32>,
    /// Running mean of its square.
    pub second: Vec<f32>,
    /// Steps taken.
    pub n_steps: u64,
}

impl Adam {
    /// For `n` weights.
    pub fn new(config: AdamConfig, n: usize) -> Adam {
        Adam { config, first: vec![0.0; n], second: vec![0.0; n], n_steps: 0 }
    }

    /// Clips the whole gradient to `max_norm` and takes one step over the part of the weights in `range`; returns the
    /// norm before clipping. Moments outside the range stay as they are.
    pub fn step(
        &mut self,
        n_threads: usize,
        values: &mut [f32],
        gradients: &[f32],
        range: std::ops::Range<usize>,
        rate: f32,
        max_norm: f32,
    ) -> f32 {
        self.n_steps += 1;
        let gradients = &gradients[range.clone()];
        let mut squares: Vec<(&[f32], f64)> = gradients.chunks(SLICE).map(|slice| (slice, 0.0)).collect();
        for_each_shard(n_threads, &mut squares, |_, (slice, sum)| *sum = kernels::sum_of_squares(slice));
        let norm = squares.iter().map(|(_, sum)| sum).sum::<f64>().sqrt() as f32;
        let factor = (max_norm / (norm + 1e-6)).min(1.0);
        let correction = |decay: f32| 1.0 - f64::from(decay).powi(self.n_steps.min(i32::MAX as u64) as i32);
        let AdamConfig { decay, epsilon } = self.config;
        let rate = (f64::from(rate) / correction(decay[0])) as f32;
        let second_scale = (1.0 / correction(decay[1]).sqrt()) as f32;
        let moments =
            self.first[range.clone()].chunks_mut(SLICE).zip(self.second[range.clone()].chunks_mut(SLICE));
        let mut slices: Vec<_> =
            values[range].chunks_mut(SLICE).zip(gradients.chunks(SLICE)).zip(moments).collect();
        for_each_shard(n_threads, &mut slices, |_, ((values, gradients), (first, second))| {
            kernels::adam_step(values, gradients, first, second, factor, decay, rate, second_scale, epsilon);
        });
        norm
    }
}
