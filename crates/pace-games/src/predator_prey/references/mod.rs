//! The reference agents of Predator-Prey-W. `bayes` and `planner` are one ego with different prior knowledge.

mod bayes;
pub(crate) mod fixed;
pub(crate) mod knowledge;
mod oracle;
mod preferences;
pub(crate) mod prey_belief;
mod pursuit;

pub(crate) use bayes::BayesEgo;

use super::PredatorPrey;
use crate::ego::{RandomEgo, Reference};
use fixed::{FixedEgo, best_static};
use oracle::OracleEgo;

pub(crate) fn references() -> Vec<(&'static str, Reference<PredatorPrey>)> {
    vec![
        ("oracle", Reference::Privileged(|game, specs| Box::new(OracleEgo::new(game, specs)))),
        ("planner", Reference::Privileged(|game, specs| Box::new(BayesEgo::informed(game, specs)))),
        ("bayes", Reference::Uninformed(|game| Box::new(BayesEgo::new(game)))),
        ("static", Reference::Uninformed(|game| Box::new(FixedEgo::new(game, best_static(game.counts))))),
        ("random", RandomEgo::reference()),
    ]
}
