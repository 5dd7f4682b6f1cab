//! Live learning curves of a run, as lines of text. The command line prints them and measures the terminal.

use crate::progress::{ProgressLine, significant};

/// Learning curves, one per metric, over the whole step budget.
#[derive(Clone, Debug)]
pub struct Dashboard {
    title: String,
    total_steps: u64,
    curves: Vec<Curve>,
}

#[derive(Clone, Debug)]
struct Curve {
    label: String,
    points: Vec<(u64, f64)>,
}

impl Dashboard {
    /// Creates a dashboard without curves.
    pub fn new(title: String, total_steps: u64) -> Dashboard {
        Dashboard { title, total_steps, curves: Vec::new() }
    }

    /// Adds the values at a step, each with the label of its curve. Curves are shown in the order of their first value.
    pub fn push(&mut self, step: u64, values: &[(&str, f64)]) {
        for (label, value) in values {
            let place = match self.curves.iter().position(|curve| curve.label == *label) {
                Some(place) => place,
                None => {
                    self.curves.push(Curve { label: (*label).to_owned(), points: Vec::new() });
                    self.curves.len() - 1
                }
            };
            self.curves[place].points.push((step, *value));
        }
    }

    /// Title, progress and curves for a terminal of `width` columns. No line is longer than `width`.
    pub fn lines(&self, progress: &ProgressLine<'_>, width: usize) -> Vec<String> {
        let bare = ProgressLine { values: &[], ..*progress };
        let mut lines = vec![self.title.clone(), bare.for_terminal(width)];
        let label_width = self.curves.iter().map(|curve| curve.label.chars().count()).max().unwrap_or(0);
        for curve in &self.curves {
            let last = curve.points.last().map_or(f64::NAN, |(_, value)| *value);
            // Space for the label, the last value, both ends of the range, and the blanks between them.
            let n_columns = width.saturating_sub(label_width + 36).min(60);
            let mut line = format!("{:label_width$}  {:>9}", curve.label, significant(last));
            if n_columns >= 10 {
                let (drawn, low, high) = curve.drawn(self.total_steps, n_columns);
                line.push_str(&format!("  {drawn}  {} to {}", significant(low), significant(high)));
            }
            lines.push(line);
        }
        lines.iter().map(|line| line.chars().take(width).collect()).collect()
    }
}

impl Curve {
    /// The curve in `n_columns` columns, with the lowest and highest value drawn.
    fn drawn(&self, total_steps: u64, n_columns: usize) -> (String, f64, f64) {
        const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let mut columns = vec![(0.0, 0usize); n_columns];
        for (step, value) in self.points.iter().filter(|(_, value)| value.is_finite()) {
            let column = (*step as f64 / total_steps.max(1) as f64 * n_columns as f64) as usize;
            let (sum, n) = &mut columns[column.min(n_columns - 1)];
            *sum += value;
            *n += 1;
        }
        let means: Vec<Option<f64>> =
            columns.iter().map(|(sum, n)| (*n > 0).then(|| sum / *n as f64)).collect();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for mean in means.iter().flatten() {
            (low, high) = (low.min(*mean), high.max(*mean));
        }
        let Some(end) = means.iter().rposition(Option::is_some) else {
            return ("·".repeat(n_columns), f64::NAN, f64::NAN);
        };
        let mut last = None;
        let drawn = means.iter().enumerate().map(|(column, mean)| {
            // A column without a value, between long iterations, repeats the last one.
            last = mean.or(last);
            match last {
                Some(value) if column <= end => {
                    let share = if high > low { (value - low) / (high - low) } else { 0.5 };
                    LEVELS[((share * 8.0) as usize).min(7)]
                }
                _ => '·',
            }
        });
        (drawn.collect(), low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::Dashboard;
    use crate::progress::ProgressLine;

    fn half_way() -> Dashboard {
        let mut dashboard = Dashboard::new("kuhn-poker, PACE".to_owned(), 1000);
        for step in (50..=500).step_by(50) {
            dashboard.push(step, &[("return", step as f64 / 1000.0), ("entropy", 0.7)]);
        }
        dashboard
    }

    fn line() -> ProgressLine<'static> {
        ProgressLine {
            n_steps: 500,
            total_steps: 1000,
            steps_per_second: Some(100.0),
            values: &[("return", 1.0)],
        }
    }

    #[test]
    fn curves_end_at_the_current_step() {
        assert_eq!(
            half_way().lines(&line(), 63),
            [
                "kuhn-poker, PACE",
                " 50% [##########----------] 500/1k  100/s  5s left",
                "return      0.5000  ·▁▁▂▃▄▅▆▇██·········  0.05000 to 0.5000",
                "entropy     0.7000  ·▅▅▅▅▅▅▅▅▅▅·········  0.7000 to 0.7000",
            ]
        );
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        for width in 0..120 {
            assert!(half_way().lines(&line(), width).iter().all(|line| line.chars().count() <= width));
        }
    }

    #[test]
    fn a_value_that_is_no_number_is_not_drawn() {
        let mut dashboard = Dashboard::new(String::new(), 100);
        dashboard.push(10, &[("return", f64::NAN)]);
        assert!(dashboard.lines(&line(), 80)[2].contains("···"));
        dashboard.push(20, &[("return", 1.0)]);
        assert!(dashboard.lines(&line(), 80)[2].contains("1.000 to 1.000"));
    }
}
