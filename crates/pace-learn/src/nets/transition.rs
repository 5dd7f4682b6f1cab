//! The auxiliary head of LILI: predicts from [observation ⊕ action ⊕ latent] the task reward and the next observation.

use pace_games::{Action, Stream};
use pace_nn::loss::mean_squared_errors;
use pace_nn::{Activation, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode};

use super::{ensure_len, orthogonal, uniform};
use crate::learner::{ShardUpdate, UpdateJob};

/// Two hidden layers, and a linear layer for each prediction.
#[derive(Clone, Debug)]
pub(crate) struct TransitionPredictor {
    hidden: Mlp,
    reward: Linear,
    observation: Linear,
}

/// The decisions of a chunk that are in the mini-batch: the inputs of the predictor beside the latent, and its targets.
#[derive(Debug, Default)]
pub(crate) struct Transitions {
    /// The decisions as places in the batch.
    pub(crate) batch_rows: Vec<usize>,
    pub(crate) observations: Vec<f32>,
    actions: Vec<Action>,
    task_rewards: Vec<f32>,
    next_observations: Vec<f32>,
}

impl Transitions {
    /// Copies the decisions of these encounters from the batch; observations have `size` numbers.
    pub(crate) fn gather(&mut self, job: &UpdateJob<'_>, encounters: &[u32], size: usize) {
        let batch = job.batch;
        self.batch_rows.clear();
        self.observations.clear();
        self.actions.clear();
        self.task_rewards.clear();
        self.next_observations.clear();
        let episodes = encounters.iter().flat_map(|encounter| batch.episode_decisions(*encounter as usize));
        for (episode, decisions) in episodes {
            for decision in decisions.clone().filter(|decision| job.is_in_minibatch(*decision)) {
                let next_observation = if decision + 1 == decisions.end {
                    &batch.terminal_observations[episode * size..][..size]
                } else {
                    &batch.observations[(decision + 1) * size..][..size]
                };
                self.batch_rows.push(decision);
                self.observations.extend_from_slice(&batch.observations[decision * size..][..size]);
                self.actions.push(batch.actions[decision]);
                self.task_rewards.push(batch.task_rewards[decision]);
                self.next_observations.extend_from_slice(next_observation);
            }
        }
    }
}

/// The activations and gradients of one chunk.
#[derive(Debug, Default)]
pub(crate) struct TransitionBuffers {
    hidden: MlpBuffers,
    d_rewards: Vec<f32>,
    d_observations: Vec<f32>,
    mask: Vec<f32>,
}

impl TransitionPredictor {
    /// The names of the sums of [`TransitionPredictor::learn`].
    pub(crate) const METRICS: &[&str] = &["peer/reward_loss", "peer/observation_loss"];

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

    /// Adds the gradient and the sums of both losses, and writes the gradient of the latents; it is 0 if there is no auxiliary
    /// loss.
    pub(crate) fn learn(
        &self,
        update: &mut ShardUpdate<'_>,
        transitions: &Transitions,
        latents: &[f32],
        d_latents: &mut [f32],
        buffers: &mut TransitionBuffers,
    ) {
        let Some(weight) = update.job.weights.auxiliary_per_row() else {
            d_latents.fill(0.0);
            return;
        };
        let Transitions { observations, actions, task_rewards, next_observations, .. } = transitions;
        let TransitionBuffers { hidden, d_rewards, d_observations, mask } = buffers;
        let n_rows = actions.len();
        let n = n_rows * self.hidden.n_out();
        let inputs = [InputPart::Dense(observations), InputPart::OneHot(actions), InputPart::Dense(latents)];
        self.hidden.forward(update.weights, &inputs, n_rows, hidden);
        let parts = [InputPart::Dense(&hidden.out[..n])];
        mask.resize(n_rows, 1.0);
        let loss = |head: &Linear, targets: &[f32], d_out: &mut Vec<f32>| {
            let d_out = ensure_len(d_out, n_rows * head.n_out());
            head.forward(update.weights, &parts, n_rows, d_out);
            mean_squared_errors(targets, head.n_out(), mask, weight, d_out)
        };
        update.sums.own[0] += loss(&self.reward, task_rewards, d_rewards);
        update.sums.own[1] += loss(&self.observation, next_observations, d_observations);
        let heads = [
            (&self.reward, d_rewards, WriteMode::Overwrite),
            (&self.observation, d_observations, WriteMode::Accumulate),
        ];
        for (head, d_out, mode) in heads {
            let d_out = &mut d_out[..n_rows * head.n_out()];
            let mut d_parts = [Some((&mut hidden.d_out[..n], mode))];
            head.backward(update.transposed, update.gradients, &parts, &[], d_out, &mut d_parts);
        }
        let mut d_inputs = [None, None, Some((d_latents, WriteMode::Overwrite))];
        self.hidden.backward(update.transposed, update.gradients, &inputs, n_rows, hidden, &mut d_inputs);
    }
}
