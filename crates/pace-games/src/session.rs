//! One encounter of an ego, move by move, with access to everything that can be shown of it. This module alone asks the ego of
//! such an encounter for action probabilities, samples its action, gives it feedback, and ends its episodes.
//!
//! The ego may be trained or scripted, and people may play in seats of peers. `pace watch`, replays, latent maps, the evaluation
//! of reference agents and play with people all use sessions. Many encounters of one trained ego are lanes of an `arena`; a
//! lane with the same seed plays the same.

use crate::arena::PeerObservationMode;
use crate::config::ConfigError;
use crate::ego::{
    Ego, EpisodeOutcome, Inference, KindBelief, StepFeedback, check_distribution, sample_action,
};
use crate::encounter::{EgoStep, EncounterMove, PeerStepBuffers};
use crate::entry::AnyEncounter;
use crate::game::{
    Action, Boundary, DecisionPoint, Ending, JointAction, NO_ACTION, NO_ACTIONS, Seat, SeatSet,
};
use crate::seed::{Seed, Stream};

/// One encounter of one ego.
pub struct AgentSession {
    encounter: Box<dyn AnyEncounter>,
    ego: Box<dyn Ego>,
    ego_rng: Stream,
    sees_everything: bool,
    /// The decision points from which the exact value of an episode is computed; empty where it is not.
    points: Vec<DecisionPoint>,
    observation: Vec<f32>,
    probabilities: Vec<f32>,
    /// The ego's action for the next move; `None` if it does not act in it.
    choice: Option<Action>,
    /// The ego's last executed decision in this episode, and its outcome so far.
    step: Option<(Action, EgoStep)>,
    /// Whether the ego has not received the feedback on that decision yet.
    is_feedback_due: bool,
    peer_actions: Vec<Action>,
    peer_observations: Vec<f32>,
    last_move: Option<EncounterMove>,
    n_moves: usize,
    boundary: Boundary,
    current: EpisodeOutcome,
    outcomes: Vec<EpisodeOutcome>,
}

/// The effect of [`AgentSession::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A move was made, or the next episode was started: there is a new [`Moment`].
    Moved,
    /// No move was made: the actions of these seats are missing.
    Asked(SeatSet),
    /// No move was made: the encounter is over.
    Over,
}

/// The state of a session at the start of an episode or after a move.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The encounter, for views, texts and observations of any seat.
    pub encounter: &'a dyn AnyEncounter,
    ego: &'a dyn Ego,
    /// The episode, from 0.
    pub episode: usize,
    /// Moves so far in this episode.
    pub n_moves: usize,
    /// The ego's executed decisions so far in this episode.
    pub n_steps: usize,
    /// The ego's observation, if it acts next or the episode has ended; otherwise its last observation.
    pub observation: &'a [f32],
    /// The decision of the ego, if it acts next.
    pub decision: Option<Decision<'a>>,
    /// The last move; `None` at the start of an episode.
    pub last_move: Option<&'a EncounterMove>,
    /// The last executed decision of the ego in this episode, and its outcome so far.
    pub step: Option<StepRecord<'a>>,
    /// The ending of the episode; `None` while it continues.
    pub ending: Option<Ending>,
    /// Sum of the ego's task rewards in this episode.
    pub task_return: f64,
}

/// A decision of the ego that is not executed yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'a> {
    /// The action.
    pub action: Action,
    /// The probabilities from which the action was sampled.
    pub probabilities: &'a [f32],
}

/// An executed decision of the ego and its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRecord<'a> {
    /// The ego's action.
    pub ego_action: Action,
    /// The peers' actions since; see [`PeerStepBuffers`].
    pub peer_actions: &'a [Action],
    /// The reward and the boundary.
    pub outcome: EgoStep,
}

impl<'a> Moment<'a> {
    /// Whether the ego has a new inference: it acts next, or the episode has ended.
    pub fn concerns_ego(&self) -> bool {
        self.decision.is_some() || self.ending.is_some()
    }

    /// The ego's last inference; see [`Ego::inference`].
    pub fn inference(&self) -> Option<&'a Inference> {
        self.ego.inference()
    }

    /// The ego's beliefs about its peers; see [`Ego::beliefs`].
    pub fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        self.ego.beliefs()
    }
}

impl AgentSession {
    /// Starts a session. The caller has called [`Ego::begin_encounter`]. The ego's actions are sampled from the stream `ego` of
    /// `seed`. An ego whose output is not a distribution over actions is an error.
    pub fn begin(
        encounter: Box<dyn AnyEncounter>,
        ego: Box<dyn Ego>,
        seed: Seed,
    ) -> Result<AgentSession, ConfigError> {
        AgentSession::of_reference(encounter, ego, seed, false, Vec::new())
    }

    /// Like [`AgentSession::begin`], for a reference agent: it may see the whole state, and with decision points the outcome of
    /// each episode includes its exact value.
    pub(crate) fn of_reference(
        encounter: Box<dyn AnyEncounter>,
        ego: Box<dyn Ego>,
        seed: Seed,
        sees_everything: bool,
        points: Vec<DecisionPoint>,
    ) -> Result<AgentSession, ConfigError> {
        let spec = encounter.spec();
        let (n_peers, size) = (spec.n_peers(), spec.observation_size);
        let n_seen = match ego.peer_observation_mode() {
            PeerObservationMode::Recorded => n_peers * size,
            PeerObservationMode::Skipped => 0,
        };
        let mut session = AgentSession {
            ego_rng: seed.stream("ego"),
            sees_everything,
            points,
            observation: vec![0.0; size],
            probabilities: vec![0.0; spec.n_actions()],
            choice: None,
            step: None,
            is_feedback_due: false,
            peer_actions: vec![NO_ACTION; n_peers],
            peer_observations: vec![0.0; n_seen],
            last_move: None,
            n_moves: 0,
            boundary: Boundary::WithinEpisode,
            current: EpisodeOutcome::NEW,
            outcomes: Vec::new(),
            encounter,
            ego,
        };
        session.decide()?;
        Ok(session)
    }

    /// Makes one move with the actions of `people`, or starts the next episode after the end of one. An ego whose output is not
    /// a distribution over actions is an error, at this call and at every later one.
    pub fn advance(&mut self, people: &JointAction) -> Result<Progress, ConfigError> {
        match self.boundary {
            Boundary::WithinEpisode => {}
            Boundary::EpisodeEnd => {
                self.encounter.next_episode();
                self.boundary = Boundary::WithinEpisode;
                (self.step, self.last_move, self.n_moves) = (None, None, 0);
                self.current = EpisodeOutcome::NEW;
                self.decide()?;
                return Ok(Progress::Moved);
            }
            Boundary::EncounterEnd => return Ok(Progress::Over),
        }
        self.decide()?;
        let asked = self.encounter.seats_to_ask().without(Seat::EGO);
        let missing = asked.iter().filter(|seat| people[seat.0] == NO_ACTION);
        let missing = missing.fold(SeatSet::NONE, SeatSet::with);
        if !missing.is_empty() {
            return Ok(Progress::Asked(missing));
        }
        let mut chosen = *people;
        let mut peers =
            PeerStepBuffers { observations: &mut self.peer_observations, actions: &mut self.peer_actions };
        if let Some(action) = self.choice.take() {
            // Not earlier: until the move is made, a moment shows the ego's beliefs at the decision.
            self.ego.record_action(&self.observation, action);
            chosen[Seat::EGO.0] = action;
            peers.clear();
            self.step = Some((action, EgoStep::NEW));
            self.is_feedback_due = true;
            self.current.n_steps += 1;
        }
        let played = self.encounter.play(&chosen, &mut peers);
        self.n_moves += 1;
        self.last_move = Some(played);
        self.boundary = played.boundary;
        if let Some((_, step)) = &mut self.step {
            step.add(&played);
        }
        self.current.task_return += played.outcome.task_reward;
        self.current.keypoint_visited |= played.outcome.keypoint_visited;
        match played.outcome.ending {
            Some(ending) => self.end_episode(ending),
            None => self.decide()?,
        }
        Ok(Progress::Moved)
    }

    /// Advances to the ego's next decision, the end of its episode, or the start of the next episode. Returns `false` if the
    /// encounter is over.
    ///
    /// # Panics
    /// If the encounter has people in seats of peers.
    pub fn step(&mut self) -> Result<bool, ConfigError> {
        loop {
            match self.advance(&NO_ACTIONS)? {
                Progress::Moved if self.moment().concerns_ego() => return Ok(true),
                Progress::Moved => {}
                Progress::Asked(seats) => {
                    panic!("`step` needs actions of people for {seats:?}; use `advance`")
                }
                Progress::Over => return Ok(false),
            }
        }
    }

    /// Plays all episodes of an encounter without people.
    pub fn play_out(mut self) -> Result<Vec<EpisodeOutcome>, ConfigError> {
        while self.step()? {}
        Ok(self.outcomes)
    }

    /// Samples the ego's action, if it acts next and has no action yet.
    fn decide(&mut self) -> Result<(), ConfigError> {
        if self.choice.is_some() || !self.encounter.seats_to_ask().contains(Seat::EGO) {
            return Ok(());
        }
        self.give_feedback();
        if !self.points.is_empty() && self.current.expected_return.is_none() {
            self.current.expected_return = Some(self.value_of_episode()?);
        }
        self.observe();
        self.ego.action_probabilities(&self.observation, &mut self.probabilities);
        let action = sample_action(&self.probabilities, &mut self.ego_rng)?;
        self.choice = Some(action);
        Ok(())
    }

    fn end_episode(&mut self, ending: Ending) {
        self.give_feedback();
        self.observe();
        self.ego.end_episode(&self.observation);
        self.current.ending = ending;
        self.outcomes.push(self.current);
    }

    /// Gives the ego the feedback on its last decision.
    fn give_feedback(&mut self) {
        if let (true, Some((_, step))) = (std::mem::take(&mut self.is_feedback_due), &self.step) {
            self.ego.observe_feedback(&StepFeedback {
                peer_actions: &self.peer_actions,
                peer_observations: &self.peer_observations,
                task_reward: step.task_reward as f32,
            });
        }
    }

    fn observe(&mut self) {
        if self.sees_everything {
            self.encounter.observe_everything(Seat::EGO, &mut self.observation);
        } else {
            self.encounter.observe(Seat::EGO, &mut self.observation);
        }
    }

    /// The exact expected return of the episode that starts. Scripted egos of games with a closed form do not change their
    /// strategy within an episode, so the steps before a decision point need not be played.
    fn value_of_episode(&mut self) -> Result<f64, ConfigError> {
        let n_actions = self.probabilities.len();
        let mut answers = vec![0.0; self.points.len() * n_actions];
        for (point, answer) in self.points.iter().zip(answers.chunks_exact_mut(n_actions)) {
            self.ego.action_probabilities(&point.observation, answer);
            check_distribution(answer)?;
        }
        Ok(self.encounter.expected_return(&answers))
    }

    /// The current state of the session.
    pub fn moment(&self) -> Moment<'_> {
        let decision = |action: Action| Decision { action, probabilities: &self.probabilities };
        let record = |(ego_action, outcome): (Action, EgoStep)| StepRecord {
            ego_action,
            peer_actions: &self.peer_actions,
            outcome,
        };
        Moment {
            encounter: &*self.encounter,
            ego: &*self.ego,
            episode: self.encounter.episode(),
            n_moves: self.n_moves,
            n_steps: self.current.n_steps,
            observation: &self.observation,
            decision: self.choice.map(decision),
            last_move: self.last_move.as_ref(),
            step: self.step.map(record),
            ending: self.last_move.and_then(|played| played.outcome.ending),
            task_return: self.current.task_return,
        }
    }

    /// The encounter.
    pub fn encounter(&self) -> &dyn AnyEncounter {
        &*self.encounter
    }

    /// Whether the last episode has ended.
    pub fn is_over(&self) -> bool {
        self.boundary == Boundary::EncounterEnd
    }

    /// The finished episodes.
    pub fn outcomes(&self) -> &[EpisodeOutcome] {
        &self.outcomes
    }
}
