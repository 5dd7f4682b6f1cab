//! One file per command; this list is the table of contents of the command line.

mod bench;
mod check;
mod list;
mod quickstart;
mod references;
mod watch;

use std::io::Write;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The main job in about a minute: meet the ten unseen Kuhn poker peers and see who adapts.
    Quickstart(quickstart::QuickstartArgs),
    /// What there is: games, peers.
    #[command(subcommand)]
    List(list::ListCommand),
    /// Play a game against its contract and say which promises it keeps.
    Check(check::CheckArgs),
    /// Watch a scripted ego play one encounter in the terminal.
    Watch(watch::WatchArgs),
    /// Measure the scripted egos that bound every learned one.
    References(references::ReferencesArgs),
    /// Measure speed.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

impl Command {
    pub fn run(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Command::Quickstart(args) => quickstart::run(args, out),
            Command::List(command) => list::run(command, out),
            Command::Check(args) => check::run(args, out),
            Command::Watch(args) => watch::run(args, out),
            Command::References(args) => references::run(args, out),
            Command::Bench(command) => bench::run(command, out),
        }
    }
}
