//! The record of one encounter, step by step: states, beliefs about the peers, and actions.
//!
//! The file has one line per step, so that it stays small and `diff` can compare two files. `page::replay` shows the record. A
//! view of a state is plain data that only the game's own drawing interprets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{
    self, DisplayNamesRecord, EpisodeEnding, FormatVersion, RecordError, RunRecord, ScoreMetric,
};

/// A recorded encounter of a trained agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    /// Always [`crate::FORMAT_VERSION`].
    pub format_version: FormatVersion,
    /// The game's id.
    pub game: String,
    /// The preset.
    pub preset: String,
    /// The method's id.
    pub method: String,
    /// The peer pool.
    pub pool: String,
    /// The index of the peer tuple in the pool.
    pub index: usize,
    /// The behaviour of the peers, as text.
    pub description: String,
    /// The score of an episode.
    pub metric: ScoreMetric,
    /// Display names of the game and its terms.
    #[serde(default)]
    pub words: DisplayNamesRecord,
    /// The names of the actions, by index.
    pub action_names: Vec<String>,
    /// The parts of the state that never change, for the drawing. `None` in older records, whose [`ReplayStep::view`] is a drawing
    /// with marks of what the agent sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constants: Option<Value>,
    /// The peers by slot, each with the kinds that the agent distinguishes.
    pub peers: Vec<ReplayPeer>,
    /// The random seed of the encounter.
    pub seed: u64,
    /// The training run of the agent.
    pub run: RunRecord,
    /// The command that wrote this record.
    pub command: String,
    /// The episodes in order.
    pub episodes: Vec<ReplayEpisode>,
}

/// A peer, and the kinds of peers that the agent distinguishes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayPeer {
    /// Its role in the game.
    pub role: String,
    /// The kinds that the agent has a belief about; empty if it has no beliefs.
    pub kinds: Vec<ReplayKind>,
    /// The index of its true kind; `None` if it is of another kind.
    pub truth: Option<usize>,
    /// Its behaviour vector, with entries from 0 to 1.
    #[serde(default)]
    pub traits: Vec<f64>,
}

/// A kind of peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayKind {
    /// The name of the kind.
    pub name: String,
    /// The kind as plain data.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// The mean behaviour vector of the peers of this kind, with entries from 0 to 1.
    #[serde(default)]
    pub traits: Vec<f64>,
}

/// One episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayEpisode {
    /// The ending.
    pub ending: EpisodeEnding,
    /// The sum of task rewards.
    pub task_return: f64,
    /// The steps: one per decision, and one for the final state.
    pub moments: Vec<ReplayStep>,
}

/// A step: a decision of the agent, or the end of the episode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayStep {
    /// The whole state, as plain data.
    #[serde(rename = "picture")]
    pub view: Value,
    /// The visible part of the state; `None` if the agent sees all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Value>,
    /// The number of entries in the agent's context.
    pub context: usize,
    /// The index of the agent's action; `None` at the end of the episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<usize>,
    /// The action probabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<f64>,
    /// The agent's value estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// For each peer, the probability of each kind; empty if the agent has no beliefs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beliefs: Vec<Vec<f64>>,
    /// The task reward of the previous step; `None` at the start of an episode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_reward: Option<f64>,
    /// The action of each peer in the previous step; `None` for a peer that did not act.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer_actions: Vec<Option<usize>>,
    /// Whether the agent visited a keypoint in the previous step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keypoint_visited: bool,
}

impl ReplayRecord {
    /// Reads a record. The version is checked first; an index out of range is an error.
    pub fn from_json(text: &str) -> Result<ReplayRecord, RecordError> {
        let record: ReplayRecord = record::read(text)?;
        record.check()?;
        Ok(record)
    }

    /// Writes the record as JSON, one line per step. An infinite number or NaN is an error, never a `null`.
    pub fn to_json(&self) -> Result<String, RecordError> {
        self.check()?;
        let plain = |value: Result<String, serde_json::Error>| value.expect("a record is plain data");
        let head = ReplayRecord { episodes: Vec::new(), ..self.clone() };
        let mut text = plain(serde_json::to_string_pretty(&head));
        let end = text.rfind("[]").expect("the episodes are the last list");
        text.truncate(end);
        text.push_str("[\n");
        for (place, episode) in self.episodes.iter().enumerate() {
            let head = ReplayEpisode { moments: Vec::new(), ..episode.clone() };
            let head = plain(serde_json::to_string(&head));
            text.push_str(head.strip_suffix("]}").expect("the moments are the last list"));
            for (place, step) in episode.moments.iter().enumerate() {
                text.push_str(if place == 0 { "\n" } else { ",\n" });
                text.push_str(&plain(serde_json::to_string(step)));
            }
            text.push_str(if place + 1 == self.episodes.len() { "\n]}\n" } else { "\n]},\n" });
        }
        text.push_str("]}\n");
        Ok(text)
    }

    /// The number of steps in all episodes, including the final states.
    pub fn n_moments(&self) -> usize {
        self.episodes.iter().map(|episode| episode.moments.len()).sum()
    }

    /// The display name of the method.
    pub(crate) fn method_name(&self) -> &str {
        self.words.method.as_deref().unwrap_or(&self.method)
    }

    /// The display name of the game.
    pub(crate) fn game_name(&self) -> &str {
        self.words.game.as_deref().unwrap_or(&self.game)
    }

    fn check(&self) -> Result<(), RecordError> {
        let bad = |field: String, reason: String| Err(RecordError::OutOfPlace { field, reason });
        for (number, peer) in self.peers.iter().enumerate() {
            if peer.truth.is_some_and(|truth| truth >= peer.kinds.len()) {
                return bad(
                    format!("peers[{number}].truth"),
                    format!("there are {} kinds", peer.kinds.len()),
                );
            }
        }
        for (episode, played) in self.episodes.iter().enumerate() {
            record::finite(&format!("episodes[{episode}].task_return"), played.task_return)?;
            for (place, step) in played.moments.iter().enumerate() {
                let field = |name: &str| format!("episodes[{episode}].moments[{place}].{name}");
                let n_actions = self.action_names.len();
                if step.action.is_some_and(|action| action >= n_actions) {
                    return bad(field("action"), format!("there are {n_actions} actions"));
                }
                if ![0, n_actions].contains(&step.probabilities.len()) {
                    return bad(field("probabilities"), format!("there are {n_actions} actions"));
                }
                let kinds = self.peers.iter().map(|peer| peer.kinds.len());
                if !step.beliefs.is_empty() && !step.beliefs.iter().map(Vec::len).eq(kinds) {
                    return bad(
                        field("beliefs"),
                        "expected a probability for each kind of each peer".to_owned(),
                    );
                }
                let numbers = step.probabilities.iter().chain(step.beliefs.iter().flatten());
                for number in numbers.copied().chain(step.value).chain(step.task_reward) {
                    record::finite(&field("numbers"), number)?;
                }
            }
        }
        Ok(())
    }
}
