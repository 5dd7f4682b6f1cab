//! Means over seeds with their deviation, one row each, beside the paper's and between the scripted egos that bound them.

use std::fmt::Write;

use crate::csv::quoted;
use crate::markup::{Markup, Px};
use crate::number;
use crate::study::{Measured, PaperNumber};
use crate::svg::{Drawing, Look, TEXT_SIZE, Ticks, round_ticks, span, text_width};

/// Rows of means.
#[derive(Clone, Debug)]
pub struct Intervals {
    /// What it shows.
    pub title: String,
    /// What is measured.
    pub label: String,
    /// The rows: a name, what was measured, and what the paper has.
    pub rows: Vec<(String, Option<Measured>, Option<PaperNumber>)>,
    /// Scripted egos on the same peers.
    pub references: Vec<(String, f64)>,
}

const ROW: f64 = 34.0;

impl Intervals {
    /// The figure in words.
    pub fn description(&self) -> String {
        let of_row = |(name, measured, paper): &(String, Option<Measured>, Option<PaperNumber>)| {
            let ours = measured.as_ref().map(|measured| number::typeset(measured.mean, 4));
            let papers = paper.map(|paper| format!("paper {}", number::typeset(paper.mean, 3)));
            Some(format!("{name} {}{}", ours?, papers.map_or(String::new(), |papers| format!(" ({papers})"))))
        };
        let rows: Vec<String> = self.rows.iter().filter_map(of_row).collect();
        format!(
            "Dot: our mean over seeds, with its deviation; small dots: seeds; diamond: the paper. {}.",
            rows.join(", ")
        )
    }

    pub(super) fn draw(&self, width: f64) -> Drawing {
        const TOP: f64 = 24.0;
        let height = TOP + self.rows.len() as f64 * ROW + 44.0;
        let bottom = height - 40.0;
        let widest = self.rows.iter().map(|(name, ..)| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
        let left = (widest + 16.0).min(width * 0.42);
        let right = width - 16.0;
        let of_rows = self.rows.iter().flat_map(|(_, measured, paper)| {
            let ours = measured.as_ref().map_or(Vec::new(), |measured| {
                let reach = measured.std.unwrap_or(0.0);
                let seeds = measured.seeds.iter().map(|(_, value, _)| *value);
                seeds.chain([measured.mean - reach, measured.mean + reach]).collect()
            });
            let papers = paper.map_or(Vec::new(), |paper| {
                let reach = paper.std.unwrap_or(0.0);
                vec![paper.mean - reach, paper.mean + reach]
            });
            ours.into_iter().chain(papers)
        });
        let (low, high) = span(of_rows.chain(self.references.iter().map(|(_, value)| *value)));
        let ticks = round_ticks(low, high, ((right - left) / 80.0).clamp(2.0, 8.0) as usize, Ticks::Plain);
        let (low, high) = (ticks[0].min(low), ticks[ticks.len() - 1].max(high));
        let x = |value: f64| left + (value - low) / (high - low) * (right - left);
        let mut out = Markup::new();
        out.open("g", &[]);
        let step = ticks.get(1).map_or(1.0, |second| second - ticks[0]);
        for tick in &ticks {
            let path = format!("M{} {TOP}V{}", Px(x(*tick)), Px(bottom));
            out.empty("path", &[("class", &"grid"), ("d", &path)]);
            let at = (Px(x(*tick)), Px(bottom + 16.0));
            out.leaf(
                "text",
                &[("class", &"quiet"), ("x", &at.0), ("y", &at.1), ("text-anchor", &"middle")],
                &Ticks::Plain.label(*tick, step),
            );
        }
        out.leaf(
            "text",
            &[("class", &"quiet"), ("x", &Px(right)), ("y", &Px(bottom + 33.0)), ("text-anchor", &"end")],
            &self.label,
        );
        self.draw_references(&x, TOP, bottom, &mut out);
        for (place, (name, measured, paper)) in self.rows.iter().enumerate() {
            let y = TOP + (place as f64 + 0.5) * ROW;
            out.leaf("text", &[("x", &0), ("y", &Px(y + 4.0))], name);
            if let Some(paper) = paper {
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
            let Some(measured) = measured else {
                out.leaf(
                    "text",
                    &[("class", &"quiet"), ("x", &Px(left + 6.0)), ("y", &Px(y - 2.0))],
                    "not run",
                );
                continue;
            };
            let y = y - 6.0;
            if let Some(std) = measured.std {
                let path =
                    format!("M{} {}H{}", Px(x(measured.mean - std)), Px(y), Px(x(measured.mean + std)));
                out.empty("path", &[("class", &"whisker"), ("d", &path)]);
            }
            for (_, value, _) in measured.seeds.iter().filter(|_| measured.seeds.len() > 1) {
                out.empty("circle", &[("class", &"seed"), ("cx", &Px(x(*value))), ("cy", &Px(y)), ("r", &3)]);
            }
            let class = if measured.is_rehearsal() { "mean rehearsed" } else { "mean" };
            out.open(
                "circle",
                &[("class", &class), ("cx", &Px(x(measured.mean))), ("cy", &Px(y)), ("r", &5.5)],
            );
            out.leaf("title", &[], &format!("{name}: {}", number::typeset(measured.mean, 4)));
            out.close("circle");
        }
        out.close("g");
        Drawing { width, height, drawing: out }
    }

    fn draw_references(&self, x: &impl Fn(f64) -> f64, top: f64, bottom: f64, out: &mut Markup) {
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for (name, value) in &self.references {
            let class = Look::of_reference(name).class();
            let path = format!("M{} {}V{}", Px(x(*value)), Px(top), Px(bottom));
            out.empty("path", &[("class", &format!("line {class}")), ("d", &path)]);
            // A name that would cover another is left to the legend of the page.
            let half = text_width(name, TEXT_SIZE) / 2.0;
            let (start, end) = (x(*value) - half, x(*value) + half);
            if taken.iter().all(|(from, to)| end < *from || start > *to) {
                taken.push((start, end));
                out.leaf(
                    "text",
                    &[
                        ("class", &class),
                        ("x", &Px(x(*value))),
                        ("y", &Px(top - 8.0)),
                        ("text-anchor", &"middle"),
                    ],
                    name,
                );
            }
        }
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "row,mean,std,seeds,paper_mean,paper_std\n".to_owned();
        let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for (name, measured, paper) in &self.rows {
            let (mean, std, seeds) = measured
                .as_ref()
                .map_or((None, None, 0), |measured| (Some(measured.mean), measured.std, measured.n_seeds()));
            let (paper_mean, paper_std) = paper.map_or((None, None), |paper| (Some(paper.mean), paper.std));
            writeln!(
                text,
                "{},{},{},{seeds},{},{}",
                quoted(name),
                optional(mean),
                optional(std),
                optional(paper_mean),
                optional(paper_std)
            )
            .expect("a string takes any text");
        }
        text
    }
}
