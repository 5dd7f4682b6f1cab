//! Tests of learning within seconds: the identification of peers, and the best response to a single peer.

use pace_games::{Preset, Split, find_game};
use pace_learn::{AdaptConfig, TrainConfig, Trainer, adapt, find_method, resolve};

use crate::doctored::Doctored;
use crate::{open, pace};

/// The accuracy of the identifier in the second half of new encounters, after a few iterations of warm-up with the initial,
/// random policy.
fn identification_accuracy(doctor: impl Fn(&mut Doctored)) -> f64 {
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
    let is_right: Vec<bool> = outcomes
        .iter()
        .flat_map(|outcome| {
            outcome.guesses[50..].iter().map(|guess| *guess == classes[outcome.tuple].classes)
        })
        .collect();
    is_right.iter().filter(|is_right| **is_right).count() as f64 / is_right.len() as f64
}

#[test]
fn the_identifier_learns_during_the_warm_up() {
    let found = identification_accuracy(|_| {});
    assert!(found > 4.0 / 40.0, "{found} of the guesses, chance is {}", 1.0 / 40.0);
}

#[test]
fn the_identifier_cannot_learn_random_labels() {
    // The actual peer is sampled independently of the announced tuple.
    let found =
        identification_accuracy(|game| game.seat = |_, seed| seed.stream("labels").below(40) as usize);
    assert!((found - 1.0 / 40.0).abs() < 0.01, "{found} of the guesses, chance is {}", 1.0 / 40.0);
}

/// Trains with a single training peer, and checks that the agent's value approaches that of the best response.
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
    assert!(before < best - 0.1, "peer {peer}: the initial policy already has {before} of {best}");
    assert!(after > best - 0.02, "peer {peer}: {after} of {best}");
    assert!(after < best + 1e-6, "peer {peer}: {after} is more than the best response's {best}");
}

// Values and best responses in closed form (`kuhn_poker/values.rs`).

#[test]
fn ppo_learns_to_bluff_and_call_against_a_peer_that_bluffs_and_folds() {
    check_best_response("pace", 35, 0.232397);
}

#[test]
fn ppo_learns_to_do_neither_against_a_peer_that_calls_and_never_bluffs() {
    check_best_response("pace", 19, 0.118928);
}

#[test]
fn recurrent_methods_learn_the_same_best_responses() {
    check_best_response("liam", 35, 0.232397);
    check_best_response("generalist", 19, 0.118928);
}
