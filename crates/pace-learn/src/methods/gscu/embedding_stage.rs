//! The first stage: collect samples of the training peers, then learn an embedding from which their actions can be predicted.
//!
//! Deviation D8: learning alternates with collecting. An iteration plays some encounters with every tuple and learns from their
//! samples for several epochs. Only the weights are kept, so that a run can be interrupted between any two iterations.

use std::collections::BTreeMap;

use pace_games::{AnyGame, Seed};
use pace_nn::loss::cross_entropy;
use pace_nn::threads::{for_each_shard, for_each_shard_with};
use pace_nn::{Adam, AdamConfig, MlpBuffers, gaussian, kernels};

use super::embedding::{DecoderBuffers, Embedding};
use super::keys::{ActionLabels, GscuConfig};
use super::samples::{PeerSampler, PeerSamples};
use super::{fill_normal, keys_of};
use crate::config::TrainConfig;
use crate::learner::sum_gradients;
use crate::nets::ensure_len;
use crate::policy::Policy;
use crate::train::{IterationContext, IterationResult, TrainError};

/// Number of shards of a batch of samples. Results depend on it, unlike on the number of threads.
const N_SHARDS: usize = 8;

/// Number of samples in a chunk: their activations fit into the second-level cache.
const CHUNK_ROWS: usize = 256;

/// The weights of the embedding, their optimiser, and the samples that they are trained on.
pub(crate) struct EmbeddingStage {
    embedding: Embedding,
    pub(crate) parameters: Vec<f32>,
    pub(crate) adam: Adam,
    samplers: Vec<PeerSampler>,
    pub(super) samples: PeerSamples,
    tuple_rows: MlpBuffers,
    /// One per thread.
    workspaces: Vec<SampleBuffers>,
    shards: Vec<BatchShard>,
    gradients: Vec<f32>,
    transposed: Vec<f32>,
}

/// One gradient step.
struct BatchJob<'a> {
    parameters: &'a [f32],
    transposed: &'a [f32],
    samples: &'a PeerSamples,
    distributions: &'a [f32],
    /// The rows of the batch.
    order: &'a [u32],
    /// The noise of a shard is sampled with this seed and the index of the shard.
    seed: Seed,
}

/// The gradient and the sums of one shard of a batch.
#[derive(Debug)]
struct BatchShard {
    gradients: Vec<f32>,
    d_distributions: Vec<f32>,
    sums: SampleSums,
}

#[derive(Clone, Copy, Debug, Default)]
struct SampleSums {
    n: f64,
    cross_entropy: f64,
    kl: f64,
    n_correct: f64,
}

/// The inputs and activations of one chunk; each thread has its own.
#[derive(Debug, Default)]
struct SampleBuffers {
    observations: Vec<f32>,
    distributions: Vec<f32>,
    d_distributions: Vec<f32>,
    noise: Vec<f32>,
    latents: Vec<f32>,
    decoder: DecoderBuffers,
}

impl EmbeddingStage {
    pub(crate) fn new(
        game: &dyn AnyGame,
        embedding: &Embedding,
        parameters: Vec<f32>,
        config: &TrainConfig,
        training_tuples: &[usize],
        ego: &Policy,
        n_threads: usize,
    ) -> EmbeddingStage {
        let (n, keys) = (parameters.len(), keys_of(config));
        let adam = AdamConfig { betas: [0.9, 0.999], epsilon: config.adam_epsilon as f32 };
        let n_distributions = 2 * embedding.latent_size() * embedding.n_tuples();
        EmbeddingStage {
            embedding: embedding.clone(),
            parameters,
            adam: Adam::new(adam, &[n]),
            samplers: PeerSampler::split(
                game,
                ego,
                training_tuples,
                keys.embedding_encounters_per_tuple,
                N_SHARDS,
            ),
            samples: PeerSamples::default(),
            tuple_rows: MlpBuffers::default(),
            workspaces: (0..n_threads.max(1)).map(|_| SampleBuffers::default()).collect(),
            shards: (0..N_SHARDS)
                .map(|_| BatchShard {
                    gradients: vec![0.0; n],
                    d_distributions: vec![0.0; n_distributions],
                    sums: SampleSums::default(),
                })
                .collect(),
            gradients: vec![0.0; n],
            transposed: vec![0.0; n],
        }
    }

    pub(crate) fn set_threads(&mut self, n_threads: usize) {
        self.workspaces.resize_with(n_threads.max(1), SampleBuffers::default);
    }

    /// Computes the distributions of all training tuples.
    pub(crate) fn distributions(&mut self) -> &[f32] {
        self.embedding.encode(&self.parameters, &mut self.tuple_rows);
        &self.tuple_rows.out
    }

    /// Plays the encounters of one iteration and keeps samples of the peers; returns the number of ego decisions.
    pub(crate) fn collect_samples(&mut self, at: &IterationContext<'_>) -> Result<u64, TrainError> {
        let seed = Seed::new(at.seed).child("rollout", &[at.iteration]);
        let n_episodes = at.game.spec().episodes_per_encounter;
        for_each_shard(self.workspaces.len(), &mut self.samplers, |_, sampler| {
            sampler.failure = sampler.collect(n_episodes, seed).err();
        });
        self.samples.clear();
        for sampler in &mut self.samplers {
            at.check_output(sampler.failure.as_ref())?;
            self.samples.append(&mut sampler.samples);
        }
        if keys_of(at.config).action_labels == ActionLabels::Zero {
            self.samples.actions.fill(0);
        }
        Ok(self.samples.n_decisions)
    }

    /// Learns from the samples that were collected last.
    pub(crate) fn learn(
        &mut self,
        at: &IterationContext<'_>,
        keys: &GscuConfig,
    ) -> Result<IterationResult, TrainError> {
        let (n_rows, n_decisions) = (self.samples.len(), self.samples.n_decisions);
        let seed = Seed::new(at.seed).child("embedding", &[at.iteration]);
        let mut rng = seed.stream("order");
        let mut order: Vec<u32> = (0..n_rows as u32).collect();
        let n_batches = (n_rows / keys.embedding_batch).max(1);
        let n_steps = (keys.embedding_epochs * n_batches) as f64;
        let (mut sums, mut total_norm, mut kl_weight) = (SampleSums::default(), 0.0, 0.0);
        for epoch in 0..keys.embedding_epochs {
            sums = SampleSums::default();
            rng.shuffle(&mut order);
            for batch in 0..n_batches {
                let share = (epoch * n_batches + batch) as f64 / n_steps;
                kl_weight = kl_weight_at(keys, at.steps as f64 + share * n_decisions as f64);
                let rows = &order[n_rows * batch / n_batches..n_rows * (batch + 1) / n_batches];
                let seed = seed.child("noise", &[epoch as u64, batch as u64]);
                sums.add(&self.gradient(rows, kl_weight as f32, seed));
                let (rate, n_threads) = (keys.embedding_rate as f32, self.workspaces.len());
                let norm =
                    self.adam.step(n_threads, &mut self.parameters, &self.gradients, 1, rate, f32::INFINITY);
                total_norm += f64::from(norm);
            }
        }
        let per_sample = |sum: f64| sum / sums.n;
        let weights = self.parameters.iter().map(|weight| f64::from(*weight)).sum::<f64>();
        at.check_finite("the embedding's loss", per_sample(sums.cross_entropy + sums.kl))?;
        at.check_finite("the gradient's norm", total_norm)?;
        at.check_finite("the sum of the embedding's weights", weights)?;
        let metrics = BTreeMap::from([
            ("embedding/cross_entropy", per_sample(sums.cross_entropy)),
            ("embedding/divergence", per_sample(sums.kl)),
            ("embedding/accuracy", per_sample(sums.n_correct)),
            ("embedding/kl_weight", kl_weight),
            ("embedding/samples", n_rows as f64),
            ("embedding/gradient_norm", total_norm / n_steps),
            ("charts/learning_rate", keys.embedding_rate),
        ]);
        Ok(IterationResult { n_steps: n_decisions, metrics })
    }

    /// Computes the gradient of one batch, as a sum over fixed shards in their order.
    fn gradient(&mut self, order: &[u32], kl_weight: f32, seed: Seed) -> SampleSums {
        let EmbeddingStage { embedding, parameters, samples, tuple_rows, shards, .. } = self;
        embedding.layout().transpose(parameters, &mut self.transposed);
        embedding.encode(parameters, tuple_rows);
        let distributions = &tuple_rows.out[..];
        let job = BatchJob { parameters, transposed: &self.transposed, samples, distributions, order, seed };
        for_each_shard_with(&mut self.workspaces, shards, |rows, index, shard| {
            accumulate(embedding, &job, index, rows, shard);
        });
        let parts: Vec<&[f32]> = shards.iter().map(|shard| &shard.gradients[..]).collect();
        sum_gradients(self.workspaces.len(), &parts, &mut self.gradients);
        let mut sums = SampleSums::default();
        for shard in shards.iter() {
            kernels::add(&mut tuple_rows.d_out, &shard.d_distributions);
            sums.add(&shard.sums);
        }
        // All samples of a tuple have the same KL divergence.
        let mut counts = vec![0u32; embedding.n_tuples()];
        for row in order {
            counts[usize::from(samples.tuples[*row as usize])] += 1;
        }
        let n = 2 * embedding.latent_size();
        for (tuple, count) in counts.iter().enumerate() {
            let share = *count as f32 / order.len() as f32;
            let kl = gaussian::kl_from_standard(
                &tuple_rows.out[tuple * n..][..n],
                kl_weight * share,
                &mut tuple_rows.d_out[tuple * n..][..n],
            );
            sums.kl += f64::from(kl) * f64::from(*count);
        }
        embedding.encode_backward(&self.transposed, &mut self.gradients, tuple_rows);
        sums
    }
}

/// The weight of the KL divergence. In each cycle it rises linearly from 0 to β.
fn kl_weight_at(keys: &GscuConfig, steps: f64) -> f64 {
    let progress = (steps / keys.embedding_steps as f64).min(1.0 - 1e-9);
    keys.embedding_kl_weight * (progress * keys.embedding_kl_cycles as f64).fract()
}

/// Adds the gradient of the cross-entropy over one shard of a batch.
fn accumulate(
    embedding: &Embedding,
    job: &BatchJob<'_>,
    index: usize,
    rows: &mut SampleBuffers,
    shard: &mut BatchShard,
) {
    let (n, n_actions) = (embedding.latent_size(), embedding.n_actions());
    let size = embedding.tower.layers()[0].n_in();
    shard.gradients.fill(0.0);
    shard.d_distributions.fill(0.0);
    shard.sums = SampleSums::default();
    let total = job.order.len();
    let weight = 1.0 / total as f32;
    let mut rng = job.seed.child("shard", &[index as u64]).stream("noise");
    let own = &job.order[total * index / N_SHARDS..total * (index + 1) / N_SHARDS];
    for chunk in own.chunks(CHUNK_ROWS) {
        let n_rows = chunk.len();
        rows.observations.clear();
        rows.distributions.clear();
        for &row in chunk {
            let row = row as usize;
            rows.observations.extend_from_slice(&job.samples.observations[row * size..][..size]);
            let tuple = usize::from(job.samples.tuples[row]);
            rows.distributions.extend_from_slice(&job.distributions[tuple * 2 * n..][..2 * n]);
        }
        let noise = ensure_len(&mut rows.noise, n_rows * n);
        fill_normal(&mut rng, noise);
        let latents = ensure_len(&mut rows.latents, n_rows * n);
        gaussian::sample(&rows.distributions, noise, n, latents);
        embedding.decode(job.parameters, &rows.observations, latents, n_rows, &mut rows.decoder);
        for (place, &row) in chunk.iter().enumerate() {
            let action = usize::from(job.samples.actions[row as usize]);
            let range = place * n_actions..(place + 1) * n_actions;
            let probabilities = &rows.decoder.probabilities[range.clone()];
            let is_correct = probabilities.iter().all(|other| *other <= probabilities[action]);
            let loss = cross_entropy(probabilities, action, weight, &mut rows.decoder.d_logits[range]);
            shard.sums.cross_entropy += f64::from(loss);
            shard.sums.n_correct += f64::from(u8::from(is_correct));
        }
        shard.sums.n += n_rows as f64;
        embedding.decode_backward(
            job.transposed,
            &mut shard.gradients,
            &rows.observations,
            latents,
            n_rows,
            &mut rows.decoder,
        );
        let d_distributions = ensure_len(&mut rows.d_distributions, n_rows * 2 * n);
        d_distributions.fill(0.0);
        let d_latents = &rows.decoder.d_latents[..n_rows * n];
        gaussian::sample_backward(&rows.distributions, noise, n, d_latents, d_distributions);
        for (&row, d_distribution) in chunk.iter().zip(d_distributions.chunks_exact(2 * n)) {
            let tuple = usize::from(job.samples.tuples[row as usize]);
            kernels::add(&mut shard.d_distributions[tuple * 2 * n..][..2 * n], d_distribution);
        }
    }
}

impl SampleSums {
    fn add(&mut self, other: &SampleSums) {
        self.n += other.n;
        self.cross_entropy += other.cross_entropy;
        self.kl += other.kl;
        self.n_correct += other.n_correct;
    }
}

#[cfg(test)]
mod tests {
    use pace_games::{Preset, Seed, find_game};
    use serde_json::Map;

    use super::{EmbeddingStage, kl_weight_at};
    use crate::config::TrainConfig;
    use crate::methods::gscu::embedding::Embedding;
    use crate::methods::gscu::keys_of;
    use crate::network::NetworkDims;
    use crate::policy::Policy;
    use crate::preset::paper_keys;

    fn config() -> TrainConfig {
        paper_keys("kuhn-poker", "gscu")
    }

    #[test]
    fn the_weight_of_the_kl_divergence_rises_twice() {
        let config = config();
        let keys = keys_of(&config);
        let at = |share: f64| kl_weight_at(keys, share * keys.embedding_steps as f64);
        assert_eq!(at(0.0), 0.0);
        for (share, weight) in [(0.25, 0.005), (0.4999999, 0.01), (0.5, 0.0), (0.75, 0.005), (1.5, 0.01)] {
            assert!((at(share) - weight).abs() < 1e-6, "{share}: {} {weight}", at(share));
        }
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let game = find_game("kuhn-poker").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("the game");
        let mut config = config();
        let keys = config.gscu.as_mut().expect("keys");
        (keys.embedding_width, keys.latent_size, keys.embedding_encounters_per_tuple) = (7, 3, 1);
        let embedding = Embedding::new(NetworkDims::of(game.spec()), 40, keys);
        let weights = embedding.initialise(Seed::new(3));
        let ego = Policy::scripted(&*game, "random").expect("every game has it");
        let mut stage = EmbeddingStage::new(&*game, &embedding, weights, &config, &[2, 7, 31], &ego, 1);
        for sampler in &mut stage.samplers {
            sampler.collect(20, Seed::new(5)).expect("a distribution");
            stage.samples.append(&mut sampler.samples);
        }
        assert_eq!(stage.samples.len(), 60, "one action of the peer per hand");
        let order: Vec<u32> = (0..60).rev().collect();
        let kl_weight = 0.3;
        let mut loss = |stage: &mut EmbeddingStage| {
            let sums = stage.gradient(&order, kl_weight, Seed::new(9));
            (sums.cross_entropy + f64::from(kl_weight) * sums.kl) / sums.n
        };
        loss(&mut stage);
        let gradients = stage.gradients.clone();
        let mut n_nonzero = 0;
        for tensor in embedding.layout().tensors() {
            for index in tensor.id.range().step_by(5) {
                let at = |moved: f32,
                          stage: &mut EmbeddingStage,
                          loss: &mut dyn FnMut(&mut EmbeddingStage) -> f64| {
                    let before = stage.parameters[index];
                    stage.parameters[index] = before + moved;
                    let found = loss(stage);
                    stage.parameters[index] = before;
                    found
                };
                let step = 2e-3;
                let slope = (at(step, &mut stage, &mut loss) - at(-step, &mut stage, &mut loss))
                    / 2.0
                    / f64::from(step);
                let found = f64::from(gradients[index]);
                // If a ReLU switches on or off between the two points, the slope is that of neither side.
                assert!(
                    (slope - found).abs() < 4e-4 + 0.03 * slope.abs(),
                    "{}: {found} {slope}",
                    tensor.name
                );
                n_nonzero += usize::from(found.abs() > 1e-3);
            }
        }
        assert!(n_nonzero > 20, "{n_nonzero}");
    }
}
