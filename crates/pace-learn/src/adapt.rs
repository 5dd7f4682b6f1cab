//! Algorithm 2: an agent meets peers it was not trained with, and adapts within the encounter.

use pace_games::{AnyGame, Boundary, Ending, EpisodeOutcome, GameError, NO_ACTION, Seed, Split};
use pace_nn::loss::softmax;
use pace_nn::threads::for_each_shard;

use crate::agent::{Agent, Trained};
use crate::crew::Crew;
use crate::network::{Decisions, Network, Sizes};

/// Whom the agent meets, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptConfig {
    /// The part of the pool.
    pub split: Split,
    /// Encounters with each tuple.
    pub passes: usize,
    /// N_eps: episodes per encounter.
    pub episodes: usize,
    /// N_ctx: the most episodes the context keeps; all if absent. A hidden state cannot forget one episode of several, so
    /// that it changes nothing for methods that have one instead of a context.
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
    /// right is known for training peers only. Empty if the method identifies nobody.
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
        *outcomes = agent.play(game, config, *first..last);
    });
    Ok(shards.into_iter().flat_map(|(_, outcomes)| outcomes).collect())
}

/// Plays encounters in the lanes of one crew. They are numbered pass after pass, and inside a pass tuple after tuple.
pub(crate) fn play_side_by_side<N: Network>(
    agent: &Trained<N>,
    game: &dyn AnyGame,
    config: &AdaptConfig,
    encounters: std::ops::Range<usize>,
) -> Vec<EncounterOutcome> {
    let (net, parameters) = (&agent.net, &agent.parameters[..]);
    let n_tuples = game.n_tuples(config.split);
    let n_lanes = encounters.len();
    let window = config.context_episodes;
    let mut crew = Crew::new(game, config.split, n_lanes, net, window, net.adapting_sight());
    let mut outcomes: Vec<EncounterOutcome> = Vec::with_capacity(n_lanes);
    for (lane, encounter) in encounters.enumerate() {
        let (tuple, pass) = (encounter % n_tuples, encounter / n_tuples);
        let path = [tuple as u64, pass as u64];
        crew.begin(net, lane, tuple, config.episodes, Seed::new(config.seed).child("encounter", &path));
        outcomes.push(EncounterOutcome {
            tuple,
            episodes: Vec::with_capacity(config.episodes),
            guesses: Vec::new(),
            confidence: Vec::new(),
        });
    }
    let mut closed_form = ClosedForm::<N>::new(game);
    let slots = net.slots();
    let n_posteriors = slots.last().map_or(0, |slot| slot.end);
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
        for (row, lane) in fresh.into_iter().filter(|_| !slots.is_empty()) {
            let posteriors = &crew.acted(net).posteriors[row * n_posteriors..][..n_posteriors];
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
struct ClosedForm<N: Network> {
    points: Vec<pace_games::DecisionPoint>,
    contexts: Vec<N::Context>,
    rows: N::ActRows,
}

impl<N: Network> ClosedForm<N> {
    fn new(game: &dyn AnyGame) -> ClosedForm<N> {
        ClosedForm { points: game.decision_points(), contexts: Vec::new(), rows: N::ActRows::default() }
    }

    #[allow(clippy::too_many_arguments)]
    fn fill(
        &mut self,
        agent: &Trained<N>,
        game: &dyn AnyGame,
        split: Split,
        crew: &Crew<N>,
        fresh: &[(usize, usize)],
        outcomes: &[EncounterOutcome],
        current: &mut [EpisodeOutcome],
    ) {
        if self.points.is_empty() || fresh.is_empty() {
            return;
        }
        let Trained { net, parameters } = agent;
        let n_actions = net.sizes().n_actions;
        // A context for every point of every lane, which is then led to its point.
        self.contexts.clear();
        for (_, lane) in fresh {
            let context = crew.context(*lane);
            self.contexts.extend(self.points.iter().map(|_| context.clone()));
        }
        let n_steps = self.points.iter().map(|point| point.earlier.len()).max().unwrap_or(0);
        (0..n_steps).for_each(|step| self.take_in(agent, step));
        let rows: Vec<usize> = (0..self.contexts.len()).collect();
        let points = self.points.iter().cycle().take(rows.len());
        let observations: Vec<f32> = points.flat_map(|point| point.observation.iter().copied()).collect();
        net.act(parameters, &observations, &self.contexts, &rows, &mut self.rows);
        let per_lane = self.points.len() * n_actions;
        for (index, (_, lane)) in fresh.iter().enumerate() {
            let mut answers = net.acted(&self.rows).logits[index * per_lane..][..per_lane].to_vec();
            answers.chunks_exact_mut(n_actions).for_each(softmax);
            let value = game.expected_return(split, outcomes[*lane].tuple, &answers);
            current[*lane].expected_return = Some(value.expect("the tuple is being played"));
        }
    }

    /// Adds step `step` of the way to every point that is further than that.
    fn take_in(&mut self, agent: &Trained<N>, step: usize) {
        let Trained { net, parameters } = agent;
        let Sizes { n_peers, .. } = net.sizes();
        let (mut rows, mut observations) = (Vec::new(), Vec::new());
        let (mut ego_actions, mut peer_actions) = (Vec::new(), Vec::new());
        for row in 0..self.contexts.len() {
            let point = &self.points[row % self.points.len()];
            let Some(earlier) = point.earlier.get(step) else { continue };
            rows.push(row);
            observations.extend_from_slice(&earlier.observation);
            ego_actions.push(earlier.ego_action);
            let told = earlier.peer_actions.iter().copied();
            peer_actions.extend(told.chain(std::iter::repeat(NO_ACTION)).take(n_peers));
        }
        net.act(parameters, &observations, &self.contexts, &rows, &mut self.rows);
        let decisions = Decisions {
            observations: &observations,
            ego_actions: &ego_actions,
            peer_actions: &peer_actions,
            peer_observations: &[],
            task_rewards: &[],
        };
        net.take_in(parameters, &decisions, &mut self.contexts, &rows, &mut self.rows);
    }
}
