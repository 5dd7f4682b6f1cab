//! h, the peer identifier: one linear layer from the latent to what is to be known of every peer.
//!
//! That is its class among the training peers, with a softmax per peer, or its traits, each a number from 0 to 1.

use std::ops::Range;

use pace_games::{PoolListing, Stream};
use pace_nn::loss::{cross_entropy, softmax_rows};
use pace_nn::{Activation, InputPart, Layout, Linear, WriteMode, kernels};

use super::uniform;
use crate::config::IdentifierTarget;

/// Where its weights lie, and what they are to tell of each peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerIdentifier {
    layer: Linear,
    /// The place of each peer's outputs in a row.
    outputs: Vec<Range<usize>>,
    /// The place of each peer's classes in a row of posteriors.
    slots: Vec<Range<usize>>,
    /// Of each peer, where traits are learned.
    traits: Option<Vec<SlotTraits>>,
}

/// The traits of a slot's training peers.
#[derive(Clone, Debug)]
struct SlotTraits {
    by_class: Vec<Vec<f32>>,
    /// The squared error of an identifier that always says the mean.
    spread: f32,
}

/// What one guess about one peer was worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IdentifierTerms {
    pub(crate) loss: f32,
    pub(crate) confidence: f32,
    pub(crate) is_right: bool,
}

/// The error at which a class is e^(-1/2) as likely as one that fits exactly, as a share of the spread. For people to look at only:
/// nothing is learned from it.
const FIT: f32 = 0.02;

/// Turns log-likelihoods into probabilities, in place.
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

    pub(crate) fn n_posteriors(&self) -> usize {
        self.slots.last().map_or(0, |last| last.end)
    }

    /// The place of each peer's classes in a row of posteriors.
    pub(crate) fn slots(&self) -> &[Range<usize>] {
        &self.slots
    }

    /// Outputs before they are squashed, and guesses after: probabilities of classes, or traits. `room` is as long as they are.
    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        latents: &[f32],
        n_rows: usize,
        outputs: &mut [f32],
        room: &mut [f32],
        guesses: &mut [f32],
    ) {
        self.layer.forward(parameters, &[InputPart::Dense(latents)], n_rows, outputs);
        if self.traits.is_some() {
            for (guess, output) in guesses.iter_mut().zip(outputs) {
                *guess = kernels::sigmoid(*output);
            }
        } else {
            let mut sizes = [0; pace_games::MAX_SEATS];
            for (size, slot) in sizes.iter_mut().zip(&self.slots) {
                *size = slot.len();
            }
            softmax_rows(outputs, &sizes[..self.slots.len()], room, guesses);
        }
    }

    /// A posterior over classes per peer, of a row of guesses. Traits make those classes likely whose own are near.
    pub(crate) fn posteriors(&self, guesses: &[f32], posteriors: &mut [f32]) {
        let Some(traits) = &self.traits else {
            posteriors.copy_from_slice(guesses);
            return;
        };
        for ((traits, place), slot) in traits.iter().zip(&self.outputs).zip(&self.slots) {
            let posterior = &mut posteriors[slot.clone()];
            for (class, value) in posterior.iter_mut().enumerate() {
                *value = -traits.error(&guesses[place.clone()], class) / (2.0 * FIT);
            }
            normalise_exponentials(posterior);
        }
    }

    /// How well a row of guesses knows that the peer of a slot is of a class, from 0 to 1: the class's probability, or how
    /// much of the spread of the traits is explained.
    pub(crate) fn confidence(&self, guesses: &[f32], slot: usize, class: usize) -> f32 {
        let guess = &guesses[self.outputs[slot].clone()];
        match &self.traits {
            None => guess[class],
            Some(traits) => (1.0 - traits[slot].error(guess, class)).max(0.0),
        }
    }

    /// The loss of a row of guesses about the peer of a slot; its gradient for the outputs, times `weight`, goes to `d_outputs`.
    pub(crate) fn learn(
        &self,
        guesses: &[f32],
        slot: usize,
        class: usize,
        weight: f32,
        d_outputs: &mut [f32],
    ) -> IdentifierTerms {
        let place = self.outputs[slot].clone();
        let (guess, d_outputs) = (&guesses[place.clone()], &mut d_outputs[place]);
        let confidence = self.confidence(guesses, slot, class);
        let Some(traits) = &self.traits else {
            let loss = cross_entropy(guess, class, weight, d_outputs);
            return IdentifierTerms { loss, confidence, is_right: is_first(guess, class) };
        };
        // Twice the share of the spread that is left: as large as the loss of classes in the game where it was found.
        let traits = &traits[slot];
        let scale = weight * 4.0 / traits.spread;
        for ((d_output, guess), truth) in d_outputs.iter_mut().zip(guess).zip(&traits.by_class[class]) {
            *d_output = scale * (guess - truth) * guess * (1.0 - guess);
        }
        let error = traits.error(guess, class);
        let is_right = (0..traits.by_class.len()).all(|other| traits.error(guess, other) >= error);
        IdentifierTerms { loss: 2.0 * error, confidence, is_right }
    }

    /// Takes the gradient of the outputs back, and writes that of the latents.
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        latents: &[f32],
        outputs: &[f32],
        d_outputs: &mut [f32],
        d_latents: &mut [f32],
    ) {
        let parts = [InputPart::Dense(latents)];
        self.layer.backward(
            transposed,
            gradients,
            &parts,
            outputs,
            d_outputs,
            &mut [Some((d_latents, WriteMode::Overwrite))],
        );
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
        // Peers that are all alike leave nothing to be known.
        SlotTraits { by_class, spread: if spread > 0.0 { spread } else { 1.0 } }
    }

    /// The squared error of a guess, if the peer is of this class, as a share of the spread.
    fn error(&self, guess: &[f32], class: usize) -> f32 {
        let squares = guess.iter().zip(&self.by_class[class]).map(|(guess, truth)| (guess - truth).powi(2));
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

/// Whether a class has the highest posterior; of equal ones the first counts.
fn is_first(posterior: &[f32], class: usize) -> bool {
    let (before, rest) = posterior.split_at(class);
    before.iter().all(|other| *other < rest[0]) && rest.iter().all(|other| *other <= rest[0])
}

#[cfg(test)]
mod tests {
    use pace_games::PoolListing;
    use pace_nn::Layout;

    use super::PeerIdentifier;
    use crate::config::IdentifierTarget;

    /// Two peers: one of three that are told apart by two traits, one of two that are told apart by one.
    fn identifier() -> PeerIdentifier {
        let pool = PoolListing {
            n_classes: vec![3, 2],
            traits: vec![vec![vec![0.0, 0.5], vec![0.5, 0.5], vec![1.0, 0.5]], vec![vec![0.25], vec![0.75]]],
            ..PoolListing::default()
        };
        PeerIdentifier::new(&mut Layout::default(), 4, &pool, IdentifierTarget::Traits)
    }

    #[test]
    fn who_says_the_mean_knows_nothing_and_who_is_right_knows_all() {
        let identifier = identifier();
        // The three spread over 1/6, so an error of 1/4 is more than nothing at all.
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
    fn the_gradient_of_the_traits_is_that_of_their_loss() {
        let identifier = identifier();
        let outputs = [0.3f64, -0.8, 1.1];
        let guesses = |outputs: [f64; 3]| outputs.map(|output| (1.0 / (1.0 + (-output).exp())) as f32);
        let loss = |outputs: [f64; 3]| {
            let [one, other] = [(0, 2), (1, 0)].map(|(slot, class)| {
                f64::from(identifier.learn(&guesses(outputs), slot, class, 1.0, &mut [0.0; 3]).loss)
            });
            one + other
        };
        let mut gradient = [0.0; 3];
        identifier.learn(&guesses(outputs), 0, 2, 1.0, &mut gradient);
        identifier.learn(&guesses(outputs), 1, 0, 1.0, &mut gradient);
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
