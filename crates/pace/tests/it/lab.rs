//! `pace plan` and `pace reproduce` with the real binary: labs that are killed, stopped, damaged and continued.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pace_games::GAMES;
use pace_learn::METHODS;
use serde_json::Value;

use crate::training::{
    BAD_INPUT, FAILURE, FINISHED, STOPPED, USAGE, check, check_error, copy_folder, edit, pace, results,
    scratch, some_milliseconds, text, truncate,
};

/// Two games, a run with the fallback agent of another, and evaluations that write different files.
const SMALL: &str = r#"
title = "Small"
reproduces = "nothing"
view = "plain"
preset = "paper"
seeds = 1
[[runs]]
games = ["kuhn-poker"]
methods = ["pace"]
set = { total_steps = 40000, encounters_per_tuple = 1, epochs = 2, minibatches = 2, checkpoint_every = 1, warm_up_steps = 6000 }
evaluations = ["test", "switch", "latents"]
[[runs]]
games = ["overcooked"]
methods = ["generalist"]
set = { total_steps = 12000, encounters_per_tuple = 1, epochs = 1, minibatches = 2, checkpoint_every = 1, episodes_per_encounter = 3 }
evaluations = ["test"]
[[runs]]
games = ["overcooked"]
methods = ["gscu"]
set = { total_steps = 8000, encounters_per_tuple = 1, epochs = 1, minibatches = 2, checkpoint_every = 1, episodes_per_encounter = 3, "gscu.embedding_steps" = 4000, "gscu.embedding_epochs" = 1, "gscu.embedding_encounters_per_tuple" = 1 }
evaluations = ["test"]
[evaluations.test]
encounters = 2
[evaluations.switch]
encounters = 2
switch_at = 50
detector = "drop:0.8"
[evaluations.latents]
encounters = 1
latents = true
"#;

/// A file with an experiment, and a folder for labs.
fn with_file(contents: &str) -> (tempfile::TempDir, PathBuf) {
    let scratch = scratch();
    let file = scratch.path().join("small.toml");
    fs::write(&file, contents).expect("written");
    (scratch, file)
}

/// The command with the lab's folder named from the one it is in, as in any other place: runs name their folders.
fn reproduce(file: &Path, lab: &Path, more: &[&str]) -> Command {
    let (above, name) = (lab.parent().expect("a folder"), lab.file_name().expect("a name"));
    fs::create_dir_all(above).expect("made");
    let mut command = pace(&["reproduce", "--jobs", "2"]);
    command.current_dir(above).arg(file).arg("--out").arg(name).args(more);
    command
}

fn planned(file: &Path, lab: &Path, more: &[&str]) -> Value {
    let mut arguments: Vec<OsString> =
        vec!["plan".into(), file.into(), "--out".into(), lab.into(), "--json".into()];
    arguments.extend(more.iter().map(OsString::from));
    serde_json::from_str(text(&check(&mut pace(&arguments), FINISHED).stdout)).expect("JSON")
}

fn states(plan: &Value) -> Vec<&str> {
    plan["runs"].as_array().expect("runs").iter().map(|run| run["state"].as_str().expect("a state")).collect()
}

fn runs(lab: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.join("runs")).expect("a lab");
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    runs.sort();
    runs
}

fn run_of(lab: &Path, method: &str) -> PathBuf {
    let found = |run: &PathBuf| run.file_name().is_some_and(|name| name.to_string_lossy().contains(method));
    runs(lab).into_iter().find(found).expect("a run of this method")
}

/// All files of a lab that a report reads, and the weights, without wall-clock times.
fn records(lab: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut records = BTreeMap::new();
    for run in runs(lab) {
        let name = run.file_name().expect("a name").to_string_lossy().into_owned();
        for (file, bytes) in results(&run) {
            records.insert(format!("{name}/{file}"), bytes);
        }
        for entry in fs::read_dir(run.join("adapt")).expect("evaluations") {
            let path = entry.expect("readable").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            let mut bytes = fs::read(&path).expect("readable");
            if file.ends_with(".json") {
                let mut record: Value = serde_json::from_slice(&bytes).expect("a record");
                // Files computed from a record, such as the two dimensions of latents, have no such field.
                record.pointer_mut("/run/wall_clock_secs").map(Value::take);
                bytes = record.to_string().into_bytes();
            }
            records.insert(format!("{name}/adapt/{file}"), bytes);
        }
    }
    records
}

/// A running lab in its own process group, which is killed on drop.
struct Lab(Child);

impl Lab {
    fn start(mut command: Command) -> Lab {
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
        Lab(command.spawn().expect("the binary runs"))
    }

    /// Sends a signal to the process, or with `-` before its number to all of its group.
    fn signal(&self, signal: &str, prefix: &str) {
        let target = format!("{prefix}{}", self.0.id());
        // The process may have just ended on its own.
        let _ = Command::new("kill").args([signal, "--", &target]).stderr(Stdio::null()).status();
    }

    fn wait(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.signal("-KILL", "-");
        let _ = self.0.wait();
    }
}

/// Waits until some run has rows, so that a signal finds the lab at work.
fn wait_for_work(lab: &Path) {
    let begin = Instant::now();
    let has_rows = || {
        let runs = fs::read_dir(lab.join("runs")).into_iter().flatten().flatten();
        runs.map(|run| run.path().join("metrics.jsonl"))
            .any(|log| log.metadata().is_ok_and(|log| log.len() > 0))
    };
    while !has_rows() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing happens in {}", lab.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_lab_ends_like_an_uninterrupted_one() {
    let (scratch, file) = with_file(SMALL);
    let alone = scratch.path().join("alone/lab");
    assert_eq!(states(&planned(&file, &alone, &[])), ["waiting"; 3]);
    let output = check(&mut reproduce(&file, &alone, &[]), FINISHED);
    assert_eq!(text(&output.stdout), "lab\n");
    let expected = records(&alone);
    assert!(expected.keys().any(|name| name.ends_with("adapt/test-latents.csv")), "{:?}", expected.keys());
    assert!(expected.keys().any(|name| name.ends_with("adapt/test-switch-50-drop-0.8.json")));

    // Killed at random times: with all its processes, and once alone, after which its processes end by themselves.
    let killed = scratch.path().join("killed/lab");
    for (nth, prefix) in ["-", "", "-"].into_iter().enumerate() {
        let mut lab = Lab::start(reproduce(&file, &killed, &[]));
        if nth > 0 {
            wait_for_work(&killed);
        }
        std::thread::sleep(some_milliseconds(400));
        lab.signal("-KILL", prefix);
        lab.wait();
    }
    check(&mut reproduce(&file, &killed, &[]), FINISHED);
    let found = records(&killed);
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{name} differs");
    }

    // Asked to stop, it keeps its results. A second process for the same lab is refused meanwhile.
    let stopped = scratch.path().join("stopped/lab");
    let mut lab = Lab::start(reproduce(&file, &stopped, &[]));
    wait_for_work(&stopped);
    let second: [OsString; 4] =
        ["reproduce".into(), file.clone().into(), "--out".into(), stopped.clone().into()];
    check_error(&second, FAILURE, &["in use", &lab.0.id().to_string()]);
    lab.signal("-INT", "");
    match lab.wait() {
        Some(STOPPED) => {
            let plan = planned(&file, &stopped, &[]);
            assert!(states(&plan).iter().all(|state| ["waiting", "interrupted", "trained"].contains(state)));
            check(&mut reproduce(&file, &stopped, &[]), FINISHED);
        }
        // It was done before the signal came.
        code => assert_eq!(code, Some(FINISHED)),
    }
    assert!(records(&stopped) == expected);

    // Finished runs are not repeated.
    let plan = planned(&file, &alone, &[]);
    assert_eq!((states(&plan), &plan["n_done"]), (vec!["trained"; 3], &3.into()));
    assert_eq!(plan["seconds_left"], 0.0);
    let manifest = |lab: &Path| fs::read(run_of(lab, "gscu").join("manifest.json")).expect("readable");
    let before = manifest(&alone);
    let output = check(&mut reproduce(&file, &alone, &[]), FINISHED);
    assert!(
        manifest(&alone) == before && !text(&output.stderr).contains("started"),
        "{}",
        text(&output.stderr)
    );

    nothing_is_lost_to_bad_files(scratch.path(), &file, &alone);
}

/// Damages copies of a finished lab, one file at a time.
fn nothing_is_lost_to_bad_files(scratch: &Path, file: &Path, finished: &Path) {
    let copy = |name: &str| {
        fs::create_dir(scratch.join(name)).expect("made");
        let copy = scratch.join(name).join("lab");
        copy_folder(finished, &copy);
        copy
    };
    let expected = records(finished);
    let lines_with = |output: &[u8], word: &str| -> Vec<String> {
        text(output).lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
    };

    // An unreadable record is renamed and evaluated again.
    let lab = copy("record");
    let record = run_of(&lab, "pace").join("adapt/test.json");
    truncate(&record);
    let torn = fs::read(&record).expect("readable");
    assert_eq!(planned(file, &lab, &[])["runs"][0]["evaluations"][0]["state"], "damaged");
    let output = check(&mut reproduce(file, &lab, &[]), FINISHED);
    let warnings = lines_with(&output.stderr, "warning: ");
    assert!(warnings.len() == 1 && warnings[0].contains("adapt/test.json"), "{warnings:?}");
    assert!(warnings[0].contains("test.json.damaged-1"), "{warnings:?}");
    let aside = record.with_file_name("test.json.damaged-1");
    assert!(fs::read(&aside).expect("kept") == torn);
    fs::remove_file(aside).expect("removable");
    assert!(records(&lab) == expected, "evaluated again with the same results");

    // Ids change with every key that is added. The run with a fallback agent names its folder with an old id; the copy of the
    // agent in the run has the current id.
    let lab = copy("older");
    let (generalist, gscu) = (run_of(&lab, "generalist"), run_of(&lab, "gscu"));
    let name = generalist.file_name().expect("a name").to_string_lossy().into_owned();
    let (stem, id) = name.rsplit_once('-').expect("an id");
    edit(&gscu.join("config.toml"), id, "0123456789ab");
    fs::rename(&generalist, generalist.with_file_name(format!("{stem}-0123456789ab"))).expect("renamed");
    assert_eq!(states(&planned(file, &lab, &[])), ["trained"; 3]);
    // Version control does not keep an empty folder of records; it is created again.
    fs::remove_dir_all(gscu.join("adapt")).expect("removable");
    check(&mut reproduce(file, &lab, &[]), FINISHED);
    assert!(gscu.join("adapt/test.json").is_file());

    // A run of another revision of its game, with other keys, or without a readable manifest: only this run is refused, and
    // untrained runs that need it as fallback agent.
    let damages = [
        ("manifest.json", "\"game_revision\": 1", "\"game_revision\": 7", "revision 7"),
        ("manifest.json", "{", "", "no JSON"),
        ("config.toml", "discount = 0.99", "discount = 0.5", "expected"),
        ("config.toml", "method = ", "mehtod = ", "mehtod"),
    ];
    for (n, (name, from, to, word)) in damages.into_iter().enumerate() {
        let lab = copy(&format!("damaged-{n}"));
        let (generalist, gscu) = (run_of(&lab, "generalist"), run_of(&lab, "gscu"));
        fs::remove_dir_all(&gscu).expect("removable");
        edit(&generalist.join(name), from, to);
        let files = |run: &Path| (results(run), fs::read(run.join("manifest.json")).expect("readable"));
        let before = files(&generalist);
        fs::remove_file(run_of(&lab, "pace").join("adapt/test.json")).expect("removable");
        let output = check(&mut reproduce(file, &lab, &[]), FAILURE);
        let failed = lines_with(&output.stderr, "FAILED");
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert!(failed.iter().any(|line| line.contains(word)), "no {word:?} in {failed:?}");
        assert!(
            failed.iter().any(|line| line.contains("gscu") && line.contains("its fallback run")),
            "{failed:?}"
        );
        let last = text(&output.stderr).lines().last().expect("a line").to_owned();
        assert!(last.starts_with("error: 2 runs or evaluations failed"), "{last}");
        assert!(files(&generalist) == before, "nothing was lost");
        assert!(run_of(&lab, "pace").join("adapt/test.json").exists(), "the rest was evaluated");
        assert!(planned(file, &lab, &[])["runs"][1]["state"] == "unusable");
    }
}

/// Every file below a folder.
fn all_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            files.append(&mut all_files(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).expect("readable"));
        }
    }
    files
}

/// A run that is recorded, and a run that falls back on it.
const RECORDED: &str = r#"
title = "Recorded"
reproduces = "nothing"
view = "plain"
preset = "paper"
seeds = 1
[[runs]]
games = ["overcooked"]
methods = ["generalist"]
set = { total_steps = 8000, encounters_per_tuple = 1, epochs = 1, minibatches = 2, checkpoint_every = 1, episodes_per_encounter = 3 }
evaluations = ["test", "latents"]
[[runs]]
games = ["overcooked"]
methods = ["gscu"]
set = { total_steps = 8000, encounters_per_tuple = 1, epochs = 1, minibatches = 2, checkpoint_every = 1, episodes_per_encounter = 3, "gscu.embedding_steps" = 4000, "gscu.embedding_epochs" = 1, "gscu.embedding_encounters_per_tuple" = 1 }
[evaluations.test]
encounters = 2
[evaluations.latents]
encounters = 1
latents = true
"#;

#[test]
fn a_recorded_run_is_not_trained_again() {
    let (scratch, file) = with_file(RECORDED);
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    check(&mut reproduce(&file, &first, &[]), FINISHED);
    let run = run_of(&first, "generalist");
    let mut keep = pace(&["keep", "--variant", "small"]);
    let kept = check(keep.current_dir(scratch.path()).arg(&run), FINISHED);
    let name = text(&kept.stdout).trim_end();
    let record = scratch.path().join(name);
    // An evaluation that is not recorded is made from the recorded weights.
    fs::remove_file(record.join("adapt/test.json")).expect("removed");
    let before = all_files(&record);

    let plan = |more: &[&str]| -> Value {
        let mut command = pace(&["plan", "--json", "--out", "second"]);
        let output = check(command.current_dir(scratch.path()).arg(&file).args(more), FINISHED);
        serde_json::from_str(text(&output.stdout)).expect("JSON")
    };
    assert_eq!(states(&plan(&["--recorded", "none"])), ["waiting", "waiting"]);
    let found = plan(&[]);
    assert_eq!(states(&found), ["trained", "waiting"]);
    assert_eq!(found["runs"][0]["record"], name);
    let evaluations = found["runs"][0]["evaluations"].as_array().expect("a list").iter();
    let evaluations: Vec<&Value> = evaluations.map(|evaluation| &evaluation["state"]).collect();
    assert_eq!(evaluations, ["missing", "done"]);

    let output = check(&mut reproduce(&file, &second, &[]), FINISHED);
    let shown = text(&output.stderr);
    assert!(shown.contains("found   overcooked generalist") && shown.contains(name), "{shown}");
    let copy = run_of(&second, "generalist");
    let log = second.join("logs").join(copy.file_name().expect("a name")).with_added_extension("log");
    let log = fs::read_to_string(log).expect("text");
    let commands: Vec<&str> = log.lines().filter(|line| line.starts_with("$ ")).collect();
    assert!(commands.len() == 1 && commands[0].starts_with("$ pace adapt "), "{commands:?}");
    let test = |run: &Path| -> Value {
        let text = fs::read_to_string(run.join("adapt/test.json")).expect("a record");
        serde_json::from_str(&text).expect("JSON")
    };
    for key in ["mean", "by_episode", "peers", "references"] {
        assert_eq!(test(&copy)[key], test(&run)[key], "{key}");
    }
    let metrics = |lab: &Path| fs::read_to_string(run_of(lab, "gscu").join("metrics.jsonl")).expect("a log");
    assert_eq!(metrics(&second), metrics(&first), "the copy is the same fallback run");
    assert!(all_files(&record) == before, "records are only read");
    let shown = check(pace(&["plan", "--out", "second"]).current_dir(scratch.path()).arg(&file), FINISHED);
    assert!(text(&shown.stdout).contains("done, recorded"), "{}", text(&shown.stdout));

    check_error(&["plan", "smoke", "--recorded", "nowhere"], BAD_INPUT, &["--recorded", "nowhere", "`none`"]);
    // Weights that are not those recorded are not used.
    let weights = before.keys().find(|path| path.ends_with("model.safetensors")).expect("weights");
    truncate(weights);
    fs::remove_dir_all(&second).expect("removed");
    assert_eq!(states(&plan(&[])), ["waiting", "waiting"]);
}

#[test]
fn a_run_that_fails_is_reported_and_the_rest_continues() {
    // Recurrent methods refuse such mini-batches only when training starts.
    let second = SMALL.find("[[runs]]\ngames = [\"overcooked\"]\nmethods = [\"gscu\"]").expect("there");
    let evaluations = SMALL.find("[evaluations.test]").expect("there");
    let contents = format!("{}{}", &SMALL[..second], &SMALL[evaluations..])
        .replace("total_steps = 40000", "total_steps = 6000")
        .replace("total_steps = 12000", "total_steps = 3000, minibatch_unit = \"encounters\"");
    let (scratch, file) = with_file(&contents);
    let lab = scratch.path().join("lab");
    for _ in 0..2 {
        let output = check(&mut reproduce(&file, &lab, &["--scale", "0.5"]), FAILURE);
        let said = text(&output.stderr);
        let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("FAILED")).collect();
        assert!(
            failed.len() == 1 && failed[0].contains("generalist") && failed[0].contains("minibatch_unit"),
            "{said}"
        );
        assert!(said.contains("scaled plan") && said.contains("1 of 2 runs done"), "{said}");
    }
    let run = run_of(&lab, "pace");
    let manifest: Value =
        serde_json::from_slice(&fs::read(run.join("manifest.json")).expect("readable")).expect("JSON");
    assert_eq!((&manifest["scale"], &manifest["status"]), (&0.5.into(), &"finished".into()));
    let argv: Vec<&str> = manifest["argv"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|word| word.as_str().expect("text"))
        .collect();
    assert_eq!(argv[..2], ["pace", "train"]);
    assert!(!argv.contains(&"--stop-on-stdin-eof"), "{argv:?}");
    // The recorded command of a run trains the same run.
    let again = scratch.path().join("again");
    let out = argv.iter().position(|word| *word == "--out").expect("a folder");
    let mut arguments: Vec<OsString> = argv[1..].iter().map(OsString::from).collect();
    arguments[out] = again.clone().into();
    check(&mut pace(&arguments), FINISHED);
    assert!(results(&again) == results(&run));
}

#[test]
fn a_run_in_use_by_another_process_is_waited_for() {
    let second = SMALL.find("[[runs]]\ngames = [\"overcooked\"]").expect("there");
    let contents = format!("{}[evaluations.test]\npasses = 1\n", &SMALL[..second])
        .replace("total_steps = 40000", "total_steps = 6000")
        .replace(", \"switch\", \"latents\"", "");
    let (scratch, file) = with_file(&contents);
    let lab = scratch.path().join("lab");
    check(&mut reproduce(&file, &lab, &[]), FINISHED);
    let expected = records(&lab);

    // The files of a run whose process was killed before the first checkpoint, while another process holds the lock.
    let run = run_of(&lab, "pace");
    fs::remove_dir_all(run.join("adapt")).expect("removable");
    fs::remove_dir_all(run.join("checkpoints")).expect("removable");
    edit(&run.join("manifest.json"), "\"finished\"", "\"running\"");
    let rows = fs::read_to_string(run.join("metrics.jsonl")).expect("readable");
    fs::write(run.join("metrics.jsonl"), &rows[..=rows.find('\n').expect("a row")]).expect("written");
    let lock = fs::File::open(run.join("run.lock")).expect("a lock");
    lock.lock().expect("free");
    assert_eq!(states(&planned(&file, &lab, &[])), ["running"]);
    let mut waiting = Lab::start(reproduce(&file, &lab, &[]));
    std::thread::sleep(Duration::from_millis(500));
    lock.unlock().expect("ours");
    assert_eq!(waiting.wait(), Some(FINISHED));
    assert!(records(&lab) == expected);
}

#[test]
fn invalid_plan_and_reproduce_arguments_get_one_clear_line() {
    let (scratch, file) = with_file(SMALL);
    let lab = scratch.path().join("lab");
    for verb in ["plan", "reproduce"] {
        let ask = |more: &[&str]| {
            let mut arguments: Vec<OsString> = vec![verb.into(), "--out".into(), lab.clone().into()];
            arguments.extend(more.iter().map(OsString::from));
            arguments
        };
        let path = file.to_str().expect("UTF-8");
        check_error(&ask(&["mian"]), USAGE, &["unknown experiment \"mian\"", "did you mean \"main\"", "all"]);
        check_error(&ask(&["none.toml"]), BAD_INPUT, &["none.toml"]);
        check_error(&ask(&["main", "--seeds", "0"]), USAGE, &["--seeds", "1 to 1000"]);
        check_error(&ask(&["main", "--scale", "2"]), USAGE, &["--scale", "at most 1"]);
        check_error(&ask(&["main", "--preset", "bset"]), USAGE, &["bset", "best"]);
        check_error(&ask(&["main", "--jobs", "0"]), USAGE, &["--jobs"]);
        for (from, to, words) in [
            ("[[runs]]", "[[runs]", &["small.toml", "line 7"]),
            ("methods = [\"pace\"]", "methods = [\"space\"]", &["small.toml", "unknown method \"space\""]),
            ("encounters = 2", "encouters = 2", &["small.toml", "encouters"]),
        ] {
            fs::write(&file, SMALL.replacen(from, to, 1)).expect("written");
            check_error(&ask(&[path]), BAD_INPUT, words);
        }
        fs::write(&file, SMALL).expect("written");
    }
    assert!(!lab.exists(), "what is refused leaves no folder");
}

#[test]
fn the_plan_of_smoke_matches_the_record() {
    let scratch = scratch();
    let arguments: Vec<OsString> = vec![
        "plan".into(),
        "smoke".into(),
        "--jobs".into(),
        "2".into(),
        "--out".into(),
        scratch.path().join("lab").into(),
    ];
    let output = check(&mut pace(&arguments), FINISHED);
    // Ids change with every key that is added to a configuration.
    let masked: String = text(&output.stdout)
        .lines()
        .map(|line| match line.split_once("  ") {
            Some((id, rest)) if id.len() == 12 => format!("ID  {rest}\n"),
            _ => format!("{}\n", line.replace(&scratch.path().display().to_string(), "")),
        })
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/plan-smoke.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, &masked).expect("written");
    }
    let recorded = fs::read_to_string(&path).expect("the recorded plan");
    assert_eq!(masked, recorded, "UPDATE_GOLDEN=1 rewrites it");
}

#[test]
fn smoke_survives_being_killed() {
    let scratch = scratch();
    let lab = scratch.path().join("lab");
    for _ in 0..3 {
        let mut process = Lab::start(reproduce(Path::new("smoke"), &lab, &[]));
        wait_for_work(&lab);
        std::thread::sleep(some_milliseconds(2000));
        process.signal("-KILL", "-");
        process.wait();
    }
    check(&mut reproduce(Path::new("smoke"), &lab, &[]), FINISHED);
    let plan = planned(Path::new("smoke"), &lab, &[]);
    let runs = plan["runs"].as_array().expect("runs");
    assert_eq!(plan["n_done"], runs.len());
    for game in GAMES {
        for method in METHODS {
            let is_there = |run: &&Value| run["game"] == game.id && run["method"] == method.id;
            let run = runs.iter().find(is_there).unwrap_or_else(|| panic!("no {} on {}", method.id, game.id));
            let folder = lab.join("runs").join(run["folder"].as_str().expect("a name"));
            let rows = fs::read_to_string(folder.join("metrics.jsonl")).expect("rows");
            assert!(rows.contains("losses/policy_loss"), "{} learns to act", folder.display());
        }
    }
}
