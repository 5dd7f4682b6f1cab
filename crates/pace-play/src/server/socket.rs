//! The talk with one client over a WebSocket: a player who acts, or a spectator who is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::broadcast::error::RecvError;

use super::Server;
use super::lobby::Room;
use crate::replay;
use crate::token::is_token;
use crate::wire::{
    ClientMessage, MOST_MESSAGE_BYTES, MindPolicy, Refusal, RefusalCode, ServerMessage, VERSION,
};

/// A client that has not said who it is by then is let go.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// A client that does not take an answer for so long is let go.
const SLOWEST: Duration = Duration::from_secs(10);
/// So many refusals in a row, and the client is let go.
const PATIENCE: u32 = 100;

pub(super) async fn upgrade(State(server): State<Arc<Server>>, upgrade: WebSocketUpgrade) -> Response {
    let Ok(permit) = Arc::clone(&server.sockets).try_acquire_owned() else {
        server.log.say("refused a socket: too many are open");
        return (StatusCode::SERVICE_UNAVAILABLE, "too many connections; try again in a minute\n")
            .into_response();
    };
    upgrade.max_message_size(MOST_MESSAGE_BYTES).max_frame_size(MOST_MESSAGE_BYTES).on_upgrade(
        move |socket| async move {
            talk(&server, Client { socket }).await;
            drop(permit);
        },
    )
}

struct Client {
    socket: WebSocket,
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

    /// The next message; pings of the transport are its own business.
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
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            };
        }
    }
}

async fn talk(server: &Arc<Server>, mut client: Client) {
    let introduction = tokio::time::timeout(INTRODUCTION, client.hear(server)).await;
    let outcome = match introduction {
        Ok(Ok(Ok(ClientMessage::Hello { token, .. }))) => play(server, &mut client, &token).await,
        Ok(Ok(Ok(ClientMessage::Watch { token, .. }))) => watch(server, &mut client, &token).await,
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
async fn until<T>(value: &mut tokio::sync::watch::Receiver<T>, is_so: impl FnMut(&T) -> bool) {
    // A sender that is gone changes nothing any more.
    if value.wait_for(is_so).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn find_room(server: &Arc<Server>, token: &str) -> Result<Arc<Room>, Refusal> {
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

async fn play(server: &Arc<Server>, client: &mut Client, token: &str) -> Result<(), Gone> {
    let room = match find_room(server, token).await {
        Ok(room) => room,
        Err(refusal) => return client.refuse(server, refusal).await,
    };
    let _presence = room.enter();
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
            Ok(texts) => {
                n_refused = 0;
                for text in texts {
                    client.tell_text(text).await?;
                }
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

/// What the player is told, in order.
async fn react(
    server: &Arc<Server>,
    room: &Arc<Room>,
    token: &str,
    message: ClientMessage,
) -> Result<Vec<String>, Refusal> {
    if !room.bucket.lock().expect("nobody panics with it").lets_through(Instant::now()) {
        return Err(Refusal::of(RefusalCode::TooFast, "at most 30 messages a second".to_owned()));
    }
    room.touch();
    let (seq, action, at_ms) = match message {
        ClientMessage::Act { seq, action, at_ms, .. } => (seq, action, at_ms),
        ClientMessage::Ping { .. } => return Ok(vec![ServerMessage::Pong { v: VERSION }.to_text()]),
        ClientMessage::Hello { .. } | ClientMessage::Watch { .. } => {
            return Err(Refusal::of(RefusalCode::Malformed, "you have been greeted before".to_owned()));
        }
    };
    let (frames, is_over, kept) = {
        let mut session = room.session()?;
        let mut answer = session.act(seq, action)?;
        room.hide_mind(&mut answer.frames);
        // Handed over while nobody else can act, so that steps are kept in their order.
        let kept = match (&server.study, room.recorded_as) {
            (Some(study), Some(encounter)) => Some(study.keep_step(encounter, &session, &answer, at_ms)),
            _ => None,
        };
        (answer.frames, session.is_over(), kept)
    };
    if let Some(kept) = kept
        && let Err(error) = kept.await
    {
        // The step is not in the file, so it did not happen: the encounter is built anew from what is.
        server.lobby.remove(token);
        let message =
            format!("the step could not be kept ({error}); reload to go on from the last one that was");
        return Err(Refusal::of(RefusalCode::NotDurable, message));
    }
    let mut texts = vec![ServerMessage::Frames { v: VERSION, seq: seq + 1, frames }.to_text()];
    if is_over {
        texts.push(over(room)?.to_text());
    }
    if room.feed.receiver_count() > 0 {
        for text in &texts {
            // Nobody is watching any more: so be it.
            let _ = room.feed.send(Arc::from(text.as_str()));
        }
    }
    Ok(texts)
}

/// Tells a client where the encounter is; none if it is broken.
async fn greet(
    server: &Arc<Server>,
    client: &mut Client,
    room: &Room,
    is_spectator: bool,
) -> Result<Option<()>, Gone> {
    let welcome = match room.welcome(is_spectator) {
        Ok(welcome) => welcome,
        Err(refusal) => {
            client.refuse(server, refusal).await?;
            return Ok(None);
        }
    };
    let is_over = welcome.is_over;
    client.tell(&ServerMessage::Welcome(Box::new(welcome))).await?;
    if is_over && let Ok(over) = over(room) {
        client.tell(&over).await?;
    }
    Ok(Some(()))
}

fn over(room: &Room) -> Result<ServerMessage, Refusal> {
    let session = room.session()?;
    let shows = room.mind != MindPolicy::Never;
    let summary = if shows { Some(Box::new(session.summary()?)) } else { None };
    Ok(ServerMessage::Over { v: VERSION, summary, link: shows.then(|| replay::link(&session)) })
}

async fn watch(server: &Arc<Server>, client: &mut Client, token: &str) -> Result<(), Gone> {
    let room = if is_token(token) { server.lobby.of_spectator(token) } else { None };
    let Some(room) = room else {
        return client.refuse(server, Refusal::no_such_session()).await;
    };
    let _presence = room.enter();
    let mut feed = room.feed.subscribe();
    if greet(server, client, &room, true).await?.is_none() {
        return Ok(());
    }
    let mut stopping = server.stopping.clone();
    let mut bucket = super::Bucket::new(super::lobby::MESSAGES_PER_SECOND, Instant::now());
    loop {
        tokio::select! {
            told = feed.recv() => match told {
                Ok(text) => client.tell_text(text.to_string()).await?,
                Err(RecvError::Lagged(_)) => {
                    if greet(server, client, &room, true).await?.is_none() {
                        return Ok(());
                    }
                }
                Err(RecvError::Closed) => return Ok(()),
            },
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
