//! The beliefs of an ego about its peers and the current episode, and their updates.
//!
//! The decisions are in `bayes`.

use std::sync::Arc;

use super::preferences::Preferences;
use super::prey_belief::{ParticleSet, PreyBelief};
use crate::game::Action;
use crate::predator_prey::PredatorPrey;
use crate::predator_prey::bodies::{
    AgentCounts, Body, Dynamics, MAX_OBSTACLES, MAX_PREY, OBSTACLE_SIZE, PREDATOR, PREY, Point, STEP_SECS,
    distance, from_to, length,
};
use crate::predator_prey::peers::prey::{self, N_PATHS};
use crate::predator_prey::peers::{PredatorPreySpec, predator};
use crate::predator_prey::view::{Layout, Seen};
use crate::predator_prey::watchtowers::SIGHT_RADIUS;

/// The constants of the game that the ego uses.
#[derive(Clone, Debug)]
pub(crate) struct GameConstants {
    pub counts: AgentCounts,
    pub dynamics: Dynamics,
    pub layout: Layout,
    pub horizon_steps: usize,
    pub caught_prey_counts: bool,
    pub particles: Arc<ParticleSet>,
}

impl GameConstants {
    /// The constants for an ego that knows its peers, or for one that does not. Only an ego that knows its peers knows of paths
    /// that are not among the eight of the game.
    pub(crate) fn of(game: &PredatorPrey, specs: Option<&[PredatorPreySpec]>) -> GameConstants {
        let paths_of_game = std::array::from_fn(|path| path);
        let mut walked = paths_of_game;
        for spec in specs.unwrap_or_default() {
            if let PredatorPreySpec::Prey { path } = *spec {
                walked[prey::official_path(path)] = path;
            }
        }
        let make_particles = || Arc::new(ParticleSet::new(&game.dynamics, game.config.horizon_steps, walked));
        let particles = if walked == paths_of_game {
            Arc::clone(game.particles.get_or_init(make_particles))
        } else {
            make_particles()
        };
        GameConstants {
            counts: game.counts,
            dynamics: game.dynamics,
            layout: game.layout,
            horizon_steps: game.config.horizon_steps,
            caught_prey_counts: game.config.caught_prey_counts,
            particles,
        }
    }
}

/// The beliefs of an ego. Paths and preferences last for the encounter, everything else for the episode.
#[derive(Clone, Debug)]
pub(crate) struct Knowledge {
    pub preferences: Preferences,
    /// The belief about the path and position of each prey.
    pub prey_beliefs: Vec<PreyBelief>,
    /// The expected bodies of the other predators, after they were seen.
    pub predators: Vec<Option<Body>>,
    pub obstacles: Vec<Point>,
    /// Whether the ego has seen each prey caught.
    pub caught: [bool; MAX_PREY],
    /// The number of steps with all agents in sight.
    pub n_views: usize,
    /// The step of the episode.
    pub step: usize,
    last: Option<PreviousStep>,
}

/// The observation and action of the previous step.
#[derive(Clone, Debug)]
struct PreviousStep {
    seen: Seen,
    action: Action,
    /// The most likely positions of the prey.
    prey: Vec<Option<Point>>,
}

impl Knowledge {
    /// The beliefs at the start of an encounter with unknown peers, or with peers of these specs.
    pub(crate) fn new(counts: AgentCounts, specs: Option<&[PredatorPreySpec]>) -> Knowledge {
        let any_path = [1.0 / N_PATHS as f64; N_PATHS];
        let mut knowledge = Knowledge {
            preferences: Preferences::unknown(counts),
            prey_beliefs: vec![PreyBelief::unseen(&any_path); counts.n_prey],
            predators: vec![None; counts.n_predators - 1],
            obstacles: Vec::new(),
            caught: [false; MAX_PREY],
            n_views: 0,
            step: 0,
            last: None,
        };
        for (slot, spec) in specs.unwrap_or_default().iter().enumerate() {
            match *spec {
                PredatorPreySpec::Predator { prefers } => knowledge.preferences.reveal(slot, prefers),
                PredatorPreySpec::Prey { path } => {
                    let mut paths = [0.0; N_PATHS];
                    paths[prey::official_path(path)] = 1.0;
                    knowledge.prey_beliefs[slot + 1 - counts.n_predators] = PreyBelief::unseen(&paths);
                }
            }
        }
        knowledge
    }

    /// Updates the beliefs with an observation.
    pub(crate) fn observe(&mut self, seen: &Seen, constants: &GameConstants) {
        let others = &seen.others[1..];
        self.n_views += usize::from(others.iter().all(Option::is_some));
        seen.obstacles.iter().flatten().for_each(|obstacle| self.add_obstacle(*obstacle));
        self.infer_obstacle(seen, constants);
        let (predators, prey) = others.split_at(constants.counts.n_predators - 1);
        for (slot, predator) in predators.iter().enumerate() {
            let is_near = |body: Body| distance(body.position, seen.own.position) < SIGHT_RADIUS;
            match *predator {
                Some(now) => {
                    self.observe_predator(slot, now, prey, constants);
                    self.predators[slot] = Some(now);
                }
                // It is not at its expected position.
                None if self.predators[slot].is_some_and(is_near) => self.predators[slot] = None,
                None => {}
            }
        }
        self.preferences.observe_distances(self.step, predators, prey, seen.own.position);
        for (index, body) in prey.iter().enumerate() {
            match body {
                Some(body) => {
                    self.prey_beliefs[index].observe_seen(
                        *body,
                        self.step,
                        &constants.dynamics,
                        &constants.particles,
                    );
                    let touches = |predator: &Body| {
                        distance(predator.position, body.position) < PREDATOR.size + PREY.size
                    };
                    self.caught[index] |= touches(&seen.own) || predators.iter().flatten().any(touches);
                }
                None => self.prey_beliefs[index].observe_unseen(
                    seen.own.position,
                    self.step,
                    &constants.particles,
                ),
            }
        }
    }

    /// Updates the beliefs about the prey of a predator in sight with its last move.
    fn observe_predator(&mut self, slot: usize, now: Body, prey: &[Option<Body>], constants: &GameConstants) {
        let agent = 1 + slot;
        let known_before =
            self.last.as_ref().and_then(|last| last.seen.others[agent].map(|body| (body, last)));
        let Some((before, last)) = known_before else {
            self.preferences.observe_appearance(slot, now, prey, self.step, &constants.dynamics);
            return;
        };
        // A move with a contact says nothing about the preference.
        let others = last.seen.others.iter().enumerate().filter(|(other, _)| *other != agent);
        let mut bodies = others.filter_map(|(_, body)| *body).chain([last.seen.own]);
        if bodies.any(|body| distance(body.position, before.position) < 2.0 * PREDATOR.size + 0.02) {
            return;
        }
        self.preferences.observe_move(slot, [before, now], &last.prey, &constants.dynamics, &self.obstacles);
    }

    /// Infers an obstacle from its contact force: the ego touches an obstacle before its centre is in sight. A difference from
    /// the predicted motion, without an agent nearby, gives the direction and the distance of the centre.
    fn infer_obstacle(&mut self, seen: &Seen, constants: &GameConstants) {
        let Some(last) = &self.last else { return };
        let own = last.seen.own;
        let mut others = last.seen.others.iter().flatten();
        let has_company = others.any(|other| distance(other.position, own.position) < SIGHT_RADIUS);
        if has_company || self.obstacles.len() == MAX_OBSTACLES {
            return;
        }
        let mut expected = own;
        constants.dynamics.advance_alone(&mut expected, PREDATOR, &self.obstacles, last.action);
        let push = from_to(expected.velocity, seen.own.velocity).map(|part| part / STEP_SECS);
        let strength = length(push);
        if strength > 0.5 {
            // A force of 1 is an overlap of 0.01. A clipped speed makes the force look smaller.
            let apart = PREDATOR.size + OBSTACLE_SIZE - 0.01 * strength.min(10.0);
            self.add_obstacle([0, 1].map(|axis| own.position[axis] - push[axis] / strength * apart));
        }
    }

    fn add_obstacle(&mut self, place: Point) {
        if let Some(known) = self.obstacles.iter_mut().find(|known| distance(**known, place) < 0.1) {
            *known = place;
            return;
        }
        if self.obstacles.len() == MAX_OBSTACLES {
            self.obstacles.remove(0);
        }
        self.obstacles.push(place);
    }

    /// Predicts the next step, after the ego's action.
    pub(crate) fn predict_step(&mut self, seen: Seen, action: Action, dynamics: &Dynamics) {
        let prey: Vec<Option<Point>> =
            self.prey_beliefs.iter().map(PreyBelief::most_likely_position).collect();
        for (slot, predator) in self.predators.iter_mut().enumerate() {
            if let (Some(body), Some(chased)) = (predator, prey[self.preferences.most_likely_prey(slot)]) {
                let action = predator::act(body.position, chased);
                dynamics.advance_alone(body, PREDATOR, &self.obstacles, action);
            }
        }
        self.prey_beliefs.iter_mut().for_each(|belief| belief.predict_step(dynamics, &self.obstacles));
        self.last = Some(PreviousStep { seen, action, prey });
        self.step += 1;
    }

    /// Forgets the episode, and keeps the beliefs about paths and preferences.
    pub(crate) fn end_episode(&mut self) {
        // Every path keeps a positive weight, so that later episodes can correct a mistake.
        let smoothed = |paths: [f64; N_PATHS]| paths.map(|weight| 0.98 * weight + 0.02 / N_PATHS as f64);
        let alone: Vec<[f64; N_PATHS]> =
            self.prey_beliefs.iter().map(|prey| smoothed(prey.paths())).collect();
        self.prey_beliefs = distinct(&alone).iter().map(PreyBelief::unseen).collect();
        self.predators.fill(None);
        self.obstacles.clear();
        self.caught = [false; MAX_PREY];
        (self.n_views, self.step, self.last) = (0, 0, None);
    }
}

/// The probabilities of the paths of each prey, given independent probabilities `alone` and the condition that all paths are
/// different.
fn distinct(alone: &[[f64; N_PATHS]]) -> Vec<[f64; N_PATHS]> {
    let mut sums = vec![[0.0; N_PATHS]; alone.len()];
    add_choices(alone, &mut Vec::with_capacity(MAX_PREY), 1.0, &mut sums);
    for sum in &mut sums {
        let total: f64 = sum.iter().sum();
        sum.iter_mut().for_each(|weight| *weight /= total);
    }
    sums
}

fn add_choices(alone: &[[f64; N_PATHS]], taken: &mut Vec<usize>, weight: f64, sums: &mut [[f64; N_PATHS]]) {
    let prey = taken.len();
    if prey == alone.len() {
        taken.iter().zip(sums).for_each(|(path, sum)| sum[*path] += weight);
        return;
    }
    for path in 0..N_PATHS {
        if !taken.contains(&path) {
            taken.push(path);
            add_choices(alone, taken, weight * alone[prey][path], sums);
            taken.pop();
        }
    }
}
