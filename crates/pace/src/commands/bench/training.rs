//! `pace bench train`: measures steps per second and memory of training runs in temporary folders.
//!
//! Every run has its own process, so that its peak memory is its own.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use pace_games::{GAMES, Preset, find_game};
use pace_lab::{RunConfig, RunRequest, TrainingRun};
use serde_json::{Value, json};

use crate::build_info::{all_threads, build};
use crate::game_args::{parse_overrides, preset};
use crate::ranges::thread_count;

#[derive(Debug, Args)]
pub struct BenchTrainArgs {
    /// Ids of games. Default: all games.
    games: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Seconds per run; at least one iteration is completed.
    #[arg(long, default_value = "20", value_parser = super::seconds)]
    seconds: Duration,
    /// Number of threads. Default: two measurements, with one thread and with all cores.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    /// Preset of the keys. Default: two measurements, with `best` and `paper`.
    #[arg(long, value_parser = preset(), hide_possible_values = true)]
    preset: Option<Preset>,
    /// Override one key of the run, as in `pace train`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Measure one game in this process; the command starts itself with this option.
    #[arg(long, alias = "in-this-process", hide = true)]
    worker: bool,
}

pub fn run(args: &BenchTrainArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.worker {
        let (Some(game), Some(n_threads)) = (args.games.first(), args.threads) else {
            anyhow::bail!("--worker: expected one game and --threads");
        };
        let preset = args.preset.unwrap_or(Preset::Best);
        return Ok(writeln!(out, "{}", measure(game, preset, n_threads, args.seconds, &args.overrides)?)?);
    }
    let games: Vec<&str> = match args.games.as_slice() {
        [] => GAMES.iter().map(|entry| entry.id).collect(),
        some => some.iter().map(|id| find_game(id).map(|entry| entry.id)).collect::<Result<_, _>>()?,
    };
    let counts = match args.threads {
        Some(n_threads) => vec![n_threads],
        None => super::thread_counts(all_threads()),
    };
    let presets = args.preset.map_or(vec![Preset::Best, Preset::Paper], |preset| vec![preset]);
    let mut rows = Vec::new();
    for game in games {
        for (preset, n_threads) in presets.iter().flat_map(|preset| counts.iter().map(move |n| (preset, n))) {
            let preset = preset.name();
            let row = measure_in_process(game, preset, *n_threads, args)?;
            if !args.json {
                writeln!(
                    out,
                    "{game:<14} {preset:<10} {n_threads} thread(s) {:>9} steps/s, peak memory {} MB, {} of the time in rollouts",
                    row["steps_per_second"], row["peak_rss_mb"], row["rollout_share"]
                )?;
            }
            rows.push(row);
        }
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "runs": rows }))?)?;
    }
    Ok(())
}

/// Measures one game in a process of its own.
fn measure_in_process(
    game: &str,
    preset: &str,
    n_threads: usize,
    args: &BenchTrainArgs,
) -> anyhow::Result<Value> {
    let program = std::env::current_exe().context("locating the pace executable")?;
    let mut command = Command::new(program);
    command.args(["bench", "train", game, "--preset", preset, "--worker"]);
    command.args(["--threads", &n_threads.to_string(), "--seconds", &args.seconds.as_secs_f64().to_string()]);
    for pair in &args.overrides {
        command.args(["--set", pair]);
    }
    let output = command.stderr(Stdio::piped()).output().context("starting a run in its own process")?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        let reason = messages.lines().rev().find_map(|line| line.strip_prefix("error: "));
        anyhow::bail!("{}", reason.unwrap_or("the process of the run failed without a message"));
    }
    serde_json::from_slice(&output.stdout).context("reading the output of the run's process")
}

/// Trains in a temporary folder and measures speed and memory.
fn measure(
    game: &str,
    preset: Preset,
    n_threads: usize,
    time: Duration,
    pairs: &[String],
) -> anyhow::Result<Value> {
    let mut overrides = parse_overrides(pairs)?;
    // The warm-up is skipped: it trains only a part of the networks, and most of a run comes after it.
    overrides.entry("warm_up_steps").or_insert_with(|| Value::from(0));
    let request = RunRequest {
        game,
        method: "pace",
        preset: preset.name(),
        seed: 1,
        file: None,
        overrides,
        scale: 1.0,
    };
    let config = RunConfig::resolve(&request)?;
    let folder = TempFolder::new();
    let mut run = TrainingRun::start(&folder.0, &config, &build(), n_threads)?;
    let begin = Instant::now();
    let mut n_iterations = 0;
    while n_iterations == 0 || begin.elapsed() < time {
        if run.advance()?.is_none() {
            break;
        }
        n_iterations += 1;
    }
    let (steps, rollout_secs) = (run.trainer().steps(), run.rollout_secs());
    run.end()?;
    let secs = begin.elapsed().as_secs_f64();
    Ok(json!({
        "game": config.game,
        "preset": config.preset,
        "epochs": config.train.epochs,
        "minibatch_unit": config.train.minibatch_unit,
        "threads": n_threads,
        "steps_per_second": (steps as f64 / secs).round(),
        "peak_rss_mb": peak_rss_mb(),
        "iterations": n_iterations,
        "steps": steps,
        "seconds": super::rounded(secs),
        "rollout_share": super::rounded(rollout_secs / secs),
    }))
}

/// Peak memory of this process, on systems that report it (Linux).
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kilobytes / 1024.0 * 10.0).round() / 10.0)
}

/// A temporary folder that is removed on drop.
pub(super) struct TempFolder(pub(super) std::path::PathBuf);

impl TempFolder {
    pub(super) fn new() -> TempFolder {
        TempFolder(std::env::temp_dir().join(format!("pace-bench-{}", std::process::id())))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A folder that cannot be removed does not invalidate the measurement.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
