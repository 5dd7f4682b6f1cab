//! The runs of several experiments, and their state in a lab. This module only reads; `reproduce` trains and evaluates.
//!
//! A lab is a folder. `runs/` has one run folder per run of the plan; its name describes the run and ends with the run's id.
//! `logs/` has the output of the training and evaluation processes. A run that is already in a folder of recorded runs (see
//! `keep`) is not trained: `reproduce` copies its record to the lab.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pace_games::Split;
use pace_learn::RunConfig;
use pace_report::AdaptRecord;
use serde_json::{Map, Value, json};

use crate::checkpoint::CheckpointLimits;
use crate::error::LabError;
use crate::experiment::{Experiment, ExperimentEvaluation, ExperimentOverrides, ExperimentRun};
use crate::manifest::RunStatus;
use crate::records::{EMBEDDING, read_record};
use crate::run_config::id_of_run;
use crate::run_folder::RunView;
use crate::speeds::{Speed, Speeds};
use crate::trained_agent::newest_checkpoint;
use crate::training::check_revision;

/// The runs that a set of experiments needs, without duplicates.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runs, ordered by seed. A run comes after its fallback run.
    pub runs: Vec<PlannedRun>,
    /// The factor for step budgets and evaluation encounters.
    pub scale: f64,
}

/// A run that one or more experiments need.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The run, with the evaluations of all its experiments.
    pub run: ExperimentRun,
    /// The names of the experiments.
    pub experiments: Vec<String>,
    /// The index in the plan of its fallback run, if it has one.
    pub needs: Option<usize>,
    /// Its folder in the lab, which may not exist yet.
    pub folder: PathBuf,
    /// The folder of its record among the recorded runs, if it has one there with weights and no folder in the lab.
    pub record: Option<PathBuf>,
}

/// The state of a run in a lab.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// It has no folder.
    Waiting,
    /// A process is training it.
    Running {
        /// Ego decisions so far.
        steps: u64,
    },
    /// It was stopped or killed, and can be resumed.
    Interrupted {
        /// Ego decisions so far.
        steps: u64,
    },
    /// It is trained.
    Trained,
    /// Its folder cannot be used, with the reason as text.
    Unusable(String),
}

/// The state of an evaluation of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationState {
    /// There is no sufficient record: it is missing, lacks its latents, or has fewer encounters, another seed or an earlier
    /// agent.
    Missing,
    /// There is a complete record.
    Done,
    /// The record cannot be read, with the reason as text.
    Damaged(String),
}

impl Plan {
    /// Merges the runs of several experiments for a lab. `recorded` is a folder of recorded runs, which are not trained again.
    pub fn new(
        experiments: &[Experiment],
        overrides: &ExperimentOverrides,
        lab: &Path,
        recorded: Option<&Path>,
    ) -> Result<Plan, LabError> {
        let found = folders_by_id(&runs_folder(lab));
        let records = recorded.map(folders_by_id).unwrap_or_default();
        let mut runs: Vec<PlannedRun> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for experiment in experiments {
            for run in experiment.expand(overrides)? {
                let Some(&place) = places.get(&run.id) else {
                    places.insert(run.id.clone(), runs.len());
                    let new = || runs_folder(lab).join(&run.folder_name);
                    let folder = found.get(&run.id).cloned().unwrap_or_else(new);
                    let record = records.get(&run.id).filter(|record| !folder.exists() && is_whole(record));
                    let (record, experiments) = (record.cloned(), vec![experiment.name.clone()]);
                    runs.push(PlannedRun { run, experiments, needs: None, folder, record });
                    continue;
                };
                let planned = &mut runs[place];
                if !planned.experiments.contains(&experiment.name) {
                    planned.experiments.push(experiment.name.clone());
                }
                run.evaluations.into_iter().try_for_each(|evaluation| planned.add(evaluation))?;
            }
        }
        // One seed of every run is more useful than all seeds of some runs. The sort is stable, so the order within a seed stays.
        runs.sort_by_key(|planned| planned.run.config.seed);
        let places: BTreeMap<String, usize> =
            runs.iter().enumerate().map(|(place, planned)| (planned.run.id.clone(), place)).collect();
        for planned in &mut runs {
            planned.needs = planned.run.needs.as_ref().map(|id| places[id]);
        }
        Ok(Plan { runs, scale: overrides.scale.unwrap_or(1.0) })
    }
}

impl PlannedRun {
    /// Adds an evaluation. Of two with the same name, the larger number of encounters counts.
    fn add(&mut self, evaluation: ExperimentEvaluation) -> Result<(), LabError> {
        let known = self.run.evaluations.iter_mut().find(|known| known.name == evaluation.name);
        match known {
            None => self.run.evaluations.push(evaluation),
            Some(known) if known.evaluation.seed != evaluation.evaluation.seed => {
                return Err(LabError::BadConfig {
                    file: format!("experiments {}", self.experiments.join(", ")),
                    reason: format!(
                        "evaluation \"{}\" of one run with the seeds {} and {}, expected the same one",
                        evaluation.name, known.evaluation.seed, evaluation.evaluation.seed
                    ),
                });
            }
            Some(known) => known.encounters = known.encounters.max(evaluation.encounters),
        }
        Ok(())
    }

    /// A short description: game, method, variant, preset and seed.
    pub fn title(&self) -> String {
        let RunConfig { game, method, preset, seed, .. } = &self.run.config;
        let variant =
            if self.run.variant.is_empty() { String::new() } else { format!(" {}", self.run.variant) };
        format!("{game} {method}{variant} {} s{seed}", preset.name())
    }

    /// The folder to read: that in the lab, or else the record.
    fn source(&self) -> &Path {
        match &self.record {
            Some(record) if !self.folder.exists() => record,
            _ => &self.folder,
        }
    }

    /// Whether the run was recorded, not trained in this lab.
    pub fn is_recorded(&self) -> bool {
        RunView::open(self.source())
            .and_then(|view| view.manifest())
            .is_ok_and(|manifest| manifest.is_recorded())
    }

    /// Reads the state of the run from its folder or its record.
    pub fn state(&self) -> RunState {
        let view = match RunView::open(self.source()) {
            Ok(view) => view,
            // Also a folder without a manifest, left by a process that was killed while it created the run.
            Err(LabError::NotARun { .. }) => return RunState::Waiting,
            Err(error) => return RunState::Unusable(error.to_string()),
        };
        // The lock is checked before the manifest is read: a run that ends in between has written its end there.
        let has_writer = view.has_writer();
        match self.check(&view) {
            Err(error) => RunState::Unusable(error.to_string()),
            Ok(_) if has_writer == Some(true) => RunState::Running { steps: view.last_step() },
            Ok(RunStatus::Finished) => RunState::Trained,
            Ok(_) => RunState::Interrupted { steps: view.last_step() },
        }
    }

    /// Rejects a folder that contains another run, or one of another revision of the game.
    fn check(&self, view: &RunView) -> Result<RunStatus, LabError> {
        let manifest = view.manifest()?;
        let config = view.run_config()?;
        check_revision(&manifest, &*config.open_game()?).map_err(|error| LabError::RunMismatch {
            path: view.path().to_owned(),
            reason: error.to_string(),
        })?;
        let id = id_of_run(&config, view.path())?;
        if id != self.run.id {
            let reason = format!("its keys have the id {id}, expected {}", self.run.id);
            return Err(LabError::RunMismatch { path: view.path().to_owned(), reason });
        }
        Ok(manifest.status)
    }

    /// Reads the state of an evaluation of this run.
    pub fn evaluation_state(&self, evaluation: &ExperimentEvaluation) -> EvaluationState {
        let folder = self.source();
        let path = evaluation.path(folder);
        if !path.exists() {
            return EvaluationState::Missing;
        }
        let record = match read_record(&path, AdaptRecord::from_json) {
            Ok(record) => record,
            Err(error) => return EvaluationState::Damaged(error.to_string()),
        };
        // A record has latents in two dimensions only.
        let has_latents = !evaluation.evaluation.latents
            || evaluation.latents_path(folder).exists()
            || (evaluation.embedding_path(folder).exists() && self.is_recorded());
        let is_enough = record.passes >= evaluation.effective_encounters()
            && record.seed.is_none_or(|seed| seed == evaluation.evaluation.seed)
            && record.run.steps >= self.newest_step();
        if is_enough && has_latents { EvaluationState::Done } else { EvaluationState::Missing }
    }

    /// The step of the newest checkpoint; 0 if there is none.
    fn newest_step(&self) -> u64 {
        let steps = RunView::open(self.source())
            .and_then(|view| view.checkpoints(CheckpointLimits::default()).steps())
            .unwrap_or_default();
        steps.last().copied().unwrap_or(0)
    }

    /// Estimates the remaining time of one process, for training and for each evaluation.
    pub fn estimate(&self, speeds: &Speeds) -> TimeEstimate {
        let config = &self.run.config;
        let speed = speeds.training(&config.game, &config.method);
        let steps_left = match self.state() {
            RunState::Trained => 0,
            RunState::Waiting | RunState::Unusable(_) => config.train.total_steps,
            RunState::Running { steps } | RunState::Interrupted { steps } => {
                config.train.total_steps.saturating_sub(steps)
            }
        };
        let evaluations = self
            .run
            .evaluations
            .iter()
            .map(|evaluation| match self.evaluation_state(evaluation) {
                EvaluationState::Done => 0.0,
                _ => speeds.evaluation_secs(config, evaluation),
            })
            .collect();
        TimeEstimate { training_secs: steps_left as f64 / speed.per_second, evaluations, speed }
    }

    /// The arguments of `pace` that train the run from the start. `fallback` is the folder of its fallback run, if it has one.
    pub(crate) fn train_arguments(&self, scale: f64, fallback: Option<&Path>) -> Vec<String> {
        let RunConfig { game, method, preset, seed, .. } = &self.run.config;
        let mut arguments: Vec<String> =
            ["train", game, "--method", method, "--preset", preset.name()].map(str::to_owned).to_vec();
        arguments.extend(["--seed".to_owned(), seed.to_string()]);
        if scale != 1.0 {
            arguments.extend(["--scale".to_owned(), scale.to_string()]);
        }
        let mut overrides = self.run.overrides.clone();
        if let (Some(folder), Some(need)) = (fallback, self.run.config.need()) {
            overrides.insert(need.key.to_owned(), json!(folder.display().to_string()));
        }
        arguments.extend(set_arguments(&overrides));
        arguments.extend(["--out".to_owned(), self.folder.display().to_string()]);
        arguments
    }
}

impl ExperimentEvaluation {
    /// The path of the record in a run folder.
    pub fn path(&self, run: &Path) -> PathBuf {
        run.join("adapt").join(format!("{}.json", self.name))
    }

    /// The path of the latents in a run folder. The file exists only if the evaluation keeps latents.
    pub(crate) fn latents_path(&self, run: &Path) -> PathBuf {
        run.join("adapt").join(format!("{}.csv", self.name))
    }

    /// The path of the latents in two dimensions in a run folder.
    fn embedding_path(&self, run: &Path) -> PathBuf {
        run.join("adapt").join(format!("{}{EMBEDDING}", self.name))
    }

    /// The number of encounters per tuple that a record has: 1 for the tuples of a uniform sample.
    fn effective_encounters(&self) -> usize {
        let is_family = matches!(self.evaluation.pool.parse::<Split>(), Ok(Split::Uniform(_)));
        if is_family { 1 } else { self.encounters }
    }

    /// The arguments of `pace` that run this evaluation.
    pub(crate) fn adapt_arguments(&self, run: &Path) -> Vec<String> {
        let evaluation = &self.evaluation;
        let mut arguments = vec!["adapt".to_owned(), run.display().to_string()];
        let mut say = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        say("pool", evaluation.pool.clone());
        say("encounters", self.encounters.to_string());
        let given = [
            ("episodes", evaluation.episodes),
            ("context-episodes", evaluation.context_episodes),
            ("switch-at", evaluation.switch_at),
        ];
        for (name, value) in given.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            say(name, value.to_string());
        }
        if evaluation.detector != "none" {
            say("detector", evaluation.detector.clone());
            say("keep-on-clear", evaluation.keep_on_clear.clone());
        }
        if evaluation.latents {
            say("latents", self.latents_path(run).display().to_string());
        }
        say("seed", evaluation.seed.to_string());
        arguments.extend(set_arguments(&evaluation.set));
        arguments
    }
}

/// Estimated remaining time of a run, in seconds of one process.
#[derive(Clone, Debug)]
pub struct TimeEstimate {
    /// Seconds for training.
    pub training_secs: f64,
    /// Seconds for each evaluation.
    pub evaluations: Vec<f64>,
    /// The training speed behind the estimate.
    pub speed: Speed,
}

impl TimeEstimate {
    /// Sum of training and evaluations, in seconds.
    pub fn secs(&self) -> f64 {
        self.training_secs + self.evaluations.iter().sum::<f64>()
    }
}

/// The folder of a lab that contains the runs. `pace report` reads it as a folder of records.
pub(crate) fn runs_folder(lab: &Path) -> PathBuf {
    lab.join("runs")
}

/// Whether a folder has a recorded run whose weights are those recorded.
fn is_whole(record: &Path) -> bool {
    let view = RunView::open(record);
    let checked = view.and_then(|view| Ok((view.manifest()?.is_recorded(), newest_checkpoint(&view)?)));
    checked.is_ok_and(|(is_recorded, _)| is_recorded)
}

/// Keys as command line arguments, `--set KEY=VALUE`.
fn set_arguments(keys: &Map<String, Value>) -> Vec<String> {
    let text = |value: &Value| match value {
        // A string needs quotes only if it would otherwise parse as another JSON value.
        Value::String(word) if serde_json::from_str::<Value>(word).is_err() => word.clone(),
        other => other.to_string(),
    };
    keys.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={}", text(value))]).collect()
}

/// The run folders in a folder by current id, which can differ from the id in a folder's name. Unreadable folders are skipped;
/// [`PlannedRun::state`] reports the reason.
pub(crate) fn folders_by_id(runs: &Path) -> BTreeMap<String, PathBuf> {
    let id_of = |folder: &Path| -> Result<String, LabError> {
        id_of_run(&RunView::open(folder)?.run_config()?, folder)
    };
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    // The names of unfinished folders start with a dot.
    let finished = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    let mut folders: Vec<PathBuf> = finished.map(|entry| entry.path()).collect();
    folders.sort();
    folders.into_iter().filter_map(|folder| Some((id_of(&folder).ok()?, folder))).collect()
}
