//! Evaluation of a reference agent over many encounters, on several threads; results do not depend on their number.
//!
//! `adaptation` evaluates trained agents.

use pace_games::{AnyGame, ConfigError, EpisodeOutcome, ScriptedEncounter, Seed, Split};
use pace_learn::Switch;
use pace_report::EpisodeRow;

use crate::episode_rows::episode_row;

/// Settings for the evaluation of one reference agent.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedEvaluation<'a> {
    /// The name of the reference agent.
    pub reference: &'a str,
    /// The peer pool.
    pub split: Split,
    /// Number of tuples of the pool to play with.
    pub n_tuples: usize,
    /// Encounters per peer tuple. The same encounter has the same random events for every agent.
    pub n_encounters: usize,
    /// Episodes per encounter.
    pub n_episodes: usize,
    /// The replacement of the peers within an encounter, if any. A reference agent is informed of the switch and restarts, so
    /// its score is that of an agent that need not detect the switch.
    pub switch: Option<Switch>,
    /// Random seed.
    pub seed: u64,
    /// Number of threads; results do not depend on it.
    pub n_threads: usize,
}

impl ScriptedEvaluation<'_> {
    /// Plays all encounters. The rows are sorted by tuple, then by encounter, then by episode.
    pub fn play(&self, game: &dyn AnyGame) -> Result<Vec<EpisodeRow>, ConfigError> {
        let n_threads = self.n_threads.min(self.n_tuples);
        let play_tuple = |tuple: usize| -> Result<Vec<Vec<EpisodeOutcome>>, ConfigError> {
            (0..self.n_encounters)
                .map(|encounter| {
                    let path = [tuple as u64, encounter as u64];
                    let seed = Seed::new(self.seed).child("encounter", &path);
                    let play = |tuple: usize, n_episodes: usize, seed: Seed| {
                        let (reference, split) = (self.reference, self.split);
                        game.play(&ScriptedEncounter { reference, split, tuple, n_episodes, seed })
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
