//! The plane as plain data for `page.js`, and the summary of a person's behaviour.

use serde_json::{Value, json};

use super::PredatorPrey;
use super::bodies::{OBSTACLE_SIZE, Point, World, distance, from_to};
use super::peers::prey;
use super::watchtowers::{SIGHT_RADIUS, Sight, TOWER_SIZE, TOWERS};
use crate::game::{BehaviourSummary, JointAction, Seat, Viewpoint};

/// The agents, the towers and the paths of prey.
pub(crate) fn constants(game: &PredatorPrey) -> Value {
    let agents = (0..game.counts.n_agents()).map(|agent| {
        let params = game.counts.body_params(agent);
        let role = if agent < game.counts.n_predators { "predator" } else { "prey" };
        json!({ "role": role, "size": params.size })
    });
    let path = |path: usize| [0, 1, 2].map(|waypoint| prey::waypoint_of(path, waypoint));
    json!({
        "agents": agents.collect::<Vec<_>>(),
        "n_predators": game.counts.n_predators,
        "towers": TOWERS,
        "tower_size": TOWER_SIZE,
        "obstacle_size": OBSTACLE_SIZE,
        "sight_radius": SIGHT_RADIUS,
        "paths": (0..prey::N_PATHS).map(path).collect::<Vec<_>>(),
        "horizon_steps": game.config.horizon_steps,
    })
}

/// The plane from a viewpoint; a hidden agent or obstacle is null.
pub(crate) fn view(game: &PredatorPrey, world: &World, from: Viewpoint) -> Value {
    let (own, sight) = match from {
        Viewpoint::Omniscient => ([0.0; 2], Sight::Everywhere),
        Viewpoint::Seat(seat) => {
            let position = world.agents[seat.0].position;
            (position, Sight::from(position, game.counts.body_params(seat.0).size))
        }
    };
    let sees = |place: Point| sight.reaches(from_to(own, place));
    // Five decimals are a thousandth of the smallest body or less: enough for a drawing.
    let rounded = |point: Point| point.map(|part| (part * 1e5).round() / 1e5);
    let agent = |(agent, body): (usize, &super::Body)| {
        sees(body.position).then(|| {
            json!({
                "position": rounded(body.position),
                "velocity": rounded(body.velocity),
                "is_caught": agent.checked_sub(game.counts.n_predators).map(|prey| world.caught[prey]),
            })
        })
    };
    json!({
        "agents": world.agents.iter().enumerate().map(agent).collect::<Vec<_>>(),
        "obstacles": world.obstacles.iter().map(|place| sees(*place).then(|| rounded(*place))).collect::<Vec<_>>(),
        "sees_everything": sight == Sight::Everywhere,
        "n_steps": world.n_steps,
    })
}

/// Summarises the mean distances of the agent in `seat` to the agents of the other role.
pub(crate) fn behaviour_summary(
    game: &PredatorPrey,
    seat: Seat,
    moves: &[(World, JointAction)],
) -> BehaviourSummary {
    let is_predator = seat.0 < game.counts.n_predators;
    let others = if is_predator {
        game.counts.n_predators..game.counts.n_agents()
    } else {
        0..game.counts.n_predators
    };
    let name = |agent: usize| match agent.checked_sub(game.counts.n_predators) {
        Some(prey) => format!("prey {}", prey::letter(prey)),
        None if agent == 0 => "the agent".to_owned(),
        None => format!("predator {agent}"),
    };
    let mean = |agent: usize| {
        let distance_in = |(world, _): &(World, JointAction)| {
            distance(world.agents[seat.0].position, world.agents[agent].position)
        };
        moves.iter().map(distance_in).sum::<f64>() / moves.len().max(1) as f64
    };
    let line = |agent: usize| (format!("mean distance to {}", name(agent)), format!("{:.2}", mean(agent)));
    BehaviourSummary { lines: others.map(line).collect(), ..BehaviourSummary::default() }
}
