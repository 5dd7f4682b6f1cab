//! How to meet a prey whose way ahead is known or guessed: where to go, and which push leads there fastest.

use crate::game::Action;
use crate::predator_prey::bodies::{
    Body, DIRECTIONS, Dynamics, MAX_PREY, OBSTACLE_SIZE, PREDATOR, PREY, Point, STEP_SECS, distance, from_to,
    length,
};
use crate::predator_prey::watchtowers::SIGHT_RADIUS;

/// How many steps ahead a meeting is planned.
pub(crate) const FORESIGHT: usize = 25;

/// The places of one agent in the steps to come.
pub(crate) type Way = [Point; FORESIGHT];

/// One way a prey may go from here, and how likely it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    pub way: Way,
    pub weight: f64,
}

/// What the steps to come hold for one prey.
#[derive(Clone, Debug)]
pub(crate) struct Prospect {
    /// Where it may go, the likeliest first. None if it is not worth a thought.
    pub courses: Vec<Course>,
    /// How far the other predators will be from it, at the least.
    pub others: [f64; FORESIGHT],
    pub is_caught: bool,
}

/// What the ego plays for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stakes {
    pub n_steps: usize,
    pub caught_prey_counts: bool,
}

/// Where to head for now, and what is expected of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PursuitPlan {
    /// The goals of the next three steps.
    pub soon: [Point; 3],
    /// How many steps the ego keeps the same goal.
    pub n_steady_steps: usize,
    /// The sum of distances until the end of the foresight.
    cost: f64,
}

impl PursuitPlan {
    /// Go to this place.
    pub(crate) fn to(place: Point) -> PursuitPlan {
        PursuitPlan { soon: [place; 3], n_steady_steps: 0, cost: f64::INFINITY }
    }

    /// Wait for `lead` where it will be after `meeting` steps, then go with it.
    fn new(lead: &Way, meeting: usize, cost: f64) -> PursuitPlan {
        PursuitPlan { soon: [0, 1, 2].map(|step| lead[step.max(meeting)]), n_steady_steps: meeting, cost }
    }
}

/// The numbers of steps after which a meeting is thought of.
const MEETINGS: [usize; 12] = [0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 22];

/// The meeting with any prey that costs least, with what comes after it.
pub(crate) fn plan(from: Point, prospects: &[Prospect], stakes: Stakes) -> PursuitPlan {
    let mut best = PursuitPlan::to(from);
    for (target, prospect) in prospects.iter().enumerate() {
        let Some(likeliest) = prospect.courses.first() else { continue };
        let mean = mean_way(&prospect.courses);
        let leads: &[&Way] =
            if prospect.courses.len() == 1 { &[&likeliest.way] } else { &[&likeliest.way, &mean] };
        for lead in leads {
            for meeting in meetings(from, lead, 0, stakes) {
                let idea = Idea { target, lead, meeting };
                let cost = idea.expected_cost(from, prospects, stakes, best.cost);
                if cost < best.cost {
                    best = PursuitPlan { n_steady_steps: 0, ..PursuitPlan::new(lead, meeting, cost) };
                }
            }
        }
    }
    best
}

/// The meetings on a course that are worth a thought: not too early, before the end, and not so soon that the ego would
/// come far too late. The last one is always among them.
fn meetings(from: Point, lead: &Way, earliest: usize, stakes: Stakes) -> impl Iterator<Item = usize> {
    let stride = PREDATOR.max_speed * STEP_SECS;
    let last = MEETINGS.iter().copied().rfind(|meeting| *meeting < stakes.n_steps).unwrap_or(0);
    MEETINGS.into_iter().filter(move |meeting| {
        let is_reachable = || distance(from, lead[*meeting]) < stride * (*meeting + 1) as f64 + LATE_BY;
        *meeting == last || ((earliest..last).contains(meeting) && is_reachable())
    })
}

/// A meeting that the ego would miss by more than this is not thought of.
const LATE_BY: f64 = 0.3;

/// Where to look for a prey that has not been seen: the same ideas, with no thought for anybody else.
pub(crate) fn search(from: Point, courses: &[Course], stakes: Stakes) -> PursuitPlan {
    let n_steps = stakes.n_steps.min(FORESIGHT);
    let mean = mean_way(courses);
    let mut best = PursuitPlan::to(from);
    // A single guess is worth going for only where it will be after a while.
    let leads = std::iter::once((&mean, 0)).chain(courses.iter().step_by(4).map(|course| (&course.way, 4)));
    for (lead, earliest) in leads {
        for meeting in meetings(from, lead, earliest, stakes) {
            let mut own = [from; FORESIGHT];
            let mut place = from;
            for (step, own) in own[..n_steps].iter_mut().enumerate() {
                place = towards(place, lead[step.max(meeting)]);
                *own = place;
            }
            let mut cost = 0.0;
            for course in courses {
                let mut until_found = 0.0;
                for (step, (own, prey)) in own[..n_steps].iter().zip(&course.way).enumerate() {
                    let apart = distance(*own, *prey);
                    until_found += apart;
                    if apart < SIGHT_RADIUS {
                        // From here on the ego keeps close to it.
                        until_found += KEPT_AT * (n_steps - 1 - step) as f64;
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

/// The distance at which an ego follows a prey it has found, on average.
const KEPT_AT: f64 = 0.12;

#[inline]
fn towards(from: Point, aim: Point) -> Point {
    let stride = PREDATOR.max_speed * STEP_SECS;
    let way = from_to(from, aim);
    let part = (stride / length(way).max(1e-9)).min(1.0);
    [from[0] + part * way[0], from[1] + part * way[1]]
}

fn mean_way(courses: &[Course]) -> Way {
    let mut mean = [[0.0; 2]; FORESIGHT];
    for course in courses {
        for (sum, place) in mean.iter_mut().zip(&course.way) {
            *sum = [sum[0] + course.weight * place[0], sum[1] + course.weight * place[1]];
        }
    }
    mean
}

/// A way to play on: meet a prey somewhere on a course, then stay with it or turn to another.
#[derive(Clone, Copy)]
struct Idea<'a> {
    target: usize,
    lead: &'a Way,
    meeting: usize,
}

/// A game of thought, at some step.
#[derive(Clone, Copy)]
struct SimulatedState {
    step: usize,
    place: Point,
    caught: [bool; MAX_PREY],
    cost: f64,
}

impl Idea<'_> {
    /// What this idea costs on average over the courses of its target, or infinity once it is more than `enough`.
    fn expected_cost(&self, from: Point, prospects: &[Prospect], stakes: Stakes, enough: f64) -> f64 {
        let mut caught = [false; MAX_PREY];
        for (flag, prospect) in caught.iter_mut().zip(prospects) {
            *flag = prospect.is_caught;
        }
        let start = SimulatedState { step: 0, place: from, caught, cost: 0.0 };
        let mut cost = 0.0;
        for course in &prospects[self.target].courses {
            let left = (enough - cost) / course.weight;
            cost += course.weight * self.cost(start, course, prospects, stakes, left);
            if cost >= enough {
                return f64::INFINITY;
            }
        }
        cost
    }

    fn cost(
        &self,
        mut thought: SimulatedState,
        course: &Course,
        prospects: &[Prospect],
        stakes: Stakes,
        enough: f64,
    ) -> f64 {
        let n_steps = stakes.n_steps.min(FORESIGHT);
        let mut is_found = false;
        while thought.step < n_steps && thought.cost < enough {
            let step = thought.step;
            let aim = if is_found { course.way[step] } else { self.lead[step.max(self.meeting)] };
            let is_over = thought.advance(aim, self.target, course, prospects, stakes);
            let apart = distance(thought.place, course.way[step]);
            is_found |= apart < SIGHT_RADIUS;
            if is_over {
                return thought.cost;
            }
            if apart < TOUCHING {
                let stays = thought.follow(self.target, self.target, course, prospects, stakes, enough);
                let others = (0..prospects.len()).filter(|then| {
                    *then != self.target && !thought.caught[*then] && prospects[*then].courses.len() == 1
                });
                return others.fold(stays, |least, then| {
                    least.min(thought.follow(then, self.target, course, prospects, stakes, enough.min(least)))
                });
            }
        }
        thought.cost
    }
}

const TOUCHING: f64 = PREDATOR.size + PREY.size;

impl SimulatedState {
    /// Keeps after prey `then` until the end, or until it has cost `enough`.
    fn follow(
        mut self,
        then: usize,
        target: usize,
        course: &Course,
        prospects: &[Prospect],
        stakes: Stakes,
        enough: f64,
    ) -> f64 {
        let way = if then == target { &course.way } else { &prospects[then].courses[0].way };
        while self.step < stakes.n_steps.min(FORESIGHT) && self.cost < enough {
            let ahead = if then == target { self.step } else { (self.step + 2).min(FORESIGHT - 1) };
            if self.advance(way[ahead], target, course, prospects, stakes) {
                break;
            }
        }
        self.cost
    }

    /// One step towards `aim`; whether that was the last one of the episode.
    #[inline(always)]
    fn advance(
        &mut self,
        aim: Point,
        target: usize,
        course: &Course,
        prospects: &[Prospect],
        stakes: Stakes,
    ) -> bool {
        self.place = towards(self.place, aim);
        let mut is_over = true;
        for (prey, prospect) in prospects.iter().enumerate() {
            let course = if prey == target { Some(course) } else { prospect.courses.first() };
            let own = course.map_or(f64::INFINITY, |course| distance(self.place, course.way[self.step]));
            let least = own.min(prospect.others[self.step]);
            if stakes.caught_prey_counts || !self.caught[prey] {
                // Bodies keep each other at this distance.
                self.cost += least.max(0.1);
            }
            self.caught[prey] |= least < TOUCHING;
            is_over &= self.caught[prey];
        }
        self.step += 1;
        is_over
    }
}

/// The push that leads to the goals of the next three steps, around what stands in the way.
pub(crate) fn steer(own: Body, plan: &PursuitPlan, laws: &Dynamics, obstacles: &[Point]) -> Action {
    let goals = match around(own.position, plan.soon[2], obstacles) {
        Some(corner) => [corner; 3],
        None => plan.soon,
    };
    let nearby: Vec<Point> =
        obstacles.iter().copied().filter(|obstacle| distance(*obstacle, own.position) < 0.7).collect();
    let mut best = (f64::INFINITY, 0);
    let push = |body: Body, action: usize| {
        let mut body = body;
        laws.advance_alone(&mut body, PREDATOR, &nearby, action as Action);
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

/// Where to pass an obstacle that stands between `from` and `goal`.
fn around(from: Point, goal: Point, obstacles: &[Point]) -> Option<Point> {
    let berth = PREDATOR.size + OBSTACLE_SIZE + 0.01;
    let way = from_to(from, goal);
    let far = length(way);
    if far < 1e-6 {
        return None;
    }
    let ahead = way.map(|part| part / far);
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
    // The tangent on the side where the straight way passes. When the ego touches the obstacle it slides along it.
    let sine = (berth / apart).min(1.0);
    let cosine = (1.0 - sine * sine).sqrt();
    let side = if aside > 0.0 { 1.0 } else { -1.0 };
    let unit = to.map(|part| part / apart);
    let tangent = [unit[0] * cosine - side * unit[1] * sine, unit[1] * cosine + side * unit[0] * sine];
    let reach = (apart * cosine).max(0.15);
    Some([from[0] + tangent[0] * reach, from[1] + tangent[1] * reach])
}
