//! What a person may choose about a game, by preset and key, and every way in which a choice can be wrong.

use std::fmt::{Debug, Display};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A named set of choices where the paper's text and the authors' code differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The paper's text wherever it is explicit, the authors' code where it is silent.
    Paper,
    /// The authors' published code throughout.
    Reference,
}

impl Preset {
    /// Every preset, the default first.
    pub const ALL: [Preset; 2] = [Preset::Paper, Preset::Reference];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Paper => "paper",
            Preset::Reference => "reference",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Result<Preset, GameError> {
        Preset::ALL
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| GameError::unknown("preset", text, Preset::ALL.map(Preset::name)))
    }
}

/// A set of keys with a value for each preset. Derive `Serialize` and `Deserialize`: the field names are the keys.
pub trait Configure: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync {
    /// All keys as `preset` sets them.
    fn preset(preset: Preset) -> Self;
}

/// The keys of `preset` with `overrides` on top.
pub fn configure<C: Configure>(preset: Preset, overrides: &Map<String, Value>) -> Result<C, GameError> {
    override_keys(&C::preset(preset), overrides)
}

/// `keys` with `overrides` on top; a key that is not there, or a value it cannot take, is an error that names it. A key of a
/// section is set by a map with the section's name, or on its own as `section.key`.
pub fn override_keys<C: Serialize + DeserializeOwned>(
    keys: &C,
    overrides: &Map<String, Value>,
) -> Result<C, GameError> {
    let Value::Object(mut keys) = serde_json::to_value(keys).expect("a configuration is plain data") else {
        panic!("a configuration must serialise to a map of keys");
    };
    let mut singles = Vec::new();
    for (key, value) in overrides {
        match (keys.get(key), value) {
            (Some(Value::Object(_)), Value::Object(section)) => {
                singles.extend(section.iter().map(|(inner, value)| (format!("{key}.{inner}"), value)));
            }
            _ => singles.push((key.clone(), value)),
        }
    }
    for (key, value) in &singles {
        let Some(place) = place_of(&mut keys, key) else {
            let known = names_of(&keys);
            return Err(GameError::unknown("key", key, known.iter().map(String::as_str)));
        };
        // One key at a time, so that the error can name it.
        *place = (*value).clone();
        serde_json::from_value::<C>(Value::Object(keys.clone())).map_err(|error| GameError::BadValue {
            key: key.clone(),
            found: value.to_string(),
            expected: error.to_string(),
        })?;
    }
    Ok(serde_json::from_value(Value::Object(keys)).expect("checked key by key"))
}

fn place_of<'a>(keys: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        Some((section, inner)) => keys.get_mut(section)?.as_object_mut()?.get_mut(inner),
        None => keys.get_mut(key),
    }
}

/// All keys, those of sections by their whole name.
fn names_of(keys: &Map<String, Value>) -> Vec<String> {
    keys.iter()
        .flat_map(|(key, value)| match value {
            Value::Object(section) => section.keys().map(|inner| format!("{key}.{inner}")).collect(),
            _ => vec![key.clone()],
        })
        .collect()
}

/// Everything that can be wrong with what a person, a file or another program asks of a game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GameError {
    /// A name that nothing has.
    #[error("unknown {kind} \"{found}\"{}; known: {known}", nearest.as_ref().map_or(String::new(), |name| format!(" (did you mean \"{name}\"?)")))]
    Unknown {
        /// What was looked for: game, key, pool…
        kind: &'static str,
        /// What was given.
        found: String,
        /// What there is.
        known: String,
        /// The closest of these, if any is close.
        nearest: Option<String>,
    },
    /// A key with a value of the wrong type or name.
    #[error("key `{key}`: found {found}; {expected}")]
    BadValue {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// What the key takes.
        expected: String,
    },
    /// A number of peers to draw that cannot be.
    #[error("pool \"{found}\": expected uniform:N with N from 1 to 1000000")]
    BadPoolSize {
        /// What was given.
        found: String,
    },
    /// A peer number past the end of the pool.
    #[error("no peer {found} in pool {pool}: it has the peers 0 to {last}")]
    NoSuchPeer {
        /// What was given.
        found: usize,
        /// The pool's name.
        pool: String,
        /// The last peer's number.
        last: usize,
    },
    /// A pool without training or without test tuples.
    #[error("a pool needs at least one training tuple with a peer in it, and one test tuple")]
    EmptyPool,
    /// Tuples of different sizes.
    #[error("every tuple of a pool must have {n_slots} peers with a class each; found one with {found}")]
    RaggedPool {
        /// Peers in the first tuple.
        n_slots: usize,
        /// Peers in the tuple that differs.
        found: usize,
    },
    /// A test tuple that the ego would have been trained with.
    #[error("test tuple {index} ({peer}) is also in the training pool; remove it from one of them")]
    TestPeerInTraining {
        /// Its number in the test pool.
        index: usize,
        /// Its description.
        peer: String,
    },
    /// A state that no play can be in.
    #[error("impossible {game} state: {reason}")]
    ImpossibleState {
        /// The game's id.
        game: &'static str,
        /// Why.
        reason: String,
    },
    /// An ego whose probabilities are not finite, or all 0.
    #[error(
        "the agent's action probabilities are not a distribution: found {found}, expected finite numbers that are not all 0; use another checkpoint of the run"
    )]
    NotADistribution {
        /// The probabilities.
        found: String,
    },
}

impl GameError {
    /// An unknown name, with the nearest known one.
    pub fn unknown<'a>(
        kind: &'static str,
        found: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> GameError {
        let known: Vec<&str> = known.into_iter().collect();
        let nearest = known
            .iter()
            .map(|name| (strsim::damerau_levenshtein(&found.to_lowercase(), name), *name))
            .min()
            .filter(|(distance, name)| *distance <= 1 + name.len() / 3)
            .map(|(_, name)| name.to_owned());
        GameError::Unknown { kind, found: found.to_owned(), known: known.join(", "), nearest }
    }

    /// A bad value found by a game's own checks.
    pub fn bad_value(key: &str, found: &dyn Display, expected: &str) -> GameError {
        GameError::BadValue {
            key: key.to_owned(),
            found: found.to_string(),
            expected: format!("expected {expected}"),
        }
    }
}

/// Refuses an encounter without episodes, or with more than anybody can mean.
pub(crate) fn check_episodes(n_episodes: usize) -> Result<(), GameError> {
    if (1..=10_000).contains(&n_episodes) {
        return Ok(());
    }
    Err(GameError::bad_value("episodes_per_encounter", &n_episodes, "a number from 1 to 10000"))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::{Map, Value, json};

    use super::override_keys;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Keys {
        rate: f64,
        section: Section,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Section {
        width: usize,
        name: String,
    }

    fn keys(rate: f64, width: usize, name: String) -> Keys {
        Keys { rate, section: Section { width, name } }
    }

    fn set(overrides: &Value) -> Result<Keys, String> {
        let overrides: &Map<String, Value> = overrides.as_object().expect("keys");
        override_keys(&keys(0.5, 3, "a".to_owned()), overrides).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_a_section_are_set_one_by_one() {
        assert_eq!(set(&json!({ "rate": 1.0 })), Ok(keys(1.0, 3, "a".to_owned())));
        assert_eq!(set(&json!({ "section.width": 4 })), Ok(keys(0.5, 4, "a".to_owned())));
        // A map leaves the section's other keys as they are.
        assert_eq!(set(&json!({ "section": { "name": "b" } })), Ok(keys(0.5, 3, "b".to_owned())));
        assert_eq!(set(&json!({ "section": {} })), set(&json!({})));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |overrides: &Value, words: &[&str]| {
            let message = set(overrides).expect_err("refused");
            assert!(words.iter().all(|word| message.contains(word)), "{message}");
        };
        refused(&json!({ "section.with": 4 }), &["section.with", "did you mean \"section.width\"", "rate"]);
        refused(&json!({ "section": { "with": 4 } }), &["section.with"]);
        refused(&json!({ "section.width": "wide" }), &["section.width", "wide"]);
        refused(&json!({ "section": 4 }), &["section", "4"]);
        refused(&json!({ "rate.width": 4 }), &["rate.width"]);
        refused(&json!({ "other.width": 4 }), &["other.width"]);
    }
}
