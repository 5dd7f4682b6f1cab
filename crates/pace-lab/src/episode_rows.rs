//! Outcomes of encounters as rows of records: one row per episode, and for latents one row per decision.

use pace_games::{Ending, EpisodeOutcome, Metric, PoolListing};
use pace_learn::{EncounterOutcome, Switch, Verdict};
use pace_report::{
    AlarmVerdict, EpisodeEnding, EpisodeRow, IdentificationRecord, LatentRow, LatentsRecord, ScoreMetric,
};

/// The row of an episode. `place` has the indices of the tuple, the encounter with it, and the episode in the encounter.
pub(crate) fn episode_row(place: [usize; 3], outcome: &EpisodeOutcome, metric: Metric) -> EpisodeRow {
    let [tuple, encounter, episode] = place;
    EpisodeRow {
        tuple,
        encounter,
        episode,
        score: outcome.score(metric),
        task_return: outcome.task_return,
        expected_return: outcome.expected_return,
        n_steps: outcome.n_steps,
        ending: episode_ending(outcome.ending),
        keypoint_visited: outcome.keypoint_visited,
        identification: Vec::new(),
        alarm: None,
    }
}

/// The rows of a trained agent's encounters.
pub(crate) fn agent_rows(encounters: Vec<EncounterOutcome>, metric: Metric) -> Vec<EpisodeRow> {
    let mut rows = Vec::new();
    for encounter in encounters {
        // One entry per decision of the encounter, or no entries if identification is undefined.
        let mut identified = encounter.identified.iter();
        for (episode, outcome) in encounter.episodes.iter().enumerate() {
            let alarm = encounter.alarms.iter().find(|alarm| alarm.after_episode == episode + 1);
            let record = |one: &pace_learn::IdentificationScore| IdentificationRecord {
                accuracy: f64::from(one.accuracy),
                posterior: f64::from(one.posterior),
            };
            rows.push(EpisodeRow {
                identification: identified.by_ref().take(outcome.n_steps).map(record).collect(),
                alarm: alarm.map(|alarm| match alarm.verdict {
                    Verdict::FalseAlarm => AlarmVerdict::FalseAlarm,
                    Verdict::Detection => AlarmVerdict::Detection,
                    Verdict::Repeated => AlarmVerdict::Repeated,
                }),
                ..episode_row([encounter.tuple, encounter.pass, episode], outcome, metric)
            });
        }
    }
    rows
}

/// The latents of the first encounter with each tuple, one row per decision.
pub(crate) fn latents(
    encounters: &[EncounterOutcome],
    switch: Option<Switch>,
    pool: &PoolListing,
    width: usize,
) -> LatentsRecord {
    let mut rows = Vec::new();
    for encounter in encounters {
        let mut latents = encounter.latents.chunks_exact(width);
        let mut decision = 0;
        for (index, episode) in encounter.episodes.iter().enumerate() {
            let tuple = encounter.tuple_in(index, switch);
            for (step, latent) in latents.by_ref().take(episode.n_steps).enumerate() {
                decision += 1;
                rows.push(LatentRow {
                    tuple,
                    description: pool.tuples[tuple].description.clone(),
                    classes: pool.tuples[tuple].classes.clone(),
                    episode: index + 1,
                    step: step + 1,
                    decision,
                    success: match episode.ending {
                        Ending::Finished => None,
                        Ending::Succeeded => Some(true),
                        Ending::TimedOut => Some(false),
                    },
                    task_return: episode.task_return,
                    latent: latent.to_vec(),
                });
            }
        }
    }
    LatentsRecord { width, rows }
}

/// The score metric of a game in the form of records.
pub(crate) fn score_metric(metric: Metric) -> ScoreMetric {
    match metric {
        Metric::Return => ScoreMetric::Return,
        Metric::Success => ScoreMetric::Success,
    }
}

/// An ending of an episode in the form of records.
pub(crate) fn episode_ending(ending: Ending) -> EpisodeEnding {
    match ending {
        Ending::Finished => EpisodeEnding::Finished,
        Ending::Succeeded => EpisodeEnding::Succeeded,
        Ending::TimedOut => EpisodeEnding::TimedOut,
    }
}
