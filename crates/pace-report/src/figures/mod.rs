//! One file per figure: what is drawn for which record. How lines are drawn is in `svg`.

pub mod adaptation;
pub mod comparison;
pub mod heatmap;
pub mod identification;
pub mod intervals;
pub mod keypoint;
pub mod scatter;
pub mod training;

use crate::markup::Markup;
use crate::svg::{self, Chart, Drawing, Frame};

/// A figure of any kind, to be put on a page or into a file.
#[derive(Clone, Debug)]
pub enum Figure {
    /// Lines.
    Lines(Chart),
    /// Numbers as shades.
    Heat(heatmap::HeatMap),
    /// Points.
    Points(scatter::Scatter),
    /// Means with their spread, beside the paper's.
    Means(intervals::Intervals),
}

impl Figure {
    /// What it shows.
    pub fn title(&self) -> &str {
        match self {
            Figure::Lines(chart) => &chart.title,
            Figure::Heat(map) => &map.title,
            Figure::Points(scatter) => &scatter.title,
            Figure::Means(intervals) => &intervals.title,
        }
    }

    /// The figure in words.
    pub fn description(&self) -> String {
        match self {
            Figure::Lines(chart) => chart.description.clone(),
            Figure::Heat(map) => map.description.clone(),
            Figure::Points(scatter) => scatter.description.clone(),
            Figure::Means(intervals) => intervals.description(),
        }
    }

    /// The figure as a file of its own.
    pub fn document(&self) -> String {
        let Drawing { width, height, drawing } = self.draw(720.0, true);
        svg::document(width, height, self.title(), &self.description(), &drawing)
    }

    /// Its numbers as a table for other programs.
    pub fn csv(&self) -> String {
        match self {
            Figure::Lines(chart) => comparison::csv(chart),
            Figure::Heat(map) => map.csv(),
            Figure::Points(scatter) => scatter.csv(),
            Figure::Means(intervals) => intervals.csv(),
        }
    }

    pub(crate) fn inline(&self, width: f64, id: &str) -> Markup {
        let Drawing { width, height, drawing } = self.draw(width, false);
        svg::inline(width, height, id, self.title(), &self.description(), &drawing)
    }

    fn draw(&self, width: f64, heading: bool) -> Drawing {
        match self {
            Figure::Lines(chart) => {
                let height = if width < 500.0 { 330.0 } else { 0.5 * width };
                let frame = Frame { width, height, heading, names: true };
                Drawing { width, height, drawing: chart.draw(frame) }
            }
            Figure::Heat(map) => map.draw(width),
            Figure::Points(scatter) => scatter.draw(width),
            Figure::Means(intervals) => intervals.draw(width),
        }
    }
}
