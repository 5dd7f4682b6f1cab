//! The page of many runs: the tables and figures of the paper with our scores, the paper's numbers and the runs of each score, then
//! replays, additional runs and a list of all runs.

use super::replay::{self, GamePage};
use super::run::{command, scaled_note};
use super::{both, cell, close_table, config_details, counted, dash, facts, files, open_table, shell};
use crate::details::{DetailTable, detail_tables, peer_tables};
use crate::experiment_result::{
    ExperimentResult, MIN_SEEDS_FOR_BEST, PaperNumber, PlacedCell, RunEntry, SeedStatistics, View,
};
use crate::markup::Markup;
use crate::number;
use crate::replay::ReplayRecord;
use crate::report::{Report, ResultFigure};

const STYLE: &str = include_str!("../../assets/overview.css");

/// Writes the page. It shows the encounters in `replays`.
pub fn render(report: &Report, replays: &[ReplayRecord], pages: &[GamePage]) -> String {
    let mut styles = vec![STYLE];
    styles.extend(replay::styles(replays, pages));
    let script = replay::script(replays, pages);
    shell("PACE: results", &styles, script.as_deref(), |out| {
        header(report, replays, out);
        for (number, experiment) in report.experiments.iter().enumerate() {
            experiment_section(report, number, experiment, out);
        }
        replay::section(replays, out);
        groups_section(report, out);
        runs_section(report, out);
        reading_section(report, out);
    })
}

fn header(report: &Report, replays: &[ReplayRecord], out: &mut Markup) {
    let runs = &report.runs;
    out.open("header", &[]);
    out.leaf("p", &[("class", &"kicker")], "pace · report");
    out.leaf("h1", &[], "Fast peer adaptation, measured");
    let n_started =
        report.experiments.iter().filter(|experiment| experiment.coverage(runs).n_started > 0).count();
    let lead = format!(
        "{} {n_started} of {} experiments. Click a score to see its runs, seeds, keys and commits. Missing \
         scores are marked “not run”.",
        counted(runs.len(), "run covers", "runs cover"),
        report.experiments.len()
    );
    out.leaf("p", &[("class", &"lead")], &lead);
    let scale = runs.iter().map(|run| run.scale).filter(|scale| *scale != 1.0).min_by(f64::total_cmp);
    if let Some(scale) = scale {
        let n_scaled = runs.iter().filter(|run| run.scale != 1.0).count();
        let text = format!(
            "{n_scaled} of {} runs are scaled, the shortest to {} of its full budget. Scores of scaled runs are red and are not \
             results.",
            runs.len(),
            number::percent_fine(scale)
        );
        out.leaf("p", &[("class", &"scaled"), ("role", &"note")], &text);
    }
    out.open("nav", &[("aria-label", &"contents")]);
    for experiment in &report.experiments {
        let coverage = experiment.coverage(runs);
        let class = if coverage.n_started == 0 { "empty" } else { "" };
        let target = format!("#{}", experiment.name);
        out.leaf("a", &[("href", &target), ("class", &class)], &experiment.title);
    }
    if !replays.is_empty() {
        out.leaf("a", &[("href", &"#replay")], "Encounters");
    }
    out.leaf("a", &[("href", &"#runs")], "Runs");
    out.close("nav");
    share_switch(out);
    out.close("header");
}

/// Writes the choice between scores and shares in all tables. The style sheet applies it.
fn share_switch(out: &mut Markup) {
    out.open("fieldset", &[("class", &"switch")]);
    out.leaf("legend", &[], "Tables show");
    let choices = [
        ("as-scores", "scores"),
        ("as-shares", "shares of the range from random (0\u{a0}%) to oracle (100\u{a0}%)"),
    ];
    for (place, (id, label)) in choices.into_iter().enumerate() {
        out.open("label", &[("for", &id)]);
        let input: [(&str, &dyn std::fmt::Display); 4] =
            [("type", &"radio"), ("name", &"tables"), ("id", &id), ("checked", &"")];
        out.empty("input", if place == 0 { &input } else { &input[..3] });
        out.leaf("span", &[], label);
        out.close("label");
    }
    out.close("fieldset");
}

fn experiment_section(report: &Report, number: usize, experiment: &ExperimentResult, out: &mut Markup) {
    let runs = &report.runs;
    let table = experiment.table(runs);
    let coverage = experiment.coverage(runs);
    out.open("section", &[("id", &experiment.name)]);
    out.leaf("h2", &[], &experiment.title);
    out.leaf(
        "p",
        &[("class", &"note")],
        &format!("Reproduces {}.", experiment.reproduces.trim_end_matches('.')),
    );
    if let Some(claim) = &experiment.claim {
        out.leaf("p", &[("class", &"note")], &format!("The paper: {}.", claim.trim_end_matches('.')));
    }
    scaled_note(table.smallest_scale(), out);
    // An experiment about scores starts with its table, an experiment about curves ends with it.
    let starts_with_table =
        matches!(experiment.view, View::MainTable | View::SuddenChange | View::Ablation | View::Plain);
    if starts_with_table {
        result_table(report, number, experiment, &table, out);
    }
    for (place, found) in report.figures_of(experiment).iter().enumerate() {
        figure_of(out, found, &format!("{}-{place}", experiment.name));
    }
    if !starts_with_table {
        result_table(report, number, experiment, &table, out);
    }
    let n_incomplete = coverage.n_cells - coverage.n_complete;
    if n_incomplete > 0 {
        let text = format!(
            "{} of {} cells are complete, {} are empty; ",
            coverage.n_complete,
            coverage.n_cells,
            coverage.n_cells - coverage.n_started
        );
        let rest = format!("pace reproduce {}", experiment.name);
        let pieces =
            [(None, text.as_str()), (Some(("code", "word")), rest.as_str()), (None, " completes the rest.")];
        out.pieces("p", &[("class", &"note")], &pieces);
    }
    out.close("section");
}

fn figure_of(out: &mut Markup, ResultFigure { name, figure }: &ResultFigure, id: &str) {
    out.open("figure", &[]);
    out.leaf("h3", &[], figure.title());
    let wide = figure.inline(832.0, &format!("{id}-wide"));
    let narrow = figure.inline(344.0, &format!("{id}-narrow"));
    both(out, &wide, &narrow);
    out.leaf("figcaption", &[], &figure.description());
    let svg = format!("figures/{name}.svg");
    let csv = format!("tables/{name}.csv");
    files(&[("this figure as SVG", &svg), ("its numbers as CSV", &csv)], out);
    out.close("figure");
}

fn result_table(
    report: &Report,
    number: usize,
    experiment: &ExperimentResult,
    table: &crate::experiment_result::ResultTable<'_>,
    out: &mut Markup,
) {
    let columns = std::iter::once(table.corner).chain(table.columns.iter().map(String::as_str));
    let headings: Vec<_> = columns.map(|name| ("", name)).collect();
    open_table("grid", &headings, out);
    for (down, (name, cells)) in table.rows.iter().enumerate() {
        out.open("tr", &[("role", &"row")]);
        cell(out, table.corner, "row words", name);
        for (across, (found, column)) in cells.iter().zip(&table.columns).enumerate() {
            let id = format!("cell-{number}-{down}-{across}");
            match found {
                None => cell(out, column, "number", ""),
                Some(found) => number_cell(report, found, (column, &id), out),
            }
        }
        out.close("tr");
    }
    close_table(out);
    if table.rows.iter().flat_map(|(_, cells)| cells).flatten().any(|found| found.is_best) {
        let rule = format!(
            ": the highest score of a column among the rows with the preset of the experiment, if at least two of them have \
             {MIN_SEEDS_FOR_BEST} seeds with the full budget."
        );
        out.pieces("p", &[("class", &"note")], &[(Some(("strong", "")), "Bold"), (None, &rule)]);
    }
    for reason in &experiment.not_comparable {
        let pieces =
            [(Some(("strong", "")), "not comparable"), (None, ": "), (None, reason.as_str()), (None, ".")];
        out.pieces("p", &[("class", &"note")], &pieces);
    }
    let table_file = format!("tables/{}.csv", experiment.name);
    let peers_file = format!("tables/{}-peers.csv", experiment.name);
    let peers = peer_tables(experiment, &report.runs);
    let links = [("this table as CSV", table_file.as_str()), ("every seed and peer as CSV", &peers_file)];
    files(if peers.is_empty() { &links[..1] } else { &links }, out);
    let details = detail_tables(experiment, &report.runs);
    folded_tables("First and last episodes, shares, intervals, worst seeds and peers, cost", &details, out);
    folded_tables("Every peer: mean over seeds (worst seed)", &peers, out);
}

/// Writes tables of texts in an element that is closed at first.
fn folded_tables(summary: &str, tables: &[DetailTable], out: &mut Markup) {
    if tables.is_empty() {
        return;
    }
    out.open("details", &[("class", &"tables")]);
    out.leaf("summary", &[], summary);
    for table in tables {
        // A scrolling element is reached with the keyboard.
        let attributes: [(&str, &dyn std::fmt::Display); 4] =
            [("class", &"scroll"), ("tabindex", &"0"), ("role", &"group"), ("aria-label", &table.title)];
        out.open("div", &attributes);
        out.leaf("h3", &[], &table.title);
        let first_words = table.headings.len() - table.n_word_columns;
        let class = |place: usize| match place {
            0 => "row",
            place if place < first_words => "number",
            _ => "words",
        };
        let headings: Vec<(&str, &str)> = (table.headings.iter().enumerate())
            .map(|(place, name)| (if class(place) == "words" { "words" } else { "" }, name.as_str()))
            .collect();
        open_table("texts", &headings, out);
        for row in &table.rows {
            out.open("tr", &[("role", &"row")]);
            for (place, (text, name)) in row.iter().zip(&table.headings).enumerate() {
                cell(out, name, class(place), text);
            }
            out.close("tr");
        }
        close_table(out);
        out.close("div");
    }
    out.close("details");
}

/// Writes a cell: our score as a button that shows its runs, and the paper's number below.
fn number_cell(report: &Report, found: &PlacedCell<'_>, (column, id): (&str, &str), out: &mut Markup) {
    out.open("td", &[("role", &"cell"), ("class", &"number cell"), ("data-name", &column)]);
    let Some(statistics) = &found.statistics else {
        out.leaf("span", &[("class", &"missing")], "not run");
        paper_line(found, out);
        out.close("td");
        return;
    };
    let (mean, std) = mean_and_std(statistics);
    let mut class = "origin".to_owned();
    if found.is_best {
        class.push_str(" best");
    }
    if statistics.is_scaled() {
        class.push_str(" scaled");
    }
    let label =
        format!("{mean}{std}, from {}; show the runs", counted(statistics.n_seeds(), "seed", "seeds"));
    let share = statistics.share.map(|(share, std)| {
        let std = std.map_or(String::new(), |std| format!(" ± {}", number::percent(std)));
        (number::percent(share), std)
    });
    // Without a share, the score is always shown.
    let raw = |class: &'static str, with_share| if share.is_some() { with_share } else { class };
    let (score, error) = (raw("score", "score raw"), raw("error", "error raw"));
    let mut pieces = vec![(Some(("span", score)), mean.as_str()), (Some(("span", error)), std.as_str())];
    if let Some((share, std)) = &share {
        pieces.extend([
            (Some(("span", "score share")), share.as_str()),
            (Some(("span", "error share")), std.as_str()),
        ]);
    }
    out.pieces(
        "button",
        &[("type", &"button"), ("class", &class), ("popovertarget", &id), ("aria-label", &label)],
        &pieces,
    );
    if !found.cell.is_reference {
        let n = statistics.n_seeds();
        let (class, of) = if n < found.cell.n_seeds {
            ("few", format!("{n} of {}", found.cell.n_seeds))
        } else {
            ("seeds", n.to_string())
        };
        let unit = if n == 1 && class == "seeds" { "seed" } else { "seeds" };
        out.leaf("span", &[("class", &class)], &format!("{of} {unit}"));
    }
    if let Some(oracle) = found.other_oracle {
        let text = format!("other rules: oracle {}", number::typeset(oracle, statistics.decimals().min(3)));
        out.leaf("span", &[("class", &"rules raw")], &text);
    }
    paper_line(found, out);
    popover(report, found, statistics, id, out);
    out.close("td");
}

/// Writes the paper's number, with the difference from ours or the mark that it is not comparable.
fn paper_line(found: &PlacedCell<'_>, out: &mut Markup) {
    let Some(paper) = found.cell.paper else { return };
    let text = format!("paper {}", paper_number(paper));
    match found.paper_share {
        None => out.leaf("span", &[("class", &"papers")], &text),
        Some(share) => {
            out.leaf("span", &[("class", &"papers raw")], &text);
            out.leaf("span", &[("class", &"papers share")], &format!("paper {}", number::percent(share)));
        }
    }
    if !paper.is_comparable {
        out.leaf("span", &[("class", &"rules")], "not comparable");
    }
    if let Some(value) = found.statistics.as_ref().and_then(|ours| paper.difference(ours)) {
        out.leaf("span", &[("class", &"difference")], &difference(value));
    }
}

/// A number of the paper with its standard deviation, with the paper's decimals but at least two.
pub(crate) fn paper_number(paper: PaperNumber) -> String {
    let of = |value: f64| format!("{value}").split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let decimals = paper.std.map_or(0, of).max(of(paper.mean)).max(2);
    let std = paper.std.map_or(String::new(), |std| format!(" ± {}", number::typeset(std, decimals)));
    format!("{}{std}", number::typeset(paper.mean, decimals))
}

/// A difference in standard errors as text: `+0.4 SE`.
pub(crate) fn difference(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}\u{a0}SE", number::typeset(value, 1))
}

/// The mean and the standard deviation as text, with the decimals that the standard deviation allows.
pub(crate) fn mean_and_std(statistics: &SeedStatistics) -> (String, String) {
    let decimals = statistics.decimals();
    let std = statistics.std.map_or(String::new(), |std| format!(" ± {}", number::typeset(std, decimals)));
    (number::typeset(statistics.mean, decimals), std)
}

/// Writes the runs of a score, shown when its button is clicked.
fn popover(report: &Report, found: &PlacedCell<'_>, statistics: &SeedStatistics, id: &str, out: &mut Markup) {
    let cell = found.cell;
    out.open("div", &[("popover", &"auto"), ("id", &id), ("class", &"popover")]);
    let title = format!("{} in {}", cell.row_name(""), cell.game_title);
    out.leaf("h3", &[], title.trim_end_matches(", preset "));
    if cell.is_reference {
        let text = "A reference agent on the same peers; every evaluation measures it.";
        out.leaf("p", &[("class", &"note")], text);
    } else {
        let mut text = format!(
            "Mean {} over {}",
            number::typeset(statistics.mean, 4),
            counted(statistics.n_seeds(), "seed", "seeds")
        );
        if let Some(std) = statistics.std {
            text.push_str(&format!(
                ", standard deviation {} (divisor n, as the paper)",
                number::typeset(std, 4)
            ));
        }
        if let Some(iqm) = statistics.iqm {
            text.push_str(&format!(
                "; interquartile mean {}, bootstrap 95\u{a0}% interval {} to {}",
                number::typeset(iqm.value, 4),
                number::typeset(iqm.low, 4),
                number::typeset(iqm.high, 4)
            ));
        }
        if let Some((share, _)) = statistics.share {
            text.push_str(&format!("; {} of the range from random to oracle", number::percent(share)));
        }
        if let Some(share) = statistics.normalised {
            text.push_str(&format!("; {} of the range from static to oracle", number::percent(share)));
        }
        out.leaf("p", &[("class", &"note")], &format!("{text}."));
    }
    out.open("ul", &[]);
    for (run, value, error) in &statistics.seeds {
        let entry = &report.runs[*run];
        out.open("li", &[]);
        let error = error.map_or(String::new(), |error| format!(" ± {}", number::typeset(error, 4)));
        let value = format!("{}{error}", number::typeset(*value, 4));
        let facts = format!(" seed {}, {}", entry.train.seed, run_facts(entry));
        out.pieces("p", &[], &[(Some(("strong", "")), value.as_str()), (None, facts.as_str())]);
        out.leaf("a", &[("href", &format!("#run-{}", anchor(report, *run)))], &entry.name);
        if let Some(record) = entry.evaluations.get(&cell.evaluation_file) {
            command(&record.command, out);
        }
        out.close("li");
    }
    out.close("ul");
    out.close("div");
}

fn run_facts(entry: &RunEntry) -> String {
    let commit = entry.train.commit.as_deref().unwrap_or("unknown");
    let short = commit.get(..12).unwrap_or(commit);
    let scale = if entry.scale == 1.0 {
        String::new()
    } else {
        format!(", {} of the budget", number::percent_fine(entry.scale))
    };
    format!("{} steps{scale}, keys {}, commit {short}", number::count(entry.steps), entry.id)
}

/// The id of a run's element. Two folders may contain the same run, so the index makes it unique.
fn anchor(report: &Report, run: usize) -> String {
    format!("{run}-{}", report.runs[run].id)
}

/// Writes the runs outside the experiments, grouped by keys over seeds.
fn groups_section(report: &Report, out: &mut Markup) {
    let groups = report.runs_outside_experiments();
    if groups.is_empty() {
        return;
    }
    out.open("section", &[("id", &"additional")]);
    out.leaf("h2", &[], "Additional runs");
    let note = "Runs outside the paper's experiments. Mean ± standard deviation across training seeds, for each evaluation.";
    out.leaf("p", &[("class", &"note")], note);
    let headings = [
        ("words", "runs"),
        ("", "game"),
        ("", "evaluation"),
        ("", "score"),
        ("", "normalised"),
        ("", "seeds"),
    ];
    open_table("grid", &headings, out);
    for (place, group) in groups.iter().enumerate() {
        for (line, (file, cell_of, statistics)) in group.rows(&report.runs).into_iter().enumerate() {
            out.open("tr", &[("role", &"row")]);
            cell(out, "runs", "words", &group.name);
            cell(out, "game", "number", &cell_of.game_title);
            cell(out, "evaluation", "number", &file);
            let found = PlacedCell {
                cell: &cell_of,
                statistics: Some(statistics.clone()),
                is_best: false,
                other_oracle: None,
                paper_share: None,
            };
            number_cell(report, &found, ("score", &format!("group-{place}-{line}")), out);
            cell(out, "normalised", "number", &statistics.normalised.map_or(dash(), number::percent));
            cell(out, "seeds", "number", &statistics.n_seeds().to_string());
            out.close("tr");
        }
    }
    close_table(out);
    out.close("section");
}

fn runs_section(report: &Report, out: &mut Markup) {
    out.open("section", &[("id", &"runs")]);
    out.leaf("h2", &[], "All runs");
    for (place, run) in report.runs.iter().enumerate() {
        out.open("details", &[("id", &format!("run-{}", anchor(report, place))), ("class", &"run")]);
        let line = format!("{}: {}, seed {}, {}", run.name, run.train.method, run.train.seed, run.status);
        out.leaf("summary", &[], &line);
        command(&run.command, out);
        let scale = (run.scale != 1.0).then(|| number::percent_fine(run.scale));
        let of_run = [
            (
                "game, method, preset",
                Some(format!("{}, {}, {}", run.train.game, run.train.method, run.train.preset)),
            ),
            ("folder", Some(run.name.clone())),
            ("changed keys", Some(run.changes.clone())),
            ("share of the budget", scale),
            ("steps", Some(number::count(run.steps))),
            ("training time", Some(number::duration(run.train.wall_clock_secs))),
            ("threads", run.n_threads.map(|n| n.to_string())),
            ("processor", Some(run.processor.clone())),
            ("commit", run.train.commit.clone()),
            ("id", Some(run.id.clone())),
            ("evaluations", Some(run.evaluations.keys().cloned().collect::<Vec<_>>().join(", "))),
        ];
        facts(&of_run, out);
        config_details("Every resolved key", &run.train.config, out);
        out.close("details");
    }
    let all = [
        ("all runs as CSV", "tables/runs.csv"),
        ("all tables as Markdown", "RESULTS.md"),
        ("all records for marl-eval as JSON", "marl-eval.json"),
    ];
    files(&all, out);
    for line in &report.damaged {
        out.leaf("p", &[("class", &"scaled")], &format!("Skipped (unreadable): {line}"));
    }
    out.close("section");
}

fn reading_section(report: &Report, out: &mut Markup) {
    out.open("section", &[("id", &"reading")]);
    out.leaf("h2", &[], "How to read the numbers");
    let rows = "A row without the name of a preset has the preset of the experiment: reference, which follows the authors' program. The \
                paper's numbers come from it and stand next to these rows alone, each with our mean minus it in standard errors (SE) of \
                the difference. best has the keys that worked best here; paper follows the paper's text. Where a row has other rules, \
                the oracle's score under them is given; compare its share instead of its score.";
    let spread = "± is the standard deviation across training seeds (divisor n), as in the paper; it is missing with one seed. Intervals are \
                  those of a stratified bootstrap with a fixed seed. The worst tenth of peers is the mean score with the tenth of the peers \
                  that it is lowest with.";
    let share = "A share is 0\u{a0}% if the agent scores as much as random, which acts uniformly, and 100\u{a0}% if it scores as much as oracle, \
                 which knows its peers; a normalised score starts from static, which never adapts, instead of random. All are scripted and \
                 play with the same peers. They are not limits: an agent may score less than random or more than oracle. The paper's \
                 peer pools and ours come from the same distribution but may differ.";
    let chosen = "Chosen on: the peers whose scores decided on keys or checkpoints. none: the keys are those of the paper or of the authors' \
                  program. test: test scores were in sight, so they favour the agent.";
    let folders = "The commands are the recorded ones, with the current folders, relative to the folder of the records.";
    for text in [rows, spread, share, chosen, folders] {
        out.leaf("p", &[("class", &"note")], text);
    }
    if !report.command.is_empty() {
        command(&report.command, out);
    }
    out.close("section");
}
