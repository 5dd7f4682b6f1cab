//! Values with intervals, one row each.

use std::fmt::Write;

use crate::csv::quoted;
use crate::figures::intervals::{ROW, draw_axis, draw_row_name};
use crate::markup::{Markup, Px};
use crate::number;
use crate::stats::Interval;
use crate::svg::{SvgFragment, TEXT_SIZE, Ticks, round_ticks, span, text_width};

/// Rows of shares with intervals.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// The title.
    pub title: String,
    /// The label of the axis.
    pub label: String,
    /// The rows: a name, and a share with its interval.
    pub rows: Vec<(String, Interval)>,
    /// A share with a line of its own.
    pub mark: f64,
}

impl Ranges {
    /// The figure as text, for readers who cannot see it.
    pub(crate) fn description(&self) -> String {
        let row = |(name, interval): &(String, Interval)| {
            let [value, low, high] = [interval.value, interval.low, interval.high].map(number::percent);
            format!("{name} {value} ({low} to {high})")
        };
        format!("With 95\u{a0}% intervals: {}.", self.rows.iter().map(row).collect::<Vec<_>>().join(", "))
    }

    pub(super) fn draw(&self, width: f64) -> SvgFragment {
        let widest = self.rows.iter().map(|(name, _)| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
        let (left, right) = ((widest + 16.0).min(width * 0.42), width - 24.0);
        let values = self.rows.iter().flat_map(|(_, interval)| [interval.low, interval.high]);
        let (low, high) = span(values.chain([self.mark]));
        let ticks = round_ticks(low, high, ((right - left) / 80.0).clamp(2.0, 8.0) as usize, Ticks::Percent);
        let (low, high) = (ticks[0].min(low), ticks[ticks.len() - 1].max(high));
        let x = |value: f64| left + (value - low) / (high - low) * (right - left);
        let (top, bottom) = (10.0, 14.0 + self.rows.len() as f64 * ROW);
        let mut out = Markup::new();
        out.open("g", &[("class", &"compared")]);
        draw_axis(&ticks, Ticks::Percent, &x, (top, bottom, right), &self.label, &mut out);
        let path = format!("M{} {}V{}", Px(x(self.mark)), Px(top), Px(bottom));
        out.empty("path", &[("class", &"zero"), ("d", &path)]);
        for (place, (name, interval)) in self.rows.iter().enumerate() {
            let y = top + (place as f64 + 0.5) * ROW;
            draw_row_name(name, "", (y, left), &mut out);
            let path = format!("M{} {}H{}", Px(x(interval.low)), Px(y), Px(x(interval.high)));
            out.empty("path", &[("class", &"whisker"), ("d", &path)]);
            out.open(
                "circle",
                &[("class", &"mean"), ("cx", &Px(x(interval.value))), ("cy", &Px(y)), ("r", &5.5)],
            );
            out.leaf("title", &[], &format!("{name}: {}", number::percent(interval.value)));
            out.close("circle");
        }
        out.close("g");
        SvgFragment { width, height: bottom + 40.0, drawing: out }
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "row,value,low,high\n".to_owned();
        for (name, Interval { value, low, high }) in &self.rows {
            writeln!(text, "{},{value},{low},{high}", quoted(name)).expect("a string takes any text");
        }
        text
    }
}
