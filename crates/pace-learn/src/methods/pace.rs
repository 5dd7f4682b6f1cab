//! PACE: a context encoder with an identifier of the peers, and actor and critic on its latent (docs/methods/pace.md).
//!
//! Every file of a method has these sections: `Method`, network, context, `Actor`, `Network`, the loss of a chunk, buffers.
//! The exploration reward is paid in `rollout`; credit is assigned in `gae`; the order of updates is in `ppo`.

use std::sync::Arc;

use pace_games::{Action, ConfigError, GameSpec, NO_ACTION, PoolListing, Seed};
use pace_nn::{Activation, DropoutKey, Layout, Linear};

use super::{Method, check_minibatch};
use crate::config::{ContextAction, EncoderKind, IdentifierTarget, MinibatchUnit, TrainConfig};
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{
    ActorCritic, ActorCriticBuffers, ContextChunk, Encoder, EncounterRange, PeerIdentifier, PoolEncoder,
    TransformerEncoder, ensure_len,
};
use crate::network::{Actor, Contexts, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs, copy_to};
use crate::ppo::policy_and_value;

/// The paper's method.
pub(crate) const PACE: Method =
    of_encoders("pace", "context encoder, peer identification, exploration reward", |_| {});

/// Its first ablation.
pub(crate) const PACE_REWARD: Method =
    of_encoders("pace-reward", "PACE without the exploration reward", |config| {
        config.exploration_weight = 0.0;
    });

/// Its second.
pub(crate) const PACE_REWARD_AUX: Method =
    of_encoders("pace-reward-aux", "PACE without exploration reward, identification and warm-up", |config| {
        config.exploration_weight = 0.0;
        config.auxiliary_weight = 0.0;
        config.warm_up_steps = 0;
    });

/// PACE with attention in place of the means.
pub(crate) const PACE_TF: Method =
    of_encoders("pace-tf", "PACE with a transformer as its context encoder", |config| {
        config.encoder = EncoderKind::Transformer;
        // With single steps every mini-batch would attend over all contexts again: hours would become weeks.
        if config.minibatch_unit == MinibatchUnit::Steps {
            config.minibatch_unit = MinibatchUnit::Encounters;
        }
    });

/// PACE or one of its ablations, with the encoder that the keys name.
const fn of_encoders(id: &'static str, summary: &'static str, adjust: fn(&mut TrainConfig)) -> Method {
    fn of(config: &TrainConfig) -> Method {
        match config.encoder {
            EncoderKind::MeanPool | EncoderKind::MeanMaxPool => {
                Method::of::<PaceNet<PoolEncoder>>("", "", |_| {})
            }
            EncoderKind::Transformer => Method::of::<PaceNet<TransformerEncoder>>("", "", |_| {}),
        }
    }
    Method {
        id,
        summary,
        adjust,
        need: |_| None,
        begin: |inputs, seed, n_threads| of(inputs.config).begin(inputs, seed, n_threads),
        load: |inputs, model| of(inputs.config).load(inputs, model),
        bench: |shape, config| of(&config).bench(shape, config),
    }
}

/// Encoder, identifier, actor and critic, with their weights.
#[derive(Clone, Debug)]
pub(crate) struct PaceNet<E: Encoder = PoolEncoder> {
    encoder: E,
    identifier: PeerIdentifier,
    actor_critic: ActorCritic,
    context_action: ContextAction,
    spec: Arc<NetworkSpec>,
    weights: Arc<Vec<f32>>,
}

impl<E: Encoder> Actor for PaceNet<E> {
    type State = Contexts<E::Context, PaceInferenceBuffers<E::InferenceBuffers>>;

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, n_lanes: usize, window: Option<usize>) -> Self::State {
        Contexts::new(self.encoder.context(window), n_lanes)
    }

    fn clear_context(&self, state: &mut Self::State, lane: usize) {
        self.encoder.clear(&mut state.lanes[lane]);
    }

    fn keep_last_episode(&self, state: &mut Self::State, lane: usize) {
        self.encoder.keep_last_episode(&mut state.lanes[lane]);
    }

    fn reveal_tuple(&self, state: &mut Self::State, lane: usize, _tuple: usize, seed: Seed) {
        let key = DropoutKey(u64::from(seed.stream("dropout").below(u32::MAX)));
        self.encoder.enable_rollout_dropout(&mut state.lanes[lane], key);
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut Self::State,
        out: &mut PolicyOutputs,
    ) {
        let (n_rows, weights, rows) = (lanes.len(), &self.weights[..], &mut state.buffers);
        self.encoder.encode(weights, &state.lanes, lanes, &mut rows.encoder);
        copy_to(&mut out.latents, &E::latents(&rows.encoder)[..n_rows * self.width()]);
        let (n_outputs, n_posteriors) = (self.identifier.n_outputs(), self.identifier.n_posteriors());
        let outputs = ensure_len(&mut rows.outputs, n_rows * n_outputs);
        let room = ensure_len(&mut rows.room, n_rows * n_outputs);
        out.guesses.resize(n_rows * n_outputs, 0.0);
        self.identifier.forward(weights, &out.latents, n_rows, outputs, room, &mut out.guesses);
        out.posteriors.resize(n_rows * n_posteriors, 0.0);
        let posteriors = out.posteriors.chunks_exact_mut(n_posteriors);
        for (guesses, posteriors) in out.guesses.chunks_exact(n_outputs).zip(posteriors) {
            self.identifier.posteriors(guesses, posteriors);
        }
        self.actor_critic.forward(weights, observations, &out.latents, n_rows, &mut rows.decisions);
        rows.decisions.write_to(n_rows, out);
    }

    fn confidence(&self, out: &PolicyOutputs, row: usize, slot: usize, class: usize) -> f32 {
        let n_outputs = self.identifier.n_outputs();
        self.identifier.confidence(&out.guesses[row * n_outputs..][..n_outputs], slot, class)
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut Self::State) {
        let Contexts { lanes: contexts, buffers } = state;
        buffers.actions.clear();
        match self.context_action {
            ContextAction::Ego => buffers.actions.extend_from_slice(decisions.ego_actions),
            ContextAction::Peer => {
                buffers.actions.extend(first_peers(decisions.peer_actions, self.spec.sizes.n_peers));
            }
        }
        let (observations, actions, rows) = (decisions.observations, &buffers.actions, &mut buffers.encoder);
        self.encoder.add_entries(&self.weights, observations, actions, contexts, lanes, rows);
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut Self::State) {
        let Contexts { lanes: contexts, buffers } = state;
        let rows = &mut buffers.encoder;
        self.encoder.end_episodes(&self.weights, terminal_observations, contexts, lanes, rows);
    }
}

impl<E: Encoder> Network for PaceNet<E> {
    type Buffers = PaceTrainingBuffers<E::TrainingBuffers>;

    fn new(game: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> PaceNet<E> {
        let mut layout = Layout::default();
        let NetworkDims { observation, n_actions, .. } = NetworkDims::of(game);
        let encoder = E::new(&mut layout, game, config);
        let width = encoder.width();
        let identifier = PeerIdentifier::new(&mut layout, width, pool, config.identifier_target);
        // The warm-up trains encoder and identifier alone.
        let n_warm_up_weights = layout.len();
        let (inputs, relu) = ([observation, width], Activation::Relu);
        let actor_critic = ActorCritic::new(&mut layout, inputs, config.hidden_width, n_actions, relu);
        PaceNet {
            encoder,
            actor_critic,
            context_action: config.context_action,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                group_ends: vec![n_warm_up_weights, layout.len()],
                slots: identifier.slots().to_vec(),
                sides: pool.symmetries.clone().filter(|_| config.canonical_frame),
                metrics: &["peer/aux_loss", "peer/posterior", "peer/top1"],
                ..NetworkSpec::new(game, layout, width)
            }),
            identifier,
        }
    }

    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), ConfigError> {
        if config.identifier_target == IdentifierTarget::Traits
            && pool.traits.iter().any(|slot| slot[0].is_empty())
        {
            let expected = "\"classes\": the peers of this game have no traits";
            return Err(ConfigError::bad_value("identifier_target", &"traits", expected));
        }
        if config.canonical_frame && pool.symmetries.is_none() {
            let expected = "false: this game and its training pool are not the same from several sides (with the key \
                            `rotated_tuples`, where a game has it, set it to true)";
            return Err(ConfigError::bad_value("canonical_frame", &true, expected));
        }
        if config.canonical_frame && config.context_action != ContextAction::Ego {
            let expected = "\"ego\" beside canonical_frame = true: what peers do is not turned";
            return Err(ConfigError::bad_value("context_action", &"peer", expected));
        }
        E::check(config)?;
        check_minibatch(config, &[MinibatchUnit::Encounters, MinibatchUnit::Balanced, MinibatchUnit::Steps])
    }

    fn initialise(&mut self, seed: Seed) {
        let weights = Arc::make_mut(&mut self.weights);
        self.encoder.initialise(weights, &mut seed.stream("encoder"));
        self.identifier.initialise(weights, &mut seed.stream("identifier"));
        self.actor_critic.initialise(weights, &mut seed.stream("actor-critic"));
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut Vec<f32> {
        Arc::make_mut(&mut self.weights)
    }

    fn policy_head(&self) -> &Linear {
        self.actor_critic.policy_head()
    }

    fn accumulate(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut Self::Buffers,
        shard: &mut UpdateShard,
    ) {
        for chunk in job.chunks(E::CHUNK_ROWS) {
            self.accumulate_chunk(transposed, job, chunk, rows, shard);
        }
    }
}

impl<E: Encoder> PaceNet<E> {
    fn width(&self) -> usize {
        self.encoder.width()
    }

    fn accumulate_chunk(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        chunk: &[u32],
        rows: &mut PaceTrainingBuffers<E::TrainingBuffers>,
        shard: &mut UpdateShard,
    ) {
        let (batch, parameters) = (job.batch, &self.weights[..]);
        let size = self.spec.sizes.observation;
        let UpdateShard { gradients, sums } = shard;
        self.gather(chunk, job, rows);
        let n_selected = rows.chunk.selected.len();
        // Every pass over these encounters drops other places.
        let key = job.dropout.map(|key| key.of(u64::from(chunk[0])));
        self.encoder.forward(parameters, &rows.chunk, key, &mut rows.encoder);
        let observations: &[f32] = if rows.chunk.is_whole() {
            &rows.chunk.observations[..n_selected * size]
        } else {
            let observations = ensure_len(&mut rows.selected_observations, n_selected * size);
            for (observation, decision) in observations.chunks_exact_mut(size).zip(&rows.chunk.selected) {
                observation.copy_from_slice(&rows.chunk.observations[decision * size..][..size]);
            }
            observations
        };
        let n_latents = n_selected * self.width();
        // The latents are read by the heads while their gradients are written.
        let (latents, d_latents) = E::latents_and_gradients(&mut rows.encoder);
        let (latents, d_latents) = (&latents[..n_latents], &mut d_latents[..n_latents]);

        // The identifier's loss, on every selected decision.
        if job.weights.auxiliary > 0.0 {
            let n_outputs = self.identifier.n_outputs();
            let outputs = ensure_len(&mut rows.outputs, n_selected * n_outputs);
            let d_outputs = ensure_len(&mut rows.d_outputs, n_selected * n_outputs);
            let guesses = ensure_len(&mut rows.probabilities, n_selected * n_outputs);
            self.identifier.forward(parameters, latents, n_selected, outputs, d_outputs, guesses);
            let share = 1.0 / self.identifier.slots().len() as f32;
            let weight = job.weights.per_row * job.weights.auxiliary * share;
            for (row, encounter) in rows.encounters.iter().enumerate() {
                let classes = &job.classes[batch.tuples[*encounter as usize] as usize];
                let side = usize::from(batch.sides[*encounter as usize]);
                let guesses = &guesses[row * n_outputs..][..n_outputs];
                let d_outputs = &mut d_outputs[row * n_outputs..][..n_outputs];
                for (slot, class) in classes.iter().enumerate() {
                    let class = self.spec.class_from(side, slot, *class);
                    let terms = self.identifier.learn(guesses, slot, class, weight, d_outputs);
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
            let mut policy_rows = rows.decisions.policy_rows(n_selected, &mut rows.probabilities);
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

        self.encoder.backward(transposed, gradients, &rows.chunk, key, &mut rows.encoder);
    }

    /// Brings the inputs of a chunk together.
    fn gather(&self, chunk: &[u32], job: &UpdateJob<'_>, rows: &mut PaceTrainingBuffers<E::TrainingBuffers>) {
        let (batch, size) = (job.batch, self.spec.sizes.observation);
        rows.chunk.clear();
        rows.batch_rows.clear();
        rows.encounters.clear();
        for encounter in chunk {
            let decisions = batch.decisions(*encounter as usize);
            let episodes = batch.episodes(*encounter as usize);
            let first_row = rows.chunk.actions.len();
            let first_episode = rows.chunk.lengths.len();
            for decision in decisions.clone() {
                if job.is_in_minibatch(decision) {
                    rows.chunk.selected.push(first_row + decision - decisions.start);
                    rows.batch_rows.push(decision);
                    rows.encounters.push(*encounter);
                    rows.chunk.is_first.push(decision == decisions.start);
                }
            }
            rows.chunk
                .observations
                .extend_from_slice(&batch.observations[decisions.start * size..decisions.end * size]);
            let n_peers = self.spec.sizes.n_peers;
            match self.context_action {
                ContextAction::Ego => rows.chunk.actions.extend_from_slice(&batch.actions[decisions]),
                ContextAction::Peer => {
                    let told = &batch.peer_actions[decisions.start * n_peers..decisions.end * n_peers];
                    rows.chunk.actions.extend(first_peers(told, n_peers));
                }
            }
            rows.chunk.lengths.extend_from_slice(&batch.episode_lengths[episodes]);
            rows.chunk.spans.push(EncounterRange {
                decisions: first_row..rows.chunk.actions.len(),
                episodes: first_episode..rows.chunk.lengths.len(),
            });
        }
        rows.chunk.n_decisions = rows.chunk.actions.len();
        for encounter in chunk {
            let episodes = batch.episodes(*encounter as usize);
            rows.chunk
                .observations
                .extend_from_slice(&batch.terminal_observations[episodes.start * size..episodes.end * size]);
        }
        rows.chunk.actions.resize(rows.chunk.n_decisions + rows.chunk.lengths.len(), NO_ACTION);
        let numbers = batch.numbers.as_ref().map(|numbers| {
            let encounters = || chunk.iter().map(|encounter| *encounter as usize);
            let decisions = encounters().flat_map(|one| &numbers.decisions[batch.decisions(one)]);
            decisions.chain(encounters().flat_map(|one| &numbers.ends[batch.episodes(one)])).copied()
        });
        rows.chunk.deduplicate(numbers, size);
    }
}

/// The first peer's action of every step, of those of all peers.
fn first_peers(peer_actions: &[Action], n_peers: usize) -> impl Iterator<Item = Action> {
    peer_actions.iter().step_by(n_peers).copied()
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct PaceInferenceBuffers<R> {
    encoder: R,
    /// What is stored in the contexts with the entries.
    actions: Vec<Action>,
    decisions: ActorCriticBuffers,
    /// What the identifier says before it is squashed, and room for as much.
    outputs: Vec<f32>,
    room: Vec<f32>,
}

/// The inputs and activations of one chunk: what a thread works in, and finds still in its cache at the next chunk.
#[derive(Debug, Default)]
pub(crate) struct PaceTrainingBuffers<R> {
    chunk: ContextChunk,
    encoder: R,
    /// The selected decisions, as rows of the batch and by encounter.
    batch_rows: Vec<usize>,
    encounters: Vec<u32>,
    selected_observations: Vec<f32>,
    outputs: Vec<f32>,
    d_outputs: Vec<f32>,
    /// Of classes, then of actions.
    probabilities: Vec<f32>,
    decisions: ActorCriticBuffers,
}
