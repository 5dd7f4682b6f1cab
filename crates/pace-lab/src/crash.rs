//! Crash bundles: `crash/<step>/` with the reason of a failure and files for its diagnosis.
//!
//! A run never reads a bundle. It resumes from `checkpoint`.

use std::path::{Path, PathBuf};

use crate::checkpoint::check_names;
use crate::durable::{self, STAGED};
use crate::error::LabError;

const REASON: &str = "reason.txt";

/// Writes `reason.txt` and `files` atomically into a new folder below `crash/` of a run, named by the step. A second failure
/// at the same step, as a reproducible failure causes, gets the folder `<step>-2`. Returns the folder.
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
        // An error of the clean-up is ignored: the first error is returned.
        let _ = durable::remove_folder(&staged);
    }
    written?;
    durable::sync_folder(&crashes)?;
    durable::sync_folder(run)?;
    Ok(path)
}
