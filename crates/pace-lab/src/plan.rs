//! What several experiments ask for together, and how far a lab is with it. Nothing here writes; `reproduce` does.
//!
//! A lab is a folder: `runs/` holds a run folder for each run of the plan, named by what it is and its id, `logs/` what the
//! processes that trained and evaluated said.

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
use crate::records::read_record;
use crate::run_config::id_of_run;
use crate::run_folder::RunView;
use crate::speeds::{Speed, Speeds};
use crate::training::check_revision;

/// Every run that some experiments need, each of them once.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The runs, seed after seed; a run comes after the one it falls back on.
    pub runs: Vec<PlannedRun>,
    /// What budgets and passes are multiplied with.
    pub scale: f64,
}

/// A run that one experiment or several need.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The run. Its evaluations are those of all experiments.
    pub run: ExperimentRun,
    /// The names of the experiments.
    pub experiments: Vec<String>,
    /// The place in the plan of the run that this one falls back on.
    pub needs: Option<usize>,
    /// Its folder in the lab, whether it is there or not.
    pub folder: PathBuf,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunState {
    /// Nothing of it is there.
    Waiting,
    /// Some process trains it now.
    Running {
        /// Ego decisions so far.
        steps: u64,
    },
    /// It was stopped or killed, and can be gone on with.
    Interrupted {
        /// Ego decisions so far.
        steps: u64,
    },
    /// It is trained.
    Trained,
    /// Its folder cannot be used; the reason, for a person.
    Unusable(String),
}

/// Whether an evaluation was made.
#[derive(Clone, Debug, PartialEq)]
pub enum EvaluationState {
    /// There is no record, or one of something less.
    Missing,
    /// There is one.
    Done,
    /// There is a file that cannot be read; the reason, for a person.
    Damaged(String),
}

impl Plan {
    /// Brings experiments together, for a lab.
    pub fn new(
        experiments: &[Experiment],
        overrides: &ExperimentOverrides,
        lab: &Path,
    ) -> Result<Plan, LabError> {
        let found = folders_by_id(lab);
        let mut runs: Vec<PlannedRun> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for experiment in experiments {
            for run in experiment.expand(overrides)? {
                let Some(&place) = places.get(&run.id) else {
                    places.insert(run.id.clone(), runs.len());
                    let new = || runs_folder(lab).join(&run.folder_name);
                    let folder = found.get(&run.id).cloned().unwrap_or_else(new);
                    let experiments = vec![experiment.name.clone()];
                    runs.push(PlannedRun { run, experiments, needs: None, folder });
                    continue;
                };
                let planned = &mut runs[place];
                if !planned.experiments.contains(&experiment.name) {
                    planned.experiments.push(experiment.name.clone());
                }
                run.evaluations.into_iter().try_for_each(|evaluation| planned.add(evaluation))?;
            }
        }
        // One seed of everything is worth more than all seeds of something. Sorting keeps the order within a seed.
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
    /// One more evaluation. The same one with more passes takes the place of that with fewer.
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
            Some(known) => known.passes = known.passes.max(evaluation.passes),
        }
        Ok(())
    }

    /// What the run is, in a few words.
    pub fn title(&self) -> String {
        let RunConfig { game, method, preset, seed, .. } = &self.run.config;
        let variant =
            if self.run.variant.is_empty() { String::new() } else { format!(" {}", self.run.variant) };
        format!("{game} {method}{variant} {} s{seed}", preset.name())
    }

    /// How far the run is.
    pub fn state(&self) -> RunState {
        let view = match RunView::open(&self.folder) {
            Ok(view) => view,
            // Also what a process leaves that was killed while it made the folder: no manifest, no run.
            Err(LabError::NotARun { .. }) => return RunState::Waiting,
            Err(error) => return RunState::Unusable(error.to_string()),
        };
        // Before the manifest: a run that ends in between has written there that it is not running.
        let has_writer = view.has_writer();
        match self.check(&view) {
            Err(error) => RunState::Unusable(error.to_string()),
            Ok(_) if has_writer == Some(true) => RunState::Running { steps: view.last_step() },
            Ok(RunStatus::Finished) => RunState::Trained,
            Ok(_) => RunState::Interrupted { steps: view.last_step() },
        }
    }

    /// Refuses a folder that is not this run's, or not any more.
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

    /// Whether an evaluation of this run was made.
    pub fn evaluation_state(&self, evaluation: &ExperimentEvaluation) -> EvaluationState {
        let path = evaluation.path(&self.folder);
        if !path.exists() {
            return EvaluationState::Missing;
        }
        let record = match read_record(&path, AdaptRecord::from_json) {
            Ok(record) => record,
            Err(error) => return EvaluationState::Damaged(error.to_string()),
        };
        let has_latents = !evaluation.evaluation.latents || evaluation.latents_path(&self.folder).exists();
        let is_enough = record.passes >= evaluation.passes_made()
            && record.seed.is_none_or(|seed| seed == evaluation.evaluation.seed)
            && record.run.steps >= self.newest_step();
        if is_enough && has_latents { EvaluationState::Done } else { EvaluationState::Missing }
    }

    /// The step of the newest checkpoint; 0 where there is none to compare with.
    fn newest_step(&self) -> u64 {
        let steps = RunView::open(&self.folder)
            .and_then(|view| view.checkpoints(CheckpointLimits::default()).steps())
            .unwrap_or_default();
        steps.last().copied().unwrap_or(0)
    }

    /// Seconds of one process that are left in training and in each evaluation, by the speeds that are known.
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

    /// The arguments of `pace` that train it from the beginning; `fallback` is the run it falls back on, if it does.
    pub fn train_arguments(&self, scale: f64, fallback: Option<&Path>) -> Vec<String> {
        let RunConfig { game, method, preset, seed, .. } = &self.run.config;
        let mut arguments: Vec<String> =
            ["train", game, "--method", method, "--preset", preset.name()].map(str::to_owned).to_vec();
        arguments.extend(["--seed".to_owned(), seed.to_string()]);
        if scale != 1.0 {
            arguments.extend(["--scale".to_owned(), scale.to_string()]);
        }
        let mut overrides = self.run.overrides.clone();
        if let Some(folder) = fallback {
            overrides.insert("gscu.conservative_run".to_owned(), json!(folder.display().to_string()));
        }
        arguments.extend(set_arguments(&overrides));
        arguments.extend(["--out".to_owned(), self.folder.display().to_string()]);
        arguments
    }
}

impl ExperimentEvaluation {
    /// The record in a run's folder.
    pub fn path(&self, run: &Path) -> PathBuf {
        run.join("adapt").join(format!("{}.json", self.name))
    }

    /// The latents in a run's folder, where they are kept.
    pub fn latents_path(&self, run: &Path) -> PathBuf {
        run.join("adapt").join(format!("{}.csv", self.name))
    }

    /// Draws from a family are met once each, whatever is asked.
    fn passes_made(&self) -> usize {
        let is_family = matches!(self.evaluation.pool.parse::<Split>(), Ok(Split::Family(_)));
        if is_family { 1 } else { self.passes }
    }

    /// The arguments of `pace` that make it.
    pub fn adapt_arguments(&self, run: &Path) -> Vec<String> {
        let evaluation = &self.evaluation;
        let mut arguments = vec!["adapt".to_owned(), run.display().to_string()];
        let mut say = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        say("pool", evaluation.pool.clone());
        say("passes", self.passes.to_string());
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
            say("clear-keeps", evaluation.clear_keeps.clone());
        }
        if evaluation.latents {
            say("latents", self.latents_path(run).display().to_string());
        }
        say("seed", evaluation.seed.to_string());
        arguments.extend(set_arguments(&evaluation.set));
        arguments
    }
}

/// What is left of a run to do, in seconds of one process.
#[derive(Clone, Debug)]
pub struct TimeEstimate {
    /// In training.
    pub training_secs: f64,
    /// In each evaluation.
    pub evaluations: Vec<f64>,
    /// By which speed of training.
    pub speed: Speed,
}

impl TimeEstimate {
    /// All of it.
    pub fn secs(&self) -> f64 {
        self.training_secs + self.evaluations.iter().sum::<f64>()
    }
}

/// The folder of a lab that holds the runs; a folder of records.
pub fn runs_folder(lab: &Path) -> PathBuf {
    lab.join("runs")
}

/// Keys as a person would type them.
fn set_arguments(keys: &Map<String, Value>) -> Vec<String> {
    let text = |value: &Value| match value {
        // A word needs quotes only where it would be read as something else.
        Value::String(word) if serde_json::from_str::<Value>(word).is_err() => word.clone(),
        other => other.to_string(),
    };
    keys.iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={}", text(value))]).collect()
}

/// The folders of the runs in a lab by their ids of today, which need not be those in their names. One that cannot be read is
/// left out; whoever wants to use it will say what is wrong.
fn folders_by_id(lab: &Path) -> BTreeMap<String, PathBuf> {
    let id_of = |folder: &Path| -> Result<String, LabError> {
        id_of_run(&RunView::open(folder)?.run_config()?, folder)
    };
    let mut folders: Vec<PathBuf> = std::fs::read_dir(runs_folder(lab))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    folders.sort();
    folders.into_iter().filter_map(|folder| Some((id_of(&folder).ok()?, folder))).collect()
}
