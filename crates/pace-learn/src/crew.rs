//! The lanes of one shard with a network in every ego's seat: decide, then advance, until all encounters are over.
//!
//! Training writes down what happens here in `rollout`, evaluation in `adapt`.

use pace_games::{Action, AnyGame, Boundary, Lanes, NO_ACTION, PeerSight, Seed, Split, StepBlock, Stream};
use pace_nn::loss::{sample_categorical, softmax_rows};

use crate::config::{ContextAction, TrainConfig};
use crate::context::RunningContext;
use crate::methods::{ActRows, PaceNet};

/// Lanes, their contexts, and the rows of the pass that acts.
pub(crate) struct Crew {
    lanes: Box<dyn Lanes>,
    contexts: Vec<RunningContext>,
    rngs: Vec<Option<Stream>>,
    context_action: ContextAction,
    n_peers: usize,
    /// The lanes that decide, in order; every row below belongs to one of them.
    active: Vec<usize>,
    observations: Vec<f32>,
    pooled: Vec<f32>,
    is_empty: Vec<bool>,
    pub(crate) rows: ActRows,
    log_probabilities: Vec<f32>,
    probabilities: Vec<f32>,
    /// One action per lane.
    actions: Vec<Action>,
    context_actions: Vec<Action>,
    entry_rows: ActRows,
    terminal_observations: Vec<f32>,
    ended: Vec<usize>,
    no_actions: Vec<Action>,
}

impl Crew {
    pub(crate) fn new(
        game: &dyn AnyGame,
        split: Split,
        n_lanes: usize,
        net: &PaceNet,
        config: &TrainConfig,
        window: Option<usize>,
    ) -> Crew {
        let context = RunningContext::new(net.width(), config.empty_episode, window);
        Crew {
            lanes: game.lanes(split, n_lanes, PeerSight::Skipped),
            contexts: vec![context; n_lanes],
            rngs: vec![None; n_lanes],
            context_action: config.context_action,
            n_peers: game.spec().n_peers(),
            active: Vec::new(),
            observations: Vec::new(),
            pooled: Vec::new(),
            is_empty: Vec::new(),
            rows: ActRows::default(),
            log_probabilities: Vec::new(),
            probabilities: Vec::new(),
            actions: vec![0; n_lanes],
            context_actions: Vec::new(),
            entry_rows: ActRows::default(),
            terminal_observations: Vec::new(),
            ended: Vec::new(),
            no_actions: Vec::new(),
        }
    }

    pub(crate) fn n_lanes(&self) -> usize {
        self.actions.len()
    }

    /// Seats a tuple in a lane, with an empty context.
    pub(crate) fn begin(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed) {
        self.contexts[lane].clear();
        self.switch(lane, tuple, n_episodes, seed);
    }

    /// Seats a tuple in a lane whose peers have left, and leaves the context as it is.
    pub(crate) fn switch(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed) {
        self.lanes.begin(lane, tuple, n_episodes, seed);
        self.rngs[lane] = Some(seed.stream("ego"));
    }

    /// The lanes that decided last.
    pub(crate) fn active(&self) -> &[usize] {
        &self.active
    }

    /// What the deciding egos saw.
    pub(crate) fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// The log-probability of each action of the deciding egos.
    pub(crate) fn log_probabilities(&self) -> &[f32] {
        &self.log_probabilities
    }

    /// The action of a lane.
    pub(crate) fn action(&self, lane: usize) -> Action {
        self.actions[lane]
    }

    /// What the lanes reported after the last advance.
    pub(crate) fn block(&self) -> &StepBlock {
        self.lanes.block()
    }

    pub(crate) fn context(&self, lane: usize) -> &RunningContext {
        &self.contexts[lane]
    }

    /// Clears the context of a lane between two episodes.
    pub(crate) fn clear_context(&mut self, lane: usize) {
        self.contexts[lane].clear();
    }

    /// The same, but for the episode just finished.
    pub(crate) fn keep_last_episode(&mut self, lane: usize) {
        self.contexts[lane].keep_last_episode();
    }

    /// Passes every waiting decision through the network and draws the actions; false when all encounters are over.
    pub(crate) fn decide(&mut self, net: &PaceNet, parameters: &[f32]) -> bool {
        let (size, width, n_actions) = (net.observation_size(), net.width(), net.n_actions());
        self.active.clear();
        let resting = self.lanes.resting();
        self.active.extend((0..resting.len()).filter(|lane| !resting[*lane]));
        let n_rows = self.active.len();
        if n_rows == 0 {
            return false;
        }
        self.observations.resize(n_rows * size, 0.0);
        self.pooled.resize(n_rows * width, 0.0);
        self.is_empty.clear();
        for (row, lane) in self.active.iter().enumerate() {
            let seen = &self.lanes.block().observations[lane * size..][..size];
            self.observations[row * size..][..size].copy_from_slice(seen);
            self.contexts[*lane].pool_into(&mut self.pooled[row * width..][..width]);
            self.is_empty.push(self.contexts[*lane].is_empty());
        }
        net.act(parameters, &self.observations, &self.pooled, &self.is_empty, &mut self.rows);
        self.log_probabilities.resize(n_rows * n_actions, 0.0);
        self.probabilities.resize(n_rows * n_actions, 0.0);
        let logits = &self.rows.logits()[..n_rows * n_actions];
        softmax_rows(logits, &[n_actions], &mut self.log_probabilities, &mut self.probabilities);
        for (row, lane) in self.active.iter().enumerate() {
            let rng = self.rngs[*lane].as_mut().expect("a lane that decides has begun");
            let probabilities = &self.probabilities[row * n_actions..][..n_actions];
            self.actions[*lane] = sample_categorical(probabilities, rng.unit() as f32) as Action;
        }
        true
    }

    /// Carries the actions out and adds what was seen to the contexts.
    pub(crate) fn advance(&mut self, net: &PaceNet, parameters: &[f32]) {
        let (size, width) = (net.observation_size(), net.width());
        self.lanes.step(&self.actions);
        let block = self.lanes.block();
        self.context_actions.clear();
        self.terminal_observations.clear();
        self.ended.clear();
        for lane in &self.active {
            self.context_actions.push(match self.context_action {
                ContextAction::Ego => self.actions[*lane],
                ContextAction::Peer => block.peer_actions[lane * self.n_peers],
            });
            if block.boundaries[*lane] != Boundary::WithinEpisode {
                self.ended.push(*lane);
                self.terminal_observations
                    .extend_from_slice(&block.terminal_observations[lane * size..][..size]);
            }
        }
        net.encode_entries(parameters, &self.observations, &self.context_actions, &mut self.entry_rows);
        for (row, lane) in self.active.iter().enumerate() {
            self.contexts[*lane].add_entry(&self.entry_rows.features()[row * width..][..width]);
        }
        if self.ended.is_empty() {
            return;
        }
        self.no_actions.resize(self.ended.len(), NO_ACTION);
        net.encode_entries(parameters, &self.terminal_observations, &self.no_actions, &mut self.entry_rows);
        for (row, lane) in self.ended.iter().enumerate() {
            self.contexts[*lane].end_episode(&self.entry_rows.features()[row * width..][..width]);
        }
    }

    /// The context actions of the deciding egos, after the advance.
    pub(crate) fn context_actions(&self) -> &[Action] {
        &self.context_actions
    }
}
