//! The pools of every game, under every preset and with the keys that change pools.

use pace_games::{AnyGame, GAMES, Preset, Split};
use serde_json::{Map, Value, json};

/// Values of the keys of a game that change its pools.
fn pool_keys(game: &str) -> Vec<Value> {
    match game {
        "overcooked" => ["official", "human-like"]
            .into_iter()
            .flat_map(|pool| [9, 6, 4, 2].map(|dishes| json!({ "pool": pool, "pool_recipes": dishes })))
            .chain([json!({ "pool": "uniform" })])
            .collect(),
        "predator-prey" => [3, 5]
            .into_iter()
            .flat_map(|n_peers| {
                let (n_train, n_test) = if n_peers == 3 { (16, 24) } else { (144, 144) };
                [
                    json!({ "n_peers": n_peers, "n_train_tuples": 5, "n_test_tuples": 7 }),
                    json!({ "n_peers": n_peers, "n_train_tuples": n_train, "n_test_tuples": n_test }),
                    json!({ "n_peers": n_peers, "rotated_tuples": true }),
                    json!({ "n_peers": n_peers, "rotated_tuples": true, "augmented_copies": 8 }),
                ]
            })
            .collect(),
        _ => vec![json!({})],
    }
}

fn tuples(game: &dyn AnyGame, split: Split) -> Vec<Value> {
    game.pool(split).tuples.into_iter().map(|tuple| tuple.specs).collect()
}

#[test]
fn validation_peers_are_in_no_other_pool() {
    for entry in GAMES {
        let (mut validation, mut others): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
        for preset in Preset::ALL {
            for keys in pool_keys(entry.id) {
                let game = entry.open(preset, keys.as_object().expect("an object")).expect("valid keys");
                let here = tuples(&*game, Split::Validation);
                assert!(here.len() >= 18, "{} with {keys} has {} tuples", entry.id, here.len());
                validation
                    .extend(here.into_iter().filter(|tuple| !validation.contains(tuple)).collect::<Vec<_>>());
                for split in [Split::Train, Split::Test, Split::Uniform(500)] {
                    let here = tuples(&*game, split);
                    others
                        .extend(here.into_iter().filter(|tuple| !others.contains(tuple)).collect::<Vec<_>>());
                }
            }
        }
        for tuple in &validation {
            assert!(!others.contains(tuple), "{}: {tuple}", entry.id);
        }
    }
}

#[test]
fn keys_of_the_training_pool_keep_the_validation_peers() {
    for (entry, keys) in [
        ("overcooked", json!({ "pool_recipes": 2 })),
        ("predator-prey", json!({ "n_train_tuples": 3, "rotated_tuples": true, "augmented_copies": 2 })),
    ] {
        let entry = GAMES.iter().find(|game| game.id == entry).expect("a game");
        let open = |keys: &Map<String, Value>| {
            tuples(&*entry.open(Preset::Paper, keys).expect("valid keys"), Split::Validation)
        };
        assert_eq!(open(keys.as_object().expect("an object")), open(&Map::new()), "{}", entry.id);
    }
}
