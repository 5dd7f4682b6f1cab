//! Pages: a single file each that asks nothing of a network, follows the reader's light or dark, prints, and reads on a phone.
//!
//! What is on every page is here; the page of a run is in `run`, what it says about one evaluation in `evaluation`, encounters
//! to step through in `replay`. Figures are on a page twice, for wide and for narrow screens: a drawing that shrinks takes its
//! letters along.

mod evaluation;
pub mod overview;
mod replay;
mod run;
mod script;

pub use replay::{GamePage, STAGE_MODULES, STAGE_STYLE};
pub use run::RunPage;

use crate::markup::Markup;
use crate::number;
use crate::record::{AdaptRecord, TrainRecord};
use crate::svg::{self, Chart, ChartFrame};

const STYLE: &str = include_str!("../../assets/page.css");

/// The page of one evaluation, with its training if that is known.
pub fn render(adapt: &AdaptRecord, train: Option<&TrainRecord>) -> String {
    RunPage { evaluations: vec![("", adapt)], train, ..RunPage::default() }.render()
}

/// Everything around what a page has to say. Only this script runs, whatever a record says: the page names its hash.
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

/// Links to files that are written beside the page: what they are, and their paths from the page.
fn files(links: &[(&str, &str)], out: &mut Markup) {
    out.open("p", &[("class", &"files")]);
    for (name, path) in links {
        out.leaf("a", &[("href", &link(path))], name);
    }
    out.close("p");
}

/// A path as the target of a link: bytes with a meaning of their own in a URL are escaped.
fn link(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte);
    path.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", number::count(n as u64), if n == 1 { one } else { many })
}

fn nothing() -> String {
    "\u{2013}".to_owned()
}
