//! Two hidden layers and a GRU over the observations of an encounter: the hidden state is the latent.
//!
//! A gradient flows through chunks of `bptt_steps` decisions. Each chunk starts from the hidden state that it had in the rollout,
//! through which no gradient flows back.

use std::ops::Range;

use pace_games::{Action, NO_ACTION, Stream};
use pace_nn::{Gru, GruBuffers, GruInputs, InputPart, Mlp, MlpBuffers, WriteMode};

use super::{PairIndex, orthogonal};
use crate::batch::{Batch, Segment};
use crate::config::{Span, TrainConfig};
use crate::learner::{ShardUpdate, UpdateJob};
use crate::network::NetworkDims;

/// The layers, and the keys that say how long a hidden state lives.
#[derive(Clone, Debug)]
pub(crate) struct RecurrentEncoder {
    trunk: Mlp,
    gru: Gru,
    /// Whether the input has the ego's last action beside the observation.
    sees_last_action: bool,
    span: Span,
    bptt_steps: usize,
    sees_terminal: bool,
}

/// The context of a lane.
#[derive(Clone, Debug)]
pub(crate) struct HiddenState {
    pub(crate) hidden: Vec<f32>,
    /// The ego's last action in this episode.
    last_action: Action,
    /// Decisions in this encounter and this rollout.
    n_decisions: usize,
}

impl HiddenState {
    pub(crate) fn clear(&mut self) {
        self.hidden.fill(0.0);
        (self.last_action, self.n_decisions) = (NO_ACTION, 0);
    }
}

#[derive(Debug, Default)]
pub(crate) struct RecurrentStepBuffers {
    initial: Vec<f32>,
    last_actions: Vec<Action>,
    keep: Vec<f32>,
    trunk: MlpBuffers,
    gru: GruBuffers,
}

/// The inputs and activations of one block of chunks.
#[derive(Debug, Default)]
pub(crate) struct RecurrentBlockBuffers {
    steps: Vec<SequenceStep>,
    /// The segments of the block, longest first, and the range of each in `steps`.
    sequences: Vec<(u32, Range<usize>)>,
    batch_sizes: Vec<usize>,
    initial: Vec<f32>,
    /// The inputs of all rows; the distinct ones if the batch has an index of its observations.
    observations: Vec<f32>,
    last_actions: Vec<Action>,
    pairs: PairIndex,
    /// The distinct input of every row; `None` if all rows have their own.
    indices: Option<Vec<u32>>,
    keep: Vec<f32>,
    /// The decisions, as rows of the block and as places in the batch.
    selected: Vec<usize>,
    batch_rows: Vec<usize>,
    trunk: MlpBuffers,
    gru: GruBuffers,
    /// The hidden states of the decisions; unused if all rows are decisions.
    hidden: Vec<f32>,
    d_hidden: Vec<f32>,
}

/// One step of a sequence.
#[derive(Clone, Copy, Debug)]
struct SequenceStep {
    input: StepInput,
    last_action: Action,
    /// Whether the hidden state is set to zero before it.
    resets: bool,
}

/// The place of an observation in the batch.
#[derive(Clone, Copy, Debug)]
enum StepInput {
    Decision(usize),
    EpisodeEnd(usize),
}

impl RecurrentEncoder {
    pub(crate) fn new(
        trunk: Mlp,
        gru: Gru,
        sees_last_action: bool,
        config: &TrainConfig,
    ) -> RecurrentEncoder {
        let span = config.hidden_state_span;
        RecurrentEncoder {
            trunk,
            gru,
            sees_last_action,
            span,
            bptt_steps: config.bptt_steps,
            // If the hidden state ends with the episode, the terminal observation would have no effect.
            sees_terminal: config.rnn_sees_terminal && span == Span::Encounter,
        }
    }

    pub(crate) fn initialise(&self, weights: &mut [f32], rng: &mut Stream) {
        for layer in self.trunk.layers() {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, rng);
        }
        self.gru.initialise(weights, &mut || rng.unit());
    }

    /// Width of the hidden state.
    pub(crate) fn width(&self) -> usize {
        self.gru.width()
    }

    /// An empty context.
    pub(crate) fn context(&self) -> HiddenState {
        HiddenState { hidden: vec![0.0; self.width()], last_action: NO_ACTION, n_decisions: 0 }
    }

    /// Returns the hidden states of `lanes` after one more step; changes no context.
    pub(crate) fn step<'a>(
        &self,
        weights: &[f32],
        observations: &[f32],
        contexts: &[HiddenState],
        lanes: &[usize],
        buffers: &'a mut RecurrentStepBuffers,
    ) -> &'a [f32] {
        let (n_rows, width) = (lanes.len(), self.width());
        let RecurrentStepBuffers { initial, last_actions, keep, trunk, gru } = buffers;
        initial.clear();
        last_actions.clear();
        for lane in lanes {
            initial.extend_from_slice(&contexts[*lane].hidden);
            last_actions.push(contexts[*lane].last_action);
        }
        keep.resize(n_rows, 1.0);
        let parts = [InputPart::Dense(observations), InputPart::OneHot(last_actions)];
        self.trunk.forward(weights, self.used_parts(&parts), n_rows, trunk);
        let inputs = &trunk.out[..n_rows * width];
        self.gru.forward(weights, inputs.into(), &[n_rows], initial, keep, gru);
        &gru.out[..n_rows * width]
    }

    /// Stores the hidden states of the last [`RecurrentEncoder::step`], and the actions that followed it.
    pub(crate) fn store_step(
        &self,
        ego_actions: &[Action],
        contexts: &mut [HiddenState],
        lanes: &[usize],
        buffers: &RecurrentStepBuffers,
    ) {
        let states = buffers.gru.out.chunks_exact(self.width());
        for ((hidden, action), lane) in states.zip(ego_actions).zip(lanes) {
            let context = &mut contexts[*lane];
            context.hidden.copy_from_slice(hidden);
            context.last_action = *action;
            context.n_decisions += 1;
        }
    }

    /// Ends the episodes of `lanes`, with one more step if terminal observations are inputs.
    pub(crate) fn end_episodes(
        &self,
        weights: &[f32],
        terminal_observations: &[f32],
        contexts: &mut [HiddenState],
        lanes: &[usize],
        buffers: &mut RecurrentStepBuffers,
    ) {
        if self.sees_terminal {
            let states = self.step(weights, terminal_observations, contexts, lanes, buffers);
            for (hidden, lane) in states.chunks_exact(self.width()).zip(lanes) {
                contexts[*lane].hidden.copy_from_slice(hidden);
            }
        }
        for lane in lanes {
            contexts[*lane].last_action = NO_ACTION;
            if self.span == Span::Episode {
                contexts[*lane].hidden.fill(0.0);
            }
        }
    }

    /// Appends the hidden state if a chunk starts here.
    pub(crate) fn save_state(&self, context: &HiddenState, saved: &mut Vec<f32>) {
        if context.n_decisions.is_multiple_of(self.bptt_steps) {
            saved.extend_from_slice(&context.hidden);
        }
    }

    /// Continues an encounter of the last rollout, with the hidden state that it had at the end, as the authors do.
    pub(crate) fn resume(&self, context: &mut HiddenState, hidden: &[f32]) {
        context.hidden.copy_from_slice(hidden);
        context.n_decisions = 0;
    }

    /// The chunks of a batch.
    pub(crate) fn segments(&self, batch: &Batch) -> Vec<Segment> {
        batch.cut(self.bptt_steps)
    }

    /// Packs the segments of a block step by step, longest first.
    pub(crate) fn gather(
        &self,
        job: &UpdateJob<'_>,
        segments: &[u32],
        dims: NetworkDims,
        buffers: &mut RecurrentBlockBuffers,
    ) {
        let (batch, width) = (job.batch, self.width());
        buffers.clear(batch.numbers.is_some(), dims.n_actions);
        for segment in segments {
            let start = buffers.steps.len();
            self.push_steps(batch, &job.segments[*segment as usize], &mut buffers.steps);
            buffers.sequences.push((*segment, start..buffers.steps.len()));
        }
        // Stable, so that the order depends on the mini-batch alone.
        buffers.sequences.sort_by_key(|(_, steps)| std::cmp::Reverse(steps.len()));
        for (segment, _) in &buffers.sequences {
            let state = &batch.saved_states[*segment as usize * width..][..width];
            buffers.initial.extend_from_slice(state);
        }
        let n_steps = buffers.sequences.first().map_or(0, |(_, steps)| steps.len());
        for index in 0..n_steps {
            let n_sequences = buffers.sequences.iter().take_while(|(_, steps)| index < steps.len()).count();
            for sequence in 0..n_sequences {
                let step = buffers.steps[buffers.sequences[sequence].1.start + index];
                self.push_row(batch, &step, dims.observation, buffers);
            }
            buffers.batch_sizes.push(n_sequences);
        }
    }

    /// Appends all steps from the first decision of a segment to its last.
    fn push_steps(&self, batch: &Batch, segment: &Segment, steps: &mut Vec<SequenceStep>) {
        let (mut episode, mut n_before) = (segment.episode, segment.n_before);
        for decision in segment.decisions.clone() {
            let is_first = n_before == 0;
            steps.push(SequenceStep {
                input: StepInput::Decision(decision),
                last_action: if is_first { NO_ACTION } else { batch.actions[decision - 1] },
                resets: is_first && self.span == Span::Episode,
            });
            n_before += 1;
            if n_before == batch.episode_lengths[episode] as usize {
                // After the last decision it would have no effect: the next segment starts from its saved state.
                if self.sees_terminal && decision + 1 < segment.decisions.end {
                    let last_action = batch.actions[decision];
                    let input = StepInput::EpisodeEnd(episode);
                    steps.push(SequenceStep { input, last_action, resets: false });
                }
                (episode, n_before) = (episode + 1, 0);
            }
        }
    }

    fn push_row(&self, batch: &Batch, step: &SequenceStep, size: usize, buffers: &mut RecurrentBlockBuffers) {
        let indices = batch.numbers.as_ref();
        let (observation, observation_index) = match step.input {
            StepInput::Decision(decision) => {
                buffers.selected.push(buffers.keep.len());
                buffers.batch_rows.push(decision);
                let index = indices.map(|indices| indices.decisions[decision]);
                (&batch.observations[decision * size..][..size], index)
            }
            StepInput::EpisodeEnd(episode) => {
                let index = indices.map(|indices| indices.ends[episode]);
                (&batch.terminal_observations[episode * size..][..size], index)
            }
        };
        let last_action = if self.sees_last_action { step.last_action } else { NO_ACTION };
        let mut is_new = true;
        if let (Some(observation_index), Some(indices)) = (observation_index, &mut buffers.indices) {
            let index;
            (index, is_new) = buffers.pairs.index_of(observation_index, last_action);
            indices.push(index);
        }
        if is_new {
            buffers.observations.extend_from_slice(observation);
            buffers.last_actions.push(last_action);
        }
        buffers.keep.push(if step.resets { 0.0 } else { 1.0 });
    }

    /// Computes the hidden states of the block.
    pub(crate) fn forward(&self, weights: &[f32], buffers: &mut RecurrentBlockBuffers) {
        let RecurrentBlockBuffers { batch_sizes, initial, keep, trunk, gru, .. } = buffers;
        let n_inputs = buffers.last_actions.len();
        let parts = [InputPart::Dense(&buffers.observations), InputPart::OneHot(&buffers.last_actions)];
        self.trunk.forward(weights, self.used_parts(&parts), n_inputs, trunk);
        let rows = &trunk.out[..n_inputs * self.width()];
        let inputs = GruInputs { rows, indices: buffers.indices.as_deref() };
        self.gru.forward(weights, inputs, batch_sizes, initial, keep, gru);
        if !buffers.is_whole() {
            let width = self.width();
            buffers.hidden.clear();
            for row in &buffers.selected {
                buffers.hidden.extend_from_slice(&buffers.gru.out[row * width..][..width]);
            }
            buffers.d_hidden.resize(buffers.hidden.len(), 0.0);
        }
    }

    /// The decisions of the block as places in the batch, their hidden states, and the place for their gradients.
    pub(crate) fn decisions<'a>(
        &self,
        buffers: &'a mut RecurrentBlockBuffers,
    ) -> (&'a [usize], &'a [f32], &'a mut [f32]) {
        let n = buffers.batch_rows.len() * self.width();
        if buffers.is_whole() {
            let GruBuffers { out, d_out, .. } = &mut buffers.gru;
            (&buffers.batch_rows, &out[..n], &mut d_out[..n])
        } else {
            (&buffers.batch_rows, &buffers.hidden, &mut buffers.d_hidden)
        }
    }

    /// Adds the gradient of the weights, from the gradients of the decisions' hidden states.
    pub(crate) fn backward(&self, update: &mut ShardUpdate<'_>, buffers: &mut RecurrentBlockBuffers) {
        let (width, n_inputs) = (self.width(), buffers.last_actions.len());
        if !buffers.is_whole() {
            let d_out = &mut buffers.gru.d_out[..buffers.keep.len() * width];
            d_out.fill(0.0);
            for (d_state, row) in buffers.d_hidden.chunks_exact(width).zip(&buffers.selected) {
                d_out[row * width..][..width].copy_from_slice(d_state);
            }
        }
        let RecurrentBlockBuffers { batch_sizes, keep, trunk, gru, .. } = buffers;
        let (transposed, gradients) = (update.transposed, &mut *update.gradients);
        let inputs = GruInputs { rows: &trunk.out[..n_inputs * width], indices: buffers.indices.as_deref() };
        let d_inputs = Some((&mut trunk.d_out[..n_inputs * width], WriteMode::Overwrite));
        self.gru.backward(transposed, gradients, inputs, batch_sizes, keep, gru, d_inputs);
        let parts = [InputPart::Dense(&buffers.observations), InputPart::OneHot(&buffers.last_actions)];
        self.trunk.backward(transposed, gradients, self.used_parts(&parts), n_inputs, trunk, &mut []);
    }

    /// The parts of the input that the trunk has weights for.
    fn used_parts<'a, 'b>(&self, parts: &'a [InputPart<'b>; 2]) -> &'a [InputPart<'b>] {
        if self.sees_last_action { parts } else { &parts[..1] }
    }
}

impl RecurrentBlockBuffers {
    /// Whether every row of the block is a decision.
    fn is_whole(&self) -> bool {
        self.selected.len() == self.keep.len()
    }

    fn clear(&mut self, is_indexed: bool, n_actions: usize) {
        self.steps.clear();
        self.sequences.clear();
        self.batch_sizes.clear();
        self.initial.clear();
        self.observations.clear();
        self.last_actions.clear();
        self.pairs.clear(n_actions);
        self.indices = is_indexed.then(|| {
            let mut indices = self.indices.take().unwrap_or_default();
            indices.clear();
            indices
        });
        self.keep.clear();
        self.selected.clear();
        self.batch_rows.clear();
    }
}
