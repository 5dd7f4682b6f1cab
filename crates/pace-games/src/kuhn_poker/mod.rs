//! Kuhn poker: a competitive game with one peer.
#![doc = include_str!("README.md")]

mod page;
mod peers;
mod references;
mod rules;
#[cfg(test)]
mod tests;
mod values;
mod view;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use peers::{KuhnPeer, KuhnSpec};
pub use rules::{BET, Card, Hand, PASS, Stage};
pub use values::Strategy;

use rules::DEALS;
use values::BetProbabilities;
use view::OBSERVATION_SIZE;

use crate::config::{ConfigError, Preset, PresetConfig};
use crate::ego::Reference;
use crate::game::{
    BehaviourSummary, DecisionPoint, DisplayNames, EarlierStep, Game, GameSpec, JointAction, Metric,
    MoveOutcome, Page, Seat, SeatSet, Viewpoint,
};
use crate::peer::PeerTuple;
use crate::pool::PeerPool;
use crate::seed::Stream;

/// The keys of Kuhn poker. The paper and the authors' code agree on all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KuhnConfig {
    /// Hands per encounter, N_eps.
    pub episodes_per_encounter: usize,
}

impl PresetConfig for KuhnConfig {
    fn preset(_preset: Preset) -> KuhnConfig {
        KuhnConfig { episodes_per_encounter: 100 }
    }
}

/// The game.
#[derive(Clone, Debug)]
pub struct KuhnPoker {
    config: KuhnConfig,
    spec: GameSpec,
}

impl Game for KuhnPoker {
    const ID: &'static str = "kuhn-poker";
    const README: &'static str = include_str!("README.md");
    const TRAINING: &'static str = include_str!("training.toml");
    const LEGEND: &'static [&'static str] = &view::LEGEND;
    const PAGE: Option<Page> =
        Some(Page { script: include_str!("page.js"), style: include_str!("page.css") });

    type Config = KuhnConfig;
    type State = Hand;
    type Peer = KuhnPeer;

    fn new(config: KuhnConfig) -> Result<KuhnPoker, ConfigError> {
        crate::config::check_episodes(config.episodes_per_encounter)?;
        let spec = GameSpec {
            id: Self::ID,
            title: "Kuhn Poker",
            revision: 1,
            observation_size: OBSERVATION_SIZE,
            action_names: &["pass", "bet"],
            peer_roles: vec!["opponent"],
            episodes_per_encounter: config.episodes_per_encounter,
            horizon_steps: 2,
            metric: Metric::Return,
            keypoint: "the hand ended in a showdown",
            nouns: DisplayNames {
                episode: "hand",
                episodes: "hands",
                score: "expected reward per hand",
                keypoint: "showdown",
            },
        };
        Ok(KuhnPoker { config, spec })
    }

    fn config(&self) -> &KuhnConfig {
        &self.config
    }

    fn spec(&self) -> &GameSpec {
        &self.spec
    }

    #[inline]
    fn initial_state(&self, rng: &mut Stream) -> Hand {
        Hand::initial(DEALS[rng.below(6) as usize])
    }

    #[inline]
    fn acting_seats(&self, hand: &Hand) -> SeatSet {
        hand.acting_seats()
    }

    #[inline]
    fn apply(&self, hand: &mut Hand, actions: &JointAction) -> MoveOutcome {
        let mover = if hand.acting_seats().contains(Seat::EGO) { Seat::EGO } else { Seat::of_peer(0) };
        hand.play(actions[mover.0])
    }

    #[inline]
    fn observe(&self, hand: &Hand, seat: Seat, observation: &mut [f32]) {
        view::observe(hand, seat, observation);
    }

    fn check_state(&self, hand: &Hand) -> Result<(), ConfigError> {
        if hand.ego_card == hand.peer_card {
            let reason = format!("both players hold {:?}, and there is one of each card", hand.ego_card);
            return Err(ConfigError::ImpossibleState { game: Self::ID, reason });
        }
        Ok(())
    }

    fn render(&self, hand: &Hand) -> String {
        view::render(hand)
    }

    fn constants(&self) -> Value {
        json!({ "deck": Card::DECK })
    }

    fn view(&self, hand: &Hand, from: Viewpoint) -> Value {
        page::view(hand, from)
    }

    fn behaviour_summary(&self, _seat: Seat, moves: &[(Hand, JointAction)]) -> BehaviourSummary {
        page::behaviour_summary(moves)
    }

    fn pool(&self) -> PeerPool<KuhnSpec> {
        peers::official_pool()
    }

    fn sample_tuple(&self, rng: &mut Stream) -> PeerTuple<KuhnSpec> {
        PeerTuple { specs: vec![KuhnSpec { xi: rng.unit(), eta: rng.unit() }], classes: vec![0] }
    }

    fn references(&self) -> Vec<(&'static str, Reference<KuhnPoker>)> {
        references::references()
    }

    fn decision_points(&self) -> Vec<DecisionPoint> {
        let observed = |stage: Stage, card: Card| {
            // The peer's card is hidden at a decision of the ego, so any other card will do.
            let other = if card == Card::J { Card::Q } else { Card::J };
            let mut observation = vec![0.0; OBSERVATION_SIZE];
            view::observe(&Hand { stage, ego_card: card, peer_card: other }, Seat::EGO, &mut observation);
            observation
        };
        let first = Card::DECK
            .map(|card| DecisionPoint { earlier: Vec::new(), observation: observed(Stage::EgoSpeaks, card) });
        let facing_bet = Card::DECK.map(|card| DecisionPoint {
            earlier: vec![EarlierStep {
                observation: observed(Stage::EgoSpeaks, card),
                ego_action: PASS,
                peer_actions: vec![BET],
            }],
            observation: observed(Stage::EgoFacesBet, card),
        });
        first.into_iter().chain(facing_bet).collect()
    }

    fn expected_return(&self, peers: &[KuhnSpec], answers: &[f32]) -> f64 {
        let bet = |point: usize| f64::from(answers[2 * point + usize::from(BET)]);
        let ego = BetProbabilities { first: [bet(0), bet(1), bet(2)], facing_bet: [bet(3), bet(4), bet(5)] };
        ego.value(&peers[0])
    }
}
