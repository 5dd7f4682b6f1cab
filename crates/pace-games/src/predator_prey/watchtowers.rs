//! The four watchtowers, and what can be seen from them and from anywhere else.
//!
//! How the seen becomes numbers is in `view`.

use super::bodies::{Point, distance};

/// Where the towers stand.
pub const TOWERS: [Point; 4] = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];
/// Radius of a tower. Nobody bumps into it.
pub const TOWER_SIZE: f64 = 0.05;
/// How far an agent sees that touches no tower.
pub const SIGHT_RADIUS: f64 = 0.2;

/// Whether an agent of radius `size` at `position` touches a tower.
#[inline]
pub fn touches_tower(position: Point, size: f64) -> bool {
    TOWERS.iter().any(|tower| distance(position, *tower) < size + TOWER_SIZE)
}

/// How far an agent sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// What is within [`SIGHT_RADIUS`].
    Near,
    /// Everything there is.
    Everywhere,
}

impl Sight {
    /// The sight of an agent of radius `size` at `position`.
    #[inline]
    pub(crate) fn from(position: Point, size: f64) -> Sight {
        if touches_tower(position, size) { Sight::Everywhere } else { Sight::Near }
    }

    /// Whether something in the direction and distance `way` is seen.
    #[inline]
    pub(crate) fn reaches(self, way: Point) -> bool {
        self == Sight::Everywhere || super::bodies::length(way) <= SIGHT_RADIUS
    }
}
