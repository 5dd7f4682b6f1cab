//! Tuples of predators and prey: the authors' pools, augmentations of the training pool, validation tuples and random tuples.

use std::ops::Range;

use super::bodies::AgentCounts;
use super::peers::PredatorPreySpec;
use super::peers::prey::{N_LINES, N_PATHS, VALIDATION_PATHS, line_along, rotated};
use crate::peer::PeerTuple;
use crate::pool::PeerPool;
use crate::seed::{Seed, Stream};

/// The number of the authors' training tuples.
pub(crate) const N_TRAIN: usize = 16;
/// The number of the authors' test tuples.
pub(crate) const N_TEST: usize = 24;
/// The number of validation tuples.
const N_VALIDATION: usize = 24;

/// Maximum number of copies of a tuple with practice lines.
pub(crate) const MAX_COPIES: usize = N_LINES;

/// The size and the augmentations of the training pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainingPoolOptions {
    /// The number of the authors' tuples.
    pub n_tuples: usize,
    /// Whether rotations by quarter turns are added.
    pub is_rotated: bool,
    /// Added copies of each tuple with the prey on practice lines.
    pub n_copies: usize,
}

/// The first tuples of the authors' pools, in their order, with the augmentations of the training pool. Odd paths are for
/// training, even ones for testing: test peers walk paths that training does not have.
pub(crate) fn official(
    counts: AgentCounts,
    training: TrainingPoolOptions,
    n_test: usize,
) -> PeerPool<PredatorPreySpec> {
    let (train, test) = match counts.n_prey {
        2 => (training.of(&TRAIN_OF_3), tuples(&TEST_OF_3[..n_test])),
        3 => (training.of(&TRAIN_OF_5), tuples(&TEST_OF_5[..n_test])),
        n_prey => panic!("there is no pool with {n_prey} prey"),
    };
    PeerPool::new(train, validation(counts), test).expect("the pools have no path in common")
}

/// Validation tuples, sampled with a fixed seed and without repetitions. With three peers they are all tuples of the validation
/// paths.
fn validation(counts: AgentCounts) -> Vec<PeerTuple<PredatorPreySpec>> {
    let mut rng = Seed::new(0).stream("predator-prey-validation");
    let mut tuples = Vec::with_capacity(N_VALIDATION);
    while tuples.len() < N_VALIDATION {
        let tuple = sample_of(VALIDATION_PATHS, counts, &mut rng);
        if !tuples.contains(&tuple) {
            tuples.push(tuple);
        }
    }
    tuples
}

impl TrainingPoolOptions {
    fn of<const P: usize, const Q: usize>(
        self,
        tuples_of_paths: &[PathTuple<P, Q>],
    ) -> Vec<PeerTuple<PredatorPreySpec>> {
        let n_sides = if self.is_rotated { 4 } else { 1 };
        let mut all = with_rotations(n_sides, &tuples_of_paths[..self.n_tuples]);
        // Rotations of one tuple use the same lines, so that the copies are closed under quarter turns, too.
        let apart = distinct_up_to_rotation(n_sides, &tuples_of_paths[..self.n_tuples]);
        let n_lines = N_LINES.min(apart.len() * self.n_copies);
        let mut copies: Vec<PathTuple<P, Q>> = Vec::new();
        for (preferences, paths) in apart {
            for _ in 0..self.n_copies {
                // Every prey uses the lines in turn, with a shift between prey that grows with every round.
                let (n, mut lines) = (copies.len(), paths);
                for (prey, path) in lines.iter_mut().enumerate() {
                    *path = line_along(*path, (n + prey * (1 + n / n_lines)) % n_lines);
                }
                copies.push((preferences, lines));
            }
        }
        all.extend(with_rotations(n_sides, &copies));
        tuples(&all)
    }
}

/// Samples a tuple: different paths of the game and different preferences, all equally likely.
pub(crate) fn sample(counts: AgentCounts, rng: &mut Stream) -> PeerTuple<PredatorPreySpec> {
    sample_of(0..N_PATHS, counts, rng)
}

fn sample_of(paths: Range<usize>, counts: AgentCounts, rng: &mut Stream) -> PeerTuple<PredatorPreySpec> {
    let mut prey: Vec<usize> = (0..counts.n_prey).collect();
    let mut paths: Vec<usize> = paths.collect();
    rng.shuffle(&mut prey);
    rng.shuffle(&mut paths);
    tuple(&prey[..counts.n_predators - 1], &paths[..counts.n_prey])
}

/// The tuples and their rotations by up to `n_sides` − 1 quarter turns, without duplicates.
fn with_rotations<const P: usize, const Q: usize>(
    n_sides: usize,
    tuples_of_paths: &[PathTuple<P, Q>],
) -> Vec<PathTuple<P, Q>> {
    let mut all = tuples_of_paths.to_vec();
    for (preferences, paths) in tuples_of_paths {
        for n in 1..n_sides {
            let tuple = (*preferences, paths.map(|path| rotated(path, n)));
            if !all.contains(&tuple) {
                all.push(tuple);
            }
        }
    }
    all
}

/// The tuples that are not a rotation of an earlier one.
fn distinct_up_to_rotation<const P: usize, const Q: usize>(
    n_sides: usize,
    tuples_of_paths: &[PathTuple<P, Q>],
) -> Vec<PathTuple<P, Q>> {
    let mut apart: Vec<PathTuple<P, Q>> = Vec::new();
    for tuple in tuples_of_paths {
        if !with_rotations(n_sides, &apart).contains(tuple) {
            apart.push(*tuple);
        }
    }
    apart
}

fn tuples<const P: usize, const Q: usize>(
    tuples_of_paths: &[PathTuple<P, Q>],
) -> Vec<PeerTuple<PredatorPreySpec>> {
    tuples_of_paths.iter().map(|(preferences, paths)| tuple(preferences, paths)).collect()
}

/// The class of a prey: the index of its path within its split. For a path of the game this is half its number; practice lines
/// follow the training paths.
fn class_of(path: usize) -> usize {
    match path {
        0..N_PATHS => path / 2,
        _ if VALIDATION_PATHS.contains(&path) => path - VALIDATION_PATHS.start,
        line => line - N_PATHS / 2,
    }
}

/// The class of a training prey after a rotation by `n_quarters` counter-clockwise quarter turns.
pub(crate) fn rotated_class(class: usize, n_quarters: usize) -> usize {
    let path = if class < N_PATHS / 2 { 2 * class + 1 } else { class + N_PATHS / 2 };
    class_of(rotated(path, n_quarters))
}

fn tuple(preferences: &[usize], paths: &[usize]) -> PeerTuple<PredatorPreySpec> {
    let predators = preferences.iter().map(|&prefers| PredatorPreySpec::Predator { prefers });
    let prey = paths.iter().map(|&path| PredatorPreySpec::Prey { path });
    PeerTuple {
        specs: predators.chain(prey).collect(),
        classes: preferences.iter().copied().chain(paths.iter().map(|path| class_of(*path))).collect(),
    }
}

/// The preferred prey of each predator among the peers, then the path of each prey.
type PathTuple<const P: usize, const Q: usize> = ([usize; P], [usize; Q]);

#[rustfmt::skip]
const TRAIN_OF_3: [PathTuple<1, 2>; N_TRAIN] = [
    ([1], [5, 1]), ([0], [7, 1]), ([1], [1, 5]), ([0], [5, 3]),
    ([0], [7, 3]), ([1], [5, 7]), ([0], [3, 7]), ([0], [1, 7]),
    ([0], [1, 5]), ([1], [7, 1]), ([0], [3, 1]), ([1], [3, 1]),
    ([1], [7, 3]), ([1], [1, 3]), ([0], [5, 7]), ([0], [1, 3]),
];

#[rustfmt::skip]
const TEST_OF_3: [PathTuple<1, 2>; N_TEST] = [
    ([0], [4, 0]), ([0], [2, 4]), ([0], [0, 4]), ([1], [6, 2]),
    ([1], [0, 4]), ([1], [0, 6]), ([1], [6, 4]), ([1], [2, 6]),
    ([0], [2, 6]), ([0], [6, 4]), ([1], [0, 2]), ([1], [4, 2]),
    ([0], [2, 0]), ([1], [6, 0]), ([1], [2, 0]), ([0], [4, 6]),
    ([0], [6, 2]), ([1], [4, 0]), ([0], [0, 2]), ([1], [4, 6]),
    ([1], [2, 4]), ([0], [0, 6]), ([0], [6, 0]), ([0], [4, 2]),
];

#[rustfmt::skip]
const TRAIN_OF_5: [PathTuple<2, 3>; N_TRAIN] = [
    ([2, 0], [5, 3, 7]), ([0, 2], [5, 3, 7]), ([0, 1], [5, 3, 1]), ([0, 1], [3, 5, 1]),
    ([2, 1], [3, 5, 1]), ([2, 1], [1, 3, 5]), ([0, 1], [3, 1, 7]), ([1, 2], [1, 7, 5]),
    ([2, 0], [7, 1, 3]), ([0, 1], [7, 1, 3]), ([1, 0], [1, 5, 3]), ([2, 0], [1, 5, 3]),
    ([1, 0], [5, 1, 3]), ([1, 0], [7, 3, 5]), ([1, 2], [3, 7, 5]), ([2, 1], [1, 7, 3]),
];

#[rustfmt::skip]
const TEST_OF_5: [PathTuple<2, 3>; N_TEST] = [
    ([1, 2], [4, 6, 2]), ([2, 0], [4, 2, 0]), ([0, 2], [0, 2, 4]), ([0, 2], [4, 2, 0]),
    ([1, 0], [4, 0, 6]), ([1, 0], [6, 2, 4]), ([1, 0], [6, 4, 2]), ([1, 2], [2, 4, 6]),
    ([1, 2], [6, 4, 0]), ([1, 2], [2, 4, 0]), ([1, 0], [2, 6, 4]), ([2, 0], [2, 4, 0]),
    ([2, 1], [0, 2, 6]), ([0, 2], [4, 6, 2]), ([2, 1], [2, 4, 6]), ([2, 0], [6, 2, 0]),
    ([0, 1], [6, 0, 2]), ([0, 1], [6, 2, 4]), ([1, 0], [4, 6, 0]), ([1, 0], [4, 2, 6]),
    ([1, 0], [6, 0, 2]), ([0, 1], [0, 4, 2]), ([0, 1], [0, 4, 6]), ([2, 1], [6, 2, 4]),
];
