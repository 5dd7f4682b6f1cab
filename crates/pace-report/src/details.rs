//! Details of an experiment's scores: the first and the last block of an encounter, shares of the reference agents' scores, the worst seed
//! and peers, the peers that settings were chosen on, and the cost; and every peer with a row of its own.
//!
//! Both kinds of tables are texts, which `markdown` and `page` write.

use crate::experiment_result::{ExperimentResult, ResultCell, RunEntry, SeedStatistics, distinct};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord};
use crate::stats::{Interval, mean};

/// A table as text.
#[derive(Clone, Debug)]
pub(crate) struct DetailTable {
    /// The game, the evaluation, or both.
    pub title: String,
    /// The headings of its columns.
    pub headings: Vec<String>,
    /// Its rows; empty texts stand for missing values.
    pub rows: Vec<Vec<String>>,
    /// The number of columns at the end whose cells are words, not numbers.
    pub n_word_columns: usize,
    /// The runs behind it, each with the file name of the evaluation.
    pub sources: Vec<(usize, String)>,
}

/// The share of peers in a mean over the worst of them.
const WORST_SHARE: f64 = 0.1;

/// One table for each game and evaluation with records; a row for each of their cells.
pub(crate) fn detail_tables(experiment: &ExperimentResult, runs: &[RunEntry]) -> Vec<DetailTable> {
    let table = |(title, cells): (String, Vec<&ResultCell>)| {
        let (_, first) = cells.iter().find_map(|cell| cell.longest_record(runs))?;
        let block =
            |block: Option<&BlockRecord>| block.map_or(String::new(), |block| first.block_name(block));
        let headings = [
            "method".to_owned(),
            "seeds".to_owned(),
            "score".to_owned(),
            block(first.blocks.first()),
            block(first.blocks.last()),
            "random to oracle".to_owned(),
            "static to oracle".to_owned(),
            "static to bayes".to_owned(),
            "IQM over seeds, 95 % interval".to_owned(),
            "worst seed".to_owned(),
            "worst tenth of peers".to_owned(),
            "chosen on".to_owned(),
            "steps".to_owned(),
            "training time".to_owned(),
            "threads".to_owned(),
            "processor".to_owned(),
        ];
        let rows = cells.iter().filter_map(|cell| {
            let mut row = vec![cell.row_name(&experiment.preset)];
            row.extend(detail_row(cell, &cell.statistics(runs)?, runs));
            row.resize(headings.len(), String::new());
            Some(row)
        });
        Some(DetailTable {
            title,
            headings: headings.to_vec(),
            rows: rows.collect(),
            n_word_columns: 1,
            sources: sources(&cells, runs),
        })
    };
    groups(experiment).into_iter().filter_map(table).collect()
}

/// One table for each game and evaluation with records of single peers: a row per peer, and for each method its mean score over seeds
/// with the worst seed's score.
pub(crate) fn peer_tables(experiment: &ExperimentResult, runs: &[RunEntry]) -> Vec<DetailTable> {
    let table = |(title, cells): (String, Vec<&ResultCell>)| {
        let cells: Vec<&ResultCell> = cells.into_iter().filter(|cell| !cell.is_reference).collect();
        let descriptions = |record: &AdaptRecord| -> Vec<String> {
            record.peers.iter().map(|peer| peer.description.clone()).collect()
        };
        let (_, first) = cells.iter().find_map(|cell| cell.longest_record(runs))?;
        let names = descriptions(first);
        let is_same = |cell: &&ResultCell| {
            let mut records = cell.records(runs).peekable();
            records.peek().is_some() && records.all(|(_, record)| descriptions(record) == names)
        };
        let cells: Vec<&ResultCell> = cells.into_iter().filter(is_same).collect();
        let decimals = number::decimals_of_two_figures(first.peers.first()?.standard_error);
        let mut headings = vec!["peer".to_owned(), "oracle".to_owned()];
        headings.extend(cells.iter().map(|cell| cell.row_name(&experiment.preset)));
        let row = |(place, description): (usize, &String)| {
            let oracle = first.peers[place].oracle;
            let of_cell = |cell: &&ResultCell| {
                let scores: Vec<f64> =
                    cell.records(runs).map(|(_, record)| record.peers[place].mean).collect();
                let worst = (scores.len() > 1).then(|| scores.iter().copied().fold(f64::INFINITY, f64::min));
                let worst =
                    worst.map_or(String::new(), |worst| format!(" ({})", number::typeset(worst, decimals)));
                format!("{}{worst}", number::typeset(mean(&scores), decimals))
            };
            let mut row = vec![format!("{}: {description}", first.peers[place].index)];
            row.push(oracle.map_or(String::new(), |oracle| number::typeset(oracle, decimals)));
            row.extend(cells.iter().map(of_cell));
            row
        };
        let rows = names.iter().enumerate().map(row).collect();
        Some(DetailTable { title, headings, rows, n_word_columns: 0, sources: sources(&cells, runs) })
    };
    groups(experiment).into_iter().filter_map(table).collect()
}

/// The cells of each game and evaluation, with a title.
fn groups(experiment: &ExperimentResult) -> Vec<(String, Vec<&ResultCell>)> {
    let key = |cell: &ResultCell| (cell.game_title.clone(), cell.evaluation.clone());
    let keys = distinct(experiment.cells.iter().map(key));
    let group = |wanted: (String, String)| {
        let cells = experiment.cells.iter().filter(|cell| key(cell) == wanted).collect();
        (format!("{}, {}", wanted.0, wanted.1), cells)
    };
    keys.into_iter().map(group).collect()
}

fn sources(cells: &[&ResultCell], runs: &[RunEntry]) -> Vec<(usize, String)> {
    let of_cell = |cell: &&ResultCell| {
        let file = cell.evaluation_file.clone();
        cell.records(runs).map(|(run, _)| (run, file.clone())).collect::<Vec<_>>()
    };
    cells.iter().filter(|cell| !cell.is_reference).flat_map(of_cell).collect()
}

fn detail_row(cell: &ResultCell, statistics: &SeedStatistics, runs: &[RunEntry]) -> Vec<String> {
    let decimals = statistics.decimals();
    let typeset = |value: f64| number::typeset(value, decimals);
    let text = |value: Option<f64>| value.map_or(String::new(), typeset);
    let share = |value: Option<f64>| value.map_or(String::new(), number::percent);
    let mut row = Vec::new();
    if cell.is_reference {
        let Some((_, record)) = cell.longest_record(runs) else { return row };
        let blocks = record.references.get(&cell.method).map_or(&[][..], |reference| &reference.blocks);
        let of = |from: &str, to: &str| {
            let score = |name: &str| Some(record.references.get(name)?.mean);
            crate::stats::normalised(statistics.mean, score(from)?, score(to)?)
        };
        // A reference agent with a constant score has no blocks.
        let block = |block: Option<&BlockRecord>| Some(block.map_or(statistics.mean, |block| block.mean));
        row.extend([
            String::new(),
            typeset(statistics.mean),
            text(block(blocks.first())),
            text(block(blocks.last())),
        ]);
        row.extend([
            share(of("random", "oracle")),
            share(of("static", "oracle")),
            share(of("static", "bayes")),
        ]);
        return row;
    }
    let records: Vec<&AdaptRecord> = cell.records(runs).map(|(_, record)| record).collect();
    let over_seeds = |value: &dyn Fn(&AdaptRecord) -> Option<f64>| {
        let values: Option<Vec<f64>> = records.iter().map(|record| value(record)).collect();
        values.filter(|values| !values.is_empty()).map(|values| mean(&values))
    };
    let std = statistics.std.map_or(String::new(), |std| format!(" ± {}", typeset(std)));
    let interval = |interval: Interval| {
        format!("{} ({} to {})", typeset(interval.value), typeset(interval.low), typeset(interval.high))
    };
    row.push(statistics.n_seeds().to_string());
    row.push(format!("{}{std}", typeset(statistics.mean)));
    row.push(text(over_seeds(&|record| Some(record.blocks.first()?.mean))));
    row.push(text(over_seeds(&|record| Some(record.blocks.last()?.mean))));
    row.push(share(statistics.share.map(|(share, _)| share)));
    row.push(share(statistics.normalised));
    row.push(share(over_seeds(&|record| record.share_of_bayes)));
    row.push(statistics.iqm.map_or(String::new(), interval));
    row.push(text(statistics.worst_seed()));
    row.push(text(over_seeds(&worst_tenth)));
    row.push(distinct(records.iter().map(|record| record.chosen_on())).join(", "));
    let entries: Vec<&RunEntry> = statistics.seeds.iter().map(|(run, ..)| &runs[*run]).collect();
    let times: Vec<f64> = entries.iter().map(|entry| entry.train.wall_clock_secs).collect();
    let ends =
        [times.iter().copied().fold(f64::INFINITY, f64::min), times.iter().copied().fold(0.0, f64::max)];
    let threads = distinct(entries.iter().filter_map(|entry| entry.n_threads));
    row.push(distinct(entries.iter().map(|entry| number::steps(entry.steps as f64))).join(", "));
    row.push(distinct(ends.map(number::duration).into_iter()).join(" to "));
    row.push(threads.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", "));
    row.push(distinct(entries.iter().map(|entry| entry.processor.as_str())).join(", "));
    row
}

/// The mean score with the tenth of the peers that it is lowest with, at least one peer.
fn worst_tenth(record: &AdaptRecord) -> Option<f64> {
    let mut scores: Vec<f64> = record.peers.iter().map(|peer| peer.mean).collect();
    scores.sort_by(f64::total_cmp);
    scores.truncate((WORST_SHARE * scores.len() as f64).ceil() as usize);
    (!scores.is_empty()).then(|| mean(&scores))
}

#[cfg(test)]
mod tests {
    use super::worst_tenth;
    use crate::record::AdaptRecord;

    #[test]
    fn the_worst_tenth_has_at_least_one_peer() {
        let text = include_str!("../tests/golden/kuhn.adapt.json");
        let mut record = AdaptRecord::from_json(text).expect("a record");
        let lowest = record.peers.iter().map(|peer| peer.mean).fold(f64::INFINITY, f64::min);
        assert_eq!(record.peers.len(), 10);
        assert_eq!(worst_tenth(&record), Some(lowest));
        // Two of eleven peers.
        let mut eleventh = record.peers[0].clone();
        eleventh.mean = lowest - 1.0;
        record.peers.push(eleventh);
        assert_eq!(worst_tenth(&record), Some(lowest - 0.5));
        record.peers.clear();
        assert_eq!(worst_tenth(&record), None);
    }
}
