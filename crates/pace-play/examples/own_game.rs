//! cargo run --release -p pace-play --example own_game
//!
//! Serves a game of another crate on the play page: matching pennies from the example `new_game`, next to the games of pace.
//! The game has no drawing, so the page shows its state as text, with a button for each action.

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
    let mut catalog = AgentCatalog::scripted()?;
    catalog.add_scripted(&game)?;
    // Any free port.
    let config = ServerConfig { port: 0, ..ServerConfig::default() };
    let log = Arc::new(|line: &str| eprintln!("{line}"));
    serve(catalog, config, None, log, |address| println!("http://{address}/"))?;
    Ok(())
}
