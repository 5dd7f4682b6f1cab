//! The file format: what goes out comes back, and what is not ours is refused with a reason.

use pace_report::{AdaptRecord, RecordError, TrainRecord, table};
use serde_json::{Value, json};

use crate::sample::{hostile, kuhn, read, switched};

/// The committed record with `edit` done to its JSON.
fn edited(edit: impl FnOnce(&mut Value)) -> Result<AdaptRecord, RecordError> {
    let mut value: Value = serde_json::from_str(&read("kuhn.adapt.json")).expect("JSON");
    edit(&mut value);
    AdaptRecord::from_json(&value.to_string())
}

#[track_caller]
fn refused(edit: impl FnOnce(&mut Value), message: &str) {
    let error = edited(edit).expect_err("an error");
    assert!(error.to_string().contains(message), "found: {error}");
}

#[test]
fn what_goes_out_comes_back() {
    for (adapt, train) in [kuhn(), hostile()] {
        assert_eq!(AdaptRecord::from_json(&adapt.to_json().unwrap()).unwrap(), adapt);
        assert_eq!(TrainRecord::from_json(&train.to_json().unwrap()).unwrap(), train);
    }
    let record = switched();
    assert_eq!(AdaptRecord::from_json(&record.to_json().unwrap()).unwrap(), record);
}

#[test]
fn every_committed_result_can_be_read() {
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
fn scripts_find_the_names_they_rely_on() {
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
fn other_versions_are_refused_before_their_fields_are_read() {
    refused(
        |value| {
            value["format_version"] = json!(2);
            value["peers"] = json!("moved elsewhere");
        },
        "format_version 2 found, this build reads 1; update pace to read it",
    );
    refused(|value| value["format_version"] = json!(0), "make the record again");
    refused(|value| _ = value.as_object_mut().unwrap().remove("format_version"), "no `format_version` found");
    // Also for those who come in by serde alone.
    let mut value: Value = serde_json::from_str(&read("kuhn.train.json")).unwrap();
    value["format_version"] = json!(7);
    let error = serde_json::from_value::<TrainRecord>(value).unwrap_err();
    assert!(error.to_string().contains("this build reads 1"), "{error}");
}

#[test]
fn bad_records_are_refused_with_the_place() {
    refused(|value| value["blocks"][3]["mean"] = json!("high"), "expected f64");
    refused(
        |value| value["blocks"][3]["first"] = json!(11),
        "`blocks` has episodes 11 to 40 after episode 30",
    );
    refused(|value| value["blocks"][0]["first"] = json!(0), "blocks must follow each other from 1");
    let bin = json!({ "first": 3, "last": 2, "n_encounters": 1, "accuracy": 0.5, "accuracy_error": null, "posterior": 0.5 });
    refused(
        |value| value["identification_by_decision"] = json!([bin]),
        "`identification_by_decision` has decisions 3 to 2 after decision 0",
    );
    assert!(AdaptRecord::from_json("not JSON").is_err());
}

#[test]
fn fields_of_a_later_minor_are_passed_over() {
    let record = edited(|value| value["blocks"][0]["new_field"] = json!([1, 2])).unwrap();
    assert_eq!(record, kuhn().0);
}

#[test]
fn a_number_json_cannot_hold_is_an_error_and_not_a_null() {
    let (mut adapt, mut train) = kuhn();
    adapt.peers[4].mean = f64::NAN;
    assert_eq!(adapt.to_json().unwrap_err().to_string(), "`peers[4].mean` is NaN, expected a finite number");
    train.curves.get_mut("peer/top1").unwrap()[0].1 = f64::INFINITY;
    let message = train.to_json().unwrap_err().to_string();
    assert_eq!(message, "`curves.peer/top1 at step 80000` is inf, expected a finite number");
}

#[test]
fn comparisons_follow_from_the_references() {
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
