//! Interception of a prey with a predicted path: the choice of a goal, and of the push that leads there fastest.

use crate::game::Action;
use crate::predator_prey::bodies::{
    Body, DIRECTIONS, Dynamics, MAX_PREY, OBSTACLE_SIZE, PREDATOR, PREY, Point, STEP_SECS, distance, from_to,
    length,
};
use crate::predator_prey::watchtowers::SIGHT_RADIUS;

/// The number of steps of a plan.
pub(crate) const PLANNING_STEPS: usize = 25;

/// The predicted positions of an agent in the next steps.
pub(crate) type Trajectory = [Point; PLANNING_STEPS];

/// A possible trajectory of a prey and its probability.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub trajectory: Trajectory,
    pub weight: f64,
}

/// The predictions for one prey.
#[derive(Clone, Debug)]
pub(crate) struct Forecast {
    /// The possible trajectories, the most likely first; empty if the plan ignores this prey.
    pub courses: Vec<Course>,
    /// The expected distance to the nearest other predator, by step.
    pub others: [f64; PLANNING_STEPS],
    pub is_caught: bool,
}

/// The parameters of the cost of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Objective {
    /// The remaining steps of the episode.
    pub n_steps: usize,
    pub caught_prey_counts: bool,
}

/// A plan: the next goals and the expected cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PursuitPlan {
    /// The goals of the next three steps.
    pub next_goals: [Point; 3],
    /// The number of steps in which the goal does not change.
    pub n_steady_steps: usize,
    /// The sum of distances over the steps of the plan.
    cost: f64,
}

impl PursuitPlan {
    /// The plan to go to `place`.
    pub(crate) fn to(place: Point) -> PursuitPlan {
        PursuitPlan { next_goals: [place; 3], n_steady_steps: 0, cost: f64::INFINITY }
    }

    /// The plan to wait at the position of `lead` after `meeting` steps, then to follow it.
    fn new(lead: &Trajectory, meeting: usize, cost: f64) -> PursuitPlan {
        PursuitPlan {
            next_goals: [0, 1, 2].map(|step| lead[step.max(meeting)]),
            n_steady_steps: meeting,
            cost,
        }
    }
}

/// The steps at which the ego may meet a prey.
const MEETING_STEPS: [usize; 12] = [0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 22];

/// The plan with the lowest expected cost: to meet a prey, then to follow it or another one.
pub(crate) fn plan(from: Point, forecasts: &[Forecast], objective: Objective) -> PursuitPlan {
    let mut best = PursuitPlan::to(from);
    for (target, forecast) in forecasts.iter().enumerate() {
        let Some(likeliest) = forecast.courses.first() else { continue };
        let mean = mean_trajectory(&forecast.courses);
        let leads: &[&Trajectory] = if forecast.courses.len() == 1 {
            &[&likeliest.trajectory]
        } else {
            &[&likeliest.trajectory, &mean]
        };
        for lead in leads {
            for meeting in meetings(from, lead, 0, objective) {
                let candidate = CandidatePlan { target, lead, meeting };
                let cost = candidate.expected_cost(from, forecasts, objective, best.cost);
                if cost < best.cost {
                    best = PursuitPlan { n_steady_steps: 0, ..PursuitPlan::new(lead, meeting, cost) };
                }
            }
        }
    }
    best
}

/// The meetings to evaluate on a trajectory: from `earliest` on, before the end of the episode, and not further than [`MAX_MISS`]
/// beyond the reach of the ego. The last possible one is always included.
fn meetings(
    from: Point,
    lead: &Trajectory,
    earliest: usize,
    objective: Objective,
) -> impl Iterator<Item = usize> {
    let stride = PREDATOR.max_speed * STEP_SECS;
    let last = MEETING_STEPS.iter().copied().rfind(|meeting| *meeting < objective.n_steps).unwrap_or(0);
    MEETING_STEPS.into_iter().filter(move |meeting| {
        let is_reachable = || distance(from, lead[*meeting]) < stride * (*meeting + 1) as f64 + MAX_MISS;
        *meeting == last || ((earliest..last).contains(meeting) && is_reachable())
    })
}

/// Maximum distance between the ego and the prey at the time of a meeting.
const MAX_MISS: f64 = 0.3;

/// The plan with the lowest expected cost for a prey that was not seen, without the other prey.
pub(crate) fn search(from: Point, courses: &[Course], objective: Objective) -> PursuitPlan {
    let n_steps = objective.n_steps.min(PLANNING_STEPS);
    let mean = mean_trajectory(courses);
    let mut best = PursuitPlan::to(from);
    // A single particle is a useful goal only for a later meeting.
    let leads =
        std::iter::once((&mean, 0)).chain(courses.iter().step_by(4).map(|course| (&course.trajectory, 4)));
    for (lead, earliest) in leads {
        for meeting in meetings(from, lead, earliest, objective) {
            let mut own = [from; PLANNING_STEPS];
            let mut place = from;
            for (step, own) in own[..n_steps].iter_mut().enumerate() {
                place = towards(place, lead[step.max(meeting)]);
                *own = place;
            }
            let mut cost = 0.0;
            for course in courses {
                let mut until_found = 0.0;
                for (step, (own, prey)) in own[..n_steps].iter().zip(&course.trajectory).enumerate() {
                    let apart = distance(*own, *prey);
                    until_found += apart;
                    if apart < SIGHT_RADIUS {
                        // From then on the ego follows the prey.
                        until_found += FOLLOW_DISTANCE * (n_steps - 1 - step) as f64;
                        break;
                    }
                }
                cost += course.weight * until_found;
                if cost >= best.cost {
                    break;
                }
            }
            if cost < best.cost {
                best = PursuitPlan::new(lead, meeting, cost);
            }
        }
    }
    best
}

/// The mean distance between the ego and a prey that it follows.
const FOLLOW_DISTANCE: f64 = 0.12;

#[inline]
fn towards(from: Point, aim: Point) -> Point {
    let stride = PREDATOR.max_speed * STEP_SECS;
    let offset = from_to(from, aim);
    let part = (stride / length(offset).max(1e-9)).min(1.0);
    [from[0] + part * offset[0], from[1] + part * offset[1]]
}

fn mean_trajectory(courses: &[Course]) -> Trajectory {
    let mut mean = [[0.0; 2]; PLANNING_STEPS];
    for course in courses {
        for (sum, place) in mean.iter_mut().zip(&course.trajectory) {
            *sum = [sum[0] + course.weight * place[0], sum[1] + course.weight * place[1]];
        }
    }
    mean
}

/// A candidate plan: meet a prey on its trajectory, then follow it or another one.
#[derive(Clone, Copy)]
struct CandidatePlan<'a> {
    target: usize,
    lead: &'a Trajectory,
    meeting: usize,
}

/// The state of a simulation.
#[derive(Clone, Copy)]
struct SimulatedState {
    step: usize,
    place: Point,
    caught: [bool; MAX_PREY],
    cost: f64,
}

impl CandidatePlan<'_> {
    /// The expected cost over the trajectories of the target; infinity if it is `cost_limit` or more.
    fn expected_cost(
        &self,
        from: Point,
        forecasts: &[Forecast],
        objective: Objective,
        cost_limit: f64,
    ) -> f64 {
        let mut caught = [false; MAX_PREY];
        for (flag, forecast) in caught.iter_mut().zip(forecasts) {
            *flag = forecast.is_caught;
        }
        let start = SimulatedState { step: 0, place: from, caught, cost: 0.0 };
        let mut cost = 0.0;
        for course in &forecasts[self.target].courses {
            let left = (cost_limit - cost) / course.weight;
            cost += course.weight * self.cost(start, course, forecasts, objective, left);
            if cost >= cost_limit {
                return f64::INFINITY;
            }
        }
        cost
    }

    fn cost(
        &self,
        mut state: SimulatedState,
        course: &Course,
        forecasts: &[Forecast],
        objective: Objective,
        cost_limit: f64,
    ) -> f64 {
        let n_steps = objective.n_steps.min(PLANNING_STEPS);
        let mut is_found = false;
        while state.step < n_steps && state.cost < cost_limit {
            let step = state.step;
            let aim = if is_found { course.trajectory[step] } else { self.lead[step.max(self.meeting)] };
            let is_over = state.advance(aim, self.target, course, forecasts, objective);
            let apart = distance(state.place, course.trajectory[step]);
            is_found |= apart < SIGHT_RADIUS;
            if is_over {
                return state.cost;
            }
            if apart < CATCH_DISTANCE {
                let stays = state.follow(self.target, self.target, course, forecasts, objective, cost_limit);
                let others = (0..forecasts.len()).filter(|next_target| {
                    *next_target != self.target
                        && !state.caught[*next_target]
                        && forecasts[*next_target].courses.len() == 1
                });
                return others.fold(stays, |least, next_target| {
                    least.min(state.follow(
                        next_target,
                        self.target,
                        course,
                        forecasts,
                        objective,
                        cost_limit.min(least),
                    ))
                });
            }
        }
        state.cost
    }
}

const CATCH_DISTANCE: f64 = PREDATOR.size + PREY.size;

impl SimulatedState {
    /// The cost of following prey `next_target` until the end, or until it is `cost_limit`.
    fn follow(
        mut self,
        next_target: usize,
        target: usize,
        course: &Course,
        forecasts: &[Forecast],
        objective: Objective,
        cost_limit: f64,
    ) -> f64 {
        let trajectory = if next_target == target {
            &course.trajectory
        } else {
            &forecasts[next_target].courses[0].trajectory
        };
        while self.step < objective.n_steps.min(PLANNING_STEPS) && self.cost < cost_limit {
            let ahead =
                if next_target == target { self.step } else { (self.step + 2).min(PLANNING_STEPS - 1) };
            if self.advance(trajectory[ahead], target, course, forecasts, objective) {
                break;
            }
        }
        self.cost
    }

    /// Simulates one step towards `aim`. Returns whether the episode is over.
    #[inline(always)]
    fn advance(
        &mut self,
        aim: Point,
        target: usize,
        course: &Course,
        forecasts: &[Forecast],
        objective: Objective,
    ) -> bool {
        self.place = towards(self.place, aim);
        let mut is_over = true;
        for (prey, forecast) in forecasts.iter().enumerate() {
            let course = if prey == target { Some(course) } else { forecast.courses.first() };
            let own =
                course.map_or(f64::INFINITY, |course| distance(self.place, course.trajectory[self.step]));
            let least = own.min(forecast.others[self.step]);
            if objective.caught_prey_counts || !self.caught[prey] {
                // Contacts keep bodies about this far apart.
                self.cost += least.max(0.1);
            }
            self.caught[prey] |= least < CATCH_DISTANCE;
            is_over &= self.caught[prey];
        }
        self.step += 1;
        is_over
    }
}

/// The push that leads to the goals of the next three steps, around obstacles.
pub(crate) fn steer(own: Body, plan: &PursuitPlan, dynamics: &Dynamics, obstacles: &[Point]) -> Action {
    let goals = match around(own.position, plan.next_goals[2], obstacles) {
        Some(corner) => [corner; 3],
        None => plan.next_goals,
    };
    let nearby: Vec<Point> =
        obstacles.iter().copied().filter(|obstacle| distance(*obstacle, own.position) < 0.7).collect();
    let mut best = (f64::INFINITY, 0);
    let push = |body: Body, action: usize| {
        let mut body = body;
        dynamics.advance_alone(&mut body, PREDATOR, &nearby, action as Action);
        body
    };
    for first in 0..DIRECTIONS.len() {
        let one = push(own, first);
        let miss_one = 0.3 * distance(one.position, goals[0]);
        for second in 0..DIRECTIONS.len() {
            let two = push(one, second);
            let miss_two = miss_one + 0.3 * distance(two.position, goals[1]);
            for third in 0..DIRECTIONS.len() {
                let three = push(two, third);
                let miss = miss_two + distance(three.position, goals[2]);
                if miss < best.0 {
                    best = (miss, first);
                }
            }
        }
    }
    best.1 as Action
}

/// A goal for passing the first obstacle between `from` and `goal`; `None` if there is none.
fn around(from: Point, goal: Point, obstacles: &[Point]) -> Option<Point> {
    let berth = PREDATOR.size + OBSTACLE_SIZE + 0.01;
    let offset = from_to(from, goal);
    let far = length(offset);
    if far < 1e-6 {
        return None;
    }
    let ahead = offset.map(|part| part / far);
    let blocking = obstacles.iter().filter_map(|obstacle| {
        let to = from_to(from, *obstacle);
        let along = to[0] * ahead[0] + to[1] * ahead[1];
        let aside = to[0] * ahead[1] - to[1] * ahead[0];
        let is_between =
            along > 0.0 && along < far && aside.abs() < berth && distance(*obstacle, goal) > berth - 0.1;
        is_between.then_some((along, *obstacle, aside))
    });
    let (_, obstacle, aside) = blocking.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let to = from_to(from, obstacle);
    let apart = length(to).max(1e-9);
    // The tangent on the side on which the straight line passes. An ego that touches the obstacle slides along it.
    let sine = (berth / apart).min(1.0);
    let cosine = (1.0 - sine * sine).sqrt();
    let side = if aside > 0.0 { 1.0 } else { -1.0 };
    let unit = to.map(|part| part / apart);
    let tangent = [unit[0] * cosine - side * unit[1] * sine, unit[1] * cosine + side * unit[0] * sine];
    let reach = (apart * cosine).max(0.15);
    Some([from[0] + tangent[0] * reach, from[1] + tangent[1] * reach])
}
