//! Many encounters of one scripted ego, on several threads; the result does not depend on how many.
//!
//! The same for a trained agent is in `adaptation`.

use pace_games::{AnyGame, EpisodeOutcome, GameError, Meeting, Seed, Split};
use pace_learn::{EncounterOutcome, Switch};
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
    /// Whether and when other peers take over, as with a trained agent. A reference agent is told and starts again: its
    /// score is that of an agent that need not detect the switch.
    pub switch: Option<Switch>,
    /// The seed of all chance.
    pub seed: u64,
    /// Threads; the result does not depend on it.
    pub n_threads: usize,
}

/// The outcomes by tuple, then by encounter, then by episode.
#[derive(Clone, Debug)]
pub struct Outcomes(Vec<Vec<Vec<EpisodeOutcome>>>);

impl Meetings<'_> {
    /// Plays all of them.
    pub fn play(&self, game: &dyn AnyGame) -> Result<Outcomes, GameError> {
        let n_threads = self.n_threads.min(self.n_tuples);
        let play_tuple = |tuple: usize| -> Result<Vec<Vec<EpisodeOutcome>>, GameError> {
            (0..self.n_encounters)
                .map(|encounter| {
                    let path = [tuple as u64, encounter as u64];
                    let seed = Seed::new(self.seed).child("encounter", &path);
                    let play = |tuple: usize, n_episodes: usize, seed: Seed| {
                        let (reference, split) = (self.reference, self.split);
                        game.play(&Meeting { reference, split, tuple, n_episodes, seed })
                    };
                    let Some(Switch { after }) = self.switch else {
                        return play(tuple, self.n_episodes, seed);
                    };
                    let successor = Switch::successor(tuple, game.n_tuples(self.split));
                    let mut episodes = play(tuple, after, seed)?;
                    episodes.extend(play(successor, self.n_episodes - after, Switch::seed(seed))?);
                    Ok(episodes)
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

    /// The mean of `value` over the episodes in `range`, with the standard error over encounters.
    pub fn estimate(
        &self,
        range: std::ops::Range<usize>,
        value: impl Fn(&EpisodeOutcome) -> f64,
    ) -> Estimate {
        let of_encounter = |episodes: &Vec<EpisodeOutcome>| {
            let episodes = &episodes[range.clone()];
            episodes.iter().map(&value).sum::<f64>() / episodes.len() as f64
        };
        over_encounters(
            self.0.iter().map(|encounters| encounters.iter().map(of_encounter).collect()).collect(),
        )
    }

    /// How much more these have of `value` than others who had the same encounters with the same luck.
    pub(crate) fn lead_over(
        &self,
        others: &[Vec<&EncounterOutcome>],
        range: std::ops::Range<usize>,
        value: impl Fn(&EpisodeOutcome) -> f64,
    ) -> Estimate {
        let mean = |episodes: &[EpisodeOutcome]| {
            episodes[range.clone()].iter().map(&value).sum::<f64>() / range.len() as f64
        };
        let pair =
            |(own, other): (&Vec<EpisodeOutcome>, &&EncounterOutcome)| mean(own) - mean(&other.episodes);
        let of_tuple = |(own, others): (&Vec<Vec<EpisodeOutcome>>, &Vec<&EncounterOutcome>)| {
            own.iter().zip(others).map(pair).collect()
        };
        over_encounters(self.0.iter().zip(others).map(of_tuple).collect())
    }

    /// The mean of `value` over all episodes and over each block of them.
    pub fn record(
        &self,
        n_episodes: usize,
        switch: Option<Switch>,
        value: impl Fn(&EpisodeOutcome) -> f64,
    ) -> ReferenceRecord {
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
                steps: None,
            }
        };
        ReferenceRecord {
            mean: all.mean,
            standard_error: all.standard_error,
            blocks: blocks(n_episodes, switch).into_iter().map(block).collect(),
        }
    }
}

/// The mean of one value per encounter, a list for each tuple. Tuples that were met once are draws from a family, so they
/// form one group.
pub(crate) fn over_encounters(groups: Vec<Vec<f64>>) -> Estimate {
    let is_family = groups.len() > 1 && groups.iter().all(|group| group.len() == 1);
    Estimate::of_groups(&if is_family { vec![groups.concat()] } else { groups })
}

/// The episodes of an encounter in about ten blocks of equal length, none of them across a switch.
pub fn blocks(n_episodes: usize, switch: Option<Switch>) -> Vec<std::ops::Range<usize>> {
    let length = n_episodes.div_ceil(10);
    let after = switch.map_or(0, |switch| switch.after);
    [0..after, after..n_episodes]
        .into_iter()
        .flat_map(|part| {
            let end = part.end;
            part.step_by(length).map(move |first| first..(first + length).min(end))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use pace_learn::Switch;

    use super::blocks;

    #[test]
    fn no_block_lies_across_a_switch() {
        assert_eq!(blocks(5, None), [0..1, 1..2, 2..3, 3..4, 4..5]);
        assert_eq!(blocks(25, None).last(), Some(&(24..25)));
        assert_eq!(blocks(100, None).len(), 10);
        assert_eq!(blocks(10, Some(Switch { after: 5 })).len(), 10);
        let around = blocks(25, Some(Switch { after: 5 }));
        assert_eq!(around[..3], [0..3, 3..5, 5..8]);
        assert_eq!(around.last(), Some(&(23..25)));
    }
}
