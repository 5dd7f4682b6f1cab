//! The arguments that name a game and its keys, shared by every command that plays one.

use clap::Args;
use pace_games::{AnyGame, GameError, Preset, find_game};
use pace_learn::{METHODS, resolve};
use serde_json::{Map, Value};

/// Which game, under which keys.
#[derive(Clone, Debug, Args)]
pub struct GameArgs {
    /// The game's id; `pace list games` shows them.
    pub game: String,
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// How to set the keys of a game.
#[derive(Clone, Debug, Args)]
pub struct KeyArgs {
    /// The rules of the paper's text or of the authors' code: `paper` or `reference`. `best` opens the game as it is trained on
    /// under that preset.
    #[arg(long, default_value = "paper")]
    pub preset: String,
    /// Sets one key on top of the preset, for example `horizon_steps=50`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
}

impl GameArgs {
    /// The game as asked for.
    pub fn open(&self) -> Result<Box<dyn AnyGame>, GameError> {
        self.keys.open(&self.game)
    }
}

impl KeyArgs {
    /// The game `id` under these keys.
    pub fn open(&self, id: &str) -> Result<Box<dyn AnyGame>, GameError> {
        let (entry, preset) = (find_game(id)?, Preset::parse(&self.preset)?);
        let (mut keys, _) = resolve(entry, &METHODS[0], preset)?;
        keys.extend(parse_overrides(&self.overrides)?);
        entry.open(preset, &keys)
    }
}

/// Reads `KEY=VALUE` texts: numbers, true and false as they are, anything else as a word.
pub fn parse_overrides(texts: &[String]) -> Result<Map<String, Value>, GameError> {
    texts
        .iter()
        .map(|text| {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                GameError::bad_value("--set", &format!("{text:?}"), "KEY=VALUE, for example horizon_steps=50")
            })?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            Ok((key.trim().to_owned(), value))
        })
        .collect()
}
