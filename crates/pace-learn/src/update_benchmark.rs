//! A benchmark of one update on synthetic encounters, and of its matrix products alone. The caller measures the time.
//!
//! Rollouts are measured with `Trainer::roll_out`.

use pace_games::{Action, DisplayNames, Ending, GameSpec, Metric, PoolListing, Seed, Stream};
use pace_nn::DropoutKey;
use pace_nn::loss::PolicyLoss;
use pace_nn::product::{GemmShape, recorded};
use pace_nn::threads::for_each_shard_with;

use crate::batch::{Batch, Segment};
use crate::config::TrainConfig;
use crate::gae::estimate_advantages;
use crate::learner::{Learner, LossWeights, ShardUpdate, UpdateJob, UpdateShard};
use crate::methods::Method;
use crate::network::{Actor, Decisions, Network, NetworkDims, PolicyOutputs};

/// The shape of a mini-batch. The speed of an update depends on nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchShape {
    /// Size of an observation.
    pub observation_size: usize,
    /// Number of actions of the ego, at most eight.
    pub n_actions: usize,
    /// Number of classes of each peer.
    pub n_classes: Vec<usize>,
    /// Number of encounters in the mini-batch.
    pub n_encounters: usize,
    /// Number of decisions of each episode of an encounter.
    pub episode_lengths: Vec<u32>,
    /// Number of distinct observations at decisions and at ends of episodes; `None` makes all observations distinct.
    pub n_observations: Option<[usize; 2]>,
}

/// A network and one mini-batch to update it on.
pub struct UpdateBenchmark {
    inner: Box<dyn AnyBench>,
}

/// A type-erased [`UpdateBench`]. The functions are those of [`UpdateBenchmark`].
pub(crate) trait AnyBench {
    fn set_threads(&mut self, n_threads: usize);
    fn n_decisions(&self) -> usize;
    fn update(&mut self);
    fn weights(&self) -> &[f32];
    fn run_gemms_only(&mut self) -> f64;
}

impl UpdateBenchmark {
    /// Makes a batch of this shape with random observations, actions and rewards, and the network of a method with these keys.
    pub fn synthetic(method: &Method, shape: &BatchShape, config: TrainConfig) -> UpdateBenchmark {
        UpdateBenchmark { inner: method.bench(shape, config) }
    }

    /// Sets the number of threads.
    pub fn set_threads(&mut self, n_threads: usize) {
        self.inner.set_threads(n_threads);
    }

    /// Number of decisions in the mini-batch.
    pub fn n_decisions(&self) -> usize {
        self.inner.n_decisions()
    }

    /// Runs one gradient step: forward pass, backward pass, sum over shards, clipping, Adam.
    pub fn update(&mut self) {
        self.inner.update();
    }

    /// All weights, for comparing the results of two benchmarks.
    pub fn weights(&self) -> &[f32] {
        self.inner.weights()
    }

    /// Runs only the matrix products of one update, shard by shard on the same number of threads; returns their number of
    /// floating-point operations.
    pub fn run_gemms_only(&mut self) -> f64 {
        self.inner.run_gemms_only()
    }
}

/// Runs one product of two large square matrices, the maximum speed of the engine on one thread; returns its number of
/// floating-point operations.
pub fn run_square_product(buffers: &mut [Vec<f32>; 3]) -> f64 {
    const SIDE: usize = 768;
    let product = GemmShape::square(SIDE);
    product.run(buffers);
    product.flops()
}

/// The benchmark of a method that is trained with PPO.
pub(crate) struct UpdateBench<N: Network> {
    learner: Learner<N>,
    config: TrainConfig,
    batch: Batch,
    segments: Vec<Segment>,
    segment_indices: Vec<u32>,
    classes: Vec<Vec<usize>>,
    /// The matrix products of each shard; empty before the first use.
    gemms: Vec<Vec<GemmShape>>,
    buffers: Vec<[Vec<f32>; 3]>,
}

impl<N: Network> UpdateBench<N> {
    pub(crate) fn new(shape: &BatchShape, config: TrainConfig) -> UpdateBench<N> {
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
            nouns: DisplayNames { episode: "", episodes: "", score: "", keypoint: "" },
        };
        let pool = PoolListing { n_classes: shape.n_classes.clone(), ..PoolListing::default() };
        let net = N::new(&spec, &pool, &config);
        let seed = Seed::new(1);
        let mut rng = seed.stream("workbench");
        let mut batch = Batch::default();
        let mut classes = Vec::new();
        let few = shape.n_observations.map(|numbers| numbers.map(|n| shape.observe(n, &mut rng)));
        for encounter in 0..shape.n_encounters {
            batch.open_encounter(encounter as u32);
            add_encounter(&mut batch, shape, few.as_ref(), &mut rng);
            classes.push(shape.n_classes.iter().map(|n| rng.below(*n as u32) as usize).collect());
        }
        batch.index_observations(shape.observation_size);
        estimate_advantages(&mut batch, 0.0, &config);
        let segments = net.segments(&batch);
        let learner = Learner::new(net, &config, seed, 1);
        save_states(&learner.net, &mut batch);
        UpdateBench {
            learner,
            segment_indices: (0..segments.len() as u32).collect(),
            segments,
            config,
            batch,
            classes,
            gemms: Vec::new(),
            buffers: Vec::new(),
        }
    }
}

impl<N: Network> AnyBench for UpdateBench<N> {
    fn set_threads(&mut self, n_threads: usize) {
        self.learner.set_threads(n_threads);
    }

    fn n_decisions(&self) -> usize {
        self.batch.n_decisions()
    }

    fn update(&mut self) {
        let UpdateBench { learner, config, batch, segments, segment_indices, classes, .. } = self;
        learner.gradient(&job(config, batch, segments, segment_indices, classes));
        // The step is tiny, so that repetitions hardly change the network.
        learner.step(learner.adam.n_steps.len(), 1e-7, config.gradient_clip as f32);
    }

    fn weights(&self) -> &[f32] {
        self.learner.net.weights()
    }

    fn run_gemms_only(&mut self) -> f64 {
        let UpdateBench { learner, config, batch, segments, segment_indices, classes, gemms, buffers } = self;
        if gemms.is_empty() {
            *gemms = gemms_of(learner, &job(config, batch, segments, segment_indices, classes));
        }
        let n_threads = learner.n_threads();
        buffers.resize_with(buffers.len().max(n_threads), Default::default);
        for_each_shard_with(&mut buffers[..n_threads], gemms, |buffers, _, gemms| {
            gemms.iter().for_each(|gemm| gemm.run(buffers));
        });
        gemms.iter().flatten().map(GemmShape::flops).sum()
    }
}

/// Records the matrix products of each shard of an update.
fn gemms_of<N: Network>(learner: &Learner<N>, job: &UpdateJob<'_>) -> Vec<Vec<GemmShape>> {
    let net = &learner.net;
    let n_weights = net.weights().len();
    let (mut transposed, mut shard) = (vec![0.0; n_weights], UpdateShard::new(n_weights));
    net.spec().layout.transpose(net.weights(), &mut transposed);
    let mut gemms_of_part = |segment_indices| {
        let job = UpdateJob { segment_indices, ..*job };
        let mut update = ShardUpdate::new(net.weights(), &transposed, &job, &mut shard);
        recorded(|| net.accumulate(&mut update, &mut N::Buffers::default())).1
    };
    learner.split(job.segment_indices).into_iter().map(&mut gemms_of_part).collect()
}

/// The update on the whole mini-batch.
fn job<'a>(
    config: &TrainConfig,
    batch: &'a Batch,
    segments: &'a [Segment],
    segment_indices: &'a [u32],
    classes: &'a [Vec<usize>],
) -> UpdateJob<'a> {
    let weights = LossWeights {
        per_row: 1.0 / batch.n_decisions() as f32,
        auxiliary: config.auxiliary_weight as f32,
        value: config.value_weight as f32,
        value_clip: config.value_clip as f32,
        policy: Some(PolicyLoss { clip: config.clip as f32, entropy_weight: config.entropy_weight as f32 }),
    };
    let dropout = Some(DropoutKey(1));
    UpdateJob { batch, segments, segment_indices, minibatch_of_decision: None, classes, weights, dropout }
}

/// Plays every encounter through a context, as a rollout does, and saves the states that the network needs.
fn save_states<A: Actor>(actor: &A, batch: &mut Batch) {
    let NetworkDims { observation: size, n_peers, .. } = actor.spec().sizes;
    let mut outputs = PolicyOutputs::default();
    for encounter in 0..batch.n_encounters() {
        let mut state = actor.new_state(1, None);
        let mut decision = batch.decisions(encounter).start;
        for episode in batch.episodes(encounter) {
            for _ in 0..batch.episode_lengths[episode] {
                actor.save_state(&state, 0, &mut batch.saved_states);
                let decisions = Decisions {
                    observations: &batch.observations[decision * size..][..size],
                    ego_actions: &batch.actions[decision..=decision],
                    peer_actions: &batch.peer_actions[decision * n_peers..][..n_peers],
                    peer_observations: &batch.peer_observations[decision * n_peers * size..]
                        [..n_peers * size],
                    task_rewards: &batch.task_rewards[decision..=decision],
                };
                actor.forward_policy(decisions.observations, &[0], &mut state, &mut outputs);
                actor.update_contexts(&decisions, &[0], &mut state);
                decision += 1;
            }
            let terminal = &batch.terminal_observations[episode * size..][..size];
            actor.end_episodes(terminal, &[0], &mut state);
        }
    }
}

impl BatchShape {
    /// Random observations.
    fn observe(&self, n: usize, rng: &mut Stream) -> Vec<f32> {
        (0..n * self.observation_size).map(|_| rng.unit() as f32).collect()
    }
}

/// Adds a random encounter. `few` holds the distinct observations at decisions and at ends of episodes; `None` makes all
/// observations distinct.
fn add_encounter(batch: &mut Batch, shape: &BatchShape, few: Option<&[Vec<f32>; 2]>, rng: &mut Stream) {
    let n_decisions: u32 = shape.episode_lengths.iter().sum();
    let size = shape.observation_size;
    let observe = |n: usize, few: Option<&Vec<f32>>, rng: &mut Stream| match few {
        None => shape.observe(n, rng),
        Some(few) => {
            let n_few = (few.len() / size) as u32;
            (0..n).flat_map(|_| few[rng.below(n_few) as usize * size..][..size].to_vec()).collect()
        }
    };
    batch.observations.extend(observe(n_decisions as usize, few.map(|[few, _]| few), rng));
    batch.terminal_observations.extend(observe(shape.episode_lengths.len(), few.map(|[_, few]| few), rng));
    batch.episode_lengths.extend(&shape.episode_lengths);
    batch.endings.extend(shape.episode_lengths.iter().map(|_| Ending::Finished));
    for _ in 0..n_decisions {
        let action = rng.below(shape.n_actions as u32) as Action;
        batch.actions.push(action);
        batch.peer_actions.extend(shape.n_classes.iter().map(|_| action));
        batch.peer_observations.extend(shape.observe(shape.n_classes.len(), rng));
        batch.log_probabilities.push(-(shape.n_actions as f32).ln());
        batch.values.push(rng.unit() as f32);
        batch.task_rewards.push(rng.unit() as f32 - 0.5);
        batch.exploration_rewards.push(0.0);
    }
}
