//! The running context of a lane: two vectors and two counts, updated in constant time per step.
//!
//! `pace_nn::PrefixPool` pools a whole encounter at once and has a backward pass; a test compares the two.

use std::collections::VecDeque;

use pace_nn::kernels;

use crate::config::EmptyEpisode;

/// The pooled features of the entries of one encounter so far.
#[derive(Clone, Debug)]
pub(crate) struct RunningContext {
    /// The number of features, the first ones, that are averaged; the others are pooled by their maximum.
    n_means: usize,
    empty_episode: EmptyEpisode,
    /// Maximum number of episodes, including the current one; older episodes are dropped.
    window: Option<usize>,
    /// Sums of the means of the finished episodes, and their maxima.
    finished: Vec<f32>,
    n_finished: usize,
    /// The part of each episode in `finished`; used only with a window.
    episodes: VecDeque<Vec<f32>>,
    /// Sums over the entries of the current episode, and their maxima.
    current: Vec<f32>,
    n_entries: usize,
}

impl RunningContext {
    pub(crate) fn new(
        width: usize,
        n_means: usize,
        empty_episode: EmptyEpisode,
        window: Option<usize>,
    ) -> RunningContext {
        RunningContext {
            n_means,
            empty_episode,
            window,
            finished: vec![0.0; width],
            n_finished: 0,
            episodes: VecDeque::new(),
            current: vec![0.0; width],
            n_entries: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.finished.fill(0.0);
        self.current.fill(0.0);
        self.episodes.clear();
        (self.n_finished, self.n_entries) = (0, 0);
    }

    /// Whether there are no entries yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.n_finished == 0 && self.n_entries == 0
    }

    /// Writes the pooled vector for a decision at this point.
    pub(crate) fn pool_into(&self, pooled: &mut [f32]) {
        let (means, highest) = pooled.split_at_mut(self.n_means);
        let (finished, current) = (&self.finished, &self.current);
        if self.n_entries == 0 {
            let divisor = match self.empty_episode {
                EmptyEpisode::LeftOut => self.n_finished.max(1),
                EmptyEpisode::CountsAsZero => self.n_finished + 1,
            };
            kernels::scale_into(means, finished, 1.0 / divisor as f32);
        } else {
            let outer = 1.0 / (self.n_finished + 1) as f32;
            kernels::linear_combination_into(means, finished, outer, current, outer / self.n_entries as f32);
        }
        highest.copy_from_slice(&finished[self.n_means..]);
        kernels::max_assign(highest, &current[self.n_means..]);
    }

    /// Adds an entry of the current episode.
    pub(crate) fn add_entry(&mut self, features: &[f32]) {
        let (sums, highest) = self.current.split_at_mut(self.n_means);
        kernels::add(sums, features);
        kernels::max_assign(highest, &features[self.n_means..]);
        self.n_entries += 1;
    }

    /// Adds the terminal entry of the current episode, and finishes the episode.
    pub(crate) fn end_episode(&mut self, terminal_features: &[f32]) {
        let inner = 1.0 / (self.n_entries + 1) as f32;
        let (sums, highest) = self.current.split_at_mut(self.n_means);
        kernels::max_assign(highest, &terminal_features[self.n_means..]);
        let (all_means, all_highest) = self.finished.split_at_mut(self.n_means);
        kernels::add_scaled(all_means, sums, inner);
        kernels::add_scaled(all_means, terminal_features, inner);
        kernels::max_assign(all_highest, highest);
        self.n_finished += 1;
        if let Some(window) = self.window {
            let mut episode = self.current.clone();
            let (sums, means) = (&self.current[..self.n_means], &mut episode[..self.n_means]);
            kernels::linear_combination_into(means, sums, inner, terminal_features, inner);
            self.episodes.push_back(episode);
            // The next episode counts, too. The sum is computed again only when an episode is dropped, so that until then the
            // bytes equal those without a window.
            if self.episodes.len() + 1 > window.max(1) {
                self.episodes.pop_front();
                self.sum_up();
            }
        }
        self.current.fill(0.0);
        self.n_entries = 0;
    }

    /// Removes every finished episode except the last. Only a context with a window stores its episodes separately.
    pub(crate) fn keep_last_episode(&mut self) {
        assert!(self.window.is_some() && self.n_entries == 0, "between two episodes, with a window");
        self.episodes.drain(..self.episodes.len().saturating_sub(1));
        self.sum_up();
    }

    fn sum_up(&mut self) {
        self.finished.fill(0.0);
        let (means, highest) = self.finished.split_at_mut(self.n_means);
        for episode in &self.episodes {
            kernels::add(means, episode);
            kernels::max_assign(highest, &episode[self.n_means..]);
        }
        self.n_finished = self.episodes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::RunningContext;
    use crate::config::EmptyEpisode;

    #[test]
    fn running_and_whole_encounter_pooling_agree() {
        let (width, n_means) = (3, 2);
        let lengths = [2u32, 1, 4, 3];
        let mut state = 3u32;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let decisions: Vec<f32> = (0..10 * width).map(|_| number()).collect();
        let terminals: Vec<f32> = (0..4 * width).map(|_| number()).collect();
        for (ours, theirs) in [
            (EmptyEpisode::LeftOut, pace_nn::EmptyEpisodeMode::LeftOut),
            (EmptyEpisode::CountsAsZero, pace_nn::EmptyEpisodeMode::CountsAsZero),
        ] {
            let mut whole = vec![0.0; decisions.len()];
            let mut pool = pace_nn::PrefixPool::new(width, n_means, theirs);
            pool.forward(&decisions, &terminals, &lengths, &mut whole);
            let mut running = RunningContext::new(width, n_means, ours, None);
            let mut wide_window = RunningContext::new(width, n_means, ours, Some(99));
            let mut row = 0;
            for (episode, length) in lengths.iter().enumerate() {
                for _ in 0..*length {
                    let mut pooled = vec![0.0; width];
                    running.pool_into(&mut pooled);
                    for (one, other) in pooled.iter().zip(&whole[row * width..]) {
                        assert!((one - other).abs() < 1e-6);
                    }
                    wide_window.pool_into(&mut pooled);
                    for (one, other) in pooled.iter().zip(&whole[row * width..]) {
                        assert!((one - other).abs() < 1e-6);
                    }
                    running.add_entry(&decisions[row * width..][..width]);
                    wide_window.add_entry(&decisions[row * width..][..width]);
                    row += 1;
                }
                running.end_episode(&terminals[episode * width..][..width]);
                wide_window.end_episode(&terminals[episode * width..][..width]);
            }
        }
    }

    #[test]
    fn a_window_drops_the_oldest_episode() {
        let mut context = RunningContext::new(2, 1, EmptyEpisode::LeftOut, Some(3));
        for (value, other) in [(1.0, 9.0), (2.0, 8.0), (3.0, 5.0), (4.0, 7.0)] {
            context.add_entry(&[value, 0.0]);
            context.end_episode(&[value, other]);
        }
        let mut pooled = [0.0; 2];
        context.pool_into(&mut pooled);
        // The window has three episodes: the last two finished ones and the current one.
        assert_eq!(pooled, [3.5, 7.0]);
        context.add_entry(&[6.5, 7.5]);
        context.pool_into(&mut pooled);
        assert!((pooled[0] - 13.5 / 3.0).abs() < 1e-6, "{pooled:?}");
        assert_eq!(pooled[1], 7.5);
    }

    #[test]
    fn clearing_may_keep_the_last_episode() {
        let mut context = RunningContext::new(2, 1, EmptyEpisode::LeftOut, Some(9));
        let mut pooled = [0.0; 2];
        for (value, other) in [(1.0, 9.0), (2.0, 8.0), (4.0, 5.0)] {
            context.add_entry(&[value, other]);
            context.end_episode(&[value, 0.0]);
        }
        context.keep_last_episode();
        context.pool_into(&mut pooled);
        assert_eq!(pooled, [4.0, 5.0]);
        // The kept episode is pooled like any other.
        context.add_entry(&[8.0, 3.0]);
        context.end_episode(&[8.0, 6.0]);
        context.pool_into(&mut pooled);
        assert_eq!(pooled, [6.0, 6.0]);
        context.clear();
        assert!(context.is_empty());
        // An empty context stays empty.
        context.keep_last_episode();
        assert!(context.is_empty());
        context.pool_into(&mut pooled);
        assert_eq!(pooled, [0.0, 0.0]);
    }
}
