//! Recorded runs: finished runs with their final weights and without the state of the optimiser, to be published.
//!
//! A recorded run is a run folder that can be evaluated, watched, played and reported, but not resumed. Its manifest has the
//! hashes of its weights. Its folder is named `GAME-METHOD-VARIANT-PRESET-sSEED`, and its files contain no absolute path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pace_games::{ConfigError, Preset};
use pace_learn::{MODEL_FILE, RunConfig, RunRequest};
use serde_json::Map;

use crate::checkpoint::{Checkpoint, DONE, done_text};
use crate::durable::{self, REPLACED, STAGED, is_there};
use crate::error::LabError;
use crate::experiment::{EXPERIMENTS, Experiment, ExperimentOverrides, SMOKE};
use crate::fallback_agent::{self, FallbackAgent};
use crate::folder_names::{self, out_folder, renamed, without_absolute_paths};
use crate::join::changes;
use crate::manifest::{Manifest, RunStatus};
use crate::plan::folders_by_id;
use crate::records::{EMBEDDING, RECORD, RunRecords};
use crate::run_config::id_of_run;
use crate::run_folder::{ADAPT, CHECKPOINTS, CONFIG, MANIFEST, METRICS, REPLAYS, RunLock, RunView};
use crate::trained_agent::{newest_checkpoint, weights_file};
use crate::training::check_revision;

/// Logs up to this number of rows are kept whole; of a longer one, `N_ROWS` rows are kept.
const MAX_ROWS: usize = 80;
const N_ROWS: usize = 60;

/// The files of a recorded run by path in its folder, with `/` between names.
type Files = BTreeMap<String, Vec<u8>>;

/// Records finished runs in a folder. Holds the lock of the folder until it is dropped.
#[derive(Debug)]
pub struct Keeper {
    into: PathBuf,
    /// The recorded runs by id.
    known: BTreeMap<String, PathBuf>,
    /// Names of the variants of experiments, by preset and [`keys_id`]. A preset is added when it is first needed.
    variants: BTreeMap<&'static str, BTreeMap<String, String>>,
    _lock: RunLock,
}

/// The choices in recording a run.
#[derive(Clone, Copy, Debug)]
pub struct KeepOptions<'a> {
    /// The name of its keys, if no experiment names them.
    pub variant: Option<&'a str>,
    /// Whether to overwrite a record with other content.
    pub replaces: bool,
    /// Whether to record the weights. Without them the record is read by reports only.
    pub with_weights: bool,
}

/// A run that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRun {
    /// The folder of the record.
    pub folder: PathBuf,
    /// Its number of evaluations.
    pub n_evaluations: usize,
    /// The size of its weights.
    pub n_weight_bytes: usize,
    /// The change of the folder.
    pub outcome: KeepOutcome,
}

/// The change that recording a run made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepOutcome {
    /// The run was not recorded before.
    New,
    /// It was already recorded with the same content.
    Unchanged,
    /// These files were added; the others were the same.
    Extended(Vec<String>),
    /// Another record was replaced. These files of it are not in the new one.
    Replaced(Vec<String>),
}

impl Keeper {
    /// Opens or creates the folder of recorded runs. Completes or undoes what a killed process left there.
    pub fn open(into: &Path) -> Result<Keeper, LabError> {
        durable::create_folder(into)?;
        let lock = RunLock::take(into)?;
        durable::remove_drafts(into)?;
        let entries = std::fs::read_dir(into).map_err(|source| LabError::io("read", into, source))?;
        for entry in entries.flatten() {
            if let Some(name) = entry.file_name().to_string_lossy().strip_prefix(REPLACED) {
                durable::restore_replaced(&entry.path(), &into.join(name))?;
            }
        }
        Ok(Keeper {
            into: into.to_owned(),
            known: folders_by_id(into),
            variants: BTreeMap::new(),
            _lock: lock,
        })
    }

    /// Records a finished run. After a kill, the old record or the new one is there; [`Keeper::open`] restores the old one if
    /// needed.
    pub fn keep(&mut self, run: &Path, options: KeepOptions<'_>) -> Result<KeptRun, LabError> {
        let view = RunView::open(run)?;
        let mut records = RunRecords::read(run)?;
        let checkpoint = check_recordable(&view, &mut records)?;
        let id = id_of_run(&records.config, run)?;
        let name = self.name_of(run, &records.config, &id, options.variant)?;
        let target = self.into.join(&name);
        let fallback = FallbackAgent::of(&records.config, run)?;
        let fallback_name = fallback.as_ref().map(|found| self.fallback_name(found, &records.config));
        let n_evaluations = records.evaluations.len();
        let weights = match options.with_weights {
            true => weights_of(&checkpoint, fallback.as_ref())?,
            false => Files::new(),
        };
        let n_weight_bytes = of_weights(&weights).map(|(_, bytes)| bytes.len()).sum();
        let mut files = facts_of(&view, &records, &weights, fallback_name.as_deref(), &name)?;
        files.extend(weights);
        files.extend(evaluations_of(records, &name)?);
        // A recorded run may be recorded again in its place, after an evaluation that wrote an absolute path.
        let is_in_place =
            || run.canonicalize().ok().is_some_and(|run| Some(run) == target.canonicalize().ok());
        let outcome = self.place(&files, &name, options.replaces || is_in_place())?;
        self.known.insert(id, target.clone());
        Ok(KeptRun { folder: target, n_evaluations, n_weight_bytes, outcome })
    }

    /// Writes the record, or compares it with the one that is there.
    fn place(&self, files: &Files, name: &str, replaces: bool) -> Result<KeepOutcome, LabError> {
        let target = self.into.join(name);
        if !is_there(&target) {
            self.write(files, name)?;
            return Ok(KeepOutcome::New);
        }
        let (mut missing, mut differing) = (Vec::new(), Vec::new());
        for (file, contents) in files {
            match std::fs::read(target.join(file)) {
                Ok(found) if found == *contents => {}
                Ok(_) => differing.push(file),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push(file),
                Err(source) => return Err(LabError::io("read", &target.join(file), source)),
            }
        }
        // A new evaluation of the recorded weights is added; each file is complete or absent.
        let is_new_evaluation = |file: &&String| is_evaluation(file);
        if differing.is_empty() && missing.iter().all(is_new_evaluation) {
            for file in &missing {
                let path = target.join(file);
                durable::create_folder(durable::folder_of(&path))?;
                durable::write_atomically(&path, &files[*file])?;
            }
            let added: Vec<String> = missing.into_iter().cloned().collect();
            return Ok(if added.is_empty() { KeepOutcome::Unchanged } else { KeepOutcome::Extended(added) });
        }
        if !replaces {
            let first = differing.first().or(missing.first()).expect("a file differs");
            let reason = format!(
                "already recorded with another {first} ({} files differ, {} are missing); overwrite it with --replace",
                differing.len(),
                missing.len()
            );
            return Err(LabError::NotRecordable { path: target, reason });
        }
        self.replace(files, name)
    }

    /// Replaces the record in a folder. Its evaluations are kept if they are of the same agent.
    fn replace(&self, files: &Files, name: &str) -> Result<KeepOutcome, LabError> {
        let target = self.into.join(name);
        let mut files = files.clone();
        let last_row =
            |log: &[u8]| log.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().map(<[u8]>::to_vec);
        let earlier = std::fs::read(target.join(METRICS)).unwrap_or_default();
        let is_same_agent = last_row(&earlier) == last_row(&files[METRICS]);
        let mut dropped = Vec::new();
        for folder in [ADAPT, REPLAYS] {
            for entry in std::fs::read_dir(target.join(folder)).into_iter().flatten().flatten() {
                let file = format!("{folder}/{}", entry.file_name().to_string_lossy());
                if files.contains_key(&file) || !is_evaluation(&file) {
                    continue;
                }
                if is_same_agent {
                    let contents = std::fs::read(entry.path());
                    let contents = contents.map_err(|source| LabError::io("read", &entry.path(), source))?;
                    files.insert(file, contents);
                } else {
                    dropped.push(file);
                }
            }
        }
        self.write(&files, name)?;
        Ok(KeepOutcome::Replaced(dropped))
    }

    /// Writes a record, in place of an earlier one if there is one.
    fn write(&self, files: &Files, name: &str) -> Result<(), LabError> {
        write_record_folder(&self.into.join(name), files)
    }

    /// The name of the record of a run: that of an existing record of this run, or one made from its keys.
    fn name_of(
        &mut self,
        run: &Path,
        config: &RunConfig,
        id: &str,
        variant: Option<&str>,
    ) -> Result<String, LabError> {
        let not_recordable = |reason: String| LabError::NotRecordable { path: run.to_owned(), reason };
        let known = self.known.get(id).and_then(|path| path.file_name());
        let known = known.map(|name| name.to_string_lossy().into_owned());
        let is_plain = keys_id(config)? == keys_id(&preset_of(config)?)?;
        let name = match variant {
            Some(variant) if is_plain => {
                return Err(not_recordable(format!(
                    "its keys are those of preset {}, so it has no variant; record it without --variant {variant}",
                    config.preset.name()
                )));
            }
            Some(variant) => Some(record_name(config, &checked(variant)?)),
            None if is_plain => Some(record_name(config, "")),
            None => match &known {
                Some(known) => Some(known.clone()),
                None => self.variant_of(config)?.map(|variant| record_name(config, &variant)),
            },
        };
        let name = name.ok_or_else(|| {
            let (preset, changes) = (config.preset.name(), changes(config));
            not_recordable(format!(
                "no experiment names its keys ({changes}; the others as in preset {preset}); name them with --variant NAME"
            ))
        })?;
        if let Some(known) = known.filter(|known| *known != name) {
            return Err(not_recordable(format!(
                "the same run is already recorded as {}; rename that folder, or record the run without --variant",
                self.into.join(known).display()
            )));
        }
        // Another run of the same name, for example of another variant.
        let target = self.into.join(&name);
        if let Ok(other) = RunView::open(&target).and_then(|view| view.run_config())
            && keys_id(&other)? != keys_id(config)?
        {
            let reason =
                format!("{} records a run with other keys; choose another --variant", target.display());
            return Err(not_recordable(reason));
        }
        Ok(name)
    }

    /// The name that an experiment gives to the keys of a run.
    fn variant_of(&mut self, config: &RunConfig) -> Result<Option<String>, LabError> {
        let preset = config.preset;
        if !self.variants.contains_key(preset.name()) {
            self.variants.insert(preset.name(), variants_of_experiments(preset)?);
        }
        Ok(self.variants[preset.name()].get(&keys_id(config)?).cloned())
    }

    /// The name of the record of a fallback run, or that of its folder if its keys have no name.
    fn fallback_name(&mut self, fallback: &FallbackAgent, config: &RunConfig) -> String {
        let named = config.need().map_or("", |need| need.run);
        let folder = Path::new(named).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = fallback.config().id().map_err(LabError::from);
        let name = name.and_then(|id| self.name_of(Path::new(named), fallback.config(), &id, None));
        name.unwrap_or(folder)
    }
}

/// Copies a recorded run to a folder, such as one of a lab.
pub(crate) fn copy_record(record: &Path, folder: &Path) -> Result<(), LabError> {
    let mut files = Files::new();
    for part in [CONFIG, MANIFEST, METRICS, CHECKPOINTS, ADAPT, REPLAYS, fallback_agent::FOLDER] {
        read_files(record, part, &mut files)?;
    }
    write_record_folder(folder, &files)
}

/// Reads a file, or all files below a folder. `part` is its path in `record`; it may be missing.
fn read_files(record: &Path, part: &str, files: &mut Files) -> Result<(), LabError> {
    let path = record.join(part);
    let failed = |source| LabError::io("read", &path, source);
    if path.is_dir() {
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            // The names of unfinished files start with a dot.
            if !name.starts_with('.') {
                read_files(record, &format!("{part}/{name}"), files)?;
            }
        }
    } else if path.is_file() {
        files.insert(part.to_owned(), std::fs::read(&path).map_err(failed)?);
    }
    Ok(())
}

/// Writes the files of a record to a folder, in place of an earlier one if there is one.
fn write_record_folder(folder: &Path, files: &Files) -> Result<(), LabError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let [staged, replaced] =
        [STAGED, REPLACED].map(|prefix| folder.with_file_name(format!("{prefix}{name}")));
    durable::remove_folder(&staged)?;
    for (file, contents) in files {
        let path = staged.join(file);
        durable::create_folder(durable::folder_of(&path))?;
        durable::write_file(&path, contents)?;
    }
    for file in files.keys() {
        durable::sync_folder(durable::folder_of(&staged.join(file)))?;
    }
    durable::replace_folder(&staged, folder, &replaced)?;
    durable::remove_folder(&replaced)
}

/// Whether a file of a record belongs to an evaluation or a replay.
fn is_evaluation(file: &str) -> bool {
    (file.starts_with(ADAPT) || file.starts_with(REPLAYS)) && file.ends_with(RECORD)
}

/// Rejects a run whose record would not be a result. Returns its final checkpoint.
fn check_recordable(view: &RunView, records: &mut RunRecords) -> Result<Checkpoint, LabError> {
    let not_recordable = |reason: String| LabError::NotRecordable { path: view.path().to_owned(), reason };
    let RunRecords { config, manifest, train, damaged, .. } = records;
    if manifest.status != RunStatus::Finished {
        let advice = match view.has_writer() {
            Some(true) => "wait until its training ends".to_owned(),
            _ => format!("continue it with `pace resume {}`", view.path().display()),
        };
        return Err(not_recordable(format!(
            "the run is {}, expected a finished one; {advice}",
            manifest.status
        )));
    }
    if config.scale != 1.0 {
        let reason = format!(
            "the run is scaled by {}, expected one at full budget; its scores are not results",
            config.scale
        );
        return Err(not_recordable(reason));
    }
    check_revision(manifest, &*config.open_game()?)?;
    if !damaged.is_empty() {
        return Err(damaged.swap_remove(0));
    }
    let checkpoint = newest_checkpoint(view)?;
    let last_step = train.curves.values().filter_map(|curve| curve.last()).map(|(step, _)| *step).max();
    if last_step != Some(checkpoint.step) {
        return Err(not_recordable(format!(
            "its newest valid checkpoint is of step {}, expected the last step {}; restore that one from a copy",
            checkpoint.step,
            last_step.unwrap_or(0)
        )));
    }
    Ok(checkpoint)
}

/// The final weights of a run and those of its fallback agent, each as an agent is loaded from a run folder.
fn weights_of(checkpoint: &Checkpoint, fallback: Option<&FallbackAgent>) -> Result<Files, LabError> {
    let mut files = Files::new();
    let model = checkpoint.file(MODEL_FILE)?;
    let weights = weights_file(checkpoint.step);
    files.insert(weights.replace(MODEL_FILE, DONE), done_text(&[(MODEL_FILE, model)]).into_bytes());
    files.insert(weights, model.to_vec());
    for (file, contents) in fallback.into_iter().flat_map(FallbackAgent::files) {
        files.insert(format!("{}/{file}", fallback_agent::FOLDER), contents);
    }
    Ok(files)
}

/// The files whose hashes are in the manifest.
fn of_weights(files: &Files) -> impl Iterator<Item = (&String, &Vec<u8>)> {
    files.iter().filter(|(file, _)| file.ends_with(MODEL_FILE))
}

/// The keys, manifest and log of a run for its record.
fn facts_of(
    view: &RunView,
    records: &RunRecords,
    weights: &Files,
    fallback_name: Option<&str>,
    name: &str,
) -> Result<Files, LabError> {
    let mut config = view.config()?;
    let mut argv = records.manifest.spec.argv.clone();
    if let Some(out) = out_folder(&argv).map(str::to_owned) {
        argv = argv.iter().map(|word| renamed(word, &out, name)).collect();
    }
    if let Some((fallback_name, need)) = fallback_name.zip(records.config.need()) {
        argv = argv.iter().map(|word| renamed(word, need.run, fallback_name)).collect();
        if need.run != fallback_name {
            let mut keys = records.config.clone();
            keys.set_fallback_run(fallback_name)?;
            config = keys.to_toml();
        }
    }
    let mut manifest: Manifest = records.manifest.clone();
    let hash = |contents: &[u8]| blake3::hash(contents).to_hex().to_string();
    manifest.weights = of_weights(weights).map(|(file, contents)| (file.clone(), hash(contents))).collect();
    manifest.spec.argv = argv.iter().map(|word| without_absolute_paths(word)).collect();
    let log = view.path().join(METRICS);
    let log = std::fs::read(&log).map_err(|source| LabError::io("read", &log, source))?;
    Ok(Files::from([
        (CONFIG.to_owned(), config.into_bytes()),
        (MANIFEST.to_owned(), manifest.to_json().into_bytes()),
        (METRICS.to_owned(), thinned(&log)),
    ]))
}

/// The evaluations and replays of a run for its record.
fn evaluations_of(mut records: RunRecords, name: &str) -> Result<Files, LabError> {
    let mut files = Files::new();
    folder_names::update(&mut records, name);
    for (evaluation, record) in &mut records.evaluations {
        record.command = without_absolute_paths(&record.command);
        files.insert(format!("{ADAPT}/{evaluation}{RECORD}"), record.to_json()?.into_bytes());
    }
    for (evaluation, embedding) in &records.embeddings {
        files.insert(format!("{ADAPT}/{evaluation}{EMBEDDING}"), embedding.to_json()?.into_bytes());
    }
    for (replay, record) in &mut records.replays {
        record.command = without_absolute_paths(&record.command);
        files.insert(format!("{REPLAYS}/{replay}{RECORD}"), record.to_json()?.into_bytes());
    }
    Ok(files)
}

/// Some rows of a log at equal distances, with the first and the last row.
fn thinned(log: &[u8]) -> Vec<u8> {
    let rows: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    if rows.len() <= MAX_ROWS {
        return log.to_vec();
    }
    (0..N_ROWS).flat_map(|place| rows[place * (rows.len() - 1) / (N_ROWS - 1)].to_vec()).collect()
}

/// The name of the record of a run with a variant; empty for the keys of the preset.
fn record_name(config: &RunConfig, variant: &str) -> String {
    let RunConfig { game, method, preset, seed, .. } = config;
    let variant = if variant.is_empty() { String::new() } else { format!("{variant}-") };
    format!("{game}-{method}-{variant}{}-s{seed}", preset.name())
}

/// Rejects a variant that is not usable in the name of a folder.
fn checked(variant: &str) -> Result<String, LabError> {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-');
    let has_ends = variant.bytes().next().zip(variant.bytes().last());
    let is_good = variant.bytes().all(is_plain)
        && has_ends
            .is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric());
    if is_good && variant.len() <= 40 {
        return Ok(variant.to_owned());
    }
    let expected = "1 to 40 of a-z 0-9 . - with a letter or digit at both ends";
    Err(ConfigError::bad_value("--variant", &format!("{variant:?}"), expected).into())
}

/// The run with the same method, preset and seed and the keys of the preset.
fn preset_of(config: &RunConfig) -> Result<RunConfig, LabError> {
    Ok(RunConfig::resolve(&RunRequest {
        game: &config.game,
        method: &config.method,
        preset: config.preset.name(),
        seed: config.seed,
        file: None,
        overrides: Map::new(),
        scale: 1.0,
    })?)
}

/// A hash of the keys of a run but its seed and its fallback run.
fn keys_id(config: &RunConfig) -> Result<String, LabError> {
    let mut config = RunConfig { seed: 1, ..config.clone() };
    config.set_fallback_run("")?;
    Ok(config.id()?)
}

/// The names of the variants of all experiments under a preset, by [`keys_id`].
fn variants_of_experiments(preset: Preset) -> Result<BTreeMap<String, String>, LabError> {
    let mut variants = BTreeMap::new();
    let overrides = ExperimentOverrides { seeds: Some(1), preset: Some(preset), scale: None };
    for (name, _) in EXPERIMENTS.iter().filter(|(name, _)| *name != SMOKE) {
        // An experiment that does not exist under this preset names none of its keys.
        let Ok(runs) = Experiment::find(name)?.expand(&overrides) else { continue };
        for run in runs.into_iter().filter(|run| !run.variant.is_empty()) {
            let is_word = run.variant.starts_with(|first: char| first.is_ascii_alphabetic());
            let variant = if is_word { run.variant } else { format!("{name}-{}", run.variant) };
            variants.entry(keys_id(&run.config)?).or_insert(variant);
        }
    }
    Ok(variants)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use pace_games::Preset;

    use super::{KeepOptions, KeepOutcome, Keeper, N_ROWS, thinned, variants_of_experiments};
    use crate::adaptation::{AdaptOptions, adapt_run};
    use crate::durable::faults::{Fault, with};
    use crate::error::LabError;
    use crate::run_folder::RunView;
    use crate::trained_agent::TrainedAgent;
    use crate::training::TrainingRun;
    use crate::training::tests::{config, train_one_iteration};

    fn tiny(replaces: bool) -> KeepOptions<'static> {
        KeepOptions { variant: Some("tiny"), replaces, with_weights: true }
    }

    /// All files below a folder.
    fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path().is_dir() {
                true => files.extend(self::files(&entry.path())),
                false => drop(files.insert(entry.path(), std::fs::read(entry.path()).expect("readable"))),
            }
        }
        files
    }

    #[test]
    fn a_killed_keep_leaves_the_old_or_the_new_record() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let run = scratch.path().join("run");
        train_one_iteration(&run, &config("generalist", &run));
        let keep = |into: &Path, replaces| Keeper::open(into)?.keep(&run, tiny(replaces));
        let (old, new) = (scratch.path().join("old"), scratch.path().join("new"));
        keep(&old, false).expect("recorded");
        // The same run with another fact about it, so that the records differ.
        let manifest = run.join("manifest.json");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        std::fs::write(&manifest, text.replace("\"n_resumes\": 0", "\"n_resumes\": 1")).expect("written");
        let name = keep(&new, false).expect("recorded").folder;
        let name = name.file_name().expect("a name");
        let record = |into: &Path| -> Vec<(PathBuf, Vec<u8>)> {
            let folder = into.join(name);
            let relative = |path: PathBuf| path.strip_prefix(&folder).expect("below it").to_owned();
            files(&folder).into_iter().map(|(path, bytes)| (relative(path), bytes)).collect()
        };
        let (of_old, of_new) = (record(&old), record(&new));
        assert!(of_old != of_new && of_old.len() == 5, "{of_old:?}");
        for fault in [Fault::Killed, Fault::DiskFull] {
            for (n, n_before) in (0..).zip([0, 1].into_iter().cycle()) {
                let into = scratch.path().join(format!("{fault:?}-{n}"));
                if n_before == 1 {
                    keep(&into, false).expect("recorded");
                }
                for (file, bytes) in of_old.iter().filter(|_| n_before == 1) {
                    std::fs::write(into.join(name).join(file), bytes).expect("written");
                }
                let (kept, met) = with(fault, n, || keep(&into, true));
                // The next process completes or undoes what is unfinished.
                drop(Keeper::open(&into).expect("opened"));
                let found = record(&into);
                if !met {
                    kept.expect("no fault was met");
                    assert!(n > 15, "{n} operations");
                    assert_eq!(found, of_new);
                    break;
                }
                let is_old = if n_before == 1 { found == of_old } else { found.is_empty() };
                assert!(is_old || found == of_new, "{fault:?} {n}");
                let n_entries = std::fs::read_dir(&into).expect("readable").count();
                assert!(n_entries <= 2, "{fault:?} {n}: the record and the lock are all that is left");
            }
        }
    }

    #[test]
    fn a_recorded_run_needs_no_other_folder_and_is_checked() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let (fallback, run) = (scratch.path().join("generalist"), scratch.path().join("gscu"));
        train_one_iteration(&fallback, &config("generalist", &fallback));
        train_one_iteration(&run, &config("gscu", &fallback));
        let trained = TrainedAgent::load(&RunView::open(&run).expect("a run")).expect("an agent");
        let mut keeper = Keeper::open(&scratch.path().join("results")).expect("opened");
        keeper.keep(&fallback, tiny(false)).expect("recorded");
        let kept = keeper.keep(&run, tiny(false)).expect("recorded");
        let folder = kept.folder;
        std::fs::remove_dir_all(&run).expect("removed");
        std::fs::remove_dir_all(&fallback).expect("removed");
        let view = RunView::open(&folder).expect("a run");
        let here = scratch.path().display().to_string();
        for (path, bytes) in
            files(&folder).into_iter().filter(|(path, _)| !path.ends_with("model.safetensors"))
        {
            assert!(!String::from_utf8(bytes).expect("text").contains(&here), "{}", path.display());
        }
        let again = TrainedAgent::load(&view).expect("an agent");
        assert_eq!((again.steps, &again.fingerprint), (trained.steps, &trained.fingerprint));
        let options = AdaptOptions::new(pace_games::Split::Test, 2, 1, 1);
        let evaluated = adapt_run(&view, &options).expect("evaluated");
        evaluated.save(&view).expect("saved");
        assert!(folder.join("adapt/test.json").exists());
        let error = TrainingRun::resume(&folder, 1).err().expect("refused");
        assert!(matches!(error, LabError::RecordedRun { .. }), "{error}");
        for file in view.manifest().expect("a manifest").weights.keys() {
            let path = folder.join(file);
            let mut bytes = std::fs::read(&path).expect("weights");
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            std::fs::write(&path, &bytes).expect("written");
            let error = TrainedAgent::load(&view).err().expect("refused").to_string();
            assert!(error.contains("model.safetensors"), "{error}");
            bytes[last] ^= 1;
            std::fs::write(&path, &bytes).expect("written");
        }
        TrainedAgent::load(&view).expect("whole again");
    }

    #[test]
    fn an_evaluation_is_added_and_another_agent_replaces_all() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let [run, other] = ["run", "other"].map(|name| scratch.path().join(name));
        let keys = config("generalist", &run);
        train_one_iteration(&run, &keys);
        let mut keeper = Keeper::open(&scratch.path().join("results")).expect("opened");
        let mut keep = |run: &Path, replaces| keeper.keep(run, tiny(replaces));
        assert_eq!(keep(&run, false).expect("recorded").outcome, KeepOutcome::New);
        let view = RunView::open(&run).expect("a run");
        let evaluate = |view: &RunView| {
            let options = AdaptOptions::new(pace_games::Split::Test, 2, 1, 1);
            adapt_run(view, &options).expect("evaluated").save(view).expect("saved");
        };
        evaluate(&view);
        let file = "adapt/test.json".to_owned();
        assert_eq!(keep(&run, false).expect("recorded").outcome, KeepOutcome::Extended(vec![file.clone()]));
        assert_eq!(keep(&run, false).expect("recorded").outcome, KeepOutcome::Unchanged);
        // The same keys trained again are another agent if they differ in the log.
        train_one_iteration(&other, &keys);
        let log = other.join("metrics.jsonl");
        let text = std::fs::read_to_string(&log).expect("a log");
        std::fs::write(&log, text.replacen("charts/", "chart/", 1)).expect("written");
        let error = keep(&other, false).expect_err("refused").to_string();
        assert!(error.contains("--replace"), "{error}");
        assert_eq!(keep(&other, true).expect("recorded").outcome, KeepOutcome::Replaced(vec![file]));
        // An evaluation in the folder of the record is kept when another fact about the same agent changes.
        let kept = keep(&other, false).expect("recorded").folder;
        evaluate(&RunView::open(&kept).expect("a run"));
        let manifest = kept.join("manifest.json");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        std::fs::write(&manifest, text.replace("\"n_resumes\": 0", "\"n_resumes\": 1")).expect("written");
        assert_eq!(keep(&other, true).expect("recorded").outcome, KeepOutcome::Replaced(Vec::new()));
        assert!(kept.join("adapt/test.json").exists());
    }

    #[test]
    fn long_logs_keep_their_first_and_last_row() {
        let log: String = (0..1000).map(|row| format!("{row}\n")).collect();
        let rows = String::from_utf8(thinned(log.as_bytes())).expect("text");
        let rows: Vec<&str> = rows.lines().collect();
        assert_eq!((rows.len(), rows[0], rows[N_ROWS - 1]), (N_ROWS, "0", "999"));
        assert!(rows.is_sorted_by_key(|row| row.parse::<u32>().expect("a number")));
        assert_eq!(thinned(b"1\n2\n"), b"1\n2\n");
    }

    #[test]
    fn variants_are_named_as_in_the_experiments() {
        for preset in Preset::ALL {
            let variants = variants_of_experiments(preset).expect("experiments");
            let names: Vec<&str> = variants.values().map(String::as_str).collect();
            for name in ["ctx-20", "m-5", "discount-0.9", "pool-diversity-2"] {
                assert!(names.contains(&name), "{}: no {name} in {names:?}", preset.name());
            }
        }
    }
}
