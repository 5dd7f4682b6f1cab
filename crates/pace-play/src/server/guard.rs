//! Who may come in: requests under our own name and from our own page alone, at a bearable rate, and answers that no other
//! page can use.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Log, MOST_BODY_BYTES, Server};

/// Nothing from anywhere else: no script, style, picture, font or connection.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Refuses what did not come from our own page, and marks every answer as ours alone.
pub(super) async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let verdict = check(&server, request.method(), request.uri(), request.headers());
    let mut response = match verdict {
        Ok(()) => match read_body(&server, request).await {
            Ok(request) => next.run(request).await,
            Err(status) => status.into_response(),
        },
        Err(reason) => {
            server.log.say(&format!("refused {} {}: {reason}", request.method(), path(request.uri())));
            (StatusCode::FORBIDDEN, format!("{reason}\n")).into_response()
        }
    };
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE {
        server.log.say("refused a body that is too long");
    }
    if response.status() == StatusCode::REQUEST_TIMEOUT {
        let limit = server.config.body_timeout.as_secs_f64();
        server.log.say(&format!("refused a request: its body was not complete within {limit} s"));
        // The rest of the body may still come; it is not a request.
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

/// Reads the whole body of a request, within its limits of time and length.
async fn read_body(server: &Server, request: Request) -> Result<Request, StatusCode> {
    let (head, body) = request.into_parts();
    let body = tokio::time::timeout(server.config.body_timeout, to_bytes(body, MOST_BODY_BYTES)).await;
    let body = body.map_err(|_| StatusCode::REQUEST_TIMEOUT)?.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    Ok(Request::from_parts(head, Body::from(body)))
}

/// A path as it may be logged: spectator links have their token in it.
fn path(uri: &Uri) -> &str {
    if uri.path().starts_with("/watch/") { "/watch/…" } else { uri.path() }
}

fn check(server: &Server, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let host =
        headers.get(header::HOST).and_then(|host| host.to_str().ok()).ok_or("the request names no host")?;
    // A page elsewhere whose name was made to point here would bring that name with it.
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
        // Numbers cannot be made to point elsewhere.
        Ok(address) => !is_local || address.is_loopback(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

/// Lets through a number per second, with a reserve for a number at once.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    rate: f64,
    burst: f64,
    left: f64,
    at: Instant,
}

impl RateLimiter {
    pub(crate) fn new(rate: f64, burst: f64, now: Instant) -> RateLimiter {
        RateLimiter { rate, burst, left: burst, at: now }
    }

    /// Whether one more may pass now.
    pub(crate) fn lets_through(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }

    /// Whether the whole reserve is there.
    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left >= self.burst
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.rate).min(self.burst);
        self.at = now;
    }
}

/// A log that cannot be flooded: of many lines in a second it keeps the first few and counts the rest.
pub(crate) struct RateLimitedLog {
    log: Log,
    state: Mutex<(Instant, u32, u64)>,
}

const LINES_PER_SECOND: u32 = 20;

impl RateLimitedLog {
    pub(super) fn new(log: Log) -> RateLimitedLog {
        RateLimitedLog { log, state: Mutex::new((Instant::now(), 0, 0)) }
    }

    pub(crate) fn say(&self, line: &str) {
        let mut state = self.state.lock().expect("nobody panics with it");
        if state.0.elapsed() >= Duration::from_secs(1) {
            if state.2 > 0 {
                (self.log)(&format!("… and {} more like these", state.2));
            }
            *state = (Instant::now(), 0, 0);
        }
        if state.1 < LINES_PER_SECOND {
            state.1 += 1;
            (self.log)(line);
        } else {
            state.2 += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::RateLimiter;

    #[test]
    fn a_bucket_lets_its_rate_through_and_no_more() {
        let start = Instant::now();
        let mut bucket = RateLimiter::new(30.0, 30.0, start);
        let through =
            |bucket: &mut RateLimiter, now: Instant| (0..100).filter(|_| bucket.lets_through(now)).count();
        assert_eq!(through(&mut bucket, start), 30);
        assert_eq!(through(&mut bucket, start + Duration::from_millis(500)), 15);
        assert_eq!(through(&mut bucket, start + Duration::from_secs(60)), 30);
    }
}
