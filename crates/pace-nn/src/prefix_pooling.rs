//! Pooling of the context at every decision of an encounter: the mean over episodes of the mean over each episode's entries
//! for some features, the maximum over all entries for the others.
//!
//! One pass over an encounter computes the pooled vectors before all decisions, and one pass their gradient. The cost is
//! linear in the length of the encounter.

use crate::kernels;

/// Treatment of the current episode in the mean over episodes before it has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyEpisodeMode {
    /// The mean is over the episodes that have entries.
    LeftOut,
    /// The episode counts as a vector of zeros.
    CountsAsZero,
}

/// Pooling over one encounter. A finished episode of `n` decisions has `n + 1` entries: the last one is terminal.
#[derive(Clone, Debug)]
pub struct PrefixPool {
    width: usize,
    n_means: usize,
    empty_episode: EmptyEpisodeMode,
    /// Sum of the means of the finished episodes, or its gradient.
    finished: Vec<f32>,
    /// Sum of the entries of the current episode, or its gradient.
    current: Vec<f32>,
    /// Maximum of each feature so far, at least zero.
    maxima: Vec<f32>,
    /// Index of the first entry with each maximum; `None` if no entry was above zero. Terminal entries are numbered after
    /// all decisions.
    max_indices: Vec<Option<usize>>,
}

impl PrefixPool {
    /// Creates the buffers for vectors of `width` features. The first `n_means` are averaged; the result for each other
    /// feature is its maximum, or zero if that is negative.
    pub fn new(width: usize, n_means: usize, empty_episode: EmptyEpisodeMode) -> PrefixPool {
        assert!(n_means <= width, "{n_means} means in a width of {width}");
        let n_maxima = width - n_means;
        PrefixPool {
            width,
            n_means,
            empty_episode,
            finished: vec![0.0; n_means],
            current: vec![0.0; n_means],
            maxima: vec![0.0; n_maxima],
            max_indices: vec![None; n_maxima],
        }
    }

    /// Returns the divisor of the mean over episodes at the first decision of episode `episode`.
    fn first_divisor(empty_episode: EmptyEpisodeMode, episode: usize) -> usize {
        match empty_episode {
            EmptyEpisodeMode::LeftOut => episode.max(1),
            EmptyEpisodeMode::CountsAsZero => episode + 1,
        }
    }

    /// Writes the pooled vector before every decision of an encounter.
    ///
    /// `decisions` holds one vector per decision, `terminals` one per episode, `lengths` the decisions of each episode.
    pub fn forward(&mut self, decisions: &[f32], terminals: &[f32], lengths: &[u32], pooled: &mut [f32]) {
        let (width, n_means) = (self.width, self.n_means);
        self.finished.fill(0.0);
        self.maxima.fill(0.0);
        let mut rows = decisions.chunks_exact(width).zip(pooled.chunks_exact_mut(width));
        for (episode, (length, terminal)) in lengths.iter().zip(terminals.chunks_exact(width)).enumerate() {
            self.current.fill(0.0);
            for step in 0..*length {
                let (entry, pooled) = rows.next().expect("a vector for every decision");
                let (means, maxima) = pooled.split_at_mut(n_means);
                if step == 0 {
                    let divisor = Self::first_divisor(self.empty_episode, episode);
                    kernels::scale_into(means, &self.finished, 1.0 / divisor as f32);
                } else {
                    let outer = 1.0 / (episode + 1) as f32;
                    kernels::linear_combination_into(
                        means,
                        &self.finished,
                        outer,
                        &self.current,
                        outer / step as f32,
                    );
                }
                maxima.copy_from_slice(&self.maxima);
                kernels::add(&mut self.current, &entry[..n_means]);
                kernels::max_assign(&mut self.maxima, &entry[n_means..]);
            }
            let inner = 1.0 / (length + 1) as f32;
            kernels::add_scaled(&mut self.finished, &self.current, inner);
            kernels::add_scaled(&mut self.finished, &terminal[..n_means], inner);
            kernels::max_assign(&mut self.maxima, &terminal[n_means..]);
        }
    }

    /// Computes the gradient of the entries from that of the pooled vectors; overwrites `d_decisions` and `d_terminals`. The
    /// gradient of a maximum goes to the first entry with this value.
    pub fn backward(
        &mut self,
        decisions: &[f32],
        terminals: &[f32],
        lengths: &[u32],
        d_pooled: &[f32],
        d_decisions: &mut [f32],
        d_terminals: &mut [f32],
    ) {
        let n_decisions = lengths.iter().map(|length| *length as usize).sum::<usize>();
        assert_eq!(d_pooled.len(), n_decisions * self.width, "a vector for every decision");
        self.means_backward(lengths, d_pooled, d_decisions, d_terminals);
        if self.n_means < self.width {
            self.max_backward([decisions, terminals], lengths, d_pooled, [d_decisions, d_terminals]);
        }
    }

    fn means_backward(
        &mut self,
        lengths: &[u32],
        d_pooled: &[f32],
        d_decisions: &mut [f32],
        d_terminals: &mut [f32],
    ) {
        let (width, n_means) = (self.width, self.n_means);
        let (d_finished, d_current) = (&mut self.finished, &mut self.current);
        d_finished.fill(0.0);
        let mut row = d_pooled.len() / width;
        for (episode, length) in lengths.iter().enumerate().rev() {
            // All later episodes use the mean of this one; their gradients are already in `d_finished`.
            let inner = 1.0 / (length + 1) as f32;
            kernels::scale_into(d_current, d_finished, inner);
            d_terminals[episode * width..][..n_means].copy_from_slice(d_current);
            for step in (0..*length).rev() {
                row -= 1;
                d_decisions[row * width..][..n_means].copy_from_slice(d_current);
                let d_row = &d_pooled[row * width..][..n_means];
                if step == 0 {
                    let divisor = Self::first_divisor(self.empty_episode, episode);
                    kernels::add_scaled(d_finished, d_row, 1.0 / divisor as f32);
                } else {
                    let outer = 1.0 / (episode + 1) as f32;
                    kernels::add_scaled(d_finished, d_row, outer);
                    kernels::add_scaled(d_current, d_row, outer / step as f32);
                }
            }
        }
    }

    fn max_backward(
        &mut self,
        [decisions, terminals]: [&[f32]; 2],
        lengths: &[u32],
        d_pooled: &[f32],
        [d_decisions, d_terminals]: [&mut [f32]; 2],
    ) {
        let (width, n_means) = (self.width, self.n_means);
        for entry in d_decisions.chunks_exact_mut(width).chain(d_terminals.chunks_exact_mut(width)) {
            entry[n_means..].fill(0.0);
        }
        self.maxima.fill(0.0);
        self.max_indices.fill(None);
        let n_decisions = d_pooled.len() / width;
        let mut row = 0;
        for (episode, length) in lengths.iter().enumerate() {
            for _ in 0..*length {
                for (feature, d_maximum) in d_pooled[row * width..][n_means..width].iter().enumerate() {
                    let Some(entry) = self.max_indices[feature] else { continue };
                    let (d_entries, index) = match entry.checked_sub(n_decisions) {
                        None => (&mut *d_decisions, entry),
                        Some(episode) => (&mut *d_terminals, episode),
                    };
                    d_entries[index * width + n_means + feature] += d_maximum;
                }
                self.update_maxima(row, &decisions[row * width..][n_means..width]);
                row += 1;
            }
            self.update_maxima(n_decisions + episode, &terminals[episode * width..][n_means..width]);
        }
    }

    /// Updates the maxima and their indices with the features of one entry.
    fn update_maxima(&mut self, entry: usize, features: &[f32]) {
        for ((maximum, index), value) in self.maxima.iter_mut().zip(&mut self.max_indices).zip(features) {
            if value > maximum {
                (*maximum, *index) = (*value, Some(entry));
            }
        }
    }
}
