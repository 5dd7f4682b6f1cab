//! Charts of several methods or variants, each with its mean over seeds and a band of one standard deviation.

use std::fmt::Write;

use crate::aggregate::Aggregate;
use crate::csv::{optional, quoted};
use crate::figures::adaptation::{episode_axis, reference_points, switch_mark};
use crate::figures::training::{TITLES, thin};
use crate::figures::{limits, other_scales};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord, TrainRecord};
use crate::stats::{Interval, mean, population_std};
use crate::svg::{Axis, Chart, ChartPoint, LineStyle, Series, Ticks};

/// The name of a line, and the records of its seeds.
pub type Group<'a, R> = (String, Vec<&'a R>);

/// The score over the episodes of an encounter, with reference agents; `None` without records.
pub fn adaptation(title: &str, groups: &[Group<'_, AdaptRecord>]) -> Option<Chart> {
    let first = groups.iter().find_map(|(_, records)| records.first().copied())?;
    let mut chart = over_blocks(title, &first.words.score, groups, |block| Some(block.mean))?;
    chart.y.limits = first.metric.limits();
    let rows = groups.iter().filter_map(|(name, records)| Some((name.as_str(), *records.first()?)));
    chart.description.push_str(&other_scales(first, rows));
    for (name, style) in LineStyle::of_references(first.reference_names()) {
        if !["oracle", "bayes", "static"].contains(&name) {
            continue;
        }
        let points = reference_points(&first.references[name], &chart.x);
        chart.series.push(Series { name: name.to_owned(), style, points, end_decimals: None });
    }
    Some(chart)
}

/// The keypoint rate over the episodes of an encounter; `None` without records.
pub(crate) fn keypoint(title: &str, groups: &[Group<'_, AdaptRecord>]) -> Option<Chart> {
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
                    let std =
                        std.map_or(String::new(), |std| format!(" ± {}", number::typeset(std, decimals)));
                    format!(
                        "{name}, {}: {}{std}",
                        records[0].block_name(block),
                        number::typeset(mean, decimals)
                    )
                }))
            })
            .collect();
        series.extend(line(name, number, points));
    }
    if series.is_empty() {
        return None;
    }
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
        x: episode_axis(first),
        y: Axis { label: label.to_owned(), domain: None, limits: None, ticks: Ticks::Plain },
        series,
        band: band_label(groups),
        marks: switch_mark(first),
    })
}

/// A metric over training, multiplied by `factor`; `None` if no run has it.
pub(crate) fn training(
    title: &str,
    metric: &str,
    (label, factor): (&str, f64),
    groups: &[Group<'_, TrainRecord>],
) -> Option<Chart> {
    let mut series = Vec::new();
    for (number, (name, records)) in groups.iter().enumerate() {
        let curves: Vec<Vec<ChartPoint>> =
            records.iter().filter_map(|record| Some(thin(record.curves.get(metric)?))).collect();
        // All seeds have the same rows, but an unfinished run has fewer.
        let n_points = curves.iter().map(Vec::len).min().unwrap_or(0);
        let points: Vec<ChartPoint> = (0..n_points)
            .map(|place| {
                let values: Vec<f64> = curves.iter().map(|curve| factor * curve[place].y).collect();
                ChartPoint { note: None, ..point(curves[0][place].x, &values, |_, _| String::new()) }
            })
            .collect();
        series.extend(line(name, number, points));
    }
    let ends: Vec<String> = series
        .iter()
        .filter_map(|series| {
            Some(format!("{} ends at {}", series.name, number::typeset(series.points.last()?.y, 3)))
        })
        .collect();
    let known = TITLES.iter().find(|(known, _)| *known == metric).map_or(metric, |(_, title)| title);
    (!series.is_empty()).then(|| Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        description: format!("{}.", ends.join("; ")),
        x: Axis { label: "training steps".to_owned(), domain: None, limits: None, ticks: Ticks::Steps },
        y: Axis {
            label: if label.is_empty() { known.to_owned() } else { label.to_owned() },
            domain: None,
            limits: limits(metric).map(|(low, high)| (factor * low, factor * high)),
            ticks: Ticks::Plain,
        },
        series,
        band: band_label(groups),
        marks: Vec::new(),
    })
}

/// The performance profiles of several rows: the share of runs with a score above each threshold.
pub(crate) fn profiles(title: &str, aggregate: &Aggregate) -> Chart {
    let point = |(x, share): &(f64, Interval)| ChartPoint {
        x: *x,
        y: share.value,
        band: Some((share.low, share.high)),
        note: None,
    };
    let profiles = aggregate.profiles();
    let rows = || aggregate.rows.iter().zip(&profiles);
    let series = rows()
        .enumerate()
        .filter_map(|(number, (row, profile))| line(&row.name, number, profile.iter().map(point).collect()));
    let of_half = rows().filter_map(|(row, profile)| {
        let (threshold, _) = profile.iter().rfind(|(_, share)| share.value >= 0.5)?;
        Some(format!("{} {}", row.name, number::percent(*threshold)))
    });
    let description =
        format!("Shares that half of the runs are above: {}.", of_half.collect::<Vec<_>>().join(", "));
    Chart {
        title: title.to_owned(),
        subtitle: String::new(),
        description,
        x: Axis {
            label: "share, random to oracle".to_owned(),
            domain: None,
            limits: None,
            ticks: Ticks::Percent,
        },
        y: Axis {
            label: "share of runs above it".to_owned(),
            domain: None,
            limits: Some((0.0, 1.0)),
            ticks: Ticks::Percent,
        },
        series: series.collect(),
        band: Some("95\u{a0}% interval".to_owned()),
        marks: Vec::new(),
    }
}

/// One of the compared lines; `None` without points.
fn line(name: &str, number: usize, points: Vec<ChartPoint>) -> Option<Series> {
    let style = LineStyle::Compared(number);
    (!points.is_empty()).then(|| Series { name: name.to_owned(), style, points, end_decimals: None })
}

/// The label of the bands; `None` if no group has several seeds.
fn band_label<R>(groups: &[Group<'_, R>]) -> Option<String> {
    let has_bands = groups.iter().any(|(_, records)| records.len() > 1);
    has_bands.then(|| "± standard deviation across seeds".to_owned())
}

/// The mean over seeds, with a band of one standard deviation if there are several.
fn point(x: f64, values: &[f64], note: impl Fn(f64, Option<f64>) -> String) -> ChartPoint {
    let mean = mean(values);
    let std = (values.len() > 1).then(|| population_std(values));
    ChartPoint { x, y: mean, band: std.map(|std| (mean - std, mean + std)), note: Some(note(mean, std)) }
}

/// The lines of a chart as CSV: series, x, y and the ends of the band.
pub(super) fn csv(chart: &Chart) -> String {
    let mut text = "series,x,y,low,high\n".to_owned();
    for series in &chart.series {
        for point in &series.points {
            let (low, high) = point.band.unzip();
            let (name, low, high) = (quoted(&series.name), optional(low), optional(high));
            writeln!(text, "{name},{},{},{low},{high}", point.x, point.y).expect("a string takes any text");
        }
    }
    text
}
