//! χ, the context encoder: what it must be able to do, and the f and g that its kinds are built of (methods.md 2.1).
//!
//! How entries are pooled between f and g is what the kinds differ in: `pool` and `transformer`.

use std::fmt::Debug;
use std::ops::Range;

use pace_games::{Action, GameError, GameSpec, Stream};
use pace_nn::product::ProductShape;
use pace_nn::{Activation, DropoutKey, Linear, Parameters, Part, Store};

use super::{Pairs, fit, orthogonal};
use crate::config::TrainConfig;

/// From the entries of an encounter so far to a latent.
pub(crate) trait Encoder: Clone + Debug + Send + Sync + Sized + 'static {
    /// What a lane keeps of its entries.
    type Context: Clone + Debug + Send;
    /// The rows of a pass that acts.
    type ActRows: Debug + Default + Send;
    /// The rows of a pass that learns.
    type LearnRows: Debug + Default + Send;

    /// Decisions of a chunk that are passed through together, about.
    const CHUNK_ROWS: usize;

    fn new(parameters: &mut Parameters, spec: &GameSpec, config: &TrainConfig) -> Self;
    /// Refuses keys that there is no encoder for.
    fn check(config: &TrainConfig) -> Result<(), GameError>;
    fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream);
    fn transpose(&self, parameters: &[f32], transposed: &mut [f32]);
    /// Width of the latent.
    fn width(&self) -> usize;

    /// An empty context that keeps at most `window` episodes.
    fn context(&self, window: Option<usize>) -> Self::Context;
    fn forget(&self, context: &mut Self::Context);
    /// Forgets all but the episode just finished.
    fn forget_but_last(&self, context: &mut Self::Context);
    /// Has a context that plays for training drop what the key says, where the encoder drops anything there. Contexts that
    /// are passed through together follow the key of the first.
    fn drop_in_play(&self, _context: &mut Self::Context, _key: DropoutKey) {}
    /// The latents of some lanes' contexts, for [`Encoder::latents`].
    fn encode(
        &self,
        parameters: &[f32],
        contexts: &[Self::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    );
    fn latents(rows: &Self::ActRows) -> &[f32];
    /// Adds one entry to each of some lanes' contexts; an action past the last one stands for none.
    fn add_entries(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    );
    /// The same for the last entries of episodes.
    fn end_episodes(
        &self,
        parameters: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [Self::Context],
        lanes: &[usize],
        rows: &mut Self::ActRows,
    );

    /// The latent before every selected decision of a chunk. Nothing is dropped without a key.
    fn forward(
        &self,
        parameters: &[f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut Self::LearnRows,
    );
    /// These latents, and the place for their gradients.
    fn latents_and_gradients(rows: &mut Self::LearnRows) -> (&[f32], &mut [f32]);
    /// Takes these gradients back into `gradients`.
    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        chunk: &ContextChunk,
        key: Option<DropoutKey>,
        rows: &mut Self::LearnRows,
    );
    /// The matrix products of [`Encoder::forward`] and [`Encoder::backward`].
    fn products(&self, chunk: &ContextChunk) -> Vec<ProductShape>;
}

/// The entries of some encounters, and the decisions whose latents are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContextChunk {
    pub(crate) spans: Vec<Span>,
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
    recurring: Option<RecurringEntries>,
}

/// The entries of a chunk that differ.
#[derive(Clone, Debug, Default)]
struct RecurringEntries {
    observations: Vec<f32>,
    actions: Vec<Action>,
    /// Which of them each entry is.
    places: Vec<u32>,
    pairs: Pairs,
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
pub(crate) struct Span {
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
    pub(crate) fn find_recurring(&mut self, numbers: Option<impl Iterator<Item = u32>>, size: usize) {
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
            Some(RecurringEntries { observations, actions, places, .. }) => {
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
    f: [Linear; 2],
    g: LatentHead,
    width: usize,
}

/// g: from what was pooled to the latent.
#[derive(Clone, Debug)]
pub(crate) struct LatentHead {
    layers: [Linear; 2],
}

/// The hidden and output rows of f or of g for one chunk, kept for the way back.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncoderRows {
    hidden: Vec<f32>,
    pub(crate) out: Vec<f32>,
    d_hidden: Vec<f32>,
    pub(crate) d_out: Vec<f32>,
}

impl EncoderRows {
    pub(crate) fn fit(&mut self, n_rows: usize, width: usize) {
        for buffer in [&mut self.hidden, &mut self.out, &mut self.d_hidden, &mut self.d_out] {
            fit(buffer, n_rows * width);
        }
    }
}

impl ContextEncoder {
    pub(crate) fn new(
        parameters: &mut Parameters,
        observation_size: usize,
        n_actions: usize,
        width: usize,
    ) -> ContextEncoder {
        let mut layer = |name: &str, widths: &[usize]| {
            Linear::new(parameters, &format!("encoder.f.{name}"), widths, width, Activation::Relu)
        };
        let f = [layer("0", &[observation_size, n_actions]), layer("1", &[width])];
        ContextEncoder { f, g: LatentHead::new(parameters, width), width }
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        for layer in self.layers() {
            orthogonal(parameters, layer, std::f64::consts::SQRT_2, rng);
        }
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        self.f.iter().chain(&self.g.layers)
    }

    pub(crate) fn g(&self) -> &LatentHead {
        &self.g
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// f on entries; an action past the last one stands for none.
    pub(crate) fn encode_entries(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        rows: &mut EncoderRows,
    ) {
        let n = actions.len();
        rows.fit(n, self.width);
        let hidden = &mut rows.hidden[..n * self.width];
        self.f[0].forward(parameters, &[Part::Dense(observations), Part::OneHot(actions)], n, hidden);
        self.f[1].forward(parameters, &[Part::Dense(hidden)], n, &mut rows.out[..n * self.width]);
    }

    /// Takes `rows.d_out` back through f into `gradients`.
    pub(crate) fn entries_backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        observations: &[f32],
        actions: &[Action],
        rows: &mut EncoderRows,
    ) {
        let n = actions.len() * self.width;
        let (hidden, d_hidden) = (&rows.hidden[..n], &mut rows.d_hidden[..n]);
        self.f[1].backward(
            transposed,
            gradients,
            &[Part::Dense(hidden)],
            &rows.out[..n],
            &mut rows.d_out[..n],
            &mut [Some((d_hidden, Store::Overwrite))],
        );
        let parts = [Part::Dense(observations), Part::OneHot(actions)];
        self.f[0].backward(transposed, gradients, &parts, hidden, d_hidden, &mut [None, None]);
    }

    /// The matrix products of one pass forward and back of f.
    pub(crate) fn products(&self, n_entries: usize) -> Vec<ProductShape> {
        let mut products = self.f[0].products(n_entries, &[Some(false), None]);
        products.extend(self.f[1].products(n_entries, &[Some(true)]));
        products
    }
}

impl LatentHead {
    pub(crate) fn new(parameters: &mut Parameters, width: usize) -> LatentHead {
        let mut layer = |name: &str| Linear::new(parameters, name, &[width], width, Activation::Relu);
        LatentHead { layers: [layer("encoder.g.0"), layer("encoder.g.1")] }
    }

    pub(crate) fn layers(&self) -> &[Linear] {
        &self.layers
    }

    pub(crate) fn forward(&self, parameters: &[f32], pooled: &[f32], n_rows: usize, rows: &mut EncoderRows) {
        let width = self.layers[0].n_out();
        rows.fit(n_rows, width);
        let n = n_rows * width;
        let (hidden, out) = (&mut rows.hidden[..n], &mut rows.out[..n]);
        self.layers[0].forward(parameters, &[Part::Dense(pooled)], n_rows, hidden);
        self.layers[1].forward(parameters, &[Part::Dense(hidden)], n_rows, out);
    }

    /// Takes `rows.d_out` back into `gradients` and `d_pooled`.
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        pooled: &[f32],
        rows: &mut EncoderRows,
        d_pooled: &mut [f32],
    ) {
        let n = pooled.len();
        let (hidden, d_hidden) = (&rows.hidden[..n], &mut rows.d_hidden[..n]);
        self.layers[1].backward(
            transposed,
            gradients,
            &[Part::Dense(hidden)],
            &rows.out[..n],
            &mut rows.d_out[..n],
            &mut [Some((d_hidden, Store::Overwrite))],
        );
        self.layers[0].backward(
            transposed,
            gradients,
            &[Part::Dense(pooled)],
            hidden,
            d_hidden,
            &mut [Some((d_pooled, Store::Overwrite))],
        );
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_rows: usize) -> Vec<ProductShape> {
        self.layers.iter().flat_map(|layer| layer.products(n_rows, &[Some(true)])).collect()
    }
}
