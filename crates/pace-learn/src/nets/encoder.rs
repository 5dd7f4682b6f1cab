//! χ, the context encoder: the trait of its kinds, and the layers f and g that they are built of (`docs/methods/pace.md`).
//!
//! The kinds differ in how they pool entries between f and g: see `pooling_encoder` and `transformer`.

use std::fmt::Debug;
use std::ops::Range;

use pace_games::{Action, ConfigError, GameSpec, NO_ACTION, Stream};
use pace_nn::{Activation, DropoutKey, InputPart, Layout, Mlp};

use super::{PairIndex, orthogonal};
use crate::config::{ContextAction, TrainConfig};
use crate::learner::UpdateJob;
use crate::network::NetworkDims;

/// A map from the entries of an encounter so far to a latent.
pub(crate) trait Encoder: Clone + Debug + Send + Sync + Sized + 'static {
    /// The entries of a lane, as far as the encoder needs them.
    type Context: Clone + Debug + Send;
    type InferenceBuffers: Debug + Default + Send;
    type TrainingBuffers: Debug + Default + Send;

    /// Approximate number of decisions in a chunk.
    const CHUNK_ROWS: usize;

    fn new(layout: &mut Layout, spec: &GameSpec, config: &TrainConfig) -> Self;
    /// Refuses keys that this encoder does not support.
    fn check(config: &TrainConfig) -> Result<(), ConfigError>;
    fn initialise(&self, weights: &mut [f32], rng: &mut Stream);
    /// Width of the latent.
    fn width(&self) -> usize;

    /// An empty context that keeps at most `window` episodes.
    fn context(&self, window: Option<usize>) -> Self::Context;
    fn clear(&self, context: &mut Self::Context);
    /// Removes all episodes but the last finished one.
    fn keep_last_episode(&self, context: &mut Self::Context);
    /// Enables dropout for a context of the rollout, if the keys ask for it there. Contexts that are encoded together use the key
    /// of the first.
    fn enable_rollout_dropout(&self, _context: &mut Self::Context, _key: DropoutKey) {}
    /// Enables dropout for a context outside training, if the keys ask for it there. Every such context is encoded alone, so that
    /// its latents depend on its own key and entries.
    fn enable_evaluation_dropout(&self, _context: &mut Self::Context, _key: DropoutKey) {}
    /// Writes the latents of some lanes' contexts.
    fn encode(
        &self,
        weights: &[f32],
        contexts: &[Self::Context],
        lanes: &[usize],
        buffers: &mut Self::InferenceBuffers,
        latents: &mut Vec<f32>,
    );
    /// Adds one entry to each of some lanes' contexts; an action past the last one stands for none.
    fn add_entries(
        &self,
        weights: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        buffers: &mut Self::InferenceBuffers,
    );
    /// Adds the terminal entry of an episode to each of some lanes' contexts.
    fn end_episodes(
        &self,
        weights: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        buffers: &mut Self::InferenceBuffers,
    );

    /// Computes the latent before every selected decision of a chunk. `None` as key disables dropout.
    fn forward(
        &self,
        weights: &[f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        buffers: &mut Self::TrainingBuffers,
    );
    /// The latents of [`Encoder::forward`], and the place for their gradients. Both may be longer than the chunk.
    fn latents_and_gradients(buffers: &mut Self::TrainingBuffers) -> (&[f32], &mut [f32]);
    /// Adds the gradient of the weights, from the gradients of the latents.
    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        buffers: &mut Self::TrainingBuffers,
    );
}

/// The entries of some encounters, and the decisions among them that are learned from.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextChunk {
    pub(crate) spans: Vec<EncounterRange>,
    pub(crate) n_decisions: usize,
    /// First the entries of all decisions, then the terminal entries of all episodes: f runs once over all of them, and the
    /// decisions are still one block.
    pub(crate) observations: Vec<f32>,
    pub(crate) actions: Vec<Action>,
    /// Number of decisions of each episode.
    pub(crate) lengths: Vec<u32>,
    /// The selected decisions, in order.
    pub(crate) selected: Vec<usize>,
    /// Whether each selected decision is the first of its encounter.
    pub(crate) is_first: Vec<bool>,
    /// The selected decisions as places in the batch, and the encounter of each.
    pub(crate) batch_rows: Vec<usize>,
    pub(crate) encounters: Vec<u32>,
    /// The observations at the selected decisions; unused if all decisions are selected.
    selected_observations: Vec<f32>,
    /// The distinct entries; `None` if the batch has no index of its observations.
    distinct: Option<DistinctEntries>,
}

/// The distinct entries of a chunk.
#[derive(Clone, Debug, Default)]
struct DistinctEntries {
    observations: Vec<f32>,
    actions: Vec<Action>,
    /// The distinct entry of every entry of the chunk.
    indices: Vec<u32>,
    pairs: PairIndex,
}

/// The input of f.
pub(crate) struct Entries<'a> {
    pub(crate) observations: &'a [f32],
    pub(crate) actions: &'a [Action],
    /// The row of every entry of the chunk; `None` if row and entry are the same.
    pub(crate) indices: Option<&'a [u32]>,
}

/// The place of one encounter in a chunk.
#[derive(Clone, Debug)]
pub(crate) struct EncounterRange {
    pub(crate) decisions: Range<usize>,
    pub(crate) episodes: Range<usize>,
}

/// Appends the actions that are stored in contexts: the ego's, or the first peer's of every decision.
pub(crate) fn store_actions(
    whose: ContextAction,
    ego_actions: &[Action],
    peer_actions: &[Action],
    n_peers: usize,
    stored: &mut Vec<Action>,
) {
    match whose {
        ContextAction::Ego => stored.extend_from_slice(ego_actions),
        ContextAction::Peer => stored.extend(peer_actions.iter().step_by(n_peers)),
    }
}

impl ContextChunk {
    /// Copies these encounters from the batch, and selects their decisions that are in the mini-batch.
    pub(crate) fn gather(
        &mut self,
        job: &UpdateJob<'_>,
        encounters: &[u32],
        dims: NetworkDims,
        whose: ContextAction,
    ) {
        let (batch, NetworkDims { observation: size, n_peers, .. }) = (job.batch, dims);
        self.clear();
        for encounter in encounters {
            let decisions = batch.decisions(*encounter as usize);
            let episodes = batch.episodes(*encounter as usize);
            let (first_row, first_episode) = (self.actions.len(), self.lengths.len());
            for decision in decisions.clone() {
                if job.is_in_minibatch(decision) {
                    self.selected.push(first_row + decision - decisions.start);
                    self.is_first.push(decision == decisions.start);
                    self.batch_rows.push(decision);
                    self.encounters.push(*encounter);
                }
            }
            let observations = &batch.observations[decisions.start * size..decisions.end * size];
            let peer_actions = &batch.peer_actions[decisions.start * n_peers..decisions.end * n_peers];
            self.observations.extend_from_slice(observations);
            store_actions(whose, &batch.actions[decisions], peer_actions, n_peers, &mut self.actions);
            self.lengths.extend_from_slice(&batch.episode_lengths[episodes]);
            self.spans.push(EncounterRange {
                decisions: first_row..self.actions.len(),
                episodes: first_episode..self.lengths.len(),
            });
        }
        self.n_decisions = self.actions.len();
        for encounter in encounters {
            let episodes = batch.episodes(*encounter as usize);
            let observations = &batch.terminal_observations[episodes.start * size..episodes.end * size];
            self.observations.extend_from_slice(observations);
        }
        self.actions.resize(self.n_decisions + self.lengths.len(), NO_ACTION);
        let indices = batch.numbers.as_ref().map(|numbers| {
            let encounters = || encounters.iter().map(|encounter| *encounter as usize);
            let decisions = encounters().flat_map(|one| &numbers.decisions[batch.decisions(one)]);
            decisions.chain(encounters().flat_map(|one| &numbers.ends[batch.episodes(one)])).copied()
        });
        self.deduplicate(indices, dims);
        if !self.is_whole() {
            for row in &self.selected {
                self.selected_observations.extend_from_slice(&self.observations[row * size..][..size]);
            }
        }
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.n_decisions = 0;
        self.observations.clear();
        self.actions.clear();
        self.lengths.clear();
        self.selected.clear();
        self.is_first.clear();
        self.batch_rows.clear();
        self.encounters.clear();
        self.selected_observations.clear();
    }

    /// The observations at the selected decisions, `size` numbers each.
    pub(crate) fn selected_observations(&self, size: usize) -> &[f32] {
        if self.is_whole() {
            &self.observations[..self.n_decisions * size]
        } else {
            &self.selected_observations
        }
    }

    /// Finds the distinct entries, from the index of every entry's observation in the batch.
    fn deduplicate(&mut self, observation_indices: Option<impl Iterator<Item = u32>>, dims: NetworkDims) {
        let Some(observation_indices) = observation_indices else {
            self.distinct = None;
            return;
        };
        let distinct = self.distinct.get_or_insert_default();
        distinct.observations.clear();
        distinct.actions.clear();
        distinct.indices.clear();
        distinct.pairs.clear(dims.n_actions);
        let entries = self.observations.chunks_exact(dims.observation).zip(&self.actions);
        for ((observation, action), observation_index) in entries.zip(observation_indices) {
            let (index, is_new) = distinct.pairs.index_of(observation_index, *action);
            distinct.indices.push(index);
            if is_new {
                distinct.observations.extend_from_slice(observation);
                distinct.actions.push(*action);
            }
        }
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        match &self.distinct {
            None => Entries { observations: &self.observations, actions: &self.actions, indices: None },
            Some(DistinctEntries { observations, actions, indices, .. }) => {
                Entries { observations, actions, indices: Some(indices) }
            }
        }
    }

    /// Whether every decision is selected.
    pub(crate) fn is_whole(&self) -> bool {
        self.selected.len() == self.n_decisions
    }
}

/// f and g of the paper's encoder.
#[derive(Clone, Debug)]
pub(crate) struct ContextEncoder {
    /// From an entry to its features.
    pub(crate) f: Mlp,
    /// From pooled features to the latent.
    pub(crate) g: Mlp,
}

impl ContextEncoder {
    pub(crate) fn new(
        layout: &mut Layout,
        observation_size: usize,
        n_actions: usize,
        width: usize,
    ) -> ContextEncoder {
        let (input, relu) = ([observation_size, n_actions], Activation::Relu);
        let f = Mlp::new(layout, "encoder.f", &input, &[width; 2], relu, relu);
        ContextEncoder { f, g: latent_head(layout, width) }
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        for layer in self.f.layers().iter().chain(self.g.layers()) {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, rng);
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.g.n_out()
    }
}

/// g: from pooled features to the latent.
pub(crate) fn latent_head(layout: &mut Layout, width: usize) -> Mlp {
    Mlp::new(layout, "encoder.g", &[width], &[width; 2], Activation::Relu, Activation::Relu)
}

/// The input of f; an action past the last one stands for none.
pub(crate) fn entry_parts<'a>(observations: &'a [f32], actions: &'a [Action]) -> [InputPart<'a>; 2] {
    [InputPart::Dense(observations), InputPart::OneHot(actions)]
}
