//! Durable writes: whole files, whole folders and appended rows.
//!
//! All changes that this crate makes to a file system go through this module, so that tests can inject a fault at every single
//! operation (`faults`). The formats are in `checkpoint`, `step_log` and `manifest`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// Prefix of the names of unfinished files and folders. Readers skip them.
pub(crate) const STAGED: &str = ".staged-";

/// Prefix of the name of an earlier folder, moved aside while a new one takes its name.
pub(crate) const REPLACED: &str = ".replaced-";

/// Writes a file atomically: a reader, now or after a crash, finds the old content or the new one, never a part. A device or
/// a pipe is written to directly, because a rename would replace it by a file (as root even `/dev/null`).
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), LabError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let open = || OpenOptions::new().write(true).open(path);
        return write(&mut attempt("open", path, Cost::Space, open)?, path, contents);
    }
    let folder = folder_of(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Two processes may write the same file, for example an evaluation, so each has its own draft.
    let staged = folder.join(format!("{STAGED}{name}-{}", std::process::id()));
    let written = write_file(&staged, contents).and_then(|()| rename(&staged, path));
    if written.is_err() {
        // An error of the clean-up is ignored: the first error is returned.
        let _ = remove_file(&staged);
    }
    written?;
    sync_folder(folder)
}

/// Writes a file and syncs it to disk. Its name is durable only after a sync of the folder.
pub(crate) fn write_file(path: &Path, contents: &[u8]) -> Result<(), LabError> {
    let mut file = attempt("create", path, Cost::Space, || File::create(path))?;
    write(&mut file, path, contents)?;
    attempt("sync", path, Cost::Space, || file.sync_all())
}

/// Writes files into the new folder `staged` and syncs files and folder to disk. Removes the rest of an earlier attempt first.
pub(crate) fn write_folder(staged: &Path, files: &[(&str, &[u8])]) -> Result<(), LabError> {
    remove_folder(staged)?;
    create_folder(staged)?;
    for (name, contents) in files {
        write_file(&staged.join(name), contents)?;
    }
    sync_folder(staged)
}

/// Creates a folder and its parents.
pub fn create_folder(path: &Path) -> Result<(), LabError> {
    attempt("create", path, Cost::Space, || fs::create_dir_all(path))
}

/// Creates a folder and its parents, and fails if no file can be written there. For use before long work with results there.
pub fn prepare_folder(path: &Path) -> Result<(), LabError> {
    create_folder(path)?;
    let probe = path.join(format!("{STAGED}probe-{}", std::process::id()));
    let written = write_file(&probe, b"can files be written here?\n");
    let removed = remove_file(&probe);
    written.and(removed)
}

/// Renames a file or folder. The new name is durable only after a sync of the folder.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), LabError> {
    attempt("rename", from, Cost::Nothing, || fs::rename(from, to))
}

/// Renames the finished folder `staged` to `path`. A rename cannot replace a folder that contains files, so an earlier folder is
/// moved to `replaced` first, where it stays. After a kill in between, [`restore_replaced`] brings it back.
pub(crate) fn replace_folder(staged: &Path, path: &Path, replaced: &Path) -> Result<(), LabError> {
    let replaces = is_there(path);
    if replaces {
        rename(path, replaced)?;
    }
    if let Err(error) = rename(staged, path) {
        if replaces {
            // An error is ignored: the first error is returned.
            let _ = rename(replaced, path);
        }
        return Err(error);
    }
    sync_folder(folder_of(path))
}

/// Completes an interrupted [`replace_folder`]: removes the earlier folder if the new one is in place, otherwise restores it.
pub(crate) fn restore_replaced(replaced: &Path, path: &Path) -> Result<(), LabError> {
    if is_there(path) {
        return remove_folder(replaced);
    }
    rename(replaced, path)?;
    sync_folder(folder_of(path))
}

/// Whether the path exists. A broken link counts.
pub(crate) fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Removes a folder with its content, if it exists.
pub(crate) fn remove_folder(path: &Path) -> Result<(), LabError> {
    attempt("remove", path, Cost::Nothing, || match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    })
}

/// Removes a file, if it exists.
pub(crate) fn remove_file(path: &Path) -> Result<(), LabError> {
    attempt("remove", path, Cost::Nothing, || match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    })
}

/// Removes the unfinished files and folders of killed processes from a folder, which may be missing.
pub(crate) fn remove_drafts(folder: &Path) -> Result<(), LabError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|source| LabError::io("read", folder, source))?,
    };
    let is_draft = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(STAGED);
    for entry in entries.flatten().filter(is_draft) {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder { remove_folder(&entry.path())? } else { remove_file(&entry.path())? }
    }
    Ok(())
}

/// Syncs the names in a folder to disk.
pub(crate) fn sync_folder(path: &Path) -> Result<(), LabError> {
    attempt("sync", path, Cost::Space, || {
        // Only Unix can sync a folder.
        if cfg!(not(unix)) {
            return Ok(());
        }
        match File::open(path)?.sync_all() {
            // Some network file systems cannot sync folders. Their weaker guarantee is accepted.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            synced => synced,
        }
    })
}

/// The parent folder of `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Reads a file of at most `cap` bytes. Returns `Ok(None)` for a larger file, without reading more than `cap` + 1 bytes.
pub(crate) fn read_capped(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, LabError> {
    let read = || {
        let mut contents = Vec::new();
        // One byte over the limit shows that the file is too large, even if it grows during the read.
        File::open(path)?.take(cap.saturating_add(1)).read_to_end(&mut contents)?;
        Ok((contents.len() as u64 <= cap).then_some(contents))
    };
    read().map_err(|source| LabError::io("read", path, source))
}

/// Reads a text file of at most 1 MiB.
pub(crate) fn read_text(path: &Path) -> Result<String, LabError> {
    const CAP: u64 = 1 << 20;
    let bad = |reason: String| LabError::BadText { path: path.to_owned(), reason };
    let contents = read_capped(path, CAP)?.ok_or_else(|| bad(format!("found more than {CAP} bytes")))?;
    String::from_utf8(contents).map_err(|error| bad(format!("found {error}")))
}

/// An append-only file. A failed append is undone, so the next row never follows half a row.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
    length: u64,
}

impl AppendFile {
    /// Opens or creates the file. Also returns its content.
    pub(crate) fn open(path: &Path) -> Result<(AppendFile, Vec<u8>), LabError> {
        let is_new = !path.exists();
        let mut file = attempt("open", path, Cost::Space, || {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
        })?;
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).map_err(|source| LabError::io("read", path, source))?;
        if is_new {
            sync_folder(folder_of(path))?;
        }
        Ok((AppendFile { path: path.to_owned(), file, length: contents.len() as u64 }, contents))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole file.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, LabError> {
        let mut contents = Vec::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_end(&mut contents));
        read.map_err(|source| LabError::io("read", &self.path, source))?;
        contents.truncate(self.length as usize);
        Ok(contents)
    }

    /// Appends `row` in one write.
    pub(crate) fn append(&mut self, row: &[u8]) -> Result<(), LabError> {
        // `length` excludes half a row that an earlier append could not truncate; it is truncated now.
        let on_disk = self.file.metadata().map_err(|source| LabError::io("read", &self.path, source))?.len();
        if on_disk != self.length {
            self.cut(self.length)?;
        }
        let end = SeekFrom::Start(self.length);
        self.file.seek(end).map_err(|source| LabError::io("write", &self.path, source))?;
        let written = write(&mut self.file, &self.path, row);
        if written.is_err() {
            // An error is ignored here: the first error is returned, and the next append truncates again.
            let _ = self.cut(self.length);
        }
        written?;
        self.length += row.len() as u64;
        Ok(())
    }

    /// Truncates the file to `length` bytes.
    pub(crate) fn cut(&mut self, length: u64) -> Result<(), LabError> {
        attempt("cut", &self.path, Cost::Nothing, || self.file.set_len(length))?;
        self.length = length;
        Ok(())
    }

    /// Syncs all appended rows to disk.
    pub(crate) fn sync(&mut self) -> Result<(), LabError> {
        attempt("sync", &self.path, Cost::Space, || self.file.sync_all())
    }
}

fn write(file: &mut File, path: &Path, contents: &[u8]) -> Result<(), LabError> {
    let written = match fault(Cost::Space) {
        // A disk that fills up stores a part of the bytes.
        Err(error) => file.write_all(&contents[..contents.len() / 2]).and(Err(error)),
        Ok(()) => file.write_all(contents),
    };
    written.map_err(|source| LabError::io("write", path, source))
}

/// Whether an operation needs free space. One that does not also works on a full disk.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cost {
    Space,
    Nothing,
}

fn attempt<T>(
    doing: &'static str,
    path: &Path,
    cost: Cost,
    operation: impl FnOnce() -> io::Result<T>,
) -> Result<T, LabError> {
    fault(cost).and_then(|()| operation()).map_err(|source| LabError::io(doing, path, source))
}

#[cfg(not(test))]
fn fault(_cost: Cost) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
fn fault(cost: Cost) -> io::Result<()> {
    faults::next(cost == Cost::Space)
}

/// Injected faults, a full disk or a kill, at a chosen operation of the current thread.
#[cfg(test)]
pub(crate) mod faults {
    use std::cell::Cell;
    use std::io;

    /// The fault from the chosen operation on.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Fault {
        /// Every operation that needs free space fails.
        DiskFull,
        /// Every operation fails, as after a kill of the process.
        Killed,
    }

    thread_local! {
        static PLAN: Cell<Option<(Fault, u32)>> = const { Cell::new(None) };
        static MET: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs `work` with the fault at operation `n`. Returns its result, and whether the fault occurred.
    pub(crate) fn with<T>(fault: Fault, n: u32, work: impl FnOnce() -> T) -> (T, bool) {
        PLAN.set(Some((fault, n)));
        let result = work();
        PLAN.set(None);
        (result, MET.take())
    }

    pub(super) fn next(needs_space: bool) -> io::Result<()> {
        let Some((fault, left)) = PLAN.get() else { return Ok(()) };
        if matches!(fault, Fault::DiskFull) && !needs_space {
            return Ok(());
        }
        if left > 0 {
            PLAN.set(Some((fault, left - 1)));
            return Ok(());
        }
        MET.set(true);
        Err(match fault {
            Fault::DiskFull => io::ErrorKind::StorageFull.into(),
            Fault::Killed => io::Error::other("killed"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::faults::{Fault, with};
    use super::{AppendFile, write_atomically, write_file};
    use crate::error::LabError;

    #[test]
    fn an_atomic_write_leaves_the_old_or_the_new_file() {
        for fault in [Fault::DiskFull, Fault::Killed] {
            for n in 0.. {
                let scratch = tempfile::tempdir().expect("a scratch folder");
                let path = scratch.path().join("manifest.json");
                write_atomically(&path, b"old").expect("a first write");
                let (written, met) = with(fault, n, || write_atomically(&path, b"newer"));
                let found = std::fs::read(&path).expect("always there");
                if !met {
                    written.expect("no fault was met");
                    assert!(n > 3, "create, write, sync and sync of the folder are {n} operations");
                    break;
                }
                written.expect_err("a fault was met");
                assert!(found == b"old" || found == b"newer", "{fault:?} {n}: {found:?}");
                if matches!(fault, Fault::DiskFull) {
                    let left = std::fs::read_dir(scratch.path()).expect("readable").count();
                    assert_eq!(left, 1, "{n}: the draft is removed");
                }
            }
        }
    }

    #[test]
    fn a_failed_append_leaves_no_half_row() {
        for fault in [Fault::DiskFull, Fault::Killed] {
            let scratch = tempfile::tempdir().expect("a scratch folder");
            let path = scratch.path().join("rows");
            let (mut file, _) = AppendFile::open(&path).expect("a new file");
            file.append(b"first row\n").expect("room");
            // Half of this row is longer than the next row.
            let (appended, met) = with(fault, 0, || file.append(&[b'2'; 100]));
            appended.expect_err("a fault was met");
            assert!(met);
            file.append(b"third row\n").expect("room again");
            file.sync().expect("synced");
            assert_eq!(std::fs::read(&path).expect("readable"), b"first row\nthird row\n");
            assert_eq!(file.read().expect("readable"), b"first row\nthird row\n");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_to_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;

        let scratch = tempfile::tempdir().expect("a scratch folder");
        let path = scratch.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("every Unix has mkfifo");
        assert!(made.success());
        let from = path.clone();
        let reader = std::thread::spawn(move || std::fs::read(from));
        write_atomically(&path, b"rows\n").expect("written");
        assert!(std::fs::metadata(&path).expect("there").file_type().is_fifo());
        assert_eq!(reader.join().expect("no panic").expect("readable"), b"rows\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_reported_as_full_storage() {
        // Every write to this device fails with "no space left".
        let error = write_file(std::path::Path::new("/dev/full"), b"x").expect_err("full");
        assert!(matches!(error, LabError::StorageFull { .. }), "{error}");
        assert!(error.to_string().contains("free some space"), "{error}");
    }
}
