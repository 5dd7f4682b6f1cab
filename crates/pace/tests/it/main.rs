//! Integration tests of the command line and of the repository, one binary.

mod commands;
#[cfg(unix)]
mod lab;
mod reporting;
#[cfg(unix)]
mod playing;
#[cfg(unix)]
mod studies;
mod tidy;
mod training;
mod watching;
