//! Named random streams: every random number of a run follows from one seed, a purpose and a path of indices.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// A node in a tree of seeds. A child is named by a purpose and indices, so that a new use of randomness does not change the
/// random numbers of any other use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed([u8; 32]);

impl Seed {
    /// The root of a tree of seeds.
    pub fn new(number: u64) -> Seed {
        Seed(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    /// The seed for one purpose and path, for example `seed.child("encounter", &[iteration, encounter])`.
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

/// A stream of random numbers. The same seed must give the same play in every version, so the distributions are implemented
/// here and not taken from a library that may change them.
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

    /// True with probability `p`. Uses one number in every case, so that the stream's position does not depend on `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Uniform over 0..n without bias: the multiply-shift method, with rejection of the values that would cause a bias.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "cannot sample from an empty range");
        let mut product = u64::from(self.0.next_u32()) * u64::from(n);
        if (product as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (product as u32) < threshold {
                product = u64::from(self.0.next_u32()) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }

    /// An index sampled in proportion to `weights`, which must not all be zero.
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
        // Rounding may leave a remainder after the last weight.
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
        // Five standard deviations of a count, which are 91 each.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 460), "{counts:?}");
    }

    #[test]
    fn weighted_never_returns_a_zero_weight() {
        let mut stream = Seed::new(1).stream("test");
        for _ in 0..1000 {
            assert_eq!(stream.weighted(&[0.0, 0.3, 0.0]), 1);
        }
    }

    #[test]
    fn stream_keeps_its_position_when_serialised() {
        let mut stream = Seed::new(3).stream("test");
        stream.unit();
        let text = serde_json::to_string(&stream).expect("plain data");
        let mut copy: super::Stream = serde_json::from_str(&text).expect("plain data");
        assert_eq!(stream.unit(), copy.unit());
    }
}
