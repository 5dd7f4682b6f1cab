//! Errors of this crate. Each message says what was found, what was expected and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::checkpoint::DamagedCheckpoint;
use crate::signals::StopSignal;

/// An error in the files of a run, or in the work on it. No error damages data that was durable before.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// An unknown game, key or peer, or an invalid value.
    #[error(transparent)]
    Game(#[from] pace_games::ConfigError),
    /// Training failed, or its saved state cannot be restored.
    #[error(transparent)]
    Train(#[from] pace_learn::TrainError),
    /// A record that cannot be written.
    #[error(transparent)]
    Record(#[from] pace_report::RecordError),
    /// A record file that cannot be read.
    #[error("{}: {source}", path.display())]
    BadRecord {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: pace_report::RecordError,
    },
    /// An evaluation of an agent that was trained further afterwards.
    #[error(
        "{}: evaluates the agent after {found} of {expected} training steps; run `pace adapt` again",
        path.display()
    )]
    Outdated {
        /// The file.
        path: PathBuf,
        /// Training steps of the evaluated agent.
        found: u64,
        /// Training steps of the run.
        expected: u64,
    },
    /// Some files of many were skipped: unreadable or outdated. The rest of the output was written.
    #[error("{n} files were skipped; first: {first}")]
    FilesSkipped {
        /// Number of skipped files.
        n: usize,
        /// The error of the first one.
        first: String,
    },
    /// A folder that contains no run.
    #[error("{} has no runs in it; expected a run folder or a folder of runs, each with a manifest.json", path.display())]
    NoRuns {
        /// The folder.
        path: PathBuf,
    },
    /// An invalid configuration file.
    #[error("{file}: {reason}")]
    BadConfig {
        /// The file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// A game whose observation size or number of actions differs from training.
    #[error("the agent expects observations of size {} and {} actions, but with these keys the game has {} and {}; change the keys so that both sizes match (`pace list games` lists them)", trained.0, trained.1, found.0, found.1)]
    ShapeMismatch {
        /// Observation size and number of actions in training.
        trained: (usize, usize),
        /// Observation size and number of actions of the game to play.
        found: (usize, usize),
    },
    /// A run that has not saved a checkpoint yet.
    #[error("{} has no checkpoint yet; wait for its first one, or continue the run with `pace resume`", path.display())]
    NoCheckpoint {
        /// The run folder.
        path: PathBuf,
    },
    /// A trained run whose checkpoints are no longer in its folder.
    #[error("{} was trained for {steps} steps and has no checkpoint: its agent cannot be loaded, and training it would overwrite its record; copy its checkpoints folder there, or train the run again with another --out", path.display())]
    LostCheckpoints {
        /// The run folder.
        path: PathBuf,
        /// The last step of its log.
        steps: u64,
    },
    /// A recorded run has no optimiser state.
    #[error("{} is a recorded run: it has the final weights and no optimiser state, so it can be evaluated but not resumed; train it again with another --out", path.display())]
    RecordedRun {
        /// The run folder.
        path: PathBuf,
    },
    /// Weights in a recorded run that are not those that were recorded.
    #[error("{}: found other weights than recorded, expected the hash in manifest.json; restore the file from a copy", path.display())]
    OtherWeights {
        /// The file.
        path: PathBuf,
    },
    /// A run that cannot be recorded.
    #[error("{}: {reason}", path.display())]
    NotRecordable {
        /// The run folder.
        path: PathBuf,
        /// The reason, with what was expected and what to do.
        reason: String,
    },
    /// A new run cannot start in a folder that contains a run.
    #[error("{} already contains a run; continue it with `pace resume {}`, or choose another --out", path.display(), path.display())]
    FolderHasRun {
        /// The folder.
        path: PathBuf,
    },
    /// A new run cannot start in a folder that contains other files.
    #[error("{} is not empty (it holds {found}); a new run needs a new or empty folder; choose another --out", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// A name found in it.
        found: String,
    },
    /// A folder that is not a run folder.
    #[error("{} is not a run folder: it has no {missing}; expected a folder made by `pace train … --out`", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The missing file, which every run has.
        missing: &'static str,
    },
    /// A folder of a lab contains another run than the planned one.
    #[error("{}: {reason}; move the folder away to train the run again, or choose another --out", path.display())]
    RunMismatch {
        /// The run folder.
        path: PathBuf,
        /// The difference.
        reason: String,
    },
    /// Another process is writing this run.
    #[error("{} is in use{}; one process at a time may write there; wait for it or stop it", path.display(), pid.map_or(String::new(), |pid| format!(" by process {pid}")))]
    InUse {
        /// The run folder.
        path: PathBuf,
        /// The id of that process, if it could be read.
        pid: Option<u32>,
    },
    /// A file system without file locks, so that a single writer cannot be enforced.
    #[error("the file system of {} has no file locks, which keep two processes from writing one run; use a run folder on a local disk", path.display())]
    NoLocks {
        /// The lock file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The disk or the user's quota is full.
    #[error("no space left to {doing} {}; what was saved before is intact; free some space", path.display())]
    StorageFull {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The disk filled up during training.
    #[error("{source}, then continue with `pace resume {}`", run.display())]
    TrainingStorageFull {
        /// The run folder.
        run: PathBuf,
        /// The error of the write.
        source: Box<LabError>,
    },
    /// Results of an evaluation could not be written. The caller has printed them.
    #[error("the results were printed, but not all of them could be saved: {source}")]
    NotSaved {
        /// The error of the write.
        source: Box<LabError>,
    },
    /// A record larger than readers accept.
    #[error("{}: found a record of more than {cap} bytes, expected a smaller one; evaluate fewer episodes or peers", path.display())]
    RecordTooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size.
        cap: u64,
    },
    /// Access to a file or folder is denied, or its disk is mounted read-only.
    #[error("not allowed to {doing} {} ({source}); check its owner, its permissions and whether its disk is read-only, or choose another folder", path.display())]
    AccessDenied {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A part of the path is a file where a folder was expected.
    #[error("cannot {doing} {}: a part of this path is a file, expected a folder; choose another path", path.display())]
    NotAFolder {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
    },
    /// Any other file system error.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A manifest that cannot be read.
    #[error("{}: {reason}; expected a manifest written by pace; restore the file or start another run", path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A manifest in another format version.
    #[error("{} has format {found}, this build reads format {expected}; use the version of pace that wrote it", path.display())]
    ManifestVersion {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: u64,
        /// The format version that this build reads.
        expected: u32,
    },
    /// A text file that is too large or not UTF-8.
    #[error("{}: {reason}; expected a small text file in UTF-8", path.display())]
    BadText {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// An invalid file name in a checkpoint or crash bundle.
    #[error(
        "file name \"{found}\": expected 1 to 64 of a-z 0-9 . _ - without a dot at either end, each name once"
    )]
    BadFileName {
        /// The name.
        found: String,
    },
    /// Content over a size limit of checkpoints.
    #[error("{what} has {found} {unit}, at most {cap} are allowed in a checkpoint; set a smaller network")]
    TooLarge {
        /// The file, or the whole checkpoint.
        what: String,
        /// Its size.
        found: u64,
        /// The limit.
        cap: u64,
        /// The unit of the size.
        unit: &'static str,
    },
    /// There is no checkpoint of the requested step.
    #[error("no checkpoint of step {step} in {}; there are: {}", folder.display(), list(known))]
    NoSuchCheckpoint {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// The step.
        step: u64,
        /// The steps of the existing checkpoints.
        known: Vec<u64>,
    },
    /// A checkpoint that differs from the one that was written.
    #[error("checkpoint {} is damaged: {damage}; resume from another one, or restore it from a copy", path.display())]
    DamagedCheckpoint {
        /// Its folder.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// All checkpoints are damaged. The run does not start over by itself.
    #[error("every checkpoint in {} is damaged ({}); restore one from a copy, or train again with another --out", folder.display(), damaged.iter().map(|one| format!("{}: {}", one.step, one.damage)).collect::<Vec<_>>().join("; "))]
    NoValidCheckpoint {
        /// The folder of checkpoints.
        folder: PathBuf,
        /// The damaged checkpoints, newest first.
        damaged: Vec<DamagedCheckpoint>,
    },
    /// A valid checkpoint lacks a file that its reader needs.
    #[error("checkpoint of step {step} has no file {name}; it has: {}", known.join(", "))]
    NoSuchFile {
        /// The checkpoint's step.
        step: u64,
        /// The file.
        name: String,
        /// The names of the existing files.
        known: Vec<String>,
    },
    /// A metric that is infinite or not a number.
    #[error("metric {metric} is {value} at step {step}; expected a finite number; the row was not written")]
    NotFinite {
        /// Its name.
        metric: String,
        /// Its value.
        value: f64,
        /// The row's step.
        step: u64,
    },
    /// An invalid metric name.
    #[error(
        "metric name \"{found}\": expected 1 to 128 printable characters, each name once in a row, and not \"step\""
    )]
    BadMetricName {
        /// The name.
        found: String,
    },
    /// A row whose step is not after that of the row before.
    #[error("{}: step {step} after step {last}; steps must increase (truncate the log on resume)", path.display())]
    StepNotAfter {
        /// The log.
        path: PathBuf,
        /// The row's step.
        step: u64,
        /// The step of the last row in the log.
        last: u64,
    },
    /// A log that is damaged before its end: truncating it would lose valid rows.
    #[error("{} is damaged at byte {at_byte}, before its end; restore it from a copy, or move it away to start a new one", path.display())]
    DamagedLog {
        /// The log.
        path: PathBuf,
        /// The end of the last valid row before the damage.
        at_byte: u64,
    },
    /// A signal handler could not be installed.
    #[error("cannot listen for {signal}: {source}")]
    NoSignals {
        /// The signal.
        signal: StopSignal,
        /// The system's error.
        source: io::Error,
    },
}

/// The kind of damage of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The list of files, which is written last, is missing: the checkpoint was never finished.
    #[error("it has no DONE file")]
    NotDone,
    /// The list of files cannot be read.
    #[error("line {line} of its DONE file is not a hash and a name")]
    BadDone {
        /// The line, from 1.
        line: usize,
    },
    /// A listed file is missing.
    #[error("{name} is missing")]
    Missing {
        /// The file.
        name: String,
    },
    /// A file is not listed: it was added, or the list lost a line.
    #[error("{name} is not in its DONE file")]
    Unlisted {
        /// The file.
        name: String,
    },
    /// A link, folder or device in place of a plain file.
    #[error("{name} is not a plain file")]
    NotPlain {
        /// The entry.
        name: String,
    },
    /// The content of a file changed: truncated, flipped or replaced.
    #[error("{name} does not have the hash in its DONE file")]
    WrongHash {
        /// The file.
        name: String,
    },
    /// A file or the whole checkpoint is over a size limit, so it was not read.
    #[error("{what} is over the size limit of {cap}")]
    TooLarge {
        /// The file, or the whole checkpoint.
        what: String,
        /// The limit.
        cap: u64,
    },
}

impl LabError {
    /// Adds to a full-disk error during training that the run can be resumed. Other errors stay unchanged.
    pub fn while_training(self, run: &Path) -> LabError {
        match self {
            LabError::StorageFull { .. } => {
                LabError::TrainingStorageFull { run: run.to_owned(), source: Box::new(self) }
            }
            other => other,
        }
    }

    /// Wraps a file system error, with an own variant for each kind that the user can fix.
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> LabError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                LabError::StorageFull { doing, path, source }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                LabError::AccessDenied { doing, path, source }
            }
            // `AlreadyExists` is the error for creating a folder where a file is.
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
