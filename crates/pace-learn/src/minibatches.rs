//! Which decisions each gradient step of an epoch is made of.

use std::ops::Range;

use pace_games::Stream;

use crate::batch::{Batch, Segment};
use crate::config::{MinibatchUnit, TrainConfig};

/// The mini-batches of one epoch after the other.
pub(crate) struct Minibatches<'a> {
    kind: MinibatchUnit,
    spread: usize,
    /// Encounters, or parts of them that are learned from by themselves.
    segments: &'a [Segment],
    /// The training tuple of every segment.
    tuples: Vec<u32>,
    n_decisions: usize,
    /// The segments, in the order of this epoch.
    order: Vec<u32>,
    /// The part of its segment that each decision belongs to, where segments are divided.
    parts: Option<Vec<u32>>,
    /// The places in the order and the part of every mini-batch.
    plan: Vec<(Range<usize>, u32)>,
}

/// One gradient step's decisions.
pub(crate) struct MinibatchSegments<'a> {
    pub(crate) segment_indices: &'a [u32],
    /// The part each decision belongs to, and the one that is due; all decisions where absent.
    pub(crate) minibatch_of_decision: Option<(&'a [u32], u32)>,
    pub(crate) n_rows: usize,
}

impl<'a> Minibatches<'a> {
    pub(crate) fn new(config: &TrainConfig, batch: &Batch, segments: &'a [Segment]) -> Minibatches<'a> {
        let (n, n_decisions) = (segments.len(), batch.n_decisions());
        let spread = config.minibatches_per_encounter.min(config.minibatches);
        let plan = match config.minibatch_unit {
            MinibatchUnit::Steps => {
                (0..config.minibatches.min(n_decisions)).map(|part| (0..n, part as u32)).collect()
            }
            MinibatchUnit::Encounters | MinibatchUnit::Balanced | MinibatchUnit::Chunks => {
                let n_groups = (config.minibatches / spread).min(n);
                // InputPart by part and not group by group: what comes next is made of other encounters.
                (0..spread as u32)
                    .flat_map(|part| (0..n_groups).map(move |group| (part, group)))
                    .map(|(part, group)| (n * group / n_groups..n * (group + 1) / n_groups, part))
                    .collect()
            }
        };
        let mut encounter = 0;
        let tuples = segments
            .iter()
            .map(|segment| {
                while batch.decisions(encounter).end <= segment.decisions.start {
                    encounter += 1;
                }
                batch.tuples[encounter]
            })
            .collect();
        let order = (0..n as u32).collect();
        Minibatches {
            kind: config.minibatch_unit,
            spread,
            segments,
            tuples,
            n_decisions,
            order,
            parts: None,
            plan,
        }
    }

    /// Draws the mini-batches of the next epoch.
    pub(crate) fn draw(&mut self, rng: &mut Stream) {
        match self.kind {
            MinibatchUnit::Encounters | MinibatchUnit::Chunks => rng.shuffle(&mut self.order),
            MinibatchUnit::Balanced => self.balance(rng),
            MinibatchUnit::Steps => {
                // Equal parts of a random order; the remainder is dropped, as in the authors' code.
                let size = self.n_decisions / self.plan.len();
                let mut parts: Vec<u32> = (0..self.n_decisions).map(|index| (index / size) as u32).collect();
                rng.shuffle(&mut parts);
                self.parts = Some(parts);
                return;
            }
        }
        if self.spread > 1 {
            let mut parts = vec![0; self.n_decisions];
            for segment in self.segments {
                let parts = &mut parts[segment.decisions.clone()];
                parts.iter_mut().enumerate().for_each(|(index, part)| *part = (index % self.spread) as u32);
                rng.shuffle(parts);
            }
            self.parts = Some(parts);
        }
    }

    /// Round after round, in each one segment with every tuple: any stretch of the order has all tuples alike.
    fn balance(&mut self, rng: &mut Stream) {
        rng.shuffle(&mut self.order);
        let n_tuples = 1 + self.tuples.iter().max().copied().unwrap_or(0) as usize;
        let mut n_seen = vec![0u32; n_tuples];
        let mut rounds = vec![0u32; self.order.len()];
        for segment in &self.order {
            let n_seen = &mut n_seen[self.tuples[*segment as usize] as usize];
            rounds[*segment as usize] = *n_seen;
            *n_seen += 1;
        }
        // A stable sort: within a round, the tuples keep their random order.
        self.order.sort_by_key(|segment| rounds[*segment as usize]);
    }

    pub(crate) fn len(&self) -> usize {
        self.plan.len()
    }

    pub(crate) fn get(&self, index: usize) -> MinibatchSegments<'_> {
        let (places, part) = &self.plan[index];
        let segment_indices = &self.order[places.clone()];
        let minibatch_of_decision = self.parts.as_deref().map(|parts| (parts, *part));
        let n_rows = match minibatch_of_decision {
            None => {
                segment_indices.iter().map(|segment| self.segments[*segment as usize].decisions.len()).sum()
            }
            Some((parts, part)) => segment_indices
                .iter()
                .flat_map(|segment| &parts[self.segments[*segment as usize].decisions.clone()])
                .filter(|other| **other == part)
                .count(),
        };
        MinibatchSegments { segment_indices, minibatch_of_decision, n_rows }
    }
}

#[cfg(test)]
mod tests {
    use pace_games::Seed;

    use super::Minibatches;
    use crate::batch::Batch;
    use crate::config::{MinibatchUnit, TrainConfig};
    use crate::preset::paper_keys;

    fn drawn(minibatch: MinibatchUnit, minibatches: usize, spread: usize) -> Vec<(Vec<u32>, Vec<usize>)> {
        let preset = paper_keys("overcooked", "pace");
        let config = TrainConfig {
            minibatch_unit: minibatch,
            minibatches,
            minibatches_per_encounter: spread,
            ..preset
        };
        // Twelve encounters with three tuples, of seven decisions each.
        let mut batch = Batch::default();
        for encounter in 0..12 {
            batch.open_encounter(encounter % 3);
            batch.actions.extend([0; 7]);
            batch.episode_lengths.push(7);
        }
        let segments = batch.cut(usize::MAX);
        let mut plan = Minibatches::new(&config, &batch, &segments);
        plan.draw(&mut Seed::new(3).stream("order"));
        (0..plan.len())
            .map(|index| {
                let rows = plan.get(index);
                let decisions: Vec<usize> = rows
                    .segment_indices
                    .iter()
                    .flat_map(|segment| segments[*segment as usize].decisions.clone())
                    .filter(|decision| {
                        rows.minibatch_of_decision.is_none_or(|(parts, part)| parts[*decision] == part)
                    })
                    .collect();
                assert_eq!(decisions.len(), rows.n_rows);
                (rows.segment_indices.to_vec(), decisions)
            })
            .collect()
    }

    #[test]
    fn every_decision_is_in_one_minibatch() {
        for (minibatch, minibatches, spread) in [
            (MinibatchUnit::Encounters, 4, 1),
            (MinibatchUnit::Balanced, 4, 1),
            (MinibatchUnit::Balanced, 6, 3),
            (MinibatchUnit::Encounters, 6, 99),
            (MinibatchUnit::Steps, 6, 1),
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
        for (segment_indices, _) in drawn(MinibatchUnit::Balanced, 4, 1) {
            let mut tuples: Vec<u32> = segment_indices.iter().map(|encounter| encounter % 3).collect();
            tuples.sort_unstable();
            assert_eq!(tuples, [0, 1, 2]);
        }
    }

    #[test]
    fn spread_minibatches_see_more_encounters() {
        for (segment_indices, decisions) in drawn(MinibatchUnit::Balanced, 6, 3) {
            assert_eq!(segment_indices.len(), 6);
            assert!((12..=18).contains(&decisions.len()), "{}", decisions.len());
        }
    }
}
