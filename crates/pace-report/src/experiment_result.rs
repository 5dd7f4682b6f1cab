//! The results of an experiment: its cells, the runs of each cell, and the paper's numbers.
//!
//! The caller assigns runs to cells. This module computes statistics over the seeds of a cell and arranges cells in a table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::embedding::EmbeddingRecord;
use crate::number;
use crate::record::{AdaptRecord, TrainRecord};
use crate::stats::{Interval, interquartile_mean_95, mean, population_std};

/// Minimum number of seeds of a result that can be marked as the best of its column.
pub(crate) const MIN_SEEDS_FOR_BEST: usize = 3;

/// Number of resamples of every bootstrap. The next constant is its random seed.
pub(crate) const RESAMPLES: usize = 2000;
pub(crate) const BOOTSTRAP_SEED: u64 = 1;

/// A run with its records.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// The name of its folder.
    pub name: String,
    /// The run's id, which contains a hash of all its keys.
    pub id: String,
    /// The keys that differ from the preset, as text; empty if none do.
    pub changes: String,
    /// The factor for step budgets: 1 for the full budget, less for a scaled run.
    pub scale: f64,
    /// Training steps (ego decisions).
    pub steps: u64,
    /// The status: `finished`, `stopped`, …
    pub status: String,
    /// The training command.
    pub command: String,
    /// The processor it ran on.
    pub processor: String,
    /// The number of threads of its training, if its command gives it.
    pub n_threads: Option<usize>,
    /// Its learning curves, seed, commit and keys.
    pub train: TrainRecord,
    /// Its evaluations, by file name without extension.
    pub evaluations: BTreeMap<String, AdaptRecord>,
    /// Embeddings of its latents, by evaluation.
    pub embeddings: BTreeMap<String, EmbeddingRecord>,
}

/// A table or figure of the paper, with our results.
#[derive(Clone, Debug)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub name: String,
    /// The title.
    pub title: String,
    /// The table or figure of the paper.
    pub reproduces: String,
    /// The paper's claim as text, if its numbers alone do not state it.
    pub claim: Option<String>,
    /// The kind of table or figure.
    pub view: View,
    /// The preset of the experiment. The paper's numbers stand next to the scores under this preset alone.
    pub preset: String,
    /// The reasons why numbers of the paper are not comparable with ours, as clauses.
    pub not_comparable: Vec<String>,
    /// Its cells, in the order of its file.
    pub cells: Vec<ResultCell>,
}

/// The kind of table or figure that shows an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// A table of methods (rows) and games (columns).
    MainTable,
    /// The score over the episodes of an encounter, one figure per game.
    AdaptationCurves,
    /// The showdown rate in Kuhn Poker over the hands of an encounter.
    Showdown,
    /// The score before and after the peers are replaced.
    SuddenChange,
    /// PACE without some of its parts.
    Ablation,
    /// Success and keypoint visits over training.
    TrainingCurves,
    /// Like `TrainingCurves`, but for several discounts.
    Discount,
    /// Success and identification loss over training, for several encoders.
    Encoder,
    /// N_ctx of training (columns) and N_eps of the evaluation (rows).
    HorizonHeatmap,
    /// Scores with different numbers of peers.
    PeerCount,
    /// The score over the number of dishes that training peers want.
    PoolDiversity,
    /// Latents in two dimensions.
    Tsne,
    /// The score with peers that have human-like errors, pauses and route changes.
    HumanLike,
    /// Games and variants (rows) with several peer pools (columns).
    Pools,
    /// One row per run and evaluation.
    Plain,
}

/// One number of an experiment.
#[derive(Clone, Debug)]
pub struct ResultCell {
    /// The game's id.
    pub game: String,
    /// The game's display name.
    pub game_title: String,
    /// The method's id, or the name of a reference agent.
    pub method: String,
    /// Whether `method` is a reference agent. The records of trained agents contain its score.
    pub is_reference: bool,
    /// The preset with the default keys of its runs.
    pub preset: String,
    /// The variant's name; empty for the plain variant.
    pub variant: String,
    /// The evaluation's name in the experiment.
    pub evaluation: String,
    /// The file name of the evaluation without extension; empty if the experiment is about training itself.
    pub evaluation_file: String,
    /// The paper's number, if it has one.
    pub paper: Option<PaperNumber>,
    /// The number of seeds in the experiment file.
    pub n_seeds: usize,
    /// Its runs, as indices in the list of all runs.
    pub runs: Vec<usize>,
}

/// The number of seeds behind every number of the paper.
const PAPER_SEEDS: f64 = 3.0;

/// A number that the paper reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperNumber {
    /// The mean over seeds.
    pub mean: f64,
    /// The standard deviation across seeds, if the paper gives it.
    pub std: Option<f64>,
    /// Whether it is comparable with our score in the same cell.
    pub is_comparable: bool,
}

impl PaperNumber {
    /// Our mean minus this number, in standard errors of the difference. A standard deviation with divisor n over n seeds gives a
    /// standard error of std / √(n − 1). `None` if the numbers are not comparable, or without both standard deviations.
    pub(crate) fn difference(self, ours: &SeedStatistics) -> Option<f64> {
        let variance =
            ours.std?.powi(2) / (ours.n_seeds() - 1) as f64 + self.std?.powi(2) / (PAPER_SEEDS - 1.0);
        (self.is_comparable && variance > 0.0).then(|| (ours.mean - self.mean) / variance.sqrt())
    }
}

/// Statistics over the seeds of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeedStatistics {
    /// For each seed, the index of its run, its score, and the standard error of the score over encounters.
    pub seeds: Vec<(usize, f64, Option<f64>)>,
    /// The mean over seeds.
    pub mean: f64,
    /// The standard deviation across seeds with divisor n, as in the paper; `None` with one seed.
    pub std: Option<f64>,
    /// The interquartile mean over seeds with its bootstrap 95 % interval; `None` with one seed.
    pub iqm: Option<Interval>,
    /// The mean share of the range from random (0) to oracle (1) on the same peers, and the standard deviation across seeds.
    pub share: Option<(f64, Option<f64>)>,
    /// The mean normalised score: 0 is the score of static, 1 that of oracle, on the same peers.
    pub normalised: Option<f64>,
    /// The smallest scale of the runs; 1 if all have the full budget.
    pub scale: f64,
}

impl ResultCell {
    /// The records of its evaluation, with the indices of their runs.
    pub(crate) fn records<'a>(
        &'a self,
        runs: &'a [RunEntry],
    ) -> impl Iterator<Item = (usize, &'a AdaptRecord)> {
        self.runs.iter().filter_map(|run| Some((*run, runs[*run].evaluations.get(&self.evaluation_file)?)))
    }

    /// The statistics of its runs; `None` if none of them has the record.
    pub fn statistics(&self, runs: &[RunEntry]) -> Option<SeedStatistics> {
        let mut seeds = Vec::new();
        if self.evaluation_file.is_empty() {
            seeds.extend(
                self.runs.iter().filter_map(|run| Some((*run, end_of_training(&runs[*run].train)?, None))),
            );
        }
        let (mut shares, mut normalised) = (Vec::new(), Vec::new());
        let of_runs = self.runs.iter().map(|run| runs[*run].scale);
        let scale = of_runs.fold(1.0, f64::min);
        if self.is_reference {
            // The peers are the same in every run, and a reference agent has no training seeds: the longest evaluation counts.
            let (run, record) = self.longest_record(runs)?;
            let reference = record.references.get(&self.method)?;
            seeds.push((run, reference.mean, reference.standard_error));
            shares.extend(record.share(reference.mean));
        } else {
            for (run, record) in self.records(runs) {
                seeds.push((run, record.mean, record.standard_error));
                shares.extend(record.share(record.mean));
                normalised.extend(record.normalised);
            }
        }
        if seeds.is_empty() {
            return None;
        }
        let values: Vec<f64> = seeds.iter().map(|(_, value, _)| *value).collect();
        let spread = |values: &[f64]| (values.len() > 1).then(|| population_std(values));
        Some(SeedStatistics {
            mean: mean(&values),
            std: spread(&values),
            iqm: (values.len() > 1)
                .then(|| interquartile_mean_95(std::slice::from_ref(&values), RESAMPLES, BOOTSTRAP_SEED)),
            share: (shares.len() == values.len()).then(|| (mean(&shares), spread(&shares))),
            normalised: (!normalised.is_empty()).then(|| mean(&normalised)),
            scale,
            seeds,
        })
    }

    /// The record with the most encounters, with the index of its run.
    pub(crate) fn longest_record<'a>(&'a self, runs: &'a [RunEntry]) -> Option<(usize, &'a AdaptRecord)> {
        self.records(runs).reduce(|one, other| if other.1.passes > one.1.passes { other } else { one })
    }

    /// The name of its row: method, variant, and the preset if it differs from `usual_preset`.
    pub(crate) fn row_name(&self, usual_preset: &str) -> String {
        let mut name = if self.is_reference { self.method.clone() } else { self.method.to_uppercase() };
        if !self.variant.is_empty() {
            name.push_str(&format!(", {}", self.variant));
        }
        if self.preset != usual_preset && !self.is_reference {
            name.push_str(&format!(", preset {}", self.preset));
        }
        name
    }
}

/// The mean success rate in the last tenth of training; the mean return in games without success.
fn end_of_training(train: &TrainRecord) -> Option<f64> {
    let curve =
        ["charts/success", "charts/episodic_return"].iter().find_map(|name| train.curves.get(*name))?;
    let last = &curve[curve.len() - curve.len().div_ceil(10)..];
    (!last.is_empty()).then(|| mean(&last.iter().map(|(_, value)| *value).collect::<Vec<_>>()))
}

impl SeedStatistics {
    /// The number of seeds.
    pub(crate) fn n_seeds(&self) -> usize {
        self.seeds.len()
    }

    /// The lowest score of a seed; `None` with one seed.
    pub(crate) fn worst_seed(&self) -> Option<f64> {
        let scores = self.seeds.iter().map(|(_, score, _)| *score);
        (self.n_seeds() > 1).then(|| scores.fold(f64::INFINITY, f64::min))
    }

    /// The number of decimals that the standard deviation allows, or with one seed the standard error.
    pub(crate) fn decimals(&self) -> usize {
        number::decimals_of_two_figures(self.std.filter(|std| *std > 0.0).or(self.seeds[0].2))
    }

    /// Whether any of the runs is scaled.
    pub(crate) fn is_scaled(&self) -> bool {
        self.scale != 1.0
    }

    /// Whether the result can be marked as the best: enough seeds, all with the full budget.
    pub(crate) fn has_enough_seeds(&self) -> bool {
        self.n_seeds() >= MIN_SEEDS_FOR_BEST && !self.is_scaled()
    }
}

/// The cells of an experiment in rows and columns.
#[derive(Clone, Debug)]
pub(crate) struct ResultTable<'a> {
    /// The heading of the column with the row names.
    pub corner: &'static str,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows: a name, and a cell for each column or `None`.
    pub rows: Vec<(String, Vec<Option<PlacedCell<'a>>>)>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct PlacedCell<'a> {
    /// The cell.
    pub cell: &'a ResultCell,
    /// Its statistics, if it has runs with the record.
    pub statistics: Option<SeedStatistics>,
    /// Whether it has the highest mean of its column; only set if at least two cells have enough seeds.
    pub is_best: bool,
    /// The oracle's score, if it differs from that under the experiment's preset: the rules are others, and only shares are comparable.
    pub other_oracle: Option<f64>,
    /// The paper's number as a share of the range from random to oracle, if it is comparable.
    pub paper_share: Option<f64>,
}

impl ExperimentResult {
    /// Ids and titles of the games of its cells, in the order of the cells.
    pub(crate) fn games(&self) -> Vec<(String, String)> {
        distinct(self.cells.iter().map(|cell| (cell.game.clone(), cell.game_title.clone())))
    }

    /// The cells as a table.
    pub(crate) fn table(&self, runs: &[RunEntry]) -> ResultTable<'_> {
        let usual = &self.preset;
        let several = |value: fn(&ResultCell) -> &str| {
            let mut all = self.cells.iter().map(value);
            let first = all.next();
            all.any(|other| Some(other) != first)
        };
        let (games, evaluations) = (several(|cell| &cell.game), several(|cell| &cell.evaluation));
        let column = |cell: &ResultCell| match (games, evaluations) {
            (true, true) => format!("{}, {}", cell.game_title, cell.evaluation),
            (false, true) => cell.evaluation.clone(),
            _ => cell.game_title.clone(),
        };
        let (corner, key): (&'static str, Key<'_>) = match self.view {
            View::HorizonHeatmap => (
                "episodes in the test",
                Box::new(|cell: &ResultCell| (cell.evaluation.clone(), cell.row_name(usual))),
            ),
            View::Pools => (
                "game",
                Box::new(|cell: &ResultCell| {
                    (format!("{}: {}", cell.game_title, cell.row_name(usual)), cell.evaluation.clone())
                }),
            ),
            _ => ("method", Box::new(|cell: &ResultCell| (cell.row_name(usual), column(cell)))),
        };
        let mut table = ResultTable { corner, columns: Vec::new(), rows: Vec::new() };
        for cell in &self.cells {
            let (row, column) = key(cell);
            let across = index_of(&mut table.columns, &column);
            let down = table.rows.iter().position(|(name, _)| *name == row).unwrap_or_else(|| {
                table.rows.push((row, Vec::new()));
                table.rows.len() - 1
            });
            let cells = &mut table.rows[down].1;
            cells.resize_with(cells.len().max(across + 1), || None);
            cells[across] = Some(PlacedCell {
                cell,
                statistics: cell.statistics(runs),
                is_best: false,
                other_oracle: self.other_oracle(cell, runs),
                paper_share: cell
                    .paper
                    .filter(|paper| paper.is_comparable)
                    .and_then(|paper| self.usual_record(cell, runs)?.share(paper.mean)),
            });
        }
        let n_columns = table.columns.len();
        table.rows.iter_mut().for_each(|(_, cells)| cells.resize_with(n_columns, || None));
        table.mark_best(usual);
        table
    }

    /// A record with the experiment's preset and the game, evaluation and variant of a cell.
    fn usual_record<'a>(&'a self, cell: &ResultCell, runs: &'a [RunEntry]) -> Option<&'a AdaptRecord> {
        let place = |cell: &ResultCell| [cell.game.clone(), cell.evaluation.clone(), cell.variant.clone()];
        let is_same = |other: &&ResultCell| other.preset == self.preset && place(other) == place(cell);
        let records = self.cells.iter().filter(is_same).filter_map(|other| other.longest_record(runs));
        records.map(|(_, record)| record).next()
    }

    /// The oracle's score in a cell of another preset, if the cell of the experiment's preset has other reference scores or none.
    pub(crate) fn other_oracle(&self, cell: &ResultCell, runs: &[RunEntry]) -> Option<f64> {
        let (_, record) = cell.longest_record(runs).filter(|_| cell.preset != self.preset)?;
        let usual = self.usual_record(cell, runs);
        let is_other = usual.is_none_or(|usual| record.other_scale_than(usual).is_some());
        Some(record.references.get("oracle")?.mean).filter(|_| is_other)
    }

    /// Counts the cells with results under the experiment's preset. Reference agents do not count.
    pub(crate) fn coverage(&self, runs: &[RunEntry]) -> Coverage {
        let mut coverage = Coverage::default();
        for cell in self.cells.iter().filter(|cell| !cell.is_reference && cell.preset == self.preset) {
            let n_seeds = cell.statistics(runs).map_or(0, |statistics| statistics.n_seeds());
            coverage.n_cells += 1;
            coverage.n_started += usize::from(n_seeds > 0);
            coverage.n_complete += usize::from(n_seeds >= cell.n_seeds);
        }
        coverage
    }
}

/// The number of cells of an experiment that have results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// All cells.
    pub n_cells: usize,
    /// Cells with at least one seed.
    pub n_started: usize,
    /// Cells with all seeds.
    pub n_complete: usize,
}

type Key<'a> = Box<dyn Fn(&ResultCell) -> (String, String) + 'a>;

/// The index of a name, which is added if it is missing.
fn index_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

impl ResultTable<'_> {
    fn mark_best(&mut self, usual_preset: &str) {
        for column in 0..self.columns.len() {
            let comparable_mean = |cells: &[Option<PlacedCell<'_>>]| {
                // The keys of other presets may have been chosen by their scores on these peers.
                let is_candidate = |cell: &ResultCell| !cell.is_reference && cell.preset == usual_preset;
                let found = cells[column].as_ref().filter(|found| is_candidate(found.cell))?;
                found
                    .statistics
                    .as_ref()
                    .filter(|statistics| statistics.has_enough_seeds())
                    .map(|statistics| statistics.mean)
            };
            let means: Vec<Option<f64>> = self.rows.iter().map(|(_, cells)| comparable_mean(cells)).collect();
            if means.iter().flatten().count() < 2 {
                continue;
            }
            let best = means.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
            for ((_, cells), mean) in self.rows.iter_mut().zip(&means) {
                if let (Some(found), Some(mean)) = (&mut cells[column], mean) {
                    found.is_best = *mean == best;
                }
            }
        }
    }

    /// The smallest scale of the scaled results; `None` if no result is scaled.
    pub(crate) fn smallest_scale(&self) -> Option<f64> {
        let all = self.rows.iter().flat_map(|(_, cells)| cells).flatten();
        let scales =
            all.filter_map(|found| found.statistics.as_ref()).filter(|statistics| statistics.is_scaled());
        scales.map(|statistics| statistics.scale).min_by(f64::total_cmp)
    }
}

/// The elements without duplicates, in the order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::{PaperNumber, SeedStatistics};

    #[test]
    fn differences_from_the_paper_are_in_standard_errors() {
        let ours = |mean, std, n| SeedStatistics {
            seeds: vec![(0, mean, None); n],
            mean,
            std,
            scale: 1.0,
            ..SeedStatistics::default()
        };
        let paper = PaperNumber { mean: 0.027, std: Some(0.008), is_comparable: true };
        // Standard errors 0.024 / √2 and 0.008 / √2.
        let found = paper.difference(&ours(0.001, Some(0.024), 3)).expect("two deviations");
        assert!((found - -0.026 / (0.0002880_f64 + 0.000032).sqrt()).abs() < 1e-9, "{found}");
        // With nine seeds, ours is 0.024 / √8.
        let found = paper.difference(&ours(0.001, Some(0.024), 9)).expect("two deviations");
        assert!((found - -0.026 / (0.000072_f64 + 0.000032).sqrt()).abs() < 1e-9, "{found}");
        assert_eq!(paper.difference(&ours(0.001, None, 1)), None);
        assert_eq!(PaperNumber { std: None, ..paper }.difference(&ours(0.001, Some(0.024), 3)), None);
        assert_eq!(
            PaperNumber { is_comparable: false, ..paper }.difference(&ours(0.001, Some(0.024), 3)),
            None
        );
    }
}
