//! `pace references`: measures the scores of the reference agents.

use std::io::Write;
use std::time::Instant;

use clap::Args;
use pace_games::{GAMES, GameEntry, Metric, Preset, Split, find_game};
use serde::Serialize;
use serde_json::{Map, json};

use crate::build_info::all_threads;
use crate::game_args::{KeyArgs, preset};
use crate::log_line;
use crate::ranges::{seed, whole};
use pace_lab::{Experiment, PaperCell, ScriptedEvaluation};
use pace_report::{EncounterGroups, EpisodeRow, ReferenceRecord};

#[derive(Debug, Args)]
pub struct ReferencesArgs {
    /// Ids of games. Default: all games.
    games: Vec<String>,
    /// Preset: `paper`, `reference` or `best`. Default: `paper` and `reference`.
    #[arg(long, value_parser = preset(), hide_possible_values = true)]
    preset: Option<Preset>,
    /// Override one key of the preset. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Peer pool: `test`, `validation`, `train` or `uniform:N` (N tuples sampled uniformly, one encounter each). Repeatable.
    #[arg(long = "pool", default_values_t = [Split::Test])]
    pools: Vec<Split>,
    /// Encounters per peer tuple; always 1 with `uniform:N`.
    #[arg(long, default_value_t = 200, value_parser = whole::<usize>(2..=1_000_000))]
    encounters: usize,
    /// Random seed.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print the page `docs/references.md`.
    #[arg(long)]
    markdown: bool,
}

#[derive(Debug, Serialize)]
struct ReferenceRow {
    game: &'static str,
    preset: &'static str,
    pool: String,
    agent: &'static str,
    /// Mean, standard error and blocks.
    #[serde(flatten)]
    score: ReferenceRecord,
    metric: Metric,
    keypoint_rate: f64,
    sampled_return: f64,
    n_tuples: usize,
    encounters_per_tuple: usize,
    seed: u64,
}

/// The paper's scores for this game that are comparable with this preset, from the experiment `main`.
fn paper_numbers(main: &Experiment, game: &str, preset: &str) -> String {
    let is_comparable = |cell: &PaperCell| main.preset.name() == preset && cell.not_comparable.is_none();
    let number = |method: &str, label: &str| {
        let mut cells = main.paper.iter().filter(|cell| (&cell.game[..], &cell.method[..]) == (game, method));
        cells.find(|cell| is_comparable(cell)).map(|cell| format!("{label} {}", cell.mean))
    };
    let numbers: Vec<String> =
        [number("oracle", "oracle"), number("pace", "PACE")].into_iter().flatten().collect();
    if numbers.is_empty() { String::new() } else { format!(" (the paper: {})", numbers.join(", ")) }
}

pub fn run(args: &ReferencesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let games: Vec<&GameEntry> = match &args.games[..] {
        [] => GAMES.iter().collect(),
        names => names.iter().map(|name| find_game(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let presets = args.preset.map_or(Preset::RULES.to_vec(), |preset| vec![preset]);
    let mut rows = Vec::new();
    for entry in &games {
        for preset in &presets {
            let keys = KeyArgs { preset: *preset, overrides: args.overrides.clone() };
            let game = keys.open(entry.id)?;
            for split in &args.pools {
                for agent in game.reference_names() {
                    let begin = Instant::now();
                    let row = measure(args, &*game, *preset, *split, agent)?;
                    log_line(&format!(
                        "{} {} {} {agent}: {} in {:.1} s",
                        row.game,
                        row.preset,
                        row.pool,
                        format_score(&row.score),
                        begin.elapsed().as_secs_f64()
                    ));
                    rows.push(row);
                }
            }
        }
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "references": rows }))?)?;
        return Ok(());
    }
    if args.markdown {
        writeln!(out, "{}\n{}", PAGE_HEAD.trim_start(), keypoints(&games)?)?;
    }
    print_tables(&rows, args.markdown, out)
}

fn measure(
    args: &ReferencesArgs,
    game: &dyn pace_games::AnyGame,
    preset: Preset,
    split: Split,
    agent: &'static str,
) -> anyhow::Result<ReferenceRow> {
    let spec = game.spec();
    let n_episodes = spec.episodes_per_encounter;
    let (n_tuples, n_encounters) = match split {
        Split::Uniform(n) => (n, 1),
        _ => (game.pool(split).tuples.len(), args.encounters),
    };
    let seed = args.seed;
    let evaluation = ScriptedEvaluation {
        reference: agent,
        split,
        n_tuples,
        n_encounters,
        n_episodes,
        switch: None,
        seed,
        n_threads: all_threads(),
    };
    let rows = evaluation.play(game)?;
    let groups = EncounterGroups::of(&rows);
    let mean = |value: fn(&EpisodeRow) -> f64| groups.estimate(0..n_episodes, value).mean;
    Ok(ReferenceRow {
        game: spec.id,
        preset: preset.name(),
        pool: split.to_string(),
        agent,
        score: ReferenceRecord::of(&rows, n_episodes, None),
        metric: spec.metric,
        keypoint_rate: mean(|row| f64::from(u8::from(row.keypoint_visited))),
        sampled_return: mean(|row| row.task_return),
        n_tuples,
        encounters_per_tuple: n_encounters,
        seed,
    })
}

const PAGE_HEAD: &str = "
# Reference agents

Measured scores of the scripted reference agents, for comparison with learned agents. *oracle* knows its peers, *bayes* infers them
from the distribution of all peers, *static* never adapts, *planner* knows its peers and plans ahead. The scores are not bounds: there
are games in which *bayes* and *planner* score higher than *oracle*. Generated by:

    pace references --markdown --encounters 400 --pool test --pool validation --pool train --pool uniform:4000 > docs/references.md

Scores are means over encounters with every peer tuple of the pool ± standard error; blocks are consecutive equal parts of an
encounter. Where a game has its expected rewards in closed form, the scores are means of these, so they contain no sampling noise
from the cards. *keypoint* is the share of episodes with the game's informative event:
";

/// Descriptions of the informative events, one line per game.
fn keypoints(games: &[&GameEntry]) -> anyhow::Result<String> {
    let mut text = String::new();
    for entry in games {
        let keypoint = entry.open(Preset::Paper, &Map::new())?.spec().keypoint;
        text.push_str(&format!("* {}: {keypoint}\n", entry.id));
    }
    Ok(text)
}

fn print_tables(rows: &[ReferenceRow], is_page: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let main = Experiment::find("main")?;
    let mut last = None;
    for row in rows {
        let title = (row.game, row.preset, &row.pool);
        if last != Some(title) {
            let paper =
                if row.pool == "test" { paper_numbers(&main, row.game, row.preset) } else { String::new() };
            let mark = if is_page { "\n## " } else { "\n" };
            writeln!(out, "{mark}{}, preset {}, {} peers{paper}\n", row.game, row.preset, row.pool)?;
            writeln!(
                out,
                "| {:<14} | {:<18} | {:<8} | blocks |",
                "agent",
                format!("{:?}", row.metric).to_lowercase(),
                "keypoint"
            )?;
            writeln!(out, "|---|---|---|---|")?;
            last = Some(title);
        }
        let blocks: Vec<String> = row.score.blocks.iter().map(|block| format!("{:.3}", block.mean)).collect();
        let mean = format_score(&row.score);
        writeln!(
            out,
            "| {:<14} | {mean:<18} | {:<8.2} | {} |",
            row.agent,
            row.keypoint_rate,
            blocks.join(" ")
        )?;
    }
    Ok(())
}

fn format_score(score: &ReferenceRecord) -> String {
    let error = score.standard_error.map_or("?".to_owned(), |error| format!("{error:.4}"));
    format!("{:.4} ± {error}", score.mean)
}
