//! Load test: many bots that take part in a study with random actions, to measure latency and lost steps.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use pace_games::{Seed, Stream};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::wire::VERSION;

/// Settings of a load test.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Address of the server.
    pub address: SocketAddr,
    /// Number of bots.
    pub n_bots: usize,
    /// Actions per second of each bot.
    pub rate: f64,
    /// Time over which the bots join, one after the other.
    pub ramp_up: Duration,
    /// Time of play after all bots have joined.
    pub duration: Duration,
    /// Prefix of the participant ids.
    pub name: String,
    /// Random seed of the actions.
    pub seed: u64,
}

/// Results of a load test.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Number of actions sent.
    pub sent: usize,
    /// Number of acknowledged actions.
    pub acknowledged: usize,
    /// Number of refused actions.
    pub refused: usize,
    /// Number of finished encounters.
    pub encounters: usize,
    /// Number of broken connections.
    pub broken: usize,
    /// Number of reconnections after which the server had fewer steps than it had acknowledged.
    pub lost_after_reconnect: usize,
    /// Number of bots that continued after a broken connection.
    pub resumed: usize,
    /// Number of bots that could not join, or not reconnect, before the deadline.
    pub unfinished_bots: usize,
    /// Latency of every acknowledged action.
    pub latencies: Vec<ReplyLatency>,
    /// Number of acknowledged steps of each encounter, by participant and number of the encounter.
    pub acknowledged_steps: BTreeMap<(String, usize), usize>,
}

/// The latency of one reply.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLatency {
    /// Time of the action since the start of the test.
    pub sent_at: Duration,
    /// Time from the action to its reply.
    pub took: Duration,
}

impl LoadReport {
    fn add(&mut self, other: LoadReport) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.encounters += other.encounters;
        self.broken += other.broken;
        self.lost_after_reconnect += other.lost_after_reconnect;
        self.resumed += other.resumed;
        self.unfinished_bots += other.unfinished_bots;
        self.latencies.extend(other.latencies);
        self.acknowledged_steps.extend(other.acknowledged_steps);
    }

    /// Quantile of the latency of the actions that were sent in this range of time.
    pub fn quantile(&self, share: f64, sent: Range<Duration>) -> Duration {
        let in_time = self.latencies.iter().filter(|latency| sent.contains(&latency.sent_at));
        let mut took: Vec<Duration> = in_time.map(|latency| latency.took).collect();
        took.sort_unstable();
        let last = took.len().saturating_sub(1);
        took.get((share * last as f64).round() as usize).copied().unwrap_or_default()
    }

    /// Number of acknowledged steps that are missing in the study's file. `stored` is the file's number of steps by encounter.
    pub fn lost_steps(&self, stored: &BTreeMap<(String, usize), usize>) -> usize {
        let n_stored = |encounter| stored.get(encounter).copied().unwrap_or(0);
        self.acknowledged_steps.iter().map(|(encounter, n)| n.saturating_sub(n_stored(encounter))).sum()
    }
}

/// Runs a load test against a server with a study.
pub fn play(config: &LoadConfig) -> std::io::Result<LoadReport> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(runtime.block_on(play_all(config)))
}

async fn play_all(config: &LoadConfig) -> LoadReport {
    let begin = Instant::now();
    let bots: Vec<_> = (0..config.n_bots)
        .map(|number| {
            let bot = Bot {
                config: config.clone(),
                participant: format!("{}-{number}", config.name),
                rng: Seed::new(config.seed).child("bot", &[number as u64]).stream("actions"),
                report: LoadReport::default(),
                begin,
                deadline: begin + config.ramp_up + config.duration,
                is_reconnecting: false,
            };
            // Spread over the ramp-up time.
            let delay = config.ramp_up.mul_f64(number as f64 / config.n_bots as f64);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                bot.take_part().await
            })
        })
        .collect();
    let mut report = LoadReport::default();
    for bot in bots {
        match bot.await {
            Ok(of_bot) => report.add(of_bot),
            Err(_) => report.unfinished_bots += 1,
        }
    }
    report
}

struct Bot {
    config: LoadConfig,
    participant: String,
    rng: Stream,
    report: LoadReport,
    begin: Instant,
    deadline: Instant,
    /// Whether the connection broke and no action was acknowledged since.
    is_reconnecting: bool,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A failed request or connection; the bot tries again.
struct ConnectionFailed;

/// Maximum time that a bot waits for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(20);

impl Bot {
    async fn take_part(mut self) -> LoadReport {
        while Instant::now() < self.deadline {
            if self.play_until_deadline().await.is_ok() {
                return self.report;
            }
            self.is_reconnecting = true;
            self.report.broken += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.report.unfinished_bots += 1;
        self.report
    }

    /// Joins and plays until the deadline, or until the connection fails.
    async fn play_until_deadline(&mut self) -> Result<(), ConnectionFailed> {
        let joined = self.post("/api/study/join", &json!({ "participant": self.participant })).await?;
        let token = joined["token"].as_str().ok_or(ConnectionFailed)?.to_owned();
        let mut state = joined;
        loop {
            let stage = state["stage"].as_str().ok_or(ConnectionFailed)?.to_owned();
            let mut next = json!({ "token": token, "stage": stage });
            match &stage[..] {
                "consent" => next["consents"] = Value::Bool(true),
                "tutorial" => {}
                "play" => {
                    let number = state["number"].as_u64().ok_or(ConnectionFailed)? as usize;
                    if !self.play_encounter(&token, number).await? {
                        return Ok(());
                    }
                    next["number"] = state["number"].clone();
                    self.report.encounters += 1;
                }
                _ => return Ok(()),
            }
            state = self.post("/api/study/next", &next).await?;
        }
    }

    /// Plays one encounter and returns whether it was finished before the deadline.
    async fn play_encounter(&mut self, token: &str, number: usize) -> Result<bool, ConnectionFailed> {
        let mut socket = self.connect().await?;
        send(&mut socket, &json!({ "type": "hello", "token": token })).await?;
        let welcome = receive(&mut socket).await?;
        if welcome.kind != "welcome" {
            return Err(ConnectionFailed);
        }
        let mut seq = welcome.seq;
        let encounter = (self.participant.clone(), number);
        if self.report.acknowledged_steps.get(&encounter).is_some_and(|n| seq < *n) {
            self.report.lost_after_reconnect += 1;
        }
        let n_actions = welcome.action_names.len().max(1) as u32;
        let mut is_over = welcome.is_over;
        let mut interval = tokio::time::interval(Duration::from_secs_f64(1.0 / self.config.rate));
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !is_over {
            interval.tick().await;
            if Instant::now() >= self.deadline {
                let _ = socket.close(None).await;
                return Ok(false);
            }
            let action = self.rng.below(n_actions);
            let sent_at = Instant::now();
            send(&mut socket, &json!({ "type": "act", "seq": seq, "action": action, "at_ms": 0 })).await?;
            self.report.sent += 1;
            let reply = receive(&mut socket).await?;
            match &reply.kind[..] {
                "frames" => {
                    let latency = ReplyLatency { sent_at: sent_at - self.begin, took: sent_at.elapsed() };
                    self.report.latencies.push(latency);
                    self.report.acknowledged += 1;
                    self.report.resumed += usize::from(std::mem::take(&mut self.is_reconnecting));
                    seq = reply.seq;
                    self.report.acknowledged_steps.insert(encounter.clone(), seq);
                    is_over = reply.frames.last().is_some_and(|last| !last.is_asked && last.ending.is_some());
                }
                "refused" => self.report.refused += 1,
                _ => return Err(ConnectionFailed),
            }
        }
        let _ = socket.close(None).await;
        Ok(true)
    }

    async fn connect(&self) -> Result<Socket, ConnectionFailed> {
        let address = self.config.address;
        let mut request = format!("ws://{address}/ws").into_client_request().map_err(|_| ConnectionFailed)?;
        let origin = HeaderValue::from_str(&format!("http://{address}")).map_err(|_| ConnectionFailed)?;
        request.headers_mut().insert("origin", origin);
        let stream = TcpStream::connect(address).await.map_err(|_| ConnectionFailed)?;
        let _ = stream.set_nodelay(true);
        let (socket, _) = tokio_tungstenite::client_async(request, MaybeTlsStream::Plain(stream))
            .await
            .map_err(|_| ConnectionFailed)?;
        Ok(socket)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, ConnectionFailed> {
        let mut body = body.clone();
        body["v"] = Value::from(VERSION);
        let asked =
            tokio::time::timeout(REPLY_TIMEOUT, post(self.config.address, path, &body.to_string())).await;
        let (status, text) = asked.map_err(|_| ConnectionFailed)?.map_err(|_| ConnectionFailed)?;
        if status != 200 {
            return Err(ConnectionFailed);
        }
        serde_json::from_str(&text).map_err(|_| ConnectionFailed)
    }
}

async fn send(socket: &mut Socket, message: &Value) -> Result<(), ConnectionFailed> {
    let mut message = message.clone();
    message["v"] = Value::from(VERSION);
    socket.send(Message::text(message.to_string())).await.map_err(|_| ConnectionFailed)
}

/// The fields that a bot reads of a server's message. The others are skipped to save time for the server.
#[derive(Deserialize)]
struct ReceivedMessage {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    seq: usize,
    #[serde(default)]
    is_over: bool,
    #[serde(default)]
    action_names: Vec<IgnoredAny>,
    #[serde(default)]
    frames: Vec<ReceivedFrame>,
}

#[derive(Deserialize)]
struct ReceivedFrame {
    is_asked: bool,
    ending: Option<IgnoredAny>,
}

async fn receive(socket: &mut Socket) -> Result<ReceivedMessage, ConnectionFailed> {
    loop {
        let received =
            tokio::time::timeout(REPLY_TIMEOUT, socket.next()).await.map_err(|_| ConnectionFailed)?;
        match received {
            Some(Ok(Message::Text(text))) => {
                return serde_json::from_str(&text).map_err(|_| ConnectionFailed);
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            _ => return Err(ConnectionFailed),
        }
    }
}

/// Sends a POST request with a JSON body. Returns the status and the body of the response.
pub async fn post(address: SocketAddr, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    exchange(address, &format!("{head}{body}")).await
}

/// Sends an HTTP request as text. Returns the status and the body of the response.
pub async fn exchange(address: SocketAddr, request: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    // A server that refuses a request may close the connection before it has read everything.
    let _ = stream.read_to_end(&mut reply).await;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let bad = || std::io::Error::other("not an HTTP response");
    let (head, body) = reply.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(bad)?;
    Ok((status, body.to_owned()))
}
