//! Checks of ARCHITECTURE.md: its code maps list the modules of every crate, and its invariants name their tests.

use std::collections::BTreeSet;

use regex::Regex;

use super::{crates, definitions, files, read, rust_files};

/// Lines of prose that ARCHITECTURE.md may have. Rows of tables grow with the tree; the text between them must stay short
/// enough to be read at one go.
const MAX_PROSE_LINES: usize = 110;

/// One row of a code map: `| file | main type | content |`.
struct Row {
    /// A file or, with a `/` at the end, a folder; in `src` of the crate, or in the crate.
    path: String,
    main_types: Vec<String>,
}

/// The code map of a crate: the table below its heading.
fn code_map(page: &str, name: &str) -> Vec<Row> {
    let heading = format!("## Code map of `{name}`\n");
    let (_, rest) = page.split_once(&heading[..]).unwrap_or_else(|| panic!("no section \"{heading}\""));
    let section = rest.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        assert_eq!(cells.len(), 3, "a row of a code map has three cells: {line}");
        let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        Row { path: names(cells[0]).join(", "), main_types: names(cells[1]) }
    })
    .collect()
}

/// Files with code of a crate that a map may list, without tests: paths in `src`, and `assets/…`.
fn modules(name: &str) -> BTreeSet<String> {
    let (source, crate_folder) = (format!("crates/{name}/src/"), format!("crates/{name}/"));
    let paths = files().into_iter().map(|path| path.to_string_lossy().into_owned());
    let modules = paths.filter_map(|path| {
        let is_test = path.ends_with("/tests.rs") || path.ends_with("_tests.rs");
        let in_source = path.strip_prefix(&source[..]).filter(|_| path.ends_with(".rs") && !is_test);
        let in_assets = path.strip_prefix(&crate_folder[..]);
        let in_assets = in_assets.filter(|path| path.starts_with("assets/") && path.ends_with(".js"));
        in_source.or(in_assets).map(str::to_owned)
    });
    modules.filter(|path| !matches!(&path[..], "lib.rs" | "main.rs")).collect()
}

#[test]
fn code_maps_match_the_tree() {
    let page = read("ARCHITECTURE.md");
    let mut mistakes = Vec::new();
    for name in crates() {
        let modules = modules(&name);
        let mut listed = BTreeSet::new();
        for Row { path, main_types } in code_map(&page, &name) {
            let here: Vec<&String> = if path.ends_with('/') {
                modules.iter().filter(|module| module.starts_with(&path[..])).collect()
            } else {
                modules.iter().filter(|module| **module == path).collect()
            };
            if here.is_empty() {
                mistakes.push(format!("the map of {name} lists {path}, which does not exist"));
            }
            let text = |module: &str| match module.starts_with("assets/") {
                true => read(&format!("crates/{name}/{module}")),
                false => read(&format!("crates/{name}/src/{module}")),
            };
            let defines = |item: &String| {
                here.iter().any(|module| definitions::line_of(module, &text(module), item).is_ok())
            };
            let missing = main_types.iter().filter(|item| !defines(item));
            mistakes.extend(missing.map(|item| format!("{path} of {name} does not define `{item}`")));
            if main_types.is_empty() {
                mistakes.push(format!("the row of {path} in the map of {name} has no main type"));
            }
            for module in here {
                if !listed.insert(module.clone()) {
                    mistakes.push(format!("the map of {name} lists {module} twice"));
                }
            }
        }
        let missing = modules.difference(&listed);
        mistakes.extend(missing.map(|module| format!("the map of {name} has no row for {module}")));
    }
    assert!(mistakes.is_empty(), "ARCHITECTURE.md:\n{}", mistakes.join("\n"));
}

#[test]
fn the_prose_of_the_architecture_is_short() {
    let page = read("ARCHITECTURE.md");
    let prose = page.lines().filter(|line| !line.is_empty() && !line.starts_with('|')).count();
    assert!(
        prose <= MAX_PROSE_LINES,
        "ARCHITECTURE.md has {prose} lines of prose, at most {MAX_PROSE_LINES}"
    );
}

/// Checks that invariants are numbered in order and that each names what holds it: tests that exist, or a part of the code.
#[test]
fn invariants_are_numbered_and_name_tests_that_exist() {
    let page = read("ARCHITECTURE.md");
    let (_, section) = page.split_once("\n## Invariants\n").expect("the last section");
    let named = Regex::new(r"\((tests?|by):\s([^)]*)\)").expect("an expression");
    let source: Vec<String> = rust_files().into_iter().map(|(_, text)| text).collect();
    let number = Regex::new(r"(?m)^(\d+)\. ").expect("an expression");
    let starts: Vec<usize> = number.find_iter(section).map(|found| found.start()).collect();
    assert!(starts.len() > 10, "{} invariants", starts.len());
    for (index, start) in starts.iter().enumerate() {
        let invariant = &section[*start..starts.get(index + 1).copied().unwrap_or(section.len())];
        let expected = format!("{}. ", index + 1);
        assert!(invariant.starts_with(&expected), "expected invariant {expected}, found: {invariant}");
        assert!(named.is_match(invariant), "an invariant names what holds it: {invariant}");
        for found in named.captures_iter(invariant).filter(|found| &found[1] != "by") {
            for test in found[2].split('`').skip(1).step_by(2) {
                let exists = source.iter().any(|text| text.contains(&format!("fn {test}(")));
                assert!(exists, "ARCHITECTURE.md names the test `{test}`, which does not exist");
            }
        }
    }
}
