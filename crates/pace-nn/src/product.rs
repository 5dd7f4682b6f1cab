//! Matrix products over row-major slices: the one place that calls the GEMM library.

use std::sync::Once;

use gemm::Parallelism;

use crate::linear::Store;

/// `out (m × n) = or += lhs (m × k) · rhs (k × n)`.
pub fn multiply(lhs: &[f32], rhs: &[f32], out: &mut [f32], m: usize, k: usize, n: usize, store: Store) {
    run(Shape { m, k, n }, out, (lhs, k, 1), (rhs, n, 1), store);
}

/// `out (k × n) = or += lhsᵀ · rhs`, with `lhs (m × k)` and `rhs (m × n)`: the gradient of a product's weights.
pub fn multiply_transposed(
    lhs: &[f32],
    rhs: &[f32],
    out: &mut [f32],
    m: usize,
    k: usize,
    n: usize,
    store: Store,
) {
    run(Shape { m: k, k: m, n }, out, (lhs, 1, k), (rhs, n, 1), store);
}

/// Which of the three products of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductKind {
    /// [`multiply`].
    Forward,
    /// [`multiply_transposed`].
    WeightGradient,
    /// [`multiply`] by the transposed weights.
    InputGradient,
}

/// One product of a layer with `k` inputs and `n` outputs on `m` rows, as a piece of work to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// Which product.
    pub kind: ProductKind,
    /// Rows.
    pub m: usize,
    /// Inputs.
    pub k: usize,
    /// Outputs.
    pub n: usize,
}

impl ProductShape {
    /// Multiplications and additions.
    pub fn flops(&self) -> f64 {
        2.0 * (self.m * self.k * self.n) as f64
    }

    /// Carries the product out on whatever numbers are in the three buffers, which grow as needed.
    pub fn run(&self, buffers: &mut [Vec<f32>; 3]) {
        let ProductShape { kind, m, k, n } = *self;
        let [rows, weights, out] = buffers;
        for (buffer, needed) in [(&mut *rows, m * k), (&mut *weights, k * n), (&mut *out, m * n)] {
            if buffer.len() < needed {
                buffer.resize(needed, 0.01);
            }
        }
        let (rows, weights, out) = (&mut rows[..m * k], &mut weights[..k * n], &mut out[..m * n]);
        match kind {
            ProductKind::Forward => multiply(rows, weights, out, m, k, n, Store::Overwrite),
            ProductKind::WeightGradient => multiply_transposed(rows, out, weights, m, k, n, Store::Overwrite),
            ProductKind::InputGradient => multiply(out, weights, rows, m, n, k, Store::Overwrite),
        }
    }
}

/// Writes `matrix (n_rows × n_columns)` row by column: `out (n_columns × n_rows)`.
pub fn transpose(matrix: &[f32], n_rows: usize, n_columns: usize, out: &mut [f32]) {
    assert_eq!((matrix.len(), out.len()), (n_rows * n_columns, n_rows * n_columns), "{n_rows}×{n_columns}");
    // Tile by tile: a tile's rows and columns are few enough lines to stay in the first cache.
    const TILE: usize = 16;
    for first_row in (0..n_rows).step_by(TILE) {
        let rows = first_row..(first_row + TILE).min(n_rows);
        for first_column in (0..n_columns).step_by(TILE) {
            for column in first_column..(first_column + TILE).min(n_columns) {
                let line = &mut out[column * n_rows..][rows.clone()];
                for (place, row) in line.iter_mut().zip(rows.clone()) {
                    *place = matrix[row * n_columns + column];
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    m: usize,
    k: usize,
    n: usize,
}

/// The library copies one side of a product together once there are this many panels of six rows. Its own choice, 8, is
/// made for large matrices; a chunk's weights and gradients are in the second cache anyway, and reading them where they
/// are is 2 % faster. The order of the sums is the same.
const UNPACKED_PANELS: usize = 64;

static IS_TUNED: Once = Once::new();

/// A slice with its row stride and column stride.
type Strided<'a> = (&'a [f32], usize, usize);

fn run(shape: Shape, out: &mut [f32], lhs: Strided<'_>, rhs: Strided<'_>, store: Store) {
    let Shape { m, k, n } = shape;
    assert_eq!(lhs.0.len(), m * k, "left side of {shape:?}");
    assert_eq!(rhs.0.len(), k * n, "right side of {shape:?}");
    assert_eq!(out.len(), m * n, "output of {shape:?}");
    if m == 0 || n == 0 {
        return;
    }
    IS_TUNED.call_once(|| gemm::set_lhs_packing_threshold_single_thread(UNPACKED_PANELS));
    // SAFETY: the three slices hold exactly m·k, k·n and m·n numbers (asserted above), and each pair of strides is that
    // of a dense row-major matrix or of its transpose, so that every index the library forms lies inside its slice;
    // `out` is borrowed mutably, so it overlaps neither input.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            store == Store::Add,
            lhs.0.as_ptr(),
            lhs.2 as isize,
            lhs.1 as isize,
            rhs.0.as_ptr(),
            rhs.2 as isize,
            rhs.1 as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{Store, multiply, multiply_transposed, transpose};

    fn numbers(n: usize, shift: usize) -> Vec<f32> {
        (0..n).map(|index| ((index * 7 + shift) % 13) as f32 - 6.0).collect()
    }

    #[test]
    fn products_agree_with_the_definition() {
        let (m, k, n) = (5, 3, 4);
        let (x, w) = (numbers(m * k, 1), numbers(k * n, 2));
        let mut y = vec![1.0; m * n];
        multiply(&x, &w, &mut y, m, k, n, Store::Add);
        for row in 0..m {
            for column in 0..n {
                let sum: f32 = (0..k).map(|inner| x[row * k + inner] * w[inner * n + column]).sum();
                assert_eq!(y[row * n + column], sum + 1.0);
            }
        }
        let (mut back, mut transposed) = (vec![f32::NAN; m * k], vec![f32::NAN; k * n]);
        transpose(&w, k, n, &mut transposed);
        multiply(&y, &transposed, &mut back, m, n, k, Store::Overwrite);
        let mut d_w = vec![f32::NAN; k * n];
        multiply_transposed(&x, &y, &mut d_w, m, k, n, Store::Overwrite);
        for inner in 0..k {
            for row in 0..m {
                let sum: f32 = (0..n).map(|column| y[row * n + column] * w[inner * n + column]).sum();
                assert_eq!(back[row * k + inner], sum);
            }
            for column in 0..n {
                let sum: f32 = (0..m).map(|row| x[row * k + inner] * y[row * n + column]).sum();
                assert_eq!(d_w[inner * n + column], sum);
            }
        }
    }
    #[test]
    fn transposing_swaps_rows_and_columns() {
        let (n_rows, n_columns) = (37, 18);
        let matrix = numbers(n_rows * n_columns, 3);
        let mut out = vec![f32::NAN; matrix.len()];
        transpose(&matrix, n_rows, n_columns, &mut out);
        for row in 0..n_rows {
            for column in 0..n_columns {
                assert_eq!(out[column * n_rows + row], matrix[row * n_columns + column]);
            }
        }
    }
}
