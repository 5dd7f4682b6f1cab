//! Run folders: layout, manifest, lock, and the folders that are rejected.

use std::fs;
use std::path::Path;

use pace_lab::{CheckpointLimits, LabError, RunFolder, RunStatus, RunView};

use crate::{scratch, spec};

#[test]
fn a_run_folder_has_all_parts_and_records_times() {
    let scratch = scratch();
    let path = scratch.path().join("runs/kuhn-1");
    let mut run = RunFolder::create(&path, "seed = 1\n", spec()).expect("a new run");
    for name in ["config.toml", "manifest.json", "tb", "checkpoints", "adapt", "run.lock"] {
        assert!(path.join(name).exists(), "{name}");
    }
    assert_eq!(run.view().config().expect("readable"), "seed = 1\n");
    assert_eq!(run.manifest().spec, spec());
    assert_eq!(run.manifest().status, RunStatus::Running);
    assert_eq!(&run.view().manifest().expect("readable"), run.manifest());

    run.record_wall_clock().expect("written");
    let first = run.manifest().clone();
    assert!(first.wall_clock_secs > 0.0);
    assert!(first.started_at.ends_with('Z') && first.started_at.len() == 20, "{}", first.started_at);
    run.end(RunStatus::Stopped).expect("written");
    drop(run);

    let mut run = RunFolder::open(&path).expect("the lock is free");
    assert_eq!(run.manifest().status, RunStatus::Stopped);
    assert!(run.manifest().ended_at.is_some());
    let before = run.manifest().wall_clock_secs;
    run.mark_resumed().expect("written");
    let resumed = RunView::open(&path).expect("a run").manifest().expect("readable");
    assert_eq!((resumed.status, resumed.n_resumes, resumed.ended_at), (RunStatus::Running, 1, None));
    assert_eq!(resumed.started_at, first.started_at);
    assert!(resumed.wall_clock_secs > before, "time adds up over resumes");
    run.end(RunStatus::Finished).expect("written");
}

#[test]
fn a_new_run_needs_an_empty_folder() {
    let scratch = scratch();
    let check = |path: &Path, parts: &[&str]| {
        let before: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path()).collect();
        let error = RunFolder::create(path, "", spec()).expect_err("refused").to_string();
        for expected in parts {
            assert!(error.contains(expected), "{error}");
        }
        let after: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().map(|it| it.path()).collect();
        assert_eq!(before, after, "a rejected folder stays unchanged");
    };
    let empty = scratch.path().join("empty");
    fs::create_dir(&empty).expect("made");
    drop(RunFolder::create(&empty, "", spec()).expect("an empty folder will do"));
    check(&empty, &["already contains a run", "pace resume", "--out"]);

    let photos = scratch.path().join("photos");
    fs::create_dir(&photos).expect("made");
    fs::write(photos.join("cat.jpg"), "").expect("written");
    check(&photos, &["not empty", "cat.jpg", "--out"]);

    // Root ignores permissions, so a folder below a file stands for one that cannot be written.
    let file = photos.join("cat.jpg");
    check(&file, &["is a file", "expected a folder"]);
    check(&file.join("run"), &["is a file", "expected a folder"]);
}

#[test]
fn folders_without_a_run_cannot_be_opened() {
    let scratch = scratch();
    let check = |path: &Path| {
        let error = RunFolder::open(path).expect_err("refused");
        assert!(matches!(error, LabError::NotARun { .. }), "{error}");
        assert!(RunView::open(path).is_err());
        assert!(!path.join("run.lock").exists(), "a rejected folder stays unchanged");
    };
    check(&scratch.path().join("nowhere"));
    check(scratch.path());
    let file = scratch.path().join("file");
    fs::write(&file, "").expect("written");
    check(&file);
}

#[test]
fn foreign_manifests_are_rejected() {
    let scratch = scratch();
    let path = scratch.path().join("run");
    drop(RunFolder::create(&path, "", spec()).expect("a new run"));
    let manifest = path.join("manifest.json");
    let whole = fs::read_to_string(&manifest).expect("readable");
    let check = |text: &str, words: &str| {
        fs::write(&manifest, text).expect("written");
        let error = RunFolder::open(&path).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    };
    check(&whole[..whole.len() / 2], "found no JSON");
    check("{}", "found no format_version");
    check(&whole.replace("\"format_version\": 1", "\"format_version\": 9"), "has format 9, this build reads");
    check(&whole.replace("\"seed\"", "\"sead\""), "`seed` is missing");
    check(&whole.replace("\"running\"", "\"jogging\""), "jogging");
    check(&" ".repeat((1 << 20) + 1), "found more than");
    fs::write(&manifest, &whole).expect("written");
    RunFolder::open(&path).expect("whole again");
}

#[test]
fn one_writer_at_a_time_and_any_number_of_readers() {
    let scratch = scratch();
    let path = scratch.path().join("run");
    let run = RunFolder::create(&path, "", spec()).expect("a new run");
    let error = RunFolder::open(&path).expect_err("in use");
    let LabError::InUse { pid, .. } = &error else { panic!("{error}") };
    if cfg!(unix) {
        assert_eq!(*pid, Some(std::process::id()));
    }
    run.checkpoints(CheckpointLimits::default()).expect("a store").save(1, &[("a", b"b")]).expect("saved");
    let view = RunView::open(&path).expect("readers need no lock");
    let newest = view.checkpoints(CheckpointLimits::default()).load_newest_valid().expect("readable");
    assert_eq!(newest.expect("one was saved").step, 1);
    assert_eq!(view.metrics().expect("readable"), []);
    assert_eq!(view.has_writer(), Some(true));
    drop(run);
    assert_eq!(view.has_writer(), Some(false));

    // A dead process leaves its id in the file, but no lock.
    fs::write(path.join("run.lock"), "4194305\n").expect("written");
    assert_eq!(view.has_writer(), Some(false));
    let run = RunFolder::open(&path).expect("taken over");
    let owner = fs::read_to_string(path.join("run.lock")).expect("readable");
    assert_eq!(owner.trim(), std::process::id().to_string());
    drop(run);
    fs::remove_file(path.join("run.lock")).expect("removed");
    assert_eq!(view.has_writer(), Some(false));
}

#[test]
fn drafts_of_a_killed_process_are_cleared() {
    let scratch = scratch();
    let path = scratch.path().join("run");
    drop(RunFolder::create(&path, "", spec()).expect("a new run"));
    let draft = path.join(".staged-manifest.json-77");
    fs::write(&draft, "{\"format_ver").expect("written");
    // An unfinished copy of another run's agent.
    let copy = path.join(".staged-conservative");
    fs::create_dir(&copy).expect("made");
    fs::write(copy.join("config.toml"), "game = ").expect("written");
    drop(RunFolder::open(&path).expect("opened"));
    assert!(!draft.exists() && !copy.exists());
}

#[test]
fn a_folder_of_an_interrupted_creation_can_be_used() {
    let scratch = scratch();
    let torn = |name: &str| {
        let folder = scratch.path().join(name);
        drop(RunFolder::create(&folder, "", spec()).expect("a new run"));
        fs::remove_file(folder.join("manifest.json")).expect("removable");
        folder
    };
    // The process was killed before it wrote the manifest, which comes last.
    RunFolder::create(&torn("torn"), "seed = 1\n", spec()).expect("the folder has no finished run");
    let folder = torn("with a copy");
    for (copy, file) in [("conservative", "model.safetensors"), (".staged-conservative", "config.toml")] {
        fs::create_dir(folder.join(copy)).expect("made");
        fs::write(folder.join(copy).join(file), "a part").expect("written");
    }
    RunFolder::create(&folder, "", spec()).expect("the folder has no finished run");
    assert!(!folder.join("conservative").exists() && !folder.join(".staged-conservative").exists());
    // Files that the creation of a run does not write belong to the user.
    let folder = torn("policies");
    fs::create_dir(folder.join("conservative")).expect("made");
    fs::write(folder.join("conservative/manifesto.txt"), "mine").expect("written");
    let error = RunFolder::create(&folder, "", spec()).expect_err("refused").to_string();
    assert!(error.contains("conservative"), "{error}");
    let folder = scratch.path().join("no-start");
    fs::create_dir_all(folder.join("conservative")).expect("made");
    RunFolder::create(&folder, "", spec()).expect_err("a folder that no start made");
    let folder = torn("other");
    fs::write(folder.join("notes.txt"), "mine").expect("written");
    let error = RunFolder::create(&folder, "", spec()).expect_err("refused").to_string();
    assert!(error.contains("notes.txt"), "{error}");
    let folder = torn("saved");
    fs::create_dir(folder.join("checkpoints/000000000001")).expect("made");
    let error = RunFolder::create(&folder, "", spec()).expect_err("refused").to_string();
    assert!(error.contains("checkpoints"), "{error}");
}
