//! What is learned in a few seconds: who the peer is, and the best response to a peer that never changes.

use pace_games::{Preset, Split, find_game};
use pace_learn::{AdaptConfig, TrainConfig, Trainer, adapt, find_method, resolve};

use crate::doctored::Doctored;
use crate::{open, pace};

/// How often the identifier names the true peer in the second half of encounters it has not learned from, after a few
/// iterations of warm-up with the first, random policy.
fn identified(doctor: impl Fn(&mut Doctored)) -> f64 {
    let entry = find_game("kuhn-poker").expect("a game");
    let mut game = Doctored::new(open(entry, Preset::Paper, 100));
    doctor(&mut game);
    let config = TrainConfig {
        warm_up_steps: 1_000_000_000,
        encounters_per_tuple: 4,
        epochs: 6,
        minibatches: 5,
        learning_rate: 2e-3,
        ..resolve(entry, pace(), Preset::Paper).expect("good keys").1
    };
    let mut trainer = Trainer::new(pace(), Box::new(game), config, 1, 2).expect("good keys");
    for _ in 0..7 {
        trainer.iterate().expect("a finite run");
    }
    let config = AdaptConfig::new(Split::Train, 10, 100, 1);
    let classes = trainer.game().pool(Split::Train).tuples;
    let outcomes = adapt(&trainer.agent(), trainer.game(), &config, 2).expect("a pool");
    let hits: Vec<bool> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.guesses[50..].iter().map(|guess| *guess == classes[outcome.tuple].classes)
        })
        .collect();
    hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64
}

#[test]
fn the_identifier_alone_tells_peers_apart() {
    let found = identified(|_| {});
    assert!(found > 4.0 / 40.0, "{found} of the guesses, chance is {}", 1.0 / 40.0);
}

#[test]
fn the_identifier_cannot_learn_names_that_mean_nothing() {
    // Whoever is announced, anybody may sit down.
    let found = identified(|game| game.seat = |_, seed| seed.stream("anybody").below(40) as usize);
    assert!((found - 1.0 / 40.0).abs() < 0.01, "{found} of the guesses, chance is {}", 1.0 / 40.0);
}

/// PPO against one training peer, and nobody else, until it plays about as well as one can.
fn check_best_response(method: &str, peer: usize, best: f64) {
    let entry = find_game("kuhn-poker").expect("a game");
    let game = || Doctored { only: Some(peer), ..Doctored::new(open(entry, Preset::Paper, 5)) };
    let method = find_method(method).expect("a method");
    let mut config = TrainConfig {
        warm_up_steps: 0,
        encounters_per_tuple: 2000,
        epochs: 4,
        minibatches: 8,
        learning_rate: 2e-3,
        discount: 0.9,
        gae_lambda: 0.5,
        encoder_width: 16,
        hidden_width: 32,
        ..resolve(entry, method, Preset::Paper).expect("good keys").1
    };
    config.exploration_weight = 0.0;
    let mut trainer = Trainer::new(method, Box::new(game()), config, 1, 2).expect("good keys");
    let value = |trainer: &Trainer| {
        let config = AdaptConfig::new(Split::Train, 50, 5, 1);
        let outcomes = adapt(&trainer.agent(), trainer.game(), &config, 2).expect("a pool");
        let values: Vec<f64> = outcomes
            .iter()
            .flat_map(|outcome| &outcome.episodes)
            .map(|episode| episode.expected_return.expect("a closed form"))
            .collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let before = value(&trainer);
    for _ in 0..22 {
        trainer.iterate().expect("a finite run");
    }
    let after = value(&trainer);
    assert!(before < best - 0.1, "peer {peer}: the first policy already has {before} of {best}");
    assert!(after > best - 0.02, "peer {peer}: {after} of {best}");
    assert!(after < best + 1e-6, "peer {peer}: {after} is more than the best response's {best}");
}

// Values and best responses in closed form (`kuhn_poker/values.rs`).

#[test]
fn ppo_bluffs_and_calls_against_a_peer_that_bluffs_and_folds() {
    check_best_response("pace", 35, 0.232397);
}

#[test]
fn ppo_does_neither_against_a_peer_that_calls_and_never_bluffs() {
    check_best_response("pace", 19, 0.118928);
}

#[test]
fn recurrent_ppo_finds_the_same_answers() {
    check_best_response("liam", 35, 0.232397);
    check_best_response("generalist", 19, 0.118928);
}
