//! One gradient step: the weights, their optimiser, and the shards that make up a gradient.
//!
//! The decisions of a step and the number of steps are chosen in `ppo`.

use pace_games::Seed;
use pace_nn::loss::PolicyLoss;
use pace_nn::threads::{SLICE, for_each_shard, for_each_shard_with};
use pace_nn::{Adam, AdamConfig, DropoutKey, kernels};

use crate::batch::{Batch, Segment};
use crate::config::TrainConfig;
use crate::network::Network;

/// The weights, their optimiser, and the buffers of a gradient.
pub(crate) struct Learner<N: Network> {
    pub(crate) net: N,
    pub(crate) adam: Adam,
    /// One per thread.
    workspaces: Vec<N::Buffers>,
    shards: Vec<UpdateShard>,
    gradients: Vec<f32>,
    /// The weights in the form that backward passes read.
    transposed: Vec<f32>,
}

impl<N: Network> Learner<N> {
    pub(crate) fn new(mut net: N, config: &TrainConfig, seed: Seed, n_threads: usize) -> Learner<N> {
        net.initialise(seed.child("initialise", &[]));
        let group_ends = net.spec().group_ends.clone();
        let n = group_ends.last().copied().unwrap_or(0);
        let adam = AdamConfig { betas: [0.9, 0.999], epsilon: config.adam_epsilon as f32 };
        Learner {
            adam: Adam::new(adam, &group_ends),
            net,
            workspaces: (0..n_threads.max(1)).map(|_| N::Buffers::default()).collect(),
            shards: (0..config.shards).map(|_| UpdateShard::new(n)).collect(),
            gradients: vec![0.0; n],
            transposed: vec![0.0; n],
        }
    }

    pub(crate) fn set_threads(&mut self, n_threads: usize) {
        self.workspaces.resize_with(n_threads.max(1), N::Buffers::default);
    }

    pub(crate) fn n_threads(&self) -> usize {
        self.workspaces.len()
    }

    /// Distributes segments over the shards, nearly equally many to each. The larger shards come first: threads take shards in
    /// order, and small last shards keep threads from waiting for each other.
    pub(crate) fn split<'a>(&self, mut segment_indices: &'a [u32]) -> Vec<&'a [u32]> {
        let (n, n_shards) = (segment_indices.len(), self.shards.len());
        (0..n_shards)
            .map(|shard| {
                let (part, rest) = segment_indices.split_at(n / n_shards + usize::from(shard < n % n_shards));
                segment_indices = rest;
                part
            })
            .collect()
    }

    /// Computes the gradient of one mini-batch. Its segments are distributed over a fixed number of shards, whose gradients are
    /// added in their order, independently of the threads.
    pub(crate) fn gradient(&mut self, job: &UpdateJob<'_>) -> UpdateSums {
        let parts = self.split(job.segment_indices);
        let net = &self.net;
        net.spec().layout.transpose(net.weights(), &mut self.transposed);
        let transposed = &self.transposed;
        for_each_shard_with(&mut self.workspaces, &mut self.shards, |buffers, index, shard| {
            shard.gradients.fill(0.0);
            shard.sums = UpdateSums::default();
            let job = UpdateJob { segment_indices: parts[index], ..*job };
            net.accumulate(&mut ShardUpdate::new(net.weights(), transposed, &job, shard), buffers);
        });
        let parts: Vec<&[f32]> = self.shards.iter().map(|shard| &shard.gradients[..]).collect();
        sum_gradients(self.workspaces.len(), &parts, &mut self.gradients);
        let mut sums = UpdateSums::default();
        self.shards.iter().for_each(|shard| sums.add(&shard.sums));
        sums
    }

    /// Clips the gradient to `max_norm` and takes one step with the first `n_groups` groups of weights; returns the norm
    /// before clipping.
    pub(crate) fn step(&mut self, n_groups: usize, rate: f32, max_norm: f32) -> f32 {
        if self.net.spec().clips_groups_separately {
            return self.step_with_group_clipping(n_groups, rate, max_norm);
        }
        let (n_threads, weights) = (self.workspaces.len(), self.net.weights_mut());
        self.adam.step(n_threads, weights, &self.gradients, n_groups, rate, max_norm)
    }

    /// Like [`Learner::step`], with every group clipped by its own norm; still returns the norm of all.
    fn step_with_group_clipping(&mut self, n_groups: usize, rate: f32, max_norm: f32) -> f32 {
        let (mut start, mut squares) = (0, 0.0);
        for end in &self.net.spec().group_ends[..n_groups] {
            let group = &mut self.gradients[start..*end];
            let square = kernels::sum_of_squares(group);
            kernels::scale(group, (max_norm / (square.sqrt() as f32 + 1e-6)).min(1.0));
            squares += square;
            start = *end;
        }
        let (n_threads, weights) = (self.workspaces.len(), self.net.weights_mut());
        self.adam.step(n_threads, weights, &self.gradients, n_groups, rate, f32::INFINITY);
        squares.sqrt() as f32
    }
}

/// Writes the sum of the shards' gradients, added in their order.
pub(crate) fn sum_gradients(n_threads: usize, parts: &[&[f32]], sum: &mut [f32]) {
    let mut slices: Vec<&mut [f32]> = sum.chunks_mut(SLICE).collect();
    for_each_shard(n_threads, &mut slices, |index, slice| {
        kernels::sum_shards(slice, parts, index * SLICE);
    });
}

/// The weights of the terms of the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossWeights {
    /// The share of one decision in the mean.
    pub(crate) per_row: f32,
    pub(crate) auxiliary: f32,
    pub(crate) value: f32,
    pub(crate) value_clip: f32,
    /// `None` during the warm-up.
    pub(crate) policy: Option<PolicyLoss>,
}

impl LossWeights {
    /// The weight of one decision in the auxiliary loss; `None` if there is no such loss.
    pub(crate) fn auxiliary_per_row(&self) -> Option<f32> {
        (self.auxiliary > 0.0).then_some(self.per_row * self.auxiliary)
    }
}

/// The work of one shard in one gradient step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateJob<'a> {
    pub(crate) batch: &'a Batch,
    /// All segments of the batch, as [`Network::segments`] cut it.
    pub(crate) segments: &'a [Segment],
    /// The indices of the segments that this shard learns from.
    pub(crate) segment_indices: &'a [u32],
    /// The mini-batch of each decision, and the mini-batch of this step. `None` selects all decisions.
    pub(crate) minibatch_of_decision: Option<(&'a [u32], u32)>,
    /// The classes of each training tuple.
    pub(crate) classes: &'a [Vec<usize>],
    pub(crate) weights: LossWeights,
    /// The dropout of this gradient step; `None` disables dropout.
    pub(crate) dropout: Option<DropoutKey>,
}

impl<'a> UpdateJob<'a> {
    /// Cuts the segments into chunks of about `n_rows` decisions that pass through the network together.
    pub(crate) fn chunks(&self, n_rows: usize) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let (segments, mut segment_indices) = (self.segments, self.segment_indices);
        std::iter::from_fn(move || {
            let mut n_decisions = 0;
            let n_taken = segment_indices
                .iter()
                .take_while(|segment| {
                    let fits = n_decisions < n_rows;
                    n_decisions += segments[**segment as usize].decisions.len();
                    fits
                })
                .count();
            let (chunk, rest) = segment_indices.split_at(n_taken);
            segment_indices = rest;
            (!chunk.is_empty()).then_some(chunk)
        })
    }

    /// Whether a decision of the segments belongs to the mini-batch of this step.
    pub(crate) fn is_in_minibatch(&self, decision: usize) -> bool {
        self.minibatch_of_decision.is_none_or(|(minibatches, minibatch)| minibatches[decision] == minibatch)
    }
}

/// Sums over decisions, for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct UpdateSums {
    pub(crate) n: f64,
    pub(crate) policy_loss: f64,
    pub(crate) value_loss: f64,
    pub(crate) entropy: f64,
    pub(crate) approx_kl: f64,
    pub(crate) clipped: f64,
    /// Sums of the method's own losses, named by [`crate::network::NetworkSpec::metrics`].
    pub(crate) own: [f64; N_OWN],
}

/// The maximum number of a method's own sums.
const N_OWN: usize = 3;

impl UpdateSums {
    pub(crate) fn add(&mut self, other: &UpdateSums) {
        self.n += other.n;
        self.policy_loss += other.policy_loss;
        self.value_loss += other.value_loss;
        self.entropy += other.entropy;
        self.approx_kl += other.approx_kl;
        self.clipped += other.clipped;
        self.own.iter_mut().zip(&other.own).for_each(|(sum, other)| *sum += other);
    }
}

/// The inputs and outputs of a shard's losses: the job and the weights, and the gradient and sums that are added to.
pub(crate) struct ShardUpdate<'a> {
    pub(crate) job: &'a UpdateJob<'a>,
    pub(crate) weights: &'a [f32],
    /// The weights in the form that backward passes read ([`pace_nn::Layout::transpose`]).
    pub(crate) transposed: &'a [f32],
    pub(crate) gradients: &'a mut [f32],
    pub(crate) sums: &'a mut UpdateSums,
}

impl<'a> ShardUpdate<'a> {
    pub(crate) fn new(
        weights: &'a [f32],
        transposed: &'a [f32],
        job: &'a UpdateJob<'a>,
        shard: &'a mut UpdateShard,
    ) -> ShardUpdate<'a> {
        let UpdateShard { gradients, sums } = shard;
        ShardUpdate { job, weights, transposed, gradients, sums }
    }
}

/// One shard's gradient and sums.
#[derive(Debug)]
pub(crate) struct UpdateShard {
    pub(crate) gradients: Vec<f32>,
    pub(crate) sums: UpdateSums,
}

impl UpdateShard {
    pub(crate) fn new(n_parameters: usize) -> UpdateShard {
        UpdateShard { gradients: vec![0.0; n_parameters], sums: UpdateSums::default() }
    }
}
