//! A predator among the peers: it sees the whole state and always chases the same prey, even after a catch.

use crate::game::Action;
use crate::predator_prey::bodies::Point;
use crate::predator_prey::steering;

/// The action of a predator at `position` whose prey is at `preferred`.
#[inline]
pub(crate) fn act(position: Point, preferred: Point) -> Action {
    steering::walk(position, preferred)
}
