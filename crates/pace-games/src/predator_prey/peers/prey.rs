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

/// The number of kinds of practice lines.
pub(crate) const N_LINES: usize = LINES.len();
/// Paths with practice lines: the eight of the game, then each line along the top, the left, the bottom and the right.
pub(crate) const N_WITH_LINES: usize = N_PATHS + N_LINES * N_SIDES;
/// The sides of the square.
pub(crate) const N_SIDES: usize = 4;

/// Straight lines beside those of the game, none around a corner: how far from the middle of the square, from where, to where.
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

/// The path of line `line` along the side that `path` is.
pub(crate) fn line_along(path: usize, line: usize) -> usize {
    assert!(path < N_PATHS && path % 2 == 1 && line < N_LINES, "line {line} along path {path}");
    N_PATHS + N_SIDES * line + path / 2
}

/// The path of the game that is most like a path: the side that a line goes along.
pub(crate) fn in_the_game(path: usize) -> usize {
    path.checked_sub(N_PATHS).map_or(path, |line| line % N_SIDES * 2 + 1)
}

/// What becomes of a path when the square is turned by so many quarters to the left.
pub(crate) fn turned(path: usize, n_quarters: usize) -> usize {
    match path.checked_sub(N_PATHS) {
        None => (path + n_quarters * (N_PATHS / N_SIDES)) % N_PATHS,
        Some(line) => N_PATHS + line / N_SIDES * N_SIDES + (line + n_quarters) % N_SIDES,
    }
}

/// The place of a point of a path.
#[inline]
pub(crate) fn waypoint_of(path: usize, waypoint: usize) -> Point {
    match path.checked_sub(N_PATHS) {
        None => RING[(path + [0, 1, 2, 1][waypoint]) % N_PATHS],
        Some(line) => {
            let (depth, from, to) = LINES[line / N_SIDES];
            let along = [from, (from + to) / 2.0, to, (from + to) / 2.0][waypoint];
            (0..line % N_SIDES).fold([along, depth], |[x, y], _| [-y, x])
        }
    }
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
