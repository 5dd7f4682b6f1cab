//! Scripted egos of Predator-Prey-W.

use super::PredatorPrey;
use crate::ego::{RandomEgo, Reference};

pub(crate) fn references() -> Vec<(&'static str, Reference<PredatorPrey>)> {
    vec![("random", RandomEgo::reference())]
}
