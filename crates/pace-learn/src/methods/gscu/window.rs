//! Actor and critic over a window of the episode, as in the authors' code for Predator-Prey-W: each an LSTM over the last
//! observations and own actions, two hidden layers, and one more on [hidden ⊕ latent].
//!
//! Before the first decision of an episode a window has zeros, which pass through the LSTM like any other input.

use std::ops::Range;

use pace_games::{Action, NO_ACTION, Stream};
use pace_nn::{Activation, InputPart, Layout, Lstm, LstmBuffers, Mlp, MlpBuffers, WindowInputs, WriteMode};

use crate::learner::{ShardUpdate, UpdateJob};
use crate::nets::{ensure_len, latent_parts, uniform};
use crate::network::{NetworkDims, PolicyOutputs, copy_to};
use crate::ppo::{PolicyRows, policy_and_value};

/// Approximate number of windows that are learned from together: enough for fast products, few enough for the cache.
const CHUNK_ROWS: usize = 100;

/// Two networks on the same input that share no weights.
#[derive(Clone, Debug)]
pub(crate) struct WindowActorCritic {
    actor: WindowNet,
    critic: WindowNet,
    observation_size: usize,
    /// Steps of a window.
    n_steps: usize,
    has_current_advantages: bool,
}

/// The layers of one network.
#[derive(Clone, Debug)]
struct WindowNet {
    lstm: Lstm,
    hidden: Mlp,
    head: Mlp,
}

/// The inputs and activations of both networks.
#[derive(Debug, Default)]
pub(crate) struct WindowBuffers {
    windows: Windows,
    latents: Vec<f32>,
    /// The decisions as places in the batch.
    decisions: Vec<usize>,
    actor: WindowNetBuffers,
    critic: WindowNetBuffers,
    probabilities: Vec<f32>,
}

#[derive(Debug, Default)]
struct WindowNetBuffers {
    lstm: LstmBuffers,
    hidden: MlpBuffers,
    head: MlpBuffers,
}

/// Windows over inputs that they share.
#[derive(Debug, Default)]
struct Windows {
    /// The observation of every input; the first one is zero.
    observations: Vec<f32>,
    /// The ego's action before each observation.
    last_actions: Vec<Action>,
    /// The inputs of each window.
    ranges: Vec<Range<usize>>,
    /// The input of every step: the first steps of all windows, then the second ones, and so on.
    indices: Vec<u32>,
}

impl Windows {
    /// Removes all windows and all inputs but the zero input.
    fn clear(&mut self, observation_size: usize) {
        self.observations.clear();
        self.observations.resize(observation_size, 0.0);
        self.last_actions.clear();
        self.last_actions.push(NO_ACTION);
        self.ranges.clear();
    }

    fn push_input(&mut self, observation: &[f32], last_action: Action) {
        self.observations.extend_from_slice(observation);
        self.last_actions.push(last_action);
    }

    /// Adds a window that ends with the last input and starts with input `first` or later.
    fn push_window(&mut self, first: usize) {
        self.ranges.push(first..self.last_actions.len());
    }

    /// Finds the input of every step of windows of `n_steps`.
    fn fill_indices(&mut self, n_steps: usize) {
        self.indices.clear();
        for step in 0..n_steps {
            self.indices.extend(self.ranges.iter().map(|inputs| {
                let input = (inputs.end + step).checked_sub(n_steps).filter(|input| *input >= inputs.start);
                input.unwrap_or(0) as u32
            }));
        }
    }
}

/// The last observations and actions of a lane in its current episode.
#[derive(Clone, Debug)]
pub(crate) struct RecentSteps {
    observations: Vec<f32>,
    /// The ego's action before each of them.
    last_actions: Vec<Action>,
    last_action: Action,
}

impl RecentSteps {
    /// The start of an episode.
    pub(crate) fn new() -> RecentSteps {
        RecentSteps { observations: Vec::new(), last_actions: Vec::new(), last_action: NO_ACTION }
    }

    pub(crate) fn clear(&mut self) {
        self.observations.clear();
        self.last_actions.clear();
        self.last_action = NO_ACTION;
    }

    /// Adds a decision, and drops those that are in no later window of `n_steps`.
    pub(crate) fn push(&mut self, observation: &[f32], action: Action, n_steps: usize) {
        self.observations.extend_from_slice(observation);
        self.last_actions.push(self.last_action);
        self.last_action = action;
        let n_dropped = (self.last_actions.len() + 1).saturating_sub(n_steps);
        self.observations.drain(..n_dropped * observation.len());
        self.last_actions.drain(..n_dropped);
    }
}

impl WindowActorCritic {
    /// Hidden layers and hidden states have `hidden_width` values. With `has_current_advantages` the advantage of a decision is its
    /// return minus the critic's present value.
    pub(crate) fn new(
        layout: &mut Layout,
        dims: NetworkDims,
        hidden_width: usize,
        latent_size: usize,
        n_steps: usize,
        has_current_advantages: bool,
    ) -> WindowActorCritic {
        let (relu, width) = (Activation::Relu, hidden_width);
        let mut network = |name: &str, n_out: usize| {
            let [lstm, hidden, head] = ["lstm", "hidden", "head"].map(|part| format!("{name}.{part}"));
            let inputs = [width, latent_size];
            WindowNet {
                lstm: Lstm::new(layout, &lstm, &[dims.observation, dims.n_actions], width),
                hidden: Mlp::new(layout, &hidden, &[width], &[width; 2], relu, relu),
                head: Mlp::new(layout, &head, &inputs, &[width, n_out], relu, Activation::Identity),
            }
        };
        WindowActorCritic {
            actor: network("actor", dims.n_actions),
            critic: network("critic", 1),
            observation_size: dims.observation,
            n_steps,
            has_current_advantages,
        }
    }

    /// Steps of a window.
    pub(crate) fn n_steps(&self) -> usize {
        self.n_steps
    }

    /// The places of the weights and biases of the layer that computes the logits.
    pub(crate) fn policy_head(&self) -> Vec<Range<usize>> {
        let (head, _) = self.actor.head.output_and_hidden();
        vec![head.weights().range(), head.biases().range()]
    }

    /// PyTorch's initial weights.
    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        for WindowNet { lstm, hidden, head } in [&self.actor, &self.critic] {
            lstm.initialise(weights, &mut || rng.unit());
            for layer in hidden.layers().iter().chain(head.layers()) {
                uniform(weights, layer, rng);
            }
        }
    }

    /// Computes logits and values of one decision after each of these recent steps. The latents are in `out`.
    pub(crate) fn forward_policy<'a>(
        &self,
        weights: &[f32],
        observations: &[f32],
        recent: impl Iterator<Item = &'a RecentSteps>,
        buffers: &mut WindowBuffers,
        out: &mut PolicyOutputs,
    ) {
        let (windows, size) = (&mut buffers.windows, self.observation_size);
        windows.clear(size);
        for (observation, recent) in observations.chunks_exact(size).zip(recent) {
            let first = windows.last_actions.len();
            windows.observations.extend_from_slice(&recent.observations);
            windows.last_actions.extend_from_slice(&recent.last_actions);
            windows.push_input(observation, recent.last_action);
            windows.push_window(first);
        }
        windows.fill_indices(self.n_steps);
        let n_rows = windows.ranges.len();
        let WindowBuffers { windows, actor, critic, .. } = buffers;
        self.actor.forward(weights, windows, &out.latents, actor);
        self.critic.forward(weights, windows, &out.latents, critic);
        copy_to(&mut out.logits, &actor.head.out[..n_rows * self.actor.head.n_out()]);
        copy_to(&mut out.values, &critic.head.out[..n_rows]);
    }

    /// Counts the job's decisions, and adds the gradient and the sums of PPO's terms. `latent_size` values per decision are saved
    /// in the batch.
    pub(crate) fn learn(
        &self,
        update: &mut ShardUpdate<'_>,
        latent_size: usize,
        buffers: &mut WindowBuffers,
    ) {
        let job = update.job;
        for encounters in job.chunks(CHUNK_ROWS) {
            self.gather(job, encounters, latent_size, buffers);
            let WindowBuffers { windows, latents, decisions, actor, critic, probabilities } = buffers;
            let n_rows = decisions.len();
            update.sums.n += n_rows as f64;
            let Some(policy) = job.weights.policy.filter(|_| n_rows > 0) else { continue };
            self.actor.forward(update.weights, windows, latents, actor);
            self.critic.forward(update.weights, windows, latents, critic);
            let n_logits = n_rows * self.actor.head.n_out();
            let mut rows = PolicyRows {
                logits: &actor.head.out[..n_logits],
                d_logits: &mut actor.head.d_out[..n_logits],
                values: &critic.head.out[..n_rows],
                d_values: &mut critic.head.d_out[..n_rows],
                probabilities: ensure_len(probabilities, n_logits),
                has_current_advantages: self.has_current_advantages,
            };
            policy_and_value(job, &policy, decisions, &mut rows, update.sums);
            for (network, buffers) in [(&self.actor, actor), (&self.critic, critic)] {
                network.backward(update.transposed, update.gradients, windows, latents, buffers);
            }
        }
    }

    /// Collects the windows and latents of the decisions of some encounters that are in the mini-batch.
    fn gather(
        &self,
        job: &UpdateJob<'_>,
        encounters: &[u32],
        latent_size: usize,
        buffers: &mut WindowBuffers,
    ) {
        let (batch, size) = (job.batch, self.observation_size);
        let WindowBuffers { windows, latents, decisions, .. } = buffers;
        windows.clear(size);
        latents.clear();
        decisions.clear();
        for (_, of_episode) in encounters.iter().flat_map(|one| batch.episode_decisions(*one as usize)) {
            let first = windows.last_actions.len();
            let mut last_action = NO_ACTION;
            for decision in of_episode {
                windows.push_input(&batch.observations[decision * size..][..size], last_action);
                last_action = batch.actions[decision];
                if job.is_in_minibatch(decision) {
                    windows.push_window(first);
                    decisions.push(decision);
                    latents.extend_from_slice(&batch.saved_states[decision * latent_size..][..latent_size]);
                }
            }
        }
        windows.fill_indices(self.n_steps);
    }
}

impl WindowNet {
    /// Computes one output per window.
    fn forward(&self, weights: &[f32], windows: &Windows, latents: &[f32], buffers: &mut WindowNetBuffers) {
        let (n_rows, n_hidden) = (windows.ranges.len(), windows.ranges.len() * self.lstm.width());
        let WindowNetBuffers { lstm, hidden, head } = buffers;
        windows.pass(|inputs| self.lstm.forward(weights, inputs, lstm));
        self.hidden.forward(weights, &[InputPart::Dense(&lstm.out[..n_hidden])], n_rows, hidden);
        self.head.forward(weights, &latent_parts(&hidden.out[..n_hidden], latents), n_rows, head);
    }

    /// Adds the gradient of the weights, from the gradient of the outputs. That of the latents is not computed.
    fn backward(
        &self,
        transposed: &[f32],
        gradients: &mut [f32],
        windows: &Windows,
        latents: &[f32],
        buffers: &mut WindowNetBuffers,
    ) {
        let (n_rows, n_hidden) = (windows.ranges.len(), windows.ranges.len() * self.lstm.width());
        let WindowNetBuffers { lstm, hidden, head } = buffers;
        let parts = latent_parts(&hidden.out[..n_hidden], latents);
        let d_hidden = Some((&mut hidden.d_out[..n_hidden], WriteMode::Overwrite));
        self.head.backward(transposed, gradients, &parts, n_rows, head, &mut [d_hidden, None]);
        let parts = [InputPart::Dense(&lstm.out[..n_hidden])];
        let d_state = Some((&mut lstm.d_out[..n_hidden], WriteMode::Overwrite));
        self.hidden.backward(transposed, gradients, &parts, n_rows, hidden, &mut [d_state]);
        windows.pass(|inputs| self.lstm.backward(transposed, gradients, inputs, lstm));
    }
}

impl Windows {
    /// Calls a pass of an LSTM with these windows.
    fn pass(&self, pass: impl FnOnce(&WindowInputs<'_>)) {
        let parts = [InputPart::Dense(&self.observations), InputPart::OneHot(&self.last_actions)];
        let (n_inputs, n_windows) = (self.last_actions.len(), self.ranges.len());
        pass(&WindowInputs { parts: &parts, n_inputs, indices: &self.indices, n_windows });
    }
}
