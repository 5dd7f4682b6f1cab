//! Who of the predators among the peers chases whom, learned from how they move.

use crate::game::Action;
use crate::predator_prey::bodies::{
    AgentCounts, Body, Dynamics, MAX_PREY, PREDATOR, Point, STEP_SECS, distance,
};
use crate::predator_prey::peers::predator;

/// What is left of a guess's weight when a predator did not move as it should have.
const DOUBT: f64 = 0.05;
/// How much less likely a predator is to chase a prey for each unit of distance between them, once things have settled.
const NEARNESS: f64 = 1.5;
/// What is left of a guess's weight when the chased prey is seen alone.
const ALONE: f64 = 0.85;
/// The number of steps after which predators have come close to their prey, as a rule.
const SETTLED: usize = 10;

/// A weight for every way in which the predators may have chosen different prey.
#[derive(Clone, Debug)]
pub(crate) struct Preferences {
    guesses: Vec<(Vec<usize>, f64)>,
}

impl Preferences {
    /// All ways are equally likely.
    pub(crate) fn unknown(cast: AgentCounts) -> Preferences {
        let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
        for _ in 1..cast.n_predators {
            choices = choices
                .iter()
                .flat_map(|taken| {
                    let open = (0..cast.n_prey).filter(|prey| !taken.contains(prey));
                    open.map(|prey| [taken.as_slice(), &[prey]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        let weight = 1.0 / choices.len() as f64;
        Preferences { guesses: choices.into_iter().map(|choice| (choice, weight)).collect() }
    }

    /// How likely each prey is to be left to the ego.
    pub(crate) fn free(&self) -> [f64; MAX_PREY] {
        let mut free = [0.0; MAX_PREY];
        for (choice, weight) in &self.guesses {
            for (prey, share) in free.iter_mut().enumerate() {
                if !choice.contains(&prey) {
                    *share += weight;
                }
            }
        }
        free
    }

    /// Somebody told whom peer predator `slot` chases.
    pub(crate) fn told(&mut self, slot: usize, prefers: usize) {
        self.guesses.retain(|(choice, _)| choice[slot] == prefers);
        let weight = 1.0 / self.guesses.len() as f64;
        self.guesses.iter_mut().for_each(|guess| guess.1 = weight);
    }

    /// How likely peer predator `slot` is to chase `prey`.
    pub(crate) fn chance(&self, slot: usize, prey: usize) -> f64 {
        self.guesses.iter().filter(|(choice, _)| choice[slot] == prey).map(|(_, weight)| weight).sum()
    }

    /// The likeliest preference of peer predator `slot`.
    pub(crate) fn likeliest(&self, slot: usize) -> usize {
        let best = self.guesses.iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("some way");
        best.0[slot]
    }

    /// Peer predator `slot` was seen before and after a step; the prey were at `prey` before it, where that is known.
    pub(crate) fn moved(
        &mut self,
        slot: usize,
        [before, now]: [Body; 2],
        prey: &[Option<Point>],
        laws: &Dynamics,
        obstacles: &[Point],
    ) {
        self.learn(slot, before.position, prey, |action| {
            let mut guess = before;
            laws.advance_alone(&mut guess, PREDATOR, obstacles, action);
            distance(guess.velocity, now.velocity) < 0.02
        });
    }

    /// Peer predator `slot` is seen for the first time in a while, and the prey with it: who did it push towards?
    pub(crate) fn appeared(
        &mut self,
        slot: usize,
        now: Body,
        prey: &[Option<Body>],
        moment: usize,
        laws: &Dynamics,
    ) {
        if now.velocity == [0.0; 2] {
            return;
        }
        let before = |body: Body| [0, 1].map(|axis| body.position[axis] - STEP_SECS * body.velocity[axis]);
        let places: Vec<Option<Point>> = prey.iter().map(|body| body.map(before)).collect();
        self.learn(slot, before(now), &places, |action| laws.may_lead_to(now.velocity, PREDATOR, action));
        if prey.iter().all(Option::is_some) {
            let eagerness = NEARNESS * moment.min(SETTLED) as f64 / SETTLED as f64;
            let mut likelihoods = [1.0; MAX_PREY];
            for (likelihood, body) in likelihoods.iter_mut().zip(prey.iter().flatten()) {
                *likelihood = (-eagerness * distance(body.position, now.position)).exp();
            }
            self.weigh(slot, likelihoods);
        }
    }

    /// Once things have settled, a predator keeps close to the prey it chases: a prey seen without it is less likely to
    /// be that one. The steps of one meeting tell much the same, so that each counts for little.
    pub(crate) fn kept_company(
        &mut self,
        moment: usize,
        predators: &[Option<Body>],
        prey: &[Option<Body>],
        from: Point,
    ) {
        if moment < SETTLED {
            return;
        }
        for (slot, predator) in predators.iter().enumerate() {
            let is_alone = |body: &Body| match predator {
                Some(predator) => distance(predator.position, body.position) > 0.3,
                // Who is not in sight of the ego is not close to what is close to the ego.
                None => distance(body.position, from) < 0.15,
            };
            let mut likelihoods = [1.0; MAX_PREY];
            for (likelihood, body) in likelihoods.iter_mut().zip(prey) {
                if body.as_ref().is_some_and(is_alone) {
                    *likelihood = ALONE;
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
                *likelihood = if explains(predator::act(position, *place)) { 1.0 } else { DOUBT };
            }
        }
        self.weigh(slot, likelihoods);
    }

    fn weigh(&mut self, slot: usize, likelihoods: [f64; MAX_PREY]) {
        let mut total = 0.0;
        for (choice, weight) in &mut self.guesses {
            *weight *= likelihoods[choice[slot]];
            total += *weight;
        }
        // Doubt keeps every way possible, so that later steps can correct a mistake.
        let n = self.guesses.len() as f64;
        self.guesses.iter_mut().for_each(|(_, weight)| *weight = *weight / total * 0.999 + 0.001 / n);
    }
}
