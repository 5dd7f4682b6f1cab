//! `pace bench`: benchmarks of games, updates, training and the play server on this machine.

mod engine;
mod games;
mod play;
mod training;

use std::io::Write;
use std::time::Duration;

use clap::Subcommand;

use crate::ranges::number;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure steps per second of every game on one thread, including the peers' actions and the ego's observation.
    Games(games::BenchGamesArgs),
    /// Time one gradient update per game, its matrix products alone, and one rollout.
    Engine(engine::BenchEngineArgs),
    /// Time complete training iterations: rollout, updates, log and checkpoint.
    Train(training::BenchTrainArgs),
    /// Load-test the play server: latency until a step is stored, memory, lost steps.
    Play(play::BenchPlayArgs),
}

pub fn run(command: &BenchCommand, out: &mut dyn Write) -> anyhow::Result<()> {
    match command {
        BenchCommand::Games(args) => games::run(args, out),
        BenchCommand::Engine(args) => engine::run(args, out),
        BenchCommand::Train(args) => training::run(args, out),
        BenchCommand::Play(args) => play::run(args, out),
    }
}

/// Parses a time in seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    number(1e-3..=1e6)(text).map(Duration::from_secs_f64)
}

/// The numbers of threads to measure: one, and all if there are more.
fn thread_counts(n_all: usize) -> Vec<usize> {
    if n_all > 1 { vec![1, n_all] } else { vec![1] }
}

/// Rounds to four decimal places.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
