//! The command line of PACE: parses arguments, calls the library crates and prints their results.

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
use pace_games::ConfigError;
use pace_lab::LabError;
use pace_learn::TrainError;
use pace_play::StudyError;

/// Train, evaluate and watch agents that adapt to unknown partners and opponents within a few episodes.
#[derive(Debug, Parser)]
#[command(name = "pace", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failure; 2 invalid command line; 3 bad key, value or file; \
                          4 training diverged; 75 stopped on request, progress saved";

/// Exit code of an error that no other code describes.
const FAILURE: u8 = 1;
/// Exit code of an invalid command line.
const USAGE: u8 = 2;
/// Exit code of an invalid key, value or file.
const BAD_INPUT: u8 = 3;
/// Exit code of a training that diverged.
const DIVERGED: u8 = 4;
/// Exit code of a command that was asked to stop: its progress is saved and it can be continued.
pub const STOPPED: u8 = 75;

/// Returned by a command that was asked to stop and has already logged how to continue.
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
    // A reader that closes the pipe early (`pace list peers kuhn-poker | head`) is not an error.
    if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        return ExitCode::SUCCESS;
    }
    if error.is::<Stopped>() {
        return ExitCode::from(STOPPED);
    }
    // Sources are not printed: every message already includes the reason.
    log_line(&usage::one_line(&format!("error: {error}")));
    ExitCode::from(exit_code(error))
}

fn code_of_config_error(error: &ConfigError) -> u8 {
    match error {
        ConfigError::Unknown { kind: "key", .. }
        | ConfigError::BadValue { .. }
        | ConfigError::BadFile { .. }
        | ConfigError::NotADistribution { .. } => BAD_INPUT,
        _ => USAGE,
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    // Commands return plain strings only for an argument with an invalid value.
    if error.is::<&'static str>() || error.is::<String>() {
        return USAGE;
    }
    if let Some(error) = error.downcast_ref::<ConfigError>() {
        return code_of_config_error(error);
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
        Some(LabError::Game(error)) => code_of_config_error(error),
        Some(LabError::Train(TrainError::NotFinite { .. })) => DIVERGED,
        Some(LabError::Train(TrainError::Game(error))) => code_of_config_error(error),
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

/// Prints help and version unchanged, and any mistake in the command line as one line.
fn report_usage(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if matches!(
        error.kind(),
        UsageErrorKind::DisplayHelp
            | UsageErrorKind::DisplayVersion
            | UsageErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // An error means that the reader has closed the pipe: there is nothing left to report to.
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
    }
    log_line(&usage::describe(error, arguments));
    ExitCode::from(usage::config_error(error).map_or(USAGE, code_of_config_error))
}

/// Writes a message as one line to standard error. Standard output is for data.
pub fn log_line(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}
