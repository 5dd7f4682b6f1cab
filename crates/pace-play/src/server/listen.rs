//! Accepting connections, and closing those whose client is too slow.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use super::quota::{Place, counted_address};
use super::socket::until;
use super::{Server, router};

/// Pause after a failure to accept, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);
/// Time to finish the response in progress when a connection is to be closed.
const GRACE: Duration = Duration::from_secs(5);
/// Limit on the header of a request, and on what a connection buffers.
const MAX_BUFFER_BYTES: usize = 32 * 1024;

/// The address at the other end of a connection: the client or its proxy.
#[derive(Clone, Copy)]
struct PeerAddress(IpAddr);

/// The address that the limits of a request count by.
pub(super) struct ClientAddress(pub(super) IpAddr);

impl FromRequestParts<Arc<Server>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(
        request: &mut Parts,
        server: &Arc<Server>,
    ) -> Result<ClientAddress, Infallible> {
        let peer = request.extensions.get::<PeerAddress>();
        let PeerAddress(peer) = *peer.expect("every connection adds the address of its peer");
        // The header counts only where the configured proxy sent it, and of that only the last entry, which the proxy added.
        let forwarded = || {
            let last = request.headers.get_all("x-forwarded-for").iter().next_back()?.to_str().ok()?;
            last.rsplit(',').next()?.trim().parse().ok()
        };
        let client = if server.is_proxy(peer) { forwarded() } else { None };
        Ok(ClientAddress(counted_address(client.unwrap_or(peer))))
    }
}

/// Accepts connections until the server stops.
pub(super) async fn accept_all(listener: TcpListener, server: Arc<Server>) {
    let routes = router(Arc::clone(&server));
    let mut stopping = server.stopping.clone();
    let mut is_failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = until(&mut stopping, |stops| *stops) => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                is_failing = false;
                // A proxy brings the connections of all its clients.
                let address = counted_address(peer.ip());
                match server.quotas.connections.take(Some(address).filter(|_| !server.is_proxy(peer.ip()))) {
                    Ok(place) => {
                        tokio::spawn(serve(Arc::clone(&server), routes.clone(), stream, peer.ip(), place));
                    }
                    Err(reason) => {
                        server.log.write(&format!("refused a connection: {reason}"));
                        refuse(&stream);
                    }
                }
            }
            // The client closed the connection before it was accepted.
            Err(error)
                if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
            Err(error) => {
                if !is_failing {
                    server.log.write(&format!(
                        "cannot accept connections: {error}; raise the limit on open files (`ulimit -n`) or lower \
                         --max-sessions"
                    ));
                }
                is_failing = true;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Answers without reading the request. The answer may be lost; the connection is closed in any case.
fn refuse(stream: &TcpStream) {
    let body = "too many connections; try again in a minute\n";
    let length = body.len();
    let _ = stream.try_write(
        format!(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .as_bytes(),
    );
}

/// Answers the requests of one connection until it is closed, becomes a WebSocket, or runs out of time.
async fn serve(server: Arc<Server>, routes: Router, stream: TcpStream, peer: IpAddr, place: Place) {
    // Replies are small, so they are sent at once instead of being collected into larger packets.
    let _ = stream.set_nodelay(true);
    let has_asked = &AtomicBool::new(false);
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: Request<Incoming>| {
        has_asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(PeerAddress(peer));
        routes.call(request)
    });
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(server.config.header_timeout)
            .max_buf_size(MAX_BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    let mut stopping = server.stopping.clone();
    let outcome = tokio::select! {
        outcome = connection.as_mut() => Some(outcome),
        () = until(&mut stopping, |stops| *stops) => None,
        () = tokio::time::sleep(server.config.connection_age) => None,
    };
    match outcome {
        Some(Err(error)) if error.is_timeout() && !has_asked.load(Ordering::Relaxed) => {
            let limit = server.config.header_timeout.as_secs_f64();
            server.log.write(&format!("closed a connection: no complete request within {limit} s"));
        }
        Some(_) => {}
        None => {
            connection.as_mut().graceful_shutdown();
            if tokio::time::timeout(GRACE, connection).await.is_err() {
                server.log.write("closed a connection: the client did not take the response");
            }
        }
    }
    drop(place);
}

impl Server {
    fn is_proxy(&self, peer: IpAddr) -> bool {
        self.config.proxy.is_some_and(|proxy| proxy.to_canonical() == peer.to_canonical())
    }
}
