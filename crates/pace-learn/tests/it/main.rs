//! Integration tests of the learner: what it learns, and that it learns the same thing however it is run.

mod agents;
mod determinism;
mod divergence;
mod doctored;
mod gscu;
mod learning;
mod sudden_change;
mod threads;
mod weights;

use pace_games::{AnyGame, GameEntry};
use pace_learn::{METHODS, Method, TrainConfig, TrainPreset, Trainer, find_method};
use serde_json::Value;

/// The game of a preset with short encounters.
fn open(entry: &GameEntry, preset: TrainPreset, n_episodes: usize) -> Box<dyn AnyGame> {
    let mut keys = preset.game_keys(entry.id);
    keys.insert("episodes_per_encounter".to_owned(), Value::from(n_episodes));
    entry.open(preset.of_game(), &keys).expect("every game has this key")
}

/// Keys for a run of milliseconds whose first iteration is the warm-up and whose later ones are not.
fn tiny(entry: &GameEntry, preset: TrainPreset, method: &Method) -> TrainConfig {
    let mut config = TrainConfig {
        total_steps: 100_000,
        encounters_per_tuple: 1,
        epochs: 2,
        minibatches: 3,
        exploration_decay_steps: 10_000,
        warm_up_steps: 1,
        encoder_width: 16,
        hidden_width: 16,
        ..TrainConfig::preset(entry.id, preset)
    };
    method.adjust(entry.id, preset, &mut config);
    if let Some(keys) = &mut config.gscu {
        // Two chunks of the first stage, then the second.
        config.total_steps = 100_000;
        (config.epochs, config.minibatches, config.hidden_width, config.shards) = (2, 3, 16, 3);
        config.encounters_per_tuple = 1;
        keys.embedding_steps = 2 * 3 * (if entry.id == "kuhn-poker" { 60 } else { 18 * 40 });
        (keys.embedding_encounters_per_tuple, keys.embedding_epochs) = (1, 2);
        (keys.embedding_batch, keys.embedding_width) = (100, 16);
        (keys.belief_window, keys.belief_steps) = (keys.belief_window.min(2), 5);
        if config.conservative_run().is_some() {
            config.gscu.as_mut().expect("it was there").conservative = "random".to_owned();
        }
    }
    config
}

/// A trainer of a tiny run.
fn tiny_trainer(
    method: &Method,
    entry: &GameEntry,
    preset: TrainPreset,
    config: &TrainConfig,
    n_threads: usize,
) -> Trainer {
    Trainer::new(method, open(entry, preset, 3), config.clone(), 7, n_threads).expect("the keys are good")
}

/// PACE under every preset, the other methods under the first.
fn methods_and_presets() -> impl Iterator<Item = (&'static Method, TrainPreset)> {
    let n_presets = |method: &Method| if method.id == "pace" { TrainPreset::ALL.len() } else { 1 };
    METHODS.iter().flat_map(move |method| {
        TrainPreset::ALL.into_iter().take(n_presets(method)).map(move |preset| (method, preset))
    })
}

/// The paper's method.
fn pace() -> &'static Method {
    find_method("pace").expect("a method")
}
