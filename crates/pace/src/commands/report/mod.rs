//! `pace report`: pages, tables and figures from record files alone.
//!
//! One run becomes its own page (`run_page`). A folder of runs is joined with the experiments and becomes a page with the
//! paper's tables beside ours, figures, tables and exchange files.

pub mod run_page;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::GAMES;
use pace_lab::{LabError, create_folder, join_with_experiments, write_atomically};
use pace_report::page::{GameDrawing, overview};
use pace_report::report::Report;
use pace_report::{ReplayRecord, markdown, marl_eval};

use crate::say;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A run folder, or a folder with runs in it. Default: the first of lab/runs, results and runs that is there.
    records: Option<PathBuf>,
    /// Where the page and its files go; if not given, the run folder for a run, and report/ for many.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Sets the records beside this experiment alone, by its name or file; may be repeated. All of the paper's if not given.
    #[arg(long = "experiment", value_name = "NAME|FILE")]
    experiments: Vec<String>,
    /// Writes the tables as Markdown into this file, and nothing else.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

pub fn run(args: &ReportArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let records = match &args.records {
        Some(records) => records.clone(),
        None => usual_records()?,
    };
    if records.join("manifest.json").is_file() {
        anyhow::ensure!(
            args.markdown.is_none(),
            "--markdown: found one run, expected a folder with runs in it"
        );
        return run_page::write(&records, args.out.as_deref().unwrap_or(&records), out);
    }
    let (report, replays) = join_with_experiments(&records, &args.experiments)?;
    let written = match &args.markdown {
        Some(file) => {
            write_atomically(file, markdown::render(&report).as_bytes())?;
            file.clone()
        }
        None => write_report(&report, &replays, args.out.as_deref().unwrap_or(Path::new("report")))?,
    };
    writeln!(out, "{}", written.display())?;
    say(&format!("{} runs, {} that could not be read", report.runs.len(), report.damaged.len()));
    // All that could be made is made; who calls this in a script learns that something was left out.
    match report.damaged.first() {
        None => Ok(()),
        Some(first) => {
            let n = report.damaged.len();
            Err(LabError::FilesSkipped { n, first: first.clone() }.into())
        }
    }
}

fn usual_records() -> anyhow::Result<PathBuf> {
    let known = ["lab/runs", "results", "runs"];
    let found = known.iter().map(PathBuf::from).find(|path| path.is_dir());
    found.ok_or_else(|| {
        anyhow::anyhow!(
            "no records given, and none of {} is here; expected a folder with runs in it",
            known.join(", ")
        )
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
    write_atomically(&page, overview::render(report, replays, &drawings()).as_bytes())?;
    Ok(page)
}

/// How every game is drawn.
fn drawings() -> Vec<GameDrawing> {
    let drawn = GAMES.iter().filter_map(|entry| Some((entry.id, entry.drawing?)));
    drawn.map(|(game, drawing)| GameDrawing { game, script: drawing.script, style: drawing.style }).collect()
}
