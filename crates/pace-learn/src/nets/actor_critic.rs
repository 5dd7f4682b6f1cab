//! Actor and critic: two networks of the same shape on [observation ⊕ latent] that share nothing.

use pace_games::Stream;
use pace_nn::{Activation, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode};

use super::{ensure_len, orthogonal, uniform};
use crate::network::{PolicyOutputs, copy_to};
use crate::ppo::PolicyRows;

/// Where the weights of both lie.
#[derive(Clone, Debug)]
pub(crate) struct ActorCritic {
    actor: Mlp,
    critic: Mlp,
}

/// The rows of both networks for one chunk, kept for the way back.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActorCriticBuffers {
    n_actions: usize,
    actor: MlpBuffers,
    critic: MlpBuffers,
}

impl ActorCriticBuffers {
    /// Copies logits and values of this many decisions.
    pub(crate) fn write_to(&self, n_rows: usize, out: &mut PolicyOutputs) {
        copy_to(&mut out.logits, &self.actor.out[..n_rows * self.n_actions]);
        copy_to(&mut out.values, &self.critic.out[..n_rows]);
    }

    /// Logits and values of this many decisions, and the places for their gradients.
    pub(crate) fn policy_rows<'a>(
        &'a mut self,
        n_rows: usize,
        probabilities: &'a mut Vec<f32>,
    ) -> PolicyRows<'a> {
        let n = n_rows * self.n_actions;
        PolicyRows {
            logits: &self.actor.out[..n],
            d_logits: &mut self.actor.d_out[..n],
            values: &self.critic.out[..n_rows],
            d_values: &mut self.critic.d_out[..n_rows],
            probabilities: ensure_len(probabilities, n),
        }
    }
}

impl ActorCritic {
    /// `inputs` are the widths of observation and latent; `hidden` follows both hidden layers.
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
        ActorCritic { actor: network("actor", n_actions), critic: network("critic", 1) }
    }

    /// The layer that the logits come from.
    pub(crate) fn policy_head(&self) -> &Linear {
        self.actor.output_and_hidden().0
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        let [(policy, actor), (value, critic)] = [&self.actor, &self.critic].map(Mlp::output_and_hidden);
        for layer in actor.iter().chain(critic) {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, rng);
        }
        orthogonal(weights, policy, 0.01, rng);
        uniform(weights, value, rng);
    }

    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut ActorCriticBuffers,
    ) {
        let parts = [InputPart::Dense(observations), InputPart::Dense(latents)];
        rows.n_actions = self.actor.n_out();
        self.actor.forward(parameters, &parts, n_rows, &mut rows.actor);
        self.critic.forward(parameters, &parts, n_rows, &mut rows.critic);
    }

    /// Takes the gradients written to the rows back into `gradients`, and adds those of the latents to `d_latents`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut ActorCriticBuffers,
        d_latents: &mut [f32],
    ) {
        let parts = [InputPart::Dense(observations), InputPart::Dense(latents)];
        for (network, rows) in [(&self.actor, &mut rows.actor), (&self.critic, &mut rows.critic)] {
            let mut d_parts = [None, Some((&mut *d_latents, WriteMode::Accumulate))];
            network.backward(transposed, gradients, &parts, n_rows, rows, &mut d_parts);
        }
    }
}
