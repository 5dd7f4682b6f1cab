//! Human-subject studies: consent, tutorial, encounters with agents in a balanced order, questions and a completion code.
//!
//! Every action of a participant is in one SQLite file before it is acknowledged. If the server is killed, participants continue
//! where they were. `config` describes a study, `store` writes its file, `export` and `summary` read it.

mod assignment;
pub mod config;
pub mod export;
mod store;
pub mod summary;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::catalog::{AgentCatalog, PlayableAgent};
use crate::error::PlayError;
use crate::replay::link_from_parts;
use crate::server::{Server, ServerSession};
use crate::session::{ActionResult, Session, SessionConfig};
use crate::token::{fresh_token, hash, is_token, link_key};
use crate::wire::{BeliefVisibility, Refusal, RefusalCode, VERSION};

use assignment::assign;
pub use config::StudyConfig;
use config::is_participant_id;
use store::StudyWriter;
pub use store::{StudyError, StudyFile};

/// A study that is being served.
pub struct Study {
    /// The version for participants who join now.
    config: StudyConfig,
    /// All versions, for participants who joined under them. Versions with missing agents are left out.
    versions: Arc<BTreeMap<u32, StudyConfig>>,
    store: StudyWriter,
}

/// The stage of a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Consent,
    Declined,
    Tutorial,
    Play,
    Questions,
    Finished,
}

impl Stage {
    const ALL: [Stage; 6] =
        [Stage::Consent, Stage::Declined, Stage::Tutorial, Stage::Play, Stage::Questions, Stage::Finished];

    fn name(self) -> &'static str {
        match self {
            Stage::Consent => "consent",
            Stage::Declined => "declined",
            Stage::Tutorial => "tutorial",
            Stage::Play => "play",
            Stage::Questions => "questions",
            Stage::Finished => "finished",
        }
    }

    fn parse(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// The request of a participant to join, for the first time or again.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinRequest {
    v: u32,
    /// The opaque id from the link.
    participant: String,
    /// The recruiting platform's id of the study.
    #[serde(default)]
    study: String,
    /// The platform's id of the visit.
    #[serde(default)]
    session: String,
    /// Signature of the link for this participant.
    #[serde(default)]
    key: String,
}

/// The request of a participant for the next stage.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NextRequest {
    v: u32,
    token: String,
    /// The finished stage. Without effect if the participant is at another stage.
    stage: String,
    /// Number of the finished encounter, after the stage `play`.
    #[serde(default)]
    number: Option<usize>,
    /// Whether the participant consents, after the stage `consent`.
    #[serde(default)]
    consents: Option<bool>,
    /// Answers by question id, after the stage `questions`.
    #[serde(default)]
    answers: Map<String, Value>,
}

impl Study {
    /// Opens or creates the study's file. Checks that it belongs to this study and that the catalog has all agents.
    pub fn open(config: StudyConfig, catalog: &AgentCatalog, file: &Path) -> Result<Study, StudyError> {
        let config = config.resolved(catalog)?;
        let store = StudyWriter::open(file, &config)?;
        let mut versions = BTreeMap::new();
        for version in &store.versions {
            if let Ok(config) = version.config.clone().resolved(catalog)
                && version.has_agents(&config.fingerprints)
            {
                versions.insert(config.version, config);
            }
        }
        versions.insert(config.version, config.clone());
        Ok(Study { config, versions: Arc::new(versions), store })
    }

    /// Whether participants need signed links from `pace study links`.
    pub fn has_signed_links(&self) -> bool {
        self.config.enrolment.signed_links
    }

    /// Whether some version shows the agent's beliefs after an encounter.
    pub(crate) fn shows_beliefs(&self) -> bool {
        self.versions.values().any(|config| config.belief_visibility == BeliefVisibility::After)
    }

    /// Whether a link is the replay of a finished encounter that its participant may see.
    pub(crate) async fn may_show_replay(&self, catalog: &AgentCatalog, link: &str) -> bool {
        let seed = link.split('~').nth(6).and_then(|seed| i64::from_str_radix(seed, 16).ok());
        let Some(seed) = seed.filter(|_| self.shows_beliefs()) else { return false };
        let versions = Arc::clone(&self.versions);
        let finished = self.store.write(move |tx| {
            let query = "SELECT encounter.id, participant.version
                         FROM encounter JOIN participant ON participant.id = encounter.participant
                         WHERE seed = ?1 AND encounter.finished_ms IS NOT NULL";
            let mut statement = tx.prepare_cached(query)?;
            let rows =
                statement.query_map([seed], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)))?;
            let mut finished = Vec::new();
            for row in rows {
                let (id, version) = row?;
                if versions
                    .get(&version)
                    .is_some_and(|config| config.belief_visibility == BeliefVisibility::After)
                {
                    finished.push((load_session_config(tx, id)?, load_actions(tx, id)?));
                }
            }
            Ok(finished)
        });
        finished.await.unwrap_or_default().iter().any(|((session_config, fingerprint), actions)| {
            catalog.find(&session_config.agent).is_ok_and(|agent| {
                link_from_parts(session_config, fingerprint, actions, agent.game.spec().n_actions()) == link
            })
        })
    }

    /// Admits a participant with a new token. The old token becomes invalid.
    pub(crate) async fn join(&self, server: &Server, join: JoinRequest) -> Result<Value, Refusal> {
        if join.v != VERSION {
            return Err(Refusal::of(RefusalCode::OtherVersion, "reload the page".to_owned()));
        }
        for id in [&join.participant, &join.study, &join.session] {
            check_id(id)?;
        }
        if join.participant.is_empty() {
            let message = "the link lacks your participant id; use the link that you were given".to_owned();
            return Err(Refusal::of(RefusalCode::Malformed, message));
        }
        self.check_enrolment(&join)?;
        let token = fresh_token();
        let token_hash = hash(&token);
        let now = now_ms();
        let (version, joins_per_minute) = (self.config.version, self.config.enrolment.joins_per_minute);
        let kept = self
            .store
            .write(move |tx| {
                let known = "SELECT token_hash FROM participant WHERE id = ?1";
                let old: Option<String> =
                    tx.query_row(known, [&join.participant], |row| row.get(0)).optional()?;
                if old.is_some() {
                    tx.execute(
                        "UPDATE participant SET token_hash = ?2 WHERE id = ?1",
                        params![join.participant, token_hash],
                    )?;
                } else {
                    let lately = "SELECT COUNT(*) FROM participant WHERE joined_ms > ?1 AND joined_ms <= ?2";
                    let n_lately: u32 = tx.query_row(lately, [now - 60_000, now], |row| row.get(0))?;
                    if n_lately >= joins_per_minute {
                        return Ok(None);
                    }
                    tx.execute(
                        "INSERT INTO participant
                         (id, version, platform_study, platform_session, token_hash, stage, joined_ms)
                         VALUES (?1, ?2, ?3, ?4, ?5, 'consent', ?6)",
                        params![join.participant, version, join.study, join.session, token_hash, now],
                    )?;
                }
                Ok(Some((old, Participant::load(tx, &join.participant)?)))
            })
            .await
            .map_err(|error| not_durable(&error))?;
        let Some((old_hash, participant)) = kept else {
            let message = "too many people are joining at the moment; try again in a minute".to_owned();
            return Err(Refusal::of(RefusalCode::TooFast, message));
        };
        // A second tab takes over from the first, which may still have the encounter open.
        if let Some(old) = old_hash {
            server.sessions.remove_hashed(&old);
        }
        self.state(&participant, Some(&token))
    }

    /// Refuses participants who are not enrolled.
    fn check_enrolment(&self, join: &JoinRequest) -> Result<(), Refusal> {
        let enrolment = &self.config.enrolment;
        let is_listed = enrolment.participants.as_ref().is_none_or(|ids| ids.contains(&join.participant));
        let is_signed = || {
            let key = blake3::Hash::from_hex(&join.key);
            key.is_ok_and(|key| key == link_key(&self.store.secret, &join.participant))
        };
        if is_listed && (!enrolment.signed_links || is_signed()) {
            return Ok(());
        }
        let message = "this link is not one of this study's; use the link that you were given".to_owned();
        Err(Refusal::of(RefusalCode::Forbidden, message))
    }

    /// Moves a participant to the next stage.
    pub(crate) async fn next(&self, server: &Server, next: NextRequest) -> Result<Value, Refusal> {
        if next.v != VERSION || !is_token(&next.token) {
            return Err(Refusal::no_such_session());
        }
        let Some(stage) = Stage::parse(&next.stage) else {
            return Err(Refusal::of(RefusalCode::Malformed, "there is no such stage".to_owned()));
        };
        let token_hash = hash(&next.token);
        let (versions, now) = (Arc::clone(&self.versions), now_ms());
        let (number, consents, answers) = (next.number, next.consents, next.answers);
        let moved = self
            .store
            .write(move |tx| {
                let Some(participant) = Participant::of_token(tx, &token_hash)? else {
                    return Ok(Err(Refusal::no_such_session()));
                };
                let Some(config) = versions.get(&participant.version) else {
                    return Ok(Err(cannot_continue()));
                };
                // A repeated request changes nothing and gets the state again.
                let is_due =
                    participant.stage == stage && (stage != Stage::Play || number == participant.number());
                if is_due {
                    if stage == Stage::Questions
                        && let Err(refusal) = config.check_answers(&answers)
                    {
                        return Ok(Err(refusal));
                    }
                    advance(tx, config, &participant, consents, &answers, now)?;
                }
                let after = Participant::load(tx, &participant.id)?;
                let has_moved = (after.stage, after.number()) != (participant.stage, participant.number());
                Ok(Ok((has_moved, after)))
            })
            .await
            .map_err(|error| not_durable(&error))?;
        let (has_moved, participant) = moved?;
        // The next encounter gets a new session.
        if has_moved {
            server.sessions.remove(&next.token);
        }
        self.state(&participant, None)
    }

    /// The state of a participant, for the page.
    fn state(&self, participant: &Participant, token: Option<&str>) -> Result<Value, Refusal> {
        let config = self.versions.get(&participant.version).ok_or_else(cannot_continue)?;
        let is_finished = participant.stage == Stage::Finished;
        let (title, nouns) = config.names();
        Ok(json!({
            "v": VERSION,
            "token": token,
            "stage": participant.stage.name(),
            "title": config.title,
            "consent": config.consent,
            "tutorial": config.tutorial,
            "game": config.game(),
            "game_title": title,
            "nouns": nouns,
            "n_encounters": config.encounters,
            "number": participant.number(),
            "questions": config.questions,
            "steps_per_second": config.steps_per_second,
            "code": is_finished.then_some(&config.completion_code),
        }))
    }

    /// Restores a participant's session from the file.
    pub(crate) async fn restore_session(
        &self,
        server: &Arc<Server>,
        token: &str,
    ) -> Result<Arc<ServerSession>, Refusal> {
        let token_hash = hash(token);
        let found = self
            .store
            .write(move |tx| {
                let Some(participant) = Participant::of_token(tx, &token_hash)? else { return Ok(None) };
                match participant.encounter {
                    Some((id, _, _)) if participant.stage == Stage::Play => Ok(Some((
                        participant.version,
                        id,
                        load_session_config(tx, id)?,
                        load_actions(tx, id)?,
                    ))),
                    _ => Ok(None),
                }
            })
            .await
            .map_err(|error| not_durable(&error))?;
        let (version, id, (session_config, fingerprint), actions) =
            found.ok_or_else(Refusal::no_such_session)?;
        let belief_visibility = self.versions.get(&version).ok_or_else(cannot_continue)?.belief_visibility;
        let agent = server.catalog.find(&session_config.agent).map_err(|_| cannot_continue())?;
        if agent.fingerprint != fingerprint {
            return Err(cannot_continue());
        }
        let agent = Arc::clone(agent);
        let is_new = actions.is_empty();
        let resumed = tokio::task::spawn_blocking(move || {
            if is_new {
                let (session, frames) = Session::begin(&agent, session_config, crate::session::Detail::Seen)?;
                Ok((session, Some(frames)))
            } else {
                Session::resume(&agent, session_config, &actions).map(|session| (session, None))
            }
        })
        .await;
        let (session, first_frames) = match resumed {
            Ok(resumed) => resumed.map_err(|error: PlayError| Refusal::from(error))?,
            Err(_) => return Err(Refusal::no_such_session()),
        };
        server
            .sessions
            .insert(token, ServerSession::new(session, first_frames, belief_visibility, None, Some(id)))
    }

    /// Waits until all queued steps are on the disk.
    pub(crate) async fn wait_until_durable(&self) -> Result<(), StudyError> {
        self.store.write(|_| Ok(())).await
    }

    /// Queues a step for the file. The future completes when the step is durable.
    pub(crate) fn store_step(
        &self,
        encounter: i64,
        session: &Session,
        result: &ActionResult,
        client_ms: Option<i64>,
    ) -> impl Future<Output = Result<(), StudyError>> + use<> {
        let seq = session.actions().len() as i64 - 1;
        let action = *session.actions().last().expect("the session has an action");
        let name = session.agent().game.spec().action_names[usize::from(action)];
        let moves = serde_json::to_string(&result.moves).expect("moves are plain data");
        let episode = result.moves.first().map_or(0, |first| first.episode) as i64;
        let ended = session.is_over().then(|| {
            let spec = session.agent().game.spec();
            let scores: Vec<f64> =
                session.outcomes().iter().map(|outcome| outcome.score(spec.metric)).collect();
            let mean = scores.iter().sum::<f64>() / scores.len() as f64;
            (mean, serde_json::to_string(session.outcomes()).expect("outcomes are plain data"))
        });
        let server_ms = now_ms();
        self.store.write(move |tx| {
            // Only the next step in order is stored: with a gap, the session could not be restored.
            let changed = tx
                .prepare_cached(
                    "INSERT INTO step (encounter, seq, episode, action, action_name, moves, client_ms, server_ms)
                     SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
                     WHERE ?2 = (SELECT COALESCE(MAX(seq) + 1, 0) FROM step WHERE encounter = ?1)",
                )?
                .execute(params![encounter, seq, episode, action, name, moves, client_ms, server_ms])?;
            if changed != 1 {
                return Err(rusqlite::Error::StatementChangedRows(changed));
            }
            if let Some((score, outcomes)) = &ended {
                tx.execute(
                    "UPDATE encounter SET finished_ms = ?2, score = ?3, outcomes = ?4 WHERE id = ?1",
                    params![encounter, server_ms, score, outcomes],
                )?;
            }
            Ok(())
        })
    }
}

/// Checks an id of the link: up to 64 letters, digits, `-` and `_`; empty if it is absent.
fn check_id(id: &str) -> Result<(), Refusal> {
    if id.is_empty() || is_participant_id(id) {
        return Ok(());
    }
    let message = "an id in the link is invalid: expected up to 64 letters, digits, `-` and `_`".to_owned();
    Err(Refusal::of(RefusalCode::Malformed, message))
}

fn not_durable(error: &StudyError) -> Refusal {
    Refusal::of(RefusalCode::NotDurable, format!("this could not be saved ({error}); try again in a minute"))
}

/// The refusal for participants whose agents are missing or have other weights.
fn cannot_continue() -> Refusal {
    let message = "this study has changed since you began, so you cannot continue; please contact the people who gave you \
                   the link";
    Refusal::of(RefusalCode::Forbidden, message.to_owned())
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// A participant's row in the file.
struct Participant {
    id: String,
    /// Version of the study under which they joined.
    version: u32,
    stage: Stage,
    /// The last encounter: its row, its number, and whether it is finished.
    encounter: Option<(i64, usize, bool)>,
}

impl Participant {
    fn number(&self) -> Option<usize> {
        self.encounter.map(|(_, number, _)| number)
    }

    fn of_token(tx: &Connection, token_hash: &str) -> rusqlite::Result<Option<Participant>> {
        let id: Option<String> = tx
            .prepare_cached("SELECT id FROM participant WHERE token_hash = ?1")?
            .query_row([token_hash], |row| row.get(0))
            .optional()?;
        id.map(|id| Participant::load(tx, &id)).transpose()
    }

    fn load(tx: &Connection, id: &str) -> rusqlite::Result<Participant> {
        let (version, stage) =
            tx.query_row("SELECT version, stage FROM participant WHERE id = ?1", [id], |row| {
                Ok((row.get(0)?, row.get::<_, String>(1)?))
            })?;
        let encounter = tx
            .prepare_cached(
                "SELECT id, number, finished_ms IS NOT NULL FROM encounter WHERE participant = ?1
                 ORDER BY number DESC LIMIT 1",
            )?
            .query_row([id], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize, row.get(2)?)))
            .optional()?;
        let stage = Stage::parse(&stage).ok_or(rusqlite::Error::InvalidQuery)?;
        Ok(Participant { id: id.to_owned(), version, stage, encounter })
    }
}

/// Completes the participant's stage in the file.
fn advance(
    tx: &Connection,
    config: &StudyConfig,
    participant: &Participant,
    consents: Option<bool>,
    answers: &Map<String, Value>,
    now: i64,
) -> rusqlite::Result<()> {
    let next = match (participant.stage, participant.encounter) {
        (Stage::Consent, _) if consents == Some(true) => {
            tx.execute(
                "UPDATE participant SET consented_ms = ?2 WHERE id = ?1",
                params![participant.id, now],
            )?;
            Stage::Tutorial
        }
        (Stage::Consent, _) => Stage::Declined,
        (Stage::Tutorial, _) => {
            // The arm is assigned when play begins, so that earlier dropouts do not disturb the balance.
            tx.execute(
                "UPDATE participant
                 SET arm = (SELECT COALESCE(MAX(arm) + 1, 0) FROM participant WHERE version = ?2) WHERE id = ?1",
                params![participant.id, participant.version],
            )?;
            begin_encounter(tx, config, &participant.id, 0, now)?;
            Stage::Play
        }
        (Stage::Play, Some((_, number, true))) if number + 1 < config.encounters => {
            begin_encounter(tx, config, &participant.id, number + 1, now)?;
            Stage::Play
        }
        (Stage::Play, Some((_, _, true))) if config.questions.is_empty() => Stage::Finished,
        (Stage::Play, Some((_, _, true))) => Stage::Questions,
        (Stage::Questions, _) => {
            for (question, answer) in answers {
                tx.execute(
                    "INSERT OR REPLACE INTO answer (participant, question, value, server_ms) VALUES (?1, ?2, ?3, ?4)",
                    params![participant.id, question, answer.to_string(), now],
                )?;
            }
            Stage::Finished
        }
        (stage, _) => stage,
    };
    tx.execute("UPDATE participant SET stage = ?2 WHERE id = ?1", params![participant.id, next.name()])?;
    if next == Stage::Finished {
        tx.execute("UPDATE participant SET finished_ms = ?2 WHERE id = ?1", params![participant.id, now])?;
    }
    Ok(())
}

fn begin_encounter(
    tx: &Connection,
    config: &StudyConfig,
    participant: &str,
    number: usize,
    now: i64,
) -> rusqlite::Result<()> {
    let arm: i64 =
        tx.query_row("SELECT arm FROM participant WHERE id = ?1", [participant], |row| row.get(0))?;
    let assignment = assign(config, arm as u64, number, config.n_tuples());
    let agent = &config.agents[assignment.agent];
    tx.execute(
        "INSERT INTO encounter
         (participant, number, game, agent, fingerprint, slot, tuple, n_episodes, seed, started_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            participant,
            number as i64,
            config.game(),
            agent,
            config.fingerprints[agent],
            config.slot as i64,
            assignment.tuple as i64,
            config.n_episodes() as i64,
            assignment.seed as i64,
            now
        ],
    )?;
    Ok(())
}

fn load_session_config(tx: &Connection, encounter: i64) -> rusqlite::Result<(SessionConfig, String)> {
    let columns = "SELECT agent, slot, tuple, n_episodes, seed, fingerprint FROM encounter WHERE id = ?1";
    tx.query_row(columns, [encounter], |row| {
        let number = |index: usize| row.get::<_, i64>(index);
        let session_config = SessionConfig {
            agent: row.get(0)?,
            slot: number(1)? as usize,
            tuple: number(2)? as usize,
            n_episodes: number(3)? as usize,
            seed: number(4)? as u64,
        };
        Ok((session_config, row.get(5)?))
    })
}

fn load_actions(tx: &Connection, encounter: i64) -> rusqlite::Result<Vec<u8>> {
    let mut statement = tx.prepare_cached("SELECT action FROM step WHERE encounter = ?1 ORDER BY seq")?;
    let rows = statement.query_map([encounter], |row| row.get(0))?;
    rows.collect()
}

/// The first agent of a study. All agents of a study play the same game.
pub(crate) fn first_agent<'a>(
    config: &StudyConfig,
    catalog: &'a AgentCatalog,
) -> Result<&'a Arc<PlayableAgent>, PlayError> {
    catalog.find(&config.agents[0])
}
