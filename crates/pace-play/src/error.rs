//! Errors of sessions, replay links and the agent catalog.

/// An error of a session or a replay link.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A game, peer or scripted ego that does not exist.
    #[error(transparent)]
    Game(#[from] pace_games::ConfigError),
    /// An agent that is not in the catalog.
    #[error("unknown agent {found:?}; choose one of the list")]
    UnknownAgent {
        /// The requested id.
        found: String,
    },
    /// A peer seat that the game does not have.
    #[error("no peer seat {found}; expected a number below {n_peers}")]
    NoSuchSeat {
        /// The requested slot.
        found: usize,
        /// Number of peers.
        n_peers: usize,
    },
    /// Too many episodes, or none.
    #[error("{found} episodes were asked for; expected 1 to {max}")]
    BadEpisodes {
        /// The requested number.
        found: usize,
        /// Maximum number.
        max: usize,
    },
    /// An action that does not exist.
    #[error("there is no action {found}; expected a number below {n_actions}")]
    NoSuchAction {
        /// The requested action.
        found: usize,
        /// Number of actions.
        n_actions: usize,
    },
    /// An action after the last episode.
    #[error("the encounter is over")]
    EncounterOver,
    /// An action with another index than the expected one.
    #[error("received action {found}, expected action {expected}")]
    OutOfTurn {
        /// The received index.
        found: usize,
        /// The expected index.
        expected: usize,
    },
    /// An action that the game forbids in the role assigned to the person.
    #[error("{reason}")]
    Forbidden {
        /// The reason, as shown to the person.
        reason: String,
    },
    /// A replay link that cannot be read.
    #[error("invalid replay link: {reason}")]
    BadLink {
        /// The problem.
        reason: &'static str,
    },
    /// A replay link for an agent whose fingerprint has changed.
    #[error("this replay needs another version of {agent:?}; the agent's weights have changed")]
    AgentChanged {
        /// The agent's id.
        agent: String,
    },
}
