//! Records for tests: the committed ones, a hostile one, and one with a replacement of the peers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pace_report::{
    AdaptRecord, BlockRecord, DecisionsRecord, DetectionRecord, DisplayNamesRecord, EpisodeAlarmsRecord,
    FormatVersion, PartRecord, PeerRecord, ReferenceRecord, RunRecord, ScoreMetric, SwitchRecord,
    TrainRecord, VisitsRecord,
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

/// A record in which every text is hostile, every list has one entry, and every optional number is missing.
pub fn hostile() -> (AdaptRecord, TrainRecord) {
    let text = || HOSTILE.to_owned();
    let block = BlockRecord {
        first: 1,
        last: 1,
        mean: -3.93,
        standard_error: None,
        keypoint_rate: None,
        identification: None,
        steps: None,
    };
    let peer = PeerRecord {
        index: 0,
        description: text(),
        successor: None,
        mean: -3.93,
        standard_error: None,
        oracle: None,
        regret: None,
        blocks: vec![],
        by_episode: vec![],
    };
    let adapt = AdaptRecord {
        format_version: FormatVersion,
        game: text(),
        preset: text(),
        chosen_on: Some(text()),
        method: text(),
        pool: text(),
        metric: ScoreMetric::Return,
        words: DisplayNamesRecord {
            game: Some(text()),
            method: Some(text()),
            episode: text(),
            episodes: text(),
            score: text(),
            keypoint: text(),
        },
        n_tuples: 1,
        passes: 1,
        seed: None,
        episodes: 1,
        context_episodes: None,
        temperature: None,
        game_keys: BTreeMap::from([(text(), serde_json::json!(HOSTILE))]),
        mean: -3.93,
        standard_error: None,
        confidence_95: None,
        normalised: None,
        share_of_bayes: None,
        regret: None,
        keypoint_rate: Some(0.5),
        blocks: vec![block.clone()],
        by_episode: vec![block],
        keypoint_visits: Some(VisitsRecord { mean: 0.5, standard_error: None, encounters: vec![1, 1] }),
        identification_by_decision: vec![],
        identification_undefined: Some(text()),
        switch: None,
        detection: Some(DetectionRecord {
            detector: text(),
            clear_keeps: text(),
            hit_rate: None,
            mean_delay_episodes: None,
            false_alarms_per_encounter: 1.0,
            repeated_alarms_per_encounter: 0.0,
            by_episode: vec![EpisodeAlarmsRecord { after_episode: 1, n_false: 1, ..Default::default() }],
        }),
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

/// A record with a replacement of the peers after the third of six episodes, and with all measurements.
pub fn switched() -> AdaptRecord {
    let (mut record, _) = kuhn();
    let block = |episode: usize| BlockRecord {
        first: episode,
        last: episode,
        mean: if episode == 4 { 0.2 } else { 0.1 * episode as f64 },
        standard_error: Some(0.02),
        keypoint_rate: Some(0.5),
        identification: None,
        steps: Some(30.0 + episode as f64),
    };
    record.words = DisplayNamesRecord {
        game: Some("A kitchen".to_owned()),
        method: Some("PACE".to_owned()),
        ..DisplayNamesRecord::default()
    };
    record.chosen_on = Some("validation".to_owned());
    record.episodes = 6;
    record.context_episodes = Some(3);
    record.game_keys = BTreeMap::from([("horizon_steps".to_owned(), serde_json::json!(50))]);
    record.blocks = (1..=6).map(block).collect();
    record.by_episode = record.blocks.clone();
    record.references.clear();
    record.peers.clear();
    record.keypoint_visits =
        Some(VisitsRecord { mean: 1.25, standard_error: Some(0.05), encounters: vec![2, 6, 0, 4, 0, 0, 0] });
    record.identification_by_decision = (0..4)
        .map(|place| DecisionsRecord {
            first: 10 * place + 1,
            last: 10 * place + 10,
            n_encounters: if place == 3 { 2 } else { 12 },
            accuracy: 0.2 * place as f64,
            accuracy_error: Some(0.01),
            posterior: 0.15 * place as f64,
        })
        .collect();
    record.switch = Some(SwitchRecord {
        after_episode: 3,
        before: PartRecord { mean: 0.2, standard_error: Some(0.01) },
        after: PartRecord { mean: 0.433, standard_error: Some(0.012) },
    });
    record.detection = Some(DetectionRecord {
        detector: "drop:0.8".to_owned(),
        clear_keeps: "last".to_owned(),
        hit_rate: Some(0.75),
        mean_delay_episodes: Some(1.4),
        false_alarms_per_encounter: 0.25,
        repeated_alarms_per_encounter: 0.1,
        by_episode: vec![EpisodeAlarmsRecord { after_episode: 4, n_right: 1, ..Default::default() }],
    });
    record
}
