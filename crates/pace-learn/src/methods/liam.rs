//! LIAM and LIAMX differ from `pace.rs` in: a hidden state instead of context and encoder, and predictions of the peers'
//! observations and actions instead of the identifier (`docs/methods/liam.md`). The network is in `recurrent`.

use super::Method;
use super::generalist::recurrent;
use super::recurrent::RecurrentNet;
use crate::config::Span;

/// LIAM as in the original: hidden state and returns end with the episode.
pub(crate) const LIAM: Method = Method::of::<RecurrentNet<true>>(
    "liam",
    "recurrent policy that models the peers' observations and actions, episode by episode",
    |config| recurrent(config, Span::Episode),
);

/// LIAM with hidden state and returns over the whole encounter.
pub(crate) const LIAMX: Method = Method::of::<RecurrentNet<true>>(
    "liamx",
    "LIAM with hidden state and returns over the whole encounter",
    |config| recurrent(config, Span::Encounter),
);
