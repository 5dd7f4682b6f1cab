//! What training peers saw and did while a policy played with them: the first stage learns from it.

use pace_games::{
    Action, AnyGame, Boundary, GameError, Lanes, NO_ACTION, PeerSight, Seed, Split, Stream, sample_action,
};
use pace_nn::loss::softmax_rows;

use crate::network::{Decisions, Sizes};
use crate::policy::{Memory, Policy, PolicyRoom};

/// One row per decision of a peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PeerSamples {
    pub(crate) observations: Vec<f32>,
    pub(crate) actions: Vec<Action>,
    /// The training tuple that the peer belongs to.
    pub(crate) tuples: Vec<u8>,
    /// Decisions of the ego meanwhile.
    pub(crate) n_decisions: u64,
}

impl PeerSamples {
    pub(crate) fn len(&self) -> usize {
        self.actions.len()
    }

    /// Forgets all samples and keeps their room.
    pub(crate) fn clear(&mut self) {
        self.observations.clear();
        self.actions.clear();
        self.tuples.clear();
        self.n_decisions = 0;
    }

    pub(crate) fn append(&mut self, other: &mut PeerSamples) {
        self.observations.append(&mut other.observations);
        self.actions.append(&mut other.actions);
        self.tuples.append(&mut other.tuples);
        self.n_decisions += std::mem::take(&mut other.n_decisions);
    }
}

/// The part of the encounters that one shard watches.
pub(crate) struct Watcher {
    lanes: Box<dyn Lanes>,
    policy: Policy,
    room: Box<dyn PolicyRoom>,
    memories: Vec<Memory>,
    rngs: Vec<Stream>,
    /// The encounters of this shard by number, and the training tuple of each.
    encounters: std::ops::Range<usize>,
    tuples: Vec<usize>,
    sizes: Sizes,
    pub(crate) samples: PeerSamples,
    /// Why the samples are not whole.
    pub(crate) failure: Option<GameError>,
}

impl Watcher {
    /// Cuts `per_tuple` encounters with each of these tuples into shards of nearly equal size.
    pub(crate) fn split(
        game: &dyn AnyGame,
        policy: &Policy,
        tuples_met: &[usize],
        per_tuple: usize,
        n_shards: usize,
    ) -> Vec<Watcher> {
        let n_encounters = tuples_met.len() * per_tuple;
        let n_shards = n_shards.min(n_encounters);
        (0..n_shards)
            .map(|shard| {
                let encounters = n_encounters * shard / n_shards..n_encounters * (shard + 1) / n_shards;
                Watcher {
                    lanes: game.lanes(Split::Train, encounters.len(), PeerSight::Recorded),
                    policy: policy.clone(),
                    room: policy.room(),
                    memories: Vec::new(),
                    rngs: Vec::new(),
                    tuples: encounters.clone().map(|number| tuples_met[number % tuples_met.len()]).collect(),
                    encounters,
                    sizes: Sizes::of(game.spec()),
                    samples: PeerSamples::default(),
                    failure: None,
                }
            })
            .collect()
    }

    /// Plays every encounter of the shard to its end. A policy whose output is not a distribution over actions is refused.
    pub(crate) fn watch(&mut self, n_episodes: usize, seed: Seed) -> Result<(), GameError> {
        self.samples.clear();
        self.memories.clear();
        self.rngs.clear();
        for (lane, number) in self.encounters.clone().enumerate() {
            let seed = seed.child("encounter", &[number as u64]);
            self.lanes.begin(lane, self.tuples[lane], n_episodes, seed);
            self.memories.push(self.policy.memory(seed));
            self.rngs.push(seed.stream("ego"));
        }
        let Sizes { observation: size, n_actions, n_peers } = self.sizes;
        let mut actions = vec![0; self.tuples.len()];
        let (mut active, mut observations, mut logits) = (Vec::new(), Vec::new(), Vec::new());
        let (mut logs, mut probabilities) = (Vec::new(), Vec::new());
        let (mut ego_actions, mut peer_actions) = (Vec::new(), Vec::new());
        let (mut peer_observations, mut task_rewards) = (Vec::new(), Vec::new());
        let (mut ended, mut terminal_observations) = (Vec::new(), Vec::new());
        loop {
            active.clear();
            active.extend((0..self.tuples.len()).filter(|lane| !self.lanes.resting()[*lane]));
            if active.is_empty() {
                return Ok(());
            }
            observations.clear();
            self.room.clear();
            for lane in &active {
                observations.extend_from_slice(&self.lanes.block().observations[lane * size..][..size]);
                self.room.load(&self.memories[*lane]);
            }
            self.room.act(&observations, &mut logits);
            ego_actions.clear();
            logs.resize(logits.len(), 0.0);
            probabilities.resize(logits.len(), 0.0);
            softmax_rows(&logits, &[n_actions], &mut logs, &mut probabilities);
            for (lane, probabilities) in active.iter().zip(probabilities.chunks_exact(n_actions)) {
                let action = sample_action(probabilities, &mut self.rngs[*lane])?;
                ego_actions.push(action);
                actions[*lane] = action;
            }
            self.lanes.step(&actions);
            let block = self.lanes.block();
            peer_actions.clear();
            peer_observations.clear();
            task_rewards.clear();
            ended.clear();
            terminal_observations.clear();
            for &lane in &active {
                let acted = &block.peer_actions[lane * n_peers..][..n_peers];
                let seen = &block.peer_observations[lane * n_peers * size..][..n_peers * size];
                for (action, observation) in acted.iter().zip(seen.chunks_exact(size)) {
                    if *action != NO_ACTION {
                        self.samples.observations.extend_from_slice(observation);
                        self.samples.actions.push(*action);
                        self.samples.tuples.push(self.tuples[lane] as u8);
                    }
                }
                peer_actions.extend_from_slice(acted);
                peer_observations.extend_from_slice(seen);
                task_rewards.push(block.task_rewards[lane]);
                if block.boundaries[lane] != Boundary::WithinEpisode {
                    ended.push(lane);
                    terminal_observations
                        .extend_from_slice(&block.terminal_observations[lane * size..][..size]);
                }
            }
            self.samples.n_decisions += active.len() as u64;
            self.room.take_in(&Decisions {
                observations: &observations,
                ego_actions: &ego_actions,
                peer_actions: &peer_actions,
                peer_observations: &peer_observations,
                task_rewards: &task_rewards,
            });
            for (place, lane) in active.iter().enumerate() {
                self.room.store(place, &mut self.memories[*lane]);
            }
            if !ended.is_empty() {
                self.room.clear();
                ended.iter().for_each(|lane| self.room.load(&self.memories[*lane]));
                self.room.end_episodes(&terminal_observations);
                for (place, lane) in ended.iter().enumerate() {
                    self.room.store(place, &mut self.memories[*lane]);
                }
            }
        }
    }
}
