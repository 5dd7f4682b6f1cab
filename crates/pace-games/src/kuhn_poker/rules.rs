//! The rules of Kuhn poker: who may act, what it costs, who wins.
//!
//! What a player may *see* is in `view`; how the peers bet is in `peers`.

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

/// The six ways to deal two of three cards, as (ego's, peer's).
pub const DEALS: [(Card, Card); 6] = [
    (Card::J, Card::Q),
    (Card::J, Card::K),
    (Card::Q, Card::J),
    (Card::Q, Card::K),
    (Card::K, Card::J),
    (Card::K, Card::Q),
];

/// How far the hand has come.
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
    /// The paper's number of the stage, 0 to 6; the peer's turns have none.
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

    /// Whether the cards lie open.
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
    /// How far it has come.
    pub stage: Stage,
    /// The ego's card.
    pub ego_card: Card,
    /// The peer's card.
    pub peer_card: Card,
}

impl Hand {
    /// A hand that has just been dealt.
    pub fn initial((ego_card, peer_card): (Card, Card)) -> Hand {
        Hand { stage: Stage::EgoSpeaks, ego_card, peer_card }
    }

    /// Who must choose.
    #[inline]
    pub fn acting_seats(&self) -> SeatSet {
        match self.stage {
            Stage::EgoSpeaks | Stage::EgoFacesBet => SeatSet::only(Seat::EGO),
            Stage::PeerFacesCheck | Stage::PeerFacesBet => SeatSet::only(Seat::of_peer(0)),
            _ => SeatSet::NONE,
        }
    }

    /// One player passes or bets.
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

    /// What the ego has won or lost; 0 while the hand goes on.
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
