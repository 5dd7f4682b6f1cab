//! Predator-Prey-W replays the recorded play of the authors' code, and of mpe2 with mpe2's settings.

use pace_games::predator_prey::{
    Body, ControlForce, InlineVec, Physics, Point, PredatorPrey, PredatorPreyConfig, PredatorPreyPeer,
    PredatorPreySpec, World,
};
use pace_games::{
    Action, Ending, Game, JointAction, MAX_SEATS, NO_ACTION, Peer, PeerTuple, Preset, PresetConfig, Seat,
    Seed,
};
use serde_json::Value;

use crate::traces::{assert_close, document, integers, numbers, records};

/// The tolerance of one step from a recorded state; the sums of forces have another order.
const ONE_STEP: f64 = 1e-12;
const OPEN_LOOP: f64 = 1e-6;
const REWARD: f64 = 1e-9;
const MPE2_STEP: f64 = 1e-9;

fn game(n_peers: usize) -> PredatorPrey {
    let config = PredatorPreyConfig { n_peers, ..PredatorPreyConfig::preset(Preset::Reference) };
    PredatorPrey::new(config).expect("the preset is valid")
}

fn episodes() -> Vec<(PredatorPrey, Value)> {
    [("ppw_m3.jsonl.gz", 3), ("ppw_m5.jsonl.gz", 5)]
        .into_iter()
        .flat_map(|(file, n_peers)| records(file).into_iter().map(move |record| (game(n_peers), record)))
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("expected a list, found {value}"))
}

fn points(value: &Value) -> Vec<Point> {
    list(value).iter().map(|pair| numbers(pair).try_into().expect("a pair of numbers")).collect()
}

fn flags(value: &Value) -> Vec<bool> {
    integers(value).iter().map(|flag| *flag == 1).collect()
}

fn bodies(moment: &Value) -> Vec<Body> {
    let (positions, velocities) = (points(&moment["pos"]), points(&moment["vel"]));
    positions.into_iter().zip(velocities).map(|(position, velocity)| Body { position, velocity }).collect()
}

fn joint(value: &Value) -> JointAction {
    let mut actions = [NO_ACTION; MAX_SEATS];
    for (seat, action) in integers(value).into_iter().enumerate() {
        actions[seat] = Action::try_from(action).expect("a small number");
    }
    actions
}

/// The world before step `step` of an episode.
fn world_before(game: &PredatorPrey, episode: &Value, step: usize) -> World {
    let steps = list(&episode["steps"]);
    let (moment, caught) = match step.checked_sub(1) {
        Some(last) => (&steps[last], flags(&steps[last]["c"])),
        None => (&episode["init"], vec![false; game.agent_counts().n_prey]),
    };
    World {
        agents: InlineVec::of(&bodies(moment)),
        obstacles: InlineVec::of(&points(&episode["init"]["obst"])),
        caught: InlineVec::of(&caught),
        n_steps: step,
    }
}

fn worst_difference(found: &[Body], expected: &[Body]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let parts = |body: &Body| [body.position[0], body.position[1], body.velocity[0], body.velocity[1]];
    let pairs = found.iter().flat_map(parts).zip(expected.iter().flat_map(parts));
    pairs.map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
}

fn assert_observations(game: &PredatorPrey, world: &World, recorded: &Value, place: &str) {
    let mut observation = vec![f32::NAN; game.spec().observation_size];
    let n_others = game.spec().n_peers();
    for (agent, recorded) in list(recorded).iter().enumerate() {
        game.observe(world, Seat(agent), &mut observation);
        assert_close(&observation, recorded, || format!("{place}, agent {agent}"));
        let recorded = numbers(recorded);
        for flag in (4..10).chain(22..22 + n_others) {
            assert_eq!(f64::from(observation[flag]), recorded[flag], "{place}, agent {agent}, flag {flag}");
        }
    }
}

#[test]
fn one_step_from_every_recorded_state() {
    for (game, episode) in episodes() {
        let steps = list(&episode["steps"]);
        assert_observations(&game, &world_before(&game, &episode, 0), &episode["init"]["o"], "at the start");
        for (index, recorded) in steps.iter().enumerate() {
            let place = format!("episode {}, step {index}", episode["id"]);
            let mut world = world_before(&game, &episode, index);
            let caught_before = world.caught;
            game.check_state(&world).unwrap_or_else(|error| panic!("{place}: {error}"));
            let moved = game.apply(&mut world, &joint(&recorded["a"]));
            let difference = worst_difference(&world.agents, &bodies(recorded));
            assert!(difference <= ONE_STEP, "{place}: off by {difference:e}");

            // Observations are computed from the recorded bodies, since rounding decides at the edge of visibility.
            let mut recorded_world = world_before(&game, &episode, index + 1);
            assert_observations(&game, &recorded_world, &recorded["o"], &place);
            let reward = recorded["r"].as_f64().expect("a number");
            assert!((moved.task_reward - reward).abs() <= REWARD, "{place}: {moved:?}, recorded {reward}");
            assert_eq!(world.caught.to_vec(), flags(&recorded["c"]), "{place}");
            assert_eq!(moved.ending.is_some(), recorded["d"] == 1, "{place}: {moved:?}");
            let all_caught = world.caught.iter().all(|is_caught| *is_caught);
            assert_eq!(moved.ending == Some(Ending::Succeeded), all_caught, "{place}: {moved:?}");
            assert_eq!(moved.keypoint_visited, recorded["k"] == 1, "{place}");
            assert_eq!(game.acting_seats(&world).is_empty(), moved.ending.is_some(), "{place}");
            recorded_world.caught = caught_before;
            game.check_state(&recorded_world).unwrap_or_else(|error| panic!("{place}: {error}"));
        }
    }
}

#[test]
fn open_loop_from_every_start() {
    for (game, episode) in episodes() {
        let mut world = world_before(&game, &episode, 0);
        for (index, recorded) in list(&episode["steps"]).iter().enumerate() {
            let moved = game.apply(&mut world, &joint(&recorded["a"]));
            let difference = worst_difference(&world.agents, &bodies(recorded));
            assert!(
                difference <= OPEN_LOOP,
                "episode {}, step {index}: off by {difference:e}",
                episode["id"]
            );
            assert_eq!(moved.ending.is_some(), recorded["d"] == 1, "episode {}, step {index}", episode["id"]);
        }
    }
}

/// The specs of a recorded tuple: predators by the agent they chase, prey by their path.
fn specs(n_predators: i64, entry: &Value) -> Vec<PredatorPreySpec> {
    let predators = integers(&entry["pred"]).into_iter().map(|chased| PredatorPreySpec::Predator {
        prefers: usize::try_from(chased - n_predators).expect("predators chase prey"),
    });
    let prey = integers(&entry["path"])
        .into_iter()
        .map(|path| PredatorPreySpec::Prey { path: usize::try_from(path).expect("a path") });
    predators.chain(prey).collect()
}

/// The actions of all peers in `world`, with these waypoints of the prey, and the waypoints after them.
fn peer_actions(
    game: &PredatorPrey,
    world: &World,
    specs: &[PredatorPreySpec],
    waypoints: &[usize],
) -> (Vec<Action>, Vec<usize>) {
    let n_peer_predators = game.agent_counts().n_predators - 1;
    let mut rng = Seed::new(0).stream("unused");
    let mut actions = Vec::new();
    let mut after = Vec::new();
    for (slot, spec) in specs.iter().enumerate() {
        let mut peer = PredatorPreyPeer::new(game, spec);
        peer.begin_episode(game);
        if slot >= n_peer_predators {
            peer = peer.heading_for(waypoints[slot - n_peer_predators]);
        }
        actions.push(peer.act(game, world, Seat::of_peer(slot), &mut rng));
        if slot >= n_peer_predators {
            after.push(peer.waypoint());
        }
    }
    (actions, after)
}

fn indices(value: &Value) -> Vec<usize> {
    integers(value).into_iter().map(|number| usize::try_from(number).expect("not negative")).collect()
}

#[test]
fn scripted_peers_choose_as_recorded() {
    for (game, episode) in episodes() {
        if episode["combo"].is_null() {
            continue;
        }
        let specs = specs(game.agent_counts().n_predators as i64, &episode["combo"]);
        let mut waypoints = vec![0; game.agent_counts().n_prey];
        for (index, recorded) in list(&episode["steps"]).iter().enumerate() {
            let world = world_before(&game, &episode, index);
            let (actions, after) = peer_actions(&game, &world, &specs, &waypoints);
            let place = format!("episode {}, step {index}", episode["id"]);
            assert_eq!(actions, joint(&recorded["a"])[1..game.spec().n_seats()], "{place}");
            waypoints = indices(&recorded["w"]);
            assert_eq!(after, waypoints, "{place}");
        }
    }
}

#[test]
fn scripted_peers_decide_as_recorded_in_prepared_states() {
    let game = game(3);
    for record in records("ppw_decisions.jsonl.gz") {
        let agents: Vec<Body> = points(&record["pos"])
            .into_iter()
            .map(|position| Body { position, velocity: [0.0; 2] })
            .collect();
        let world = World {
            agents: InlineVec::of(&agents),
            obstacles: InlineVec::of(&[[0.5, 0.5], [-0.5, 0.5]]),
            caught: InlineVec::of(&[false; 2]),
            n_steps: 0,
        };
        let (actions, after) = peer_actions(&game, &world, &specs(2, &record), &indices(&record["w0"]));
        let found: Vec<i64> = actions.into_iter().map(i64::from).collect();
        assert_eq!(found, integers(&record["a"]), "record {} ({})", record["id"], record["kind"]);
        assert_eq!(after, indices(&record["w"]), "record {} ({})", record["id"], record["kind"]);
    }
}

#[test]
fn pools_are_the_authors() {
    let Some(entries) = document("pools.json") else { return };
    for (name, n_peers, n_tuples) in [("ppw_m3", 3, [16, 24]), ("ppw_m5", 5, [144, 144])] {
        let config = PredatorPreyConfig {
            n_peers,
            n_train_tuples: n_tuples[0],
            n_test_tuples: n_tuples[1],
            ..PredatorPreyConfig::preset(Preset::Reference)
        };
        let game = PredatorPrey::new(config).expect("all keys are valid");
        let pool = game.pool();
        let mut n_compared = 0;
        for entry in list(&entries).iter().filter(|entry| entry["game"] == name) {
            let index = entry["index"].as_u64().expect("a number") as usize;
            let tuples = if entry["split"] == "train" { pool.train() } else { pool.test() };
            let recorded = PeerTuple {
                specs: specs(game.agent_counts().n_predators as i64, entry),
                classes: indices(&entry["label"]),
            };
            assert_eq!(tuples[index], recorded, "{entry}");
            n_compared += 1;
        }
        assert!(n_compared > 0, "no entry of {name}");
    }
}

#[test]
fn mpe2_settings_move_bodies_as_mpe2_does() {
    let Some(recording) = document("mpe2_contact_traces.json") else { return };
    let config = PredatorPreyConfig {
        control_force: ControlForce::Accel,
        physics: Physics::PositionFirst,
        ..PredatorPreyConfig::preset(Preset::Reference)
    };
    let game = PredatorPrey::new(config).expect("all keys are valid");
    // The actions of mpe2 are none, −x, +x, −y, +y.
    let translate = |action: Action| [0, 2, 1, 4, 3][usize::from(action)];
    for (index, trace) in list(&recording["traces"]).iter().enumerate() {
        let places = points(&trace["init"]["pos"]);
        let velocities = points(&trace["init"]["vel"]);
        let (agents, obstacles) = places.split_at(4);
        let agents: Vec<Body> = agents
            .iter()
            .zip(velocities)
            .map(|(position, velocity)| Body { position: *position, velocity })
            .collect();
        let mut world = World {
            agents: InlineVec::of(&agents),
            obstacles: InlineVec::of(obstacles),
            caught: InlineVec::of(&[false; 2]),
            n_steps: 0,
        };
        for (step, actions) in list(&trace["acts"]).iter().enumerate() {
            let mut actions = joint(actions);
            actions[..4].iter_mut().for_each(|action| *action = translate(*action));
            // In mpe2 a contact does not end the episode.
            (world.caught, world.n_steps) = (InlineVec::of(&[false; 2]), 0);
            game.apply(&mut world, &actions);
            let recorded = [&trace["pos"][step], &trace["vel"][step]].map(points);
            let expected: Vec<Body> = std::iter::zip(&recorded[0], &recorded[1])
                .map(|(position, velocity)| Body { position: *position, velocity: *velocity })
                .collect();
            let difference = worst_difference(&world.agents, &expected);
            assert!(difference <= MPE2_STEP, "trace {index}, step {step}: off by {difference:e}");
            world.agents = InlineVec::of(&expected);
        }
    }
}
