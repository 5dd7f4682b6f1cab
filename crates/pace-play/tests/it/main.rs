//! Integration tests of the play server: a server on a free port, with correct and with faulty clients.

mod host;
mod limits;
mod play;
mod slow;
mod studies;
