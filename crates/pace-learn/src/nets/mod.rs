//! The parts that methods build their networks of: encoders, heads, and the gathering of their inputs from a batch.

mod actor_critic;
mod encoder;
mod identifier;
mod pairs;
mod peer_model;
mod pooling_encoder;
mod previous_episode;
mod recurrent_encoder;
mod transformer;
mod transition;

#[cfg(test)]
mod transformer_tests;

pub(crate) use actor_critic::{ActorCritic, ActorCriticBuffers, latent_parts};
pub(crate) use encoder::{ContextChunk, Encoder, store_actions};
pub(crate) use identifier::{IdentifierBuffers, PeerIdentifier};
pub(crate) use peer_model::{PeerModel, PeerModelBuffers};
pub(crate) use pooling_encoder::PoolEncoder;
pub(crate) use previous_episode::{
    PreviousEpisode, PreviousEpisodeEncoder, PreviousEpisodeInferenceBuffers, PreviousEpisodeTrainingBuffers,
};
pub(crate) use recurrent_encoder::{
    HiddenState, RecurrentBlockBuffers, RecurrentEncoder, RecurrentStepBuffers,
};
pub(crate) use transformer::TransformerEncoder;
pub(crate) use transition::{TransitionBuffers, TransitionPredictor, Transitions};

use encoder::ContextEncoder;
pub(crate) use pace_nn::rows::ensure_len;
use pairs::PairIndex;

use pace_games::Stream;
use pace_nn::{Linear, initialise};

use crate::config::EmptyContext;

/// Approximate number of decisions in a chunk: its activations fit into the second-level cache.
pub(crate) const CHUNK_ROWS: usize = 160;

/// Sets the rows of empty contexts to zero, or their gradients, if the keys say χ(∅) = 0 as the paper's text does.
pub(crate) fn zero_empty_contexts(
    empty_context: EmptyContext,
    is_empty: &[bool],
    width: usize,
    rows: &mut [f32],
) {
    if empty_context == EmptyContext::Zero {
        for (row, is_empty) in rows.chunks_exact_mut(width).zip(is_empty) {
            if *is_empty {
                row.fill(0.0);
            }
        }
    }
}

/// Orthogonal weights of length `gain`, biases zero.
pub(crate) fn orthogonal(weights: &mut [f32], layer: &Linear, gain: f64, rng: &mut Stream) {
    let weights = &mut weights[layer.weights().range()];
    initialise::orthogonal(weights, layer.n_in(), layer.n_out(), gain, &mut || rng.unit());
}

/// Weights and biases uniform within 1/√(inputs).
pub(crate) fn uniform(weights: &mut [f32], layer: &Linear, rng: &mut Stream) {
    let bound = 1.0 / (layer.n_in() as f64).sqrt();
    for tensor in [layer.weights(), layer.biases()] {
        initialise::uniform_within(&mut weights[tensor.range()], bound, &mut || rng.unit());
    }
}
