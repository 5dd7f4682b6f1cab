//! The page of one run, with its figures as files beside it.

use std::io::Write;
use std::path::{Path, PathBuf};

use pace_lab::{LabError, RunRecords, create_folder, write_atomically};
use pace_report::figures;
use pace_report::page::RunPage;

use crate::say;

pub fn write(run: &Path, folder: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let page = write_page(run, folder)?;
    writeln!(out, "{}", page.display())?;
    Ok(())
}

/// Writes the page and its figures; gives the page's path.
pub fn write_page(run: &Path, folder: &Path) -> Result<PathBuf, LabError> {
    let mut records = RunRecords::read(run)?;
    let replays: Vec<_> = std::mem::take(&mut records.replays).into_values().collect();
    let evaluations = records.evaluations_in_order();
    let page = RunPage {
        evaluations: evaluations.clone(),
        train: Some(&records.train),
        replays: &replays,
        drawings: &super::drawings(),
        scale: Some(records.config.scale),
    };
    create_folder(&folder.join("figures"))?;
    let path = folder.join("report.html");
    write_atomically(&path, page.render().as_bytes())?;
    let save = |name: &str, figure: Option<String>| match figure {
        Some(figure) => {
            write_atomically(&folder.join("figures").join(format!("{name}.svg")), figure.as_bytes())
        }
        None => Ok(()),
    };
    save("training", figures::training::figure(&records.train))?;
    for (name, record) in &evaluations {
        save(&format!("{name}-adaptation"), Some(figures::adaptation::figure(record)))?;
        save(&format!("{name}-identification"), figures::identification::figure(record))?;
        save(&format!("{name}-keypoint"), figures::keypoint::figure(record))?;
    }
    for error in records.damaged {
        say(&format!("warning: left out: {error}"));
    }
    Ok(path)
}
