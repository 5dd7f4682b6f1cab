//! The networks that methods are built of, each with its passes over rows of a chunk.

mod actor_critic;
mod encoder;
mod identifier;
mod peer_model;
mod transition;

pub(crate) use actor_critic::{ActorCritic, ActorCriticRows};
pub(crate) use encoder::{ContextEncoder, EncoderRows};
pub(crate) use identifier::PeerIdentifier;
pub(crate) use peer_model::{PeerModel, PeerModelRows};
pub(crate) use transition::{TransitionPredictor, TransitionRows};

pub(crate) use pace_nn::rows::fit;

use pace_games::Stream;
use pace_nn::{Linear, Parameters, initialise};

/// Orthogonal weights of length `gain`, biases zero.
pub(crate) fn orthogonal(parameters: &mut Parameters, layer: &Linear, gain: f64, rng: &mut Stream) {
    let weights = &mut parameters.values[layer.weights().range()];
    initialise::orthogonal(weights, layer.n_in(), layer.n_out(), gain, &mut || rng.unit());
}

/// Weights and biases uniform within 1/√(inputs).
pub(crate) fn uniform(parameters: &mut Parameters, layer: &Linear, rng: &mut Stream) {
    let bound = 1.0 / (layer.n_in() as f64).sqrt();
    for tensor in [layer.weights(), layer.biases()] {
        initialise::uniform_within(&mut parameters.values[tensor.range()], bound, &mut || rng.unit());
    }
}
