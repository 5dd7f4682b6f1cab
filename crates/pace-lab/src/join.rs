//! Joins runs with experiments: finds the runs behind each cell of a table of the paper.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pace_games::{GAMES, Preset, find_game};
use pace_learn::{RunConfig, RunRequest, find_method};
use pace_report::ReplayRecord;
use pace_report::experiment_result::{ExperimentResult, PaperNumber, PaperScale, ResultCell, RunEntry};
use pace_report::report::Report;
use serde_json::Map;

use crate::error::LabError;
use crate::experiment::{
    EXPERIMENTS, Experiment, ExperimentOverrides, ExperimentRun, NumberScale, PaperCell, SMOKE,
};
use crate::fallback_agent;
use crate::folder_names;
use crate::records::{RunRecords, find_runs};
use crate::run_config::id_of_run;

/// Seeds above this one are not assigned to cells.
const MAX_SEEDS: u64 = 100;

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
        train: records.train,
        evaluations: records.evaluations,
        embeddings: records.embeddings,
    }
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
    let last_seed =
        configs.iter().map(|config| config.seed).filter(|seed| *seed <= MAX_SEEDS).max().unwrap_or(0);
    let seeds = experiment.seeds.max(last_seed);
    // Runs with the full budget come first; a scaled run only fills a gap.
    let mut scales: Vec<f64> = vec![1.0];
    for config in configs.iter().filter(|config| config.scale != 1.0) {
        if !scales.contains(&config.scale) {
            scales.push(config.scale);
        }
    }
    scales[1..].sort_by(|one, other| other.total_cmp(one));
    let own = experiment.preset;
    let others = configs.iter().map(|config| config.preset).filter(|preset| *preset != own);
    let mut presets: Vec<Preset> = vec![own];
    others.for_each(|preset| {
        if !presets.contains(&preset) {
            presets.push(preset);
        }
    });
    let mut cells: Vec<ResultCell> = Vec::new();
    for preset in presets {
        for scale in &scales {
            let overrides =
                ExperimentOverrides { seeds: Some(seeds), preset: Some(preset), scale: Some(*scale) };
            let Ok(expanded) = experiment.expand(&overrides) else { continue };
            for run in expanded {
                let place = by_id.get(&run.id).copied();
                // With another preset or scale, only existing runs get a cell.
                if (preset != own && place.is_none()) || (*scale != 1.0 && place.is_none()) {
                    continue;
                }
                add(experiment, &run, preset, place, runs, &mut cells)?;
            }
        }
    }
    let scale = |scale: &NumberScale| PaperScale { label: scale.label.clone(), note: scale.note.clone() };
    let references = reference_cells(experiment, &cells, runs);
    let order: Vec<String> = experiment.runs.iter().flat_map(|group| group.methods.clone()).collect();
    cells.sort_by_key(|cell| {
        let preset = usize::from(cell.preset != own.name());
        (order.iter().position(|method| *method == cell.method), preset)
    });
    Ok(ExperimentResult {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        reproduces: experiment.reproduces.clone(),
        claim: experiment.claim.clone(),
        view: experiment.view,
        scales: experiment.scales.values().map(scale).collect(),
        cells: references.into_iter().chain(cells).collect(),
    })
}

fn add(
    experiment: &Experiment,
    run: &ExperimentRun,
    preset: Preset,
    place: Option<usize>,
    runs: &[RunEntry],
    cells: &mut Vec<ResultCell>,
) -> Result<(), LabError> {
    let (game, method) = (&run.config.game, &run.config.method);
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
                let paper = paper_number(experiment, preset.name(), [game, method, &run.variant, label]);
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
                    n_seeds: experiment.seeds as usize,
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

/// The paper's number for a game, method, variant and evaluation, for comparison with results of this preset.
fn paper_number(experiment: &Experiment, preset: &str, place: [&String; 4]) -> Option<PaperNumber> {
    let is_here =
        |paper: &&PaperCell| [&paper.game, &paper.method, &paper.variant, &paper.evaluation] == place;
    let paper = experiment.paper.iter().find(is_here)?;
    let other_scale = paper.scale.as_ref().and_then(|name| {
        let (index, (_, scale)) =
            experiment.scales.iter().enumerate().find(|(_, (known, _))| *known == name)?;
        let is_same = scale.presets.iter().any(|known| known.name() == preset);
        (!is_same).then_some(index)
    });
    Some(PaperNumber { mean: paper.mean, std: paper.std, other_scale })
}

/// Cells of the reference agents: those with numbers in the paper, then those that the experiment lists. Their measured scores
/// come from the records of agents that were evaluated on the same peers.
fn reference_cells(experiment: &Experiment, cells: &[ResultCell], runs: &[RunEntry]) -> Vec<ResultCell> {
    let mut names: Vec<&String> = Vec::new();
    let of_paper = experiment.paper.iter().map(|paper| &paper.method);
    for name in of_paper.filter(|method| find_method(method).is_err()).chain(&experiment.references) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut found: Vec<ResultCell> = Vec::new();
    for (name, like) in names.iter().flat_map(|name| cells.iter().map(move |like| (*name, like))) {
        let is_same = |cell: &ResultCell| {
            (&cell.game, &cell.evaluation, &cell.variant) == (&like.game, &like.evaluation, &like.variant)
        };
        if found.iter().any(|cell| cell.method == *name && is_same(cell)) {
            continue;
        }
        let place = [&like.game, name, &like.variant, &like.evaluation];
        let paper = paper_number(experiment, &like.preset, place);
        let met_same = cells.iter().filter(|cell| is_same(cell) && cell.preset == like.preset);
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
