//! The agent of a run's newest checkpoint, with the game it was trained on.

use pace_games::AnyGame;
use pace_learn::{Agent, MODEL_FILE, RunConfig};

use crate::checkpoint::{Checkpoint, CheckpointLimits, folder_of_step};
use crate::error::LabError;
use crate::fallback_agent::FallbackAgent;
use crate::manifest::RunStatus;
use crate::run_folder::{CHECKPOINTS, RunView};
use crate::training::check_revision;

/// The agent of a run's newest valid checkpoint.
pub struct TrainedAgent {
    /// The agent.
    pub agent: Agent,
    /// The game of its training, with the same keys.
    pub game: Box<dyn AnyGame>,
    /// The configuration of the run.
    pub config: RunConfig,
    /// Training steps (ego decisions) of the checkpoint.
    pub steps: u64,
    /// A hash of its weights, which differs after more training of the same run.
    pub fingerprint: String,
}

impl TrainedAgent {
    /// Loads the agent from a run folder, even while the run is in training.
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

/// Loads the newest valid checkpoint of a run. An error says why there is none, or that it is not the recorded one.
pub(crate) fn newest_checkpoint(view: &RunView) -> Result<Checkpoint, LabError> {
    let reader = view.checkpoints(CheckpointLimits::default());
    if let Some(newest) = reader.load_newest_valid()? {
        view.manifest()?.check_weights(view.path(), &weights_file(newest.step), newest.file(MODEL_FILE)?)?;
        return Ok(newest);
    }
    refuse_lost_checkpoints(view)?;
    Err(LabError::NoCheckpoint { path: view.path().to_owned() })
}

/// The path of the weights of a checkpoint in its run folder.
pub(crate) fn weights_file(step: u64) -> String {
    format!("{CHECKPOINTS}/{}/{MODEL_FILE}", folder_of_step(step))
}

/// Rejects a recorded run, which has no optimiser state, and a run that has lost its checkpoints.
pub fn refuse_to_resume(view: &RunView) -> Result<(), LabError> {
    if view.manifest()?.is_recorded() {
        return Err(LabError::RecordedRun { path: view.path().to_owned() });
    }
    refuse_lost_checkpoints(view)
}

/// Rejects a run that was trained past its first checkpoint but has no checkpoints, such as a copy of its records. Training it
/// again in its folder would overwrite these records.
fn refuse_lost_checkpoints(view: &RunView) -> Result<(), LabError> {
    let config = view.run_config()?;
    // The rows are read before the checkpoints: a process that trains the run saves its first checkpoint before it exceeds the
    // number of rows below.
    let (manifest, rows) = (view.manifest()?, view.metrics()?);
    if !view.checkpoints(CheckpointLimits::default()).steps()?.is_empty() {
        return Ok(());
    }
    let has_lost_them = match manifest.status {
        RunStatus::Finished => true,
        // A stopped run with at least one iteration has saved a checkpoint.
        RunStatus::Stopped => !rows.is_empty(),
        // A run that was killed before its first checkpoint has at most this many rows.
        RunStatus::Running | RunStatus::Failed => rows.len() > config.train.checkpoint_every,
    };
    if has_lost_them {
        let steps = rows.last().map_or(0, |row| row.step);
        return Err(LabError::LostCheckpoints { path: view.path().to_owned(), steps });
    }
    Ok(())
}
