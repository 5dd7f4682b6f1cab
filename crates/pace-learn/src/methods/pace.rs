//! PACE: the network, the pass that acts, and the pass that learns.
//!
//! The exploration reward is paid in `rollout`; credit is assigned in `gae`; the order of updates is in `train`.

use pace_games::{Action, GameSpec, NO_ACTION, Seed};
use pace_nn::loss::{PolicyLoss, clipped_value, cross_entropy, softmax_rows};
use pace_nn::product::ProductShape;
use pace_nn::{Parameters, PrefixMeans};

use crate::batch::Batch;
use crate::config::{EmptyContext, EmptyEpisode, TrainConfig};
use crate::nets::{ActorCritic, ActorCriticRows, ContextEncoder, EncoderRows, PeerIdentifier, fit};

/// Rows that are passed through the network together: about what keeps a chunk's activations in the second cache.
const CHUNK_ROWS: usize = 160;

/// The layout of PACE's weights and the shape of what goes in and out.
#[derive(Clone, Debug)]
pub(crate) struct PaceNet {
    encoder: ContextEncoder,
    identifier: PeerIdentifier,
    actor_critic: ActorCritic,
    observation_size: usize,
    n_actions: usize,
    empty_context: EmptyContext,
    empty_episode: EmptyEpisode,
    layout: Parameters,
    /// Encoder and identifier come first among the parameters; the warm-up trains these alone.
    n_warm_up_parameters: usize,
}

impl PaceNet {
    pub(crate) fn new(spec: &GameSpec, n_classes: &[usize], config: &TrainConfig) -> PaceNet {
        let mut layout = Parameters::default();
        let (observation_size, n_actions) = (spec.observation_size, spec.n_actions());
        let width = config.encoder_width;
        let encoder = ContextEncoder::new(&mut layout, observation_size, n_actions, width);
        let identifier = PeerIdentifier::new(&mut layout, width, n_classes);
        let n_warm_up_parameters = layout.len();
        let actor_critic =
            ActorCritic::new(&mut layout, observation_size, width, config.hidden_width, n_actions);
        PaceNet {
            encoder,
            identifier,
            actor_critic,
            observation_size,
            n_actions,
            empty_context: config.empty_context,
            empty_episode: config.empty_episode,
            layout,
            n_warm_up_parameters,
        }
    }

    /// First weights (methods.md 2.3).
    pub(crate) fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut parameters = self.layout.clone();
        self.encoder.initialise(&mut parameters, &mut seed.stream("encoder"));
        self.identifier.initialise(&mut parameters, &mut seed.stream("identifier"));
        self.actor_critic.initialise(&mut parameters, &mut seed.stream("actor-critic"));
        parameters.values
    }

    pub(crate) fn layout(&self) -> &Parameters {
        &self.layout
    }

    pub(crate) fn n_warm_up_parameters(&self) -> usize {
        self.n_warm_up_parameters
    }

    pub(crate) fn width(&self) -> usize {
        self.encoder.width()
    }

    pub(crate) fn n_actions(&self) -> usize {
        self.n_actions
    }

    pub(crate) fn observation_size(&self) -> usize {
        self.observation_size
    }

    pub(crate) fn n_posteriors(&self) -> usize {
        self.identifier.n_logits()
    }

    /// The place of each peer's posterior in a row of posteriors.
    pub(crate) fn slots(&self) -> Vec<std::ops::Range<usize>> {
        self.identifier.slots().collect()
    }

    /// f on context entries: one row of features per entry, in `rows.features`.
    pub(crate) fn encode_entries(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        rows: &mut ActRows,
    ) {
        self.encoder.encode_entries(parameters, observations, actions, &mut rows.entries);
    }

    /// Policy, value and posterior of `n_rows` decisions, given what each sees and its pooled context.
    pub(crate) fn act(
        &self,
        parameters: &[f32],
        observations: &[f32],
        pooled: &[f32],
        is_empty: &[bool],
        rows: &mut ActRows,
    ) {
        let n_rows = is_empty.len();
        self.encoder.encode_pooled(parameters, pooled, n_rows, &mut rows.latents);
        let latents = &mut rows.latents.out[..n_rows * self.width()];
        self.blank_empty(latents, is_empty);
        let n_posteriors = n_rows * self.n_posteriors();
        let class_logits = fit(&mut rows.class_logits, n_posteriors);
        self.identifier.forward(parameters, latents, n_rows, class_logits);
        let log_posteriors = fit(&mut rows.log_posteriors, n_posteriors);
        let posteriors = fit(&mut rows.posteriors, n_posteriors);
        self.identifier.posteriors(class_logits, log_posteriors, posteriors);
        self.actor_critic.forward(parameters, observations, latents, n_rows, &mut rows.decisions);
    }

    /// χ(∅) = 0 where the paper's text is followed.
    fn blank_empty(&self, rows: &mut [f32], is_empty: &[bool]) {
        if self.empty_context == EmptyContext::Zero {
            for (row, is_empty) in rows.chunks_exact_mut(self.width()).zip(is_empty) {
                if *is_empty {
                    row.fill(0.0);
                }
            }
        }
    }

    /// Cuts encounters into chunks of about [`CHUNK_ROWS`] decisions.
    fn chunks<'a>(&self, batch: &'a Batch, mut encounters: &'a [u32]) -> impl Iterator<Item = &'a [u32]> {
        std::iter::from_fn(move || {
            let mut n_rows = 0;
            let n_taken = encounters
                .iter()
                .take_while(|encounter| {
                    let fits = n_rows < CHUNK_ROWS;
                    n_rows += batch.decisions(**encounter as usize).len();
                    fits
                })
                .count();
            let (chunk, rest) = encounters.split_at(n_taken);
            encounters = rest;
            (!chunk.is_empty()).then_some(chunk)
        })
    }

    /// Prepares the way back: the weights of all layers, transposed, in the layout of the parameters.
    pub(crate) fn transpose(&self, parameters: &[f32], transposed: &mut [f32]) {
        let encoder_and_identifier = self.encoder.layers().chain(self.identifier.layers());
        for layer in encoder_and_identifier.chain(self.actor_critic.layers()) {
            layer.transpose(parameters, transposed);
        }
    }

    /// Adds the gradient of the loss over the selected decisions of some encounters to the shard; `transposed` is what
    /// [`PaceNet::transpose`] made of the parameters.
    pub(crate) fn accumulate(
        &self,
        parameters: &[f32],
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut ChunkRows,
        shard: &mut UpdateShard,
    ) {
        for chunk in self.chunks(job.batch, job.encounters) {
            self.accumulate_chunk([parameters, transposed], job, chunk, rows, shard);
        }
    }

    /// The matrix products of [`PaceNet::accumulate`] on whole encounters.
    pub(crate) fn products(&self, batch: &Batch, encounters: &[u32]) -> Vec<ProductShape> {
        let mut products = Vec::new();
        for chunk in self.chunks(batch, encounters) {
            let count = |lengths: fn(&Batch, usize) -> usize| -> usize {
                chunk.iter().map(|encounter| lengths(batch, *encounter as usize)).sum()
            };
            let n_decisions = count(|batch, encounter| batch.decisions(encounter).len());
            let n_episodes = count(|batch, encounter| batch.episodes(encounter).len());
            products.extend(self.encoder.products(n_decisions + n_episodes, n_decisions));
            products.extend(self.identifier.products(n_decisions));
            products.extend(self.actor_critic.products(n_decisions));
        }
        products
    }

    fn accumulate_chunk(
        &self,
        [parameters, transposed]: [&[f32]; 2],
        job: &UpdateJob<'_>,
        chunk: &[u32],
        rows: &mut ChunkRows,
        shard: &mut UpdateShard,
    ) {
        let batch = job.batch;
        let (size, width) = (self.observation_size, self.width());
        let UpdateShard { gradients, sums } = shard;
        rows.gather(batch, chunk, size, job);
        let (n_decisions, n_selected) = (rows.n_decisions, rows.selected.len());

        // Forward: f on every entry, the mean of means, then everything else on the selected decisions.
        self.encoder.encode_entries(parameters, &rows.observations, &rows.actions, &mut rows.entries);
        let (features, terminals) = rows.entries.out.split_at(n_decisions * width);
        let empty_episode = match self.empty_episode {
            EmptyEpisode::LeftOut => pace_nn::EmptyEpisode::LeftOut,
            EmptyEpisode::CountsAsZero => pace_nn::EmptyEpisode::CountsAsZero,
        };
        let means = rows.means.get_or_insert_with(|| PrefixMeans::new(width, empty_episode));
        let all_pooled = fit(&mut rows.all_pooled, n_decisions * width);
        for span in &rows.spans {
            means.forward(
                &features[span.decisions.start * width..span.decisions.end * width],
                &terminals[span.episodes.start * width..span.episodes.end * width],
                &rows.lengths[span.episodes.clone()],
                &mut all_pooled[span.decisions.start * width..span.decisions.end * width],
            );
        }
        let is_whole = n_selected == n_decisions;
        let (observations, pooled): (&[f32], &[f32]) = if is_whole {
            (&rows.observations[..n_decisions * size], all_pooled)
        } else {
            let pooled = fit(&mut rows.pooled, n_selected * width);
            let observations = fit(&mut rows.selected_observations, n_selected * size);
            for (row, &decision) in rows.selected.iter().enumerate() {
                pooled[row * width..][..width].copy_from_slice(&all_pooled[decision * width..][..width]);
                observations[row * size..][..size]
                    .copy_from_slice(&rows.observations[decision * size..][..size]);
            }
            (observations, pooled)
        };
        self.encoder.encode_pooled(parameters, pooled, n_selected, &mut rows.latents);
        let n_latents = n_selected * width;
        self.blank_empty(&mut rows.latents.out[..n_latents], &rows.is_empty);
        // The latents are read by the heads while their gradients are written: two buffers of one struct.
        let EncoderRows { out: latents, d_out: d_latents, .. } = &mut rows.latents;
        let (latents, d_latents) = (&latents[..n_latents], &mut d_latents[..n_latents]);

        // The identifier's loss, on every selected decision.
        if job.weights.auxiliary > 0.0 {
            let n_logits = self.identifier.n_logits();
            let logits = fit(&mut rows.logits, n_selected * n_logits);
            self.identifier.forward(parameters, latents, n_selected, logits);
            let d_logits = fit(&mut rows.d_logits, n_selected * n_logits);
            let posteriors = fit(&mut rows.probabilities, n_selected * n_logits);
            self.identifier.posteriors(logits, d_logits, posteriors);
            let slots = rows.slots.get_or_insert_with(|| self.slots());
            let share = 1.0 / slots.len() as f32;
            let weight = job.weights.per_row * job.weights.auxiliary * share;
            for (row, encounter) in rows.encounters.iter().enumerate() {
                let classes = &job.classes[batch.tuples[*encounter as usize] as usize];
                for (slot, class) in slots.iter().zip(classes) {
                    let place = row * n_logits + slot.start;
                    let posterior = &posteriors[place..][..slot.len()];
                    let d_logits = &mut d_logits[place..][..slot.len()];
                    let loss = cross_entropy(posterior, *class, weight, d_logits);
                    sums.auxiliary_loss += f64::from(loss * share);
                    sums.posterior += f64::from(posterior[*class] * share);
                    sums.identified += f64::from(u8::from(is_first(posterior, *class))) * f64::from(share);
                }
            }
            self.identifier.backward(transposed, gradients, latents, logits, d_logits, d_latents);
        } else {
            d_latents.fill(0.0);
        }

        // Policy and value, once the warm-up is over.
        if let Some(weights) = &job.weights.policy {
            self.actor_critic.forward(parameters, observations, latents, n_selected, &mut rows.decisions);
            let n_actions = self.n_actions;
            let (logits, d_logits) = rows.decisions.logits_and_gradient(n_selected * n_actions);
            let probabilities = fit(&mut rows.probabilities, n_selected * n_actions);
            softmax_rows(logits, &[n_actions], d_logits, probabilities);
            for (row, &decision) in rows.batch_rows.iter().enumerate() {
                let terms = weights.row(
                    &probabilities[row * n_actions..][..n_actions],
                    usize::from(batch.actions[decision]),
                    batch.log_probabilities[decision],
                    batch.advantages[decision],
                    job.weights.per_row,
                    &mut d_logits[row * n_actions..][..n_actions],
                );
                sums.policy_loss += f64::from(terms.loss);
                sums.entropy += f64::from(terms.entropy);
                sums.divergence += f64::from(terms.divergence);
                sums.clipped += f64::from(u8::from(terms.is_clipped));
            }
            let (values, d_values) = rows.decisions.values_and_gradient();
            for (row, &decision) in rows.batch_rows.iter().enumerate() {
                let (old, target) = (batch.values[decision], batch.targets[decision]);
                let (loss, gradient) = clipped_value(values[row], old, target, job.weights.value_clip);
                d_values[row] = job.weights.per_row * job.weights.value * gradient;
                sums.value_loss += f64::from(loss);
            }
            self.actor_critic.backward(
                transposed,
                gradients,
                observations,
                latents,
                n_selected,
                &mut rows.decisions,
                d_latents,
            );
        }
        sums.n += n_selected as f64;

        // Back through g, the mean of means, and f.
        if self.empty_context == EmptyContext::Zero {
            for (row, is_empty) in d_latents.chunks_exact_mut(width).zip(&rows.is_empty) {
                if *is_empty {
                    row.fill(0.0);
                }
            }
        }
        let d_pooled = fit(&mut rows.d_pooled, n_latents);
        self.encoder.pooled_backward(transposed, gradients, pooled, &mut rows.latents, d_pooled);
        let d_all_pooled: &[f32] = if is_whole {
            d_pooled
        } else {
            let d_all_pooled = fit(&mut rows.d_all_pooled, n_decisions * width);
            d_all_pooled.fill(0.0);
            for (row, &decision) in rows.selected.iter().enumerate() {
                d_all_pooled[decision * width..][..width].copy_from_slice(&d_pooled[row * width..][..width]);
            }
            d_all_pooled
        };
        let (d_features, d_terminals) = rows.entries.d_out.split_at_mut(n_decisions * width);
        for span in &rows.spans {
            means.backward(
                &d_all_pooled[span.decisions.start * width..span.decisions.end * width],
                &rows.lengths[span.episodes.clone()],
                &mut d_features[span.decisions.start * width..span.decisions.end * width],
                &mut d_terminals[span.episodes.start * width..span.episodes.end * width],
            );
        }
        self.encoder.entries_backward(
            transposed,
            gradients,
            &rows.observations,
            &rows.actions,
            &mut rows.entries,
        );
    }
}

/// Whether a class has the highest posterior; of equal ones the first counts.
fn is_first(posterior: &[f32], class: usize) -> bool {
    let (before, rest) = posterior.split_at(class);
    before.iter().all(|other| *other < rest[0]) && rest.iter().all(|other| *other <= rest[0])
}

/// The rows of a pass that acts.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActRows {
    entries: EncoderRows,
    latents: EncoderRows,
    decisions: ActorCriticRows,
    class_logits: Vec<f32>,
    log_posteriors: Vec<f32>,
    posteriors: Vec<f32>,
}

impl ActRows {
    pub(crate) fn features(&self) -> &[f32] {
        &self.entries.out
    }

    pub(crate) fn latents(&self) -> &[f32] {
        &self.latents.out
    }

    pub(crate) fn logits(&self) -> &[f32] {
        self.decisions.logits()
    }

    pub(crate) fn values(&self) -> &[f32] {
        self.decisions.values()
    }

    pub(crate) fn posteriors(&self) -> &[f32] {
        &self.posteriors
    }
}

/// The weights of the terms of the loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossWeights {
    /// The share of one decision in the mean.
    pub(crate) per_row: f32,
    pub(crate) auxiliary: f32,
    pub(crate) value: f32,
    pub(crate) value_clip: f32,
    /// Absent during the warm-up.
    pub(crate) policy: Option<PolicyLoss>,
}

/// What one shard has to do in one gradient step.
#[derive(Clone, Debug)]
pub(crate) struct UpdateJob<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) encounters: &'a [u32],
    /// The mini-batch each decision belongs to, and the one that is due; all decisions where absent.
    pub(crate) selection: Option<(&'a [u32], u32)>,
    /// The classes of each training tuple.
    pub(crate) classes: &'a [Vec<usize>],
    pub(crate) weights: LossWeights,
}

/// Sums over decisions, for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct UpdateSums {
    pub(crate) n: f64,
    pub(crate) policy_loss: f64,
    pub(crate) value_loss: f64,
    pub(crate) entropy: f64,
    pub(crate) divergence: f64,
    pub(crate) clipped: f64,
    pub(crate) auxiliary_loss: f64,
    pub(crate) posterior: f64,
    pub(crate) identified: f64,
}

impl UpdateSums {
    pub(crate) fn add(&mut self, other: &UpdateSums) {
        self.n += other.n;
        self.policy_loss += other.policy_loss;
        self.value_loss += other.value_loss;
        self.entropy += other.entropy;
        self.divergence += other.divergence;
        self.clipped += other.clipped;
        self.auxiliary_loss += other.auxiliary_loss;
        self.posterior += other.posterior;
        self.identified += other.identified;
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

/// Where one encounter lies in a chunk.
#[derive(Clone, Debug)]
struct Span {
    decisions: std::ops::Range<usize>,
    episodes: std::ops::Range<usize>,
}

/// The inputs and activations of one chunk: what a thread works in, and finds still in its cache at the next chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkRows {
    spans: Vec<Span>,
    n_decisions: usize,
    /// The entries of all contexts: first those of all decisions, then those of all ends of episodes, so that f is one
    /// pass and the decisions are still one block.
    observations: Vec<f32>,
    actions: Vec<Action>,
    lengths: Vec<u32>,
    /// The selected decisions, as rows of the chunk, as rows of the batch, and by encounter.
    selected: Vec<usize>,
    batch_rows: Vec<usize>,
    encounters: Vec<u32>,
    is_empty: Vec<bool>,
    selected_observations: Vec<f32>,
    entries: EncoderRows,
    means: Option<PrefixMeans>,
    all_pooled: Vec<f32>,
    d_all_pooled: Vec<f32>,
    pooled: Vec<f32>,
    d_pooled: Vec<f32>,
    latents: EncoderRows,
    logits: Vec<f32>,
    d_logits: Vec<f32>,
    /// Of classes, then of actions.
    probabilities: Vec<f32>,
    slots: Option<Vec<std::ops::Range<usize>>>,
    decisions: ActorCriticRows,
}

impl ChunkRows {
    fn gather(&mut self, batch: &Batch, chunk: &[u32], size: usize, job: &UpdateJob<'_>) {
        self.spans.clear();
        self.observations.clear();
        self.actions.clear();
        self.lengths.clear();
        self.selected.clear();
        self.batch_rows.clear();
        self.encounters.clear();
        self.is_empty.clear();
        for encounter in chunk {
            let decisions = batch.decisions(*encounter as usize);
            let episodes = batch.episodes(*encounter as usize);
            let first_row = self.actions.len();
            let first_episode = self.lengths.len();
            for decision in decisions.clone() {
                if job.selection.is_none_or(|(assigned, due)| assigned[decision] == due) {
                    self.selected.push(first_row + decision - decisions.start);
                    self.batch_rows.push(decision);
                    self.encounters.push(*encounter);
                    self.is_empty.push(decision == decisions.start);
                }
            }
            self.observations
                .extend_from_slice(&batch.observations[decisions.start * size..decisions.end * size]);
            self.actions.extend_from_slice(&batch.context_actions[decisions]);
            self.lengths.extend_from_slice(&batch.episode_lengths[episodes]);
            self.spans.push(Span {
                decisions: first_row..self.actions.len(),
                episodes: first_episode..self.lengths.len(),
            });
        }
        self.n_decisions = self.actions.len();
        for encounter in chunk {
            let episodes = batch.episodes(*encounter as usize);
            self.observations
                .extend_from_slice(&batch.terminal_observations[episodes.start * size..episodes.end * size]);
        }
        self.actions.resize(self.n_decisions + self.lengths.len(), NO_ACTION);
    }
}
