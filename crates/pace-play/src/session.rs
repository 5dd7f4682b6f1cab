//! One encounter between an agent and a person who has taken a peer's seat, as a value that is asked and answered.
//!
//! It reads no clock and knows no network: the same booking and the same actions give the same frames, which is how an
//! encounter comes back after a crash and how it is played again for a replay.

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

/// Everything that an encounter follows from, but for what the person does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionConfig {
    /// The agent's id.
    pub offer: String,
    /// The peer whose seat the person takes.
    pub slot: usize,
    /// The tuple of the test pool whose other peers sit at the table, and whose part the person may be asked to play.
    pub tuple: usize,
    /// How many episodes.
    pub n_episodes: usize,
    /// All chance; below 2⁵³, so that every program can hold it.
    pub seed: u64,
}

/// Seeds are below this.
pub const SEED_LIMIT: u64 = 1 << 53;

impl SessionConfig {
    /// Refuses what cannot be played.
    pub fn check(&self, offer: &PlayableAgent) -> Result<(), PlayError> {
        let spec = offer.game.spec();
        if self.slot >= spec.n_peers() {
            return Err(PlayError::NoSuchSeat { found: self.slot, n_peers: spec.n_peers() });
        }
        let most = spec.episodes_per_encounter;
        if !(1..=most).contains(&self.n_episodes) {
            return Err(PlayError::BadEpisodes { found: self.n_episodes, most });
        }
        Ok(())
    }

    /// The person's seat.
    pub fn seat(&self) -> Seat {
        Seat::of_peer(self.slot)
    }
}

/// Whether frames hold what the person saw, or everything there was to see beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// For the person while they play.
    Seen,
    /// For looking back.
    Everything,
}

/// One moment of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionFrame {
    /// The episode, from 0.
    pub episode: usize,
    /// Moves so far in this episode.
    pub n_moves: usize,
    /// The state as the person sees it.
    pub scene: Value,
    /// The state as nobody sees it; in replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub everything: Option<Value>,
    /// What everybody did in the move that led here; in replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<Option<Action>>>,
    /// Whether the person must choose now.
    pub is_asked: bool,
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
    /// What the episode brought the agent, when it is over; in replays, what it brought so far.
    pub task_return: Option<f64>,
    /// What the agent thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mind: Option<BeliefFrame>,
}

/// What one action of the person led to, for those who keep records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MoveRecord {
    /// The episode, from 0.
    pub episode: usize,
    /// What everybody did, by seat; nothing where a seat was not asked.
    pub actions: Vec<Option<Action>>,
    /// The agent's task reward.
    pub task_reward: f64,
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
}

/// What the person's last action led to.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionResult {
    /// The moments since, the last of which is now.
    pub frames: Vec<SessionFrame>,
    /// The moves since.
    pub moves: Vec<MoveRecord>,
}

/// An encounter in play: the agent's session, with a person in one of the peers' seats.
pub struct Session {
    offer: Arc<PlayableAgent>,
    booking: SessionConfig,
    detail: Detail,
    session: AgentSession,
    mind: Option<BeliefFrame>,
    recognition: IdentificationTracker,
    actions: Vec<Action>,
    /// Moves of the finished episodes.
    moves_of_episodes: Vec<usize>,
    last_frame: Option<SessionFrame>,
}

impl Session {
    /// The person sits down. The frames lead to the first moment at which they must choose.
    pub fn begin(
        offer: &Arc<PlayableAgent>,
        booking: SessionConfig,
        detail: Detail,
    ) -> Result<(Session, Vec<SessionFrame>), PlayError> {
        booking.check(offer)?;
        let SessionConfig { tuple, n_episodes, seed, .. } = booking;
        let mut session = Session {
            session: offer.session(tuple, &[booking.seat()], n_episodes, Seed::new(seed))?,
            mind: None,
            recognition: IdentificationTracker::default(),
            actions: Vec::new(),
            moves_of_episodes: Vec::with_capacity(n_episodes),
            last_frame: None,
            offer: Arc::clone(offer),
            booking,
            detail,
        };
        let mut answer = ActionResult { frames: Vec::new(), moves: Vec::new() };
        session.look(&mut answer);
        session.go_on(NO_ACTION, &mut answer)?;
        session.last_frame = answer.frames.last().cloned();
        Ok((session, answer.frames))
    }

    /// The encounter as it was after these actions.
    pub fn resume(
        offer: &Arc<PlayableAgent>,
        booking: SessionConfig,
        actions: &[Action],
    ) -> Result<Session, PlayError> {
        let (mut session, _) = Session::begin(offer, booking, Detail::Seen)?;
        for (index, action) in actions.iter().enumerate() {
            session.act(index, *action)?;
        }
        Ok(session)
    }

    /// The person acts. `index` counts the person's actions in this encounter, so that an action that arrives twice or at the
    /// wrong time is told from the one that is due.
    pub fn act(&mut self, index: usize, action: Action) -> Result<ActionResult, PlayError> {
        if index != self.actions.len() {
            return Err(PlayError::OutOfTurn { found: index, expected: self.actions.len() });
        }
        if self.is_over() {
            return Err(PlayError::EncounterOver);
        }
        let n_actions = self.offer.game.spec().n_actions();
        if usize::from(action) >= n_actions {
            return Err(PlayError::NoSuchAction { found: action.into(), n_actions });
        }
        if let Some(reason) = self.session.encounter().forbidden_reason(self.booking.seat(), action) {
            return Err(PlayError::Forbidden { reason });
        }
        // An agent that could not choose after the last action cannot now, and the person's action does not count.
        self.session.advance(&NO_ACTIONS)?;
        self.actions.push(action);
        let mut answer = ActionResult { frames: Vec::new(), moves: Vec::new() };
        self.go_on(action, &mut answer)?;
        self.last_frame = answer.frames.last().cloned();
        Ok(answer)
    }

    /// Moves until the person must choose again, or the encounter is over. `action` is the person's for the first of the moves
    /// that asks for one.
    fn go_on(&mut self, action: Action, answer: &mut ActionResult) -> Result<(), PlayError> {
        let mut people = NO_ACTIONS;
        people[self.booking.seat().0] = action;
        while self.session.advance(&people)? == Progress::Moved {
            self.look(answer);
            people = NO_ACTIONS;
        }
        Ok(())
    }

    /// Adds what there is to see and to write down at this moment.
    fn look(&mut self, answer: &mut ActionResult) {
        let moment = self.session.moment();
        if moment.concerns_ego() {
            let mind = BeliefFrame::of(&self.offer, &moment);
            if let Some(kinds) = mind.slots.get(self.booking.slot) {
                self.recognition.consider(kinds, (moment.episode, moment.n_moves));
            }
            self.mind = Some(mind);
        }
        let n_seats = self.offer.game.spec().n_seats();
        let shown = |action: &Action| Some(*action).filter(|action| *action != NO_ACTION);
        let actions: Option<Vec<Option<Action>>> =
            moment.last_move.map(|played| played.actions[..n_seats].iter().map(shown).collect());
        if let Some((played, actions)) = moment.last_move.zip(actions.clone()) {
            answer.moves.push(MoveRecord {
                episode: moment.episode,
                actions,
                task_reward: played.outcome.task_reward,
                ending: moment.ending,
            });
        }
        if moment.ending.is_some() {
            self.moves_of_episodes.push(moment.n_moves);
        }
        let looks_back = self.detail == Detail::Everything;
        let encounter = moment.encounter;
        answer.frames.push(SessionFrame {
            episode: moment.episode,
            n_moves: moment.n_moves,
            scene: encounter.view(Viewpoint::Seat(self.booking.seat())),
            everything: looks_back.then(|| encounter.view(Viewpoint::Omniscient)),
            actions: actions.filter(|_| looks_back),
            is_asked: encounter.seats_to_ask().contains(self.booking.seat()),
            ending: moment.ending,
            task_return: (looks_back || moment.ending.is_some()).then_some(moment.task_return),
            mind: self.mind.clone(),
        });
    }

    /// What was booked.
    pub fn booking(&self) -> &SessionConfig {
        &self.booking
    }

    /// The agent.
    pub fn offer(&self) -> &Arc<PlayableAgent> {
        &self.offer
    }

    /// What the person did so far.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Whether the last episode has ended.
    pub fn is_over(&self) -> bool {
        self.session.is_over()
    }

    /// Now.
    pub fn last_frame(&self) -> &SessionFrame {
        self.last_frame.as_ref().expect("an encounter begins with a frame")
    }

    /// The finished episodes.
    pub fn outcomes(&self) -> &[EpisodeOutcome] {
        self.session.outcomes()
    }

    /// The tuple whose oracle score [`Session::summary`] would have to compute first, which takes whole encounters. A caller
    /// that shares the session computes it beforehand ([`PlayableAgent::oracle_score`]).
    pub fn missing_oracle_score(&self) -> Option<usize> {
        let tuple = self.booking.tuple;
        let is_known =
            self.session.encounter().behaviour_summary(self.booking.seat()).best_response_return.is_some()
                || self.offer.known_oracle_score(tuple).is_some()
                || !self.offer.has_oracle();
        (!is_known).then_some(tuple)
    }

    /// What came of the encounter so far.
    pub fn summary(&self) -> Result<Summary, PlayError> {
        let spec = self.offer.game.spec();
        let portrait = self.session.encounter().behaviour_summary(self.booking.seat());
        let scores: Vec<f64> = self.outcomes().iter().map(|outcome| outcome.score(spec.metric)).collect();
        let oracle = match portrait.best_response_return {
            Some(best_response_return) => Some(best_response_return),
            None if self.offer.has_oracle() => Some(self.offer.oracle_score(self.booking.tuple)?),
            None => None,
        };
        let part = self.part_kind();
        let recognition = self.recognition.best().map(|(kind, probability, since)| {
            let BeliefKind { name, data, .. } = &self.offer.slots[self.booking.slot].kinds[kind];
            // A kind that the agent does not know cannot be recognised.
            let is_known = part.as_ref().filter(|part| self.knows(part));
            RecognitionSummary {
                kind: name.clone(),
                data: data.clone(),
                probability,
                is_right: is_known.map(|part| part == name),
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
            recognition,
            portrait,
        })
    }

    /// The kind of peer whose part the person was given, in words.
    fn part_kind(&self) -> Option<String> {
        self.offer.part(self.booking.tuple, self.booking.slot).map(|part| part.kind)
    }

    fn knows(&self, kind: &str) -> bool {
        self.offer.slots[self.booking.slot].kinds.iter().any(|known| known.name == kind)
    }
}

/// What came of an encounter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Episode by episode.
    pub episodes: Vec<EpisodeSummary>,
    /// The mean of their scores.
    pub mean_score: Option<f64>,
    /// What an ego that knew the person would score: in closed form for how they played, or else as measured with a scripted
    /// peer that plays the person's part. Absent in a game without an oracle.
    pub oracle: Option<f64>,
    /// What the agent took the person for in the end.
    pub recognition: Option<RecognitionSummary>,
    /// How the person played.
    pub portrait: BehaviourSummary,
}

/// What came of an episode.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EpisodeSummary {
    /// The agent's task rewards.
    pub task_return: f64,
    /// The number by which the game judges an episode.
    pub score: f64,
    /// How it ended.
    pub ending: Ending,
    /// Moves.
    pub n_moves: usize,
}

/// What the agent took the person for, and since when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecognitionSummary {
    /// In words.
    pub kind: String,
    /// The same as plain data; see `PeerSpec::kind_data`.
    pub data: Value,
    /// How sure it was.
    pub probability: f32,
    /// Whether that is the part that the person was given, where the agent could know it.
    pub is_right: Option<bool>,
    /// The episode from which on it has been of that opinion, from 0.
    pub since_episode: usize,
    /// The moves of that episode before.
    pub since_moves: usize,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use pace_games::{Action, AnyGame, GAMES, GameEntry, NO_ACTION, Preset, ScriptedEncounter, Seed, Split};
    use pace_learn::{TrainConfig, Trainer, find_method, resolve};
    use serde_json::{Map, Value};

    use super::{Detail, Session, SessionConfig, SessionFrame};
    use crate::catalog::{AgentCatalog, LoadedAgent, OfferKind, PlayableAgent};
    use crate::error::PlayError;

    pub(crate) fn booking(offer: &PlayableAgent, seed: u64) -> SessionConfig {
        let spec = offer.game.spec();
        let n_episodes = spec.episodes_per_encounter.min(6);
        let slot = seed as usize % spec.n_peers();
        SessionConfig { offer: offer.id.clone(), slot, tuple: 1, n_episodes, seed }
    }

    /// Plays to the end, with a person who does anything that is allowed.
    pub(crate) fn play_out(session: &mut Session, seed: u64) {
        let n_actions = session.offer().game.spec().n_actions() as u32;
        let mut rng = Seed::new(seed).stream("person");
        while !session.is_over() {
            let action = rng.below(n_actions) as Action;
            match session.act(session.actions().len(), action) {
                Ok(answer) => assert!(!answer.frames.is_empty() && !answer.moves.is_empty()),
                Err(PlayError::Forbidden { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn every_agent_plays_an_encounter_with_a_person_and_it_comes_back_from_its_actions() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        for (index, offer) in offers.all().iter().enumerate() {
            let booking = booking(offer, index as u64);
            let (mut session, frames) =
                Session::begin(offer, booking.clone(), Detail::Seen).expect("a session");
            assert!(frames.last().is_some_and(|frame| frame.is_asked), "{}", offer.id);
            play_out(&mut session, 5);
            assert_eq!(session.outcomes().len(), booking.n_episodes);
            let again = Session::resume(offer, booking.clone(), session.actions()).expect("the same again");
            assert_eq!(again.last_frame(), session.last_frame());
            assert_eq!(again.summary().expect("a summary"), session.summary().expect("a summary"));
            // In the middle, too.
            let half = &session.actions()[..session.actions().len() / 2];
            let mut other = Session::resume(offer, booking, half).expect("half of it");
            for (index, action) in session.actions().iter().enumerate().skip(half.len()) {
                other.act(index, *action).expect("it was allowed before");
            }
            assert_eq!(other.last_frame(), session.last_frame());
        }
    }

    #[test]
    fn actions_out_of_turn_are_refused_and_change_nothing() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        let offer: &Arc<PlayableAgent> = offers.find("kuhn-poker.bayes").expect("it is there");
        let (mut session, _) = Session::begin(offer, booking(offer, 2), Detail::Seen).expect("a session");
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
    fn what_cannot_be_booked_is_refused() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        let offer = offers.find("overcooked.bayes").expect("it is there");
        let good = booking(offer, 0);
        let begin =
            |booking: SessionConfig| Session::begin(offer, booking, Detail::Seen).err().expect("a refusal");
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
        assert!(matches!(offers.find("../secret"), Err(PlayError::NoSuchOffer { .. })));
    }

    #[test]
    fn the_part_reaches_the_agent_by_what_the_person_does_alone() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        for id in ["kuhn-poker.bayes", "overcooked.bayes"] {
            let offer = offers.find(id).expect("it is there");
            let frames = |tuple: usize| {
                let booking = SessionConfig { tuple, ..booking(offer, 5) };
                let (mut session, mut frames) =
                    Session::begin(offer, booking, Detail::Seen).expect("a session");
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
    fn a_person_is_not_shown_what_the_game_hides_while_they_play() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        let offer = offers.find("kuhn-poker.random").expect("it is there");
        let (mut session, frames) =
            Session::begin(offer, booking(offer, 3), Detail::Seen).expect("a session");
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

    /// An agent with first weights.
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
    fn trained_agent_chooses_as_in_an_encounter() {
        for (entry, method) in GAMES.iter().flat_map(|entry| ["pace", "lili", "gscu"].map(|id| (entry, id))) {
            let offer = trained(method, entry);
            let OfferKind::Trained(agent) = &offer.kind else { panic!("it was trained") };
            let (slot, seed) = (offer.game.spec().n_peers() - 1, 11);
            let booking = SessionConfig { offer: offer.id.clone(), slot, tuple: 1, n_episodes: 3, seed };
            let mut alone =
                agent.session(&*offer.game, Split::Test, 1, &[], 3, Seed::new(seed)).expect("a tuple");
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
            // The person does what the scripted peer did.
            let (mut session, mut frames) =
                Session::begin(&offer, booking, Detail::Everything).expect("a session");
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
    fn scripted_ego_samples_as_when_it_is_measured() {
        // The first number of this seed lies between two actions in single precision, and not in double precision.
        let seed = 9_776_335;
        let offers = AgentCatalog::scripted().expect("scripted egos");
        let offer = offers.find("overcooked.random").expect("it is there");
        let encounter = ScriptedEncounter {
            reference: "random",
            split: Split::Test,
            tuple: 0,
            n_episodes: 1,
            seed: Seed::new(seed),
        };
        let measured = offer.game.reference_session(&encounter).expect("a tuple");
        let measured = measured.moment().decision.map(|decision| decision.action);
        let booking = SessionConfig { offer: offer.id.clone(), slot: 0, tuple: 0, n_episodes: 1, seed };
        let (mut session, _) = Session::begin(offer, booking, Detail::Everything).expect("a session");
        let frames = session.act(0, 0).expect("staying is allowed").frames;
        assert_eq!((ego_actions(&frames).next(), measured), (Some(3), Some(3)));
    }
}
