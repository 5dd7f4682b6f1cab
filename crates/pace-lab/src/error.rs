//! Everything that can go wrong with the files of a run: what was found, what was expected, what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::DamagedCheckpoint;

/// Why the files of a run cannot be written or read. No error loses what was durable before it.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A game, a key, a peer or a value that cannot be.
    #[error(transparent)]
    Game(#[from] pace_games::GameError),
    /// Training or its saved state went wrong.
    #[error(transparent)]
    Train(#[from] pace_learn::TrainError),
    /// A record that cannot be written.
    #[error(transparent)]
    Record(#[from] pace_report::RecordError),
    /// A file of records that cannot be read.
    #[error("{}: {source}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pace_report::RecordError,
    },
    /// An evaluation of a run that was trained on afterwards.
    #[error(
        "{}: evaluates the agent after {found} of {expected} training steps; run `pace adapt` again",
        path.display()
    )]
    Outdated {
        /// The file.
        path: PathBuf,
        /// The steps that the evaluated agent had.
        found: u64,
        /// The steps that the run has now.
        expected: u64,
    },
    /// Some files of many that cannot be read; everything else was made.
    #[error("{n} files were skipped; first: {first}")]
    FilesSkipped {
        /// How many.
        n: usize,
        /// What is wrong with the first.
        first: String,
    },
    /// A folder without any run in it.
    #[error("{} has no runs in it; expected a run folder or a folder of runs, each with a manifest.json", path.display())]
    NoRuns {
        /// The folder.
        path: PathBuf,
    },
    /// A configuration file that cannot be understood.
    #[error("{file}: {reason}")]
    BadConfig {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A game that the agent cannot play, for it sees or offers something else than in training.
    #[error("the agent expects observations of size {} and {} actions, but with these keys the game has {} and {}; change the keys so that both sizes match (`pace list games` lists them)", trained.0, trained.1, found.0, found.1)]
    ShapeMismatch {
        /// Observation size and number of actions in training.
        trained: (usize, usize),
        /// The same of the game that was to be played.
        found: (usize, usize),
    },
    /// A run without any checkpoint.
    #[error("{} has no checkpoint yet; wait for its first one, or continue the run with `pace resume`", path.display())]
    NoCheckpoint {
        /// The run folder.
        path: PathBuf,
    },
    /// A run that was trained, and whose checkpoints are not in its folder any more.
    #[error("{} was trained for {steps} steps and has no checkpoint: its agent cannot be loaded, and training it would overwrite its record; copy its checkpoints folder there, or train the run again with another --out", path.display())]
    LostCheckpoints {
        /// The run folder.
        path: PathBuf,
        /// The last step of its log.
        steps: u64,
    },
    /// A new run was to start in a folder that holds a run.
    #[error("{} already contains a run; continue it with `pace resume {}`, or choose another --out", path.display(), path.display())]
    FolderHasRun {
        /// The folder.
        path: PathBuf,
    },
    /// A new run was to start in a folder that holds something else.
    #[error("{} is not empty (it holds {found}); a new run needs a new or empty folder; choose another --out", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// A name found in it.
        found: String,
    },
    /// A folder that is not a run, or not any more.
    #[error("{} is not a run folder: it has no {missing}; expected a folder made by `pace train … --out`", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The file that every run has.
        missing: &'static str,
    },
    /// A folder of a lab that holds another run than the plan has there.
    #[error("{}: {reason}; move the folder away to train the run again, or choose another --out", path.display())]
    RunMismatch {
        /// The run folder.
        path: PathBuf,
        /// How it differs.
        reason: String,
    },
    /// Another process writes this run.
    #[error("{} is in use{}; one process at a time may write there; wait for it or stop it", path.display(), pid.map_or(String::new(), |pid| format!(" by process {pid}")))]
    InUse {
        /// The run folder.
        path: PathBuf,
        /// The process, where it could be read.
        pid: Option<u32>,
    },
    /// A file system on which one writer at a time cannot be enforced.
    #[error("the file system of {} has no file locks, which keep two processes from writing one run; use a run folder on a local disk", path.display())]
    NoLocks {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk, or the user's share of it, is full.
    #[error("no space left to {doing} {}; what was saved before is intact; free some space", path.display())]
    StorageFull {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The disk filled up while a run was trained.
    #[error("{source}, then continue with `pace resume {}`", run.display())]
    TrainingStorageFull {
        /// The run folder.
        run: PathBuf,
        /// What could not be written.
        source: Box<LabError>,
    },
    /// Results of an evaluation that could not be written. The caller has shown them.
    #[error("the results were printed, but not all of them could be saved: {source}")]
    NotSaved {
        /// What could not be written.
        source: Box<LabError>,
    },
    /// A record that is larger than a reader accepts.
    #[error("{}: found a record of more than {cap} bytes, expected a smaller one; evaluate fewer episodes or peers", path.display())]
    RecordTooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size.
        cap: u64,
    },
    /// A file or folder that this user may not touch, or a disk that is mounted read-only.
    #[error("not allowed to {doing} {} ({source}); check its owner, its permissions and whether its disk is read-only, or choose another folder", path.display())]
    AccessDenied {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A path that goes through, or ends at, something that is no folder.
    #[error("cannot {doing} {}: a part of this path is a file, expected a folder; choose another path", path.display())]
    NotAFolder {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
    },
    /// Any other trouble with a file.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A manifest that cannot be read.
    #[error("{}: {reason}; expected a manifest written by pace; restore the file or start another run", path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A manifest of another version of this project.
    #[error("{} has format {found}, this build reads format {expected}; use the version of pace that wrote it", path.display())]
    ManifestVersion {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// Ours.
        expected: u32,
    },
    /// A text file that is too large or not UTF-8.
    #[error("{}: {reason}; expected a small text file in UTF-8", path.display())]
    BadText {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A name that cannot be a file of a checkpoint or crash bundle.
    #[error(
        "file name \"{found}\": expected 1 to 64 of a-z 0-9 . _ - without a dot at either end, each name once"
    )]
    BadFileName {
        /// The name.
        found: String,
    },
    /// More than a checkpoint may hold.
    #[error("{what} has {found} {unit}, at most {cap} are allowed in a checkpoint; set a smaller network")]
    TooLarge {
        /// The file, or the whole.
        what: String,
        /// Its size.
        found: u64,
        /// The largest allowed.
        cap: u64,
        /// Of what.
        unit: &'static str,
    },
    /// A checkpoint of this step was asked for and there is none.
    #[error("no checkpoint of step {step} in {}; there are: {}", folder.display(), list(known))]
    NoSuchCheckpoint {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// The step.
        step: u64,
        /// The steps there are.
        known: Vec<u64>,
    },
    /// A checkpoint that is not what was written.
    #[error("checkpoint {} is damaged: {damage}; resume from another one, or restore it from a copy", path.display())]
    DamagedCheckpoint {
        /// Its folder.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// Checkpoints there are, but none is whole. Starting over is left to a person.
    #[error("every checkpoint in {} is damaged ({}); restore one from a copy, or train again with another --out", folder.display(), damaged.iter().map(|one| format!("{}: {}", one.step, one.damage)).collect::<Vec<_>>().join("; "))]
    NoValidCheckpoint {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// What is wrong with each, the newest first.
        damaged: Vec<DamagedCheckpoint>,
    },
    /// A whole checkpoint without a file that its reader needs.
    #[error("checkpoint of step {step} has no file {name}; it has: {}", known.join(", "))]
    NoSuchFile {
        /// The checkpoint's step.
        step: u64,
        /// The file.
        name: String,
        /// The files there are.
        known: Vec<String>,
    },
    /// A number that no curve can show.
    #[error("metric {metric} is {value} at step {step}; expected a finite number; the row was not written")]
    NotFinite {
        /// Its name.
        metric: String,
        /// Its value.
        value: f64,
        /// The row's step.
        step: u64,
    },
    /// A metric's name that cannot be a key.
    #[error(
        "metric name \"{found}\": expected 1 to 128 printable characters, each name once in a row, and not \"step\""
    )]
    BadMetricName {
        /// The name.
        found: String,
    },
    /// A row that is not later than the one before it.
    #[error("{}: step {step} after step {last}; steps must increase (truncate the log on resume)", path.display())]
    StepNotAfter {
        /// The log.
        path: PathBuf,
        /// The row's step.
        step: u64,
        /// The last step in the log.
        last: u64,
    },
    /// A log that is damaged before its end, so that cutting its tail would lose good rows.
    #[error("{} is damaged at byte {at_byte}, before its end; restore it from a copy, or move it away to start a new one", path.display())]
    DamagedLog {
        /// The log.
        path: PathBuf,
        /// Where its last good row ends.
        at_byte: u64,
    },
    /// Signal handlers could not be put in place.
    #[error("cannot listen for {signal}: {source}")]
    NoSignals {
        /// The signal.
        signal: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What is wrong with a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The list of files, written last, is not there: the checkpoint was never finished.
    #[error("it has no DONE file")]
    NotDone,
    /// The list of files cannot be read.
    #[error("line {line} of its DONE file is not a hash and a name")]
    BadDone {
        /// The line, from 1.
        line: usize,
    },
    /// A listed file is gone.
    #[error("{name} is missing")]
    Missing {
        /// The file.
        name: String,
    },
    /// A file that is not listed: not ours, or the list lost a line.
    #[error("{name} is not in its DONE file")]
    Unlisted {
        /// The file.
        name: String,
    },
    /// A link, a folder or a device where a plain file should be.
    #[error("{name} is not a plain file")]
    NotPlain {
        /// The entry.
        name: String,
    },
    /// A file with other bytes than were written: truncated, flipped or replaced.
    #[error("{name} does not have the hash in its DONE file")]
    WrongHash {
        /// The file.
        name: String,
    },
    /// More than the limits allow; nothing of it was read.
    #[error("{what} is over the size limit of {cap}")]
    TooLarge {
        /// The file, or the whole.
        what: String,
        /// The limit.
        cap: u64,
    },
}

impl LabError {
    /// Adds what to do about a full disk to an error in the training of a run, which can be resumed.
    pub fn while_training(self, run: &Path) -> LabError {
        match self {
            LabError::StorageFull { .. } => {
                LabError::TrainingStorageFull { run: run.to_owned(), source: Box::new(self) }
            }
            other => other,
        }
    }

    /// Tells apart the troubles that a person can do something about.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> LabError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                LabError::StorageFull { doing, path, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                LabError::AccessDenied { doing, path, source }
            }
            // The second is what a system says that is asked to make a folder of a file.
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                LabError::NotAFolder { doing, path }
            }
            _ => LabError::Io { doing, path, source },
        }
    }
}

fn list(steps: &[u64]) -> String {
    if steps.is_empty() {
        return "none".to_owned();
    }
    steps.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
