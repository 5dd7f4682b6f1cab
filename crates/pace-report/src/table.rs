//! Plain-text tables for a terminal: aligned columns, each number with its standard error.
//!
//! The text does not depend on the terminal, so that it can also be saved in a file. No table is wider than 80 characters: columns
//! that do not fit continue in a table below, and long texts in the next line.

use std::fmt::Write;

use crate::number;
use crate::record::{AdaptRecord, BlockRecord, DetectionRecord, ReferenceRecord, VisitsRecord};

/// Maximum width of a table in characters: the default width of a terminal.
const WIDTH: usize = 80;

/// The space between columns.
const GAP: usize = 2;

/// The agent, the peer pool and the mean score, in a few lines.
pub fn headline(record: &AdaptRecord) -> String {
    let words = &record.words;
    let decimals = number::decimals(record.standard_error);
    let mut text = format!(
        "{} on {} (preset {})\n{} {} peers, {} encounters of {} {} with each\n",
        clean(record.method_name()),
        clean(record.game_name()),
        clean(&record.preset),
        record.n_tuples,
        clean(&record.pool),
        record.passes,
        record.episodes,
        clean(&words.episodes)
    );
    let score =
        format!("{} {}", clean(&words.score), with_error(record.mean, record.standard_error, decimals));
    text.push_str(&score);
    if let Some([low, high]) = record.confidence_95 {
        let (low, high) = (number::fixed(low, decimals), number::fixed(high, decimals));
        let interval = format!("(95 % interval {low} to {high})");
        let has_room = score.chars().count() + 1 + interval.chars().count() <= WIDTH;
        text.push(if has_room { ' ' } else { '\n' });
        text.push_str(&interval);
    }
    let shares = [
        ("normalised".to_owned(), record.normalised),
        ("share of bayes".to_owned(), record.share_of_bayes),
        (format!("{} rate", clean(&words.keypoint)), record.keypoint_rate),
    ];
    text.push('\n');
    match record.chosen_on.as_deref() {
        Some("none") => text.push_str("settings of the preset: not chosen by scores\n"),
        Some(pool) => text.push_str(&format!("settings of the preset: chosen on {} peers\n", clean(pool))),
        None => {}
    }
    let known = shares.into_iter().filter_map(|(name, share)| Some(format!("{name} {}", percent(share?))));
    text.push_str(&known.collect::<Vec<_>>().join(", "));
    text.push('\n');
    text
}

/// One row per block of episodes with the agent and the reference agents, and a last row for the whole encounter.
pub fn blocks(record: &AdaptRecord) -> String {
    let decimals = number::decimals(record.standard_error);
    let references = record.references_in_order();
    let has_rate = record.keypoint_rate.is_some();
    let has_guess = record.blocks.iter().any(|block| block.identification.is_some());
    let has_steps = record.blocks.iter().any(|block| block.steps.is_some());
    let mut table = TextTable::new(&record.words.episodes, record.method_name());
    for (name, _) in &references {
        table.columns.push(clean(name));
    }
    if has_rate {
        table.columns.push(clean(&record.words.keypoint));
    }
    if has_guess {
        table.columns.push("identified".to_owned());
    }
    if has_steps {
        table.columns.push("steps".to_owned());
    }
    for block in &record.blocks {
        let mut row = vec![block.range("-"), with_error(block.mean, block.standard_error, decimals)];
        row.extend(
            references.iter().map(|(_, reference)| number::fixed(score_in_block(reference, block), decimals)),
        );
        if has_rate {
            row.push(block.keypoint_rate.map_or(dash(), percent));
        }
        if has_guess {
            let guess = block.identification.map(|identification| identification.accuracy);
            row.push(guess.map_or(dash(), percent));
        }
        if has_steps {
            row.push(block.steps.map_or(dash(), |steps| number::fixed(steps, 1)));
        }
        table.rows.push(row);
    }
    let mut all = vec!["all".to_owned(), with_error(record.mean, record.standard_error, decimals)];
    all.extend(references.iter().map(|(_, reference)| number::fixed(reference.mean, decimals)));
    if has_rate {
        all.push(record.keypoint_rate.map_or(dash(), percent));
    }
    if has_guess {
        all.push(String::new());
    }
    if has_steps {
        all.push(mean_steps(record).map_or(dash(), |steps| number::fixed(steps, 1)));
    }
    table.rows.push(all);
    table.render()
}

/// Further conditions and results of the evaluation, one line each; may be empty.
pub fn diagnostics(record: &AdaptRecord) -> String {
    let words = &record.words;
    let decimals = number::decimals(record.standard_error);
    let mut lines = Vec::new();
    if !record.game_keys.is_empty() {
        lines.push(format!("game keys changed for this evaluation: {}", clean(&game_keys(record))));
    }
    if let Some(n) = record.context_episodes.filter(|n| *n < record.episodes) {
        lines.push(format!(
            "the context keeps the last {n} {}, the current one included",
            clean(if n == 1 { &words.episode } else { &words.episodes })
        ));
    }
    if let Some(switch) = &record.switch {
        let score = |part: crate::PartRecord| with_error(part.mean, part.standard_error, decimals);
        lines.push(format!(
            "peers replaced after {} {}: {} {} before, {} after",
            clean(&words.episode),
            switch.after_episode,
            clean(&words.score),
            score(switch.before),
            score(switch.after)
        ));
    }
    lines.extend(
        record.detection.as_ref().map(|detection| clean(&detection_line(detection, &words.episodes))),
    );
    if let Some(visits) = &record.keypoint_visits {
        let mut line = format!(
            "{} in {} of the {} {} of an encounter",
            clean(&words.keypoint),
            with_error(visits.mean, visits.standard_error, 2),
            record.episodes,
            clean(&words.episodes)
        );
        if let Some(distribution) = visits_distribution(visits) {
            line.push_str(&format!(" ({distribution})"));
        }
        lines.push(line);
    }
    if let Some(reason) = &record.identification_undefined {
        lines.push(format!("identification is undefined: {}", clean(reason)));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Peer identification over the decisions of an encounter, in about ten rows; empty if the record has none.
pub fn identification(record: &AdaptRecord) -> String {
    let bins = &record.identification_by_decision;
    if bins.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new("decisions", "accuracy");
    table.columns.extend(["posterior".to_owned(), "encounters".to_owned()]);
    for bin in bins.iter().step_by(bins.len().div_ceil(10)) {
        let error = bin.accuracy_error.map_or(String::new(), |error| format!(" ± {}", percent(error)));
        table.rows.push(vec![
            bin.range("-"),
            format!("{}{error}", percent(bin.accuracy)),
            percent(bin.posterior),
            bin.n_encounters.to_string(),
        ]);
    }
    table.render()
}

/// The results of a change detector, in one line.
pub(crate) fn detection_line(detection: &DetectionRecord, episodes: &str) -> String {
    let mut line = format!("detector {} (clearing keeps {}): ", detection.detector, detection.clear_keeps);
    if let Some(rate) = detection.hit_rate {
        line.push_str(&format!("finds the switch in {} of the encounters", percent(rate)));
        if let Some(delay) = detection.mean_delay_episodes {
            line.push_str(&format!(", {} {episodes} after it", number::fixed(delay, 1)));
        }
        line.push_str("; ");
    }
    let (false_alarms, repeated) =
        (detection.false_alarms_per_encounter, detection.repeated_alarms_per_encounter);
    line.push_str(&format!("{} false alarms", number::fixed(false_alarms, 2)));
    if detection.hit_rate.is_some() {
        line.push_str(&format!(" and {} repeated ones", number::fixed(repeated, 2)));
    }
    line + " per encounter"
}

/// The distribution of encounters over the number of visits: `0 in 8 %, 1 in 92 %`; `None` if the list would be too long.
pub(crate) fn visits_distribution(visits: &VisitsRecord) -> Option<String> {
    let total = visits.encounters.iter().sum::<usize>();
    if total == 0 || visits.encounters.len() > 11 {
        return None;
    }
    let share = |n: usize| percent(n as f64 / total as f64);
    let parts = visits.encounters.iter().enumerate().filter(|(_, n)| **n > 0);
    Some(parts.map(|(count, n)| format!("{count} in {}", share(*n))).collect::<Vec<_>>().join(", "))
}

/// The game keys that differ from training: `n_peers = 3, observation_slots = 5`.
pub(crate) fn game_keys(record: &AdaptRecord) -> String {
    let keys = record.game_keys.iter().map(|(key, value)| format!("{key} = {value}"));
    keys.collect::<Vec<_>>().join(", ")
}

/// The mean number of decisions per episode, over the whole encounter.
pub(crate) fn mean_steps(record: &AdaptRecord) -> Option<f64> {
    let length = |block: &BlockRecord| (block.last + 1 - block.first) as f64;
    let sums: Option<Vec<f64>> =
        record.blocks.iter().map(|block| Some(block.steps? * length(block))).collect();
    Some(sums?.iter().sum::<f64>() / record.blocks.iter().map(length).sum::<f64>())
}

/// One row per peer tuple: the score, the oracle's score, and the regret.
pub fn peers(record: &AdaptRecord) -> String {
    let decimals = number::decimals(record.standard_error);
    let mut table = TextTable::new("peer", record.method_name());
    table.columns.extend(["oracle".to_owned(), "regret".to_owned(), "description".to_owned()]);
    table.left_from = 4;
    for peer in &record.peers {
        let optional = |value: Option<f64>| value.map_or(dash(), |value| number::fixed(value, decimals));
        table.rows.push(vec![
            peer.index.to_string(),
            with_error(peer.mean, peer.standard_error, decimals),
            optional(peer.oracle),
            optional(peer.regret),
            clean(&peer.description),
        ]);
    }
    table.render()
}

/// The score of a reference agent in the same block, or its mean if it has no such block.
pub(crate) fn score_in_block(reference: &ReferenceRecord, block: &BlockRecord) -> f64 {
    let same = |other: &&BlockRecord| (other.first, other.last) == (block.first, block.last);
    reference.blocks.iter().find(same).map_or(reference.mean, |other| other.mean)
}

/// A table under construction.
struct TextTable {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The first of the text columns, which are aligned to the left. Number columns before it are aligned to the right.
    left_from: usize,
}

impl TextTable {
    fn new(first: &str, second: &str) -> TextTable {
        TextTable { columns: vec![clean(first), clean(second)], rows: Vec::new(), left_from: usize::MAX }
    }

    fn render(&self) -> String {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| &row[column]).chain([&self.columns[column]]);
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let mut parts = Vec::new();
        let mut rest: Vec<usize> = (1..self.columns.len()).collect();
        while !rest.is_empty() {
            // Every part starts with the first column, which names the rows.
            let mut part = vec![0];
            let mut width = widths[0];
            while let Some(column) = rest.first().copied() {
                let has_room = width + GAP + widths[column] <= WIDTH;
                // A text column may be narrower than its texts. A part has at least one column after the first.
                let is_text = column >= self.left_from && width + GAP + MIN_TEXT_WIDTH <= WIDTH;
                if !has_room && !is_text && part.len() > 1 {
                    break;
                }
                if !has_room && column >= self.left_from {
                    widths[column] = WIDTH.saturating_sub(width + GAP).max(MIN_TEXT_WIDTH);
                }
                width += GAP + widths[column];
                part.push(column);
                rest.remove(0);
            }
            parts.push(self.render_part(&part, &widths));
        }
        parts.join("\n")
    }

    /// Writes a table of some of the columns.
    fn render_part(&self, columns: &[usize], widths: &[usize]) -> String {
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut text = String::new();
        for row in [&self.columns, &rule].into_iter().chain(&self.rows) {
            let cells: Vec<Vec<String>> =
                columns.iter().map(|column| wrapped(&row[*column], widths[*column])).collect();
            for number in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let mut line = String::new();
                for (column, lines) in columns.iter().zip(&cells) {
                    let (cell, width) = (lines.get(number).map_or("", String::as_str), widths[*column]);
                    // Column 0 has the names of the rows.
                    if *column == 0 || *column >= self.left_from {
                        write!(line, "{cell:<width$}  ")
                    } else {
                        write!(line, "{cell:>width$}  ")
                    }
                    .expect("a string takes any text");
                }
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }
}

/// Minimum width of a text column.
const MIN_TEXT_WIDTH: usize = 24;

/// Splits a text at spaces into lines of at most `width` characters; a longer word is a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("one line at least");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn with_error(mean: f64, standard_error: Option<f64>, decimals: usize) -> String {
    let mean = number::fixed(mean, decimals);
    standard_error.map_or(mean.clone(), |error| format!("{mean} ± {}", number::fixed(error, decimals)))
}

fn percent(share: f64) -> String {
    format!("{} %", number::fixed(share * 100.0, 0))
}

fn dash() -> String {
    "-".to_owned()
}

/// Replaces control characters, so that no description can control the terminal or end a row.
fn clean(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::{TextTable, WIDTH};

    #[test]
    fn tables_are_split_into_parts_of_at_most_80_columns() {
        let mut table = TextTable::new("hands", "PACE");
        let names =
            ["oracle", "bayes", "static", "nash", "random", "bayes-explorer", "bayes-myopic", "showdown"];
        table.columns.extend(names.map(str::to_owned));
        for block in ["1-10", "all"] {
            let mut row = vec![block.to_owned(), "0.0148 ± 0.0011".to_owned()];
            row.extend(names.map(|_| "-0.0556".to_owned()));
            table.rows.push(row);
        }
        let text = table.render();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(names.iter().all(|name| text.contains(name)), "{text}");
        // Both parts have the names of the rows.
        assert_eq!(text.lines().filter(|line| line.starts_with("all ")).count(), 2, "{text}");
    }

    #[test]
    fn long_descriptions_are_wrapped_within_their_column() {
        let mut table = TextTable::new("peer", "PACE");
        table.columns.extend(["oracle".to_owned(), "description".to_owned()]);
        table.left_from = 3;
        let description =
            "predator on the path north to south, chases the nearest prey; prey on the path along the wall";
        table.rows.push(vec![
            "0".to_owned(),
            "-4.16 ± 0.05".to_owned(),
            "-2.68".to_owned(),
            description.to_owned(),
        ]);
        let text = table.render();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let words: Vec<&str> = text.lines().skip(2).flat_map(str::split_whitespace).collect();
        assert!(words.join(" ").ends_with(description), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }
}
