//! A test on a full disk. It runs only if `PACE_SMALL_DISK` is the path of a small empty disk:
//!
//! ```text
//! cargo test -p pace-lab --test it --no-run    # prints the binary's path
//! sudo unshare -m bash -c "mount -t tmpfs -o size=600k none /mnt && PACE_SMALL_DISK=/mnt BINARY full_disk"
//! ```
//!
//! The unit tests of `durable` and `checkpoint` simulate a full disk at every single write.

use std::path::Path;

use pace_lab::{CheckpointLimits, LabError, RunFolder, RunStatus};

use crate::spec;

#[test]
fn a_full_disk_does_not_damage_saved_data() {
    let Some(disk) = std::env::var_os("PACE_SMALL_DISK") else { return };
    let mut run = RunFolder::create(&Path::new(&disk).join("run"), "", spec()).expect("a new run");
    let store = run.checkpoints(CheckpointLimits::default()).expect("a store");
    let mut metrics = run.metrics().expect("a log");
    metrics.append(1, &[("loss", 0.5)]).expect("room");
    let mut error = None;
    for step in 1..1000 {
        // The disk has no space for a fourth of these.
        match store.save(step, &[("model", &[step as u8; 200_000]), ("state", b"{}")]) {
            Ok(saved) => assert!(saved.prune_error.is_none()),
            Err(full) => {
                error = Some(full);
                break;
            }
        }
    }
    let error = error.expect("the disk is small");
    assert!(matches!(error, LabError::StorageFull { .. }), "{error}");
    let newest = store.load_newest_valid().expect("readable").expect("some were saved");
    assert!(newest.skipped.is_empty());
    assert_eq!(newest.file("model").expect("there"), [newest.step as u8; 200_000]);

    // The disk is filled to the last byte: a failed row leaves no partial row.
    let filler = Path::new(&disk).join("filler");
    assert!(std::fs::write(&filler, vec![0; 1 << 20]).is_err(), "the disk is small");
    let mut n_rows = 1;
    let error = loop {
        match metrics.append(n_rows + 1, &[("loss", 0.5)]) {
            Ok(()) => n_rows += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LabError::StorageFull { .. }), "{error}");
    let before = run.manifest().clone();
    let error = run.record_wall_clock().expect_err("no room for a draft");
    assert!(matches!(error, LabError::StorageFull { .. }), "{error}");
    assert_eq!(run.view().manifest().expect("readable"), before);

    std::fs::remove_file(filler).expect("removed");
    metrics.append(n_rows + 1, &[("loss", 0.5)]).expect("room again");
    assert_eq!(run.view().metrics().expect("readable").len() as u64, n_rows + 1);
    run.end(RunStatus::Stopped).expect("room again");
}
