//! `experiments/*.toml`: which runs and evaluations make a table or a figure of the paper, and the paper's own numbers.
//!
//! A file is a list of groups of runs, each the product of its games, methods, variants and seeds, the evaluations they go
//! through, and how the result is shown. What becomes of several experiments together in a folder is in `plan`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pace_games::{GameError, Preset, Split, find_game};
use pace_learn::preset::not_toml;
use pace_learn::{ClearKeeps, Detector, RunConfig, RunRequest, find_method};
use pace_report::experiment_result::View;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::adaptation::AdaptOptions;
use crate::durable;
use crate::error::LabError;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

/// Every experiment of the paper, in the order in which a report shows them, and `smoke`; name and text.
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
    "smoke",
];

/// The experiment that is no part of the paper: everything once, as small as can be. `all` leaves it out.
pub const SMOKE: &str = "smoke";

/// One table or figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What a report calls it.
    pub title: String,
    /// The place in the paper.
    pub reproduces: String,
    /// What the paper says about it in words, where numbers alone do not.
    #[serde(default)]
    pub claim: Option<String>,
    /// How it is shown.
    pub view: View,
    /// Where the keys of its runs start from.
    pub preset: Preset,
    /// The seeds are 1 to this.
    pub seeds: u64,
    /// Its runs.
    pub runs: Vec<RunMatrix>,
    /// What the runs go through once they are trained, by name.
    #[serde(default)]
    pub evaluations: BTreeMap<String, Evaluation>,
    /// The numbers of the paper.
    #[serde(default)]
    pub paper: Vec<PaperCell>,
    /// Scales of the paper's numbers that are not those of every preset, by name.
    #[serde(default)]
    pub scales: BTreeMap<String, NumberScale>,
    /// Scripted egos that stand beside the methods, beside those that the paper has numbers of.
    #[serde(default)]
    pub references: Vec<String>,
}

/// The product of games, methods and variants, for each seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunMatrix {
    /// Ids of games.
    pub games: Vec<String>,
    /// Ids of methods.
    pub methods: Vec<String>,
    /// Keys of the game and of training that all of these runs have.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// What the runs differ in beside; one plain variant if there are none.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Names of evaluations.
    #[serde(default)]
    pub evaluations: Vec<String>,
}

/// Keys under a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The name, by which the paper's numbers find it; the plain variant has none.
    pub name: String,
    /// Keys of the game and of training.
    #[serde(default)]
    pub set: Map<String, Value>,
}

/// One `pace adapt` over each run that names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Whom the agent meets: `test`, `train` or `uniform:N`.
    #[serde(default = "test_pool")]
    pub pool: String,
    /// Encounters with each tuple.
    pub passes: Passes,
    /// Episodes per encounter, as in [`AdaptOptions`].
    #[serde(default)]
    pub episodes: Option<usize>,
    /// N_ctx, as in [`AdaptOptions`].
    #[serde(default)]
    pub context_episodes: Option<usize>,
    /// After how many episodes other peers take over.
    #[serde(default)]
    pub switch_at: Option<usize>,
    /// What clears the context.
    #[serde(default = "no_detector")]
    pub detector: String,
    /// What clearing leaves.
    #[serde(default = "keeps_last")]
    pub clear_keeps: String,
    /// Keys of the game that are not to be as in training.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Whether the latents of one encounter with each tuple are kept beside the record.
    #[serde(default)]
    pub latents: bool,
    /// The seed of all chance of the encounters.
    #[serde(default = "first_seed")]
    pub seed: u64,
}

/// A number for every game, or one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, or one for each game")]
pub enum Passes {
    /// In every game.
    Same(usize),
    /// By the id of the game.
    ByGame(BTreeMap<String, usize>),
}

fn test_pool() -> String {
    "test".to_owned()
}

fn no_detector() -> String {
    Detector::None.to_string()
}

fn keeps_last() -> String {
    ClearKeeps::Last.name().to_owned()
}

fn first_seed() -> u64 {
    1
}

/// A number that the paper reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperCell {
    /// The game's id.
    pub game: String,
    /// The method's id, or the name of a scripted ego.
    pub method: String,
    /// The variant; the plain one if absent.
    #[serde(default)]
    pub variant: String,
    /// The evaluation.
    pub evaluation: String,
    /// The mean over seeds.
    pub mean: f64,
    /// The deviation over seeds, where it is given.
    #[serde(default)]
    pub std: Option<f64>,
    /// The name of its scale; comparable with every preset if absent.
    #[serde(default)]
    pub scale: Option<String>,
}

/// A scale of the paper's numbers: a game whose rules differ from those of some presets gives other numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberScale {
    /// The presets whose results are on this scale; a report compares with no other.
    pub presets: Vec<Preset>,
    /// A few words that stand beside the number in the rows of other presets.
    pub label: String,
    /// The difference between the scales, as a sentence.
    pub note: String,
}

/// What a person asks of an experiment beside its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentOverrides {
    /// How many seeds; as many as its file says if absent.
    pub seeds: Option<u64>,
    /// The preset; that of its file if absent.
    pub preset: Option<Preset>,
    /// What budgets and passes are multiplied with; nothing if absent.
    pub scale: Option<f64>,
}

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentRun {
    /// See [`RunConfig::id`].
    pub id: String,
    /// See [`RunConfig::folder_name`].
    pub folder_name: String,
    /// The variant's name; empty for the plain one.
    pub variant: String,
    /// The keys that are not those of the preset.
    pub overrides: Map<String, Value>,
    /// Every key. The run that this one falls back on is named by its folder's name alone.
    pub config: RunConfig,
    /// The id of that run.
    pub needs: Option<String>,
    /// What it goes through, in the order of its group.
    pub evaluations: Vec<ExperimentEvaluation>,
}

/// One evaluation of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentEvaluation {
    /// Its name in the experiment.
    pub label: String,
    /// Its name in the run's folder: `adapt/<name>.json`, and `adapt/<name>.csv` for its latents.
    pub name: String,
    /// Encounters with each tuple.
    pub passes: usize,
    /// Everything else.
    pub evaluation: Evaluation,
}

impl Experiment {
    /// The experiment of this name, or in this file.
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
        Err(GameError::unknown("experiment", name, known.chain(["all", "FILE.toml"])).into())
    }

    /// Reads the text of a file. An error names the file and what is wrong in it.
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

    /// What the reader of TOML cannot know.
    fn check(&self) -> Result<(), String> {
        let said = |error: GameError| error.to_string();
        if !(1..=1000).contains(&self.seeds) {
            return Err(format!("`seeds`: found {}, expected 1 to 1000", self.seeds));
        }
        if self.runs.is_empty() {
            return Err("found no runs; expected at least one [[runs]]".to_owned());
        }
        for (name, evaluation) in &self.evaluations {
            let within = |error: GameError| format!("evaluation \"{name}\": {error}");
            evaluation.pool.parse::<Split>().map_err(within)?;
            evaluation.detector.parse::<Detector>().map_err(within)?;
            evaluation.clear_keeps.parse::<ClearKeeps>().map_err(within)?;
        }
        for group in &self.runs {
            if group.games.is_empty() || group.methods.is_empty() {
                return Err("runs without games or without methods; expected at least one of each".to_owned());
            }
            group.methods.iter().try_for_each(|method| find_method(method).map(drop)).map_err(said)?;
            group.games.iter().try_for_each(|game| find_game(game).map(drop)).map_err(said)?;
            let mut names = BTreeSet::new();
            if let Some(twice) = group.variants.iter().find(|variant| !names.insert(&variant.name)) {
                return Err(format!("duplicate variant name \"{}\"; expected different names", twice.name));
            }
            for name in &group.evaluations {
                let known = self.evaluations.keys().map(String::as_str);
                let evaluation = self
                    .evaluations
                    .get(name)
                    .ok_or_else(|| said(GameError::unknown("evaluation", name, known)))?;
                for game in &group.games {
                    let passes = evaluation.passes.of(game).ok_or_else(|| {
                        format!("evaluation \"{name}\": found no passes for {game}, expected a number for each game")
                    })?;
                    if !(1..=1_000_000).contains(&passes) {
                        return Err(format!(
                            "evaluation \"{name}\": found {passes} passes, expected 1 to 1000000"
                        ));
                    }
                }
            }
        }
        self.check_references().map_err(said)?;
        self.paper.iter().try_for_each(|cell| self.check_cell(cell))
    }

    /// Refuses a scripted ego that none of the games has.
    fn check_references(&self) -> Result<(), GameError> {
        let mut known = BTreeSet::new();
        for game in self.runs.iter().flat_map(|group| &group.games) {
            known.extend(find_game(game)?.open(Preset::Paper, &Map::new())?.reference_names());
        }
        match self.references.iter().find(|name| !known.contains(name.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(GameError::unknown("reference agent", unknown, known)),
        }
    }

    /// Refuses a number of the paper that no cell of ours would stand beside, or on a scale that is not described.
    fn check_cell(&self, cell: &PaperCell) -> Result<(), String> {
        if let Some(scale) = cell.scale.as_ref().filter(|scale| !self.scales.contains_key(*scale)) {
            let known = self.scales.keys().map(String::as_str);
            return Err(GameError::unknown("scale", scale, known).to_string());
        }
        let is_met = self.runs.iter().any(|group| {
            let is_reference = find_method(&cell.method).is_err();
            let has_variant = group.variants.iter().any(|variant| variant.name == cell.variant)
                || (group.variants.is_empty() && cell.variant.is_empty());
            group.games.contains(&cell.game)
                && (is_reference || group.methods.contains(&cell.method))
                && has_variant
                && group.evaluations.contains(&cell.evaluation)
        });
        if is_met {
            return Ok(());
        }
        let PaperCell { game, method, variant, evaluation, .. } = cell;
        Err(format!(
            "the paper's number for {method} in {game}, variant \"{variant}\", evaluation \"{evaluation}\" matches no run of this experiment"
        ))
    }

    /// Every run, seed after seed and within a seed in the order of the file.
    pub fn expand(&self, overrides: &ExperimentOverrides) -> Result<Vec<ExperimentRun>, LabError> {
        let (seeds, preset) =
            (overrides.seeds.unwrap_or(self.seeds), overrides.preset.unwrap_or(self.preset));
        if !(1..=1000).contains(&seeds) {
            return Err(GameError::bad_value("seeds", &seeds, "a number from 1 to 1000").into());
        }
        let mut runs = Vec::new();
        for seed in 1..=seeds {
            let first_of_seed = runs.len();
            for group in &self.runs {
                let plain = [Variant::default()];
                let variants = if group.variants.is_empty() { &plain } else { &group.variants[..] };
                for game in &group.games {
                    for variant in variants {
                        for method in &group.methods {
                            let what = RunRequestInGroup { group, game, method, variant, seed, preset };
                            runs.push(self.resolve(&what, overrides.scale.unwrap_or(1.0))?);
                        }
                    }
                }
            }
            self.join(&mut runs[first_of_seed..])?;
        }
        Ok(runs)
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
                let passes = evaluation.passes.of(game).expect("checked when it was read");
                // Two, so that there is a standard error.
                let passes =
                    if scale == 1.0 { passes } else { ((passes as f64 * scale).ceil() as usize).max(2) };
                let name = evaluation.options(passes, 1)?.name_for(&config).map_err(within)?;
                Ok(ExperimentEvaluation { label: label.clone(), name, passes, evaluation })
            })
            .collect::<Result<_, LabError>>()?;
        Ok(ExperimentRun {
            id: String::new(),
            folder_name: String::new(),
            variant: variant.name.clone(),
            overrides,
            config,
            needs: None,
            evaluations,
        })
    }

    /// Gives the runs of one seed their ids, and those that fall back on another run the Generalist's.
    fn join(&self, runs: &mut [ExperimentRun]) -> Result<(), LabError> {
        let lacks_run = |run: &ExperimentRun| run.config.train.conservative_run() == Some("");
        for run in runs.iter_mut().filter(|run| !lacks_run(run)) {
            (run.id, run.folder_name) = (run.config.id()?, run.config.folder_name()?);
        }
        for index in 0..runs.len() {
            if !lacks_run(&runs[index]) {
                continue;
            }
            let (game, variant) = (runs[index].config.game.clone(), runs[index].variant.clone());
            let is_generalist =
                |run: &&ExperimentRun| run.config.method == "generalist" && run.config.game == game;
            let same_variant = runs.iter().find(|run| is_generalist(run) && run.variant == variant);
            let Some(generalist) = same_variant.or_else(|| runs.iter().find(is_generalist)) else {
                let reason = format!(
                    "{} in {game} needs a Generalist run as fallback policy; add \"generalist\" to the methods of {game}, or set gscu.conservative",
                    runs[index].config.method
                );
                return Err(LabError::BadConfig { file: format!("experiment \"{}\"", self.name), reason });
            };
            let (id, folder_name) = (generalist.id.clone(), generalist.folder_name.clone());
            let run = &mut runs[index];
            run.config.set_fallback_run(&folder_name)?;
            run.needs = Some(id);
            (run.id, run.folder_name) = (run.config.id()?, run.config.folder_name()?);
        }
        Ok(())
    }
}

/// One run as a group asks for it.
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
    /// What `pace adapt` is asked for.
    pub fn options(&self, passes: usize, n_threads: usize) -> Result<AdaptOptions, LabError> {
        let split = self.pool.parse::<Split>()?;
        // Draws from a family are met once each.
        let passes = if matches!(split, Split::Family(_)) { 1 } else { passes };
        Ok(AdaptOptions {
            episodes: self.episodes,
            context_episodes: self.context_episodes,
            switch_at: self.switch_at,
            detector: self.detector.parse::<Detector>()?,
            clear_keeps: self.clear_keeps.parse::<ClearKeeps>()?,
            game_keys: self.set.clone(),
            keep_latents: self.latents,
            ..AdaptOptions::new(split, passes, self.seed, n_threads)
        })
    }
}

impl Passes {
    /// The number for a game, if there is one.
    pub fn of(&self, game: &str) -> Option<usize> {
        match self {
            Passes::Same(passes) => Some(*passes),
            Passes::ByGame(by_game) => by_game.get(game).copied(),
        }
    }
}
