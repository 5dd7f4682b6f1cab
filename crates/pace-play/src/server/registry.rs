//! Sessions in memory, by the tokens of their players and spectators.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pace_games::EpisodeOutcome;
use tokio::sync::{Semaphore, broadcast, watch};

use super::RateLimiter;
use crate::catalog::PlayableAgent;
use crate::session::{Session, SessionConfig, SessionFrame};
use crate::wire::{BeliefVisibility, Refusal, RefusalCode, SessionDescription, VERSION, Welcome};

/// A session on the server, with its player and spectators.
pub(crate) struct ServerSession {
    /// Never locked across an await. A panic in a game or an agent poisons the lock; other sessions are not affected.
    session: Mutex<Session>,
    agent: Arc<PlayableAgent>,
    config: SessionConfig,
    /// State after the last action, for spectators, who therefore never wait for an agent.
    spectator_snapshot: Mutex<Snapshot>,
    pub(crate) belief_visibility: BeliefVisibility,
    /// Token of the spectator link.
    pub(crate) spectator_token: Option<String>,
    /// Row of the encounter in the file of a study, which stores every step.
    pub(crate) study_encounter: Option<i64>,
    /// Messages for spectators.
    pub(crate) feed: broadcast::Sender<Arc<str>>,
    /// Number of player connections so far. The newest one plays.
    pub(crate) newest_player: watch::Sender<u64>,
    /// Number of connected players: usually 1; 0 while the player is away.
    pub(crate) n_players: watch::Sender<usize>,
    /// Places for spectators of this session.
    pub(crate) spectators: Arc<Semaphore>,
    pub(crate) rate_limiter: Mutex<RateLimiter>,
    /// Address that started the session. `None` in a study.
    owner: Option<IpAddr>,
    /// Set after the last action, so that the registry can read it without waiting for an agent.
    is_over: AtomicBool,
    n_clients: AtomicUsize,
    /// Time of the last use, in milliseconds after `created_at`.
    used_at: AtomicU64,
    created_at: Instant,
    /// Frames of a new session up to the first decision, until they are sent to the player.
    first_frames: Mutex<Option<Vec<SessionFrame>>>,
}

/// Maximum number of messages of one player per second.
pub(crate) const MESSAGES_PER_SECOND: f64 = 30.0;
/// Maximum number of waiting messages per spectator. A slower spectator gets the present state instead.
const FEED_LENGTH: usize = 64;

/// The state of a session between two actions.
#[derive(Clone)]
struct Snapshot {
    /// Number of the player's actions so far.
    seq: usize,
    frame: SessionFrame,
    outcomes: Vec<EpisodeOutcome>,
    is_over: bool,
}

impl Snapshot {
    fn of(session: &Session) -> Snapshot {
        Snapshot {
            seq: session.actions().len(),
            frame: session.last_frame().clone(),
            outcomes: session.outcomes().to_vec(),
            is_over: session.is_over(),
        }
    }
}

impl ServerSession {
    pub(crate) fn new(
        session: Session,
        first_frames: Option<Vec<SessionFrame>>,
        belief_visibility: BeliefVisibility,
        spectator_token: Option<String>,
        study_encounter: Option<i64>,
    ) -> ServerSession {
        let now = Instant::now();
        ServerSession {
            belief_visibility,
            spectator_token,
            study_encounter,
            feed: broadcast::Sender::new(FEED_LENGTH),
            newest_player: watch::Sender::new(0),
            n_players: watch::Sender::new(0),
            spectators: Arc::new(Semaphore::new(0)),
            rate_limiter: Mutex::new(RateLimiter::new(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND, now)),
            owner: None,
            is_over: AtomicBool::new(session.is_over()),
            agent: Arc::clone(session.agent()),
            config: session.config().clone(),
            spectator_snapshot: Mutex::new(Snapshot::of(&session)),
            session: Mutex::new(session),
            n_clients: AtomicUsize::new(0),
            used_at: AtomicU64::new(0),
            created_at: now,
            first_frames: Mutex::new(first_frames),
        }
    }

    /// Counts the session for the address that started it.
    pub(crate) fn started_by(mut self, address: IpAddr) -> ServerSession {
        self.owner = Some(address);
        self
    }

    /// Sets the maximum number of spectators. Default: 0.
    pub(crate) fn with_spectators(self, max: usize) -> ServerSession {
        self.spectators.add_permits(max);
        self
    }

    /// Counts a connected player until the guard is dropped.
    pub(crate) fn connect_player(self: &Arc<ServerSession>) -> ConnectionGuard {
        let mut guard = self.connect();
        guard.is_player = true;
        self.n_players.send_modify(|n| *n += 1);
        guard
    }

    /// Counts a connected client until the guard is dropped.
    pub(crate) fn connect(self: &Arc<ServerSession>) -> ConnectionGuard {
        self.touch();
        self.n_clients.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard { server_session: Arc::clone(self), is_player: false }
    }

    /// Whether the player is connected.
    pub(crate) fn is_player_here(&self) -> bool {
        *self.n_players.borrow() > 0
    }

    /// Marks the session as over. It may be evicted when its clients have left.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Notes the time of use.
    pub(crate) fn touch(&self) {
        self.used_at.store(self.created_at.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn has_no_clients(&self) -> bool {
        self.n_clients.load(Ordering::Relaxed) == 0
    }

    fn unused_for(&self) -> Duration {
        self.created_at.elapsed().saturating_sub(Duration::from_millis(self.used_at.load(Ordering::Relaxed)))
    }

    /// Locks the session.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Session>, Refusal> {
        self.session.lock().map_err(|_| Refusal::broken())
    }

    /// Updates the state that new spectators get.
    pub(crate) fn update_spectator_snapshot(&self, session: &Session) {
        if self.spectator_token.is_some() {
            *self.spectator_snapshot() = Snapshot::of(session);
        }
    }

    fn spectator_snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.spectator_snapshot.lock().expect("no thread panics while it holds this lock")
    }

    /// The state for a client. A player waits for an action in progress, a spectator does not.
    fn snapshot(&self, is_spectator: bool) -> Result<Snapshot, Refusal> {
        if !is_spectator {
            return self.lock().map(|session| Snapshot::of(&session));
        }
        if self.session.is_poisoned() {
            Err(Refusal::broken())
        } else {
            Ok(self.spectator_snapshot().clone())
        }
    }

    /// The first message to a client: the full state.
    pub(crate) fn welcome(&self, is_spectator: bool) -> Result<Welcome, Refusal> {
        let mut description = SessionDescription::new(&self.agent, &self.config);
        // Participants are not told which agent they play with.
        if self.study_encounter.is_some() {
            description.agent = String::new();
            description.label = "the agent".to_owned();
        }
        if self.belief_visibility != BeliefVisibility::Live {
            description.belief_slots.clear();
        }
        let Snapshot { seq, frame, outcomes, is_over } = self.snapshot(is_spectator)?;
        let mut first_frames = self.first_frames.lock().expect("no thread panics while it holds this lock");
        let first_frames = if is_spectator { None } else { first_frames.take() };
        let mut frames = first_frames.filter(|_| seq == 0).unwrap_or_else(|| vec![frame]);
        self.hide_beliefs(&mut frames);
        Ok(Welcome {
            v: VERSION,
            is_spectator,
            description,
            outcomes,
            belief_visibility: self.belief_visibility,
            spectator_token: self.spectator_token.clone().filter(|_| !is_spectator),
            seq,
            frames,
            is_over,
            is_player_here: self.is_player_here(),
        })
    }

    /// Sends a message to all spectators, if there are any.
    pub(crate) fn tell_spectators(&self, text: &str) {
        if self.feed.receiver_count() > 0 {
            // The last spectator may have left since.
            let _ = self.feed.send(Arc::from(text));
        }
    }

    /// Removes the beliefs from frames, unless they are shown during play.
    pub(crate) fn hide_beliefs(&self, frames: &mut [SessionFrame]) {
        if self.belief_visibility != BeliefVisibility::Live {
            frames.iter_mut().for_each(|frame| frame.beliefs = None);
        }
    }
}

/// Counts a connected client of a session while it exists.
pub(crate) struct ConnectionGuard {
    server_session: Arc<ServerSession>,
    is_player: bool,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.server_session.touch();
        self.server_session.n_clients.fetch_sub(1, Ordering::Relaxed);
        if self.is_player {
            self.server_session.n_players.send_modify(|n| *n -= 1);
        }
    }
}

/// All sessions in memory.
pub(crate) struct SessionRegistry {
    sessions: Mutex<SessionMaps>,
    max: usize,
    max_per_address: usize,
}

#[derive(Default)]
struct SessionMaps {
    /// Sessions by player token.
    by_player: HashMap<String, Arc<ServerSession>>,
    /// Player tokens by spectator token.
    by_spectator: HashMap<String, String>,
}

impl SessionRegistry {
    pub(super) fn new(max: usize, max_per_address: usize) -> SessionRegistry {
        SessionRegistry { sessions: Mutex::default(), max, max_per_address }
    }

    fn sessions(&self) -> MutexGuard<'_, SessionMaps> {
        self.sessions.lock().expect("no thread panics while it holds this lock")
    }

    /// The session of a player token.
    pub(crate) fn of_player(&self, token: &str) -> Option<Arc<ServerSession>> {
        self.sessions().by_player.get(token).cloned()
    }

    /// The session of a spectator token.
    pub(crate) fn of_spectator(&self, token: &str) -> Option<Arc<ServerSession>> {
        let sessions = self.sessions();
        sessions.by_player.get(sessions.by_spectator.get(token)?).cloned()
    }

    /// Refuses a new session of this address if no place is free and none can be freed.
    pub(crate) fn check_capacity(&self, owner: IpAddr) -> Result<(), Refusal> {
        self.free_place(&mut self.sessions(), Some(owner))
    }

    fn free_place(&self, sessions: &mut SessionMaps, owner: Option<IpAddr>) -> Result<(), Refusal> {
        let full = |message: String| Err(Refusal::of(RefusalCode::Full, message));
        if owner.is_some()
            && sessions.by_player.values().filter(|server_session| server_session.owner == owner).count()
                >= self.max_per_address
            && !sessions.evict_one(|server_session| server_session.owner == owner)
        {
            return full(format!(
                "all {} sessions that one address may have are in use; try again in a few minutes",
                self.max_per_address
            ));
        }
        if sessions.by_player.len() >= self.max && !sessions.evict_one(|_| true) {
            return full(format!("all {} sessions are in use; try again in a few minutes", self.max));
        }
        Ok(())
    }

    /// Adds a session, if necessary in the place of one that is over and has no clients. If the token has a session already, that
    /// one is returned.
    pub(crate) fn insert(
        &self,
        token: &str,
        server_session: ServerSession,
    ) -> Result<Arc<ServerSession>, Refusal> {
        let mut sessions = self.sessions();
        if let Some(known) = sessions.by_player.get(token) {
            return Ok(Arc::clone(known));
        }
        self.free_place(&mut sessions, server_session.owner)?;
        if let Some(watch) = &server_session.spectator_token {
            sessions.by_spectator.insert(watch.clone(), token.to_owned());
        }
        let server_session = Arc::new(server_session);
        sessions.by_player.insert(token.to_owned(), Arc::clone(&server_session));
        Ok(server_session)
    }

    /// Removes a session by the player's token.
    pub(crate) fn remove(&self, token: &str) {
        self.sessions().remove(token);
    }

    /// Removes a session by the hash of the player's token. A connected player is told that another connection took over.
    pub(crate) fn remove_hashed(&self, token_hash: &str) {
        let mut sessions = self.sessions();
        let found = sessions.by_player.keys().find(|token| crate::token::hash(token) == token_hash).cloned();
        if let Some(token) = found {
            if let Some(server_session) = sessions.by_player.get(&token) {
                server_session.newest_player.send_modify(|newest| *newest += 1);
            }
            sessions.remove(&token);
        }
    }

    /// Removes every session that has had no client for longer than this.
    pub(super) fn remove_unused(&self, after: Duration) {
        let mut sessions = self.sessions();
        let stale = |server_session: &Arc<ServerSession>| {
            server_session.has_no_clients() && server_session.unused_for() > after
        };
        let tokens: Vec<String> = sessions
            .by_player
            .iter()
            .filter(|(_, server_session)| stale(server_session))
            .map(|(token, _)| token.clone())
            .collect();
        tokens.iter().for_each(|token| sessions.remove(token));
    }

    /// Number of sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions().by_player.len()
    }
}

impl SessionMaps {
    fn remove(&mut self, token: &str) {
        if let Some(server_session) = self.by_player.remove(token)
            && let Some(watch) = &server_session.spectator_token
        {
            self.by_spectator.remove(watch);
        }
    }

    /// Removes the session that has been without clients for the longest. A session that is not over must have had none for some
    /// time, because reloading a page disconnects a player for a moment.
    fn evict_one(&mut self, is_candidate: impl Fn(&ServerSession) -> bool) -> bool {
        const MIN_UNUSED: Duration = Duration::from_secs(120);
        let is_evictable = |server_session: &Arc<ServerSession>| {
            let is_over =
                server_session.is_over.load(Ordering::Relaxed) || server_session.session.is_poisoned();
            let is_done_or_restorable = is_over
                || server_session.study_encounter.is_some()
                || server_session.unused_for() > MIN_UNUSED;
            is_candidate(server_session) && server_session.has_no_clients() && is_done_or_restorable
        };
        let oldest = self
            .by_player
            .iter()
            .filter(|(_, server_session)| is_evictable(server_session))
            .max_by_key(|(_, server_session)| server_session.unused_for());
        let token = oldest.map(|(token, _)| token.clone());
        if let Some(token) = &token {
            self.remove(token);
        }
        token.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{ServerSession, SessionRegistry};
    use crate::catalog::AgentCatalog;
    use crate::session::tests::{play_out, session_config};
    use crate::session::{Detail, Session};
    use crate::wire::{BeliefVisibility, RefusalCode};

    #[test]
    fn sessions_per_address_are_limited_and_finished_ones_are_evicted() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let agent = catalog.find("kuhn-poker.random").expect("a scripted ego");
        let server_session = |owner: IpAddr| {
            let (session, _) =
                Session::begin(agent, session_config(agent, 1), Detail::Seen).expect("a session");
            ServerSession::new(session, None, BeliefVisibility::After, None, None).started_by(owner)
        };
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let sessions = SessionRegistry::new(4, 2);
        let first = sessions.insert("a", server_session(address(1))).expect("a place");
        sessions.insert("b", server_session(address(1))).expect("a place");
        let refused = sessions.insert("c", server_session(address(1))).err().expect("its share is taken");
        assert_eq!(refused.code, RefusalCode::Full);
        assert!(refused.message.contains("all 2 sessions that one address may have"), "{}", refused.message);
        assert!(sessions.check_capacity(address(1)).is_err());
        sessions.insert("d", server_session(address(2))).expect("a place for another address");
        // A finished session is evicted, even while the agent of another session is deciding.
        let busy = sessions.of_player("b").expect("a scripted ego");
        let _deciding = busy.lock().expect("not broken");
        play_out(&mut first.lock().expect("not broken"), 1);
        first.end();
        sessions.insert("e", server_session(address(1))).expect("the place of the session that is over");
        assert!(sessions.of_player("a").is_none() && sessions.of_player("b").is_some());
        assert_eq!(sessions.len(), 3);
    }
}
