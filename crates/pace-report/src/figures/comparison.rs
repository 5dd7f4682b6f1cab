//! Several methods or variants in one chart, each a mean over its seeds with a band of one standard deviation.

use std::fmt::Write;

use crate::figures::adaptation::{axis_label, episode_domain, switch_mark};
use crate::figures::training::{TITLES, thin};
use crate::figures::{limits, other_scales};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord, TrainRecord};
use crate::stats::{mean, population_std};
use crate::svg::{Axis, Chart, ChartPoint, LineStyle, Series, Ticks};

/// A line to be: its name and the records of its seeds.
pub type Group<'a, R> = (String, Vec<&'a R>);

/// The score as an encounter goes on, beside reference agents; nothing without records.
pub fn adaptation(title: &str, groups: &[Group<'_, AdaptRecord>]) -> Option<Chart> {
    let first = groups.iter().find_map(|(_, records)| records.first().copied())?;
    let mut chart = over_blocks(title, &first.words.score, groups, |block| Some(block.mean))?;
    chart.y.limits = first.metric.limits();
    let rows = groups.iter().filter_map(|(name, records)| Some((name.as_str(), *records.first()?)));
    chart.description.push_str(&other_scales(first, rows));
    let domain = chart.x.domain.expect("set by the blocks");
    for (name, style) in LineStyle::of_references(first.reference_names()) {
        if !["oracle", "bayes", "static"].contains(&name) {
            continue;
        }
        let point = |x: f64, y: f64| ChartPoint { x, y, band: None, note: None };
        let reference = &first.references[name];
        let points = match &reference.blocks[..] {
            [] => vec![point(domain.0, reference.mean), point(domain.1, reference.mean)],
            blocks => blocks.iter().map(|block| point(block.middle(), block.mean)).collect(),
        };
        chart.series.push(Series { name: name.to_owned(), style, points, end_decimals: None });
    }
    Some(chart)
}

/// How often the informative place is reached as an encounter goes on; nothing without records.
pub fn keypoint(title: &str, groups: &[Group<'_, AdaptRecord>]) -> Option<Chart> {
    let first = groups.iter().find_map(|(_, records)| records.first().copied())?;
    let label = format!("{} rate", first.words.keypoint);
    let mut chart = over_blocks(title, &label, groups, |block| block.keypoint_rate)?;
    chart.y.limits = Some((0.0, 1.0));
    chart.y.ticks = Ticks::Percent;
    Some(chart)
}

fn over_blocks(
    title: &str,
    label: &str,
    groups: &[Group<'_, AdaptRecord>],
    value: fn(&BlockRecord) -> Option<f64>,
) -> Option<Chart> {
    let first = groups.iter().find_map(|(_, records)| records.first().copied())?;
    let mut series = Vec::new();
    for (number, (name, records)) in groups.iter().enumerate() {
        let n_blocks = records.iter().map(|record| record.blocks.len()).min().unwrap_or(0);
        let points: Vec<ChartPoint> = (0..n_blocks)
            .filter_map(|place| {
                let values: Option<Vec<f64>> =
                    records.iter().map(|record| value(&record.blocks[place])).collect();
                let block = &records[0].blocks[place];
                let decimals = number::decimals(records[0].standard_error);
                Some(point(block.middle(), &values?, |mean, std| {
                    let spread =
                        std.map_or(String::new(), |std| format!(" ± {}", number::typeset(std, decimals)));
                    format!(
                        "{name}, {}: {}{spread}",
                        records[0].block_name(block),
                        number::typeset(mean, decimals)
                    )
                }))
            })
            .collect();
        if !points.is_empty() {
            series.push(Series {
                name: name.clone(),
                style: LineStyle::Compared(number),
                points,
                end_decimals: None,
            });
        }
    }
    if series.is_empty() {
        return None;
    }
    let max_seeds = groups.iter().map(|(_, records)| records.len()).max().unwrap_or(0);
    let ends: Vec<String> = series
        .iter()
        .filter_map(|series| {
            let (first, last) = (series.points.first()?, series.points.last()?);
            let text = |value: f64| number::typeset(value, 3);
            Some(format!("{} goes from {} to {}", series.name, text(first.y), text(last.y)))
        })
        .collect();
    Some(Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        description: format!("{}.", ends.join("; ")),
        x: Axis {
            label: axis_label(first),
            domain: Some(episode_domain(&first.blocks, first.episodes)),
            limits: None,
            ticks: Ticks::Whole,
        },
        y: Axis { label: label.to_owned(), domain: None, limits: None, ticks: Ticks::Plain },
        series,
        band: (max_seeds > 1).then(|| "± standard deviation over seeds".to_owned()),
        marks: switch_mark(first),
    })
}

/// A metric as training goes on, times `factor`; nothing if no run has it.
pub fn training(
    title: &str,
    metric: &str,
    (label, factor): (&str, f64),
    groups: &[Group<'_, TrainRecord>],
) -> Option<Chart> {
    let mut series = Vec::new();
    for (number, (name, records)) in groups.iter().enumerate() {
        let curves: Vec<Vec<ChartPoint>> =
            records.iter().filter_map(|record| Some(thin(record.curves.get(metric)?))).collect();
        // Seeds have the same rows; one that is not finished yet has fewer.
        let n_points = curves.iter().map(Vec::len).min().unwrap_or(0);
        let points: Vec<ChartPoint> = (0..n_points)
            .map(|place| {
                let values: Vec<f64> = curves.iter().map(|curve| factor * curve[place].y).collect();
                ChartPoint { note: None, ..point(curves[0][place].x, &values, |_, _| String::new()) }
            })
            .collect();
        if !points.is_empty() {
            series.push(Series {
                name: name.clone(),
                style: LineStyle::Compared(number),
                points,
                end_decimals: None,
            });
        }
    }
    let ends: Vec<String> = series
        .iter()
        .filter_map(|series| {
            Some(format!("{} ends at {}", series.name, number::typeset(series.points.last()?.y, 3)))
        })
        .collect();
    let max_seeds = groups.iter().map(|(_, records)| records.len()).max().unwrap_or(0);
    let known = TITLES.iter().find(|(known, _)| *known == metric).map_or(metric, |(_, title)| title);
    (!series.is_empty()).then(|| Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        description: format!("{}.", ends.join("; ")),
        x: Axis { label: "steps of training".to_owned(), domain: None, limits: None, ticks: Ticks::Steps },
        y: Axis {
            label: if label.is_empty() { known.to_owned() } else { label.to_owned() },
            domain: None,
            limits: limits(metric).map(|(low, high)| (factor * low, factor * high)),
            ticks: Ticks::Plain,
        },
        series,
        band: (max_seeds > 1).then(|| "± standard deviation over seeds".to_owned()),
        marks: Vec::new(),
    })
}

/// The mean over seeds, with a band of one standard deviation where there are several.
fn point(x: f64, values: &[f64], note: impl Fn(f64, Option<f64>) -> String) -> ChartPoint {
    let middle = mean(values);
    let std = (values.len() > 1).then(|| population_std(values));
    ChartPoint {
        x,
        y: middle,
        band: std.map(|std| (middle - std, middle + std)),
        note: Some(note(middle, std)),
    }
}

/// The lines of a chart as a table: series, x, y and the ends of the band.
pub(super) fn csv(chart: &Chart) -> String {
    let mut text = "series,x,y,low,high\n".to_owned();
    for series in &chart.series {
        for point in &series.points {
            let (low, high) = point
                .band
                .map_or((String::new(), String::new()), |(low, high)| (low.to_string(), high.to_string()));
            let name = crate::csv::quoted(&series.name);
            writeln!(text, "{name},{},{},{low},{high}", point.x, point.y).expect("a string takes any text");
        }
    }
    text
}
