//! Rows of named numbers as JSON lines: `metrics.jsonl` and `timing.jsonl`.
//!
//! For the same seed, `metrics.jsonl` is the same file, byte for byte, however often the run was stopped; nothing that
//! comes from a clock may go into it. The same rows for TensorBoard are in `tensorboard`.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::LabError;
use crate::step_log::{Scan, StepLog};

/// One row as it is on disk: `{"step":100,"losses/policy_loss":0.5}`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricsRecord {
    /// Steps taken in the game.
    pub step: u64,
    /// Names and values in the order in which they were written.
    pub values: Vec<(String, f64)>,
}

/// A log that this process appends to.
#[derive(Debug)]
pub struct MetricsLog {
    log: StepLog,
}

impl MetricsLog {
    /// Opens the file, or makes it. The torn row of a process that was killed while writing is cut; damage before
    /// good rows is an error.
    pub fn open(path: &Path) -> Result<MetricsLog, LabError> {
        Ok(MetricsLog { log: StepLog::open(path, b"", scan)? })
    }

    /// Writes one row; another process can read it when this returns. The values keep their order, so the caller decides
    /// it once. Steps must rise from row to row.
    pub fn append(&mut self, step: u64, values: &[(&str, f64)]) -> Result<(), LabError> {
        check_values(step, values)?;
        let text = |value: &str| serde_json::to_string(value).expect("text can be written");
        let mut row = format!("{{\"step\":{step}");
        for (name, value) in values {
            // The shortest digits that read back as the same number, so the bytes say exactly what was computed.
            let value = serde_json::to_string(value).expect("a finite number can be written");
            row.push_str(&format!(",{}:{value}", text(name)));
        }
        row.push_str("}\n");
        self.log.append(step, row.as_bytes())
    }

    /// Drops the rows after `step`, the ones that a resumed run will write again; gives their number.
    pub fn truncate_after(&mut self, step: u64) -> Result<usize, LabError> {
        self.log.truncate_after(step)
    }

    /// The step of the last row.
    pub fn last_step(&self) -> Option<u64> {
        self.log.last_step()
    }

    /// Waits until all rows survive a loss of power. Call it before saving a checkpoint.
    pub fn sync(&mut self) -> Result<(), LabError> {
        self.log.sync()
    }
}

/// Every whole row of a log that another process may be writing. A log that does not exist yet has none.
pub fn read_metrics(path: &Path) -> Result<Vec<MetricsRecord>, LabError> {
    let contents = match std::fs::read(path) {
        Ok(contents) => contents,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(LabError::io("read", path, source)),
    };
    let found = scan(&contents);
    if found.goes_on_after_damage {
        return Err(LabError::DamagedLog { path: path.to_owned(), at_byte: found.end() as u64 });
    }
    Ok(lines(&contents[..found.end()]).filter_map(|(line, _)| parse(line)).collect())
}

/// Refuses rows that a reader could not take: names that are no keys, numbers that are none.
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
            // A whole row behind damage, or one whose step does not rise.
            Some(_) => {
                damaged = true;
                found.goes_on_after_damage = true;
            }
        }
    }
    found
}

/// Each line with its line feed, and where it ends.
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
    /// By hand, because a map type would lose the order of the values, or change that of everybody's JSON.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MetricsRecord, D::Error> {
        struct Row;
        impl<'de> Visitor<'de> for Row {
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
        deserializer.deserialize_map(Row)
    }
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[track_caller]
    fn check(text: &str, steps: &[u64], end: usize, goes_on: bool) {
        let found = scan(text.as_bytes());
        assert_eq!(found.rows.iter().map(|(step, _)| *step).collect::<Vec<_>>(), steps);
        assert_eq!((found.end(), found.goes_on_after_damage), (end, goes_on));
    }

    #[test]
    fn whole_rows_and_what_comes_after_them() {
        check("", &[], 0, false);
        check("{\"step\":1}\n{\"step\":2,\"a\":0.5}\n", &[1, 2], 30, false);
        // Torn: within a row, before the line feed, or zeros where the data never came.
        check("{\"step\":1}\n{\"step\":2,\"a\":0.", &[1], 11, false);
        check("{\"step\":1}\n{\"step\":2}", &[1], 11, false);
        check("{\"step\":1}\n\0\0\0\0\0\0\n", &[1], 11, false);
        // Damage with good rows behind it must not be cut away.
        check("{\"step\":1}\n{\"stxp\":2}\n{\"step\":3}\n", &[1], 11, true);
        // A step that falls is nothing that a crash could leave.
        check("{\"step\":2}\n{\"step\":1}\n", &[2], 11, true);
    }
}
