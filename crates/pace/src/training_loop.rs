//! A run to its end or to a wish to stop, with progress on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use pace_games::Metric;
use pace_lab::{LabError, ProgressLine, SpeedMeter, StopFlag, TrainingRun};

/// How a run left the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Finished,
    /// Asked to stop; a checkpoint was saved.
    Stopped,
}

/// Plain lines come this often when nobody watches.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// The numbers a person wants to see while waiting, the most important first.
const SHOWN: [(&str, &str); 6] = [
    ("charts/episodic_return", "return"),
    ("adapt/last_tenth", "late"),
    ("charts/success", "success"),
    ("peer/top1", "identified"),
    ("embedding/cross_entropy", "embedding"),
    ("losses/entropy", "entropy"),
];

pub fn train_to_end(mut run: TrainingRun, stop: &StopFlag) -> Result<Left, LabError> {
    for warning in std::mem::take(&mut run.warnings) {
        crate::say(&format!("warning: {warning}"));
    }
    let is_terminal = std::io::stderr().is_terminal();
    let metric = run.trainer().game().spec().metric;
    let begin = Instant::now();
    let mut meter = SpeedMeter::default();
    meter.observe(run.trainer().steps(), 0.0);
    let mut last_line: Option<Instant> = None;
    while let Some(report) = run.advance()? {
        let speed = meter.observe(report.steps, begin.elapsed().as_secs_f64());
        let values: Vec<(&str, f64)> = SHOWN
            .iter()
            // A game without a goal has no success to show.
            .filter(|(_, label)| *label != "success" || metric == Metric::Success)
            .filter_map(|(name, label)| report.metrics.get(name).map(|value| (*label, *value)))
            .collect();
        let line = ProgressLine {
            n_steps: report.steps,
            total_steps: run.trainer().config().total_steps,
            steps_per_second: speed,
            values: &values,
        };
        let is_last = run.trainer().is_finished() || stop.requested().is_some();
        if is_terminal {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[2K{}", line.for_terminal(terminal_columns()));
            let _ = if is_last { writeln!(out) } else { out.flush() };
        } else if is_last || last_line.is_none_or(|last| last.elapsed() >= LOG_EVERY) {
            last_line = Some(Instant::now());
            crate::say(&line.for_log());
        }
        if stop.requested().is_some() {
            break;
        }
    }
    let left = if run.trainer().is_finished() { Left::Finished } else { Left::Stopped };
    run.end()?;
    Ok(left)
}

/// Columns of the terminal, if the environment says so; else as many as any terminal of today has.
pub fn terminal_columns() -> usize {
    std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(110)
}
