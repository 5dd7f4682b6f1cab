//! `pace reproduce`: trains and evaluates the runs behind the paper's tables and figures in parallel processes.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Args;
use pace_lab::progress::duration;
use pace_lab::{LabProgress, PlanEvent, PlanRunner, StopFlag};

use super::plan::ExperimentArgs;
use crate::build_info::all_threads;
use crate::ranges::thread_count;
use crate::training_loop::terminal_size;
use crate::{Stopped, log_line};

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    #[command(flatten)]
    which: ExperimentArgs,
    /// Parallel processes; cores are divided among them. Default: number of cores.
    #[arg(long, value_parser = thread_count())]
    jobs: Option<usize>,
}

/// Some runs or evaluations of a plan failed; each failure was already logged.
#[derive(Debug, thiserror::Error)]
#[error("{n_failed} runs or evaluations failed (see above); run the same command to retry them")]
struct SomeFailed {
    n_failed: usize,
}

/// Time between progress lines when standard error is not a terminal.
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
    let mut display = PlanDisplay { is_terminal: std::io::stderr().is_terminal(), last_line: None };
    if plan.scale != 1.0 {
        log_line(&format!(
            "scaled plan: budgets and encounters multiplied by {}; the scores are not results",
            plan.scale
        ));
    }
    let outcome = carrier.run(&plan, &stop, &mut |notice| display.show(notice))?;
    display.clear();
    let lab = args.which.out.display();
    log_line(&format!(
        "{} of {} runs done after {}",
        outcome.n_done,
        plan.runs.len(),
        duration(begin.elapsed().as_secs_f64())
    ));
    if outcome.is_stopped {
        log_line("stopped, checkpoints saved; continue with the same command");
        return Err(Stopped.into());
    }
    let n_failed = outcome.failed.len();
    if n_failed > 0 {
        return Err(SomeFailed { n_failed }.into());
    }
    writeln!(out, "{lab}")?;
    Ok(())
}

/// The requested number of processes. Default: number of cores.
pub fn n_jobs(requested: Option<usize>) -> usize {
    requested.unwrap_or_else(all_threads)
}

/// Progress on standard error: a bar in the last line of a terminal, or log lines.
struct PlanDisplay {
    is_terminal: bool,
    last_line: Option<Instant>,
}

impl PlanDisplay {
    fn show(&mut self, notice: PlanEvent) {
        match notice {
            PlanEvent::Progress(progress) => self.progress(&progress),
            // On a terminal the progress bar shows the running processes.
            PlanEvent::Started(what) if !self.is_terminal => log_line(&format!("started {what}")),
            PlanEvent::Started(_) => {}
            PlanEvent::Recorded { what, record } => {
                self.line(&format!("found   {what} in {}", record.display()));
            }
            PlanEvent::Done(what) => self.line(&format!("done    {what}")),
            PlanEvent::Failed { what, reason } => self.line(&format!("FAILED  {what}: {reason}")),
            PlanEvent::Stopping { n_processes } => {
                self.line(&format!("stopping: {n_processes} processes save a checkpoint and exit"));
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
            log_line(&progress.for_log());
        }
    }

    fn line(&self, text: &str) {
        self.clear();
        log_line(text);
    }

    /// Erases the progress bar.
    fn clear(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}
