//! `pace play`: serves a web page on which people play with trained agents and scripted egos.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use pace_games::AnyGame;
use pace_lab::{RunView, TrainedAgent};
use pace_play::catalog::LoadedAgent;
use pace_play::{AgentCatalog, ServerConfig, Study, StudyConfig, StudyError, serve};

use super::read_text;
use crate::log_line;
use crate::ranges::{address, whole};

#[derive(Debug, Args)]
pub struct PlayArgs {
    /// Run folders whose agents can be played, in addition to the scripted egos. `NAME=FOLDER` sets the agent's name; default:
    /// the folder's name.
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Port to listen on; 0 takes any free port.
    #[arg(long, default_value_t = 8080, value_parser = whole::<u16>(0..=65_535))]
    port: u16,
    /// Address to listen on. The server speaks plain HTTP: on a public address, put a TLS reverse proxy in front.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = address)]
    bind: IpAddr,
    /// Host name that clients may use (checked against the `Host` header). Repeatable.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// TOML file of a human-subject study; `docs/play.md` describes it. Default: no study.
    #[arg(long, value_name = "FILE")]
    study: Option<PathBuf>,
    /// SQLite file of the study's data. Default: the study file with the extension `.sqlite`.
    #[arg(long, alias = "store", value_name = "FILE", requires = "study")]
    database: Option<PathBuf>,
    /// Maximum number of concurrent sessions.
    #[arg(long, alias = "most-sessions", value_name = "N", default_value_t = 200, value_parser = whole::<u32>(1..=100_000))]
    max_sessions: u32,
    /// Maximum number of concurrent sessions that one address may start, and that it may start per minute. Its connections
    /// are limited in proportion.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_sessions_per_address: u32,
    /// Address of a reverse proxy in front of the server. Limits per address then count by the last entry of its
    /// `X-Forwarded-For`; without this option they count by the address of the connection.
    #[arg(long, value_name = "ADDRESS")]
    proxy: Option<IpAddr>,
    /// Minutes without an action until a player is disconnected. The session can be rejoined for an hour.
    #[arg(long, alias = "idle", value_name = "MINUTES", default_value_t = 15, value_parser = whole::<u32>(1..=1440))]
    idle_minutes: u32,
}

pub fn run(args: &PlayArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let offers = offers(&args.runs)?;
    let study =
        args.study.as_deref().map(|file| open_study(file, args.database.as_deref(), &offers)).transpose()?;
    let config = ServerConfig {
        address: args.bind,
        port: args.port,
        hosts: args.hosts.clone(),
        max_sessions: args.max_sessions as usize,
        max_sessions_per_address: args.max_sessions_per_address as usize,
        proxy: args.proxy,
        idle: Duration::from_secs(u64::from(args.idle_minutes) * 60),
        ..ServerConfig::default()
    };
    let page = if study.is_some() { "/study" } else { "/" };
    let has_signed_links = study.as_ref().map(Study::has_signed_links);
    let log = Arc::new(|line: &str| log_line(line));
    let out = Mutex::new(out);
    serve(offers, config, study, log, |address| {
        let mut out = out.lock().expect("no thread panics while it holds the output");
        // The server runs also if its output is closed.
        let _ = writeln!(out, "http://{address}{page}").and_then(|()| out.flush());
        match has_signed_links {
            Some(true) => {
                log_line("every participant needs a personal link; print them with `pace study links`");
            }
            Some(false) => log_line(&format!(
                "every participant needs a personal link with an id that you choose: http://{address}/study?participant=ID"
            )),
            None => {}
        }
    })?;
    Ok(())
}

/// Loads the agents of these runs and adds them to the scripted egos of every game.
pub fn offers(runs: &[String]) -> anyhow::Result<AgentCatalog> {
    let mut offers = AgentCatalog::scripted()?;
    for run in runs {
        let (name, folder) = match run.split_once('=') {
            Some((name, folder)) => (name.to_owned(), Path::new(folder)),
            None => (folder_name(Path::new(run)), Path::new(&run[..])),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        anyhow::ensure!(
            !name.is_empty() && name.chars().all(is_name),
            "agent name {name:?}: expected letters, digits, `-`, `_` and `.`; give it with NAME=FOLDER"
        );
        let trained = TrainedAgent::load(&RunView::open(folder)?)?;
        let game: Arc<dyn AnyGame> = Arc::from(trained.game);
        let steps = trained.steps as f64 / 1e6;
        offers.add_trained(LoadedAgent {
            label: format!("{name} ({}, {steps:.1} M steps)", trained.config.method),
            id: name,
            game,
            agent: trained.agent,
            // Without an auxiliary loss the identifier stays untrained and its output means nothing.
            identifies: trained.config.train.auxiliary_weight > 0.0,
            fingerprint: trained.fingerprint,
        });
    }
    Ok(offers)
}

fn folder_name(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

fn open_study(file: &Path, store: Option<&Path>, offers: &AgentCatalog) -> anyhow::Result<Study> {
    let name = file.display().to_string();
    let text = read_text(file).map_err(|error| StudyError::BadConfig {
        file: name.clone(),
        reason: format!("{error}; expected the TOML file of a study"),
    })?;
    let config = StudyConfig::from_toml(&name, &text)?;
    let store = store.map_or_else(|| file.with_extension("sqlite"), Path::to_owned);
    Ok(Study::open(config, offers, &store)?)
}
