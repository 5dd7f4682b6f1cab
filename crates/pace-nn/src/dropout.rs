//! Dropout: sets a share of the values to zero and scales the others up, so that the expectation stays the same.
//!
//! A key and the index of a value decide whether it is dropped. No mask is stored: the backward pass drops the same
//! indices of the gradient. No thread depends on the work of another.

use crate::kernels::vectorised;

/// Key that selects the values that one pass drops. The caller draws a new one for each pass from its random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropoutKey(pub u64);

impl DropoutKey {
    /// Derives the key of one of several uses inside a pass.
    pub fn of(self, index: u64) -> DropoutKey {
        // The finaliser of SplitMix64.
        let mut mixed = self.0.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        DropoutKey(mixed ^ (mixed >> 31))
    }
}

/// Dropout with a fixed rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    rate: f32,
}

impl Dropout {
    /// Drops the share `rate` of all values.
    pub fn new(rate: f32) -> Dropout {
        assert!((0.0..1.0).contains(&rate), "a dropout rate is at least 0 and below 1, not {rate}");
        Dropout { rate }
    }

    /// Drops from `values`: outputs in the forward pass, their gradient with the same key in the backward pass.
    pub(crate) fn apply(&self, key: DropoutKey, values: &mut [f32]) {
        let threshold = (f64::from(self.rate) * 4_294_967_296.0) as u32;
        drop_below(values, key.0 as u32, (key.0 >> 32) as u32, threshold, 1.0 / (1.0 - self.rate));
    }
}

vectorised! {
    fn drop_below(values: &mut [f32], low: u32, high: u32, threshold: u32, factor: f32) {
        for (index, value) in values.iter_mut().enumerate() {
            // Two rounds of multiplication and shifts mix every bit of the index and the key into all bits.
            let mut mixed = (index as u32).wrapping_mul(0x9e37_79b9).wrapping_add(low);
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
        let scaled = 1.0 / (1.0 - rate);
        assert!(values.iter().all(|value| *value == 0.0 || *value == scaled));
        values.iter().map(|value| *value != 0.0).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "draws more than a million numbers")]
    fn drops_the_given_share_independently_for_every_key() {
        let n = 1 << 16;
        for rate in [0.1, 0.5, 0.8] {
            let one = kept(rate, DropoutKey(1), n);
            assert_eq!(one, kept(rate, DropoutKey(1), n));
            for other in [DropoutKey(2), DropoutKey(1 << 40), DropoutKey(1).of(0), DropoutKey(1).of(1)] {
                let other = kept(rate, other, n);
                let share = |n_kept: usize| n_kept as f32 / n as f32;
                // Six standard deviations of the share at rate 0.5 are 0.012.
                assert!((share(other.iter().filter(|kept| **kept).count()) - (1.0 - rate)).abs() < 0.012);
                let both = one.iter().zip(&other).filter(|(one, other)| **one && **other).count();
                assert!((share(both) - (1.0 - rate) * (1.0 - rate)).abs() < 0.012);
                // Neighbours and the same column of the next row are dropped independently, too.
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
