//! Tests of the whole loss of PACE: against PyTorch's recording, against finite differences, and during the warm-up.

use pace_games::{PoolListing, Symmetries, SymmetryTransform};
use serde_json::Value;

use super::PaceNet;
use super::recorded::{
    Recording, check_deduplication, check_differences, check_recorded, gradient, integers, set_weights,
    with_all_segments,
};
use crate::batch::Batch;
use crate::config::{ContextAction, EncoderKind};
use crate::learner::{LossWeights, UpdateJob};
use crate::network::{Actor, Network};
use crate::preset::paper_keys;

fn recording() -> Recording {
    Recording::parse(include_str!("../../tests/pytorch/pace_loss.json"))
}

fn net(recording: &Recording, encoder: EncoderKind, case: &Value) -> PaceNet {
    net_with(recording, encoder, case, None)
}

/// Like [`net`], but with a canonical frame if there are symmetries.
fn net_with(recording: &Recording, encoder: EncoderKind, case: &Value, sides: Option<Symmetries>) -> PaceNet {
    let mut config = paper_keys("kuhn-poker", "pace");
    config.encoder_width = recording.size("encoder_width");
    config.hidden_width = recording.size("hidden_width");
    config.encoder = encoder;
    config.empty_context = serde_json::from_value(case["empty_context"].clone()).expect("a known name");
    config.empty_episode = serde_json::from_value(case["empty_episode"].clone()).expect("a known name");
    // Some recorded entries have no action, which only peers can have.
    config.context_action = ContextAction::Peer;
    config.canonical_frame = sides.is_some();
    let n_classes = integers(&recording.0["n_classes"]);
    let pool = PoolListing { n_classes, symmetries: sides, ..PoolListing::default() };
    PaceNet::new(&recording.spec(), &pool, &config)
}

fn batch(recording: &Recording) -> (Batch, Vec<Vec<usize>>) {
    let mut batch = recording.batch();
    let mut classes = Vec::new();
    for encounter in recording.0["encounters"].as_array().expect("a list") {
        // The first of the two peers is the one that is stored.
        let stored = integers(&encounter["context_actions"]);
        batch.peer_actions.extend(stored.iter().flat_map(|action| [*action as u8, 0]));
        classes.push(integers(&encounter["classes"]));
    }
    (batch, classes)
}

/// Calls `check` for every recorded case with the network, the job and the recorded results.
fn for_every_case(check: impl Fn(&PaceNet, &UpdateJob<'_>, &Value)) {
    for_every_case_with(EncoderKind::MeanPool, check);
}

/// Like [`for_every_case`], but with another encoder that has the same weights and no recorded results.
fn for_every_case_with(encoder: EncoderKind, check: impl Fn(&PaceNet, &UpdateJob<'_>, &Value)) {
    let recording = recording();
    let (batch, classes) = batch(&recording);
    for case in recording.0["cases"].as_array().expect("a list") {
        let mut net = net(&recording, encoder, case);
        set_weights(&mut net, &recording.0["parameters"]);
        let weights = recording.weights(batch.n_decisions());
        with_all_segments(&net, &batch, &classes, weights, |job| check(&net, job, case));
    }
}

#[test]
fn loss_and_gradients_equal_pytorch() {
    for_every_case(|net, job, case| {
        check_recorded(net, job, case, &["auxiliary_loss"]);
    });
}

#[test]
fn gradients_equal_finite_differences() {
    for encoder in [EncoderKind::MeanPool, EncoderKind::MeanMaxPool] {
        for_every_case_with(encoder, |net, job, _| check_differences(net, job, 1));
    }
}

#[test]
fn repeated_entries_count_as_often_as_they_occur() {
    for encoder in [EncoderKind::MeanPool, EncoderKind::MeanMaxPool] {
        for_every_case_with(encoder, |net, job, _| check_deduplication(net, job));
    }
}

#[test]
fn mean_max_pooling_differs_from_mean_pooling() {
    let gradients = |encoder: EncoderKind| {
        let all = std::cell::RefCell::new(Vec::new());
        for_every_case_with(encoder, |net, job, _| {
            all.borrow_mut().push(gradient(net, job).gradients);
        });
        all.into_inner()
    };
    assert_ne!(gradients(EncoderKind::MeanPool), gradients(EncoderKind::MeanMaxPool));
}

#[test]
fn steps_of_all_minibatches_add_up_to_whole_encounters() {
    for_every_case(|net, job, _| {
        let n = job.batch.n_decisions();
        let assigned: Vec<u32> = (0..n as u32).map(|decision| decision * 7 % 3).collect();
        let whole = gradient(net, job);
        let mut parts = vec![0.0; net.weights().len()];
        let mut n_found = 0.0;
        for minibatch in 0..3 {
            let part =
                gradient(net, &UpdateJob { minibatch_of_decision: Some((&assigned, minibatch)), ..*job });
            parts.iter_mut().zip(part.gradients).for_each(|(sum, value)| *sum += value);
            n_found += part.sums.n;
        }
        assert_eq!(n_found, n as f64);
        for (one, other) in whole.gradients.iter().zip(&parts) {
            assert!((one - other).abs() < 1e-6, "{one} {other}");
        }
    });
}

#[test]
fn the_warm_up_has_no_gradient_of_actor_and_critic() {
    for_every_case(|net, job, _| {
        let weights = LossWeights { policy: None, ..job.weights };
        let shard = gradient(net, &UpdateJob { weights, ..*job });
        let (warm, rest) = shard.gradients.split_at(net.spec().group_ends[0]);
        assert!(warm.iter().any(|gradient| *gradient != 0.0));
        assert!(rest.iter().all(|gradient| *gradient == 0.0));
    });
}

#[test]
fn the_identifier_learns_classes_in_the_canonical_frame() {
    let recording = recording();
    let case = &recording.0["cases"][0];
    let n_classes = integers(&recording.0["n_classes"]);
    let transform = |by: usize| {
        let classes = n_classes.iter().map(|n| (0..*n).map(|class| (class + by) % n).collect());
        SymmetryTransform { entries: Vec::new(), actions: Vec::new(), classes: classes.collect() }
    };
    let sides =
        Symmetries { transforms: vec![transform(0), transform(1)], canonical_if_positive: Vec::new() };
    let (mut batch, mut classes) = batch(&recording);
    let weights = recording.weights(batch.n_decisions());
    let learned = |net: &PaceNet, batch: &Batch, classes: &[Vec<usize>]| {
        let mut net = net.clone();
        set_weights(&mut net, &recording.0["parameters"]);
        let mut found = Vec::new();
        with_all_segments(&net, batch, classes, weights, |job| found = gradient(&net, job).gradients);
        found
    };
    let canonical = net_with(&recording, EncoderKind::MeanPool, case, Some(sides.clone()));
    let from_first_side = learned(&canonical, &batch, &classes);
    batch.sides[0] = 1;
    let from_second_side = learned(&canonical, &batch, &classes);
    assert_ne!(from_second_side, from_first_side);
    // A plain network with the transformed classes has the same gradient.
    for (slot, class) in classes[0].iter_mut().enumerate() {
        *class = sides.transforms[1].classes[slot][*class];
    }
    let plain = net(&recording, EncoderKind::MeanPool, case);
    assert_eq!(from_second_side, learned(&plain, &batch, &classes));
}
