//! Training of one run: iterations, metrics, checkpoints and resuming.
//!
//! A run does one iteration per call. The caller prints progress and checks for stop requests.

use std::path::Path;
use std::time::Instant;

use pace_games::AnyGame;
use pace_learn::{IterationReport, RunConfig, TrainError, Trainer};

use crate::checkpoint::{CheckpointLimits, CheckpointStore, DamagedCheckpoint};
use crate::error::LabError;
use crate::fallback_agent::FallbackAgent;
use crate::manifest::{Manifest, RunSpec, RunStatus, cpu_model};
use crate::metrics::MetricsLog;
use crate::run_folder::{RunFolder, RunView};
use crate::tensorboard::TensorBoardLog;
use crate::trained_agent::refuse_to_resume;

/// Facts about the program that trains, for the manifest.
#[derive(Clone, Debug)]
pub struct BuildInfo {
    /// The version of this project.
    pub version: &'static str,
    /// The commit it was built from.
    pub commit: Option<&'static str>,
    /// The compiler.
    pub rustc: &'static str,
    /// The command line.
    pub argv: Vec<String>,
}

/// A run in training. Dropping it without [`TrainingRun::end`] has the effect of a kill: training resumes from the newest
/// checkpoint.
pub struct TrainingRun {
    run: RunFolder,
    trainer: Trainer,
    metrics: MetricsLog,
    timing: MetricsLog,
    curves: TensorBoardLog,
    store: CheckpointStore,
    saved_at: Option<u64>,
    rollout_secs: f64,
    /// Warnings about damaged checkpoints found on resume, for the caller to print.
    pub warnings: Vec<String>,
}

impl TrainingRun {
    /// Starts a run in a new folder.
    pub fn start(
        path: &Path,
        config: &RunConfig,
        build: &BuildInfo,
        n_threads: usize,
    ) -> Result<TrainingRun, LabError> {
        let game = config.open_game()?;
        let spec = RunSpec {
            pace_version: build.version.to_owned(),
            commit: build.commit.map(str::to_owned),
            rustc: build.rustc.to_owned(),
            cpu_model: cpu_model(),
            simd: pace_learn::simd_name().to_owned(),
            seed: config.seed,
            argv: build.argv.clone(),
            game: config.game.clone(),
            game_revision: game.spec().revision,
            method: config.method.clone(),
            preset: config.preset.name().to_owned(),
            scale: config.scale,
        };
        let fallback = FallbackAgent::named(config)?;
        let policy = fallback.as_ref().map(FallbackAgent::policy).transpose()?;
        let trainer = config.trainer(policy.as_ref(), n_threads)?;
        let keep = || fallback.as_ref().map_or(Ok(()), |fallback| fallback.keep(path));
        let run = RunFolder::create_with(path, &config.to_toml(), spec, keep)?;
        TrainingRun::assemble(run, trainer)
    }

    /// Resumes a run from its newest valid checkpoint, or from the start if it has none yet.
    pub fn resume(path: &Path, n_threads: usize) -> Result<TrainingRun, LabError> {
        // Checked before anything is written, so that a recorded run or one without its checkpoints stays unchanged.
        refuse_to_resume(&RunView::open(path)?)?;
        let run = RunFolder::open(path)?;
        let config = run.view().run_config()?;
        check_revision(run.manifest(), &*config.open_game()?)?;
        let fallback = FallbackAgent::of(&config, path)?;
        let policy = fallback.as_ref().map(FallbackAgent::policy).transpose()?;
        let trainer = config.trainer(policy.as_ref(), n_threads)?;
        if let Some(fallback) = &fallback {
            fallback.keep(path)?;
        }
        let mut training = TrainingRun::assemble(run, trainer)?;
        let mut step = 0;
        if let Some(checkpoint) = training.store.load_newest_valid()? {
            training.trainer.restore(|name| checkpoint.file(name).ok().map(<[u8]>::to_vec))?;
            step = checkpoint.step;
            let skipped = checkpoint.skipped.iter();
            training.warnings = skipped
                .map(|damaged| {
                    let DamagedCheckpoint { step: newer, damage, .. } = damaged;
                    format!("checkpoint {newer} is damaged ({damage}); using the checkpoint of step {step}")
                })
                .collect();
            training.saved_at = Some(step);
        }
        training.run.mark_resumed()?;
        training.store.discard_after(step)?;
        training.metrics.truncate_after(step)?;
        training.timing.truncate_after(step)?;
        training.curves.truncate_after(step)?;
        Ok(training)
    }

    fn assemble(run: RunFolder, trainer: Trainer) -> Result<TrainingRun, LabError> {
        Ok(TrainingRun {
            metrics: run.metrics()?,
            timing: run.timing()?,
            curves: run.tensorboard()?,
            store: run.checkpoints(CheckpointLimits::default())?,
            saved_at: None,
            rollout_secs: 0.0,
            warnings: Vec::new(),
            run,
            trainer,
        })
    }

    /// The trainer in its current state.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// The folder of the run.
    pub fn path(&self) -> &Path {
        self.run.path()
    }

    /// Seconds spent in rollouts since this run was started or resumed.
    pub fn rollout_secs(&self) -> f64 {
        self.rollout_secs
    }

    /// Runs one iteration, writes its metrics and, if it is due, a checkpoint. Returns `None` if the budget is used up.
    pub fn advance(&mut self) -> Result<Option<IterationReport>, LabError> {
        if self.trainer.is_finished() {
            return Ok(None);
        }
        let begin = Instant::now();
        let steps_before = self.trainer.steps();
        let mut rollout_secs = 0.0;
        let result = self.trainer.iterate_with(|| rollout_secs = begin.elapsed().as_secs_f64());
        self.rollout_secs += rollout_secs;
        let report = match result {
            Ok(report) => report,
            Err(error) => {
                self.run.write_crash_bundle(steps_before, &error.to_string(), &[])?;
                self.run.end(RunStatus::Failed)?;
                return Err(error.into());
            }
        };
        let values: Vec<(&str, f64)> = report.metrics.iter().map(|(name, value)| (*name, *value)).collect();
        self.metrics.append(report.steps, &values)?;
        self.curves.append(report.steps, &values)?;
        let secs = begin.elapsed().as_secs_f64();
        let speed = (report.steps - steps_before) as f64 / secs;
        let times =
            [("charts/SPS", speed), ("time/iteration_secs", secs), ("time/rollout_secs", rollout_secs)];
        self.timing.append(report.steps, &times)?;
        let is_due = report.iteration % self.trainer.config().checkpoint_every as u64 == 0;
        if is_due || self.trainer.is_finished() {
            self.save()?;
        }
        Ok(Some(report))
    }

    /// Saves a checkpoint of the current state, unless this step has one already.
    pub fn save(&mut self) -> Result<(), LabError> {
        let steps = self.trainer.steps();
        if self.saved_at == Some(steps) || steps == 0 {
            return Ok(());
        }
        self.metrics.sync()?;
        self.timing.sync()?;
        self.curves.sync()?;
        let files = self.trainer.save();
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
        self.store.save(steps, &files)?;
        self.saved_at = Some(steps);
        self.run.record_wall_clock()
    }

    /// Saves a checkpoint and records the end of the run.
    pub fn end(mut self) -> Result<(), LabError> {
        self.save()?;
        let status = if self.trainer.is_finished() { RunStatus::Finished } else { RunStatus::Stopped };
        self.run.end(status)
    }
}

/// Rejects a run of another revision of its game: the meaning of its observations has changed.
pub(crate) fn check_revision(manifest: &Manifest, game: &dyn AnyGame) -> Result<(), LabError> {
    let (saved, current) = (manifest.spec.game_revision, game.spec().revision);
    if saved == current {
        return Ok(());
    }
    let reason = format!(
        "the run was trained on {} revision {saved}, this build plays revision {current}; retrain it",
        game.spec().id
    );
    Err(TrainError::State { reason }.into())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use pace_learn::{METHODS, RunConfig, RunRequest};
    use serde_json::{Map, json};

    use super::{BuildInfo, TrainingRun};
    use crate::durable::faults::{Fault, with};

    const BUILD: BuildInfo = BuildInfo { version: "0.1.0", commit: None, rustc: "1.95.0", argv: Vec::new() };

    /// A run of one iteration; GSCU uses the run in `fallback` as fallback policy.
    pub(crate) fn config(method: &str, fallback: &Path) -> RunConfig {
        let mut keys = json!({
            "total_steps": 10, "encounters_per_tuple": 1, "episodes_per_encounter": 2, "epochs": 1, "minibatches": 1,
            "hidden_width": 4, "encoder_width": 4, "warm_up_steps": 0
        });
        if method == "gscu" {
            let of_gscu = json!({
                "gscu.conservative": "run", "gscu.conservative_run": fallback, "gscu.embedding_steps": 10,
                "gscu.embedding_encounters_per_tuple": 1, "gscu.embedding_epochs": 1
            });
            keys.as_object_mut().expect("a map").extend(of_gscu.as_object().expect("a map").clone());
        }
        let overrides: Map<String, serde_json::Value> = keys.as_object().expect("a map").clone();
        let (game, preset) = ("kuhn-poker", "paper");
        let request = RunRequest { game, method, preset, seed: 1, file: None, overrides, scale: 1.0 };
        RunConfig::resolve(&request).expect("good keys")
    }

    /// Trains a finished run of one iteration in a folder.
    pub(crate) fn train_one_iteration(path: &Path, config: &RunConfig) {
        let mut run = TrainingRun::start(path, config, &BUILD, 1).expect("a run");
        run.advance().expect("trained");
        run.end().expect("saved");
    }

    #[test]
    fn a_run_that_dies_at_any_write_of_its_start_can_be_started_or_resumed() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let fallback = scratch.path().join("generalist");
        train_one_iteration(&fallback, &config("generalist", &fallback));
        for (method, fault) in
            METHODS.iter().flat_map(|method| [(method, Fault::Killed), (method, Fault::DiskFull)])
        {
            let config = config(method.id, &fallback);
            for n in 0.. {
                let place = format!("{} {fault:?} {n}", method.id);
                let path = scratch.path().join(&place);
                let (started, met) = with(fault, n, || TrainingRun::start(&path, &config, &BUILD, 1));
                if !met {
                    started.expect("no fault was met");
                    assert!(n > 15, "{n} operations");
                    break;
                }
                drop(started);
                // A folder with a manifest is a run, and has everything that the run needs.
                let is_run = path.join("manifest.json").exists();
                let needs_copy = config.need().is_some();
                let has_copy = || path.join("conservative/model.safetensors").is_file();
                assert!(!is_run || !needs_copy || has_copy(), "{place}");
                let again = match is_run {
                    true => TrainingRun::resume(&path, 1),
                    false => TrainingRun::start(&path, &config, &BUILD, 1),
                };
                drop(again.unwrap_or_else(|error| panic!("{place}: {error}")));
                assert_eq!(has_copy(), needs_copy, "{place}");
                let entries = std::fs::read_dir(&path).expect("readable").flatten();
                let hidden = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
                assert_eq!(hidden.count(), 0, "{place}: drafts are left");
            }
        }
    }

    #[test]
    fn a_start_does_not_use_the_copy_of_an_earlier_start() {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let fallbacks = [1, 2].map(|seed| {
            let path = scratch.path().join(format!("generalist-{seed}"));
            let config = RunConfig { seed, ..config("generalist", &path) };
            train_one_iteration(&path, &config);
            path
        });
        let path = scratch.path().join("gscu");
        let copy = || std::fs::read(path.join("conservative/model.safetensors")).expect("a copy");
        drop(TrainingRun::start(&path, &config("gscu", &fallbacks[0]), &BUILD, 1).expect("a run"));
        let first = copy();
        // The state after a kill before the manifest was written.
        std::fs::remove_file(path.join("manifest.json")).expect("removable");
        for log in ["metrics.jsonl", "timing.jsonl"] {
            std::fs::remove_file(path.join(log)).expect("removable");
        }
        std::fs::remove_dir_all(path.join("tb")).expect("removable");
        drop(TrainingRun::start(&path, &config("gscu", &fallbacks[1]), &BUILD, 1).expect("a run"));
        assert!(copy() != first, "the copy is that of the run that the keys name");
    }
}
