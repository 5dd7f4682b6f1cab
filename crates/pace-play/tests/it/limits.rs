//! What people do who do not mean well: everything is refused and logged, and the others go on playing.

use std::time::Duration;

use pace_play::{ServerConfig, bots};
use serde_json::{Value, json};

use crate::table::Host;

#[tokio::test]
async fn bad_messages_are_refused_and_logged_and_the_encounter_goes_on() {
    let host = Host::plain().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.sit(&token).await;
    let code = |answer: Value| answer["code"].as_str().unwrap_or_default().to_owned();
    for text in ["", "hello", "{}", "[1,2,3]", r#"{"v":1,"type":"act","seq":0,"action":"1"}"#, "\u{0}"] {
        client.say_text(text).await;
        assert_eq!(code(client.hear().await.expect("a refusal")), "malformed", "{text:?}");
    }
    client.say_text(r#"{"v":9,"type":"ping"}"#).await;
    assert_eq!(code(client.hear().await.expect("a refusal")), "other-version");
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
async fn oversized_messages_and_bodies_are_not_read() {
    let host = Host::plain().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.sit(&token).await;
    client.say(json!({ "type": "act", "seq": 0, "action": 1, "padding": "x".repeat(5000) })).await;
    assert_eq!(client.hear().await, None, "the connection is gone");
    let (mut again, welcome) = host.sit(&token).await;
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
async fn other_peoples_sessions_pages_and_names_are_refused() {
    let host = Host::plain().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    for guess in ["", "../..", &token[..31], &"0".repeat(32), &"f".repeat(64)] {
        let mut client = host.connect().await;
        client.say(json!({ "type": "hello", "token": guess })).await;
        assert_eq!(client.hear().await.expect("a refusal")["code"], "no-such-session", "{guess}");
    }
    // Who sits at one table cannot speak for another: the first introduction counts, and actions name no encounter.
    let (other, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.sit(&other).await;
    client.say(json!({ "type": "hello", "token": token })).await;
    assert_eq!(client.hear().await.expect("a refusal")["code"], "malformed");
    client.say(json!({ "type": "act", "token": token, "seq": 0, "action": 1 })).await;
    assert_eq!(client.hear().await.expect("a refusal")["code"], "malformed");
    assert_eq!(client.act(0, 1).await["type"], "frames", "one's own table is not disturbed");
    let (_, welcome) = host.sit(&token).await;
    assert_eq!(welcome["seq"], 0, "and nothing was played at the other");
    // Acting comes after an introduction.
    let mut client = host.connect().await;
    assert_eq!(client.act(0, 1).await["type"], "refused");
    assert_eq!(client.hear().await, None);
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
        // A name that was made to point here brings itself along as both.
        ("evil.example", "http://evil.example".to_owned(), 403),
    ] {
        let (status, _) = bots::exchange(address, &request(host, &origin)).await.expect("an answer");
        assert_eq!(status, expected, "{host} {origin}");
    }
    let log = host.log();
    for (words, n) in [("no longer exists", 5), ("own page", 3), ("by that name", 1), ("greeted before", 1)] {
        assert_eq!(log.iter().filter(|line| line.contains(words)).count(), n, "{words}: {log:?}");
    }
    let (_, page) = host.get("/").await;
    assert!(page.contains("<main"));
    host.stop().await;
}

#[tokio::test]
async fn bookings_that_cannot_be_are_refused() {
    let host = Host::plain().await;
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
async fn who_talks_too_fast_is_slowed_down() {
    let host = Host::plain().await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    let (mut client, _) = host.sit(&token).await;
    for _ in 0..45 {
        client.say(json!({ "type": "ping" })).await;
    }
    let mut n_refused = 0;
    for _ in 0..45 {
        let answer = client.hear().await.expect("an answer");
        n_refused += usize::from(answer["code"] == "too-fast");
    }
    assert!((1..=15).contains(&n_refused), "{n_refused}");
    host.stop().await;
}

#[tokio::test]
async fn a_full_house_says_so_and_an_idle_guest_is_let_go() {
    let config =
        ServerConfig { most_sessions: 2, idle: Duration::from_millis(300), ..ServerConfig::default() };
    let host = Host::with(config, None).await;
    let (token, _) = host.begin("kuhn-poker.random", 5).await;
    host.begin("kuhn-poker.random", 5).await;
    let booking = json!({ "offer": "kuhn-poker.random", "slot": 0, "n_episodes": 5, "mind": "after" });
    let (status, answer) = host.post("/api/sessions", booking).await;
    assert_eq!((status, &answer["code"]), (503, &json!("full")));
    let (mut client, _) = host.sit(&token).await;
    assert_eq!(client.hear().await.map(|message| message["reason"].clone()), Some(json!("idle")));
    let (_, welcome) = host.sit(&token).await;
    assert_eq!(welcome["seq"], 0, "their place is kept");
    host.stop().await;
}
