//! Normal distributions without covariance, one per row: its means, then the logarithms of its variances.
//!
//! Samples are a function of noise that the caller draws, so that gradients reach means and variances. Gradients of a
//! distribution are added to what `d_…` holds: those of its samples and of its divergence meet there.

use crate::kernels::{exp, vectorised};

vectorised! {
    /// `mean + deviation · noise`, for rows of `n` standard normal numbers.
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
    /// Takes the gradient of the samples back to the distributions.
    pub fn sample_backward(
        distributions: &[f32],
        noise: &[f32],
        n: usize,
        d_samples: &[f32],
        d_distributions: &mut [f32],
    ) {
        let rows = distributions.chunks_exact(2 * n).zip(d_distributions.chunks_exact_mut(2 * n));
        let given = noise.chunks_exact(n).zip(d_samples.chunks_exact(n));
        for ((distribution, d_distribution), (noise, d_sample)) in rows.zip(given) {
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

/// The divergence of one distribution from the standard normal one; its gradient is multiplied by `weight`.
pub fn kl_from_standard(distribution: &[f32], weight: f32, d_distribution: &mut [f32]) -> f32 {
    let n = distribution.len() / 2;
    let mut divergence = 0.0;
    for place in 0..n {
        let (mean, log) = (distribution[place], distribution[n + place]);
        let variance = exp(log);
        divergence += 0.5 * (mean * mean + variance - 1.0 - log);
        d_distribution[place] += weight * mean;
        d_distribution[n + place] += weight * 0.5 * (variance - 1.0);
    }
    divergence
}

/// The divergence of one distribution from another one, which is held fixed; its gradient is multiplied by `weight`.
pub fn kl_divergence(distribution: &[f32], fixed: &[f32], weight: f32, d_distribution: &mut [f32]) -> f32 {
    let n = distribution.len() / 2;
    assert_eq!(fixed.len(), 2 * n, "distributions of as many numbers");
    let mut divergence = 0.0;
    for place in 0..n {
        let (mean, log) = (distribution[place], distribution[n + place]);
        let (fixed_mean, fixed_log) = (fixed[place], fixed[n + place]);
        let precision = exp(-fixed_log);
        let (ratio, apart) = (exp(log - fixed_log), mean - fixed_mean);
        divergence += 0.5 * (fixed_log - log + ratio + apart * apart * precision - 1.0);
        d_distribution[place] += weight * apart * precision;
        d_distribution[n + place] += weight * 0.5 * (ratio - 1.0);
    }
    divergence
}
