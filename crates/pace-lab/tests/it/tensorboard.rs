//! TensorBoard events, checked with an independent reader: frames, checksums, steps, tags and values.
//!
//! `tests/tensorboard/read_back.py` reads them with TensorBoard itself.

use std::fs;
use std::path::{Path, PathBuf};

use pace_lab::{CheckpointLimits, LabError, RunFolder, TensorBoardLog};

use crate::{scratch, spec};

const FILE: &str = "events.out.tfevents.0000000000.pace";

#[derive(Debug, Default, PartialEq)]
struct Event {
    version: Option<String>,
    step: u64,
    values: Vec<(String, f32)>,
}

/// The masked CRC-32C, computed bit by bit from its definition.
fn masked_crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The fields of a message: field number, and value as raw bytes (numbers in little endian).
fn fields(mut message: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn varint(message: &mut &[u8]) -> u64 {
        let n_bytes = message.iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
        let (bytes, rest) = message.split_at(n_bytes);
        *message = rest;
        bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f))
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let length = match key & 7 {
            0 => {
                fields.push((key >> 3, varint(&mut message).to_le_bytes().to_vec()));
                continue;
            }
            1 => 8,
            2 => varint(&mut message) as usize,
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (value, rest) = message.split_at(length);
        fields.push((key >> 3, value.to_vec()));
        message = rest;
    }
    fields
}

fn read(folder: &Path) -> Vec<Event> {
    let contents = fs::read(folder.join(FILE)).expect("readable");
    let mut rest = contents.as_slice();
    let mut events = Vec::new();
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().expect("eight"));
        assert_eq!(masked_crc(&rest[..8]).to_le_bytes(), rest[8..12], "the length's checksum");
        let end = 12 + length as usize;
        assert_eq!(masked_crc(&rest[12..end]).to_le_bytes(), rest[end..end + 4], "the event's checksum");
        let mut event = Event::default();
        for (field, value) in fields(&rest[12..end]) {
            match field {
                1 => assert!(
                    f64::from_le_bytes(value.try_into().expect("a double")) > 1.7e9,
                    "a time after 2023"
                ),
                2 => event.step = u64::from_le_bytes(value.try_into().expect("a number")),
                3 => event.version = Some(String::from_utf8(value).expect("text")),
                5 => {
                    for (_, value) in fields(&value) {
                        let value = fields(&value);
                        assert_eq!((value[0].0, value[1].0, value.len()), (1, 2, 2));
                        let tag = String::from_utf8(value[0].1.clone()).expect("text");
                        let number = value[1].1.clone().try_into().expect("a float");
                        event.values.push((tag, f32::from_le_bytes(number)));
                    }
                }
                other => panic!("field {other}"),
            }
        }
        events.push(event);
        rest = &rest[end + 4..];
    }
    events
}

fn append(log: &mut TensorBoardLog, step: u64) {
    log.append(step, &[("losses/policy_loss", 1.0 / step as f64), ("charts/SPS", 1e5)]).expect("written");
}

fn expected(steps: &[u64]) -> Vec<Event> {
    let head = Event { version: Some("brain.Event:2".to_owned()), ..Event::default() };
    let event = |step: &u64| Event {
        version: None,
        step: *step,
        values: vec![
            ("losses/policy_loss".to_owned(), (1.0 / *step as f64) as f32),
            ("charts/SPS".to_owned(), 1e5),
        ],
    };
    [head].into_iter().chain(steps.iter().map(event)).collect()
}

#[test]
fn frames_checksums_and_values() {
    let scratch = scratch();
    let mut log = TensorBoardLog::open(scratch.path()).expect("a new log");
    let steps = [1, 127, 128, 300, 1 << 40];
    steps.iter().for_each(|step| append(&mut log, *step));
    assert_eq!(read(scratch.path()), expected(&steps));
    let error = log.append(1 << 41, &[("a", f64::NAN)]).expect_err("refused");
    assert!(matches!(error, LabError::NotFinite { .. }), "{error}");
    let error = log.append(5, &[("a", 1.0)]).expect_err("refused");
    assert!(matches!(error, LabError::StepNotAfter { .. }), "{error}");
    assert_eq!(read(scratch.path()).len(), 6);
}

#[test]
fn a_file_cut_at_any_byte_is_continued_as_one_stream() {
    let scratch = scratch();
    let mut log = TensorBoardLog::open(scratch.path()).expect("a new log");
    [10, 20, 30].iter().for_each(|step| append(&mut log, *step));
    drop(log);
    let path = scratch.path().join(FILE);
    let whole = fs::read(&path).expect("readable");
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).expect("written");
        let mut log = TensorBoardLog::open(scratch.path()).expect("an incomplete end is accepted");
        log.truncate_after(20).expect("cut");
        let mut steps: Vec<u64> =
            [10, 20].into_iter().filter(|step| Some(*step) <= log.last_step()).collect();
        append(&mut log, 40);
        steps.push(40);
        assert_eq!(read(scratch.path()), expected(&steps), "{length} bytes were left");
    }
    assert_eq!(fs::read_dir(scratch.path()).expect("readable").count(), 1, "a single file");
}

#[test]
fn damage_before_good_events_is_not_cut_away() {
    let scratch = scratch();
    let mut log = TensorBoardLog::open(scratch.path()).expect("a new log");
    [10, 20, 30].iter().for_each(|step| append(&mut log, *step));
    let path = scratch.path().join(FILE);
    let mut contents = fs::read(&path).expect("readable");
    contents[60] ^= 1;
    fs::write(&path, &contents).expect("written");
    let error = TensorBoardLog::open(scratch.path()).expect_err("damaged");
    assert!(matches!(error, LabError::DamagedLog { .. }), "{error}");
    assert_eq!(fs::read(&path).expect("readable"), contents, "the file is unchanged");
}

/// Writes a run with an interruption. With `PACE_TENSORBOARD_RUN=FOLDER` the run is kept in that folder for
/// `read_back.py`.
#[test]
fn curves_and_rows_of_a_resumed_run_are_the_same() {
    let scratch = scratch();
    let kept = std::env::var_os("PACE_TENSORBOARD_RUN").map(PathBuf::from);
    let path = kept.unwrap_or_else(|| scratch.path().join("run"));
    let values = |step: u64| {
        let x = step as f64;
        [
            ("losses/policy_loss", (x / 7.0).sin()),
            ("charts/episodic_return", 1.0 / 3.0),
            ("peer/top1", 1e-12 * x),
        ]
    };
    let run = RunFolder::create(&path, "", spec()).expect("a new run");
    let (mut rows, mut curves) = (run.metrics().expect("a log"), run.tensorboard().expect("a log"));
    for step in (0..600).step_by(10) {
        rows.append(step, &values(step)).expect("written");
        curves.append(step, &values(step)).expect("written");
        if step == 400 {
            rows.sync().expect("synced");
            curves.sync().expect("synced");
            let store = run.checkpoints(CheckpointLimits::default()).expect("a store");
            store.save(step, &[("state.json", b"{}")]).expect("saved");
        }
    }
    drop((run, rows, curves));
    // The process was killed while it wrote an event.
    let events = path.join("tb").join(FILE);
    let torn = fs::read(&events).expect("readable");
    fs::write(&events, &torn[..torn.len() - 9]).expect("written");

    let run = RunFolder::open(&path).expect("the lock is free");
    let store = run.checkpoints(CheckpointLimits::default()).expect("a store");
    let step = store.load_newest_valid().expect("readable").expect("saved").step;
    let (mut rows, mut curves) = (run.metrics().expect("a log"), run.tensorboard().expect("a log"));
    assert_eq!(rows.truncate_after(step).expect("cut"), 19);
    assert_eq!(curves.truncate_after(step).expect("cut"), 18);
    for step in (410..=100_000).step_by(410) {
        rows.append(step, &values(step)).expect("written");
        curves.append(step, &values(step)).expect("written");
    }
    let events = read(&path.join("tb"));
    let rows = run.view().metrics().expect("readable");
    assert_eq!(events.len(), 1 + rows.len());
    for (event, row) in events[1..].iter().zip(&rows) {
        let rounded: Vec<_> = row.values.iter().map(|(tag, value)| (tag.clone(), *value as f32)).collect();
        assert_eq!((event.step, &event.values), (row.step, &rounded));
    }
}
