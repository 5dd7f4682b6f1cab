//! An append-only file of rows, each with a step, that can be cut back to a step when a run is resumed.
//!
//! What a row looks like is in `metrics` and `tensorboard`; both get the same treatment of torn ends and damage here.

use std::path::Path;

use crate::durable::AppendFile;
use crate::error::LabError;

/// Where the rows of a file are.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Where whatever comes before the rows ends.
    pub(crate) head_end: usize,
    /// The step and the end of each whole row, up to the first damage.
    pub(crate) rows: Vec<(u64, usize)>,
    /// Whether a whole row follows the first damage. A torn end has none: it is the write that a crash cut short.
    pub(crate) goes_on_after_damage: bool,
}

impl Scan {
    /// Where the whole part of the file ends.
    pub(crate) fn end(&self) -> usize {
        self.rows.last().map_or(self.head_end, |(_, end)| *end)
    }
}

/// Rows of rising steps.
#[derive(Debug)]
pub(crate) struct StepLog {
    file: AppendFile,
    scan: fn(&[u8]) -> Scan,
    last_step: Option<u64>,
}

impl StepLog {
    /// Opens the file, or makes it with `head` at its beginning, and cuts a torn end.
    pub(crate) fn open(path: &Path, head: &[u8], scan: fn(&[u8]) -> Scan) -> Result<StepLog, LabError> {
        let (mut file, contents) = AppendFile::open(path)?;
        let found = scan(&contents);
        let end = found.end();
        if found.goes_on_after_damage {
            return Err(LabError::DamagedLog { path: path.to_owned(), at_byte: end as u64 });
        }
        if end < contents.len() {
            file.cut(end as u64)?;
        }
        if end < head.len() {
            file.append(head)?;
        }
        Ok(StepLog { file, scan, last_step: found.rows.last().map(|(step, _)| *step) })
    }

    pub(crate) fn last_step(&self) -> Option<u64> {
        self.last_step
    }

    /// Refuses a step that is not after the last one.
    pub(crate) fn check_step(&self, step: u64) -> Result<(), LabError> {
        match self.last_step {
            Some(last) if step <= last => {
                Err(LabError::StepNotAfter { path: self.file.path().to_owned(), step, last })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn append(&mut self, step: u64, row: &[u8]) -> Result<(), LabError> {
        self.check_step(step)?;
        self.file.append(row)?;
        self.last_step = Some(step);
        Ok(())
    }

    /// Drops the rows after `step`; gives their number.
    pub(crate) fn truncate_after(&mut self, step: u64) -> Result<usize, LabError> {
        let mut found = (self.scan)(&self.file.read()?);
        let n_rows = found.rows.len();
        found.rows.retain(|(row_step, _)| *row_step <= step);
        if found.rows.len() == n_rows {
            return Ok(0);
        }
        self.file.cut(found.end() as u64)?;
        self.file.sync()?;
        self.last_step = found.rows.last().map(|(step, _)| *step);
        Ok(n_rows - found.rows.len())
    }

    pub(crate) fn sync(&mut self) -> Result<(), LabError> {
        self.file.sync()
    }
}
