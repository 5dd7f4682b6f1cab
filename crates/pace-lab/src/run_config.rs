//! `config.toml`: every key of a run, resolved from preset, file and command line.

use pace_games::{AnyGame, GameError, Split, find_game};
use pace_learn::{TrainConfig, TrainPreset, find_method};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::LabError;

/// What a run is made of. The same `RunConfig` and the same build give the same run, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The game's id.
    pub game: String,
    /// The method's id.
    pub method: String,
    /// The preset the keys started from.
    pub preset: TrainPreset,
    /// The seed of all chance.
    pub seed: u64,
    /// The game's keys.
    pub game_keys: Map<String, Value>,
    /// The keys of training.
    pub train: TrainConfig,
}

/// What a person asked for: a preset, then a file, then single keys, each on top of the last.
#[derive(Clone, Debug)]
pub struct RunRequest<'a> {
    /// The game's id.
    pub game: &'a str,
    /// The method's id.
    pub method: &'a str,
    /// The preset's name.
    pub preset: &'a str,
    /// The seed of all chance.
    pub seed: u64,
    /// The name and text of a TOML file with keys of the game and of training, at its top level.
    pub file: Option<(&'a str, &'a str)>,
    /// Single keys.
    pub overrides: Map<String, Value>,
}

impl RunConfig {
    /// Resolves every key, or says which one is wrong.
    pub fn resolve(request: &RunRequest<'_>) -> Result<RunConfig, LabError> {
        let entry = find_game(request.game)?;
        let method = find_method(request.method)?;
        let preset = TrainPreset::parse(request.preset)?;
        let mut train = TrainConfig::preset(entry.id, preset);
        method.adjust(entry.id, preset, &mut train);
        let mut config = RunConfig {
            game: entry.id.to_owned(),
            method: method.id.to_owned(),
            preset,
            seed: request.seed,
            game_keys: keys_of(&*entry.open(preset.of_game(), &Map::new())?),
            train,
        };
        if let Some((name, text)) = request.file {
            let keys: Map<String, Value> =
                toml::from_str(text).map_err(|error| not_toml(name, text, &error))?;
            config.set(&keys)?;
        }
        config.set(&request.overrides)?;
        config.game_keys = keys_of(&*config.check()?);
        Ok(config)
    }

    /// Sets keys of the game and of training; their names do not overlap.
    fn set(&mut self, keys: &Map<String, Value>) -> Result<(), GameError> {
        let Ok(Value::Object(known)) = serde_json::to_value(&self.train) else {
            panic!("keys of training are a map");
        };
        let mut of_train = Map::new();
        for (key, value) in keys {
            let section = key.split_once('.').map_or(key.as_str(), |(section, _)| section);
            if known.contains_key(section) {
                of_train.insert(key.clone(), value.clone());
            } else if self.game_keys.contains_key(key) {
                self.game_keys.insert(key.clone(), value.clone());
            } else {
                let all = known.keys().chain(self.game_keys.keys()).map(String::as_str);
                return Err(GameError::unknown("key", key, all));
            }
        }
        self.train = pace_games::config::override_keys(&self.train, &of_train)?;
        // Opening the game is what checks its keys.
        self.open_game().map(drop)
    }

    /// The game under these keys, if the keys of training fit it.
    fn check(&self) -> Result<Box<dyn AnyGame>, GameError> {
        let game = self.open_game()?;
        self.train.check()?;
        self.train.tuples_met(game.n_tuples(Split::Train))?;
        Ok(game)
    }

    /// The game under these keys.
    pub fn open_game(&self) -> Result<Box<dyn AnyGame>, GameError> {
        find_game(&self.game)?.open(self.preset.of_game(), &self.game_keys)
    }

    /// The game with some of its keys set otherwise, to be met by an agent that was trained under these.
    pub fn open_game_with(&self, keys: &Map<String, Value>) -> Result<Box<dyn AnyGame>, GameError> {
        let Ok(Value::Object(of_train)) = serde_json::to_value(&self.train) else {
            panic!("keys of training are a map");
        };
        let mut game_keys = self.game_keys.clone();
        for (key, value) in keys {
            if of_train.contains_key(key) {
                return Err(GameError::bad_value(key, value, "a key of the game: training is over"));
            }
            if !game_keys.contains_key(key) {
                return Err(GameError::unknown("key", key, self.game_keys.keys().map(String::as_str)));
            }
            game_keys.insert(key.clone(), value.clone());
        }
        find_game(&self.game)?.open(self.preset.of_game(), &game_keys)
    }

    /// The text of `config.toml`.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is plain data")
    }

    /// Reads a `config.toml`.
    pub fn from_toml(file: &str, text: &str) -> Result<RunConfig, LabError> {
        let config: RunConfig = toml::from_str(text).map_err(|error| not_toml(file, text, &error))?;
        let check = || {
            find_method(&config.method)?;
            config.check()
        };
        match check() {
            Ok(_) => Ok(config),
            // Here the file is wrong, not the command line.
            Err(error) => Err(LabError::BadConfig { file: file.to_owned(), reason: error.to_string() }),
        }
    }

    /// A hash of all keys: two runs with the same hash are the same run.
    pub fn hash(&self) -> String {
        blake3::hash(self.to_toml().as_bytes()).to_hex()[..16].to_owned()
    }
}

/// What the reader of TOML has to say, on one line.
fn not_toml(file: &str, text: &str, error: &toml::de::Error) -> LabError {
    let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
    let reason = error.message().lines().map(str::trim).collect::<Vec<_>>().join(" ");
    LabError::BadConfig { file: file.to_owned(), reason: format!("line {line}: {reason}") }
}

fn keys_of(game: &dyn AnyGame) -> Map<String, Value> {
    match game.config() {
        Value::Object(keys) => keys,
        other => panic!("keys of a game are a map, found {other}"),
    }
}
