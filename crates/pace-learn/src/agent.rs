//! A trained ego: it acts from observations, and shows what it thinks.

use std::sync::Arc;

use pace_games::{Action, Ego, NO_ACTION, Stream};
use pace_nn::ParameterError;
use pace_nn::loss::{sample_categorical, softmax};

use crate::config::{ContextAction, TrainConfig};
use crate::context::RunningContext;
use crate::methods::{ActRows, PaceNet};

/// The network of a trained ego. No argument of it could carry a peer's identity.
#[derive(Clone, Debug)]
pub struct Agent {
    pub(crate) net: Arc<PaceNet>,
    pub(crate) parameters: Arc<Vec<f32>>,
    pub(crate) config: TrainConfig,
}

impl Agent {
    pub(crate) fn new(net: PaceNet, parameters: Vec<f32>, config: TrainConfig) -> Agent {
        Agent { net: Arc::new(net), parameters: Arc::new(parameters), config }
    }

    /// The agent whose weights a run saved, for the game it was trained on.
    pub fn from_bytes(
        spec: &pace_games::GameSpec,
        n_classes: &[usize],
        config: TrainConfig,
        model: &[u8],
    ) -> Result<Agent, ParameterError> {
        let net = PaceNet::new(spec, n_classes, &config);
        let parameters = net.layout().from_bytes(model)?;
        Ok(Agent::new(net, parameters, config))
    }

    /// An encounter from this agent's side, with an empty context.
    pub fn encounter(&self) -> AgentEncounter {
        AgentEncounter {
            context: RunningContext::new(self.net.width(), self.config.empty_episode, None),
            rows: ActRows::default(),
            pooled: vec![0.0; self.net.width()],
            waiting: None,
            agent: self.clone(),
        }
    }
}

/// One encounter from the agent's side.
#[derive(Debug)]
pub struct AgentEncounter {
    agent: Agent,
    context: RunningContext,
    rows: ActRows,
    pooled: Vec<f32>,
    /// The last decision, until the peers' actions are known.
    waiting: Option<(Vec<f32>, Action)>,
}

/// What the agent thinks at a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// How likely it is to take each action.
    pub probabilities: Vec<f32>,
    /// The discounted reward it expects.
    pub value: f32,
    /// The latent of its context.
    pub latent: Vec<f32>,
    /// Its posterior over the training classes of each peer.
    pub posteriors: Vec<Vec<f32>>,
}

impl Thought {
    /// Draws an action, as adaptation does.
    pub fn draw(&self, rng: &mut Stream) -> Action {
        sample_categorical(&self.probabilities, rng.unit() as f32) as Action
    }
}

impl AgentEncounter {
    /// What the agent thinks when it sees `observation` now.
    pub fn think(&mut self, observation: &[f32]) -> Thought {
        self.store_waiting(NO_ACTION);
        let net = &self.agent.net;
        self.context.pool_into(&mut self.pooled);
        let is_empty = [self.context.is_empty()];
        net.act(&self.agent.parameters, observation, &self.pooled, &is_empty, &mut self.rows);
        let mut probabilities = self.rows.logits()[..net.n_actions()].to_vec();
        softmax(&mut probabilities);
        Thought {
            probabilities,
            value: self.rows.values()[0],
            latent: self.rows.latents()[..net.width()].to_vec(),
            posteriors: net.slots().into_iter().map(|slot| self.rows.posteriors()[slot].to_vec()).collect(),
        }
    }

    /// The peers' actions in the step that followed the last decision. Only an agent whose context stores them
    /// (`context_action = "peer"`) needs to be told.
    pub fn peers_acted(&mut self, peer_actions: &[Action]) {
        self.store_waiting(peer_actions.first().copied().unwrap_or(NO_ACTION));
    }

    fn store_waiting(&mut self, peer_action: Action) {
        let Some((observation, ego_action)) = self.waiting.take() else { return };
        let action = match self.agent.config.context_action {
            ContextAction::Ego => ego_action,
            ContextAction::Peer => peer_action,
        };
        let (net, parameters) = (&self.agent.net, &self.agent.parameters);
        net.encode_entries(parameters, &observation, &[action], &mut self.rows);
        self.context.add_entry(&self.rows.features()[..net.width()]);
    }
}

impl Ego for AgentEncounter {
    fn begin_encounter(&mut self) {
        self.context.clear();
        self.waiting = None;
    }

    fn probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        probabilities.copy_from_slice(&self.think(observation).probabilities);
    }

    fn acted(&mut self, observation: &[f32], action: Action) {
        self.waiting = Some((observation.to_vec(), action));
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        self.store_waiting(NO_ACTION);
        let (net, parameters) = (&self.agent.net, &self.agent.parameters);
        net.encode_entries(parameters, terminal_observation, &[NO_ACTION], &mut self.rows);
        self.context.end_episode(&self.rows.features()[..net.width()]);
    }
}
