//! `pace train` and `pace resume`: one run, from its beginning or its newest checkpoint.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_lab::{RunConfig, RunRequest, StopFlag, TrainingRun};
use serde_json::Value;

use super::input::InputArgs;
use super::read_text;
use crate::build_info::{all_threads, build};
use crate::game_args::parse_overrides;
use crate::ranges::{scale, seed, thread_count, training_steps};
use crate::training_loop::{Left, train_to_end};
use crate::{Stopped, say};

#[derive(Debug, Args)]
pub struct TrainArgs {
    /// The game's id; `pace list games` shows them.
    game: String,
    /// The method; `pace list methods` shows them.
    #[arg(long, default_value = "pace")]
    method: String,
    /// Where the keys start from: `paper`, `reference` or `best`.
    #[arg(long, default_value = "paper")]
    preset: String,
    /// The seed of all chance.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// A TOML file with keys, on top of the preset.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Sets one key on top of everything else, for example `learning_rate=1e-4`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Ego decisions to train for; short for `--set total_steps=N`.
    #[arg(long, value_parser = training_steps())]
    steps: Option<u64>,
    /// Multiplies every budget that is counted in steps, for a rehearsal; the run says so wherever it shows.
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Threads; the result does not depend on it. All cores if not given.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    /// The run folder, which must be new or empty. Default: runs/GAME-METHOD-PRESET-sSEED.
    #[arg(long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run folder.
    run: PathBuf,
    /// Threads; the result does not depend on it. All cores if not given.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    #[command(flatten)]
    input: InputArgs,
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
        preset: &args.preset,
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
        say("the run is finished; nothing is left to do");
    }
    finish(run, &stop, out)
}

/// The number of threads asked for, or all.
pub fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(all_threads)
}

fn finish(run: TrainingRun, stop: &StopFlag, out: &mut dyn Write) -> anyhow::Result<()> {
    let path = run.path().to_owned();
    match train_to_end(run, stop)? {
        Left::Finished => {
            writeln!(out, "{}", path.display())?;
            say(&format!("finished; `pace adapt {}` meets the unseen peers", path.display()));
            Ok(())
        }
        Left::Stopped => {
            say(&format!("stopped and saved; `pace resume {}` goes on", path.display()));
            Err(Stopped.into())
        }
    }
}
