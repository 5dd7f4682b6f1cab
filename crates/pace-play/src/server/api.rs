//! Everything that is not play: the page, what is on offer, new encounters, replays, the stages of a study.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pace_games::Split;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Server;
use super::listen::ClientAddress;
use super::registry::ServerSession;
use crate::assets::find_asset;
use crate::catalog::PlayableAgent;
use crate::replay;
use crate::session::{Detail, Session, SessionConfig};
use crate::study::{Join, Next};
use crate::token::{fresh_seed, fresh_token};
use crate::wire::{BeliefVisibility, Refusal, RefusalCode, VERSION};

pub(super) async fn page() -> Response {
    asset(Path("index.html".to_owned())).await
}

pub(super) async fn asset(Path(path): Path<String>) -> Response {
    match find_asset(&path) {
        Some(asset) => {
            let headers = [(header::CONTENT_TYPE, asset.media_type()), (header::CACHE_CONTROL, "no-cache")];
            (headers, asset.content.as_str()).into_response()
        }
        None => not_found().await,
    }
}

pub(super) async fn not_found() -> Response {
    (StatusCode::NOT_FOUND, "there is nothing here\n").into_response()
}

pub(super) async fn health(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(
        json!({ "v": VERSION, "sessions": server.lobby.len(), "most_sessions": server.config.most_sessions }),
    )
}

/// What can be played here.
pub(super) async fn offers(State(server): State<Arc<Server>>) -> Json<Value> {
    let of_offer = |offer: &Arc<PlayableAgent>| {
        let spec = offer.game.spec();
        json!({
            "id": offer.id,
            "label": offer.label,
            "game": spec.id,
            "is_trained": offer.is_trained(),
            "has_opinions": !offer.slots.is_empty(),
            "has_map": offer.map.is_some(),
            "n_episodes": spec.episodes_per_encounter,
            "roles": spec.peer_roles,
            "is_simultaneous": offer.is_simultaneous,
        })
    };
    // In a study there is nothing to choose, and nothing to be known about its agents.
    let all = if server.study.is_some() { &[] } else { server.offers.all() };
    let mut games: Vec<Value> = Vec::new();
    for offer in all {
        let spec = offer.game.spec();
        if games.iter().all(|game| game["id"] != spec.id) {
            games.push(
                json!({ "id": spec.id, "title": spec.title, "nouns": spec.nouns, "metric": spec.metric }),
            );
        }
    }
    Json(json!({
        "v": VERSION,
        "games": games,
        "offers": all.iter().map(of_offer).collect::<Vec<_>>(),
        "is_study": server.study.is_some(),
    }))
}

/// Where the training peers are in an agent's latent space.
pub(super) async fn latent_map(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Response {
    if server.study.as_ref().is_some_and(|study| !study.shows_minds()) {
        return refuse(&server, StatusCode::FORBIDDEN, &closed_in_studies("maps of agents"));
    }
    let Ok(offer) = server.offers.find(&id) else { return not_found().await };
    // An agent without a map has no landmarks; that is no mistake of whoever asks.
    let landmarks = offer.map.as_ref().map_or(&[][..], |map| &map.landmarks);
    let kinds: Vec<Vec<String>> =
        offer.game.pool(Split::Train).tuples.into_iter().map(|tuple| tuple.kinds).collect();
    Json(json!({ "v": VERSION, "landmarks": landmarks, "kinds": kinds, "slots": offer.slots }))
        .into_response()
}

/// What a person asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BeginRequest {
    v: u32,
    offer: String,
    slot: usize,
    n_episodes: usize,
    mind: BeliefVisibility,
    /// For tests and for playing the same again; drawn if it is missing.
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    tuple: Option<usize>,
}

/// A new encounter.
#[derive(Debug, Serialize)]
struct Begun {
    v: u32,
    token: String,
    watch: String,
}

pub(super) async fn begin(
    State(server): State<Arc<Server>>,
    ClientAddress(address): ClientAddress,
    body: Result<Json<BeginRequest>, JsonRejection>,
) -> Response {
    let request = match read(body) {
        Ok(request) => request,
        Err((status, refusal)) => return refuse(&server, status, &refusal),
    };
    if server.study.is_some() {
        let message = "this server runs a study; use your personal link".to_owned();
        return refuse(&server, StatusCode::FORBIDDEN, &Refusal::of(RefusalCode::Forbidden, message));
    }
    match open(&server, address, request).await {
        Ok(begun) => Json(begun).into_response(),
        Err(refusal) => {
            let status = match refusal.code {
                RefusalCode::Full => StatusCode::SERVICE_UNAVAILABLE,
                RefusalCode::TooFast => StatusCode::TOO_MANY_REQUESTS,
                RefusalCode::Broken => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::BAD_REQUEST,
            };
            refuse(&server, status, &refusal)
        }
    }
}

async fn open(server: &Server, address: IpAddr, request: BeginRequest) -> Result<Begun, Refusal> {
    let BeginRequest { v, offer, slot, n_episodes, mind, seed, tuple } = request;
    check_version(v)?;
    let offer = Arc::clone(server.offers.find(&offer)?);
    let seed = seed.unwrap_or_else(fresh_seed) % crate::session::SEED_LIMIT;
    let tuple = tuple.unwrap_or((seed % offer.game.n_tuples(Split::Test) as u64) as usize);
    let booking = SessionConfig { offer: offer.id.clone(), slot, tuple, n_episodes, seed };
    booking.check(&offer)?;
    if !server.new_sessions.lets_through(address, Instant::now()) {
        let message = format!(
            "at most {} new sessions a minute from one address; wait a moment",
            server.config.max_sessions_per_address
        );
        return Err(Refusal::of(RefusalCode::TooFast, message));
    }
    // A session that has no place is not worth an agent's first decision.
    server.lobby.check_room(address)?;
    let (session, frames) =
        server.compute(move || Ok(Session::begin(&offer, booking, Detail::Seen)?)).await?;
    let (token, watch) = (fresh_token(), fresh_token());
    let room = ServerSession::new(session, Some(frames), mind, Some(watch.clone()), None)
        .started_by(address)
        .with_spectators(server.config.max_spectators_per_session);
    server.lobby.take_in(&token, room)?;
    Ok(Begun { v: VERSION, token, watch })
}

fn check_version(v: u32) -> Result<(), Refusal> {
    if v == VERSION {
        return Ok(());
    }
    Err(Refusal::other_version(v))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayRequest {
    v: u32,
    link: String,
}

fn closed_in_studies(what: &str) -> Refusal {
    Refusal::of(RefusalCode::Forbidden, format!("{what} are closed while a study is on"))
}

/// An encounter, played again from its link.
pub(super) async fn replay(
    State(server): State<Arc<Server>>,
    body: Result<Json<ReplayRequest>, JsonRejection>,
) -> Response {
    let request = match read(body) {
        Ok(request) => request,
        Err((status, refusal)) => return refuse(&server, status, &refusal),
    };
    if let Err(refusal) = check_version(request.v) {
        return refuse(&server, StatusCode::BAD_REQUEST, &refusal);
    }
    if let Some(study) = &server.study
        && !study.shows_replay(&server.offers, &request.link).await
    {
        let refusal = closed_in_studies("replays of rounds other than your own");
        return refuse(&server, StatusCode::FORBIDDEN, &refusal);
    }
    // It takes a moment of a core, so one after the other, and beside the ones who play.
    let Ok(_permit) = server.replays.acquire().await else { return not_found().await };
    let offers = Arc::clone(&server.offers);
    let played = tokio::task::spawn_blocking(move || replay::replay(&offers, &request.link)).await;
    match played {
        Ok(Ok(replay)) => {
            let Ok(offer) = server.offers.find(&replay.booking.offer) else { return not_found().await };
            let spec = offer.game.spec();
            let booking = &replay.booking;
            let part = offer.part(booking.tuple, booking.slot);
            Json(json!({
                "v": VERSION,
                "game": spec.id,
                "title": spec.title,
                "nouns": spec.nouns,
                "roles": spec.peer_roles,
                "setting": offer.game.constants(),
                "action_names": spec.action_names,
                "is_simultaneous": offer.is_simultaneous,
                "offer": offer.id,
                "label": offer.label,
                "slot": booking.slot,
                "role": spec.peer_roles[booking.slot],
                "part": part,
                "n_episodes": booking.n_episodes,
                "mind_slots": offer.slots,
                "frames": replay.frames,
                "summary": replay.summary,
                "is_over": replay.is_over,
            }))
            .into_response()
        }
        Ok(Err(error)) => refuse(&server, StatusCode::BAD_REQUEST, &error.into()),
        Err(_) => {
            let message = "the encounter could not be played again".to_owned();
            refuse(&server, StatusCode::INTERNAL_SERVER_ERROR, &Refusal::of(RefusalCode::Malformed, message))
        }
    }
}

pub(super) async fn study_join(
    State(server): State<Arc<Server>>,
    body: Result<Json<Join>, JsonRejection>,
) -> Response {
    let Some(study) = &server.study else { return not_found().await };
    match read(body) {
        Ok(join) => answer(&server, study.join(&server, join).await),
        Err((status, refusal)) => refuse(&server, status, &refusal),
    }
}

pub(super) async fn study_next(
    State(server): State<Arc<Server>>,
    body: Result<Json<Next>, JsonRejection>,
) -> Response {
    let Some(study) = &server.study else { return not_found().await };
    match read(body) {
        Ok(next) => answer(&server, study.next(&server, next).await),
        Err((status, refusal)) => refuse(&server, status, &refusal),
    }
}

fn answer(server: &Server, answer: Result<Value, Refusal>) -> Response {
    match answer {
        Ok(value) => Json(value).into_response(),
        Err(refusal) => refuse(server, StatusCode::BAD_REQUEST, &refusal),
    }
}

fn read<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, (StatusCode, Refusal)> {
    body.map(|Json(value)| value).map_err(|rejection| {
        let message = "this is not a request of the protocol".to_owned();
        (rejection.status(), Refusal::of(RefusalCode::Malformed, message))
    })
}

fn refuse(server: &Server, status: StatusCode, refusal: &Refusal) -> Response {
    server.log.say(&format!("refused a request: {}", refusal.message));
    (status, Json(json!({ "v": VERSION, "code": refusal.code, "message": refusal.message }))).into_response()
}
