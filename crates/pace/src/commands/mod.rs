//! One file per command; this list is the table of contents of the command line.

mod adapt;
mod bench;
mod check;
mod completions;
mod input;
mod inspect;
mod list;
mod man;
mod plan;
mod play;
mod quickstart;
mod references;
mod report;
mod reproduce;
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
    /// The main job in about a minute: meet the ten unseen Kuhn poker peers and see who adapts.
    Quickstart(quickstart::QuickstartArgs),
    /// Train one run; it can be stopped and resumed.
    Train(train::TrainArgs),
    /// Go on with a run from its newest whole checkpoint.
    Resume(train::ResumeArgs),
    /// A trained agent meets peers it has not seen.
    Adapt(adapt::AdaptArgs),
    /// Tables and figures of the paper: trains and evaluates whatever they need; can be stopped and goes on.
    Reproduce(reproduce::ReproduceArgs),
    /// What `pace reproduce` would do, and how long it would take.
    Plan(plan::PlanArgs),
    /// A page with the tables and figures of a run, or of a whole folder of runs.
    Report(report::ReportArgs),
    /// What is in a run folder.
    Inspect(inspect::InspectArgs),
    /// What there is: games, methods, peers, experiments.
    #[command(subcommand)]
    List(list::ListCommand),
    /// Play a game against its contract and say which promises it keeps.
    Check(check::CheckArgs),
    /// Watch a trained agent, or a scripted ego, play one encounter in the terminal.
    Watch(watch::WatchArgs),
    /// Play with agents in the browser, and see what they think of you; or run a study with participants.
    Play(play::PlayArgs),
    /// What a study has found: its data, its means, and one participant taken out.
    #[command(subcommand)]
    Study(study::StudyCommand),
    /// Measure the reference agents: scripted egos to compare learned ones with.
    References(references::ReferencesArgs),
    /// Measure speed.
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

/// The largest file of keys or of a study.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Reads a file that a person has written. A larger one is refused before it is in memory: a device may have no end.
fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(io::Error::other(format!("found more than {MAX_TEXT_BYTES} bytes")));
    }
    Ok(text)
}
