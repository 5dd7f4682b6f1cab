//! Integration tests of the command line and of the repository, one binary.

mod commands;
#[cfg(unix)]
mod lab;
#[cfg(unix)]
mod playing;
mod reporting;
#[cfg(unix)]
mod studies;
mod tidy;
mod training;
mod watching;
