//! The pooling of a context at every point in time: of some features the mean over episodes of the mean over each episode's
//! entries, of the others the highest value that any entry had.
//!
//! One sweep over an encounter gives the pooled vector before every decision, and one sweep back gives the gradient: the
//! cost is linear in the length of the encounter.

use crate::kernels;

/// What an episode counts for before it has an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyEpisode {
    /// It does not count: the mean is over the episodes that have entries.
    LeftOut,
    /// It counts as a vector of zeros.
    CountsAsZero,
}

/// The sweep over one encounter. An episode of `n` decisions has `n` entries and one more when it has ended.
#[derive(Clone, Debug)]
pub struct PrefixPool {
    width: usize,
    n_means: usize,
    empty_episode: EmptyEpisode,
    /// The means of the finished episodes added up, or the gradient of that.
    finished: Vec<f32>,
    /// The entries of the current episode added up, or the gradient of that.
    current: Vec<f32>,
    /// The highest values so far.
    highest: Vec<f32>,
    /// Which entry had each of them first; nobody as long as none was above zero. Ends of episodes are numbered after all
    /// decisions.
    holders: Vec<Option<usize>>,
}

impl PrefixPool {
    /// Room for vectors of `width` numbers, the first `n_means` of which are averaged. Of the others the highest counts, and
    /// nothing below zero.
    pub fn new(width: usize, n_means: usize, empty_episode: EmptyEpisode) -> PrefixPool {
        assert!(n_means <= width, "{n_means} means in a width of {width}");
        let n_highest = width - n_means;
        PrefixPool {
            width,
            n_means,
            empty_episode,
            finished: vec![0.0; n_means],
            current: vec![0.0; n_means],
            highest: vec![0.0; n_highest],
            holders: vec![None; n_highest],
        }
    }

    /// The divisor of the outer mean at the first decision of episode `episode`.
    fn first_divisor(empty_episode: EmptyEpisode, episode: usize) -> usize {
        match empty_episode {
            EmptyEpisode::LeftOut => episode.max(1),
            EmptyEpisode::CountsAsZero => episode + 1,
        }
    }

    /// Writes the pooled vector before every decision of an encounter.
    ///
    /// `decisions` holds one vector per decision, `terminals` one per episode, `lengths` the decisions of each episode.
    pub fn forward(&mut self, decisions: &[f32], terminals: &[f32], lengths: &[u32], pooled: &mut [f32]) {
        let (width, n_means) = (self.width, self.n_means);
        self.finished.fill(0.0);
        self.highest.fill(0.0);
        let mut rows = decisions.chunks_exact(width).zip(pooled.chunks_exact_mut(width));
        for (episode, (length, terminal)) in lengths.iter().zip(terminals.chunks_exact(width)).enumerate() {
            self.current.fill(0.0);
            for step in 0..*length {
                let (entry, pooled) = rows.next().expect("a vector for every decision");
                let (means, highest) = pooled.split_at_mut(n_means);
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
                highest.copy_from_slice(&self.highest);
                kernels::add(&mut self.current, &entry[..n_means]);
                kernels::max_assign(&mut self.highest, &entry[n_means..]);
            }
            let inner = 1.0 / (length + 1) as f32;
            kernels::add_scaled(&mut self.finished, &self.current, inner);
            kernels::add_scaled(&mut self.finished, &terminal[..n_means], inner);
            kernels::max_assign(&mut self.highest, &terminal[n_means..]);
        }
    }

    /// Takes the gradient of the pooled vectors back to the entries; both outputs are overwritten. That of a highest value
    /// goes to the first entry that had it.
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
            // The mean of this episode was used by all later ones, whose gradients are already in `d_finished`.
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
        self.highest.fill(0.0);
        self.holders.fill(None);
        let n_decisions = d_pooled.len() / width;
        let mut row = 0;
        for (episode, length) in lengths.iter().enumerate() {
            for _ in 0..*length {
                for (place, d_highest) in d_pooled[row * width..][n_means..width].iter().enumerate() {
                    let Some(holder) = self.holders[place] else { continue };
                    let (d_entries, entry) = match holder.checked_sub(n_decisions) {
                        None => (&mut *d_decisions, holder),
                        Some(episode) => (&mut *d_terminals, episode),
                    };
                    d_entries[entry * width + n_means + place] += d_highest;
                }
                self.take(row, &decisions[row * width..][n_means..width]);
                row += 1;
            }
            self.take(n_decisions + episode, &terminals[episode * width..][n_means..width]);
        }
    }

    /// An entry takes the places in which it is above all before it.
    fn take(&mut self, entry: usize, values: &[f32]) {
        for ((highest, holder), value) in self.highest.iter_mut().zip(&mut self.holders).zip(values) {
            if value > highest {
                (*highest, *holder) = (*value, Some(entry));
            }
        }
    }
}
