//! Tests of GSCU: two stages in one run, and a conservative policy to fall back on in play.

use pace_games::{Action, ConfigError, Ego, GAMES, GameEntry, Preset, Split, find_game};
use pace_learn::config::{Bandit, ConservativeMemory, GscuConfig, PolicyNetwork, Span};
use pace_learn::{
    AdaptConfig, Agent, EncounterOutcome, MODEL_FILE, Method, Policy, TrainConfig, TrainError, Trainer,
    adapt, find_method,
};

use crate::doctored::Doctored;
use crate::{open, tiny, tiny_trainer};

fn gscu() -> &'static Method {
    find_method("gscu").expect("a method")
}

fn model(trainer: &Trainer) -> Vec<u8> {
    trainer.save().into_iter().find(|(name, _)| *name == MODEL_FILE).expect("a model").1
}

/// A trained GSCU agent that always plays its conservative policy: the given one, or else that of the preset.
fn always_conservative(entry: &GameEntry, conservative: Option<&Policy>) -> Agent {
    always_conservative_with(entry, conservative, |_| {})
}

/// Like [`always_conservative`], but with other keys in play.
fn always_conservative_with(
    entry: &GameEntry,
    conservative: Option<&Policy>,
    change: impl Fn(&mut GscuConfig),
) -> Agent {
    let preset = Preset::Paper;
    let mut config = tiny(entry, preset, gscu());
    let mut trainer = tiny_trainer(gscu(), entry, preset, &config, 1);
    (0..3).for_each(|_| drop(trainer.iterate().expect("a finite run")));
    let keys = config.gscu.as_mut().expect("keys");
    keys.bandit = Bandit::Conservative;
    change(keys);
    if conservative.is_some() {
        keys.conservative = "run".to_owned();
    }
    let game = open(entry, preset, 3);
    Agent::with_needed(gscu(), &*game, &config, conservative, &model(&trainer)).expect("its own file")
}

fn play_test_pool(agent: &Agent, entry: &GameEntry) -> Vec<EncounterOutcome> {
    let config = AdaptConfig::new(Split::Test, 2, 4, 3);
    adapt(agent, &*open(entry, Preset::Paper, 3), &config, 1).expect("a pool")
}

#[test]
fn a_run_is_an_embedding_and_then_a_policy() {
    for entry in GAMES {
        let config = tiny(entry, Preset::Paper, gscu());
        let mut trainer = tiny_trainer(gscu(), entry, Preset::Paper, &config, 1);
        let rows: Vec<_> = (0..4).map(|_| trainer.iterate().expect("a finite run").metrics).collect();
        for (index, row) in rows.iter().enumerate() {
            let is_first = index < 2;
            assert_eq!(row.contains_key("embedding/cross_entropy"), is_first, "{}: {row:?}", entry.id);
            assert_eq!(row.contains_key("losses/policy_loss"), !is_first, "{}: {row:?}", entry.id);
            assert!(!row.keys().any(|name| name.starts_with("adapt/") || name.starts_with("explore/")));
        }
        assert!(rows[1]["embedding/cross_entropy"] < rows[0]["embedding/cross_entropy"] + 0.1, "{rows:?}");
    }
}

#[test]
fn the_second_stage_is_the_last() {
    let entry = find_game("overcooked").expect("a game");
    let mut config = tiny(entry, Preset::Paper, gscu());
    let keys = config.gscu.as_mut().expect("keys");
    // 8640 steps in a chunk, so that a second one would just exceed the budget; the second stage's batches are smaller.
    (keys.embedding_encounters_per_tuple, keys.embedding_epochs, keys.embedding_steps) = (4, 1, 17_279);
    let trainer = || tiny_trainer(gscu(), entry, Preset::Paper, &config, 1);
    let mut first = trainer();
    assert!(first.iterate().expect("a finite run").metrics.contains_key("embedding/cross_entropy"));
    assert_eq!(first.steps(), 8640);
    first.iterate().expect("a finite run");
    let files = first.save();
    let mut second = trainer();
    second.restore(|name| Some(files.iter().find(|(other, _)| *other == name)?.1.clone())).expect("its own");
    for trainer in [&mut first, &mut second] {
        assert!(trainer.iterate().expect("a finite run").metrics.contains_key("losses/policy_loss"));
    }
}

#[test]
fn the_second_stage_does_not_change_the_embedding() {
    let entry = find_game("kuhn-poker").expect("a game");
    let config = tiny(entry, Preset::Paper, gscu());
    let mut trainer = tiny_trainer(gscu(), entry, Preset::Paper, &config, 1);
    (0..2).for_each(|_| drop(trainer.iterate().expect("a finite run")));
    let before = model(&trainer);
    trainer.iterate().expect("a finite run");
    let tensors = |model: &[u8], prefix: &str| {
        let mut filled = model.to_vec();
        // All other tensors are set to 0, so that only these are compared.
        for other in ["actor.", "critic.", "embedding."].into_iter().filter(|other| *other != prefix) {
            crate::weights::fill(&mut filled, other, 0.0);
        }
        filled
    };
    let after = model(&trainer);
    assert!(tensors(&before, "embedding.") == tensors(&after, "embedding."));
    assert!(tensors(&before, "actor.") != tensors(&after, "actor."));
    assert!(tensors(&before, "critic.") != tensors(&after, "critic."));
}

#[test]
fn the_equilibrium_policy_loses_an_eighteenth_per_hand() {
    let entry = find_game("kuhn-poker").expect("a game");
    for outcome in play_test_pool(&always_conservative(entry, None), entry) {
        for episode in outcome.episodes {
            let value = episode.expected_return.expect("a closed form");
            assert!((value + 1.0 / 18.0).abs() < 1e-6, "{value}");
        }
    }
}

#[test]
fn the_bandit_plays_both_policies() {
    let entry = find_game("kuhn-poker").expect("a game");
    let config = tiny(entry, Preset::Paper, gscu());
    let trainer = tiny_trainer(gscu(), entry, Preset::Paper, &config, 1);
    let outcomes = play_test_pool(&trainer.agent(), entry);
    let values = outcomes.iter().flat_map(|outcome| &outcome.episodes).filter_map(|one| one.expected_return);
    let (mut n_conservative, mut n) = (0, 0);
    for value in values {
        n_conservative += usize::from((value + 1.0 / 18.0).abs() < 1e-6);
        n += 1;
    }
    // The expected number is about half of 80 episodes.
    assert!((20..=60).contains(&n_conservative) && n == 80, "{n_conservative} of {n}");
}

#[test]
fn an_agent_as_conservative_policy_plays_as_it_does_alone() {
    for entry in GAMES {
        let generalist = find_method("generalist").expect("a method");
        let config = TrainConfig { learning_rate: 0.01, ..tiny(entry, Preset::Paper, generalist) };
        let mut trainer = tiny_trainer(generalist, entry, Preset::Paper, &config, 1);
        trainer.iterate().expect("a finite run");
        let agent = trainer.agent();
        let (own, followed) = (
            play_test_pool(&agent, entry),
            play_test_pool(
                &always_conservative(entry, Some(&Policy::of(&agent).expect("no canonical frame"))),
                entry,
            ),
        );
        assert_eq!(own.len(), followed.len());
        for (one, other) in own.iter().zip(&followed) {
            assert_eq!(one.episodes, other.episodes, "{}", entry.id);
        }
    }
}

#[test]
fn a_conservative_policy_can_forget_every_episode() {
    for entry in GAMES {
        let generalist = find_method("generalist").expect("a method");
        let config = TrainConfig { learning_rate: 0.01, ..tiny(entry, Preset::Paper, generalist) };
        let mut trainer = tiny_trainer(generalist, entry, Preset::Paper, &config, 1);
        trainer.iterate().expect("a finite run");
        let game = open(entry, Preset::Paper, 3);
        // The same weights with a hidden state that ends with the episode.
        let forgetting = TrainConfig { hidden_state_span: Span::Episode, ..config };
        let forgetting =
            Agent::from_bytes(generalist, &*game, &forgetting, &model(&trainer)).expect("its own");
        let policy = Policy::of(&trainer.agent()).expect("no canonical frame");
        let followed = |memory: ConservativeMemory| {
            let change = |keys: &mut GscuConfig| keys.conservative_memory = memory;
            let outcomes = play_test_pool(&always_conservative_with(entry, Some(&policy), change), entry);
            outcomes.into_iter().map(|outcome| outcome.episodes).collect::<Vec<_>>()
        };
        let own: Vec<_> = play_test_pool(&forgetting, entry).into_iter().map(|one| one.episodes).collect();
        assert!(own == followed(ConservativeMemory::Episode), "{}", entry.id);
        assert!(own != followed(ConservativeMemory::Encounter), "{}", entry.id);
    }
}

#[test]
fn an_unavailable_conservative_policy_is_refused() {
    let refused = |id: &str, conservative: &str, word: &str| {
        let entry = find_game(id).expect("a game");
        let mut config = tiny(entry, Preset::Paper, gscu());
        config.gscu.as_mut().expect("keys").conservative = conservative.to_owned();
        let game = open(entry, Preset::Paper, 3);
        let error = Trainer::new(gscu(), game, config, 7, 1).err().expect("refused").to_string();
        assert!(error.contains(word), "{error}");
    };
    refused("overcooked", "run", "gscu.conservative_run");
    refused("kuhn-poker", "unknown", "known: oracle");
    // An ego with a memory, and a privileged one.
    refused("kuhn-poker", "bayes", "known: static, nash, random");
    refused("kuhn-poker", "oracle", "known: static, nash, random");
}

#[test]
fn reference_is_the_authors_program_in_predator_prey() {
    let entry = find_game("predator-prey").expect("a game");
    let config = tiny(entry, Preset::Reference, gscu());
    assert_eq!(config.gscu.as_ref().expect("keys").network, PolicyNetwork::Lstm);
    let mut trainer = tiny_trainer(gscu(), entry, Preset::Reference, &config, 2);
    let rows: Vec<_> = (0..4).map(|_| trainer.iterate().expect("a finite run").metrics).collect();
    // Labels of zero are learned at once.
    assert!(rows[1]["embedding/accuracy"] > 0.99, "{rows:?}");
    assert!(rows[3]["losses/policy_loss"].is_finite() && rows[3]["losses/entropy_coef"] == 0.0, "{rows:?}");
    let outcomes = adapt(
        &trainer.agent(),
        &*open(entry, Preset::Reference, 3),
        &AdaptConfig::new(Split::Test, 1, 2, 3),
        2,
    );
    assert_eq!(outcomes.expect("a pool").len(), 24);
}

#[test]
fn updates_at_once_need_a_window() {
    let entry = find_game("overcooked").expect("a game");
    let mut config = tiny(entry, Preset::Reference, gscu());
    config.gscu.as_mut().expect("keys").belief_window = 0;
    let error = Trainer::new(gscu(), open(entry, Preset::Reference, 3), config, 7, 1).err();
    let error = error.expect("refused").to_string();
    assert!(error.contains("gscu.belief_window"), "{error}");
}

#[test]
fn a_greedy_run_needs_nobody_to_fall_back_on() {
    let entry = find_game("kuhn-poker").expect("a game");
    let mut config = tiny(entry, Preset::Reference, gscu());
    let keys = config.gscu.as_mut().expect("keys");
    // M9: the authors' tester is always greedy.
    assert_eq!(keys.bandit, Bandit::Greedy);
    keys.conservative = "run".to_owned();
    let trainer = tiny_trainer(gscu(), entry, Preset::Reference, &config, 1);
    for outcome in play_test_pool(&trainer.agent(), entry) {
        let values = outcome.episodes.iter().filter_map(|episode| episode.expected_return);
        assert!(values.into_iter().all(|value| (value + 1.0 / 18.0).abs() > 1e-6));
    }
}

/// Its probabilities are not numbers.
struct NotANumber;

impl Ego for NotANumber {
    fn begin_encounter(&mut self) {}

    fn action_probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
        probabilities.fill(f32::NAN);
    }

    fn record_action(&mut self, _observation: &[f32], _action: Action) {}

    fn end_episode(&mut self, _terminal_observation: &[f32]) {}

    fn is_memoryless(&self) -> bool {
        true
    }
}

#[test]
fn a_scripted_policy_with_non_finite_output_is_refused_in_training_and_adaptation() {
    for entry in GAMES {
        let preset = Preset::Paper;
        let doctored =
            || Doctored { fixed: Some(|| Box::new(NotANumber)), ..Doctored::new(open(entry, preset, 3)) };
        // The first stage lets it play and watches.
        let config = tiny(entry, preset, gscu());
        let mut trainer = Trainer::new(gscu(), Box::new(doctored()), config, 7, 2).expect("good keys");
        let error = trainer.iterate().expect_err("not a distribution");
        assert!(matches!(error, TrainError::NotFinite { iteration: 0, .. }), "{}: {error}", entry.id);
        // Online, the agent falls back on it.
        let policy = Policy::scripted(&doctored(), "random").expect("the ego without a memory");
        let agent = always_conservative(entry, Some(&policy));
        let config = AdaptConfig::new(Split::Test, 1, 2, 3);
        let error = adapt(&agent, &*open(entry, preset, 3), &config, 2).expect_err("not a distribution");
        assert!(matches!(error, ConfigError::NotADistribution { .. }), "{}: {error}", entry.id);
    }
}
