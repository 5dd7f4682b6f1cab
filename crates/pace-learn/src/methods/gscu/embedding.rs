//! Policy2Emb: an encoder from the index of a training tuple to a normal distribution over latents, and a decoder from a peer's
//! observation and a latent to the peer's action.
//!
//! `embedding_stage` trains both. `belief` differentiates the decoder with respect to the latent in play.

use pace_games::Seed;
use pace_nn::loss::softmax_rows;
use pace_nn::{Activation, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode};

use super::keys::GscuConfig;
use crate::nets::{ensure_len, uniform};
use crate::network::NetworkDims;

/// The layers of both, with their own layout.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    /// One-hot tuple → hidden → means and logarithms of variances.
    encoder: Mlp,
    /// Observation of the peer → hidden → hidden.
    pub(super) tower: Mlp,
    /// Hidden ⊕ latent → hidden.
    pub(super) join: Linear,
    /// Hidden → logits.
    pub(super) head: Linear,
    layout: Layout,
    /// The indices of all tuples, which are all inputs that the encoder has.
    tuples: Vec<u8>,
}

/// The activations of the decoder, one row per sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderBuffers {
    tower: MlpBuffers,
    joined: Vec<f32>,
    d_joined: Vec<f32>,
    logits: Vec<f32>,
    /// Log-probabilities after the forward pass; the caller replaces them by the gradient of the logits for the backward pass.
    pub(crate) d_logits: Vec<f32>,
    pub(crate) probabilities: Vec<f32>,
    pub(crate) d_latents: Vec<f32>,
}

impl Embedding {
    pub(crate) fn new(sizes: NetworkDims, n_tuples: usize, keys: &GscuConfig) -> Embedding {
        let (width, latent_size) = (keys.embedding_width, keys.latent_size);
        let (relu, identity) = (Activation::Relu, Activation::Identity);
        let mut layout = Layout::default();
        let of_tuples = [width, 2 * latent_size];
        let encoder = Mlp::new(&mut layout, "embedding.encoder", &[n_tuples], &of_tuples, relu, identity);
        let size = sizes.observation;
        let tower = Mlp::new(&mut layout, "embedding.decoder", &[size], &[width; 2], relu, relu);
        let join = Linear::new(&mut layout, "embedding.decoder.2", &[width, latent_size], width, relu);
        let head = Linear::new(&mut layout, "embedding.decoder.3", &[width], sizes.n_actions, identity);
        let tuples = 0..u8::try_from(n_tuples).expect("checked with the keys");
        Embedding { encoder, tower, join, head, layout, tuples: tuples.collect() }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn latent_size(&self) -> usize {
        self.encoder.n_out() / 2
    }

    pub(crate) fn n_actions(&self) -> usize {
        self.head.n_out()
    }

    pub(crate) fn n_tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Initial weights, uniform within 1/√(inputs).
    pub(crate) fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.len()];
        let mut rng = seed.stream("embedding");
        let layers = self.encoder.layers().iter().chain(self.tower.layers()).chain([&self.join, &self.head]);
        layers.for_each(|layer| uniform(&mut weights, layer, &mut rng));
        weights
    }

    /// Writes the distributions of all tuples to `rows.out`: means, then logarithms of variances, tuple by tuple.
    pub(crate) fn encode(&self, parameters: &[f32], rows: &mut MlpBuffers) {
        self.encoder.forward(parameters, &[InputPart::OneHot(&self.tuples)], self.n_tuples(), rows);
        rows.d_out.fill(0.0);
    }

    /// Adds the gradient of the encoder's weights, from the gradients of the distributions.
    pub(crate) fn encode_backward(&self, transposed: &[f32], gradients: &mut [f32], rows: &mut MlpBuffers) {
        let parts = [InputPart::OneHot(&self.tuples[..])];
        self.encoder.backward(transposed, gradients, &parts, self.n_tuples(), rows, &mut []);
    }

    /// Computes the action probabilities of peers with these observations and latents.
    pub(crate) fn decode(
        &self,
        parameters: &[f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut DecoderBuffers,
    ) {
        self.tower.forward(parameters, &[InputPart::Dense(observations)], n_rows, &mut rows.tower);
        let n = n_rows * self.join.n_out();
        let (hidden, joined) = (&rows.tower.out[..n], ensure_len(&mut rows.joined, n));
        self.join.forward(parameters, &[InputPart::Dense(hidden), InputPart::Dense(latents)], n_rows, joined);
        let n_logits = n_rows * self.n_actions();
        let logits = ensure_len(&mut rows.logits, n_logits);
        self.head.forward(parameters, &[InputPart::Dense(joined)], n_rows, logits);
        let logs = ensure_len(&mut rows.d_logits, n_logits);
        softmax_rows(logits, &[self.n_actions()], logs, ensure_len(&mut rows.probabilities, n_logits));
    }

    /// Adds the gradient of the decoder's weights and writes `rows.d_latents`, from `rows.d_logits`.
    pub(crate) fn decode_backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut DecoderBuffers,
    ) {
        let n = n_rows * self.join.n_out();
        let (joined, d_joined) = (&rows.joined[..n], ensure_len(&mut rows.d_joined, n));
        let (hidden, d_hidden) = (&rows.tower.out[..n], &mut rows.tower.d_out[..n]);
        let d_latents = ensure_len(&mut rows.d_latents, latents.len());
        let d_logits = &mut rows.d_logits[..n_rows * self.n_actions()];
        let mut d_parts = [Some((&mut *d_joined, WriteMode::Overwrite))];
        self.head.backward(transposed, gradients, &[InputPart::Dense(joined)], &[], d_logits, &mut d_parts);
        let parts = [InputPart::Dense(hidden), InputPart::Dense(latents)];
        let mut d_parts = [Some((d_hidden, WriteMode::Overwrite)), Some((d_latents, WriteMode::Overwrite))];
        self.join.backward(transposed, gradients, &parts, joined, d_joined, &mut d_parts);
        let parts = [InputPart::Dense(observations)];
        self.tower.backward(transposed, gradients, &parts, n_rows, &mut rows.tower, &mut []);
    }
}
