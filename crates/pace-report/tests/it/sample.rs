//! Records to test with: the committed ones, and one that is as small and as hostile as a record can be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pace_report::{
    AdaptRecord, BlockRecord, FormatVersion, PeerRecord, ReferenceRecord, RunRecord, TrainRecord, WordsRecord,
};

pub fn golden_path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", name].iter().collect()
}

pub fn read(name: &str) -> String {
    let path = golden_path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn kuhn() -> (AdaptRecord, TrainRecord) {
    let adapt = AdaptRecord::from_json(&read("kuhn.adapt.json")).expect("the committed record");
    let train = TrainRecord::from_json(&read("kuhn.train.json")).expect("the committed record");
    (adapt, train)
}

pub const HOSTILE: &str = "<script>alert('1')</script>\" onload=\"x & \u{1b}[31m";

/// Every text is hostile, every list has one entry, every number that may be missing is.
pub fn hostile() -> (AdaptRecord, TrainRecord) {
    let text = || HOSTILE.to_owned();
    let block = BlockRecord {
        first: 1,
        last: 1,
        mean: -3.93,
        standard_error: None,
        keypoint_rate: None,
        identification: None,
    };
    let peer = PeerRecord {
        index: 0,
        description: text(),
        mean: -3.93,
        standard_error: None,
        oracle: None,
        regret: None,
        blocks: vec![],
    };
    let adapt = AdaptRecord {
        format_version: FormatVersion,
        game: text(),
        preset: text(),
        method: text(),
        pool: text(),
        metric: text(),
        words: WordsRecord {
            game: Some(text()),
            method: Some(text()),
            episode: text(),
            episodes: text(),
            score: text(),
            keypoint: text(),
        },
        n_tuples: 1,
        passes: 1,
        episodes: 1,
        mean: -3.93,
        standard_error: None,
        confidence_95: None,
        normalised: None,
        share_of_bayes: None,
        keypoint_rate: Some(0.5),
        blocks: vec![block],
        references: BTreeMap::from([(
            text(),
            ReferenceRecord { mean: 0.0, standard_error: None, blocks: vec![] },
        )]),
        peers: vec![peer],
        run: RunRecord {
            folder: text(),
            commit: Some(text()),
            config_hash: Some(text()),
            ..RunRecord::default()
        },
        command: text(),
    };
    let train = TrainRecord {
        format_version: FormatVersion,
        game: text(),
        method: text(),
        preset: text(),
        seed: 0,
        commit: None,
        config: serde_json::json!({ HOSTILE: HOSTILE }),
        curves: BTreeMap::from([(text(), vec![(1, 0.5)]), ("empty".to_owned(), vec![])]),
        wall_clock_secs: 0.0,
    };
    (adapt, train)
}
