//! Tests of the transformer encoder: equality with PyTorch, equality of inference and training, dropout and windows.

use pace_games::{DisplayNames, GameSpec, Metric, NO_ACTION, Seed};
use pace_nn::{DropoutKey, Layout};
use serde_json::Value;

use super::encoder::{ContextChunk, Encoder, EncounterRange};
use super::transformer::{
    TransformerContext, TransformerEncoder, TransformerInferenceBuffers, TransformerTrainingBuffers,
};
use crate::config::TrainConfig;
use crate::preset::paper_keys;

fn recording() -> Value {
    serde_json::from_str(include_str!("../../tests/pytorch/transformer_encoder.json")).expect("JSON")
}

fn floats(value: &Value) -> Vec<f32> {
    let numbers = value.as_array().expect("a list");
    numbers.iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

#[derive(Clone)]
struct Parameters {
    layout: Layout,
    weights: Vec<f32>,
}

/// The encoder of a case with its weights.
fn encoder(recording: &Value, case: &Value) -> (TransformerEncoder, Parameters) {
    encoder_with(recording, case, |_| {})
}

/// Like [`encoder`], but with changed keys.
fn encoder_with(
    recording: &Value,
    case: &Value,
    change: impl FnOnce(&mut TrainConfig),
) -> (TransformerEncoder, Parameters) {
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let spec = GameSpec {
        id: "recorded",
        title: "recorded",
        revision: 1,
        observation_size: size("observation_size"),
        action_names: &["a", "b", "c"],
        peer_roles: vec!["one"],
        episodes_per_encounter: size("n_episodes"),
        horizon_steps: size("n_steps") - 1,
        metric: Metric::Return,
        keypoint: "",
        nouns: DisplayNames { episode: "", episodes: "", score: "", keypoint: "" },
    };
    let mut config = TrainConfig {
        encoder_width: size("encoder_width"),
        empty_context: serde_json::from_value(case["empty_context"].clone()).expect("a known name"),
        empty_episode: serde_json::from_value(case["empty_episode"].clone()).expect("a known name"),
        ..paper_keys("kuhn-poker", "pace")
    };
    change(&mut config);
    let mut layout = Layout::default();
    let encoder = TransformerEncoder::new(&mut layout, &spec, &config);
    let tensors = layout.tensors().iter();
    let weights = tensors.flat_map(|tensor| floats(&recording["parameters"][&tensor.name])).collect();
    (encoder, Parameters { layout, weights })
}

/// The recorded encounters as a chunk, all decisions selected, and the slopes of their latents.
fn chunk(recording: &Value) -> (ContextChunk, Vec<f32>) {
    let encounters = recording["encounters"].as_array().expect("a list");
    let mut chunk = ContextChunk::default();
    let mut slopes = Vec::new();
    let mut terminals = Vec::new();
    for encounter in encounters {
        let (first_row, first_episode) = (chunk.actions.len(), chunk.lengths.len());
        chunk.observations.extend(floats(&encounter["observations"]));
        chunk.actions.extend(floats(&encounter["actions"]).iter().map(|action| *action as u8));
        chunk.lengths.extend(floats(&encounter["lengths"]).iter().map(|length| *length as u32));
        terminals.extend(floats(&encounter["terminals"]));
        slopes.extend(floats(&encounter["slopes"]));
        chunk.selected.extend(first_row..chunk.actions.len());
        chunk.is_first.extend((first_row..chunk.actions.len()).map(|row| row == first_row));
        chunk.spans.push(EncounterRange {
            decisions: first_row..chunk.actions.len(),
            episodes: first_episode..chunk.lengths.len(),
        });
    }
    chunk.n_decisions = chunk.actions.len();
    chunk.observations.extend(terminals);
    chunk.actions.resize(chunk.n_decisions + chunk.lengths.len(), NO_ACTION);
    (chunk, slopes)
}

/// The latents of a chunk, and the gradient of their sum weighted by `slopes`.
fn pass(
    encoder: &TransformerEncoder,
    parameters: &Parameters,
    chunk: &ContextChunk,
    slopes: &[f32],
    key: Option<DropoutKey>,
) -> (Vec<f32>, Vec<f32>) {
    let mut rows = TransformerTrainingBuffers::default();
    let mut transposed = vec![0.0; parameters.weights.len()];
    let mut gradients = vec![0.0; parameters.weights.len()];
    parameters.layout.transpose(&parameters.weights, &mut transposed);
    encoder.forward(&parameters.weights, chunk, key, &mut rows);
    let (latents, d_latents) = TransformerEncoder::latents_and_gradients(&mut rows);
    let latents = latents[..slopes.len()].to_vec();
    d_latents[..slopes.len()].copy_from_slice(slopes);
    encoder.backward(&transposed, &mut gradients, chunk, key, &mut rows);
    (latents, gradients)
}

fn for_every_case(check: impl Fn(&TransformerEncoder, &Parameters, &ContextChunk, &[f32], &Value)) {
    let recording = recording();
    let (chunk, slopes) = chunk(&recording);
    for case in recording["cases"].as_array().expect("a list") {
        let (encoder, parameters) = encoder(&recording, case);
        check(&encoder, &parameters, &chunk, &slopes, case);
    }
}

#[test]
fn latents_and_gradients_equal_pytorchs() {
    for_every_case(|encoder, parameters, chunk, slopes, case| {
        let (latents, gradients) = pass(encoder, parameters, chunk, slopes, None);
        for (found, recorded) in latents.iter().zip(floats(&case["latents"])) {
            assert!((found - recorded).abs() < 1e-5, "{found} {recorded}");
        }
        for tensor in parameters.layout.tensors() {
            let recorded = floats(&case["gradients"][&tensor.name]);
            let found = &gradients[tensor.id.range()];
            let norm = |values: &mut dyn Iterator<Item = f32>| {
                values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
            };
            let difference = norm(&mut found.iter().zip(&recorded).map(|(found, recorded)| found - recorded));
            let size = norm(&mut recorded.iter().copied());
            assert!(difference <= 1e-4 * size + 1e-6, "{}: off by {difference} of {size}", tensor.name);
        }
    });
}

#[test]
fn selected_decisions_have_the_same_latents_as_in_a_whole_chunk() {
    for_every_case(|encoder, parameters, chunk, slopes, _| {
        let width = encoder.width();
        let (all, _) = pass(encoder, parameters, chunk, slopes, None);
        let is_some = |row: &usize| row % 3 != 1;
        let mut some = chunk.clone();
        some.selected.retain(is_some);
        some.is_first = some.selected.iter().map(|row| chunk.is_first[*row]).collect();
        let n = some.selected.len();
        let (found, _) = pass(encoder, parameters, &some, &slopes[..n * width], None);
        for (latent, decision) in found.chunks_exact(width).zip(&some.selected) {
            for (one, other) in latent.iter().zip(&all[decision * width..][..width]) {
                assert!((one - other).abs() < 1e-5, "{one} {other}");
            }
        }
    });
}

#[test]
fn dropout_changes_latents_and_their_gradients() {
    for_every_case(|encoder, parameters, chunk, slopes, _| {
        let key = Some(DropoutKey(9));
        let (kept, _) = pass(encoder, parameters, chunk, slopes, None);
        let (latents, gradients) = pass(encoder, parameters, chunk, slopes, key);
        assert_eq!((&latents, &gradients), (&pass(encoder, parameters, chunk, slopes, key).0, &gradients));
        assert_ne!(latents, kept);
        assert_ne!(latents, pass(encoder, parameters, chunk, slopes, Some(DropoutKey(10))).0);
        // With a fixed dropout mask, the gradient equals finite differences.
        let mut rng = Seed::new(3).stream("directions");
        for tensor in parameters.layout.tensors() {
            let range = tensor.id.range();
            let direction: Vec<f32> = range.clone().map(|_| rng.unit() as f32 - 0.5).collect();
            let slope = |step: f32| {
                let sum = |sign: f32| -> f64 {
                    let mut moved = parameters.clone();
                    let values = moved.weights[range.clone()].iter_mut();
                    values.zip(&direction).for_each(|(value, along)| *value += sign * step * along);
                    let (latents, _) = pass(encoder, &moved, chunk, slopes, key);
                    latents.iter().zip(slopes).map(|(latent, slope)| f64::from(latent * slope)).sum()
                };
                (sum(1.0) - sum(-1.0)) / f64::from(2.0 * step)
            };
            let along: f64 =
                gradients[range.clone()].iter().zip(&direction).map(|(one, two)| f64::from(one * two)).sum();
            let slopes = [3e-3, 6e-4, 1.2e-4].map(slope);
            let is_near = slopes.iter().any(|slope| (slope - along).abs() < 0.02 * (along.abs() + 0.2));
            assert!(is_near, "{}: {along}, but the sum changes by {slopes:?}", tensor.name);
        }
    });
}

/// Plays the recorded encounters through a context; calls `look` before every decision, with the decision's index.
fn play_through(
    encoder: &TransformerEncoder,
    parameters: &Parameters,
    chunk: &ContextChunk,
    window: Option<usize>,
    look: &mut dyn FnMut(usize, usize, &mut [TransformerContext; 1]),
) {
    let size = chunk.observations.len() / chunk.actions.len();
    let mut rows = TransformerInferenceBuffers::default();
    for span in &chunk.spans {
        let mut context = [encoder.context(window)];
        let mut decision = span.decisions.start;
        for episode in span.episodes.clone() {
            for _ in 0..chunk.lengths[episode] {
                look(episode - span.episodes.start, decision, &mut context);
                let observation = &chunk.observations[decision * size..][..size];
                let action = &chunk.actions[decision..=decision];
                let values = &parameters.weights;
                encoder.add_entries(values, observation, action, &mut context, &[0], &mut rows);
                decision += 1;
            }
            let terminal = &chunk.observations[(chunk.n_decisions + episode) * size..][..size];
            encoder.end_episodes(&parameters.weights, terminal, &mut context, &[0], &mut rows);
        }
    }
}

fn encode(
    encoder: &TransformerEncoder,
    parameters: &Parameters,
    context: &[TransformerContext; 1],
) -> Vec<f32> {
    let mut rows = TransformerInferenceBuffers::default();
    let mut latents = Vec::new();
    encoder.encode(&parameters.weights, context, &[0], &mut rows, &mut latents);
    latents
}

fn check_near(one: &[f32], other: &[f32]) {
    assert!(one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-5), "{one:?} {other:?}");
}

#[test]
fn running_contexts_have_the_latents_of_whole_encounters() {
    for_every_case(|encoder, parameters, chunk, slopes, _| {
        let width = encoder.width();
        let (all, _) = pass(encoder, parameters, chunk, slopes, None);
        for window in [None, Some(99)] {
            play_through(encoder, parameters, chunk, window, &mut |_, decision, context| {
                let latent = encode(encoder, parameters, context);
                check_near(&latent, &all[decision * width..][..width]);
            });
        }
    });
}

#[test]
fn only_the_rollout_has_dropout() {
    let recording = recording();
    let (chunk, _) = chunk(&recording);
    for drops_in_play in [true, false] {
        let (encoder, parameters) = encoder_with(&recording, &recording["cases"][0], |config| {
            config.encoder_dropout_in_rollout = drops_in_play;
        });
        let latents = |key: Option<DropoutKey>| {
            let mut latents = Vec::new();
            play_through(&encoder, &parameters, &chunk, None, &mut |_, _, context| {
                if let Some(key) = key {
                    encoder.enable_rollout_dropout(&mut context[0], key);
                }
                latents.extend(encode(&encoder, &parameters, context));
            });
            latents
        };
        let one = latents(Some(DropoutKey(1)));
        assert_eq!(one, latents(Some(DropoutKey(1))));
        assert_eq!(one != latents(None), drops_in_play);
        assert_eq!(one != latents(Some(DropoutKey(2))), drops_in_play);
    }
}

#[test]
fn dropout_in_evaluation_depends_on_the_own_key_alone() {
    let recording = recording();
    let (chunk, _) = chunk(&recording);
    for drops in [true, false] {
        let (encoder, parameters) = encoder_with(&recording, &recording["cases"][0], |config| {
            (config.encoder_dropout_in_rollout, config.encoder_dropout_in_evaluation) = (false, drops);
        });
        // Latents of two contexts with different entries, encoded together and alone.
        let size = chunk.observations.len() / chunk.actions.len();
        let mut contexts = vec![encoder.context(None); 2];
        for (context, key) in contexts.iter_mut().zip([3, 4]) {
            encoder.enable_evaluation_dropout(context, DropoutKey(key));
        }
        let mut buffers = Default::default();
        let mut entry = |contexts: &mut [_], lane: usize, row: usize| {
            let observation = &chunk.observations[row * size..][..size];
            let action = &chunk.actions[row..=row];
            encoder.add_entries(&parameters.weights, observation, action, contexts, &[lane], &mut buffers);
        };
        for (lane, row) in [(0, 0), (1, 1), (0, 2)] {
            entry(&mut contexts, lane, row);
        }
        let mut buffers = Default::default();
        let both = [&chunk.observations[..size], &chunk.observations[size..2 * size]].concat();
        encoder.end_episodes(&parameters.weights, &both, &mut contexts, &[0, 1], &mut buffers);
        let mut latents = |contexts: &[_], lanes: &[usize]| {
            let mut latents = Vec::new();
            encoder.encode(&parameters.weights, contexts, lanes, &mut buffers, &mut latents);
            latents
        };
        let together = latents(&contexts, &[0, 1]);
        let alone = [latents(&contexts, &[0]), latents(&contexts, &[1])].concat();
        if drops {
            assert_eq!(together, alone);
        } else {
            check_near(&together, &alone);
        }
        // Clearing keeps the key; another key drops other values.
        let mut other = contexts.clone();
        encoder.enable_evaluation_dropout(&mut other[0], DropoutKey(5));
        assert_eq!(latents(&other, &[0]) != latents(&contexts, &[0]), drops);
        let mut entry_after = |contexts: &mut [_]| {
            encoder.clear(&mut contexts[0]);
            entry(contexts, 0, 0);
            latents(contexts, &[0])
        };
        let same_key = entry_after(&mut contexts);
        assert_eq!(entry_after(&mut contexts), same_key);
        assert_eq!(entry_after(&mut other) != same_key, drops);
    }
}

#[test]
fn a_window_drops_the_oldest_episode_and_clearing_all_but_the_last() {
    for_every_case(|encoder, parameters, chunk, _, _| {
        // A window of two keeps the current episode and the one before it, as if there were no others.
        let mut with_window = Vec::new();
        play_through(encoder, parameters, chunk, Some(2), &mut |episode, decision, context| {
            with_window.push((episode, decision, encode(encoder, parameters, context)));
        });
        let mut cleared = Vec::new();
        play_through(encoder, parameters, chunk, None, &mut |episode, decision, context| {
            encoder.keep_last_episode(&mut context[0]);
            cleared.push((episode, decision, encode(encoder, parameters, context)));
        });
        assert_eq!(with_window.len(), chunk.n_decisions);
        for (one, other) in with_window.iter().zip(&cleared) {
            assert_eq!((one.0, one.1), (other.0, other.1));
            check_near(&one.2, &other.2);
        }
    });
}
