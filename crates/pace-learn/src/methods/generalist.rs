//! The Generalist differs from `pace.rs` in: a hidden state in place of context and encoder, and no identifier.
//!
//! It must find out by itself what is worth remembering (`docs/methods/generalist.md`). Its network is in `recurrent`.

use super::recurrent::RecurrentNet;
use super::{Method, baseline};
use crate::config::{MinibatchUnit, Span, TrainConfig};

/// The method.
pub(crate) const GENERALIST: Method = Method::of::<RecurrentNet<false>>(
    "generalist",
    "recurrent policy over the whole encounter, nothing learned about peers",
    |config| {
        recurrent(config, Span::Encounter);
        config.auxiliary_weight = 0.0;
    },
);

/// The keys of a recurrent method whose hidden state and returns reach this far.
pub(super) fn recurrent(config: &mut TrainConfig, span: Span) {
    baseline(config);
    (config.minibatch_unit, config.minibatches_per_encounter) = (MinibatchUnit::Chunks, 1);
    config.hidden_state_span = span;
    config.return_span = span;
}
