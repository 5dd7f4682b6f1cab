//! Rows of named numbers as JSON lines: `metrics.jsonl` and `timing.jsonl`.
//!
//! For the same seed, `metrics.jsonl` is byte-identical, even if the run was stopped and resumed. It must not contain clock
//! times. `tensorboard` writes the same rows for TensorBoard.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::LabError;
use crate::step_log::{Scan, StepLog};

/// One row of the file: `{"step":100,"losses/policy_loss":0.5}`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsRecord {
    /// Ego decisions so far.
    pub step: u64,
    /// Names and values in the order of the file.
    pub values: Vec<(String, f64)>,
}

/// A writer that appends rows to a log.
#[derive(Debug)]
pub struct MetricsLog {
    log: StepLog,
}

impl MetricsLog {
    /// Opens or creates the file. An incomplete last row, left by a killed process, is removed; damage before valid rows is an
    /// error.
    pub fn open(path: &Path) -> Result<MetricsLog, LabError> {
        Ok(MetricsLog { log: StepLog::open(path, b"", scan)? })
    }

    /// Writes one row, which other processes can then read. The values keep their order. Steps must increase from row to row.
    pub fn append(&mut self, step: u64, values: &[(&str, f64)]) -> Result<(), LabError> {
        check_values(step, values)?;
        let text = |value: &str| serde_json::to_string(value).expect("text can be written");
        let mut row = format!("{{\"step\":{step}");
        for (name, value) in values {
            // The shortest digits that parse back to the same number, so no precision is lost.
            let value = serde_json::to_string(value).expect("a finite number can be written");
            row.push_str(&format!(",{}:{value}", text(name)));
        }
        row.push_str("}\n");
        self.log.append(step, row.as_bytes())
    }

    /// Removes the rows after `step`, which a resumed run writes again. Returns their number.
    pub fn truncate_after(&mut self, step: u64) -> Result<usize, LabError> {
        self.log.truncate_after(step)
    }

    /// The step of the last row.
    pub fn last_step(&self) -> Option<u64> {
        self.log.last_step()
    }

    /// Syncs all rows to disk. Call it before saving a checkpoint.
    pub fn sync(&mut self) -> Result<(), LabError> {
        self.log.sync()
    }
}

/// Reads all complete rows of a log, which another process may be writing. A missing file has no rows.
pub fn read_metrics(path: &Path) -> Result<Vec<MetricsRecord>, LabError> {
    let contents = match std::fs::read(path) {
        Ok(contents) => contents,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(LabError::io("read", path, source)),
    };
    let found = scan(&contents);
    if found.has_rows_after_damage {
        return Err(LabError::DamagedLog { path: path.to_owned(), at_byte: found.end() as u64 });
    }
    Ok(lines(&contents[..found.end()]).filter_map(|(line, _)| parse(line)).collect())
}

/// Rejects rows with invalid or duplicate names, or with values that are not finite.
pub(crate) fn check_values(step: u64, values: &[(&str, f64)]) -> Result<(), LabError> {
    let mut seen = BTreeSet::from(["step"]);
    for (name, value) in values {
        let printable = !name.chars().any(char::is_control);
        if !printable || !(1..=128).contains(&name.chars().count()) || !seen.insert(name) {
            return Err(LabError::BadMetricName { found: (*name).to_owned() });
        }
        if !value.is_finite() {
            return Err(LabError::NotFinite { metric: (*name).to_owned(), value: *value, step });
        }
    }
    Ok(())
}

fn scan(contents: &[u8]) -> Scan {
    let mut found = Scan::default();
    let mut damaged = false;
    for (line, end) in lines(contents) {
        match parse(line).map(|record| record.step) {
            None => damaged = true,
            Some(step) if !damaged && found.rows.last().is_none_or(|(last, _)| step > *last) => {
                found.rows.push((step, end));
            }
            // A complete row after damage, or a row whose step does not increase.
            Some(_) => {
                damaged = true;
                found.has_rows_after_damage = true;
            }
        }
    }
    found
}

/// Each line with its line feed, and the offset of its end.
fn lines(contents: &[u8]) -> impl Iterator<Item = (&[u8], usize)> {
    let mut end = 0;
    contents.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        end += line.len();
        (line, end)
    })
}

fn parse(line: &[u8]) -> Option<MetricsRecord> {
    serde_json::from_slice(line.strip_suffix(b"\n")?).ok()
}

impl<'de> Deserialize<'de> for MetricsRecord {
    /// Written by hand: a sorted map would lose the order of the values, and the order-preserving map of `serde_json` is a
    /// feature that would affect all crates.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MetricsRecord, D::Error> {
        struct MetricsRow;
        impl<'de> Visitor<'de> for MetricsRow {
            type Value = MetricsRecord;
            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("a map of a step and named numbers")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MetricsRecord, A::Error> {
                if map.next_key::<String>()?.as_deref() != Some("step") {
                    return Err(Error::missing_field("step"));
                }
                let step = map.next_value()?;
                let mut values = Vec::new();
                while let Some(value) = map.next_entry()? {
                    values.push(value);
                }
                Ok(MetricsRecord { step, values })
            }
        }
        deserializer.deserialize_map(MetricsRow)
    }
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[track_caller]
    fn check(text: &str, steps: &[u64], end: usize, goes_on: bool) {
        let found = scan(text.as_bytes());
        assert_eq!(found.rows.iter().map(|(step, _)| *step).collect::<Vec<_>>(), steps);
        assert_eq!((found.end(), found.has_rows_after_damage), (end, goes_on));
    }

    #[test]
    fn incomplete_rows_and_damage_are_distinguished() {
        check("", &[], 0, false);
        check("{\"step\":1}\n{\"step\":2,\"a\":0.5}\n", &[1, 2], 30, false);
        // An incomplete end: within a row, before the line feed, or zeros in place of unwritten data.
        check("{\"step\":1}\n{\"step\":2,\"a\":0.", &[1], 11, false);
        check("{\"step\":1}\n{\"step\":2}", &[1], 11, false);
        check("{\"step\":1}\n\0\0\0\0\0\0\n", &[1], 11, false);
        // Damage before valid rows must not be removed.
        check("{\"step\":1}\n{\"stxp\":2}\n{\"step\":3}\n", &[1], 11, true);
        // No crash leaves a step that decreases.
        check("{\"step\":2}\n{\"step\":1}\n", &[2], 11, true);
    }
}
