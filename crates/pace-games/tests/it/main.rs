//! Integration tests of the games, one binary.

mod allocation;
mod contract;
mod kuhn_traces;
mod playthroughs;
mod properties;
mod overcooked_traces;
mod traces;
