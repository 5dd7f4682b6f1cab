//! Metrics logs: exact numbers, incomplete ends, and the same bytes with and without interruptions.

use std::fs;
use std::path::Path;

use pace_lab::{LabError, MetricsLog, read_metrics};

use crate::scratch;

/// Writes the row of a step, which is always the same, like that of a training run with the same seed.
fn append(log: &mut MetricsLog, step: u64) {
    let loss = 1.0 / (step as f64 + 0.1);
    log.append(step, &[("losses/policy_loss", loss), ("charts/episodic_return", -0.25)]).expect("written");
}

fn uninterrupted(folder: &Path) -> Vec<u8> {
    let path = folder.join("uninterrupted.jsonl");
    let mut log = MetricsLog::open(&path).expect("a new log");
    (1..=10).for_each(|step| append(&mut log, step * 10));
    fs::read(path).expect("readable")
}

#[test]
fn rows_keep_their_order_and_every_digit() {
    let scratch = scratch();
    let path = scratch.path().join("metrics.jsonl");
    let values = [("z", 0.1 + 0.2), ("a", f64::MIN_POSITIVE), ("peer/\"1\"", -0.0), ("m", 1e300), ("n", 3.0)];
    let mut log = MetricsLog::open(&path).expect("a new log");
    log.append(0, &[]).expect("written");
    log.append(u64::MAX, &values).expect("written");
    let rows = read_metrics(&path).expect("readable");
    assert_eq!((rows[0].step, rows[1].step), (0, u64::MAX));
    for ((name, value), (found_name, found)) in values.iter().zip(&rows[1].values) {
        assert_eq!((*name, value.to_bits()), (found_name.as_str(), found.to_bits()));
    }
    assert_eq!(
        fs::read_to_string(&path).expect("readable"),
        "{\"step\":0}\n{\"step\":18446744073709551615,\"z\":0.30000000000000004,\"a\":2.2250738585072014e-308,\
         \"peer/\\\"1\\\"\":-0.0,\"m\":1e+300,\"n\":3.0}\n"
    );
}

#[test]
fn invalid_rows_are_rejected_and_not_written() {
    let scratch = scratch();
    let path = scratch.path().join("metrics.jsonl");
    let mut log = MetricsLog::open(&path).expect("a new log");
    append(&mut log, 10);
    let before = fs::read(&path).expect("readable");
    let mut check = |step: u64, values: &[(&str, f64)], words: &str| {
        let error = log.append(step, values).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(fs::read(&path).expect("readable"), before);
    };
    check(
        20,
        &[("fine", 1.0), ("losses/value_loss", f64::NAN)],
        "metric losses/value_loss is NaN at step 20",
    );
    check(20, &[("a", f64::INFINITY)], "metric a is inf");
    check(20, &[("step", 1.0)], "metric name \"step\"");
    check(20, &[("a", 1.0), ("a", 1.0)], "each name once");
    check(20, &[("", 1.0)], "metric name \"\"");
    check(20, &[("a\nb", 1.0)], "printable");
    check(10, &[], "step 10 after step 10");
    append(&mut log, 20);
}

/// Interrupts a run after the checkpoint of step 50, resumes it from there, and compares it with an uninterrupted run.
#[track_caller]
fn check(n_rows_before_death: u64, harm: impl Fn(&mut Vec<u8>), expected_cut: usize) {
    let scratch = scratch();
    let path = scratch.path().join("metrics.jsonl");
    let mut log = MetricsLog::open(&path).expect("a new log");
    (1..=n_rows_before_death).for_each(|step| append(&mut log, step * 10));
    drop(log);
    let mut contents = fs::read(&path).expect("readable");
    harm(&mut contents);
    fs::write(&path, contents).expect("written");

    let mut log = MetricsLog::open(&path).expect("an incomplete end is accepted");
    assert_eq!(log.truncate_after(50).expect("cut"), expected_cut);
    assert_eq!(log.last_step(), Some(50));
    (6..=10).for_each(|step| append(&mut log, step * 10));
    log.sync().expect("synced");
    assert_eq!(fs::read(&path).expect("readable"), uninterrupted(scratch.path()));
}

#[test]
fn stopped_right_after_the_checkpoint() {
    check(5, |_| (), 0);
}

#[test]
fn killed_rows_after_the_checkpoint() {
    check(8, |_| (), 3);
}

#[test]
fn killed_within_a_row() {
    check(8, |it| it.truncate(it.len() - 7), 2);
}

#[test]
fn killed_before_the_line_feed() {
    check(8, |it| it.truncate(it.len() - 1), 2);
}

#[test]
fn power_lost_with_zeros_at_the_end() {
    check(8, |it| it.extend([0; 4096]), 3);
}

#[test]
fn a_reader_of_a_live_run_sees_whole_rows_only() {
    let scratch = scratch();
    let path = scratch.path().join("metrics.jsonl");
    fs::write(&path, "{\"step\":1,\"a\":2.0}\n{\"step\":2,\"a\":").expect("written");
    let rows = read_metrics(&path).expect("readable");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].values, [("a".to_owned(), 2.0)]);
}

#[test]
fn damage_before_good_rows_is_not_cut_away() {
    let scratch = scratch();
    let path = scratch.path().join("metrics.jsonl");
    let mut contents = uninterrupted(scratch.path());
    contents[3] ^= 1;
    fs::write(&path, &contents).expect("written");
    let error = MetricsLog::open(&path).expect_err("damaged");
    assert!(matches!(error, LabError::DamagedLog { at_byte: 0, .. }), "{error}");
    assert!(read_metrics(&path).is_err());
    assert_eq!(fs::read(&path).expect("readable"), contents, "the file is unchanged");
}
