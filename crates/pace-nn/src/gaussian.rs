//! Normal distributions with diagonal covariance, one per row: the means, then the logarithms of the variances.
//!
//! Samples are a function of noise that the caller draws, so that gradients reach means and variances. Gradients are added
//! to `d_distribution`, which thus sums those of the samples and of the KL divergence.

use crate::kernels::{exp, vectorised};

vectorised! {
    /// Computes `mean + standard deviation · noise` for rows of `n` standard normal numbers.
    pub fn sample(distributions: &[f32], noise: &[f32], n: usize, samples: &mut [f32]) {
        let rows = distributions.chunks_exact(2 * n).zip(noise.chunks_exact(n));
        for ((distribution, noise), sample) in rows.zip(samples.chunks_exact_mut(n)) {
            let (means, logs) = distribution.split_at(n);
            for (((sample, mean), log), noise) in sample.iter_mut().zip(means).zip(logs).zip(noise) {
                *sample = mean + exp(0.5 * log) * noise;
            }
        }
    }
}

vectorised! {
    /// Adds the gradient of the samples to the gradient of the distributions.
    pub fn sample_backward(
        distributions: &[f32],
        noise: &[f32],
        n: usize,
        d_samples: &[f32],
        d_distributions: &mut [f32],
    ) {
        let rows = distributions.chunks_exact(2 * n).zip(d_distributions.chunks_exact_mut(2 * n));
        let samples = noise.chunks_exact(n).zip(d_samples.chunks_exact(n));
        for ((distribution, d_distribution), (noise, d_sample)) in rows.zip(samples) {
            let (d_means, d_logs) = d_distribution.split_at_mut(n);
            for (d_mean, d_sample) in d_means.iter_mut().zip(d_sample) {
                *d_mean += d_sample;
            }
            let logs = distribution[n..].iter();
            for (((d_log, log), noise), d_sample) in d_logs.iter_mut().zip(logs).zip(noise).zip(d_sample) {
                *d_log += 0.5 * exp(0.5 * log) * noise * d_sample;
            }
        }
    }
}

/// Returns the KL divergence of one distribution from the standard normal distribution. Adds the gradient, multiplied by
/// `weight`, to `d_distribution`.
pub fn kl_from_standard(distribution: &[f32], weight: f32, d_distribution: &mut [f32]) -> f32 {
    let n = distribution.len() / 2;
    let mut divergence = 0.0;
    for index in 0..n {
        let (mean, log) = (distribution[index], distribution[n + index]);
        let variance = exp(log);
        divergence += 0.5 * (mean * mean + variance - 1.0 - log);
        d_distribution[index] += weight * mean;
        d_distribution[n + index] += weight * 0.5 * (variance - 1.0);
    }
    divergence
}

/// Returns the KL divergence of one distribution from a fixed one. Adds the gradient, multiplied by `weight`, to
/// `d_distribution`.
pub fn kl_divergence(distribution: &[f32], fixed: &[f32], weight: f32, d_distribution: &mut [f32]) -> f32 {
    let n = distribution.len() / 2;
    assert_eq!(fixed.len(), 2 * n, "distributions of the same size");
    let mut divergence = 0.0;
    for index in 0..n {
        let (mean, log) = (distribution[index], distribution[n + index]);
        let (fixed_mean, fixed_log) = (fixed[index], fixed[n + index]);
        let precision = exp(-fixed_log);
        let (ratio, difference) = (exp(log - fixed_log), mean - fixed_mean);
        divergence += 0.5 * (fixed_log - log + ratio + difference * difference * precision - 1.0);
        d_distribution[index] += weight * difference * precision;
        d_distribution[n + index] += weight * 0.5 * (ratio - 1.0);
    }
    divergence
}
