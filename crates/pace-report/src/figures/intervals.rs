//! Means over seeds with standard deviations, one row each, with the paper's numbers and the scores of reference agents.

use std::fmt::Write;

use crate::csv::{optional, quoted};
use crate::experiment_result::{PaperNumber, SeedStatistics};
use crate::markup::{Markup, Px};
use crate::number;
use crate::svg::{LineStyle, SvgFragment, TEXT_SIZE, Ticks, round_ticks, span, text_width, wrap};

/// Rows of means.
#[derive(Clone, Debug)]
pub struct Intervals {
    /// The title.
    pub title: String,
    /// The label of the axis.
    pub label: String,
    /// The rows: a name, our statistics, and the paper's number.
    pub rows: Vec<(String, Option<SeedStatistics>, Option<PaperNumber>)>,
    /// The range of possible values; `None` if it is unlimited.
    pub limits: Option<(f64, f64)>,
    /// Reference agents on the same peers.
    pub references: Vec<(String, f64)>,
    /// Further sentences of the description, each with a leading space; may be empty.
    pub note: String,
}

/// The height of a row.
pub(super) const ROW: f64 = 34.0;
const LABEL_LINE: f64 = 14.0;

/// The name of a reference agent above its line.
#[derive(Debug)]
struct ReferenceLabel {
    name: String,
    style: LineStyle,
    /// The horizontal position of the line.
    x: f64,
    /// The horizontal centre of the name.
    middle: f64,
    /// Half the width of the name.
    half: f64,
    /// The line of text, counted upwards from the figure.
    line: usize,
}

fn draw_references(labels: &[ReferenceLabel], (top, bottom): (f64, f64), out: &mut Markup) {
    for label in labels {
        let class = label.style.class();
        let height = top - 4.0 - LABEL_LINE * label.line as f64;
        let path = format!("M{} {}V{}", Px(label.x), Px(height), Px(bottom));
        out.empty("path", &[("class", &format!("line {class}")), ("d", &path)]);
        let at = (Px(label.middle), Px(height - 4.0));
        out.leaf(
            "text",
            &[("class", &class), ("x", &at.0), ("y", &at.1), ("text-anchor", &"middle")],
            &label.name,
        );
    }
}

/// Draws the ticks of a horizontal axis with their lines, and its label.
pub(super) fn draw_axis(
    ticks: &[f64],
    format: Ticks,
    x: &impl Fn(f64) -> f64,
    (top, bottom, right): (f64, f64, f64),
    label: &str,
    out: &mut Markup,
) {
    let step = ticks.get(1).map_or(1.0, |second| second - ticks[0]);
    for tick in ticks {
        let path = format!("M{} {}V{}", Px(x(*tick)), Px(top), Px(bottom));
        out.empty("path", &[("class", &"grid"), ("d", &path)]);
        let at = (Px(x(*tick)), Px(bottom + 16.0));
        out.leaf(
            "text",
            &[("class", &"quiet"), ("x", &at.0), ("y", &at.1), ("text-anchor", &"middle")],
            &format.label(*tick, step),
        );
    }
    out.leaf(
        "text",
        &[("class", &"quiet"), ("x", &Px(right)), ("y", &Px(bottom + 33.0)), ("text-anchor", &"end")],
        label,
    );
}

/// Draws the name of the row at height `y`, in as many lines as the space to its left needs.
pub(super) fn draw_row_name(name: &str, class: &str, (y, left): (f64, f64), out: &mut Markup) {
    let lines = wrap(name, TEXT_SIZE, left - 8.0);
    let first = y + 4.0 - (lines.len() - 1) as f64 * LABEL_LINE / 2.0;
    for (line, text) in lines.iter().enumerate() {
        let y = Px(first + line as f64 * LABEL_LINE);
        out.leaf("text", &[("class", &class), ("x", &0), ("y", &y)], text);
    }
}

/// The paper's number, if it can be drawn on the same axis.
fn comparable(paper: Option<PaperNumber>) -> Option<PaperNumber> {
    paper.filter(|paper| paper.is_comparable)
}

fn row_name((name, statistics, _): &(String, Option<SeedStatistics>, Option<PaperNumber>)) -> String {
    if statistics.is_some() { name.clone() } else { format!("{name}: not run") }
}

impl Intervals {
    /// The figure as text, for readers who cannot see it.
    pub fn description(&self) -> String {
        let of_row = |(name, statistics, paper): &(String, Option<SeedStatistics>, Option<PaperNumber>)| {
            let ours = statistics.as_ref().map(|statistics| number::typeset(statistics.mean, 4));
            let papers = comparable(*paper).map(|paper| format!("paper {}", number::typeset(paper.mean, 3)));
            Some(format!("{name} {}{}", ours?, papers.map_or(String::new(), |papers| format!(" ({papers})"))))
        };
        let rows: Vec<String> = self.rows.iter().filter_map(of_row).collect();
        let is_omitted = |paper: &PaperNumber| !paper.is_comparable;
        let omitted = if self.rows.iter().filter_map(|(.., paper)| paper.as_ref()).any(is_omitted) {
            " Numbers of the paper that are not comparable with ours are not shown."
        } else {
            ""
        };
        format!(
            "Dot: our mean over seeds, with its standard deviation; small dots: seeds; diamond: the paper. {}.{omitted}{}",
            rows.join(", "),
            self.note
        )
    }

    pub(super) fn draw(&self, width: f64) -> SvgFragment {
        let names: Vec<String> = self.rows.iter().map(row_name).collect();
        let widest = names.iter().map(|name| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
        let left = (widest + 16.0).min(width * 0.42);
        let right = width - 16.0;
        let of_rows = self.rows.iter().flat_map(|(_, statistics, paper)| {
            let ours = statistics.as_ref().map_or(Vec::new(), |statistics| {
                let reach = statistics.std.unwrap_or(0.0);
                let seeds = statistics.seeds.iter().map(|(_, value, _)| *value);
                seeds.chain([statistics.mean - reach, statistics.mean + reach]).collect()
            });
            let papers = comparable(*paper).map_or(Vec::new(), |paper| {
                let reach = paper.std.unwrap_or(0.0);
                vec![paper.mean - reach, paper.mean + reach]
            });
            ours.into_iter().chain(papers)
        });
        let (low, high) = span(of_rows.chain(self.references.iter().map(|(_, value)| *value)));
        let (min, max) = self.limits.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let (low, high) = (low.max(min), high.min(max));
        let ticks = round_ticks(low, high, ((right - left) / 80.0).clamp(2.0, 8.0) as usize, Ticks::Plain);
        let (low, high) = (ticks[0].min(low).max(min), ticks[ticks.len() - 1].max(high).min(max));
        // A standard deviation may exceed the possible values; its line ends at the end of the axis.
        let x = |value: f64| left + (value.clamp(low, high) - low) / (high - low) * (right - left);
        let labels = self.reference_labels(width, &x);
        let n_label_lines = labels.iter().map(|label| label.line + 1).max().unwrap_or(1);
        let top = 10.0 + LABEL_LINE * n_label_lines as f64;
        let bottom = top + self.rows.len() as f64 * ROW + 4.0;
        let height = bottom + 40.0;
        let mut out = Markup::new();
        out.open("g", &[("class", &"compared")]);
        let shown: Vec<f64> =
            ticks.into_iter().filter(|tick| (low - 1e-9..=high + 1e-9).contains(tick)).collect();
        draw_axis(&shown, Ticks::Plain, &x, (top, bottom, right), &self.label, &mut out);
        draw_references(&labels, (top, bottom), &mut out);
        for (place, ((name, statistics, paper), shown)) in self.rows.iter().zip(&names).enumerate() {
            let y = top + (place as f64 + 0.5) * ROW;
            draw_row_name(shown, if statistics.is_some() { "" } else { "quiet" }, (y, left), &mut out);
            if let Some(paper) = comparable(*paper) {
                let y = y + 7.0;
                if let Some(std) = paper.std {
                    let path = format!("M{} {}H{}", Px(x(paper.mean - std)), Px(y), Px(x(paper.mean + std)));
                    out.empty("path", &[("class", &"papers-whisker"), ("d", &path)]);
                }
                let path = format!("M{} {}l5 5l-5 5l-5 -5Z", Px(x(paper.mean)), Px(y - 5.0));
                out.open("path", &[("class", &"papers"), ("d", &path)]);
                out.leaf("title", &[], &format!("the paper: {}", number::typeset(paper.mean, 3)));
                out.close("path");
            }
            let Some(statistics) = statistics else { continue };
            let y = y - 6.0;
            if let Some(std) = statistics.std {
                let path =
                    format!("M{} {}H{}", Px(x(statistics.mean - std)), Px(y), Px(x(statistics.mean + std)));
                out.empty("path", &[("class", &"whisker"), ("d", &path)]);
            }
            for (_, value, _) in statistics.seeds.iter().filter(|_| statistics.seeds.len() > 1) {
                out.empty("circle", &[("class", &"seed"), ("cx", &Px(x(*value))), ("cy", &Px(y)), ("r", &3)]);
            }
            let class = if statistics.is_scaled() { "mean scaled" } else { "mean" };
            out.open(
                "circle",
                &[("class", &class), ("cx", &Px(x(statistics.mean))), ("cy", &Px(y)), ("r", &5.5)],
            );
            out.leaf("title", &[], &format!("{name}: {}", number::typeset(statistics.mean, 4)));
            out.close("circle");
        }
        out.close("g");
        SvgFragment { width, height, drawing: out }
    }

    /// Places the name of every reference agent above its line. Names that would overlap get different lines of text.
    fn reference_labels(&self, width: f64, x: &impl Fn(f64) -> f64) -> Vec<ReferenceLabel> {
        let styles = LineStyle::of_references(self.references.iter().map(|(name, _)| name.as_str()));
        let mut labels: Vec<ReferenceLabel> = Vec::new();
        for ((name, style), (_, value)) in styles.into_iter().zip(&self.references) {
            let half = text_width(name, TEXT_SIZE) / 2.0;
            let middle = x(*value).min(width - half);
            let collides = |line: usize| {
                let on_line = labels.iter().filter(|label| label.line == line);
                on_line.into_iter().any(|label| (label.middle - middle).abs() < label.half + half)
            };
            let line = (0..).find(|line| !collides(*line)).expect("some line of text is free");
            labels.push(ReferenceLabel { name: name.to_owned(), style, x: x(*value), middle, half, line });
        }
        labels
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "row,mean,std,seeds,paper_mean,paper_std,paper_comparable\n".to_owned();
        for (name, statistics, paper) in &self.rows {
            let (mean, std, seeds) = statistics.as_ref().map_or((None, None, 0), |statistics| {
                (Some(statistics.mean), statistics.std, statistics.n_seeds())
            });
            let (paper_mean, paper_std) = paper.map_or((None, None), |paper| (Some(paper.mean), paper.std));
            writeln!(
                text,
                "{},{},{},{seeds},{},{},{}",
                quoted(name),
                optional(mean),
                optional(std),
                optional(paper_mean),
                optional(paper_std),
                paper.map_or(String::new(), |paper| paper.is_comparable.to_string())
            )
            .expect("a string takes any text");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;
    use crate::experiment_result::{PaperNumber, SeedStatistics};

    fn figure(references: &[(&str, f64)], is_comparable: bool) -> Intervals {
        let statistics = SeedStatistics {
            seeds: vec![(0, 0.95, None), (1, 0.85, None)],
            mean: 0.9,
            std: Some(0.2),
            scale: 1.0,
            ..SeedStatistics::default()
        };
        let paper = PaperNumber { mean: 0.553, std: None, is_comparable };
        Intervals {
            title: String::new(),
            label: String::new(),
            rows: vec![("PACE".to_owned(), Some(statistics), Some(paper))],
            limits: Some((0.0, 1.0)),
            references: references.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            note: String::new(),
        }
    }

    #[test]
    fn names_of_close_reference_lines_are_all_shown() {
        let svg =
            figure(&[("oracle", 0.98), ("bayes", 0.99), ("static", 0.1)], true).draw(344.0).drawing.finish();
        for name in ["oracle", "bayes", "static"] {
            assert!(svg.contains(&format!(">{name}</text>")), "no {name}");
        }
    }

    #[test]
    fn an_axis_of_shares_ends_at_one() {
        let svg = figure(&[], true).draw(600.0).drawing.finish();
        assert!(svg.contains(">1.0</text>") && !svg.contains(">1.2</text>"), "{svg}");
    }

    #[test]
    fn a_number_that_is_not_comparable_is_not_drawn() {
        let is_drawn = |figure: &Intervals| figure.draw(600.0).drawing.finish().contains("the paper: 0.553");
        let same = figure(&[], true);
        assert!(is_drawn(&same) && same.description().contains("paper 0.553"));
        let other = figure(&[], false);
        assert!(!is_drawn(&other) && !other.description().contains("0.553"));
        assert!(other.description().contains("not comparable with ours are not shown"));
        assert!(other.csv().ends_with("0.553,,false\n"), "{}", other.csv());
    }
}
