//! Tests of PO-Overcooked: initial states, rewards, the peer and the scores of reference agents. Recorded play of the authors'
//! code is replayed in `tests/it/overcooked_traces.rs`.

use proptest::prelude::{Strategy as _, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::{Map, json};

use super::kitchen::{
    CUTTING_BOARD, Cell, Cook, DELIVERY_TILE, DIVIDER, Facing, INTERACT, Kitchen, N_OBJECTS, Object, STAY,
};
use super::peers::{CookPeer, CookSpec, Event, EventKind, MIN_DISTANCE};
use super::planner::{ItemMemory, WalkDistances};
use super::recipes::{GoalProgress, Ingredient, Recipe};
use super::references::served_within;
use super::{OBSERVATION_SIZE, Overcooked, OvercookedConfig, view};
use crate::config::{ConfigError, Preset, PresetConfig, configure};
use crate::ego::play_test_pool;
use crate::encounter::{Encounter, PeerStepBuffers};
use crate::game::{Action, Boundary, Ending, Game, JointAction, MAX_SEATS, Metric, NO_ACTION, Seat};
use crate::peer::Peer;
use crate::seed::Seed;

const PEER: Seat = Seat(1);

fn game(preset: Preset) -> Overcooked {
    Overcooked::new(OvercookedConfig::preset(preset)).expect("presets are valid")
}

fn game_with(key: &str, value: serde_json::Value) -> Result<Overcooked, ConfigError> {
    let overrides = Map::from_iter([(key.to_owned(), value)]);
    Overcooked::new(configure(Preset::Paper, &overrides)?)
}

/// Tomato on (0,2) next to the ego, the plate on (3,3), carrot above; the peer has moved its own carrot and waits.
fn tidy_cells() -> [Cell; N_OBJECTS] {
    [(0, 3), (6, 3), (3, 3), (0, 1), (0, 2), (3, 1), (3, 2), (6, 11), (1, 0), (6, 9), (2, 0), (3, 10)]
        .map(|(x, y)| Cell::new(x, y))
}

fn tidy_cooks() -> [Cook; 2] {
    [Cook::at_start(Cell::new(1, 2)), Cook { facing: Facing::Up, ..Cook::at_start(Cell::new(5, 3)) }]
}

/// A kitchen with `dish`, chopped, on the plate at (3,3), in which the peer waits.
fn kitchen_with_dish(dish: &[Object]) -> Kitchen {
    let mut chopped = [false; N_OBJECTS];
    let mut cells = tidy_cells();
    for food in dish {
        chopped[*food as usize] = true;
        cells[*food as usize] = cells[Object::Plate as usize];
    }
    Kitchen::arranged(tidy_cooks(), cells, chopped, dish)
}

fn spec(left: Ingredient, right: Ingredient) -> CookSpec {
    CookSpec { recipe: Recipe { left, right }, p_nav: 0.5, p_act: 0.0, weights: [1.0 / 6.0; 6], human: None }
}

fn action(letter: char) -> Action {
    ".lrdux".find(letter).expect("one of stay, left, right, down, up, interact") as Action
}

fn joint(ego: Action, peer: Action) -> JointAction {
    let mut actions = [NO_ACTION; MAX_SEATS];
    (actions[0], actions[1]) = (ego, peer);
    actions
}

/// Plays the actions `ego` while the peer stays, and compares the rewards without the cost of the steps.
fn check_earned(kitchen: &mut Kitchen, ego: &str, expected: &[f64]) {
    let game = game(Preset::Paper);
    let earned: Vec<f64> = ego
        .chars()
        .map(|letter| game.apply(kitchen, &joint(action(letter), STAY)).task_reward + 0.2)
        .map(|earned| (earned * 1e9).round() / 1e9)
        .collect();
    assert_eq!(earned, expected, "{ego}\n{}", game.render(kitchen));
    game.check_state(kitchen).expect("play leads to possible states");
}

#[test]
fn foods_are_the_objects_with_an_ingredient() {
    assert!(Object::ALL.into_iter().filter(|object| object.ingredient().is_some()).eq(Object::FOODS));
    assert!(Object::ALL.iter().enumerate().all(|(index, object)| *object as usize == index));
}

#[test]
fn initial_states_cover_exactly_the_allowed_cells() {
    let game = game(Preset::Paper);
    let mut rng = Seed::new(1).stream("deal");
    let mut counts = [[0u32; 91]; N_OBJECTS + 2];
    for _ in 0..100_000 {
        let kitchen = game.initial_state(&mut rng);
        game.check_state(&kitchen).expect("deals are possible");
        assert_eq!(kitchen.cooks.map(|cook| (cook.facing, cook.held)), [(Facing::Left, None); 2]);
        let cells = kitchen.cells.into_iter().chain(kitchen.cooks.map(|cook| cook.cell));
        for (count, cell) in counts.iter_mut().zip(cells) {
            count[usize::from(cell.y) * 7 + usize::from(cell.x)] += 1;
        }
    }
    // The share of initial states in which each cell has the object, from the rule of uniform free cells.
    let plate_share = 1.0 / 3.0;
    let upper = |cell: (u8, u8)| -> f64 {
        // A possible cell of the plate is free in two states of three; then 4 foods are on 4 or 5 free cells.
        let (crowded, roomy) = (2.0 / 3.0 / 4.0, 1.0 / 3.0 / 5.0);
        if cell == (3, 2) || cell == (3, 3) { roomy + crowded / 2.0 } else { roomy + crowded }
    };
    let lower = [(6, 9), (6, 10), (6, 11)];
    let check = |object: usize, cells: &[(u8, u8)], share: &dyn Fn((u8, u8)) -> f64| {
        let mut left = 100_000;
        for cell in cells {
            let count = counts[object][usize::from(cell.1) * 7 + usize::from(cell.0)];
            let expected = 100_000.0 * share(*cell);
            assert!(
                (f64::from(count) - expected).abs() < 5.0 * expected.sqrt(),
                "{object} at {cell:?}: {count}"
            );
            left -= count;
        }
        assert_eq!(left, 0, "object {object} is on a cell that is not allowed");
    };
    check(2, &[(3, 2), (3, 3), (3, 4)], &|_| plate_share);
    for object in [Object::Lettuce, Object::Tomato, Object::Potato, Object::UpperBroccoli] {
        check(object as usize, &[(0, 1), (0, 2), (3, 1), (3, 2), (3, 3)], &upper);
    }
    for object in [Object::UpperOnion, Object::UpperCarrot] {
        check(object as usize, &[(1, 0), (2, 0)], &|_| 0.5);
    }
    for object in [Object::LowerOnion, Object::LowerCarrot, Object::LowerBroccoli] {
        check(object as usize, &lower, &|_| 1.0 / 3.0);
    }
    let ego_cells: Vec<(u8, u8)> = (1..=2).flat_map(|x| (1..=8).map(move |y| (x, y))).collect();
    check(N_OBJECTS, &ego_cells, &|_| 1.0 / 16.0);
    check(N_OBJECTS + 1, &[(4, 10), (5, 10), (4, 11), (5, 11)], &|_| 0.25);
}

#[test]
fn every_step_of_a_dish_is_rewarded() {
    let game = game(Preset::Paper);
    let mut kitchen = Kitchen::arranged(tidy_cooks(), tidy_cells(), [false; N_OBJECTS], &[]);
    // Tomato: pick, board, chop, take, plate.
    check_earned(&mut kitchen, "xdlxxxrx", &[0.5, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 1.0]);
    // Carrot: also fetched, chopped and plated; plating the second ingredient gives 2.
    check_earned(&mut kitchen, "uuxddlxxxrx", &[0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 2.0]);
    for (letter, earned, ending) in
        [('l', 0.0, None), ('x', 0.5, None), ('r', 0.0, None), ('x', 10.0, Some(Ending::Succeeded))]
    {
        let moved = game.apply(&mut kitchen, &joint(STAY, action(letter)));
        assert!((moved.task_reward - (earned - 0.2)).abs() < 1e-9, "{letter}: {moved:?}");
        assert_eq!(moved.ending, ending);
    }
    assert!(game.acting_seats(&kitchen).is_empty());
}

#[test]
fn chopping_is_rewarded_only_if_a_dish_can_use_it() {
    // With tomato on the plate, no dish can use potato.
    let mut kitchen = kitchen_with_dish(&[Object::Tomato]);
    kitchen.cooks[0] = Cook { facing: Facing::Right, ..Cook::at_start(Cell::new(2, 1)) };
    check_earned(&mut kitchen, "xlddlxx", &[0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    // No dish can use a second broccoli.
    let mut cells = tidy_cells();
    let mut chopped = [false; N_OBJECTS];
    chopped[Object::UpperBroccoli as usize] = true;
    cells[Object::LowerBroccoli as usize] = CUTTING_BOARD;
    let ego = Cook::at_start(Cell::new(1, 3));
    let mut kitchen = Kitchen::arranged([ego, tidy_cooks()[1]], cells, chopped, &[]);
    check_earned(&mut kitchen, "x", &[0.0]);
}

#[test]
fn third_ingredient_earns_nothing_and_stays_on_the_plate() {
    let mut kitchen = kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot]);
    kitchen.chopped[Object::Potato as usize] = true;
    kitchen.cells[Object::Potato as usize] = Cell::new(2, 3);
    kitchen.cooks[0] = Cook { cell: Cell::new(2, 3), facing: Facing::Right, held: Some(Object::Potato) };
    let before = kitchen.progress;
    check_earned(&mut kitchen, "x", &[0.0]);
    assert_eq!(kitchen.dish().count(), 3);
    assert_eq!(kitchen.progress, before, "ruined graphs keep their nodes");
    // A second piece of a kind stays in the hand, and the plate does not change.
    let mut kitchen = kitchen_with_dish(&[Object::UpperCarrot]);
    kitchen.chopped[Object::LowerCarrot as usize] = true;
    kitchen.cells[Object::LowerCarrot as usize] = Cell::new(2, 3);
    kitchen.cooks[0] = Cook { cell: Cell::new(2, 3), facing: Facing::Right, held: Some(Object::LowerCarrot) };
    check_earned(&mut kitchen, "x", &[0.0]);
    assert_eq!((kitchen.dish().count(), kitchen.cooks[0].held), (1, Some(Object::LowerCarrot)));
}

#[test]
fn a_held_plate_takes_chopped_food_from_a_counter() {
    let (mut cells, mut chopped) = (tidy_cells(), [false; N_OBJECTS]);
    chopped[Object::Tomato as usize] = true;
    chopped[Object::UpperCarrot as usize] = true;
    cells[Object::UpperCarrot as usize] = Cell::new(3, 4);
    let ego = Cook { facing: Facing::Right, ..Cook::at_start(Cell::new(2, 3)) };
    let mut kitchen = Kitchen::arranged([ego, tidy_cooks()[1]], cells, chopped, &[Object::Tomato]);
    // Pick up the plate: 0.5. Turn to the carrot. Plate it: 2 for the nodes, and 0.5 for holding a new set of kinds.
    check_earned(&mut kitchen, "xdrx", &[0.5, 0.0, 0.0, 0.5 + 2.0]);
    assert!(kitchen.is_dish(Recipe { left: Ingredient::Tomato, right: Ingredient::Carrot }));
    assert_eq!(kitchen.cell(Object::UpperCarrot), Cell::new(2, 4));
    // The cutting board does not accept the plate.
    check_earned(&mut kitchen, "lulx", &[0.0; 4]);
    assert_eq!(kitchen.cooks[0].held, Some(Object::Plate));
}

/// Plays a peer with an ego that stays, until the end of the episode. Returns the last state and the ending.
fn play_without_ego(game: &Overcooked, mut kitchen: Kitchen, mut peer: CookPeer) -> (Kitchen, Ending) {
    let mut rng = Seed::new(4).stream("peer");
    loop {
        let act = peer.act(game, &kitchen, PEER, &mut rng);
        if let Some(ending) = game.apply(&mut kitchen, &joint(STAY, act)).ending {
            return (kitchen, ending);
        }
    }
}

#[test]
fn a_peer_serves_its_dish_and_no_other() {
    let game = game(Preset::Paper);
    let start = kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot]);
    for recipe in Recipe::ALL {
        let peer = CookPeer::with_event(spec(recipe.left, recipe.right), None);
        let (end, ending) = play_without_ego(&game, start.clone(), peer);
        if recipe == (Recipe { left: Ingredient::Tomato, right: Ingredient::Carrot }) {
            assert_eq!(ending, Ending::Succeeded);
        } else {
            assert_eq!(ending, Ending::TimedOut);
            assert_eq!(end.cell(Object::Plate), Cell::new(3, 3), "{recipe:?} left the plate alone");
        }
    }
}

#[test]
fn third_ingredient_stops_only_a_peer_without_an_event() {
    let game = game(Preset::Paper);
    let ruined = kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot, Object::Potato]);
    let wants = spec(Ingredient::Tomato, Ingredient::Carrot);
    let (end, ending) = play_without_ego(&game, ruined.clone(), CookPeer::with_event(wants, None));
    assert_eq!((ending, end.cell(Object::Plate)), (Ending::TimedOut, Cell::new(3, 3)));
    let committed = Event { kind: EventKind::TakePlate, target: Cell::new(3, 3) };
    let (end, ending) = play_without_ego(&game, ruined, CookPeer::with_event(wants, Some(committed)));
    assert_eq!((ending, end.cell(Object::Plate)), (Ending::TimedOut, DELIVERY_TILE));
}

#[test]
fn a_delivery_in_the_last_step_is_a_success() {
    let game = game(Preset::Paper);
    for (n_steps, expected) in [(36, Ending::Succeeded), (37, Ending::TimedOut)] {
        let mut kitchen = kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot]);
        kitchen.n_steps = n_steps;
        let peer = CookPeer::with_event(spec(Ingredient::Tomato, Ingredient::Carrot), None);
        let (end, ending) = play_without_ego(&game, kitchen, peer);
        assert_eq!((end.n_steps, ending), (40, expected));
    }
}

#[test]
fn event_survives_the_episode_only_under_the_reference_preset() {
    let event = Some(Event { kind: EventKind::PutPlate, target: DELIVERY_TILE });
    for (preset, expected) in [(Preset::Paper, None), (Preset::Reference, event)] {
        let mut peer = CookPeer::with_event(spec(Ingredient::Tomato, Ingredient::Carrot), event);
        peer.begin_episode(&game(preset));
        assert_eq!(peer.event(), expected, "{preset:?}");
    }
}

#[test]
fn random_actions_include_interact_only_under_the_paper_preset() {
    let kitchen = kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot]);
    let mut wants = spec(Ingredient::Tomato, Ingredient::Carrot);
    wants.p_act = 0.6;
    for (preset, left, interact) in [(Preset::Paper, 0.5, 0.1), (Preset::Reference, 0.52, 0.0)] {
        let (actions, events) =
            CookPeer::with_event(wants, None).probabilities(&game(preset), &kitchen, PEER);
        assert!((actions[1] - left).abs() < 1e-12 && (actions[5] - interact).abs() < 1e-12, "{actions:?}");
        assert_eq!(events[EventKind::TakePlate as usize], 1.0);
    }
}

#[test]
fn pools_hold_every_dish_equally_often() {
    let pool = game(Preset::Paper).pool();
    let count = |tuples: &[crate::peer::PeerTuple<CookSpec>], recipe: Recipe| {
        tuples.iter().filter(|tuple| tuple.specs[0].recipe == recipe).count()
    };
    assert_eq!((pool.train().len(), pool.test().len(), pool.n_classes()), (18, 9, &[18][..]));
    for recipe in Recipe::ALL {
        assert_eq!((count(pool.train(), recipe), count(pool.test(), recipe)), (2, 1), "{recipe:?}");
    }
    for n_recipes in [6, 4, 2] {
        let few = game_with("pool_recipes", json!(n_recipes)).expect("a known size").pool();
        assert_eq!(few.test(), pool.test());
        for (index, tuple) in few.train().iter().enumerate() {
            assert_eq!(tuple.specs[0].recipe, pool.train()[index % n_recipes].specs[0].recipe);
            assert_eq!(tuple.classes, [index]);
            assert!(pool.train().iter().all(|other| other.specs != tuple.specs), "peer {index} is new");
        }
    }
    let uniform = game_with("pool", json!("uniform")).expect("a known pool").pool();
    assert_eq!((uniform.train().len(), uniform.test().len()), (18, 9));
    assert_ne!(uniform.content_hash(), pool.content_hash());
    for tuple in uniform.train().iter().chain(uniform.test()) {
        let CookSpec { p_act, weights, .. } = tuple.specs[0];
        assert!((0.0..0.1).contains(&p_act) && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn validation_peers_want_every_dish_and_are_apart_from_the_others() {
    for (key, value) in [
        ("pool", json!("official")),
        ("pool", json!("human-like")),
        ("pool", json!("uniform")),
        ("pool_recipes", json!(6)),
        ("pool_recipes", json!(4)),
        ("pool_recipes", json!(2)),
    ] {
        let pool = game_with(key, value.clone()).expect("a known pool").pool();
        assert_eq!(pool.validation().len(), 18);
        for (index, tuple) in pool.validation().iter().enumerate() {
            let peer = &tuple.specs[0];
            assert_eq!(peer.recipe, Recipe::ALL[index % 9]);
            assert_eq!(peer.human.is_some(), value == "human-like");
            for other in pool.train().iter().chain(pool.test()).map(|tuple| &tuple.specs[0]) {
                assert!(peer.distance(other) >= MIN_DISTANCE, "{peer:?} and {other:?}");
            }
        }
    }
}

#[test]
fn human_like_peers_err_pause_and_change_routes() {
    let official = game(Preset::Paper).pool();
    let game = game_with("pool", json!("human-like")).expect("a known pool");
    let pool = game.pool();
    assert_eq!(pool.train(), official.train(), "an agent trained with the official peers can meet them");
    assert_eq!(pool.test().len(), 18);
    for recipe in Recipe::ALL {
        assert_eq!(pool.test().iter().filter(|tuple| tuple.specs[0].recipe == recipe).count(), 2);
    }
    let kitchen = Kitchen::initial(&mut Seed::new(1).stream("deal"));
    for tuple in pool.test() {
        let spec = tuple.specs[0];
        let human = spec.human.expect("a human-like peer");
        assert!((0.1..0.3).contains(&spec.p_act) && (0.02..0.08).contains(&human.p_pause));
        // The peer stays in a pause, and may change its route with a new event.
        let mut rng = Seed::new(7).stream("peer");
        let (mut n_stays, mut second_actions) = (0, std::collections::BTreeSet::new());
        for _ in 0..2000 {
            let mut peer = CookPeer::new(&game, &spec);
            n_stays += u32::from(peer.act(&game, &kitchen, PEER, &mut rng) == STAY);
            second_actions.insert(peer.act(&game, &kitchen, PEER, &mut rng));
        }
        // One of the six random actions is to stay.
        let expected = 2000.0 * (human.p_pause + (1.0 - human.p_pause) * spec.p_act / 6.0);
        assert!((f64::from(n_stays) - expected).abs() < 5.0 * expected.sqrt(), "{n_stays} of {expected}");
        assert!(second_actions.len() > 2, "{second_actions:?}");
    }
}

#[test]
fn invalid_keys_are_refused() {
    for (key, value) in [
        ("pool_recipes", json!(5)),
        ("horizon_steps", json!(0)),
        ("step_cost", json!(-1.0)),
        ("episodes_per_encounter", json!(0)),
        ("peer_random_action", json!("none")),
        ("peer_event_across_episodes", json!("lost")),
        ("pool", json!("mine")),
        ("recipes", json!("all")),
        ("grid", json!("open")),
    ] {
        let error = game_with(key, value.clone()).expect_err("the value is not allowed");
        assert!(
            matches!(&error, ConfigError::BadValue { key: named, .. } if named == key),
            "{value}: {error}"
        );
    }
    let both = Map::from_iter([("pool".to_owned(), json!("uniform")), ("pool_recipes".to_owned(), json!(4))]);
    assert!(Overcooked::new(configure(Preset::Paper, &both).expect("each is allowed")).is_err());
}

#[test]
fn impossible_states_are_refused_with_a_reason() {
    let game = game(Preset::Paper);
    let dish = || kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot]);
    let refuse = |reason: &str, change: &dyn Fn(&mut Kitchen)| {
        let mut kitchen = dish();
        game.check_state(&kitchen).expect("possible before the change");
        change(&mut kitchen);
        let error = game.check_state(&kitchen).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    };
    refuse("no floor of its side", &|kitchen| kitchen.cooks[0].cell = Cell::new(3, 5));
    refuse("no floor of its side", &|kitchen| kitchen.cooks[0].cell = Cell::new(4, 5));
    refuse("no floor of its side", &|kitchen| kitchen.cooks[1].cell = Cell::new(200, 5));
    refuse("holds the Potato at", &|kitchen| kitchen.cooks[0].held = Some(Object::Potato));
    refuse("cannot be moved", &|kitchen| kitchen.cooks[1].held = Some(Object::DeliveryTile));
    refuse("in the plate and in a hand", &|kitchen| {
        kitchen.cooks[0].held = Some(Object::Tomato);
        kitchen.cells[Object::Tomato as usize] = kitchen.cooks[0].cell;
    });
    refuse("outside the grid", &|kitchen| kitchen.cells[Object::Potato as usize] = Cell::new(0, 13));
    refuse("lies on the floor", &|kitchen| kitchen.cells[Object::Potato as usize] = Cell::new(1, 5));
    refuse("both lie at", &|kitchen| kitchen.cells[Object::Potato as usize] = Cell::new(0, 1));
    refuse("not in its place", &|kitchen| kitchen.cells[0] = Cell::new(0, 4));
    refuse("only food", &|kitchen| {
        for object in [Object::Plate, Object::Tomato, Object::UpperCarrot] {
            kitchen.cells[object as usize] = CUTTING_BOARD;
        }
    });
    refuse("has a gap", &|kitchen| kitchen.dish[0] = None);
    refuse("not chopped", &|kitchen| kitchen.chopped[Object::Tomato as usize] = false);
    refuse("Carrot twice", &|kitchen| {
        kitchen.dish[2] = Some(Object::LowerCarrot);
        kitchen.chopped[Object::LowerCarrot as usize] = true;
        kitchen.cells[Object::LowerCarrot as usize] = kitchen.cell(Object::Plate);
    });
    refuse("no food", &|kitchen| kitchen.dish[2] = Some(Object::Plate));
    refuse("and not at", &|kitchen| kitchen.cells[Object::Tomato as usize] = Cell::new(0, 7));
    refuse("is chopped", &|kitchen| kitchen.chopped[Object::Plate as usize] = true);
    refuse("the horizon is 40", &|kitchen| kitchen.n_steps = 41);
    refuse("goal graphs", &|kitchen| kitchen.progress = GoalProgress::default());
    refuse("both cooks hold", &|kitchen| {
        // The check does not depend on the cells of the cooks.
        kitchen.cooks = [Cook { held: Some(Object::Potato), ..Cook::at_start(Cell::new(1, 2)) }; 2];
        kitchen.cooks[1].cell = Cell::new(4, 2);
        kitchen.cells[Object::Potato as usize] = Cell::new(1, 2);
    });
}

#[test]
fn turns_cost_an_action_and_walks_are_shortest() {
    let walks = WalkDistances::new();
    let pose = |x, y, facing| super::planner::Pose { cell: Cell::new(x, y), facing };
    let check = |from, to, expected| assert_eq!(walks.moves(from, to), expected, "{from:?} to {to:?}");
    // From the board to the plate on (3,3): one move, which also turns.
    check(pose(1, 3, Facing::Left), pose(2, 3, Facing::Right), 1);
    // To the plate one row up, the ego goes up first.
    check(pose(1, 3, Facing::Left), pose(2, 2, Facing::Right), 2);
    check(pose(2, 3, Facing::Right), pose(2, 2, Facing::Right), 2);
    check(pose(1, 11, Facing::Up), pose(1, 1, Facing::Up), 10);
}

#[test]
fn item_memory_drops_objects_that_left_the_room() {
    let game = game(Preset::Paper);
    let mut remembered = None;
    // The peer is about to put its carrot on the divider next to the ego, and then carries it to the upper room.
    for (peer_row, expected) in [(9, Some(Cell::new(DIVIDER, 9))), (8, None)] {
        let ego = Cook { facing: Facing::Right, ..Cook::at_start(Cell::new(2, 9)) };
        let peer = Cook { held: Some(Object::LowerCarrot), ..Cook::at_start(Cell::new(4, peer_row)) };
        let kitchen = Kitchen::arranged([ego, peer], tidy_cells(), [false; N_OBJECTS], &[]);
        let mut observation = [0.0; OBSERVATION_SIZE];
        game.observe(&kitchen, Seat::EGO, &mut observation);
        let items = ItemMemory::updated(remembered.as_ref(), &view::read(&observation));
        assert_eq!(items.cell(Object::LowerCarrot), expected);
        remembered = Some(items);
    }
}

#[test]
fn render_shows_every_object() {
    let game = game(Preset::Paper);
    let drawing = game.render(&kitchen_with_dish(&[Object::Tomato, Object::UpperCarrot]));
    let expected = "\
# O # # # # #
L . . P . . #
# < . B . . #
/ . . @ . n *
# . . # . . #
# . . # . . #
# . . # . . #
# . . # . . #
# . . # . . #
~~~~~~~~~~~~~ line of sight
# . . # . . O
# . . C . . #
# . . # . . B
# # # # # # #
step 0; ego holds nothing, peer holds nothing; in the plate: chopped tomato, chopped carrot";
    assert_eq!(drawing, expected);
}

/// The success rate on the test pool with `n_encounters` encounters per peer.
fn success(preset: Preset, name: &str, n_encounters: u64) -> f64 {
    let seed = |path: &[u64]| Seed::new(2).child("encounter", path);
    let outcomes = play_test_pool(&game(preset), name, n_encounters, seed);
    outcomes.iter().map(|outcome| outcome.score(Metric::Success)).sum::<f64>() / outcomes.len() as f64
}

#[test]
fn serving_times_match_the_bayes_table() {
    let game = game(Preset::Paper);
    let mut rng = Seed::new(3).stream("serve");
    for row in [1, 3, 4, 7] {
        let mut served = [0u32; 30];
        for _ in 0..4000 {
            let mut wants = game.sample_tuple(&mut rng).specs[0];
            wants.recipe = Recipe { left: Ingredient::Tomato, right: Ingredient::Carrot };
            let mut cells = tidy_cells();
            // The potato makes room for the plate.
            cells[Object::Potato as usize] = Cell::new(0, 7);
            cells[Object::Plate as usize] = Cell::new(DIVIDER, row);
            let mut chopped = [false; N_OBJECTS];
            let dish = [Object::Tomato, Object::UpperCarrot];
            dish.iter().for_each(|food| chopped[*food as usize] = true);
            let mut kitchen = Kitchen::arranged(tidy_cooks(), cells, chopped, &dish);
            let mut peer = CookPeer::new(&game, &wants);
            for served in &mut served {
                let act = peer.act(&game, &kitchen, PEER, &mut rng);
                if game.apply(&mut kitchen, &joint(STAY, act)).ending.is_some() {
                    *served += 1;
                    break;
                }
            }
        }
        let mut share = 0.0;
        for (index, count) in served[..20].iter().enumerate() {
            share += f64::from(*count) / 4000.0;
            let expected = served_within(row, index + 1);
            // Four standard deviations of a share, which are at most 0.008 each.
            assert!((share - expected).abs() < 0.035, "row {row}, {} steps: {share}, {expected}", index + 1);
        }
    }
}

#[test]
fn reference_scores_are_in_their_expected_ranges() {
    for preset in Preset::RULES {
        let oracle = success(preset, "oracle", 50);
        assert!(oracle >= 0.985, "{preset:?}: {oracle:?}");
        let fixed = success(preset, "static", 10);
        assert!((fixed - 1.0 / 9.0).abs() < 0.01, "{preset:?}: {fixed:?}");
        // 0.8 is the limit for an ego that tries the left ingredients one by one; the standard error is 0.007.
        let bayes = success(preset, "bayes", 60);
        assert!((0.75..=0.8 + 4.0 * 0.007).contains(&bayes), "{preset:?}: {bayes:?}");
        assert!(success(preset, "random", 10) < 0.01);
    }
}

/// Checks the conditions that hold in every state.
fn check_invariants(game: &Overcooked, kitchen: &Kitchen) {
    game.check_state(kitchen).expect("play leads to possible states");
    for object in [Object::CuttingBoard, Object::DeliveryTile] {
        assert!(kitchen.cooks.iter().all(|cook| cook.held != Some(object)));
    }
    for seat in [Seat::EGO, PEER] {
        let mut own_room = [f32::NAN; OBSERVATION_SIZE];
        let mut everything = [f32::NAN; OBSERVATION_SIZE];
        game.observe(kitchen, seat, &mut own_room);
        game.observe_everything(kitchen, seat, &mut everything);
        check_view(kitchen, seat, &own_room, &everything);
    }
}

/// Checks that masks mark the objects in the same room, that hidden objects leave zeros, and that observations can be decoded.
fn check_view(kitchen: &Kitchen, seat: Seat, own_room: &[f32], everything: &[f32]) {
    let (own, other) = (kitchen.cooks[seat.0], kitchen.cooks[1 - seat.0]);
    let is_near = |cell: Cell| cell.is_upper() == own.cell.is_upper();
    let mut groups = vec![(is_near(other.cell), vec![3, 4, 5]), (is_near(other.cell), (47..52).collect())];
    for (index, cell) in kitchen.cells.into_iter().enumerate() {
        groups.push((is_near(cell), (6 + 3 * index..9 + 3 * index).collect()));
        if index >= 3 {
            groups.push((is_near(cell), vec![52 + 2 * (index - 3), 53 + 2 * (index - 3)]));
        }
    }
    for (is_near, places) in groups {
        let mask = *places.last().expect("a mask");
        assert_eq!(own_room[mask], f32::from(u8::from(is_near)));
        assert_eq!(everything[mask], 1.0);
        for place in places {
            assert_eq!(own_room[place], if is_near { everything[place] } else { 0.0 }, "place {place}");
        }
    }
    let in_groups = |place: usize| (3..42).contains(&place) || (47..70).contains(&place);
    for place in (0..OBSERVATION_SIZE).filter(|place| !in_groups(*place)) {
        assert_eq!(own_room[place], everything[place], "place {place}");
    }
    assert_eq!((own_room[94], own_room[95]), (0.0, 0.0), "no cook is ever in front, and there is no blender");
    let seen = view::read(everything);
    assert_eq!((seen.own, seen.other), (own, Some((other.cell, other.facing))));
    assert_eq!((seen.cells, seen.chopped), (kitchen.cells.map(Some), kitchen.chopped));
    let seen = view::read(own_room);
    assert_eq!(seen.own, own);
    assert_eq!(seen.cells, kitchen.cells.map(|cell| is_near(cell).then_some(cell)));
}

/// Any action, with interact more often than the others.
fn busy_action() -> impl proptest::strategy::Strategy<Value = Action> {
    (0u8..10).prop_map(|number| number.min(INTERACT))
}

proptest! {
    #[test]
    fn any_play_keeps_the_invariants(
        seed in any::<u64>(),
        actions in prop::collection::vec((busy_action(), busy_action()), 1..400),
    ) {
        // A long horizon, so that objects move far from their initial cells.
        let game = game_with("horizon_steps", json!(1000)).expect("a valid horizon");
        let mut kitchen = game.initial_state(&mut Seed::new(seed).stream("deal"));
        check_invariants(&game, &kitchen);
        for (ego, peer) in actions {
            if game.acting_seats(&kitchen).is_empty() {
                break;
            }
            let before = kitchen.clone();
            let moved = game.apply(&mut kitchen, &joint(ego, peer));
            check_invariants(&game, &kitchen);
            prop_assert_eq!(kitchen.n_steps, before.n_steps + 1);
            prop_assert_eq!(moved.keypoint_visited, kitchen.cooks[0].cell.y >= 9);
            prop_assert_eq!(moved.ending.is_some(), kitchen.is_delivered());
            prop_assert_eq!(kitchen.is_delivered(), Recipe::ALL.into_iter().any(|recipe| kitchen.is_dish(recipe))
                && kitchen.cell(Object::Plate) == DELIVERY_TILE);
            // Chopped food stays chopped, and plated food stays on the plate.
            for food in Object::FOODS {
                prop_assert!(kitchen.chopped[food as usize] || !before.chopped[food as usize]);
            }
            prop_assert!(before.dish().zip(kitchen.dish()).all(|(one, other)| one == other));
            prop_assert!(before.dish().count() <= kitchen.dish().count());
            prop_assert!(moved.task_reward >= -0.2 - 1e-12);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_play(
        seed in any::<u64>(),
        peer in 0usize..27,
        actions in prop::collection::vec(busy_action(), 120),
    ) {
        let game = game(Preset::Reference);
        let pool = game.pool();
        let tuple = pool.train().iter().chain(pool.test()).nth(peer).expect("27 peers");
        let play = || {
            let mut encounter = Encounter::<Overcooked>::begin(&game, &tuple.specs, 3, Seed::new(seed));
            let mut states = vec![encounter.state().clone()];
            for action in &actions {
                let views = PeerStepBuffers { observations: &mut [], actions: &mut [] };
                match encounter.step(&game, *action, views).boundary {
                    Boundary::WithinEpisode => {}
                    Boundary::EpisodeEnd => encounter.next_episode(&game),
                    Boundary::EncounterEnd => break,
                }
                states.push(encounter.state().clone());
            }
            states
        };
        prop_assert_eq!(play(), play());
    }

    #[test]
    fn peers_only_do_what_their_probabilities_allow(seed in any::<u64>(), peer in 0usize..27) {
        for preset in Preset::RULES {
            let game = game(preset);
            let pool = game.pool();
            let tuple = pool.train().iter().chain(pool.test()).nth(peer).expect("27 peers");
            let mut rng = Seed::new(seed).stream("play");
            let mut kitchen = game.initial_state(&mut rng);
            let mut peer = CookPeer::new(&game, &tuple.specs[0]);
            while !game.acting_seats(&kitchen).is_empty() {
                let (actions, events) = peer.probabilities(&game, &kitchen, PEER);
                prop_assert!((actions.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                prop_assert!((events.iter().sum::<f64>() - 1.0).abs() < 1e-12);
                let act = peer.act(&game, &kitchen, PEER, &mut rng);
                prop_assert!(actions[usize::from(act)] > 0.0);
                if let Some(Event { kind: EventKind::PutLeft | EventKind::PutRight, target }) = peer.event() {
                    prop_assert_eq!(target.x, DIVIDER);
                }
                let ego = rng.below(6) as Action;
                game.apply(&mut kitchen, &joint(ego, act));
            }
        }
    }
}
