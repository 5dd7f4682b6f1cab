//! The file format: what a run and an adaptation leave behind, versioned.
//!
//! A file format belongs to its reader, so it is here and not with the programs that write it. Fields may be added at
//! any time and old readers pass over them; a field that changes its meaning raises [`FORMAT_VERSION`].

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::stats;

/// The only version this build writes and reads.
pub const FORMAT_VERSION: u32 = 1;

/// How an agent fared against a pool of peers, with the reference agents on the same peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdaptRecord {
    /// Always [`FORMAT_VERSION`].
    pub format_version: FormatVersion,
    /// The game's id: `kuhn-poker`.
    pub game: String,
    /// The preset the game was opened with.
    pub preset: String,
    /// The method's id: `pace`.
    pub method: String,
    /// Whom the agent met: `test`, `train`, `uniform:4000`.
    pub pool: String,
    /// The number that an episode is judged by.
    pub metric: ScoreMetric,
    /// The words a person would use for the things of this game.
    #[serde(default)]
    pub words: DisplayNamesRecord,
    /// Tuples of peers in the pool.
    pub n_tuples: usize,
    /// Encounters with each tuple.
    pub passes: usize,
    /// The seed of all chance of the encounters.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Episodes in an encounter.
    pub episodes: usize,
    /// The most episodes the context kept, the current one included; all if nothing.
    #[serde(default)]
    pub context_episodes: Option<usize>,
    /// What the logits of the actions were divided by; nothing where that was left to the run's keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The keys of the game that were set otherwise than in training.
    #[serde(default)]
    pub game_keys: BTreeMap<String, Value>,
    /// The mean score of an episode.
    pub mean: f64,
    /// Its standard error over encounters; nothing if there was one alone.
    pub standard_error: Option<f64>,
    /// The 95 % confidence interval of the mean.
    pub confidence_95: Option<[f64; 2]>,
    /// Where the mean lies between static (0) and oracle (1).
    pub normalised: Option<f64>,
    /// Where the mean lies between static (0) and bayes (1).
    pub share_of_bayes: Option<f64>,
    /// What not knowing the peers cost, where the game has an oracle.
    #[serde(default)]
    pub regret: Option<RegretRecord>,
    /// The share of episodes in which the agent came to the game's informative place.
    pub keypoint_rate: Option<f64>,
    /// The encounter in equal parts, in order.
    pub blocks: Vec<BlockRecord>,
    /// Every episode of the encounter by itself.
    #[serde(default)]
    pub by_episode: Vec<BlockRecord>,
    /// In how many episodes of an encounter the agent came to the informative place.
    #[serde(default)]
    pub keypoint_visits: Option<VisitsRecord>,
    /// How well the agent knew its peers as its decisions went by.
    #[serde(default)]
    pub identification_by_decision: Vec<DecisionsRecord>,
    /// Why no guess about these peers can be right or wrong, where that is so.
    #[serde(default)]
    pub identification_undefined: Option<String>,
    /// The change of peers within each encounter, where there was one.
    #[serde(default)]
    pub switch: Option<SwitchRecord>,
    /// What watched for a change of peers, where something did.
    #[serde(default)]
    pub detection: Option<DetectionRecord>,
    /// Scripted agents on the same peers, by name: `oracle`, `bayes`, `static`, `nash`, `random`.
    pub references: BTreeMap<String, ReferenceRecord>,
    /// Every tuple of the pool by itself.
    pub peers: Vec<PeerRecord>,
    /// Where the agent came from.
    pub run: RunRecord,
    /// What was typed to make this record.
    pub command: String,
}

/// The number that an episode is judged by.
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

impl ScoreMetric {
    /// Name in records and on pages.
    pub fn name(self) -> &'static str {
        match self {
            ScoreMetric::Return => "return",
            ScoreMetric::ExpectedReturn => "expected return",
            ScoreMetric::Success => "success",
        }
    }

    /// The range of possible values, where the metric has one.
    pub(crate) fn limits(self) -> Option<(f64, f64)> {
        (self == ScoreMetric::Success).then_some((0.0, 1.0))
    }
}

/// How an episode ended.
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

/// What an agent that knows its peers earns more, in the same encounters with the same luck.
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
    /// The mean in every episode of the encounter.
    pub by_episode: Vec<f64>,
}

/// Some consecutive episodes of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// The first episode, counted from 1.
    pub first: usize,
    /// The last episode, which belongs to the block.
    pub last: usize,
    /// The mean score.
    pub mean: f64,
    /// Its standard error over encounters.
    pub standard_error: Option<f64>,
    /// The share of episodes with a visit to the informative place.
    #[serde(default)]
    pub keypoint_rate: Option<f64>,
    /// How well the agent knew its peers by then, if it has an opinion at all.
    #[serde(default)]
    pub identification: Option<IdentificationRecord>,
    /// The mean number of the agent's decisions in an episode.
    #[serde(default)]
    pub steps: Option<f64>,
}

/// How well an agent knows whom it plays with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdentificationRecord {
    /// How often its best guess is right.
    pub accuracy: f64,
    /// The probability it gives to the truth.
    pub posterior: f64,
}

/// Some consecutive decisions of an encounter, counted from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionsRecord {
    /// The first decision, counted from 1.
    pub first: usize,
    /// The last decision, which belongs to them.
    pub last: usize,
    /// Encounters that went on so long.
    pub n_encounters: usize,
    /// How often the best guess is right.
    pub accuracy: f64,
    /// The standard error of that over encounters.
    pub accuracy_error: Option<f64>,
    /// The probability given to the truth.
    pub posterior: f64,
}

/// In how many episodes of an encounter something happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VisitsRecord {
    /// The mean over encounters.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: Option<f64>,
    /// How many encounters had none, one, two, … such episodes.
    pub encounters: Vec<usize>,
}

/// Other peers took the first ones' places: the next tuple of the pool, and after the last the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchRecord {
    /// Episodes with the first peers.
    pub after_episode: usize,
    /// The score until then.
    pub before: PartRecord,
    /// The score from then on.
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

/// What a detector of changed peers found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetectionRecord {
    /// The detector as it was asked for: `drop:0.8`.
    pub detector: String,
    /// What clearing the context left in it: `last` (the episode just finished) or `nothing`.
    pub clear_keeps: String,
    /// The share of encounters with an alarm after the switch; nothing if there was no switch.
    pub hit_rate: Option<f64>,
    /// Episodes with the new peers until the first alarm, over the encounters that had one; 0 for who was told.
    pub mean_delay_episodes: Option<f64>,
    /// Alarms before the peers changed.
    pub false_alarms_per_encounter: f64,
    /// Alarms after the change was found.
    pub repeated_alarms_per_encounter: f64,
    /// The alarms after each episode, over all encounters; episodes without alarms are left out. Older records list the
    /// alarms of every encounter instead, under another name, which is not read.
    #[serde(default)]
    pub by_episode: Vec<EpisodeAlarmsRecord>,
}

/// The number of alarms after one episode, over all encounters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpisodeAlarmsRecord {
    /// After which episode, counted from 1.
    pub after_episode: usize,
    /// Alarms before the switch.
    pub n_false: usize,
    /// First alarms after the switch, at most one in an encounter.
    pub n_right: usize,
    /// Later alarms.
    pub n_repeated: usize,
}

/// A scripted agent on the same peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceRecord {
    /// The mean score of an episode.
    pub mean: f64,
    /// Its standard error; nothing if the value is exact.
    pub standard_error: Option<f64>,
    /// The same blocks as the agent's; empty if the reference never changes.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
}

/// One tuple of peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// Its place in the pool, from 0.
    pub index: usize,
    /// Its behaviour in words.
    pub description: String,
    /// The tuple that takes its place within the encounter, where peers change.
    #[serde(default)]
    pub successor: Option<usize>,
    /// The agent's mean score with it.
    pub mean: f64,
    /// The standard error of that.
    pub standard_error: Option<f64>,
    /// What an agent that knows it reaches.
    pub oracle: Option<f64>,
    /// What not knowing it cost: oracle − mean.
    pub regret: Option<f64>,
    /// The encounter in equal parts.
    #[serde(default)]
    pub blocks: Vec<BlockRecord>,
    /// The mean score in every episode of the encounter.
    #[serde(default)]
    pub by_episode: Vec<f64>,
}

/// The run an agent came from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's folder as it was given.
    pub folder: String,
    /// The seed of all chance in training.
    pub seed: u64,
    /// The commit of the program that trained it.
    pub commit: Option<String>,
    /// The hash of the resolved configuration.
    pub config_hash: Option<String>,
    /// Steps of the game in training.
    pub steps: u64,
    /// How long training took.
    pub wall_clock_secs: Option<f64>,
}

/// What a person calls the things of a game. A report knows no games, so the record says: a hand, a showdown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisplayNamesRecord {
    /// The game: `Kuhn Poker`; its id if nothing.
    pub game: Option<String>,
    /// The method: `PACE`; its id if nothing.
    pub method: Option<String>,
    /// One episode: `hand`.
    pub episode: String,
    /// Several: `hands`.
    pub episodes: String,
    /// The score of an episode: `reward per hand`.
    pub score: String,
    /// The informative place: `showdown`.
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

/// How training went.
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
    /// The seed of all chance.
    pub seed: u64,
    /// The commit of the program.
    pub commit: Option<String>,
    /// The resolved configuration, every key with its value.
    pub config: Value,
    /// Every metric over the steps of the game, by name: `charts/episodic_return`.
    pub curves: BTreeMap<String, Vec<(u64, f64)>>,
    /// How long it took.
    pub wall_clock_secs: f64,
}

impl AdaptRecord {
    /// Reads a record. Another version is refused before anything else is looked at.
    pub fn from_json(text: &str) -> Result<AdaptRecord, RecordError> {
        let record: AdaptRecord = read(text)?;
        record.check()?;
        Ok(record)
    }

    /// Writes the record, indented, with a line end. A number that JSON cannot hold is an error, not a silent null.
    pub fn to_json(&self) -> Result<String, RecordError> {
        self.check()?;
        Ok(write(self))
    }

    /// Fills in what follows from the rest: the normalised score, the share of bayes, and the regret with each peer.
    /// What lacks its reference stays empty.
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

    /// The method as a person writes it.
    pub fn method_name(&self) -> &str {
        self.words.method.as_deref().unwrap_or(&self.method)
    }

    /// The game as a person writes it.
    pub fn game_name(&self) -> &str {
        self.words.game.as_deref().unwrap_or(&self.game)
    }

    /// The names of the references, in the order of [`AdaptRecord::references_in_order`].
    pub fn reference_names(&self) -> Vec<&str> {
        self.references_in_order().into_iter().map(|(name, _)| name).collect()
    }

    /// The references in the order of every table and figure: oracle, bayes, static, nash, random, then the others by name.
    pub fn references_in_order(&self) -> Vec<(&str, &ReferenceRecord)> {
        const ORDER: [&str; 5] = ["oracle", "bayes", "static", "nash", "random"];
        let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
        let mut references: Vec<_> =
            self.references.iter().map(|(name, reference)| (name.as_str(), reference)).collect();
        references.sort_by_key(|(name, _)| place(name));
        references
    }

    /// A block in the game's own words: `hands 11–20`, `episode 3`.
    pub fn block_name(&self, block: &BlockRecord) -> String {
        let is_one = block.first == block.last;
        let word = if is_one { &self.words.episode } else { &self.words.episodes };
        format!("{word} {}", block.range("\u{2013}"))
    }

    fn check(&self) -> Result<(), RecordError> {
        finite("mean", self.mean)?;
        optional("standard_error", self.standard_error)?;
        for bound in self.confidence_95.iter().flatten() {
            finite("confidence_95", *bound)?;
        }
        optional("normalised", self.normalised)?;
        optional("share_of_bayes", self.share_of_bayes)?;
        if let Some(regret) = &self.regret {
            finite("regret.mean", regret.mean)?;
            optional("regret.standard_error", regret.standard_error)?;
            let bounds = regret.confidence_95.iter().flatten();
            for value in bounds.chain(&regret.by_episode).chain([&regret.per_encounter]) {
                finite("regret", *value)?;
            }
        }
        optional("keypoint_rate", self.keypoint_rate)?;
        optional("run.wall_clock_secs", self.run.wall_clock_secs)?;
        check_blocks("blocks", &self.blocks)?;
        check_blocks("by_episode", &self.by_episode)?;
        if let Some(visits) = &self.keypoint_visits {
            finite("keypoint_visits.mean", visits.mean)?;
            optional("keypoint_visits.standard_error", visits.standard_error)?;
        }
        check_decisions("identification_by_decision", &self.identification_by_decision)?;
        for (name, part) in
            self.switch.iter().flat_map(|switch| [("before", switch.before), ("after", switch.after)])
        {
            finite(&format!("switch.{name}.mean"), part.mean)?;
            optional(&format!("switch.{name}.standard_error"), part.standard_error)?;
        }
        if let Some(detection) = &self.detection {
            optional("detection.hit_rate", detection.hit_rate)?;
            optional("detection.mean_delay_episodes", detection.mean_delay_episodes)?;
            finite("detection.false_alarms_per_encounter", detection.false_alarms_per_encounter)?;
            finite("detection.repeated_alarms_per_encounter", detection.repeated_alarms_per_encounter)?;
        }
        for (name, reference) in &self.references {
            finite(&format!("references.{name}.mean"), reference.mean)?;
            optional(&format!("references.{name}.standard_error"), reference.standard_error)?;
            check_blocks(&format!("references.{name}.blocks"), &reference.blocks)?;
        }
        for (place, peer) in self.peers.iter().enumerate() {
            finite(&format!("peers[{place}].mean"), peer.mean)?;
            optional(&format!("peers[{place}].standard_error"), peer.standard_error)?;
            optional(&format!("peers[{place}].oracle"), peer.oracle)?;
            optional(&format!("peers[{place}].regret"), peer.regret)?;
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
    pub fn middle(&self) -> f64 {
        (self.first + self.last) as f64 / 2.0
    }

    /// The block's episodes, with `dash` between the first and the last: `11–20`.
    pub fn range(&self, dash: &str) -> String {
        range(self.first, self.last, dash)
    }
}

impl DecisionsRecord {
    /// The middle on an axis of decisions.
    pub fn middle(&self) -> f64 {
        (self.first + self.last) as f64 / 2.0
    }

    /// The decisions, with `dash` between the first and the last: `11–20`.
    pub fn range(&self, dash: &str) -> String {
        range(self.first, self.last, dash)
    }
}

fn range(first: usize, last: usize, dash: &str) -> String {
    if first == last { first.to_string() } else { format!("{first}{dash}{last}") }
}

impl TrainRecord {
    /// Reads a record. Another version is refused before anything else is looked at.
    pub fn from_json(text: &str) -> Result<TrainRecord, RecordError> {
        let record: TrainRecord = read(text)?;
        record.check()?;
        Ok(record)
    }

    /// Writes the record, indented, with a line end. A number that JSON cannot hold is an error, not a silent null.
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

/// Everything that can be wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or not with the fields of a record.
    #[error("not a record of format {FORMAT_VERSION}: {0}")]
    NotARecord(#[source] serde_json::Error),
    /// JSON without a version.
    #[error("no `format_version` found, expected {FORMAT_VERSION}; is this file a record of pace?")]
    NoVersion,
    /// Written by an older or newer program.
    #[error("format_version {found} found, this build reads {FORMAT_VERSION}; {}", advice(*found))]
    OtherVersion {
        /// What the file says.
        found: u64,
    },
    /// A number that JSON cannot hold.
    #[error("`{field}` is {found}, expected a finite number")]
    NotFinite {
        /// Where it is.
        field: String,
        /// What it is.
        found: f64,
    },
    /// Blocks that are empty, overlap or run backwards.
    #[error(
        "`{field}` has {what}s {first} to {last} after {what} {before}; blocks must follow each other from 1"
    )]
    BadBlock {
        /// Where it is.
        field: String,
        /// What it is a block of: episodes, decisions.
        what: &'static str,
        /// The block's first.
        first: usize,
        /// The block's last.
        last: usize,
        /// The last of the block before it.
        before: usize,
    },
    /// A number that points at nothing.
    #[error("`{field}` does not fit the rest of the record: {reason}; make the record again")]
    OutOfPlace {
        /// Where it is.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn advice(found: u64) -> &'static str {
    if found > u64::from(FORMAT_VERSION) { "update pace to read it" } else { "make the record again" }
}

/// The version of the format. It has one value, so a record of another version cannot be made or read.
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
    // The version alone first: in a file of another version any other field may be different, and an error about
    // that field would send the reader the wrong way.
    #[derive(Deserialize)]
    struct Door {
        format_version: Option<u64>,
    }
    let door: Door = serde_json::from_str(text).map_err(RecordError::NotARecord)?;
    match door.format_version {
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

fn optional(field: &str, value: Option<f64>) -> Result<(), RecordError> {
    value.map_or(Ok(()), |value| finite(field, value))
}

/// Refuses a block that does not lie after the one before it.
fn follow(
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
        before = follow(field, "decision", (bin.first, bin.last), before)?;
        let place = format!("{field}[{}]", bin.range("-"));
        finite(&format!("{place}.accuracy"), bin.accuracy)?;
        optional(&format!("{place}.accuracy_error"), bin.accuracy_error)?;
        finite(&format!("{place}.posterior"), bin.posterior)?;
    }
    Ok(())
}

fn check_blocks(field: &str, blocks: &[BlockRecord]) -> Result<(), RecordError> {
    let mut before = 0;
    for block in blocks {
        before = follow(field, "episode", (block.first, block.last), before)?;
        let place = format!("{field}[{}]", block.range("-"));
        finite(&format!("{place}.mean"), block.mean)?;
        optional(&format!("{place}.standard_error"), block.standard_error)?;
        optional(&format!("{place}.keypoint_rate"), block.keypoint_rate)?;
        optional(&format!("{place}.steps"), block.steps)?;
        if let Some(identification) = block.identification {
            finite(&format!("{place}.identification.accuracy"), identification.accuracy)?;
            finite(&format!("{place}.identification.posterior"), identification.posterior)?;
        }
    }
    Ok(())
}
