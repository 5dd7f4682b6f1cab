//! `pace report`: pages, tables and figures from record files alone.

mod run_page;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pace_games::GAMES;
use pace_report::page::GameDrawing;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A run folder, or a folder with runs in it.
    records: PathBuf,
    /// Where the page and its files go; for a run, the run folder itself if not given.
    #[arg(long)]
    out: Option<PathBuf>,
}

pub fn run(args: &ReportArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    run_page::write(&args.records, args.out.as_deref().unwrap_or(&args.records), out)
}

/// How every game is drawn.
fn drawings() -> Vec<GameDrawing> {
    let drawn = GAMES.iter().filter_map(|entry| Some((entry.id, entry.drawing?)));
    drawn.map(|(game, drawing)| GameDrawing { game, script: drawing.script, style: drawing.style }).collect()
}
