//! What a method brings: a network, what a lane keeps of its encounter, the pass that acts and the pass that learns.
//!
//! Rollout, learner and adaptation are generic over [`Network`], so that their loops know the method; the type is erased
//! once, where `train` and `agent` meet the public API.

use std::fmt::Debug;
use std::ops::Range;

use pace_games::{Action, GameError, GameSpec, PeerSight, PoolListing, Seed, Sides};
use pace_nn::{Layout, Linear};

use crate::batch::{Batch, Piece};
use crate::config::TrainConfig;
use crate::learner::{UpdateJob, UpdateShard};

/// The network of a method trained with PPO over encounters.
pub(crate) trait Network: Clone + Debug + Send + Sync + Sized + 'static {
    /// What a lane keeps of its encounter from one decision to the next.
    type Context: Clone + Debug + Send + 'static;
    /// The rows of a pass that acts.
    type ActRows: Debug + Default + Send;
    /// The rows of a pass that learns: what a thread works in.
    type LearnRows: Debug + Default + Send;

    /// The names in the log of the method's own sums ([`crate::learner::UpdateSums::own`]).
    const METRICS: &'static [&'static str];

    /// The network for a game with these training peers.
    fn new(spec: &GameSpec, pool: &PoolListing, config: &TrainConfig) -> Self;

    /// Refuses keys that the method could not follow.
    fn check(config: &TrainConfig, pool: &PoolListing) -> Result<(), GameError>;

    /// Names, shapes and places of the weights.
    fn layout(&self) -> &Layout;

    /// The layer that the logits come from.
    fn policy_head(&self) -> &Linear;

    /// Initial weights (`docs/methods/README.md`).
    fn initialise(&self, seed: Seed) -> Vec<f32>;

    /// Where each group of weights ends. Where there are two, the warm-up trains the first alone. What lies behind the last
    /// end is not trained.
    fn group_ends(&self) -> Vec<usize> {
        vec![self.layout().len()]
    }

    /// Whether the gradient of each group is clipped by its own norm.
    fn clips_groups_apart(&self) -> bool {
        false
    }

    /// What goes in and out.
    fn sizes(&self) -> Sizes;

    /// The place of each peer's posterior in a row of posteriors; none where the method identifies nobody.
    fn slots(&self) -> Vec<Range<usize>> {
        Vec::new()
    }

    /// The sides of the game, where the ego looks at every encounter from its own: what the network is shown and what it
    /// chooses is then as it is from there.
    fn sides(&self) -> Option<&Sides> {
        None
    }

    /// What a class of the peer in `slot` is from a side.
    #[inline]
    fn class_from(&self, side: usize, slot: usize, class: usize) -> usize {
        self.sides().map_or(class, |sides| sides.turns[side].classes[slot][class])
    }

    /// Whether the batch must hold what the peers saw.
    fn peer_sight(&self) -> PeerSight {
        PeerSight::Skipped
    }

    /// Whether a context that adapts must be told what the peers saw.
    fn adapting_sight(&self) -> PeerSight {
        PeerSight::Skipped
    }

    /// Episodes of an encounter in training.
    fn training_episodes(&self, spec: &GameSpec) -> usize {
        spec.episodes_per_encounter
    }

    /// The context of an encounter that begins; it keeps at most `window` episodes, where the method can tell them apart.
    fn context(&self, window: Option<usize>) -> Self::Context;

    /// Makes a context that of an encounter that begins, with chance of its own where it needs any.
    fn begin(&self, context: &mut Self::Context, _seed: Seed) {
        self.forget(context);
    }

    /// Makes a context that of an encounter in which nothing was seen yet.
    fn forget(&self, context: &mut Self::Context);

    /// Forgets all but the episode just finished; everything, where the method cannot tell episodes apart.
    fn forget_but_last(&self, context: &mut Self::Context) {
        self.forget(context);
    }

    /// Tells a context which training tuple it meets, with chance for what is left to it in training alone. Nobody else does
    /// so, and only some methods listen.
    fn tell(&self, _context: &mut Self::Context, _tuple: usize, _seed: Seed) {}

    /// Passes one decision of each of `lanes` through the network; [`Network::acted`] reads the result. Changes no context.
    fn act(
        &self,
        parameters: &[f32],
        observations: &[f32],
        contexts: &[Self::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    );

    /// What [`Network::act`] made of its decisions.
    fn acted<'a>(&self, rows: &'a Self::ActRows) -> Acted<'a>;

    /// How well the method knows that the peer of a slot is of a class, from 0 to 1, in a row of [`Network::act`]. A method
    /// that identifies nobody knows nothing.
    fn confidence(&self, _rows: &Self::ActRows, _row: usize, _slot: usize, _class: usize) -> f32 {
        0.0
    }

    /// Adds the decisions that [`Network::act`] just passed through `rows` to the contexts of their lanes.
    fn take_in(
        &self,
        parameters: &[f32],
        decisions: &Decisions<'_>,
        contexts: &mut [Self::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    );

    /// Ends the episodes of some lanes with what their egos saw last.
    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    );

    /// Writes down what the pass that learns needs of a context, as it is before a decision.
    fn keep(&self, _context: &Self::Context, _kept: &mut Vec<f32>) {}

    /// Changes the credit that `gae` gave, where the method wants another.
    fn credit(&self, _batch: &mut Batch) {}

    /// The pieces that mini-batches are made of.
    fn pieces(&self, batch: &Batch) -> Vec<Piece> {
        batch.cut(usize::MAX)
    }

    /// Adds the gradient of the loss over the due decisions to the shard; `transposed` is what [`Layout::transpose`] made
    /// of the parameters.
    fn accumulate(
        &self,
        parameters: &[f32],
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut Self::LearnRows,
        shard: &mut UpdateShard,
    );
}

/// The numbers of a game that shape its networks and batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Numbers in an observation.
    pub(crate) observation: usize,
    pub(crate) n_actions: usize,
    pub(crate) n_peers: usize,
}

impl Sizes {
    pub(crate) fn of(spec: &GameSpec) -> Sizes {
        Sizes { observation: spec.observation_size, n_actions: spec.n_actions(), n_peers: spec.n_peers() }
    }
}

/// One row per decision; the slices may be longer than the decisions need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acted<'a> {
    pub(crate) logits: &'a [f32],
    pub(crate) values: &'a [f32],
    /// The posteriors of all peers, one after the other; empty where the method identifies nobody.
    pub(crate) posteriors: &'a [f32],
    pub(crate) latents: &'a [f32],
    pub(crate) latent_size: usize,
}

/// Decisions that were carried out, one per lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decisions<'a> {
    pub(crate) observations: &'a [f32],
    pub(crate) ego_actions: &'a [Action],
    /// What all peers did in each step, one step after the other.
    pub(crate) peer_actions: &'a [Action],
    /// What they saw then; empty where nobody asked.
    pub(crate) peer_observations: &'a [f32],
    /// What the game paid; empty where that is not known.
    pub(crate) task_rewards: &'a [f32],
}
