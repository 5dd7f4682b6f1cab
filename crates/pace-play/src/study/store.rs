//! The study's file: SQLite with a write-ahead log, written by one thread. Whatever arrives while it writes goes into the next
//! transaction together, and nobody is answered before that is on the disk.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use super::config::StudyConfig;

/// What is wrong with a study or its file.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file that does not describe a study.
    #[error("{file}: {reason}")]
    BadConfig {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The database did not do what it was asked.
    #[error("{}: {reason}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// What it said.
        reason: String,
    },
    /// A file that is none of a study.
    #[error(
        "{}: {reason}; expected the SQLite file that `pace play --study` keeps beside the study's own",
        path.display()
    )]
    NoStudyFile {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// A database with something else in it.
    #[error("{} holds the data of study {found:?}, not of {expected:?}; choose another --store", path.display())]
    OtherStudy {
        /// The file.
        path: PathBuf,
        /// Whose data it holds.
        found: String,
        /// Whose it should.
        expected: String,
    },
    /// A database of another version of this program.
    #[error("{} has format {found}, this build reads {FORMAT}; use the build it was made with", path.display())]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
    },
    /// More is asked than the disk can take.
    #[error("the disk is too slow for so many participants; try again")]
    TooBusy,
    /// The writer is gone.
    #[error("the study's file is closed")]
    Closed,
    /// A participant that is not there.
    #[error(
        "there is no participant {found:?} in the file; `pace study export FILE --csv --table participants` lists them"
    )]
    NoSuchParticipant {
        /// Who was asked for.
        found: String,
    },
}

/// The format of the file; it is kept in `PRAGMA user_version`.
const FORMAT: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE study (
    id TEXT NOT NULL PRIMARY KEY,
    config TEXT NOT NULL
) STRICT;
CREATE TABLE participant (
    id TEXT NOT NULL PRIMARY KEY,
    platform_study TEXT NOT NULL,
    platform_session TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    stage TEXT NOT NULL,
    arm INTEGER UNIQUE,
    joined_ms INTEGER NOT NULL,
    consented_ms INTEGER,
    finished_ms INTEGER
) STRICT;
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

type Job = Box<dyn FnOnce(&mut Transaction<'_>) -> Box<dyn FnOnce(Result<(), String>) + Send> + Send>;

/// The writer of a study's file.
pub(super) struct Store {
    path: PathBuf,
    jobs: Option<SyncSender<Job>>,
    writer: Option<JoinHandle<()>>,
}

/// So many may wait for the disk; beyond that people are asked to try again.
const MOST_WAITING: usize = 8192;
/// So many go into one transaction.
const MOST_TOGETHER: usize = 512;

impl Store {
    pub(super) fn open(path: &Path, config: &StudyConfig) -> Result<Store, StudyError> {
        let failed = |error: rusqlite::Error| database(path, &error);
        let mut connection = Connection::open(path).map_err(failed)?;
        prepare(&connection).map_err(failed)?;
        let format: i64 =
            connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        if format == 0 {
            let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
            tx.execute_batch(SCHEMA).map_err(failed)?;
            let text = toml::to_string(config).expect("a study is plain data");
            tx.execute("INSERT INTO study (id, config) VALUES (?1, ?2)", [&config.id, &text])
                .map_err(failed)?;
            tx.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
            tx.commit().map_err(failed)?;
        } else if format != FORMAT {
            return Err(StudyError::OtherFormat { path: path.to_owned(), found: format });
        }
        let found: String =
            connection.query_row("SELECT id FROM study", [], |row| row.get(0)).map_err(failed)?;
        if found != config.id {
            return Err(StudyError::OtherStudy { path: path.to_owned(), found, expected: config.id.clone() });
        }
        let (jobs, waiting) = sync_channel(MOST_WAITING);
        let writer = std::thread::Builder::new()
            .name("study-writer".to_owned())
            .spawn(move || write_all(&mut connection, &waiting))
            .map_err(|error| StudyError::Database { path: path.to_owned(), reason: error.to_string() })?;
        Ok(Store { path: path.to_owned(), jobs: Some(jobs), writer: Some(writer) })
    }

    /// Does a job within the next transaction. Jobs are done in the order in which they are handed over; the future is done
    /// when the transaction is on the disk. A job that fails undoes itself and nobody else's.
    pub(super) fn write<T, J>(&self, job: J) -> impl Future<Output = Result<T, StudyError>> + use<T, J>
    where
        T: Send + 'static,
        J: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let path = self.path.clone();
        let failed = move |reason: String| StudyError::Database { path: path.clone(), reason };
        let job: Job = Box::new(move |tx| {
            let done = (|| {
                let savepoint = tx.savepoint()?;
                let done = job(&savepoint)?;
                savepoint.commit()?;
                Ok(done)
            })();
            Box::new(move |committed| {
                let outcome = match (done, committed) {
                    (Ok(done), Ok(())) => Ok(done),
                    (Err(error), _) => Err(failed(rusqlite::Error::to_string(&error))),
                    (Ok(_), Err(reason)) => Err(failed(reason)),
                };
                // Whoever asked may have hung up.
                let _ = answer.send(outcome);
            })
        });
        let handed_over =
            match self.jobs.as_ref().expect("the writer is there until the store is dropped").try_send(job) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_)) => Err(StudyError::TooBusy),
                Err(TrySendError::Disconnected(_)) => Err(StudyError::Closed),
            };
        async move {
            handed_over?;
            answered.await.unwrap_or(Err(StudyError::Closed))
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // No more jobs: the writer finishes what it has.
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn write_all(connection: &mut Connection, waiting: &Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let mut answers = Vec::new();
        let committed = (|| {
            let mut tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            answers.push(first(&mut tx));
            while answers.len() < MOST_TOGETHER
                && let Ok(job) = waiting.try_recv()
            {
                answers.push(job(&mut tx));
            }
            tx.commit()
        })();
        let committed = committed.map_err(|error: rusqlite::Error| error.to_string());
        answers.into_iter().for_each(|answer| answer(committed.clone()));
    }
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A commit returns when the log is on the disk: what was acknowledged survives a loss of power.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    // What is deleted is overwritten, not only forgotten.
    connection.pragma_update(None, "secure_delete", "ON")
}

fn database(path: &Path, error: &rusqlite::Error) -> StudyError {
    StudyError::Database { path: path.to_owned(), reason: error.to_string() }
}

/// A study's file, for those who read it or take a participant out of it.
pub struct StudyFile {
    path: PathBuf,
    pub(super) connection: Connection,
}

impl StudyFile {
    /// Opens a file that is there, whether or not a server is writing to it.
    pub fn open(path: &Path) -> Result<StudyFile, StudyError> {
        let failed = |error: rusqlite::Error| {
            // Its own words repeat the path; without a file there is one reason alone.
            let reason = if path.exists() { error.to_string() } else { "there is no such file".to_owned() };
            StudyError::NoStudyFile { path: path.to_owned(), reason }
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        prepare(&connection).map_err(failed)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(failed)?;
        if found != FORMAT {
            return Err(StudyError::OtherFormat { path: path.to_owned(), found });
        }
        Ok(StudyFile { path: path.to_owned(), connection })
    }

    /// Takes out everything about a participant, for good; how many steps that were.
    pub fn delete(&mut self, participant: &str) -> Result<usize, StudyError> {
        let path = self.path.clone();
        let failed = |error: rusqlite::Error| database(&path, &error);
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let count = "SELECT COUNT(*) FROM step JOIN encounter ON encounter.id = step.encounter WHERE participant = ?1";
        let n_steps: i64 = tx.query_row(count, [participant], |row| row.get(0)).map_err(failed)?;
        let n_deleted = tx.execute("DELETE FROM participant WHERE id = ?1", [participant]).map_err(failed)?;
        if n_deleted == 0 {
            return Err(StudyError::NoSuchParticipant { found: participant.to_owned() });
        }
        tx.commit().map_err(failed)?;
        // The log still has the old pages until they are written back.
        let emptied = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        emptied.map_err(|error| database(&self.path, &error))?;
        Ok(n_steps as usize)
    }

    pub(super) fn failed(&self, error: &rusqlite::Error) -> StudyError {
        database(&self.path, error)
    }
}
