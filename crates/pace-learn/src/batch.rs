//! A training batch: whole encounters, one contiguous block per field, ragged with offsets.

use std::collections::BTreeMap;
use std::ops::Range;

use pace_games::{Action, Ending};

/// The encounters of a rollout in order, and the decisions of each in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Batch {
    /// The ego's observation at each decision.
    pub(crate) observations: Vec<f32>,
    /// The ego's observation at the end of each episode.
    pub(crate) terminal_observations: Vec<f32>,
    /// The ego's action at each decision.
    pub(crate) actions: Vec<Action>,
    /// The actions of all peers in the step after each decision.
    pub(crate) peer_actions: Vec<Action>,
    /// The observations of all peers when they chose; empty unless the method needs them.
    pub(crate) peer_observations: Vec<f32>,
    /// The states that the network saved of its contexts.
    pub(crate) saved_states: Vec<f32>,
    /// The log-probability of the action in the rollout.
    pub(crate) log_probabilities: Vec<f32>,
    /// The value of the critic in the rollout.
    pub(crate) values: Vec<f32>,
    /// The task reward of each decision.
    pub(crate) task_rewards: Vec<f32>,
    /// The identifier's confidence, before its weight.
    pub(crate) exploration_rewards: Vec<f32>,
    /// Filled in by `gae`: normalised advantages.
    pub(crate) advantages: Vec<f32>,
    /// Filled in by `gae`: the targets of the value.
    pub(crate) targets: Vec<f32>,
    /// The decisions of each episode.
    pub(crate) episode_lengths: Vec<u32>,
    /// The ending of each episode.
    pub(crate) endings: Vec<Ending>,
    /// Whether the ego came to an informative place, per episode.
    pub(crate) keypoints_visited: Vec<bool>,
    /// The training tuple of each encounter.
    pub(crate) tuples: Vec<u32>,
    /// The index of the symmetry transform of each encounter.
    pub(crate) sides: Vec<u8>,
    /// Filled in by [`Batch::index_observations`] if there are few distinct observations.
    pub(crate) numbers: Option<ObservationIndices>,
    decision_starts: Vec<usize>,
    episode_starts: Vec<usize>,
}

/// The index of the distinct observation at every decision and at every end of an episode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObservationIndices {
    pub(crate) decisions: Vec<u32>,
    pub(crate) ends: Vec<u32>,
}

/// Observations are indexed if at most this share of them is distinct: below it, encoding each distinct one once pays for the copies.
const MAX_DISTINCT_SHARE: f64 = 0.75;

/// The number of observations after which the share is first checked.
const MIN_CHECKED_OBSERVATIONS: usize = 2048;

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

    /// Indexes the distinct observations, of `size` values each, if there are few.
    pub(crate) fn index_observations(&mut self, size: usize) {
        let mut index = ObservationIndex::default();
        self.numbers = index.number_all(&self.observations, size).and_then(|decisions| {
            Some(ObservationIndices { decisions, ends: index.number_all(&self.terminal_observations, size)? })
        });
    }

    /// The number of encounters.
    pub(crate) fn n_encounters(&self) -> usize {
        self.tuples.len()
    }

    /// The number of decisions.
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

    /// Starts the next encounter, without a symmetry transform. Rows that are pushed later belong to it.
    pub(crate) fn open_encounter(&mut self, tuple: u32) {
        self.open_encounter_from(tuple, 0);
    }

    /// Like [`Batch::open_encounter`], but with any symmetry transform.
    pub(crate) fn open_encounter_from(&mut self, tuple: u32, side: u8) {
        self.decision_starts.push(self.actions.len());
        self.episode_starts.push(self.episode_lengths.len());
        self.tuples.push(tuple);
        self.sides.push(side);
    }

    /// A batch with room for this many encounters, to be filled by its [`EncounterWriter`]s. Rows that are never written take no
    /// physical memory.
    pub(crate) fn with_room(n_encounters: usize, room: EncounterRoom) -> Batch {
        let mut batch = Batch::default();
        let (n_decisions, n_episodes) = (n_encounters * room.max_decisions, n_encounters * room.n_episodes);
        for (column, width) in batch.float_columns(room) {
            *column = vec![0.0; n_decisions * width];
        }
        for (column, width) in batch.action_columns(room) {
            *column = vec![0; n_decisions * width];
        }
        batch.terminal_observations = vec![0.0; n_episodes * room.observation];
        batch.episode_lengths = vec![0; n_episodes];
        batch.endings = vec![Ending::Finished; n_episodes];
        batch.keypoints_visited = vec![false; n_episodes];
        batch
    }

    /// A writer for each encounter that there is room for, in order.
    pub(crate) fn writers(&mut self, room: EncounterRoom) -> impl Iterator<Item = EncounterWriter<'_>> {
        let EncounterRoom { max_decisions, n_episodes, observation, n_peers, peer_observation } = room;
        let n_encounters = self.actions.len() / max_decisions;
        let mut observations = &mut self.observations[..];
        let mut actions = &mut self.actions[..];
        let mut peer_actions = &mut self.peer_actions[..];
        let mut peer_observations = &mut self.peer_observations[..];
        let mut log_probabilities = &mut self.log_probabilities[..];
        let mut values = &mut self.values[..];
        let mut task_rewards = &mut self.task_rewards[..];
        let mut exploration_rewards = &mut self.exploration_rewards[..];
        let mut terminal_observations = &mut self.terminal_observations[..];
        let mut episode_lengths = &mut self.episode_lengths[..];
        let mut endings = &mut self.endings[..];
        let mut keypoints_visited = &mut self.keypoints_visited[..];
        (0..n_encounters).map(move |_| EncounterWriter {
            tuple: 0,
            side: 0,
            n_decisions: 0,
            episode: 0,
            saved_states: Vec::new(),
            observations: take_front(&mut observations, max_decisions * observation),
            actions: take_front(&mut actions, max_decisions),
            peer_actions: take_front(&mut peer_actions, max_decisions * n_peers),
            peer_observations: take_front(&mut peer_observations, max_decisions * n_peers * peer_observation),
            log_probabilities: take_front(&mut log_probabilities, max_decisions),
            values: take_front(&mut values, max_decisions),
            task_rewards: take_front(&mut task_rewards, max_decisions),
            exploration_rewards: take_front(&mut exploration_rewards, max_decisions),
            terminal_observations: take_front(&mut terminal_observations, n_episodes * observation),
            episode_lengths: take_front(&mut episode_lengths, n_episodes),
            endings: take_front(&mut endings, n_episodes),
            keypoints_visited: take_front(&mut keypoints_visited, n_episodes),
        })
    }

    /// Closes the gaps behind encounters with fewer decisions than there is room for.
    pub(crate) fn close_gaps(&mut self, room: EncounterRoom, encounters: Vec<WrittenEncounter>) {
        for (column, width) in self.float_columns(room) {
            close_gaps_of(column, width, room.max_decisions, &encounters);
        }
        for (column, width) in self.action_columns(room) {
            close_gaps_of(column, width, room.max_decisions, &encounters);
        }
        let mut n_decisions = 0;
        for (encounter, written) in encounters.into_iter().enumerate() {
            self.decision_starts.push(n_decisions);
            self.episode_starts.push(encounter * room.n_episodes);
            self.tuples.push(written.tuple);
            self.sides.push(written.side);
            self.saved_states.extend(written.saved_states);
            n_decisions += written.n_decisions;
        }
    }

    /// The fields of numbers with one row per decision, and the width of a row.
    fn float_columns(&mut self, room: EncounterRoom) -> [(&mut Vec<f32>, usize); 6] {
        [
            (&mut self.observations, room.observation),
            (&mut self.peer_observations, room.n_peers * room.peer_observation),
            (&mut self.log_probabilities, 1),
            (&mut self.values, 1),
            (&mut self.task_rewards, 1),
            (&mut self.exploration_rewards, 1),
        ]
    }

    /// The fields of actions with one row per decision, and the width of a row.
    fn action_columns(&mut self, room: EncounterRoom) -> [(&mut Vec<Action>, usize); 2] {
        [(&mut self.actions, 1), (&mut self.peer_actions, room.n_peers)]
    }
}

/// The numbers of the distinct observations of a batch, in order of first appearance.
#[derive(Default)]
struct ObservationIndex<'a> {
    /// The first observation with each hash, and its number.
    by_hash: BTreeMap<u64, (&'a [f32], u32)>,
    n_distinct: u32,
    n_seen: usize,
}

impl<'a> ObservationIndex<'a> {
    /// The numbers of these observations, of `size` values each; `None` if too many of all observations are distinct.
    fn number_all(&mut self, observations: &'a [f32], size: usize) -> Option<Vec<u32>> {
        let number = |observation| {
            let number = self.number(observation);
            let is_checked = self.n_seen.is_multiple_of(MIN_CHECKED_OBSERVATIONS);
            (!is_checked || self.are_few()).then_some(number)
        };
        let numbers = observations.chunks_exact(size).map(number).collect::<Option<Vec<u32>>>()?;
        self.are_few().then_some(numbers)
    }

    fn are_few(&self) -> bool {
        f64::from(self.n_distinct) <= MAX_DISTINCT_SHARE * self.n_seen as f64
    }

    /// The number of an observation. Two observations with the same number are equal; in the rare case of equal hashes, an observation
    /// gets a new number every time.
    fn number(&mut self, observation: &'a [f32]) -> u32 {
        self.n_seen += 1;
        let new = (observation, self.n_distinct);
        let (first, number) = *self.by_hash.entry(hash_of(observation)).or_insert(new);
        let are_equal = |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits();
        if number != new.1 && first.iter().zip(observation).all(are_equal) {
            return number;
        }
        self.n_distinct += 1;
        new.1
    }
}

/// A hash of the bits of an observation (FNV-1a over words).
fn hash_of(observation: &[f32]) -> u64 {
    let add = |hash: u64, value: &f32| (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3);
    observation.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

/// Moves the rows of every encounter behind those of the encounter before it.
fn close_gaps_of<T: Copy>(
    column: &mut Vec<T>,
    width: usize,
    max_decisions: usize,
    encounters: &[WrittenEncounter],
) {
    let mut end = 0;
    for (encounter, written) in encounters.iter().enumerate() {
        let start = encounter * max_decisions * width;
        column.copy_within(start..start + written.n_decisions * width, end);
        end += written.n_decisions * width;
    }
    column.truncate(end);
}

/// Cuts the first `n` values off a slice.
fn take_front<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (front, back) = std::mem::take(rest).split_at_mut(n);
    *rest = back;
    front
}

/// The memory that a rollout reserves for each encounter of a batch, so that every lane can write to the batch itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncounterRoom {
    pub(crate) max_decisions: usize,
    pub(crate) n_episodes: usize,
    /// Size of an observation.
    pub(crate) observation: usize,
    pub(crate) n_peers: usize,
    /// Size of a recorded observation of a peer; 0 if they are not recorded.
    pub(crate) peer_observation: usize,
}

/// One encounter's rows of a batch, written decision by decision.
#[derive(Debug)]
pub(crate) struct EncounterWriter<'a> {
    pub(crate) tuple: u32,
    /// The side that the ego looks from.
    pub(crate) side: u8,
    /// Appended to by [`crate::network::Actor::save_state`].
    pub(crate) saved_states: Vec<f32>,
    n_decisions: usize,
    /// The current episode.
    episode: usize,
    observations: &'a mut [f32],
    actions: &'a mut [Action],
    peer_actions: &'a mut [Action],
    peer_observations: &'a mut [f32],
    log_probabilities: &'a mut [f32],
    values: &'a mut [f32],
    task_rewards: &'a mut [f32],
    exploration_rewards: &'a mut [f32],
    terminal_observations: &'a mut [f32],
    episode_lengths: &'a mut [u32],
    endings: &'a mut [Ending],
    keypoints_visited: &'a mut [bool],
}

/// A decision with its outcome. The fields are those of [`Batch`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecisionRow<'a> {
    pub(crate) observation: &'a [f32],
    pub(crate) action: Action,
    pub(crate) peer_actions: &'a [Action],
    /// Empty if not recorded.
    pub(crate) peer_observations: &'a [f32],
    pub(crate) log_probability: f32,
    pub(crate) value: f32,
    pub(crate) task_reward: f32,
    pub(crate) exploration_reward: f32,
    pub(crate) keypoint_visited: bool,
}

/// The properties of an encounter whose rows are written.
#[derive(Debug)]
pub(crate) struct WrittenEncounter {
    tuple: u32,
    side: u8,
    n_decisions: usize,
    saved_states: Vec<f32>,
}

impl EncounterWriter<'_> {
    /// Writes a decision of the current episode.
    pub(crate) fn add(&mut self, row: &DecisionRow<'_>) {
        let index = self.n_decisions;
        write_row(self.observations, index, row.observation);
        write_row(self.peer_actions, index, row.peer_actions);
        write_row(self.peer_observations, index, row.peer_observations);
        self.actions[index] = row.action;
        self.log_probabilities[index] = row.log_probability;
        self.values[index] = row.value;
        self.task_rewards[index] = row.task_reward;
        self.exploration_rewards[index] = row.exploration_reward;
        self.episode_lengths[self.episode] += 1;
        self.keypoints_visited[self.episode] |= row.keypoint_visited;
        self.n_decisions += 1;
    }

    /// Ends the current episode.
    pub(crate) fn end_episode(&mut self, terminal_observation: &[f32], ending: Ending) {
        write_row(self.terminal_observations, self.episode, terminal_observation);
        self.endings[self.episode] = ending;
        self.episode += 1;
    }

    /// Ends the encounter.
    pub(crate) fn finish(self) -> WrittenEncounter {
        WrittenEncounter {
            tuple: self.tuple,
            side: self.side,
            n_decisions: self.n_decisions,
            saved_states: self.saved_states,
        }
    }
}

fn write_row<T: Copy>(column: &mut [T], index: usize, row: &[T]) {
    column[index * row.len()..][..row.len()].copy_from_slice(row);
}

#[cfg(test)]
mod tests {
    use pace_games::Ending;

    use super::{Batch, DecisionRow, EncounterRoom, EncounterWriter, ObservationIndex, Segment, hash_of};

    #[test]
    fn writers_leave_no_gaps() {
        let room = EncounterRoom {
            max_decisions: 3,
            n_episodes: 2,
            observation: 2,
            n_peers: 1,
            peer_observation: 0,
        };
        let mut batch = Batch::with_room(3, room);
        let mut writers: Vec<_> = batch.writers(room).collect();
        // Encounters with episodes of these lengths, written in reverse order.
        let lengths = [[1, 1], [2, 1], [1, 1]];
        for (encounter, lengths) in lengths.iter().enumerate().rev() {
            let writer = &mut writers[encounter];
            writer.tuple = 7 + encounter as u32;
            let mut number = 10.0 * encounter as f32;
            for length in lengths {
                for _ in 0..*length {
                    number += 1.0;
                    writer.add(&DecisionRow {
                        observation: &[number, -number],
                        action: number as u8,
                        peer_actions: &[number as u8 + 100],
                        peer_observations: &[],
                        log_probability: number + 0.1,
                        value: number + 0.2,
                        task_reward: number + 0.3,
                        exploration_reward: number + 0.4,
                        keypoint_visited: number == 12.0,
                    });
                }
                writer.end_episode(&[number, number], Ending::TimedOut);
            }
            writer.saved_states.push(number);
        }
        let encounters = writers.into_iter().map(EncounterWriter::finish).collect();
        batch.close_gaps(room, encounters);
        let numbers = [1.0, 2.0, 11.0, 12.0, 13.0, 21.0, 22.0];
        let plus = |offset: f32| numbers.map(|number| number + offset);
        assert_eq!(batch.observations, numbers.map(|number| [number, -number]).concat());
        assert_eq!(batch.actions, numbers.map(|number| number as u8));
        assert_eq!(batch.peer_actions, numbers.map(|number| number as u8 + 100));
        assert!(batch.peer_observations.is_empty());
        assert_eq!(batch.log_probabilities, plus(0.1));
        assert_eq!(batch.values, plus(0.2));
        assert_eq!(batch.task_rewards, plus(0.3));
        assert_eq!(batch.exploration_rewards, plus(0.4));
        assert_eq!(
            batch.terminal_observations,
            [1, 1, 2, 2, 12, 12, 13, 13, 21, 21, 22, 22].map(|n| n as f32)
        );
        assert_eq!(batch.episode_lengths, lengths.concat());
        assert_eq!(batch.keypoints_visited, [false, false, true, false, false, false]);
        assert_eq!(
            (batch.tuples.clone(), batch.saved_states.clone()),
            (vec![7, 8, 9], vec![2.0, 13.0, 22.0])
        );
        assert_eq!(
            (0..3).map(|encounter| batch.decisions(encounter)).collect::<Vec<_>>(),
            [0..2, 2..5, 5..7]
        );
        assert_eq!(batch.episodes(1), 2..4);
    }

    #[test]
    fn few_distinct_observations_are_indexed_and_many_are_not() {
        let mut batch = Batch {
            observations: vec![1.0, 2.0, 0.5, 0.5, 1.0, 2.0],
            terminal_observations: vec![0.5, 0.5, 2.0, 1.0],
            ..Batch::default()
        };
        batch.index_observations(2);
        let numbers = batch.numbers.clone().expect("three are few");
        assert_eq!((numbers.decisions, numbers.ends), (vec![0, 1, 0], vec![1, 2]));
        for (period, are_few) in [(3, true), (5, false)] {
            let observation = |index| if index % period == 0 { [0.0; 2] } else { [index as f32; 2] };
            batch.observations = (1..=10_000).flat_map(observation).collect();
            batch.terminal_observations = vec![0.0; 2];
            batch.index_observations(2);
            assert_eq!(batch.numbers.is_some(), are_few);
        }
    }

    #[test]
    fn observations_with_equal_hashes_get_different_numbers() {
        let (first, second) = ([0.0, 1.0], [0.0, 2.0]);
        let mut index = ObservationIndex::default();
        assert_eq!(index.number(&first), 0);
        let taken = index.by_hash[&hash_of(&first)];
        index.by_hash.insert(hash_of(&second), taken);
        assert_eq!([index.number(&second), index.number(&first), index.number(&second)], [1, 0, 2]);
    }

    #[test]
    fn segments_cover_every_encounter_and_contain_their_episode() {
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
