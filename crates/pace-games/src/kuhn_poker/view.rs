//! Observations of Kuhn poker, and the text of a hand.

use super::rules::{Card, Hand, Stage};
use crate::game::Seat;

/// Length of the observation.
pub(crate) const OBSERVATION_SIZE: usize = 13;

const OWN_CARD: usize = 7;
const OTHER_CARD: usize = 10;

/// Writes the observation of `seat`. Until the hand is over, a player who does not act sees its own card and no stage.
#[inline]
pub(crate) fn observe(hand: &Hand, seat: Seat, observation: &mut [f32]) {
    observation.fill(0.0);
    let is_ego = seat == Seat::EGO;
    let stage = match hand.stage {
        Stage::EgoSpeaks | Stage::EgoFacesBet if !is_ego => None,
        Stage::PeerFacesCheck => (!is_ego).then_some(0),
        Stage::PeerFacesBet => (!is_ego).then_some(1),
        stage => stage.number(),
    };
    if let Some(stage) = stage {
        observation[stage] = 1.0;
    }
    let (own, other) = if is_ego { (hand.ego_card, hand.peer_card) } else { (hand.peer_card, hand.ego_card) };
    observation[OWN_CARD + own as usize] = 1.0;
    if hand.stage.is_showdown() {
        observation[OTHER_CARD + other as usize] = 1.0;
    }
}

/// Decodes an observation of the ego: the number of the stage, the own card, and the other card if it was shown.
#[inline]
pub(crate) fn read(observation: &[f32]) -> (usize, Card, Option<Card>) {
    let index_of_one = |entries: &[f32]| entries.iter().position(|value| *value == 1.0);
    let stage = index_of_one(&observation[..OWN_CARD]).expect("an observation of the ego has a stage");
    let own = index_of_one(&observation[OWN_CARD..OTHER_CARD]).expect("players see their own card");
    (stage, Card::DECK[own], index_of_one(&observation[OTHER_CARD..]).map(|card| Card::DECK[card]))
}

/// Explanations of [`render`] and of the actions.
pub(crate) const LEGEND: [&str; 2] = [
    "J Q K  the cards, from low to high; each player sees the other card at a showdown only",
    "the action pass is a check, or a fold after a bet; the action bet is a bet, or a call after a bet",
];

/// The hand in one line.
pub(crate) fn render(hand: &Hand) -> String {
    let betting = match hand.stage {
        Stage::EgoSpeaks => "ego to speak",
        Stage::PeerFacesCheck => "ego checks, peer to speak",
        Stage::PeerFacesBet => "ego bets, peer to answer",
        Stage::EgoFacesBet => "ego checks, peer bets, ego to answer",
        Stage::CheckCheck => "ego checks, peer checks: showdown for 1",
        Stage::CheckBetFold => "ego checks, peer bets, ego folds",
        Stage::CheckBetCall => "ego checks, peer bets, ego calls: showdown for 2",
        Stage::BetFold => "ego bets, peer folds",
        Stage::BetCall => "ego bets, peer calls: showdown for 2",
    };
    format!("ego {:?}  peer {:?}   {betting}", hand.ego_card, hand.peer_card)
}
