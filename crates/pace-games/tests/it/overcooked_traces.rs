//! PO-Overcooked replays the recorded play of the authors' code: states, rewards, both observations, goal graphs, and the inner
//! state of the rule-based peer, under the preset `reference`.

use pace_games::overcooked::{
    CUTTING_BOARD, Cell, Cook, CookPeer, CookSpec, DELIVERY_TILE, Event, EventKind, Facing, Ingredient,
    Kitchen, N_OBJECTS, OBSERVATION_SIZE, Object, Overcooked, OvercookedConfig, Recipe,
};
use pace_games::{Action, Ending, Game, MAX_SEATS, NO_ACTION, Preset, PresetConfig, Seat};
use serde_json::Value;

use crate::traces::{assert_close, document, integers, numbers, records};

const PEER: Seat = Seat(1);

fn game() -> Overcooked {
    Overcooked::new(OvercookedConfig::preset(Preset::Reference)).expect("presets are valid")
}

#[test]
fn uniformly_random_cooks() {
    check_episodes("overcooked_uniform.jsonl.gz");
}

#[test]
fn biased_and_scripted_cooks() {
    check_episodes("overcooked_biased.jsonl.gz");
}

#[test]
fn cooks_with_the_original_peer() {
    check_episodes("overcooked_peer.jsonl.gz");
}

fn check_episodes(file: &str) {
    let game = game();
    for record in records(file) {
        let id = &record["id"];
        let mut kitchen = recorded_kitchen(&record["init"]);
        check_state(&game, &kitchen, &record["init"], &|| format!("{file} episode {id} at the start"));
        for (index, step) in record["steps"].as_array().expect("steps").iter().enumerate() {
            let place = || format!("{file} episode {id} step {index}");
            assert!(!game.acting_seats(&kitchen).is_empty(), "{}: the episode is over", place());
            let mut actions = [NO_ACTION; MAX_SEATS];
            for (seat, action) in integers(&step["a"]).into_iter().enumerate() {
                actions[seat] = action as Action;
            }
            let moved = game.apply(&mut kitchen, &actions);
            check_state(&game, &kitchen, step, &place);
            let recorded = step["r"].as_f64().expect("a reward");
            assert!((moved.task_reward - recorded).abs() <= 1e-6, "{}: {moved:?}, {recorded}", place());
            let ending = match (&step["d"], &step["s"], &step["to"]) {
                (d, s, to) if *d == 1 && *s == 1 && *to == 0 => Some(Ending::Succeeded),
                (d, s, to) if *d == 1 && *s == 0 && *to == 1 => Some(Ending::TimedOut),
                (d, s, to) if *d == 0 && *s == 0 && *to == 0 => None,
                flags => panic!("{}: flags {flags:?}", place()),
            };
            assert_eq!(moved.ending, ending, "{}", place());
            assert_eq!(game.acting_seats(&kitchen).is_empty(), ending.is_some(), "{}", place());
            let is_lower = kitchen.cooks.map(|cook| i64::from(!cook.cell.is_upper()));
            assert_eq!(is_lower.to_vec(), integers(&step["k"]), "{}", place());
            assert_eq!(i64::from(moved.keypoint_visited), is_lower[0], "{}", place());
            let nodes = kitchen.progress.nodes().map(i64::from);
            assert_eq!(nodes.to_vec(), integers(&step["g"]), "{}", place());
        }
    }
}

/// Compares everything a recorded state block holds.
fn check_state(game: &Overcooked, kitchen: &Kitchen, block: &Value, place: &dyn Fn() -> String) {
    game.check_state(kitchen).unwrap_or_else(|error| panic!("{}: {error}", place()));
    let expected = recorded_kitchen(block);
    assert_eq!(kitchen.cooks, expected.cooks, "{}", place());
    assert_eq!(kitchen.cells, expected.cells, "{}", place());
    assert_eq!(kitchen.chopped, expected.chopped, "{}", place());
    assert_eq!(kitchen.dish, expected.dish, "{}", place());
    for (seat, field) in [(Seat::EGO, "o"), (PEER, "p")] {
        let mut observation = [f32::NAN; OBSERVATION_SIZE];
        game.observe(kitchen, seat, &mut observation);
        assert_close(&observation, &block[field], || format!("{}: view of {seat:?}", place()));
    }
}

#[test]
fn inner_state_of_the_peer() {
    let game = game();
    for record in records("overcooked_peer.jsonl.gz") {
        let spec = recorded_spec(&record["peer"]);
        let mut kitchen = recorded_kitchen(&record["init"]);
        let mut event = recorded_event(&record["ev0"]);
        for (index, step) in record["steps"].as_array().expect("steps").iter().enumerate() {
            let place = || format!("episode {} step {index}", record["id"]);
            let pe = &step["pe"];
            let peer = CookPeer::with_event(spec, event);
            check_possible_events(&peer, &kitchen, &pe["av"], &place);
            let chosen = recorded_event(&pe["ev"]);
            if peer.is_event_possible(&kitchen) {
                assert_eq!(chosen, event, "{}", place());
            } else {
                let open = peer.possible_events(&kitchen, PEER);
                match chosen {
                    Some(_) => assert!(open.contains(&chosen), "{}", place()),
                    None => assert_eq!(open, [None; 6], "{}", place()),
                }
            }
            let next = peer.next_action(&kitchen.cooks[PEER.0], chosen);
            let planned = pe["plan"].as_u64().expect("an action") as Action;
            assert!(next.options().iter().any(|(action, _)| *action == planned), "{}: {next:?}", place());
            assert_eq!(next.completes_event, pe["fin"] == 1, "{}", place());
            let action = integers(&step["a"])[1] as Action;
            if pe["rnd"] == 0 {
                assert_eq!(action, planned, "{}", place());
            } else {
                assert!(chosen.is_some() && action < 5, "{}: a random {action}", place());
            }
            let (actions, events) = peer.probabilities(&game, &kitchen, PEER);
            assert!(actions[usize::from(action)] > 0.0, "{}: {actions:?}", place());
            assert!(events[chosen.map_or(6, |event| event.kind as usize)] > 0.0, "{}", place());
            event = if next.completes_event { None } else { chosen };
            assert_eq!(event, recorded_event(&pe["after"]), "{}", place());
            kitchen = recorded_kitchen(step);
        }
    }
}

#[test]
fn decisions_in_prepared_states() {
    let game = game();
    for record in records("overcooked_decisions.jsonl.gz") {
        let place = || format!("prepared state {}", record["id"]);
        let kitchen = recorded_kitchen(&record);
        game.check_state(&kitchen).unwrap_or_else(|error| panic!("{}: {error}", place()));
        let peer = CookPeer::with_event(recorded_spec(&record["peer"]), recorded_event(&record["ev"]));
        check_possible_events(&peer, &kitchen, &record["av"], &place);
        let (actions, events) = peer.probabilities(&game, &kitchen, PEER);
        let n = record["n"].as_f64().expect("a count");
        for (probabilities, counts) in [(&actions[..], &record["actions"]), (&events[..], &record["events"])]
        {
            let counts = numbers(counts);
            assert_eq!(counts.len(), probabilities.len(), "{}", place());
            for (q, count) in probabilities.iter().zip(counts) {
                let allowed = if *q == 0.0 { 0.0 } else { 5.0 * (n * q * (1.0 - q)).max(0.0).sqrt() + 1.0 };
                assert!((count - n * q).abs() <= allowed, "{}: {count} of {n}, expected {q}", place());
            }
        }
    }
}

/// `av` is null where the event stands, else the list of events to choose from.
fn check_possible_events(peer: &CookPeer, kitchen: &Kitchen, recorded: &Value, place: &dyn Fn() -> String) {
    assert_eq!(peer.is_event_possible(kitchen), recorded.is_null() && peer.event().is_some(), "{}", place());
    if let Some(list) = recorded.as_array() {
        let open: Vec<Event> = peer.possible_events(kitchen, PEER).into_iter().flatten().collect();
        let recorded: Vec<Event> = list.iter().map(|event| recorded_event(event).expect("one")).collect();
        assert_eq!(open, recorded, "{}", place());
    }
}

#[test]
fn official_pools() {
    let pool = game().pool();
    let members: Vec<_> = pool.train().iter().chain(pool.test()).map(|tuple| tuple.specs[0]).collect();
    let Some(entries) = document("pools.json") else { return };
    let entries = entries.as_array().expect("a list");
    let mut n_found = 0;
    for entry in entries.iter().filter(|entry| entry["game"] == "overcooked") {
        let index = entry["index"].as_u64().expect("an index") as usize;
        let (found, recorded) = (members[index], recorded_spec(entry));
        let is_train = index < pool.train().len();
        assert_eq!(entry["split"], if is_train { "train" } else { "test" }, "peer {index}");
        assert_eq!(found.recipe, recorded.recipe, "peer {index}");
        assert!((found.p_nav - recorded.p_nav).abs() <= 1e-12, "peer {index}");
        assert!((found.p_act - recorded.p_act).abs() <= 1e-12, "peer {index}");
        for (one, other) in found.weights.iter().zip(recorded.weights) {
            assert!((one - other).abs() <= 1e-12, "peer {index}");
        }
        n_found += 1;
    }
    assert!(n_found > 0, "no Overcooked peers among the recorded pools");
}

/// A state from the fields `ag`, `ob` and `pl`.
fn recorded_kitchen(block: &Value) -> Kitchen {
    let lists = |field: &str| -> Vec<Vec<i64>> {
        block[field].as_array().expect("a list of lists").iter().map(integers).collect()
    };
    let object = |number: i64| Object::ALL[number as usize];
    let cooks: Vec<Cook> = lists("ag")
        .into_iter()
        .map(|cook| Cook {
            cell: Cell::new(cook[0] as u8, cook[1] as u8),
            facing: Facing::of_action(cook[2] as Action).expect("an orientation"),
            held: (cook[3] >= 0).then(|| object(cook[3])),
        })
        .collect();
    let (mut cells, mut chopped) = ([CUTTING_BOARD; N_OBJECTS], [false; N_OBJECTS]);
    cells[1] = DELIVERY_TILE;
    for (index, entry) in lists("ob").into_iter().enumerate() {
        cells[index + 2] = Cell::new(entry[0] as u8, entry[1] as u8);
        chopped[index + 2] = entry.get(2) == Some(&1);
    }
    let dish: Vec<Object> = integers(&block["pl"]).into_iter().map(object).collect();
    let kitchen = Kitchen::arranged(cooks.try_into().expect("two cooks"), cells, chopped, &dish);
    assert_eq!(kitchen.cells, cells, "held and plated objects of a recorded state have their cells");
    kitchen
}

fn recorded_event(value: &Value) -> Option<Event> {
    let [kind, x, y] = integers(value.is_array().then_some(value)?)[..] else { panic!("{value}") };
    Some(Event { kind: EventKind::ALL[kind as usize], target: Cell::new(x as u8, y as u8) })
}

fn recorded_spec(value: &Value) -> CookSpec {
    let ingredient = |index: usize| -> Ingredient {
        serde_json::from_value(value["recipe"][index].clone()).expect("an ingredient")
    };
    CookSpec {
        recipe: Recipe { left: ingredient(0), right: ingredient(1) },
        p_nav: value["p_nav"].as_f64().expect("a probability"),
        p_act: value["p_act"].as_f64().expect("a probability"),
        weights: numbers(&value["weights"]).try_into().expect("six weights"),
        human: None,
    }
}
