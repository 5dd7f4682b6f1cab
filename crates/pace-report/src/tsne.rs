//! Layout of high-dimensional points in two dimensions by exact t-SNE (van der Maaten and Hinton, 2008), and silhouette scores.
//!
//! All pairs of points are used, which is fast enough for `MAX_POINTS` points. The layout depends only on the points and the seed.

use crate::stats::random_unit;

/// Maximum number of points of a layout; more would take minutes.
pub(crate) const MAX_POINTS: usize = 2000;

/// Settings of t-SNE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tsne {
    /// The effective number of neighbours of a point.
    pub perplexity: f64,
    /// Steps of gradient descent. The first quarter of them uses early exaggeration.
    pub iterations: usize,
    /// Random seed of the initial layout.
    pub seed: u64,
}

impl Default for Tsne {
    fn default() -> Tsne {
        Tsne { perplexity: 30.0, iterations: 1000, seed: 1 }
    }
}

/// Factor of the affinities during early exaggeration.
const EXAGGERATION: f64 = 12.0;

impl Tsne {
    /// Computes the layout of the points, centred on zero. Fewer than three points are placed in a row.
    ///
    /// # Panics
    /// If the points differ in length, or there are more than `MAX_POINTS`, which is 2000.
    pub fn layout(&self, points: &[&[f32]]) -> Vec<[f64; 2]> {
        let n = points.len();
        assert!(n <= MAX_POINTS, "{n} points, at most {MAX_POINTS}");
        assert!(points.iter().all(|point| point.len() == points[0].len()), "points of one length");
        if n < 3 {
            return (0..n).map(|place| [place as f64, 0.0]).collect();
        }
        let affinities = self.affinities(points);
        // Normally distributed with a small variance.
        let mut layout: Vec<[f64; 2]> = (0..n as u64)
            .map(|point| {
                let radius = (-2.0 * (1.0 - random_unit(self.seed, 2 * point)).ln()).sqrt() * 1e-4;
                let angle = std::f64::consts::TAU * random_unit(self.seed, 2 * point + 1);
                [radius * angle.cos(), radius * angle.sin()]
            })
            .collect();
        let rate = (n as f64 / EXAGGERATION / 4.0).max(50.0);
        let mut velocity = vec![[0.0; 2]; n];
        let mut gains = vec![[1.0_f64; 2]; n];
        let mut gradient = vec![[0.0; 2]; n];
        let early = self.iterations / 4;
        for iteration in 0..self.iterations {
            let (pull, momentum) = if iteration < early { (EXAGGERATION, 0.5) } else { (1.0, 0.8) };
            kl_gradient(&affinities, &layout, pull, &mut gradient);
            for (point, slope) in gradient.iter().enumerate() {
                for axis in [0, 1] {
                    // The gain grows while the gradient keeps its direction, and shrinks when it turns.
                    let gain = &mut gains[point][axis];
                    let turned = (slope[axis] > 0.0) == (velocity[point][axis] > 0.0);
                    *gain = if turned { (*gain * 0.8).max(0.01) } else { *gain + 0.2 };
                    velocity[point][axis] = momentum * velocity[point][axis] - rate * *gain * slope[axis];
                    layout[point][axis] += velocity[point][axis];
                }
            }
            for axis in [0, 1] {
                let middle = layout.iter().map(|place| place[axis]).sum::<f64>() / n as f64;
                layout.iter_mut().for_each(|place| place[axis] -= middle);
            }
        }
        layout
    }

    /// The joint probabilities of all pairs of points: symmetric, with sum 1.
    fn affinities(&self, points: &[&[f32]]) -> Vec<f64> {
        let n = points.len();
        // A point cannot have more neighbours than there are other points.
        let perplexity = self.perplexity.min((n - 1) as f64 / 3.0).max(1.0);
        let mut all = vec![0.0; n * n];
        for (one, row) in all.chunks_exact_mut(n).enumerate() {
            for (other, value) in row.iter_mut().enumerate() {
                *value = squared_distance(points[one], points[other]);
            }
            conditional(row, one, perplexity.ln());
        }
        for one in 0..n {
            for other in 0..one {
                let both = (all[one * n + other] + all[other * n + one]) / (2.0 * n as f64);
                (all[one * n + other], all[other * n + one]) = (both.max(1e-12), both.max(1e-12));
            }
        }
        all
    }
}

/// Converts the squared distances from point `own` to probabilities with the entropy `entropy`, by bisection over the precision.
fn conditional(row: &mut [f64], own: usize, entropy: f64) {
    // The smallest distance is subtracted first, so that not all exponentials underflow.
    let others = row.iter().enumerate().filter(|(other, _)| *other != own);
    let nearest = others.map(|(_, distance)| *distance).fold(f64::INFINITY, f64::min);
    let weights = |precision: f64, row: &[f64]| -> Vec<f64> {
        let weight = |(other, distance): (usize, &f64)| {
            if other == own { 0.0 } else { (-(distance - nearest) * precision).exp() }
        };
        row.iter().enumerate().map(weight).collect()
    };
    let (mut low, mut high) = (0.0, f64::INFINITY);
    let mut precision = 1.0;
    let mut found = weights(precision, row);
    for _ in 0..64 {
        let sum: f64 = found.iter().sum();
        let spread: f64 =
            found.iter().zip(row.iter()).map(|(weight, distance)| weight * (distance - nearest)).sum();
        let gap = sum.ln() + precision * spread / sum - entropy;
        if gap.abs() < 1e-5 {
            break;
        }
        if gap > 0.0 {
            low = precision;
            precision = if high.is_finite() { (low + high) / 2.0 } else { precision * 2.0 };
        } else {
            high = precision;
            precision = (low + high) / 2.0;
        }
        found = weights(precision, row);
    }
    let sum: f64 = found.iter().sum();
    row.iter_mut().zip(found).for_each(|(place, weight)| *place = weight / sum);
}

/// Computes the gradient of the KL divergence between the affinities of the points and those of their layout.
fn kl_gradient(affinities: &[f64], layout: &[[f64; 2]], pull: f64, gradient: &mut [[f64; 2]]) {
    let n = layout.len();
    let mut total = 0.0;
    for (one, place) in layout.iter().enumerate() {
        for other in &layout[..one] {
            total += 2.0 * student_kernel(place, other);
        }
    }
    for (one, place) in layout.iter().enumerate() {
        let mut slope = [0.0; 2];
        for (other, affinity) in layout.iter().zip(&affinities[one * n..][..n]) {
            let near = student_kernel(place, other);
            let force = 4.0 * (pull * affinity - near / total) * near;
            slope[0] += force * (place[0] - other[0]);
            slope[1] += force * (place[1] - other[1]);
        }
        gradient[one] = slope;
    }
}

#[inline]
fn student_kernel(one: &[f64; 2], other: &[f64; 2]) -> f64 {
    let (x, y) = (one[0] - other[0], one[1] - other[1]);
    1.0 / (1.0 + x * x + y * y)
}

fn squared_distance(one: &[f32], other: &[f32]) -> f64 {
    one.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2)).sum()
}

/// The mean silhouette (Rousseeuw, 1987) of points in groups, from −1 to 1. It is high if points are near those of their own group.
/// A point that is alone in its group counts as 0. `None` with fewer than two groups.
pub(crate) fn silhouette(points: &[&[f32]], groups: &[usize]) -> Option<f64> {
    let n_groups = groups.iter().max()? + 1;
    let mut sizes = vec![0usize; n_groups];
    groups.iter().for_each(|group| sizes[*group] += 1);
    if sizes.iter().filter(|size| **size > 0).count() < 2 {
        return None;
    }
    let mut sum = 0.0;
    for (place, point) in points.iter().enumerate() {
        let mut distances = vec![0.0; n_groups];
        for (other, group) in points.iter().zip(groups) {
            distances[*group] += squared_distance(point, other).sqrt();
        }
        let own = groups[place];
        if sizes[own] == 1 {
            continue;
        }
        let within = distances[own] / (sizes[own] - 1) as f64;
        let to_group = |group: usize| distances[group] / sizes[group] as f64;
        let others = (0..n_groups).filter(|group| *group != own && sizes[*group] > 0);
        let without = others.map(to_group).fold(f64::INFINITY, f64::min);
        let width = within.max(without);
        sum += if width > 0.0 { (without - within) / width } else { 0.0 };
    }
    Some(sum / points.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::{Tsne, silhouette};
    use crate::stats::random_unit;

    /// Three clusters of twenty points in ten dimensions.
    fn clusters() -> (Vec<Vec<f32>>, Vec<usize>) {
        let point = |place: u64| -> Vec<f32> {
            let cluster = place / 20;
            let of_axis = |axis: u64| {
                let middle = if axis == cluster { 5.0 } else { 0.0 };
                middle + random_unit(9, place * 10 + axis) as f32
            };
            (0..10).map(of_axis).collect()
        };
        ((0..60).map(point).collect(), (0..60).map(|place| place / 20).collect())
    }

    #[test]
    fn separate_clusters_stay_separate_in_the_layout() {
        let (points, groups) = clusters();
        let points: Vec<&[f32]> = points.iter().map(Vec::as_slice).collect();
        let search = Tsne { perplexity: 10.0, iterations: 400, seed: 1 };
        let layout = search.layout(&points);
        let flat: Vec<Vec<f32>> = layout.iter().map(|place| place.map(|axis| axis as f32).to_vec()).collect();
        let flat: Vec<&[f32]> = flat.iter().map(Vec::as_slice).collect();
        let found = silhouette(&flat, &groups).expect("three groups");
        assert!(found > 0.8, "{found}");
        // The same seed gives the same layout, another seed another one.
        assert_eq!(layout, search.layout(&points));
        assert_ne!(layout, Tsne { seed: 2, ..search }.layout(&points));
        let middle = layout.iter().map(|place| place[0]).sum::<f64>();
        assert!(middle.abs() < 1e-6, "{middle}");
    }

    #[test]
    fn few_points_and_equal_points_have_a_layout() {
        let one: &[f32] = &[1.0, 2.0];
        assert!(Tsne::default().layout(&[]).is_empty());
        assert_eq!(Tsne::default().layout(&[one, one]).len(), 2);
        let layout = Tsne { iterations: 50, ..Tsne::default() }.layout(&[one; 7]);
        assert!(layout.iter().flatten().all(|axis| axis.is_finite()), "{layout:?}");
    }

    #[test]
    fn silhouettes_match_values_computed_by_hand() {
        let points: Vec<Vec<f32>> = [0.0, 1.0, 10.0, 11.0].map(|x| vec![x]).to_vec();
        let points: Vec<&[f32]> = points.iter().map(Vec::as_slice).collect();
        // Ends: within 1, without 10.5; inner points: within 1, without 9.5.
        let expected = (2.0 * 9.5 / 10.5 + 2.0 * 8.5 / 9.5) / 4.0;
        assert!((silhouette(&points, &[0, 0, 1, 1]).unwrap() - expected).abs() < 1e-6);
        assert!(silhouette(&points, &[0, 1, 0, 1]).unwrap() < 0.0);
        assert_eq!(silhouette(&points, &[0, 0, 0, 0]), None);
        // A point that is alone in its group counts as 0.
        assert!(silhouette(&points, &[0, 0, 1, 2]).is_some());
    }
}
