//! Parser of the command line, one-line messages for its errors, and the list of commands as JSON.

use std::error::Error;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use pace_games::ConfigError;
use pace_games::config::{breaks_a_line, shown};
use serde_json::{Value, json};

use crate::Cli;

/// Parses the command line.
pub fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches_from(without_help_of_help(arguments))?)
}

/// The complete parser.
pub fn command() -> Command {
    let mut command = accept_negative_numbers(Cli::command());
    command.build();
    command
}

/// Makes every argument accept `-1` as its value, so that the message comes from its own parser and names the range.
fn accept_negative_numbers(command: Command) -> Command {
    command
        .mut_args(|argument| {
            let takes_value = argument.get_action().takes_values();
            if takes_value { argument.allow_negative_numbers(true) } else { argument }
        })
        .mut_subcommands(accept_negative_numbers)
}

/// The names of the (nested) command that the arguments start with, for example `["study", "export"]`, and its parser.
fn path_of(arguments: &[OsString]) -> (Vec<String>, Command) {
    let mut command = command();
    let mut path = Vec::new();
    for argument in arguments.iter().skip(1) {
        let found = argument.to_str().and_then(|name| command.find_subcommand(name)).cloned();
        let Some(found) = found else { break };
        path.push(found.get_name().to_owned());
        command = found;
    }
    (path, command)
}

/// Removes `--help` and `-h` after the command `help`, which does not accept them: `pace help --help` is `pace help`.
fn without_help_of_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if path_of(&arguments).0.iter().any(|name| name == "help") {
        arguments.retain(|argument| argument != "--help" && argument != "-h");
    }
    arguments
}

/// A one-line message for an error in the command line; it ends with the help command to read.
pub fn describe(error: &clap::Error, arguments: &[OsString]) -> String {
    let (path, command) = path_of(arguments);
    let help = path.iter().fold("pace".to_owned(), |text, name| text + " " + name) + " --help";
    one_line(&format!("error: {}; see `{help}`", mistake(error, &command)))
}

/// The error of an option whose value is parsed by one of the libraries.
pub fn config_error(error: &clap::Error) -> Option<&ConfigError> {
    error.source()?.downcast_ref()
}

fn mistake(error: &clap::Error, command: &Command) -> String {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => shown(text),
        Some(ContextValue::Strings(texts)) => texts.join(" and "),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    let nearest = |kind: ContextKind| match &text(kind)[..] {
        "" => String::new(),
        name => format!(" (did you mean `{name}`?)"),
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument => format!("missing {argument}"),
        ErrorKind::UnknownArgument => {
            format!("unexpected argument `{argument}`{}", nearest(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidSubcommand => {
            let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
            let found = match error.get(ContextKind::InvalidSubcommand) {
                Some(ContextValue::String(found)) => found.as_str(),
                _ => "",
            };
            ConfigError::unknown("command", found, known).to_string()
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let name = argument.split(' ').next().unwrap_or_default();
            let value = text(ContextKind::InvalidValue);
            let found = if value.is_empty() { "nothing" } else { value.as_str() };
            let valid = error.get(ContextKind::ValidValue);
            match (config_error(error), error.source(), valid, error.get(ContextKind::InvalidValue)) {
                (Some(reason), ..) => format!("{name}: {reason}"),
                (None, Some(reason), ..) => {
                    format!("{name}: found {found}, {}", expectation(&reason.to_string()))
                }
                (.., Some(ContextValue::Strings(known)), Some(ContextValue::String(raw)))
                    if !raw.is_empty() =>
                {
                    let known = known.iter().map(String::as_str);
                    format!("{name}: {}", ConfigError::unknown("value", raw, known))
                }
                (.., Some(ContextValue::Strings(known)), _) if !known.is_empty() => {
                    format!("{name}: found {found}, expected {}", known.join(", "))
                }
                _ => format!("{name}: found {found}, expected a value"),
            }
        }
        // Other errors are rare: clap's own message without the lines about usage.
        _ => {
            let text = error.render().to_string();
            let is_message = |line: &&str| {
                !line.is_empty() && !line.starts_with("Usage:") && !line.starts_with("For more")
            };
            let lines: Vec<&str> = text.lines().map(str::trim).filter(is_message).collect();
            lines.join("; ").trim_start_matches("error: ").to_owned()
        }
    }
}

/// Rewrites the reason given by one of clap's own parsers like those of `ranges`.
fn expectation(reason: &str) -> String {
    if let Some((from, to)) = reason.split_once(" is not in ").and_then(|(_, range)| range.split_once("..="))
    {
        return format!("expected a whole number from {from} to {to}");
    }
    match reason {
        "invalid digit found in string" => "expected a whole number".to_owned(),
        "invalid float literal" => "expected a number".to_owned(),
        reason => reason.to_owned(),
    }
}

/// A message as one line of limited length: control characters are escaped, and the middle of a word of more than 300
/// characters or of a message of more than 4000 is omitted.
pub fn one_line(message: &str) -> String {
    let mut text = String::new();
    for word in message.split_inclusive(' ') {
        text.push_str(&without_middle(word, 300));
    }
    without_middle(&text, 4000)
        .chars()
        .map(|character| match breaks_a_line(character) {
            true => character.escape_default().to_string(),
            false => character.to_string(),
        })
        .collect()
}

fn without_middle(text: &str, max_chars: usize) -> String {
    let n = text.chars().count();
    if n <= max_chars {
        return text.to_owned();
    }
    let begin: String = text.chars().take(max_chars / 2).collect();
    let end: String = text.chars().skip(n - max_chars / 4).collect();
    format!("{begin}… ({n} characters) …{end}")
}

/// Every command with its arguments as JSON.
pub fn tree() -> Value {
    let mut commands = Vec::new();
    collect(&command(), &[], &mut commands);
    json!({ "commands": commands })
}

fn collect(command: &Command, path: &[&str], commands: &mut Vec<Value>) {
    let mut inner = command.get_subcommands().filter(|inner| inner.get_name() != "help").peekable();
    if inner.peek().is_none() {
        let arguments: Vec<Value> =
            command.get_arguments().filter(|one| one.get_id() != "help").map(argument).collect();
        commands.push(json!({ "path": path, "arguments": arguments }));
    }
    for inner in inner {
        collect(inner, &[path, &[inner.get_name()]].concat(), commands);
    }
}

fn argument(argument: &Arg) -> Value {
    json!({
        "name": argument.get_id().as_str(),
        "option": argument.get_long().map(|name| format!("--{name}")),
        "takes_value": argument.get_action().takes_values(),
    })
}

#[cfg(test)]
mod tests {
    use super::{expectation, one_line};

    #[test]
    fn reasons_of_the_parser_name_what_is_expected() {
        for (reason, expected) in [
            ("0 is not in 1..=200", "expected a whole number from 1 to 200"),
            ("invalid digit found in string", "expected a whole number"),
            ("invalid float literal", "expected a number"),
            ("expected a number above 0, and at most 1", "expected a number above 0, and at most 1"),
        ] {
            assert_eq!(expectation(reason), expected);
        }
    }

    #[test]
    fn a_message_becomes_one_line_of_limited_length() {
        assert_eq!(one_line("error: a b"), "error: a b");
        assert_eq!(one_line("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        let path = "x".repeat(100_000);
        let text = one_line(&format!("error: {path} is not a run folder"));
        assert!(
            text.len() < 400 && text.contains("(100001 characters)") && text.ends_with("not a run folder"),
            "{text}"
        );
        assert!(one_line(&"a ".repeat(50_000)).len() < 4000);
    }
}
