//! A game that is the same from several sides, as a square is when it is turned.
//!
//! An ego that always looks from its own side has less to learn: what it knows about one corner it knows about all.

use crate::game::Action;

/// The sides from which a game is the same: the rules, the peers and the chances of every deal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetries {
    /// What each side changes; the game is described from the first, which changes nothing.
    pub transforms: Vec<SymmetryTransform>,
    /// An ego's own side is the first one from which none of these numbers of its observation is negative.
    pub canonical_if_positive: Vec<usize>,
}

/// What changes for an ego that looks from another side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymmetryTransform {
    /// Where each number of an observation comes from, and whether it has the other sign.
    pub numbers: Vec<(usize, bool)>,
    /// What each action that is chosen from here is for the game.
    pub actions: Vec<Action>,
    /// What each class of peers is from here, by slot.
    pub classes: Vec<Vec<usize>>,
}

impl Symmetries {
    /// The side that an ego calls its own when it sees this.
    pub fn canonical(&self, observation: &[f32]) -> usize {
        let is_own = |transform: &SymmetryTransform| {
            self.canonical_if_positive.iter().all(|place| transform.number(observation, *place) >= 0.0)
        };
        self.transforms.iter().position(is_own).unwrap_or(0)
    }
}

impl SymmetryTransform {
    /// One number of an observation as it is from here.
    #[inline]
    fn number(&self, observation: &[f32], place: usize) -> f32 {
        let (from, is_negated) = self.numbers[place];
        if is_negated { -observation[from] } else { observation[from] }
    }

    /// Adds an observation, as it is from here, to `seen`.
    #[inline]
    pub fn transform_observation(&self, observation: &[f32], seen: &mut Vec<f32>) {
        seen.extend((0..self.numbers.len()).map(|place| self.number(observation, place)));
    }

    /// What an action of the game is from here.
    pub fn action_from_here(&self, action: Action) -> Action {
        let chosen = self.actions.iter().position(|known| *known == action);
        chosen.expect("every action is one from every side") as Action
    }

    /// Brings numbers about the actions from here into the game's order.
    pub fn to_game_actions(&self, of_actions: &mut [f32]) {
        let mut from_here = [0.0; Action::MAX as usize];
        let from_here = &mut from_here[..of_actions.len()];
        from_here.copy_from_slice(of_actions);
        for (action, number) in self.actions.iter().zip(from_here) {
            of_actions[usize::from(*action)] = *number;
        }
    }

    /// The class of a peer in `slot` that from here is of this class.
    pub fn true_class(&self, slot: usize, class_from_here: usize) -> usize {
        let known = self.classes[slot].iter().position(|class| *class == class_from_here);
        known.expect("every class is one from every side")
    }
}
