//! The latents of an encounter, one row per decision, as a table for other programs (t-SNE, clustering).
//!
//! | column | meaning |
//! |---|---|
//! | `tuple` | index in the pool of the peer tuple of this episode |
//! | `description` | the tuple's behaviour, as text |
//! | `classes` | the identifier's class of each peer in its part of the pool, by slot, separated by `;` |
//! | `episode` | the episode of the encounter, from 1 |
//! | `step` | the decision within the episode, from 1 |
//! | `decision` | the decision within the encounter, from 1 |
//! | `success` | whether this episode reached the goal, 1 or 0; empty in a game without one |
//! | `return` | the sum of task rewards of this episode |
//! | `z_0` … | the latent at the decision |

use std::fmt::Write;

use crate::csv::quoted;

/// The latents of one encounter with each tuple.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentsRecord {
    /// The size of a latent.
    pub width: usize,
    /// One row per decision, encounter after encounter.
    pub rows: Vec<LatentRow>,
}

/// One decision; the columns are those of the table above.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentRow {
    /// Index of the peer tuple in the pool.
    pub tuple: usize,
    /// The behaviour of the peers, as text.
    pub description: String,
    /// The class of each peer.
    pub classes: Vec<usize>,
    /// The episode, from 1.
    pub episode: usize,
    /// The decision within the episode, from 1.
    pub step: usize,
    /// The decision within the encounter, from 1.
    pub decision: usize,
    /// Whether the episode reached its goal; `None` in a game without one.
    pub success: Option<bool>,
    /// The sum of task rewards of the episode.
    pub task_return: f64,
    /// The latent.
    pub latent: Vec<f32>,
}

impl LatentsRecord {
    /// The table with a line of column names, in the format of RFC 4180 but with plain line feeds.
    pub fn to_csv(&self) -> String {
        let mut text = "tuple,description,classes,episode,step,decision,success,return".to_owned();
        for place in 0..self.width {
            write!(text, ",z_{place}").expect("a string takes any text");
        }
        text.push('\n');
        for row in &self.rows {
            assert_eq!(row.latent.len(), self.width, "the width of a latent");
            let classes: Vec<String> = row.classes.iter().map(usize::to_string).collect();
            let success = row.success.map_or("", |success| if success { "1" } else { "0" });
            write!(
                text,
                "{},{},{},{},{},{},{success},{}",
                row.tuple,
                quoted(&row.description),
                classes.join(";"),
                row.episode,
                row.step,
                row.decision,
                row.task_return
            )
            .expect("a string takes any text");
            for value in &row.latent {
                write!(text, ",{value}").expect("a string takes any text");
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{LatentRow, LatentsRecord};

    #[test]
    fn csv_has_a_row_per_decision() {
        let row = LatentRow {
            tuple: 3,
            description: "xi 0.1, \"eta\" 0.2".to_owned(),
            classes: vec![0, 2],
            episode: 1,
            step: 2,
            decision: 2,
            success: None,
            task_return: -1.0,
            latent: vec![0.5, 0.1],
        };
        let other = LatentRow { success: Some(true), latent: vec![0.0, 1e-9], ..row.clone() };
        let text = LatentsRecord { width: 2, rows: vec![row, other] }.to_csv();
        let expected = "tuple,description,classes,episode,step,decision,success,return,z_0,z_1\n\
                        3,\"xi 0.1, \"\"eta\"\" 0.2\",0;2,1,2,2,,-1,0.5,0.1\n\
                        3,\"xi 0.1, \"\"eta\"\" 0.2\",0;2,1,2,2,1,-1,0,0.000000001\n";
        assert_eq!(text, expected);
    }
}
