//! The figures, one file each. `svg` draws line charts.

pub mod adaptation;
pub mod comparison;
pub(crate) mod heatmap;
pub mod identification;
pub(crate) mod intervals;
pub mod keypoint;
pub(crate) mod ranges;
pub(crate) mod scatter;
pub mod training;

use crate::markup::Markup;
use crate::number;
use crate::record::AdaptRecord;
use crate::svg::{self, Chart, ChartFrame, SvgFragment};

/// Returns the figures of an evaluation as SVG, each with its name. `None` if the record has no data for the figure.
pub fn of_evaluation(record: &AdaptRecord) -> [(&'static str, Option<String>); 3] {
    [
        ("adaptation", Some(adaptation::figure(record))),
        ("identification", identification::figure(record)),
        ("keypoint", keypoint::figure(record)),
    ]
}

/// The range of possible values of a training metric, if it is bounded: shares of episodes or decisions are between 0 and 1.
pub(crate) fn limits(metric: &str) -> Option<(f64, f64)> {
    const SHARES: [&str; 4] = ["charts/success", "charts/keypoint", "peer/top1", "peer/posterior"];
    SHARES.contains(&metric).then_some((0.0, 1.0))
}

/// A sentence that names the rows on another scale than `first`; empty if there are none.
pub(crate) fn other_scales<'a>(
    first: &AdaptRecord,
    rows: impl Iterator<Item = (&'a str, &'a AdaptRecord)>,
) -> String {
    let others: Vec<String> = rows
        .filter_map(|(name, record)| {
            let (oracle, fixed) = record.other_scale_than(first)?;
            let [oracle, fixed] = [oracle, fixed].map(|value| number::typeset(value, 3));
            Some(format!("{name} (oracle {oracle}, static {fixed})"))
        })
        .collect();
    if others.is_empty() {
        return String::new();
    }
    format!(" On another scale, and not comparable with the other rows: {}.", others.join(", "))
}

/// A figure of any kind, for a page or a file.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Lines.
    Lines(Chart),
    /// Numbers as shaded cells.
    Heat(heatmap::HeatMap),
    /// Points.
    Points(scatter::Scatter),
    /// Means with standard deviations, and the paper's numbers.
    Means(intervals::Intervals),
    /// Shares with intervals.
    Ranges(ranges::Ranges),
}

impl Figure {
    /// The title.
    pub(crate) fn title(&self) -> &str {
        match self {
            Figure::Lines(chart) => &chart.title,
            Figure::Heat(map) => &map.title,
            Figure::Points(scatter) => &scatter.title,
            Figure::Means(intervals) => &intervals.title,
            Figure::Ranges(ranges) => &ranges.title,
        }
    }

    /// Appends a text to the title.
    pub(crate) fn add_to_title(&mut self, suffix: &str) {
        match self {
            Figure::Lines(chart) => chart.title.push_str(suffix),
            Figure::Heat(map) => map.title.push_str(suffix),
            Figure::Points(scatter) => scatter.title.push_str(suffix),
            Figure::Means(intervals) => intervals.title.push_str(suffix),
            Figure::Ranges(ranges) => ranges.title.push_str(suffix),
        }
    }

    /// The figure as text, for readers who cannot see it.
    pub(crate) fn description(&self) -> String {
        match self {
            Figure::Lines(chart) => chart.description.clone(),
            Figure::Heat(map) => map.description.clone(),
            Figure::Points(scatter) => scatter.description.clone(),
            Figure::Means(intervals) => intervals.description(),
            Figure::Ranges(ranges) => ranges.description(),
        }
    }

    /// The figure as a separate file.
    pub fn document(&self) -> String {
        let SvgFragment { width, height, drawing } = self.draw(720.0, true);
        if matches!(self, Figure::Lines(_)) {
            return svg::document(width, height, self.title(), &self.description(), &drawing);
        }
        // Line charts draw their title themselves; the others get it above.
        const HEADING: f64 = 30.0;
        let mut out = Markup::new();
        out.open("g", &[]);
        out.leaf("text", &[("class", &"title"), ("x", &0), ("y", &15)], self.title());
        out.open("g", &[("transform", &format!("translate(0 {HEADING})"))]);
        out.append(&drawing);
        out.close("g");
        out.close("g");
        svg::document(width, height + HEADING, self.title(), &self.description(), &out)
    }

    /// Its numbers as CSV.
    pub fn csv(&self) -> String {
        match self {
            Figure::Lines(chart) => comparison::csv(chart),
            Figure::Heat(map) => map.csv(),
            Figure::Points(scatter) => scatter.csv(),
            Figure::Means(intervals) => intervals.csv(),
            Figure::Ranges(ranges) => ranges.csv(),
        }
    }

    pub(crate) fn inline(&self, width: f64, id: &str) -> Markup {
        let SvgFragment { width, height, drawing } = self.draw(width, false);
        svg::inline(width, height, id, self.title(), &self.description(), &drawing)
    }

    fn draw(&self, width: f64, heading: bool) -> SvgFragment {
        match self {
            Figure::Lines(chart) => {
                let height = if width < 500.0 { 290.0 } else { 0.45 * width } + chart.legend_height(width);
                let frame = ChartFrame { width, height, heading, names: true };
                SvgFragment { width, height, drawing: chart.draw(frame) }
            }
            Figure::Heat(map) => map.draw(width),
            Figure::Points(scatter) => scatter.draw(width),
            Figure::Means(intervals) => intervals.draw(width),
            Figure::Ranges(ranges) => ranges.draw(width),
        }
    }
}
