//! Advantages over whole encounters: credit flows across episode ends and stops where the encounter does, or, for methods
//! that take every episode for itself, stops at every end.

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
        let mut advantage = 0.0;
        let mut next_value = 0.0;
        let mut end = batch.decisions(encounter).end;
        for episode in batch.episodes(encounter).rev() {
            let start = end - batch.episode_lengths[episode] as usize;
            let is_cut = config.return_span == Span::Episode;
            if is_cut {
                (advantage, next_value) = (0.0, 0.0);
            }
            let is_dropped = is_cut
                && config.timeout_advantage == TimeoutAdvantage::Zero
                && batch.endings[episode] == Ending::TimedOut;
            for step in (start..end).rev() {
                let paid = batch.task_rewards[step] + exploration_weight * batch.exploration_rewards[step];
                let surprise = paid + discount * next_value - batch.values[step];
                advantage = surprise + discount * gae_lambda * advantage;
                if is_dropped && step + 1 == end {
                    advantage = 0.0;
                }
                next_value = batch.values[step];
                batch.advantages[step] = advantage;
                batch.targets[step] = advantage + batch.values[step];
            }
            end = start;
        }
    }
    let n = n_decisions as f64;
    let mean = batch.advantages.iter().map(|value| f64::from(*value)).sum::<f64>() / n;
    let squares = batch.advantages.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>();
    // The sample deviation, as PyTorch computes it; one decision alone has none.
    let deviation = (squares / (n - 1.0).max(1.0)).sqrt();
    for advantage in &mut batch.advantages {
        *advantage = ((f64::from(*advantage) - mean) / (deviation + 1e-5)) as f32;
    }
}

#[cfg(test)]
mod tests {
    use pace_games::Ending;

    use super::estimate_advantages;
    use crate::batch::Batch;
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

    /// Σ (γλ)^k δ_{t+k} up to the end of the span, straight from the formula; a decision whose credit is dropped has none
    /// and hands none on.
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
                    let paid = f64::from(batch.task_rewards[later])
                        + weight * f64::from(batch.exploration_rewards[later]);
                    let delta = paid + config.discount * next - f64::from(batch.values[later]);
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
    fn episode_ends_change_nothing_where_returns_reach_across() {
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
