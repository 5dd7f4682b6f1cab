//! A prey: it walks back and forth on its path and does not react to other agents.

use std::ops::Range;

use crate::game::Action;
use crate::predator_prey::bodies::{Point, distance};
use crate::predator_prey::steering;

/// The number of paths. Odd paths are the sides of the square, even paths go around its corners.
pub(crate) const N_PATHS: usize = 8;
/// The waypoints of a path, there and back: its two ends, and its middle twice.
pub(crate) const N_WAYPOINTS: usize = 4;
/// The distance to its waypoint at which a prey turns to the next one.
pub(crate) const ARRIVED_WITHIN: f64 = 0.1;

/// The points around the square; a path is three consecutive ones.
const RING: [Point; N_PATHS] =
    [[0.8, 0.0], [0.8, 0.8], [0.0, 0.8], [-0.8, 0.8], [-0.8, 0.0], [-0.8, -0.8], [0.0, -0.8], [0.8, -0.8]];

/// The number of kinds of practice lines.
pub(crate) const N_LINES: usize = LINES.len();
/// The number of paths and practice lines: the eight paths, then each line along the top, the left, the bottom and the right.
const N_WITH_LINES: usize = N_PATHS + N_LINES * N_SIDES;
/// The paths of the validation peers: the paths around the corners, each moved clockwise by half of its first leg.
pub(crate) const VALIDATION_PATHS: Range<usize> = N_WITH_LINES..N_WITH_LINES + N_SIDES;
/// The number of sides of the square.
pub(crate) const N_SIDES: usize = 4;

/// The practice lines along the top side: the distance from the centre of the square, and the coordinates of both ends.
const LINES: [(f64, f64, f64); 8] = [
    (0.8, 0.8, 0.0),
    (0.8, 0.0, -0.8),
    (0.5, 0.8, -0.8),
    (0.2, 0.8, -0.8),
    (0.8, 0.4, -0.4),
    (0.95, 0.9, -0.9),
    (0.6, 0.8, -0.2),
    (0.6, 0.2, -0.8),
];

/// The number of practice line `line` along the side `path`.
pub(crate) fn line_along(path: usize, line: usize) -> usize {
    assert!(path < N_PATHS && path % 2 == 1 && line < N_LINES, "line {line} along path {path}");
    N_PATHS + N_SIDES * line + path / 2
}

/// The path of the game for any path or line: the side along which a practice line runs, and the path around a corner that was
/// moved to a validation path.
pub(crate) fn official_path(path: usize) -> usize {
    match path.checked_sub(N_PATHS) {
        None => path,
        Some(other) => other % N_SIDES * 2 + usize::from(path < N_WITH_LINES),
    }
}

/// The path or line after a rotation by `n_quarters` counter-clockwise quarter turns.
pub(crate) fn rotated(path: usize, n_quarters: usize) -> usize {
    match path.checked_sub(N_PATHS) {
        None => (path + n_quarters * (N_PATHS / N_SIDES)) % N_PATHS,
        Some(other) => N_PATHS + other / N_SIDES * N_SIDES + (other + n_quarters) % N_SIDES,
    }
}

/// The position of a waypoint.
#[inline]
pub(crate) fn waypoint_of(path: usize, waypoint: usize) -> Point {
    match path.checked_sub(N_PATHS) {
        None => RING[(path + [0, 1, 2, 1][waypoint]) % N_PATHS],
        Some(_) if path >= N_WITH_LINES => {
            let [begin, corner, here] = [0, 1, waypoint].map(|index| waypoint_of(official_path(path), index));
            [0, 1].map(|axis| here[axis] + (begin[axis] - corner[axis]) / 2.0)
        }
        Some(line) => {
            let (depth, from, to) = LINES[line / N_SIDES];
            let along = [from, (from + to) / 2.0, to, (from + to) / 2.0][waypoint];
            (0..line % N_SIDES).fold([along, depth], |[x, y], _| [-y, x])
        }
    }
}

/// The middle of a path: the mean of its three points.
pub(crate) fn middle(path: usize) -> Point {
    let points = [0, 1, 2].map(|waypoint| waypoint_of(path, waypoint));
    [0, 1].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / 3.0)
}

/// The action of a prey on `path` at `position`; updates its next waypoint.
#[inline]
pub(crate) fn act(position: Point, path: usize, waypoint: &mut usize) -> Action {
    if let Some(action) = steering::back_inside(position) {
        return action;
    }
    if distance(position, waypoint_of(path, *waypoint)) < ARRIVED_WITHIN {
        *waypoint = (*waypoint + 1) % N_WAYPOINTS;
    }
    steering::greedy_action(position, waypoint_of(path, *waypoint))
}

/// The display name of a prey: A, B or C.
pub(crate) fn letter(prey: usize) -> char {
    (b'A' + prey as u8) as char
}

/// The display name of a path.
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
