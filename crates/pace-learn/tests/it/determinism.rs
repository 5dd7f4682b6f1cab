//! Tests of determinism: weights, optimiser and log are byte-identical for any number of threads and after interruptions.

use pace_games::{GAMES, Preset, Split};
use pace_learn::config::{Decay, EncoderKind, MinibatchUnit};
use pace_learn::train::NamedBytes;
use pace_learn::{TrainConfig, TrainError, Trainer, find_method};

use crate::{methods_and_presets, open, pace, tiny, tiny_trainer};

const N_ITERATIONS: usize = 4;

/// All files and all rows of a run, the numbers as bits.
type Trace = (Vec<NamedBytes>, Vec<(u64, &'static str, u64)>);

fn iterate(trainer: &mut Trainer, n: usize, rows: &mut Vec<(u64, &'static str, u64)>) {
    for _ in 0..n {
        let report = trainer.iterate().expect("a finite run");
        rows.extend(report.metrics.iter().map(|(name, value)| (report.steps, *name, value.to_bits())));
    }
}

fn trace(mut trainer: Trainer) -> Trace {
    let mut rows = Vec::new();
    iterate(&mut trainer, N_ITERATIONS, &mut rows);
    (trainer.save(), rows)
}

fn restored(mut fresh: Trainer, files: &[NamedBytes]) -> Result<Trainer, TrainError> {
    let file = |name: &str| files.iter().find(|(other, _)| *other == name).map(|(_, bytes)| bytes.clone());
    fresh.restore(file).map(|()| fresh)
}

/// Calls `check` for every game, method, preset and kind of mini-batch.
fn for_every_run(mut check: impl FnMut(&str, &dyn Fn(usize) -> Trainer)) {
    let kinds = [MinibatchUnit::Encounters, MinibatchUnit::Steps, MinibatchUnit::Balanced];
    for entry in GAMES {
        for (index, (method, preset)) in methods_and_presets().enumerate() {
            let config = tiny(entry, preset, method);
            // Recurrent methods have one kind of mini-batch; the others take turns.
            let minibatch = match config.minibatch_unit {
                MinibatchUnit::Chunks => MinibatchUnit::Chunks,
                _ => kinds[index % kinds.len()],
            };
            // With preset `best`, the encoder that no method has by default is tested instead of mean pooling.
            let encoder = match (config.encoder, preset) {
                (EncoderKind::MeanPool, Preset::Best) => EncoderKind::MeanMaxPool,
                (encoder, _) => encoder,
            };
            let config = TrainConfig {
                minibatch_unit: minibatch,
                encoder,
                learning_rate_decay: Decay::Linear,
                ..config
            };
            let label = format!("{} {} {} {minibatch:?}", entry.id, method.id, preset.name());
            check(&label, &|n_threads| tiny_trainer(method, entry, preset, &config, n_threads));
            // GSCU learns from whole episodes.
            if preset == Preset::Paper && method.id != "gscu" {
                let config = TrainConfig { rollout_steps: 19, ..config };
                let label = format!("{label}, rollouts of 19 steps");
                check(&label, &|n_threads| tiny_trainer(method, entry, preset, &config, n_threads));
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for_every_run(|label, trainer| {
        let one = trace(trainer(1));
        for n_threads in [2, 3] {
            assert!(one == trace(trainer(n_threads)), "{label}: {n_threads} threads differ from one");
        }
    });
}

#[test]
fn an_interrupted_run_equals_an_uninterrupted_one() {
    for_every_run(|label, trainer| {
        let whole = trace(trainer(2));
        // After the first iteration the warm-up is just over; the other cuts are in the middle and at the end.
        for n_before in [1, 2, N_ITERATIONS] {
            let mut rows = Vec::new();
            let mut first = trainer(2);
            iterate(&mut first, n_before, &mut rows);
            let files = first.save();
            let mut second = restored(trainer(1), &files).expect("its own state");
            assert_eq!(second.save(), files, "{label}");
            assert_eq!((second.steps(), second.iteration()), (first.steps(), first.iteration()));
            iterate(&mut second, N_ITERATIONS - n_before, &mut rows);
            assert!((second.save(), rows) == whole, "{label}: cut after {n_before}");
        }
    });
}

#[test]
fn runs_with_chosen_tuples_can_be_cut() {
    for entry in GAMES {
        let all = tiny(entry, Preset::Paper, pace());
        let trainer = |train_tuples: &[usize], n_threads: usize| {
            let config = TrainConfig { train_tuples: train_tuples.to_vec(), ..all.clone() };
            tiny_trainer(pace(), entry, Preset::Paper, &config, n_threads)
        };
        let n_tuples = open(entry, Preset::Paper, 3).n_tuples(Split::Train);
        for chosen in [&[n_tuples - 1][..], &[2, 0]] {
            let whole = trace(trainer(chosen, 1));
            let mut rows = Vec::new();
            let mut first = trainer(chosen, 2);
            iterate(&mut first, 2, &mut rows);
            let mut second = restored(trainer(chosen, 1), &first.save()).expect("its own state");
            iterate(&mut second, N_ITERATIONS - 2, &mut rows);
            assert!((second.save(), rows) == whole, "{}: cut with tuples {chosen:?}", entry.id);
            // The network is that of the whole pool, but whom it meets is part of the run.
            assert_eq!(first.n_parameters(), trainer(&[], 1).n_parameters());
            assert!(restored(trainer(&[], 1), &first.save()).is_err(), "{}", entry.id);
        }
        for (bad, found) in [(&[n_tuples][..], n_tuples), (&[1, 0, 1], 1)] {
            let config = TrainConfig { train_tuples: bad.to_vec(), ..all.clone() };
            let error = Trainer::new(pace(), open(entry, Preset::Paper, 3), config, 7, 1).err();
            let message = error.expect("refused").to_string();
            assert!(message.contains(&format!("`train_tuples`: found {found}; ")), "{message}");
        }
    }
}

#[test]
fn the_state_of_a_run_without_the_key_means_all_tuples() {
    let config = tiny(&GAMES[0], Preset::Paper, pace());
    let trainer = || tiny_trainer(pace(), &GAMES[0], Preset::Paper, &config, 1);
    let mut files = trainer().save();
    let state = &mut files.iter_mut().find(|(name, _)| *name == "state.json").expect("a state").1;
    let mut without: serde_json::Value = serde_json::from_slice(state).expect("JSON");
    assert!(without["config"].as_object_mut().expect("keys").remove("train_tuples").is_some());
    *state = without.to_string().into_bytes();
    assert!(restored(trainer(), &files).is_ok());
}

#[test]
fn seeds_make_different_runs() {
    for entry in GAMES {
        let config = tiny(entry, Preset::Paper, pace());
        let run = |seed: u64| {
            let game = open(entry, Preset::Paper, 3);
            trace(Trainer::new(pace(), game, config.clone(), seed, 1).expect("good keys"))
        };
        assert!(run(1) == run(1));
        let (one, other) = (run(1), run(2));
        assert!(one.0 != other.0 && one.1 != other.1, "{}", entry.id);
    }
}

#[test]
fn damaged_carried_encounters_are_refused() {
    for entry in GAMES {
        for id in ["pace", "liamx"] {
            let method = find_method(id).expect("a method");
            let config = TrainConfig { rollout_steps: 19, ..tiny(entry, Preset::Paper, method) };
            let trainer = || tiny_trainer(method, entry, Preset::Paper, &config, 1);
            let mut first = trainer();
            first.iterate().expect("a finite run");
            let files = first.save();
            let refused = |change: &dyn Fn(&mut serde_json::Value)| {
                let mut files = files.clone();
                let file = files.iter_mut().find(|(name, _)| *name == "encounters.json").expect("a file");
                let mut lanes = serde_json::from_slice(&file.1).expect("JSON");
                change(&mut lanes);
                file.1 = lanes.to_string().into_bytes();
                let error = restored(trainer(), &files).err().expect("refused").to_string();
                assert!(error.contains("encounters.json"), "{error}");
            };
            let lanes = serde_json::from_slice::<serde_json::Value>(
                &files.iter().find(|(name, _)| *name == "encounters.json").expect("a file").1,
            );
            let lanes = lanes.expect("JSON");
            let carried = lanes.as_array().expect("lanes").iter().position(|lane| !lane.is_null());
            let lane = carried.expect("a carried encounter");
            refused(&|lanes| drop(lanes.as_array_mut().expect("lanes").pop()));
            refused(&|lanes| lanes[lane]["actions"] = serde_json::json!([200]));
            refused(&|lanes| lanes[lane]["actions"] = serde_json::json!([]));
            refused(&|lanes| lanes[lane]["memory"] = serde_json::json!([1, 2, 3]));
            refused(&|lanes| lanes[lane]["number"] = serde_json::json!("many"));
            let mut without = files.clone();
            without.retain(|(name, _)| *name != "encounters.json");
            let error = restored(trainer(), &without).err().expect("refused").to_string();
            assert!(error.contains("encounters.json is missing"), "{error}");
        }
    }
}

#[test]
fn every_rollout_has_the_same_number_of_steps() {
    let entry = &GAMES[1];
    let config = TrainConfig { rollout_steps: 31, ..tiny(entry, Preset::Paper, pace()) };
    let mut trainer = tiny_trainer(pace(), entry, Preset::Paper, &config, 2);
    let n_tuples = open(entry, Preset::Paper, 3).n_tuples(Split::Train) as u64;
    for iteration in 1..=4 {
        // The rollout that is only timed changes nothing.
        let before = trainer.save();
        assert_eq!(trainer.roll_out().expect("finite weights") as u64, n_tuples * 31);
        assert!(trainer.save() == before);
        trainer.iterate().expect("a finite run");
        assert_eq!(trainer.steps(), iteration * n_tuples * 31);
    }
}

#[test]
fn the_state_of_another_run_is_refused() {
    for entry in GAMES {
        let config = tiny(entry, Preset::Paper, pace());
        let trainer = |config: &TrainConfig, seed: u64, n_episodes: usize| {
            let game = open(entry, Preset::Paper, n_episodes);
            Trainer::new(pace(), game, config.clone(), seed, 1).expect("good keys")
        };
        let mut first = trainer(&config, 7, 3);
        first.iterate().expect("a finite run");
        let files = first.save();
        let refused = |fresh: Trainer, files: &[NamedBytes], word: &str| match restored(fresh, files) {
            Ok(_) => panic!("{}: {word} was not noticed", entry.id),
            Err(error) => assert!(error.to_string().contains(word), "{error}"),
        };
        refused(trainer(&config, 8, 3), &files, "seed");
        let other = TrainConfig { discount: 0.5, ..config.clone() };
        refused(trainer(&other, 7, 3), &files, "config.toml");
        let wider = TrainConfig { encoder_width: 17, ..config.clone() };
        refused(trainer(&wider, 7, 3), &files, "config.toml");
        refused(trainer(&config, 7, 4), &files, "config.toml");
        refused(trainer(&config, 7, 3), &files[1..], "model.safetensors is missing");
        let replace = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
            let mut files = files.clone();
            change(&mut files.iter_mut().find(|(other, _)| *other == name).expect("a file").1);
            files
        };
        let edited = |from: &str, to: &str| {
            replace("state.json", &|bytes| {
                let text = String::from_utf8(bytes.clone()).expect("text");
                assert!(text.contains(from), "{text}");
                *bytes = text.replace(from, to).into_bytes();
            })
        };
        refused(trainer(&config, 7, 3), &edited("\"game_revision\": ", "\"game_revision\": 9"), "revision 9");
        refused(trainer(&config, 7, 3), &edited("\"format_version\": 2", "\"format_version\": 1"), "format");
        refused(trainer(&config, 7, 3), &edited("\"pool_hash\": \"", "\"pool_hash\": \"0"), "peer pool");
        refused(trainer(&config, 7, 3), &replace("state.json", &|bytes| bytes.truncate(9)), "saved state");
        let cut = |name: &str| replace(name, &|bytes| bytes.truncate(bytes.len() - 4));
        for name in ["model.safetensors", "adam_first.safetensors", "adam_second.safetensors"] {
            refused(trainer(&config, 7, 3), &cut(name), "safetensors");
        }
        // A longer budget is the one wish that a resumed run may have.
        let longer = TrainConfig { total_steps: 200_000, checkpoint_every: 1, ..config.clone() };
        assert!(restored(trainer(&longer, 7, 3), &files).is_ok());
    }
}
