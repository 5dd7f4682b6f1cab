//! The resolved keys of every game, method and preset, and the ids of all recorded runs, as committed text files.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use pace_games::{GAMES, Preset};
use pace_lab::{RunConfig, RunRequest, hash_of_run, id_of_run};
use pace_learn::METHODS;
use serde_json::Map;

/// The lines of a run's `config.toml`, each with the name of its section.
fn lines(config: &RunConfig) -> Vec<String> {
    let mut section = String::new();
    let mut lines = Vec::new();
    for line in config.to_toml().lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = format!("{name}."),
            None => lines.push(format!("{section}{line}")),
        }
    }
    lines
}

/// All keys of the first method with the first preset; for the others only the lines that differ. Ids depend on every key.
fn resolved_keys(game: &str) -> String {
    let mut text = String::new();
    let mut first = Vec::new();
    for method in METHODS {
        for preset in Preset::ALL {
            let request = RunRequest {
                game,
                method: method.id,
                preset: preset.name(),
                seed: 1,
                file: None,
                overrides: Map::new(),
                scale: 1.0,
            };
            let config = RunConfig::resolve(&request).unwrap_or_else(|error| panic!("{error}"));
            let id = config.id().expect("an id");
            writeln!(text, "{} {}: id {id}", method.id, preset.name()).expect("a text");
            let all = lines(&config);
            for line in all.iter().filter(|line| !first.contains(*line)) {
                writeln!(text, "    {line}").expect("a text");
            }
            if first.is_empty() {
                first = all;
            }
        }
    }
    text
}

fn check_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resolved_keys").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).expect("the file can be written");
    }
    let golden = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display()));
    for (number, (found, golden)) in found.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, golden, "{} line {}", path.display(), number + 1);
    }
    assert_eq!(found.lines().count(), golden.lines().count(), "{}", path.display());
}

#[test]
fn presets_resolve_to_the_recorded_keys() {
    for entry in GAMES {
        check_golden(&format!("{}.txt", entry.id), &resolved_keys(entry.id));
    }
}

/// The file may also list runs that are no longer recorded.
#[test]
fn recorded_runs_keep_their_ids_and_hashes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("tests/resolved_keys/results.txt");
    let known = std::fs::read_to_string(&file).expect("readable");
    let mut known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
    let n_known = known.len();
    let is_update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for entry in std::fs::read_dir(root.join("../../results")).expect("results").flatten() {
        let path = entry.path().join("config.toml");
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let config = RunConfig::from_toml(&path.display().to_string(), &text).expect("readable");
        let hash = hash_of_run(&config, &entry.path()).expect("a hash");
        let id = id_of_run(&config, &entry.path()).expect("an id");
        // Most of these files have old names of keys.
        let rewritten = RunConfig::from_toml("rewritten", &config.to_toml()).expect("readable");
        assert_eq!(rewritten, config);
        let is_new = known.insert(format!("id {id}, hash {hash}"));
        let hint = "if this run was just recorded, UPDATE_GOLDEN=1 adds it";
        assert!(!is_new || is_update, "{}: another id or hash ({id}, {hash}); {hint}", path.display());
    }
    if known.len() > n_known {
        let lines: String = known.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, lines).expect("the file can be written");
    }
}
