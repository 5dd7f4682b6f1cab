//! Integration tests of the play server, one binary.
