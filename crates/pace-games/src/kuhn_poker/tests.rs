//! Tests of Kuhn poker: rules, observations, exact values, pools and reference agents.

use super::peers::MIN_DISTANCE;
use super::references::best_static;
use super::rules::{BET, Card, DEALS, Hand, PASS};
use super::view;
use super::{BetProbabilities, KuhnConfig, KuhnPoker, KuhnSpec, Strategy};
use crate::config::{Preset, PresetConfig};
use crate::ego::play_test_pool;
use crate::game::{Action, Game, Seat};
use crate::seed::Seed;

fn game() -> KuhnPoker {
    KuhnPoker::new(KuhnConfig::preset(Preset::Paper)).expect("the preset is valid")
}

/// Plays out "ego J, peer Q: bet call" and compares the ego's reward and the paper's number of the last stage.
fn check(play: &str, reward: f64, stage: usize) {
    let (cards, moves) = play.split_once(": ").expect("cards, then moves");
    let card = |player: &str| {
        let name = cards.split(", ").find_map(|part| part.strip_prefix(player)).expect("both cards").trim();
        Card::DECK.into_iter().find(|card| format!("{card:?}") == name).expect("J, Q or K")
    };
    let mut hand = Hand::initial((card("ego"), card("peer")));
    let mut total = 0.0;
    for word in moves.split(' ') {
        total += hand.play(if matches!(word, "bet" | "call") { BET } else { PASS }).task_reward;
    }
    assert_eq!((total, hand.stage.number()), (reward, Some(stage)), "{play}");
}

#[test]
fn bluff_called() {
    check("ego J, peer Q: bet call", -2.0, 6);
}

#[test]
fn bluff_folded() {
    check("ego J, peer Q: bet fold", 1.0, 5);
}

#[test]
fn every_deal_and_betting_has_the_reward_of_the_rules() {
    for (ego, peer) in DEALS {
        let sign = if ego > peer { 1.0 } else { -1.0 };
        let check = |moves: &str, reward, stage| {
            check(&format!("ego {ego:?}, peer {peer:?}: {moves}"), reward, stage);
        };
        check("check check", sign, 2);
        check("check bet fold", -1.0, 3);
        check("check bet call", 2.0 * sign, 4);
        check("bet fold", 1.0, 5);
        check("bet call", 2.0 * sign, 6);
    }
}

#[test]
fn exchanged_cards_negate_the_reward_of_a_showdown() {
    for (ego, peer) in DEALS {
        for moves in [&[PASS, PASS][..], &[PASS, BET, BET], &[BET, BET]] {
            let last_reward = |deal| {
                let mut hand = Hand::initial(deal);
                moves.iter().fold(0.0, |_, action| hand.play(*action).task_reward)
            };
            assert_eq!(last_reward((ego, peer)), -last_reward((peer, ego)));
        }
    }
}

#[test]
fn observations_have_two_ones_and_three_at_a_showdown() {
    let mut observation = [f32::NAN; 13];
    for deal in DEALS {
        for plan in 0..8u8 {
            let mut hand = Hand::initial(deal);
            loop {
                let seats: &[Seat] = if hand.stage.is_over() {
                    &[Seat::EGO, Seat::of_peer(0)]
                } else if hand.acting_seats().contains(Seat::EGO) {
                    &[Seat::EGO]
                } else {
                    &[Seat::of_peer(0)]
                };
                for seat in seats {
                    view::observe(&hand, *seat, &mut observation);
                    let ones = observation.iter().filter(|value| **value == 1.0).count();
                    let zeros = observation.iter().filter(|value| **value == 0.0).count();
                    assert_eq!(ones, if hand.stage.is_showdown() { 3 } else { 2 }, "{hand:?}");
                    assert_eq!(ones + zeros, 13);
                }
                if hand.stage.is_over() {
                    break;
                }
                let n_moves = hand.stage.number().map_or(1, |stage| stage * 2);
                hand.play(plan >> n_moves & 1);
            }
        }
    }
}

#[test]
fn best_response_is_the_best_corner() {
    for row in 0..50 {
        for column in 0..50 {
            let peer =
                KuhnSpec { xi: (f64::from(row) + 0.37) / 50.0, eta: (f64::from(column) + 0.61) / 50.0 };
            let best = Strategy::best_corner(|strategy| strategy.value(&peer));
            assert_eq!(best, Strategy::best_response(&peer), "{peer:?}");
            assert_eq!(corner_of_region(&peer), (best.alpha, best.beta, best.gamma), "{peer:?}");
        }
    }
}

/// The best response in the six regions of the (xi, eta) square that the authors number 2 to 7.
fn corner_of_region(peer: &KuhnSpec) -> (f64, f64, f64) {
    let third = 1.0 / 3.0;
    match (peer.eta >= third, peer.xi >= third, peer.eta >= peer.xi) {
        (true, false, _) => (0.0, 0.0, 1.0),
        (true, true, false) => (0.0, 1.0, 0.0),
        (true, true, true) => (0.0, 1.0, 1.0),
        (false, false, false) => (1.0, 0.0, 0.0),
        (false, false, true) => (1.0, 0.0, 1.0),
        (false, true, _) => (1.0, 1.0, 0.0),
    }
}

/// The probability of a showdown.
fn showdown_probability(strategy: &Strategy, peer: &KuhnSpec) -> f64 {
    let Strategy { alpha, beta, gamma } = *strategy;
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

#[test]
fn closed_forms_agree_and_dominated_actions_do_not_help() {
    for xi in [0.0, 0.2, 1.0 / 3.0, 0.7, 1.0] {
        for eta in [0.0, 0.3, 0.5, 1.0] {
            let peer = KuhnSpec { xi, eta };
            for strategy in Strategy::corners() {
                let difference = strategy.value(&peer) - strategy.bet_probabilities().value(&peer);
                assert!(difference.abs() < 1e-15);
            }
            let best = Strategy::best_response(&peer).value(&peer);
            for bits in 0..64u32 {
                let probability = |place: u32| f64::from(bits >> place & 1);
                let any = BetProbabilities {
                    first: [probability(0), probability(1), probability(2)],
                    facing_bet: [probability(3), probability(4), probability(5)],
                };
                assert!(any.value(&peer) <= best + 1e-12, "{any:?} beats the best response against {peer:?}");
            }
            assert!((Strategy::nash().value(&peer) + 1.0 / 18.0).abs() < 1e-15);
        }
    }
}

#[test]
fn sampled_hands_agree_with_the_closed_form() {
    // 4 standard errors; a hand's reward has a standard deviation below 2.
    const N_HANDS: usize = 40_000;
    let game = game();
    let seed = Seed::new(5);
    for (index, peer) in [(0.1, 0.9), (0.55, 0.2), (0.8, 0.6)].into_iter().enumerate() {
        let peer = KuhnSpec { xi: peer.0, eta: peer.1 };
        for (corner, strategy) in Strategy::corners().into_iter().enumerate() {
            let seed = seed.child("sample", &[index as u64, corner as u64]);
            let (mut cards, mut coins) = (seed.stream("cards"), seed.stream("coins"));
            let bets = strategy.bet_probabilities();
            let (mut total, mut showdowns) = (0.0, 0.0);
            for _ in 0..N_HANDS {
                let mut hand = game.initial_state(&mut cards);
                while !hand.acting_seats().is_empty() {
                    let probability = match hand.stage {
                        super::Stage::EgoSpeaks => bets.first[hand.ego_card as usize],
                        super::Stage::EgoFacesBet => bets.facing_bet[hand.ego_card as usize],
                        stage => peer.bet_probability(stage, hand.peer_card),
                    };
                    total += hand.play(Action::from(coins.chance(probability))).task_reward;
                }
                showdowns += f64::from(u8::from(hand.stage.is_showdown()));
            }
            let n = N_HANDS as f64;
            let tolerance = 4.0 * 2.0 / n.sqrt();
            assert!((total / n - strategy.value(&peer)).abs() < tolerance);
            assert!((showdowns / n - showdown_probability(&strategy, &peer)).abs() < 4.0 * 0.5 / n.sqrt());
        }
    }
}

#[test]
fn pools_are_the_official_ones() {
    let pool = game().pool();
    assert_eq!((pool.train().len(), pool.test().len(), pool.n_classes()), (40, 10, &[40][..]));
    let mean = |strategy: &dyn Fn(&KuhnSpec) -> Strategy, tuples: &[crate::peer::PeerTuple<KuhnSpec>]| {
        let values = tuples.iter().map(|tuple| strategy(&tuple.specs[0]).value(&tuple.specs[0]));
        values.sum::<f64>() / tuples.len() as f64
    };
    let close = |value: f64, published: f64| assert!((value - published).abs() < 5e-6, "{value} {published}");
    close(mean(&Strategy::best_response, pool.test()), 0.07693);
    close(mean(&Strategy::best_response, pool.train()), 0.08042);
    let fixed = best_static(&game());
    assert_eq!((fixed.alpha, fixed.beta, fixed.gamma), (0.0, 1.0, 1.0));
    assert!((mean(&|_| fixed, pool.train()) + 0.0112).abs() < 5e-5);
    assert!((mean(&|_| fixed, pool.test()) - 0.0214).abs() < 5e-5);
}

#[test]
fn validation_peers_are_apart_from_the_official_ones() {
    let pool = game().pool();
    assert_eq!(pool.validation().len(), 24);
    for peer in pool.validation().iter().map(|tuple| &tuple.specs[0]) {
        assert!((0.0..1.0).contains(&peer.xi) && (0.0..1.0).contains(&peer.eta), "{peer:?}");
        for other in pool.train().iter().chain(pool.test()).map(|tuple| &tuple.specs[0]) {
            assert!(peer.distance(other) >= MIN_DISTANCE, "{peer:?} and {other:?}");
        }
    }
    let best_responses: std::collections::BTreeSet<String> =
        pool.validation().iter().map(|tuple| format!("{:?}", corner_of_region(&tuple.specs[0]))).collect();
    assert_eq!(best_responses.len(), 6, "every best response: {best_responses:?}");
}

#[test]
fn equal_cards_are_an_impossible_state() {
    let hand = Hand::initial((Card::Q, Card::Q));
    let error = game().check_state(&hand).expect_err("there is one queen");
    assert!(error.to_string().contains("both players hold Q"), "{error}");
}

#[test]
fn bayes_scores_between_static_and_oracle() {
    let game = game();
    let mean = |name: &str| {
        let outcomes = play_test_pool(&game, name, 40, |path| Seed::new(2).child("encounter", path));
        let returns = outcomes.iter().map(|outcome| outcome.expected_return.expect("closed form"));
        returns.sum::<f64>() / outcomes.len() as f64
    };
    let (oracle, bayes, fixed, nash) = (mean("oracle"), mean("bayes"), mean("static"), mean("nash"));
    assert!((oracle - 0.07693).abs() < 5e-6);
    assert!(bayes > 0.053 && bayes < oracle, "{bayes}");
    assert!((fixed - 0.0214).abs() < 5e-5);
    assert!((nash + 1.0 / 18.0).abs() < 1e-7);
}
