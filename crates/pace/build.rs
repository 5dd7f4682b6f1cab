//! Writes the commit and the compiler into the binary, so that every record can name them.

use std::process::Command;

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn main() {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]).map(|commit| {
        // A build from changed files differs from the commit, so it is marked.
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        if changed.is_some_and(|changed| !changed.is_empty()) { format!("{commit}-changed") } else { commit }
    });
    let rustc = std::env::var("RUSTC").ok().and_then(|rustc| output(&rustc, &["--version"]));
    println!("cargo::rustc-env=PACE_COMMIT={}", commit.unwrap_or_default());
    println!("cargo::rustc-env=PACE_RUSTC={}", rustc.unwrap_or_default());
    for file in ["HEAD", "index"] {
        if let Some(path) = output("git", &["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    println!("cargo::rerun-if-changed=build.rs");
}
