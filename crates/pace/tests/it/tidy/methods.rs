//! Checks of `docs/methods/`: every page has the same sections, and its details link to the lines that implement them. Checks of
//! the files in `methods/`: every file says how it differs from `pace.rs` and has the same order of sections.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pace --test it links_to_source` rewrites the line numbers of all links.

use std::collections::BTreeSet;
use std::fs;

use pace_games::{GAMES, Preset};
use pace_learn::{METHODS, TrainConfig, find_method, resolve};
use regex::{Captures, Regex};
use serde_json::Value;

use super::{definitions, files, read, root};

/// Sections of a method page in their order, and whether every page has them.
const SECTIONS: &[(&str, bool)] = &[
    ("Keys", true),
    ("Metrics", true),
    ("Details", true),
    ("Variants", false),
    ("Results", true),
    ("Deviations", true),
];

/// Sections of a file of a method in their order, as expressions for their first lines.
const FILE_SECTIONS: &[(&str, &str)] = &[
    ("Method", r"^(pub\(\w+\) )?const \w+: Method ="),
    ("network", r"^(pub\(\w+\) )?struct \w+Net\b"),
    ("Actor", r"^impl.* Actor for "),
    ("Network", r"^impl.* Network for "),
    ("loss of a chunk", r"^    fn accumulate_\w+"),
    ("buffers", r"^(pub\(\w+\) )?struct \w+Buffers\b"),
];

/// Markdown pages of `docs/methods/`.
fn pages() -> Vec<String> {
    let paths = files().into_iter().map(|path| path.to_string_lossy().into_owned());
    paths.filter(|path| path.starts_with("docs/methods/") && path.ends_with(".md")).collect()
}

#[test]
fn method_pages_have_the_same_sections() {
    for path in pages().into_iter().filter(|path| !path.ends_with("README.md")) {
        let page = read(&path);
        let (front, _) = page.split_once("\n## ").unwrap_or_else(|| panic!("{path} has no sections"));
        let (title, introduction) = front.split_once('\n').unwrap_or_default();
        assert!(title.starts_with("# ") && !introduction.trim().is_empty(), "{path} says what the method is");
        let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let is_expected = |(name, is_required): &&(&str, bool)| *is_required || found.contains(name);
        let expected: Vec<&str> = SECTIONS.iter().filter(is_expected).map(|(name, _)| *name).collect();
        assert_eq!(found, expected, "the sections of {path}");
    }
}

/// Checks that the section Keys of a method's page names every key that the method sets differently from PACE.
#[test]
fn method_pages_name_the_keys_that_methods_set() {
    let index = read("docs/methods/README.md");
    let keys = |config: &TrainConfig| match serde_json::to_value(config) {
        Ok(Value::Object(keys)) => keys,
        other => panic!("keys are a map, found {other:?}"),
    };
    for method in METHODS {
        let mut changed = BTreeSet::new();
        for game in GAMES {
            let resolved = [find_method("pace").expect("a method"), method]
                .map(|method| keys(&resolve(game, method, Preset::Paper).expect("a preset").1));
            let [of_pace, own] = resolved;
            for (key, value) in own.into_iter().filter(|(key, value)| of_pace.get(key) != Some(value)) {
                match value {
                    Value::Object(section) => changed.extend(section.into_iter().map(|(key, _)| key)),
                    _ => drop(changed.insert(key)),
                }
            }
        }
        let row = index.lines().find(|line| line.starts_with(&format!("| `{}` |", method.id)));
        let (_, link) = row.expect("a row").split_once("](").expect("a link");
        let path = format!("docs/methods/{}", link.split_once(')').expect("its end").0);
        let page = read(&path);
        let (_, section) = page.split_once("\n## Keys\n").expect("a section Keys");
        let section = section.split("\n## ").next().unwrap_or_default();
        let missing: Vec<String> =
            changed.into_iter().filter(|key| !section.contains(&format!("`{key}"))).collect();
        assert!(missing.is_empty(), "{path} does not name keys that `{}` sets: {missing:?}", method.id);
    }
}

/// Checks that details are numbered in order and that each links to a line of the source.
#[test]
fn details_of_methods_link_to_source() {
    let link = Regex::new(r"\]\(\.\./\.\./crates/[^)]*#L\d+\)").expect("an expression");
    let item = Regex::new(r"^(\d+)\. ").expect("an expression");
    for path in pages() {
        let page = read(&path);
        let (_, section) =
            page.split_once("\n## Details\n").unwrap_or_else(|| panic!("{path} has no details"));
        let section = section.split("\n## ").next().unwrap_or_default();
        let mut details: Vec<(usize, String)> = Vec::new();
        for line in section.lines() {
            if let Some(found) = item.captures(line) {
                details.push((found[1].parse().expect("a number"), line.to_owned()));
            } else if let Some((_, text)) = details.last_mut().filter(|_| line.starts_with("   ")) {
                *text += line;
            }
        }
        let numbers: Vec<usize> = details.iter().map(|(number, _)| *number).collect();
        assert!(!numbers.is_empty(), "{path} has no details");
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "the details of {path}");
        for (number, text) in details {
            assert!(link.is_match(&text), "detail {number} of {path} has no link to a line of the source");
        }
    }
}

/// Checks every link `` [`item`](file#Lline) ``: the line defines the item. With `UPDATE_GOLDEN=1`, writes the right lines.
#[test]
fn links_to_source_lead_to_the_items_they_name() {
    let link = Regex::new(r"\[`([\w:]+)`\]\(((?:\.\./)*)([^)#]+)#L(\d+)\)").expect("an expression");
    let any_line = Regex::new(r"\]\([^)]*#L\d+\)").expect("an expression");
    let is_updating = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut mistakes = Vec::new();
    let mut n_links = 0;
    for path in files().into_iter().map(|path| path.to_string_lossy().into_owned()) {
        if !path.ends_with(".md") {
            continue;
        }
        let page = read(&path);
        let n_here = link.find_iter(&page).count();
        n_links += n_here;
        if n_here != any_line.find_iter(&page).count() {
            mistakes.push(format!("{path}: a link to a line is written [`item`](file#Lline)"));
        }
        let updated = link.replace_all(&page, |found: &Captures<'_>| {
            let (item, up, file) = (&found[1], &found[2], &found[3]);
            let text = fs::read_to_string(
                root().join(&path).parent().expect("a folder").join(format!("{up}{file}")),
            );
            let line = match text {
                Ok(text) => definitions::line_of(file, &text, item),
                Err(error) => Err(format!("{file}: {error}")),
            };
            line.map(|line| format!("[`{item}`]({up}{file}#L{line})")).unwrap_or_else(|mistake| {
                mistakes.push(format!("{path}: {mistake}"));
                found[0].to_owned()
            })
        });
        if updated != page {
            if is_updating {
                fs::write(root().join(&path), &*updated).expect("a written page");
            } else {
                mistakes.push(format!("{path}: lines have moved"));
            }
        }
    }
    assert!(
        mistakes.is_empty(),
        "{}\n`UPDATE_GOLDEN=1 cargo test -p pace --test it links_to_source` rewrites line numbers",
        mistakes.join("\n")
    );
    assert!(n_links > 30, "{n_links} links");
}

#[test]
fn files_of_methods_say_how_they_differ_and_have_the_same_order() {
    let mut mistakes = Vec::new();
    for path in files().into_iter().map(|path| path.to_string_lossy().into_owned()) {
        let Some(name) = path.strip_prefix("crates/pace-learn/src/methods/") else { continue };
        let is_test = name.ends_with("tests.rs") || name == "recorded.rs";
        if !name.ends_with(".rs") || is_test || name == "mod.rs" {
            continue;
        }
        let text = read(&path);
        // The files of a method's folder are parts of it: their `mod.rs` says how the method differs.
        let is_part = name.contains('/') && !name.ends_with("/mod.rs");
        let first: String =
            text.lines().take_while(|line| line.starts_with("//! ")).collect::<Vec<_>>().join(" ");
        let differs = first.contains("differs from `pace.rs`") || first.contains("differ from `pace.rs`");
        if !is_part && name != "pace.rs" && !differs {
            mistakes.push(format!("{path}: the first lines do not say how it differs from `pace.rs`"));
        }
        let mut last = (0, "");
        if is_part {
            continue;
        }
        for (section, expression) in FILE_SECTIONS {
            let expression = Regex::new(expression).expect("an expression");
            let Some(place) = text.lines().position(|line| expression.is_match(line)) else { continue };
            if place < last.0 {
                mistakes.push(format!("{path}: {section} comes before {}", last.1));
            }
            last = (place, section);
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
