//! Checkpoints: saved states of a run. Each is a folder of named files that exists completely or not at all.
//!
//! A checkpoint is written into a staged folder, synced, listed with the hash of each file in `DONE`, synced again, and
//! only then renamed to its step. `DONE` has the format of `b3sum`, so `b3sum --check DONE` verifies it by hand.
//! The caller defines the content of the files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::durable::{self, REPLACED, STAGED, is_there};
use crate::error::{Damage, LabError};

/// The list of files and their hashes; a checkpoint without it was never finished.
pub(crate) const DONE: &str = "DONE";

/// Limits on the number and size of checkpoints. They also protect a reader of an untrusted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// Number of checkpoints to keep.
    pub keep: NonZeroUsize,
    /// Maximum size of a file.
    pub max_file_bytes: u64,
    /// Maximum total size of one checkpoint.
    pub max_total_bytes: u64,
    /// Maximum number of files in one checkpoint.
    pub max_files: usize,
}

impl Default for CheckpointLimits {
    /// Keeps three checkpoints, because two damaged ones in a row are very rare. The sizes are far above those of these networks.
    fn default() -> CheckpointLimits {
        CheckpointLimits {
            keep: NonZeroUsize::new(3).expect("three is not zero"),
            max_file_bytes: 1 << 30,
            max_total_bytes: 2 << 30,
            max_files: 64,
        }
    }
}

/// A saved state of a run, complete and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The step at which it was saved.
    pub step: u64,
    /// Newer checkpoints that were skipped because they are damaged, newest first. The caller should warn about them.
    pub skipped: Vec<DamagedCheckpoint>,
    files: Vec<(String, Vec<u8>)>,
}

impl Checkpoint {
    /// The content of one of its files.
    pub fn file(&self, name: &str) -> Result<&[u8], LabError> {
        let found = self.files.iter().find(|(other, _)| other == name);
        found.map(|(_, contents)| contents.as_slice()).ok_or_else(|| LabError::NoSuchFile {
            step: self.step,
            name: name.to_owned(),
            known: self.files.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// The names of its files, in the order of saving.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str())
    }
}

/// A damaged checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedCheckpoint {
    /// Its step.
    pub step: u64,
    /// Its folder.
    pub path: PathBuf,
    /// The kind of damage.
    pub damage: Damage,
}

/// The result of [`CheckpointStore::save`].
#[derive(Debug)]
pub struct SavedCheckpoint {
    /// The new checkpoint's folder.
    pub path: PathBuf,
    /// The total size of its files.
    pub n_bytes: u64,
    /// The steps of the older checkpoints that were deleted.
    pub pruned: Vec<u64>,
    /// The error if an older checkpoint could not be deleted. The new checkpoint is durable even then.
    pub prune_error: Option<LabError>,
}

/// The checkpoints of a run that this process writes.
#[derive(Clone, Debug)]
pub struct CheckpointStore {
    reader: CheckpointReader,
}

impl CheckpointStore {
    /// Opens or creates the folder, and removes the unfinished files of a killed process. Only the process that holds the run's
    /// lock may call this; others use [`CheckpointReader`].
    pub fn open(folder: &Path, limits: CheckpointLimits) -> Result<CheckpointStore, LabError> {
        durable::create_folder(folder)?;
        let store = CheckpointStore { reader: CheckpointReader::new(folder, limits) };
        store.clear_leftovers()?;
        Ok(store)
    }

    /// Saves the files as the checkpoint of `step`. After success, the checkpoint survives a loss of power, and the oldest
    /// checkpoints over the limit are deleted. After an error, the earlier checkpoints are unchanged.
    ///
    /// A checkpoint of the same step is replaced. Sync the logs first: a checkpoint guarantees that every row up to its step is
    /// on disk.
    pub fn save(&self, step: u64, files: &[(&str, &[u8])]) -> Result<SavedCheckpoint, LabError> {
        let limits = &self.reader.limits;
        check_names(files.iter().map(|(name, _)| *name))?;
        let n_bytes = check_sizes(files, limits)?;
        let done = done_text(files);
        let path = self.reader.path_of(step);
        let staged = self.hidden(STAGED, step);
        let written = durable::write_folder(&staged, files)
            .and_then(|()| durable::write_file(&staged.join(DONE), done.as_bytes()))
            .and_then(|()| durable::sync_folder(&staged))
            .and_then(|()| self.put_in_place(&staged, step));
        if written.is_err() {
            // An error of the clean-up is ignored: the first error is returned, and the next open removes the rest.
            let _ = durable::remove_folder(&staged);
        }
        written?;

        // The checkpoint is durable now; an error with an older one does not change that.
        let mut pruned = Vec::new();
        let prune_error = self.prune(step, &mut pruned).err();
        Ok(SavedCheckpoint { path, n_bytes, pruned, prune_error })
    }

    /// Deletes every checkpoint after `step`, and returns their steps. Call it on resume, before the logs are truncated: no
    /// checkpoint may be ahead of the logs.
    pub fn discard_after(&self, step: u64) -> Result<Vec<u64>, LabError> {
        let discarded: Vec<u64> = self.steps()?.into_iter().filter(|later| *later > step).collect();
        // Newest first, so that a kill in between leaves no gap.
        for later in discarded.iter().rev() {
            self.delete(*later)?;
        }
        // The caller truncates the logs next. A deletion that a loss of power undid would leave a checkpoint ahead of them.
        durable::sync_folder(&self.reader.folder)?;
        Ok(discarded)
    }

    /// See [`CheckpointReader::load_newest_valid`].
    pub fn load_newest_valid(&self) -> Result<Option<Checkpoint>, LabError> {
        self.reader.load_newest_valid()
    }

    /// See [`CheckpointReader::load`].
    pub fn load(&self, step: u64) -> Result<Checkpoint, LabError> {
        self.reader.load(step)
    }

    /// See [`CheckpointReader::steps`].
    pub fn steps(&self) -> Result<Vec<u64>, LabError> {
        self.reader.steps()
    }

    fn hidden(&self, prefix: &str, step: u64) -> PathBuf {
        self.reader.folder.join(format!("{prefix}{step:012}"))
    }

    /// Renames a finished staged folder to its step. The next open restores an earlier checkpoint after a kill in between.
    fn put_in_place(&self, staged: &Path, step: u64) -> Result<(), LabError> {
        durable::replace_folder(staged, &self.reader.path_of(step), &self.hidden(REPLACED, step))
    }

    /// Deletes the checkpoint that the saved one replaced, and the oldest checkpoints over the limit. Checkpoints of later steps
    /// are kept.
    fn prune(&self, saved: u64, pruned: &mut Vec<u64>) -> Result<(), LabError> {
        durable::remove_folder(&self.hidden(REPLACED, saved))?;
        let mut older = self.steps()?;
        older.retain(|step| *step < saved);
        let n_pruned = older.len().saturating_sub(self.reader.limits.keep.get() - 1);
        for step in older.into_iter().take(n_pruned) {
            self.delete(step)?;
            pruned.push(step);
        }
        Ok(())
    }

    /// Deletes a checkpoint. It is renamed first, so that no reader sees a part of it.
    fn delete(&self, step: u64) -> Result<(), LabError> {
        let doomed = self.hidden(STAGED, step);
        durable::remove_folder(&doomed)?;
        durable::rename(&self.reader.path_of(step), &doomed)?;
        durable::remove_folder(&doomed)
    }

    fn clear_leftovers(&self) -> Result<(), LabError> {
        let folder = &self.reader.folder;
        let entries = std::fs::read_dir(folder).map_err(|source| LabError::io("read", folder, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| LabError::io("read", folder, source))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(STAGED) {
                durable::remove_folder(&entry.path())?;
            } else if let Some(step) = name.strip_prefix(REPLACED).and_then(parse_step) {
                durable::restore_replaced(&entry.path(), &self.reader.path_of(step))?;
            }
        }
        Ok(())
    }
}

/// The checkpoints of a run that another process may be writing.
#[derive(Clone, Debug)]
pub struct CheckpointReader {
    folder: PathBuf,
    limits: CheckpointLimits,
}

impl CheckpointReader {
    /// Creates a reader. The folder is not read yet and may be missing.
    pub fn new(folder: &Path, limits: CheckpointLimits) -> CheckpointReader {
        CheckpointReader { folder: folder.to_owned(), limits }
    }

    /// Loads the newest valid checkpoint, with the list of newer damaged ones. Returns `None` if there is no checkpoint, and an
    /// error if all are damaged, because that run must not silently start over.
    pub fn load_newest_valid(&self) -> Result<Option<Checkpoint>, LabError> {
        // A live run may delete a listed checkpoint after it has saved a newer one. Then the folder is listed again.
        'look: loop {
            let mut skipped = Vec::new();
            for step in self.steps()?.into_iter().rev() {
                match self.load(step) {
                    Ok(checkpoint) => return Ok(Some(Checkpoint { skipped, ..checkpoint })),
                    Err(LabError::DamagedCheckpoint { path, damage }) => {
                        skipped.push(DamagedCheckpoint { step, path, damage });
                    }
                    Err(LabError::NoSuchCheckpoint { .. }) => continue 'look,
                    Err(error) => return Err(error),
                }
            }
            return match skipped.is_empty() {
                true => Ok(None),
                false => Err(LabError::NoValidCheckpoint { folder: self.folder.clone(), damaged: skipped }),
            };
        }
    }

    /// Loads the checkpoint of one step and verifies it.
    pub fn load(&self, step: u64) -> Result<Checkpoint, LabError> {
        let path = self.path_of(step);
        let loaded = self.read(&path).map(|files| Checkpoint { step, skipped: Vec::new(), files });
        // If the folder is missing, that is the cause of any error.
        if loaded.is_err() && !is_there(&path) {
            return Err(LabError::NoSuchCheckpoint {
                folder: self.folder.clone(),
                step,
                known: self.steps()?,
            });
        }
        loaded
    }

    /// The steps of all checkpoints, valid or damaged, in increasing order.
    pub fn steps(&self) -> Result<Vec<u64>, LabError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(LabError::io("read", &self.folder, source)),
        };
        let mut steps = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| LabError::io("read", &self.folder, source))?;
            let kind = entry.file_type().map_err(|source| LabError::io("read", &self.folder, source))?;
            // Checkpoints are never links, and following one would read outside the run.
            if kind.is_dir() {
                steps.extend(entry.file_name().to_str().and_then(parse_step));
            }
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// The path of the checkpoint of a step, which may not exist.
    pub fn path_of(&self, step: u64) -> PathBuf {
        self.folder.join(folder_of_step(step))
    }

    /// Reads and verifies the files of a checkpoint. A read error does not count as damage: the disk may recover, but a
    /// checkpoint reported as damaged is skipped and replaced.
    fn read(&self, path: &Path) -> Result<Vec<(String, Vec<u8>)>, LabError> {
        let damaged = |damage: Damage| LabError::DamagedCheckpoint { path: path.to_owned(), damage };
        let too_large = |what: &str, cap: u64| damaged(Damage::TooLarge { what: what.to_owned(), cap });
        let mut present = BTreeSet::new();
        let entries = std::fs::read_dir(path).map_err(|source| LabError::io("read", path, source))?;
        for entry in entries {
            let entry = entry.map_err(|source| LabError::io("read", path, source))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(|source| LabError::io("read", path, source))?;
            if !kind.is_file() {
                return Err(damaged(Damage::NotPlain { name }));
            }
            present.insert(name);
        }
        if !present.remove(DONE) {
            return Err(damaged(Damage::NotDone));
        }
        if present.len() > self.limits.max_files {
            return Err(too_large("its number of files", self.limits.max_files as u64));
        }
        // A line is a hash of 64 digits, two spaces, a name of at most 64 bytes and a line feed.
        let done_cap = 131 * self.limits.max_files as u64;
        let Some(done) = durable::read_capped(&path.join(DONE), done_cap)? else {
            return Err(too_large(DONE, done_cap));
        };
        let listed = parse_done(&done).map_err(damaged)?;
        let mut files = Vec::with_capacity(listed.len());
        let mut left = self.limits.max_total_bytes;
        for (name, hash) in listed {
            if !present.remove(&name) {
                return Err(damaged(Damage::Missing { name }));
            }
            let cap = left.min(self.limits.max_file_bytes);
            let Some(contents) = durable::read_capped(&path.join(&name), cap)? else {
                return Err(too_large(&name, cap));
            };
            if blake3::hash(&contents) != hash {
                return Err(damaged(Damage::WrongHash { name }));
            }
            left -= contents.len() as u64;
            files.push((name, contents));
        }
        match present.into_iter().next() {
            Some(name) => Err(damaged(Damage::Unlisted { name })),
            None => Ok(files),
        }
    }
}

/// The content of `DONE` for these files.
pub(crate) fn done_text(files: &[(&str, &[u8])]) -> String {
    let mut done = String::new();
    for (name, contents) in files {
        writeln!(done, "{}  {name}", blake3::hash(contents).to_hex()).expect("writing to a string succeeds");
    }
    done
}

/// The name of the folder of a checkpoint.
pub(crate) fn folder_of_step(step: u64) -> String {
    format!("{step:012}")
}

/// Rejects duplicate names, and names that are unsafe as file names on some system.
pub(crate) fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), LabError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !is_plain_name(name) || !seen.insert(name) {
            return Err(LabError::BadFileName { found: name.to_owned() });
        }
    }
    Ok(())
}

fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    (1..=64).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('.')
        && !name.ends_with('.')
}

/// Checks the limits that a reader enforces, and returns the total size.
pub(crate) fn check_sizes(files: &[(&str, &[u8])], limits: &CheckpointLimits) -> Result<u64, LabError> {
    let check = |what: &str, found: u64, cap: u64, unit: &'static str| {
        if found <= cap {
            Ok(())
        } else {
            Err(LabError::TooLarge { what: what.to_owned(), found, cap, unit })
        }
    };
    check("the checkpoint", files.len() as u64, limits.max_files as u64, "files")?;
    for (name, contents) in files {
        check(name, contents.len() as u64, limits.max_file_bytes, "bytes")?;
    }
    let total = files.iter().map(|(_, contents)| contents.len() as u64).sum();
    check("the checkpoint", total, limits.max_total_bytes, "bytes")?;
    Ok(total)
}

fn parse_step(name: &str) -> Option<u64> {
    let step: u64 = name.parse().ok()?;
    // Only the padded form: other files may be named "+1" or "1".
    (format!("{step:012}") == name).then_some(step)
}

fn parse_done(done: &[u8]) -> Result<Vec<(String, blake3::Hash)>, Damage> {
    let mut listed: Vec<(String, blake3::Hash)> = Vec::new();
    for (index, line) in done.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let parsed = std::str::from_utf8(line).ok().and_then(|line| {
            let (hash, name) = line.strip_suffix('\n')?.split_once("  ")?;
            let is_new = listed.iter().all(|(other, _)| other != name);
            (is_new && is_plain_name(name)).then_some(())?;
            Some((name.to_owned(), blake3::Hash::from_hex(hash).ok()?))
        });
        listed.push(parsed.ok_or(Damage::BadDone { line: index + 1 })?);
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::{CheckpointLimits, CheckpointReader, CheckpointStore, is_plain_name};
    use crate::durable::faults::{Fault, with};
    use crate::error::LabError;
    use std::num::NonZeroUsize;

    #[test]
    fn names() {
        let check = |name: &str, plain: bool| assert_eq!(is_plain_name(name), plain, "{name:?}");
        check("model.safetensors", true);
        check("rng-0_state.json", true);
        check(&"x".repeat(64), true);
        for name in ["", ".", "..", ".hidden", "dot.", "a/b", "a\\b", "DONE", "Model", "é", "a b", "a\0"] {
            check(name, false);
        }
        check(&"x".repeat(65), false);
    }

    /// Saves a step after those in `before`, with a fault at every operation in turn, and checks the files that remain.
    fn check_every_fault(before: &[(u64, &[u8])], step: u64, contents: &[u8]) {
        let limits =
            CheckpointLimits { keep: NonZeroUsize::MIN.saturating_add(1), ..CheckpointLimits::default() };
        for fault in [Fault::DiskFull, Fault::Killed] {
            for n in 0.. {
                let place = format!("{fault:?} at operation {n}");
                let scratch = tempfile::tempdir().expect("a scratch folder");
                let store = CheckpointStore::open(scratch.path(), limits).expect("a new store");
                for (step, contents) in before {
                    store.save(*step, &[("model", contents), ("state", b"{}")]).expect("no fault yet");
                }
                let (saved, met) =
                    with(fault, n, || store.save(step, &[("model", contents), ("state", b"{}")]));
                if !met {
                    saved.expect("no fault was met");
                    assert!(n > 8, "{n} operations");
                    break;
                }
                if let (Fault::DiskFull, Err(error)) = (fault, &saved) {
                    assert!(matches!(error, LabError::StorageFull { .. }), "{place}: {error}");
                }
                // The next process finds the old checkpoint or the new one, complete, and no unfinished files.
                let store = CheckpointStore::open(scratch.path(), limits).expect("reopened");
                let newest = store.load_newest_valid().expect("readable").expect("one was saved");
                assert!(newest.skipped.is_empty(), "{place}: {:?}", newest.skipped);
                let model = newest.file("model").expect("a model");
                let is_new = newest.step == step && model == contents;
                let is_old = before.last().is_some_and(|last| *last == (newest.step, model));
                assert!(is_new || is_old, "{place}: {newest:?}");
                assert!(is_new || saved.is_err(), "{place}: a checkpoint reported as durable is gone");
                let hidden = std::fs::read_dir(scratch.path())
                    .expect("readable")
                    .filter(|entry| {
                        entry.as_ref().expect("readable").file_name().to_string_lossy().starts_with('.')
                    })
                    .count();
                assert_eq!(hidden, 0, "{place}");
                store.save(step, &[("model", contents), ("state", b"{}")]).expect("it can be saved now");
                let reader = CheckpointReader::new(scratch.path(), limits);
                assert_eq!(reader.load(step).expect("saved").file("model").expect("a model"), contents);
            }
        }
    }

    #[test]
    fn a_new_step_survives_every_fault() {
        check_every_fault(&[(100, b"one"), (200, b"two")], 300, b"three");
    }

    #[test]
    fn replacing_a_step_survives_every_fault() {
        check_every_fault(&[(100, b"one")], 100, b"another one");
    }
}
