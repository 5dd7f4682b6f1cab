//! Egos that play alike with all peers: they react to observations, and forget everything at the end of an episode.

use crate::ego::{Ego, one_hot};
use crate::game::{Action, Seat};
use crate::predator_prey::bodies::{AgentCounts, Body, PREDATOR, Point, distance};
use crate::predator_prey::view::{Layout, Seen};
use crate::predator_prey::watchtowers::{TOWERS, touches_tower};
use crate::predator_prey::{PredatorPrey, steering};

/// The goal while the ego has no prey to chase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum IdleRule {
    /// The centre of the square.
    Centre,
    /// The corners of a square of this half width around the centre, one after the other.
    Round(f64),
    /// The nearest tower, then the centre.
    TowerThenCentre,
    /// The nearest tower, then the corners around the centre.
    TowerThenRound(f64),
}

/// The prey to chase, at its position or its last known position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TargetRule {
    /// No prey.
    Nothing,
    /// The nearest prey.
    Nearest,
    /// Prey A.
    AlwaysFirst,
    /// The prey that is furthest from the other predators in sight, chosen once per episode.
    Loneliest,
}

/// The evaluated rules, with their mean returns over 100 encounters with each training tuple: under preset `paper` with 3 and 5
/// peers, and under preset `reference` with 3 and 5 peers. Standard errors are 0.02.
#[rustfmt::skip]
pub(crate) const CANDIDATES: [(IdleRule, TargetRule); 12] = [
    (IdleRule::Centre, TargetRule::Nothing),                // −4.34 −5.65   −4.14 −4.48
    (IdleRule::Centre, TargetRule::Nearest),                // −4.35 −5.67   −4.16 −4.51
    (IdleRule::Centre, TargetRule::AlwaysFirst),            // −4.35 −5.66   −4.16 −4.49
    (IdleRule::Round(0.3), TargetRule::Nearest),            // −4.51 −5.74   −4.42 −4.67
    (IdleRule::Round(0.5), TargetRule::Nearest),            // −4.60 −5.70   −4.56 −4.67
    (IdleRule::Round(0.7), TargetRule::Nearest),            // −4.62 −5.60   −4.46 −4.52
    (IdleRule::TowerThenCentre, TargetRule::Nearest),       // −4.54 −5.66   −4.36 −4.59
    (IdleRule::TowerThenCentre, TargetRule::AlwaysFirst),   // −4.58 −5.65   −4.42 −4.58
    (IdleRule::TowerThenCentre, TargetRule::Loneliest),     // −4.44 −5.57   −4.23 −4.48
    (IdleRule::TowerThenRound(0.7), TargetRule::Nearest),   // −4.53 −5.58   −4.33 −4.49
    (IdleRule::TowerThenRound(0.7), TargetRule::AlwaysFirst), // −4.58 −5.61   −4.41 −4.52
    (IdleRule::TowerThenRound(0.7), TargetRule::Loneliest), // −4.39 −5.48   −4.17 −4.37
];

/// The best candidate. With one other predator it is to stay at the centre, equally far from all paths.
pub(crate) fn best_static(counts: AgentCounts) -> (IdleRule, TargetRule) {
    if counts.n_predators == 2 { CANDIDATES[0] } else { CANDIDATES[11] }
}

/// An ego with one pair of rules for all peers.
#[derive(Clone, Debug)]
pub(crate) struct FixedEgo {
    layout: Layout,
    n_predators: usize,
    idle_rule: IdleRule,
    target_rule: TargetRule,
    episode: InEpisode,
}

/// The memory of the ego within an episode.
#[derive(Clone, Copy, Debug, Default)]
struct InEpisode {
    /// Whether it has touched a tower.
    has_looked: bool,
    /// The last known position of a prey to chase.
    last_seen: Option<Point>,
    /// The choice of [`TargetRule::Loneliest`].
    chosen: Option<usize>,
    /// The current corner of [`IdleRule::Round`].
    corner: Option<usize>,
}

impl FixedEgo {
    pub(crate) fn new(game: &PredatorPrey, (idle_rule, target_rule): (IdleRule, TargetRule)) -> FixedEgo {
        let (layout, n_predators) = (game.layout, game.counts.n_predators);
        FixedEgo { layout, n_predators, idle_rule, target_rule, episode: InEpisode::default() }
    }

    /// The memory after an observation.
    fn remember(&self, seen: &Seen) -> InEpisode {
        let own = seen.own.position;
        let mut episode = self.episode;
        episode.has_looked |= touches_tower(own, PREDATOR.size);
        let (predators, prey) = seen.others.split_at(self.n_predators);
        episode.chosen = episode.chosen.or_else(|| loneliest(predators, prey));
        let is_wanted = |index: usize| match self.target_rule {
            TargetRule::Nothing => false,
            TargetRule::Nearest => true,
            TargetRule::AlwaysFirst => index == 0,
            TargetRule::Loneliest => episode.chosen == Some(index),
        };
        let wanted = prey.iter().enumerate().filter(|(index, _)| is_wanted(*index));
        let in_sight = wanted.filter_map(|(_, body)| body.map(|body| body.position));
        // A prey that is not at its last known position is forgotten.
        let remembered = episode.last_seen.filter(|place| distance(own, *place) > 0.1);
        episode.last_seen = nearest(own, in_sight).or(remembered);
        if let IdleRule::Round(extent) | IdleRule::TowerThenRound(extent) = self.idle_rule {
            let distance_to = |corner: &usize| distance(own, corner_of(*corner, extent));
            let nearest = (0..4).min_by(|one, other| distance_to(one).total_cmp(&distance_to(other)));
            let corner = episode.corner.or(nearest).expect("there are four corners");
            episode.corner = Some(if distance_to(&corner) < 0.15 { (corner + 1) % 4 } else { corner });
        }
        episode
    }

    fn goal(&self, own: Point, episode: &InEpisode) -> Point {
        if let (IdleRule::TowerThenCentre | IdleRule::TowerThenRound(_), false) =
            (self.idle_rule, episode.has_looked)
        {
            return nearest(own, TOWERS.into_iter()).expect("there are four towers");
        }
        episode.last_seen.unwrap_or(match self.idle_rule {
            IdleRule::Centre | IdleRule::TowerThenCentre => [0.0; 2],
            IdleRule::Round(extent) | IdleRule::TowerThenRound(extent) => {
                corner_of(episode.corner.expect("set at the first observation"), extent)
            }
        })
    }
}

fn loneliest(predators: &[Option<Body>], prey: &[Option<Body>]) -> Option<usize> {
    let loneliness = |body: &Body| {
        let distances = predators.iter().flatten().map(|predator| distance(predator.position, body.position));
        distances.fold(f64::INFINITY, f64::min)
    };
    let in_sight =
        prey.iter().enumerate().filter_map(|(index, body)| Some((loneliness(body.as_ref()?), index)));
    in_sight.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, index)| index)
}

fn nearest(own: Point, places: impl Iterator<Item = Point>) -> Option<Point> {
    places.min_by(|one, other| distance(own, *one).total_cmp(&distance(own, *other)))
}

fn corner_of(corner: usize, extent: f64) -> Point {
    [[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]][corner].map(|part| part * extent)
}

impl Ego for FixedEgo {
    fn begin_encounter(&mut self) {
        self.episode = InEpisode::default();
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let seen = self.layout.read(Seat::EGO.0, observation);
        let goal = self.goal(seen.own.position, &self.remember(&seen));
        one_hot(steering::walk(seen.own.position, goal), probabilities);
    }

    fn record_action(&mut self, observation: &[f32], _action: Action) {
        self.episode = self.remember(&self.layout.read(Seat::EGO.0, observation));
    }

    fn end_episode(&mut self, _terminal_observation: &[f32]) {
        self.episode = InEpisode::default();
    }
}
