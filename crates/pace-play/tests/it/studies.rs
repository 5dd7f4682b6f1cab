//! Studies: every stage, in order, kept in the file before it is acknowledged.

use std::path::PathBuf;

use pace_play::study::export::Format;
use pace_play::{Offers, Study, StudyConfig, StudyFile};
use serde_json::{Value, json};

use crate::table::Host;

const STUDY: &str = r#"
id = "cards"
title = "Cards"
consent = "Do you agree?"
agents = ["kuhn-poker.bayes", "kuhn-poker.nash"]
assignment = "within"
encounters = 2
episodes = 2
seed = 3
completion_code = "DONE"

[[questions]]
id = "liked"
text = "Did you like it?"
kind = "scale"
points = 7
low = "no"
high = "yes"
"#;

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let file = folder.path().join("study.sqlite");
    (folder, file)
}

async fn join(host: &Host, participant: &str) -> (String, Value) {
    let (status, state) =
        host.post("/api/study/join", json!({ "participant": participant, "study": "s" })).await;
    assert_eq!(status, 200, "{state}");
    (state["token"].as_str().expect("a token").to_owned(), state)
}

async fn next(host: &Host, token: &str, more: Value) -> Value {
    let mut body = more;
    body["token"] = json!(token);
    host.post("/api/study/next", body).await.1
}

async fn to_the_table(host: &Host, participant: &str) -> String {
    let (token, state) = join(host, participant).await;
    assert_eq!(state["stage"], "consent");
    next(host, &token, json!({ "stage": "consent", "consents": true })).await;
    let state = next(host, &token, json!({ "stage": "tutorial" })).await;
    assert_eq!((&state["stage"], &state["number"]), (&json!("play"), &json!(0)));
    token
}

#[tokio::test]
async fn a_participant_goes_through_and_every_step_is_in_the_file() {
    let (_folder, file) = scratch();
    let host = Host::study(STUDY, &file).await;
    let token = to_the_table(&host, "ann").await;
    let mut n_steps = 0;
    for number in 0..2 {
        let (mut client, welcome) = host.sit(&token).await;
        assert_eq!((&welcome["mind"], &welcome["watch"]), (&json!("never"), &Value::Null));
        assert!(!welcome.to_string().contains("kuhn-poker."), "nobody is told whom they meet: {welcome}");
        // Nobody goes on before the encounter is over.
        let state = next(&host, &token, json!({ "stage": "play", "number": number })).await;
        assert_eq!(state["number"], number);
        let mut count = 0;
        loop {
            let answer = client.act(count, count % 2).await;
            count = answer["seq"].as_u64().expect("a number") as usize;
            let last =
                answer["frames"].as_array().and_then(|frames| frames.last()).cloned().expect("a frame");
            if last["is_asked"] == false {
                break;
            }
        }
        let over = client.hear().await.expect("the end");
        assert_eq!((&over["summary"], &over["link"]), (&Value::Null, &Value::Null), "nothing is shown");
        n_steps += count;
        let state = next(&host, &token, json!({ "stage": "play", "number": number })).await;
        let repeated = next(&host, &token, json!({ "stage": "play", "number": number })).await;
        assert_eq!(
            (&state["stage"], &state["number"]),
            (&repeated["stage"], &repeated["number"]),
            "twice is once"
        );
    }
    let refused = next(&host, &token, json!({ "stage": "questions", "answers": { "liked": 9 } })).await;
    assert!(refused["message"].is_string());
    let refused =
        next(&host, &token, json!({ "stage": "questions", "answers": { "liked": 2, "more": 1 } })).await;
    assert!(refused["message"].is_string());
    let state = next(&host, &token, json!({ "stage": "questions", "answers": { "liked": 6 } })).await;
    assert_eq!((&state["stage"], &state["code"]), (&json!("finished"), &json!("DONE")));
    host.stop().await;

    let study = StudyFile::open(&file).expect("the file");
    let mut csv = Vec::new();
    assert_eq!(study.export("steps", Format::Csv, &mut csv).expect("an export"), n_steps);
    let mut lines = Vec::new();
    study.export("encounters", Format::JsonLines, &mut lines).expect("an export");
    let text = String::from_utf8(lines).expect("UTF-8");
    let encounters: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(encounters.len(), 2);
    assert_ne!(encounters[0]["agent"], encounters[1]["agent"]);
    assert!(encounters.iter().all(|row| row["outcomes"].as_array().map(Vec::len) == Some(2)));
    let mut replays = Vec::new();
    assert_eq!(study.export("replays", Format::Csv, &mut replays).expect("an export"), 2);
    let replays = String::from_utf8(replays).expect("UTF-8");
    let link = replays.lines().nth(1).and_then(|line| line.split("/replay#").nth(1)).expect("a link");
    let replay = pace_play::replay::replay(&Offers::scripted().expect("scripted egos"), link)
        .expect("it can be shown");
    assert!(replay.is_over && replay.summary.episodes.len() == 2);
    let summary = study.summary().expect("a summary");
    assert_eq!((summary.steps, summary.agents.len(), summary.open_encounters), (n_steps, 2, 0));
}

#[tokio::test]
async fn a_server_that_comes_back_knows_everybody_and_where_they_were() {
    let (_folder, file) = scratch();
    let host = Host::study(STUDY, &file).await;
    let token = to_the_table(&host, "bob").await;
    let (mut client, _) = host.sit(&token).await;
    let answer = client.act(0, 1).await;
    let now = answer["frames"].as_array().and_then(|frames| frames.last()).cloned();
    host.stop().await;
    let host = Host::study(STUDY, &file).await;
    // The token is still good, and the encounter is built again from its steps.
    let (_, welcome) = host.sit(&token).await;
    assert_eq!(welcome["seq"], 1);
    assert_eq!(welcome["frames"].as_array().and_then(|frames| frames.last()).cloned(), now);
    // Coming in by the link again takes over.
    let (fresh, state) = join(&host, "bob").await;
    assert_eq!(state["stage"], "play");
    let (_, welcome) = host.sit(&fresh).await;
    assert_eq!(welcome["seq"], 1);
    let mut old = host.connect().await;
    old.say(json!({ "type": "hello", "token": token })).await;
    assert_eq!(old.hear().await.expect("a refusal")["code"], "no-such-session");
    host.stop().await;
}

#[tokio::test]
async fn who_declines_plays_nothing_and_ids_are_checked() {
    let (_folder, file) = scratch();
    let host = Host::study(STUDY, &file).await;
    let (token, _) = join(&host, "cleo").await;
    let state = next(&host, &token, json!({ "stage": "consent", "consents": false })).await;
    assert_eq!(state["stage"], "declined");
    let state = next(&host, &token, json!({ "stage": "tutorial" })).await;
    assert_eq!(state["stage"], "declined", "there is no way around it");
    let mut client = host.connect().await;
    client.say(json!({ "type": "hello", "token": token })).await;
    assert_eq!(client.hear().await.expect("a refusal")["code"], "no-such-session");
    for id in ["", "a b", "x';DROP TABLE step", &"y".repeat(65)] {
        assert_eq!(host.post("/api/study/join", json!({ "participant": id })).await.0, 400, "{id}");
    }
    // A study is the only thing that is played here, and its agents are nobody's business.
    assert!(!host.get("/api/offers").await.1.contains("kuhn-poker"));
    let booking = json!({ "offer": "kuhn-poker.nash", "slot": 0, "n_episodes": 3, "mind": "after" });
    assert_eq!(host.post("/api/sessions", booking).await.0, 403);
    host.stop().await;
}

#[tokio::test]
async fn a_participant_is_deleted_for_good() {
    let (_folder, file) = scratch();
    let host = Host::study(STUDY, &file).await;
    for name in ["dora-secret", "emil"] {
        let token = to_the_table(&host, name).await;
        let (mut client, _) = host.sit(&token).await;
        client.act(0, 1).await;
    }
    host.stop().await;
    let mut study = StudyFile::open(&file).expect("the file");
    assert_eq!(study.delete("dora-secret").expect("she was there"), 1);
    assert!(study.delete("dora-secret").is_err());
    assert_eq!(study.summary().expect("a summary").steps, 1);
    drop(study);
    let holds = |file: &PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(11).any(|window| window == b"dora-secret")
    };
    assert!(!holds(&file) && !holds(&file.with_extension("sqlite-wal")), "no trace is left");
}

#[test]
fn studies_that_cannot_be_are_refused_by_name() {
    let offers = Offers::scripted().expect("scripted egos");
    let (_folder, file) = scratch();
    let open = |text: &str| {
        let config = StudyConfig::from_toml("study.toml", text)?;
        Study::open(config, &offers, &file).map(|_| ())
    };
    let refused = |from: &str, to: &str| open(&STUDY.replacen(from, to, 1)).expect_err(to).to_string();
    assert!(refused("kuhn-poker.nash", "kuhn-poker.oracle").contains("kuhn-poker.oracle"));
    assert!(refused("kuhn-poker.nash", "overcooked.static").contains("one and the same game"));
    assert!(refused("encounters = 2", "encounters = 0").contains("encounters"));
    assert!(refused("episodes = 2", "episodes = 2000").contains("episodes"));
    assert!(refused("seed = 3", "sede = 3").contains("sede"));
    assert!(refused("points = 7", "point = 7").contains("point"));
    assert!(refused("title = \"Cards\"", "title = \"Cards\"\nmind = \"live\"").contains("mind"));
    open(STUDY).expect("as it is, it is good");
    let other =
        open(&STUDY.replacen("id = \"cards\"", "id = \"dice\"", 1)).expect_err("another study's file");
    assert!(other.to_string().contains("cards"), "{other}");
    std::fs::write(&file, "not a database, but long enough to be looked at for a while").expect("a file");
    assert!(open(STUDY).is_err());
}
