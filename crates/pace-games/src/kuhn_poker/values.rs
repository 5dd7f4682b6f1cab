//! Exact values of Kuhn poker: the expected reward of any ego against any peer, and the best responses.

use super::peers::KuhnSpec;
use super::rules::{Card, DEALS};

/// An ego without dominated actions: it never bets with Q, folds J to a bet and calls with K.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strategy {
    /// How often J bluffs.
    pub alpha: f64,
    /// How often Q calls a bet after checking.
    pub beta: f64,
    /// How often K bets at once.
    pub gamma: f64,
}

impl Strategy {
    /// The eight strategies without chance. The best response to any peer is among them, since the value is linear in
    /// each parameter.
    pub fn corners() -> [Strategy; 8] {
        std::array::from_fn(|index| Strategy {
            alpha: f64::from(index as u8 >> 2 & 1),
            beta: f64::from(index as u8 >> 1 & 1),
            gamma: f64::from(index as u8 & 1),
        })
    }

    /// The best response to a peer: one of six regions of the (xi, eta) square has each answer.
    pub fn best_response(peer: &KuhnSpec) -> Strategy {
        let corner = |holds: bool| f64::from(u8::from(holds));
        Strategy {
            alpha: corner(peer.eta < 1.0 / 3.0),
            beta: corner(peer.xi > 1.0 / 3.0),
            gamma: corner(peer.eta > peer.xi),
        }
    }

    /// An equilibrium: no peer wins more than 1/18 from it, and it wins from nobody.
    pub fn nash() -> Strategy {
        Strategy { alpha: 0.0, beta: 1.0 / 3.0, gamma: 0.0 }
    }

    /// The expected reward of a hand.
    pub fn value(&self, peer: &KuhnSpec) -> f64 {
        let (xi, eta) = (peer.xi, peer.eta);
        (-xi + self.alpha * (1.0 - 3.0 * eta) + self.beta * (3.0 * xi - 1.0) + self.gamma * (eta - xi)) / 6.0
    }

    /// How often the cards are shown.
    pub fn showdown_probability(&self, peer: &KuhnSpec) -> f64 {
        let Strategy { alpha, beta, gamma } = *self;
        let by_deal = [
            1.0 - alpha + alpha * peer.eta,
            alpha,
            1.0 - peer.xi + peer.xi * beta,
            beta,
            1.0 - gamma,
            1.0 - gamma + gamma * peer.eta,
        ];
        by_deal.iter().sum::<f64>() / 6.0
    }

    /// The same strategy as bet and call probabilities.
    pub fn bet_probabilities(&self) -> BetProbabilities {
        BetProbabilities { first: [self.alpha, 0.0, self.gamma], facing_bet: [0.0, self.beta, 1.0] }
    }
}

/// The number of the region of the (xi, eta) square that a peer is in, 2 to 7 as the authors count them.
pub fn region(peer: &KuhnSpec) -> u8 {
    let third = 1.0 / 3.0;
    match (peer.eta >= third, peer.xi >= third, peer.eta >= peer.xi) {
        (true, false, _) => 2,
        (true, true, false) => 3,
        (true, true, true) => 4,
        (false, false, false) => 5,
        (false, false, true) => 6,
        (false, true, _) => 7,
    }
}

/// Any ego: how often it bets with each card when it speaks first, and calls when it faces a bet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BetProbabilities {
    /// With J, Q, K, speaking first.
    pub first: [f64; 3],
    /// With J, Q, K, facing a bet after a check.
    pub facing_bet: [f64; 3],
}

impl BetProbabilities {
    /// The expected reward of a hand.
    pub fn value(&self, peer: &KuhnSpec) -> f64 {
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
        let faced = calls * 2.0 * sign - (1.0 - calls);
        let checked = peer_bets * faced + (1.0 - peer_bets) * sign;
        let bet = peer_calls * 2.0 * sign + (1.0 - peer_calls);
        (1.0 - bets) * checked + bets * bet
    }
}
