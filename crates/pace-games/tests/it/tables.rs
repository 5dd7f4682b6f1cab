//! Tables: a person may take any peer's seat, does as it likes, and sees no more than that seat does.

use std::collections::BTreeMap;

use pace_games::{
    Action, AnyGame, AnyTable, Boundary, Ego, GAMES, JointAction, MAX_SEATS, NO_ACTION, Preset, Seat,
    Seed, Split, Stream, TableMove, Viewpoint,
};
use serde_json::Value;

fn games() -> impl Iterator<Item = Box<dyn AnyGame>> {
    let presets =
        GAMES.iter().flat_map(|entry| [Preset::Paper, Preset::Reference].map(|preset| (entry, preset)));
    presets.map(|(entry, preset)| entry.open(preset, &serde_json::Map::new()).expect("presets are valid"))
}

/// Plays an encounter to its end; `person` is asked for everybody but the ego.
fn play(
    game: &dyn AnyGame,
    table: &mut dyn AnyTable,
    ego: &mut dyn Ego,
    rng: &mut Stream,
    person: &mut dyn FnMut(&dyn AnyTable, Seat) -> Action,
    onlooker: &mut dyn FnMut(&dyn AnyTable, Option<&TableMove>),
) -> usize {
    let spec = game.spec();
    let (mut observation, mut probabilities) =
        (vec![0.0; spec.observation_size], vec![0.0; spec.n_actions()]);
    let mut n_moves = 0;
    ego.begin_encounter();
    onlooker(table, None);
    loop {
        let mut chosen: JointAction = [NO_ACTION; MAX_SEATS];
        for seat in (0..spec.n_seats()).map(Seat).filter(|seat| table.asked().contains(*seat)) {
            chosen[seat.0] = if seat == Seat::EGO {
                table.observe(seat, &mut observation);
                ego.probabilities(&observation, &mut probabilities);
                let weights: Vec<f64> = probabilities.iter().map(|p| f64::from(*p)).collect();
                let action = rng.weighted(&weights) as Action;
                ego.acted(&observation, action);
                action
            } else {
                person(table, seat)
            };
        }
        let played = table.play(&chosen);
        n_moves += 1;
        onlooker(table, Some(&played));
        if played.boundary != Boundary::WithinEpisode {
            table.observe(Seat::EGO, &mut observation);
            ego.end_episode(&observation);
        }
        match played.boundary {
            Boundary::WithinEpisode => {}
            Boundary::EpisodeEnd => table.next_episode(),
            Boundary::EncounterEnd => return n_moves,
        }
    }
}

#[test]
fn among_scripted_peers_a_table_plays_as_an_encounter_does() {
    for game in games() {
        let (seed, n_episodes) = (Seed::new(3), 4);
        let n_actions = game.spec().n_actions() as u32;
        let mut encounter = game.encounter(Split::Test, 1, n_episodes, seed).expect("an encounter");
        let mut table = game.table(Split::Test, 1, &[], n_episodes, seed).expect("a table");
        let mut rng = seed.stream("ego");
        let mut observation = vec![0.0; game.spec().observation_size];
        loop {
            let action = rng.below(n_actions) as Action;
            let step = encounter.step(action);
            let mut earned = 0.0;
            let mut chosen = [NO_ACTION; MAX_SEATS];
            chosen[Seat::EGO.0] = action;
            let boundary = loop {
                let played = table.play(&chosen);
                earned += played.moved.task_reward;
                if played.boundary != Boundary::WithinEpisode || table.asked().contains(Seat::EGO) {
                    break played.boundary;
                }
            };
            table.observe(Seat::EGO, &mut observation);
            assert_eq!((earned, boundary), (step.task_reward, step.boundary), "{}", game.spec().id);
            assert_eq!(observation, encounter.observation(), "{}", game.spec().id);
            match boundary {
                Boundary::WithinEpisode => {}
                Boundary::EpisodeEnd => {
                    encounter.next_episode();
                    table.next_episode();
                }
                Boundary::EncounterEnd => break,
            }
        }
    }
}

#[test]
fn every_ego_bears_with_whoever_sits_down() {
    for game in games() {
        let n_actions = game.spec().n_actions() as u32;
        for name in game.blind_names() {
            for slot in 0..game.spec().n_peers() {
                for luck in 0..4 {
                    let seed = Seed::new(luck).child(name, &[slot as u64]);
                    let seat = Seat::of_peer(slot);
                    let n_episodes = game.spec().episodes_per_encounter.min(12);
                    let mut table = game.table(Split::Test, 0, &[seat], n_episodes, seed).expect("a table");
                    let mut ego = game.blind_ego(name).expect("a blind ego");
                    let mut rng = seed.stream("person");
                    // Some do anything at all, some keep at one thing for a while.
                    let mut habit = 0;
                    let mut person = |_: &dyn AnyTable, _: Seat| {
                        if luck % 2 == 0 || rng.chance(0.3) {
                            habit = rng.below(n_actions) as Action;
                        }
                        habit
                    };
                    let n_moves = play(
                        &*game,
                        &mut *table,
                        &mut *ego,
                        &mut seed.stream("ego"),
                        &mut person,
                        &mut |_, _| {},
                    );
                    assert!(n_moves >= n_episodes);
                    assert!(!table.portrait(seat).lines.is_empty());
                    for opinions in ego.opinions() {
                        let total: f32 = opinions.iter().map(|opinion| opinion.probability).sum();
                        assert!((total - 1.0).abs() < 1e-3, "{} {name}: {total}", game.spec().id);
                    }
                }
            }
        }
    }
}

#[test]
fn a_view_shows_a_seat_what_its_observation_shows_and_no_more() {
    for game in games() {
        let spec = game.spec();
        let (seat, seed) = (Seat::of_peer(0), Seed::new(11));
        let n_episodes = 5;
        let mut seen: Vec<(Vec<u32>, String)> = Vec::new();
        for luck in 0..6 {
            let seed = seed.child("luck", &[luck]);
            let mut table = game.table(Split::Test, 0, &[seat], n_episodes, seed).expect("a table");
            let mut ego = game.blind_ego("random").expect("random is blind");
            let mut rng = seed.stream("person");
            let mut person = |_: &dyn AnyTable, _: Seat| rng.below(spec.n_actions() as u32) as Action;
            let mut onlooker = |table: &dyn AnyTable, _: Option<&TableMove>| {
                let mut observation = vec![0.0; spec.observation_size];
                table.observe(seat, &mut observation);
                seen.push((
                    observation.iter().map(|v| v.to_bits()).collect(),
                    table.view(Viewpoint::Seat(seat)).to_string(),
                ));
                let all = table.view(Viewpoint::Omniscient);
                assert!(!all.to_string().contains("null") || spec.id != "kuhn-poker", "{all}");
            };
            play(&*game, &mut *table, &mut *ego, &mut seed.stream("ego"), &mut person, &mut onlooker);
        }
        assert!(seen.len() > 20);
        if spec.id == "kuhn-poker" {
            // While the cards are down, the ego's is not there.
            for (observation, view) in &seen {
                let is_open = observation[10..].iter().any(|value| *value != 0);
                let view: Value = serde_json::from_str(view).expect("a view");
                assert_eq!(view["ego"]["card"].is_null(), !is_open, "{view}");
                assert!(!view["peer"]["card"].is_null());
            }
        }
        if spec.id == "overcooked" {
            for (observation, view) in &seen {
                let view: Value = serde_json::from_str(view).expect("a view");
                let sees_other = f32::from_bits(observation[5]) == 1.0;
                assert_eq!(!view["cooks"][0].is_null(), sees_other, "{view}");
                let n_seen = (0..12).filter(|object| f32::from_bits(observation[8 + 3 * object]) == 1.0);
                let n_movable = n_seen.filter(|object| *object > 1).count();
                assert_eq!(view["things"].as_array().map(Vec::len), Some(n_movable), "{view}");
            }
        }
        if spec.id == "predator-prey" {
            for (observation, view) in &seen {
                let view: Value = serde_json::from_str(view).expect("a view");
                let agents = view["agents"].as_array().expect("agents");
                let others = agents.iter().enumerate().filter(|(agent, _)| *agent != seat.0);
                for (place, (_, agent)) in others.enumerate() {
                    assert_eq!(!agent.is_null(), f32::from_bits(observation[22 + place]) == 1.0, "{view}");
                }
            }
        }
    }
}

#[test]
fn an_ego_that_is_told_its_peers_sits_at_no_table() {
    for game in games() {
        assert!(!game.blind_names().contains(&"oracle"));
        assert!(game.blind_ego("oracle").is_err() && game.blind_ego("nobody").is_err());
    }
}

#[test]
fn kinds_as_data_tell_apart_what_kinds_in_words_do() {
    for game in games() {
        let mut known: BTreeMap<(usize, String), Value> = BTreeMap::new();
        for tuple in [Split::Train, Split::Test].into_iter().flat_map(|split| game.pool(split).tuples) {
            for (slot, (kind, data)) in tuple.kinds.iter().zip(&tuple.kind_data).enumerate() {
                let before = known.entry((slot, kind.clone())).or_insert_with(|| data.clone());
                // Three digits of a number are enough for people.
                assert!(before == data || game.spec().id == "kuhn-poker", "{kind}: {before} and {data}");
                assert!(data.is_object(), "{kind}: {data}");
            }
        }
        for ((slot, kind), data) in &known {
            let alike = known.iter().filter(|((other, _), found)| other == slot && *found == data).count();
            assert_eq!(alike, 1, "{kind}: {data}");
        }
    }
}
