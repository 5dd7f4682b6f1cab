//! The keys of a run under a preset, by game and method.
//!
//! The values are data: the general defaults in `training.toml` next to this file, then the `training.toml` in the game's folder
//! ([`pace_games::Game::TRAINING`]). The head of the general file describes the format of both.

use std::collections::BTreeMap;

use pace_games::config::{override_keys, plain_reason};
use pace_games::old_names::with_current_names;
use pace_games::{AnyGame, ConfigError, GameEntry, Preset, Split};
use serde_json::{Map, Value};

use crate::config::TrainConfig;
use crate::methods::{METHODS, Method};

const GENERAL: &str = include_str!("training.toml");

/// Resolves the game keys and the training keys of a method under a preset. A game without a `training.toml` has the general
/// defaults.
pub fn resolve(
    game: &GameEntry,
    method: &Method,
    preset: Preset,
) -> Result<(Map<String, Value>, TrainConfig), ConfigError> {
    resolve_with(game, game.training, method, preset)
}

fn resolve_with(
    game: &GameEntry,
    training: &str,
    method: &Method,
    preset: Preset,
) -> Result<(Map<String, Value>, TrainConfig), ConfigError> {
    let general = TrainingFile::read("the general training.toml".to_owned(), GENERAL)?;
    let own = read_training_file(game, training)?;
    let mut keys = (keys_of_game(&*game.open(preset, &Map::new())?), general.complete());
    // The keys of every preset, then those of this one.
    let layers: &[Preset] = if preset == Preset::Paper { &[Preset::Paper] } else { &[Preset::Paper, preset] };
    for layer in layers {
        general.set(&[layer.name()], &mut keys)?;
        own.set(&[layer.name()], &mut keys)?;
    }
    method.adjust(&mut keys.1);
    for layer in layers {
        own.set(&[method.id, layer.name()], &mut keys)?;
    }
    let game_keys = keys_of_game(&*game.open(preset, &keys.0)?);
    Ok((game_keys, keys.1))
}

/// The peer pool with whose scores the keys of a preset were chosen for a game. `None` if they were not chosen by scores: those
/// of the paper and of the authors' code, and the general defaults.
pub fn chosen_on(game: &GameEntry, preset: Preset) -> Result<Option<Split>, ConfigError> {
    let mut training = read_training_file(game, game.training)?;
    Ok(training.chosen_on.remove(preset.name()))
}

/// The key of a preset's section that names the pool with which its keys were chosen. It is not a key of a run.
const CHOSEN_ON: &str = "chosen_on";

/// A `training.toml`: keys by section, and the pools with which the keys of presets were chosen.
struct TrainingFile {
    file: String,
    sections: BTreeMap<String, Map<String, Value>>,
    chosen_on: BTreeMap<String, Split>,
}

fn read_training_file(game: &GameEntry, training: &str) -> Result<TrainingFile, ConfigError> {
    TrainingFile::read(format!("training.toml of {}", game.id), training)
}

impl TrainingFile {
    fn read(file: String, text: &str) -> Result<TrainingFile, ConfigError> {
        let sections: BTreeMap<String, Map<String, Value>> =
            toml::from_str(text).map_err(|error| not_toml(&file, text, &error))?;
        let mut training = TrainingFile { file, sections, chosen_on: BTreeMap::new() };
        let presets = Preset::ALL.map(Preset::name);
        for preset in presets {
            training.take_chosen_on(preset)?;
        }
        let methods = METHODS.iter().map(|method| method.id);
        for (name, section) in &training.sections {
            if presets.contains(&&name[..]) {
                continue;
            }
            let unknown = if methods.clone().any(|method| method == name) {
                section.keys().find(|key| !presets.contains(&&key[..]))
            } else {
                Some(name)
            };
            if let Some(unknown) = unknown {
                let known = presets.into_iter().chain(methods);
                return Err(training.name_file(&ConfigError::unknown("section", unknown, known)));
            }
        }
        Ok(training)
    }

    /// Moves [`CHOSEN_ON`] out of the keys of a preset.
    fn take_chosen_on(&mut self, preset: &str) -> Result<(), ConfigError> {
        let Some(pool) = self.sections.get_mut(preset).and_then(|section| section.remove(CHOSEN_ON)) else {
            return Ok(());
        };
        let pool = pool.as_str().map_or_else(|| pool.to_string(), str::to_owned);
        let split = pool.parse::<Split>().map_err(|error| self.name_file(&error))?;
        self.chosen_on.insert(preset.to_owned(), split);
        Ok(())
    }

    /// Returns the training keys of section `paper`, which must have all of them.
    fn complete(&self) -> TrainConfig {
        let keys = self.sections["paper"].clone();
        serde_json::from_value(Value::Object(keys)).expect("the general defaults have every training key")
    }

    /// Sets the keys of a section, if the file has that section.
    fn set(
        &self,
        path: &[&str],
        (game_keys, train): &mut (Map<String, Value>, TrainConfig),
    ) -> Result<(), ConfigError> {
        let section = match path {
            [preset] => self.sections.get(*preset),
            [method, preset] => {
                self.sections.get(*method).and_then(|section| section.get(*preset)?.as_object())
            }
            _ => None,
        };
        let Some(section) = section else { return Ok(()) };
        set_keys(game_keys, train, section).map_err(|error| self.name_file(&error))
    }

    /// Adds the name of this file to an error.
    fn name_file(&self, error: &ConfigError) -> ConfigError {
        ConfigError::BadFile { file: self.file.clone(), reason: error.to_string() }
    }
}

/// Sets game keys and training keys, whose names do not overlap. The values of game keys are checked when the game is opened.
pub(crate) fn set_keys(
    game_keys: &mut Map<String, Value>,
    train: &mut TrainConfig,
    keys: &Map<String, Value>,
) -> Result<(), ConfigError> {
    let known = keys_of_training(train);
    let mut training_keys = Map::new();
    for (key, value) in with_current_names(keys, Some(&known_keys(game_keys, train)))? {
        let section = key.split_once('.').map_or(key.as_str(), |(section, _)| section);
        if known.contains_key(section) {
            training_keys.insert(key, value);
        } else if game_keys.contains_key(&key) {
            game_keys.insert(key, value);
        } else {
            let all = known.keys().chain(game_keys.keys()).map(String::as_str);
            return Err(ConfigError::unknown("key", &key, all));
        }
    }
    *train = override_keys(train, &training_keys)?;
    Ok(())
}

/// Returns the game keys and the training keys of a run together.
pub(crate) fn known_keys(game_keys: &Map<String, Value>, train: &TrainConfig) -> Map<String, Value> {
    let mut known = keys_of_training(train);
    known.extend(game_keys.clone());
    known
}

pub(crate) fn keys_of_training(train: &TrainConfig) -> Map<String, Value> {
    match serde_json::to_value(train) {
        Ok(Value::Object(keys)) => keys,
        _ => panic!("training keys are a map"),
    }
}

pub(crate) fn keys_of_game(game: &dyn AnyGame) -> Map<String, Value> {
    match game.config() {
        Value::Object(keys) => keys,
        other => panic!("game keys are a map, found {other}"),
    }
}

/// Creates the error for an invalid TOML file, with the line number.
pub fn not_toml(file: &str, text: &str, error: &toml::de::Error) -> ConfigError {
    let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
    let reason = plain_reason(error.message());
    ConfigError::BadFile { file: file.to_owned(), reason: format!("line {line}: {reason}") }
}

/// Returns the training keys of a game and a method under preset `paper`.
#[cfg(test)]
pub(crate) fn paper_keys(game: &str, method: &str) -> TrainConfig {
    let game = pace_games::find_game(game).expect("a game");
    let method = crate::methods::find_method(method).expect("a method");
    resolve(game, method, Preset::Paper).expect("good presets").1
}

#[cfg(test)]
mod tests {
    use pace_games::{GAMES, Preset, Split};

    use super::{chosen_on, keys_of_training, read_training_file, resolve_with};
    use crate::config::IdentifierTarget;
    use crate::methods::{METHODS, find_method};

    #[test]
    fn a_game_without_training_keys_has_the_general_defaults() {
        for preset in Preset::ALL {
            for method in METHODS {
                let resolved = GAMES.iter().map(|entry| resolve_with(entry, "", method, preset));
                let train: Vec<_> = resolved.map(|keys| keys.expect("good keys").1).collect();
                assert!(train.windows(2).all(|pair| pair[0] == pair[1]), "{}", method.id);
                train[0].check().expect("good keys");
                // A game may have no traits.
                assert_eq!(train[0].identifier_target, IdentifierTarget::Classes);
                if method.id == "pace" && preset == Preset::Paper {
                    let general: toml::Table = super::GENERAL.parse().expect("TOML");
                    let names: Vec<&String> = general["paper"].as_table().expect("keys").keys().collect();
                    let all = keys_of_training(&train[0]);
                    assert!(
                        all.keys().all(|key| names.contains(&key)),
                        "the general defaults have every key"
                    );
                }
            }
        }
    }

    #[test]
    fn sections_are_applied_in_their_order() {
        let text = "[paper]\nepochs = 2\nminibatches = 3\nepisodes_per_encounter = 7\n[best]\nepochs = 4\n\
                    [gscu.paper]\nepochs = 5\ngscu.belief_steps = 6\n[gscu.best]\ngscu.belief_steps = 8\n";
        let keys = |method: usize, preset| {
            let (game, train) = resolve_with(&GAMES[0], text, &METHODS[method], preset).expect("good keys");
            let belief_steps = train.gscu.map(|gscu| gscu.belief_steps);
            (game["episodes_per_encounter"].as_u64(), train.epochs, train.minibatches, belief_steps)
        };
        let gscu = METHODS.iter().position(|method| method.id == "gscu").expect("a method");
        assert_eq!(keys(0, Preset::Paper), (Some(7), 2, 3, None));
        assert_eq!(keys(0, Preset::Reference), (Some(7), 2, 3, None));
        assert_eq!(keys(0, Preset::Best), (Some(7), 4, 3, None));
        assert_eq!(keys(gscu, Preset::Paper), (Some(7), 5, 3, Some(6)));
        assert_eq!(keys(gscu, Preset::Best), (Some(7), 5, 3, Some(8)));
    }

    #[test]
    fn the_pool_of_a_choice_is_not_a_key_of_a_run() {
        let resolved = |text: &str| resolve_with(&GAMES[0], text, &METHODS[0], Preset::Best);
        let chosen = "[best]\nchosen_on = \"validation\"\nepochs = 4\n";
        assert_eq!(
            resolved(chosen).expect("good keys"),
            resolved("[best]\nepochs = 4\n").expect("good keys")
        );
        let training = read_training_file(&GAMES[0], chosen).expect("a good file");
        assert_eq!(
            training.chosen_on.into_iter().collect::<Vec<_>>(),
            [("best".to_owned(), Split::Validation)]
        );
        for game in GAMES {
            for preset in Preset::RULES {
                assert_eq!(chosen_on(game, preset).expect("a good file"), None, "{}", game.id);
            }
            let best = chosen_on(game, Preset::Best).expect("a good file");
            assert!(
                best.is_some(),
                "{}: its `training.toml` must name the pool with which `best` was chosen",
                game.id
            );
        }
    }

    #[test]
    fn an_error_in_training_keys_names_the_file() {
        let game = &GAMES[0];
        let gscu = find_method("gscu").expect("a method");
        for (text, words) in [
            ("[papers]\n", "unknown section \"papers\""),
            ("[gscu.papers]\n", "unknown section \"papers\""),
            ("[paper]\nepoch = 1\n", "unknown key \"epoch\""),
            ("[paper]\nepochs = \"many\"\n", "key `epochs`"),
            ("[paper]\nepochs = \n", "line 2"),
            ("epochs = 1\n", "line 1"),
            ("[best]\nchosen_on = \"tests\"\n", "unknown pool \"tests\""),
            ("[best]\nchosen_on = 1\n", "unknown pool \"1\""),
            ("[gscu.paper]\nchosen_on = \"test\"\n", "unknown key \"chosen_on\""),
        ] {
            let error = resolve_with(game, text, gscu, Preset::Paper).expect_err("refused").to_string();
            assert!(error.starts_with(&format!("training.toml of {}: ", game.id)), "{error}");
            assert!(error.contains(words), "{error}");
        }
    }
}
