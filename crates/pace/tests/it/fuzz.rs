//! Odd values for every argument of every command: each gives a documented exit code and one clear line, and no panic.
//!
//! The commands and their arguments come from `pace commands`. A sample is run by default, everything with `PACE_THOROUGH=1`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pace_games::GAMES;
use pace_lab::{RunConfig, RunRequest};
use serde_json::{Map, Value, json};

use crate::commands::{json, run};
use crate::training::{STOPPED, copy_folder};

/// Arguments with which each command ends within seconds: a run of a few steps, an address that no machine has, or a file that
/// is not there.
struct Base {
    path: &'static str,
    positionals: &'static str,
    options: &'static str,
}

const fn base(path: &'static str, positionals: &'static str, options: &'static str) -> Base {
    Base { path, positionals, options }
}

const BASES: &[Base] = &[
    base("quickstart", "", "--steps 1 --encounters 2 --threads 1 --out new"),
    base("train", "kuhn-poker", TINY_RUN),
    base("resume", "run", "--threads 1"),
    base("adapt", "run", "--encounters 1 --threads 1"),
    // `--` leaves the experiment at its default, which is all of them; a file cannot be the folder of a lab.
    base("reproduce", "nowhere.toml", "--out run/config.toml"),
    base("plan", "smoke", ""),
    base("report", "run", ""),
    base("keep", "run", "--into records --variant tiny"),
    base("inspect", "run", ""),
    base("list games", "", ""),
    base("list methods", "", ""),
    base("list peers", "kuhn-poker", ""),
    base("list experiments", "", ""),
    base("check", "kuhn-poker", "--set episodes_per_encounter=2"),
    base("watch", "run", "--episodes 1"),
    base("play", "run", "--port 0 --bind 192.0.2.1"),
    base("study export", "nowhere.sqlite", "--csv"),
    base("study summary", "nowhere.sqlite", ""),
    base("study delete", "nowhere.sqlite p1", ""),
    base("study links", "nowhere.sqlite p1", ""),
    base("references", "kuhn-poker", "--encounters 2 --preset paper --set episodes_per_encounter=2"),
    base("bench games", "", "--seconds 0.001 --lanes 2"),
    base("bench engine", "", "--seconds 0.001 --threads 1 --shape kuhn-poker-distinct"),
    base("bench train", "kuhn-poker", TINY_BENCH),
    base("bench play", "", "--seconds 0.2 --ramp-up 0 --sessions 1 --rate 25"),
    base("completions", "bash", ""),
    base("man", "new", ""),
    base("commands", "", ""),
];

const TINY_RUN: &str = "--steps 1 --threads 1 --out new --set episodes_per_encounter=3 --set encounters_per_tuple=1 \
                        --set epochs=1 --set minibatches=1 --set hidden_width=8 --set warm_up_steps=0";

const TINY_BENCH: &str = "--seconds 0.001 --threads 1 --preset paper --set episodes_per_encounter=3 \
                          --set encounters_per_tuple=1 --set epochs=1 --set minibatches=1 --set hidden_width=8";

/// Number of odd values per argument without `PACE_THOROUGH=1`.
const SAMPLE: usize = 3;
/// A process that takes longer counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);

fn odd_values() -> Vec<String> {
    let numbers = "0 -1 1 9223372036854775807 18446744073709551615 99999999999999999999999 1e-300 1e308 NaN inf -0 0x10";
    let texts = ["", "½ 試験 \u{202e}", "a\nb\tc\u{1b}[31m", "=", "a=b", "nowhere/at/all", ".", "--"];
    let mut values: Vec<String> = numbers.split(' ').chain(texts).map(str::to_owned).collect();
    values.push("x".repeat(100_000));
    values
}

/// Jargon of the parsers of JSON, TOML and the command line that does not help users.
const PARSER_JARGON: &str = "invalid type|invalid value|invalid length|missing field|unknown field|unknown variant|\
                                expected u64|expected usize|expected f64|expected struct|invalid digit|invalid float";

fn check_message(message: &str, what: &str) {
    assert!(message.len() < 8_000, "{what}: {} bytes in {message}", message.len());
    assert!(!message.chars().any(char::is_control), "{what}: control characters in {message:?}");
    for words in PARSER_JARGON.split('|') {
        assert!(!message.contains(words), "{what}: {words:?} in {message}");
    }
}

/// The arguments of one process.
fn cases() -> Vec<Vec<String>> {
    let document = json(&["commands"]);
    let commands = document["commands"].as_array().expect("a list");
    let is_full = std::env::var_os("PACE_THOROUGH").is_some_and(|value| value == "1");
    let values = odd_values();
    let mut cases = Vec::new();
    let mut n_arguments = 0;
    for command in commands {
        let path: Vec<&str> = command["path"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|name| name.as_str().expect("a name"))
            .collect();
        let base = BASES.iter().find(|base| base.path == path.join(" "));
        let base = base.unwrap_or_else(|| {
            panic!("pace {}: add arguments to BASES with which it ends at once", path.join(" "))
        });
        let mut n_positionals = 0;
        for argument in command["arguments"].as_array().expect("a list") {
            let option = argument["option"].as_str();
            let takes_value = argument["takes_value"] == true;
            let place = n_positionals;
            n_positionals += usize::from(option.is_none());
            n_arguments += 1;
            // Each argument begins its sample at another value.
            let (n_values, stride) =
                if is_full { (values.len(), 1) } else { (SAMPLE, values.len() / SAMPLE) };
            let sampled = values.iter().cycle().skip(n_arguments).step_by(stride).take(n_values);
            let with = |value: Option<&String>| -> Vec<String> {
                let mut positionals: Vec<&str> = base.positionals.split_whitespace().collect();
                let mut options: Vec<&str> = Vec::new();
                for pair in pairs(base.options) {
                    // A key of its own does not undo those that keep a run small.
                    if option != Some(pair[0]) || pair[0] == "--set" {
                        options.extend(pair);
                    }
                }
                match (option, value) {
                    (Some(option), value) => {
                        options.extend([option].into_iter().chain(value.map(String::as_str)));
                    }
                    (None, Some(value)) if place < positionals.len() => positionals[place] = value,
                    (None, value) => positionals.extend(value.map(String::as_str)),
                }
                path.iter().copied().chain(positionals).chain(options).map(str::to_owned).collect()
            };
            if takes_value {
                cases.extend(sampled.map(|value| with(Some(value))));
            } else {
                cases.push(with(None));
            }
        }
    }
    cases
}

/// Options with their values: `--csv` alone, `--seconds 2` together.
fn pairs(options: &str) -> Vec<Vec<&str>> {
    let mut pairs: Vec<Vec<&str>> = Vec::new();
    for word in options.split_whitespace() {
        match pairs.last_mut() {
            Some(pair) if !word.starts_with("--") => pair.push(word),
            _ => pairs.push(vec![word]),
        }
    }
    pairs
}

/// Runs one command in a new folder that contains a trained run.
fn check_case(arguments: &[String], trained: &Path, folder: &Path) {
    fs::create_dir(folder).expect("a new folder");
    copy_folder(trained, &folder.join("run"));
    let shown: Vec<String> = arguments.iter().map(|argument| argument.chars().take(40).collect()).collect();
    let what = format!("pace {shown:?}");
    let [out, errors] = ["stdout", "stderr"].map(|name| File::create(folder.join(name)).expect("a new file"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pace"))
        .args(arguments)
        .current_dir(folder)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child to wait for") {
            break status;
        }
        if begin.elapsed() > LIMIT {
            // With the processes that it has started.
            let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
            let _ = child.wait();
            panic!("{what}: hangs");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let message = String::from_utf8(fs::read(folder.join("stderr")).expect("readable")).expect("UTF-8");
    assert!(!message.contains("panicked"), "{what}: {message}");
    let code = status.code().unwrap_or_else(|| panic!("{what}: killed by a signal: {message}"));
    assert!([0, 1, 2, 3, 4, STOPPED].contains(&code), "{what}: exit code {code}: {message}");
    let errors: Vec<&str> = message.lines().filter(|line| line.starts_with("error")).collect();
    let has_failed = ![0, STOPPED].contains(&code);
    assert_eq!(errors.len(), usize::from(has_failed), "{what}: exit code {code} with {message}");
    errors.iter().for_each(|error| check_message(error, &what));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn odd_argument_values_succeed_or_get_one_clear_line() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let trained = scratch.path().join("trained");
    let mut arguments = vec!["train", "kuhn-poker"];
    arguments.extend(TINY_RUN.split_whitespace());
    let place = arguments.iter().position(|argument| *argument == "new").expect("an --out");
    arguments[place] = trained.to_str().expect("UTF-8");
    run(&arguments);
    let (cases, next) = (cases(), AtomicUsize::new(0));
    assert!(cases.len() > 200, "{} cases", cases.len());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(arguments) = cases.get(number) else { break };
                    check_case(arguments, &trained, &scratch.path().join(format!("case-{number}")));
                }
            });
        }
    });
}

#[test]
fn every_command_has_base_arguments() {
    let document = json(&["commands"]);
    let mut known: Vec<String> = document["commands"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|command| {
            let path = command["path"].as_array().expect("a list").iter();
            path.map(|name| name.as_str().expect("a name").to_owned()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let mut based: Vec<&str> = BASES.iter().map(|base| base.path).collect();
    known.sort();
    based.sort_unstable();
    assert_eq!(known, based);
}

#[test]
fn odd_key_values_are_accepted_or_rejected_in_one_clear_line() {
    let values = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(1e308),
        json!(u64::MAX),
        json!(""),
        json!("a\nb"),
        json!("x".repeat(100_000)),
        json!([]),
        json!([1, 2]),
        json!({}),
        json!({ "a": 1 }),
    ];
    let resolve = |game: &str, method: &str, overrides: Map<String, Value>| {
        RunConfig::resolve(&RunRequest {
            game,
            method,
            preset: "paper",
            seed: 1,
            file: None,
            overrides,
            scale: 1.0,
        })
    };
    for (game, method) in GAMES.iter().map(|entry| (entry.id, "pace")).chain([("kuhn-poker", "gscu")]) {
        let config = resolve(game, method, Map::new());
        // This method needs the name of a run, which is not read here.
        let named = Map::from_iter([("gscu.conservative_run".to_owned(), json!("run"))]);
        let config = config.or_else(|_| resolve(game, method, named.clone())).expect("the preset");
        let Ok(Value::Object(of_training)) = serde_json::to_value(&config.train) else {
            panic!("a map of keys")
        };
        let sections = of_training.iter().filter_map(|(key, value)| Some((key, value.as_object()?)));
        let inner: Vec<String> = sections
            .flat_map(|(section, keys)| keys.keys().map(move |key| format!("{section}.{key}")))
            .collect();
        let keys: Vec<&String> = of_training.keys().chain(config.game_keys.keys()).chain(&inner).collect();
        assert!(keys.len() > 30, "{keys:?}");
        for key in keys {
            for value in &values {
                let mut overrides = if method == "gscu" { named.clone() } else { Map::new() };
                overrides.insert(key.clone(), value.clone());
                if let Err(error) = resolve(game, method, overrides) {
                    let what: String = format!("{game} {method} {key}={value}").chars().take(80).collect();
                    check_message(&error.to_string(), &what);
                }
            }
        }
    }
}
