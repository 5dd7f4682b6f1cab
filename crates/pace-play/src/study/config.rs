//! `study.toml`: what a study asks of its participants.

use std::collections::BTreeMap;
use std::sync::Arc;

use pace_games::{DisplayNames, Split};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::StudyError;
use crate::catalog::{AgentCatalog, PlayableAgent};
use crate::session::SEED_LIMIT;
use crate::wire::{BeliefVisibility, Refusal, RefusalCode};

/// A study, as its file describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyConfig {
    /// Names the study in its data; letters, digits, `-` and `_`.
    pub id: String,
    /// The version of the study. A study that is changed while it is on gets another one. Default: 1.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The heading of its pages.
    pub title: String,
    /// What participants consent to; an empty line begins a new paragraph.
    pub consent: String,
    /// What they read before they play, beside the rules of the game.
    #[serde(default)]
    pub tutorial: String,
    /// The ids of the agents, as the server offers them; all of one game.
    pub agents: Vec<String>,
    /// Whether a participant meets one agent or several.
    pub assignment: Assignment,
    /// Encounters per participant.
    pub encounters: usize,
    /// Episodes per encounter; the game's own number if it is missing.
    #[serde(default)]
    pub episodes: Option<usize>,
    /// The peer whose seat participants take.
    #[serde(default)]
    pub slot: usize,
    /// The seed of all chance, the order of the agents included.
    pub seed: u64,
    /// Whether participants see afterwards what the agent thought.
    #[serde(default = "never")]
    pub mind: BeliefVisibility,
    /// The beat of games in which all choose at once; without one a step waits for the participant.
    #[serde(default)]
    pub steps_per_second: Option<f64>,
    /// What participants hand in when they are through.
    pub completion_code: String,
    /// What they are asked in the end.
    #[serde(default)]
    pub questions: Vec<Question>,
    /// Who may take part.
    #[serde(default, skip_serializing)]
    pub enrolment: Enrolment,
    /// The game of the agents, filled in by [`StudyConfig::check`].
    #[serde(skip)]
    game: String,
    /// What the game is called, and its things.
    #[serde(skip)]
    names: Option<(&'static str, DisplayNames)>,
    #[serde(skip)]
    n_episodes: usize,
    /// The number of test tuples, whose parts participants play.
    #[serde(skip)]
    n_tuples: usize,
    /// The fingerprint of each agent, filled in by [`StudyConfig::check`].
    #[serde(skip)]
    pub(super) fingerprints: BTreeMap<String, String>,
}

/// Who may take part. This belongs to no version: participants may be added while a study is on.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Enrolment {
    /// The ids of those who may take part. Default: every id.
    pub participants: Option<Vec<String>>,
    /// Whether a link needs the key that `pace study links` gives it. Default: false.
    pub signed_links: bool,
    /// Maximum number of new participants per minute. Default: 100.
    pub joins_per_minute: u32,
}

impl Default for Enrolment {
    fn default() -> Enrolment {
        Enrolment { participants: None, signed_links: false, joins_per_minute: 100 }
    }
}

/// Whether text can be a participant's id.
pub(super) fn is_participant_id(text: &str) -> bool {
    text.len() <= 64 && is_id(text)
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Which agents a participant meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// One and the same in all encounters.
    Between,
    /// One after the other, in an order that differs from participant to participant.
    Within,
}

/// A question at the end. Every kind has an `id` that names it in the data, the `text` of the question, and may be left out
/// if it `is_optional`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs)]
pub enum Question {
    /// Answered by a number from 1, which means `low`, to `points`, which means `high`.
    Scale {
        id: String,
        text: String,
        #[serde(default)]
        is_optional: bool,
        points: u8,
        low: String,
        high: String,
    },
    /// Answered by one of a list.
    Choice {
        id: String,
        text: String,
        #[serde(default)]
        is_optional: bool,
        choices: Vec<String>,
    },
    /// Answered in words.
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

    /// Refuses a question that has no answer.
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
                answer.as_str().is_some_and(|value| value.chars().count() <= MOST_ANSWER_CHARACTERS)
            }
        }
    }
}

/// No answer in words is longer.
const MOST_ANSWER_CHARACTERS: usize = 4000;

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

    /// Checks everything that the file alone does not tell, and fills in what follows from the agents.
    pub(super) fn check<'a>(&self, offers: &'a AgentCatalog) -> Result<&'a Arc<PlayableAgent>, StudyError> {
        let bad = |reason: String| StudyError::BadConfig { file: "the study".to_owned(), reason };
        let expect = |holds: bool, reason: &str| if holds { Ok(()) } else { Err(bad(reason.to_owned())) };
        expect(is_id(&self.id), "`id`: expected letters, digits, `-` and `_`")?;
        expect(self.version >= 1, "`version`: expected 1 or more")?;
        expect((1..=1000).contains(&self.encounters), "`encounters`: expected 1 to 1000")?;
        expect(!self.agents.is_empty(), "`agents`: expected at least one")?;
        expect(self.mind != BeliefVisibility::Live, "`beliefs`: expected \"never\" or \"after\"")?;
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
            let known: Vec<&str> = offers.all().iter().map(|offer| &offer.id[..]).collect();
            offers.find(agent).map_err(|_| {
                bad(format!("`agents`: there is no {agent:?} on offer, only {}", known.join(", ")))
            })?;
        }
        let first = super::first_offer(self, offers).map_err(|error| bad(error.to_string()))?;
        let spec = first.game.spec();
        for agent in &self.agents {
            let game = offers.find(agent).map_err(|error| bad(error.to_string()))?.game.spec().id;
            expect(game == spec.id, "`agents`: expected agents of one and the same game")?;
        }
        expect(self.slot < spec.n_peers(), "`slot`: there is no such peer in the game")?;
        let most = spec.episodes_per_encounter;
        expect(
            self.episodes.is_none_or(|n_episodes| (1..=most).contains(&n_episodes)),
            &format!("`episodes`: expected 1 to {most}"),
        )?;
        Ok(first)
    }

    /// The same, knowing its agents.
    pub(super) fn resolved(mut self, offers: &AgentCatalog) -> Result<StudyConfig, StudyError> {
        let game = &self.check(offers)?.game;
        let spec = game.spec();
        (self.game, self.n_episodes) =
            (spec.id.to_owned(), self.episodes.unwrap_or(spec.episodes_per_encounter));
        self.names = Some((spec.title, spec.nouns));
        self.n_tuples = game.n_tuples(Split::Test);
        let fingerprint = |agent: &String| offers.find(agent).map(|offer| offer.fingerprint.clone());
        self.fingerprints =
            self.agents.iter().filter_map(|agent| Some((agent.clone(), fingerprint(agent).ok()?))).collect();
        Ok(self)
    }

    /// Everything that makes the study what it is, by key.
    pub(super) fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("a study is plain data")
    }

    pub(super) fn n_tuples(&self) -> usize {
        self.n_tuples
    }

    pub(super) fn game(&self) -> &str {
        &self.game
    }

    /// The title of the game and its nouns; known once the agents are.
    pub(super) fn names(&self) -> (Option<&'static str>, Option<DisplayNames>) {
        self.names.unzip()
    }

    pub(super) fn n_episodes(&self) -> usize {
        self.n_episodes
    }

    /// Refuses answers to questions that were not asked, of the wrong kind, or missing.
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
