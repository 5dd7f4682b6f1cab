//! An encounter: several episodes of one game with the same peers, from the ego's point of view.
//!
//! Many encounters stepped together are an `Arena`; an ego that plays one to its end is in `ego`.

use serde::{Deserialize, Serialize};

use crate::game::{Action, Boundary, Ending, Game, JointAction, MAX_SEATS, NO_ACTION, Seat};
use crate::peer::Peer;
use crate::seed::{Seed, Stream};

/// One ego's encounter with one tuple of peers. Plain data: it can be written down in the middle and gone on with.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Encounter<G: Game, P: Peer<G> = <G as Game>::Peer> {
    state: G::State,
    peers: Vec<P>,
    deal_rng: Stream,
    peer_rngs: Vec<Stream>,
    episode: usize,
    n_episodes: usize,
}

/// What one decision of the ego led to, up to its next decision or the end of the episode.
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

/// Where a step writes what the peers saw and did. A peer that did not act leaves zeros and [`NO_ACTION`];
/// one that acted twice before the ego's next turn leaves its last choice.
#[derive(Debug)]
pub struct PeerViews<'a> {
    /// One observation per peer, as it was when the peer chose; empty when they are not wanted.
    pub observations: &'a mut [f32],
    /// One action per peer.
    pub actions: &'a mut [Action],
}

impl<G: Game, P: Peer<G>> Encounter<G, P> {
    /// The peers arrive and the first episode is dealt.
    pub fn begin(game: &G, specs: &[P::Spec], n_episodes: usize, seed: Seed) -> Encounter<G, P> {
        let mut deal_rng = seed.stream("deal");
        let mut encounter = Encounter {
            state: game.deal(&mut deal_rng),
            peers: Vec::with_capacity(specs.len()),
            deal_rng,
            peer_rngs: Vec::with_capacity(specs.len()),
            episode: 0,
            n_episodes,
        };
        encounter.welcome(game, specs, seed);
        encounter
    }

    /// The same as [`Encounter::begin`], in the place of an encounter that is over.
    pub fn begin_again(&mut self, game: &G, specs: &[P::Spec], n_episodes: usize, seed: Seed) {
        self.deal_rng = seed.stream("deal");
        self.state = game.deal(&mut self.deal_rng);
        self.peers.clear();
        self.peer_rngs.clear();
        (self.episode, self.n_episodes) = (0, n_episodes);
        self.welcome(game, specs, seed);
    }

    fn welcome(&mut self, game: &G, specs: &[P::Spec], seed: Seed) {
        assert_eq!(specs.len(), game.spec().n_peers(), "{} needs a spec for every peer", G::ID);
        assert!(self.n_episodes > 0, "an encounter has at least one episode");
        for (slot, spec) in specs.iter().enumerate() {
            self.peers.push(P::meet(game, spec));
            self.peer_rngs.push(seed.child("peer", &[slot as u64]).stream("act"));
        }
        self.open_episode(game);
    }

    /// Lets the peers know, and move where they move before the ego.
    fn open_episode(&mut self, game: &G) {
        for peer in &mut self.peers {
            peer.begin_episode(game);
        }
        while !game.movers(&self.state).contains(Seat::EGO) {
            let mut actions = [NO_ACTION; MAX_SEATS];
            self.ask_peers(game, &mut actions, &mut PeerViews { observations: &mut [], actions: &mut [] });
            let moved = game.apply(&mut self.state, &actions);
            assert!(moved.ending.is_none(), "{}: an episode ended before the ego was asked", G::ID);
        }
    }

    #[inline]
    fn ask_peers(&mut self, game: &G, actions: &mut JointAction, views: &mut PeerViews<'_>) {
        let movers = game.movers(&self.state);
        for (slot, (peer, rng)) in self.peers.iter_mut().zip(&mut self.peer_rngs).enumerate() {
            let seat = Seat::of_peer(slot);
            if !movers.contains(seat) {
                continue;
            }
            if !views.observations.is_empty() {
                let size = game.spec().observation_size;
                game.observe(&self.state, seat, &mut views.observations[slot * size..][..size]);
            }
            let action = peer.act(game, &self.state, seat, rng);
            actions[seat.0] = action;
            if let Some(place) = views.actions.get_mut(slot) {
                *place = action;
            }
        }
    }

    /// The ego acts; peers move until it is the ego's turn again or the episode is over. A state in which the episode
    /// is over stays to be looked at until [`Encounter::next_episode`].
    #[inline]
    pub fn step(&mut self, game: &G, ego_action: Action, mut views: PeerViews<'_>) -> EgoStep {
        assert!(
            game.movers(&self.state).contains(Seat::EGO),
            "{}: the ego stepped when it was not asked",
            G::ID
        );
        views.observations.fill(0.0);
        views.actions.fill(NO_ACTION);
        let mut step = EgoStep {
            task_reward: 0.0,
            boundary: Boundary::WithinEpisode,
            ending: None,
            keypoint_visited: false,
        };
        loop {
            let mut actions = [NO_ACTION; MAX_SEATS];
            if game.movers(&self.state).contains(Seat::EGO) {
                actions[Seat::EGO.0] = ego_action;
            }
            self.ask_peers(game, &mut actions, &mut views);
            let moved = game.apply(&mut self.state, &actions);
            step.task_reward += moved.task_reward;
            step.keypoint_visited |= moved.keypoint_visited;
            step.ending = moved.ending;
            if moved.ending.is_some() {
                let is_last = self.episode + 1 == self.n_episodes;
                step.boundary = if is_last { Boundary::EncounterEnd } else { Boundary::EpisodeEnd };
                return step;
            }
            if game.movers(&self.state).contains(Seat::EGO) {
                return step;
            }
        }
    }

    /// Deals the next episode to the same peers.
    pub fn next_episode(&mut self, game: &G) {
        self.episode += 1;
        assert!(self.episode < self.n_episodes, "the encounter is over after {} episodes", self.n_episodes);
        self.state = game.deal(&mut self.deal_rng);
        self.open_episode(game);
    }

    /// The point in play.
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
