//! A policy that another agent or training stage uses: of a trained agent, or of a scripted ego without memory.
//!
//! The type of its actor is erased, together with the contexts of all lanes.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};

use pace_games::{AnyGame, ConfigError, Ego, Seed};
use pace_nn::Layout;

use crate::agent::Agent;
use crate::network::{Actor, Decisions, LaneStates, NetworkDims, NetworkSpec, PolicyOutputs};

/// The policy of a trained agent or of a scripted ego without memory.
#[derive(Clone, Debug)]
pub struct Policy {
    inner: Arc<dyn AnyPolicy>,
    /// Whether its contexts end with the episode.
    forgets_episodes: bool,
}

/// An actor whose type is erased.
pub(crate) trait AnyPolicy: Debug + Send + Sync {
    fn network_spec(&self) -> &NetworkSpec;
    /// Empty contexts of this actor for some lanes.
    fn new_lanes(
        self: Arc<Self>,
        n_lanes: usize,
        window: Option<usize>,
        forgets_episodes: bool,
    ) -> Box<dyn PolicyLanes>;
}

impl<A: Actor> AnyPolicy for A {
    fn network_spec(&self) -> &NetworkSpec {
        self.spec()
    }

    fn new_lanes(
        self: Arc<Self>,
        n_lanes: usize,
        window: Option<usize>,
        forgets_episodes: bool,
    ) -> Box<dyn PolicyLanes> {
        Box::new(ActorLanes { state: self.new_state(n_lanes, window), actor: self, forgets_episodes })
    }
}

/// An actor and the contexts of its lanes, whose types are erased. The functions are those of [`Actor`].
pub(crate) trait PolicyLanes: Debug + Send {
    fn select(&self, lanes: &[usize]) -> Box<dyn PolicyLanes>;
    fn begin(&mut self, lane: usize, seed: Seed);
    fn clear_context(&mut self, lane: usize);
    fn keep_last_episode(&mut self, lane: usize);
    fn forward_policy(&mut self, observations: &[f32], lanes: &[usize], out: &mut PolicyOutputs);
    fn update_contexts(&mut self, decisions: &Decisions<'_>, lanes: &[usize]);
    fn end_episodes(&mut self, terminal_observations: &[f32], lanes: &[usize]);
}

#[derive(Debug)]
struct ActorLanes<A: Actor> {
    actor: Arc<A>,
    state: A::State,
    forgets_episodes: bool,
}

impl<A: Actor> PolicyLanes for ActorLanes<A> {
    fn select(&self, lanes: &[usize]) -> Box<dyn PolicyLanes> {
        let state = self.state.select(lanes);
        Box::new(ActorLanes { actor: self.actor.clone(), state, forgets_episodes: self.forgets_episodes })
    }

    fn begin(&mut self, lane: usize, seed: Seed) {
        self.actor.begin(&mut self.state, lane, seed);
    }

    fn clear_context(&mut self, lane: usize) {
        self.actor.clear_context(&mut self.state, lane);
    }

    fn keep_last_episode(&mut self, lane: usize) {
        self.actor.keep_last_episode(&mut self.state, lane);
    }

    fn forward_policy(&mut self, observations: &[f32], lanes: &[usize], out: &mut PolicyOutputs) {
        self.actor.forward_policy(observations, lanes, &mut self.state, out);
    }

    fn update_contexts(&mut self, decisions: &Decisions<'_>, lanes: &[usize]) {
        self.actor.update_contexts(decisions, lanes, &mut self.state);
    }

    fn end_episodes(&mut self, terminal_observations: &[f32], lanes: &[usize]) {
        self.actor.end_episodes(terminal_observations, lanes, &mut self.state);
        if self.forgets_episodes {
            lanes.iter().for_each(|lane| self.clear_context(*lane));
        }
    }
}

impl LaneStates for Box<dyn PolicyLanes> {
    fn select(&self, lanes: &[usize]) -> Box<dyn PolicyLanes> {
        (**self).select(lanes)
    }
}

impl Policy {
    /// The policy of a scripted ego. Refuses egos whose action probabilities depend on more than the observation.
    pub fn scripted(game: &dyn AnyGame, name: &str) -> Result<Policy, ConfigError> {
        let ego = Mutex::new(game.memoryless_reference(name)?);
        let spec = NetworkSpec::new(game.spec(), Layout::default(), 0);
        Ok(Policy::of_any(Arc::new(ScriptedActor { ego, spec })))
    }

    /// The policy of an agent. Refuses agents that use a canonical frame, because observations are not transformed here.
    pub fn of(agent: &Agent) -> Result<Policy, ConfigError> {
        let policy = agent.policy();
        if policy.spec().sides.is_some() {
            let expected =
                "false in an agent that another one uses; for example one of `--method generalist`";
            return Err(ConfigError::bad_value("canonical_frame", &true, expected));
        }
        Ok(policy)
    }

    pub(crate) fn of_any(inner: Arc<dyn AnyPolicy>) -> Policy {
        Policy { inner, forgets_episodes: false }
    }

    /// This policy with contexts that end with the episode.
    pub(crate) fn forgetting_episodes(self) -> Policy {
        Policy { forgets_episodes: true, ..self }
    }

    /// The size of the observations that it expects, and its number of actions.
    pub fn shape(&self) -> (usize, usize) {
        let sizes = self.spec().sizes;
        (sizes.observation, sizes.n_actions)
    }
}

impl Actor for Policy {
    type State = Box<dyn PolicyLanes>;

    fn spec(&self) -> &NetworkSpec {
        self.inner.network_spec()
    }

    fn new_state(&self, n_lanes: usize, window: Option<usize>) -> Box<dyn PolicyLanes> {
        self.inner.clone().new_lanes(n_lanes, window, self.forgets_episodes)
    }

    fn begin(&self, state: &mut Box<dyn PolicyLanes>, lane: usize, seed: Seed) {
        state.begin(lane, seed);
    }

    fn clear_context(&self, state: &mut Box<dyn PolicyLanes>, lane: usize) {
        state.clear_context(lane);
    }

    fn keep_last_episode(&self, state: &mut Box<dyn PolicyLanes>, lane: usize) {
        state.keep_last_episode(lane);
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut Box<dyn PolicyLanes>,
        out: &mut PolicyOutputs,
    ) {
        state.forward_policy(observations, lanes, out);
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut Box<dyn PolicyLanes>) {
        state.update_contexts(decisions, lanes);
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut Box<dyn PolicyLanes>) {
        state.end_episodes(terminal_observations, lanes);
    }
}

/// A scripted ego without memory.
struct ScriptedActor {
    /// Used by one thread at a time.
    ego: Mutex<Box<dyn Ego>>,
    spec: NetworkSpec,
}

impl Debug for ScriptedActor {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ScriptedActor").field("sizes", &self.spec.sizes).finish_non_exhaustive()
    }
}

/// The logit of an action with probability 0: too small to be ever sampled, but finite.
const NEVER: f32 = -80.0;

impl Actor for ScriptedActor {
    type State = ();

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, _n_lanes: usize, _window: Option<usize>) {}

    fn clear_context(&self, (): &mut (), _lane: usize) {}

    fn forward_policy(&self, observations: &[f32], lanes: &[usize], (): &mut (), out: &mut PolicyOutputs) {
        let NetworkDims { observation: size, n_actions, .. } = self.spec.sizes;
        let mut ego = self.ego.lock().expect("no ego panics");
        out.logits.clear();
        out.logits.resize(lanes.len() * n_actions, 0.0);
        let rows = observations.chunks_exact(size).zip(out.logits.chunks_exact_mut(n_actions));
        for (observation, logits) in rows {
            ego.action_probabilities(observation, logits);
            for place in logits {
                // Unlike `max`, the comparison keeps NaN, which is refused later.
                let log = place.ln();
                *place = if log < NEVER { NEVER } else { log };
            }
        }
    }

    fn update_contexts(&self, _decisions: &Decisions<'_>, _lanes: &[usize], (): &mut ()) {}

    fn end_episodes(&self, _terminal_observations: &[f32], _lanes: &[usize], (): &mut ()) {}
}

impl LaneStates for () {
    fn select(&self, _lanes: &[usize]) {}
}
