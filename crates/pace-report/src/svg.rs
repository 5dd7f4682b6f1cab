//! Line charts as SVG: axes with round ticks, lines with bands, and labels at the ends of lines that do not overlap.
//!
//! `figures` creates the charts. Colours are CSS classes with a light and a dark value. Every line also has its own dashes and its
//! name, so that no information is in colour alone.

use std::fmt::Write;

use crate::markup::{Markup, Px};
use crate::number;

/// A line chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The subtitle: the data and its conditions.
    pub subtitle: String,
    /// The chart as text, for readers who cannot see it.
    pub description: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines. The first is drawn on top.
    pub series: Vec<Series>,
    /// The label of the shaded bands in the legend, if there are any.
    pub band: Option<String>,
    /// Vertical marks.
    pub marks: Vec<Mark>,
}

/// A labelled vertical line.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its horizontal position.
    pub x: f64,
    /// Its label.
    pub label: String,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity with its unit.
    pub label: String,
    /// The range. Default: that of the points.
    pub domain: Option<(f64, f64)>,
    /// The range of possible values, such as 0 to 1 for a share; the axis does not exceed it. Default: no limits.
    pub limits: Option<(f64, f64)>,
    /// The format of its numbers.
    pub ticks: Ticks,
}

/// The format of the numbers on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// Decimals.
    Plain,
    /// Whole numbers, for example of episodes.
    Whole,
    /// Per cent.
    Percent,
    /// Numbers of steps: 250k, 1.5M.
    Steps,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name, which is also drawn at its end.
    pub name: String,
    /// Its style.
    pub style: LineStyle,
    /// Its points, from left to right.
    pub points: Vec<ChartPoint>,
    /// Decimals of the last value, which is drawn after the name. Default: no value is drawn.
    pub end_decimals: Option<usize>,
}

/// A point of a line.
#[derive(Clone, Debug)]
pub struct ChartPoint {
    /// Its horizontal value.
    pub x: f64,
    /// Its vertical value.
    pub y: f64,
    /// The ends of the band.
    pub band: Option<(f64, f64)>,
    /// The text shown when the pointer is on it.
    pub note: Option<String>,
}

/// Colour and dashes of a line. Reference agents have colours in the chart of a single agent. In a chart of several methods they
/// are grey, so that every colour stands for a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStyle {
    /// The agent of the chart: solid and strong.
    Agent,
    /// The reference agent that knows its peers.
    Oracle,
    /// The reference agent that infers its peers.
    Bayes,
    /// The reference agent that never adapts.
    Static,
    /// The reference agent that plays an equilibrium.
    Nash,
    /// The reference agent that acts randomly.
    Random,
    /// Any other line in the chart of an agent, by number.
    Other(usize),
    /// One of several compared methods or variants, by number.
    Compared(usize),
}

/// The size of a chart, and the parts to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartFrame {
    /// The width.
    pub width: f64,
    /// The height.
    pub height: f64,
    /// Whether to draw title and subtitle; on a page they are in the text around the chart.
    pub heading: bool,
    /// Whether to draw the names of lines at their ends and in a legend. A single line is named by the title.
    pub names: bool,
}

/// Light and dark colours of figures and pages. A test checks them: lines have a contrast of at least 3 to 1, text colours 4.5 to 1,
/// and the lines of a chart are distinguishable with any colour vision.
pub(crate) const PALETTE: &str = "
:root{color-scheme:light dark;--agent:var(--c0);--bayes:var(--c1);--oracle:var(--c2);--static:var(--c3);--nash:var(--muted);--random:var(--c7);--other0:var(--c4);--other1:var(--c5);--other2:var(--c8)}
:root{--paper:#fff;--panel:#f6f7f9;--ink:#1b1f24;--muted:#59616b;--rule:#dfe3e8;--bad:#b3261e;--c0:#0a58c2;--c1:#b85506;--c2:#275902;--c3:#77368f;--c4:#b0123a;--c5:#04a5ab;--c6:#a09655;--c7:#6f113d;--c8:#7c74e3}
@media (prefers-color-scheme:dark){:root{--paper:#14171c;--panel:#1d2128;--ink:#e8eaed;--muted:#a4acb6;--rule:#323841;--bad:#ff8a80;--c0:#78b4ff;--c1:#d47e0b;--c2:#64ff93;--c3:#7d6493;--c4:#ca3833;--c5:#259b8a;--c6:#d1bb01;--c7:#fec5e6;--c8:#9070fc}}
@media print{:root{--paper:#fff;--panel:#f6f7f9;--ink:#1b1f24;--muted:#59616b;--rule:#dfe3e8;--bad:#b3261e;--c0:#0a58c2;--c1:#b85506;--c2:#275902;--c3:#77368f;--c4:#b0123a;--c5:#04a5ab;--c6:#a09655;--c7:#6f113d;--c8:#7c74e3}}
";

/// The CSS classes of other lines, such as reference agents without their own class.
const OTHERS: [&str; 3] = ["reference other0", "reference other1", "reference other2"];

/// The CSS classes of compared lines.
pub(crate) const COMPARED: [&str; 9] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

/// The CSS classes of the tenth compared line and later ones: the same colours with other dashes.
const COMPARED_AFTER: [&str; 9] = [
    "c0 after", "c1 after", "c2 after", "c3 after", "c4 after", "c5 after", "c6 after", "c7 after",
    "c8 after",
];

/// The style sheet of figures, in pages and in separate files.
pub(crate) const STYLE: &str = "
.pace-figure{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:12px;font-variant-numeric:tabular-nums}
.pace-figure text{fill:var(--ink)}
.pace-figure .paper{fill:var(--paper)}
.pace-figure .title{font-size:15px;font-weight:600}
.pace-figure .quiet{fill:var(--muted)}
.pace-figure .grid{stroke:var(--rule);stroke-width:1}
.pace-figure .zero{stroke:var(--muted);stroke-width:1}
.pace-figure .line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
.pace-figure .band{stroke:none;opacity:.2}
.pace-figure .leader{fill:none;stroke-width:1.25}
.pace-figure .agent.line{stroke-width:2.75}
.pace-figure .oracle.line{stroke-dasharray:9 5}
.pace-figure .bayes.line{stroke-dasharray:8 4 1 4}
.pace-figure .static.line{stroke-dasharray:4 5}
.pace-figure .nash.line{stroke-dasharray:1 5}
.pace-figure .random.line{stroke-dasharray:14 4 1 4 1 4}
.pace-figure .other0.line{stroke-dasharray:5 4}
.pace-figure .other1.line{stroke-dasharray:12 3 3 3}
.pace-figure .other2.line{stroke-dasharray:2 3}
.pace-figure .agent{--line:var(--agent)}
.pace-figure .oracle{--line:var(--oracle)}
.pace-figure .bayes{--line:var(--bayes)}
.pace-figure .static{--line:var(--static)}
.pace-figure .nash{--line:var(--nash)}
.pace-figure .random{--line:var(--random)}
.pace-figure .other0{--line:var(--other0)}
.pace-figure .other1{--line:var(--other1)}
.pace-figure .other2{--line:var(--other2)}
.pace-figure .c0{--line:var(--c0)}
.pace-figure .c1{--line:var(--c1)}
.pace-figure .c2{--line:var(--c2)}
.pace-figure .c3{--line:var(--c3)}
.pace-figure .c4{--line:var(--c4)}
.pace-figure .c5{--line:var(--c5)}
.pace-figure .c6{--line:var(--c6)}
.pace-figure .c7{--line:var(--c7)}
.pace-figure .c8{--line:var(--c8)}
.pace-figure .compared .reference{--line:var(--muted)}
.pace-figure .line,.pace-figure .leader{stroke:var(--line)}
.pace-figure .band,.pace-figure .dot{fill:var(--line)}
.pace-figure .dot{stroke:var(--paper);stroke-width:1.5}
.pace-figure text.agent,.pace-figure text.c0{font-weight:600}
.pace-figure .c0.line{stroke-width:2.75}
.pace-figure .c1.line{stroke-dasharray:9 5}
.pace-figure .c2.line{stroke-dasharray:4 4}
.pace-figure .c3.line{stroke-dasharray:10 4 2 4}
.pace-figure .c4.line{stroke-dasharray:2 4}
.pace-figure .c5.line{stroke-dasharray:14 4}
.pace-figure .c6.line{stroke-dasharray:6 3 2 3}
.pace-figure .c7.line{stroke-dasharray:1 4}
.pace-figure .c8.line{stroke-dasharray:12 3 3 3}
.pace-figure .after.line{stroke-width:1.75;stroke-dasharray:18 3 1 3}
.pace-figure text.after{font-weight:400}
.pace-figure .dot.speck{stroke:none}
.pace-figure .heat{fill:var(--agent);stroke:var(--paper);stroke-width:2}
.pace-figure .blank{fill:var(--panel);stroke:var(--paper);stroke-width:2}
.pace-figure .on-heat{fill:var(--paper)}
.pace-figure .whisker{fill:none;stroke:var(--agent);stroke-width:2}
.pace-figure .mean{fill:var(--agent);stroke:var(--paper);stroke-width:1}
.pace-figure .seed{fill:var(--agent);opacity:.45}
.pace-figure .papers{fill:var(--paper);stroke:var(--muted);stroke-width:1.75}
.pace-figure .papers-whisker{fill:none;stroke:var(--muted);stroke-width:1.25}
.pace-figure .scaled{fill:var(--bad)}
";

pub(crate) const TEXT_SIZE: f64 = 12.0;
const TITLE_SIZE: f64 = 15.0;
const LINE_HEIGHT: f64 = 17.0;

/// The width of a line sample in a legend.
const SWATCH: f64 = 26.0;

/// An entry of a legend with its position.
#[derive(Debug)]
struct LegendEntry<'a> {
    /// The style of its line; `None` for the band.
    style: Option<LineStyle>,
    name: &'a str,
    x: f64,
    line: usize,
}

impl Chart {
    /// The chart as a separate file with its style sheet.
    pub fn document(&self, frame: ChartFrame) -> String {
        document(frame.width, frame.height, &self.title, &self.description, &self.draw(frame))
    }

    /// The chart for a page that has the style sheet. `id` must be unique on the page.
    pub(crate) fn inline(&self, frame: ChartFrame, id: &str) -> Markup {
        inline(frame.width, frame.height, id, &self.title, &self.description, &self.draw(frame))
    }

    /// Draws the chart without the `svg` element around it.
    pub(crate) fn draw(&self, frame: ChartFrame) -> Markup {
        self.draw_from(frame, 0.0)
    }

    /// The horizontal position of the vertical axis, which leaves space for its numbers.
    pub(crate) fn axis_position(&self, frame: ChartFrame) -> f64 {
        self.plot(frame, 0.0, 0.0).left
    }

    /// Like `draw`, but with the vertical axis at `min_left` or further right, so that the axes of several panels are aligned.
    pub(crate) fn draw_from(&self, frame: ChartFrame, min_left: f64) -> Markup {
        let mut out = Markup::new();
        let compares = self.series.iter().any(|series| matches!(series.style, LineStyle::Compared(_)));
        out.open("g", if compares { &[("class", &"compared")] } else { &[] });
        let mut top = 4.0;
        if frame.heading {
            top = self.draw_heading(frame, top, &mut out);
        }
        if frame.names {
            top = self.draw_legend(frame, top, &mut out);
        }
        let plot = self.plot(frame, top, min_left);
        self.draw_axes(&plot, &mut out);
        self.draw_marks(&plot, &mut out);
        // The first line is drawn last, on top of the others.
        for series in self.series.iter().rev() {
            series.draw(&plot, &mut out);
        }
        if self.has_end_labels(frame) {
            self.draw_end_labels(&plot, &mut out);
        }
        out.close("g");
        out
    }

    fn draw_heading(&self, frame: ChartFrame, top: f64, out: &mut Markup) -> f64 {
        let mut y = top;
        for line in wrap(&self.title, TITLE_SIZE, frame.width) {
            y += TITLE_SIZE + 2.0;
            out.leaf("text", &[("class", &"title"), ("x", &0), ("y", &Px(y))], &line);
        }
        for line in wrap(&self.subtitle, TEXT_SIZE, frame.width) {
            y += LINE_HEIGHT;
            out.leaf("text", &[("class", &"quiet"), ("x", &0), ("y", &Px(y))], &line);
        }
        y + 8.0
    }

    /// The height of the legend at this width, including the space below it.
    pub(crate) fn legend_height(&self, width: f64) -> f64 {
        let last = self.legend(width).last().map(|entry| entry.line);
        last.map_or(0.0, |line| 21.0 + LINE_HEIGHT * line as f64)
    }

    /// The entries of the legend with their positions; empty for a single line, which is named by the title.
    fn legend(&self, width: f64) -> Vec<LegendEntry<'_>> {
        let named = self.series.iter().filter(|series| series.has_points());
        let mut names: Vec<(Option<LineStyle>, &str)> =
            named.map(|series| (Some(series.style), &*series.name)).collect();
        names.extend(self.band.as_deref().map(|band| (None, band)));
        if names.len() < 2 {
            return Vec::new();
        }
        let (mut x, mut line) = (0.0, 0);
        let place = |(style, name)| {
            let entry_width = SWATCH + 6.0 + text_width(name, TEXT_SIZE);
            if x > 0.0 && x + entry_width > width {
                (x, line) = (0.0, line + 1);
            }
            let entry = LegendEntry { style, name, x, line };
            x += entry_width + 16.0;
            entry
        };
        names.into_iter().map(place).collect()
    }

    fn draw_legend(&self, frame: ChartFrame, top: f64, out: &mut Markup) -> f64 {
        for LegendEntry { style, name, x, line } in self.legend(frame.width) {
            let y = top + 13.0 + LINE_HEIGHT * line as f64;
            match style {
                Some(style) => {
                    let path = format!("M{} {}h{SWATCH}", Px(x), Px(y - 4.0));
                    out.empty("path", &[("class", &format!("line {}", style.class())), ("d", &path)]);
                }
                None => out.empty(
                    "rect",
                    &[
                        ("class", &"band agent"),
                        ("x", &Px(x)),
                        ("y", &Px(y - 9.0)),
                        ("width", &SWATCH),
                        ("height", &10),
                    ],
                ),
            }
            out.leaf("text", &[("class", &"quiet"), ("x", &Px(x + SWATCH + 6.0)), ("y", &Px(y))], name);
        }
        top + self.legend_height(frame.width)
    }

    fn widest_end_label(&self) -> f64 {
        let widths = self.series.iter().map(|series| text_width(&series.end_label(), TEXT_SIZE));
        widths.fold(0.0, f64::max)
    }

    /// Whether names are drawn at the ends of lines. Long names are only in the legend.
    fn has_end_labels(&self, frame: ChartFrame) -> bool {
        frame.names && self.widest_end_label() <= 0.35 * frame.width
    }

    fn plot(&self, frame: ChartFrame, top: f64, min_left: f64) -> Plot {
        let points = || self.series.iter().flat_map(Series::finite_points);
        let xs = points().map(|point| point.x);
        let ys = points().flat_map(|point| {
            let (low, high) = point.band.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let (x_low, x_high) = self.x.domain.unwrap_or_else(|| span(xs));
        let (y_low, y_high) = self.y.domain.unwrap_or_else(|| span(ys));
        let (min, max) = self.y.limits.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let (y_low, y_high) = (y_low.max(min), y_high.min(max));
        // The label of the vertical axis is above it, not rotated.
        let label_space = if self.y.label.is_empty() { 10.0 } else { LINE_HEIGHT + 16.0 };
        let bottom_space = if self.x.label.is_empty() { 20.0 } else { 38.0 };
        let (top, bottom) = (top + label_space, frame.height - bottom_space);
        let n_rows = ((bottom - top) / 38.0).clamp(2.0, 8.0) as usize;
        let y_ticks = round_ticks(y_low, y_high, n_rows, self.y.ticks);
        // An axis without a given range ends at its ticks.
        let (y_low, y_high) = match (self.y.domain, &y_ticks[..]) {
            (None, [first, .., last]) => (first.min(y_low).max(min), last.max(y_high).min(max)),
            _ => (y_low, y_high),
        };
        let step = y_ticks.get(1).map_or(1.0, |second| second - y_ticks[0]);
        let y_labels: Vec<String> = y_ticks.iter().map(|tick| self.y.ticks.label(*tick, step)).collect();
        let label_widths = y_labels.iter().map(|label| text_width(label, TEXT_SIZE));
        let left = (label_widths.fold(0.0, f64::max) + 8.0).max(min_left);
        let right_space = if self.has_end_labels(frame) { self.widest_end_label() + 16.0 } else { 14.0 };
        let right = frame.width - right_space;
        let tick_width = if self.x.ticks == Ticks::Whole { 36.0 } else { 48.0 };
        let n_columns = ((right - left) / tick_width).clamp(2.0, 10.0) as usize;
        let x_ticks: Vec<f64> = round_ticks(x_low, x_high, n_columns, self.x.ticks)
            .into_iter()
            .filter(|tick| (x_low..=x_high).contains(tick))
            .collect();
        let y_ticks = y_ticks
            .into_iter()
            .zip(y_labels)
            .filter(|(tick, _)| (y_low - 1e-9..=y_high + 1e-9).contains(tick))
            .collect();
        Plot { left, right, top, bottom, x_low, x_high, y_low, y_high, x_ticks, y_ticks }
    }

    fn draw_axes(&self, plot: &Plot, out: &mut Markup) {
        for (tick, label) in &plot.y_ticks {
            let y = plot.y(*tick);
            // The line at zero is emphasised, unless it is the lowest one.
            let class = if *tick == 0.0 && plot.y_low < 0.0 { "zero" } else { "grid" };
            let path = format!("M{} {}H{}", Px(plot.left), Px(y), Px(plot.right));
            out.empty("path", &[("class", &class), ("d", &path)]);
            out.leaf(
                "text",
                &[
                    ("class", &"quiet"),
                    ("x", &Px(plot.left - 8.0)),
                    ("y", &Px(y + 4.0)),
                    ("text-anchor", &"end"),
                ],
                label,
            );
        }
        let step = plot.x_ticks.get(1).map_or(1.0, |second| second - plot.x_ticks[0]);
        for tick in &plot.x_ticks {
            let x = plot.x(*tick);
            let path = format!("M{} {}v4", Px(x), Px(plot.bottom));
            out.empty("path", &[("class", &"grid"), ("d", &path)]);
            out.leaf(
                "text",
                &[
                    ("class", &"quiet"),
                    ("x", &Px(x)),
                    ("y", &Px(plot.bottom + 17.0)),
                    ("text-anchor", &"middle"),
                ],
                &self.x.ticks.label(*tick, step),
            );
        }
        if !self.x.label.is_empty() {
            out.leaf(
                "text",
                &[
                    ("class", &"quiet"),
                    ("x", &Px(plot.right)),
                    ("y", &Px(plot.bottom + 33.0)),
                    ("text-anchor", &"end"),
                ],
                &self.x.label,
            );
        }
        if !self.y.label.is_empty() {
            out.leaf("text", &[("class", &"quiet"), ("x", &0), ("y", &Px(plot.top - 15.0))], &self.y.label);
        }
    }

    fn draw_marks(&self, plot: &Plot, out: &mut Markup) {
        for mark in self.marks.iter().filter(|mark| (plot.x_low..=plot.x_high).contains(&mark.x)) {
            let x = plot.x(mark.x);
            let path = format!("M{} {}V{}", Px(x), Px(plot.top), Px(plot.bottom));
            out.empty("path", &[("class", &"zero"), ("stroke-dasharray", &"3 4"), ("d", &path)]);
            // On the text line of the axis label, which is at the right, so that the label overlaps neither it nor the curves.
            let half = text_width(&mark.label, TEXT_SIZE) / 2.0;
            let end = plot.right - text_width(&self.x.label, TEXT_SIZE) - 10.0;
            let middle = x.min(end - half).max(half);
            out.leaf(
                "text",
                &[
                    ("class", &"quiet"),
                    ("x", &Px(middle)),
                    ("y", &Px(plot.bottom + 33.0)),
                    ("text-anchor", &"middle"),
                ],
                &mark.label,
            );
        }
    }

    fn draw_end_labels(&self, plot: &Plot, out: &mut Markup) {
        let ends: Vec<(&Series, f64, f64)> = self
            .series
            .iter()
            .filter_map(|series| {
                let last = series.finite_points().last()?;
                Some((series, plot.x(last.x), plot.y(last.y)))
            })
            .collect();
        let wanted: Vec<f64> = ends.iter().map(|(_, _, y)| *y).collect();
        let places = spread(&wanted, 15.0, plot.top, plot.bottom);
        for ((series, x, y), place) in ends.into_iter().zip(places) {
            let class = series.style.class();
            let label_x = plot.right + 12.0;
            // Connects the end of the line with its name, which may have been moved.
            let path = format!(
                "M{} {}L{} {}L{} {}",
                Px(x + 3.0),
                Px(y),
                Px(plot.right.max(x + 3.0)),
                Px(y),
                Px(label_x - 3.0),
                Px(place)
            );
            out.empty("path", &[("class", &format!("leader {class}")), ("d", &path)]);
            out.leaf(
                "text",
                &[("class", &class), ("x", &Px(label_x)), ("y", &Px(place + 4.0))],
                &series.end_label(),
            );
        }
    }
}

impl Series {
    fn finite_points(&self) -> impl Iterator<Item = &ChartPoint> {
        self.points.iter().filter(|point| point.x.is_finite() && point.y.is_finite())
    }

    fn has_points(&self) -> bool {
        self.finite_points().next().is_some()
    }

    fn end_label(&self) -> String {
        match (self.end_decimals, self.finite_points().last()) {
            (Some(decimals), Some(last)) => format!("{} {}", self.name, number::typeset(last.y, decimals)),
            _ => self.name.clone(),
        }
    }

    fn draw(&self, plot: &Plot, out: &mut Markup) {
        let class = self.style.class();
        let mut upper = String::new();
        let mut lower = String::new();
        let mut line = String::new();
        for point in self.finite_points() {
            let x = Px(plot.x(point.x));
            let mark = if line.is_empty() { 'M' } else { 'L' };
            write!(line, "{mark}{x} {}", Px(plot.y(point.y))).expect("a string takes any text");
            if let Some((low, high)) = point.band.filter(|(low, high)| low.is_finite() && high.is_finite()) {
                let mark = if upper.is_empty() { 'M' } else { 'L' };
                write!(upper, "{mark}{x} {}", Px(plot.y(high))).expect("a string takes any text");
                lower = format!("L{x} {}{lower}", Px(plot.y(low)));
            }
        }
        if line.is_empty() {
            return;
        }
        if !upper.is_empty() {
            let path = format!("{upper}{lower}Z");
            out.empty("path", &[("class", &format!("band {class}")), ("d", &path)]);
        }
        out.empty("path", &[("class", &format!("line {class}")), ("d", &line)]);
        for point in self.finite_points() {
            let Some(note) = &point.note else { continue };
            let (x, y) = (Px(plot.x(point.x)), Px(plot.y(point.y)));
            out.open("circle", &[("class", &format!("dot {class}")), ("cx", &x), ("cy", &y), ("r", &4)]);
            out.leaf("title", &[], note);
            out.close("circle");
        }
    }
}

impl LineStyle {
    /// The styles of reference agents, in the same order. Names without their own style get one by number.
    pub(crate) fn of_references<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, LineStyle)> {
        let mut n_others = 0;
        let style = |name| match name {
            "oracle" => LineStyle::Oracle,
            "bayes" => LineStyle::Bayes,
            "static" => LineStyle::Static,
            "nash" => LineStyle::Nash,
            "random" => LineStyle::Random,
            _ => {
                n_others += 1;
                LineStyle::Other(n_others - 1)
            }
        };
        let names: Vec<&str> = names.into_iter().collect();
        let styles: Vec<LineStyle> = names.iter().copied().map(style).collect();
        names.into_iter().zip(styles).collect()
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            LineStyle::Agent => "agent",
            LineStyle::Oracle => "reference oracle",
            LineStyle::Bayes => "reference bayes",
            LineStyle::Static => "reference static",
            LineStyle::Nash => "reference nash",
            LineStyle::Random => "reference random",
            LineStyle::Other(number) => OTHERS[number % OTHERS.len()],
            LineStyle::Compared(number) => match COMPARED.get(number) {
                Some(class) => class,
                None => COMPARED_AFTER[number % COMPARED_AFTER.len()],
            },
        }
    }
}

impl Ticks {
    pub(crate) fn label(self, value: f64, step: f64) -> String {
        match self {
            // As many decimals as the step needs: two for a step of 0.02.
            Ticks::Plain => {
                let needs = |decimals: i32| {
                    let scaled = step * 10_f64.powi(decimals);
                    (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0) && scaled > 0.5
                };
                let decimals = (0..9).find(|decimals| needs(*decimals)).unwrap_or(9);
                number::typeset(value, decimals as usize)
            }
            Ticks::Whole => number::typeset(value, 0),
            Ticks::Percent => number::percent(value),
            Ticks::Steps => number::steps(value),
        }
    }
}

/// The geometry of a chart: its inner rectangle, the ranges of its axes, and the ticks.
struct Plot {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_low: f64,
    x_high: f64,
    y_low: f64,
    y_high: f64,
    x_ticks: Vec<f64>,
    y_ticks: Vec<(f64, String)>,
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        self.left + (value - self.x_low) / (self.x_high - self.x_low) * (self.right - self.left)
    }

    fn y(&self, value: f64) -> f64 {
        // A band may exceed the range of the axis; it is cut off there.
        let value = value.clamp(self.y_low, self.y_high);
        self.bottom - (value - self.y_low) / (self.y_high - self.y_low) * (self.bottom - self.top)
    }
}

/// A drawing with its size.
#[derive(Debug)]
pub(crate) struct SvgFragment {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) drawing: Markup,
}

/// A figure as a separate file.
pub(crate) fn document(width: f64, height: f64, title: &str, description: &str, drawing: &Markup) -> String {
    const MARGIN: f64 = 16.0;
    let mut out = Markup::new();
    let (outer_width, outer_height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    let view = format!("{} {} {} {}", -MARGIN, -MARGIN, Px(outer_width), Px(outer_height));
    out.open(
        "svg",
        &[
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("class", &"pace-figure"),
            ("viewBox", &view),
            ("width", &Px(outer_width)),
            ("height", &Px(outer_height)),
            ("role", &"img"),
            ("aria-labelledby", &"title description"),
        ],
    );
    out.leaf("title", &[("id", &"title")], title);
    out.leaf("desc", &[("id", &"description")], description);
    out.style(PALETTE);
    out.style(STYLE);
    // A background, because the file may be shown on a page of any colour.
    out.empty(
        "rect",
        &[
            ("class", &"paper"),
            ("x", &-MARGIN),
            ("y", &-MARGIN),
            ("width", &Px(outer_width)),
            ("height", &Px(outer_height)),
        ],
    );
    out.append(drawing);
    out.close("svg");
    out.finish()
}

/// A figure for a page.
pub(crate) fn inline(
    width: f64,
    height: f64,
    id: &str,
    title: &str,
    description: &str,
    drawing: &Markup,
) -> Markup {
    let mut out = Markup::new();
    out.open(
        "svg",
        &[
            ("class", &"pace-figure"),
            ("viewBox", &format!("0 0 {} {}", Px(width), Px(height))),
            ("role", &"img"),
            ("aria-labelledby", &format!("{id}-title {id}-description")),
        ],
    );
    out.leaf("title", &[("id", &format!("{id}-title"))], title);
    out.leaf("desc", &[("id", &format!("{id}-description"))], description);
    out.append(drawing);
    out.close("svg");
    out
}

/// The smallest and the largest value, extended if they are equal.
pub(crate) fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high {
        return (0.0, 1.0);
    }
    if high - low <= 1e-12 * high.abs().max(low.abs()) {
        let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        return (low - margin, high + margin);
    }
    (low, high)
}

/// Ticks at multiples of 1, 2 or 5 times a power of ten, from the last at or below `low` to the first at or above `high`. There are
/// at most `max_steps` steps between `low` and `high`.
pub(crate) fn round_ticks(low: f64, high: f64, max_steps: usize, ticks: Ticks) -> Vec<f64> {
    let rough = (high - low) / max_steps as f64;
    let power = 10_f64.powi(rough.log10().floor() as i32);
    // Steps of 25 % are round too, but 2.5 % would need a decimal.
    let is_quarter = |step: f64| ticks == Ticks::Percent && step == 0.25;
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let mut step = factors
        .into_iter()
        .map(|factor| (factor, factor * power))
        .filter(|(factor, step)| *factor != 2.5 || is_quarter(*step))
        .map(|(_, step)| step)
        .find(|step| *step >= rough * 0.999);
    if ticks == Ticks::Whole {
        step = step.map(|step| step.max(1.0));
    }
    let step = step.unwrap_or(rough);
    // Multiples are computed, not accumulated, so that zero is exact. The tolerance allows for rounding errors of the division.
    let first = (low / step + 1e-9).floor() as i64;
    let last = (high / step - 1e-9).ceil() as i64;
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

/// Moves heights as little as possible until they are `gap` apart and within `top..bottom`. Heights that overlap form a block
/// around their mean, and blocks that overlap are merged.
fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    struct Block {
        members: Vec<usize>,
        start: f64,
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let length = |members: &[usize]| (members.len() - 1) as f64 * gap;
    let settle = |members: &[usize]| {
        let middle = members.iter().map(|member| wanted[*member]).sum::<f64>() / members.len() as f64;
        let start = middle - length(members) / 2.0;
        // If the space is too small for all, they exceed the bottom.
        start.min(bottom - length(members)).max(top)
    };
    let mut blocks: Vec<Block> = Vec::new();
    for member in order {
        let mut block = Block { members: vec![member], start: settle(&[member]) };
        while let Some(above) =
            blocks.pop_if(|above| above.start + length(&above.members) + gap > block.start)
        {
            let members = [above.members, block.members].concat();
            block = Block { start: settle(&members), members };
        }
        blocks.push(block);
    }
    let mut places = vec![0.0; wanted.len()];
    for block in blocks {
        for (place, member) in block.members.into_iter().enumerate() {
            places[member] = block.start + place as f64 * gap;
        }
    }
    places
}

/// An upper bound of the width of a text, from the letters of a wide font, because the reader's font is unknown.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let of = |character: char| match character {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '(' | ')' | ' ' | '\u{a0}' => 0.36,
        'f' | 'r' | 't' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.96,
        'A'..='Z' => 0.72,
        '\u{2212}' | '±' | '+' | '=' => 0.82,
        _ => 0.63,
    };
    text.chars().map(of).sum::<f64>() * size
}

/// Splits a text at spaces into lines no wider than `width`.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + 0.36 * size <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{
        Axis, COMPARED, Chart, ChartFrame, ChartPoint, LineStyle, PALETTE, Series, Ticks, round_ticks, span,
        spread, wrap,
    };

    /// The linear RGB values of `#rrggbb` or `#rgb`.
    fn linear(colour: &str) -> [f64; 3] {
        let digits = colour.trim_start_matches('#');
        let whole: String = if digits.len() == 3 {
            digits.chars().flat_map(|digit| [digit, digit]).collect()
        } else {
            digits.to_owned()
        };
        [0, 2, 4].map(|place| {
            let value =
                f64::from(u8::from_str_radix(&whole[place..place + 2], 16).expect("hexadecimal")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(factor, value)| factor * value).sum())
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour| {
            let [red, green, blue] = linear(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05
        };
        let (one, other) = (luminance(one), luminance(other));
        one.max(other) / one.min(other)
    }

    /// The distance of two colours in Oklab with this colour vision.
    fn distance(vision: [[f64; 3]; 3], one: &str, other: &str) -> f64 {
        const TO_CONES: [[f64; 3]; 3] = [
            [0.412_221_470_8, 0.536_332_536_3, 0.051_445_992_9],
            [0.211_903_498_2, 0.680_699_545_1, 0.107_396_956_6],
            [0.088_302_461_9, 0.281_718_837_6, 0.629_978_700_5],
        ];
        const TO_LAB: [[f64; 3]; 3] = [
            [0.210_454_255_3, 0.793_617_785_0, -0.004_072_046_8],
            [1.977_998_495_1, -2.428_592_205_0, 0.450_593_709_9],
            [0.025_904_037_1, 0.782_771_766_2, -0.808_675_766_0],
        ];
        let lab = |colour| {
            let seen = times(vision, linear(colour)).map(|value| value.clamp(0.0, 1.0));
            times(TO_LAB, times(TO_CONES, seen).map(f64::cbrt))
        };
        let (one, other) = (lab(one), lab(other));
        one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
    }

    /// The value of a variable in a line of the palette.
    fn colour<'a>(line: &'a str, name: &str) -> &'a str {
        let start = line.find(&format!("--{name}:#")).expect("a colour") + name.len() + 3;
        line[start..].split([';', '}']).next().expect("a value")
    }

    /// Normal vision and red-, green- and blue-blindness, after Machado, Oliveira and Fernandes (2009).
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    #[test]
    fn colours_of_a_chart_are_distinguishable_with_any_colour_vision() {
        for line in PALETTE.lines().filter(|line| line.contains("--paper")) {
            let paper = colour(line, "paper");
            assert!(
                contrast(colour(line, "ink"), paper) >= 7.0 && contrast(colour(line, "muted"), paper) >= 4.5
            );
            for (place, one) in COMPARED.iter().enumerate() {
                assert!(contrast(colour(line, one), paper) >= 2.99, "{one} on {paper}");
                // Reference agents are grey in a chart of compared lines.
                for other in COMPARED[..place].iter().copied().chain(["muted"]) {
                    for (number, vision) in VISIONS.into_iter().enumerate() {
                        let found = distance(vision, colour(line, one), colour(line, other));
                        assert!(found >= 0.055, "{one} and {other} on {paper}, vision {number}: {found:.3}");
                    }
                }
            }
            // The names of the agent, bayes and oracle have these colours.
            for name in ["c0", "c1", "c2"] {
                assert!(contrast(colour(line, name), paper) >= 4.5, "{name} on {paper}");
            }
        }
    }

    #[test]
    fn reference_agents_have_different_styles() {
        let names =
            ["oracle", "bayes", "static", "nash", "random", "bayes-explorer", "bayes-myopic", "planner"];
        let mut classes: Vec<&str> =
            LineStyle::of_references(names).into_iter().map(|(_, style)| style.class()).collect();
        assert!(classes.iter().all(|class| class.starts_with("reference ")), "{classes:?}");
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), names.len());
    }

    #[test]
    fn eighteen_compared_lines_have_different_styles() {
        let mut classes: Vec<&str> = (0..18).map(|number| LineStyle::Compared(number).class()).collect();
        classes.sort_unstable();
        classes.dedup();
        assert_eq!(classes.len(), 18);
    }

    #[test]
    fn an_axis_does_not_exceed_its_limits() {
        let point = |x: f64, y: f64| ChartPoint { x, y, band: Some((y - 0.1, y + 0.3)), note: None };
        let axis = |limits, ticks| Axis { label: String::new(), domain: None, limits, ticks };
        let chart = |limits| Chart {
            title: String::new(),
            subtitle: String::new(),
            description: String::new(),
            x: axis(None, Ticks::Whole),
            y: axis(limits, Ticks::Plain),
            series: vec![Series {
                name: "share".to_owned(),
                style: LineStyle::Compared(0),
                points: vec![point(1.0, 0.05), point(2.0, 0.9)],
                end_decimals: None,
            }],
            band: None,
            marks: Vec::new(),
        };
        let ends = |limits| {
            let frame = ChartFrame { width: 400.0, height: 300.0, heading: false, names: true };
            let plot = chart(limits).plot(frame, 0.0, 0.0);
            (plot.y_low, plot.y_high)
        };
        assert_eq!(ends(Some((0.0, 1.0))), (0.0, 1.0));
        let (low, high) = ends(None);
        assert!(low < 0.0 && high > 1.0);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(round_ticks(0.5, 100.5, 6, Ticks::Whole), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0]);
        assert_eq!(round_ticks(0.5, 5.5, 10, Ticks::Whole), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(round_ticks(-0.0556, 0.0769, 7, Ticks::Plain).len(), 8);
        assert_eq!(round_ticks(0.0, 1.0, 5, Ticks::Percent).len(), 6);
        assert_eq!(round_ticks(0.0, 1.0, 4, Ticks::Percent), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(round_ticks(0.0, 0.1, 4, Ticks::Percent), [0.0, 0.05, 0.1]);
        assert_eq!(Ticks::Plain.label(0.02, 0.02), "0.02");
        assert_eq!(Ticks::Plain.label(-2.0, 0.5), "\u{2212}2.0");
        assert_eq!(Ticks::Plain.label(300.0, 100.0), "300");
    }

    #[test]
    fn a_span_is_never_empty() {
        assert_eq!(span([].into_iter()), (0.0, 1.0));
        assert_eq!(span([2.0, f64::NAN].into_iter()), (1.8, 2.2));
        assert_eq!(span([0.0].into_iter()), (-1.0, 1.0));
    }

    #[test]
    fn labels_do_not_overlap() {
        assert_eq!(spread(&[50.0, 10.0], 15.0, 0.0, 100.0), [50.0, 10.0]);
        assert_eq!(spread(&[50.0, 52.0], 14.0, 0.0, 100.0), [44.0, 58.0]);
        // Moved inside at both edges, and merged with labels that are there.
        assert_eq!(spread(&[-5.0, 6.0, 99.0], 15.0, 0.0, 100.0), [0.0, 15.0, 99.0]);
        assert_eq!(spread(&[99.0, 100.0, 80.0], 15.0, 0.0, 100.0), [85.0, 100.0, 70.0]);
        assert_eq!(spread(&[], 15.0, 0.0, 100.0), [0.0; 0]);
    }

    #[test]
    fn long_titles_are_wrapped() {
        assert_eq!(wrap("one two three", 10.0, 50.0), ["one two", "three"]);
        assert_eq!(wrap("", 10.0, 50.0), [""; 0]);
    }
}
