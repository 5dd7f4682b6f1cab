//! The messages between page and server, version 1: small JSON objects over a WebSocket.
//!
//! `docs/play.md` describes them for people who write clients of their own.

use pace_games::{Action, DisplayNames, EpisodeOutcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::beliefs::BeliefSlot;
use crate::catalog::AssignedRole;
use crate::error::PlayError;
use crate::session::{SessionFrame, Summary};

/// The version that both sides speak.
pub const VERSION: u32 = 1;
/// No message of a client is longer.
pub const MOST_MESSAGE_BYTES: usize = 4096;

/// What a client may say.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClientMessage {
    /// The player of an encounter is here, for the first time or again.
    Hello {
        /// The version.
        v: u32,
        /// Whose encounter it is.
        token: String,
    },
    /// A spectator is here.
    Watch {
        /// The version.
        v: u32,
        /// The token of a spectator link.
        token: String,
    },
    /// The player acts.
    Act {
        /// The version.
        v: u32,
        /// How many actions the player has taken before in this encounter.
        seq: usize,
        /// The action.
        action: Action,
        /// The client's clock in milliseconds, for records.
        #[serde(default)]
        at_ms: Option<i64>,
    },
    /// Somebody is still here.
    Ping {
        /// The version.
        v: u32,
    },
}

impl ClientMessage {
    /// Reads a message, or says why it is none.
    pub fn parse(text: &str) -> Result<ClientMessage, Refusal> {
        if text.len() > MOST_MESSAGE_BYTES {
            return Err(Refusal::of(
                RefusalCode::TooLong,
                format!("a message has at most {MOST_MESSAGE_BYTES} bytes"),
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

/// Why a message was refused, for programs.
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

/// A message that was refused. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Refusal {
    /// For programs.
    pub code: RefusalCode,
    /// For people.
    pub message: String,
    /// The number of the action that is due, where one was sent.
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

    /// For a token that names no session.
    pub fn no_such_session() -> Refusal {
        Refusal::of(RefusalCode::NoSuchSession, "this session no longer exists; start a new one".to_owned())
    }

    /// For a session that failed on the server.
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

/// When a person is shown what the agent thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeliefVisibility {
    /// All the time.
    Live,
    /// When the encounter is over.
    After,
    /// Not at all.
    Never,
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ServerMessage {
    /// The first answer to `hello` and `watch`: everything that is needed to go on from here.
    Welcome(Box<Welcome>),
    /// What an action led to.
    Frames {
        /// The version.
        v: u32,
        /// The number of the action that is due now.
        seq: usize,
        /// The moments since, the last of which is now.
        frames: Vec<SessionFrame>,
    },
    /// The encounter is over.
    Over {
        /// The version.
        v: u32,
        /// What came of it.
        summary: Option<Box<Summary>>,
        /// Reopens it as a replay.
        link: Option<String>,
    },
    /// A spectator is told that the player has left or is back.
    Presence {
        /// The version.
        v: u32,
        /// Whether the player is connected.
        is_player_here: bool,
    },
    /// A message was refused.
    Refused {
        /// The version.
        v: u32,
        /// Why.
        #[serde(flatten)]
        refusal: Refusal,
    },
    /// The answer to a ping.
    Pong {
        /// The version.
        v: u32,
    },
    /// The server hangs up.
    Farewell {
        /// The version.
        v: u32,
        /// `taken-over`, `idle`, `refused` or `shutting-down`.
        reason: &'static str,
    },
}

/// Everything that is needed to go on with an encounter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Welcome {
    /// The version.
    pub v: u32,
    /// Whether this is a spectator.
    pub is_spectator: bool,
    /// The game's id.
    pub game: &'static str,
    /// The game's name for people.
    pub title: &'static str,
    /// What the game's things are called.
    pub nouns: DisplayNames,
    /// The role of each peer, by slot.
    pub roles: Vec<&'static str>,
    /// The constants of the game; see `Game::constants`.
    pub setting: Value,
    /// The names of the actions.
    pub action_names: &'static [&'static str],
    /// Whether everybody chooses at once.
    pub is_simultaneous: bool,
    /// The agent's id; empty in a study.
    pub offer: String,
    /// The agent's name; in a study it has none.
    pub label: String,
    /// The person's slot.
    pub slot: usize,
    /// The person's role.
    pub role: &'static str,
    /// The part they were given.
    pub part: Option<AssignedRole>,
    /// How many episodes there are.
    pub n_episodes: usize,
    /// The finished ones.
    pub outcomes: Vec<EpisodeOutcome>,
    /// When the agent's mind is shown.
    pub mind: BeliefVisibility,
    /// What it has opinions about.
    pub mind_slots: Vec<BeliefSlot>,
    /// The token of the spectator link.
    pub watch: Option<String>,
    /// The number of the action that is due.
    pub seq: usize,
    /// Now, or in a new encounter how it came to now.
    pub frames: Vec<SessionFrame>,
    /// Whether the encounter is over.
    pub is_over: bool,
    /// Whether the player is connected.
    pub is_player_here: bool,
}

impl ServerMessage {
    /// As it is sent.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("messages are plain data")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

    use super::{ClientMessage, MOST_MESSAGE_BYTES, RefusalCode};

    #[test]
    fn good_messages_are_read() {
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
        let long = format!(r#"{{"v":1,"type":"hello","token":"{}"}}"#, "x".repeat(MOST_MESSAGE_BYTES));
        assert_eq!(code(&long), RefusalCode::TooLong);
        let deep = "[".repeat(4000);
        assert_eq!(code(&deep), RefusalCode::Malformed);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn nothing_that_arrives_breaks_the_parser(text in any::<String>()) {
            let _ = ClientMessage::parse(&text);
        }

        #[test]
        fn nothing_that_looks_like_a_message_breaks_it(
            v in any::<i64>(), kind in "act|hello|watch|ping|[a-z]{1,8}", seq in any::<f64>(), action in any::<i32>(),
            token in any::<String>(),
        ) {
            let text = serde_json::json!({ "v": v, "type": kind, "seq": seq, "action": action, "token": token }).to_string();
            // A number with a point is no number of an action, and a field too many is refused.
            prop_assert!(ClientMessage::parse(&text).is_err());
        }

        #[test]
        fn every_good_act_is_read(seq in 0usize..100_000, action in any::<u8>()) {
            let text = serde_json::json!({ "v": 1, "type": "act", "seq": seq, "action": action }).to_string();
            prop_assert!(ClientMessage::parse(&text).is_ok());
        }
    }
}
