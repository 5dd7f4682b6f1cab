//! Algorithm 2: an agent meets peers it was not trained with, and adapts within the encounter.

use pace_games::{AnyGame, Boundary, Ending, EpisodeOutcome, GameError, NO_ACTION, Seed, Split};
use pace_nn::loss::softmax;
use pace_nn::threads::for_each_shard;

use crate::agent::Agent;
use crate::config::ContextAction;
use crate::crew::Crew;
use crate::methods::ActRows;

/// Whom the agent meets, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptConfig {
    /// The part of the pool.
    pub split: Split,
    /// Encounters with each tuple.
    pub passes: usize,
    /// N_eps: episodes per encounter.
    pub episodes: usize,
    /// N_ctx: the most episodes the context keeps; all if absent.
    pub context_episodes: Option<usize>,
    /// All chance of the encounters; the same seed gives every agent the same cards.
    pub seed: u64,
}

/// One encounter.
#[derive(Clone, Debug, PartialEq)]
pub struct EncounterOutcome {
    /// The number of the tuple in its split.
    pub tuple: usize,
    /// What came of each episode.
    pub episodes: Vec<EpisodeOutcome>,
    /// The highest posterior class of each peer at the start of each episode, episode after episode. What it means to be
    /// right is known for training peers only.
    pub guesses: Vec<Vec<usize>>,
    /// The identifier's confidence in these guesses, averaged over peers.
    pub confidence: Vec<f32>,
}

/// Encounters that run side by side in one shard; few enough to balance threads, enough for fast products.
const LANES_PER_SHARD: usize = 64;

/// Plays all encounters. The result does not depend on the number of threads.
pub fn adapt(
    agent: &Agent,
    game: &dyn AnyGame,
    config: &AdaptConfig,
    n_threads: usize,
) -> Result<Vec<EncounterOutcome>, GameError> {
    let n_tuples = game.n_tuples(config.split);
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
    let n_lanes = encounters.len();
    let mut crew = Crew::new(game, config.split, n_lanes, net, &agent.config, config.context_episodes);
    let mut outcomes: Vec<EncounterOutcome> = Vec::with_capacity(n_lanes);
    for (lane, encounter) in encounters.enumerate() {
        let (tuple, pass) = (encounter % n_tuples, encounter / n_tuples);
        let path = [tuple as u64, pass as u64];
        crew.begin(lane, tuple, config.episodes, Seed::new(config.seed).child("encounter", &path));
        outcomes.push(EncounterOutcome {
            tuple,
            episodes: Vec::with_capacity(config.episodes),
            guesses: Vec::new(),
            confidence: Vec::new(),
        });
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
    while crew.decide(net, parameters) {
        // A first decision of an episode: what is the episode worth, and whom does the agent think it plays with?
        let fresh: Vec<(usize, usize)> = crew
            .active()
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, lane)| current[*lane].n_steps == 0)
            .collect();
        closed_form.fill(agent, game, config.split, &crew, &fresh, &outcomes, &mut current);
        for (row, lane) in fresh {
            let posteriors = &crew.rows.posteriors()[row * net.n_posteriors()..][..net.n_posteriors()];
            let mut confidence = 0.0;
            let guesses = slots
                .iter()
                .map(|slot| {
                    let posterior = &posteriors[slot.clone()];
                    let best = (0..posterior.len())
                        .max_by(|one, other| posterior[*one].total_cmp(&posterior[*other]));
                    let best = best.expect("a peer has classes");
                    confidence += posterior[best] / slots.len() as f32;
                    best
                })
                .collect();
            outcomes[lane].guesses.push(guesses);
            outcomes[lane].confidence.push(confidence);
        }
        crew.advance(net, parameters);
        let block = crew.block();
        for &lane in crew.active() {
            let outcome = &mut current[lane];
            outcome.task_return += f64::from(block.task_rewards[lane]);
            outcome.n_steps += 1;
            outcome.keypoint_visited |= block.keypoints_visited[lane];
            if block.boundaries[lane] != Boundary::WithinEpisode {
                outcome.ending = block.endings[lane].expect("an episode that ended has an ending");
                outcomes[lane].episodes.push(std::mem::replace(outcome, blank()));
            }
        }
    }
    outcomes
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
        outcomes: &[EncounterOutcome],
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
            let value = game.expected_return(split, outcomes[*lane].tuple, &answers);
            current[*lane].expected_return = Some(value.expect("the tuple is being played"));
        }
    }
}
