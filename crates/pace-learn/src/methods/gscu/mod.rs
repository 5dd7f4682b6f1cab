//! GSCU differs from `pace.rs` in: a first stage that learns an embedding of the training peers, a policy conditioned on it, and
//! online a belief about the embedding of the peers that are met, with a bandit that falls back on a conservative policy
//! (`docs/methods/gscu.md`).
//!
//! It trains differently from the other methods, so it has a folder: the two stages of a run, one after the other, are put
//! together here.

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

pub use keys::{
    Advantages, Bandit, BeliefLoss, EmbeddingEgo, GradientClipping, GscuConfig, HiddenActivation,
};

use std::sync::Arc;

use pace_games::{ConfigError, PoolListing, Stream};

use super::{Method, MethodInputs, Need, check_baseline, load};
use crate::agent::Agent;
use crate::config::{MinibatchUnit, TrainConfig};
use crate::learner::Learner;
use crate::network::{Actor, Network};
use crate::policy::Policy;
use crate::ppo::{FIRST_MOMENT_FILE, Ppo, SECOND_MOMENT_FILE};
use crate::train::{IterationContext, IterationResult, MODEL_FILE, NamedBytes, TrainError, Training};
use crate::update_benchmark::UpdateBench;
pub(crate) use conditional::GscuNet;
use embedding_stage::EmbeddingStage;

/// The method.
pub(crate) const GSCU: Method = Method {
    id: "gscu",
    summary: "peer embedding, conditional policy, online belief and a conservative fallback",
    adjust: keys::adjust,
    need: |config| {
        let run = config.gscu.as_ref()?.conservative_run()?;
        Some(Need { key: CONSERVATIVE_RUN, run })
    },
    begin: |inputs, seed, n_threads| Ok(Box::new(Gscu::new(inputs, seed, n_threads)?)),
    load: |inputs, model| load(GscuNet::of(inputs)?, model),
    bench: |shape, config| Box::new(UpdateBench::<GscuNet>::new(shape, config)),
};

/// The key that names the run of the conservative policy.
const CONSERVATIVE_RUN: &str = "gscu.conservative_run";

/// A run of both stages.
struct Gscu {
    embedding: EmbeddingStage,
    /// The second stage; its weights are all there are, the embedding's among them.
    ppo: Ppo<GscuNet>,
}

/// What a run is doing.
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
        let tuples_met = config.training_tuples(pool.tuples.len())?;
        let embedding =
            EmbeddingStage::new(game, &net.embedding, weights, config, &tuples_met, &ego, n_threads);
        Ok(Gscu { embedding, ppo })
    }

    /// It follows from what was done: the first stage ends where another chunk of the usual size would exceed its budget, and
    /// the second does not end.
    fn stage(&self, at: &IterationContext<'_>) -> Stage {
        let has_begun = self.ppo.learner.adam.n_steps.iter().any(|n_steps| *n_steps > 0);
        let usual = at.steps.checked_div(at.iteration).unwrap_or(0);
        let is_spent = at.iteration > 0 && at.steps + usual > keys_of(at.config).embedding_steps;
        if has_begun || is_spent { Stage::Conditional } else { Stage::Embedding }
    }

    /// Makes the second stage, and whoever meets the agent, see the embedding as it is now.
    fn share_embedding(&mut self) {
        let net = &mut self.ppo.learner.net;
        let start = net.embedding_start();
        net.weights_mut()[start..].copy_from_slice(&self.embedding.parameters);
        net.tuples = Arc::new(self.embedding.distributions().to_vec());
    }
}

impl Training for Gscu {
    fn n_parameters(&self) -> usize {
        self.ppo.n_parameters()
    }

    fn set_threads(&mut self, n_threads: usize) {
        self.embedding.set_threads(n_threads);
        self.ppo.set_threads(n_threads);
    }

    fn roll_out(&mut self, at: &IterationContext<'_>) -> Result<usize, TrainError> {
        match self.stage(at) {
            Stage::Embedding => Ok(self.embedding.watch(at)? as usize),
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
                self.embedding.watch(at)?;
                rolled_out();
                let iterated = self.embedding.learn(at, keys_of(at.config))?;
                self.share_embedding();
                Ok(iterated)
            }
            Stage::Conditional => {
                self.share_embedding();
                let mut iterated = self.ppo.iterate(at, rolled_out)?;
                // An encounter of one episode shows no adaptation.
                iterated.metrics.retain(|name, _| !name.starts_with("adapt/"));
                Ok(iterated)
            }
        }
    }

    fn save(&self) -> (Vec<NamedBytes>, Vec<u64>) {
        let Learner { net, adam, .. } = &self.ppo.learner;
        let (layout, own) = (&net.spec().layout, &self.embedding.adam);
        let files = vec![
            (MODEL_FILE, layout.to_bytes(net.weights())),
            (FIRST_MOMENT_FILE, layout.to_bytes(&[&adam.first_moment[..], &own.first_moment].concat())),
            (SECOND_MOMENT_FILE, layout.to_bytes(&[&adam.second_moment[..], &own.second_moment].concat())),
        ];
        (files, [&adam.n_steps[..], &own.n_steps].concat())
    }

    fn restore(
        &mut self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, TrainError>,
        adam_steps: Vec<u64>,
    ) -> Result<(), TrainError> {
        let Learner { net, adam, .. } = &mut self.ppo.learner;
        let (layout, start) = (&net.spec().layout, net.embedding_start());
        let saved = layout.from_bytes(&read(MODEL_FILE)?)?;
        let first = layout.from_bytes(&read(FIRST_MOMENT_FILE)?)?;
        let second = layout.from_bytes(&read(SECOND_MOMENT_FILE)?)?;
        let own = &mut self.embedding;
        let n_groups = adam.n_steps.len();
        let n_expected = n_groups + own.adam.n_steps.len();
        if adam_steps.len() != n_expected {
            let found = adam_steps.len();
            let reason = format!("the number of weight groups is {found}, this run has {n_expected}");
            return Err(TrainError::State { reason });
        }
        own.parameters.copy_from_slice(&saved[start..]);
        *net.weights_mut() = saved;
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
    /// The network with the conservative policy it may fall back on.
    fn of(inputs: &MethodInputs<'_>) -> Result<GscuNet, ConfigError> {
        check(inputs.config, inputs.pool)?;
        let mut net = GscuNet::new(inputs.game.spec(), inputs.pool, inputs.config);
        if net.keys.bandit != Bandit::Greedy {
            net.conservative = Some(conservative_policy(inputs)?);
        }
        Ok(net)
    }
}

/// The conservative policy that the keys name: a scripted ego of the game, or what the caller brought.
fn conservative_policy(inputs: &MethodInputs<'_>) -> Result<Policy, ConfigError> {
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

/// The keys of GSCU, which every config of the method has.
fn keys_of(config: &TrainConfig) -> &GscuConfig {
    config.gscu.as_ref().expect("checked when the run or the agent was made")
}

/// Refuses keys that GSCU cannot follow.
fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), ConfigError> {
    let Some(keys) = &config.gscu else {
        return Err(ConfigError::bad_value("gscu", &"nothing", "the keys of this method"));
    };
    check_baseline(config, &[MinibatchUnit::Steps, MinibatchUnit::Encounters, MinibatchUnit::Balanced])?;
    let n_peers = pool.n_classes.len();
    if let Some(slot) = keys.belief_slots.iter().find(|slot| **slot >= n_peers) {
        let expected = format!("numbers from 0 to {}, or [] for all peers", n_peers - 1);
        return Err(ConfigError::bad_value("gscu.belief_slots", slot, &expected));
    }
    // Tuples are classes of one byte, and one value of it means none.
    let n_tuples = pool.tuples.len();
    if n_tuples > usize::from(u8::MAX) {
        let expected = "a pool of at most 255 training tuples";
        return Err(ConfigError::bad_value("gscu", &format!("{n_tuples} training tuples"), expected));
    }
    Ok(())
}

/// Standard normal numbers, in pairs by Box and Muller.
fn fill_normal(rng: &mut Stream, values: &mut [f32]) {
    for pair in values.chunks_mut(2) {
        let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * rng.unit()).sin_cos();
        for (value, direction) in pair.iter_mut().zip([cosine, sine]) {
            *value = (radius * direction) as f32;
        }
    }
}
