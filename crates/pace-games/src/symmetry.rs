//! Symmetries of a game, for example the quarter turns of a square.
//!
//! An ego that transforms every observation to one canonical frame has less to learn: experience with one corner of a square
//! applies to all corners.

use crate::game::Action;

/// The symmetries of a game: transforms under which rules, peers and the distribution of initial states do not change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetries {
    /// The transforms; the first is the identity.
    pub transforms: Vec<SymmetryTransform>,
    /// Entries of the observation that define the canonical frame: it is the first transform after which none of them is
    /// negative.
    pub canonical_if_positive: Vec<usize>,
}

/// The effect of one symmetry on observations, actions and classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymmetryTransform {
    /// For each entry of a transformed observation: its index in the original, and whether the sign changes.
    pub entries: Vec<(usize, bool)>,
    /// The action of the game for each action in the transformed frame.
    pub actions: Vec<Action>,
    /// The class in the transformed frame for each class of the game, by slot.
    pub classes: Vec<Vec<usize>>,
}

impl Symmetries {
    /// The index of the transform that brings `observation` to the canonical frame.
    pub fn canonical(&self, observation: &[f32]) -> usize {
        let is_canonical = |transform: &SymmetryTransform| {
            self.canonical_if_positive.iter().all(|index| transform.entry(observation, *index) >= 0.0)
        };
        self.transforms.iter().position(is_canonical).unwrap_or(0)
    }
}

impl SymmetryTransform {
    /// One entry of the transformed observation.
    #[inline]
    fn entry(&self, observation: &[f32], index: usize) -> f32 {
        let (from, is_negated) = self.entries[index];
        if is_negated { -observation[from] } else { observation[from] }
    }

    /// Appends the transformed observation to `transformed`.
    #[inline]
    pub fn transform_observation(&self, observation: &[f32], transformed: &mut Vec<f32>) {
        transformed.extend((0..self.entries.len()).map(|index| self.entry(observation, index)));
    }

    /// The action in the transformed frame for an action of the game.
    pub fn transform_action(&self, action: Action) -> Action {
        let transformed = self.actions.iter().position(|known| *known == action);
        transformed.expect("a transform permutes the actions") as Action
    }

    /// Reorders values per action, for example probabilities, from the transformed frame to the game's order.
    pub fn to_game_actions(&self, values: &mut [f32]) {
        let mut transformed = [0.0; Action::MAX as usize];
        let transformed = &mut transformed[..values.len()];
        transformed.copy_from_slice(values);
        for (action, value) in self.actions.iter().zip(transformed) {
            values[usize::from(*action)] = *value;
        }
    }

    /// The class of the game for a class of `slot` in the transformed frame.
    pub fn to_game_class(&self, slot: usize, class: usize) -> usize {
        let of_game = self.classes[slot].iter().position(|transformed| *transformed == class);
        of_game.expect("a transform permutes the classes")
    }
}
