//! The versioned file format of training and evaluation records.
//!
//! The format is defined here, in the crate that reads it; other crates write it. New fields may be added at any time, because
//! readers ignore unknown fields. If the meaning of a field changes, [`FORMAT_VERSION`] increases.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::stats;

/// Two records are on one scale if the scores of their reference agents differ by less than this share of the range from static to
/// oracle; sampling noise is smaller.
const SAME_SCALE: f64 = 0.05;

/// The only format version that this build writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// The result of evaluating an agent on a peer pool, with the reference agents on the same peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdaptRecord {
    /// Always [`FORMAT_VERSION`].
    pub format_version: FormatVersion,
    /// The game's id: `kuhn-poker`.
    pub game: String,
    /// The preset of the run.
    pub preset: String,
    /// The peer pool with whose scores the keys of the preset were chosen; `none` if they were not chosen by scores. `None` in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_on: Option<String>,
    /// The method's id: `pace`.
    pub method: String,
    /// The peer pool: `test`, `validation`, `train` or `uniform:N`, as in `uniform:4000`.
    pub pool: String,
    /// The score of an episode.
    pub metric: ScoreMetric,
    /// Display names of the game and its terms.
    #[serde(default)]
    pub words: DisplayNamesRecord,
    /// The number of peer tuples in the pool.
    pub n_tuples: usize,
    /// Encounters per peer tuple.
    pub passes: usize,
    /// The random seed of the encounters.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Episodes per encounter.
    pub episodes: usize,
    /// N_ctx: maximum number of episodes in the context, including the current one. `None`: no limit.
    #[serde(default)]
    pub context_episodes: Option<usize>,
    /// Softmax temperature of the policy. `None`: the `temperature` of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Game keys that differ from those of training.
    #[serde(default)]
    pub game_keys: BTreeMap<String, Value>,
    /// The mean score of an episode.
    pub mean: f64,
    /// Its standard error over encounters; `None` with one encounter.
    pub standard_error: Option<f64>,
    /// The 95 % confidence interval of the mean.
    pub confidence_95: Option<[f64; 2]>,
    /// The mean as a share of the range from static (0) to oracle (1).
    pub normalised: Option<f64>,
    /// The mean as a share of the range from static (0) to bayes (1).
    pub share_of_bayes: Option<f64>,
    /// Regret against the oracle, if the game has one.
    #[serde(default)]
    pub regret: Option<RegretRecord>,
    /// The share of episodes with a keypoint visit.
    pub keypoint_rate: Option<f64>,
    /// Scores of consecutive blocks of episodes, of equal length.
    pub blocks: Vec<BlockRecord>,
    /// Scores of single episodes.
    #[serde(default)]
    pub by_episode: Vec<BlockRecord>,
    /// Number of episodes per encounter with a keypoint visit.
    #[serde(default)]
    pub keypoint_visits: Option<VisitsRecord>,
    /// Peer identification over the decisions of an encounter.
    #[serde(default)]
    pub identification_by_decision: Vec<DecisionsRecord>,
    /// The reason why identification is undefined for these peers, as text. `None` if it is defined.
    #[serde(default)]
    pub identification_undefined: Option<String>,
    /// The replacement of the peers within each encounter, if any.
    #[serde(default)]
    pub switch: Option<SwitchRecord>,
    /// The results of the change detector, if any.
    #[serde(default)]
    pub detection: Option<DetectionRecord>,
    /// Reference agents on the same peers, by name: `oracle`, `bayes`, `static`, `nash`, `random`.
    pub references: BTreeMap<String, ReferenceRecord>,
    /// Scores per peer tuple.
    pub peers: Vec<PeerRecord>,
    /// The training run of the agent.
    pub run: RunRecord,
    /// The command that wrote this record.
    pub command: String,
}

/// The score of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScoreMetric {
    /// Sum of task rewards.
    #[serde(rename = "return")]
    Return,
    /// Expected sum of task rewards, computed in closed form.
    #[serde(rename = "expected return")]
    ExpectedReturn,
    /// 1 if the episode reached its goal, else 0.
    #[serde(rename = "success")]
    Success,
}

impl Display for ScoreMetric {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ScoreMetric::Return => "return",
            ScoreMetric::ExpectedReturn => "expected return",
            ScoreMetric::Success => "success",
        })
    }
}

impl ScoreMetric {
    /// The range of possible values, if the metric is bounded.
    pub(crate) fn limits(self) -> Option<(f64, f64)> {
        (self == ScoreMetric::Success).then_some((0.0, 1.0))
    }
}

/// The ending of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpisodeEnding {
    /// By the rules, in a game without a goal.
    Finished,
    /// With the goal reached.
    Succeeded,
    /// At the horizon, with the goal not reached.
    TimedOut,
}

/// Verdict on an alarm of a detector of changed peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmVerdict {
    /// The peers had not changed.
    FalseAlarm,
    /// The first alarm after the peers changed.
    Detection,
    /// A later alarm after the peers changed.
    Repeated,
}

/// Regret: the oracle's score minus the agent's, in the same encounters with the same random events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegretRecord {
    /// The mean over episodes.
    pub mean: f64,
    /// Its standard error over encounters.
    pub standard_error: Option<f64>,
    /// The 95 % confidence interval of the mean.
    pub confidence_95: Option<[f64; 2]>,
    /// The sum over an encounter.
    pub per_encounter: f64,
    /// The mean for each episode of the encounter.
    pub by_episode: Vec<f64>,
}

/// Consecutive episodes of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// The first episode, counted from 1.
    pub first: usize,
    /// The last episode, inclusive.
    pub last: usize,
    /// The mean score.
    pub mean: f64,
    /// Its standard error over encounters.
    pub standard_error: Option<f64>,
    /// The share of episodes with a keypoint visit.
    #[serde(default)]
    pub keypoint_rate: Option<f64>,
    /// Peer identification at the first decision of the episodes; `None` if it is undefined.
    #[serde(default)]
    pub identification: Option<IdentificationRecord>,
    /// The mean number of ego decisions per episode.
    #[serde(default)]
    pub steps: Option<f64>,
}

/// Quality of an agent's peer identification.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentificationRecord {
    /// The share in which the most likely class is correct.
    pub accuracy: f64,
    /// The mean probability of the true class.
    pub posterior: f64,
}

/// Consecutive decisions of an encounter, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionsRecord {
    /// The first decision, counted from 1.
    pub first: usize,
    /// The last decision, inclusive.
    pub last: usize,
    /// The number of encounters with that many decisions.
    pub n_encounters: usize,
    /// The share in which the most likely class is correct.
    pub accuracy: f64,
    /// The standard error of the accuracy over encounters.
    pub accuracy_error: Option<f64>,
    /// The mean probability of the true class.
    pub posterior: f64,
}

/// Number of episodes per encounter with an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisitsRecord {
    /// The mean over encounters.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: Option<f64>,
    /// The number of encounters with 0, 1, 2, … such episodes.
    pub encounters: Vec<usize>,
}

/// Replacement of the peers by the next tuple of the pool; the last tuple is followed by the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchRecord {
    /// The number of episodes before the replacement.
    pub after_episode: usize,
    /// The score before it.
    pub before: PartRecord,
    /// The score after it.
    pub after: PartRecord,
}

/// The score in one part of an encounter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartRecord {
    /// The mean score of an episode.
    pub mean: f64,
    /// Its standard error over encounters.
    pub standard_error: Option<f64>,
}

/// Results of a change detector.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetectionRecord {
    /// The detector: `drop:0.8`.
    pub detector: String,
    /// The part of the context kept when it is cleared: `last` (the finished episode) or `nothing`.
    pub clear_keeps: String,
    /// The share of encounters with an alarm after the switch; `None` without a switch.
    pub hit_rate: Option<f64>,
    /// The mean number of episodes from the switch to the first alarm, over the encounters with one; 0 for the detector `known`.
    pub mean_delay_episodes: Option<f64>,
    /// Alarms before the switch.
    pub false_alarms_per_encounter: f64,
    /// Alarms after the first one that follows the switch.
    pub repeated_alarms_per_encounter: f64,
    /// The alarms after each episode, over all encounters; only episodes with alarms are listed. Older records list the alarms of
    /// every encounter instead, in a field that is not read.
    #[serde(default)]
    pub by_episode: Vec<EpisodeAlarmsRecord>,
}

/// The number of alarms after one episode, over all encounters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeAlarmsRecord {
    /// The episode, counted from 1.
    pub after_episode: usize,
    /// Alarms before the switch.
    pub n_false: usize,
    /// First alarms after the switch, at most one per encounter.
    pub n_right: usize,
    /// Later alarms.
    pub n_repeated: usize,
}

/// The score of a reference agent on the same peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRecord {
    /// The mean score of an episode.
    pub mean: f64,
    /// Its standard error; `None` if the value is exact.
    pub standard_error: Option<f64>,
    /// Scores of the agent's blocks; empty if the reference agent's score is constant.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
}

/// The scores with one peer tuple.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// Its index in the pool.
    pub index: usize,
    /// The behaviour of its peers, as text.
    pub description: String,
    /// The index of the tuple that replaces it within the encounter, if peers are replaced.
    #[serde(default)]
    pub successor: Option<usize>,
    /// The agent's mean score.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: Option<f64>,
    /// The oracle's mean score.
    pub oracle: Option<f64>,
    /// Regret: oracle − mean.
    pub regret: Option<f64>,
    /// Scores of the blocks of the encounter.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
    /// The mean score of each episode of the encounter.
    #[serde(default)]
    pub by_episode: Vec<f64>,
}

/// The training run of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's folder.
    pub folder: String,
    /// The random seed of training.
    pub seed: u64,
    /// The commit of the program that trained it.
    pub commit: Option<String>,
    /// The hash of the resolved configuration.
    pub config_hash: Option<String>,
    /// Training steps (ego decisions).
    pub steps: u64,
    /// Training time in seconds.
    pub wall_clock_secs: Option<f64>,
}

/// Display names of a game, its method and its terms. They are in the record, because this crate does not depend on games.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisplayNamesRecord {
    /// The game: `Kuhn Poker`. Default: its id.
    pub game: Option<String>,
    /// The method: `PACE`. Default: its id.
    pub method: Option<String>,
    /// One episode: `hand`.
    pub episode: String,
    /// Several episodes: `hands`.
    pub episodes: String,
    /// The score of an episode: `reward per hand`.
    pub score: String,
    /// The keypoint: `showdown`.
    pub keypoint: String,
}

impl Default for DisplayNamesRecord {
    fn default() -> DisplayNamesRecord {
        DisplayNamesRecord {
            game: None,
            method: None,
            episode: "episode".to_owned(),
            episodes: "episodes".to_owned(),
            score: "score per episode".to_owned(),
            keypoint: "keypoint".to_owned(),
        }
    }
}

/// The configuration and learning curves of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainRecord {
    /// Always [`FORMAT_VERSION`].
    pub format_version: FormatVersion,
    /// The game's id.
    pub game: String,
    /// The method's id.
    pub method: String,
    /// The preset.
    pub preset: String,
    /// The random seed.
    pub seed: u64,
    /// The commit of the program.
    pub commit: Option<String>,
    /// The resolved configuration, every key with its value.
    pub config: Value,
    /// Every metric over training steps, by name: `charts/episodic_return`.
    pub curves: BTreeMap<String, Vec<(u64, f64)>>,
    /// Training time in seconds.
    pub wall_clock_secs: f64,
}

impl AdaptRecord {
    /// Reads a record. The version is checked first.
    pub fn from_json(text: &str) -> Result<AdaptRecord, RecordError> {
        let record: AdaptRecord = read(text)?;
        record.check()?;
        Ok(record)
    }

    /// Writes the record as indented JSON with a line end. An infinite number or NaN is an error, never a `null`.
    pub fn to_json(&self) -> Result<String, RecordError> {
        self.check()?;
        Ok(write(self))
    }

    /// Computes the fields that depend on reference agents: the normalised score, the share of bayes, and the regret with each peer.
    /// A field without its reference agent is `None`.
    pub fn compare_with_references(&mut self) {
        let reference = |name: &str| self.references.get(name).map(|reference| reference.mean);
        let (floor, oracle, bayes) = (reference("static"), reference("oracle"), reference("bayes"));
        self.normalised = floor.zip(oracle).and_then(|(low, high)| stats::normalised(self.mean, low, high));
        self.share_of_bayes =
            floor.zip(bayes).and_then(|(low, high)| stats::share_of_bayes(self.mean, low, high));
        for peer in &mut self.peers {
            peer.regret = peer.oracle.map(|oracle| oracle - peer.mean);
        }
    }

    /// A score as a share of the range from random (0) to oracle (1); `None` without these reference agents.
    pub(crate) fn share(&self, score: f64) -> Option<f64> {
        let mean = |name: &str| Some(self.references.get(name)?.mean);
        stats::normalised(score, mean("random")?, mean("oracle")?)
    }

    /// The scores of oracle and static, if they differ from those of `other`: the scores of the two records are on different scales,
    /// because the game has other rules or other peers.
    pub(crate) fn other_scale_than(&self, other: &AdaptRecord) -> Option<(f64, f64)> {
        let ends = |record: &AdaptRecord| {
            let of = |name: &str| Some(record.references.get(name)?.mean);
            Some((of("oracle")?, of("static")?))
        };
        let ((oracle, fixed), (high, low)) = (ends(self)?, ends(other)?);
        let near = SAME_SCALE * (high - low).abs();
        ((oracle - high).abs() > near || (fixed - low).abs() > near).then_some((oracle, fixed))
    }

    /// The pool on which its settings were chosen. In older records those of the preset `best` were chosen with test scores in sight.
    pub(crate) fn chosen_on(&self) -> &str {
        let of_preset = if self.preset == "best" { "test" } else { "none" };
        self.chosen_on.as_deref().unwrap_or(of_preset)
    }

    /// The display name of the method.
    pub(crate) fn method_name(&self) -> &str {
        self.words.method.as_deref().unwrap_or(&self.method)
    }

    /// The display name of the game.
    pub(crate) fn game_name(&self) -> &str {
        self.words.game.as_deref().unwrap_or(&self.game)
    }

    /// The names of the reference agents, in the order of [`AdaptRecord::references_in_order`].
    pub(crate) fn reference_names(&self) -> Vec<&str> {
        self.references_in_order().into_iter().map(|(name, _)| name).collect()
    }

    /// The reference agents in the order of every table and figure: oracle, bayes, static, nash, random, then the others by name.
    pub(crate) fn references_in_order(&self) -> Vec<(&str, &ReferenceRecord)> {
        const ORDER: [&str; 5] = ["oracle", "bayes", "static", "nash", "random"];
        let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
        let mut references: Vec<_> =
            self.references.iter().map(|(name, reference)| (name.as_str(), reference)).collect();
        references.sort_by_key(|(name, _)| place(name));
        references
    }

    /// The name of a block in the terms of the game: `hands 11–20`, `episode 3`.
    pub(crate) fn block_name(&self, block: &BlockRecord) -> String {
        let is_one = block.first == block.last;
        let word = if is_one { &self.words.episode } else { &self.words.episodes };
        format!("{word} {}", block.range("\u{2013}"))
    }

    fn check(&self) -> Result<(), RecordError> {
        finite("mean", self.mean)?;
        finite_if_some("standard_error", self.standard_error)?;
        for bound in self.confidence_95.iter().flatten() {
            finite("confidence_95", *bound)?;
        }
        finite_if_some("normalised", self.normalised)?;
        finite_if_some("share_of_bayes", self.share_of_bayes)?;
        if let Some(regret) = &self.regret {
            finite("regret.mean", regret.mean)?;
            finite_if_some("regret.standard_error", regret.standard_error)?;
            let bounds = regret.confidence_95.iter().flatten();
            for value in bounds.chain(&regret.by_episode).chain([&regret.per_encounter]) {
                finite("regret", *value)?;
            }
        }
        finite_if_some("keypoint_rate", self.keypoint_rate)?;
        finite_if_some("run.wall_clock_secs", self.run.wall_clock_secs)?;
        check_blocks("blocks", &self.blocks)?;
        check_blocks("by_episode", &self.by_episode)?;
        if let Some(visits) = &self.keypoint_visits {
            finite("keypoint_visits.mean", visits.mean)?;
            finite_if_some("keypoint_visits.standard_error", visits.standard_error)?;
        }
        check_decisions("identification_by_decision", &self.identification_by_decision)?;
        for (name, part) in
            self.switch.iter().flat_map(|switch| [("before", switch.before), ("after", switch.after)])
        {
            finite(&format!("switch.{name}.mean"), part.mean)?;
            finite_if_some(&format!("switch.{name}.standard_error"), part.standard_error)?;
        }
        if let Some(detection) = &self.detection {
            finite_if_some("detection.hit_rate", detection.hit_rate)?;
            finite_if_some("detection.mean_delay_episodes", detection.mean_delay_episodes)?;
            finite("detection.false_alarms_per_encounter", detection.false_alarms_per_encounter)?;
            finite("detection.repeated_alarms_per_encounter", detection.repeated_alarms_per_encounter)?;
        }
        for (name, reference) in &self.references {
            finite(&format!("references.{name}.mean"), reference.mean)?;
            finite_if_some(&format!("references.{name}.standard_error"), reference.standard_error)?;
            check_blocks(&format!("references.{name}.blocks"), &reference.blocks)?;
        }
        for (place, peer) in self.peers.iter().enumerate() {
            finite(&format!("peers[{place}].mean"), peer.mean)?;
            finite_if_some(&format!("peers[{place}].standard_error"), peer.standard_error)?;
            finite_if_some(&format!("peers[{place}].oracle"), peer.oracle)?;
            finite_if_some(&format!("peers[{place}].regret"), peer.regret)?;
            check_blocks(&format!("peers[{place}].blocks"), &peer.blocks)?;
            for value in &peer.by_episode {
                finite(&format!("peers[{place}].by_episode"), *value)?;
            }
        }
        Ok(())
    }
}

impl BlockRecord {
    /// The middle of the block on an axis of episodes.
    pub(crate) fn middle(&self) -> f64 {
        (self.first + self.last) as f64 / 2.0
    }

    /// The block's episodes, with `dash` between the first and the last: `11–20`.
    pub fn range(&self, dash: &str) -> String {
        range(self.first, self.last, dash)
    }
}

impl DecisionsRecord {
    /// The middle of the bin on an axis of decisions.
    pub(crate) fn middle(&self) -> f64 {
        (self.first + self.last) as f64 / 2.0
    }

    /// The decisions, with `dash` between the first and the last: `11–20`.
    pub(crate) fn range(&self, dash: &str) -> String {
        range(self.first, self.last, dash)
    }
}

fn range(first: usize, last: usize, dash: &str) -> String {
    if first == last { first.to_string() } else { format!("{first}{dash}{last}") }
}

impl TrainRecord {
    /// Reads a record. The version is checked first.
    pub fn from_json(text: &str) -> Result<TrainRecord, RecordError> {
        let record: TrainRecord = read(text)?;
        record.check()?;
        Ok(record)
    }

    /// Writes the record as indented JSON with a line end. An infinite number or NaN is an error, never a `null`.
    pub fn to_json(&self) -> Result<String, RecordError> {
        self.check()?;
        Ok(write(self))
    }

    fn check(&self) -> Result<(), RecordError> {
        finite("wall_clock_secs", self.wall_clock_secs)?;
        for (name, points) in &self.curves {
            for (step, value) in points {
                finite(&format!("curves.{name} at step {step}"), *value)?;
            }
        }
        Ok(())
    }
}

/// An error in a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or not with the fields of a record.
    #[error("not a record of format {FORMAT_VERSION}: {0}")]
    NotARecord(#[source] serde_json::Error),
    /// JSON without a version.
    #[error("no `format_version` found, expected {FORMAT_VERSION}; is this file a record of pace?")]
    NoVersion,
    /// A record in another format version.
    #[error("format_version {found} found, this build reads {FORMAT_VERSION}; {}", advice(*found))]
    OtherVersion {
        /// The version in the file.
        found: u64,
    },
    /// An infinite number or NaN, which JSON cannot represent.
    #[error("`{field}` is {found}, expected a finite number")]
    NotFinite {
        /// The field.
        field: String,
        /// The number.
        found: f64,
    },
    /// Blocks that are empty, overlap or run backwards.
    #[error(
        "`{field}` has {what}s {first} to {last} after {what} {before}; blocks must follow each other from 1"
    )]
    BadBlock {
        /// The field.
        field: String,
        /// The unit of the block: `episode` or `decision`.
        what: &'static str,
        /// The first one of the block.
        first: usize,
        /// The last one of the block.
        last: usize,
        /// The last one of the block before it.
        before: usize,
    },
    /// An index without an element, or a list of the wrong length.
    #[error("`{field}` does not fit the rest of the record: {reason}; make the record again")]
    OutOfPlace {
        /// The field.
        field: String,
        /// The reason.
        reason: String,
    },
}

fn advice(found: u64) -> &'static str {
    if found > u64::from(FORMAT_VERSION) { "update pace to read it" } else { "make the record again" }
}

/// The format version. The type has one value, so that a record of another version cannot be created or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatVersion;

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(FORMAT_VERSION)
    }
}

impl<'de> Deserialize<'de> for FormatVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FormatVersion, D::Error> {
        match u64::deserialize(deserializer)? {
            found if found == u64::from(FORMAT_VERSION) => Ok(FormatVersion),
            found => Err(D::Error::custom(RecordError::OtherVersion { found })),
        }
    }
}

pub(crate) fn read<R: DeserializeOwned>(text: &str) -> Result<R, RecordError> {
    // The version is read first: in a file of another version any field may differ, and an error about such a field would be
    // misleading.
    #[derive(Deserialize)]
    struct Versioned {
        format_version: Option<u64>,
    }
    let versioned: Versioned = serde_json::from_str(text).map_err(RecordError::NotARecord)?;
    match versioned.format_version {
        None => Err(RecordError::NoVersion),
        Some(found) if found != u64::from(FORMAT_VERSION) => Err(RecordError::OtherVersion { found }),
        Some(_) => serde_json::from_str(text).map_err(RecordError::NotARecord),
    }
}

fn write(record: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(record).expect("a record is plain data");
    text.push('\n');
    text
}

pub(crate) fn finite(field: &str, value: f64) -> Result<(), RecordError> {
    if value.is_finite() {
        return Ok(());
    }
    Err(RecordError::NotFinite { field: field.to_owned(), found: value })
}

fn finite_if_some(field: &str, value: Option<f64>) -> Result<(), RecordError> {
    value.map_or(Ok(()), |value| finite(field, value))
}

/// Rejects a block that is empty or does not start after the block before it. Returns its last element.
fn check_order(
    field: &str,
    what: &'static str,
    (first, last): (usize, usize),
    before: usize,
) -> Result<usize, RecordError> {
    if first <= before || last < first {
        return Err(RecordError::BadBlock { field: field.to_owned(), what, first, last, before });
    }
    Ok(last)
}

fn check_decisions(field: &str, bins: &[DecisionsRecord]) -> Result<(), RecordError> {
    let mut before = 0;
    for bin in bins {
        before = check_order(field, "decision", (bin.first, bin.last), before)?;
        let place = format!("{field}[{}]", bin.range("-"));
        finite(&format!("{place}.accuracy"), bin.accuracy)?;
        finite_if_some(&format!("{place}.accuracy_error"), bin.accuracy_error)?;
        finite(&format!("{place}.posterior"), bin.posterior)?;
    }
    Ok(())
}

fn check_blocks(field: &str, blocks: &[BlockRecord]) -> Result<(), RecordError> {
    let mut before = 0;
    for block in blocks {
        before = check_order(field, "episode", (block.first, block.last), before)?;
        let place = format!("{field}[{}]", block.range("-"));
        finite(&format!("{place}.mean"), block.mean)?;
        finite_if_some(&format!("{place}.standard_error"), block.standard_error)?;
        finite_if_some(&format!("{place}.keypoint_rate"), block.keypoint_rate)?;
        finite_if_some(&format!("{place}.steps"), block.steps)?;
        if let Some(identification) = block.identification {
            finite(&format!("{place}.identification.accuracy"), identification.accuracy)?;
            finite(&format!("{place}.identification.posterior"), identification.posterior)?;
        }
    }
    Ok(())
}
