//! The layout of a run on disk, and the lock that lets one process at a time write it.
//!
//! ```text
//! config.toml    the resolved choices, as text      checkpoints/   see `checkpoint`
//! manifest.json  see `manifest`                     crash/         see `crash`
//! metrics.jsonl  the same for the same seed         adapt/         what evaluations write
//! timing.jsonl   speeds and seconds                 run.lock       who writes this run
//! tb/            see `tensorboard`                  replays/       encounters, moment by moment
//! conservative/  see `conservative`
//! ```

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
use crate::trained_agent::refuse_lost_checkpoints;

const CONFIG: &str = "config.toml";
const MANIFEST: &str = "manifest.json";
const METRICS: &str = "metrics.jsonl";
const TIMING: &str = "timing.jsonl";
const TENSORBOARD: &str = "tb";
const CHECKPOINTS: &str = "checkpoints";
const ADAPT: &str = "adapt";
const REPLAYS: &str = "replays";
const LOCK: &str = "run.lock";

/// A run that this process writes. Nobody else can while the value lives.
#[derive(Debug)]
pub struct RunFolder {
    view: RunView,
    manifest: Manifest,
    /// When this process took the run, and the seconds that earlier ones had spent.
    since: Instant,
    secs_before: f64,
    _lock: RunLock,
}

impl RunFolder {
    /// Starts a run in a folder that is new or empty. `config` is the resolved configuration, kept as it is given.
    pub fn create(path: &Path, config: &str, spec: RunSpec) -> Result<RunFolder, LabError> {
        RunFolder::create_with(path, config, spec, || Ok(()))
    }

    /// Like [`RunFolder::create`]; `prepare` writes what the folder needs before it is a run.
    pub(crate) fn create_with(
        path: &Path,
        config: &str,
        spec: RunSpec,
        prepare: impl FnOnce() -> Result<(), LabError>,
    ) -> Result<RunFolder, LabError> {
        // Before the lock, so that a refused folder is left without a trace; after it, because another process may
        // have come first.
        check_empty(path)?;
        durable::create_folder(path)?;
        let lock = RunLock::take(path)?;
        check_empty(path)?;
        // Of a process that was killed while it started a run here, perhaps one with other keys.
        durable::remove_drafts(path)?;
        durable::remove_folder(&path.join(fallback_agent::FOLDER))?;
        let manifest = Manifest::starting(spec);
        for folder in [TENSORBOARD, CHECKPOINTS, ADAPT] {
            durable::create_folder(&path.join(folder))?;
        }
        prepare()?;
        durable::write_atomically(&path.join(CONFIG), config.as_bytes())?;
        // Last, because a folder is a run once it has a manifest.
        manifest.write(&path.join(MANIFEST))?;
        durable::sync_folder(durable::folder_of(path))?;
        let view = RunView { path: path.to_owned() };
        Ok(RunFolder { view, manifest, since: Instant::now(), secs_before: 0.0, _lock: lock })
    }

    /// Takes an existing run, to go on with it. Changes nothing but leftovers; see [`RunFolder::mark_resumed`].
    pub fn open(path: &Path) -> Result<RunFolder, LabError> {
        let view = RunView::open(path)?;
        let lock = RunLock::take(path)?;
        // Read under the lock: the process before us may just have written it.
        let manifest = view.manifest()?;
        durable::remove_drafts(path)?;
        let secs_before = manifest.wall_clock_secs;
        Ok(RunFolder { view, manifest, since: Instant::now(), secs_before, _lock: lock })
    }

    /// What anybody may read of the run.
    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// The run's folder.
    pub fn path(&self) -> &Path {
        &self.view.path
    }

    /// What the run is and how it stands, as last written.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Writes down that the run goes on. Call it once a checkpoint is loaded: a resume that fails before is none.
    pub fn mark_resumed(&mut self) -> Result<(), LabError> {
        let n_resumes = self.manifest.n_resumes + 1;
        self.rewrite(|manifest| {
            manifest.n_resumes = n_resumes;
            manifest.ended_at = None;
            manifest.status = RunStatus::Running;
        })
    }

    /// Writes down the time spent so far. Call it with each checkpoint: a killed process cannot.
    pub fn record_wall_clock(&mut self) -> Result<(), LabError> {
        self.rewrite(|_| ())
    }

    /// Writes down how the run ended. The lock stays until the value is dropped.
    pub fn end(&mut self, status: RunStatus) -> Result<(), LabError> {
        assert_ne!(status, RunStatus::Running, "a run that ends is not running");
        self.rewrite(|manifest| {
            manifest.ended_at = Some(now());
            manifest.status = status;
        })
    }

    /// The log of numbers that depend on the seed alone, `metrics.jsonl`.
    pub fn metrics(&self) -> Result<MetricsLog, LabError> {
        MetricsLog::open(&self.view.metrics_path())
    }

    /// The log of numbers that depend on the clock, `timing.jsonl`; apart, so that the other can be compared.
    pub fn timing(&self) -> Result<MetricsLog, LabError> {
        MetricsLog::open(&self.path().join(TIMING))
    }

    /// The curves for TensorBoard, `tb/`.
    pub fn tensorboard(&self) -> Result<TensorBoardLog, LabError> {
        TensorBoardLog::open(&self.path().join(TENSORBOARD))
    }

    /// The states of the run, `checkpoints/`.
    pub fn checkpoints(&self, limits: CheckpointLimits) -> Result<CheckpointStore, LabError> {
        CheckpointStore::open(&self.view.checkpoints_path(), limits)
    }

    /// Leaves what a person needs to find out why the run failed; see [`write_crash_bundle`].
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
        // Only now: what is in memory is what is on disk.
        self.manifest = manifest;
        Ok(())
    }
}

/// A run that somebody else may be writing at this moment. Everything here only reads.
#[derive(Clone, Debug)]
pub struct RunView {
    path: PathBuf,
}

impl RunView {
    /// Finds the run in a folder.
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

    /// Whether a process writes the run now; none where the file system cannot tell. A run whose manifest says that it is
    /// running, and that nobody writes, was killed.
    pub fn has_writer(&self) -> Option<bool> {
        let lock = match File::open(self.path.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) => return (error.kind() == ErrorKind::NotFound).then_some(false),
        };
        match lock.try_lock_shared() {
            // Given back at once: a writer that comes meanwhile asks again, see [`RunLock::take`].
            Ok(()) => lock.unlock().ok().map(|()| false),
            Err(TryLockError::WouldBlock) => Some(true),
            Err(TryLockError::Error(_)) => None,
        }
    }

    /// The resolved configuration, as it was given.
    pub fn config(&self) -> Result<String, LabError> {
        durable::read_text(&self.path.join(CONFIG))
    }

    /// What the run is and how it stands.
    pub fn manifest(&self) -> Result<Manifest, LabError> {
        Manifest::read(&self.path.join(MANIFEST))
    }

    /// Every whole row of `metrics.jsonl`.
    pub fn metrics(&self) -> Result<Vec<MetricsRecord>, LabError> {
        read_metrics(&self.metrics_path())
    }

    /// Every whole row of `timing.jsonl`.
    pub fn timing(&self) -> Result<Vec<MetricsRecord>, LabError> {
        read_metrics(&self.path.join(TIMING))
    }

    /// The step of the last row of `timing.jsonl`, for progress: found without reading the whole file, 0 where there is none.
    pub fn last_step(&self) -> u64 {
        // More than any row has.
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

    /// The states of the run. A checkpoint that its writer deletes meanwhile counts as never seen.
    pub fn checkpoints(&self, limits: CheckpointLimits) -> CheckpointReader {
        CheckpointReader::new(&self.checkpoints_path(), limits)
    }

    /// The folder for results of adaptation. Several evaluations may write there, so each file is written by
    /// [`write_atomically`](crate::write_atomically).
    pub fn adapt_path(&self) -> PathBuf {
        self.path.join(ADAPT)
    }

    /// The folder for encounters that were written down. It need not be there.
    pub fn replays_path(&self) -> PathBuf {
        self.path.join(REPLAYS)
    }

    fn metrics_path(&self) -> PathBuf {
        self.path.join(METRICS)
    }

    fn checkpoints_path(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }
}

/// The right to write a run, or a lab, until it is dropped. The system takes it back when the process ends in whatever way, so a lock file left by a
/// dead process is no obstacle; the number in it only tells people whom to look for.
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
        // Somebody who only asks whether there is a writer has the file for a moment.
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
                // Some systems do not let a locked file be read; then the process stays unnamed.
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
        // Closing the file is not enough: a child that is just being started has it open too, for a moment. If this
        // fails, the lock ends with the process.
        let _ = self.file.unlock();
    }
}

/// Refuses a folder with anything in it but a lock, and what a process leaves that was killed while it made a run there.
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
        // A run that lost its checkpoints cannot be resumed, so that advice would not fit.
        let lost = refuse_lost_checkpoints(&RunView { path: path.to_owned() }).err();
        let lost = lost.filter(|error| matches!(error, LabError::LostCheckpoints { .. }));
        return Err(lost.unwrap_or_else(|| LabError::FolderHasRun { path: path.to_owned() }));
    }
    found.retain(|name| !is_left_by_creation(&path.join(name), name));
    match found.into_iter().next() {
        Some(found) => Err(LabError::NotEmpty { path: path.to_owned(), found }),
        None => Ok(()),
    }
}

/// Whether creating a run makes this, so that without a manifest it is worth nothing.
fn is_left_by_creation(path: &Path, name: &str) -> bool {
    // Made before the others: without it, a file or folder of one of their names belongs to a person.
    let was_begun = || path.parent().is_some_and(|folder| folder.join(ADAPT).is_dir());
    match name {
        LOCK => true,
        CONFIG => was_begun(),
        fallback_agent::FOLDER => was_begun() && fallback_agent::is_copy(path),
        TENSORBOARD | CHECKPOINTS | ADAPT => {
            std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
        }
        _ => name.starts_with(STAGED),
    }
}
