//! `pace adapt`: a trained agent meets peers it has not seen, beside the scripted egos that bound its score.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pace_games::Split;
use pace_lab::{AdaptOptions, CheckpointLimits, RunView, adapt_run, train_record, write_atomically};
use pace_report::AdaptRecord;

use super::train::threads;
use crate::build_info::command_line;
use crate::say;

#[derive(Debug, Args)]
pub struct AdaptArgs {
    /// The run folder.
    run: PathBuf,
    /// Whom it meets: `test`, `train` or `uniform:N` (N draws from the whole family, met once each).
    #[arg(long, default_value = "test")]
    pool: String,
    /// Encounters with each tuple of peers.
    #[arg(long, default_value_t = 200)]
    passes: usize,
    /// Episodes per encounter; the game's own number if not given.
    #[arg(long)]
    episodes: Option<usize>,
    /// The most episodes the context keeps, the oldest being dropped; all if not given.
    #[arg(long)]
    context_episodes: Option<usize>,
    /// The seed of all chance; the same for two agents gives both the same cards.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Threads; the result does not depend on it.
    #[arg(long)]
    threads: Option<usize>,
    /// Print the whole record as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &AdaptArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let check = |argument: &str, found: Option<usize>, most: usize| {
        let found = found.unwrap_or(1);
        anyhow::ensure!((1..=most).contains(&found), "{argument}: found {found}, expected 1 to {most}");
        Ok(())
    };
    check("--passes", Some(args.passes), 1_000_000)?;
    check("--episodes", args.episodes, 10_000)?;
    check("--context-episodes", args.context_episodes, 10_000)?;
    let view = RunView::open(&args.run)?;
    let split = Split::parse(&args.pool)?;
    let options = AdaptOptions {
        split,
        passes: if matches!(split, Split::Family(_)) { 1 } else { args.passes },
        episodes: args.episodes,
        context_episodes: args.context_episodes,
        seed: args.seed,
        command: command_line(),
        n_threads: threads(args.threads)?,
    };
    let (record, page_path) = adapt_and_write(&view, &options)?;
    if args.json {
        write!(out, "{}", record.to_json().map_err(pace_lab::LabError::from)?)?;
        return Ok(());
    }
    writeln!(out, "{}", pace_report::table::headline(&record))?;
    writeln!(out, "{}", pace_report::table::blocks(&record))?;
    if !record.peers.is_empty() {
        writeln!(out, "{}", pace_report::table::peers(&record))?;
    }
    say(&format!("the page is {}", page_path.display()));
    Ok(())
}

/// Plays the encounters and leaves the record and the page in the run folder; returns the record and the page's path.
pub fn adapt_and_write(view: &RunView, options: &AdaptOptions) -> anyhow::Result<(AdaptRecord, PathBuf)> {
    let newest = view.checkpoints(CheckpointLimits::default()).steps()?.last().copied();
    let record = adapt_run(view, options)?;
    if let Some(newest) = newest.filter(|newest| *newest > record.run.steps) {
        let steps = record.run.steps;
        say(&format!(
            "warning: checkpoint {newest} is damaged and was passed over; this is the agent of step {steps}"
        ));
    }
    let text = record.to_json().map_err(pace_lab::LabError::from)?;
    let name = record.pool.replace(':', "-");
    write_atomically(&view.adapt_path().join(format!("{name}.json")), text.as_bytes())?;
    let page = pace_report::page::render(&record, Some(&train_record(view)?));
    let page_name =
        if options.split == Split::Test { "report.html".to_owned() } else { format!("report-{name}.html") };
    let page_path = view.path().join(page_name);
    write_atomically(&page_path, page.as_bytes())?;
    Ok((record, page_path))
}
