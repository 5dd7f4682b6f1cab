//! Kills of real processes. The parent test starts this test binary as a child process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pace_lab::{CheckpointLimits, RunFolder};

use crate::{scratch, spec};

const CHILD: &str = "PACE_LAB_CHILD";

/// The command that runs one test of this binary as a child. The test reads the task from the variable.
pub(crate) fn child(test: &str, value: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test binary"));
    command
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, value)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The task from the parent; `None` in a normal test run.
pub(crate) fn asked() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// The child: writes rows and checkpoints until it is killed.
#[test]
fn child_saves_for_ever() {
    let Some(folder) = asked() else { return };
    let run = RunFolder::create(&folder, "", spec()).expect("a new run");
    let store = run.checkpoints(CheckpointLimits::default()).expect("a store");
    let mut metrics = run.metrics().expect("a log");
    for step in 1.. {
        metrics.append(step, &[("loss", 0.5)]).expect("written");
        metrics.sync().expect("synced");
        let model = step.to_le_bytes().repeat(10_000);
        store.save(step, &[("model", &model), ("state", b"{}")]).expect("saved");
    }
}

#[test]
fn a_killed_run_has_a_whole_checkpoint_and_all_rows_up_to_it() {
    let scratch = scratch();
    for n in 0..4 {
        let folder = scratch.path().join(format!("run-{n}"));
        let mut process = child("processes::child_saves_for_ever", &folder).spawn().expect("a child");
        let deadline = Instant::now() + Duration::from_secs(20);
        while !folder.join("checkpoints/000000000002").exists() {
            assert!(Instant::now() < deadline, "the child saves nothing");
            sleep(Duration::from_millis(1));
        }
        if n == 0 {
            let error = RunFolder::open(&folder).expect_err("in use").to_string();
            assert!(error.contains(&format!("by process {}", process.id())), "{error}");
        }
        // Each kill hits another part of a save.
        sleep(Duration::from_micros(1100 * n));
        process.kill().expect("killed");
        process.wait().expect("dead");

        let run = RunFolder::open(&folder).expect("the lock of a dead process is free");
        let store = run.checkpoints(CheckpointLimits::default()).expect("a store");
        let newest = store.load_newest_valid().expect("readable").expect("at least two were saved");
        assert!(newest.skipped.is_empty(), "{:?}", newest.skipped);
        assert_eq!(newest.file("model").expect("there"), newest.step.to_le_bytes().repeat(10_000));
        let mut metrics = run.metrics().expect("an incomplete end is accepted");
        metrics.truncate_after(newest.step).expect("cut");
        let steps: Vec<u64> = run.view().metrics().expect("readable").iter().map(|row| row.step).collect();
        assert_eq!(steps, (1..=newest.step).collect::<Vec<_>>());
    }
}
