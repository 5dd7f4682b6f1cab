//! Advantages over whole encounters: credit flows across episode ends and stops where the encounter does.

use crate::batch::Batch;

/// Fills in `targets` and the normalised `advantages`; the reward is `task + exploration_weight · exploration`.
pub(crate) fn estimate_advantages(
    batch: &mut Batch,
    exploration_weight: f32,
    discount: f32,
    gae_lambda: f32,
) {
    let n_decisions = batch.n_decisions();
    batch.advantages.clear();
    batch.advantages.resize(n_decisions, 0.0);
    batch.targets.clear();
    batch.targets.resize(n_decisions, 0.0);
    for encounter in 0..batch.n_encounters() {
        let mut advantage = 0.0;
        let mut next_value = 0.0;
        for step in batch.decisions(encounter).rev() {
            let paid = batch.task_rewards[step] + exploration_weight * batch.exploration_rewards[step];
            let surprise = paid + discount * next_value - batch.values[step];
            advantage = surprise + discount * gae_lambda * advantage;
            next_value = batch.values[step];
            batch.advantages[step] = advantage;
            batch.targets[step] = advantage + batch.values[step];
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
    use super::estimate_advantages;
    use crate::batch::Batch;

    fn sample(lengths: &[&[u32]]) -> Batch {
        let mut batch = Batch::default();
        let mut state = 7u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32 - 0.5
        };
        for (tuple, episodes) in lengths.iter().enumerate() {
            batch.open_encounter(tuple as u32);
            for length in *episodes {
                batch.episode_lengths.push(*length);
                for _ in 0..*length {
                    batch.actions.push(0);
                    batch.values.push(number());
                    batch.task_rewards.push(number());
                    batch.exploration_rewards.push(number() + 0.5);
                }
            }
        }
        batch
    }

    #[test]
    fn advantages_equal_the_definition() {
        let (gamma, lambda, weight) = (0.9f64, 0.7f64, 0.3f64);
        let mut batch = sample(&[&[2, 3, 1], &[4, 1]]);
        estimate_advantages(&mut batch, weight as f32, gamma as f32, lambda as f32);
        for encounter in 0..2 {
            let range = batch.decisions(encounter);
            for step in range.clone() {
                // Σ (γλ)^k δ_{t+k}, straight from the formula.
                let mut sum = 0.0;
                for (power, later) in (step..range.end).enumerate() {
                    let next = if later + 1 < range.end { f64::from(batch.values[later + 1]) } else { 0.0 };
                    let paid = f64::from(batch.task_rewards[later])
                        + weight * f64::from(batch.exploration_rewards[later]);
                    let delta = paid + gamma * next - f64::from(batch.values[later]);
                    sum += (gamma * lambda).powi(power as i32) * delta;
                }
                let found = f64::from(batch.targets[step]) - f64::from(batch.values[step]);
                assert!((found - sum).abs() < 1e-5, "{found} {sum}");
            }
        }
        let mean: f32 = batch.advantages.iter().sum::<f32>() / 11.0;
        let square: f32 = batch.advantages.iter().map(|value| value * value).sum::<f32>() / 10.0;
        assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-3, "{mean} {square}");
    }

    #[test]
    fn episode_ends_change_nothing() {
        let mut one = sample(&[&[2, 3, 1]]);
        let mut other = sample(&[&[1, 4, 1]]);
        estimate_advantages(&mut one, 0.1, 0.99, 0.95);
        estimate_advantages(&mut other, 0.1, 0.99, 0.95);
        assert_eq!(one.advantages, other.advantages);
    }
}
