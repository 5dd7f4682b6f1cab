//! `config.toml` of a run folder, and the id of the run in it.

use std::path::Path;

use pace_learn::RunConfig;

use crate::error::LabError;
use crate::fallback_agent;
use crate::run_folder::RunView;

impl RunView {
    /// The keys of the run, from its `config.toml`.
    pub fn run_config(&self) -> Result<RunConfig, LabError> {
        let file = self.path().join("config.toml").display().to_string();
        Ok(RunConfig::from_toml(&file, &self.config()?)?)
    }
}

/// A hash of all keys of the run in this folder: two runs with the same hash are the same run. The hash includes the id of a
/// fallback run instead of its folder, so it does not depend on paths.
pub fn hash_of_run(config: &RunConfig, run: &Path) -> Result<String, LabError> {
    let mut config = config.clone();
    if let Some(id) = fallback_id(&config, run)? {
        config.set_fallback_run(&id)?;
    }
    Ok(config.hash())
}

/// The id of the run in this folder; see [`RunConfig::id`].
pub fn id_of_run(config: &RunConfig, run: &Path) -> Result<String, LabError> {
    match fallback_id(config, run)? {
        Some(id) => Ok(config.id_falling_back_on(&id)?),
        None => Ok(config.id()?),
    }
}

/// The id of the fallback run of the run in this folder, from the copy in the folder if there is one. The id in the name of
/// the fallback run's folder may be outdated, because new keys change ids.
fn fallback_id(config: &RunConfig, run: &Path) -> Result<Option<String>, LabError> {
    let Some(named) = config.fallback_named() else { return Ok(None) };
    Ok(Some(fallback_agent::kept_id(run)?.unwrap_or_else(|| named.to_owned())))
}
