//! Who sits where: encounters in memory, by the tokens of their players and spectators.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{broadcast, watch};

use super::Bucket;
use crate::session::{Frame, Session};
use crate::wire::{MindPolicy, Refusal, RefusalCode, VERSION, Welcome};

/// One encounter, with everybody who looks at it.
pub(crate) struct Room {
    /// Never locked across an await. Poisoned by a bug in a game or an agent: then this table is broken, and no other.
    session: Mutex<Session>,
    pub(crate) mind: MindPolicy,
    /// The token of its spectator link.
    pub(crate) watch: Option<String>,
    /// The study's number of the encounter, where everything has to be kept.
    pub(crate) recorded_as: Option<i64>,
    /// What spectators are told.
    pub(crate) feed: broadcast::Sender<Arc<str>>,
    /// How often a player has connected; the last one plays.
    pub(crate) player: watch::Sender<u64>,
    pub(crate) bucket: Mutex<Bucket>,
    n_clients: AtomicUsize,
    /// Milliseconds after the lobby opened.
    used_at: AtomicU64,
    opened: Instant,
    /// How a new encounter came to its first moment, until somebody was told.
    opening: Mutex<Option<Vec<Frame>>>,
}

/// Messages of one player per second.
pub(crate) const MESSAGES_PER_SECOND: f64 = 30.0;
/// A spectator that is so many messages behind starts afresh.
const FEED_LENGTH: usize = 64;

impl Room {
    pub(crate) fn new(
        session: Session,
        opening: Option<Vec<Frame>>,
        mind: MindPolicy,
        watch: Option<String>,
        recorded_as: Option<i64>,
    ) -> Room {
        let now = Instant::now();
        Room {
            session: Mutex::new(session),
            mind,
            watch,
            recorded_as,
            feed: broadcast::Sender::new(FEED_LENGTH),
            player: watch::Sender::new(0),
            bucket: Mutex::new(Bucket::new(MESSAGES_PER_SECOND, now)),
            n_clients: AtomicUsize::new(0),
            used_at: AtomicU64::new(0),
            opened: now,
            opening: Mutex::new(opening),
        }
    }

    /// Somebody is at the table for as long as they keep this.
    pub(crate) fn enter(self: &Arc<Room>) -> Presence {
        self.touch();
        self.n_clients.fetch_add(1, Ordering::Relaxed);
        Presence(Arc::clone(self))
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

    /// Everything that a client needs to go on from here.
    pub(crate) fn welcome(&self, is_spectator: bool) -> Result<Welcome, Refusal> {
        let session = self.session()?;
        let mut opening = self.opening.lock().expect("nobody panics with it");
        let opening = if is_spectator { None } else { opening.take() };
        let offer = session.offer();
        let booking = session.booking();
        // Participants are not told which agent they meet.
        let is_blind = self.recorded_as.is_some();
        let spec = offer.game.spec();
        let mut frames = opening
            .filter(|_| session.actions().is_empty())
            .unwrap_or_else(|| vec![session.last_frame().clone()]);
        self.hide_mind(&mut frames);
        Ok(Welcome {
            v: VERSION,
            is_spectator,
            game: spec.id,
            setting: offer.game.setting(),
            action_names: spec.action_names,
            is_simultaneous: offer.is_simultaneous,
            offer: if is_blind { String::new() } else { offer.id.clone() },
            label: if is_blind { "the agent".to_owned() } else { offer.label.clone() },
            slot: booking.slot,
            role: spec.peer_roles[booking.slot],
            part: offer.part(booking.tuple, booking.slot),
            n_episodes: booking.n_episodes,
            outcomes: session.outcomes().to_vec(),
            mind: self.mind,
            mind_slots: if self.mind == MindPolicy::Live { offer.slots.clone() } else { Vec::new() },
            watch: self.watch.clone().filter(|_| !is_spectator),
            seq: session.actions().len(),
            frames,
            is_over: session.is_over(),
        })
    }

    /// Takes out what the person is not to see while they play.
    pub(crate) fn hide_mind(&self, frames: &mut [Frame]) {
        if self.mind != MindPolicy::Live {
            frames.iter_mut().for_each(|frame| frame.mind = None);
        }
    }
}

/// Somebody at a table.
pub(crate) struct Presence(Arc<Room>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.touch();
        self.0.n_clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All encounters in memory.
pub(crate) struct Lobby {
    rooms: Mutex<Rooms>,
    most: usize,
}

#[derive(Default)]
struct Rooms {
    by_player: HashMap<String, Arc<Room>>,
    by_spectator: HashMap<String, String>,
}

impl Lobby {
    pub(super) fn new(most: usize) -> Lobby {
        Lobby { rooms: Mutex::default(), most }
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock().expect("nobody panics with it")
    }

    /// The encounter of a player.
    pub(crate) fn of_player(&self, token: &str) -> Option<Arc<Room>> {
        self.rooms().by_player.get(token).cloned()
    }

    /// The encounter behind a spectator link.
    pub(crate) fn of_spectator(&self, token: &str) -> Option<Arc<Room>> {
        let rooms = self.rooms();
        rooms.by_player.get(rooms.by_spectator.get(token)?).cloned()
    }

    /// Takes an encounter in, if there is room. One that is over and deserted makes room. If somebody else was quicker with
    /// the same token, theirs counts.
    pub(crate) fn take_in(&self, token: &str, room: Room) -> Result<Arc<Room>, Refusal> {
        let mut rooms = self.rooms();
        if let Some(known) = rooms.by_player.get(token) {
            return Ok(Arc::clone(known));
        }
        if rooms.by_player.len() >= self.most && !rooms.make_room() {
            let message =
                format!("no more than {} can play here at a time; try again in a few minutes", self.most);
            return Err(Refusal::of(RefusalCode::Full, message));
        }
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
        let stale = |room: &Arc<Room>| room.is_deserted() && room.unused_for() > after;
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
    fn make_room(&mut self) -> bool {
        const A_WHILE: Duration = Duration::from_secs(120);
        let can_go = |room: &Arc<Room>| {
            let is_over = room.session().map_or(true, |session| session.is_over());
            room.is_deserted() && (is_over || room.recorded_as.is_some() || room.unused_for() > A_WHILE)
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
