//! The claims of a README about PACE: a table from the records, between two markers.

use crate::experiment_result::{ExperimentResult, PlacedCell, View, distinct};
use crate::markdown::{ascii, plain, write_table};
use crate::number;
use crate::page::overview::{mean_and_std, paper_number};
use crate::report::Report;

const BEGIN: &str = "<!-- claims, written by `pace report RECORDS --claims FILE` -->\n";
const END: &str = "<!-- end of claims -->\n";

/// Replaces the text between the markers of a page. `None` if the page lacks a marker, or the report a main table.
pub fn update(page: &str, report: &Report) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let main = report.experiments.iter().find(|experiment| experiment.view == View::MainTable)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", claims(report, main)))
}

/// One row for each game: PACE with the preset of the experiment, the paper's number, and PACE with the preset `best`.
fn claims(report: &Report, main: &ExperimentResult) -> String {
    let table = main.table(&report.runs);
    let cells: Vec<&PlacedCell<'_>> = table.rows.iter().flat_map(|(_, cells)| cells).flatten().collect();
    let find = |preset: &str, game: &str| {
        let is_wanted = |found: &&&PlacedCell<'_>| {
            let cell = found.cell;
            (cell.method.as_str(), cell.preset.as_str(), cell.game.as_str()) == ("pace", preset, game)
        };
        cells.iter().find(is_wanted).copied()
    };
    let mut rows = Vec::new();
    let mut chosen_on = Vec::new();
    for (game, title) in main.games() {
        let (own, best) = (find(&main.preset, &game), find("best", &game));
        let record = own.and_then(|found| found.cell.longest_record(&report.runs));
        let score = record.map_or(String::new(), |(_, record)| format!(", {}", plain(&record.words.score)));
        let paper = own.and_then(|found| found.cell.paper).filter(|paper| paper.is_comparable);
        let paper = paper.map_or(String::new(), |paper| {
            let share = own.and_then(|found| found.paper_share);
            let share = share.map_or(String::new(), |share| format!(" ({})", number::percent(share)));
            ascii(&format!("{}{share}", paper_number(paper)))
        });
        rows.push(vec![format!("{}{score}", plain(&title)), cell_text(own), paper, cell_text(best)]);
        for (_, record) in best.into_iter().flat_map(|found| found.cell.records(&report.runs)) {
            chosen_on.push(plain(record.chosen_on()));
        }
    }
    let mut text = String::new();
    let headings = [
        "PACE, unseen peers".to_owned(),
        format!("preset `{}`", main.preset),
        "the paper".to_owned(),
        "preset `best`".to_owned(),
    ];
    write_table(&headings, &rows, &mut text);
    text.push_str(
        "\nMean ± standard deviation across training seeds; in parentheses the number of seeds and the share of the range from random (0 %) to \
         oracle (100 %).\n",
    );
    let chosen_on = distinct(chosen_on.into_iter());
    if !chosen_on.is_empty() {
        text.push_str(&format!("Peers that the keys of `best` were chosen on: {}.\n", chosen_on.join(", ")));
    }
    text
}

fn cell_text(found: Option<&PlacedCell<'_>>) -> String {
    let Some((found, statistics)) = found.and_then(|found| Some((found, found.statistics.as_ref()?))) else {
        return "*not run*".to_owned();
    };
    let (mean, std) = mean_and_std(statistics);
    let unit = if statistics.n_seeds() == 1 { "seed" } else { "seeds" };
    let share = statistics.share.map_or(String::new(), |(share, _)| format!(", {}", number::percent(share)));
    let rules = if found.other_oracle.is_some() { ", other rules" } else { "" };
    let scaled = if statistics.is_scaled() { ", scaled run" } else { "" };
    ascii(&format!("{mean}{std} ({} {unit}{share}{rules}{scaled})", statistics.n_seeds()))
}
