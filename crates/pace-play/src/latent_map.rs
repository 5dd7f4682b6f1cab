//! A flat map of an agent's latent space: the two directions in which its latents differ most when it meets the training peers.
//!
//! Principal components and no more clever projection, because a person's trail is drawn into the map step by step, and with
//! these a point's place does not depend on the points that come after it.

use pace_games::{AnyGame, ConfigError, Seed, Split};
use pace_learn::Agent;
use serde::Serialize;

/// The map, with the training peers on it.
#[derive(Clone, Debug)]
pub struct LatentMap {
    mean: Vec<f64>,
    axes: [Vec<f64>; 2],
    /// Where the training peers are.
    pub landmarks: Vec<Landmark>,
}

/// The latent after an episode with one tuple of training peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Landmark {
    /// The tuple's number in the training pool.
    pub tuple: usize,
    /// How far the encounter had come, from 0 to 1.
    pub progress: f32,
    /// Where it is.
    pub place: [f32; 2],
}

/// About as many landmarks are kept per tuple.
const PER_TUPLE: usize = 8;

impl LatentMap {
    /// Lets the agent meet every training tuple once. None if it has no latent, or one that never changes, or if it cannot
    /// act: playing with it reports the reason.
    pub fn of(agent: &Agent, game: &dyn AnyGame) -> Option<LatentMap> {
        let width = agent.latent_width();
        if width == 0 {
            return None;
        }
        let mut latents: Vec<(usize, f32, Vec<f32>)> = Vec::new();
        for tuple in 0..game.n_tuples(Split::Train) {
            let after_episodes = encounter(agent, game, tuple).ok()?;
            let n = after_episodes.len();
            let stride = n.div_ceil(PER_TUPLE);
            for (episode, latent) in after_episodes.into_iter().enumerate() {
                if (episode + 1) % stride == 0 {
                    latents.push((tuple, (episode + 1) as f32 / n as f32, latent));
                }
            }
        }
        let rows: Vec<&[f32]> = latents.iter().map(|(_, _, latent)| &latent[..]).collect();
        let (mean, axes) = principal_components(&rows)?;
        let mut map = LatentMap { mean, axes, landmarks: Vec::new() };
        map.landmarks = latents
            .iter()
            .map(|(tuple, progress, latent)| Landmark {
                tuple: *tuple,
                progress: *progress,
                place: map.place(latent),
            })
            .collect();
        Some(map)
    }

    /// Where a latent is on the map.
    pub fn place(&self, latent: &[f32]) -> [f32; 2] {
        [0, 1].map(|axis| {
            let centred = latent.iter().zip(&self.mean).map(|(value, mean)| f64::from(*value) - mean);
            let place: f64 = centred.zip(&self.axes[axis]).map(|(value, part)| value * part).sum();
            ((place * 1e4).round() / 1e4) as f32
        })
    }
}

/// The latents after each episode of one encounter with a training tuple.
fn encounter(agent: &Agent, game: &dyn AnyGame, tuple: usize) -> Result<Vec<Vec<f32>>, ConfigError> {
    let seed = Seed::new(0).child("latent-map", &[tuple as u64]);
    let n_episodes = game.spec().episodes_per_encounter;
    let mut session = agent.session(game, Split::Train, tuple, &[], n_episodes, seed)?;
    let mut latents = Vec::with_capacity(n_episodes);
    while session.step()? {
        let moment = session.moment();
        if moment.ending.is_some() {
            latents.extend(moment.inference().map(|inference| inference.latent.clone()));
        }
    }
    Ok(latents)
}

/// The mean and the two directions of largest spread, by power iteration. None where all rows are equal.
fn principal_components(rows: &[&[f32]]) -> Option<(Vec<f64>, [Vec<f64>; 2])> {
    let width = rows.first()?.len();
    let mut mean = vec![0.0; width];
    for row in rows {
        mean.iter_mut().zip(*row).for_each(|(sum, value)| *sum += f64::from(*value) / rows.len() as f64);
    }
    let mut covariance = vec![0.0; width * width];
    for row in rows {
        let centred: Vec<f64> = row.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean).collect();
        for (line, one) in covariance.chunks_exact_mut(width).zip(&centred) {
            line.iter_mut().zip(&centred).for_each(|(sum, other)| *sum += one * other);
        }
    }
    let first = largest_direction(&covariance, width, None)?;
    // A latent that moves on a line alone still has a map: a flat one.
    let second = largest_direction(&covariance, width, Some(&first)).unwrap_or_else(|| vec![0.0; width]);
    Some((mean, [first, second]))
}

const N_ITERATIONS: usize = 200;

/// The direction of largest spread that is at right angles to `taken`.
fn largest_direction(covariance: &[f64], width: usize, taken: Option<&[f64]>) -> Option<Vec<f64>> {
    let scale = covariance.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    // Any start that is not at right angles to the answer will do; this one favours no coordinate and repeats no value.
    let mut direction: Vec<f64> = (0..width).map(|index| 1.0 + (index as f64 * 0.618).fract()).collect();
    let mut length = 0.0;
    for _ in 0..N_ITERATIONS {
        let mut next: Vec<f64> =
            covariance.chunks_exact(width).map(|line| product(line, &direction)).collect();
        if let Some(taken) = taken {
            let along = product(&next, taken);
            next.iter_mut().zip(taken).for_each(|(value, part)| *value -= along * part);
        }
        length = product(&next, &next).sqrt();
        if length <= scale * 1e-9 {
            return None;
        }
        next.iter_mut().for_each(|value| *value /= length);
        direction = next;
    }
    // Of the two opposite directions, the one whose largest part is positive.
    let largest =
        direction.iter().fold(0.0f64, |most, part| if part.abs() > most.abs() { *part } else { most });
    direction.iter_mut().for_each(|part| *part *= largest.signum());
    (length > 0.0).then_some(direction)
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::{LatentMap, principal_components};

    #[test]
    fn the_first_axis_is_the_longest_and_the_second_at_right_angles_to_it() {
        let rows: Vec<Vec<f32>> = (0..40)
            .map(|index| {
                let (long, short) = ((index as f32 - 19.5) / 4.0, if index % 2 == 0 { 0.5 } else { -0.5 });
                vec![3.0 + 0.6 * long - 0.8 * short, -1.0 + 0.8 * long + 0.6 * short, 7.0]
            })
            .collect();
        let views: Vec<&[f32]> = rows.iter().map(|row| &row[..]).collect();
        let (mean, axes) = principal_components(&views).expect("the rows differ");
        assert!((mean[2] - 7.0).abs() < 1e-6);
        assert!((axes[0][0] - 0.6).abs() < 1e-2 && (axes[0][1] - 0.8).abs() < 1e-2, "{axes:?}");
        assert!(axes[1][2].abs() < 1e-6 && super::product(&axes[0], &axes[1]).abs() < 1e-9);
        let map = LatentMap { mean, axes, landmarks: Vec::new() };
        assert!((map.place(&rows[39])[0] - 19.5 / 4.0).abs() < 2e-2);
    }

    #[test]
    fn equal_latents_have_no_map() {
        assert!(principal_components(&[&[1.0, 2.0], &[1.0, 2.0]]).is_none());
        assert!(principal_components(&[]).is_none());
    }
}
