//! Bodies on the plane: who takes part, how large and fast they are, how they push each other and move.
//!
//! What a body can see is in `watchtowers`; where the scripted ones want to go is in `steering` and `peers`.

use serde::{Deserialize, Serialize};

use super::inline_vec::InlineVec;
use crate::game::{Action, JointAction};

/// A place or a velocity on the plane, as (x, y).
pub type Point = [f64; 2];

/// The most agents there can be: three predators and three prey.
pub const MAX_AGENTS: usize = 6;
/// The most prey there can be.
pub const MAX_PREY: usize = 3;
/// The most obstacles there can be.
pub const MAX_OBSTACLES: usize = 2;

/// Stay where you are, as far as friction and the others allow.
pub const STAY: Action = 0;
/// Push towards +x.
pub const EAST: Action = 1;
/// Push towards −x.
pub const WEST: Action = 2;
/// Push towards +y.
pub const NORTH: Action = 3;
/// Push towards −y.
pub const SOUTH: Action = 4;

/// The direction of each action.
pub const DIRECTIONS: [Point; 5] = [[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]];

/// Length of a step in time.
pub const STEP_SECS: f64 = 0.1;
const DAMPING: f64 = 0.25;
const CONTACT_FORCE: f64 = 100.0;
const CONTACT_MARGIN: f64 = 0.001;
/// Deviation D1: beyond this gap two bodies push each other with less than 1e-18, which no sum of the others' forces can feel.
const CONTACT_REACH: f64 = 0.04;
/// Radius of an obstacle.
pub const OBSTACLE_SIZE: f64 = 0.2;

/// What an agent does for a living, and what its body is like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyParams {
    /// Radius.
    pub size: f64,
    /// How strongly it pushes.
    pub accel: f64,
    /// The speed it never exceeds.
    pub max_speed: f64,
}

/// The ego and the predators among its peers.
pub const PREDATOR: BodyParams = BodyParams { size: 0.075, accel: 3.0, max_speed: 1.0 };
/// Those who walk their paths.
pub const PREY: BodyParams = BodyParams { size: 0.05, accel: 4.0, max_speed: 1.3 };

/// Who takes part: predators come first, the ego at their head, then the prey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCounts {
    /// Predators, the ego included.
    pub n_predators: usize,
    /// Prey.
    pub n_prey: usize,
}

impl AgentCounts {
    /// The cast with `n_peers` peers: half of all agents are prey.
    pub fn with_peers(n_peers: usize) -> AgentCounts {
        let n_prey = n_peers.div_ceil(2);
        AgentCounts { n_predators: 1 + n_peers - n_prey, n_prey }
    }

    /// Everybody.
    #[inline]
    pub fn n_agents(self) -> usize {
        self.n_predators + self.n_prey
    }

    /// The body of agent `agent`.
    #[inline]
    pub fn build(self, agent: usize) -> BodyParams {
        if agent < self.n_predators { PREDATOR } else { PREY }
    }
}

/// One agent's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Where it is.
    pub position: Point,
    /// Where it is going.
    pub velocity: Point,
}

/// A point in play. What the prey have in mind (the next point of their path) is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The ego, the other predators, the prey.
    pub agents: InlineVec<Body, MAX_AGENTS>,
    /// Where the obstacles stand.
    pub obstacles: InlineVec<Point, MAX_OBSTACLES>,
    /// Which prey has been caught at least once.
    pub caught: InlineVec<bool, MAX_PREY>,
    /// Steps taken in this episode.
    pub n_steps: usize,
}

/// How hard an agent pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlForce {
    /// The square of its acceleration, as the authors' code has it.
    AccelSquared,
    /// Its acceleration, as in the particle environments the game descends from.
    Accel,
}

/// What a step changes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Physics {
    /// Velocities, then positions by the new velocities.
    VelocityFirst,
    /// Positions by the old velocities, then velocities, as in mpe2.
    PositionFirst,
}

/// The laws of motion under one configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dynamics {
    pub cast: AgentCounts,
    pub control_force: ControlForce,
    pub physics: Physics,
}

impl Dynamics {
    /// Moves all agents by one step. Forces are taken from where everybody is at its start.
    #[inline]
    pub(crate) fn advance(&self, agents: &mut [Body], obstacles: &[Point], actions: &JointAction) {
        let mut forces = [[0.0; 2]; MAX_AGENTS];
        let forces = &mut forces[..agents.len()];
        for (agent, force) in forces.iter_mut().enumerate() {
            *force = self.control(self.cast.build(agent), actions[agent]);
        }
        self.add_contacts(agents, obstacles, forces);
        for (agent, (body, force)) in agents.iter_mut().zip(forces).enumerate() {
            self.carry(body, *force, self.cast.build(agent).max_speed);
        }
    }

    /// Moves one agent by one step as if nobody else were there; for those who have to guess what comes.
    #[inline]
    pub(crate) fn advance_alone(
        &self,
        body: &mut Body,
        build: BodyParams,
        obstacles: &[Point],
        action: Action,
    ) {
        let mut force = self.control(build, action);
        for obstacle in obstacles {
            if let Some(push) = contact(body.position, *obstacle, build.size + OBSTACLE_SIZE) {
                force = [force[0] + push[0], force[1] + push[1]];
            }
        }
        self.carry(body, force, build.max_speed);
    }

    #[inline]
    fn carry(&self, body: &mut Body, force: Point, max_speed: f64) {
        match self.physics {
            Physics::VelocityFirst => {
                body.accelerate(force, max_speed);
                body.drift();
            }
            Physics::PositionFirst => {
                body.drift();
                body.accelerate(force, max_speed);
            }
        }
    }

    /// Whether an agent that pushed like this may have come to have this velocity, from whatever it had before.
    pub(crate) fn may_lead_to(&self, velocity: Point, build: BodyParams, action: Action) -> bool {
        let gained = self.control(build, action).map(|part| part * STEP_SECS);
        let kept = (1.0 - DAMPING) * build.max_speed;
        // A velocity at the maximum was cut to it from any greater length.
        let square = velocity[0] * velocity[0] + velocity[1] * velocity[1];
        let along = gained[0] * velocity[0] + gained[1] * velocity[1];
        let is_cut = square.sqrt() > build.max_speed - 1e-4;
        let uncut = if is_cut { (along / square).max(1.0) } else { 1.0 };
        length([velocity[0] * uncut - gained[0], velocity[1] * uncut - gained[1]]) < kept + 1e-3
    }

    #[inline]
    fn control(&self, build: BodyParams, action: Action) -> Point {
        let strength = match self.control_force {
            ControlForce::AccelSquared => build.accel * build.accel,
            ControlForce::Accel => build.accel,
        };
        DIRECTIONS[usize::from(action)].map(|part| part * strength)
    }

    #[inline]
    fn add_contacts(&self, agents: &[Body], obstacles: &[Point], forces: &mut [Point]) {
        for one in 0..agents.len() {
            let (place, size) = (agents[one].position, self.cast.build(one).size);
            for other in one + 1..agents.len() {
                let reach = size + self.cast.build(other).size;
                if let Some(push) = contact(place, agents[other].position, reach) {
                    forces[one] = [forces[one][0] + push[0], forces[one][1] + push[1]];
                    forces[other] = [forces[other][0] - push[0], forces[other][1] - push[1]];
                }
            }
            for obstacle in obstacles {
                if let Some(push) = contact(place, *obstacle, size + OBSTACLE_SIZE) {
                    forces[one] = [forces[one][0] + push[0], forces[one][1] + push[1]];
                }
            }
        }
    }
}

impl Body {
    #[inline]
    fn accelerate(&mut self, force: Point, max_speed: f64) {
        // Every agent has mass 1.
        let velocity = [0, 1].map(|axis| self.velocity[axis] * (1.0 - DAMPING) + force[axis] * STEP_SECS);
        let speed = length(velocity);
        self.velocity =
            if speed > max_speed { velocity.map(|part| part / speed * max_speed) } else { velocity };
    }

    #[inline]
    fn drift(&mut self) {
        self.position = [0, 1].map(|axis| self.position[axis] + self.velocity[axis] * STEP_SECS);
    }
}

/// The force with which a body at `other` pushes one at `one` when their centres should be `reach` apart at least;
/// nothing when they are too far from each other to feel it. Bodies in the very same place push in no direction.
#[inline]
fn contact(one: Point, other: Point, reach: f64) -> Option<Point> {
    let away = from_to(other, one);
    let square = away[0] * away[0] + away[1] * away[1];
    let felt_within = reach + CONTACT_REACH;
    if square > felt_within * felt_within || square == 0.0 {
        return None;
    }
    let apart = square.sqrt();
    // The softplus of the overlap, written so that exp never overflows.
    let overlap = (reach - apart) / CONTACT_MARGIN;
    let penetration = CONTACT_MARGIN * (overlap.max(0.0) + (-overlap.abs()).exp().ln_1p());
    Some(away.map(|part| CONTACT_FORCE * part / apart * penetration))
}

/// The way from one place to another.
#[inline]
pub(crate) fn from_to(from: Point, to: Point) -> Point {
    [to[0] - from[0], to[1] - from[1]]
}

/// The length of a way.
#[inline]
pub(crate) fn length(way: Point) -> f64 {
    (way[0] * way[0] + way[1] * way[1]).sqrt()
}

/// How far two places are apart.
#[inline]
pub(crate) fn distance(one: Point, other: Point) -> f64 {
    length(from_to(one, other))
}
