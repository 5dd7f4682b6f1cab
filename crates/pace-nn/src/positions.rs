//! Learnable positions: a table of vectors, one of which is added to every row.

use crate::initialise;
use crate::kernels::vectorised;
use crate::layout::{Layout, TensorId};

/// Where the table lies.
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

    /// Standard normal numbers, as PyTorch's `nn.Embedding` has them.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        for value in &mut parameters[self.table.range()] {
            *value = initialise::normal(uniform) as f32;
        }
    }

    /// How many positions there are.
    pub fn n_positions(&self) -> usize {
        self.n_positions
    }

    /// Adds to every row the vector of its position.
    pub fn forward(&self, parameters: &[f32], positions: &[u32], rows: &mut [f32]) {
        assert_eq!(rows.len(), positions.len() * self.width, "a position for every row");
        add_by_position(rows, &parameters[self.table.range()], positions, self.width);
    }

    /// Adds the gradient of the rows to that of the table; to the rows' inputs it passes unchanged.
    pub fn backward(&self, gradients: &mut [f32], positions: &[u32], d_rows: &[f32]) {
        assert_eq!(d_rows.len(), positions.len() * self.width, "a position for every row");
        add_to_positions(d_rows, &mut gradients[self.table.range()], positions, self.width);
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

vectorised! {
    fn add_to_positions(rows: &[f32], table: &mut [f32], positions: &[u32], width: usize) {
        for (row, position) in rows.chunks_exact(width).zip(positions) {
            for (sum, value) in table[*position as usize * width..][..width].iter_mut().zip(row) {
                *sum += value;
            }
        }
    }
}
