//! The settings of a study, from `study.toml`.

use std::collections::BTreeMap;
use std::sync::Arc;

use pace_games::{DisplayNames, Split};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::StudyError;
use crate::catalog::{AgentCatalog, PlayableAgent};
use crate::session::SEED_LIMIT;
use crate::wire::{BeliefVisibility, Refusal, RefusalCode};

/// The settings of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyConfig {
    /// Id of the study in its data: letters, digits, `-` and `_`.
    pub id: String,
    /// Version of the study. A study that is changed after participants have joined needs a new version. Default: 1.
    #[serde(default = "first_version")]
    pub version: u32,
    /// Heading of its pages.
    pub title: String,
    /// Text of the consent page. An empty line begins a new paragraph.
    pub consent: String,
    /// Text shown before the first encounter, after the rules of the game. Default: none.
    #[serde(default)]
    pub tutorial: String,
    /// Ids of the agents, all of the same game.
    pub agents: Vec<String>,
    /// Whether a participant plays with one agent or with all.
    pub assignment: Assignment,
    /// Number of encounters per participant.
    pub encounters: usize,
    /// Episodes per encounter. Default: the game's `episodes_per_encounter`.
    #[serde(default)]
    pub episodes: Option<usize>,
    /// Slot of the peer whose seat participants take. Default: 0.
    #[serde(default)]
    pub slot: usize,
    /// Random seed of the encounters and of the order of agents.
    pub seed: u64,
    /// Whether participants see the agent's beliefs after an encounter. Default: never.
    #[serde(rename = "mind", default = "never")]
    pub belief_visibility: BeliefVisibility,
    /// Steps per second in games with simultaneous moves. Default: every step waits for the participant.
    #[serde(default)]
    pub steps_per_second: Option<f64>,
    /// Code shown to participants at the end.
    pub completion_code: String,
    /// Questions after the last encounter.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Limits on participation.
    #[serde(default, skip_serializing)]
    pub enrolment: Enrolment,
    /// Id of the game, set by [`StudyConfig::resolved`].
    #[serde(skip)]
    game: String,
    /// Title and display names of the game.
    #[serde(skip)]
    names: Option<(&'static str, DisplayNames)>,
    #[serde(skip)]
    n_episodes: usize,
    /// Number of test tuples of the game.
    #[serde(skip)]
    n_tuples: usize,
    /// Fingerprint of each agent, set by [`StudyConfig::resolved`].
    #[serde(skip)]
    pub(super) fingerprints: BTreeMap<String, String>,
}

/// Limits on participation. They do not belong to a version: participants may be added at any time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Enrolment {
    /// Ids of the participants. Default: every id is accepted.
    pub participants: Option<Vec<String>>,
    /// Whether links need a key from `pace study links`. Default: false.
    pub signed_links: bool,
    /// Maximum number of new participants per minute. Default: 100.
    pub joins_per_minute: u32,
}

impl Default for Enrolment {
    fn default() -> Enrolment {
        Enrolment { participants: None, signed_links: false, joins_per_minute: 100 }
    }
}

/// Whether a text is valid as a participant's id.
pub(super) fn is_participant_id(text: &str) -> bool {
    text.len() <= 64 && is_id(text)
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// The agents of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// One agent in all encounters (between-subject design).
    Between,
    /// All agents in turn, in an order that is balanced over participants (within-subject design).
    Within,
}

/// A question after the last encounter. `id` names it in the data; only a question that `is_optional` may stay unanswered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Question {
    /// A number from 1 (`low`) to `points` (`high`).
    Scale {
        id: String,
        text: String,
        #[serde(default)]
        is_optional: bool,
        points: u8,
        low: String,
        high: String,
    },
    /// One of `choices`.
    Choice {
        id: String,
        text: String,
        #[serde(default)]
        is_optional: bool,
        choices: Vec<String>,
    },
    /// Free text.
    Text {
        id: String,
        text: String,
        #[serde(default)]
        is_optional: bool,
    },
}

impl Question {
    fn id(&self) -> &str {
        let (Question::Scale { id, .. } | Question::Choice { id, .. } | Question::Text { id, .. }) = self;
        id
    }

    fn text(&self) -> &str {
        let (Question::Scale { text, .. } | Question::Choice { text, .. } | Question::Text { text, .. }) =
            self;
        text
    }

    /// Checks that the question has at least one valid answer.
    fn check(&self) -> Result<(), String> {
        match self {
            Question::Scale { id, points, .. } if !(2..=100).contains(points) => {
                Err(format!("question {id:?}: `points`: found {points}, expected 2 to 100"))
            }
            Question::Choice { id, choices, .. } if choices.is_empty() => {
                Err(format!("question {id:?}: `choices`: expected at least one"))
            }
            _ => Ok(()),
        }
    }

    fn is_answered_by(&self, answer: &Value) -> bool {
        let (Question::Scale { is_optional, .. }
        | Question::Choice { is_optional, .. }
        | Question::Text { is_optional, .. }) = self;
        match (self, answer) {
            (_, Value::Null) => *is_optional,
            (Question::Scale { points, .. }, answer) => {
                answer.as_u64().is_some_and(|value| (1..=u64::from(*points)).contains(&value))
            }
            (Question::Choice { choices, .. }, answer) => {
                answer.as_str().is_some_and(|value| choices.iter().any(|choice| choice == value))
            }
            (Question::Text { .. }, answer) => {
                answer.as_str().is_some_and(|value| value.chars().count() <= MAX_ANSWER_CHARACTERS)
            }
        }
    }
}

/// Maximum length of a text answer.
const MAX_ANSWER_CHARACTERS: usize = 4000;

fn first_version() -> u32 {
    1
}

fn never() -> BeliefVisibility {
    BeliefVisibility::Never
}

impl StudyConfig {
    /// Reads a study from the text of its file.
    pub fn from_toml(file: &str, text: &str) -> Result<StudyConfig, StudyError> {
        toml::from_str(text).map_err(|error| StudyError::BadConfig {
            file: file.to_owned(),
            reason: pace_games::config::plain_reason(error.message()),
        })
    }

    /// Checks the values of all keys, and that the catalog has all agents. Returns the first agent.
    pub(super) fn check<'a>(&self, catalog: &'a AgentCatalog) -> Result<&'a Arc<PlayableAgent>, StudyError> {
        let bad = |reason: String| StudyError::BadConfig { file: "the study".to_owned(), reason };
        let expect = |holds: bool, reason: &str| if holds { Ok(()) } else { Err(bad(reason.to_owned())) };
        expect(is_id(&self.id), "`id`: expected letters, digits, `-` and `_`")?;
        expect(self.version >= 1, "`version`: expected 1 or more")?;
        expect((1..=1000).contains(&self.encounters), "`encounters`: expected 1 to 1000")?;
        expect(!self.agents.is_empty(), "`agents`: expected at least one")?;
        expect(self.belief_visibility != BeliefVisibility::Live, "`mind`: expected \"never\" or \"after\"")?;
        expect(self.seed < SEED_LIMIT, "`seed`: expected a number below 2^53")?;
        expect(
            self.steps_per_second.is_none_or(|rate| (0.2..=20.0).contains(&rate)),
            "`steps_per_second`: expected 0.2 to 20",
        )?;
        let mut ids: Vec<&str> = self.questions.iter().map(Question::id).collect();
        expect(
            ids.iter().all(|id| is_id(id)),
            "an `id` of a question: expected letters, digits, `-` and `_`",
        )?;
        ids.sort_unstable();
        ids.dedup();
        expect(ids.len() == self.questions.len(), "two questions have the same `id`")?;
        self.questions.iter().try_for_each(Question::check).map_err(bad)?;
        let Enrolment { participants, joins_per_minute, .. } = &self.enrolment;
        expect(*joins_per_minute >= 1, "`joins_per_minute`: expected 1 or more")?;
        if let Some(participants) = participants {
            expect(!participants.is_empty(), "`participants`: expected at least one id")?;
            expect(
                participants.iter().all(|id| is_participant_id(id)),
                "`participants`: expected ids of up to 64 letters, digits, `-` and `_`",
            )?;
        }
        for agent in &self.agents {
            let known: Vec<&str> = catalog.all().iter().map(|agent| &agent.id[..]).collect();
            catalog.find(agent).map_err(|_| {
                bad(format!("`agents`: unknown agent {agent:?}; expected one of {}", known.join(", ")))
            })?;
        }
        let first = super::first_agent(self, catalog).map_err(|error| bad(error.to_string()))?;
        let spec = first.game.spec();
        for agent in &self.agents {
            let game = catalog.find(agent).map_err(|error| bad(error.to_string()))?.game.spec().id;
            expect(game == spec.id, "`agents`: expected agents of the same game")?;
        }
        expect(self.slot < spec.n_peers(), "`slot`: there is no such peer in the game")?;
        let max = spec.episodes_per_encounter;
        expect(
            self.episodes.is_none_or(|n_episodes| (1..=max).contains(&n_episodes)),
            &format!("`episodes`: expected 1 to {max}"),
        )?;
        Ok(first)
    }

    /// Checks the study, and adds the data of its game and agents.
    pub(super) fn resolved(mut self, catalog: &AgentCatalog) -> Result<StudyConfig, StudyError> {
        let game = &self.check(catalog)?.game;
        let spec = game.spec();
        (self.game, self.n_episodes) =
            (spec.id.to_owned(), self.episodes.unwrap_or(spec.episodes_per_encounter));
        self.names = Some((spec.title, spec.nouns));
        self.n_tuples = game.n_tuples(Split::Test);
        let fingerprint = |agent: &String| catalog.find(agent).map(|agent| agent.fingerprint.clone());
        self.fingerprints =
            self.agents.iter().filter_map(|agent| Some((agent.clone(), fingerprint(agent).ok()?))).collect();
        Ok(self)
    }

    /// All keys except the limits on participation, for comparing versions.
    pub(super) fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("a study is plain data")
    }

    pub(super) fn n_tuples(&self) -> usize {
        self.n_tuples
    }

    pub(super) fn game(&self) -> &str {
        &self.game
    }

    /// The game's title and display names. `None` before [`StudyConfig::resolved`].
    pub(super) fn names(&self) -> (Option<&'static str>, Option<DisplayNames>) {
        self.names.unzip()
    }

    pub(super) fn n_episodes(&self) -> usize {
        self.n_episodes
    }

    /// Refuses answers that are missing, invalid, or to unknown questions.
    pub(super) fn check_answers(&self, answers: &Map<String, Value>) -> Result<(), Refusal> {
        let refuse = |message: String| Err(Refusal::of(RefusalCode::Malformed, message));
        if let Some(id) = answers.keys().find(|id| self.questions.iter().all(|question| question.id() != *id))
        {
            return refuse(format!("unknown question {:?}", id.chars().take(40).collect::<String>()));
        }
        let is_answered =
            |question: &Question| question.is_answered_by(answers.get(question.id()).unwrap_or(&Value::Null));
        if let Some(question) = self.questions.iter().find(|question| !is_answered(question)) {
            return refuse(format!("missing or invalid answer: {}", question.text()));
        }
        Ok(())
    }
}
