//! `pace report`: writes pages, tables and figures from the records of runs.
//!
//! A run folder gives the page of one run (`run_page`). A folder of runs is joined with the experiments; it gives a page with the
//! paper's tables next to ours, figures, tables and a file for `marl-eval`.

pub mod run_page;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use pace_games::GAMES;
use pace_lab::{LabError, create_folder, join_with_experiments, write_atomically};
use pace_report::page::{GamePage, overview};
use pace_report::report::Report;
use pace_report::{ReplayRecord, claims, markdown, marl_eval};

use crate::log_line;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Run folder or folder of runs. Default: the first that exists of lab/runs, results, runs.
    records: Option<PathBuf>,
    /// Folder for the page and its files. Default: the run folder for one run, report/ for a folder of runs.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Report only this experiment (name or TOML file). Repeatable. Default: all experiments of the paper.
    #[arg(long = "experiment", value_name = "NAME|FILE")]
    experiments: Vec<String>,
    /// Write only the tables, as Markdown, to this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write only the claims about PACE, between the markers in this Markdown file. With --markdown, both are written.
    #[arg(long, value_name = "FILE")]
    claims: Option<PathBuf>,
}

pub fn run(args: &ReportArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let records = match &args.records {
        Some(records) => records.clone(),
        None => default_records_folder()?,
    };
    if records.join("manifest.json").is_file() {
        for (option, file) in [("--markdown", &args.markdown), ("--claims", &args.claims)] {
            anyhow::ensure!(file.is_none(), "{option}: found a run folder, expected a folder of runs");
        }
        return run_page::write(&records, args.out.as_deref().unwrap_or(&records), out);
    }
    let (report, replays) = join_with_experiments(&records, &args.experiments)?;
    if let Some(file) = &args.markdown {
        write_atomically(file, markdown::render(&report).as_bytes())?;
    }
    if let Some(file) = &args.claims {
        write_claims(&report, file)?;
    }
    let mut written: Vec<PathBuf> = [&args.markdown, &args.claims].into_iter().flatten().cloned().collect();
    if written.is_empty() {
        let folder = args.out.as_deref().unwrap_or(Path::new("report"));
        written.push(write_report(&report, &replays, folder)?);
    }
    for path in written {
        writeln!(out, "{}", path.display())?;
    }
    log_line(&format!("{} runs read, {} files unreadable", report.runs.len(), report.damaged.len()));
    // The report is complete but for these files; the exit code tells scripts that some were skipped.
    match report.damaged.first() {
        None => Ok(()),
        Some(first) => {
            let n = report.damaged.len();
            Err(LabError::FilesSkipped { n, first: first.clone() }.into())
        }
    }
}

fn write_claims(report: &Report, file: &Path) -> anyhow::Result<()> {
    let page = std::fs::read_to_string(file).with_context(|| format!("--claims: {}", file.display()))?;
    let page = claims::update(&page, report).ok_or_else(|| {
        let path = file.display();
        anyhow::anyhow!("--claims: {path}: found no markers, or no main table among the experiments; expected both, as in README.md")
    })?;
    Ok(write_atomically(file, page.as_bytes())?)
}

fn default_records_folder() -> anyhow::Result<PathBuf> {
    let known = ["lab/runs", "results", "runs"];
    let found = known.iter().map(PathBuf::from).find(|path| path.is_dir());
    found.ok_or_else(|| {
        anyhow::anyhow!("no folder given and none of {} exists; expected a folder of runs", known.join(", "))
    })
}

fn write_report(report: &Report, replays: &[ReplayRecord], folder: &Path) -> Result<PathBuf, LabError> {
    let (figures, tables) = (folder.join("figures"), folder.join("tables"));
    create_folder(&figures)?;
    create_folder(&tables)?;
    for experiment in &report.experiments {
        write_atomically(
            &tables.join(format!("{}.csv", experiment.name)),
            report.table_csv(experiment).as_bytes(),
        )?;
        if let Some(peers) = report.peers_csv(experiment) {
            write_atomically(&tables.join(format!("{}-peers.csv", experiment.name)), peers.as_bytes())?;
        }
        for found in report.figures_of(experiment) {
            write_atomically(
                &figures.join(format!("{}.svg", found.name)),
                found.figure.document().as_bytes(),
            )?;
            write_atomically(&tables.join(format!("{}.csv", found.name)), found.figure.csv().as_bytes())?;
        }
    }
    write_atomically(&tables.join("runs.csv"), report.runs_csv().as_bytes())?;
    write_atomically(&folder.join("marl-eval.json"), marl_eval::render(report).as_bytes())?;
    write_atomically(&folder.join("RESULTS.md"), markdown::render(report).as_bytes())?;
    let page = folder.join("index.html");
    write_atomically(&page, overview::render(report, replays, &game_pages()).as_bytes())?;
    Ok(page)
}

/// Scripts and styles that draw the games on the page.
fn game_pages() -> Vec<GamePage> {
    let pages = GAMES.iter().filter_map(|entry| Some((entry.id, entry.page?)));
    pages.map(|(game, page)| GamePage { game, script: page.script, style: page.style }).collect()
}
