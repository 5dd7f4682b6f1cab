//! An encounter: several episodes of one game with the same peers. The only code that steps a game with its peers.
//!
//! The ego's seat is always played from outside, and so are the seats of people who take the place of peers. Many encounters
//! stepped together are an `Arena`; an ego that plays one, decision by decision, is in `session`.

use serde::{Deserialize, Serialize};

use crate::game::{
    Action, Boundary, Ending, Game, JointAction, MAX_SEATS, MoveOutcome, NO_ACTION, NO_ACTIONS, Seat, SeatSet,
};
use crate::peer::Peer;
use crate::seed::{Seed, Stream};

/// One ego's encounter with one tuple of peers. Plain data: it can be written down in the middle and gone on with.
///
/// Every episode begins at the first move for which a seat is asked from outside; the peers make the moves before it.
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
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
    /// Whether the ego came to an informative place.
    pub keypoint_visited: bool,
}

impl EgoStep {
    /// A step of which no move has been made yet.
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

/// The buffers that receive what the peers saw and did between two decisions of the ego. A peer that did not act leaves zeros
/// and [`NO_ACTION`]; one that acted twice leaves its last choice. It makes no difference whether a peer was scripted or
/// played by a person.
#[derive(Debug)]
pub struct PeerStepBuffers<'a> {
    /// One observation per peer, as it was when the peer chose; empty when they are not wanted.
    pub observations: &'a mut [f32],
    /// One action per peer; empty when they are not wanted.
    pub actions: &'a mut [Action],
}

impl PeerStepBuffers<'_> {
    /// Forgets the moves before a decision of the ego.
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

    /// Like [`Encounter::begin`], but `people` play the seats of some peers. The scripted peers and the deals draw the same
    /// random numbers either way.
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

    /// Like [`Encounter::begin`], in the place of an encounter that is over. Allocates nothing.
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

    /// Tells the peers that an episode begins, and makes the moves before the first that is asked from outside.
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

    /// The seats whose actions the next [`Encounter::play`] needs from outside. Between two moves of scripted peers there may
    /// be none; when the episode is over there is none.
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

    /// The ego acts; scripted peers move until it is the ego's turn again or the episode is over. A state in which the episode
    /// is over stays to be looked at until [`Encounter::next_episode`]. For encounters without people.
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

    /// Deals the next episode to the same peers.
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

    /// The episode that is being played, from 0.
    pub fn episode(&self) -> usize {
        self.episode
    }
}
