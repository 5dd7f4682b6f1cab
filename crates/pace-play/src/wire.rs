//! The messages between page and server, protocol version 1: JSON objects over a WebSocket.
//!
//! `docs/play.md` describes them for authors of other clients.

use pace_games::{Action, DisplayNames, EpisodeOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::beliefs::BeliefSlot;
use crate::catalog::{AssignedRole, PlayableAgent};
use crate::error::PlayError;
use crate::session::{SessionConfig, SessionFrame, Summary};

/// The protocol version.
pub const VERSION: u32 = 1;
/// Maximum length of a client's message.
pub const MAX_MESSAGE_BYTES: usize = 4096;

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClientMessage {
    /// Connects the player of a session, for the first time or again.
    Hello {
        /// The protocol version.
        v: u32,
        /// The player's token.
        token: String,
    },
    /// Connects a spectator.
    Watch {
        /// The protocol version.
        v: u32,
        /// The token of a spectator link.
        token: String,
    },
    /// Plays an action.
    Act {
        /// The protocol version.
        v: u32,
        /// Number of the player's earlier actions in this session.
        seq: usize,
        /// The action.
        action: Action,
        /// Time of the client's clock in milliseconds, stored with the action.
        #[serde(default)]
        at_ms: Option<i64>,
    },
    /// Keeps the connection open.
    Ping {
        /// The protocol version.
        v: u32,
    },
}

impl ClientMessage {
    /// Parses a message, or returns the reason for its refusal.
    pub fn parse(text: &str) -> Result<ClientMessage, Refusal> {
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(Refusal::of(
                RefusalCode::TooLong,
                format!("a message has at most {MAX_MESSAGE_BYTES} bytes"),
            ));
        }
        let message: ClientMessage = serde_json::from_str(text)
            .map_err(|_| Refusal::of(RefusalCode::Malformed, "not a message of the protocol".to_owned()))?;
        let (ClientMessage::Hello { v, .. }
        | ClientMessage::Watch { v, .. }
        | ClientMessage::Act { v, .. }
        | ClientMessage::Ping { v }) = message;
        if v != VERSION {
            return Err(Refusal::other_version(v));
        }
        Ok(message)
    }
}

/// Reason of a refusal, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum RefusalCode {
    TooLong,
    Malformed,
    OtherVersion,
    NoSuchSession,
    NotYourTurn,
    NoSuchAction,
    Forbidden,
    EncounterOver,
    TooFast,
    Full,
    NotDurable,
    Broken,
}

/// The refusal of a message. The session is unchanged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// Reason for programs.
    pub code: RefusalCode,
    /// Reason for people.
    pub message: String,
    /// Index of the expected action, after an action with another index.
    pub due: Option<usize>,
}

impl Refusal {
    pub(crate) fn of(code: RefusalCode, message: String) -> Refusal {
        Refusal { code, message, due: None }
    }

    pub(crate) fn other_version(found: u32) -> Refusal {
        let message =
            format!("protocol version {found} is not supported (expected {VERSION}); reload the page");
        Refusal::of(RefusalCode::OtherVersion, message)
    }

    /// The refusal of an unknown token.
    pub fn no_such_session() -> Refusal {
        Refusal::of(RefusalCode::NoSuchSession, "this session no longer exists; start a new one".to_owned())
    }

    /// The refusal after an internal error of the session.
    pub fn broken() -> Refusal {
        Refusal::of(RefusalCode::Broken, "internal error; this session cannot continue".to_owned())
    }
}

impl From<PlayError> for Refusal {
    fn from(error: PlayError) -> Refusal {
        let code = match &error {
            PlayError::OutOfTurn { .. } => RefusalCode::NotYourTurn,
            PlayError::EncounterOver => RefusalCode::EncounterOver,
            PlayError::NoSuchAction { .. } => RefusalCode::NoSuchAction,
            PlayError::Forbidden { .. } => RefusalCode::Forbidden,
            _ => RefusalCode::Malformed,
        };
        let due = if let PlayError::OutOfTurn { expected, .. } = error { Some(expected) } else { None };
        Refusal { code, message: error.to_string(), due }
    }
}

/// Time at which the agent's beliefs are shown to the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefVisibility {
    /// During play.
    Live,
    /// After the encounter.
    After,
    /// Never.
    Never,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ServerMessage {
    /// The first reply to `hello` and `watch`: the full state of the session.
    Welcome(Box<Welcome>),
    /// The moves after an action.
    Frames {
        /// The protocol version.
        v: u32,
        /// Index of the next action.
        seq: usize,
        /// A frame for every new state; the last one is the present state.
        frames: Vec<SessionFrame>,
    },
    /// The encounter is over.
    Over {
        /// The protocol version.
        v: u32,
        /// The results, if they may be shown.
        summary: Option<Box<Summary>>,
        /// The replay link, if it may be shown.
        link: Option<String>,
    },
    /// Tells spectators that the player has left or returned.
    Presence {
        /// The protocol version.
        v: u32,
        /// Whether the player is connected.
        is_player_here: bool,
    },
    /// Refuses a message.
    Refused {
        /// The protocol version.
        v: u32,
        /// The reason.
        #[serde(flatten)]
        refusal: Refusal,
    },
    /// The reply to a ping.
    Pong {
        /// The protocol version.
        v: u32,
    },
    /// The last message before the server closes the connection.
    Farewell {
        /// The protocol version.
        v: u32,
        /// The reason: `taken-over`, `idle`, `refused` or `shutting-down`.
        reason: &'static str,
    },
}

/// The full state of a session, sent to every new connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Welcome {
    /// The protocol version.
    pub v: u32,
    /// Whether the receiver is a spectator.
    pub is_spectator: bool,
    /// Game, agent and seats.
    #[serde(flatten)]
    pub description: SessionDescription,
    /// Outcomes of the finished episodes.
    pub outcomes: Vec<EpisodeOutcome>,
    /// Time at which the agent's beliefs are shown.
    #[serde(rename = "mind")]
    pub belief_visibility: BeliefVisibility,
    /// The token of the spectator link.
    #[serde(rename = "watch")]
    pub spectator_token: Option<String>,
    /// Index of the next action.
    pub seq: usize,
    /// The frame of the present state; in a new session, all frames up to it.
    pub frames: Vec<SessionFrame>,
    /// Whether the encounter is over.
    pub is_over: bool,
    /// Whether the player is connected.
    pub is_player_here: bool,
}

/// The constant data of a session that a page needs to show it, live or as a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionDescription {
    /// The game's id.
    pub game: &'static str,
    /// The game's name for people.
    pub title: &'static str,
    /// The game's words for episodes and the keypoint.
    pub nouns: DisplayNames,
    /// The role of each peer, by slot.
    pub roles: Vec<&'static str>,
    /// The constants of the game; see `Game::constants`.
    #[serde(rename = "setting")]
    pub constants: Value,
    /// The names of the actions.
    pub action_names: &'static [&'static str],
    /// Whether all players move at once.
    pub is_simultaneous: bool,
    /// The agent's id; empty in a study.
    #[serde(rename = "offer")]
    pub agent: String,
    /// The agent's name; the same for all agents of a study.
    pub label: String,
    /// The person's slot.
    pub slot: usize,
    /// The person's role.
    pub role: &'static str,
    /// The behaviour that is assigned to the person.
    #[serde(rename = "part")]
    pub assigned_role: Option<AssignedRole>,
    /// Number of episodes.
    pub n_episodes: usize,
    /// The peers and kinds that its beliefs are about, if its beliefs are shown.
    #[serde(rename = "mind_slots")]
    pub belief_slots: Vec<BeliefSlot>,
}

impl SessionDescription {
    /// The description of a session with this agent.
    pub fn new(agent: &PlayableAgent, config: &SessionConfig) -> SessionDescription {
        let spec = agent.game.spec();
        SessionDescription {
            game: spec.id,
            title: spec.title,
            nouns: spec.nouns,
            roles: spec.peer_roles.clone(),
            constants: agent.game.constants(),
            action_names: spec.action_names,
            is_simultaneous: agent.is_simultaneous,
            agent: agent.id.clone(),
            label: agent.label.clone(),
            slot: config.slot,
            role: spec.peer_roles[config.slot],
            assigned_role: agent.assigned_role(config.tuple, config.slot),
            n_episodes: config.n_episodes,
            belief_slots: agent.slots.clone(),
        }
    }
}

impl ServerMessage {
    /// The message as JSON.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("messages are plain data")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

    use super::{ClientMessage, MAX_MESSAGE_BYTES, RefusalCode};

    #[test]
    fn valid_messages_are_parsed() {
        let act = ClientMessage::parse(r#"{"v":1,"type":"act","seq":3,"action":1,"at_ms":17}"#);
        assert_eq!(act, Ok(ClientMessage::Act { v: 1, seq: 3, action: 1, at_ms: Some(17) }));
        assert!(ClientMessage::parse(r#"{"type":"ping","v":1}"#).is_ok());
        assert!(ClientMessage::parse(r#"{"type":"hello","v":1,"token":"abc"}"#).is_ok());
    }

    #[test]
    fn others_are_refused_by_name() {
        let code = |text: &str| ClientMessage::parse(text).expect_err(text).code;
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"v":1}"#,
            r#"{"v":1,"type":"act","seq":-1,"action":0}"#,
            r#"{"v":1,"type":"act","seq":0,"action":256}"#,
            r#"{"v":1,"type":"act","seq":0}"#,
            r#"{"v":1,"type":"act","seq":0,"action":0,"path":"/etc"}"#,
            r#"{"v":1,"type":"jump"}"#,
            r#"{"v":"1","type":"ping"}"#,
        ] {
            assert_eq!(code(text), RefusalCode::Malformed, "{text}");
        }
        assert_eq!(code(r#"{"v":2,"type":"ping"}"#), RefusalCode::OtherVersion);
        let long = format!(r#"{{"v":1,"type":"hello","token":"{}"}}"#, "x".repeat(MAX_MESSAGE_BYTES));
        assert_eq!(code(&long), RefusalCode::TooLong);
        let deep = "[".repeat(4000);
        assert_eq!(code(&deep), RefusalCode::Malformed);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn arbitrary_text_does_not_panic(text in any::<String>()) {
            let _ = ClientMessage::parse(&text);
        }

        #[test]
        fn messages_with_invalid_fields_are_refused(
            v in any::<i64>(), kind in "act|hello|watch|ping|[a-z]{1,8}", seq in any::<f64>(), action in any::<i32>(),
            token in any::<String>(),
        ) {
            let text = serde_json::json!({ "v": v, "type": kind, "seq": seq, "action": action, "token": token }).to_string();
            // An index with a decimal point and unknown fields are invalid.
            prop_assert!(ClientMessage::parse(&text).is_err());
        }

        #[test]
        fn valid_actions_are_parsed(seq in 0usize..100_000, action in any::<u8>()) {
            let text = serde_json::json!({ "v": 1, "type": "act", "seq": seq, "action": action }).to_string();
            prop_assert!(ClientMessage::parse(&text).is_ok());
        }
    }
}
