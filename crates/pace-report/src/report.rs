//! The content of a report as values: experiments, runs, figures and tables.
//!
//! `page` writes it as HTML, `markdown` as text, and `marl_eval` as JSON for other programs.

use std::fmt::Write;

use crate::aggregate::Aggregate;
use crate::csv::{optional, quoted, quoted_row};
use crate::experiment_result::{
    ExperimentResult, PlacedCell, ResultCell, RunEntry, SeedStatistics, View, distinct,
};
use crate::figures::comparison::{self, Group};
use crate::figures::heatmap::HeatMap;
use crate::figures::intervals::Intervals;
use crate::figures::ranges::Ranges;
use crate::figures::scatter::Scatter;
use crate::figures::{Figure, other_scales};
use crate::record::{AdaptRecord, TrainRecord};

/// The content of a report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The experiments, in the order of the report.
    pub experiments: Vec<ExperimentResult>,
    /// All runs.
    pub runs: Vec<RunEntry>,
    /// The errors of unreadable files, one line each.
    pub damaged: Vec<String>,
    /// The command that wrote the report.
    pub command: String,
}

/// A figure of an experiment.
#[derive(Clone, Debug)]
pub struct ResultFigure {
    /// The file name without extension.
    pub name: String,
    /// The figure.
    pub figure: Figure,
}

/// Runs outside the experiments that differ only in their seeds.
#[derive(Clone, Debug)]
pub(crate) struct SeedGroup {
    /// Their folders and common settings, as text.
    pub name: String,
    /// Their indices in the list of all runs.
    pub runs: Vec<usize>,
}

impl Report {
    /// The figures of an experiment, without those that have no records.
    pub fn figures_of(&self, experiment: &ExperimentResult) -> Vec<ResultFigure> {
        let figures: Vec<(String, Option<Figure>)> = match experiment.view {
            View::AdaptationCurves => self.by_game(experiment, comparison::adaptation),
            View::Showdown => self.by_game(experiment, comparison::keypoint),
            View::SuddenChange => self.sudden_change(experiment),
            View::TrainingCurves | View::Discount => self.training(
                experiment,
                &[("charts/success", "success on training peers"), ("charts/keypoint", "visits")],
            ),
            View::Encoder => self.training(
                experiment,
                &[("charts/success", "success on training peers"), ("peer/aux_loss", "")],
            ),
            View::HorizonHeatmap => {
                let title = "Score by context episodes in training (columns) and episodes in the test (rows)";
                let axes = ("episodes in the test", "context episodes in training");
                let first = experiment.cells.iter().find_map(|cell| cell.records(&self.runs).next());
                let references: Vec<(&str, f64)> = first.map_or(Vec::new(), |(_, record)| {
                    let known = record.references_in_order().into_iter();
                    let ends = known.filter(|(name, _)| ["oracle", "static"].contains(name));
                    ends.map(|(name, reference)| (name, reference.mean)).collect()
                });
                // The paper's table has no rows of other presets.
                let mut usual = experiment.clone();
                usual.cells.retain(|cell| cell.preset == experiment.preset);
                let map = HeatMap::of(title, axes, &usual.table(&self.runs), &references);
                vec![("heatmap".to_owned(), map.map(Figure::Heat))]
            }
            View::Tsne => self.latents(experiment),
            View::Pools => self.pools(experiment),
            View::MainTable
            | View::Ablation
            | View::PeerCount
            | View::PoolDiversity
            | View::HumanLike
            | View::Plain => self.means(experiment),
        };
        let aggregates = self.aggregates(experiment);
        let figures = figures.into_iter().chain(aggregates);
        let named = figures.filter_map(|(name, figure)| Some((name, figure?)));
        let is_scaled =
            experiment.cells.iter().flat_map(|cell| &cell.runs).any(|run| self.runs[*run].scale != 1.0);
        named
            .map(|(name, mut figure)| {
                if is_scaled {
                    figure.add_to_title(" (scaled run, not a result)");
                }
                ResultFigure { name: format!("{}-{name}", experiment.name), figure }
            })
            .collect()
    }

    /// The cells with lines in a chart: those of the experiment's preset, and of `best` where the game has the same rules.
    fn drawn<'a>(&self, experiment: &'a ExperimentResult) -> Vec<&'a ResultCell> {
        let is_drawn = |cell: &&ResultCell| {
            let is_best = cell.preset == "best" && experiment.other_oracle(cell, &self.runs).is_none();
            !cell.is_reference && (cell.preset == experiment.preset || is_best)
        };
        experiment.cells.iter().filter(is_drawn).collect()
    }

    /// A sentence that names the rows of other presets that have records but another scale in this game; empty if there are none.
    fn not_drawn(&self, experiment: &ExperimentResult, game: &str) -> String {
        let is_other = |cell: &&ResultCell| {
            cell.game == game && !cell.is_reference && experiment.other_oracle(cell, &self.runs).is_some()
        };
        let names = experiment.cells.iter().filter(is_other).map(|cell| cell.row_name(&experiment.preset));
        let names = distinct(names);
        if names.is_empty() {
            return String::new();
        }
        format!(" Not shown, because their game has other rules: {}.", names.join("; "))
    }

    /// A chart per game, with a line per row of the experiment.
    fn by_game(
        &self,
        experiment: &ExperimentResult,
        chart: fn(&str, &[Group<'_, AdaptRecord>]) -> Option<crate::svg::Chart>,
    ) -> Vec<(String, Option<Figure>)> {
        let drawn = self.drawn(experiment);
        let of_game = |(game, title): (String, String)| {
            let cells = drawn.iter().filter(|cell| cell.game == game);
            let groups: Vec<Group<'_, AdaptRecord>> = cells
                .map(|cell| {
                    (
                        cell.row_name(&experiment.preset),
                        cell.records(&self.runs).map(|(_, record)| record).collect(),
                    )
                })
                .collect();
            let note = self.not_drawn(experiment, &game);
            let chart = chart(&title, &groups).map(|mut chart| {
                chart.description.push_str(&note);
                Figure::Lines(chart)
            });
            (game, chart)
        };
        experiment.games().into_iter().map(of_game).collect()
    }

    fn sudden_change(&self, experiment: &ExperimentResult) -> Vec<(String, Option<Figure>)> {
        let switched =
            |cell: &&ResultCell| cell.records(&self.runs).any(|(_, record)| record.switch.is_some());
        let groups: Vec<Group<'_, AdaptRecord>> = self
            .drawn(experiment)
            .into_iter()
            .filter(switched)
            .map(|cell| {
                let name = format!("{}, {}", cell.row_name(&experiment.preset), cell.evaluation);
                (name, cell.records(&self.runs).map(|(_, record)| record).collect())
            })
            .collect();
        let chart = comparison::adaptation("Score by episode, with a replacement of the peers", &groups);
        vec![("episodes".to_owned(), chart.map(Figure::Lines))]
    }

    /// Interquartile means, probabilities of improvement and performance profiles over the columns of the table.
    fn aggregates(&self, experiment: &ExperimentResult) -> Vec<(String, Option<Figure>)> {
        let table = experiment.table(&self.runs);
        let Some(aggregate) = Aggregate::of(experiment, &table, &self.runs) else { return Vec::new() };
        let columns = aggregate.columns.join(", ");
        let first = &aggregate.rows[0].name;
        let iqm = Ranges {
            title: format!("Interquartile mean of shares over {columns}"),
            label: "share, random to oracle".to_owned(),
            rows: aggregate.rows.iter().map(|row| (row.name.clone(), row.iqm)).collect(),
            mark: 1.0,
        };
        let improvement = Ranges {
            title: format!("Probability that a run of {first} is better, over {columns}"),
            label: "share of pairs of runs".to_owned(),
            rows: aggregate
                .rows
                .iter()
                .filter_map(|row| Some((row.name.clone(), row.improvement?)))
                .collect(),
            mark: 0.5,
        };
        let profile = comparison::profiles(&format!("Performance profiles over {columns}"), &aggregate);
        vec![
            ("iqm".to_owned(), Some(Figure::Ranges(iqm))),
            ("improvement".to_owned(), Some(Figure::Ranges(improvement))),
            ("profile".to_owned(), Some(Figure::Lines(profile))),
        ]
    }

    fn training(
        &self,
        experiment: &ExperimentResult,
        metrics: &[(&str, &str)],
    ) -> Vec<(String, Option<Figure>)> {
        let mut figures = Vec::new();
        for (game, game_title) in experiment.games() {
            // A run may have several evaluations; its curve is drawn once.
            let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
            for cell in self.drawn(experiment).into_iter().filter(|cell| cell.game == game) {
                let group = (cell.row_name(&experiment.preset), cell.runs.clone());
                if !cell.runs.is_empty() && !groups.contains(&group) {
                    groups.push(group);
                }
            }
            let groups: Vec<Group<'_, TrainRecord>> = groups
                .into_iter()
                .map(|(name, runs)| (name, runs.into_iter().map(|run| &self.runs[run].train).collect()))
                .collect();
            for (metric, label) in metrics {
                let episodes = groups.iter().find_map(|(_, records)| {
                    let keys = records.first()?.config.get("game_keys")?;
                    keys.get("episodes_per_encounter")?.as_f64()
                });
                // The log has the share of episodes with a visit; the paper counts visits per encounter.
                let (label, factor) = match (*metric, episodes) {
                    ("charts/keypoint", Some(n)) => ("keypoint visits per encounter", n),
                    _ => (*label, 1.0),
                };
                let shown = if label.is_empty() { "identification loss" } else { label };
                let title = format!("{game_title}: {shown}");
                let chart = comparison::training(&title, metric, (label, factor), &groups);
                figures.push((format!("{game}-{}", metric.replace('/', "-")), chart.map(Figure::Lines)));
            }
        }
        figures
    }

    fn latents(&self, experiment: &ExperimentResult) -> Vec<(String, Option<Figure>)> {
        let mut figures = Vec::new();
        for cell in experiment.cells.iter().filter(|cell| !cell.is_reference) {
            // Layouts of several seeds cannot be averaged, so the first one is shown.
            let first = cell.runs.iter().find_map(|run| {
                Some((&self.runs[*run], self.runs[*run].embeddings.get(&cell.evaluation_file)?))
            });
            let name = cell.row_name(&experiment.preset);
            let scatter = first.and_then(|(run, record)| {
                Scatter::of(
                    &format!("{name}: latents of one encounter with each peer, seed {}", run.train.seed),
                    record,
                )
            });
            figures.push((format!("{}-{}", cell.game, cell.method), scatter.map(Figure::Points)));
        }
        figures
    }

    /// Means per game, with a row for each pool and variant.
    fn pools(&self, experiment: &ExperimentResult) -> Vec<(String, Option<Figure>)> {
        let of_game = |(game, title): (String, String)| {
            let cells: Vec<&ResultCell> =
                self.drawn(experiment).into_iter().filter(|cell| cell.game == game).collect();
            let record = cells.iter().find_map(|cell| cell.longest_record(&self.runs));
            let figure = record.map(|(_, record)| Intervals {
                title,
                label: record.words.score.clone(),
                limits: record.metric.limits(),
                rows: cells
                    .iter()
                    .map(|cell| {
                        let name = format!("{}, {}", cell.row_name(&experiment.preset), cell.evaluation);
                        (name, cell.statistics(&self.runs), cell.paper)
                    })
                    .collect(),
                references: Vec::new(),
                note: String::new(),
            });
            (game, figure.map(Figure::Means))
        };
        experiment.games().into_iter().map(of_game).collect()
    }

    /// Means per game and evaluation, the methods below each other.
    fn means(&self, experiment: &ExperimentResult) -> Vec<(String, Option<Figure>)> {
        let table = experiment.table(&self.runs);
        let mut figures = Vec::new();
        for (across, column) in table.columns.iter().enumerate() {
            // One axis holds one scale.
            let is_shown = |found: &&PlacedCell<'_>| found.other_oracle.is_none();
            let cells: Vec<_> = table
                .rows
                .iter()
                .filter_map(|(name, cells)| Some((name, cells[across].as_ref().filter(is_shown)?)))
                .collect();
            let Some(record) = cells.iter().find_map(|(_, found)| found.cell.records(&self.runs).next())
            else {
                continue;
            };
            let record = record.1;
            // The scores of reference agents depend on the number of peers, so one line would not hold for all rows.
            let kept = |name: &str| {
                experiment.view != View::PeerCount && ["oracle", "bayes", "static"].contains(&name)
            };
            let game = record.game_name();
            let rows = cells
                .iter()
                .filter_map(|(name, found)| Some((name.as_str(), found.cell.records(&self.runs).next()?.1)));
            let intervals = Intervals {
                title: if column == game { column.clone() } else { format!("{game}: {column}") },
                label: record.words.score.clone(),
                limits: record.metric.limits(),
                rows: cells
                    .iter()
                    .filter(|(_, found)| !found.cell.is_reference)
                    .map(|(name, found)| ((*name).clone(), found.statistics.clone(), found.cell.paper))
                    .collect(),
                references: record
                    .references_in_order()
                    .into_iter()
                    .filter(|(name, _)| kept(name))
                    .map(|(name, reference)| (name.to_owned(), reference.mean))
                    .collect(),
                note: other_scales(record, rows) + &self.not_drawn(experiment, &record.game),
            };
            figures.push((slug(column), Some(Figure::Means(intervals))));
        }
        figures
    }

    /// The runs that no experiment contains, grouped by keys over seeds.
    pub(crate) fn runs_outside_experiments(&self) -> Vec<SeedGroup> {
        let is_used = |place: usize| {
            self.experiments
                .iter()
                .flat_map(|experiment| &experiment.cells)
                .any(|cell| cell.runs.contains(&place))
        };
        // A group is identified by the folder name without the seed, and by the keys.
        let mut groups: Vec<(String, String, SeedGroup)> = Vec::new();
        for (place, run) in self.runs.iter().enumerate().filter(|(place, _)| !is_used(*place)) {
            let train = &run.train;
            let changes = if run.changes.is_empty() { String::new() } else { format!(", {}", run.changes) };
            let stem = run.name.rfind("-s").unwrap_or(run.name.len());
            let (folder, seed) = run.name.split_at(stem);
            let keys = format!("{} with preset {}{changes}", train.method.to_uppercase(), train.preset);
            match groups.iter_mut().find(|(known, with, _)| known == folder && *with == keys) {
                Some((.., group)) => {
                    write!(group.name, ", {seed}").expect("a string takes any text");
                    group.runs.push(place);
                }
                None => {
                    let group = SeedGroup { name: run.name.clone(), runs: vec![place] };
                    groups.push((folder.to_owned(), keys, group));
                }
            }
        }
        let named = |(_, keys, group): (String, String, SeedGroup)| SeedGroup {
            name: format!("{} ({keys})", group.name),
            ..group
        };
        groups.into_iter().map(named).collect()
    }

    /// An experiment as CSV, one row per cell: our score, the number of seeds, and the paper's number.
    pub fn table_csv(&self, experiment: &ExperimentResult) -> String {
        let mut text = "study,game,method,preset,variant,evaluation,seeds,seeds_wanted,mean,std,iqm,iqm_low,iqm_high,share,\
                        normalised,scale,paper_mean,paper_std,paper_comparable,difference_in_standard_errors,runs\n"
            .to_owned();
        for cell in &experiment.cells {
            let statistics = cell.statistics(&self.runs);
            let number =
                |value: fn(&SeedStatistics) -> Option<f64>| optional(statistics.as_ref().and_then(value));
            let runs: Vec<&str> = statistics
                .iter()
                .flat_map(|statistics| &statistics.seeds)
                .map(|(run, ..)| self.runs[*run].name.as_str())
                .collect();
            let place =
                [&experiment.name, &cell.game, &cell.method, &cell.preset, &cell.variant, &cell.evaluation];
            writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                quoted_row(&place.map(String::as_str)),
                statistics.as_ref().map_or(0, SeedStatistics::n_seeds),
                cell.n_seeds,
                number(|statistics| Some(statistics.mean)),
                number(|statistics| statistics.std),
                number(|statistics| Some(statistics.iqm?.value)),
                number(|statistics| Some(statistics.iqm?.low)),
                number(|statistics| Some(statistics.iqm?.high)),
                number(|statistics| Some(statistics.share?.0)),
                number(|statistics| statistics.normalised),
                number(|statistics| Some(statistics.scale)),
                optional(cell.paper.map(|paper| paper.mean)),
                optional(cell.paper.and_then(|paper| paper.std)),
                cell.paper.map_or(String::new(), |paper| paper.is_comparable.to_string()),
                optional(
                    cell.paper.zip(statistics.as_ref()).and_then(|(paper, ours)| paper.difference(ours))
                ),
                quoted(&runs.join(" "))
            )
            .expect("a string takes any text");
        }
        text
    }

    /// The scores with single peers as CSV, one row per cell and peer; `None` if no record has them.
    pub fn peers_csv(&self, experiment: &ExperimentResult) -> Option<String> {
        let mut text =
            "study,game,method,preset,variant,evaluation,seed,peer,description,mean,standard_error,oracle\n"
                .to_owned();
        let n_head = text.len();
        for cell in experiment.cells.iter().filter(|cell| !cell.is_reference) {
            let place =
                [&experiment.name, &cell.game, &cell.method, &cell.preset, &cell.variant, &cell.evaluation];
            let place = quoted_row(&place.map(String::as_str));
            for (run, record) in cell.records(&self.runs) {
                for peer in &record.peers {
                    writeln!(
                        text,
                        "{place},{},{},{},{},{},{}",
                        self.runs[run].train.seed,
                        peer.index,
                        quoted(&peer.description),
                        peer.mean,
                        optional(peer.standard_error),
                        optional(peer.oracle)
                    )
                    .expect("a string takes any text");
                }
            }
        }
        (text.len() > n_head).then_some(text)
    }

    /// All runs as CSV, one row per run and evaluation.
    pub fn runs_csv(&self) -> String {
        let mut text = "run,id,game,method,preset,changes,seed,scale,steps,commit,wall_clock_secs,evaluation,pool,episodes,passes,\
                        mean,standard_error,normalised,share_of_bayes\n"
            .to_owned();
        for run in &self.runs {
            let train = &run.train;
            for (name, record) in &run.evaluations {
                let of_run = [&run.name, &run.id, &train.game, &train.method, &train.preset, &run.changes];
                writeln!(
                    text,
                    "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    quoted_row(&of_run.map(String::as_str)),
                    train.seed,
                    run.scale,
                    run.steps,
                    quoted(train.commit.as_deref().unwrap_or_default()),
                    train.wall_clock_secs,
                    quoted(name),
                    quoted(&record.pool),
                    record.episodes,
                    record.passes,
                    record.mean,
                    optional(record.standard_error),
                    optional(record.normalised),
                    optional(record.share_of_bayes)
                )
                .expect("a string takes any text");
            }
        }
        text
    }
}

impl SeedGroup {
    /// One row per evaluation of its runs: the file name, a cell, and the statistics.
    pub(crate) fn rows(&self, runs: &[RunEntry]) -> Vec<(String, ResultCell, SeedStatistics)> {
        let files = distinct(self.runs.iter().flat_map(|run| runs[*run].evaluations.keys().cloned()));
        let row = |file: String| {
            let record = self.runs.iter().find_map(|run| runs[*run].evaluations.get(&file))?;
            let cell = ResultCell {
                game: record.game.clone(),
                game_title: record.game_name().to_owned(),
                method: record.method.clone(),
                is_reference: false,
                preset: record.preset.clone(),
                variant: String::new(),
                evaluation: file.clone(),
                evaluation_file: file.clone(),
                paper: None,
                n_seeds: self.runs.len(),
                runs: self.runs.clone(),
            };
            let statistics = cell.statistics(runs)?;
            Some((file, cell, statistics))
        };
        files.into_iter().filter_map(row).collect()
    }
}

/// Converts a name to a file name: lower-case letters, digits and dashes.
fn slug(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let text: String = name.chars().map(plain).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}
