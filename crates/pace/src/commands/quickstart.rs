//! `pace quickstart`: the ten unseen peers of Kuhn poker, and who adapts to them.

use std::io::Write;

use clap::Args;
use pace_games::{Preset, Split, find_game};
use serde_json::Map;

use pace_lab::{Meetings, blocks};

#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// Encounters with each of the ten peers.
    #[arg(long, default_value_t = 200)]
    encounters: usize,
    /// The seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub fn run(args: &QuickstartArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    anyhow::ensure!(args.encounters >= 2, "--encounters: found {}, expected at least 2", args.encounters);
    let game = find_game("kuhn-poker")?.open(Preset::Paper, &Map::new())?;
    let n_episodes = game.spec().episodes_per_encounter;
    let n_tuples = game.pool(Split::Test).tuples.len();
    writeln!(
        out,
        "Kuhn Poker: {} encounters of {n_episodes} hands with each of {n_tuples} peers nobody has met before.\n\
         Expected reward per hand, in blocks of ten hands (± standard error):\n",
        args.encounters
    )?;
    write!(out, "{:<10}", "hands")?;
    for block in blocks(n_episodes) {
        write!(out, "{:>9}", format!("{}-{}", block.start + 1, block.end))?;
    }
    writeln!(out, "{:>18}", "all")?;
    for reference in ["oracle", "bayes", "static", "nash", "random"] {
        let meetings = Meetings {
            reference,
            split: Split::Test,
            n_tuples,
            n_encounters: args.encounters,
            n_episodes,
            seed: args.seed,
        };
        let outcomes = meetings.play(&*game)?;
        write!(out, "{reference:<10}")?;
        let score = |range| outcomes.score(range, |outcome| outcome.score(game.spec().metric));
        for block in blocks(n_episodes) {
            write!(out, "{:>9.4}", score(block).mean)?;
        }
        let all = score(0..n_episodes);
        writeln!(out, "{:>18}", format!("{:.4} ± {:.4}", all.mean, all.standard_error))?;
    }
    writeln!(
        out,
        "\noracle knows its peer. bayes does not: it starts near static and ends near oracle, within one encounter and\n\
         without any training. That is what a learned agent is measured against.\n\n\
         Next: pace watch kuhn-poker --peer 3    pace watch overcooked    pace list games    pace references"
    )?;
    Ok(())
}
