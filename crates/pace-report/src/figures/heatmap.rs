//! A heat map: numbers in rows and columns, each in a cell with a shade, with the paper's number below.

use std::fmt::Write;

use crate::csv::quoted;
use crate::experiment_result::{PlacedCell, ResultTable};
use crate::markup::{Markup, Px};
use crate::number;
use crate::svg::{SvgFragment, TEXT_SIZE, text_width, wrap};

/// A heat map.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// The title.
    pub title: String,
    /// The figure as text, for readers who cannot see it.
    pub description: String,
    /// The labels of the rows and of the columns.
    pub axes: (String, String),
    columns: Vec<String>,
    rows: Vec<(String, Vec<Shade>)>,
    /// The values of the lightest and of the strongest shade.
    range: (f64, f64),
}

/// A cell: its value, the value as text, and a second line.
#[derive(Clone, Debug, Default)]
struct Shade {
    value: Option<f64>,
    text: String,
    detail: String,
}

/// Minimum range of shades in standard deviations of a cell, so that noise is not shown as a difference.
const MIN_RANGE_STDS: f64 = 8.0;

impl HeatMap {
    /// Creates the map of a table; `None` if no cell has a number. The shades cover the range of its numbers and of `references`, so
    /// that they show which differences are large in this game.
    pub(crate) fn of(
        title: &str,
        axes: (&str, &str),
        table: &ResultTable<'_>,
        references: &[(&str, f64)],
    ) -> Option<HeatMap> {
        let shade = |found: &PlacedCell<'_>| {
            let paper = found.cell.paper.filter(|paper| paper.is_comparable);
            let detail =
                paper.map_or(String::new(), |paper| format!("paper {}", number::typeset(paper.mean, 3)));
            let Some(statistics) = &found.statistics else {
                return Shade { text: "not run".to_owned(), detail, ..Shade::default() };
            };
            let std = statistics.std.map_or(String::new(), |std| format!(" ±{}", number::typeset(std, 4)));
            let text = format!("{}{std}", number::typeset(statistics.mean, 4));
            Shade { value: Some(statistics.mean), text, detail }
        };
        let shades = |cells: &[Option<PlacedCell<'_>>]| {
            cells.iter().map(|cell| cell.as_ref().map_or(Shade::default(), shade)).collect()
        };
        let rows: Vec<(String, Vec<Shade>)> =
            table.rows.iter().map(|(name, cells)| (name.clone(), shades(cells))).collect();
        let values: Vec<f64> =
            rows.iter().flat_map(|(_, shades)| shades.iter().filter_map(|shade| shade.value)).collect();
        if values.is_empty() {
            return None;
        }
        let statistics = table.rows.iter().flat_map(|(_, cells)| cells).flatten();
        let max_std = statistics.filter_map(|found| found.statistics.as_ref()?.std).fold(0.0, f64::max);
        let all = values.iter().copied().chain(references.iter().map(|(_, value)| *value));
        let (low, high) = crate::svg::span(all);
        let missing = (MIN_RANGE_STDS * max_std - (high - low)).max(0.0);
        let range = (low - missing / 2.0, high + missing / 2.0);
        let mut description =
            format!("{} cells have scores; a stronger shade is a higher score.", values.len());
        if !references.is_empty() {
            let named: Vec<String> = references
                .iter()
                .map(|(name, value)| format!("{name} {}", number::typeset(*value, 4)))
                .collect();
            write!(description, " The range of shades includes the reference agents: {}.", named.join(", "))
                .expect("a string takes any text");
        }
        Some(HeatMap {
            title: title.to_owned(),
            description,
            axes: (axes.0.to_owned(), axes.1.to_owned()),
            columns: table.columns.clone(),
            rows,
            range,
        })
    }

    /// The strength of the shade of a value, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        (value - low) / (high - low)
    }

    pub(super) fn draw(&self, width: f64) -> SvgFragment {
        const AXES: f64 = 12.0;
        const MIN_CELL_WIDTH: f64 = 84.0;
        let widest = self.rows.iter().map(|(name, _)| text_width(name, TEXT_SIZE)).fold(0.0, f64::max);
        let left = (widest + 12.0).min(width * 0.3);
        // Columns that do not fit next to each other are drawn in several blocks, one below the other.
        let n_columns = self.columns.len().max(1);
        let n_across = (((width - left) / MIN_CELL_WIDTH) as usize).clamp(1, n_columns);
        let n_across = n_columns.div_ceil(n_columns.div_ceil(n_across));
        let across = (width - left) / n_across as f64;
        let mut out = Markup::new();
        out.open("g", &[]);
        out.leaf("text", &[("class", &"quiet"), ("x", &0), ("y", &AXES)], &self.axes.0);
        let (end, anchor) = (Px(width), "end");
        out.leaf(
            "text",
            &[("class", &"quiet"), ("x", &end), ("y", &AXES), ("text-anchor", &anchor)],
            &self.axes.1,
        );
        let mut top = AXES + 4.0;
        for first in (0..n_columns).step_by(n_across) {
            let last = (first + n_across).min(self.columns.len());
            top = self.draw_block(first..last, (left, across, top), &mut out);
        }
        out.close("g");
        SvgFragment { width, height: top + 4.0, drawing: out }
    }

    /// Draws some of the columns with all rows. Returns the height at which they end.
    fn draw_block(
        &self,
        columns: std::ops::Range<usize>,
        (left, across, top): (f64, f64, f64),
        out: &mut Markup,
    ) -> f64 {
        const ROW: f64 = 50.0;
        const LINE: f64 = 15.0;
        let headings: Vec<Vec<String>> =
            self.columns[columns.clone()].iter().map(|name| wrap(name, TEXT_SIZE, across - 8.0)).collect();
        let n_lines = headings.iter().map(Vec::len).max().unwrap_or(1);
        let top = top + LINE * n_lines as f64 + 10.0;
        for (place, lines) in headings.iter().enumerate() {
            let x = Px(left + (place as f64 + 0.5) * across);
            for (line, text) in lines.iter().rev().enumerate() {
                let y = Px(top - 8.0 - LINE * line as f64);
                out.leaf("text", &[("x", &x), ("y", &y), ("text-anchor", &"middle")], text);
            }
        }
        for (down, (name, shades)) in self.rows.iter().enumerate() {
            let y = top + down as f64 * ROW;
            out.leaf("text", &[("x", &0), ("y", &Px(y + ROW / 2.0 + 4.0))], name);
            for (place, shade) in shades[columns.clone()].iter().enumerate() {
                let x = left + place as f64 * across;
                let share = shade.value.map(|value| self.share(value));
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
                // Text on a strong shade has the colour of the page.
                let ink = if opacity > 0.52 && share.is_some() { "on-heat" } else { "quiet" };
                let first = if ink == "on-heat" { ink } else { "" };
                let middle = Px(x + across / 2.0);
                let line = |out: &mut Markup, class: &str, y: f64, text: &str| {
                    let attributes: [(&'static str, &dyn std::fmt::Display); 4] =
                        [("class", &class), ("x", &middle), ("y", &Px(y)), ("text-anchor", &"middle")];
                    out.leaf("text", &attributes, text);
                };
                // A standard deviation that does not fit is omitted; the table has it.
                let whole = &shade.text;
                let has_room = text_width(whole, TEXT_SIZE) <= across - 6.0;
                let text = if has_room { whole } else { whole.split(" ±").next().unwrap_or_default() };
                line(out, first, y + 22.0, text);
                line(out, ink, y + 38.0, &shade.detail);
            }
        }
        top + self.rows.len() as f64 * ROW
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

#[cfg(test)]
mod tests {
    use super::HeatMap;
    use crate::experiment_result::{PlacedCell, ResultCell, ResultTable, SeedStatistics};

    fn cell() -> ResultCell {
        ResultCell {
            game: String::new(),
            game_title: String::new(),
            method: "pace".to_owned(),
            is_reference: false,
            preset: String::new(),
            variant: String::new(),
            evaluation: String::new(),
            evaluation_file: String::new(),
            paper: None,
            n_seeds: 3,
            runs: Vec::new(),
        }
    }

    fn map(cell: &ResultCell, columns: &[(&str, f64)], references: &[(&str, f64)]) -> HeatMap {
        let found = |mean: f64| PlacedCell {
            cell,
            statistics: Some(SeedStatistics {
                seeds: vec![(0, mean, None)],
                mean,
                std: Some(0.002),
                scale: 1.0,
                ..SeedStatistics::default()
            }),
            is_best: false,
            other_oracle: None,
            paper_share: None,
        };
        let table = ResultTable {
            corner: "",
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: vec![("row".to_owned(), columns.iter().map(|(_, mean)| Some(found(*mean))).collect())],
        };
        HeatMap::of("", ("", ""), &table, references).expect("numbers")
    }

    #[test]
    fn shades_of_values_within_the_noise_are_almost_equal() {
        let cell = cell();
        let columns = [("a", 0.0487), ("b", 0.0496)];
        for references in [&[("static", 0.0214), ("oracle", 0.0769)][..], &[]] {
            let map = map(&cell, &columns, references);
            let difference = map.share(0.0496) - map.share(0.0487);
            assert!(difference > 0.0 && difference < 0.1, "{difference}");
        }
        // A score below static extends the range.
        let map = map(&cell, &[("a", -0.01)], &[("static", 0.0214), ("oracle", 0.0769)]);
        assert_eq!((map.share(-0.01), map.share(0.0769)), (0.0, 1.0));
    }

    #[test]
    fn headings_do_not_overlap() {
        let cell = cell();
        let names: Vec<String> = (0..6).map(|n| format!("PACE, ctx-{n}00, preset reference")).collect();
        let columns: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 0.04)).collect();
        let map = map(&cell, &columns, &[]);
        for width in [832.0, 344.0] {
            let svg = map.draw(width).drawing.finish();
            let mut texts: Vec<(f64, f64, f64)> = Vec::new();
            for line in svg.lines().filter(|line| line.starts_with("<text") && line.contains("\"middle\"")) {
                let number = |name: &str| -> f64 {
                    let (_, rest) = line.split_once(&format!(" {name}=\"")).expect("an attribute");
                    rest.split('"').next().expect("a value").parse().expect("a number")
                };
                let text = line.split(['>', '<']).nth(2).expect("a text");
                let half = crate::svg::text_width(text, crate::svg::TEXT_SIZE) / 2.0;
                texts.push((number("y"), number("x") - half, number("x") + half));
            }
            assert!(texts.len() >= 18, "{svg}");
            texts.sort_by(|one, other| one.partial_cmp(other).expect("numbers"));
            for pair in texts.windows(2) {
                let [(y, _, end), (other_y, start, _)] = pair else { unreachable!() };
                assert!(y != other_y || end <= start, "at width {width}: {pair:?}");
            }
        }
    }
}
