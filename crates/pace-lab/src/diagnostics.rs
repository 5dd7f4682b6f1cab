//! What the encounters of an agent show beside its score: visits, identification, alarms, latents.

use std::collections::BTreeMap;

use pace_games::{Ending, PoolListing};
use pace_learn::{Alarm, ClearKeeps, Detector, EncounterOutcome, Switch, Verdict};
use pace_report::{
    DecisionsRecord, DetectionRecord, EpisodeAlarmsRecord, LatentRow, LatentsRecord, VisitsRecord,
};

use crate::meetings::over_encounters;

/// Decisions are counted in at most so many bins: enough for a curve.
const MOST_BINS: usize = 40;

/// In how many episodes of an encounter the agent came to the informative place.
pub(crate) fn keypoint_visits(by_tuple: &[Vec<&EncounterOutcome>], n_episodes: usize) -> VisitsRecord {
    let count = |encounter: &&EncounterOutcome| {
        encounter.episodes.iter().filter(|episode| episode.keypoint_visited).count()
    };
    let mut encounters = vec![0; n_episodes + 1];
    by_tuple.iter().flatten().for_each(|encounter| encounters[count(encounter)] += 1);
    let counts =
        |encounters: &Vec<&EncounterOutcome>| encounters.iter().map(|one| count(one) as f64).collect();
    let found = over_encounters(by_tuple.iter().map(counts).collect());
    VisitsRecord { mean: found.mean, standard_error: found.standard_error, encounters }
}

/// How right the identifier was as the decisions of an encounter went by; empty where that is undefined.
pub(crate) fn identification_by_decision(by_tuple: &[Vec<&EncounterOutcome>]) -> Vec<DecisionsRecord> {
    let lengths = by_tuple.iter().flatten().map(|encounter| encounter.identified.len());
    let longest = lengths.max().unwrap_or(0);
    (0..longest)
        .step_by(longest.div_ceil(MOST_BINS).max(1))
        .map(|first| {
            let last = (first + longest.div_ceil(MOST_BINS)).min(longest);
            // Encounters that were over by then have nothing to say, and a tuple without any others neither.
            let groups = |value: fn(&pace_learn::Identified) -> f32| -> Vec<Vec<f64>> {
                let of_encounter = |encounter: &&EncounterOutcome| {
                    let judged = encounter.identified.get(first..last.min(encounter.identified.len()))?;
                    let sum: f64 = judged.iter().map(|judged| f64::from(value(judged))).sum();
                    (!judged.is_empty()).then(|| sum / judged.len() as f64)
                };
                by_tuple
                    .iter()
                    .map(|encounters| encounters.iter().filter_map(of_encounter).collect::<Vec<f64>>())
                    .filter(|group| !group.is_empty())
                    .collect()
            };
            let accuracies = groups(|judged| judged.accuracy);
            let n_encounters = accuracies.iter().map(Vec::len).sum();
            let accuracy = over_encounters(accuracies);
            DecisionsRecord {
                first: first + 1,
                last,
                n_encounters,
                accuracy: accuracy.mean,
                accuracy_error: accuracy.standard_error,
                posterior: over_encounters(groups(|judged| judged.posterior)).mean,
            }
        })
        .collect()
}

/// When the detector gave alarms and whether they were right; nothing without a detector.
pub(crate) fn detection(
    encounters: &[EncounterOutcome],
    switch: Option<Switch>,
    detector: Detector,
    clear_keeps: ClearKeeps,
) -> Option<DetectionRecord> {
    if detector == Detector::None {
        return None;
    }
    let alarms = || encounters.iter().flat_map(|encounter| &encounter.alarms);
    let count = |verdict: Verdict| alarms().filter(|alarm| alarm.verdict == verdict).count() as f64;
    let n = encounters.len() as f64;
    // The first alarm after the switch alone is right, so there is at most one in an encounter.
    let n_hits = count(Verdict::Right);
    let delays: usize = switch.map_or(0, |Switch { after }| {
        let right = alarms().filter(|alarm| alarm.verdict == Verdict::Right);
        right.map(|alarm| alarm.after_episode - after).sum()
    });
    Some(DetectionRecord {
        detector: detector.to_string(),
        // Who is told of the switch keeps nothing of the peers that have left.
        clear_keeps: if detector == Detector::Known { ClearKeeps::Nothing } else { clear_keeps }
            .name()
            .to_owned(),
        hit_rate: switch.map(|_| n_hits / n),
        mean_delay_episodes: (n_hits > 0.0).then(|| delays as f64 / n_hits),
        false_alarms_per_encounter: count(Verdict::False) / n,
        repeated_alarms_per_encounter: count(Verdict::Repeated) / n,
        by_episode: alarms_by_episode(alarms()),
    })
}

/// The number of alarms after each episode that has some.
fn alarms_by_episode<'a>(alarms: impl Iterator<Item = &'a Alarm>) -> Vec<EpisodeAlarmsRecord> {
    let mut by_episode: BTreeMap<usize, EpisodeAlarmsRecord> = BTreeMap::new();
    for alarm in alarms {
        let of_episode = by_episode.entry(alarm.after_episode).or_default();
        of_episode.after_episode = alarm.after_episode;
        match alarm.verdict {
            Verdict::False => of_episode.n_false += 1,
            Verdict::Right => of_episode.n_right += 1,
            Verdict::Repeated => of_episode.n_repeated += 1,
        }
    }
    by_episode.into_values().collect()
}

/// The latents of the first encounter with each tuple.
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
