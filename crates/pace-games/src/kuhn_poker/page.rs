//! A hand as plain data for `page.js`, and how a person played the peer's part.

use serde_json::{Value, json};

use super::rules::{BET, Card, DEALS, Hand, Stage};
use crate::game::{BehaviourSummary, JointAction, Seat, Viewpoint};

/// The hand from a viewpoint; a card that it does not see is null.
pub(crate) fn view(hand: &Hand, from: Viewpoint) -> Value {
    let is_open = |seat: Seat| {
        from == Viewpoint::Omniscient || from == Viewpoint::Seat(seat) || hand.stage.is_showdown()
    };
    let card = |seat: Seat, card: Card| is_open(seat).then_some(card);
    let (ego_chips, peer_chips) = chips(hand.stage);
    json!({
        "stage": hand.stage,
        "ego": { "card": card(Seat::EGO, hand.ego_card), "chips": ego_chips },
        "peer": { "card": card(Seat::of_peer(0), hand.peer_card), "chips": peer_chips },
        "is_showdown": hand.stage.is_showdown(),
        "is_over": hand.stage.is_over(),
        "ego_won": hand.ego_chips(),
    })
}

/// What both have put in, the ego first.
fn chips(stage: Stage) -> (u8, u8) {
    match stage {
        Stage::EgoSpeaks | Stage::PeerFacesCheck | Stage::CheckCheck => (1, 1),
        Stage::EgoFacesBet | Stage::CheckBetFold => (1, 2),
        Stage::PeerFacesBet | Stage::BetFold => (2, 1),
        Stage::CheckBetCall | Stage::BetCall => (2, 2),
    }
}

/// How often the peer bet, of how many times it was asked: by what it faced, then by its card.
#[derive(Clone, Copy, Debug, Default)]
struct Habits {
    facing_check: [Habit; 3],
    facing_bet: [Habit; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    n_bets: u32,
    n_asked: u32,
}

impl Habit {
    /// How often, with a guess where it was never asked.
    fn rate(self, guess: f64) -> f64 {
        if self.n_asked == 0 { guess } else { f64::from(self.n_bets) / f64::from(self.n_asked) }
    }

    fn as_text(self) -> String {
        match self.n_asked {
            0 => "did not occur".to_owned(),
            n_asked => format!("{} of {n_asked}", self.n_bets),
        }
    }
}

/// What the peer did, by card and by what it faced.
pub(crate) fn behaviour_summary(moves: &[(Hand, JointAction)]) -> BehaviourSummary {
    let mut habits = Habits::default();
    for (hand, actions) in moves {
        let habit = match hand.stage {
            Stage::PeerFacesCheck => &mut habits.facing_check[hand.peer_card as usize],
            Stage::PeerFacesBet => &mut habits.facing_bet[hand.peer_card as usize],
            _ => continue,
        };
        habit.n_asked += 1;
        habit.n_bets += u32::from(actions[Seat::of_peer(0).0] == BET);
    }
    let named = |what: &str, habits: [Habit; 3]| {
        Card::DECK.map(|card| (format!("{what} {card:?}"), habits[card as usize].as_text()))
    };
    let lines = named("bet with", habits.facing_check).into_iter();
    BehaviourSummary {
        lines: lines.chain(named("called with", habits.facing_bet)).collect(),
        traits: vec![
            habits.facing_check[Card::J as usize].rate(0.5) as f32,
            habits.facing_bet[Card::Q as usize].rate(0.5) as f32,
        ],
        best_response_return: Some(best_response_return(&habits)),
    }
}

/// What the best of the 64 egos without chance earns per hand against these habits. A person need not play as the family of
/// peers does, so its closed form is not enough.
fn best_response_return(habits: &Habits) -> f64 {
    let check = [
        habits.facing_check[0].rate(0.5),
        habits.facing_check[1].rate(0.0),
        habits.facing_check[2].rate(1.0),
    ];
    let bet =
        [habits.facing_bet[0].rate(0.0), habits.facing_bet[1].rate(0.5), habits.facing_bet[2].rate(1.0)];
    // What each card of the ego earns at best can be found by itself.
    let worth = |own: Card| {
        let sign = |other: Card| if own > other { 1.0 } else { -1.0 };
        let others = DEALS.iter().filter(|(ego, _)| *ego == own).map(|(_, peer)| *peer);
        let bets: f64 =
            others.clone().map(|other| bet[other as usize] * (2.0 * sign(other) - 1.0) + 1.0).sum();
        let checks = |calls: bool| -> f64 {
            let answered = |other: Card| if calls { 2.0 * sign(other) } else { -1.0 };
            let facing = |other: Card| {
                let p = check[other as usize];
                p * answered(other) + (1.0 - p) * sign(other)
            };
            others.clone().map(facing).sum()
        };
        bets.max(checks(false)).max(checks(true))
    };
    Card::DECK.into_iter().map(worth).sum::<f64>() / 6.0
}

#[cfg(test)]
mod tests {
    use super::{Habit, Habits, best_response_return};
    use crate::kuhn_poker::peers::KuhnSpec;
    use crate::kuhn_poker::values::Strategy;

    #[test]
    fn the_best_answer_to_a_peer_of_the_family_is_its_best_response() {
        for (xi, eta) in [(0, 0), (3, 9), (10, 2), (5, 5), (1, 4)] {
            let habit = |n_bets| Habit { n_bets, n_asked: 10 };
            let habits = Habits {
                facing_check: [habit(xi), habit(0), habit(10)],
                facing_bet: [habit(0), habit(eta), habit(10)],
            };
            let spec = KuhnSpec { xi: f64::from(xi) / 10.0, eta: f64::from(eta) / 10.0 };
            let expected = Strategy::best_response(&spec).value(&spec);
            assert!((best_response_return(&habits) - expected).abs() < 1e-12, "{spec:?}");
        }
    }
}
