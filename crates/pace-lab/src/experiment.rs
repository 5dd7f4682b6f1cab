//! `experiments/*.toml`: the runs and evaluations behind a table or figure of the paper, and the paper's numbers.
//!
//! A file lists run matrices (games × methods × variants, for every seed), the evaluations of these runs, and the view of the
//! result. `plan` merges several experiments for a lab folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pace_games::old_names::read_with_old_names;
use pace_games::{ConfigError, Preset, Split, find_game};
use pace_learn::preset::not_toml;
use pace_learn::{ClearKeeps, Detector, Need, RunConfig, RunRequest, find_method};
use pace_report::experiment_result::View;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::adaptation::AdaptOptions;
use crate::durable;
use crate::error::LabError;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

/// Names and texts of all experiments of the paper, in the order of a report, then of `best-seeds` and `smoke`.
pub const EXPERIMENTS: &[(&str, &str)] = experiments![
    "main",
    "adaptation-curves",
    "showdown",
    "sudden-change",
    "ablation",
    "training-curves",
    "discount",
    "encoder",
    "horizon",
    "peer-count",
    "pool-diversity",
    "tsne",
    "human-like",
    "best-seeds",
    "smoke",
];

/// The smoke test: every method and kind of evaluation at minimal size. It is not part of the paper, and `all` excludes it.
pub const SMOKE: &str = "smoke";

/// One table or figure of the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its file, without the extension.
    #[serde(skip)]
    pub name: String,
    /// The title in a report.
    pub title: String,
    /// The table or figure of the paper.
    pub reproduces: String,
    /// The paper's claim as text, if its numbers alone do not state it.
    #[serde(default)]
    pub claim: Option<String>,
    /// The kind of table or figure in a report.
    pub view: View,
    /// The preset with the default keys of its runs. The paper's numbers stand next to the scores under this preset alone.
    pub preset: Preset,
    /// Number of seeds.
    pub seeds: u64,
    /// The first seed; the others follow it. Default: 1, and a report also counts runs with other seeds.
    #[serde(default)]
    pub first_seed: Option<u64>,
    /// The run matrices.
    pub runs: Vec<RunMatrix>,
    /// The evaluations of the trained runs, by name.
    #[serde(default, deserialize_with = "read_evaluations")]
    pub evaluations: BTreeMap<String, Evaluation>,
    /// The paper's numbers.
    #[serde(default)]
    pub paper: Vec<PaperCell>,
    /// Reference agents to show, in addition to those that the paper has numbers for.
    #[serde(default)]
    pub references: Vec<String>,
}

/// Runs for every combination of game, method and variant, for every seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunMatrix {
    /// Ids of games.
    pub games: Vec<String>,
    /// Ids of methods.
    pub methods: Vec<String>,
    /// Number of seeds. Default: that of the experiment.
    #[serde(default)]
    pub seeds: Option<u64>,
    /// Game and training keys of all runs of the matrix.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Further settings to vary. Default: one plain variant.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Names of the evaluations of these runs.
    #[serde(default)]
    pub evaluations: Vec<String>,
}

/// A named set of keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name, which the paper's numbers refer to; empty for the plain variant.
    pub name: String,
    /// Game and training keys.
    #[serde(default)]
    pub set: Map<String, Value>,
}

/// An evaluation: one `pace adapt` per run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// The peer pool: `test`, `validation`, `train` or `uniform:N`.
    #[serde(default = "test_pool")]
    pub pool: String,
    /// Encounters per peer tuple.
    pub encounters: EncounterCount,
    /// Episodes per encounter, as in [`AdaptOptions`].
    #[serde(default)]
    pub episodes: Option<usize>,
    /// N_ctx, as in [`AdaptOptions`].
    #[serde(default)]
    pub context_episodes: Option<usize>,
    /// The number of episodes after which the peers are replaced. Default: no switch.
    #[serde(default)]
    pub switch_at: Option<usize>,
    /// The change detector that clears the context.
    #[serde(default = "no_detector")]
    pub detector: String,
    /// The part of the context kept when it is cleared.
    #[serde(default = "keeps_last")]
    pub keep_on_clear: String,
    /// Game keys that override those of training.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Whether to write the latents of one encounter per peer tuple next to the record.
    #[serde(default)]
    pub latents: bool,
    /// The random seed of the encounters.
    #[serde(default = "seed_one")]
    pub seed: u64,
}

/// A number of encounters: one for all games, or one per game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, or one for each game")]
pub enum EncounterCount {
    /// The number for every game.
    Same(usize),
    /// The number by game id.
    ByGame(BTreeMap<String, usize>),
}

fn read_evaluations<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<String, Evaluation>, D::Error> {
    #[derive(Deserialize)]
    struct Section(#[serde(deserialize_with = "read_with_old_names")] Evaluation);
    let sections = BTreeMap::<String, Section>::deserialize(reader)?;
    Ok(sections.into_iter().map(|(name, Section(evaluation))| (name, evaluation)).collect())
}

fn test_pool() -> String {
    "test".to_owned()
}

fn no_detector() -> String {
    Detector::None.to_string()
}

fn keeps_last() -> String {
    ClearKeeps::Last.to_string()
}

fn seed_one() -> u64 {
    1
}

/// A number that the paper reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperCell {
    /// The game's id.
    pub game: String,
    /// The method's id, or the name of a reference agent.
    pub method: String,
    /// The variant. Default: the plain one.
    #[serde(default)]
    pub variant: String,
    /// The name of the evaluation.
    pub evaluation: String,
    /// The mean over seeds.
    pub mean: f64,
    /// The standard deviation across training seeds, if the paper gives it.
    #[serde(default)]
    pub std: Option<f64>,
    /// The reason why no score of ours is compared with it, as a clause. Default: the scores under the experiment's preset are.
    #[serde(default)]
    pub not_comparable: Option<String>,
}

/// Settings that replace those of an experiment file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentOverrides {
    /// The number of seeds. Default: that of the file.
    pub seeds: Option<u64>,
    /// The preset. Default: that of the file.
    pub preset: Option<Preset>,
    /// The factor for step budgets and evaluation encounters. Default: 1.
    pub scale: Option<f64>,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentRun {
    /// See [`RunConfig::id`].
    pub id: String,
    /// See [`RunConfig::folder_name`].
    pub folder_name: String,
    /// The variant's name; empty for the plain variant.
    pub variant: String,
    /// The keys that replace those of the preset.
    pub overrides: Map<String, Value>,
    /// All keys. A fallback run is given by the name of its folder, without a path.
    pub config: RunConfig,
    /// The number of seeds of its matrix in the file.
    pub n_seeds: usize,
    /// The id of the fallback run, if the run has one.
    pub needs: Option<String>,
    /// Its evaluations, in the order of the matrix.
    pub evaluations: Vec<ExperimentEvaluation>,
}

/// One evaluation of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentEvaluation {
    /// The name in the experiment.
    pub label: String,
    /// The name in the run folder: `adapt/<name>.json`, and `adapt/<name>.csv` for latents.
    pub name: String,
    /// Encounters per peer tuple.
    pub encounters: usize,
    /// All other settings.
    pub evaluation: Evaluation,
}

impl Experiment {
    /// Finds an experiment by its name, or reads it from a TOML file.
    pub fn find(name: &str) -> Result<Experiment, LabError> {
        if let Some((name, text)) = EXPERIMENTS.iter().find(|(known, _)| *known == name) {
            return Experiment::parse(name, text);
        }
        if name.ends_with(".toml") {
            let path = Path::new(name);
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let mut experiment = Experiment::parse(name, &durable::read_text(path)?)?;
            experiment.name = stem;
            return Ok(experiment);
        }
        let known = EXPERIMENTS.iter().map(|(name, _)| *name);
        Err(ConfigError::unknown("experiment", name, known.chain(["all", "FILE.toml"])).into())
    }

    /// Parses the text of a file. An error names the file and the reason.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, LabError> {
        let is_file = name.ends_with(".toml");
        let file = if is_file { name.to_owned() } else { format!("experiments/{name}.toml") };
        let mut experiment: Experiment =
            toml::from_str(text).map_err(|error| not_toml(&file, text, &error))?;
        experiment.name = name.to_owned();
        match experiment.check() {
            Ok(()) => Ok(experiment),
            Err(reason) => Err(LabError::BadConfig { file, reason }),
        }
    }

    /// Checks what the TOML schema cannot express.
    fn check(&self) -> Result<(), String> {
        let text = |error: ConfigError| error.to_string();
        let counts = self.runs.iter().filter_map(|group| group.seeds);
        if let Some(bad) = counts.chain([self.seeds]).find(|seeds| !(1..=1000).contains(seeds)) {
            return Err(format!("`seeds`: found {bad}, expected 1 to 1000"));
        }
        if self.runs.is_empty() {
            return Err("found no runs; expected at least one [[runs]]".to_owned());
        }
        for (name, evaluation) in &self.evaluations {
            let within = |error: ConfigError| format!("evaluation \"{name}\": {error}");
            evaluation.pool.parse::<Split>().map_err(within)?;
            evaluation.detector.parse::<Detector>().map_err(within)?;
            evaluation.keep_on_clear.parse::<ClearKeeps>().map_err(within)?;
        }
        for group in &self.runs {
            if group.games.is_empty() || group.methods.is_empty() {
                return Err("runs without games or without methods; expected at least one of each".to_owned());
            }
            group.methods.iter().try_for_each(|method| find_method(method).map(drop)).map_err(text)?;
            group.games.iter().try_for_each(|game| find_game(game).map(drop)).map_err(text)?;
            let mut names = BTreeSet::new();
            if let Some(twice) = group.variants.iter().find(|variant| !names.insert(&variant.name)) {
                return Err(format!("duplicate variant name \"{}\"; expected different names", twice.name));
            }
            for name in &group.evaluations {
                let known = self.evaluations.keys().map(String::as_str);
                let evaluation = self
                    .evaluations
                    .get(name)
                    .ok_or_else(|| text(ConfigError::unknown("evaluation", name, known)))?;
                for game in &group.games {
                    let encounters = evaluation.encounters.of(game).ok_or_else(|| {
                        format!("evaluation \"{name}\": found no encounters for {game}, expected a number for each game")
                    })?;
                    if !(1..=1_000_000).contains(&encounters) {
                        return Err(format!(
                            "evaluation \"{name}\": found {encounters} encounters, expected 1 to 1000000"
                        ));
                    }
                }
            }
        }
        self.check_references().map_err(text)?;
        self.paper.iter().try_for_each(|cell| self.check_cell(cell))
    }

    /// Rejects a reference agent that none of the games has.
    fn check_references(&self) -> Result<(), ConfigError> {
        let mut known = BTreeSet::new();
        for game in self.runs.iter().flat_map(|group| &group.games) {
            known.extend(find_game(game)?.open(Preset::Paper, &Map::new())?.reference_names());
        }
        match self.references.iter().find(|name| !known.contains(name.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(ConfigError::unknown("reference agent", unknown, known)),
        }
    }

    /// Rejects a number of the paper that matches no run of the experiment.
    fn check_cell(&self, cell: &PaperCell) -> Result<(), String> {
        let has_run = self.runs.iter().any(|group| {
            let is_reference = find_method(&cell.method).is_err();
            let has_variant = group.variants.iter().any(|variant| variant.name == cell.variant)
                || (group.variants.is_empty() && cell.variant.is_empty());
            group.games.contains(&cell.game)
                && (is_reference || group.methods.contains(&cell.method))
                && has_variant
                && group.evaluations.contains(&cell.evaluation)
        });
        if has_run {
            return Ok(());
        }
        let PaperCell { game, method, variant, evaluation, .. } = cell;
        Err(format!(
            "the paper's number for {method} in {game}, variant \"{variant}\", evaluation \"{evaluation}\" matches no run of this experiment"
        ))
    }

    /// Lists all runs by seed; runs with the same seed are in the order of the file.
    pub fn expand(&self, overrides: &ExperimentOverrides) -> Result<Vec<ExperimentRun>, LabError> {
        if let Some(seeds) = overrides.seeds.filter(|seeds| !(1..=1000).contains(seeds)) {
            return Err(ConfigError::bad_value("seeds", &seeds, "a number from 1 to 1000").into());
        }
        let (preset, scale) = (overrides.preset.unwrap_or(self.preset), overrides.scale.unwrap_or(1.0));
        let n_seeds = |group: &RunMatrix| overrides.seeds.unwrap_or(self.seeds_of(group));
        let first = self.first_seed.unwrap_or(1);
        let mut runs = Vec::new();
        for place in 0..self.runs.iter().map(n_seeds).max().unwrap_or(0) {
            let groups = self.runs.iter().filter(|group| place < n_seeds(group));
            runs.extend(self.runs_of_seed(groups, first + place, preset, scale)?);
        }
        Ok(runs)
    }

    /// The number of seeds of the runs of a matrix.
    fn seeds_of(&self, group: &RunMatrix) -> u64 {
        group.seeds.unwrap_or(self.seeds)
    }

    /// Lists the runs of these matrices with one seed.
    fn runs_of_seed<'a>(
        &'a self,
        groups: impl Iterator<Item = &'a RunMatrix>,
        seed: u64,
        preset: Preset,
        scale: f64,
    ) -> Result<Vec<ExperimentRun>, LabError> {
        let mut runs = Vec::new();
        for group in groups {
            let plain = [Variant::default()];
            let variants = if group.variants.is_empty() { &plain } else { &group.variants[..] };
            for game in &group.games {
                for variant in variants {
                    for method in &group.methods {
                        let what = RunRequestInGroup { group, game, method, variant, seed, preset };
                        runs.push(self.resolve(&what, scale)?);
                    }
                }
            }
        }
        self.set_ids(&mut runs)?;
        Ok(runs)
    }

    /// Lists the runs of all matrices with one seed, for the search of existing runs.
    pub(crate) fn all_of_seed(
        &self,
        seed: u64,
        preset: Preset,
        scale: f64,
    ) -> Result<Vec<ExperimentRun>, LabError> {
        self.runs_of_seed(self.runs.iter(), seed, preset, scale)
    }

    fn resolve(&self, what: &RunRequestInGroup<'_>, scale: f64) -> Result<ExperimentRun, LabError> {
        let RunRequestInGroup { group, game, method, variant, seed, preset } = *what;
        let mut overrides = group.set.clone();
        overrides.extend(variant.set.clone());
        let request = RunRequest {
            game,
            method,
            preset: preset.name(),
            seed,
            file: None,
            overrides: overrides.clone(),
            scale,
        };
        let n_seeds = self.seeds_of(group) as usize;
        let within = |error: LabError| match error {
            LabError::Game(error) => LabError::BadConfig {
                file: format!("experiment \"{}\"", self.name),
                reason: format!("{method} in {game}: {error}"),
            },
            other => other,
        };
        let config = RunConfig::resolve(&request).map_err(|error| within(error.into()))?;
        let evaluations = group
            .evaluations
            .iter()
            .map(|label| {
                let evaluation = self.evaluations[label].clone();
                let encounters = evaluation.encounters.of(game).expect("checked by `Experiment::check`");
                // A standard error needs at least two encounters.
                let encounters = if scale == 1.0 {
                    encounters
                } else {
                    ((encounters as f64 * scale).ceil() as usize).max(2)
                };
                let name = evaluation.options(encounters, 1)?.name_for(&config).map_err(within)?;
                Ok(ExperimentEvaluation { label: label.clone(), name, encounters, evaluation })
            })
            .collect::<Result<_, LabError>>()?;
        Ok(ExperimentRun {
            id: String::new(),
            folder_name: String::new(),
            variant: variant.name.clone(),
            overrides,
            config,
            n_seeds,
            needs: None,
            evaluations,
        })
    }

    /// Sets the ids of the runs with one seed. A run that needs a fallback run gets one of the same game.
    fn set_ids(&self, runs: &mut [ExperimentRun]) -> Result<(), LabError> {
        let lacks_run = |run: &ExperimentRun| run.config.need().is_some_and(|need| need.run.is_empty());
        for run in runs.iter_mut().filter(|run| !lacks_run(run)) {
            (run.id, run.folder_name) = (run.config.id()?, run.config.folder_name()?);
        }
        for index in 0..runs.len() {
            let Some(Need { key, run: "", method }) = runs[index].config.need() else { continue };
            let (game, variant) = (runs[index].config.game.clone(), runs[index].variant.clone());
            let is_fallback = |run: &&ExperimentRun| run.config.method == method && run.config.game == game;
            let same_variant = runs.iter().find(|run| is_fallback(run) && run.variant == variant);
            let Some(fallback) = same_variant.or_else(|| runs.iter().find(is_fallback)) else {
                let reason = format!(
                    "{} in {game} needs a run of method \"{method}\" as fallback policy; add it to the methods of {game}, or set {key}",
                    runs[index].config.method
                );
                return Err(LabError::BadConfig { file: format!("experiment \"{}\"", self.name), reason });
            };
            let (id, folder_name) = (fallback.id.clone(), fallback.folder_name.clone());
            let run = &mut runs[index];
            run.config.set_fallback_run(&folder_name)?;
            run.needs = Some(id);
            (run.id, run.folder_name) = (run.config.id()?, run.config.folder_name()?);
        }
        Ok(())
    }
}

/// One combination of a run matrix.
#[derive(Clone, Copy)]
struct RunRequestInGroup<'a> {
    group: &'a RunMatrix,
    game: &'a str,
    method: &'a str,
    variant: &'a Variant,
    seed: u64,
    preset: Preset,
}

impl Evaluation {
    /// The options of `pace adapt` for this evaluation.
    pub fn options(&self, encounters: usize, n_threads: usize) -> Result<AdaptOptions, LabError> {
        let split = self.pool.parse::<Split>()?;
        // Each tuple of a uniform sample has one encounter.
        let encounters = if matches!(split, Split::Uniform(_)) { 1 } else { encounters };
        Ok(AdaptOptions {
            episodes: self.episodes,
            context_episodes: self.context_episodes,
            switch_at: self.switch_at,
            detector: self.detector.parse::<Detector>()?,
            keep_on_clear: self.keep_on_clear.parse::<ClearKeeps>()?,
            game_keys: self.set.clone(),
            keep_latents: self.latents,
            ..AdaptOptions::new(split, encounters, self.seed, n_threads)
        })
    }
}

impl EncounterCount {
    /// Returns the number for a game, if it has one.
    pub(crate) fn of(&self, game: &str) -> Option<usize> {
        match self {
            EncounterCount::Same(encounters) => Some(*encounters),
            EncounterCount::ByGame(by_game) => by_game.get(game).copied(),
        }
    }
}
