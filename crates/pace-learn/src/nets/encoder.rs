//! χ, the context encoder: f on every entry, the mean of means, g on the pooled vector (methods.md 2.1).

use pace_games::{Action, Stream};
use pace_nn::product::ProductShape;
use pace_nn::{Activation, Linear, Parameters, Part, Store};

use super::{fit, orthogonal};

/// Where the weights of f and g lie.
#[derive(Clone, Debug)]
pub(crate) struct ContextEncoder {
    f: [Linear; 2],
    g: [Linear; 2],
    width: usize,
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
            Linear::new(parameters, &format!("encoder.{name}"), widths, width, Activation::Relu)
        };
        ContextEncoder {
            f: [layer("f.0", &[observation_size, n_actions]), layer("f.1", &[width])],
            g: [layer("g.0", &[width]), layer("g.1", &[width])],
            width,
        }
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        for layer in self.f.iter().chain(&self.g) {
            orthogonal(parameters, layer, std::f64::consts::SQRT_2, rng);
        }
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        self.f.iter().chain(&self.g)
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

    /// g on pooled vectors.
    pub(crate) fn encode_pooled(
        &self,
        parameters: &[f32],
        pooled: &[f32],
        n_rows: usize,
        rows: &mut EncoderRows,
    ) {
        rows.fit(n_rows, self.width);
        let n = n_rows * self.width;
        self.g[0].forward(parameters, &[Part::Dense(pooled)], n_rows, &mut rows.hidden[..n]);
        self.g[1].forward(parameters, &[Part::Dense(&rows.hidden[..n])], n_rows, &mut rows.out[..n]);
    }

    /// Takes `rows.d_out` back through g into `gradients` and `d_pooled`.
    pub(crate) fn pooled_backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        pooled: &[f32],
        rows: &mut EncoderRows,
        d_pooled: &mut [f32],
    ) {
        let n = pooled.len();
        let (hidden, d_hidden) = (&rows.hidden[..n], &mut rows.d_hidden[..n]);
        self.g[1].backward(
            transposed,
            gradients,
            &[Part::Dense(hidden)],
            &rows.out[..n],
            &mut rows.d_out[..n],
            &mut [Some((d_hidden, Store::Overwrite))],
        );
        self.g[0].backward(
            transposed,
            gradients,
            &[Part::Dense(pooled)],
            hidden,
            d_hidden,
            &mut [Some((d_pooled, Store::Overwrite))],
        );
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_entries: usize, n_selected: usize) -> Vec<ProductShape> {
        let mut products = Vec::new();
        products.extend(self.f[0].products(n_entries, &[Some(false), None]));
        products.extend(self.f[1].products(n_entries, &[Some(true)]));
        for layer in &self.g {
            products.extend(layer.products(n_selected, &[Some(true)]));
        }
        products
    }
}
