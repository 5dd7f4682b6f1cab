//! The server: pages and sessions over HTTP, play over WebSockets, on this machine unless somebody says otherwise.
//!
//! Who may come in is in `guard`, who sits where in `lobby`, the talk with one client in `socket`, the rest of the addresses in
//! `api`. Encounters themselves are in `crate::session`; what a study adds is in `crate::study`.

mod api;
mod guard;
mod lobby;
mod socket;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::offer::Offers;
use crate::study::{Study, StudyError};
use lobby::Lobby;

pub(crate) use guard::Bucket;
pub(crate) use lobby::Room;

/// How the server is to be run.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address to listen on.
    pub address: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// Names under which the server may be reached beside the address itself.
    pub hosts: Vec<String>,
    /// The most encounters at a time.
    pub most_sessions: usize,
    /// A player who does nothing for so long is let go.
    pub idle: Duration,
    /// An encounter that nobody is at is forgotten after so long. A study's comes back from its file.
    pub forgotten: Duration,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8080,
            hosts: Vec::new(),
            most_sessions: 200,
            idle: Duration::from_secs(15 * 60),
            forgotten: Duration::from_secs(60 * 60),
        }
    }
}

/// Bodies of requests are at most so long.
const MOST_BODY_BYTES: usize = 64 * 1024;

/// Is told, line by line, what was refused.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything that the handlers share.
pub(crate) struct Server {
    pub(crate) offers: Arc<Offers>,
    config: ServerConfig,
    pub(crate) lobby: Lobby,
    study: Option<Study>,
    /// Sockets that may still be opened.
    sockets: Arc<Semaphore>,
    /// Replays are played again one at a time.
    replays: Semaphore,
    stopping: watch::Receiver<bool>,
    log: guard::CalmLog,
}

/// Serves until the process is asked to stop. `ready` is told where.
pub fn serve(
    offers: Offers,
    config: ServerConfig,
    study: Option<Study>,
    log: Log,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::NoRuntime)?;
    runtime.block_on(run(offers, config, study, log, ready, stop_signal()))
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The system gave no threads.
    #[error("the system refused what a server needs: {0}")]
    NoRuntime(std::io::Error),
    /// The address is taken or not ours.
    #[error(
        "cannot listen on {address}: {source}; choose another --port or --bind, or end what listens there"
    )]
    CannotListen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The server broke down.
    #[error("the server stopped: {0}")]
    Stopped(std::io::Error),
    /// The study's file cannot be used.
    #[error(transparent)]
    Study(#[from] StudyError),
}

/// The same within a runtime of somebody else's, until `stopped` is done.
pub async fn run(
    offers: Offers,
    config: ServerConfig,
    study: Option<Study>,
    log: Log,
    ready: impl FnOnce(SocketAddr),
    stopped: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let address = SocketAddr::new(config.address, config.port);
    let cannot_listen = |source| ServeError::CannotListen { address, source };
    let listener = TcpListener::bind(address).await.map_err(cannot_listen)?;
    let bound = listener.local_addr().map_err(cannot_listen)?;
    let (stop, stopping) = watch::channel(false);
    let server = Arc::new(Server {
        offers: Arc::new(offers),
        lobby: Lobby::new(config.most_sessions),
        // A player and a few spectators for every encounter.
        sockets: Arc::new(Semaphore::new(config.most_sessions.saturating_mul(4).max(16))),
        replays: Semaphore::new(1),
        stopping,
        log: guard::CalmLog::new(log),
        study,
        config,
    });
    let sweeper = tokio::spawn(sweep(Arc::clone(&server)));
    let listener = listener.tap_io(|stream| {
        // Replies are small and awaited; waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
    });
    ready(bound);
    let service = router(server).into_make_service();
    let mut asked_to_stop = stop.subscribe();
    let serving = axum::serve(listener, service).with_graceful_shutdown(async move {
        let _ = asked_to_stop.wait_for(|stops| *stops).await;
    });
    let serving = tokio::spawn(serving.into_future());
    stopped.await;
    let _ = stop.send(true);
    sweeper.abort();
    // Everybody has been told; who does not hang up is left.
    match tokio::time::timeout(Duration::from_secs(3), serving).await {
        Ok(Ok(Err(error))) => Err(ServeError::Stopped(error)),
        _ => Ok(()),
    }
}

fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/", get(api::page))
        .route("/replay", get(api::page))
        .route("/study", get(api::page))
        .route("/watch/{token}", get(api::page))
        .route("/assets/{*path}", get(api::asset))
        .route("/api/health", get(api::health))
        .route("/api/offers", get(api::offers))
        .route("/api/offers/{id}/map", get(api::latent_map))
        .route("/api/sessions", post(api::begin))
        .route("/api/replay", post(api::replay))
        .route("/api/study/join", post(api::study_join))
        .route("/api/study/next", post(api::study_next))
        .route("/ws", get(socket::upgrade))
        .fallback(api::not_found)
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&server), guard::guard))
        .with_state(server)
}

async fn sweep(server: Arc<Server>) {
    let mut beat = tokio::time::interval(Duration::from_secs(20));
    loop {
        beat.tick().await;
        server.lobby.forget(server.config.forgotten);
    }
}

#[cfg(unix)]
async fn stop_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

#[cfg(not(unix))]
async fn stop_signal() {
    let _ = tokio::signal::ctrl_c().await;
}
