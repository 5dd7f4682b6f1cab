//! Keys, files and checkpoints with the names of earlier versions.

use pace_games::{GAMES, Preset};
use pace_learn::{METHODS, RunConfig, RunRequest};
use serde_json::{Map, Value, json};

use crate::{tiny, tiny_trainer};

/// The old and the current form of every renamed line of a `config.toml`, and of every renamed field of a JSON file.
const RENAMED: &[(&str, &str)] = &[
    ("minibatch", "minibatch_unit"),
    ("minibatch_spread", "minibatches_per_encounter"),
    ("identify", "identifier_target"),
    ("own_side", "canonical_frame"),
    ("chunk_steps", "bptt_steps"),
    ("encoder_dropout_in_play", "encoder_dropout_in_rollout"),
    ("timeout_credit", "timeout_advantage"),
    ("belief_deviation_floor", "belief_std_floor"),
    ("turned_tuples", "rotated_tuples"),
    ("practice_copies", "augmented_copies"),
    ("clock", "observe_time"),
];

/// Values, each with the old name of its key.
const RENAMED_VALUES: &[(&str, &str, &str)] = &[
    ("timeout_credit", "dropped", "zero"),
    ("encoder", "means", "mean-pool"),
    ("encoder", "means-and-maxima", "mean-max-pool"),
    ("gradient_clipping", "together", "joint"),
    ("gradient_clipping", "apart", "separate"),
];

/// A text with current names as an earlier version wrote it. `key` and `assign` are a key with its separator, and a key with
/// its value, in the format of the text.
fn with_old_names(text: &str, key: impl Fn(&str) -> String, assign: impl Fn(&str, &str) -> String) -> String {
    let mut old = text.to_owned();
    for (before, now) in RENAMED {
        old = old.replace(&key(now), &key(before));
    }
    for (name, before, now) in RENAMED_VALUES {
        old = old.replace(&assign(name, now), &assign(name, before));
    }
    old
}

fn old_toml(text: &str) -> String {
    let lines = format!("\n{text}");
    with_old_names(&lines, |key| format!("\n{key} = "), |key, value| format!("\n{key} = \"{value}\""))
}

fn resolve(game: &str, method: &str, preset: Preset, keys: Value) -> Result<RunConfig, String> {
    let Value::Object(overrides) = keys else { panic!("keys are a map") };
    let preset = preset.name();
    let request = RunRequest { game, method, preset, seed: 1, file: None, overrides, scale: 1.0 };
    RunConfig::resolve(&request).map_err(|error| error.to_string())
}

/// The runs of the three presets of every game and method.
fn all_runs() -> impl Iterator<Item = RunConfig> {
    let of_game = |game: &'static str| METHODS.iter().map(move |method| (game, method.id));
    GAMES.iter().flat_map(move |entry| of_game(entry.id)).flat_map(|(game, method)| {
        Preset::ALL.map(|preset| resolve(game, method, preset, json!({})).expect("good keys"))
    })
}

#[test]
fn the_id_of_a_run_does_not_depend_on_the_names_in_its_file() {
    let mut seen = String::new();
    for config in all_runs() {
        let (current, old) = (config.to_toml(), old_toml(&config.to_toml()));
        assert_ne!(old.trim_start(), current);
        let read = RunConfig::from_toml("config.toml", &old).expect("readable");
        assert_eq!(read, config);
        assert_eq!(read.to_toml(), current);
        assert_eq!((read.id(), read.hash()), (config.id(), config.hash()));
        seen.push_str(&old);
    }
    // No preset has this value.
    let keys = json!({ "timeout_credit": "dropped", "return_span": "episode" });
    seen.push_str(&old_toml(
        &resolve("kuhn-poker", "liam", Preset::Paper, keys).expect("good keys").to_toml(),
    ));
    for (key, _) in RENAMED {
        assert!(seen.contains(&format!("\n{key} = ")), "no run has {key}");
    }
    for (key, value, _) in RENAMED_VALUES {
        assert!(seen.contains(&format!("\n{key} = \"{value}\"")), "no run has {key} = {value}");
    }
}

#[test]
fn single_keys_are_set_by_either_name() {
    let same = |game, method, old: Value, current: Value| {
        let [old, current] = [old, current].map(|keys| resolve(game, method, Preset::Best, keys));
        assert!(current.is_ok(), "{current:?}");
        assert_eq!(old, current);
    };
    same(
        "predator-prey",
        "pace",
        json!({ "clock": false, "practice_copies": 2, "identify": "classes", "encoder": "means", "own_side": false,
                "minibatch": "encounters", "minibatch_spread": 2 }),
        json!({ "observe_time": false, "augmented_copies": 2, "identifier_target": "classes", "encoder": "mean-pool",
                "canonical_frame": false, "minibatch_unit": "encounters", "minibatches_per_encounter": 2 }),
    );
    same(
        "overcooked",
        "gscu",
        json!({ "gscu.belief_deviation_floor": 0.25, "gscu": { "gradient_clipping": "apart" } }),
        json!({ "gscu.belief_std_floor": 0.25, "gscu.gradient_clipping": "separate" }),
    );
    let file = "turned_tuples = true\nclock = true\n[gscu]\ngradient_clipping = \"apart\"\n";
    let request = RunRequest {
        game: "predator-prey",
        method: "gscu",
        preset: "paper",
        seed: 1,
        file: Some(("keys.toml", file)),
        overrides: Map::new(),
        scale: 1.0,
    };
    let config = RunConfig::resolve(&request).expect("good keys");
    assert_eq!(
        (&config.game_keys["rotated_tuples"], &config.game_keys["observe_time"]),
        (&json!(true), &json!(true))
    );
    assert!(config.to_toml().contains("gradient_clipping = \"separate\""));
    // In an evaluation.
    let game = |key: &str| {
        let keys = Map::from_iter([(key.to_owned(), json!(true))]);
        config.open_game_with(&keys).map(|game| game.config()).map_err(|error| error.to_string())
    };
    assert_eq!(game("turned_tuples"), game("rotated_tuples"));
    let training_key = game("own_side").expect_err("a training key");
    assert!(training_key.contains("`canonical_frame`"), "{training_key}");
}

#[test]
fn errors_suggest_current_names_only() {
    let message = |keys: Value| resolve("predator-prey", "gscu", Preset::Paper, keys).expect_err("refused");
    let listed = message(json!({ "minibatch_unti": "steps" }));
    assert!(listed.contains("did you mean \"minibatch_unit\""), "{listed}");
    let words: Vec<&str> = listed.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).collect();
    for (old, current) in RENAMED {
        assert!(!words.contains(old), "{old} in {listed}");
        assert!(*current == "belief_std_floor" || words.contains(current), "no {current} in {listed}");
    }
    let listed = message(json!({ "gscu.gradient_clipping": "both" }));
    assert!(listed.contains("joint, separate") && !listed.contains("together"), "{listed}");
    let unknown =
        resolve("kuhn-poker", "pace", Preset::Paper, json!({ "clock": true })).expect_err("refused");
    assert!(unknown.contains("unknown key \"clock\""), "{unknown}");
    let text = resolve("kuhn-poker", "pace", Preset::Paper, json!({})).expect("good keys").to_toml();
    let misspelled = text.replace("minibatch_unit", "minibatch_size");
    let error = RunConfig::from_toml("config.toml", &misspelled).expect_err("refused").to_string();
    assert!(error.contains("unknown key `minibatch_size`") && error.contains("minibatch_unit"), "{error}");
    assert!(!error.contains("chunk_steps"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_checkpoint_with_old_names_is_restored() {
    for (game, method, preset) in [
        ("kuhn-poker", "gscu", Preset::Paper),
        ("overcooked", "liam", Preset::Paper),
        ("predator-prey", "pace", Preset::Best),
        ("predator-prey", "gscu", Preset::Paper),
    ] {
        let entry = pace_games::find_game(game).expect("a game");
        let method = pace_learn::find_method(method).expect("a method");
        let trainer = || tiny_trainer(method, entry, preset, &tiny(entry, preset, method), 1);
        let mut first = trainer();
        first.iterate().expect("a finite run");
        let files = first.save();
        let mut old = files.clone();
        let state = &mut old.iter_mut().find(|(name, _)| *name == "state.json").expect("a state").1;
        let text = String::from_utf8(state.clone()).expect("UTF-8");
        let older = with_old_names(
            &text,
            |key| format!("\"{key}\": "),
            |key, value| format!("\"{key}\": \"{value}\""),
        );
        assert_ne!(older, text);
        *state = older.into_bytes();
        let mut second = trainer();
        second
            .restore(|name| old.iter().find(|(other, _)| *other == name).map(|(_, bytes)| bytes.clone()))
            .expect("the state of the same run");
        // It is written with current names.
        assert_eq!(second.save(), files);
        assert_eq!(second.iterate().expect("a finite run"), first.iterate().expect("a finite run"));
        assert_eq!(second.save(), first.save());
    }
}
