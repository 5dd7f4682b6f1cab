//! Integration tests of the reports, one binary.

mod escape;
mod golden;
mod records;
mod sample;
mod well_formed;
