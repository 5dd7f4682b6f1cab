//! The server: pages and sessions over HTTP, play over WebSockets, on this machine unless somebody says otherwise.
//!
//! Connections and their timeouts are in `listen`, limits per address in `quota`, checks of requests in `guard`, sessions in memory
//! in `registry`, the talk with one client in `socket`, the rest of the addresses in `api`. Encounters themselves are in
//! `crate::session`; what a study adds is in `crate::study`.

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
            max_sessions_per_address: 50,
            max_spectators_per_session: 30,
            proxy: None,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            connection_age: Duration::from_secs(120),
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
    pub(crate) offers: Arc<AgentCatalog>,
    config: ServerConfig,
    pub(crate) lobby: SessionRegistry,
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

/// What clients hold open, by kind. The kinds have quotas of their own, so that spectators and unfinished requests take no
/// player's place; together they stay below the usual limit of 1024 open files at the default of 200 sessions.
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
        // More than any system has connections.
        let all = config.most_sessions.min(1 << 24);
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
    /// Runs work that needs a core for a while, such as a decision of an agent, on a thread of its own: the threads that serve
    /// connections stay free for the other clients. A panic of the work is a refusal.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Refusal::broken()))
    }
}

/// Serves until the process is asked to stop. `ready` is told where.
pub fn serve(
    offers: AgentCatalog,
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
    /// The study's file cannot be used.
    #[error(transparent)]
    Study(#[from] StudyError),
}

/// The same within a runtime of somebody else's, until `stopped` is done.
pub async fn run(
    offers: AgentCatalog,
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
        lobby: SessionRegistry::new(config.most_sessions, config.max_sessions_per_address),
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
    // Every client is told, and has a moment to close its connection.
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
        .route("/api/offers", get(api::offers))
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

async fn sweep(server: Arc<Server>) {
    let mut beat = tokio::time::interval(Duration::from_secs(20));
    loop {
        beat.tick().await;
        server.lobby.forget(server.config.forgotten);
        server.new_sessions.forget_full(Instant::now());
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
