//! Beliefs about which prey each peer predator chases, inferred from the predators' motion.

use crate::game::Action;
use crate::predator_prey::bodies::{
    AgentCounts, Body, Dynamics, MAX_PREY, PREDATOR, Point, STEP_SECS, distance,
};
use crate::predator_prey::peers::predator;
use crate::predator_prey::pools::ordered_choices;

/// The likelihood of a move that a preference does not explain.
const UNEXPLAINED_LIKELIHOOD: f64 = 0.05;
/// The decrease of the log-likelihood of a preference per unit of distance to the prey, after [`SETTLED_STEPS`] steps.
const DISTANCE_WEIGHT: f64 = 1.5;
/// The likelihood of a preference whose prey is seen without the predator.
const ALONE_LIKELIHOOD: f64 = 0.85;
/// The number of steps after which most predators are close to their prey.
const SETTLED_STEPS: usize = 10;

/// A distribution over the assignments of different prey to the peer predators.
#[derive(Clone, Debug)]
pub(crate) struct Preferences {
    /// The prey of each predator by slot, and the probability of the assignment.
    assignments: Vec<(Vec<usize>, f64)>,
}

impl Preferences {
    /// The uniform distribution.
    pub(crate) fn unknown(counts: AgentCounts) -> Preferences {
        let prey: Vec<usize> = (0..counts.n_prey).collect();
        let choices = ordered_choices(counts.n_predators - 1, &prey);
        let weight = 1.0 / choices.len() as f64;
        Preferences { assignments: choices.into_iter().map(|choice| (choice, weight)).collect() }
    }

    /// The probability that no peer predator chases each prey.
    pub(crate) fn free(&self) -> [f64; MAX_PREY] {
        let mut free = [0.0; MAX_PREY];
        for (choice, weight) in &self.assignments {
            for (prey, share) in free.iter_mut().enumerate() {
                if !choice.contains(&prey) {
                    *share += weight;
                }
            }
        }
        free
    }

    /// Sets the prey that predator `slot` chases.
    pub(crate) fn reveal(&mut self, slot: usize, prefers: usize) {
        self.assignments.retain(|(choice, _)| choice[slot] == prefers);
        let weight = 1.0 / self.assignments.len() as f64;
        self.assignments.iter_mut().for_each(|assignment| assignment.1 = weight);
    }

    /// The probability that predator `slot` chases `prey`.
    pub(crate) fn probability(&self, slot: usize, prey: usize) -> f64 {
        self.assignments.iter().filter(|(choice, _)| choice[slot] == prey).map(|(_, weight)| weight).sum()
    }

    /// The prey of predator `slot` in the most likely assignment.
    pub(crate) fn most_likely_prey(&self, slot: usize) -> usize {
        let best = self.assignments.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        best.expect("there are assignments").0[slot]
    }

    /// Updates the beliefs with a step of predator `slot`. `prey` are the positions of the prey before it, where they are known.
    pub(crate) fn observe_move(
        &mut self,
        slot: usize,
        [before, now]: [Body; 2],
        prey: &[Option<Point>],
        dynamics: &Dynamics,
        obstacles: &[Point],
    ) {
        self.learn(slot, before.position, prey, |action| {
            let mut predicted = before;
            dynamics.advance_alone(&mut predicted, PREDATOR, obstacles, action);
            distance(predicted.velocity, now.velocity) < 0.02
        });
    }

    /// Updates the beliefs with predator `slot`, now in sight and not before, and with the prey in sight. Its velocity shows the
    /// direction of its last push.
    pub(crate) fn observe_appearance(
        &mut self,
        slot: usize,
        now: Body,
        prey: &[Option<Body>],
        step: usize,
        dynamics: &Dynamics,
    ) {
        if now.velocity == [0.0; 2] {
            return;
        }
        let before = |body: Body| [0, 1].map(|axis| body.position[axis] - STEP_SECS * body.velocity[axis]);
        let places: Vec<Option<Point>> = prey.iter().map(|body| body.map(before)).collect();
        self.learn(slot, before(now), &places, |action| dynamics.may_lead_to(now.velocity, PREDATOR, action));
        if prey.iter().all(Option::is_some) {
            let weight = DISTANCE_WEIGHT * step.min(SETTLED_STEPS) as f64 / SETTLED_STEPS as f64;
            let mut likelihoods = [1.0; MAX_PREY];
            for (likelihood, body) in likelihoods.iter_mut().zip(prey.iter().flatten()) {
                *likelihood = (-weight * distance(body.position, now.position)).exp();
            }
            self.weigh(slot, likelihoods);
        }
    }

    /// Updates the beliefs with the prey in sight that have no predator near them. After [`SETTLED_STEPS`] steps a predator is close to
    /// its prey. Consecutive steps are not independent, so each changes the weights only a little.
    pub(crate) fn observe_distances(
        &mut self,
        step: usize,
        predators: &[Option<Body>],
        prey: &[Option<Body>],
        from: Point,
    ) {
        if step < SETTLED_STEPS {
            return;
        }
        for (slot, predator) in predators.iter().enumerate() {
            let is_alone = |body: &Body| match predator {
                Some(predator) => distance(predator.position, body.position) > 0.3,
                // A predator out of sight is not close to a prey that is close to the ego.
                None => distance(body.position, from) < 0.15,
            };
            let mut likelihoods = [1.0; MAX_PREY];
            for (likelihood, body) in likelihoods.iter_mut().zip(prey) {
                if body.as_ref().is_some_and(is_alone) {
                    *likelihood = ALONE_LIKELIHOOD;
                }
            }
            self.weigh(slot, likelihoods);
        }
    }

    fn learn(
        &mut self,
        slot: usize,
        position: Point,
        prey: &[Option<Point>],
        explains: impl Fn(Action) -> bool,
    ) {
        let mut likelihoods = [0.5; MAX_PREY];
        for (likelihood, place) in likelihoods.iter_mut().zip(prey) {
            if let Some(place) = place {
                *likelihood =
                    if explains(predator::act(position, *place)) { 1.0 } else { UNEXPLAINED_LIKELIHOOD };
            }
        }
        self.weigh(slot, likelihoods);
    }

    fn weigh(&mut self, slot: usize, likelihoods: [f64; MAX_PREY]) {
        let mut total = 0.0;
        for (choice, weight) in &mut self.assignments {
            *weight *= likelihoods[choice[slot]];
            total += *weight;
        }
        // Every assignment keeps a positive weight, so that later steps can correct a mistake.
        let n = self.assignments.len() as f64;
        self.assignments.iter_mut().for_each(|(_, weight)| *weight = *weight / total * 0.999 + 0.001 / n);
    }
}
