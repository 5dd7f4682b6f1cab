//! Samples of the training peers' observations and actions, from encounters with a policy.

use std::ops::Range;

use pace_games::{Action, AnyGame, ConfigError, NO_ACTION, PeerObservationMode, Seed, Split};

use crate::network::{Actor, NetworkDims};
use crate::policy::Policy;
use crate::policy_runner::PolicyRunner;
use crate::rollout::cut_encounters;

/// Samples, one row per decision of a peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PeerSamples {
    pub(crate) observations: Vec<f32>,
    pub(crate) actions: Vec<Action>,
    /// The training tuple of the peer.
    pub(crate) tuples: Vec<u8>,
    /// Number of ego decisions in the same encounters.
    pub(crate) n_decisions: u64,
}

impl PeerSamples {
    pub(crate) fn len(&self) -> usize {
        self.actions.len()
    }

    /// Removes all samples and keeps the allocated memory.
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

/// The encounters of one shard, and the samples from them.
pub(crate) struct PeerSampler {
    runner: PolicyRunner<Policy>,
    ego: Policy,
    /// The numbers of this shard's encounters, and the training tuple of each.
    encounters: Range<usize>,
    tuples: Vec<usize>,
    pub(crate) samples: PeerSamples,
    /// The error that interrupted the shard.
    pub(crate) failure: Option<ConfigError>,
}

impl PeerSampler {
    /// Distributes `per_tuple` encounters with each of these tuples over shards of nearly equal size.
    pub(crate) fn split(
        game: &dyn AnyGame,
        ego: &Policy,
        training_tuples: &[usize],
        per_tuple: usize,
        n_shards: usize,
    ) -> Vec<PeerSampler> {
        let recorded = PeerObservationMode::Recorded;
        cut_encounters(training_tuples, per_tuple, n_shards)
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

    /// Plays every encounter of the shard to its end. Returns an error if the ego's output is not a distribution over actions.
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
