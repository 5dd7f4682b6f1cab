//! One update on made-up encounters, and its matrix products alone: pieces of work for a caller with a clock to time.
//!
//! Rollouts are timed on the real thing, `Trainer::roll_out`.

use pace_games::{Action, GameSpec, Metric, Nouns, Seed, Stream};
use pace_nn::loss::PolicyLoss;
use pace_nn::product::{ProductKind, ProductShape};
use pace_nn::threads::for_each_shard_with;

use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::gae::estimate_advantages;
use crate::learner::Learner;
use crate::methods::{LossWeights, PaceNet};

/// The shape of a mini-batch: all the speed of an update depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkShape {
    /// Numbers in an observation.
    pub observation_size: usize,
    /// Actions of the ego, at most eight.
    pub n_actions: usize,
    /// Classes of each peer.
    pub n_classes: Vec<usize>,
    /// Encounters in the mini-batch.
    pub n_encounters: usize,
    /// Decisions of each episode of an encounter.
    pub episode_lengths: Vec<u32>,
}

/// A network and one mini-batch to update it on.
pub struct Workbench {
    learner: Learner,
    config: TrainConfig,
    batch: Batch,
    encounters: Vec<u32>,
    classes: Vec<Vec<usize>>,
    buffers: Vec<[Vec<f32>; 3]>,
}

impl Workbench {
    /// Random observations, actions and rewards in a batch of this shape, for a network with these keys.
    pub fn synthetic(shape: &WorkShape, config: TrainConfig) -> Workbench {
        const ACTION_NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let spec = GameSpec {
            id: "synthetic",
            title: "synthetic",
            revision: 1,
            observation_size: shape.observation_size,
            action_names: &ACTION_NAMES[..shape.n_actions],
            peer_roles: vec!["peer"; shape.n_classes.len()],
            episodes_per_encounter: shape.episode_lengths.len(),
            horizon_steps: shape.episode_lengths.iter().copied().max().unwrap_or(1) as usize,
            metric: Metric::Return,
            keypoint: "",
            nouns: Nouns { episode: "", episodes: "", score: "", keypoint: "" },
        };
        let net = PaceNet::new(&spec, &shape.n_classes, &config);
        let seed = Seed::new(1);
        let mut rng = seed.stream("workbench");
        let mut batch = Batch::default();
        let mut classes = Vec::new();
        for encounter in 0..shape.n_encounters {
            batch.open_encounter(encounter as u32);
            add_encounter(&mut batch, shape, &mut rng);
            classes.push(shape.n_classes.iter().map(|n| rng.below(*n as u32) as usize).collect());
        }
        estimate_advantages(&mut batch, 0.0, config.discount as f32, config.gae_lambda as f32);
        Workbench {
            learner: Learner::new(net, &config, seed, 1),
            config,
            batch,
            encounters: (0..shape.n_encounters as u32).collect(),
            classes,
            buffers: Vec::new(),
        }
    }

    /// Sets the number of threads.
    pub fn set_threads(&mut self, n_threads: usize) {
        self.learner.set_threads(n_threads);
    }

    /// Decisions in the mini-batch.
    pub fn n_decisions(&self) -> usize {
        self.batch.n_decisions()
    }

    /// One gradient step: forward, backward, sum over shards, clip, Adam.
    pub fn update(&mut self) {
        let config = &self.config;
        let weights = LossWeights {
            per_row: 1.0 / self.batch.n_decisions() as f32,
            auxiliary: config.auxiliary_weight as f32,
            value: config.value_weight as f32,
            value_clip: config.value_clip as f32,
            policy: Some(PolicyLoss {
                clip: config.clip as f32,
                entropy_weight: config.entropy_weight as f32,
            }),
        };
        self.learner.gradient(&self.batch, &self.encounters, None, &self.classes, weights);
        // A tiny step: however often it is timed, the network stays what it was.
        self.learner.step(2, 1e-7, config.gradient_clip as f32);
    }

    /// All weights, for telling whether two benches have done the same.
    pub fn weights(&self) -> &[f32] {
        &self.learner.parameters
    }

    /// The matrix products of one update and nothing else, shard by shard on the same number of threads; returns how many
    /// floating-point operations they are.
    pub fn run_products_alone(&mut self) -> f64 {
        let parts = self.learner.split(&self.encounters);
        let mut shards: Vec<Vec<ProductShape>> =
            parts.iter().map(|part| self.learner.net.products(&self.batch, part)).collect();
        let n_rooms = self.buffers.len().max(self.learner.n_threads());
        self.buffers.resize_with(n_rooms, Default::default);
        for_each_shard_with(
            &mut self.buffers[..self.learner.n_threads()],
            &mut shards,
            |buffers, _, products| {
                products.iter().for_each(|product| product.run(buffers));
            },
        );
        shards.iter().flatten().map(ProductShape::flops).sum()
    }

    /// One product of two large square matrices, the most the engine reaches on one thread; returns its operations.
    pub fn run_square_product(&mut self) -> f64 {
        const SIDE: usize = 768;
        self.buffers.resize_with(self.buffers.len().max(1), Default::default);
        let product = ProductShape { kind: ProductKind::Forward, m: SIDE, k: SIDE, n: SIDE };
        product.run(&mut self.buffers[0]);
        product.flops()
    }
}

fn add_encounter(batch: &mut Batch, shape: &WorkShape, rng: &mut Stream) {
    let n_decisions: u32 = shape.episode_lengths.iter().sum();
    let observe = |n: usize, rng: &mut Stream| -> Vec<f32> {
        (0..n * shape.observation_size).map(|_| rng.unit() as f32).collect()
    };
    batch.observations.extend(observe(n_decisions as usize, rng));
    batch.terminal_observations.extend(observe(shape.episode_lengths.len(), rng));
    batch.episode_lengths.extend(&shape.episode_lengths);
    for _ in 0..n_decisions {
        let action = rng.below(shape.n_actions as u32) as Action;
        batch.actions.push(action);
        batch.context_actions.push(action);
        batch.log_probabilities.push(-(shape.n_actions as f32).ln());
        batch.values.push(rng.unit() as f32);
        batch.task_rewards.push(rng.unit() as f32 - 0.5);
        batch.exploration_rewards.push(0.0);
    }
}
