//! The metrics of a run as TensorBoard events: one file, which a resumed run continues.
//!
//! The writer is our own, because the format is small and the crates for it are unmaintained. A file is a sequence of TFRecords,
//! `length u64 | crc u32 | event | crc u32` (little endian, masked CRC-32C), and an event is a protobuf message:
//!
//! ```text
//! Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
//! Summary { repeated Value value = 1; }      Value { string tag = 1; float simple_value = 2; }
//! ```
//!
//! `metrics` writes the same rows in full precision.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::durable;
use crate::error::LabError;
use crate::metrics::check_values;
use crate::step_log::{Scan, StepLog};

/// A fixed file name: TensorBoard would show two files as one broken stream, and the usual name contains the host name.
const FILE: &str = "events.out.tfevents.0000000000.pace";

/// The first event of every file.
const VERSION: &str = "brain.Event:2";

/// Maximum size of an event, far above that of any written one. A longer event is damage.
const MAX_EVENT_BYTES: u64 = 1 << 20;

/// A writer that appends events to a file.
#[derive(Debug)]
pub struct TensorBoardLog {
    log: StepLog,
}

impl TensorBoardLog {
    /// Opens or creates the file in `folder`. An incomplete last event, left by a killed process, is removed; damage before
    /// valid events is an error.
    pub fn open(folder: &Path) -> Result<TensorBoardLog, LabError> {
        durable::create_folder(folder)?;
        let mut first = Vec::new();
        put_double(&mut first, 1, wall_time());
        put_bytes(&mut first, 3, VERSION.as_bytes());
        Ok(TensorBoardLog { log: StepLog::open(&folder.join(FILE), &record(&first), scan)? })
    }

    /// Writes one event with a value for each tag. Steps must increase. Values are rounded to single precision, the precision of
    /// TensorBoard.
    pub fn append(&mut self, step: u64, values: &[(&str, f64)]) -> Result<(), LabError> {
        check_values(step, values)?;
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, tag.as_bytes());
            put_float(&mut entry, 2, *value as f32);
            put_bytes(&mut summary, 1, &entry);
        }
        let mut event = Vec::new();
        put_double(&mut event, 1, wall_time());
        put_varint(&mut event, 2 << 3);
        put_varint(&mut event, step);
        put_bytes(&mut event, 5, &summary);
        self.log.append(step, &record(&event))
    }

    /// Removes the events after `step`, which a resumed run writes again. Returns their number.
    pub fn truncate_after(&mut self, step: u64) -> Result<usize, LabError> {
        self.log.truncate_after(step)
    }

    /// The step of the last event.
    pub fn last_step(&self) -> Option<u64> {
        self.log.last_step()
    }

    /// Syncs all events to disk. Call it before saving a checkpoint.
    pub fn sync(&mut self) -> Result<(), LabError> {
        self.log.sync()
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Frames an event: length, checksums and content.
fn record(event: &[u8]) -> Vec<u8> {
    assert!((event.len() as u64) < MAX_EVENT_BYTES, "an event of {} bytes", event.len());
    let length = (event.len() as u64).to_le_bytes();
    let mut record = Vec::with_capacity(event.len() + 16);
    record.extend(length);
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend(event);
    record.extend(masked_crc(event).to_le_bytes());
    record
}

/// The masked CRC-32C of the TFRecord format. The mask avoids the CRC of bytes that contain a CRC.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn scan(contents: &[u8]) -> Scan {
    let mut found = Scan::default();
    let mut at = 0;
    while let Some((event, end)) = record_at(contents, at) {
        match step_of(event) {
            // The first event has the file version.
            Some(_) if at == 0 => found.head_end = end,
            Some(step) if found.rows.last().is_none_or(|(last, _)| step > *last) => {
                found.rows.push((step, end));
            }
            _ => break,
        }
        at = end;
    }
    // Complete records after the damage can start at any byte. One directly at the end of the rows has a step that does not
    // increase.
    found.has_rows_after_damage = (found.end()..contents.len()).any(|at| record_at(contents, at).is_some());
    found
}

/// The event whose frame starts at `at`, and the end of the frame, if both checksums match.
fn record_at(contents: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?));
    let head = contents.get(at..at + 12)?;
    if masked_crc(&head[..8]) != number(&head[8..])? {
        return None;
    }
    let length = u64::from_le_bytes(head[..8].try_into().ok()?);
    if length > MAX_EVENT_BYTES {
        return None;
    }
    let event_end = at + 12 + length as usize;
    let event = contents.get(at + 12..event_end)?;
    let crc = number(contents.get(event_end..event_end + 4)?)?;
    (masked_crc(event) == crc).then_some((event, event_end + 4))
}

/// The step of an event; 0, the protobuf default, if the field is missing. Other fields are skipped.
fn step_of(mut event: &[u8]) -> Option<u64> {
    let mut step = 0;
    while !event.is_empty() {
        let key = take_varint(&mut event)?;
        match (key >> 3, key & 7) {
            (2, 0) => step = take_varint(&mut event)?,
            (_, 0) => drop(take_varint(&mut event)?),
            (_, 1) => drop(event.split_off(..8)?),
            (_, 2) => {
                let length = usize::try_from(take_varint(&mut event)?).ok()?;
                event.split_off(..length)?;
            }
            (_, 5) => drop(event.split_off(..4)?),
            _ => return None,
        }
    }
    Some(step)
}

fn put_varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *message.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put_double(message: &mut Vec<u8>, field: u64, value: f64) {
    put_varint(message, field << 3 | 1);
    message.extend(value.to_le_bytes());
}

fn put_float(message: &mut Vec<u8>, field: u64, value: f32) {
    put_varint(message, field << 3 | 5);
    message.extend(value.to_le_bytes());
}

fn put_bytes(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(message, field << 3 | 2);
    put_varint(message, bytes.len() as u64);
    message.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::{masked_crc, put_varint, record, scan, step_of, take_varint};

    #[test]
    fn numbers_survive_their_encoding() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut message = Vec::new();
            put_varint(&mut message, number);
            assert_eq!(take_varint(&mut message.as_slice()), Some(number));
        }
        assert_eq!(take_varint(&mut [0x80].as_slice()), None);
        assert_eq!(take_varint(&mut [0x80; 11].as_slice()), None);
    }

    #[test]
    fn the_checksum_is_the_masked_castagnoli() {
        // RFC 3720, B.4: 32 zero bytes have the CRC-32C 8a9136aa.
        assert_eq!(masked_crc(&[0; 32]), 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8));
    }

    #[test]
    fn no_bytes_break_the_reader() {
        // Each truncation and each flipped bit of a small file: the valid prefix is found, and nothing panics.
        let mut whole = record(&[0x1a, 1, b'v']);
        let head_end = whole.len();
        for step in [1, 2] {
            whole.extend(record(&[0x10, step, 0x2a, 0]));
        }
        assert_eq!(scan(&whole).rows.len(), 2);
        for length in 0..whole.len() {
            let found = scan(&whole[..length]);
            assert!(!found.has_rows_after_damage, "{length}");
            assert!(found.end() <= length);
        }
        for bit in 0..8 * whole.len() {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let found = scan(&flipped);
            assert!(found.end() <= bit / 8, "bit {bit} was not noticed");
            // Only damage to the last event looks like an incomplete end.
            assert_eq!(found.has_rows_after_damage, bit / 8 < head_end + 20, "bit {bit}");
        }
        assert_eq!(step_of(&[0x0b]), None);
    }
}
