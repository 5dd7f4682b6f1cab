//! The interface of a method's network: a [`NetworkSpec`] describes it as data, an [`Actor`] plays, a [`Network`] also learns.
//!
//! Rollout and updates are generic over [`Network`], so that the compiler specialises their loops for each method. Adaptation
//! and play need only an [`Actor`], whose type can be erased (`policy`).

use std::fmt::Debug;
use std::ops::Range;

use pace_games::{
    Action, ConfigError, GameSpec, PeerObservationMode, PoolListing, Seed, Symmetries, SymmetryTransform,
};
use pace_nn::Layout;

use crate::batch::{Batch, Segment};
use crate::config::TrainConfig;
use crate::learner::ShardUpdate;

/// The description of a network, or of another actor without weights.
#[derive(Clone, Debug)]
pub(crate) struct NetworkSpec {
    pub(crate) sizes: NetworkDims,
    /// Names, shapes and places of the weights.
    pub(crate) layout: Layout,
    /// The end of each group of weights. If there are two groups, the warm-up trains only the first. Weights after the last
    /// end are not trained.
    pub(crate) group_ends: Vec<usize>,
    /// Whether the gradient of each group is clipped by its own norm.
    pub(crate) clips_groups_separately: bool,
    /// The places of the weights and biases of the layer that computes the logits.
    pub(crate) policy_head: Vec<Range<usize>>,
    pub(crate) latent_size: usize,
    /// The place of each peer's posterior in a row of posteriors; empty if the method has no identifier.
    pub(crate) slots: Vec<Range<usize>>,
    /// The symmetries of the game, if observations and actions of the network are in the canonical frame.
    pub(crate) sides: Option<Symmetries>,
    /// The metric names of the method's own sums ([`crate::learner::UpdateSums::own`]).
    pub(crate) metrics: &'static [&'static str],
    /// Whether training batches hold the peers' observations.
    pub(crate) rollout_sight: PeerObservationMode,
    /// Whether contexts receive the peers' observations in adaptation.
    pub(crate) adaptation_sight: PeerObservationMode,
    /// Episodes per encounter in training.
    pub(crate) training_episodes: usize,
}

impl NetworkSpec {
    /// A network with one group of weights that has no identifier and uses neither symmetries nor the peers' observations.
    pub(crate) fn new(game: &GameSpec, layout: Layout, latent_size: usize) -> NetworkSpec {
        NetworkSpec {
            sizes: NetworkDims::of(game),
            group_ends: vec![layout.len()],
            layout,
            clips_groups_separately: false,
            policy_head: Vec::new(),
            latent_size,
            slots: Vec::new(),
            sides: None,
            metrics: &[],
            rollout_sight: PeerObservationMode::Skipped,
            adaptation_sight: PeerObservationMode::Skipped,
            training_episodes: game.episodes_per_encounter,
        }
    }

    /// The transform to the canonical frame from a side; `None` without a canonical frame.
    #[inline]
    pub(crate) fn transform(&self, side: usize) -> Option<&SymmetryTransform> {
        self.sides.as_ref().map(|sides| &sides.transforms[side])
    }

    /// The class of the peer in `slot`, seen from a side.
    #[inline]
    pub(crate) fn class_from(&self, side: usize, slot: usize, class: usize) -> usize {
        self.transform(side).map_or(class, |transform| transform.classes[slot][class])
    }
}

/// The sizes of a game's observations, actions and peer tuples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetworkDims {
    /// Size of an observation.
    pub(crate) observation: usize,
    pub(crate) n_actions: usize,
    pub(crate) n_peers: usize,
}

impl NetworkDims {
    pub(crate) fn of(spec: &GameSpec) -> NetworkDims {
        NetworkDims {
            observation: spec.observation_size,
            n_actions: spec.n_actions(),
            n_peers: spec.n_peers(),
        }
    }
}

/// A network with its weights, or a scripted ego, that plays in many lanes.
pub(crate) trait Actor: Debug + Send + Sync + 'static {
    /// The contexts of some lanes, and the buffers of a forward pass.
    type State: LaneStates;

    fn spec(&self) -> &NetworkSpec;

    /// Empty contexts. Each keeps at most `window` episodes, if the method stores episodes separately.
    fn new_state(&self, n_lanes: usize, window: Option<usize>) -> Self::State;

    /// Resets a lane's context at the start of an encounter. `seed` is for methods with randomness of their own.
    fn begin(&self, state: &mut Self::State, lane: usize, _seed: Seed) {
        self.clear_context(state, lane);
    }

    /// Removes all entries from a lane's context.
    fn clear_context(&self, state: &mut Self::State, lane: usize);

    /// Removes all entries from a lane's context except the episode just finished. Removes everything if the method does not store
    /// episodes separately.
    fn keep_last_episode(&self, state: &mut Self::State, lane: usize) {
        self.clear_context(state, lane);
    }

    /// Gives a lane's context its training tuple, and a seed for randomness that occurs only in training.
    fn reveal_tuple(&self, _state: &mut Self::State, _lane: usize, _tuple: usize, _seed: Seed) {}

    /// Passes one decision of each of `lanes` through the network. Changes no context.
    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut Self::State,
        out: &mut PolicyOutputs,
    );

    /// Confidence that the peer of a slot is of a class, from 0 to 1, in a row of [`Actor::forward_policy`]: the exploration
    /// reward before its weight.
    fn confidence(&self, _out: &PolicyOutputs, _row: usize, _slot: usize, _class: usize) -> f32 {
        0.0
    }

    /// Adds the decisions that were last passed through [`Actor::forward_policy`] to the contexts of their lanes.
    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut Self::State);

    /// Ends the episodes of some lanes with their terminal observations.
    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut Self::State);

    /// Appends the part of a lane's context before a decision that [`Network::accumulate`] needs.
    fn save_state(&self, _state: &Self::State, _lane: usize, _saved: &mut Vec<f32>) {}

    /// Appends the part of a lane's context that continues unchanged in the next rollout. The rest is computed again from the
    /// encounter, with the weights of that rollout.
    fn carry(&self, _state: &Self::State, _lane: usize, _carried: &mut Vec<f32>) {}

    /// Sets that part after the encounter was played again up to the start of a rollout.
    fn resume(&self, _state: &mut Self::State, _lane: usize, _carried: &[f32]) {}
}

/// The contexts of some lanes.
pub(crate) trait LaneStates: Debug + Send {
    /// Copies the contexts of these lanes, in this order.
    fn select(&self, lanes: &[usize]) -> Self;
}

/// One context per lane, and the buffers of a forward pass.
#[derive(Debug)]
pub(crate) struct Contexts<C, B> {
    pub(crate) lanes: Vec<C>,
    pub(crate) buffers: B,
}

impl<C: Clone, B: Default> Contexts<C, B> {
    pub(crate) fn new(context: C, n_lanes: usize) -> Contexts<C, B> {
        Contexts { lanes: vec![context; n_lanes], buffers: B::default() }
    }
}

impl<C: Clone + Debug + Send, B: Debug + Default + Send> LaneStates for Contexts<C, B> {
    fn select(&self, lanes: &[usize]) -> Contexts<C, B> {
        let lanes = lanes.iter().map(|lane| self.lanes[*lane].clone()).collect();
        Contexts { lanes, buffers: B::default() }
    }
}

/// The outputs of a forward pass, one row per decision. The caller owns them, so no later pass changes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyOutputs {
    pub(crate) logits: Vec<f32>,
    pub(crate) values: Vec<f32>,
    pub(crate) latents: Vec<f32>,
    /// The identifier's predictions about all peers; empty, like the posteriors, for methods without an identifier.
    pub(crate) predictions: Vec<f32>,
    /// The posteriors of all peers, one after the other.
    pub(crate) posteriors: Vec<f32>,
}

/// Decisions and the steps that followed, one per lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decisions<'a> {
    pub(crate) observations: &'a [f32],
    pub(crate) ego_actions: &'a [Action],
    /// The actions of all peers, step after step.
    pub(crate) peer_actions: &'a [Action],
    /// The observations of all peers; empty if they are not recorded.
    pub(crate) peer_observations: &'a [f32],
    /// Empty if unknown.
    pub(crate) task_rewards: &'a [f32],
}

/// A network of a method that is trained with PPO over encounters, with its weights.
pub(crate) trait Network: Actor + Clone + Sized {
    /// The buffers of [`Network::accumulate`]; each thread has its own.
    type Buffers: Debug + Default + Send;

    /// The network for a game with these training peers; all weights are 0.
    fn new(game: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> Self;

    /// Refuses keys that the method does not support.
    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), ConfigError>;

    /// Writes the initial weights (docs/methods/pace.md).
    fn initialise(&mut self, seed: Seed);

    fn weights(&self) -> &[f32];

    fn weights_mut(&mut self) -> &mut Vec<f32>;

    /// The segments that mini-batches are made of.
    fn segments(&self, batch: &Batch) -> Vec<Segment> {
        batch.whole_encounters()
    }

    /// Replaces the advantages that `gae` estimated, if the method uses others.
    fn adjust_advantages(&self, _batch: &mut Batch) {}

    /// Adds the gradient and the sums of the loss over the job's decisions.
    fn accumulate(&self, update: &mut ShardUpdate<'_>, buffers: &mut Self::Buffers);
}

/// Replaces the contents of a buffer.
pub(crate) fn copy_to(to: &mut Vec<f32>, from: &[f32]) {
    to.clear();
    to.extend_from_slice(from);
}
