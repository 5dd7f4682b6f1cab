//! The passes around the matrix products: one sweep each, compiled for every width of vector and chosen at run time.
//!
//! The bodies are plain loops that the compiler vectorises; no sum is reordered, so every width gives the same bits.

/// Defines a function whose body is compiled for the vector widths of `SimdPath` and dispatched at run time.
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
                match $crate::simd::SimdPath::detect() {
                    // SAFETY: `detect` asks for every instruction set of the list that the function is compiled for.
                    $crate::simd::SimdPath::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: `detect` asks for every instruction set of the list that the function is compiled for.
                    $crate::simd::SimdPath::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::simd::SimdPath::Portable => {}
                }
            }
            portable($($argument),*)
        }
    };
}

pub(crate) use vectorised;

/// `two` and `less` such that `e^x = two · (1 + less)`: a power of two, and e to the power of a rest near zero, less one.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, f32) {
    // Adding 1.5 · 2²³ rounds to a whole number and leaves it in the lowest bits.
    const ROUNDER: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
    let power = shifted - ROUNDER;
    // ln 2 in two parts, the first of which has few enough bits for an exact product.
    let rest = x - power * 0.693_359_4 + power * 2.121_944_4e-4;
    // The coefficients of Cephes' expf.
    let mut series = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        series = series * rest + coefficient;
    }
    (f32::from_bits(shifted.to_bits().wrapping_add(127) << 23), series * rest * rest + rest)
}

/// e to the power of `x`, within two units in the last place; below −87.3 it is that of −87.3, above 88 that of 88.
///
/// Plain arithmetic without a branch or a table, so that loops over it are vectorised; not-a-number stays so.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let (two, less) = exp_parts(x.clamp(-87.3, 88.0));
    (less + 1.0) * two
}

/// The sigmoid function `1 / (1 + e^−x)`, within three units in the last place from −87 on.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent, within three units in the last place; exactly odd.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    // From e^−2|x| − 1, which near zero is `less` alone, without the loss of subtracting one from about one.
    let (two, less) = exp_parts((-2.0 * x.abs()).clamp(-40.0, 0.0));
    let fall = two * less + (two - 1.0);
    (-fall / (fall + 2.0)).copysign(x)
}

vectorised! {
    /// `values = tanh(values)`.
    pub fn tanh_inplace(values: &mut [f32]) {
        for value in values {
            *value = tanh(*value);
        }
    }
}

/// Numbers that are worked on side by side: the widest vector there is.
pub(crate) const LANES: usize = 16;

/// Folds the lanes into one number, half onto half: few steps that wait for each other, in an order that vectors of any
/// width keep.
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

/// Folds a row into interleaved lanes and these into one number.
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

/// The sum of a row.
#[inline(always)]
pub(crate) fn sum_of(row: &[f32]) -> f32 {
    fold_lanes(row, 0.0, |sum, value| sum + value)
}

/// The highest number of a row.
#[inline(always)]
pub(crate) fn max_of(row: &[f32]) -> f32 {
    fold_lanes(row, f32::NEG_INFINITY, f32::max)
}

/// The sum of the products of two rows, in the lanes of [`sum_of`].
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
    /// `out = e^values`.
    pub fn exp_into(out: &mut [f32], values: &[f32]) {
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
    /// Adds `bias` to every row and cuts negatives off.
    pub fn add_bias_relu(rows: &mut [f32], bias: &[f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (value, bias) in row.iter_mut().zip(bias) {
                *value = (*value + bias).max(0.0);
            }
        }
    }
}

vectorised! {
    /// Adds `bias` and the table row named by each row's class, and cuts negatives off where `is_relu`.
    pub fn add_bias_and_class(rows: &mut [f32], bias: &[f32], table: &[f32], classes: &[u8], is_relu: bool) {
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
    /// Takes the gradient back through a ReLU (zero where the output is zero) and adds its column sums to `d_bias`.
    pub fn relu_backward(d_rows: &mut [f32], outputs: &[f32], d_bias: &mut [f32]) {
        let width = d_bias.len();
        // A block of columns at a time, the sums of which stay in registers from row to row.
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
    /// Takes the gradient back through a tanh whose outputs are given, and adds its column sums to `d_bias`.
    pub fn tanh_backward(d_rows: &mut [f32], outputs: &[f32], d_bias: &mut [f32]) {
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
    /// Adds the rows up, column by column.
    pub fn add_rows(rows: &[f32], sums: &mut [f32]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}

vectorised! {
    /// Adds each row to the table row named by its class; rows without a class are left out.
    pub fn add_rows_by_class(rows: &[f32], classes: &[u8], width: usize, table: &mut [f32]) {
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
    /// `sums += values`.
    pub fn add(sums: &mut [f32], values: &[f32]) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
}

vectorised! {
    /// `highest = max(highest, values)`.
    pub fn max_assign(highest: &mut [f32], values: &[f32]) {
        for (highest, value) in highest.iter_mut().zip(values) {
            *highest = if *value > *highest { *value } else { *highest };
        }
    }
}

vectorised! {
    /// `sums += factor · values`.
    pub fn add_scaled(sums: &mut [f32], values: &[f32], factor: f32) {
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += factor * value;
        }
    }
}

vectorised! {
    /// `values = factor · values`.
    pub fn scale(values: &mut [f32], factor: f32) {
        for value in values {
            *value *= factor;
        }
    }
}

vectorised! {
    /// `values −= others`; returns the sum of squares of the result.
    pub fn subtract_and_square(values: &mut [f32], others: &[f32]) -> f32 {
        for (value, other) in values.iter_mut().zip(others) {
            *value -= other;
        }
        sum_of_products(values, values)
    }
}

vectorised! {
    /// `out = factor · values`.
    pub fn scale_into(out: &mut [f32], values: &[f32], factor: f32) {
        for (out, value) in out.iter_mut().zip(values) {
            *out = factor * value;
        }
    }
}

vectorised! {
    /// `out = first_factor · first + second_factor · second`.
    pub fn linear_combination_into(out: &mut [f32], first: &[f32], first_factor: f32, second: &[f32], second_factor: f32) {
        for ((out, first), second) in out.iter_mut().zip(first).zip(second) {
            *out = first_factor * first + second_factor * second;
        }
    }
}

vectorised! {
    /// Writes the sums over `others`, each read from place `start` on, in their order: the fixed order of shards.
    pub fn sum_shards(sums: &mut [f32], others: &[&[f32]], start: usize) {
        // A block at a time, so that the sums stay in the first cache while the shards pass by.
        for (block, sums) in sums.chunks_mut(1024).enumerate() {
            sums.fill(0.0);
            for other in others {
                let other = &other[start + block * 1024..][..sums.len()];
                for (sum, value) in sums.iter_mut().zip(other) {
                    *sum += value;
                }
            }
        }
    }
}

vectorised! {
    /// The sum of squares in double precision, in sixteen interleaved lanes of fixed order.
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
    /// One step of Adam over a flat buffer; `rate` and `second_scale` carry the bias corrections.
    pub fn adam_step(
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
