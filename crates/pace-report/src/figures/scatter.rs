//! Latents in two dimensions. Every peer has a colour, which is light at the start of the encounter and strong at its end.

use std::fmt::Write;

use crate::embedding::EmbeddingRecord;
use crate::markup::{Markup, Px};
use crate::number;
use crate::svg::{COMPARED, SvgFragment, TEXT_SIZE, text_width};

/// A scatter plot of an embedding.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// The title.
    pub title: String,
    /// The silhouettes, as text.
    pub description: String,
    record: EmbeddingRecord,
}

impl Scatter {
    /// Creates the plot of a record; `None` without points.
    pub fn of(title: &str, record: &EmbeddingRecord) -> Option<Scatter> {
        let scores: Vec<String> = record
            .silhouettes
            .iter()
            .map(|one| {
                let text =
                    |value: Option<f64>| value.map_or("–".to_owned(), |value| number::typeset(value, 2));
                let episodes: Vec<String> = one.by_episode.iter().map(|value| text(*value)).collect();
                format!("by {} {} (by episode {})", one.by, text(one.all), episodes.join(", "))
            })
            .collect();
        (!record.points.is_empty()).then(|| Scatter {
            title: title.to_owned(),
            description: format!("Silhouette of the latents, from −1 to 1: {}.", scores.join("; ")),
            record: record.clone(),
        })
    }

    pub(super) fn draw(&self, width: f64) -> SvgFragment {
        let points = &self.record.points;
        let side = width.min(560.0);
        let reach = points.iter().flat_map(|point| [point.x.abs(), point.y.abs()]).fold(1e-9, f64::max);
        let last = points.iter().map(|point| point.decision).max().unwrap_or(1).max(2);
        let place = |value: f64| side / 2.0 + value / reach * (side / 2.0 - 8.0);
        let mut out = Markup::new();
        out.open("g", &[]);
        out.empty(
            "rect",
            &[
                ("class", &"blank"),
                ("x", &0),
                ("y", &0),
                ("width", &Px(side)),
                ("height", &Px(side)),
                ("rx", &8),
            ],
        );
        for point in points {
            let class = format!("dot speck {}", COMPARED[point.tuple % COMPARED.len()]);
            let shade = 0.12 + 0.83 * (point.decision - 1) as f64 / (last - 1) as f64;
            out.empty(
                "circle",
                &[
                    ("class", &class),
                    ("cx", &Px(place(point.x))),
                    ("cy", &Px(place(-point.y))),
                    ("r", &3),
                    ("opacity", &format!("{shade:.2}")),
                ],
            );
        }
        // The legend of the peers is at the right if there is enough space, otherwise below.
        let is_at_right = width - side > 200.0;
        let (mut x, mut y) = if is_at_right { (side + 24.0, 16.0) } else { (0.0, side + 20.0) };
        for (tuple, name) in self.record.peers.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let short = name.split(',').next().unwrap_or_default();
            let room = 18.0 + text_width(short, TEXT_SIZE);
            if !is_at_right && x > 0.0 && x + room > width {
                (x, y) = (0.0, y + 18.0);
            }
            let class = format!("dot {}", COMPARED[tuple % COMPARED.len()]);
            out.empty("circle", &[("class", &class), ("cx", &Px(x + 5.0)), ("cy", &Px(y - 4.0)), ("r", &5)]);
            out.leaf("text", &[("x", &Px(x + 16.0)), ("y", &Px(y))], short);
            if is_at_right {
                y += 20.0;
            } else {
                x += room + 14.0;
            }
        }
        if !is_at_right {
            (x, y) = (0.0, y + 20.0);
        }
        out.leaf(
            "text",
            &[("class", &"quiet"), ("x", &Px(x)), ("y", &Px(y + 4.0))],
            "light: early, strong: late",
        );
        out.close("g");
        SvgFragment { width, height: if is_at_right { side } else { y + 10.0 }, drawing: out }
    }

    pub(super) fn csv(&self) -> String {
        let mut text = "tuple,episode,decision,x,y\n".to_owned();
        for point in &self.record.points {
            writeln!(text, "{},{},{},{},{}", point.tuple, point.episode, point.decision, point.x, point.y)
                .expect("a string takes any text");
        }
        text
    }
}
