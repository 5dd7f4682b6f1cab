//! Bodies on the plane: the number of agents, their sizes and speeds, contacts and motion.
//!
//! Visibility is in `watchtowers`; the actions of scripted agents are in `steering` and `peers`.

use serde::{Deserialize, Serialize};

use super::inline_vec::InlineVec;
use crate::game::{Action, JointAction};

/// A place or a velocity on the plane, as (x, y).
pub type Point = [f64; 2];

/// Maximum number of agents: three predators and three prey.
pub const MAX_AGENTS: usize = 6;
/// Maximum number of prey.
pub const MAX_PREY: usize = 3;
/// Maximum number of obstacles.
pub const MAX_OBSTACLES: usize = 2;

/// The action that pushes towards +x.
pub(crate) const EAST: Action = 1;
/// The action that pushes towards −x.
pub(crate) const WEST: Action = 2;
/// The action that pushes towards +y.
pub(crate) const NORTH: Action = 3;
/// The action that pushes towards −y.
pub(crate) const SOUTH: Action = 4;

/// The direction of each action; action 0 has no push.
pub(crate) const DIRECTIONS: [Point; 5] = [[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]];

/// Duration of a step in seconds.
pub(crate) const STEP_SECS: f64 = 0.1;
const DAMPING: f64 = 0.25;
const CONTACT_FORCE: f64 = 100.0;
const CONTACT_MARGIN: f64 = 0.001;
/// Deviation D1: the gap between two bodies beyond which contact forces are 0. They would be below 1e-18, which does not change
/// any sum of forces.
const CONTACT_REACH: f64 = 0.04;
/// Radius of an obstacle.
pub(crate) const OBSTACLE_SIZE: f64 = 0.2;

/// Physical parameters of an agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyParams {
    /// Radius.
    pub size: f64,
    /// Acceleration; see [`ControlForce`].
    pub accel: f64,
    /// Maximum speed.
    pub max_speed: f64,
}

/// The parameters of the ego and of predators among its peers.
pub(crate) const PREDATOR: BodyParams = BodyParams { size: 0.075, accel: 3.0, max_speed: 1.0 };
/// The parameters of prey.
pub(crate) const PREY: BodyParams = BodyParams { size: 0.05, accel: 4.0, max_speed: 1.3 };

/// The numbers of predators and prey. Agents are ordered: the ego, the other predators, the prey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCounts {
    /// Predators, the ego included.
    pub n_predators: usize,
    /// Prey.
    pub n_prey: usize,
}

impl AgentCounts {
    /// The counts with `n_peers` peers: half of all agents are prey.
    pub(crate) fn with_peers(n_peers: usize) -> AgentCounts {
        let n_prey = n_peers.div_ceil(2);
        AgentCounts { n_predators: 1 + n_peers - n_prey, n_prey }
    }

    /// The number of agents.
    #[inline]
    pub(crate) fn n_agents(self) -> usize {
        self.n_predators + self.n_prey
    }

    /// The physical parameters of an agent.
    #[inline]
    pub(crate) fn body_params(self, agent: usize) -> BodyParams {
        if agent < self.n_predators { PREDATOR } else { PREY }
    }
}

/// The position and velocity of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// The position.
    pub position: Point,
    /// The velocity.
    pub velocity: Point,
}

/// The state of an episode. The waypoints of the prey are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The ego, the other predators, the prey.
    pub agents: InlineVec<Body, MAX_AGENTS>,
    /// The positions of the obstacles.
    pub obstacles: InlineVec<Point, MAX_OBSTACLES>,
    /// Whether each prey has been caught at least once.
    pub caught: InlineVec<bool, MAX_PREY>,
    /// Steps taken in this episode.
    pub n_steps: usize,
}

/// The force of an agent's push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlForce {
    /// The square of its acceleration, as in the authors' code.
    AccelSquared,
    /// Its acceleration, as in the multi-agent particle environments.
    Accel,
}

/// The order of updates in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Physics {
    /// Velocities, then positions by the new velocities.
    VelocityFirst,
    /// Positions by the old velocities, then velocities, as in mpe2.
    PositionFirst,
}

/// The equations of motion under one configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dynamics {
    pub counts: AgentCounts,
    pub control_force: ControlForce,
    pub physics: Physics,
}

impl Dynamics {
    /// Moves all agents by one step. Forces depend on the positions at its start.
    #[inline]
    pub(crate) fn advance(&self, agents: &mut [Body], obstacles: &[Point], actions: &JointAction) {
        let mut forces = [[0.0; 2]; MAX_AGENTS];
        let forces = &mut forces[..agents.len()];
        for (agent, force) in forces.iter_mut().enumerate() {
            *force = self.control(self.counts.body_params(agent), actions[agent]);
        }
        self.add_contacts(agents, obstacles, forces);
        for (agent, (body, force)) in agents.iter_mut().zip(forces).enumerate() {
            self.integrate(body, *force, self.counts.body_params(agent).max_speed);
        }
    }

    /// Moves one agent by one step without contacts with other agents, for predictions.
    #[inline]
    pub(crate) fn advance_alone(
        &self,
        body: &mut Body,
        params: BodyParams,
        obstacles: &[Point],
        action: Action,
    ) {
        let mut force = self.control(params, action);
        for obstacle in obstacles {
            if let Some(push) = contact(body.position, *obstacle, params.size + OBSTACLE_SIZE) {
                force = sum(force, push);
            }
        }
        self.integrate(body, force, params.max_speed);
    }

    #[inline]
    fn integrate(&self, body: &mut Body, force: Point, max_speed: f64) {
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

    /// Whether `action` can lead to `velocity` from some previous velocity.
    pub(crate) fn may_lead_to(&self, velocity: Point, params: BodyParams, action: Action) -> bool {
        let gained = self.control(params, action).map(|part| part * STEP_SECS);
        let kept = (1.0 - DAMPING) * params.max_speed;
        // A velocity at the maximum may have been longer before it was clipped.
        let square = velocity[0] * velocity[0] + velocity[1] * velocity[1];
        let along = gained[0] * velocity[0] + gained[1] * velocity[1];
        let is_cut = square.sqrt() > params.max_speed - 1e-4;
        let uncut = if is_cut { (along / square).max(1.0) } else { 1.0 };
        length([velocity[0] * uncut - gained[0], velocity[1] * uncut - gained[1]]) < kept + 1e-3
    }

    #[inline]
    fn control(&self, params: BodyParams, action: Action) -> Point {
        let strength = match self.control_force {
            ControlForce::AccelSquared => params.accel * params.accel,
            ControlForce::Accel => params.accel,
        };
        DIRECTIONS[usize::from(action)].map(|part| part * strength)
    }

    #[inline]
    fn add_contacts(&self, agents: &[Body], obstacles: &[Point], forces: &mut [Point]) {
        for one in 0..agents.len() {
            let (place, size) = (agents[one].position, self.counts.body_params(one).size);
            for other in one + 1..agents.len() {
                let reach = size + self.counts.body_params(other).size;
                if let Some(push) = contact(place, agents[other].position, reach) {
                    forces[one] = sum(forces[one], push);
                    forces[other] = [forces[other][0] - push[0], forces[other][1] - push[1]];
                }
            }
            for obstacle in obstacles {
                if let Some(push) = contact(place, *obstacle, size + OBSTACLE_SIZE) {
                    forces[one] = sum(forces[one], push);
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

/// The contact force of a body at `other` on a body at `one`, where `reach` is the sum of their radii. `None` if they are too far
/// apart, or at exactly the same position, where the force has no direction.
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

/// The sum of two vectors.
#[inline]
pub(crate) fn sum(one: Point, other: Point) -> Point {
    [one[0] + other[0], one[1] + other[1]]
}

/// The vector from one point to another.
#[inline]
pub(crate) fn from_to(from: Point, to: Point) -> Point {
    [to[0] - from[0], to[1] - from[1]]
}

/// The length of a vector.
#[inline]
pub(crate) fn length(vector: Point) -> f64 {
    (vector[0] * vector[0] + vector[1] * vector[1]).sqrt()
}

/// The distance between two points.
#[inline]
pub(crate) fn distance(one: Point, other: Point) -> f64 {
    length(from_to(one, other))
}
