//! The whole loss of PACE: against PyTorch's recording, against finite differences, and what the warm-up leaves alone.

use std::ops::Range;

use pace_games::{GameSpec, Metric, Nouns, PoolListing};
use pace_nn::loss::PolicyLoss;
use serde_json::Value;

use super::PaceNet;
use super::pace::PaceLearnRows;
use crate::batch::Batch;
use crate::config::{ContextAction, TrainConfig, TrainPreset};
use crate::learner::{LossWeights, UpdateJob, UpdateShard};
use crate::network::Network;

fn recording() -> Value {
    serde_json::from_str(include_str!("../../tests/pytorch/pace_loss.json")).expect("the recording is JSON")
}

fn floats(value: &Value) -> Vec<f32> {
    let list = value.as_array().expect("a list");
    list.iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

fn integers(value: &Value) -> Vec<usize> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|number| number.as_f64().expect("a number") as usize)
        .collect()
}

fn net(recording: &Value, empty_context: &Value, empty_episode: &Value) -> PaceNet {
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let spec = GameSpec {
        id: "recorded",
        title: "recorded",
        revision: 1,
        observation_size: size("observation_size"),
        action_names: &["a", "b", "c"],
        peer_roles: vec!["one", "two"],
        episodes_per_encounter: 3,
        horizon_steps: 9,
        metric: Metric::Return,
        keypoint: "",
        nouns: Nouns { episode: "", episodes: "", score: "", keypoint: "" },
    };
    let mut config = TrainConfig::preset("kuhn-poker", TrainPreset::Paper);
    config.encoder_width = size("encoder_width");
    config.hidden_width = size("hidden_width");
    config.empty_context = serde_json::from_value(empty_context.clone()).expect("a known name");
    config.empty_episode = serde_json::from_value(empty_episode.clone()).expect("a known name");
    // Only peers may be without an action, and some recorded entries are.
    config.context_action = ContextAction::Peer;
    let pool = PoolListing { n_classes: integers(&recording["n_classes"]), ..PoolListing::default() };
    PaceNet::new(&spec, &pool, &config)
}

fn batch(recording: &Value) -> (Batch, Vec<Vec<usize>>) {
    let mut batch = Batch::default();
    let mut classes = Vec::new();
    for (tuple, encounter) in recording["encounters"].as_array().expect("a list").iter().enumerate() {
        batch.open_encounter(tuple as u32);
        batch.observations.extend(floats(&encounter["observations"]));
        batch.terminal_observations.extend(floats(&encounter["terminals"]));
        batch.actions.extend(integers(&encounter["actions"]).iter().map(|action| *action as u8));
        let stored = integers(&encounter["context_actions"]);
        batch.peer_actions.extend(stored.iter().flat_map(|action| [*action as u8, 0]));
        batch.log_probabilities.extend(floats(&encounter["old_log_probabilities"]));
        batch.values.extend(floats(&encounter["old_values"]));
        batch.targets.extend(floats(&encounter["targets"]));
        batch.advantages.extend(floats(&encounter["advantages"]));
        batch.episode_lengths.extend(integers(&encounter["lengths"]).iter().map(|length| *length as u32));
        classes.push(integers(&encounter["classes"]));
    }
    (batch, classes)
}

fn weights(recording: &Value, n_rows: usize) -> LossWeights {
    let number = |name: &str| recording[name].as_f64().expect("a number") as f32;
    LossWeights {
        per_row: 1.0 / n_rows as f32,
        auxiliary: number("auxiliary_weight"),
        value: number("value_weight"),
        value_clip: number("clip"),
        policy: Some(PolicyLoss { clip: number("clip"), entropy_weight: number("entropy_weight") }),
    }
}

fn parameters(recording: &Value, net: &PaceNet) -> Vec<f32> {
    let tensors = net.layout().tensors().iter();
    tensors.flat_map(|tensor| floats(&recording["parameters"][&tensor.name])).collect()
}

fn job<'a>(
    batch: &'a Batch,
    pieces: &'a [Range<usize>],
    classes: &'a [Vec<usize>],
    weights: LossWeights,
) -> UpdateJob<'a> {
    UpdateJob { batch, pieces, due: &[0, 1, 2], selection: None, classes, weights }
}

fn accumulate(net: &PaceNet, parameters: &[f32], job: &UpdateJob<'_>, shard: &mut UpdateShard) {
    let mut transposed = vec![0.0; parameters.len()];
    net.transpose(parameters, &mut transposed);
    net.accumulate(parameters, &transposed, job, &mut PaceLearnRows::default(), shard);
}

#[test]
fn loss_and_gradients_equal_pytorchs() {
    let recording = recording();
    let (batch, classes) = batch(&recording);
    for case in recording["cases"].as_array().expect("a list") {
        let net = net(&recording, &case["empty_context"], &case["empty_episode"]);
        let parameters = parameters(&recording, &net);
        let mut shard = UpdateShard::new(parameters.len());
        let weights = weights(&recording, batch.n_decisions());
        let pieces = net.pieces(&batch);
        let job = job(&batch, &pieces, &classes, weights);
        accumulate(&net, &parameters, &job, &mut shard);
        let sums = &shard.sums;
        for (found, name) in [
            (sums.policy_loss, "policy_loss"),
            (sums.value_loss, "value_loss"),
            (sums.entropy, "entropy"),
            (sums.own[0], "auxiliary_loss"),
        ] {
            let recorded = case["terms"][name].as_f64().expect("a number");
            assert!((found / sums.n - recorded).abs() < 1e-5, "{name}: {} {recorded}", found / sums.n);
        }
        for tensor in net.layout().tensors() {
            let recorded = floats(&case["gradients"][&tensor.name]);
            let found = &shard.gradients[tensor.id.range()];
            let norm = |values: &mut dyn Iterator<Item = f32>| {
                values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
            };
            let difference = norm(&mut found.iter().zip(&recorded).map(|(found, recorded)| found - recorded));
            let size = norm(&mut recorded.iter().copied());
            assert!(difference <= 1e-4 * size + 1e-8, "{}: off by {difference} of {size}", tensor.name);
        }
    }
}

#[test]
fn steps_of_all_minibatches_add_up_to_whole_encounters() {
    let recording = recording();
    let (batch, classes) = batch(&recording);
    let case = &recording["cases"][0];
    let net = net(&recording, &case["empty_context"], &case["empty_episode"]);
    let parameters = parameters(&recording, &net);
    let gradient = |selections: &[Option<(&[u32], u32)>]| {
        let mut shard = UpdateShard::new(parameters.len());
        for selection in selections {
            let weights = weights(&recording, batch.n_decisions());
            let pieces = net.pieces(&batch);
            let job = UpdateJob { selection: *selection, ..job(&batch, &pieces, &classes, weights) };
            accumulate(&net, &parameters, &job, &mut shard);
        }
        assert_eq!(shard.sums.n, batch.n_decisions() as f64);
        shard.gradients
    };
    let assigned: Vec<u32> = (0..batch.n_decisions() as u32).map(|decision| decision * 7 % 3).collect();
    let parts = gradient(&[Some((&assigned, 0)), Some((&assigned, 1)), Some((&assigned, 2))]);
    for (one, other) in gradient(&[None]).iter().zip(&parts) {
        assert!((one - other).abs() < 1e-6, "{one} {other}");
    }
}

#[test]
fn the_warm_up_leaves_actor_and_critic_alone() {
    let recording = recording();
    let (batch, classes) = batch(&recording);
    let case = &recording["cases"][0];
    let net = net(&recording, &case["empty_context"], &case["empty_episode"]);
    let parameters = parameters(&recording, &net);
    let mut shard = UpdateShard::new(parameters.len());
    let weights = LossWeights { policy: None, ..weights(&recording, batch.n_decisions()) };
    let pieces = net.pieces(&batch);
    let job = job(&batch, &pieces, &classes, weights);
    accumulate(&net, &parameters, &job, &mut shard);
    let (warm, rest) = shard.gradients.split_at(net.group_ends()[0]);
    assert!(warm.iter().any(|gradient| *gradient != 0.0));
    assert!(rest.iter().all(|gradient| *gradient == 0.0));
}
