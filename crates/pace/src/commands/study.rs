//! `pace study`: what is in the file of a study with participants.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Subcommand};
use pace_play::StudyFile;
use pace_play::study::export::{ExportError, Format, TABLES};
use pace_play::study::summary::StudySummary;

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Print the data, every step of it, as comma-separated values or JSON lines.
    Export(ExportArgs),
    /// The score per agent with its uncertainty, and how far the participants are.
    Summary(SummaryArgs),
    /// Delete everything about one participant, and overwrite it on the disk.
    Delete(DeleteArgs),
    /// Print signed links for participants, for a study with `signed_links = true`.
    Links(LinksArgs),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("format").required(true).args(["csv", "jsonl"]))]
pub struct ExportArgs {
    /// The study's file (SQLite).
    file: PathBuf,
    /// Comma-separated values; one table at a time.
    #[arg(long)]
    csv: bool,
    /// JSON lines; every line names its table.
    #[arg(long)]
    jsonl: bool,
    /// `steps`, `encounters`, `participants`, `answers`, `versions` (what participants have seen) or `replays` (links for a `pace play` with the same agents). Default: `steps` as CSV, all of them as JSON lines.
    #[arg(long)]
    table: Option<String>,
}

#[derive(Debug, Args)]
pub struct SummaryArgs {
    /// The study's file (SQLite).
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// The study's file (SQLite).
    file: PathBuf,
    /// The participant's id.
    participant: String,
}

#[derive(Debug, Args)]
pub struct LinksArgs {
    /// The study's file (SQLite); `pace play --study` makes it.
    file: PathBuf,
    /// The participants' ids.
    #[arg(required = true)]
    participants: Vec<String>,
    /// The address of the server, such as `https://lab.example.org`. Default: none, only the end of the address is printed.
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    address: String,
}

pub fn run(command: &StudyCommand, out: &mut dyn Write) -> anyhow::Result<()> {
    match command {
        StudyCommand::Export(args) => export(args, out),
        StudyCommand::Summary(args) => {
            let summary = StudyFile::open(&args.file)?.summary()?;
            if args.json {
                return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?);
            }
            print_summary(&summary, out)
        }
        StudyCommand::Delete(args) => {
            let n_steps = StudyFile::open(&args.file)?.delete(&args.participant)?;
            Ok(writeln!(out, "deleted {} with {n_steps} steps", args.participant)?)
        }
        StudyCommand::Links(args) => {
            let file = StudyFile::open(&args.file)?;
            for participant in &args.participants {
                writeln!(out, "{}{}", args.address.trim_end_matches('/'), file.link(participant)?)?;
            }
            Ok(())
        }
    }
}

fn export(args: &ExportArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let tables = match &args.table {
        None if args.csv => vec!["steps"],
        None => TABLES.to_vec(),
        Some(table) => match TABLES.iter().find(|name| *name == table) {
            Some(name) => vec![*name],
            None => bail!("--table: found {table:?}, expected one of {}", TABLES.join(", ")),
        },
    };
    let format = if args.csv { Format::Csv } else { Format::JsonLines };
    let file = StudyFile::open(&args.file)?;
    for table in tables {
        file.export(table, format, out).map_err(|error| match error {
            // As it is, so that a reader that has seen enough is known as one.
            ExportError::Write(error) => anyhow::Error::from(error),
            ExportError::Study(error) => error.into(),
        })?;
    }
    Ok(())
}

fn print_summary(summary: &StudySummary, out: &mut dyn Write) -> anyhow::Result<()> {
    let stages: Vec<String> = summary.stages.iter().map(|(stage, n)| format!("{n} {stage}")).collect();
    writeln!(out, "study {}: {} steps; participants: {}", summary.study, summary.steps, stages.join(", "))?;
    if summary.versions.len() > 1 {
        let versions: Vec<String> =
            summary.versions.iter().map(|(version, n)| format!("{version} ({n} participants)")).collect();
        writeln!(out, "scores are over all versions of the study: {}", versions.join(", "))?;
    }
    if summary.agents.is_empty() {
        return Ok(writeln!(out, "no encounter is finished yet ({} are open)", summary.open_encounters)?);
    }
    writeln!(out)?;
    writeln!(
        out,
        "{:<24} {:>10} {:>12} {:>18}  95 % interval",
        "agent", "encounters", "participants", "score"
    )?;
    for agent in &summary.agents {
        let error = agent.standard_error.map_or("?".to_owned(), |error| format!("{error:.3}"));
        let interval = agent
            .confidence_95
            .map_or("one encounter has none".to_owned(), |[low, high]| format!("{low:.3} to {high:.3}"));
        let score = format!("{:.3} ± {error}", agent.mean);
        writeln!(
            out,
            "{:<24} {:>10} {:>12} {score:>18}  {interval}",
            agent.agent, agent.encounters, agent.participants
        )?;
    }
    writeln!(out)?;
    writeln!(out, "score: mean over an encounter's episodes, then over encounters; ± is the standard error")?;
    Ok(())
}
