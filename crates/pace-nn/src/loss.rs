//! Losses, one row at a time: each writes the gradient of its own term and returns its value.
//!
//! Sums over rows and their weights are the caller's; every gradient is multiplied by `weight`, the row's share in the mean.

/// Turns `logits` into log-probabilities.
#[inline]
pub fn log_softmax(logits: &[f32], log_probabilities: &mut [f32]) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|logit| (logit - highest).exp()).sum();
    let shift = highest + total.ln();
    for (log_probability, logit) in log_probabilities.iter_mut().zip(logits) {
        *log_probability = logit - shift;
    }
}

/// Turns `logits` into probabilities, in place.
#[inline]
pub fn softmax(logits: &mut [f32]) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for logit in logits.iter_mut() {
        *logit = (*logit - highest).exp();
        total += *logit;
    }
    logits.iter_mut().for_each(|value| *value /= total);
}

/// Draws an index by its probability, `uniform` being a number from [0, 1).
#[inline]
pub fn sample_categorical(probabilities: &[f32], uniform: f32) -> usize {
    let mut left = uniform;
    for (index, probability) in probabilities.iter().enumerate() {
        if left < *probability {
            return index;
        }
        left -= probability;
    }
    // Rounding may leave a sliver past the last one.
    probabilities.iter().rposition(|probability| *probability > 0.0).unwrap_or(0)
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
    pub divergence: f32,
    /// Whether the ratio left the clip range.
    pub is_clipped: bool,
}

impl PolicyLoss {
    /// The clipped surrogate with its entropy bonus. `d_logits` comes in holding scratch of the same length and goes out
    /// holding the gradient.
    #[inline]
    pub fn row(
        &self,
        logits: &[f32],
        action: usize,
        old_log_probability: f32,
        advantage: f32,
        weight: f32,
        d_logits: &mut [f32],
    ) -> PolicyTerms {
        log_softmax(logits, d_logits);
        let log_ratio = d_logits[action] - old_log_probability;
        let ratio = log_ratio.exp();
        let clipped = ratio.clamp(1.0 - self.clip, 1.0 + self.clip);
        let (free, bound) = (ratio * advantage, clipped * advantage);
        // The smaller of the two counts; where they tie, clipping does nothing and the gradient is the free one's.
        let d_log_probability = if free <= bound { -free } else { 0.0 };
        let entropy: f32 = -d_logits.iter().map(|log| log.exp() * log).sum::<f32>();
        for (index, place) in d_logits.iter_mut().enumerate() {
            let log = *place;
            let probability = log.exp();
            let chosen = f32::from(u8::from(index == action));
            let surrogate = d_log_probability * (chosen - probability);
            let bonus = self.entropy_weight * probability * (log + entropy);
            *place = weight * (surrogate + bonus);
        }
        PolicyTerms {
            loss: -free.min(bound),
            entropy,
            divergence: ratio - 1.0 - log_ratio,
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

/// Cross-entropy of one class; `d_logits` goes out holding the gradient. Returns the loss and the class's probability.
#[inline]
pub fn cross_entropy(logits: &[f32], class: usize, weight: f32, d_logits: &mut [f32]) -> (f32, f32) {
    log_softmax(logits, d_logits);
    let loss = -d_logits[class];
    let probability = (-loss).exp();
    for (index, place) in d_logits.iter_mut().enumerate() {
        let chosen = f32::from(u8::from(index == class));
        *place = weight * (place.exp() - chosen);
    }
    (loss, probability)
}
