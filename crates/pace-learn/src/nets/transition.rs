//! What an action leads to: task reward and next observation, predicted from [observation ⊕ action ⊕ latent].

use pace_games::{Action, Stream};
use pace_nn::loss::mean_squared_errors;
use pace_nn::{Activation, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode};

use super::{ensure_len, orthogonal, uniform};

/// Where the weights lie: two hidden layers, and a head for each prediction.
#[derive(Clone, Debug)]
pub(crate) struct TransitionPredictor {
    hidden: Mlp,
    reward: Linear,
    observation: Linear,
}

/// The rows of one chunk: what came of the actions, what was predicted, and the gradients.
#[derive(Debug, Default)]
pub(crate) struct TransitionBuffers {
    /// What was paid.
    pub(crate) rewards: Vec<f32>,
    /// What was seen next.
    pub(crate) observations: Vec<f32>,
    hidden: MlpBuffers,
    d_rewards: Vec<f32>,
    d_observations: Vec<f32>,
    mask: Vec<f32>,
}

/// Sums over decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransitionLosses {
    pub(crate) rewards: f64,
    pub(crate) observations: f64,
}

impl TransitionPredictor {
    pub(crate) fn new(
        layout: &mut Layout,
        observation_size: usize,
        n_actions: usize,
        latent_size: usize,
        hidden_width: usize,
    ) -> TransitionPredictor {
        let (input, relu) = ([observation_size, n_actions, latent_size], Activation::Relu);
        let hidden = Mlp::new(layout, "predictor", &input, &[hidden_width; 2], relu, relu);
        let mut head = |name: &str, n_out| {
            Linear::new(layout, &format!("predictor.{name}"), &[hidden_width], n_out, Activation::Identity)
        };
        let (reward, observation) = (head("reward", 1), head("observation", observation_size));
        TransitionPredictor { hidden, reward, observation }
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        for layer in self.hidden.layers() {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, rng);
        }
        uniform(weights, &self.reward, rng);
        uniform(weights, &self.observation, rng);
    }

    /// Predicts what the rows say came of the actions, and leaves the gradients of the losses in them.
    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        latents: &[f32],
        weight: f32,
        rows: &mut TransitionBuffers,
    ) -> TransitionLosses {
        let n_rows = actions.len();
        let parts = [InputPart::Dense(observations), InputPart::OneHot(actions), InputPart::Dense(latents)];
        self.hidden.forward(parameters, &parts, n_rows, &mut rows.hidden);
        rows.mask.resize(n_rows, 1.0);
        let TransitionBuffers { rewards, observations, hidden, d_rewards, d_observations, mask } = rows;
        let hidden = &hidden.out[..n_rows * self.hidden.n_out()];
        let learn = |head: &Linear, targets: &[f32], d_out: &mut Vec<f32>| {
            let d_out = ensure_len(d_out, n_rows * head.n_out());
            head.forward(parameters, &[InputPart::Dense(hidden)], n_rows, d_out);
            mean_squared_errors(targets, head.n_out(), mask, weight, d_out)
        };
        TransitionLosses {
            rewards: learn(&self.reward, rewards, d_rewards),
            observations: learn(&self.observation, observations, d_observations),
        }
    }

    /// Takes the gradients that [`TransitionPredictor::forward`] left back into `gradients`, and writes those of the latents.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        observations: &[f32],
        actions: &[Action],
        latents: &[f32],
        rows: &mut TransitionBuffers,
        d_latents: &mut [f32],
    ) {
        let n_rows = actions.len();
        let n = n_rows * self.hidden.n_out();
        let (hidden, d_hidden) = (&rows.hidden.out[..n], &mut rows.hidden.d_out[..n]);
        let heads = [
            (&self.reward, &mut rows.d_rewards, WriteMode::Overwrite),
            (&self.observation, &mut rows.d_observations, WriteMode::Accumulate),
        ];
        for (head, d_out, store) in heads {
            let d_out = &mut d_out[..n_rows * head.n_out()];
            let mut d_parts = [Some((&mut *d_hidden, store))];
            head.backward(transposed, gradients, &[InputPart::Dense(hidden)], &[], d_out, &mut d_parts);
        }
        let parts = [InputPart::Dense(observations), InputPart::OneHot(actions), InputPart::Dense(latents)];
        let mut d_parts = [None, None, Some((d_latents, WriteMode::Overwrite))];
        self.hidden.backward(transposed, gradients, &parts, n_rows, &mut rows.hidden, &mut d_parts);
    }
}
