//! Studies: the stages, the durability of every step, versions, enrolment and deletion.

use std::path::{Path, PathBuf};

use pace_play::study::export::Format;
use pace_play::{AgentCatalog, Study, StudyConfig, StudyError, StudyFile};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::host::Host;

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

async fn join_and_begin(host: &Host, participant: &str) -> String {
    let (token, state) = join(host, participant).await;
    assert_eq!(state["stage"], "consent");
    next(host, &token, json!({ "stage": "consent", "consents": true })).await;
    let state = next(host, &token, json!({ "stage": "tutorial" })).await;
    assert_eq!((&state["stage"], &state["number"]), (&json!("play"), &json!(0)));
    token
}

#[tokio::test]
async fn all_stages_of_a_participant_are_stored() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    let token = join_and_begin(&host, "ann").await;
    let mut n_steps = 0;
    for number in 0..2 {
        let (mut client, welcome) = host.join_session(&token).await;
        assert_eq!((&welcome["mind"], &welcome["watch"]), (&json!("never"), &Value::Null));
        assert!(
            !welcome.to_string().contains("kuhn-poker."),
            "participants are not told the agent: {welcome}"
        );
        // The next encounter begins only after the end of this one.
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
        let over = client.receive().await.expect("the end");
        assert_eq!((&over["summary"], &over["link"]), (&Value::Null, &Value::Null), "nothing is shown");
        n_steps += count;
        let state = next(&host, &token, json!({ "stage": "play", "number": number })).await;
        let repeated = next(&host, &token, json!({ "stage": "play", "number": number })).await;
        assert_eq!(
            (&state["stage"], &state["number"]),
            (&repeated["stage"], &repeated["number"]),
            "a repeated request has no effect"
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
    let replay = pace_play::replay::replay(&AgentCatalog::scripted().expect("scripted egos"), link)
        .expect("it can be shown");
    assert!(replay.is_over && replay.summary.episodes.len() == 2);
    let summary = study.summary().expect("a summary");
    assert_eq!((summary.steps, summary.agents.len(), summary.open_encounters), (n_steps, 2, 0));
}

#[tokio::test]
async fn restarted_server_restores_the_session_of_a_participant() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    let token = join_and_begin(&host, "bob").await;
    let (mut client, _) = host.join_session(&token).await;
    let answer = client.act(0, 1).await;
    let now = answer["frames"].as_array().and_then(|frames| frames.last()).cloned();
    host.stop().await;
    let host = Host::start_study(STUDY, &file).await;
    // The token is still valid, and the session is restored from its steps.
    let (_, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 1);
    assert_eq!(welcome["frames"].as_array().and_then(|frames| frames.last()).cloned(), now);
    // Opening the link again takes over the session.
    let (fresh, state) = join(&host, "bob").await;
    assert_eq!(state["stage"], "play");
    let (_, welcome) = host.join_session(&fresh).await;
    assert_eq!(welcome["seq"], 1);
    let mut old = host.connect().await;
    old.send(json!({ "type": "hello", "token": token })).await;
    assert_eq!(old.receive().await.expect("a refusal")["code"], "no-such-session");
    host.stop().await;
}

#[tokio::test]
async fn declined_participants_cannot_play_and_ids_are_checked() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    let (token, _) = join(&host, "cleo").await;
    let state = next(&host, &token, json!({ "stage": "consent", "consents": false })).await;
    assert_eq!(state["stage"], "declined");
    let state = next(&host, &token, json!({ "stage": "tutorial" })).await;
    assert_eq!(state["stage"], "declined", "the stage cannot be skipped");
    let mut client = host.connect().await;
    client.send(json!({ "type": "hello", "token": token })).await;
    assert_eq!(client.receive().await.expect("a refusal")["code"], "no-such-session");
    for id in ["", "a b", "x';DROP TABLE step", &"y".repeat(65)] {
        assert_eq!(host.post("/api/study/join", json!({ "participant": id })).await.0, 400, "{id}");
    }
    // A server with a study lists no agents and starts no other sessions.
    assert!(!host.get("/api/offers").await.1.contains("kuhn-poker"));
    let config = json!({ "offer": "kuhn-poker.nash", "slot": 0, "n_episodes": 3, "mind": "after" });
    assert_eq!(host.post("/api/sessions", config).await.0, 403);
    host.stop().await;
}

#[tokio::test]
async fn deleting_a_participant_leaves_no_data() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    for name in ["dora-secret", "emil"] {
        let token = join_and_begin(&host, name).await;
        let (mut client, _) = host.join_session(&token).await;
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
fn invalid_studies_are_refused_with_the_key() {
    let catalog = AgentCatalog::scripted().expect("scripted egos");
    let (_folder, file) = scratch();
    let open = |text: &str| {
        let config = StudyConfig::from_toml("study.toml", text)?;
        Study::open(config, &catalog, &file).map(|_| ())
    };
    let refused = |from: &str, to: &str| open(&STUDY.replacen(from, to, 1)).expect_err(to).to_string();
    assert!(refused("kuhn-poker.nash", "kuhn-poker.oracle").contains("kuhn-poker.oracle"));
    assert!(refused("kuhn-poker.nash", "overcooked.static").contains("the same game"));
    assert!(refused("encounters = 2", "encounters = 0").contains("encounters"));
    assert!(refused("episodes = 2", "episodes = 2000").contains("episodes"));
    assert!(refused("seed = 3", "sede = 3").contains("sede"));
    assert!(refused("points = 7", "point = 7").contains("point"));
    assert!(
        refused("points = 7", "points = 0").contains("question \"liked\": `points`: found 0, expected 2")
    );
    assert!(refused("points = 7", "points = 1").contains("`points`"));
    let choice =
        "id = \"which\"\ntext = \"Which?\"\nkind = \"choice\"\nchoices = []\n\n[[questions]]\nid = \"liked\"";
    assert!(refused("id = \"liked\"", choice).contains("`choices`"));
    assert!(refused("seed = 3", "seed = 3\nversion = 0").contains("`version`"));
    for enrolment in ["participants = []", "participants = [\"a b\"]", "joins_per_minute = 0", "open = true"]
    {
        let key = enrolment.split(' ').next().expect("a key");
        let text = format!("{STUDY}\n[enrolment]\n{enrolment}\n");
        assert!(open(&text).expect_err(enrolment).to_string().contains(key), "{enrolment}");
    }
    assert!(refused("title = \"Cards\"", "title = \"Cards\"\nmind = \"live\"").contains("mind"));
    open(STUDY).expect("the study itself is valid");
    let other =
        open(&STUDY.replacen("id = \"cards\"", "id = \"dice\"", 1)).expect_err("another study's file");
    assert!(other.to_string().contains("cards"), "{other}");
    std::fs::write(&file, "not a database, but long enough to be looked at for a while").expect("a file");
    assert!(open(STUDY).is_err());
    std::fs::remove_file(&file).expect("it was there");
    let other = Connection::open(&file).expect("a database");
    other.execute_batch("CREATE TABLE recipe (id TEXT)").expect("a table");
    assert!(open(STUDY).expect_err("not a study").to_string().contains("another program"));
    let n_tables = "SELECT COUNT(*) FROM sqlite_schema";
    assert_eq!(other.query_row(n_tables, [], |row| row.get::<_, i64>(0)).expect("a number"), 1);
}

/// Number of times a text occurs in the files of a folder.
fn occurrences(folder: &Path, text: &str) -> usize {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let count = |file: PathBuf| {
        let bytes = std::fs::read(file).expect("its bytes");
        bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    };
    files.map(count).sum()
}

#[test]
fn incomplete_deletion_fails_and_can_be_repeated() {
    const SECRET: &str = "the-recognisable-answer-of-dora";
    let (folder, file) = scratch();
    drop(open(STUDY, &file).expect("a study"));
    let writer = Connection::open(&file).expect("the file");
    for participant in ["dora", "emil"] {
        writer
            .execute(
                "INSERT INTO participant (id, version, platform_study, platform_session, token_hash, stage, joined_ms)
                 VALUES (?1, 1, '', '', ?1, 'finished', 0)",
                [participant],
            )
            .expect("a participant");
        for question in 0..200 {
            let value =
                if participant == "dora" { format!("{question} {SECRET}") } else { "fine".to_owned() };
            writer
                .execute(
                    "INSERT INTO answer (participant, question, value, server_ms) VALUES (?1, ?2, ?3, 0)",
                    params![participant, question.to_string(), value],
                )
                .expect("an answer");
        }
    }
    drop(writer);
    let reader = Connection::open(&file).expect("the file");
    let count = |who: &str| {
        let query = "SELECT COUNT(*) FROM answer WHERE participant = ?1";
        reader.query_row(query, [who], |row| row.get::<_, i64>(0)).expect("a number")
    };
    reader.execute_batch("BEGIN").expect("a transaction");
    assert_eq!(count("dora"), 200);
    let delete = |participant: &str| StudyFile::open(&file).expect("the file").delete(participant);
    let error = delete("dora").expect_err("the reader still holds the old pages");
    assert!(matches!(error, StudyError::NotErased { .. }), "{error}");
    let words = error.to_string();
    for part in ["\"dora\" is deleted from the tables", "still on the disk", "run the same command again"] {
        assert!(words.contains(part), "{words}");
    }
    assert!(occurrences(folder.path(), SECRET) >= 200, "the reader must keep the text on the disk");
    reader.execute_batch("COMMIT").expect("the end of the transaction");
    assert_eq!(delete("dora").expect("the second time it is possible"), 0);
    assert_eq!(occurrences(folder.path(), SECRET), 0, "no byte is left");
    assert_eq!(occurrences(folder.path(), "dora"), 0);
    assert_eq!((count("dora"), count("emil")), (0, 200));
    assert!(matches!(delete("dora"), Err(StudyError::NoSuchParticipant { .. })));
}

fn open(study: &str, file: &Path) -> Result<Study, StudyError> {
    let config = StudyConfig::from_toml("study.toml", study)?;
    Study::open(config, &AgentCatalog::scripted().expect("scripted egos"), file)
}

/// Opens the file after a server of this thread, which may still hold its lock. Returns the reason of a refusal.
async fn reopen(study: &str, file: &Path) -> Result<(), String> {
    let (study, file) = (study.to_owned(), file.to_owned());
    let opening = tokio::task::spawn_blocking(move || open(&study, &file).map(drop));
    opening.await.expect("a thread").map_err(|error| error.to_string())
}

fn rows(file: &Path, table: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    StudyFile::open(file).expect("the file").export(table, Format::JsonLines, &mut lines).expect("an export");
    let text = String::from_utf8(lines).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test]
async fn changed_study_needs_a_new_version() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    join(&host, "ann").await;
    host.stop().await;

    let changed =
        STUDY.replacen("Do you agree?", "Do you agree to more?", 1).replacen("seed = 3", "seed = 4", 1);
    let words = reopen(&changed, &file).await.expect_err("the study has changed");
    for part in ["version 1", "`consent`, `seed`;", "`version = 2`"] {
        assert!(words.contains(part), "{words}");
    }
    for (from, to, key) in [
        ("\"kuhn-poker.bayes\", ", "", "`agents`"),
        ("Did you like it?", "Did you hate it?", "`questions`"),
        ("episodes = 2\n", "", "`episodes`"),
        ("DONE", "OVER", "`completion_code`"),
    ] {
        let words = reopen(&STUDY.replacen(from, to, 1), &file).await.expect_err(key);
        assert!(words.contains(key), "{words}");
    }
    // Enrolment does not belong to a version.
    let listed = format!("{STUDY}\n[enrolment]\nparticipants = [\"ann\"]\n");
    reopen(&listed, &file).await.expect("the same study");

    let second = format!("version = 2\n{changed}");
    let host = Host::start_study(&second, &file).await;
    assert_eq!(join(&host, "ann").await.1["consent"], "Do you agree?", "she keeps what she joined");
    assert_eq!(join(&host, "ben").await.1["consent"], "Do you agree to more?");
    for (participant, seed) in [("ann", 3), ("ben", 4)] {
        join_and_begin(&host, participant).await;
        let encounters = rows(&file, "encounters");
        let of = |row: &&Value| row["participant"] == participant;
        let encounter = encounters.iter().find(of).expect("an encounter").clone();
        // The first encounter of the first participant of this version, under this version's seed.
        let (folder, alone) = scratch();
        let text = STUDY.replacen("seed = 3", &format!("seed = {seed}"), 1);
        let other = Host::start_study(&text, &alone).await;
        join_and_begin(&other, "alone").await;
        assert_eq!(rows(&alone, "encounters")[0]["seed"], encounter["seed"], "{participant}");
        other.stop().await;
        drop(folder);
    }
    host.stop().await;
    let versions = rows(&file, "versions");
    let consents: Vec<&str> = versions.iter().map(|row| row["config"].as_str().expect("text")).collect();
    assert!(consents[0].contains("Do you agree?") && consents[1].contains("Do you agree to more?"));
    assert_eq!(versions[0]["fingerprints"]["kuhn-poker.nash"], "scripted-1");
    let joined: Vec<(Value, Value)> = rows(&file, "participants")
        .into_iter()
        .map(|row| (row["participant"].clone(), row["version"].clone()))
        .collect();
    assert_eq!(joined, [(json!("ann"), json!(1)), (json!("ben"), json!(2))]);
    let summary = StudyFile::open(&file).expect("the file").summary().expect("a summary");
    assert_eq!(summary.versions.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1)]);
    reopen(STUDY, &file).await.expect("the first version is still known");
}

#[tokio::test]
async fn changed_weights_need_a_new_version() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    join_and_begin(&host, "ann").await;
    host.stop().await;
    let database = Connection::open(&file).expect("the file");
    let trained_again = "UPDATE version SET fingerprints = replace(fingerprints, 'scripted', 'earlier')";
    database.execute(trained_again, []).expect("other weights");
    let words = reopen(STUDY, &file).await.expect_err("other weights");
    assert!(words.contains("weights of agent \"kuhn-poker.nash\""), "{words}");
    // Participants of the earlier weights are refused, without the name of the agent.
    let host = Host::start_study(&format!("version = 2\n{STUDY}"), &file).await;
    let (status, refusal) = host.post("/api/study/join", json!({ "participant": "ann" })).await;
    assert_eq!((status, &refusal["code"]), (400, &json!("forbidden")));
    let words = refusal["message"].as_str().expect("words");
    assert!(words.contains("changed since you began") && !words.contains("kuhn"), "{words}");
    join(&host, "ben").await;
    host.stop().await;
}

async fn can_join(host: &Host, body: Value) -> bool {
    let (status, answer) = host.post("/api/study/join", body).await;
    assert!(status == 200 || answer["code"] == "forbidden", "{answer}");
    status == 200
}

#[tokio::test]
async fn only_listed_participants_can_join() {
    let (_folder, file) = scratch();
    let study = format!("{STUDY}\n[enrolment]\nparticipants = [\"p-1\", \"p-2\"]\n");
    let host = Host::start_study(&study, &file).await;
    for (participant, is_listed) in
        [("p-1", true), ("p-2", true), ("p-3", false), ("P-1", false), ("p-1", true)]
    {
        assert_eq!(can_join(&host, json!({ "participant": participant })).await, is_listed, "{participant}");
    }
    host.stop().await;
    assert_eq!(rows(&file, "participants").len(), 2);
}

#[tokio::test]
async fn signed_links_are_valid_only_for_their_participant() {
    let (_folder, file) = scratch();
    let host = Host::start_study(&format!("{STUDY}\n[enrolment]\nsigned_links = true\n"), &file).await;
    let key = |participant: &str| {
        let link = StudyFile::open(&file).expect("the file").link(participant).expect("a link");
        let (start, key) = link.split_once("&key=").expect("a key");
        assert_eq!(start, format!("/study?participant={participant}"));
        key.to_owned()
    };
    let (own, others) = (key("p-1"), key("p-2"));
    let shorter = &own[1..];
    for wrong in ["", "0", shorter, &others, &own.replace(|c: char| c.is_ascii_digit(), "0"), &"g".repeat(64)]
    {
        assert!(!can_join(&host, json!({ "participant": "p-1", "key": wrong })).await, "{wrong}");
    }
    assert!(!can_join(&host, json!({ "participant": "p-1" })).await);
    assert!(can_join(&host, json!({ "participant": "p-1", "key": own })).await);
    assert!(
        !can_join(&host, json!({ "participant": "p-1" })).await,
        "a joined participant also needs the key"
    );
    host.stop().await;
    assert!(StudyFile::open(&file).expect("the file").link("a b").is_err());
    // Keys differ between studies.
    let (_other_folder, other) = scratch();
    drop(open(STUDY, &other).expect("a study"));
    assert!(!StudyFile::open(&other).expect("the file").link("p-1").expect("a link").ends_with(&own));
}

#[tokio::test]
async fn new_participants_per_minute_are_limited() {
    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    let token = join_and_begin(&host, "ann").await;
    let mut n_joined = 0;
    for number in 0..300 {
        let fake = json!({ "participant": format!("fake-{number}") });
        let (status, answer) = host.post("/api/study/join", fake).await;
        assert!(status == 200 || answer["code"] == "too-fast", "{answer}");
        n_joined += usize::from(status == 200);
    }
    assert!((99..200).contains(&n_joined), "{n_joined}");
    // Known participants are not limited.
    let (mut client, _) = host.join_session(&token).await;
    assert_eq!(client.act(0, 1).await["type"], "frames");
    assert_eq!(join(&host, "ann").await.1["stage"], "play");
    host.stop().await;
    assert_eq!(rows(&file, "participants").len(), n_joined + 1);
}

#[tokio::test]
async fn locked_file_is_reported_without_its_path() {
    let (folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    let token = join_and_begin(&host, "ann").await;
    let (mut client, _) = host.join_session(&token).await;
    let holder = Connection::open(&file).expect("the file");
    holder.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    let (status, refused) = host.post("/api/study/join", json!({ "participant": "ben" })).await;
    assert_eq!((status, &refused["code"]), (400, &json!("not-durable")));
    let step = client.act(0, 1).await;
    assert_eq!(step["code"], "not-durable");
    let scratch = folder.path().to_str().expect("UTF-8");
    assert!(
        refused["message"].as_str().expect("words").contains("another program holds the file"),
        "{refused}"
    );
    for answer in [refused, step] {
        let words = answer["message"].as_str().expect("words");
        assert!(
            !words.contains("closed") && !words.contains(scratch) && !words.contains("sqlite"),
            "{words}"
        );
    }
    holder.execute_batch("ROLLBACK").expect("the end of the transaction");
    let (_, welcome) = host.join_session(&token).await;
    assert_eq!(welcome["seq"], 0, "the step was refused, so it is not there");
    join(&host, "ben").await;
    host.stop().await;
}

#[test]
fn file_can_have_only_one_server() {
    let (_folder, file) = scratch();
    let first = open(STUDY, &file).expect("a study");
    let error = open(STUDY, &file).err().expect("the file has a server");
    assert!(matches!(error, StudyError::InUse { .. }), "{error}");
    assert!(!error.to_string().contains('\n'));
    StudyFile::open(&file).expect("readers are welcome").summary().expect("a summary");
    drop(first);
    open(STUDY, &file).expect("the first is gone");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, file) = scratch();
    // Also if an earlier version left a file that all users can read.
    Host::start_study(STUDY, &file).await.stop().await;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("our own file");
    let host = Host::start_study(STUDY, &file).await;
    join_and_begin(&host, "ann").await;
    let modes: Vec<(String, u32)> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("a file"))
        .map(|entry| {
            let mode = entry.metadata().expect("its mode").permissions().mode() & 0o777;
            (entry.file_name().into_string().expect("UTF-8"), mode)
        })
        .collect();
    for name in ["study.sqlite", "study.sqlite-wal", "study.sqlite-shm"] {
        assert!(modes.contains(&(name.to_owned(), 0o600)), "{name}: {modes:?}");
    }
    assert!(modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
    host.stop().await;
}

/// Plays an encounter to its end. Returns the replay link if participants may see it.
async fn play_out(host: &Host, token: &str) -> Option<String> {
    let (mut client, _) = host.join_session(token).await;
    let mut seq = 0;
    loop {
        let answer = client.act(seq, 1).await;
        seq = answer["seq"].as_u64().expect("a number") as usize;
        let frames = answer["frames"].as_array().expect("frames");
        if frames.last().expect("a frame")["is_asked"] == false {
            let over = client.receive().await.expect("the end");
            return over["link"].as_str().map(str::to_owned);
        }
    }
}

#[tokio::test]
async fn maps_and_other_replays_are_closed_during_a_study() {
    let catalog = AgentCatalog::scripted().expect("scripted egos");
    let agent = catalog.find("kuhn-poker.nash").expect("it is there");
    let config =
        pace_play::SessionConfig { agent: agent.id.clone(), slot: 0, tuple: 0, n_episodes: 2, seed: 5 };
    let (session, _) =
        pace_play::Session::begin(agent, config, pace_play::session::Detail::Seen).expect("a session");
    let made_up = pace_play::replay::link(&session);

    let (_folder, file) = scratch();
    let host = Host::start_study(STUDY, &file).await;
    assert_eq!(host.get("/api/offers/kuhn-poker.nash/map").await.0, 403);
    assert_eq!(host.post("/api/replay", json!({ "link": made_up })).await.0, 403);
    let token = join_and_begin(&host, "ann").await;
    assert_eq!(play_out(&host, &token).await, None);
    host.stop().await;

    // With `mind = "after"`, participants may see the replays of their own encounters.
    let (_folder, file) = scratch();
    let host = Host::start_study(&format!("mind = \"after\"\n{STUDY}"), &file).await;
    let token = join_and_begin(&host, "ann").await;
    let link = play_out(&host, &token).await.expect("a link");
    assert_eq!(host.post("/api/replay", json!({ "link": link })).await.0, 200);
    assert_eq!(host.get("/api/offers/kuhn-poker.nash/map").await.0, 200);
    let other_cards = link.replacen("~0~", "~1~", 1);
    for link in [&made_up[..], &other_cards, &link[..link.len() - 1], "", "~~~~~~~"] {
        assert_eq!(host.post("/api/replay", json!({ "link": link })).await.0, 403, "{link}");
    }
    host.stop().await;
}

#[tokio::test]
async fn file_of_format_1_is_migrated() {
    const FORMAT_1: &str = "
        CREATE TABLE study (id TEXT NOT NULL PRIMARY KEY, config TEXT NOT NULL) STRICT;
        CREATE TABLE participant (
            id TEXT NOT NULL PRIMARY KEY, platform_study TEXT NOT NULL, platform_session TEXT NOT NULL,
            token_hash TEXT NOT NULL UNIQUE, stage TEXT NOT NULL, arm INTEGER UNIQUE, joined_ms INTEGER NOT NULL,
            consented_ms INTEGER, finished_ms INTEGER) STRICT;
        CREATE TABLE encounter (
            id INTEGER PRIMARY KEY, participant TEXT NOT NULL REFERENCES participant (id) ON DELETE CASCADE,
            number INTEGER NOT NULL, game TEXT NOT NULL, agent TEXT NOT NULL, fingerprint TEXT NOT NULL,
            slot INTEGER NOT NULL, tuple INTEGER NOT NULL, n_episodes INTEGER NOT NULL, seed INTEGER NOT NULL,
            started_ms INTEGER NOT NULL, finished_ms INTEGER, score REAL, outcomes TEXT, UNIQUE (participant, number)) STRICT;
        CREATE TABLE step (
            encounter INTEGER NOT NULL REFERENCES encounter (id) ON DELETE CASCADE, seq INTEGER NOT NULL,
            episode INTEGER NOT NULL, action INTEGER NOT NULL, action_name TEXT NOT NULL, moves TEXT NOT NULL,
            client_ms INTEGER, server_ms INTEGER NOT NULL, PRIMARY KEY (encounter, seq)) STRICT, WITHOUT ROWID;
        CREATE TABLE answer (
            participant TEXT NOT NULL REFERENCES participant (id) ON DELETE CASCADE, question TEXT NOT NULL,
            value TEXT NOT NULL, server_ms INTEGER NOT NULL, PRIMARY KEY (participant, question)) STRICT;
        INSERT INTO participant VALUES ('ann', 's', 'v', 'hash', 'play', 0, 7, 8, NULL);
        INSERT INTO participant VALUES ('ben', '', '', 'other', 'consent', NULL, 9, NULL, NULL);
        INSERT INTO encounter VALUES (5, 'ann', 0, 'kuhn-poker', 'kuhn-poker.nash', 'scripted-1', 0, 3, 2, 77, 8, NULL, NULL, NULL);
        INSERT INTO step VALUES (5, 0, 0, 1, 'bet', '[]', NULL, 9);
        PRAGMA user_version = 1;";
    let (_folder, file) = scratch();
    let database = Connection::open(&file).expect("a file");
    database.execute_batch(FORMAT_1).expect("the first format");
    // Written by the first format: without the keys that came later.
    database.execute("INSERT INTO study VALUES ('cards', ?1)", [STUDY]).expect("a study");
    drop(database);
    assert_eq!(rows(&file, "steps").len(), 1, "the steps are still there");
    let expected = json!({ "table": "participants", "participant": "ann", "version": 1, "platform_study": "s",
        "platform_session": "v", "stage": "play", "arm": 0, "joined_ms": 7, "consented_ms": 8, "finished_ms": null });
    assert_eq!(rows(&file, "participants")[0], expected);
    let fingerprints = |file: &Path| rows(file, "versions")[0]["fingerprints"].clone();
    assert_eq!(fingerprints(&file), json!({ "kuhn-poker.nash": "scripted-1" }));
    assert!(open(&STUDY.replacen("seed = 3", "seed = 4", 1), &file).is_err(), "the stored study is compared");
    let host = Host::start_study(STUDY, &file).await;
    let (token, state) = join(&host, "ann").await;
    assert_eq!((&state["stage"], &state["number"]), (&json!("play"), &json!(0)));
    assert_eq!(host.join_session(&token).await.1["seq"], 1);
    join_and_begin(&host, "ben").await;
    host.stop().await;
    assert_eq!(fingerprints(&file).as_object().map(serde_json::Map::len), Some(2));
    let mut study = StudyFile::open(&file).expect("the file");
    assert_eq!(study.delete("ann").expect("she was there"), 1);
    assert_eq!(rows(&file, "participants").len(), 1);
}
