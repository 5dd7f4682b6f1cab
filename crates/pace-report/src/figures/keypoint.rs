//! The keypoint rate over the episodes of an encounter.

use crate::figures::adaptation::{episode_axis, switch_mark};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord};
use crate::svg::{Axis, Chart, ChartFrame, ChartPoint, LineStyle, Series, Ticks};

/// The figure as a separate file; `None` if the record has no keypoint rates.
pub fn figure(record: &AdaptRecord) -> Option<String> {
    Some(chart(record)?.document(ChartFrame { width: 560.0, height: 360.0, heading: true, names: true }))
}

/// The figure as a chart, which can be drawn in any size; `None` if the record has no keypoint rates.
pub(crate) fn chart(record: &AdaptRecord) -> Option<Chart> {
    let words = &record.words;
    let points = |blocks: &[BlockRecord], has_notes: bool| -> Vec<ChartPoint> {
        let with_rate = blocks.iter().filter_map(|block| Some((block, block.keypoint_rate?)));
        with_rate
            .map(|(block, rate)| {
                let note =
                    || format!("{}: {} {}", record.block_name(block), words.keypoint, number::percent(rate));
                ChartPoint { x: block.middle(), y: rate, band: None, note: has_notes.then(note) }
            })
            .collect()
    };
    let mut series = vec![Series {
        name: record.method_name().to_owned(),
        style: LineStyle::Agent,
        points: points(&record.blocks, true),
        end_decimals: None,
    }];
    let (first, last) = (series[0].points.first()?.y, series[0].points.last()?.y);
    for (name, style) in LineStyle::of_references(record.reference_names()) {
        let points = points(&record.references[name].blocks, false);
        if !points.is_empty() {
            series.push(Series { name: name.to_owned(), style, points, end_decimals: None });
        }
    }
    Some(Chart {
        title: format!("{}: {} rate by block of {}", record.method_name(), words.keypoint, words.episodes),
        subtitle: "share of episodes that reach the keypoint".to_owned(),
        description: format!(
            "The {} rate is {} at first and {} at the end.",
            words.keypoint,
            number::percent(first),
            number::percent(last)
        ),
        x: episode_axis(record),
        y: Axis {
            label: format!("{} rate", words.keypoint),
            domain: None,
            limits: Some((0.0, 1.0)),
            ticks: Ticks::Percent,
        },
        series,
        band: None,
        marks: switch_mark(record),
    })
}
