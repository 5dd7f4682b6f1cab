//! `config.toml`: every key of a run, resolved from preset, file and command line.

use std::path::Path;

use pace_games::config::plain_reason;
use pace_games::{AnyGame, GameError, Split, find_game};
use pace_learn::{TrainConfig, TrainPreset, find_method};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::conservative;
use crate::error::LabError;
use crate::run_folder::RunView;

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
    /// What the budgets were multiplied with; 1 for a run in earnest, less for a rehearsal.
    #[serde(default = "in_earnest", skip_serializing_if = "is_in_earnest")]
    pub scale: f64,
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
    /// What the budgets that come of all this are multiplied with.
    pub scale: f64,
}

fn in_earnest() -> f64 {
    1.0
}

fn is_in_earnest(scale: &f64) -> bool {
    *scale == 1.0
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
            scale: 1.0,
            game_keys: keys_of(&*entry.open(preset.of_game(), &preset.game_keys(entry.id))?),
            train,
        };
        if let Some((name, text)) = request.file {
            let keys: Map<String, Value> =
                toml::from_str(text).map_err(|error| not_toml(name, text, &error))?;
            config.set(&keys)?;
        }
        config.set(&request.overrides)?;
        config.rescale(request.scale)?;
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

    /// Multiplies everything that is counted in steps of training. Nothing that was there vanishes.
    fn rescale(&mut self, scale: f64) -> Result<(), GameError> {
        if !(scale > 0.0 && scale <= 1.0) {
            return Err(GameError::bad_value("scale", &scale, "a number above 0, and at most 1"));
        }
        let rescaled = |steps: u64| if scale == 1.0 { steps } else { (steps as f64 * scale).ceil() as u64 };
        self.scale = scale;
        self.train.total_steps = rescaled(self.train.total_steps);
        self.train.warm_up_steps = rescaled(self.train.warm_up_steps);
        self.train.exploration_decay_steps = rescaled(self.train.exploration_decay_steps);
        if let Some(gscu) = &mut self.train.gscu {
            gscu.embedding_steps = rescaled(gscu.embedding_steps);
        }
        Ok(())
    }

    /// Names the run whose agent this one falls back on.
    pub fn fall_back_on(&mut self, folder: &str) -> Result<(), GameError> {
        self.set(&Map::from_iter([("gscu.conservative_run".to_owned(), json!(folder))]))
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

    /// The keys of a run, from its `config.toml`.
    pub fn of_run(view: &RunView) -> Result<RunConfig, LabError> {
        let file = view.path().join("config.toml").display().to_string();
        RunConfig::from_toml(&file, &view.config()?)
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

    /// A hash of all keys, for the run in this folder: two runs with the same hash are the same run. The run that it falls
    /// back on counts with its id, so that the hash does not depend on where the folders lie.
    pub fn hash_of_run(&self, run: &Path) -> Result<String, LabError> {
        let mut config = self.clone();
        if let Some(id) = self.fallback_id(run)? {
            config.fall_back_on(&id)?;
        }
        Ok(blake3::hash(config.to_toml().as_bytes()).to_hex()[..16].to_owned())
    }

    /// By what a run is recognised wherever its folder lies, also one that was written down before some key could be
    /// chosen: a hash of all keys of today that change anything, and of the id, not the folder, of the run that it falls
    /// back on.
    pub fn id(&self) -> Result<String, GameError> {
        match self.train.conservative_run() {
            Some(folder) => self.id_falling_back_on(id_in_name(folder).unwrap_or(folder)),
            None => self.id_of_keys(),
        }
    }

    /// The id of the run in this folder.
    pub fn id_of_run(&self, run: &Path) -> Result<String, LabError> {
        match self.fallback_id(run)? {
            Some(id) => Ok(self.id_falling_back_on(&id)?),
            None => Ok(self.id_of_keys()?),
        }
    }

    /// The id of the run that the one in this folder falls back on, if it does. It comes from the copy in the folder: a name
    /// has the id of the day on which it was given, and other keys have been added since.
    fn fallback_id(&self, run: &Path) -> Result<Option<String>, LabError> {
        let Some(named) = self.train.conservative_run() else { return Ok(None) };
        let kept = conservative::kept_id(run)?;
        Ok(Some(kept.unwrap_or_else(|| id_in_name(named).unwrap_or(named).to_owned())))
    }

    /// The same where the run that this one falls back on has this id, whatever its folder is called.
    pub fn id_falling_back_on(&self, id: &str) -> Result<String, GameError> {
        let mut config = self.clone();
        config.fall_back_on(id)?;
        config.id_of_keys()
    }

    fn id_of_keys(&self) -> Result<String, GameError> {
        let mut config = self.clone();
        config.game_keys = keys_of(&*config.open_game()?);
        config.train.settle_idle_keys();
        Ok(blake3::hash(config.to_toml().as_bytes()).to_hex()[..ID_DIGITS].to_owned())
    }

    /// The name of the run's folder in a lab: what it is, and its id.
    pub fn folder_name(&self) -> Result<String, GameError> {
        let RunConfig { game, method, preset, seed, .. } = self;
        Ok(format!("{game}-{method}-{}-s{seed}-{}", preset.name(), self.id()?))
    }
}

const ID_DIGITS: usize = 12;

/// The id at the end of the name of a run folder, where it has one.
fn id_in_name(folder: &str) -> Option<&str> {
    let (_, id) = folder.trim_end_matches(['/', '\\']).rsplit_once('-')?;
    let is_id = id.len() == ID_DIGITS && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then_some(id)
}

/// What the reader of TOML has to say, on one line.
pub(crate) fn not_toml(file: &str, text: &str, error: &toml::de::Error) -> LabError {
    let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
    let reason = plain_reason(error.message());
    LabError::BadConfig { file: file.to_owned(), reason: format!("line {line}: {reason}") }
}

fn keys_of(game: &dyn AnyGame) -> Map<String, Value> {
    match game.config() {
        Value::Object(keys) => keys,
        other => panic!("keys of a game are a map, found {other}"),
    }
}
