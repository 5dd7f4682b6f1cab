//! Recorded runs: those of this repository give the numbers of their records, and `pace keep` makes such records.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pace_lab::{RunRecords, RunView, TrainedAgent, evaluate_peer_again};
use pace_report::PeerRecord;

use crate::tidy::root;
use crate::training::{
    BAD_INPUT, FAILURE, FINISHED, check, check_error, copy_folder, edit, finished, pace, text, with,
};

/// Maximum size of all weights in `results/`.
const MAX_WEIGHT_BYTES: u64 = 50_000_000;

/// The recorded runs of this repository that have weights.
fn recorded_runs() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("results")).expect("results");
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    runs.retain(|run| {
        RunView::open(run).is_ok_and(|view| view.manifest().expect("a manifest").is_recorded())
    });
    runs.sort();
    assert!(!runs.is_empty(), "no recorded run has weights");
    runs
}

#[test]
fn weights_of_recorded_runs_are_whole_and_small() {
    let mut n_bytes = 0;
    for run in recorded_runs() {
        let view = RunView::open(&run).expect("a run");
        TrainedAgent::load(&view).unwrap_or_else(|error| panic!("{error}"));
        for file in view.manifest().expect("a manifest").weights.keys() {
            n_bytes += run.join(file).metadata().expect("weights").len();
        }
    }
    assert!(n_bytes <= MAX_WEIGHT_BYTES, "{n_bytes} bytes of weights in results/");
}

/// Plays the encounters with one peer tuple again, in the cheapest evaluation of each method in each game.
#[test]
fn recorded_runs_give_their_recorded_numbers_again() {
    let mut cheapest: BTreeMap<(String, String), (usize, PathBuf, String)> = BTreeMap::new();
    for run in recorded_runs() {
        let records = RunRecords::read(&run).unwrap_or_else(|error| panic!("{error}"));
        assert!(records.damaged.is_empty(), "{:?}", records.damaged);
        for (name, record) in records.evaluations.iter().filter(|(_, record)| !record.peers.is_empty()) {
            let found = (record.passes * record.episodes, run.clone(), name.clone());
            let best = cheapest.entry((record.game.clone(), record.method.clone())).or_insert(found.clone());
            *best = found.min(best.clone());
        }
    }
    assert!(!cheapest.is_empty());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    for (_, run, name) in cheapest.into_values() {
        let what = format!("{}, evaluation {name}", run.display());
        let (view, records) = (RunView::open(&run).expect("a run"), RunRecords::read(&run).expect("records"));
        let record = &records.evaluations[&name];
        let tuple = record.run.seed as usize % record.peers.len();
        let again = evaluate_peer_again(&view, record, tuple, n_threads);
        let again = again.unwrap_or_else(|error| panic!("{what}: {error}"));
        let expected = PeerRecord { oracle: None, regret: None, ..record.peers[tuple].clone() };
        if records.manifest.spec.simd == pace_learn::simd_name() {
            assert_eq!(again, expected, "{what}");
        } else {
            // Other vector instructions round differently, so that some encounters differ.
            let tolerance = 4.0 * expected.standard_error.unwrap_or(0.0);
            assert!((again.mean - expected.mean).abs() <= tolerance, "{what}: {again:?} {expected:?}");
        }
    }
}

/// `pace keep` in a folder, with the name of the record that it prints.
fn keep(scratch: &Path, run: &Path, more: &[&str]) -> PathBuf {
    let output = check(pace(&with("keep", run, more)).current_dir(scratch), FINISHED);
    let record = text(&output.stdout).trim_end();
    assert_eq!(Path::new(record).parent(), Some(Path::new("results")), "{record}");
    scratch.join(record)
}

/// Checks that no file of a record names this folder.
fn check_no_path(record: &Path, scratch: &Path) {
    let here = scratch.display().to_string();
    for entry in
        fs::read_dir(record).expect("readable").chain(fs::read_dir(record.join("adapt")).expect("records"))
    {
        let path = entry.expect("readable").path();
        let is_record = path.extension().is_some_and(|ending| ending == "json" || ending == "toml");
        assert!(
            !is_record || !fs::read_to_string(&path).expect("text").contains(&here),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_recorded_run_can_be_used_but_not_resumed() {
    let (scratch, run) = finished();
    let scratch = scratch.path();
    check(&mut pace(&with("adapt", &run, &["--encounters", "2", "--episodes", "5"])), FINISHED);
    let record = keep(scratch, &run, &["--variant", "tiny"]);
    assert!(record.ends_with("kuhn-poker-pace-tiny-paper-s3"), "{}", record.display());
    check_no_path(&record, scratch);
    fs::remove_dir_all(&run).expect("removed");
    let with_record = |verb: &str, more: &[&str], code| {
        let output = check(&mut pace(&with(verb, &record, more)), code);
        format!("{}{}", text(&output.stdout), text(&output.stderr))
    };
    // An evaluation is written into the folder, with its path as given.
    let adapted = with_record("adapt", &["--encounters", "2", "--seed", "5"], FINISHED);
    assert!(adapted.contains("10 test peers"), "{adapted}");
    assert!(record.join("adapt/test.json").exists() && record.join("adapt/test-episodes-5.json").exists());
    assert_eq!(keep(scratch, &record, &[]), record);
    check_no_path(&record, scratch);
    with_record("watch", &["--episodes", "1"], FINISHED);
    with_record("report", &[], FINISHED);
    assert!(with_record("inspect", &[], FINISHED).contains("recorded with its weights"));
    for arguments in [with("resume", &record, &[]), crate::training::train(&record, &[])] {
        check_error(&arguments, BAD_INPUT, &["is a recorded run", "not resumed"]);
    }
    let file = record.join("adapt/test.json");
    fs::write(&file, "{}").expect("written");
    let elsewhere = scratch.join("elsewhere").display().to_string();
    check_error(&with("keep", &record, &["--into", &elsewhere]), BAD_INPUT, &["adapt/test.json"]);
}

#[test]
fn only_results_are_recorded() {
    let (scratch, run) = finished();
    let scratch = scratch.path();
    let into = scratch.join("results").display().to_string();
    let refused = |run: &Path, more: &[&str], words: &[&str]| {
        check_error(&with("keep", run, &[&["--into", &into[..]], more].concat()), BAD_INPUT, words);
    };
    refused(&run, &[], &["no experiment names its keys", "total_steps = 30000", "--variant"]);
    refused(&run, &["--variant", "a/b"], &["--variant", "a/b"]);
    let copy = |name: &str, file: &str, from: &str, to: &str| {
        let copy = scratch.join(name);
        copy_folder(&run, &copy);
        edit(&copy.join(file), from, to);
        copy
    };
    let stopped = copy("stopped", "manifest.json", "\"finished\"", "\"stopped\"");
    refused(&stopped, &["--variant", "tiny"], &["the run is stopped", "pace resume"]);
    let scaled = copy("scaled", "config.toml", "seed = 3", "seed = 3\nscale = 0.5");
    refused(&scaled, &["--variant", "tiny"], &["scaled by 0.5"]);
    let earlier = copy("earlier", "manifest.json", "\"game_revision\": ", "\"game_revision\": 9");
    refused(&earlier, &["--variant", "tiny"], &["revision"]);

    let record = keep(scratch, &run, &["--variant", "tiny"]);
    refused(&run, &["--variant", "other"], &["already recorded as", "kuhn-poker-pace-tiny-paper-s3"]);
    // The name of a recorded run is known by its keys.
    assert_eq!(keep(scratch, &run, &[]), record);
    let changed = copy("changed", "manifest.json", "\"n_resumes\": 0", "\"n_resumes\": 1");
    refused(&changed, &[], &["already recorded with another manifest.json", "--replace"]);
    assert_eq!(keep(scratch, &changed, &["--replace"]), record);
    assert!(
        fs::read_to_string(record.join("manifest.json")).expect("a manifest").contains("\"n_resumes\": 1")
    );
    let longer = copy("longer", "config.toml", "total_steps = 30000", "total_steps = 30001");
    refused(&longer, &["--variant", "tiny", "--replace"], &["records a run with other keys"]);

    let bare = keep(scratch, &run, &["--replace", "--without-weights"]);
    assert!(bare == record && !record.join("checkpoints").exists() && record.join("metrics.jsonl").exists());
    check_error(&with("adapt", &bare, &[]), BAD_INPUT, &["has no checkpoint"]);

    // A run that cannot be recorded does not stop the others.
    let other = scratch.join("other");
    let mut several = with("keep", &stopped, &["--into", "other", "--variant", "tiny"]);
    several.insert(1, run.into());
    let output = check(pace(&several).current_dir(scratch), FAILURE);
    let errors = text(&output.stderr);
    assert!(
        errors.contains("not recorded: ") && errors.contains("1 of 2 runs were not recorded"),
        "{errors}"
    );
    assert!(other.join("kuhn-poker-pace-tiny-paper-s3/manifest.json").exists());
}
