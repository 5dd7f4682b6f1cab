//! A training batch: whole encounters, one contiguous block per field, ragged with offsets.

use std::ops::Range;

use pace_games::Action;

/// Encounters one after the other, and inside each its decisions in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// What the ego saw at each decision.
    pub observations: Vec<f32>,
    /// What the ego saw at the end of each episode.
    pub terminal_observations: Vec<f32>,
    /// What the ego did.
    pub actions: Vec<Action>,
    /// The action stored in the context with each decision.
    pub context_actions: Vec<Action>,
    /// The log-probability of the action when it was taken.
    pub log_probabilities: Vec<f32>,
    /// The value expected when it was taken.
    pub values: Vec<f32>,
    /// What the game paid.
    pub task_rewards: Vec<f32>,
    /// The identifier's confidence, before its weight.
    pub exploration_rewards: Vec<f32>,
    /// Filled in by `gae`: normalised advantages.
    pub advantages: Vec<f32>,
    /// Filled in by `gae`: what the value is trained towards.
    pub targets: Vec<f32>,
    /// The decisions of each episode.
    pub episode_lengths: Vec<u32>,
    /// Where the ego came to an informative place, per episode.
    pub keypoints_visited: Vec<bool>,
    /// Whether each episode succeeded.
    pub successes: Vec<bool>,
    /// The training tuple of each encounter.
    pub tuples: Vec<u32>,
    decision_starts: Vec<usize>,
    episode_starts: Vec<usize>,
}

impl Batch {
    /// How many encounters there are.
    pub fn n_encounters(&self) -> usize {
        self.tuples.len()
    }

    /// How many decisions there are.
    pub fn n_decisions(&self) -> usize {
        self.actions.len()
    }

    /// The decisions of an encounter.
    pub fn decisions(&self, encounter: usize) -> Range<usize> {
        let end = self.decision_starts.get(encounter + 1).copied().unwrap_or(self.actions.len());
        self.decision_starts[encounter]..end
    }

    /// The episodes of an encounter.
    pub fn episodes(&self, encounter: usize) -> Range<usize> {
        let end = self.episode_starts.get(encounter + 1).copied().unwrap_or(self.episode_lengths.len());
        self.episode_starts[encounter]..end
    }

    /// Opens the next encounter; what is pushed from now on belongs to it.
    pub fn open_encounter(&mut self, tuple: u32) {
        self.decision_starts.push(self.actions.len());
        self.episode_starts.push(self.episode_lengths.len());
        self.tuples.push(tuple);
    }

    /// Appends the encounters of another batch.
    pub fn append(&mut self, other: &mut Batch) {
        let (n_decisions, n_episodes) = (self.actions.len(), self.episode_lengths.len());
        self.decision_starts.extend(other.decision_starts.drain(..).map(|start| start + n_decisions));
        self.episode_starts.extend(other.episode_starts.drain(..).map(|start| start + n_episodes));
        self.observations.append(&mut other.observations);
        self.terminal_observations.append(&mut other.terminal_observations);
        self.actions.append(&mut other.actions);
        self.context_actions.append(&mut other.context_actions);
        self.log_probabilities.append(&mut other.log_probabilities);
        self.values.append(&mut other.values);
        self.task_rewards.append(&mut other.task_rewards);
        self.exploration_rewards.append(&mut other.exploration_rewards);
        self.advantages.append(&mut other.advantages);
        self.targets.append(&mut other.targets);
        self.episode_lengths.append(&mut other.episode_lengths);
        self.keypoints_visited.append(&mut other.keypoints_visited);
        self.successes.append(&mut other.successes);
        self.tuples.append(&mut other.tuples);
    }
}
