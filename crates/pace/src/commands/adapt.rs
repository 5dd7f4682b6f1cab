//! `pace adapt`: evaluates how a trained agent adapts to a pool of peers, next to the reference agents.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::Split;
use pace_lab::{AdaptOptions, Adaptation, LabError, RunView, adapt_run, prepare_folder, write_atomically};
use pace_learn::{ClearKeeps, DETECTORS, Detector};
use pace_report::{AdaptRecord, table};

use super::report::run_page::write_page;
use super::stop_on_stdin::StdinArgs;
use super::train::threads;
use crate::build_info::command_line;
use crate::game_args::parse_overrides;
use crate::log_line;
use crate::ranges::{number, seed, thread_count, whole};

#[derive(Debug, Args)]
#[command(after_help = detectors())]
pub struct AdaptArgs {
    /// Run folder of the trained agent.
    run: PathBuf,
    /// Peer pool: `test`, `validation`, `train` or `uniform:N` (N tuples sampled uniformly, one encounter each).
    #[arg(long, default_value = "test")]
    pool: Split,
    /// Encounters per peer tuple.
    #[arg(long, alias = "passes", default_value_t = 200, value_parser = whole::<usize>(1..=1_000_000))]
    encounters: usize,
    /// Episodes per encounter. Default: the game's `episodes_per_encounter`, doubled with --switch-at.
    #[arg(long, value_parser = whole::<usize>(1..=10_000))]
    episodes: Option<usize>,
    /// Maximum number of episodes in the context, including the current one; older episodes are dropped. Default: episodes per
    /// encounter in training.
    #[arg(long, value_parser = whole::<usize>(1..=10_000))]
    context_episodes: Option<usize>,
    /// Replace the peers after this many episodes by the next tuple of the pool (the last tuple is followed by the first). The
    /// agent is not informed; the reference agents are. Default: no switch.
    #[arg(long, value_name = "EPISODES", value_parser = whole::<usize>(1..=9_999))]
    switch_at: Option<usize>,
    /// Change detector that clears the context: `none`, `drop:C` or `known` (see below).
    #[arg(long, default_value = "none")]
    detector: Detector,
    /// Part of the context kept when it is cleared: `last` (the finished episode, as in the authors' code) or `nothing` (as in
    /// the paper).
    #[arg(long, alias = "clear-keeps", default_value = "last", value_name = "WHAT")]
    keep_on_clear: String,
    /// Softmax temperature of the policy; below 1 it is more deterministic. Default: the run's `temperature`.
    #[arg(long, value_parser = number(1e-3..=1e3))]
    temperature: Option<f64>,
    /// Override one game key for this evaluation, for example `n_peers=3`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Write the latent at every decision of one encounter per peer tuple to this CSV file (columns: tuple, description,
    /// classes, episode, step, decision, success, return, z_0, z_1, …).
    #[arg(long, value_name = "FILE")]
    latents: Option<PathBuf>,
    /// Random seed. Agents evaluated with the same seed face the same random events.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Number of threads; results do not depend on it. Default: all cores.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    /// Print the complete record as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: StdinArgs,
}

fn detectors() -> String {
    let lines = DETECTORS.iter().map(|entry| format!("  {:<8} {}", entry.form, entry.summary));
    format!("Detectors:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

pub fn run(args: &AdaptArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    args.input.exit_with();
    let view = RunView::open(&args.run)?;
    let split = args.pool;
    let encounters = if matches!(split, Split::Uniform(_)) { 1 } else { args.encounters };
    let options = AdaptOptions {
        episodes: args.episodes,
        context_episodes: args.context_episodes,
        switch_at: args.switch_at,
        detector: args.detector,
        keep_on_clear: args.keep_on_clear.parse::<ClearKeeps>()?,
        temperature: args.temperature,
        game_keys: parse_overrides(&args.overrides)?,
        keep_latents: args.latents.is_some(),
        command: command_line(),
        ..AdaptOptions::new(split, encounters, args.seed, threads(args.threads))
    };
    if let Some(file) = &args.latents {
        prepare_folder_of(file)?;
    }
    let (Adaptation { record, latents, .. }, saved) = adapt_and_save(&view, &options)?;
    let saved = saved
        .and_then(|()| match args.latents.as_ref().zip(latents) {
            Some((file, latents)) => {
                write_atomically(file, latents.to_csv().as_bytes())?;
                log_line(&format!("wrote {} latents to {}", latents.rows.len(), file.display()));
                Ok(())
            }
            None => Ok(()),
        })
        .and_then(|()| write_page(&args.run, &args.run));
    // The results may have taken minutes: they are printed also if they cannot be saved.
    let printed = print(&record, args.json, out);
    let page = saved.map_err(not_saved)?;
    printed?;
    if !args.json {
        log_line(&format!("report: {}", page.display()));
    }
    Ok(())
}

fn print(record: &AdaptRecord, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    if json {
        write!(out, "{}", record.to_json().map_err(LabError::from)?)?;
        return Ok(());
    }
    writeln!(out, "{}", table::headline(record))?;
    if let Some(regret) = &record.regret {
        let error = regret.standard_error.map_or(String::new(), |error| format!(" ± {error:.4}"));
        let (episode, per_encounter) = (&record.words.episode, regret.per_encounter);
        writeln!(
            out,
            "regret against the oracle: {:.4}{error} per {episode}, {per_encounter:.2} per encounter\n",
            regret.mean
        )?;
    }
    writeln!(out, "{}", table::blocks(record))?;
    writeln!(out, "{}", table::diagnostics(record))?;
    if !record.identification_by_decision.is_empty() {
        writeln!(out, "{}", table::identification(record))?;
    }
    if !record.peers.is_empty() {
        writeln!(out, "{}", table::peers(record))?;
    }
    Ok(())
}

/// Evaluates a run's agent and writes the record to the run folder. Returns the results even if writing fails.
pub fn adapt_and_save(
    view: &RunView,
    options: &AdaptOptions,
) -> Result<(Adaptation, Result<(), LabError>), LabError> {
    let adaptation = adapt_run(view, options)?;
    if let Some(newest) = adaptation.skipped_checkpoint {
        let steps = adaptation.record.run.steps;
        log_line(&format!("warning: checkpoint {newest} is damaged; using the checkpoint of step {steps}"));
    }
    let saved = adaptation.save(view);
    Ok((adaptation, saved))
}

/// Wraps an error in saving results that were already printed.
pub fn not_saved(error: LabError) -> LabError {
    LabError::NotSaved { source: Box::new(error) }
}

fn prepare_folder_of(file: &Path) -> Result<(), LabError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    prepare_folder(folder.unwrap_or(Path::new(".")))
}
