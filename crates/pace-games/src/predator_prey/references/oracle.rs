//! The ego that knows its peers and sees the whole state: it walks towards the prey that no other predator chases.

use crate::ego::{Ego, one_hot};
use crate::game::{Action, Seat};
use crate::predator_prey::peers::PredatorPreySpec;
use crate::predator_prey::view::Layout;
use crate::predator_prey::{PredatorPrey, steering};

/// An ego that walks like a scripted predator that prefers the free prey.
#[derive(Clone, Debug)]
pub(crate) struct OracleEgo {
    layout: Layout,
    free_agent: usize,
}

impl OracleEgo {
    pub(crate) fn new(game: &PredatorPrey, specs: &[PredatorPreySpec]) -> OracleEgo {
        OracleEgo { layout: game.layout, free_agent: game.counts.n_predators + free_prey(game, specs) }
    }
}

/// The first prey that no predator among the peers prefers.
fn free_prey(game: &PredatorPrey, specs: &[PredatorPreySpec]) -> usize {
    let is_free = |prey: &usize| !specs.contains(&PredatorPreySpec::Predator { prefers: *prey });
    (0..game.counts.n_prey).find(is_free).expect("there are more prey than predators among the peers")
}

impl Ego for OracleEgo {
    fn begin_encounter(&mut self) {}

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let seen = self.layout.read(Seat::EGO.0, observation);
        let free = seen.others[self.free_agent].expect("an oracle sees everything");
        one_hot(steering::walk(seen.own.position, free.position), probabilities);
    }

    fn record_action(&mut self, _observation: &[f32], _action: Action) {}

    fn end_episode(&mut self, _terminal_observation: &[f32]) {}
}
