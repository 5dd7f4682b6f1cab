//! Tests of divergence: a number that is not finite stops a run with an error and is never saved as a weight.

use pace_games::{AnyGame, GAMES, Preset, StepBatch, find_game};
use pace_learn::{MODEL_FILE, TrainConfig, TrainError, Trainer};

use crate::doctored::Doctored;
use crate::weights::numbers;
use crate::{open, pace, tiny, tiny_trainer};

fn config_of(id: &str) -> TrainConfig {
    tiny(find_game(id).expect("a game"), Preset::Paper, pace())
}

fn is_finite(trainer: &Trainer) -> bool {
    let files = trainer.save();
    let weights = files.iter().filter(|(name, _)| name.ends_with(".safetensors"));
    assert!(files.iter().any(|(name, _)| *name == MODEL_FILE));
    weights.flat_map(|(_, bytes)| numbers(bytes)).all(f32::is_finite)
}

/// Runs iterations up to the first error. Checks after every successful iteration that all numbers are finite.
fn run(trainer: &mut Trainer, n: usize) -> Result<(), TrainError> {
    for _ in 0..n {
        let report = trainer.iterate()?;
        assert!(is_finite(trainer), "weights that are not finite after {report:?}");
        for (name, value) in &report.metrics {
            assert!(value.is_finite(), "{name} is {value} in iteration {}", report.iteration);
        }
    }
    Ok(())
}

#[test]
fn huge_steps_end_in_an_error_or_stay_finite() {
    for entry in GAMES {
        for (learning_rate, value_weight) in [(0.1, 0.5), (10.0, 0.5), (10.0, 1e3)] {
            let config = TrainConfig {
                learning_rate,
                value_weight,
                gradient_clip: 1e9,
                warm_up_steps: 0,
                ..config_of(entry.id)
            };
            let mut trainer = tiny_trainer(pace(), entry, Preset::Paper, &config, 2);
            match run(&mut trainer, 8) {
                Ok(()) => {}
                Err(TrainError::NotFinite { value, .. }) => assert!(!value.is_finite()),
                Err(other) => panic!("{}: {other}", entry.id),
            }
        }
    }
}

#[test]
fn weights_that_overflow_stop_the_run() {
    for entry in GAMES {
        for (layers, warm_up_steps) in
            [("critic.", 0), ("actor.", 0), ("encoder.", 0), ("encoder.", 1_000_000)]
        {
            let config = TrainConfig { warm_up_steps, ..config_of(entry.id) };
            let mut trainer = tiny_trainer(pace(), entry, Preset::Paper, &config, 2);
            trainer.iterate().expect("a finite run");
            let mut files = trainer.save();
            let model = &mut files.iter_mut().find(|(name, _)| *name == MODEL_FILE).expect("a model").1;
            crate::weights::fill(model, layers, 1e30);
            let file = |name: &str| Some(files.iter().find(|(other, _)| *other == name)?.1.clone());
            trainer.restore(file).expect("finite weights");
            let error = run(&mut trainer, 1).expect_err("products of such weights overflow");
            assert!(matches!(error, TrainError::NotFinite { iteration: 1, .. }), "{layers} {error}");
        }
    }
}

/// The error of a game that reports something that is not finite.
fn check_report(id: &str, warm_up_steps: u64, report: fn(&mut StepBatch<'_>)) {
    let entry = find_game(id).expect("a game");
    let game = Doctored { report, ..Doctored::new(open(entry, Preset::Paper, 3)) };
    let config = TrainConfig { warm_up_steps, ..config_of(id) };
    let mut trainer = Trainer::new(pace(), Box::new(game), config, 7, 2).expect("good keys");
    let error = run(&mut trainer, 1).expect_err("the game reported an invalid number");
    assert!(matches!(error, TrainError::NotFinite { iteration: 0, steps: 0, .. }), "{error}");
    assert!(error.to_string().contains("iteration 0"), "{error}");
}

#[test]
fn non_finite_reports_of_a_game_stop_the_run() {
    for entry in GAMES {
        for warm_up_steps in [0, 1] {
            check_report(entry.id, warm_up_steps, |block| block.task_rewards[0] = f32::NAN);
            check_report(entry.id, warm_up_steps, |block| block.task_rewards[0] = f32::INFINITY);
            check_report(entry.id, warm_up_steps, |block| block.observations[0] = f32::NAN);
            check_report(entry.id, warm_up_steps, |block| block.observations[0] = f32::NEG_INFINITY);
            check_report(entry.id, warm_up_steps, |block| block.terminal_observations[0] = f32::NAN);
        }
    }
}

#[test]
fn non_finite_weights_are_not_restored() {
    for entry in GAMES {
        let config = config_of(entry.id);
        let mut first = tiny_trainer(pace(), entry, Preset::Paper, &config, 1);
        first.iterate().expect("a finite run");
        for name in ["model.safetensors", "adam_first.safetensors", "adam_second.safetensors"] {
            let mut files = first.save();
            let bytes = &mut files.iter_mut().find(|(other, _)| *other == name).expect("a file").1;
            crate::weights::fill(bytes, "actor.0.bias", f32::NAN);
            let mut second = tiny_trainer(pace(), entry, Preset::Paper, &config, 1);
            let before = second.save();
            let file = |name: &str| Some(files.iter().find(|(other, _)| *other == name)?.1.clone());
            let error = second.restore(file).expect_err("no number");
            assert!(error.to_string().contains("not finite"), "{error}");
            assert_eq!(second.save(), before, "a refused state does not change the trainer");
        }
    }
}

#[test]
fn a_doctored_game_without_changes_equals_the_game() {
    // Otherwise the errors above could come from the wrapper itself.
    for entry in GAMES {
        let config = config_of(entry.id);
        let save = |game: Box<dyn AnyGame>| {
            let mut trainer = Trainer::new(pace(), game, config.clone(), 7, 1).expect("good keys");
            run(&mut trainer, 2).expect("a finite run");
            trainer.save()
        };
        let plain = save(open(entry, Preset::Paper, 3));
        assert!(plain == save(Box::new(Doctored::new(open(entry, Preset::Paper, 3)))));
    }
}
