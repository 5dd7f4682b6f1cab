//! All weights of a network in one flat buffer, by name and shape, and their bytes.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

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
}

/// The layout of a network's weights, and the weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    /// The numbers.
    pub values: Vec<f32>,
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

impl Parameters {
    /// Adds a tensor of zeros to the layout.
    pub fn reserve(&mut self, name: &str, shape: &[usize]) -> TensorId {
        assert!(self.tensors.iter().all(|tensor| tensor.name != name), "two tensors are called {name}");
        let start = self.values.len();
        let id = TensorId { start, end: start + shape.iter().product::<usize>() };
        self.values.resize(id.end, 0.0);
        self.tensors.push(TensorSpec { name: name.to_owned(), shape: shape.to_vec(), id });
        id
    }

    /// The layout.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether nothing was reserved.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// `values`, laid out as these parameters, as the bytes of a safetensors file. The bytes depend on nothing else.
    pub fn to_bytes(&self, values: &[f32]) -> Vec<u8> {
        assert_eq!(values.len(), self.values.len(), "values laid out as the parameters");
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

    /// Reads what [`Parameters::to_bytes`] wrote; every name, type and shape must be as in this layout.
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
        let mut values = vec![0.0; self.values.len()];
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
    use super::{ParameterError, Parameters};

    fn sample() -> Parameters {
        let mut parameters = Parameters::default();
        parameters.reserve("b", &[2, 3]);
        parameters.reserve("a", &[2]);
        parameters.values.iter_mut().enumerate().for_each(|(index, value)| *value = index as f32 / 7.0);
        parameters
    }

    #[test]
    fn bytes_come_back_and_strangers_are_refused() {
        let parameters = sample();
        let bytes = parameters.to_bytes(&parameters.values);
        assert_eq!(bytes, parameters.to_bytes(&parameters.values));
        assert_eq!(parameters.from_bytes(&bytes).as_ref(), Ok(&parameters.values));
        let mut other = Parameters::default();
        other.reserve("b", &[3, 2]);
        other.reserve("a", &[2]);
        assert!(matches!(other.from_bytes(&bytes), Err(ParameterError::WrongShape { .. })));
        assert!(matches!(parameters.from_bytes(&bytes[..20]), Err(ParameterError::Unreadable { .. })));
        let mut broken = parameters.values.clone();
        broken[3] = f32::NAN;
        let bytes = parameters.to_bytes(&broken);
        assert!(matches!(parameters.from_bytes(&bytes), Err(ParameterError::NotFinite { .. })));
    }
}
