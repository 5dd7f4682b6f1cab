//! `pace quickstart`: trains PACE on the smallest game for about a minute and evaluates it on ten unseen peers.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pace_games::Split;
use pace_lab::{
    AdaptOptions, Adaptation, ReplayOptions, RunConfig, RunRequest, RunView, StopFlag, TrainingRun,
    write_replay,
};
use pace_report::table;
use serde_json::{Map, Value};

use super::adapt::{adapt_and_save, not_saved};
use super::report::run_page::write_page;
use super::train::threads;
use crate::build_info::{build, command_line};
use crate::ranges::{seed, thread_count, training_steps, whole};
use crate::training_loop::{TrainingEnd, train_to_end};
use crate::{Stopped, log_line};

#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// Ego decisions to train for. The default takes about a minute on two cores.
    #[arg(long, default_value_t = 3_000_000, value_parser = training_steps())]
    steps: u64,
    /// Encounters of 100 hands per test peer.
    #[arg(long, default_value_t = 200, value_parser = whole::<usize>(2..=10_000))]
    encounters: usize,
    /// Random seed.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Number of threads; results do not depend on it. Default: all cores.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    /// Run folder. An unfinished run in it is resumed, a finished one is reused.
    #[arg(long, default_value = "runs/quickstart")]
    out: PathBuf,
}

pub fn run(args: &QuickstartArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let n_threads = threads(args.threads);
    let stop = StopFlag::install()?;
    let run = if args.out.join("manifest.json").exists() {
        log_line(&format!("resuming the run in {}; delete the folder to start over", args.out.display()));
        TrainingRun::resume(&args.out, n_threads)?
    } else {
        let config = RunConfig::resolve(&RunRequest {
            game: "kuhn-poker",
            method: "pace",
            preset: "best",
            seed: args.seed,
            file: None,
            overrides: overrides(args.steps),
            scale: 1.0,
        })?;
        log_line("training PACE on Kuhn Poker against 40 peers; Ctrl-C saves a checkpoint and stops");
        TrainingRun::start(&args.out, &config, &build(), n_threads)?
    };
    if train_to_end(run, &stop)? == TrainingEnd::Stopped {
        log_line("stopped, checkpoint saved; continue with the same command");
        return Err(Stopped.into());
    }
    let view = RunView::open(&args.out)?;
    let options = |split: Split, passes: usize| AdaptOptions {
        command: command_line(),
        ..AdaptOptions::new(split, passes, args.seed, n_threads)
    };
    log_line("evaluating on ten unseen peers");
    let (Adaptation { record, .. }, saved) = adapt_and_save(&view, &options(Split::Test, args.encounters))?;
    let (Adaptation { record: training_record, .. }, saved_second) =
        adapt_and_save(&view, &options(Split::Train, 10))?;
    // The report also shows one encounter step by step.
    let replay = ReplayOptions {
        split: Split::Test,
        tuple: 3,
        episodes: None,
        seed: args.seed,
        command: command_line(),
    };
    let page = saved
        .and(saved_second)
        .and_then(|()| write_replay(&view, &replay, None))
        .and_then(|_| write_page(&args.out, &args.out));
    writeln!(out, "{}", table::headline(&record))?;
    writeln!(out, "{}", table::blocks(&record))?;
    let (first, last) = (&record.blocks[0], &record.blocks[record.blocks.len() - 1]);
    let error = |block: &pace_report::BlockRecord| block.standard_error.unwrap_or(f64::NAN);
    let (gain, gain_error) = (last.mean - first.mean, error(first).hypot(error(last)));
    writeln!(
        out,
        "Within an encounter the agent gains {gain:+.4} ± {gain_error:.4} per hand from its first ten hands to its last ten \
         ({:.0} standard errors), without weight updates.\n",
        gain / gain_error
    )?;
    writeln!(out, "Identification accuracy on the 40 training peers (chance: 0.025):\n")?;
    for block in &training_record.blocks {
        if let Some(identification) = &block.identification {
            writeln!(out, "  hands {:>7}  {:.3}", block.range("-"), identification.accuracy)?;
        }
    }
    let page = page.map_err(not_saved)?;
    writeln!(out, "\nreport with the adaptation curve and one encounter step by step: {}", page.display())?;
    writeln!(
        out,
        "Next: pace watch {} --peer 3    pace watch overcooked    pace train kuhn-poker --preset best    pace list games",
        args.out.display()
    )?;
    Ok(())
}

/// Keys of this short run. It needs fewer epochs and a larger learning rate than `best` at full budget. The identifier
/// predicts classes instead of traits, so that its accuracy can be reported.
fn overrides(steps: u64) -> Map<String, Value> {
    let keys = [
        ("total_steps", Value::from(steps)),
        ("epochs", Value::from(8)),
        ("learning_rate", Value::from(7e-4)),
        ("identifier_target", Value::from("classes")),
        ("auxiliary_weight", Value::from(0.3)),
    ];
    keys.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}
