//! Checks that `unsafe` is allowed in named files only.

use std::path::{Path, PathBuf};

/// Files that allow `unsafe`: two modules of this crate, and an allocator that counts in tests. The lints of the workspace
/// deny it everywhere else.
const FILES: [&str; 3] =
    ["pace-games/tests/it/allocation.rs", "pace-nn/src/kernels.rs", "pace-nn/src/product.rs"];

fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn add_rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        if path.is_dir() {
            add_rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn unsafe_is_allowed_in_named_files_only() {
    let mut files = Vec::new();
    add_rust_files(crates(), &mut files);
    let lint = concat!("unsafe", "_code");
    let allows = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a source file");
        text.matches(lint).count() > text.matches(&format!("forbid({lint})")).count()
    };
    let relative = |path: &PathBuf| {
        let path = path.strip_prefix(crates()).expect("a path below the folder of all crates");
        path.to_string_lossy().replace('\\', "/")
    };
    let mut allowing: Vec<String> = files.iter().filter(|path| allows(path)).map(relative).collect();
    allowing.sort();
    assert_eq!(allowing, FILES);
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn every_crate_uses_the_lints_of_the_workspace() {
    let manifests = entries(crates()).into_iter().map(|folder| folder.join("Cargo.toml"));
    for manifest in manifests.filter(|manifest| manifest.exists()) {
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        assert!(text.contains("\n[lints]\nworkspace = true\n"), "{}", manifest.display());
    }
}
