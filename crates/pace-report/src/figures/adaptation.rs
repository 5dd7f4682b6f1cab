//! The adaptation curve: the agent's score over the episodes of an encounter, with the reference agents on the same peers.

use crate::number;
use crate::record::{AdaptRecord, BlockRecord, ReferenceRecord, SwitchRecord};
use crate::svg::{Axis, Chart, ChartFrame, ChartPoint, LineStyle, Mark, Series, Ticks};

/// The figure as a separate file.
pub fn figure(record: &AdaptRecord) -> String {
    chart(record).document(ChartFrame { width: 720.0, height: 440.0, heading: true, names: true })
}

/// The figure as a chart, which can be drawn in any size.
pub fn chart(record: &AdaptRecord) -> Chart {
    let words = &record.words;
    let decimals = number::decimals(record.standard_error).min(3);
    let x = episode_axis(record);
    let mut series = vec![Series {
        name: record.method_name().to_owned(),
        style: LineStyle::Agent,
        points: record.blocks.iter().map(|block| agent_point(record, block)).collect(),
        end_decimals: Some(decimals),
    }];
    // A random ego scores so far below the others that its line would compress theirs; its score is in the tables.
    for (name, style) in LineStyle::of_references(record.reference_names()) {
        if name != "random" {
            series.push(Series {
                name: name.to_owned(),
                style,
                points: reference_points(&record.references[name], &x),
                end_decimals: Some(decimals),
            });
        }
    }
    Chart {
        title: format!("{}: {} by block of {}", record.method_name(), words.score, words.episodes),
        subtitle: format!(
            "{}, preset {}; {} tuples of the pool {}, {} encounters each",
            record.game_name(),
            record.preset,
            record.n_tuples,
            record.pool,
            record.passes
        ),
        description: describe(record, decimals),
        x,
        y: Axis {
            label: words.score.clone(),
            domain: None,
            limits: record.metric.limits(),
            ticks: Ticks::Plain,
        },
        series,
        band: record
            .blocks
            .iter()
            .any(|block| block.standard_error.is_some())
            .then(|| "± standard error".to_owned()),
        marks: switch_mark(record),
    }
}

/// The agent's score of every single episode; `None` if the blocks are single episodes already.
pub fn by_episode(record: &AdaptRecord) -> Option<Chart> {
    if record.by_episode.len() <= record.blocks.len() {
        return None;
    }
    let mut agent = AdaptRecord { blocks: record.by_episode.clone(), ..record.clone() };
    agent.references.clear();
    let mut chart = chart(&agent);
    // Dots for this many episodes would hide the line.
    chart.series[0].points.iter_mut().for_each(|point| point.note = None);
    Some(chart)
}

/// The axis of episodes, extended by half an episode at both ends, so that points are not on the edges.
pub(super) fn episode_axis(record: &AdaptRecord) -> Axis {
    let episodes = &record.words.episodes;
    let label =
        if record.switch.is_some() { episodes.clone() } else { format!("{episodes} with the same peer") };
    let last = record.blocks.last().map_or(record.episodes, |block| block.last).max(1);
    Axis { label, domain: Some((0.5, last as f64 + 0.5)), limits: None, ticks: Ticks::Whole }
}

/// A mark at the replacement of the peers, if there is one.
pub(super) fn switch_mark(record: &AdaptRecord) -> Vec<Mark> {
    let mark = |switch: &SwitchRecord| Mark {
        x: switch.after_episode as f64 + 0.5,
        label: "peers replaced".to_owned(),
    };
    record.switch.iter().map(mark).collect()
}

fn agent_point(record: &AdaptRecord, block: &BlockRecord) -> ChartPoint {
    let decimals = number::decimals(record.standard_error);
    let error = block.standard_error;
    let error_text = error.map_or(String::new(), |error| format!(" ± {}", number::typeset(error, decimals)));
    ChartPoint {
        x: block.middle(),
        y: block.mean,
        band: error.map(|error| (block.mean - error, block.mean + error)),
        note: Some(format!(
            "{}: {}{error_text}",
            record.block_name(block),
            number::typeset(block.mean, decimals)
        )),
    }
}

/// The line of a reference agent: its blocks, or its mean over the whole axis.
pub(super) fn reference_points(reference: &ReferenceRecord, x: &Axis) -> Vec<ChartPoint> {
    let point = |x: f64, y: f64| ChartPoint { x, y, band: None, note: None };
    if reference.blocks.is_empty() {
        let (low, high) = x.domain.expect("an axis of episodes has a range");
        return vec![point(low, reference.mean), point(high, reference.mean)];
    }
    reference.blocks.iter().map(|block| point(block.middle(), block.mean)).collect()
}

/// The chart as text.
fn describe(record: &AdaptRecord, decimals: usize) -> String {
    let mut text = String::new();
    if let [first, .., last] = &record.blocks[..] {
        text = format!(
            "{} goes from {} in {} to {} in {}.",
            record.method_name(),
            number::typeset(first.mean, decimals),
            record.block_name(first),
            number::typeset(last.mean, decimals),
            record.block_name(last)
        );
    }
    if let Some(switch) = &record.switch {
        text = format!(
            "{text} The mean is {} before the peers are replaced after {} {}, and {} afterwards.",
            number::typeset(switch.before.mean, decimals),
            record.words.episode,
            switch.after_episode,
            number::typeset(switch.after.mean, decimals)
        );
    }
    let references: Vec<String> = record
        .references_in_order()
        .into_iter()
        .map(|(name, reference)| match &reference.blocks[..] {
            [.., last] => format!("{name} ends at {}", number::typeset(last.mean, decimals)),
            [] => format!("{name} stays at {}", number::typeset(reference.mean, decimals)),
        })
        .collect();
    if !references.is_empty() {
        text = format!("{text} On the same peers {}.", references.join(", "));
    }
    text.trim_start().to_owned()
}
