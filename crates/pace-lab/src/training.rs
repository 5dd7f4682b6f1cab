//! One run: iterations, their rows, their checkpoints, and going on where it stopped.
//!
//! Who prints progress and asks whether to stop is the caller; a run does one iteration at a time.

use std::path::Path;
use std::time::Instant;

use pace_games::AnyGame;
use pace_learn::{IterationReport, TrainError, Trainer, find_method};

use crate::checkpoint::{CheckpointLimits, CheckpointStore};
use crate::conservative::Conservative;
use crate::error::LabError;
use crate::manifest::{Manifest, RunSpec, RunStatus, cpu_model};
use crate::metrics::MetricsLog;
use crate::run_config::RunConfig;
use crate::run_folder::RunFolder;
use crate::tensorboard::TensorBoardLog;

/// What the caller knows about the program that trains.
#[derive(Clone, Debug)]
pub struct Build {
    /// The version of this project.
    pub version: &'static str,
    /// The commit it was built from.
    pub commit: Option<&'static str>,
    /// The compiler.
    pub rustc: &'static str,
    /// The command line.
    pub argv: Vec<String>,
}

/// A run that is being trained. Dropping it without [`TrainingRun::end`] is like being killed: the newest checkpoint stays.
pub struct TrainingRun {
    run: RunFolder,
    trainer: Trainer,
    metrics: MetricsLog,
    timing: MetricsLog,
    curves: TensorBoardLog,
    store: CheckpointStore,
    saved_at: Option<u64>,
    rollout_secs: f64,
    /// What was found damaged when the run was resumed, for the caller to tell.
    pub warnings: Vec<String>,
}

impl TrainingRun {
    /// Begins a run in a new folder.
    pub fn start(
        path: &Path,
        config: &RunConfig,
        build: &Build,
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
        let method = find_method(&config.method)?;
        let conservative = Conservative::of(config, path)?;
        let policy = conservative.as_ref().map(Conservative::policy).transpose()?;
        let (train, seed) = (config.train.clone(), config.seed);
        let trainer = Trainer::with_conservative(method, game, train, policy.as_ref(), seed, n_threads)?;
        let run = RunFolder::create(path, &config.to_toml(), spec)?;
        if let Some(conservative) = &conservative {
            conservative.keep(path)?;
        }
        TrainingRun::assemble(run, trainer)
    }

    /// Goes on from the newest checkpoint that is whole, or from the beginning if there was none yet.
    pub fn resume(path: &Path, n_threads: usize) -> Result<TrainingRun, LabError> {
        let run = RunFolder::open(path)?;
        let file = path.join("config.toml");
        let config = RunConfig::from_toml(&file.display().to_string(), &run.view().config()?)?;
        let game = config.open_game()?;
        check_revision(run.manifest(), &*game)?;
        let method = find_method(&config.method)?;
        let conservative = Conservative::of(&config, path)?;
        let policy = conservative.as_ref().map(Conservative::policy).transpose()?;
        let (train, seed) = (config.train, config.seed);
        let trainer = Trainer::with_conservative(method, game, train, policy.as_ref(), seed, n_threads)?;
        let mut training = TrainingRun::assemble(run, trainer)?;
        let mut step = 0;
        if let Some(checkpoint) = training.store.load_newest_valid()? {
            training.trainer.restore(|name| checkpoint.file(name).ok().map(<[u8]>::to_vec))?;
            step = checkpoint.step;
            let skipped = checkpoint.skipped.iter();
            training.warnings = skipped
                .map(|damaged| {
                    format!("checkpoint {} is damaged ({}) and was passed over", damaged.step, damaged.damage)
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

    /// The learner as it is now.
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

    /// One iteration with its rows, and a checkpoint where one is due; nothing when the budget is spent.
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

    /// Writes a checkpoint of the run as it is now, unless there is one.
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

    /// Saves and closes the run.
    pub fn end(mut self) -> Result<(), LabError> {
        self.save()?;
        let status = if self.trainer.is_finished() { RunStatus::Finished } else { RunStatus::Stopped };
        self.run.end(status)
    }
}

/// Refuses a run of another revision of its game: to its network, observations meant something else.
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
