//! The page of one run, and its figures as files in the same folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use pace_lab::{LabError, RunRecords, create_folder, folder_names, write_atomically};
use pace_report::figures;
use pace_report::page::RunPage;

use crate::log_line;

pub fn write(run: &Path, folder: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let page = write_page(run, folder)?;
    writeln!(out, "{}", page.display())?;
    Ok(())
}

/// Writes the page and its figures, and returns the path of the page.
pub fn write_page(run: &Path, folder: &Path) -> Result<PathBuf, LabError> {
    let mut records = RunRecords::read(run)?;
    let name = run.canonicalize().map_or_else(|_| records.name(), |path| name_of(&path));
    folder_names::update(&mut records, &name);
    let replays: Vec<_> = std::mem::take(&mut records.replays).into_values().collect();
    let evaluations = records.evaluations_in_order();
    let mut figures: Vec<(String, Option<String>)> =
        vec![("training".to_owned(), figures::training::figure(&records.train))];
    for (name, record) in &evaluations {
        let of_evaluation = figures::of_evaluation(record).into_iter();
        figures.extend(of_evaluation.map(|(figure, svg)| (format!("{name}-{figure}"), svg)));
    }
    create_folder(&folder.join("figures"))?;
    let mut written = Vec::new();
    for (name, figure) in figures {
        if let Some(figure) = figure {
            write_atomically(&folder.join("figures").join(format!("{name}.svg")), figure.as_bytes())?;
            written.push(name);
        }
    }
    let page = RunPage {
        evaluations,
        train: Some(&records.train),
        replays: &replays,
        pages: &super::game_pages(),
        scale: Some(records.config.scale),
        figures: &written,
    };
    let path = folder.join("report.html");
    write_atomically(&path, page.render().as_bytes())?;
    for error in records.damaged {
        log_line(&format!("warning: skipped: {error}"));
    }
    Ok(path)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
