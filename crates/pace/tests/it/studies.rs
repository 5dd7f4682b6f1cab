//! Options of `pace adapt` with the real binary: changes of peers, sliding contexts, other keys, latents.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::training::{BAD_INPUT, FINISHED, check, check_error, finished, pace, scratch, text, train, with};

fn adapt(run: &Path, more: &[&str]) -> Value {
    let more = [&["--json"], more].concat();
    let output = check(&mut pace(&with("adapt", run, &more)), FINISHED);
    serde_json::from_str(text(&output.stdout)).expect("JSON")
}

/// Trains a run of a few iterations with this number of episodes per encounter.
fn train_short(run: &Path, n_episodes: usize) {
    let key = format!("episodes_per_encounter={n_episodes}");
    let more = ["--set", &key, "--set", "warm_up_steps=0", "--steps", "1000"];
    check(&mut pace(&train(run, &more)), FINISHED);
}

fn without_command(mut record: Value) -> Value {
    assert!(record["command"].take().is_string());
    record
}

fn numbers(record: &Value, list: &str, field: &str) -> Vec<f64> {
    let list = record[list].as_array().expect("a list");
    list.iter().map(|entry| entry[field].as_f64().expect("a number")).collect()
}

#[test]
fn a_switch_is_measured_and_recorded() {
    let (_scratch, run) = finished();
    let more = [
        "--encounters",
        "3",
        "--episodes",
        "12",
        "--context-episodes",
        "6",
        "--switch-at",
        "5",
        "--detector",
    ];
    let drop = adapt(&run, &[&more[..], &["drop:0.8"]].concat());
    assert_eq!(drop["switch"]["after_episode"], 5);
    assert_eq!((&drop["episodes"], &drop["context_episodes"]), (&12.into(), &6.into()));
    assert_eq!(drop["by_episode"].as_array().map(Vec::len), Some(12));
    // The mean over all episodes follows from the means before and after the switch.
    let (before, after) = (&drop["switch"]["before"]["mean"], &drop["switch"]["after"]["mean"]);
    let whole = (5.0 * before.as_f64().unwrap() + 7.0 * after.as_f64().unwrap()) / 12.0;
    assert!((whole - drop["mean"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(drop["peers"][9]["successor"], 0);
    assert!(drop["peers"][9]["description"].as_str().unwrap().contains(", then "));

    // The summary follows from the alarms after each episode.
    let detection = &drop["detection"];
    assert_eq!((&detection["detector"], &detection["clear_keeps"]), (&"drop:0.8".into(), &"last".into()));
    let by_episode = detection["by_episode"].as_array().expect("a list");
    assert!(by_episode.len() <= 12, "one entry for each episode, however many encounters there are");
    let (mut n_right, mut n_false, mut n_repeated, mut delay) = (0.0, 0.0, 0.0, 0.0);
    for alarms in by_episode {
        let number = |field: &str| alarms[field].as_f64().expect("a number");
        n_right += number("n_right");
        n_false += number("n_false");
        n_repeated += number("n_repeated");
        delay += number("n_right") * (number("after_episode") - 5.0);
        let of_the_other_part =
            if number("after_episode") > 5.0 { ["n_false", "n_false"] } else { ["n_right", "n_repeated"] };
        assert!(of_the_other_part.iter().all(|field| number(field) == 0.0), "{alarms}");
    }
    assert!(n_right > 0.0 && n_false > 0.0, "rewards of poker go up and down");
    assert_eq!(detection["hit_rate"], n_right / 30.0);
    assert_eq!(detection["mean_delay_episodes"], delay / n_right);
    assert_eq!(detection["false_alarms_per_encounter"], n_false / 30.0);
    assert_eq!(detection["repeated_alarms_per_encounter"], n_repeated / 30.0);

    // The oracle detector reports the switch at once and raises no false alarm.
    let told = adapt(&run, &[&more[..], &["known"]].concat());
    assert_eq!(told["detection"]["hit_rate"], 1.0);
    assert_eq!(told["detection"]["mean_delay_episodes"], 0.0);
    assert_eq!(told["detection"]["false_alarms_per_encounter"], 0.0);
    assert_eq!(told["detection"]["clear_keeps"], "nothing");
    let untold = adapt(&run, &[&more[..], &["none"]].concat());
    assert!(untold["detection"].is_null() && untold["switch"].is_object());
    // Nothing is different until the switch.
    let first_five = |record: &Value| numbers(record, "by_episode", "mean")[..5].to_vec();
    assert_eq!(first_five(&told), first_five(&untold));
    assert_ne!(numbers(&told, "by_episode", "mean"), numbers(&untold, "by_episode", "mean"));

    // Every evaluation has its own record, and all are on one page. Results do not depend on the number of threads.
    let page = fs::read_to_string(run.join("report.html")).expect("a page");
    for name in ["drop-0.8", "known"] {
        let name = format!("test-episodes-12-context-6-switch-5-{name}");
        assert!(run.join(format!("adapt/{name}.json")).exists() && page.contains(&name));
    }
    let drop = without_command(drop);
    for n_threads in ["1", "2", "3"] {
        let again = adapt(&run, &[&more[..], &["drop:0.8", "--threads", n_threads]].concat());
        assert!(without_command(again) == drop, "{n_threads} threads");
    }
}

#[test]
fn a_switch_doubles_the_episodes_by_default() {
    let scratch = scratch();
    let run = scratch.path().join("run");
    train_short(&run, 5);
    let record = adapt(
        &run,
        &["--encounters", "2", "--switch-at", "5", "--detector", "drop:0.8", "--keep-on-clear", "nothing"],
    );
    assert_eq!((&record["episodes"], &record["context_episodes"]), (&10.into(), &5.into()));
    assert_eq!(record["detection"]["clear_keeps"], "nothing");
    assert!(run.join("adapt/test-switch-5-drop-0.8-keeps-nothing.json").exists());
    let output = check(&mut pace(&with("adapt", &run, &["--encounters", "2", "--switch-at", "5"])), FINISHED);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("the context keeps the last 5 hands") && shown.contains("peers replaced after hand 5"),
        "{shown}"
    );
}

#[test]
fn the_temperature_defaults_to_that_of_the_run() {
    let scratch = scratch();
    let [plain, sharp] = ["1", "0.5"].map(|temperature| {
        let run = scratch.path().join(format!("run-{temperature}"));
        let key = format!("temperature={temperature}");
        let more = ["--set", "warm_up_steps=0", "--steps", "1000", "--set", &key];
        check(&mut pace(&train(&run, &more)), FINISHED);
        run
    });
    let blocks = |run: &Path, more: &[&str]| {
        let record = adapt(run, &[&["--encounters", "2"], more].concat());
        (record["temperature"].clone(), numbers(&record, "by_episode", "mean"))
    };
    let as_trained = blocks(&plain, &[]);
    let given = blocks(&plain, &["--temperature", "0.5"]);
    assert!(plain.join("adapt/test-temperature-0.5.json").exists());
    assert_eq!((&as_trained.0, &given.0), (&Value::Null, &0.5.into()));
    assert_ne!(as_trained.1, given.1);
    // The temperature does not affect training.
    assert_eq!(blocks(&sharp, &[]), (Value::Null, given.1.clone()));
    assert_eq!(blocks(&sharp, &["--temperature", "0.5"]), given);
    assert_eq!(blocks(&sharp, &["--temperature", "1"]).1, as_trained.1);
}

#[test]
fn every_context_and_length_of_the_horizon_table_can_be_evaluated() {
    let scratch = scratch();
    for n_context in [4, 8] {
        let run = scratch.path().join(format!("context-{n_context}"));
        train_short(&run, n_context);
        for n_episodes in [4, 8, 11] {
            let (n, n_text) = (n_context.to_string(), n_episodes.to_string());
            let more = ["--encounters", "2", "--episodes", &n_text];
            let record = adapt(&run, &more);
            assert_eq!(
                (&record["episodes"], &record["context_episodes"]),
                (&n_episodes.into(), &n_context.into())
            );
            // The default window is that of training.
            let said = adapt(&run, &[&more[..], &["--context-episodes", &n]].concat());
            assert!(without_command(said) == without_command(record.clone()), "{n_context} {n_episodes}");
            // No episode is dropped while all fit into the context.
            let all = adapt(&run, &[&more[..], &["--context-episodes", "100"]].concat());
            let means = |record: &Value| numbers(record, "by_episode", "mean");
            assert_eq!(means(&all)[..n_context.min(n_episodes)], means(&record)[..n_context.min(n_episodes)]);
            assert_eq!(means(&all) == means(&record), n_episodes <= n_context, "{n_context} {n_episodes}");
        }
    }
}

#[test]
fn an_agent_trained_with_five_peers_is_evaluated_with_three() {
    let scratch = scratch();
    let run = scratch.path().join("run");
    let arguments = ["train", "predator-prey", "--steps", "10", "--set", "n_peers=5"]
        .into_iter()
        .chain(["--set", "encounters_per_tuple=1", "--set", "epochs=1", "--set", "warm_up_steps=0"])
        .chain(["--set", "episodes_per_encounter=2", "--out"]);
    let mut arguments: Vec<OsString> = arguments.map(OsString::from).collect();
    arguments.push(run.clone().into());
    check(&mut pace(&arguments), FINISHED);
    check_error(
        &with("adapt", &run, &["--encounters", "1", "--set", "n_peers=3"]),
        BAD_INPUT,
        &["size 47 and 5 actions", "37 and 5", "pace list games"],
    );
    let more = ["--encounters", "1", "--set", "n_peers=3", "--set", "observation_slots=5"];
    let record = adapt(&run, &more);
    assert_eq!(record["game_keys"]["n_peers"], 3);
    assert_eq!(record["game_keys"]["observation_slots"], 5);
    assert_eq!(record["n_tuples"], 24);
    assert!(run.join("adapt/test-n_peers-3-observation_slots-5.json").exists());
    // Peer tuples of three have no classes of the five-peer game, not even those of the training pool.
    for (pool, reason) in [("test", "none of the classes"), ("train", "not those of the agent's training")] {
        let record = adapt(&run, &[&more[..], &["--pool", pool]].concat());
        assert!(record["identification_undefined"].as_str().expect("a reason").contains(reason), "{record}");
        assert_eq!(record["identification_by_decision"], Value::Array(vec![]));
        assert!(record["blocks"][0]["identification"].is_null());
    }
    // A key that does not change the peers does not change their classes.
    let record = adapt(&run, &["--encounters", "1", "--pool", "train", "--set", "horizon_steps=20"]);
    assert!(record["identification_undefined"].is_null());
    assert!(record["blocks"][0]["identification"]["accuracy"].is_number());
}

#[test]
fn adapt_records_keypoints_identification_and_latents() {
    let (scratch, run) = finished();
    let file = scratch.path().join("latents.csv");
    let path = file.to_str().expect("UTF-8");
    let more = ["--pool", "train", "--encounters", "2", "--episodes", "6", "--latents", path];
    let record = adapt(&run, &more);
    let visits = &record["keypoint_visits"];
    let counts: Vec<u64> = visits["encounters"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|n| n.as_u64().expect("a number"))
        .collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (7, 80));
    let mean = counts.iter().enumerate().map(|(n, count)| n as f64 * *count as f64).sum::<f64>() / 80.0;
    assert!((visits["mean"].as_f64().expect("a number") - mean).abs() < 1e-9);
    assert!((record["keypoint_rate"].as_f64().expect("a number") - mean / 6.0).abs() < 1e-9);
    // A hand has one or two decisions.
    assert!(numbers(&record, "by_episode", "steps").iter().all(|steps| (1.0..=2.0).contains(steps)));
    let bins = record["identification_by_decision"].as_array().expect("a list");
    assert_eq!(bins[0]["n_encounters"], 80);
    assert_eq!(bins[0]["first"], 1);
    assert!(bins.len() <= 12, "one bin for each of few decisions");
    let shares = ["accuracy", "posterior"].map(|field| numbers(&record, "identification_by_decision", field));
    assert!(shares.iter().flatten().all(|share| (0.0..=1.0).contains(share)));

    let table = fs::read_to_string(&file).expect("a file");
    let mut lines = table.lines();
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    assert_eq!(
        names[..8],
        ["tuple", "description", "classes", "episode", "step", "decision", "success", "return"]
    );
    assert_eq!((names[8], names.len()), ("z_0", 8 + 64));
    // One encounter with each of 40 tuples, of six to twelve decisions.
    let n_lines = lines.clone().count();
    assert!((240..=480).contains(&n_lines), "{n_lines}");
    assert!(lines.next().expect("a decision").starts_with("0,\""));
}
