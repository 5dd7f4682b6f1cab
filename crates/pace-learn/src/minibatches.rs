//! Mini-batches: the decisions of each gradient step of an epoch.

use std::ops::Range;

use pace_games::Stream;

use crate::batch::{Batch, Segment};
use crate::config::{MinibatchUnit, TrainConfig};

/// The mini-batches of one epoch at a time.
pub(crate) struct Minibatches<'a> {
    kind: MinibatchUnit,
    spread: usize,
    /// Encounters, or chunks of encounters for recurrent methods.
    segments: &'a [Segment],
    /// The training tuple of every segment.
    tuples: Vec<u32>,
    n_decisions: usize,
    /// The decisions that are learned from; `None` if all are.
    new_decisions: Option<Vec<usize>>,
    /// The segments, in the order of this epoch.
    order: Vec<u32>,
    /// The part of its segment that each decision belongs to, if segments are divided; [`EARLIER`] if it is not learned from.
    parts: Option<Vec<u32>>,
    /// The range of `order` and the part of every mini-batch.
    plan: Vec<(Range<usize>, u32)>,
}

/// The part of decisions that are context only.
const EARLIER: u32 = u32::MAX;

/// The decisions of one gradient step.
pub(crate) struct MinibatchSegments<'a> {
    pub(crate) segment_indices: &'a [u32],
    /// The part of each decision, and the part of this mini-batch. `None` selects all decisions of the segments.
    pub(crate) minibatch_of_decision: Option<(&'a [u32], u32)>,
    pub(crate) n_rows: usize,
}

impl<'a> Minibatches<'a> {
    pub(crate) fn new(config: &TrainConfig, batch: &Batch, segments: &'a [Segment]) -> Minibatches<'a> {
        let (n, n_decisions, n_new) = (segments.len(), batch.n_decisions(), batch.n_new_decisions());
        let spread = config.minibatches_per_encounter.min(config.minibatches);
        let plan = match config.minibatch_unit {
            MinibatchUnit::Steps => {
                (0..config.minibatches.min(n_new)).map(|part| (0..n, part as u32)).collect()
            }
            MinibatchUnit::Encounters | MinibatchUnit::Balanced | MinibatchUnit::Chunks => {
                let n_groups = (config.minibatches / spread).min(n);
                // Part by part and not group by group, so that consecutive mini-batches have different encounters.
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
            new_decisions: (n_new < n_decisions).then(|| {
                (0..batch.n_encounters()).flat_map(|encounter| batch.new_decisions(encounter)).collect()
            }),
            order,
            parts: None,
            plan,
        }
    }

    /// Samples the mini-batches of the next epoch.
    pub(crate) fn sample(&mut self, rng: &mut Stream) {
        match self.kind {
            MinibatchUnit::Encounters | MinibatchUnit::Chunks => rng.shuffle(&mut self.order),
            MinibatchUnit::Balanced => self.balance(rng),
            MinibatchUnit::Steps => {
                // Equal parts of a random order; the remainder is dropped, as in the authors' code.
                let n_new = self.new_decisions.as_ref().map_or(self.n_decisions, Vec::len);
                let size = n_new / self.plan.len();
                let mut parts: Vec<u32> = (0..n_new).map(|index| (index / size) as u32).collect();
                rng.shuffle(&mut parts);
                self.parts = Some(match &self.new_decisions {
                    None => parts,
                    Some(new_decisions) => {
                        let mut of_all = vec![EARLIER; self.n_decisions];
                        new_decisions.iter().zip(parts).for_each(|(decision, part)| of_all[*decision] = part);
                        of_all
                    }
                });
                return;
            }
        }
        if self.spread > 1 || self.new_decisions.is_some() {
            let mut parts = vec![0; self.n_decisions];
            for segment in self.segments {
                let parts = &mut parts[segment.decisions.clone()];
                parts.iter_mut().enumerate().for_each(|(index, part)| *part = (index % self.spread) as u32);
                rng.shuffle(parts);
            }
            if let Some(new_decisions) = &self.new_decisions {
                let mut of_all = vec![EARLIER; self.n_decisions];
                new_decisions.iter().for_each(|decision| of_all[*decision] = parts[*decision]);
                parts = of_all;
            }
            self.parts = Some(parts);
        }
    }

    /// Orders the segments in rounds with one segment of every tuple each, so that every part of the order has all tuples equally often.
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
        drawn_after(minibatch, minibatches, spread, 0)
    }

    /// The segments and decisions of every mini-batch, if an earlier batch had the first `n_earlier` decisions of each encounter.
    fn drawn_after(
        minibatch: MinibatchUnit,
        minibatches: usize,
        spread: usize,
        n_earlier: usize,
    ) -> Vec<(Vec<u32>, Vec<usize>)> {
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
        batch.n_earlier.fill(n_earlier);
        let segments = batch.whole_encounters();
        let mut plan = Minibatches::new(&config, &batch, &segments);
        plan.sample(&mut Seed::new(3).stream("order"));
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
    fn earlier_decisions_are_in_no_minibatch() {
        for (minibatch, spread) in
            [(MinibatchUnit::Encounters, 1), (MinibatchUnit::Balanced, 3), (MinibatchUnit::Steps, 1)]
        {
            let drawn = drawn_after(minibatch, 6, spread, 4);
            let mut all: Vec<usize> = drawn.into_iter().flat_map(|(_, decisions)| decisions).collect();
            all.sort_unstable();
            assert_eq!(
                all,
                (0..84).filter(|decision| decision % 7 >= 4).collect::<Vec<usize>>(),
                "{minibatch:?}"
            );
        }
    }

    #[test]
    fn balanced_minibatches_have_every_tuple_equally_often() {
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
