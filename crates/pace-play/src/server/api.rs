//! HTTP requests: the page, the list of agents, new sessions, replays, and the stages of a study.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{FromRequest, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use pace_games::Split;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Server;
use super::listen::ClientAddress;
use super::registry::ServerSession;
use crate::assets::find_asset;
use crate::catalog::PlayableAgent;
use crate::error::PlayError;
use crate::replay::{self, SessionReplay};
use crate::session::{Detail, Session, SessionConfig, SessionFrame, Summary};
use crate::study::{JoinRequest, NextRequest};
use crate::token::{fresh_seed, fresh_token};
use crate::wire::{BeliefVisibility, Refusal, RefusalCode, SessionDescription, VERSION};

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
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}

pub(super) async fn health(State(server): State<Arc<Server>>) -> Json<Value> {
    Json(
        json!({ "v": VERSION, "sessions": server.sessions.len(), "max_sessions": server.config.max_sessions }),
    )
}

/// The games and agents that can be played.
pub(super) async fn list_agents(State(server): State<Arc<Server>>) -> Json<Value> {
    let agent_json = |agent: &Arc<PlayableAgent>| {
        let spec = agent.game.spec();
        json!({
            "id": agent.id,
            "label": agent.label,
            "game": spec.id,
            "is_trained": agent.is_trained(),
            "has_opinions": !agent.slots.is_empty(),
            "has_map": agent.map.is_some(),
            "n_episodes": spec.episodes_per_encounter,
            "roles": spec.peer_roles,
            "is_simultaneous": agent.is_simultaneous,
        })
    };
    // The agents of a study are not listed: participants are not told which agent they meet.
    let all = if server.study.is_some() { &[] } else { server.catalog.all() };
    let mut games: Vec<Value> = Vec::new();
    for agent in all {
        let spec = agent.game.spec();
        if games.iter().all(|game| game["id"] != spec.id) {
            games.push(
                json!({ "id": spec.id, "title": spec.title, "nouns": spec.nouns, "metric": spec.metric }),
            );
        }
    }
    Json(json!({
        "v": VERSION,
        "games": games,
        "offers": all.iter().map(agent_json).collect::<Vec<_>>(),
        "is_study": server.study.is_some(),
    }))
}

/// The training peers on the map of an agent's latent space.
pub(super) async fn latent_map(State(server): State<Arc<Server>>, Path(id): Path<String>) -> Response {
    if server.study.as_ref().is_some_and(|study| !study.shows_beliefs()) {
        return refuse(&server, StatusCode::FORBIDDEN, &closed_in_studies("maps of agents"));
    }
    let Ok(agent) = server.catalog.find(&id) else { return not_found().await };
    // Without a map the list of landmarks is empty; the request is valid.
    let landmarks = agent.map.as_ref().map_or(&[][..], |map| &map.landmarks);
    let kinds: Vec<Vec<String>> =
        agent.game.pool(Split::Train).tuples.into_iter().map(|tuple| tuple.kinds).collect();
    Json(json!({ "v": VERSION, "landmarks": landmarks, "kinds": kinds, "slots": agent.slots }))
        .into_response()
}

/// The request for a new session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BeginRequest {
    v: u32,
    #[serde(rename = "offer")]
    agent: String,
    slot: usize,
    n_episodes: usize,
    #[serde(rename = "mind")]
    belief_visibility: BeliefVisibility,
    /// Random seed. Default: a new one.
    #[serde(default)]
    seed: Option<u64>,
    /// Index of the test tuple. Default: chosen by the seed.
    #[serde(default)]
    tuple: Option<usize>,
}

/// The tokens of a new session.
#[derive(Debug, Serialize)]
struct BeginResponse {
    v: u32,
    token: String,
    #[serde(rename = "watch")]
    spectator_token: String,
}

pub(super) async fn begin(
    State(server): State<Arc<Server>>,
    ClientAddress(address): ClientAddress,
    Body(request): Body<BeginRequest>,
) -> Response {
    if server.study.is_some() {
        let message = "this server runs a study; use your personal link".to_owned();
        return refuse(&server, StatusCode::FORBIDDEN, &Refusal::of(RefusalCode::Forbidden, message));
    }
    match open(&server, address, request).await {
        Ok(response) => Json(response).into_response(),
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

async fn open(server: &Server, address: IpAddr, request: BeginRequest) -> Result<BeginResponse, Refusal> {
    let BeginRequest { v, agent, slot, n_episodes, belief_visibility, seed, tuple } = request;
    check_version(v)?;
    let agent = Arc::clone(server.catalog.find(&agent)?);
    let seed = seed.unwrap_or_else(fresh_seed) % crate::session::SEED_LIMIT;
    let tuple = tuple.unwrap_or((seed % agent.game.n_tuples(Split::Test) as u64) as usize);
    let config = SessionConfig { agent: agent.id.clone(), slot, tuple, n_episodes, seed };
    config.check(&agent)?;
    if !server.new_sessions.allows(address, Instant::now()) {
        let message = format!(
            "at most {} new sessions a minute from one address; wait a moment",
            server.config.max_sessions_per_address
        );
        return Err(Refusal::of(RefusalCode::TooFast, message));
    }
    // Checked before the agent computes its first decision.
    server.sessions.check_capacity(address)?;
    let (session, frames) = server.compute(move || Ok(Session::begin(&agent, config, Detail::Seen)?)).await?;
    let (token, spectator_token) = (fresh_token(), fresh_token());
    let server_session =
        ServerSession::new(session, Some(frames), belief_visibility, Some(spectator_token.clone()), None)
            .started_by(address)
            .with_spectators(server.config.max_spectators_per_session);
    server.sessions.insert(&token, server_session)?;
    Ok(BeginResponse { v: VERSION, token, spectator_token })
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

/// Plays the session of a link again.
pub(super) async fn replay(
    State(server): State<Arc<Server>>,
    Body(request): Body<ReplayRequest>,
) -> Response {
    if let Err(refusal) = check_version(request.v) {
        return refuse(&server, StatusCode::BAD_REQUEST, &refusal);
    }
    if let Some(study) = &server.study
        && !study.may_show_replay(&server.catalog, &request.link).await
    {
        let refusal = closed_in_studies("replays of rounds other than your own");
        return refuse(&server, StatusCode::FORBIDDEN, &refusal);
    }
    // Replays are computed one at a time, on a thread that serves no connections.
    let Ok(_permit) = server.replays.acquire().await else { return not_found().await };
    let catalog = Arc::clone(&server.catalog);
    let replayed = tokio::task::spawn_blocking(move || {
        let SessionReplay { config, frames, summary, is_over } = replay::replay(&catalog, &request.link)?;
        let description = SessionDescription::new(catalog.find(&config.agent)?, &config);
        Ok::<_, PlayError>(ReplayResponse { v: VERSION, description, frames, summary, is_over })
    });
    match replayed.await {
        Ok(Ok(response)) => Json(response).into_response(),
        Ok(Err(error)) => refuse(&server, StatusCode::BAD_REQUEST, &error.into()),
        Err(_) => {
            let message = "the encounter could not be played again".to_owned();
            refuse(&server, StatusCode::INTERNAL_SERVER_ERROR, &Refusal::of(RefusalCode::Malformed, message))
        }
    }
}

/// A session with all its frames.
#[derive(Debug, Serialize)]
struct ReplayResponse {
    v: u32,
    #[serde(flatten)]
    description: SessionDescription,
    frames: Vec<SessionFrame>,
    summary: Summary,
    is_over: bool,
}

pub(super) async fn study_join(State(server): State<Arc<Server>>, Body(join): Body<JoinRequest>) -> Response {
    let Some(study) = &server.study else { return not_found().await };
    study_response(&server, study.join(&server, join).await)
}

pub(super) async fn study_next(State(server): State<Arc<Server>>, Body(next): Body<NextRequest>) -> Response {
    let Some(study) = &server.study else { return not_found().await };
    study_response(&server, study.next(&server, next).await)
}

fn study_response(server: &Server, state: Result<Value, Refusal>) -> Response {
    match state {
        Ok(state) => Json(state).into_response(),
        Err(refusal) => refuse(server, StatusCode::BAD_REQUEST, &refusal),
    }
}

/// The JSON body of a request. An invalid body is refused with a message of the protocol.
pub(super) struct Body<T>(T);

impl<T: DeserializeOwned> FromRequest<Arc<Server>> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, server: &Arc<Server>) -> Result<Body<T>, Response> {
        let body = Json::<T>::from_request(request, server).await;
        body.map(|Json(value)| Body(value)).map_err(|rejection| {
            let message = "this is not a request of the protocol".to_owned();
            refuse(server, rejection.status(), &Refusal::of(RefusalCode::Malformed, message))
        })
    }
}

fn refuse(server: &Server, status: StatusCode, refusal: &Refusal) -> Response {
    server.log.write(&format!("refused a request: {}", refusal.message));
    (status, Json(json!({ "v": VERSION, "code": refusal.code, "message": refusal.message }))).into_response()
}
