//! Training curves as small multiples: one panel per metric, all with the same axis of steps.

use crate::figures::limits;
use crate::markup::Markup;
use crate::number;
use crate::record::TrainRecord;
use crate::svg::{self, Axis, Chart, ChartFrame, ChartPoint, LineStyle, Series, SvgFragment, Ticks};

/// Maximum number of points in a panel; more would share pixels.
const MAX_POINTS: usize = 160;

/// Maximum number of panels in the figure.
const MAX_PANELS: usize = 12;

/// The most important metrics with their titles, in the order of the panels.
pub(super) const TITLES: [(&str, &str); 13] = [
    ("charts/episodic_return", "Return per episode"),
    ("charts/success", "Success rate"),
    ("peer/top1", "Identification accuracy"),
    ("peer/posterior", "Posterior of the true class"),
    ("peer/aux_loss", "Identification loss"),
    ("embedding/cross_entropy", "Embedding: cross-entropy"),
    ("losses/entropy", "Entropy of the policy"),
    ("explore/coef", "Exploration weight"),
    ("explore/reward", "Exploration reward"),
    ("losses/policy_loss", "Policy loss"),
    ("losses/value_loss", "Value loss"),
    ("losses/explained_variance", "Explained variance"),
    ("losses/approx_kl", "Approximate KL divergence"),
];

/// The figure as a separate file; `None` without curves.
pub fn figure(record: &TrainRecord) -> Option<String> {
    let panels = panels(record);
    let SvgFragment { width, height, drawing } = draw(&panels, 3, 250.0)?;
    Some(svg::document(width, height, &title(record), &describe(&panels), &drawing))
}

/// One chart per metric: first those of `TITLES`, then the others by name, up to `MAX_PANELS`.
pub(crate) fn panels(record: &TrainRecord) -> Vec<Chart> {
    let place = |name: &str| TITLES.iter().position(|(known, _)| *known == name).unwrap_or(TITLES.len());
    let mut curves: Vec<_> = record.curves.iter().filter(|(_, points)| !points.is_empty()).collect();
    curves.sort_by_key(|(name, _)| place(name));
    let last_step = record.curves.values().flatten().map(|(step, _)| *step).max().unwrap_or(0);
    curves.truncate(MAX_PANELS);
    curves.into_iter().map(|(name, points)| panel(name, points, last_step)).collect()
}

/// The panels in a grid of `n_columns` columns, for a page.
pub(crate) fn inline(record: &TrainRecord, n_columns: usize, panel_width: f64, id: &str) -> Option<Markup> {
    let panels = panels(record);
    let SvgFragment { width, height, drawing } = draw(&panels, n_columns, panel_width)?;
    Some(svg::inline(width, height, id, &title(record), &describe(&panels), &drawing))
}

fn draw(panels: &[Chart], n_columns: usize, panel_width: f64) -> Option<SvgFragment> {
    const GAP: f64 = 22.0;
    const HEIGHT: f64 = 168.0;
    if panels.is_empty() {
        return None;
    }
    let n_columns = n_columns.min(panels.len());
    let frame = ChartFrame { width: panel_width, height: HEIGHT, heading: true, names: false };
    let left = panels.iter().map(|panel| panel.axis_position(frame)).fold(0.0, f64::max);
    let mut drawing = Markup::new();
    drawing.open("g", &[]);
    for (place, panel) in panels.iter().enumerate() {
        let x = (place % n_columns) as f64 * (panel_width + GAP);
        let y = (place / n_columns) as f64 * (HEIGHT + GAP);
        drawing.open("g", &[("transform", &format!("translate({x} {y})"))]);
        drawing.append(&panel.draw_from(frame, left));
        drawing.close("g");
    }
    drawing.close("g");
    let n_rows = panels.len().div_ceil(n_columns) as f64;
    Some(SvgFragment {
        width: n_columns as f64 * (panel_width + GAP) - GAP,
        height: n_rows * (HEIGHT + GAP) - GAP,
        drawing,
    })
}

fn panel(name: &str, points: &[(u64, f64)], last_step: u64) -> Chart {
    let title = TITLES.iter().find(|(known, _)| *known == name).map_or(name, |(_, title)| title);
    let last = points.last().expect("panels have points").1;
    Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        description: format!("{title} ends at {}", significant(last)),
        x: Axis {
            label: String::new(),
            domain: Some((0.0, last_step.max(1) as f64)),
            limits: None,
            ticks: Ticks::Steps,
        },
        y: Axis { label: String::new(), domain: None, limits: limits(name), ticks: Ticks::Plain },
        series: vec![Series {
            name: title.to_owned(),
            style: LineStyle::Agent,
            points: thin(points),
            end_decimals: None,
        }],
        band: None,
        marks: Vec::new(),
    }
}

/// Reduces a curve to at most `MAX_POINTS` points: means of consecutive points, with a band from their minimum to their maximum.
pub(super) fn thin(points: &[(u64, f64)]) -> Vec<ChartPoint> {
    let length = points.len().div_ceil(MAX_POINTS);
    points
        .chunks(length)
        .map(|chunk| {
            let n = chunk.len() as f64;
            let values = || chunk.iter().map(|(_, value)| *value);
            let (low, high) =
                (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
            ChartPoint {
                x: chunk.iter().map(|(step, _)| *step as f64).sum::<f64>() / n,
                y: values().sum::<f64>() / n,
                band: (length > 1).then_some((low, high)),
                note: None,
            }
        })
        .collect()
}

fn title(record: &TrainRecord) -> String {
    format!("Training of {} on {}, seed {}", record.method, record.game, record.seed)
}

/// The figure as text.
fn describe(panels: &[Chart]) -> String {
    let ends: Vec<&str> = panels.iter().map(|panel| panel.description.as_str()).collect();
    format!("{}.", ends.join("; "))
}

/// Formats a number with about three significant digits.
fn significant(value: f64) -> String {
    let decimals = (0..5).find(|decimals| value.abs() * 10_f64.powi(*decimals) >= 100.0).unwrap_or(5);
    number::typeset(value, decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::{MAX_POINTS, thin};

    #[test]
    fn thinned_curves_keep_means_and_extremes() {
        let points: Vec<(u64, f64)> = (0..1000).map(|step| (step, f64::from(step as u32 % 7))).collect();
        let thinned = thin(&points);
        assert!(thinned.len() <= MAX_POINTS);
        // Seven neighbours at a time: 0 to 6, mean 3.
        assert_eq!(thinned[0].y, 3.0);
        assert_eq!(thinned[0].band, Some((0.0, 6.0)));
        assert!(thin(&points[..10]).iter().all(|point| point.band.is_none()));
    }
}
