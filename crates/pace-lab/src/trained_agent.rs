//! The agent that a run has trained so far, with the game it plays.

use pace_games::AnyGame;
use pace_learn::{Agent, MODEL_FILE, find_method};

use crate::checkpoint::CheckpointLimits;
use crate::conservative::Conservative;
use crate::error::LabError;
use crate::run_config::RunConfig;
use crate::run_folder::RunView;
use crate::training::check_revision;

/// The agent of a run's newest checkpoint that is whole.
pub struct TrainedAgent {
    /// The agent.
    pub agent: Agent,
    /// The game it was trained on, under the same keys.
    pub game: Box<dyn AnyGame>,
    /// The choices of the run.
    pub config: RunConfig,
    /// Ego decisions it was trained for.
    pub steps: u64,
    /// A hash of its weights: tells it from the same run's agent after more training.
    pub fingerprint: String,
}

impl TrainedAgent {
    /// Reads it from a run folder, whether or not the run goes on meanwhile.
    pub fn load(view: &RunView) -> Result<TrainedAgent, LabError> {
        let file = view.path().join("config.toml").display().to_string();
        let config = RunConfig::from_toml(&file, &view.config()?)?;
        let game = config.open_game()?;
        check_revision(&view.manifest()?, &*game)?;
        let checkpoint = view
            .checkpoints(CheckpointLimits::default())
            .load_newest_valid()?
            .ok_or_else(|| LabError::NoCheckpoint { path: view.path().to_owned() })?;
        let method = find_method(&config.method)?;
        let model = checkpoint.file(MODEL_FILE)?;
        let policy = Conservative::of(&config, view.path())?.map(|found| found.policy()).transpose()?;
        let agent = Agent::with_conservative(method, &*game, &config.train, policy.as_ref(), model)?;
        let fingerprint = blake3::hash(model).to_hex()[..16].to_owned();
        Ok(TrainedAgent { agent, game, config, steps: checkpoint.step, fingerprint })
    }
}
