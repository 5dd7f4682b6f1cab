//! The belief about the path and position of one prey: particles until it is seen, a few tracks afterwards.
//!
//! Prey do not react to other agents, so their beliefs are independent. Contacts with other agents are not predicted: a wrong
//! prediction reduces the weight of a track, but not to 0.

use super::pursuit::{PLANNING_STEPS, Trajectory};
use crate::predator_prey::bodies::{Body, Dynamics, PREY, Point, STEP_SECS, distance, from_to, length};
use crate::predator_prey::peers::prey::{self, N_PATHS, N_WAYPOINTS, official_path, waypoint_of};
use crate::predator_prey::watchtowers::SIGHT_RADIUS;

/// The number of start positions per path of the particles.
const N_STARTS: usize = 64;
/// The likelihood of a wrong prediction, since contacts are not predicted.
const WRONG_LIKELIHOOD: f64 = 0.03;
/// The minimum share of the weight of a track; lighter tracks are dropped.
const MIN_TRACK_WEIGHT: f64 = 1e-3;
/// Maximum error of a correct prediction.
const MAX_ERROR: f64 = 0.004;

/// A hypothesis about a prey: its body, its path and its next waypoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Walker {
    pub body: Body,
    pub path: usize,
    pub waypoint: usize,
}

impl Walker {
    /// Predicts the next step.
    #[inline]
    pub(crate) fn walk(&mut self, dynamics: &Dynamics, obstacles: &[Point]) {
        let action = prey::act(self.body.position, self.path, &mut self.waypoint);
        dynamics.advance_alone(&mut self.body, PREY, obstacles, action);
    }
}

/// Simulated walks on every path from evenly spread start positions. Computed once and shared by all prey and episodes.
///
/// Positions are stored in three layouts, because all three are read often.
#[derive(Clone, Debug)]
pub(crate) struct ParticleSet {
    n_steps: usize,
    /// The path or line that is walked in the place of each path of the game.
    pub walked: [usize; N_PATHS],
    /// The particles, by step, then by index.
    walkers: Vec<Walker>,
    /// Positions, by step, then by index.
    positions: Vec<Point>,
    /// Positions, by index, then by step.
    trajectories: Vec<Point>,
}

/// The number of particles; index = path × `N_STARTS` + start.
const N_PARTICLES: usize = N_PATHS * N_STARTS;

impl ParticleSet {
    pub(crate) fn new(dynamics: &Dynamics, horizon_steps: usize, walked: [usize; N_PATHS]) -> ParticleSet {
        // After 100 steps an unseen prey may be anywhere on its path, so that more steps are not needed.
        let n_steps = horizon_steps.min(100) + 1 + PLANNING_STEPS;
        let mut now: Vec<Walker> = (0..N_PARTICLES)
            .map(|particle| Walker {
                body: spread(particle % N_STARTS),
                path: walked[particle / N_STARTS],
                waypoint: 0,
            })
            .collect();
        let mut walkers = Vec::with_capacity(N_PARTICLES * n_steps);
        for _ in 0..n_steps {
            walkers.extend_from_slice(&now);
            now.iter_mut().for_each(|walker| walker.walk(dynamics, &[]));
        }
        let positions: Vec<Point> = walkers.iter().map(|walker| walker.body.position).collect();
        let of_particle = |particle: usize| positions.iter().skip(particle).step_by(N_PARTICLES).copied();
        let trajectories = (0..N_PARTICLES).flat_map(of_particle).collect();
        ParticleSet { n_steps, walked, walkers, positions, trajectories }
    }

    /// The next positions of a particle.
    pub(crate) fn trajectory(&self, particle: usize, step: usize) -> Trajectory {
        let first = (step + 1).min(self.n_steps - PLANNING_STEPS);
        let trajectory = &self.trajectories[particle * self.n_steps + first..][..PLANNING_STEPS];
        trajectory.try_into().expect("a slice of that length")
    }

    fn walkers(&self, step: usize) -> &[Walker] {
        &self.walkers[step.min(self.n_steps - 1) * N_PARTICLES..][..N_PARTICLES]
    }

    fn positions(&self, step: usize) -> &[Point] {
        &self.positions[step.min(self.n_steps - 1) * N_PARTICLES..][..N_PARTICLES]
    }
}

/// Start `index` of a low-discrepancy sequence in the square (multiples of powers of the plastic number, modulo 1).
fn spread(index: usize) -> Body {
    let part = |step: f64| ((index as f64 + 0.5) * step).fract() * 2.0 - 1.0;
    Body { position: [part(0.754_877_666_246_692_8), part(0.569_840_290_998_053_2)], velocity: [0.0; 2] }
}

/// The belief about one prey in the current episode.
#[derive(Clone, Debug)]
pub(crate) enum PreyBelief {
    /// The prey was not seen: a weight for each particle.
    Unseen(Vec<f64>),
    /// The prey was seen: hypotheses with their weights.
    Tracked(Vec<(Walker, f64)>),
}

impl PreyBelief {
    /// The belief at the start of an episode, with a probability for each path.
    pub(crate) fn unseen(paths: &[f64; N_PATHS]) -> PreyBelief {
        let weights = paths.iter().flat_map(|weight| [weight / N_STARTS as f64; N_STARTS]).collect();
        PreyBelief::Unseen(weights)
    }

    /// Whether the prey was not seen in this episode.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self, PreyBelief::Unseen(_))
    }

    /// The probability of each path.
    pub(crate) fn paths(&self) -> [f64; N_PATHS] {
        let mut paths = [0.0; N_PATHS];
        match self {
            PreyBelief::Unseen(weights) => {
                for (particle, weight) in weights.iter().enumerate() {
                    paths[particle / N_STARTS] += weight;
                }
            }
            PreyBelief::Tracked(tracks) => {
                for (walker, weight) in tracks {
                    paths[official_path(walker.path)] += weight;
                }
            }
        }
        paths
    }

    /// The most likely position; `None` if the prey was not seen.
    pub(crate) fn most_likely_position(&self) -> Option<Point> {
        match self {
            PreyBelief::Unseen(_) => None,
            PreyBelief::Tracked(tracks) => tracks
                .iter()
                .max_by(|one, other| one.1.total_cmp(&other.1))
                .map(|(walker, _)| walker.body.position),
        }
    }

    /// Updates the belief with the prey in sight.
    pub(crate) fn observe_seen(
        &mut self,
        body: Body,
        step: usize,
        dynamics: &Dynamics,
        particles: &ParticleSet,
    ) {
        match self {
            PreyBelief::Unseen(weights) => {
                let tracks = first_sight(weights, body, step, dynamics, particles);
                *self = PreyBelief::Tracked(tracks);
            }
            PreyBelief::Tracked(tracks) => {
                for (walker, weight) in tracks.iter_mut() {
                    let miss = distance(walker.body.position, body.position);
                    *weight *= WRONG_LIKELIHOOD
                        + if miss < MAX_ERROR { 1.0 } else { 0.1 * (-(miss / 0.1).powi(2)).exp() };
                    walker.body = body;
                }
            }
        }
        self.normalise();
    }

    /// Updates the belief with the prey out of sight of an ego at `from`.
    pub(crate) fn observe_unseen(&mut self, from: Point, step: usize, particles: &ParticleSet) {
        let is_near = |place: Point| {
            let offset = from_to(place, from);
            offset[0] * offset[0] + offset[1] * offset[1] <= SIGHT_RADIUS * SIGHT_RADIUS
        };
        match self {
            PreyBelief::Unseen(weights) => {
                let mut is_any_near = false;
                for (weight, place) in weights.iter_mut().zip(particles.positions(step)) {
                    let is_near = is_near(*place);
                    is_any_near |= is_near;
                    *weight *= if is_near { WRONG_LIKELIHOOD } else { 1.0 };
                }
                if !is_any_near {
                    return;
                }
            }
            PreyBelief::Tracked(tracks) => {
                let mut left = 0.0;
                for (walker, weight) in tracks.iter_mut() {
                    if is_near(walker.body.position) {
                        *weight *= WRONG_LIKELIHOOD;
                    }
                    left += *weight;
                }
                // No hypothesis is possible any more: contacts have delayed the prey somewhere on its path.
                if left < 2.0 * WRONG_LIKELIHOOD {
                    let paths = self.paths().map(|weight| weight / left);
                    *self = PreyBelief::Tracked(anywhere_on(&paths, &particles.walked, from));
                }
            }
        }
        self.normalise();
    }

    /// Predicts the next step.
    pub(crate) fn predict_step(&mut self, dynamics: &Dynamics, obstacles: &[Point]) {
        if let PreyBelief::Tracked(tracks) = self {
            tracks.iter_mut().for_each(|(walker, _)| walker.walk(dynamics, obstacles));
        }
    }

    /// Normalises the weights, merges equal tracks and drops light ones.
    fn normalise(&mut self) {
        match self {
            PreyBelief::Unseen(weights) => {
                let total: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|weight| *weight /= total);
            }
            PreyBelief::Tracked(tracks) => {
                let mut merged: Vec<(Walker, f64)> = Vec::with_capacity(tracks.len());
                for (walker, weight) in tracks.iter() {
                    match merged.iter_mut().find(|(other, _)| other == walker) {
                        Some((_, sum)) => *sum += weight,
                        None => merged.push((*walker, *weight)),
                    }
                }
                let total: f64 = merged.iter().map(|(_, weight)| weight).sum();
                merged.retain(|(_, weight)| *weight > MIN_TRACK_WEIGHT * total);
                let total: f64 = merged.iter().map(|(_, weight)| weight).sum();
                merged.iter_mut().for_each(|(_, weight)| *weight /= total);
                *tracks = merged;
            }
        }
    }
}

/// The hypotheses that explain a prey seen for the first time. Particles with a similar position and velocity give weight to
/// their path and waypoint, and the velocity shows the direction of the last push.
fn first_sight(
    weights: &[f64],
    body: Body,
    step: usize,
    dynamics: &Dynamics,
    particles: &ParticleSet,
) -> Vec<(Walker, f64)> {
    let mut votes = [[0.0; N_WAYPOINTS]; N_PATHS];
    for (particle, (weight, walker)) in weights.iter().zip(particles.walkers(step)).enumerate() {
        let miss = distance(walker.body.position, body.position) / 0.12;
        let turn = length(from_to(walker.body.velocity, body.velocity)) / 0.4;
        votes[particle / N_STARTS][walker.waypoint] += weight * ((-miss * miss - turn * turn).exp() + 1e-4);
    }
    let before = [0, 1].map(|axis| body.position[axis] - STEP_SECS * body.velocity[axis]);
    let mut tracks = Vec::new();
    for (path, of_path) in particles.walked.into_iter().zip(&votes) {
        for (waypoint, vote) in of_path.iter().enumerate().filter(|(_, vote)| **vote > 0.0) {
            let mut walker = Walker { body, path, waypoint };
            let is_explained = step == 0 || {
                let action = prey::act(before, path, &mut walker.waypoint);
                dynamics.may_lead_to(body.velocity, PREY, action)
            };
            tracks.push((walker, if is_explained { *vote } else { vote * WRONG_LIKELIHOOD }));
        }
    }
    tracks
}

/// Hypotheses along the likely paths, in both directions, out of sight of an ego at `from`.
fn anywhere_on(paths: &[f64; N_PATHS], walked: &[usize; N_PATHS], from: Point) -> Vec<(Walker, f64)> {
    let mut tracks = Vec::new();
    for (path, weight) in walked.iter().copied().zip(paths).filter(|(_, weight)| **weight > 0.02) {
        for waypoint in 0..N_WAYPOINTS {
            let (last, next) = (waypoint_of(path, (waypoint + 3) % N_WAYPOINTS), waypoint_of(path, waypoint));
            for part in [0.15, 0.4, 0.65, 0.9] {
                let position = [0, 1].map(|axis| last[axis] + part * (next[axis] - last[axis]));
                let body = Body { position, velocity: [0.0; 2] };
                let is_hidden = distance(position, from) > SIGHT_RADIUS;
                tracks.push((
                    Walker { body, path, waypoint },
                    if is_hidden { *weight } else { weight * WRONG_LIKELIHOOD },
                ));
            }
        }
    }
    tracks
}
