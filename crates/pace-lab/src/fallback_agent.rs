//! The agent of another run that a run uses as fallback policy. The run folder has a copy, so that it needs no other folder.

use std::path::Path;

use pace_games::ConfigError;
use pace_learn::{MODEL_FILE, Need, Policy, RunConfig};

use crate::durable::{self, STAGED};
use crate::error::LabError;
use crate::run_folder::RunView;
use crate::trained_agent::newest_checkpoint;
use crate::training::check_revision;

/// The folder of the copy in a run folder. It is written before the manifest, so every run that needs a copy has one.
pub(crate) const FOLDER: &str = "conservative";
const CONFIG: &str = "config.toml";

/// Size limit of the weights, far above the size of any policy of these games.
const MAX_BYTES: u64 = 1 << 30;

/// The keys and weights of a fallback agent.
pub(crate) struct FallbackAgent {
    config: RunConfig,
    model: Vec<u8>,
}

impl FallbackAgent {
    /// Loads the fallback agent of a run, if its keys ask for one: the copy in its folder, or else the run that the keys name.
    pub(crate) fn of(config: &RunConfig, run: &Path) -> Result<Option<FallbackAgent>, LabError> {
        let kept = run.join(FOLDER);
        if config.need().is_some() && kept.is_dir() {
            let found = FallbackAgent::read(&kept)?;
            let manifest = RunView::open(run)?.manifest()?;
            manifest.check_weights(run, &format!("{FOLDER}/{MODEL_FILE}"), &found.model)?;
            return Ok(Some(found));
        }
        FallbackAgent::named(config)
    }

    /// Loads the agent of the run that these keys name.
    pub(crate) fn named(config: &RunConfig) -> Result<Option<FallbackAgent>, LabError> {
        let Some(Need { key, run: named, .. }) = config.need() else { return Ok(None) };
        // The learner reports an empty name, because it knows the alternatives.
        if named.is_empty() {
            return Ok(None);
        }
        let found = FallbackAgent::of_run(Path::new(named))?;
        if found.config.game != config.game {
            let expected = format!("a run of {}; that one plays {}", config.game, found.config.game);
            return Err(ConfigError::bad_value(key, &named, &expected).into());
        }
        Ok(Some(found))
    }

    fn of_run(folder: &Path) -> Result<FallbackAgent, LabError> {
        let view = RunView::open(folder)?;
        let config = view.run_config()?;
        check_revision(&view.manifest()?, &*config.open_game()?)?;
        let checkpoint = newest_checkpoint(&view)?;
        Ok(FallbackAgent { config, model: checkpoint.file(MODEL_FILE)?.to_vec() })
    }

    fn read(kept: &Path) -> Result<FallbackAgent, LabError> {
        let (config, model) = (read_config(kept)?, kept.join(MODEL_FILE));
        let model = durable::read_capped(&model, MAX_BYTES)?.ok_or_else(|| LabError::BadConfig {
            file: model.display().to_string(),
            reason: format!("larger than {MAX_BYTES} bytes; expected the weights of an agent"),
        })?;
        Ok(FallbackAgent { config, model })
    }

    /// Writes the copy into a run folder atomically, unless it has one.
    pub(crate) fn keep(&self, run: &Path) -> Result<(), LabError> {
        if run.join(FOLDER).is_dir() {
            return Ok(());
        }
        let staged = run.join(format!("{STAGED}{FOLDER}"));
        let [config, model] = self.files();
        durable::write_folder(&staged, &[(config.0, &config.1), (model.0, &model.1)])?;
        durable::rename(&staged, &run.join(FOLDER))?;
        durable::sync_folder(run)
    }

    /// Names and contents of the files of the copy.
    pub(crate) fn files(&self) -> [(&'static str, Vec<u8>); 2] {
        [(CONFIG, self.config.to_toml().into_bytes()), (MODEL_FILE, self.model.clone())]
    }

    /// The keys of the agent's run.
    pub(crate) fn config(&self) -> &RunConfig {
        &self.config
    }

    pub(crate) fn policy(&self) -> Result<Policy, LabError> {
        Ok(Policy::of(&self.config.agent(None, &self.model)?)?)
    }
}

/// The run id of the copy in a run folder; `None` if there is no copy.
pub(crate) fn kept_id(run: &Path) -> Result<Option<String>, LabError> {
    let kept = run.join(FOLDER);
    if !kept.is_dir() {
        return Ok(None);
    }
    Ok(Some(read_config(&kept)?.id()?))
}

/// Whether a folder contains only such a copy, or a part of one.
pub(crate) fn is_copy(folder: &Path) -> bool {
    let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name() == CONFIG || entry.file_name() == MODEL_FILE)
    };
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_ours))
}

fn read_config(kept: &Path) -> Result<RunConfig, LabError> {
    let file = kept.join(CONFIG);
    Ok(RunConfig::from_toml(&file.display().to_string(), &durable::read_text(&file)?)?)
}
