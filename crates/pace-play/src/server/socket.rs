//! The talk with one client over a WebSocket: a player who acts, or a spectator who is told.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::broadcast::error::RecvError;

use super::listen::ClientAddress;
use super::quota::Place;
use super::registry::{MESSAGES_PER_SECOND, ServerSession};
use super::{RateLimiter, Server};
use crate::replay;
use crate::token::is_token;
use crate::wire::{
    BeliefVisibility, ClientMessage, MOST_MESSAGE_BYTES, Refusal, RefusalCode, ServerMessage, VERSION,
};

/// A client that has not said who it is by then is let go.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// A client that does not take an answer for so long is let go.
const SLOWEST: Duration = Duration::from_secs(10);
/// So many refusals in a row, and the client is let go.
const PATIENCE: u32 = 100;

pub(super) async fn upgrade(
    State(server): State<Arc<Server>>,
    ClientAddress(address): ClientAddress,
    upgrade: WebSocketUpgrade,
) -> Response {
    let arrival = match server.quotas.arrivals.take(Some(address)) {
        Ok(place) => place,
        Err(reason) => {
            server.log.say(&format!("refused a socket: {reason}"));
            return (StatusCode::SERVICE_UNAVAILABLE, "too many connections; try again in a minute\n")
                .into_response();
        }
    };
    upgrade.max_message_size(MOST_MESSAGE_BYTES).max_frame_size(MOST_MESSAGE_BYTES).on_upgrade(
        move |socket| async move {
            let pings = RateLimiter::new(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND, Instant::now());
            talk(&server, Client { socket, address, pings }, arrival).await;
        },
    )
}

struct Client {
    socket: WebSocket,
    /// The address that its limits count by.
    address: IpAddr,
    /// Pings of the transport.
    pings: RateLimiter,
}

/// Why a talk is over.
enum Gone {
    /// The client hung up, or broke the protocol of WebSockets.
    HungUp,
    /// It did not take what we sent.
    TooSlow,
}

impl Client {
    async fn tell(&mut self, message: &ServerMessage) -> Result<(), Gone> {
        self.tell_text(message.to_text()).await
    }

    async fn tell_text(&mut self, text: String) -> Result<(), Gone> {
        match tokio::time::timeout(SLOWEST, self.socket.send(Message::Text(text.into()))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Gone::HungUp),
            Err(_) => Err(Gone::TooSlow),
        }
    }

    async fn refuse(&mut self, server: &Server, refusal: Refusal) -> Result<(), Gone> {
        server.log.say(&format!("refused a message: {}", refusal.message));
        self.tell(&ServerMessage::Refused { v: VERSION, refusal }).await
    }

    async fn farewell(&mut self, reason: &'static str) {
        let _ = self.tell(&ServerMessage::Farewell { v: VERSION, reason }).await;
        let _ = tokio::time::timeout(SLOWEST, self.socket.send(Message::Close(None))).await;
    }

    /// The next message. The transport answers pings itself; here they are counted.
    async fn hear(&mut self, server: &Server) -> Result<Result<ClientMessage, Refusal>, Gone> {
        loop {
            return match self.socket.recv().await {
                None => Err(Gone::HungUp),
                Some(Err(error)) => {
                    // Among them messages that are too long, after which a connection cannot go on.
                    server.log.say(&format!("a connection broke: {error}"));
                    Err(Gone::HungUp)
                }
                Some(Ok(Message::Text(text))) => Ok(ClientMessage::parse(&text)),
                Some(Ok(Message::Binary(_))) => {
                    Ok(Err(Refusal::of(RefusalCode::Malformed, "messages are text".to_owned())))
                }
                Some(Ok(Message::Close(_))) => Err(Gone::HungUp),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                    if self.pings.lets_through(Instant::now()) {
                        continue;
                    }
                    server
                        .log
                        .say(&format!("closed a connection: more than {MESSAGES_PER_SECOND} pings a second"));
                    Err(Gone::HungUp)
                }
            };
        }
    }
}

async fn talk(server: &Arc<Server>, mut client: Client, arrival: Place) {
    let mut stopping = server.stopping.clone();
    let introduction = tokio::select! {
        introduction = tokio::time::timeout(INTRODUCTION, client.hear(server)) => introduction,
        () = until(&mut stopping, |stops| *stops) => {
            client.farewell("shutting-down").await;
            return;
        }
    };
    let outcome = match introduction {
        Ok(Ok(Ok(ClientMessage::Hello { token, .. }))) => play(server, &mut client, &token, arrival).await,
        Ok(Ok(Ok(ClientMessage::Watch { token, .. }))) => watch(server, &mut client, &token, arrival).await,
        Ok(Ok(Ok(_))) => {
            let message = "the first message is `hello` or `watch`".to_owned();
            client.refuse(server, Refusal::of(RefusalCode::Malformed, message)).await
        }
        Ok(Ok(Err(refusal))) => client.refuse(server, refusal).await,
        Ok(Err(gone)) => Err(gone),
        Err(_) => {
            client.farewell("idle").await;
            Ok(())
        }
    };
    if let Err(Gone::TooSlow) = outcome {
        server.log.say("let a client go that did not take its answers");
    }
}

/// Waits for a value to be so.
pub(super) async fn until<T>(value: &mut tokio::sync::watch::Receiver<T>, is_so: impl FnMut(&T) -> bool) {
    // A sender that is gone changes nothing any more.
    if value.wait_for(is_so).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn find_room(server: &Arc<Server>, token: &str) -> Result<Arc<ServerSession>, Refusal> {
    if !is_token(token) {
        return Err(Refusal::no_such_session());
    }
    let Some(study) = &server.study else {
        return server.lobby.of_player(token).ok_or_else(Refusal::no_such_session);
    };
    if let Some(room) = server.lobby.of_player(token) {
        // Who comes back is told where the encounter is; a step that is still on its way to the disk would be told too early.
        if study.is_durable().await.is_ok() {
            return Ok(room);
        }
        server.lobby.remove(token);
    }
    study.reopen(server, token).await
}

async fn play(server: &Arc<Server>, client: &mut Client, token: &str, arrival: Place) -> Result<(), Gone> {
    let room = match find_room(server, token).await {
        Ok(room) => room,
        Err(refusal) => return client.refuse(server, refusal).await,
    };
    let _place = match server.quotas.players.take(Some(client.address)) {
        Ok(place) => place,
        Err(reason) => return client.refuse(server, full("players", &reason)).await,
    };
    drop(arrival);
    let _presence = room.enter_as_player();
    // The newest connection plays; an older one is told and let go.
    let mut number = 0;
    room.player.send_modify(|newest| {
        *newest += 1;
        number = *newest;
    });
    let mut newest = room.player.subscribe();
    if greet(server, client, &room, false).await?.is_none() {
        return Ok(());
    }
    let mut stopping = server.stopping.clone();
    let mut n_refused = 0;
    // An open tab that pings is not a person who plays.
    let mut acted_at = tokio::time::Instant::now();
    loop {
        let heard = tokio::select! {
            heard = tokio::time::timeout_at(acted_at + server.config.idle, client.hear(server)) => heard,
            () = until(&mut newest, |newest| *newest != number) => {
                client.farewell("taken-over").await;
                return Ok(());
            }
            () = until(&mut stopping, |stops| *stops) => {
                client.farewell("shutting-down").await;
                return Ok(());
            }
        };
        let Ok(heard) = heard else {
            client.farewell("idle").await;
            return Ok(());
        };
        let answer = match heard? {
            Ok(message) => {
                if matches!(message, ClientMessage::Act { .. }) {
                    acted_at = tokio::time::Instant::now();
                }
                react(server, &room, token, message).await
            }
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(reply) => {
                n_refused = 0;
                let told = client.tell_text(reply.text).await;
                // The last frames do not wait for the summary.
                if reply.is_last {
                    match over(server, &room).await {
                        Ok(over) => {
                            let text = over.to_text();
                            room.tell_spectators(&text);
                            client.tell_text(text).await?;
                        }
                        Err(refusal) => client.refuse(server, refusal).await?,
                    }
                }
                told?;
            }
            Err(refusal) => {
                n_refused += 1;
                let is_lost = refusal.code == RefusalCode::NotDurable;
                client.refuse(server, refusal).await?;
                if is_lost || n_refused >= PATIENCE {
                    client.farewell("refused").await;
                    return Ok(());
                }
            }
        }
    }
}

/// The answer to a message of the player.
struct Reply {
    text: String,
    /// Whether the session is over with it.
    is_last: bool,
}

/// Plays an action, or answers a ping.
async fn react(
    server: &Arc<Server>,
    room: &Arc<ServerSession>,
    token: &str,
    message: ClientMessage,
) -> Result<Reply, Refusal> {
    if !room.bucket.lock().expect("nobody panics with it").lets_through(Instant::now()) {
        return Err(Refusal::of(RefusalCode::TooFast, "at most 30 messages a second".to_owned()));
    }
    room.touch();
    let (seq, action, at_ms) = match message {
        ClientMessage::Act { seq, action, at_ms, .. } => (seq, action, at_ms),
        ClientMessage::Ping { .. } => {
            return Ok(Reply { text: ServerMessage::Pong { v: VERSION }.to_text(), is_last: false });
        }
        ClientMessage::Hello { .. } | ClientMessage::Watch { .. } => {
            return Err(Refusal::of(RefusalCode::Malformed, "`hello` was already received".to_owned()));
        }
    };
    let (room_to_play, server_to_ask) = (Arc::clone(room), Arc::clone(server));
    let step = move || -> Result<_, Refusal> {
        let (room, server) = (room_to_play, server_to_ask);
        let mut session = room.session()?;
        let mut answer = session.act(seq, action)?;
        room.hide_mind(&mut answer.frames);
        // Handed over while nobody else can act, so that steps are kept in their order.
        let kept = match (&server.study, room.recorded_as) {
            (Some(study), Some(encounter)) => Some(study.keep_step(encounter, &session, &answer, at_ms)),
            _ => None,
        };
        let is_over = session.is_over();
        room.show(&session);
        drop(session);
        if is_over {
            room.end();
        }
        let frames = ServerMessage::Frames { v: VERSION, seq: seq + 1, frames: answer.frames };
        Ok((frames.to_text(), is_over, kept))
    };
    let (text, is_last, kept) = server.compute(step).await?;
    if let Some(kept) = kept
        && let Err(error) = kept.await
    {
        // The step is not in the file, so it did not happen: the encounter is built anew from what is.
        server.lobby.remove(token);
        let message =
            format!("the step could not be saved ({error}); reload to continue from the last saved step");
        return Err(Refusal::of(RefusalCode::NotDurable, message));
    }
    room.tell_spectators(&text);
    Ok(Reply { text, is_last })
}

/// Tells a client the state of the session, and returns whether that says that the player is connected. None if the session is
/// broken.
async fn greet(
    server: &Arc<Server>,
    client: &mut Client,
    room: &Arc<ServerSession>,
    is_spectator: bool,
) -> Result<Option<bool>, Gone> {
    let room_to_read = Arc::clone(room);
    let welcome = match server.compute(move || room_to_read.welcome(is_spectator)).await {
        Ok(welcome) => welcome,
        Err(refusal) => {
            client.refuse(server, refusal).await?;
            return Ok(None);
        }
    };
    let (is_over, is_player_here) = (welcome.is_over, welcome.is_player_here);
    client.tell(&ServerMessage::Welcome(Box::new(welcome))).await?;
    if is_over && let Ok(over) = over(server, room).await {
        client.tell(&over).await?;
    }
    Ok(Some(is_player_here))
}

/// The last message of a session, with its summary where that may be shown.
async fn over(server: &Server, room: &Arc<ServerSession>) -> Result<ServerMessage, Refusal> {
    if room.mind == BeliefVisibility::Never {
        return Ok(ServerMessage::Over { v: VERSION, summary: None, link: None });
    }
    let room_to_read = Arc::clone(room);
    let missing = move || -> Result<_, Refusal> {
        let session = room_to_read.session()?;
        Ok(session.missing_oracle_score().map(|tuple| (Arc::clone(session.offer()), tuple)))
    };
    if let Some((offer, tuple)) = server.compute(missing).await? {
        // The oracle plays whole encounters: one score at a time, while the session is not locked.
        let _permit = server.oracles.acquire().await.map_err(|_| Refusal::broken())?;
        server.compute(move || Ok(offer.oracle_score(tuple)?)).await?;
    }
    let room_to_read = Arc::clone(room);
    let summarise = move || -> Result<_, Refusal> {
        let session = room_to_read.session()?;
        let (summary, link) = (Some(Box::new(session.summary()?)), Some(replay::link(&session)));
        Ok(ServerMessage::Over { v: VERSION, summary, link })
    };
    server.compute(summarise).await
}

fn full(clients: &str, reason: &str) -> Refusal {
    let message = format!("too many {clients} are connected: {reason}; try again in a minute");
    Refusal::of(RefusalCode::Full, message)
}

async fn watch(server: &Arc<Server>, client: &mut Client, token: &str, arrival: Place) -> Result<(), Gone> {
    let room = if is_token(token) { server.lobby.of_spectator(token) } else { None };
    let Some(room) = room else {
        return client.refuse(server, Refusal::no_such_session()).await;
    };
    let Ok(_seat) = Arc::clone(&room.spectators).try_acquire_owned() else {
        let reason = format!("all {} of this session are in use", server.config.max_spectators_per_session);
        return client.refuse(server, full("spectators", &reason)).await;
    };
    let _place = match server.quotas.spectators.take(Some(client.address)) {
        Ok(place) => place,
        Err(reason) => return client.refuse(server, full("spectators", &reason)).await,
    };
    drop(arrival);
    let _presence = room.enter();
    let mut feed = room.feed.subscribe();
    let mut players = room.n_players.subscribe();
    let Some(mut is_player_here) = greet(server, client, &room, true).await? else { return Ok(()) };
    let mut stopping = server.stopping.clone();
    let mut bucket = RateLimiter::new(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND, Instant::now());
    loop {
        tokio::select! {
            told = feed.recv() => match told {
                Ok(text) => client.tell_text(text.to_string()).await?,
                Err(RecvError::Lagged(_)) => match greet(server, client, &room, true).await? {
                    Some(is_here) => is_player_here = is_here,
                    None => return Ok(()),
                },
                Err(RecvError::Closed) => return Ok(()),
            },
            () = until(&mut players, move |n| (*n > 0) != is_player_here) => {
                is_player_here = !is_player_here;
                client.tell(&ServerMessage::Presence { v: VERSION, is_player_here }).await?;
            }
            heard = tokio::time::timeout(server.config.idle, client.hear(server)) => {
                let Ok(heard) = heard else {
                    client.farewell("idle").await;
                    return Ok(());
                };
                if !bucket.lets_through(Instant::now()) {
                    client.farewell("refused").await;
                    return Ok(());
                }
                match heard? {
                    Ok(ClientMessage::Ping { .. }) => client.tell(&ServerMessage::Pong { v: VERSION }).await?,
                    Ok(_) => {
                        let message = "spectators only watch".to_owned();
                        client.refuse(server, Refusal::of(RefusalCode::NotYourTurn, message)).await?;
                    }
                    Err(refusal) => client.refuse(server, refusal).await?,
                }
            }
            () = until(&mut stopping, |stops| *stops) => {
                client.farewell("shutting-down").await;
                return Ok(());
            }
        }
    }
}
