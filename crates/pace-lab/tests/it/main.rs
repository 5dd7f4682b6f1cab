//! Integration tests of run folders and experiments, in one binary.

mod checkpoints;
mod crash;
mod experiments;
mod full_disk;
mod logs;
mod processes;
mod resolved_keys;
mod run_folder;
#[cfg(unix)]
mod signals;
mod tensorboard;

use pace_lab::RunSpec;

/// The facts of an example run.
fn spec() -> RunSpec {
    RunSpec {
        pace_version: "0.1.0".into(),
        commit: None,
        rustc: "1.95.0".into(),
        cpu_model: "some processor".into(),
        simd: "avx2".into(),
        seed: u64::MAX,
        argv: vec!["pace".into(), "train".into(), "kuhn-poker".into()],
        game: "kuhn-poker".into(),
        game_revision: 1,
        method: "pace".into(),
        preset: "paper".into(),
        scale: 1.0,
    }
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a scratch folder")
}
