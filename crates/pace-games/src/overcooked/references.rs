//! Scripted egos of PO-Overcooked.

use super::Overcooked;
use crate::ego::{RandomEgo, Reference};

pub(crate) fn references() -> Vec<(&'static str, Reference<Overcooked>)> {
    vec![("random", RandomEgo::reference())]
}
