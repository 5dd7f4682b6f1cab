//! The ego that works out who its peers are from what any ego sees, and the same ego when it is told.
//!
//! What it knows is in `knowledge`, how to meet a prey in `pursuit`; here is the choice between looking around and
//! giving chase, and whom to chase.

use super::knowledge::{GameConstants, Knowledge};
use super::prey_belief::{PreyBelief, Walker};
use super::pursuit::{self, Course, FORESIGHT, Prospect, PursuitPlan, Stakes};
use crate::ego::{Ego, KindBelief, one_hot};
use crate::game::{Action, Seat};
use crate::predator_prey::PredatorPrey;
use crate::predator_prey::bodies::{Body, MAX_AGENTS, PREDATOR, Point, distance};
use crate::predator_prey::peers::{PredatorPreySpec, predator};
use crate::predator_prey::view::Seen;
use crate::predator_prey::watchtowers::TOWERS;

/// An ego looks around until it is this sure which prey is left to it. This and the following numbers were chosen on
/// the training pool; none of them matters much.
const SURE: f64 = 0.9;
/// At a tower, it waits for so many looks to become sure.
const PATIENCE: usize = 5;
/// A tower this close is worth the way even to an ego that only does not know where its prey is.
const WORTH_THE_WAY: f64 = 0.25;
/// How many guesses stand for all places where a prey may be.
const N_COURSES: usize = 12;
/// A plan with a goal that stands for so many steps is followed for two of them.
const STEADY_STEPS: usize = 4;

/// Scouts, identifies, then keeps to the prey that is left to it.
#[derive(Clone, Debug)]
pub struct BayesEgo {
    setting: GameConstants,
    told: Option<Vec<PredatorPreySpec>>,
    knowledge: Knowledge,
    errand: Option<ActivePlan>,
    /// The last observation it was asked about, which as a rule is the one it acts on next.
    pondered: Option<Pondered>,
}

/// What follows from an observation.
#[derive(Clone, Debug)]
struct Pondered {
    observation: Vec<f32>,
    seen: Seen,
    knowledge: Knowledge,
    errand: ActivePlan,
}

/// A plan, and when it was made with whom in sight.
#[derive(Clone, Copy, Debug)]
struct ActivePlan {
    plan: PursuitPlan,
    made_at: usize,
    in_sight: [bool; MAX_AGENTS],
}

impl BayesEgo {
    /// An ego for this game that is told nothing.
    pub fn new(game: &PredatorPrey) -> BayesEgo {
        let knowledge = Knowledge::of_strangers(game.cast);
        BayesEgo { setting: GameConstants::of(game), told: None, knowledge, errand: None, pondered: None }
    }

    /// An ego that knows these peers from the start. How much it sees is not up to it.
    pub fn acquainted(game: &PredatorPrey, specs: &[PredatorPreySpec]) -> BayesEgo {
        let knowledge = Knowledge::of_acquaintances(game.cast, specs);
        BayesEgo {
            setting: GameConstants::of(game),
            told: Some(specs.to_vec()),
            knowledge,
            errand: None,
            pondered: None,
        }
    }

    fn ponder(&self, observation: &[f32]) -> Pondered {
        let seen = self.setting.layout.read(Seat::EGO.0, observation);
        let mut knowledge = self.knowledge.clone();
        knowledge.look(&seen, &self.setting);
        let mut in_sight = [false; MAX_AGENTS];
        for (flag, other) in in_sight.iter_mut().zip(seen.others.iter()) {
            *flag = other.is_some();
        }
        // Thinking takes time, and a goal that is far away does not change from one step to the next.
        let is_good = |errand: &ActivePlan| {
            errand.made_at + 1 == knowledge.moment
                && errand.in_sight == in_sight
                && errand.plan.n_steady_steps >= STEADY_STEPS
        };
        let errand = self.errand.filter(is_good).unwrap_or_else(|| {
            let plan = self.plan(&knowledge, seen.own.position);
            ActivePlan { plan, made_at: knowledge.moment, in_sight }
        });
        Pondered { observation: observation.to_vec(), seen, knowledge, errand }
    }

    fn plan(&self, knowledge: &Knowledge, own: Point) -> PursuitPlan {
        let free = knowledge.preferences.free();
        let mut target = argmin(0..self.setting.cast.n_prey, |prey| -free[prey]).expect("there are prey");
        let tower =
            TOWERS[argmin(0..TOWERS.len(), |tower| distance(own, TOWERS[tower])).expect("there are towers")];
        let is_unsure = free[target] < SURE;
        let wants_to_look = match knowledge.n_views {
            0 => {
                is_unsure
                    || (knowledge.whereabouts[target].is_unseen() && distance(own, tower) < WORTH_THE_WAY)
            }
            n_views => is_unsure && n_views < PATIENCE,
        };
        if wants_to_look {
            return PursuitPlan::to(tower);
        }
        if knowledge.caught[target] && !self.setting.caught_prey_counts {
            // Its own prey costs nothing any more: it can help with the others.
            let uncaught = (0..self.setting.cast.n_prey).filter(|prey| !knowledge.caught[*prey]);
            target = argmin(uncaught, |prey| self.mean_distance(knowledge, prey, own)).unwrap_or(target);
        }
        let stakes = Stakes {
            n_steps: self.setting.horizon_steps.saturating_sub(knowledge.moment).max(1),
            caught_prey_counts: self.setting.caught_prey_counts,
        };
        if knowledge.whereabouts[target].is_unseen() {
            pursuit::search(own, &self.courses(knowledge, target), stakes)
        } else {
            pursuit::plan(own, &self.prospects(knowledge, target), stakes)
        }
    }

    fn mean_distance(&self, knowledge: &Knowledge, prey: usize, own: Point) -> f64 {
        let courses = self.courses(knowledge, prey);
        courses.iter().map(|course| course.weight * distance(course.way[5], own)).sum()
    }

    /// What the steps to come hold for every prey, as far as anything is known of it.
    fn prospects(&self, knowledge: &Knowledge, target: usize) -> Vec<Prospect> {
        let mut prospects: Vec<Prospect> = (0..self.setting.cast.n_prey)
            .map(|prey| {
                let is_unseen = knowledge.whereabouts[prey].is_unseen();
                let courses = if is_unseen { Vec::new() } else { self.courses(knowledge, prey) };
                Prospect { courses, others: [f64::INFINITY; FORESIGHT], is_caught: knowledge.caught[prey] }
            })
            .collect();
        for (slot, predator) in knowledge.predators.iter().enumerate() {
            let prey = knowledge.preferences.likeliest(slot);
            let prospect = &mut prospects[prey];
            let (Some(predator), Some(course)) = (predator, prospect.courses.first()) else {
                // Nobody knows where the two are; without a reason to, the ego leaves them to each other.
                if prey != target {
                    prospect.courses.clear();
                }
                prospect.others = [if prey == target { 0.5 } else { 0.15 }; FORESIGHT];
                continue;
            };
            let now = knowledge.whereabouts[prey].likeliest().expect("a prey with a course has been seen");
            prospect.others = self.chase(*predator, now, course, &knowledge.obstacles);
        }
        prospects
    }

    /// How far a predator will be from the prey it chases.
    fn chase(
        &self,
        mut predator: Body,
        now: Point,
        course: &Course,
        obstacles: &[Point],
    ) -> [f64; FORESIGHT] {
        let mut goal = now;
        course.way.map(|next| {
            let action = predator::act(predator.position, goal);
            self.setting.laws.advance_alone(&mut predator, PREDATOR, obstacles, action);
            goal = next;
            distance(predator.position, next)
        })
    }

    fn courses(&self, knowledge: &Knowledge, prey: usize) -> Vec<Course> {
        match &knowledge.whereabouts[prey] {
            PreyBelief::Unseen(weights) => {
                // Evenly through the weights, so that each guess is taken as often as it deserves.
                let share = 1.0 / N_COURSES as f64;
                let mut courses = Vec::with_capacity(N_COURSES);
                let mut sum = 0.0;
                for (guess, weight) in weights.iter().enumerate() {
                    sum += weight;
                    while courses.len() < N_COURSES && (courses.len() as f64 + 0.5) * share < sum {
                        let way = self.setting.cloud.way(guess, knowledge.moment);
                        courses.push(Course { way, weight: share });
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
                    let way = std::array::from_fn(|_| {
                        walker.walk(&self.setting.laws, &knowledge.obstacles);
                        walker.body.position
                    });
                    Course { way, weight: weight / total }
                };
                tracks.into_iter().map(course).collect()
            }
        }
    }
}

/// The number with the least value.
fn argmin(numbers: impl Iterator<Item = usize>, value: impl Fn(usize) -> f64) -> Option<usize> {
    numbers
        .map(|number| (value(number), number))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map(|best| best.1)
}

impl Ego for BayesEgo {
    fn begin_encounter(&mut self) {
        self.knowledge = match &self.told {
            None => Knowledge::of_strangers(self.setting.cast),
            Some(specs) => Knowledge::of_acquaintances(self.setting.cast, specs),
        };
        (self.errand, self.pondered) = (None, None);
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let pondered = self.ponder(observation);
        let obstacles = &pondered.knowledge.obstacles;
        one_hot(
            pursuit::steer(pondered.seen.own, &pondered.errand.plan, &self.setting.laws, obstacles),
            probabilities,
        );
        self.pondered = Some(pondered);
    }

    fn record_action(&mut self, observation: &[f32], action: Action) {
        let pondered = self.pondered.take().filter(|pondered| pondered.observation == observation);
        let pondered = pondered.unwrap_or_else(|| self.ponder(observation));
        self.knowledge = pondered.knowledge;
        self.errand = Some(pondered.errand);
        self.knowledge.go_on(pondered.seen, action, &self.setting.laws);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        let seen = self.setting.layout.read(Seat::EGO.0, terminal_observation);
        self.knowledge.look(&seen, &self.setting);
        self.knowledge.end_episode();
        (self.errand, self.pondered) = (None, None);
    }

    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        let Knowledge { preferences, whereabouts, .. } = &self.knowledge;
        let predator = |slot: usize| {
            let prey = (0..self.setting.cast.n_prey).map(|prefers| {
                KindBelief::of(&PredatorPreySpec::Predator { prefers }, preferences.chance(slot, prefers))
            });
            prey.collect()
        };
        let prey = |whereabouts: &PreyBelief| {
            let paths = whereabouts.paths().into_iter().enumerate();
            paths.map(|(path, weight)| KindBelief::of(&PredatorPreySpec::Prey { path }, weight)).collect()
        };
        (1..self.setting.cast.n_predators)
            .map(|agent| predator(agent - 1))
            .chain(whereabouts.iter().map(prey))
            .collect()
    }
}
