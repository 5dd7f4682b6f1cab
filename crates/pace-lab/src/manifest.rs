//! What a run was, on which machine, when, and how it ended: the contents of `manifest.json`.
//!
//! The file is written by `run_folder`. It is the only place beside `timing.jsonl` where clocks may show.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use pace_games::config::plain_reason;
use serde::{Deserialize, Serialize};

use crate::durable;
use crate::error::LabError;

/// The format of the manifest and of the folder around it. It rises when an older reader would misread a run.
const FORMAT_VERSION: u32 = 1;

/// What the caller knows about a run when it starts. None of it changes on resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The version of this project.
    pub pace_version: String,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
    /// The compiler. Another one may round differently.
    pub rustc: String,
    /// The processor, such as [`cpu_model`] finds it.
    pub cpu_model: String,
    /// The vector instructions that the numerical code chose. Results are byte-identical within one choice.
    pub simd: String,
    /// The seed from which every random number comes.
    pub seed: u64,
    /// The command line.
    pub argv: Vec<String>,
    /// The game's id.
    pub game: String,
    /// The game's revision: with another one, observations or rewards mean something else.
    pub game_revision: u32,
    /// The method's id.
    pub method: String,
    /// The preset's name.
    pub preset: String,
    /// What the budgets were multiplied with: below 1 for a rehearsal, whose numbers mean nothing.
    #[serde(default = "full_budget")]
    pub scale: f64,
}

// Manifests from before there were rehearsals.
fn full_budget() -> f64 {
    1.0
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// A process trains it; or one did and was killed, if nobody holds the run's lock.
    Running,
    /// It did all its steps.
    Finished,
    /// It was asked to stop and saved a checkpoint; it can be resumed.
    Stopped,
    /// It met an error; the newest checkpoint is from before it.
    Failed,
}

/// The whole of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of this file.
    pub format_version: u32,
    /// What was known at the start.
    #[serde(flatten)]
    pub spec: RunSpec,
    /// When the run first started: RFC 3339, UTC.
    pub started_at: String,
    /// When it last ended; none while it runs.
    pub ended_at: Option<String>,
    /// Seconds spent, summed over resumes. Time since the last update of this file is lost when a process is killed.
    pub wall_clock_secs: f64,
    /// How often the run was resumed.
    pub n_resumes: u32,
    /// How it stands.
    pub status: RunStatus,
}

impl Manifest {
    /// The manifest of a run that starts now.
    pub(crate) fn starting(spec: RunSpec) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            spec,
            started_at: now(),
            ended_at: None,
            wall_clock_secs: 0.0,
            n_resumes: 0,
            status: RunStatus::Running,
        }
    }

    pub(crate) fn read(path: &Path) -> Result<Manifest, LabError> {
        let bad = |reason: String| LabError::BadManifest { path: path.to_owned(), reason };
        let text = durable::read_text(path)?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| bad(format!("found no JSON ({error})")))?;
        // The version first: a later format may lack or rename anything else.
        let version = value.get("format_version").and_then(serde_json::Value::as_u64);
        let found = version.ok_or_else(|| bad("found no format_version".to_owned()))?;
        if found != u64::from(FORMAT_VERSION) {
            let expected = FORMAT_VERSION;
            return Err(LabError::ManifestVersion { path: path.to_owned(), found, expected });
        }
        serde_json::from_value(value).map_err(|error| bad(plain_reason(&error.to_string())))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), LabError> {
        let mut text = serde_json::to_string_pretty(self).expect("a manifest is plain data");
        text.push('\n');
        durable::write_atomically(path, text.as_bytes())
    }
}

/// The processor's name as its system gives it, or "unknown".
pub fn cpu_model() -> String {
    // Only Linux has this file; other systems have no way without a dependency, and the name is for people only.
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim()).to_owned()
}

/// This moment as RFC 3339 in UTC, to the second.
pub(crate) fn now() -> String {
    // A clock before 1970 is set wrong; the epoch is as good as any other answer, and no reason to stop a run.
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Seconds since 1970 as a date. The days are counted in years that begin in March, so that leap days come last
/// (Howard Hinnant, `civil_from_days`); twenty lines that would not justify a dependency.
fn rfc3339(unix_secs: u64) -> String {
    let (days, second_of_day) = (unix_secs / 86_400, unix_secs % 86_400);
    // Day 0 is now the first of March of year 0; an era has 400 years and 146097 days.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{cpu_model, rfc3339};

    #[track_caller]
    fn check(unix_secs: u64, expected: &str) {
        assert_eq!(rfc3339(unix_secs), expected);
    }

    // The expectations are those of `date -u -d @SECONDS +%FT%TZ`.
    #[test]
    fn dates() {
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_868_800, "2000-03-01T00:00:00Z");
        check(1_735_689_599, "2024-12-31T23:59:59Z");
        check(1_763_220_421, "2025-11-15T15:27:01Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }

    #[test]
    fn the_processor_has_a_name() {
        assert!(!cpu_model().is_empty());
    }
}
