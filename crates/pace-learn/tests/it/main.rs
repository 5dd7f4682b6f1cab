//! Integration tests: results of training, and equality of results for all ways to run it.

mod agents;
mod determinism;
mod divergence;
mod doctored;
mod gscu;
mod learning;
mod old_names;
mod sudden_change;
mod threads;
mod weights;

use pace_games::{AnyGame, GameEntry, Preset};
use pace_learn::{METHODS, Method, TrainConfig, Trainer, find_method, resolve};
use serde_json::Value;

/// Opens the game of a preset with short encounters.
fn open(entry: &GameEntry, preset: Preset, n_episodes: usize) -> Box<dyn AnyGame> {
    let (mut keys, _) = resolve(entry, pace(), preset).expect("good keys");
    keys.insert("episodes_per_encounter".to_owned(), Value::from(n_episodes));
    entry.open(preset, &keys).expect("every game has this key")
}

/// Keys for a run of milliseconds whose first iteration is the warm-up and whose later ones are not.
fn tiny(entry: &GameEntry, preset: Preset, method: &Method) -> TrainConfig {
    let (_, resolved) = resolve(entry, method, preset).expect("good keys");
    let mut config = TrainConfig {
        total_steps: 100_000,
        encounters_per_tuple: 1,
        epochs: 2,
        minibatches: 3,
        exploration_decay_steps: 10_000,
        // 0 for methods without a warm-up.
        warm_up_steps: resolved.warm_up_steps.min(1),
        encoder_width: 16,
        hidden_width: 16,
        ..resolved
    };
    if let Some(keys) = &mut config.gscu {
        // Two chunks of the first stage, then the second.
        config.shards = 3;
        keys.embedding_steps = 2 * 3 * (if entry.id == "kuhn-poker" { 60 } else { 18 * 40 });
        (keys.embedding_encounters_per_tuple, keys.embedding_epochs) = (1, 2);
        (keys.embedding_batch, keys.embedding_width) = (100, 16);
        (keys.belief_window, keys.belief_steps) = (keys.belief_window.min(2), 5);
        if method.need(&config).is_some() {
            config.gscu.as_mut().expect("keys").conservative = "random".to_owned();
        }
    }
    config
}

/// A trainer of a tiny run.
fn tiny_trainer(
    method: &Method,
    entry: &GameEntry,
    preset: Preset,
    config: &TrainConfig,
    n_threads: usize,
) -> Trainer {
    Trainer::new(method, open(entry, preset, 3), config.clone(), 7, n_threads).expect("the keys are good")
}

/// PACE, PACE-tf and GSCU with every preset, the other methods with the first.
fn methods_and_presets() -> impl Iterator<Item = (&'static Method, Preset)> {
    let n_presets = |method: &Method| {
        if ["pace", "pace-tf", "gscu"].contains(&method.id) { Preset::ALL.len() } else { 1 }
    };
    METHODS.iter().flat_map(move |method| {
        Preset::ALL.into_iter().take(n_presets(method)).map(move |preset| (method, preset))
    })
}

/// The paper's method.
fn pace() -> &'static Method {
    find_method("pace").expect("a method")
}
