//! What people do who mean well: play, reload, watch, look back.

use serde_json::{Value, json};

use crate::table::{Client, Host};

/// Plays on to the end, always the last action; the message that ends it.
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
            let over = client.hear().await.expect("a farewell");
            assert_eq!(over["type"], "over");
            return over;
        }
    }
}

#[tokio::test]
async fn an_encounter_of_every_game_is_played_and_played_again_from_its_link() {
    let host = Host::plain().await;
    for offer in ["kuhn-poker.bayes", "overcooked.static", "predator-prey.static"] {
        let (token, _) = host.begin(offer, 2).await;
        let (mut client, welcome) = host.sit(&token).await;
        assert_eq!(
            (&welcome["offer"], &welcome["seq"], &welcome["is_over"]),
            (&json!(offer), &json!(0), &json!(false))
        );
        // What the person chose to see afterwards is not told before.
        assert!(welcome["frames"].as_array().expect("frames").iter().all(|frame| frame["mind"].is_null()));
        let over = play_out(&mut client, 0).await;
        assert_eq!(over["summary"]["episodes"].as_array().map(Vec::len), Some(2));
        let (status, replay) = host.post("/api/replay", json!({ "link": over["link"] })).await;
        assert_eq!(status, 200, "{replay}");
        assert_eq!(replay["summary"], over["summary"]);
        let frames = replay["frames"].as_array().expect("frames");
        assert!(frames.iter().all(|frame| !frame["everything"].is_null() && !frame["mind"].is_null()));
        // It is still there after the end, for whoever reloads.
        let (mut again, welcome) = host.sit(&token).await;
        assert_eq!(welcome["is_over"], true);
        assert_eq!(again.hear().await.expect("the summary again")["summary"], over["summary"]);
    }
    host.stop().await;
}

#[tokio::test]
async fn a_lost_connection_goes_on_at_the_same_step_and_the_newest_tab_plays() {
    let host = Host::plain().await;
    let (token, _) = host.begin("kuhn-poker.nash", 5).await;
    let (mut first, _) = host.sit(&token).await;
    let answer = first.act(0, 1).await;
    let now = answer["frames"].as_array().and_then(|frames| frames.last()).cloned();
    let (mut second, welcome) = host.sit(&token).await;
    assert_eq!(welcome["seq"], 1);
    assert_eq!(welcome["frames"].as_array().and_then(|frames| frames.last()).cloned(), now);
    assert_eq!(first.hear().await.map(|message| message["reason"].clone()), Some(json!("taken-over")));
    assert_eq!(first.hear().await, None, "and let go");
    assert_eq!(second.act(1, 0).await["type"], "frames");
    second.hang_up().await;
    let (mut third, welcome) = host.sit(&token).await;
    assert_eq!(welcome["seq"], 2);
    play_out(&mut third, 2).await;
    host.stop().await;
}

#[tokio::test]
async fn spectators_see_what_the_player_sees_and_only_watch() {
    let host = Host::plain().await;
    let (token, watch) = host.begin("overcooked.bayes", 1).await;
    let (mut player, seen) = host.sit(&token).await;
    let mut spectator = host.connect().await;
    spectator.say(json!({ "type": "watch", "token": watch })).await;
    let welcome = spectator.hear().await.expect("a welcome");
    assert_eq!((&welcome["is_spectator"], &welcome["watch"]), (&json!(true), &Value::Null));
    let last = |message: &Value| message["frames"].as_array().and_then(|frames| frames.last()).cloned();
    assert_eq!(last(&welcome), last(&seen));
    for seq in 0..5 {
        let answer = player.act(seq, 4).await;
        assert_eq!(spectator.hear().await.as_ref(), Some(&answer));
    }
    let refused = spectator.act(5, 1).await;
    assert_eq!((&refused["type"], &refused["code"]), (&json!("refused"), &json!("not-your-turn")));
    assert_eq!(player.act(5, 4).await["type"], "frames", "the player was not disturbed");
    // A player's token opens no spectator's seat, and the other way round.
    let mut nosy = host.connect().await;
    nosy.say(json!({ "type": "hello", "token": watch })).await;
    assert_eq!(nosy.hear().await.expect("a refusal")["code"], "no-such-session");
    host.stop().await;
}

#[tokio::test]
async fn a_spectator_is_told_when_the_player_leaves_and_comes_back() {
    let host = Host::plain().await;
    let (token, watch) = host.begin("kuhn-poker.random", 5).await;
    let mut spectator = host.connect().await;
    spectator.say(json!({ "type": "watch", "token": watch })).await;
    assert_eq!(spectator.hear().await.expect("a welcome")["is_player_here"], false, "nobody has joined yet");
    let presence = |is_here: bool| json!({ "v": 1, "type": "presence", "is_player_here": is_here });
    let (player, welcome) = host.sit(&token).await;
    assert_eq!(welcome["is_player_here"], true);
    assert_eq!(spectator.hear().await, Some(presence(true)));
    player.hang_up().await;
    assert_eq!(spectator.hear().await, Some(presence(false)));
    // A second tab takes over from the first: the player was never away.
    let (_first, _) = host.sit(&token).await;
    assert_eq!(spectator.hear().await, Some(presence(true)));
    let (mut second, _) = host.sit(&token).await;
    let answer = second.act(0, 1).await;
    assert_eq!(spectator.hear().await, Some(answer));
    host.stop().await;
}

#[tokio::test]
async fn the_page_and_its_parts_are_served_from_the_binary() {
    let host = Host::plain().await;
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
        ["/assets/../Cargo.toml", "/assets/%2e%2e/Cargo.toml", "/etc/passwd", "/api/offers/nobody/map"]
    {
        assert_eq!(host.get(path).await.0, 404, "{path}");
    }
    let (_, offers) = host.get("/api/offers").await;
    let offers: Value = serde_json::from_str(&offers).expect("JSON");
    let ids: Vec<&str> = offers["offers"]
        .as_array()
        .expect("offers")
        .iter()
        .filter_map(|offer| offer["id"].as_str())
        .collect();
    for game in pace_games::GAMES {
        for name in ["bayes", "static", "random"] {
            assert!(ids.contains(&&format!("{}.{name}", game.id)[..]), "{ids:?}");
        }
        assert!(!ids.contains(&&format!("{}.oracle", game.id)[..]));
    }
    host.stop().await;
}
