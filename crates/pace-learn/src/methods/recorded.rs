//! Checks of losses and gradients against PyTorch's recordings and finite differences, for the tests of every method.

use pace_games::{DisplayNames, Ending, GameSpec, Metric};
use pace_nn::loss::PolicyLoss;
use pace_nn::product::{GemmShape, recorded};
use serde_json::Value;

use crate::batch::Batch;
use crate::learner::{LossWeights, ShardUpdate, UpdateJob, UpdateShard, UpdateSums};
use crate::network::Network;

/// A recording of `tests/pytorch`.
pub(super) struct Recording(pub(super) Value);

impl Recording {
    pub(super) fn parse(text: &str) -> Recording {
        Recording(serde_json::from_str(text).expect("the recording is JSON"))
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().expect("a number")
    }

    pub(super) fn size(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A game with two peers and three actions.
    pub(super) fn spec(&self) -> GameSpec {
        GameSpec {
            id: "recorded",
            title: "recorded",
            revision: 1,
            observation_size: self.size("observation_size"),
            action_names: &["a", "b", "c"],
            peer_roles: vec!["one", "two"],
            episodes_per_encounter: 3,
            horizon_steps: 9,
            metric: Metric::Return,
            keypoint: "",
            nouns: DisplayNames { episode: "", episodes: "", score: "", keypoint: "" },
        }
    }

    /// The encounters; fields without a recording stay empty.
    pub(super) fn batch(&self) -> Batch {
        let mut batch = Batch::default();
        for (tuple, encounter) in self.0["encounters"].as_array().expect("a list").iter().enumerate() {
            let actions = |name: &str| integers(&encounter[name]).into_iter().map(|action| action as u8);
            batch.open_encounter(tuple as u32);
            batch.observations.extend(floats(&encounter["observations"]));
            batch.terminal_observations.extend(floats(&encounter["terminals"]));
            batch.actions.extend(actions("actions"));
            batch.peer_actions.extend(actions("peer_actions"));
            batch.peer_observations.extend(floats(&encounter["peer_observations"]));
            batch.task_rewards.extend(floats(&encounter["task_rewards"]));
            batch.saved_states.extend(floats(&encounter["kept"]));
            batch.log_probabilities.extend(floats(&encounter["old_log_probabilities"]));
            batch.values.extend(floats(&encounter["old_values"]));
            batch.targets.extend(floats(&encounter["targets"]));
            batch.advantages.extend(floats(&encounter["advantages"]));
            let lengths = integers(&encounter["lengths"]);
            batch.episode_lengths.extend(lengths.iter().map(|length| *length as u32));
            batch.endings.extend(lengths.iter().map(|_| Ending::Finished));
        }
        batch
    }

    pub(super) fn weights(&self, n_rows: usize) -> LossWeights {
        LossWeights {
            per_row: 1.0 / n_rows as f32,
            auxiliary: self.number("auxiliary_weight") as f32,
            value: self.number("value_weight") as f32,
            value_clip: self.number("clip") as f32,
            policy: Some(PolicyLoss {
                clip: self.number("clip") as f32,
                entropy_weight: self.number("entropy_weight") as f32,
            }),
        }
    }
}

pub(super) fn floats(value: &Value) -> Vec<f32> {
    let numbers = value.as_array().map(Vec::as_slice).unwrap_or_default();
    numbers.iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

pub(super) fn integers(value: &Value) -> Vec<usize> {
    floats(value).into_iter().map(|number| number as usize).collect()
}

/// Sets the weights of a network to the recorded tensors.
pub(super) fn set_weights<N: Network>(net: &mut N, recorded: &Value) {
    let tensors = net.spec().layout.tensors().iter();
    let values: Vec<f32> = tensors.flat_map(|tensor| floats(&recorded[&tensor.name])).collect();
    assert_eq!(values.len(), net.weights().len(), "recorded for another network");
    *net.weights_mut() = values;
}

/// Computes the gradient and the sums of a job.
pub(super) fn gradient<N: Network>(net: &N, job: &UpdateJob<'_>) -> UpdateShard {
    let n = net.weights().len();
    let (mut shard, mut transposed) = (UpdateShard::new(n), vec![0.0; n]);
    net.spec().layout.transpose(net.weights(), &mut transposed);
    let mut update = ShardUpdate::new(net.weights(), &transposed, job, &mut shard);
    net.accumulate(&mut update, &mut N::Buffers::default());
    shard
}

/// Calls `check` with the job of all segments of a batch.
pub(super) fn with_all_segments<N: Network>(
    net: &N,
    batch: &Batch,
    classes: &[Vec<usize>],
    weights: LossWeights,
    check: impl FnOnce(&UpdateJob<'_>),
) {
    let segments = net.segments(batch);
    let segment_indices: Vec<u32> = (0..segments.len() as u32).collect();
    check(&UpdateJob {
        batch,
        segments: &segments,
        segment_indices: &segment_indices,
        minibatch_of_decision: None,
        classes,
        weights,
        dropout: None,
    });
}

/// Compares terms and gradients with the recording; `own` names the method's own terms there.
pub(super) fn check_recorded<N: Network>(net: &N, job: &UpdateJob<'_>, recorded: &Value, own: &[&str]) {
    let shard = gradient(net, job);
    let sums = &shard.sums;
    let shared = [sums.policy_loss, sums.value_loss, sums.entropy];
    let names = ["policy_loss", "value_loss", "entropy"].iter().chain(own);
    for (name, found) in names.zip(shared.iter().chain(&sums.own)) {
        let recorded = recorded["terms"][name].as_f64().expect("a number");
        assert!((found / sums.n - recorded).abs() < 1e-5, "{name}: {} {recorded}", found / sums.n);
    }
    for tensor in net.spec().layout.tensors() {
        let recorded = floats(&recorded["gradients"][&tensor.name]);
        let found = &shard.gradients[tensor.id.range()];
        let norm = |values: &mut dyn Iterator<Item = f32>| {
            values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
        };
        let difference = norm(&mut found.iter().zip(&recorded).map(|(found, recorded)| found - recorded));
        let size = norm(&mut recorded.iter().copied());
        assert!(difference <= 1e-4 * size + 1e-8, "{}: off by {difference} of {size}", tensor.name);
    }
}

/// Compares a batch with repeated observations with and without deduplication: equal terms and gradients, fewer operations.
pub(super) fn check_deduplication<N: Network>(net: &N, job: &UpdateJob<'_>) {
    let size = net.spec().sizes.observation;
    let mut batch = job.batch.clone();
    let few = batch.observations[..3 * size].to_vec();
    let rows =
        batch.observations.chunks_exact_mut(size).chain(batch.terminal_observations.chunks_exact_mut(size));
    for (row, observation) in rows.enumerate() {
        observation.copy_from_slice(&few[row * 7 % 3 * size..][..size]);
    }
    let with_flops = |job: &UpdateJob<'_>| {
        let (shard, shapes) = recorded(|| gradient(net, job));
        (shard, shapes.iter().map(GemmShape::flops).sum::<f64>())
    };
    let (separate, separate_flops) = with_flops(&UpdateJob { batch: &batch, ..*job });
    let mut indexed = batch.clone();
    indexed.index_observations(size);
    assert!(indexed.numbers.is_some());
    let (deduplicated, deduplicated_flops) = with_flops(&UpdateJob { batch: &indexed, ..*job });
    assert!(deduplicated_flops < separate_flops);
    for (one, other) in deduplicated.gradients.iter().zip(&separate.gradients) {
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
    assert!((deduplicated.sums.policy_loss - separate.sums.policy_loss).abs() < 1e-4);
    assert!((deduplicated.sums.value_loss - separate.sums.value_loss).abs() < 1e-4);
}

/// Compares the gradient of every tensor, along a random direction, with finite differences of the whole loss. The first `n_own`
/// of the method's own sums are terms of the loss.
pub(super) fn check_differences<N: Network>(net: &N, job: &UpdateJob<'_>, n_own: usize) {
    let loss = |sums: &UpdateSums| {
        let policy = job.weights.policy.expect("a policy is trained");
        let auxiliary = f64::from(job.weights.auxiliary) * sums.own[..n_own].iter().sum::<f64>();
        (sums.policy_loss + f64::from(job.weights.value) * sums.value_loss
            - f64::from(policy.entropy_weight) * sums.entropy
            + auxiliary)
            / sums.n
    };
    let found = gradient(net, job).gradients;
    let mut rng = pace_games::Seed::new(3).stream("directions");
    for tensor in net.spec().layout.tensors() {
        let range = tensor.id.range();
        let direction: Vec<f32> = range.clone().map(|_| rng.unit() as f32 - 0.5).collect();
        // Small steps avoid the corners of ReLUs and clips, large ones rounding errors; one of several steps must agree.
        let slope = |step: f32| {
            let moved = |sign: f32| {
                let mut moved = net.clone();
                let pairs = moved.weights_mut()[range.clone()].iter_mut().zip(&direction);
                pairs.for_each(|(value, direction)| *value += sign * step * direction);
                loss(&gradient(&moved, job).sums)
            };
            (moved(1.0) - moved(-1.0)) / f64::from(2.0 * step)
        };
        let along: f64 =
            found[range.clone()].iter().zip(&direction).map(|(one, two)| f64::from(one * two)).sum();
        let error = |slope: f64| (slope - along).abs() / (along.abs() + 1e-2);
        let slopes = [3e-3, 6e-4, 1.2e-4].map(slope);
        let is_near = slopes.iter().any(|slope| error(*slope) < 0.02);
        assert!(is_near, "{}: {along}, but the loss changes by {slopes:?}", tensor.name);
    }
}
