//! Matrix products over row-major slices. This module alone calls the GEMM library.
//!
//! [`recorded`] lists the matrix products of a function call, so that a benchmark can time them alone.
#![allow(unsafe_code, reason = "the GEMM library takes raw pointers")]

use std::cell::{Cell, RefCell};
use std::sync::Once;

use gemm::Parallelism;

use crate::linear::WriteMode;

/// Computes `out (m × n) = lhs (m × k) · rhs (k × n)`, or adds the product to `out`.
pub fn multiply(lhs: &[f32], rhs: &[f32], out: &mut [f32], m: usize, k: usize, n: usize, mode: WriteMode) {
    assert_lengths(lhs, rhs, out, [m * k, k * n, m * n]);
    multiply_strided([m, k, n], Strided::rows(lhs, k), Strided::rows(rhs, n), (out, n), mode);
}

/// Computes `out (k × n) = lhsᵀ · rhs` with `lhs (m × k)` and `rhs (m × n)`, or adds the product to `out`. It is the gradient
/// of the weights of a product.
pub(crate) fn multiply_transposed(
    lhs: &[f32],
    rhs: &[f32],
    out: &mut [f32],
    m: usize,
    k: usize,
    n: usize,
    mode: WriteMode,
) {
    assert_lengths(lhs, rhs, out, [m * k, m * n, k * n]);
    let lhs = Strided::rows(lhs, k).transposed();
    multiply_strided([k, m, n], lhs, Strided::rows(rhs, n), (out, n), mode);
}

/// A matrix with row and column strides in a slice, starting at the first element of the slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    values: &'a [f32],
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Strided<'a> {
    fn new(values: &'a [f32], [row_stride, column_stride]: [usize; 2]) -> Strided<'a> {
        Strided { values, row_stride, column_stride }
    }

    /// Creates a matrix whose rows are `row_stride` apart.
    pub(crate) fn rows(values: &'a [f32], row_stride: usize) -> Strided<'a> {
        Strided::new(values, [row_stride, 1])
    }

    /// Returns the transposed matrix.
    pub(crate) fn transposed(self) -> Strided<'a> {
        Strided::new(self.values, [self.column_stride, self.row_stride])
    }
}

/// Sizes and strides of a matrix product `out (m × n) = lhs (m × k) · rhs (k × n)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmShape {
    sizes: [usize; 3],
    /// Row and column stride of each factor.
    factor_strides: [[usize; 2]; 2],
    out_stride: usize,
    mode: WriteMode,
}

impl GemmShape {
    /// Returns the product of two square matrices with rows of `side` numbers.
    pub fn square(side: usize) -> GemmShape {
        GemmShape {
            sizes: [side; 3],
            factor_strides: [[side, 1]; 2],
            out_stride: side,
            mode: WriteMode::Overwrite,
        }
    }

    /// Returns the number of multiplications and additions.
    pub fn flops(&self) -> f64 {
        2.0 * self.sizes.iter().product::<usize>() as f64
    }

    /// Computes the product with arbitrary factors in the first two buffers. All three buffers grow as needed.
    pub fn run(&self, buffers: &mut [Vec<f32>; 3]) {
        let ([m, k, n], [lhs_strides, rhs_strides]) = (self.sizes, self.factor_strides);
        let matrices = [([m, k], lhs_strides), ([k, n], rhs_strides), ([m, n], [self.out_stride, 1])];
        for (buffer, (size, strides)) in buffers.iter_mut().zip(matrices) {
            let needed = 1 + (0..2).map(|axis| size[axis].saturating_sub(1) * strides[axis]).sum::<usize>();
            if buffer.len() < needed {
                buffer.resize(needed, 0.01);
            }
        }
        let [lhs, rhs, out] = buffers;
        let (lhs, rhs) = (Strided::new(lhs, lhs_strides), Strided::new(rhs, rhs_strides));
        multiply_strided(self.sizes, lhs, rhs, (out, self.out_stride), self.mode);
    }
}

thread_local! {
    static IS_RECORDING: Cell<bool> = const { Cell::new(false) };
    static RECORDED: RefCell<Vec<GemmShape>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` and returns its result and the matrix products that this thread computed meanwhile.
pub fn recorded<T>(work: impl FnOnce() -> T) -> (T, Vec<GemmShape>) {
    assert!(!IS_RECORDING.replace(true), "a recording within a recording");
    let result = work();
    IS_RECORDING.set(false);
    (result, RECORDED.take())
}

/// Writes the transpose of `matrix (n_rows × n_columns)` to `out (n_columns × n_rows)`.
pub fn transpose(matrix: &[f32], n_rows: usize, n_columns: usize, out: &mut [f32]) {
    assert_eq!((matrix.len(), out.len()), (n_rows * n_columns, n_rows * n_columns), "{n_rows}×{n_columns}");
    // Tile by tile: the cache lines of a tile fit into the first-level cache.
    const TILE: usize = 16;
    for first_row in (0..n_rows).step_by(TILE) {
        let rows = first_row..(first_row + TILE).min(n_rows);
        for first_column in (0..n_columns).step_by(TILE) {
            for column in first_column..(first_column + TILE).min(n_columns) {
                let line = &mut out[column * n_rows..][rows.clone()];
                for (value, row) in line.iter_mut().zip(rows.clone()) {
                    *value = matrix[row * n_columns + column];
                }
            }
        }
    }
}

/// Number of panels of six rows above which the library copies the left factor into a packed buffer.
///
/// The library's default of 8 is chosen for large matrices. The weights and gradients of a chunk are in the second-level
/// cache, and reading them without a copy is 2 % faster. The order of the sums is the same.
const UNPACKED_PANELS: usize = 64;

static IS_TUNED: Once = Once::new();

fn assert_lengths(lhs: &[f32], rhs: &[f32], out: &[f32], expected: [usize; 3]) {
    assert_eq!([lhs.len(), rhs.len(), out.len()], expected, "lengths of the three matrices of a product");
}

/// Whether every element of a matrix lies inside a slice.
fn fits(n_values: usize, [n_rows, n_columns]: [usize; 2], [row_stride, column_stride]: [usize; 2]) -> bool {
    if n_rows == 0 || n_columns == 0 {
        return true;
    }
    // Saturating, so that an overflow cannot give a small result.
    let last_row = (n_rows - 1).saturating_mul(row_stride);
    last_row.saturating_add((n_columns - 1).saturating_mul(column_stride)) < n_values
}

/// Like [`multiply`], but for matrices that are parts of larger ones. `out` has a row stride.
pub(crate) fn multiply_strided(
    [m, k, n]: [usize; 3],
    lhs: Strided<'_>,
    rhs: Strided<'_>,
    (out, out_stride): (&mut [f32], usize),
    mode: WriteMode,
) {
    assert!(fits(lhs.values.len(), [m, k], [lhs.row_stride, lhs.column_stride]), "left side of {m}×{k}×{n}");
    assert!(fits(rhs.values.len(), [k, n], [rhs.row_stride, rhs.column_stride]), "right side of {m}×{k}×{n}");
    assert!(n <= out_stride && fits(out.len(), [m, n], [out_stride, 1]), "output of {m}×{k}×{n}");
    if m == 0 || n == 0 {
        return;
    }
    if IS_RECORDING.get() {
        let factor_strides = [lhs, rhs].map(|factor| [factor.row_stride, factor.column_stride]);
        let shape = GemmShape { sizes: [m, k, n], factor_strides, out_stride, mode };
        RECORDED.with_borrow_mut(|shapes| shapes.push(shape));
    }
    IS_TUNED.call_once(|| gemm::set_lhs_packing_threshold_single_thread(UNPACKED_PANELS));
    // SAFETY: every index that the library computes lies inside its slice: the largest one does (asserted above), and strides
    // are not negative. Rows of `out` do not overlap, since they are at least `n` apart. `out` is borrowed mutably, so it
    // does not overlap `lhs` or `rhs`.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            out_stride as isize,
            mode == WriteMode::Accumulate,
            lhs.values.as_ptr(),
            lhs.column_stride as isize,
            lhs.row_stride as isize,
            rhs.values.as_ptr(),
            rhs.column_stride as isize,
            rhs.row_stride as isize,
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
    use super::{
        GemmShape, Strided, WriteMode, multiply, multiply_strided, multiply_transposed, recorded, transpose,
    };

    fn numbers(n: usize, shift: usize) -> Vec<f32> {
        (0..n).map(|index| ((index * 7 + shift) % 13) as f32 - 6.0).collect()
    }

    #[test]
    fn products_match_the_definition() {
        let (m, k, n) = (5, 3, 4);
        let (x, w) = (numbers(m * k, 1), numbers(k * n, 2));
        let mut y = vec![1.0; m * n];
        multiply(&x, &w, &mut y, m, k, n, WriteMode::Accumulate);
        for row in 0..m {
            for column in 0..n {
                let sum: f32 = (0..k).map(|inner| x[row * k + inner] * w[inner * n + column]).sum();
                assert_eq!(y[row * n + column], sum + 1.0);
            }
        }
        let (mut back, mut transposed) = (vec![f32::NAN; m * k], vec![f32::NAN; k * n]);
        transpose(&w, k, n, &mut transposed);
        multiply(&y, &transposed, &mut back, m, n, k, WriteMode::Overwrite);
        let mut d_w = vec![f32::NAN; k * n];
        multiply_transposed(&x, &y, &mut d_w, m, k, n, WriteMode::Overwrite);
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
    fn products_of_parts_write_nothing_else() {
        // A 3×2 part times the transpose of a 4×2 part, both inside rows of 6, into a 3×4 part inside rows of 5.
        let (x, w) = (numbers(18, 1), numbers(24, 2));
        let mut y = [9.0; 15];
        let (left, right) = (Strided::rows(&x[1..], 6), Strided::rows(&w[3..], 6).transposed());
        multiply_strided([3, 2, 4], left, right, (&mut y[1..], 5), WriteMode::Overwrite);
        for row in 0..3 {
            assert_eq!(y[row * 5], 9.0);
            for column in 0..4 {
                let sum: f32 = (0..2).map(|inner| x[row * 6 + 1 + inner] * w[column * 6 + 3 + inner]).sum();
                assert_eq!(y[row * 5 + 1 + column], sum);
            }
        }
    }

    #[test]
    #[should_panic(expected = "right side of 3×2×4")]
    fn a_part_that_exceeds_its_slice_panics() {
        let (x, mut y) = (numbers(18, 1), vec![0.0; 12]);
        let (left, right) = (Strided::rows(&x, 6), Strided::rows(&x, 6).transposed());
        multiply_strided([3, 2, 4], left, right, (&mut y, 4), WriteMode::Overwrite);
    }

    #[test]
    fn recorded_products_are_complete_and_run_again() {
        let (x, mut y, mut d_w) = (numbers(6, 1), vec![0.0; 8], vec![0.0; 12]);
        let work = || {
            multiply(&x, &numbers(12, 2), &mut y, 2, 3, 4, WriteMode::Overwrite);
            multiply(&[], &numbers(12, 2), &mut [], 0, 3, 4, WriteMode::Overwrite);
            multiply_transposed(&x, &y, &mut d_w, 2, 3, 4, WriteMode::Accumulate);
        };
        let ((), shapes) = recorded(work);
        assert_eq!(shapes.iter().map(|shape| shape.sizes).collect::<Vec<_>>(), [[2, 3, 4], [3, 2, 4]]);
        assert!(shapes.iter().all(|shape| shape.flops() == 48.0));
        let mut buffers = Default::default();
        let ((), again) = recorded(|| shapes.iter().for_each(|shape| shape.run(&mut buffers)));
        assert_eq!(again, shapes);
        assert_eq!(recorded(|| GemmShape::square(3).run(&mut buffers)).1, [GemmShape::square(3)]);
    }

    #[test]
    fn transpose_swaps_rows_and_columns() {
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
