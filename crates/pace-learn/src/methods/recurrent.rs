//! The network of the recurrent baselines differs from `pace.rs` in: a hidden state instead of context and encoder, one linear
//! layer each as actor and critic, and LIAM's model of the peers instead of the identifier.
//!
//! `generalist` and `liam` define the methods that use it.

use std::sync::Arc;

use pace_games::{ConfigError, GameSpec, PeerObservationMode, PoolListing, Seed};
use pace_nn::{Activation, Gru, InputPart, Layout, Mlp};

use super::check_baseline;
use crate::batch::{Batch, Segment};
use crate::config::{MinibatchUnit, TrainConfig};
use crate::learner::ShardUpdate;
use crate::nets::{
    ActorCritic, ActorCriticBuffers, HiddenState, PeerModel, PeerModelBuffers, RecurrentBlockBuffers,
    RecurrentEncoder, RecurrentStepBuffers,
};
use crate::network::{Actor, Contexts, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs, copy_to};

/// Approximate number of decisions in a block of chunks: enough sequences for fast products with their hidden states, few
/// enough to stay in the cache.
const BLOCK_ROWS: usize = 640;

/// Hidden state, actor and critic. A network that models its peers also has heads for them, and the ego's last action as input.
#[derive(Clone, Debug)]
pub(crate) struct RecurrentNet<const MODELS_PEERS: bool> {
    encoder: RecurrentEncoder,
    actor_critic: ActorCritic,
    peers: Option<PeerModel>,
    spec: Arc<NetworkSpec>,
    weights: Arc<Vec<f32>>,
}

pub(super) type RecurrentState = Contexts<HiddenState, RecurrentInferenceBuffers>;

impl<const MODELS_PEERS: bool> Actor for RecurrentNet<MODELS_PEERS> {
    type State = RecurrentState;

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, n_lanes: usize, _window: Option<usize>) -> RecurrentState {
        Contexts::new(self.encoder.context(), n_lanes)
    }

    fn clear_context(&self, state: &mut RecurrentState, lane: usize) {
        state.lanes[lane].clear();
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut RecurrentState,
        out: &mut PolicyOutputs,
    ) {
        let Contexts { lanes: contexts, buffers } = state;
        let hidden = self.encoder.step(&self.weights, observations, contexts, lanes, &mut buffers.encoder);
        copy_to(&mut out.latents, hidden);
        let parts = [InputPart::Dense(&out.latents)];
        self.actor_critic.forward(&self.weights, &parts, lanes.len(), &mut buffers.actor_critic);
        buffers.actor_critic.write_to(lanes.len(), out);
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut RecurrentState) {
        let Contexts { lanes: contexts, buffers } = state;
        self.encoder.store_step(decisions.ego_actions, contexts, lanes, &buffers.encoder);
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut RecurrentState) {
        let (contexts, buffers) = (&mut state.lanes, &mut state.buffers.encoder);
        self.encoder.end_episodes(&self.weights, terminal_observations, contexts, lanes, buffers);
    }

    fn save_state(&self, state: &RecurrentState, lane: usize, saved: &mut Vec<f32>) {
        self.encoder.save_state(&state.lanes[lane], saved);
    }

    fn carry(&self, state: &RecurrentState, lane: usize, carried: &mut Vec<f32>) {
        carried.extend_from_slice(&state.lanes[lane].hidden);
    }

    fn resume(&self, state: &mut RecurrentState, lane: usize, carried: &[f32]) {
        self.encoder.resume(&mut state.lanes[lane], carried);
    }
}

impl<const MODELS_PEERS: bool> Network for RecurrentNet<MODELS_PEERS> {
    type Buffers = RecurrentTrainingBuffers;

    fn new(game: &GameSpec, _pool: &PoolListing, config: &TrainConfig) -> Self {
        let mut layout = Layout::default();
        let (NetworkDims { observation, n_actions, n_peers }, relu) =
            (NetworkDims::of(game), Activation::Relu);
        let width = config.hidden_width;
        let input = if MODELS_PEERS { vec![observation, n_actions] } else { vec![observation] };
        let trunk = Mlp::new(&mut layout, "trunk", &input, &[width; 2], relu, relu);
        let actor_critic = ActorCritic::linear(&mut layout, width, n_actions);
        let gru = Gru::new(&mut layout, "gru", width, width);
        let peers = MODELS_PEERS.then(|| PeerModel::new(&mut layout, width, n_peers, observation, n_actions));
        let (rollout_sight, metrics) = match &peers {
            Some(_) => (PeerObservationMode::Recorded, PeerModel::METRICS),
            None => (PeerObservationMode::Skipped, &[][..]),
        };
        RecurrentNet {
            encoder: RecurrentEncoder::new(trunk, gru, MODELS_PEERS, config),
            peers,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                policy_head: actor_critic.policy_head(),
                rollout_sight,
                metrics,
                ..NetworkSpec::new(game, layout, width)
            }),
            actor_critic,
        }
    }

    fn check(config: &TrainConfig, _pool: &PoolListing) -> Result<(), ConfigError> {
        if config.minibatches_per_encounter != 1 {
            let (key, found) = ("minibatches_per_encounter", &config.minibatches_per_encounter);
            return Err(ConfigError::bad_value(key, found, "1 for this method"));
        }
        check_baseline(config, &[MinibatchUnit::Chunks])
    }

    fn initialise(&mut self, seed: Seed) {
        let weights = Arc::make_mut(&mut self.weights);
        self.encoder.initialise(weights, &mut seed.stream("trunk"));
        self.actor_critic.initialise(weights, &mut seed.stream("actor-critic"));
        if let Some(peers) = &self.peers {
            peers.initialise(weights, &mut seed.stream("peers"));
        }
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut Vec<f32> {
        Arc::make_mut(&mut self.weights)
    }

    fn segments(&self, batch: &Batch) -> Vec<Segment> {
        self.encoder.segments(batch)
    }

    fn accumulate(&self, update: &mut ShardUpdate<'_>, buffers: &mut RecurrentTrainingBuffers) {
        for segments in update.job.chunks(BLOCK_ROWS) {
            let RecurrentTrainingBuffers { encoder, actor_critic, peers } = buffers;
            self.encoder.gather(update.job, segments, self.spec.sizes, encoder);
            self.encoder.forward(update.weights, encoder);
            let (decisions, hidden, d_hidden) = self.encoder.decisions(encoder);
            d_hidden.fill(0.0);
            self.actor_critic.learn(update, decisions, &[InputPart::Dense(hidden)], d_hidden, actor_critic);
            if let Some(model) = &self.peers {
                model.learn(update, decisions, hidden, d_hidden, peers);
            }
            self.encoder.backward(update, encoder);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RecurrentInferenceBuffers {
    encoder: RecurrentStepBuffers,
    actor_critic: ActorCriticBuffers,
}

#[derive(Debug, Default)]
pub(crate) struct RecurrentTrainingBuffers {
    encoder: RecurrentBlockBuffers,
    actor_critic: ActorCriticBuffers,
    peers: PeerModelBuffers,
}
