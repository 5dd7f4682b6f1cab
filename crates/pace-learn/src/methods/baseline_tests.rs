//! Tests of the baselines: their losses against PyTorch's recording and finite differences, and the span of their contexts.

use pace_games::{AnyGame, GAMES, PoolListing, Preset, Split};
use serde_json::{Map, Value};

use super::lili::LiliNet;
use super::recorded::{
    Recording, check_deduplication, check_differences, check_recorded, gradient, set_weights,
    with_all_segments,
};
use super::recurrent::{RecurrentNet, RecurrentState};
use super::{MethodInputs, PaceNet, find_method};
use crate::batch::Batch;
use crate::config::{EmptyContext, ExplorationMode, Span, TrainConfig};
use crate::gae::estimate_advantages;
use crate::learner::{LossWeights, UpdateJob};
use crate::nets::TransformerEncoder;
use crate::network::{Actor, Decisions, Network, PolicyOutputs};
use crate::ppo::Ppo;
use crate::preset::paper_keys;
use crate::train::IterationContext;

type GeneralistNet = RecurrentNet<false>;
type LiamNet = RecurrentNet<true>;

fn recording() -> Recording {
    Recording::parse(include_str!("../../tests/pytorch/baseline_losses.json"))
}

/// The keys of a recorded case.
fn keys(recording: &Recording, case: &Value) -> TrainConfig {
    let read = |name: &str, default: &str| case[name].as_str().unwrap_or(default).to_owned();
    let span: Span = serde_json::from_value(read("span", "encounter").into()).expect("a span");
    TrainConfig {
        encoder_width: recording.size("encoder_width"),
        hidden_width: recording.size("hidden_width"),
        bptt_steps: recording.size("chunk_steps"),
        empty_context: serde_json::from_value(read("empty_context", "zero").into()).expect("a known name"),
        hidden_state_span: span,
        return_span: span,
        rnn_sees_terminal: case["sees_terminal"].as_bool().unwrap_or(false),
        ..paper_keys("kuhn-poker", "pace")
    }
}

fn check_case<N: Network>(recording: &Recording, case: &Value, own: &[&str]) {
    let mut net = N::new(&recording.spec(), &PoolListing::default(), &keys(recording, case));
    let recorded = case["net"].as_str().expect("a name");
    set_weights(&mut net, &recording.0["parameters"][recorded]);
    let batch = recording.batch();
    let weights = recording.weights(batch.n_decisions());
    with_all_segments(&net, &batch, &[], weights, |job| {
        check_recorded(&net, job, case, own);
        check_differences(&net, job, own.len());
        check_parts(&net, job);
        if recorded != "lili" {
            check_deduplication(&net, job);
        }
    });
}

/// The gradients of single segments, in another order, add up to the gradient of all segments.
fn check_parts<N: Network>(net: &N, job: &UpdateJob<'_>) {
    let whole = gradient(net, job);
    let mut parts = vec![0.0; net.weights().len()];
    for segment in job.segment_indices.iter().rev() {
        let part = gradient(net, &UpdateJob { segment_indices: &[*segment], ..*job });
        parts.iter_mut().zip(part.gradients).for_each(|(sum, value)| *sum += value);
    }
    for (one, other) in whole.gradients.iter().zip(&parts) {
        assert!((one - other).abs() < 1e-6, "{one} {other}");
    }
}

#[test]
fn losses_and_gradients_equal_pytorch_and_finite_differences() {
    let recording = recording();
    for case in recording.0["cases"].as_array().expect("a list") {
        match case["net"].as_str() {
            Some("lili") => check_case::<LiliNet>(&recording, case, &["reward_loss", "observation_loss"]),
            Some("generalist") => check_case::<GeneralistNet>(&recording, case, &[]),
            Some("liam") => check_case::<LiamNet>(&recording, case, &["observation_loss", "action_loss"]),
            other => panic!("{other:?} is no network"),
        }
    }
}

/// A game with encounters of several chunks.
fn open(entry: &pace_games::GameEntry) -> Box<dyn AnyGame> {
    let n_episodes = if entry.id == "kuhn-poker" { 40 } else { 3 };
    let keys = Map::from_iter([("episodes_per_encounter".to_owned(), Value::from(n_episodes))]);
    entry.open(Preset::Paper, &keys).expect("every game has this key")
}

/// Small keys of a method.
fn small(game: &str, method: &str, change: impl Fn(&mut TrainConfig)) -> TrainConfig {
    let mut config = TrainConfig {
        encounters_per_tuple: 1,
        encoder_width: 12,
        hidden_width: 12,
        ..paper_keys(game, method)
    };
    change(&mut config);
    config
}

/// Compares the training pass with the rollout in every game.
fn check_replay<N: Network>(method: &str, change: impl Fn(&mut TrainConfig)) {
    for entry in GAMES {
        let game = open(entry);
        let config = small(entry.id, method, &change);
        let mut ppo = Ppo::<N>::new(&*game, &game.pool(Split::Train), &config, 1, 1).expect("good keys");
        check_replay_of(&mut ppo, &*game, &config, &format!("{} {method}", entry.id));
    }
}

/// The training pass computes the same probabilities and values for a batch as the inference pass of the rollout, so that no
/// probability ratio differs from 1. Returns the batch.
pub(super) fn check_replay_of<N: Network>(
    ppo: &mut Ppo<N>,
    game: &dyn AnyGame,
    config: &TrainConfig,
    label: &str,
) -> Batch {
    // Initial policies are nearly uniform for all observations; these are not.
    let mut rng = pace_games::Seed::new(1).stream("weights");
    ppo.learner.net.weights_mut().iter_mut().for_each(|weight| *weight = 2.0 * rng.unit() as f32 - 1.0);
    let at = IterationContext { game, config, seed: 1, iteration: 0, steps: 0 };
    let mut batch = ppo.play(&at).expect("finite weights");
    if config.rollout_steps > 0 {
        let second = ppo.play(&IterationContext { iteration: 1, steps: 1, ..at }).expect("finite weights");
        check_continuation(&batch, &second, config, label);
        batch = second;
    }
    estimate_advantages(&mut batch, 0.0, config);
    let policy = pace_nn::loss::PolicyLoss { clip: 1e-3, entropy_weight: 0.0 };
    let weights =
        LossWeights { per_row: 1.0, auxiliary: 1.0, value: 1.0, value_clip: 1.0, policy: Some(policy) };
    let classes: Vec<Vec<usize>> =
        game.pool(Split::Train).tuples.iter().map(|tuple| tuple.classes.clone()).collect();
    // Values are their own targets, so that the value loss compares them one by one.
    batch.targets = batch.values.clone();
    // Decisions of the rollout before are context only.
    let mut parts = vec![1; batch.n_decisions()];
    (0..batch.n_encounters()).for_each(|encounter| parts[batch.new_decisions(encounter)].fill(0));
    with_all_segments(&ppo.learner.net, &batch, &classes, weights, |job| {
        let sums =
            gradient(&ppo.learner.net, &UpdateJob { minibatch_of_decision: Some((&parts, 0)), ..*job }).sums;
        assert_eq!(sums.n, batch.n_new_decisions() as f64, "{label}");
        assert!(sums.entropy / sums.n < 0.99 * (game.spec().n_actions() as f64).ln(), "{label}");
        assert_eq!(sums.clipped, 0.0, "{label}");
        assert!(sums.approx_kl / sums.n < 1e-6, "{label}: {}", sums.approx_kl / sums.n);
        assert!(sums.value_loss / sums.n < 1e-8, "{label}: {}", sums.value_loss / sums.n);
    });
    batch
}

/// The second rollout continues the first.
fn check_continuation(first: &Batch, second: &Batch, config: &TrainConfig, label: &str) {
    let n_lanes = first.tuples.len() - first.cuts.iter().filter(|cut| cut.is_none()).count();
    for batch in [first, second] {
        // Lanes that end with an encounter have no cut.
        assert!(batch.n_new_decisions().is_multiple_of(config.rollout_steps), "{label}");
        assert!(n_lanes * config.rollout_steps <= batch.n_new_decisions(), "{label}");
    }
    assert!(first.n_earlier.iter().all(|n| *n == 0), "{label}");
    let cut = (0..first.n_encounters()).filter(|one| first.cuts[*one].is_some());
    let carried = (0..second.n_encounters()).filter(|one| second.n_earlier[*one] > 0);
    let size = first.observations.len() / first.n_decisions();
    let mut n_carried = 0;
    for (before, after) in cut.zip(carried) {
        n_carried += 1;
        let (before_rows, n) = (first.decisions(before), second.n_earlier[after]);
        let after_rows = second.decisions(after).start..second.decisions(after).start + n;
        assert_eq!(before_rows.len(), n, "{label}");
        assert_eq!((first.tuples[before], first.sides[before]), (second.tuples[after], second.sides[after]));
        assert_eq!(first.actions[before_rows.clone()], second.actions[after_rows.clone()], "{label}");
        let observations = |batch: &Batch, rows: &std::ops::Range<usize>| {
            batch.observations[rows.start * size..rows.end * size].to_vec()
        };
        assert!(observations(first, &before_rows) == observations(second, &after_rows), "{label}");
        assert_eq!(first.task_rewards[before_rows], second.task_rewards[after_rows.clone()], "{label}");
        // With the same weights, the value that stands for the rest is that of the next decision.
        let next_value = first.cuts[before].expect("a cut").next_value;
        assert!((next_value - second.values[after_rows.end]).abs() < 1e-5, "{label}");
        let next_observation = &second.observations[after_rows.end * size..][..size];
        if first.cuts[before].expect("a cut").is_within_episode {
            let last = first.episodes(before).end - 1;
            assert!(first.terminal_observations[last * size..][..size] == *next_observation, "{label}");
        }
    }
    assert!(n_carried > 0, "{label}");
    assert_eq!(n_carried, second.n_earlier.iter().filter(|n| **n > 0).count(), "{label}");
}

#[test]
fn rollouts_of_a_number_of_steps_continue_encounters() {
    for rollout_steps in [17, 23] {
        let keys =
            move |config: &mut TrainConfig| (config.rollout_steps, config.bptt_steps) = (rollout_steps, 7);
        check_replay::<PaceNet>("pace", move |config| {
            keys(config);
            (config.warm_up_steps, config.exploration_mode) = (0, ExplorationMode::RunningMax);
        });
        check_replay::<PaceNet<TransformerEncoder>>("pace-tf", move |config| {
            keys(config);
            config.encoder_dropout_in_rollout = false;
        });
        check_replay::<LiliNet>("lili", keys);
        check_replay::<GeneralistNet>("generalist", keys);
        check_replay::<GeneralistNet>("generalist", move |config| {
            keys(config);
            config.rnn_sees_terminal = true;
        });
        check_replay::<LiamNet>("liam", keys);
        check_replay::<LiamNet>("liamx", keys);
    }
}

#[test]
fn training_batch_matches_rollout() {
    check_replay::<PaceNet>("pace", |config| {
        config.warm_up_steps = 0;
    });
    // Rollout and update have different dropout, so the network is compared without dropout.
    check_replay::<PaceNet<TransformerEncoder>>("pace-tf", |config| {
        config.encoder_dropout_in_rollout = false;
    });
    check_replay::<LiliNet>("lili", |_| {});
    check_replay::<LiliNet>("lili", |config| config.empty_context = EmptyContext::Encoded);
    check_replay::<GeneralistNet>("generalist", |_| {});
    check_replay::<GeneralistNet>("generalist", |config| config.rnn_sees_terminal = true);
    check_replay::<LiamNet>("liam", |_| {});
    check_replay::<LiamNet>("liamx", |config| config.bptt_steps = 7);
    check_replay::<LiamNet>("liamx", |config| config.rnn_sees_terminal = true);
}

/// Plays episodes of random decisions through a context of a network with initial weights; calls `look` before every decision.
fn play_through<N: Network>(
    method: &str,
    change: impl Fn(&mut TrainConfig),
    mut look: impl FnMut(usize, usize, &N::State, &[f32]),
) {
    let entry = &GAMES[0];
    let game = open(entry);
    let config = small(entry.id, method, change);
    let mut net = N::new(game.spec(), &game.pool(Split::Train), &config);
    net.initialise(pace_games::Seed::new(4));
    let mut rng = pace_games::Seed::new(5).stream("observations");
    let size = net.spec().sizes.observation;
    let mut observe = || -> Vec<f32> { (0..size).map(|_| rng.unit() as f32).collect() };
    let mut state = net.new_state(1, None);
    let mut outputs = PolicyOutputs::default();
    for episode in 0..4 {
        for step in 0..3 {
            let observation = observe();
            net.forward_policy(&observation, &[0], &mut state, &mut outputs);
            look(episode, step, &state, &outputs.latents);
            let peer_actions = vec![0; net.spec().sizes.n_peers];
            let decisions = Decisions {
                observations: &observation,
                ego_actions: &[1],
                peer_actions: &peer_actions,
                peer_observations: &[],
                task_rewards: &[],
            };
            net.update_contexts(&decisions, &[0], &mut state);
        }
        net.end_episodes(&observe(), &[0], &mut state);
    }
}

#[test]
fn the_latent_of_lili_is_that_of_the_previous_episode() {
    for empty_context in [EmptyContext::Zero, EmptyContext::Encoded] {
        let mut latents: Vec<Vec<f32>> = Vec::new();
        let change = |config: &mut TrainConfig| config.empty_context = empty_context;
        play_through::<LiliNet>("lili", change, |_, _, _, latent| latents.push(latent.to_vec()));
        let episodes: Vec<&[Vec<f32>]> = latents.chunks(3).collect();
        for episode in &episodes {
            assert!(episode.iter().all(|latent| latent == &episode[0]), "{episode:?}");
        }
        if empty_context == EmptyContext::Zero {
            assert!(episodes[0][0].iter().all(|value| *value == 0.0));
        }
        for (one, other) in [(0, 1), (1, 2), (2, 3)] {
            assert_ne!(episodes[one][0], episodes[other][0]);
        }
    }
}

/// The hidden states before every decision, episode by episode.
fn hidden_states<N: Network<State = RecurrentState>>(
    method: &str,
    change: impl Fn(&mut TrainConfig),
) -> Vec<Vec<f32>> {
    let mut states = Vec::new();
    play_through::<N>(method, change, |_, _, state, _| states.push(state.lanes[0].hidden.clone()));
    states
}

#[test]
fn hidden_states_span_an_episode_or_an_encounter() {
    let is_zero = |state: &[f32]| state.iter().all(|value| *value == 0.0);
    let starts = |states: &[Vec<f32>]| -> Vec<bool> { states.iter().map(|state| is_zero(state)).collect() };
    let every_third: Vec<bool> = (0..12).map(|step| step % 3 == 0).collect();
    let only_first: Vec<bool> = (0..12).map(|step| step == 0).collect();
    assert_eq!(starts(&hidden_states::<LiamNet>("liam", |_| {})), every_third);
    assert_eq!(starts(&hidden_states::<LiamNet>("liamx", |_| {})), only_first);
    assert_eq!(starts(&hidden_states::<GeneralistNet>("generalist", |_| {})), only_first);
    // A cleared context equals that of a first encounter.
    let net_and_state = |seed| {
        let game = open(&GAMES[0]);
        let config = small(GAMES[0].id, "liamx", |_| {});
        let net = LiamNet::new(game.spec(), &game.pool(Split::Train), &config);
        let mut state = net.new_state(1, None);
        state.lanes[0].hidden.fill(seed);
        net.clear_context(&mut state, 0);
        state.lanes[0].hidden.clone()
    };
    assert!(is_zero(&net_and_state(0.5)));
}

#[test]
fn rnn_sees_terminal_adds_a_step_at_the_end_of_an_episode() {
    let see = |config: &mut TrainConfig| config.rnn_sees_terminal = true;
    for method in ["generalist", "liamx"] {
        let states = |is_seen: bool| match (method, is_seen) {
            ("generalist", false) => hidden_states::<GeneralistNet>(method, |_| {}),
            ("generalist", true) => hidden_states::<GeneralistNet>(method, see),
            (_, false) => hidden_states::<LiamNet>(method, |_| {}),
            (_, true) => hidden_states::<LiamNet>(method, see),
        };
        let (blind, seeing) = (states(false), states(true));
        assert_eq!(blind[..3], seeing[..3], "{method}: before the end of the first episode");
        assert_ne!(blind[3], seeing[3], "{method}");
    }
    // It has no effect if the hidden state ends with the episode.
    assert_eq!(hidden_states::<LiamNet>("liam", |_| {}), hidden_states::<LiamNet>("liam", see));
}

#[test]
fn chunks_start_from_the_states_of_the_rollout() {
    let entry = &GAMES[0];
    let game = open(entry);
    let pool = game.pool(Split::Train);
    let config = small(entry.id, "liamx", |config| config.bptt_steps = 7);
    let mut ppo = Ppo::<LiamNet>::new(&*game, &pool, &config, 1, 1).expect("good keys");
    let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
    let batch: Batch = ppo.play(&at).expect("finite weights");
    let segments = ppo.learner.net.segments(&batch);
    assert_eq!(batch.saved_states.len(), segments.len() * config.hidden_width);
    for (segment, state) in segments.iter().zip(batch.saved_states.chunks_exact(config.hidden_width)) {
        let is_first = (0..batch.n_encounters())
            .any(|encounter| batch.decisions(encounter).start == segment.decisions.start);
        assert_eq!(state.iter().all(|value| *value == 0.0), is_first);
    }
    let n_peers = game.spec().n_peers();
    assert_eq!(batch.peer_actions.len(), batch.n_decisions() * n_peers);
    assert_eq!(batch.peer_observations.len(), batch.n_decisions() * n_peers * game.spec().observation_size);
}

#[test]
fn unsupported_keys_are_refused() {
    let game = open(&GAMES[0]);
    let pool = game.pool(Split::Train);
    let refused = |method: &str, key: &str, change: &dyn Fn(&mut TrainConfig)| {
        let config = small(GAMES[0].id, method, change);
        let inputs = MethodInputs { game: &*game, pool: &pool, config: &config, needed: None };
        let result = find_method(method).expect("a method").begin(&inputs, 1, 1);
        let error = result.map(drop).expect_err("an unsupported key").to_string();
        assert!(error.contains(key), "{error}");
    };
    use crate::config::{ContextAction, MinibatchUnit};
    for method in ["lili", "generalist", "liam", "liamx"] {
        refused(method, "exploration_weight", &|config| config.exploration_weight = 0.1);
        refused(method, "warm_up_steps", &|config| config.warm_up_steps = 1);
        refused(method, "canonical_frame", &|config| config.canonical_frame = true);
    }
    refused("gscu", "rollout_steps", &|config| config.rollout_steps = 9);
    refused("pace", "canonical_frame", &|config| config.canonical_frame = true);
    refused("pace", "minibatch_unit", &|config| config.minibatch_unit = MinibatchUnit::Chunks);
    refused("lili", "minibatch_unit", &|config| config.minibatch_unit = MinibatchUnit::Chunks);
    refused("lili", "context_action", &|config| config.context_action = ContextAction::Peer);
    refused("liam", "minibatch_unit", &|config| config.minibatch_unit = MinibatchUnit::Steps);
}
