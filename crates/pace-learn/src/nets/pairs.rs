//! PairIndex of observation and action that recur: what the first layers make of one is worked out once for all rows of a chunk
//! that have it.

use pace_games::Action;

/// Numbers the pairs it is shown from 0, in the order in which they first come.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairIndex {
    /// The number of every pair, by observation and action.
    table: Vec<u32>,
    /// Where the table holds one.
    known: Vec<usize>,
}

const UNKNOWN: u32 = u32::MAX;

impl PairIndex {
    pub(crate) fn clear(&mut self) {
        for entry in self.known.drain(..) {
            self.table[entry] = UNKNOWN;
        }
    }

    /// The number of a pair, and whether this is the first time it came. Observations are given by their numbers in the
    /// batch.
    pub(crate) fn number(&mut self, observation: u32, action: Action) -> (u32, bool) {
        let n_actions = usize::from(Action::MAX) + 1;
        let entry = observation as usize * n_actions + usize::from(action);
        if self.table.len() <= entry {
            self.table.resize((observation as usize + 1) * n_actions, UNKNOWN);
        }
        let is_new = self.table[entry] == UNKNOWN;
        if is_new {
            self.table[entry] = self.known.len() as u32;
            self.known.push(entry);
        }
        (self.table[entry], is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::PairIndex;

    #[test]
    fn pairs_are_numbered_in_the_order_in_which_they_come() {
        let mut pairs = PairIndex::default();
        for _ in 0..2 {
            let shown = [(3, 1), (0, 255), (3, 1), (3, 0), (0, 255)];
            let found = shown.map(|(observation, action)| pairs.number(observation, action));
            assert_eq!(found, [(0, true), (1, true), (0, false), (2, true), (1, false)]);
            pairs.clear();
        }
    }
}
