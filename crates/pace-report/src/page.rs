//! One run as one page: headline numbers, figures, tables, and how it all was made.
//!
//! The page is a single file that asks nothing of a network, follows the reader's light or dark, prints, and reads on
//! a phone. Figures are in it twice, for wide and for narrow screens: a drawing that shrinks takes its letters along.

use crate::figures::{adaptation, identification, keypoint, training};
use crate::markup::{Markup, Px};
use crate::number;
use crate::record::{AdaptRecord, BlockRecord, PeerRecord, TrainRecord};
use crate::svg::{self, Chart, Frame};
use crate::table::{at, detection_line, game_keys, mean_steps, visits_spread};

/// The page of a run's adaptation, with its training if that is known.
pub fn render(adapt: &AdaptRecord, train: Option<&TrainRecord>) -> String {
    let mut out = Markup::new();
    out.open("html", &[("lang", &"en")]);
    head(adapt, &mut out);
    out.open("body", &[]);
    out.open("main", &[]);
    headline(adapt, &mut out);
    adaptation_section(adapt, &mut out);
    change_section(adapt, &mut out);
    knowledge_section(adapt, &mut out);
    blocks_section(adapt, &mut out);
    peers_section(adapt, &mut out);
    if let Some(train) = train {
        training_section(train, &mut out);
    }
    making_section(adapt, train, &mut out);
    out.close("main");
    out.close("body");
    out.close("html");
    format!("<!DOCTYPE html>\n{}", out.finish())
}

const STYLE: &str = "
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:880px;margin:0 auto;padding:48px 24px 72px;overflow-wrap:anywhere}
h1,h2{line-height:1.2;letter-spacing:-.012em;text-wrap:balance}
h1{font-size:2.05rem;font-weight:650;margin:0 0 10px}
h2{font-size:1.25rem;font-weight:620;margin:0 0 6px}
section{margin-top:52px}
p{margin:0 0 14px;max-width:66ch}
.kicker{margin:0 0 8px;color:var(--muted);font-size:.875rem}
.lead{color:var(--muted);font-size:1.05rem}
.note,figcaption{color:var(--muted);font-size:.9rem;max-width:72ch}
.headline{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:1px;margin:32px 0 0;border:1px solid var(--rule);border-radius:10px;background:var(--rule);overflow:hidden}
.headline div{background:var(--paper);padding:16px 18px 14px}
.headline dt{color:var(--muted);font-size:.85rem}
.headline dd{margin:0}
.headline .value{font-size:1.75rem;font-weight:620;line-height:1.25;letter-spacing:-.01em;white-space:nowrap}
.headline .first{color:var(--agent)}
.headline .detail{color:var(--muted);font-size:.8rem;line-height:1.4}
figure{margin:18px 0 0}
figcaption{margin-top:10px}
svg.pace-figure{display:block;width:100%;height:auto}
.narrow{display:none}
.narrow svg.pace-figure{max-width:440px}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:36px}
.pair h2{font-size:1.05rem}
table{width:100%;border-collapse:collapse;margin-top:14px;font-size:.9rem}
th,td{padding:7px 0 7px 14px;text-align:right;border-bottom:1px solid var(--rule);vertical-align:middle}
th{color:var(--muted);font-weight:500;vertical-align:bottom;overflow-wrap:normal}
th:first-child,td:first-child{padding-left:0;text-align:left}
td.words,th.words{text-align:left;overflow-wrap:anywhere}
td.number{white-space:nowrap}
tbody th{font-weight:500;color:var(--ink)}
tr.all td,tr.all th{border-bottom:0;font-weight:620}
.error{color:var(--muted);font-weight:400}
.score{color:var(--agent);font-weight:620}
.bar{display:block;width:120px;height:16px;margin-left:auto}
.bar .track{fill:var(--panel)}
.bar .fill{fill:var(--agent);opacity:.85}
.bar .mark{fill:var(--oracle);stroke:var(--paper);stroke-width:1}
.bar .axis{fill:var(--muted)}
.spark{display:block;width:72px;height:20px;margin-left:auto}
.spark path{fill:none;stroke:var(--agent);stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:6px 22px;margin:14px 0 0;font-size:.9rem}
.facts dt{color:var(--muted)}
.facts dd{margin:0;min-width:0}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;font-size:.85rem}
pre{margin:12px 0 0;padding:13px 16px;background:var(--panel);border:1px solid var(--rule);border-radius:8px;white-space:pre-wrap;overflow-wrap:anywhere}
.word{display:inline-block;max-width:100%}
details{margin-top:18px}
summary{cursor:pointer;color:var(--muted);font-size:.9rem}
@media screen and (max-width:760px){
main{padding:26px 16px 48px}
h1{font-size:1.6rem}
section{margin-top:40px}
.headline{grid-template-columns:1fr 1fr;margin-top:22px}
.headline div{padding:12px 13px 11px}
.headline .value{font-size:1.3rem}
.pair{grid-template-columns:1fr;gap:40px}
.pair .wide svg.pace-figure{max-width:440px}
table,tbody{display:block}
thead{display:none}
tbody tr{display:grid;grid-template-columns:repeat(3,minmax(0,1fr));gap:3px 14px;padding:11px 0;border-bottom:1px solid var(--rule)}
tbody tr:last-child{border-bottom:0}
tbody td,tbody th,tr.all td,tr.all th{display:block;padding:0;border:0;text-align:left}
td::before{content:attr(data-name);display:block;white-space:normal;color:var(--muted);font-size:.75rem;line-height:1.35;font-weight:400}
td.broad{grid-column:span 2}
tbody tr td:empty,tr:not(.all) td.constant{display:none}
td.row,td.words{grid-column:1/-1}
td.row{font-weight:620}
td.row::before{display:inline;font-size:inherit;content:attr(data-name) ' '}
td.words::before{display:none}
.bar,.spark{margin:2px 0 3px;max-width:100%}
.facts{grid-template-columns:1fr;gap:0}
.facts dd{margin-bottom:9px}
}
@media screen and (max-width:640px){
.wide{display:none}
.narrow{display:block}
}
@media print{
body{font-size:10.5pt}
main{max-width:none;padding:0}
section{margin-top:26pt}
.wide{display:block}
.narrow{display:none}
figure,tr,p,.headline,pre{break-inside:avoid}
h2,.note{break-after:avoid}
table{font-size:.8rem}
.band,.bar rect{print-color-adjust:exact;-webkit-print-color-adjust:exact}
details::details-content{content-visibility:visible;block-size:auto}
}
";

fn head(adapt: &AdaptRecord, out: &mut Markup) {
    out.open("head", &[]);
    out.empty("meta", &[("charset", &"utf-8")]);
    out.empty("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    // Nothing is loaded from anywhere and nothing runs, whatever a record says.
    out.empty(
        "meta",
        &[
            ("http-equiv", &"Content-Security-Policy"),
            ("content", &"default-src 'none'; style-src 'unsafe-inline'"),
        ],
    );
    out.leaf("title", &[], &format!("{} on {}", adapt.method_name(), adapt.game_name()));
    out.style(svg::PALETTE);
    out.style(svg::STYLE);
    out.style(STYLE);
    out.close("head");
}

fn headline(adapt: &AdaptRecord, out: &mut Markup) {
    let words = &adapt.words;
    let decimals = number::decimals(adapt.standard_error);
    out.open("header", &[]);
    out.leaf("p", &[("class", &"kicker")], &format!("pace · {} · {}", adapt.game, adapt.method));
    out.leaf(
        "h1",
        &[],
        &format!(
            "{} meets {} in {}",
            adapt.method_name(),
            counted(adapt.n_tuples, "peer", "peers"),
            adapt.game_name()
        ),
    );
    out.leaf(
        "p",
        &[("class", &"lead")],
        &format!(
            "{} of {} with each of them, every one from an empty context. Pool {}, preset {}.{}",
            counted(adapt.passes, "encounter", "encounters"),
            counted(adapt.episodes, &words.episode, &words.episodes),
            adapt.pool,
            adapt.preset,
            if adapt.switch.is_some() { " In the middle other peers take over." } else { "" }
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
    let bounds = |high: &str| -> Option<String> {
        let of = |name: &str| Some(number::typeset(adapt.references.get(name)?.mean, decimals));
        Some(format!("of the way from static {} to {high} {}", of("static")?, of(high)?))
    };
    if let Some(share) = adapt.normalised {
        card(out, "normalised", "value", &number::percent(share), &bounds("oracle").unwrap_or_default());
    }
    if let Some(share) = adapt.share_of_bayes {
        card(out, "share of bayes", "value", &number::percent(share), &bounds("bayes").unwrap_or_default());
    }
    if let Some(rate) = adapt.keypoint_rate {
        let firsts = adapt.blocks.first().and_then(|block| Some((block, block.keypoint_rate?)));
        let detail = firsts.map_or(String::new(), |(block, rate)| {
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

fn card(out: &mut Markup, name: &str, class: &str, value: &str, detail: &str) {
    out.open("div", &[]);
    out.leaf("dt", &[], name);
    out.leaf("dd", &[("class", &class)], value);
    if !detail.is_empty() {
        out.leaf("dd", &[("class", &"detail")], detail);
    }
    out.close("div");
}

fn adaptation_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.blocks.is_empty() {
        return;
    }
    let chart = adaptation::chart(adapt);
    out.open("section", &[]);
    out.leaf("h2", &[], "Adaptation");
    let references = adapt.references_in_order();
    let told: Vec<&str> = [
        ("oracle", "oracle knows its peers"),
        ("bayes", "bayes must find out and does so as well as can be"),
        ("static", "static never adapts"),
        ("nash", "nash cannot be exploited and exploits nobody"),
        ("random", "random takes any action"),
    ]
    .into_iter()
    .filter(|(name, _)| references.iter().any(|(known, _)| known == name))
    .map(|(_, meaning)| meaning)
    .collect();
    if !told.is_empty() {
        out.leaf("p", &[("class", &"note")], &format!("On the same peers: {}.", told.join("; ")));
    }
    figure(out, &chart, "adaptation", (832.0, 430.0), (344.0, 380.0));
    if let Some(chart) = adaptation::by_episode(adapt) {
        out.open("details", &[]);
        out.leaf("summary", &[], &format!("Every {} by itself", adapt.words.episode));
        figure(out, &chart, "by-episode", (832.0, 360.0), (344.0, 320.0));
        out.close("details");
    }
    out.close("section");
}

fn change_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.switch.is_none() && adapt.detection.is_none() {
        return;
    }
    let words = &adapt.words;
    let decimals = number::decimals(adapt.standard_error);
    out.open("section", &[]);
    out.leaf("h2", &[], "When the peers change");
    if let Some(switch) = &adapt.switch {
        let note = format!(
            "After {} {} the next tuple of the pool sits down. The scripted agents are told, and begin anew.",
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
    for (name, part) in [("before", switch.before), ("after", switch.after), ("all along", all)] {
        let error = part
            .standard_error
            .map_or(String::new(), |error| format!("± {}", number::typeset(error, decimals)));
        card(out, &format!("{} {name}", words.score), "value", &number::typeset(part.mean, decimals), &error);
    }
    out.close("dl");
    out.close("section");
}

fn knowledge_section(adapt: &AdaptRecord, out: &mut Markup) {
    let identification = identification::by_decision(adapt).or_else(|| identification::chart(adapt));
    let keypoint = keypoint::chart(adapt);
    let halves = [
        ("identification", "Does it know who it plays with?", identification),
        ("keypoint", "Does it go where it can find out?", keypoint),
    ];
    if halves.iter().all(|(.., chart)| chart.is_none()) {
        return;
    }
    out.open("section", &[("class", &"pair")]);
    for (id, question, chart) in &halves {
        let Some(chart) = chart else { continue };
        out.open("div", &[]);
        out.leaf("h2", &[], question);
        figure(out, chart, id, (398.0, 280.0), (344.0, 270.0));
        let spread = adapt.keypoint_visits.as_ref().filter(|_| *id == "keypoint").and_then(visits_spread);
        if let Some(spread) = spread {
            let note = format!("Visits per encounter, counted in {}: {spread}.", adapt.words.episodes);
            out.leaf("p", &[("class", &"note")], &note);
        }
        out.close("div");
    }
    out.close("section");
    if let Some(reason) = &adapt.identification_undefined {
        let note =
            format!("Whether the agent's guesses about its peers are right is undefined here: {reason}.");
        out.leaf("p", &[("class", &"note")], &note);
    }
}

fn blocks_section(adapt: &AdaptRecord, out: &mut Markup) {
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
    out.leaf("h2", &[], &format!("As the {} go by", words.episodes));
    out.leaf(
        "p",
        &[("class", &"note")],
        &format!("Mean {} ± its standard error over encounters.", words.score),
    );
    out.open("table", &[("role", &"table")]);
    out.open("thead", &[("role", &"rowgroup")]);
    out.open("tr", &[("role", &"row")]);
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
    for name in names {
        out.leaf("th", &[("role", &"columnheader"), ("scope", &"col")], name);
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[("role", &"rowgroup")]);
    for block in &adapt.blocks {
        out.open("tr", &[("role", &"row")]);
        cell(out, &words.episodes, "number", &block.range("\u{2013}"));
        score_cell(out, adapt.method_name(), block.mean, block.standard_error, decimals);
        for (name, reference) in &references {
            // On a phone, what is the same in every row is said once, in the last.
            let class = if reference.blocks.is_empty() { "constant number" } else { "number" };
            cell(out, name, class, &number::typeset(at(reference, block), decimals));
        }
        if has_rate {
            cell(out, &rate_name, "number", &block.keypoint_rate.map_or(nothing(), number::percent));
        }
        if has_guess {
            let guess = block.identification.map(|identification| identification.accuracy);
            cell(out, "identified", "number", &guess.map_or(nothing(), number::percent));
        }
        if has_steps {
            let steps = block.steps.map_or(nothing(), |steps| number::typeset(steps, 1));
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
        cell(out, &rate_name, "number", &adapt.keypoint_rate.map_or(nothing(), number::percent));
    }
    if has_guess {
        cell(out, "identified", "number", "");
    }
    if has_steps {
        let steps = mean_steps(adapt).map_or(nothing(), |steps| number::typeset(steps, 1));
        cell(out, "steps", "number", &steps);
    }
    out.close("tr");
    out.close("tbody");
    out.close("table");
    out.close("section");
}

fn peers_section(adapt: &AdaptRecord, out: &mut Markup) {
    if adapt.peers.is_empty() {
        return;
    }
    let decimals = number::decimals(adapt.standard_error);
    let has_oracle = adapt.peers.iter().any(|peer| peer.oracle.is_some());
    let has_blocks = adapt.peers.iter().any(|peer| peer.blocks.len() > 1);
    let over_time = format!("over {}", adapt.words.episodes);
    let bar_name = if has_oracle { "beside oracle" } else { "score" };
    out.open("section", &[]);
    out.leaf("h2", &[], "Peer by peer");
    let mut note = "The bar is the score, from zero.".to_owned();
    if has_oracle {
        note.push_str(
            " The mark is what an agent that knows the peer reaches; regret is what not knowing it cost.",
        );
    }
    if has_blocks {
        note.push_str(" The small line is the score over the encounter, all to one scale.");
    }
    out.leaf("p", &[("class", &"note")], &note);
    out.open("table", &[("role", &"table")]);
    out.open("thead", &[("role", &"rowgroup")]);
    out.open("tr", &[("role", &"row")]);
    let mut names = vec![("", "peer"), ("words", "description"), ("", adapt.method_name())];
    if has_oracle {
        names.extend([("", "oracle"), ("", "regret")]);
    }
    names.push(("", bar_name));
    if has_blocks {
        names.push(("", &over_time));
    }
    for (class, name) in names {
        out.leaf("th", &[("role", &"columnheader"), ("scope", &"col"), ("class", &class)], name);
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[("role", &"rowgroup")]);
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
                |value: Option<f64>| value.map_or(nothing(), |value| number::typeset(value, decimals));
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
    out.close("tbody");
    out.close("table");
    out.close("section");
}

fn training_section(train: &TrainRecord, out: &mut Markup) {
    let (Some(wide), Some(narrow)) = (
        training::inline(train, 3, 262.0, "training-wide"),
        training::inline(train, 1, 344.0, "training-narrow"),
    ) else {
        return;
    };
    out.open("section", &[]);
    out.leaf("h2", &[], "Training");
    out.leaf("p", &[("class", &"note")], "Each metric over the steps of the game.");
    out.open("figure", &[]);
    both(out, &wide, &narrow);
    out.close("figure");
    let n_shown = training::panels(train).len();
    if train.curves.len() > n_shown {
        let names: Vec<&str> = train.curves.keys().map(String::as_str).collect();
        out.leaf(
            "p",
            &[("class", &"note")],
            &format!("{n_shown} of {} metrics are shown. Recorded: {}.", names.len(), names.join(", ")),
        );
    }
    out.close("section");
}

fn making_section(adapt: &AdaptRecord, train: Option<&TrainRecord>, out: &mut Markup) {
    let run = &adapt.run;
    out.open("section", &[]);
    out.leaf("h2", &[], "How this was made");
    if !adapt.command.is_empty() {
        // Word by word, so that a narrow screen does not break `--pool` between its hyphens.
        let words = adapt.command.split_inclusive(' ');
        let pieces: Vec<_> = words
            .flat_map(|word| {
                let bare = word.trim_end_matches(' ');
                [(Some(("span", "word")), bare), (None, &word[bare.len()..])]
            })
            .collect();
        out.pieces("pre", &[], &pieces);
    }
    out.open("dl", &[("class", &"facts")]);
    let wall_clock = run.wall_clock_secs.or(train.map(|train| train.wall_clock_secs));
    let facts = [
        ("run", Some(run.folder.clone())),
        ("game, preset", Some(format!("{}, {}", adapt.game, adapt.preset))),
        ("method", Some(adapt.method.clone())),
        ("metric", Some(adapt.metric.clone())),
        ("keys set otherwise than in training", Some(game_keys(adapt))),
        (
            "context",
            adapt
                .context_episodes
                .map(|n| format!("the last {}", counted(n, &adapt.words.episode, &adapt.words.episodes))),
        ),
        ("seed", Some(run.seed.to_string())),
        ("steps of training", Some(number::count(run.steps))),
        ("time of training", wall_clock.map(number::duration)),
        ("commit", run.commit.clone().or(train.and_then(|train| train.commit.clone()))),
        ("hash of the config", run.config_hash.clone()),
        ("format of the record", Some(crate::FORMAT_VERSION.to_string())),
    ];
    for (name, value) in facts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            out.leaf("dt", &[], name);
            out.leaf("dd", &[], &value);
        }
    }
    out.close("dl");
    if let Some(train) = train.filter(|train| !train.config.is_null()) {
        let config = serde_json::to_string_pretty(&train.config).expect("a JSON value can be written");
        out.open("details", &[]);
        out.leaf("summary", &[], "Configuration, every key as it was resolved");
        out.leaf("pre", &[], &config);
        out.close("details");
    }
    out.close("section");
}

fn figure(out: &mut Markup, chart: &Chart, id: &str, wide: (f64, f64), narrow: (f64, f64)) {
    let frame = |(width, height)| Frame { width, height, heading: false, names: true };
    out.open("figure", &[]);
    let wide = chart.inline(frame(wide), &format!("{id}-wide"));
    let narrow = chart.inline(frame(narrow), &format!("{id}-narrow"));
    both(out, &wide, &narrow);
    out.leaf("figcaption", &[], &chart.description);
    out.close("figure");
}

fn both(out: &mut Markup, wide: &Markup, narrow: &Markup) {
    for (class, drawing) in [("wide", wide), ("narrow", narrow)] {
        out.open("div", &[("class", &class)]);
        out.append(drawing);
        out.close("div");
    }
}

fn cell(out: &mut Markup, name: &str, class: &str, text: &str) {
    out.leaf("td", &[("role", &"cell"), ("class", &class), ("data-name", &name)], text);
}

fn score_cell(out: &mut Markup, name: &str, mean: f64, standard_error: Option<f64>, decimals: usize) {
    let mean = number::typeset(mean, decimals);
    let error = standard_error.map(|error| format!(" ± {}", number::typeset(error, decimals)));
    let mut pieces = vec![(Some(("span", "score")), mean.as_str())];
    pieces.extend(error.as_deref().map(|error| (Some(("span", "error")), error)));
    out.pieces("td", &[("role", &"cell"), ("class", &"broad number"), ("data-name", &name)], &pieces);
}

/// All bars of a table to one scale, which has zero in it.
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
        // A little room at either end for the mark.
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

/// The smallest and the largest of the values, never the same.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low < high { (low, high) } else { (low.min(0.0).min(high), high.max(0.0) + 1.0) }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", number::count(n as u64), if n == 1 { one } else { many })
}

fn nothing() -> String {
    "\u{2013}".to_owned()
}
