//! Integration tests of the learner, one binary.

mod threads;
