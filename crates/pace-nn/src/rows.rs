//! Buffers of rows that passes over chunks share: they grow to the largest chunk and then stay.
//!
//! Where rows recur, a pass goes over those that differ. Its results are spread to all rows on the way forward, and all
//! rows' gradients are gathered on the way back; `places` says which of the distinct rows each row is.

use crate::kernels::vectorised;

/// The first `n` numbers of a buffer, which is made longer if it is shorter. What they hold is left over from before.
pub fn ensure_len(buffer: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if buffer.len() < n {
        buffer.resize(n, 0.0);
    }
    &mut buffer[..n]
}

/// Copies to every row the one at its place.
pub fn gather_rows(distinct: &[f32], places: &[u32], width: usize, rows: &mut [f32]) {
    for (row, place) in rows.chunks_exact_mut(width).zip(places) {
        row.copy_from_slice(&distinct[*place as usize * width..][..width]);
    }
}

vectorised! {
    /// Adds up the rows that have the same place, in their order.
    pub fn scatter_add_rows(rows: &[f32], places: &[u32], width: usize, distinct: &mut [f32]) {
        distinct.fill(0.0);
        for (row, place) in rows.chunks_exact(width).zip(places) {
            let sums = &mut distinct[*place as usize * width..][..width];
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}
