//! The pooling of a context: the mean over episodes of the mean over each episode's entries, at every point in time.
//!
//! Because it is a mean of means, one sweep over an encounter gives the pooled vector before every decision, and one sweep
//! back gives the gradient: the cost is linear in the length of the encounter.

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
pub struct PrefixMeans {
    width: usize,
    empty_episode: EmptyEpisode,
    finished: Vec<f32>,
    current: Vec<f32>,
}

impl PrefixMeans {
    /// Room for vectors of `width` numbers.
    pub fn new(width: usize, empty_episode: EmptyEpisode) -> PrefixMeans {
        PrefixMeans { width, empty_episode, finished: vec![0.0; width], current: vec![0.0; width] }
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
        let width = self.width;
        self.finished.fill(0.0);
        let mut rows = decisions.chunks_exact(width).zip(pooled.chunks_exact_mut(width));
        for (episode, (length, terminal)) in lengths.iter().zip(terminals.chunks_exact(width)).enumerate() {
            self.current.fill(0.0);
            for step in 0..*length {
                let (entry, pooled) = rows.next().expect("a vector for every decision");
                if step == 0 {
                    let divisor = Self::first_divisor(self.empty_episode, episode);
                    kernels::scale_into(pooled, &self.finished, 1.0 / divisor as f32);
                } else {
                    let outer = 1.0 / (episode + 1) as f32;
                    kernels::blend_into(pooled, &self.finished, outer, &self.current, outer / step as f32);
                }
                kernels::add(&mut self.current, entry);
            }
            let inner = 1.0 / (length + 1) as f32;
            kernels::add_scaled(&mut self.finished, &self.current, inner);
            kernels::add_scaled(&mut self.finished, terminal, inner);
        }
    }

    /// Takes the gradient of the pooled vectors back to the entries; both outputs are overwritten.
    pub fn backward(
        &mut self,
        d_pooled: &[f32],
        lengths: &[u32],
        d_decisions: &mut [f32],
        d_terminals: &mut [f32],
    ) {
        let width = self.width;
        let (d_finished, d_current) = (&mut self.finished, &mut self.current);
        d_finished.fill(0.0);
        let mut row = lengths.iter().map(|length| *length as usize).sum::<usize>();
        assert_eq!(d_pooled.len(), row * width, "a vector for every decision");
        for (episode, length) in lengths.iter().enumerate().rev() {
            // The mean of this episode was used by all later ones, whose gradients are already in `d_finished`.
            let inner = 1.0 / (length + 1) as f32;
            kernels::scale_into(d_current, d_finished, inner);
            d_terminals[episode * width..][..width].copy_from_slice(d_current);
            for step in (0..*length).rev() {
                row -= 1;
                d_decisions[row * width..][..width].copy_from_slice(d_current);
                let d_row = &d_pooled[row * width..][..width];
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
}
