//! Have the peers changed? Rules that watch the scores of an encounter and say when its context is to be cleared.
//!
//! How a context forgets is in `context`; when peers really change is in `switch`.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use pace_games::ConfigError;

/// A rule that says when the context is cleared within an encounter.
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
    /// Exactly when the peers change: what an ego could reach that is told.
    Known,
}

/// One line of [`DETECTORS`].
#[derive(Clone, Copy, Debug)]
pub struct DetectorEntry {
    /// How it is written on the command line.
    pub form: &'static str,
    /// What it does, in one line.
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
        summary: "is told of the switch and clears everything exactly then",
        expected: "known, with nothing after it",
        read: |argument| argument.is_none().then_some(Detector::Known),
    },
];

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

/// What clearing leaves in the context. The paper says that the context is cleared; the authors' code keeps the episode that
/// gave the alarm, which was played with the new peers and is all that is known of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearKeeps {
    /// The episode just finished.
    Last,
    /// Nothing.
    Nothing,
}

impl ClearKeeps {
    /// Every choice, the default first.
    pub const ALL: [ClearKeeps; 2] = [ClearKeeps::Last, ClearKeeps::Nothing];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ClearKeeps::Last => "last",
            ClearKeeps::Nothing => "nothing",
        }
    }
}

impl FromStr for ClearKeeps {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<ClearKeeps, ConfigError> {
        ClearKeeps::ALL
            .into_iter()
            .find(|keeps| keeps.name() == text)
            .ok_or_else(|| ConfigError::unknown("keep-on-clear", text, ClearKeeps::ALL.map(ClearKeeps::name)))
    }
}

/// A detector said that the peers have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// After which episode, from 1.
    pub after_episode: usize,
    /// Whether it was so.
    pub verdict: Verdict,
}

/// Whether an alarm was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The peers had not changed.
    FalseAlarm,
    /// They had, and this is the first alarm since.
    Detection,
    /// They had, and it was known already.
    Repeated,
}

/// The detector's eye on one encounter.
#[derive(Clone, Debug)]
pub(crate) struct DetectorState {
    detector: Detector,
    keeps: ClearKeeps,
    /// Episodes with the first peers.
    switch_after: Option<usize>,
    /// The most finished episodes that the context has room for beside the current one.
    most_finished: usize,
    /// Their scores, as many as are in the context.
    scores: VecDeque<f64>,
    n_finished: usize,
    is_found: bool,
}

impl DetectorState {
    /// On an encounter whose context has room for `context_episodes` with the current one.
    pub(crate) fn new(
        detector: Detector,
        keeps: ClearKeeps,
        switch_after: Option<usize>,
        context_episodes: usize,
    ) -> DetectorState {
        DetectorState {
            detector,
            // The last episode before the switch says nothing about the peers after it.
            keeps: if detector == Detector::Known { ClearKeeps::Nothing } else { keeps },
            switch_after,
            most_finished: context_episodes.saturating_sub(1),
            scores: VecDeque::new(),
            n_finished: 0,
            is_found: false,
        }
    }

    /// Sees the score of an episode that is over; an alarm says what is to stay of the context.
    pub(crate) fn episode_ended(&mut self, score: f64) -> Option<(Alarm, ClearKeeps)> {
        self.n_finished += 1;
        self.scores.push_back(score);
        while self.scores.len() > self.most_finished {
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
        // Who is told knows before the first episode with the new peers, who must find out not before its end.
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
    fn alarms(mut watch: DetectorState, scores: &[f64]) -> String {
        let found = scores.iter().filter_map(|score| watch.episode_ended(*score)).map(|(alarm, _)| {
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
        let watch = DetectorState::new(Detector::Drop { share: 0.8 }, ClearKeeps::Last, Some(5), 5);
        assert_eq!(alarms(watch, &scores), expected, "{scores:?}");
    }

    #[test]
    fn with_successes_the_alarm_is_a_failure_after_a_success() {
        // One episode is never enough.
        check(&[0], "");
        check(&[1], "");
        check(&[0, 0], "");
        check(&[0, 1], "");
        check(&[1, 1], "");
        check(&[1, 0], "2f");
        // The failure that is kept is no success to fall from.
        check(&[1, 0, 0], "2f");
        check(&[1, 0, 1, 0], "2f 4f");
        // The peers change after the fifth episode.
        check(&[0, 0, 1, 1, 1, 0], "6r");
        check(&[0, 0, 1, 1, 1, 1, 0], "7r");
        check(&[0, 0, 1, 1, 0, 0, 1, 0, 1, 0], "5f 8r 10R");
        // Never a success, never an alarm.
        check(&[0; 10], "");
    }

    #[test]
    fn with_returns_the_alarm_lies_below_four_fifths_of_the_range() {
        let watch =
            |share, context| DetectorState::new(Detector::Drop { share }, ClearKeeps::Last, None, context);
        // Of −5 to −3 the threshold is −3.4.
        assert_eq!(alarms(watch(0.8, 9), &[-5.0, -3.0, -3.39]), "");
        assert_eq!(alarms(watch(0.8, 9), &[-5.0, -3.0, -3.41]), "3f");
        // A new lowest score moves the threshold, and is below it.
        assert_eq!(alarms(watch(0.8, 9), &[-5.0, -3.0, -9.0]), "3f");
        // At the ends: with 0 only below the lowest, which cannot be; with 1 whatever is not the highest.
        assert_eq!(alarms(watch(0.0, 9), &[3.0, 2.0, 1.0, 0.0]), "");
        assert_eq!(alarms(watch(1.0, 9), &[3.0, 3.0, 2.99]), "3f");
        // Whatever the rounding, no score is below itself.
        assert!((1..1000).all(|n| alarms(watch(0.8, 9), &[-0.1 * f64::from(n); 3]).is_empty()));
    }

    #[test]
    fn what_the_context_has_dropped_does_not_count() {
        let watch =
            |context| DetectorState::new(Detector::Drop { share: 0.8 }, ClearKeeps::Last, None, context);
        // While the bad first episode counts, a small loss is within the range.
        assert_eq!(alarms(watch(9), &[-10.0, 1.0, 1.0, 0.9]), "");
        // A context of four has room for three finished episodes.
        assert_eq!(alarms(watch(4), &[-10.0, 1.0, 0.9]), "");
        assert_eq!(alarms(watch(4), &[-10.0, 1.0, 1.0, 0.9]), "4f");
        // Room for one finished episode, or none: nothing to compare with.
        assert_eq!(alarms(watch(2), &[1.0, 0.0, 1.0, 0.0]), "");
        assert_eq!(alarms(watch(1), &[1.0, 0.0]), "");
    }

    #[test]
    fn who_keeps_nothing_needs_two_new_episodes() {
        let watch = |keeps| DetectorState::new(Detector::Drop { share: 0.8 }, keeps, None, 9);
        assert_eq!(alarms(watch(ClearKeeps::Last), &[9.0, 5.0, 4.0]), "2f 3f");
        assert_eq!(alarms(watch(ClearKeeps::Nothing), &[9.0, 5.0, 4.0]), "2f");
        assert_eq!(alarms(watch(ClearKeeps::Nothing), &[9.0, 5.0, 4.0, 3.0]), "2f 4f");
    }

    #[test]
    fn who_is_told_clears_everything_exactly_then() {
        let mut watch = DetectorState::new(Detector::Known, ClearKeeps::Last, Some(2), 5);
        assert_eq!(watch.episode_ended(1.0), None);
        let (alarm, keeps) = watch.episode_ended(1.0).expect("the switch");
        assert_eq!((alarm.after_episode, alarm.verdict, keeps), (2, Verdict::Detection, ClearKeeps::Nothing));
        assert_eq!(watch.episode_ended(0.0), None);
        assert_eq!(alarms(DetectorState::new(Detector::Known, ClearKeeps::Last, None, 5), &[1.0, 0.0]), "");
        assert_eq!(alarms(DetectorState::new(Detector::None, ClearKeeps::Last, Some(1), 5), &[1.0, 0.0]), "");
    }

    #[test]
    fn detectors_are_read_as_they_are_written() {
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
