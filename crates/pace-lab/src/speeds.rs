//! Training and evaluation speeds, for time estimates. Training speeds come from finished runs of the lab if there are any,
//! otherwise from `experiments/speeds.toml`, like all evaluation speeds.

use std::collections::BTreeMap;
use std::path::Path;

use pace_games::Split;
use pace_learn::RunConfig;
use serde::Deserialize;

use crate::experiment::ExperimentEvaluation;
use crate::manifest::RunStatus;
use crate::plan::runs_folder;
use crate::run_folder::RunView;

/// The speed table of the repository.
const TABLE: &str = include_str!("../../../experiments/speeds.toml");

/// A training speed and its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Ego decisions per second.
    pub per_second: f64,
    /// Whether it was measured in finished runs of this lab.
    pub is_of_lab: bool,
}

/// The known speeds.
#[derive(Clone, Debug)]
pub struct Speeds {
    table: SpeedTable,
    /// Total steps and seconds of the finished runs of the lab, by game and method.
    of_lab: BTreeMap<(String, String), (f64, f64)>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpeedTable {
    /// The machine on which it was measured, as text.
    machine: String,
    /// Ego decisions per second of training, by game and method.
    training: BTreeMap<String, BTreeMap<String, f64>>,
    /// Episodes per second of an evaluation, including the reference agents, by game.
    evaluation: BTreeMap<String, f64>,
}

impl Speeds {
    /// Collects the speeds of a lab and of the table.
    pub fn of_lab(lab: &Path) -> Speeds {
        let mut of_lab: BTreeMap<(String, String), (f64, f64)> = BTreeMap::new();
        // An unreadable folder has no speed; `PlannedRun::state` reports the reason.
        for entry in std::fs::read_dir(runs_folder(lab)).into_iter().flatten().flatten() {
            let Some((config, secs)) = finished(&entry.path()) else { continue };
            let sums = of_lab.entry((config.game, config.method)).or_default();
            sums.0 += config.train.total_steps as f64;
            sums.1 += secs;
        }
        Speeds { table: toml::from_str(TABLE).expect("the table is tested"), of_lab }
    }

    /// The machine on which the table was measured.
    pub fn machine(&self) -> &str {
        &self.table.machine
    }

    /// The training speed of a method on a game.
    pub fn training(&self, game: &str, method: &str) -> Speed {
        if let Some((steps, secs)) = self.of_lab.get(&(game.to_owned(), method.to_owned())) {
            return Speed { per_second: steps / secs, is_of_lab: true };
        }
        let known = self.table.training.get(game).and_then(|methods| methods.get(method));
        Speed { per_second: *known.unwrap_or(&SLOW), is_of_lab: false }
    }

    /// The estimated duration of an evaluation in seconds.
    pub(crate) fn evaluation_secs(&self, config: &RunConfig, evaluation: &ExperimentEvaluation) -> f64 {
        let Ok(game) = config.open_game_with(&evaluation.evaluation.set) else { return 0.0 };
        let n_tuples = evaluation.evaluation.pool.parse::<Split>().map_or(0, |split| game.n_tuples(split));
        let usual = game.spec().episodes_per_encounter;
        let episodes = match (evaluation.evaluation.episodes, evaluation.evaluation.switch_at) {
            (Some(episodes), _) => episodes,
            (None, Some(_)) => 2 * usual,
            (None, None) => usual,
        };
        let speed = self.table.evaluation.get(&config.game).unwrap_or(&SLOW);
        (n_tuples * evaluation.encounters * episodes) as f64 / speed
    }
}

/// The assumed speed for a game or method that is not in the table.
const SLOW: f64 = 1000.0;

/// The configuration and training time of a finished run, or `None` if the run is too short to measure a speed.
fn finished(folder: &Path) -> Option<(RunConfig, f64)> {
    let view = RunView::open(folder).ok()?;
    let manifest = view.manifest().ok()?;
    let config = RunConfig::from_toml("config.toml", &view.config().ok()?).ok()?;
    // A recorded run may have been trained on another machine.
    let is_telling =
        manifest.status == RunStatus::Finished && !manifest.is_recorded() && manifest.wall_clock_secs >= 5.0;
    is_telling.then_some((config, manifest.wall_clock_secs))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pace_games::GAMES;
    use pace_learn::METHODS;

    use super::Speeds;

    #[test]
    fn the_table_has_every_game_and_method() {
        let speeds = Speeds::of_lab(Path::new("nowhere"));
        for game in GAMES {
            assert!(speeds.table.evaluation[game.id] > 0.0, "{}", game.id);
            for method in METHODS {
                let known = speeds.table.training.get(game.id).and_then(|methods| methods.get(method.id));
                assert!(known.is_some_and(|speed| *speed > 0.0), "{} {}", game.id, method.id);
            }
        }
    }
}
