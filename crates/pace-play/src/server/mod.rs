//! The play server: pages and requests over HTTP, play over WebSockets.
//!
//! `listen` accepts connections, `quota` limits them per address, `guard` checks requests, `registry` keeps sessions in memory,
//! `socket` serves the WebSocket of a client, and `api` all other paths. Encounters are in `crate::session`, studies in
//! `crate::study`.

mod api;
mod guard;
mod listen;
mod quota;
mod registry;
mod socket;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::middleware;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::catalog::AgentCatalog;
use crate::study::{Study, StudyError};
use crate::wire::Refusal;
use quota::{Quota, RatePerAddress};
use registry::SessionRegistry;

pub(crate) use guard::RateLimiter;
pub(crate) use registry::ServerSession;

/// Settings of the server. The default listens on this machine only.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address to listen on.
    pub address: IpAddr,
    /// Port; 0 takes any free port.
    pub port: u16,
    /// Host names that clients may use in addition to the address.
    pub hosts: Vec<String>,
    /// Maximum number of concurrent sessions.
    pub max_sessions: usize,
    /// Maximum number of concurrent sessions that one address has started. Connections are limited in proportion.
    pub max_sessions_per_address: usize,
    /// Maximum number of spectators of one session.
    pub max_spectators_per_session: usize,
    /// Address of a reverse proxy whose `X-Forwarded-For` names the client.
    pub proxy: Option<IpAddr>,
    /// Maximum time for the header of a request, and between two requests of one connection.
    pub header_timeout: Duration,
    /// Maximum time for the body of a request.
    pub body_timeout: Duration,
    /// Maximum age of an HTTP connection; after it only the response in progress is finished. WebSockets are not affected.
    pub connection_age: Duration,
    /// Time without an action until a player is disconnected.
    pub idle: Duration,
    /// Time without a client until a session is removed. Sessions of a study are restored from its file.
    pub session_expiry: Duration,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 8080,
            hosts: Vec::new(),
            max_sessions: 200,
            max_sessions_per_address: 50,
            max_spectators_per_session: 30,
            proxy: None,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            connection_age: Duration::from_secs(120),
            idle: Duration::from_secs(15 * 60),
            session_expiry: Duration::from_secs(60 * 60),
        }
    }
}

/// Maximum length of a request's body.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Receives the lines of the log.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// The state that all handlers share.
pub(crate) struct Server {
    pub(crate) catalog: Arc<AgentCatalog>,
    config: ServerConfig,
    pub(crate) sessions: SessionRegistry,
    study: Option<Study>,
    quotas: Quotas,
    /// New sessions per address.
    new_sessions: RatePerAddress,
    /// Replays are played again one at a time.
    replays: Semaphore,
    /// Oracle scores are computed one at a time.
    oracles: Semaphore,
    stopping: watch::Receiver<bool>,
    log: guard::RateLimitedLog,
}

/// Limits on open connections, by kind. Each kind has its own quota, so that spectators and unfinished requests take no place of
/// a player. With the default of 200 sessions, all together stay below the usual limit of 1024 open files.
struct Quotas {
    /// HTTP connections.
    connections: Arc<Quota>,
    /// WebSockets before their first message.
    arrivals: Arc<Quota>,
    /// WebSockets of players; a few more than sessions, since a new connection of a player replaces the old one.
    players: Arc<Quota>,
    /// WebSockets of spectators.
    spectators: Arc<Quota>,
}

impl Quotas {
    fn new(config: &ServerConfig) -> Quotas {
        // More connections than any system allows.
        let all = config.max_sessions.min(1 << 24);
        let one = config.max_sessions_per_address.min(all);
        Quotas {
            connections: Quota::new(all + 50, one + 14),
            arrivals: Quota::new(all + 50, one + 14),
            players: Quota::new(all + all / 4 + 25, one + one / 4 + 5),
            spectators: Quota::new(all, one),
        }
    }

    fn are_unused(&self) -> bool {
        [&self.connections, &self.arrivals, &self.players, &self.spectators]
            .iter()
            .all(|quota| quota.is_unused())
    }
}

impl Server {
    /// Runs long computations, such as the decision of an agent, on a separate thread, so that connections of other clients are not
    /// delayed. A panic becomes a refusal.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Refusal::broken()))
    }
}

/// Runs the server until the process receives a signal to stop. `ready` is called with the address.
pub fn serve(
    catalog: AgentCatalog,
    config: ServerConfig,
    study: Option<Study>,
    log: Log,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::NoRuntime)?;
    runtime.block_on(run(catalog, config, study, log, ready, stop_signal()))
}

/// An error that prevents the server from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The runtime could not be started.
    #[error("cannot start the threads of the server: {0}")]
    NoRuntime(std::io::Error),
    /// The address is in use or does not belong to this machine.
    #[error(
        "cannot listen on {address}: {source}; choose another --port or --bind, or end the program that listens there"
    )]
    CannotListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: std::io::Error,
    },
    /// The study's file cannot be used.
    #[error(transparent)]
    Study(#[from] StudyError),
}

/// Runs the server within the caller's runtime until `stopped` completes. See [`serve`].
pub async fn run(
    catalog: AgentCatalog,
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
        catalog: Arc::new(catalog),
        sessions: SessionRegistry::new(config.max_sessions, config.max_sessions_per_address),
        quotas: Quotas::new(&config),
        new_sessions: RatePerAddress::new(config.max_sessions_per_address),
        replays: Semaphore::new(1),
        oracles: Semaphore::new(1),
        stopping,
        log: guard::RateLimitedLog::new(log),
        study,
        config,
    });
    let sweeper = tokio::spawn(sweep(Arc::clone(&server)));
    let serving = tokio::spawn(listen::accept_all(listener, Arc::clone(&server)));
    ready(bound);
    stopped.await;
    let _ = stop.send(true);
    sweeper.abort();
    // Every client gets a last message and a moment to close its connection.
    let closed = async {
        let _ = serving.await;
        while !server.quotas.are_unused() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(3), closed).await;
    Ok(())
}

fn router(server: Arc<Server>) -> Router {
    Router::new()
        .route("/", get(api::page))
        .route("/replay", get(api::page))
        .route("/study", get(api::page))
        .route("/watch/{token}", get(api::page))
        .route("/assets/{*path}", get(api::asset))
        .route("/api/health", get(api::health))
        .route("/api/offers", get(api::list_agents))
        .route("/api/offers/{id}/map", get(api::latent_map))
        .route("/api/sessions", post(api::begin))
        .route("/api/replay", post(api::replay))
        .route("/api/study/join", post(api::study_join))
        .route("/api/study/next", post(api::study_next))
        .route("/ws", get(socket::upgrade))
        .fallback(api::not_found)
        .layer(middleware::from_fn_with_state(Arc::clone(&server), guard::guard))
        .with_state(server)
}

/// Removes expired sessions and rate limits from time to time.
async fn sweep(server: Arc<Server>) {
    let mut interval = tokio::time::interval(Duration::from_secs(20));
    loop {
        interval.tick().await;
        server.sessions.remove_unused(server.config.session_expiry);
        server.new_sessions.remove_full(Instant::now());
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
