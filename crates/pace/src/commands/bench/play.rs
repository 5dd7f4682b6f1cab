//! `pace bench play`: load-tests a play server on this machine with concurrent bots.
//!
//! The server is a separate process, so that its memory can be measured. It runs a study, so that every reply waits for the disk.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use pace_play::StudyFile;
use pace_play::bots::{LoadConfig, play};
use serde_json::{Value, json};

use super::{rounded, training::TempFolder};
use crate::ranges::{number, whole};

#[derive(Debug, Args)]
pub struct BenchPlayArgs {
    /// Run folders whose agents can be played, as in `pace play`. Default: only the scripted egos.
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Agent that the bots play with: the name of a run, or of a scripted ego.
    #[arg(long, default_value = "overcooked.bayes")]
    agent: String,
    /// Number of concurrent bots.
    #[arg(long, default_value_t = 500, value_parser = whole::<u32>(1..=20_000))]
    sessions: u32,
    /// Actions per second and bot.
    #[arg(long, default_value_t = 5.0, value_parser = number(0.01..=25.0))]
    rate: f64,
    /// Measured time in seconds, after the ramp-up.
    #[arg(long, default_value = "60", value_parser = super::seconds)]
    seconds: Duration,
    /// Ramp-up time in seconds; not measured.
    #[arg(long, alias = "arrival", default_value_t = 10.0, value_parser = number(0.0..=3600.0))]
    ramp_up: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The server has replied to no action, so there are no latencies to report.
#[derive(Debug, thiserror::Error)]
#[error("no reply to any of {sent} actions; give a higher --rate or more --seconds")]
struct NoAnswer {
    sent: usize,
}

pub fn run(args: &BenchPlayArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let row = measure(args)?;
    if args.json {
        return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&row)?)?);
    }
    writeln!(
        out,
        "{} sessions with {}, {} actions/s each, {} s: {} actions, {} lost",
        row["sessions"], args.agent, row["rate"], row["seconds"], row["acknowledged"], row["lost_steps"]
    )?;
    writeln!(
        out,
        "latency to durable reply: p50 {} ms, p99 {} ms, max {} ms",
        row["p50_ms"], row["p99_ms"], row["max_ms"]
    )?;
    writeln!(
        out,
        "server memory: {} MB after a third of the time, {} MB at the end",
        row["rss_mb"]["early"], row["rss_mb"]["late"]
    )?;
    if let Some(others) = row["cpu"]["others_share"].as_f64() {
        writeln!(
            out,
            "CPU time: server {} ms per action, bots {} ms; other programs {:.0} % of this machine",
            row["cpu"]["server_ms_per_action"],
            row["cpu"]["bots_ms_per_action"],
            100.0 * others
        )?;
        if others > MAX_QUIET_LOAD {
            writeln!(out, "latencies include waiting for other programs; repeat on an idle machine")?;
        }
    }
    Ok(())
}

fn measure(args: &BenchPlayArgs) -> anyhow::Result<Value> {
    // Checked here, because the messages of the server process are not shown.
    let offers = crate::commands::play::offers(&args.runs)?;
    if offers.find(&args.agent).is_err() {
        let known: Vec<&str> = offers.all().iter().map(|offer| &offer.id[..]).collect();
        anyhow::bail!("--agent: found {:?}, expected one of {}", args.agent, known.join(", "));
    }
    drop(offers);
    let folder = TempFolder::new();
    std::fs::create_dir_all(&folder.0).context("creating a folder for the study")?;
    let (study, store) = (folder.0.join("study.toml"), folder.0.join("study.sqlite"));
    std::fs::write(&study, study_of(&args.agent)).context("writing the study")?;
    let mut server = ServerProcess::start(args, &study, &store)?;
    let memory = server.watch_memory();
    let config = LoadConfig {
        address: server.address,
        n_bots: args.sessions as usize,
        rate: args.rate,
        ramp_up: Duration::from_secs_f64(args.ramp_up),
        duration: args.seconds,
        name: "bot".to_owned(),
        seed: 1,
    };
    let before = CpuTimes::read(server.child.id());
    let report = play(&config).context("starting the bots")?;
    let cpu = before.zip(CpuTimes::read(server.child.id())).map(|(before, after)| after.since(&before));
    if report.acknowledged == 0 {
        return Err(NoAnswer { sent: report.sent }.into());
    }
    let memory = memory.stop();
    server.stop();
    let kept = StudyFile::open(&store)?.n_steps()?;
    let milliseconds = |time: Duration| rounded(time.as_secs_f64() * 1e3);
    let duration = config.duration;
    let end = config.ramp_up + duration;
    let [p50, p99, max] =
        [0.5, 0.99, 1.0].map(|share| milliseconds(report.quantile(share, config.ramp_up..end)));
    // Latency over time: tells a server that gets slower from a short disturbance.
    let sixths: Vec<f64> = (0..6)
        .map(|part| config.ramp_up + duration * part / 6..config.ramp_up + duration * (part + 1) / 6)
        .map(|sent| milliseconds(report.quantile(0.99, sent)))
        .collect();
    let at = |share: f64| memory.get((share * memory.len() as f64) as usize).or(memory.last()).copied();
    Ok(json!({
        "agent": args.agent,
        "sessions": args.sessions,
        "rate": args.rate,
        "seconds": args.seconds.as_secs_f64(),
        "arrival": args.ramp_up,
        "sent": report.sent,
        "acknowledged": report.acknowledged,
        "refused": report.refused,
        "encounters": report.encounters,
        "broken_connections": report.broken,
        "stranded": report.unfinished_bots,
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": max,
        "p99_ms_by_sixth": sixths,
        "steps_in_file": kept.values().sum::<usize>(),
        "lost_steps": report.lost_steps(&kept) + report.lost_after_reconnect,
        "cpu": cpu.map(|cpu| cpu.to_json(report.acknowledged)),
        "rss_mb": { "early": at(1.0 / 3.0), "late": at(1.0) },
    }))
}

/// Maximum share of CPU time used by other programs at which latencies are reported without a warning.
const MAX_QUIET_LOAD: f64 = 0.1;

/// CPU times in ticks of 1/100 s since a common start.
struct CpuTimes {
    /// All time of this machine, idle or not.
    all: u64,
    /// Time in which this machine was not idle.
    busy: u64,
    /// The server process.
    server: u64,
    /// This process, whose threads are the bots.
    bots: u64,
}

impl CpuTimes {
    /// The times now, where the system publishes them (Linux).
    fn read(server: u32) -> Option<CpuTimes> {
        let machine = std::fs::read_to_string("/proc/stat").ok()?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in user.
        let ticks = |text: &str| text.parse::<u64>().ok();
        let times: Vec<u64> =
            machine.lines().next()?.split_whitespace().skip(1).take(8).filter_map(ticks).collect();
        let [_, _, _, idle, io_wait, ..] = times[..] else { return None };
        let all: u64 = times.iter().sum();
        let of_process = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in parentheses, may contain spaces; user and system time are fields 14 and 15.
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            Some(ticks(fields.get(11)?)? + ticks(fields.get(12)?)?)
        };
        let (server, bots) = (of_process(&server.to_string())?, of_process("self")?);
        Some(CpuTimes { all, busy: all - idle - io_wait, server, bots })
    }

    fn since(&self, before: &CpuTimes) -> CpuTimes {
        CpuTimes {
            all: self.all.saturating_sub(before.all),
            busy: self.busy.saturating_sub(before.busy),
            server: self.server.saturating_sub(before.server),
            bots: self.bots.saturating_sub(before.bots),
        }
    }

    fn to_json(&self, n_actions: usize) -> Value {
        let per_action = |ticks: u64| rounded(ticks as f64 * 10.0 / n_actions.max(1) as f64);
        let others = self.busy.saturating_sub(self.server + self.bots);
        json!({
            "server_ms_per_action": per_action(self.server),
            "bots_ms_per_action": per_action(self.bots),
            "others_share": rounded(others as f64 / self.all.max(1) as f64),
        })
    }
}

fn study_of(agent: &str) -> String {
    format!(
        "id = \"bench\"\ntitle = \"Bench\"\nconsent = \"Bots consent.\"\nagents = [{agent:?}]\nassignment = \"between\"\n\
         encounters = 1000\nseed = 1\ncompletion_code = \"none\"\n[enrolment]\njoins_per_minute = 1000000\n"
    )
}

/// A play server in a separate process. It is killed on drop.
struct ServerProcess {
    child: Child,
    address: SocketAddr,
}

impl ServerProcess {
    fn start(
        args: &BenchPlayArgs,
        study: &std::path::Path,
        store: &std::path::Path,
    ) -> anyhow::Result<ServerProcess> {
        let program = std::env::current_exe().context("locating the pace executable")?;
        let mut command = Command::new(program);
        command.arg("play").args(&args.runs).args(["--port", "0"]);
        let sessions = (args.sessions + 16).to_string();
        // All bots have the same address.
        command.args(["--max-sessions", &sessions, "--max-sessions-per-address", &sessions]);
        command.arg("--study").arg(study).arg("--database").arg(store);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the server in its own process")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("opening the server's standard output")?;
        BufReader::new(stdout).read_line(&mut line).context("reading the server's address")?;
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let Some(address) = address.and_then(|address| address.parse().ok()) else {
            let _ = child.kill();
            let _ = child.wait();
            anyhow::bail!("the server did not start; try `pace play` with the same runs");
        };
        Ok(ServerProcess { child, address })
    }

    fn watch_memory(&self) -> MemoryWatch {
        let (pid, is_over) = (self.child.id(), Arc::new(AtomicBool::new(false)));
        let should_stop = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut megabytes = Vec::new();
            while !should_stop.load(Ordering::Relaxed) {
                megabytes.extend(resident_mb(pid));
                std::thread::sleep(Duration::from_millis(500));
            }
            megabytes
        });
        MemoryWatch { is_over, thread }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

struct MemoryWatch {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<f64>>,
}

impl MemoryWatch {
    fn stop(self) -> Vec<f64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Resident memory of a process, on systems that report it (Linux).
fn resident_mb(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some((kilobytes / 1024.0 * 10.0).round() / 10.0)
}
