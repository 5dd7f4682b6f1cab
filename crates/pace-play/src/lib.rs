//! Sessions in which a person plays the seat of a peer, and an agent adapts to them.
//!
//! A [`Session`] is a function of its [`SessionConfig`] and the person's actions: equal inputs give an equal encounter. Sessions,
//! the catalog of agents, replay links and the messages need no clock, thread, file or socket. The feature `server` (on by
//! default) adds the server, its page, studies with participants and the load test.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod error;

pub mod beliefs;
pub mod catalog;
pub mod latent_map;

pub mod session;

pub mod replay;

pub mod wire;

#[cfg(feature = "server")]
mod assets;
#[cfg(feature = "server")]
mod token;

#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod study;

#[cfg(feature = "server")]
pub mod bots;

pub use catalog::{AgentCatalog, PlayableAgent};
pub use error::PlayError;
pub use replay::SessionReplay;
#[cfg(feature = "server")]
pub use server::{ServeError, ServerConfig, serve};
pub use session::{Session, SessionConfig, SessionFrame, Summary};
#[cfg(feature = "server")]
pub use study::{Study, StudyConfig, StudyError, StudyFile};
