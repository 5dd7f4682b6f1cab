//! Where one prey may be and on which path: a cloud of guesses while it has not been seen, a few tracks afterwards.
//!
//! Prey take no notice of anybody, so each can be guessed at alone. Pushes by other agents are not foreseen; a guess
//! that fails costs a track most of its weight, never all of it.

use super::pursuit::{FORESIGHT, Way};
use crate::predator_prey::bodies::{Body, Dynamics, PREY, Point, STEP_SECS, distance, from_to, length};
use crate::predator_prey::peers::prey::{self, N_PATHS, N_WAYPOINTS, waypoint_of};
use crate::predator_prey::watchtowers::SIGHT_RADIUS;

/// Starts per path that the cloud is made of.
const N_STARTS: usize = 64;
/// What is left of a guess's weight when it turns out wrong: contacts that nobody foresaw do happen.
const DOUBT: f64 = 0.03;
/// Tracks lighter than this are dropped.
const FORGOTTEN: f64 = 1e-3;
/// A guessed position within this distance of the truth was right.
const HIT: f64 = 0.004;

/// A prey in a guess: its body, its path and the point of it that it walks to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Walker {
    pub body: Body,
    pub path: usize,
    pub waypoint: usize,
}

impl Walker {
    #[inline]
    pub(crate) fn walk(&mut self, laws: &Dynamics, obstacles: &[Point]) {
        let action = prey::act(self.body.position, self.path, &mut self.waypoint);
        laws.advance_alone(&mut self.body, PREY, obstacles, action);
    }
}

/// Every path walked from the same even spread of starts, step by step. Made once, shared by all prey and episodes.
///
/// The positions stand there three times, because they are read in three ways and often.
#[derive(Clone, Debug)]
pub(crate) struct ParticleSet {
    n_moments: usize,
    /// By moment, then by guess: a path and a start.
    walkers: Vec<Walker>,
    /// Positions alone, by moment, then by guess.
    positions: Vec<Point>,
    /// Positions alone, by guess, then by moment.
    ways: Vec<Point>,
}

const N_GUESSES: usize = N_PATHS * N_STARTS;

impl ParticleSet {
    pub(crate) fn new(laws: &Dynamics, horizon_steps: usize) -> ParticleSet {
        // An episode may be long, but a prey that was not met for so long is somewhere on its path in any case.
        let n_moments = horizon_steps.min(100) + 1 + FORESIGHT;
        let mut now: Vec<Walker> = (0..N_GUESSES)
            .map(|guess| Walker { body: spread(guess % N_STARTS), path: guess / N_STARTS, waypoint: 0 })
            .collect();
        let mut walkers = Vec::with_capacity(N_GUESSES * n_moments);
        for _ in 0..n_moments {
            walkers.extend_from_slice(&now);
            now.iter_mut().for_each(|walker| walker.walk(laws, &[]));
        }
        let positions: Vec<Point> = walkers.iter().map(|walker| walker.body.position).collect();
        let of_guess = |guess: usize| positions.iter().skip(guess).step_by(N_GUESSES).copied();
        let ways = (0..N_GUESSES).flat_map(of_guess).collect();
        ParticleSet { n_moments, walkers, positions, ways }
    }

    /// The way that guess `guess` goes from this moment on.
    pub(crate) fn way(&self, guess: usize, moment: usize) -> Way {
        let first = (moment + 1).min(self.n_moments - FORESIGHT);
        let way = &self.ways[guess * self.n_moments + first..][..FORESIGHT];
        way.try_into().expect("a slice of that length")
    }

    fn walkers(&self, moment: usize) -> &[Walker] {
        &self.walkers[moment.min(self.n_moments - 1) * N_GUESSES..][..N_GUESSES]
    }

    fn positions(&self, moment: usize) -> &[Point] {
        &self.positions[moment.min(self.n_moments - 1) * N_GUESSES..][..N_GUESSES]
    }
}

/// Point `index` of a sequence that fills the square evenly (additive recurrence with the plastic number).
fn spread(index: usize) -> Body {
    let part = |step: f64| ((index as f64 + 0.5) * step).fract() * 2.0 - 1.0;
    Body { position: [part(0.754_877_666_246_692_8), part(0.569_840_290_998_053_2)], velocity: [0.0; 2] }
}

/// What is known of one prey in the running episode.
#[derive(Clone, Debug)]
pub(crate) enum PreyBelief {
    /// It has not been seen: a weight for each guess of the cloud.
    Unseen(Vec<f64>),
    /// It has been seen: where it should be now, for each path and point of it that it may be walking to.
    Tracked(Vec<(Walker, f64)>),
}

impl PreyBelief {
    /// At the start of an episode, with a weight for each path.
    pub(crate) fn unseen(paths: &[f64; N_PATHS]) -> PreyBelief {
        let weights = paths.iter().flat_map(|weight| [weight / N_STARTS as f64; N_STARTS]).collect();
        PreyBelief::Unseen(weights)
    }

    /// Whether it has not been seen in this episode.
    pub(crate) fn is_unseen(&self) -> bool {
        matches!(self, PreyBelief::Unseen(_))
    }

    /// How likely each path is.
    pub(crate) fn paths(&self) -> [f64; N_PATHS] {
        let mut paths = [0.0; N_PATHS];
        match self {
            PreyBelief::Unseen(weights) => {
                for (guess, weight) in weights.iter().enumerate() {
                    paths[guess / N_STARTS] += weight;
                }
            }
            PreyBelief::Tracked(tracks) => {
                for (walker, weight) in tracks {
                    paths[walker.path] += weight;
                }
            }
        }
        paths
    }

    /// Where it should be now, if it has been seen.
    pub(crate) fn likeliest(&self) -> Option<Point> {
        match self {
            PreyBelief::Unseen(_) => None,
            PreyBelief::Tracked(tracks) => tracks
                .iter()
                .max_by(|one, other| one.1.total_cmp(&other.1))
                .map(|(walker, _)| walker.body.position),
        }
    }

    /// It is in sight, as `body`, at this moment of the episode.
    pub(crate) fn saw(&mut self, body: Body, moment: usize, laws: &Dynamics, cloud: &ParticleSet) {
        match self {
            PreyBelief::Unseen(weights) => {
                let tracks = first_sight(weights, body, moment, laws, cloud);
                *self = PreyBelief::Tracked(tracks);
            }
            PreyBelief::Tracked(tracks) => {
                for (walker, weight) in tracks.iter_mut() {
                    let miss = distance(walker.body.position, body.position);
                    *weight *= DOUBT + if miss < HIT { 1.0 } else { 0.1 * (-(miss / 0.1).powi(2)).exp() };
                    walker.body = body;
                }
            }
        }
        self.tidy();
    }

    /// It is not in sight, and only what is near would be.
    pub(crate) fn missed(&mut self, from: Point, moment: usize, cloud: &ParticleSet) {
        let is_near = |place: Point| {
            let way = from_to(place, from);
            way[0] * way[0] + way[1] * way[1] <= SIGHT_RADIUS * SIGHT_RADIUS
        };
        match self {
            PreyBelief::Unseen(weights) => {
                let mut is_any_near = false;
                for (weight, place) in weights.iter_mut().zip(cloud.positions(moment)) {
                    let is_near = is_near(*place);
                    is_any_near |= is_near;
                    *weight *= if is_near { DOUBT } else { 1.0 };
                }
                if !is_any_near {
                    return;
                }
            }
            PreyBelief::Tracked(tracks) => {
                let mut left = 0.0;
                for (walker, weight) in tracks.iter_mut() {
                    if is_near(walker.body.position) {
                        *weight *= DOUBT;
                    }
                    left += *weight;
                }
                // Nothing that was believed of it can be true: it was held up somewhere on its path.
                if left < 2.0 * DOUBT {
                    let paths = self.paths().map(|weight| weight / left);
                    *self = PreyBelief::Tracked(anywhere_on(&paths, from));
                }
            }
        }
        self.tidy();
    }

    /// A step goes by.
    pub(crate) fn walk_on(&mut self, laws: &Dynamics, obstacles: &[Point]) {
        if let PreyBelief::Tracked(tracks) = self {
            tracks.iter_mut().for_each(|(walker, _)| walker.walk(laws, obstacles));
        }
    }

    /// Makes weights sum to 1, and merges and drops tracks.
    fn tidy(&mut self) {
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
                merged.retain(|(_, weight)| *weight > FORGOTTEN * total);
                let total: f64 = merged.iter().map(|(_, weight)| weight).sum();
                merged.iter_mut().for_each(|(_, weight)| *weight /= total);
                *tracks = merged;
            }
        }
    }
}

/// Which paths and points explain a prey seen for the first time: guesses of the cloud that are near and move alike
/// speak for theirs, and its velocity shows which way it pushed last.
fn first_sight(
    weights: &[f64],
    body: Body,
    moment: usize,
    laws: &Dynamics,
    cloud: &ParticleSet,
) -> Vec<(Walker, f64)> {
    let mut votes = [[0.0; N_WAYPOINTS]; N_PATHS];
    for (weight, walker) in weights.iter().zip(cloud.walkers(moment)) {
        let miss = distance(walker.body.position, body.position) / 0.12;
        let turn = length(from_to(walker.body.velocity, body.velocity)) / 0.4;
        votes[walker.path][walker.waypoint] += weight * ((-miss * miss - turn * turn).exp() + 1e-4);
    }
    let before = [0, 1].map(|axis| body.position[axis] - STEP_SECS * body.velocity[axis]);
    let mut tracks = Vec::new();
    for (path, of_path) in votes.iter().enumerate() {
        for (waypoint, vote) in of_path.iter().enumerate().filter(|(_, vote)| **vote > 0.0) {
            let mut walker = Walker { body, path, waypoint };
            let is_explained = moment == 0 || {
                let action = prey::act(before, path, &mut walker.waypoint);
                laws.may_lead_to(body.velocity, PREY, action)
            };
            tracks.push((walker, if is_explained { *vote } else { vote * DOUBT }));
        }
    }
    tracks
}

/// Guesses all along the likely paths, both ways, out of sight.
fn anywhere_on(paths: &[f64; N_PATHS], from: Point) -> Vec<(Walker, f64)> {
    let mut tracks = Vec::new();
    for (path, weight) in paths.iter().enumerate().filter(|(_, weight)| **weight > 0.02) {
        for waypoint in 0..N_WAYPOINTS {
            let (last, next) = (waypoint_of(path, (waypoint + 3) % N_WAYPOINTS), waypoint_of(path, waypoint));
            for part in [0.15, 0.4, 0.65, 0.9] {
                let position = [0, 1].map(|axis| last[axis] + part * (next[axis] - last[axis]));
                let body = Body { position, velocity: [0.0; 2] };
                let is_hidden = distance(position, from) > SIGHT_RADIUS;
                tracks.push((
                    Walker { body, path, waypoint },
                    if is_hidden { *weight } else { weight * DOUBT },
                ));
            }
        }
    }
    tracks
}
