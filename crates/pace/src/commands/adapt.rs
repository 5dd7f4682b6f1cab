//! `pace adapt`: a trained agent meets peers it has not seen, beside the reference agents.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::Split;
use pace_lab::{AdaptOptions, Adaptation, LabError, RunView, adapt_run, prepare_folder, write_atomically};
use pace_learn::{ClearKeeps, DETECTORS, Detector};
use pace_report::{AdaptRecord, table};

use super::input::InputArgs;
use super::report::run_page::write_page;
use super::train::threads;
use crate::build_info::command_line;
use crate::game_args::parse_overrides;
use crate::ranges::{number, seed, thread_count, whole};
use crate::say;

#[derive(Debug, Args)]
#[command(after_help = detectors())]
pub struct AdaptArgs {
    /// The run folder.
    run: PathBuf,
    /// Whom it meets: `test`, `train` or `uniform:N` (N draws from the whole family, met once each).
    #[arg(long, default_value = "test")]
    pool: String,
    /// Encounters with each tuple of peers.
    #[arg(long, default_value_t = 200, value_parser = whole::<usize>(1..=1_000_000))]
    passes: usize,
    /// Episodes per encounter; the game's own number if not given, twice that with --switch-at.
    #[arg(long, value_parser = whole::<usize>(1..=10_000))]
    episodes: Option<usize>,
    /// The most episodes the context keeps, the current one included, the oldest being dropped; as many as an encounter had
    /// in training if not given.
    #[arg(long, value_parser = whole::<usize>(1..=10_000))]
    context_episodes: Option<usize>,
    /// After so many episodes other peers take over: the next tuple of the pool, after the last the first. The agent is not
    /// told; the scripted egos are.
    #[arg(long, value_name = "EPISODES", value_parser = whole::<usize>(1..=9_999))]
    switch_at: Option<usize>,
    /// What clears the context within an encounter: `none`, `drop:C` or `known`; see below.
    #[arg(long, default_value = "none")]
    detector: String,
    /// What clearing leaves in the context: `last`, the episode just finished, as the authors' code does, for it was played
    /// with the new peers; or `nothing`, as the paper says.
    #[arg(long, default_value = "last", value_name = "WHAT")]
    clear_keeps: String,
    /// What the logits of its actions are divided by: below 1 it acts more decidedly than it was trained to. As the run's key
    /// `temperature` says if not given.
    #[arg(long, value_parser = number(1e-3..=1e3))]
    temperature: Option<f64>,
    /// Sets one key of the game otherwise than in training, for example `n_peers=3`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Writes the latent of every decision of one encounter with each tuple of peers to a CSV file, with the columns tuple,
    /// description, classes, episode, step, decision, success, return, z_0, z_1, …
    #[arg(long, value_name = "FILE")]
    latents: Option<PathBuf>,
    /// The seed of all chance; the same for two agents gives both the same cards.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Threads; the result does not depend on it.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: InputArgs,
}

fn detectors() -> String {
    let lines = DETECTORS.iter().map(|entry| format!("  {:<8} {}", entry.form, entry.summary));
    format!("Detectors:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

pub fn run(args: &AdaptArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    args.input.exit_with();
    let view = RunView::open(&args.run)?;
    let split = args.pool.parse::<Split>()?;
    let passes = if matches!(split, Split::Family(_)) { 1 } else { args.passes };
    let options = AdaptOptions {
        episodes: args.episodes,
        context_episodes: args.context_episodes,
        switch_at: args.switch_at,
        detector: args.detector.parse::<Detector>()?,
        clear_keeps: args.clear_keeps.parse::<ClearKeeps>()?,
        temperature: args.temperature,
        game_keys: parse_overrides(&args.overrides)?,
        keep_latents: args.latents.is_some(),
        command: command_line(),
        ..AdaptOptions::new(split, passes, args.seed, threads(args.threads))
    };
    if let Some(file) = &args.latents {
        prepare_folder_of(file)?;
    }
    let (Adaptation { record, latents, .. }, saved) = adapt_and_save(&view, &options)?;
    let saved = saved
        .and_then(|()| match args.latents.as_ref().zip(latents) {
            Some((file, latents)) => {
                write_atomically(file, latents.to_csv().as_bytes())?;
                say(&format!("{} latents are in {}", latents.rows.len(), file.display()));
                Ok(())
            }
            None => Ok(()),
        })
        .and_then(|()| write_page(&args.run, &args.run));
    // What was played for minutes is shown even where it cannot be kept.
    let printed = print(&record, args.json, out);
    let page = saved.map_err(not_saved)?;
    printed?;
    if !args.json {
        say(&format!("the page is {}", page.display()));
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
        let (episode, each) = (&record.words.episode, regret.per_encounter);
        writeln!(
            out,
            "regret to the oracle: {:.4}{error} per {episode}, {each:.2} in an encounter\n",
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

/// Evaluates a run's agent and writes the record into the run folder. The results are returned also if they cannot be written.
pub fn adapt_and_save(
    view: &RunView,
    options: &AdaptOptions,
) -> Result<(Adaptation, Result<(), LabError>), LabError> {
    let adaptation = adapt_run(view, options)?;
    if let Some(newest) = adaptation.skipped_checkpoint {
        let steps = adaptation.record.run.steps;
        say(&format!(
            "warning: checkpoint {newest} is damaged and was passed over; this is the agent of step {steps}"
        ));
    }
    let saved = adaptation.save(view);
    Ok((adaptation, saved))
}

/// An error in writing results that were printed.
pub fn not_saved(error: LabError) -> LabError {
    LabError::NotSaved { source: Box::new(error) }
}

fn prepare_folder_of(file: &Path) -> Result<(), LabError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    prepare_folder(folder.unwrap_or(Path::new(".")))
}
