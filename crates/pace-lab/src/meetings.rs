//! Many encounters of one scripted ego, on several threads; the result does not depend on how many.
//!
//! The same for a trained agent is in `adaptation`.

use std::num::NonZero;

use pace_games::{AnyGame, EpisodeOutcome, GameError, Meeting, Seed, Split};
use pace_report::stats::Estimate;
use pace_report::{BlockRecord, ReferenceRecord};

/// One ego, whom it meets, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Meetings<'a> {
    /// The scripted ego's name.
    pub reference: &'a str,
    /// The part of the pool.
    pub split: Split,
    /// How many of its tuples.
    pub n_tuples: usize,
    /// Encounters with each tuple. Every ego gets the same luck in the same encounter.
    pub n_encounters: usize,
    /// Episodes per encounter.
    pub n_episodes: usize,
    /// The seed of all chance.
    pub seed: u64,
}

/// The outcomes by tuple, then by encounter, then by episode.
#[derive(Clone, Debug)]
pub struct Outcomes(Vec<Vec<Vec<EpisodeOutcome>>>);

impl Meetings<'_> {
    /// Plays all of them.
    pub fn play(&self, game: &dyn AnyGame) -> Result<Outcomes, GameError> {
        let n_threads = std::thread::available_parallelism().map_or(1, NonZero::get).min(self.n_tuples);
        let play_tuple = |tuple: usize| -> Result<Vec<Vec<EpisodeOutcome>>, GameError> {
            (0..self.n_encounters)
                .map(|encounter| {
                    let path = [tuple as u64, encounter as u64];
                    let meeting = Meeting {
                        reference: self.reference,
                        split: self.split,
                        tuple,
                        n_episodes: self.n_episodes,
                        seed: Seed::new(self.seed).child("encounter", &path),
                    };
                    game.play(&meeting, None)
                })
                .collect()
        };
        let mut by_thread: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..n_threads)
                .map(|thread| {
                    scope.spawn(move || {
                        (thread..self.n_tuples)
                            .step_by(n_threads)
                            .map(play_tuple)
                            .collect::<Result<Vec<_>, _>>()
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| {
                    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(Vec::into_iter)
                })
                .collect::<Result<_, _>>()
        })?;
        let outcomes = (0..self.n_tuples)
            .map(|tuple| by_thread[tuple % n_threads].next().expect("every tuple was played"))
            .collect();
        Ok(Outcomes(outcomes))
    }
}

impl Outcomes {
    /// The mean of `value` over all encounters with each tuple.
    pub fn means_by_tuple(&self, value: impl Fn(&EpisodeOutcome) -> f64) -> Vec<f64> {
        let mean = |encounters: &Vec<Vec<EpisodeOutcome>>| {
            let values: Vec<f64> = encounters.iter().flatten().map(&value).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        self.0.iter().map(mean).collect()
    }

    /// The mean of `value` over the episodes in `range`, with the standard error over encounters. Tuples that were met
    /// once are draws from a family, so they form one group.
    pub fn estimate(
        &self,
        range: std::ops::Range<usize>,
        value: impl Fn(&EpisodeOutcome) -> f64,
    ) -> Estimate {
        let of_encounter = |episodes: &Vec<EpisodeOutcome>| {
            let episodes = &episodes[range.clone()];
            episodes.iter().map(&value).sum::<f64>() / episodes.len() as f64
        };
        let groups: Vec<Vec<f64>> =
            self.0.iter().map(|encounters| encounters.iter().map(of_encounter).collect()).collect();
        Estimate::of_groups(&if groups.iter().all(|group| group.len() == 1) {
            vec![groups.concat()]
        } else {
            groups
        })
    }

    /// The mean of `value` over all episodes and over each block of them.
    pub fn record(&self, n_episodes: usize, value: impl Fn(&EpisodeOutcome) -> f64) -> ReferenceRecord {
        let all = self.estimate(0..n_episodes, &value);
        let block = |range: std::ops::Range<usize>| {
            let found = self.estimate(range.clone(), &value);
            BlockRecord {
                first: range.start + 1,
                last: range.end,
                mean: found.mean,
                standard_error: found.standard_error,
                keypoint_rate: None,
                identification: None,
            }
        };
        ReferenceRecord {
            mean: all.mean,
            standard_error: all.standard_error,
            blocks: blocks(n_episodes).into_iter().map(block).collect(),
        }
    }
}

/// The episodes of an encounter in at most ten blocks of equal length.
pub fn blocks(n_episodes: usize) -> Vec<std::ops::Range<usize>> {
    let length = n_episodes.div_ceil(10);
    (0..n_episodes).step_by(length).map(|first| first..(first + length).min(n_episodes)).collect()
}
