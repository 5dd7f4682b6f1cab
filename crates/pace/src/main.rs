//! The command line of PACE: arguments in, text out. Everything it does is done by the crates below it.

mod build_info;
mod commands;
mod game_args;
mod ranges;
mod training_loop;
mod usage;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind as UsageErrorKind;
use commands::Command;
use pace_games::GameError;
use pace_lab::LabError;
use pace_learn::TrainError;
use pace_play::StudyError;

/// Agents that adapt, within a few episodes, to partners and opponents they have never met.
#[derive(Debug, Parser)]
#[command(name = "pace", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failure; 2 mistake in the command line; 3 bad key, value or file; \
                          4 training diverged; 75 stopped and saved";

/// Something went wrong on the way.
const FAILURE: u8 = 1;
/// The command line could not be understood.
const USAGE: u8 = 2;
/// A key, a value or a file is bad.
const BAD_INPUT: u8 = 3;
/// Training diverged.
const DIVERGED: u8 = 4;
/// The run was asked to stop, is saved, and can be resumed.
pub const STOPPED: u8 = 75;

/// A run that was asked to stop. Everything there is to say about it has been said.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let cli = match usage::parse(arguments.clone()) {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error, &arguments),
    };
    let mut out = std::io::stdout().lock();
    let result = cli.command.run(&mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    // A reader that has seen enough (`pace list peers kuhn-poker | head`) is no failure.
    if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Stopped>() {
        return ExitCode::from(STOPPED);
    }
    // Without its sources: messages say what there is to say about them.
    say(&usage::one_line(&format!("error: {error}")));
    ExitCode::from(exit_code(error))
}

fn exit_code(error: &anyhow::Error) -> u8 {
    let of_game = |error: &GameError| match error {
        GameError::Unknown { kind: "key", .. }
        | GameError::BadValue { .. }
        | GameError::BadFile { .. }
        | GameError::NotADistribution { .. } => BAD_INPUT,
        _ => USAGE,
    };
    // Commands have plain messages for one thing alone: an argument with a value that it cannot take.
    if error.is::<&'static str>() || error.is::<String>() {
        return USAGE;
    }
    if let Some(error) = error.downcast_ref::<GameError>() {
        return of_game(error);
    }
    if matches!(
        error.downcast_ref::<StudyError>(),
        Some(
            StudyError::BadConfig { .. }
                | StudyError::NoStudyFile { .. }
                | StudyError::OtherStudy { .. }
                | StudyError::OtherFormat { .. }
                | StudyError::Changed { .. }
                | StudyError::BadParticipant { .. }
                | StudyError::NoSuchParticipant { .. }
        )
    ) {
        return BAD_INPUT;
    }
    match error.downcast_ref::<LabError>() {
        Some(LabError::Game(error)) => of_game(error),
        Some(LabError::Train(TrainError::NotFinite { .. })) => DIVERGED,
        Some(LabError::Train(TrainError::Game(error))) => of_game(error),
        Some(
            LabError::StorageFull { .. }
            | LabError::TrainingStorageFull { .. }
            | LabError::NotSaved { .. }
            | LabError::AccessDenied { .. }
            | LabError::InUse { .. }
            | LabError::NoLocks { .. },
        )
        | None => FAILURE,
        Some(_) => BAD_INPUT,
    }
}

/// One line for a mistake in the command line; help and version as they are.
fn report_usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if matches!(
        error.kind(),
        UsageErrorKind::DisplayHelp
            | UsageErrorKind::DisplayVersion
            | UsageErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // Nothing can be done about a reader that went away.
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
    }
    say(&usage::describe(error, arguments));
    ExitCode::from(USAGE)
}

/// Messages go to standard error, data to standard output.
pub fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}
