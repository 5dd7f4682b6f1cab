//! LIAM and LIAMX: a recurrent policy whose hidden state must tell what the peers see and do (`docs/methods/liam.md`).

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
