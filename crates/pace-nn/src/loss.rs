//! Losses: softmax over many rows at once, and then one row at a time, each writing the gradient of its own term.
//!
//! Sums over rows and their weights are the caller's; every gradient is multiplied by `weight`, the row's share in the mean.

use crate::kernels;

/// Turns logits into log-probabilities and probabilities: the one softmax there is, so that equal logits give equal bits in
/// training, evaluation and play. A row consists of groups of these widths, each a distribution of
/// its own.
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
    // All rows in one sweep: groups are often too short to fill a vector.
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

/// The numbers of the policy loss that a person chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyLoss {
    /// How far the probability ratio may move before its gradient stops.
    pub clip: f32,
    /// Weight of the entropy bonus.
    pub entropy_weight: f32,
}

/// What the policy loss of one row came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyTerms {
    /// The clipped surrogate.
    pub loss: f32,
    /// The entropy of the policy.
    pub entropy: f32,
    /// An estimate of the divergence from the old policy: ratio − 1 − log ratio.
    pub approx_kl: f32,
    /// Whether the ratio left the clip range.
    pub is_clipped: bool,
}

impl PolicyLoss {
    /// The clipped surrogate with its entropy bonus, from a row of [`softmax_rows`]. `d_logits` comes in holding the
    /// log-probabilities and goes out holding the gradient.
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
        let (free, bound) = (ratio * advantage, clipped * advantage);
        // The smaller of the two counts; where they tie, clipping does nothing and the gradient is the free one's.
        let d_log_probability = if free <= bound { -free } else { 0.0 };
        let pairs = d_logits.iter().zip(probabilities);
        let entropy: f32 = -pairs.map(|(log, probability)| probability * log).sum::<f32>();
        for (place, probability) in d_logits.iter_mut().zip(probabilities) {
            let bonus = self.entropy_weight * (*place + entropy);
            *place = weight * probability * (bonus - d_log_probability);
        }
        d_logits[action] += weight * d_log_probability;
        PolicyTerms {
            loss: -free.min(bound),
            entropy,
            approx_kl: ratio - 1.0 - log_ratio,
            is_clipped: (ratio - 1.0).abs() > self.clip,
        }
    }
}

/// Half the squared error of a value, clipped around the old value; returns the loss and its gradient.
#[inline]
pub fn clipped_value(value: f32, old_value: f32, target: f32, clip: f32) -> (f32, f32) {
    let moved = value - old_value;
    let near = old_value + moved.clamp(-clip, clip);
    let (free, bound) = ((value - target).powi(2), (near - target).powi(2));
    if free >= bound {
        (0.5 * free, value - target)
    } else {
        // The clipped branch counts, and inside it the value has no gradient once it left the range.
        (0.5 * bound, if moved.abs() < clip { near - target } else { 0.0 })
    }
}

/// Cross-entropy of one class, from a row of [`softmax_rows`]. `d_logits` comes in holding the log-probabilities and goes
/// out holding the gradient. Returns the loss.
#[inline]
pub fn cross_entropy(probabilities: &[f32], class: usize, weight: f32, d_logits: &mut [f32]) -> f32 {
    let loss = -d_logits[class];
    for (place, probability) in d_logits.iter_mut().zip(probabilities) {
        *place = weight * probability;
    }
    d_logits[class] -= weight;
    loss
}

/// The mean over the groups of a row of [`softmax_rows`] of the cross-entropy of each group's class; `d_logits` as in
/// [`cross_entropy`]. A class past a group's last one stands for none: its term is zero, the divisor stays.
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

/// The squared error of every row, averaged over its `width` numbers and multiplied by its number in `mask`; returns the
/// sum over rows. `d_rows` comes in holding the predictions and goes out holding the gradient.
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
