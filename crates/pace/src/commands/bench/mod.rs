//! `pace bench`: how fast things are, measured on this machine, each beside a measured limit.

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
    /// Steps per second of every game: one thread, peers acting, ego's observation written.
    Games(games::BenchGamesArgs),
    /// One update at the shape of each game, interleaved with its matrix products alone, and one rollout.
    Engine(engine::BenchEngineArgs),
    /// Whole training iterations, end to end: rollout, updates, log, checkpoint.
    Train(training::BenchTrainArgs),
    /// The play server under many participants at once: time to a durable answer, memory, lost steps.
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

/// One thread and all of them, or only one where that is all there are.
fn thread_counts(n_all: usize) -> Vec<usize> {
    if n_all > 1 { vec![1, n_all] } else { vec![1] }
}

/// A number with few enough digits to be read.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
