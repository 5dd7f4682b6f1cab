//! LIAM and LIAMX differ from `pace.rs` in: a hidden state in place of context and encoder, and in place of the identifier a
//! prediction of what the peers see and do (`docs/methods/liam.md`). The network is in `recurrent`.

use super::Method;
use super::generalist::recurrent;
use super::recurrent::RecurrentNet;
use crate::config::Span;

/// Every episode for itself, as in the original.
pub(crate) const LIAM: Method = Method::of::<RecurrentNet<true>>(
    "liam",
    "recurrent policy that models the peers' observations and actions, episode by episode",
    |config| recurrent(config, Span::Episode),
);

/// Across the episodes of an encounter.
pub(crate) const LIAMX: Method = Method::of::<RecurrentNet<true>>(
    "liamx",
    "LIAM with hidden state and returns over the whole encounter",
    |config| recurrent(config, Span::Encounter),
);
