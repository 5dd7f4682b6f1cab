//! The kitchen as plain data for `page.js`, and the summary of a person's behaviour.

use serde_json::{Value, json};

use super::Overcooked;
use super::kitchen::{
    CUTTING_BOARD, Cell, Cook, DELIVERY_TILE, DIVIDER, HEIGHT, INTERACT, Kitchen, LAST_UPPER_ROW, Object,
    WIDTH,
};
use super::recipes::Recipe;
use crate::game::{BehaviourSummary, JointAction, Seat, Viewpoint};

/// The grid, the line of sight and the dishes.
pub(crate) fn constants(game: &Overcooked) -> Value {
    let symbol = |cell: Cell| match cell {
        CUTTING_BOARD => 'C',
        DELIVERY_TILE => 'D',
        cell if cell.is_floor() => '.',
        _ => '#',
    };
    let row = |y: u8| (0..WIDTH).map(|x| symbol(Cell::new(x, y))).collect::<String>();
    json!({
        "tiles": (0..HEIGHT).map(row).collect::<Vec<_>>(),
        "last_upper_row": LAST_UPPER_ROW,
        "divider": DIVIDER,
        "horizon_steps": game.config.horizon_steps,
        "dishes": Recipe::ALL,
    })
}

/// The kitchen from a viewpoint: all of it, or the room in which the cook stands.
pub(crate) fn view(kitchen: &Kitchen, from: Viewpoint) -> Value {
    let sees = |cell: Cell| match from {
        Viewpoint::Omniscient => true,
        Viewpoint::Seat(seat) => kitchen.cooks[seat.0].cell.is_upper() == cell.is_upper(),
    };
    let cook = |cook: &Cook| {
        sees(cook.cell)
            .then(|| json!({ "x": cook.cell.x, "y": cook.cell.y, "facing": cook.facing, "held": cook.held }))
    };
    let plated: Vec<Object> = kitchen.dish().collect();
    let things = Object::ALL.into_iter().filter(|object| !object.is_fixed() && sees(kitchen.cell(*object)));
    let thing = |object: Object| {
        let cell = kitchen.cell(object);
        json!({
            "id": object,
            "kind": object.ingredient().map_or("Plate".to_owned(), |ingredient| format!("{ingredient:?}")),
            "x": cell.x,
            "y": cell.y,
            "is_chopped": kitchen.chopped[object as usize],
            "is_plated": plated.contains(&object),
            "holder": kitchen.cooks.iter().position(|cook| cook.held == Some(object)),
        })
    };
    let rooms: Vec<&str> = [(0, "upper"), (HEIGHT - 1, "lower")]
        .into_iter()
        .filter(|(row, _)| sees(Cell::new(0, *row)))
        .map(|(_, room)| room)
        .collect();
    json!({
        "cooks": kitchen.cooks.iter().map(cook).collect::<Vec<_>>(),
        "things": things.map(thing).collect::<Vec<_>>(),
        "rooms": rooms,
        "n_steps": kitchen.n_steps,
        "is_delivered": kitchen.is_delivered(),
    })
}

/// The reason for which a person must not take an action: it would serve another dish than `recipe`.
pub(crate) fn forbidden_reason(kitchen: &Kitchen, seat: Seat, recipe: Recipe, action: u8) -> Option<String> {
    let cook = kitchen.cooks[seat.0];
    let serves = action == INTERACT
        && cook.held == Some(Object::Plate)
        && cook.cell.neighbour(cook.facing) == DELIVERY_TILE
        && kitchen.top_at(DELIVERY_TILE).is_none();
    (serves && !kitchen.is_dish(recipe))
        .then(|| format!("The order is {}; no other dish can be served.", as_text(recipe)))
}

fn as_text(recipe: Recipe) -> String {
    format!("{:?} with {:?}", recipe.left, recipe.right).to_lowercase()
}

/// Summarises how often the cook in `seat` used objects, was in the lower room, and held an object.
pub(crate) fn behaviour_summary(seat: Seat, moves: &[(Kitchen, JointAction)]) -> BehaviourSummary {
    let (mut n_used, mut n_lower, mut n_held) = (0, 0, 0);
    for (kitchen, actions) in moves {
        let cook = kitchen.cooks[seat.0];
        n_used += usize::from(actions[seat.0] == INTERACT);
        n_lower += usize::from(!cook.cell.is_upper());
        n_held += usize::from(cook.held.is_some());
    }
    let of_all = |n: usize| format!("{n} of {} steps", moves.len());
    BehaviourSummary {
        lines: vec![
            ("used an object".to_owned(), of_all(n_used)),
            ("was in the lower room".to_owned(), of_all(n_lower)),
            ("held an object".to_owned(), of_all(n_held)),
        ],
        ..BehaviourSummary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::forbidden_reason;
    use crate::game::Seat;
    use crate::overcooked::kitchen::{Cell, Cook, Facing, INTERACT, Kitchen, N_OBJECTS, Object, STAY};
    use crate::overcooked::recipes::{Ingredient, Recipe};
    use crate::seed::Seed;

    #[test]
    fn serving_another_dish_is_forbidden() {
        let mut stream = Seed::new(1).stream("deal");
        let cells = Kitchen::initial(&mut stream).cells;
        let mut chopped = [false; N_OBJECTS];
        let dish = [Object::Tomato, Object::UpperOnion];
        dish.iter().for_each(|food| chopped[*food as usize] = true);
        let cook = |facing| Cook { cell: Cell::new(5, 3), facing, held: Some(Object::Plate) };
        let kitchen = |facing| {
            Kitchen::arranged([Cook::at_start(Cell::new(1, 1)), cook(facing)], cells, chopped, &dish)
        };
        let seat = Seat::of_peer(0);
        let ordered = Recipe { left: Ingredient::Tomato, right: Ingredient::Onion };
        let other = Recipe { left: Ingredient::Tomato, right: Ingredient::Carrot };
        assert_eq!(forbidden_reason(&kitchen(Facing::Right), seat, ordered, INTERACT), None);
        let refused = forbidden_reason(&kitchen(Facing::Right), seat, other, INTERACT);
        assert_eq!(refused.as_deref(), Some("The order is tomato with carrot; no other dish can be served."));
        assert_eq!(forbidden_reason(&kitchen(Facing::Right), seat, other, STAY), None);
        assert_eq!(forbidden_reason(&kitchen(Facing::Left), seat, other, INTERACT), None);
    }
}
