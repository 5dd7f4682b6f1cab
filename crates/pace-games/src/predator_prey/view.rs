//! Observations of an agent, their decoding, and the state as a text map.
//!
//! The sight of agents is in `watchtowers`.

use super::bodies::{
    AgentCounts, Body, MAX_AGENTS, MAX_OBSTACLES, OBSTACLE_SIZE, Point, World, distance, from_to, sum,
};
use super::inline_vec::InlineVec;
use super::peers::prey;
use super::watchtowers::{Sight, TOWERS};

/// Obstacles first, then the towers.
const N_LANDMARKS: usize = MAX_OBSTACLES + TOWERS.len();

const OWN_VELOCITY: usize = 0;
pub(crate) const OWN_POSITION: usize = 2;
const LANDMARK_FLAGS: usize = 4;
const LANDMARK_OFFSETS: usize = LANDMARK_FLAGS + N_LANDMARKS;
const OTHER_FLAGS: usize = LANDMARK_OFFSETS + 2 * N_LANDMARKS;

/// The layout of an observation.
///
/// An observation may have entries for more agents than the game has, so that an ego trained with five peers can play with
/// three. Agents keep the entries of their role, and entries without an agent are zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    counts: AgentCounts,
    /// The entries of agents for which observations have entries.
    capacity: AgentCounts,
    /// The horizon, if the last entry is the elapsed share of the episode.
    clock: Option<usize>,
}

/// A decoded observation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The observer.
    pub own: Body,
    /// The positions of the obstacles; `None` for an obstacle out of sight.
    pub obstacles: [Option<Point>; MAX_OBSTACLES],
    /// All agents by number; `None` for the observer and for agents out of sight.
    pub others: InlineVec<Option<Body>, MAX_AGENTS>,
}

impl Layout {
    /// A layout for `counts` with entries for `capacity`. `clock` is the horizon if observations include the elapsed time.
    pub(crate) fn new(counts: AgentCounts, capacity: AgentCounts, clock: Option<usize>) -> Layout {
        assert!(
            counts.n_predators <= capacity.n_predators && counts.n_prey <= capacity.n_prey,
            "{counts:?} in {capacity:?}"
        );
        Layout { counts, capacity, clock }
    }

    /// Length of an observation.
    pub(crate) fn observation_size(&self) -> usize {
        self.clock_index() + usize::from(self.clock.is_some())
    }

    /// The index of the clock: the last entry.
    #[inline]
    fn clock_index(&self) -> usize {
        OTHER_FLAGS + 5 * self.n_slots()
    }

    /// The index of the first offset of another agent.
    #[inline]
    fn other_offsets(&self) -> usize {
        OTHER_FLAGS + self.n_slots()
    }

    /// The index of the first velocity of another agent.
    #[inline]
    fn other_velocities(&self) -> usize {
        self.other_offsets() + 2 * self.n_slots()
    }

    #[inline]
    fn n_slots(&self) -> usize {
        self.capacity.n_agents() - 1
    }

    /// The slot of `other` in an observation of `observer`: agents in order, without the observer.
    #[inline]
    fn slot(&self, observer: usize, other: usize) -> usize {
        let (observer, other) = (self.padded_index(observer), self.padded_index(other));
        if other > observer { other - 1 } else { other }
    }

    /// The index of an agent among [`Layout::capacity`] agents.
    #[inline]
    fn padded_index(&self, agent: usize) -> usize {
        let is_predator = agent < self.counts.n_predators;
        if is_predator { agent } else { agent + self.capacity.n_predators - self.counts.n_predators }
    }

    /// The entries of an observation after a rotation by `n_quarters` counter-clockwise quarter turns; see
    /// [`crate::SymmetryTransform::entries`].
    pub(crate) fn rotated_entries(&self, n_quarters: usize) -> Vec<(usize, bool)> {
        let mut entries: Vec<(usize, bool)> =
            (0..self.observation_size()).map(|place| (place, false)).collect();
        let pairs = [OWN_VELOCITY, OWN_POSITION].into_iter();
        let pairs = pairs.chain((LANDMARK_OFFSETS..OTHER_FLAGS).step_by(2));
        let pairs: Vec<usize> = pairs.chain((self.other_offsets()..self.clock_index()).step_by(2)).collect();
        for _ in 0..n_quarters {
            for pair in &pairs {
                let [(x, x_negated), (y, y_negated)] = [entries[*pair], entries[pair + 1]];
                (entries[*pair], entries[pair + 1]) = ((y, !y_negated), (x, x_negated));
            }
            let before = entries.clone();
            for (index, [x, y]) in TOWERS.into_iter().enumerate() {
                let rotated =
                    TOWERS.iter().position(|tower| *tower == [-y, x]).expect("a tower in every corner");
                let [from, to] = [index, rotated].map(|tower| MAX_OBSTACLES + tower);
                entries[LANDMARK_FLAGS + to] = before[LANDMARK_FLAGS + from];
                let [from, to] = [from, to].map(|landmark| LANDMARK_OFFSETS + 2 * landmark);
                entries[to..to + 2].copy_from_slice(&before[from..from + 2]);
            }
        }
        entries
    }

    /// Writes the observation of `observer`.
    #[inline]
    pub(crate) fn observe(&self, world: &World, observer: usize, sight: Sight, observation: &mut [f32]) {
        assert_eq!(observation.len(), self.observation_size(), "the length of an observation");
        observation.fill(0.0);
        let own = world.agents[observer];
        write(observation, OWN_VELOCITY, own.velocity);
        write(observation, OWN_POSITION, own.position);
        let obstacles = world.obstacles.iter().enumerate();
        let towers = TOWERS.iter().enumerate().map(|(index, tower)| (MAX_OBSTACLES + index, tower));
        for (index, place) in obstacles.chain(towers) {
            let offset = from_to(own.position, *place);
            if sight.reaches(offset) {
                observation[LANDMARK_FLAGS + index] = 1.0;
                write(observation, LANDMARK_OFFSETS + 2 * index, offset);
            }
        }
        for (agent, body) in world.agents.iter().enumerate() {
            let offset = from_to(own.position, body.position);
            if agent != observer && sight.reaches(offset) {
                let slot = self.slot(observer, agent);
                observation[OTHER_FLAGS + slot] = 1.0;
                write(observation, self.other_offsets() + 2 * slot, offset);
                write(observation, self.other_velocities() + 2 * slot, body.velocity);
            }
        }
        if let Some(horizon_steps) = self.clock {
            observation[self.clock_index()] = (world.n_steps as f64 / horizon_steps as f64) as f32;
        }
    }

    /// Decodes an observation of `observer`.
    pub(crate) fn read(&self, observer: usize, observation: &[f32]) -> Seen {
        let own =
            Body { position: point(observation, OWN_POSITION), velocity: point(observation, OWN_VELOCITY) };
        let position = |place: usize| sum(own.position, point(observation, place));
        let mut others = [None; MAX_AGENTS];
        let n_agents = self.counts.n_agents();
        for (agent, other) in
            others[..n_agents].iter_mut().enumerate().filter(|(agent, _)| *agent != observer)
        {
            let slot = self.slot(observer, agent);
            *other = (observation[OTHER_FLAGS + slot] == 1.0).then(|| Body {
                position: position(self.other_offsets() + 2 * slot),
                velocity: point(observation, self.other_velocities() + 2 * slot),
            });
        }
        let obstacles = [0, 1].map(|index| {
            (observation[LANDMARK_FLAGS + index] == 1.0).then(|| position(LANDMARK_OFFSETS + 2 * index))
        });
        Seen { own, obstacles, others: InlineVec::of(&others[..n_agents]) }
    }
}

#[inline]
fn write(observation: &mut [f32], place: usize, point: Point) {
    observation[place] = point[0] as f32;
    observation[place + 1] = point[1] as f32;
}

fn point(observation: &[f32], place: usize) -> Point {
    [f64::from(observation[place]), f64::from(observation[place + 1])]
}

const MAP_COLUMNS: usize = 53;
const MAP_ROWS: usize = 27;
/// The part of the plane on the map, on each side of the centre. Agents further out are drawn at the edge.
const MAP_EXTENT: f64 = 1.3;

/// The symbols of [`render`]; every map repeats the most common ones.
pub(crate) const LEGEND: [&str; 2] = [
    "E  the ego; 1 2  predators; A B C  prey, in small letters once it is caught",
    "T  watchtower: an agent that touches it sees everything, any other agent only what is near; # obstacle; north is up",
];

/// The state as a map, north at the top, below a line with the step and the symbols.
pub(crate) fn render(world: &World, counts: AgentCounts) -> String {
    let mut map = [[' '; MAP_COLUMNS]; MAP_ROWS];
    for (row, line) in map.iter_mut().enumerate() {
        for (column, cell) in line.iter_mut().enumerate() {
            let place = [
                (column as f64 / (MAP_COLUMNS - 1) as f64 * 2.0 - 1.0) * MAP_EXTENT,
                (1.0 - row as f64 / (MAP_ROWS - 1) as f64 * 2.0) * MAP_EXTENT,
            ];
            if world.obstacles.iter().any(|obstacle| distance(*obstacle, place) <= OBSTACLE_SIZE) {
                *cell = '#';
            } else if place.iter().all(|coordinate| coordinate.abs() <= 1.0) {
                *cell = '·';
            }
        }
    }
    let mut draw = |place: Point, sign: char| {
        let part = |coordinate: f64| ((coordinate / MAP_EXTENT).clamp(-1.0, 1.0) + 1.0) / 2.0;
        let column = (part(place[0]) * (MAP_COLUMNS - 1) as f64).round() as usize;
        let row = (part(-place[1]) * (MAP_ROWS - 1) as f64).round() as usize;
        map[row][column] = sign;
    };
    TOWERS.iter().for_each(|tower| draw(*tower, 'T'));
    // The ego is drawn last, so that it is never hidden.
    for (agent, body) in world.agents.iter().enumerate().rev() {
        draw(body.position, sign(agent, counts, world));
    }
    let mut text = format!("step {}", world.n_steps);
    text.push_str("   E ego, 1 2 predators, A B C prey (small: caught), # obstacle, T watchtower\n");
    for line in &map {
        let line: String = line.iter().collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn sign(agent: usize, counts: AgentCounts, world: &World) -> char {
    if agent == 0 {
        'E'
    } else if agent < counts.n_predators {
        (b'0' + agent as u8) as char
    } else {
        let letter = prey::letter(agent - counts.n_predators);
        if world.caught[agent - counts.n_predators] { letter.to_ascii_lowercase() } else { letter }
    }
}
