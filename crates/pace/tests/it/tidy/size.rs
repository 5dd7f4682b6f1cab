//! The size of every crate, as a table: `cargo test -p pace --test it size_of_every_crate -- --nocapture` prints it.

use super::{crates, files, read};

/// Numbers of lines.
#[derive(Clone, Copy, Default)]
struct Lines {
    source: usize,
    tests: usize,
    scripts: usize,
}

impl Lines {
    fn add(&mut self, other: Lines) {
        self.source += other.source;
        self.tests += other.tests;
        self.scripts += other.scripts;
    }

    fn row(self, name: &str) -> String {
        format!("{name:<12} {:>7} {:>7} {:>7}\n", self.source, self.tests, self.scripts)
    }
}

/// The lines of a file, comments and empty lines included. The unit tests of a source file count as tests; files that are
/// neither Rust nor JavaScript do not count.
fn lines_of(path: &str) -> Lines {
    let n = || read(path).lines().count();
    if path.ends_with(".js") || path.ends_with(".mjs") {
        return Lines { scripts: n(), ..Lines::default() };
    }
    if !path.ends_with(".rs") {
        return Lines::default();
    }
    let is_source = path.contains("/src/") && !path.ends_with("/tests.rs") && !path.ends_with("_tests.rs");
    if !is_source {
        return Lines { tests: n(), ..Lines::default() };
    }
    let text = read(path);
    let unit_tests = text.lines().position(|line| line.ends_with("mod tests {"));
    let source = unit_tests.unwrap_or(text.lines().count());
    Lines { source, tests: text.lines().count() - source, scripts: 0 }
}

#[test]
#[expect(clippy::print_stdout, reason = "the table is read with --nocapture")]
fn size_of_every_crate() {
    let paths: Vec<String> = files().iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut all = Lines::default();
    let mut table = format!("{:<12} {:>7} {:>7} {:>7}\n", "crate", "source", "tests", "JS");
    for name in crates() {
        let mut lines = Lines::default();
        for path in paths.iter().filter(|path| path.starts_with(&format!("crates/{name}/"))) {
            lines.add(lines_of(path));
        }
        assert!(lines.source > 0 && lines.tests > 0, "{name}");
        table += &lines.row(&name);
        all.add(lines);
    }
    let mut web = Lines::default();
    for path in paths.iter().filter(|path| path.starts_with("tests/web/")) {
        web.add(lines_of(path));
    }
    table += &web.row("tests/web");
    all.add(web);
    table += &all.row("all");
    println!("{table}");
}
