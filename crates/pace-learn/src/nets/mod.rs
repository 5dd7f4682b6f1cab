//! The networks that methods are built of, each with its passes over rows of a chunk.

mod actor_critic;
mod encoder;
mod identifier;
mod pairs;
mod peer_model;
mod pooling_encoder;
mod transformer;
mod transition;

#[cfg(test)]
mod transformer_tests;

pub(crate) use actor_critic::{ActorCritic, ActorCriticBuffers};
pub(crate) use encoder::{ContextChunk, ContextEncoder, Encoder, EncounterRange, entry_parts};
pub(crate) use identifier::PeerIdentifier;
pub(crate) use pairs::PairIndex;
pub(crate) use peer_model::{PeerModel, PeerModelBuffers};
pub(crate) use pooling_encoder::PoolEncoder;
pub(crate) use transformer::TransformerEncoder;
pub(crate) use transition::{TransitionBuffers, TransitionPredictor};

pub(crate) use pace_nn::rows::ensure_len;

use pace_games::Stream;
use pace_nn::{Linear, initialise};

use crate::config::EmptyContext;

/// Rows that an encoder and its heads pass through together: about what keeps a chunk's activations in the second cache.
pub(crate) const CHUNK_ROWS: usize = 160;

/// χ(∅) = 0 where the paper's text is followed: blanks the rows of empty contexts, and their gradients.
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
