//! What a player of Kuhn poker sees, as 13 numbers and as text.

use super::rules::{Card, Hand, Stage};
use crate::game::Seat;

/// Length of the observation.
pub const OBSERVATION_SIZE: usize = 13;

const OWN_CARD: usize = 7;
const OTHER_CARD: usize = 10;

/// Writes what `seat` sees. A player whose turn it is not sees its own card and no stage, until the hand is over.
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

/// What an observation says, read back: the stage's number, the own card, and the other's if it was shown.
#[inline]
pub(crate) fn read(observation: &[f32]) -> (usize, Card, Option<Card>) {
    let one_in = |places: &[f32]| places.iter().position(|value| *value == 1.0);
    let stage = one_in(&observation[..OWN_CARD]).expect("an observation of the ego has a stage");
    let own = one_in(&observation[OWN_CARD..OTHER_CARD]).expect("everybody sees their own card");
    (stage, Card::DECK[own], one_in(&observation[OTHER_CARD..]).map(|card| Card::DECK[card]))
}

/// The words of [`render`] and of the actions.
pub(crate) const LEGEND: [&str; 2] = [
    "J Q K  the cards, from low to high; each player sees the other card at a showdown only",
    "the action pass is a check, or a fold after a bet; the action bet is a bet, or a call after a bet",
];

/// The hand in one line.
pub(crate) fn render(hand: &Hand) -> String {
    let story = match hand.stage {
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
    format!("ego {:?}  peer {:?}   {story}", hand.ego_card, hand.peer_card)
}
