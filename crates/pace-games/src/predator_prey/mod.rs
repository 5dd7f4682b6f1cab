//! Predator-Prey-W: a mixed-motive game with three or five peers.
#![doc = include_str!("README.md")]

mod bodies;
mod inline_vec;
mod mersenne_twister;
mod page;
mod peers;
mod pools;
mod references;
mod steering;
#[cfg(test)]
mod tests;
mod view;
mod watchtowers;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use bodies::{
    AgentCounts, Body, ControlForce, MAX_AGENTS, MAX_OBSTACLES, MAX_PREY, Physics, Point, World,
};
pub use inline_vec::InlineVec;
pub use peers::{PredatorPreyPeer, PredatorPreySpec};

use crate::config::{ConfigError, Preset, PresetConfig};
use crate::ego::Reference;
use crate::game::{
    Action, BehaviourSummary, DisplayNames, Ending, Game, GameSpec, JointAction, Metric, MoveOutcome, Page,
    Seat, SeatSet, Viewpoint,
};
use crate::peer::PeerTuple;
use crate::pool::PeerPool;
use crate::seed::Stream;
use crate::symmetry::{Symmetries, SymmetryTransform};
use bodies::{Dynamics, PREDATOR, PREY, distance};
use peers::prey::N_SIDES;
use references::prey_belief::ParticleSet;
use view::Layout;
use watchtowers::{Sight, touches_tower};

/// The keys of Predator-Prey-W.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredatorPreyConfig {
    /// m: 3 (one predator, two prey) or 5 (two predators, three prey).
    pub n_peers: usize,
    /// Episodes per encounter, N_eps.
    pub episodes_per_encounter: usize,
    /// Maximum steps of an episode: 40 in the paper, 50 in the authors' code.
    pub horizon_steps: usize,
    /// Whether the distance to a prey still costs after it was caught: yes in the paper, no in the authors' code.
    pub caught_prey_counts: bool,
    /// The force of a push. Not in the paper; the authors' code uses the square.
    pub control_force: ControlForce,
    /// The order of updates in a step. Not in the paper; the authors' code updates velocities first.
    pub physics: Physics,
    /// Number of obstacles, 0 to 2. Observations have entries for two in any case.
    pub n_obstacles: usize,
    /// The size of the training pool: the first tuples of the authors' pool, at most 16 with three peers and 144 with five.
    pub n_train_tuples: usize,
    /// Whether the training pool also has the rotations of these tuples by quarter turns: the same paths in combinations that
    /// the authors left out. The game is invariant under quarter turns.
    pub rotated_tuples: bool,
    /// Copies of each training tuple whose prey walk practice lines: straight lines along the same sides that are shorter,
    /// further in or off the middle.
    #[serde(default)]
    pub augmented_copies: usize,
    /// The size of the test pool: the first tuples of the authors' pool, at most 24 with three peers and 144 with five.
    pub n_test_tuples: usize,
    /// The number of other agents for which an observation has entries; 0 for one per peer. With 5, an ego trained with five
    /// peers can play with three.
    pub observation_slots: usize,
    /// Whether an observation ends with the elapsed share of the episode, from 0 to 1.
    #[serde(default)]
    pub observe_time: bool,
}

impl PresetConfig for PredatorPreyConfig {
    fn preset(preset: Preset) -> PredatorPreyConfig {
        let is_paper = preset != Preset::Reference;
        PredatorPreyConfig {
            n_peers: 3,
            episodes_per_encounter: 5,
            horizon_steps: if is_paper { 40 } else { 50 },
            caught_prey_counts: is_paper,
            control_force: ControlForce::AccelSquared,
            physics: Physics::VelocityFirst,
            n_obstacles: MAX_OBSTACLES,
            n_train_tuples: pools::N_TRAIN,
            rotated_tuples: false,
            augmented_copies: 0,
            n_test_tuples: pools::N_TEST,
            observation_slots: 0,
            observe_time: false,
        }
    }
}

impl PredatorPreyConfig {
    fn check(&self) -> Result<(), ConfigError> {
        crate::config::check_episodes(self.episodes_per_encounter)?;
        let expect = |holds: bool, key: &str, found: usize, expected: &str| {
            if holds { Ok(()) } else { Err(ConfigError::bad_value(key, &found, expected)) }
        };
        expect([3, 5].contains(&self.n_peers), "n_peers", self.n_peers, "3 or 5")?;
        let horizon = self.horizon_steps;
        expect((1..=10_000).contains(&horizon), "horizon_steps", horizon, "a number from 1 to 10000")?;
        expect(self.n_obstacles <= MAX_OBSTACLES, "n_obstacles", self.n_obstacles, "0, 1 or 2")?;
        let n_train = self.n_train_tuples;
        // With three peers, training uses the authors' 16 tuples of 24.
        let (max_train, max_test) = match self.n_peers {
            3 => (pools::N_TRAIN, pools::N_TEST),
            _ => (pools::N_COMBINATIONS_OF_5, pools::N_COMBINATIONS_OF_5),
        };
        let up_to = |max: usize| format!("a number from 1 to {max} with {} peers", self.n_peers);
        expect((1..=max_train).contains(&n_train), "n_train_tuples", n_train, &up_to(max_train))?;
        let n_copies = self.augmented_copies;
        expect(n_copies <= pools::MAX_COPIES, "augmented_copies", n_copies, "a number from 0 to 8")?;
        let is_complete = n_copies == 0 || self.rotated_tuples;
        expect(is_complete, "augmented_copies", n_copies, "0 unless rotated_tuples = true")?;
        let n_test = self.n_test_tuples;
        expect((1..=max_test).contains(&n_test), "n_test_tuples", n_test, &up_to(max_test))?;
        let slots = self.observation_slots;
        let has_room = [0, 3, 5].contains(&slots) && (slots == 0 || slots >= self.n_peers);
        expect(
            has_room,
            "observation_slots",
            slots,
            "0 (one for each peer), or 3 or 5 and not fewer than `n_peers`",
        )
    }
}

/// The game.
#[derive(Clone, Debug)]
pub struct PredatorPrey {
    config: PredatorPreyConfig,
    spec: GameSpec,
    counts: AgentCounts,
    dynamics: Dynamics,
    layout: Layout,
    /// The particles of the eight paths, computed by the first ego that uses them and shared by all.
    particles: OnceLock<Arc<ParticleSet>>,
}

impl PredatorPrey {
    /// The numbers of predators and prey.
    #[inline]
    pub fn agent_counts(&self) -> AgentCounts {
        self.counts
    }

    /// The distance from each prey to its nearest predator.
    #[inline]
    fn distances(&self, world: &World) -> InlineVec<f64, MAX_PREY> {
        let (predators, prey) = world.agents.split_at(self.counts.n_predators);
        let mut distances = [0.0; MAX_PREY];
        for (least, prey) in distances.iter_mut().zip(prey) {
            *least = predators
                .iter()
                .fold(f64::INFINITY, |least, predator| least.min(distance(predator.position, prey.position)));
        }
        InlineVec::of(&distances[..prey.len()])
    }

    #[inline]
    fn is_over(&self, world: &World) -> bool {
        world.n_steps >= self.config.horizon_steps || world.caught.iter().all(|is_caught| *is_caught)
    }
}

impl Game for PredatorPrey {
    const ID: &'static str = "predator-prey";
    const README: &'static str = include_str!("README.md");
    const TRAINING: &'static str = include_str!("training.toml");
    const LEGEND: &'static [&'static str] = &view::LEGEND;
    const PAGE: Option<Page> =
        Some(Page { script: include_str!("page.js"), style: include_str!("page.css") });

    type Config = PredatorPreyConfig;
    type State = World;
    type Peer = PredatorPreyPeer;

    fn new(config: PredatorPreyConfig) -> Result<PredatorPrey, ConfigError> {
        config.check()?;
        let counts = AgentCounts::with_peers(config.n_peers);
        let n_slots = if config.observation_slots == 0 { config.n_peers } else { config.observation_slots };
        let clock = config.observe_time.then_some(config.horizon_steps);
        let layout = Layout::new(counts, AgentCounts::with_peers(n_slots), clock);
        // The names of the agents in texts and drawings.
        let predators = ["predator 1", "predator 2"].into_iter().take(counts.n_predators - 1);
        let prey = ["prey A", "prey B", "prey C"].into_iter().take(counts.n_prey);
        let spec = GameSpec {
            id: Self::ID,
            title: "Predator-Prey-W",
            revision: 1,
            observation_size: layout.observation_size(),
            action_names: &["stay", "east", "west", "north", "south"],
            peer_roles: predators.chain(prey).collect(),
            episodes_per_encounter: config.episodes_per_encounter,
            horizon_steps: config.horizon_steps,
            metric: Metric::Return,
            keypoint: "the ego touches a watchtower",
            nouns: DisplayNames {
                episode: "episode",
                episodes: "episodes",
                score: "reward per episode",
                keypoint: "watchtower",
            },
        };
        let dynamics = Dynamics { counts, control_force: config.control_force, physics: config.physics };
        Ok(PredatorPrey { config, spec, counts, dynamics, layout, particles: OnceLock::new() })
    }

    fn config(&self) -> &PredatorPreyConfig {
        &self.config
    }

    fn spec(&self) -> &GameSpec {
        &self.spec
    }

    #[inline]
    fn initial_state(&self, rng: &mut Stream) -> World {
        let mut within = |extent: f64| [rng.between(-extent, extent), rng.between(-extent, extent)];
        let mut bodies = [Body::default(); MAX_AGENTS];
        let mut obstacles = [Point::default(); MAX_OBSTACLES];
        let bodies = &mut bodies[..self.counts.n_agents()];
        let obstacles = &mut obstacles[..self.config.n_obstacles];
        bodies.iter_mut().for_each(|body| body.position = within(1.0));
        obstacles.iter_mut().for_each(|obstacle| *obstacle = within(0.9));
        World {
            agents: InlineVec::of(bodies),
            obstacles: InlineVec::of(obstacles),
            caught: InlineVec::of(&[false; MAX_PREY][..self.counts.n_prey]),
            n_steps: 0,
        }
    }

    #[inline]
    fn acting_seats(&self, world: &World) -> SeatSet {
        if self.is_over(world) { SeatSet::NONE } else { SeatSet::first(self.counts.n_agents()) }
    }

    #[inline]
    fn apply(&self, world: &mut World, actions: &JointAction) -> MoveOutcome {
        assert!(!self.is_over(world), "the episode is over after {} steps", world.n_steps);
        self.dynamics.advance(&mut world.agents, &world.obstacles, actions);
        world.n_steps += 1;
        let mut total_distance = 0.0;
        for (distance, is_caught) in self.distances(world).iter().zip(world.caught.iter_mut()) {
            // A caught prey costs nothing from the next step on, not in the step in which it is caught.
            if self.config.caught_prey_counts || !*is_caught {
                total_distance += distance;
            }
            *is_caught |= *distance < PREDATOR.size + PREY.size;
        }
        let task_reward = -0.1 * total_distance;
        let ending = if world.caught.iter().all(|is_caught| *is_caught) {
            Some(Ending::Succeeded)
        } else if world.n_steps >= self.config.horizon_steps {
            Some(Ending::TimedOut)
        } else {
            None
        };
        let keypoint_visited = touches_tower(world.agents[Seat::EGO.0].position, PREDATOR.size);
        MoveOutcome { task_reward, ending, keypoint_visited }
    }

    #[inline]
    fn observe(&self, world: &World, seat: Seat, observation: &mut [f32]) {
        let sight = Sight::from(world.agents[seat.0].position, self.counts.body_params(seat.0).size);
        self.layout.observe(world, seat.0, sight, observation);
    }

    fn observe_everything(&self, world: &World, seat: Seat, observation: &mut [f32]) {
        self.layout.observe(world, seat.0, Sight::Everywhere, observation);
    }

    fn check_state(&self, world: &World) -> Result<(), ConfigError> {
        self.contradiction(world)
            .map_or(Ok(()), |reason| Err(ConfigError::ImpossibleState { game: Self::ID, reason }))
    }

    fn render(&self, world: &World) -> String {
        view::render(world, self.counts)
    }

    fn constants(&self) -> Value {
        page::constants(self)
    }

    fn view(&self, world: &World, from: Viewpoint) -> Value {
        page::view(self, world, from)
    }

    fn behaviour_summary(&self, seat: Seat, moves: &[(World, JointAction)]) -> BehaviourSummary {
        page::behaviour_summary(self, seat, moves)
    }

    fn pool(&self) -> PeerPool<PredatorPreySpec> {
        let training = pools::TrainingPoolOptions {
            n_tuples: self.config.n_train_tuples,
            is_rotated: self.config.rotated_tuples,
            n_copies: self.config.augmented_copies,
        };
        pools::official(self.counts, training, self.config.n_test_tuples)
    }

    fn symmetries(&self) -> Option<Symmetries> {
        // The authors' tuples alone are not invariant under quarter turns.
        self.config.rotated_tuples.then(|| self.quarter_turns())
    }

    fn sample_tuple(&self, rng: &mut Stream) -> PeerTuple<PredatorPreySpec> {
        pools::sample(self.counts, rng)
    }

    fn references(&self) -> Vec<(&'static str, Reference<PredatorPrey>)> {
        references::references()
    }
}

/// A bound on coordinates that no agent reaches in the longest possible episode.
const MAX_COORDINATE: f64 = 2000.0;
/// The tolerance of the maximum speed: clipped speeds are rounded, and written states may have fewer digits.
const SPEED_TOLERANCE: f64 = 1e-6;

impl PredatorPrey {
    /// The four rotations of the square.
    fn quarter_turns(&self) -> Symmetries {
        let pool = self.pool();
        let transforms = (0..N_SIDES).map(|n| {
            let class = |slot: usize, class: usize| {
                let is_prey = Seat::of_peer(slot).0 >= self.counts.n_predators;
                if is_prey { pools::rotated_class(class, n) } else { class }
            };
            let classes = pool.n_classes().iter().enumerate();
            SymmetryTransform {
                entries: self.layout.rotated_entries(n),
                actions: (0..self.spec.n_actions() as Action)
                    .map(|action| steering::rotated(action, N_SIDES - n))
                    .collect(),
                classes: classes.map(|(slot, n)| (0..*n).map(|of| class(slot, of)).collect()).collect(),
            }
        });
        Symmetries {
            transforms: transforms.collect(),
            canonical_if_positive: [0, 1].map(|axis| view::OWN_POSITION + axis).to_vec(),
        }
    }

    /// The reason for which no play can lead to this state; `None` for a possible state.
    fn contradiction(&self, world: &World) -> Option<String> {
        let counts = [
            ("agents", world.agents.len(), self.counts.n_agents()),
            ("obstacles", world.obstacles.len(), self.config.n_obstacles),
            ("caught flags", world.caught.len(), self.counts.n_prey),
        ];
        if let Some((what, found, expected)) = counts.iter().find(|(_, found, expected)| found != expected) {
            return Some(format!("{found} {what}, there should be {expected}"));
        }
        if world.n_steps > self.config.horizon_steps {
            return Some(format!("{} steps, the horizon is {}", world.n_steps, self.config.horizon_steps));
        }
        // The comparison is false for NaN.
        let is_near = |place: &Point| place.iter().all(|coordinate| coordinate.abs() <= MAX_COORDINATE);
        for (index, obstacle) in world.obstacles.iter().enumerate() {
            if !is_near(obstacle) {
                return Some(format!("obstacle {index} is at {obstacle:?}"));
            }
        }
        for (agent, body) in world.agents.iter().enumerate() {
            if !is_near(&body.position) {
                return Some(format!("agent {agent} is at {:?}", body.position));
            }
            let (speed, max_speed) =
                (bodies::length(body.velocity), self.counts.body_params(agent).max_speed);
            let is_possible = speed <= max_speed + SPEED_TOLERANCE;
            if !is_possible {
                return Some(format!("agent {agent} has the speed {speed}, at most {max_speed} is possible"));
            }
        }
        None
    }
}
