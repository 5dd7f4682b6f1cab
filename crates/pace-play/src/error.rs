//! Everything that can be wrong with what people ask of the play server: what was found, what was expected, what to do.

/// Why something cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// A game, a peer or a scripted ego that is not there.
    #[error(transparent)]
    Game(#[from] pace_games::ConfigError),
    /// An agent that is not on offer.
    #[error("unknown agent {found:?}; choose one of the list")]
    NoSuchOffer {
        /// What was asked for.
        found: String,
    },
    /// A peer seat that the game does not have.
    #[error("no peer seat {found}; expected a number below {n_peers}")]
    NoSuchSeat {
        /// The slot that was asked for.
        found: usize,
        /// How many there are.
        n_peers: usize,
    },
    /// Too many episodes, or none.
    #[error("{found} episodes were asked for; expected 1 to {most}")]
    BadEpisodes {
        /// What was asked for.
        found: usize,
        /// The most there may be.
        most: usize,
    },
    /// An action that does not exist.
    #[error("there is no action {found}; expected a number below {n_actions}")]
    NoSuchAction {
        /// What was asked for.
        found: usize,
        /// How many there are.
        n_actions: usize,
    },
    /// An action of somebody who is not asked.
    #[error("the encounter is over")]
    EncounterOver,
    /// An action that came before or after its turn.
    #[error("received action {found}, expected action {expected}")]
    OutOfTurn {
        /// The number it came with.
        found: usize,
        /// The number that is due.
        expected: usize,
    },
    /// An action that the person's part forbids.
    #[error("{reason}")]
    Forbidden {
        /// In words to the person.
        reason: String,
    },
    /// A link to a replay that cannot be read.
    #[error("invalid replay link: {reason}")]
    BadLink {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A link to an encounter with an agent that has changed since.
    #[error("this replay needs another version of {offer:?}; the agent's weights have changed")]
    OtherAgent {
        /// The agent's id.
        offer: String,
    },
}
