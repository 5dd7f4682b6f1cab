//! The command line of PACE: arguments in, text out. Everything it does is done by the crates below it.

mod commands;
mod game_args;
mod meetings;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind as UsageErrorKind;
use commands::Command;
use pace_games::GameError;

/// Agents that adapt, within a few episodes, to partners and opponents they have never met.
#[derive(Debug, Parser)]
#[command(name = "pace", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The command line could not be understood.
const USAGE: u8 = 2;
/// A key, a value or a file is bad.
const BAD_INPUT: u8 = 3;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
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
    say(&format!("error: {error:#}"));
    match error.downcast_ref::<GameError>() {
        Some(GameError::Unknown { kind: "key", .. } | GameError::BadValue { .. }) => {
            ExitCode::from(BAD_INPUT)
        }
        Some(_) => ExitCode::from(USAGE),
        None => ExitCode::FAILURE,
    }
}

/// One line for a mistake in the command line; help and version as they are.
fn report_usage(error: &clap::Error) -> ExitCode {
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
    let text = error.render().to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more"))
        .collect();
    say(&format!("{}; see `pace --help`", lines.join("; ")));
    ExitCode::from(USAGE)
}

/// Messages go to standard error, data to standard output.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "{message}");
}
