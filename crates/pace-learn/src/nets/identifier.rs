//! h, the peer identifier: one linear layer from the latent to the classes of every peer, a softmax per peer.

use pace_games::Stream;
use pace_nn::loss::softmax_rows;
use pace_nn::product::ProductShape;
use pace_nn::{Activation, Linear, Parameters, Part, Store};

use super::uniform;

/// Where its weights lie, and how many classes each peer has.
#[derive(Clone, Debug)]
pub(crate) struct PeerIdentifier {
    layer: Linear,
    n_classes: Vec<usize>,
}

impl PeerIdentifier {
    pub(crate) fn new(
        parameters: &mut Parameters,
        latent_size: usize,
        n_classes: &[usize],
    ) -> PeerIdentifier {
        let n_logits = n_classes.iter().sum();
        PeerIdentifier {
            layer: Linear::new(parameters, "identifier", &[latent_size], n_logits, Activation::Identity),
            n_classes: n_classes.to_vec(),
        }
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        uniform(parameters, &self.layer, rng);
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        std::iter::once(&self.layer)
    }

    pub(crate) fn n_logits(&self) -> usize {
        self.layer.n_out()
    }

    /// The place of each peer's classes among the logits.
    pub(crate) fn slots(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.n_classes.iter().scan(0, |start, n| {
            let range = *start..*start + n;
            *start += n;
            Some(range)
        })
    }

    pub(crate) fn forward(&self, parameters: &[f32], latents: &[f32], n_rows: usize, logits: &mut [f32]) {
        self.layer.forward(parameters, &[Part::Dense(latents)], n_rows, logits);
    }

    /// Turns rows of logits into a posterior per peer and its logarithm.
    pub(crate) fn posteriors(&self, logits: &[f32], log_posteriors: &mut [f32], posteriors: &mut [f32]) {
        softmax_rows(logits, &self.n_classes, log_posteriors, posteriors);
    }

    /// Takes the gradient of the logits back, and writes that of the latents.
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        latents: &[f32],
        logits: &[f32],
        d_logits: &mut [f32],
        d_latents: &mut [f32],
    ) {
        let parts = [Part::Dense(latents)];
        self.layer.backward(
            transposed,
            gradients,
            &parts,
            logits,
            d_logits,
            &mut [Some((d_latents, Store::Overwrite))],
        );
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_rows: usize) -> Vec<ProductShape> {
        self.layer.products(n_rows, &[Some(true)])
    }
}
