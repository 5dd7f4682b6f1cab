//! The study's file: SQLite with a write-ahead log, written by one thread.
//!
//! Jobs that arrive during a transaction share the next one. A job is acknowledged when its transaction is on the disk.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};
use tokio::sync::oneshot;

use super::config::{StudyConfig, is_participant_id};
use crate::token::{fresh_secret, hash, link_key};

/// An error of a study or its file.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// An invalid study configuration.
    #[error("{file}: {reason}")]
    BadConfig {
        /// The file.
        file: String,
        /// The problem.
        reason: String,
    },
    /// An error of the database.
    #[error("{}: {reason}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The database's message.
        reason: String,
    },
    /// A file that is not the data of a study.
    #[error(
        "{}: {reason}; expected the SQLite file that `pace play --study` writes next to the study's TOML file",
        path.display()
    )]
    NoStudyFile {
        /// The file.
        path: PathBuf,
        /// The reason why it cannot be read.
        reason: String,
    },
    /// The data of another study.
    #[error("{} holds the data of study {found:?}, not of {expected:?}; choose another --database", path.display())]
    OtherStudy {
        /// The file.
        path: PathBuf,
        /// Id of the study in the file.
        found: String,
        /// Id of the expected study.
        expected: String,
    },
    /// A file in an unknown format.
    #[error("{} has format {found}, this build reads {FORMAT}; use the build that wrote it", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// A study that differs from the same version in the file.
    #[error(
        "{} has version {version} of the study with different {changes}; set `version = {next}` in the study's TOML file \
         to give the changed study to new participants, or undo the change",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The version.
        version: u32,
        /// The keys that differ.
        changes: String,
        /// The next unused version.
        next: u32,
    },
    /// A file that another server is writing.
    #[error("another `pace play` serves the study of {}; end it first, or choose another --database", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The queue of jobs is full.
    #[error("the disk is too slow for this number of participants; try again")]
    TooBusy,
    /// A failed transaction. Participants read this message, so it has no path.
    #[error("{reason}")]
    NotKept {
        /// The reason.
        reason: String,
    },
    /// The writer thread has ended.
    #[error("the study's file is closed")]
    Closed,
    /// A participant who is deleted from the tables, but whose data is not overwritten yet.
    #[error(
        "{participant:?} is deleted from the tables, but the data is still on the disk: {}: {reason}; close the programs \
         that read the file and run the same command again",
        path.display()
    )]
    NotErased {
        /// The file.
        path: PathBuf,
        /// The participant's id.
        participant: String,
        /// The reason why the data could not be overwritten.
        reason: String,
    },
    /// An invalid participant id.
    #[error("participant {found:?}: expected up to 64 letters, digits, `-` and `_`")]
    BadParticipant {
        /// The id.
        found: String,
    },
    /// An unknown participant.
    #[error(
        "there is no participant {found:?} in the file; `pace study export FILE --csv --table participants` lists them"
    )]
    NoSuchParticipant {
        /// The requested id.
        found: String,
    },
}

/// Format of the file, stored in `PRAGMA user_version`.
const FORMAT: i64 = 2;

/// The tables that differ from format 1. `deletion` lists participants whose data is not overwritten yet, by the hash of their
/// id.
const SCHEMA: &str = "
CREATE TABLE study (
    id TEXT NOT NULL PRIMARY KEY,
    secret BLOB NOT NULL
) STRICT;
CREATE TABLE version (
    number INTEGER PRIMARY KEY,
    config TEXT NOT NULL,
    fingerprints TEXT NOT NULL,
    since_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE participant (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL REFERENCES version (number),
    platform_study TEXT NOT NULL,
    platform_session TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    stage TEXT NOT NULL,
    arm INTEGER,
    joined_ms INTEGER NOT NULL,
    consented_ms INTEGER,
    finished_ms INTEGER,
    UNIQUE (version, arm)
) STRICT;
CREATE INDEX participant_joined ON participant (joined_ms);
CREATE TABLE deletion (
    participant_hash TEXT NOT NULL PRIMARY KEY,
    n_steps INTEGER NOT NULL
) STRICT;
";

/// The tables that are the same as in format 1.
const SCHEMA_OF_PLAY: &str = "
CREATE TABLE encounter (
    id INTEGER PRIMARY KEY,
    participant TEXT NOT NULL REFERENCES participant (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    game TEXT NOT NULL,
    agent TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    slot INTEGER NOT NULL,
    tuple INTEGER NOT NULL,
    n_episodes INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    finished_ms INTEGER,
    score REAL,
    outcomes TEXT,
    UNIQUE (participant, number)
) STRICT;
CREATE TABLE step (
    encounter INTEGER NOT NULL REFERENCES encounter (id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    episode INTEGER NOT NULL,
    action INTEGER NOT NULL,
    action_name TEXT NOT NULL,
    moves TEXT NOT NULL,
    client_ms INTEGER,
    server_ms INTEGER NOT NULL,
    PRIMARY KEY (encounter, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer (
    participant TEXT NOT NULL REFERENCES participant (id) ON DELETE CASCADE,
    question TEXT NOT NULL,
    value TEXT NOT NULL,
    server_ms INTEGER NOT NULL,
    PRIMARY KEY (participant, question)
) STRICT;
";

/// First step of the migration from format 1: copies its tables.
const KEEP_FORMAT_1: &str = "
CREATE TEMP TABLE old_study AS SELECT * FROM study;
CREATE TEMP TABLE old_participant AS SELECT * FROM participant;
DROP TABLE study;
DROP TABLE participant;
";
/// Second step: fills the new tables. All participants of format 1 get version 1. Only the fingerprints of agents with encounters
/// are known.
const RESTORE_FORMAT_1: &str = "
INSERT INTO version (number, config, fingerprints, since_ms)
    SELECT 1, config,
        (SELECT json_group_object(agent, fingerprint) FROM (SELECT DISTINCT agent, fingerprint FROM encounter)),
        (SELECT COALESCE(MIN(joined_ms), 0) FROM old_participant)
    FROM old_study;
INSERT INTO participant
    (id, version, platform_study, platform_session, token_hash, stage, arm, joined_ms, consented_ms, finished_ms)
    SELECT id, 1, platform_study, platform_session, token_hash, stage, arm, joined_ms, consented_ms, finished_ms
    FROM old_participant;
DROP TABLE old_study;
DROP TABLE old_participant;
";

/// A job of the writer. It gets the transaction, or the reason why there is none, and returns a function that reports the outcome.
type WriteJob = Box<dyn FnOnce(Result<&mut Transaction<'_>, &str>) -> Report + Send>;
/// Reports the outcome of a job when its transaction is committed or has failed.
type Report = Box<dyn FnOnce(Result<(), String>) + Send>;

/// A version of a study, with the fingerprints of its agents by their ids.
pub(super) struct Version {
    pub config: StudyConfig,
    pub fingerprints: BTreeMap<String, String>,
}

impl Version {
    /// Whether no agent of this version has a different fingerprint.
    pub(super) fn has_agents(&self, fingerprints: &BTreeMap<String, String>) -> bool {
        self.changed_agents(fingerprints).is_empty()
    }

    /// Agents of this version with a different fingerprint.
    fn changed_agents(&self, fingerprints: &BTreeMap<String, String>) -> Vec<String> {
        let is_changed = |agent: &&String| {
            fingerprints.get(*agent).is_some_and(|fingerprint| *fingerprint != self.fingerprints[*agent])
        };
        self.fingerprints.keys().filter(is_changed).cloned().collect()
    }
}

/// The writer of a study's file.
pub(super) struct StudyWriter {
    jobs: Option<SyncSender<WriteJob>>,
    writer: Option<JoinHandle<()>>,
    /// Signs the links of participants.
    pub(super) secret: [u8; 32],
    /// Every version that participants have joined under.
    pub(super) versions: Vec<Version>,
    /// Lock of the file, held until the writer is dropped.
    _lock: File,
}

/// Maximum number of waiting jobs; further ones are refused.
const MAX_WAITING_JOBS: usize = 8192;
/// Maximum number of jobs per transaction.
const MAX_JOBS_PER_TRANSACTION: usize = 512;

impl StudyWriter {
    pub(super) fn open(path: &Path, config: &StudyConfig) -> Result<StudyWriter, StudyError> {
        let failed = |error: rusqlite::Error| database(path, &error);
        let no_file =
            |error: std::io::Error| StudyError::Database { path: path.to_owned(), reason: error.to_string() };
        create_private(path).map_err(no_file)?;
        let lock = lock(path)?;
        let mut connection = Connection::open(path).map_err(failed)?;
        prepare(&connection).map_err(failed)?;
        create_or_migrate(&mut connection, path, Some(config))?;
        let (found, secret) = connection
            .query_row("SELECT id, secret FROM study", [], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))
            .map_err(failed)?;
        if found != config.id {
            return Err(StudyError::OtherStudy { path: path.to_owned(), found, expected: config.id.clone() });
        }
        let versions = load_versions(&connection, path)?;
        check_version(path, &versions, config)?;
        let fingerprints = serde_json::to_string(&config.fingerprints).expect("fingerprints are plain data");
        connection
            .execute(
                "INSERT INTO version (number, config, fingerprints, since_ms) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET fingerprints = excluded.fingerprints",
                params![config.version, text_of(config), fingerprints, super::now_ms()],
            )
            .map_err(failed)?;
        let (jobs, waiting) = sync_channel(MAX_WAITING_JOBS);
        let writer = std::thread::Builder::new()
            .name("study-writer".to_owned())
            .spawn(move || write_all(&mut connection, &waiting))
            .map_err(no_file)?;
        Ok(StudyWriter { jobs: Some(jobs), writer: Some(writer), secret, versions, _lock: lock })
    }

    /// Queues a job for the next transaction. Jobs run in the order of the calls. The future completes when the transaction is on
    /// the disk. A job that fails is rolled back alone.
    pub(super) fn write<T, J>(&self, job: J) -> impl Future<Output = Result<T, StudyError>> + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job: WriteJob = Box::new(move |tx: Result<&mut Transaction<'_>, &str>| {
            let done = tx.map_err(str::to_owned).and_then(|tx| {
                let in_savepoint = || {
                    let savepoint = tx.savepoint()?;
                    let done = job(&savepoint)?;
                    savepoint.commit()?;
                    Ok(done)
                };
                in_savepoint().map_err(|error: rusqlite::Error| reason(&error))
            });
            Box::new(move |committed| {
                let outcome = committed.and(done).map_err(|reason| StudyError::NotKept { reason });
                // The receiver is gone if the request was cancelled.
                let _ = answer.send(outcome);
            })
        });
        let queued =
            match self.jobs.as_ref().expect("the queue exists until the writer is dropped").try_send(job) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_)) => Err(StudyError::TooBusy),
                Err(TrySendError::Disconnected(_)) => Err(StudyError::Closed),
            };
        async move {
            queued?;
            answered.await.unwrap_or(Err(StudyError::Closed))
        }
    }
}

impl Drop for StudyWriter {
    fn drop(&mut self) {
        // Closing the queue ends the thread after the waiting jobs.
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn write_all(connection: &mut Connection, waiting: &Receiver<WriteJob>) {
    while let Ok(first) = waiting.recv() {
        let mut reports = Vec::new();
        let committed = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
            Ok(mut tx) => {
                reports.push(first(Ok(&mut tx)));
                while reports.len() < MAX_JOBS_PER_TRANSACTION
                    && let Ok(job) = waiting.try_recv()
                {
                    reports.push(job(Ok(&mut tx)));
                }
                tx.commit().map_err(|error| reason(&error))
            }
            Err(error) => {
                let reason = reason(&error);
                reports.push(first(Err(&reason)));
                Err(reason)
            }
        };
        reports.into_iter().for_each(|report| report(committed.clone()));
    }
}

/// Maximum time that a connection waits for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A commit returns when the log is on the disk, so acknowledged steps survive a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // Nothing about participants is written outside the file and its log.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // Deleted data is overwritten with zeros.
    connection.pragma_update(None, "secure_delete", "ON")
}

/// Creates an empty file that only its owner can read, or restricts an existing one. SQLite gives its log the same permissions.
fn create_private(path: &Path) -> std::io::Result<()> {
    match private().create_new(true).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => restrict(path),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

/// Removes the permissions of other users. Files of earlier versions could be read by all users.
fn restrict(path: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        let mut permissions = std::fs::metadata(path)?.permissions();
        if permissions.mode() & 0o077 != 0 {
            permissions.set_mode(permissions.mode() & !0o077);
            std::fs::set_permissions(path, permissions)?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Options for writing; only its owner can read a new file.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Locks a study's file, so that only one server writes it. Waits a few seconds for a server that is shutting down.
///
/// The lock is a separate file: closing a second handle of the database would release SQLite's locks on it.
fn lock(path: &Path) -> Result<File, StudyError> {
    let failed =
        |error: std::io::Error| StudyError::Database { path: path.to_owned(), reason: error.to_string() };
    let mut name = path.canonicalize().map_err(failed)?.into_os_string();
    name.push("-lock");
    let file = private().create(true).open(name).map_err(failed)?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(StudyError::InUse { path: path.to_owned() });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Migrates a file to the present format. An empty file becomes the file of the study `new`, if given.
fn create_or_migrate(
    connection: &mut Connection,
    path: &Path,
    new: Option<&StudyConfig>,
) -> Result<(), StudyError> {
    let failed = |error: rusqlite::Error| database(path, &error);
    let format = |connection: &Connection| {
        connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).map_err(failed)
    };
    if format(connection)? == FORMAT {
        return Ok(());
    }
    // Otherwise dropping a table would delete the rows that refer to it.
    connection.pragma_update(None, "foreign_keys", "OFF").map_err(failed)?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let is_empty = "SELECT COUNT(*) = 0 FROM sqlite_schema";
    let is_empty: bool = tx.query_row(is_empty, [], |row| row.get(0)).map_err(failed)?;
    match (format(&tx)?, new) {
        // Another process has migrated the file meanwhile.
        (FORMAT, _) => {}
        (1, _) => {
            let id: String = tx.query_row("SELECT id FROM study", [], |row| row.get(0)).map_err(failed)?;
            tx.execute_batch(KEEP_FORMAT_1).map_err(failed)?;
            tx.execute_batch(SCHEMA).map_err(failed)?;
            tx.execute_batch(RESTORE_FORMAT_1).map_err(failed)?;
            insert_study(&tx, &id).map_err(failed)?;
        }
        (0, Some(config)) if is_empty => {
            tx.execute_batch(SCHEMA).map_err(failed)?;
            tx.execute_batch(SCHEMA_OF_PLAY).map_err(failed)?;
            insert_study(&tx, &config.id).map_err(failed)?;
        }
        (0, _) => {
            let reason = "an empty database, or one of another program".to_owned();
            return Err(StudyError::NoStudyFile { path: path.to_owned(), reason });
        }
        (found, _) => return Err(StudyError::OtherFormat { path: path.to_owned(), found }),
    }
    tx.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
    tx.commit().map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", "ON").map_err(failed)
}

fn insert_study(tx: &Transaction<'_>, id: &str) -> rusqlite::Result<usize> {
    tx.execute("INSERT INTO study (id, secret) VALUES (?1, ?2)", params![id, fresh_secret()])
}

fn text_of(config: &StudyConfig) -> String {
    toml::to_string(config).expect("a study is plain data")
}

fn load_versions(connection: &Connection, path: &Path) -> Result<Vec<Version>, StudyError> {
    let failed = |error: rusqlite::Error| database(path, &error);
    let mut statement = connection
        .prepare("SELECT number, config, fingerprints FROM version ORDER BY number")
        .map_err(failed)?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?)))
        .map_err(failed)?;
    let mut versions = Vec::new();
    for row in rows {
        let (number, text, fingerprints): (u32, _, _) = row.map_err(failed)?;
        let config = StudyConfig::from_toml(&format!("{}, version {number}", path.display()), &text)?;
        let fingerprints = serde_json::from_str(&fingerprints).unwrap_or_default();
        versions.push(Version { config, fingerprints });
    }
    Ok(versions)
}

/// Refuses a study that differs from the stored one of the same version.
fn check_version(path: &Path, versions: &[Version], config: &StudyConfig) -> Result<(), StudyError> {
    let Some(known) = versions.iter().find(|version| version.config.version == config.version) else {
        return Ok(());
    };
    let (old, new) = (known.config.table(), config.table());
    let mut keys: Vec<&String> =
        old.keys().chain(new.keys()).filter(|key| old.get(*key) != new.get(*key)).collect();
    keys.sort_unstable();
    keys.dedup();
    let weights = known.changed_agents(&config.fingerprints);
    let changes: Vec<String> = keys
        .into_iter()
        .map(|key| format!("`{key}`"))
        .chain(weights.iter().map(|agent| format!("weights of agent {agent:?}")))
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    let newest = versions.iter().map(|version| version.config.version).max().unwrap_or(0);
    Err(StudyError::Changed {
        path: path.to_owned(),
        version: config.version,
        changes: changes.join(", "),
        next: newest.saturating_add(1),
    })
}

fn database(path: &Path, error: &rusqlite::Error) -> StudyError {
    StudyError::Database { path: path.to_owned(), reason: reason(error) }
}

fn reason(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the file".to_owned()
        }
        _ => error.to_string(),
    }
}

/// A study's file, opened for reading or for deleting a participant.
pub struct StudyFile {
    path: PathBuf,
    pub(super) connection: Connection,
}

impl StudyFile {
    /// Opens an existing file. A server may be writing it.
    pub fn open(path: &Path) -> Result<StudyFile, StudyError> {
        let failed = |error: rusqlite::Error| {
            // SQLite's message for a missing file is unclear and repeats the path.
            let reason = if path.exists() { error.to_string() } else { "there is no such file".to_owned() };
            StudyError::NoStudyFile { path: path.to_owned(), reason }
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        prepare(&connection).map_err(failed)?;
        create_or_migrate(&mut connection, path, None)?;
        Ok(StudyFile { path: path.to_owned(), connection })
    }

    /// The path of a participant's link, signed with the study's secret.
    pub fn link(&self, participant: &str) -> Result<String, StudyError> {
        if !is_participant_id(participant) {
            return Err(StudyError::BadParticipant { found: participant.to_owned() });
        }
        let secret = self.connection.query_row("SELECT secret FROM study", [], |row| row.get(0));
        let secret: [u8; 32] = secret.map_err(|error| self.failed(&error))?;
        Ok(format!("/study?participant={participant}&key={}", link_key(&secret, participant)))
    }

    /// Deletes all data of a participant from the file and its log, and returns the number of deleted steps. If another program
    /// prevents the overwriting, the call fails with [`StudyError::NotErased`] and can be repeated.
    pub fn delete(&mut self, participant: &str) -> Result<usize, StudyError> {
        let n_steps = self.delete_rows(participant).map_err(|error| database(&self.path, &error))?;
        let Some(n_steps) = n_steps else {
            return Err(StudyError::NoSuchParticipant { found: participant.to_owned() });
        };
        let not_erased = |reason: String| StudyError::NotErased {
            path: self.path.clone(),
            participant: participant.to_owned(),
            reason,
        };
        self.erase().map_err(|error| not_erased(reason(&error)))?;
        let is_erased = "DELETE FROM deletion WHERE participant_hash = ?1";
        self.connection
            .execute(is_erased, [hash(participant)])
            .map_err(|error| database(&self.path, &error))?;
        Ok(n_steps as usize)
    }

    /// Deletes the rows of a participant and returns their number of steps. The participant stays in `deletion` until the data is
    /// overwritten. `None` if the participant is in neither.
    fn delete_rows(&mut self, participant: &str) -> rusqlite::Result<Option<i64>> {
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let count = "SELECT COUNT(*) FROM step JOIN encounter ON encounter.id = step.encounter WHERE participant = ?1";
        let n_steps: i64 = tx.query_row(count, [participant], |row| row.get(0))?;
        if tx.execute("DELETE FROM participant WHERE id = ?1", [participant])? > 0 {
            tx.execute(
                "INSERT INTO deletion (participant_hash, n_steps) VALUES (?1, ?2)
                 ON CONFLICT DO UPDATE SET n_steps = n_steps + excluded.n_steps",
                params![hash(participant), n_steps],
            )?;
        }
        let pending = "SELECT n_steps FROM deletion WHERE participant_hash = ?1";
        let n_steps = tx.query_row(pending, [hash(participant)], |row| row.get(0)).optional()?;
        tx.commit()?;
        Ok(n_steps)
    }

    /// Rewrites the whole file and empties its log, so that no deleted row remains.
    fn erase(&self) -> rusqlite::Result<()> {
        self.connection.execute_batch("VACUUM")?;
        // After the usual timeout the checkpoint does not fail; it returns whether other connections prevented it.
        let is_busy: bool =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if is_busy {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            return Err(rusqlite::Error::SqliteFailure(busy, None));
        }
        Ok(())
    }

    pub(super) fn failed(&self, error: &rusqlite::Error) -> StudyError {
        database(&self.path, error)
    }
}
