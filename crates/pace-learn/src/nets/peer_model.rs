//! What a hidden state knows of the peers: what each of them sees and does, by one linear layer for each.

use pace_games::{Action, Stream};
use pace_nn::loss::{cross_entropy, mean_squared_error, softmax_rows};
use pace_nn::product::ProductShape;
use pace_nn::{Activation, Linear, Parameters, Part, Store};

use super::{fit, uniform};

/// Where the weights lie.
#[derive(Clone, Debug)]
pub(crate) struct PeerModel {
    observations: Linear,
    actions: Linear,
    n_peers: usize,
}

/// The rows of one chunk, kept for the way back.
#[derive(Debug, Default)]
pub(crate) struct PeerModelRows {
    observations: Vec<f32>,
    d_observations: Vec<f32>,
    actions: Vec<f32>,
    d_actions: Vec<f32>,
    probabilities: Vec<f32>,
}

impl PeerModel {
    pub(crate) fn new(
        parameters: &mut Parameters,
        n_in: usize,
        n_peers: usize,
        observation_size: usize,
        n_actions: usize,
    ) -> PeerModel {
        let mut head = |name: &str, n_out: usize| {
            Linear::new(parameters, &format!("peers.{name}"), &[n_in], n_peers * n_out, Activation::Identity)
        };
        PeerModel {
            observations: head("observations", observation_size),
            actions: head("actions", n_actions),
            n_peers,
        }
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        self.layers().for_each(|layer| uniform(parameters, layer, rng));
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        [&self.observations, &self.actions].into_iter()
    }

    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        hidden: &[f32],
        n_rows: usize,
        rows: &mut PeerModelRows,
    ) {
        let PeerModelRows { observations, d_observations, actions, d_actions, probabilities } = rows;
        for (head, out, d_out) in
            [(&self.observations, observations, d_observations), (&self.actions, actions, d_actions)]
        {
            let n = n_rows * head.n_out();
            head.forward(parameters, &[Part::Dense(hidden)], n_rows, fit(out, n));
            fit(d_out, n);
        }
        let n = n_rows * self.actions.n_out();
        let n_actions = self.actions.n_out() / self.n_peers;
        let groups = vec![n_actions; self.n_peers];
        softmax_rows(&rows.actions[..n], &groups, &mut rows.d_actions[..n], fit(probabilities, n));
    }

    /// The losses of one row, and their gradients. A peer that did not act saw nothing and did nothing: its part is 0, the
    /// means are still over all peers.
    pub(crate) fn row(
        &self,
        row: usize,
        observations: &[f32],
        actions: &[Action],
        weight: f32,
        rows: &mut PeerModelRows,
    ) -> PeerLosses {
        let share = 1.0 / self.n_peers as f32;
        let size = observations.len() / self.n_peers;
        let n_actions = self.actions.n_out() / self.n_peers;
        let mut losses = PeerLosses { observations: 0.0, actions: 0.0 };
        for (peer, action) in actions.iter().enumerate() {
            let seen = (row * self.n_peers + peer) * size..(row * self.n_peers + peer + 1) * size;
            let d_seen = &mut rows.d_observations[seen.clone()];
            let done = (row * self.n_peers + peer) * n_actions..(row * self.n_peers + peer + 1) * n_actions;
            let d_done = &mut rows.d_actions[done.clone()];
            if usize::from(*action) >= n_actions {
                d_seen.fill(0.0);
                d_done.fill(0.0);
                continue;
            }
            let target = &observations[peer * size..][..size];
            losses.observations +=
                share * mean_squared_error(&rows.observations[seen], target, weight * share, d_seen);
            let probabilities = &rows.probabilities[done];
            losses.actions +=
                share * cross_entropy(probabilities, usize::from(*action), weight * share, d_done);
        }
        losses
    }

    /// Takes the gradients that [`PeerModel::row`] wrote back into `gradients`, and adds those of the hidden state.
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        hidden: &[f32],
        n_rows: usize,
        rows: &mut PeerModelRows,
        d_hidden: &mut [f32],
    ) {
        let PeerModelRows { observations, d_observations, actions, d_actions, .. } = rows;
        for (head, out, d_out) in
            [(&self.observations, observations, d_observations), (&self.actions, actions, d_actions)]
        {
            let n = n_rows * head.n_out();
            let mut d_parts = [Some((&mut *d_hidden, Store::Add))];
            head.backward(
                transposed,
                gradients,
                &[Part::Dense(hidden)],
                &out[..n],
                &mut d_out[..n],
                &mut d_parts,
            );
        }
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_rows: usize) -> Vec<ProductShape> {
        self.layers().flat_map(|layer| layer.products(n_rows, &[Some(true)])).collect()
    }
}

/// The losses of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLosses {
    pub(crate) observations: f32,
    pub(crate) actions: f32,
}
