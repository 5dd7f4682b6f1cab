//! A training batch: encounters, one contiguous block per field, ragged with offsets.
//!
//! Encounters are whole, unless the keys ask for rollouts of a fixed number of steps (`rollout_steps`). Then an encounter may go on
//! in the next batch. That batch has its earlier decisions again, as context only.

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
    /// The number of first decisions of each encounter that an earlier batch was learned from.
    pub(crate) n_earlier: Vec<usize>,
    /// The cut at the end of each encounter that continues in the next batch.
    pub(crate) cuts: Vec<Option<Cut>>,
    /// Filled in by [`Batch::index_observations`] if there are few distinct observations.
    pub(crate) numbers: Option<ObservationIndices>,
    decision_starts: Vec<usize>,
    episode_starts: Vec<usize>,
}

/// The end of a rollout within an encounter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    /// The value of the critic at the next decision.
    pub(crate) next_value: f32,
    /// Whether the last episode continues. Its terminal observation in the batch is then that of the next decision, and its ending
    /// has no meaning.
    pub(crate) is_within_episode: bool,
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
    /// One segment for every encounter.
    pub(crate) fn whole_encounters(&self) -> Vec<Segment> {
        let segment = |encounter| {
            let (decisions, episode) = (self.decisions(encounter), self.episodes(encounter).start);
            Segment { decisions, episode, n_before: 0 }
        };
        (0..self.n_encounters()).map(segment).collect()
    }

    /// Cuts the new decisions of every encounter into segments of this many; the last one may be shorter.
    pub(crate) fn cut(&self, n_steps: usize) -> Vec<Segment> {
        let mut segments = Vec::new();
        for encounter in 0..self.n_encounters() {
            let range = self.new_decisions(encounter);
            let mut episode = self.episodes(encounter).start;
            let mut episode_start = self.decisions(encounter).start;
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

    /// The decisions of an encounter that are learned from.
    pub(crate) fn new_decisions(&self, encounter: usize) -> Range<usize> {
        let decisions = self.decisions(encounter);
        decisions.start + self.n_earlier[encounter]..decisions.end
    }

    /// The number of decisions that are learned from.
    pub(crate) fn n_new_decisions(&self) -> usize {
        self.n_decisions() - self.n_earlier.iter().sum::<usize>()
    }

    /// The values of a field, one per decision, at the decisions that are learned from.
    pub(crate) fn at_new_decisions<'a>(&'a self, field: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        (0..self.n_encounters()).flat_map(|encounter| &field[self.new_decisions(encounter)]).copied()
    }

    /// The episodes that ended in this rollout.
    pub(crate) fn ended_episodes(&self) -> impl Iterator<Item = usize> {
        (0..self.n_encounters()).flat_map(move |encounter| {
            let first_new = self.new_decisions(encounter).start;
            let last = self.episodes(encounter).end - 1;
            let goes_on = self.cuts[encounter].is_some_and(|cut| cut.is_within_episode);
            let is_ended = move |(episode, decisions): &(usize, Range<usize>)| {
                decisions.end > first_new && !(goes_on && *episode == last)
            };
            self.episode_decisions(encounter).filter(is_ended).map(|(episode, _)| episode)
        })
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
        self.n_earlier.push(0);
        self.cuts.push(None);
    }

    /// A batch with room for this many lanes, to be filled by its [`LaneWriter`]s. Rows that are never written take no physical
    /// memory.
    pub(crate) fn with_room(n_lanes: usize, room: LaneRoom) -> Batch {
        let mut batch = Batch::default();
        let (n_decisions, n_episodes) = (n_lanes * room.max_decisions, n_lanes * room.max_episodes);
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

    /// A writer for each lane that there is room for, in order.
    pub(crate) fn writers(&mut self, room: LaneRoom) -> impl Iterator<Item = LaneWriter<'_>> {
        let LaneRoom { max_decisions, max_episodes, observation, n_peers, peer_observation } = room;
        let n_lanes = self.actions.len() / max_decisions;
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
        (0..n_lanes).map(move |_| LaneWriter {
            encounters: Vec::new(),
            n_decisions: 0,
            n_episodes: 0,
            is_within_episode: false,
            saved_states: Vec::new(),
            observations: take_front(&mut observations, max_decisions * observation),
            actions: take_front(&mut actions, max_decisions),
            peer_actions: take_front(&mut peer_actions, max_decisions * n_peers),
            peer_observations: take_front(&mut peer_observations, max_decisions * n_peers * peer_observation),
            log_probabilities: take_front(&mut log_probabilities, max_decisions),
            values: take_front(&mut values, max_decisions),
            task_rewards: take_front(&mut task_rewards, max_decisions),
            exploration_rewards: take_front(&mut exploration_rewards, max_decisions),
            terminal_observations: take_front(&mut terminal_observations, max_episodes * observation),
            episode_lengths: take_front(&mut episode_lengths, max_episodes),
            endings: take_front(&mut endings, max_episodes),
            keypoints_visited: take_front(&mut keypoints_visited, max_episodes),
        })
    }

    /// Closes the gaps behind lanes with fewer decisions or episodes than there is room for.
    pub(crate) fn close_gaps(&mut self, room: LaneRoom, lanes: Vec<WrittenLane>) {
        let (n_decisions, n_episodes): (Vec<usize>, Vec<usize>) =
            lanes.iter().map(|lane| (lane.n_decisions, lane.n_episodes)).unzip();
        for (column, width) in self.float_columns(room) {
            close_gaps_of(column, width, room.max_decisions, &n_decisions);
        }
        for (column, width) in self.action_columns(room) {
            close_gaps_of(column, width, room.max_decisions, &n_decisions);
        }
        close_gaps_of(&mut self.terminal_observations, room.observation, room.max_episodes, &n_episodes);
        close_gaps_of(&mut self.episode_lengths, 1, room.max_episodes, &n_episodes);
        close_gaps_of(&mut self.endings, 1, room.max_episodes, &n_episodes);
        close_gaps_of(&mut self.keypoints_visited, 1, room.max_episodes, &n_episodes);
        let (mut first_decision, mut first_episode) = (0, 0);
        for lane in lanes {
            for written in lane.encounters {
                self.decision_starts.push(first_decision + written.first_decision);
                self.episode_starts.push(first_episode + written.first_episode);
                self.tuples.push(written.tuple);
                self.sides.push(written.side);
                self.n_earlier.push(written.n_earlier);
                self.cuts.push(written.cut);
            }
            self.saved_states.extend(lane.saved_states);
            first_decision += lane.n_decisions;
            first_episode += lane.n_episodes;
        }
    }

    /// The fields of numbers with one row per decision, and the width of a row.
    fn float_columns(&mut self, room: LaneRoom) -> [(&mut Vec<f32>, usize); 6] {
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
    fn action_columns(&mut self, room: LaneRoom) -> [(&mut Vec<Action>, usize); 2] {
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

/// Moves the rows of every lane behind those of the lane before it.
fn close_gaps_of<T: Copy>(column: &mut Vec<T>, width: usize, max_rows: usize, n_rows: &[usize]) {
    let mut end = 0;
    for (lane, n_rows) in n_rows.iter().enumerate() {
        let start = lane * max_rows * width;
        column.copy_within(start..start + n_rows * width, end);
        end += n_rows * width;
    }
    column.truncate(end);
}

/// Cuts the first `n` values off a slice.
fn take_front<'a, T>(rest: &mut &'a mut [T], n: usize) -> &'a mut [T] {
    let (front, back) = std::mem::take(rest).split_at_mut(n);
    *rest = back;
    front
}

/// The memory that a rollout reserves for each lane of a batch, so that every lane can write to the batch itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneRoom {
    pub(crate) max_decisions: usize,
    pub(crate) max_episodes: usize,
    /// Size of an observation.
    pub(crate) observation: usize,
    pub(crate) n_peers: usize,
    /// Size of a recorded observation of a peer; 0 if they are not recorded.
    pub(crate) peer_observation: usize,
}

/// One lane's rows of a batch, written decision by decision: one encounter after the other.
#[derive(Debug)]
pub(crate) struct LaneWriter<'a> {
    encounters: Vec<WrittenEncounter>,
    /// Appended to by [`crate::network::Actor::save_state`].
    pub(crate) saved_states: Vec<f32>,
    n_decisions: usize,
    /// Episodes before the current one.
    n_episodes: usize,
    /// Whether the current episode has a decision.
    is_within_episode: bool,
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

/// The rows of a lane that is written.
#[derive(Debug)]
pub(crate) struct WrittenLane {
    encounters: Vec<WrittenEncounter>,
    n_decisions: usize,
    n_episodes: usize,
    saved_states: Vec<f32>,
}

/// The place of an encounter in the rows of its lane, and its properties.
#[derive(Debug)]
struct WrittenEncounter {
    tuple: u32,
    side: u8,
    first_decision: usize,
    first_episode: usize,
    n_earlier: usize,
    cut: Option<Cut>,
}

impl LaneWriter<'_> {
    /// Starts an encounter with a tuple, which the ego looks at from a side.
    pub(crate) fn open_encounter(&mut self, tuple: usize, side: usize) {
        self.encounters.push(WrittenEncounter {
            tuple: tuple as u32,
            side: side as u8,
            first_decision: self.n_decisions,
            first_episode: self.n_episodes,
            n_earlier: 0,
            cut: None,
        });
    }

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
        self.episode_lengths[self.n_episodes] += 1;
        self.keypoints_visited[self.n_episodes] |= row.keypoint_visited;
        self.n_decisions += 1;
        self.is_within_episode = true;
    }

    /// Marks all decisions of the current encounter so far as those of an earlier batch.
    pub(crate) fn mark_as_earlier(&mut self) {
        let n_decisions = self.n_decisions;
        let encounter = self.encounters.last_mut().expect("an encounter was opened");
        encounter.n_earlier = n_decisions - encounter.first_decision;
    }

    /// Ends the current episode.
    pub(crate) fn end_episode(&mut self, terminal_observation: &[f32], ending: Ending) {
        write_row(self.terminal_observations, self.n_episodes, terminal_observation);
        self.endings[self.n_episodes] = ending;
        self.n_episodes += 1;
        self.is_within_episode = false;
    }

    /// Ends the rollout within the current encounter, before a decision with this observation and value.
    pub(crate) fn cut(&mut self, next_observation: &[f32], next_value: f32) {
        let is_within_episode = self.is_within_episode;
        if is_within_episode {
            self.end_episode(next_observation, Ending::Finished);
        }
        let encounter = self.encounters.last_mut().expect("an encounter was opened");
        encounter.cut = Some(Cut { next_value, is_within_episode });
    }

    /// Ends the rollout.
    pub(crate) fn finish(self) -> WrittenLane {
        let LaneWriter { encounters, n_decisions, n_episodes, saved_states, .. } = self;
        WrittenLane { encounters, n_decisions, n_episodes, saved_states }
    }
}

fn write_row<T: Copy>(column: &mut [T], index: usize, row: &[T]) {
    column[index * row.len()..][..row.len()].copy_from_slice(row);
}

#[cfg(test)]
mod tests {
    use pace_games::Ending;

    use super::{Batch, Cut, DecisionRow, LaneRoom, LaneWriter, ObservationIndex, Segment, hash_of};

    #[test]
    fn writers_leave_no_gaps() {
        let room =
            LaneRoom { max_decisions: 3, max_episodes: 2, observation: 2, n_peers: 1, peer_observation: 0 };
        let mut batch = Batch::with_room(3, room);
        let mut writers: Vec<_> = batch.writers(room).collect();
        // Encounters with episodes of these lengths, written in reverse order.
        let lengths = [[1, 1], [2, 1], [1, 1]];
        for (encounter, lengths) in lengths.iter().enumerate().rev() {
            let writer = &mut writers[encounter];
            writer.open_encounter(7 + encounter, 0);
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
        let encounters = writers.into_iter().map(LaneWriter::finish).collect();
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
        let whole = [segment(0..8, 0, 0), segment(8..10, 3, 0), segment(10..12, 4, 0)];
        assert_eq!((batch.cut(usize::MAX), batch.whole_encounters()), (whole.to_vec(), whole.to_vec()));
        assert_eq!(batch.cut(1).len(), 12);
        // Only new decisions are cut, and the first segment may start within an episode.
        batch.n_earlier = vec![5, 0, 1];
        let cut = [segment(5..8, 2, 1), segment(8..10, 3, 0), segment(11..12, 5, 0)];
        assert_eq!((batch.cut(3), batch.whole_encounters()), (cut.to_vec(), whole.to_vec()));
        assert_eq!(batch.n_new_decisions(), 6);
    }

    #[test]
    fn a_lane_may_have_several_encounters_and_parts_of_them() {
        let room =
            LaneRoom { max_decisions: 9, max_episodes: 9, observation: 1, n_peers: 1, peer_observation: 0 };
        let mut batch = Batch::with_room(2, room);
        let mut writers: Vec<_> = batch.writers(room).collect();
        let add = |writer: &mut LaneWriter<'_>, number: f32| {
            writer.add(&DecisionRow {
                observation: &[number],
                action: 0,
                peer_actions: &[0],
                peer_observations: &[],
                log_probability: 0.0,
                value: number,
                task_reward: 0.0,
                exploration_reward: 0.0,
                keypoint_visited: false,
            });
        };
        // The end of an encounter that began earlier, and the beginning of one that continues.
        let lane = &mut writers[0];
        lane.open_encounter(3, 0);
        add(lane, 1.0);
        lane.end_episode(&[1.5], Ending::Succeeded);
        add(lane, 2.0);
        lane.mark_as_earlier();
        add(lane, 3.0);
        lane.end_episode(&[3.5], Ending::Succeeded);
        lane.open_encounter(3, 0);
        add(lane, 4.0);
        lane.cut(&[5.0], 0.5);
        // A cut between two episodes.
        let lane = &mut writers[1];
        lane.open_encounter(6, 0);
        add(lane, 7.0);
        lane.end_episode(&[7.5], Ending::TimedOut);
        lane.cut(&[8.0], 0.8);
        let lanes = writers.into_iter().map(LaneWriter::finish).collect();
        batch.close_gaps(room, lanes);
        assert_eq!(batch.observations, [1.0, 2.0, 3.0, 4.0, 7.0]);
        assert_eq!(batch.terminal_observations, [1.5, 3.5, 5.0, 7.5]);
        assert_eq!((&batch.tuples[..], &batch.episode_lengths[..]), (&[3, 3, 6][..], &[1, 2, 1, 1][..]));
        let ranges: Vec<_> = (0..3).map(|one| (batch.decisions(one), batch.new_decisions(one))).collect();
        assert_eq!(ranges, [(0..3, 2..3), (3..4, 3..4), (4..5, 4..5)]);
        let cut = |next_value, is_within_episode| Some(Cut { next_value, is_within_episode });
        assert_eq!([0, 1, 2].map(|one| batch.cuts[one]), [None, cut(0.5, true), cut(0.8, false)]);
        assert_eq!(batch.ended_episodes().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(batch.at_new_decisions(&batch.values).collect::<Vec<_>>(), [3.0, 4.0, 7.0]);
    }
}
