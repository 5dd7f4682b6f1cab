//! Every game keeps the contract, under every preset.

use pace_games::{GAMES, Preset, Seed};

#[test]
fn every_game_keeps_the_contract() {
    for entry in GAMES {
        for preset in Preset::ALL {
            let game = entry.open(preset, &serde_json::Map::new()).expect("presets are valid");
            let checks = game.check_contract(Seed::new(1)).unwrap_or_else(|breach| panic!("{breach}"));
            assert_eq!(checks.len(), 8);
        }
    }
}
