//! Integration tests of the command line and of the repository, one binary.

mod commands;
mod tidy;
#[cfg(unix)]
mod training;
mod watching;
