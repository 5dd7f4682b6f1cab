//! Many participants at once who press buttons at random: for measuring the server, and for seeing what survives it.

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

/// What the bots are to do.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Where the server is.
    pub address: SocketAddr,
    /// How many play at once.
    pub n_bots: usize,
    /// Actions of each per second.
    pub rate: f64,
    /// Over how long a time they arrive, one after the other.
    pub arrival: Duration,
    /// How long they play when all have arrived.
    pub duration: Duration,
    /// What their ids begin with; the same ids come back as the same participants.
    pub name: String,
    /// The seed of what they do.
    pub seed: u64,
}

/// What the bots saw.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Actions that were sent.
    pub sent: usize,
    /// Actions that were acknowledged.
    pub acknowledged: usize,
    /// Actions that were refused.
    pub refused: usize,
    /// Encounters that were played to their end.
    pub encounters: usize,
    /// Connections that broke.
    pub broken: usize,
    /// Times at which a bot came back and the server had fewer steps than it had acknowledged.
    pub forgotten: usize,
    /// Bots that were cut off, came back and played on.
    pub resumed: usize,
    /// Bots that never came to play, or did not come back.
    pub stranded: usize,
    /// Every answer to an action.
    pub answers: Vec<ReplyLatency>,
    /// How many steps of each encounter, by participant and number, the server has said to have.
    pub acknowledged_steps: BTreeMap<(String, usize), usize>,
}

/// How long an answer took.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLatency {
    /// When the action was sent, since the bots began.
    pub sent_at: Duration,
    /// From then to the answer.
    pub took: Duration,
}

impl LoadReport {
    fn add(&mut self, other: LoadReport) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.encounters += other.encounters;
        self.broken += other.broken;
        self.forgotten += other.forgotten;
        self.resumed += other.resumed;
        self.stranded += other.stranded;
        self.answers.extend(other.answers);
        self.acknowledged_steps.extend(other.acknowledged_steps);
    }

    /// The time below which this share of the answers came, of those to actions that were sent in this stretch of time.
    pub fn quantile(&self, share: f64, sent: Range<Duration>) -> Duration {
        let in_time = self.answers.iter().filter(|answer| sent.contains(&answer.sent_at));
        let mut took: Vec<Duration> = in_time.map(|answer| answer.took).collect();
        took.sort_unstable();
        let last = took.len().saturating_sub(1);
        took.get((share * last as f64).round() as usize).copied().unwrap_or_default()
    }

    /// Steps that were acknowledged and are not among those that a study's file has.
    pub fn lost_steps(&self, kept: &BTreeMap<(String, usize), usize>) -> usize {
        let n_kept = |encounter| kept.get(encounter).copied().unwrap_or(0);
        self.acknowledged_steps.iter().map(|(encounter, n)| n.saturating_sub(n_kept(encounter))).sum()
    }
}

/// Lets all bots take part in the study that the server runs.
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
                deadline: begin + config.arrival + config.duration,
                is_cut_off: false,
            };
            // Not all at the same moment, as people do not either.
            let late = config.arrival.mul_f64(number as f64 / config.n_bots as f64);
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                bot.take_part().await
            })
        })
        .collect();
    let mut report = LoadReport::default();
    for bot in bots {
        match bot.await {
            Ok(part) => report.add(part),
            Err(_) => report.stranded += 1,
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
    /// Whether the connection broke and nothing was answered since.
    is_cut_off: bool,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Something on the way to the server broke; it is tried again.
struct Broken;

/// How long a bot waits for one answer.
const PATIENCE: Duration = Duration::from_secs(20);

impl Bot {
    async fn take_part(mut self) -> LoadReport {
        while Instant::now() < self.deadline {
            if self.visit().await.is_ok() {
                return self.report;
            }
            self.is_cut_off = true;
            self.report.broken += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.report.stranded += 1;
        self.report
    }

    /// From joining to the deadline, or until the connection breaks.
    async fn visit(&mut self) -> Result<(), Broken> {
        let joined = self.post("/api/study/join", &json!({ "participant": self.participant })).await?;
        let token = joined["token"].as_str().ok_or(Broken)?.to_owned();
        let mut state = joined;
        loop {
            let stage = state["stage"].as_str().ok_or(Broken)?.to_owned();
            let mut next = json!({ "token": token, "stage": stage });
            match &stage[..] {
                "consent" => next["consents"] = Value::Bool(true),
                "tutorial" => {}
                "play" => {
                    let number = state["number"].as_u64().ok_or(Broken)? as usize;
                    if !self.encounter(&token, number).await? {
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

    /// Plays one encounter; whether it came to its end before the deadline.
    async fn encounter(&mut self, token: &str, number: usize) -> Result<bool, Broken> {
        let mut socket = self.connect().await?;
        tell(&mut socket, &json!({ "type": "hello", "token": token })).await?;
        let welcome = hear(&mut socket).await?;
        if welcome.kind != "welcome" {
            return Err(Broken);
        }
        let mut seq = welcome.seq;
        let encounter = (self.participant.clone(), number);
        if self.report.acknowledged_steps.get(&encounter).is_some_and(|n| seq < *n) {
            self.report.forgotten += 1;
        }
        let n_actions = welcome.action_names.len().max(1) as u32;
        let mut is_over = welcome.is_over;
        let mut beat = tokio::time::interval(Duration::from_secs_f64(1.0 / self.config.rate));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !is_over {
            beat.tick().await;
            if Instant::now() >= self.deadline {
                let _ = socket.close(None).await;
                return Ok(false);
            }
            let action = self.rng.below(n_actions);
            let sent_at = Instant::now();
            tell(&mut socket, &json!({ "type": "act", "seq": seq, "action": action, "at_ms": 0 })).await?;
            self.report.sent += 1;
            let answer = hear(&mut socket).await?;
            match &answer.kind[..] {
                "frames" => {
                    let waited = ReplyLatency { sent_at: sent_at - self.begin, took: sent_at.elapsed() };
                    self.report.answers.push(waited);
                    self.report.acknowledged += 1;
                    self.report.resumed += usize::from(std::mem::take(&mut self.is_cut_off));
                    seq = answer.seq;
                    self.report.acknowledged_steps.insert(encounter.clone(), seq);
                    is_over =
                        answer.frames.last().is_some_and(|last| !last.is_asked && last.ending.is_some());
                }
                "refused" => self.report.refused += 1,
                _ => return Err(Broken),
            }
        }
        let _ = socket.close(None).await;
        Ok(true)
    }

    async fn connect(&self) -> Result<Socket, Broken> {
        let address = self.config.address;
        let mut request = format!("ws://{address}/ws").into_client_request().map_err(|_| Broken)?;
        let origin = HeaderValue::from_str(&format!("http://{address}")).map_err(|_| Broken)?;
        request.headers_mut().insert("origin", origin);
        let stream = TcpStream::connect(address).await.map_err(|_| Broken)?;
        let _ = stream.set_nodelay(true);
        let (socket, _) = tokio_tungstenite::client_async(request, MaybeTlsStream::Plain(stream))
            .await
            .map_err(|_| Broken)?;
        Ok(socket)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Broken> {
        let mut body = body.clone();
        body["v"] = Value::from(VERSION);
        let asked = tokio::time::timeout(PATIENCE, post(self.config.address, path, &body.to_string())).await;
        let (status, text) = asked.map_err(|_| Broken)?.map_err(|_| Broken)?;
        if status != 200 {
            return Err(Broken);
        }
        serde_json::from_str(&text).map_err(|_| Broken)
    }
}

async fn tell(socket: &mut Socket, message: &Value) -> Result<(), Broken> {
    let mut message = message.clone();
    message["v"] = Value::from(VERSION);
    socket.send(Message::text(message.to_string())).await.map_err(|_| Broken)
}

/// What a bot reads of a message of the server. The rest is skipped, so that the bots leave the cores to the server.
#[derive(Deserialize)]
struct Heard {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    seq: usize,
    #[serde(default)]
    is_over: bool,
    #[serde(default)]
    action_names: Vec<IgnoredAny>,
    #[serde(default)]
    frames: Vec<HeardFrame>,
}

#[derive(Deserialize)]
struct HeardFrame {
    is_asked: bool,
    ending: Option<IgnoredAny>,
}

async fn hear(socket: &mut Socket) -> Result<Heard, Broken> {
    loop {
        let heard = tokio::time::timeout(PATIENCE, socket.next()).await.map_err(|_| Broken)?;
        match heard {
            Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).map_err(|_| Broken),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            _ => return Err(Broken),
        }
    }
}

/// One request without any library: the status and the body of the answer.
pub async fn post(address: SocketAddr, path: &str, body: &str) -> std::io::Result<(u16, String)> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    exchange(address, &format!("{head}{body}")).await
}

/// Sends these bytes and reads an answer to its end.
pub async fn exchange(address: SocketAddr, request: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // A server that refuses early may hang up before it has read everything.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let bad = || std::io::Error::other("not an answer of HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(bad)?;
    Ok((status, body.to_owned()))
}
