//! A trained ego: it acts from observations, and shows what it thinks.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use pace_games::{
    Action, AnyGame, Ego, GameError, NO_ACTION, PeerSight, Seed, Split, Stream, Turn, sample_action,
};
use pace_nn::loss::softmax_rows;

use crate::adapt::{AdaptConfig, EncounterOutcome, play_side_by_side};
use crate::config::TrainConfig;
use crate::crew::see;
use crate::methods::{Method, Setting};
use crate::network::{Decisions, Network};
use crate::policy::Policy;
use crate::train::TrainError;

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
    fn encounter(self: Arc<Self>, seed: Seed) -> Box<dyn AnyEncounter>;
    /// Whether it looks at every encounter from its own side.
    fn has_own_side(&self) -> bool;
    /// Its policy, for others to follow.
    fn policy(self: Arc<Self>) -> Policy;
    /// See [`Agent::with_temperature`].
    fn with_temperature(&self, temperature: f64) -> Agent;
    /// See [`Agent::peer_sight`].
    fn peer_sight(&self) -> PeerSight;
    /// Plays some of the encounters that `adapt` numbers, side by side.
    fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: Range<usize>,
    ) -> Result<Vec<EncounterOutcome>, GameError>;
}

/// An encounter from the side of such an agent; the methods are those of [`AgentEncounter`].
pub(crate) trait AnyEncounter: Debug + Send {
    fn begin(&mut self);
    fn think(&mut self, observation: &[f32]) -> Thought;
    fn acted(&mut self, observation: &[f32], action: Action);
    fn told(&mut self, aftermath: &Aftermath<'_>);
    fn end_episode(&mut self, terminal_observation: &[f32]);
}

impl Agent {
    pub(crate) fn new(inner: impl AnyAgent + 'static) -> Agent {
        Agent { inner: Arc::new(inner) }
    }

    /// The agent whose weights a run saved, for the game it was trained with.
    pub fn from_bytes(
        method: &Method,
        game: &dyn AnyGame,
        config: &TrainConfig,
        model: &[u8],
    ) -> Result<Agent, TrainError> {
        Agent::with_conservative(method, game, config, None, model)
    }

    /// The same with the policy that it falls back on, where the keys leave that to the caller
    /// ([`TrainConfig::conservative_run`]).
    pub fn with_conservative(
        method: &Method,
        game: &dyn AnyGame,
        config: &TrainConfig,
        conservative: Option<&Policy>,
        model: &[u8],
    ) -> Result<Agent, TrainError> {
        let pool = &game.pool(Split::Train);
        let agent = method.load(&Setting { game, pool, config, conservative }, model)?;
        Ok(agent.with_temperature(config.temperature))
    }

    /// The same agent with the logits of its actions divided by `temperature`: below 1 it acts more decidedly.
    pub fn with_temperature(&self, temperature: f64) -> Agent {
        if temperature == 1.0 { self.clone() } else { self.inner.with_temperature(temperature) }
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
        self.encounter_with(Seed::new(0))
    }

    /// The same with chance of its own, for agents that need any beside the draw of their actions.
    pub fn encounter_with(&self, seed: Seed) -> AgentEncounter {
        AgentEncounter { inner: self.inner.clone().encounter(seed) }
    }

    /// Whether it must be told what its peers saw ([`AgentEncounter::told`]).
    pub fn peer_sight(&self) -> PeerSight {
        self.inner.peer_sight()
    }

    pub(crate) fn has_own_side(&self) -> bool {
        self.inner.has_own_side()
    }

    pub(crate) fn policy(&self) -> Policy {
        self.inner.clone().policy()
    }

    pub(crate) fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: Range<usize>,
    ) -> Result<Vec<EncounterOutcome>, GameError> {
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
    /// Samples an action, as training and adaptation do; see [`sample_action`].
    pub fn draw(&self, rng: &mut Stream) -> Result<Action, GameError> {
        sample_action(&self.probabilities, rng)
    }
}

/// What followed a decision, as far as an agent may know it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Aftermath<'a> {
    /// What all peers did.
    pub peer_actions: &'a [Action],
    /// What they saw when they chose, one observation after the other; empty where that is not known.
    pub peer_observations: &'a [f32],
    /// What the game paid.
    pub task_reward: f32,
}

impl AgentEncounter {
    /// What the agent thinks when it sees `observation` now.
    pub fn think(&mut self, observation: &[f32]) -> Thought {
        self.inner.think(observation)
    }

    /// All that followed the last decision. Only an agent that learns about its peers from what they saw
    /// ([`Agent::peer_sight`]), and from what episodes bring, needs to be told.
    pub fn told(&mut self, aftermath: &Aftermath<'_>) {
        self.inner.told(aftermath);
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
#[derive(Clone, Debug)]
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

    fn encounter(self: Arc<Self>, seed: Seed) -> Box<dyn AnyEncounter> {
        let mut context = self.net.context(None);
        self.net.begin(&mut context, seed);
        Box::new(TrainedEncounter {
            context: [context],
            side: None,
            seed,
            rows: N::ActRows::default(),
            waiting: None,
            agent: self,
        })
    }

    fn has_own_side(&self) -> bool {
        self.net.sides().is_some()
    }

    fn policy(self: Arc<Self>) -> Policy {
        Policy::of_trained(self)
    }

    fn with_temperature(&self, temperature: f64) -> Agent {
        let Trained { net, mut parameters } = Trained::clone(self);
        let head = net.policy_head();
        for tensor in [head.weights(), head.biases()] {
            parameters[tensor.range()].iter_mut().for_each(|weight| *weight /= temperature as f32);
        }
        Agent::new(Trained { net, parameters })
    }

    fn peer_sight(&self) -> PeerSight {
        self.net.adapting_sight()
    }

    fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: Range<usize>,
    ) -> Result<Vec<EncounterOutcome>, GameError> {
        play_side_by_side(self, game, config, encounters)
    }
}

#[derive(Debug)]
struct TrainedEncounter<N: Network> {
    agent: Arc<Trained<N>>,
    /// One lane.
    context: [N::Context; 1],
    /// The side that the ego looks from, once it has seen something and the game has several.
    side: Option<usize>,
    seed: Seed,
    rows: N::ActRows,
    /// The last decision as it is from there, until the peers' actions are known.
    waiting: Option<(Vec<f32>, Action)>,
}

impl<N: Network> TrainedEncounter<N> {
    fn act(&mut self, observation: &[f32]) {
        let Trained { net, parameters } = &*self.agent;
        net.act(parameters, observation, &self.context, &[0], &mut self.rows);
    }

    /// What a side changes.
    fn turn(&self) -> Option<&Turn> {
        self.agent.net.sides().zip(self.side).map(|(sides, side)| &sides.turns[side])
    }

    /// An observation from the ego's own side, which the first one settles.
    fn look(&mut self, observation: &[f32]) -> Vec<f32> {
        if self.side.is_none() {
            self.side = self.agent.net.sides().map(|sides| sides.own(observation));
        }
        let mut seen = Vec::with_capacity(observation.len());
        see(self.turn(), observation, &mut seen);
        seen
    }

    fn store_waiting(&mut self, aftermath: &Aftermath<'_>) {
        let Some((observation, action)) = self.waiting.take() else { return };
        // Whoever acts need not have asked us what we think.
        self.act(&observation);
        let Trained { net, parameters } = &*self.agent;
        let mut all_peers = vec![NO_ACTION; net.sizes().n_peers];
        all_peers.iter_mut().zip(aftermath.peer_actions).for_each(|(place, action)| *place = *action);
        let decisions = Decisions {
            observations: &observation,
            ego_actions: &[action],
            peer_actions: &all_peers,
            peer_observations: aftermath.peer_observations,
            task_rewards: &[aftermath.task_reward],
        };
        net.take_in(parameters, &decisions, &mut self.context, &[0], &mut self.rows);
    }
}

impl<N: Network> AnyEncounter for TrainedEncounter<N> {
    fn begin(&mut self) {
        // Other peers, other luck.
        self.seed = self.seed.child("encounter", &[]);
        self.agent.net.begin(&mut self.context[0], self.seed);
        (self.side, self.waiting) = (None, None);
    }

    fn think(&mut self, observation: &[f32]) -> Thought {
        self.store_waiting(&Aftermath::default());
        let seen = self.look(observation);
        self.act(&seen);
        let net = &self.agent.net;
        let acted = net.acted(&self.rows);
        let logits = &acted.logits[..net.sizes().n_actions];
        let (mut logs, mut probabilities) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
        softmax_rows(logits, &[logits.len()], &mut logs, &mut probabilities);
        let slots = net.slots().into_iter();
        let mut posteriors: Vec<Vec<f32>> = slots.map(|slot| acted.posteriors[slot].to_vec()).collect();
        if let Some(turn) = self.turn() {
            // As the game calls them.
            turn.unturn_actions(&mut probabilities);
            for (posterior, classes) in posteriors.iter_mut().zip(&turn.classes) {
                *posterior = classes.iter().map(|class| posterior[*class]).collect();
            }
        }
        let latent = acted.latents[..acted.latent_size].to_vec();
        Thought { probabilities, value: acted.values[0], latent, posteriors }
    }

    fn acted(&mut self, observation: &[f32], action: Action) {
        self.store_waiting(&Aftermath::default());
        let seen = self.look(observation);
        let chosen = self.turn().map_or(action, |turn| turn.action_from_here(action));
        self.waiting = Some((seen, chosen));
    }

    fn told(&mut self, aftermath: &Aftermath<'_>) {
        self.store_waiting(aftermath);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        self.store_waiting(&Aftermath::default());
        let seen = self.look(terminal_observation);
        let Trained { net, parameters } = &*self.agent;
        net.end_episodes(parameters, &seen, &mut self.context, &[0], &mut self.rows);
    }
}
