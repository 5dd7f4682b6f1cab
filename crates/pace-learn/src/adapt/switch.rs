//! A sudden change: within an encounter, other peers replace the first ones, and the ego is not informed.

use pace_games::Seed;

/// A replacement of the peers within an encounter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Number of episodes with the first peers; all later episodes are with the others.
    pub after: usize,
}

impl Switch {
    /// The tuple that replaces `tuple`: the next one of the pool; the last is followed by the first.
    pub fn successor(tuple: usize, n_tuples: usize) -> usize {
        (tuple + 1) % n_tuples
    }

    /// The random seed from the switch on, derived from the seed of the encounter. It does not depend on earlier samples, so it
    /// is equal for every ego.
    pub fn seed(of_encounter: Seed) -> Seed {
        of_encounter.child("switch", &[])
    }
}
