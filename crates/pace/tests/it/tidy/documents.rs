//! Checks of the documents: links lead to files, and the source files and items that they name exist.

use regex::Regex;

use super::{definitions, files, read, root, rust_files};

/// Markdown files with their text. The changelog and the log of experiments also name what was replaced since.
fn documents() -> Vec<(String, String)> {
    let paths = files().into_iter().map(|path| path.to_string_lossy().into_owned());
    let is_current = |path: &String| {
        path.ends_with(".md") && !path.ends_with("CHANGELOG.md") && !path.ends_with("experiments-log.md")
    };
    paths.filter(is_current).map(|path| (path.clone(), read(&path))).collect()
}

#[test]
fn documents_name_source_files_and_items_that_exist() {
    let source = rust_files();
    let file = Regex::new(r"`(?:[\w-]+/)*[\w-]+\.rs`").expect("an expression");
    let item = Regex::new(r"`([A-Z]\w*)::([A-Za-z_]\w*)(?:\(\))?`").expect("an expression");
    let mut missing = Vec::new();
    for (path, text) in documents() {
        for found in file.find_iter(&text) {
            let named = found.as_str().trim_matches('`');
            let exists = |(path, _): &(String, String)| path.ends_with(&format!("/{named}")) || path == named;
            if !source.iter().any(exists) {
                missing.push(format!("{path}: {named}"));
            }
        }
        for found in item.captures_iter(&text) {
            let is_defined =
                |(_, text): &(String, String)| definitions::has_member(text, &found[1], &found[2]);
            if !source.iter().any(is_defined) {
                missing.push(format!("{path}: {}", &found[0]));
            }
        }
    }
    assert!(missing.is_empty(), "documents name what does not exist:\n{}", missing.join("\n"));
}

#[test]
fn links_between_documents_lead_to_files() {
    let link = Regex::new(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)").expect("an expression");
    let mut missing = Vec::new();
    for path in files().into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let text = read(path.to_str().expect("UTF-8"));
        let folder = root().join(path.parent().expect("a folder"));
        let targets = link.captures_iter(&text).map(|found| found[1].to_owned());
        let broken = targets.filter(|target| !folder.join(target).exists());
        missing.extend(broken.map(|target| format!("{}: {target}", path.display())));
    }
    assert!(missing.is_empty(), "links to files that do not exist:\n{}", missing.join("\n"));
}
