//! How scripted agents walk: one greedy step towards a goal, and back inside when they have left the square.
//!
//! Which goal, is up to `peers` and `references`.

use super::bodies::{DIRECTIONS, EAST, NORTH, Point, SOUTH, WEST};
use crate::game::Action;

/// How far ahead a scripted agent looks when it compares actions.
const LOOKAHEAD: f64 = 0.1;

/// What becomes of an action when the square is turned by so many quarters to the left.
pub(crate) fn turned(action: Action, n_quarters: usize) -> Action {
    (0..n_quarters).fold(action, |action, _| {
        let [x, y] = DIRECTIONS[usize::from(action)];
        let there = DIRECTIONS.iter().position(|direction| *direction == [-y, x]);
        there.expect("a direction for every side") as Action
    })
}

/// The next action of a scripted agent at `position` that wants to be at `goal`.
#[inline]
pub(crate) fn walk(position: Point, goal: Point) -> Action {
    back_inside(position).unwrap_or_else(|| near(position, goal))
}

/// The way back for an agent outside the square: along the axis on which it is further out, x if that is equal.
#[inline]
pub(crate) fn back_inside(position: Point) -> Option<Action> {
    let [x, y] = position;
    let (coordinate, to_minus, to_plus) = if y.abs() > x.abs() { (y, SOUTH, NORTH) } else { (x, WEST, EAST) };
    if coordinate < -1.0 {
        Some(to_plus)
    } else if coordinate > 1.0 {
        Some(to_minus)
    } else {
        None
    }
}

/// The action that would bring an agent closest to `goal` if it moved by a tenth at once and stopped at the edge of
/// the square; of several such actions the first. Inertia and contacts are not thought of.
#[inline]
pub(crate) fn near(position: Point, goal: Point) -> Action {
    // The order of operations is the original's, so that ties fall the same way.
    let miss = |axis: usize, push: f64| {
        let miss = (position[axis] + LOOKAHEAD * push).clamp(-1.0, 1.0) - goal[axis];
        miss * miss
    };
    let at_rest = [miss(0, 0.0), miss(1, 0.0)];
    let squares = [
        at_rest[0] + at_rest[1],
        miss(0, DIRECTIONS[1][0]) + at_rest[1],
        miss(0, DIRECTIONS[2][0]) + at_rest[1],
        at_rest[0] + miss(1, DIRECTIONS[3][1]),
        at_rest[0] + miss(1, DIRECTIONS[4][1]),
    ];
    let mut best = 0;
    for action in 1..squares.len() {
        if squares[action] < squares[best] {
            best = action;
        }
    }
    best as Action
}
