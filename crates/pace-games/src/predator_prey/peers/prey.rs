//! A prey: it walks to and fro on its path and takes no notice of anybody.

use crate::game::Action;
use crate::predator_prey::bodies::{Point, distance};
use crate::predator_prey::steering;

/// The number of paths. Those with an odd number are the sides of the square, the others go around its corners.
pub(crate) const N_PATHS: usize = 8;
/// The points of a path, of which the second is passed both ways.
pub(crate) const N_WAYPOINTS: usize = 4;
/// A prey this close to the point it walks to turns to the next.
pub(crate) const ARRIVED_WITHIN: f64 = 0.1;

/// The ring of points that paths are cut from.
const RING: [Point; N_PATHS] =
    [[0.8, 0.0], [0.8, 0.8], [0.0, 0.8], [-0.8, 0.8], [-0.8, 0.0], [-0.8, -0.8], [0.0, -0.8], [0.8, -0.8]];

/// The place of a point of a path.
#[inline]
pub(crate) fn waypoint_of(path: usize, waypoint: usize) -> Point {
    RING[(path + [0, 1, 2, 1][waypoint]) % N_PATHS]
}

/// The middle of a path: the mean of its three places.
pub(crate) fn middle(path: usize) -> Point {
    let places = [0, 1, 2].map(|waypoint| waypoint_of(path, waypoint));
    [0, 1].map(|axis| places.iter().map(|place| place[axis]).sum::<f64>() / 3.0)
}

/// What a prey on `path` at `position` does, and which point of the path it walks to from now on.
#[inline]
pub(crate) fn act(position: Point, path: usize, waypoint: &mut usize) -> Action {
    if let Some(action) = steering::back_inside(position) {
        return action;
    }
    if distance(position, waypoint_of(path, *waypoint)) < ARRIVED_WITHIN {
        *waypoint = (*waypoint + 1) % N_WAYPOINTS;
    }
    steering::near(position, waypoint_of(path, *waypoint))
}

/// What people call a prey: A, B, C.
pub(crate) fn letter(prey: usize) -> char {
    (b'A' + prey as u8) as char
}

/// What people call a path.
pub(crate) fn path_name(path: usize) -> &'static str {
    [
        "north-east corner",
        "top",
        "north-west corner",
        "left",
        "south-west corner",
        "bottom",
        "south-east corner",
        "right",
    ][path]
}
