//! Rule-based peers: a behaviour as plain data (`PeerSpec`), and a player with that behaviour (`Peer`).
//!
//! The peers of each game are in that game's folder; training and test peers are in `pool`.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::game::{Action, Game, Seat};
use crate::seed::Stream;

/// The behaviour of one peer as plain data.
pub trait PeerSpec: Clone + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// One line for people.
    fn describe(&self) -> String;

    /// The behaviour as numbers from 0 to 1. Peers with similar behaviour have similar vectors, and all peers of a slot have
    /// vectors of one length. It can be the target of the identifier instead of the class. Default: empty.
    fn behaviour_vector(&self) -> Vec<f32> {
        Vec::new()
    }

    /// The factors of variation and their values, for example `("right ingredient", "Carrot")`. Default: none.
    fn factors(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The kind of the peer as text: the behaviour as far as the best response depends on it.
    fn kind(&self) -> String {
        self.describe()
    }

    /// The kind as plain data, for programs and pages. Default: none.
    fn kind_data(&self) -> Value {
        Value::Null
    }
}

/// A peer in an encounter: its behaviour and its memory.
///
/// A peer sees the whole state, as the paper's rule-based peers do.
pub trait Peer<G: Game>: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The behaviour this peer plays.
    type Spec: PeerSpec;

    /// A peer without memory, at the start of an encounter.
    fn new(game: &G, spec: &Self::Spec) -> Self;

    /// The behaviour of the peer; it does not change during an encounter.
    fn spec(&self) -> &Self::Spec;

    /// Starts a new episode with the same ego.
    fn begin_episode(&mut self, game: &G);

    /// Chooses an action in `state`. All randomness comes from `rng`.
    fn act(&mut self, game: &G, state: &G::State, seat: Seat, rng: &mut Stream) -> Action;

    /// The reason, as a sentence, for which a person in this peer's role must not take an action that the rules allow.
    /// `None` if the action is allowed.
    fn forbidden_reason(&self, _game: &G, _state: &G::State, _seat: Seat, _action: Action) -> Option<String> {
        None
    }
}

/// The spec type of a game's own peers.
pub type SpecOf<G> = <<G as Game>::Peer as Peer<G>>::Spec;

/// The peers of one encounter, by slot, with the class of each for the identifier.
///
/// Classes number the different behaviours of a slot within one split of the pool. They reach training batches only: no
/// observation contains them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerTuple<S> {
    /// The behaviours, by slot.
    pub specs: Vec<S>,
    /// The identifier's class of each.
    pub classes: Vec<usize>,
}

impl<S: PeerSpec> PeerTuple<S> {
    /// One line for people.
    pub fn describe(&self) -> String {
        self.specs.iter().map(PeerSpec::describe).collect::<Vec<_>>().join("; ")
    }
}
