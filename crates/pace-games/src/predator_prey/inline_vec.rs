//! A short list without heap allocation, so that states are copied and stepped without the allocator.

use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A list of up to `N` elements. It is serialised as a list of its elements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<T>", try_from = "Vec<T>", bound = "T: Copy + Default + Serialize + DeserializeOwned")]
pub struct InlineVec<T, const N: usize> {
    n: usize,
    // Elements after `n` are the default, so that equal lists compare as equal.
    elements: [T; N],
}

impl<T: Copy + Default, const N: usize> InlineVec<T, N> {
    /// A list with these elements, at most `N`.
    #[inline]
    pub fn of(values: &[T]) -> InlineVec<T, N> {
        assert!(values.len() <= N, "{} elements in a list of at most {N}", values.len());
        let mut elements = [T::default(); N];
        elements[..values.len()].copy_from_slice(values);
        InlineVec { n: values.len(), elements }
    }
}

impl<T, const N: usize> Deref for InlineVec<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.elements[..self.n]
    }
}

impl<T, const N: usize> DerefMut for InlineVec<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.elements[..self.n]
    }
}

impl<T: Copy, const N: usize> From<InlineVec<T, N>> for Vec<T> {
    fn from(list: InlineVec<T, N>) -> Vec<T> {
        list.to_vec()
    }
}

impl<T: Copy + Default, const N: usize> TryFrom<Vec<T>> for InlineVec<T, N> {
    type Error = String;

    fn try_from(values: Vec<T>) -> Result<InlineVec<T, N>, String> {
        if values.len() > N {
            return Err(format!("a list of {} elements, expected at most {N}", values.len()));
        }
        Ok(InlineVec::of(&values))
    }
}
