//! GSCU differs from `pace.rs` in: a first stage that learns an embedding of the training peers, a policy conditioned on it, and in
//! play a belief about the embedding of the current peers, with a bandit that can fall back on a conservative policy
//! (`docs/methods/gscu.md`).
//!
//! This file combines the two stages of a run. `embedding_stage` is the first; the second is PPO on the network in `conditional`.

mod bandit;
mod belief;
mod conditional;
mod embedding;
mod embedding_stage;
mod keys;
mod online;
mod samples;
#[cfg(test)]
mod tests;
mod window;

pub use keys::{
    ActionLabels, Advantages, Bandit, BeliefDivergence, BeliefLoss, BeliefRows, BeliefUpdates,
    ConservativeMemory, EmbeddingEgo, GradientClipping, GscuConfig, HiddenActivation, LatentSampling,
    PolicyNetwork, ValueHead,
};

use std::sync::Arc;

use pace_games::{ConfigError, PoolListing, Stream};

use super::{Constructors, Method, MethodInputs, Need, check_baseline, load};
use crate::agent::Agent;
use crate::config::{MinibatchUnit, TrainConfig};
use crate::learner::Learner;
use crate::network::{Actor, Network};
use crate::policy::Policy;
use crate::ppo::Ppo;
use crate::train::{
    IterationContext, IterationResult, NamedBytes, TrainError, TrainingAlgorithm, read_weights, weight_files,
};
pub(crate) use conditional::GscuNet;
use embedding_stage::EmbeddingStage;

/// The method.
pub(crate) const GSCU: Method = Method {
    id: "gscu",
    summary: "peer embedding, conditional policy, online belief and a conservative fallback",
    adjust: keys::adjust,
    need: |config| {
        let run = config.gscu.as_ref()?.conservative_run()?;
        Some(Need { key: CONSERVATIVE_RUN, run, method: "generalist" })
    },
    constructors: |_| Constructors {
        begin: |inputs, seed, n_threads| Ok(Box::new(Gscu::new(inputs, seed, n_threads)?)),
        load: |inputs, model| load(GscuNet::of(inputs)?, model),
        ..Constructors::of::<GscuNet>()
    },
};

/// The key for the run of the conservative policy.
const CONSERVATIVE_RUN: &str = "gscu.conservative_run";

/// A run of both stages.
struct Gscu {
    embedding: EmbeddingStage,
    /// The second stage. Its weights include those of the embedding.
    ppo: Ppo<GscuNet>,
}

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Embedding,
    Conditional,
}

impl Gscu {
    fn new(inputs: &MethodInputs<'_>, seed: u64, n_threads: usize) -> Result<Gscu, ConfigError> {
        let MethodInputs { game, pool, config, .. } = *inputs;
        let net = GscuNet::of(inputs)?;
        let keys = keys_of(config);
        let ego = match (keys.embedding_ego, &net.conservative) {
            (EmbeddingEgo::Conservative, Some(policy)) => policy.clone(),
            (EmbeddingEgo::Conservative, None) => conservative_policy(inputs)?,
            (EmbeddingEgo::Random, _) => Policy::scripted(game, "random")?,
        };
        let ppo = Ppo::with_net(net, game, pool, config, seed, n_threads)?;
        let net = &ppo.learner.net;
        let weights = net.weights()[net.embedding_start()..].to_vec();
        let tuples = config.training_tuples(pool.tuples.len())?;
        let embedding = EmbeddingStage::new(game, &net.embedding, weights, config, &tuples, &ego, n_threads);
        Ok(Gscu { embedding, ppo })
    }

    /// The stage of an iteration. The first stage ends when another chunk of the mean size would exceed its budget.
    fn stage(&self, at: &IterationContext<'_>) -> Stage {
        let has_begun = self.ppo.learner.adam.n_steps.iter().any(|n_steps| *n_steps > 0);
        let mean_steps = at.steps.checked_div(at.iteration).unwrap_or(0);
        let is_spent = at.iteration > 0 && at.steps + mean_steps > keys_of(at.config).embedding_steps;
        if has_begun || is_spent { Stage::Conditional } else { Stage::Embedding }
    }

    /// Copies the current embedding to the network of the second stage, and thus to the agent.
    fn share_embedding(&mut self) {
        let net = &mut self.ppo.learner.net;
        let start = net.embedding_start();
        net.weights_mut()[start..].copy_from_slice(&self.embedding.parameters);
        net.tuples = Arc::new(self.embedding.distributions().to_vec());
    }
}

impl TrainingAlgorithm for Gscu {
    fn n_parameters(&self) -> usize {
        self.ppo.n_parameters()
    }

    fn set_threads(&mut self, n_threads: usize) {
        self.embedding.set_threads(n_threads);
        self.ppo.set_threads(n_threads);
    }

    fn roll_out(&mut self, at: &IterationContext<'_>) -> Result<usize, TrainError> {
        match self.stage(at) {
            Stage::Embedding => Ok(self.embedding.collect_samples(at)? as usize),
            Stage::Conditional => {
                self.share_embedding();
                self.ppo.roll_out(at)
            }
        }
    }

    fn iterate(
        &mut self,
        at: &IterationContext<'_>,
        rolled_out: &mut dyn FnMut(),
    ) -> Result<IterationResult, TrainError> {
        match self.stage(at) {
            Stage::Embedding => {
                self.embedding.collect_samples(at)?;
                rolled_out();
                let result = self.embedding.learn(at, keys_of(at.config))?;
                self.share_embedding();
                Ok(result)
            }
            Stage::Conditional => {
                self.share_embedding();
                let mut result = self.ppo.iterate(at, rolled_out)?;
                // In encounters of one episode there is no adaptation to measure.
                result.metrics.retain(|name, _| !name.starts_with("adapt/"));
                Ok(result)
            }
        }
    }

    fn save(&self) -> (Vec<NamedBytes>, Vec<u64>) {
        let Learner { net, adam, .. } = &self.ppo.learner;
        let own = &self.embedding.adam;
        let first_moment = [&adam.first_moment[..], &own.first_moment].concat();
        let second_moment = [&adam.second_moment[..], &own.second_moment].concat();
        let files = weight_files(&net.spec().layout, [net.weights(), &first_moment, &second_moment]);
        (files, [&adam.n_steps[..], &own.n_steps].concat())
    }

    fn restore(
        &mut self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, TrainError>,
        adam_steps: Vec<u64>,
    ) -> Result<(), TrainError> {
        let Learner { net, adam, .. } = &mut self.ppo.learner;
        let (layout, start, own) = (&net.spec().layout, net.embedding_start(), &mut self.embedding);
        let (n_groups, n_own) = (adam.n_steps.len(), own.adam.n_steps.len());
        let [weights, first, second] = read_weights(layout, read, &adam_steps, n_groups + n_own)?;
        own.parameters.copy_from_slice(&weights[start..]);
        *net.weights_mut() = weights;
        for (moments, policy, embedding) in [
            (first, &mut adam.first_moment, &mut own.adam.first_moment),
            (second, &mut adam.second_moment, &mut own.adam.second_moment),
        ] {
            policy.copy_from_slice(&moments[..start]);
            embedding.copy_from_slice(&moments[start..]);
        }
        adam.n_steps.copy_from_slice(&adam_steps[..n_groups]);
        own.adam.n_steps.copy_from_slice(&adam_steps[n_groups..]);
        self.share_embedding();
        Ok(())
    }

    fn agent(&self) -> Agent {
        self.ppo.agent()
    }
}

impl GscuNet {
    /// The network, with its conservative policy if the keys ask for one.
    fn of(inputs: &MethodInputs<'_>) -> Result<GscuNet, ConfigError> {
        check(inputs.config, inputs.pool)?;
        let mut net = GscuNet::new(inputs.game.spec(), inputs.pool, inputs.config);
        if net.keys.bandit != Bandit::Greedy {
            net.conservative = Some(conservative_policy(inputs)?);
        }
        Ok(net)
    }
}

/// The conservative policy that the keys name: a scripted ego of the game, or the policy of the run that the caller loaded.
fn conservative_policy(inputs: &MethodInputs<'_>) -> Result<Policy, ConfigError> {
    let policy = named_policy(inputs)?;
    Ok(match keys_of(inputs.config).conservative_memory {
        ConservativeMemory::Encounter => policy,
        ConservativeMemory::Episode => policy.forgetting_episodes(),
    })
}

fn named_policy(inputs: &MethodInputs<'_>) -> Result<Policy, ConfigError> {
    let MethodInputs { game, config, .. } = *inputs;
    let keys = keys_of(config);
    let Some(folder) = keys.conservative_run() else {
        return Policy::scripted(game, &keys.conservative);
    };
    let shape = (game.spec().observation_size, game.spec().n_actions());
    let fits = inputs.needed.filter(|policy| policy.shape() == shape);
    fits.cloned().ok_or_else(|| {
        let expected = "the folder of a trained run of this game, for example one of `--method generalist`; \
                        or set `gscu.conservative` to a scripted ego such as \"random\"";
        ConfigError::bad_value(CONSERVATIVE_RUN, &format!("\"{folder}\""), expected)
    })
}

/// The keys of GSCU.
fn keys_of(config: &TrainConfig) -> &GscuConfig {
    config.gscu.as_ref().expect("checked when the run or the agent was made")
}

/// Refuses keys that GSCU does not support.
fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), ConfigError> {
    let Some(keys) = &config.gscu else {
        return Err(ConfigError::bad_value("gscu", &"nothing", "the keys of this method"));
    };
    check_baseline(config, &[MinibatchUnit::Steps, MinibatchUnit::Encounters, MinibatchUnit::Balanced])?;
    if config.rollout_steps != 0 {
        let expected = "0: this method learns from whole episodes";
        return Err(ConfigError::bad_value("rollout_steps", &config.rollout_steps, expected));
    }
    let n_peers = pool.n_classes.len();
    if let Some(slot) = keys.belief_slots.iter().find(|slot| **slot >= n_peers) {
        let expected = format!("numbers from 0 to {}, or [] for all peers", n_peers - 1);
        return Err(ConfigError::bad_value("gscu.belief_slots", slot, &expected));
    }
    // The index of a tuple is a one-byte class, of which one value stands for no class.
    let n_tuples = pool.tuples.len();
    if n_tuples > usize::from(u8::MAX) {
        let expected = "a pool of at most 255 training tuples";
        return Err(ConfigError::bad_value("gscu", &format!("{n_tuples} training tuples"), expected));
    }
    Ok(())
}

/// Samples standard normal numbers, in pairs, with the Box–Muller transform.
fn fill_normal(rng: &mut Stream, values: &mut [f32]) {
    for pair in values.chunks_mut(2) {
        let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * rng.unit()).sin_cos();
        for (value, direction) in pair.iter_mut().zip([cosine, sine]) {
            *value = (radius * direction) as f32;
        }
    }
}
