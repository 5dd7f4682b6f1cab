//! The agent that a run has trained so far, with the game it plays.

use pace_games::AnyGame;
use pace_learn::{Agent, MODEL_FILE, RunConfig};

use crate::checkpoint::{Checkpoint, CheckpointLimits};
use crate::error::LabError;
use crate::fallback_agent::FallbackAgent;
use crate::manifest::RunStatus;
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
        let config = view.run_config()?;
        let game = config.open_game()?;
        check_revision(&view.manifest()?, &*game)?;
        let checkpoint = newest_checkpoint(view)?;
        let model = checkpoint.file(MODEL_FILE)?;
        let policy = FallbackAgent::of(&config, view.path())?.map(|found| found.policy()).transpose()?;
        let agent = config.agent(policy.as_ref(), model)?;
        let fingerprint = blake3::hash(model).to_hex()[..16].to_owned();
        Ok(TrainedAgent { agent, game, config, steps: checkpoint.step, fingerprint })
    }
}

/// The newest checkpoint of a run that is whole, or why there is none.
pub(crate) fn newest_checkpoint(view: &RunView) -> Result<Checkpoint, LabError> {
    if let Some(newest) = view.checkpoints(CheckpointLimits::default()).load_newest_valid()? {
        return Ok(newest);
    }
    refuse_lost_checkpoints(view)?;
    Err(LabError::NoCheckpoint { path: view.path().to_owned() })
}

/// Refuses a run that was trained past its first checkpoint and has none: a copy of its records. To train it again in its
/// folder would overwrite them.
pub fn refuse_lost_checkpoints(view: &RunView) -> Result<(), LabError> {
    let config = view.run_config()?;
    // In this order: a process that trains the run meanwhile writes a checkpoint before the rows that ask for one.
    let (manifest, rows) = (view.manifest()?, view.metrics()?);
    if !view.checkpoints(CheckpointLimits::default()).steps()?.is_empty() {
        return Ok(());
    }
    let has_lost_them = match manifest.status {
        RunStatus::Finished => true,
        // A run is saved when it stops, if it did anything.
        RunStatus::Stopped => !rows.is_empty(),
        // Killed before its first checkpoint, it has at most the rows until then.
        RunStatus::Running | RunStatus::Failed => rows.len() > config.train.checkpoint_every,
    };
    if has_lost_them {
        let steps = rows.last().map_or(0, |row| row.step);
        return Err(LabError::LostCheckpoints { path: view.path().to_owned(), steps });
    }
    Ok(())
}
