//! `pace train` and `pace resume`: train one run from the beginning or from its newest checkpoint.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::Preset;
use pace_lab::{RunConfig, RunRequest, StopFlag, TrainingRun};
use serde_json::Value;

use super::read_text;
use super::stop_on_stdin::StdinArgs;
use crate::build_info::{all_threads, build};
use crate::game_args::{parse_overrides, preset};
use crate::ranges::{scale, seed, thread_count, training_steps};
use crate::training_loop::{TrainingEnd, train_to_end};
use crate::{Stopped, log_line};

#[derive(Debug, Args)]
pub struct TrainArgs {
    /// Id of the game (`pace list games` shows all).
    game: String,
    /// Training method (`pace list methods` shows all).
    #[arg(long, default_value = "pace")]
    method: String,
    /// Preset with the default keys: `paper`, `reference` or `best`.
    #[arg(long, default_value = "paper", value_parser = preset(), hide_possible_values = true)]
    preset: Preset,
    /// Random seed.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// TOML file with keys that override the preset. Default: none.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Override one key of the preset and the file, for example `learning_rate=1e-4`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Ego decisions to train for; short for `--set total_steps=N`. Default: the `total_steps` of the preset.
    #[arg(long, value_parser = training_steps())]
    steps: Option<u64>,
    /// Multiply all step budgets by this factor (above 0, at most 1) for a quick trial. Reports mark such runs as scaled.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Number of threads; results do not depend on it. Default: all cores.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    /// Run folder; it must be new or empty. Default: runs/GAME-METHOD-PRESET-sSEED.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    input: StdinArgs,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Run folder to resume.
    run: PathBuf,
    /// Number of threads; results do not depend on it. Default: all cores.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    #[command(flatten)]
    input: StdinArgs,
}

pub fn run(args: &TrainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut overrides = parse_overrides(&args.overrides)?;
    if let Some(steps) = args.steps {
        overrides.insert("total_steps".to_owned(), Value::from(steps));
    }
    let text = match &args.config {
        Some(path) => Some((path.display().to_string(), read_config(path)?)),
        None => None,
    };
    let config = RunConfig::resolve(&RunRequest {
        game: &args.game,
        method: &args.method,
        preset: args.preset.name(),
        seed: args.seed,
        file: text.as_ref().map(|(name, text)| (name.as_str(), text.as_str())),
        overrides,
        scale: args.scale,
    })?;
    let folder = args.out.clone().unwrap_or_else(|| {
        let name = format!("{}-{}-{}-s{}", config.game, config.method, config.preset.name(), config.seed);
        Path::new("runs").join(name)
    });
    let stop = StopFlag::install()?;
    args.input.watch(&stop);
    let run = TrainingRun::start(&folder, &config, &build(), threads(args.threads))?;
    finish(run, &stop, out)
}

fn read_config(path: &Path) -> Result<String, pace_lab::LabError> {
    read_text(path).map_err(|error| pace_lab::LabError::BadConfig {
        file: path.display().to_string(),
        reason: format!("{error}; expected a TOML file with keys"),
    })
}

pub fn resume(args: &ResumeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let stop = StopFlag::install()?;
    args.input.watch(&stop);
    let run = TrainingRun::resume(&args.run, threads(args.threads))?;
    if run.trainer().is_finished() {
        log_line("the run is already finished");
    }
    finish(run, &stop, out)
}

/// The requested number of threads. Default: all cores.
pub fn threads(requested: Option<usize>) -> usize {
    requested.unwrap_or_else(all_threads)
}

fn finish(run: TrainingRun, stop: &StopFlag, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = run.path().to_owned();
    match train_to_end(run, stop)? {
        TrainingEnd::Finished => {
            writeln!(out, "{}", path.display())?;
            log_line(&format!("training finished; evaluate it with `pace adapt {}`", path.display()));
            Ok(())
        }
        TrainingEnd::Stopped => {
            log_line(&format!("stopped, checkpoint saved; continue with `pace resume {}`", path.display()));
            Err(Stopped.into())
        }
    }
}
