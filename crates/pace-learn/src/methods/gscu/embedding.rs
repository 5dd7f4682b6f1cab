//! Policy2Emb: an encoder from the number of a training tuple to a normal distribution over latents, and a decoder from
//! what a peer saw, and a latent, to what it did.
//!
//! How both are trained is in `embedding_stage`; the belief that goes the decoder's way back online is in `belief`.

use pace_games::Seed;
use pace_nn::loss::softmax_rows;
use pace_nn::{Activation, Linear, Parameters, Part, Store};

use super::keys::GscuConfig;
use crate::nets::{fit, uniform};
use crate::network::Sizes;

/// Where the weights of both lie, in a layout of their own.
#[derive(Clone, Debug)]
pub(crate) struct Embedding {
    /// One-hot tuple → hidden → means and logarithms of variances.
    encoder: [Linear; 2],
    /// What the peer saw → hidden → hidden.
    pub(super) tower: [Linear; 2],
    /// Hidden ⊕ latent → hidden.
    pub(super) join: Linear,
    /// Hidden → logits.
    pub(super) head: Linear,
    layout: Parameters,
    /// Every tuple once: the encoder has no other inputs.
    tuples: Vec<u8>,
}

/// The rows of the encoder: one per tuple.
#[derive(Clone, Debug, Default)]
pub(crate) struct TupleRows {
    hidden: Vec<f32>,
    /// Means, then logarithms of variances, of every tuple.
    pub(crate) distributions: Vec<f32>,
    d_hidden: Vec<f32>,
    pub(crate) d_distributions: Vec<f32>,
}

/// The rows of the decoder: one per sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecoderRows {
    hidden: [Vec<f32>; 3],
    logits: Vec<f32>,
    d_hidden: [Vec<f32>; 3],
    /// Comes out of the forward pass with log-probabilities, and is to hold the gradient of the logits for the way back.
    pub(crate) d_logits: Vec<f32>,
    pub(crate) probabilities: Vec<f32>,
    pub(crate) d_latents: Vec<f32>,
}

impl Embedding {
    pub(crate) fn new(sizes: Sizes, n_tuples: usize, keys: &GscuConfig) -> Embedding {
        let (width, latent_size) = (keys.embedding_width, keys.latent_size);
        let mut layout = Parameters::default();
        let mut layer = |name: &str, widths: &[usize], n_out: usize, activation| {
            Linear::new(&mut layout, &format!("embedding.{name}"), widths, n_out, activation)
        };
        Embedding {
            encoder: [
                layer("encoder.0", &[n_tuples], width, Activation::Relu),
                layer("encoder.1", &[width], 2 * latent_size, Activation::Identity),
            ],
            tower: [
                layer("decoder.0", &[sizes.observation], width, Activation::Relu),
                layer("decoder.1", &[width], width, Activation::Relu),
            ],
            join: layer("decoder.2", &[width, latent_size], width, Activation::Relu),
            head: layer("decoder.3", &[width], sizes.n_actions, Activation::Identity),
            layout,
            tuples: (0..n_tuples).map(|tuple| u8::try_from(tuple).expect("checked with the keys")).collect(),
        }
    }

    pub(crate) fn layout(&self) -> &Parameters {
        &self.layout
    }

    pub(crate) fn latent_size(&self) -> usize {
        self.encoder[1].n_out() / 2
    }

    pub(crate) fn n_actions(&self) -> usize {
        self.head.n_out()
    }

    pub(crate) fn n_tuples(&self) -> usize {
        self.tuples.len()
    }

    fn layers(&self) -> impl Iterator<Item = &Linear> {
        self.encoder.iter().chain(&self.tower).chain([&self.join, &self.head])
    }

    /// First weights, uniform within 1/√(inputs).
    pub(crate) fn initialise(&self, seed: Seed) -> Vec<f32> {
        let mut parameters = self.layout.clone();
        let mut rng = seed.stream("embedding");
        self.layers().for_each(|layer| uniform(&mut parameters, layer, &mut rng));
        parameters.values
    }

    pub(crate) fn transpose(&self, parameters: &[f32], transposed: &mut [f32]) {
        self.layers().for_each(|layer| layer.transpose(parameters, transposed));
    }

    /// The distributions of all tuples.
    pub(crate) fn encode(&self, parameters: &[f32], rows: &mut TupleRows) {
        let n = self.n_tuples();
        let hidden = fit(&mut rows.hidden, n * self.encoder[0].n_out());
        self.encoder[0].forward(parameters, &[Part::OneHot(&self.tuples)], n, hidden);
        let out = fit(&mut rows.distributions, n * self.encoder[1].n_out());
        self.encoder[1].forward(parameters, &[Part::Dense(hidden)], n, out);
        fit(&mut rows.d_distributions, n * self.encoder[1].n_out()).fill(0.0);
    }

    /// Takes the gradients of the distributions back.
    pub(crate) fn encode_backward(&self, transposed: &[f32], gradients: &mut [f32], rows: &mut TupleRows) {
        let d_hidden = fit(&mut rows.d_hidden, rows.hidden.len());
        self.encoder[1].backward(
            transposed,
            gradients,
            &[Part::Dense(&rows.hidden)],
            &rows.distributions,
            &mut rows.d_distributions,
            &mut [Some((d_hidden, Store::Overwrite))],
        );
        let parts = [Part::OneHot(&self.tuples[..])];
        self.encoder[0].backward(transposed, gradients, &parts, &rows.hidden, d_hidden, &mut [None]);
    }

    /// What peers who saw this, and have these latents, are likely to do.
    pub(crate) fn decode(
        &self,
        parameters: &[f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut DecoderRows,
    ) {
        let n = n_rows * self.join.n_out();
        let [first, second, third] = &mut rows.hidden;
        let (first, second, third) = (fit(first, n), fit(second, n), fit(third, n));
        self.tower[0].forward(parameters, &[Part::Dense(observations)], n_rows, first);
        self.tower[1].forward(parameters, &[Part::Dense(first)], n_rows, second);
        self.join.forward(parameters, &[Part::Dense(second), Part::Dense(latents)], n_rows, third);
        let n_logits = n_rows * self.n_actions();
        let logits = fit(&mut rows.logits, n_logits);
        self.head.forward(parameters, &[Part::Dense(third)], n_rows, logits);
        let logs = fit(&mut rows.d_logits, n_logits);
        softmax_rows(logits, &[self.n_actions()], logs, fit(&mut rows.probabilities, n_logits));
    }

    /// Takes `rows.d_logits` back into `gradients` and `rows.d_latents`.
    pub(crate) fn decode_backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut DecoderRows,
    ) {
        let n = n_rows * self.join.n_out();
        let [first, second, third] = &rows.hidden;
        let (first, second, third) = (&first[..n], &second[..n], &third[..n]);
        let [d_first, d_second, d_third] = &mut rows.d_hidden;
        let (d_first, d_second, d_third) = (fit(d_first, n), fit(d_second, n), fit(d_third, n));
        let d_latents = fit(&mut rows.d_latents, latents.len());
        let n_logits = n_rows * self.n_actions();
        self.head.backward(
            transposed,
            gradients,
            &[Part::Dense(third)],
            &rows.logits[..n_logits],
            &mut rows.d_logits[..n_logits],
            &mut [Some((d_third, Store::Overwrite))],
        );
        self.join.backward(
            transposed,
            gradients,
            &[Part::Dense(second), Part::Dense(latents)],
            third,
            d_third,
            &mut [Some((d_second, Store::Overwrite)), Some((d_latents, Store::Overwrite))],
        );
        self.tower[1].backward(
            transposed,
            gradients,
            &[Part::Dense(first)],
            second,
            d_second,
            &mut [Some((d_first, Store::Overwrite))],
        );
        let parts = [Part::Dense(observations)];
        self.tower[0].backward(transposed, gradients, &parts, first, d_first, &mut [None]);
    }
}
