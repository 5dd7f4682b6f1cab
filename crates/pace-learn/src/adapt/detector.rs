//! Change detectors: rules that decide from the scores of an encounter when its context is cleared.
//!
//! Clearing itself is in `context`; the actual change of the peers is in `switch`.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use pace_games::ConfigError;

/// A rule for clearing the context within an encounter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detector {
    /// Never.
    None,
    /// After an episode with a score below c · highest + (1 − c) · lowest of the finished episodes in the context, itself
    /// included, if these are two or more.
    Drop {
        /// c, from 0 to 1.
        share: f64,
    },
    /// Exactly when the peers change: an upper bound for detectors, because the ego is informed.
    Known,
}

/// One line of [`DETECTORS`].
#[derive(Clone, Copy, Debug)]
pub struct DetectorEntry {
    /// Form on the command line.
    pub form: &'static str,
    /// One-line description.
    pub summary: &'static str,
    expected: &'static str,
    read: fn(Option<&str>) -> Option<Detector>,
}

/// Every detector.
pub const DETECTORS: &[DetectorEntry] = &[
    DetectorEntry {
        form: "none",
        summary: "never clears the context",
        expected: "none, with nothing after it",
        read: |argument| argument.is_none().then_some(Detector::None),
    },
    DetectorEntry {
        form: "drop:C",
        summary: "clears after a score below C·highest + (1−C)·lowest of those in the context",
        expected: "drop:C with C from 0 to 1, for example drop:0.8",
        read: |argument| {
            let share = argument?.parse().ok()?;
            (0.0..=1.0).contains(&share).then_some(Detector::Drop { share })
        },
    },
    DetectorEntry {
        form: "known",
        summary: "is informed of the switch and clears everything exactly then",
        expected: "known, with nothing after it",
        read: |argument| argument.is_none().then_some(Detector::Known),
    },
];

impl Detector {
    /// Whether the rule compares episodes of the context, which must then store its episodes separately.
    pub(crate) fn compares_episodes(self) -> bool {
        matches!(self, Detector::Drop { .. })
    }

    /// The part of the context that is kept when this rule clears it, where `chosen` is the choice of the user. `None` if the rule
    /// never clears it. An agent that is informed of the change keeps nothing of the former peers.
    pub fn keeps(self, chosen: ClearKeeps) -> Option<ClearKeeps> {
        match self {
            Detector::None => None,
            Detector::Drop { .. } => Some(chosen),
            Detector::Known => Some(ClearKeeps::Nothing),
        }
    }
}

impl FromStr for Detector {
    type Err = ConfigError;

    /// Reads a detector as [`DETECTORS`] writes them.
    fn from_str(text: &str) -> Result<Detector, ConfigError> {
        let (id, argument) = text.split_once(':').map_or((text, None), |(id, rest)| (id, Some(rest)));
        let is_it = |entry: &&DetectorEntry| entry.form.split(':').next() == Some(id);
        let Some(entry) = DETECTORS.iter().find(is_it) else {
            return Err(ConfigError::unknown("detector", text, DETECTORS.iter().map(|entry| entry.form)));
        };
        (entry.read)(argument).ok_or_else(|| ConfigError::bad_value("detector", &text, entry.expected))
    }
}

impl Display for Detector {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Detector::None => formatter.write_str("none"),
            Detector::Drop { share } => write!(formatter, "drop:{share}"),
            Detector::Known => formatter.write_str("known"),
        }
    }
}

/// Part of the context that is kept when it is cleared. The paper clears the whole context; the authors' code keeps the episode
/// that gave the alarm, because it was played with the new peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearKeeps {
    /// The episode just finished.
    Last,
    /// Nothing.
    Nothing,
}

impl Display for ClearKeeps {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ClearKeeps::Last => "last",
            ClearKeeps::Nothing => "nothing",
        })
    }
}

impl FromStr for ClearKeeps {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<ClearKeeps, ConfigError> {
        match text {
            "last" => Ok(ClearKeeps::Last),
            "nothing" => Ok(ClearKeeps::Nothing),
            _ => Err(ConfigError::unknown("keep-on-clear", text, ["last", "nothing"])),
        }
    }
}

/// A change of the peers, reported by a detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The number of the episode, from 1, after which it was reported.
    pub after_episode: usize,
    /// Whether the peers had changed.
    pub verdict: Verdict,
}

/// Correctness of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The peers had not changed.
    FalseAlarm,
    /// The peers had changed, and this is the first alarm since.
    Detection,
    /// The peers had changed, and an earlier alarm had reported it.
    Repeated,
}

/// The state of a detector in one encounter.
#[derive(Clone, Debug)]
pub(crate) struct DetectorState {
    detector: Detector,
    keeps: ClearKeeps,
    /// Number of episodes with the first peers.
    switch_after: Option<usize>,
    /// Maximum number of finished episodes in the context.
    max_finished: usize,
    /// The scores of the finished episodes in the context.
    scores: VecDeque<f64>,
    n_finished: usize,
    is_found: bool,
}

impl DetectorState {
    /// The state before an encounter whose context keeps `context_episodes` episodes, including the current one.
    pub(crate) fn new(
        detector: Detector,
        keeps: ClearKeeps,
        switch_after: Option<usize>,
        context_episodes: usize,
    ) -> DetectorState {
        DetectorState {
            detector,
            // The last episode before the switch says nothing about the peers after it.
            keeps: detector.keeps(keeps).unwrap_or(keeps),
            switch_after,
            max_finished: context_episodes.saturating_sub(1),
            scores: VecDeque::new(),
            n_finished: 0,
            is_found: false,
        }
    }

    /// Records the score of a finished episode. Returns an alarm, if there is one, with the part of the context to keep.
    pub(crate) fn episode_ended(&mut self, score: f64) -> Option<(Alarm, ClearKeeps)> {
        self.n_finished += 1;
        self.scores.push_back(score);
        while self.scores.len() > self.max_finished {
            self.scores.pop_front();
        }
        let has_alarm = match self.detector {
            Detector::None => false,
            Detector::Known => self.switch_after == Some(self.n_finished),
            Detector::Drop { share } => {
                // c · highest + (1 − c) · lowest, written so that equal scores give exactly that score.
                let highest = self.scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let lowest = self.scores.iter().copied().fold(f64::INFINITY, f64::min);
                self.scores.len() >= 2 && score < lowest + share * (highest - lowest)
            }
        };
        if !has_alarm {
            return None;
        }
        match self.keeps {
            ClearKeeps::Last => drop(self.scores.drain(..self.scores.len() - 1)),
            ClearKeeps::Nothing => self.scores.clear(),
        }
        // An informed detector reacts before the first episode with the new peers, the others after it at the earliest.
        let is_after = self.switch_after.is_some_and(|after| {
            self.n_finished > after || (self.detector == Detector::Known && self.n_finished == after)
        });
        let verdict = match (is_after, self.is_found) {
            (false, _) => Verdict::FalseAlarm,
            (true, false) => Verdict::Detection,
            (true, true) => Verdict::Repeated,
        };
        self.is_found |= is_after;
        Some((Alarm { after_episode: self.n_finished, verdict }, self.keeps))
    }
}

#[cfg(test)]
mod tests {
    use super::{ClearKeeps, DETECTORS, Detector, DetectorState, Verdict};

    /// The episodes after which there is an alarm, with its verdict as a letter: `2f 7r 9R`.
    fn alarms(mut state: DetectorState, scores: &[f64]) -> String {
        let found = scores.iter().filter_map(|score| state.episode_ended(*score)).map(|(alarm, _)| {
            let letter = match alarm.verdict {
                Verdict::FalseAlarm => "f",
                Verdict::Detection => "r",
                Verdict::Repeated => "R",
            };
            format!("{}{letter}", alarm.after_episode)
        });
        found.collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(scores: &[u8], expected: &str) {
        let scores: Vec<f64> = scores.iter().map(|score| f64::from(*score)).collect();
        let state = DetectorState::new(Detector::Drop { share: 0.8 }, ClearKeeps::Last, Some(5), 5);
        assert_eq!(alarms(state, &scores), expected, "{scores:?}");
    }

    #[test]
    fn a_failure_after_a_success_gives_an_alarm() {
        // One episode is never enough.
        check(&[0], "");
        check(&[1], "");
        check(&[0, 0], "");
        check(&[0, 1], "");
        check(&[1, 1], "");
        check(&[1, 0], "2f");
        // The kept failure cannot be followed by a lower score.
        check(&[1, 0, 0], "2f");
        check(&[1, 0, 1, 0], "2f 4f");
        // The peers change after the fifth episode.
        check(&[0, 0, 1, 1, 1, 0], "6r");
        check(&[0, 0, 1, 1, 1, 1, 0], "7r");
        check(&[0, 0, 1, 1, 0, 0, 1, 0, 1, 0], "5f 8r 10R");
        // Without a success there is no alarm.
        check(&[0; 10], "");
    }

    #[test]
    fn a_return_below_four_fifths_of_the_range_gives_an_alarm() {
        let state =
            |share, context| DetectorState::new(Detector::Drop { share }, ClearKeeps::Last, None, context);
        // Of −5 to −3 the threshold is −3.4.
        assert_eq!(alarms(state(0.8, 9), &[-5.0, -3.0, -3.39]), "");
        assert_eq!(alarms(state(0.8, 9), &[-5.0, -3.0, -3.41]), "3f");
        // A new lowest score moves the threshold, and is below it.
        assert_eq!(alarms(state(0.8, 9), &[-5.0, -3.0, -9.0]), "3f");
        // A share of 0 never gives an alarm; a share of 1 gives one for every score below the highest.
        assert_eq!(alarms(state(0.0, 9), &[3.0, 2.0, 1.0, 0.0]), "");
        assert_eq!(alarms(state(1.0, 9), &[3.0, 3.0, 2.99]), "3f");
        // Rounding never puts a score below itself.
        assert!((1..1000).all(|n| alarms(state(0.8, 9), &[-0.1 * f64::from(n); 3]).is_empty()));
    }

    #[test]
    fn episodes_outside_the_context_are_ignored() {
        let state =
            |context| DetectorState::new(Detector::Drop { share: 0.8 }, ClearKeeps::Last, None, context);
        // While the bad first episode counts, a small loss is within the range.
        assert_eq!(alarms(state(9), &[-10.0, 1.0, 1.0, 0.9]), "");
        // A context of four episodes keeps three finished ones.
        assert_eq!(alarms(state(4), &[-10.0, 1.0, 0.9]), "");
        assert_eq!(alarms(state(4), &[-10.0, 1.0, 1.0, 0.9]), "4f");
        // With at most one finished episode in the context there is no other score to compare with.
        assert_eq!(alarms(state(2), &[1.0, 0.0, 1.0, 0.0]), "");
        assert_eq!(alarms(state(1), &[1.0, 0.0]), "");
    }

    #[test]
    fn a_cleared_context_needs_two_episodes_for_an_alarm() {
        let state = |keeps| DetectorState::new(Detector::Drop { share: 0.8 }, keeps, None, 9);
        assert_eq!(alarms(state(ClearKeeps::Last), &[9.0, 5.0, 4.0]), "2f 3f");
        assert_eq!(alarms(state(ClearKeeps::Nothing), &[9.0, 5.0, 4.0]), "2f");
        assert_eq!(alarms(state(ClearKeeps::Nothing), &[9.0, 5.0, 4.0, 3.0]), "2f 4f");
    }

    #[test]
    fn the_informed_detector_clears_everything_at_the_switch() {
        let mut state = DetectorState::new(Detector::Known, ClearKeeps::Last, Some(2), 5);
        assert_eq!(state.episode_ended(1.0), None);
        let (alarm, keeps) = state.episode_ended(1.0).expect("the switch");
        assert_eq!((alarm.after_episode, alarm.verdict, keeps), (2, Verdict::Detection, ClearKeeps::Nothing));
        assert_eq!(state.episode_ended(0.0), None);
        assert_eq!(alarms(DetectorState::new(Detector::Known, ClearKeeps::Last, None, 5), &[1.0, 0.0]), "");
        assert_eq!(alarms(DetectorState::new(Detector::None, ClearKeeps::Last, Some(1), 5), &[1.0, 0.0]), "");
    }

    #[test]
    fn detectors_survive_text_and_back() {
        for text in ["none", "drop:0.8", "drop:0", "drop:1", "known"] {
            assert_eq!(text.parse::<Detector>().expect("a detector").to_string(), text);
        }
        for text in ["", "dorp:0.8", "drop", "drop:", "drop:1.5", "drop:nan", "none:1", "known:2"] {
            assert!(text.parse::<Detector>().is_err(), "{text}");
        }
        let error = "drop:high".parse::<Detector>().unwrap_err().to_string();
        assert!(error.contains("drop:high") && error.contains("C from 0 to 1"), "{error}");
        let error = "knwon".parse::<Detector>().unwrap_err().to_string();
        assert!(DETECTORS.iter().all(|entry| error.contains(entry.form)), "{error}");
    }
}
