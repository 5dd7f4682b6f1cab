//! Actor and critic: two networks of the same shape on [observation ⊕ latent] that share nothing.

use pace_games::Stream;
use pace_nn::product::ProductShape;
use pace_nn::{Activation, Linear, Parameters, Part, Store};

use super::{fit, orthogonal, uniform};
use crate::ppo::PolicyRows;

/// Where the weights of both lie.
#[derive(Clone, Debug)]
pub(crate) struct ActorCritic {
    actor: [Linear; 3],
    critic: [Linear; 3],
}

/// The rows of both networks for one chunk, kept for the way back.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActorCriticRows {
    actor: TowerRows,
    critic: TowerRows,
}

#[derive(Clone, Debug, Default)]
struct TowerRows {
    hidden: [Vec<f32>; 2],
    out: Vec<f32>,
    d_hidden: [Vec<f32>; 2],
    d_out: Vec<f32>,
}

impl ActorCriticRows {
    /// One row of logits per decision.
    pub(crate) fn logits(&self) -> &[f32] {
        &self.actor.out
    }

    /// One value per decision.
    pub(crate) fn values(&self) -> &[f32] {
        &self.critic.out
    }

    /// Logits and values of this many decisions, and the places for their gradients.
    pub(crate) fn policy_rows<'a>(
        &'a mut self,
        n_rows: usize,
        n_actions: usize,
        probabilities: &'a mut [f32],
    ) -> PolicyRows<'a> {
        let n = n_rows * n_actions;
        PolicyRows {
            logits: &self.actor.out[..n],
            d_logits: &mut self.actor.d_out[..n],
            values: &self.critic.out[..n_rows],
            d_values: &mut self.critic.d_out[..n_rows],
            probabilities,
        }
    }
}

impl ActorCritic {
    pub(crate) fn new(
        parameters: &mut Parameters,
        observation_size: usize,
        latent_size: usize,
        hidden_width: usize,
        n_actions: usize,
    ) -> ActorCritic {
        let relu = Activation::Relu;
        Self::with_activation(parameters, observation_size, latent_size, hidden_width, n_actions, relu)
    }

    /// The layer that the logits come from.
    pub(crate) fn policy_head(&self) -> &Linear {
        &self.actor[2]
    }

    /// The same with another activation after the hidden layers.
    pub(crate) fn with_activation(
        parameters: &mut Parameters,
        observation_size: usize,
        latent_size: usize,
        hidden_width: usize,
        n_actions: usize,
        hidden: Activation,
    ) -> ActorCritic {
        let mut tower = |name: &str, n_out: usize| {
            let mut layer = |index: usize, widths: &[usize], n_out: usize, activation| {
                Linear::new(parameters, &format!("{name}.{index}"), widths, n_out, activation)
            };
            [
                layer(0, &[observation_size, latent_size], hidden_width, hidden),
                layer(1, &[hidden_width], hidden_width, hidden),
                layer(2, &[hidden_width], n_out, Activation::Identity),
            ]
        };
        ActorCritic { actor: tower("actor", n_actions), critic: tower("critic", 1) }
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        for layer in self.actor[..2].iter().chain(&self.critic[..2]) {
            orthogonal(parameters, layer, std::f64::consts::SQRT_2, rng);
        }
        orthogonal(parameters, &self.actor[2], 0.01, rng);
        uniform(parameters, &self.critic[2], rng);
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        self.actor.iter().chain(&self.critic)
    }

    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        observations: &[f32],
        latents: &[f32],
        n_rows: usize,
        rows: &mut ActorCriticRows,
    ) {
        for (tower, rows) in [(&self.actor, &mut rows.actor), (&self.critic, &mut rows.critic)] {
            let width = tower[0].n_out();
            let [first, second] = &mut rows.hidden;
            let first = fit(first, n_rows * width);
            let second = fit(second, n_rows * width);
            tower[0].forward(parameters, &[Part::Dense(observations), Part::Dense(latents)], n_rows, first);
            tower[1].forward(parameters, &[Part::Dense(first)], n_rows, second);
            let out = fit(&mut rows.out, n_rows * tower[2].n_out());
            tower[2].forward(parameters, &[Part::Dense(second)], n_rows, out);
            fit(&mut rows.d_out, n_rows * tower[2].n_out());
        }
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
        rows: &mut ActorCriticRows,
        d_latents: &mut [f32],
    ) {
        for (tower, rows) in [(&self.actor, &mut rows.actor), (&self.critic, &mut rows.critic)] {
            let n = n_rows * tower[0].n_out();
            let [d_first, d_second] = &mut rows.d_hidden;
            let (d_first, d_second) = (fit(d_first, n), fit(d_second, n));
            let (first, second) = (&rows.hidden[0][..n], &rows.hidden[1][..n]);
            let n_out = n_rows * tower[2].n_out();
            tower[2].backward(
                transposed,
                gradients,
                &[Part::Dense(second)],
                &rows.out[..n_out],
                &mut rows.d_out[..n_out],
                &mut [Some((d_second, Store::Overwrite))],
            );
            tower[1].backward(
                transposed,
                gradients,
                &[Part::Dense(first)],
                second,
                d_second,
                &mut [Some((d_first, Store::Overwrite))],
            );
            tower[0].backward(
                transposed,
                gradients,
                &[Part::Dense(observations), Part::Dense(latents)],
                first,
                d_first,
                &mut [None, Some((d_latents, Store::Add))],
            );
        }
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_rows: usize) -> Vec<ProductShape> {
        let mut products = Vec::new();
        for tower in [&self.actor, &self.critic] {
            products.extend(tower[0].products(n_rows, &[Some(false), Some(true)]));
            products.extend(tower[1].products(n_rows, &[Some(true)]));
            products.extend(tower[2].products(n_rows, &[Some(true)]));
        }
        products
    }
}
