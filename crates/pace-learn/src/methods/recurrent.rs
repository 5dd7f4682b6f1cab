//! The network of the recurrent baselines differs from `pace.rs` in: two hidden layers and a GRU that actor and critic share, in
//! place of context and encoder.
//!
//! `generalist` and `liam` say which keys and heads make it which method. A gradient flows through chunks of
//! `bptt_steps` decisions, each begun from the hidden state it had in the rollout, through which nothing flows back.

use std::sync::Arc;

use pace_games::{Action, ConfigError, GameSpec, NO_ACTION, PeerObservationMode, PoolListing, Seed};
use pace_nn::{
    Activation, Gru, GruBuffers, GruInputs, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode,
};

use super::check_baseline;
use crate::batch::{Batch, Segment};
use crate::config::{MinibatchUnit, Span, TrainConfig};
use crate::learner::{UpdateJob, UpdateShard};
use crate::nets::{PairIndex, PeerModel, PeerModelBuffers, ensure_len, orthogonal, uniform};
use crate::network::{Actor, Contexts, Decisions, Network, NetworkDims, NetworkSpec, PolicyOutputs, copy_to};
use crate::ppo::{PolicyRows, policy_and_value};

/// Decisions of a block of chunks that are passed through together: sequences enough for fast products with their hidden
/// states, few enough to stay in the cache.
const BLOCK_ROWS: usize = 640;

/// Where the weights lie. A network that models its peers has heads for them and is shown the ego's last action.
#[derive(Clone, Debug)]
pub(crate) struct RecurrentNet<const MODELS_PEERS: bool> {
    trunk: Mlp,
    gru: Gru,
    actor: Linear,
    critic: Linear,
    peers: Option<PeerModel>,
    span: Span,
    bptt_steps: usize,
    sees_terminal: bool,
    spec: Arc<NetworkSpec>,
    weights: Arc<Vec<f32>>,
}

pub(super) type RecurrentState = Contexts<HiddenState, RecurrentInferenceBuffers>;

/// What a lane keeps.
#[derive(Clone, Debug)]
pub(crate) struct HiddenState {
    hidden: Vec<f32>,
    /// The ego's in this episode.
    last_action: Action,
    /// In this encounter.
    n_decisions: usize,
}

#[cfg(test)]
impl HiddenState {
    pub(super) fn hidden(&self) -> &[f32] {
        &self.hidden
    }

    pub(super) fn hidden_mut(&mut self) -> &mut [f32] {
        &mut self.hidden
    }
}

impl<const MODELS_PEERS: bool> Actor for RecurrentNet<MODELS_PEERS> {
    type State = RecurrentState;

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, n_lanes: usize, _window: Option<usize>) -> Self::State {
        let hidden = vec![0.0; self.width()];
        Contexts::new(HiddenState { hidden, last_action: NO_ACTION, n_decisions: 0 }, n_lanes)
    }

    fn clear_context(&self, state: &mut Self::State, lane: usize) {
        let context = &mut state.lanes[lane];
        context.hidden.fill(0.0);
        (context.last_action, context.n_decisions) = (NO_ACTION, 0);
    }

    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut Self::State,
        out: &mut PolicyOutputs,
    ) {
        let n_rows = lanes.len();
        self.step(observations, lanes, state);
        copy_to(&mut out.latents, &state.buffers.gru.out[..n_rows * self.width()]);
        let hidden = [InputPart::Dense(&out.latents)];
        for (head, out) in [(&self.actor, &mut out.logits), (&self.critic, &mut out.values)] {
            out.resize(n_rows * head.n_out(), 0.0);
            head.forward(&self.weights, &hidden, n_rows, out);
        }
    }

    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut Self::State) {
        let states = state.buffers.gru.out.chunks_exact(self.width());
        for ((hidden, action), lane) in states.zip(decisions.ego_actions).zip(lanes) {
            let context = &mut state.lanes[*lane];
            context.hidden.copy_from_slice(hidden);
            context.last_action = *action;
            context.n_decisions += 1;
        }
    }

    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut Self::State) {
        if self.sees_terminal {
            self.step(terminal_observations, lanes, state);
            for (hidden, lane) in state.buffers.gru.out.chunks_exact(self.width()).zip(lanes) {
                state.lanes[*lane].hidden.copy_from_slice(hidden);
            }
        }
        for lane in lanes {
            state.lanes[*lane].last_action = NO_ACTION;
            if self.span == Span::Episode {
                state.lanes[*lane].hidden.fill(0.0);
            }
        }
    }

    fn save_state(&self, state: &Self::State, lane: usize, saved: &mut Vec<f32>) {
        let context = &state.lanes[lane];
        if context.n_decisions.is_multiple_of(self.bptt_steps) {
            saved.extend_from_slice(&context.hidden);
        }
    }
}

impl<const MODELS_PEERS: bool> Network for RecurrentNet<MODELS_PEERS> {
    type Buffers = RecurrentTrainingBuffers;

    fn new(game: &GameSpec, _pool: &PoolListing, config: &TrainConfig) -> Self {
        let mut layout = Layout::default();
        let NetworkDims { observation, n_actions, n_peers } = NetworkDims::of(game);
        let width = config.hidden_width;
        let input = if MODELS_PEERS { vec![observation, n_actions] } else { vec![observation] };
        let relu = Activation::Relu;
        let trunk = Mlp::new(&mut layout, "trunk", &input, &[width; 2], relu, relu);
        let mut head = |name, n_out| Linear::new(&mut layout, name, &[width], n_out, Activation::Identity);
        let (actor, critic) = (head("actor", n_actions), head("critic", 1));
        let gru = Gru::new(&mut layout, "gru", width, width);
        let peers = MODELS_PEERS.then(|| PeerModel::new(&mut layout, width, n_peers, observation, n_actions));
        let (sight, metrics): (PeerObservationMode, &[&str]) = match MODELS_PEERS {
            true => (PeerObservationMode::Recorded, &["peer/observation_loss", "peer/action_loss"]),
            false => (PeerObservationMode::Skipped, &[]),
        };
        RecurrentNet {
            trunk,
            gru,
            actor,
            critic,
            peers,
            span: config.hidden_state_span,
            bptt_steps: config.bptt_steps,
            // Where the hidden state ends with the episode, nobody would see what came of it.
            sees_terminal: config.rnn_sees_terminal && config.hidden_state_span == Span::Encounter,
            weights: Arc::new(vec![0.0; layout.len()]),
            spec: Arc::new(NetworkSpec {
                rollout_sight: sight,
                metrics,
                ..NetworkSpec::new(game, layout, width)
            }),
        }
    }

    fn check(config: &TrainConfig, _pool: &PoolListing) -> Result<(), ConfigError> {
        if config.minibatches_per_encounter != 1 {
            return Err(ConfigError::bad_value(
                "minibatches_per_encounter",
                &config.minibatches_per_encounter,
                "1 for this method",
            ));
        }
        check_baseline(config, &[MinibatchUnit::Chunks])
    }

    fn initialise(&mut self, seed: Seed) {
        let weights = Arc::make_mut(&mut self.weights);
        let mut rng = seed.stream("trunk");
        for layer in self.trunk.layers() {
            orthogonal(weights, layer, std::f64::consts::SQRT_2, &mut rng);
        }
        self.gru.initialise(weights, &mut || rng.unit());
        let mut rng = seed.stream("actor-critic");
        orthogonal(weights, &self.actor, 0.01, &mut rng);
        uniform(weights, &self.critic, &mut rng);
        if let Some(peers) = &self.peers {
            peers.initialise(weights, &mut seed.stream("peers"));
        }
    }

    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut Vec<f32> {
        Arc::make_mut(&mut self.weights)
    }

    fn policy_head(&self) -> &Linear {
        &self.actor
    }

    fn segments(&self, batch: &Batch) -> Vec<Segment> {
        batch.cut(self.bptt_steps)
    }

    fn accumulate(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut RecurrentTrainingBuffers,
        shard: &mut UpdateShard,
    ) {
        for chunk in job.chunks(BLOCK_ROWS) {
            self.gather(chunk, job, rows);
            self.accumulate_block(transposed, job, rows, shard);
        }
    }
}

impl<const MODELS_PEERS: bool> RecurrentNet<MODELS_PEERS> {
    /// Parts of the trunk's input: observation, last action.
    const N_PARTS: usize = if MODELS_PEERS { 2 } else { 1 };

    fn width(&self) -> usize {
        self.gru.width()
    }

    /// One step of the trunk and the GRU for each of `lanes`, from their hidden states.
    fn step(&self, observations: &[f32], lanes: &[usize], state: &mut RecurrentState) {
        let (n_rows, width) = (lanes.len(), self.width());
        let RecurrentInferenceBuffers { initial, last_actions, keep, trunk, gru } = &mut state.buffers;
        initial.clear();
        last_actions.clear();
        for lane in lanes {
            initial.extend_from_slice(&state.lanes[*lane].hidden);
            last_actions.push(state.lanes[*lane].last_action);
        }
        keep.resize(n_rows, 1.0);
        let parts = [InputPart::Dense(observations), InputPart::OneHot(last_actions)];
        self.trunk.forward(&self.weights, &parts[..Self::N_PARTS], n_rows, trunk);
        let inputs = &trunk.out[..n_rows * width];
        self.gru.forward(&self.weights, inputs.into(), &[n_rows], initial, keep, gru);
    }

    /// Packs the segments of a block step by step, longest first.
    fn gather(&self, chunk: &[u32], job: &UpdateJob<'_>, rows: &mut RecurrentTrainingBuffers) {
        let (batch, size, width) = (job.batch, self.spec.sizes.observation, self.width());
        rows.sequences.clear();
        for segment in chunk {
            let start = rows.moments.len();
            self.moments(batch, &job.segments[*segment as usize], &mut rows.moments);
            rows.sequences.push((*segment, start..rows.moments.len()));
        }
        // Stable, so that the order is that of the mini-batch and of nothing else.
        rows.sequences.sort_by_key(|(_, moments)| std::cmp::Reverse(moments.len()));
        rows.live.clear();
        rows.initial.clear();
        rows.observations.clear();
        rows.last_actions.clear();
        rows.places.clear();
        rows.pairs.clear();
        rows.keep.clear();
        rows.selected.clear();
        rows.batch_rows.clear();
        for (segment, _) in &rows.sequences {
            rows.initial.extend_from_slice(&batch.saved_states[*segment as usize * width..][..width]);
        }
        let n_steps = rows.sequences.first().map_or(0, |(_, moments)| moments.len());
        for step in 0..n_steps {
            let first_row = rows.keep.len();
            for (_, moments) in rows.sequences.iter().take_while(|(_, moments)| step < moments.len()) {
                let moment = &rows.moments[moments.start + step];
                let numbers = batch.numbers.as_ref();
                let (observation, number) = match moment.place {
                    Place::Decision(decision) => {
                        rows.selected.push(rows.keep.len());
                        rows.batch_rows.push(decision);
                        let number = numbers.map(|numbers| numbers.decisions[decision]);
                        (&batch.observations[decision * size..][..size], number)
                    }
                    Place::End(episode) => {
                        let number = numbers.map(|numbers| numbers.ends[episode]);
                        (&batch.terminal_observations[episode * size..][..size], number)
                    }
                };
                let last_action = if MODELS_PEERS { moment.last_action } else { NO_ACTION };
                let mut is_new = true;
                if let Some(number) = number {
                    let place;
                    (place, is_new) = rows.pairs.number(number, last_action);
                    rows.places.push(place);
                }
                if is_new {
                    rows.observations.extend_from_slice(observation);
                    rows.last_actions.push(last_action);
                }
                rows.keep.push(if moment.begins_anew { 0.0 } else { 1.0 });
            }
            rows.live.push(rows.keep.len() - first_row);
        }
        rows.moments.clear();
    }

    /// Everything that the network was shown from the first decision of a segment to its last.
    fn moments(&self, batch: &Batch, segment: &Segment, moments: &mut Vec<SequenceStep>) {
        let (mut episode, mut n_before) = (segment.episode, segment.n_before);
        for decision in segment.decisions.clone() {
            let is_first = n_before == 0;
            moments.push(SequenceStep {
                place: Place::Decision(decision),
                last_action: if is_first { NO_ACTION } else { batch.actions[decision - 1] },
                begins_anew: is_first && self.span == Span::Episode,
            });
            n_before += 1;
            if n_before == batch.episode_lengths[episode] as usize {
                // Behind the last decision it would change nothing: the next segment begins from what was stored.
                if self.sees_terminal && decision + 1 < segment.decisions.end {
                    moments.push(SequenceStep {
                        place: Place::End(episode),
                        last_action: batch.actions[decision],
                        begins_anew: false,
                    });
                }
                (episode, n_before) = (episode + 1, 0);
            }
        }
    }

    fn accumulate_block(
        &self,
        transposed: &[f32],
        job: &UpdateJob<'_>,
        rows: &mut RecurrentTrainingBuffers,
        shard: &mut UpdateShard,
    ) {
        let (batch, size, width) = (job.batch, self.spec.sizes.observation, self.width());
        let (parameters, UpdateShard { gradients, sums }) = (&self.weights[..], shard);
        let (n_rows, n_selected) = (rows.keep.len(), rows.selected.len());
        let (n, n_inputs) = (n_rows * width, rows.last_actions.len());

        let parts = [InputPart::Dense(&rows.observations), InputPart::OneHot(&rows.last_actions)];
        let parts = &parts[..Self::N_PARTS];
        self.trunk.forward(parameters, parts, n_inputs, &mut rows.trunk);
        let places = batch.numbers.is_some().then_some(&rows.places[..]);
        let inputs = GruInputs { rows: &rows.trunk.out[..n_inputs * width], places };
        self.gru.forward(parameters, inputs, &rows.live, &rows.initial, &rows.keep, &mut rows.gru);

        // The heads see the decisions; what was only shown has no loss.
        let is_whole = n_selected == n_rows;
        let GruBuffers { out, d_out, .. } = &mut rows.gru;
        let (hidden, d_hidden): (&[f32], &mut [f32]) = if is_whole {
            (&out[..n], &mut d_out[..n])
        } else {
            let hidden = ensure_len(&mut rows.hidden, n_selected * width);
            for (state, row) in hidden.chunks_exact_mut(width).zip(&rows.selected) {
                state.copy_from_slice(&out[row * width..][..width]);
            }
            (hidden, ensure_len(&mut rows.d_hidden, n_selected * width))
        };
        d_hidden.fill(0.0);
        if let Some(policy) = &job.weights.policy {
            let n_logits = n_selected * self.spec.sizes.n_actions;
            let hidden = [InputPart::Dense(hidden)];
            let logits = ensure_len(&mut rows.logits, n_logits);
            self.actor.forward(parameters, &hidden, n_selected, logits);
            let values = ensure_len(&mut rows.values, n_selected);
            self.critic.forward(parameters, &hidden, n_selected, values);
            let mut policy_rows = PolicyRows {
                logits,
                d_logits: ensure_len(&mut rows.d_logits, n_logits),
                values,
                d_values: ensure_len(&mut rows.d_values, n_selected),
                probabilities: ensure_len(&mut rows.probabilities, n_logits),
            };
            policy_and_value(job, policy, &rows.batch_rows, &mut policy_rows, sums);
            let PolicyRows { d_logits, d_values, .. } = policy_rows;
            for (head, out, d_out) in [(&self.actor, &*logits, d_logits), (&self.critic, &*values, d_values)]
            {
                let mut d_parts = [Some((&mut *d_hidden, WriteMode::Accumulate))];
                head.backward(transposed, gradients, &hidden, out, d_out, &mut d_parts);
            }
        }
        if let Some(peers) = self.peers.as_ref().filter(|_| job.weights.auxiliary > 0.0) {
            let n_peers = self.spec.sizes.n_peers;
            rows.peers.seen.clear();
            rows.peers.done.clear();
            for decision in &rows.batch_rows {
                let seen = &batch.peer_observations[decision * n_peers * size..][..n_peers * size];
                rows.peers.seen.extend_from_slice(seen);
                rows.peers.done.extend_from_slice(&batch.peer_actions[decision * n_peers..][..n_peers]);
            }
            let weight = job.weights.per_row * job.weights.auxiliary;
            let losses = peers.forward(parameters, hidden, n_selected, weight, &mut rows.peers);
            sums.own[0] += losses.observations;
            sums.own[1] += losses.actions;
            peers.backward(transposed, gradients, hidden, n_selected, &mut rows.peers, d_hidden);
        }
        sums.n += n_selected as f64;

        if !is_whole {
            d_out[..n].fill(0.0);
            for (d_state, row) in rows.d_hidden.chunks_exact(width).zip(&rows.selected) {
                d_out[row * width..][..width].copy_from_slice(d_state);
            }
        }
        let d_inputs = Some((&mut rows.trunk.d_out[..n_inputs * width], WriteMode::Overwrite));
        let (live, keep) = (&rows.live, &rows.keep);
        self.gru.backward(transposed, gradients, inputs, live, keep, &mut rows.gru, d_inputs);
        self.trunk.backward(transposed, gradients, parts, n_inputs, &mut rows.trunk, &mut []);
    }
}

/// One step of the network: what it was shown, and after what.
#[derive(Clone, Copy, Debug)]
struct SequenceStep {
    place: Place,
    last_action: Action,
    /// Whether the hidden state is zeroed before it.
    begins_anew: bool,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// A decision of the batch.
    Decision(usize),
    /// The end of an episode of the batch.
    End(usize),
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct RecurrentInferenceBuffers {
    initial: Vec<f32>,
    last_actions: Vec<Action>,
    keep: Vec<f32>,
    trunk: MlpBuffers,
    gru: GruBuffers,
}

/// The inputs and activations of one block.
#[derive(Debug, Default)]
pub(crate) struct RecurrentTrainingBuffers {
    moments: Vec<SequenceStep>,
    /// The segments of the block, longest first, and where their moments are.
    sequences: Vec<(u32, std::ops::Range<usize>)>,
    live: Vec<usize>,
    initial: Vec<f32>,
    /// What each row is shown, or, where that recurs, what differs.
    observations: Vec<f32>,
    last_actions: Vec<Action>,
    /// In the latter case, which of it each row is shown.
    places: Vec<u32>,
    pairs: PairIndex,
    keep: Vec<f32>,
    /// The decisions, as rows of the block and of the batch.
    selected: Vec<usize>,
    batch_rows: Vec<usize>,
    trunk: MlpBuffers,
    gru: GruBuffers,
    /// The hidden states of the decisions, where there are other rows.
    hidden: Vec<f32>,
    d_hidden: Vec<f32>,
    logits: Vec<f32>,
    d_logits: Vec<f32>,
    probabilities: Vec<f32>,
    values: Vec<f32>,
    d_values: Vec<f32>,
    peers: PeerModelBuffers,
}
