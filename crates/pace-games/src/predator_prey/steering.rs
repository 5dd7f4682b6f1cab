//! Actions of scripted agents: a greedy step towards a goal, and a return to the square.
//!
//! The goals are chosen in `peers` and `references`.

use super::bodies::{DIRECTIONS, EAST, NORTH, Point, SOUTH, WEST};
use crate::game::Action;

/// The assumed length of a step when a scripted agent compares actions.
const LOOKAHEAD: f64 = 0.1;

/// The action after a rotation by `n_quarters` counter-clockwise quarter turns.
pub(crate) fn rotated(action: Action, n_quarters: usize) -> Action {
    (0..n_quarters).fold(action, |action, _| {
        let [x, y] = DIRECTIONS[usize::from(action)];
        let rotated = DIRECTIONS.iter().position(|direction| *direction == [-y, x]);
        rotated.expect("the directions are closed under quarter turns") as Action
    })
}

/// The action of a scripted agent at `position` that walks to `goal`.
#[inline]
pub(crate) fn walk(position: Point, goal: Point) -> Action {
    back_inside(position).unwrap_or_else(|| greedy_action(position, goal))
}

/// The action towards the square for an agent outside of it: along the axis on which it is further out, or x if both are equal.
/// `None` inside the square.
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

/// The first action that brings an agent closest to `goal`, if it moves by [`LOOKAHEAD`] and stops at the edge of the square.
/// Inertia and contacts are ignored.
#[inline]
pub(crate) fn greedy_action(position: Point, goal: Point) -> Action {
    // The order of operations is that of the authors' code, so that ties have the same result.
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
