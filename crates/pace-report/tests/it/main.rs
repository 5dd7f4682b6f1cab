//! Integration tests of this crate, in one binary.

mod escape;
mod golden;
mod records;
mod sample;
mod well_formed;
