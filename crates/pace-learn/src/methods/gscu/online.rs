//! GSCU online: a belief about the peers, a bandit between two policies, and what a lane keeps of both.
//!
//! The belief is updated between episodes only, so that an episode is played with one policy and one latent.

use pace_games::{NO_ACTION, Seed, Stream};

use super::bandit::{Arm, Exp3};
use super::belief::{self, Belief, BeliefRows};
use super::conditional::GscuNet;
use super::fill_normal;
use super::keys::Bandit;
use crate::nets::ActorCriticRows;
use crate::network::{Decisions, Network};
use crate::policy::{Memory, PolicyRoom};

/// What a lane keeps of its encounter.
#[derive(Clone, Debug)]
pub(crate) struct GscuContext {
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
    /// What the conservative policy keeps, where there is one.
    memory: Option<Memory>,
}

/// The rows of a pass that acts.
#[derive(Debug, Default)]
pub(crate) struct OnlineRows {
    pub(super) latents: Vec<f32>,
    pub(super) decisions: ActorCriticRows,
    pub(super) logits: Vec<f32>,
    conservative_logits: Vec<f32>,
    /// Where the conservative policy works.
    room: Option<Box<dyn PolicyRoom>>,
    belief: BeliefRows,
}

impl GscuContext {
    pub(super) fn new(net: &GscuNet) -> GscuContext {
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
            memory: None,
        };
        context.begin(net, seed);
        context
    }

    pub(super) fn begin(&mut self, net: &GscuNet, seed: Seed) {
        self.seed = seed;
        self.rng = seed.stream("gscu");
        self.told = None;
        self.latent.fill(0.0);
        self.belief.reset();
        self.bandit.reset();
        self.episode_return = 0.0;
        let policy = net.conservative.as_ref();
        self.memory = policy.map(|policy| policy.memory(seed.child("conservative", &[])));
        self.draw_arm(net.keys.bandit);
    }

    /// Forgets the peers; chance does not begin anew.
    pub(super) fn forget(&mut self, net: &GscuNet) {
        self.begin(net, self.seed.child("again", &[]));
    }

    /// The tuple is known from now on.
    pub(super) fn tell(&mut self, net: &GscuNet, tuple: usize) {
        self.told = Some(tuple);
        self.memory = None;
        self.arm = Arm::Greedy;
        self.draw_latent(net, tuple);
    }

    pub(super) fn latent(&self) -> &[f32] {
        &self.latent
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

/// The greedy policy of every lane, and the conservative one's answers where it is that one's turn.
pub(super) fn act(
    net: &GscuNet,
    parameters: &[f32],
    observations: &[f32],
    contexts: &[GscuContext],
    lanes: &[usize],
    rows: &mut OnlineRows,
) {
    rows.latents.clear();
    for lane in lanes {
        rows.latents.extend_from_slice(&contexts[*lane].latent);
    }
    let n_rows = lanes.len();
    net.actor_critic.forward(parameters, observations, &rows.latents, n_rows, &mut rows.decisions);
    let n_actions = net.embedding.n_actions();
    rows.logits.clear();
    rows.logits.extend_from_slice(&rows.decisions.logits()[..n_rows * n_actions]);
    // The conservative policy sees every episode, its own or not: it may have a memory.
    let Some(room) = room_for(net, contexts, lanes, &mut rows.room) else { return };
    room.act(observations, &mut rows.conservative_logits);
    let answers = rows.conservative_logits.chunks_exact(n_actions);
    for ((lane, logits), answer) in lanes.iter().zip(rows.logits.chunks_exact_mut(n_actions)).zip(answers) {
        if contexts[*lane].arm == Arm::Conservative {
            logits.copy_from_slice(answer);
        }
    }
}

/// The conservative policy's room with the memories of these lanes; nothing where they have none.
fn room_for<'a>(
    net: &GscuNet,
    contexts: &[GscuContext],
    lanes: &[usize],
    room: &'a mut Option<Box<dyn PolicyRoom>>,
) -> Option<&'a mut Box<dyn PolicyRoom>> {
    let policy = net.conservative.as_ref()?;
    // All lanes of a pass are alike: told, or adapting.
    contexts[*lanes.first()?].memory.as_ref()?;
    let room = room.get_or_insert_with(|| policy.room());
    room.clear();
    lanes.iter().filter_map(|lane| contexts[*lane].memory.as_ref()).for_each(|memory| room.load(memory));
    Some(room)
}

/// What the peers did goes into the windows of the beliefs.
pub(super) fn take_in(
    net: &GscuNet,
    decisions: &Decisions<'_>,
    contexts: &mut [GscuContext],
    lanes: &[usize],
    rows: &mut OnlineRows,
) {
    let (n_peers, size) = (net.sizes().n_peers, net.sizes().observation);
    for (row, lane) in lanes.iter().enumerate() {
        let context = &mut contexts[*lane];
        if context.told.is_some() {
            continue;
        }
        context.episode_return += decisions.task_rewards.get(row).map_or(0.0, |reward| f64::from(*reward));
        // Whoever leads us to a made-up point of an episode cannot say what the peers saw there.
        if decisions.peer_observations.is_empty() {
            continue;
        }
        for slot in 0..n_peers {
            let (peer, slots) = (row * n_peers + slot, &net.keys.belief_slots);
            let action = decisions.peer_actions[peer];
            if action != NO_ACTION && (slots.is_empty() || slots.contains(&slot)) {
                let seen = &decisions.peer_observations[peer * size..][..size];
                context.belief.window.observations.extend_from_slice(seen);
                context.belief.window.actions.push(action);
            }
        }
    }
    // The rows that acted are still in the room.
    let remembers = lanes.first().is_some_and(|lane| contexts[*lane].memory.is_some());
    if let Some(room) = rows.room.as_mut().filter(|_| remembers) {
        room.take_in(decisions);
        store(room, contexts, lanes);
    }
}

/// Credits the arms, updates the beliefs that are due, and chooses what the next episodes are played with.
pub(super) fn end_episodes(
    net: &GscuNet,
    parameters: &[f32],
    terminal_observations: &[f32],
    contexts: &mut [GscuContext],
    lanes: &[usize],
    rows: &mut OnlineRows,
) {
    if let Some(room) = room_for(net, contexts, lanes, &mut rows.room) {
        room.end_episodes(terminal_observations);
        store(room, contexts, lanes);
    }
    let mut is_ending = vec![false; contexts.len()];
    lanes.iter().for_each(|lane| is_ending[*lane] = true);
    let mut due = Vec::new();
    for (context, _) in contexts.iter_mut().zip(&is_ending).filter(|(_, is_ending)| **is_ending) {
        match context.told {
            Some(tuple) => context.draw_latent(net, tuple),
            None if context.belief.is_due(&net.keys) => due.push((&mut context.belief, &mut context.rng)),
            None => {}
        }
    }
    let weights = &parameters[net.embedding_start()..];
    belief::update(&net.embedding, weights, &net.keys, &mut due, &mut rows.belief);
    for lane in lanes {
        let context = &mut contexts[*lane];
        if context.told.is_none() {
            context.latent.copy_from_slice(context.belief.mean());
            context.bandit.learn(context.arm, context.episode_return);
            context.draw_arm(net.keys.bandit);
        }
        context.episode_return = 0.0;
    }
}

fn store(room: &mut Box<dyn PolicyRoom>, contexts: &mut [GscuContext], lanes: &[usize]) {
    for (place, lane) in lanes.iter().enumerate() {
        if let Some(memory) = &mut contexts[*lane].memory {
            room.store(place, memory);
        }
    }
}
