//! Integration tests of the games, one binary.

mod contract;
mod overcooked_traces;
mod traces;
