//! The weights of a network in one flat buffer: names, shapes and ranges of the tensors, and the file format.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::product::transpose;

/// Range of one tensor in the flat buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorId {
    start: usize,
    end: usize,
}

impl TensorId {
    /// Returns the tensor's range in the flat buffer.
    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }
}

/// Name, shape and range of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name in files.
    pub name: String,
    /// Shape, the slowest dimension first.
    pub shape: Vec<usize>,
    /// Range in the flat buffer.
    pub id: TensorId,
    backward: BackwardForm,
}

/// The form in which a backward pass reads a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BackwardForm {
    Unread,
    Unchanged,
    /// A matrix whose rows are divided into parts; each part is transposed.
    Transposed {
        part_widths: Vec<usize>,
    },
}

/// Tensors of a network in the flat buffer of its weights, which has [`Layout::len`] numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
}

/// Error in a file of weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The file is not valid safetensors.
    #[error("not a readable safetensors file: {reason}")]
    Unreadable {
        /// Reason given by the reader.
        reason: String,
    },
    /// A tensor of the network is missing in the file.
    #[error("tensor \"{name}\" is missing; the file was made for another network")]
    Missing {
        /// Name of the tensor.
        name: String,
    },
    /// A tensor has another type or shape than in the network.
    #[error("tensor \"{name}\" is {found}, expected f32 {expected:?}; the file was made for another network")]
    WrongShape {
        /// Name of the tensor.
        name: String,
        /// Type and shape in the file.
        found: String,
        /// Shape in the network.
        expected: Vec<usize>,
    },
    /// The file has another number of tensors than the network.
    #[error("{found} tensors, expected {expected}; the file was made for another network")]
    WrongCount {
        /// Number of tensors in the file.
        found: usize,
        /// Number of tensors of the network.
        expected: usize,
    },
    /// A tensor contains a number that is not finite.
    #[error("tensor \"{name}\" holds a number that is not finite")]
    NotFinite {
        /// Name of the tensor.
        name: String,
    },
}

/// Maximum size of a file of weights in bytes.
const MAX_BYTES: usize = 1 << 30;

impl Layout {
    /// Adds a tensor that no backward pass reads.
    pub fn reserve(&mut self, name: &str, shape: &[usize]) -> TensorId {
        self.add(name, shape, BackwardForm::Unread)
    }

    /// Adds a tensor that a backward pass reads unchanged.
    pub(crate) fn reserve_factors(&mut self, name: &str, shape: &[usize]) -> TensorId {
        self.add(name, shape, BackwardForm::Unchanged)
    }

    /// Adds the weight matrix for an input of several parts; a backward pass reads each part transposed.
    pub(crate) fn reserve_matrix(&mut self, name: &str, part_widths: &[usize], n_out: usize) -> TensorId {
        let shape = [part_widths.iter().sum(), n_out];
        self.add(name, &shape, BackwardForm::Transposed { part_widths: part_widths.to_vec() })
    }

    fn add(&mut self, name: &str, shape: &[usize], backward: BackwardForm) -> TensorId {
        assert!(self.tensors.iter().all(|tensor| tensor.name != name), "two tensors are called {name}");
        let start = self.len();
        let id = TensorId { start, end: start + shape.iter().product::<usize>() };
        self.tensors.push(TensorSpec { name: name.to_owned(), shape: shape.to_vec(), id, backward });
        id
    }

    /// Returns all tensors in the order of the buffer.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// Returns the number of weights.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.id.end)
    }

    /// Whether there are no weights.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the weights in the form that backward passes read to the same ranges of `transposed`.
    ///
    /// A backward pass multiplies by transposed weights, once per chunk of the batch. Transposing them once per gradient step
    /// is cheaper than once per product.
    pub fn transpose(&self, weights: &[f32], transposed: &mut [f32]) {
        for TensorSpec { shape, id, backward, .. } in &self.tensors {
            match backward {
                BackwardForm::Unread => {}
                BackwardForm::Unchanged => transposed[id.range()].copy_from_slice(&weights[id.range()]),
                BackwardForm::Transposed { part_widths } => {
                    let mut start = id.start;
                    for width in part_widths {
                        let part = start..start + width * shape[1];
                        start = part.end;
                        transpose(&weights[part.clone()], *width, shape[1], &mut transposed[part]);
                    }
                }
            }
        }
    }

    /// Returns `values` as a safetensors file. Equal values give equal bytes.
    pub fn to_bytes(&self, values: &[f32]) -> Vec<u8> {
        assert_eq!(values.len(), self.len(), "one value per weight");
        let bytes: Vec<Vec<u8>> = self
            .tensors
            .iter()
            .map(|tensor| values[tensor.id.range()].iter().flat_map(|value| value.to_le_bytes()).collect())
            .collect();
        let views = self.tensors.iter().zip(&bytes).map(|(tensor, bytes)| {
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
            (tensor.name.as_str(), view.expect("the shape fits the bytes"))
        });
        safetensors::serialize(views, None).expect("tensors have distinct names")
    }

    /// Reads a file written by [`Layout::to_bytes`]. All names, types and shapes must match this layout.
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<Vec<f32>, ParameterError> {
        let unreadable = |reason: String| ParameterError::Unreadable { reason };
        if bytes.len() > MAX_BYTES {
            return Err(unreadable(format!("{} bytes, at most {MAX_BYTES} are read", bytes.len())));
        }
        let file = SafeTensors::deserialize(bytes).map_err(|error| unreadable(error.to_string()))?;
        let found: HashMap<String, TensorView<'_>> = file.tensors().into_iter().collect();
        if found.len() != self.tensors.len() {
            return Err(ParameterError::WrongCount { found: found.len(), expected: self.tensors.len() });
        }
        let mut values = vec![0.0; self.len()];
        for tensor in &self.tensors {
            let name = tensor.name.clone();
            let view = found.get(&name).ok_or_else(|| ParameterError::Missing { name: name.clone() })?;
            if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
                let found = format!("{:?} {:?}", view.dtype(), view.shape());
                return Err(ParameterError::WrongShape { name, found, expected: tensor.shape.clone() });
            }
            let numbers = view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            for (value, number) in values[tensor.id.range()].iter_mut().zip(numbers) {
                if !number.is_finite() {
                    return Err(ParameterError::NotFinite { name });
                }
                *value = number;
            }
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, ParameterError};

    fn layout(shape: &[usize]) -> Layout {
        let mut layout = Layout::default();
        layout.reserve("b", shape);
        layout.reserve("a", &[2]);
        layout
    }

    #[test]
    fn weights_survive_writing_and_reading_and_invalid_files_are_refused() {
        let layout = layout(&[2, 3]);
        let values: Vec<f32> = (0..8).map(|index| index as f32 / 7.0).collect();
        let bytes = layout.to_bytes(&values);
        assert_eq!(bytes, layout.to_bytes(&values));
        assert_eq!(layout.from_bytes(&bytes).as_ref(), Ok(&values));
        let other = self::layout(&[3, 2]);
        assert!(matches!(other.from_bytes(&bytes), Err(ParameterError::WrongShape { .. })));
        assert!(matches!(layout.from_bytes(&bytes[..20]), Err(ParameterError::Unreadable { .. })));
        let mut broken = values;
        broken[3] = f32::NAN;
        let bytes = layout.to_bytes(&broken);
        assert!(matches!(layout.from_bytes(&bytes), Err(ParameterError::NotFinite { .. })));
    }

    #[test]
    fn matrices_are_transposed_part_by_part() {
        let mut layout = Layout::default();
        layout.reserve("unread", &[1]);
        layout.reserve_matrix("matrix", &[2, 1], 2);
        layout.reserve_factors("factors", &[2]);
        let mut transposed = [0.0; 9];
        layout.transpose(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &mut transposed);
        assert_eq!(transposed, [0.0, 1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    }
}
