//! `pace list`: lists games, methods, peers and experiments.

use std::io::Write;

use clap::{Args, Subcommand};
use pace_games::{GAMES, Preset, Split};
use pace_lab::{EXPERIMENTS, Experiment};
use pace_learn::{METHODS, chosen_on};
use serde_json::{Map, json};

use crate::game_args::GameArgs;

#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// Games with their sizes, pools, keys and reference agents.
    Games(ListGamesArgs),
    /// Training methods.
    Methods(ListGamesArgs),
    /// Peer tuples of a game.
    Peers(ListPeersArgs),
    /// Experiments of the paper, for `pace plan` and `pace reproduce`.
    Experiments(ListGamesArgs),
}

#[derive(Debug, Args)]
pub struct ListGamesArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub struct ListPeersArgs {
    #[command(flatten)]
    game: GameArgs,
    /// Peer pool: `train`, `test`, `validation` or `uniform:N` (N tuples sampled uniformly). Default: train, test and validation.
    #[arg(long)]
    pool: Option<Split>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(command: &ListCommand, out: &mut dyn Write) -> anyhow::Result<()> {
    match command {
        ListCommand::Games(args) => games(args, out),
        ListCommand::Methods(args) => methods(args, out),
        ListCommand::Peers(args) => peers(args, out),
        ListCommand::Experiments(args) => experiments(args, out),
    }
}

fn experiments(args: &ListGamesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let experiments = EXPERIMENTS
        .iter()
        .map(|(name, text)| Experiment::parse(name, text))
        .collect::<Result<Vec<_>, _>>()?;
    if args.json {
        let experiments: Vec<_> = experiments
            .iter()
            .map(|experiment| {
                let Experiment { name, title, reproduces, view, preset, seeds, .. } = experiment;
                json!({
                    "name": name, "title": title, "reproduces": reproduces, "view": view,
                    "preset": preset, "seeds": seeds,
                })
            })
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "experiments": experiments }))?)?;
        return Ok(());
    }
    for Experiment { name, title, reproduces, .. } in &experiments {
        writeln!(out, "{name:<20} {title}: {reproduces}")?;
    }
    Ok(())
}

fn methods(args: &ListGamesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.json {
        let methods: Vec<_> =
            METHODS.iter().map(|method| json!({ "id": method.id, "summary": method.summary })).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "methods": methods }))?)?;
        return Ok(());
    }
    for method in METHODS {
        writeln!(out, "{:<16} {}", method.id, method.summary)?;
    }
    Ok(())
}

fn games(args: &ListGamesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut entries = Vec::new();
    for entry in GAMES {
        let game = entry.open(Preset::Paper, &Map::new())?;
        let spec = game.spec();
        let keys: Map<_, _> = Preset::RULES
            .iter()
            .map(|preset| Ok((preset.name().to_owned(), entry.open(*preset, &Map::new())?.config())))
            .collect::<anyhow::Result<_>>()?;
        let chosen_on: Map<_, _> = Preset::ALL
            .iter()
            .map(|preset| {
                let pool = chosen_on(entry, *preset)?.map(|pool| pool.to_string());
                Ok((preset.name().to_owned(), json!(pool)))
            })
            .collect::<anyhow::Result<_>>()?;
        if args.json {
            let references = game.reference_names();
            entries.push(json!({
                "spec": spec, "keys": keys, "references": references, "chosen_on": chosen_on,
            }));
            continue;
        }
        writeln!(out, "{}  {}", spec.id, spec.title)?;
        writeln!(
            out,
            "  observation  size {}, {} actions: {}",
            spec.observation_size,
            spec.n_actions(),
            spec.action_names.join(", ")
        )?;
        writeln!(out, "  peers        {}: {}", spec.n_peers(), spec.peer_roles.join(", "))?;
        writeln!(
            out,
            "  encounter    {} episodes of at most {} decisions, scored by {:?}",
            spec.episodes_per_encounter, spec.horizon_steps, spec.metric
        )?;
        let pool = |split| game.pool(split).tuples.len();
        writeln!(
            out,
            "  pools        {} training tuples, {} validation tuples, {} test tuples",
            pool(Split::Train),
            pool(Split::Validation),
            pool(Split::Test)
        )?;
        writeln!(out, "  references   {}", game.reference_names().join(", "))?;
        if entry.training.is_empty() {
            writeln!(out, "  training     general defaults")?;
        }
        for (preset, pool) in chosen_on.iter().filter_map(|(preset, pool)| Some((preset, pool.as_str()?))) {
            writeln!(out, "  settings     of preset {preset}: chosen on {pool} peers")?;
        }
        let paper = keys["paper"].as_object().expect("keys are a map");
        for (index, (key, value)) in paper.iter().enumerate() {
            let other = &keys["reference"][key];
            let note = if other == value { String::new() } else { format!("  (preset reference: {other})") };
            writeln!(out, "  {:<12} {key} = {value}{note}", if index == 0 { "keys" } else { "" })?;
        }
        writeln!(out)?;
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "games": entries }))?)?;
    }
    Ok(())
}

fn peers(args: &ListPeersArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let game = args.game.open()?;
    let splits = args.pool.map_or(vec![Split::Train, Split::Test, Split::Validation], |pool| vec![pool]);
    let pools: Vec<_> = splits.into_iter().map(|split| game.pool(split)).collect();
    if args.json {
        let document = json!({ "game": game.spec().id, "pools": pools });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        return Ok(());
    }
    for pool in pools {
        writeln!(
            out,
            "{} {}: {} tuples (pool {})",
            game.spec().id,
            pool.name,
            pool.tuples.len(),
            pool.content_hash
        )?;
        for (index, tuple) in pool.tuples.iter().enumerate() {
            writeln!(out, "{index:>4}  {}", tuple.description)?;
        }
    }
    Ok(())
}
