//! Initial weights. The caller passes randomness as a function `uniform` with values from [0, 1).

/// Fills an `n_in × n_out` matrix with random orthogonal vectors of length `gain`: its rows if it has fewer rows than
/// columns, else its columns.
pub fn orthogonal(
    weights: &mut [f32],
    n_in: usize,
    n_out: usize,
    gain: f64,
    uniform: &mut dyn FnMut() -> f64,
) {
    let (n_vectors, length) = (n_in.min(n_out), n_in.max(n_out));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(n_vectors);
    while vectors.len() < n_vectors {
        let mut vector: Vec<f64> = (0..length).map(|_| normal(uniform)).collect();
        // Twice: the second round removes the rounding errors of the first.
        for _ in 0..2 {
            for other in &vectors {
                let projection: f64 = vector.iter().zip(other).map(|(one, two)| one * two).sum();
                vector.iter_mut().zip(other).for_each(|(value, other)| *value -= projection * other);
            }
        }
        let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
        if norm > 1e-6 {
            vectors.push(vector.into_iter().map(|value| value / norm).collect());
        }
    }
    for row in 0..n_in {
        for column in 0..n_out {
            let value = if n_in <= n_out { vectors[row][column] } else { vectors[column][row] };
            weights[row * n_out + column] = (gain * value) as f32;
        }
    }
}

/// Fills `weights` with uniform numbers between `-bound` and `bound`.
pub fn uniform_within(weights: &mut [f32], bound: f64, uniform: &mut dyn FnMut() -> f64) {
    weights.iter_mut().for_each(|weight| *weight = ((2.0 * uniform() - 1.0) * bound) as f32);
}

/// Returns a standard normal number (Box–Muller transform).
pub(crate) fn normal(uniform: &mut dyn FnMut() -> f64) -> f64 {
    let radius = (-2.0 * (1.0 - uniform()).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform()).cos()
}

#[cfg(test)]
mod tests {
    use super::orthogonal;

    #[test]
    fn vectors_of_the_shorter_dimension_are_orthogonal() {
        let mut state = 1u64;
        let mut uniform = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for (n_in, n_out) in [(5, 8), (8, 5), (6, 6)] {
            let mut weights = vec![0.0; n_in * n_out];
            orthogonal(&mut weights, n_in, n_out, 2.0, &mut uniform);
            let vector = |index: usize| -> Vec<f32> {
                if n_in <= n_out {
                    weights[index * n_out..][..n_out].to_vec()
                } else {
                    (0..n_in).map(|row| weights[row * n_out + index]).collect()
                }
            };
            for one in 0..n_in.min(n_out) {
                for two in 0..=one {
                    let product: f32 = vector(one).iter().zip(vector(two)).map(|(a, b)| a * b).sum();
                    let expected = if one == two { 4.0 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-5, "{n_in}×{n_out}: {one}·{two} = {product}");
                }
            }
        }
    }
}
