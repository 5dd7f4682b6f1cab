//! What training peers saw and did while a policy played with them: the first stage learns from it.

use std::ops::Range;

use pace_games::{Action, AnyGame, ConfigError, NO_ACTION, PeerObservationMode, Seed, Split};

use crate::network::{Actor, NetworkDims};
use crate::policy::Policy;
use crate::policy_runner::PolicyRunner;
use crate::rollout::cut_encounters;

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

/// The encounters that one shard samples from.
pub(crate) struct PeerSampler {
    runner: PolicyRunner<Policy>,
    ego: Policy,
    /// The encounters of this shard by number, and the training tuple of each.
    encounters: Range<usize>,
    tuples: Vec<usize>,
    pub(crate) samples: PeerSamples,
    /// Why the samples are not whole.
    pub(crate) failure: Option<ConfigError>,
}

impl PeerSampler {
    /// Cuts `per_tuple` encounters with each of these tuples into shards of nearly equal size.
    pub(crate) fn split(
        game: &dyn AnyGame,
        ego: &Policy,
        tuples_met: &[usize],
        per_tuple: usize,
        n_shards: usize,
    ) -> Vec<PeerSampler> {
        let recorded = PeerObservationMode::Recorded;
        cut_encounters(tuples_met, per_tuple, n_shards)
            .map(|(encounters, tuples)| PeerSampler {
                runner: PolicyRunner::new(game, Split::Train, tuples.len(), ego, None, recorded),
                ego: ego.clone(),
                encounters,
                tuples,
                samples: PeerSamples::default(),
                failure: None,
            })
            .collect()
    }

    /// Plays every encounter of the shard to its end. An ego whose output is not a distribution over actions is refused.
    pub(crate) fn collect(&mut self, n_episodes: usize, seed: Seed) -> Result<(), ConfigError> {
        let PeerSampler { runner, ego, tuples, samples, .. } = self;
        samples.clear();
        for (lane, number) in self.encounters.clone().enumerate() {
            let seed = seed.child("encounter", &[number as u64]);
            runner.begin(ego, lane, tuples[lane], n_episodes, seed);
        }
        let NetworkDims { observation: size, n_peers, .. } = ego.spec().sizes;
        while runner.select_actions(ego)? {
            runner.step(ego);
            samples.n_decisions += runner.active().len() as u64;
            let observations = runner.peer_observations().chunks_exact(size);
            for (row, (action, observation)) in runner.peer_actions().iter().zip(observations).enumerate() {
                if *action != NO_ACTION {
                    samples.observations.extend_from_slice(observation);
                    samples.actions.push(*action);
                    samples.tuples.push(tuples[runner.active()[row / n_peers]] as u8);
                }
            }
        }
        Ok(())
    }
}
