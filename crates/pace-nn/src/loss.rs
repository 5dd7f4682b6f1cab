//! Losses: a softmax over many rows, and losses of rows with their gradients.
//!
//! The caller sums the losses over rows. Every gradient is multiplied by `weight`, the weight of a row in the caller's mean.

use crate::kernels;

/// Computes log-probabilities and probabilities from logits.
///
/// A row consists of groups of these widths; each group is a distribution. All crates use this softmax, so that equal logits
/// give equal bits in training, evaluation and play.
pub fn softmax_rows(
    logits: &[f32],
    groups: &[usize],
    log_probabilities: &mut [f32],
    probabilities: &mut [f32],
) {
    let width: usize = groups.iter().sum();
    assert_eq!(logits.len() % width, 0, "rows of {width} logits");
    let all_groups = || groups.iter().cycle().take(groups.len() * (logits.len() / width));
    let mut start = 0;
    for n in all_groups() {
        let (logits, logs) = (&logits[start..][..*n], &mut log_probabilities[start..][..*n]);
        let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for (log, logit) in logs.iter_mut().zip(logits) {
            *log = logit - highest;
        }
        start += n;
    }
    // All rows in one pass: groups are often too short to fill a vector.
    kernels::exp_into(probabilities, log_probabilities);
    let mut start = 0;
    for n in all_groups() {
        let group = &mut probabilities[start..][..*n];
        let total: f32 = group.iter().sum();
        let (shift, factor) = (total.ln(), 1.0 / total);
        group.iter_mut().for_each(|probability| *probability *= factor);
        log_probabilities[start..][..*n].iter_mut().for_each(|log| *log -= shift);
        start += n;
    }
}

/// Hyperparameters of PPO's policy loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyLoss {
    /// Clip range of the probability ratio around 1.
    pub clip: f32,
    /// Weight of the entropy bonus.
    pub entropy_weight: f32,
}

/// Terms of the policy loss of one row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyTerms {
    /// Clipped surrogate loss.
    pub loss: f32,
    /// Entropy of the policy.
    pub entropy: f32,
    /// Estimate of the KL divergence from the old policy: ratio − 1 − log ratio.
    pub approx_kl: f32,
    /// Whether the ratio left the clip range.
    pub is_clipped: bool,
}

impl PolicyLoss {
    /// Computes the clipped surrogate loss with its entropy bonus for a row of [`softmax_rows`]. `d_logits` holds the
    /// log-probabilities before and the gradient after the call.
    #[inline]
    pub fn row(
        &self,
        probabilities: &[f32],
        action: usize,
        old_log_probability: f32,
        advantage: f32,
        weight: f32,
        d_logits: &mut [f32],
    ) -> PolicyTerms {
        let log_ratio = d_logits[action] - old_log_probability;
        let ratio = kernels::exp(log_ratio);
        let clipped = ratio.clamp(1.0 - self.clip, 1.0 + self.clip);
        let (unclipped, clipped) = (ratio * advantage, clipped * advantage);
        // The loss is minus the smaller one. If they are equal, the gradient is that of the unclipped one.
        let d_log_probability = if unclipped <= clipped { -unclipped } else { 0.0 };
        let pairs = d_logits.iter().zip(probabilities);
        let entropy: f32 = -pairs.map(|(log, probability)| probability * log).sum::<f32>();
        for (d_logit, probability) in d_logits.iter_mut().zip(probabilities) {
            let log_probability = *d_logit;
            let bonus = self.entropy_weight * (log_probability + entropy);
            *d_logit = weight * probability * (bonus - d_log_probability);
        }
        d_logits[action] += weight * d_log_probability;
        PolicyTerms {
            loss: -unclipped.min(clipped),
            entropy,
            approx_kl: ratio - 1.0 - log_ratio,
            is_clipped: (ratio - 1.0).abs() > self.clip,
        }
    }
}

/// Returns half the squared error of a value, clipped around the old value, and its gradient.
#[inline]
pub fn clipped_value(value: f32, old_value: f32, target: f32, clip: f32) -> (f32, f32) {
    let change = value - old_value;
    let clipped_value = old_value + change.clamp(-clip, clip);
    let (unclipped, clipped) = ((value - target).powi(2), (clipped_value - target).powi(2));
    if unclipped >= clipped {
        (0.5 * unclipped, value - target)
    } else {
        // Outside the clip range the clipped error does not depend on the value.
        (0.5 * clipped, if change.abs() < clip { clipped_value - target } else { 0.0 })
    }
}

/// Returns the cross-entropy of one class for a row of [`softmax_rows`]. `d_logits` holds the log-probabilities before and
/// the gradient after the call.
#[inline]
pub fn cross_entropy(probabilities: &[f32], class: usize, weight: f32, d_logits: &mut [f32]) -> f32 {
    let loss = -d_logits[class];
    for (d_logit, probability) in d_logits.iter_mut().zip(probabilities) {
        *d_logit = weight * probability;
    }
    d_logits[class] -= weight;
    loss
}

/// Returns the mean over groups of the cross-entropy of each group's class, for a row of [`softmax_rows`].
///
/// `d_logits` is used as in [`cross_entropy`]. A number above a group's last class means no class: its term is zero, and
/// the divisor of the mean does not change.
pub fn mean_cross_entropy(
    probabilities: &[f32],
    groups: &[usize],
    classes: &[u8],
    weight: f32,
    d_logits: &mut [f32],
) -> f32 {
    assert_eq!(classes.len(), groups.len(), "a class for every group");
    let share = 1.0 / groups.len() as f32;
    let (mut start, mut total) = (0, 0.0);
    for (n, class) in groups.iter().zip(classes) {
        let d_group = &mut d_logits[start..][..*n];
        if usize::from(*class) < *n {
            let probabilities = &probabilities[start..][..*n];
            total += cross_entropy(probabilities, usize::from(*class), weight * share, d_group);
        } else {
            d_group.fill(0.0);
        }
        start += n;
    }
    total * share
}

/// Returns the sum over rows of the mean squared error of each row, multiplied by the row's factor in `mask`.
///
/// `d_rows` holds the predictions before and the gradient after the call.
pub fn mean_squared_errors(
    targets: &[f32],
    width: usize,
    mask: &[f32],
    weight: f32,
    d_rows: &mut [f32],
) -> f64 {
    let n = mask.len() * width;
    assert_eq!((targets.len(), d_rows.len()), (n, n), "{} rows of {width}", mask.len());
    let share = 1.0 / width as f32;
    let rows = d_rows.chunks_exact_mut(width).zip(targets.chunks_exact(width));
    let mut total = 0.0;
    for ((d_row, target), mask) in rows.zip(mask) {
        let squares = kernels::subtract_and_square(d_row, target);
        total += f64::from(squares * share * mask);
        kernels::scale(d_row, 2.0 * share * weight * mask);
    }
    total
}
