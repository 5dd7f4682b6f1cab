//! A trained agent: it acts from observations, and reports its beliefs.

use std::sync::Arc;

use pace_games::{
    Action, AnyGame, ConfigError, Ego, Inference, NO_ACTION, PeerObservationMode, Seed, Split, StepFeedback,
    SymmetryTransform,
};
use pace_nn::loss::softmax_rows;

use crate::adapt::{AdaptConfig, EncounterOutcome, play_batched};
use crate::config::TrainConfig;
use crate::methods::{Method, MethodInputs};
use crate::network::{Actor, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs};
use crate::policy::{AnyPolicy, Policy, PolicyLanes};
use crate::policy_runner::append_transformed;
use crate::train::TrainError;

/// A trained agent. No argument of its functions could carry a peer's identity.
#[derive(Clone, Debug)]
pub struct Agent {
    inner: Arc<dyn AnyAgent>,
}

/// A trained network whose type is erased.
pub(crate) trait AnyAgent: AnyPolicy {
    /// See [`Agent::with_temperature`].
    fn with_temperature(&self, temperature: f64) -> Agent;
}

impl<N: Network> AnyAgent for N {
    fn with_temperature(&self, temperature: f64) -> Agent {
        let mut net = self.clone();
        for range in &self.spec().policy_head {
            let weights = &mut net.weights_mut()[range.clone()];
            weights.iter_mut().for_each(|weight| *weight /= temperature as f32);
        }
        Agent::new(net)
    }
}

impl Agent {
    pub(crate) fn new(inner: impl AnyAgent + 'static) -> Agent {
        Agent { inner: Arc::new(inner) }
    }

    /// The agent with the weights that a run saved, for the game it was trained in.
    pub fn from_bytes(
        method: &Method,
        game: &dyn AnyGame,
        config: &TrainConfig,
        model: &[u8],
    ) -> Result<Agent, TrainError> {
        Agent::with_needed(method, game, config, None, model)
    }

    /// Like [`Agent::from_bytes`], but with the policy of the run that the method needs under these keys ([`Method::need`]).
    pub fn with_needed(
        method: &Method,
        game: &dyn AnyGame,
        config: &TrainConfig,
        needed: Option<&Policy>,
        model: &[u8],
    ) -> Result<Agent, TrainError> {
        let pool = &game.pool(Split::Train);
        let agent = method.load(&MethodInputs { game, pool, config, needed }, model)?;
        Ok(agent.with_temperature(config.temperature))
    }

    /// A copy of the agent whose logits are divided by `temperature`. Values below 1 make likely actions more likely.
    pub fn with_temperature(&self, temperature: f64) -> Agent {
        if temperature == 1.0 { self.clone() } else { self.inner.with_temperature(temperature) }
    }

    /// The size of the observations that it expects, and its number of actions.
    pub fn shape(&self) -> (usize, usize) {
        self.policy().shape()
    }

    /// The number of peers that it identifies; 0 if its method has no identifier.
    pub fn n_identified(&self) -> usize {
        self.spec().slots.len()
    }

    /// The size of its latent.
    pub fn latent_width(&self) -> usize {
        self.spec().latent_size
    }

    /// Starts an encounter as the agent's ego, with an empty context.
    pub fn encounter(&self) -> AgentEncounter {
        self.encounter_seeded(Seed::new(0))
    }

    /// Like [`Agent::encounter`], but with a seed, for methods with randomness of their own.
    pub fn encounter_seeded(&self, seed: Seed) -> AgentEncounter {
        let policy = self.policy();
        let mut lanes = policy.new_state(1, None);
        lanes.begin(0, seed);
        AgentEncounter { policy, lanes, side: None, seed, outputs: Box::default(), waiting: None, last: None }
    }

    /// Whether it needs the peers' observations ([`Ego::observe_feedback`]).
    pub fn peer_observation_mode(&self) -> PeerObservationMode {
        self.spec().adaptation_sight
    }

    fn spec(&self) -> &NetworkSpec {
        self.inner.network_spec()
    }

    pub(crate) fn policy(&self) -> Policy {
        Policy::of_any(self.inner.clone())
    }

    pub(crate) fn play(
        &self,
        game: &dyn AnyGame,
        config: &AdaptConfig,
        encounters: &[usize],
    ) -> Result<Vec<EncounterOutcome>, ConfigError> {
        play_batched(&self.policy(), game, config, encounters)
    }
}

/// The [`Ego`] of a trained agent in one encounter.
#[derive(Debug)]
pub struct AgentEncounter {
    policy: Policy,
    /// One lane.
    lanes: Box<dyn PolicyLanes>,
    /// The side of the canonical frame, known after the first observation; `None` without a canonical frame.
    side: Option<usize>,
    seed: Seed,
    outputs: Box<PolicyOutputs>,
    /// The last decision in the canonical frame, until its feedback is known.
    waiting: Option<(Vec<f32>, Action)>,
    last: Option<Box<Inference>>,
}

impl AgentEncounter {
    /// Computes the inference for `observation` at this point of the encounter. Does not change the context.
    pub fn infer(&mut self, observation: &[f32]) -> Inference {
        self.store_waiting(&StepFeedback::default());
        let canonical = self.canonical_observation(observation);
        self.lanes.forward_policy(&canonical, &[0], &mut self.outputs);
        let PolicyOutputs { logits, values, latents, posteriors, .. } = &*self.outputs;
        let (mut logs, mut probabilities) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
        softmax_rows(logits, &[logits.len()], &mut logs, &mut probabilities);
        let slots = self.policy.spec().slots.iter().cloned();
        let mut posteriors: Vec<Vec<f32>> = slots.map(|slot| posteriors[slot].to_vec()).collect();
        if let Some(transform) = self.transform() {
            // From the canonical frame to the game's numbering.
            transform.to_game_actions(&mut probabilities);
            for (posterior, classes) in posteriors.iter_mut().zip(&transform.classes) {
                *posterior = classes.iter().map(|class| posterior[*class]).collect();
            }
        }
        Inference { probabilities, value: values[0], latent: latents.clone(), posteriors }
    }

    /// The transform to the canonical frame.
    fn transform(&self) -> Option<&SymmetryTransform> {
        self.side.and_then(|side| self.policy.spec().transform(side))
    }

    /// Returns an observation in the canonical frame, which the first observation determines.
    fn canonical_observation(&mut self, observation: &[f32]) -> Vec<f32> {
        if self.side.is_none() {
            self.side = self.policy.spec().sides.as_ref().map(|sides| sides.canonical(observation));
        }
        let mut canonical = Vec::with_capacity(observation.len());
        append_transformed(self.transform(), observation, &mut canonical);
        canonical
    }

    fn store_waiting(&mut self, feedback: &StepFeedback<'_>) {
        let Some((observation, action)) = self.waiting.take() else { return };
        // The context is updated from the last forward pass, and the caller may not have asked for an inference.
        self.lanes.forward_policy(&observation, &[0], &mut self.outputs);
        // There may be fewer peers than in training; missing peers do not act.
        let NetworkDims { observation: size, n_peers, .. } = self.policy.spec().sizes;
        let mut all_peers = feedback.peer_actions.to_vec();
        all_peers.resize(n_peers, NO_ACTION);
        let mut peer_observations = feedback.peer_observations.to_vec();
        if !peer_observations.is_empty() {
            peer_observations.resize(n_peers * size, 0.0);
        }
        let decisions = Decisions {
            observations: &observation,
            ego_actions: &[action],
            peer_actions: &all_peers,
            peer_observations: &peer_observations,
            task_rewards: &[feedback.task_reward],
        };
        self.lanes.update_contexts(&decisions, &[0]);
    }
}

impl Ego for AgentEncounter {
    fn begin_encounter(&mut self) {
        // A new encounter has new random events.
        self.seed = self.seed.child("encounter", &[]);
        self.lanes.begin(0, self.seed);
        (self.side, self.waiting, self.last) = (None, None, None);
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        let inference = self.infer(observation);
        probabilities.copy_from_slice(&inference.probabilities);
        self.last = Some(Box::new(inference));
    }

    fn record_action(&mut self, observation: &[f32], action: Action) {
        self.store_waiting(&StepFeedback::default());
        let canonical = self.canonical_observation(observation);
        let chosen = self.transform().map_or(action, |transform| transform.transform_action(action));
        self.waiting = Some((canonical, chosen));
    }

    fn observe_feedback(&mut self, feedback: &StepFeedback<'_>) {
        self.store_waiting(feedback);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        self.store_waiting(&StepFeedback::default());
        let canonical = self.canonical_observation(terminal_observation);
        self.lanes.end_episodes(&canonical, &[0]);
        self.last = Some(Box::new(self.infer(terminal_observation)));
    }

    fn peer_observation_mode(&self) -> PeerObservationMode {
        self.policy.spec().adaptation_sight
    }

    fn inference(&self) -> Option<&Inference> {
        self.last.as_deref()
    }
}
