//! Integration tests of the games, one binary.

mod contract;
mod predator_prey_traces;
mod traces;
