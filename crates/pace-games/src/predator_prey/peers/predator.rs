//! A predator among the peers: it sees everything and always goes for the same prey, caught or not.

use crate::game::Action;
use crate::predator_prey::bodies::Point;
use crate::predator_prey::steering;

/// What a predator at `position` does when the prey it prefers is at `preferred`.
#[inline]
pub(crate) fn act(position: Point, preferred: Point) -> Action {
    steering::walk(position, preferred)
}
