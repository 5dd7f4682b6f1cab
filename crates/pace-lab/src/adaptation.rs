//! Evaluation of a trained agent on a peer pool, together with the reference agents. The result is a record.

use std::collections::BTreeMap;

use pace_games::{AnyGame, ConfigError, GameSpec, PoolListing, Split, TupleListing, find_game};
use pace_learn::{AdaptConfig, Agent, ClearKeeps, Detector, RunConfig, Switch, adapt, chosen_on};
use pace_report::{
    AdaptHead, AdaptRecord, DetectorHead, DisplayNamesRecord, EpisodeRow, FormatVersion, LatentsRecord,
    PeerHead, PeerRecord, RunRecord, TrainRecord,
};
use serde_json::{Map, Value};

use crate::checkpoint::CheckpointLimits;
use crate::durable::prepare_folder;
use crate::embedding::embed;
use crate::episode_rows;
use crate::error::LabError;
use crate::records::{EMBEDDING, RECORD, write_record};
use crate::run_config::hash_of_run;
use crate::run_folder::RunView;
use crate::scripted_evaluation::ScriptedEvaluation;
use crate::trained_agent::TrainedAgent;

/// Options of an evaluation: the peer pool, the number of encounters and the conditions.
#[derive(Clone, Debug)]
pub struct AdaptOptions {
    /// The peer pool.
    pub split: Split,
    /// Encounters per peer tuple.
    pub encounters_per_tuple: usize,
    /// Episodes per encounter. Default: the game's `episodes_per_encounter`, doubled with a switch.
    pub episodes: Option<usize>,
    /// N_ctx: maximum number of episodes in the context, including the current one. Default: episodes per encounter in training.
    pub context_episodes: Option<usize>,
    /// The number of episodes after which the peers are replaced. Default: no switch.
    pub switch_at: Option<usize>,
    /// The change detector, which clears the context within an encounter.
    pub detector: Detector,
    /// The part of the context kept when it is cleared.
    pub keep_on_clear: ClearKeeps,
    /// Softmax temperature of the policy. Default: the `temperature` of the run.
    pub temperature: Option<f64>,
    /// Game keys that override those of training.
    pub game_keys: Map<String, Value>,
    /// Whether to keep the latents of one encounter per peer tuple.
    pub keep_latents: bool,
    /// Random seed of the encounters.
    pub seed: u64,
    /// The command line, for the record.
    pub command: String,
    /// Number of threads; results do not depend on it.
    pub n_threads: usize,
}

impl AdaptOptions {
    /// The plain protocol: the game as in training, and the same peers during the whole encounter.
    pub fn new(split: Split, encounters_per_tuple: usize, seed: u64, n_threads: usize) -> AdaptOptions {
        AdaptOptions {
            split,
            encounters_per_tuple,
            episodes: None,
            context_episodes: None,
            switch_at: None,
            detector: Detector::None,
            keep_on_clear: ClearKeeps::Last,
            temperature: None,
            game_keys: Map::new(),
            keep_latents: false,
            seed,
            command: String::new(),
            n_threads,
        }
    }

    /// The options of the evaluation behind a record.
    fn of_record(record: &AdaptRecord, n_threads: usize) -> Result<AdaptOptions, LabError> {
        let split = record.pool.parse::<Split>()?;
        let (detector, keep_on_clear) = match &record.detection {
            Some(detection) => (detection.detector.parse()?, detection.clear_keeps.parse()?),
            None => (Detector::None, ClearKeeps::Last),
        };
        Ok(AdaptOptions {
            episodes: Some(record.episodes),
            context_episodes: record.context_episodes,
            switch_at: record.switch.map(|switch| switch.after_episode),
            detector,
            keep_on_clear,
            temperature: record.temperature,
            game_keys: record.game_keys.clone().into_iter().collect(),
            ..AdaptOptions::new(split, record.passes, record.seed.unwrap_or(1), n_threads)
        })
    }

    /// Episodes per encounter, and their default.
    fn episodes(&self, game: &dyn AnyGame) -> Length {
        let default = game.spec().episodes_per_encounter * if self.switch_at.is_some() { 2 } else { 1 };
        Length { n: self.episodes.unwrap_or(default), default }
    }

    /// N_ctx, and its default.
    fn context_episodes(&self, trained: &dyn AnyGame) -> Length {
        let default = trained.spec().episodes_per_encounter;
        Length { n: self.context_episodes.unwrap_or(default), default }
    }

    /// The detector in the form of a record; `None` without a detector.
    fn detector_head(&self) -> Option<DetectorHead> {
        let clear_keeps = self.detector.keeps(self.keep_on_clear)?;
        Some(DetectorHead { name: self.detector.to_string(), clear_keeps: clear_keeps.to_string() })
    }

    /// The file name without extension: the pool, and every difference from the plain protocol, as in `test-switch-5-drop-0.8`.
    fn name(&self, trained: &dyn AnyGame, game: &dyn AnyGame) -> String {
        let mut name = self.split.to_string().replace(':', "-");
        for (key, value) in changed_keys(trained, game) {
            name.push_str(&format!("-{key}-{}", value.to_string().trim_matches('"')));
        }
        let given = [
            ("episodes", self.episodes(game).if_changed()),
            ("context", self.context_episodes(trained).if_changed()),
            ("switch", self.switch_at),
        ];
        for (word, n) in given.into_iter().filter_map(|(word, n)| Some((word, n?))) {
            name.push_str(&format!("-{word}-{n}"));
        }
        if self.detector != Detector::None {
            name.push_str(&format!("-{}", self.detector.to_string().replace(':', "-")));
            if self.keep_on_clear != ClearKeeps::Last {
                name.push_str(&format!("-keeps-{}", self.keep_on_clear));
            }
        }
        if let Some(temperature) = self.temperature {
            name.push_str(&format!("-temperature-{temperature}"));
        }
        // Evaluations for latents often have few encounters. They must not overwrite a record with many.
        if self.keep_latents {
            name.push_str("-latents");
        }
        name
    }

    /// The name of the files of this evaluation of a run, without extension.
    pub fn name_for(&self, config: &RunConfig) -> Result<String, LabError> {
        Ok(self.name(&*config.open_game()?, &*config.open_game_with(&self.game_keys)?))
    }
}

/// A number of episodes, and its default.
#[derive(Clone, Copy)]
struct Length {
    n: usize,
    default: usize,
}

impl Length {
    fn if_changed(self) -> Option<usize> {
        (self.n != self.default).then_some(self.n)
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct Adaptation {
    /// See [`AdaptOptions::name_for`].
    pub name: String,
    /// The record.
    pub record: AdaptRecord,
    /// The latents, if the options keep them.
    pub latents: Option<LatentsRecord>,
    /// The step of the newest checkpoint, if it is damaged and an earlier one was evaluated.
    pub skipped_checkpoint: Option<u64>,
}

impl Adaptation {
    /// Writes the record into the run folder, and the embedding of the latents if they were kept.
    pub fn save(&self, view: &RunView) -> Result<(), LabError> {
        let path = |ending: &str| view.adapt_path().join(format!("{}{ending}", self.name));
        write_record(&path(RECORD), &self.record.to_json()?)?;
        if let Some(embedding) = embed(self, &view.run_config()?)? {
            write_record(&path(EMBEDDING), &embedding.to_json()?)?;
        }
        Ok(())
    }
}

/// Evaluates the agent of a run's newest valid checkpoint. Fails before the evaluation if the run folder is not writable.
pub fn adapt_run(view: &RunView, options: &AdaptOptions) -> Result<Adaptation, LabError> {
    prepare_folder(&view.adapt_path())?;
    let newest = view.checkpoints(CheckpointLimits::default()).steps()?.last().copied();
    let TrainedAgent { agent, game, config, steps, .. } = TrainedAgent::load(view)?;
    let run = run_record(view, &config, steps)?;
    let skipped_checkpoint = newest.filter(|newest| *newest > steps);
    Ok(Adaptation { skipped_checkpoint, ..adapt_agent(&agent, &*game, &config, run, options)? })
}

/// Evaluates an agent. `trained` is the game with the keys of training, which are in `config`.
pub(crate) fn adapt_agent(
    agent: &Agent,
    trained: &dyn AnyGame,
    config: &RunConfig,
    run: RunRecord,
    options: &AdaptOptions,
) -> Result<Adaptation, LabError> {
    let Played { game, pool, rows, head, latents } = play(agent, trained, config, run, options, None)?;
    let game = &*game;
    let mut record = AdaptRecord::of(head, &rows);
    for reference in game.reference_names() {
        let evaluation = ScriptedEvaluation {
            reference,
            split: options.split,
            n_tuples: pool.tuples.len(),
            n_encounters: options.encounters_per_tuple,
            n_episodes: record.episodes,
            switch: options.switch_at.map(|after| Switch { after }),
            seed: options.seed,
            n_threads: options.n_threads,
        };
        record.add_reference(reference, &rows, &evaluation.play(game)?);
    }
    Ok(Adaptation { name: options.name(trained, game), record, latents, skipped_checkpoint: None })
}

/// The encounters of an agent, without those of the reference agents.
struct Played {
    game: Box<dyn AnyGame>,
    pool: PoolListing,
    rows: Vec<EpisodeRow>,
    head: AdaptHead,
    latents: Option<LatentsRecord>,
}

/// Plays an agent's encounters with all tuples, or with one of them.
fn play(
    agent: &Agent,
    trained: &dyn AnyGame,
    config: &RunConfig,
    run: RunRecord,
    options: &AdaptOptions,
    only_tuple: Option<usize>,
) -> Result<Played, LabError> {
    // The agent already applies the temperature of the run.
    let temperature = options.temperature.map_or(1.0, |given| given / config.train.temperature);
    let agent = &agent.with_temperature(temperature);
    let opened = config.open_game_with(&options.game_keys)?;
    let game = &*opened;
    let spec = game.spec();
    let shape = (spec.observation_size, spec.n_actions());
    if shape != agent.shape() {
        return Err(LabError::ShapeMismatch { trained: agent.shape(), found: shape });
    }
    let pool = game.pool(options.split);
    let (classes, undefined) = match known_classes(agent, trained, game, &pool, options.split) {
        Ok(classes) => (Some(classes), None),
        Err(reason) => (None, Some(reason.to_owned())),
    };
    let switch = options.switch_at.map(|after| Switch { after });
    let episodes = options.episodes(game).n;
    let context_episodes = options.context_episodes(trained).n;
    let conditions = AdaptConfig {
        only_tuple,
        context_episodes: Some(context_episodes),
        switch,
        detector: options.detector,
        keep_on_clear: options.keep_on_clear,
        classes,
        keep_latents: options.keep_latents,
        ..AdaptConfig::new(options.split, options.encounters_per_tuple, episodes, options.seed)
    };
    let encounters = adapt(agent, game, &conditions, options.n_threads)?;
    let latents =
        options.keep_latents.then(|| episode_rows::latents(&encounters, switch, &pool, agent.latent_width()));
    let rows = episode_rows::agent_rows(encounters, spec.metric);
    let head = AdaptHead {
        game: spec.id.to_owned(),
        preset: config.preset.name().to_owned(),
        chosen_on: Some(
            chosen_on(find_game(&config.game)?, config.preset)?
                .map_or("none".to_owned(), |pool| pool.to_string()),
        ),
        method: config.method.clone(),
        pool: options.split.to_string(),
        metric: episode_rows::score_metric(spec.metric),
        words: words(spec, &config.method),
        passes: options.encounters_per_tuple,
        seed: options.seed,
        episodes,
        context_episodes,
        temperature: options.temperature,
        game_keys: changed_keys(trained, game),
        identification_undefined: undefined,
        switch_after: options.switch_at,
        detector: options.detector_head(),
        peers: peer_heads(&pool, options.split, switch),
        run,
        command: options.command.clone(),
    };
    Ok(Played { game: opened, pool, rows, head, latents })
}

/// Plays the encounters of a record with one of its peer tuples again, to check the record. On the same instruction set the
/// result equals the tuple's part of the record, but for the oracle and the regret, which are not computed.
pub fn evaluate_peer_again(
    view: &RunView,
    record: &AdaptRecord,
    tuple: usize,
    n_threads: usize,
) -> Result<PeerRecord, LabError> {
    let TrainedAgent { agent, game, config, .. } = TrainedAgent::load(view)?;
    let options = AdaptOptions::of_record(record, n_threads)?;
    let played = play(&agent, &*game, &config, record.run.clone(), &options, Some(tuple))?;
    // The tuple is the only one in these rows.
    let rows: Vec<EpisodeRow> = played.rows.into_iter().map(|row| EpisodeRow { tuple: 0, ..row }).collect();
    let peers = played.head.peers.into_iter().skip(tuple).take(1).collect();
    let mut found = AdaptRecord::of(AdaptHead { peers, ..played.head }, &rows).peers;
    let peer =
        found.pop().ok_or_else(|| ConfigError::bad_value("tuple", &tuple, "one that the record lists"))?;
    Ok(PeerRecord { index: tuple, ..peer })
}

/// The tuples of a pool for the record. Empty for a uniform sample, because a page with thousands of tuples is not useful.
fn peer_heads(pool: &PoolListing, split: Split, switch: Option<Switch>) -> Vec<PeerHead> {
    if matches!(split, Split::Uniform(_)) {
        return Vec::new();
    }
    let head = |(index, tuple): (usize, &TupleListing)| {
        let successor = switch.map(|_| Switch::successor(index, pool.tuples.len()));
        let then = successor.map(|successor| format!(", then {}", pool.tuples[successor].description));
        PeerHead { description: format!("{}{}", tuple.description, then.unwrap_or_default()), successor }
    };
    pool.tuples.iter().enumerate().map(head).collect()
}

/// Display names of a game and a method.
pub(crate) fn words(spec: &GameSpec, method: &str) -> DisplayNamesRecord {
    DisplayNamesRecord {
        game: Some(spec.title.to_owned()),
        method: Some(method.to_uppercase()),
        episode: spec.nouns.episode.to_owned(),
        episodes: spec.nouns.episodes.to_owned(),
        score: spec.nouns.score.to_owned(),
        keypoint: spec.nouns.keypoint.to_owned(),
    }
}

/// The classes of the peers of every tuple, if the agent's identifier has these classes; otherwise the reason as text.
fn known_classes(
    agent: &Agent,
    trained: &dyn AnyGame,
    game: &dyn AnyGame,
    pool: &PoolListing,
    split: Split,
) -> Result<Vec<Vec<usize>>, &'static str> {
    if agent.n_identified() == 0 {
        return Err("the method does not identify peers");
    }
    if split != Split::Train {
        return Err("these peers are none of the classes that the agent was trained to tell apart");
    }
    // A class is an index in the training pool, so both games must have the same training pool.
    let of_training = trained.pool(Split::Train);
    if (&of_training.tuples, &of_training.n_classes) != (&pool.tuples, &game.pool(Split::Train).n_classes) {
        return Err("under these keys the peers are not those of the agent's training");
    }
    Ok(pool.tuples.iter().map(|tuple| tuple.classes.clone()).collect())
}

/// The game keys of the evaluation that differ from those of training.
fn changed_keys(trained: &dyn AnyGame, game: &dyn AnyGame) -> BTreeMap<String, Value> {
    let (before, now) = (trained.config(), game.config());
    let keys = now.as_object().into_iter().flatten();
    keys.filter(|(key, value)| before.get(key.as_str()) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The facts about a run for the record of its agent after `steps` training steps.
pub(crate) fn run_record(view: &RunView, config: &RunConfig, steps: u64) -> Result<RunRecord, LabError> {
    let manifest = view.manifest()?;
    Ok(RunRecord {
        folder: view.path().display().to_string(),
        seed: config.seed,
        commit: manifest.spec.commit,
        config_hash: Some(hash_of_run(config, view.path())?),
        steps,
        wall_clock_secs: Some(manifest.wall_clock_secs),
    })
}

/// The record of a training run: its configuration and learning curves.
pub(crate) fn train_record(view: &RunView) -> Result<TrainRecord, LabError> {
    let config = view.run_config()?;
    let manifest = view.manifest()?;
    let mut curves: BTreeMap<String, Vec<(u64, f64)>> = BTreeMap::new();
    for row in view.metrics()? {
        for (name, value) in row.values {
            curves.entry(name).or_default().push((row.step, value));
        }
    }
    Ok(TrainRecord {
        format_version: FormatVersion,
        game: config.game.clone(),
        method: config.method.clone(),
        preset: config.preset.name().to_owned(),
        seed: config.seed,
        commit: manifest.spec.commit,
        config: serde_json::to_value(&config).expect("a configuration is plain data"),
        curves,
        wall_clock_secs: manifest.wall_clock_secs,
    })
}
