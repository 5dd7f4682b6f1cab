//! The auxiliary head of LIAM: predicts from a hidden state the observation and the action of every peer, with one linear layer for
//! each.

use pace_games::{Action, Stream};
use pace_nn::loss::{mean_cross_entropy, mean_squared_errors, softmax_rows};
use pace_nn::{Activation, InputPart, Layout, Linear, WriteMode};

use super::{ensure_len, uniform};
use crate::batch::Batch;
use crate::learner::ShardUpdate;

/// The two layers.
#[derive(Clone, Debug)]
pub(crate) struct PeerModel {
    observations: Linear,
    actions: Linear,
    /// The number of actions, once for each peer.
    groups: Vec<usize>,
}

/// The targets, predictions and gradients of one chunk.
#[derive(Debug, Default)]
pub(crate) struct PeerModelBuffers {
    /// Observations of all peers, decision by decision.
    target_observations: Vec<f32>,
    target_actions: Vec<Action>,
    mask: Vec<f32>,
    d_observations: Vec<f32>,
    logits: Vec<f32>,
    d_logits: Vec<f32>,
    probabilities: Vec<f32>,
}

impl PeerModel {
    /// The names of the sums of [`PeerModel::learn`].
    pub(crate) const METRICS: &[&str] = &["peer/observation_loss", "peer/action_loss"];

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

    /// Adds the gradient and the sums of both losses, means over the peers, if there is an auxiliary loss; also adds the gradient
    /// of the hidden states. `decisions` are places in the batch, one per hidden state.
    pub(crate) fn learn(
        &self,
        update: &mut ShardUpdate<'_>,
        decisions: &[usize],
        hidden: &[f32],
        d_hidden: &mut [f32],
        buffers: &mut PeerModelBuffers,
    ) {
        let Some(weight) = update.job.weights.auxiliary_per_row() else { return };
        self.gather(update.job.batch, decisions, buffers);
        let parts = [InputPart::Dense(hidden)];
        update.sums.own[0] += self.observation_loss(update.weights, &parts, weight, buffers);
        update.sums.own[1] += self.action_loss(update.weights, &parts, weight, buffers);
        let heads =
            [(&self.observations, &mut buffers.d_observations), (&self.actions, &mut buffers.d_logits)];
        for (head, d_out) in heads {
            let d_out = &mut d_out[..decisions.len() * head.n_out()];
            let mut d_parts = [Some((&mut *d_hidden, WriteMode::Accumulate))];
            head.backward(update.transposed, update.gradients, &parts, &[], d_out, &mut d_parts);
        }
    }

    /// Copies the targets of some decisions from the batch.
    fn gather(&self, batch: &Batch, decisions: &[usize], buffers: &mut PeerModelBuffers) {
        let (n_peers, n_actions, n_numbers) = (self.groups.len(), self.groups[0], self.observations.n_out());
        buffers.target_observations.clear();
        buffers.target_actions.clear();
        buffers.mask.clear();
        for decision in decisions {
            let observations = &batch.peer_observations[decision * n_numbers..][..n_numbers];
            let actions = &batch.peer_actions[decision * n_peers..][..n_peers];
            buffers.target_observations.extend_from_slice(observations);
            buffers.target_actions.extend_from_slice(actions);
            // A peer that did not act observed nothing: its loss is 0, and the mean is still over all peers.
            let mask = actions.iter().map(|action| if usize::from(*action) < n_actions { 1.0 } else { 0.0 });
            buffers.mask.extend(mask);
        }
    }

    fn observation_loss(
        &self,
        weights: &[f32],
        parts: &[InputPart<'_>],
        weight: f32,
        buffers: &mut PeerModelBuffers,
    ) -> f64 {
        let (n_peers, n_numbers) = (self.groups.len(), self.observations.n_out());
        let n_rows = buffers.mask.len() / n_peers;
        let share = 1.0 / n_peers as f32;
        let d_out = ensure_len(&mut buffers.d_observations, n_rows * n_numbers);
        self.observations.forward(weights, parts, n_rows, d_out);
        let targets = &buffers.target_observations;
        let errors = mean_squared_errors(targets, n_numbers / n_peers, &buffers.mask, weight * share, d_out);
        errors * f64::from(share)
    }

    fn action_loss(
        &self,
        weights: &[f32],
        parts: &[InputPart<'_>],
        weight: f32,
        buffers: &mut PeerModelBuffers,
    ) -> f64 {
        let (n_peers, width) = (self.groups.len(), self.actions.n_out());
        let n_rows = buffers.mask.len() / n_peers;
        let logits = ensure_len(&mut buffers.logits, n_rows * width);
        self.actions.forward(weights, parts, n_rows, logits);
        let d_logits = ensure_len(&mut buffers.d_logits, n_rows * width);
        let probabilities = ensure_len(&mut buffers.probabilities, n_rows * width);
        softmax_rows(logits, &self.groups, d_logits, probabilities);
        let rows = probabilities.chunks_exact(width).zip(d_logits.chunks_exact_mut(width));
        rows.zip(buffers.target_actions.chunks_exact(n_peers))
            .map(|((probabilities, d_logits), actions)| {
                f64::from(mean_cross_entropy(probabilities, &self.groups, actions, weight, d_logits))
            })
            .sum()
    }
}
