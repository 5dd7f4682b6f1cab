//! Integration tests of the engine, one binary.

mod gradients;
mod pooling;
