//! One gradient step: the weights, their optimiser, and the shards that make up a gradient.
//!
//! Which decisions a step is made of, and how many steps there are, is in `train`.

use pace_games::Seed;
use pace_nn::threads::{SLICE, for_each_shard, for_each_shard_with};
use pace_nn::{Adam, AdamConfig, kernels};

use crate::batch::Batch;
use crate::config::TrainConfig;
use crate::methods::{ChunkRows, LossWeights, PaceNet, UpdateJob, UpdateShard, UpdateSums};

/// The weights and all that changes them.
pub(crate) struct Learner {
    pub(crate) net: PaceNet,
    pub(crate) parameters: Vec<f32>,
    pub(crate) adam: Adam,
    /// One per thread.
    rooms: Vec<ChunkRows>,
    shards: Vec<UpdateShard>,
    gradients: Vec<f32>,
    /// The weights as the way back needs them.
    transposed: Vec<f32>,
}

impl Learner {
    pub(crate) fn new(net: PaceNet, config: &TrainConfig, seed: Seed, n_threads: usize) -> Learner {
        let parameters = net.initialise(seed.child("initialise", &[]));
        let n = parameters.len();
        let adam = AdamConfig { decay: [0.9, 0.999], epsilon: config.adam_epsilon as f32 };
        let groups = [net.n_warm_up_parameters(), n];
        Learner {
            net,
            parameters,
            adam: Adam::new(adam, &groups),
            rooms: (0..n_threads.max(1)).map(|_| ChunkRows::default()).collect(),
            shards: (0..config.shards).map(|_| UpdateShard::new(n)).collect(),
            gradients: vec![0.0; n],
            transposed: vec![0.0; n],
        }
    }

    pub(crate) fn set_threads(&mut self, n_threads: usize) {
        self.rooms.resize_with(n_threads.max(1), ChunkRows::default);
    }

    pub(crate) fn n_threads(&self) -> usize {
        self.rooms.len()
    }

    /// The encounters of each shard, nearly equally many. The larger shards come first: threads take shards in order, and
    /// what is taken last should be small, so that no thread waits long for another.
    pub(crate) fn split<'a>(&self, mut encounters: &'a [u32]) -> Vec<&'a [u32]> {
        let (n, n_shards) = (encounters.len(), self.shards.len());
        (0..n_shards)
            .map(|shard| {
                let (part, rest) = encounters.split_at(n / n_shards + usize::from(shard < n % n_shards));
                encounters = rest;
                part
            })
            .collect()
    }

    /// The gradient of one mini-batch. Encounters are cut into the fixed shards; the shards' gradients are added up in
    /// their order, whichever thread made them.
    pub(crate) fn gradient(
        &mut self,
        batch: &Batch,
        encounters: &[u32],
        selection: Option<(&[u32], u32)>,
        classes: &[Vec<usize>],
        weights: LossWeights,
    ) -> UpdateSums {
        let parts = self.split(encounters);
        let (net, parameters) = (&self.net, &self.parameters);
        net.transpose(parameters, &mut self.transposed);
        let transposed = &self.transposed;
        for_each_shard_with(&mut self.rooms, &mut self.shards, |rows, index, shard| {
            let job = UpdateJob { batch, encounters: parts[index], selection, classes, weights };
            shard.gradients.fill(0.0);
            shard.sums = UpdateSums::default();
            net.accumulate(parameters, transposed, &job, rows, shard);
        });
        let n_threads = self.n_threads();
        let parts: Vec<&[f32]> = self.shards.iter().map(|shard| &shard.gradients[..]).collect();
        let mut slices: Vec<&mut [f32]> = self.gradients.chunks_mut(SLICE).collect();
        for_each_shard(n_threads, &mut slices, |index, slice| {
            kernels::sum_all(slice, &parts, index * SLICE);
        });
        let mut sums = UpdateSums::default();
        self.shards.iter().for_each(|shard| sums.add(&shard.sums));
        sums
    }

    /// Clips the gradient to `max_norm` and takes one step with the first `n_groups` groups of weights (encoder and
    /// identifier; actor and critic); returns the norm before clipping.
    pub(crate) fn step(&mut self, n_groups: usize, rate: f32, max_norm: f32) -> f32 {
        self.adam.step(self.rooms.len(), &mut self.parameters, &self.gradients, n_groups, rate, max_norm)
    }
}
