//! `pace check`: runs the conformance checks of the `Game` trait on a game.

use std::io::Write;

use clap::Args;
use pace_games::Seed;

use crate::game_args::GameArgs;
use crate::ranges::seed;

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    game: GameArgs,
    /// Random seed of the checked episodes.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
}

pub fn run(args: &CheckArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let game = args.game.open()?;
    let checks = game.check_contract(Seed::new(args.seed))?;
    for check in &checks {
        writeln!(out, "ok  {check}")?;
    }
    writeln!(out, "{}: all {} conformance checks passed", game.spec().id, checks.len())?;
    Ok(())
}
