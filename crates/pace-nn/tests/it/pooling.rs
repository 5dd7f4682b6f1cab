//! The mean of means against its definition, on ragged encounters.

use pace_nn::{EmptyEpisode, PrefixMeans};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

use crate::gradients::{check_gradient, numbers};

const WIDTH: usize = 3;

/// Straight from the definition: every context is averaged anew.
fn brute_force(decisions: &[f32], terminals: &[f32], lengths: &[u32], empty: EmptyEpisode) -> Vec<f64> {
    let row = |rows: &[f32], index: usize| -> Vec<f64> {
        rows[index * WIDTH..][..WIDTH].iter().map(|value| f64::from(*value)).collect()
    };
    let mut pooled = Vec::new();
    for episode in 0..lengths.len() {
        for step in 0..lengths[episode] as usize {
            let mut means: Vec<Vec<f64>> = Vec::new();
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
            }
            for place in 0..WIDTH {
                pooled.push(means.iter().map(|mean| mean[place]).sum::<f64>() / means.len().max(1) as f64);
            }
        }
    }
    pooled
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_sweep_equals_the_definition(
        lengths in proptest::collection::vec(1u32..6, 1..7),
        seed in 0u32..1000,
        counts in proptest::bool::ANY,
    ) {
        let empty = if counts { EmptyEpisode::CountsAsZero } else { EmptyEpisode::LeftOut };
        let n = lengths.iter().sum::<u32>() as usize;
        let (decisions, terminals) = (numbers(n * WIDTH, seed), numbers(lengths.len() * WIDTH, seed + 1));
        let mut pooled = vec![f32::NAN; n * WIDTH];
        PrefixMeans::new(WIDTH, empty).forward(&decisions, &terminals, &lengths, &mut pooled);
        for (found, expected) in pooled.iter().zip(brute_force(&decisions, &terminals, &lengths, empty)) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn the_way_back_is_the_gradient() {
    for empty in [EmptyEpisode::LeftOut, EmptyEpisode::CountsAsZero] {
        let lengths = [2, 1, 4, 3];
        let (mut decisions, mut terminals) = (numbers(10 * WIDTH, 1), numbers(4 * WIDTH, 2));
        let d_pooled = numbers(10 * WIDTH, 3);
        let loss = |decisions: &[f32], terminals: &[f32]| {
            let pooled = brute_force(decisions, terminals, &lengths, empty);
            pooled.iter().zip(&d_pooled).map(|(value, slope)| value * f64::from(*slope)).sum::<f64>()
        };
        let (mut d_decisions, mut d_terminals) =
            (vec![f32::NAN; decisions.len()], vec![f32::NAN; terminals.len()]);
        PrefixMeans::new(WIDTH, empty).backward(&d_pooled, &lengths, &mut d_decisions, &mut d_terminals);
        let (d, t) = (decisions.clone(), terminals.clone());
        check_gradient(&mut decisions, &d_decisions, "decision", |values| loss(values, &t));
        check_gradient(&mut terminals, &d_terminals, "terminal", |values| loss(&d, values));
    }
}
