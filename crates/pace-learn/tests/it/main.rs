//! Integration tests of the learner, one binary.
