//! EXP3: a bandit that chooses one of two policies for each episode, from the returns of the episodes before.

use pace_games::Stream;

/// One of the two policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arm {
    /// The conditional policy, at the belief's mean.
    Greedy,
    /// A policy that loses little against any peers.
    Conservative,
}

/// Weights of the two arms. Only the weight of the chosen arm changes, by the return divided by the arm's probability.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exp3 {
    gamma: f64,
    low: f64,
    high: f64,
    weights: [f64; 2],
}

/// Above this value both weights are divided by the same number.
const MAX_WEIGHT: f64 = 1e10;
/// A weight of 0 could never grow again.
const MIN_WEIGHT: f64 = 1e-300;

impl Exp3 {
    /// Equal weights. Returns from `low` to `high` are scaled to 0 to 1.
    pub(crate) fn new(gamma: f64, low: f64, high: f64) -> Exp3 {
        Exp3 { gamma, low, high, weights: [1.0; 2] }
    }

    /// Sets equal weights.
    pub(crate) fn reset(&mut self) {
        self.weights = [1.0; 2];
    }

    /// The probability of each arm: p_i = (1 − γ) w_i / Σw + γ / 2.
    pub(crate) fn probabilities(&self) -> [f64; 2] {
        let total: f64 = self.weights.iter().sum();
        self.weights.map(|weight| (1.0 - self.gamma) * weight / total + self.gamma / 2.0)
    }

    pub(crate) fn sample(&self, rng: &mut Stream) -> Arm {
        if rng.chance(self.probabilities()[0]) { Arm::Greedy } else { Arm::Conservative }
    }

    /// Updates the weight of an episode's arm with the return of the episode.
    pub(crate) fn update(&mut self, arm: Arm, episode_return: f64) {
        let index = arm as usize;
        let scaled = ((episode_return - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.weights[index] *= (self.gamma * scaled / (2.0 * self.probabilities()[index])).exp();
        // Only the ratio of the weights matters, so that they can be rescaled before one overflows.
        if self.weights[index] > MAX_WEIGHT {
            let highest = self.weights[index];
            self.weights.iter_mut().for_each(|weight| *weight = (*weight / highest).max(MIN_WEIGHT));
        }
    }
}

#[cfg(test)]
mod tests {
    use pace_games::Seed;

    use super::{Arm, Exp3};

    #[test]
    fn probabilities_sum_to_one_and_have_a_minimum() {
        let mut rng = Seed::new(1).stream("test");
        for gamma in [0.0, 0.2, 0.3, 1.0] {
            let mut bandit = Exp3::new(gamma, -2.0, 2.0);
            for round in 0..20_000 {
                let arm = bandit.sample(&mut rng);
                // Returns outside the range, and long stretches in which one arm is always better.
                let is_good = (arm == Arm::Greedy) == (round < 15_000);
                bandit.update(arm, if is_good { rng.between(0.0, 5.0) } else { rng.between(-5.0, 0.0) });
                let probabilities = bandit.probabilities();
                assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                assert!(probabilities.iter().all(|p| *p >= gamma / 2.0 - 1e-15), "{probabilities:?}");
                assert!(bandit.weights.iter().all(|weight| (1e-300..=1e10).contains(weight)));
            }
        }
    }

    #[test]
    fn one_update_follows_the_formula() {
        let mut bandit = Exp3::new(0.3, -2.0, 2.0);
        assert_eq!(bandit.probabilities(), [0.5, 0.5]);
        bandit.update(Arm::Conservative, 1.0);
        // r̂ = 0.75 and p = 0.5.
        let weight = (0.3 * 0.75 / (2.0 * 0.5f64)).exp();
        assert!((bandit.weights[1] - weight).abs() < 1e-12 && bandit.weights[0] == 1.0);
        let expected = 0.7 * weight / (1.0 + weight) + 0.15;
        assert!((bandit.probabilities()[1] - expected).abs() < 1e-12);
    }

    #[test]
    fn large_weights_are_rescaled_and_keep_their_ratio() {
        let mut bandit = Exp3 { weights: [9.9e9, 3.3e9], ..Exp3::new(0.3, 0.0, 1.0) };
        let before = bandit.probabilities();
        bandit.update(Arm::Greedy, 1.0);
        assert!(bandit.weights.iter().all(|weight| *weight <= 1.0), "{:?}", bandit.weights);
        let grown = (0.3 / (2.0 * before[0])).exp();
        let ratio = bandit.weights[0] / bandit.weights[1];
        assert!((ratio - 3.0 * grown).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn the_better_arm_is_chosen_more_often() {
        let mut rng = Seed::new(2).stream("test");
        let mut bandit = Exp3::new(0.2, -8.0, 0.0);
        let mut n_greedy = 0;
        for _ in 0..400 {
            let arm = bandit.sample(&mut rng);
            n_greedy += usize::from(arm == Arm::Greedy);
            bandit.update(arm, if arm == Arm::Greedy { -3.0 } else { -5.0 });
        }
        assert!(n_greedy > 280, "{n_greedy}");
    }
}
