//! A short list that lives inside its owner: a state of the game is copied and stepped without the allocator.

use std::ops::{Deref, DerefMut};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Up to `N` things in order. Written and read as a plain list of those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<T>", try_from = "Vec<T>", bound = "T: Copy + Default + Serialize + DeserializeOwned")]
pub struct InlineVec<T, const N: usize> {
    n: usize,
    // Places past `n` always hold the default, so that equal rows compare as equal.
    places: [T; N],
}

impl<T: Copy + Default, const N: usize> InlineVec<T, N> {
    /// A row of these things, of which there may be `N` at most.
    #[inline]
    pub fn of(things: &[T]) -> InlineVec<T, N> {
        assert!(things.len() <= N, "{} things in a row for {N}", things.len());
        let mut places = [T::default(); N];
        places[..things.len()].copy_from_slice(things);
        InlineVec { n: things.len(), places }
    }
}

impl<T, const N: usize> Deref for InlineVec<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.places[..self.n]
    }
}

impl<T, const N: usize> DerefMut for InlineVec<T, N> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.places[..self.n]
    }
}

impl<T: Copy, const N: usize> From<InlineVec<T, N>> for Vec<T> {
    fn from(row: InlineVec<T, N>) -> Vec<T> {
        row.to_vec()
    }
}

impl<T: Copy + Default, const N: usize> TryFrom<Vec<T>> for InlineVec<T, N> {
    type Error = String;

    fn try_from(things: Vec<T>) -> Result<InlineVec<T, N>, String> {
        if things.len() > N {
            return Err(format!("a list of {}, at most {N} are possible", things.len()));
        }
        Ok(InlineVec::of(&things))
    }
}
