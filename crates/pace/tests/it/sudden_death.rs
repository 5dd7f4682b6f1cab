//! Processes that are killed, or whose disk is full, at a chosen system call. These tests need `strace`: without it they do
//! nothing, and with `REQUIRE_STRACE=1` they fail. `PACE_THOROUGH=1` kills every method at every call.
//!
//! The writes of the crate that owns run folders fail one by one in `pace-lab/src/training.rs`, without another program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use pace_learn::METHODS;

use crate::training::{FAILURE, FINISHED, check, finished, pace, results, scratch, text, with};

/// The system calls that change files. Killing a process at any other call leaves the same files as killing it at the next of
/// these.
const CHANGES: &str =
    "?mkdir,?mkdirat,openat,write,?rename,?renameat,?renameat2,ftruncate,fsync,?unlink,unlinkat,?rmdir";

/// Whether `strace` works here. If not, a message is printed.
fn has_strace() -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null", "true"]);
    if command.output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    assert!(std::env::var_os("REQUIRE_STRACE").is_none(), "REQUIRE_STRACE is set and strace does not work");
    let _ = writeln!(std::io::stderr(), "skipped: this test needs strace (apt install strace)");
    false
}

/// `pace` with these arguments in a folder, under strace with these options.
fn traced(folder: &Path, options: &[&str], arguments: &[OsString]) -> Command {
    let mut command = Command::new("strace");
    command
        .current_dir(folder)
        .args(["-f", "-qq"])
        .args(options)
        .arg(env!("CARGO_BIN_EXE_pace"))
        .args(arguments);
    command
}

/// The command that trains a run of one iteration into a folder. GSCU falls back on the run in `generalist`.
fn train(method: &str, run: &str) -> Vec<OsString> {
    let small = [
        "encounters_per_tuple=1",
        "episodes_per_encounter=2",
        "epochs=1",
        "minibatches=1",
        "warm_up_steps=0",
    ];
    let of_gscu = [
        "gscu.conservative=run",
        "gscu.conservative_run=generalist",
        "gscu.embedding_steps=10",
        "gscu.embedding_encounters_per_tuple=1",
        "gscu.embedding_epochs=1",
    ];
    let own = if method == "gscu" { &of_gscu[..] } else { &[] };
    let keys = small.iter().chain(own).flat_map(|key| ["--set", key]);
    let width = ["--set", "hidden_width=4", "--set", "encoder_width=4", "--threads", "1"];
    let head = ["train", "kuhn-poker", "--steps", "10", "--method", method, "--out", run];
    head.into_iter().chain(keys).chain(width).map(OsString::from).collect()
}

/// The calls of the main thread from the first that names the run until its first checkpoint: their names, and their
/// numbers among the calls of the same name.
fn calls_of_a_start(trace: &str, run: &str) -> Vec<(String, usize)> {
    let main_thread = trace.split_whitespace().next().expect("a trace");
    let mut counts = BTreeMap::new();
    let (mut has_begun, mut calls) = (false, Vec::new());
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ').map(|(thread, call)| (thread, call.trim_start()))
        else {
            continue;
        };
        let Some((name, arguments)) = call.split_once('(') else { continue };
        if thread != main_thread || name.contains(' ') {
            continue;
        }
        if arguments.contains("checkpoints/.staged-") {
            break;
        }
        let n: &mut usize = counts.entry(name.to_owned()).or_default();
        *n += 1;
        has_begun |= arguments.contains(&format!("\"{run}"));
        // A file that is opened for reading does not change.
        if has_begun && (name != "openat" || arguments.contains("O_CREAT")) {
            calls.push((name.to_owned(), *n));
        }
    }
    calls
}

#[test]
fn a_run_killed_at_any_system_call_of_its_start_can_be_started_or_resumed() {
    if !has_strace() {
        return;
    }
    let scratch = scratch();
    let folder = scratch.path();
    let in_folder = |arguments: &[OsString]| {
        let mut command = pace(arguments);
        command.current_dir(folder);
        command
    };
    check(&mut in_folder(&train("generalist", "generalist")), FINISHED);
    for method in METHODS {
        let id = method.id;
        let trace = folder.join(format!("trace-{id}"));
        let only = format!("trace={CHANGES}");
        let output = ["-o", trace.to_str().expect("UTF-8"), "-e", &only];
        check(&mut traced(folder, &output, &train(id, &format!("alone-{id}"))), FINISHED);
        let expected = results(&folder.join(format!("alone-{id}")));
        let trace = fs::read_to_string(trace).expect("readable");
        let calls = calls_of_a_start(&trace, &format!("alone-{id}"));
        assert!(calls.len() > 20, "{id}: {calls:?}");
        // All methods start alike, except the one that copies another agent.
        let is_every = id == "gscu" || std::env::var_os("PACE_THOROUGH").is_some_and(|value| value == "1");
        let step = if is_every { 1 } else { calls.len().div_ceil(3) };
        for (name, n) in calls.iter().step_by(step) {
            let place = format!("{id} at {name} {n}");
            let run = format!("{id}-{name}-{n}");
            let path = folder.join(&run);
            let inject = format!("inject={name}:signal=SIGKILL:when={n}");
            let command = train(id, &run);
            let output =
                traced(folder, &["-o", "/dev/null", "-e", &inject], &command).output().expect("strace runs");
            assert_eq!(output.status.code(), None, "{place}: not killed, {}", text(&output.stderr));
            let has_copy = || path.join("conservative/model.safetensors").is_file();
            // A folder is a run once it has a manifest.
            let again = if path.join("manifest.json").exists() {
                assert!(id != "gscu" || has_copy(), "{place}: a run without its fallback agent");
                with("resume", Path::new(&run), &["--threads", "1"])
            } else {
                command
            };
            let output = in_folder(&again).output().expect("the binary runs");
            assert_eq!(output.status.code(), Some(FINISHED), "{place}: {}", text(&output.stderr));
            assert!(results(&path) == expected, "{place}: another run");
            assert_eq!(has_copy(), id == "gscu", "{place}");
            let drafts = fs::read_dir(&path).expect("readable").flatten();
            let is_draft = |name: OsString| name.to_string_lossy().starts_with('.');
            assert!(!drafts.into_iter().any(|entry| is_draft(entry.file_name())), "{place}: drafts are left");
            fs::remove_dir_all(&path).expect("removable");
        }
    }
}

#[test]
fn a_full_disk_does_not_cost_the_results_of_an_evaluation() {
    if !has_strace() {
        return;
    }
    let (scratch, run) = finished();
    // Results are written with a rename, so renames fail.
    let full = "inject=?rename,?renameat,?renameat2:error=ENOSPC";
    let command = with("adapt", &run, &["--encounters", "1", "--episodes", "2"]);
    let output = check(&mut traced(scratch.path(), &["-o", "/dev/null", "-e", full], &command), FAILURE);
    let (shown, message) = (text(&output.stdout), text(&output.stderr));
    assert!(shown.contains("bayes"), "{shown}");
    let begin = "error: the results were printed, but not all of them could be saved: no space left";
    assert!(message.starts_with(begin) && message.lines().count() == 1, "{message}");
    assert!(message.trim_end().ends_with("free some space"), "{message}");
    assert_eq!(fs::read_dir(run.join("adapt")).expect("readable").count(), 0, "no drafts are left");
}
