//! A trained agent meets a pool of peers, beside the scripted egos that bound its score; the result is a record.

use std::collections::BTreeMap;

use pace_games::{AnyGame, EpisodeOutcome, Metric, Split};
use pace_learn::{AdaptConfig, Agent, EncounterOutcome, MODEL_FILE, adapt, find_method};
use pace_report::stats::Estimate;
use pace_report::{
    AdaptRecord, BlockRecord, FormatVersion, IdentificationRecord, PeerRecord, RunRecord, TrainRecord,
    WordsRecord,
};

use crate::checkpoint::CheckpointLimits;
use crate::conservative::Conservative;
use crate::error::LabError;
use crate::meetings::{Meetings, blocks};
use crate::run_config::RunConfig;
use crate::run_folder::RunView;
use crate::training::check_revision;

/// Whom the agent meets, and how often.
#[derive(Clone, Debug)]
pub struct AdaptOptions {
    /// The part of the pool.
    pub split: Split,
    /// Encounters with each tuple.
    pub passes: usize,
    /// Episodes per encounter; the game's own number if absent.
    pub episodes: Option<usize>,
    /// The most episodes the context keeps; all if absent.
    pub context_episodes: Option<usize>,
    /// All chance of the encounters.
    pub seed: u64,
    /// The command, for the record.
    pub command: String,
    /// Threads; the result does not depend on it.
    pub n_threads: usize,
}

/// The agent of a run's newest checkpoint meets the peers.
pub fn adapt_run(view: &RunView, options: &AdaptOptions) -> Result<AdaptRecord, LabError> {
    let file = view.path().join("config.toml").display().to_string();
    let config = RunConfig::from_toml(&file, &view.config()?)?;
    let manifest = view.manifest()?;
    let game = config.open_game()?;
    check_revision(&manifest, &*game)?;
    let checkpoint = view
        .checkpoints(CheckpointLimits::default())
        .load_newest_valid()?
        .ok_or_else(|| LabError::NoCheckpoint { path: view.path().to_owned() })?;
    let method = find_method(&config.method)?;
    let model = checkpoint.file(MODEL_FILE)?;
    let policy = Conservative::of(&config, view.path())?.map(|found| found.policy()).transpose()?;
    let agent = Agent::with_conservative(method, &*game, &config.train, policy.as_ref(), model)?;
    let run = RunRecord {
        folder: view.path().display().to_string(),
        seed: config.seed,
        commit: manifest.spec.commit.clone(),
        config_hash: Some(config.hash()),
        steps: checkpoint.step,
        wall_clock_secs: Some(manifest.wall_clock_secs),
    };
    adapt_agent(&agent, &*game, &config, run, options)
}

/// An agent meets the peers.
pub fn adapt_agent(
    agent: &Agent,
    game: &dyn AnyGame,
    config: &RunConfig,
    run: RunRecord,
    options: &AdaptOptions,
) -> Result<AdaptRecord, LabError> {
    let spec = game.spec();
    let episodes = options.episodes.unwrap_or(spec.episodes_per_encounter);
    let adapt_config = AdaptConfig {
        split: options.split,
        passes: options.passes,
        episodes,
        context_episodes: options.context_episodes,
        seed: options.seed,
    };
    let encounters = adapt(agent, game, &adapt_config, options.n_threads)?;
    let pool = game.pool(options.split);
    let n_tuples = pool.tuples.len();
    let score = |outcome: &EpisodeOutcome| outcome.score(spec.metric);
    let mut by_tuple: Vec<Vec<&EncounterOutcome>> = vec![Vec::new(); n_tuples];
    for encounter in &encounters {
        by_tuple[encounter.tuple].push(encounter);
    }
    let estimate = |tuples: &[Vec<&EncounterOutcome>], range: std::ops::Range<usize>| {
        let of_encounter = |encounter: &&EncounterOutcome| {
            encounter.episodes[range.clone()].iter().map(score).sum::<f64>() / range.len() as f64
        };
        let groups: Vec<Vec<f64>> =
            tuples.iter().map(|encounters| encounters.iter().map(of_encounter).collect()).collect();
        // Tuples that are met once are draws from a family, so they form one group.
        let is_family = groups.len() > 1 && groups.iter().all(|group| group.len() == 1);
        Estimate::of_groups(&if is_family { vec![groups.concat()] } else { groups })
    };
    let keypoint_rate = |tuples: &[Vec<&EncounterOutcome>], range: std::ops::Range<usize>| {
        let all: Vec<bool> = tuples
            .iter()
            .flatten()
            .flat_map(|encounter| &encounter.episodes[range.clone()])
            .map(|outcome| outcome.keypoint_visited)
            .collect();
        all.iter().filter(|visited| **visited).count() as f64 / all.len() as f64
    };
    // Whether a guess is right is known for training peers alone, and not every method guesses.
    let identification = |range: std::ops::Range<usize>| {
        let is_guessing = encounters.first().is_some_and(|encounter| !encounter.guesses.is_empty());
        let is_known = options.split == Split::Train && is_guessing;
        is_known.then(|| {
            let (mut right, mut sure, mut n) = (0.0, 0.0, 0.0);
            for encounter in &encounters {
                for episode in range.clone() {
                    let classes = &pool.tuples[encounter.tuple].classes;
                    let guesses = &encounter.guesses[episode];
                    let hits = guesses.iter().zip(classes).filter(|(guess, class)| guess == class).count();
                    right += hits as f64 / classes.len() as f64;
                    sure += f64::from(encounter.confidence[episode]);
                    n += 1.0;
                }
            }
            IdentificationRecord { accuracy: right / n, posterior: sure / n }
        })
    };
    let block_records = |tuples: &[Vec<&EncounterOutcome>], is_whole: bool| -> Vec<BlockRecord> {
        let record = |range: std::ops::Range<usize>| {
            let found = estimate(tuples, range.clone());
            BlockRecord {
                first: range.start + 1,
                last: range.end,
                mean: found.mean,
                standard_error: found.standard_error,
                keypoint_rate: Some(keypoint_rate(tuples, range.clone())),
                identification: if is_whole { identification(range) } else { None },
            }
        };
        blocks(episodes).into_iter().map(record).collect()
    };
    let mut references = BTreeMap::new();
    let mut oracle_by_tuple = None;
    for reference in game.reference_names() {
        let meetings = Meetings {
            reference,
            split: options.split,
            n_tuples,
            n_encounters: options.passes,
            n_episodes: episodes,
            seed: options.seed,
        };
        let outcomes = meetings.play(game)?;
        if reference == "oracle" {
            oracle_by_tuple = Some(outcomes.means_by_tuple(score));
        }
        references.insert(reference.to_owned(), outcomes.record(episodes, score));
    }
    let all = estimate(&by_tuple, 0..episodes);
    let peers = pool
        .tuples
        .iter()
        .enumerate()
        // A page with thousands of peers helps nobody; draws from a family have no names.
        .filter(|_| !matches!(options.split, Split::Family(_)))
        .map(|(index, tuple)| {
            let own = std::slice::from_ref(&by_tuple[index]);
            let found = estimate(own, 0..episodes);
            PeerRecord {
                index,
                description: tuple.description.clone(),
                mean: found.mean,
                standard_error: found.standard_error,
                oracle: oracle_by_tuple.as_ref().map(|oracle| oracle[index]),
                regret: None,
                blocks: block_records(own, false),
            }
        })
        .collect();
    let has_closed_form =
        encounters.first().is_some_and(|encounter| encounter.episodes[0].expected_return.is_some());
    let mut record = AdaptRecord {
        format_version: FormatVersion,
        game: spec.id.to_owned(),
        preset: config.preset.name().to_owned(),
        method: config.method.clone(),
        pool: options.split.name(),
        metric: match spec.metric {
            Metric::Return if has_closed_form => "expected return",
            Metric::Return => "return",
            Metric::Success => "success",
        }
        .to_owned(),
        words: WordsRecord {
            game: Some(spec.title.to_owned()),
            method: Some(config.method.to_uppercase()),
            episode: spec.nouns.episode.to_owned(),
            episodes: spec.nouns.episodes.to_owned(),
            score: spec.nouns.score.to_owned(),
            keypoint: spec.nouns.keypoint.to_owned(),
        },
        n_tuples,
        passes: options.passes,
        episodes,
        mean: all.mean,
        standard_error: all.standard_error,
        confidence_95: all.confidence_95(),
        normalised: None,
        share_of_bayes: None,
        keypoint_rate: Some(keypoint_rate(&by_tuple, 0..episodes)),
        blocks: block_records(&by_tuple, true),
        references,
        peers,
        run,
        command: options.command.clone(),
    };
    record.compare_with_references();
    Ok(record)
}

/// The curves and the configuration of a run.
pub fn train_record(view: &RunView) -> Result<TrainRecord, LabError> {
    let file = view.path().join("config.toml").display().to_string();
    let config = RunConfig::from_toml(&file, &view.config()?)?;
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
