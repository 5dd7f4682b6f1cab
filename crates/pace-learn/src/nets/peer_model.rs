//! What a hidden state knows of the peers: what each of them sees and does, by one linear layer for each.

use pace_games::{Action, Stream};
use pace_nn::loss::{mean_cross_entropy, mean_squared_errors, softmax_rows};
use pace_nn::{Activation, InputPart, Layout, Linear, WriteMode};

use super::{ensure_len, uniform};

/// Where the weights lie.
#[derive(Clone, Debug)]
pub(crate) struct PeerModel {
    observations: Linear,
    actions: Linear,
    /// The actions of each peer.
    groups: Vec<usize>,
}

/// The rows of one chunk: what the peers saw and did, what was predicted, and the gradients.
#[derive(Debug, Default)]
pub(crate) struct PeerModelBuffers {
    /// What all peers saw, decision by decision.
    pub(crate) seen: Vec<f32>,
    /// What they did.
    pub(crate) done: Vec<Action>,
    mask: Vec<f32>,
    d_observations: Vec<f32>,
    actions: Vec<f32>,
    d_actions: Vec<f32>,
    probabilities: Vec<f32>,
}

/// Sums over decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLosses {
    pub(crate) observations: f64,
    pub(crate) actions: f64,
}

impl PeerModel {
    pub(crate) fn new(
        layout: &mut Layout,
        n_in: usize,
        n_peers: usize,
        observation_size: usize,
        n_actions: usize,
    ) -> PeerModel {
        let mut head = |name: &str, n_out: usize| {
            Linear::new(layout, &format!("peers.{name}"), &[n_in], n_peers * n_out, Activation::Identity)
        };
        PeerModel {
            observations: head("observations", observation_size),
            actions: head("actions", n_actions),
            groups: vec![n_actions; n_peers],
        }
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        [&self.observations, &self.actions].iter().for_each(|layer| uniform(weights, layer, rng));
    }

    /// Predicts what the rows say, and leaves the gradients of the losses in them. A peer that did not act saw nothing and
    /// did nothing: its part is 0, the means are still over all peers.
    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        hidden: &[f32],
        n_rows: usize,
        weight: f32,
        rows: &mut PeerModelBuffers,
    ) -> PeerLosses {
        let (n_peers, n_actions) = (self.groups.len(), self.groups[0]);
        let share = 1.0 / n_peers as f32;
        let d_observations = ensure_len(&mut rows.d_observations, n_rows * self.observations.n_out());
        self.observations.forward(parameters, &[InputPart::Dense(hidden)], n_rows, d_observations);
        rows.mask.clear();
        let acted = rows.done.iter().map(|action| usize::from(*action) < n_actions);
        rows.mask.extend(acted.map(|acted| if acted { 1.0 } else { 0.0 }));
        let size = self.observations.n_out() / n_peers;
        let errors = mean_squared_errors(&rows.seen, size, &rows.mask, weight * share, d_observations);

        let n = n_rows * self.actions.n_out();
        let logits = ensure_len(&mut rows.actions, n);
        self.actions.forward(parameters, &[InputPart::Dense(hidden)], n_rows, logits);
        let (d_logits, probabilities) =
            (ensure_len(&mut rows.d_actions, n), ensure_len(&mut rows.probabilities, n));
        softmax_rows(logits, &self.groups, d_logits, probabilities);
        let width = self.actions.n_out();
        let all = probabilities.chunks_exact(width).zip(d_logits.chunks_exact_mut(width));
        let actions = all
            .zip(rows.done.chunks_exact(n_peers))
            .map(|((probabilities, d_logits), done)| {
                f64::from(mean_cross_entropy(probabilities, &self.groups, done, weight, d_logits))
            })
            .sum();
        PeerLosses { observations: errors * f64::from(share), actions }
    }

    /// Takes the gradients that [`PeerModel::forward`] left back into `gradients`, and adds those of the hidden state.
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        hidden: &[f32],
        n_rows: usize,
        rows: &mut PeerModelBuffers,
        d_hidden: &mut [f32],
    ) {
        let heads = [(&self.observations, &mut rows.d_observations), (&self.actions, &mut rows.d_actions)];
        for (head, d_out) in heads {
            let d_out = &mut d_out[..n_rows * head.n_out()];
            let mut d_parts = [Some((&mut *d_hidden, WriteMode::Accumulate))];
            head.backward(transposed, gradients, &[InputPart::Dense(hidden)], &[], d_out, &mut d_parts);
        }
    }
}
