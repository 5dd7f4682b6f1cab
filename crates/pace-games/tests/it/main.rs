//! Integration tests of the games, one binary.

mod allocation;
mod contract;
mod kuhn_traces;
mod overcooked_traces;
mod playthroughs;
mod pools;
mod predator_prey_traces;
mod properties;
mod sessions;
mod traces;
mod turns;
