//! GSCU online: a belief about the peers, a bandit between two policies, and what a lane keeps of both.
//!
//! The belief is updated between episodes only, so that an episode is played with one policy and one latent.

use pace_games::{NO_ACTION, Seed, Stream};

use super::bandit::{Arm, Exp3};
use super::belief::{self, Belief, BeliefBuffers};
use super::conditional::GscuNet;
use super::fill_normal;
use super::keys::Bandit;
use crate::nets::{ActorCriticBuffers, latent_parts};
use crate::network::{Actor, Decisions, LaneStates, NetworkSpec, PolicyOutputs};
use crate::policy::PolicyLanes;

/// The contexts of some lanes.
#[derive(Debug)]
pub(crate) struct GscuState {
    lanes: Vec<GscuContext>,
    /// The same lanes as the conservative policy sees them, where there is one.
    conservative: Option<Box<dyn PolicyLanes>>,
    buffers: OnlineBuffers,
}

/// What a lane keeps of its encounter.
#[derive(Clone, Debug)]
struct GscuContext {
    seed: Seed,
    rng: Stream,
    /// In training alone: the tuple, whose latents are drawn from its own distribution.
    told: Option<usize>,
    /// What the conditional policy is given.
    latent: Vec<f32>,
    belief: Belief,
    bandit: Exp3,
    arm: Arm,
    /// What the episode brought so far.
    episode_return: f64,
}

/// The buffers of a forward pass.
#[derive(Debug, Default)]
struct OnlineBuffers {
    actor_critic: ActorCriticBuffers,
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
    /// The conservative policy, unless the lanes know their tuples. All lanes of a pass are alike: told, or adapting.
    fn conservative_of(&mut self, lanes: &[usize]) -> Option<&mut Box<dyn PolicyLanes>> {
        let is_told = lanes.first().is_none_or(|lane| self.lanes[*lane].told.is_some());
        self.conservative.as_mut().filter(|_| !is_told)
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

    /// Forgets the peers; chance does not begin anew.
    fn clear_context(&self, state: &mut GscuState, lane: usize) {
        let seed = state.lanes[lane].seed.child("again", &[]);
        self.begin(state, lane, seed);
    }

    fn reveal_tuple(&self, state: &mut GscuState, lane: usize, tuple: usize, _seed: Seed) {
        let context = &mut state.lanes[lane];
        context.told = Some(tuple);
        context.arm = Arm::Greedy;
        context.draw_latent(self, tuple);
    }

    /// The greedy policy of every lane, and the conservative one's logits where it is that one's transform.
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
        let buffers = &mut state.buffers.actor_critic;
        let parts = latent_parts(observations, &out.latents);
        self.actor_critic.forward(&self.weights, &parts, n_rows, buffers);
        buffers.write_to(n_rows, out);
        // The conservative policy sees every episode, its own or not: it may have a memory.
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

    /// What the peers did goes into the windows of the beliefs.
    fn update_contexts(&self, decisions: &Decisions<'_>, lanes: &[usize], state: &mut GscuState) {
        let (n_peers, size) = (self.spec.sizes.n_peers, self.spec.sizes.observation);
        if let Some(conservative) = state.conservative_of(lanes) {
            conservative.update_contexts(decisions, lanes);
        }
        for (row, lane) in lanes.iter().enumerate() {
            let context = &mut state.lanes[*lane];
            if context.told.is_some() {
                continue;
            }
            context.episode_return +=
                decisions.task_rewards.get(row).map_or(0.0, |reward| f64::from(*reward));
            // Whoever leads us to a made-up point of an episode cannot say what the peers saw there.
            if decisions.peer_observations.is_empty() {
                continue;
            }
            for slot in 0..n_peers {
                let (peer, slots) = (row * n_peers + slot, &self.keys.belief_slots);
                let action = decisions.peer_actions[peer];
                if action != NO_ACTION && (slots.is_empty() || slots.contains(&slot)) {
                    let seen = &decisions.peer_observations[peer * size..][..size];
                    context.belief.window.observations.extend_from_slice(seen);
                    context.belief.window.actions.push(action);
                }
            }
        }
    }

    /// Credits the arms, updates the beliefs that need it, and chooses what the next episodes are played with.
    fn end_episodes(&self, terminal_observations: &[f32], lanes: &[usize], state: &mut GscuState) {
        if let Some(conservative) = state.conservative_of(lanes) {
            conservative.end_episodes(terminal_observations, lanes);
        }
        let mut is_ending = vec![false; state.lanes.len()];
        lanes.iter().for_each(|lane| is_ending[*lane] = true);
        let mut to_update = Vec::new();
        for (context, _) in state.lanes.iter_mut().zip(&is_ending).filter(|(_, is_ending)| **is_ending) {
            match context.told {
                Some(tuple) => context.draw_latent(self, tuple),
                None if context.belief.needs_update(&self.keys) => {
                    to_update.push((&mut context.belief, &mut context.rng));
                }
                None => {}
            }
        }
        let weights = &self.weights[self.embedding_start()..];
        belief::update(&self.embedding, weights, &self.keys, &mut to_update, &mut state.buffers.belief);
        for lane in lanes {
            let context = &mut state.lanes[*lane];
            if context.told.is_none() {
                context.latent.copy_from_slice(context.belief.mean());
                context.bandit.learn(context.arm, context.episode_return);
                context.draw_arm(self.keys.bandit);
            }
            context.episode_return = 0.0;
        }
    }

    fn save_state(&self, state: &GscuState, lane: usize, saved: &mut Vec<f32>) {
        saved.extend_from_slice(&state.lanes[lane].latent);
    }
}

impl GscuContext {
    fn new(net: &GscuNet) -> GscuContext {
        let (keys, seed) = (&net.keys, Seed::new(0));
        let mut context = GscuContext {
            seed,
            rng: seed.stream("gscu"),
            told: None,
            latent: vec![0.0; keys.latent_size],
            belief: Belief::new(keys.latent_size),
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
        self.told = None;
        self.latent.fill(0.0);
        self.belief.reset();
        self.bandit.reset();
        self.episode_return = 0.0;
        self.draw_arm(net.keys.bandit);
    }

    fn draw_latent(&mut self, net: &GscuNet, tuple: usize) {
        let n = self.latent.len();
        let (means, logs) = net.tuples[tuple * 2 * n..][..2 * n].split_at(n);
        fill_normal(&mut self.rng, &mut self.latent);
        for (latent, (mean, log)) in self.latent.iter_mut().zip(means.iter().zip(logs)) {
            *latent = mean + (0.5 * log).exp() * *latent;
        }
    }

    fn draw_arm(&mut self, bandit: Bandit) {
        self.arm = match bandit {
            Bandit::Exp3 => self.bandit.draw(&mut self.rng),
            Bandit::Greedy => Arm::Greedy,
            Bandit::Conservative => Arm::Conservative,
        };
    }
}
