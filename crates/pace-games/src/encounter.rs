//! An encounter: several episodes of one game with the same peers. No other code steps a game with its peers.
//!
//! The caller chooses the actions of the ego and of people in the seats of peers. An `Arena` steps many encounters together; in
//! `session` an ego plays one.

use serde::{Deserialize, Serialize};

use crate::game::{
    Action, Boundary, Ending, Game, JointAction, MAX_SEATS, MoveOutcome, NO_ACTION, NO_ACTIONS, Seat, SeatSet,
};
use crate::peer::Peer;
use crate::seed::{Seed, Stream};

/// An encounter of an ego with one peer tuple. It is plain data, which can be stored at any move and continued later.
///
/// Every episode begins at the first move of an external seat. The peers make the moves before it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Encounter<G: Game, P: Peer<G> = <G as Game>::Peer> {
    state: G::State,
    peers: Vec<P>,
    /// The ego's seat, and the seats of people.
    external_seats: SeatSet,
    deal_rng: Stream,
    peer_rngs: Vec<Stream>,
    episode: usize,
    n_episodes: usize,
}

/// One move and its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncounterMove {
    /// The action of every seat; [`NO_ACTION`] where a seat was not asked.
    pub actions: JointAction,
    /// The reward and the ending.
    pub outcome: MoveOutcome,
    /// Whether the episode or the encounter is over.
    pub boundary: Boundary,
}

/// The outcome of one decision of the ego, up to its next decision or the end of the episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EgoStep {
    /// The ego's task reward.
    pub task_reward: f64,
    /// Whether the episode or the encounter is over.
    pub boundary: Boundary,
    /// The ending of the episode, if it ended.
    pub ending: Option<Ending>,
    /// Whether the ego came to an informative place.
    pub keypoint_visited: bool,
}

impl EgoStep {
    /// A step before its first move.
    pub(crate) const NEW: EgoStep = EgoStep {
        task_reward: 0.0,
        boundary: Boundary::WithinEpisode,
        ending: None,
        keypoint_visited: false,
    };

    /// Adds a move.
    #[inline]
    pub(crate) fn add(&mut self, played: &EncounterMove) {
        self.task_reward += played.outcome.task_reward;
        self.keypoint_visited |= played.outcome.keypoint_visited;
        self.ending = played.outcome.ending;
        self.boundary = played.boundary;
    }
}

/// Buffers for the observations and actions of the peers between two decisions of the ego, whether scripted or played by people. A
/// peer without an action has zeros and [`NO_ACTION`]; a peer with two actions has the last one.
#[derive(Debug)]
pub struct PeerStepBuffers<'a> {
    /// One observation per peer at the time of its choice; empty to skip them.
    pub observations: &'a mut [f32],
    /// One action per peer; empty to skip them.
    pub actions: &'a mut [Action],
}

impl PeerStepBuffers<'_> {
    /// Clears the buffers before a decision of the ego.
    #[inline]
    pub fn clear(&mut self) {
        self.observations.fill(0.0);
        self.actions.fill(NO_ACTION);
    }
}

impl<G: Game, P: Peer<G>> Encounter<G, P> {
    /// An encounter at the start of its first episode, with all peers scripted.
    pub fn begin(game: &G, specs: &[P::Spec], n_episodes: usize, seed: Seed) -> Encounter<G, P> {
        Encounter::begin_with_people(game, specs, &[], n_episodes, seed)
    }

    /// Like [`Encounter::begin`], but people play the seats `people` of some peers. The random numbers of the scripted peers and of
    /// the initial states are the same in both cases.
    pub fn begin_with_people(
        game: &G,
        specs: &[P::Spec],
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Encounter<G, P> {
        assert!(people.iter().all(|seat| seat.0 < game.spec().n_seats()), "{people:?}: no such seat");
        let mut deal_rng = seed.stream("deal");
        let mut encounter = Encounter {
            state: game.initial_state(&mut deal_rng),
            peers: Vec::with_capacity(specs.len()),
            external_seats: people.iter().fold(SeatSet::only(Seat::EGO), |seats, seat| seats.with(*seat)),
            deal_rng,
            peer_rngs: Vec::with_capacity(specs.len()),
            episode: 0,
            n_episodes,
        };
        encounter.add_peers(game, specs, seed);
        encounter
    }

    /// Starts another encounter in the memory of this one. Allocates nothing.
    pub fn reset(&mut self, game: &G, specs: &[P::Spec], n_episodes: usize, seed: Seed) {
        self.deal_rng = seed.stream("deal");
        self.state = game.initial_state(&mut self.deal_rng);
        self.peers.clear();
        self.peer_rngs.clear();
        self.external_seats = SeatSet::only(Seat::EGO);
        (self.episode, self.n_episodes) = (0, n_episodes);
        self.add_peers(game, specs, seed);
    }

    fn add_peers(&mut self, game: &G, specs: &[P::Spec], seed: Seed) {
        assert_eq!(specs.len(), game.spec().n_peers(), "{} needs a spec for every peer", G::ID);
        assert!(self.n_episodes > 0, "an encounter has at least one episode");
        for (slot, spec) in specs.iter().enumerate() {
            self.peers.push(P::new(game, spec));
            self.peer_rngs.push(seed.child("peer", &[slot as u64]).stream("act"));
        }
        self.start_episode(game);
    }

    /// Starts an episode of every peer, and makes the moves before the first one of an external seat.
    fn start_episode(&mut self, game: &G) {
        for peer in &mut self.peers {
            peer.begin_episode(game);
        }
        while self.seats_to_ask(game).is_empty() {
            let mut unseen = PeerStepBuffers { observations: &mut [], actions: &mut [] };
            let played = self.play(game, &NO_ACTIONS, &mut unseen);
            assert!(
                played.outcome.ending.is_none(),
                "{}: an episode ended before anyone outside was asked",
                G::ID
            );
        }
    }

    /// The external seats that act in the next move. There are none if only scripted peers act, and none after the end of the
    /// episode.
    #[inline]
    pub fn seats_to_ask(&self, game: &G) -> SeatSet {
        game.acting_seats(&self.state).intersection(self.external_seats)
    }

    /// Makes one move. `chosen` holds the actions of [`Encounter::seats_to_ask`]; the scripted peers choose for themselves.
    /// The observations and actions of the peers are written to `peers`.
    // As a function of its own it makes the steps of Predator-Prey-W 19 % and those of Kuhn Poker 7 % slower.
    #[inline(always)]
    pub fn play(&mut self, game: &G, chosen: &JointAction, peers: &mut PeerStepBuffers<'_>) -> EncounterMove {
        let movers = game.acting_seats(&self.state);
        let n_actions = game.spec().n_actions();
        let from_outside = |seat: Seat| {
            let action = chosen[seat.0];
            assert!(usize::from(action) < n_actions, "{}: {seat:?} chose action {action}", G::ID);
            action
        };
        let mut actions = [NO_ACTION; MAX_SEATS];
        if movers.contains(Seat::EGO) {
            actions[Seat::EGO.0] = from_outside(Seat::EGO);
        }
        for (slot, (peer, rng)) in self.peers.iter_mut().zip(&mut self.peer_rngs).enumerate() {
            let seat = Seat::of_peer(slot);
            if !movers.contains(seat) {
                continue;
            }
            if !peers.observations.is_empty() {
                let size = game.spec().observation_size;
                game.observe(&self.state, seat, &mut peers.observations[slot * size..][..size]);
            }
            let action = if self.external_seats.contains(seat) {
                from_outside(seat)
            } else {
                peer.act(game, &self.state, seat, rng)
            };
            actions[seat.0] = action;
            if let Some(place) = peers.actions.get_mut(slot) {
                *place = action;
            }
        }
        let outcome = game.apply(&mut self.state, &actions);
        let boundary = match outcome.ending {
            None => Boundary::WithinEpisode,
            Some(_) if self.episode + 1 == self.n_episodes => Boundary::EncounterEnd,
            Some(_) => Boundary::EpisodeEnd,
        };
        EncounterMove { actions, outcome, boundary }
    }

    /// Plays the ego's action and the moves of the scripted peers until the ego's next decision or the end of the episode. The
    /// final state stays available until [`Encounter::next_episode`]. For encounters without people.
    #[inline]
    pub fn step(&mut self, game: &G, ego_action: Action, mut peers: PeerStepBuffers<'_>) -> EgoStep {
        assert_eq!(
            self.seats_to_ask(game),
            SeatSet::only(Seat::EGO),
            "{}: the ego stepped when not it alone was asked",
            G::ID
        );
        let mut chosen = NO_ACTIONS;
        chosen[Seat::EGO.0] = ego_action;
        peers.clear();
        let mut step = EgoStep::NEW;
        loop {
            step.add(&self.play(game, &chosen, &mut peers));
            if step.ending.is_some() || !self.seats_to_ask(game).is_empty() {
                return step;
            }
        }
    }

    /// Starts the next episode with the same peers.
    pub fn next_episode(&mut self, game: &G) {
        self.episode += 1;
        assert!(self.episode < self.n_episodes, "the encounter is over after {} episodes", self.n_episodes);
        self.state = game.initial_state(&mut self.deal_rng);
        self.start_episode(game);
    }

    /// The current state of the game.
    pub fn state(&self) -> &G::State {
        &self.state
    }

    /// The peers, by slot.
    pub fn peers(&self) -> &[P] {
        &self.peers
    }

    /// The index of the current episode.
    pub fn episode(&self) -> usize {
        self.episode
    }
}
