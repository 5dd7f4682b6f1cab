//! What an action leads to: task reward and next observation, predicted from [observation ⊕ action ⊕ latent].

use pace_games::{Action, Stream};
use pace_nn::loss::mean_squared_errors;
use pace_nn::product::ProductShape;
use pace_nn::{Activation, Linear, Parameters, Part, Store};

use super::{fit, orthogonal, uniform};

/// Where the weights lie: two hidden layers, and a head for each prediction.
#[derive(Clone, Debug)]
pub(crate) struct TransitionPredictor {
    hidden: [Linear; 2],
    reward: Linear,
    observation: Linear,
}

/// The rows of one chunk: what came of the actions, what was predicted, and the gradients.
#[derive(Debug, Default)]
pub(crate) struct TransitionRows {
    /// What was paid.
    pub(crate) rewards: Vec<f32>,
    /// What was seen next.
    pub(crate) observations: Vec<f32>,
    hidden: [Vec<f32>; 2],
    d_hidden: [Vec<f32>; 2],
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
        parameters: &mut Parameters,
        observation_size: usize,
        n_actions: usize,
        latent_size: usize,
        hidden_width: usize,
    ) -> TransitionPredictor {
        let mut layer = |name: &str, widths: &[usize], n_out: usize, activation| {
            Linear::new(parameters, &format!("predictor.{name}"), widths, n_out, activation)
        };
        let input = [observation_size, n_actions, latent_size];
        TransitionPredictor {
            hidden: [
                layer("0", &input, hidden_width, Activation::Relu),
                layer("1", &[hidden_width], hidden_width, Activation::Relu),
            ],
            reward: layer("reward", &[hidden_width], 1, Activation::Identity),
            observation: layer("observation", &[hidden_width], observation_size, Activation::Identity),
        }
    }

    pub(crate) fn initialise(&self, parameters: &mut Parameters, rng: &mut Stream) {
        for layer in &self.hidden {
            orthogonal(parameters, layer, std::f64::consts::SQRT_2, rng);
        }
        uniform(parameters, &self.reward, rng);
        uniform(parameters, &self.observation, rng);
    }

    pub(crate) fn layers(&self) -> impl Iterator<Item = &Linear> {
        self.hidden.iter().chain([&self.reward, &self.observation])
    }

    /// Predicts what the rows say came of the actions, and leaves the gradients of the losses in them.
    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        observations: &[f32],
        actions: &[Action],
        latents: &[f32],
        weight: f32,
        rows: &mut TransitionRows,
    ) -> TransitionLosses {
        let n_rows = actions.len();
        let n = n_rows * self.hidden[0].n_out();
        let [first, second] = &mut rows.hidden;
        let (first, second) = (fit(first, n), fit(second, n));
        let parts = [Part::Dense(observations), Part::OneHot(actions), Part::Dense(latents)];
        self.hidden[0].forward(parameters, &parts, n_rows, first);
        self.hidden[1].forward(parameters, &[Part::Dense(first)], n_rows, second);
        rows.mask.resize(n_rows, 1.0);
        let TransitionRows { rewards, observations, d_rewards, d_observations, mask, .. } = rows;
        let learn = |head: &Linear, targets: &[f32], d_out: &mut Vec<f32>| {
            let d_out = fit(d_out, n_rows * head.n_out());
            head.forward(parameters, &[Part::Dense(second)], n_rows, d_out);
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
        rows: &mut TransitionRows,
        d_latents: &mut [f32],
    ) {
        let n_rows = actions.len();
        let n = n_rows * self.hidden[0].n_out();
        let (first, second) = (&rows.hidden[0][..n], &rows.hidden[1][..n]);
        let [d_first, d_second] = &mut rows.d_hidden;
        let (d_first, d_second) = (fit(d_first, n), fit(d_second, n));
        let heads = [
            (&self.reward, &mut rows.d_rewards, Store::Overwrite),
            (&self.observation, &mut rows.d_observations, Store::Add),
        ];
        for (head, d_out, store) in heads {
            let d_out = &mut d_out[..n_rows * head.n_out()];
            let mut d_parts = [Some((&mut *d_second, store))];
            head.backward(transposed, gradients, &[Part::Dense(second)], &[], d_out, &mut d_parts);
        }
        self.hidden[1].backward(
            transposed,
            gradients,
            &[Part::Dense(first)],
            second,
            d_second,
            &mut [Some((d_first, Store::Overwrite))],
        );
        let parts = [Part::Dense(observations), Part::OneHot(actions), Part::Dense(latents)];
        let mut d_parts = [None, None, Some((d_latents, Store::Overwrite))];
        self.hidden[0].backward(transposed, gradients, &parts, first, d_first, &mut d_parts);
    }

    /// The matrix products of one pass forward and back.
    pub(crate) fn products(&self, n_rows: usize) -> Vec<ProductShape> {
        let mut products = self.hidden[0].products(n_rows, &[Some(false), None, Some(true)]);
        for layer in [&self.hidden[1], &self.reward, &self.observation] {
            products.extend(layer.products(n_rows, &[Some(true)]));
        }
        products
    }
}
