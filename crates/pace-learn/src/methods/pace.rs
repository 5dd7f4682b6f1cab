//! PACE: the network, the pass that acts, and the pass that learns.
//!
//! The exploration reward is paid in `rollout`; credit is assigned in `gae`; the order of updates is in `ppo`.

use std::ops::Range;

use pace_games::{Action, GameError, GameSpec, NO_ACTION, PoolListing, Seed, Sides};
use pace_nn::{Activation, DropoutKey, Layout, Linear};

use super::{Method, check_minibatch};
use crate::config::{ContextAction, EncoderKind, Identify, Minibatch, TrainConfig};
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{
    ActorCritic, ActorCriticRows, ContextChunk, Encoder, PeerIdentifier, PoolEncoder, Span,
    TransformerEncoder, fit,
};
use crate::network::{Acted, Decisions, Network, Sizes};
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
        if config.minibatch == Minibatch::Steps {
            config.minibatch = Minibatch::Encounters;
        }
    });

/// PACE or one of its ablations, with the encoder that the keys name.
const fn of_encoders(id: &'static str, summary: &'static str, adjust: fn(&mut TrainConfig)) -> Method {
    fn of(config: &TrainConfig) -> Method {
        match config.encoder {
            EncoderKind::Means | EncoderKind::MeansAndMaxima => {
                Method::of::<PaceNet<PoolEncoder>>("", "", |_| {})
            }
            EncoderKind::Transformer => Method::of::<PaceNet<TransformerEncoder>>("", "", |_| {}),
        }
    }
    Method {
        id,
        summary,
        adjust,
        begin: |setting, seed, n_threads| of(setting.config).begin(setting, seed, n_threads),
        load: |setting, model| of(setting.config).load(setting, model),
        bench: |shape, config| of(&config).bench(shape, config),
    }
}

/// The layout of PACE's weights and the shape of what goes in and out.
#[derive(Clone, Debug)]
pub(crate) struct PaceNet<E: Encoder = PoolEncoder> {
    encoder: E,
    identifier: PeerIdentifier,
    actor_critic: ActorCritic,
    sizes: Sizes,
    context_action: ContextAction,
    /// Where the ego looks from its own.
    sides: Option<Sides>,
    layout: Layout,
    /// Encoder and identifier come first among the parameters; the warm-up trains these alone.
    n_warm_up_parameters: usize,
}

impl<E: Encoder> Network for PaceNet<E> {
    type Context = E::Context;
    type ActRows = PaceActRows<E::ActRows>;
    type LearnRows = PaceLearnRows<E::LearnRows>;

    const METRICS: &'static [&'static str] = &["peer/aux_loss", "peer/posterior", "peer/top1"];

    fn new(spec: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> PaceNet<E> {
        let mut layout = Layout::default();
        let sizes = Sizes::of(spec);
        let encoder = E::new(&mut layout, spec, config);
        let width = encoder.width();
        let identifier = PeerIdentifier::new(&mut layout, width, pool, config.identify);
        let n_warm_up_parameters = layout.len();
        let actor_critic = ActorCritic::new(
            &mut layout,
            [sizes.observation, width],
            config.hidden_width,
            sizes.n_actions,
            Activation::Relu,
        );
        PaceNet {
            encoder,
            identifier,
            actor_critic,
            sizes,
            context_action: config.context_action,
            sides: pool.sides.clone().filter(|_| config.own_side),
            layout,
            n_warm_up_parameters,
        }
    }

    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), GameError> {
        if config.identify == Identify::Traits && pool.traits.iter().any(|slot| slot[0].is_empty()) {
            let expected = "\"classes\": the peers of this game have no traits";
            return Err(GameError::bad_value("identify", &"traits", expected));
        }
        if config.own_side && pool.sides.is_none() {
            let expected = "false: this game and its training pool are not the same from several sides (with the key \
                            `turned_tuples`, where a game has it, set it to true)";
            return Err(GameError::bad_value("own_side", &true, expected));
        }
        if config.own_side && config.context_action != ContextAction::Ego {
            let expected = "\"ego\" beside own_side = true: what peers do is not turned";
            return Err(GameError::bad_value("context_action", &"peer", expected));
        }
        E::check(config)?;
        check_minibatch(config, &[Minibatch::Encounters, Minibatch::Balanced, Minibatch::Steps])
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn policy_head(&self) -> &Linear {
        self.actor_critic.policy_head()
    }

    fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.len()];
        self.encoder.initialise(&mut weights, &mut seed.stream("encoder"));
        self.identifier.initialise(&mut weights, &mut seed.stream("identifier"));
        self.actor_critic.initialise(&mut weights, &mut seed.stream("actor-critic"));
        weights
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

    fn sides(&self) -> Option<&Sides> {
        self.sides.as_ref()
    }

    fn context(&self, window: Option<usize>) -> E::Context {
        self.encoder.context(window)
    }

    fn forget(&self, context: &mut E::Context) {
        self.encoder.forget(context);
    }

    fn forget_but_last(&self, context: &mut E::Context) {
        self.encoder.forget_but_last(context);
    }

    fn tell(&self, context: &mut E::Context, _tuple: usize, seed: Seed) {
        self.encoder.drop_in_play(context, DropoutKey(u64::from(seed.stream("dropout").below(u32::MAX))));
    }

    fn act(
        &self,
        parameters: &[f32],
        observations: &[f32],
        contexts: &[E::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    ) {
        let n_rows = lanes.len();
        self.encoder.encode(parameters, contexts, lanes, &mut rows.encoder);
        let latents = &E::latents(&rows.encoder)[..n_rows * self.width()];
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

    fn acted<'a>(&self, rows: &'a Self::ActRows) -> Acted<'a> {
        Acted {
            logits: rows.decisions.logits(),
            values: rows.decisions.values(),
            posteriors: &rows.posteriors,
            latents: E::latents(&rows.encoder),
            latent_size: self.width(),
        }
    }

    fn confidence(&self, rows: &Self::ActRows, row: usize, slot: usize, class: usize) -> f32 {
        let n_outputs = self.identifier.n_outputs();
        self.identifier.confidence(&rows.guesses[row * n_outputs..][..n_outputs], slot, class)
    }

    fn take_in(
        &self,
        parameters: &[f32],
        decisions: &Decisions<'_>,
        contexts: &mut [E::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    ) {
        rows.actions.clear();
        match self.context_action {
            ContextAction::Ego => rows.actions.extend_from_slice(decisions.ego_actions),
            ContextAction::Peer => {
                rows.actions.extend(first_peers(decisions.peer_actions, self.sizes.n_peers));
            }
        }
        let (observations, actions) = (decisions.observations, &rows.actions);
        self.encoder.add_entries(parameters, observations, actions, contexts, lanes, &mut rows.encoder);
    }

    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [E::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    ) {
        self.encoder.end_episodes(parameters, terminal_observations, contexts, lanes, &mut rows.encoder);
    }

    fn accumulate(
        &self,
        parameters: &[f32],
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut PaceLearnRows<E::LearnRows>,
        shard: &mut UpdateShard,
    ) {
        for chunk in job.chunks(E::CHUNK_ROWS) {
            self.accumulate_chunk([parameters, transposed], job, chunk, rows, shard);
        }
    }
}

impl<E: Encoder> PaceNet<E> {
    fn width(&self) -> usize {
        self.encoder.width()
    }

    fn accumulate_chunk(
        &self,
        [parameters, transposed]: [&[f32]; 2],
        job: &UpdateJob<'_>,
        chunk: &[u32],
        rows: &mut PaceLearnRows<E::LearnRows>,
        shard: &mut UpdateShard,
    ) {
        let batch = job.batch;
        let size = self.sizes.observation;
        let UpdateShard { gradients, sums } = shard;
        self.gather(chunk, job, rows);
        let n_selected = rows.chunk.selected.len();
        // Every pass over these encounters drops other places.
        let key = job.dropout.map(|key| key.of(u64::from(chunk[0])));
        self.encoder.forward(parameters, &rows.chunk, key, &mut rows.encoder);
        let observations: &[f32] = if rows.chunk.is_whole() {
            &rows.chunk.observations[..n_selected * size]
        } else {
            let observations = fit(&mut rows.selected_observations, n_selected * size);
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
            let outputs = fit(&mut rows.outputs, n_selected * n_outputs);
            let d_outputs = fit(&mut rows.d_outputs, n_selected * n_outputs);
            let guesses = fit(&mut rows.probabilities, n_selected * n_outputs);
            self.identifier.forward(parameters, latents, n_selected, outputs, d_outputs, guesses);
            let share = 1.0 / self.identifier.slots().len() as f32;
            let weight = job.weights.per_row * job.weights.auxiliary * share;
            for (row, encounter) in rows.encounters.iter().enumerate() {
                let classes = &job.classes[batch.tuples[*encounter as usize] as usize];
                let side = usize::from(batch.sides[*encounter as usize]);
                let guesses = &guesses[row * n_outputs..][..n_outputs];
                let d_outputs = &mut d_outputs[row * n_outputs..][..n_outputs];
                for (slot, class) in classes.iter().enumerate() {
                    let class = self.class_from(side, slot, *class);
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

        self.encoder.backward(transposed, gradients, &rows.chunk, key, &mut rows.encoder);
    }

    /// Brings the inputs of a chunk together.
    fn gather(&self, chunk: &[u32], job: &UpdateJob<'_>, rows: &mut PaceLearnRows<E::LearnRows>) {
        let (batch, size) = (job.batch, self.sizes.observation);
        rows.chunk.clear();
        rows.batch_rows.clear();
        rows.encounters.clear();
        for encounter in chunk {
            let decisions = batch.decisions(*encounter as usize);
            let episodes = batch.episodes(*encounter as usize);
            let first_row = rows.chunk.actions.len();
            let first_episode = rows.chunk.lengths.len();
            for decision in decisions.clone() {
                if job.is_due(decision) {
                    rows.chunk.selected.push(first_row + decision - decisions.start);
                    rows.batch_rows.push(decision);
                    rows.encounters.push(*encounter);
                    rows.chunk.is_first.push(decision == decisions.start);
                }
            }
            rows.chunk
                .observations
                .extend_from_slice(&batch.observations[decisions.start * size..decisions.end * size]);
            let n_peers = self.sizes.n_peers;
            match self.context_action {
                ContextAction::Ego => rows.chunk.actions.extend_from_slice(&batch.actions[decisions]),
                ContextAction::Peer => {
                    let told = &batch.peer_actions[decisions.start * n_peers..decisions.end * n_peers];
                    rows.chunk.actions.extend(first_peers(told, n_peers));
                }
            }
            rows.chunk.lengths.extend_from_slice(&batch.episode_lengths[episodes]);
            rows.chunk.spans.push(Span {
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
        rows.chunk.find_recurring(numbers, size);
    }
}

/// The first peer's action of every step, of those of all peers.
fn first_peers(peer_actions: &[Action], n_peers: usize) -> impl Iterator<Item = Action> {
    peer_actions.iter().step_by(n_peers).copied()
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct PaceActRows<R> {
    encoder: R,
    /// What is stored in the contexts with the entries.
    actions: Vec<Action>,
    decisions: ActorCriticRows,
    /// What the identifier says, squashed and not, and the classes that makes likely.
    outputs: Vec<f32>,
    room: Vec<f32>,
    guesses: Vec<f32>,
    posteriors: Vec<f32>,
}

/// The inputs and activations of one chunk: what a thread works in, and finds still in its cache at the next chunk.
#[derive(Debug, Default)]
pub(crate) struct PaceLearnRows<R> {
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
    decisions: ActorCriticRows,
}
