//! Algorithm 2: a trained agent plays encounters with peers that it was not trained with, and adapts within each of them.

mod detector;
mod switch;

use pace_games::{
    AnyGame, Boundary, ConfigError, Ending, EpisodeOutcome, Metric, NO_ACTION, Seed, Split,
    SymmetryTransform, check_distribution,
};
use pace_nn::loss::softmax_rows;
use pace_nn::threads::for_each_shard;

use crate::agent::Agent;
use crate::network::{Actor, Decisions, PolicyOutputs};
use crate::policy::Policy;
use crate::policy_runner::{PolicyRunner, append_transformed};

use detector::DetectorState;
pub use detector::{Alarm, ClearKeeps, DETECTORS, Detector, DetectorEntry, Verdict};
pub use switch::Switch;

/// The settings of an evaluation: peers, encounters, context and detector.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptConfig {
    /// The part of the pool.
    pub split: Split,
    /// Encounters with each tuple.
    pub encounters_per_tuple: usize,
    /// The only tuple to play with; `None` for all. Its encounters are the same in both cases.
    pub only_tuple: Option<usize>,
    /// N_eps: episodes per encounter.
    pub episodes: usize,
    /// N_ctx: maximum number of episodes in the context, including the current one. `None` keeps the whole encounter.
    /// Ignored by recurrent methods: a hidden state cannot drop a single episode.
    pub context_episodes: Option<usize>,
    /// A replacement of the peers within each encounter, if any.
    pub switch: Option<Switch>,
    /// The rule that clears the context within an encounter.
    pub detector: Detector,
    /// Part of the context that is kept when it is cleared.
    pub keep_on_clear: ClearKeeps,
    /// The class of each peer of each tuple, if the identifier has these classes. Guesses are scored with them; the agent does
    /// not see them.
    pub classes: Option<Vec<Vec<usize>>>,
    /// Whether outcomes hold the latents of the first encounter with each tuple.
    pub keep_latents: bool,
    /// Random seed. Agents evaluated with the same seed face the same random events.
    pub seed: u64,
}

impl AdaptConfig {
    /// The default settings: no switch, no detector, and the whole encounter in the context.
    pub fn new(split: Split, encounters_per_tuple: usize, episodes: usize, seed: u64) -> AdaptConfig {
        AdaptConfig {
            split,
            encounters_per_tuple,
            only_tuple: None,
            episodes,
            context_episodes: None,
            switch: None,
            detector: Detector::None,
            keep_on_clear: ClearKeeps::Last,
            classes: None,
            keep_latents: false,
            seed,
        }
    }

    /// Refuses numbers without any encounter, or with too many.
    fn check(&self, n_tuples: usize) -> Result<(), ConfigError> {
        let check = |key: &str, found: usize, max: usize| {
            if (1..=max).contains(&found) {
                return Ok(());
            }
            Err(ConfigError::bad_value(key, &found, &format!("a number from 1 to {max}")))
        };
        // The text of a uniform sample with an invalid number of tuples cannot be parsed.
        self.split.to_string().parse::<Split>()?;
        if n_tuples == 0 {
            return Err(ConfigError::NoPeers { pool: self.split.to_string() });
        }
        check("encounters", self.encounters_per_tuple, MAX_ENCOUNTERS / n_tuples)?;
        check("episodes", self.episodes, MAX_EPISODES)?;
        check("context_episodes", self.context_episodes.unwrap_or(1), MAX_EPISODES)?;
        if let Detector::Drop { share } = self.detector
            && !(0.0..=1.0).contains(&share)
        {
            return Err(ConfigError::bad_value(
                "detector",
                &self.detector.to_string(),
                "drop:C with C from 0 to 1",
            ));
        }
        let Some(Switch { after }) = self.switch else { return Ok(()) };
        if !(1..self.episodes).contains(&after) {
            let expected =
                format!("a number from 1 to {}, below the episodes of an encounter", self.episodes - 1);
            return Err(ConfigError::bad_value("switch_at", &after, &expected));
        }
        if n_tuples < 2 {
            return Err(ConfigError::bad_value(
                "switch_at",
                &after,
                "a pool of two tuples or more to switch between",
            ));
        }
        Ok(())
    }

    /// Maximum number of episodes in the running context. A context that keeps its last episode must store its episodes
    /// separately, so it needs a maximum.
    fn window(&self) -> Option<usize> {
        self.context_episodes.or(self.detector.compares_episodes().then_some(self.episodes))
    }
}

/// The maximum number of encounters; more would take years.
const MAX_ENCOUNTERS: usize = 100_000_000;
/// The maximum number of episodes in an encounter, as in the keys of the games.
const MAX_EPISODES: usize = 10_000;

/// One encounter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncounterOutcome {
    /// The number of the tuple in its split.
    pub tuple: usize,
    /// The tuple that replaced it, if there was a switch.
    pub successor: Option<usize>,
    /// The number of the encounter among those with this tuple.
    pub pass: usize,
    /// The outcome of each episode.
    pub episodes: Vec<EpisodeOutcome>,
    /// The class with the highest posterior of each peer at the start of each episode, episode after episode. The true class is
    /// defined for training peers only. Empty if the method has no identifier.
    pub guesses: Vec<Vec<usize>>,
    /// The identifier's confidence in these guesses, averaged over peers.
    pub confidence: Vec<f32>,
    /// The scores of the identifier at every decision; empty if no class is known.
    pub identified: Vec<IdentificationScore>,
    /// The alarms of the detector.
    pub alarms: Vec<Alarm>,
    /// The latent of every decision, one after the other; empty unless asked for.
    pub latents: Vec<f32>,
}

/// The scores of the identifier at one decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdentificationScore {
    /// The share of peers whose guessed class is right.
    pub accuracy: f32,
    /// The probability of the true class, averaged over peers.
    pub posterior: f32,
}

impl EncounterOutcome {
    /// The tuple of peers in an episode, counted from 0.
    pub fn tuple_in(&self, episode: usize, switch: Option<Switch>) -> usize {
        match (switch, self.successor) {
            (Some(Switch { after }), Some(successor)) if episode >= after => successor,
            _ => self.tuple,
        }
    }
}

/// Number of encounters in a shard: few enough to balance threads, enough for fast matrix products.
const LANES_PER_SHARD: usize = 64;

/// Plays all encounters. The result does not depend on the number of threads. Returns an error for invalid numbers in `config`
/// and for an agent whose output is not a distribution over actions.
///
/// # Panics
/// If the game's observations or actions are not those that the agent was trained with.
pub fn adapt(
    agent: &Agent,
    game: &dyn AnyGame,
    config: &AdaptConfig,
    n_threads: usize,
) -> Result<Vec<EncounterOutcome>, ConfigError> {
    let shape = (game.spec().observation_size, game.spec().n_actions());
    assert_eq!(shape, agent.shape(), "observation size and number of actions");
    let n_tuples = game.n_tuples(config.split);
    config.check(n_tuples)?;
    let is_asked = |encounter: &usize| config.only_tuple.is_none_or(|tuple| encounter % n_tuples == tuple);
    let encounters: Vec<usize> = (0..n_tuples * config.encounters_per_tuple).filter(is_asked).collect();
    let mut shards: Vec<_> =
        encounters.chunks(LANES_PER_SHARD).map(|encounters| (encounters, Ok(Vec::new()))).collect();
    for_each_shard(n_threads, &mut shards, |_, (encounters, outcomes)| {
        *outcomes = agent.play(game, config, encounters);
    });
    let mut all = Vec::new();
    for (_, outcomes) in shards {
        all.extend(outcomes?);
    }
    Ok(all)
}

/// Plays encounters in the lanes of one runner. They are numbered pass after pass, and within a pass tuple after tuple.
pub(crate) fn play_batched(
    agent: &Policy,
    game: &dyn AnyGame,
    config: &AdaptConfig,
    encounters: &[usize],
) -> Result<Vec<EncounterOutcome>, ConfigError> {
    let spec = agent.spec();
    let n_tuples = game.n_tuples(config.split);
    let slots = &spec.slots;
    if let Some(classes) = &config.classes {
        let is_known = |of_tuple: &Vec<usize>| {
            of_tuple.len() <= slots.len()
                && of_tuple.iter().zip(slots).all(|(class, slot)| *class < slot.len())
        };
        if classes.len() != n_tuples || !(slots.is_empty() || classes.iter().all(is_known)) {
            let found = format!("classes of {} tuples", classes.len());
            let expected = format!("a class of the identifier for each peer of {n_tuples} tuples");
            return Err(ConfigError::bad_value("classes", &found, &expected));
        }
    }
    let metric = game.spec().metric;
    let n_lanes = encounters.len();
    let (split, sight) = (config.split, spec.adaptation_sight);
    let mut runner = PolicyRunner::new(game, split, n_lanes, agent, config.window(), sight);
    let mut outcomes: Vec<EncounterOutcome> = Vec::with_capacity(n_lanes);
    let seed_of = |outcome: &EncounterOutcome| {
        Seed::new(config.seed).child("encounter", &[outcome.tuple as u64, outcome.pass as u64])
    };
    for (lane, encounter) in encounters.iter().copied().enumerate() {
        let tuple = encounter % n_tuples;
        let outcome = EncounterOutcome {
            tuple,
            successor: config.switch.map(|_| Switch::successor(tuple, n_tuples)),
            pass: encounter / n_tuples,
            ..EncounterOutcome::default()
        };
        let n_episodes = config.switch.map_or(config.episodes, |switch| switch.after);
        runner.begin(agent, lane, tuple, n_episodes, seed_of(&outcome));
        outcomes.push(outcome);
    }
    let mut closed_form = ClosedForm::new(game);
    let n_posteriors = slots.last().map_or(0, |slot| slot.end);
    let blank = || EpisodeOutcome {
        task_return: 0.0,
        expected_return: None,
        n_steps: 0,
        ending: Ending::Finished,
        keypoint_visited: false,
    };
    let mut current: Vec<EpisodeOutcome> = (0..n_lanes).map(|_| blank()).collect();
    // The current tuple of each lane.
    let mut tuples: Vec<usize> = outcomes.iter().map(|outcome| outcome.tuple).collect();
    let detector = DetectorState::new(
        config.detector,
        config.keep_on_clear,
        config.switch.map(|switch| switch.after),
        config.context_episodes.unwrap_or(config.episodes),
    );
    let mut detectors = vec![detector; n_lanes];
    let mut ended = Vec::new();
    while runner.select_actions(agent)? {
        // Exact values and guesses are computed at the first decision of every episode.
        let first_decisions: Vec<(usize, usize)> = runner
            .active()
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, lane)| current[*lane].n_steps == 0)
            .collect();
        closed_form.fill(agent, game, config.split, &runner, &first_decisions, &tuples, &mut current)?;
        let outputs = runner.outputs();
        for (row, &lane) in runner.active().iter().enumerate() {
            let outcome = &mut outcomes[lane];
            let posteriors = &outputs.posteriors[row * n_posteriors..][..n_posteriors];
            if current[lane].n_steps == 0 && !slots.is_empty() {
                let guesses: Vec<usize> =
                    slots.iter().map(|slot| best_guess(&posteriors[slot.clone()])).collect();
                let chosen = slots.iter().zip(&guesses).map(|(slot, guess)| posteriors[slot.start + guess]);
                outcome.confidence.push(chosen.sum::<f32>() / slots.len() as f32);
                outcome.guesses.push(runner.true_classes(agent, lane, guesses));
            }
            if let Some(classes) = config.classes.as_ref().filter(|_| !slots.is_empty()) {
                let classes = classes[tuples[lane]].iter().enumerate();
                let classes = classes.map(|(slot, class)| spec.class_from(runner.side(lane), slot, *class));
                outcome.identified.push(score_identification(posteriors, slots, classes));
            }
            if config.keep_latents && outcome.pass == 0 {
                let size = spec.latent_size;
                outcome.latents.extend_from_slice(&outputs.latents[row * size..][..size]);
            }
        }
        runner.step(agent);
        let steps = runner.steps();
        ended.clear();
        for &lane in runner.active() {
            let outcome = &mut current[lane];
            outcome.task_return += f64::from(steps.task_rewards[lane]);
            outcome.n_steps += 1;
            outcome.keypoint_visited |= steps.keypoints_visited[lane];
            if steps.boundaries[lane] != Boundary::WithinEpisode {
                outcome.ending = steps.endings[lane].expect("an episode that ended has an ending");
                outcomes[lane].episodes.push(std::mem::replace(outcome, blank()));
                ended.push(lane);
            }
        }
        for &lane in &ended {
            let outcome = &mut outcomes[lane];
            let n_finished = outcome.episodes.len();
            if let Some((alarm, keeps)) =
                detectors[lane].episode_ended(observed_score(&outcome.episodes[n_finished - 1], metric))
            {
                outcome.alarms.push(alarm);
                match keeps {
                    ClearKeeps::Last => runner.keep_last_episode(agent, lane),
                    ClearKeeps::Nothing => runner.clear_context(agent, lane),
                }
            }
            if let Some(successor) =
                outcome.successor.filter(|_| config.switch == Some(Switch { after: n_finished }))
            {
                tuples[lane] = successor;
                runner.switch(lane, successor, config.episodes - n_finished, Switch::seed(seed_of(outcome)));
            }
        }
    }
    Ok(outcomes)
}

/// The score of an episode that the ego can observe: from the actual return, not from the expected one.
fn observed_score(outcome: &EpisodeOutcome, metric: Metric) -> f64 {
    EpisodeOutcome { expected_return: None, ..*outcome }.score(metric)
}

fn best_guess(posterior: &[f32]) -> usize {
    let best = (0..posterior.len()).max_by(|one, other| posterior[*one].total_cmp(&posterior[*other]));
    best.expect("a peer has classes")
}

fn score_identification(
    posteriors: &[f32],
    slots: &[std::ops::Range<usize>],
    classes: impl Iterator<Item = usize>,
) -> IdentificationScore {
    let mut score = IdentificationScore { accuracy: 0.0, posterior: 0.0 };
    for (slot, class) in slots.iter().zip(classes) {
        let is_right = best_guess(&posteriors[slot.clone()]) == class;
        score.accuracy += f32::from(u8::from(is_right)) / slots.len() as f32;
        score.posterior += posteriors[slot.start + class] / slots.len() as f32;
    }
    score
}

/// The exact value of an episode in games with a closed form, from the agent's action probabilities at every decision point,
/// given its context at the start of the episode.
struct ClosedForm {
    points: Vec<pace_games::DecisionPoint>,
    outputs: PolicyOutputs,
}

impl ClosedForm {
    fn new(game: &dyn AnyGame) -> ClosedForm {
        ClosedForm { points: game.decision_points(), outputs: PolicyOutputs::default() }
    }

    #[allow(clippy::too_many_arguments)]
    fn fill(
        &mut self,
        agent: &Policy,
        game: &dyn AnyGame,
        split: Split,
        runner: &PolicyRunner<Policy>,
        first_decisions: &[(usize, usize)],
        tuples: &[usize],
        current: &mut [EpisodeOutcome],
    ) -> Result<(), ConfigError> {
        if self.points.is_empty() || first_decisions.is_empty() {
            return Ok(());
        }
        let (spec, n_actions) = (agent.spec(), agent.spec().sizes.n_actions);
        // One context per lane and point; the steps before the point are added below.
        let lanes: Vec<usize> =
            first_decisions.iter().flat_map(|(_, lane)| self.points.iter().map(|_| *lane)).collect();
        let mut state = runner.select_contexts(&lanes);
        // The transform to the canonical frame of each context; `None` without a canonical frame.
        let transforms: Vec<Option<&SymmetryTransform>> =
            lanes.iter().map(|lane| spec.transform(runner.side(*lane))).collect();
        let n_steps = self.points.iter().map(|point| point.earlier.len()).max().unwrap_or(0);
        (0..n_steps).for_each(|step| self.update_contexts(agent, &mut state, &transforms, step));
        let rows: Vec<usize> = (0..lanes.len()).collect();
        let mut observations = Vec::new();
        for (point, transform) in self.points.iter().cycle().zip(&transforms) {
            append_transformed(*transform, &point.observation, &mut observations);
        }
        agent.forward_policy(&observations, &rows, &mut state, &mut self.outputs);
        let logits = &self.outputs.logits[..];
        let (mut logs, mut answers) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
        softmax_rows(logits, &[n_actions], &mut logs, &mut answers);
        for (answer, transform) in answers.chunks_exact_mut(n_actions).zip(&transforms) {
            check_distribution(answer)?;
            if let Some(transform) = transform {
                transform.to_game_actions(answer);
            }
        }
        for ((_, lane), answers) in
            first_decisions.iter().zip(answers.chunks_exact(self.points.len() * n_actions))
        {
            let value = game.expected_return(split, tuples[*lane], answers);
            current[*lane].expected_return = Some(value.expect("the tuple is being played"));
        }
        Ok(())
    }

    /// Adds step `step` to the context of every point that has this many earlier steps.
    fn update_contexts(
        &mut self,
        agent: &Policy,
        state: &mut <Policy as Actor>::State,
        transforms: &[Option<&SymmetryTransform>],
        step: usize,
    ) {
        let n_peers = agent.spec().sizes.n_peers;
        let (mut rows, mut observations) = (Vec::new(), Vec::new());
        let (mut ego_actions, mut peer_actions) = (Vec::new(), Vec::new());
        for (row, transform) in transforms.iter().enumerate() {
            let point = &self.points[row % self.points.len()];
            let Some(earlier) = point.earlier.get(step) else { continue };
            rows.push(row);
            append_transformed(*transform, &earlier.observation, &mut observations);
            ego_actions.push(
                transform
                    .map_or(earlier.ego_action, |transform| transform.transform_action(earlier.ego_action)),
            );
            let actions = earlier.peer_actions.iter().copied();
            peer_actions.extend(actions.chain(std::iter::repeat(NO_ACTION)).take(n_peers));
        }
        agent.forward_policy(&observations, &rows, state, &mut self.outputs);
        let decisions = Decisions {
            observations: &observations,
            ego_actions: &ego_actions,
            peer_actions: &peer_actions,
            peer_observations: &[],
            task_rewards: &[],
        };
        agent.update_contexts(&decisions, &rows, state);
    }
}
