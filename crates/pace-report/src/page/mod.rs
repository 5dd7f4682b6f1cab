//! HTML pages. Each is a single file without network requests, with light and dark colours, for screens, phones and printers.
//!
//! This file has the elements of every page. `run` writes the page of a run, `evaluation` its sections about one evaluation,
//! `overview` the page of many runs, and `replay` the replays. A figure is on the page twice, for wide and for narrow screens,
//! because scaling a figure down would also scale its text.

mod evaluation;
pub mod overview;
mod replay;
mod run;
mod script;

pub use replay::{GamePage, STAGE_MODULES, STAGE_STYLE};
pub use run::RunPage;

use std::fmt::Display;

use serde_json::Value;

use crate::markup::Markup;
use crate::number;
use crate::record::{AdaptRecord, TrainRecord};
use crate::svg::{self, Chart, ChartFrame};

const STYLE: &str = include_str!("../../assets/page.css");

/// Writes the page of one evaluation, with its training if given.
pub fn render(adapt: &AdaptRecord, train: Option<&TrainRecord>) -> String {
    RunPage { evaluations: vec![("", adapt)], train, ..RunPage::default() }.render()
}

/// Writes a page around its body. The page names the hash of the script, so that no other script runs.
fn shell(
    title: &str,
    styles: &[&'static str],
    script: Option<&str>,
    body: impl FnOnce(&mut Markup),
) -> String {
    let mut out = Markup::new();
    out.open("html", &[("lang", &"en")]);
    out.open("head", &[]);
    out.empty("meta", &[("charset", &"utf-8")]);
    out.empty("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    let mut policy = "default-src 'none'; style-src 'unsafe-inline'".to_owned();
    if let Some(script) = script {
        policy.push_str(&format!("; script-src '{}'", script::hash(script)));
    }
    out.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
    out.leaf("title", &[], title);
    for style in [svg::PALETTE, svg::STYLE, STYLE].iter().chain(styles) {
        out.style(style);
    }
    out.close("head");
    out.open("body", &[]);
    out.open("main", &[]);
    body(&mut out);
    out.close("main");
    if let Some(script) = script {
        out.script(script);
    }
    out.close("body");
    out.close("html");
    format!("<!DOCTYPE html>\n{}", out.finish())
}

/// Opens a table up to its body, with the class and the text of every column heading.
fn open_table(class: &str, headings: &[(&str, &str)], out: &mut Markup) {
    let table: [(&str, &dyn Display); 2] = [("role", &"table"), ("class", &class)];
    out.open("table", if class.is_empty() { &table[..1] } else { &table });
    out.open("thead", &[("role", &"rowgroup")]);
    out.open("tr", &[("role", &"row")]);
    for (class, text) in headings {
        let attributes: [(&str, &dyn Display); 3] =
            [("role", &"columnheader"), ("scope", &"col"), ("class", class)];
        out.leaf("th", if class.is_empty() { &attributes[..2] } else { &attributes }, text);
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[("role", &"rowgroup")]);
}

fn close_table(out: &mut Markup) {
    out.close("tbody");
    out.close("table");
}

/// Writes a list of facts, without those that are missing or empty.
fn facts(facts: &[(&str, Option<String>)], out: &mut Markup) {
    out.open("dl", &[("class", &"facts")]);
    for (name, value) in facts {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            out.leaf("dt", &[], name);
            out.leaf("dd", &[], value);
        }
    }
    out.close("dl");
}

/// A configuration as indented JSON, in an element that is closed at first.
fn config_details(summary: &str, config: &Value, out: &mut Markup) {
    let config = serde_json::to_string_pretty(config).expect("a JSON value can be written");
    out.open("details", &[]);
    out.leaf("summary", &[], summary);
    out.leaf("pre", &[], &config);
    out.close("details");
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

fn figure(out: &mut Markup, chart: &Chart, id: &str, wide: (f64, f64), narrow: (f64, f64)) {
    let frame = |(width, height)| ChartFrame { width, height, heading: false, names: true };
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

/// Writes links to files next to the page: their labels, and their paths relative to the page.
fn files(links: &[(&str, &str)], out: &mut Markup) {
    out.open("p", &[("class", &"files")]);
    for (name, path) in links {
        out.leaf("a", &[("href", &link(path))], name);
    }
    out.close("p");
}

/// Escapes the bytes of a path that have a special meaning in a URL.
fn link(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", number::count(n as u64), if n == 1 { one } else { many })
}

/// The text of a missing value.
fn dash() -> String {
    "\u{2013}".to_owned()
}
