//! The arguments that name a game and its keys, shared by every command that plays one.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pace_games::old_names::with_current_names;
use pace_games::{AnyGame, ConfigError, Preset, find_game};
use pace_learn::{METHODS, resolve};
use serde_json::{Map, Value};

/// A game and its keys.
#[derive(Clone, Debug, Args)]
pub struct GameArgs {
    /// Id of the game (`pace list games` shows all).
    pub game: String,
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// A preset and single keys of a game.
#[derive(Clone, Debug, Args)]
pub struct KeyArgs {
    /// Preset: `paper` follows the paper's text, `reference` the authors' code; `best` has the game keys that runs with this
    /// preset are trained with.
    #[arg(long, default_value = "paper", value_parser = preset(), hide_possible_values = true)]
    pub preset: Preset,
    /// Override one key of the preset, for example `horizon_steps=50`. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl GameArgs {
    /// Opens the game with these keys.
    pub fn open(&self) -> Result<Box<dyn AnyGame>, ConfigError> {
        self.keys.open(&self.game)
    }
}

impl KeyArgs {
    /// Opens the game `id` with these keys.
    pub fn open(&self, id: &str) -> Result<Box<dyn AnyGame>, ConfigError> {
        let (entry, preset) = (find_game(id)?, self.preset);
        let (mut keys, _) = resolve(entry, &METHODS[0], preset)?;
        keys.extend(with_current_names(&parse_overrides(&self.overrides)?, Some(&keys))?);
        entry.open(preset, &keys)
    }
}

/// Parses the name of a preset. Completions list the names.
pub fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).try_map(|name| name.parse::<Preset>())
}

/// Parses `KEY=VALUE` texts. A value that is valid JSON (a number, a list, `true`) is parsed; any other is a string.
pub fn parse_overrides(texts: &[String]) -> Result<Map<String, Value>, ConfigError> {
    texts
        .iter()
        .map(|text| {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                ConfigError::bad_value(
                    "--set",
                    &format!("{text:?}"),
                    "KEY=VALUE, for example horizon_steps=50",
                )
            })?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            Ok((key.trim().to_owned(), value))
        })
        .collect()
}
