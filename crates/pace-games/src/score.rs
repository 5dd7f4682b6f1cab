//! A mean with its standard error, over encounters grouped by the peers that were met.

use serde::Serialize;

/// The mean over groups of equal weight, and how far chance may have moved it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The mean of the group means.
    pub mean: f64,
    /// Its standard error: groups are fixed (the peers), values within a group are independent (the encounters).
    pub standard_error: f64,
}

impl Score {
    /// From one list of values per group. The standard error is not a number if a group has fewer than two values.
    pub fn of_groups(groups: &[Vec<f64>]) -> Score {
        let mut mean = 0.0;
        let mut variance = 0.0;
        for values in groups {
            let n = values.len() as f64;
            let group_mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|value| (value - group_mean).powi(2)).sum();
            mean += group_mean;
            variance += squares / (n - 1.0) / n;
        }
        let n_groups = groups.len() as f64;
        Score { mean: mean / n_groups, standard_error: variance.sqrt() / n_groups }
    }
}

#[cfg(test)]
mod tests {
    use super::Score;

    #[test]
    fn groups_count_equally_and_their_difference_is_no_error() {
        let score = Score::of_groups(&[vec![1.0, 3.0], vec![10.0, 10.0, 10.0, 10.0]]);
        assert_eq!(score.mean, 6.0);
        // Only the first group varies: variance of its mean 2 / 2 = 1, divided by the 2 groups.
        assert_eq!(score.standard_error, 0.5);
    }
}
