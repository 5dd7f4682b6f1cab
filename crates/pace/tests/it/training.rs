//! Runs with the real binary: trained, stopped, killed, resumed, damaged, inspected and evaluated.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use pace_games::GAMES;
use pace_lab::{CheckpointLimits, CheckpointStore, RunStatus, RunView};
use pace_learn::METHODS;
use serde_json::Value;
use tempfile::TempDir;

pub const FINISHED: i32 = 0;
pub const FAILURE: i32 = 1;
pub const USAGE: i32 = 2;
pub const BAD_INPUT: i32 = 3;
const DIVERGED: i32 = 4;
pub const STOPPED: i32 = 75;

pub fn pace<S: AsRef<OsStr>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pace"));
    command.args(arguments);
    command
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// Runs a command, checks its exit code and returns its output.
pub fn check(command: &mut Command, code: i32) -> Output {
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}", text(&output.stderr));
    output
}

/// Checks that a command fails with this code and one line that contains all `fragments`, and prints nothing else.
pub fn check_error<S: AsRef<OsStr>>(arguments: &[S], code: i32, fragments: &[&str]) {
    let output = check(&mut pace(arguments), code);
    let message = text(&output.stderr);
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for fragment in fragments {
        assert!(message.contains(fragment), "no {fragment:?} in {message}");
    }
}

/// The arguments of a run of six iterations and a fraction of a second.
pub fn train(out: &Path, more: &[&str]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "train",
        "kuhn-poker",
        "--seed",
        "3",
        "--set",
        "total_steps=30000",
        "--set",
        "encounters_per_tuple=1",
    ]
    .into_iter()
    .chain(["--set", "epochs=2", "--set", "minibatches=2", "--set", "checkpoint_every=1"])
    .chain(["--set", "warm_up_steps=6000", "--set", "learning_rate_decay=linear"])
    .chain(more.iter().copied())
    .map(OsString::from)
    .collect();
    arguments.extend(["--out".into(), out.into()]);
    arguments
}

pub fn with(verb: &str, run: &Path, more: &[&str]) -> Vec<OsString> {
    let mut arguments = vec![OsString::from(verb), run.into()];
    arguments.extend(more.iter().map(OsString::from));
    arguments
}

pub fn scratch() -> TempDir {
    tempfile::tempdir().expect("a scratch folder")
}

/// A finished run in a folder of its own.
pub fn finished() -> (TempDir, PathBuf) {
    let scratch = scratch();
    let run = scratch.path().join("run");
    check(&mut pace(&train(&run, &[])), FINISHED);
    (scratch, run)
}

/// The files that are equal in equal runs: the last checkpoint, the log and the configuration.
pub fn results(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |path: PathBuf| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut results = BTreeMap::new();
    for name in ["config.toml", "metrics.jsonl"] {
        results.insert(name.to_owned(), read(run.join(name)));
    }
    let last = checkpoints(run).pop().expect("a checkpoint");
    for name in
        ["model.safetensors", "adam_first.safetensors", "adam_second.safetensors", "state.json", "DONE"]
    {
        results.insert(format!("{}/{name}", last.display()), read(run.join(&last).join(name)));
    }
    results
}

/// The checkpoint folders of a run, relative to it, from old to new.
fn checkpoints(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join("checkpoints")).expect("readable");
    let mut names: Vec<PathBuf> =
        entries.map(|entry| Path::new("checkpoints").join(entry.expect("readable").file_name())).collect();
    names.sort();
    names
}

fn status(run: &Path) -> (RunStatus, u32) {
    let manifest = RunView::open(run).and_then(|view| view.manifest()).expect("a manifest");
    (manifest.status, manifest.n_resumes)
}

/// The steps of the events in a run's TensorBoard file, by the frames of the format.
fn tensorboard_steps(run: &Path) -> Vec<u64> {
    let entry = fs::read_dir(run.join("tb")).expect("readable").next().expect("one file").expect("readable");
    let contents = fs::read(entry.path()).expect("readable");
    let mut rest = &contents[..];
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().expect("eight bytes")) as usize;
        // The event: a time in nine bytes, then the step as field 2; the first event has a version there instead.
        let event = &rest[12..12 + length];
        if event[9] == 2 << 3 {
            let n_bytes = event[10..].iter().position(|byte| byte & 0x80 == 0).expect("an end") + 1;
            let bytes = event[10..10 + n_bytes].iter().rev();
            steps.push(bytes.fold(0, |step, byte| step << 7 | u64::from(byte & 0x7f)));
        }
        rest = &rest[16 + length..];
    }
    steps
}

/// A running command, which is killed on drop.
struct Running(Child);

impl Running {
    fn start(arguments: &[OsString]) -> Running {
        Running(pace(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary runs"))
    }

    /// Sends a signal and waits for the end. Returns the exit code, or `None` if the signal killed the process.
    fn end(mut self, signal: &str) -> Option<i32> {
        // The process may have just ended on its own.
        let _ = Command::new("kill").args([signal, &self.0.id().to_string()]).stderr(Stdio::null()).status();
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the run has `n` rows, so that a signal interrupts it during training.
fn wait_for_rows(run: &Path, n: usize) {
    let begin = Instant::now();
    let n_rows = || {
        fs::read(run.join("metrics.jsonl")).map_or(0, |rows| rows.split(|byte| *byte == b'\n').count() - 1)
    };
    while n_rows() < n {
        assert!(begin.elapsed() < Duration::from_secs(60), "no {n} rows in {}", run.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A duration that differs between runs of the tests, to interrupt processes at different points.
pub fn some_milliseconds(below: u32) -> Duration {
    let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").subsec_nanos();
    Duration::from_micros(u64::from(nanos / 1000 % (below * 1000)))
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let scratch = scratch();
    let run = |n_threads: &str| {
        let out = scratch.path().join(n_threads);
        let output = check(&mut pace(&train(&out, &["--threads", n_threads])), FINISHED);
        assert_eq!(text(&output.stdout).trim(), out.display().to_string());
        results(&out)
    };
    let one = run("1");
    assert!(one == run("2"));
    assert!(one == run("3"));
}

#[test]
fn stopped_and_killed_runs_end_like_an_uninterrupted_one() {
    let (scratch, alone) = finished();
    let expected = results(&alone);
    let rows = RunView::open(&alone).and_then(|view| view.metrics()).expect("rows");
    let steps: Vec<u64> = rows.iter().map(|row| row.step).collect();
    assert_eq!((steps.len(), status(&alone)), (6, (RunStatus::Finished, 0)));
    assert_eq!(tensorboard_steps(&alone), steps);

    // Asked to stop, once while it trains for the first time and once while it was resumed.
    let stopped = scratch.path().join("stopped");
    let mut n_stops = 0;
    let mut running = Running::start(&train(&stopped, &["--threads", "1"]));
    wait_for_rows(&stopped, 1);
    loop {
        std::thread::sleep(some_milliseconds(10));
        match running.end("-TERM") {
            Some(FINISHED) => break,
            Some(STOPPED) => {
                n_stops += 1;
                assert_eq!(status(&stopped).0, RunStatus::Stopped);
            }
            // A signal before the program has installed its handler kills it.
            code => assert_eq!(code, None),
        }
        if n_stops == 2 {
            check(&mut pace(&with("resume", &stopped, &[])), FINISHED);
            break;
        }
        running = Running::start(&with("resume", &stopped, &["--threads", "2"]));
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(n_stops > 0, "the signal always came too late");
    assert!(results(&stopped) == expected);
    assert_eq!(tensorboard_steps(&stopped), steps);
    assert_eq!(status(&stopped).0, RunStatus::Finished);

    // Killed at any moment, several times.
    let killed = scratch.path().join("killed");
    let mut running = Running::start(&train(&killed, &[]));
    wait_for_rows(&killed, 1);
    for n_threads in ["1", "2", "3", "1", "2"] {
        std::thread::sleep(some_milliseconds(60));
        running.end("-KILL");
        running = Running::start(&with("resume", &killed, &["--threads", n_threads]));
    }
    std::thread::sleep(some_milliseconds(60));
    running.end("-KILL");
    check(&mut pace(&with("resume", &killed, &[])), FINISHED);
    assert!(results(&killed) == expected);
    assert_eq!(tensorboard_steps(&killed), steps);

    // Resuming a finished run changes nothing.
    let output = check(&mut pace(&with("resume", &alone, &[])), FINISHED);
    assert!(text(&output.stderr).contains("already finished"), "{}", text(&output.stderr));
    assert!(results(&alone) == expected);
}

#[test]
fn a_longer_budget_continues_where_the_shorter_one_ended() {
    let scratch = scratch();
    // Nothing but the learning rate's decay depends on the budget; without it, the longer run begins like the shorter.
    let constant = ["--set", "learning_rate_decay=constant"];
    let (short, long) = (scratch.path().join("short"), scratch.path().join("long"));
    check(&mut pace(&train(&short, &[&constant[..], &["--set", "total_steps=15000"]].concat())), FINISHED);
    check(&mut pace(&train(&long, &constant)), FINISHED);
    edit(&short.join("config.toml"), "total_steps = 15000", "total_steps = 30000");
    check(&mut pace(&with("resume", &short, &[])), FINISHED);
    let without_state = |run: &Path| {
        let mut results = results(run);
        results.retain(|name, _| name != "config.toml");
        results
    };
    assert!(without_state(&short) == without_state(&long));
}

/// The documentation of a method: the page with the table of methods, and the page named there for this method.
fn documented(method: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/methods");
    let read =
        |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|_| panic!("docs/methods/{name}"));
    let index = read("README.md");
    let row = index.lines().find(|line| line.starts_with(&format!("| `{method}` |")));
    let row = row.unwrap_or_else(|| panic!("docs/methods/README.md has no row for {method}"));
    let (_, rest) = row.split_once("](").expect("a link to a page");
    let page = read(rest.split_once(')').expect("its end").0);
    assert!(page.contains(method), "the page named for {method} does not mention it");
    index + &page
}

#[test]
fn every_method_has_a_row_in_the_docs_and_no_other() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/methods/README.md"));
    let page = page.expect("the page");
    let (table, _) = page.split_once("\n\nA method is").expect("the table comes first");
    let named: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name))
        .collect();
    assert_eq!(named, METHODS.iter().map(|method| method.id).collect::<Vec<_>>());
}

#[test]
fn every_method_trains_on_every_game() {
    let scratch = scratch();
    for entry in GAMES {
        for method in METHODS {
            let out = scratch.path().join(format!("{}-{}", entry.id, method.id));
            let arguments = ["train", entry.id, "--method", method.id, "--steps", "10"]
                .into_iter()
                .chain(["--set", "encounters_per_tuple=1", "--set", "epochs=1", "--set", "warm_up_steps=0"])
                .chain(["--set", "episodes_per_encounter=2"]);
            let own = if method.id == "gscu" { &SMALL_GSCU[..] } else { &[] };
            let mut arguments: Vec<OsString> =
                arguments.chain(own.iter().copied()).map(OsString::from).collect();
            arguments.extend(["--out".into(), out.clone().into()]);
            check(&mut pace(&arguments), FINISHED);
            let config = fs::read_to_string(out.join("config.toml")).expect("readable");
            assert!(config.contains(&format!("method = \"{}\"", method.id)), "{config}");
            let explores = matches!(method.id, "pace" | "pace-tf");
            assert!(explores || config.contains("exploration_weight = 0.0"), "{config}");
            check(&mut pace(&with("adapt", &out, &["--encounters", "1"])), FINISHED);
            // Every metric it logs is explained on its page.
            let explained = documented(method.id);
            for row in RunView::open(&out).and_then(|view| view.metrics()).expect("rows") {
                for (name, _) in row.values {
                    assert!(explained.contains(&format!("`{name}`")), "{name} is not in docs/methods");
                }
            }
        }
    }
}

/// Keys for a short first stage, and a fallback agent that exists in every game.
pub const SMALL_GSCU: [&str; 6] = [
    "--set",
    "gscu.embedding_encounters_per_tuple=1",
    "--set",
    "gscu.embedding_epochs=1",
    "--set",
    "gscu.conservative=random",
];

#[test]
fn gscu_keeps_a_copy_of_its_fallback_agent() {
    let scratch = scratch();
    let (generalist, run) = (scratch.path().join("generalist"), scratch.path().join("gscu"));
    let arguments = |method: &'static str, out: &Path, more: &[&str]| -> Vec<OsString> {
        let common = ["train", "overcooked", "--method", method, "--set", "encounters_per_tuple=1"];
        let common = common.into_iter().chain(["--set", "epochs=1", "--set", "episodes_per_encounter=2"]);
        let mut all: Vec<OsString> = common.chain(more.iter().copied()).map(OsString::from).collect();
        all.extend(["--out".into(), out.into()]);
        all
    };
    check(&mut pace(&arguments("generalist", &generalist, &["--steps", "10"])), FINISHED);
    let named = format!("gscu.conservative_run={}", generalist.display());
    let keys = [&SMALL_GSCU[..4], &["--set", "gscu.embedding_steps=4000", "--steps", "6000"]].concat();
    let missing = ["gscu.conservative_run", "--method generalist"];
    check_error(&arguments("gscu", &run, &keys), BAD_INPUT, &missing);
    assert!(!run.exists(), "a run that cannot be leaves no folder");
    let other = scratch.path().join("kuhn");
    check(&mut pace(&train(&other, &["--steps", "10"])), FINISHED);
    let wrong = format!("gscu.conservative_run={}", other.display());
    let of_other_game = [&keys[..], &["--set", &wrong]].concat();
    check_error(&arguments("gscu", &run, &of_other_game), BAD_INPUT, &["a run of overcooked"]);
    check(&mut pace(&arguments("gscu", &run, &[&keys[..], &["--set", &named]].concat())), FINISHED);
    let log = fs::read_to_string(run.join("metrics.jsonl")).expect("readable");
    assert!(log.lines().next().is_some_and(|row| row.contains("embedding/cross_entropy")), "{log}");
    assert!(log.lines().last().is_some_and(|row| row.contains("losses/policy_loss")), "{log}");
    // A run of an earlier build that was killed may lack the copy: it is created as long as the other run exists.
    fs::remove_dir_all(run.join("conservative")).expect("removable");
    check(&mut pace(&with("resume", &run, &[])), FINISHED);
    // With the copy, the run does not need the other run.
    fs::remove_dir_all(&generalist).expect("removable");
    check(&mut pace(&with("adapt", &run, &["--encounters", "1"])), FINISHED);
    check(&mut pace(&with("inspect", &run, &[])), FINISHED);
    edit(&run.join("config.toml"), "total_steps = 6000", "total_steps = 8000");
    check(&mut pace(&with("resume", &run, &[])), FINISHED);
    assert!(run.join("conservative/model.safetensors").is_file());
    assert!(fs::read_to_string(run.join("metrics.jsonl")).expect("readable").len() > log.len());
}

#[test]
fn the_hash_in_a_record_does_not_depend_on_where_folders_lie() {
    let scratch = scratch();
    let small = ["--steps", "10", "--set", "warm_up_steps=0", "--set", "episodes_per_encounter=2"];
    let hashes = ["here", "there"].map(|place| {
        let lab = scratch.path().join(place);
        let (generalist, gscu) = (lab.join("generalist"), lab.join("gscu"));
        check(&mut pace(&train(&generalist, &[&small[..], &["--method", "generalist"]].concat())), FINISHED);
        let named = format!("gscu.conservative_run={}", generalist.display());
        let more = [&small[..], &["--method", "gscu"], &SMALL_GSCU[..4]].concat();
        let more = [&more[..], &["--set", "gscu.conservative=run", "--set", &named]].concat();
        check(&mut pace(&train(&gscu, &more)), FINISHED);
        let output = check(&mut pace(&with("adapt", &gscu, &["--encounters", "1", "--json"])), FINISHED);
        let record: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        record["run"]["config_hash"].as_str().expect("a hash").to_owned()
    });
    assert_eq!(hashes[0], hashes[1]);
}

/// Every file and folder of a run with its bytes.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(everything(&path));
            found.insert(path, Vec::new());
        } else {
            let bytes = fs::read(&path).expect("readable");
            found.insert(path, bytes);
        }
    }
    found
}

#[test]
fn a_run_without_its_checkpoints_is_refused_and_keeps_its_rows() {
    let (scratch, run) = finished();
    let expected = results(&run);
    check(&mut pace(&with("adapt", &run, &["--encounters", "1", "--episodes", "2"])), FINISHED);
    // A run as kept in a repository: without checkpoints, lock and empty folders.
    let record = scratch.path().join("record");
    fs::create_dir(&record).expect("made");
    for name in ["config.toml", "manifest.json", "metrics.jsonl"] {
        fs::copy(run.join(name), record.join(name)).expect("copied");
    }
    copy_folder(&run.join("adapt"), &record.join("adapt"));
    let refused = |run: &Path| {
        let before = everything(run);
        let verbs = ["resume", "adapt", "watch", "play"].map(|verb| with(verb, run, &[]));
        for arguments in verbs.into_iter().chain([train(run, &[])]) {
            let output = check(&mut pace(&arguments), BAD_INPUT);
            let (verb, message) = (&arguments[0], text(&output.stderr));
            assert!(message.lines().count() == 1 && !message.contains("pace resume"), "{verb:?}: {message}");
            for words in
                ["was trained for ", " and has no checkpoint", "copy its checkpoints folder", "--out"]
            {
                assert!(message.contains(words), "{verb:?}: no {words:?} in {message}");
            }
            assert!(everything(run) == before, "{verb:?} changed the record");
        }
        let shown = check(&mut pace(&with("inspect", run, &[])), FINISHED);
        let shown = text(&shown.stdout);
        assert!(shown.contains("checkpoint   none") && !shown.contains("pace resume"), "{shown}");
    };
    refused(&record);
    let arguments = ["quickstart".into(), "--out".into(), record.clone().into_os_string()];
    let output = check(&mut pace(&arguments), BAD_INPUT);
    assert!(text(&output.stderr).contains("has no checkpoint"), "{}", text(&output.stderr));
    // A run that was stopped was saved; one that was killed has few rows without a checkpoint.
    for status in ["stopped", "running", "failed"] {
        let copy = scratch.path().join(status);
        copy_folder(&record, &copy);
        edit(&copy.join("manifest.json"), "\"finished\"", &format!("\"{status}\""));
        refused(&copy);
    }
    // Killed before its first checkpoint, a run begins again.
    let killed = scratch.path().join("running");
    let rows = fs::read_to_string(killed.join("metrics.jsonl")).expect("readable");
    let first = rows.lines().next().expect("a row");
    fs::write(killed.join("metrics.jsonl"), format!("{first}\n")).expect("written");
    check_error(&with("adapt", &killed, &[]), BAD_INPUT, &["has no checkpoint yet", "pace resume"]);
    check(&mut pace(&with("resume", &killed, &[])), FINISHED);
    assert!(results(&killed) == expected);
}

#[test]
fn adapt_makes_its_folder_before_it_plays() {
    let (_scratch, run) = finished();
    let adapt = run.join("adapt");
    // Version control keeps no empty folders.
    fs::remove_dir(&adapt).expect("empty");
    check(&mut pace(&with("adapt", &run, &["--encounters", "1", "--episodes", "2"])), FINISHED);
    assert!(adapt.join("test-episodes-2.json").is_file());
    let names = fs::read_dir(&adapt).expect("readable").count();
    assert_eq!(names, 1, "the record alone");
    // A million encounters would take hours: the folder is checked before they are played.
    fs::remove_dir_all(&adapt).expect("removable");
    fs::write(&adapt, "a file").expect("written");
    let begin = Instant::now();
    let refused = |more: &[&str], words: &[&str]| {
        let mut child = pace(&with("adapt", &run, &[&["--encounters", "1000000"], more].concat()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        while child.try_wait().expect("a child").is_none() {
            if begin.elapsed() > Duration::from_secs(60) {
                child.kill().expect("killed");
                panic!("it plays before it looks where to write");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().expect("ended");
        let message = text(&output.stderr);
        assert!(message.lines().count() == 1 && output.stdout.is_empty(), "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(&[], &["error: cannot create", "adapt", "is a file, expected a folder"]);
    fs::remove_file(&adapt).expect("removable");
    let latents = run.join("config.toml/latents.csv");
    refused(&["--latents", latents.to_str().expect("UTF-8")], &["error: cannot create", "config.toml"]);
}

#[test]
fn results_that_cannot_be_saved_are_printed() {
    let (_scratch, run) = finished();
    // A folder in the place of the page, which is written last.
    fs::create_dir(run.join("report.html")).expect("made");
    for json in [false, true] {
        let more = ["--encounters", "1", "--episodes", "2", "--json"];
        let more = &more[..if json { 5 } else { 4 }];
        let output = check(&mut pace(&with("adapt", &run, more)), FAILURE);
        let (shown, message) = (text(&output.stdout), text(&output.stderr));
        let expected = if json { "\"standard_error\"" } else { "bayes" };
        assert!(shown.contains(expected), "{shown}");
        let begin = "error: the results were printed, but not all of them could be saved: cannot rename";
        assert!(message.starts_with(begin) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn adapt_and_report_write_one_page() {
    let scratch = scratch();
    let run = scratch.path().join("run");
    check(&mut pace(&train(&run, &["--scale", "0.5"])), FINISHED);
    check(&mut pace(&with("adapt", &run, &["--encounters", "2"])), FINISHED);
    check(
        &mut pace(&with("adapt", &run, &["--encounters", "2", "--switch-at", "50", "--pool", "train"])),
        FINISHED,
    );
    let read = || fs::read_to_string(run.join("report.html")).expect("a page");
    let page = read();
    for words in ["Scaled run: trained for 50", "Other evaluations of the same agent", "train-switch-50"] {
        assert!(page.contains(words), "no {words:?}");
    }
    check(&mut pace(&with("report", &run, &[])), FINISHED);
    assert!(read() == page, "the page of `pace adapt` is that of `pace report`");
    let pages = fs::read_dir(&run).expect("readable").flatten();
    let is_page = |name: &OsString| name.to_string_lossy().ends_with(".html");
    assert_eq!(pages.filter(|entry| is_page(&entry.file_name())).count(), 1);
}

#[test]
fn a_record_of_thousands_of_episodes_is_read_by_report() {
    let (_scratch, run) = finished();
    check(&mut pace(&with("adapt", &run, &["--encounters", "1", "--episodes", "3000"])), FINISHED);
    let record = fs::metadata(run.join("adapt/test-episodes-3000.json")).expect("a record").len();
    assert!(record > 1 << 20, "{record} bytes are no test of the limit that was");
    let output = check(&mut pace(&with("report", &run, &[])), FINISHED);
    assert!(!text(&output.stderr).contains("skipped"), "{}", text(&output.stderr));
    let page = fs::read_to_string(run.join("report.html")).expect("a page");
    assert!(page.contains("3000"), "the evaluation is on the page");
}

#[test]
fn adapt_prints_what_scripts_expect() {
    let (_scratch, run) = finished();
    let adapt = |more: &[&str]| {
        let more = [&["--json", "--encounters", "3", "--episodes", "20"], more].concat();
        text(&check(&mut pace(&with("adapt", &run, &more)), FINISHED).stdout).to_owned()
    };
    let once = adapt(&[]);
    let document: Value = serde_json::from_str(&once).expect("JSON");
    for name in ["mean", "standard_error", "normalised", "share_of_bayes"] {
        assert!(document[name].is_number(), "{name}: {}", document[name]);
    }
    assert_eq!(document["chosen_on"], "none", "no setting of preset paper was chosen by scores");
    assert_eq!(document["blocks"].as_array().map(Vec::len), Some(10));
    assert_eq!(document["peers"].as_array().map(Vec::len), Some(10));
    for agent in ["oracle", "bayes", "static", "random", "nash"] {
        assert!(document["references"][agent]["mean"].is_number(), "{agent}");
    }
    // The share of the way from the best fixed policy to the oracle.
    let number = |value: &Value| value.as_f64().expect("a number");
    let (oracle, fixed) = (
        number(&document["references"]["oracle"]["mean"]),
        number(&document["references"]["static"]["mean"]),
    );
    let expected = (number(&document["mean"]) - fixed) / (oracle - fixed);
    assert!((number(&document["normalised"]) - expected).abs() < 1e-9);
    // Regret is oracle minus agent, per encounter and per episode.
    let regret = &document["regret"];
    assert!((number(&regret["mean"]) - (oracle - number(&document["mean"]))).abs() < 1e-9);
    assert!((number(&regret["per_encounter"]) - 20.0 * number(&regret["mean"])).abs() < 1e-9);
    assert!(number(&regret["standard_error"]) > 0.0 && regret["confidence_95"].is_array());
    let by_episode = |value: &Value| -> f64 {
        let values = value["by_episode"].as_array().expect("a list");
        assert_eq!(values.len(), 20);
        values.iter().map(number).sum::<f64>() / 20.0
    };
    assert!((by_episode(regret) - number(&regret["mean"])).abs() < 1e-9);
    for peer in document["peers"].as_array().expect("a list") {
        assert!((by_episode(peer) - number(&peer["mean"])).abs() < 1e-9);
        let expected = number(&peer["oracle"]) - number(&peer["mean"]);
        assert!((number(&peer["regret"]) - expected).abs() < 1e-9);
    }
    // Another number of episodes is another evaluation: it does not overwrite the main result.
    assert_eq!(fs::read_to_string(run.join("adapt/test-episodes-20.json")).expect("a record"), once);
    let page_path = run.join("report.html");
    let page = fs::read_to_string(&page_path).expect("a page");
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{}", &page[..99]);

    assert_eq!(adapt(&[]), once);
    assert_eq!(fs::read_to_string(&page_path).expect("a page"), page);
    let without_command = |text: &str| {
        let mut document: Value = serde_json::from_str(text).expect("JSON");
        assert!(document["command"].take().is_string());
        document
    };
    for n_threads in ["1", "2", "3"] {
        assert_eq!(without_command(&adapt(&["--threads", n_threads])), without_command(&once));
    }
    assert_ne!(without_command(&adapt(&["--seed", "9"])), without_command(&once));

    // The other pools have files of their own.
    for (pool, n_peers) in [("train", 40), ("validation", 24), ("uniform:7", 0)] {
        let document: Value = serde_json::from_str(&adapt(&["--pool", pool])).expect("JSON");
        assert_eq!(document["peers"].as_array().map(Vec::len), Some(n_peers));
        assert!(run.join(format!("adapt/{}-episodes-20.json", pool.replace(':', "-"))).exists());
    }
    let output = check(&mut pace(&with("adapt", &run, &["--encounters", "2"])), FINISHED);
    assert!(text(&output.stdout).contains("bayes"), "{}", text(&output.stdout));
    assert!(run.join("adapt/test.json").exists() && run.join("report.html").exists());
}

#[test]
fn inspect_shows_the_run() {
    let (_scratch, run) = finished();
    let shown = check(&mut pace(&with("inspect", &run, &[])), FINISHED);
    assert!(text(&shown.stdout).contains("last of 6 rows"), "{}", text(&shown.stdout));
    assert!(text(&shown.stdout).contains("status       finished, 0 resumes"), "{}", text(&shown.stdout));
    let shown = check(&mut pace(&with("inspect", &run, &["--json"])), FINISHED);
    let document: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(
        (&document["manifest"]["status"], &document["has_writer"]),
        (&"finished".into(), &false.into())
    );
    assert_eq!(document["metrics_rows"], 6);
    assert_eq!(document["checkpoints"].as_array().map(Vec::len), Some(3));
}

#[test]
fn invalid_keys_and_options_get_one_clear_line_and_no_folder() {
    let scratch = scratch();
    let out = scratch.path().join("run");
    let refused = |more: &[&str], code: i32, words: &[&str]| {
        check_error(&train(&out, more), code, words);
        assert!(!out.exists(), "{more:?} left a folder");
    };
    refused(&["--set", "learning_rat=1"], BAD_INPUT, &["learning_rat", "did you mean \"learning_rate\"?"]);
    refused(&["--method", "pce"], USAGE, &["pce", "did you mean \"pace\"?"]);
    refused(&["--preset", "papre"], USAGE, &["papre", "did you mean \"paper\"?"]);
    refused(&["--set", "encounters_per_tuple=0"], BAD_INPUT, &["encounters_per_tuple", "found 0", "1 to"]);
    refused(&["--set", "learning_rate=-0.1"], BAD_INPUT, &["learning_rate", "-0.1", "0 to"]);
    refused(&["--set", "learning_rate=fast"], BAD_INPUT, &["learning_rate", "fast"]);
    refused(&["--set", "discount=1.5"], BAD_INPUT, &["discount", "1.5", "0 to 1"]);
    refused(&["--set", "episodes_per_encounter=0"], BAD_INPUT, &["episodes_per_encounter", "found 0"]);
    refused(&["--set", "train_tuples=[3,40]"], BAD_INPUT, &["train_tuples", "found 40", "0 to 39"]);
    refused(&["--set", "train_tuples=[3,3]"], BAD_INPUT, &["train_tuples", "found 3", "different"]);
    refused(&["--set", "train_tuples=3"], BAD_INPUT, &["train_tuples", "found 3", "expected a list"]);
    refused(
        &["--set", "minibatch_unit=steps-and-all"],
        BAD_INPUT,
        &["minibatch_unit", "steps-and-all", "encounters"],
    );
    refused(&["--threads", "0"], USAGE, &["--threads", "found 0", "1 to 1024"]);
    refused(&["--threads", "many"], USAGE, &["--threads", "many"]);
    let path = out.to_str().expect("UTF-8");
    check_error(
        &["train", "kuhn-poker", "--seed", "-1", "--out", path],
        USAGE,
        &["--seed", "found -1", "expected a whole number"],
    );
    assert!(!out.exists(), "a refused seed left a folder");
    let game = ["train", "khun-poker", "--out", out.to_str().expect("UTF-8")];
    check_error(&game, USAGE, &["khun-poker", "did you mean \"kuhn-poker\"?"]);

    let file = scratch.path().join("keys.toml");
    let name = file.to_str().expect("UTF-8");
    refused(&["--config", name], BAD_INPUT, &["keys.toml", "No such file"]);
    for (contents, words) in [
        ("epochs: 3", &["keys.toml: line 1: "][..]),
        ("epochs = 3\nepochs = 4\n", &["keys.toml: line 2: ", "duplicate"]),
        ("epcohs = 3", &["epcohs", "did you mean \"epochs\"?"]),
        ("epochs = -3", &["epochs", "-3"]),
        ("discount = nan", &["discount"]),
        ("train_tuples = [40]", &["train_tuples", "found 40", "0 to 39"]),
    ] {
        fs::write(&file, contents).expect("written");
        refused(&["--config", name], BAD_INPUT, words);
    }
    fs::write(&file, b"\xff\xfe").expect("written");
    refused(&["--config", name], BAD_INPUT, &["keys.toml", "UTF-8"]);
    fs::write(&file, "epochs = 1\nminibatches = 1").expect("written");
    check(&mut pace(&train(&out, &["--steps", "10", "--config", name])), FINISHED);
    let config = fs::read_to_string(out.join("config.toml")).expect("readable");
    // A file comes before single keys, and those before flags.
    assert!(config.contains("epochs = 2") && config.contains("total_steps = 10"), "{config}");
}

#[test]
fn folders_that_cannot_be_a_run_are_not_changed() {
    let (scratch, run) = finished();
    let before = results(&run);
    check_error(&train(&run, &[]), BAD_INPUT, &["already contains a run", "pace resume"]);
    assert!(results(&run) == before);

    let other = scratch.path().join("other");
    fs::create_dir(&other).expect("made");
    fs::write(other.join("thesis.tex"), "years of work").expect("written");
    check_error(&train(&other, &[]), BAD_INPUT, &["is not empty", "thesis.tex", "--out"]);
    let below_a_file = other.join("thesis.tex/run");
    check_error(&train(&below_a_file, &[]), BAD_INPUT, &["a part of this path is a file"]);
    check_error(&train(&other.join("thesis.tex"), &[]), BAD_INPUT, &["a part of this path is a file"]);
    for verb in ["resume", "adapt", "inspect"] {
        for folder in [&other, &scratch.path().join("nowhere"), &other.join("thesis.tex")] {
            check_error(&with(verb, folder, &[]), BAD_INPUT, &["is not a run folder", "pace train"]);
        }
    }
    let names: Vec<_> = fs::read_dir(&other).expect("readable").collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read(other.join("thesis.tex")).expect("readable"), b"years of work");
}

#[cfg(unix)]
#[test]
fn a_folder_need_not_have_a_name_in_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = scratch();
    let out = scratch.path().join(OsStr::from_bytes(b"run\xff"));
    check(&mut pace(&train(&out, &["--steps", "10"])), FINISHED);
    check(&mut pace(&with("resume", &out, &[])), FINISHED);
    check(&mut pace(&with("adapt", &out, &["--encounters", "1", "--episodes", "2"])), FINISHED);
}

#[test]
fn invalid_adapt_arguments_get_one_clear_line() {
    let (scratch, run) = finished();
    let refused = |more: &[&str], words: &[&str]| check_error(&with("adapt", &run, more), USAGE, words);
    refused(&["--encounters", "0"], &["--encounters", "found 0", "1 to"]);
    refused(&["--episodes", "0"], &["--episodes", "found 0"]);
    refused(&["--episodes", "99999999999"], &["--episodes", "1 to 10000"]);
    refused(&["--context-episodes", "0"], &["--context-episodes", "found 0"]);
    refused(&["--threads", "0"], &["--threads", "found 0"]);
    refused(&["--switch-at", "0"], &["--switch-at", "found 0"]);
    refused(&["--temperature", "0"], &["--temperature", "found 0", "0.001 to 1000"]);
    refused(&["--detector", "dorp:0.8"], &["dorp:0.8", "none, drop:C, known"]);
    refused(&["--keep-on-clear", "all"], &["keep-on-clear", "all", "last, nothing"]);
    let refused_value =
        |more: &[&str], words: &[&str]| check_error(&with("adapt", &run, more), BAD_INPUT, words);
    refused_value(&["--detector", "drop:8"], &["drop:8", "C from 0 to 1"]);
    refused_value(&["--switch-at", "7", "--episodes", "7"], &["switch_at", "found 7", "1 to 6"]);
    refused_value(&["--set", "learning_rate=1"], &["learning_rate", "a key of the game"]);
    refused_value(&["--set", "episodes_per_encountr=1"], &["did you mean \"episodes_per_encounter\"?"]);
    refused(&["--pool", "tets"], &["tets", "did you mean \"test\"?"]);
    refused(&["--pool", "uniform:0"], &["uniform:0", "1 to 1000000"]);
    assert!(!run.join("report.html").exists());

    let young = scratch.path().join("young");
    let running =
        Running::start(&train(&young, &["--set", "encounters_per_tuple=50", "--set", "epochs=1000"]));
    while !young.join("manifest.json").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // While another process writes a run, it can be read but not written.
    check_error(&with("resume", &young, &[]), FAILURE, &["is in use", &running.0.id().to_string()]);
    check_error(&with("adapt", &young, &[]), BAD_INPUT, &["has no checkpoint yet"]);
    let inspected = |words: &str| {
        let output = check(&mut pace(&with("inspect", &young, &[])), FINISHED);
        assert!(text(&output.stdout).contains(words), "no {words:?} in {}", text(&output.stdout));
    };
    inspected("status       running, ");
    // After a kill the manifest still has the status `running`, but no process holds the lock.
    running.end("-KILL");
    assert_eq!(status(&young).0, RunStatus::Running);
    inspected("status       killed (no process holds its lock); continue with `pace resume ");
}

/// Changes a text file of a run.
pub fn edit(path: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(path).expect("readable");
    assert!(before.contains(from), "no {from:?} in {before}");
    fs::write(path, before.replace(from, to)).expect("written");
}

#[test]
fn a_run_whose_files_were_edited_is_refused_and_not_touched() {
    let (scratch, run) = finished();
    let mut n = 0;
    let mut refused = |name: &str, from: &str, to: &str, verbs: &[&str], words: &[&str]| {
        n += 1;
        let copy = scratch.path().join(format!("copy-{n}"));
        copy_folder(&run, &copy);
        edit(&copy.join(name), from, to);
        let files = || (results(&copy), fs::read(copy.join("manifest.json")).expect("readable"));
        let before = files();
        for verb in verbs {
            check_error(&with(verb, &copy, &[]), BAD_INPUT, words);
        }
        assert!(files() == before, "{from:?} to {to:?}: something was lost");
    };
    let both = ["resume", "adapt"];
    refused(
        "config.toml",
        "discount = ",
        "discont = ",
        &both,
        &["config.toml: line", "unknown key `discont`"],
    );
    refused("config.toml", "discount = 0.99", "discount = 1.5", &both, &["config.toml", "discount", "1.5"]);
    refused("config.toml", "discount = 0.99", "discount = 0.9", &["resume"], &["differ", "config.toml"]);
    refused("config.toml", "\"kuhn-poker\"", "\"chess\"", &both, &["config.toml", "chess"]);
    refused("config.toml", "\"pace\"", "\"pcae\"", &both, &["config.toml", "pcae"]);
    refused("config.toml", "seed = 3", "seed = 4", &["resume"], &["seed is 3", "4"]);
    let keys = ("episodes_per_encounter = 100", "episodes_per_encounter = 50");
    refused("config.toml", keys.0, keys.1, &["resume"], &["differ", "config.toml"]);
    refused("config.toml", "encoder_width = 64", "encoder_width = 32", &both, &[]);
    let revision = ("\"game_revision\": 1", "\"game_revision\": 2");
    refused("manifest.json", revision.0, revision.1, &both, &["revision 2", "revision 1", "retrain"]);
    refused("manifest.json", "{", "", &["resume", "adapt", "inspect"], &["manifest.json", "no JSON"]);
    let version = ("\"format_version\": 1", "\"format_version\": 99");
    refused(
        "manifest.json",
        version.0,
        version.1,
        &["resume", "adapt", "inspect"],
        &["format 99", "format 1"],
    );
}

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    for entry in fs::read_dir(from).expect("readable") {
        let entry = entry.expect("readable");
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("copied");
        }
    }
}

pub fn truncate(path: &Path) {
    let bytes = fs::read(path).expect("readable");
    fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).expect("written");
}

#[test]
fn damaged_checkpoints_are_skipped_or_refused() {
    let (scratch, run) = finished();
    let expected = results(&run);
    for (name, damage) in [("truncated", truncate as fn(&Path)), ("flipped", flip)] {
        for file in ["model.safetensors", "adam_second.safetensors", "state.json"] {
            let copy = scratch.path().join(format!("{name}-{file}"));
            copy_folder(&run, &copy);
            let newest = copy.join(checkpoints(&copy).pop().expect("a checkpoint"));
            damage(&newest.join(file));
            let shown = check(&mut pace(&with("inspect", &copy, &[])), FINISHED);
            assert!(text(&shown.stdout).contains(file), "{}", text(&shown.stdout));
            let more = ["--encounters", "1", "--episodes", "2"];
            let measured = check(&mut pace(&with("adapt", &copy, &more)), FINISHED);
            assert!(
                text(&measured.stderr).contains("is damaged; using the checkpoint of step "),
                "{}",
                text(&measured.stderr)
            );
            // Resumed from the checkpoint before it, the run ends with the same results.
            let resumed = check(&mut pace(&with("resume", &copy, &[])), FINISHED);
            let said = text(&resumed.stderr);
            assert!(said.starts_with("warning: ") && said.contains(file), "{said}");
            assert!(results(&copy) == expected, "{name} {file}");
        }
    }
    let hopeless = scratch.path().join("hopeless");
    copy_folder(&run, &hopeless);
    for checkpoint in checkpoints(&hopeless) {
        flip(&hopeless.join(checkpoint).join("model.safetensors"));
    }
    let files = |run: &Path| (results(run), fs::read(run.join("manifest.json")).expect("readable"));
    let before = files(&hopeless);
    for verb in ["resume", "adapt"] {
        check_error(&with(verb, &hopeless, &[]), BAD_INPUT, &["every checkpoint", "damaged", "--out"]);
    }
    // A refused resume is not counted.
    assert_eq!(status(&hopeless), (RunStatus::Finished, 0));
    assert!(files(&hopeless) == before);
}

#[test]
fn a_diverging_run_is_reported_and_keeps_its_checkpoints() {
    let scratch = scratch();
    let run = scratch.path().join("run");
    check(&mut pace(&train(&run, &["--set", "total_steps=20000"])), FINISHED);
    edit(&run.join("config.toml"), "total_steps = 20000", "total_steps = 40000");
    // Weights so large that their products overflow, in a valid checkpoint.
    let folder = run.join("checkpoints");
    let store = CheckpointStore::open(&folder, CheckpointLimits::default()).expect("a store");
    let newest = store.load_newest_valid().expect("readable").expect("a checkpoint");
    let mut files: Vec<(String, Vec<u8>)> =
        newest.names().map(|name| (name.to_owned(), newest.file(name).expect("a file").to_vec())).collect();
    let model = &mut files.iter_mut().find(|(name, _)| name == "model.safetensors").expect("a model").1;
    let start = 8 + u64::from_le_bytes(model[..8].try_into().expect("eight bytes")) as usize;
    for bytes in model[start..].as_chunks_mut::<4>().0 {
        *bytes = 1e30f32.to_le_bytes();
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (&name[..], &bytes[..])).collect();
    store.save(newest.step, &files).expect("saved");
    drop(store);
    let before = results(&run);

    check_error(&with("resume", &run, &[]), DIVERGED, &["diverged", "smaller learning rate"]);
    assert!(results(&run) == before, "saved files are unchanged");
    assert_eq!(status(&run).0, RunStatus::Failed);
    let reason = run.join(format!("crash/{:012}/reason.txt", newest.step));
    assert!(fs::read_to_string(reason).expect("a crash bundle").contains("diverged"));
}

/// A command whose standard output is a full disk.
#[cfg(target_os = "linux")]
fn with_full_output(mut command: Command) -> Output {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has one");
    let output = command.stdout(full).output().expect("the binary runs");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(FAILURE), "{command:?}: {message}");
    let last = message.lines().last().expect("a message");
    assert!(last.starts_with("error: ") && last.contains("No space left"), "{message}");
    output
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_standard_output_is_an_error_and_loses_no_result() {
    let (scratch, run) = finished();
    let output = with_full_output(pace(&["list", "games"]));
    assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    with_full_output(pace(&with("watch", &run, &["--episodes", "2"])));
    // Training prints only the path of its run; the run itself is complete.
    let other = scratch.path().join("other");
    with_full_output(pace(&train(&other, &[])));
    assert!(results(&other) == results(&run));
    with_full_output(pace(&with("adapt", &run, &["--encounters", "1"])));
    assert!(run.join("report.html").exists());
}

/// Needs a small disk in `PACE_SMALL_DISK`; `full_disk.rs` of `pace-lab` describes how to create one of 600 kB.
#[test]
fn a_run_on_a_full_disk_can_be_resumed_after_freeing_space() {
    let Some(disk) = std::env::var_os("PACE_SMALL_DISK") else { return };
    let run = Path::new(&disk).join("run");
    let small = ["--set", "hidden_width=16", "--set", "encoder_width=16"];
    let filler = Path::new(&disk).join("filler");
    assert!(fs::write(&filler, vec![0; 1 << 20]).is_err(), "the disk is small");
    // Room for the beginning of a run and not for a checkpoint.
    let n_filled = fs::metadata(&filler).expect("there").len();
    let some_room = |file: fs::File| file.set_len(n_filled - 48 * 1024);
    fs::OpenOptions::new().write(true).open(&filler).and_then(some_room).expect("writable");
    let output = check(&mut pace(&train(&run, &small)), FAILURE);
    let message = text(&output.stderr).lines().last().expect("a message").to_owned();
    assert!(message.starts_with("error: no space left") && message.contains("pace resume"), "{message}");

    fs::remove_file(filler).expect("removed");
    check(&mut pace(&with("resume", &run, &[])), FINISHED);
    let scratch = scratch();
    let other = scratch.path().join("run");
    check(&mut pace(&train(&other, &small)), FINISHED);
    assert!(results(&run) == results(&other));
}
