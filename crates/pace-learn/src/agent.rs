//! A trained ego: it acts from observations, and shows what it thinks.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use pace_games::{Action, AnyGame, Ego, NO_ACTION, Stream};
use pace_nn::ParameterError;
use pace_nn::loss::{sample_categorical, softmax};

use crate::adapt::{AdaptConfig, EncounterOutcome, play_side_by_side};
use crate::config::TrainConfig;
use crate::methods::Method;
use crate::network::{Decisions, Network};

/// A trained ego. No argument of it could carry a peer's identity.
#[derive(Clone, Debug)]
pub struct Agent {
    inner: Arc<dyn AnyAgent>,
}

/// An agent, its method known to nobody but itself.
pub(crate) trait AnyAgent: Debug + Send + Sync {
    fn shape(&self) -> (usize, usize);
    fn n_identified(&self) -> usize;
    fn latent_width(&self) -> usize;
    /// An encounter from its side.
    fn encounter(self: Arc<Self>) -> Box<dyn AnyEncounter>;
    /// Plays some of the encounters that `adapt` numbers, side by side.
    fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: Range<usize>,
    ) -> Vec<EncounterOutcome>;
}

/// An encounter from the side of such an agent; the methods are those of [`AgentEncounter`].
pub(crate) trait AnyEncounter: Debug + Send {
    fn begin(&mut self);
    fn think(&mut self, observation: &[f32]) -> Thought;
    fn acted(&mut self, observation: &[f32], action: Action);
    fn peers_acted(&mut self, peer_actions: &[Action]);
    fn end_episode(&mut self, terminal_observation: &[f32]);
}

impl Agent {
    pub(crate) fn new(inner: impl AnyAgent + 'static) -> Agent {
        Agent { inner: Arc::new(inner) }
    }

    /// The agent whose weights a run saved, for the game and the training pool it was trained with.
    pub fn from_bytes(
        method: &Method,
        spec: &pace_games::GameSpec,
        pool: &pace_games::PoolListing,
        config: &TrainConfig,
        model: &[u8],
    ) -> Result<Agent, ParameterError> {
        method.load(spec, pool, config, model)
    }

    /// The length of the observations it can read, and the number of actions it chooses from.
    pub fn shape(&self) -> (usize, usize) {
        self.inner.shape()
    }

    /// How many peers it has an opinion about; none if its method has no identifier.
    pub fn n_identified(&self) -> usize {
        self.inner.n_identified()
    }

    /// How many numbers its latent has.
    pub fn latent_width(&self) -> usize {
        self.inner.latent_width()
    }

    /// An encounter from this agent's side, with an empty context.
    pub fn encounter(&self) -> AgentEncounter {
        AgentEncounter { inner: self.inner.clone().encounter() }
    }

    pub(crate) fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: Range<usize>,
    ) -> Vec<EncounterOutcome> {
        self.inner.play(game, config, encounters)
    }
}

/// One encounter from the agent's side.
#[derive(Debug)]
pub struct AgentEncounter {
    inner: Box<dyn AnyEncounter>,
}

/// What the agent thinks at a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// How likely it is to take each action.
    pub probabilities: Vec<f32>,
    /// The discounted reward it expects.
    pub value: f32,
    /// The latent of its context; the hidden state where the method has one instead.
    pub latent: Vec<f32>,
    /// Its posterior over the training classes of each peer; empty if the method identifies nobody.
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
        self.inner.think(observation)
    }

    /// The peers' actions in the step that followed the last decision. Only an agent whose context stores them
    /// (`context_action = "peer"`) needs to be told.
    pub fn peers_acted(&mut self, peer_actions: &[Action]) {
        self.inner.peers_acted(peer_actions);
    }
}

impl Ego for AgentEncounter {
    fn begin_encounter(&mut self) {
        self.inner.begin();
    }

    fn probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        probabilities.copy_from_slice(&self.think(observation).probabilities);
    }

    fn acted(&mut self, observation: &[f32], action: Action) {
        self.inner.acted(observation, action);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        self.inner.end_episode(terminal_observation);
    }
}

/// An agent that is one network.
#[derive(Debug)]
pub(crate) struct Trained<N: Network> {
    pub(crate) net: N,
    pub(crate) parameters: Vec<f32>,
}

impl<N: Network> AnyAgent for Trained<N> {
    fn shape(&self) -> (usize, usize) {
        let sizes = self.net.sizes();
        (sizes.observation, sizes.n_actions)
    }

    fn n_identified(&self) -> usize {
        self.net.slots().len()
    }

    fn latent_width(&self) -> usize {
        self.net.acted(&N::ActRows::default()).latent_size
    }

    fn encounter(self: Arc<Self>) -> Box<dyn AnyEncounter> {
        Box::new(TrainedEncounter {
            context: [self.net.context(None)],
            rows: N::ActRows::default(),
            waiting: None,
            agent: self,
        })
    }

    fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: Range<usize>,
    ) -> Vec<EncounterOutcome> {
        play_side_by_side(self, game, config, encounters)
    }
}

#[derive(Debug)]
struct TrainedEncounter<N: Network> {
    agent: Arc<Trained<N>>,
    /// One lane.
    context: [N::Context; 1],
    rows: N::ActRows,
    /// The last decision, until the peers' actions are known.
    waiting: Option<(Vec<f32>, Action)>,
}

impl<N: Network> TrainedEncounter<N> {
    fn act(&mut self, observation: &[f32]) {
        let Trained { net, parameters } = &*self.agent;
        net.act(parameters, observation, &self.context, &[0], &mut self.rows);
    }

    fn store_waiting(&mut self, peer_actions: &[Action]) {
        let Some((observation, action)) = self.waiting.take() else { return };
        // Whoever acts need not have asked us what we think.
        self.act(&observation);
        let Trained { net, parameters } = &*self.agent;
        let mut all_peers = vec![NO_ACTION; net.sizes().n_peers];
        all_peers.iter_mut().zip(peer_actions).for_each(|(place, action)| *place = *action);
        let decisions =
            Decisions { observations: &observation, ego_actions: &[action], peer_actions: &all_peers };
        net.take_in(parameters, &decisions, &mut self.context, &[0], &mut self.rows);
    }
}

impl<N: Network> AnyEncounter for TrainedEncounter<N> {
    fn begin(&mut self) {
        self.agent.net.forget(&mut self.context[0]);
        self.waiting = None;
    }

    fn think(&mut self, observation: &[f32]) -> Thought {
        self.store_waiting(&[]);
        self.act(observation);
        let net = &self.agent.net;
        let acted = net.acted(&self.rows);
        let mut probabilities = acted.logits[..net.sizes().n_actions].to_vec();
        softmax(&mut probabilities);
        Thought {
            probabilities,
            value: acted.values[0],
            latent: acted.latents[..acted.latent_size].to_vec(),
            posteriors: net.slots().into_iter().map(|slot| acted.posteriors[slot].to_vec()).collect(),
        }
    }

    fn acted(&mut self, observation: &[f32], action: Action) {
        self.store_waiting(&[]);
        self.waiting = Some((observation.to_vec(), action));
    }

    fn peers_acted(&mut self, peer_actions: &[Action]) {
        self.store_waiting(peer_actions);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        self.store_waiting(&[]);
        let Trained { net, parameters } = &*self.agent;
        net.end_episodes(parameters, terminal_observation, &mut self.context, &[0], &mut self.rows);
    }
}
