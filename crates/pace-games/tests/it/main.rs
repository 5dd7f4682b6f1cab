//! Integration tests of the games, one binary.

mod contract;
mod kuhn_traces;
mod traces;
