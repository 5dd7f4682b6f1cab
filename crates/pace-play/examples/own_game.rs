//! cargo run --release -p pace-play --example own_game
//!
//! A game from outside the crates on the play page: the matching pennies of `new_game`, next to the games that come with pace. It has
//! no page of its own, so the state is shown as text, with a button for each action.

use std::sync::Arc;

use pace_games::{AnyGame, GameEntry, Preset};
use pace_play::{AgentCatalog, ServerConfig, serve};
use serde_json::Map;

#[allow(dead_code)]
#[path = "../../pace-games/examples/new_game.rs"]
mod new_game;

#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let game: Arc<dyn AnyGame> =
        Arc::from(GameEntry::of::<new_game::Pennies>().open(Preset::Paper, &Map::new())?);
    let mut offers = AgentCatalog::scripted()?;
    offers.add_scripted(&game)?;
    // Any free port.
    let config = ServerConfig { port: 0, ..ServerConfig::default() };
    let log = Arc::new(|line: &str| eprintln!("{line}"));
    serve(offers, config, None, log, |address| println!("http://{address}/"))?;
    Ok(())
}
