//! Progress, speed and remaining time of a run or a plan, as text. The command line prints it, reads the clock and measures the
//! terminal.

use std::fmt::Write as _;

/// The values of a progress line of a run.
#[derive(Clone, Copy, Debug)]
pub struct ProgressLine<'a> {
    /// Completed ego decisions, including those before a resume.
    pub n_steps: u64,
    /// The step budget.
    pub total_steps: u64,
    /// Smoothed steps per second, see [`SpeedMeter`]; `None` before the first measurement.
    pub steps_per_second: Option<f64>,
    /// Metrics to show, most important first. A narrow terminal shows only the first ones.
    pub values: &'a [(&'a str, f64)],
}

impl ProgressLine<'_> {
    /// One line for a terminal, at most `width` columns long: bar, counts, speed, time left and the metrics that fit.
    pub fn for_terminal(&self, width: usize) -> String {
        const BAR: usize = 20;
        let share = self.share();
        let speed = self.steps_per_second.map_or("?".to_owned(), short);
        let counts = format!(
            "{}/{}  {speed}/s  {} left",
            short_count(self.n_steps),
            short_count(self.total_steps),
            self.left()
        );
        let full = (share * BAR as f64) as usize;
        let bar = format!("[{}{}] ", "#".repeat(full), "-".repeat(BAR - full));
        // Rounded down, so that an unfinished run never shows 100.
        let mut line = format!("{:3}% ", (share * 100.0) as u32);
        if line.len() + bar.len() + counts.len() <= width {
            line.push_str(&bar);
        }
        line.push_str(&counts);
        let mut n_columns = line.len();
        for (name, value) in self.values {
            // The part before the slash groups curves; it is omitted to save space.
            let name = name.rsplit('/').next().unwrap_or(name);
            let shown = format!("  {name} {}", significant(*value));
            n_columns += shown.chars().count();
            if n_columns > width {
                break;
            }
            line.push_str(&shown);
        }
        line.chars().take(width).collect()
    }

    /// One line for a log: full numbers and names without spaces, so that it can be searched and split at spaces.
    pub fn for_log(&self) -> String {
        let percent = (self.share() * 1000.0).floor() / 10.0;
        let speed = self.steps_per_second.map_or("?".to_owned(), |speed| format!("{speed:.0}"));
        let mut line = format!(
            "step {}/{} {percent:.1}% {speed} steps/s {} left",
            self.n_steps,
            self.total_steps,
            self.left()
        );
        for (name, value) in self.values {
            write!(line, " {name}={}", significant(*value)).expect("writing to a string succeeds");
        }
        line
    }

    /// The completed fraction, from 0 to 1. A run without steps is complete.
    fn share(&self) -> f64 {
        if self.n_steps >= self.total_steps { 1.0 } else { self.n_steps as f64 / self.total_steps as f64 }
    }

    fn left(&self) -> String {
        let n_left = self.total_steps.saturating_sub(self.n_steps) as f64;
        match self.steps_per_second {
            _ if n_left == 0.0 => duration(0.0),
            Some(speed) if speed > 0.0 => duration(n_left / speed),
            _ => "?".to_owned(),
        }
    }
}

/// Progress of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabProgress {
    /// Number of runs that are trained and evaluated.
    pub n_done: usize,
    /// Number of runs.
    pub n_runs: usize,
    /// The completed fraction of all work, from 0 to 1.
    pub share: f64,
    /// The running tasks.
    pub running: Vec<String>,
    /// Estimated remaining time in seconds.
    pub secs_left: f64,
}

impl LabProgress {
    /// One line for a terminal, at most `width` columns long.
    pub fn for_terminal(&self, width: usize) -> String {
        const BAR: usize = 20;
        let full = (self.share * BAR as f64) as usize;
        let line = format!(
            "{:3}% [{}{}] {}/{} runs  {} left  {}",
            (self.share * 100.0) as u32,
            "#".repeat(full),
            "-".repeat(BAR - full),
            self.n_done,
            self.n_runs,
            duration(self.secs_left),
            self.running.join("; ")
        );
        line.chars().take(width).collect()
    }

    /// One line for a log.
    pub fn for_log(&self) -> String {
        format!(
            "{:.1}% {}/{} runs done, {} processes, {} left",
            (self.share * 1000.0).floor() / 10.0,
            self.n_done,
            self.n_runs,
            self.running.len(),
            duration(self.secs_left)
        )
    }
}

/// Steps per second, smoothed over about half a minute.
#[derive(Clone, Debug, Default)]
pub struct SpeedMeter {
    /// The last observation: seconds and steps.
    last: Option<(f64, u64)>,
    /// Exponentially weighted sums of the steps and of the seconds. Their ratio has no bias at the start.
    n_steps: f64,
    secs: f64,
}

impl SpeedMeter {
    const HALF_LIFE_SECS: f64 = 20.0;

    /// Adds an observation: `n_steps` completed at `at_secs` of a monotonic clock. Returns the speed from the second call on.
    pub fn observe(&mut self, n_steps: u64, at_secs: f64) -> Option<f64> {
        if let Some((last_secs, last_steps)) = self.last {
            let secs = (at_secs - last_secs).max(0.0);
            let keep = 0.5f64.powf(secs / Self::HALF_LIFE_SECS);
            self.n_steps = self.n_steps * keep + n_steps.saturating_sub(last_steps) as f64;
            self.secs = self.secs * keep + secs;
        }
        self.last = Some((at_secs, n_steps));
        (self.secs > 0.0).then(|| self.n_steps / self.secs)
    }
}

/// Formats a duration as hours, minutes and seconds, without leading zero units.
pub fn duration(secs: f64) -> String {
    // Also for infinity and not-a-number, as of a stalled run.
    if !(0.0..100.0 * 86_400.0).contains(&secs) {
        return ">100d".to_owned();
    }
    let secs = secs.ceil() as u64;
    let (hours, minutes, seconds) = (secs / 3600, secs / 60 % 60, secs % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds:02}s"),
        _ => format!("{hours}h{minutes:02}m{seconds:02}s"),
    }
}

/// Formats a number with three digits and a unit: 950, 1.25k, 31.4M. Rounded down, so that an incomplete count never looks
/// complete.
pub fn short(number: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (size, unit) in UNITS {
        if number >= size {
            let scaled = number / size;
            let decimals = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
            let grid = 10f64.powi(decimals as i32);
            let text = format!("{:.decimals$}", (scaled * grid).floor() / grid);
            let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            return format!("{text}{unit}");
        }
    }
    format!("{:.0}", number.floor())
}

fn short_count(count: u64) -> String {
    short(count as f64)
}

/// Formats a number with four significant digits, and with an exponent if it is very large or very small.
pub(crate) fn significant(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.3e}");
    }
    let whole_digits = size.log10().floor() as i32 + 1;
    format!("{value:.*}", (4 - whole_digits).clamp(0, 7) as usize)
}

#[cfg(test)]
mod tests {
    use super::{LabProgress, ProgressLine, SpeedMeter, duration, short, significant};

    const VALUES: &[(&str, f64)] = &[("charts/episodic_return", 0.04217), ("losses/approx_kl", 0.0123456)];

    fn line(n_steps: u64, steps_per_second: Option<f64>) -> ProgressLine<'static> {
        ProgressLine { n_steps, total_steps: 10_000_000, steps_per_second, values: VALUES }
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        assert_eq!(
            line(4_250_000, Some(118_234.5)).for_terminal(120),
            " 42% [########------------] 4.25M/10M  118k/s  49s left  episodic_return 0.04217  approx_kl 0.01235"
        );
    }

    #[test]
    fn a_narrow_terminal_loses_values_and_then_the_bar() {
        let line = line(4_250_000, Some(118_234.5));
        assert_eq!(
            line.for_terminal(82),
            " 42% [########------------] 4.25M/10M  118k/s  49s left  episodic_return 0.04217"
        );
        assert_eq!(line.for_terminal(60), " 42% [########------------] 4.25M/10M  118k/s  49s left");
        assert_eq!(line.for_terminal(40), " 42% 4.25M/10M  118k/s  49s left");
        for width in 0..130 {
            assert!(line.for_terminal(width).chars().count() <= width);
        }
    }

    #[test]
    fn a_log_has_whole_numbers_and_names() {
        assert_eq!(
            line(4_259_999, Some(1500.4)).for_log(),
            "step 4259999/10000000 42.5% 1500 steps/s 1h03m46s left \
             charts/episodic_return=0.04217 losses/approx_kl=0.01235"
        );
    }

    #[test]
    fn progress_lines_at_the_start_and_beyond_the_end() {
        assert!(line(0, None).for_log().starts_with("step 0/10000000 0.0% ? steps/s ? left"));
        assert!(line(0, Some(0.0)).for_log().contains(" ? left"));
        assert!(
            line(9_999_999, Some(1.0)).for_terminal(80).starts_with(" 99% [###################-] 9.99M/10M")
        );
        assert!(
            line(10_000_000, None)
                .for_terminal(80)
                .starts_with("100% [####################] 10M/10M  ?/s  0s left")
        );
        assert!(line(10_000_100, Some(5.0)).for_log().contains("100.0%"));
        let nothing = ProgressLine { n_steps: 0, total_steps: 0, steps_per_second: None, values: &[] };
        assert_eq!(nothing.for_log(), "step 0/0 100.0% ? steps/s 0s left");
    }

    #[test]
    fn progress_of_a_lab_is_one_line() {
        let progress = LabProgress {
            n_done: 3,
            n_runs: 12,
            share: 0.31,
            running: vec!["kuhn-poker pace paper s1".to_owned(), "overcooked lili paper s1".to_owned()],
            secs_left: 3723.0,
        };
        let line = " 31% [######--------------] 3/12 runs  1h02m03s left  kuhn-poker pace paper s1; overcooked lili paper s1";
        assert_eq!(progress.for_terminal(200), line);
        assert_eq!(progress.for_terminal(60), &line[..60]);
        assert_eq!(progress.for_log(), "31.0% 3/12 runs done, 2 processes, 1h02m03s left");
    }

    #[test]
    fn durations() {
        let check = |secs: f64, expected: &str| assert_eq!(duration(secs), expected);
        check(0.0, "0s");
        check(0.2, "1s");
        check(59.0, "59s");
        check(59.5, "1m00s");
        check(3599.0, "59m59s");
        check(3723.0, "1h02m03s");
        check(360_000.0, "100h00m00s");
        check(f64::INFINITY, ">100d");
        check(f64::NAN, ">100d");
    }

    #[test]
    fn numbers() {
        let check = |number: f64, expected: &str| assert_eq!(short(number), expected);
        check(0.0, "0");
        check(950.7, "950");
        check(1_000.0, "1k");
        check(1_250.0, "1.25k");
        check(31_415_926.0, "31.4M");
        check(999_999.0, "999k");
        check(2.5e9, "2.5G");
        let check = |value: f64, expected: &str| assert_eq!(significant(value), expected);
        check(0.0, "0");
        check(-1.23456, "-1.235");
        check(123_456.7, "123457");
        check(0.000_123_456, "0.0001235");
        check(1e-9, "1.000e-9");
        check(f64::NAN, "NaN");
    }

    #[test]
    fn speed_is_exact_when_constant_and_follows_changes() {
        let mut meter = SpeedMeter::default();
        assert_eq!(meter.observe(1_000_000, 5.0), None, "a resume is no burst");
        for second in 1..=10 {
            let speed = meter.observe(1_000_000 + 100 * second, 5.0 + second as f64).expect("two moments");
            assert!((speed - 100.0).abs() < 1e-9, "{speed}");
        }
        let mut speed = 0.0;
        for second in 1..=120 {
            speed = meter.observe(1_001_000 + 50 * second, 15.0 + second as f64).expect("two moments");
        }
        assert!((speed - 50.0).abs() < 1.0, "{speed}");
        assert!(meter.observe(1_007_000, 135.0).expect("known").is_finite(), "no time has passed");
    }
}
