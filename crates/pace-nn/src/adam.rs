//! Adam over a flat buffer, after the gradient's norm was clipped.

use crate::kernels;

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
        values: &mut [f32],
        gradients: &[f32],
        range: std::ops::Range<usize>,
        rate: f32,
        max_norm: f32,
    ) -> f32 {
        self.n_steps += 1;
        let norm = kernels::sum_of_squares(&gradients[range.clone()]).sqrt() as f32;
        let factor = (max_norm / (norm + 1e-6)).min(1.0);
        let correction = |decay: f32| 1.0 - f64::from(decay).powi(self.n_steps.min(i32::MAX as u64) as i32);
        let rate = (f64::from(rate) / correction(self.config.decay[0])) as f32;
        let second_scale = (1.0 / correction(self.config.decay[1]).sqrt()) as f32;
        kernels::adam_step(
            &mut values[range.clone()],
            &gradients[range.clone()],
            &mut self.first[range.clone()],
            &mut self.second[range],
            factor,
            self.config.decay,
            rate,
            second_scale,
            self.config.epsilon,
        );
        norm
    }
}
