//! Tests of adaptation with a switch of the peers, change detectors, limited contexts, scores and latents.

use pace_games::{AnyGame, EpisodeOutcome, GAMES, Metric, Preset, Split, find_game};
use pace_learn::{
    AdaptConfig, Agent, ClearKeeps, Detector, EncounterOutcome, Switch, TrainConfig, Trainer, Verdict, adapt,
};
use serde_json::{Map, json};

use crate::agents::{agent, play_alone};
use crate::{pace, tiny};

const DROP: Detector = Detector::Drop { share: 0.8 };

fn switched(split: Split) -> AdaptConfig {
    AdaptConfig { switch: Some(Switch { after: 3 }), ..AdaptConfig::new(split, 2, 6, 5) }
}

fn without_value(episodes: &[EpisodeOutcome]) -> Vec<EpisodeOutcome> {
    episodes.iter().map(|episode| EpisodeOutcome { expected_return: None, ..*episode }).collect()
}

fn play(agent: &Agent, game: &dyn AnyGame, config: &AdaptConfig) -> Vec<EncounterOutcome> {
    adapt(agent, game, config, 2).expect("a pool")
}

#[test]
fn the_next_tuple_replaces_the_first_and_the_context_is_kept() {
    for entry in GAMES {
        for preset in [Preset::Paper, Preset::Reference] {
            let (agent, _, game, _) = agent(pace(), entry, preset);
            let config = switched(Split::Test);
            let n_tuples = game.n_tuples(Split::Test);
            for outcome in play(&agent, &*game, &config) {
                assert_eq!(outcome.successor, Some((outcome.tuple + 1) % n_tuples));
                assert_eq!(outcome.tuple_in(2, config.switch), outcome.tuple);
                assert_eq!(outcome.tuple_in(3, config.switch), (outcome.tuple + 1) % n_tuples);
                // An encounter played step by step has no detector and keeps the whole context.
                let (alone, _) = play_alone(&agent, &*game, &config, outcome.tuple, outcome.pass);
                assert_eq!(alone.guesses, outcome.guesses, "{}", entry.id);
                assert_eq!(alone.episodes, without_value(&outcome.episodes), "{}", entry.id);
                assert!(outcome.alarms.is_empty());
            }
        }
    }
}

#[test]
fn episodes_before_the_switch_equal_those_without_one() {
    for entry in GAMES {
        let (agent, _, game, _) = agent(pace(), entry, Preset::Paper);
        let plain = play(&agent, &*game, &AdaptConfig::new(Split::Test, 2, 3, 5));
        for (plain, switched) in plain.iter().zip(play(&agent, &*game, &switched(Split::Test))) {
            assert_eq!(plain.episodes, switched.episodes[..3], "{}", entry.id);
            assert_eq!(switched.episodes.len(), 6);
        }
    }
}

#[test]
fn the_informed_detector_empties_the_context_at_the_switch() {
    for entry in GAMES {
        let (agent, _, game, _) = agent(pace(), entry, Preset::Paper);
        let informed = AdaptConfig { detector: Detector::Known, ..switched(Split::Test) };
        let fresh = &play(&agent, &*game, &AdaptConfig::new(Split::Test, 1, 1, 5))[0];
        let mut n_different = 0;
        let uninformed = play(&agent, &*game, &switched(Split::Test));
        for (outcome, uninformed) in play(&agent, &*game, &informed).iter().zip(&uninformed) {
            let verdicts: Vec<_> =
                outcome.alarms.iter().map(|alarm| (alarm.after_episode, alarm.verdict)).collect();
            assert_eq!(verdicts, [(3, Verdict::Detection)], "{}", entry.id);
            // With an empty context the confidence does not depend on the peers.
            assert_eq!(outcome.confidence[3], outcome.confidence[0], "{}", entry.id);
            assert_eq!(outcome.confidence[3], fresh.confidence[0], "{}", entry.id);
            assert_eq!(outcome.episodes[..3], uninformed.episodes[..3]);
            n_different += usize::from(outcome.confidence[3] != uninformed.confidence[3]);
        }
        assert!(n_different > 0, "{}: the context has an effect", entry.id);
    }
}

/// The episodes after which `drop:0.8` gives an alarm, computed from the scores of the finished episodes in the context.
fn drops(outcome: &EncounterOutcome, metric: Metric, n_context: usize, keeps: ClearKeeps) -> Vec<usize> {
    let mut context: Vec<f64> = Vec::new();
    let mut found = Vec::new();
    for (index, episode) in without_value(&outcome.episodes).iter().enumerate() {
        let score = episode.score(metric);
        context.push(score);
        if context.len() == n_context {
            context.remove(0);
        }
        let high = context.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = context.iter().copied().fold(f64::INFINITY, f64::min);
        if context.len() > 1 && score < low + 0.8 * (high - low) {
            found.push(index + 1);
            context = if keeps == ClearKeeps::Last { vec![score] } else { vec![] };
        }
    }
    found
}

#[test]
fn alarms_follow_from_the_scores_and_clear_the_context() {
    for entry in GAMES {
        let (agent, _, game, _) = agent(pace(), entry, Preset::Paper);
        for (keeps, n_context) in [(ClearKeeps::Last, 4), (ClearKeeps::Nothing, 4), (ClearKeeps::Last, 3)] {
            let base = AdaptConfig {
                episodes: 9,
                context_episodes: Some(n_context),
                switch: Some(Switch { after: 4 }),
                ..switched(Split::Train)
            };
            let config = AdaptConfig { detector: DROP, keep_on_clear: keeps, ..base.clone() };
            let mut n_alarms = 0;
            let without = play(&agent, &*game, &base);
            for (outcome, without) in play(&agent, &*game, &config).iter().zip(&without) {
                let found: Vec<usize> = outcome.alarms.iter().map(|alarm| alarm.after_episode).collect();
                assert_eq!(found, drops(outcome, game.spec().metric, n_context, keeps), "{}", entry.id);
                for (index, alarm) in outcome.alarms.iter().enumerate() {
                    let is_first = outcome.alarms[..index].iter().all(|earlier| earlier.after_episode <= 4);
                    let expected = match (alarm.after_episode > 4, is_first) {
                        (false, _) => Verdict::FalseAlarm,
                        (true, true) => Verdict::Detection,
                        (true, false) => Verdict::Repeated,
                    };
                    assert_eq!(alarm.verdict, expected, "{}: {alarm:?}", entry.id);
                }
                // The detector has no effect before the first alarm; a cleared context equals an initial one.
                let first = found.first().copied().unwrap_or(9);
                assert_eq!(outcome.episodes[..first], without.episodes[..first], "{}", entry.id);
                if first < 9 && keeps == ClearKeeps::Nothing {
                    assert_eq!(outcome.confidence[first], outcome.confidence[0], "{}", entry.id);
                } else if first < 9 {
                    assert_ne!(outcome.confidence[first], outcome.confidence[0], "{}", entry.id);
                }
                n_alarms += found.len();
            }
            // In PO-Overcooked there is no success after three iterations, so there is no alarm.
            assert!(n_alarms > 0 || game.spec().metric == Metric::Success, "{}", entry.id);
        }
    }
}

#[test]
fn a_switch_does_not_depend_on_the_number_of_threads() {
    for entry in GAMES {
        let (agent, _, game, _) = agent(pace(), entry, Preset::Paper);
        for detector in [Detector::None, DROP, Detector::Known] {
            let config = AdaptConfig {
                encounters_per_tuple: 4,
                context_episodes: Some(4),
                detector,
                keep_latents: true,
                ..switched(Split::Train)
            };
            let one = adapt(&agent, &*game, &config, 1).expect("a pool");
            for n_threads in [2, 3] {
                assert!(one == adapt(&agent, &*game, &config, n_threads).expect("a pool"), "{n_threads}");
            }
        }
    }
}

#[test]
fn random_events_do_not_depend_on_the_detector() {
    for entry in GAMES {
        let (_, train_config, game, mut model) = agent(pace(), entry, Preset::Paper);
        // With zero weights the policy does not depend on the context, so that only random events could differ.
        let start = 8 + u64::from_le_bytes(model[..8].try_into().expect("eight bytes")) as usize;
        model[start..].fill(0);
        let blank = Agent::from_bytes(pace(), &*game, &train_config, &model).expect("its own shapes");
        let config = AdaptConfig { context_episodes: Some(3), ..switched(Split::Test) };
        let expected = play(&blank, &*game, &config);
        for detector in [DROP, Detector::Known] {
            let found = play(&blank, &*game, &AdaptConfig { detector, ..config.clone() });
            for (expected, found) in expected.iter().zip(&found) {
                assert_eq!(expected.episodes, found.episodes, "{} {}", entry.id, detector);
            }
        }
    }
}

#[test]
fn a_large_window_has_no_effect_and_a_small_one_drops_episodes() {
    for entry in GAMES {
        let (agent, _, game, _) = agent(pace(), entry, Preset::Paper);
        let whole = AdaptConfig::new(Split::Test, 2, 6, 5);
        let window = |n| play(&agent, &*game, &AdaptConfig { context_episodes: Some(n), ..whole.clone() });
        let all = play(&agent, &*game, &whole);
        assert!(all == window(6) && all == window(100), "{}", entry.id);
        let three = window(3);
        assert!(all != three, "{}", entry.id);
        for (all, three) in all.iter().zip(&three) {
            // The first three episodes are all in the window.
            assert_eq!(all.episodes[..3], three.episodes[..3], "{}", entry.id);
        }
    }
}

#[test]
fn impossible_switches_are_refused() {
    let (agent, _, game, _) = agent(pace(), find_game("kuhn-poker").expect("a game"), Preset::Paper);
    for after in [0, 6, 7] {
        let config = AdaptConfig { switch: Some(Switch { after }), ..switched(Split::Test) };
        let error = adapt(&agent, &*game, &config, 1).expect_err("no such switch").to_string();
        assert!(error.contains(&format!("found {after}")) && error.contains("from 1 to 5"), "{error}");
    }
    let error = adapt(&agent, &*game, &switched(Split::Uniform(1)), 1).expect_err("no other tuple");
    assert!(error.to_string().contains("two tuples"), "{error}");
}

#[test]
fn guesses_are_scored_at_every_decision_and_latents_are_kept() {
    for entry in GAMES {
        let (agent, _, game, _) = agent(pace(), entry, Preset::Paper);
        let classes: Vec<Vec<usize>> =
            game.pool(Split::Train).tuples.into_iter().map(|tuple| tuple.classes).collect();
        let config =
            AdaptConfig { classes: Some(classes.clone()), keep_latents: true, ..switched(Split::Train) };
        for outcome in play(&agent, &*game, &config) {
            let n_decisions: usize = outcome.episodes.iter().map(|episode| episode.n_steps).sum();
            assert_eq!(outcome.identified.len(), n_decisions, "{}", entry.id);
            let mut decision = 0;
            for (index, episode) in outcome.episodes.iter().enumerate() {
                let truth = &classes[outcome.tuple_in(index, config.switch)];
                let correct =
                    outcome.guesses[index].iter().zip(truth).filter(|(guess, class)| guess == class);
                let share = correct.count() as f32 / truth.len() as f32;
                let score = outcome.identified[decision];
                assert!((score.accuracy - share).abs() < 1e-6, "{}", entry.id);
                assert!((0.0..=outcome.confidence[index] + 1e-6).contains(&score.posterior), "{}", entry.id);
                decision += episode.n_steps;
            }
            if outcome.pass > 0 {
                assert!(outcome.latents.is_empty());
                continue;
            }
            let (_, inferences) = play_alone(&agent, &*game, &config, outcome.tuple, 0);
            let expected: Vec<f32> = inferences.into_iter().flat_map(|inference| inference.latent).collect();
            assert_eq!(outcome.latents.len(), n_decisions * agent.latent_width());
            for (found, expected) in outcome.latents.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-5, "{}: {found} {expected}", entry.id);
            }
        }
    }
}

#[test]
fn an_agent_of_five_peers_meets_three() {
    let entry = find_game("predator-prey").expect("a game");
    let open = |keys: serde_json::Value| {
        let keys: Map<_, _> = keys.as_object().expect("keys").clone();
        entry.open(Preset::Paper, &keys).expect("good keys")
    };
    let five = || open(json!({ "n_peers": 5, "episodes_per_encounter": 2 }));
    let method = pace();
    let config = TrainConfig { learning_rate: 0.01, ..tiny(entry, Preset::Paper, method) };
    let mut trainer = Trainer::new(pace(), five(), config, 7, 2).expect("good keys");
    trainer.iterate().expect("a finite run");
    trainer.iterate().expect("a finite run");
    let agent = trainer.agent();
    let three = open(json!({ "n_peers": 3, "observation_slots": 5, "episodes_per_encounter": 2 }));
    assert_eq!((three.spec().n_peers(), agent.shape()), (3, (47, 5)));
    let outcomes = play(&agent, &*three, &AdaptConfig::new(Split::Test, 1, 2, 1));
    assert_eq!(outcomes.len(), 24);
    // The identifier still predicts five peers.
    assert!(outcomes.iter().all(|outcome| outcome.guesses[0].len() == 5));
    assert!(outcomes.iter().all(|outcome| outcome.episodes.iter().all(|episode| episode.task_return < 0.0)));
}
