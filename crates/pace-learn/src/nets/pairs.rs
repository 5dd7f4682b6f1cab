//! Index of distinct (observation, action) pairs.
//!
//! Games with discrete observations, such as Kuhn Poker and PO-Overcooked, repeat the same input many times in a chunk. The index
//! maps every row of a chunk to its distinct pair, so that the first layers run once per pair instead of once per row.

use pace_games::Action;

/// Numbers distinct pairs from 0, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct PairIndex {
    /// The index of every pair, by observation and action.
    table: Vec<u32>,
    /// The entries of the table that are in use.
    known: Vec<usize>,
    /// The number of actions of the game.
    n_actions: usize,
}

const UNKNOWN: u32 = u32::MAX;

impl PairIndex {
    /// Forgets all pairs. Later pairs have actions below `n_actions`, or none.
    pub(crate) fn clear(&mut self, n_actions: usize) {
        for entry in self.known.drain(..) {
            self.table[entry] = UNKNOWN;
        }
        self.n_actions = n_actions;
    }

    /// Returns the index of a pair, and `true` if the pair was not seen before. `observation` is the observation's index in the
    /// batch; an action past the last one stands for none.
    pub(crate) fn index_of(&mut self, observation: u32, action: Action) -> (u32, bool) {
        let width = self.n_actions + 1;
        let entry = observation as usize * width + usize::from(action).min(self.n_actions);
        if self.table.len() <= entry {
            self.table.resize((observation as usize + 1) * width, UNKNOWN);
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
        for n_actions in [3, 2] {
            pairs.clear(n_actions);
            let shown = [(3, 1), (0, 255), (3, 1), (3, 0), (0, 255)];
            let found = shown.map(|(observation, action)| pairs.index_of(observation, action));
            assert_eq!(found, [(0, true), (1, true), (0, false), (2, true), (1, false)]);
        }
    }
}
