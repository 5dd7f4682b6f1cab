//! Peer identification over an encounter: accuracy of the most likely class, and posterior of the true class.

use crate::figures::adaptation::{episode_axis, switch_mark};
use crate::number;
use crate::record::{AdaptRecord, DecisionsRecord, IdentificationRecord};
use crate::svg::{Axis, Chart, ChartFrame, ChartPoint, LineStyle, Mark, Series, Ticks};

/// The figure as a separate file; `None` if the record has no identification.
pub fn figure(record: &AdaptRecord) -> Option<String> {
    Some(chart(record)?.document(ChartFrame { width: 560.0, height: 360.0, heading: true, names: true }))
}

/// Identification by block of episodes, as a chart that can be drawn in any size; `None` if the record has no identification.
pub(crate) fn chart(record: &AdaptRecord) -> Option<Chart> {
    let points = |name: &str, value: fn(&IdentificationRecord) -> f64| -> Vec<ChartPoint> {
        let point = |block: &crate::BlockRecord| {
            let share = value(&block.identification?);
            let note = format!("{}: {name} {}", record.block_name(block), number::percent(share));
            Some(ChartPoint { x: block.middle(), y: share, band: None, note: Some(note) })
        };
        record.blocks.iter().filter_map(point).collect()
    };
    let accuracy = points("accuracy", |identification| identification.accuracy);
    let posterior = points("posterior", |identification| identification.posterior);
    let (first, last) = (accuracy.first()?.y, accuracy.last()?.y);
    let description = format!(
        "The accuracy is {} at first and {} at the end.",
        number::percent(first),
        number::percent(last)
    );
    let title = format!("{}: peer identification", record.method_name());
    Some(lines(title, description, episode_axis(record), [accuracy, posterior], switch_mark(record)))
}

/// Identification by decision; `None` if the record has no identification. Encounters differ in length, so the lines end where
/// half of the encounters have ended.
pub fn by_decision(record: &AdaptRecord) -> Option<Chart> {
    let max_encounters = record.identification_by_decision.iter().map(|bin| bin.n_encounters).max()?;
    let is_shown = |bin: &&DecisionsRecord| 2 * bin.n_encounters >= max_encounters;
    let bins: Vec<&DecisionsRecord> = record.identification_by_decision.iter().take_while(is_shown).collect();
    let (first, last) = (bins.first()?, bins.last()?);
    let points = |name: &str, value: fn(&DecisionsRecord) -> (f64, Option<f64>)| -> Vec<ChartPoint> {
        let point = |bin: &&DecisionsRecord| {
            let (share, error) = value(bin);
            let note = format!("decisions {}: {name} {}", bin.range("\u{2013}"), number::percent(share));
            let band = error.map(|error| (share - error, share + error));
            // Dots for more bins would hide the line.
            ChartPoint { x: bin.middle(), y: share, band, note: (bins.len() <= 20).then_some(note) }
        };
        bins.iter().map(point).collect()
    };
    let accuracy = points("accuracy", |bin| (bin.accuracy, bin.accuracy_error));
    let posterior = points("posterior", |bin| (bin.posterior, None));
    let description = format!(
        "The accuracy is {} in the decisions {} and {} in the decisions {}.",
        number::percent(first.accuracy),
        first.range("\u{2013}"),
        number::percent(last.accuracy),
        last.range("\u{2013}")
    );
    let x = Axis {
        label: "decisions since the start of the encounter".to_owned(),
        domain: Some((0.5, last.last as f64 + 0.5)),
        limits: None,
        ticks: Ticks::Whole,
    };
    let title = format!("{}: peer identification by decision", record.method_name());
    let mut chart = lines(title, description, x, [accuracy, posterior], Vec::new());
    let has_band = bins.iter().any(|bin| bin.accuracy_error.is_some());
    chart.band = has_band.then(|| "± standard error".to_owned());
    Some(chart)
}

/// A chart of accuracy and posterior.
fn lines(
    title: String,
    description: String,
    x: Axis,
    points: [Vec<ChartPoint>; 2],
    marks: Vec<Mark>,
) -> Chart {
    let styles = [("accuracy", LineStyle::Agent), ("posterior", LineStyle::Other(0))];
    let series = styles.into_iter().zip(points).map(|((name, style), points)| Series {
        name: name.to_owned(),
        style,
        points,
        end_decimals: None,
    });
    let shares = Some((0.0, 1.0));
    Chart {
        title,
        subtitle: "accuracy: the most likely class is correct; posterior: probability of the true class"
            .to_owned(),
        description,
        x,
        y: Axis { label: "identification".to_owned(), domain: shares, limits: shares, ticks: Ticks::Percent },
        series: series.collect(),
        band: None,
        marks,
    }
}
