//! A hand as plain data for `page.js`, and the summary of a person's behaviour.

use serde_json::{Value, json};

use super::rules::{BET, Card, DEALS, Hand, Stage};
use crate::game::{BehaviourSummary, JointAction, Seat, Viewpoint};

/// The hand from a viewpoint; a hidden card is null.
pub(crate) fn view(hand: &Hand, from: Viewpoint) -> Value {
    let is_visible = |seat: Seat| {
        from == Viewpoint::Omniscient || from == Viewpoint::Seat(seat) || hand.stage.is_showdown()
    };
    let card = |seat: Seat, card: Card| is_visible(seat).then_some(card);
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

/// The chips that both players have put in, the ego's first.
fn chips(stage: Stage) -> (u8, u8) {
    match stage {
        Stage::EgoSpeaks | Stage::PeerFacesCheck | Stage::CheckCheck => (1, 1),
        Stage::EgoFacesBet | Stage::CheckBetFold => (1, 2),
        Stage::PeerFacesBet | Stage::BetFold => (2, 1),
        Stage::CheckBetCall | Stage::BetCall => (2, 2),
    }
}

/// The bet counts of the peer by card, after a check and after a bet of the ego.
#[derive(Clone, Copy, Debug, Default)]
struct PeerBets {
    facing_check: [BetCount; 3],
    facing_bet: [BetCount; 3],
}

/// The number of bets or calls among a number of decisions.
#[derive(Clone, Copy, Debug, Default)]
struct BetCount {
    n_bets: u32,
    n_decisions: u32,
}

impl BetCount {
    /// The share of bets; `default` without any decision.
    fn rate(self, default: f64) -> f64 {
        if self.n_decisions == 0 { default } else { f64::from(self.n_bets) / f64::from(self.n_decisions) }
    }

    fn as_text(self) -> String {
        match self.n_decisions {
            0 => "did not occur".to_owned(),
            n_decisions => format!("{} of {n_decisions}", self.n_bets),
        }
    }
}

/// Summarises the peer's bets and calls by card.
pub(crate) fn behaviour_summary(moves: &[(Hand, JointAction)]) -> BehaviourSummary {
    let mut peer_bets = PeerBets::default();
    for (hand, actions) in moves {
        let count = match hand.stage {
            Stage::PeerFacesCheck => &mut peer_bets.facing_check[hand.peer_card as usize],
            Stage::PeerFacesBet => &mut peer_bets.facing_bet[hand.peer_card as usize],
            _ => continue,
        };
        count.n_decisions += 1;
        count.n_bets += u32::from(actions[Seat::of_peer(0).0] == BET);
    }
    let labelled = |label: &str, counts: [BetCount; 3]| {
        Card::DECK.map(|card| (format!("{label} {card:?}"), counts[card as usize].as_text()))
    };
    let lines = labelled("bet with", peer_bets.facing_check).into_iter();
    BehaviourSummary {
        lines: lines.chain(labelled("called with", peer_bets.facing_bet)).collect(),
        traits: vec![
            peer_bets.facing_check[Card::J as usize].rate(0.5) as f32,
            peer_bets.facing_bet[Card::Q as usize].rate(0.5) as f32,
        ],
        best_response_return: Some(best_response_return(&peer_bets)),
    }
}

/// The expected reward per hand of the best of the 64 deterministic egos against a peer with these bet rates. A person may also
/// choose dominated actions, so the closed form for [`super::KuhnSpec`] is not enough.
fn best_response_return(peer_bets: &PeerBets) -> f64 {
    let check = [
        peer_bets.facing_check[0].rate(0.5),
        peer_bets.facing_check[1].rate(0.0),
        peer_bets.facing_check[2].rate(1.0),
    ];
    let bet = [
        peer_bets.facing_bet[0].rate(0.0),
        peer_bets.facing_bet[1].rate(0.5),
        peer_bets.facing_bet[2].rate(1.0),
    ];
    // The best strategy for one card of the ego does not depend on the other cards.
    let best_value = |own: Card| {
        let sign = |other: Card| if own > other { 1.0 } else { -1.0 };
        let others = DEALS.iter().filter(|(ego, _)| *ego == own).map(|(_, peer)| *peer);
        let bets: f64 =
            others.clone().map(|other| bet[other as usize] * (2.0 * sign(other) - 1.0) + 1.0).sum();
        let checks = |calls: bool| -> f64 {
            let after_bet = |other: Card| if calls { 2.0 * sign(other) } else { -1.0 };
            let expected = |other: Card| {
                let p = check[other as usize];
                p * after_bet(other) + (1.0 - p) * sign(other)
            };
            others.clone().map(expected).sum()
        };
        bets.max(checks(false)).max(checks(true))
    };
    Card::DECK.into_iter().map(best_value).sum::<f64>() / 6.0
}

#[cfg(test)]
mod tests {
    use super::{BetCount, PeerBets, best_response_return};
    use crate::kuhn_poker::peers::KuhnSpec;
    use crate::kuhn_poker::values::Strategy;

    #[test]
    fn best_response_return_matches_the_closed_form() {
        for (xi, eta) in [(0, 0), (3, 9), (10, 2), (5, 5), (1, 4)] {
            let count = |n_bets| BetCount { n_bets, n_decisions: 10 };
            let peer_bets = PeerBets {
                facing_check: [count(xi), count(0), count(10)],
                facing_bet: [count(0), count(eta), count(10)],
            };
            let spec = KuhnSpec { xi: f64::from(xi) / 10.0, eta: f64::from(eta) / 10.0 };
            let expected = Strategy::best_response(&spec).value(&spec);
            assert!((best_response_return(&peer_bets) - expected).abs() < 1e-12, "{spec:?}");
        }
    }
}
