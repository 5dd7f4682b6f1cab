//! Numbers in rows and columns, each on a shade of its own, with the paper's number below.

use std::fmt::Write;

use crate::csv::quoted;
use crate::markup::{Markup, Px};
use crate::number;
use crate::study::Grid;
use crate::svg::{Drawing, TEXT_SIZE, text_width};

/// A table as shades.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// What it shows.
    pub title: String,
    /// The same in words.
    pub description: String,
    /// What the rows are, and what the columns are.
    pub axes: (String, String),
    columns: Vec<String>,
    rows: Vec<(String, Vec<Shade>)>,
}

#[derive(Clone, Debug, Default)]
struct Shade {
    value: Option<f64>,
    text: String,
    detail: String,
    is_rehearsal: bool,
}

impl HeatMap {
    /// The map of a grid; nothing if no cell of it has a number.
    pub fn of(title: &str, axes: (&str, &str), grid: &Grid<'_>) -> Option<HeatMap> {
        let rows: Vec<(String, Vec<Shade>)> = grid
            .rows
            .iter()
            .map(|(name, cells)| {
                let shade = |found: &crate::study::GridCell<'_>| {
                    let paper = found
                        .cell
                        .paper
                        .map_or(String::new(), |paper| format!("paper {}", number::typeset(paper.mean, 3)));
                    let Some(measured) = &found.measured else {
                        return Shade { text: "not run".to_owned(), detail: paper, ..Shade::default() };
                    };
                    let spread =
                        measured.std.map_or(String::new(), |std| format!(" ±{}", number::typeset(std, 4)));
                    Shade {
                        value: Some(measured.mean),
                        text: format!("{}{spread}", number::typeset(measured.mean, 4)),
                        detail: paper,
                        is_rehearsal: measured.is_rehearsal(),
                    }
                };
                (
                    name.clone(),
                    cells.iter().map(|cell| cell.as_ref().map_or(Shade::default(), &shade)).collect(),
                )
            })
            .collect();
        let n_known =
            rows.iter().flat_map(|(_, shades)| shades).filter(|shade| shade.value.is_some()).count();
        (n_known > 0).then(|| HeatMap {
            title: title.to_owned(),
            description: format!("{n_known} cells are known; the stronger the shade, the higher the score."),
            axes: (axes.0.to_owned(), axes.1.to_owned()),
            columns: grid.columns.clone(),
            rows,
        })
    }

    pub(super) fn draw(&self, width: f64) -> Drawing {
        const ROW: f64 = 50.0;
        const TOP: f64 = 40.0;
        let widest = self.rows.iter().map(|(name, _)| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
        let left = (widest + 12.0).min(width * 0.3);
        let across = (width - left) / self.columns.len().max(1) as f64;
        let values = self.rows.iter().flat_map(|(_, shades)| shades.iter().filter_map(|shade| shade.value));
        let (low, high) = crate::svg::span(values);
        let mut out = Markup::new();
        out.open("g", &[]);
        out.leaf("text", &[("class", &"quiet"), ("x", &0), ("y", &12)], &self.axes.0);
        let (end, anchor) = (Px(width), "end");
        out.leaf(
            "text",
            &[("class", &"quiet"), ("x", &end), ("y", &12), ("text-anchor", &anchor)],
            &self.axes.1,
        );
        for (place, name) in self.columns.iter().enumerate() {
            let x = Px(left + (place as f64 + 0.5) * across);
            out.leaf("text", &[("x", &x), ("y", &Px(TOP - 8.0)), ("text-anchor", &"middle")], name);
        }
        for (down, (name, shades)) in self.rows.iter().enumerate() {
            let y = TOP + down as f64 * ROW;
            out.leaf("text", &[("x", &0), ("y", &Px(y + ROW / 2.0 + 4.0))], name);
            for (place, shade) in shades.iter().enumerate() {
                let x = left + place as f64 * across;
                let share = shade.value.map(|value| (value - low) / (high - low));
                let class = if share.is_some() { "heat" } else { "blank" };
                let opacity = share.map_or(1.0, |share| 0.12 + 0.76 * share);
                out.empty(
                    "rect",
                    &[
                        ("class", &class),
                        ("x", &Px(x)),
                        ("y", &Px(y)),
                        ("width", &Px(across)),
                        ("height", &Px(ROW)),
                        ("rx", &6),
                        ("fill-opacity", &format!("{opacity:.2}")),
                    ],
                );
                // On a strong shade the letters take the colour of the page.
                let ink = if opacity > 0.52 && share.is_some() { "on-heat" } else { "quiet" };
                let first = if shade.is_rehearsal {
                    "rehearsed"
                } else if ink == "on-heat" {
                    ink
                } else {
                    ""
                };
                let middle = Px(x + across / 2.0);
                let line = |out: &mut Markup, class: &str, y: f64, text: &str| {
                    let attributes: [(&'static str, &dyn std::fmt::Display); 4] =
                        [("class", &class), ("x", &middle), ("y", &Px(y)), ("text-anchor", &"middle")];
                    out.leaf("text", &attributes, text);
                };
                let text = if width < 500.0 {
                    shade.text.split(" ±").next().unwrap_or_default()
                } else {
                    &shade.text
                };
                line(&mut out, first, y + 22.0, text);
                line(&mut out, ink, y + 38.0, &shade.detail);
            }
        }
        out.close("g");
        Drawing { width, height: TOP + self.rows.len() as f64 * ROW + 4.0, drawing: out }
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "row,column,mean\n".to_owned();
        for (row, shades) in &self.rows {
            for (column, shade) in self.columns.iter().zip(shades) {
                let value = shade.value.map_or(String::new(), |value| value.to_string());
                writeln!(text, "{},{},{value}", quoted(row), quoted(column))
                    .expect("a string takes any text");
            }
        }
        text
    }
}
