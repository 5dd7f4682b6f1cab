//! How well the agent knows whom it plays with, as an encounter goes on.

use crate::figures::adaptation::episode_domain;
use crate::number;
use crate::record::{AdaptRecord, IdentificationRecord};
use crate::svg::{Axis, Chart, Frame, Look, Point, Series, Ticks};

/// The figure as a file of its own; nothing if the agent has no opinion about its peers.
pub fn figure(record: &AdaptRecord) -> Option<String> {
    Some(chart(record)?.document(Frame { width: 560.0, height: 360.0, heading: true, names: true }))
}

/// The figure to be drawn at any size; nothing if the agent has no opinion about its peers.
pub fn chart(record: &AdaptRecord) -> Option<Chart> {
    let episodes = &record.words.episodes;
    let series = |name: &str, look: Look, value: fn(&IdentificationRecord) -> f64| {
        let points = record.blocks.iter().filter_map(|block| {
            let share = value(&block.identification?);
            let note = format!("{}: {name} {}", record.block_name(block), number::percent(share));
            Some(Point { x: block.middle(), y: share, band: None, note: Some(note) })
        });
        Series { name: name.to_owned(), look, points: points.collect(), end_decimals: None }
    };
    let accuracy = series("best guess", Look::Agent, |identification| identification.accuracy);
    let posterior = series("belief", Look::Other, |identification| identification.posterior);
    let (first, last) = (accuracy.points.first()?, accuracy.points.last()?);
    Some(Chart {
        title: format!("How often {} knows its peer", record.method_name()),
        subtitle: "best guess: how often it is right; belief: the probability given to the truth".to_owned(),
        description: format!(
            "The best guess is right in {} of the encounters at first and in {} at the end.",
            number::percent(first.y),
            number::percent(last.y)
        ),
        x: Axis {
            label: format!("{episodes} with the same peer"),
            domain: Some(episode_domain(&record.blocks, record.episodes)),
            ticks: Ticks::Whole,
        },
        y: Axis { label: "identification".to_owned(), domain: Some((0.0, 1.0)), ticks: Ticks::Percent },
        series: vec![accuracy, posterior],
        band: None,
    })
}
