//! The commands of `pace`, one file each, and their summaries in `pace --help`.

mod adapt;
mod bench;
mod check;
mod completions;
mod inspect;
mod keep;
mod list;
mod man;
mod plan;
mod play;
mod quickstart;
mod references;
mod report;
mod reproduce;
mod stop_on_stdin;
mod study;
mod train;
mod watch;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use clap::Subcommand;

use crate::usage;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train PACE on Kuhn Poker for about a minute, evaluate it on ten unseen peers and write a report.
    Quickstart(quickstart::QuickstartArgs),
    /// Train an agent. A run can be stopped and resumed.
    Train(train::TrainArgs),
    /// Resume a run from its newest valid checkpoint.
    Resume(train::ResumeArgs),
    /// Evaluate how a trained agent adapts to a pool of peers.
    Adapt(adapt::AdaptArgs),
    /// Train and evaluate the runs behind the paper's tables and figures. Can be interrupted and continued.
    Reproduce(reproduce::ReproduceArgs),
    /// List the runs of `pace reproduce`, their state and the estimated time left.
    Plan(plan::PlanArgs),
    /// Write an HTML report of one run, or of a folder of runs next to the paper's numbers.
    Report(report::ReportArgs),
    /// Record finished runs with their final weights, so that they can be published and evaluated without training.
    Keep(keep::KeepArgs),
    /// Show status, checkpoints and last metrics of a run.
    Inspect(inspect::InspectArgs),
    /// List games, methods, peers or experiments.
    #[command(subcommand)]
    List(list::ListCommand),
    /// Run the conformance checks of the `Game` trait on a game.
    Check(check::CheckArgs),
    /// Show one encounter of a trained agent or a scripted ego in the terminal.
    Watch(watch::WatchArgs),
    /// Serve a web page on which people play with agents; with --study, run a human-subject study.
    Play(play::PlayArgs),
    /// Export, summarise or delete the data of a human-subject study, or print links for its participants.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Measure the scripted reference agents.
    References(references::ReferencesArgs),
    /// Run benchmarks.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Print the completion script of a shell.
    Completions(completions::CompletionsArgs),
    /// Write the manual pages, one file per command.
    Man(man::ManArgs),
    /// Print every command with its arguments as JSON, for programs.
    #[command(hide = true)]
    Commands,
}

impl Command {
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Command::Quickstart(args) => quickstart::run(args, out),
            Command::Train(args) => train::run(args, out),
            Command::Resume(args) => train::resume(args, out),
            Command::Adapt(args) => adapt::run(args, out),
            Command::Reproduce(args) => reproduce::run(args, out),
            Command::Plan(args) => plan::run(args, out),
            Command::Report(args) => report::run(args, out),
            Command::Keep(args) => keep::run(args, out),
            Command::Inspect(args) => inspect::run(args, out),
            Command::List(command) => list::run(command, out),
            Command::Check(args) => check::run(args, out),
            Command::Watch(args) => watch::run(args, out),
            Command::Play(args) => play::run(args, out),
            Command::Study(command) => study::run(command, out),
            Command::References(args) => references::run(args, out),
            Command::Bench(command) => bench::run(command, out),
            Command::Completions(args) => completions::run(args, out),
            Command::Man(args) => man::run(args, out),
            Command::Commands => Ok(writeln!(out, "{}", usage::tree())?),
        }
    }
}

/// Maximum size of a TOML file with keys or a study.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Reads a TOML file of limited size. Reading stops at the limit, since a device such as `/dev/zero` has no end.
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(io::Error::other(format!("found more than {MAX_TEXT_BYTES} bytes")));
    }
    Ok(text)
}
