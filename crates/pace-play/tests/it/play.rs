//! Correct clients: playing, reconnecting, watching and replays.

use pace_games::Preset;
use serde_json::{Map, Value, json};

use crate::host::{Client, Host};

/// Plays action 1 until the end. Returns the message `over`.
async fn play_out(client: &mut Client, mut seq: usize) -> Value {
    loop {
        let answer = client.act(seq, 1).await;
        if answer["code"] == "too-fast" {
            tokio::time::sleep(std::time::Duration::from_millis(40)).await;
            continue;
        }
        assert_eq!(answer["type"], "frames", "{answer}");
        seq = answer["seq"].as_u64().expect("a number") as usize;
        let last = answer["frames"].as_array().and_then(|frames| frames.last()).cloned().expect("a frame");
        if !last["ending"].is_null() && last["is_asked"] == false {
            let over = client.receive().await.expect("a farewell");
            assert_eq!(over["type"], "over");
            return over;
        }
    }
}

#[tokio::test]
async fn sessions_of_all_games_are_played_and_replayed() {
    let host = Host::start().await;
    for agent in ["kuhn-poker.bayes", "overcooked.static", "predator-prey.static"] {
        let (token, _) = host.begin(agent, 2).await;
        let (mut client, welcome) = host.join_session(&token).await;
        assert_eq!(
            (&welcome["offer"], &welcome["seq"], &welcome["is_over"]),
            (&json!(agent), &json!(0), &json!(false))
        );
        // Beliefs that are shown afterwards are not sent during play.
        assert!(welcome["frames"].as_array().expect("frames").iter().all(|frame| frame["mind"].is_null()));
        let over = play_out(&mut client, 0).await;
        assert_eq!(over["summary"]["episodes"].as_array().map(Vec::len), Some(2));
        let (status, replay) = host.post("/api/replay", json!({ "link": over["link"] })).await;
        assert_eq!(status, 200, "{replay}");
        assert_eq!(replay["summary"], over["summary"]);
        let frames = replay["frames"].as_array().expect("frames");
        assert!(frames.iter().all(|frame| !frame["everything"].is_null() && !frame["mind"].is_null()));
        // The session can be reloaded after its end.
        let (mut again, welcome) = host.join_session(&token).await;
        assert_eq!(welcome["is_over"], true);
        assert_eq!(again.receive().await.expect("the summary again")["summary"], over["summary"]);
    }
    host.stop().await;
}

#[tokio::test]
async fn reconnecting_continues_at_the_same_step_and_the_newest_tab_plays() {
    let host = Host::start().await;
    let (token, _) = host.begin("kuhn-poker.nash", 5).await;
    let (mut first, _) = host.join_session(&token).await;
    let answer = first.act(0, 1).await;
    let now = answer["frames"].as_array().and_then(|frames| frames.last()).cloned();
    let (mut second, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 1);
    assert_eq!(welcome["frames"].as_array().and_then(|frames| frames.last()).cloned(), now);
    assert_eq!(first.receive().await.map(|message| message["reason"].clone()), Some(json!("taken-over")));
    assert_eq!(first.receive().await, None, "and is closed");
    assert_eq!(second.act(1, 0).await["type"], "frames");
    second.close().await;
    let (mut third, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 2);
    play_out(&mut third, 2).await;
    host.stop().await;
}

#[tokio::test]
async fn spectators_get_the_players_frames_and_cannot_act() {
    let host = Host::start().await;
    let (token, watch) = host.begin("overcooked.bayes", 1).await;
    let (mut player, seen) = host.join_session(&token).await;
    let mut spectator = host.connect().await;
    spectator.send(json!({ "type": "watch", "token": watch })).await;
    let welcome = spectator.receive().await.expect("a welcome");
    assert_eq!((&welcome["is_spectator"], &welcome["watch"]), (&json!(true), &Value::Null));
    let last = |message: &Value| message["frames"].as_array().and_then(|frames| frames.last()).cloned();
    assert_eq!(last(&welcome), last(&seen));
    for seq in 0..5 {
        let answer = player.act(seq, 4).await;
        assert_eq!(spectator.receive().await.as_ref(), Some(&answer));
    }
    let refused = spectator.act(5, 1).await;
    assert_eq!((&refused["type"], &refused["code"]), (&json!("refused"), &json!("not-your-turn")));
    assert_eq!(player.act(5, 4).await["type"], "frames", "the player was not disturbed");
    // A spectator's token is not valid for a player.
    let mut nosy = host.connect().await;
    nosy.send(json!({ "type": "hello", "token": watch })).await;
    assert_eq!(nosy.receive().await.expect("a refusal")["code"], "no-such-session");
    host.stop().await;
}

#[tokio::test]
async fn spectators_are_told_when_the_player_leaves_and_returns() {
    let host = Host::start().await;
    let (token, watch) = host.begin("kuhn-poker.random", 5).await;
    let mut spectator = host.connect().await;
    spectator.send(json!({ "type": "watch", "token": watch })).await;
    assert_eq!(
        spectator.receive().await.expect("a welcome")["is_player_here"],
        false,
        "the player has not joined yet"
    );
    let presence = |is_here: bool| json!({ "v": 1, "type": "presence", "is_player_here": is_here });
    let (player, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["is_player_here"], true);
    assert_eq!(spectator.receive().await, Some(presence(true)));
    player.close().await;
    assert_eq!(spectator.receive().await, Some(presence(false)));
    // A second tab takes over from the first: the player was never away.
    let (_first, _) = host.join_session(&token).await;
    assert_eq!(spectator.receive().await, Some(presence(true)));
    let (mut second, _) = host.join_session(&token).await;
    let answer = second.act(0, 1).await;
    assert_eq!(spectator.receive().await, Some(answer));
    host.stop().await;
}

#[tokio::test]
async fn pages_and_assets_are_served_from_the_binary() {
    let host = Host::start().await;
    for path in [
        "/",
        "/replay",
        "/study",
        "/watch/abc",
        "/assets/main.js",
        "/assets/games/overcooked.js",
        "/api/offers",
    ] {
        let (status, body) = host.get(path).await;
        assert_eq!(status, 200, "{path}");
        assert!(!body.is_empty());
    }
    for path in
        ["/assets/../Cargo.toml", "/assets/%2e%2e/Cargo.toml", "/etc/passwd", "/api/offers/unknown/map"]
    {
        assert_eq!(host.get(path).await.0, 404, "{path}");
    }
    let (_, catalog) = host.get("/api/offers").await;
    let catalog: Value = serde_json::from_str(&catalog).expect("JSON");
    let ids: Vec<&str> = catalog["offers"]
        .as_array()
        .expect("offers")
        .iter()
        .filter_map(|agent| agent["id"].as_str())
        .collect();
    for entry in pace_games::GAMES {
        let game = entry.open(Preset::Paper, &Map::new()).expect("a preset");
        let uninformed = game.uninformed_names();
        for name in game.reference_names() {
            let is_offered = ids.contains(&&format!("{}.{name}", entry.id)[..]);
            assert_eq!(is_offered, uninformed.contains(&name), "{name}: {ids:?}");
        }
    }
    host.stop().await;
}
