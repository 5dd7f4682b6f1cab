//! `pace study`: reads and deletes the data of a human-subject study, and prints links for its participants.

use std::io::Write;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use pace_play::StudyFile;
use pace_play::study::export::{ExportError, Format, TABLES};
use pace_play::study::summary::StudySummary;

#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Print the data, including every step, as comma-separated values or JSON lines.
    Export(ExportArgs),
    /// Show scores per agent with confidence intervals, and the participants' progress.
    Summary(SummaryArgs),
    /// Permanently delete all data of one participant and overwrite it on the disk.
    Delete(DeleteArgs),
    /// Print signed links for participants, for a study with `signed_links = true`.
    Links(LinksArgs),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("format").required(true).args(["csv", "jsonl"]))]
pub struct ExportArgs {
    /// SQLite file of the study.
    file: PathBuf,
    /// Print comma-separated values of one table.
    #[arg(long)]
    csv: bool,
    /// Print JSON lines; every line names its table.
    #[arg(long)]
    jsonl: bool,
    /// Table to print: `steps`, `encounters`, `participants`, `answers`, `versions` (the settings of each version) or
    /// `replays` (links for a `pace play` with the same agents). Default: `steps` as CSV, all tables as JSON lines.
    #[arg(long, value_parser = PossibleValuesParser::new(TABLES), hide_possible_values = true)]
    table: Option<String>,
}

#[derive(Debug, Args)]
pub struct SummaryArgs {
    /// SQLite file of the study.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// SQLite file of the study.
    file: PathBuf,
    /// Id of the participant.
    participant: String,
}

#[derive(Debug, Args)]
pub struct LinksArgs {
    /// SQLite file of the study; `pace play --study` creates it.
    file: PathBuf,
    /// Ids of the participants.
    #[arg(required = true)]
    participants: Vec<String>,
    /// Address of the server, such as `https://lab.example.org`. Default: none; links then start with the path.
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
        Some(table) => vec![table.as_str()],
    };
    let format = if args.csv { Format::Csv } else { Format::JsonLines };
    let file = StudyFile::open(&args.file)?;
    for table in tables {
        file.export(table, format, out).map_err(|error| match error {
            // Kept as an I/O error, so that `main` recognises a closed pipe.
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
        writeln!(out, "scores include all versions of the study: {}", versions.join(", "))?;
    }
    if summary.agents.is_empty() {
        return Ok(writeln!(out, "no encounter is finished yet ({} in progress)", summary.open_encounters)?);
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
            .map_or("n/a (one encounter)".to_owned(), |[low, high]| format!("{low:.3} to {high:.3}"));
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
