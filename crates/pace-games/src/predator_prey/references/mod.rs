//! Scripted egos of Predator-Prey-W, by name. Each has a file; `bayes` and `planner` are one ego, told more or less.

mod bayes;
pub(crate) mod fixed;
mod knowledge;
mod oracle;
mod preferences;
pub(crate) mod prey_belief;
mod pursuit;

pub use bayes::BayesEgo;

use super::PredatorPrey;
use crate::ego::{RandomEgo, Reference};
use fixed::{FixedEgo, best_static};
use oracle::OracleEgo;

pub(crate) fn references() -> Vec<(&'static str, Reference<PredatorPrey>)> {
    vec![
        ("oracle", Reference::Privileged(|game, specs| Box::new(OracleEgo::new(game, specs)))),
        ("planner", Reference::Privileged(|game, specs| Box::new(BayesEgo::acquainted(game, specs)))),
        ("bayes", Reference::Uninformed(|game| Box::new(BayesEgo::new(game)))),
        ("static", Reference::Uninformed(|game| Box::new(FixedEgo::new(game, best_static(game.cast))))),
        ("random", RandomEgo::reference()),
    ]
}
