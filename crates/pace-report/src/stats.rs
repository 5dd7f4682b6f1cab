//! Means over encounters, seeds and games, with their uncertainty.
//!
//! Every function depends only on its arguments. The bootstrap has its own random generator, so the same values give the same
//! interval on every machine.

use std::cmp::Ordering;

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the group means.
    pub mean: f64,
    /// Its standard error; `None` if some group has fewer than two values.
    pub standard_error: Option<f64>,
    /// Degrees of freedom of the standard error.
    pub degrees_of_freedom: f64,
}

/// A value with a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// Computes the mean of the group means from one list of values per group. Groups have equal weight and are fixed (the peers
    /// of a pool), so differences between groups are not part of the error. Values within a group are independent (the encounters
    /// with one peer). The degrees of freedom are those of Welch and Satterthwaite.
    ///
    /// # Panics
    /// If there is no group or one without values.
    pub fn of_groups(groups: &[Vec<f64>]) -> Estimate {
        assert!(!groups.is_empty(), "an estimate needs a group of values");
        let mut total = 0.0;
        let mut variance = 0.0;
        let mut variance_of_variance = 0.0;
        for values in groups {
            let n = values.len() as f64;
            total += mean(values);
            // NaN for a group of one value; then the sum stays NaN.
            let of_mean = sample_std(values).map_or(f64::NAN, |std| std * std / n);
            variance += of_mean;
            variance_of_variance += of_mean * of_mean / (n - 1.0);
        }
        let n_groups = groups.len() as f64;
        Estimate {
            mean: total / n_groups,
            standard_error: Some(variance.sqrt() / n_groups).filter(|error| error.is_finite()),
            // With equal values in every group, the interval is a point for any number of degrees.
            degrees_of_freedom: if variance_of_variance > 0.0 {
                variance * variance / variance_of_variance
            } else {
                f64::INFINITY
            },
        }
    }

    /// Like [`Estimate::of_groups`], but if every group has one value, all values form one group. Tuples with one encounter each
    /// are a random sample of tuples, so differences between tuples are part of the error.
    ///
    /// # Panics
    /// If there is no group or one without values.
    pub(crate) fn over_encounters(groups: Vec<Vec<f64>>) -> Estimate {
        let is_sample = groups.len() > 1 && groups.iter().all(|group| group.len() == 1);
        Estimate::of_groups(&if is_sample { vec![groups.concat()] } else { groups })
    }

    /// The 95 % confidence interval, by Student's t.
    pub fn confidence_95(&self) -> Option<[f64; 2]> {
        let reach = self.standard_error? * student_t_975(self.degrees_of_freedom);
        Some([self.mean - reach, self.mean + reach])
    }
}

/// The arithmetic mean.
///
/// # Panics
/// If there are no values.
pub fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a mean needs a value");
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample standard deviation (divisor n − 1).
pub(crate) fn sample_std(values: &[f64]) -> Option<f64> {
    (values.len() >= 2).then(|| (squares(values) / (values.len() - 1) as f64).sqrt())
}

/// The population standard deviation (divisor n), which the paper gives after ± for its three seeds.
///
/// # Panics
/// If there are no values.
pub(crate) fn population_std(values: &[f64]) -> f64 {
    (squares(values) / values.len() as f64).sqrt()
}

/// The standard error of the mean of independent values.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    sample_std(values).map(|std| std / (values.len() as f64).sqrt())
}

/// The 95 % confidence interval of the mean of independent values, by Student's t.
pub fn confidence_95(values: &[f64]) -> Option<[f64; 2]> {
    let reach = standard_error(values)? * student_t_975((values.len() - 1) as f64);
    let middle = mean(values);
    Some([middle - reach, middle + reach])
}

/// The 97.5 % quantile of Student's t. Degrees of freedom are rounded down, so that the interval is never too narrow.
///
/// # Panics
/// Below one degree of freedom.
pub(crate) fn student_t_975(degrees_of_freedom: f64) -> f64 {
    #[rustfmt::skip]
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
        2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
        2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
    ];
    // Rounding errors may make a whole number slightly too small.
    let degrees = (degrees_of_freedom + 1e-9).floor();
    assert!(degrees >= 1.0, "Student's t needs a degree of freedom, found {degrees_of_freedom}");
    if degrees <= TABLE.len() as f64 {
        return TABLE[degrees as usize - 1];
    }
    // The Cornish-Fisher expansion around the normal quantile, exact to six decimals for more than 30 degrees.
    let z: f64 = 1.959_963_984_540_054;
    let term1 = (z.powi(3) + z) / 4.0;
    let term2 = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let term3 = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + term1 / degrees + term2 / degrees.powi(2) + term3 / degrees.powi(3)
}

/// The mean of the middle half of the values: a quarter of them, rounded down, is dropped at each end.
///
/// # Panics
/// If there are no values.
pub(crate) fn interquartile_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n_dropped = sorted.len() / 4;
    mean(&sorted[n_dropped..sorted.len() - n_dropped])
}

/// The interquartile mean over all values of all strata (one stratum per game or pool, one value per seed), with the 95 %
/// interval of a stratified bootstrap.
///
/// # Panics
/// If a stratum is empty or there are no resamples.
pub(crate) fn interquartile_mean_95(strata: &[Vec<f64>], n_resamples: usize, seed: u64) -> Interval {
    bootstrap_95(strata, n_resamples, seed, |strata| interquartile_mean(&strata.concat()))
}

/// The probability that a run of the first method has a higher score than a run of the second with the same stratum, averaged over
/// strata; ties count as half. With the 95 % interval of a stratified bootstrap.
///
/// # Panics
/// If the methods have different numbers of strata, a stratum is empty, or there are no resamples.
pub(crate) fn probability_of_improvement_95(
    first: &[Vec<f64>],
    second: &[Vec<f64>],
    n_resamples: usize,
    seed: u64,
) -> Interval {
    assert_eq!(first.len(), second.len(), "both methods need the same strata");
    let strata = [first, second].concat();
    bootstrap_95(&strata, n_resamples, seed, |strata| {
        let (first, second) = strata.split_at(strata.len() / 2);
        let of_strata = first.iter().zip(second).map(|(first, second)| share_of_wins(first, second));
        mean(&of_strata.collect::<Vec<_>>())
    })
}

/// The share of pairs in which the first value is higher; ties count as half.
fn share_of_wins(first: &[f64], second: &[f64]) -> f64 {
    let pairs = first.iter().flat_map(|one| second.iter().map(move |other| one.total_cmp(other)));
    let points: f64 = pairs
        .map(|order| match order {
            Ordering::Greater => 1.0,
            Ordering::Equal => 0.5,
            Ordering::Less => 0.0,
        })
        .sum();
    points / (first.len() * second.len()) as f64
}

/// A performance profile: for every threshold, the share of runs with a score above it, averaged over strata, with the 95 % interval
/// of a stratified bootstrap.
///
/// # Panics
/// If a stratum is empty or there are no resamples.
pub(crate) fn performance_profile_95(
    strata: &[Vec<f64>],
    thresholds: &[f64],
    n_resamples: usize,
    seed: u64,
) -> Vec<Interval> {
    let above = |strata: &[Vec<f64>], threshold: f64| {
        let share = |values: &Vec<f64>| {
            values.iter().filter(|value| **value > threshold).count() as f64 / values.len() as f64
        };
        mean(&strata.iter().map(share).collect::<Vec<_>>())
    };
    let interval =
        |threshold: &f64| bootstrap_95(strata, n_resamples, seed, |strata| above(strata, *threshold));
    thresholds.iter().map(interval).collect()
}

/// A statistic of all strata, with the 95 % interval of a stratified bootstrap. Every resample draws from each stratum as many values
/// as it has.
fn bootstrap_95(
    strata: &[Vec<f64>],
    n_resamples: usize,
    seed: u64,
    statistic: impl Fn(&[Vec<f64>]) -> f64,
) -> Interval {
    assert!(n_resamples > 0, "a bootstrap needs resamples");
    assert!(strata.iter().all(|stratum| !stratum.is_empty()), "a stratum needs values");
    let mut counter = 0;
    let mut resample = strata.to_vec();
    let mut found: Vec<f64> = (0..n_resamples)
        .map(|_| {
            for (drawn, stratum) in resample.iter_mut().zip(strata) {
                for value in drawn {
                    *value = stratum[random_index(seed, counter, stratum.len())];
                    counter += 1;
                }
            }
            statistic(&resample)
        })
        .collect();
    found.sort_by(f64::total_cmp);
    Interval { value: statistic(strata), low: quantile(&found, 0.025), high: quantile(&found, 0.975) }
}

/// `score` as a share of the range from the static score (0) to the oracle's (1); `None` if these are equal.
pub fn normalised(score: f64, of_static: f64, of_oracle: f64) -> Option<f64> {
    (of_oracle != of_static).then(|| (score - of_static) / (of_oracle - of_static))
}

/// `score` as a share of the range from the static score (0) to the score of bayes (1); `None` if these are equal. Unlike a plain
/// ratio to bayes, the share keeps its meaning for negative rewards.
pub(crate) fn share_of_bayes(score: f64, of_static: f64, of_bayes: f64) -> Option<f64> {
    normalised(score, of_static, of_bayes)
}

/// The sum of squared deviations from the mean.
fn squares(values: &[f64]) -> f64 {
    let middle = mean(values);
    values.iter().map(|value| (value - middle).powi(2)).sum()
}

/// A quantile of sorted values, with linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Random index from `0..n`, as a function of seed and counter (SplitMix64). The bias of the multiplication is below n / 2⁶⁴.
fn random_index(seed: u64, counter: u64, n: usize) -> usize {
    let mut bits = mix(seed).wrapping_add(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = mix(bits);
    ((u128::from(bits) * n as u128) >> 64) as usize
}

/// Random number from 0 to 1, excluding 1, as a function of seed and counter.
pub(crate) fn random_unit(seed: u64, counter: u64) -> f64 {
    random_index(seed, counter, 1 << 53) as f64 / (1u64 << 53) as f64
}

fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::{
        Estimate, confidence_95, interquartile_mean, interquartile_mean_95, mean, normalised,
        performance_profile_95, population_std, probability_of_improvement_95, quantile, sample_std,
        share_of_bayes, standard_error, student_t_975,
    };

    #[track_caller]
    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "found {found}, expected {expected}");
    }

    #[test]
    fn standard_deviations_and_errors() {
        // Deviations −1.5 −0.5 0.5 1.5, squares 5.
        let values = [1.0, 2.0, 3.0, 4.0];
        close(mean(&values), 2.5);
        close(sample_std(&values).unwrap(), (5.0_f64 / 3.0).sqrt());
        close(population_std(&values), (5.0_f64 / 4.0).sqrt());
        close(standard_error(&values).unwrap(), (5.0_f64 / 12.0).sqrt());
        assert_eq!(sample_std(&[7.0]), None);
        assert_eq!(population_std(&[7.0]), 0.0);
    }

    #[test]
    fn population_std_of_three_seeds_has_divisor_three() {
        // 0.043, 0.047, 0.051: squares 2 · 0.004², a third of it.
        close(population_std(&[0.043, 0.047, 0.051]), 0.004 * (2.0_f64 / 3.0).sqrt());
    }

    #[test]
    fn groups_have_equal_weight_and_their_difference_is_not_part_of_the_error() {
        let score = Estimate::of_groups(&[vec![1.0, 3.0], vec![10.0, 10.0, 10.0, 10.0]]);
        assert_eq!(score.mean, 6.0);
        // Only the first group varies: variance of its mean 2 / 2 = 1, divided by the 2 groups.
        assert_eq!(score.standard_error, Some(0.5));
        // Its one degree of freedom is the only one.
        close(score.degrees_of_freedom, 1.0);
        let [low, high] = score.confidence_95().unwrap();
        close(low, 6.0 - 0.5 * 12.706_205);
        close(high, 6.0 + 0.5 * 12.706_205);
    }

    #[test]
    fn degrees_of_freedom_of_equal_groups_add_up() {
        // Two groups of three values with equal variance: twice two degrees.
        let score = Estimate::of_groups(&[vec![0.0, 1.0, 2.0], vec![5.0, 6.0, 7.0]]);
        close(score.degrees_of_freedom, 4.0);
        // Variance of each mean 1 / 3, of their mean 1 / 6.
        close(score.standard_error.unwrap(), (1.0_f64 / 6.0).sqrt());
    }

    #[test]
    fn one_value_has_no_standard_error_and_equal_values_have_an_interval_of_width_zero() {
        let alone = Estimate::of_groups(&[vec![1.0, 2.0], vec![3.0]]);
        assert_eq!((alone.standard_error, alone.confidence_95()), (None, None));
        let exact = Estimate::of_groups(&[vec![2.0, 2.0]]);
        assert_eq!(exact.confidence_95(), Some([2.0, 2.0]));
    }

    #[test]
    fn student_t_matches_printed_tables() {
        close(student_t_975(2.0), 4.302_653);
        close(student_t_975(30.0), 2.042_272);
        // Beyond 30 degrees: values of a printed table of t.
        assert!((student_t_975(40.0) - 2.021_075).abs() < 2e-6);
        assert!((student_t_975(60.0) - 2.000_298).abs() < 2e-6);
        assert!((student_t_975(120.0) - 1.979_930).abs() < 2e-6);
        close(student_t_975(f64::INFINITY), 1.959_964);
        // Rounded down, never too narrow.
        assert_eq!(student_t_975(3.9), student_t_975(3.0));
        assert!(student_t_975(31.0) < student_t_975(30.0));
        // Three seeds: mean 2, standard error 1 / √3.
        let [low, high] = confidence_95(&[1.0, 2.0, 3.0]).unwrap();
        close(high - 2.0, 4.302_653 / 3.0_f64.sqrt());
        close(2.0 - low, 4.302_653 / 3.0_f64.sqrt());
    }

    #[test]
    fn interquartile_mean_drops_a_quarter_at_each_end() {
        // Of eight values, two are dropped at each end.
        close(interquartile_mean(&[100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -100.0]), 3.5);
        // Of three values, none is dropped.
        close(interquartile_mean(&[1.0, 2.0, 6.0]), 3.0);
    }

    #[test]
    fn bootstrap_is_repeatable_and_resamples_within_strata() {
        let strata = [vec![0.1, 0.2, 0.3, 0.4], vec![0.5, 0.6, 0.7, 0.8]];
        let interval = interquartile_mean_95(&strata, 2_000, 1);
        assert_eq!(interval, interquartile_mean_95(&strata, 2_000, 1));
        assert_ne!(interval, interquartile_mean_95(&strata, 2_000, 2));
        close(interval.value, 0.45);
        assert!(interval.low < 0.45 && 0.45 < interval.high, "{interval:?}");
        // The middle half of a resample has two to four different values, so its mean is well within 0.1 to 0.8.
        assert!(interval.low > 0.2 && interval.high < 0.7, "{interval:?}");
        // Strata of equal values give the same mean in every resample, for any distance between the strata.
        let fixed = interquartile_mean_95(&[vec![1.0; 4], vec![9.0; 4]], 100, 1);
        assert_eq!((fixed.low, fixed.value, fixed.high), (5.0, 5.0, 5.0));
    }

    #[test]
    fn bootstrap_interval_of_a_mean_has_the_theoretical_width() {
        // Of three values none is dropped, so the interquartile mean is the mean of a resample. There are 27 equally likely
        // resamples, and one of them has the mean −1, which is more than 2.5 %: the lower end is −1.
        let interval = interquartile_mean_95(&[vec![-1.0, 0.0, 1.0]], 20_000, 7);
        assert_eq!((interval.low, interval.value, interval.high), (-1.0, 0.0, 1.0));
    }

    #[test]
    fn probability_of_improvement_counts_pairs_within_strata() {
        // Stratum 1: of four pairs, two wins, one tie, one loss. Stratum 2: all lost, whatever the scale.
        let first = [vec![1.0, 3.0], vec![-9.0]];
        let second = [vec![1.0, 2.0], vec![50.0, 60.0]];
        let found = probability_of_improvement_95(&first, &second, 500, 1);
        close(found.value, (2.5 / 4.0 + 0.0) / 2.0);
        assert!(found.low < found.value && found.value < found.high, "{found:?}");
        let reverse = probability_of_improvement_95(&second, &first, 500, 1);
        close(found.value + reverse.value, 1.0);
        // Strata without overlap are decided in every resample.
        let sure = probability_of_improvement_95(&[vec![2.0, 3.0, 4.0]], &[vec![0.0, 1.0]], 100, 1);
        assert_eq!((sure.low, sure.value, sure.high), (1.0, 1.0, 1.0));
    }

    #[test]
    fn a_performance_profile_is_the_share_of_runs_above_a_threshold() {
        let strata = [vec![0.1, 0.5], vec![0.5, 0.9, 0.9, 0.9]];
        let shares: Vec<f64> = performance_profile_95(&strata, &[0.0, 0.3, 0.5, 0.9], 200, 1)
            .into_iter()
            .map(|interval| interval.value)
            .collect();
        // Strata have equal weight, and a score equal to the threshold is not above it.
        assert_eq!(shares, [1.0, 0.75, 0.375, 0.0]);
        let [all] = performance_profile_95(&strata, &[0.0], 200, 1)[..] else { panic!("one threshold") };
        assert_eq!((all.low, all.high), (1.0, 1.0));
    }

    #[test]
    fn quantiles_are_interpolated() {
        close(quantile(&[0.0, 10.0], 0.25), 2.5);
        close(quantile(&[3.0], 0.975), 3.0);
    }

    #[test]
    fn normalised_scores_and_shares_of_bayes() {
        close(normalised(0.05, 0.02, 0.08).unwrap(), 0.5);
        assert_eq!(normalised(0.05, 0.02, 0.02), None);
        // Negative rewards: −3.93 between −4.5 and −2.66.
        close(share_of_bayes(-3.93, -4.5, -2.66).unwrap(), 0.57 / 1.84);
    }
}
