//! `pace play`: the browser page, with trained agents and scripted egos to play with.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;
use pace_games::AnyGame;
use pace_lab::{RunView, TrainedAgent};
use pace_play::offer::TrainedOffer;
use pace_play::{Offers, ServerConfig, Study, StudyConfig, StudyError, serve};

use super::read_text;
use crate::ranges::{address, whole};
use crate::say;

#[derive(Debug, Args)]
pub struct PlayArgs {
    /// Run folders whose agents are offered, beside the scripted egos. An agent is called by the name of its folder;
    /// `NAME=FOLDER` gives it another.
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// The port; 0 for any that is free.
    #[arg(long, default_value_t = 8080, value_parser = whole::<u16>(0..=65_535))]
    port: u16,
    /// The address to listen on. Anything but this machine's own is open to whoever can reach it: put a server that speaks
    /// TLS in front.
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_parser = address)]
    bind: IpAddr,
    /// A name under which people reach the server, when it is not an address; may be repeated.
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// A study with participants, as a TOML file; `docs/play.md` describes it.
    #[arg(long, value_name = "FILE")]
    study: Option<PathBuf>,
    /// Where the study's data is kept. Default: beside its file, with the ending `.sqlite`.
    #[arg(long, value_name = "FILE", requires = "study")]
    store: Option<PathBuf>,
    /// The most encounters at a time.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<u32>(1..=100_000))]
    most_sessions: u32,
    /// Maximum number of concurrent sessions that one address may start, and that it may start per minute. Its connections
    /// are limited in proportion.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_sessions_per_address: u32,
    /// Address of a reverse proxy in front of the server. Limits per address then count by the last entry of its
    /// `X-Forwarded-For`; without this option they count by the address of the connection.
    #[arg(long, value_name = "ADDRESS")]
    proxy: Option<IpAddr>,
    /// Minutes without an action after which a player is let go; their place is kept for an hour.
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = whole::<u32>(1..=1440))]
    idle: u32,
}

pub fn run(args: &PlayArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let offers = offers(&args.runs)?;
    let study =
        args.study.as_deref().map(|file| open_study(file, args.store.as_deref(), &offers)).transpose()?;
    let config = ServerConfig {
        address: args.bind,
        port: args.port,
        hosts: args.hosts.clone(),
        most_sessions: args.most_sessions as usize,
        max_sessions_per_address: args.max_sessions_per_address as usize,
        proxy: args.proxy,
        idle: Duration::from_secs(u64::from(args.idle) * 60),
        ..ServerConfig::default()
    };
    let page = if study.is_some() { "/study" } else { "/" };
    let has_signed_links = study.as_ref().map(Study::has_signed_links);
    let log = Arc::new(|line: &str| say(line));
    let out = Mutex::new(out);
    serve(offers, config, study, log, |address| {
        let mut out = out.lock().expect("nobody panics with it");
        // Whoever started us may not be listening; the page is there all the same.
        let _ = writeln!(out, "http://{address}{page}").and_then(|()| out.flush());
        match has_signed_links {
            Some(true) => say("every participant needs a link of their own; `pace study links` prints them"),
            Some(false) => say(&format!(
                "every participant needs a link of their own, with an id that you choose: http://{address}/study?participant=ID"
            )),
            None => {}
        }
    })?;
    Ok(())
}

/// The agents of these runs, and the scripted egos of every game.
pub fn offers(runs: &[String]) -> anyhow::Result<Offers> {
    let mut offers = Offers::scripted()?;
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
        offers.add_trained(TrainedOffer {
            label: format!("{name} ({}, {steps:.1} M steps)", trained.config.method),
            id: name,
            game,
            agent: trained.agent,
            // Without a loss of its own the identifier stays as it was drawn, and what it says means nothing.
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

fn open_study(file: &Path, store: Option<&Path>, offers: &Offers) -> anyhow::Result<Study> {
    let name = file.display().to_string();
    let text = read_text(file).map_err(|error| StudyError::BadConfig {
        file: name.clone(),
        reason: format!("{error}; expected the TOML file of a study"),
    })?;
    let config = StudyConfig::from_toml(&name, &text)?;
    let store = store.map_or_else(|| file.with_extension("sqlite"), Path::to_owned);
    Ok(Study::open(config, offers, &store)?)
}
