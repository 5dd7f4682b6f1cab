//! Crash bundles of failed runs.

use std::fs;

use pace_lab::{LabError, write_crash_bundle};

use crate::scratch;

#[test]
fn the_second_bundle_of_a_step_does_not_replace_the_first() {
    let scratch = scratch();
    let first =
        write_crash_bundle(scratch.path(), 500, "loss is NaN", &[("batch.json", b"[]")]).expect("written");
    assert_eq!(first, scratch.path().join("crash/000000000500"));
    assert_eq!(fs::read_to_string(first.join("reason.txt")).expect("there"), "loss is NaN\n");
    assert_eq!(fs::read(first.join("batch.json")).expect("there"), b"[]");
    let second = write_crash_bundle(scratch.path(), 500, "loss is NaN again\n", &[]).expect("written");
    assert_eq!(second, scratch.path().join("crash/000000000500-2"));
    assert_eq!(fs::read_dir(scratch.path().join("crash")).expect("readable").count(), 2);
    for name in ["reason.txt", "../escape"] {
        let error = write_crash_bundle(scratch.path(), 1, "", &[(name, b"")]).expect_err("refused");
        assert!(matches!(error, LabError::BadFileName { .. }), "{error}");
    }
}
