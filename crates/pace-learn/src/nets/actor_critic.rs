//! Actor and critic: two networks on the same input that share no weights.

use std::ops::Range;

use pace_games::Stream;
use pace_nn::{Activation, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode};

use super::{ensure_len, orthogonal, uniform};
use crate::learner::ShardUpdate;
use crate::network::{PolicyOutputs, copy_to};
use crate::ppo::{PolicyRows, policy_and_value};

/// The layers of both networks.
#[derive(Clone, Debug)]
pub(crate) struct ActorCritic {
    actor: Mlp,
    critic: Mlp,
    /// Whether the advantage of a decision is its target minus the critic's present value.
    pub(crate) has_current_advantages: bool,
}

/// The activations of both networks for one chunk, and the gradients of their outputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActorCriticBuffers {
    n_actions: usize,
    actor: MlpBuffers,
    critic: MlpBuffers,
    probabilities: Vec<f32>,
}

impl ActorCriticBuffers {
    /// Copies logits and values of the first `n_rows` decisions.
    pub(crate) fn write_to(&self, n_rows: usize, out: &mut PolicyOutputs) {
        copy_to(&mut out.logits, &self.actor.out[..n_rows * self.n_actions]);
        copy_to(&mut out.values, &self.critic.out[..n_rows]);
    }

    fn policy_rows(&mut self, n_rows: usize, has_current_advantages: bool) -> PolicyRows<'_> {
        let n = n_rows * self.n_actions;
        PolicyRows {
            logits: &self.actor.out[..n],
            d_logits: &mut self.actor.d_out[..n],
            values: &self.critic.out[..n_rows],
            d_values: &mut self.critic.d_out[..n_rows],
            probabilities: ensure_len(&mut self.probabilities, n),
            has_current_advantages,
        }
    }
}

/// The input [observation ⊕ latent].
pub(crate) fn latent_parts<'a>(observations: &'a [f32], latents: &'a [f32]) -> [InputPart<'a>; 2] {
    [InputPart::Dense(observations), InputPart::Dense(latents)]
}

impl ActorCritic {
    /// Two hidden layers each, on [observation ⊕ latent]. `inputs` are the widths of both; `hidden` is the activation of the
    /// hidden layers.
    pub(crate) fn new(
        layout: &mut Layout,
        inputs: [usize; 2],
        hidden_width: usize,
        n_actions: usize,
        hidden: Activation,
    ) -> ActorCritic {
        let mut network = |name: &str, n_out: usize| {
            let widths = [hidden_width, hidden_width, n_out];
            Mlp::new(layout, name, &inputs, &widths, hidden, Activation::Identity)
        };
        ActorCritic {
            actor: network("actor", n_actions),
            critic: network("critic", 1),
            has_current_advantages: false,
        }
    }

    /// One linear layer each, on a hidden state.
    pub(crate) fn linear(layout: &mut Layout, n_in: usize, n_actions: usize) -> ActorCritic {
        let mut head = |name: &str, n_out: usize| {
            Mlp::from(Linear::new(layout, name, &[n_in], n_out, Activation::Identity))
        };
        ActorCritic {
            actor: head("actor", n_actions),
            critic: head("critic", 1),
            has_current_advantages: false,
        }
    }

    /// The places of the weights and biases of the layer that computes the logits.
    pub(crate) fn policy_head(&self) -> Vec<Range<usize>> {
        let (head, _) = self.actor.output_and_hidden();
        vec![head.weights().range(), head.biases().range()]
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        let [(policy, actor), (value, critic)] = [&self.actor, &self.critic].map(Mlp::output_and_hidden);
        for layer in actor.iter().chain(critic) {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, rng);
        }
        orthogonal(weights, policy, 0.01, rng);
        uniform(weights, value, rng);
    }

    /// Initialises the critic's last layer with an orthogonal matrix of gain √2, and its bias with zero.
    pub(crate) fn initialise_value_head(&self, weights: &mut [f32], rng: &mut Stream) {
        let (value, _) = self.critic.output_and_hidden();
        orthogonal(weights, value, std::f64::consts::SQRT_2, rng);
        weights[value.biases().range()].fill(0.0);
    }

    pub(crate) fn forward(
        &self,
        weights: &[f32],
        parts: &[InputPart<'_>],
        n_rows: usize,
        buffers: &mut ActorCriticBuffers,
    ) {
        buffers.n_actions = self.actor.n_out();
        self.actor.forward(weights, parts, n_rows, &mut buffers.actor);
        self.critic.forward(weights, parts, n_rows, &mut buffers.critic);
    }

    /// Counts the decisions, and adds the gradient and the sums of PPO's terms unless the warm-up leaves them out. `decisions`
    /// are places in the batch, one per row of `parts`. Adds the gradient of the last part to `d_last_part`.
    pub(crate) fn learn(
        &self,
        update: &mut ShardUpdate<'_>,
        decisions: &[usize],
        parts: &[InputPart<'_>],
        d_last_part: &mut [f32],
        buffers: &mut ActorCriticBuffers,
    ) {
        let n_rows = decisions.len();
        update.sums.n += n_rows as f64;
        let Some(policy) = &update.job.weights.policy else { return };
        self.forward(update.weights, parts, n_rows, buffers);
        let mut rows = buffers.policy_rows(n_rows, self.has_current_advantages);
        policy_and_value(update.job, policy, decisions, &mut rows, update.sums);
        for (network, buffers) in [(&self.actor, &mut buffers.actor), (&self.critic, &mut buffers.critic)] {
            let mut d_parts = [None, Some((&mut *d_last_part, WriteMode::Accumulate))];
            // A part before the last is an observation, whose gradient is not needed.
            let d_parts = &mut d_parts[2 - parts.len()..];
            network.backward(update.transposed, update.gradients, parts, n_rows, buffers, d_parts);
        }
    }
}
