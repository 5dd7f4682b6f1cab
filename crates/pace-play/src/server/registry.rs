//! Who sits where: encounters in memory, by the tokens of their players and spectators.

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
use crate::wire::{BeliefVisibility, Refusal, RefusalCode, VERSION, Welcome};

/// One encounter, with everybody who looks at it.
pub(crate) struct ServerSession {
    /// Never locked across an await. Poisoned by a bug in a game or an agent: then this table is broken, and no other.
    session: Mutex<Session>,
    offer: Arc<PlayableAgent>,
    booking: SessionConfig,
    /// The session after the last action. Spectators are shown this, so that they do not wait while an agent decides.
    shown: Mutex<Snapshot>,
    pub(crate) mind: BeliefVisibility,
    /// The token of its spectator link.
    pub(crate) watch: Option<String>,
    /// The study's number of the encounter, where everything has to be kept.
    pub(crate) recorded_as: Option<i64>,
    /// What spectators are told.
    pub(crate) feed: broadcast::Sender<Arc<str>>,
    /// How often a player has connected; the last one plays.
    pub(crate) player: watch::Sender<u64>,
    /// Connected players: usually one, none while the player is away.
    pub(crate) n_players: watch::Sender<usize>,
    /// Places for spectators of this session.
    pub(crate) spectators: Arc<Semaphore>,
    pub(crate) bucket: Mutex<RateLimiter>,
    /// The address that started the session; none in a study.
    owner: Option<IpAddr>,
    /// Set after the last action, so that the lobby can read it without waiting for an agent.
    is_over: AtomicBool,
    n_clients: AtomicUsize,
    /// Milliseconds after the lobby opened.
    used_at: AtomicU64,
    opened: Instant,
    /// How a new encounter came to its first moment, until somebody was told.
    opening: Mutex<Option<Vec<SessionFrame>>>,
}

/// Messages of one player per second.
pub(crate) const MESSAGES_PER_SECOND: f64 = 30.0;
/// A spectator that is so many messages behind starts afresh.
const FEED_LENGTH: usize = 64;

/// State of a session between two actions.
#[derive(Clone)]
struct Snapshot {
    /// Number of actions so far.
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
        opening: Option<Vec<SessionFrame>>,
        mind: BeliefVisibility,
        watch: Option<String>,
        recorded_as: Option<i64>,
    ) -> ServerSession {
        let now = Instant::now();
        ServerSession {
            mind,
            watch,
            recorded_as,
            feed: broadcast::Sender::new(FEED_LENGTH),
            player: watch::Sender::new(0),
            n_players: watch::Sender::new(0),
            spectators: Arc::new(Semaphore::new(0)),
            bucket: Mutex::new(RateLimiter::new(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND, now)),
            owner: None,
            is_over: AtomicBool::new(session.is_over()),
            offer: Arc::clone(session.offer()),
            booking: session.booking().clone(),
            shown: Mutex::new(Snapshot::of(&session)),
            session: Mutex::new(session),
            n_clients: AtomicUsize::new(0),
            used_at: AtomicU64::new(0),
            opened: now,
            opening: Mutex::new(opening),
        }
    }

    /// Counts the room for the address that started it.
    pub(crate) fn started_by(mut self, address: IpAddr) -> ServerSession {
        self.owner = Some(address);
        self
    }

    /// Admits at most this many spectators at a time; a new room admits none.
    pub(crate) fn with_spectators(self, max: usize) -> ServerSession {
        self.spectators.add_permits(max);
        self
    }

    /// A player is connected for as long as they keep this.
    pub(crate) fn enter_as_player(self: &Arc<ServerSession>) -> ConnectionGuard {
        let mut presence = self.enter();
        presence.is_player = true;
        self.n_players.send_modify(|n| *n += 1);
        presence
    }

    /// A client is connected for as long as it keeps this.
    pub(crate) fn enter(self: &Arc<ServerSession>) -> ConnectionGuard {
        self.touch();
        self.n_clients.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard { room: Arc::clone(self), is_player: false }
    }

    /// Whether the player is connected.
    pub(crate) fn is_player_here(&self) -> bool {
        *self.n_players.borrow() > 0
    }

    /// Marks the session as over; it may make room for others when its clients have left.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn touch(&self) {
        self.used_at.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn is_deserted(&self) -> bool {
        self.n_clients.load(Ordering::Relaxed) == 0
    }

    fn unused_for(&self) -> Duration {
        self.opened.elapsed().saturating_sub(Duration::from_millis(self.used_at.load(Ordering::Relaxed)))
    }

    /// The encounter, for a moment.
    pub(crate) fn session(&self) -> Result<MutexGuard<'_, Session>, Refusal> {
        self.session.lock().map_err(|_| Refusal::broken())
    }

    /// Shows spectators who come from now on the session after an action.
    pub(crate) fn show(&self, session: &Session) {
        if self.watch.is_some() {
            *self.shown() = Snapshot::of(session);
        }
    }

    fn shown(&self) -> MutexGuard<'_, Snapshot> {
        self.shown.lock().expect("no thread panics while it holds this lock")
    }

    /// The session as a client sees it. A player waits until an action in progress is done.
    fn snapshot(&self, is_spectator: bool) -> Result<Snapshot, Refusal> {
        if !is_spectator {
            return self.session().map(|session| Snapshot::of(&session));
        }
        if self.session.is_poisoned() { Err(Refusal::broken()) } else { Ok(self.shown().clone()) }
    }

    /// Everything that a client needs to go on from here.
    pub(crate) fn welcome(&self, is_spectator: bool) -> Result<Welcome, Refusal> {
        let (offer, booking) = (&self.offer, &self.booking);
        let (part, setting) = (offer.part(booking.tuple, booking.slot), offer.game.constants());
        let Snapshot { seq, frame, outcomes, is_over } = self.snapshot(is_spectator)?;
        let mut opening = self.opening.lock().expect("nobody panics with it");
        let opening = if is_spectator { None } else { opening.take() };
        // Participants are not told which agent they meet.
        let is_blind = self.recorded_as.is_some();
        let spec = offer.game.spec();
        let mut frames = opening.filter(|_| seq == 0).unwrap_or_else(|| vec![frame]);
        self.hide_mind(&mut frames);
        Ok(Welcome {
            v: VERSION,
            is_spectator,
            game: spec.id,
            title: spec.title,
            nouns: spec.nouns,
            roles: spec.peer_roles.clone(),
            setting,
            action_names: spec.action_names,
            is_simultaneous: offer.is_simultaneous,
            offer: if is_blind { String::new() } else { offer.id.clone() },
            label: if is_blind { "the agent".to_owned() } else { offer.label.clone() },
            slot: booking.slot,
            role: spec.peer_roles[booking.slot],
            part,
            n_episodes: booking.n_episodes,
            outcomes,
            mind: self.mind,
            mind_slots: if self.mind == BeliefVisibility::Live { offer.slots.clone() } else { Vec::new() },
            watch: self.watch.clone().filter(|_| !is_spectator),
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

    /// Takes out what the person is not to see while they play.
    pub(crate) fn hide_mind(&self, frames: &mut [SessionFrame]) {
        if self.mind != BeliefVisibility::Live {
            frames.iter_mut().for_each(|frame| frame.mind = None);
        }
    }
}

/// A connected client.
pub(crate) struct ConnectionGuard {
    room: Arc<ServerSession>,
    is_player: bool,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.room.touch();
        self.room.n_clients.fetch_sub(1, Ordering::Relaxed);
        if self.is_player {
            self.room.n_players.send_modify(|n| *n -= 1);
        }
    }
}

/// All encounters in memory.
pub(crate) struct SessionRegistry {
    rooms: Mutex<Rooms>,
    most: usize,
    max_per_address: usize,
}

#[derive(Default)]
struct Rooms {
    by_player: HashMap<String, Arc<ServerSession>>,
    by_spectator: HashMap<String, String>,
}

impl SessionRegistry {
    pub(super) fn new(most: usize, max_per_address: usize) -> SessionRegistry {
        SessionRegistry { rooms: Mutex::default(), most, max_per_address }
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().expect("nobody panics with it")
    }

    /// The encounter of a player.
    pub(crate) fn of_player(&self, token: &str) -> Option<Arc<ServerSession>> {
        self.rooms().by_player.get(token).cloned()
    }

    /// The encounter behind a spectator link.
    pub(crate) fn of_spectator(&self, token: &str) -> Option<Arc<ServerSession>> {
        let rooms = self.rooms();
        rooms.by_player.get(rooms.by_spectator.get(token)?).cloned()
    }

    /// Refuses a new session of this address if there is no place for it.
    pub(crate) fn check_room(&self, owner: IpAddr) -> Result<(), Refusal> {
        self.make_room(&mut self.rooms(), Some(owner))
    }

    fn make_room(&self, rooms: &mut Rooms, owner: Option<IpAddr>) -> Result<(), Refusal> {
        let full = |message: String| Err(Refusal::of(RefusalCode::Full, message));
        if owner.is_some()
            && rooms.by_player.values().filter(|room| room.owner == owner).count() >= self.max_per_address
            && !rooms.make_room(|room| room.owner == owner)
        {
            return full(format!(
                "all {} sessions that one address may have are in use; try again in a few minutes",
                self.max_per_address
            ));
        }
        if rooms.by_player.len() >= self.most && !rooms.make_room(|_| true) {
            return full(format!("all {} sessions are in use; try again in a few minutes", self.most));
        }
        Ok(())
    }

    /// Takes an encounter in, if there is room. One that is over and deserted makes room. If somebody else was quicker with
    /// the same token, theirs counts.
    pub(crate) fn take_in(&self, token: &str, room: ServerSession) -> Result<Arc<ServerSession>, Refusal> {
        let mut rooms = self.rooms();
        if let Some(known) = rooms.by_player.get(token) {
            return Ok(Arc::clone(known));
        }
        self.make_room(&mut rooms, room.owner)?;
        if let Some(watch) = &room.watch {
            rooms.by_spectator.insert(watch.clone(), token.to_owned());
        }
        let room = Arc::new(room);
        rooms.by_player.insert(token.to_owned(), Arc::clone(&room));
        Ok(room)
    }

    /// Lets go of an encounter.
    pub(crate) fn remove(&self, token: &str) {
        self.rooms().remove(token);
    }

    /// Lets go of the encounter of a token of which only the hash is known; who is at it is told that somebody took over.
    pub(crate) fn remove_hashed(&self, token_hash: &str) {
        let mut rooms = self.rooms();
        let found = rooms.by_player.keys().find(|token| crate::token::hash(token) == token_hash).cloned();
        if let Some(token) = found {
            if let Some(room) = rooms.by_player.get(&token) {
                room.player.send_modify(|newest| *newest += 1);
            }
            rooms.remove(&token);
        }
    }

    /// Lets go of every encounter that nobody has been at for so long.
    pub(super) fn forget(&self, after: Duration) {
        let mut rooms = self.rooms();
        let stale = |room: &Arc<ServerSession>| room.is_deserted() && room.unused_for() > after;
        let tokens: Vec<String> =
            rooms.by_player.iter().filter(|(_, room)| stale(room)).map(|(token, _)| token.clone()).collect();
        tokens.iter().for_each(|token| rooms.remove(token));
    }

    /// How many encounters there are.
    pub(super) fn len(&self) -> usize {
        self.rooms().by_player.len()
    }
}

impl Rooms {
    fn remove(&mut self, token: &str) {
        if let Some(room) = self.by_player.remove(token)
            && let Some(watch) = &room.watch
        {
            self.by_spectator.remove(watch);
        }
    }

    /// Lets go of the encounter that has been over, or left, for the longest; of those that were left only after a while, for
    /// who reloads a page is gone for a moment.
    fn make_room(&mut self, is_candidate: impl Fn(&ServerSession) -> bool) -> bool {
        const A_WHILE: Duration = Duration::from_secs(120);
        let can_go = |room: &Arc<ServerSession>| {
            let is_over = room.is_over.load(Ordering::Relaxed) || room.session.is_poisoned();
            let may_go = is_over || room.recorded_as.is_some() || room.unused_for() > A_WHILE;
            is_candidate(room) && room.is_deserted() && may_go
        };
        let oldest =
            self.by_player.iter().filter(|(_, room)| can_go(room)).max_by_key(|(_, room)| room.unused_for());
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
    use crate::session::tests::{booking, play_out};
    use crate::session::{Detail, Session};
    use crate::wire::{BeliefVisibility, RefusalCode};

    #[test]
    fn an_address_has_its_share_of_sessions_and_one_that_is_over_makes_room() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        let offer = offers.find("kuhn-poker.random").expect("it is there");
        let room = |owner: IpAddr| {
            let (session, _) = Session::begin(offer, booking(offer, 1), Detail::Seen).expect("a session");
            ServerSession::new(session, None, BeliefVisibility::After, None, None).started_by(owner)
        };
        let address = |last| IpAddr::from([10, 0, 0, last]);
        let lobby = SessionRegistry::new(4, 2);
        let first = lobby.take_in("a", room(address(1))).expect("a place");
        lobby.take_in("b", room(address(1))).expect("a place");
        let refused = lobby.take_in("c", room(address(1))).err().expect("its share is taken");
        assert_eq!(refused.code, RefusalCode::Full);
        assert!(refused.message.contains("all 2 sessions that one address may have"), "{}", refused.message);
        assert!(lobby.check_room(address(1)).is_err());
        lobby.take_in("d", room(address(2))).expect("a place for another address");
        // A session that is over makes room, even while an agent of another session is busy.
        let busy = lobby.of_player("b").expect("it is there");
        let _deciding = busy.session().expect("not broken");
        play_out(&mut first.session().expect("not broken"), 1);
        first.end();
        lobby.take_in("e", room(address(1))).expect("the place of the session that is over");
        assert!(lobby.of_player("a").is_none() && lobby.of_player("b").is_some());
        assert_eq!(lobby.len(), 3);
    }
}
