//! `pace reproduce`: whatever tables and figures of the paper need, trained and evaluated, in processes side by side.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use pace_lab::progress::duration;
use pace_lab::{LabProgress, PlanEvent, PlanRunner, StopFlag};

use super::plan::ExperimentArgs;
use crate::build_info::all_threads;
use crate::ranges::thread_count;
use crate::training_loop::terminal_size;
use crate::{Stopped, say};

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    #[command(flatten)]
    which: ExperimentArgs,
    /// Processes side by side; the cores are shared out among them. As many as there are cores if not given.
    #[arg(long, value_parser = thread_count())]
    jobs: Option<usize>,
}

/// Some of a plan failed; what is said here has been said run by run.
#[derive(Debug, thiserror::Error)]
#[error("{n_dead} of the runs and evaluations failed, as said above; the same command tries them again")]
struct SomeFailed {
    n_dead: usize,
}

/// Plain lines about progress come this often when nobody watches.
const LOG_EVERY: Duration = Duration::from_secs(30);

pub fn run(args: &ReproduceArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let plan = args.which.plan()?;
    let n_jobs = n_jobs(args.jobs);
    let program = std::env::current_exe()?;
    let carrier = PlanRunner {
        lab: &args.which.out,
        program: &program,
        n_jobs,
        n_threads: (all_threads() / n_jobs).max(1),
    };
    let stop = StopFlag::install()?;
    let begin = Instant::now();
    let mut screen = Screen { is_terminal: std::io::stderr().is_terminal(), last_line: None };
    if plan.scale != 1.0 {
        say(&format!("a rehearsal: budgets and passes times {}; no number of it means anything", plan.scale));
    }
    let outcome = carrier.run(&plan, &stop, &mut |notice| screen.show(notice))?;
    screen.clear();
    let lab = args.which.out.display();
    say(&format!(
        "{} of {} runs are done, after {}",
        outcome.n_done,
        plan.runs.len(),
        duration(begin.elapsed().as_secs_f64())
    ));
    if outcome.is_stopped {
        say("stopped and saved; the same command goes on");
        return Err(Stopped.into());
    }
    let n_dead = outcome.failed.len();
    if n_dead > 0 {
        return Err(SomeFailed { n_dead }.into());
    }
    writeln!(out, "{lab}")?;
    Ok(())
}

/// The number of processes asked for, or one for each core.
pub fn n_jobs(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(all_threads)
}

/// Standard error: a bar that stays at the bottom of a terminal, or plain lines.
struct Screen {
    is_terminal: bool,
    last_line: Option<Instant>,
}

impl Screen {
    fn show(&mut self, notice: PlanEvent) {
        match notice {
            PlanEvent::Progress(progress) => self.progress(&progress),
            // A bar names what is running; without one this is the only sign.
            PlanEvent::Started(what) if !self.is_terminal => say(&format!("started {what}")),
            PlanEvent::Started(_) => {}
            PlanEvent::Done(what) => self.line(&format!("done    {what}")),
            PlanEvent::Failed { what, reason } => self.line(&format!("FAILED  {what}: {reason}")),
            PlanEvent::Stopping { n_processes } => {
                self.line(&format!("stopping: {n_processes} processes finish their update and save"));
            }
            PlanEvent::Warning(text) => self.line(&format!("warning: {text}")),
        }
    }

    fn progress(&mut self, progress: &LabProgress) {
        if self.is_terminal {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[2K{}", progress.for_terminal(terminal_size().0.saturating_sub(1)));
            let _ = out.flush();
        } else if self.last_line.is_none_or(|last| last.elapsed() >= LOG_EVERY) {
            self.last_line = Some(Instant::now());
            say(&progress.for_log());
        }
    }

    fn line(&self, text: &str) {
        self.clear();
        say(text);
    }

    /// Takes the bar away.
    fn clear(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}
