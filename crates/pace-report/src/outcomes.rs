//! Outcomes of encounters, one row per episode, and the record that is computed from them.
//!
//! A program that plays encounters writes down an [`EpisodeRow`] per episode. Every statistic of an [`AdaptRecord`] is computed
//! here from such rows, so that a new number in a table or figure needs no change outside this crate.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::record::{
    AdaptRecord, AlarmVerdict, BlockRecord, DecisionsRecord, DetectionRecord, DisplayNamesRecord,
    EpisodeAlarmsRecord, EpisodeEnding, FormatVersion, IdentificationRecord, PartRecord, PeerRecord,
    ReferenceRecord, RegretRecord, RunRecord, ScoreMetric, SwitchRecord, VisitsRecord,
};
use crate::stats::Estimate;

/// Maximum number of bins of decisions: enough for a curve.
const MAX_BINS: usize = 40;

/// One episode of an encounter.
#[derive(Clone, Debug, PartialEq)]
pub struct EpisodeRow {
    /// Index in the pool of the tuple that the encounter began with.
    pub tuple: usize,
    /// Index of the encounter among those that began with this tuple.
    pub encounter: usize,
    /// Index of the episode in its encounter.
    pub episode: usize,
    /// Score by the game's metric; the expected return where the game has one in closed form.
    pub score: f64,
    /// Sum of task rewards.
    pub task_return: f64,
    /// Expected return in closed form, for games that have one.
    pub expected_return: Option<f64>,
    /// Number of the ego's decisions.
    pub n_steps: usize,
    /// The ending of the episode.
    pub ending: EpisodeEnding,
    /// Whether the ego visited a keypoint.
    pub keypoint_visited: bool,
    /// Identification of the peers at each decision; empty where it is undefined.
    pub identification: Vec<IdentificationRecord>,
    /// The detector's alarm after this episode.
    pub alarm: Option<AlarmVerdict>,
}

/// The conditions of an evaluation: the part of its record that does not depend on outcomes.
#[derive(Clone, Debug)]
pub struct AdaptHead {
    /// See [`AdaptRecord::game`].
    pub game: String,
    /// See [`AdaptRecord::preset`].
    pub preset: String,
    /// See the field of the same name in [`AdaptRecord`].
    pub chosen_on: Option<String>,
    /// See [`AdaptRecord::method`].
    pub method: String,
    /// See [`AdaptRecord::pool`].
    pub pool: String,
    /// The game's metric. If the rows have expected returns, the record has [`ScoreMetric::ExpectedReturn`].
    pub metric: ScoreMetric,
    /// See [`AdaptRecord::words`].
    pub words: DisplayNamesRecord,
    /// Encounters per peer tuple.
    pub passes: usize,
    /// Random seed of the encounters.
    pub seed: u64,
    /// Episodes per encounter.
    pub episodes: usize,
    /// See [`AdaptRecord::context_episodes`].
    pub context_episodes: usize,
    /// See [`AdaptRecord::temperature`].
    pub temperature: Option<f64>,
    /// See [`AdaptRecord::game_keys`].
    pub game_keys: BTreeMap<String, Value>,
    /// See [`AdaptRecord::identification_undefined`].
    pub identification_undefined: Option<String>,
    /// Number of episodes after which the peers are replaced; `None` if they stay.
    pub switch_after: Option<usize>,
    /// The detector of changed peers; `None` without one.
    pub detector: Option<DetectorHead>,
    /// The tuples of the pool, in order; empty for a uniform sample, whose tuples are not listed.
    pub peers: Vec<PeerHead>,
    /// See [`AdaptRecord::run`].
    pub run: RunRecord,
    /// See [`AdaptRecord::command`].
    pub command: String,
}

/// A detector of changed peers.
#[derive(Clone, Debug)]
pub struct DetectorHead {
    /// See [`DetectionRecord::detector`].
    pub name: String,
    /// See [`DetectionRecord::clear_keeps`].
    pub clear_keeps: String,
}

/// A tuple of the pool.
#[derive(Clone, Debug)]
pub struct PeerHead {
    /// The behaviour of its peers, as text.
    pub description: String,
    /// Index of the tuple that replaces it within an encounter, if peers are replaced.
    pub successor: Option<usize>,
}

impl AdaptRecord {
    /// Computes the record of an agent from its episodes. Reference agents are added by [`AdaptRecord::add_reference`].
    ///
    /// # Panics
    /// If there are no rows, or fewer episodes in some encounter than `head` says.
    pub fn of(head: AdaptHead, agent: &[EpisodeRow]) -> AdaptRecord {
        let groups = EncounterGroups::of(agent);
        let n_episodes = head.episodes;
        let blocks = blocks(n_episodes, head.switch_after);
        let all = groups.block(0..n_episodes);
        let is_exact = agent.first().is_some_and(|row| row.expected_return.is_some());
        let peer = |(index, peer): (usize, PeerHead)| {
            let own = groups.of_tuple(index);
            let Estimate { mean, standard_error, .. } = own.score(0..n_episodes);
            PeerRecord {
                index,
                description: peer.description,
                successor: peer.successor,
                mean,
                standard_error,
                oracle: None,
                regret: None,
                blocks: blocks.iter().map(|range| own.block(range.clone())).collect(),
                by_episode: (0..n_episodes).map(|episode| own.score(episode..episode + 1).mean).collect(),
            }
        };
        let part_record = |range| {
            let Estimate { mean, standard_error, .. } = groups.score(range);
            PartRecord { mean, standard_error }
        };
        AdaptRecord {
            format_version: FormatVersion,
            game: head.game,
            preset: head.preset,
            chosen_on: head.chosen_on,
            method: head.method,
            pool: head.pool,
            metric: match head.metric {
                ScoreMetric::Return if is_exact => ScoreMetric::ExpectedReturn,
                metric => metric,
            },
            words: head.words,
            n_tuples: groups.0.len(),
            passes: head.passes,
            seed: Some(head.seed),
            episodes: n_episodes,
            context_episodes: Some(head.context_episodes),
            temperature: head.temperature,
            game_keys: head.game_keys,
            mean: all.mean,
            standard_error: all.standard_error,
            confidence_95: groups.score(0..n_episodes).confidence_95(),
            normalised: None,
            share_of_bayes: None,
            regret: None,
            keypoint_rate: all.keypoint_rate,
            blocks: blocks.iter().map(|range| groups.block(range.clone())).collect(),
            by_episode: (0..n_episodes).map(|episode| groups.block(episode..episode + 1)).collect(),
            keypoint_visits: Some(groups.keypoint_visits(n_episodes)),
            identification_by_decision: groups.identification_by_decision(),
            identification_undefined: head.identification_undefined,
            switch: head.switch_after.map(|after| SwitchRecord {
                after_episode: after,
                before: part_record(0..after),
                after: part_record(after..n_episodes),
            }),
            detection: head.detector.map(|detector| detection(detector, head.switch_after, agent)),
            references: BTreeMap::new(),
            peers: head.peers.into_iter().enumerate().map(peer).collect(),
            run: head.run,
            command: head.command,
        }
    }

    /// Adds a reference agent that played the same encounters as the agent, with the same random events, and updates what
    /// depends on it: the normalised scores, and the regret if it is the oracle.
    ///
    /// # Panics
    /// If its encounters are not those of the agent.
    pub fn add_reference(&mut self, name: &str, agent: &[EpisodeRow], reference: &[EpisodeRow]) {
        let n_episodes = self.episodes;
        let switch_after = self.switch.map(|switch| switch.after_episode);
        self.references.insert(name.to_owned(), ReferenceRecord::of(reference, n_episodes, switch_after));
        if name == "oracle" {
            let (agent, oracle) = (EncounterGroups::of(agent), EncounterGroups::of(reference));
            let all = oracle.difference_from(&agent, 0..n_episodes);
            let of_episode = |episode| oracle.difference_from(&agent, episode..episode + 1).mean;
            self.regret = Some(RegretRecord {
                mean: all.mean,
                standard_error: all.standard_error,
                confidence_95: all.confidence_95(),
                per_encounter: all.mean * n_episodes as f64,
                by_episode: (0..n_episodes).map(of_episode).collect(),
            });
            for peer in &mut self.peers {
                let own = oracle.of_tuple(peer.index);
                peer.oracle = Some(own.mean_over_episodes(0..n_episodes, |row| row.score));
            }
        }
        self.compare_with_references();
    }
}

impl ReferenceRecord {
    /// Computes the record of a reference agent from its episodes.
    ///
    /// # Panics
    /// If there are no rows, or fewer than `n_episodes` episodes in some encounter.
    pub fn of(rows: &[EpisodeRow], n_episodes: usize, switch_after: Option<usize>) -> ReferenceRecord {
        let groups = EncounterGroups::of(rows);
        let Estimate { mean, standard_error, .. } = groups.score(0..n_episodes);
        let block = |range: Range<usize>| {
            let (first, last) = (range.start + 1, range.end);
            let Estimate { mean, standard_error, .. } = groups.score(range);
            let (keypoint_rate, identification, steps) = (None, None, None);
            BlockRecord { first, last, mean, standard_error, keypoint_rate, identification, steps }
        };
        let blocks = blocks(n_episodes, switch_after).into_iter().map(block).collect();
        ReferenceRecord { mean, standard_error, blocks }
    }
}

/// Encounters grouped by the tuple that they began with, each as the rows of its episodes.
#[derive(Clone, Debug)]
pub struct EncounterGroups<'a>(Vec<Vec<&'a [EpisodeRow]>>);

impl<'a> EncounterGroups<'a> {
    /// Groups rows. The episodes of an encounter must be next to each other and in order; encounters may come in any order.
    pub fn of(rows: &'a [EpisodeRow]) -> EncounterGroups<'a> {
        let mut groups: Vec<Vec<&[EpisodeRow]>> = Vec::new();
        for encounter in rows.chunk_by(|one, next| (one.tuple, one.encounter) == (next.tuple, next.encounter))
        {
            let tuple = encounter[0].tuple;
            groups.resize_with(groups.len().max(tuple + 1), Vec::new);
            groups[tuple].push(encounter);
        }
        for group in &mut groups {
            group.sort_by_key(|encounter| encounter[0].encounter);
        }
        EncounterGroups(groups)
    }

    /// Mean of `value` over the episodes in `range`, with its standard error over encounters.
    ///
    /// # Panics
    /// If there are no encounters, or some encounter has fewer episodes.
    pub fn estimate(&self, range: Range<usize>, value: impl Fn(&EpisodeRow) -> f64) -> Estimate {
        let of_encounter = |encounter: &&[EpisodeRow]| mean(&encounter[range.clone()], &value);
        Estimate::over_encounters(
            self.0.iter().map(|group| group.iter().map(of_encounter).collect()).collect(),
        )
    }

    fn score(&self, range: Range<usize>) -> Estimate {
        self.estimate(range, |row| row.score)
    }

    /// The encounters that began with one tuple.
    fn of_tuple(&self, tuple: usize) -> EncounterGroups<'a> {
        EncounterGroups(vec![self.0[tuple].clone()])
    }

    fn encounters(&self) -> impl Iterator<Item = &'a [EpisodeRow]> {
        self.0.iter().flatten().copied()
    }

    /// Mean of `value` over all episodes in `range`, all of equal weight.
    fn mean_over_episodes(&self, range: Range<usize>, value: impl Fn(&EpisodeRow) -> f64) -> f64 {
        let values: Vec<f64> =
            self.encounters().flat_map(|encounter| &encounter[range.clone()]).map(value).collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// Mean of these scores minus those of `others` in the same encounters.
    fn difference_from(&self, others: &EncounterGroups<'_>, range: Range<usize>) -> Estimate {
        let score = |encounter: &[EpisodeRow]| mean(&encounter[range.clone()], &|row| row.score);
        let of_group = |(own, others): (&Vec<&[EpisodeRow]>, &Vec<&[EpisodeRow]>)| {
            own.iter().zip(others).map(|(own, other)| score(own) - score(other)).collect()
        };
        Estimate::over_encounters(self.0.iter().zip(&others.0).map(of_group).collect())
    }

    fn block(&self, range: Range<usize>) -> BlockRecord {
        let Estimate { mean, standard_error, .. } = self.score(range.clone());
        let keypoint = |row: &EpisodeRow| f64::from(u8::from(row.keypoint_visited));
        BlockRecord {
            first: range.start + 1,
            last: range.end,
            mean,
            standard_error,
            keypoint_rate: Some(self.mean_over_episodes(range.clone(), keypoint)),
            identification: self.identification(range.clone()),
            steps: Some(self.mean_over_episodes(range, |row| row.n_steps as f64)),
        }
    }

    /// Mean identification at the first decision of the episodes in `range`; `None` where it is undefined.
    fn identification(&self, range: Range<usize>) -> Option<IdentificationRecord> {
        let (mut accuracy, mut posterior, mut n) = (0.0, 0.0, 0.0);
        for row in self.encounters().flat_map(|encounter| &encounter[range.clone()]) {
            let first = row.identification.first()?;
            accuracy += first.accuracy;
            posterior += first.posterior;
            n += 1.0;
        }
        Some(IdentificationRecord { accuracy: accuracy / n, posterior: posterior / n })
    }

    /// Identification over the decisions of an encounter, in bins; empty where it is undefined.
    fn identification_by_decision(&self) -> Vec<DecisionsRecord> {
        let decisions = |encounter: &&[EpisodeRow]| -> Vec<IdentificationRecord> {
            encounter.iter().flat_map(|row| &row.identification).copied().collect()
        };
        let groups: Vec<Vec<Vec<IdentificationRecord>>> =
            self.0.iter().map(|group| group.iter().map(decisions).collect()).collect();
        let longest = groups.iter().flatten().map(Vec::len).max().unwrap_or(0);
        let length = longest.div_ceil(MAX_BINS);
        let bin = |first: usize| {
            let last = (first + length).min(longest);
            // Encounters that ended before the bin are omitted, and tuples without any other encounter too.
            let means = |value: fn(&IdentificationRecord) -> f64| -> Vec<Vec<f64>> {
                let of_encounter = |decisions: &Vec<IdentificationRecord>| {
                    let in_bin = decisions.get(first..last.min(decisions.len()))?;
                    let sum: f64 = in_bin.iter().map(value).sum();
                    (!in_bin.is_empty()).then(|| sum / in_bin.len() as f64)
                };
                let of_group =
                    |group: &Vec<Vec<_>>| group.iter().filter_map(of_encounter).collect::<Vec<f64>>();
                groups.iter().map(of_group).filter(|group| !group.is_empty()).collect()
            };
            let accuracies = means(|score| score.accuracy);
            let n_encounters = accuracies.iter().map(Vec::len).sum();
            let accuracy = Estimate::over_encounters(accuracies);
            DecisionsRecord {
                first: first + 1,
                last,
                n_encounters,
                accuracy: accuracy.mean,
                accuracy_error: accuracy.standard_error,
                posterior: Estimate::over_encounters(means(|score| score.posterior)).mean,
            }
        };
        (0..longest).step_by(length.max(1)).map(bin).collect()
    }

    /// Number of episodes per encounter with a visit to a keypoint.
    fn keypoint_visits(&self, n_episodes: usize) -> VisitsRecord {
        let count = |encounter: &[EpisodeRow]| encounter.iter().filter(|row| row.keypoint_visited).count();
        let mut encounters = vec![0; n_episodes + 1];
        self.encounters().for_each(|encounter| encounters[count(encounter)] += 1);
        let counts = |group: &Vec<&[EpisodeRow]>| group.iter().map(|one| count(one) as f64).collect();
        let found = Estimate::over_encounters(self.0.iter().map(counts).collect());
        VisitsRecord { mean: found.mean, standard_error: found.standard_error, encounters }
    }
}

fn mean(rows: &[EpisodeRow], value: &impl Fn(&EpisodeRow) -> f64) -> f64 {
    rows.iter().map(value).sum::<f64>() / rows.len() as f64
}

/// Splits the episodes of an encounter into about ten blocks of equal length. No block spans a switch.
pub fn blocks(n_episodes: usize, switch_after: Option<usize>) -> Vec<Range<usize>> {
    let length = n_episodes.div_ceil(10);
    let after = switch_after.unwrap_or(0);
    [0..after, after..n_episodes]
        .into_iter()
        .flat_map(|part| {
            let end = part.end;
            part.step_by(length).map(move |first| first..(first + length).min(end))
        })
        .collect()
}

/// Counts the alarms of a detector by their verdicts.
fn detection(detector: DetectorHead, switch_after: Option<usize>, rows: &[EpisodeRow]) -> DetectionRecord {
    let n = rows.chunk_by(|one, next| (one.tuple, one.encounter) == (next.tuple, next.encounter)).count();
    let mut by_episode: BTreeMap<usize, EpisodeAlarmsRecord> = BTreeMap::new();
    let mut delays = 0;
    for row in rows {
        let Some(verdict) = row.alarm else { continue };
        let after_episode = row.episode + 1;
        let counts = by_episode.entry(after_episode).or_default();
        counts.after_episode = after_episode;
        match verdict {
            AlarmVerdict::FalseAlarm => counts.n_false += 1,
            AlarmVerdict::Detection => {
                counts.n_right += 1;
                delays += after_episode - switch_after.unwrap_or(after_episode);
            }
            AlarmVerdict::Repeated => counts.n_repeated += 1,
        }
    }
    let by_episode: Vec<EpisodeAlarmsRecord> = by_episode.into_values().collect();
    let total = |count: fn(&EpisodeAlarmsRecord) -> usize| by_episode.iter().map(count).sum::<usize>() as f64;
    // Only the first alarm after the switch is a detection, so an encounter has at most one.
    let n_detections = total(|counts| counts.n_right);
    DetectionRecord {
        detector: detector.name,
        clear_keeps: detector.clear_keeps,
        hit_rate: switch_after.map(|_| n_detections / n as f64),
        mean_delay_episodes: (n_detections > 0.0).then(|| delays as f64 / n_detections),
        false_alarms_per_encounter: total(|counts| counts.n_false) / n as f64,
        repeated_alarms_per_encounter: total(|counts| counts.n_repeated) / n as f64,
        by_episode,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{AdaptHead, DetectorHead, EncounterGroups, EpisodeRow, PeerHead, blocks};
    use crate::record::{
        AdaptRecord, AlarmVerdict, DisplayNamesRecord, EpisodeAlarmsRecord, EpisodeEnding,
        IdentificationRecord, RunRecord, ScoreMetric,
    };

    /// An encounter with a tuple, with one row per score.
    fn encounter(tuple: usize, encounter: usize, scores: &[f64]) -> Vec<EpisodeRow> {
        let row = |(episode, score): (usize, &f64)| EpisodeRow {
            tuple,
            encounter,
            episode,
            score: *score,
            task_return: *score,
            expected_return: None,
            n_steps: 1,
            ending: EpisodeEnding::Finished,
            keypoint_visited: false,
            identification: Vec::new(),
            alarm: None,
        };
        scores.iter().enumerate().map(row).collect()
    }

    /// Two encounters of two episodes with each of two tuples, in the order of play: every tuple once, then every tuple again.
    fn agent() -> Vec<EpisodeRow> {
        let encounters = [(0, 0, [0.0, 2.0]), (1, 0, [10.0, 10.0]), (0, 1, [2.0, 4.0]), (1, 1, [10.0, 10.0])];
        encounters.iter().flat_map(|(tuple, pass, scores)| encounter(*tuple, *pass, scores)).collect()
    }

    fn head(episodes: usize) -> AdaptHead {
        AdaptHead {
            game: "kuhn-poker".to_owned(),
            preset: "paper".to_owned(),
            chosen_on: Some("none".to_owned()),
            method: "pace".to_owned(),
            pool: "test".to_owned(),
            metric: ScoreMetric::Return,
            words: DisplayNamesRecord::default(),
            passes: 2,
            seed: 1,
            episodes,
            context_episodes: episodes,
            temperature: None,
            game_keys: BTreeMap::new(),
            identification_undefined: None,
            switch_after: None,
            detector: None,
            peers: Vec::new(),
            run: RunRecord::default(),
            command: String::new(),
        }
    }

    fn peers(n: usize) -> Vec<PeerHead> {
        (0..n).map(|index| PeerHead { description: format!("peer {index}"), successor: None }).collect()
    }

    #[test]
    fn scores_are_averaged_over_encounters_within_each_tuple() {
        let record = AdaptRecord::of(AdaptHead { peers: peers(2), ..head(2) }, &agent());
        assert_eq!((record.n_tuples, record.passes, record.episodes), (2, 2, 2));
        // Means of the encounters: 1 and 3 with the first tuple, 10 and 10 with the second.
        assert_eq!(record.mean, 6.0);
        // The mean of the first tuple has variance 2 / 2 = 1, that of the second tuple 0.
        assert_eq!(record.standard_error, Some(0.5));
        let means = |blocks: &[crate::BlockRecord]| blocks.iter().map(|block| block.mean).collect::<Vec<_>>();
        assert_eq!(means(&record.blocks), [5.5, 6.5]);
        assert_eq!(means(&record.by_episode), [5.5, 6.5]);
        let own: Vec<_> =
            record.peers.iter().map(|peer| (peer.index, peer.mean, peer.standard_error)).collect();
        assert_eq!(own, [(0, 2.0, Some(1.0)), (1, 10.0, Some(0.0))]);
        assert_eq!(record.peers[0].by_episode, [1.0, 3.0]);
        assert_eq!(record.metric, ScoreMetric::Return);
    }

    #[test]
    fn tuples_with_one_encounter_each_are_one_sample() {
        let rows: Vec<_> = (0..4).flat_map(|tuple| encounter(tuple, 0, &[tuple as f64])).collect();
        let record = AdaptRecord::of(head(1), &rows);
        // Standard deviation of 0, 1, 2, 3 over the root of 4.
        let expected = (5.0_f64 / 3.0).sqrt() / 2.0;
        assert!((record.standard_error.expect("four values") - expected).abs() < 1e-12);
        assert!(record.peers.is_empty());
    }

    #[test]
    fn the_metric_of_returns_in_closed_form_is_expected_return() {
        let mut rows = agent();
        rows.iter_mut().for_each(|row| row.expected_return = Some(row.score));
        assert_eq!(AdaptRecord::of(head(2), &rows).metric, ScoreMetric::ExpectedReturn);
        let success = AdaptHead { metric: ScoreMetric::Success, ..head(2) };
        assert_eq!(AdaptRecord::of(success, &rows).metric, ScoreMetric::Success);
    }

    #[test]
    fn regret_is_computed_between_equal_encounters_of_agent_and_oracle() {
        let agent = agent();
        let mut record = AdaptRecord::of(AdaptHead { peers: peers(2), ..head(2) }, &agent);
        record.add_reference("static", &agent, &agent);
        assert_eq!((record.regret.is_none(), record.normalised), (true, None));
        // With encounters in another order: 2 above the agent in every first episode, 4 in every second one.
        let mut oracle = agent.clone();
        oracle.iter_mut().for_each(|row| row.score += 2.0 + 2.0 * row.episode as f64);
        oracle.rotate_left(2);
        record.add_reference("oracle", &agent, &oracle);
        let regret = record.regret.as_ref().expect("an oracle");
        assert_eq!((regret.mean, regret.standard_error, regret.per_encounter), (3.0, Some(0.0), 6.0));
        assert_eq!((regret.confidence_95, &regret.by_episode[..]), (Some([3.0, 3.0]), &[2.0, 4.0][..]));
        let with_peers: Vec<_> = record.peers.iter().map(|peer| (peer.oracle, peer.regret)).collect();
        assert_eq!(with_peers, [(Some(5.0), Some(3.0)), (Some(13.0), Some(3.0))]);
        // Static is the agent itself.
        assert_eq!(record.normalised, Some(0.0));
        let names: Vec<&String> = record.references.keys().collect();
        assert_eq!(names, ["oracle", "static"]);
        assert_eq!(record.references["oracle"].mean, 9.0);
        assert_eq!(record.references["oracle"].blocks[0].mean, 7.5);
    }

    #[test]
    fn visits_and_steps_are_counted_per_episode() {
        let mut rows = agent();
        rows[0].keypoint_visited = true;
        rows[1].keypoint_visited = true;
        rows[2].keypoint_visited = true;
        rows[3].n_steps = 5;
        let record = AdaptRecord::of(head(2), &rows);
        let visits = record.keypoint_visits.expect("always counted");
        assert_eq!((visits.mean, visits.encounters), (0.75, vec![2, 1, 1]));
        assert_eq!(record.keypoint_rate, Some(3.0 / 8.0));
        assert_eq!((record.blocks[0].steps, record.blocks[1].steps), (Some(1.0), Some(2.0)));
        assert_eq!(record.blocks[1].keypoint_rate, Some(0.25));
    }

    #[test]
    fn identification_is_averaged_at_first_decisions_and_over_all_decisions() {
        let score = |accuracy: f64| IdentificationRecord { accuracy, posterior: accuracy / 2.0 };
        let mut rows = [encounter(0, 0, &[0.0, 0.0]), encounter(0, 1, &[0.0, 0.0])].concat();
        rows[0].identification = vec![score(0.0), score(1.0)];
        rows[1].identification = vec![score(1.0)];
        rows[2].identification = vec![score(1.0)];
        rows[3].identification = vec![score(1.0)];
        let record = AdaptRecord::of(head(2), &rows);
        assert_eq!(record.blocks[0].identification, Some(score(0.5)));
        assert_eq!(record.blocks[1].identification, Some(score(1.0)));
        let bins: Vec<_> = record
            .identification_by_decision
            .iter()
            .map(|bin| (bin.first, bin.last, bin.n_encounters, bin.accuracy, bin.posterior))
            .collect();
        // The second encounter has only two decisions.
        assert_eq!(bins, [(1, 1, 2, 0.5, 0.25), (2, 2, 2, 1.0, 0.5), (3, 3, 1, 1.0, 0.5)]);
        rows[3].identification.clear();
        assert_eq!(AdaptRecord::of(head(2), &rows).blocks[1].identification, None);
    }

    #[test]
    fn alarms_are_counted_by_verdict_and_episode() {
        let mut rows = agent();
        rows[0].alarm = Some(AlarmVerdict::Detection);
        rows[1].alarm = Some(AlarmVerdict::Repeated);
        rows[3].alarm = Some(AlarmVerdict::Detection);
        let detector = Some(DetectorHead { name: "drop:0.8".to_owned(), clear_keeps: "last".to_owned() });
        let switched = AdaptHead { switch_after: Some(1), detector: detector.clone(), ..head(2) };
        let record = AdaptRecord::of(switched, &rows);
        let switch = record.switch.expect("a switch");
        assert_eq!((switch.after_episode, switch.before.mean, switch.after.mean), (1, 5.5, 6.5));
        let found = record.detection.expect("a detector");
        // Two of four encounters have one: after the first episode with the new peers, and an episode later.
        assert_eq!((found.hit_rate, found.mean_delay_episodes), (Some(0.5), Some(0.5)));
        assert_eq!((found.false_alarms_per_encounter, found.repeated_alarms_per_encounter), (0.0, 0.25));
        let first = EpisodeAlarmsRecord { after_episode: 1, n_false: 0, n_right: 1, n_repeated: 0 };
        let second = EpisodeAlarmsRecord { after_episode: 2, n_false: 0, n_right: 1, n_repeated: 1 };
        assert_eq!(found.by_episode, [first, second]);
        // Without a switch every alarm is false.
        let mut rows = agent();
        rows[5].alarm = Some(AlarmVerdict::FalseAlarm);
        let found = AdaptRecord::of(AdaptHead { detector, ..head(2) }, &rows).detection.expect("a detector");
        assert_eq!((found.hit_rate, found.mean_delay_episodes), (None, None));
        assert_eq!((found.false_alarms_per_encounter, found.by_episode[0].n_false), (0.25, 1));
        assert!(AdaptRecord::of(head(2), &rows).detection.is_none());
    }

    #[test]
    fn estimate_takes_any_value_of_an_episode() {
        let rows = agent();
        let doubled = EncounterGroups::of(&rows).estimate(1..2, |row| 2.0 * row.task_return);
        assert_eq!((doubled.mean, doubled.standard_error), (13.0, Some(1.0)));
    }

    #[test]
    fn no_block_spans_a_switch() {
        assert_eq!(blocks(5, None), [0..1, 1..2, 2..3, 3..4, 4..5]);
        assert_eq!(blocks(25, None).last(), Some(&(24..25)));
        assert_eq!(blocks(100, None).len(), 10);
        assert_eq!(blocks(10, Some(5)).len(), 10);
        let around = blocks(25, Some(5));
        assert_eq!(around[..3], [0..3, 3..5, 5..8]);
        assert_eq!(around.last(), Some(&(23..25)));
    }
}
