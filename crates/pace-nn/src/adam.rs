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
///
/// Weights come in groups, one after the other, each with a count of its own: a group that was left out of some steps has
/// younger moments, and the correction for their youth must know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    /// Running mean of the gradient.
    pub first: Vec<f32>,
    /// Running mean of its square.
    pub second: Vec<f32>,
    /// Steps taken by each group.
    pub n_steps: Vec<u64>,
    group_ends: Vec<usize>,
}

impl Adam {
    /// For groups of weights that end at these places.
    pub fn new(config: AdamConfig, group_ends: &[usize]) -> Adam {
        let n = group_ends.last().copied().unwrap_or(0);
        Adam {
            config,
            first: vec![0.0; n],
            second: vec![0.0; n],
            n_steps: vec![0; group_ends.len()],
            group_ends: group_ends.to_vec(),
        }
    }

    /// Clips the gradient of the first `n_groups` groups to `max_norm` and takes one step with them; returns the norm before
    /// clipping. The other groups stay as they are.
    pub fn step(
        &mut self,
        values: &mut [f32],
        gradients: &[f32],
        n_groups: usize,
        rate: f32,
        max_norm: f32,
    ) -> f32 {
        let end = self.group_ends[n_groups - 1];
        let norm = kernels::sum_of_squares(&gradients[..end]).sqrt() as f32;
        let factor = (max_norm / (norm + 1e-6)).min(1.0);
        let mut start = 0;
        for group in 0..n_groups {
            self.n_steps[group] += 1;
            let n_steps = self.n_steps[group].min(i32::MAX as u64) as i32;
            let correction = |decay: f32| 1.0 - f64::from(decay).powi(n_steps);
            let range = start..self.group_ends[group];
            kernels::adam_step(
                &mut values[range.clone()],
                &gradients[range.clone()],
                &mut self.first[range.clone()],
                &mut self.second[range],
                factor,
                self.config.decay,
                (f64::from(rate) / correction(self.config.decay[0])) as f32,
                (1.0 / correction(self.config.decay[1]).sqrt()) as f32,
                self.config.epsilon,
            );
            start = self.group_ends[group];
        }
        norm
    }
}
