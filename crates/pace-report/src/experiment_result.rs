//! An experiment with what is known of it: its cells, the runs behind each, and the paper's number beside.
//!
//! Which runs belong to a cell is decided elsewhere; here they are counted, averaged and set beside each other. A cell without
//! runs stays empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::embedding::EmbeddingRecord;
use crate::record::{AdaptRecord, TrainRecord};
use crate::stats::{Interval, interquartile_mean_95, mean, population_std};

/// Nothing is called best on fewer seeds than this.
pub const MIN_SEEDS_FOR_BEST: usize = 3;

/// Resamples of every bootstrap, and its seed.
const RESAMPLES: usize = 2000;
const BOOTSTRAP_SEED: u64 = 1;

/// A run as a report knows it.
#[derive(Clone, Debug)]
pub struct RunEntry {
    /// The name of its folder.
    pub name: String,
    /// By what it is recognised: a hash of all its keys.
    pub id: String,
    /// The keys that are not those of its preset, in words; empty if there are none.
    pub changes: String,
    /// What its budget was multiplied with; 1 in earnest.
    pub scale: f64,
    /// Steps of the game in training.
    pub steps: u64,
    /// How it ended: `finished`, `stopped`, …
    pub status: String,
    /// The command that made it.
    pub command: String,
    /// The processor it ran on.
    pub processor: String,
    /// Its curves, seed, commit and keys.
    pub train: TrainRecord,
    /// Its evaluations by the names of their files.
    pub evaluations: BTreeMap<String, AdaptRecord>,
    /// Its latents in two dimensions, by evaluation.
    pub embeddings: BTreeMap<String, EmbeddingRecord>,
}

/// A table or figure of the paper, and what we have for it.
#[derive(Clone, Debug)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The place in the paper.
    pub reproduces: String,
    /// What the paper says about it in words.
    pub claim: Option<String>,
    /// How it is shown.
    pub view: View,
    /// Scales on which the paper measured, where they are not those of our cells.
    pub scales: Vec<PaperScale>,
    /// Its cells, in the order of its file.
    pub cells: Vec<ResultCell>,
}

/// A scale of the paper's numbers that is not the scale of some of our cells: such numbers are not comparable with ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaperScale {
    /// A few words to stand beside a number.
    pub label: String,
    /// The difference between the scales, as a sentence.
    pub note: String,
}

/// How an experiment is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// Methods down, games across.
    MainTable,
    /// The score as an encounter goes on, game by game.
    AdaptationCurves,
    /// How often hands of Kuhn Poker come to a showdown as an encounter goes on.
    Showdown,
    /// The score when other peers take over.
    SuddenChange,
    /// What parts of PACE are worth.
    Ablation,
    /// Success and visits to the informative place as training goes on.
    TrainingCurves,
    /// The same for several discounts.
    Discount,
    /// The same for several encoders.
    Encoder,
    /// N_ctx of training across, N_eps of the test down.
    HorizonHeatmap,
    /// More peers, and what was learned with them among fewer.
    PeerCount,
    /// The score by the number of dishes that training peers want.
    PoolDiversity,
    /// Latents in two dimensions.
    Tsne,
    /// The score with peers that err, pause and change their ways as people do.
    HumanLike,
    /// One row per run and evaluation.
    Plain,
}

/// One number of an experiment.
#[derive(Clone, Debug)]
pub struct ResultCell {
    /// The game's id.
    pub game: String,
    /// The game as people call it.
    pub game_title: String,
    /// The method's id; the name of a scripted ego for a cell of the paper that is one.
    pub method: String,
    /// Whether it is a scripted ego, whose number every record of the others has.
    pub is_reference: bool,
    /// The preset that its runs start from.
    pub preset: String,
    /// The variant's name; empty for the plain one.
    pub variant: String,
    /// The evaluation's name in the experiment.
    pub evaluation: String,
    /// The name of its file; empty where the experiment is about training itself.
    pub evaluation_file: String,
    /// The paper's number.
    pub paper: Option<PaperNumber>,
    /// How many seeds the experiment asks for.
    pub n_seeds: usize,
    /// The runs that are there, as places in the list of all runs.
    pub runs: Vec<usize>,
}

/// A number that the paper reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperNumber {
    /// The mean over seeds.
    pub mean: f64,
    /// The standard deviation over seeds, where it is given.
    pub std: Option<f64>,
    /// The index in [`ExperimentResult::scales`] of its scale, where that is not the scale of the cell; nothing if both are comparable.
    pub other_scale: Option<usize>,
}

impl PaperNumber {
    /// Whether it may be compared with our number in the same cell.
    pub fn is_comparable(self) -> bool {
        self.other_scale.is_none()
    }
}

/// What the runs of a cell came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedStatistics {
    /// The score of each seed, with the place of its run and its standard error over encounters.
    pub seeds: Vec<(usize, f64, Option<f64>)>,
    /// The mean over seeds.
    pub mean: f64,
    /// The standard deviation over seeds, as the paper has it (divisor n); nothing with one seed.
    pub std: Option<f64>,
    /// The interquartile mean over seeds with the 95 % interval of its bootstrap; nothing with one seed.
    pub iqm: Option<Interval>,
    /// The mean score between static (0) and oracle (1) on the same peers.
    pub normalised: Option<f64>,
    /// The smallest scale among the runs; 1 if all are in earnest.
    pub scale: f64,
}

impl ResultCell {
    /// The records of its evaluation, with the places of their runs.
    pub fn records<'a>(&'a self, runs: &'a [RunEntry]) -> impl Iterator<Item = (usize, &'a AdaptRecord)> {
        self.runs.iter().filter_map(|run| Some((*run, runs[*run].evaluations.get(&self.evaluation_file)?)))
    }

    /// What its runs came to; nothing if none of them has the record.
    pub fn statistics(&self, runs: &[RunEntry]) -> Option<SeedStatistics> {
        let mut seeds = Vec::new();
        if self.evaluation_file.is_empty() {
            seeds.extend(
                self.runs.iter().filter_map(|run| Some((*run, end_of_training(&runs[*run].train)?, None))),
            );
        }
        let mut normalised = Vec::new();
        let of_runs = self.runs.iter().map(|run| runs[*run].scale);
        let scale = of_runs.fold(1.0, f64::min);
        for (run, record) in self.records(runs) {
            if self.is_reference {
                let reference = record.references.get(&self.method)?;
                seeds.push((run, reference.mean, reference.standard_error));
            } else {
                seeds.push((run, record.mean, record.standard_error));
                normalised.extend(record.normalised);
            }
            if self.is_reference {
                // Every run has met the same peers; a scripted ego has no seeds of training.
                break;
            }
        }
        if seeds.is_empty() {
            return None;
        }
        let values: Vec<f64> = seeds.iter().map(|(_, value, _)| *value).collect();
        let is_spread = values.len() > 1;
        Some(SeedStatistics {
            mean: mean(&values),
            std: is_spread.then(|| population_std(&values)),
            iqm: is_spread
                .then(|| interquartile_mean_95(std::slice::from_ref(&values), RESAMPLES, BOOTSTRAP_SEED)),
            normalised: (!normalised.is_empty()).then(|| mean(&normalised)),
            scale,
            seeds,
        })
    }

    /// What its row is called: method, variant, and preset where that is not `usual`.
    pub fn row_name(&self, usual_preset: &str) -> String {
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

/// Success, or the return where there is none, in the last tenth of training.
fn end_of_training(train: &TrainRecord) -> Option<f64> {
    let curve =
        ["charts/success", "charts/episodic_return"].iter().find_map(|name| train.curves.get(*name))?;
    let last = &curve[curve.len() - curve.len().div_ceil(10)..];
    (!last.is_empty()).then(|| mean(&last.iter().map(|(_, value)| *value).collect::<Vec<_>>()))
}

impl SeedStatistics {
    /// How many seeds there are.
    pub fn n_seeds(&self) -> usize {
        self.seeds.len()
    }

    /// Whether any of it is a rehearsal.
    pub fn is_scaled(&self) -> bool {
        self.scale != 1.0
    }

    /// Whether it may be compared with others.
    pub fn has_enough_seeds(&self) -> bool {
        self.n_seeds() >= MIN_SEEDS_FOR_BEST && !self.is_scaled()
    }
}

/// Rows and columns of an experiment's cells.
#[derive(Clone, Debug)]
pub struct ResultTable<'a> {
    /// What the rows are.
    pub corner: &'static str,
    /// The columns.
    pub columns: Vec<String>,
    /// The rows: a name, and a cell for each column where there is one.
    pub rows: Vec<(String, Vec<Option<PlacedCell<'a>>>)>,
}

/// A cell in its place.
#[derive(Clone, Debug)]
pub struct PlacedCell<'a> {
    /// The cell.
    pub cell: &'a ResultCell,
    /// Its number, where there is one.
    pub statistics: Option<SeedStatistics>,
    /// Whether no other of its column is higher, among several that may be judged.
    pub is_best: bool,
}

impl ExperimentResult {
    /// The preset that the experiment asks for: that of its first cell.
    pub fn usual_preset(&self) -> &str {
        self.cells.first().map_or("", |cell| &cell.preset)
    }

    /// The cells as a table.
    pub fn table(&self, runs: &[RunEntry]) -> ResultTable<'_> {
        let usual = self.usual_preset().to_owned();
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
                "episodes of the test",
                Box::new(|cell: &ResultCell| (cell.evaluation.clone(), cell.row_name(&usual))),
            ),
            _ => ("method", Box::new(|cell: &ResultCell| (cell.row_name(&usual), column(cell)))),
        };
        let mut table = ResultTable { corner, columns: Vec::new(), rows: Vec::new() };
        for cell in &self.cells {
            let (row, column) = key(cell);
            let across = place_of(&mut table.columns, &column);
            let down = table.rows.iter().position(|(name, _)| *name == row).unwrap_or_else(|| {
                table.rows.push((row, Vec::new()));
                table.rows.len() - 1
            });
            let cells = &mut table.rows[down].1;
            cells.resize_with(cells.len().max(across + 1), || None);
            cells[across] = Some(PlacedCell { cell, statistics: cell.statistics(runs), is_best: false });
        }
        let n_columns = table.columns.len();
        table.rows.iter_mut().for_each(|(_, cells)| cells.resize_with(n_columns, || None));
        table.mark_best(&usual);
        table
    }

    /// The label of the scale of a number, where it is not comparable with the cell beside it.
    pub fn scale_label(&self, paper: PaperNumber) -> Option<&str> {
        Some(&self.scales.get(paper.other_scale?)?.label)
    }

    /// The scales of its cells' numbers that are not comparable with ours.
    pub fn other_scales(&self) -> Vec<&PaperScale> {
        let is_used = |place: usize| {
            self.cells.iter().any(|cell| cell.paper.is_some_and(|paper| paper.other_scale == Some(place)))
        };
        self.scales.iter().enumerate().filter(|(place, _)| is_used(*place)).map(|(_, scale)| scale).collect()
    }

    /// How many cells have a number, how many have all their seeds, and how many there are; scripted egos are not counted.
    pub fn coverage(&self, runs: &[RunEntry]) -> Coverage {
        let mut coverage = Coverage::default();
        for cell in self.cells.iter().filter(|cell| !cell.is_reference) {
            let n_seeds = cell.statistics(runs).map_or(0, |statistics| statistics.n_seeds());
            coverage.n_cells += 1;
            coverage.n_begun += usize::from(n_seeds > 0);
            coverage.n_whole += usize::from(n_seeds >= cell.n_seeds);
        }
        coverage
    }
}

/// How much of an experiment there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Cells.
    pub n_cells: usize,
    /// Cells with a number.
    pub n_begun: usize,
    /// Cells with as many seeds as were asked for.
    pub n_whole: usize,
}

type Key<'a> = Box<dyn Fn(&ResultCell) -> (String, String) + 'a>;

fn place_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

impl ResultTable<'_> {
    fn mark_best(&mut self, usual_preset: &str) {
        for column in 0..self.columns.len() {
            let judged = |cells: &[Option<PlacedCell<'_>>]| {
                // Other presets may have been chosen with these very peers in view.
                let is_rival = |cell: &ResultCell| !cell.is_reference && cell.preset == usual_preset;
                let found = cells[column].as_ref().filter(|found| is_rival(found.cell))?;
                found
                    .statistics
                    .as_ref()
                    .filter(|statistics| statistics.has_enough_seeds())
                    .map(|statistics| statistics.mean)
            };
            let means: Vec<Option<f64>> = self.rows.iter().map(|(_, cells)| judged(cells)).collect();
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

    /// Whether any number of it is a rehearsal's; then the smallest scale.
    pub fn smallest_scale(&self) -> Option<f64> {
        let all = self.rows.iter().flat_map(|(_, cells)| cells).flatten();
        let scales =
            all.filter_map(|found| found.statistics.as_ref()).filter(|statistics| statistics.is_scaled());
        scales.map(|statistics| statistics.scale).min_by(f64::total_cmp)
    }
}

/// Over all games of a method: the interquartile mean of its normalised scores, with a bootstrap that draws within each game.
pub fn over_games(cells: &[&ResultCell], runs: &[RunEntry]) -> Option<Interval> {
    let strata: Vec<Vec<f64>> = cells
        .iter()
        .map(|cell| cell.records(runs).filter_map(|(_, record)| record.normalised).collect())
        .collect();
    let is_whole =
        strata.len() > 1 && strata.iter().all(|stratum: &Vec<f64>| stratum.len() >= MIN_SEEDS_FOR_BEST);
    is_whole.then(|| interquartile_mean_95(&strata, RESAMPLES, BOOTSTRAP_SEED))
}
