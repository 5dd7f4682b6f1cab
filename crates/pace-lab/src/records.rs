//! Records of runs, read for a report. Checkpoints, logs and locks are not needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pace_games::old_names::with_current_names;
use pace_learn::RunConfig;
use pace_report::{AdaptRecord, EmbeddingRecord, RecordError, ReplayRecord, TrainRecord};

use crate::adaptation::train_record;
use crate::durable;
use crate::error::LabError;
use crate::manifest::{Manifest, RunStatus};
use crate::run_folder::RunView;

/// The records of one run.
#[derive(Debug)]
pub struct RunRecords {
    /// The run's folder.
    pub path: PathBuf,
    /// All keys of the run.
    pub config: RunConfig,
    /// The facts about the run, and its status.
    pub manifest: Manifest,
    /// Its learning curves.
    pub train: TrainRecord,
    /// Its evaluations, by name.
    pub evaluations: BTreeMap<String, AdaptRecord>,
    /// Embeddings of latents, by evaluation.
    pub embeddings: BTreeMap<String, EmbeddingRecord>,
    /// Replays of encounters, by name.
    pub replays: BTreeMap<String, ReplayRecord>,
    /// The errors of the records that were skipped.
    pub damaged: Vec<LabError>,
}

impl RunRecords {
    /// Reads the records of a run. Unreadable records are skipped and listed in `damaged`; an unreadable config, manifest or
    /// metrics file is an error.
    pub fn read(path: &Path) -> Result<RunRecords, LabError> {
        let view = RunView::open(path)?;
        let mut records = RunRecords {
            path: path.to_owned(),
            config: view.run_config()?,
            manifest: view.manifest()?,
            train: train_record(&view)?,
            evaluations: BTreeMap::new(),
            embeddings: BTreeMap::new(),
            replays: BTreeMap::new(),
            damaged: Vec::new(),
        };
        let (adapt, damaged) = (view.adapt_path(), &mut records.damaged);
        records.evaluations = read_all(&adapt, RECORD, AdaptRecord::from_json, damaged)?;
        records.embeddings = read_all(&adapt, EMBEDDING, EmbeddingRecord::from_json, damaged)?;
        records.replays = read_all(&view.replays_path(), RECORD, ReplayRecord::from_json, damaged)?;
        records.rename_old_keys()?;
        records.skip_outdated_evaluations(&adapt);
        Ok(records)
    }

    /// Replaces old names of game keys in the records.
    fn rename_old_keys(&mut self) -> Result<(), LabError> {
        for record in self.evaluations.values_mut() {
            let keys = std::mem::take(&mut record.game_keys).into_iter().collect();
            record.game_keys = with_current_names(&keys, Some(&self.config.game_keys))?.into_iter().collect();
        }
        Ok(())
    }

    /// Skips evaluations of a finished run that were made before its last training step.
    fn skip_outdated_evaluations(&mut self, adapt: &Path) {
        let last_steps = self.train.curves.values().filter_map(|curve| curve.last());
        let Some(expected) = last_steps.map(|(step, _)| *step).max() else { return };
        if self.manifest.status != RunStatus::Finished {
            return;
        }
        let is_outdated = |record: &AdaptRecord| record.run.steps < expected;
        for (name, record) in self.evaluations.extract_if(.., |_, record| is_outdated(record)) {
            let path = adapt.join(format!("{name}{RECORD}"));
            self.damaged.push(LabError::Outdated { path, found: record.run.steps, expected });
        }
    }

    /// The name of the run's folder.
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The evaluations, starting with that of the plain protocol.
    pub fn evaluations_in_order(&self) -> Vec<(&str, &AdaptRecord)> {
        let mut all: Vec<(&str, &AdaptRecord)> =
            self.evaluations.iter().map(|(name, record)| (name.as_str(), record)).collect();
        all.sort_by_key(|(name, _)| *name != "test");
        all
    }
}

/// The file name ending of records.
pub(crate) const RECORD: &str = ".json";
/// The file name ending of embeddings, which are next to the record of their evaluation.
pub(crate) const EMBEDDING: &str = ".tsne.json";

/// Maximum size of a record, for writers and readers. A record of thousands of single episodes has a few megabytes.
const MAX_RECORD_BYTES: u64 = 1 << 26;

/// Writes a record. Fails if it is larger than readers accept.
pub(crate) fn write_record(path: &Path, text: &str) -> Result<(), LabError> {
    if text.len() as u64 > MAX_RECORD_BYTES {
        return Err(LabError::RecordTooLarge { path: path.to_owned(), cap: MAX_RECORD_BYTES });
    }
    durable::write_atomically(path, text.as_bytes())
}

/// Reads a record with the parser of its kind.
pub(crate) fn read_record<R>(path: &Path, parse: fn(&str) -> Result<R, RecordError>) -> Result<R, LabError> {
    let bytes = durable::read_capped(path, MAX_RECORD_BYTES)?
        .ok_or_else(|| LabError::RecordTooLarge { path: path.to_owned(), cap: MAX_RECORD_BYTES })?;
    let text = String::from_utf8(bytes)
        .map_err(|error| LabError::BadText { path: path.to_owned(), reason: format!("found {error}") })?;
    parse(&text).map_err(|source| LabError::BadRecord { path: path.to_owned(), source })
}

/// Reads every record of a folder, by name without the ending. A missing folder has no records.
fn read_all<R>(
    folder: &Path,
    ending: &str,
    read: fn(&str) -> Result<R, RecordError>,
    damaged: &mut Vec<LabError>,
) -> Result<BTreeMap<String, R>, LabError> {
    let mut records = BTreeMap::new();
    for path in sorted_entries(folder)? {
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = file.strip_suffix(ending).filter(|name| !name.contains(".tsne")) else { continue };
        match read_record(&path, read) {
            Ok(record) => drop(records.insert(name.to_owned(), record)),
            Err(error) => damaged.push(error),
        }
    }
    Ok(records)
}

/// Finds every run folder at or below `folder`, sorted by path. Run folders are not searched for further runs.
pub(crate) fn find_runs(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let mut runs = Vec::new();
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((path, depth)) = waiting.pop() {
        if path.join("manifest.json").is_file() {
            runs.push(path);
        } else if depth < 4 && path.is_dir() {
            waiting.extend(sorted_entries(&path)?.into_iter().map(|entry| (entry, depth + 1)));
        }
    }
    runs.sort();
    Ok(runs)
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(LabError::io("read", folder, source)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| LabError::io("read", folder, source))?.path();
        // The names of unfinished files start with a dot.
        if !path.file_name().unwrap_or_default().to_string_lossy().starts_with('.') {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use pace_report::AdaptRecord;

    use super::{MAX_RECORD_BYTES, read_record, write_record};
    use crate::error::LabError;

    #[test]
    fn writing_and_reading_records_have_one_limit() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let path = scratch.path().join("test.json");
        let text = " ".repeat(MAX_RECORD_BYTES as usize + 1);
        let is_too_large = |error: &LabError| matches!(error, LabError::RecordTooLarge { .. });
        assert!(is_too_large(&write_record(&path, &text).expect_err("too large")));
        assert!(!path.exists());
        std::fs::write(&path, &text).expect("written");
        assert!(is_too_large(&read_record(&path, AdaptRecord::from_json).expect_err("too large")));
        // A file one byte smaller is read, and then rejected because it is not a record.
        write_record(&path, &text[1..]).expect("written");
        let error = read_record(&path, AdaptRecord::from_json).expect_err("not a record");
        assert!(matches!(error, LabError::BadRecord { .. }), "{error}");
    }
}
