//! One head of attention along a prefix_group: sequences that begin alike.
//!
//! A row that looks at the first prefix of a prefix_group sees `Σ e^(s − m) v / Σ e^(s − m)` with the scores s of these prefix, their
//! highest m and their values v. One more link changes three things: m, the sum below, and the sum above. So the rows of
//! all sequences are read off while these grow along the prefix_group. On the way back the gradients of what was seen are added up
//! from the longest sequence to the shortest, each in terms of the lowest m so far, which no score of a link that is still
//! there exceeds; a link is done when the sequences become too short for it.

use std::ops::Range;

use crate::kernels::{self, LANES, exp, max_of, sum_of, sum_of_products, vectorised};
use crate::linear::WriteMode;
use crate::product::{Strided, multiply_strided};

/// Numbers from one row of the pairs of `n` prefix to the next: whole vectors, of which what is behind the first `n` stands
/// for nothing.
pub(crate) fn stride(n: usize) -> usize {
    n.next_multiple_of(LANES)
}

/// Where a head's numbers lie in rows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadPlace {
    /// Numbers in a row of all heads.
    pub width: usize,
    /// The head's first.
    pub column: usize,
    /// How many are its own.
    pub head_width: usize,
}

impl HeadPlace {
    /// The head's numbers in a row.
    #[inline(always)]
    fn of(&self, row: usize) -> Range<usize> {
        let first = row * self.width + self.column;
        first..first + self.head_width
    }
}

/// The rows of a sequence: what a head left there on the way forward.
pub(crate) struct AttendedRows<'a> {
    /// The highest score of each row.
    pub maxima: &'a [f32],
    /// The sum of the exponentials of scores, less the highest.
    pub sums: &'a [f32],
    /// What all heads saw.
    pub seen: &'a [f32],
    /// Its gradient.
    pub d_seen: &'a [f32],
}

/// A prefix_group as one head has it, and what grows along it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrefixGroupHead {
    place: HeadPlace,
    /// Scaled queries, keys and values of the prefix, and their gradients.
    prefix: [Vec<f32>; 3],
    d_links: [Vec<f32>; 3],
    /// The same of the row that a sequence has for itself.
    own: [Vec<f32>; 3],
    d_own: [Vec<f32>; 3],
    /// How many prefix the rows look at by now.
    prefix_len: usize,
    /// Forward: the highest score of each row. Back: the lowest of these.
    levels: Vec<f32>,
    /// Forward: the sum of exponentials. Back: what softmax takes off the gradients.
    sums: Vec<f32>,
    /// Forward: the sum of exponentials times values. Back: the sum of the gradients of what was seen.
    vectors: Vec<f32>,
    /// One number for every pair of prefix.
    weights: Vec<f32>,
    d_weights: Vec<f32>,
}

impl PrefixGroupHead {
    /// Takes a prefix_group's queries, keys and values from those of all inputs.
    pub(crate) fn load(&mut self, projected: &[f32], prefix: &[u32], place: HeadPlace) {
        self.place = place;
        load(&mut self.prefix, projected, prefix, place);
    }

    /// Writes the score of every pair of prefix.
    pub(crate) fn score(&self, scores: &mut [f32]) {
        let ([queries, keys, _], head_width) = (&self.prefix, self.place.head_width);
        let n = queries.len() / head_width;
        let (queries, keys) =
            (Strided::rows(queries, head_width), Strided::rows(keys, head_width).transposed());
        multiply_strided([n, head_width, n], queries, keys, (scores, stride(n)), WriteMode::Overwrite);
    }

    /// Before the first sequence.
    pub(crate) fn begin(&mut self) {
        self.reset(f32::NEG_INFINITY);
        self.prefix_len = 0;
    }

    /// Lets the rows look at the first `prefix_len` prefix.
    pub(crate) fn extend_prefix(&mut self, prefix_len: usize, scores: &[f32], kept: &[f32]) {
        if prefix_len == self.prefix_len {
            return;
        }
        let PrefixGroupHead { levels, sums, vectors, weights, .. } = self;
        let (n, before, head_width) = (levels.len(), self.prefix_len, self.place.head_width);
        accumulate_prefix(scores, kept, stride(n), [before, prefix_len], levels, sums, vectors, weights);
        for (rows, prefix) in added_pairs(before, prefix_len) {
            multiply_strided(
                [rows.len(), prefix.len(), head_width],
                Strided::rows(&weights[rows.start * stride(n) + prefix.start..], stride(n)),
                Strided::rows(&self.prefix[2][prefix.start * head_width..], head_width),
                (&mut vectors[rows.start * head_width..], head_width),
                WriteMode::Accumulate,
            );
        }
        self.prefix_len = prefix_len;
    }

    /// Writes what the rows of a sequence see that ends here.
    pub(crate) fn write_outputs(&self, maxima: &mut [f32], sums: &mut [f32], seen: &mut [f32]) {
        maxima[..self.prefix_len].copy_from_slice(&self.levels[..self.prefix_len]);
        sums[..self.prefix_len].copy_from_slice(&self.sums[..self.prefix_len]);
        divide(&self.vectors, &self.sums[..self.prefix_len], seen, self.place);
    }

    /// The same for a sequence with one more row, the projection of `input`. Its pairs are those of the prefix' rows with it,
    /// of its row with the prefix, and with itself; their scores are written.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn write_outputs_with_suffix(
        &mut self,
        projected: &[f32],
        input: u32,
        (scores, kept): (&mut [f32], &[f32]),
        maxima: &mut [f32],
        sums: &mut [f32],
        seen: &mut [f32],
    ) {
        load(&mut self.own, projected, &[input], self.place);
        let grown = [&self.levels[..self.prefix_len], &self.sums, &self.vectors];
        let [prefix, own] = [&self.prefix, &self.own].map(|parts| parts.each_ref().map(|part| &part[..]));
        write_outputs_with_suffix(prefix, own, grown, scores, kept, maxima, sums, seen, self.place);
    }

    /// Before the last sequence, on the way back.
    pub(crate) fn begin_backward(&mut self) {
        self.reset(f32::INFINITY);
        self.prefix_len = self.levels.len();
        for (d_part, part) in self.d_links.iter_mut().zip(&self.prefix) {
            refill(d_part, part.len(), 0.0);
        }
    }

    /// Takes off all prefix but the first `prefix_len`: no sequence that follows looks at them.
    pub(crate) fn shorten_prefix(&mut self, prefix_len: usize, scores: &[f32], kept: &[f32]) {
        if prefix_len == self.prefix_len {
            return;
        }
        let (n, head_width) = (self.levels.len(), self.place.head_width);
        let PrefixGroupHead { levels, sums, vectors, weights, d_weights, .. } = self;
        for (rows, prefix) in added_pairs(prefix_len, self.prefix_len) {
            multiply_strided(
                [rows.len(), head_width, prefix.len()],
                Strided::rows(&vectors[rows.start * head_width..], head_width),
                Strided::rows(&self.prefix[2][prefix.start * head_width..], head_width).transposed(),
                (&mut d_weights[rows.start * stride(n) + prefix.start..], stride(n)),
                WriteMode::Overwrite,
            );
        }
        let span = [prefix_len, self.prefix_len];
        softmax_backward(scores, kept, stride(n), span, levels, sums, weights, d_weights);
        for (rows, prefix) in added_pairs(prefix_len, self.prefix_len) {
            multiply_strided(
                [prefix.len(), rows.len(), head_width],
                Strided::rows(&weights[rows.start * stride(n) + prefix.start..], stride(n)).transposed(),
                Strided::rows(&vectors[rows.start * head_width..], head_width),
                (&mut self.d_links[2][prefix.start * head_width..], head_width),
                WriteMode::Accumulate,
            );
        }
        self.prefix_len = prefix_len;
    }

    /// Adds the gradients of what the rows of a sequence saw that ends here.
    pub(crate) fn gather(&mut self, rows: &AttendedRows<'_>) {
        let levels = &mut self.levels[..self.prefix_len];
        gather(rows, levels, &mut self.sums, &mut self.vectors, self.place);
    }

    /// The same for the pairs of a sequence's own row; its gradient is added to that of the input's projection.
    pub(crate) fn add_suffix_gradients(
        &mut self,
        projected: &[f32],
        d_projected: &mut [f32],
        input: u32,
        pairs: (&[f32], &[f32]),
        rows: &AttendedRows<'_>,
    ) {
        load(&mut self.own, projected, &[input], self.place);
        for d_part in &mut self.d_own {
            refill(d_part, self.place.head_width, 0.0);
        }
        let [prefix, own] = [&self.prefix, &self.own].map(|parts| parts.each_ref().map(|part| &part[..]));
        let [d_links, d_own] =
            [&mut self.d_links, &mut self.d_own].map(|parts| parts.each_mut().map(|part| &mut part[..]));
        add_suffix_gradients(self.prefix_len, prefix, own, d_links, d_own, pairs, rows, self.place);
        unload(&self.d_own, d_projected, &[input], self.place);
    }

    /// Adds the gradient of the prefix to that of all inputs' projections; no sequence is left.
    pub(crate) fn finish_backward(
        &mut self,
        d_projected: &mut [f32],
        prefix: &[u32],
        scores: &[f32],
        kept: &[f32],
    ) {
        let (n, head_width) = (prefix.len(), self.place.head_width);
        self.shorten_prefix(0, scores, kept);
        let d_scores = Strided::rows(&self.d_weights, stride(n));
        let [queries, keys, _] = self.prefix.each_ref().map(|part| Strided::rows(part, head_width));
        let [d_queries, d_keys, _] = &mut self.d_links;
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
        unload(&self.d_links, d_projected, prefix, self.place);
    }

    fn reset(&mut self, level: f32) {
        let head_width = self.place.head_width;
        let n = self.prefix[0].len() / head_width;
        refill(&mut self.levels, n, level);
        refill(&mut self.sums, n, 0.0);
        refill(&mut self.vectors, n * head_width, 0.0);
        self.weights.resize(n * stride(n), 0.0);
        self.d_weights.resize(n * stride(n), 0.0);
    }
}

/// The pairs that looking at `after` prefix instead of `before` adds: rows and the prefix they look at.
fn added_pairs(before: usize, after: usize) -> [(Range<usize>, Range<usize>); 2] {
    [(0..before, before..after), (before..after, 0..after)]
}

fn refill(buffer: &mut Vec<f32>, n: usize, value: f32) {
    buffer.clear();
    buffer.resize(n, value);
}

/// Takes queries, scaled, keys and values of one head.
fn load(parts: &mut [Vec<f32>; 3], projected: &[f32], prefix: &[u32], place: HeadPlace) {
    let HeadPlace { width, column, head_width } = place;
    for (index, part) in parts.iter_mut().enumerate() {
        part.clear();
        for link in prefix {
            part.extend_from_slice(&projected[(*link as usize * 3 + index) * width + column..][..head_width]);
        }
    }
    let scale = 1.0 / (head_width as f32).sqrt();
    parts[0].iter_mut().for_each(|value| *value *= scale);
}

/// The way back from [`load`].
fn unload(d_parts: &[Vec<f32>; 3], d_projected: &mut [f32], prefix: &[u32], place: HeadPlace) {
    let HeadPlace { width, column, head_width } = place;
    let scale = 1.0 / (head_width as f32).sqrt();
    for (index, d_part) in d_parts.iter().enumerate() {
        let factor = if index == 0 { scale } else { 1.0 };
        for (d_row, link) in d_part.chunks_exact(head_width).zip(prefix) {
            let place = (*link as usize * 3 + index) * width + column;
            kernels::add_scaled(&mut d_projected[place..][..head_width], d_row, factor);
        }
    }
}

/// e to the power of each of two numbers less the higher one, of which one is always 1.
#[inline(always)]
fn exponentials_below_higher(one: f32, other: f32) -> [f32; 2] {
    let below = exp(-(one - other).abs());
    if one >= other { [1.0, below] } else { [below, 1.0] }
}

/// [`kernels::add_scaled`] for passes that are compiled for every width of vector themselves.
#[inline(always)]
fn add_scaled(to: &mut [f32], row: &[f32], factor: f32) {
    for (to, value) in to.iter_mut().zip(row) {
        *to += factor * value;
    }
}

vectorised! {
    /// Lets rows that look at `before` prefix look at `after`: levels and sums, what `vectors` keep of themselves, and the
    /// weights of the new pairs, after dropout.
    fn accumulate_prefix(
        scores: &[f32],
        kept: &[f32],
        stride: usize,
        span: [usize; 2],
        levels: &mut [f32],
        sums: &mut [f32],
        vectors: &mut [f32],
        weights: &mut [f32],
    ) {
        let ([before, after], head_width) = (span, vectors.len() / levels.len());
        let rows = levels.iter_mut().zip(sums).zip(vectors.chunks_exact_mut(head_width)).take(after);
        for (row, ((level, sum), vector)) in rows.enumerate() {
            let first = if row < before { before } else { 0 };
            let pairs = row * stride + first..row * stride + after;
            let (scores, kept, weights) = (&scores[pairs.clone()], &kept[pairs.clone()], &mut weights[pairs]);
            // Link by link is the usual way to grow.
            if let ([score], [kept], [weight]) = (scores, kept, &mut *weights) {
                let [faded, one] = exponentials_below_higher(*level, *score);
                (*level, *sum, *weight) = (level.max(*score), *sum * faded + one, one * kept);
                vector.iter_mut().for_each(|value| *value *= faded);
                continue;
            }
            let higher = level.max(max_of(scores));
            let faded = exp(*level - higher);
            for (weight, score) in weights.iter_mut().zip(scores) {
                *weight = exp(score - higher);
            }
            (*level, *sum) = (higher, *sum * faded + sum_of(weights));
            for (weight, kept) in weights.iter_mut().zip(kept) {
                *weight *= kept;
            }
            vector.iter_mut().for_each(|value| *value *= faded);
        }
    }
}

vectorised! {
    /// Writes every vector over its sum into a row.
    fn divide(vectors: &[f32], sums: &[f32], seen: &mut [f32], place: HeadPlace) {
        for ((row, sum), vector) in sums.iter().enumerate().zip(vectors.chunks_exact(place.head_width)) {
            let factor = 1.0 / sum;
            for (seen, value) in seen[place.of(row)].iter_mut().zip(vector) {
                *seen = value * factor;
            }
        }
    }
}

vectorised! {
    /// What the rows of the prefix see that look at one more row, and what that row sees.
    fn write_outputs_with_suffix(
        prefix: [&[f32]; 3],
        own: [&[f32]; 3],
        grown: [&[f32]; 3],
        scores: &mut [f32],
        kept: &[f32],
        row_maxima: &mut [f32],
        row_sums: &mut [f32],
        seen: &mut [f32],
        place: HeadPlace,
    ) {
        let ([queries, keys, values], [own_query, own_key, own_value]) = (prefix, own);
        let [levels, sums, vectors] = grown;
        let (n, head_width) = (levels.len(), own_query.len());
        let (with_own, of_own) = scores.split_at_mut(n);
        for (row, query) in queries.chunks_exact(head_width).take(n).enumerate() {
            let score = sum_of_products(query, own_key);
            with_own[row] = score;
            let [faded, one] = exponentials_below_higher(levels[row], score);
            let sum = sums[row] * faded + one;
            (row_maxima[row], row_sums[row]) = (levels[row].max(score), sum);
            let (old, new) = (faded / sum, kept[row] * one / sum);
            let vector = &vectors[row * head_width..][..head_width];
            for ((seen, value), own) in seen[place.of(row)].iter_mut().zip(vector).zip(own_value) {
                *seen = old * value + new * own;
            }
        }
        for (score, key) in of_own.iter_mut().zip(keys.chunks_exact(head_width).take(n)) {
            *score = sum_of_products(own_query, key);
        }
        of_own[n] = sum_of_products(own_query, own_key);
        let highest = max_of(of_own);
        let seen = &mut seen[place.of(n)];
        seen.fill(0.0);
        let mut sum = 0.0;
        let values = values.chunks_exact(head_width).take(n).chain([own_value]);
        for ((score, value), kept) in of_own.iter().zip(values).zip(&kept[n..]) {
            let one = exp(score - highest);
            sum += one;
            add_scaled(seen, value, one * kept);
        }
        seen.iter_mut().for_each(|value| *value /= sum);
        (row_maxima[n], row_sums[n]) = (highest, sum);
    }
}

vectorised! {
    /// The gradients of the scores of all pairs that are there with `after` prefix and not with `before`. `weights` become
    /// those after dropout; `d_weights` come in without dropout and go out as gradients of scores.
    fn softmax_backward(
        scores: &[f32],
        kept: &[f32],
        stride: usize,
        span: [usize; 2],
        levels: &[f32],
        offs: &[f32],
        weights: &mut [f32],
        d_weights: &mut [f32],
    ) {
        let [before, after] = span;
        for row in 0..after {
            let first = if row < before { before } else { 0 };
            let pairs = row * stride + first..row * stride + after;
            let of_pairs = scores[pairs.clone()].iter().zip(&kept[pairs.clone()]);
            let places = weights[pairs.clone()].iter_mut().zip(&mut d_weights[pairs]);
            for ((score, kept), (weight, d_weight)) in of_pairs.zip(places) {
                let one = exp(score - levels[row]);
                *weight = one * kept;
                *d_weight = one * (kept * *d_weight - offs[row]);
            }
        }
    }
}

vectorised! {
    /// Adds a sequence's gradients to the vectors of its rows, in terms of the lower level.
    fn gather(
        rows: &AttendedRows<'_>,
        levels: &mut [f32],
        offs: &mut [f32],
        vectors: &mut [f32],
        place: HeadPlace,
    ) {
        let of_rows = levels.iter_mut().zip(offs).zip(vectors.chunks_exact_mut(place.head_width));
        for (row, ((level, off), vector)) in of_rows.enumerate() {
            let [factor, faded] = exponentials_below_higher(*level, rows.maxima[row]);
            let factor = factor / rows.sums[row];
            let (seen, d_seen) = (&rows.seen[place.of(row)], &rows.d_seen[place.of(row)]);
            *level = level.min(rows.maxima[row]);
            *off = *off * faded + factor * sum_of_products(seen, d_seen);
            for (value, d_seen) in vector.iter_mut().zip(d_seen) {
                *value = *value * faded + factor * d_seen;
            }
        }
    }
}

vectorised! {
    /// The way back through the pairs of a sequence's own row.
    fn add_suffix_gradients(
        n: usize,
        prefix: [&[f32]; 3],
        own: [&[f32]; 3],
        d_links: [&mut [f32]; 3],
        d_own: [&mut [f32]; 3],
        pairs: (&[f32], &[f32]),
        rows: &AttendedRows<'_>,
        place: HeadPlace,
    ) {
        let ([queries, keys, values], [own_query, own_key, own_value]) = (prefix, own);
        let ([d_queries, d_keys, d_values], [d_own_query, d_own_key, d_own_value]) = (d_links, d_own);
        let ((scores, kept), head_width) = (pairs, own_query.len());
        let slice = |row: usize| row * head_width..(row + 1) * head_width;
        // With the row, the score and what was kept of a pair, and the value looked at: weight after dropout, gradient of the score.
        let pair = |row: usize, score: f32, kept: f32, value: &[f32], d_seen: &[f32], along: f32| {
            let weight = exp(score - rows.maxima[row]) / rows.sums[row];
            (weight * kept, weight * (kept * sum_of_products(d_seen, value) - along))
        };
        for row in 0..n {
            let (seen, d_seen) = (&rows.seen[place.of(row)], &rows.d_seen[place.of(row)]);
            let along = sum_of_products(seen, d_seen);
            let (weight, d_score) = pair(row, scores[row], kept[row], own_value, d_seen, along);
            add_scaled(d_own_value, d_seen, weight);
            add_scaled(&mut d_queries[slice(row)], own_key, d_score);
            add_scaled(d_own_key, &queries[slice(row)], d_score);
        }
        let (seen, d_seen) = (&rows.seen[place.of(n)], &rows.d_seen[place.of(n)]);
        let along = sum_of_products(seen, d_seen);
        for link in 0..n {
            let at = slice(link);
            let (weight, d_score) = pair(n, scores[n + link], kept[n + link], &values[at.clone()], d_seen, along);
            add_scaled(&mut d_values[at.clone()], d_seen, weight);
            add_scaled(d_own_query, &keys[at.clone()], d_score);
            add_scaled(&mut d_keys[at], own_query, d_score);
        }
        let (weight, d_score) = pair(n, scores[2 * n], kept[2 * n], own_value, d_seen, along);
        add_scaled(d_own_value, d_seen, weight);
        add_scaled(d_own_query, own_key, d_score);
        add_scaled(d_own_key, own_query, d_score);
    }
}
