//! A sudden change: in the middle of an encounter other peers take the first ones' places, and nobody tells the ego.

use pace_games::Seed;

/// When the peers change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Episodes with the first peers; all later ones are with the others.
    pub after: usize,
}

impl Switch {
    /// Who takes the place of `tuple`: the next one of the pool, and after the last the first.
    pub fn successor(tuple: usize, n_tuples: usize) -> usize {
        (tuple + 1) % n_tuples
    }

    /// All chance from the switch on, given that of the encounter. It does not depend on what was drawn before, so it is
    /// the same for every ego.
    pub fn seed(of_encounter: Seed) -> Seed {
        of_encounter.child("switch", &[])
    }
}
