//! Integration tests of the reports, one binary.

mod records;
mod sample;
