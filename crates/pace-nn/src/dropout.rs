//! Dropout: some numbers become zero, the others grow so that the expectation stays.
//!
//! Which ones depends on a key and on their place alone, so that nothing is stored for the way back, which drops the same
//! places of the gradient, and no thread's work depends on another's.

use crate::kernels::vectorised;

/// Names the places that one pass drops. The caller makes a new one for each pass, from its random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropoutKey(pub u64);

impl DropoutKey {
    /// The key of one of several uses inside a pass.
    pub fn of(self, index: u64) -> DropoutKey {
        // The finaliser of SplitMix64.
        let mut mixed = self.0.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        DropoutKey(mixed ^ (mixed >> 31))
    }
}

/// How much is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    rate: f32,
}

impl Dropout {
    /// Drops this share of all numbers.
    pub fn new(rate: f32) -> Dropout {
        assert!((0.0..1.0).contains(&rate), "a share below one is dropped, not {rate}");
        Dropout { rate }
    }

    /// Drops from `values`: outputs on the way forward, and with the same key their gradient on the way back.
    pub fn apply(&self, key: DropoutKey, values: &mut [f32]) {
        let threshold = (f64::from(self.rate) * 4_294_967_296.0) as u32;
        drop_below(values, key.0 as u32, (key.0 >> 32) as u32, threshold, 1.0 / (1.0 - self.rate));
    }
}

vectorised! {
    fn drop_below(values: &mut [f32], low: u32, high: u32, threshold: u32, factor: f32) {
        for (place, value) in values.iter_mut().enumerate() {
            // Two rounds of multiplying and folding spread every bit of the place and the key over all bits.
            let mut mixed = (place as u32).wrapping_mul(0x9e37_79b9).wrapping_add(low);
            mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x7feb_352d) ^ high;
            mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x846c_a68b);
            mixed ^= mixed >> 16;
            *value = if mixed >= threshold { *value * factor } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dropout, DropoutKey};

    fn kept(rate: f32, key: DropoutKey, n: usize) -> Vec<bool> {
        let mut values = vec![1.0; n];
        Dropout::new(rate).apply(key, &mut values);
        let grown = 1.0 / (1.0 - rate);
        assert!(values.iter().all(|value| *value == 0.0 || *value == grown));
        values.iter().map(|value| *value != 0.0).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "draws a million numbers")]
    fn the_share_is_kept_and_keys_share_nothing() {
        let n = 1 << 16;
        for rate in [0.1, 0.5, 0.8] {
            let one = kept(rate, DropoutKey(1), n);
            assert_eq!(one, kept(rate, DropoutKey(1), n));
            for other in [DropoutKey(2), DropoutKey(1 << 40), DropoutKey(1).of(0), DropoutKey(1).of(1)] {
                let other = kept(rate, other, n);
                let share = |n_kept: usize| n_kept as f32 / n as f32;
                // Six standard deviations of a fair draw are 0.012.
                assert!((share(other.iter().filter(|kept| **kept).count()) - (1.0 - rate)).abs() < 0.012);
                let both = one.iter().zip(&other).filter(|(one, other)| **one && **other).count();
                assert!((share(both) - (1.0 - rate) * (1.0 - rate)).abs() < 0.012);
                // Neighbours and rows of a usual width are drawn apart, too.
                for distance in [1, 128] {
                    let pairs = other.iter().zip(&other[distance..]);
                    let both = pairs.filter(|(one, other)| **one && **other).count();
                    assert!((share(both) - (1.0 - rate) * (1.0 - rate)).abs() < 0.014);
                }
            }
        }
        assert!(kept(0.0, DropoutKey(3), 100).iter().all(|kept| *kept));
    }
}
