//! One encounter, moment by moment: what there was to see, what the agent took its peers for, what it was about to do.
//!
//! The file has a line per moment, so that it stays small and two of them can be compared. How a page shows it is in
//! `page::replay`; how a game is drawn is the game's own affair, so a view is passed on as it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{
    self, DisplayNamesRecord, EpisodeEnding, FormatVersion, RecordError, RunRecord, ScoreMetric,
};

/// An encounter of a trained agent.
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
    /// The part of the pool that the peers are from.
    pub pool: String,
    /// Their place in it, from 0.
    pub index: usize,
    /// Who they really are, in words.
    pub description: String,
    /// What an episode is judged by.
    pub metric: ScoreMetric,
    /// The words a person would use for the things of this game.
    #[serde(default)]
    pub words: DisplayNamesRecord,
    /// What the agent can do, by number.
    pub action_names: Vec<String>,
    /// What of the game stays as it is, for its drawing. Absent in records whose pictures were drawn for the agent's eyes: there
    /// [`ReplayStep::view`] is a `picture` with marks of what the agent sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constants: Option<Value>,
    /// The peers by slot, with what the agent may take each for.
    pub peers: Vec<ReplayPeer>,
    /// The seed of all chance of the encounter.
    pub seed: u64,
    /// Where the agent came from.
    pub run: RunRecord,
    /// What was typed to make this record.
    pub command: String,
    /// The episodes in order.
    pub episodes: Vec<ReplayEpisode>,
}

/// One peer, and the kinds of peers that the agent knows from training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayPeer {
    /// What it does for a living.
    pub role: String,
    /// The kinds that the agent can take it for; none if it has no opinion.
    pub kinds: Vec<ReplayKind>,
    /// Which of them it is of; nothing if it is of none.
    pub truth: Option<usize>,
    /// How it behaves, in numbers from 0 to 1.
    #[serde(default)]
    pub traits: Vec<f64>,
}

/// A kind of peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayKind {
    /// In words.
    pub name: String,
    /// The kind as plain data.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// How peers of this kind behave on average, in numbers from 0 to 1.
    #[serde(default)]
    pub traits: Vec<f64>,
}

/// One play of the game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayEpisode {
    /// How it ended.
    pub ending: EpisodeEnding,
    /// The sum of task rewards.
    pub task_return: f64,
    /// Every decision, and the end.
    pub moments: Vec<ReplayStep>,
}

/// A moment: the agent is about to act, or the episode is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayStep {
    /// The whole state, as plain data.
    #[serde(rename = "picture")]
    pub view: Value,
    /// What the agent sees of it; absent where it sees everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Value>,
    /// Entries in the agent's context.
    pub context: usize,
    /// What it is about to do; nothing when the episode is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<usize>,
    /// How likely it is to take each action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<f64>,
    /// The discounted reward it expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// By peer, the probability of each kind; empty without an opinion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beliefs: Vec<Vec<f64>>,
    /// The task reward of the step that led here; nothing where an episode begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_reward: Option<f64>,
    /// What each peer did in that step; nothing for one that was not asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peer_actions: Vec<Option<usize>>,
    /// Whether that step took the agent to an informative place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keypoint_visited: bool,
}

impl ReplayRecord {
    /// Reads a record. Another version is refused before anything else is looked at, and so are numbers that point at nothing.
    pub fn from_json(text: &str) -> Result<ReplayRecord, RecordError> {
        let record: ReplayRecord = record::read(text)?;
        record.check()?;
        Ok(record)
    }

    /// Writes the record with a line per moment. A number that JSON cannot hold is an error, not a silent null.
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
            for (place, moment) in episode.moments.iter().enumerate() {
                text.push_str(if place == 0 { "\n" } else { ",\n" });
                text.push_str(&plain(serde_json::to_string(moment)));
            }
            text.push_str(if place + 1 == self.episodes.len() { "\n]}\n" } else { "\n]},\n" });
        }
        text.push_str("]}\n");
        Ok(text)
    }

    /// Moments of all episodes.
    pub fn n_moments(&self) -> usize {
        self.episodes.iter().map(|episode| episode.moments.len()).sum()
    }

    /// The method as a person writes it.
    pub fn method_name(&self) -> &str {
        self.words.method.as_deref().unwrap_or(&self.method)
    }

    /// The game as a person writes it.
    pub fn game_name(&self) -> &str {
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
            for (moment, found) in played.moments.iter().enumerate() {
                let field = |name: &str| format!("episodes[{episode}].moments[{moment}].{name}");
                let n_actions = self.action_names.len();
                if found.action.is_some_and(|action| action >= n_actions) {
                    return bad(field("action"), format!("there are {n_actions} actions"));
                }
                if ![0, n_actions].contains(&found.probabilities.len()) {
                    return bad(field("probabilities"), format!("there are {n_actions} actions"));
                }
                let kinds = self.peers.iter().map(|peer| peer.kinds.len());
                if !found.beliefs.is_empty() && !found.beliefs.iter().map(Vec::len).eq(kinds) {
                    return bad(
                        field("beliefs"),
                        "expected a probability for each kind of each peer".to_owned(),
                    );
                }
                let numbers = found.probabilities.iter().chain(found.beliefs.iter().flatten());
                for number in numbers.copied().chain(found.value).chain(found.task_reward) {
                    record::finite(&field("numbers"), number)?;
                }
            }
        }
        Ok(())
    }
}
