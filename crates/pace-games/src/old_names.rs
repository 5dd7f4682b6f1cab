//! Old names of keys and values. Files, checkpoints and command lines of earlier versions can be read; only current names are
//! written.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::config::ConfigError;

/// The old and the current name of every renamed key of runs, games and evaluations. A key of a section begins with the
/// section's name and a point.
const KEYS: &[(&str, &str)] = &[
    ("minibatch", "minibatch_unit"),
    ("minibatch_spread", "minibatches_per_encounter"),
    ("identify", "identifier_target"),
    ("own_side", "canonical_frame"),
    ("chunk_steps", "bptt_steps"),
    ("encoder_dropout_in_play", "encoder_dropout_in_rollout"),
    ("timeout_credit", "timeout_advantage"),
    ("gscu.belief_deviation_floor", "gscu.belief_std_floor"),
    ("turned_tuples", "rotated_tuples"),
    ("practice_copies", "augmented_copies"),
    ("clock", "observe_time"),
    ("passes", "encounters"),
    ("clear_keeps", "keep_on_clear"),
];

/// Every renamed value: the current name of its key, the old value and the current value.
const VALUES: &[(&str, &str, &str)] = &[
    ("timeout_advantage", "dropped", "zero"),
    ("encoder", "means", "mean-pool"),
    ("encoder", "means-and-maxima", "mean-max-pool"),
    ("gscu.gradient_clipping", "together", "joint"),
    ("gscu.gradient_clipping", "apart", "separate"),
];

/// Replaces old names of keys and values by the current ones. With `known`, all current keys, a key is renamed only if
/// its new name is among them and its old name is not: a game may have a key of its own with a name that is old elsewhere.
pub fn with_current_names(
    keys: &Map<String, Value>,
    known: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, ConfigError> {
    rename_section("", keys, known)
}

/// Reads a section of a file or checkpoint that may have old names; for `#[serde(deserialize_with)]`.
pub fn read_with_old_names<'de, C: DeserializeOwned, D: Deserializer<'de>>(reader: D) -> Result<C, D::Error> {
    let keys = Map::deserialize(reader)?;
    let keys = with_current_names(&keys, None).map_err(Error::custom)?;
    serde_json::from_value(Value::Object(keys)).map_err(Error::custom)
}

fn rename_section(
    prefix: &str,
    keys: &Map<String, Value>,
    known: Option<&Map<String, Value>>,
) -> Result<Map<String, Value>, ConfigError> {
    let mut renamed = Map::new();
    for (name, value) in keys {
        let key = format!("{prefix}{name}");
        let key = current_key(&key, known);
        let value = match value {
            Value::Object(section) => Value::Object(rename_section(&format!("{key}."), section, known)?),
            Value::String(text) => current_value(key, text).into(),
            other => other.clone(),
        };
        if renamed.insert(key[prefix.len()..].to_owned(), value).is_some() {
            return Err(ConfigError::bad_value(key, &"it twice, also under its old name", "it once"));
        }
    }
    Ok(renamed)
}

fn current_key<'a>(key: &'a str, known: Option<&Map<String, Value>>) -> &'a str {
    let Some((_, new)) = KEYS.iter().find(|(old, _)| *old == key) else { return key };
    match known {
        Some(known) if has_key(known, key) || !has_key(known, new) => key,
        _ => new,
    }
}

fn has_key(keys: &Map<String, Value>, key: &str) -> bool {
    match key.split_once('.') {
        Some((section, inner)) => keys.get(section).is_some_and(|section| section.get(inner).is_some()),
        None => keys.contains_key(key),
    }
}

fn current_value<'a>(key: &str, value: &'a str) -> &'a str {
    let renamed = VALUES.iter().find(|(of, old, _)| *of == key && *old == value);
    renamed.map_or(value, |(_, _, new)| *new)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::with_current_names;

    fn map(keys: Value) -> Map<String, Value> {
        match keys {
            Value::Object(keys) => keys,
            other => panic!("expected keys, found {other}"),
        }
    }

    fn renamed(keys: Value, known: Option<Value>) -> Result<Value, String> {
        let known = known.map(map);
        with_current_names(&map(keys), known.as_ref()).map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn old_keys_and_values_are_replaced_also_in_sections() {
        let current = json!({ "timeout_advantage": "zero", "encoder": "mean-pool", "epochs": 3 });
        let old = json!({ "timeout_credit": "dropped", "encoder": "means", "epochs": 3 });
        assert_eq!(renamed(old, None), Ok(current.clone()));
        assert_eq!(renamed(current.clone(), None), Ok(current));
        let current = json!({ "gscu": { "belief_std_floor": 0.5, "gradient_clipping": "joint" } });
        let old = json!({ "gscu": { "belief_deviation_floor": 0.5, "gradient_clipping": "together" } });
        assert_eq!(renamed(old, None), Ok(current.clone()));
        // A key of a section given on its own.
        let single = json!({ "gscu.belief_deviation_floor": 1, "gscu.gradient_clipping": "apart" });
        let expected = json!({ "gscu.belief_std_floor": 1, "gscu.gradient_clipping": "separate" });
        assert_eq!(renamed(single, Some(current)), Ok(expected));
    }

    #[test]
    fn a_known_key_is_not_renamed() {
        let key = || json!({ "clock": true });
        assert_eq!(
            renamed(key(), Some(json!({ "observe_time": false }))),
            Ok(json!({ "observe_time": true }))
        );
        assert_eq!(renamed(key(), Some(json!({ "clock": false, "observe_time": false }))), Ok(key()));
        // A game without either key: the message about the unknown key repeats the name that was given.
        assert_eq!(renamed(key(), Some(json!({}))), Ok(key()));
    }

    #[test]
    fn a_key_under_both_names_is_rejected() {
        let error = renamed(json!({ "identify": "traits", "identifier_target": "classes" }), None);
        let message = "key `identifier_target`: found it twice, also under its old name; expected it once";
        assert_eq!(error, Err(message.to_owned()));
    }
}
