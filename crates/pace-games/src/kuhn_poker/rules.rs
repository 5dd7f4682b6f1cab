//! The rules of Kuhn poker: turns, bets and rewards.
//!
//! Observations are in `view`, the peers in `peers`.

use serde::{Deserialize, Serialize};

use crate::game::{Action, Ending, MoveOutcome, Seat, SeatSet};

/// Check or fold.
pub const PASS: Action = 0;
/// Bet or call.
pub const BET: Action = 1;

/// A card; the order is the order of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Card {
    J,
    Q,
    K,
}

impl Card {
    /// The deck, weakest first.
    pub const DECK: [Card; 3] = [Card::J, Card::Q, Card::K];
}

/// The six possible deals, as (ego's card, peer's card).
pub(crate) const DEALS: [(Card, Card); 6] = [
    (Card::J, Card::Q),
    (Card::J, Card::K),
    (Card::Q, Card::J),
    (Card::Q, Card::K),
    (Card::K, Card::J),
    (Card::K, Card::Q),
];

/// The position in the betting of a hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Stage {
    EgoSpeaks,
    EgoFacesBet,
    CheckCheck,
    CheckBetFold,
    CheckBetCall,
    BetFold,
    BetCall,
    PeerFacesCheck,
    PeerFacesBet,
}

impl Stage {
    /// The paper's number of the stage, 0 to 6; `None` for the peer's turns.
    pub fn number(self) -> Option<usize> {
        match self {
            Stage::EgoSpeaks => Some(0),
            Stage::EgoFacesBet => Some(1),
            Stage::CheckCheck => Some(2),
            Stage::CheckBetFold => Some(3),
            Stage::CheckBetCall => Some(4),
            Stage::BetFold => Some(5),
            Stage::BetCall => Some(6),
            Stage::PeerFacesCheck | Stage::PeerFacesBet => None,
        }
    }

    /// Whether both cards are shown.
    pub fn is_showdown(self) -> bool {
        matches!(self, Stage::CheckCheck | Stage::CheckBetCall | Stage::BetCall)
    }

    /// Whether the hand is over.
    pub fn is_over(self) -> bool {
        self.number().is_some_and(|number| number >= 2)
    }
}

/// One hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hand {
    /// The position in the betting.
    pub stage: Stage,
    /// The ego's card.
    pub ego_card: Card,
    /// The peer's card.
    pub peer_card: Card,
}

impl Hand {
    /// A hand at its start, with these cards.
    pub fn initial((ego_card, peer_card): (Card, Card)) -> Hand {
        Hand { stage: Stage::EgoSpeaks, ego_card, peer_card }
    }

    /// See [`crate::Game::acting_seats`].
    #[inline]
    pub fn acting_seats(&self) -> SeatSet {
        match self.stage {
            Stage::EgoSpeaks | Stage::EgoFacesBet => SeatSet::only(Seat::EGO),
            Stage::PeerFacesCheck | Stage::PeerFacesBet => SeatSet::only(Seat::of_peer(0)),
            _ => SeatSet::NONE,
        }
    }

    /// Executes a pass or bet of the acting player.
    #[inline]
    pub fn play(&mut self, action: Action) -> MoveOutcome {
        assert!(action <= BET, "Kuhn poker has the actions 0 and 1, found {action}");
        let bets = action == BET;
        self.stage = match (self.stage, bets) {
            (Stage::EgoSpeaks, false) => Stage::PeerFacesCheck,
            (Stage::EgoSpeaks, true) => Stage::PeerFacesBet,
            (Stage::PeerFacesCheck, false) => Stage::CheckCheck,
            (Stage::PeerFacesCheck, true) => Stage::EgoFacesBet,
            (Stage::PeerFacesBet, false) => Stage::BetFold,
            (Stage::PeerFacesBet, true) => Stage::BetCall,
            (Stage::EgoFacesBet, false) => Stage::CheckBetFold,
            (Stage::EgoFacesBet, true) => Stage::CheckBetCall,
            (over, _) => panic!("the hand is over ({over:?})"),
        };
        MoveOutcome {
            task_reward: self.ego_chips(),
            ending: self.stage.is_over().then_some(Ending::Finished),
            keypoint_visited: self.stage.is_showdown(),
        }
    }

    /// The chips that the ego has won, negative for a loss; 0 before the end of the hand.
    pub(crate) fn ego_chips(&self) -> f64 {
        let sign = if self.ego_card > self.peer_card { 1.0 } else { -1.0 };
        match self.stage {
            Stage::CheckCheck => sign,
            Stage::CheckBetCall | Stage::BetCall => 2.0 * sign,
            Stage::CheckBetFold => -1.0,
            Stage::BetFold => 1.0,
            _ => 0.0,
        }
    }
}
