//! One attention head over a group of sequences with a common prefix.
//!
//! A row that attends to the first keys of the prefix has the output `Σ e^(s − m) v / Σ e^(s − m)`, with the scores s of
//! these keys, their maximum m and their values v. One more key changes three accumulators: m, the sum in the denominator
//! and the sum in the numerator (online softmax). The forward pass extends the prefix and writes the outputs of each sequence
//! once its prefix is reached.
//!
//! The backward pass goes from the longest sequence to the shortest and sums the output gradients of each row, scaled by the
//! smallest m so far. No score of a remaining key exceeds it, so that no exponential overflows. The gradients of a key are
//! complete once the prefix of the remaining sequences is too short for it.

use std::ops::Range;

use crate::kernels::{self, LANES, exp, max_of, sum_of, sum_of_products, vectorised};
use crate::linear::WriteMode;
use crate::product::{Strided, multiply_strided};

/// Returns the distance between rows of the pairs within a prefix of `n` inputs. It is a multiple of the vector length; the
/// numbers behind the first `n` of a row are unused.
pub(crate) fn stride(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// The columns of one head in rows that hold all heads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadColumns {
    /// Width of a row with all heads.
    pub row_width: usize,
    /// First column of the head.
    pub first: usize,
    /// Number of columns of the head.
    pub head_width: usize,
}

impl HeadColumns {
    /// Returns the range of the head's columns of one row.
    #[inline(always)]
    fn of(&self, row: usize) -> Range<usize> {
        let first = row * self.row_width + self.first;
        first..first + self.head_width
    }
}

/// Results of the forward pass for the rows of one sequence, and the gradient of their outputs.
pub(crate) struct AttendedRows<'a> {
    /// Maximum score of each row.
    pub maxima: &'a [f32],
    /// Softmax denominator of each row, relative to the maximum.
    pub sums: &'a [f32],
    /// Outputs of all heads.
    pub outputs: &'a [f32],
    /// Gradient of the outputs.
    pub d_outputs: &'a [f32],
}

/// One head's projections for a prefix group, and the accumulators of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixGroupHead {
    columns: HeadColumns,
    /// Scaled queries, keys and values of the prefix.
    prefix: [Vec<f32>; 3],
    d_prefix: [Vec<f32>; 3],
    /// Scaled query, key and value of a sequence's suffix.
    suffix: [Vec<f32>; 3],
    d_suffix: [Vec<f32>; 3],
    /// Number of inputs of the prefix that the rows attend to at present.
    prefix_len: usize,
    /// Forward: maximum score of each row. Backward: minimum of these maxima over the sequences so far.
    row_max: Vec<f32>,
    /// Forward: softmax denominator of each row. Backward: the number that softmax subtracts from the gradient of the row's
    /// weights.
    sums: Vec<f32>,
    /// Forward: softmax numerator of each row. Backward: sum of the scaled output gradients.
    vectors: Vec<f32>,
    /// Attention weight of every pair within the prefix, after dropout.
    weights: Vec<f32>,
    d_weights: Vec<f32>,
}

impl PrefixGroupHead {
    /// Copies the prefix's queries, keys and values from the projections of all inputs.
    pub(crate) fn load(&mut self, projected: &[f32], prefix: &[u32], columns: HeadColumns) {
        self.columns = columns;
        load(&mut self.prefix, projected, prefix, columns);
    }

    /// Writes the score of every pair within the prefix.
    pub(crate) fn score(&self, scores: &mut [f32]) {
        let ([queries, keys, _], head_width) = (&self.prefix, self.columns.head_width);
        let n = queries.len() / head_width;
        let (queries, keys) =
            (Strided::rows(queries, head_width), Strided::rows(keys, head_width).transposed());
        multiply_strided([n, head_width, n], queries, keys, (scores, stride(n)), WriteMode::Overwrite);
    }

    /// Resets the accumulators for a forward pass with an empty prefix.
    pub(crate) fn start_forward(&mut self) {
        self.reset(f32::NEG_INFINITY);
        self.prefix_len = 0;
    }

    /// Extends the prefix that the rows attend to.
    pub(crate) fn extend_prefix(&mut self, prefix_len: usize, scores: &[f32], mask: &[f32]) {
        if prefix_len == self.prefix_len {
            return;
        }
        let PrefixGroupHead { row_max, sums, vectors, weights, .. } = self;
        let (n, before, head_width) = (row_max.len(), self.prefix_len, self.columns.head_width);
        accumulate_prefix(scores, mask, stride(n), [before, prefix_len], row_max, sums, vectors, weights);
        for (rows, keys) in added_pairs(before, prefix_len) {
            multiply_strided(
                [rows.len(), keys.len(), head_width],
                Strided::rows(&weights[rows.start * stride(n) + keys.start..], stride(n)),
                Strided::rows(&self.prefix[2][keys.start * head_width..], head_width),
                (&mut vectors[rows.start * head_width..], head_width),
                WriteMode::Accumulate,
            );
        }
        self.prefix_len = prefix_len;
    }

    /// Writes maxima, sums and outputs of a sequence without a suffix.
    pub(crate) fn write_outputs(&self, maxima: &mut [f32], sums: &mut [f32], outputs: &mut [f32]) {
        maxima[..self.prefix_len].copy_from_slice(&self.row_max[..self.prefix_len]);
        sums[..self.prefix_len].copy_from_slice(&self.sums[..self.prefix_len]);
        divide_by_sums(&self.vectors, &self.sums[..self.prefix_len], outputs, self.columns);
    }

    /// Writes maxima, sums and outputs of a sequence whose suffix is `input`, and the scores of the suffix's pairs.
    ///
    /// The scores are those of every prefix row with the suffix key, then of the suffix row with every prefix key, then of
    /// the suffix row with its own key.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn write_outputs_with_suffix(
        &mut self,
        projected: &[f32],
        input: u32,
        (scores, mask): (&mut [f32], &[f32]),
        maxima: &mut [f32],
        sums: &mut [f32],
        outputs: &mut [f32],
    ) {
        load(&mut self.suffix, projected, &[input], self.columns);
        let accumulators = [&self.row_max[..self.prefix_len], &self.sums, &self.vectors];
        let [prefix, suffix] =
            [&self.prefix, &self.suffix].map(|parts| parts.each_ref().map(|part| &part[..]));
        write_outputs_with_suffix(
            prefix,
            suffix,
            accumulators,
            scores,
            mask,
            maxima,
            sums,
            outputs,
            self.columns,
        );
    }

    /// Resets the accumulators and gradients for a backward pass with the whole prefix.
    pub(crate) fn start_backward(&mut self) {
        self.reset(f32::INFINITY);
        self.prefix_len = self.row_max.len();
        for (d_part, part) in self.d_prefix.iter_mut().zip(&self.prefix) {
            refill(d_part, part.len(), 0.0);
        }
    }

    /// Shortens the prefix to `prefix_len` inputs and completes the gradients of the removed pairs.
    pub(crate) fn shorten_prefix(&mut self, prefix_len: usize, scores: &[f32], mask: &[f32]) {
        if prefix_len == self.prefix_len {
            return;
        }
        let (n, head_width) = (self.row_max.len(), self.columns.head_width);
        let PrefixGroupHead { row_max, sums, vectors, weights, d_weights, .. } = self;
        for (rows, keys) in added_pairs(prefix_len, self.prefix_len) {
            multiply_strided(
                [rows.len(), head_width, keys.len()],
                Strided::rows(&vectors[rows.start * head_width..], head_width),
                Strided::rows(&self.prefix[2][keys.start * head_width..], head_width).transposed(),
                (&mut d_weights[rows.start * stride(n) + keys.start..], stride(n)),
                WriteMode::Overwrite,
            );
        }
        let span = [prefix_len, self.prefix_len];
        softmax_backward(scores, mask, stride(n), span, row_max, sums, weights, d_weights);
        for (rows, keys) in added_pairs(prefix_len, self.prefix_len) {
            multiply_strided(
                [keys.len(), rows.len(), head_width],
                Strided::rows(&weights[rows.start * stride(n) + keys.start..], stride(n)).transposed(),
                Strided::rows(&vectors[rows.start * head_width..], head_width),
                (&mut self.d_prefix[2][keys.start * head_width..], head_width),
                WriteMode::Accumulate,
            );
        }
        self.prefix_len = prefix_len;
    }

    /// Adds the output gradients of a sequence's prefix rows to the accumulators.
    pub(crate) fn add_output_gradients(&mut self, rows: &AttendedRows<'_>) {
        let row_max = &mut self.row_max[..self.prefix_len];
        add_output_gradients(rows, row_max, &mut self.sums, &mut self.vectors, self.columns);
    }

    /// Backward pass through the pairs of a sequence's suffix. Adds the gradient of the suffix to that of the projection of
    /// `input`.
    pub(crate) fn add_suffix_gradients(
        &mut self,
        projected: &[f32],
        d_projected: &mut [f32],
        input: u32,
        pairs: (&[f32], &[f32]),
        rows: &AttendedRows<'_>,
    ) {
        load(&mut self.suffix, projected, &[input], self.columns);
        for d_part in &mut self.d_suffix {
            refill(d_part, self.columns.head_width, 0.0);
        }
        let [prefix, suffix] =
            [&self.prefix, &self.suffix].map(|parts| parts.each_ref().map(|part| &part[..]));
        let [d_prefix, d_suffix] =
            [&mut self.d_prefix, &mut self.d_suffix].map(|parts| parts.each_mut().map(|part| &mut part[..]));
        add_suffix_gradients(self.prefix_len, prefix, suffix, d_prefix, d_suffix, pairs, rows, self.columns);
        load_backward(&self.d_suffix, d_projected, &[input], self.columns);
    }

    /// Completes the gradients of all pairs within the prefix, and adds the gradient of the prefix to that of the inputs'
    /// projections.
    pub(crate) fn finish_backward(
        &mut self,
        d_projected: &mut [f32],
        prefix: &[u32],
        scores: &[f32],
        mask: &[f32],
    ) {
        let (n, head_width) = (prefix.len(), self.columns.head_width);
        self.shorten_prefix(0, scores, mask);
        let d_scores = Strided::rows(&self.d_weights, stride(n));
        let [queries, keys, _] = self.prefix.each_ref().map(|part| Strided::rows(part, head_width));
        let [d_queries, d_keys, _] = &mut self.d_prefix;
        for (d_scores, others, d_part) in
            [(d_scores, keys, d_queries), (d_scores.transposed(), queries, d_keys)]
        {
            multiply_strided(
                [n, n, head_width],
                d_scores,
                others,
                (d_part, head_width),
                WriteMode::Accumulate,
            );
        }
        load_backward(&self.d_prefix, d_projected, prefix, self.columns);
    }

    fn reset(&mut self, row_max: f32) {
        let head_width = self.columns.head_width;
        let n = self.prefix[0].len() / head_width;
        refill(&mut self.row_max, n, row_max);
        refill(&mut self.sums, n, 0.0);
        refill(&mut self.vectors, n * head_width, 0.0);
        self.weights.resize(n * stride(n), 0.0);
        self.d_weights.resize(n * stride(n), 0.0);
    }
}

/// Returns the pairs that a prefix of length `after` has in addition to one of length `before`, as two blocks of rows and
/// keys.
fn added_pairs(before: usize, after: usize) -> [(Range<usize>, Range<usize>); 2] {
    [(0..before, before..after), (before..after, 0..after)]
}

fn refill(buffer: &mut Vec<f32>, n: usize, value: f32) {
    buffer.clear();
    buffer.resize(n, value);
}

/// Copies queries, keys and values of one head, and scales the queries by `1 / √head_width`.
fn load(parts: &mut [Vec<f32>; 3], projected: &[f32], inputs: &[u32], columns: HeadColumns) {
    let HeadColumns { row_width, first, head_width } = columns;
    for (index, part) in parts.iter_mut().enumerate() {
        part.clear();
        for input in inputs {
            let start = (*input as usize * 3 + index) * row_width + first;
            part.extend_from_slice(&projected[start..][..head_width]);
        }
    }
    let scale = 1.0 / (head_width as f32).sqrt();
    parts[0].iter_mut().for_each(|value| *value *= scale);
}

/// Backward pass of [`load`].
fn load_backward(d_parts: &[Vec<f32>; 3], d_projected: &mut [f32], inputs: &[u32], columns: HeadColumns) {
    let HeadColumns { row_width, first, head_width } = columns;
    let scale = 1.0 / (head_width as f32).sqrt();
    for (index, d_part) in d_parts.iter().enumerate() {
        let factor = if index == 0 { scale } else { 1.0 };
        for (d_row, input) in d_part.chunks_exact(head_width).zip(inputs) {
            let start = (*input as usize * 3 + index) * row_width + first;
            kernels::add_scaled(&mut d_projected[start..][..head_width], d_row, factor);
        }
    }
}

/// Returns `e^(x − m)` for both numbers x, where m is the larger one. One of the results is always 1.
#[inline(always)]
fn exp_below_max(one: f32, other: f32) -> [f32; 2] {
    let smaller = exp(-(one - other).abs());
    if one >= other { [1.0, smaller] } else { [smaller, 1.0] }
}

/// Like [`kernels::add_scaled`], but inlined into functions that are compiled for every vector width themselves.
#[inline(always)]
fn add_scaled(to: &mut [f32], row: &[f32], factor: f32) {
    for (to, value) in to.iter_mut().zip(row) {
        *to += factor * value;
    }
}

vectorised! {
    /// Extends the prefix from `before` to `after` keys in the accumulators of all rows. Updates maxima and sums, rescales
    /// `vectors` to the new maxima, and writes the weights of the new pairs after dropout.
    fn accumulate_prefix(
        scores: &[f32],
        mask: &[f32],
        stride: usize,
        span: [usize; 2],
        row_max: &mut [f32],
        sums: &mut [f32],
        vectors: &mut [f32],
        weights: &mut [f32],
    ) {
        let ([before, after], head_width) = (span, vectors.len() / row_max.len());
        let rows = row_max.iter_mut().zip(sums).zip(vectors.chunks_exact_mut(head_width)).take(after);
        for (row, ((row_max, sum), vector)) in rows.enumerate() {
            let first = if row < before { before } else { 0 };
            let pairs = row * stride + first..row * stride + after;
            let (scores, mask, weights) = (&scores[pairs.clone()], &mask[pairs.clone()], &mut weights[pairs]);
            // The common case is one more key.
            if let ([score], [mask], [weight]) = (scores, mask, &mut *weights) {
                let [decay, exponential] = exp_below_max(*row_max, *score);
                (*row_max, *sum, *weight) = (row_max.max(*score), *sum * decay + exponential, exponential * mask);
                vector.iter_mut().for_each(|value| *value *= decay);
                continue;
            }
            let new_max = row_max.max(max_of(scores));
            let decay = exp(*row_max - new_max);
            for (weight, score) in weights.iter_mut().zip(scores) {
                *weight = exp(score - new_max);
            }
            (*row_max, *sum) = (new_max, *sum * decay + sum_of(weights));
            for (weight, mask) in weights.iter_mut().zip(mask) {
                *weight *= mask;
            }
            vector.iter_mut().for_each(|value| *value *= decay);
        }
    }
}

vectorised! {
    /// Writes every vector divided by its sum to the head's columns of its row.
    fn divide_by_sums(vectors: &[f32], sums: &[f32], outputs: &mut [f32], columns: HeadColumns) {
        for ((row, sum), vector) in sums.iter().enumerate().zip(vectors.chunks_exact(columns.head_width)) {
            let factor = 1.0 / sum;
            for (output, value) in outputs[columns.of(row)].iter_mut().zip(vector) {
                *output = value * factor;
            }
        }
    }
}

vectorised! {
    /// Computes the outputs of the prefix rows with the suffix as one more key, and the output of the suffix row.
    fn write_outputs_with_suffix(
        prefix: [&[f32]; 3],
        suffix: [&[f32]; 3],
        accumulators: [&[f32]; 3],
        scores: &mut [f32],
        mask: &[f32],
        maxima: &mut [f32],
        sums: &mut [f32],
        outputs: &mut [f32],
        columns: HeadColumns,
    ) {
        let ([queries, keys, values], [suffix_query, suffix_key, suffix_value]) = (prefix, suffix);
        let [prefix_max, prefix_sums, vectors] = accumulators;
        let (n, head_width) = (prefix_max.len(), suffix_query.len());
        let (scores_of_key, scores_of_query) = scores.split_at_mut(n);
        for (row, query) in queries.chunks_exact(head_width).take(n).enumerate() {
            let score = sum_of_products(query, suffix_key);
            scores_of_key[row] = score;
            let [decay, exponential] = exp_below_max(prefix_max[row], score);
            let sum = prefix_sums[row] * decay + exponential;
            (maxima[row], sums[row]) = (prefix_max[row].max(score), sum);
            let (prefix_factor, suffix_factor) = (decay / sum, mask[row] * exponential / sum);
            let vector = &vectors[row * head_width..][..head_width];
            for ((output, value), added) in outputs[columns.of(row)].iter_mut().zip(vector).zip(suffix_value) {
                *output = prefix_factor * value + suffix_factor * added;
            }
        }
        for (score, key) in scores_of_query.iter_mut().zip(keys.chunks_exact(head_width).take(n)) {
            *score = sum_of_products(suffix_query, key);
        }
        scores_of_query[n] = sum_of_products(suffix_query, suffix_key);
        let maximum = max_of(scores_of_query);
        let output = &mut outputs[columns.of(n)];
        output.fill(0.0);
        let mut sum = 0.0;
        let values = values.chunks_exact(head_width).take(n).chain([suffix_value]);
        for ((score, value), mask) in scores_of_query.iter().zip(values).zip(&mask[n..]) {
            let exponential = exp(score - maximum);
            sum += exponential;
            add_scaled(output, value, exponential * mask);
        }
        output.iter_mut().for_each(|value| *value /= sum);
        (maxima[n], sums[n]) = (maximum, sum);
    }
}

vectorised! {
    /// Backward pass of the softmax for the pairs that a prefix of `after` inputs has in addition to one of `before`. Writes
    /// the weights after dropout to `weights`. `d_weights` holds the gradient of these weights before and the gradient of
    /// the scores after the call.
    fn softmax_backward(
        scores: &[f32],
        mask: &[f32],
        stride: usize,
        span: [usize; 2],
        row_max: &[f32],
        subtracted: &[f32],
        weights: &mut [f32],
        d_weights: &mut [f32],
    ) {
        let [before, after] = span;
        for row in 0..after {
            let first = if row < before { before } else { 0 };
            let pairs = row * stride + first..row * stride + after;
            let of_pairs = scores[pairs.clone()].iter().zip(&mask[pairs.clone()]);
            let results = weights[pairs.clone()].iter_mut().zip(&mut d_weights[pairs]);
            for ((score, mask), (weight, d_weight)) in of_pairs.zip(results) {
                let exponential = exp(score - row_max[row]);
                *weight = exponential * mask;
                *d_weight = exponential * (mask * *d_weight - subtracted[row]);
            }
        }
    }
}

vectorised! {
    /// Adds the output gradients of one sequence to the vectors of its rows, scaled to the smaller of the two maxima.
    fn add_output_gradients(
        rows: &AttendedRows<'_>,
        row_max: &mut [f32],
        subtracted: &mut [f32],
        vectors: &mut [f32],
        columns: HeadColumns,
    ) {
        let accumulators = row_max.iter_mut().zip(subtracted).zip(vectors.chunks_exact_mut(columns.head_width));
        for (row, ((row_max, subtracted), vector)) in accumulators.enumerate() {
            let [factor, decay] = exp_below_max(*row_max, rows.maxima[row]);
            let factor = factor / rows.sums[row];
            let (output, d_output) = (&rows.outputs[columns.of(row)], &rows.d_outputs[columns.of(row)]);
            *row_max = row_max.min(rows.maxima[row]);
            *subtracted = *subtracted * decay + factor * sum_of_products(output, d_output);
            for (value, d_output) in vector.iter_mut().zip(d_output) {
                *value = *value * decay + factor * d_output;
            }
        }
    }
}

vectorised! {
    /// Backward pass through the pairs of a sequence's suffix.
    fn add_suffix_gradients(
        n: usize,
        prefix: [&[f32]; 3],
        suffix: [&[f32]; 3],
        d_prefix: [&mut [f32]; 3],
        d_suffix: [&mut [f32]; 3],
        pairs: (&[f32], &[f32]),
        rows: &AttendedRows<'_>,
        columns: HeadColumns,
    ) {
        let ([queries, keys, values], [suffix_query, suffix_key, suffix_value]) = (prefix, suffix);
        let ([d_queries, d_keys, d_values], [d_suffix_query, d_suffix_key, d_suffix_value]) = (d_prefix, d_suffix);
        let ((scores, mask), head_width) = (pairs, suffix_query.len());
        let slice = |row: usize| row * head_width..(row + 1) * head_width;
        // Returns the weight after dropout and the gradient of the score of one pair.
        let pair = |row: usize, score: f32, mask: f32, value: &[f32], d_output: &[f32], subtracted: f32| {
            let weight = exp(score - rows.maxima[row]) / rows.sums[row];
            (weight * mask, weight * (mask * sum_of_products(d_output, value) - subtracted))
        };
        for row in 0..n {
            let (output, d_output) = (&rows.outputs[columns.of(row)], &rows.d_outputs[columns.of(row)]);
            let subtracted = sum_of_products(output, d_output);
            let (weight, d_score) = pair(row, scores[row], mask[row], suffix_value, d_output, subtracted);
            add_scaled(d_suffix_value, d_output, weight);
            add_scaled(&mut d_queries[slice(row)], suffix_key, d_score);
            add_scaled(d_suffix_key, &queries[slice(row)], d_score);
        }
        let (output, d_output) = (&rows.outputs[columns.of(n)], &rows.d_outputs[columns.of(n)]);
        let subtracted = sum_of_products(output, d_output);
        for key in 0..n {
            let at = slice(key);
            let (weight, d_score) =
                pair(n, scores[n + key], mask[n + key], &values[at.clone()], d_output, subtracted);
            add_scaled(&mut d_values[at.clone()], d_output, weight);
            add_scaled(d_suffix_query, &keys[at.clone()], d_score);
            add_scaled(&mut d_keys[at], suffix_query, d_score);
        }
        let (weight, d_score) = pair(n, scores[2 * n], mask[2 * n], suffix_value, d_output, subtracted);
        add_scaled(d_suffix_value, d_output, weight);
        add_scaled(d_suffix_query, suffix_key, d_score);
        add_scaled(d_suffix_key, suffix_query, d_score);
    }
}
