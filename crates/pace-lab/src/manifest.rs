//! `manifest.json`: the versions, machine, seed and command of a run, its times and its status.
//!
//! `run_folder` writes the file. Only this file, `timing.jsonl` and the TensorBoard events contain clock times.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pace_games::config::plain_reason;
use serde::{Deserialize, Serialize};

use crate::durable;
use crate::error::LabError;

/// The format version of the manifest and of the run folder. It increases when an older reader would misread a run.
const FORMAT_VERSION: u32 = 1;

/// Facts about a run at its start. They do not change on resume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The version of this project.
    pub pace_version: String,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
    /// The compiler version. Another compiler may round differently.
    pub rustc: String,
    /// The processor, as returned by [`cpu_model`].
    pub cpu_model: String,
    /// The SIMD instruction set of the numerical code. Results are byte-identical for the same instruction set.
    pub simd: String,
    /// The random seed.
    pub seed: u64,
    /// The command line.
    pub argv: Vec<String>,
    /// The game's id.
    pub game: String,
    /// The game's revision. Observations or rewards have another meaning in another revision.
    pub game_revision: u32,
    /// The method's id.
    pub method: String,
    /// The preset's name.
    pub preset: String,
    /// The factor for step budgets. Below 1 for a scaled run, whose scores are not results.
    #[serde(default = "full_budget")]
    pub scale: f64,
}

/// The default of `scale`, for manifests older than scaled runs.
fn full_budget() -> f64 {
    1.0
}

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// A process is training it. If no process holds the run's lock, that process was killed.
    Running,
    /// It used its whole step budget.
    Finished,
    /// It was stopped by the user and saved a checkpoint; it can be resumed.
    Stopped,
    /// It ended with an error. Its newest checkpoint is from before the error.
    Failed,
}

impl Display for RunStatus {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RunStatus::Running => "running",
            RunStatus::Finished => "finished",
            RunStatus::Stopped => "stopped",
            RunStatus::Failed => "failed",
        })
    }
}

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format version of this file.
    pub format_version: u32,
    /// The facts recorded at the start.
    #[serde(flatten)]
    pub spec: RunSpec,
    /// The time of the first start: RFC 3339, UTC.
    pub started_at: String,
    /// The time of the last end; `None` while the run is in training.
    pub ended_at: Option<String>,
    /// Training time in seconds, summed over resumes. When a process is killed, the time since the last update is lost.
    pub wall_clock_secs: f64,
    /// Number of resumes.
    pub n_resumes: u32,
    /// The status.
    pub status: RunStatus,
    /// The BLAKE3 hashes of the final weights in a recorded run, by path in the run folder; empty for other runs. A recorded run
    /// has no optimiser state, so it cannot be resumed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, String>,
}

impl Manifest {
    /// Creates the manifest of a run that starts now.
    pub(crate) fn starting(spec: RunSpec) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            spec,
            started_at: now(),
            ended_at: None,
            wall_clock_secs: 0.0,
            n_resumes: 0,
            status: RunStatus::Running,
            weights: BTreeMap::new(),
        }
    }

    /// Whether this is a recorded run, made by `keep`.
    pub fn is_recorded(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Rejects weights in the folder of a recorded run that are not those recorded. `file` is their path in the folder.
    pub(crate) fn check_weights(&self, run: &Path, file: &str, weights: &[u8]) -> Result<(), LabError> {
        let hash = || blake3::hash(weights).to_hex();
        if !self.is_recorded() || self.weights.get(file).is_some_and(|known| *known == *hash()) {
            return Ok(());
        }
        let path: PathBuf = run.join(file);
        Err(LabError::OtherWeights { path })
    }

    pub(crate) fn read(path: &Path) -> Result<Manifest, LabError> {
        let bad = |reason: String| LabError::BadManifest { path: path.to_owned(), reason };
        let text = durable::read_text(path)?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| bad(format!("found no JSON ({error})")))?;
        // The version is checked first: a later format may lack or rename any other field.
        let version = value.get("format_version").and_then(serde_json::Value::as_u64);
        let found = version.ok_or_else(|| bad("found no format_version".to_owned()))?;
        if found != u64::from(FORMAT_VERSION) {
            let expected = FORMAT_VERSION;
            return Err(LabError::ManifestVersion { path: path.to_owned(), found, expected });
        }
        serde_json::from_value(value).map_err(|error| bad(plain_reason(&error.to_string())))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), LabError> {
        durable::write_atomically(path, self.to_json().as_bytes())
    }

    pub(crate) fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a manifest is plain data");
        text.push('\n');
        text
    }
}

/// The name of the processor from the operating system, or "unknown".
pub fn cpu_model() -> String {
    // Only Linux has this file. Other systems would need a dependency, and the name is only informative.
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim()).to_owned()
}

/// The current time as RFC 3339 in UTC, in whole seconds.
pub(crate) fn now() -> String {
    // A clock before 1970 is set wrong. The run continues with the epoch as its time.
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// Formats seconds since 1970 as a date. Years are counted from March, so that leap days come last (Howard Hinnant,
/// `civil_from_days`). The function is too short to justify a dependency.
fn rfc3339(unix_secs: u64) -> String {
    let (days, second_of_day) = (unix_secs / 86_400, unix_secs % 86_400);
    // Day 0 of `shifted` is March 1 of year 0; an era has 400 years, or 146097 days.
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

    // The expected dates are the output of `date -u -d @SECONDS +%FT%TZ`.
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
    fn cpu_model_is_not_empty() {
        assert!(!cpu_model().is_empty());
    }
}
