//! What a failed run leaves for a person to look at: `crash/<step>/` with the reason and the files that show it.
//!
//! A bundle is never read back by a run; states to go on from are in `checkpoint`.

use std::path::{Path, PathBuf};

use crate::checkpoint::check_names;
use crate::durable::{self, STAGED};
use crate::error::LabError;

const REASON: &str = "reason.txt";

/// Writes `reason.txt` and `files` into a new folder below `run`'s `crash/`, named by the step, whole or not at all. A
/// run that fails twice at one step, which is what reproducible failures do, has two bundles: `<step>` and `<step>-2`.
pub fn write_crash_bundle(
    run: &Path,
    step: u64,
    reason: &str,
    files: &[(&str, &[u8])],
) -> Result<PathBuf, LabError> {
    check_names(files.iter().map(|(name, _)| *name).chain([REASON]))?;
    let crashes = run.join("crash");
    let staged = crashes.join(format!("{STAGED}{step:012}"));
    let reason = format!("{}\n", reason.trim_end());
    let all: Vec<(&str, &[u8])> =
        [(REASON, reason.as_bytes())].into_iter().chain(files.iter().copied()).collect();

    durable::create_folder(&crashes)?;
    let path = (1..)
        .map(|n| crashes.join(if n == 1 { format!("{step:012}") } else { format!("{step:012}-{n}") }))
        .find(|path| path.symlink_metadata().is_err())
        .expect("some number is free");
    let written = durable::write_folder(&staged, &all).and_then(|()| durable::rename(&staged, &path));
    if written.is_err() {
        // Best effort: the error on its way says more than the remains.
        let _ = durable::remove_folder(&staged);
    }
    written?;
    durable::sync_folder(&crashes)?;
    durable::sync_folder(run)?;
    Ok(path)
}
