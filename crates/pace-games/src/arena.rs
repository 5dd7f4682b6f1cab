//! Many encounters of one game stepped in one call. The caller owns the buffers that a step fills.
//!
//! A single encounter is in `encounter`. An arena belongs to one thread; a program with several threads has several arenas.

use crate::encounter::{Encounter, PeerStepBuffers};
use crate::game::{Action, Boundary, Ending, Game, GameSpec, NO_ACTION, Seat};
use crate::peer::Peer;
use crate::seed::Seed;

/// Whether the peers' observations are recorded. Some baselines learn from them; every other use saves the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerObservationMode {
    /// Peer observations are written at every step.
    Recorded,
    /// Peer observations stay empty; peer actions are still written.
    Skipped,
}

/// The buffers that a step fills: one row per lane in each field. Rows of idle lanes keep their values.
#[derive(Debug)]
pub struct StepBatch<'a> {
    /// Each ego's observation at its next decision: `n_lanes` × `observation_size`.
    pub observations: &'a mut [f32],
    /// Each ego's last observation of an episode that has just ended.
    pub terminal_observations: &'a mut [f32],
    /// Task reward of the step.
    pub task_rewards: &'a mut [f32],
    /// Whether the step ended an episode or the encounter.
    pub boundaries: &'a mut [Boundary],
    /// Ending of the episode, if it ended.
    pub endings: &'a mut [Option<Ending>],
    /// Whether the ego came to an informative place.
    pub keypoints_visited: &'a mut [bool],
    /// Each peer's observation when it chose: `n_lanes` × `n_peers` × `observation_size`; empty to skip them.
    pub peer_observations: &'a mut [f32],
    /// Each peer's action: `n_lanes` × `n_peers`.
    pub peer_actions: &'a mut [Action],
}

/// Buffers for the steps of an arena, for callers that have none of their own. The fields are those of [`StepBatch`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct StepBuffers {
    pub observations: Vec<f32>,
    pub terminal_observations: Vec<f32>,
    pub task_rewards: Vec<f32>,
    pub boundaries: Vec<Boundary>,
    pub endings: Vec<Option<Ending>>,
    pub keypoints_visited: Vec<bool>,
    pub peer_observations: Vec<f32>,
    pub peer_actions: Vec<Action>,
}

impl StepBuffers {
    /// Buffers for `n_lanes` lanes of a game.
    pub fn new(spec: &GameSpec, n_lanes: usize, peer_observation_mode: PeerObservationMode) -> StepBuffers {
        let (size, n_peers) = (spec.observation_size, spec.n_peers());
        let n_peer_values = match peer_observation_mode {
            PeerObservationMode::Recorded => n_lanes * n_peers * size,
            PeerObservationMode::Skipped => 0,
        };
        StepBuffers {
            observations: vec![0.0; n_lanes * size],
            terminal_observations: vec![0.0; n_lanes * size],
            task_rewards: vec![0.0; n_lanes],
            boundaries: vec![Boundary::EncounterEnd; n_lanes],
            endings: vec![None; n_lanes],
            keypoints_visited: vec![false; n_lanes],
            peer_observations: vec![0.0; n_peer_values],
            peer_actions: vec![NO_ACTION; n_lanes * n_peers],
        }
    }

    /// All buffers, to be filled by a step.
    pub fn batch(&mut self) -> StepBatch<'_> {
        StepBatch {
            observations: &mut self.observations,
            terminal_observations: &mut self.terminal_observations,
            task_rewards: &mut self.task_rewards,
            boundaries: &mut self.boundaries,
            endings: &mut self.endings,
            keypoints_visited: &mut self.keypoints_visited,
            peer_observations: &mut self.peer_observations,
            peer_actions: &mut self.peer_actions,
        }
    }

    /// The row of a lane's observation, to be filled when its encounter begins.
    pub fn observation_mut(&mut self, lane: usize) -> &mut [f32] {
        let size = self.observations.len() / self.task_rewards.len();
        &mut self.observations[lane * size..][..size]
    }
}

/// Many lanes of one game. A lane is idle until [`Arena::begin`] starts an encounter in it, and again when that is over.
#[derive(Clone, Debug)]
pub struct Arena<G: Game, P: Peer<G> = <G as Game>::Peer> {
    game: G,
    lanes: Vec<Option<Encounter<G, P>>>,
    idle: Vec<bool>,
}

impl<G: Game, P: Peer<G>> Arena<G, P> {
    /// An arena with `n_lanes` idle lanes.
    pub fn new(game: G, n_lanes: usize) -> Arena<G, P> {
        Arena { lanes: (0..n_lanes).map(|_| None).collect(), idle: vec![true; n_lanes], game }
    }

    /// Starts an encounter in `lane` and writes the ego's first observation.
    pub fn begin(
        &mut self,
        lane: usize,
        specs: &[P::Spec],
        n_episodes: usize,
        seed: Seed,
        observation: &mut [f32],
    ) {
        let encounter = match &mut self.lanes[lane] {
            Some(encounter) => {
                encounter.reset(&self.game, specs, n_episodes, seed);
                encounter
            }
            empty => empty.insert(Encounter::begin(&self.game, specs, n_episodes, seed)),
        };
        self.idle[lane] = false;
        self.game.observe(encounter.state(), Seat::EGO, observation);
    }

    /// Steps every lane that is not idle with its ego's action; the actions of idle lanes are ignored. Allocates nothing.
    ///
    /// # Panics
    ///
    /// Panics if a buffer does not have one row per lane.
    pub fn step(&mut self, actions: &[Action], batch: &mut StepBatch<'_>) {
        let (n_lanes, size, n_peers) =
            (self.lanes.len(), self.game.spec().observation_size, self.game.spec().n_peers());
        assert_eq!(actions.len(), n_lanes, "one action per lane");
        assert_eq!(batch.observations.len(), n_lanes * size, "one observation per lane");
        for (lane, encounter) in self.lanes.iter_mut().enumerate() {
            if self.idle[lane] {
                continue;
            }
            let encounter = encounter.as_mut().expect("a lane that is not idle has an encounter");
            let peer_observations = if batch.peer_observations.is_empty() {
                &mut [][..]
            } else {
                &mut batch.peer_observations[lane * n_peers * size..][..n_peers * size]
            };
            let peers = PeerStepBuffers {
                observations: peer_observations,
                actions: &mut batch.peer_actions[lane * n_peers..][..n_peers],
            };
            let step = encounter.step(&self.game, actions[lane], peers);
            batch.task_rewards[lane] = step.task_reward as f32;
            batch.boundaries[lane] = step.boundary;
            batch.endings[lane] = step.ending;
            batch.keypoints_visited[lane] = step.keypoint_visited;
            if step.boundary != Boundary::WithinEpisode {
                let terminal = &mut batch.terminal_observations[lane * size..][..size];
                self.game.observe(encounter.state(), Seat::EGO, terminal);
                if step.boundary == Boundary::EncounterEnd {
                    self.idle[lane] = true;
                    continue;
                }
                encounter.next_episode(&self.game);
            }
            self.game.observe(encounter.state(), Seat::EGO, &mut batch.observations[lane * size..][..size]);
        }
    }

    /// Whether each lane is idle.
    pub fn idle(&self) -> &[bool] {
        &self.idle
    }

    /// The game that is played.
    pub fn game(&self) -> &G {
        &self.game
    }
}

/// A type-erased arena. The type is erased once per batch, not once per lane.
pub trait AnyArena: Send {
    /// Starts an encounter in `lane` with tuple `tuple` of the split that the arena was made for, and writes the ego's first
    /// observation.
    fn begin(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed, observation: &mut [f32]);
    /// Steps every lane that is not idle; see [`Arena::step`].
    fn step(&mut self, actions: &[Action], batch: &mut StepBatch<'_>);
    /// Whether each lane is idle.
    fn idle(&self) -> &[bool];
}

/// An arena together with the tuples of its split.
#[derive(Debug)]
pub(crate) struct ArenaOfPool<G: Game> {
    pub(crate) arena: Arena<G>,
    pub(crate) tuples: Vec<Vec<crate::peer::SpecOf<G>>>,
}

impl<G: Game> AnyArena for ArenaOfPool<G> {
    fn begin(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed, observation: &mut [f32]) {
        self.arena.begin(lane, &self.tuples[tuple], n_episodes, seed, observation);
    }

    fn step(&mut self, actions: &[Action], batch: &mut StepBatch<'_>) {
        self.arena.step(actions, batch);
    }

    fn idle(&self) -> &[bool] {
        self.arena.idle()
    }
}
