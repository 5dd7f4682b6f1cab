//! The commands with the real binary: their output, and their messages for invalid input.

use std::process::{Command, Output};

use pace_games::{GAMES, Preset, Split};
use serde_json::{Map, Value};

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

/// Checks that a command fails with this exit code and one line that contains all `fragments`, and prints nothing else.
pub(crate) fn check_error(arguments: &[&str], code: i32, fragments: &[&str]) {
    let output = pace(arguments);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "pace {arguments:?}: {message}");
    assert_eq!(message.lines().count(), 1, "one line: {message}");
    assert!(message.starts_with("error: "), "{message}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    for fragment in fragments {
        assert!(message.contains(fragment), "pace {arguments:?}: no {fragment:?} in {message}");
    }
}

#[test]
fn list_games_names_all_games() {
    let listed = run(&["list", "games"]);
    let document = json(&["list", "games", "--json"]);
    for (index, entry) in GAMES.iter().enumerate() {
        assert!(listed.contains(entry.id));
        assert_eq!(document["games"][index]["spec"]["id"], entry.id);
        assert_eq!(
            document["games"][index]["chosen_on"],
            serde_json::json!({ "paper": null, "reference": null, "best": "test" })
        );
    }
}

#[test]
fn list_peers_shows_all_pools() {
    for entry in GAMES {
        let document = json(&["list", "peers", entry.id, "--json"]);
        let count = |pool: usize| document["pools"][pool]["tuples"].as_array().map_or(0, Vec::len);
        let game = entry.open(Preset::Paper, &Map::new()).expect("a preset");
        let expected = [Split::Train, Split::Test, Split::Validation].map(|split| game.n_tuples(split));
        assert_eq!([count(0), count(1), count(2)], expected, "{}", entry.id);
        let validation = json(&["list", "peers", entry.id, "--pool", "validation", "--json"]);
        assert_eq!(validation["pools"], serde_json::json!([document["pools"][2]]));
        assert!(run(&["list", "peers", entry.id]).lines().count() > expected[0]);
    }
    let drawn = json(&["list", "peers", "kuhn-poker", "--pool", "uniform:7", "--json"]);
    assert_eq!(drawn["pools"][0]["tuples"].as_array().map(Vec::len), Some(7));
}

#[test]
fn check_passes_for_every_game() {
    for entry in GAMES {
        assert!(run(&["check", entry.id]).contains("conformance checks passed"));
        assert!(run(&["check", entry.id, "--preset", "reference"]).contains("conformance checks passed"));
        assert!(run(&["check", entry.id, "--preset", "best"]).contains("conformance checks passed"));
    }
}

#[test]
fn watch_plays_every_reference() {
    for entry in GAMES {
        let game = entry.open(Preset::Paper, &Map::new()).expect("a preset");
        let last_peer = (game.n_tuples(Split::Test) - 1).to_string();
        for ego in game.reference_names() {
            let shown = run(&["watch", entry.id, "--ego", ego, "--peer", &last_peer, "--episodes", "2"]);
            assert!(shown.contains(" 2 of 2 =="), "{shown}");
            assert!(shown.contains(" over 2"), "{shown}");
        }
    }
}

#[test]
fn watch_is_reproducible_and_waits_with_step() {
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
fn quickstart_trains_evaluates_and_reuses_a_finished_run() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("quick");
    let out = out.to_str().expect("UTF-8");
    let arguments = ["quickstart", "--steps", "100000", "--encounters", "4", "--out", out];
    let shown = run(&arguments);
    for word in ["oracle", "bayes", "static", "nash", "91-100", "standard errors", "report.html"] {
        assert!(shown.contains(word), "no {word:?} in {shown}");
    }
    assert!(folder.path().join("quick/report.html").is_file());
    // A finished run is reused.
    assert_eq!(run(&arguments), shown);
}

#[test]
fn bench_engine_prints_what_scripts_expect() {
    let document = json(&["bench", "engine", "--json", "--seconds", "0.1"]);
    assert!(document["gemm_peak_gflops"].as_f64().is_some_and(|rate| rate > 0.0));
    let updates = document["update"].as_array().expect("a list");
    for shape in ["kuhn-poker", "kuhn-poker-distinct", "overcooked", "predator-prey"] {
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
    let one =
        json(&["bench", "engine", "--json", "--seconds", "0.1", "--shape", "distinct", "--threads", "1"]);
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
        &["chess", "kuhn-poker, kuhn-poker-distinct, overcooked, predator-prey"],
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
    check_error(&["references", "--encounters", "1"], 2, &["--encounters", "2 to 1000000"]);
    check_error(&["bench", "games", "--seconds", "nan"], 2, &["--seconds"]);
}

#[test]
fn numbers_out_of_range_are_refused_before_any_work() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let out = scratch.path().join("quick");
    let quickstart = ["quickstart", "--steps", "1", "--out", out.to_str().expect("UTF-8"), "--encounters"];
    for found in ["9223372036854775807", "1", "-1", "many", "99999999999999999999999"] {
        check_error(&[&quickstart[..], &[found]].concat(), 2, &["--encounters", found, "from 2 to 10000"]);
    }
    assert!(!out.exists(), "a refused command leaves no folder");
    for found in ["18446744073709551615", "0", "-1", "65537"] {
        check_error(&["bench", "games", "--lanes", found], 2, &["--lanes", found, "from 1 to 65536"]);
    }
    for found in ["1e-300", "0", "-1", "nan", "inf", "26"] {
        check_error(&["bench", "play", "--rate", found], 2, &["--rate", found, "from 0.01 to 25"]);
    }
    check_error(&["bench", "train", "--seconds", "1e300"], 2, &["--seconds", "from 0.001 to 1000000"]);
    check_error(&["references", "--encounters", "18446744073709551615"], 2, &["from 2 to 1000000"]);
    check_error(&["train", "kuhn-poker", "--scale", "nan"], 2, &["--scale", "found nan", "above 0"]);
    check_error(&["plan", "--scale", "-1"], 2, &["--scale: found -1", "see `pace plan --help`"]);
    check_error(&["play", "--bind", "home"], 2, &["--bind: found home", "127.0.0.1"]);
    check_error(&["play", "--port", "65536"], 2, &["--port: found 65536", "0 to 65535"]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_without_an_end_is_refused() {
    let expected = ["/dev/zero: found more than 1048576 bytes", "expected"];
    check_error(&["train", "kuhn-poker", "--config", "/dev/zero"], 3, &expected);
    check_error(&["play", "--port", "0", "--study", "/dev/zero"], 3, &expected);
}

#[test]
fn messages_are_short_and_contain_no_jargon_of_the_parser() {
    let words = |arguments: &[&str], code: i32, expected: &[&str]| {
        check_error(arguments, code, expected);
        let message = text(&pace(arguments).stderr).to_owned();
        assert!(message.len() < 3000, "{} bytes: {message}", message.len());
        for word in
            ["invalid type", "usize", "f64", "unknown variant", "unknown field", "missing field", "digit"]
        {
            assert!(!message.contains(word), "{word:?} in {message}");
        }
    };
    let key = |pair: &str, expected: &[&str]| words(&["check", "kuhn-poker", "--set", pair], 3, expected);
    key("episodes_per_encounter=many", &["found \"many\"; expected a whole number from 0"]);
    key("episodes_per_encounter=1.5", &["found 1.5; expected a whole number from 0"]);
    key("episodes_per_encounter", &["found \"episodes_per_encounter\"; expected KEY=VALUE"]);
    key("", &["found \"\"; expected KEY=VALUE"]);
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let out = scratch.path().join("run").display().to_string();
    let train = |pair: &str, expected: &[&str]| {
        words(&["train", "kuhn-poker", "--out", &out, "--set", pair], 3, expected);
    };
    train("learning_rate=fast", &["found \"fast\"; expected a number"]);
    train(
        "minibatch_unit=halves",
        &["found \"halves\"; expected one of encounters, balanced, steps, chunks"],
    );
    words(&["train", "kuhn-poker", "--seed", "one"], 2, &["--seed: found one, expected a whole number"]);
    let long = "x".repeat(100_000);
    words(&["check", &long], 2, &["x… (100000 characters)"]);
    words(
        &["check", "kuhn-poker", "--set", &format!("episodes_per_encounter={long}")],
        3,
        &["x… (100002 characters)"],
    );
    words(&["check", "kuhn-poker", "--seed", &long], 2, &["x… (100000 characters)"]);
    words(&["inspect", &long], 3, &["File name too long"]);
    words(&["check", "kuhn-poker", &format!("--{long}")], 2, &["unexpected argument", "(100002 characters)"]);
    words(&["check", "a\nb\u{1b}[31m"], 2, &["\"a\\nb\\u{1b}[31m\""]);
    words(&["inspect", "a\nb"], 3, &["a\\nb is not a run folder"]);
    let experiment = scratch.path().join("mine.toml");
    std::fs::write(&experiment, "title = \"mine\"\nseeds = \"two\"\n").expect("written");
    words(
        &["plan", experiment.to_str().expect("UTF-8")],
        3,
        &["mine.toml: line 2: found \"two\", expected a whole"],
    );
    std::fs::write(&experiment, "titel = \"mine\"\n").expect("written");
    words(
        &["plan", experiment.to_str().expect("UTF-8")],
        3,
        &["line 1: unknown key `titel`; known: title, "],
    );
}

#[test]
fn usage_errors_name_what_is_missing_and_the_help_of_the_command() {
    check_error(&["train"], 2, &["error: missing <GAME>; see `pace train --help`"]);
    check_error(&["study", "export"], 2, &["<--csv|--jsonl> and <FILE>; see `pace study export --help`"]);
    check_error(
        &["check", "kuhn-poker", "--sed", "1"],
        2,
        &["`--sed` (did you mean `--seed`?)", "pace check --help"],
    );
    check_error(
        &["bench", "game"],
        2,
        &["unknown command \"game\"", "did you mean \"games\"?", "`pace bench --help`"],
    );
    check_error(&["chekc"], 2, &["did you mean \"check\"?", "known: quickstart", "see `pace --help`"]);
    check_error(&["watch", "kuhn"], 2, &["did you mean \"kuhn-poker\"?"]);
    check_error(&["check", "poker"], 2, &["did you mean \"kuhn-poker\"?"]);
    check_error(
        &["train", "kuhn-poker", "--config"],
        2,
        &["--config: found nothing", "see `pace train --help`"],
    );
    check_error(
        &["study", "export", "x.sqlite", "--csv", "--jsonl"],
        2,
        &["--csv", "--jsonl", "see `pace study export --help`"],
    );
}

#[test]
fn help_of_the_help_command_is_the_help() {
    assert_eq!(run(&["help", "--help"]), run(&["help"]));
    assert_eq!(run(&["help", "-h"]), run(&["help"]));
    assert_eq!(run(&["help", "train", "--help"]), run(&["help", "train"]));
    assert_eq!(run(&["bench", "help", "--help"]), run(&["bench", "help"]));
    assert!(run(&["help"]).contains("Exit codes: 0 done; 1 failure"));
    assert!(run(&["help"]).contains("quickstart") && !run(&["help"]).contains("commands "));
}

#[test]
fn help_of_report_names_the_folders_that_it_reads() {
    let help = run(&["report", "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let folders = ["lab/runs", "results", "runs"];
    assert!(help.contains("Default: the first that exists of lab/runs, results, runs"), "{help}");
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let report = || {
        let output =
            Command::new(env!("CARGO_BIN_EXE_pace")).arg("report").current_dir(scratch.path()).output();
        text(&output.expect("the binary runs").stderr).to_owned()
    };
    assert!(report().contains("none of lab/runs, results, runs exists"), "{}", report());
    for folder in folders.into_iter().rev() {
        std::fs::create_dir_all(scratch.path().join(folder)).expect("made");
        assert!(report().starts_with(&format!("error: {folder} has no runs")), "{}", report());
    }
}

#[test]
fn watch_prints_its_legend_once() {
    for (game, lines) in [
        ("kuhn-poker", &["the cards", "a check, or a fold"][..]),
        ("overcooked", &["@ plate, / cutting board, * delivery tile", "{ } n u  the peer"]),
        ("predator-prey", &["E  the ego", "T  watchtower"]),
    ] {
        let shown = run(&["watch", game, "--episodes", "2"]);
        assert!(shown.starts_with("legend\n") && shown.matches("legend\n").count() == 1, "{shown}");
        let (legend, _) = shown.split_once("\n\n==").expect("the first episode");
        assert!(legend.contains("-- step N: action of each player"), "{legend}");
        for line in lines {
            assert!(legend.contains(line), "{game}: no {line:?} in {legend}");
        }
        // A scripted ego has no panel.
        assert!(!legend.contains("belief about") && !legend.contains("value: "), "{legend}");
    }
}

#[test]
fn preset_best_opens_a_game_as_it_is_trained_on() {
    let n_tuples = |preset: &str| {
        let text = run(&["list", "peers", "predator-prey", "--pool", "train", "--preset", preset]);
        text.lines().count() - 1
    };
    assert_eq!(n_tuples("paper"), 16);
    // With quarter turns and practice copies (deviations D9 and D11).
    assert_eq!(n_tuples("best"), 24 * 9);
}

#[test]
fn completions_name_every_command_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]);
        for command in ["quickstart", "reproduce", "completions"] {
            assert!(script.contains(command), "{shell} does not complete {command}");
        }
    }
    check_error(&["completions", "tcsh"], 2, &["tcsh", "bash", "pace completions --help"]);
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("man1");
    run(&["man", out.to_str().expect("UTF-8")]);
    for (page, text) in [("pace.1", "quickstart"), ("pace-train.1", "preset"), ("pace-study-export.1", "csv")]
    {
        let page = std::fs::read_to_string(out.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(page.starts_with(".ie") && page.contains(text), "{page}");
    }
    assert!(!out.join("pace-commands.1").exists(), "a hidden command has no page");
    // A file where the folder should be.
    let file = out.join("pace.1");
    check_error(&["man", file.to_str().expect("UTF-8")], 3, &["pace.1", "part of this path is a file"]);
}
