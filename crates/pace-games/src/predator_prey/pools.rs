//! Tuples of predators and prey: the authors' pools, augmentations of the training pool, validation tuples and random tuples.

use super::bodies::AgentCounts;
use super::mersenne_twister::MersenneTwister;
use super::peers::PredatorPreySpec;
use super::peers::prey::{N_LINES, N_PATHS, VALIDATION_PATHS, line_along, rotated};
use crate::peer::PeerTuple;
use crate::pool::PeerPool;
use crate::seed::{Seed, Stream};

/// The number of training tuples in the authors' experiments.
pub(crate) const N_TRAIN: usize = 16;
/// The number of test tuples in the authors' experiments: with three peers, every combination of the test paths.
pub(crate) const N_TEST: usize = 24;
/// The number of combinations of four paths with five peers.
pub(crate) const N_COMBINATIONS_OF_5: usize = 144;
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

/// The first tuples of the authors' pools, in their order, with the augmentations of the training pool and the validation tuples.
/// Odd paths are for training, even ones for testing: test peers walk paths that training does not have.
pub(crate) fn official(
    counts: AgentCounts,
    training: TrainingPoolOptions,
    n_test: usize,
) -> PeerPool<PredatorPreySpec> {
    match counts.n_prey {
        2 => official_with::<1, 2>(training, n_test),
        3 => official_with::<2, 3>(training, n_test),
        n_prey => panic!("there is no pool with {n_prey} prey"),
    }
}

fn official_with<const P: usize, const Q: usize>(
    training: TrainingPoolOptions,
    n_test: usize,
) -> PeerPool<PredatorPreySpec> {
    // The authors shuffle all combinations of the training paths, then all of the test paths, and use the first ones.
    let (mut train, mut test) = (combinations::<P, Q>([1, 3, 5, 7]), combinations::<P, Q>([0, 2, 4, 6]));
    let mut random = MersenneTwister::new(1);
    random.shuffle(&mut train);
    random.shuffle(&mut test);
    // With three peers, all combinations of the validation paths are used.
    let mut validation = combinations::<P, Q>(std::array::from_fn(|index| VALIDATION_PATHS.start + index));
    Seed::new(0).stream("predator-prey-validation").shuffle(&mut validation);
    PeerPool::new(training.of(&train), tuples(&validation[..N_VALIDATION]), tuples(&test[..n_test]))
        .expect("the pools have no path in common")
}

/// All tuples with different preferences and different paths, in the order of the authors' code.
fn combinations<const P: usize, const Q: usize>(paths: [usize; 4]) -> Vec<PathTuple<P, Q>> {
    let prey: Vec<usize> = (0..Q).collect();
    let preferences = ordered_choices(P, &prey);
    let all = ordered_choices(Q, &paths).into_iter().flat_map(|paths| {
        let pair = move |preferences: &Vec<usize>| (array_of(preferences), array_of(&paths));
        preferences.iter().map(pair).collect::<Vec<_>>()
    });
    all.collect()
}

fn array_of<const N: usize>(items: &[usize]) -> [usize; N] {
    items.try_into().expect("a choice of this length")
}

/// The ordered choices of `n` different items, in lexicographic order of their places.
pub(crate) fn ordered_choices(n: usize, items: &[usize]) -> Vec<Vec<usize>> {
    (0..n).fold(vec![Vec::new()], |choices, _| {
        let longer = |chosen: &Vec<usize>| {
            let open = items.iter().filter(|item| !chosen.contains(item));
            open.map(|item| [chosen.as_slice(), &[*item]].concat()).collect::<Vec<_>>()
        };
        choices.iter().flat_map(longer).collect()
    })
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
    let mut prey: Vec<usize> = (0..counts.n_prey).collect();
    let mut paths: Vec<usize> = (0..N_PATHS).collect();
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
