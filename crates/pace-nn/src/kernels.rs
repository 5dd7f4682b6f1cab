//! The passes around the matrix products: one pass over the data each, compiled for every vector width and selected at run
//! time.
//!
//! The bodies are plain loops that the compiler vectorises. No sum is reordered, so every vector width gives the same bits.

/// Defines a function whose body is compiled for the vector widths of `SimdPath`, and selects one of them at run time.
///
/// `unsafe` is allowed for this selection only; the lint applies to the body of the function.
macro_rules! vectorised {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $visibility fn $name($($argument: $kind),*) $(-> $result)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn portable($($argument: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                $crate::simd::instructions! { avx512 compile
                    #[allow(clippy::too_many_arguments)]
                    fn avx512($($argument: $kind),*) $(-> $result)? {
                        portable($($argument),*)
                    }
                }
                $crate::simd::instructions! { avx2 compile
                    #[allow(clippy::too_many_arguments)]
                    fn avx2($($argument: $kind),*) $(-> $result)? {
                        portable($($argument),*)
                    }
                }
                #[allow(unsafe_code, reason = "a function for an instruction set is called after its detection")]
                match $crate::simd::SimdPath::detect() {
                    // SAFETY: `detect` checks every instruction set of the list that the function is compiled for.
                    $crate::simd::SimdPath::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: `detect` checks every instruction set of the list that the function is compiled for.
                    $crate::simd::SimdPath::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::simd::SimdPath::Portable => {}
                }
            }
            portable($($argument),*)
        }
    };
}

pub(crate) use vectorised;

/// Returns `(power_of_two, fraction)` with `e^x = power_of_two · (1 + fraction)`.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32) {
    // Adding 1.5 · 2²³ rounds to an integer and stores it in the lowest bits.
    const ROUNDER: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
    let power = shifted - ROUNDER;
    // ln 2 as a sum of two numbers; the first has few enough bits for an exact product.
    let rest = x - power * 0.693_359_4 + power * 2.121_944_4e-4;
    // The coefficients of Cephes' expf.
    let mut series = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        series = series * rest + coefficient;
    }
    (f32::from_bits(shifted.to_bits().wrapping_add(127) << 23), series * rest * rest + rest)
}

/// Returns `e^x`, within two units in the last place. `x` is clamped to −87.3 … 88; NaN gives NaN.
///
/// It has no branch and no table, so that loops over it are vectorised.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (power_of_two, fraction) = exp_parts(x.clamp(-87.3, 88.0));
    (fraction + 1.0) * power_of_two
}

/// Returns the sigmoid `1 / (1 + e^−x)`, within three units in the last place for `x` of at least −87.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Returns the hyperbolic tangent, within three units in the last place. `tanh(−x)` is exactly `−tanh(x)`.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // From e^−2|x| − 1. Near zero it is `fraction` alone: no precision is lost by subtracting 1 from about 1.
    let (power_of_two, fraction) = exp_parts((-2.0 * x.abs()).clamp(-40.0, 0.0));
    let exp_minus_one = power_of_two * fraction + (power_of_two - 1.0);
    (-exp_minus_one / (exp_minus_one + 2.0)).copysign(x)
}

vectorised! {
    /// Computes `values = tanh(values)`.
    pub(crate) fn tanh_inplace(values: &mut [f32]) {
        for value in values {
            *value = tanh(*value);
        }
    }
}

/// Length of the widest supported vector.
pub(crate) const LANES: usize = 16;

/// Folds the lanes into one number, each time the upper half into the lower half. The chain of dependent steps is short, and
/// the order is the same for every vector width.
#[inline(always)]
fn join_lanes(mut lanes: [f32; LANES], fold: impl Fn(f32, f32) -> f32) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = fold(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// Folds a row into interleaved lanes, then the lanes into one number.
#[inline(always)]
fn fold_lanes(row: &[f32], start: f32, fold: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = fold(*lane, *value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane = fold(*lane, *value);
    }
    join_lanes(lanes, fold)
}

/// Returns the sum of a row.
#[inline(always)]
pub(crate) fn sum_of(row: &[f32]) -> f32 {
    fold_lanes(row, 0.0, |sum, value| sum + value)
}

/// Returns the maximum of a row.
#[inline(always)]
pub(crate) fn max_of(row: &[f32]) -> f32 {
    fold_lanes(row, f32::NEG_INFINITY, f32::max)
}

/// Returns the dot product of two rows, with the same lanes as [`sum_of`].
#[inline(always)]
pub(crate) fn sum_of_products(one: &[f32], other: &[f32]) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let ((ones, one_rest), (others, other_rest)) = (one.as_chunks::<LANES>(), other.as_chunks::<LANES>());
    for (one, other) in ones.iter().zip(others) {
        for ((lane, one), other) in lanes.iter_mut().zip(one).zip(other) {
            *lane += one * other;
        }
    }
    for ((lane, one), other) in lanes.iter_mut().zip(one_rest).zip(other_rest) {
        *lane += one * other;
    }
    join_lanes(lanes, |sum, value| sum + value)
}

vectorised! {
    /// Computes `out = e^values`.
    pub(crate) fn exp_into(out: &mut [f32], values: &[f32]) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = exp(*value);
        }
    }
}

vectorised! {
    /// Adds `bias` to every row.
    pub fn add_bias(rows: &mut [f32], bias: &[f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value += bias;
            }
        }
    }
}

vectorised! {
    /// Adds `bias` to every row and applies a ReLU.
    pub(crate) fn add_bias_relu(rows: &mut [f32], bias: &[f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value = (*value + bias).max(0.0);
            }
        }
    }
}

vectorised! {
    /// Adds `bias` and the table row of its class to every row, and applies a ReLU if `is_relu`. A class without a table row
    /// adds the bias only.
    pub(crate) fn add_bias_and_class(rows: &mut [f32], bias: &[f32], table: &[f32], classes: &[u8], is_relu: bool) {
        let width = bias.len();
        let floor = if is_relu { 0.0 } else { f32::NEG_INFINITY };
        for (row, class) in rows.chunks_exact_mut(width).zip(classes) {
            match table.chunks_exact(width).nth(usize::from(*class)) {
                Some(added) => {
                    for ((value, bias), added) in row.iter_mut().zip(bias).zip(added) {
                        *value = (*value + bias + added).max(floor);
                    }
                }
                None => {
                    for (value, bias) in row.iter_mut().zip(bias) {
                        *value = (*value + bias).max(floor);
                    }
                }
            }
        }
    }
}

vectorised! {
    /// Backward pass of a ReLU (gradient 0 where the output is 0); adds the column sums of the gradient to `d_bias`.
    pub(crate) fn relu_backward(d_rows: &mut [f32], outputs: &[f32], d_bias: &mut [f32]) {
        let width = d_bias.len();
        // One block of columns at a time, whose sums stay in registers from row to row.
        let (blocks, rest) = d_bias.as_chunks_mut::<64>();
        for (block, d_bias) in blocks.iter_mut().enumerate() {
            let mut sums = *d_bias;
            for (d_row, output) in d_rows.chunks_exact_mut(width).zip(outputs.chunks_exact(width)) {
                let (d_row, output) = (&mut d_row[block * 64..][..64], &output[block * 64..][..64]);
                for ((d_value, output), sum) in d_row.iter_mut().zip(output).zip(&mut sums) {
                    let kept = if *output > 0.0 { *d_value } else { 0.0 };
                    *d_value = kept;
                    *sum += kept;
                }
            }
            *d_bias = sums;
        }
        let start = width - rest.len();
        for (d_row, output) in d_rows.chunks_exact_mut(width).zip(outputs.chunks_exact(width)) {
            for ((d_value, output), d_bias) in d_row[start..].iter_mut().zip(&output[start..]).zip(&mut *rest) {
                let kept = if *output > 0.0 { *d_value } else { 0.0 };
                *d_value = kept;
                *d_bias += kept;
            }
        }
    }
}

vectorised! {
    /// Backward pass of a tanh with the given outputs; adds the column sums of the gradient to `d_bias`.
    pub(crate) fn tanh_backward(d_rows: &mut [f32], outputs: &[f32], d_bias: &mut [f32]) {
        let width = d_bias.len();
        for (d_row, output) in d_rows.chunks_exact_mut(width).zip(outputs.chunks_exact(width)) {
            for ((d_value, output), d_bias) in d_row.iter_mut().zip(output).zip(d_bias.iter_mut()) {
                *d_value *= 1.0 - output * output;
                *d_bias += *d_value;
            }
        }
    }
}

vectorised! {
    /// Adds the column sums of the rows to `sums`.
    pub fn add_rows(rows: &[f32], sums: &mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

vectorised! {
    /// Adds each row to the table row of its class; rows whose class has no table row are skipped.
    pub(crate) fn add_rows_by_class(rows: &[f32], classes: &[u8], width: usize, table: &mut [f32]) {
        for (row, class) in rows.chunks_exact(width).zip(classes) {
            if let Some(sums) = table.chunks_exact_mut(width).nth(usize::from(*class)) {
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += value;
                }
            }
        }
    }
}

vectorised! {
    /// Computes `sums += values`.
    pub fn add(sums: &mut [f32], values: &[f32]) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
}

vectorised! {
    /// Computes `maxima = max(maxima, values)`.
    pub fn max_assign(maxima: &mut [f32], values: &[f32]) {
        for (maximum, value) in maxima.iter_mut().zip(values) {
            *maximum = if *value > *maximum { *value } else { *maximum };
        }
    }
}

vectorised! {
    /// Computes `sums += factor · values`.
    pub fn add_scaled(sums: &mut [f32], values: &[f32], factor: f32) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += factor * value;
        }
    }
}

vectorised! {
    /// Computes `values = factor · values`.
    pub fn scale(values: &mut [f32], factor: f32) {
        for value in values {
            *value *= factor;
        }
    }
}

vectorised! {
    /// Computes `values −= others` and returns the sum of squares of the result.
    pub(crate) fn subtract_and_square(values: &mut [f32], others: &[f32]) -> f32 {
        for (value, other) in values.iter_mut().zip(others) {
            *value -= other;
        }
        sum_of_products(values, values)
    }
}

vectorised! {
    /// Computes `out = factor · values`.
    pub fn scale_into(out: &mut [f32], values: &[f32], factor: f32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = factor * value;
        }
    }
}

vectorised! {
    /// Computes `out = first_factor · first + second_factor · second`.
    pub fn linear_combination_into(out: &mut [f32], first: &[f32], first_factor: f32, second: &[f32], second_factor: f32) {
        for ((out, first), second) in out.iter_mut().zip(first).zip(second) {
            *out = first_factor * first + second_factor * second;
        }
    }
}

vectorised! {
    /// Writes the sums over the shards, in the order of the shards. Each shard is read from index `start` on.
    pub fn sum_shards(sums: &mut [f32], shards: &[&[f32]], start: usize) {
        // One block at a time, so that the sums stay in the first-level cache.
        for (block, sums) in sums.chunks_mut(1024).enumerate() {
            sums.fill(0.0);
            for shard in shards {
                let shard = &shard[start + block * 1024..][..sums.len()];
                for (sum, value) in sums.iter_mut().zip(shard) {
                    *sum += value;
                }
            }
        }
    }
}

vectorised! {
    /// Returns the sum of squares in double precision, summed in sixteen interleaved lanes.
    pub fn sum_of_squares(values: &[f32]) -> f64 {
        let mut lanes = [0.0f64; 16];
        let (chunks, rest) = values.as_chunks::<16>();
        for chunk in chunks {
            for (lane, value) in lanes.iter_mut().zip(chunk) {
                *lane += f64::from(*value) * f64::from(*value);
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rest) {
            *lane += f64::from(*value) * f64::from(*value);
        }
        lanes.iter().sum()
    }
}

vectorised! {
    /// Takes one step of Adam over a flat buffer; `rate` and `second_scale` include the bias corrections.
    pub(crate) fn adam_step(
        values: &mut [f32],
        gradients: &[f32],
        first: &mut [f32],
        second: &mut [f32],
        gradient_factor: f32,
        betas: [f32; 2],
        rate: f32,
        second_scale: f32,
        epsilon: f32,
    ) {
        let moments = first.iter_mut().zip(second.iter_mut());
        for ((value, gradient), (first, second)) in values.iter_mut().zip(gradients).zip(moments) {
            let gradient = gradient * gradient_factor;
            *first = betas[0] * *first + (1.0 - betas[0]) * gradient;
            *second = betas[1] * *second + (1.0 - betas[1]) * gradient * gradient;
            *value -= rate * *first / ((*second).sqrt() * second_scale + epsilon);
        }
    }
}
