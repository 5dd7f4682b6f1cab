//! h, the peer identifier: one linear layer that predicts from the latent, for every peer, its class among the training peers or
//! its traits.
//!
//! Classes have a softmax per peer; each trait is a number from 0 to 1.

use std::ops::Range;

use pace_games::{PoolListing, Stream};
use pace_nn::loss::{cross_entropy, softmax_rows};
use pace_nn::{Activation, InputPart, Layout, Linear, WriteMode, kernels};

use super::{ensure_len, uniform};
use crate::config::IdentifierTarget;
use crate::learner::ShardUpdate;
use crate::network::{PolicyOutputs, copy_to};

/// The layer, and the targets that it predicts for each peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerIdentifier {
    layer: Linear,
    /// The place of each peer's outputs in a row.
    outputs: Vec<Range<usize>>,
    /// The place of each peer's classes in a row of posteriors.
    slots: Vec<Range<usize>>,
    /// The traits of each slot's training peers; `None` if classes are predicted.
    traits: Option<Vec<SlotTraits>>,
}

/// The predictions of one chunk, and the gradients of its outputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdentifierBuffers {
    /// Outputs of the layer, before softmax or sigmoid.
    outputs: Vec<f32>,
    d_outputs: Vec<f32>,
    /// Probabilities of classes, or traits.
    predictions: Vec<f32>,
}

/// The traits of a slot's training peers.
#[derive(Clone, Debug)]
struct SlotTraits {
    by_class: Vec<Vec<f32>>,
    /// The squared error of an identifier that always predicts the mean.
    spread: f32,
}

/// The loss and accuracy of one prediction about one peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IdentifierTerms {
    pub(crate) loss: f32,
    pub(crate) confidence: f32,
    pub(crate) is_right: bool,
}

/// The error, as a share of the spread, at which a class is e^(-1/2) times as likely as a class that fits exactly. It affects displayed
/// posteriors only, not training.
const FIT: f32 = 0.02;

/// Converts log-likelihoods to probabilities, in place.
fn normalise_exponentials(values: &mut [f32]) {
    let highest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for value in values.iter_mut() {
        *value = (*value - highest).exp();
        total += *value;
    }
    values.iter_mut().for_each(|value| *value /= total);
}

impl PeerIdentifier {
    /// The names of the sums of [`PeerIdentifier::learn`].
    pub(crate) const METRICS: &[&str] = &["peer/aux_loss", "peer/posterior", "peer/top1"];

    pub(crate) fn new(
        layout: &mut Layout,
        latent_size: usize,
        pool: &PoolListing,
        identifier_target: IdentifierTarget,
    ) -> PeerIdentifier {
        let slots = ranges(pool.n_classes.iter().copied());
        let (outputs, traits) = match identifier_target {
            IdentifierTarget::Classes => (slots.clone(), None),
            IdentifierTarget::Traits => {
                let traits: Vec<SlotTraits> = pool.traits.iter().cloned().map(SlotTraits::new).collect();
                (ranges(traits.iter().map(|slot| slot.by_class[0].len())), Some(traits))
            }
        };
        let n_outputs = outputs.last().map_or(0, |last| last.end);
        PeerIdentifier {
            layer: Linear::new(layout, "identifier", &[latent_size], n_outputs, Activation::Identity),
            outputs,
            slots,
            traits,
        }
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        uniform(weights, &self.layer, rng);
    }

    pub(crate) fn n_outputs(&self) -> usize {
        self.layer.n_out()
    }

    /// The place of each peer's classes in a row of posteriors.
    pub(crate) fn slots(&self) -> &[Range<usize>] {
        &self.slots
    }

    /// Writes the predictions for `n_rows` latents to the buffers.
    fn forward(&self, weights: &[f32], latents: &[f32], n_rows: usize, buffers: &mut IdentifierBuffers) {
        let n = n_rows * self.n_outputs();
        let outputs = ensure_len(&mut buffers.outputs, n);
        let logs = ensure_len(&mut buffers.d_outputs, n);
        let predictions = ensure_len(&mut buffers.predictions, n);
        self.layer.forward(weights, &[InputPart::Dense(latents)], n_rows, outputs);
        if self.traits.is_some() {
            for (prediction, output) in predictions.iter_mut().zip(outputs) {
                *prediction = kernels::sigmoid(*output);
            }
        } else {
            let mut sizes = [0; pace_games::MAX_SEATS];
            for (size, slot) in sizes.iter_mut().zip(&self.slots) {
                *size = slot.len();
            }
            softmax_rows(outputs, &sizes[..self.slots.len()], logs, predictions);
        }
    }

    /// Writes predictions and posteriors for the latents in `out`.
    pub(crate) fn predict(
        &self,
        weights: &[f32],
        n_rows: usize,
        buffers: &mut IdentifierBuffers,
        out: &mut PolicyOutputs,
    ) {
        self.forward(weights, &out.latents, n_rows, buffers);
        let (n_outputs, n_posteriors) = (self.n_outputs(), self.slots.last().map_or(0, |last| last.end));
        copy_to(&mut out.predictions, &buffers.predictions[..n_rows * n_outputs]);
        out.posteriors.resize(n_rows * n_posteriors, 0.0);
        let posteriors = out.posteriors.chunks_exact_mut(n_posteriors);
        for (predictions, posteriors) in out.predictions.chunks_exact(n_outputs).zip(posteriors) {
            self.posteriors(predictions, posteriors);
        }
    }

    /// Adds the gradient and the sums of the loss, a mean over the peers, and writes the gradient of the latents; it is 0 if
    /// there is no auxiliary loss. `classes` holds the classes of all peers, one row per latent.
    pub(crate) fn learn(
        &self,
        update: &mut ShardUpdate<'_>,
        classes: &[usize],
        latents: &[f32],
        d_latents: &mut [f32],
        buffers: &mut IdentifierBuffers,
    ) {
        let Some(weight) = update.job.weights.auxiliary_per_row() else {
            d_latents.fill(0.0);
            return;
        };
        let (n_slots, n_outputs) = (self.slots.len(), self.n_outputs());
        let n_rows = classes.len() / n_slots;
        self.forward(update.weights, latents, n_rows, buffers);
        let IdentifierBuffers { outputs, d_outputs, predictions } = buffers;
        let (outputs, d_outputs) = (&outputs[..n_rows * n_outputs], &mut d_outputs[..n_rows * n_outputs]);
        let share = 1.0 / n_slots as f32;
        for (row, classes) in classes.chunks_exact(n_slots).enumerate() {
            let predictions = &predictions[row * n_outputs..][..n_outputs];
            let d_outputs = &mut d_outputs[row * n_outputs..][..n_outputs];
            for (slot, class) in classes.iter().enumerate() {
                let terms = self.terms(predictions, slot, *class, weight * share, d_outputs);
                let [all_losses, all_confidence, n_right] = &mut update.sums.own;
                *all_losses += f64::from(terms.loss * share);
                *all_confidence += f64::from(terms.confidence * share);
                *n_right += f64::from(u8::from(terms.is_right)) * f64::from(share);
            }
        }
        let mut d_parts = [Some((d_latents, WriteMode::Overwrite))];
        let parts = [InputPart::Dense(latents)];
        self.layer.backward(update.transposed, update.gradients, &parts, outputs, d_outputs, &mut d_parts);
    }

    /// Writes a posterior over classes per peer for a row of predictions. From predicted traits, classes with similar traits are
    /// likely.
    fn posteriors(&self, predictions: &[f32], posteriors: &mut [f32]) {
        let Some(traits) = &self.traits else {
            posteriors.copy_from_slice(predictions);
            return;
        };
        for ((traits, place), slot) in traits.iter().zip(&self.outputs).zip(&self.slots) {
            let posterior = &mut posteriors[slot.clone()];
            for (class, value) in posterior.iter_mut().enumerate() {
                *value = -traits.error(&predictions[place.clone()], class) / (2.0 * FIT);
            }
            normalise_exponentials(posterior);
        }
    }

    /// Confidence of a row of predictions that the peer of a slot is of a class, from 0 to 1: the probability of the class, or the
    /// explained share of the spread of the traits.
    pub(crate) fn confidence(&self, predictions: &[f32], slot: usize, class: usize) -> f32 {
        let prediction = &predictions[self.outputs[slot].clone()];
        match &self.traits {
            None => prediction[class],
            Some(traits) => (1.0 - traits[slot].error(prediction, class)).max(0.0),
        }
    }

    /// The loss of a row of predictions about the peer of a slot. Writes the gradient of the outputs, times `weight`, to
    /// `d_outputs`.
    fn terms(
        &self,
        predictions: &[f32],
        slot: usize,
        class: usize,
        weight: f32,
        d_outputs: &mut [f32],
    ) -> IdentifierTerms {
        let place = self.outputs[slot].clone();
        let (prediction, d_outputs) = (&predictions[place.clone()], &mut d_outputs[place]);
        let confidence = self.confidence(predictions, slot, class);
        let Some(traits) = &self.traits else {
            let loss = cross_entropy(prediction, class, weight, d_outputs);
            return IdentifierTerms { loss, confidence, is_right: is_argmax(prediction, class) };
        };
        // The loss is twice the unexplained share of the spread: of the size of the cross-entropy of classes.
        let traits = &traits[slot];
        let scale = weight * 4.0 / traits.spread;
        let targets = &traits.by_class[class];
        for ((d_output, value), target) in d_outputs.iter_mut().zip(prediction).zip(targets) {
            *d_output = scale * (value - target) * value * (1.0 - value);
        }
        let error = traits.error(prediction, class);
        let is_right = (0..traits.by_class.len()).all(|other| traits.error(prediction, other) >= error);
        IdentifierTerms { loss: 2.0 * error, confidence, is_right }
    }
}

impl SlotTraits {
    fn new(by_class: Vec<Vec<f32>>) -> SlotTraits {
        let n = by_class.len() as f32;
        let spread = (0..by_class[0].len())
            .map(|index| {
                let mean = by_class.iter().map(|traits| traits[index]).sum::<f32>() / n;
                by_class.iter().map(|traits| (traits[index] - mean).powi(2)).sum::<f32>() / n
            })
            .sum::<f32>();
        // Peers with equal traits have no spread to divide by.
        SlotTraits { by_class, spread: if spread > 0.0 { spread } else { 1.0 } }
    }

    /// The squared error of a prediction for a peer of this class, as a share of the spread.
    fn error(&self, prediction: &[f32], class: usize) -> f32 {
        let pairs = prediction.iter().zip(&self.by_class[class]);
        let squares = pairs.map(|(value, target)| (value - target).powi(2));
        squares.sum::<f32>() / self.spread
    }
}

fn ranges(sizes: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut start = 0;
    sizes
        .map(|size| {
            start += size;
            start - size..start
        })
        .collect()
}

/// Whether a class has the highest posterior; among equal ones the first counts.
fn is_argmax(posterior: &[f32], class: usize) -> bool {
    let (before, rest) = posterior.split_at(class);
    before.iter().all(|other| *other < rest[0]) && rest.iter().all(|other| *other <= rest[0])
}

#[cfg(test)]
mod tests {
    use pace_games::PoolListing;
    use pace_nn::Layout;

    use super::PeerIdentifier;
    use crate::config::IdentifierTarget;

    /// Two peers: the first has three classes and two traits, the second two classes and one trait.
    fn identifier() -> PeerIdentifier {
        let pool = PoolListing {
            n_classes: vec![3, 2],
            traits: vec![vec![vec![0.0, 0.5], vec![0.5, 0.5], vec![1.0, 0.5]], vec![vec![0.25], vec![0.75]]],
            ..PoolListing::default()
        };
        PeerIdentifier::new(&mut Layout::default(), 4, &pool, IdentifierTarget::Traits)
    }

    #[test]
    fn confidence_is_0_at_the_mean_and_1_at_the_true_traits() {
        let identifier = identifier();
        // The spread of the three is 1/6, so that an error of 1/4 explains nothing.
        assert_eq!(identifier.confidence(&[0.5, 0.5, 0.5], 0, 0), 0.0);
        assert!((identifier.confidence(&[0.5, 0.5, 0.5], 0, 1) - 1.0).abs() < 1e-6);
        assert!(identifier.confidence(&[0.5, 0.5, 0.5], 1, 0).abs() < 1e-6);
        assert_eq!(identifier.confidence(&[0.5, 0.5, 0.75], 1, 1), 1.0);
    }

    #[test]
    fn posteriors_favour_the_nearest_class() {
        let identifier = identifier();
        let mut posteriors = [0.0; 5];
        identifier.posteriors(&[0.1, 0.5, 0.5], &mut posteriors);
        assert!(posteriors[0] > 0.9);
        assert!((posteriors[3] - 0.5).abs() < 1e-6);
        let sums = [posteriors[..3].iter().sum::<f32>(), posteriors[3..].iter().sum()];
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6));
    }

    #[test]
    fn trait_gradient_equals_finite_differences() {
        let identifier = identifier();
        let outputs = [0.3f64, -0.8, 1.1];
        let predictions = |outputs: [f64; 3]| outputs.map(|output| (1.0 / (1.0 + (-output).exp())) as f32);
        let loss = |outputs: [f64; 3]| {
            let [one, other] = [(0, 2), (1, 0)].map(|(slot, class)| {
                f64::from(identifier.terms(&predictions(outputs), slot, class, 1.0, &mut [0.0; 3]).loss)
            });
            one + other
        };
        let mut gradient = [0.0; 3];
        identifier.terms(&predictions(outputs), 0, 2, 1.0, &mut gradient);
        identifier.terms(&predictions(outputs), 1, 0, 1.0, &mut gradient);
        for (index, gradient) in gradient.into_iter().enumerate() {
            let moved = |by: f64| {
                let mut outputs = outputs;
                outputs[index] += by;
                loss(outputs)
            };
            let expected = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            assert!(
                (f64::from(gradient) - expected).abs() < 2e-3 * expected.abs().max(1.0),
                "{gradient} {expected}"
            );
        }
    }
}
