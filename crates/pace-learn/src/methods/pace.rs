//! PACE: a context encoder with an identifier of the peers, and actor and critic on its latent (docs/methods/pace.md).
//!
//! Every file of a method has these sections: `Method`, network, `Actor`, `Network` with the loss of a chunk, buffers.
//! The exploration reward is paid in `rollout`; advantages are estimated in `gae`; the order of updates is in `ppo`.

use std::sync::Arc;

use pace_games::{Action, ConfigError, GameSpec, PoolListing, Seed};
use pace_nn::{Activation, DropoutKey, Layout};

use super::{Constructors, Method, check_minibatch};
use crate::config::{ContextAction, EncoderKind, IdentifierTarget, MinibatchUnit, TrainConfig};
use crate::learner::{ShardUpdate, UpdateJob};
use crate::nets::{
    ActorCritic, ActorCriticBuffers, ContextChunk, Encoder, IdentifierBuffers, PeerIdentifier, PoolEncoder,
    TransformerEncoder, latent_parts, store_actions,
};
use crate::network::{Actor, Contexts, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs};

/// The paper's method.
pub(crate) const PACE: Method =
    variant("pace", "context encoder, peer identification, exploration reward", |_| {});

/// The first ablation.
pub(crate) const PACE_REWARD: Method =
    variant("pace-reward", "PACE without the exploration reward", |config| {
        config.exploration_weight = 0.0;
    });

/// The second ablation.
pub(crate) const PACE_REWARD_AUX: Method =
    variant("pace-reward-aux", "PACE without exploration reward, identification and warm-up", |config| {
        config.exploration_weight = 0.0;
        config.auxiliary_weight = 0.0;
        config.warm_up_steps = 0;
    });

/// PACE with attention instead of means.
pub(crate) const PACE_TF: Method =
    variant("pace-tf", "PACE with a transformer as its context encoder", |config| {
        config.encoder = EncoderKind::Transformer;
        // With single steps every mini-batch would attend over all contexts again, which takes weeks instead of hours.
        if config.minibatch_unit == MinibatchUnit::Steps {
            config.minibatch_unit = MinibatchUnit::Encounters;
        }
    });

/// PACE or one of its variants, with the encoder that the keys name.
const fn variant(id: &'static str, summary: &'static str, adjust: fn(&mut TrainConfig)) -> Method {
    let constructors = |config: &TrainConfig| match config.encoder {
        EncoderKind::MeanPool | EncoderKind::MeanMaxPool => Constructors::of::<PaceNet<PoolEncoder>>(),
        EncoderKind::Transformer => Constructors::of::<PaceNet<TransformerEncoder>>(),
    };
    Method { constructors, ..Method::of::<PaceNet>(id, summary, adjust) }
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

    fn begin(&self, state: &mut Self::State, lane: usize, seed: Seed) {
        self.clear_context(state, lane);
        self.encoder.enable_evaluation_dropout(&mut state.lanes[lane], dropout_key(seed));
    }

    fn clear_context(&self, state: &mut Self::State, lane: usize) {
        self.encoder.clear(&mut state.lanes[lane]);
    }

    fn keep_last_episode(&self, state: &mut Self::State, lane: usize) {
        self.encoder.keep_last_episode(&mut state.lanes[lane]);
    }

    fn reveal_tuple(&self, state: &mut Self::State, lane: usize, _tuple: usize, seed: Seed) {
        self.encoder.enable_rollout_dropout(&mut state.lanes[lane], dropout_key(seed));
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut Self::State,
        out: &mut PolicyOutputs,
    ) {
        let Contexts { lanes: contexts, buffers } = state;
        let (n_rows, weights) = (lanes.len(), &self.weights[..]);
        self.encoder.encode(weights, contexts, lanes, &mut buffers.encoder, &mut out.latents);
        self.identifier.predict(weights, n_rows, &mut buffers.identifier, out);
        let parts = latent_parts(observations, &out.latents);
        self.actor_critic.forward(weights, &parts, n_rows, &mut buffers.actor_critic);
        buffers.actor_critic.write_to(n_rows, out);
    }

    fn confidence(&self, out: &PolicyOutputs, row: usize, slot: usize, class: usize) -> f32 {
        let n_outputs = self.identifier.n_outputs();
        self.identifier.confidence(&out.predictions[row * n_outputs..][..n_outputs], slot, class)
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut Self::State) {
        let Contexts { lanes: contexts, buffers: PaceInferenceBuffers { encoder, stored_actions, .. } } =
            state;
        let Decisions { observations, ego_actions, peer_actions, .. } = *decisions;
        let n_peers = self.spec.sizes.n_peers;
        stored_actions.clear();
        store_actions(self.context_action, ego_actions, peer_actions, n_peers, stored_actions);
        self.encoder.add_entries(&self.weights, observations, stored_actions, contexts, lanes, encoder);
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut Self::State) {
        let (contexts, buffers) = (&mut state.lanes, &mut state.buffers.encoder);
        self.encoder.end_episodes(&self.weights, terminal_observations, contexts, lanes, buffers);
    }
}

/// The dropout of an encounter with this seed.
fn dropout_key(seed: Seed) -> DropoutKey {
    DropoutKey(u64::from(seed.stream("dropout").below(u32::MAX)))
}

impl<E: Encoder> Network for PaceNet<E> {
    type Buffers = PaceTrainingBuffers<E::TrainingBuffers>;

    fn new(game: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> PaceNet<E> {
        let mut layout = Layout::default();
        let (NetworkDims { observation, n_actions, .. }, relu) = (NetworkDims::of(game), Activation::Relu);
        let encoder = E::new(&mut layout, game, config);
        let width = encoder.width();
        let identifier = PeerIdentifier::new(&mut layout, width, pool, config.identifier_target);
        // The warm-up trains encoder and identifier alone.
        let n_warm_up_weights = layout.len();
        let inputs = [observation, width];
        let actor_critic = ActorCritic::new(&mut layout, inputs, config.hidden_width, n_actions, relu);
        PaceNet {
            encoder,
            context_action: config.context_action,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                group_ends: vec![n_warm_up_weights, layout.len()],
                policy_head: actor_critic.policy_head(),
                slots: identifier.slots().to_vec(),
                sides: pool.symmetries.clone().filter(|_| config.canonical_frame),
                metrics: PeerIdentifier::METRICS,
                ..NetworkSpec::new(game, layout, width)
            }),
            identifier,
            actor_critic,
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
            let expected = "false: this game and its training pool have no symmetries (if the game has the key \
                            `rotated_tuples`, set it to true)";
            return Err(ConfigError::bad_value("canonical_frame", &true, expected));
        }
        if config.canonical_frame && config.context_action != ContextAction::Ego {
            let expected = "\"ego\" with canonical_frame = true: actions of peers are not transformed";
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

    fn accumulate(&self, update: &mut ShardUpdate<'_>, buffers: &mut Self::Buffers) {
        let job = update.job;
        for encounters in job.chunks(E::CHUNK_ROWS) {
            let PaceTrainingBuffers { chunk, classes, encoder, identifier, actor_critic } = buffers;
            chunk.gather(job, encounters, self.spec.sizes, self.context_action);
            self.gather_classes(job, &chunk.encounters, classes);
            // Every chunk of every gradient step drops other features.
            let key = job.dropout.map(|key| key.of(u64::from(encounters[0])));
            self.encoder.forward(update.weights, chunk, key, encoder);
            let n_latents = chunk.selected.len() * self.encoder.width();
            let (latents, d_latents) = E::latents_and_gradients(encoder);
            let (latents, d_latents) = (&latents[..n_latents], &mut d_latents[..n_latents]);
            self.identifier.learn(update, classes, latents, d_latents, identifier);
            let parts = latent_parts(chunk.selected_observations(self.spec.sizes.observation), latents);
            self.actor_critic.learn(update, &chunk.batch_rows, &parts, d_latents, actor_critic);
            self.encoder.backward(update.transposed, update.gradients, chunk, key, encoder);
        }
    }
}

impl<E: Encoder> PaceNet<E> {
    /// Writes the classes of all peers in these encounters, as the ego sees them from its side.
    fn gather_classes(&self, job: &UpdateJob<'_>, encounters: &[u32], classes: &mut Vec<usize>) {
        classes.clear();
        for encounter in encounters {
            let tuple = job.batch.tuples[*encounter as usize];
            let side = usize::from(job.batch.sides[*encounter as usize]);
            let of_peers = job.classes[tuple as usize].iter().enumerate();
            classes.extend(of_peers.map(|(slot, class)| self.spec.class_from(side, slot, *class)));
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct PaceInferenceBuffers<B> {
    encoder: B,
    /// The actions of the entries that are added to the contexts.
    stored_actions: Vec<Action>,
    identifier: IdentifierBuffers,
    actor_critic: ActorCriticBuffers,
}

/// The inputs and activations of one chunk. Each thread has its own, which stay in its cache from chunk to chunk.
#[derive(Debug, Default)]
pub(crate) struct PaceTrainingBuffers<B> {
    chunk: ContextChunk,
    /// The classes of all peers at every selected decision.
    classes: Vec<usize>,
    encoder: B,
    identifier: IdentifierBuffers,
    actor_critic: ActorCriticBuffers,
}
