//! Runs a plan: parallel processes, each of them `pace train`, `pace resume` or `pace adapt`.
//!
//! Every run and every evaluation is a separate process, so that a crash cannot affect the others. A process saves its state
//! and exits when its standard input ends. This process closes that input to stop it; if this process dies, the input ends too.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::durable;
use crate::error::LabError;
use crate::keep::copy_record;
use crate::plan::{EvaluationState, Plan, PlannedRun, RunState, runs_folder};
use crate::progress::LabProgress;
use crate::run_folder::{RunLock, RunView};
use crate::signals::StopFlag;
use crate::speeds::Speeds;

/// Runs plans in parallel processes.
#[derive(Clone, Debug)]
pub struct PlanRunner<'a> {
    /// The folder of the lab.
    pub lab: &'a Path,
    /// The program to start: `pace`.
    pub program: &'a Path,
    /// Number of parallel processes.
    pub n_jobs: usize,
    /// Threads of each process; results do not depend on it.
    pub n_threads: usize,
}

/// An event while a plan runs.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanEvent {
    /// A process was started, with its run or evaluation.
    Started(String),
    /// A process finished successfully, with its run or evaluation.
    Done(String),
    /// A run was found among the recorded runs and copied to the lab.
    Recorded {
        /// The run.
        what: String,
        /// The folder of its record.
        record: PathBuf,
    },
    /// A run or an evaluation failed. The others continue.
    Failed {
        /// The run or evaluation.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The running processes were asked to stop. Each exits after it has saved a checkpoint.
    Stopping {
        /// Number of processes.
        n_processes: usize,
    },
    /// A warning for the user.
    Warning(String),
    /// Progress of the whole plan; sent every second.
    Progress(LabProgress),
}

/// The result of running a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOutcome {
    /// Whether it was stopped before the plan was complete.
    pub is_stopped: bool,
    /// Runs that are trained and evaluated.
    pub n_done: usize,
    /// The failed runs and evaluations, and the runs that could not start because of them.
    pub failed: Vec<String>,
}

/// Interval of checks for exited processes.
const TICK: Duration = Duration::from_millis(100);
/// Interval of progress events, which read the run folders.
const POLL: Duration = Duration::from_secs(1);

impl PlanRunner<'_> {
    /// Trains and evaluates all runs of the plan that the lab does not have yet. Returns when no task is left that can run, or,
    /// after a stop request, when every process has saved its state.
    pub fn run(
        &self,
        plan: &Plan,
        stop: &StopFlag,
        on_event: &mut dyn FnMut(PlanEvent),
    ) -> Result<PlanOutcome, LabError> {
        for folder in [runs_folder(self.lab), self.logs_folder()] {
            durable::create_folder(&folder)?;
        }
        let _lock = RunLock::take(self.lab)?;
        for planned in &plan.runs {
            if let Some(record) = planned.record.as_ref().filter(|_| !planned.folder.exists()) {
                copy_record(record, &planned.folder)?;
                on_event(PlanEvent::Recorded { what: planned.title(), record: record.clone() });
            }
        }
        let mut state = PlanState::new(self, plan, on_event)?;
        loop {
            let is_stopped = stop.requested().is_some();
            if is_stopped {
                state.request_stop(on_event);
            }
            state.collect_exited(on_event, stop)?;
            if stop.requested().is_none() {
                state.start_ready_tasks(on_event)?;
            }
            state.poll_progress(on_event)?;
            if state.processes.is_empty() && (is_stopped || !state.is_anything_left()) {
                return Ok(state.outcome(is_stopped));
            }
            std::thread::sleep(TICK);
        }
    }

    fn logs_folder(&self) -> PathBuf {
        self.lab.join("logs")
    }
}

/// A task of a run: its training, or the evaluation with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Train,
    Evaluate(usize),
}

/// The status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    ToDo,
    Started,
    Done,
    Failed,
}

/// A run of the plan with the status of its tasks.
struct RunJob<'a> {
    planned: &'a PlannedRun,
    training: Status,
    evaluations: Vec<Status>,
    /// Whether a process outside this plan is training it.
    is_in_use: bool,
    /// Estimated seconds of one process for the whole training; `evaluation_secs` has those of each evaluation.
    training_secs: f64,
    evaluation_secs: Vec<f64>,
    /// The completed fraction of the training, from 0 to 1.
    share: f64,
}

impl RunJob<'_> {
    fn is_done(&self) -> bool {
        self.training == Status::Done && self.evaluations.iter().all(|status| *status == Status::Done)
    }

    /// Seconds of work: completed, and in total. Failed tasks do not count.
    fn secs(&self) -> (f64, f64) {
        let (mut done, mut all) = (0.0, 0.0);
        if self.training != Status::Failed {
            done += self.share * self.training_secs;
            all += self.training_secs;
        }
        for (status, secs) in self.evaluations.iter().zip(&self.evaluation_secs) {
            if *status != Status::Failed {
                done += if *status == Status::Done { *secs } else { 0.0 };
                all += secs;
            }
        }
        (done, all)
    }
}

struct Process {
    job: usize,
    task: Task,
    what: String,
    child: Child,
    log: PathBuf,
    /// Byte offset in the log at which the output of this process starts.
    log_start: u64,
}

struct PlanState<'a> {
    runner: &'a PlanRunner<'a>,
    plan: &'a Plan,
    jobs: Vec<RunJob<'a>>,
    processes: Vec<Process>,
    failed: Vec<String>,
    since: Instant,
    last_poll: Option<Instant>,
    /// Seconds of work that were complete before this process started.
    done_before: f64,
}

impl<'a> PlanState<'a> {
    fn new(
        runner: &'a PlanRunner<'a>,
        plan: &'a Plan,
        on_event: &mut dyn FnMut(PlanEvent),
    ) -> Result<PlanState<'a>, LabError> {
        let speeds = Speeds::of_lab(runner.lab);
        let mut state = PlanState {
            runner,
            plan,
            jobs: Vec::new(),
            processes: Vec::new(),
            failed: Vec::new(),
            since: Instant::now(),
            last_poll: None,
            done_before: 0.0,
        };
        for planned in &plan.runs {
            let config = &planned.run.config;
            let speed = speeds.training(&config.game, &config.method).per_second;
            let evaluations = &planned.run.evaluations;
            state.jobs.push(RunJob {
                planned,
                training: Status::ToDo,
                evaluations: vec![Status::ToDo; evaluations.len()],
                is_in_use: false,
                training_secs: config.train.total_steps as f64 / speed,
                evaluation_secs: evaluations
                    .iter()
                    .map(|evaluation| speeds.evaluation_secs(config, evaluation))
                    .collect(),
                share: 0.0,
            });
        }
        for job in 0..state.jobs.len() {
            state.find_state(job, on_event)?;
            if state.jobs[job].is_in_use {
                let title = plan.runs[job].title();
                on_event(PlanEvent::Warning(format!("{title} is being trained by another process; waiting")));
            }
        }
        state.done_before = state.secs().0;
        Ok(state)
    }

    /// Reads the state of a run from its folder.
    fn find_state(&mut self, job: usize, on_event: &mut dyn FnMut(PlanEvent)) -> Result<(), LabError> {
        let planned = self.jobs[job].planned;
        let total = planned.run.config.train.total_steps as f64;
        let state = planned.state();
        let of = &mut self.jobs[job];
        of.is_in_use = matches!(state, RunState::Running { .. });
        match state {
            RunState::Waiting => of.share = 0.0,
            RunState::Running { steps } | RunState::Interrupted { steps } => {
                of.share = (steps as f64 / total).min(1.0);
            }
            RunState::Trained => {
                (of.training, of.share) = (Status::Done, 1.0);
                return self.find_evaluations(job, on_event);
            }
            RunState::Unusable(reason) => {
                self.mark_failed(job, Task::Train, planned.title(), reason, on_event);
            }
        }
        Ok(())
    }

    /// Reads the records of a trained run. An unreadable record is renamed, not overwritten.
    fn find_evaluations(&mut self, job: usize, on_event: &mut dyn FnMut(PlanEvent)) -> Result<(), LabError> {
        let of = &mut self.jobs[job];
        // Drafts of killed evaluations. This process holds the lock of the lab, so no other process writes there.
        durable::remove_drafts(&of.planned.folder.join("adapt"))?;
        for (evaluation, status) in of.planned.run.evaluations.iter().zip(&mut of.evaluations) {
            match of.planned.evaluation_state(evaluation) {
                EvaluationState::Missing => {}
                EvaluationState::Done => *status = Status::Done,
                EvaluationState::Damaged(reason) => {
                    let path = evaluation.path(&of.planned.folder);
                    let aside = rename_damaged(&path)?;
                    let aside = aside.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    on_event(PlanEvent::Warning(format!("{reason}; renamed to {aside}, evaluating again")));
                }
            }
        }
        Ok(())
    }

    /// Asks every process to stop by closing its standard input.
    fn request_stop(&mut self, on_event: &mut dyn FnMut(PlanEvent)) {
        let inputs: Vec<_> =
            self.processes.iter_mut().filter_map(|process| process.child.stdin.take()).collect();
        if !inputs.is_empty() {
            on_event(PlanEvent::Stopping { n_processes: inputs.len() });
        }
    }

    /// Collects the processes that have exited.
    fn collect_exited(
        &mut self,
        on_event: &mut dyn FnMut(PlanEvent),
        stop: &StopFlag,
    ) -> Result<(), LabError> {
        let mut index = 0;
        while index < self.processes.len() {
            let waited = self.processes[index].child.try_wait();
            let Some(status) =
                waited.map_err(|source| LabError::io("wait for", self.runner.program, source))?
            else {
                index += 1;
                continue;
            };
            let process = self.processes.swap_remove(index);
            if status.success() {
                self.finish(&process, on_event)?;
            } else if stop.requested().is_some() {
                // The flag is read after the wait: Ctrl-C in a terminal reaches all processes at the same time.
                *self.status(process.job, process.task) = Status::ToDo;
            } else {
                let reason = failure_reason(&process, status);
                self.mark_failed(process.job, process.task, process.what, reason, on_event);
            }
        }
        Ok(())
    }

    fn finish(&mut self, process: &Process, on_event: &mut dyn FnMut(PlanEvent)) -> Result<(), LabError> {
        *self.status(process.job, process.task) = Status::Done;
        on_event(PlanEvent::Done(process.what.clone()));
        if process.task == Task::Train {
            self.jobs[process.job].share = 1.0;
            // The folder of a resumed run may already contain records.
            self.find_evaluations(process.job, on_event)?;
        }
        Ok(())
    }

    fn status(&mut self, job: usize, task: Task) -> &mut Status {
        match task {
            Task::Train => &mut self.jobs[job].training,
            Task::Evaluate(evaluation) => &mut self.jobs[job].evaluations[evaluation],
        }
    }

    /// Marks a task as failed; if it is a training task, also every task that depends on it.
    fn mark_failed(
        &mut self,
        job: usize,
        task: Task,
        what: String,
        reason: String,
        on_event: &mut dyn FnMut(PlanEvent),
    ) {
        *self.status(job, task) = Status::Failed;
        on_event(PlanEvent::Failed { what: what.clone(), reason });
        self.failed.push(what);
        if task != Task::Train {
            return;
        }
        self.jobs[job].evaluations.fill(Status::Failed);
        for other in 0..self.jobs.len() {
            let planned = self.jobs[other].planned;
            if planned.needs == Some(job) && self.jobs[other].training == Status::ToDo {
                let reason = format!("its fallback run {} failed", self.jobs[job].planned.title());
                self.mark_failed(other, Task::Train, planned.title(), reason, on_event);
            }
        }
    }

    fn start_ready_tasks(&mut self, on_event: &mut dyn FnMut(PlanEvent)) -> Result<(), LabError> {
        while self.processes.len() < self.runner.n_jobs {
            let Some((job, task)) = self.next() else { return Ok(()) };
            if task == Task::Train {
                // Another process may have started or stopped training this run since the last check.
                self.find_state(job, on_event)?;
                if self.jobs[job].training != Status::ToDo || self.jobs[job].is_in_use {
                    continue;
                }
            }
            self.start(job, task, on_event)?;
        }
        Ok(())
    }

    /// The first task in plan order that can start. Evaluations come before training, because they complete a result.
    fn next(&self) -> Option<(usize, Task)> {
        let to_do = |status: &Status| *status == Status::ToDo;
        let evaluation = self.jobs.iter().enumerate().find_map(|(job, of)| {
            let trained = of.training == Status::Done;
            let first = of.evaluations.iter().position(to_do).filter(|_| trained);
            first.map(|evaluation| (job, Task::Evaluate(evaluation)))
        });
        evaluation.or_else(|| {
            let can_start = |of: &RunJob<'_>| {
                let is_fallback_ready =
                    of.planned.needs.is_none_or(|needs| self.jobs[needs].training == Status::Done);
                to_do(&of.training) && !of.is_in_use && is_fallback_ready
            };
            self.jobs.iter().position(can_start).map(|job| (job, Task::Train))
        })
    }

    fn start(&mut self, job: usize, task: Task, on_event: &mut dyn FnMut(PlanEvent)) -> Result<(), LabError> {
        let PlanRunner { program, n_threads, .. } = *self.runner;
        let planned = self.jobs[job].planned;
        let folder = &planned.folder;
        let (mut arguments, what) = match task {
            Task::Train if RunView::open(folder).is_ok() => {
                (vec!["resume".to_owned(), folder.display().to_string()], planned.title())
            }
            Task::Train => {
                let fallback = planned.needs.map(|needs| self.jobs[needs].planned.folder.as_path());
                (planned.train_arguments(self.plan.scale, fallback), planned.title())
            }
            Task::Evaluate(evaluation) => {
                let evaluation = &planned.run.evaluations[evaluation];
                let what = format!("{}, evaluation {}", planned.title(), evaluation.name);
                (evaluation.adapt_arguments(folder), what)
            }
        };
        arguments.extend(["--threads".to_owned(), n_threads.to_string()]);
        let log = self.runner.logs_folder().join(format!("{}.log", planned.run.folder_name));
        let open = || {
            let mut file = OpenOptions::new().create(true).append(true).open(&log)?;
            writeln!(file, "$ pace {}", arguments.join(" "))?;
            let start = file.seek(SeekFrom::End(0))?;
            Ok((file, start))
        };
        let (file, log_start) = open().map_err(|source| LabError::io("write", &log, source))?;
        let child = Command::new(program)
            .args(&arguments)
            .arg(STOP_ON_STDIN_EOF)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|source| LabError::io("start", program, source))?;
        *self.status(job, task) = Status::Started;
        on_event(PlanEvent::Started(what.clone()));
        self.processes.push(Process { job, task, what, child, log, log_start });
        Ok(())
    }

    /// Reads the progress of the runs, at most once per [`POLL`], and sends an event.
    fn poll_progress(&mut self, on_event: &mut dyn FnMut(PlanEvent)) -> Result<(), LabError> {
        if self.last_poll.is_some_and(|last| last.elapsed() < POLL) {
            return Ok(());
        }
        self.last_poll = Some(Instant::now());
        for job in 0..self.jobs.len() {
            let of = &self.jobs[job];
            if of.training == Status::Started {
                let view = RunView::open(&of.planned.folder);
                let steps = view.map_or(0, |view| view.last_step());
                let total = of.planned.run.config.train.total_steps;
                self.jobs[job].share = (steps as f64 / total as f64).min(1.0);
            } else if of.is_in_use {
                self.find_state(job, on_event)?;
            }
        }
        on_event(PlanEvent::Progress(self.progress()));
        Ok(())
    }

    fn progress(&self) -> LabProgress {
        /// Weight of the initial speed estimates, in seconds of observation.
        const TRUST_SECS: f64 = 30.0;
        let (done, all) = self.secs();
        let n_jobs = self.runner.n_jobs.min(self.processes.len().max(1)) as f64;
        // Measured seconds per estimated second.
        let elapsed = self.since.elapsed().as_secs_f64() * n_jobs;
        let slowness = (elapsed + TRUST_SECS) / ((done - self.done_before).max(0.0) + TRUST_SECS);
        LabProgress {
            n_done: self.jobs.iter().filter(|job| job.is_done()).count(),
            n_runs: self.jobs.len(),
            share: if all > 0.0 { (done / all).min(1.0) } else { 1.0 },
            running: self.processes.iter().map(|process| process.what.clone()).collect(),
            secs_left: (all - done).max(0.0) * slowness / n_jobs,
        }
    }

    /// Seconds of work of one process over all runs: completed, and in total.
    fn secs(&self) -> (f64, f64) {
        let sums = self.jobs.iter().map(RunJob::secs);
        sums.fold((0.0, 0.0), |(done, all), (job_done, job_all)| (done + job_done, all + job_all))
    }

    /// Whether a task can start now, or could start once a process outside this plan has ended. One call checks both, so that
    /// a run released in between is not missed.
    fn is_anything_left(&self) -> bool {
        self.next().is_some() || self.jobs.iter().any(|job| job.training == Status::ToDo && job.is_in_use)
    }

    fn outcome(self, is_stopped: bool) -> PlanOutcome {
        let n_done = self.jobs.iter().filter(|job| job.is_done()).count();
        PlanOutcome { is_stopped: is_stopped && n_done < self.jobs.len(), n_done, failed: self.failed }
    }
}

/// The argument that makes a command save and exit when its standard input ends.
pub const STOP_ON_STDIN_EOF: &str = "--stop-on-stdin-eof";

/// The reason why a process failed: the last error line of its log, or its exit status.
fn failure_reason(process: &Process, status: ExitStatus) -> String {
    let read = || {
        let mut file = File::open(&process.log)?;
        file.seek(SeekFrom::Start(process.log_start))?;
        let mut bytes = Vec::new();
        file.take(1 << 20).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let message = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let reason = message.map_or_else(|| format!("ended with {status}"), str::to_owned);
    format!("{reason} (see {})", process.log.display())
}

/// Renames a damaged file to a free name in the same folder.
fn rename_damaged(path: &Path) -> Result<PathBuf, LabError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = (1..)
        .map(|n| path.with_file_name(format!("{name}.damaged-{n}")))
        .find(|aside| !aside.exists())
        .expect("some number is free");
    durable::rename(path, &aside)?;
    Ok(aside)
}
