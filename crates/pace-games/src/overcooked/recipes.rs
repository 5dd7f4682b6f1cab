//! Six ingredients, nine dishes, and the 18 goal graphs that define the rewards for progress.
//!
//! The positions of ingredients are in `kitchen`, the dishes that peers want in `peers`.

use serde::{Deserialize, Serialize};

/// A kind of food. The first three are *left* ingredients, the last three *right* ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Ingredient {
    Lettuce,
    Tomato,
    Potato,
    Broccoli,
    Onion,
    Carrot,
}

impl Ingredient {
    /// The ingredients on the ego's side alone.
    pub(crate) const LEFT: [Ingredient; 3] = [Ingredient::Tomato, Ingredient::Lettuce, Ingredient::Potato];
    /// The ingredients on both sides.
    pub(crate) const RIGHT: [Ingredient; 3] = [Ingredient::Onion, Ingredient::Carrot, Ingredient::Broccoli];

    /// The set with this ingredient alone.
    #[inline]
    pub(crate) const fn alone(self) -> Ingredients {
        Ingredients(1 << self as u8)
    }
}

/// A set of ingredients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ingredients(u8);

impl Ingredients {
    pub(crate) const NONE: Ingredients = Ingredients(0);

    #[inline]
    pub(crate) const fn with(self, other: Ingredients) -> Ingredients {
        Ingredients(self.0 | other.0)
    }

    #[inline]
    pub(crate) fn insert(&mut self, ingredient: Ingredient) {
        self.0 |= ingredient.alone().0;
    }

    #[inline]
    pub(crate) fn contains(self, ingredient: Ingredient) -> bool {
        self.0 & ingredient.alone().0 != 0
    }

    #[inline]
    pub(crate) fn is_within(self, other: Ingredients) -> bool {
        self.0 & !other.0 == 0
    }

    #[inline]
    pub(crate) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// The bits of the set, a number below 64.
    #[inline]
    pub(crate) fn number(self) -> u8 {
        self.0
    }
}

/// A dish: one left and one right ingredient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Lettuce, tomato or potato.
    pub left: Ingredient,
    /// Broccoli, onion or carrot.
    pub right: Ingredient,
}

impl Recipe {
    /// The nine dishes, in the order of the goal graphs.
    pub const ALL: [Recipe; 9] = {
        let mut all = [Recipe { left: Ingredient::Tomato, right: Ingredient::Onion }; 9];
        let mut index = 0;
        while index < 9 {
            all[index] = Recipe { left: Ingredient::LEFT[index / 3], right: Ingredient::RIGHT[index % 3] };
            index += 1;
        }
        all
    };

    #[inline]
    pub(crate) fn ingredients(self) -> Ingredients {
        self.left.alone().with(self.right.alone())
    }
}

/// The number of goal graphs: two per dish, one for each order of plating.
pub(crate) const N_GOALS: usize = 18;

/// The conditions of the goal graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The kinds of which a piece is chopped.
    pub(crate) chopped: Ingredients,
    /// The kinds on the plate.
    pub(crate) plated: Ingredients,
    /// Whether the plate is on the delivery tile.
    pub(crate) plate_delivered: bool,
}

/// The achieved nodes of each goal graph: one bit per node, in the order chopped first, chopped second, plate with first, plate
/// with both, delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GoalProgress {
    nodes: [u8; N_GOALS],
}

const CHOPPED_FIRST: u8 = 1;
const CHOPPED_SECOND: u8 = 2;
const PLATE_FIRST: u8 = 4;
const PLATE_BOTH: u8 = 8;
const DELIVERED: u8 = 16;

impl GoalProgress {
    /// The nodes of every graph; 2i and 2i + 1 are dish i of [`Recipe::ALL`], left or right ingredient first.
    pub fn nodes(&self) -> &[u8; N_GOALS] {
        &self.nodes
    }

    /// Whether a dish was delivered.
    #[inline]
    pub(crate) fn is_delivered(&self) -> bool {
        self.nodes.iter().any(|nodes| nodes & DELIVERED != 0)
    }

    /// Updates the nodes and returns the reward of the best graph: 10 for a delivery, otherwise 1 per new node.
    ///
    /// A graph that does not fit the ingredients on the plate keeps its nodes and pays nothing, since no food leaves a plate.
    pub(crate) fn update(&mut self, facts: Facts) -> f64 {
        let mut best = 0.0f64;
        for (goal, nodes) in self.nodes.iter_mut().enumerate() {
            let (first, second) = plating_order(goal);
            if !facts.plated.is_within(first.alone().with(second.alone())) {
                continue;
            }
            let now = achieved(first, second, facts);
            let reward = if now & DELIVERED != 0 {
                10.0
            } else {
                f64::from((now & !*nodes).count_ones()) - f64::from((*nodes & !now).count_ones())
            };
            best = best.max(reward);
            *nodes = now;
        }
        best
    }

    /// Whether the nodes agree with `facts`. A graph that can still be completed has exactly the achieved nodes; any other graph
    /// has a subset of them.
    pub(crate) fn fits(&self, facts: Facts) -> bool {
        self.nodes.iter().enumerate().all(|(goal, nodes)| {
            let (first, second) = plating_order(goal);
            let now = achieved(first, second, facts);
            let is_completable = facts.plated.is_within(first.alone().with(second.alone()));
            if is_completable { *nodes == now } else { *nodes & !now == 0 }
        })
    }
}

/// The ingredients of a graph in its order of plating.
#[inline]
fn plating_order(goal: usize) -> (Ingredient, Ingredient) {
    let Recipe { left, right } = Recipe::ALL[goal / 2];
    if goal.is_multiple_of(2) { (left, right) } else { (right, left) }
}

#[inline]
fn achieved(first: Ingredient, second: Ingredient, facts: Facts) -> u8 {
    let mut nodes = 0;
    if facts.chopped.contains(first) {
        nodes |= CHOPPED_FIRST;
    }
    if facts.chopped.contains(second) {
        nodes |= CHOPPED_SECOND;
    }
    if nodes & CHOPPED_FIRST != 0 && facts.plated.contains(first) {
        nodes |= PLATE_FIRST;
        if nodes & CHOPPED_SECOND != 0 && facts.plated.contains(second) {
            nodes |= PLATE_BOTH;
            if facts.plate_delivered {
                nodes |= DELIVERED;
            }
        }
    }
    nodes
}
