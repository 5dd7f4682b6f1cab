//! Learnable position embedding: a table of vectors; the vector of its position is added to every row.

use crate::initialise;
use crate::kernels::vectorised;
use crate::layout::{Layout, TensorId};
use crate::rows::scatter_add_rows;

/// A table with one learnable vector per position.
#[derive(Clone, Debug)]
pub struct PositionEmbedding {
    n_positions: usize,
    width: usize,
    table: TensorId,
}

impl PositionEmbedding {
    /// Reserves the table.
    pub fn new(layout: &mut Layout, name: &str, n_positions: usize, width: usize) -> PositionEmbedding {
        let table = layout.reserve(&format!("{name}.table"), &[n_positions, width]);
        PositionEmbedding { n_positions, width, table }
    }

    /// Initialises the table with standard normal numbers, like PyTorch's `nn.Embedding`.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        for value in &mut parameters[self.table.range()] {
            *value = initialise::normal(uniform) as f32;
        }
    }

    /// Returns the number of positions.
    pub fn n_positions(&self) -> usize {
        self.n_positions
    }

    /// Adds the vector of its position to every row.
    pub fn forward(&self, parameters: &[f32], positions: &[u32], rows: &mut [f32]) {
        assert_eq!(rows.len(), positions.len() * self.width, "a position for every row");
        add_by_position(rows, &parameters[self.table.range()], positions, self.width);
    }

    /// Adds the gradient of the rows to that of the table. The gradient of the rows' inputs is that of the rows.
    pub fn backward(&self, gradients: &mut [f32], positions: &[u32], d_rows: &[f32]) {
        assert_eq!(d_rows.len(), positions.len() * self.width, "a position for every row");
        scatter_add_rows(d_rows, positions, self.width, &mut gradients[self.table.range()]);
    }
}

vectorised! {
    fn add_by_position(rows: &mut [f32], table: &[f32], positions: &[u32], width: usize) {
        for (row, position) in rows.chunks_exact_mut(width).zip(positions) {
            for (value, added) in row.iter_mut().zip(&table[*position as usize * width..][..width]) {
                *value += added;
            }
        }
    }
}
