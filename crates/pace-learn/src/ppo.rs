//! PPO over encounters: one iteration of Algorithm 1, and the terms of the loss that all methods share.
//!
//! The other terms of a method's loss are in its file under `methods`; a gradient step is in `learner`.

use std::collections::BTreeMap;

use pace_games::config::plain_reason;
use pace_games::{AnyGame, ConfigError, Ending, PeerObservationMode, PoolListing, Seed};
use pace_nn::DropoutKey;
use pace_nn::loss::{PolicyLoss, clipped_value, softmax_rows};
use pace_nn::threads::for_each_shard;

use crate::agent::Agent;
use crate::batch::{Batch, LaneRoom, LaneWriter};
use crate::config::TrainConfig;
use crate::gae::estimate_advantages;
use crate::learner::{Learner, LossWeights, UpdateJob, UpdateSums};
use crate::minibatches::{MinibatchSegments, Minibatches};
use crate::network::Network;
use crate::rollout::{CarriedEncounter, RolloutShard};
use crate::train::{
    IterationContext, IterationResult, NamedBytes, TrainError, TrainingAlgorithm, read_weights, weight_files,
};

/// The encounters that are carried over to the next rollout, in a checkpoint.
const ENCOUNTERS_FILE: &str = "encounters.json";

/// The training of a network with PPO: the learner with the weights, and the rollout.
pub(crate) struct Ppo<N: Network> {
    pub(crate) learner: Learner<N>,
    rollout: Vec<RolloutShard<N>>,
    /// Maximum number of decisions in an encounter.
    max_decisions: usize,
    /// Whether encounters are carried over from one rollout to the next.
    carries_encounters: bool,
    /// The classes of each training tuple.
    classes: Vec<Vec<usize>>,
}

impl<N: Network> Ppo<N> {
    pub(crate) fn new(
        game: &dyn AnyGame,
        pool: &PoolListing,
        config: &TrainConfig,
        seed: u64,
        n_threads: usize,
    ) -> Result<Ppo<N>, ConfigError> {
        N::check(config, pool)?;
        Ppo::with_net(N::new(game.spec(), pool, config), game, pool, config, seed, n_threads)
    }

    /// Like [`Ppo::new`], but with a given network.
    pub(crate) fn with_net(
        net: N,
        game: &dyn AnyGame,
        pool: &PoolListing,
        config: &TrainConfig,
        seed: u64,
        n_threads: usize,
    ) -> Result<Ppo<N>, ConfigError> {
        let training_tuples = config.training_tuples(pool.tuples.len())?;
        Ok(Ppo {
            max_decisions: net.spec().training_episodes * game.spec().horizon_steps,
            carries_encounters: config.rollout_steps > 0,
            rollout: RolloutShard::split(game, &net, config, &training_tuples),
            learner: Learner::new(net, config, Seed::new(seed), n_threads),
            classes: pool.tuples.iter().map(|tuple| tuple.classes.clone()).collect(),
        })
    }

    /// The encounters that go on in the next rollout, by lane.
    fn carried(&self) -> Vec<Option<CarriedEncounter>> {
        self.rollout.iter().flat_map(RolloutShard::carried).cloned().collect()
    }

    fn set_carried(&mut self, mut carried: &[Option<CarriedEncounter>]) {
        for shard in &mut self.rollout {
            let (own, rest) = carried.split_at(shard.n_lanes());
            shard.set_carried(own);
            carried = rest;
        }
    }

    /// Reads the file of a checkpoint with the carried encounters.
    fn read_carried(&self, bytes: &[u8]) -> Result<Vec<Option<CarriedEncounter>>, TrainError> {
        let reason = |reason: &str| TrainError::State { reason: format!("{ENCOUNTERS_FILE}: {reason}") };
        let carried: Vec<Option<CarriedEncounter>> =
            serde_json::from_slice(bytes).map_err(|error| reason(&plain_reason(&error.to_string())))?;
        let (net, n_lanes) =
            (&self.learner.net, self.rollout.iter().map(RolloutShard::n_lanes).sum::<usize>());
        if carried.len() != n_lanes {
            return Err(reason(&format!("{} lanes, this run has {n_lanes}", carried.len())));
        }
        let mut memory = Vec::new();
        net.carry(&net.new_state(1, None), 0, &mut memory);
        let (n_actions, n_slots) = (net.spec().sizes.n_actions, net.spec().slots.len());
        let fits = |one: &CarriedEncounter| one.fits(self.max_decisions, n_actions, n_slots, memory.len());
        match carried.iter().flatten().all(fits) {
            true => Ok(carried),
            false => Err(reason("an encounter of another game or network")),
        }
    }

    /// Rollout of one iteration: plays the encounters of one batch.
    pub(crate) fn play(&mut self, at: &IterationContext<'_>) -> Result<Batch, TrainError> {
        let (net, classes) = (&self.learner.net, &self.classes);
        let spec = net.spec();
        let n_steps = at.config.rollout_steps;
        let room = LaneRoom {
            // One encounter, or the beginning of one and as many steps as a rollout has, with an episode each at most.
            max_decisions: self.max_decisions + n_steps,
            max_episodes: spec.training_episodes + n_steps,
            observation: spec.sizes.observation,
            n_peers: spec.sizes.n_peers,
            peer_observation: match spec.rollout_sight {
                PeerObservationMode::Recorded => spec.sizes.observation,
                PeerObservationMode::Skipped => 0,
            },
        };
        let n_lanes = self.rollout.iter().map(RolloutShard::n_lanes).sum();
        let mut batch = Batch::with_room(n_lanes, room);
        let mut writers = batch.writers(room);
        let mut shards: Vec<_> = self
            .rollout
            .iter_mut()
            .map(|shard| (writers.by_ref().take(shard.n_lanes()).collect::<Vec<_>>(), shard))
            .collect();
        drop(writers);
        for_each_shard(self.learner.n_threads(), &mut shards, |_, (writers, shard)| {
            shard.failure = shard.play(net, classes, at, writers).err();
        });
        let lanes: Vec<_> =
            shards.into_iter().flat_map(|(writers, _)| writers).map(LaneWriter::finish).collect();
        for shard in &self.rollout {
            at.check_output(shard.failure.as_ref())?;
        }
        batch.close_gaps(room, lanes);
        batch.index_observations(spec.sizes.observation);
        Ok(batch)
    }

    /// Advantages and updates of one iteration.
    fn learn(&mut self, at: &IterationContext<'_>, mut batch: Batch) -> Result<IterationResult, TrainError> {
        let config = at.config;
        let progress = at.steps as f64 / config.total_steps as f64;
        let fade = 1.0 - at.steps as f64 / config.exploration_decay_steps.max(1) as f64;
        let exploration_weight = config.exploration_weight * fade.max(0.0);
        estimate_advantages(&mut batch, exploration_weight, config);
        self.learner.net.adjust_advantages(&mut batch);
        at.check_finite("the mean value", mean(&batch.values))?;
        at.check_finite("the mean advantage", mean(&batch.advantages))?;
        let (sums, gradient_norm) = self.update(at, &batch, progress);
        let per_decision = |sum: f64| sum / sums.n;
        at.check_finite("the gradient's norm", gradient_norm)?;
        at.check_finite("the policy loss", per_decision(sums.policy_loss))?;
        at.check_finite("the value loss", per_decision(sums.value_loss))?;
        let net_metrics = self.learner.net.spec().metrics;
        let own = || net_metrics.iter().zip(sums.own).map(|(name, sum)| (*name, per_decision(sum)));
        own().try_for_each(|(name, value)| at.check_finite(name, value))?;
        at.check_finite("the sum of the weights", mean(self.learner.net.weights()))?;
        let rate = config.learning_rate_decay.apply(config.learning_rate, progress);
        let entropy_weight = config.entropy_decay.apply(config.entropy_weight, progress);
        let mut metrics = batch_metrics(&batch);
        let n_new = batch.n_new_decisions();
        if !self.learner.net.spec().slots.is_empty() {
            let rewards = batch.at_new_decisions(&batch.exploration_rewards).map(f64::from);
            metrics.extend([
                ("explore/coef", exploration_weight),
                ("explore/reward", rewards.sum::<f64>() / n_new as f64),
            ]);
        }
        metrics.extend([
            ("charts/learning_rate", rate),
            ("charts/encounters", batch.n_encounters() as f64),
            ("losses/entropy_coef", entropy_weight),
            ("losses/policy_loss", per_decision(sums.policy_loss)),
            ("losses/value_loss", per_decision(sums.value_loss)),
            ("losses/entropy", per_decision(sums.entropy)),
            ("losses/approx_kl", per_decision(sums.approx_kl)),
            ("losses/clipfrac", per_decision(sums.clipped)),
            ("losses/gradient_norm", gradient_norm),
        ]);
        metrics.extend(own());
        Ok(IterationResult { n_steps: n_new as u64, metrics })
    }

    /// Runs all epochs and mini-batches. Returns the sums of the last epoch and the mean gradient norm of all epochs.
    fn update(&mut self, at: &IterationContext<'_>, batch: &Batch, progress: f64) -> (UpdateSums, f64) {
        let config = at.config;
        let is_warm_up = at.steps < config.warm_up_steps;
        let rate = config.learning_rate_decay.apply(config.learning_rate, progress) as f32;
        let policy = PolicyLoss {
            clip: config.clip as f32,
            entropy_weight: config.entropy_decay.apply(config.entropy_weight, progress) as f32,
        };
        let mut rng = Seed::new(at.seed).child("update", &[at.iteration]).stream("order");
        // A stream of its own, so that the order of mini-batches does not depend on dropout.
        let mut dropout_rng = Seed::new(at.seed).child("update", &[at.iteration]).stream("dropout");
        let mut sums = UpdateSums::default();
        let mut total_norm = 0.0;
        let segments = self.learner.net.segments(batch);
        let mut minibatches = Minibatches::new(config, batch, &segments);
        for _ in 0..config.epochs {
            sums = UpdateSums::default();
            minibatches.sample(&mut rng);
            for index in 0..minibatches.len() {
                let MinibatchSegments { segment_indices, minibatch_of_decision, n_rows } =
                    minibatches.get(index);
                let weights = LossWeights {
                    per_row: 1.0 / n_rows as f32,
                    auxiliary: config.auxiliary_weight as f32,
                    value: config.value_weight as f32,
                    value_clip: config.value_clip as f32,
                    policy: (!is_warm_up).then_some(policy),
                };
                let (segments, classes) = (&segments[..], &self.classes[..]);
                let dropout = Some(DropoutKey(u64::from(dropout_rng.below(u32::MAX))));
                let job = UpdateJob {
                    batch,
                    segments,
                    segment_indices,
                    minibatch_of_decision,
                    classes,
                    weights,
                    dropout,
                };
                sums.add(&self.learner.gradient(&job));
                // The warm-up trains the first group of weights alone.
                let n_groups = if is_warm_up { 1 } else { self.learner.adam.n_steps.len() };
                total_norm += f64::from(self.learner.step(n_groups, rate, config.gradient_clip as f32));
            }
        }
        (sums, total_norm / (config.epochs * minibatches.len()) as f64)
    }
}

impl<N: Network> TrainingAlgorithm for Ppo<N> {
    fn n_parameters(&self) -> usize {
        self.learner.net.weights().len()
    }

    fn set_threads(&mut self, n_threads: usize) {
        self.learner.set_threads(n_threads);
    }

    fn roll_out(&mut self, at: &IterationContext<'_>) -> Result<usize, TrainError> {
        let carried = self.carried();
        let n_decisions = self.play(at)?.n_new_decisions();
        self.set_carried(&carried);
        Ok(n_decisions)
    }

    fn iterate(
        &mut self,
        at: &IterationContext<'_>,
        rolled_out: &mut dyn FnMut(),
    ) -> Result<IterationResult, TrainError> {
        let batch = self.play(at)?;
        rolled_out();
        self.learn(at, batch)
    }

    fn save(&self) -> (Vec<NamedBytes>, Vec<u64>) {
        let Learner { net, adam, .. } = &self.learner;
        let buffers = [net.weights(), &adam.first_moment, &adam.second_moment];
        let mut files = weight_files(&net.spec().layout, buffers);
        if self.carries_encounters {
            let carried = serde_json::to_vec(&self.carried()).expect("encounters are plain data");
            files.push((ENCOUNTERS_FILE, carried));
        }
        (files, adam.n_steps.clone())
    }

    fn restore(
        &mut self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, TrainError>,
        adam_steps: Vec<u64>,
    ) -> Result<(), TrainError> {
        let carried = if self.carries_encounters {
            self.read_carried(&read(ENCOUNTERS_FILE)?)?
        } else {
            self.carried()
        };
        let Learner { net, adam, .. } = &mut self.learner;
        let [weights, first, second] =
            read_weights(&net.spec().layout, read, &adam_steps, adam.n_steps.len())?;
        *net.weights_mut() = weights;
        (adam.first_moment, adam.second_moment, adam.n_steps) = (first, second, adam_steps);
        self.set_carried(&carried);
        Ok(())
    }

    fn agent(&self) -> Agent {
        Agent::new(self.learner.net.clone())
    }
}

/// Rows of logits and values, and the buffers for their gradients.
pub(crate) struct PolicyRows<'a> {
    pub(crate) logits: &'a [f32],
    pub(crate) d_logits: &'a mut [f32],
    pub(crate) values: &'a [f32],
    pub(crate) d_values: &'a mut [f32],
    /// Buffer for the action probabilities.
    pub(crate) probabilities: &'a mut [f32],
    /// Whether the advantage of a decision is its target minus its value here, instead of the advantage in the batch.
    pub(crate) has_current_advantages: bool,
}

/// Adds the terms of PPO for the decisions of `batch_rows`, one per row: clipped surrogate, entropy bonus and clipped value loss.
pub(crate) fn policy_and_value(
    job: &UpdateJob<'_>,
    policy: &PolicyLoss,
    batch_rows: &[usize],
    rows: &mut PolicyRows<'_>,
    sums: &mut UpdateSums,
) {
    if batch_rows.is_empty() {
        return;
    }
    let batch = job.batch;
    let n_actions = rows.logits.len() / batch_rows.len();
    softmax_rows(rows.logits, &[n_actions], rows.d_logits, rows.probabilities);
    for (row, &decision) in batch_rows.iter().enumerate() {
        let advantage = if rows.has_current_advantages {
            batch.targets[decision] - rows.values[row]
        } else {
            batch.advantages[decision]
        };
        let terms = policy.row(
            &rows.probabilities[row * n_actions..][..n_actions],
            usize::from(batch.actions[decision]),
            batch.log_probabilities[decision],
            advantage,
            job.weights.per_row,
            &mut rows.d_logits[row * n_actions..][..n_actions],
        );
        sums.policy_loss += f64::from(terms.loss);
        sums.entropy += f64::from(terms.entropy);
        sums.approx_kl += f64::from(terms.approx_kl);
        sums.clipped += f64::from(u8::from(terms.is_clipped));
    }
    for (row, &decision) in batch_rows.iter().enumerate() {
        let (old, target) = (batch.values[decision], batch.targets[decision]);
        let (loss, gradient) = clipped_value(rows.values[row], old, target, job.weights.value_clip);
        rows.d_values[row] = job.weights.per_row * job.weights.value * gradient;
        sums.value_loss += f64::from(loss);
    }
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value)).sum::<f64>() / values.len() as f64
}

/// Metrics of the rollout.
fn batch_metrics(batch: &Batch) -> BTreeMap<&'static str, f64> {
    let ended: Vec<usize> = batch.ended_episodes().collect();
    let n_episodes = ended.len().max(1) as f64;
    let share = |n: usize| n as f64 / n_episodes;
    // Adaptation shows as a difference between the first and the last tenth of every encounter's decisions.
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for encounter in (0..batch.n_encounters()).filter(|encounter| batch.cuts[*encounter].is_none()) {
        let range = batch.decisions(encounter);
        let tenth = (range.len() / 10).max(1);
        first.extend_from_slice(&batch.task_rewards[range.start..range.start + tenth]);
        last.extend_from_slice(&batch.task_rewards[range.end - tenth..range.end]);
    }
    let n_decisions = batch.n_new_decisions() as f64;
    let steps_per_episode = n_decisions / n_episodes;
    let task_reward = batch.at_new_decisions(&batch.task_rewards).map(f64::from).sum::<f64>() / n_decisions;
    let variance = |values: &dyn Fn() -> Vec<f64>| {
        let values = values();
        let mean = values.iter().sum::<f64>() / n_decisions;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n_decisions
    };
    let targets = || batch.at_new_decisions(&batch.targets).map(f64::from);
    let values = || batch.at_new_decisions(&batch.values).map(f64::from);
    let target_variance = variance(&|| targets().collect());
    let error_variance =
        variance(&|| targets().zip(values()).map(|(target, value)| target - value).collect());
    let n_successes = ended.iter().filter(|episode| batch.endings[**episode] == Ending::Succeeded).count();
    let n_visits = ended.iter().filter(|episode| batch.keypoints_visited[**episode]).count();
    let mut metrics = BTreeMap::from([
        ("charts/episodic_return", task_reward * steps_per_episode),
        ("charts/episodic_length", steps_per_episode),
        ("charts/success", share(n_successes)),
        ("charts/keypoint", share(n_visits)),
        ("losses/explained_variance", 1.0 - error_variance / target_variance.max(1e-12)),
    ]);
    if !first.is_empty() {
        metrics.extend([
            ("adapt/first_tenth", mean(&first) * steps_per_episode),
            ("adapt/last_tenth", mean(&last) * steps_per_episode),
        ]);
    }
    metrics
}
