//! Scores over several columns of a table: interquartile mean, probability of improvement and performance profile of the shares of the range
//! from random (0) to oracle (1), each with the interval of a bootstrap that is stratified by column.

use crate::experiment_result::{
    BOOTSTRAP_SEED, ExperimentResult, MIN_SEEDS_FOR_BEST, PlacedCell, RESAMPLES, ResultTable, RunEntry,
    SeedStatistics, View,
};
use crate::stats::{Interval, interquartile_mean_95, performance_profile_95, probability_of_improvement_95};

/// The rows of a table with enough seeds in the same columns.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, in the order of the table.
    pub rows: Vec<AggregateRow>,
}

/// A row, over all columns.
#[derive(Clone, Debug)]
pub(crate) struct AggregateRow {
    /// The name of the row.
    pub name: String,
    /// The interquartile mean of the shares.
    pub iqm: Interval,
    /// The probability that a run of the first row has a higher share than a run of this one; `None` in the first row.
    pub improvement: Option<Interval>,
    /// For each column, the shares of its seeds.
    shares: Vec<Vec<f64>>,
}

/// For each column of a row, the shares of its seeds; `None` if there are too few seeds.
type SharesByColumn = Vec<Option<Vec<f64>>>;

impl Aggregate {
    /// Aggregates a table whose rows are methods; `None` if fewer than two rows have enough seeds. The columns are those in which all
    /// such rows of the experiment's preset have enough seeds; rows of other presets are added if they have them too.
    pub(crate) fn of(
        experiment: &ExperimentResult,
        table: &ResultTable<'_>,
        runs: &[RunEntry],
    ) -> Option<Aggregate> {
        // Rows of the first two are not methods; the others show runs of the main table.
        if matches!(
            experiment.view,
            View::HorizonHeatmap | View::Pools | View::AdaptationCurves | View::Showdown
        ) {
            return None;
        }
        let all: Vec<(&String, bool, SharesByColumn)> = table
            .rows
            .iter()
            .map(|(name, cells)| {
                let is_own = cells.iter().flatten().any(|found| found.cell.preset == experiment.preset);
                let shares = |cell: &Option<PlacedCell<'_>>| shares_of_seeds(cell.as_ref()?, runs);
                (name, is_own, cells.iter().map(shares).collect::<SharesByColumn>())
            })
            .filter(|(.., columns)| columns.iter().any(Option::is_some))
            .collect();
        let is_common =
            |column: &usize| all.iter().all(|(_, is_own, columns)| !is_own || columns[*column].is_some());
        let common: Vec<usize> = (0..table.columns.len()).filter(is_common).collect();
        let complete = |(name, _, columns): &(&String, bool, SharesByColumn)| {
            let shares: Option<Vec<Vec<f64>>> =
                common.iter().map(|column| columns[*column].clone()).collect();
            Some(((*name).clone(), shares?))
        };
        let rows: Vec<(String, Vec<Vec<f64>>)> = all.iter().filter_map(complete).collect();
        if common.is_empty() || rows.len() < 2 {
            return None;
        }
        let first = rows[0].1.clone();
        let row = |(place, (name, shares)): (usize, (String, Vec<Vec<f64>>))| AggregateRow {
            name,
            iqm: interquartile_mean_95(&shares, RESAMPLES, BOOTSTRAP_SEED),
            improvement: (place > 0)
                .then(|| probability_of_improvement_95(&first, &shares, RESAMPLES, BOOTSTRAP_SEED)),
            shares,
        };
        Some(Aggregate {
            columns: common.into_iter().map(|column| table.columns[column].clone()).collect(),
            rows: rows.into_iter().enumerate().map(row).collect(),
        })
    }

    /// The performance profiles of all rows: thresholds, and the share of runs above each. The thresholds cover all shares, in steps of
    /// two per cent.
    pub(crate) fn profiles(&self) -> Vec<Vec<(f64, Interval)>> {
        const STEPS: f64 = 50.0;
        let all = || self.rows.iter().flat_map(|row| row.shares.iter().flatten());
        let low = all().fold(0.0, |low: f64, share| low.min(*share));
        let high = all().fold(0.0, |high: f64, share| high.max(*share));
        let steps = (low * STEPS).floor() as i64..=(high * STEPS).ceil() as i64;
        let thresholds: Vec<f64> = steps.map(|step| step as f64 / STEPS).collect();
        let profile = |row: &AggregateRow| {
            let shares = performance_profile_95(&row.shares, &thresholds, RESAMPLES, BOOTSTRAP_SEED);
            thresholds.iter().copied().zip(shares).collect()
        };
        self.rows.iter().map(profile).collect()
    }
}

/// The shares of the seeds of a cell; `None` if there are too few seeds.
fn shares_of_seeds(found: &PlacedCell<'_>, runs: &[RunEntry]) -> Option<Vec<f64>> {
    let has_enough = found.statistics.as_ref().is_some_and(SeedStatistics::has_enough_seeds);
    if found.cell.is_reference || !has_enough {
        return None;
    }
    let shares: Option<Vec<f64>> =
        found.cell.records(runs).map(|(_, record)| record.share(record.mean)).collect();
    shares.filter(|shares| shares.len() >= MIN_SEEDS_FOR_BEST)
}
