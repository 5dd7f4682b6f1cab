//! Presets and keys of a game, and the errors of wrong input.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::old_names::with_current_names;

/// A named set of values for all keys, of the game's rules and of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The paper's text wherever it is explicit, the authors' code where it is silent.
    Paper,
    /// The authors' published code throughout.
    Reference,
    /// The training keys that worked best here. The rules are those of [`Preset::Paper`]; a game's `training.toml` may set
    /// other keys of the game for training.
    Best,
}

impl Preset {
    /// Every preset, the default first.
    pub const ALL: [Preset; 3] = [Preset::Paper, Preset::Reference, Preset::Best];
    /// The presets whose rules differ: [`Preset::Best`] has the rules of [`Preset::Paper`].
    pub const RULES: [Preset; 2] = [Preset::Paper, Preset::Reference];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Paper => "paper",
            Preset::Reference => "reference",
            Preset::Best => "best",
        }
    }
}

impl FromStr for Preset {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Preset, ConfigError> {
        Preset::ALL
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| ConfigError::unknown("preset", text, Preset::ALL.map(Preset::name)))
    }
}

/// A set of keys with a value for each preset. Derive `Serialize` and `Deserialize`: the field names are the keys.
pub trait PresetConfig: Clone + Debug + PartialEq + Serialize + DeserializeOwned + Send + Sync {
    /// Returns all keys with the values of a preset. [`Preset::Best`] has the values of [`Preset::Paper`].
    fn preset(preset: Preset) -> Self;
}

/// Returns the keys of a preset with `overrides` applied.
pub fn configure<C: PresetConfig>(preset: Preset, overrides: &Map<String, Value>) -> Result<C, ConfigError> {
    override_keys(&C::preset(preset), overrides)
}

/// Returns `keys` with `overrides` applied. An unknown key or an invalid value is an error that names the key. The keys of a
/// section are set by a map under the section's name, or one by one as `section.key`. Old names of keys are accepted.
pub fn override_keys<C: Serialize + DeserializeOwned>(
    keys: &C,
    overrides: &Map<String, Value>,
) -> Result<C, ConfigError> {
    let Value::Object(mut keys) = serde_json::to_value(keys).expect("a configuration is plain data") else {
        panic!("a configuration must serialise to a map of keys");
    };
    let overrides = with_current_names(overrides, Some(&keys))?;
    let mut singles = Vec::new();
    for (key, value) in &overrides {
        match (keys.get(key), value) {
            (Some(Value::Object(_)), Value::Object(section)) => {
                singles.extend(section.iter().map(|(inner, value)| (format!("{key}.{inner}"), value)));
            }
            _ => singles.push((key.clone(), value)),
        }
    }
    for (key, value) in &singles {
        let Some(current) = find_key(&mut keys, key) else {
            let known = key_names(&keys);
            return Err(ConfigError::unknown("key", key, known.iter().map(String::as_str)));
        };
        // One key at a time, so that the error can name it.
        *current = (*value).clone();
        serde_json::from_value::<C>(Value::Object(keys.clone())).map_err(|error| ConfigError::BadValue {
            key: key.clone(),
            found: value.to_string(),
            expected: found_and_expected(&error.to_string()).1,
        })?;
    }
    Ok(serde_json::from_value(Value::Object(keys)).expect("checked key by key"))
}

fn find_key<'a>(keys: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        Some((section, inner)) => keys.get_mut(section)?.as_object_mut()?.get_mut(inner),
        None => keys.get_mut(key),
    }
}

/// Lists all keys; a key of a section as `section.key`.
fn key_names(keys: &Map<String, Value>) -> Vec<String> {
    keys.iter()
        .flat_map(|(key, value)| match value {
            Value::Object(section) => section.keys().map(|inner| format!("{key}.{inner}")).collect(),
            _ => vec![key.clone()],
        })
        .collect()
}

/// An error in the input of a user, a file or another program: a key, a name or a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An unknown name.
    #[error("unknown {kind} \"{}\"{}; known: {known}", shown(found), nearest.as_ref().map_or(String::new(), |name| format!(" (did you mean \"{name}\"?)")))]
    Unknown {
        /// The kind of name: game, key, pool…
        kind: &'static str,
        /// The name that was given.
        found: String,
        /// The known names.
        known: String,
        /// The known name closest to it, if one is close.
        nearest: Option<String>,
    },
    /// A key with a value that it cannot have.
    #[error("key `{key}`: found {}; {expected}", shown(found))]
    BadValue {
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// The values that the key can have.
        expected: String,
    },
    /// An invalid file of keys: of a game, of a run or of a user.
    #[error("{file}: {reason}")]
    BadFile {
        /// The file.
        file: String,
        /// The error in it.
        reason: String,
    },
    /// A uniform pool with an invalid number of tuples.
    #[error("pool \"{}\": expected uniform:N with N from 1 to 1000000", shown(found))]
    BadPoolSize {
        /// The name of the pool.
        found: String,
    },
    /// A peer index past the end of the pool.
    #[error("no peer {found} in pool {pool}: it has the peers 0 to {last}")]
    NoSuchPeer {
        /// The index that was given.
        found: usize,
        /// The pool's name.
        pool: String,
        /// The last index.
        last: usize,
    },
    /// A pool without tuples: a game may have no validation peers.
    #[error("the game has no {pool} peers; use another pool, or add such peers in its `Game::pool`")]
    NoPeers {
        /// The pool's name.
        pool: String,
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
    /// A tuple that is in two lists of a pool.
    #[error("{pool} tuple {index} ({peer}) is also in the {other_pool} pool; remove it from one of them")]
    PeerInTwoPools {
        /// The list.
        pool: &'static str,
        /// Its index in the list.
        index: usize,
        /// Its description.
        peer: String,
        /// The other list.
        other_pool: &'static str,
    },
    /// A state that no sequence of moves leads to.
    #[error("impossible {game} state: {reason}")]
    ImpossibleState {
        /// The game's id.
        game: &'static str,
        /// The reason.
        reason: String,
    },
    /// Action probabilities that are not finite, or all 0.
    #[error(
        "the agent's action probabilities are not a distribution: found {found}, expected finite numbers that are not all 0; use another checkpoint of the run"
    )]
    NotADistribution {
        /// The probabilities.
        found: String,
    },
}

impl ConfigError {
    /// Creates the error for an unknown name, with the nearest known name.
    pub fn unknown<'a>(
        kind: &'static str,
        found: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> ConfigError {
        let known: Vec<&str> = known.into_iter().collect();
        let nearest = nearest(found, &known).map(str::to_owned);
        ConfigError::Unknown { kind, found: found.to_owned(), known: known.join(", "), nearest }
    }

    /// Creates the error for a value that a check rejects.
    pub fn bad_value(key: &str, found: &dyn Display, expected: &str) -> ConfigError {
        ConfigError::BadValue {
            key: key.to_owned(),
            found: found.to_string(),
            expected: format!("expected {expected}"),
        }
    }
}

/// Finds the known name that was probably meant: one that starts with `found`, else one that differs from it in few letters,
/// else one that contains it.
fn nearest<'a>(found: &str, known: &[&'a str]) -> Option<&'a str> {
    let n_letters = found.chars().count();
    // No name is that long, and the comparison with every name would be slow.
    if n_letters > MAX_SHOWN {
        return None;
    }
    let found = found.to_lowercase();
    let shortest = |is_meant: &dyn Fn(&str) -> bool| {
        known.iter().copied().filter(|name| is_meant(name)).min_by_key(|name| name.len())
    };
    let starting = || shortest(&|name| n_letters >= 2 && name.starts_with(&found));
    let similar = || {
        let distances = known.iter().map(|name| (strsim::damerau_levenshtein(&found, name), *name));
        let (distance, name) = distances.min()?;
        (distance <= 1 + name.len() / 3).then_some(name)
    };
    let containing = || shortest(&|name| n_letters >= 3 && name.contains(&found));
    starting().or_else(similar).or_else(containing)
}

/// Maximum number of characters of an input value in a message.
const MAX_SHOWN: usize = 60;

/// Formats an input value for a message: its first 60 characters, with control characters escaped.
pub fn shown(found: &str) -> String {
    let mut text = String::new();
    for character in found.chars().take(MAX_SHOWN) {
        if breaks_a_line(character) {
            text.extend(character.escape_default());
        } else {
            text.push(character);
        }
    }
    match found.chars().count() {
        n if n > MAX_SHOWN => format!("{text}… ({n} characters)"),
        _ => text,
    }
}

/// Whether a character disturbs a line in a terminal: control characters, line separators, and marks that change the
/// direction of the text.
pub fn breaks_a_line(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Rewrites the message of a JSON or TOML parser: the value found and the value expected, without names of Rust types and
/// parser terms.
pub fn plain_reason(message: &str) -> String {
    match found_and_expected(message) {
        (Some(found), expected) => format!("found {}, {expected}", shown(&found)),
        (None, reason) => reason,
    }
}

/// Splits the message of a parser into the value it names, if it names one, and the rest in plain words.
fn found_and_expected(message: &str) -> (Option<String>, String) {
    let message = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    // The position at the end of the message is removed: the caller reports it.
    let is_position =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b" column".contains(&byte));
    let message = match message.rsplit_once(" at line ") {
        Some((reason, position)) if is_position(position) => reason,
        _ => &message,
    };
    let between_ticks = |text: &str| text.split('`').nth(1).map_or_else(String::new, shown);
    if message.starts_with("missing field `") {
        return (None, format!("`{}` is missing", between_ticks(message)));
    }
    if message.starts_with("duplicate field `") {
        return (None, format!("`{}` is there twice, expected it once", between_ticks(message)));
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return (None, message.to_owned());
    };
    let names = expected.trim_start_matches("one of ").replace('`', "").replace(" or ", ", ");
    if found.starts_with("unknown field `") {
        return (None, format!("unknown key `{}`; known: {names}", between_ticks(found)));
    }
    if let Some(word) = found.strip_prefix("unknown variant ") {
        return (Some(word.to_owned()), format!("expected one of {names}"));
    }
    let value = ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .find_map(|start| found.strip_prefix(start));
    match value {
        // The type comes before the value: integer `-1`, string "x".
        Some(value) => {
            let value = value.find(['`', '"']).map_or(value, |start| &value[start..]);
            (Some(value.to_owned()), format!("expected {}", plain_type(expected)))
        }
        None => (None, message.to_owned()),
    }
}

/// Translates a type name of a JSON or TOML parser into plain words.
fn plain_type(name: &str) -> &str {
    match name {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 to 18446744073709551615",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" | "a character" => "a word",
        "string or map" | "string or table" => "a word, or a section of keys",
        "a sequence" => "a list",
        "a map" | "map" => "a section of keys",
        "map with a single key" | "newtype variant" | "struct variant" => "a section with one key",
        name if name.starts_with("struct ") || name.starts_with("internally tagged enum ") => {
            "a section of keys"
        }
        name if name.starts_with("enum ") || name.starts_with("variant ") => "a known word",
        name if name.starts_with("tuple ") || name.starts_with("an array of ") => "a list",
        name => name,
    }
}

/// Rejects an encounter without episodes or with more than 10 000.
pub(crate) fn check_episodes(n_episodes: usize) -> Result<(), ConfigError> {
    if (1..=10_000).contains(&n_episodes) {
        return Ok(());
    }
    Err(ConfigError::bad_value("episodes_per_encounter", &n_episodes, "a number from 1 to 10000"))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use serde_json::{Map, Value, json};

    use super::{nearest, override_keys, plain_reason, shown};

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
        // A map leaves the other keys of the section unchanged.
        assert_eq!(set(&json!({ "section": { "name": "b" } })), Ok(keys(0.5, 3, "b".to_owned())));
        assert_eq!(set(&json!({ "section": {} })), set(&json!({})));
    }

    #[test]
    fn parser_messages_become_plain() {
        let whole = "expected a whole number from 0 to 18446744073709551615";
        for (message, expected) in [
            (
                r#"invalid type: string "x, expected f64", expected usize"#,
                format!(r#"found "x, expected f64", {whole}"#),
            ),
            ("invalid type: floating point `1e300`, expected u64", format!("found `1e300`, {whole}")),
            (
                "invalid type: null, expected string or map",
                "found null, expected a word, or a section of keys".to_owned(),
            ),
            (
                "invalid type: integer `3`, expected struct Section",
                "found `3`, expected a section of keys".to_owned(),
            ),
            (
                "invalid value: integer `-1`, expected f64 at line 3 column 7",
                "found `-1`, expected a number".to_owned(),
            ),
            (
                r#"invalid type: string "1 at line 2", expected f64"#,
                r#"found "1 at line 2", expected a number"#.to_owned(),
            ),
            (
                "unknown variant `x`, expected one of `steps`, `chunks`",
                "found `x`, expected one of steps, chunks".to_owned(),
            ),
            (
                "unknown variant `x`, expected `steps` or `chunks`",
                "found `x`, expected one of steps, chunks".to_owned(),
            ),
            (
                "unknown field `x`, expected one of `rate`, `width`",
                "unknown key `x`; known: rate, width".to_owned(),
            ),
            ("unknown field `x`, expected `rate`", "unknown key `x`; known: rate".to_owned()),
            ("missing field `rate` at line 1 column 2", "`rate` is missing".to_owned()),
            ("duplicate field `rate`", "`rate` is there twice, expected it once".to_owned()),
            ("unclosed array, expected `]`", "unclosed array, expected `]`".to_owned()),
        ] {
            assert_eq!(plain_reason(message), expected, "{message}");
        }
    }

    #[test]
    fn an_input_value_in_a_message_is_one_short_line() {
        assert_eq!(shown("many"), "many");
        assert_eq!(shown("a\nb\t\u{1b}[31m\u{202e}c"), "a\\nb\\t\\u{1b}[31m\\u{202e}c");
        assert_eq!(shown(&"ü".repeat(61)), format!("{}… (61 characters)", "ü".repeat(60)));
        assert_eq!(shown(&"ü".repeat(60)), "ü".repeat(60));
        let long = "x".repeat(100_000);
        let wrong_value = set(&json!({ "section.width": long })).expect_err("refused");
        let unknown_key = set(&json!({ long.clone(): 1 })).expect_err("refused");
        for message in [wrong_value, unknown_key] {
            assert!(message.len() < 300 && message.contains("… (10000"), "{message}");
        }
        assert!(set(&json!({ "a\nb": 1 })).expect_err("refused").starts_with("unknown key \"a\\nb\""));
    }

    #[test]
    fn the_beginning_or_a_part_of_a_name_suggests_the_name() {
        let known = ["kuhn-poker", "overcooked", "predator-prey", "learning_rate", "learning_rate_decay"];
        for (found, expected) in [
            ("kuhn", Some("kuhn-poker")),
            ("KUHN", Some("kuhn-poker")),
            ("pred", Some("predator-prey")),
            ("khun-poker", Some("kuhn-poker")),
            ("learning", Some("learning_rate")),
            ("poker", Some("kuhn-poker")),
            ("k", None),
            ("", None),
            ("chess", None),
        ] {
            assert_eq!(nearest(found, &known), expected, "{found}");
        }
    }

    #[test]
    fn an_error_names_the_key() {
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
