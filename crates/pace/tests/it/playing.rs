//! The play server as a process: killed during a study, under load, and with invalid arguments.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use pace_lab::{RunView, TrainedAgent};
use pace_learn::METHODS;
use pace_play::bots::{LoadConfig, play};
use pace_play::catalog::LoadedAgent;
use pace_play::session::Detail;
use pace_play::{PlayableAgent, Session, SessionConfig, StudyFile};

use crate::commands::{check_error, json, run};
use crate::training::SMALL_GSCU;

const STUDY: &str = "id = \"fault\"\ntitle = \"Fault\"\nconsent = \"Yes?\"\nagents = [\"kuhn-poker.nash\"]\n\
                     assignment = \"between\"\nencounters = 500\nepisodes = 20\nseed = 1\ncompletion_code = \"none\"\n";

struct Server(Child);

impl Server {
    fn start(study: &Path, port: u16) -> (Server, SocketAddr) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pace"))
            .args(["play", "--port", &port.to_string(), "--study", study.to_str().expect("UTF-8")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/study"));
        (Server(child), address.and_then(|address| address.parse().ok()).expect("an address"))
    }

    /// Kills the process, on Unix with SIGKILL, as a loss of power would.
    fn kill(mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it ends");
    }
}

#[test]
fn a_killed_server_keeps_every_acknowledged_step_and_every_bot_resumes() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let study = folder.path().join("study.toml");
    std::fs::write(&study, STUDY).expect("a study");
    let (server, address) = Server::start(&study, 0);
    let config = LoadConfig {
        address,
        n_bots: 50,
        rate: 20.0,
        ramp_up: Duration::from_millis(500),
        duration: Duration::from_secs(6),
        name: "bot".to_owned(),
        seed: 2,
    };
    let bots = std::thread::spawn(move || play(&config).expect("bots"));
    std::thread::sleep(Duration::from_millis(2500));
    server.kill();
    let (server, _) = Server::start(&study, address.port());
    let report = bots.join().expect("the bots end");
    assert!(report.broken >= 50, "every bot lost its connection: {report:?}");
    assert_eq!((report.lost_after_reconnect, report.unfinished_bots), (0, 0), "every bot was recognised");
    assert_eq!(report.resumed, 50, "every bot resumed");
    assert!(report.acknowledged > 500, "{}", report.acknowledged);
    server.kill();
    let file = study.with_extension("sqlite");
    let kept = StudyFile::open(&file).expect("the file");
    let n_steps = kept.n_steps().expect("the steps of every encounter");
    assert_eq!(report.lost_steps(&n_steps), 0, "every acknowledged step is in its encounter");
    let summary = kept.summary().expect("a summary");
    assert!(summary.steps >= report.acknowledged, "{} of {}", summary.steps, report.acknowledged);
    // Steps without acknowledgement may be stored too: at most one per bot and connection, for two connections.
    assert!(summary.steps <= report.acknowledged + 100, "{} of {}", summary.steps, report.acknowledged);
    assert_eq!(summary.stages.values().sum::<usize>(), 50);
    let file = file.to_str().expect("UTF-8");
    let steps = run(&["study", "export", file, "--csv"]);
    assert_eq!(steps.lines().count(), summary.steps + 1);
    assert!(run(&["study", "summary", file]).contains("kuhn-poker.nash"));
    check_error(&["study", "delete", file, "absent"], 3, &["absent", "participants"]);
    // A reader that has not read everything yet keeps the data on the disk. CSV of these steps could fit into the pipe.
    let mut reader = Command::new(env!("CARGO_BIN_EXE_pace"))
        .args(["study", "export", file, "--jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reader starts");
    let mut lines = BufReader::new(reader.stdout.take().expect("its rows"));
    lines.read_line(&mut String::new()).expect("its first row");
    check_error(
        &["study", "delete", file, "bot-7"],
        1,
        &["bot-7", "still on the disk", "run the same command again"],
    );
    drop(lines);
    reader.wait().expect("it ends");
    let deleted = run(&["study", "delete", file, "bot-7"]);
    let n_deleted: usize = n_steps.iter().filter(|((bot, _), _)| bot == "bot-7").map(|(_, n)| n).sum();
    assert_eq!(deleted.trim(), format!("deleted bot-7 with {n_deleted} steps"));
    assert!(!run(&["study", "export", file, "--jsonl"]).contains("\"bot-7\""));
    check_error(&["study", "export", file, "--csv", "--table", "moves"], 2, &["moves", "steps"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_out_of_file_descriptors_reports_it_and_continues() {
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 40; exec \"$0\" play --port 0", env!("CARGO_BIN_EXE_pace")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("its address");
    let address =
        line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/')).expect("an address");
    let connect = || TcpStream::connect(address).expect("the system accepts it for the server");
    let open: Vec<TcpStream> = (0..60).map(|_| connect()).collect();
    let mut log = BufReader::new(child.stderr.take().expect("its log"));
    let mut said = String::new();
    log.read_line(&mut said).expect("a line");
    assert!(said.contains("cannot accept connections") && said.contains("ulimit -n"), "{said}");
    drop(open);
    let mut client = connect();
    client.write_all(b"GET /api/health HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("a request");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.contains("200 OK"), "{answer}");
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
}

#[test]
fn a_study_prints_its_link_and_is_served_once_and_unchanged() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (study, file) = (path("study.toml"), path("study.sqlite"));
    std::fs::write(&study, STUDY).expect("a study");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pace"))
        .args(["play", "--port", "0", "--study", &study])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut hint = String::new();
    BufReader::new(child.stderr.take().expect("its output")).read_line(&mut hint).expect("a hint");
    let server = Server(child);
    assert!(hint.contains("http://127.0.0.1:") && hint.trim().ends_with("/study?participant=ID"), "{hint}");
    check_error(&["play", "--port", "0", "--study", &study], 1, &["another `pace play`", "study.sqlite"]);
    let links = run(&["study", "links", &file, "p-1", "p-2", "--address", "https://lab.example.org/"]);
    let links: Vec<&str> = links.lines().collect();
    assert!(links[0].starts_with("https://lab.example.org/study?participant=p-1&key="), "{links:?}");
    assert_eq!(links.len(), 2);
    check_error(&["study", "links", &file, "a b"], 3, &["a b", "letters"]);
    server.kill();
    std::fs::write(&study, STUDY.replacen("Yes?", "Really?", 1)).expect("another study");
    check_error(&["play", "--port", "0", "--study", &study], 3, &["`consent`", "`version = 2`"]);
}

#[test]
fn an_agent_of_every_method_can_be_played_with() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for method in METHODS {
        let folder = scratch.path().join(method.id);
        let out = folder.to_str().expect("UTF-8");
        let mut arguments =
            vec!["train", "kuhn-poker", "--method", method.id, "--steps", "600", "--out", out];
        for key in ["encounters_per_tuple=1", "epochs=1", "warm_up_steps=0", "episodes_per_encounter=4"] {
            arguments.extend(["--set", key]);
        }
        if method.id == "gscu" {
            arguments.extend(SMALL_GSCU);
        }
        run(&arguments);
        let trained = TrainedAgent::load(&RunView::open(&folder).expect("a run")).expect("an agent");
        let agent = Arc::new(PlayableAgent::trained(LoadedAgent {
            id: method.id.to_owned(),
            label: method.id.to_owned(),
            game: Arc::from(trained.game),
            agent: trained.agent,
            identifies: trained.config.train.auxiliary_weight > 0.0,
            fingerprint: trained.fingerprint,
        }));
        let config = SessionConfig { agent: method.id.to_owned(), slot: 0, tuple: 3, n_episodes: 4, seed: 8 };
        let (mut session, _) = Session::begin(&agent, config.clone(), Detail::Seen).expect("a session");
        while !session.is_over() {
            let seq = session.actions().len();
            let answer = session.act(seq, (seq % 2) as u8).expect("it is allowed");
            let beliefs = answer.frames.iter().filter_map(|frame| frame.beliefs.as_ref());
            for share in beliefs.flat_map(|beliefs| beliefs.slots.iter().flatten()) {
                assert!((0.0..=1.001).contains(share), "{}", method.id);
            }
        }
        assert_eq!(session.summary().expect("a summary").episodes.len(), 4, "{}", method.id);
        let again = Session::resume(&agent, config, session.actions()).expect("the same again");
        assert_eq!(again.last_frame(), session.last_frame(), "{}", method.id);
    }
}

#[test]
fn the_bench_loses_no_step() {
    let arguments = [
        "bench",
        "play",
        "--agent",
        "kuhn-poker.nash",
        "--sessions",
        "40",
        "--rate",
        "10",
        "--seconds",
        "2",
        "--ramp-up",
        "0.5",
        "--json",
    ];
    let row = json(&arguments);
    assert_eq!((row["lost_steps"].as_u64(), row["stranded"].as_u64()), (Some(0), Some(0)), "{row}");
    assert!(row["acknowledged"].as_u64().is_some_and(|n| n > 200), "{row}");
    assert!(row["p99_ms"].is_number() && row["rss_mb"]["late"].is_number(), "{row}");
    #[cfg(target_os = "linux")]
    assert!(row["cpu"]["server_ms_per_action"].as_f64().is_some_and(|time| time > 0.0), "{row}");
}

#[test]
fn invalid_play_arguments_get_one_clear_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    check_error(&["play", &path("nowhere")], 3, &["nowhere"]);
    check_error(&["play", "--study", &path("none.toml")], 3, &["none.toml"]);
    std::fs::write(path("bad.toml"), "id = 3\n").expect("a file");
    check_error(&["play", "--study", &path("bad.toml")], 3, &["bad.toml"]);
    check_error(&["study", "summary", &path("none.sqlite")], 3, &["none.sqlite", "no such file"]);
    check_error(&["study", "summary", &path("bad.toml")], 3, &["bad.toml", "pace play --study"]);
    check_error(&["study", "export", &path("none.sqlite")], 2, &["--csv|--jsonl"]);
    check_error(&["bench", "play", "--agent", "absent"], 2, &["absent"]);
    check_error(&["bench", "play", "--rate", "0"], 2, &["--rate"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    check_error(&["play", "--port", &port], 1, &["cannot listen", &port]);
}
