//! GSCU in play: each lane has a belief about its peers, and a bandit that chooses between two policies.
//!
//! The policy changes only between episodes. So does the latent, unless the keys ask for updates within episodes.

use pace_games::{NO_ACTION, Seed, Stream};

use super::bandit::{Arm, Exp3};
use super::belief::{self, Belief, BeliefBuffers};
use super::conditional::{ConditionalPolicy, GscuNet};
use super::fill_normal;
use super::keys::{Bandit, BeliefUpdates, LatentSampling};
use super::window::{RecentSteps, WindowBuffers};
use crate::nets::{ActorCriticBuffers, latent_parts};
use crate::network::{Actor, Decisions, LaneStates, NetworkSpec, PolicyOutputs};
use crate::policy::PolicyLanes;

/// The contexts of some lanes.
#[derive(Debug)]
pub(crate) struct GscuState {
    lanes: Vec<GscuContext>,
    /// The contexts of the conservative policy for the same lanes; `None` if there is no such policy.
    conservative: Option<Box<dyn PolicyLanes>>,
    buffers: OnlineBuffers,
}

/// The context of a lane.
#[derive(Clone, Debug)]
struct GscuContext {
    seed: Seed,
    rng: Stream,
    /// The tuple, known in training only. Latents are then sampled from its distribution.
    known_tuple: Option<usize>,
    /// The latent in the input of the conditional policy.
    latent: Vec<f32>,
    /// The current episode, for a conditional policy with a memory.
    recent: RecentSteps,
    belief: Belief,
    bandit: Exp3,
    arm: Arm,
    /// The return of the current episode so far.
    episode_return: f64,
}

/// The buffers of a forward pass.
#[derive(Debug, Default)]
struct OnlineBuffers {
    feed_forward: ActorCriticBuffers,
    window: WindowBuffers,
    conservative: PolicyOutputs,
    belief: BeliefBuffers,
}

impl LaneStates for GscuState {
    fn select(&self, lanes: &[usize]) -> GscuState {
        GscuState {
            lanes: lanes.iter().map(|lane| self.lanes[*lane].clone()).collect(),
            conservative: self.conservative.as_ref().map(|conservative| conservative.select(lanes)),
            buffers: OnlineBuffers::default(),
        }
    }
}

impl GscuState {
    /// Sets the latent of the only lane.
    #[cfg(test)]
    pub(super) fn set_latent(&mut self, latent: &[f32]) {
        self.lanes[0].latent.copy_from_slice(latent);
    }

    /// The conservative policy; `None` in training. Either all lanes of a pass know their tuples, or none of them does.
    fn conservative_of(&mut self, lanes: &[usize]) -> Option<&mut Box<dyn PolicyLanes>> {
        let is_training = lanes.first().is_none_or(|lane| self.lanes[*lane].known_tuple.is_some());
        self.conservative.as_mut().filter(|_| !is_training)
    }
}

impl Actor for GscuNet {
    type State = GscuState;

    fn spec(&self) -> &NetworkSpec {
        &self.spec
    }

    fn new_state(&self, n_lanes: usize, _window: Option<usize>) -> GscuState {
        GscuState {
            lanes: vec![GscuContext::new(self); n_lanes],
            conservative: self.conservative.as_ref().map(|policy| policy.new_state(n_lanes, None)),
            buffers: OnlineBuffers::default(),
        }
    }

    fn begin(&self, state: &mut GscuState, lane: usize, seed: Seed) {
        state.lanes[lane].begin(self, seed);
        if let Some(conservative) = &mut state.conservative {
            conservative.begin(lane, seed.child("conservative", &[]));
        }
    }

    /// Removes everything known about the peers; the random stream does not start again.
    fn clear_context(&self, state: &mut GscuState, lane: usize) {
        let seed = state.lanes[lane].seed.child("again", &[]);
        self.begin(state, lane, seed);
    }

    fn reveal_tuple(&self, state: &mut GscuState, lane: usize, tuple: usize, _seed: Seed) {
        let context = &mut state.lanes[lane];
        context.known_tuple = Some(tuple);
        context.arm = Arm::Greedy;
        context.sample_latent(self, tuple);
    }

    /// The greedy policy of every lane; lanes whose arm is the conservative policy get its logits instead.
    fn forward_policy(
        &self,
        observations: &[f32],
        lanes: &[usize],
        state: &mut GscuState,
        out: &mut PolicyOutputs,
    ) {
        let n_rows = lanes.len();
        out.latents.clear();
        for lane in lanes {
            out.latents.extend_from_slice(&state.lanes[*lane].latent);
        }
        match &self.policy {
            ConditionalPolicy::FeedForward(network) => {
                let buffers = &mut state.buffers.feed_forward;
                let parts = latent_parts(observations, &out.latents);
                network.forward(&self.weights, &parts, n_rows, buffers);
                buffers.write_to(n_rows, out);
            }
            ConditionalPolicy::Window(network) => {
                let GscuState { lanes: contexts, buffers, .. } = &mut *state;
                let recent = lanes.iter().map(|lane| &contexts[*lane].recent);
                network.forward_policy(&self.weights, observations, recent, &mut buffers.window, out);
            }
        }
        // The conservative policy may have a memory, so it also sees the episodes that it does not play.
        let mut answers = std::mem::take(&mut state.buffers.conservative);
        if let Some(conservative) = state.conservative_of(lanes) {
            conservative.forward_policy(observations, lanes, &mut answers);
            let n_actions = self.spec.sizes.n_actions;
            let logits = out.logits.chunks_exact_mut(n_actions);
            for ((lane, logits), answer) in
                lanes.iter().zip(logits).zip(answers.logits.chunks_exact(n_actions))
            {
                if state.lanes[*lane].arm == Arm::Conservative {
                    logits.copy_from_slice(answer);
                }
            }
        }
        state.buffers.conservative = answers;
    }

    /// Adds the peers' observations and actions to the windows of the beliefs, and the decision to the memory of the policy.
    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut GscuState) {
        let (n_peers, size) = (self.spec.sizes.n_peers, self.spec.sizes.observation);
        if let Some(conservative) = state.conservative_of(lanes) {
            conservative.update_contexts(decisions, lanes);
        }
        for (row, lane) in lanes.iter().enumerate() {
            let context = &mut state.lanes[*lane];
            if let ConditionalPolicy::Window(network) = &self.policy {
                let observation = &decisions.observations[row * size..][..size];
                context.recent.push(observation, decisions.ego_actions[row], network.n_steps());
            }
            if let Some(tuple) = context.known_tuple {
                if self.keys.latent_sampling == LatentSampling::PerStep {
                    context.sample_latent(self, tuple);
                }
                continue;
            }
            context.episode_return +=
                decisions.task_rewards.get(row).map_or(0.0, |reward| f64::from(*reward));
            // Contexts that are led to a decision point for its exact value have no observations of the peers.
            if decisions.peer_observations.is_empty() {
                continue;
            }
            for slot in 0..n_peers {
                let (peer, slots) = (row * n_peers + slot, &self.keys.belief_slots);
                let action = decisions.peer_actions[peer];
                if action != NO_ACTION && (slots.is_empty() || slots.contains(&slot)) {
                    let observation = &decisions.peer_observations[peer * size..][..size];
                    context.belief.window.observations.extend_from_slice(observation);
                    context.belief.window.actions.push(action);
                }
            }
        }
        if self.keys.belief_updates == BeliefUpdates::AtOnce {
            self.update_beliefs(lanes, state);
        }
    }

    /// Updates the bandits and the beliefs with full windows, and chooses the policies and latents of the next episodes.
    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut GscuState) {
        if let Some(conservative) = state.conservative_of(lanes) {
            conservative.end_episodes(terminal_observations, lanes);
        }
        self.update_beliefs(lanes, state);
        for lane in lanes {
            let context = &mut state.lanes[*lane];
            context.recent.clear();
            match context.known_tuple {
                Some(tuple) => context.sample_latent(self, tuple),
                None => {
                    context.bandit.update(context.arm, context.episode_return);
                    context.choose_arm(self.keys.bandit);
                }
            }
            context.episode_return = 0.0;
        }
    }

    fn save_state(&self, state: &GscuState, lane: usize, saved: &mut Vec<f32>) {
        saved.extend_from_slice(&state.lanes[lane].latent);
    }
}

impl GscuNet {
    /// Updates the beliefs of some lanes whose windows are full, and their latents.
    fn update_beliefs(&self, lanes: &[usize], state: &mut GscuState) {
        let mut is_listed = vec![false; state.lanes.len()];
        lanes.iter().for_each(|lane| is_listed[*lane] = true);
        let mut contexts: Vec<&mut GscuContext> = state
            .lanes
            .iter_mut()
            .zip(&is_listed)
            .filter(|(context, is_listed)| {
                **is_listed && context.known_tuple.is_none() && context.belief.needs_update(&self.keys)
            })
            .map(|(context, _)| context)
            .collect();
        let weights = &self.weights[self.embedding_start()..];
        let mut to_update: Vec<_> =
            contexts.iter_mut().map(|context| (&mut context.belief, &mut context.rng)).collect();
        belief::update(&self.embedding, weights, &self.keys, &mut to_update, &mut state.buffers.belief);
        for context in contexts {
            context.belief.write_mean(&mut context.latent);
        }
    }
}

impl GscuContext {
    fn new(net: &GscuNet) -> GscuContext {
        let (keys, seed) = (&net.keys, Seed::new(0));
        let mut context = GscuContext {
            seed,
            rng: seed.stream("gscu"),
            known_tuple: None,
            latent: vec![0.0; keys.latent_size],
            recent: RecentSteps::new(),
            belief: Belief::new(keys.latent_size, net.n_belief_rows),
            bandit: Exp3::new(keys.exp3_gamma, keys.exp3_low, keys.exp3_high),
            arm: Arm::Greedy,
            episode_return: 0.0,
        };
        context.begin(net, seed);
        context
    }

    fn begin(&mut self, net: &GscuNet, seed: Seed) {
        self.seed = seed;
        self.rng = seed.stream("gscu");
        self.known_tuple = None;
        self.latent.fill(0.0);
        self.recent.clear();
        self.belief.reset();
        self.bandit.reset();
        self.episode_return = 0.0;
        self.choose_arm(net.keys.bandit);
    }

    fn sample_latent(&mut self, net: &GscuNet, tuple: usize) {
        let n = self.latent.len();
        let (means, logs) = net.tuples[tuple * 2 * n..][..2 * n].split_at(n);
        fill_normal(&mut self.rng, &mut self.latent);
        for (latent, (mean, log)) in self.latent.iter_mut().zip(means.iter().zip(logs)) {
            *latent = mean + (0.5 * log).exp() * *latent;
        }
    }

    fn choose_arm(&mut self, bandit: Bandit) {
        self.arm = match bandit {
            Bandit::Exp3 => self.bandit.sample(&mut self.rng),
            Bandit::Greedy => Arm::Greedy,
            Bandit::Conservative => Arm::Conservative,
        };
    }
}
