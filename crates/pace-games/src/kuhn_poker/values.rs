//! Exact expected rewards of any ego against any peer in Kuhn poker, and best responses.

use super::peers::KuhnSpec;
use super::rules::{Card, DEALS};

/// A strategy of the ego without dominated actions: it never bets with Q, folds J after a bet and calls with K.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strategy {
    /// The probability that J bluffs.
    pub alpha: f64,
    /// The probability that Q, after its check, calls a bet.
    pub beta: f64,
    /// The probability that K bets first.
    pub gamma: f64,
}

impl Strategy {
    /// The eight deterministic strategies. The best response to any peer is among them, since the value is linear in each
    /// parameter.
    pub(crate) fn corners() -> [Strategy; 8] {
        std::array::from_fn(|index| Strategy {
            alpha: f64::from(index as u8 >> 2 & 1),
            beta: f64::from(index as u8 >> 1 & 1),
            gamma: f64::from(index as u8 & 1),
        })
    }

    /// The deterministic strategy with the highest value of `value`.
    pub(crate) fn best_corner(value: impl Fn(&Strategy) -> f64) -> Strategy {
        let corners = Strategy::corners().into_iter();
        corners.max_by(|one, other| value(one).total_cmp(&value(other))).expect("there are eight corners")
    }

    /// The best response to a peer. It is constant in each of six regions of the (xi, eta) square.
    pub fn best_response(peer: &KuhnSpec) -> Strategy {
        let corner = |holds: bool| f64::from(u8::from(holds));
        Strategy {
            alpha: corner(peer.eta < 1.0 / 3.0),
            beta: corner(peer.xi > 1.0 / 3.0),
            gamma: corner(peer.eta > peer.xi),
        }
    }

    /// A Nash equilibrium. Its value against every peer is −1/18.
    pub(crate) fn nash() -> Strategy {
        Strategy { alpha: 0.0, beta: 1.0 / 3.0, gamma: 0.0 }
    }

    /// The expected reward of a hand.
    pub fn value(&self, peer: &KuhnSpec) -> f64 {
        let (xi, eta) = (peer.xi, peer.eta);
        (-xi + self.alpha * (1.0 - 3.0 * eta) + self.beta * (3.0 * xi - 1.0) + self.gamma * (eta - xi)) / 6.0
    }

    /// The bet and call probabilities of this strategy.
    pub(crate) fn bet_probabilities(&self) -> BetProbabilities {
        BetProbabilities { first: [self.alpha, 0.0, self.gamma], facing_bet: [0.0, self.beta, 1.0] }
    }
}

/// Any strategy of the ego: its probability to bet first, and to call a bet, with each card.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BetProbabilities {
    /// The probability to bet first with J, Q, K.
    pub first: [f64; 3],
    /// The probability to call a bet after a check with J, Q, K.
    pub facing_bet: [f64; 3],
}

impl BetProbabilities {
    /// The expected reward of a hand.
    pub(crate) fn value(&self, peer: &KuhnSpec) -> f64 {
        DEALS.iter().map(|deal| self.value_of_deal(*deal, peer)).sum::<f64>() / 6.0
    }

    fn value_of_deal(&self, (ego, other): (Card, Card), peer: &KuhnSpec) -> f64 {
        let sign = if ego > other { 1.0 } else { -1.0 };
        let (peer_bets, peer_calls) = match other {
            Card::J => (peer.xi, 0.0),
            Card::Q => (0.0, peer.eta),
            Card::K => (1.0, 1.0),
        };
        let (bets, calls) = (self.first[ego as usize], self.facing_bet[ego as usize]);
        let after_peer_bet = calls * 2.0 * sign - (1.0 - calls);
        let after_check = peer_bets * after_peer_bet + (1.0 - peer_bets) * sign;
        let after_bet = peer_calls * 2.0 * sign + (1.0 - peer_calls);
        (1.0 - bets) * after_check + bets * after_bet
    }
}
