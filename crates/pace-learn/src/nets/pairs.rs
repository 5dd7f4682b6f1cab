//! Index of distinct (observation, action) pairs.
//!
//! Games with few distinct observations, such as Kuhn Poker, repeat the same input many times in a chunk. The index maps every row
//! of a chunk to its distinct pair, so that the first layers run once per pair instead of once per row.

use pace_games::Action;

/// Numbers distinct pairs from 0, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairIndex {
    /// The index of every pair, by observation and action.
    table: Vec<u32>,
    /// The entries of the table that are in use.
    known: Vec<usize>,
}

const UNKNOWN: u32 = u32::MAX;

impl PairIndex {
    pub(crate) fn clear(&mut self) {
        for entry in self.known.drain(..) {
            self.table[entry] = UNKNOWN;
        }
    }

    /// Returns the index of a pair, and `true` if the pair was not seen before. `observation` is the observation's index in the
    /// batch.
    pub(crate) fn index_of(&mut self, observation: u32, action: Action) -> (u32, bool) {
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
    fn indices_follow_the_order_of_first_appearance() {
        let mut pairs = PairIndex::default();
        for _ in 0..2 {
            let shown = [(3, 1), (0, 255), (3, 1), (3, 0), (0, 255)];
            let found = shown.map(|(observation, action)| pairs.index_of(observation, action));
            assert_eq!(found, [(0, true), (1, true), (0, false), (2, true), (1, false)]);
            pairs.clear();
        }
    }
}
