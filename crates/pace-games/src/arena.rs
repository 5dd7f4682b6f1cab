//! Many encounters of one game stepped in one call, with everything they report in one block per field.
//!
//! One encounter alone is in `encounter`. An arena is for one thread; a program with several threads has several arenas.

use crate::encounter::{Encounter, PeerStepBuffers};
use crate::game::{Action, Boundary, Ending, Game, NO_ACTION, Seat};
use crate::peer::Peer;
use crate::seed::Seed;

/// Whether an arena writes down what the peers saw. Some baselines learn from it; nothing else needs the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerObservationMode {
    /// Peer observations are written at every step.
    Recorded,
    /// Peer observations stay empty; peer actions are still written.
    Skipped,
}

/// What the lanes reported, one block per field. A lane at rest keeps its old values.
#[derive(Clone, Debug, PartialEq)]
pub struct StepBatch {
    /// What each ego sees now, at its next decision: `n_lanes` × `observation_size`.
    pub observations: Vec<f32>,
    /// What each ego saw last, where its episode just ended.
    pub terminal_observations: Vec<f32>,
    /// Task reward of the step.
    pub task_rewards: Vec<f32>,
    /// Whether an episode or an encounter ended.
    pub boundaries: Vec<Boundary>,
    /// How it ended.
    pub endings: Vec<Option<Ending>>,
    /// Whether the ego came to an informative place.
    pub keypoints_visited: Vec<bool>,
    /// What each peer saw when it chose: `n_lanes` × `n_peers` × `observation_size`; empty if skipped.
    pub peer_observations: Vec<f32>,
    /// What each peer chose: `n_lanes` × `n_peers`.
    pub peer_actions: Vec<Action>,
}

/// AnyArena of one game. A lane rests until [`Arena::begin`] gives it an encounter, and again when that is over.
#[derive(Clone, Debug)]
pub struct Arena<G: Game, P: Peer<G> = <G as Game>::Peer> {
    game: G,
    lanes: Vec<Option<Encounter<G, P>>>,
    resting: Vec<bool>,
    block: StepBatch,
    observation_size: usize,
    n_peers: usize,
}

impl<G: Game, P: Peer<G>> Arena<G, P> {
    /// An arena with `n_lanes` lanes, all at rest.
    pub fn new(game: G, n_lanes: usize, peer_observation_mode: PeerObservationMode) -> Arena<G, P> {
        let (observation_size, n_peers) = (game.spec().observation_size, game.spec().n_peers());
        let n_peer_values = match peer_observation_mode {
            PeerObservationMode::Recorded => n_lanes * n_peers * observation_size,
            PeerObservationMode::Skipped => 0,
        };
        Arena {
            lanes: (0..n_lanes).map(|_| None).collect(),
            resting: vec![true; n_lanes],
            block: StepBatch {
                observations: vec![0.0; n_lanes * observation_size],
                terminal_observations: vec![0.0; n_lanes * observation_size],
                task_rewards: vec![0.0; n_lanes],
                boundaries: vec![Boundary::EncounterEnd; n_lanes],
                endings: vec![None; n_lanes],
                keypoints_visited: vec![false; n_lanes],
                peer_observations: vec![0.0; n_peer_values],
                peer_actions: vec![NO_ACTION; n_lanes * n_peers],
            },
            observation_size,
            n_peers,
            game,
        }
    }

    /// Starts an encounter in `lane` and writes its first observation.
    pub fn begin(&mut self, lane: usize, specs: &[P::Spec], n_episodes: usize, seed: Seed) {
        let encounter = match &mut self.lanes[lane] {
            Some(encounter) => {
                encounter.reset(&self.game, specs, n_episodes, seed);
                encounter
            }
            empty => empty.insert(Encounter::begin(&self.game, specs, n_episodes, seed)),
        };
        self.resting[lane] = false;
        let size = self.observation_size;
        self.game.observe(encounter.state(), Seat::EGO, &mut self.block.observations[lane * size..][..size]);
    }

    /// Steps every lane that is not at rest with its ego's action; the others' actions are not read. Allocates nothing.
    pub fn step(&mut self, actions: &[Action]) {
        assert_eq!(actions.len(), self.lanes.len(), "one action per lane");
        let (size, n_peers) = (self.observation_size, self.n_peers);
        let block = &mut self.block;
        for (lane, encounter) in self.lanes.iter_mut().enumerate() {
            if self.resting[lane] {
                continue;
            }
            let encounter = encounter.as_mut().expect("a lane that is not at rest has an encounter");
            let peer_observations = if block.peer_observations.is_empty() {
                &mut [][..]
            } else {
                &mut block.peer_observations[lane * n_peers * size..][..n_peers * size]
            };
            let views = PeerStepBuffers {
                observations: peer_observations,
                actions: &mut block.peer_actions[lane * n_peers..][..n_peers],
            };
            let step = encounter.step(&self.game, actions[lane], views);
            block.task_rewards[lane] = step.task_reward as f32;
            block.boundaries[lane] = step.boundary;
            block.endings[lane] = step.ending;
            block.keypoints_visited[lane] = step.keypoint_visited;
            if step.boundary != Boundary::WithinEpisode {
                let terminal = &mut block.terminal_observations[lane * size..][..size];
                self.game.observe(encounter.state(), Seat::EGO, terminal);
                if step.boundary == Boundary::EncounterEnd {
                    self.resting[lane] = true;
                    continue;
                }
                encounter.next_episode(&self.game);
            }
            self.game.observe(encounter.state(), Seat::EGO, &mut block.observations[lane * size..][..size]);
        }
    }

    /// What the last step reported.
    pub fn block(&self) -> &StepBatch {
        &self.block
    }

    /// Which lanes are at rest.
    pub fn idle(&self) -> &[bool] {
        &self.resting
    }

    /// The game that is played.
    pub fn game(&self) -> &G {
        &self.game
    }
}

/// An arena whose game is known by name only: the type is erased once per batch, not once per lane.
pub trait AnyArena: Send {
    /// Starts an encounter in `lane` with tuple `tuple` of the split the lanes were opened for.
    fn begin(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed);
    /// Steps every lane that is not at rest.
    fn step(&mut self, actions: &[Action]);
    /// What the last step reported.
    fn block(&self) -> &StepBatch;
    /// Which lanes are at rest.
    fn idle(&self) -> &[bool];
}

/// An arena together with the tuples its lanes may meet.
#[derive(Debug)]
pub(crate) struct ArenaOfPool<G: Game> {
    pub(crate) arena: Arena<G>,
    pub(crate) tuples: Vec<Vec<crate::peer::SpecOf<G>>>,
}

impl<G: Game> AnyArena for ArenaOfPool<G> {
    fn begin(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed) {
        self.arena.begin(lane, &self.tuples[tuple], n_episodes, seed);
    }

    fn step(&mut self, actions: &[Action]) {
        self.arena.step(actions);
    }

    fn block(&self) -> &StepBatch {
        self.arena.block()
    }

    fn idle(&self) -> &[bool] {
        self.arena.idle()
    }
}
