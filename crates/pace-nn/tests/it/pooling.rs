//! Pooling against its definition, on ragged encounters.

use pace_nn::{EmptyEpisode, PrefixPool};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::gradients::{check_gradient, numbers};

const WIDTH: usize = 3;

/// Straight from the definition: every context is pooled anew.
fn brute_force(
    decisions: &[f32],
    terminals: &[f32],
    lengths: &[u32],
    n_means: usize,
    empty: EmptyEpisode,
) -> Vec<f64> {
    let row = |rows: &[f32], index: usize| -> Vec<f64> {
        rows[index * WIDTH..][..WIDTH].iter().map(|value| f64::from(*value)).collect()
    };
    let mut pooled = Vec::new();
    for episode in 0..lengths.len() {
        for step in 0..lengths[episode] as usize {
            let mut means: Vec<Vec<f64>> = Vec::new();
            let mut highest = [0.0f64; WIDTH];
            let mut first = 0;
            for (index, length) in lengths[..=episode].iter().enumerate() {
                let n = if index < episode { *length as usize } else { step };
                let mut entries: Vec<Vec<f64>> =
                    (first..first + n).map(|entry| row(decisions, entry)).collect();
                if index < episode {
                    entries.push(row(terminals, index));
                }
                first += *length as usize;
                let is_empty = entries.is_empty();
                if !is_empty || empty == EmptyEpisode::CountsAsZero {
                    let sum = |place: usize| entries.iter().map(|entry| entry[place]).sum::<f64>();
                    means.push((0..WIDTH).map(|place| sum(place) / entries.len().max(1) as f64).collect());
                }
                for entry in &entries {
                    highest.iter_mut().zip(entry).for_each(|(highest, value)| *highest = highest.max(*value));
                }
            }
            for place in 0..n_means {
                pooled.push(means.iter().map(|mean| mean[place]).sum::<f64>() / means.len().max(1) as f64);
            }
            pooled.extend_from_slice(&highest[n_means..]);
        }
    }
    pooled
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_sweep_equals_the_definition(
        lengths in proptest::collection::vec(0u32..6, 1..7),
        n_means in 0..=WIDTH,
        seed in 0u32..1000,
        counts in proptest::bool::ANY,
    ) {
        let empty = if counts { EmptyEpisode::CountsAsZero } else { EmptyEpisode::LeftOut };
        let n = lengths.iter().sum::<u32>() as usize;
        let (decisions, terminals) = (numbers(n * WIDTH, seed), numbers(lengths.len() * WIDTH, seed + 1));
        let mut pooled = vec![f32::NAN; n * WIDTH];
        PrefixPool::new(WIDTH, n_means, empty).forward(&decisions, &terminals, &lengths, &mut pooled);
        let expected = brute_force(&decisions, &terminals, &lengths, n_means, empty);
        for (found, expected) in pooled.iter().zip(expected) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn the_way_back_is_the_gradient() {
    for (empty, n_means) in
        [(EmptyEpisode::LeftOut, 3), (EmptyEpisode::CountsAsZero, 3), (EmptyEpisode::LeftOut, 1)]
    {
        let lengths = [2, 1, 4, 0, 3];
        let (mut decisions, mut terminals) = (numbers(10 * WIDTH, 1), numbers(5 * WIDTH, 2));
        let d_pooled = numbers(10 * WIDTH, 3);
        let loss = |decisions: &[f32], terminals: &[f32]| {
            let pooled = brute_force(decisions, terminals, &lengths, n_means, empty);
            pooled.iter().zip(&d_pooled).map(|(value, slope)| value * f64::from(*slope)).sum::<f64>()
        };
        let (mut d_decisions, mut d_terminals) =
            (vec![f32::NAN; decisions.len()], vec![f32::NAN; terminals.len()]);
        PrefixPool::new(WIDTH, n_means, empty).backward(
            &decisions,
            &terminals,
            &lengths,
            &d_pooled,
            &mut d_decisions,
            &mut d_terminals,
        );
        let (d, t) = (decisions.clone(), terminals.clone());
        check_gradient(&mut decisions, &d_decisions, "decision", |values| loss(values, &t));
        check_gradient(&mut terminals, &d_terminals, "terminal", |values| loss(&d, values));
    }
}

#[test]
fn of_equals_the_first_is_the_highest() {
    let mut pool = PrefixPool::new(1, 0, EmptyEpisode::LeftOut);
    let (mut d_decisions, mut d_terminals) = ([f32::NAN; 4], [f32::NAN; 1]);
    let d_pooled = [1.0, 1.0, 1.0, 1.0];
    pool.backward(&[0.5, 2.0, 2.0, 9.0], &[9.0], &[4], &d_pooled, &mut d_decisions, &mut d_terminals);
    // Nobody is above zero before the first decision, and nobody asks after the last.
    assert_eq!((d_decisions, d_terminals), ([1.0, 2.0, 0.0, 0.0], [0.0]));
}
