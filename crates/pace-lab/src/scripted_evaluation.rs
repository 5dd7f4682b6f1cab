//! Many encounters of one scripted ego, on several threads; the result does not depend on how many.
//!
//! The same for a trained agent is in `adaptation`.

use pace_games::{AnyGame, EpisodeOutcome, GameError, Meeting, Seed, Split};
use pace_learn::Switch;
use pace_report::EpisodeRow;

use crate::episode_rows::episode_row;

/// One ego, whom it meets, and how often.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedEvaluation<'a> {
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

impl ScriptedEvaluation<'_> {
    /// Plays all encounters; the rows are sorted by tuple, then by encounter, then by episode.
    pub fn play(&self, game: &dyn AnyGame) -> Result<Vec<EpisodeRow>, GameError> {
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
        let metric = game.spec().metric;
        let mut rows = Vec::new();
        for tuple in 0..self.n_tuples {
            let encounters = by_thread[tuple % n_threads].next().expect("every tuple was played");
            for (encounter, episodes) in encounters.iter().enumerate() {
                let row = |(episode, outcome)| episode_row([tuple, encounter, episode], outcome, metric);
                rows.extend(episodes.iter().enumerate().map(row));
            }
        }
        Ok(rows)
    }
}
