//! The WebSocket of one client, a player or a spectator.

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
    BeliefVisibility, ClientMessage, MAX_MESSAGE_BYTES, Refusal, RefusalCode, ServerMessage, VERSION,
};

/// Maximum time until a client's first message.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for sending a message to a client.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of refusals in a row before the connection is closed.
const MAX_REFUSALS: u32 = 100;

pub(super) async fn upgrade(
    State(server): State<Arc<Server>>,
    ClientAddress(address): ClientAddress,
    upgrade: WebSocketUpgrade,
) -> Response {
    let arrival = match server.quotas.arrivals.take(Some(address)) {
        Ok(place) => place,
        Err(reason) => {
            server.log.write(&format!("refused a socket: {reason}"));
            return (StatusCode::SERVICE_UNAVAILABLE, "too many connections; try again in a minute\n")
                .into_response();
        }
    };
    upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES).on_upgrade(
        move |socket| async move {
            let pings = RateLimiter::new(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND, Instant::now());
            serve_client(&server, Client { socket, address, pings }, arrival).await;
        },
    )
}

struct Client {
    socket: WebSocket,
    /// The address that its limits count by.
    address: IpAddr,
    /// Limit on pings of the WebSocket protocol.
    pings: RateLimiter,
}

/// The reason why a connection ended.
enum Disconnected {
    /// The client closed the connection, or violated the WebSocket protocol.
    Closed,
    /// The client did not read its messages in time.
    TooSlow,
}

impl Client {
    async fn send(&mut self, message: &ServerMessage) -> Result<(), Disconnected> {
        self.send_text(message.to_text()).await
    }

    async fn send_text(&mut self, text: String) -> Result<(), Disconnected> {
        match tokio::time::timeout(SEND_TIMEOUT, self.socket.send(Message::Text(text.into()))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Disconnected::Closed),
            Err(_) => Err(Disconnected::TooSlow),
        }
    }

    async fn refuse(&mut self, server: &Server, refusal: Refusal) -> Result<(), Disconnected> {
        server.log.write(&format!("refused a message: {}", refusal.message));
        self.send(&ServerMessage::Refused { v: VERSION, refusal }).await
    }

    async fn farewell(&mut self, reason: &'static str) {
        let _ = self.send(&ServerMessage::Farewell { v: VERSION, reason }).await;
        let _ = tokio::time::timeout(SEND_TIMEOUT, self.socket.send(Message::Close(None))).await;
    }

    /// The next message. Pings of the WebSocket protocol are answered by the library and counted here.
    async fn receive(&mut self, server: &Server) -> Result<Result<ClientMessage, Refusal>, Disconnected> {
        loop {
            return match self.socket.recv().await {
                None => Err(Disconnected::Closed),
                Some(Err(error)) => {
                    // For example a message that is too long, after which the stream cannot be read any further.
                    server.log.write(&format!("a connection broke: {error}"));
                    Err(Disconnected::Closed)
                }
                Some(Ok(Message::Text(text))) => Ok(ClientMessage::parse(&text)),
                Some(Ok(Message::Binary(_))) => {
                    Ok(Err(Refusal::of(RefusalCode::Malformed, "messages are text".to_owned())))
                }
                Some(Ok(Message::Close(_))) => Err(Disconnected::Closed),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                    if self.pings.allows(Instant::now()) {
                        continue;
                    }
                    server.log.write(&format!(
                        "closed a connection: more than {MESSAGES_PER_SECOND} pings a second"
                    ));
                    Err(Disconnected::Closed)
                }
            };
        }
    }
}

async fn serve_client(server: &Arc<Server>, mut client: Client, arrival: Place) {
    let mut stopping = server.stopping.clone();
    let first = tokio::select! {
        first = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, client.receive(server)) => first,
        () = until(&mut stopping, |stops| *stops) => {
            client.farewell("shutting-down").await;
            return;
        }
    };
    let outcome = match first {
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
    if let Err(Disconnected::TooSlow) = outcome {
        server.log.write("closed a connection: the client did not read its messages");
    }
}

/// Waits until the value satisfies the condition.
pub(super) async fn until<T>(value: &mut tokio::sync::watch::Receiver<T>, holds: impl FnMut(&T) -> bool) {
    // Without a sender the value cannot change any more.
    if value.wait_for(holds).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Finds the session of a player token; a session of a study is restored if necessary.
async fn find_session(server: &Arc<Server>, token: &str) -> Result<Arc<ServerSession>, Refusal> {
    if !is_token(token) {
        return Err(Refusal::no_such_session());
    }
    let Some(study) = &server.study else {
        return server.sessions.of_player(token).ok_or_else(Refusal::no_such_session);
    };
    if let Some(server_session) = server.sessions.of_player(token) {
        // All steps must be durable before a client that reconnects gets the state.
        if study.wait_until_durable().await.is_ok() {
            return Ok(server_session);
        }
        server.sessions.remove(token);
    }
    study.restore_session(server, token).await
}

async fn play(
    server: &Arc<Server>,
    client: &mut Client,
    token: &str,
    arrival: Place,
) -> Result<(), Disconnected> {
    let server_session = match find_session(server, token).await {
        Ok(server_session) => server_session,
        Err(refusal) => return client.refuse(server, refusal).await,
    };
    let _place = match server.quotas.players.take(Some(client.address)) {
        Ok(place) => place,
        Err(reason) => return client.refuse(server, full("players", &reason)).await,
    };
    drop(arrival);
    let _connected = server_session.connect_player();
    // The newest connection plays; an older one gets a last message and is closed.
    let mut number = 0;
    server_session.newest_player.send_modify(|newest| {
        *newest += 1;
        number = *newest;
    });
    let mut newest = server_session.newest_player.subscribe();
    if greet(server, client, &server_session, false).await?.is_none() {
        return Ok(());
    }
    let mut stopping = server.stopping.clone();
    let mut n_refused = 0;
    // Only actions count: an open tab sends pings without a person.
    let mut acted_at = tokio::time::Instant::now();
    loop {
        let received = tokio::select! {
            received = tokio::time::timeout_at(acted_at + server.config.idle, client.receive(server)) => received,
            () = until(&mut newest, |newest| *newest != number) => {
                client.farewell("taken-over").await;
                return Ok(());
            }
            () = until(&mut stopping, |stops| *stops) => {
                client.farewell("shutting-down").await;
                return Ok(());
            }
        };
        let Ok(received) = received else {
            client.farewell("idle").await;
            return Ok(());
        };
        let answer = match received? {
            Ok(message) => {
                if matches!(message, ClientMessage::Act { .. }) {
                    acted_at = tokio::time::Instant::now();
                }
                react(server, &server_session, token, message).await
            }
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(reply) => {
                n_refused = 0;
                let sent = client.send_text(reply.text).await;
                // The last frames are sent before the summary is computed.
                if reply.is_last {
                    match over(server, &server_session).await {
                        Ok(over) => {
                            let text = over.to_text();
                            server_session.tell_spectators(&text);
                            client.send_text(text).await?;
                        }
                        Err(refusal) => client.refuse(server, refusal).await?,
                    }
                }
                sent?;
            }
            Err(refusal) => {
                n_refused += 1;
                let is_lost = refusal.code == RefusalCode::NotDurable;
                client.refuse(server, refusal).await?;
                if is_lost || n_refused >= MAX_REFUSALS {
                    client.farewell("refused").await;
                    return Ok(());
                }
            }
        }
    }
}

/// The reply to a message of the player.
struct Reply {
    text: String,
    /// Whether it ends the session.
    is_last: bool,
}

/// Plays an action, or answers a ping.
async fn react(
    server: &Arc<Server>,
    server_session: &Arc<ServerSession>,
    token: &str,
    message: ClientMessage,
) -> Result<Reply, Refusal> {
    if !server_session
        .rate_limiter
        .lock()
        .expect("no thread panics while it holds this lock")
        .allows(Instant::now())
    {
        return Err(Refusal::of(RefusalCode::TooFast, "at most 30 messages a second".to_owned()));
    }
    server_session.touch();
    let (seq, action, at_ms) = match message {
        ClientMessage::Act { seq, action, at_ms, .. } => (seq, action, at_ms),
        ClientMessage::Ping { .. } => {
            return Ok(Reply { text: ServerMessage::Pong { v: VERSION }.to_text(), is_last: false });
        }
        ClientMessage::Hello { .. } | ClientMessage::Watch { .. } => {
            return Err(Refusal::of(RefusalCode::Malformed, "`hello` was already received".to_owned()));
        }
    };
    let (session_to_play, server_to_ask) = (Arc::clone(server_session), Arc::clone(server));
    let step = move || -> Result<_, Refusal> {
        let (server_session, server) = (session_to_play, server_to_ask);
        let mut session = server_session.lock()?;
        let mut result = session.act(seq, action)?;
        server_session.hide_beliefs(&mut result.frames);
        // Queued while the session is locked, so that steps are stored in order.
        let stored = match (&server.study, server_session.study_encounter) {
            (Some(study), Some(encounter)) => Some(study.store_step(encounter, &session, &result, at_ms)),
            _ => None,
        };
        let is_over = session.is_over();
        server_session.update_spectator_snapshot(&session);
        drop(session);
        if is_over {
            server_session.end();
        }
        let frames = ServerMessage::Frames { v: VERSION, seq: seq + 1, frames: result.frames };
        Ok((frames.to_text(), is_over, stored))
    };
    let (text, is_last, stored) = server.compute(step).await?;
    if let Some(stored) = stored
        && let Err(error) = stored.await
    {
        // The step is not in the file, so it does not count: the session is restored from the file.
        server.sessions.remove(token);
        let message =
            format!("the step could not be saved ({error}); reload to continue from the last saved step");
        return Err(Refusal::of(RefusalCode::NotDurable, message));
    }
    server_session.tell_spectators(&text);
    Ok(Reply { text, is_last })
}

/// Sends the state of the session to a client, and returns whether it says that the player is connected. `None` if the session
/// is broken.
async fn greet(
    server: &Arc<Server>,
    client: &mut Client,
    server_session: &Arc<ServerSession>,
    is_spectator: bool,
) -> Result<Option<bool>, Disconnected> {
    let session_to_read = Arc::clone(server_session);
    let welcome = match server.compute(move || session_to_read.welcome(is_spectator)).await {
        Ok(welcome) => welcome,
        Err(refusal) => {
            client.refuse(server, refusal).await?;
            return Ok(None);
        }
    };
    let (is_over, is_player_here) = (welcome.is_over, welcome.is_player_here);
    client.send(&ServerMessage::Welcome(Box::new(welcome))).await?;
    if is_over && let Ok(over) = over(server, server_session).await {
        client.send(&over).await?;
    }
    Ok(Some(is_player_here))
}

/// The last message of a session, with the summary if it may be shown.
async fn over(server: &Server, server_session: &Arc<ServerSession>) -> Result<ServerMessage, Refusal> {
    if server_session.belief_visibility == BeliefVisibility::Never {
        return Ok(ServerMessage::Over { v: VERSION, summary: None, link: None });
    }
    let session_to_read = Arc::clone(server_session);
    let missing = move || -> Result<_, Refusal> {
        let session = session_to_read.lock()?;
        Ok(session.missing_oracle_score().map(|tuple| (Arc::clone(session.agent()), tuple)))
    };
    if let Some((agent, tuple)) = server.compute(missing).await? {
        // The oracle plays whole encounters: one score at a time, without a lock on the session.
        let _permit = server.oracles.acquire().await.map_err(|_| Refusal::broken())?;
        server.compute(move || Ok(agent.oracle_score(tuple)?)).await?;
    }
    let session_to_read = Arc::clone(server_session);
    let summarise = move || -> Result<_, Refusal> {
        let session = session_to_read.lock()?;
        let (summary, link) = (Some(Box::new(session.summary()?)), Some(replay::link(&session)));
        Ok(ServerMessage::Over { v: VERSION, summary, link })
    };
    server.compute(summarise).await
}

fn full(clients: &str, reason: &str) -> Refusal {
    let message = format!("too many {clients} are connected: {reason}; try again in a minute");
    Refusal::of(RefusalCode::Full, message)
}

async fn watch(
    server: &Arc<Server>,
    client: &mut Client,
    token: &str,
    arrival: Place,
) -> Result<(), Disconnected> {
    let server_session = if is_token(token) { server.sessions.of_spectator(token) } else { None };
    let Some(server_session) = server_session else {
        return client.refuse(server, Refusal::no_such_session()).await;
    };
    let Ok(_spectator_place) = Arc::clone(&server_session.spectators).try_acquire_owned() else {
        let reason = format!("all {} of this session are in use", server.config.max_spectators_per_session);
        return client.refuse(server, full("spectators", &reason)).await;
    };
    let _place = match server.quotas.spectators.take(Some(client.address)) {
        Ok(place) => place,
        Err(reason) => return client.refuse(server, full("spectators", &reason)).await,
    };
    drop(arrival);
    let _connected = server_session.connect();
    let mut feed = server_session.feed.subscribe();
    let mut players = server_session.n_players.subscribe();
    let Some(mut is_player_here) = greet(server, client, &server_session, true).await? else { return Ok(()) };
    let mut stopping = server.stopping.clone();
    let mut rate_limiter = RateLimiter::new(MESSAGES_PER_SECOND, MESSAGES_PER_SECOND, Instant::now());
    loop {
        tokio::select! {
            sent = feed.recv() => match sent {
                Ok(text) => client.send_text(text.to_string()).await?,
                Err(RecvError::Lagged(_)) => match greet(server, client, &server_session, true).await? {
                    Some(is_here) => is_player_here = is_here,
                    None => return Ok(()),
                },
                Err(RecvError::Closed) => return Ok(()),
            },
            () = until(&mut players, move |n| (*n > 0) != is_player_here) => {
                is_player_here = !is_player_here;
                client.send(&ServerMessage::Presence { v: VERSION, is_player_here }).await?;
            }
            received = tokio::time::timeout(server.config.idle, client.receive(server)) => {
                let Ok(received) = received else {
                    client.farewell("idle").await;
                    return Ok(());
                };
                if !rate_limiter.allows(Instant::now()) {
                    client.farewell("refused").await;
                    return Ok(());
                }
                match received? {
                    Ok(ClientMessage::Ping { .. }) => client.send(&ServerMessage::Pong { v: VERSION }).await?,
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
