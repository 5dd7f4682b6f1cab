//! Checks of wording: phrases that are ruled out, type names that are used twice, and cited files that do not exist.
//!
//! `docs/notation.md` is the word list.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};

use crate::tidy::{files, read, rust_files};

/// Ruled-out phrases as regular expressions, the number of lines that still contain each, and the words to use instead. The
/// numbers may only fall.
const RULED_OUT: &[(&str, usize, &str)] = &[
    (r"\bwhoever\b", 22, "name the caller, the process or the player"),
    (r"\b(nobody|somebody|anybody|everybody)\b", 123, "name the actor, or write none, any, every agent"),
    (r"known to nobody", 7, "type-erased"),
    (
        r"\b(sits?|sat|sitting) down\b|seats a tuple|\b(at|leave) (the|this|a) table\b|every table is taken",
        14,
        "start, join, session",
    ),
    (r"\bin earnest\b|\brehears", 19, "full budget; scaled run"),
    (r"\bthe way back\b|\bon the way forward\b", 27, "backward pass, forward pass"),
    (r"\bpass that (acts|learns)\b", 18, "inference pass, training pass"),
    (r"\bwork(s|ed) out\b|\brecur(s|ring|red)?\b", 27, "computed; repeated, duplicate"),
    (r"\bwhat came of\b|\bcomes? of (it|this|all)\b|\bcame of it\b", 9, "result, outcome"),
    (r"\bmakes? of (it|a|an|the|every|each|its|them)\b", 15, "output of, computed from"),
    (
        r"\b(takes?|took|taken) (you|its|it|each|a|the|one|peers?)\b[^.]{0,25} for\b",
        9,
        "believes, classifies as",
    ),
    (r"\ball chance\b|\bchance of (its|their) own\b|\bluck\b", 28, "random seed, randomness, random events"),
    (r"\bgo(es|ing|ne)? on with\b|\bgoes on\b|\banew\b", 47, "continues, resumes, again"),
    (r"\bas (it|they) (is|are|was|were)\b", 54, "unchanged, unmodified"),
    (
        r"'s (own )?(business|affair)\b|\bas can be\b|\b(go|goes|went) by\b",
        15,
        "say who is responsible, how good, over time",
    ),
    (r"\bin words\b|\botherwise than\b|\bso many\b", 57, "as text; different from; this many"),
    (r"\b(lets?|let) (it |them )?go\b|\b(hangs?|hung) up\b", 17, "disconnects, closes the connection"),
    (
        r"\b(is|are) no (results?|failure|run|part|reason|folder|list)\b|\bsays so\b|\bjust that\b",
        13,
        "is not a …; reports it",
    ),
    (r"(± |\()deviation\b|\bdeviation over\b", 10, "standard deviation"),
    (r"\b(most_[a-z]+|MOST_[A-Z]+)\b", 20, "max_…"),
    (r"^\s*/// The same\b", 39, "name the difference: like …, but …"),
];

/// Comments that start with an indirect question, as a case-sensitive expression, and their number, which may only fall.
const INDIRECT_QUESTIONS: (&str, usize) =
    (r"^\s*//[/!] (What|Who|Whom|Whose|Where|When|Why|How|Which)\b", 702);

/// Names shared by several public types. The list may only shrink.
const SHARED_NAMES: &[&str] = &["BayesEgo"];

/// Files written by commands, which comments may cite.
const WRITTEN_FILES: &[&str] = &["state.json", "study.toml", "timing.jsonl"];

/// Hand-written files with their text: no records and no generated files.
fn texts() -> Vec<(String, String)> {
    let is_text = |path: &str| {
        let is_written = ["rs", "md", "toml", "js", "mjs", "html"]
            .iter()
            .any(|ending| path.ends_with(&format!(".{ending}")));
        let is_generated = path.starts_with("results/") && path != "results/README.md"
            || path.contains("golden")
            || path.contains("/records/")
            || path == "RESULTS.md"
            || path.ends_with("tests/it/words.rs");
        is_written && !is_generated
    };
    let paths = files().into_iter().map(|path| path.to_string_lossy().into_owned());
    paths.filter(|path| is_text(path)).map(|path| (path.clone(), read(&path))).collect()
}

/// The matching lines, as `file:line: text`.
fn places(texts: &[(String, String)], expression: &Regex) -> Vec<String> {
    let mut places = Vec::new();
    for (path, text) in texts {
        let lines = text.lines().enumerate().filter(|(_, line)| expression.is_match(line));
        places.extend(lines.map(|(index, line)| format!("{path}:{}: {}", index + 1, line.trim())));
    }
    places
}

fn check_phrase(texts: &[(String, String)], expression: &Regex, at_most: usize, instead: &str) {
    let found = places(texts, expression);
    assert!(
        found.len() <= at_most,
        "{} lines have {expression}, at most {at_most} may; write: {instead}\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn ruled_out_phrases_become_fewer() {
    let texts = texts();
    for (expression, at_most, instead) in RULED_OUT {
        let expression = RegexBuilder::new(expression).case_insensitive(true).build().expect("an expression");
        check_phrase(&texts, &expression, *at_most, instead);
    }
    let (expression, at_most) = INDIRECT_QUESTIONS;
    let expression = Regex::new(expression).expect("an expression");
    check_phrase(&texts, &expression, at_most, "a noun phrase for types and fields, a verb for functions");
}

#[test]
fn public_types_have_names_of_their_own() {
    let definition = Regex::new(r"^\s*pub (?:struct|enum|trait|type) (\w+)").expect("an expression");
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in rust_files().into_iter().filter(|(path, _)| path.contains("/src/")) {
        for found in text.lines().filter_map(|line| definition.captures(line)) {
            homes.entry(found[1].to_owned()).or_default().insert(path.clone());
        }
    }
    let shared: Vec<_> = homes.iter().filter(|(_, homes)| homes.len() > 1).collect();
    let known = |name: &str| SHARED_NAMES.contains(&name);
    let new: Vec<_> = shared.iter().filter(|(name, _)| !known(name)).collect();
    assert!(new.is_empty(), "several public types share a name: {new:#?}");
    for name in SHARED_NAMES {
        assert!(
            shared.iter().any(|(found, _)| found == name),
            "{name} has one home: remove it from the list"
        );
    }
}

#[test]
fn comments_cite_files_that_exist() {
    let citation =
        Regex::new(r"[\w./-]*\w\.(?:md|rs|toml|js|mjs|css|html|jsonl|json)\b").expect("an expression");
    let known: Vec<String> = files().into_iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let exists = |cited: &str| {
        let cited = cited.trim_start_matches("../").trim_start_matches("./");
        let ends_in_it = |path: &String| path == cited || path.ends_with(&format!("/{cited}"));
        known.iter().any(ends_in_it) || WRITTEN_FILES.iter().any(|name| cited.ends_with(name))
    };
    let mut missing = Vec::new();
    for (path, text) in rust_files() {
        for (index, line) in text.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//").filter(|(code, _)| code.trim().is_empty()) else {
                continue;
            };
            let cited = citation.find_iter(comment).map(|found| found.as_str());
            missing.extend(
                cited.filter(|cited| !exists(cited)).map(|cited| format!("{path}:{}: {cited}", index + 1)),
            );
        }
    }
    assert!(missing.is_empty(), "comments cite files that are not here:\n{}", missing.join("\n"));
}
