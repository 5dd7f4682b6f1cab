//! Buffers of rows that passes over chunks share: they grow to the largest chunk and then stay.

/// The first `n` numbers of a buffer, which is made longer if it is shorter. What they hold is left over from before.
pub fn fit(buffer: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if buffer.len() < n {
        buffer.resize(n, 0.0);
    }
    &mut buffer[..n]
}
