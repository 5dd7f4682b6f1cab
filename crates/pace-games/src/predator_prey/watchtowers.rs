//! The four watchtowers, and the visibility from towers and from other positions.
//!
//! Observations are in `view`.

use super::bodies::{Point, distance};

/// The positions of the towers.
pub(crate) const TOWERS: [Point; 4] = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]];
/// Radius of a tower. Towers have no contact force.
pub(crate) const TOWER_SIZE: f64 = 0.05;
/// The sight radius of an agent that touches no tower.
pub(crate) const SIGHT_RADIUS: f64 = 0.2;

/// Whether an agent of radius `size` at `position` touches a tower.
#[inline]
pub(crate) fn touches_tower(position: Point, size: f64) -> bool {
    TOWERS.iter().any(|tower| distance(position, *tower) < size + TOWER_SIZE)
}

/// The visible part of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Everything within [`SIGHT_RADIUS`].
    Near,
    /// The whole plane.
    Everywhere,
}

impl Sight {
    /// The sight of an agent of radius `size` at `position`.
    #[inline]
    pub(crate) fn from(position: Point, size: f64) -> Sight {
        if touches_tower(position, size) { Sight::Everywhere } else { Sight::Near }
    }

    /// Whether an object at the vector `offset` from the observer is visible.
    #[inline]
    pub(crate) fn reaches(self, offset: Point) -> bool {
        self == Sight::Everywhere || super::bodies::length(offset) <= SIGHT_RADIUS
    }
}
