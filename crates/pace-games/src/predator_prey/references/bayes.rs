//! The ego that infers its peers from observations, with or without prior knowledge of them.
//!
//! Its beliefs are in `knowledge`, the interception of a prey is in `pursuit`. This module chooses between looking around and
//! pursuit, and the prey to pursue.

use super::knowledge::{GameConstants, Knowledge};
use super::prey_belief::{PreyBelief, Walker};
use super::pursuit::{self, Course, Forecast, Objective, PLANNING_STEPS, PursuitPlan};
use crate::ego::{Ego, KindBelief, one_hot};
use crate::game::{Action, Seat};
use crate::predator_prey::PredatorPrey;
use crate::predator_prey::bodies::{Body, MAX_AGENTS, PREDATOR, Point, distance};
use crate::predator_prey::peers::{PredatorPreySpec, predator};
use crate::predator_prey::view::Seen;
use crate::predator_prey::watchtowers::TOWERS;

/// The ego looks around until its belief about the free prey has this probability. This and the following constants were chosen
/// on the training pool; the score does not depend much on them.
const MIN_CONFIDENCE: f64 = 0.9;
/// Maximum number of steps at a tower to become certain.
const MAX_VIEWS: usize = 5;
/// The maximum distance of a tower to which the ego walks only to find its prey.
const MAX_TOWER_DETOUR: f64 = 0.25;
/// The number of trajectories that represent all positions of an unseen prey.
const N_COURSES: usize = 12;
/// A plan whose goal does not change for this many steps is used for two steps.
const MIN_STEADY_STEPS: usize = 4;

/// An ego that looks around, infers its peers, and then pursues the prey that no other predator chases.
#[derive(Clone, Debug)]
pub(crate) struct BayesEgo {
    constants: GameConstants,
    known_specs: Option<Vec<PredatorPreySpec>>,
    knowledge: Knowledge,
    active_plan: Option<ActivePlan>,
    /// The deliberation about the last observation, for [`Ego::record_action`].
    deliberation: Option<Deliberation>,
}

/// The beliefs and the plan that follow from an observation.
#[derive(Clone, Debug)]
struct Deliberation {
    observation: Vec<f32>,
    seen: Seen,
    knowledge: Knowledge,
    active_plan: ActivePlan,
}

/// A plan, with the step at which it was made and the agents in sight then.
#[derive(Clone, Copy, Debug)]
struct ActivePlan {
    plan: PursuitPlan,
    made_at: usize,
    in_sight: [bool; MAX_AGENTS],
}

impl BayesEgo {
    /// An ego without information about its peers.
    pub(crate) fn new(game: &PredatorPrey) -> BayesEgo {
        BayesEgo::with_specs(game, None)
    }

    /// An ego that knows its peers.
    pub(crate) fn informed(game: &PredatorPrey, specs: &[PredatorPreySpec]) -> BayesEgo {
        BayesEgo::with_specs(game, Some(specs.to_vec()))
    }

    fn with_specs(game: &PredatorPrey, known_specs: Option<Vec<PredatorPreySpec>>) -> BayesEgo {
        let knowledge = Knowledge::new(game.counts, known_specs.as_deref());
        BayesEgo {
            constants: GameConstants::of(game, known_specs.as_deref()),
            known_specs,
            knowledge,
            active_plan: None,
            deliberation: None,
        }
    }

    fn deliberate(&self, observation: &[f32]) -> Deliberation {
        let seen = self.constants.layout.read(Seat::EGO.0, observation);
        let mut knowledge = self.knowledge.clone();
        knowledge.observe(&seen, &self.constants);
        let mut in_sight = [false; MAX_AGENTS];
        for (flag, other) in in_sight.iter_mut().zip(seen.others.iter()) {
            *flag = other.is_some();
        }
        // To save time: a distant goal does not change from one step to the next.
        let is_good = |active_plan: &ActivePlan| {
            active_plan.made_at + 1 == knowledge.step
                && active_plan.in_sight == in_sight
                && active_plan.plan.n_steady_steps >= MIN_STEADY_STEPS
        };
        let active_plan = self.active_plan.filter(is_good).unwrap_or_else(|| {
            let plan = self.plan(&knowledge, seen.own.position);
            ActivePlan { plan, made_at: knowledge.step, in_sight }
        });
        Deliberation { observation: observation.to_vec(), seen, knowledge, active_plan }
    }

    fn plan(&self, knowledge: &Knowledge, own: Point) -> PursuitPlan {
        let free = knowledge.preferences.free();
        let mut target = argmin(0..self.constants.counts.n_prey, |prey| -free[prey]).expect("there are prey");
        let tower =
            TOWERS[argmin(0..TOWERS.len(), |tower| distance(own, TOWERS[tower])).expect("there are towers")];
        let is_unsure = free[target] < MIN_CONFIDENCE;
        let wants_to_look = match knowledge.n_views {
            0 => {
                is_unsure
                    || (knowledge.prey_beliefs[target].is_unseen() && distance(own, tower) < MAX_TOWER_DETOUR)
            }
            n_views => is_unsure && n_views < MAX_VIEWS,
        };
        if wants_to_look {
            return PursuitPlan::to(tower);
        }
        if knowledge.caught[target] && !self.constants.caught_prey_counts {
            // Its prey costs nothing any more: the ego pursues the nearest of the others.
            let uncaught = (0..self.constants.counts.n_prey).filter(|prey| !knowledge.caught[*prey]);
            target = argmin(uncaught, |prey| self.mean_distance(knowledge, prey, own)).unwrap_or(target);
        }
        let objective = Objective {
            n_steps: self.constants.horizon_steps.saturating_sub(knowledge.step).max(1),
            caught_prey_counts: self.constants.caught_prey_counts,
        };
        if knowledge.prey_beliefs[target].is_unseen() {
            pursuit::search(own, &self.courses(knowledge, target), objective)
        } else {
            pursuit::plan(own, &self.forecasts(knowledge, target), objective)
        }
    }

    fn mean_distance(&self, knowledge: &Knowledge, prey: usize, own: Point) -> f64 {
        let courses = self.courses(knowledge, prey);
        courses.iter().map(|course| course.weight * distance(course.trajectory[5], own)).sum()
    }

    /// The predictions for every prey that was seen, and for the other predators.
    fn forecasts(&self, knowledge: &Knowledge, target: usize) -> Vec<Forecast> {
        let mut forecasts: Vec<Forecast> = (0..self.constants.counts.n_prey)
            .map(|prey| {
                let is_unseen = knowledge.prey_beliefs[prey].is_unseen();
                let courses = if is_unseen { Vec::new() } else { self.courses(knowledge, prey) };
                Forecast {
                    courses,
                    others: [f64::INFINITY; PLANNING_STEPS],
                    is_caught: knowledge.caught[prey],
                }
            })
            .collect();
        for (slot, predator) in knowledge.predators.iter().enumerate() {
            let prey = knowledge.preferences.most_likely_prey(slot);
            let forecast = &mut forecasts[prey];
            let (Some(predator), Some(course)) = (predator, forecast.courses.first()) else {
                // The predator or its prey was not seen. Unless it is the target, the plan ignores this prey.
                if prey != target {
                    forecast.courses.clear();
                }
                forecast.others = [if prey == target { 0.5 } else { 0.15 }; PLANNING_STEPS];
                continue;
            };
            let now = knowledge.prey_beliefs[prey]
                .most_likely_position()
                .expect("a prey with a course has been seen");
            forecast.others = self.chase(*predator, now, course, &knowledge.obstacles);
        }
        forecasts
    }

    /// The predicted distances between a predator and the prey that it chases.
    fn chase(
        &self,
        mut predator: Body,
        now: Point,
        course: &Course,
        obstacles: &[Point],
    ) -> [f64; PLANNING_STEPS] {
        let mut goal = now;
        course.trajectory.map(|next| {
            let action = predator::act(predator.position, goal);
            self.constants.dynamics.advance_alone(&mut predator, PREDATOR, obstacles, action);
            goal = next;
            distance(predator.position, next)
        })
    }

    fn courses(&self, knowledge: &Knowledge, prey: usize) -> Vec<Course> {
        match &knowledge.prey_beliefs[prey] {
            PreyBelief::Unseen(weights) => {
                // Systematic resampling: each particle is chosen in proportion to its weight.
                let share = 1.0 / N_COURSES as f64;
                let mut courses = Vec::with_capacity(N_COURSES);
                let mut sum = 0.0;
                for (guess, weight) in weights.iter().enumerate() {
                    sum += weight;
                    while courses.len() < N_COURSES && (courses.len() as f64 + 0.5) * share < sum {
                        let trajectory = self.constants.particles.trajectory(guess, knowledge.step);
                        courses.push(Course { trajectory, weight: share });
                    }
                }
                courses
            }
            PreyBelief::Tracked(tracks) => {
                let mut tracks: Vec<&(Walker, f64)> =
                    tracks.iter().filter(|(_, weight)| *weight > 0.03).collect();
                tracks.sort_by(|one, other| other.1.total_cmp(&one.1));
                tracks.truncate(8);
                let total: f64 = tracks.iter().map(|(_, weight)| weight).sum();
                let course = |(walker, weight): &(Walker, f64)| {
                    let mut walker = *walker;
                    let trajectory = std::array::from_fn(|_| {
                        walker.walk(&self.constants.dynamics, &knowledge.obstacles);
                        walker.body.position
                    });
                    Course { trajectory, weight: weight / total }
                };
                tracks.into_iter().map(course).collect()
            }
        }
    }
}

/// The number with the smallest value.
fn argmin(numbers: impl Iterator<Item = usize>, value: impl Fn(usize) -> f64) -> Option<usize> {
    numbers
        .map(|number| (value(number), number))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|best| best.1)
}

impl Ego for BayesEgo {
    fn begin_encounter(&mut self) {
        self.knowledge = Knowledge::new(self.constants.counts, self.known_specs.as_deref());
        (self.active_plan, self.deliberation) = (None, None);
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let deliberation = self.deliberate(observation);
        let obstacles = &deliberation.knowledge.obstacles;
        one_hot(
            pursuit::steer(
                deliberation.seen.own,
                &deliberation.active_plan.plan,
                &self.constants.dynamics,
                obstacles,
            ),
            probabilities,
        );
        self.deliberation = Some(deliberation);
    }

    fn record_action(&mut self, observation: &[f32], action: Action) {
        let deliberation =
            self.deliberation.take().filter(|deliberation| deliberation.observation == observation);
        let deliberation = deliberation.unwrap_or_else(|| self.deliberate(observation));
        self.knowledge = deliberation.knowledge;
        self.active_plan = Some(deliberation.active_plan);
        self.knowledge.predict_step(deliberation.seen, action, &self.constants.dynamics);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        let seen = self.constants.layout.read(Seat::EGO.0, terminal_observation);
        self.knowledge.observe(&seen, &self.constants);
        self.knowledge.end_episode();
        (self.active_plan, self.deliberation) = (None, None);
    }

    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        let Knowledge { preferences, prey_beliefs, .. } = &self.knowledge;
        let predator = |slot: usize| {
            let prey = (0..self.constants.counts.n_prey).map(|prefers| {
                KindBelief::of(
                    &PredatorPreySpec::Predator { prefers },
                    preferences.probability(slot, prefers),
                )
            });
            prey.collect()
        };
        let prey = |belief: &PreyBelief| {
            let paths = belief.paths().into_iter().enumerate();
            paths.map(|(path, weight)| KindBelief::of(&PredatorPreySpec::Prey { path }, weight)).collect()
        };
        (1..self.constants.counts.n_predators)
            .map(|agent| predator(agent - 1))
            .chain(prey_beliefs.iter().map(prey))
            .collect()
    }
}
