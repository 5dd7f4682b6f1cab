//! Integration tests of the play server, one binary: a real server on a free port, and clients that mean well or do not.

mod limits;
mod play;
mod slow;
mod studies;
mod table;
