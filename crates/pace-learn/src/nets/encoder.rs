//! χ, the context encoder: what it must be able to do, and the f and g that its kinds are built of (`docs/methods/pace.md`).
//!
//! How entries are pooled between f and g is what the kinds differ in: `pool` and `transformer`.

use std::fmt::Debug;
use std::ops::Range;

use pace_games::{Action, ConfigError, GameSpec, Stream};
use pace_nn::{Activation, DropoutKey, InputPart, Layout, Mlp};

use super::{PairIndex, orthogonal};
use crate::config::TrainConfig;

/// From the entries of an encounter so far to a latent.
pub(crate) trait Encoder: Clone + Debug + Send + Sync + Sized + 'static {
    /// What a lane keeps of its entries.
    type Context: Clone + Debug + Send;
    /// The rows of a pass that acts.
    type InferenceBuffers: Debug + Default + Send;
    /// The rows of a pass that learns.
    type TrainingBuffers: Debug + Default + Send;

    /// Decisions of a chunk that are passed through together, about.
    const CHUNK_ROWS: usize;

    fn new(layout: &mut Layout, spec: &GameSpec, config: &TrainConfig) -> Self;
    /// Refuses keys that there is no encoder for.
    fn check(config: &TrainConfig) -> Result<(), ConfigError>;
    fn initialise(&self, weights: &mut [f32], rng: &mut Stream);
    /// Width of the latent.
    fn width(&self) -> usize;

    /// An empty context that keeps at most `window` episodes.
    fn context(&self, window: Option<usize>) -> Self::Context;
    fn clear(&self, context: &mut Self::Context);
    /// Forgets all but the episode just finished.
    fn keep_last_episode(&self, context: &mut Self::Context);
    /// Has a context that plays for training drop what the key says, where the encoder drops anything there. Contexts that
    /// are passed through together follow the key of the first.
    fn enable_rollout_dropout(&self, _context: &mut Self::Context, _key: DropoutKey) {}
    /// The latents of some lanes' contexts, for [`Encoder::latents`].
    fn encode(
        &self,
        parameters: &[f32],
        contexts: &[Self::Context],
        lanes: &[usize],
        rows: &mut Self::InferenceBuffers,
    );
    fn latents(rows: &Self::InferenceBuffers) -> &[f32];
    /// Adds one entry to each of some lanes' contexts; an action past the last one stands for none.
    fn add_entries(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        rows: &mut Self::InferenceBuffers,
    );
    /// The same for the last entries of episodes.
    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        rows: &mut Self::InferenceBuffers,
    );

    /// The latent before every selected decision of a chunk. Nothing is dropped without a key.
    fn forward(
        &self,
        parameters: &[f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut Self::TrainingBuffers,
    );
    /// These latents, and the place for their gradients.
    fn latents_and_gradients(rows: &mut Self::TrainingBuffers) -> (&[f32], &mut [f32]);
    /// Takes these gradients back into `gradients`.
    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut Self::TrainingBuffers,
    );
}

/// The entries of some encounters, and the decisions whose latents are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextChunk {
    pub(crate) spans: Vec<EncounterRange>,
    pub(crate) n_decisions: usize,
    /// First the entries of all decisions, then those of all ends of episodes, so that f is one pass and the decisions are
    /// still one block.
    pub(crate) observations: Vec<f32>,
    pub(crate) actions: Vec<Action>,
    /// The decisions of every episode.
    pub(crate) lengths: Vec<u32>,
    /// The selected decisions, in order.
    pub(crate) selected: Vec<usize>,
    /// Which of them are the first of their encounter.
    pub(crate) is_first: Vec<bool>,
    /// The entries that differ, where they recur.
    recurring: Option<DistinctEntries>,
}

/// The entries of a chunk that differ.
#[derive(Clone, Debug, Default)]
struct DistinctEntries {
    observations: Vec<f32>,
    actions: Vec<Action>,
    /// Which of them each entry is.
    places: Vec<u32>,
    pairs: PairIndex,
}

/// What f has to encode.
pub(crate) struct Entries<'a> {
    pub(crate) observations: &'a [f32],
    pub(crate) actions: &'a [Action],
    /// Which of these each entry of the chunk is, if they are not all entries in order.
    pub(crate) places: Option<&'a [u32]>,
}

/// Where one encounter lies in a chunk.
#[derive(Clone, Debug)]
pub(crate) struct EncounterRange {
    pub(crate) decisions: Range<usize>,
    pub(crate) episodes: Range<usize>,
}

impl ContextChunk {
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.n_decisions = 0;
        self.observations.clear();
        self.actions.clear();
        self.lengths.clear();
        self.selected.clear();
        self.is_first.clear();
    }

    /// Finds the entries that differ, by the numbers of all entries' observations; without numbers none are looked for.
    pub(crate) fn deduplicate(&mut self, numbers: Option<impl Iterator<Item = u32>>, size: usize) {
        let Some(numbers) = numbers else {
            self.recurring = None;
            return;
        };
        let recurring = self.recurring.get_or_insert_default();
        recurring.observations.clear();
        recurring.actions.clear();
        recurring.places.clear();
        recurring.pairs.clear();
        for ((observation, action), number) in
            self.observations.chunks_exact(size).zip(&self.actions).zip(numbers)
        {
            let (place, is_new) = recurring.pairs.number(number, *action);
            recurring.places.push(place);
            if is_new {
                recurring.observations.extend_from_slice(observation);
                recurring.actions.push(*action);
            }
        }
    }

    pub(crate) fn entries(&self) -> Entries<'_> {
        match &self.recurring {
            None => Entries { observations: &self.observations, actions: &self.actions, places: None },
            Some(DistinctEntries { observations, actions, places, .. }) => {
                Entries { observations, actions, places: Some(places) }
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
    /// From what was pooled to the latent.
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

/// g: from what was pooled to the latent.
pub(crate) fn latent_head(layout: &mut Layout, width: usize) -> Mlp {
    Mlp::new(layout, "encoder.g", &[width], &[width; 2], Activation::Relu, Activation::Relu)
}

/// The input of f; an action past the last one stands for none.
pub(crate) fn entry_parts<'a>(observations: &'a [f32], actions: &'a [Action]) -> [InputPart<'a>; 2] {
    [InputPart::Dense(observations), InputPart::OneHot(actions)]
}
