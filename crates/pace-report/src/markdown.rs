//! The tables of a report as Markdown: what was measured, beside the paper, with the runs behind it. Never typed by hand.

use std::fmt::Write;

use crate::experiment_result::{ExperimentResult, PlacedCell, SeedStatistics};
use crate::number;
use crate::page::overview::{as_printed, texts};
use crate::report::Report;

/// The page.
pub fn render(report: &Report) -> String {
    let mut text = "# Results\n\n".to_owned();
    text.push_str(
        "Made by `pace report RECORDS --markdown FILE` from the record files; a test makes it anew and compares. Mean ± standard \
         deviation over training seeds (divisor n, as in the paper). Where there are fewer seeds than were asked for, their number \
         stands beside; with one seed there is no deviation. The highest of a column is bold, among the methods under the preset that the study \
         asks for, and only where at least two of them have three seeds at full budget. *not run* is just that.\n",
    );
    if let Some(scale) = report.runs.iter().map(|run| run.scale).find(|scale| *scale != 1.0) {
        let share = number::percent_fine(scale).replace('\u{a0}', " ");
        write!(text, "\n**Some of these runs are rehearsals with {share} of the budget: those numbers are no results.**\n")
            .expect("a string takes any text");
    }
    let (known, unknown): (Vec<&ExperimentResult>, Vec<&ExperimentResult>) =
        report.experiments.iter().partition(|experiment| experiment.coverage(&report.runs).n_begun > 0);
    for experiment in known {
        section(report, experiment, &mut text);
    }
    beside(report, &mut text);
    if !unknown.is_empty() {
        text.push_str("\n## Not run yet\n\n");
        for experiment in unknown {
            writeln!(
                text,
                "- {}: {} (`pace reproduce {}`)",
                plain(&experiment.title),
                plain(&experiment.reproduces),
                experiment.name
            )
            .expect("a string takes any text");
        }
    }
    runs(report, &mut text);
    text
}

fn section(report: &Report, experiment: &ExperimentResult, text: &mut String) {
    let table = experiment.table(&report.runs);
    let coverage = experiment.coverage(&report.runs);
    write!(text, "\n## {}\n\nReproduces {}.", plain(&experiment.title), plain(&experiment.reproduces))
        .expect("a string takes any text");
    if coverage.n_whole < coverage.n_cells {
        write!(text, " {} of {} cells have all their seeds.", coverage.n_whole, coverage.n_cells)
            .expect("a string takes any text");
    }
    write!(text, "\n\n| {} |", table.corner).expect("a string takes any text");
    for column in &table.columns {
        write!(text, " {} | the paper |", plain(column)).expect("a string takes any text");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|---|".repeat(table.columns.len()));
    text.push('\n');
    for (name, cells) in &table.rows {
        write!(text, "| {} |", plain(name)).expect("a string takes any text");
        for found in cells {
            let (ours, papers) =
                found.as_ref().map_or((String::new(), String::new()), |found| cell(experiment, found));
            write!(text, " {ours} | {papers} |").expect("a string takes any text");
        }
        text.push('\n');
    }
    for scale in experiment.other_scales() {
        write!(text, "\n*{}*: {}\n", plain(&scale.label), plain(&scale.note))
            .expect("a string takes any text");
    }
}

fn cell(experiment: &ExperimentResult, found: &PlacedCell<'_>) -> (String, String) {
    let ours = found.statistics.as_ref().map_or("*not run*".to_owned(), |statistics| {
        let shown = score(statistics);
        let few = !found.cell.is_reference && statistics.n_seeds() < found.cell.n_seeds;
        let seeds = if few {
            format!(" ({} of {} seeds)", statistics.n_seeds(), found.cell.n_seeds)
        } else {
            String::new()
        };
        let shown = if found.is_best { format!("**{shown}**") } else { shown };
        let rehearsed = if statistics.is_scaled() { " (rehearsal)" } else { "" };
        format!("{shown}{seeds}{rehearsed}")
    });
    let papers = found.cell.paper.map_or(String::new(), |paper| {
        let scale =
            experiment.scale_label(paper).map_or(String::new(), |label| format!(" ({})", plain(label)));
        format!("{}{scale}", ascii(&as_printed(paper)))
    });
    (ours, papers)
}

fn score(statistics: &SeedStatistics) -> String {
    let (mean, spread) = texts(statistics);
    ascii(&format!("{mean}{spread}"))
}

fn beside(report: &Report, text: &mut String) {
    let groups = report.runs_outside_experiments();
    if groups.is_empty() {
        return;
    }
    text.push_str("\n## Beside the paper\n\nRuns with keys of their own.\n\n");
    text.push_str("| runs | game | evaluation | score | normalised | seeds |\n|---|---|---|---|---|---|\n");
    for group in groups {
        for (file, cell, statistics) in group.rows(&report.runs) {
            let normalised =
                statistics.normalised.map_or(String::new(), |share| ascii(&number::percent(share)));
            let row =
                [plain(&group.name), plain(&cell.game_title), plain(&file), score(&statistics), normalised];
            writeln!(text, "| {} | {} |", row.join(" | "), statistics.n_seeds())
                .expect("a string takes any text");
        }
    }
}

fn runs(report: &Report, text: &mut String) {
    text.push_str(
        "\n## Runs\n\n| folder | seed | steps | commit | time of training |\n|---|---|---|---|---|\n",
    );
    for run in &report.runs {
        let commit = run.train.commit.as_deref().unwrap_or("unknown");
        let row = [
            plain(&run.name),
            run.train.seed.to_string(),
            ascii(&number::steps(run.steps as f64)),
            plain(commit.get(..12).unwrap_or(commit)),
            ascii(&number::duration(run.train.wall_clock_secs)),
        ];
        writeln!(text, "| {} |", row.join(" | ")).expect("a string takes any text");
    }
    for line in &report.damaged {
        writeln!(text, "\nCould not be read, and is left out: {}", plain(line))
            .expect("a string takes any text");
    }
}

/// With the signs of a plain text.
fn ascii(text: &str) -> String {
    text.replace('\u{2212}', "-").replace(['\u{a0}', '\u{202f}'], " ")
}

/// Nothing in it ends a cell, begins a tag or a link, or breaks a line.
fn plain(text: &str) -> String {
    let safe = |character: char| match character {
        '|' | '<' | '>' | '`' | '[' | ']' => '\u{fffd}',
        control if control.is_control() => ' ',
        other => other,
    };
    text.chars().map(safe).collect()
}
