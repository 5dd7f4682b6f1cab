//! Algorithm 2: an agent meets peers it was not trained with, and adapts within the encounter.

mod detector;
mod switch;

use pace_games::{AnyGame, Boundary, Ending, EpisodeOutcome, GameError, Metric, NO_ACTION, Seed, Split};
use pace_nn::loss::softmax;
use pace_nn::threads::for_each_shard;

use crate::agent::Agent;
use crate::config::ContextAction;
use crate::crew::Crew;
use crate::methods::ActRows;

use detector::Watch;
pub use detector::{Alarm, ClearKeeps, DETECTORS, Detector, DetectorEntry, Verdict};
pub use switch::Switch;

/// Whom the agent meets, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptConfig {
    /// The part of the pool.
    pub split: Split,
    /// Encounters with each tuple.
    pub passes: usize,
    /// N_eps: episodes per encounter.
    pub episodes: usize,
    /// N_ctx: the most episodes the context keeps, the current one included; all if absent.
    pub context_episodes: Option<usize>,
    /// Whether and when other peers take the first ones' places.
    pub switch: Option<Switch>,
    /// What clears the context within an encounter.
    pub detector: Detector,
    /// What clearing leaves.
    pub clear_keeps: ClearKeeps,
    /// The class of each peer of each tuple, where these are the classes of the identifier. Guesses are judged by it; the
    /// agent does not see it.
    pub classes: Option<Vec<Vec<usize>>>,
    /// Whether the latents of the first encounter with each tuple are wanted.
    pub keep_latents: bool,
    /// All chance of the encounters; the same seed gives every agent the same cards.
    pub seed: u64,
}

impl AdaptConfig {
    /// The plain protocol: the same peers all along, and the whole encounter in the context.
    pub fn new(split: Split, passes: usize, episodes: usize, seed: u64) -> AdaptConfig {
        AdaptConfig {
            split,
            passes,
            episodes,
            context_episodes: None,
            switch: None,
            detector: Detector::None,
            clear_keeps: ClearKeeps::Last,
            classes: None,
            keep_latents: false,
            seed,
        }
    }

    fn check(&self, n_tuples: usize) -> Result<(), GameError> {
        let Some(Switch { after }) = self.switch else { return Ok(()) };
        if !(1..self.episodes).contains(&after) {
            let expected =
                format!("a number from 1 to {}, below the episodes of an encounter", self.episodes - 1);
            return Err(GameError::bad_value("switch_at", &after, &expected));
        }
        if n_tuples < 2 {
            return Err(GameError::bad_value(
                "switch_at",
                &after,
                "a pool of two tuples or more to switch between",
            ));
        }
        Ok(())
    }

    /// The most episodes in the running context. Only one that counts its episodes can keep the last.
    fn window(&self) -> Option<usize> {
        let must_count = matches!(self.detector, Detector::Drop { .. });
        self.context_episodes.or(must_count.then_some(self.episodes))
    }
}

/// One encounter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncounterOutcome {
    /// The number of the tuple in its split.
    pub tuple: usize,
    /// The tuple that took its place, where there was a switch.
    pub successor: Option<usize>,
    /// Which of the encounters with this tuple.
    pub pass: usize,
    /// What came of each episode.
    pub episodes: Vec<EpisodeOutcome>,
    /// The highest posterior class of each peer at the start of each episode, episode after episode. What it means to be
    /// right is known for training peers only.
    pub guesses: Vec<Vec<usize>>,
    /// The identifier's confidence in these guesses, averaged over peers.
    pub confidence: Vec<f32>,
    /// How right the identifier was at every decision; empty where no class is known.
    pub identified: Vec<Identified>,
    /// When the detector found that the peers had changed.
    pub alarms: Vec<Alarm>,
    /// The latent of every decision, one after the other; empty unless asked for.
    pub latents: Vec<f32>,
}

/// How right the identifier was at one decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Identified {
    /// The share of peers whose best guess is right.
    pub accuracy: f32,
    /// The probability given to the truth, averaged over peers.
    pub posterior: f32,
}

impl EncounterOutcome {
    /// The tuple that was met in an episode, counted from 0.
    pub fn tuple_in(&self, episode: usize, switch: Option<Switch>) -> usize {
        match (switch, self.successor) {
            (Some(Switch { after }), Some(successor)) if episode >= after => successor,
            _ => self.tuple,
        }
    }
}

/// Encounters that run side by side in one shard; few enough to balance threads, enough for fast products.
const LANES_PER_SHARD: usize = 64;

/// Plays all encounters. The result does not depend on the number of threads.
///
/// # Panics
/// If the game's observations or actions are not those that the agent was trained with.
pub fn adapt(
    agent: &Agent,
    game: &dyn AnyGame,
    config: &AdaptConfig,
    n_threads: usize,
) -> Result<Vec<EncounterOutcome>, GameError> {
    let shape = (game.spec().observation_size, game.spec().n_actions());
    assert_eq!(shape, agent.shape(), "observation size and number of actions");
    let n_tuples = game.n_tuples(config.split);
    config.check(n_tuples)?;
    let n_encounters = n_tuples * config.passes;
    let mut shards: Vec<(usize, Vec<EncounterOutcome>)> =
        (0..n_encounters).step_by(LANES_PER_SHARD).map(|first| (first, Vec::new())).collect();
    for_each_shard(n_threads, &mut shards, |_, (first, outcomes)| {
        let last = (*first + LANES_PER_SHARD).min(n_encounters);
        *outcomes = play_shard(agent, game, config, n_tuples, *first..last);
    });
    Ok(shards.into_iter().flat_map(|(_, outcomes)| outcomes).collect())
}

fn play_shard(
    agent: &Agent,
    game: &dyn AnyGame,
    config: &AdaptConfig,
    n_tuples: usize,
    encounters: std::ops::Range<usize>,
) -> Vec<EncounterOutcome> {
    let (net, parameters) = (&*agent.net, &agent.parameters[..]);
    let metric = game.spec().metric;
    let n_lanes = encounters.len();
    let mut crew = Crew::new(game, config.split, n_lanes, net, &agent.config, config.window());
    let mut outcomes: Vec<EncounterOutcome> = Vec::with_capacity(n_lanes);
    let seed_of = |outcome: &EncounterOutcome| {
        Seed::new(config.seed).child("encounter", &[outcome.tuple as u64, outcome.pass as u64])
    };
    for (lane, encounter) in encounters.enumerate() {
        let tuple = encounter % n_tuples;
        let outcome = EncounterOutcome {
            tuple,
            successor: config.switch.map(|_| Switch::successor(tuple, n_tuples)),
            pass: encounter / n_tuples,
            ..EncounterOutcome::default()
        };
        let n_episodes = config.switch.map_or(config.episodes, |switch| switch.after);
        crew.begin(lane, tuple, n_episodes, seed_of(&outcome));
        outcomes.push(outcome);
    }
    let mut closed_form = ClosedForm::new(agent, game);
    let slots = net.slots();
    let blank = || EpisodeOutcome {
        task_return: 0.0,
        expected_return: None,
        n_steps: 0,
        ending: Ending::Finished,
        keypoint_visited: false,
    };
    let mut current: Vec<EpisodeOutcome> = (0..n_lanes).map(|_| blank()).collect();
    // Who sits in each lane now.
    let mut tuples: Vec<usize> = outcomes.iter().map(|outcome| outcome.tuple).collect();
    let watch = Watch::new(
        config.detector,
        config.clear_keeps,
        config.switch.map(|switch| switch.after),
        config.context_episodes.unwrap_or(config.episodes),
    );
    let mut watches = vec![watch; n_lanes];
    let mut ended = Vec::new();
    while crew.decide(net, parameters) {
        // A first decision of an episode: what is the episode worth, and whom does the agent think it plays with?
        let fresh: Vec<(usize, usize)> = crew
            .active()
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, lane)| current[*lane].n_steps == 0)
            .collect();
        closed_form.fill(agent, game, config.split, &crew, &fresh, &tuples, &mut current);
        for (row, &lane) in crew.active().iter().enumerate() {
            let outcome = &mut outcomes[lane];
            let posteriors = &crew.rows.posteriors()[row * net.n_posteriors()..][..net.n_posteriors()];
            if current[lane].n_steps == 0 {
                let guesses: Vec<usize> =
                    slots.iter().map(|slot| best_guess(&posteriors[slot.clone()])).collect();
                let sure = slots.iter().zip(&guesses).map(|(slot, guess)| posteriors[slot.start + guess]);
                outcome.confidence.push(sure.sum::<f32>() / slots.len().max(1) as f32);
                outcome.guesses.push(guesses);
            }
            if let Some(classes) = &config.classes {
                outcome.identified.push(judge(posteriors, &slots, &classes[tuples[lane]]));
            }
            if config.keep_latents && outcome.pass == 0 {
                outcome.latents.extend_from_slice(&crew.rows.latents()[row * net.width()..][..net.width()]);
            }
        }
        crew.advance(net, parameters);
        let block = crew.block();
        ended.clear();
        for &lane in crew.active() {
            let outcome = &mut current[lane];
            outcome.task_return += f64::from(block.task_rewards[lane]);
            outcome.n_steps += 1;
            outcome.keypoint_visited |= block.keypoints_visited[lane];
            if block.boundaries[lane] != Boundary::WithinEpisode {
                outcome.ending = block.endings[lane].expect("an episode that ended has an ending");
                outcomes[lane].episodes.push(std::mem::replace(outcome, blank()));
                ended.push(lane);
            }
        }
        for &lane in &ended {
            let outcome = &mut outcomes[lane];
            let n_finished = outcome.episodes.len();
            if let Some((alarm, keeps)) =
                watches[lane].episode_ended(told(&outcome.episodes[n_finished - 1], metric))
            {
                outcome.alarms.push(alarm);
                match keeps {
                    ClearKeeps::Last => crew.keep_last_episode(lane),
                    ClearKeeps::Nothing => crew.clear_context(lane),
                }
            }
            if let Some(successor) =
                outcome.successor.filter(|_| config.switch == Some(Switch { after: n_finished }))
            {
                tuples[lane] = successor;
                crew.switch(lane, successor, config.episodes - n_finished, Switch::seed(seed_of(outcome)));
            }
        }
    }
    outcomes
}

/// The score of an episode as the ego learns it: what chance made of it, and not what it was worth before.
fn told(outcome: &EpisodeOutcome, metric: Metric) -> f64 {
    EpisodeOutcome { expected_return: None, ..*outcome }.score(metric)
}

fn best_guess(posterior: &[f32]) -> usize {
    let best = (0..posterior.len()).max_by(|one, other| posterior[*one].total_cmp(&posterior[*other]));
    best.expect("a peer has classes")
}

fn judge(posteriors: &[f32], slots: &[std::ops::Range<usize>], classes: &[usize]) -> Identified {
    let mut judged = Identified { accuracy: 0.0, posterior: 0.0 };
    for (slot, &class) in slots.iter().zip(classes) {
        let is_right = best_guess(&posteriors[slot.clone()]) == class;
        judged.accuracy += f32::from(u8::from(is_right)) / slots.len() as f32;
        judged.posterior += posteriors[slot.start + class] / slots.len() as f32;
    }
    judged
}

/// The exact value of an episode, for games that have one: the agent's answers at every decision point, given its context
/// when the episode begins.
struct ClosedForm {
    points: Vec<pace_games::DecisionPoint>,
    /// The summed features of the steps that lead to each point.
    features: Vec<Vec<f32>>,
    rows: ActRows,
}

impl ClosedForm {
    fn new(agent: &Agent, game: &dyn AnyGame) -> ClosedForm {
        let points = game.decision_points();
        let (net, parameters) = (&agent.net, &agent.parameters);
        let mut rows = ActRows::default();
        let features = points
            .iter()
            .map(|point| {
                let mut sum = vec![0.0; net.width()];
                for step in &point.earlier {
                    let action = match agent.config.context_action {
                        ContextAction::Ego => step.ego_action,
                        ContextAction::Peer => step.peer_actions.first().copied().unwrap_or(NO_ACTION),
                    };
                    net.encode_entries(parameters, &step.observation, &[action], &mut rows);
                    pace_nn::kernels::add(&mut sum, &rows.features()[..net.width()]);
                }
                sum
            })
            .collect();
        ClosedForm { points, features, rows }
    }

    #[allow(clippy::too_many_arguments)]
    fn fill(
        &mut self,
        agent: &Agent,
        game: &dyn AnyGame,
        split: Split,
        crew: &Crew,
        fresh: &[(usize, usize)],
        tuples: &[usize],
        current: &mut [EpisodeOutcome],
    ) {
        if self.points.is_empty() || fresh.is_empty() {
            return;
        }
        let net = &agent.net;
        let (width, n_actions) = (net.width(), net.n_actions());
        let n_rows = fresh.len() * self.points.len();
        let mut observations = Vec::with_capacity(n_rows * net.observation_size());
        let mut pooled = vec![0.0; n_rows * width];
        let mut is_empty = Vec::with_capacity(n_rows);
        let mut pooled_rows = pooled.chunks_exact_mut(width);
        for (_, lane) in fresh {
            for (point, features) in self.points.iter().zip(&self.features) {
                observations.extend_from_slice(&point.observation);
                let context = crew.context(*lane);
                let row = pooled_rows.next().expect("a row for every point");
                context.pool_with(features, point.earlier.len(), row);
                is_empty.push(context.is_empty() && point.earlier.is_empty());
            }
        }
        net.act(&agent.parameters, &observations, &pooled, &is_empty, &mut self.rows);
        let per_lane = self.points.len() * n_actions;
        for (index, (_, lane)) in fresh.iter().enumerate() {
            let mut answers = self.rows.logits()[index * per_lane..][..per_lane].to_vec();
            answers.chunks_exact_mut(n_actions).for_each(softmax);
            let value = game.expected_return(split, tuples[*lane], &answers);
            current[*lane].expected_return = Some(value.expect("the tuple is being played"));
        }
    }
}
