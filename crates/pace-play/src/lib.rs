//! People play with agents: a person takes a peer's seat, an agent adapts to them, and everybody may see what it thought.
//!
//! Up to `replay` nothing knows of a network or a file: an encounter is a value that is asked and answered, and the same
//! booking with the same actions is the same encounter again.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod error;

pub mod latent_map;
pub mod mind;
pub mod offer;

pub mod session;

pub mod replay;

pub mod wire;

mod assets;
mod token;

pub mod server;
pub mod study;

pub mod bots;

pub use error::PlayError;
pub use offer::{Offer, Offers};
pub use replay::Replay;
pub use server::{ServeError, ServerConfig, serve};
pub use session::{Booking, Frame, Session, Summary};
pub use study::{Study, StudyConfig, StudyError, StudyFile};
