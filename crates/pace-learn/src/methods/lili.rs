//! LILI differs from `pace.rs` in: a context of the previous episode only, and a predictor of rewards and next observations instead
//! of the identifier (`docs/methods/lili.md`).

use std::sync::Arc;

use pace_games::{ConfigError, GameSpec, PoolListing, Seed};
use pace_nn::{Activation, Layout};

use super::{Method, baseline, check_baseline};
use crate::config::{ContextAction, MinibatchUnit, TrainConfig};
use crate::learner::ShardUpdate;
use crate::nets::{
    ActorCritic, ActorCriticBuffers, CHUNK_ROWS, PreviousEpisode, PreviousEpisodeEncoder,
    PreviousEpisodeInferenceBuffers, PreviousEpisodeTrainingBuffers, TransitionBuffers, TransitionPredictor,
    Transitions, latent_parts,
};
use crate::network::{Actor, Contexts, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs};

/// The method.
pub(crate) const LILI: Method =
    Method::of::<LiliNet>("lili", "latent of the previous episode, which predicts the next one", |config| {
        baseline(config);
        config.context_action = ContextAction::Ego;
    });

/// Encoder, predictor, actor and critic, with their weights.
#[derive(Clone, Debug)]
pub(crate) struct LiliNet {
    encoder: PreviousEpisodeEncoder,
    predictor: TransitionPredictor,
    actor_critic: ActorCritic,
    spec: Arc<NetworkSpec>,
    weights: Arc<Vec<f32>>,
}

type LiliState = Contexts<PreviousEpisode, LiliInferenceBuffers>;

impl Actor for LiliNet {
    type State = LiliState;

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, n_lanes: usize, _window: Option<usize>) -> LiliState {
        Contexts::new(self.encoder.context(), n_lanes)
    }

    fn clear_context(&self, state: &mut LiliState, lane: usize) {
        state.lanes[lane].clear();
    }

    fn keep_last_episode(&self, _state: &mut LiliState, _lane: usize) {
        // Between two episodes the context is the last episode.
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut LiliState,
        out: &mut PolicyOutputs,
    ) {
        let Contexts { lanes: contexts, buffers } = state;
        self.encoder.encode(&self.weights, contexts, lanes, &mut buffers.encoder, &mut out.latents);
        let parts = latent_parts(observations, &out.latents);
        self.actor_critic.forward(&self.weights, &parts, lanes.len(), &mut buffers.actor_critic);
        buffers.actor_critic.write_to(lanes.len(), out);
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut LiliState) {
        let Decisions { observations, ego_actions, .. } = *decisions;
        let (contexts, buffers) = (&mut state.lanes, &mut state.buffers.encoder);
        self.encoder.add_entries(&self.weights, observations, ego_actions, contexts, lanes, buffers);
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut LiliState) {
        let (contexts, buffers) = (&mut state.lanes, &mut state.buffers.encoder);
        self.encoder.end_episodes(&self.weights, terminal_observations, contexts, lanes, buffers);
    }
}

impl Network for LiliNet {
    type Buffers = LiliTrainingBuffers;

    fn new(game: &GameSpec, _pool: &PoolListing, config: &TrainConfig) -> LiliNet {
        let mut layout = Layout::default();
        let (NetworkDims { observation, n_actions, .. }, relu) = (NetworkDims::of(game), Activation::Relu);
        let (width, hidden_width) = (config.encoder_width, config.hidden_width);
        let encoder = PreviousEpisodeEncoder::new(&mut layout, game, config);
        let predictor = TransitionPredictor::new(&mut layout, observation, n_actions, width, hidden_width);
        let inputs = [observation, width];
        let actor_critic = ActorCritic::new(&mut layout, inputs, hidden_width, n_actions, relu);
        LiliNet {
            encoder,
            predictor,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                policy_head: actor_critic.policy_head(),
                metrics: TransitionPredictor::METRICS,
                ..NetworkSpec::new(game, layout, width)
            }),
            actor_critic,
        }
    }

    fn check(config: &TrainConfig, _pool: &PoolListing) -> Result<(), ConfigError> {
        check_baseline(config, &[MinibatchUnit::Encounters, MinibatchUnit::Balanced, MinibatchUnit::Steps])?;
        if config.context_action != ContextAction::Ego {
            return Err(ConfigError::bad_value("context_action", &"peer", "\"ego\" for this method"));
        }
        Ok(())
    }

    fn initialise(&mut self, seed: Seed) {
        let weights = Arc::make_mut(&mut self.weights);
        self.encoder.initialise(weights, &mut seed.stream("encoder"));
        self.predictor.initialise(weights, &mut seed.stream("predictor"));
        self.actor_critic.initialise(weights, &mut seed.stream("actor-critic"));
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut Vec<f32> {
        Arc::make_mut(&mut self.weights)
    }

    fn accumulate(&self, update: &mut ShardUpdate<'_>, buffers: &mut LiliTrainingBuffers) {
        for encounters in update.job.chunks(CHUNK_ROWS) {
            let LiliTrainingBuffers { encoder, transitions, predictor, actor_critic } = buffers;
            let size = self.spec.sizes.observation;
            encoder.gather(update.job, encounters, size);
            transitions.gather(update.job, encounters, size);
            self.encoder.forward(update.weights, encoder);
            let (latents, d_latents) = encoder.latents_and_gradients();
            self.predictor.learn(update, transitions, latents, d_latents, predictor);
            let parts = latent_parts(&transitions.observations, latents);
            self.actor_critic.learn(update, &transitions.batch_rows, &parts, d_latents, actor_critic);
            self.encoder.backward(update, encoder);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct LiliInferenceBuffers {
    encoder: PreviousEpisodeInferenceBuffers,
    actor_critic: ActorCriticBuffers,
}

#[derive(Debug, Default)]
pub(crate) struct LiliTrainingBuffers {
    encoder: PreviousEpisodeTrainingBuffers,
    transitions: Transitions,
    predictor: TransitionBuffers,
    actor_critic: ActorCriticBuffers,
}
