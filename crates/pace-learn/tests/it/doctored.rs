//! A wrapper of a game that changes one thing: the training peers, their labels, or the reports of a step.

use pace_games::{
    Action, AgentSession, AnyArena, AnyEncounter, AnyGame, ConfigError, ContractViolation, DecisionPoint,
    Ego, GameSpec, PoolListing, ScriptedEncounter, Seat, Seed, Split, StepBatch, Symmetries,
};
use serde_json::Value;

/// A game with the changes that the fields define.
pub struct Doctored {
    pub game: Box<dyn AnyGame>,
    /// The only training tuple, if set; its index is then 0.
    pub only: Option<usize>,
    /// The actual tuple in training, for a requested one.
    pub seat: fn(usize, Seed) -> usize,
    /// Changes the report of the lanes after a step of training.
    pub report: fn(&mut StepBatch<'_>),
    /// The symmetries of the game, if set.
    pub sides: Option<Symmetries>,
    /// Makes the memoryless references of all names, if set.
    pub fixed: Option<fn() -> Box<dyn Ego>>,
}

impl Doctored {
    /// The game without changes.
    pub fn new(game: Box<dyn AnyGame>) -> Doctored {
        Doctored { game, only: None, seat: |tuple, _| tuple, report: |_| {}, sides: None, fixed: None }
    }

    fn real(&self, split: Split, tuple: usize) -> usize {
        match (split, self.only) {
            (Split::Train, Some(only)) => only,
            _ => tuple,
        }
    }
}

impl AnyGame for Doctored {
    fn spec(&self) -> &GameSpec {
        self.game.spec()
    }

    fn legend(&self) -> &'static [&'static str] {
        self.game.legend()
    }

    fn config(&self) -> Value {
        self.game.config()
    }

    fn pool(&self, split: Split) -> PoolListing {
        let mut pool = self.game.pool(split);
        if let (Split::Train, Some(only)) = (split, self.only) {
            pool.tuples = vec![pool.tuples.swap_remove(only)];
        }
        pool.symmetries = self.sides.clone().or(pool.symmetries);
        pool
    }

    fn n_tuples(&self, split: Split) -> usize {
        self.pool(split).tuples.len()
    }

    fn reference_names(&self) -> Vec<&'static str> {
        self.game.reference_names()
    }

    fn memoryless_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        self.fixed.map_or_else(|| self.game.memoryless_reference(name), |make| Ok(make()))
    }

    fn uninformed_names(&self) -> Vec<&'static str> {
        self.game.uninformed_names()
    }

    fn uninformed_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        self.game.uninformed_reference(name)
    }

    fn constants(&self) -> Value {
        self.game.constants()
    }

    fn reference_session(&self, encounter: &ScriptedEncounter<'_>) -> Result<AgentSession, ConfigError> {
        let tuple = self.real(encounter.split, encounter.tuple);
        self.game.reference_session(&ScriptedEncounter { tuple, ..*encounter })
    }

    fn encounter(
        &self,
        split: Split,
        tuple: usize,
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Result<Box<dyn AnyEncounter>, ConfigError> {
        self.game.encounter(split, self.real(split, tuple), people, n_episodes, seed)
    }

    fn arena(&self, split: Split, n_lanes: usize) -> Box<dyn AnyArena> {
        let arena = self.game.arena(split, n_lanes);
        if split != Split::Train {
            return arena;
        }
        Box::new(DoctoredArena { arena, only: self.only, seat: self.seat, report: self.report })
    }

    fn decision_points(&self) -> Vec<DecisionPoint> {
        self.game.decision_points()
    }

    fn expected_return(&self, split: Split, tuple: usize, answers: &[f32]) -> Result<f64, ConfigError> {
        self.game.expected_return(split, self.real(split, tuple), answers)
    }

    fn check_contract(&self, seed: Seed) -> Result<Vec<&'static str>, ContractViolation> {
        self.game.check_contract(seed)
    }
}

struct DoctoredArena {
    arena: Box<dyn AnyArena>,
    only: Option<usize>,
    seat: fn(usize, Seed) -> usize,
    report: fn(&mut StepBatch<'_>),
}

impl AnyArena for DoctoredArena {
    fn begin(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed, observation: &mut [f32]) {
        let tuple = (self.seat)(self.only.unwrap_or(tuple), seed);
        self.arena.begin(lane, tuple, n_episodes, seed, observation);
    }

    fn step(&mut self, actions: &[Action], batch: &mut StepBatch<'_>) {
        self.arena.step(actions, batch);
        (self.report)(batch);
    }

    fn idle(&self) -> &[bool] {
        self.arena.idle()
    }
}
