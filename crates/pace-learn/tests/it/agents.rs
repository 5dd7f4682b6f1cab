//! Tests of trained agents: equality of the trainer's agent and a loaded one, of one encounter and a batch of them.

use pace_games::{
    AnyEncounter, AnyGame, Boundary, Ego, EpisodeOutcome, GAMES, Inference, NO_ACTIONS, PeerStepBuffers,
    Preset, Seat, Seed, Split, StepBuffers, StepFeedback, Symmetries, SymmetryTransform, find_game,
    sample_action,
};
use pace_learn::config::ContextAction;
use pace_learn::{
    AdaptConfig, Agent, Detector, EncounterOutcome, METHODS, MODEL_FILE, Method, Policy, Switch, TrainConfig,
    Trainer, adapt,
};

use crate::doctored::Doctored;
use crate::{methods_and_presets, open, pace, tiny, tiny_trainer};

const N_EPISODES: usize = 6;

/// An agent after a few iterations, and its game.
pub fn agent(
    method: &Method,
    entry: &pace_games::GameEntry,
    preset: Preset,
) -> (Agent, TrainConfig, Box<dyn AnyGame>, Vec<u8>) {
    let config = TrainConfig { learning_rate: 0.01, ..tiny(entry, preset, method) };
    let mut trainer = tiny_trainer(method, entry, preset, &config, 2);
    for _ in 0..3 {
        trainer.iterate().expect("a finite run");
    }
    let files = trainer.save();
    let (_, model) = files.into_iter().find(|(name, _)| *name == MODEL_FILE).expect("a model");
    (trainer.agent(), config, open(entry, preset, 3), model)
}

/// Plays one encounter step by step with `Agent::encounter`; returns its outcome and every inference.
pub fn play_alone(
    agent: &Agent,
    game: &dyn AnyGame,
    adapt_config: &AdaptConfig,
    tuple: usize,
    pass: usize,
) -> (EncounterOutcome, Vec<Inference>) {
    let (size, n_peers) = (game.spec().observation_size, game.spec().n_peers());
    let seed = Seed::new(adapt_config.seed).child("encounter", &[tuple as u64, pass as u64]);
    let mut arena = game.arena(adapt_config.split, 1);
    let mut steps = StepBuffers::new(game.spec(), 1, agent.peer_observation_mode());
    let first_part = adapt_config.switch.map_or(adapt_config.episodes, |switch| switch.after);
    arena.begin(0, tuple, first_part, seed, steps.observation_mut(0));
    let mut rng = seed.stream("ego");
    let mut encounter = agent.encounter_seeded(seed);
    let mut inferences = Vec::new();
    let mut outcome = EncounterOutcome { tuple, pass, ..EncounterOutcome::default() };
    let mut current: Option<EpisodeOutcome> = None;
    while !arena.idle()[0] {
        let observation = steps.observations[..size].to_vec();
        let inference = encounter.infer(&observation);
        // An inference has no side effects.
        assert_eq!(encounter.infer(&observation), inference);
        let action = sample_action(&inference.probabilities, &mut rng).expect("finite weights");
        // Methods without an identifier have no guesses.
        if current.is_none() && !inference.posteriors.is_empty() {
            let best = |posterior: &Vec<f32>| {
                (0..posterior.len()).max_by(|one, other| posterior[*one].total_cmp(&posterior[*other]))
            };
            let guesses: Vec<usize> =
                inference.posteriors.iter().map(|posterior| best(posterior).expect("a class")).collect();
            let chosen =
                inference.posteriors.iter().zip(&guesses).map(|(posterior, guess)| posterior[*guess]);
            outcome.confidence.push(chosen.sum::<f32>() / n_peers as f32);
            outcome.guesses.push(guesses);
        }
        inferences.push(inference);
        encounter.record_action(&observation, action);
        arena.step(&[action], &mut steps.batch());
        let block = &steps;
        encounter.observe_feedback(&StepFeedback {
            peer_actions: &block.peer_actions,
            peer_observations: &block.peer_observations,
            task_reward: block.task_rewards[0],
        });
        let episode = current.get_or_insert(EpisodeOutcome {
            task_return: 0.0,
            expected_return: None,
            n_steps: 0,
            ending: pace_games::Ending::Finished,
            keypoint_visited: false,
        });
        episode.task_return += f64::from(block.task_rewards[0]);
        episode.n_steps += 1;
        episode.keypoint_visited |= block.keypoints_visited[0];
        if block.boundaries[0] != Boundary::WithinEpisode {
            episode.ending = block.endings[0].expect("an ending");
            encounter.end_episode(&block.terminal_observations[..size]);
            outcome.episodes.extend(current.take());
            if adapt_config.switch == Some(Switch { after: outcome.episodes.len() }) {
                let successor = Switch::successor(tuple, game.n_tuples(adapt_config.split));
                outcome.successor = Some(successor);
                arena.begin(
                    0,
                    successor,
                    adapt_config.episodes - first_part,
                    Switch::seed(seed),
                    steps.observation_mut(0),
                );
                rng = Switch::seed(seed).stream("ego");
            }
        }
    }
    (outcome, inferences)
}

fn adapt_config(split: Split) -> AdaptConfig {
    AdaptConfig::new(split, 3, N_EPISODES, 5)
}

#[test]
fn one_encounter_equals_the_same_encounter_in_a_batch() {
    for entry in GAMES {
        for (method, preset) in methods_and_presets() {
            let (agent, _, game, _) = agent(method, entry, preset);
            let adapt_config = adapt_config(Split::Test);
            let together = adapt(&agent, &*game, &adapt_config, 1).expect("a pool");
            let n_tuples = game.n_tuples(Split::Test);
            assert_eq!(together.len(), 3 * n_tuples);
            for (index, batched) in together.iter().enumerate() {
                let (tuple, pass) = (index % n_tuples, index / n_tuples);
                let (alone, inferences) = play_alone(&agent, &*game, &adapt_config, tuple, pass);
                let label = format!("{} {} {} encounter {index}", entry.id, method.id, preset.name());
                assert_eq!(alone.tuple, batched.tuple, "{label}");
                assert_eq!(alone.guesses, batched.guesses, "{label}");
                for (one, other) in alone.confidence.iter().zip(&batched.confidence) {
                    assert!((one - other).abs() < 1e-5, "{label}: {one} {other}");
                }
                let without_value =
                    |outcome: &EpisodeOutcome| EpisodeOutcome { expected_return: None, ..*outcome };
                let batched: Vec<EpisodeOutcome> = batched.episodes.iter().map(without_value).collect();
                assert_eq!(alone.episodes, batched, "{label}");
                assert_eq!(
                    inferences.len(),
                    batched.iter().map(|episode| episode.n_steps).sum::<usize>(),
                    "{label}"
                );
            }
        }
    }
}

#[test]
fn exact_values_follow_from_the_agents_probabilities() {
    for (entry, method) in GAMES.iter().flat_map(|entry| METHODS.iter().map(move |method| (entry, method))) {
        let (agent, _, game, _) = agent(method, entry, Preset::Paper);
        let points = game.decision_points();
        if points.is_empty() {
            continue;
        }
        let config = adapt_config(Split::Test);
        let n_tuples = game.n_tuples(Split::Test);
        for (index, outcome) in adapt(&agent, &*game, &config, 2).expect("a pool").iter().enumerate() {
            let path = [outcome.tuple as u64, (index / n_tuples) as u64];
            let seed = Seed::new(config.seed).child("encounter", &path);
            // In the first episode the context has only the steps before the point.
            let answers: Vec<f32> = points
                .iter()
                .flat_map(|point| {
                    let mut encounter = agent.encounter_seeded(seed);
                    for step in &point.earlier {
                        encounter.record_action(&step.observation, step.ego_action);
                    }
                    encounter.infer(&point.observation).probabilities
                })
                .collect();
            let exact = game.expected_return(Split::Test, outcome.tuple, &answers).expect("a tuple");
            let found = outcome.episodes[0].expected_return.expect("a closed form");
            assert!((exact - found).abs() < 1e-5, "{}: {exact} {found}", entry.id);
        }
    }
}

#[test]
fn exact_values_use_the_canonical_frame() {
    let entry = find_game("kuhn-poker").expect("a game");
    let n_numbers = open(entry, Preset::Paper, 3).spec().observation_size;
    // An ego that holds a jack first is on the second side. Its transform swaps queens and kings, and pass and bet.
    let [jack, queen, king] = [7, 8, 9];
    let swapped = |place: usize| match place {
        _ if place == queen => king,
        _ if place == king => queen,
        _ => place,
    };
    let classes = vec![(0..40).collect()];
    let sides = Symmetries {
        transforms: vec![
            SymmetryTransform {
                entries: (0..n_numbers).map(|place| (place, place == jack)).collect(),
                actions: vec![0, 1],
                classes: classes.clone(),
            },
            SymmetryTransform {
                entries: (0..n_numbers).map(|place| (swapped(place), false)).collect(),
                actions: vec![1, 0],
                classes,
            },
        ],
        canonical_if_positive: vec![jack],
    };
    let doctored = || Doctored { sides: Some(sides.clone()), ..Doctored::new(open(entry, Preset::Paper, 3)) };
    let config = TrainConfig {
        canonical_frame: true,
        context_action: ContextAction::Ego,
        learning_rate: 0.01,
        ..tiny(entry, Preset::Paper, pace())
    };
    let mut trainer = Trainer::new(pace(), Box::new(doctored()), config, 7, 2).expect("good keys");
    (0..3).for_each(|_| drop(trainer.iterate().expect("a finite run")));
    let (agent, game) = (trainer.agent(), doctored());
    let points = game.decision_points();
    let mut n_on_side = [0, 0];
    for outcome in adapt(&agent, &game, &AdaptConfig::new(Split::Test, 3, 1, SEED), 1).expect("a pool") {
        let first = first_observation(&game, outcome.tuple, outcome.pass);
        n_on_side[sides.canonical(&first)] += 1;
        let answers: Vec<f32> = points
            .iter()
            .flat_map(|point| {
                let mut encounter = agent.encounter();
                // The first observation of an encounter determines the side.
                encounter.infer(&first);
                for step in &point.earlier {
                    encounter.record_action(&step.observation, step.ego_action);
                }
                encounter.infer(&point.observation).probabilities
            })
            .collect();
        let exact = game.expected_return(Split::Test, outcome.tuple, &answers).expect("a tuple");
        let found = outcome.episodes[0].expected_return.expect("a closed form");
        assert!((exact - found).abs() < 1e-5, "tuple {}: {exact} {found}", outcome.tuple);
    }
    assert!(n_on_side.iter().all(|n| *n > 0), "{n_on_side:?}");
}

const SEED: u64 = 5;

/// The ego's first observation in the encounter that `adapt` plays with a tuple of the test pool.
fn first_observation(game: &dyn AnyGame, tuple: usize, pass: usize) -> Vec<f32> {
    let seed = Seed::new(SEED).child("encounter", &[tuple as u64, pass as u64]);
    observe(&*game.encounter(Split::Test, tuple, &[], 1, seed).expect("a tuple"))
}

/// The ego's current observation in an encounter.
fn observe(encounter: &dyn AnyEncounter) -> Vec<f32> {
    let mut observation = vec![0.0; encounter.spec().observation_size];
    encounter.observe(Seat::EGO, &mut observation);
    observation
}

#[test]
fn invalid_adaptation_settings_are_refused() {
    let (agent, _, game, _) = agent(pace(), find_game("kuhn-poker").expect("a game"), Preset::Paper);
    let good = AdaptConfig::new(Split::Test, 1, 2, 1);
    assert!(adapt(&agent, &*game, &good, 1).is_ok());
    let switch = |after: usize| Some(Switch { after });
    let many = usize::MAX;
    let bad = [
        ("encounters", AdaptConfig { encounters_per_tuple: 0, ..good.clone() }),
        ("encounters", AdaptConfig { encounters_per_tuple: many, ..good.clone() }),
        ("encounters", AdaptConfig { encounters_per_tuple: many / 2, split: Split::Train, ..good.clone() }),
        ("episodes", AdaptConfig { episodes: 0, ..good.clone() }),
        ("episodes", AdaptConfig { episodes: 0, switch: switch(1), ..good.clone() }),
        ("episodes", AdaptConfig { episodes: many, ..good.clone() }),
        ("context_episodes", AdaptConfig { context_episodes: Some(0), ..good.clone() }),
        ("context_episodes", AdaptConfig { context_episodes: Some(many), ..good.clone() }),
        ("switch_at", AdaptConfig { switch: switch(0), ..good.clone() }),
        ("switch_at", AdaptConfig { switch: switch(2), ..good.clone() }),
        ("switch_at", AdaptConfig { switch: switch(many), ..good.clone() }),
        ("detector", AdaptConfig { detector: Detector::Drop { share: f64::NAN }, ..good.clone() }),
        ("uniform:0", AdaptConfig { split: Split::Uniform(0), ..good.clone() }),
        ("uniform:", AdaptConfig { split: Split::Uniform(many), ..good.clone() }),
        ("classes", AdaptConfig { classes: Some(vec![]), ..good.clone() }),
        (
            "classes",
            AdaptConfig { classes: Some(vec![vec![many]; game.n_tuples(Split::Test)]), ..good.clone() },
        ),
    ];
    for (named, config) in bad {
        let error = adapt(&agent, &*game, &config, 2).expect_err(named).to_string();
        assert!(error.contains(named) && error.contains("expected"), "{config:?}: {error}");
    }
}

#[test]
fn a_loaded_agent_has_the_same_inferences() {
    for entry in GAMES {
        for (method, preset) in methods_and_presets() {
            let (agent, config, game, model) = agent(method, entry, preset);
            let loaded = Agent::from_bytes(method, &*game, &config, &model).expect("its own file");
            let adapt_config = adapt_config(Split::Test);
            for tuple in 0..game.n_tuples(Split::Test) {
                let play = |agent: &Agent| play_alone(agent, &*game, &adapt_config, tuple, 0);
                let (before, after) = (play(&agent), play(&loaded));
                assert_eq!(before.1, after.1, "{} {}", entry.id, preset.name());
                assert_eq!(before.0, after.0, "{} {}", entry.id, preset.name());
            }
            let wider = TrainConfig { hidden_width: 17, ..config.clone() };
            assert!(Agent::from_bytes(method, &*game, &wider, &model).is_err());
        }
    }
}

#[test]
fn a_temperature_changes_action_probabilities_only() {
    // The action probabilities of GSCU may be those of another policy.
    let methods = || METHODS.iter().filter(|method| method.id != "gscu");
    for (entry, method) in GAMES.iter().flat_map(|entry| methods().map(move |method| (entry, method))) {
        let (agent, config, game, model) = agent(method, entry, Preset::Paper);
        let config = TrainConfig { temperature: 0.5, ..config };
        let sharp = Agent::from_bytes(method, &*game, &config, &model).expect("its own file");
        let seed = Seed::new(1);
        let mut arena = game.arena(Split::Test, 1);
        let mut steps = StepBuffers::new(game.spec(), 1, agent.peer_observation_mode());
        arena.begin(0, 0, 1, seed, steps.observation_mut(0));
        let observation = steps.observations.to_vec();
        let [plain, sharp, again] = [&agent, &sharp, &agent.with_temperature(0.5)]
            .map(|agent| agent.encounter_seeded(seed).infer(&observation));
        assert_eq!(sharp, again);
        let squares: Vec<f32> = plain.probabilities.iter().map(|probability| probability.powi(2)).collect();
        let total: f32 = squares.iter().sum();
        for (found, square) in sharp.probabilities.iter().zip(&squares) {
            assert!((found - square / total).abs() < 1e-5, "{} {}: {sharp:?}", entry.id, method.id);
        }
        assert_ne!(plain.probabilities, sharp.probabilities);
        assert_eq!(Inference { probabilities: plain.probabilities.clone(), ..sharp }, plain);
    }
}

#[test]
fn agents_with_a_canonical_frame_are_equal_on_all_sides() {
    let entry = find_game("predator-prey").expect("a game");
    for canonical_frame in [true, false] {
        let mut config = tiny(entry, Preset::Best, pace());
        (config.learning_rate, config.canonical_frame) = (0.01, canonical_frame);
        let mut trainer = tiny_trainer(pace(), entry, Preset::Best, &config, 2);
        (0..3).for_each(|_| drop(trainer.iterate().expect("a finite run")));
        let (agent, game) = (trainer.agent(), open(entry, Preset::Best, 3));
        assert_eq!(
            Policy::of(&agent).is_err(),
            canonical_frame,
            "observations for a policy are not transformed"
        );
        let sides = game.pool(Split::Train).symmetries.expect("a square");
        // Inferences at six decisions and the end of an episode, as if the square had been rotated.
        let inferences_from = |transform: &SymmetryTransform| -> Vec<Inference> {
            let observe_rotated = |encounter: &dyn AnyEncounter| {
                let mut observation = Vec::new();
                transform.transform_observation(&observe(encounter), &mut observation);
                observation
            };
            let mut encounter = agent.encounter();
            let mut played = game.encounter(Split::Test, 0, &[], 2, Seed::new(4)).expect("a tuple");
            let mut unseen = PeerStepBuffers { observations: &mut [], actions: &mut [] };
            let mut inferences = Vec::new();
            for step in 0..6 {
                let observation = observe_rotated(&*played);
                inferences.push(encounter.infer(&observation));
                let action = step % 5;
                encounter.record_action(&observation, transform.transform_action(action));
                let mut chosen = NO_ACTIONS;
                chosen[Seat::EGO.0] = action;
                played.play(&chosen, &mut unseen);
            }
            encounter.end_episode(&observe_rotated(&*played));
            inferences.push(encounter.infer(&observe_rotated(&*played)));
            inferences
        };
        let near = |one: f32, other: f32| (one - other).abs() < 1e-5;
        let agree = |plain: &Inference, rotated: &Inference, transform: &SymmetryTransform| {
            let actions = (0..).zip(&plain.probabilities);
            let mut actions = actions.map(|(action, p)| {
                (p, rotated.probabilities[usize::from(transform.transform_action(action))])
            });
            let mut posteriors = plain.posteriors.iter().enumerate().flat_map(|(slot, posterior)| {
                let rotated = &rotated.posteriors[slot];
                posterior.iter().zip(&transform.classes[slot]).map(|(p, class)| (p, rotated[*class]))
            });
            near(plain.value, rotated.value)
                && actions.all(|(one, other)| near(*one, other))
                && posteriors.all(|(one, other)| near(*one, other))
        };
        let plain = inferences_from(&sides.transforms[0]);
        for transform in &sides.transforms[1..] {
            let rotated = inferences_from(transform);
            let are_equal = plain.iter().zip(&rotated).all(|(one, other)| agree(one, other, transform));
            assert_eq!(are_equal, canonical_frame);
        }
    }
}

#[test]
fn probabilities_and_posteriors_are_distributions() {
    for (entry, method) in GAMES.iter().flat_map(|entry| METHODS.iter().map(move |method| (entry, method))) {
        let (agent, _, game, _) = agent(method, entry, Preset::Paper);
        let pool = game.pool(Split::Train);
        let (_, inferences) = play_alone(&agent, &*game, &adapt_config(Split::Test), 0, 0);
        for inference in inferences {
            let is_distribution = |values: &[f32]| {
                (values.iter().sum::<f32>() - 1.0).abs() < 1e-5
                    && values.iter().all(|value| (0.0..=1.0).contains(value))
            };
            assert!(is_distribution(&inference.probabilities), "{inference:?}");
            assert_eq!(inference.probabilities.len(), game.spec().n_actions());
            assert!(inference.posteriors.iter().all(|posterior| is_distribution(posterior)), "{inference:?}");
            let lengths: Vec<usize> = inference.posteriors.iter().map(Vec::len).collect();
            let identifies = method.id.starts_with("pace");
            assert_eq!(lengths, if identifies { pool.n_classes.clone() } else { vec![] }, "{}", method.id);
            assert!(inference.value.is_finite() && !inference.latent.is_empty());
            assert!(!identifies || inference.latent.iter().all(|value| *value >= 0.0));
        }
    }
}

#[test]
fn adaptation_does_not_depend_on_threads_or_other_encounters() {
    for (entry, method) in GAMES.iter().flat_map(|entry| METHODS.iter().map(move |method| (entry, method))) {
        let (agent, _, game, _) = agent(method, entry, Preset::Paper);
        let splits = [Split::Test, Split::Train, Split::Uniform(70)];
        for split in splits.into_iter().take(if method.id == "pace" { 3 } else { 1 }) {
            let config = adapt_config(split);
            let one = adapt(&agent, &*game, &config, 1).expect("a pool");
            for n_threads in [2, 3] {
                assert!(one == adapt(&agent, &*game, &config, n_threads).expect("a pool"), "{n_threads}");
            }
            let fewer =
                adapt(&agent, &*game, &AdaptConfig { encounters_per_tuple: 1, ..config }, 1).expect("a pool");
            for (one, other) in one.iter().zip(&fewer) {
                let returns = |outcome: &EncounterOutcome| -> Vec<f64> {
                    outcome.episodes.iter().map(|episode| episode.task_return).collect()
                };
                assert_eq!(returns(one), returns(other), "{} {split:?}", entry.id);
            }
        }
    }
}
