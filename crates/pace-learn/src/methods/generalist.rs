//! The Generalist differs from `pace.rs` in: a hidden state instead of context and encoder, and no identifier
//! (`docs/methods/generalist.md`). The network is in `recurrent`.

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

/// Sets the keys of a recurrent method with this span of hidden state and returns.
pub(super) fn recurrent(config: &mut TrainConfig, span: Span) {
    baseline(config);
    (config.minibatch_unit, config.minibatches_per_encounter) = (MinibatchUnit::Chunks, 1);
    config.hidden_state_span = span;
    config.return_span = span;
}
