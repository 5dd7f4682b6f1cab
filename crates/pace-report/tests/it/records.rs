//! The file format: records survive writing and reading, and invalid records are rejected with a reason.

use pace_report::{AdaptRecord, RecordError, TrainRecord, table};
use serde_json::{Value, json};

use crate::sample::{hostile, kuhn, read, switched};

/// Reads the committed record after a change of its JSON.
fn edited(edit: impl FnOnce(&mut Value)) -> Result<AdaptRecord, RecordError> {
    let mut value: Value = serde_json::from_str(&read("kuhn.adapt.json")).expect("JSON");
    edit(&mut value);
    AdaptRecord::from_json(&value.to_string())
}

#[track_caller]
fn check_rejected(edit: impl FnOnce(&mut Value), message: &str) {
    let error = edited(edit).expect_err("an error");
    assert!(error.to_string().contains(message), "found: {error}");
}

#[test]
fn records_survive_writing_and_reading() {
    for (adapt, train) in [kuhn(), hostile()] {
        assert_eq!(AdaptRecord::from_json(&adapt.to_json().unwrap()).unwrap(), adapt);
        assert_eq!(TrainRecord::from_json(&train.to_json().unwrap()).unwrap(), train);
    }
    let record = switched();
    assert_eq!(AdaptRecord::from_json(&record.to_json().unwrap()).unwrap(), record);
}

#[test]
fn every_record_in_results_is_readable_and_its_tables_fit_80_columns() {
    let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut folders = vec![results];
    let mut n_read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if folder.ends_with("adapt") && path.extension().is_some_and(|ending| ending == "json") {
                let text = std::fs::read_to_string(&path).expect("a readable file");
                let record = AdaptRecord::from_json(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                check_tables(&record);
                n_read += 1;
            }
        }
    }
    assert!(n_read > 0);
}

/// The tables of `pace adapt` and `pace quickstart` fit a terminal of 80 columns.
#[track_caller]
fn check_tables(record: &AdaptRecord) {
    let tables =
        [table::headline(record), table::blocks(record), table::identification(record), table::peers(record)];
    for line in tables.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn json_fields_for_scripts_keep_their_names() {
    let value: Value = serde_json::from_str(&kuhn().0.to_json().unwrap()).unwrap();
    assert_eq!(value["format_version"], 1);
    for name in
        ["mean", "standard_error", "normalised", "share_of_bayes", "keypoint_rate", "n_tuples", "passes"]
    {
        assert!(value[name].is_number(), "{name}");
    }
    assert_eq!(value["confidence_95"].as_array().unwrap().len(), 2);
    assert!(value["blocks"][9]["identification"]["accuracy"].is_number());
    assert!(value["references"]["bayes"]["blocks"][0]["mean"].is_number());
    for name in ["index", "description", "mean", "standard_error", "oracle", "regret", "blocks"] {
        assert!(!value["peers"][0][name].is_null(), "{name}");
    }
    for name in ["folder", "seed", "commit", "config_hash", "steps", "wall_clock_secs"] {
        assert!(!value["run"][name].is_null(), "{name}");
    }
}

#[test]
fn other_versions_are_rejected_before_their_fields_are_read() {
    check_rejected(
        |value| {
            value["format_version"] = json!(2);
            value["peers"] = json!("moved elsewhere");
        },
        "format_version 2 found, this build reads 1; update pace to read it",
    );
    check_rejected(|value| value["format_version"] = json!(0), "make the record again");
    check_rejected(
        |value| _ = value.as_object_mut().unwrap().remove("format_version"),
        "no `format_version` found",
    );
    // Also when a record is read by serde directly.
    let mut value: Value = serde_json::from_str(&read("kuhn.train.json")).unwrap();
    value["format_version"] = json!(7);
    let error = serde_json::from_value::<TrainRecord>(value).unwrap_err();
    assert!(error.to_string().contains("this build reads 1"), "{error}");
}

#[test]
fn invalid_records_are_rejected_with_the_field() {
    check_rejected(|value| value["blocks"][3]["mean"] = json!("high"), "expected f64");
    check_rejected(
        |value| value["blocks"][3]["first"] = json!(11),
        "`blocks` has episodes 11 to 40 after episode 30",
    );
    check_rejected(|value| value["blocks"][0]["first"] = json!(0), "blocks must follow each other from 1");
    let bin = json!({ "first": 3, "last": 2, "n_encounters": 1, "accuracy": 0.5, "accuracy_error": null, "posterior": 0.5 });
    check_rejected(
        |value| value["identification_by_decision"] = json!([bin]),
        "`identification_by_decision` has decisions 3 to 2 after decision 0",
    );
    assert!(AdaptRecord::from_json("not JSON").is_err());
}

#[test]
fn unknown_fields_are_ignored() {
    let record = edited(|value| value["blocks"][0]["new_field"] = json!([1, 2])).unwrap();
    assert_eq!(record, kuhn().0);
}

#[test]
fn numbers_that_are_not_finite_are_errors() {
    let (mut adapt, mut train) = kuhn();
    adapt.peers[4].mean = f64::NAN;
    assert_eq!(adapt.to_json().unwrap_err().to_string(), "`peers[4].mean` is NaN, expected a finite number");
    train.curves.get_mut("peer/top1").unwrap()[0].1 = f64::INFINITY;
    let message = train.to_json().unwrap_err().to_string();
    assert_eq!(message, "`curves.peer/top1 at step 80000` is inf, expected a finite number");
}

#[test]
fn comparisons_with_reference_agents_are_recomputed() {
    let (record, _) = kuhn();
    let mut again = record.clone();
    again.normalised = None;
    again.share_of_bayes = None;
    again.peers[0].regret = None;
    again.compare_with_references();
    assert!((again.normalised.unwrap() - record.normalised.unwrap()).abs() < 1e-6);
    assert!((again.share_of_bayes.unwrap() - record.share_of_bayes.unwrap()).abs() < 1e-6);
    assert!((again.peers[0].regret.unwrap() - record.peers[0].regret.unwrap()).abs() < 1e-9);
    again.references.remove("static");
    again.compare_with_references();
    assert_eq!((again.normalised, again.share_of_bayes), (None, None));
}
