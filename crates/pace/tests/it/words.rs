//! Checks of wording: phrases that are ruled out, type names that are used twice, and cited files that do not exist.
//!
//! `docs/notation.md` is the word list.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Regex, RegexBuilder};

use crate::tidy::{files, read, rust_files};

/// Ruled-out phrases as regular expressions, and the words to use instead.
const RULED_OUT: &[(&str, &str)] = &[
    (r"\bwhoever\b", "name the caller, the process or the player"),
    (r"\b(nobody|somebody|anybody|everybody)\b", "name the actor, or write none, any, every agent"),
    (r"known to nobody", "type-erased"),
    (
        r"\b(sits?|sat|sitting) down\b|seats a tuple|\b(at|leave) (the|this|a) table\b|every table is taken",
        "start, join, session",
    ),
    (r"\bin earnest\b|\brehears", "full budget; scaled run"),
    (r"\bthe way back\b|\bon the way forward\b", "backward pass, forward pass"),
    (r"\bpass that (acts|learns)\b", "inference pass, training pass"),
    (r"\bwork(s|ed) out\b|\brecur(s|ring|red)?\b", "computed; repeated, duplicate"),
    (r"\bwhat came of\b|\bcomes? of (it|this|all)\b|\bcame of it\b", "result, outcome"),
    (r"\bmakes? of (it|a|an|the|every|each|its|them)\b", "output of, computed from"),
    (
        r"\b(takes?|took|taken) (you|its|it|each|a|the|one|peers?)\b[^.]{0,25} for\b",
        "believes, classifies as",
    ),
    (r"\ball chance\b|\bchance of (its|their) own\b|\bluck\b", "random seed, randomness, random events"),
    (r"\bgo(es|ing|ne)? on with\b|\bgoes on\b|\banew\b", "continues, resumes, again"),
    (r"\bas (it|they) (is|are|was|were)\b", "unchanged, unmodified"),
    (
        r"'s (own )?(business|affair)\b|\bas can be\b|\b(go|goes|went) by\b",
        "say who is responsible, how good, over time",
    ),
    (r"\bin words\b|\botherwise than\b|\bso many\b", "as text; different from; this many"),
    (r"\b(lets?|let) (it |them )?go\b|\b(hangs?|hung) up\b", "disconnects, closes the connection"),
    (
        r"\b(is|are) no (results?|failure|run|part|reason|folder|list)\b|\bsays so\b|\bjust that\b",
        "is not a …; reports it",
    ),
    (r"(± |\()deviation\b|\bdeviation over\b", "standard deviation"),
    (r"\b(methods|games)\.md\b", "cite files of this repository, such as those in docs/methods"),
    (r"\b(most_[a-z]+|MOST_[A-Z]+)\b", "max_…"),
    (r"^\s*/// The same\b", "name the difference: like …, but …"),
];

/// Comments that start with an indirect question, as a case-sensitive expression.
const INDIRECT_QUESTION: &str = r"^\s*//[/!] (What|Who|Whom|Whose|Where|When|Why|How|Which)\b";

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

fn check_phrase(texts: &[(String, String)], expression: &Regex, instead: &str) {
    let found = places(texts, expression);
    assert!(
        found.is_empty(),
        "{} lines have {expression}; write: {instead}\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn ruled_out_phrases_are_not_used() {
    let texts = texts();
    for (expression, instead) in RULED_OUT {
        let expression = RegexBuilder::new(expression).case_insensitive(true).build().expect("an expression");
        check_phrase(&texts, &expression, instead);
    }
    let expression = Regex::new(INDIRECT_QUESTION).expect("an expression");
    check_phrase(&texts, &expression, "a noun phrase for types and fields, a verb for functions");
}

#[test]
fn public_types_have_different_names() {
    let definition = Regex::new(r"^\s*pub (?:struct|enum|trait|type) (\w+)").expect("an expression");
    let mut homes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in rust_files().into_iter().filter(|(path, _)| path.contains("/src/")) {
        for found in text.lines().filter_map(|line| definition.captures(line)) {
            homes.entry(found[1].to_owned()).or_default().insert(path.clone());
        }
    }
    let shared: Vec<_> = homes.iter().filter(|(_, homes)| homes.len() > 1).collect();
    assert!(shared.is_empty(), "several public types share a name: {shared:#?}");
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
