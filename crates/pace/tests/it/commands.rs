//! The commands as a person runs them, and what they say when something is wrong.

use std::process::{Command, Output};

use pace_games::GAMES;
use serde_json::Value;

fn pace(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pace")).args(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// The standard output of a command that succeeds.
pub(crate) fn run(arguments: &[&str]) -> String {
    let output = pace(arguments);
    assert!(output.status.success(), "pace {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&run(arguments)).expect("the output is JSON")
}

/// A command that fails with this exit code and one line that holds all of `words`, and prints nothing else.
pub(crate) fn check_error(arguments: &[&str], code: i32, words: &[&str]) {
    let output = pace(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "pace {arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for word in words {
        assert!(message.contains(word), "pace {arguments:?}: no {word:?} in {message}");
    }
}

#[test]
fn list_games_names_all_games() {
    let listed = run(&["list", "games"]);
    let document = json(&["list", "games", "--json"]);
    for (index, entry) in GAMES.iter().enumerate() {
        assert!(listed.contains(entry.id));
        assert_eq!(document["games"][index]["spec"]["id"], entry.id);
    }
}

#[test]
fn list_peers_shows_both_pools() {
    for entry in GAMES {
        let document = json(&["list", "peers", entry.id, "--json"]);
        let count = |pool: usize| document["pools"][pool]["tuples"].as_array().map_or(0, Vec::len);
        let expected = match entry.id {
            "kuhn-poker" => (40, 10),
            "overcooked" => (18, 9),
            "predator-prey" => (16, 24),
            other => panic!("{other}: how many peers has it?"),
        };
        assert_eq!((count(0), count(1)), expected, "{}", entry.id);
        assert!(run(&["list", "peers", entry.id]).lines().count() > expected.0);
    }
    let drawn = json(&["list", "peers", "kuhn-poker", "--pool", "uniform:7", "--json"]);
    assert_eq!(drawn["pools"][0]["tuples"].as_array().map(Vec::len), Some(7));
}

#[test]
fn check_passes_for_every_game() {
    for entry in GAMES {
        assert!(run(&["check", entry.id]).contains("keeps its contract"));
        assert!(run(&["check", entry.id, "--preset", "reference"]).contains("keeps its contract"));
    }
}

#[test]
fn watch_plays_every_reference() {
    for entry in GAMES {
        for ego in ["oracle", "bayes", "static", "random"] {
            let shown = run(&["watch", entry.id, "--ego", ego, "--peer", "2", "--episodes", "2"]);
            assert!(shown.contains(" 2 of 2 =="), "{shown}");
            assert!(shown.contains(" over 2"), "{shown}");
        }
    }
}

#[test]
fn watch_is_the_same_twice_and_waits_when_asked() {
    let arguments = ["watch", "kuhn-poker", "--seed", "5"];
    assert_eq!(run(&arguments), run(&arguments));
    // Standard input is empty here, so every wait ends at once.
    assert!(run(&["watch", "kuhn-poker", "--episodes", "1", "--step"]).contains("[Enter]"));
}

#[test]
fn references_are_printed_as_scripts_expect_them() {
    let arguments = ["references", "kuhn-poker", "--encounters", "4", "--json"];
    let document = json(&arguments);
    let rows = document["references"].as_array().expect("a list");
    let find = |agent: &str, preset: &str| {
        rows.iter().find(|row| row["agent"] == agent && row["preset"] == preset).expect("a row")
    };
    for preset in ["paper", "reference"] {
        for agent in ["oracle", "bayes", "static", "nash", "random"] {
            let row = find(agent, preset);
            assert_eq!((&row["game"], &row["pool"]), (&"kuhn-poker".into(), &"test".into()));
            assert!(row["mean"].is_number() && row["standard_error"].is_number(), "{row}");
        }
    }
    let oracle = find("oracle", "paper")["mean"].as_f64().expect("a number");
    assert!((oracle - 0.07693).abs() < 5e-6, "{oracle}");
    assert_eq!(document, json(&arguments));
    assert!(run(&["references", "kuhn-poker", "--encounters", "2", "--markdown"]).contains("| oracle"));
}

#[test]
fn bench_games_prints_what_scripts_expect() {
    let document = json(&["bench", "games", "--json", "--seconds", "0.05"]);
    for (row, entry) in document["games"].as_array().expect("a list").iter().zip(GAMES) {
        assert_eq!(row["game"], entry.id);
        assert!(row["steps_per_second"].as_f64().is_some_and(|rate| rate > 0.0));
    }
}

#[test]
fn quickstart_trains_meets_the_peers_and_goes_on() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("quick");
    let out = out.to_str().expect("UTF-8");
    let arguments = ["quickstart", "--steps", "100000", "--encounters", "4", "--out", out];
    let shown = run(&arguments);
    for word in ["oracle", "bayes", "static", "nash", "91-100", "standard errors", "report.html"] {
        assert!(shown.contains(word), "no {word:?} in {shown}");
    }
    assert!(folder.path().join("quick/report.html").is_file());
    // The finished run is used as it is.
    assert_eq!(run(&arguments), shown);
}

#[test]
fn bench_engine_prints_what_scripts_expect() {
    let document = json(&["bench", "engine", "--json", "--seconds", "0.1"]);
    assert!(document["gemm_peak_gflops"].as_f64().is_some_and(|rate| rate > 0.0));
    let updates = document["update"].as_array().expect("a list");
    for shape in ["kuhn-poker", "kuhn-poker-unlike", "overcooked", "predator-prey"] {
        let row = updates.iter().find(|row| row["shape"] == shape && row["threads"] == 1).expect("a row");
        for name in [
            "decisions",
            "ms",
            "gflops",
            "share_of_peak",
            "gemm_gflops_same_shapes",
            "share_of_gemm",
            "speedup_over_one_thread",
        ] {
            assert!(row[name].as_f64().is_some_and(|number| number > 0.0), "{name} in {row}");
        }
    }
    for method in ["generalist", "liamx", "lili", "pace-tf"] {
        let rows = document["methods"].as_array().expect("a list");
        let row = rows.iter().find(|row| row["method"] == method && row["threads"] == 1).expect("a row");
        for name in ["ms", "share_of_gemm", "times_pace_per_decision"] {
            assert!(row[name].as_f64().is_some_and(|number| number > 0.0), "{name} in {row}");
        }
    }
    let rollouts = document["rollout"].as_array().expect("a list");
    for entry in GAMES {
        let row = rollouts.iter().find(|row| row["shape"] == entry.id && row["threads"] == 1).expect("a row");
        for name in ["ms", "decisions", "share_of_update"] {
            assert!(row[name].as_f64().is_some_and(|number| number > 0.0), "{name} in {row}");
        }
    }
    let one = json(&["bench", "engine", "--json", "--seconds", "0.1", "--shape", "unlike", "--threads", "1"]);
    assert_eq!(one["update"].as_array().map(Vec::len), Some(1));
}

#[test]
fn bench_train_prints_what_scripts_expect() {
    let small = ["--set", "encounters_per_tuple=1", "--set", "epochs=1", "--set", "minibatches=2"];
    let mut arguments = vec!["bench", "train", "--json", "--seconds", "0.05"];
    arguments.extend(small);
    let document = json(&arguments);
    let runs = document["runs"].as_array().expect("a list");
    for entry in GAMES {
        let row = runs.iter().find(|row| row["game"] == entry.id && row["threads"] == 1).expect("a row");
        for name in ["steps_per_second", "peak_rss_mb", "iterations", "rollout_share"] {
            assert!(row[name].as_f64().is_some_and(|number| number > 0.0), "{name} in {row}");
        }
    }
    for preset in ["best", "paper"] {
        assert!(runs.iter().any(|row| row["preset"] == preset), "{preset}");
    }
    check_error(&["bench", "train", "kuhn-poker", "--preset", "beste"], 2, &["beste", "best"]);
    check_error(&["bench", "train", "kun-poker"], 2, &["kun-poker", "did you mean \"kuhn-poker\"?"]);
    check_error(&["bench", "train", "kuhn-poker", "--set", "epochs=0"], 2, &["epochs", "found 0"]);
    check_error(
        &["bench", "engine", "--shape", "chess"],
        2,
        &["chess", "kuhn-poker, kuhn-poker-unlike, overcooked, predator-prey"],
    );
    check_error(&["bench", "engine", "--shape", "overcook3d"], 2, &["did you mean \"overcooked\"?"]);
}

#[test]
fn bad_input_gets_one_clear_line() {
    check_error(&["watch", "kun-poker"], 2, &["kun-poker", "did you mean \"kuhn-poker\"?"]);
    check_error(&["check", "chess"], 2, &["chess", "known: kuhn-poker"]);
    check_error(&["watch", "kuhn-poker", "--ego", "byes"], 2, &["byes", "did you mean \"bayes\"?"]);
    check_error(&["watch", "kuhn-poker", "--peer", "10"], 2, &["no peer 10", "0 to 9"]);
    check_error(&["watch", "kuhn-poker", "--peer", "-1"], 2, &["-1"]);
    check_error(&["watch", "kuhn-poker", "--pool", "tets"], 2, &["tets", "did you mean \"test\"?"]);
    check_error(&["list", "peers", "kuhn-poker", "--pool", "uniform:0"], 2, &["uniform:0", "1 to 1000000"]);
    check_error(&["check", "kuhn-poker", "--preset", "papre"], 2, &["papre", "did you mean \"paper\"?"]);
    check_error(
        &["check", "kuhn-poker", "--set", "episods=3"],
        3,
        &["unknown key \"episods\"", "episodes_per_encounter"],
    );
    check_error(&["check", "kuhn-poker", "--set", "episodes_per_encounter=0"], 3, &["found 0", "1 to 10000"]);
    check_error(&["check", "kuhn-poker", "--set", "episodes_per_encounter=many"], 3, &["many"]);
    check_error(&["check", "kuhn-poker", "--set", "episodes_per_encounter"], 3, &["KEY=VALUE"]);
    check_error(&["quickstrat"], 2, &["quickstrat", "quickstart"]);
    check_error(&["references", "--encounters", "1"], 2, &["--encounters", "at least 2"]);
    check_error(&["bench", "games", "--seconds", "nan"], 2, &["--seconds"]);
}
