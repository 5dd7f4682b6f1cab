//! Embedding and belief together: the belief moves to the embedding of the peer. The conditional policy: its loss against
//! PyTorch's recording and finite differences, and its rollout.

use std::sync::Arc;

use pace_games::{GAMES, PoolListing, Preset, Seed, Split, find_game};
use serde_json::Map;

use super::belief::{Belief, BeliefBuffers, update};
use super::conditional::GscuNet;
use super::embedding::Embedding;
use super::embedding_stage::EmbeddingStage;
use super::keys::{
    ActionLabels, Advantages, BeliefRows, BeliefUpdates, LatentSampling, PolicyNetwork, ValueHead,
};
use super::{fill_normal, keys_of};
use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::learner::LossWeights;
use crate::methods::baseline_tests::check_replay_of;
use crate::methods::recorded::{
    Recording, check_differences, check_recorded, floats, gradient, with_all_segments,
};
use crate::network::{Actor, Decisions, Network, NetworkDims, PolicyOutputs};
use crate::policy::Policy;
use crate::ppo::Ppo;
use crate::preset::paper_keys;
use crate::train::IterationContext;

/// Keys of the conditional policy with an LSTM.
fn window_keys(game: &str) -> TrainConfig {
    let mut config = TrainConfig { hidden_width: 8, encounters_per_tuple: 1, ..paper_keys(game, "gscu") };
    let keys = config.gscu.as_mut().expect("keys");
    (keys.network, keys.window, keys.conservative) = (PolicyNetwork::Lstm, 4, "random".to_owned());
    config
}

#[test]
fn loss_and_gradients_equal_pytorch_and_finite_differences() {
    let recording = Recording::parse(include_str!("../../../tests/pytorch/gscu_loss.json"));
    for case in recording.0["cases"].as_array().expect("a list") {
        let mut config =
            TrainConfig { hidden_width: recording.size("hidden_width"), ..window_keys("kuhn-poker") };
        let keys = config.gscu.as_mut().expect("keys");
        (keys.window, keys.latent_size) = (recording.size("window"), recording.size("latent_size"));
        keys.advantages = serde_json::from_value(case["advantages"].clone()).expect("a known name");
        let is_current = keys.advantages == Advantages::Current;
        let mut net = GscuNet::new(&recording.spec(), &PoolListing::default(), &config);
        for tensor in net.spec.layout.tensors().to_vec() {
            // The embedding is not recorded: this loss has no gradient there.
            let recorded = floats(&recording.0["parameters"][&tensor.name]);
            net.weights_mut()[tensor.id.range()][..recorded.len()].copy_from_slice(&recorded);
        }
        let batch = recording.batch();
        let weights = LossWeights { value_clip: 1e9, ..recording.weights(batch.n_decisions()) };
        with_all_segments(&net, &batch, &[], weights, |job| {
            check_recorded(&net, job, case, &[]);
            // A step changes a current advantage, which counts as a constant.
            if !is_current {
                check_differences(&net, job, 0);
            }
        });
    }
}

#[test]
fn feed_forward_networks_can_have_current_advantages() {
    let recording = Recording::parse(include_str!("../../../tests/pytorch/gscu_loss.json"));
    let mut config = paper_keys("kuhn-poker", "gscu");
    let mut net_with = |advantages: Advantages| {
        config.gscu.as_mut().expect("keys").advantages = advantages;
        let mut net = GscuNet::new(&recording.spec(), &PoolListing::default(), &config);
        net.initialise(Seed::new(3));
        net
    };
    let (raw, current) = (net_with(Advantages::Raw), net_with(Advantages::Current));
    let mut batch = recording.batch();
    let weights = recording.weights(batch.n_decisions());
    let found = |net: &GscuNet, batch: &Batch| {
        let mut found = Vec::new();
        with_all_segments(net, batch, &[], weights, |job| found = gradient(net, job).gradients);
        found
    };
    let values: Vec<f32> = (0..batch.n_decisions())
        .map(|decision| {
            let (observation, latent) =
                (&batch.observations[decision * 5..][..5], &batch.saved_states[decision * 2..]);
            let mut state = raw.new_state(1, None);
            state.set_latent(&latent[..2]);
            let mut out = PolicyOutputs::default();
            raw.forward_policy(observation, &[0], &mut state, &mut out);
            out.values[0]
        })
        .collect();
    let of_current = found(&current, &batch);
    assert_ne!(found(&raw, &batch), of_current);
    for ((advantage, target), value) in batch.advantages.iter_mut().zip(&batch.targets).zip(&values) {
        *advantage = target - value;
    }
    for (one, other) in found(&raw, &batch).iter().zip(&of_current) {
        assert!((one - other).abs() < 1e-6, "{one} {other}");
    }
}

/// Plays a batch from random weights, and compares it with the training pass.
fn replayed(game: &str, config: &TrainConfig) -> Batch {
    let entry = find_game(game).expect("a game");
    let game = entry.open(Preset::Paper, &Map::new()).expect("a preset");
    let mut ppo = Ppo::<GscuNet>::new(&*game, &game.pool(Split::Train), config, 1, 1).expect("good keys");
    let n_tuples = game.n_tuples(Split::Train);
    ppo.learner.net.tuples =
        Arc::new((0..4 * n_tuples).map(|value| (value % 7) as f32 * 0.3 - 1.0).collect());
    check_replay_of(&mut ppo, &*game, config, entry.id)
}

#[test]
fn training_batch_matches_rollout() {
    for entry in GAMES {
        for network in [PolicyNetwork::FeedForward, PolicyNetwork::Lstm] {
            for sampling in [LatentSampling::PerEpisode, LatentSampling::PerStep] {
                let mut config = window_keys(entry.id);
                let keys = config.gscu.as_mut().expect("keys");
                (keys.network, keys.latent_sampling) = (network, sampling);
                let batch = replayed(entry.id, &config);
                let n_latents = |encounter: usize| {
                    let decisions = batch.decisions(encounter);
                    let latents = batch.saved_states[decisions.start * 2..decisions.end * 2].chunks(2);
                    let distinct =
                        latents.map(|latent| latent.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
                    distinct.collect::<std::collections::BTreeSet<_>>().len()
                };
                for encounter in 0..batch.n_encounters() {
                    let expected = match sampling {
                        LatentSampling::PerEpisode => 1,
                        LatentSampling::PerStep => batch.decisions(encounter).len(),
                    };
                    assert_eq!(n_latents(encounter), expected, "{}", entry.id);
                }
            }
        }
    }
}

#[test]
fn the_window_has_the_last_decisions_of_the_episode() {
    let config = window_keys("kuhn-poker");
    let entry = find_game("kuhn-poker").expect("a game");
    let game = entry.open(Preset::Paper, &Map::new()).expect("a preset");
    let mut net = GscuNet::new(game.spec(), &game.pool(Split::Train), &config);
    net.initialise(Seed::new(4));
    // The logits of the last of several decisions, whose observations and actions are these numbers.
    let logits = |episodes: &[&[(u8, u8)]]| {
        let (mut state, mut out) = (net.new_state(1, None), PolicyOutputs::default());
        for (index, episode) in episodes.iter().enumerate() {
            if index > 0 {
                net.end_episodes(&[0.0; 13], &[0], &mut state);
                // The arm is chosen again, and this network has no conservative policy.
            }
            for (observation, action) in *episode {
                let observations = [f32::from(*observation); 13];
                net.forward_policy(&observations, &[0], &mut state, &mut out);
                let decisions = Decisions {
                    observations: &observations,
                    ego_actions: &[*action],
                    peer_actions: &[0],
                    peer_observations: &[],
                    task_rewards: &[],
                };
                net.update_contexts(&decisions, &[0], &mut state);
            }
        }
        out.logits
    };
    let last = [(2, 0), (3, 1), (4, 0), (5, 1)];
    let whole = logits(&[&last]);
    // Of the decision before the window only the action is in it, and earlier episodes are not.
    let before = |observation, action| [&[(observation, action)][..], &last].concat();
    assert_eq!(logits(&[&before(6, 1)]), logits(&[&before(7, 1)]));
    assert_ne!(logits(&[&before(6, 1)]), logits(&[&before(6, 0)]));
    assert_ne!(logits(&[&before(6, 1)]), whole);
    assert_eq!(logits(&[&[(6, 1), (1, 1)], &last]), whole);
    // The action of a decision is in the input of the next one.
    let changed = |index: usize, action: u8| {
        let mut changed = last;
        changed[index].1 = action;
        logits(&[&changed])
    };
    assert_ne!(changed(0, 1), whole);
    assert_eq!(changed(3, 0), whole);
}

#[test]
fn value_heads_are_orthogonal_if_asked_for() {
    let norm_with = |value_head: ValueHead| {
        let mut config = paper_keys("overcooked", "gscu");
        config.gscu.as_mut().expect("keys").value_head = value_head;
        let game = find_game("overcooked").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("the game");
        let mut net = GscuNet::new(game.spec(), &game.pool(Split::Train), &config);
        net.initialise(Seed::new(4));
        let tensor = |name: &str| {
            let tensor =
                net.spec.layout.tensors().iter().find(|tensor| tensor.name == name).expect("a tensor");
            net.weights()[tensor.id.range()].to_vec()
        };
        let norm = tensor("critic.2.weight").iter().map(|weight| weight * weight).sum::<f32>().sqrt();
        (norm, tensor("critic.2.bias")[0])
    };
    let (norm, bias) = norm_with(ValueHead::Orthogonal);
    assert!((norm - std::f32::consts::SQRT_2).abs() < 1e-5 && bias == 0.0, "{norm} {bias}");
    let (norm, bias) = norm_with(ValueHead::Uniform);
    assert!(norm < 1.0 && bias != 0.0, "{norm} {bias}");
}

#[test]
fn beliefs_can_change_within_an_episode() {
    for (updates, rows) in [
        (BeliefUpdates::AfterEpisode, BeliefRows::Shared),
        (BeliefUpdates::AtOnce, BeliefRows::Shared),
        (BeliefUpdates::AtOnce, BeliefRows::PerStep),
    ] {
        let mut config = paper_keys("overcooked", "gscu");
        let keys = config.gscu.as_mut().expect("keys");
        (keys.belief_window, keys.belief_updates, keys.belief_rows) = (3, updates, rows);
        let game = find_game("overcooked").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("the game");
        let mut net = GscuNet::new(game.spec(), &game.pool(Split::Train), &config);
        assert_eq!(net.n_belief_rows, if rows == BeliefRows::Shared { 1 } else { 3 });
        net.initialise(Seed::new(4));
        let size = game.spec().observation_size;
        let (mut state, mut out) = (net.new_state(1, None), PolicyOutputs::default());
        net.begin(&mut state, 0, Seed::new(1));
        let mut latents = Vec::new();
        for _ in 0..7 {
            let observations = vec![0.5; size];
            net.forward_policy(&observations, &[0], &mut state, &mut out);
            latents.push(out.latents.clone());
            let decisions = Decisions {
                observations: &observations,
                ego_actions: &[1],
                peer_actions: &[2],
                peer_observations: &observations,
                task_rewards: &[0.0],
            };
            net.update_contexts(&decisions, &[0], &mut state);
        }
        let changes: Vec<usize> = (1..7).filter(|step| latents[*step] != latents[step - 1]).collect();
        let expected: &[usize] = if updates == BeliefUpdates::AtOnce { &[3, 6] } else { &[] };
        assert_eq!(changes, expected, "{updates:?}");
    }
}

#[test]
fn labels_of_zero_are_learned_without_a_latent() {
    let game = find_game("kuhn-poker").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
    let game = game.expect("the game");
    let mut config = paper_keys("kuhn-poker", "gscu");
    let keys = config.gscu.as_mut().expect("keys");
    (keys.embedding_width, keys.embedding_encounters_per_tuple) = (16, 2);
    (keys.embedding_epochs, keys.embedding_batch, keys.embedding_rate) = (40, 64, 5e-3);
    keys.action_labels = ActionLabels::Zero;
    let embedding = Embedding::new(NetworkDims::of(game.spec()), 40, keys);
    let ego = Policy::scripted(&*game, "random").expect("every game has it");
    let weights = embedding.initialise(Seed::new(1));
    let mut stage = EmbeddingStage::new(&*game, &embedding, weights, &config, &[13, 12], &ego, 1);
    let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
    stage.collect_samples(&at).expect("a distribution");
    let result = stage.learn(&at, keys_of(&config)).expect("finite numbers");
    assert!(result.metrics["embedding/accuracy"] == 1.0, "{:?}", result.metrics);
    assert!(result.metrics["embedding/cross_entropy"] < 0.05, "{:?}", result.metrics);
}

#[test]
fn the_belief_moves_to_the_current_peer() {
    let game = find_game("kuhn-poker").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
    let game = game.expect("the game");
    let mut config = paper_keys("kuhn-poker", "gscu");
    let keys = config.gscu.as_mut().expect("keys");
    (keys.embedding_width, keys.embedding_encounters_per_tuple) = (32, 4);
    (keys.embedding_epochs, keys.embedding_batch, keys.embedding_rate) = (30, 64, 5e-3);
    let embedding = Embedding::new(NetworkDims::of(game.spec()), 40, keys);
    let ego = Policy::scripted(&*game, "random").expect("every game has it");
    // A peer that hardly ever bluffs and never calls, and one that does both.
    let tuples = [13, 12];
    let weights = embedding.initialise(Seed::new(1));
    let mut stage = EmbeddingStage::new(&*game, &embedding, weights, &config, &tuples, &ego, 1);
    let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
    stage.collect_samples(&at).expect("a distribution");
    let samples = stage.samples.clone();
    stage.learn(&at, keys_of(&config)).expect("finite numbers");
    let distributions = stage.distributions().to_vec();
    let keys = super::GscuConfig { belief_steps: 100, belief_rate: 0.02, ..keys_of(&config).clone() };
    let squared_distance = |mean: &[f32], tuple: usize| {
        let center = &distributions[tuple * 4..][..2];
        mean.iter().zip(center).map(|(one, other)| (one - other).powi(2)).sum::<f32>()
    };
    for (tuple, other) in [(tuples[0], tuples[1]), (tuples[1], tuples[0])] {
        let mut belief = Belief::new(2, 1);
        let mut rng = Seed::new(7).stream("noise");
        for row in (0..samples.len()).filter(|row| usize::from(samples.tuples[*row]) == tuple) {
            belief.window.observations.extend_from_slice(&samples.observations[row * 13..][..13]);
            belief.window.actions.push(samples.actions[row]);
            if belief.window.actions.len() == 40 {
                let to_update = &mut [(&mut belief, &mut rng)];
                update(&embedding, &stage.parameters, &keys, to_update, &mut BeliefBuffers::default());
            }
        }
        let mut mean = [0.0; 2];
        belief.write_mean(&mut mean);
        let [near, far] = [tuple, other].map(|tuple| squared_distance(&mean, tuple));
        assert!(near < 0.5 * far, "{tuple}: {near} from its own, {far} from the other: {mean:?}");
    }
}

#[test]
fn normal_samples_have_the_right_moments() {
    let mut values = vec![0.0; 40_001];
    fill_normal(&mut Seed::new(1).stream("noise"), &mut values);
    let moment =
        |power: i32| values.iter().map(|value| f64::from(*value).powi(power)).sum::<f64>() / 40_001.0;
    assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0).abs() < 0.03 && (moment(4) - 3.0).abs() < 0.2);
    // Consecutive numbers are not correlated.
    let correlation = values.windows(2).map(|pair| f64::from(pair[0] * pair[1])).sum::<f64>() / 40_000.0;
    assert!(correlation.abs() < 0.02, "{correlation}");
}
