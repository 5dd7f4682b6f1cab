//! Names, shapes and places of the weights of a network in one flat buffer, and the bytes of such a buffer.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::product::transpose;

/// Where one tensor lies in the flat buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorId {
    start: usize,
    end: usize,
}

impl TensorId {
    /// Its place in the flat buffer.
    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }
}

/// The name, shape and place of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name in files.
    pub name: String,
    /// Its shape, the slowest dimension first.
    pub shape: Vec<usize>,
    /// Its place.
    pub id: TensorId,
    backward: BackwardForm,
}

/// The form in which a backward pass reads a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BackwardForm {
    Unread,
    AsItIs,
    /// A matrix whose rows are divided into parts, each of them transposed.
    Transposed {
        part_widths: Vec<usize>,
    },
}

/// Names, shapes and places of all weights of a network. The weights themselves are a buffer of [`Layout::len`] numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
}

/// What can be wrong with the bytes of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// Not safetensors, or broken.
    #[error("not a readable safetensors file: {reason}")]
    Unreadable {
        /// The reader's reason.
        reason: String,
    },
    /// A tensor the network needs is not there.
    #[error("tensor \"{name}\" is missing; the file was made for another network")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A tensor of another type or shape.
    #[error("tensor \"{name}\" is {found}, expected f32 {expected:?}; the file was made for another network")]
    WrongShape {
        /// Its name.
        name: String,
        /// What the file has.
        found: String,
        /// What the network needs.
        expected: Vec<usize>,
    },
    /// A tensor the network does not know.
    #[error("{found} tensors, expected {expected}; the file was made for another network")]
    WrongCount {
        /// What the file has.
        found: usize,
        /// What the network has.
        expected: usize,
    },
    /// A number that is not finite.
    #[error("tensor \"{name}\" holds a number that is not finite")]
    NotFinite {
        /// Its name.
        name: String,
    },
}

/// The most bytes a file of weights may have.
const MAX_BYTES: usize = 1 << 30;

impl Layout {
    /// Adds a tensor that no backward pass reads.
    pub fn reserve(&mut self, name: &str, shape: &[usize]) -> TensorId {
        self.add(name, shape, BackwardForm::Unread)
    }

    /// Adds a tensor that a backward pass reads as it is.
    pub(crate) fn reserve_factors(&mut self, name: &str, shape: &[usize]) -> TensorId {
        self.add(name, shape, BackwardForm::AsItIs)
    }

    /// Adds the weights of a product with an input of several parts; a backward pass reads each part transposed.
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

    /// All tensors in their order.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// Number of weights.
    pub fn len(&self) -> usize {
        self.tensors.last().map_or(0, |tensor| tensor.id.end)
    }

    /// Whether nothing was reserved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the weights in the form that backward passes read to the same places in `transposed`.
    ///
    /// A backward pass multiplies by transposed weights. Transposing them once per gradient step is cheaper than once per
    /// product, of which a step has as many as the batch has chunks.
    pub fn transpose(&self, weights: &[f32], transposed: &mut [f32]) {
        for TensorSpec { shape, id, backward, .. } in &self.tensors {
            match backward {
                BackwardForm::Unread => {}
                BackwardForm::AsItIs => transposed[id.range()].copy_from_slice(&weights[id.range()]),
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

    /// Returns the safetensors file of `values`. Its bytes depend on nothing else.
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

    /// Reads what [`Layout::to_bytes`] wrote; every name, type and shape must be as in this layout.
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
    fn bytes_come_back_and_strangers_are_refused() {
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
    fn backward_passes_read_every_part_of_a_matrix_transposed() {
        let mut layout = Layout::default();
        layout.reserve("unread", &[1]);
        layout.reserve_matrix("matrix", &[2, 1], 2);
        layout.reserve_factors("factors", &[2]);
        let mut transposed = [0.0; 9];
        layout.transpose(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &mut transposed);
        assert_eq!(transposed, [0.0, 1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    }
}
