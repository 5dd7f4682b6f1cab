//! The keys of a run: resolved from a preset, a file and single keys, written as TOML, and used to open a game, a trainer and an
//! agent. This module accesses no files; `pace-lab` stores the text as `config.toml`.

use pace_games::old_names::{read_with_old_names, with_current_names};
use pace_games::{AnyGame, ConfigError, Preset, Split, find_game};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::config::TrainConfig;
use crate::methods::{Need, find_method};
use crate::policy::Policy;
use crate::preset::{keys_of_game, keys_of_training, known_keys, not_toml, resolve, set_keys};
use crate::train::{TrainError, Trainer};

/// All keys of a run. The same `RunConfig` and the same build produce the same run, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// The game's id.
    pub game: String,
    /// The method's id.
    pub method: String,
    /// The preset with the default keys.
    pub preset: Preset,
    /// The random seed.
    pub seed: u64,
    /// The factor applied to the step budgets: 1 for the full budget, less for a quick trial.
    #[serde(default = "full_budget", skip_serializing_if = "is_full_budget")]
    pub scale: f64,
    /// The game keys.
    pub game_keys: Map<String, Value>,
    /// The training keys.
    #[serde(deserialize_with = "read_with_old_names")]
    pub train: TrainConfig,
}

/// A request for a run: a preset, then a file, then single keys. Later keys override earlier ones.
#[derive(Clone, Debug)]
pub struct RunRequest<'a> {
    /// The game's id.
    pub game: &'a str,
    /// The method's id.
    pub method: &'a str,
    /// The preset's name.
    pub preset: &'a str,
    /// The random seed.
    pub seed: u64,
    /// The name and text of a TOML file with game keys and training keys at its top level.
    pub file: Option<(&'a str, &'a str)>,
    /// Single keys.
    pub overrides: Map<String, Value>,
    /// The factor for the resulting step budgets.
    pub scale: f64,
}

fn full_budget() -> f64 {
    1.0
}

fn is_full_budget(scale: &f64) -> bool {
    *scale == 1.0
}

impl RunConfig {
    /// Resolves every key. An error names the wrong key.
    pub fn resolve(request: &RunRequest<'_>) -> Result<RunConfig, ConfigError> {
        let entry = find_game(request.game)?;
        let method = find_method(request.method)?;
        let preset = request.preset.parse::<Preset>()?;
        let (game_keys, train) = resolve(entry, method, preset)?;
        let mut config = RunConfig {
            game: entry.id.to_owned(),
            method: method.id.to_owned(),
            preset,
            seed: request.seed,
            scale: 1.0,
            game_keys,
            train,
        };
        if let Some((name, text)) = request.file {
            let keys: Map<String, Value> =
                toml::from_str(text).map_err(|error| not_toml(name, text, &error))?;
            config.set(&keys)?;
        }
        config.set(&request.overrides)?;
        config.rescale(request.scale)?;
        config.game_keys = keys_of_game(&*config.check()?);
        Ok(config)
    }

    /// Sets game keys and training keys.
    fn set(&mut self, keys: &Map<String, Value>) -> Result<(), ConfigError> {
        set_keys(&mut self.game_keys, &mut self.train, keys)?;
        // Opening the game checks its keys.
        self.open_game().map(drop)
    }

    /// Multiplies all step budgets by `scale`, rounding up, so that no budget becomes 0.
    fn rescale(&mut self, scale: f64) -> Result<(), ConfigError> {
        if !(scale > 0.0 && scale <= 1.0) {
            return Err(ConfigError::bad_value("scale", &scale, "a number above 0, and at most 1"));
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

    /// The run that this run needs, if any.
    pub fn need(&self) -> Option<Need<'_>> {
        find_method(&self.method).ok()?.need(&self.train)
    }

    /// Sets the folder of the run that this run needs. Without such a need there is no effect.
    pub fn set_fallback_run(&mut self, folder: &str) -> Result<(), ConfigError> {
        let Some(Need { key, .. }) = self.need() else { return Ok(()) };
        self.set(&Map::from_iter([(key.to_owned(), json!(folder))]))
    }

    /// Opens the game and checks that the training keys fit it.
    fn check(&self) -> Result<Box<dyn AnyGame>, ConfigError> {
        let game = self.open_game()?;
        self.train.check()?;
        self.train.training_tuples(game.n_tuples(Split::Train))?;
        Ok(game)
    }

    /// Opens the game with these keys.
    pub fn open_game(&self) -> Result<Box<dyn AnyGame>, ConfigError> {
        find_game(&self.game)?.open(self.preset, &self.game_keys)
    }

    /// Opens the game with some keys changed, to evaluate an agent that was trained with these.
    pub fn open_game_with(&self, keys: &Map<String, Value>) -> Result<Box<dyn AnyGame>, ConfigError> {
        let of_train = keys_of_training(&self.train);
        let mut game_keys = self.game_keys.clone();
        for (key, value) in with_current_names(keys, Some(&known_keys(&self.game_keys, &self.train)))? {
            if of_train.contains_key(&key) {
                return Err(ConfigError::bad_value(&key, &value, "a key of the game: training is over"));
            }
            if !game_keys.contains_key(&key) {
                return Err(ConfigError::unknown("key", &key, self.game_keys.keys().map(String::as_str)));
            }
            game_keys.insert(key, value);
        }
        find_game(&self.game)?.open(self.preset, &game_keys)
    }

    /// Creates the trainer of this run at step 0. `fallback` is the policy of its fallback run.
    pub fn trainer(&self, fallback: Option<&Policy>, n_threads: usize) -> Result<Trainer, TrainError> {
        let (method, game) = (find_method(&self.method)?, self.open_game()?);
        Trainer::with_needed(method, game, self.train.clone(), fallback, self.seed, n_threads)
    }

    /// Loads the trained agent from its weights. `fallback` is the policy of its fallback run.
    pub fn agent(&self, fallback: Option<&Policy>, model: &[u8]) -> Result<Agent, TrainError> {
        let (method, game) = (find_method(&self.method)?, self.open_game()?);
        Agent::with_needed(method, &*game, &self.train, fallback, model)
    }

    /// Writes the text of `config.toml`.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a configuration is plain data")
    }

    /// Reads the text of a `config.toml`, which may have old names of keys.
    pub fn from_toml(file: &str, text: &str) -> Result<RunConfig, ConfigError> {
        let mut config: RunConfig = toml::from_str(text).map_err(|error| not_toml(file, text, &error))?;
        let check = |config: &mut RunConfig| -> Result<(), ConfigError> {
            find_method(&config.method)?;
            let current = keys_of_game(&*config.check()?);
            config.game_keys = with_current_names(&config.game_keys, Some(&current))?;
            Ok(())
        };
        match check(&mut config) {
            Ok(()) => Ok(config),
            // The error is in the file, not on the command line.
            Err(error) => Err(ConfigError::BadFile { file: file.to_owned(), reason: error.to_string() }),
        }
    }

    /// Computes the id of the run: a hash of all keys that have an effect, under their current names. The id does not depend on
    /// the run's folder, on the names in its `config.toml`, or on keys that were added since the run was recorded. The key of a
    /// fallback run is replaced by that run's id, read from the end of its folder's name. `pace_lab::id_of_run` reads it from
    /// the copy in the run folder instead.
    pub fn id(&self) -> Result<String, ConfigError> {
        match self.fallback_named() {
            Some(id) => self.id_falling_back_on(id),
            None => self.id_of_keys(),
        }
    }

    /// The id of the fallback run at the end of its folder's name, or the whole name if it has no id.
    pub fn fallback_named(&self) -> Option<&str> {
        let folder = self.need()?.run;
        Some(id_in_name(folder).unwrap_or(folder))
    }

    /// Computes the id of this run with a given id of its fallback run.
    pub fn id_falling_back_on(&self, id: &str) -> Result<String, ConfigError> {
        let mut config = self.clone();
        config.set_fallback_run(id)?;
        config.id_of_keys()
    }

    /// Computes a hash of all keys under their current names, also of those without effect. Two runs with the same hash are the
    /// same run.
    pub fn hash(&self) -> String {
        blake3::hash(self.hashed_text().as_bytes()).to_hex()[..16].to_owned()
    }

    /// The text of `config.toml` without the keys that were added since runs were recorded, where they have the values of those runs.
    fn hashed_text(&self) -> String {
        let text = self.to_toml();
        let lines = text.lines().filter(|line| !LATER_KEYS.contains(line));
        lines.flat_map(|line| [line, "\n"]).collect()
    }

    fn id_of_keys(&self) -> Result<String, ConfigError> {
        let mut config = self.clone();
        config.game_keys = keys_of_game(&*config.open_game()?);
        config.train.normalise_unused_keys();
        Ok(blake3::hash(config.hashed_text().as_bytes()).to_hex()[..ID_DIGITS].to_owned())
    }

    /// The name of the run's folder in a lab: game, method, preset, seed and id.
    pub fn folder_name(&self) -> Result<String, ConfigError> {
        let RunConfig { game, method, preset, seed, .. } = self;
        Ok(format!("{game}-{method}-{}-s{seed}-{}", preset.name(), self.id()?))
    }
}

const ID_DIGITS: usize = 12;

/// The keys that were added since runs were recorded, as lines of `config.toml` with the values that those runs have. Ids and hashes
/// do not contain these lines, so that a new key changes no recorded id.
const LATER_KEYS: &[&str] = &[
    "action_labels = \"taken\"",
    "belief_divergence = \"sum\"",
    "belief_rows = \"shared\"",
    "belief_updates = \"after-episode\"",
    "conservative_memory = \"encounter\"",
    "encoder_dropout_in_evaluation = false",
    "latent_sampling = \"per-episode\"",
    "network = \"feed-forward\"",
    "rollout_steps = 0",
    "value_head = \"uniform\"",
    "window = 8",
];

/// The id at the end of a run folder's name, if it has one.
fn id_in_name(folder: &str) -> Option<&str> {
    let (_, id) = folder.trim_end_matches(['/', '\\']).rsplit_once('-')?;
    let is_id = id.len() == ID_DIGITS && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use pace_games::Preset;
    use serde_json::{Map, json};

    use super::{LATER_KEYS, RunConfig, RunRequest};

    #[test]
    fn later_keys_change_ids_only_with_other_values() {
        let resolved = |overrides: Map<String, serde_json::Value>| {
            let request = RunRequest {
                game: "kuhn-poker",
                method: "gscu",
                preset: Preset::Paper.name(),
                seed: 1,
                file: None,
                overrides,
                scale: 1.0,
            };
            RunConfig::resolve(&request).expect("good keys")
        };
        let plain = resolved(Map::new());
        let lines: Vec<String> = plain.to_toml().lines().map(str::to_owned).collect();
        for line in LATER_KEYS {
            assert_eq!(lines.iter().filter(|other| other == line).count(), 1, "{line}");
        }
        assert!(!plain.hashed_text().contains("latent_sampling"));
        let changed = resolved(Map::from_iter([("gscu.latent_sampling".to_owned(), json!("per-step"))]));
        assert!(changed.hashed_text().contains("latent_sampling"));
        assert_ne!(plain.id(), changed.id());
        // A window without an LSTM has no effect.
        let wide = resolved(Map::from_iter([("gscu.window".to_owned(), json!(9))]));
        assert_eq!(plain.id(), wide.id());
        assert_ne!(plain.hash(), wide.hash());
    }
}
