//! What a peer is: a behaviour that can be written down (`PeerSpec`), and a player of it (`Peer`).
//!
//! The peers of each game live in that game's folder; which of them meet the ego is in `pool`.

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

    /// How it behaves, in numbers from 0 to 1, where peers that behave alike have alike numbers; equally many for every peer
    /// of a slot. An identifier may learn these instead of the names of the training peers. None unless the peers say so.
    fn behaviour_vector(&self) -> Vec<f32> {
        Vec::new()
    }

    /// What peers differ in, each with a word for what it is here: `("right ingredient", "Carrot")`. None unless the peers say so.
    fn factors(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// What an ego has to find out about the peer, in a few words: peers of one kind want the same answer.
    fn kind(&self) -> String {
        self.describe()
    }

    /// The same as [`PeerSpec::kind`] as plain data, for programs and pages. Default: none.
    fn kind_data(&self) -> Value {
        Value::Null
    }
}

/// A peer in play: a spec and whatever it remembers from step to step.
///
/// `G` is the game it can play. A peer sees the whole state, as the paper's rule-based peers do.
pub trait Peer<G: Game>: Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The behaviour this peer plays.
    type Spec: PeerSpec;

    /// A peer that has just arrived and remembers nothing.
    fn new(game: &G, spec: &Self::Spec) -> Self;

    /// The behaviour it was made from; the same from the first step of an encounter to the last.
    fn spec(&self) -> &Self::Spec;

    /// A new episode begins, against the same ego.
    fn begin_episode(&mut self, game: &G);

    /// The peer's choice in `state`. It may draw from `rng` and from nothing else.
    fn act(&mut self, game: &G, state: &G::State, seat: Seat, rng: &mut Stream) -> Action;

    /// Why a person who plays this peer's part may not do `action` now, although the rules would let them; as a sentence
    /// to that person.
    fn forbidden_reason(&self, _game: &G, _state: &G::State, _seat: Seat, _action: Action) -> Option<String> {
        None
    }
}

/// The spec type of a game's own peers.
pub type SpecOf<G> = <<G as Game>::Peer as Peer<G>>::Spec;

/// The peers of one encounter, by slot, with the class of each for the identifier.
///
/// A class counts the policies of that slot within its split of the pool. It reaches training batches only:
/// no observation and no agent ever sees it.
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
