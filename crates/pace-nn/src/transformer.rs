//! A Transformer encoder layer with normalisation after each half (post-norm), like PyTorch's `nn.TransformerEncoderLayer`.
//!
//! It computes `y = norm(x + drop(attention(x)))` and then `norm(y + drop(W₂ · drop(relu(W₁ · y))))`.

use crate::attention::{Attention, AttentionBuffers, Sequences};
use crate::dropout::{Dropout, DropoutKey};
use crate::initialise;
use crate::kernels::add;
use crate::layout::Layout;
use crate::linear::{Activation, InputPart, Linear, WriteMode};
use crate::norm::LayerNorm;
use crate::rows::ensure_len;

/// Hyperparameters of the layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransformerConfig {
    /// Width of a row.
    pub width: usize,
    /// Number of attention heads.
    pub n_heads: usize,
    /// Width between the two linear layers.
    pub hidden_width: usize,
    /// Dropout rate; the layer applies dropout at four points.
    pub dropout: f32,
}

/// A Transformer encoder layer.
#[derive(Clone, Debug)]
pub struct TransformerLayer {
    config: TransformerConfig,
    attention: Attention,
    attention_norm: LayerNorm,
    forward_layers: [Linear; 2],
    forward_norm: LayerNorm,
    dropout: Dropout,
}

/// Results of the forward pass over one chunk, kept for the backward pass.
#[derive(Clone, Debug, Default)]
pub struct TransformerBuffers {
    /// Output of the layer, one row per row of the sequences.
    pub out: Vec<f32>,
    /// Gradient of `out`, written by the caller before the backward pass.
    pub d_out: Vec<f32>,
    attention: AttentionBuffers,
    /// Output of the first half.
    middle: Vec<f32>,
    d_middle: Vec<f32>,
    hidden: Vec<f32>,
    d_hidden: Vec<f32>,
    normalised: [Vec<f32>; 2],
    scales: [Vec<f32>; 2],
}

/// Indices of the four dropout keys that are derived from a pass's key.
mod key_index {
    pub(super) const WEIGHTS: u64 = 0;
    pub(super) const ATTENDED: u64 = 1;
    pub(super) const HIDDEN: u64 = 2;
    pub(super) const FORWARDED: u64 = 3;
}

impl TransformerLayer {
    /// Reserves the weights.
    pub fn new(layout: &mut Layout, name: &str, config: TransformerConfig) -> TransformerLayer {
        let TransformerConfig { width, n_heads, hidden_width, dropout } = config;
        let dropout = Dropout::new(dropout);
        let named = |part: &str| format!("{name}.{part}");
        TransformerLayer {
            config,
            attention: Attention::new(layout, &named("attention"), width, n_heads, dropout),
            attention_norm: LayerNorm::new(layout, &named("attention_norm"), width),
            forward_layers: [
                Linear::new(layout, &named("forward.0"), &[width], hidden_width, Activation::Relu),
                Linear::new(layout, &named("forward.1"), &[hidden_width], width, Activation::Identity),
            ],
            forward_norm: LayerNorm::new(layout, &named("forward_norm"), width),
            dropout,
        }
    }

    /// Initialises the weights like PyTorch.
    pub fn initialise(&self, parameters: &mut [f32], uniform: &mut dyn FnMut() -> f64) {
        self.attention.initialise(parameters, uniform);
        for layer in &self.forward_layers {
            let bound = 1.0 / (layer.n_in() as f64).sqrt();
            for tensor in [layer.weights(), layer.biases()] {
                initialise::uniform_within(&mut parameters[tensor.range()], bound, uniform);
            }
        }
        self.attention_norm.initialise(parameters);
        self.forward_norm.initialise(parameters);
    }

    /// Returns the width of a row.
    pub fn width(&self) -> usize {
        self.config.width
    }

    /// Writes one row to `buffers.out` per row of the sequences. Without a `key` there is no dropout.
    pub fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        buffers: &mut TransformerBuffers,
    ) {
        let n_rows = sequences.n_rows();
        let n = n_rows * self.config.width;
        let [attended, forwarded] = &mut buffers.normalised;
        let [attention_scales, forward_scales] = &mut buffers.scales;
        let attended = ensure_len(attended, n);
        let weights_key = key.map(|key| key.of(key_index::WEIGHTS));
        self.attention.forward(parameters, inputs, sequences, weights_key, &mut buffers.attention, attended);
        self.drop(key, key_index::ATTENDED, attended);
        let middle = ensure_len(&mut buffers.middle, n);
        sequences.gather(inputs, self.config.width, middle);
        add(attended, middle);
        self.attention_norm.forward(parameters, attended, ensure_len(attention_scales, n_rows), middle);

        let hidden = ensure_len(&mut buffers.hidden, n_rows * self.config.hidden_width);
        self.forward_layers[0].forward(parameters, &[InputPart::Dense(middle)], n_rows, hidden);
        self.drop(key, key_index::HIDDEN, hidden);
        let forwarded = ensure_len(forwarded, n);
        self.forward_layers[1].forward(parameters, &[InputPart::Dense(hidden)], n_rows, forwarded);
        self.drop(key, key_index::FORWARDED, forwarded);
        add(forwarded, middle);
        let out = ensure_len(&mut buffers.out, n);
        self.forward_norm.forward(parameters, forwarded, ensure_len(forward_scales, n_rows), out);
        ensure_len(&mut buffers.d_out, n);
    }

    /// Backward pass from `buffers.d_out` through the chunk of the last forward pass, with the same `key`. Adds to `gradients`
    /// and writes the gradient of the inputs.
    #[allow(clippy::too_many_arguments)]
    pub fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        inputs: &[f32],
        sequences: Sequences<'_>,
        key: Option<DropoutKey>,
        buffers: &mut TransformerBuffers,
        d_inputs: &mut [f32],
    ) {
        let n_rows = sequences.n_rows();
        let n = n_rows * self.config.width;
        let d_out = &mut buffers.d_out[..n];
        let (normalised, scales) = (&buffers.normalised[1][..n], &buffers.scales[1][..n_rows]);
        self.forward_norm.backward(transposed, gradients, normalised, scales, d_out);
        // Gradient of the residual connection around the linear layers.
        let d_middle = ensure_len(&mut buffers.d_middle, n);
        d_middle.copy_from_slice(d_out);
        self.drop(key, key_index::FORWARDED, d_out);
        let n_hidden = n_rows * self.config.hidden_width;
        let (hidden, d_hidden) = (&buffers.hidden[..n_hidden], ensure_len(&mut buffers.d_hidden, n_hidden));
        let mut d_parts = [Some((&mut *d_hidden, WriteMode::Overwrite))];
        self.forward_layers[1].backward(
            transposed,
            gradients,
            &[InputPart::Dense(hidden)],
            &[],
            d_out,
            &mut d_parts,
        );
        self.drop(key, key_index::HIDDEN, d_hidden);
        // `hidden` is zero for dropped units, so the backward pass of the ReLU sets their gradients to zero.
        self.forward_layers[0].backward(
            transposed,
            gradients,
            &[InputPart::Dense(&buffers.middle[..n])],
            hidden,
            d_hidden,
            &mut [Some((&mut *d_middle, WriteMode::Accumulate))],
        );

        let (normalised, scales) = (&buffers.normalised[0][..n], &buffers.scales[0][..n_rows]);
        self.attention_norm.backward(transposed, gradients, normalised, scales, d_middle);
        d_inputs.fill(0.0);
        sequences.scatter_add(d_middle, self.config.width, d_inputs);
        self.drop(key, key_index::ATTENDED, d_middle);
        self.attention.backward(
            transposed,
            gradients,
            inputs,
            sequences,
            &mut buffers.attention,
            d_middle,
            (d_inputs, WriteMode::Accumulate),
        );
    }

    fn drop(&self, key: Option<DropoutKey>, index: u64, rows: &mut [f32]) {
        if let Some(key) = key {
            self.dropout.apply(key.of(index), rows);
        }
    }
}
