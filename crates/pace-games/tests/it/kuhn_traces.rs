//! Kuhn poker replays the recorded hands of the authors' code, and agrees with OpenSpiel.

use pace_games::kuhn_poker::{Card, Hand, KuhnConfig, KuhnPoker, KuhnSpec, Stage, Strategy};
use pace_games::{Action, Game, MAX_SEATS, NO_ACTION, Preset, PresetConfig, Seat};
use serde_json::Value;

use crate::traces::{assert_close, document, integers, records};

fn game() -> KuhnPoker {
    KuhnPoker::new(KuhnConfig::preset(Preset::Reference)).expect("the preset is valid")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("expected a number, found {value}"))
}

#[test]
fn recorded_hands_are_replayed() {
    let game = game();
    let mut observation = [0.0; 13];
    for record in records("kuhn.jsonl.gz") {
        let place = || format!("hand {}", record["id"]);
        let deal = integers(&record["deal"]);
        let mut hand = Hand::initial((Card::DECK[deal[0] as usize], Card::DECK[deal[1] as usize]));
        let peer_action = number(&record["peer_action"]) as Action;
        let ego_actions = integers(&record["ego_actions"]);
        let stages = integers(&record["stages"]);
        for (step, ego_action) in ego_actions.iter().enumerate() {
            assert_eq!(hand.stage.number(), Some(stages[step] as usize), "{}", place());
            game.observe(&hand, Seat::EGO, &mut observation);
            assert_close(&observation, &record["obs"][step], place);
            let mut task_reward = 0.0;
            let mut moves = vec![(Seat::EGO, *ego_action as Action)];
            if step == 0 {
                moves.push((Seat::of_peer(0), peer_action));
            }
            for (seat, action) in moves {
                assert!(game.acting_seats(&hand).contains(seat), "{}", place());
                if seat != Seat::EGO {
                    game.observe(&hand, seat, &mut observation);
                    assert_close(&observation, &record["peer_obs"], place);
                    let peer = KuhnSpec { xi: number(&record["xi"]), eta: number(&record["eta"]) };
                    let bets = peer.bet_probability(hand.stage, hand.peer_card);
                    assert!(if action == 1 { bets > 0.0 } else { bets < 1.0 }, "{}", place());
                }
                let mut actions = [NO_ACTION; MAX_SEATS];
                actions[seat.0] = action;
                task_reward += game.apply(&mut hand, &actions).task_reward;
            }
            assert_eq!(task_reward, number(&record["rewards"][step]), "{}", place());
        }
        assert!(game.acting_seats(&hand).is_empty(), "{}", place());
        let last = ego_actions.len();
        assert_eq!(hand.stage.number(), Some(stages[last] as usize), "{}", place());
        game.observe(&hand, Seat::EGO, &mut observation);
        assert_close(&observation, &record["obs"][last], place);
        assert_eq!(hand.stage.is_showdown(), number(&record["showdown"]) == 1.0, "{}", place());
    }
}

fn check_best_response(entry: &Value) {
    let peer = KuhnSpec { xi: number(&entry["xi"]), eta: number(&entry["eta"]) };
    let best = Strategy::best_response(&peer);
    let recorded: Vec<f64> = integers(&entry["br"]).into_iter().map(|corner| corner as f64).collect();
    assert_eq!(vec![best.alpha, best.beta, best.gamma], recorded, "{entry}");
    assert!((best.value(&peer) - number(&entry["br_value"])).abs() < 1e-12, "{entry}");
}

#[test]
fn recorded_best_responses_and_pool_members_agree() {
    records("kuhn.jsonl.gz").iter().for_each(check_best_response);
    let pool = game().pool();
    let all: Vec<_> = pool.train().iter().chain(pool.test()).collect();
    for entry in document("pools.json").iter().flat_map(|pools| pools.as_array().expect("a list")) {
        if entry["game"] != "kuhn" {
            continue;
        }
        let index = number(&entry["index"]) as usize;
        assert_eq!(entry["split"] == "train", index < pool.train().len());
        let peer = all[index].specs[0];
        assert_eq!((peer.xi, peer.eta), (number(&entry["xi"]), number(&entry["eta"])));
        check_best_response(entry);
    }
}

#[test]
fn best_response_values_equal_openspiels() {
    let rows = include_str!("../openspiel/best_responses.csv").lines().skip(1);
    let mut n_rows = 0;
    for row in rows {
        let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().expect("a number")).collect();
        let peer = KuhnSpec { xi: cells[0], eta: cells[1] };
        let value = Strategy::best_response(&peer).value(&peer);
        assert!((value - cells[2]).abs() < 1e-6, "{row}: ours {value}");
        n_rows += 1;
    }
    assert_eq!(n_rows, 225);
}

#[test]
fn the_peer_acts_exactly_once_per_hand() {
    let mut hand = Hand::initial((Card::Q, Card::K));
    hand.play(0);
    assert_eq!(hand.stage, Stage::PeerFacesCheck);
    hand.play(1);
    assert!(
        game().acting_seats(&hand).contains(Seat::EGO)
            && !game().acting_seats(&hand).contains(Seat::of_peer(0))
    );
}
