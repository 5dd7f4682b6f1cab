//! A session: one encounter of an agent with a person in the seat of a peer.
//!
//! A session uses no clock and no network. Equal configuration and actions give equal frames, so a session is restored after a
//! crash, and replayed from a link, by playing its actions again.

use std::sync::Arc;

use pace_games::{
    Action, AgentSession, BehaviourSummary, Ending, EpisodeOutcome, NO_ACTION, NO_ACTIONS, Progress, Seat,
    Seed, Viewpoint,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::beliefs::{BeliefFrame, BeliefKind, IdentificationTracker};
use crate::catalog::PlayableAgent;
use crate::error::PlayError;

/// The settings of a session. Together with the person's actions they determine the whole encounter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionConfig {
    /// The agent's id.
    #[serde(rename = "offer")]
    pub agent: String,
    /// Slot of the peer whose seat the person takes.
    pub slot: usize,
    /// Index of the tuple of the test pool. Its other peers play; the behaviour of the peer in the person's slot may be assigned to
    /// the person.
    pub tuple: usize,
    /// Number of episodes.
    pub n_episodes: usize,
    /// Random seed, below 2⁵³.
    pub seed: u64,
}

/// Upper limit of seeds: 2⁵³, so that every program that reads JSON can hold them.
pub(crate) const SEED_LIMIT: u64 = 1 << 53;

impl SessionConfig {
    /// Checks the slot and the number of episodes against the agent's game.
    pub(crate) fn check(&self, agent: &PlayableAgent) -> Result<(), PlayError> {
        let spec = agent.game.spec();
        if self.slot >= spec.n_peers() {
            return Err(PlayError::NoSuchSeat { found: self.slot, n_peers: spec.n_peers() });
        }
        let max = spec.episodes_per_encounter;
        if !(1..=max).contains(&self.n_episodes) {
            return Err(PlayError::BadEpisodes { found: self.n_episodes, max });
        }
        Ok(())
    }

    /// The person's seat.
    pub(crate) fn seat(&self) -> Seat {
        Seat::of_peer(self.slot)
    }
}

/// The part of the state that frames contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The person's view, for playing.
    Seen,
    /// Also the full state and all actions, for replays.
    Everything,
}

/// The state after one move of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionFrame {
    /// The episode, from 0.
    pub episode: usize,
    /// Number of moves so far in this episode.
    pub n_moves: usize,
    /// The state as the person sees it.
    pub scene: Value,
    /// The full state; in replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub everything: Option<Value>,
    /// The actions of the last move by seat, `None` for a seat that had none; in replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Option<Action>>>,
    /// Whether the person must choose now.
    pub is_asked: bool,
    /// Ending of the episode. `None` while it lasts.
    pub ending: Option<Ending>,
    /// The agent's task return, at the end of the episode; in replays, at every move.
    pub task_return: Option<f64>,
    /// The agent's beliefs.
    #[serde(rename = "mind", skip_serializing_if = "Option::is_none")]
    pub beliefs: Option<BeliefFrame>,
}

/// One move, as the data of a study stores it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveRecord {
    /// The episode, from 0.
    pub episode: usize,
    /// The actions by seat, `None` for a seat that had none.
    pub actions: Vec<Option<Action>>,
    /// The agent's task reward.
    pub task_reward: f64,
    /// Ending of the episode. `None` while it lasts.
    pub ending: Option<Ending>,
}

/// The moves that follow an action of the person, up to their next decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActionResult {
    /// A frame for every new state; the last one is the present state.
    pub frames: Vec<SessionFrame>,
    /// The moves.
    pub moves: Vec<MoveRecord>,
}

/// An encounter of an agent with a person in the seat of one peer.
pub struct Session {
    agent: Arc<PlayableAgent>,
    config: SessionConfig,
    detail: Detail,
    session: AgentSession,
    beliefs: Option<BeliefFrame>,
    identification: IdentificationTracker,
    actions: Vec<Action>,
    /// Number of moves of each finished episode.
    moves_of_episodes: Vec<usize>,
    last_frame: Option<SessionFrame>,
}

impl Session {
    /// Starts a session. The returned frames lead to the person's first decision.
    pub fn begin(
        agent: &Arc<PlayableAgent>,
        config: SessionConfig,
        detail: Detail,
    ) -> Result<(Session, Vec<SessionFrame>), PlayError> {
        config.check(agent)?;
        let SessionConfig { tuple, n_episodes, seed, .. } = config;
        let mut session = Session {
            session: agent.session(tuple, &[config.seat()], n_episodes, Seed::new(seed))?,
            beliefs: None,
            identification: IdentificationTracker::default(),
            actions: Vec::new(),
            moves_of_episodes: Vec::with_capacity(n_episodes),
            last_frame: None,
            agent: Arc::clone(agent),
            config,
            detail,
        };
        let mut result = ActionResult::default();
        session.record_moment(&mut result);
        session.play_until_asked(NO_ACTION, &mut result)?;
        session.last_frame = result.frames.last().cloned();
        Ok((session, result.frames))
    }

    /// Restores a session by playing these actions again.
    pub fn resume(
        agent: &Arc<PlayableAgent>,
        config: SessionConfig,
        actions: &[Action],
    ) -> Result<Session, PlayError> {
        let (mut session, _) = Session::begin(agent, config, Detail::Seen)?;
        for (index, action) in actions.iter().enumerate() {
            session.act(index, *action)?;
        }
        Ok(session)
    }

    /// Plays an action of the person. `index` is the number of their earlier actions: an action that arrives twice or late is
    /// refused.
    pub fn act(&mut self, index: usize, action: Action) -> Result<ActionResult, PlayError> {
        if index != self.actions.len() {
            return Err(PlayError::OutOfTurn { found: index, expected: self.actions.len() });
        }
        if self.is_over() {
            return Err(PlayError::EncounterOver);
        }
        let n_actions = self.agent.game.spec().n_actions();
        if usize::from(action) >= n_actions {
            return Err(PlayError::NoSuchAction { found: action.into(), n_actions });
        }
        if let Some(reason) = self.session.encounter().forbidden_reason(self.config.seat(), action) {
            return Err(PlayError::Forbidden { reason });
        }
        // If the agent failed to decide after the last action, it fails again here, before the new action counts.
        self.session.advance(&NO_ACTIONS)?;
        self.actions.push(action);
        let mut result = ActionResult::default();
        self.play_until_asked(action, &mut result)?;
        self.last_frame = result.frames.last().cloned();
        Ok(result)
    }

    /// Plays moves until the person's next decision or the end of the encounter. `action` is the person's action for the first
    /// move that asks for one.
    fn play_until_asked(&mut self, action: Action, result: &mut ActionResult) -> Result<(), PlayError> {
        let mut people = NO_ACTIONS;
        people[self.config.seat().0] = action;
        while self.session.advance(&people)? == Progress::Moved {
            self.record_moment(result);
            people = NO_ACTIONS;
        }
        Ok(())
    }

    /// Adds the frame of this moment, and the move before it, to the result.
    fn record_moment(&mut self, result: &mut ActionResult) {
        let moment = self.session.moment();
        if moment.concerns_ego() {
            let beliefs = BeliefFrame::of(&self.agent, &moment);
            if let Some(kinds) = beliefs.slots.get(self.config.slot) {
                self.identification.update(kinds, (moment.episode, moment.n_moves));
            }
            self.beliefs = Some(beliefs);
        }
        let n_seats = self.agent.game.spec().n_seats();
        let shown = |action: &Action| Some(*action).filter(|action| *action != NO_ACTION);
        let actions: Option<Vec<Option<Action>>> =
            moment.last_move.map(|played| played.actions[..n_seats].iter().map(shown).collect());
        if let Some((played, actions)) = moment.last_move.zip(actions.clone()) {
            result.moves.push(MoveRecord {
                episode: moment.episode,
                actions,
                task_reward: played.outcome.task_reward,
                ending: moment.ending,
            });
        }
        if moment.ending.is_some() {
            self.moves_of_episodes.push(moment.n_moves);
        }
        let has_everything = self.detail == Detail::Everything;
        let encounter = moment.encounter;
        result.frames.push(SessionFrame {
            episode: moment.episode,
            n_moves: moment.n_moves,
            scene: encounter.view(Viewpoint::Seat(self.config.seat())),
            everything: has_everything.then(|| encounter.view(Viewpoint::Omniscient)),
            actions: actions.filter(|_| has_everything),
            is_asked: encounter.seats_to_ask().contains(self.config.seat()),
            ending: moment.ending,
            task_return: (has_everything || moment.ending.is_some()).then_some(moment.task_return),
            beliefs: self.beliefs.clone(),
        });
    }

    /// The settings.
    pub fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// The agent.
    pub fn agent(&self) -> &Arc<PlayableAgent> {
        &self.agent
    }

    /// The person's actions so far.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Whether the last episode has ended.
    pub fn is_over(&self) -> bool {
        self.session.is_over()
    }

    /// The frame of the present state.
    pub fn last_frame(&self) -> &SessionFrame {
        self.last_frame.as_ref().expect("an encounter begins with a frame")
    }

    /// Outcomes of the finished episodes.
    pub fn outcomes(&self) -> &[EpisodeOutcome] {
        self.session.outcomes()
    }

    /// The tuple whose oracle score is still unknown. [`Session::summary`] would have to play whole encounters to compute it, so a
    /// caller that shares the session calls [`PlayableAgent::oracle_score`] first.
    pub fn missing_oracle_score(&self) -> Option<usize> {
        let tuple = self.config.tuple;
        let is_known =
            self.session.encounter().behaviour_summary(self.config.seat()).best_response_return.is_some()
                || self.agent.known_oracle_score(tuple).is_some()
                || !self.agent.has_oracle();
        (!is_known).then_some(tuple)
    }

    /// Scores, identification and behaviour of the encounter so far.
    pub fn summary(&self) -> Result<Summary, PlayError> {
        let spec = self.agent.game.spec();
        let behaviour = self.session.encounter().behaviour_summary(self.config.seat());
        let scores: Vec<f64> = self.outcomes().iter().map(|outcome| outcome.score(spec.metric)).collect();
        let oracle = match behaviour.best_response_return {
            Some(best_response_return) => Some(best_response_return),
            None if self.agent.has_oracle() => Some(self.agent.oracle_score(self.config.tuple)?),
            None => None,
        };
        let assigned = self.agent.assigned_role(self.config.tuple, self.config.slot).map(|role| role.kind);
        let identification = self.identification.best().map(|(kind, probability, since)| {
            let kinds = &self.agent.slots[self.config.slot].kinds;
            let BeliefKind { name, data, .. } = &kinds[kind];
            // A kind that the agent does not know cannot be identified.
            let known = assigned.as_ref().filter(|assigned| kinds.iter().any(|kind| kind.name == **assigned));
            IdentificationSummary {
                kind: name.clone(),
                data: data.clone(),
                probability,
                is_right: known.map(|assigned| assigned == name),
                since_episode: since.0,
                since_moves: since.1,
            }
        });
        Ok(Summary {
            episodes: self
                .outcomes()
                .iter()
                .zip(&self.moves_of_episodes)
                .map(|(outcome, n_moves)| EpisodeSummary {
                    task_return: outcome.task_return,
                    score: outcome.score(spec.metric),
                    ending: outcome.ending,
                    n_moves: *n_moves,
                })
                .collect(),
            mean_score: (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64),
            oracle,
            identification,
            behaviour,
        })
    }
}

/// Results of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Results by episode.
    pub episodes: Vec<EpisodeSummary>,
    /// Mean score of the episodes.
    pub mean_score: Option<f64>,
    /// The oracle's score: in closed form for the person's behaviour where the game has one, otherwise measured with the scripted
    /// peer of the person's slot. `None` in a game without an oracle.
    pub oracle: Option<f64>,
    /// The agent's last belief about the person. `None` without a clearly most likely kind.
    #[serde(rename = "recognition")]
    pub identification: Option<IdentificationSummary>,
    /// Statistics of the person's actions.
    #[serde(rename = "portrait")]
    pub behaviour: BehaviourSummary,
}

/// Results of an episode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EpisodeSummary {
    /// The agent's task return.
    pub task_return: f64,
    /// The score of the episode by the game's metric.
    pub score: f64,
    /// Ending of the episode.
    pub ending: Ending,
    /// Number of moves.
    pub n_moves: usize,
}

/// The most likely kind of the person, in the agent's belief at the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdentificationSummary {
    /// Name of the kind.
    pub kind: String,
    /// The kind as data; see `PeerSpec::kind_data`.
    pub data: Value,
    /// Probability of the kind at the end.
    pub probability: f32,
    /// Whether this kind was assigned to the person. `None` if the agent does not know the assigned kind.
    pub is_right: Option<bool>,
    /// Episode since when this kind has been the most likely, from 0.
    pub since_episode: usize,
    /// Number of moves of that episode before.
    pub since_moves: usize,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use pace_games::{Action, AnyGame, GAMES, GameEntry, NO_ACTION, Preset, ScriptedEncounter, Seed, Split};
    use pace_learn::{TrainConfig, Trainer, find_method, resolve};
    use serde_json::{Map, Value};

    use super::{Detail, Session, SessionConfig, SessionFrame};
    use crate::catalog::{AgentCatalog, AgentKind, LoadedAgent, PlayableAgent};
    use crate::error::PlayError;

    pub(crate) fn session_config(agent: &PlayableAgent, seed: u64) -> SessionConfig {
        let spec = agent.game.spec();
        let n_episodes = spec.episodes_per_encounter.min(6);
        let slot = seed as usize % spec.n_peers();
        SessionConfig { agent: agent.id.clone(), slot, tuple: 1, n_episodes, seed }
    }

    /// Plays to the end with random allowed actions.
    pub(crate) fn play_out(session: &mut Session, seed: u64) {
        let n_actions = session.agent().game.spec().n_actions() as u32;
        let mut rng = Seed::new(seed).stream("person");
        while !session.is_over() {
            let action = rng.below(n_actions) as Action;
            match session.act(session.actions().len(), action) {
                Ok(result) => assert!(!result.frames.is_empty() && !result.moves.is_empty()),
                Err(PlayError::Forbidden { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn sessions_of_all_agents_are_restored_from_their_actions() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        for (index, agent) in catalog.all().iter().enumerate() {
            let config = session_config(agent, index as u64);
            let (mut session, frames) =
                Session::begin(agent, config.clone(), Detail::Seen).expect("a session");
            assert!(frames.last().is_some_and(|frame| frame.is_asked), "{}", agent.id);
            play_out(&mut session, 5);
            assert_eq!(session.outcomes().len(), config.n_episodes);
            let again = Session::resume(agent, config.clone(), session.actions()).expect("the same again");
            assert_eq!(again.last_frame(), session.last_frame());
            assert_eq!(again.summary().expect("a summary"), session.summary().expect("a summary"));
            // Also from the middle.
            let half = &session.actions()[..session.actions().len() / 2];
            let mut other = Session::resume(agent, config, half).expect("half of it");
            for (index, action) in session.actions().iter().enumerate().skip(half.len()) {
                other.act(index, *action).expect("it was allowed before");
            }
            assert_eq!(other.last_frame(), session.last_frame());
        }
    }

    #[test]
    fn unexpected_actions_are_refused_without_effect() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let agent: &Arc<PlayableAgent> = catalog.find("kuhn-poker.bayes").expect("a scripted ego");
        let (mut session, _) =
            Session::begin(agent, session_config(agent, 2), Detail::Seen).expect("a session");
        let before = session.last_frame().clone();
        assert!(matches!(session.act(1, 0), Err(PlayError::OutOfTurn { found: 1, expected: 0 })));
        assert!(matches!(session.act(0, 9), Err(PlayError::NoSuchAction { .. })));
        assert_eq!(session.last_frame(), &before);
        session.act(0, 1).expect("now it is due");
        assert!(matches!(session.act(0, 1), Err(PlayError::OutOfTurn { found: 0, expected: 1 })));
        play_out(&mut session, 1);
        assert!(matches!(session.act(session.actions().len(), 0), Err(PlayError::EncounterOver)));
    }

    #[test]
    fn invalid_session_configs_are_refused() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let agent = catalog.find("overcooked.bayes").expect("a scripted ego");
        let good = session_config(agent, 0);
        let begin =
            |config: SessionConfig| Session::begin(agent, config, Detail::Seen).err().expect("a refusal");
        assert!(matches!(begin(SessionConfig { slot: 1, ..good.clone() }), PlayError::NoSuchSeat { .. }));
        assert!(matches!(
            begin(SessionConfig { n_episodes: 6, ..good.clone() }),
            PlayError::BadEpisodes { .. }
        ));
        assert!(matches!(
            begin(SessionConfig { n_episodes: 0, ..good.clone() }),
            PlayError::BadEpisodes { .. }
        ));
        assert!(matches!(begin(SessionConfig { tuple: 900, ..good }), PlayError::Game(_)));
        assert!(matches!(catalog.find("../secret"), Err(PlayError::UnknownAgent { .. })));
    }

    #[test]
    fn assigned_role_does_not_change_the_agent() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        for id in ["kuhn-poker.bayes", "overcooked.bayes"] {
            let agent = catalog.find(id).expect("a scripted ego");
            let frames = |tuple: usize| {
                let config = SessionConfig { tuple, ..session_config(agent, 5) };
                let (mut session, mut frames) =
                    Session::begin(agent, config, Detail::Seen).expect("a session");
                let mut rng = Seed::new(1).stream("person");
                while !session.is_over() {
                    let action = rng.below(2) as Action;
                    frames
                        .extend(session.act(session.actions().len(), action).expect("it is allowed").frames);
                }
                frames
            };
            assert_eq!(frames(0), frames(7), "{id}");
        }
    }

    #[test]
    fn frames_for_playing_hide_the_agents_card() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let agent = catalog.find("kuhn-poker.random").expect("a scripted ego");
        let (mut session, frames) =
            Session::begin(agent, session_config(agent, 3), Detail::Seen).expect("a session");
        let mut all = frames;
        while !session.is_over() {
            all.extend(session.act(session.actions().len(), 1).expect("betting is always allowed").frames);
        }
        for frame in &all {
            assert!(frame.everything.is_none() && frame.actions.is_none());
            let is_open = frame.scene["is_showdown"] == true;
            assert_eq!(frame.scene["ego"]["card"].is_null(), !is_open);
            assert_eq!(frame.task_return.is_some(), frame.ending.is_some());
        }
    }

    /// An untrained agent.
    fn trained(method: &str, entry: &GameEntry) -> Arc<PlayableAgent> {
        let open = || {
            let keys = Map::from_iter([("episodes_per_encounter".to_owned(), Value::from(3))]);
            entry.open(Preset::Paper, &keys).expect("every game has this key")
        };
        let method = find_method(method).expect("a method");
        let (_, preset) = resolve(entry, method, Preset::Paper).expect("good keys");
        let mut config = TrainConfig { encoder_width: 16, hidden_width: 16, ..preset };
        if let Some(keys) = &mut config.gscu {
            (keys.belief_steps, keys.conservative) = (5, "random".to_owned());
        }
        let agent = Trainer::new(method, open(), config, 7, 1).expect("good keys").agent();
        let (id, label, fingerprint) = ("trained".to_owned(), "trained".to_owned(), "1".to_owned());
        let game: Arc<dyn AnyGame> = Arc::from(open());
        Arc::new(PlayableAgent::trained(LoadedAgent {
            id,
            label,
            game,
            agent,
            identifies: false,
            fingerprint,
        }))
    }

    /// The agent's actions.
    fn ego_actions(frames: &[SessionFrame]) -> impl Iterator<Item = Action> + '_ {
        frames.iter().filter_map(|frame| frame.actions.as_ref()?[0])
    }

    #[test]
    fn trained_agent_acts_as_without_a_person() {
        for (entry, method) in GAMES.iter().flat_map(|entry| ["pace", "lili", "gscu"].map(|id| (entry, id))) {
            let agent = trained(method, entry);
            let AgentKind::Trained(policy) = &agent.kind else { panic!("it was trained") };
            let (slot, seed) = (agent.game.spec().n_peers() - 1, 11);
            let config = SessionConfig { agent: agent.id.clone(), slot, tuple: 1, n_episodes: 3, seed };
            let mut alone =
                policy.session(&*agent.game, Split::Test, 1, &[], 3, Seed::new(seed)).expect("a tuple");
            let (mut expected, mut person) = (Vec::new(), Vec::new());
            loop {
                let moment = alone.moment();
                expected.extend(moment.decision.map(|decision| decision.action));
                let of_peer = moment.step.map(|step| step.peer_actions[slot]);
                person.extend(of_peer.filter(|action| *action != NO_ACTION));
                if !alone.step().expect("finite weights") {
                    break;
                }
            }
            // The person repeats the actions of the scripted peer.
            let (mut session, mut frames) =
                Session::begin(&agent, config, Detail::Everything).expect("a session");
            for (index, action) in person.into_iter().enumerate() {
                frames.extend(session.act(index, action).expect("the peer may do it").frames);
            }
            assert!(session.is_over(), "{method} in {}", entry.id);
            assert_eq!(ego_actions(&frames).collect::<Vec<_>>(), expected, "{method} in {}", entry.id);
            assert_eq!(session.outcomes(), alone.outcomes(), "{method} in {}", entry.id);
            let n_decisions: usize = session.outcomes().iter().map(|outcome| outcome.n_steps).sum();
            assert_eq!(n_decisions, expected.len(), "{method} in {}: the ego's decisions", entry.id);
            let summary = session.summary().expect("a summary");
            let n_moves = summary.episodes.iter().map(|episode| episode.n_moves).sum::<usize>();
            assert_eq!(n_moves, frames.iter().filter(|frame| frame.actions.is_some()).count());
        }
    }

    #[test]
    fn scripted_ego_acts_as_in_its_evaluation() {
        // The first random number of this seed falls on the boundary of two actions in single precision, but not in double
        // precision.
        let seed = 9_776_335;
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let agent = catalog.find("overcooked.random").expect("a scripted ego");
        let encounter = ScriptedEncounter {
            reference: "random",
            split: Split::Test,
            tuple: 0,
            n_episodes: 1,
            seed: Seed::new(seed),
        };
        let measured = agent.game.reference_session(&encounter).expect("a tuple");
        let measured = measured.moment().decision.map(|decision| decision.action);
        let config = SessionConfig { agent: agent.id.clone(), slot: 0, tuple: 0, n_episodes: 1, seed };
        let (mut session, _) = Session::begin(agent, config, Detail::Everything).expect("a session");
        let frames = session.act(0, 0).expect("staying is allowed").frames;
        assert_eq!((ego_actions(&frames).next(), measured), (Some(3), Some(3)));
    }
}
