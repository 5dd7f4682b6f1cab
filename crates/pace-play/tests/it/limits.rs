//! Faulty and hostile clients: their requests are refused and logged, and other sessions continue.

use std::time::Duration;

use pace_play::{ServerConfig, bots};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::host::Host;

#[tokio::test]
async fn invalid_messages_are_refused_and_the_session_continues() {
    let host = Host::start().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.join_session(&token).await;
    let code = |answer: Value| answer["code"].as_str().unwrap_or_default().to_owned();
    for text in ["", "hello", "{}", "[1,2,3]", r#"{"v":1,"type":"act","seq":0,"action":"1"}"#, "\u{0}"] {
        client.send_text(text).await;
        assert_eq!(code(client.receive().await.expect("a refusal")), "malformed", "{text:?}");
    }
    client.send_text(r#"{"v":9,"type":"ping"}"#).await;
    assert_eq!(code(client.receive().await.expect("a refusal")), "other-version");
    assert_eq!(code(client.act(1, 1).await), "not-your-turn", "too early");
    assert_eq!(code(client.act(0, 7).await), "no-such-action");
    assert_eq!(client.act(0, 1).await["type"], "frames");
    let replayed = client.act(0, 1).await;
    assert_eq!((code(replayed.clone()), &replayed["due"]), ("not-your-turn".to_owned(), &json!(1)));
    assert_eq!(client.act(1, 1).await["type"], "frames", "it still plays");
    assert!(host.log().iter().filter(|line| line.starts_with("refused")).count() >= 10, "{:?}", host.log());
    host.stop().await;
}

#[tokio::test]
async fn oversized_messages_and_bodies_are_refused() {
    let host = Host::start().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.join_session(&token).await;
    client.send(json!({ "type": "act", "seq": 0, "action": 1, "padding": "x".repeat(5000) })).await;
    assert_eq!(client.receive().await, None, "the connection is gone");
    let (mut again, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 0, "and nothing was played");
    assert_eq!(again.act(0, 1).await["type"], "frames");
    let (status, _) = host.post("/api/replay", json!({ "link": "x".repeat(70_000) })).await;
    assert_eq!(status, 413);
    let (status, answer) = host.post("/api/replay", json!({ "link": "x".repeat(60_000) })).await;
    assert_eq!(status, 400, "{answer}");
    let log = host.log();
    for words in ["a connection broke", "a body that is too long", "invalid replay link"] {
        assert!(log.iter().any(|line| line.contains(words)), "{words}: {log:?}");
    }
    host.stop().await;
}

#[tokio::test]
async fn unknown_tokens_origins_and_hosts_are_refused() {
    let host = Host::start().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    for guess in ["", "../..", &token[..31], &"0".repeat(32), &"f".repeat(64)] {
        let mut client = host.connect().await;
        client.send(json!({ "type": "hello", "token": guess })).await;
        assert_eq!(client.receive().await.expect("a refusal")["code"], "no-such-session", "{guess}");
    }
    // A connection belongs to one session: a second `hello` is refused, and so is a token in an action.
    let (other, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.join_session(&other).await;
    client.send(json!({ "type": "hello", "token": token })).await;
    assert_eq!(client.receive().await.expect("a refusal")["code"], "malformed");
    client.send(json!({ "type": "act", "token": token, "seq": 0, "action": 1 })).await;
    assert_eq!(client.receive().await.expect("a refusal")["code"], "malformed");
    assert_eq!(client.act(0, 1).await["type"], "frames", "the own session continues");
    let (_, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 0, "the other session is unchanged");
    // An action before `hello` is refused.
    let mut client = host.connect().await;
    assert_eq!(client.act(0, 1).await["type"], "refused");
    assert_eq!(client.receive().await, None);
    assert!(host.connect_from("http://evil.example").await.is_none());
    assert!(host.connect_from("null").await.is_none());
    let address = host.address;
    let body = r#"{"v":1,"offer":"kuhn-poker.random","slot":0,"n_episodes":1,"mind":"after"}"#;
    let request = |host: &str, origin: &str| {
        format!(
            "POST /api/sessions HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    let own = format!("127.0.0.1:{}", address.port());
    for (host, origin, expected) in [
        (&own[..], format!("http://{own}"), 200),
        (&own[..], "http://evil.example".to_owned(), 403),
        // DNS rebinding: a foreign name is both the host and the origin.
        ("evil.example", "http://evil.example".to_owned(), 403),
    ] {
        let (status, _) = bots::exchange(address, &request(host, &origin)).await.expect("an answer");
        assert_eq!(status, expected, "{host} {origin}");
    }
    let log = host.log();
    for (words, n) in
        [("no longer exists", 5), ("own page", 3), ("unknown host name", 1), ("already received", 1)]
    {
        assert_eq!(log.iter().filter(|line| line.contains(words)).count(), n, "{words}: {log:?}");
    }
    let (_, page) = host.get("/").await;
    assert!(page.contains("<main"));
    host.stop().await;
}

#[tokio::test]
async fn invalid_session_requests_are_refused() {
    let host = Host::start().await;
    let good = json!({ "offer": "kuhn-poker.nash", "slot": 0, "n_episodes": 3, "mind": "after" });
    assert_eq!(host.post("/api/sessions", good.clone()).await.0, 200);
    for (key, value) in [
        ("offer", json!("/etc/passwd")),
        ("offer", json!("kuhn-poker.oracle")),
        ("offer", json!(3)),
        ("slot", json!(5)),
        ("slot", json!(-1)),
        ("n_episodes", json!(0)),
        ("n_episodes", json!(1_000_000)),
        ("tuple", json!(99)),
        ("mind", json!("sometimes")),
        ("more", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[key] = value.clone();
        let (status, answer) = host.post("/api/sessions", bad).await;
        assert!(
            (400..=422).contains(&status) && answer["message"].is_string(),
            "{key} {value}: {status} {answer}"
        );
    }
    host.stop().await;
}

#[tokio::test]
async fn too_many_messages_per_second_are_refused() {
    let host = Host::start().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.join_session(&token).await;
    for _ in 0..45 {
        client.send(json!({ "type": "ping" })).await;
    }
    let mut n_refused = 0;
    for _ in 0..45 {
        let answer = client.receive().await.expect("an answer");
        n_refused += usize::from(answer["code"] == "too-fast");
    }
    assert!((1..=15).contains(&n_refused), "{n_refused}");
    host.stop().await;
}

#[tokio::test]
async fn full_server_refuses_sessions_and_idle_players_are_disconnected() {
    let config =
        ServerConfig { max_sessions: 2, idle: Duration::from_millis(300), ..ServerConfig::default() };
    let host = Host::start_with(config, None).await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    host.begin("kuhn-poker.random", 5).await;
    let config = json!({ "offer": "kuhn-poker.random", "slot": 0, "n_episodes": 5, "mind": "after" });
    let (status, answer) = host.post("/api/sessions", config).await;
    assert_eq!((status, &answer["code"]), (503, &json!("full")));
    let (mut client, _) = host.join_session(&token).await;
    assert_eq!(client.receive().await.map(|message| message["reason"].clone()), Some(json!("idle")));
    let (_, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 0, "the session is kept");
    host.stop().await;
}

const HEALTH: &str = "GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The bytes until the server closes the connection. `None` if it does not within two seconds.
async fn read_to_end(stream: &mut TcpStream) -> Option<String> {
    let mut answer = Vec::new();
    // A reset also counts as closed.
    let _ = tokio::time::timeout(Duration::from_secs(2), stream.read_to_end(&mut answer)).await.ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

async fn send(host: &Host, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(host.address).await.expect("a connection");
    let _ = stream.write_all(text.as_bytes()).await;
    stream
}

/// A connection from another address of this machine; Linux has all of 127.0.0.0/8.
#[cfg(target_os = "linux")]
async fn send_from_elsewhere(host: &Host, text: &str) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.2:0".parse().expect("an address")).expect("an address of this machine");
    let mut stream = socket.connect(host.address).await.expect("a connection");
    let _ = stream.write_all(text.as_bytes()).await;
    stream
}

/// Waits until the server has logged these words.
async fn expect_logged(host: &Host, words: &str) {
    for _ in 0..200 {
        if host.log().iter().any(|line| line.contains(words)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("expected {words:?} in the log: {:?}", host.log());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn half_open_requests_leave_connections_for_other_addresses() {
    let config = ServerConfig {
        max_sessions: 20,
        max_sessions_per_address: 10,
        // Longer than the second in which the log is limited to 20 lines.
        header_timeout: Duration::from_millis(1200),
        ..ServerConfig::default()
    };
    let host = Host::start_with(config, None).await;
    // More connections than the server accepts.
    let mut attack = Vec::new();
    for _ in 0..200 {
        attack.push(send_from_elsewhere(&host, "GET / HTTP/1.1\r\nHost: localhost\r\n").await);
    }
    expect_logged(&host, "refused a connection: all 24 of one address are in use").await;
    let answer = read_to_end(&mut send(&host, HEALTH).await).await.expect("an answer during the attack");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for stream in &mut attack {
        assert!(read_to_end(stream).await.is_some(), "half-open connections are closed");
    }
    expect_logged(&host, "closed a connection: no complete request within 1.2 s").await;
    let answer =
        read_to_end(&mut send_from_elsewhere(&host, HEALTH).await).await.expect("an answer afterwards");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    host.stop().await;
}

#[tokio::test]
async fn slow_bodies_and_unused_or_old_connections_are_closed() {
    let config = ServerConfig {
        header_timeout: Duration::from_millis(400),
        body_timeout: Duration::from_millis(200),
        connection_age: Duration::from_millis(800),
        ..ServerConfig::default()
    };
    let host = Host::start_with(config, None).await;
    let head = "POST /api/replay HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let answer = read_to_end(&mut send(&host, head).await).await.expect("an end");
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    expect_logged(&host, "its body was not complete within 0.2 s").await;
    let kept_alive = HEALTH.replace("Connection: close\r\n", "");
    let answer = read_to_end(&mut send(&host, &kept_alive).await).await.expect("an end");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A connection in constant use is closed at its maximum age.
    let mut busy = send(&host, "").await;
    let start = std::time::Instant::now();
    while busy.write_all(kept_alive.as_bytes()).await.is_ok() && start.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(start.elapsed() < Duration::from_secs(2), "the connection grew too old");
    host.stop().await;
}

#[tokio::test]
async fn one_address_cannot_take_all_sessions() {
    let config = ServerConfig {
        max_sessions: 20,
        max_sessions_per_address: 6,
        proxy: Some("127.0.0.1".parse().expect("an address")),
        ..ServerConfig::default()
    };
    let host = Host::start_with(config, None).await;
    let body = r#"{"v":1,"offer":"kuhn-poker.random","slot":0,"n_episodes":1,"mind":"after"}"#;
    let begin = async |client: &str| {
        let request = format!(
            "POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nX-Forwarded-For: {client}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        bots::exchange(host.address, &request).await.expect("an answer")
    };
    for _ in 0..6 {
        assert_eq!(begin("192.0.2.1").await.0, 200);
    }
    // Only the last entry counts, which the proxy added.
    for client in ["192.0.2.1", "192.0.2.77, 192.0.2.1"] {
        let (status, answer) = begin(client).await;
        assert_eq!(status, 429, "{answer}");
        assert!(
            answer.contains("too-fast") && answer.contains("at most 6 new sessions a minute"),
            "{answer}"
        );
    }
    assert_eq!(begin("192.0.2.1, 192.0.2.2").await.0, 200, "another address is not affected");
    let (_, health) = host.get("/api/health").await;
    assert!(health.contains("\"sessions\":7"), "{health}");
    expect_logged(&host, "at most 6 new sessions a minute").await;
    host.stop().await;
}

#[tokio::test]
async fn forwarded_addresses_are_ignored_without_a_proxy() {
    let config = ServerConfig { max_sessions: 20, max_sessions_per_address: 2, ..ServerConfig::default() };
    let host = Host::start_with(config, None).await;
    let mut clients = Vec::new();
    for number in 0..30 {
        clients.push(host.connect_forwarded(&format!("192.0.2.{number}")).await);
    }
    // The clients send nothing, so each holds a place of their common address.
    assert_eq!(clients.iter().flatten().count(), 16, "{:?}", host.log());
    host.stop().await;
}

#[tokio::test]
async fn spectators_and_silent_sockets_take_no_place_of_a_player() {
    let config = ServerConfig {
        max_sessions: 4,
        max_sessions_per_address: 3,
        max_spectators_per_session: 2,
        proxy: Some("127.0.0.1".parse().expect("an address")),
        ..ServerConfig::default()
    };
    let host = Host::start_with(config, None).await;
    let (token, watch) = host.begin("kuhn-poker.random", 5).await;
    let (_, other_watch) = host.begin("kuhn-poker.random", 5).await;
    let spectator = async |watch: &str| {
        let mut client = host.connect_forwarded("192.0.2.1").await.expect("a socket");
        client.send(json!({ "type": "watch", "token": watch })).await;
        let answer = client.receive().await.expect("an answer");
        (client, answer)
    };
    let mut watching = Vec::new();
    for (watch, expected) in [
        (&watch[..], "is_spectator"),
        (&watch[..], "is_spectator"),
        (&watch[..], "all 2 of this session are in use"),
        (&other_watch[..], "is_spectator"),
        (&other_watch[..], "all 3 of one address are in use"),
    ] {
        let (client, answer) = spectator(watch).await;
        assert!(answer.to_string().contains(expected), "{answer}");
        watching.push(client);
    }
    // A spectator that leaves frees the place.
    watching.remove(0).close().await;
    let mut answer = Value::Null;
    for _ in 0..40 {
        let (client, next) = spectator(&watch).await;
        watching.push(client);
        answer = next;
        if answer["type"] == "welcome" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(answer["type"], "welcome", "{answer}");
    // Sockets that send nothing.
    let mut silent = Vec::new();
    for _ in 0..60 {
        silent.extend(host.connect_forwarded("192.0.2.1").await);
    }
    assert_eq!(silent.len(), 17, "{:?}", host.log());
    expect_logged(&host, "refused a socket: all 17 of one address are in use").await;
    let mut player = host.connect_forwarded("192.0.2.2").await.expect("a socket for another address");
    player.send(json!({ "type": "hello", "token": token })).await;
    assert_eq!(player.receive().await.expect("a welcome")["type"], "welcome");
    assert_eq!(player.act(0, 1).await["type"], "frames");
    host.stop().await;
}

#[tokio::test]
async fn too_many_pings_close_the_connection() {
    let host = Host::start().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.join_session(&token).await;
    for _ in 0..10 {
        client.ping().await;
    }
    assert_eq!(client.act(0, 1).await["type"], "frames", "a few pings are answered");
    for _ in 0..100 {
        client.ping().await;
    }
    assert_eq!(client.receive().await, None, "the connection is closed");
    expect_logged(&host, "more than 30 pings a second").await;
    host.stop().await;
}
