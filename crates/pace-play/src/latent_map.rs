//! A two-dimensional map of an agent's latent space: the first two principal components of its latents with the training peers.
//!
//! The projection is linear because a person's trail is drawn step by step: the position of a point must not depend on later
//! points.

use pace_games::{AnyGame, ConfigError, Seed, Split};
use pace_learn::Agent;
use serde::Serialize;

/// A projection of latents, with the training peers as landmarks.
#[derive(Clone, Debug)]
pub struct LatentMap {
    mean: Vec<f64>,
    axes: [Vec<f64>; 2],
    /// The training peers on the map.
    pub landmarks: Vec<Landmark>,
}

/// The latent after an episode with one tuple of training peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Landmark {
    /// Index of the tuple in the training pool.
    pub tuple: usize,
    /// Progress of the encounter, from 0 to 1.
    pub progress: f32,
    /// Position on the map.
    pub place: [f32; 2],
}

/// Approximate number of landmarks per tuple.
const PER_TUPLE: usize = 8;

impl LatentMap {
    /// Plays one encounter with every training tuple and projects the latents. `None` if the agent has no latent, if its latent
    /// never changes, or if it cannot act; a session with it then reports the reason.
    pub(crate) fn of(agent: &Agent, game: &dyn AnyGame) -> Option<LatentMap> {
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

    /// The position of a latent on the map.
    pub(crate) fn place(&self, latent: &[f32]) -> [f32; 2] {
        [0, 1].map(|axis| {
            let centred = latent.iter().zip(&self.mean).map(|(value, mean)| f64::from(*value) - mean);
            let place: f64 = centred.zip(&self.axes[axis]).map(|(value, weight)| value * weight).sum();
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

/// The mean and the first two principal components, by power iteration. `None` if all rows are equal.
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
    // A latent that varies along one line only has a second coordinate of 0.
    let second = largest_direction(&covariance, width, Some(&first)).unwrap_or_else(|| vec![0.0; width]);
    Some((mean, [first, second]))
}

/// Iterations of the power method.
const N_ITERATIONS: usize = 200;

/// The direction of largest variance that is orthogonal to `taken`.
fn largest_direction(covariance: &[f64], width: usize, taken: Option<&[f64]>) -> Option<Vec<f64>> {
    let scale = covariance.iter().fold(0.0f64, |max, value| max.max(value.abs()));
    // Every start that is not orthogonal to the result converges; this one has no equal coordinates.
    let mut direction: Vec<f64> = (0..width).map(|index| 1.0 + (index as f64 * 0.618).fract()).collect();
    let mut length = 0.0;
    for _ in 0..N_ITERATIONS {
        let mut next: Vec<f64> = covariance.chunks_exact(width).map(|line| dot(line, &direction)).collect();
        if let Some(taken) = taken {
            let along = dot(&next, taken);
            next.iter_mut().zip(taken).for_each(|(value, component)| *value -= along * component);
        }
        length = dot(&next, &next).sqrt();
        if length <= scale * 1e-9 {
            return None;
        }
        next.iter_mut().for_each(|value| *value /= length);
        direction = next;
    }
    // The sign is fixed: the coordinate with the largest absolute value is positive.
    let largest =
        direction.iter().fold(0.0f64, |max, value| if value.abs() > max.abs() { *value } else { max });
    direction.iter_mut().for_each(|value| *value *= largest.signum());
    (length > 0.0).then_some(direction)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::{LatentMap, principal_components};

    #[test]
    fn axes_are_sorted_by_variance_and_orthogonal() {
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
        assert!(axes[1][2].abs() < 1e-6 && super::dot(&axes[0], &axes[1]).abs() < 1e-9);
        let map = LatentMap { mean, axes, landmarks: Vec::new() };
        assert!((map.place(&rows[39])[0] - 19.5 / 4.0).abs() < 2e-2);
    }

    #[test]
    fn equal_latents_have_no_map() {
        assert!(principal_components(&[&[1.0, 2.0], &[1.0, 2.0]]).is_none());
        assert!(principal_components(&[]).is_none());
    }
}
