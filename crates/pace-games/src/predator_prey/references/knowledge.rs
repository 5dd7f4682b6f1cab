//! What an ego knows of its peers and the running episode, and how a look around changes it.
//!
//! What to do with it is in `bayes`.

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

/// What holds in every encounter.
#[derive(Clone, Debug)]
pub(crate) struct GameConstants {
    pub cast: AgentCounts,
    pub laws: Dynamics,
    pub layout: Layout,
    pub horizon_steps: usize,
    pub caught_prey_counts: bool,
    pub cloud: Arc<ParticleSet>,
}

impl GameConstants {
    pub(crate) fn of(game: &PredatorPrey) -> GameConstants {
        let make_cloud = || Arc::new(ParticleSet::new(&game.laws, game.config.horizon_steps));
        GameConstants {
            cast: game.cast,
            laws: game.laws,
            layout: game.layout,
            horizon_steps: game.config.horizon_steps,
            caught_prey_counts: game.config.caught_prey_counts,
            cloud: Arc::clone(game.cloud.get_or_init(make_cloud)),
        }
    }
}

/// What an ego knows at one moment. Paths and preferences last for the encounter, the rest for the episode.
#[derive(Clone, Debug)]
pub(crate) struct Knowledge {
    pub preferences: Preferences,
    /// Where each prey may be and on which path.
    pub whereabouts: Vec<PreyBelief>,
    /// Where the other predators should be, once they have been seen.
    pub predators: Vec<Option<Body>>,
    pub obstacles: Vec<Point>,
    /// Which prey the ego knows to be caught.
    pub caught: [bool; MAX_PREY],
    /// How often everybody was in sight at once.
    pub n_views: usize,
    pub moment: usize,
    last: Option<LastMoment>,
}

#[derive(Clone, Debug)]
struct LastMoment {
    seen: Seen,
    action: Action,
    /// Where the prey were, as far as the ego could tell.
    prey: Vec<Option<Point>>,
}

impl Knowledge {
    /// Of peers that have never been met.
    pub(crate) fn of_strangers(cast: AgentCounts) -> Knowledge {
        let any_path = [1.0 / N_PATHS as f64; N_PATHS];
        Knowledge {
            preferences: Preferences::unknown(cast),
            whereabouts: vec![PreyBelief::unseen(&any_path); cast.n_prey],
            predators: vec![None; cast.n_predators - 1],
            obstacles: Vec::new(),
            caught: [false; MAX_PREY],
            n_views: 0,
            moment: 0,
            last: None,
        }
    }

    /// Of peers whose behaviour somebody told.
    pub(crate) fn of_acquaintances(cast: AgentCounts, specs: &[PredatorPreySpec]) -> Knowledge {
        let mut knowledge = Knowledge::of_strangers(cast);
        for (slot, spec) in specs.iter().enumerate() {
            match *spec {
                PredatorPreySpec::Predator { prefers } => knowledge.preferences.told(slot, prefers),
                PredatorPreySpec::Prey { path } => {
                    let mut paths = [0.0; N_PATHS];
                    // It knows the paths of the game, and takes a practice line for the side it goes along.
                    paths[prey::in_the_game(path)] = 1.0;
                    knowledge.whereabouts[slot + 1 - cast.n_predators] = PreyBelief::unseen(&paths);
                }
            }
        }
        knowledge
    }

    /// Takes in what is seen at this moment.
    pub(crate) fn look(&mut self, seen: &Seen, setting: &GameConstants) {
        let others = &seen.others[1..];
        self.n_views += usize::from(others.iter().all(Option::is_some));
        seen.obstacles.iter().flatten().for_each(|obstacle| self.note_obstacle(*obstacle));
        self.feel_obstacle(seen, setting);
        let (predators, prey) = others.split_at(setting.cast.n_predators - 1);
        for (slot, predator) in predators.iter().enumerate() {
            let is_near = |body: Body| distance(body.position, seen.own.position) < SIGHT_RADIUS;
            match *predator {
                Some(now) => {
                    self.judge(slot, now, prey, setting);
                    self.predators[slot] = Some(now);
                }
                // It is not where it should be.
                None if self.predators[slot].is_some_and(is_near) => self.predators[slot] = None,
                None => {}
            }
        }
        self.preferences.kept_company(self.moment, predators, prey, seen.own.position);
        for (index, body) in prey.iter().enumerate() {
            match body {
                Some(body) => {
                    self.whereabouts[index].saw(*body, self.moment, &setting.laws, &setting.cloud);
                    let touches = |predator: &Body| {
                        distance(predator.position, body.position) < PREDATOR.size + PREY.size
                    };
                    self.caught[index] |= touches(&seen.own) || predators.iter().flatten().any(touches);
                }
                None => self.whereabouts[index].missed(seen.own.position, self.moment, &setting.cloud),
            }
        }
    }

    /// What the last move of a predator in sight says about whom it chases.
    fn judge(&mut self, slot: usize, now: Body, prey: &[Option<Body>], setting: &GameConstants) {
        let agent = 1 + slot;
        let known_before =
            self.last.as_ref().and_then(|last| last.seen.others[agent].map(|body| (body, last)));
        let Some((before, last)) = known_before else {
            self.preferences.appeared(slot, now, prey, self.moment, &setting.laws);
            return;
        };
        // A predator that bumps into somebody moves as it must, not as it wants.
        let others = last.seen.others.iter().enumerate().filter(|(other, _)| *other != agent);
        let mut bodies = others.filter_map(|(_, body)| *body).chain([last.seen.own]);
        if bodies.any(|body| distance(body.position, before.position) < 2.0 * PREDATOR.size + 0.02) {
            return;
        }
        self.preferences.moved(slot, [before, now], &last.prey, &setting.laws, &self.obstacles);
    }

    /// An obstacle is out of sight before its rim is reached, but it can be felt: what pushed the ego off its course,
    /// if no agent did, stands opposite to the push and as deep as it is strong.
    fn feel_obstacle(&mut self, seen: &Seen, setting: &GameConstants) {
        let Some(last) = &self.last else { return };
        let own = last.seen.own;
        let mut others = last.seen.others.iter().flatten();
        let has_company = others.any(|other| distance(other.position, own.position) < SIGHT_RADIUS);
        if has_company || self.obstacles.len() == MAX_OBSTACLES {
            return;
        }
        let mut expected = own;
        setting.laws.advance_alone(&mut expected, PREDATOR, &self.obstacles, last.action);
        let push = from_to(expected.velocity, seen.own.velocity).map(|part| part / STEP_SECS);
        let strength = length(push);
        if strength > 0.5 {
            // A push of 1 means an overlap of 0.01; a speed cut to the maximum makes it look weaker than it was.
            let apart = PREDATOR.size + OBSTACLE_SIZE - 0.01 * strength.min(10.0);
            self.note_obstacle([0, 1].map(|axis| own.position[axis] - push[axis] / strength * apart));
        }
    }

    fn note_obstacle(&mut self, place: Point) {
        if let Some(known) = self.obstacles.iter_mut().find(|known| distance(**known, place) < 0.1) {
            *known = place;
            return;
        }
        if self.obstacles.len() == MAX_OBSTACLES {
            self.obstacles.remove(0);
        }
        self.obstacles.push(place);
    }

    /// The ego acted on what it saw; a step goes by.
    pub(crate) fn go_on(&mut self, seen: Seen, action: Action, laws: &Dynamics) {
        let prey: Vec<Option<Point>> = self.whereabouts.iter().map(PreyBelief::likeliest).collect();
        for (slot, predator) in self.predators.iter_mut().enumerate() {
            if let (Some(body), Some(chased)) = (predator, prey[self.preferences.likeliest(slot)]) {
                let action = predator::act(body.position, chased);
                laws.advance_alone(body, PREDATOR, &self.obstacles, action);
            }
        }
        self.whereabouts.iter_mut().for_each(|whereabouts| whereabouts.walk_on(laws, &self.obstacles));
        self.last = Some(LastMoment { seen, action, prey });
        self.moment += 1;
    }

    /// The episode is over: bodies are dealt anew, the peers stay who they are.
    pub(crate) fn end_episode(&mut self) {
        // A little doubt stays, so that a path taken for impossible by mistake can come back.
        let doubtful = |paths: [f64; N_PATHS]| paths.map(|weight| 0.98 * weight + 0.02 / N_PATHS as f64);
        let alone: Vec<[f64; N_PATHS]> = self.whereabouts.iter().map(|prey| doubtful(prey.paths())).collect();
        self.whereabouts = distinct(&alone).iter().map(PreyBelief::unseen).collect();
        self.predators.fill(None);
        self.obstacles.clear();
        self.caught = [false; MAX_PREY];
        (self.n_views, self.moment, self.last) = (0, 0, None);
    }
}

/// How likely each path is for each prey, given how likely it would be if there were no others, when no two prey may
/// have the same.
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
