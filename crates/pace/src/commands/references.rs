//! `pace references`: the scores of the reference agents.

use std::io::Write;
use std::time::Instant;

use clap::Args;
use pace_games::{GAMES, Metric, Preset, Split, find_game};
use serde::Serialize;
use serde_json::json;

use crate::build_info::all_threads;
use crate::game_args::KeyArgs;
use crate::ranges::{seed, whole};
use crate::say;
use pace_lab::Meetings;
use pace_report::{EncounterGroups, EpisodeRow, ReferenceRecord};

#[derive(Debug, Args)]
pub struct ReferencesArgs {
    /// The games; all if none is named.
    games: Vec<String>,
    /// The preset; both if not given.
    #[arg(long)]
    preset: Option<String>,
    /// Sets one key on top of the preset; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Whom they meet: `train`, `test` or `uniform:N`; may be repeated.
    #[arg(long = "pool", default_values_t = ["test".to_owned()])]
    pools: Vec<String>,
    /// Encounters with each tuple of peers; with `uniform:N` every tuple is met once.
    #[arg(long, default_value_t = 200, value_parser = whole::<usize>(2..=1_000_000))]
    encounters: usize,
    /// The seed of all chance.
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

/// The paper's main table: (game, preset, oracle, PACE). Its numbers in Predator-Prey-W fit the rules of preset `reference` alone,
/// and that of its oracle fits no rules that we know.
const PAPER: [(&str, Preset, Option<f64>, f64); 5] = [
    ("kuhn-poker", Preset::Paper, Some(0.077), 0.047),
    ("kuhn-poker", Preset::Reference, Some(0.077), 0.047),
    ("overcooked", Preset::Paper, Some(1.0), 0.553),
    ("overcooked", Preset::Reference, Some(1.0), 0.553),
    ("predator-prey", Preset::Reference, None, -3.93),
];

pub fn run(args: &ReferencesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let games = match &args.games[..] {
        [] => GAMES.iter().collect(),
        names => names.iter().map(|name| find_game(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let presets = match &args.preset {
        Some(name) => vec![Preset::parse(name)?],
        None => Preset::ALL.to_vec(),
    };
    let splits = args.pools.iter().map(|pool| Split::parse(pool)).collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for entry in games {
        for preset in &presets {
            let keys = KeyArgs { preset: preset.name().to_owned(), overrides: args.overrides.clone() };
            let game = keys.open(entry.id)?;
            for split in &splits {
                for agent in game.reference_names() {
                    let begin = Instant::now();
                    let row = measure(args, &*game, *preset, *split, agent)?;
                    say(&format!(
                        "{} {} {} {agent}: {} in {:.1} s",
                        row.game,
                        row.preset,
                        row.pool,
                        in_words(&row.score),
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
        writeln!(out, "{}", PAGE_HEAD.trim_start())?;
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
        Split::Family(n) => (n, 1),
        _ => (game.pool(split).tuples.len(), args.encounters),
    };
    let seed = args.seed;
    let meetings = Meetings {
        reference: agent,
        split,
        n_tuples,
        n_encounters,
        n_episodes,
        switch: None,
        seed,
        n_threads: all_threads(),
    };
    let rows = meetings.play(game)?;
    let groups = EncounterGroups::of(&rows);
    let mean = |value: fn(&EpisodeRow) -> f64| groups.estimate(0..n_episodes, value).mean;
    Ok(ReferenceRow {
        game: spec.id,
        preset: preset.name(),
        pool: split.name(),
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

Measured scores of scripted egos. *oracle* knows its peers, *bayes* knows only the family they come from, *static* never adapts,
*planner* knows its peers and looks ahead. Learned agents are compared with these numbers. None of them is a bound: in Predator-Prey-W
*bayes* and *planner* earn more than *oracle*. This page is written by a command and not by hand:

    pace references --markdown --encounters 400 --pool test --pool train --pool uniform:4000 > docs/references.md

A mean is over encounters with every tuple of the pool, ± its standard error; blocks are equal parts of an encounter, in
order; *keypoint* is the share of episodes in which the ego came to the game's informative place (Kuhn: a showdown). In Kuhn
Poker the values are expected rewards in closed form, so no luck of the cards is in them.
";

fn print_tables(rows: &[ReferenceRow], is_page: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut last = None;
    for row in rows {
        let title = (row.game, row.preset, &row.pool);
        if last != Some(title) {
            let is_here = |(game, preset): (&str, &Preset)| {
                (game, preset.name()) == (row.game, row.preset) && row.pool == "test"
            };
            let paper = PAPER.iter().find(|(game, preset, ..)| is_here((*game, preset)));
            let paper = paper.map_or(String::new(), |(.., oracle, pace)| {
                let oracle = oracle.map_or(String::new(), |oracle| format!("oracle {oracle}, "));
                format!(" (the paper: {oracle}PACE {pace})")
            });
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
        let mean = in_words(&row.score);
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

fn in_words(score: &ReferenceRecord) -> String {
    let error = score.standard_error.map_or("?".to_owned(), |error| format!("{error:.4}"));
    format!("{:.4} ± {error}", score.mean)
}
