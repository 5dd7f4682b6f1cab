//! Checks of requests: host name, origin, rate and size; and the security headers of responses.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Log, MAX_BODY_BYTES, Server};

/// Content security policy: scripts, styles, images and connections from this server only.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Refuses requests of other pages, and adds the security headers to every response.
pub(super) async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let verdict = check(&server, request.method(), request.uri(), request.headers());
    let mut response = match verdict {
        Ok(()) => match read_body(&server, request).await {
            Ok(request) => next.run(request).await,
            Err(status) => status.into_response(),
        },
        Err(reason) => {
            server.log.write(&format!("refused {} {}: {reason}", request.method(), path(request.uri())));
            (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response()
        }
    };
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        server.log.write("refused a body that is too long");
    }
    if response.status() == StatusCode::REQUEST_TIMEOUT {
        let limit = server.config.body_timeout.as_secs_f64();
        server.log.write(&format!("refused a request: its body was not complete within {limit} s"));
        // The rest of the body may still arrive; it must not be read as a request.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=()"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Reads the whole body of a request, within the limits of time and length.
async fn read_body(server: &Server, request: Request) -> Result<Request, StatusCode> {
    let (head, body) = request.into_parts();
    let body = tokio::time::timeout(server.config.body_timeout, to_bytes(body, MAX_BODY_BYTES)).await;
    let body = body.map_err(|_| StatusCode::REQUEST_TIMEOUT)?.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    Ok(Request::from_parts(head, Body::from(body)))
}

/// The path for the log, without the token of a spectator link.
fn path(uri: &Uri) -> &str {
    if uri.path().starts_with("/watch/") { "/watch/…" } else { uri.path() }
}

fn check(server: &Server, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let host =
        headers.get(header::HOST).and_then(|host| host.to_str().ok()).ok_or("the request names no host")?;
    // DNS rebinding: a foreign host name that resolves to this server is refused.
    if !is_our_name(server, host) {
        return Err("unknown host name; add it with --host");
    }
    let changes_something = method != Method::GET && method != Method::HEAD;
    if !changes_something && uri.path() != "/ws" {
        return Ok(());
    }
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let own = origin
        .and_then(|origin| origin.split_once("://"))
        .filter(|(scheme, of)| (*scheme == "http" || *scheme == "https") && of.eq_ignore_ascii_case(host));
    own.map(|_| ()).ok_or("the request does not come from this server's own page")
}

fn is_our_name(server: &Server, host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let config = &server.config;
    if config.hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return true;
    }
    let is_local = config.address.is_loopback();
    match name.parse::<std::net::IpAddr>() {
        // An address, unlike a name, cannot be made to resolve to another machine.
        Ok(address) => !is_local || address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

/// Token bucket: allows `rate` events per second and up to `burst` at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    rate: f64,
    burst: f64,
    tokens: f64,
    updated_at: Instant,
}

impl RateLimiter {
    pub(crate) fn new(rate: f64, burst: f64, now: Instant) -> RateLimiter {
        RateLimiter { rate, burst, tokens: burst, updated_at: now }
    }

    /// Whether one more event is allowed now. Takes a token if so.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_allowed = self.tokens >= 1.0;
        if is_allowed {
            self.tokens -= 1.0;
        }
        is_allowed
    }

    /// Whether `burst` events would be allowed at once.
    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.tokens >= self.burst
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.updated_at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate).min(self.burst);
        self.updated_at = now;
    }
}

/// A log with a limit per second: the first lines are written, the others counted.
pub(crate) struct RateLimitedLog {
    log: Log,
    second: Mutex<LogSecond>,
}

/// The lines of the present second.
struct LogSecond {
    began: Instant,
    n_written: u32,
    n_dropped: u64,
}

impl LogSecond {
    fn begin() -> LogSecond {
        LogSecond { began: Instant::now(), n_written: 0, n_dropped: 0 }
    }
}

const LINES_PER_SECOND: u32 = 20;

impl RateLimitedLog {
    pub(super) fn new(log: Log) -> RateLimitedLog {
        RateLimitedLog { log, second: Mutex::new(LogSecond::begin()) }
    }

    /// Writes a line, or counts it if the limit is reached.
    pub(crate) fn write(&self, line: &str) {
        let mut second = self.second.lock().expect("no thread panics while it holds this lock");
        if second.began.elapsed() >= Duration::from_secs(1) {
            if second.n_dropped > 0 {
                (self.log)(&format!("… and {} more lines", second.n_dropped));
            }
            *second = LogSecond::begin();
        }
        if second.n_written < LINES_PER_SECOND {
            second.n_written += 1;
            (self.log)(line);
        } else {
            second.n_dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::RateLimiter;

    #[test]
    fn rate_limiter_allows_its_rate_and_burst() {
        let start = Instant::now();
        let mut rate_limiter = RateLimiter::new(30.0, 30.0, start);
        let through = |rate_limiter: &mut RateLimiter, now: Instant| {
            (0..100).filter(|_| rate_limiter.allows(now)).count()
        };
        assert_eq!(through(&mut rate_limiter, start), 30);
        assert_eq!(through(&mut rate_limiter, start + Duration::from_millis(500)), 15);
        assert_eq!(through(&mut rate_limiter, start + Duration::from_secs(60)), 30);
    }
}
