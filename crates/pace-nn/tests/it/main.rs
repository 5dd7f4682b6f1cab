//! Integration tests of the engine, one binary.

mod gradients;
mod gru;
mod losses;
mod lstm;
mod pooling;
mod recording;
mod transformer;
