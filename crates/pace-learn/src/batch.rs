//! A training batch: whole encounters, one contiguous block per field, ragged with offsets.

use std::collections::BTreeMap;
use std::ops::Range;

use pace_games::{Action, Ending};

/// Encounters one after the other, and inside each its decisions in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Batch {
    /// What the ego saw at each decision.
    pub(crate) observations: Vec<f32>,
    /// What the ego saw at the end of each episode.
    pub(crate) terminal_observations: Vec<f32>,
    /// What the ego did.
    pub(crate) actions: Vec<Action>,
    /// What every peer did in the step that followed.
    pub(crate) peer_actions: Vec<Action>,
    /// What every peer saw when it chose; only for methods that ask.
    pub(crate) peer_observations: Vec<f32>,
    /// What the network wrote down of its contexts.
    pub(crate) saved_states: Vec<f32>,
    /// The log-probability of the action when it was taken.
    pub(crate) log_probabilities: Vec<f32>,
    /// The value expected when it was taken.
    pub(crate) values: Vec<f32>,
    /// What the game paid.
    pub(crate) task_rewards: Vec<f32>,
    /// The identifier's confidence, before its weight.
    pub(crate) exploration_rewards: Vec<f32>,
    /// Filled in by `gae`: normalised advantages.
    pub(crate) advantages: Vec<f32>,
    /// Filled in by `gae`: what the value is trained towards.
    pub(crate) targets: Vec<f32>,
    /// The decisions of each episode.
    pub(crate) episode_lengths: Vec<u32>,
    /// How each episode ended.
    pub(crate) endings: Vec<Ending>,
    /// Where the ego came to an informative place, per episode.
    pub(crate) keypoints_visited: Vec<bool>,
    /// The training tuple of each encounter.
    pub(crate) tuples: Vec<u32>,
    /// The side that the ego looks from in each encounter.
    pub(crate) sides: Vec<u8>,
    /// Filled in by [`Batch::index_observations`] where observations recur.
    pub(crate) numbers: Option<ObservationIndices>,
    decision_starts: Vec<usize>,
    episode_starts: Vec<usize>,
}

/// Which observation every decision and every end of an episode has, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservationIndices {
    pub(crate) decisions: Vec<u32>,
    pub(crate) ends: Vec<u32>,
}

/// The most observations that count as few.
const MAX_DISTINCT_OBSERVATIONS: usize = 256;

/// Consecutive decisions of one encounter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) decisions: Range<usize>,
    /// The episode of the first decision, and the decisions of that episode before it.
    pub(crate) episode: usize,
    pub(crate) n_before: usize,
}

impl Batch {
    /// Cuts every encounter into segments of this many decisions; the last one may be shorter.
    pub(crate) fn cut(&self, n_steps: usize) -> Vec<Segment> {
        let mut segments = Vec::new();
        for encounter in 0..self.n_encounters() {
            let range = self.decisions(encounter);
            let mut episode = self.episodes(encounter).start;
            let mut episode_start = range.start;
            for start in range.clone().step_by(n_steps) {
                while episode_start + self.episode_lengths[episode] as usize <= start {
                    episode_start += self.episode_lengths[episode] as usize;
                    episode += 1;
                }
                let decisions = start..range.end.min(start.saturating_add(n_steps));
                segments.push(Segment { decisions, episode, n_before: start - episode_start });
            }
        }
        segments
    }

    /// Numbers the observations, of `size` numbers each, if there are but few that differ.
    pub(crate) fn index_observations(&mut self, size: usize) {
        let mut found: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut observation = Vec::with_capacity(size);
        let mut number = |rows: &[f32]| -> Option<Vec<u32>> {
            let number = |row: &[f32]| {
                observation.clear();
                observation.extend(row.iter().map(|value| value.to_bits()));
                if let Some(number) = found.get(&observation) {
                    return Some(*number);
                }
                let number = found.len() as u32;
                found.insert(observation.clone(), number);
                (found.len() <= MAX_DISTINCT_OBSERVATIONS).then_some(number)
            };
            rows.chunks_exact(size).map(number).collect()
        };
        self.numbers = number(&self.observations).and_then(|decisions| {
            Some(ObservationIndices { decisions, ends: number(&self.terminal_observations)? })
        });
    }

    /// How many encounters there are.
    pub(crate) fn n_encounters(&self) -> usize {
        self.tuples.len()
    }

    /// How many decisions there are.
    pub(crate) fn n_decisions(&self) -> usize {
        self.actions.len()
    }

    /// The decisions of an encounter.
    pub(crate) fn decisions(&self, encounter: usize) -> Range<usize> {
        let end = self.decision_starts.get(encounter + 1).copied().unwrap_or(self.actions.len());
        self.decision_starts[encounter]..end
    }

    /// The episodes of an encounter.
    pub(crate) fn episodes(&self, encounter: usize) -> Range<usize> {
        let end = self.episode_starts.get(encounter + 1).copied().unwrap_or(self.episode_lengths.len());
        self.episode_starts[encounter]..end
    }

    /// The episodes of an encounter, each with its decisions.
    pub(crate) fn episode_decisions(&self, encounter: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
        let mut start = self.decisions(encounter).start;
        self.episodes(encounter).map(move |episode| {
            let decisions = start..start + self.episode_lengths[episode] as usize;
            start = decisions.end;
            (episode, decisions)
        })
    }

    /// Opens the next encounter, looked at from the first side; what is pushed from now on belongs to it.
    pub(crate) fn open_encounter(&mut self, tuple: u32) {
        self.open_encounter_from(tuple, 0);
    }

    /// The same from any side.
    pub(crate) fn open_encounter_from(&mut self, tuple: u32, side: u8) {
        self.decision_starts.push(self.actions.len());
        self.episode_starts.push(self.episode_lengths.len());
        self.tuples.push(tuple);
        self.sides.push(side);
    }

    /// Appends the encounters of another batch. Observations have to be numbered anew.
    pub(crate) fn append(&mut self, other: &mut Batch) {
        self.numbers = None;
        let (n_decisions, n_episodes) = (self.actions.len(), self.episode_lengths.len());
        self.decision_starts.extend(other.decision_starts.drain(..).map(|start| start + n_decisions));
        self.episode_starts.extend(other.episode_starts.drain(..).map(|start| start + n_episodes));
        self.observations.append(&mut other.observations);
        self.terminal_observations.append(&mut other.terminal_observations);
        self.actions.append(&mut other.actions);
        self.peer_actions.append(&mut other.peer_actions);
        self.peer_observations.append(&mut other.peer_observations);
        self.saved_states.append(&mut other.saved_states);
        self.log_probabilities.append(&mut other.log_probabilities);
        self.values.append(&mut other.values);
        self.task_rewards.append(&mut other.task_rewards);
        self.exploration_rewards.append(&mut other.exploration_rewards);
        self.advantages.append(&mut other.advantages);
        self.targets.append(&mut other.targets);
        self.episode_lengths.append(&mut other.episode_lengths);
        self.endings.append(&mut other.endings);
        self.keypoints_visited.append(&mut other.keypoints_visited);
        self.tuples.append(&mut other.tuples);
        self.sides.append(&mut other.sides);
    }
}

#[cfg(test)]
mod tests {
    use super::{Batch, MAX_DISTINCT_OBSERVATIONS, Segment};

    #[test]
    fn few_observations_are_numbered_and_many_are_not() {
        let mut batch = Batch {
            observations: vec![1.0, 2.0, 0.5, 0.5, 1.0, 2.0],
            terminal_observations: vec![0.5, 0.5, 2.0, 1.0],
            ..Batch::default()
        };
        batch.index_observations(2);
        let numbers = batch.numbers.clone().expect("three are few");
        assert_eq!((numbers.decisions, numbers.ends), (vec![0, 1, 0], vec![1, 2]));
        for (n_distinct, are_few) in
            [(MAX_DISTINCT_OBSERVATIONS, true), (MAX_DISTINCT_OBSERVATIONS + 1, false)]
        {
            batch.observations = (0..2 * n_distinct).map(|value| (value / 2) as f32).collect();
            batch.terminal_observations = vec![0.0; 2];
            batch.index_observations(2);
            assert_eq!(batch.numbers.is_some(), are_few);
        }
    }

    #[test]
    fn pieces_cover_every_encounter_and_know_their_episode() {
        let mut batch = Batch::default();
        for lengths in [&[3, 1, 4][..], &[2], &[1, 1]] {
            batch.open_encounter(0);
            batch.episode_lengths.extend(lengths);
            batch.actions.extend((0..lengths.iter().sum()).map(|_| 0));
        }
        let segment = |decisions, episode, n_before| Segment { decisions, episode, n_before };
        let expected = [
            segment(0..3, 0, 0),
            segment(3..6, 1, 0),
            segment(6..8, 2, 2),
            segment(8..10, 3, 0),
            segment(10..12, 4, 0),
        ];
        assert_eq!(batch.cut(3), expected);
        assert_eq!(batch.cut(usize::MAX), [segment(0..8, 0, 0), segment(8..10, 3, 0), segment(10..12, 4, 0)]);
        assert_eq!(batch.cut(1).len(), 12);
    }
}
