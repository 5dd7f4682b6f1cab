//! Integration tests of the games, one binary.

mod contract;
mod traces;
