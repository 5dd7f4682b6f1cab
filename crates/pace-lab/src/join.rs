//! Joins runs with experiments: finds the runs behind each cell of a table of the paper.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pace_games::{GAMES, Preset, find_game};
use pace_learn::{RunConfig, RunRequest, find_method};
use pace_report::ReplayRecord;
use pace_report::experiment_result::{ExperimentResult, PaperNumber, ResultCell, RunEntry};
use pace_report::report::Report;
use serde_json::Map;

use crate::error::LabError;
use crate::experiment::{EXPERIMENTS, Experiment, ExperimentOverrides, ExperimentRun, PaperCell, SMOKE};
use crate::fallback_agent;
use crate::folder_names;
use crate::records::{RunRecords, find_runs};
use crate::run_config::id_of_run;

/// Maximum number of replays on one page, so that the page stays small.
const MAX_REPLAYS: usize = 6;

/// Joins all runs below `folder` with these experiments, and selects the replays to show. An empty list stands for all
/// experiments of the paper.
pub fn join_with_experiments(
    folder: &Path,
    experiments: &[String],
) -> Result<(Report, Vec<ReplayRecord>), LabError> {
    // The folder that the report is written to is not part of its content.
    let chosen = experiments.iter().map(|name| format!(" --experiment {name}")).collect::<String>();
    let command = format!("pace report {}{chosen}", folder.display());
    let mut report = Report { command, ..Report::default() };
    let found = read_runs(folder, &mut report.damaged)?;
    let ids: BTreeMap<String, String> = found.iter().map(|run| (run.name.clone(), run.id.clone())).collect();
    let mut configs = Vec::new();
    let mut replays = Vec::new();
    for FoundRun { name, id, mut records } in found {
        report.damaged.extend(records.damaged.iter().map(LabError::to_string));
        replays.extend(std::mem::take(&mut records.replays).into_values());
        configs.push(records.config.clone());
        let id = match fallback_id(&records, &ids) {
            Some(fallback) => records.config.id_falling_back_on(fallback)?,
            None => id,
        };
        report.runs.push(entry(name, id, records));
    }
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    for (place, run) in report.runs.iter().enumerate() {
        by_id.entry(run.id.clone()).or_insert(place);
    }
    let all = || EXPERIMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let names: Vec<String> = if experiments.is_empty() { all() } else { experiments.to_vec() };
    for name in names {
        let experiment = Experiment::find(&name)?;
        let result = experiment_result(&experiment, &configs, &by_id, &report.runs)?;
        // The smoke test is not a result; it is shown only where it was run.
        if name != SMOKE || result.cells.iter().any(|cell| !cell.runs.is_empty()) {
            report.experiments.push(result);
        }
    }
    let place = |replay: &ReplayRecord| {
        let game = GAMES.iter().position(|entry| entry.id == replay.game);
        (replay.method != "pace", game, replay.method.clone(), replay.index)
    };
    replays.sort_by_key(place);
    replays.truncate(MAX_REPLAYS);
    Ok((report, replays))
}

/// A run below the folder of records.
struct FoundRun {
    /// The path relative to that folder.
    name: String,
    id: String,
    records: RunRecords,
}

/// Reads every run below a folder. The errors of unreadable runs are added to `damaged`.
fn read_runs(folder: &Path, damaged: &mut Vec<String>) -> Result<Vec<FoundRun>, LabError> {
    let mut paths = if folder.is_dir() { find_runs(folder)? } else { Vec::new() };
    if paths.is_empty() {
        return Err(LabError::NoRuns { path: folder.to_owned() });
    }
    // Of two copies of a run, the one at the lesser depth counts.
    paths.sort_by_key(|path| (path.components().count(), path.clone()));
    let mut found = Vec::new();
    for path in paths {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        match RunRecords::read(&path).and_then(|records| Ok((id_of_run(&records.config, &path)?, records))) {
            Err(error) => damaged.push(error.to_string()),
            Ok((id, mut records)) => {
                folder_names::update(&mut records, &name);
                found.push(FoundRun { name, id, records });
            }
        }
    }
    Ok(found)
}

/// The id of the fallback run of a run without its own copy, if the fallback run is among these runs.
fn fallback_id<'a>(records: &RunRecords, ids: &'a BTreeMap<String, String>) -> Option<&'a str> {
    let name = Path::new(records.config.need()?.run).file_name()?;
    if records.path.join(fallback_agent::FOLDER).is_dir() {
        return None;
    }
    ids.get(&*name.to_string_lossy()).map(String::as_str)
}

fn entry(name: String, id: String, records: RunRecords) -> RunEntry {
    let command = folder_names::train_command(&records, &name);
    let spec = &records.manifest.spec;
    RunEntry {
        name,
        id,
        changes: changes(&records.config),
        scale: records.config.scale,
        steps: records.config.train.total_steps,
        status: records.manifest.status.to_string(),
        command,
        processor: spec.cpu_model.clone(),
        n_threads: n_threads(&spec.argv),
        train: records.train,
        evaluations: records.evaluations,
        embeddings: records.embeddings,
    }
}

/// The number of threads in a command line.
fn n_threads(arguments: &[String]) -> Option<usize> {
    let place = arguments.iter().position(|argument| argument == "--threads")?;
    arguments.get(place + 1)?.parse().ok()
}

/// The keys that differ from the preset and have an effect, as text.
pub(crate) fn changes(config: &RunConfig) -> String {
    let plain = RunConfig::resolve(&RunRequest {
        game: &config.game,
        method: &config.method,
        preset: config.preset.name(),
        seed: config.seed,
        file: None,
        overrides: Map::new(),
        scale: config.scale,
    });
    let Ok(plain) = plain else { return String::new() };
    let mut found = Vec::new();
    let values = [plain, config.clone()].map(|mut config| {
        config.train.normalise_unused_keys();
        serde_json::to_value(&config).unwrap_or_default()
    });
    for section in ["game_keys", "train"] {
        for (key, value) in values[1][section].as_object().into_iter().flatten() {
            if values[0][section].get(key) != Some(value) {
                found.push(format!("{key} = {value}"));
            }
        }
    }
    found.join(", ")
}

/// The cells of an experiment, each with its runs.
fn experiment_result(
    experiment: &Experiment,
    configs: &[RunConfig],
    by_id: &BTreeMap<String, usize>,
    runs: &[RunEntry],
) -> Result<ExperimentResult, LabError> {
    let own = experiment.preset;
    let mut cells: Vec<ResultCell> = Vec::new();
    let planned = experiment.expand(&ExperimentOverrides::default())?;
    for run in &planned {
        add(experiment, run, by_id.get(&run.id).copied(), runs, &mut cells)?;
    }
    // Further runs with the same keys: other seeds, other presets, and scaled runs for seeds without the full budget.
    let is_wanted = |seed: u64| {
        experiment.first_seed.is_none() || planned.iter().any(|planned| planned.config.seed == seed)
    };
    let presets = presets_in_order(own);
    let place_of = |preset: Preset| presets.iter().position(|known| *known == preset);
    let mut others: Vec<(Preset, f64, u64)> = configs
        .iter()
        .filter(|config| is_wanted(config.seed))
        .map(|config| (config.preset, config.scale, config.seed))
        .collect();
    others.sort_by(|one, other| {
        let rest = || other.1.total_cmp(&one.1).then(one.2.cmp(&other.2));
        place_of(one.0).cmp(&place_of(other.0)).then_with(rest)
    });
    others.dedup();
    for (preset, scale, seed) in others {
        // Some variants do not exist under every preset.
        let Ok(found) = experiment.all_of_seed(seed, preset, scale) else { continue };
        for run in found {
            let Some(place) = by_id.get(&run.id).copied() else { continue };
            add(experiment, &run, Some(place), runs, &mut cells)?;
        }
    }
    let references = reference_cells(experiment, &cells, runs);
    let mut order: Vec<(&str, &str)> = Vec::new();
    for group in &experiment.runs {
        for method in &group.methods {
            order.push((method, ""));
            order.extend(group.variants.iter().map(|variant| (method.as_str(), variant.name.as_str())));
        }
    }
    cells.sort_by_key(|cell| {
        (
            cell.preset.parse().ok().and_then(place_of),
            order.iter().position(|row| *row == (cell.method.as_str(), cell.variant.as_str())),
        )
    });
    let mut not_comparable: Vec<String> = Vec::new();
    for reason in experiment.paper.iter().filter_map(|cell| cell.not_comparable.clone()) {
        if !not_comparable.contains(&reason) {
            not_comparable.push(reason);
        }
    }
    Ok(ExperimentResult {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        reproduces: experiment.reproduces.clone(),
        claim: experiment.claim.clone(),
        view: experiment.view,
        preset: own.name().to_owned(),
        not_comparable,
        cells: references.into_iter().chain(cells).collect(),
    })
}

/// The presets in the order of the rows of a table: the experiment's own, then `best`, then the others.
fn presets_in_order(own: Preset) -> Vec<Preset> {
    let others = Preset::ALL.into_iter().filter(|preset| ![own, Preset::Best].contains(preset));
    let best = Some(Preset::Best).filter(|best| *best != own);
    std::iter::once(own).chain(best).chain(others).collect()
}

/// Adds a run to the cells of its evaluations. A cell counts one run per seed, the first.
fn add(
    experiment: &Experiment,
    run: &ExperimentRun,
    place: Option<usize>,
    runs: &[RunEntry],
    cells: &mut Vec<ResultCell>,
) -> Result<(), LabError> {
    let RunConfig { game, method, preset, .. } = &run.config;
    let is_own = *preset == experiment.preset;
    // A run may have the keys of two presets.
    if !is_own
        && cells.iter().any(|cell| {
            cell.preset == experiment.preset.name() && place.is_some_and(|place| cell.runs.contains(&place))
        })
    {
        return Ok(());
    }
    // An experiment about training has no evaluations.
    let of_training = [("training".to_owned(), String::new())];
    let evaluated =
        run.evaluations.iter().map(|evaluation| (evaluation.label.clone(), evaluation.name.clone()));
    let evaluations: Vec<_> =
        if run.evaluations.is_empty() { of_training.to_vec() } else { evaluated.collect() };
    for (label, file) in &evaluations {
        let found = cells.iter_mut().find(|cell| {
            (&cell.game, &cell.method, &cell.variant, &cell.evaluation) == (game, method, &run.variant, label)
                && cell.preset == preset.name()
        });
        let cell = match found {
            Some(cell) => cell,
            None => {
                let paper = paper_number(experiment, [game, method, &run.variant, label]).filter(|_| is_own);
                cells.push(ResultCell {
                    game: game.clone(),
                    game_title: find_game(game)?.open(Preset::Paper, &Map::new())?.spec().title.to_owned(),
                    method: method.clone(),
                    is_reference: false,
                    preset: preset.name().to_owned(),
                    variant: run.variant.clone(),
                    evaluation: label.clone(),
                    evaluation_file: file.clone(),
                    paper,
                    n_seeds: if is_own { run.n_seeds } else { 0 },
                    runs: Vec::new(),
                });
                cells.last_mut().expect("just pushed")
            }
        };
        let Some(place) = place else { continue };
        let seeds: BTreeSet<u64> = cell.runs.iter().map(|run| runs[*run].train.seed).collect();
        if !seeds.contains(&runs[place].train.seed) {
            cell.runs.push(place);
        }
    }
    Ok(())
}

/// The paper's number for a game, method, variant and evaluation.
fn paper_number(experiment: &Experiment, place: [&String; 4]) -> Option<PaperNumber> {
    let is_here =
        |paper: &&PaperCell| [&paper.game, &paper.method, &paper.variant, &paper.evaluation] == place;
    let PaperCell { mean, std, not_comparable, .. } = experiment.paper.iter().find(is_here)?;
    Some(PaperNumber { mean: *mean, std: *std, is_comparable: not_comparable.is_none() })
}

/// Cells of the reference agents under the experiment's preset: those with numbers in the paper, then those that the experiment
/// lists. Their measured scores come from the records of agents that were evaluated on the same peers.
fn reference_cells(experiment: &Experiment, cells: &[ResultCell], runs: &[RunEntry]) -> Vec<ResultCell> {
    let mut names: Vec<&String> = Vec::new();
    let of_paper = experiment.paper.iter().map(|paper| &paper.method);
    for name in of_paper.filter(|method| find_method(method).is_err()).chain(&experiment.references) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut found: Vec<ResultCell> = Vec::new();
    let own: Vec<&ResultCell> = cells.iter().filter(|cell| cell.preset == experiment.preset.name()).collect();
    for (name, like) in names.iter().flat_map(|name| own.iter().map(move |like| (*name, *like))) {
        let is_same = |cell: &ResultCell| {
            (&cell.game, &cell.evaluation, &cell.variant) == (&like.game, &like.evaluation, &like.variant)
        };
        if found.iter().any(|cell| cell.method == *name && is_same(cell)) {
            continue;
        }
        let place = [&like.game, name, &like.variant, &like.evaluation];
        let paper = paper_number(experiment, place);
        let met_same = own.iter().filter(|cell| is_same(cell));
        let mut places: Vec<usize> = met_same.flat_map(|cell| cell.runs.clone()).collect();
        places.sort_unstable();
        let cell =
            ResultCell { method: name.clone(), is_reference: true, paper, runs: places, ..like.clone() };
        if paper.is_some() || (experiment.references.contains(name) && cell.statistics(runs).is_some()) {
            found.push(cell);
        }
    }
    found
}
