//! The record of an agent's latents that a run folder keeps: a layout in two dimensions, and scores of how well the latents separate
//! the peers.

use serde::{Deserialize, Serialize};

use crate::latents::{LatentRow, LatentsRecord};
use crate::record::{self, FormatVersion, RecordError};
use crate::tsne::{MAX_POINTS, Tsne, silhouette};

/// A layout of latents in two dimensions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddingRecord {
    /// Always [`crate::FORMAT_VERSION`].
    pub format_version: FormatVersion,
    /// The game's id.
    pub game: String,
    /// The method's id.
    pub method: String,
    /// The peer pool: `test`, `validation`, `train` or `uniform:N`.
    pub pool: String,
    /// Perplexity of t-SNE: the effective number of neighbours of a point.
    pub perplexity: f64,
    /// Descriptions of the peer tuples, by index in the pool.
    pub peers: Vec<String>,
    /// Silhouettes of the latents in their original dimensions, one per factor in which the peers differ.
    pub silhouettes: Vec<SilhouetteRecord>,
    /// The points.
    pub points: Vec<EmbeddedPoint>,
}

/// Mean silhouette of latents that are grouped by one factor of the peers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SilhouetteRecord {
    /// The factor: `peer`, `right ingredient`.
    pub by: String,
    /// Over all points.
    pub all: Option<f64>,
    /// Over the points of each episode.
    pub by_episode: Vec<Option<f64>>,
}

/// One decision in two dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedPoint {
    /// Index of the peer tuple in the pool.
    pub tuple: usize,
    /// The episode, from 1.
    pub episode: usize,
    /// The decision within the encounter, from 1.
    pub decision: usize,
    /// Horizontal coordinate.
    pub x: f64,
    /// Vertical coordinate, upwards.
    pub y: f64,
}

/// A factor in which the peers of a pool differ: its name, and its value as text for every tuple.
pub type Factor = (String, Vec<String>);

impl EmbeddingRecord {
    /// Computes the layout. If there are more latents than `Tsne::layout` accepts, every second (third, …) one is used.
    pub fn of(
        latents: &LatentsRecord,
        (game, method, pool): (&str, &str, &str),
        factors: &[Factor],
        search: &Tsne,
    ) -> EmbeddingRecord {
        let step = latents.rows.len().div_ceil(MAX_POINTS).max(1);
        let rows: Vec<&LatentRow> = latents.rows.iter().step_by(step).collect();
        let points: Vec<&[f32]> = rows.iter().map(|row| row.latent.as_slice()).collect();
        let layout = search.layout(&points);
        let n_episodes = rows.iter().map(|row| row.episode).max().unwrap_or(0);
        let mut peers = Vec::new();
        for row in &rows {
            if peers.len() <= row.tuple {
                peers.resize(row.tuple + 1, String::new());
            }
            peers[row.tuple].clone_from(&row.description);
        }
        let tuple_names: Vec<String> = (0..peers.len()).map(|tuple| tuple.to_string()).collect();
        let all_factors = std::iter::once(("peer".to_owned(), tuple_names)).chain(factors.iter().cloned());
        let silhouettes = all_factors.map(|(by, values)| {
            let mut known: Vec<&String> = Vec::new();
            let groups: Vec<usize> = rows
                .iter()
                .map(|row| {
                    let value = &values[row.tuple];
                    known.iter().position(|other| *other == value).unwrap_or_else(|| {
                        known.push(value);
                        known.len() - 1
                    })
                })
                .collect();
            let of_episode = |episode: usize| {
                let kept =
                    rows.iter().zip(points.iter().zip(&groups)).filter(|(row, _)| row.episode == episode);
                let (points, groups): (Vec<&[f32]>, Vec<usize>) =
                    kept.map(|(_, (point, group))| (*point, *group)).unzip();
                silhouette(&points, &groups).map(rounded)
            };
            SilhouetteRecord {
                all: silhouette(&points, &groups).map(rounded),
                by_episode: (1..=n_episodes).map(of_episode).collect(),
                by,
            }
        });
        EmbeddingRecord {
            format_version: FormatVersion,
            game: game.to_owned(),
            method: method.to_owned(),
            pool: pool.to_owned(),
            perplexity: search.perplexity,
            silhouettes: silhouettes.collect(),
            peers,
            points: rows
                .iter()
                .zip(layout)
                .map(|(row, [x, y])| EmbeddedPoint {
                    tuple: row.tuple,
                    episode: row.episode,
                    decision: row.decision,
                    x: rounded(x),
                    y: rounded(y),
                })
                .collect(),
        }
    }

    /// Reads a record. The version is checked first.
    pub fn from_json(text: &str) -> Result<EmbeddingRecord, RecordError> {
        let found: EmbeddingRecord = record::read(text)?;
        for (place, point) in found.points.iter().enumerate() {
            if point.tuple >= found.peers.len() {
                let reason = format!("there are {} peers", found.peers.len());
                return Err(RecordError::OutOfPlace { field: format!("points[{place}].tuple"), reason });
            }
        }
        Ok(found)
    }

    /// Writes the record as JSON, one line per point.
    pub fn to_json(&self) -> Result<String, RecordError> {
        for point in &self.points {
            record::finite("points.x", point.x)?;
            record::finite("points.y", point.y)?;
        }
        let head = EmbeddingRecord { points: Vec::new(), ..self.clone() };
        let mut text = serde_json::to_string_pretty(&head).expect("a record is plain data");
        text.truncate(text.rfind("[]").expect("the points are the last list"));
        let points =
            self.points.iter().map(|point| serde_json::to_string(point).expect("a record is plain data"));
        text.push_str(&format!("[\n{}\n]}}\n", points.collect::<Vec<_>>().join(",\n")));
        Ok(text)
    }
}

/// Rounds to three decimals, which keeps the file small.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}

#[cfg(test)]
mod tests {
    use super::EmbeddingRecord;
    use crate::latents::{LatentRow, LatentsRecord};
    use crate::tsne::Tsne;

    #[test]
    fn an_embedding_has_a_silhouette_per_factor_and_survives_json() {
        let row = |place: usize| LatentRow {
            tuple: place / 8,
            description: format!("peer {}", place / 8),
            classes: vec![0],
            episode: 1 + place % 8 / 4,
            step: 1 + place % 4,
            decision: 1 + place % 8,
            success: None,
            task_return: 0.0,
            latent: vec![(place / 8) as f32 * 3.0 + (place % 8) as f32 * 0.1, place as f32 * 0.01],
        };
        let latents = LatentsRecord { width: 2, rows: (0..24).map(row).collect() };
        let factors = [("taste".to_owned(), ["sweet", "sweet", "salt"].map(str::to_owned).to_vec())];
        let search = Tsne { iterations: 60, ..Tsne::default() };
        let found = EmbeddingRecord::of(&latents, ("kitchen", "pace", "test"), &factors, &search);
        assert_eq!((found.points.len(), found.peers.len()), (24, 3));
        assert_eq!(
            found.silhouettes.iter().map(|one| one.by.as_str()).collect::<Vec<_>>(),
            ["peer", "taste"]
        );
        assert!(found.silhouettes[0].all.unwrap() > 0.5 && found.silhouettes[0].by_episode.len() == 2);
        let text = found.to_json().unwrap();
        assert_eq!(EmbeddingRecord::from_json(&text).unwrap(), found);
        assert!(text.lines().count() > 24);
    }
}
