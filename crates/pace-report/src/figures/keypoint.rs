//! How often the agent goes where it can learn about its peers, as an encounter goes on.

use crate::figures::adaptation::{axis_label, episode_domain, switch_mark};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord};
use crate::svg::{Axis, Chart, ChartFrame, ChartPoint, LineStyle, Series, Ticks};

/// The figure as a file of its own; nothing if the record does not know.
pub fn figure(record: &AdaptRecord) -> Option<String> {
    Some(chart(record)?.document(ChartFrame { width: 560.0, height: 360.0, heading: true, names: true }))
}

/// The figure to be drawn at any size; nothing if the record does not know.
pub fn chart(record: &AdaptRecord) -> Option<Chart> {
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
        title: format!("{}: {} rate as the {} go by", record.method_name(), words.keypoint, words.episodes),
        subtitle: "the share of episodes that reach the place where a peer shows what it is".to_owned(),
        description: format!(
            "The {} rate is {} at first and {} at the end.",
            words.keypoint,
            number::percent(first),
            number::percent(last)
        ),
        x: Axis {
            label: axis_label(record),
            domain: Some(episode_domain(&record.blocks, record.episodes)),
            limits: None,
            ticks: Ticks::Whole,
        },
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
