//! Checks of the repository: documents match the source, and conventions are kept.
//!
//! Code maps and invariants of ARCHITECTURE.md are checked in `maps`, pages and files of methods in `methods`, links
//! and names in documents in `documents`; `size` prints the size of every crate.

mod definitions;
mod documents;
mod maps;
mod methods;
mod size;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pace_games::{GAMES, GameEntry, Preset};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root")
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file of the repository except build outputs and those of git.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name in UTF-8");
            if path.is_dir() {
                if !matches!(name, "target" | ".git" | "runs" | "lab" | "node_modules") {
                    folders.push(path);
                }
            } else {
                files.push(path.strip_prefix(root()).expect("below the root").to_owned());
            }
        }
    }
    files.sort();
    files
}

pub(crate) fn rust_files() -> Vec<(String, String)> {
    let paths = files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    paths.map(|path| path.to_string_lossy().into_owned()).map(|path| (path.clone(), read(&path))).collect()
}

/// The folders in `crates/`.
fn crates() -> BTreeSet<String> {
    std::fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
        .collect()
}

/// The text between backticks in the first cell of each row of a table.
fn first_cells(page: &str) -> BTreeSet<String> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name.to_owned()))
        .collect()
}

#[test]
fn architecture_names_every_crate_and_no_other() {
    let page = read("ARCHITECTURE.md");
    let named: BTreeSet<String> =
        first_cells(&page).into_iter().filter(|name| name == "pace" || name.starts_with("pace-")).collect();
    assert_eq!(named, crates());
}

#[test]
fn every_folder_of_pace_games_belongs_to_a_game() {
    for entry in std::fs::read_dir(root().join("crates/pace-games/src")).expect("the crate") {
        let entry = entry.expect("a readable entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let belongs = GAMES.iter().any(|game| folder_of(game) == name);
        assert!(belongs || !entry.path().is_dir(), "{name}/ belongs to no game of GAMES");
    }
}

#[test]
fn dependencies_are_the_allowed_arrows() {
    let page = read("ARCHITECTURE.md");
    for name in crates() {
        let arrow = page
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} -> ")))
            .unwrap_or_else(|| panic!("ARCHITECTURE.md has no arrows for {name}"));
        let allowed: BTreeSet<&str> = arrow.split(", ").filter(|other| *other != "nothing of ours").collect();
        let manifest: toml::Table = read(&format!("crates/{name}/Cargo.toml")).parse().expect("a manifest");
        let ours = crates();
        let found: BTreeSet<&str> = manifest["dependencies"]
            .as_table()
            .expect("dependencies")
            .keys()
            .map(String::as_str)
            .filter(|dependency| ours.contains(*dependency))
            .collect();
        assert_eq!(found, allowed, "{name}");
    }
}

/// Checks the modules of `pace-play` that do not need the feature `server`.
#[test]
fn sessions_read_no_clock_and_use_no_thread_file_or_socket() {
    let lib = read("crates/pace-play/src/lib.rs");
    let lines = lib.lines();
    let mut modules = Vec::new();
    let mut is_of_server = false;
    for line in lines {
        let module = line.strip_prefix("pub mod ").or(line.strip_prefix("mod "));
        if let Some(module) = module.filter(|_| !is_of_server) {
            modules.push(module.trim_end_matches(';').to_owned());
        }
        is_of_server = line == "#[cfg(feature = \"server\")]";
    }
    assert!(modules.len() > 4 && modules.iter().any(|module| module == "session"), "{modules:?}");
    for module in modules {
        let text = read(&format!("crates/pace-play/src/{module}.rs"));
        for word in
            ["Instant", "SystemTime", "tokio", "axum", "std::fs", "std::net", "std::thread", "getrandom"]
        {
            let line = program_lines(&text).find(|line| line.contains(word));
            assert!(line.is_none(), "{module}.rs uses {word}: {line:?}");
        }
    }
}

/// Crates whose results depend on their arguments alone, and names that their source does not use outside tests.
const PURE_CRATES: &[(&str, &[&str])] = &[
    (
        "pace-games",
        &["Instant::now", "SystemTime", "std::fs", "std::net", "std::env", "std::thread", "getrandom"],
    ),
    ("pace-nn", &["Instant::now", "SystemTime", "std::fs", "std::net", "std::env", "getrandom"]),
    (
        "pace-learn",
        &["Instant::now", "SystemTime", "std::fs", "std::net", "std::env", "std::thread", "getrandom"],
    ),
    (
        "pace-report",
        &["Instant::now", "SystemTime", "std::fs", "std::net", "std::env", "std::thread", "getrandom"],
    ),
];

#[test]
fn pure_crates_use_no_clock_file_or_ambient_randomness() {
    for (path, text) in rust_files().into_iter().filter(|(path, _)| path.contains("/src/")) {
        let of_crate = |(name, _): &&(&str, &[&str])| path.starts_with(&format!("crates/{name}/"));
        for word in PURE_CRATES.iter().find(of_crate).map_or(&[][..], |(_, words)| words) {
            let line = program_lines(&text).find(|line| line.contains(word));
            assert!(line.is_none(), "{path} uses {word}: {line:?}");
        }
    }
}
/// Files that allow `unsafe`: two modules of `pace-nn`, and an allocator that counts in tests. The lints of the workspace deny it
/// everywhere else.
const UNSAFE_FILES: [&str; 3] = [
    "crates/pace-games/tests/it/allocation.rs",
    "crates/pace-nn/src/kernels.rs",
    "crates/pace-nn/src/product.rs",
];

#[test]
fn unsafe_code_is_allowed_in_named_files_only() {
    let lint = concat!("unsafe", "_code");
    let forbids = format!("forbid({lint})");
    let allows = |text: &str| text.matches(lint).count() > text.matches(&forbids).count();
    let files = rust_files().into_iter().filter(|(path, text)| allows(text) && !path.ends_with("tidy.rs"));
    assert_eq!(files.map(|(path, _)| path).collect::<Vec<_>>(), UNSAFE_FILES);
}

#[test]
fn every_crate_uses_the_lints_of_the_workspace() {
    for name in crates() {
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{name}");
    }
}

#[test]
fn no_file_has_a_name_that_would_fit_any_project() {
    const BANNED: [&str; 9] =
        ["utils", "util", "helpers", "helper", "common", "misc", "base", "core", "types"];
    for path in files() {
        let stems = path.iter().map(|part| part.to_string_lossy());
        for stem in stems.map(|part| part.split('.').next().unwrap_or_default().to_owned()) {
            assert!(!BANNED.contains(&stem.as_str()), "{}", path.display());
        }
    }
}

#[test]
fn every_game_has_a_readme_a_playthrough_and_measured_references() {
    for entry in GAMES {
        let folder = folder_of(entry);
        let readme = read(&format!("crates/pace-games/src/{folder}/README.md"));
        assert_eq!(readme, entry.readme, "the README of {} is the one in its folder", entry.id);
        read(&format!("crates/pace-games/playthroughs/{}.txt", entry.id));
        let game = entry.open(Preset::Paper, &serde_json::Map::new()).expect("presets are valid");
        for key in game.config().as_object().expect("keys").keys() {
            assert!(readme.contains(&format!("`{key}`")), "the README of {} does not name `{key}`", entry.id);
        }
        for reference in game.reference_names() {
            let named = format!("`{reference}`");
            assert!(readme.contains(&named), "the README of {} does not name {named}", entry.id);
        }
        let measured = read("docs/references.md");
        assert!(measured.contains(entry.id), "docs/references.md has no numbers for {}", entry.id);
    }
}

/// A game's folder in the source of `pace-games`.
fn folder_of(entry: &GameEntry) -> String {
    entry.id.replace('-', "_")
}

/// Places outside a game's folder that may name a game, with the reason.
const MAY_NAME_A_GAME: &[(&str, &str)] = &[
    ("crates/pace-games/src/lib.rs", "the list of games"),
    ("crates/pace/src/commands/quickstart.rs", "one example, on purpose the smallest game"),
    ("crates/pace/src/commands/bench/", "fixed cases, so that measurements can be compared over the years"),
];

/// The lines of a source file that are part of the program: no comments, no tests.
fn program_lines(text: &str) -> impl Iterator<Item = &str> {
    let tests = ["mod tests {", "pub(crate) mod tests {"].map(|name| format!("\n#[cfg(test)]\n{name}"));
    let end = tests.iter().filter_map(|tests| text.find(&tests[..])).min().unwrap_or(text.len());
    text[..end].lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn nothing_game_specific_is_outside_its_folder() {
    let mut names = Vec::new();
    for entry in GAMES {
        let game = entry.open(Preset::Paper, &serde_json::Map::new()).expect("presets are valid");
        let folder = folder_of(entry);
        let type_name = folder.replace('_', "");
        let title = game.spec().title.to_lowercase();
        names.push((
            format!("crates/pace-games/src/{folder}/"),
            [entry.id.to_owned(), folder, type_name, title],
        ));
    }
    let mut unused: Vec<&str> = MAY_NAME_A_GAME.iter().map(|(place, _)| *place).collect();
    for path in files() {
        let path = path.to_string_lossy().into_owned();
        let is_source = path.starts_with("crates/") && (path.contains("/src/") || path.contains("/assets/"));
        let is_test = path.ends_with("/tests.rs") || path.ends_with("_tests.rs");
        let is_text = [".rs", ".js", ".css", ".html", ".toml"].iter().any(|ending| path.ends_with(ending));
        if !is_source || is_test || !is_text {
            continue;
        }
        let text = read(&path).to_lowercase();
        for (folder, names) in &names {
            let found = program_lines(&text).find(|line| names.iter().any(|name| line.contains(&name[..])));
            let (Some(line), false) = (found, path.starts_with(&folder[..])) else { continue };
            let allowed = MAY_NAME_A_GAME.iter().find(|(place, _)| path.starts_with(place));
            let (place, _) = allowed.unwrap_or_else(|| panic!("{path} names a game: {line}"));
            unused.retain(|known| known != place);
        }
    }
    assert!(unused.is_empty(), "these places name no game any more: {unused:?}");
}

#[test]
fn the_readme_names_every_game() {
    let named = first_cells(&read("README.md"));
    for entry in GAMES {
        assert!(named.contains(entry.id), "README.md has no row for {}", entry.id);
    }
}

#[test]
fn playthroughs_have_games() {
    let known: BTreeSet<String> = GAMES.iter().map(|entry| format!("{}.txt", entry.id)).collect();
    for entry in std::fs::read_dir(root().join("crates/pace-games/playthroughs")).expect("playthroughs") {
        let name = entry.expect("a readable entry").file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "{name} belongs to no game");
    }
}

#[test]
fn the_config_of_every_kept_run_is_readable() {
    let kept: Vec<PathBuf> = files()
        .into_iter()
        .filter(|path| path.starts_with("results") && path.ends_with("config.toml"))
        .collect();
    assert!(!kept.is_empty());
    for path in kept.iter().map(|path| path.to_string_lossy()) {
        if let Err(error) = pace_lab::RunConfig::from_toml(&path, &read(&path)) {
            panic!("{error}");
        }
    }
}

#[test]
fn folders_of_kept_runs_are_named_after_their_config() {
    for path in
        files().into_iter().filter(|path| path.starts_with("results") && path.ends_with("config.toml"))
    {
        let path = path.to_string_lossy();
        let mut kept = pace_lab::RunConfig::from_toml(&path, &read(&path)).expect("a readable config");
        let folder = path.split('/').nth(1).expect("a folder in results/");
        let front = format!("{}-{}-", kept.game, kept.method);
        let back = format!("{}-s{}", kept.preset.name(), kept.seed);
        let variant = folder.strip_prefix(&front).and_then(|rest| rest.strip_suffix(&back));
        let variant = variant.unwrap_or_else(|| panic!("{folder}: expected {front}VARIANT-{back}"));
        // A key that names another run belongs to the preset too.
        let mut overrides = serde_json::Map::new();
        if let Some(need) = kept.need() {
            overrides.insert(need.key.to_owned(), need.run.into());
        }
        let mut preset = pace_lab::RunConfig::resolve(&pace_lab::RunRequest {
            game: &kept.game,
            method: &kept.method,
            preset: kept.preset.name(),
            seed: kept.seed,
            file: None,
            overrides,
            scale: 1.0,
        })
        .expect("a preset");
        // A run recorded before a key existed may differ in keys that have no effect.
        preset.train.normalise_unused_keys();
        kept.train.normalise_unused_keys();
        kept.game_keys = preset.game_keys.clone().into_iter().chain(kept.game_keys).collect();
        let has_preset_keys = (&preset.game_keys, &preset.train) == (&kept.game_keys, &kept.train);
        assert_eq!(
            variant.is_empty(),
            has_preset_keys,
            "{folder}: a variant is named when keys differ from the preset"
        );
    }
}

#[test]
fn every_deviation_is_defined_and_used() {
    let tag_in = |text: &str| -> BTreeSet<String> {
        text.split("Deviation D")
            .skip(1)
            .map(|rest| format!("D{}", rest.chars().take_while(char::is_ascii_digit).collect::<String>()))
            .collect()
    };
    let training = files().into_iter().map(|path| path.to_string_lossy().into_owned());
    let training =
        training.filter(|path| path.ends_with("training.toml")).map(|path| (path.clone(), read(&path)));
    let used: BTreeSet<String> = rust_files()
        .into_iter()
        .filter(|(path, _)| !path.ends_with("tidy.rs"))
        .chain(training)
        .flat_map(|(_, text)| tag_in(&text))
        .collect();
    let defined: BTreeSet<String> = read("docs/deviations.md")
        .lines()
        .filter_map(|line| line.strip_prefix("| D")?.split_once(' ').map(|(number, _)| format!("D{number}")))
        .collect();
    assert_eq!(used, defined, "tags in the source, and rows of docs/deviations.md");
}

#[test]
fn every_name_of_the_notation_is_in_the_source() {
    let source: String = rust_files().into_iter().map(|(_, text)| text).collect();
    for line in read("docs/notation.md").lines().filter(|line| line.starts_with("| ")) {
        let names = line.split('|').nth(2).expect("three columns");
        for name in names.split('`').skip(1).step_by(2) {
            assert!(source.contains(name), "docs/notation.md names `{name}`, which is not in the source");
        }
    }
}

#[test]
fn source_files_start_with_a_module_comment() {
    for (path, text) in rust_files() {
        assert!(text.starts_with("//! "), "{path} does not start with a module comment");
    }
}

#[test]
fn no_test_is_skipped_and_no_stub_is_left() {
    let banned = [concat!("#[ign", "ore"), concat!("todo", "!("), concat!("unimplemented", "!(")];
    for (path, text) in rust_files() {
        for word in banned {
            assert!(!text.contains(word), "{path} has {word}");
        }
    }
}

#[test]
fn the_readme_names_the_two_commands_and_ci_runs_the_checks() {
    let readme = read("README.md");
    assert!(readme.contains("pace quickstart") || readme.contains("-- quickstart"));
    assert!(readme.contains("./check"));
    assert!(read(".ci/run").contains("./check"));
}

#[test]
fn records_contain_no_absolute_paths() {
    for path in files() {
        let is_record =
            path.starts_with("results") && path.extension().is_some_and(|ending| ending == "json");
        if is_record {
            let text = read(path.to_str().expect("UTF-8"));
            assert!(
                !text.contains("\"/") && !text.contains(" /"),
                "{} contains an absolute path",
                path.display()
            );
        }
    }
}
