//! A server within the test process, and clients.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use pace_play::bots;
use pace_play::server::run;
use pace_play::{AgentCatalog, ServerConfig, Study, StudyConfig};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// A server within this process.
pub struct Host {
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
}

impl Host {
    pub async fn start() -> Host {
        Host::start_with(ServerConfig::default(), None).await
    }

    pub async fn start_study(config: &str, file: &Path) -> Host {
        let config = StudyConfig::from_toml("study.toml", config).expect("a study");
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let file = file.to_owned();
        // A stopped server of this thread may still hold the lock of the file, so opening must not block the thread.
        let opening = tokio::task::spawn_blocking(move || Study::open(config, &catalog, &file));
        let study = opening.await.expect("a thread").expect("its file");
        Host::start_with(ServerConfig::default(), Some(study)).await
    }

    pub async fn start_with(config: ServerConfig, study: Option<Study>) -> Host {
        Host::start_catalog(AgentCatalog::scripted().expect("scripted egos"), config, study).await
    }

    pub async fn start_catalog(catalog: AgentCatalog, config: ServerConfig, study: Option<Study>) -> Host {
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        let (address_sender, address) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let config = ServerConfig { port: 0, ..config };
        let task = tokio::spawn(async move {
            let log = Arc::new(move |line: &str| lines.lock().expect("a log").push(line.to_owned()));
            let ready = |address| address_sender.send(address).expect("the test waits for the address");
            let until_stopped = async { stopped.await.unwrap_or_default() };
            let served = run(catalog, config, study, log, ready, until_stopped).await;
            served.expect("the server runs");
        });
        Host { address: address.await.expect("an address"), log, stop: Some(stop), task }
    }

    /// The lines that the server has logged.
    pub fn log(&self) -> Vec<String> {
        self.log.lock().expect("a log").clone()
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        self.task.await.expect("the server ends well");
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        let mut body = body;
        body["v"] = Value::from(1);
        let (status, text) = bots::post(self.address, path, &body.to_string()).await.expect("an answer");
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        bots::exchange(self.address, &request).await.expect("an answer")
    }

    /// Starts a session. Returns the tokens of the player and of spectators.
    pub async fn begin(&self, agent: &str, n_episodes: usize) -> (String, String) {
        let config =
            json!({ "offer": agent, "slot": 0, "n_episodes": n_episodes, "mind": "after", "seed": 7 });
        let (status, response) = self.post("/api/sessions", config).await;
        assert_eq!(status, 200, "{response}");
        let token = |name: &str| response[name].as_str().expect("a token").to_owned();
        (token("token"), token("watch"))
    }

    pub async fn connect(&self) -> Client {
        self.connect_from(&format!("http://{}", self.address)).await.expect("our own page may connect")
    }

    pub async fn connect_from(&self, origin: &str) -> Option<Client> {
        self.connect_with(&[("origin", origin)]).await
    }

    /// A client with this address in `X-Forwarded-For`.
    pub async fn connect_forwarded(&self, address: &str) -> Option<Client> {
        let origin = format!("http://{}", self.address);
        self.connect_with(&[("origin", &origin), ("x-forwarded-for", address)]).await
    }

    async fn connect_with(&self, headers: &[(&'static str, &str)]) -> Option<Client> {
        let mut request = format!("ws://{}/ws", self.address).into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).expect("a header"));
        }
        let (socket, _) = tokio_tungstenite::connect_async(request).await.ok()?;
        Some(Client { socket })
    }

    /// Connects the player of a session. Returns the client and the welcome message.
    pub async fn join_session(&self, token: &str) -> (Client, Value) {
        let mut client = self.connect().await;
        client.send(json!({ "type": "hello", "token": token })).await;
        let welcome = client.receive().await.expect("a welcome");
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        (client, welcome)
    }
}

pub struct Client {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Client {
    pub async fn send(&mut self, message: Value) {
        let mut message = message;
        message["v"] = Value::from(1);
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        // The server may have closed the connection; the test sees it when it receives.
        let _ = self.socket.send(Message::text(text)).await;
    }

    pub async fn act(&mut self, seq: usize, action: usize) -> Value {
        self.send(json!({ "type": "act", "seq": seq, "action": action })).await;
        self.receive().await.expect("an answer")
    }

    /// The next message. `None` if the server closed the connection.
    pub async fn receive(&mut self) -> Option<Value> {
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(60), self.socket.next()).await;
            match heard.expect("an answer within a minute") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    }

    /// Sends a ping of the WebSocket protocol.
    pub async fn ping(&mut self) {
        let _ = self.socket.send(Message::Ping(Vec::<u8>::new().into())).await;
    }

    pub async fn close(mut self) {
        let _ = self.socket.close(None).await;
    }
}
