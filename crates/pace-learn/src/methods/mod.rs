//! The methods: one file each, and the list of all. The shared parts are elsewhere: Algorithm 1 in `ppo`, play in
//! `policy_runner`, adaptation in `adapt`.

mod generalist;
mod gscu;
mod liam;
mod lili;
mod pace;
mod recurrent;

#[cfg(test)]
mod baseline_tests;
#[cfg(test)]
mod pace_tests;
#[cfg(test)]
mod recorded;

pub use gscu::{
    ActionLabels, Advantages, Bandit, BeliefDivergence, BeliefLoss, BeliefRows, BeliefUpdates,
    ConservativeMemory, EmbeddingEgo, GradientClipping, GscuConfig, HiddenActivation, LatentSampling,
    PolicyNetwork, ValueHead,
};
#[cfg(test)]
pub(crate) use pace::PaceNet;
#[cfg(test)]
pub(crate) use {gscu::GscuNet, lili::LiliNet, recurrent::RecurrentNet};

use pace_games::{AnyGame, ConfigError, PoolListing};

use crate::agent::Agent;
use crate::config::{MinibatchUnit, TrainConfig};
use crate::network::Network;
use crate::policy::Policy;
use crate::ppo::Ppo;
use crate::train::{TrainError, TrainingAlgorithm};
use crate::update_benchmark::{AnyBench, BatchShape, UpdateBench};

/// Every method that can be trained, in the column order of every table.
pub const METHODS: &[Method] = &[
    pace::PACE,
    pace::PACE_REWARD,
    pace::PACE_REWARD_AUX,
    pace::PACE_TF,
    generalist::GENERALIST,
    liam::LIAM,
    liam::LIAMX,
    lili::LILI,
    gscu::GSCU,
];

/// The method with this id.
pub fn find_method(id: &str) -> Result<&'static Method, ConfigError> {
    METHODS
        .iter()
        .find(|method| method.id == id)
        .ok_or_else(|| ConfigError::unknown("method", id, METHODS.iter().map(|method| method.id)))
}

/// Sets the keys of a method without an identifier: no exploration reward, no warm-up, no canonical frame.
fn baseline(config: &mut TrainConfig) {
    config.exploration_weight = 0.0;
    config.warm_up_steps = 0;
    config.canonical_frame = false;
}

/// Refuses keys that a method without an identifier does not support, and mini-batches other than the given ones.
fn check_baseline(config: &TrainConfig, minibatches: &[MinibatchUnit]) -> Result<(), ConfigError> {
    let expected = "0: this method has no identifier";
    if config.exploration_weight != 0.0 {
        return Err(ConfigError::bad_value("exploration_weight", &config.exploration_weight, expected));
    }
    if config.warm_up_steps != 0 {
        return Err(ConfigError::bad_value("warm_up_steps", &config.warm_up_steps, expected));
    }
    if config.canonical_frame {
        return Err(ConfigError::bad_value("canonical_frame", &true, "false: only PACE supports it"));
    }
    check_minibatch(config, minibatches)
}

/// Refuses mini-batches other than the given ones.
fn check_minibatch(config: &TrainConfig, known: &[MinibatchUnit]) -> Result<(), ConfigError> {
    if config.minibatch_unit == MinibatchUnit::Chunks && config.minibatches_per_encounter != 1 {
        let expected = "1: a chunk is never divided";
        return Err(ConfigError::bad_value(
            "minibatches_per_encounter",
            &config.minibatches_per_encounter,
            expected,
        ));
    }
    if known.contains(&config.minibatch_unit) {
        return Ok(());
    }
    let names: Vec<String> = known.iter().map(|minibatch| format!("\"{}\"", minibatch.name())).collect();
    let expected = format!("{} for this method", names.join(" or "));
    Err(ConfigError::bad_value("minibatch_unit", &config.minibatch_unit.name(), &expected))
}

/// A training method: its network, its training algorithm and its keys.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The id on the command line and in records.
    pub id: &'static str,
    /// One-line description.
    pub summary: &'static str,
    adjust: fn(&mut TrainConfig),
    need: for<'a> fn(&'a TrainConfig) -> Option<Need<'a>>,
    /// The constructors for a network with these keys.
    constructors: fn(&TrainConfig) -> Constructors,
}

/// Functions that make a run, an agent and a benchmark.
#[derive(Clone, Copy)]
struct Constructors {
    begin: Begin,
    load: Load,
    bench: fn(&BatchShape, TrainConfig) -> Box<dyn AnyBench>,
}

/// A trained run whose agent becomes a part of another run's agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need<'a> {
    /// The key that names the folder of the run.
    pub key: &'static str,
    /// The value of that key; empty if it is not set.
    pub run: &'a str,
    /// The method of the run that experiments use.
    pub method: &'static str,
}

type Begin = fn(&MethodInputs<'_>, u64, usize) -> Result<Box<dyn TrainingAlgorithm>, ConfigError>;
type Load = fn(&MethodInputs<'_>, &[u8]) -> Result<Agent, TrainError>;

/// The inputs for making a run or an agent of a method.
#[derive(Clone, Copy)]
pub(crate) struct MethodInputs<'a> {
    pub(crate) game: &'a dyn AnyGame,
    /// The game's training pool.
    pub(crate) pool: &'a PoolListing,
    pub(crate) config: &'a TrainConfig,
    /// The policy of the run that [`Method::need`] names.
    pub(crate) needed: Option<&'a Policy>,
}

/// Makes the agent of a network with the weights that a run saved.
fn load<N: Network>(mut net: N, model: &[u8]) -> Result<Agent, TrainError> {
    *net.weights_mut() = net.spec().layout.from_bytes(model)?;
    Ok(Agent::new(net))
}

impl Constructors {
    /// The constructors for a network that is trained with PPO.
    fn of<N: Network>() -> Constructors {
        Constructors {
            begin: |inputs, seed, n_threads| {
                let MethodInputs { game, pool, config, .. } = *inputs;
                Ok(Box::new(Ppo::<N>::new(game, pool, config, seed, n_threads)?))
            },
            load: |inputs, model| load(N::new(inputs.game.spec(), inputs.pool, inputs.config), model),
            bench: |shape, config| Box::new(UpdateBench::<N>::new(shape, config)),
        }
    }
}

impl Method {
    /// A method with this network, trained with PPO.
    const fn of<N: Network>(id: &'static str, summary: &'static str, adjust: fn(&mut TrainConfig)) -> Method {
        Method { id, summary, adjust, need: |_| None, constructors: |_| Constructors::of::<N>() }
    }

    /// Sets the keys that define the method.
    pub(crate) fn adjust(&self, config: &mut TrainConfig) {
        (self.adjust)(config);
    }

    /// The run that a run with these keys needs, if any.
    pub fn need<'a>(&self, config: &'a TrainConfig) -> Option<Need<'a>> {
        (self.need)(config)
    }

    pub(crate) fn begin(
        &self,
        inputs: &MethodInputs<'_>,
        seed: u64,
        n_threads: usize,
    ) -> Result<Box<dyn TrainingAlgorithm>, ConfigError> {
        ((self.constructors)(inputs.config).begin)(inputs, seed, n_threads)
    }

    pub(crate) fn load(&self, inputs: &MethodInputs<'_>, model: &[u8]) -> Result<Agent, TrainError> {
        ((self.constructors)(inputs.config).load)(inputs, model)
    }

    pub(crate) fn bench(&self, shape: &BatchShape, config: TrainConfig) -> Box<dyn AnyBench> {
        ((self.constructors)(&config).bench)(shape, config)
    }
}
