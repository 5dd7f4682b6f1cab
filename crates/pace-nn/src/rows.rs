//! Buffers of rows that grow to the largest chunk, and passes between distinct rows and all rows.
//!
//! A chunk with repeated inputs is computed once per distinct input. The forward pass gathers the results for all rows; the
//! backward pass adds the gradients of equal rows. `indices` holds the index of each row's distinct row.

use crate::kernels::vectorised;

/// Returns the first `n` numbers of a buffer and extends the buffer if it is shorter. The numbers are those of earlier use.
pub fn ensure_len(buffer: &mut Vec<f32>, n: usize) -> &mut [f32] {
    if buffer.len() < n {
        buffer.resize(n, 0.0);
    }
    &mut buffer[..n]
}

/// Copies to every row the distinct row at its index.
pub fn gather_rows(distinct: &[f32], indices: &[u32], width: usize, rows: &mut [f32]) {
    for (row, index) in rows.chunks_exact_mut(width).zip(indices) {
        row.copy_from_slice(&distinct[*index as usize * width..][..width]);
    }
}

vectorised! {
    /// Adds every row to the distinct row at its index, in the order of the rows.
    pub fn scatter_add_rows(rows: &[f32], indices: &[u32], width: usize, distinct: &mut [f32]) {
        for (row, index) in rows.chunks_exact(width).zip(indices) {
            let sums = &mut distinct[*index as usize * width..][..width];
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}
