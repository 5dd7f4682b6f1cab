//! How well the agent knows whom it plays with, as an encounter goes on.

use crate::figures::adaptation::{axis_label, episode_domain, switch_mark};
use crate::number;
use crate::record::{AdaptRecord, DecisionsRecord, IdentificationRecord};
use crate::svg::{Axis, Chart, ChartFrame, ChartPoint, LineStyle, Series, Ticks};

/// The figure as a file of its own; nothing if the agent has no opinion about its peers.
pub fn figure(record: &AdaptRecord) -> Option<String> {
    Some(chart(record)?.document(ChartFrame { width: 560.0, height: 360.0, heading: true, names: true }))
}

/// The figure to be drawn at any size; nothing if the agent has no opinion about its peers.
pub fn chart(record: &AdaptRecord) -> Option<Chart> {
    let series = |name: &str, style: LineStyle, value: fn(&IdentificationRecord) -> f64| {
        let points = record.blocks.iter().filter_map(|block| {
            let share = value(&block.identification?);
            let note = format!("{}: {name} {}", record.block_name(block), number::percent(share));
            Some(ChartPoint { x: block.middle(), y: share, band: None, note: Some(note) })
        });
        Series { name: name.to_owned(), style, points: points.collect(), end_decimals: None }
    };
    let accuracy = series("best guess", LineStyle::Agent, |identification| identification.accuracy);
    let posterior = series("belief", LineStyle::Other(0), |identification| identification.posterior);
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
            label: axis_label(record),
            domain: Some(episode_domain(&record.blocks, record.episodes)),
            limits: None,
            ticks: Ticks::Whole,
        },
        y: Axis {
            label: "identification".to_owned(),
            domain: Some((0.0, 1.0)),
            limits: Some((0.0, 1.0)),
            ticks: Ticks::Percent,
        },
        series: vec![accuracy, posterior],
        band: None,
        marks: switch_mark(record),
    })
}

/// The same decision by decision; nothing if the record does not know. Encounters differ in length: the lines end where half
/// of them have ended.
pub fn by_decision(record: &AdaptRecord) -> Option<Chart> {
    let most = record.identification_by_decision.iter().map(|bin| bin.n_encounters).max()?;
    let bins: Vec<&DecisionsRecord> =
        record.identification_by_decision.iter().take_while(|bin| 2 * bin.n_encounters >= most).collect();
    let (first, last) = (bins.first()?, bins.last()?);
    let series = |name: &str, style: LineStyle, value: fn(&DecisionsRecord) -> (f64, Option<f64>)| {
        let points = bins.iter().map(|bin| {
            let (share, error) = value(bin);
            let note = format!("decisions {}: {name} {}", bin.range("\u{2013}"), number::percent(share));
            let band = error.map(|error| (share - error, share + error));
            // A dot for each of many bins would hide the line.
            ChartPoint { x: bin.middle(), y: share, band, note: (bins.len() <= 20).then_some(note) }
        });
        Series { name: name.to_owned(), style, points: points.collect(), end_decimals: None }
    };
    Some(Chart {
        title: format!("How often {} knows its peer, decision by decision", record.method_name()),
        subtitle: "best guess: how often it is right; belief: the probability given to the truth".to_owned(),
        description: format!(
            "The best guess is right in {} of the decisions {} and in {} of the decisions {}.",
            number::percent(first.accuracy),
            first.range("\u{2013}"),
            number::percent(last.accuracy),
            last.range("\u{2013}")
        ),
        x: Axis {
            label: "decisions since the encounter began".to_owned(),
            domain: Some((0.5, last.last as f64 + 0.5)),
            limits: None,
            ticks: Ticks::Whole,
        },
        y: Axis {
            label: "identification".to_owned(),
            domain: Some((0.0, 1.0)),
            limits: Some((0.0, 1.0)),
            ticks: Ticks::Percent,
        },
        series: vec![
            series("best guess", LineStyle::Agent, |bin| (bin.accuracy, bin.accuracy_error)),
            series("belief", LineStyle::Other(0), |bin| (bin.posterior, None)),
        ],
        band: bins.iter().any(|bin| bin.accuracy_error.is_some()).then(|| "± standard error".to_owned()),
        marks: Vec::new(),
    })
}
