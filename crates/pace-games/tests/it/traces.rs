//! Access to the recorded play of the original games: the committed sample, or the folder named by `PACE_TRACES`.

use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;

/// The files that the tests read.
pub const FILES: [&str; 10] = [
    "kuhn.jsonl.gz",
    "overcooked_uniform.jsonl.gz",
    "overcooked_biased.jsonl.gz",
    "overcooked_peer.jsonl.gz",
    "overcooked_decisions.jsonl.gz",
    "ppw_m3.jsonl.gz",
    "ppw_m5.jsonl.gz",
    "ppw_decisions.jsonl.gz",
    "pools.json",
    "mpe2_contact_traces.json",
];

/// The records of a `.jsonl.gz` file; none if the folder given by `PACE_TRACES` does not have the file.
pub fn records(file: &str) -> Vec<Value> {
    let Some(bytes) = read(file) else { return Vec::new() };
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{file}: {error}"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}")))
        .collect()
}

/// The content of a `.json` file; `None` if the folder given by `PACE_TRACES` does not have the file.
pub fn document(file: &str) -> Option<Value> {
    read(file).map(|bytes| serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{file}: {error}")))
}

fn read(file: &str) -> Option<Vec<u8>> {
    assert!(FILES.contains(&file), "{file} is not in the list of traces");
    let path = folder().join(file);
    match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if chosen_folder().is_some() && error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn chosen_folder() -> Option<PathBuf> {
    std::env::var_os("PACE_TRACES").map(PathBuf::from)
}

fn folder() -> PathBuf {
    chosen_folder().unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces"))
}

/// A list of numbers.
pub fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("expected a list, found {value}"));
    list.iter()
        .map(|number| number.as_f64().unwrap_or_else(|| panic!("expected a number, found {number}")))
        .collect()
}

/// A list of small whole numbers.
pub fn integers(value: &Value) -> Vec<i64> {
    let list = value.as_array().unwrap_or_else(|| panic!("expected a list, found {value}"));
    list.iter()
        .map(|number| number.as_i64().unwrap_or_else(|| panic!("expected an integer, found {number}")))
        .collect()
}

/// Fails unless `found` equals the recorded numbers to 1e-6.
pub fn assert_close(found: &[f32], recorded: &Value, place: impl Fn() -> String) {
    let recorded = numbers(recorded);
    assert_eq!(found.len(), recorded.len(), "{}", place());
    for (index, (found, recorded)) in found.iter().zip(&recorded).enumerate() {
        assert!(
            (f64::from(*found) - recorded).abs() <= 1e-6,
            "{}: number {index} is {found}, recorded {recorded}",
            place()
        );
    }
}

#[test]
fn the_folder_has_known_traces() {
    let found = FILES.iter().filter(|file| folder().join(file).is_file()).count();
    assert!(found > 0, "{} holds none of {FILES:?}", folder().display());
    if chosen_folder().is_none() {
        assert_eq!(found, FILES.len(), "a committed trace is missing");
    }
}
