//! One golden text per game: a change of rules, observations, peers or random numbers is a readable difference.
//! `UPDATE_GOLDEN=1` rewrites the files.

use std::fmt::Write;
use std::path::Path;

use pace_games::{GAMES, GameEntry, GameSpec, Moment, NO_ACTION, Preset, ScriptedEncounter, Seed, Split};

/// Steps per reference agent: several hands of poker, or most of an episode of the other games.
const N_STEPS: usize = 24;

fn playthrough(entry: &GameEntry) -> String {
    let mut text = String::new();
    for preset in Preset::RULES {
        let game = entry.open(preset, &serde_json::Map::new()).expect("presets are valid");
        let spec = game.spec();
        let facts = serde_json::to_string_pretty(spec).expect("facts are plain data");
        let pool = game.pool(Split::Train);
        writeln!(
            text,
            "preset {}: {}\nspec: {facts}\npool: {}",
            preset.name(),
            game.config(),
            pool.content_hash
        )
        .unwrap();
        for reference in ["random", "oracle"] {
            writeln!(text, "\n=== {reference} ===").unwrap();
            let encounter = ScriptedEncounter {
                reference,
                split: Split::Test,
                tuple: 1,
                n_episodes: 12,
                seed: Seed::new(7),
            };
            let mut session = game.reference_session(&encounter).expect("every game has these references");
            for _ in 0..N_STEPS {
                write_moment(&mut text, spec, session.moment());
                session.step().expect("references are distributions");
            }
        }
        writeln!(text).unwrap();
    }
    text
}

fn write_moment(text: &mut String, spec: &GameSpec, moment: Moment<'_>) {
    let name = |action: u8| match action {
        NO_ACTION => "-",
        action => spec.action_names[usize::from(action)],
    };
    if let Some(step) = moment.step {
        let peers: Vec<&str> = step.peer_actions.iter().map(|action| name(*action)).collect();
        writeln!(
            text,
            "> ego {}, peers {}: reward {:.6}, {:?}, {:?}, keypoint {}",
            name(step.ego_action),
            peers.join(" "),
            step.outcome.task_reward,
            step.outcome.boundary,
            step.outcome.ending,
            step.outcome.keypoint_visited
        )
        .unwrap();
    }
    let state = moment.encounter.render();
    writeln!(text, "[episode {} step {}]\n{state}", moment.episode + 1, moment.n_steps).unwrap();
    let seen = moment.observation.iter().enumerate().filter(|(_, value)| **value != 0.0);
    let seen: Vec<String> = seen.map(|(place, value)| format!("{place}:{value:.6}")).collect();
    writeln!(text, "observation {}", seen.join(" ")).unwrap();
}

#[test]
fn every_game_matches_its_playthrough() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("playthroughs");
    for entry in GAMES {
        let path = folder.join(format!("{}.txt", entry.id));
        let found = playthrough(entry);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &found).expect("the playthrough can be written");
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}; UPDATE_GOLDEN=1 writes it", path.display());
        });
        for (number, (found, golden)) in found.lines().zip(golden.lines()).enumerate() {
            assert_eq!(found, golden, "{} line {}; UPDATE_GOLDEN=1 rewrites it", path.display(), number + 1);
        }
        assert_eq!(found.lines().count(), golden.lines().count(), "{}", path.display());
    }
}
