//! What differs between methods; the rest is shared: Algorithm 1 in `ppo`, play in `crew`, adaptation in `adapt`.

mod pace;
#[cfg(test)]
mod pace_tests;

#[cfg(test)]
pub(crate) use pace::PaceNet;

use pace_games::{AnyGame, GameError, GameSpec, PoolListing};
use pace_nn::ParameterError;

use crate::agent::{Agent, Trained};
use crate::config::TrainConfig;
use crate::network::Network;
use crate::ppo::Ppo;
use crate::train::Training;
use crate::workbench::{AnyBench, UpdateBench, WorkShape};

/// Every method that can be trained, in the column order of every table.
pub const METHODS: &[Method] = &[pace::PACE, pace::PACE_REWARD, pace::PACE_REWARD_AUX];

/// The method with this id.
pub fn find_method(id: &str) -> Result<&'static Method, GameError> {
    METHODS
        .iter()
        .find(|method| method.id == id)
        .ok_or_else(|| GameError::unknown("method", id, METHODS.iter().map(|method| method.id)))
}

/// A way to train: a network, and the keys that make the method what it is.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The id on the command line and in records.
    pub id: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    adjust: fn(&mut TrainConfig),
    begin: Begin,
    load: Load,
    bench: fn(&WorkShape, TrainConfig) -> Box<dyn AnyBench>,
}

type Begin = fn(&dyn AnyGame, &PoolListing, &TrainConfig, u64, usize) -> Result<Box<dyn Training>, GameError>;
type Load = fn(&GameSpec, &PoolListing, &TrainConfig, &[u8]) -> Result<Agent, ParameterError>;

impl Method {
    /// A method trained with PPO over encounters.
    const fn of<N: Network>(id: &'static str, summary: &'static str, adjust: fn(&mut TrainConfig)) -> Method {
        Method {
            id,
            summary,
            adjust,
            begin: |game, pool, config, seed, n_threads| {
                Ok(Box::new(Ppo::<N>::new(game, pool, config, seed, n_threads)?))
            },
            load: |spec, pool, config, model| {
                let net = N::new(spec, pool, config);
                let parameters = net.layout().from_bytes(model)?;
                Ok(Agent::new(Trained { net, parameters }))
            },
            bench: |shape, config| Box::new(UpdateBench::<N>::new(shape, config)),
        }
    }

    /// Sets the keys that make the method what it is.
    pub fn adjust(&self, config: &mut TrainConfig) {
        (self.adjust)(config);
    }

    pub(crate) fn begin(
        &self,
        game: &dyn AnyGame,
        pool: &PoolListing,
        config: &TrainConfig,
        seed: u64,
        n_threads: usize,
    ) -> Result<Box<dyn Training>, GameError> {
        (self.begin)(game, pool, config, seed, n_threads)
    }

    pub(crate) fn load(
        &self,
        spec: &GameSpec,
        pool: &PoolListing,
        config: &TrainConfig,
        model: &[u8],
    ) -> Result<Agent, ParameterError> {
        (self.load)(spec, pool, config, model)
    }

    pub(crate) fn bench(&self, shape: &WorkShape, config: TrainConfig) -> Box<dyn AnyBench> {
        (self.bench)(shape, config)
    }
}
