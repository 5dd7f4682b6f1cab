//! Checkpoints that were truncated, changed or not finished. Faults at every single write are tested in `checkpoint.rs`.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use pace_lab::{CheckpointLimits, CheckpointReader, CheckpointStore, Damage, LabError};

use crate::scratch;

const MODEL: &[u8] = b"some weights";

fn open(folder: &Path) -> CheckpointStore {
    CheckpointStore::open(folder, CheckpointLimits::default()).expect("a store")
}

fn save(store: &CheckpointStore, steps: &[u64]) {
    for step in steps {
        let state = format!("{{\"step\":{step}}}");
        store.save(*step, &[("model.safetensors", MODEL), ("state.json", state.as_bytes())]).expect("saved");
    }
}

#[test]
fn the_newest_three_are_kept_and_read_back() {
    let scratch = scratch();
    let store = open(scratch.path());
    assert_eq!(store.load_newest_valid().expect("readable"), None);
    save(&store, &[100, 200, 300]);
    let saved =
        store.save(1_000_000_000_000, &[("model.safetensors", MODEL), ("empty", b"")]).expect("saved");
    assert_eq!(saved.pruned, [100]);
    assert!(saved.prune_error.is_none());
    assert_eq!(saved.n_bytes, MODEL.len() as u64);
    assert!(saved.path.ends_with("1000000000000"));
    assert_eq!(store.steps().expect("readable"), [200, 300, 1_000_000_000_000]);
    assert!(scratch.path().join("000000000200/DONE").exists());

    let newest = store.load_newest_valid().expect("readable").expect("one was saved");
    assert_eq!(newest.names().collect::<Vec<_>>(), ["model.safetensors", "empty"]);
    assert_eq!(newest.file("model.safetensors").expect("there"), MODEL);
    assert_eq!(newest.file("empty").expect("there"), b"");
    let error = newest.file("optimiser").expect_err("not there").to_string();
    assert!(error.contains("no file optimiser; it has: model.safetensors, empty"), "{error}");
    assert_eq!(store.load(200).expect("there").file("state.json").expect("there"), b"{\"step\":200}");
    let error = store.load(100).expect_err("pruned").to_string();
    assert!(error.contains("no checkpoint of step 100") && error.contains("200, 300"), "{error}");
}

/// Damages the newest of two checkpoints. The older one must be loaded, and the damage reported.
#[track_caller]
fn check(harm: impl Fn(&Path), expected: &Damage) {
    let scratch = scratch();
    let store = open(scratch.path());
    save(&store, &[100, 200]);
    let path = scratch.path().join("000000000200");
    harm(&path);
    let found = store.load_newest_valid().expect("readable").expect("the older one");
    assert_eq!(found.step, 100);
    assert_eq!(found.skipped.len(), 1);
    assert_eq!((found.skipped[0].step, &found.skipped[0].damage), (200, expected));
    let error = store.load(200).expect_err("damaged");
    assert!(matches!(&error, LabError::DamagedCheckpoint { damage, .. } if damage == expected), "{error}");
}

fn rewrite(path: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut contents = fs::read(path).expect("readable");
    change(&mut contents);
    fs::write(path, contents).expect("written");
}

fn model() -> String {
    "model.safetensors".to_owned()
}

#[test]
fn truncated() {
    check(|path| rewrite(&path.join(model()), |it| it.truncate(5)), &Damage::WrongHash { name: model() });
}

#[test]
fn emptied() {
    check(|path| rewrite(&path.join(model()), Vec::clear), &Damage::WrongHash { name: model() });
}

#[test]
fn longer() {
    check(|path| rewrite(&path.join(model()), |it| it.push(0)), &Damage::WrongHash { name: model() });
}

#[test]
fn one_bit_flipped() {
    check(|path| rewrite(&path.join(model()), |it| it[3] ^= 4), &Damage::WrongHash { name: model() });
}

#[test]
fn missing_file() {
    check(|path| fs::remove_file(path.join(model())).expect("removed"), &Damage::Missing { name: model() });
}

#[test]
fn missing_done_file() {
    check(|path| fs::remove_file(path.join("DONE")).expect("removed"), &Damage::NotDone);
}

#[test]
fn empty_folder() {
    check(
        |path| {
            fs::remove_dir_all(path).expect("removed");
            fs::create_dir(path).expect("made");
        },
        &Damage::NotDone,
    );
}

#[test]
fn done_lost_its_last_line() {
    let cut = |it: &mut Vec<u8>| {
        let end = it.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
        it.truncate(end);
    };
    check(|path| rewrite(&path.join("DONE"), cut), &Damage::Unlisted { name: "state.json".into() });
}

#[test]
fn done_emptied() {
    check(|path| rewrite(&path.join("DONE"), Vec::clear), &Damage::Unlisted { name: model() });
}

#[test]
fn done_cut_within_a_line() {
    check(|path| rewrite(&path.join("DONE"), |it| it.truncate(it.len() - 1)), &Damage::BadDone { line: 2 });
}

#[test]
fn done_names_a_path() {
    let evil = |it: &mut Vec<u8>| it.extend(format!("{}  ../../secret\n", "0".repeat(64)).bytes());
    check(|path| rewrite(&path.join("DONE"), evil), &Damage::BadDone { line: 3 });
}

#[test]
fn done_too_long() {
    let cap = 131 * 64;
    check(
        |path| rewrite(&path.join("DONE"), |it| it.resize(cap + 1, b'0')),
        &Damage::TooLarge { what: "DONE".into(), cap: cap as u64 },
    );
}

#[test]
fn a_folder_inside() {
    check(|path| fs::create_dir(path.join("x")).expect("made"), &Damage::NotPlain { name: "x".into() });
}

#[cfg(unix)]
#[test]
fn a_link_to_the_right_bytes() {
    check(
        |path| {
            fs::rename(path.join(model()), path.with_extension("moved")).expect("renamed");
            std::os::unix::fs::symlink(path.with_extension("moved"), path.join(model())).expect("linked");
        },
        &Damage::NotPlain { name: model() },
    );
}

#[test]
fn every_single_bit_of_done_matters() {
    let scratch = scratch();
    let store = open(scratch.path());
    store.save(100, &[("a", MODEL)]).expect("saved");
    let done = scratch.path().join("000000000100/DONE");
    let whole = fs::read(&done).expect("readable");
    for bit in 0..8 * whole.len() {
        rewrite(&done, |it| it[bit / 8] ^= 1 << (bit % 8));
        match store.load(100) {
            Err(LabError::DamagedCheckpoint { .. }) => {}
            // A flipped case of a digit a to f keeps the hash.
            Ok(found) => {
                assert!(bit % 8 == 5, "bit {bit}");
                assert_eq!(found.file("a").expect("there"), MODEL);
            }
            Err(error) => panic!("bit {bit}: {error}"),
        }
        fs::write(&done, &whole).expect("written");
    }
}

#[test]
fn an_error_is_returned_when_all_checkpoints_are_damaged() {
    let scratch = scratch();
    let store = open(scratch.path());
    save(&store, &[100, 200]);
    for step in ["000000000100", "000000000200"] {
        rewrite(&scratch.path().join(step).join(model()), |it| it.truncate(1));
    }
    let error = store.load_newest_valid().expect_err("none is whole");
    let LabError::NoValidCheckpoint { damaged, .. } = &error else { panic!("{error}") };
    assert_eq!(damaged.iter().map(|one| one.step).collect::<Vec<_>>(), [200, 100]);
    assert!(error.to_string().contains("200: model.safetensors does not have the hash"), "{error}");
}

#[test]
fn leftovers_are_cleared_on_open_and_nothing_else_is() {
    let scratch = scratch();
    save(&open(scratch.path()), &[100]);
    // Files of a process that was killed during a save, and files of the user.
    let staged = scratch.path().join(".staged-000000000200");
    fs::create_dir(&staged).expect("made");
    fs::write(staged.join(model()), &MODEL[..4]).expect("written");
    fs::write(scratch.path().join("notes.txt"), "keep 100").expect("written");
    fs::create_dir(scratch.path().join("200")).expect("made");
    let reader = CheckpointReader::new(scratch.path(), CheckpointLimits::default());
    assert_eq!(reader.load_newest_valid().expect("readable").expect("saved").step, 100);
    assert!(staged.exists(), "a reader touches nothing");
    let store = open(scratch.path());
    assert!(!staged.exists());
    assert!(scratch.path().join("notes.txt").exists() && scratch.path().join("200").exists());
    assert_eq!(store.steps().expect("readable"), [100]);

    // After a kill between the two renames of a replacement, the old checkpoint is restored.
    fs::rename(scratch.path().join("000000000100"), scratch.path().join(".replaced-000000000100"))
        .expect("renamed");
    assert_eq!(open(scratch.path()).load_newest_valid().expect("readable").expect("back").step, 100);
}

#[test]
fn a_damaged_step_can_be_saved_again() {
    let scratch = scratch();
    let store = open(scratch.path());
    save(&store, &[100, 200]);
    rewrite(&scratch.path().join("000000000200").join(model()), Vec::clear);
    save(&store, &[200]);
    let found = store.load_newest_valid().expect("readable").expect("saved");
    assert_eq!((found.step, found.skipped.len()), (200, 0));
}

#[test]
fn later_checkpoints_are_discarded_on_resume() {
    let scratch = scratch();
    let store = open(scratch.path());
    save(&store, &[100, 200, 300]);
    assert_eq!(store.discard_after(100).expect("deleted"), [200, 300]);
    save(&store, &[150]);
    assert_eq!(store.steps().expect("readable"), [100, 150]);
    // Without the call, a save keeps checkpoints of later steps.
    save(&store, &[400, 500, 160]);
    assert!(store.steps().expect("readable").contains(&160));
}

#[test]
fn saving_a_step_again_replaces_it() {
    let scratch = scratch();
    let store = open(scratch.path());
    save(&store, &[100]);
    store.save(100, &[("model.safetensors", b"other weights")]).expect("saved");
    let found = store.load(100).expect("saved");
    assert_eq!(found.names().collect::<Vec<_>>(), ["model.safetensors"]);
    assert_eq!(found.file("model.safetensors").expect("there"), b"other weights");
    assert_eq!(fs::read_dir(scratch.path()).expect("readable").count(), 1);
}

#[test]
fn names_and_sizes_are_checked_before_anything_is_written() {
    let scratch = scratch();
    let limits =
        CheckpointLimits { keep: NonZeroUsize::MIN, max_file_bytes: 10, max_total_bytes: 15, max_files: 3 };
    let store = CheckpointStore::open(scratch.path(), limits).expect("a store");
    let check = |files: &[(&str, &[u8])], words: &str| {
        let error = store.save(1, files).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(fs::read_dir(scratch.path()).expect("readable").count(), 0);
    };
    check(&[("../model", b"")], "file name \"../model\"");
    check(&[("DONE", b"")], "file name \"DONE\"");
    check(&[("a", b""), ("a", b"")], "each name once");
    check(&[("a", &[0; 11])], "a has 11 bytes, at most 10");
    check(&[("a", &[0; 10]), ("b", &[0; 6])], "the checkpoint has 16 bytes, at most 15");
    check(&[("a", b""), ("b", b""), ("c", b""), ("d", b"")], "4 files, at most 3");
    store.save(1, &[("a", &[0; 10]), ("b", &[0; 5])]).expect("just fits");

    // A reader with smaller limits rejects the checkpoint.
    let small = CheckpointReader::new(scratch.path(), CheckpointLimits { max_file_bytes: 9, ..limits });
    let error = small.load(1).expect_err("too large").to_string();
    assert!(error.contains("a is over the size limit of 9"), "{error}");
    let few = CheckpointReader::new(scratch.path(), CheckpointLimits { max_files: 1, ..limits });
    assert!(few.load(1).expect_err("too many").to_string().contains("number of files"));
}

#[test]
fn a_store_below_a_file_is_refused() {
    let scratch = scratch();
    let file = scratch.path().join("file");
    fs::write(&file, "").expect("written");
    let error = CheckpointStore::open(&file.join("checkpoints"), CheckpointLimits::default());
    assert!(matches!(error, Err(LabError::NotAFolder { .. })), "{error:?}");
}
