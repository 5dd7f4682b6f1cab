//! What an agent sees, as 37 or 47 numbers and perhaps the time, and the world as a map for people.
//!
//! Who sees how far is in `watchtowers`.

use super::bodies::{
    AgentCounts, Body, MAX_AGENTS, MAX_OBSTACLES, OBSTACLE_SIZE, Point, World, distance, from_to,
};
use super::inline_vec::InlineVec;
use super::peers::prey;
use super::watchtowers::{Sight, TOWERS};

/// Obstacles first, then the towers.
const N_LANDMARKS: usize = MAX_OBSTACLES + TOWERS.len();

const OWN_VELOCITY: usize = 0;
pub(crate) const OWN_POSITION: usize = 2;
const LANDMARK_FLAGS: usize = 4;
const LANDMARK_WAYS: usize = LANDMARK_FLAGS + N_LANDMARKS;
const OTHER_FLAGS: usize = LANDMARK_WAYS + 2 * N_LANDMARKS;

/// Where everybody's numbers stand in an observation.
///
/// An observation may have room for more agents than there are: an ego trained with five peers can meet three. Each
/// keeps the place of its role, and the places of those who are not there stay zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    cast: AgentCounts,
    room: AgentCounts,
    /// The steps of an episode, where the last number says how much of it has passed.
    clock: Option<usize>,
}

/// What an observation says, read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// The observer.
    pub own: Body,
    /// The places of the obstacles in sight.
    pub obstacles: [Option<Point>; MAX_OBSTACLES],
    /// Everybody by agent number; the observer itself and those out of sight are missing.
    pub others: InlineVec<Option<Body>, MAX_AGENTS>,
}

impl Layout {
    /// For `cast`, with as much room as `room` needs, and a clock for an episode of so many steps.
    pub(crate) fn new(cast: AgentCounts, room: AgentCounts, clock: Option<usize>) -> Layout {
        assert!(cast.n_predators <= room.n_predators && cast.n_prey <= room.n_prey, "{cast:?} in {room:?}");
        Layout { cast, room, clock }
    }

    /// Length of an observation.
    pub(crate) fn observation_size(&self) -> usize {
        self.clock_place() + usize::from(self.clock.is_some())
    }

    /// Where the clock is: behind everything else.
    #[inline]
    fn clock_place(&self) -> usize {
        OTHER_FLAGS + 5 * self.n_slots()
    }

    #[inline]
    fn n_slots(&self) -> usize {
        self.room.n_agents() - 1
    }

    /// The slot of `other` in what `observer` sees: agents in order, without the observer.
    #[inline]
    fn slot(&self, observer: usize, other: usize) -> usize {
        let (observer, other) = (self.place(observer), self.place(other));
        if other > observer { other - 1 } else { other }
    }

    #[inline]
    fn place(&self, agent: usize) -> usize {
        let is_predator = agent < self.cast.n_predators;
        if is_predator { agent } else { agent + self.room.n_predators - self.cast.n_predators }
    }

    /// Where the numbers of an observation come from when the square is turned by so many quarters to the left, and
    /// which of them then have the other sign.
    pub(crate) fn numbers_turned(&self, n_quarters: usize) -> Vec<(usize, bool)> {
        let mut numbers: Vec<(usize, bool)> =
            (0..self.observation_size()).map(|place| (place, false)).collect();
        let other_ways = OTHER_FLAGS + self.n_slots();
        let pairs = [OWN_VELOCITY, OWN_POSITION].into_iter();
        let pairs = pairs.chain((LANDMARK_WAYS..OTHER_FLAGS).step_by(2));
        let pairs: Vec<usize> = pairs.chain((other_ways..self.clock_place()).step_by(2)).collect();
        for _ in 0..n_quarters {
            for pair in &pairs {
                let [(x, x_negated), (y, y_negated)] = [numbers[*pair], numbers[pair + 1]];
                (numbers[*pair], numbers[pair + 1]) = ((y, !y_negated), (x, x_negated));
            }
            let before = numbers.clone();
            for (index, [x, y]) in TOWERS.into_iter().enumerate() {
                let there =
                    TOWERS.iter().position(|tower| *tower == [-y, x]).expect("a tower in every corner");
                let [from, to] = [index, there].map(|tower| MAX_OBSTACLES + tower);
                numbers[LANDMARK_FLAGS + to] = before[LANDMARK_FLAGS + from];
                let [from, to] = [from, to].map(|landmark| LANDMARK_WAYS + 2 * landmark);
                numbers[to..to + 2].copy_from_slice(&before[from..from + 2]);
            }
        }
        numbers
    }

    /// Writes what `observer` sees with this sight.
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
            let way = from_to(own.position, *place);
            if sight.reaches(way) {
                observation[LANDMARK_FLAGS + index] = 1.0;
                write(observation, LANDMARK_WAYS + 2 * index, way);
            }
        }
        let other_ways = OTHER_FLAGS + self.n_slots();
        let other_velocities = other_ways + 2 * self.n_slots();
        for (agent, body) in world.agents.iter().enumerate() {
            let way = from_to(own.position, body.position);
            if agent != observer && sight.reaches(way) {
                let slot = self.slot(observer, agent);
                observation[OTHER_FLAGS + slot] = 1.0;
                write(observation, other_ways + 2 * slot, way);
                write(observation, other_velocities + 2 * slot, body.velocity);
            }
        }
        if let Some(horizon_steps) = self.clock {
            observation[self.clock_place()] = (world.n_steps as f64 / horizon_steps as f64) as f32;
        }
    }

    /// Reads what `observer` saw.
    pub(crate) fn read(&self, observer: usize, observation: &[f32]) -> Seen {
        let own =
            Body { position: point(observation, OWN_POSITION), velocity: point(observation, OWN_VELOCITY) };
        let there = |place: usize| {
            let way = point(observation, place);
            [own.position[0] + way[0], own.position[1] + way[1]]
        };
        let other_ways = OTHER_FLAGS + self.n_slots();
        let other_velocities = other_ways + 2 * self.n_slots();
        let mut others = [None; MAX_AGENTS];
        let n_agents = self.cast.n_agents();
        for (agent, other) in
            others[..n_agents].iter_mut().enumerate().filter(|(agent, _)| *agent != observer)
        {
            let slot = self.slot(observer, agent);
            *other = (observation[OTHER_FLAGS + slot] == 1.0).then(|| Body {
                position: there(other_ways + 2 * slot),
                velocity: point(observation, other_velocities + 2 * slot),
            });
        }
        let obstacles = [0, 1].map(|index| {
            (observation[LANDMARK_FLAGS + index] == 1.0).then(|| there(LANDMARK_WAYS + 2 * index))
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
/// The map shows this much of the plane on every side of the centre; who is further out is drawn at its edge.
const MAP_EXTENT: f64 = 1.3;

/// The symbols of [`render`]; the most common ones stand above every map.
pub(crate) const LEGEND: [&str; 2] = [
    "E  the ego; 1 2  predators; A B C  prey, in small letters once it is caught",
    "T  watchtower: an agent that touches it sees everything, any other agent only what is near; # obstacle; north is up",
];

/// The world as a map, north at the top, with a line of explanation.
pub(crate) fn render(world: &World, cast: AgentCounts) -> String {
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
        draw(body.position, sign(agent, cast, world));
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

fn sign(agent: usize, cast: AgentCounts, world: &World) -> char {
    if agent == 0 {
        'E'
    } else if agent < cast.n_predators {
        (b'0' + agent as u8) as char
    } else {
        let letter = prey::letter(agent - cast.n_predators);
        if world.caught[agent - cast.n_predators] { letter.to_ascii_lowercase() } else { letter }
    }
}
