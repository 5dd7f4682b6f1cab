//! Tests that results do not depend on the number of threads.

use pace_games::{Preset, find_game};
use pace_learn::{BatchShape, METHODS, Method, TrainConfig, Trainer, UpdateBenchmark, resolve};
use serde_json::Map;

use crate::pace;

#[test]
fn updates_are_the_same_bytes_on_any_number_of_threads() {
    // Encounters that do not divide evenly among the shards, and more weights than one slice.
    let shape = |n_observations| BatchShape {
        observation_size: 37,
        n_actions: 5,
        n_classes: vec![2, 4, 4],
        n_encounters: 13,
        episode_lengths: vec![9, 1, 14],
        n_observations,
    };
    let weights = |method: &Method, shape: &BatchShape, n_threads: usize| {
        let game = find_game("predator-prey").expect("a game");
        let (_, config) = resolve(game, method, Preset::Paper).expect("good keys");
        let mut bench = UpdateBenchmark::synthetic(method, shape, config);
        let before = bench.weights().to_vec();
        bench.set_threads(n_threads);
        (0..3).for_each(|_| bench.update());
        assert_ne!(bench.weights(), before);
        bench.weights().to_vec()
    };
    for (method, n_observations) in METHODS.iter().flat_map(|one| [(one, None), (one, Some([6, 4]))]) {
        let shape = shape(n_observations);
        let alone = weights(method, &shape, 1);
        for n_threads in [2, 3, 8, 20] {
            assert!(alone == weights(method, &shape, n_threads), "{}: {n_threads} threads", method.id);
        }
    }
}

#[test]
fn runs_are_the_same_bytes_on_any_number_of_threads() {
    let files = |n_threads: usize| {
        let entry = find_game("kuhn-poker").expect("a game");
        let game = entry.open(Preset::Paper, &Map::new()).expect("its preset");
        let (_, preset) = resolve(entry, pace(), Preset::Paper).expect("good keys");
        let config =
            TrainConfig { encounters_per_tuple: 1, epochs: 2, minibatches: 3, warm_up_steps: 6000, ..preset };
        let mut trainer = Trainer::new(pace(), game, config, 3, n_threads).expect("a run");
        let reports: Vec<_> = (0..3).map(|_| trainer.iterate().expect("finite numbers")).collect();
        (reports, trainer.save())
    };
    let alone = files(1);
    for n_threads in [2, 3, 16] {
        assert!(alone == files(n_threads), "{n_threads} threads");
    }
}
