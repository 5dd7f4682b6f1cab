//! Pooling against its definition, on encounters with episodes of different lengths.

use pace_nn::{EmptyEpisodeMode, PrefixPool};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::gradients::{check_gradient, numbers};

const WIDTH: usize = 3;

/// Pools the context of every decision separately, as in the definition.
fn pool_each_context(
    decisions: &[f32],
    terminals: &[f32],
    lengths: &[u32],
    n_means: usize,
    empty: EmptyEpisodeMode,
) -> Vec<f64> {
    let row = |rows: &[f32], index: usize| -> Vec<f64> {
        rows[index * WIDTH..][..WIDTH].iter().map(|value| f64::from(*value)).collect()
    };
    let mut pooled = Vec::new();
    for episode in 0..lengths.len() {
        for step in 0..lengths[episode] as usize {
            let mut means: Vec<Vec<f64>> = Vec::new();
            let mut maxima = [0.0f64; WIDTH];
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
                if !is_empty || empty == EmptyEpisodeMode::CountsAsZero {
                    let sum = |feature: usize| entries.iter().map(|entry| entry[feature]).sum::<f64>();
                    means
                        .push((0..WIDTH).map(|feature| sum(feature) / entries.len().max(1) as f64).collect());
                }
                for entry in &entries {
                    maxima.iter_mut().zip(entry).for_each(|(maximum, value)| *maximum = maximum.max(*value));
                }
            }
            for feature in 0..n_means {
                pooled.push(means.iter().map(|mean| mean[feature]).sum::<f64>() / means.len().max(1) as f64);
            }
            pooled.extend_from_slice(&maxima[n_means..]);
        }
    }
    pooled
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forward_pass_matches_the_definition(
        lengths in proptest::collection::vec(0u32..6, 1..7),
        n_means in 0..=WIDTH,
        seed in 0u32..1000,
        counts in proptest::bool::ANY,
    ) {
        let empty = if counts { EmptyEpisodeMode::CountsAsZero } else { EmptyEpisodeMode::LeftOut };
        let n = lengths.iter().sum::<u32>() as usize;
        let (decisions, terminals) = (numbers(n * WIDTH, seed), numbers(lengths.len() * WIDTH, seed + 1));
        let mut pooled = vec![f32::NAN; n * WIDTH];
        PrefixPool::new(WIDTH, n_means, empty).forward(&decisions, &terminals, &lengths, &mut pooled);
        let expected = pool_each_context(&decisions, &terminals, &lengths, n_means, empty);
        for (found, expected) in pooled.iter().zip(expected) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn backward_pass_is_the_gradient() {
    for (empty, n_means) in
        [(EmptyEpisodeMode::LeftOut, 3), (EmptyEpisodeMode::CountsAsZero, 3), (EmptyEpisodeMode::LeftOut, 1)]
    {
        let lengths = [2, 1, 4, 0, 3];
        let (mut decisions, mut terminals) = (numbers(10 * WIDTH, 1), numbers(5 * WIDTH, 2));
        let d_pooled = numbers(10 * WIDTH, 3);
        let loss = |decisions: &[f32], terminals: &[f32]| {
            let pooled = pool_each_context(decisions, terminals, &lengths, n_means, empty);
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
fn gradient_of_a_maximum_goes_to_its_first_entry() {
    let mut pool = PrefixPool::new(1, 0, EmptyEpisodeMode::LeftOut);
    let (mut d_decisions, mut d_terminals) = ([f32::NAN; 4], [f32::NAN; 1]);
    let d_pooled = [1.0, 1.0, 1.0, 1.0];
    pool.backward(&[0.5, 2.0, 2.0, 9.0], &[9.0], &[4], &d_pooled, &mut d_decisions, &mut d_terminals);
    // No entry precedes the first decision, and no decision follows the last two entries.
    assert_eq!((d_decisions, d_terminals), ([1.0, 2.0, 0.0, 0.0], [0.0]));
}
