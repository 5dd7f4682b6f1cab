//! The sections of a page about one evaluation: headline, adaptation curve, identification, blocks and peers.

use super::{card, cell, close_table, counted, dash, figure, open_table, score_cell};
use crate::figures::{adaptation, identification, keypoint};
use crate::markup::{Markup, Px};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord, PeerRecord};
use crate::table::{detection_line, mean_steps, score_in_block, visits_distribution};

pub(super) fn headline(adapt: &AdaptRecord, out: &mut Markup) {
    let words = &adapt.words;
    let decimals = number::decimals(adapt.standard_error);
    out.open("header", &[]);
    out.leaf("p", &[("class", &"kicker")], &format!("pace · {} · {}", adapt.game, adapt.method));
    out.leaf(
        "h1",
        &[],
        &format!(
            "{} on {} in {}",
            adapt.method_name(),
            counted(adapt.n_tuples, "peer", "peers"),
            adapt.game_name()
        ),
    );
    out.leaf(
        "p",
        &[("class", &"lead")],
        &format!(
            "{} of {} per peer tuple, each from an empty context. Pool {}, preset {}.{}",
            counted(adapt.passes, "encounter", "encounters"),
            counted(adapt.episodes, &words.episode, &words.episodes),
            adapt.pool,
            adapt.preset,
            if adapt.switch.is_some() { " The peers are replaced within each encounter." } else { "" }
        ),
    );
    out.open("dl", &[("class", &"headline")]);
    let interval = adapt.confidence_95.map_or(String::new(), |[low, high]| {
        format!(
            "95\u{a0}% interval {} to {}",
            number::typeset(low, decimals),
            number::typeset(high, decimals)
        )
    });
    let error = adapt.standard_error.map_or(String::new(), |error| {
        format!("± {}{}", number::typeset(error, decimals), if interval.is_empty() { "" } else { ", " })
    });
    card(
        out,
        &words.score,
        "value first",
        &number::typeset(adapt.mean, decimals),
        &format!("{error}{interval}"),
    );
    let between = |high: &str| -> Option<String> {
        let of = |name: &str| Some(number::typeset(adapt.references.get(name)?.mean, decimals));
        Some(format!("of the range from static {} to {high} {}", of("static")?, of(high)?))
    };
    if let Some(share) = adapt.normalised {
        card(out, "normalised", "value", &number::percent(share), &between("oracle").unwrap_or_default());
    }
    if let Some(share) = adapt.share_of_bayes {
        card(out, "share of bayes", "value", &number::percent(share), &between("bayes").unwrap_or_default());
    }
    if let Some(rate) = adapt.keypoint_rate {
        let first = adapt.blocks.first().and_then(|block| Some((block, block.keypoint_rate?)));
        let detail = first.map_or(String::new(), |(block, rate)| {
            format!("{} in {}", number::percent(rate), adapt.block_name(block))
        });
        let visits = adapt.keypoint_visits.as_ref().map_or(String::new(), |visits| {
            format!("{} {} per encounter; ", number::typeset(visits.mean, 2), words.episodes)
        });
        let detail = format!("{visits}{detail}");
        card(out, &format!("{} rate", words.keypoint), "value", &number::percent(rate), &detail);
    }
    out.close("dl");
    out.close("header");
}

pub(super) fn adaptation_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.blocks.is_empty() {
        return;
    }
    let chart = adaptation::chart(adapt);
    out.open("section", &[]);
    out.leaf("h2", &[], "Adaptation");
    let references = adapt.references_in_order();
    let meanings: Vec<&str> = [
        ("oracle", "oracle knows its peers"),
        ("bayes", "bayes knows the family of its peers and infers the rest from their actions"),
        ("static", "static never adapts"),
        ("nash", "nash plays an equilibrium"),
        ("random", "random takes random actions"),
    ]
    .into_iter()
    .filter(|(name, _)| references.iter().any(|(known, _)| known == name))
    .map(|(_, meaning)| meaning)
    .collect();
    if !meanings.is_empty() {
        let text = format!(
            "Reference agents on the same peers: {}. They are scripted; their scores are no limits for a learned agent.",
            meanings.join("; ")
        );
        out.leaf("p", &[("class", &"note")], &text);
    }
    figure(out, &chart, "adaptation", (832.0, 430.0), (344.0, 380.0));
    if let Some(chart) = adaptation::by_episode(adapt) {
        out.open("details", &[]);
        out.leaf("summary", &[], &format!("Score of every {}", adapt.words.episode));
        figure(out, &chart, "by-episode", (832.0, 360.0), (344.0, 320.0));
        out.close("details");
    }
    out.close("section");
}

pub(super) fn switch_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.switch.is_none() && adapt.detection.is_none() {
        return;
    }
    let words = &adapt.words;
    let decimals = number::decimals(adapt.standard_error);
    out.open("section", &[]);
    out.leaf("h2", &[], "When the peers change");
    if let Some(switch) = &adapt.switch {
        let note = format!(
            "After {} {} the peers are replaced by the next tuple of the pool. The reference agents are informed and restart.",
            words.episode, switch.after_episode
        );
        out.leaf("p", &[("class", &"note")], &note);
    }
    if let Some(detection) = &adapt.detection {
        out.leaf("p", &[("class", &"note")], &format!("The {}.", detection_line(detection, &words.episodes)));
    }
    let Some(switch) = &adapt.switch else {
        out.close("section");
        return;
    };
    let all = crate::PartRecord { mean: adapt.mean, standard_error: adapt.standard_error };
    out.open("dl", &[("class", &"headline")]);
    for (name, part) in [("before", switch.before), ("after", switch.after), ("whole encounter", all)] {
        let error = part
            .standard_error
            .map_or(String::new(), |error| format!("± {}", number::typeset(error, decimals)));
        card(out, &format!("{} {name}", words.score), "value", &number::typeset(part.mean, decimals), &error);
    }
    out.close("dl");
    out.close("section");
}

pub(super) fn identification_section(adapt: &AdaptRecord, out: &mut Markup) {
    let identification = identification::by_decision(adapt).or_else(|| identification::chart(adapt));
    let keypoint = keypoint::chart(adapt);
    let halves = [
        ("identification", "Peer identification", identification),
        ("keypoint", "Keypoint visits", keypoint),
    ];
    if halves.iter().all(|(.., chart)| chart.is_none()) {
        return;
    }
    out.open("section", &[("class", &"pair")]);
    for (id, heading, chart) in &halves {
        let Some(chart) = chart else { continue };
        out.open("div", &[]);
        out.leaf("h2", &[], heading);
        figure(out, chart, id, (398.0, 280.0), (344.0, 270.0));
        let visits = adapt.keypoint_visits.as_ref().filter(|_| *id == "keypoint");
        if let Some(distribution) = visits.and_then(visits_distribution) {
            let note = format!("Visits per encounter, counted in {}: {distribution}.", adapt.words.episodes);
            out.leaf("p", &[("class", &"note")], &note);
        }
        out.close("div");
    }
    out.close("section");
    if let Some(reason) = &adapt.identification_undefined {
        let note = format!("Peer identification is undefined here: {reason}.");
        out.leaf("p", &[("class", &"note")], &note);
    }
}

pub(super) fn blocks_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.blocks.is_empty() {
        return;
    }
    let words = &adapt.words;
    let decimals = number::decimals(adapt.standard_error);
    let references = adapt.references_in_order();
    let has_rate = adapt.keypoint_rate.is_some();
    let has_guess = adapt.blocks.iter().any(|block| block.identification.is_some());
    let has_steps = adapt.blocks.iter().any(|block| block.steps.is_some());
    let rate_name = format!("{} rate", words.keypoint);
    out.open("section", &[]);
    out.leaf("h2", &[], &format!("Score by block of {}", words.episodes));
    out.leaf(
        "p",
        &[("class", &"note")],
        &format!("Mean {} ± its standard error over encounters.", words.score),
    );
    let mut names: Vec<&str> = vec![&words.episodes, adapt.method_name()];
    names.extend(references.iter().map(|(name, _)| *name));
    if has_rate {
        names.push(&rate_name);
    }
    if has_guess {
        names.push("identified");
    }
    if has_steps {
        names.push("steps");
    }
    let headings: Vec<(&str, &str)> = names.into_iter().map(|name| ("", name)).collect();
    open_table("", &headings, out);
    for block in &adapt.blocks {
        out.open("tr", &[("role", &"row")]);
        cell(out, &words.episodes, "number", &block.range("\u{2013}"));
        score_cell(out, adapt.method_name(), block.mean, block.standard_error, decimals);
        for (name, reference) in &references {
            // On a phone, a value that is the same in every row is shown only in the last row.
            let class = if reference.blocks.is_empty() { "constant number" } else { "number" };
            cell(out, name, class, &number::typeset(score_in_block(reference, block), decimals));
        }
        if has_rate {
            cell(out, &rate_name, "number", &block.keypoint_rate.map_or(dash(), number::percent));
        }
        if has_guess {
            let guess = block.identification.map(|identification| identification.accuracy);
            cell(out, "identified", "number", &guess.map_or(dash(), number::percent));
        }
        if has_steps {
            let steps = block.steps.map_or(dash(), |steps| number::typeset(steps, 1));
            cell(out, "steps", "number", &steps);
        }
        out.close("tr");
    }
    out.open("tr", &[("role", &"row"), ("class", &"all")]);
    cell(out, &words.episodes, "number", "all");
    score_cell(out, adapt.method_name(), adapt.mean, adapt.standard_error, decimals);
    for (name, reference) in &references {
        cell(out, name, "number", &number::typeset(reference.mean, decimals));
    }
    if has_rate {
        cell(out, &rate_name, "number", &adapt.keypoint_rate.map_or(dash(), number::percent));
    }
    if has_guess {
        cell(out, "identified", "number", "");
    }
    if has_steps {
        let steps = mean_steps(adapt).map_or(dash(), |steps| number::typeset(steps, 1));
        cell(out, "steps", "number", &steps);
    }
    out.close("tr");
    close_table(out);
    out.close("section");
}

pub(super) fn peers_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.peers.is_empty() {
        return;
    }
    let decimals = number::decimals(adapt.standard_error);
    let has_oracle = adapt.peers.iter().any(|peer| peer.oracle.is_some());
    let has_blocks = adapt.peers.iter().any(|peer| peer.blocks.len() > 1);
    let over_time = format!("over {}", adapt.words.episodes);
    let bar_name = if has_oracle { "score and oracle" } else { "score" };
    out.open("section", &[]);
    out.leaf("h2", &[], "Score per peer");
    let mut note = "The bar is the score, from zero.".to_owned();
    if has_oracle {
        note.push_str(" The mark is the oracle's score; regret is oracle minus agent.");
    }
    if has_blocks {
        note.push_str(" The small line is the score over the encounter, with one scale for all peers.");
    }
    out.leaf("p", &[("class", &"note")], &note);
    let mut headings = vec![("", "peer"), ("words", "description"), ("", adapt.method_name())];
    if has_oracle {
        headings.extend([("", "oracle"), ("", "regret")]);
    }
    headings.push(("", bar_name));
    if has_blocks {
        headings.push(("", &over_time));
    }
    open_table("", &headings, out);
    let scale = BarScale::of(&adapt.peers);
    let of_blocks = adapt.peers.iter().flat_map(|peer| peer.blocks.iter().map(|block| block.mean));
    let (spark_low, spark_high) = ends(of_blocks);
    for peer in &adapt.peers {
        out.open("tr", &[("role", &"row")]);
        cell(out, "peer", "row number", &peer.index.to_string());
        cell(out, "description", "words", &peer.description);
        score_cell(out, adapt.method_name(), peer.mean, peer.standard_error, decimals);
        if has_oracle {
            let optional =
                |value: Option<f64>| value.map_or(dash(), |value| number::typeset(value, decimals));
            cell(out, "oracle", "number", &optional(peer.oracle));
            cell(out, "regret", "number", &optional(peer.regret));
        }
        out.open("td", &[("role", &"cell"), ("class", &"drawn"), ("data-name", &bar_name)]);
        scale.draw(peer, out);
        out.close("td");
        if has_blocks {
            out.open("td", &[("role", &"cell"), ("class", &"drawn"), ("data-name", &over_time)]);
            spark(&peer.blocks, spark_low, spark_high, out);
            out.close("td");
        }
        out.close("tr");
    }
    close_table(out);
    out.close("section");
}

/// The common scale of all bars of a table. It includes zero.
struct BarScale {
    low: f64,
    high: f64,
}

impl BarScale {
    const WIDTH: f64 = 120.0;
    const HEIGHT: f64 = 16.0;

    fn of(peers: &[PeerRecord]) -> BarScale {
        let values = peers.iter().flat_map(|peer| [Some(peer.mean), peer.oracle, Some(0.0)]).flatten();
        let (low, high) = ends(values);
        BarScale { low, high }
    }

    fn x(&self, value: f64) -> f64 {
        // Space at both ends for the mark.
        2.0 + (value - self.low) / (self.high - self.low) * (Self::WIDTH - 4.0)
    }

    fn draw(&self, peer: &PeerRecord, out: &mut Markup) {
        let view = format!("0 0 {} {}", Self::WIDTH, Self::HEIGHT);
        out.open("svg", &[("class", &"bar"), ("viewBox", &view), ("aria-hidden", &"true")]);
        let rect = |out: &mut Markup, class: &str, x: f64, width: f64, y: f64| {
            let height = Self::HEIGHT - 2.0 * y;
            out.empty(
                "rect",
                &[
                    ("class", &class),
                    ("x", &Px(x)),
                    ("y", &Px(y)),
                    ("width", &Px(width)),
                    ("height", &Px(height)),
                ],
            );
        };
        rect(out, "track", 0.0, Self::WIDTH, 4.0);
        let (zero, end) = (self.x(0.0), self.x(peer.mean));
        if peer.mean.is_finite() {
            rect(out, "fill", zero.min(end), (end - zero).abs(), 4.0);
        }
        rect(out, "axis", zero - 0.5, 1.0, 1.0);
        if let Some(oracle) = peer.oracle.filter(|oracle| oracle.is_finite()) {
            rect(out, "mark", self.x(oracle) - 1.25, 2.5, 1.0);
        }
        out.close("svg");
    }
}

/// Draws the scores of the blocks as a small line.
fn spark(blocks: &[BlockRecord], low: f64, high: f64, out: &mut Markup) {
    const WIDTH: f64 = 72.0;
    const HEIGHT: f64 = 20.0;
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    out.open("svg", &[("class", &"spark"), ("viewBox", &view), ("aria-hidden", &"true")]);
    let last = blocks.last().map_or(1.0, BlockRecord::middle);
    let first = blocks.first().map_or(0.0, BlockRecord::middle);
    let mut path = String::new();
    for block in blocks.iter().filter(|block| block.mean.is_finite()) {
        let x = 1.0 + (block.middle() - first) / (last - first).max(1e-9) * (WIDTH - 2.0);
        let y = HEIGHT - 2.0 - (block.mean - low) / (high - low) * (HEIGHT - 4.0);
        path.push_str(&format!("{}{} {}", if path.is_empty() { 'M' } else { 'L' }, Px(x), Px(y)));
    }
    out.empty("path", &[("d", &path)]);
    out.close("svg");
}

/// The smallest and the largest value, extended if they are equal.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low < high { (low, high) } else { (low.min(0.0).min(high), high.max(0.0) + 1.0) }
}
