//! The random numbers with which the authors' code puts the peer tuples into their order: those of NumPy's `RandomState`.
//!
//! Random numbers of play come from `seed`.

/// The number of words of the state.
const N: usize = 624;
/// The distance between two words of the state that are combined.
const M: usize = 397;

/// The Mersenne Twister MT19937 of Matsumoto and Nishimura (1998).
#[derive(Clone, Debug)]
pub(crate) struct MersenneTwister {
    state: [u32; N],
    next: usize,
}

impl MersenneTwister {
    pub(crate) fn new(seed: u32) -> MersenneTwister {
        let mut state = [seed; N];
        for index in 1..N {
            let last = state[index - 1];
            state[index] = (last ^ last >> 30).wrapping_mul(1_812_433_253).wrapping_add(index as u32);
        }
        MersenneTwister { state, next: N }
    }

    /// Puts `items` into a random order, like `RandomState.shuffle`.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.up_to(last as u32) as usize);
        }
    }

    /// Uniform over 0..=max: the lower bits of the first word in which they are not above `max`.
    fn up_to(&mut self, max: u32) -> u32 {
        let mask = u32::MAX >> max.leading_zeros();
        loop {
            let bits = self.next_word() & mask;
            if bits <= max {
                return bits;
            }
        }
    }

    fn next_word(&mut self) -> u32 {
        if self.next == N {
            self.twist();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn twist(&mut self) {
        for index in 0..N {
            let joined = self.state[index] & 0x8000_0000 | self.state[(index + 1) % N] & 0x7fff_ffff;
            let odd = if joined % 2 == 1 { 0x9908_b0df } else { 0 };
            self.state[index] = self.state[(index + M) % N] ^ joined >> 1 ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::MersenneTwister;

    #[test]
    fn words_are_those_of_the_reference_implementation() {
        // The first words for the seed 5489, and the ten-thousandth, which the C++ standard names.
        let mut random = MersenneTwister::new(5489);
        assert_eq!([(); 2].map(|()| random.next_word()), [3_499_211_612, 581_869_302]);
        assert_eq!((2..10_000).map(|_| random.next_word()).last(), Some(4_123_659_995));
    }
}
