//! A policy for somebody else to follow: a trained agent's, or a fixed scripted ego's, for many lanes at once.
//!
//! What it is made of is known to nobody but itself. Whoever follows it keeps a `Memory` per lane and does the work of
//! several lanes in a `PolicyRoom`.

use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};

use pace_games::{AnyGame, Ego, GameError, Seed};

use crate::agent::{Agent, Trained};
use crate::network::{Decisions, Network};

/// A policy that others can follow.
#[derive(Clone, Debug)]
pub struct Policy {
    inner: Arc<dyn AnyPolicy>,
    shape: (usize, usize),
}

/// A policy, its kind known to nobody but itself.
pub(crate) trait AnyPolicy: Debug + Send + Sync {
    /// What a lane is to keep, in an encounter that begins.
    fn memory(&self, seed: Seed) -> Memory;
    /// Where the work of several lanes is done.
    fn room(self: Arc<Self>) -> Box<dyn PolicyRoom>;
}

/// Where a policy does the work of several lanes: load their memories, act, take in what followed, store the memories.
pub(crate) trait PolicyRoom: Debug + Send {
    /// Makes room for other lanes.
    fn clear(&mut self);
    /// Adds a lane.
    fn load(&mut self, memory: &Memory);
    /// Writes the logits of every lane's actions.
    fn act(&mut self, observations: &[f32], logits: &mut Vec<f32>);
    /// Adds what followed to the memories of the lanes that acted.
    fn take_in(&mut self, decisions: &Decisions<'_>);
    /// Ends the episodes of the loaded lanes.
    fn end_episodes(&mut self, terminal_observations: &[f32]);
    /// Gives back the memory of the lane that was loaded in this place.
    fn store(&mut self, place: usize, memory: &mut Memory);
}

impl Policy {
    /// The policy of a scripted ego that answers an observation alike at any time; others are refused.
    pub fn scripted(game: &dyn AnyGame, name: &str) -> Result<Policy, GameError> {
        let ego = game.fixed_ego(name)?;
        let shape = (game.spec().observation_size, game.spec().n_actions());
        Ok(Policy { inner: Arc::new(Scripted { ego: Mutex::new(ego), shape }), shape })
    }

    /// The policy of an agent; one that looks from its own side is refused, since whoever follows a policy does not turn
    /// what it sees.
    pub fn of(agent: &Agent) -> Result<Policy, GameError> {
        if agent.has_own_side() {
            let expected = "false in an agent that another follows; for example one of `--method generalist`";
            return Err(GameError::bad_value("own_side", &true, expected));
        }
        Ok(agent.policy())
    }

    pub(crate) fn of_trained<N: Network>(trained: Arc<Trained<N>>) -> Policy {
        let sizes = trained.net.sizes();
        Policy { inner: trained, shape: (sizes.observation, sizes.n_actions) }
    }

    /// The length of the observations that it can read, and the number of actions that it chooses from.
    pub fn shape(&self) -> (usize, usize) {
        self.shape
    }

    pub(crate) fn memory(&self, seed: Seed) -> Memory {
        self.inner.memory(seed)
    }

    pub(crate) fn room(&self) -> Box<dyn PolicyRoom> {
        self.inner.clone().room()
    }
}

/// What a policy keeps of one encounter.
#[derive(Debug)]
pub(crate) struct Memory(Box<dyn AnyMemory>);

trait AnyMemory: Debug + Send {
    fn copy(&self) -> Box<dyn AnyMemory>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Clone + Debug + Send + 'static> AnyMemory for T {
    fn copy(&self) -> Box<dyn AnyMemory> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Clone for Memory {
    fn clone(&self) -> Memory {
        Memory((*self.0).copy())
    }
}

impl Memory {
    fn get<T: 'static>(&self) -> &T {
        (*self.0).as_any().downcast_ref().expect("a memory goes back to the policy that made it")
    }

    fn get_mut<T: 'static>(&mut self) -> &mut T {
        (*self.0).as_any_mut().downcast_mut().expect("a memory goes back to the policy that made it")
    }
}

impl<N: Network> AnyPolicy for Trained<N> {
    fn memory(&self, seed: Seed) -> Memory {
        let mut context = self.net.context(None);
        self.net.begin(&mut context, seed);
        Memory(Box::new(context))
    }

    fn room(self: Arc<Self>) -> Box<dyn PolicyRoom> {
        Box::new(TrainedRoom { agent: self, contexts: vec![], lanes: vec![], rows: N::ActRows::default() })
    }
}

#[derive(Debug)]
struct TrainedRoom<N: Network> {
    agent: Arc<Trained<N>>,
    contexts: Vec<N::Context>,
    /// The numbers from 0: every context acts.
    lanes: Vec<usize>,
    rows: N::ActRows,
}

impl<N: Network> PolicyRoom for TrainedRoom<N> {
    fn clear(&mut self) {
        self.contexts.clear();
        self.lanes.clear();
    }

    fn load(&mut self, memory: &Memory) {
        self.lanes.push(self.contexts.len());
        self.contexts.push(memory.get::<N::Context>().clone());
    }

    fn act(&mut self, observations: &[f32], logits: &mut Vec<f32>) {
        let Trained { net, parameters } = &*self.agent;
        net.act(parameters, observations, &self.contexts, &self.lanes, &mut self.rows);
        logits.clear();
        let n = self.lanes.len() * net.sizes().n_actions;
        logits.extend_from_slice(&net.acted(&self.rows).logits[..n]);
    }

    fn take_in(&mut self, decisions: &Decisions<'_>) {
        let Trained { net, parameters } = &*self.agent;
        net.take_in(parameters, decisions, &mut self.contexts, &self.lanes, &mut self.rows);
    }

    fn end_episodes(&mut self, terminal_observations: &[f32]) {
        let Trained { net, parameters } = &*self.agent;
        net.end_episodes(parameters, terminal_observations, &mut self.contexts, &self.lanes, &mut self.rows);
    }

    fn store(&mut self, place: usize, memory: &mut Memory) {
        memory.get_mut::<N::Context>().clone_from(&self.contexts[place]);
    }
}

/// A scripted ego that remembers nothing.
struct Scripted {
    /// Egos are asked by one thread at a time.
    ego: Mutex<Box<dyn Ego>>,
    shape: (usize, usize),
}

impl Debug for Scripted {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Scripted").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl AnyPolicy for Scripted {
    fn memory(&self, _seed: Seed) -> Memory {
        Memory(Box::new(()))
    }

    fn room(self: Arc<Self>) -> Box<dyn PolicyRoom> {
        Box::new(ScriptedRoom(self))
    }
}

#[derive(Debug)]
struct ScriptedRoom(Arc<Scripted>);

/// The logit of an action that is never taken: so unlikely that no draw finds it, and still a number.
const NEVER: f32 = -80.0;

impl PolicyRoom for ScriptedRoom {
    fn clear(&mut self) {}

    fn load(&mut self, _memory: &Memory) {}

    fn act(&mut self, observations: &[f32], logits: &mut Vec<f32>) {
        let (size, n_actions) = self.0.shape;
        let mut ego = self.0.ego.lock().expect("no ego panics");
        logits.clear();
        logits.resize(observations.len() / size * n_actions, 0.0);
        for (observation, logits) in observations.chunks_exact(size).zip(logits.chunks_exact_mut(n_actions)) {
            ego.probabilities(observation, logits);
            for place in logits {
                // Not `max`, which would turn what is not a number into a probability.
                let log = place.ln();
                *place = if log < NEVER { NEVER } else { log };
            }
        }
    }

    fn take_in(&mut self, _decisions: &Decisions<'_>) {}

    fn end_episodes(&mut self, _terminal_observations: &[f32]) {}

    fn store(&mut self, _place: usize, _memory: &mut Memory) {}
}
