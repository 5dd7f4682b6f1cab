//! The reference agents of Predator-Prey-W. `oracle` and `bayes` are one ego with different prior knowledge.

mod bayes;
mod chase;
pub(crate) mod fixed;
pub(crate) mod knowledge;
mod preferences;
pub(crate) mod prey_belief;
mod pursuit;

pub(crate) use bayes::BayesEgo;

use super::PredatorPrey;
use crate::ego::{RandomEgo, Reference};
use chase::ChaseEgo;
use fixed::{FixedEgo, best_static};

pub(crate) fn references() -> Vec<(&'static str, Reference<PredatorPrey>)> {
    vec![
        ("oracle", Reference::Privileged(|game, specs| Box::new(BayesEgo::informed(game, specs)))),
        ("chase", Reference::Privileged(|game, specs| Box::new(ChaseEgo::new(game, specs)))),
        ("bayes", Reference::Uninformed(|game| Box::new(BayesEgo::new(game)))),
        ("static", Reference::Uninformed(|game| Box::new(FixedEgo::new(game, best_static(game.counts))))),
        ("random", RandomEgo::reference()),
    ]
}
