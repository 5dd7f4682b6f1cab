//! Named random streams: every random number of a run comes from one seed, a purpose and a path of indices.
//!
//! Nothing here knows what the numbers are used for; the purposes are chosen where the streams are asked for.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// A point in the tree of seeds. Children are reached by purpose and indices, so that adding one use of
/// randomness never shifts another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed([u8; 32]);

impl Seed {
    /// The root of a run.
    pub fn new(number: u64) -> Seed {
        Seed(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    /// The seed for one purpose, at one place: `seed.child("encounter", &[iteration, encounter])`.
    pub fn child(&self, purpose: &str, path: &[u64]) -> Seed {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(purpose.as_bytes());
        for index in path {
            hasher.update(&index.to_le_bytes());
        }
        Seed(*hasher.finalize().as_bytes())
    }

    /// The stream of random numbers for one purpose.
    pub fn stream(&self, purpose: &str) -> Stream {
        Stream(ChaCha8Rng::from_seed(self.child(purpose, &[]).0))
    }
}

/// A stream of random numbers. Its values are part of our promises (same seed, same play), so the draws are
/// written out here instead of being taken from a library that may change them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Uniform in [0, 1), on the grid of 2⁻⁵³.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    #[inline]
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// True with probability `p`. Draws a number in every case, so that the stream's position does not depend on `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Uniform over 0..n without bias: the multiply-shift method, redrawing the few values that would favour some.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "cannot draw from an empty range");
        let mut product = u64::from(self.0.next_u32()) * u64::from(n);
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u32) < threshold {
                product = u64::from(self.0.next_u32()) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }

    /// An index drawn in proportion to `weights`, which must not all be zero.
    #[inline]
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        assert!(total > 0.0, "weights must have a positive sum, found {weights:?}");
        let mut left = self.unit() * total;
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        // Rounding may leave a sliver past the last weight.
        weights.iter().rposition(|weight| *weight > 0.0).expect("the sum is positive")
    }

    /// Puts `items` into a uniformly random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u32 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Seed;

    #[test]
    fn streams_differ_by_purpose_and_path_and_repeat() {
        let seed = Seed::new(7);
        let first = |seed: Seed, purpose: &str| seed.stream(purpose).unit();
        assert_eq!(first(seed, "deal"), first(seed, "deal"));
        assert_ne!(first(seed, "deal"), first(seed, "peer"));
        assert_ne!(first(seed.child("lane", &[1]), "deal"), first(seed.child("lane", &[2]), "deal"));
        assert_ne!(first(Seed::new(8), "deal"), first(seed, "deal"));
    }

    #[test]
    fn below_is_uniform() {
        let mut stream = Seed::new(1).stream("test");
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[stream.below(6) as usize] += 1;
        }
        // Standard deviation of a count is 91; five of them.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 460), "{counts:?}");
    }

    #[test]
    fn weighted_never_draws_a_zero_weight() {
        let mut stream = Seed::new(1).stream("test");
        for _ in 0..1000 {
            assert_eq!(stream.weighted(&[0.0, 0.3, 0.0]), 1);
        }
    }

    #[test]
    fn a_stream_survives_serialisation_in_mid_use() {
        let mut stream = Seed::new(3).stream("test");
        stream.unit();
        let text = serde_json::to_string(&stream).expect("a stream can be written");
        let mut copy: super::Stream = serde_json::from_str(&text).expect("and read back");
        assert_eq!(stream.unit(), copy.unit());
    }
}
