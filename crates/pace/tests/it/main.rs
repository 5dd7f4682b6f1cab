//! Integration tests of the command line and of the repository, one binary.

mod commands;
#[cfg(unix)]
mod fuzz;
#[cfg(unix)]
mod lab;
mod old_names;
#[cfg(unix)]
mod playing;
mod recorded_runs;
mod reporting;
#[cfg(unix)]
mod studies;
#[cfg(target_os = "linux")]
mod sudden_death;
mod tidy;
mod training;
mod watching;
mod words;
