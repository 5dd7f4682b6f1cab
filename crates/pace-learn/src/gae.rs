//! Generalised advantage estimation over encounters.
//!
//! Returns continue across the ends of episodes and stop with the encounter. For methods with returns per episode they stop
//! with every episode. Where a rollout cuts an encounter, the value of the next decision stands for the rest.

use pace_games::Ending;

use crate::batch::Batch;
use crate::config::{Span, TimeoutAdvantage, TrainConfig};

/// Fills in `targets` and the normalised `advantages`; the reward is `task + exploration_weight · exploration`.
pub(crate) fn estimate_advantages(batch: &mut Batch, exploration_weight: f64, config: &TrainConfig) {
    let (discount, gae_lambda) = (config.discount as f32, config.gae_lambda as f32);
    let exploration_weight = exploration_weight as f32;
    let n_decisions = batch.n_decisions();
    batch.advantages.clear();
    batch.advantages.resize(n_decisions, 0.0);
    batch.targets.clear();
    batch.targets.resize(n_decisions, 0.0);
    for encounter in 0..batch.n_encounters() {
        let cut = batch.cuts[encounter];
        let mut advantage = 0.0;
        let mut next_value = cut.map_or(0.0, |cut| cut.next_value);
        let mut goes_on = cut.is_some_and(|cut| cut.is_within_episode);
        let new_decisions = batch.new_decisions(encounter);
        let mut end = new_decisions.end;
        for episode in batch.episodes(encounter).rev() {
            let start = end - batch.episode_lengths[episode] as usize;
            let is_over = config.return_span == Span::Episode && !goes_on;
            goes_on = false;
            if is_over {
                (advantage, next_value) = (0.0, 0.0);
            }
            let is_zeroed = is_over
                && config.timeout_advantage == TimeoutAdvantage::Zero
                && batch.endings[episode] == Ending::TimedOut;
            for step in (start.max(new_decisions.start)..end).rev() {
                let reward = batch.task_rewards[step] + exploration_weight * batch.exploration_rewards[step];
                let td_error = reward + discount * next_value - batch.values[step];
                advantage = td_error + discount * gae_lambda * advantage;
                if is_zeroed && step + 1 == end {
                    advantage = 0.0;
                }
                next_value = batch.values[step];
                batch.advantages[step] = advantage;
                batch.targets[step] = advantage + batch.values[step];
            }
            if start <= new_decisions.start {
                break;
            }
            end = start;
        }
    }
    let n = batch.n_new_decisions() as f64;
    let new_advantages = || batch.at_new_decisions(&batch.advantages).map(f64::from);
    let mean = new_advantages().sum::<f64>() / n;
    let squares = new_advantages().map(|value| (value - mean).powi(2)).sum::<f64>();
    // The sample standard deviation, as in PyTorch. It is 0 for a single decision.
    let standard_deviation = (squares / (n - 1.0).max(1.0)).sqrt();
    for advantage in &mut batch.advantages {
        *advantage = ((f64::from(*advantage) - mean) / (standard_deviation + 1e-5)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use pace_games::Ending;

    use super::estimate_advantages;
    use crate::batch::{Batch, Cut};
    use crate::config::{Span, TimeoutAdvantage, TrainConfig};
    use crate::preset::paper_keys;

    /// Encounters of episodes of these lengths; negative ones ran out of time.
    fn sample(lengths: &[&[i32]]) -> Batch {
        let mut batch = Batch::default();
        let mut state = 7u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        for (tuple, episodes) in lengths.iter().enumerate() {
            batch.open_encounter(tuple as u32);
            for length in *episodes {
                batch.episode_lengths.push(length.unsigned_abs());
                batch.endings.push(if *length < 0 { Ending::TimedOut } else { Ending::Finished });
                for _ in 0..length.unsigned_abs() {
                    batch.actions.push(0);
                    batch.values.push(number());
                    batch.task_rewards.push(number());
                    batch.exploration_rewards.push(number() + 0.5);
                }
            }
        }
        batch
    }

    fn keys(return_span: Span, timeout_advantage: TimeoutAdvantage) -> TrainConfig {
        let config = paper_keys("kuhn-poker", "pace");
        TrainConfig { discount: 0.9, gae_lambda: 0.7, return_span, timeout_advantage, ..config }
    }

    /// Compares with the formula Σ (γλ)^k δ_{t+k} up to the end of the span. A decision with a zeroed advantage has none and passes
    /// none on.
    fn check(lengths: &[&[i32]], config: &TrainConfig) {
        let weight = 0.3;
        let mut batch = sample(lengths);
        estimate_advantages(&mut batch, weight, config);
        let mut spans = Vec::new();
        for episodes in lengths {
            let lengths = episodes.iter().map(|length| length.unsigned_abs() as usize);
            match config.return_span {
                Span::Encounter => spans.push((lengths.sum(), false)),
                Span::Episode => {
                    spans.extend(lengths.zip(*episodes).map(|(length, sign)| (length, *sign < 0)));
                }
            }
        }
        let mut first = 0;
        for (length, is_timeout) in spans {
            let range = first..first + length;
            first = range.end;
            let is_dropped = is_timeout && config.timeout_advantage == TimeoutAdvantage::Zero;
            for step in range.clone() {
                let mut sum = 0.0;
                let last = if is_dropped { range.end - 1 } else { range.end };
                for (power, later) in (step..last).enumerate() {
                    let next = if later + 1 < range.end { f64::from(batch.values[later + 1]) } else { 0.0 };
                    let reward = f64::from(batch.task_rewards[later])
                        + weight * f64::from(batch.exploration_rewards[later]);
                    let delta = reward + config.discount * next - f64::from(batch.values[later]);
                    sum += (config.discount * config.gae_lambda).powi(power as i32) * delta;
                }
                let found = f64::from(batch.targets[step]) - f64::from(batch.values[step]);
                assert!((found - sum).abs() < 1e-5, "{config:?}: {found} {sum}");
            }
        }
        let n = batch.n_decisions() as f32;
        let mean: f32 = batch.advantages.iter().sum::<f32>() / n;
        let square: f32 = batch.advantages.iter().map(|value| value * value).sum::<f32>() / (n - 1.0);
        assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
    }

    #[test]
    fn advantages_equal_the_definition() {
        for return_span in [Span::Encounter, Span::Episode] {
            for timeout_advantage in [TimeoutAdvantage::Kept, TimeoutAdvantage::Zero] {
                check(&[&[2, 3, 1], &[4, 1]], &keys(return_span, timeout_advantage));
                check(&[&[2, -3, 1], &[-4, -1]], &keys(return_span, timeout_advantage));
            }
        }
    }

    #[test]
    fn the_next_value_stands_for_the_rest_of_a_cut_encounter() {
        let keys = |return_span| keys(return_span, TimeoutAdvantage::Kept);
        // The targets of the decisions after the first `n_earlier`, from a batch that is cut behind its last decision.
        let targets = |lengths: &[i32], n_earlier: usize, is_within_episode: bool, return_span| {
            let mut batch = sample(&[lengths]);
            batch.n_earlier[0] = n_earlier;
            batch.cuts[0] = Some(Cut { next_value: 0.7, is_within_episode });
            estimate_advantages(&mut batch, 0.0, &keys(return_span));
            batch.targets[n_earlier..].to_vec()
        };
        // One more decision with a value of 0.7 and an advantage of 0 is the same as a cut before it.
        let longer = |lengths: &[i32], return_span| {
            let mut batch = sample(&[lengths]);
            let n = batch.n_decisions();
            (batch.values[n - 1], batch.task_rewards[n - 1]) = (0.7, 0.7);
            estimate_advantages(&mut batch, 0.0, &keys(return_span));
            batch.targets[..n - 1].to_vec()
        };
        let near = |one: &[f32], other: &[f32]| {
            assert_eq!(one.len(), other.len());
            one.iter()
                .zip(other)
                .for_each(|(one, other)| assert!((one - other).abs() < 1e-5, "{one} {other}"));
        };
        for span in [Span::Encounter, Span::Episode] {
            near(&targets(&[2, 3], 0, true, span), &longer(&[2, 4], span));
            near(&targets(&[2, 3], 3, true, span), &longer(&[2, 4], span)[3..]);
            near(&targets(&[2, 3], 1, true, span), &longer(&[2, 4], span)[1..]);
        }
        // Between two episodes, only returns of encounters go on.
        near(&targets(&[2, 3], 0, false, Span::Encounter), &longer(&[2, 3, 1], Span::Encounter));
        near(&targets(&[2, 3], 2, false, Span::Episode), &longer(&[2, 3, 1], Span::Episode)[2..]);
        // Earlier decisions have no part in the normalisation.
        let mut batch = sample(&[&[2, 3]]);
        batch.n_earlier[0] = 2;
        estimate_advantages(&mut batch, 0.0, &keys(Span::Encounter));
        assert!(batch.advantages[2..].iter().sum::<f32>().abs() < 1e-5);
    }

    #[test]
    fn episode_ends_change_nothing_if_returns_continue_across_them() {
        // Time-outs neither: an encounter has no other end than its last one.
        let config = keys(Span::Encounter, TimeoutAdvantage::Zero);
        let advantages = |lengths: &[i32]| {
            let mut batch = sample(&[lengths]);
            estimate_advantages(&mut batch, 0.1, &config);
            batch.advantages
        };
        assert_eq!(advantages(&[2, 3, 1]), advantages(&[1, 4, 1]));
        assert_eq!(advantages(&[2, 3, 1]), advantages(&[-2, -3, -1]));
    }
}
