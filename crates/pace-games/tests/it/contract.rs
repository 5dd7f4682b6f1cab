//! Every game keeps the contract, under every preset.

use pace_games::{GAMES, GameEntry, Preset, Seed, find_game};
use serde_json::{Map, Value, json};

fn keeps_the_contract(entry: &GameEntry, preset: Preset, keys: &Map<String, Value>) {
    let game = entry.open(preset, keys).expect("the keys are valid");
    let checks =
        game.check_contract(Seed::new(1)).unwrap_or_else(|violation| panic!("{keys:?}: {violation}"));
    assert_eq!(checks.len(), 9);
}

#[test]
fn every_game_keeps_the_contract() {
    for entry in GAMES {
        for preset in Preset::RULES {
            keeps_the_contract(entry, preset, &Map::new());
        }
    }
}

#[test]
fn augmented_pools_keep_the_contract() {
    let entry = find_game("predator-prey").expect("a game");
    for n_peers in [3, 5] {
        for augmented_copies in [1, 3] {
            let keys =
                json!({ "n_peers": n_peers, "rotated_tuples": true, "augmented_copies": augmented_copies });
            keeps_the_contract(entry, Preset::Paper, keys.as_object().expect("an object"));
        }
    }
}
