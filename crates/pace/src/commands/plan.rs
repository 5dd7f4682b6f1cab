//! `pace plan`: lists the runs of `pace reproduce` with their state and the estimated time left.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::{ConfigError, Preset};
use pace_lab::experiment::SMOKE;
use pace_lab::progress::{duration, short};
use pace_lab::{
    EXPERIMENTS, EvaluationState, Experiment, ExperimentOverrides, LabError, Plan, PlannedRun, RunState,
    Speeds,
};
use serde_json::json;

use super::reproduce::n_jobs;
use crate::game_args::preset;
use crate::ranges::{scale, thread_count, whole};

/// The arguments of `pace plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    pub which: ExperimentArgs,
    /// Parallel processes assumed by the estimate. Default: number of cores.
    #[arg(long, value_parser = thread_count())]
    jobs: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The arguments that `pace plan` and `pace reproduce` share.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Experiments by name (`pace list experiments` shows all) or TOML file, or `all`.
    #[arg(default_value = "all", value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Number of seeds. Default: as in the experiment file.
    #[arg(long, value_parser = whole::<u64>(1..=1000))]
    seeds: Option<u64>,
    /// Preset with the default keys: `paper`, `reference` or `best`. Default: as in the experiment file.
    #[arg(long, value_parser = preset(), hide_possible_values = true)]
    preset: Option<Preset>,
    /// Multiply step budgets and evaluation encounters by this factor, for example 0.01, for a quick trial. Reports mark such
    /// runs as scaled. Default: 1.
    #[arg(long, value_parser = scale)]
    scale: Option<f64>,
    /// Folder for runs, logs and evaluations.
    #[arg(long, default_value = "lab")]
    pub out: PathBuf,
    /// Folder of recorded runs, which are not trained again, or `none`. Default: results, if there is such a folder.
    #[arg(long, value_name = "FOLDER|none")]
    recorded: Option<PathBuf>,
}

/// The folder of recorded runs that is used if it exists.
const RESULTS: &str = "results";

impl ExperimentArgs {
    /// Creates the plan of these experiments.
    pub fn plan(&self) -> Result<Plan, LabError> {
        let overrides = ExperimentOverrides { seeds: self.seeds, preset: self.preset, scale: self.scale };
        Plan::new(&self.find()?, &overrides, &self.out, self.recorded()?)
    }

    /// The folder of recorded runs, if one is to be used.
    pub fn recorded(&self) -> Result<Option<&Path>, LabError> {
        match &self.recorded {
            None => Ok(Some(Path::new(RESULTS)).filter(|results| results.is_dir())),
            Some(none) if none.as_os_str() == "none" => Ok(None),
            Some(folder) if folder.is_dir() => Ok(Some(folder)),
            Some(other) => {
                let expected = "a folder of recorded runs, or `none`";
                Err(ConfigError::bad_value("--recorded", &other.display(), expected).into())
            }
        }
    }

    fn find(&self) -> Result<Vec<Experiment>, LabError> {
        let of_paper = || EXPERIMENTS.iter().map(|(name, _)| *name).filter(|name| *name != SMOKE);
        let mut names: Vec<&str> = Vec::new();
        for name in &self.experiments {
            match name.as_str() {
                "all" => names.extend(of_paper()),
                name => names.push(name),
            }
        }
        names.into_iter().map(Experiment::find).collect()
    }
}

pub fn run(args: &PlanArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let (plan, lab) = (args.which.plan()?, &args.which.out);
    let n_jobs = n_jobs(args.jobs);
    let speeds = Speeds::of_lab(lab);
    let lines: Vec<Line<'_>> = plan
        .runs
        .iter()
        .map(|planned| {
            let states: Vec<EvaluationState> = planned
                .run
                .evaluations
                .iter()
                .map(|evaluation| planned.evaluation_state(evaluation))
                .collect();
            let estimate = planned.estimate(&speeds);
            let of_lab = estimate.speed.is_of_lab;
            Line { planned, state: planned.state(), evaluations: states, secs: estimate.secs(), of_lab }
        })
        .collect();
    let secs: f64 = lines.iter().map(|line| line.secs).sum::<f64>() / n_jobs as f64;
    let n_done = lines.iter().filter(|line| line.is_done()).count();
    if args.json {
        let document = json!({
            "lab": lab.display().to_string(),
            "scale": plan.scale,
            "jobs": n_jobs,
            "seconds_left": secs,
            "n_done": n_done,
            "speed_table_machine": speeds.machine(),
            "runs": lines.iter().map(Line::to_json).collect::<Vec<_>>(),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        return Ok(());
    }
    let width = lines.iter().map(|line| line.planned.title().chars().count()).max().unwrap_or(0);
    for line in &lines {
        let title = line.planned.title();
        let budget = short(line.planned.run.config.train.total_steps as f64);
        writeln!(
            out,
            "{}  {title:<width$}  {budget:>6} steps  {:<24}  {}",
            line.planned.run.id,
            line.state_text(),
            if line.is_done() { "-".to_owned() } else { duration(line.secs) }
        )?;
    }
    let n_recorded = lines.iter().filter(|line| line.planned.record.is_some()).count();
    if let Some(recorded) = args.which.recorded()?.filter(|_| n_recorded > 0) {
        writeln!(out, "{n_recorded} runs were found in {}; they are not trained again", recorded.display())?;
    }
    let n_of_lab = lines.iter().filter(|line| line.of_lab).count();
    writeln!(
        out,
        "\n{n_done} of {} runs done; about {} left with {n_jobs} parallel processes",
        lines.len(),
        duration(secs)
    )?;
    writeln!(
        out,
        "speeds: {n_of_lab} measured in {}, {} from `experiments/speeds.toml` ({})",
        lab.display(),
        lines.len() - n_of_lab,
        speeds.machine()
    )?;
    if plan.scale != 1.0 {
        writeln!(
            out,
            "Scaled plan: budgets and encounters multiplied by {}. The scores are not results.",
            plan.scale
        )?;
    }
    Ok(())
}

/// A run of the plan with its state and its estimated time.
struct Line<'a> {
    planned: &'a PlannedRun,
    state: RunState,
    evaluations: Vec<EvaluationState>,
    secs: f64,
    of_lab: bool,
}

impl Line<'_> {
    fn n_evaluated(&self) -> usize {
        self.evaluations.iter().filter(|state| **state == EvaluationState::Done).count()
    }

    fn is_done(&self) -> bool {
        self.state == RunState::Trained && self.n_evaluated() == self.evaluations.len()
    }

    fn state_text(&self) -> String {
        let percent = |steps: u64| 100 * steps / self.planned.run.config.train.total_steps;
        match &self.state {
            RunState::Waiting => "waiting".to_owned(),
            RunState::Running { steps } => format!("running, {} %", percent(*steps)),
            RunState::Interrupted { steps } => format!("interrupted at {} %", percent(*steps)),
            RunState::Trained => {
                let is_recorded = self.planned.is_recorded();
                let evaluated = format!("evaluated {}/{}", self.n_evaluated(), self.evaluations.len());
                match (is_recorded, self.is_done()) {
                    (false, true) => "done".to_owned(),
                    (true, true) => "done, recorded".to_owned(),
                    (false, false) => format!("trained, {evaluated}"),
                    (true, false) => format!("recorded, {evaluated}"),
                }
            }
            RunState::Unusable(reason) => format!("unusable: {reason}"),
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let run = &self.planned.run;
        let (state, steps) = match &self.state {
            RunState::Waiting => ("waiting", 0),
            RunState::Running { steps } => ("running", *steps),
            RunState::Interrupted { steps } => ("interrupted", *steps),
            RunState::Trained => ("trained", run.config.train.total_steps),
            RunState::Unusable(_) => ("unusable", 0),
        };
        let evaluations: Vec<_> = run
            .evaluations
            .iter()
            .zip(&self.evaluations)
            .map(|(evaluation, state)| {
                let state = match state {
                    EvaluationState::Missing => "missing",
                    EvaluationState::Done => "done",
                    EvaluationState::Damaged(_) => "damaged",
                };
                json!({ "name": evaluation.name, "passes": evaluation.encounters, "state": state })
            })
            .collect();
        json!({
            "id": run.id,
            "folder": run.folder_name,
            "record": self.planned.record.as_ref().map(|record| record.display().to_string()),
            "game": run.config.game,
            "method": run.config.method,
            "variant": run.variant,
            "preset": run.config.preset,
            "seed": run.config.seed,
            "experiments": self.planned.experiments,
            "depends_on": run.needs,
            "total_steps": run.config.train.total_steps,
            "steps": steps,
            "state": state,
            "evaluations": evaluations,
            "seconds_left": self.secs,
            "speed_measured_here": self.of_lab,
        })
    }
}
