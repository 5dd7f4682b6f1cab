//! Trains a run until it is finished or asked to stop, with progress on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use pace_games::Metric;
use pace_lab::{Dashboard, LabError, ProgressLine, RunView, SpeedMeter, StopFlag, TrainingRun};

/// The reason why the training loop ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrainingEnd {
    Finished,
    /// Asked to stop; a checkpoint was saved.
    Stopped,
}

/// Time between progress lines when standard error is not a terminal.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Metrics shown during training with their labels, the most important first.
const SHOWN: [(&str, &str); 6] = [
    ("charts/episodic_return", "return"),
    ("adapt/last_tenth", "last tenth"),
    ("charts/success", "success"),
    ("peer/top1", "identified"),
    ("embedding/cross_entropy", "embedding"),
    ("losses/entropy", "entropy"),
];

pub fn train_to_end(run: TrainingRun, stop: &StopFlag) -> Result<TrainingEnd, LabError> {
    let path = run.path().to_owned();
    advance_to_end(run, stop).map_err(|error| error.while_training(&path))
}

fn advance_to_end(mut run: TrainingRun, stop: &StopFlag) -> Result<TrainingEnd, LabError> {
    for warning in std::mem::take(&mut run.warnings) {
        crate::log_line(&format!("warning: {warning}"));
    }
    let metric = run.trainer().game().spec().metric;
    let mut display =
        if std::io::stderr().is_terminal() { Some(TrainingDisplay::new(&run, metric)?) } else { None };
    let begin = Instant::now();
    let mut meter = SpeedMeter::default();
    meter.observe(run.trainer().steps(), 0.0);
    let mut last_line: Option<Instant> = None;
    while let Some(report) = run.advance()? {
        let speed = meter.observe(report.steps, begin.elapsed().as_secs_f64());
        let values = shown(metric, |name| report.metrics.get(name).copied());
        let line = ProgressLine {
            n_steps: report.steps,
            total_steps: run.trainer().config().total_steps,
            steps_per_second: speed,
            values: &values,
        };
        let is_last = run.trainer().is_finished() || stop.requested().is_some();
        if let Some(display) = &mut display {
            display.show(&line, is_last);
        } else if is_last || last_line.is_none_or(|last| last.elapsed() >= LOG_EVERY) {
            last_line = Some(Instant::now());
            crate::log_line(&line.for_log());
        }
        if stop.requested().is_some() {
            break;
        }
    }
    let left = if run.trainer().is_finished() { TrainingEnd::Finished } else { TrainingEnd::Stopped };
    run.end()?;
    Ok(left)
}

/// The values of the shown metrics with their labels.
fn shown(metric: Metric, value_of: impl Fn(&str) -> Option<f64>) -> Vec<(&'static str, f64)> {
    SHOWN
        .iter()
        // Only games that are scored by success have a success rate.
        .filter(|(_, label)| *label != "success" || metric == Metric::Success)
        .filter_map(|(name, label)| value_of(name).map(|value| (*label, value)))
        .collect()
}

/// A dashboard on the terminal that is redrawn after every iteration.
struct TrainingDisplay {
    dashboard: Dashboard,
    /// Number of lines of the last drawing; the cursor is in the last of them.
    n_lines: usize,
}

impl TrainingDisplay {
    /// Creates the display with the recorded curves of a resumed run.
    fn new(run: &TrainingRun, metric: Metric) -> Result<TrainingDisplay, LabError> {
        let title = run.path().display().to_string();
        let mut dashboard = Dashboard::new(title, run.trainer().config().total_steps);
        for row in RunView::open(run.path())?.metrics()? {
            let value_of =
                |name: &str| row.values.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
            dashboard.push(row.step, &shown(metric, value_of));
        }
        Ok(TrainingDisplay { dashboard, n_lines: 0 })
    }

    fn show(&mut self, line: &ProgressLine<'_>, is_last: bool) {
        self.dashboard.push(line.n_steps, line.values);
        let (n_columns, n_rows) = terminal_size();
        // The last column stays free: some terminals begin a new line when it is written to.
        let n_columns = n_columns.saturating_sub(1);
        let mut lines = self.dashboard.lines(line, n_columns);
        if lines.len() >= n_rows {
            lines = vec![line.for_terminal(n_columns)];
        }
        let mut text = String::new();
        if self.n_lines > 1 {
            text.push_str(&format!("\x1b[{}A", self.n_lines - 1));
        }
        // Clears everything from here to the end of the screen.
        text.push_str("\r\x1b[J");
        text.push_str(&lines.join("\r\n"));
        if is_last {
            text.push_str("\r\n");
        }
        self.n_lines = lines.len();
        let mut out = std::io::stderr().lock();
        // Training continues when the terminal cannot be written to.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

/// Columns and rows of the terminal on standard error. Default: 80 and 24.
pub fn terminal_size() -> (usize, usize) {
    terminal_size::terminal_size_of(std::io::stderr())
        .map_or((80, 24), |(width, height)| (usize::from(width.0), usize::from(height.0)))
}
