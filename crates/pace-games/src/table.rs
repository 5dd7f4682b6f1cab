//! An encounter in which any seat may be played from outside: the ego's by an agent, a peer's by a person.
//!
//! It goes move by move, and keeps what was played. An encounter whose peers are all scripted, stepped from one decision of the
//! ego to the next, is in `encounter`.

use serde_json::Value;

use crate::game::{
    Action, Boundary, Game, JointAction, MAX_SEATS, Moved, Movers, NO_ACTION, Portrait, Seat, Viewpoint,
};
use crate::peer::{Peer, SpecOf};
use crate::seed::{Seed, Stream};

/// What one move at a table brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableMove {
    /// What everybody did; [`NO_ACTION`] where a seat was not asked.
    pub actions: JointAction,
    /// What it led to.
    pub moved: Moved,
    /// Whether the episode or the encounter is over.
    pub boundary: Boundary,
}

/// One encounter with some seats played from outside, the ego's among them.
#[derive(Clone, Debug)]
pub struct Table<G: Game> {
    game: G,
    state: G::State,
    peers: Vec<G::Peer>,
    outsiders: Movers,
    deal_rng: Stream,
    peer_rngs: Vec<Stream>,
    episode: usize,
    n_episodes: usize,
    moves: Vec<(G::State, JointAction)>,
}

impl<G: Game> Table<G> {
    /// Everybody sits down and the first episode is dealt. A person who takes a peer's seat has that peer's part to play, if
    /// there is one; chance falls as in an [`crate::Encounter`] with the same seed.
    pub fn begin(game: &G, specs: &[SpecOf<G>], people: &[Seat], n_episodes: usize, seed: Seed) -> Table<G> {
        assert_eq!(specs.len(), game.spec().n_peers(), "{} needs a spec for every peer", G::ID);
        assert!(n_episodes > 0, "an encounter has at least one episode");
        assert!(people.iter().all(|seat| seat.0 < game.spec().n_seats()), "{people:?}: no such seat");
        let mut deal_rng = seed.stream("deal");
        let rng_of = |slot: usize| seed.child("peer", &[slot as u64]).stream("act");
        let mut table = Table {
            state: game.deal(&mut deal_rng),
            peers: specs.iter().map(|spec| G::Peer::meet(game, spec)).collect(),
            outsiders: people.iter().fold(Movers::only(Seat::EGO), |outsiders, seat| outsiders.with(*seat)),
            deal_rng,
            peer_rngs: (0..specs.len()).map(rng_of).collect(),
            episode: 0,
            n_episodes,
            moves: Vec::new(),
            game: game.clone(),
        };
        table.open_episode();
        table
    }

    fn open_episode(&mut self) {
        for peer in &mut self.peers {
            peer.begin_episode(&self.game);
        }
    }

    /// The seats that must be asked from outside before [`Table::play`]; it may be that nobody must.
    pub fn asked(&self) -> Movers {
        self.game.movers(&self.state).among(self.outsiders)
    }

    /// Carries out one move: `chosen` holds the actions of those who were asked, the others choose for themselves.
    pub fn play(&mut self, chosen: &JointAction) -> TableMove {
        let movers = self.game.movers(&self.state);
        let mut actions = [NO_ACTION; MAX_SEATS];
        for seat in (0..self.game.spec().n_seats()).map(Seat).filter(|seat| movers.contains(*seat)) {
            actions[seat.0] = if self.outsiders.contains(seat) {
                let action = chosen[seat.0];
                assert!(usize::from(action) < self.game.spec().n_actions(), "seat {seat:?} chose {action}");
                action
            } else {
                let slot = seat.0 - 1;
                self.peers[slot].act(&self.game, &self.state, seat, &mut self.peer_rngs[slot])
            };
        }
        self.moves.push((self.state.clone(), actions));
        let moved = self.game.apply(&mut self.state, &actions);
        let boundary = match moved.ending {
            None => Boundary::WithinEpisode,
            Some(_) if self.episode + 1 == self.n_episodes => Boundary::EncounterEnd,
            Some(_) => Boundary::EpisodeEnd,
        };
        TableMove { actions, moved, boundary }
    }

    /// Deals the next episode to the same peers.
    pub fn next_episode(&mut self) {
        self.episode += 1;
        assert!(self.episode < self.n_episodes, "the encounter is over after {} episodes", self.n_episodes);
        self.state = self.game.deal(&mut self.deal_rng);
        self.open_episode();
    }
}

/// A table of a game whose type is known to nobody but itself.
pub trait AnyTable: Send {
    /// See [`Table::asked`].
    fn asked(&self) -> Movers;
    /// See [`Table::play`].
    fn play(&mut self, chosen: &JointAction) -> TableMove;
    /// See [`Table::next_episode`].
    fn next_episode(&mut self);
    /// The episode that is being played, from 0.
    fn episode(&self) -> usize;
    /// Writes what a seat sees.
    fn observe(&self, seat: Seat, observation: &mut [f32]);
    /// Why the person in `seat` may not do this now; see [`Peer::objection`].
    fn objection(&self, seat: Seat, action: Action) -> Option<String>;
    /// The state from a viewpoint, as plain data; see [`Game::view`].
    fn view(&self, from: Viewpoint) -> Value;
    /// How the peer in `seat` was played so far.
    fn portrait(&self, seat: Seat) -> Portrait;
}

impl<G: Game> AnyTable for Table<G> {
    fn asked(&self) -> Movers {
        Table::asked(self)
    }

    fn play(&mut self, chosen: &JointAction) -> TableMove {
        Table::play(self, chosen)
    }

    fn next_episode(&mut self) {
        Table::next_episode(self);
    }

    fn episode(&self) -> usize {
        self.episode
    }

    fn observe(&self, seat: Seat, observation: &mut [f32]) {
        self.game.observe(&self.state, seat, observation);
    }

    fn objection(&self, seat: Seat, action: Action) -> Option<String> {
        self.peers.get(seat.0.checked_sub(1)?)?.objection(&self.game, &self.state, seat, action)
    }

    fn view(&self, from: Viewpoint) -> Value {
        self.game.view(&self.state, from)
    }

    fn portrait(&self, seat: Seat) -> Portrait {
        self.game.portrait(seat, &self.moves)
    }
}
