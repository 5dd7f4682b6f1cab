//! An append-only file of rows, each with a step, that is truncated at a step when a run is resumed.
//!
//! `metrics` and `tensorboard` define the row formats. This module handles incomplete ends and damage for both.

use std::path::Path;

use crate::durable::AppendFile;
use crate::error::LabError;

/// The positions of the rows in a file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The end of the header before the rows.
    pub(crate) head_end: usize,
    /// The step and the end of each complete row, up to the first damage.
    pub(crate) rows: Vec<(u64, usize)>,
    /// Whether a complete row follows the first damage. If not, the damage is an incomplete write at the end.
    pub(crate) has_rows_after_damage: bool,
}

impl Scan {
    /// The end of the undamaged part of the file.
    pub(crate) fn end(&self) -> usize {
        self.rows.last().map_or(self.head_end, |(_, end)| *end)
    }
}

/// A log of rows with increasing steps.
#[derive(Debug)]
pub(crate) struct StepLog {
    file: AppendFile,
    scan: fn(&[u8]) -> Scan,
    last_step: Option<u64>,
}

impl StepLog {
    /// Opens the file, or creates it with the header `head`, and removes an incomplete end.
    pub(crate) fn open(path: &Path, head: &[u8], scan: fn(&[u8]) -> Scan) -> Result<StepLog, LabError> {
        let (mut file, contents) = AppendFile::open(path)?;
        let found = scan(&contents);
        let end = found.end();
        if found.has_rows_after_damage {
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

    /// Rejects a step that is not after the last one.
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

    /// Removes the rows after `step`. Returns their number.
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
