//! Adam over a flat buffer, with gradient clipping by norm.

use crate::kernels;
use crate::threads::{SLICE, for_each_shard};

/// Hyperparameters of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamConfig {
    /// Decay rates of the first and second moment.
    pub betas: [f32; 2],
    /// Added to the denominator of the update.
    pub epsilon: f32,
}

/// Moments of every weight, and the number of steps of each parameter group.
///
/// The groups lie one after the other in the buffer of weights. Each counts its own steps: the bias correction of a group
/// that skipped steps depends on the steps it took part in.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    config: AdamConfig,
    /// Running mean of the gradient.
    pub first_moment: Vec<f32>,
    /// Running mean of the squared gradient.
    pub second_moment: Vec<f32>,
    /// Steps taken by each group.
    pub n_steps: Vec<u64>,
    group_ends: Vec<usize>,
}

impl Adam {
    /// Creates the state for groups of weights that end at the indices `group_ends`.
    pub fn new(config: AdamConfig, group_ends: &[usize]) -> Adam {
        let n = group_ends.last().copied().unwrap_or(0);
        Adam {
            config,
            first_moment: vec![0.0; n],
            second_moment: vec![0.0; n],
            n_steps: vec![0; group_ends.len()],
            group_ends: group_ends.to_vec(),
        }
    }

    /// Clips the gradient of the first `n_groups` groups to `max_norm` and takes one step with them; the other groups stay
    /// unchanged. Returns the norm before clipping.
    pub fn step(
        &mut self,
        n_threads: usize,
        values: &mut [f32],
        gradients: &[f32],
        n_groups: usize,
        rate: f32,
        max_norm: f32,
    ) -> f32 {
        let end = self.group_ends[n_groups - 1];
        let mut squares: Vec<(&[f32], f64)> =
            gradients[..end].chunks(SLICE).map(|slice| (slice, 0.0)).collect();
        for_each_shard(n_threads, &mut squares, |_, (slice, sum)| *sum = kernels::sum_of_squares(slice));
        let norm = squares.iter().map(|(_, sum)| sum).sum::<f64>().sqrt() as f32;
        let factor = (max_norm / (norm + 1e-6)).min(1.0);
        let AdamConfig { betas, epsilon } = self.config;
        let mut slices = Vec::new();
        let (mut values, mut first, mut second) =
            (values, &mut self.first_moment[..], &mut self.second_moment[..]);
        let mut start = 0;
        for (n_steps, group_end) in self.n_steps[..n_groups].iter_mut().zip(&self.group_ends) {
            *n_steps += 1;
            let exponent = (*n_steps).min(i32::MAX as u64) as i32;
            let bias_correction = |beta: f32| 1.0 - f64::from(beta).powi(exponent);
            let rate = (f64::from(rate) / bias_correction(betas[0])) as f32;
            let second_scale = (1.0 / bias_correction(betas[1]).sqrt()) as f32;
            let n = group_end - start;
            let parts = (
                values.split_off_mut(..n).expect("a value and two moments for every weight"),
                first.split_off_mut(..n).expect("a value and two moments for every weight"),
                second.split_off_mut(..n).expect("a value and two moments for every weight"),
            );
            let moments = parts.1.chunks_mut(SLICE).zip(parts.2.chunks_mut(SLICE));
            let gradients = gradients[start..*group_end].chunks(SLICE);
            let weights = parts.0.chunks_mut(SLICE).zip(gradients);
            slices.extend(weights.zip(moments).map(|slice| (slice, rate, second_scale)));
            start = *group_end;
        }
        for_each_shard(n_threads, &mut slices, |_, (((values, gradients), (first, second)), rate, scale)| {
            kernels::adam_step(values, gradients, first, second, factor, betas, *rate, *scale, epsilon);
        });
        norm
    }
}
