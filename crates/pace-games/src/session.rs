//! One encounter of an ego, move by move, that anybody can look at. The only code that decides when the ego of such an
//! encounter is asked, samples its action, tells it what followed, and ends its episodes.
//!
//! The ego may be trained or scripted, and the seats of peers may be played by people. Encounters that are watched, written
//! down, mapped, measured for a reference agent or played with people are all of them sessions. Many encounters of one
//! trained ego at once are lanes (`arena`), and a lane with the same seed plays the same.

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
    /// The points from whose answers the value of an episode is computed; empty where it is not.
    points: Vec<DecisionPoint>,
    observation: Vec<f32>,
    probabilities: Vec<f32>,
    /// The ego's action for the next move, where it is its turn.
    choice: Option<Action>,
    /// The ego's last decision in this episode that was carried out, and what followed it so far.
    step: Option<(Action, EgoStep)>,
    /// Whether the ego has not been told yet what followed that decision.
    owes_feedback: bool,
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
    /// A move was made, or the next episode was dealt: there is a new [`Moment`].
    Moved,
    /// Nothing happened: the actions of these seats are missing.
    Asked(SeatSet),
    /// Nothing happened: the encounter is over.
    Over,
}

/// One point of an encounter: the start of an episode, or what a move led to.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The encounter, to be rendered, pictured or observed from any seat.
    pub encounter: &'a dyn AnyEncounter,
    ego: &'a dyn Ego,
    /// The episode, from 0.
    pub episode: usize,
    /// Moves so far in this episode.
    pub n_moves: usize,
    /// The ego's decisions so far in this episode, without the one that it makes now.
    pub n_steps: usize,
    /// What the ego sees, if it decides now or the episode has ended; otherwise what it saw last.
    pub observation: &'a [f32],
    /// The decision of the ego, if it is its turn.
    pub decision: Option<Decision<'a>>,
    /// The move that led here; none at the start of an episode.
    pub last_move: Option<&'a EncounterMove>,
    /// The last decision of the ego that was carried out in this episode, and what followed it up to now.
    pub step: Option<StepRecord<'a>>,
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
    /// Sum of the ego's task rewards in this episode.
    pub task_return: f64,
}

/// What the ego is about to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision<'a> {
    /// The action.
    pub action: Action,
    /// The probabilities from which it was sampled.
    pub probabilities: &'a [f32],
}

/// A decision of the ego and what followed it.
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
    /// Whether the ego has something new to think about: it decides, or the episode has ended.
    pub fn concerns_ego(&self) -> bool {
        self.decision.is_some() || self.ending.is_some()
    }

    /// The value, latent and posteriors that the ego inferred last; none for an ego without them.
    pub fn inference(&self) -> Option<&'a Inference> {
        self.ego.inference()
    }

    /// What a scripted ego takes each of its peers for, by slot; see [`Ego::beliefs`].
    pub fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        self.ego.beliefs()
    }
}

impl AgentSession {
    /// Begins an encounter with an ego that is at its beginning. The ego's actions are drawn from the stream `ego` of `seed`.
    /// An ego whose output is not a distribution over actions is refused.
    pub fn begin(
        encounter: Box<dyn AnyEncounter>,
        ego: Box<dyn Ego>,
        seed: Seed,
    ) -> Result<AgentSession, ConfigError> {
        AgentSession::of_reference(encounter, ego, seed, false, Vec::new())
    }

    /// Like [`AgentSession::begin`], for a reference agent: it may see everything, and where the game has decision points each
    /// episode gets its exact value.
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
            owes_feedback: false,
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

    /// Makes one move with the actions of `people`, or deals the next episode after the end of one. An ego whose output is not
    /// a distribution over actions is refused, and again at every later call.
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
            // Only now: until its move is made, a moment shows what the ego knew when it decided.
            self.ego.record_action(&self.observation, action);
            chosen[Seat::EGO.0] = action;
            peers.clear();
            self.step = Some((action, EgoStep::NEW));
            self.owes_feedback = true;
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

    /// Goes on to the ego's next decision, the end of its episode, or the beginning of the next one; false if the encounter is
    /// over. For encounters without people.
    ///
    /// # Panics
    /// If a person must be asked.
    pub fn step(&mut self) -> Result<bool, ConfigError> {
        loop {
            match self.advance(&NO_ACTIONS)? {
                Progress::Moved if self.moment().concerns_ego() => return Ok(true),
                Progress::Moved => {}
                Progress::Asked(seats) => panic!("a session with people goes on by `advance`: {seats:?}"),
                Progress::Over => return Ok(false),
            }
        }
    }

    /// Plays all episodes of an encounter without people to their ends.
    pub fn play_out(mut self) -> Result<Vec<EpisodeOutcome>, ConfigError> {
        while self.step()? {}
        Ok(self.outcomes)
    }

    /// The ego decides, if it is its turn and it has not decided yet.
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

    /// Tells the ego what followed its last decision.
    fn give_feedback(&mut self) {
        if let (true, Some((_, step))) = (std::mem::take(&mut self.owes_feedback), &self.step) {
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

    /// The exact value of the episode that begins. Scripted egos of games with a closed form decide by what they knew when
    /// the episode began, so that the steps that lead to a point need not be played to them.
    fn value_of_episode(&mut self) -> Result<f64, ConfigError> {
        let n_actions = self.probabilities.len();
        let mut answers = vec![0.0; self.points.len() * n_actions];
        for (point, answer) in self.points.iter().zip(answers.chunks_exact_mut(n_actions)) {
            self.ego.action_probabilities(&point.observation, answer);
            check_distribution(answer)?;
        }
        Ok(self.encounter.expected_return(&answers))
    }

    /// Now.
    pub fn moment(&self) -> Moment<'_> {
        let decided = |action: Action| Decision { action, probabilities: &self.probabilities };
        let recorded = |(ego_action, outcome): (Action, EgoStep)| StepRecord {
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
            decision: self.choice.map(decided),
            last_move: self.last_move.as_ref(),
            step: self.step.map(recorded),
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
