//! h, the peer identifier: one linear layer from the latent to what is to be known of every peer.
//!
//! That is its class among the training peers, with a softmax per peer; or its traits, each a number from 0 to 1; or a part
//! of what it sees at the moment.

use std::ops::Range;

use pace_games::{PoolListing, Stream};
use pace_nn::loss::{cross_entropy, softmax_rows};
use pace_nn::product::ProductShape;
use pace_nn::{Activation, Linear, Parameters, Part, Store, kernels};

use super::uniform;
use crate::config::Identify;

/// Where its weights lie, and what they are to tell of each peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerIdentifier {
    layer: Linear,
    /// The place of each peer's outputs in a row.
    outputs: Vec<Range<usize>>,
    /// The place of each peer's classes in a row of posteriors.
    slots: Vec<Range<usize>>,
    /// What is learned of each peer.
    subjects: Vec<Subject>,
}

/// What is to be known of a peer.
#[derive(Clone, Debug)]
enum Subject {
    Class,
    Traits(SlotTraits),
    /// Some numbers of its own observation.
    Sight(Range<usize>),
}

/// What is true of a peer at a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truth<'a> {
    pub(crate) class: usize,
    /// What it sees; may be empty where that is not learned.
    pub(crate) sight: &'a [f32],
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
pub(crate) struct Identified {
    pub(crate) loss: f32,
    pub(crate) confidence: f32,
    pub(crate) is_right: bool,
}

/// The error at which a class is e^(-1/2) as likely as one that fits exactly, as a share of the spread. For people to look at only:
/// nothing is learned from it.
const FIT: f32 = 0.02;

/// The spread of a number that is evenly distributed from −1 to 1.
const SIGHT_SPREAD: f32 = 1.0 / 3.0;

/// The error below which a guess at a sight counts as right, as a share of the spread.
const NEAR: f32 = 0.1;

impl PeerIdentifier {
    pub(crate) fn new(
        parameters: &mut Parameters,
        latent_size: usize,
        pool: &PoolListing,
        identify: Identify,
    ) -> PeerIdentifier {
        let slots = ranges(pool.n_classes.iter().copied());
        let subjects: Vec<Subject> = (0..slots.len())
            .map(|slot| match identify {
                Identify::Classes => Subject::Class,
                Identify::Sights if !pool.telling_sights[slot].is_empty() => {
                    Subject::Sight(pool.telling_sights[slot].clone())
                }
                Identify::Traits | Identify::Sights => {
                    Subject::Traits(SlotTraits::new(pool.traits[slot].clone()))
                }
            })
            .collect();
        let outputs = ranges(subjects.iter().zip(&slots).map(|(subject, slot)| match subject {
            Subject::Class => slot.len(),
            Subject::Traits(traits) => traits.by_class[0].len(),
            Subject::Sight(numbers) => numbers.len(),
        }));
        let n_outputs = outputs.last().map_or(0, |last| last.end);
        PeerIdentifier {
            layer: Linear::new(parameters, "identifier", &[latent_size], n_outputs, Activation::Identity),
            outputs,
            slots,
            subjects,
        }
    }

    /// Whether it must be told what the peers see.
    pub(crate) fn learns_sights(&self) -> bool {
        self.subjects.iter().any(|subject| matches!(subject, Subject::Sight(_)))
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        uniform(parameters, &self.layer, rng);
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        std::iter::once(&self.layer)
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
        self.layer.forward(parameters, &[Part::Dense(latents)], n_rows, outputs);
        if matches!(self.subjects.first(), Some(Subject::Class)) {
            let mut sizes = [0; pace_games::MAX_SEATS];
            for (size, slot) in sizes.iter_mut().zip(&self.slots) {
                *size = slot.len();
            }
            softmax_rows(outputs, &sizes[..self.slots.len()], room, guesses);
            return;
        }
        guesses.copy_from_slice(outputs);
        for guesses in guesses.chunks_exact_mut(self.n_outputs()) {
            for (subject, place) in self.subjects.iter().zip(&self.outputs) {
                if matches!(subject, Subject::Traits(_)) {
                    guesses[place.clone()].iter_mut().for_each(|guess| *guess = kernels::logistic(*guess));
                }
            }
        }
    }

    /// A posterior over classes per peer, of a row of guesses. Traits make those classes likely whose own are near; a sight
    /// says nothing about classes.
    pub(crate) fn posteriors(&self, guesses: &[f32], posteriors: &mut [f32]) {
        for ((subject, place), slot) in self.subjects.iter().zip(&self.outputs).zip(&self.slots) {
            let (guess, posterior) = (&guesses[place.clone()], &mut posteriors[slot.clone()]);
            match subject {
                Subject::Class => posterior.copy_from_slice(guess),
                Subject::Sight(_) => posterior.fill(1.0 / slot.len() as f32),
                Subject::Traits(traits) => {
                    for (class, value) in posterior.iter_mut().enumerate() {
                        *value = -traits.error(guess, class) / (2.0 * FIT);
                    }
                    pace_nn::loss::softmax(posterior);
                }
            }
        }
    }

    /// How well a row of guesses knows the truth about the peer of a slot, from 0 to 1: the class's probability, or how much of
    /// the spread of the traits or sights is explained.
    pub(crate) fn confidence(&self, guesses: &[f32], slot: usize, truth: Truth<'_>) -> f32 {
        let guess = &guesses[self.outputs[slot].clone()];
        match &self.subjects[slot] {
            Subject::Class => guess[truth.class],
            Subject::Traits(traits) => (1.0 - traits.error(guess, truth.class)).max(0.0),
            Subject::Sight(numbers) => (1.0 - sight_error(guess, &truth.sight[numbers.clone()])).max(0.0),
        }
    }

    /// The loss of a row of guesses about the peer of a slot; its gradient for the outputs, times `weight`, goes to `d_outputs`.
    pub(crate) fn learn(
        &self,
        guesses: &[f32],
        slot: usize,
        truth: Truth<'_>,
        weight: f32,
        d_outputs: &mut [f32],
    ) -> Identified {
        let place = self.outputs[slot].clone();
        let (guess, d_outputs) = (&guesses[place.clone()], &mut d_outputs[place]);
        let confidence = self.confidence(guesses, slot, truth);
        // Of traits and sights, twice the share of the spread that is left: in Kuhn poker as large as the loss of classes.
        match &self.subjects[slot] {
            Subject::Class => {
                let loss = cross_entropy(guess, truth.class, weight, d_outputs);
                Identified { loss, confidence, is_right: is_first(guess, truth.class) }
            }
            Subject::Traits(traits) => {
                let scale = weight * 4.0 / traits.spread;
                let wanted = &traits.by_class[truth.class];
                for ((d_output, guess), wanted) in d_outputs.iter_mut().zip(guess).zip(wanted) {
                    *d_output = scale * (guess - wanted) * guess * (1.0 - guess);
                }
                let error = traits.error(guess, truth.class);
                let is_right = (0..traits.by_class.len()).all(|other| traits.error(guess, other) >= error);
                Identified { loss: 2.0 * error, confidence, is_right }
            }
            Subject::Sight(numbers) => {
                let wanted = &truth.sight[numbers.clone()];
                let scale = weight * 4.0 / (wanted.len() as f32 * SIGHT_SPREAD);
                for ((d_output, guess), wanted) in d_outputs.iter_mut().zip(guess).zip(wanted) {
                    *d_output = scale * (guess - wanted);
                }
                let error = sight_error(guess, wanted);
                Identified { loss: 2.0 * error, confidence, is_right: error < NEAR }
            }
        }
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
        let parts = [Part::Dense(latents)];
        self.layer.backward(
            transposed,
            gradients,
            &parts,
            outputs,
            d_outputs,
            &mut [Some((d_latents, Store::Overwrite))],
        );
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_rows: usize) -> Vec<ProductShape> {
        self.layer.products(n_rows, &[Some(true)])
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

/// The squared error of a guess at what a peer sees, as a share of the spread.
fn sight_error(guess: &[f32], sight: &[f32]) -> f32 {
    let squares = guess.iter().zip(sight).map(|(guess, truth)| (guess - truth).powi(2));
    squares.sum::<f32>() / (guess.len() as f32 * SIGHT_SPREAD)
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
    use pace_nn::Parameters;

    use super::{PeerIdentifier, Truth};
    use crate::config::Identify;

    /// Two peers: one of three that are told apart by two traits, one of two that are told apart by one.
    fn identifier() -> PeerIdentifier {
        let pool = PoolListing {
            n_classes: vec![3, 2],
            traits: vec![vec![vec![0.0, 0.5], vec![0.5, 0.5], vec![1.0, 0.5]], vec![vec![0.25], vec![0.75]]],
            ..PoolListing::default()
        };
        PeerIdentifier::new(&mut Parameters::default(), 4, &pool, Identify::Traits)
    }

    fn truth(class: usize) -> Truth<'static> {
        Truth { class, sight: &[] }
    }

    #[test]
    fn who_says_the_mean_knows_nothing_and_who_is_right_knows_all() {
        let identifier = identifier();
        // The three spread over 1/6, so an error of 1/4 is more than nothing at all.
        assert_eq!(identifier.confidence(&[0.5, 0.5, 0.5], 0, truth(0)), 0.0);
        assert!((identifier.confidence(&[0.5, 0.5, 0.5], 0, truth(1)) - 1.0).abs() < 1e-6);
        assert!(identifier.confidence(&[0.5, 0.5, 0.5], 1, truth(0)).abs() < 1e-6);
        assert_eq!(identifier.confidence(&[0.5, 0.5, 0.75], 1, truth(1)), 1.0);
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
                f64::from(identifier.learn(&guesses(outputs), slot, truth(class), 1.0, &mut [0.0; 3]).loss)
            });
            one + other
        };
        let mut gradient = [0.0; 3];
        identifier.learn(&guesses(outputs), 0, truth(2), 1.0, &mut gradient);
        identifier.learn(&guesses(outputs), 1, truth(0), 1.0, &mut gradient);
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

    #[test]
    fn sights_are_guessed_from_moment_to_moment() {
        let pool = PoolListing {
            n_classes: vec![2, 4],
            traits: vec![vec![vec![0.0], vec![1.0]], vec![vec![]; 4]],
            telling_sights: vec![0..0, 1..3],
            ..PoolListing::default()
        };
        let identifier = PeerIdentifier::new(&mut Parameters::default(), 4, &pool, Identify::Sights);
        assert!(identifier.learns_sights());
        // One trait and two numbers; the second peer sees itself at (0.5, −0.5).
        assert_eq!((identifier.n_outputs(), identifier.n_posteriors()), (3, 6));
        let truth = Truth { class: 3, sight: &[9.0, 0.5, -0.5, 9.0] };
        let mut gradient = [0.0; 3];
        let found = identifier.learn(&[0.0, 0.5, 0.0], 1, truth, 1.0, &mut gradient);
        // 1/4 of error in 2/3 of spread.
        assert!((found.loss - 0.75).abs() < 1e-6 && (found.confidence - 0.625).abs() < 1e-6);
        assert!(gradient[0] == 0.0 && gradient[1] == 0.0 && (gradient[2] - 3.0).abs() < 1e-5);
        let mut posteriors = [0.0; 6];
        identifier.posteriors(&[1.0, 0.5, 0.0], &mut posteriors);
        assert!(posteriors[1] > 0.99 && posteriors[2..] == [0.25; 4]);
    }
}
