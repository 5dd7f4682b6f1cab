//! PACE: the network, the pass that acts, and the pass that learns.
//!
//! The exploration reward is paid in `rollout`; credit is assigned in `gae`; the order of updates is in `ppo`.

use std::ops::Range;

use pace_games::{Action, GameError, GameSpec, NO_ACTION, PoolListing, Seed};
use pace_nn::product::ProductShape;
use pace_nn::{Parameters, PrefixMeans};

use super::{CHUNK_ROWS, Method, check_minibatch};
use crate::batch::Batch;
use crate::config::{ContextAction, EmptyContext, EmptyEpisode, Identify, Minibatch, TrainConfig};
use crate::context::RunningContext;
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{ActorCritic, ActorCriticRows, ContextEncoder, EncoderRows, PeerIdentifier, fit};
use crate::network::{Acted, Decisions, Network, Sizes};
use crate::ppo::policy_and_value;

/// The paper's method.
pub(crate) const PACE: Method =
    Method::of::<PaceNet>("pace", "context encoder, peer identification, exploration reward", |_| {});

/// Its first ablation.
pub(crate) const PACE_REWARD: Method =
    Method::of::<PaceNet>("pace-reward", "PACE without the exploration reward", |config| {
        config.exploration_weight = 0.0;
    });

/// Its second.
pub(crate) const PACE_REWARD_AUX: Method = Method::of::<PaceNet>(
    "pace-reward-aux",
    "PACE without exploration reward, identification and warm-up",
    |config| {
        config.exploration_weight = 0.0;
        config.auxiliary_weight = 0.0;
        config.warm_up_steps = 0;
    },
);

/// The layout of PACE's weights and the shape of what goes in and out.
#[derive(Clone, Debug)]
pub(crate) struct PaceNet {
    encoder: ContextEncoder,
    identifier: PeerIdentifier,
    actor_critic: ActorCritic,
    sizes: Sizes,
    context_action: ContextAction,
    empty_context: EmptyContext,
    empty_episode: EmptyEpisode,
    layout: Parameters,
    /// Encoder and identifier come first among the parameters; the warm-up trains these alone.
    n_warm_up_parameters: usize,
}

impl Network for PaceNet {
    type Context = RunningContext;
    type ActRows = PaceActRows;
    type LearnRows = PaceLearnRows;

    const METRICS: &'static [&'static str] = &["peer/aux_loss", "peer/posterior", "peer/top1"];

    fn new(spec: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> PaceNet {
        let mut layout = Parameters::default();
        let sizes = Sizes::of(spec);
        let width = config.encoder_width;
        let encoder = ContextEncoder::new(&mut layout, sizes.observation, sizes.n_actions, width);
        let identifier = PeerIdentifier::new(&mut layout, width, pool, config.identify);
        let n_warm_up_parameters = layout.len();
        let actor_critic =
            ActorCritic::new(&mut layout, sizes.observation, width, config.hidden_width, sizes.n_actions);
        PaceNet {
            encoder,
            identifier,
            actor_critic,
            sizes,
            context_action: config.context_action,
            empty_context: config.empty_context,
            empty_episode: config.empty_episode,
            layout,
            n_warm_up_parameters,
        }
    }

    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), GameError> {
        if config.identify == Identify::Traits && pool.traits.iter().any(|slot| slot[0].is_empty()) {
            let expected = "\"classes\": the peers of this game have no traits";
            return Err(GameError::bad_value("identify", &"traits", expected));
        }
        check_minibatch(config, &[Minibatch::Encounters, Minibatch::Balanced, Minibatch::Steps])
    }

    fn layout(&self) -> &Parameters {
        &self.layout
    }

    fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut parameters = self.layout.clone();
        self.encoder.initialise(&mut parameters, &mut seed.stream("encoder"));
        self.identifier.initialise(&mut parameters, &mut seed.stream("identifier"));
        self.actor_critic.initialise(&mut parameters, &mut seed.stream("actor-critic"));
        parameters.values
    }

    fn group_ends(&self) -> Vec<usize> {
        vec![self.n_warm_up_parameters, self.layout.len()]
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn slots(&self) -> Vec<Range<usize>> {
        self.identifier.slots().to_vec()
    }

    fn context(&self, window: Option<usize>) -> RunningContext {
        RunningContext::new(self.width(), self.empty_episode, window)
    }

    fn forget(&self, context: &mut RunningContext) {
        context.clear();
    }

    fn act(
        &self,
        parameters: &[f32],
        observations: &[f32],
        contexts: &[RunningContext],
        lanes: &[usize],
        rows: &mut PaceActRows,
    ) {
        let (n_rows, width) = (lanes.len(), self.width());
        let pooled = fit(&mut rows.pooled, n_rows * width);
        rows.is_empty.clear();
        for (pooled, lane) in pooled.chunks_exact_mut(width).zip(lanes) {
            contexts[*lane].pool_into(pooled);
            rows.is_empty.push(contexts[*lane].is_empty());
        }
        self.encoder.encode_pooled(parameters, pooled, n_rows, &mut rows.latents);
        let latents = &mut rows.latents.out[..n_rows * width];
        self.blank_empty(latents, &rows.is_empty);
        let (n_outputs, n_posteriors) = (self.identifier.n_outputs(), self.identifier.n_posteriors());
        let outputs = fit(&mut rows.outputs, n_rows * n_outputs);
        let room = fit(&mut rows.room, n_rows * n_outputs);
        let guesses = fit(&mut rows.guesses, n_rows * n_outputs);
        self.identifier.forward(parameters, latents, n_rows, outputs, room, guesses);
        let posteriors = fit(&mut rows.posteriors, n_rows * n_posteriors);
        for (guesses, posteriors) in
            guesses.chunks_exact(n_outputs).zip(posteriors.chunks_exact_mut(n_posteriors))
        {
            self.identifier.posteriors(guesses, posteriors);
        }
        self.actor_critic.forward(parameters, observations, latents, n_rows, &mut rows.decisions);
    }

    fn acted<'a>(&self, rows: &'a PaceActRows) -> Acted<'a> {
        Acted {
            logits: rows.decisions.logits(),
            values: rows.decisions.values(),
            posteriors: &rows.posteriors,
            latents: &rows.latents.out,
            latent_size: self.width(),
        }
    }

    fn confidence(&self, rows: &PaceActRows, row: usize, slot: usize, class: usize) -> f32 {
        let n_outputs = self.identifier.n_outputs();
        self.identifier.confidence(&rows.guesses[row * n_outputs..][..n_outputs], slot, class)
    }

    fn take_in(
        &self,
        parameters: &[f32],
        decisions: &Decisions<'_>,
        contexts: &mut [RunningContext],
        lanes: &[usize],
        rows: &mut PaceActRows,
    ) {
        rows.actions.clear();
        match self.context_action {
            ContextAction::Ego => rows.actions.extend_from_slice(decisions.ego_actions),
            ContextAction::Peer => rows.actions.extend(self.first_peers(decisions.peer_actions)),
        }
        self.encoder.encode_entries(parameters, decisions.observations, &rows.actions, &mut rows.entries);
        for (features, lane) in rows.entries.out.chunks_exact(self.width()).zip(lanes) {
            contexts[*lane].add_entry(features);
        }
    }

    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [RunningContext],
        lanes: &[usize],
        rows: &mut PaceActRows,
    ) {
        rows.actions.clear();
        rows.actions.resize(lanes.len(), NO_ACTION);
        self.encoder.encode_entries(parameters, terminal_observations, &rows.actions, &mut rows.entries);
        for (features, lane) in rows.entries.out.chunks_exact(self.width()).zip(lanes) {
            contexts[*lane].end_episode(features);
        }
    }

    fn transpose(&self, parameters: &[f32], transposed: &mut [f32]) {
        let encoder_and_identifier = self.encoder.layers().chain(self.identifier.layers());
        for layer in encoder_and_identifier.chain(self.actor_critic.layers()) {
            layer.transpose(parameters, transposed);
        }
    }

    fn accumulate(
        &self,
        parameters: &[f32],
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut PaceLearnRows,
        shard: &mut UpdateShard,
    ) {
        for chunk in job.chunks(CHUNK_ROWS) {
            self.accumulate_chunk([parameters, transposed], job, chunk, rows, shard);
        }
    }

    fn products(&self, job: &UpdateJob<'_>) -> Vec<ProductShape> {
        let mut products = Vec::new();
        for chunk in job.chunks(CHUNK_ROWS) {
            let count = |lengths: fn(&Batch, usize) -> usize| -> usize {
                chunk.iter().map(|encounter| lengths(job.batch, *encounter as usize)).sum()
            };
            let n_decisions = count(|batch, encounter| batch.decisions(encounter).len());
            let n_episodes = count(|batch, encounter| batch.episodes(encounter).len());
            products.extend(self.encoder.products(n_decisions + n_episodes, n_decisions));
            products.extend(self.identifier.products(n_decisions));
            products.extend(self.actor_critic.products(n_decisions));
        }
        products
    }
}

impl PaceNet {
    fn width(&self) -> usize {
        self.encoder.width()
    }

    /// The first peer's action of every step, of those of all peers.
    fn first_peers<'a>(&self, peer_actions: &'a [Action]) -> impl Iterator<Item = Action> + use<'a> {
        peer_actions.iter().step_by(self.sizes.n_peers).copied()
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

    fn accumulate_chunk(
        &self,
        [parameters, transposed]: [&[f32]; 2],
        job: &UpdateJob<'_>,
        chunk: &[u32],
        rows: &mut PaceLearnRows,
        shard: &mut UpdateShard,
    ) {
        let batch = job.batch;
        let (size, width) = (self.sizes.observation, self.width());
        let UpdateShard { gradients, sums } = shard;
        self.gather(chunk, job, rows);
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
            let n_outputs = self.identifier.n_outputs();
            let outputs = fit(&mut rows.outputs, n_selected * n_outputs);
            let d_outputs = fit(&mut rows.d_outputs, n_selected * n_outputs);
            let guesses = fit(&mut rows.probabilities, n_selected * n_outputs);
            self.identifier.forward(parameters, latents, n_selected, outputs, d_outputs, guesses);
            let share = 1.0 / self.identifier.slots().len() as f32;
            let weight = job.weights.per_row * job.weights.auxiliary * share;
            for (row, encounter) in rows.encounters.iter().enumerate() {
                let classes = &job.classes[batch.tuples[*encounter as usize] as usize];
                let guesses = &guesses[row * n_outputs..][..n_outputs];
                let d_outputs = &mut d_outputs[row * n_outputs..][..n_outputs];
                for (slot, class) in classes.iter().enumerate() {
                    let terms = self.identifier.learn(guesses, slot, *class, weight, d_outputs);
                    let [all_losses, all_confidence, identified] = &mut sums.own;
                    *all_losses += f64::from(terms.loss * share);
                    *all_confidence += f64::from(terms.confidence * share);
                    *identified += f64::from(u8::from(terms.is_right)) * f64::from(share);
                }
            }
            self.identifier.backward(transposed, gradients, latents, outputs, d_outputs, d_latents);
        } else {
            d_latents.fill(0.0);
        }

        // Policy and value, once the warm-up is over.
        if let Some(weights) = &job.weights.policy {
            self.actor_critic.forward(parameters, observations, latents, n_selected, &mut rows.decisions);
            let n_actions = self.sizes.n_actions;
            let probabilities = fit(&mut rows.probabilities, n_selected * n_actions);
            let mut policy_rows = rows.decisions.policy_rows(n_selected, n_actions, probabilities);
            policy_and_value(job, weights, &rows.batch_rows, &mut policy_rows, sums);
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

    /// Brings the inputs of a chunk together.
    fn gather(&self, chunk: &[u32], job: &UpdateJob<'_>, rows: &mut PaceLearnRows) {
        let (batch, size) = (job.batch, self.sizes.observation);
        rows.spans.clear();
        rows.observations.clear();
        rows.actions.clear();
        rows.lengths.clear();
        rows.selected.clear();
        rows.batch_rows.clear();
        rows.encounters.clear();
        rows.is_empty.clear();
        for encounter in chunk {
            let decisions = batch.decisions(*encounter as usize);
            let episodes = batch.episodes(*encounter as usize);
            let first_row = rows.actions.len();
            let first_episode = rows.lengths.len();
            for decision in decisions.clone() {
                if job.is_due(decision) {
                    rows.selected.push(first_row + decision - decisions.start);
                    rows.batch_rows.push(decision);
                    rows.encounters.push(*encounter);
                    rows.is_empty.push(decision == decisions.start);
                }
            }
            rows.observations
                .extend_from_slice(&batch.observations[decisions.start * size..decisions.end * size]);
            let n_peers = self.sizes.n_peers;
            match self.context_action {
                ContextAction::Ego => rows.actions.extend_from_slice(&batch.actions[decisions]),
                ContextAction::Peer => {
                    let told = &batch.peer_actions[decisions.start * n_peers..decisions.end * n_peers];
                    rows.actions.extend(self.first_peers(told));
                }
            }
            rows.lengths.extend_from_slice(&batch.episode_lengths[episodes]);
            rows.spans.push(Span {
                decisions: first_row..rows.actions.len(),
                episodes: first_episode..rows.lengths.len(),
            });
        }
        rows.n_decisions = rows.actions.len();
        for encounter in chunk {
            let episodes = batch.episodes(*encounter as usize);
            rows.observations
                .extend_from_slice(&batch.terminal_observations[episodes.start * size..episodes.end * size]);
        }
        rows.actions.resize(rows.n_decisions + rows.lengths.len(), NO_ACTION);
    }
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct PaceActRows {
    entries: EncoderRows,
    /// What is stored in the contexts with the entries.
    actions: Vec<Action>,
    pooled: Vec<f32>,
    is_empty: Vec<bool>,
    latents: EncoderRows,
    decisions: ActorCriticRows,
    /// What the identifier says, squashed and not, and the classes that makes likely.
    outputs: Vec<f32>,
    room: Vec<f32>,
    guesses: Vec<f32>,
    posteriors: Vec<f32>,
}

/// Where one encounter lies in a chunk.
#[derive(Clone, Debug)]
struct Span {
    decisions: Range<usize>,
    episodes: Range<usize>,
}

/// The inputs and activations of one chunk: what a thread works in, and finds still in its cache at the next chunk.
#[derive(Debug, Default)]
pub(crate) struct PaceLearnRows {
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
    outputs: Vec<f32>,
    d_outputs: Vec<f32>,
    /// Of classes, then of actions.
    probabilities: Vec<f32>,
    decisions: ActorCriticRows,
}
