//! The layout of a run folder, and the lock that allows one writer at a time.
//!
//! ```text
//! config.toml    the resolved keys                  checkpoints/   see `checkpoint`
//! manifest.json  see `manifest`                     crash/         see `crash`
//! metrics.jsonl  identical for the same seed        adapt/         records of evaluations
//! timing.jsonl   speeds and durations               run.lock       the lock of the writer
//! tb/            see `tensorboard`                  replays/       recorded encounters
//! conservative/  see `fallback_agent`
//! ```
//!
//! A recorded run (see `keep`) is a run folder with one checkpoint, of the weights alone.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::checkpoint::{CheckpointLimits, CheckpointReader, CheckpointStore};
use crate::crash::write_crash_bundle;
use crate::durable::{self, STAGED};
use crate::error::LabError;
use crate::fallback_agent;
use crate::manifest::{Manifest, RunSpec, RunStatus, now};
use crate::metrics::{MetricsLog, MetricsRecord, read_metrics};
use crate::tensorboard::TensorBoardLog;
use crate::trained_agent::refuse_to_resume;

pub(crate) const CONFIG: &str = "config.toml";
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const METRICS: &str = "metrics.jsonl";
const TIMING: &str = "timing.jsonl";
const TENSORBOARD: &str = "tb";
pub(crate) const CHECKPOINTS: &str = "checkpoints";
pub(crate) const ADAPT: &str = "adapt";
pub(crate) const REPLAYS: &str = "replays";
const LOCK: &str = "run.lock";

/// A run that this process may write. It holds the lock of the run folder until it is dropped.
#[derive(Debug)]
pub struct RunFolder {
    view: RunView,
    manifest: Manifest,
    /// The time at which this process opened the run; `secs_before` are the seconds of earlier processes.
    since: Instant,
    secs_before: f64,
    _lock: RunLock,
}

impl RunFolder {
    /// Creates a run in a new or empty folder. `config` is the resolved configuration, which is stored unchanged.
    pub fn create(path: &Path, config: &str, spec: RunSpec) -> Result<RunFolder, LabError> {
        RunFolder::create_with(path, config, spec, || Ok(()))
    }

    /// Like [`RunFolder::create`], but calls `prepare` before the manifest is written.
    pub(crate) fn create_with(
        path: &Path,
        config: &str,
        spec: RunSpec,
        prepare: impl FnOnce() -> Result<(), LabError>,
    ) -> Result<RunFolder, LabError> {
        // Checked before the lock, so that a rejected folder stays unchanged, and again under the lock, because another process
        // may have created a run in between.
        check_empty(path)?;
        durable::create_folder(path)?;
        let lock = RunLock::take(path)?;
        check_empty(path)?;
        // Files of a process that was killed while it created a run here, perhaps with other keys.
        durable::remove_drafts(path)?;
        durable::remove_folder(&path.join(fallback_agent::FOLDER))?;
        let manifest = Manifest::starting(spec);
        for folder in [TENSORBOARD, CHECKPOINTS, ADAPT] {
            durable::create_folder(&path.join(folder))?;
        }
        prepare()?;
        durable::write_atomically(&path.join(CONFIG), config.as_bytes())?;
        // The manifest comes last, because it makes the folder a run.
        manifest.write(&path.join(MANIFEST))?;
        durable::sync_folder(durable::folder_of(path))?;
        let view = RunView { path: path.to_owned() };
        Ok(RunFolder { view, manifest, since: Instant::now(), secs_before: 0.0, _lock: lock })
    }

    /// Opens an existing run for writing. Only removes unfinished files; see [`RunFolder::mark_resumed`].
    pub fn open(path: &Path) -> Result<RunFolder, LabError> {
        let view = RunView::open(path)?;
        let lock = RunLock::take(path)?;
        // Read under the lock, because the previous writer may just have updated it.
        let manifest = view.manifest()?;
        durable::remove_drafts(path)?;
        let secs_before = manifest.wall_clock_secs;
        Ok(RunFolder { view, manifest, since: Instant::now(), secs_before, _lock: lock })
    }

    /// The read-only view of the run.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.view.path
    }

    /// The manifest, as last written.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Records in the manifest that the run was resumed. Call it after a checkpoint is loaded, so that a failed resume does not
    /// count.
    pub fn mark_resumed(&mut self) -> Result<(), LabError> {
        let n_resumes = self.manifest.n_resumes + 1;
        self.rewrite(|manifest| {
            manifest.n_resumes = n_resumes;
            manifest.ended_at = None;
            manifest.status = RunStatus::Running;
        })
    }

    /// Records the training time so far in the manifest. Call it with each checkpoint, because a killed process cannot.
    pub fn record_wall_clock(&mut self) -> Result<(), LabError> {
        self.rewrite(|_| ())
    }

    /// Records the end of the run in the manifest. The lock is held until the value is dropped.
    pub fn end(&mut self, status: RunStatus) -> Result<(), LabError> {
        assert_ne!(status, RunStatus::Running, "a run that ends is not running");
        self.rewrite(|manifest| {
            manifest.ended_at = Some(now());
            manifest.status = status;
        })
    }

    /// Opens `metrics.jsonl`, the log of the values that depend only on the configuration and the seed.
    pub fn metrics(&self) -> Result<MetricsLog, LabError> {
        MetricsLog::open(&self.view.metrics_path())
    }

    /// Opens `timing.jsonl`, the log of the values that depend on the clock.
    pub fn timing(&self) -> Result<MetricsLog, LabError> {
        MetricsLog::open(&self.path().join(TIMING))
    }

    /// Opens the TensorBoard log in `tb/`.
    pub fn tensorboard(&self) -> Result<TensorBoardLog, LabError> {
        TensorBoardLog::open(&self.path().join(TENSORBOARD))
    }

    /// Opens the checkpoints for writing, in `checkpoints/`.
    pub fn checkpoints(&self, limits: CheckpointLimits) -> Result<CheckpointStore, LabError> {
        CheckpointStore::open(&self.view.checkpoints_path(), limits)
    }

    /// Writes files for the diagnosis of a failure; see [`write_crash_bundle`].
    pub fn write_crash_bundle(
        &self,
        step: u64,
        reason: &str,
        files: &[(&str, &[u8])],
    ) -> Result<PathBuf, LabError> {
        write_crash_bundle(self.path(), step, reason, files)
    }

    fn rewrite(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), LabError> {
        let mut manifest = self.manifest.clone();
        manifest.wall_clock_secs = self.secs_before + self.since.elapsed().as_secs_f64();
        change(&mut manifest);
        manifest.write(&self.path().join(MANIFEST))?;
        // Updated after the write, so that memory and disk agree.
        self.manifest = manifest;
        Ok(())
    }
}

/// A read-only view of a run, which another process may be writing.
#[derive(Clone, Debug)]
pub struct RunView {
    path: PathBuf,
}

impl RunView {
    /// Opens the run in a folder.
    pub fn open(path: &Path) -> Result<RunView, LabError> {
        match path.join(MANIFEST).metadata() {
            Ok(_) => Ok(RunView { path: path.to_owned() }),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Err(LabError::NotARun { path: path.to_owned(), missing: MANIFEST })
            }
            Err(source) => Err(LabError::io("read", path, source)),
        }
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a process is writing the run; `None` if the file system has no locks. A run with status `running` but without a
    /// writer was killed.
    pub fn has_writer(&self) -> Option<bool> {
        let lock = match File::open(self.path.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) => return (error.kind() == ErrorKind::NotFound).then_some(false),
        };
        match lock.try_lock_shared() {
            // Released at once. A writer that tries in between tries again, see [`RunLock::take`].
            Ok(()) => lock.unlock().ok().map(|()| false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }

    /// Reads the resolved configuration as text.
    pub fn config(&self) -> Result<String, LabError> {
        durable::read_text(&self.path.join(CONFIG))
    }

    /// Reads the manifest.
    pub fn manifest(&self) -> Result<Manifest, LabError> {
        Manifest::read(&self.path.join(MANIFEST))
    }

    /// Reads all complete rows of `metrics.jsonl`.
    pub fn metrics(&self) -> Result<Vec<MetricsRecord>, LabError> {
        read_metrics(&self.metrics_path())
    }

    /// Reads all complete rows of `timing.jsonl`.
    pub fn timing(&self) -> Result<Vec<MetricsRecord>, LabError> {
        read_metrics(&self.path.join(TIMING))
    }

    /// The step of the last row of `timing.jsonl`, for progress displays; 0 without rows. Reads only the end of the file.
    pub fn last_step(&self) -> u64 {
        // Longer than any row.
        const TAIL: u64 = 4096;
        let tail = || {
            let mut file = File::open(self.path.join(TIMING))?;
            let length = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
            let mut bytes = Vec::new();
            file.take(TAIL).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        let bytes = tail().unwrap_or_default();
        let rows = bytes.split_inclusive(|byte| *byte == b'\n').rev();
        let whole =
            rows.filter_map(|row| serde_json::from_slice::<MetricsRecord>(row.strip_suffix(b"\n")?).ok());
        whole.map(|row| row.step).next().unwrap_or(0)
    }

    /// The checkpoints of the run. A checkpoint that the writer deletes during a read counts as missing.
    pub fn checkpoints(&self, limits: CheckpointLimits) -> CheckpointReader {
        CheckpointReader::new(&self.checkpoints_path(), limits)
    }

    /// The folder of evaluations. Several processes may write there, so each file is written by
    /// [`write_atomically`](crate::write_atomically).
    pub(crate) fn adapt_path(&self) -> PathBuf {
        self.path.join(ADAPT)
    }

    /// The folder of replays. It may not exist.
    pub(crate) fn replays_path(&self) -> PathBuf {
        self.path.join(REPLAYS)
    }

    fn metrics_path(&self) -> PathBuf {
        self.path.join(METRICS)
    }

    fn checkpoints_path(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }
}

/// An exclusive lock on a run or lab folder, held until it is dropped. The operating system releases it when the process ends
/// in any way, so the lock file of a dead process does not block others. The file contains the process id for error messages.
#[derive(Debug)]
pub(crate) struct RunLock {
    file: File,
}

impl RunLock {
    pub(crate) fn take(folder: &Path) -> Result<RunLock, LabError> {
        let path = folder.join(LOCK);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| LabError::io("lock", &path, source))?;
        // `RunView::has_writer` of another process holds the lock for a moment.
        let mut locked = file.try_lock();
        let mut n_tries = 1;
        while n_tries < 6 && matches!(locked, Err(TryLockError::WouldBlock)) {
            std::thread::sleep(Duration::from_millis(10));
            locked = file.try_lock();
            n_tries += 1;
        }
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // Some systems do not allow reading a locked file; then the message has no process id.
                let _ = file.take(20).read_to_string(&mut text);
                return Err(LabError::InUse { path: folder.to_owned(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(source)) if source.kind() == ErrorKind::Unsupported => {
                return Err(LabError::NoLocks { path, source });
            }
            Err(TryLockError::Error(source)) => return Err(LabError::io("lock", &path, source)),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
        written.map_err(|source| LabError::io("lock", &path, source))?;
        Ok(RunLock { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file is not enough, because a child process has it open for a moment while it starts. If this fails, the
        // lock is released when the process ends.
        let _ = self.file.unlock();
    }
}

/// Rejects a folder that contains anything except a lock file and the files of an interrupted creation of a run.
fn check_empty(path: &Path) -> Result<(), LabError> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(LabError::io("create a run in", path, source)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|source| LabError::io("read", path, source))?;
        found.push(entry.file_name().to_string_lossy().into_owned());
    }
    found.sort();
    if found.iter().any(|name| name == MANIFEST) {
        // The error must not suggest to resume a run that cannot be resumed.
        let lasting = refuse_to_resume(&RunView { path: path.to_owned() }).err();
        let lasting = lasting
            .filter(|error| matches!(error, LabError::LostCheckpoints { .. } | LabError::RecordedRun { .. }));
        return Err(lasting.unwrap_or_else(|| LabError::FolderHasRun { path: path.to_owned() }));
    }
    found.retain(|name| !is_left_by_creation(&path.join(name), name));
    match found.into_iter().next() {
        Some(found) => Err(LabError::NotEmpty { path: path.to_owned(), found }),
        None => Ok(()),
    }
}

/// Whether a file or folder is left by an interrupted creation of a run.
fn is_left_by_creation(path: &Path, name: &str) -> bool {
    // The creation makes this folder first. Without it, a file or folder of the same name belongs to the user.
    let has_begun = || path.parent().is_some_and(|folder| folder.join(ADAPT).is_dir());
    match name {
        LOCK => true,
        CONFIG => has_begun(),
        fallback_agent::FOLDER => has_begun() && fallback_agent::is_copy(path),
        TENSORBOARD | CHECKPOINTS | ADAPT => {
            std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        }
        _ => name.starts_with(STAGED),
    }
}
