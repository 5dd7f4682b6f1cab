//! Which decisions each gradient step of an epoch is made of.

use std::ops::Range;

use pace_games::Stream;

use crate::batch::Batch;
use crate::config::{Minibatch, TrainConfig};

/// The mini-batches of one epoch after the other.
pub(crate) struct Minibatches {
    config: TrainConfig,
    /// The encounters, in the order of this epoch.
    order: Vec<u32>,
    /// The part of its encounter's mini-batches that each decision belongs to, where encounters are divided.
    parts: Option<Vec<u32>>,
    /// The places in the order and the part of every mini-batch.
    plan: Vec<(Range<usize>, u32)>,
}

/// One gradient step's decisions.
pub(crate) struct MinibatchRows<'a> {
    pub(crate) encounters: &'a [u32],
    /// The part each decision belongs to, and the one that is due; all decisions where absent.
    pub(crate) selection: Option<(&'a [u32], u32)>,
    pub(crate) n_rows: usize,
}

impl Minibatches {
    pub(crate) fn new(config: &TrainConfig, batch: &Batch) -> Minibatches {
        let n = batch.n_encounters();
        let plan = match config.minibatch {
            Minibatch::Steps => {
                (0..config.minibatches.min(batch.n_decisions())).map(|part| (0..n, part as u32)).collect()
            }
            Minibatch::Encounters | Minibatch::Balanced => {
                let spread = config.minibatch_spread.min(config.minibatches);
                let n_groups = (config.minibatches / spread).min(n);
                // Part by part and not group by group: what comes next is made of other encounters.
                (0..spread as u32)
                    .flat_map(|part| (0..n_groups).map(move |group| (part, group)))
                    .map(|(part, group)| (n * group / n_groups..n * (group + 1) / n_groups, part))
                    .collect()
            }
        };
        Minibatches { config: config.clone(), order: (0..n as u32).collect(), parts: None, plan }
    }

    /// Draws the mini-batches of the next epoch.
    pub(crate) fn draw(&mut self, batch: &Batch, rng: &mut Stream) {
        match self.config.minibatch {
            Minibatch::Encounters => rng.shuffle(&mut self.order),
            Minibatch::Balanced => self.balance(batch, rng),
            Minibatch::Steps => {
                // Equal parts of a random order; the remainder is dropped, as in the authors' code.
                let size = batch.n_decisions() / self.plan.len();
                let mut parts: Vec<u32> =
                    (0..batch.n_decisions()).map(|index| (index / size) as u32).collect();
                rng.shuffle(&mut parts);
                self.parts = Some(parts);
                return;
            }
        }
        let spread = self.config.minibatch_spread.min(self.config.minibatches);
        if spread > 1 {
            let mut parts: Vec<u32> = Vec::with_capacity(batch.n_decisions());
            for encounter in 0..batch.n_encounters() {
                let start = parts.len();
                parts.extend((0..batch.decisions(encounter).len()).map(|index| (index % spread) as u32));
                rng.shuffle(&mut parts[start..]);
            }
            self.parts = Some(parts);
        }
    }

    /// Round after round, in each one encounter with every tuple: any stretch of the order has all tuples alike.
    fn balance(&mut self, batch: &Batch, rng: &mut Stream) {
        rng.shuffle(&mut self.order);
        let n_tuples = 1 + batch.tuples.iter().max().copied().unwrap_or(0) as usize;
        let mut n_seen = vec![0u32; n_tuples];
        let rounds: Vec<u32> = self
            .order
            .iter()
            .map(|encounter| {
                let n_seen = &mut n_seen[batch.tuples[*encounter as usize] as usize];
                *n_seen += 1;
                *n_seen
            })
            .collect();
        let mut places: Vec<usize> = (0..self.order.len()).collect();
        places.sort_by_key(|place| rounds[*place]);
        self.order = places.into_iter().map(|place| self.order[place]).collect();
    }

    pub(crate) fn len(&self) -> usize {
        self.plan.len()
    }

    pub(crate) fn get(&self, batch: &Batch, index: usize) -> MinibatchRows<'_> {
        let (places, part) = &self.plan[index];
        let encounters = &self.order[places.clone()];
        let selection = self.parts.as_deref().map(|parts| (parts, *part));
        let n_rows = match selection {
            None => encounters.iter().map(|encounter| batch.decisions(*encounter as usize).len()).sum(),
            Some((parts, part)) => encounters
                .iter()
                .flat_map(|encounter| &parts[batch.decisions(*encounter as usize)])
                .filter(|other| **other == part)
                .count(),
        };
        MinibatchRows { encounters, selection, n_rows }
    }
}

#[cfg(test)]
mod tests {
    use pace_games::Seed;

    use super::Minibatches;
    use crate::batch::Batch;
    use crate::config::{Minibatch, TrainConfig, TrainPreset};

    /// Twelve encounters with three tuples, of seven decisions each.
    fn batch() -> Batch {
        let mut batch = Batch::default();
        for encounter in 0..12 {
            batch.open_encounter(encounter % 3);
            batch.actions.extend([0; 7]);
        }
        batch
    }

    fn drawn(
        minibatch: Minibatch,
        minibatches: usize,
        minibatch_spread: usize,
    ) -> Vec<(Vec<u32>, Vec<usize>)> {
        let preset = TrainConfig::preset("overcooked", TrainPreset::Paper);
        let config = TrainConfig { minibatch, minibatches, minibatch_spread, ..preset };
        let batch = batch();
        let mut plan = Minibatches::new(&config, &batch);
        plan.draw(&batch, &mut Seed::new(3).stream("order"));
        (0..plan.len())
            .map(|index| {
                let rows = plan.get(&batch, index);
                let decisions: Vec<usize> = rows
                    .encounters
                    .iter()
                    .flat_map(|encounter| batch.decisions(*encounter as usize))
                    .filter(|decision| rows.selection.is_none_or(|(parts, part)| parts[*decision] == part))
                    .collect();
                assert_eq!(decisions.len(), rows.n_rows);
                (rows.encounters.to_vec(), decisions)
            })
            .collect()
    }

    #[test]
    fn every_decision_is_in_one_minibatch() {
        for (minibatch, minibatches, spread) in [
            (Minibatch::Encounters, 4, 1),
            (Minibatch::Balanced, 4, 1),
            (Minibatch::Balanced, 6, 3),
            (Minibatch::Encounters, 6, 99),
            (Minibatch::Steps, 6, 1),
        ] {
            let drawn = drawn(minibatch, minibatches, spread);
            assert_eq!(drawn.len(), minibatches);
            let mut all: Vec<usize> = drawn.into_iter().flat_map(|(_, decisions)| decisions).collect();
            all.sort_unstable();
            assert_eq!(all, (0..84).collect::<Vec<usize>>(), "{minibatch:?} {spread}");
        }
    }

    #[test]
    fn balanced_minibatches_have_every_tuple_alike() {
        for (encounters, _) in drawn(Minibatch::Balanced, 4, 1) {
            let mut tuples: Vec<u32> = encounters.iter().map(|encounter| encounter % 3).collect();
            tuples.sort_unstable();
            assert_eq!(tuples, [0, 1, 2]);
        }
    }

    #[test]
    fn spread_minibatches_see_more_encounters() {
        let drawn = drawn(Minibatch::Balanced, 6, 3);
        for (encounters, decisions) in drawn {
            assert_eq!(encounters.len(), 6);
            assert!((12..=18).contains(&decisions.len()), "{}", decisions.len());
        }
    }
}
